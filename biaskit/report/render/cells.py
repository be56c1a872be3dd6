"""A table of stored rows, and numbers as its cells show them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from biaskit.report.render.document import Heading, TitledTable
from biaskit.tables.query import Row

Columns = Mapping[str, str | Callable[[Any], object]]
"""Heading → the column of the stored table that stands under it, or how a row's cell is made."""


def table(
    title: str, rows: Sequence[Any], columns: Columns, *, n_text: int = 1, note: str = ""
) -> Iterator[TitledTable]:
    """A table of some rows; without rows there is none."""
    cells = [c if callable(c) else lambda row, name=c: row[name] for c in columns.values()]
    body = tuple(tuple(str(cell(row)) for cell in cells) for row in rows)
    if body:
        yield TitledTable(title, (tuple(map(Heading, columns)),), body, note, n_text)


def in_list(row: Row) -> str:
    """A marked word; in brackets what marks whatever the texts describe."""
    return f"({row['word']})" if row["is_name"] or row["is_gender_word"] else str(row["word"])


def beyond(row: Row) -> str:
    """How many words of a list mark beyond gender words, and the 95th percentile of shuffled labels."""
    return f"{number(row['n_marked_beyond'], 0)} ({number(row['null_p95_beyond'], 0)})"


def _shown(value: float | None, form: Callable[[float], str]) -> str:
    return "–" if value is None else form(value)


def percent(value: float | None) -> str:
    """A fraction as a percentage with one digit; undefined: –."""
    return _shown(value, lambda v: f"{100 * v:.1f}")


def number(value: float | None, digits: int) -> str:
    """A number with so many digits; undefined: –."""
    return _shown(value, lambda v: f"{v:.{digits}f}")


def p_value(value: float | None) -> str:
    """Four digits, nothing smaller than that; undefined: –."""
    return _shown(value, lambda v: f"{v:.4f}" if v >= 0.0001 else "<0.0001")


def signed(value: float | None, digits: int = 3) -> str:
    """A difference, whose sign is always shown; undefined: –."""
    return _shown(value, lambda v: f"{v:+.{digits}f}")


def span(low: float | None, high: float | None, *, signed: bool = False) -> str:
    """An interval: of a fraction in percent, of a difference (`signed`) as it is; undefined: –."""
    if low is None or high is None:
        return "–"
    return f"{low:+.3f} to {high:+.3f}" if signed else f"{100 * low:.1f}–{100 * high:.1f}"
