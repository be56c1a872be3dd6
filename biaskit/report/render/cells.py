"""Make tables of stored rows, and write numbers for their cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from biaskit.report.render.document import Heading, TitledTable
from biaskit.tables.query import Row

LABEL = 40
"""Letters of a model's label in a table that stands models side by side."""
UNDEFINED = "–"
Columns = Mapping[str, str | Callable[[Any], object]]
"""Heading → the column of the stored table under it, or a function that makes the cell of a row."""


def table(
    title: str, rows: Sequence[Any], columns: Columns, *, n_text: int = 1, note: str = ""
) -> Iterator[TitledTable]:
    """Make a table of rows; none without rows."""
    cells = [c if callable(c) else lambda row, name=c: row[name] for c in columns.values()]
    body = tuple(tuple(str(cell(row)) for cell in cells) for row in rows)
    if body:
        yield TitledTable(title, (tuple(map(Heading, columns)),), body, note, n_text)


def in_list(row: Row) -> str:
    """Write a marked word, in brackets if it is a name or gender word."""
    return f"({row['word']})" if row["is_name"] or row["is_gender_word"] else str(row["word"])


def beyond(row: Row) -> str:
    """Write how many words mark beyond gender words, and the 95th percentile of shuffled labels."""
    return f"{number(row['n_marked_beyond'], 0)} ({number(row['null_p95_beyond'], 0)})"


def percent(value: float | None) -> str:
    """Write a fraction as a percentage with one digit; undefined: –."""
    return "–" if value is None else f"{100 * value:.1f}"


def number(value: float | None, digits: int) -> str:
    """Write a number with so many digits; undefined: –."""
    return "–" if value is None else f"{value:.{digits}f}"


def p_value(value: float | None) -> str:
    """Write a p-value with four digits, or <0.0001; undefined: –."""
    return "–" if value is None else f"{value:.4f}" if value >= 0.0001 else "<0.0001"


def signed(value: float | None, digits: int = 3) -> str:
    """Write a difference, always with its sign; undefined: –."""
    return "–" if value is None else f"{value:+.{digits}f}"


def span(low: float | None, high: float | None, *, signed: bool = False) -> str:
    """Write an interval: a fraction's in percent, a difference's (`signed`) unscaled; undefined: –."""
    if low is None or high is None:
        return "–"
    return f"{low:+.3f} to {high:+.3f}" if signed else f"{100 * low:.1f}–{100 * high:.1f}"
