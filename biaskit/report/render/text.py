"""Render a document as aligned plain text that fits the terminal.

Words fold at spaces; a number, a path or a long name is never broken. A list beside numbers stands under its
row. A table that is too wide folds its columns of words, then is split into panels one under another, each
with the columns of words before it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from biaskit.common.foreign import visible
from biaskit.report.render.document import Document, Heading, TitledTable, placed

WIDTH = 80  # columns assumed where the terminal's width is not known
READABLE = 100  # sentences are broken here on wider terminals
GAP = 2
NARROWEST = 8  # columns that words get at least; a longer word has a line of its own
LONGEST_LEAD = 32  # a longer word does not widen its column, but has a line of its own

_SPACES = re.compile(" +(?!%)")  # "95 %" stays together


def render_text(document: Document, width: int = WIDTH) -> str:
    """Render tables, notes and signature in lines of at most `width`; a longer word has a line of its own."""
    parts = []
    for table in document.tables:
        lines = fold(table.title, width)
        for number, panel in enumerate(_panels(_Grid.from_table(table), width) if table.header else ()):
            if number:
                lines.append("")
            lines += _panel(panel, width)
        if table.note:
            lines += fold(table.note, min(width, READABLE))
        parts.append("\n".join(map(str.rstrip, lines)))
    if document.notes:
        parts.append(render_notes(document.notes, width))
    if document.signature:
        parts.append("\n".join(fold(document.signature, min(width, READABLE))))
    return "\n\n".join(parts) + "\n"


def render_notes(notes: Sequence[str], width: int = WIDTH) -> str:
    """Render each note on lines of its own, without a line feed at the end."""
    lines: list[str] = []
    for note in notes:
        lines += fold(f"Note: {note.rstrip('.')}.", min(width, READABLE))
    return "\n".join(lines)


def fold(text: str, width: int, *, first: str = "", then: str = "") -> list[str]:
    """Fold foreign text to lines of at most `width` columns, `first` before the first, `then` before others.

    A line feed is a place to break. A word that is longer than a line stays whole on a line of its own.
    """
    lines, line, lead = [], first, first
    for word in _words(text):
        longer = f"{line}{'' if line == lead else ' '}{word}"
        if line != lead and cell_width(longer) > width:
            lines.append(line)
            lead = then
            longer = lead + word
        line = longer
    return [*lines, line]


def _words(text: str) -> list[str]:
    """Split text into what stays on one line: words, and numbers with their unit."""
    return [word for line in text.split("\n") for word in _SPACES.split(visible(line)) if word]


def cell_width(text: str) -> int:
    """Count the terminal columns of a text: wide characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    width = 0
    for letter in text:
        if not unicodedata.combining(letter):
            width += 1 + (unicodedata.east_asian_width(letter) in "WF")
    return width


@dataclass(frozen=True, slots=True)
class _Column:
    """A column with its own heading; the headings over several columns are kept apart."""

    heading: str
    cells: tuple[str, ...]
    words: bool

    @property
    def least(self) -> int:
        """The least width: numbers stay whole, words fold down to their longest word."""
        whole = map(_words, self.cells) if self.words else [self.cells]
        longest = max(map(cell_width, chain(_words(self.heading), *whole)), default=0)
        return min(longest, LONGEST_LEAD) if self.words else longest

    @property
    def most(self) -> int:
        """The width where nothing has to fold."""
        return max(map(cell_width, (self.heading, *self.cells)))


@dataclass(frozen=True, slots=True)
class _Grid:
    """A table as columns with every text on one line; `spans` are the header lines over them."""

    columns: tuple[_Column, ...]
    spans: tuple[tuple[Heading, ...], ...]
    n_text: int
    lists: tuple[_Column, ...] = ()  # each under its row, in the first panel

    @classmethod
    def from_table(cls, table: TitledTable) -> _Grid:
        """Split a table into columns; a last header line that spans columns counts among `spans`."""
        spans = []
        for line in table.header:
            spans.append(tuple(Heading(visible(heading.text), heading.span) for heading in line))
        n = table.n_columns
        headings = [""] * n
        if len(spans[-1]) == n:
            headings = [heading.text for heading in spans.pop()]
        columns = []
        for i, heading in enumerate(headings):
            cells = tuple(visible(row[i]) for row in table.rows)
            columns.append(_Column(heading, cells, i < table.n_text))
        if table.n_text == n or spans:
            return cls(tuple(columns), tuple(spans), table.n_text)
        lists = [*map(columns.pop, sorted(table.wide, reverse=True))]
        return cls(tuple(columns), (), table.n_text - len(lists), tuple(lists))

    def part(self, numbers: Sequence[int]) -> _Grid:
        """Keep the columns of words and the chosen numbers, with the headings over them."""
        chosen = [*range(self.n_text), *numbers]
        spans = []
        for line in self.spans:
            kept = []
            for heading, columns in placed(line):
                n = len({*columns}.intersection(chosen))
                if n:
                    kept.append(Heading(heading.text, n))
            spans.append(tuple(kept))
        lists = self.lists if self.n_text in numbers else ()
        return _Grid(tuple(self.columns[i] for i in chosen), tuple(spans), self.n_text, lists)

    def blocks(self) -> list[list[int]]:
        """Group the columns of numbers under one heading; without such headings each is alone."""
        blocks = []
        for _, columns in placed(self.spans[0] if self.spans else [Heading("")] * len(self.columns)):
            block = [i for i in columns if i >= self.n_text]
            if block:
                blocks.append(block)
        return blocks


