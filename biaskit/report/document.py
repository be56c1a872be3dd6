"""The neutral document that engines fill and renderers print: titled tables, notes, a signature."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Heading:
    """One cell of a header line, over `span` columns."""

    text: str
    span: int = 1


@dataclass(frozen=True, slots=True)
class TitledTable:
    """Header lines from the widest heading to the narrowest, then rows of finished text.

    The first `n_text` columns are words and begin at the left; the others are numbers and end at the right.
    """

    title: str
    header: tuple[tuple[Heading, ...], ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    n_text: int = 1


@dataclass(frozen=True, slots=True)
class Document:
    """What a command has to say, before anyone decides how it looks."""

    tables: tuple[TitledTable, ...]
    notes: tuple[str, ...] = ()
    signature: str = ""
