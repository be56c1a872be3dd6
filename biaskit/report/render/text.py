"""A document as aligned plain text."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Sequence

from biaskit.foreign import visible
from biaskit.report.render.document import Document, Heading, TitledTable

LINE = 100
"""Where sentences and lists are broken; tables are as wide as their other columns."""
NARROWEST = 30
"""Letters that a column of lists has, however wide the others are."""


def render_text(document: Document) -> str:
    """Tables, then notes, then the signature; lines end without spaces."""
    parts = [_table(table) for table in document.tables]
    if document.notes:
        parts.append("\n".join(_wrapped(f"Note: {note.rstrip('.')}.") for note in document.notes))
    if document.signature:
        parts.append(_wrapped(document.signature))
    return "\n\n".join(parts) + "\n"


def _table(table: TitledTable) -> str:
    table = _shown(table)
    widths = _widths(table)
    lines = [table.title]
    lines += [_header_line(line, widths, table.n_text) for line in table.header]
    lines.append("-" * (sum(widths) + 2 * (len(widths) - 1)))
    for row in table.rows:
        lines += [_line(piece, widths, table.n_text) for piece in _pieces(row, widths, table.wide)]
    if table.note:
        lines.append(_wrapped(table.note))
    return "\n".join(line.rstrip() for line in lines)


def _shown(table: TitledTable) -> TitledTable:
    """The same table with every text on one line."""
    return TitledTable(
        visible(table.title),
        tuple(tuple(Heading(visible(h.text), h.span) for h in line) for line in table.header),
        tuple(tuple(visible(cell) for cell in row) for row in table.rows),
        table.note,
        table.n_text,
        table.wide,
    )


def _wrapped(text: str) -> str:
    # Wrapping first: a line feed of a note stays a place to break, everything else of its kind an escape.
    lines = textwrap.wrap(text, LINE, break_long_words=False, break_on_hyphens=False)
    return "\n".join(visible(line) for line in lines)


def _pieces(row: Sequence[str], widths: Sequence[int], wide: frozenset[int]) -> list[list[str]]:
    """A row as the lines it takes: its lists broken at spaces, everything else on the first line."""
    broken = [
        _broken(cell, width) if i in wide else [cell]
        for i, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    n = max(map(len, broken), default=1)
    return [[cell[i] if i < len(cell) else "" for cell in broken] for i in range(n)]


def _broken(text: str, width: int) -> list[str]:
    """Lines of at most `width` terminal columns; a word that is longer has a line of its own."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if lines[-1] and cell_width(longer) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _widths(table: TitledTable) -> list[int]:
    """Wide enough for every cell, and for every heading over its columns; lists share what is left."""
    n = table.n_columns
    widths = [
        0 if i in table.wide else max((cell_width(row[i]) for row in table.rows), default=0) for i in range(n)
    ]
    if table.wide:
        left = (LINE - sum(widths) - 2 * (n - 1)) // len(table.wide)
        for i in table.wide:
            lines = [line for row in table.rows for line in _broken(row[i], max(left, NARROWEST))]
            widths[i] = max(map(cell_width, lines), default=0)
    for line in reversed(table.header):
        start = 0
        for heading in line:
            inside = sum(widths[start : start + heading.span]) + 2 * (heading.span - 1)
            if (short := cell_width(heading.text) - inside) > 0:
                widths[start + heading.span - 1] += short
            start += heading.span
    return widths


def _header_line(line: Sequence[Heading], widths: Sequence[int], n_text: int) -> str:
    out, start = [], 0
    for heading in line:
        inside = sum(widths[start : start + heading.span]) + 2 * (heading.span - 1)
        pad = inside - cell_width(heading.text)
        # A heading over one column of numbers ends where they end.
        left = pad if heading.span == 1 and start >= n_text else 0
        out.append(" " * left + heading.text + " " * (pad - left))
        start += heading.span
    return "  ".join(out)


def _line(row: Sequence[str], widths: Sequence[int], n_text: int) -> str:
    cells = []
    for i, (cell, width) in enumerate(zip(row, widths, strict=True)):
        pad = " " * (width - cell_width(cell))
        cells.append(cell + pad if i < n_text else pad + cell)
    return "  ".join(cells)


def cell_width(text: str) -> int:
    """Columns a text takes in a terminal: wide characters two, combining marks none."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )
