"""How rows of the public tables are picked: by their values, in their order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]
"""Public tables by name, rows as `tables.io` gives them: an undefined number is None."""


def where(rows: Iterable[Row], **values: object) -> list[Row]:
    """Rows with these values."""
    kept = list(rows)
    for name, value in values.items():  # column by column: a tenth of the time of row by row
        kept = [row for row in kept if row.get(name) == value]
    return kept


def first(rows: Iterable[Row], **values: object) -> Row | None:
    """The first row with these values."""
    return next(iter(where(rows, **values)), None)


def defined(rows: Iterable[Row], *names: str) -> list[Row]:
    """Rows that have a number in each of these columns."""
    return [row for row in rows if all(row[name] is not None for name in names)]


def undefined(rows: Iterable[Row], *names: str) -> list[Row]:
    """Rows that lack the number of one of these columns at least."""
    return [row for row in rows if any(row[name] is None for name in names)]


def distinct(rows: Iterable[Row], name: str) -> list[Any]:
    """Values of a column in order of appearance."""
    return list(dict.fromkeys(row[name] for row in rows))


def grouped(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows by their values in these columns, in order of appearance."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    listed = list(rows)
    columns = [[row[name] for row in listed] for name in names]  # column by column, as in `where`
    for key, row in zip(zip(*columns, strict=True), listed, strict=True):
        groups.setdefault(key, []).append(row)
    return groups


def extremes(rows: Sequence[Row], name: str) -> tuple[Row, Row]:
    """The rows with the least and with the greatest number of a column that all of them have."""
    return min(rows, key=lambda row: row[name]), max(rows, key=lambda row: row[name])


def without_instruction(rows: Iterable[Row]) -> list[Row]:
    """Rows of instruction 0, and of tables that know no instruction."""
    return [row for row in rows if row.get("instruction_id") in (None, 0)]


def mean_over_prompts(rows: Iterable[Row]) -> list[Row]:
    """Rows of representation.csv that are the mean over prompts, without an instruction."""
    return without_instruction(where(rows, template_id="all"))


def in_main_setting(rows: Sequence[Row]) -> list[Row]:
    """Rows in the plain setting; where there is none, in the first one."""
    settings = distinct(rows, "setting")
    return where(rows, setting="plain" if "plain" in settings else next(iter(settings), ""))


def contrast_of(row: Row) -> str:
    """The contrast of a row of tests.csv."""
    return str(row["family"]).rsplit("/", 1)[-1]
