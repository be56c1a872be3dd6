"""How rows of the public tables are picked: by their values, in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]
"""Public tables by name, rows as `tables.io` gives them: an undefined number is None."""


def where(rows: Sequence[Row], **values: object) -> list[Row]:
    """Rows with these values."""
    return [row for row in rows if all(row.get(name) == value for name, value in values.items())]


def first(rows: Sequence[Row], **values: object) -> Row | None:
    """The first row with these values."""
    return next(iter(where(rows, **values)), None)


def distinct(rows: Sequence[Row], name: str) -> list[Any]:
    """Values of a column in order of appearance."""
    return list(dict.fromkeys(row[name] for row in rows))


def contrast_of(row: Row) -> str:
    """The contrast of a row of tests.csv."""
    return str(row["family"]).rsplit("/", 1)[-1]
