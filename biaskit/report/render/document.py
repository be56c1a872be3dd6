"""The document that measurements fill and renderers print: titled tables, notes, a signature."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Heading:
    """One cell of a header line, over `span` columns."""

    text: str
    span: int = 1


def placed(line: Iterable[Heading]) -> Iterator[tuple[Heading, range]]:
    """Yield each heading of a line with its columns."""
    start = 0
    for heading in line:
        yield heading, range(start, start + heading.span)
        start += heading.span


@dataclass(frozen=True, slots=True)
class TitledTable:
    """Header lines from the widest heading to the narrowest, then rows of finished text.

    The first `n_text` columns are words and begin at the left; the others are numbers and end at the right.
    Columns of `wide` (counted from 0, among the first `n_text`) hold lists, which a renderer may break.
    """

    title: str
    header: tuple[tuple[Heading, ...], ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    n_text: int = 1
    wide: frozenset[int] = frozenset()

    @property
    def n_columns(self) -> int:
        """Columns of every row, as the last header line spans them."""
        return sum(heading.span for heading in self.header[-1])

    def columns(self) -> tuple[str, ...]:
        """Name every column by its headings, from the widest to the narrowest."""
        names: list[list[str]] = [[] for _ in range(self.n_columns)]
        for line in self.header:
            for heading, columns in placed(line):
                for column in columns if heading.text else ():
                    names[column].append(heading.text)
        return tuple(", ".join(parts) for parts in names)


def listed_table(
    title: str,
    heads: Iterable[str],
    rows: Iterable[tuple[str, ...]],
    n_text: int = 1,
    *,
    note: str = "",
    wide: frozenset[int] = frozenset(),
) -> TitledTable:
    """Make a table of one header line."""
    return TitledTable(title, (tuple(map(Heading, heads)),), tuple(rows), note, n_text, wide)


@dataclass(frozen=True, slots=True)
class Document:
    """The output of a command, before it is laid out."""

    tables: tuple[TitledTable, ...]
    notes: tuple[str, ...] = ()
    signature: str = ""


@dataclass(frozen=True, slots=True)
class PaperTable:
    """A table in the layout of a paper; `name` is its file name without suffix: gasp-table-13."""

    name: str
    table: TitledTable