def _panels(grid: _Grid, width: int) -> list[_Grid]:
    """Keep the whole table where it fits, else split it into panels of as many headings as fit."""
    lead = sum(least + GAP for least in _least(grid)[: grid.n_text])
    room = width + GAP - min(lead, width // 2)

    def fits(block: list[int]) -> bool:
        return sum(least + GAP for least in _least(grid.part(block))[grid.n_text :]) <= room

    blocks = grid.blocks()
    if fits([*chain(*blocks)]):
        return [grid]
    panels: list[list[int]] = []
    for block in blocks:
        for some in [block] if fits(block) else [[i] for i in block]:
            if panels and fits(panels[-1] + some):
                panels[-1] += some
            else:
                panels.append(list(some))
    return list(map(grid.part, panels))


def _widths(grid: _Grid, width: int) -> list[int]:
    """Choose the widths of columns: natural where they fit, else columns of words are folded."""
    natural = _under_spans(grid, [column.most for column in grid.columns])
    if sum(natural) + GAP * (len(natural) - 1) <= width:
        return natural
    widths = _least(grid)
    words = range(grid.n_text)
    texts = [sum(map(cell_width, column.cells)) for column in grid.columns]
    room = width - sum(widths[grid.n_text :]) - GAP * (len(widths) - 1)
    room = max(room, sum(min(widths[i], NARROWEST) for i in words))
    while sum(widths[i] for i in words) > room:
        widths[max(words, key=lambda i: widths[i])] -= 1
    while folded := [i for i in words if widths[i] < natural[i]]:
        if sum(widths[i] for i in words) >= room:
            break
        widths[max(folded, key=lambda i: texts[i] / max(widths[i], 1) ** 2)] += 1  # where it saves most lines
    return widths


def _least(grid: _Grid) -> list[int]:
    return _under_spans(grid, [column.least for column in grid.columns])


def _under_spans(grid: _Grid, widths: list[int]) -> list[int]:
    """Widen the last column under a heading where its longest word does not fit."""
    for line in reversed(grid.spans):
        for heading, columns in placed(line):
            longest = max((cell_width(word) for word in heading.text.split()), default=0)
            widths[columns[-1]] += max(min(longest, LONGEST_LEAD) - _inside(widths, columns), 0)
    return widths


def _inside(widths: Sequence[int], columns: range) -> int:
    return sum(widths[i] for i in columns) + GAP * (len(columns) - 1)


def _panel(grid: _Grid, width: int) -> list[str]:
    widths = _widths(grid, width)
    lines: list[str] = []
    for line in grid.spans:
        inside = [_inside(widths, columns) for _, columns in placed(line)]
        lines += _row([heading.text for heading in line], inside, len(line), width, bottom=True)
    lines += _row([column.heading for column in grid.columns], widths, grid.n_text, width, bottom=True)
    for column in grid.lists:
        lines += fold(column.heading, width, first="  ", then="  ")
    lines.append("-" * (sum(widths) + GAP * (len(widths) - 1)))
    for i, cells in enumerate(zip(*(column.cells for column in grid.columns), strict=True)):
        lines += _row(cells, widths, grid.n_text, width)
        for column in grid.lists:
            lines += fold(column.cells[i], width, first="  ", then="  ")
    return lines


def _row(
    cells: Sequence[str], widths: Sequence[int], n_text: int, width: int, *, bottom: bool = False
) -> list[str]:
    """Lay out a row: words folded, numbers on its first line (`bottom`, for headings: on its last)."""
    folded = []
    for i, (cell, room) in enumerate(zip(cells, widths, strict=True)):
        indent = " " * (len(cell) - len(cell.lstrip(" ")))
        folded.append(fold(cell, room, first=indent, then=indent) if bottom or i < n_text else [cell])
    if bottom:
        n = max(map(len, folded))
        folded = [[""] * (n - len(texts)) + texts for texts in folded]
    lines: list[str] = []
    for cells in zip_longest(*folded, fillvalue=""):
        lines += _line(cells, widths, n_text, width)
    return lines


def _line(cells: Sequence[str], widths: Sequence[int], n_text: int, width: int) -> list[str]:
    """Lay out one line, or several: a word longer than its column ends its line, or has its own."""
    lines, line, start = [], "", 0
    for i, (cell, room) in enumerate(zip(cells, widths, strict=True)):
        needed = cell_width(cell)
        indent = room - needed if i >= n_text else 0
        if needed > room and start + needed > width:
            if line.strip():
                lines.append(line)
            line, indent = "", max(width - needed, 0)
        line += " " * max(indent, 0) + cell
        start += room + GAP
        if needed > room and any(cells[i + 1 :]):
            lines.append(line)
            line = ""
        line += " " * (start - cell_width(line))
    return [*lines, line]
