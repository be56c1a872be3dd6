"""A document as aligned plain text."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Sequence

from biaskit.report.document import Document, Heading, TitledTable

LINE = 100
"""Where sentences are broken; tables are as wide as their columns."""


def render_text(document: Document) -> str:
    """Tables, then notes, then the signature; lines end without spaces."""
    parts = [_table(table) for table in document.tables]
    if document.notes:
        parts.append("\n".join(_wrapped(f"Note: {note.rstrip('.')}.") for note in document.notes))
    if document.signature:
        parts.append(_wrapped(document.signature))
    return "\n\n".join(parts) + "\n"


def _table(table: TitledTable) -> str:
    widths = _widths(table)
    lines = [table.title]
    lines += [_header_line(line, widths, table.n_text) for line in table.header]
    lines.append("-" * (sum(widths) + 2 * (len(widths) - 1)))
    lines += [_line(row, widths, table.n_text) for row in table.rows]
    if table.note:
        lines.append(_wrapped(table.note))
    return "\n".join(line.rstrip() for line in lines)


def _wrapped(text: str) -> str:
    return textwrap.fill(text, LINE, break_long_words=False, break_on_hyphens=False)


def _widths(table: TitledTable) -> list[int]:
    """Wide enough for every cell, and for every heading over its columns."""
    n = max((len(row) for row in table.rows), default=sum(h.span for h in table.header[-1]))
    widths = [max((cell_width(row[i]) for row in table.rows), default=0) for i in range(n)]
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
