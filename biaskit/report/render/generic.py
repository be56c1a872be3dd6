"""Print stored tables as their spec says: `printed` in tables.toml.

Columns stand between bars, those of words before the double one: `HEAD = TEMPLATE`, or a column's name. In a
template `{NAME:FORMAT}` is a value as `FORMATS` writes it, `{NAME:FORMAT[ENDS]}` has its interval beside it,
from ENDS_low to ENDS_high, and `{:FORMAT[ENDS]}` is that alone. A column is left out where rows lack what it
names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from biaskit.common.wording import percent, percent_range, point_number, points_range
from biaskit.report.render import cells
from biaskit.report.render.cells import UNDEFINED
from biaskit.report.render.document import TitledTable, listed_table
from biaskit.tables.query import Row, Tables
from biaskit.tables.schema import SCHEMAS

Form = tuple[Callable[[Any], str], Callable[[Any, Any], str]]
FORMATS: Mapping[str, Form] = {
    "": (str, "{} to {}".format),
    "%": (percent, percent_range),
    "%1": (cells.percent, cells.span),
    "share": (lambda value: f"{percent(value)} %", percent_range),
    "points": (point_number, points_range),
    ".0": ("{:.0f}".format, "{:.0f} to {:.0f}".format),
    ".1": ("{:.1f}".format, "{:.1f} to {:.1f}".format),
    ".2": ("{:.2f}".format, "{:.2f} to {:.2f}".format),
    ".3": ("{:.3f}".format, "{:.3f} to {:.3f}".format),
    "+1": ("{:+.1f}".format, "{:+.1f} to {:+.1f}".format),
    "+2": ("{:+.2f}".format, "{:+.2f} to {:+.2f}".format),
    "+3": ("{:+.3f}".format, "{:+.3f} to {:+.3f}".format),
    "p": (cells.p_value, "{} to {}".format),
    "list": (", ".join, "{} to {}".format),
}
"""How a value is written, and its interval: `share` with the sign %, `points` of a difference of shares."""
_FIELD = re.compile(r"\{(\w*):?([^}\[]*)(?:\[(\w+)\])?\}")


def printed_table(
    title: str, printed: str, rows: Sequence[Row], *, note: str = "", known: bool = False
) -> Iterator[TitledTable]:
    """Make a table of rows; none without rows. `known`: without columns that have no number."""
    if not rows:
        return
    heads: list[str] = []
    columns: list[list[str]] = []
    lists: list[int] = []
    n_text = 0
    words, _, numbers = printed.partition("||")
    for part in (words, numbers):
        for stated in re.split(r"\s\|\s", part.strip()):
            head, _, template = map(str.strip, stated.partition(" = "))
            template = template or f"{{{head}}}"
            if _names(template) <= rows[0].keys():
                column = [_cell(template, row) for row in rows]
                if not known or {*column} != {UNDEFINED}:
                    lists += [len(heads)] * (":list}" in template)
                    heads.append(head)
                    columns.append(column)
        n_text = n_text or len(heads)
    yield listed_table(title, heads, zip(*columns, strict=True), n_text, note=note, wide=frozenset(lists))


def tables_of(folder: str, tables: Tables, study: str = "") -> Iterator[TitledTable]:
    """Make the tables of a folder whose spec says `printed`."""
    for name, schema in SCHEMAS.items():
        if schema.owner == folder and schema.printed:
            title = f"{study}: {schema.title}" if study else schema.title
            yield from printed_table(title, schema.printed, tables.get(name, ()))


def _names(template: str) -> set[str]:
    """Name the columns of the stored table that a cell is made of."""
    names: set[str] = set()
    for name, _, ends in _FIELD.findall(template):
        if name:
            names.add(name)
        if ends:
            names.update((f"{ends}_low", f"{ends}_high"))
    return names


def _cell(template: str, row: Row) -> str:
    return _FIELD.sub(lambda found: _written(row, *found.groups("")), template)


def _written(row: Row, name: str, how: str, ends: str) -> str:
    """Write a value, its interval, or both; undefined: –."""
    write, write_interval = FORMATS[how]
    interval = ""
    if ends and row[f"{ends}_low"] is not None and row[f"{ends}_high"] is not None:
        interval = write_interval(row[f"{ends}_low"], row[f"{ends}_high"])
    if not name:
        return interval or UNDEFINED
    if row[name] is None:
        return UNDEFINED
    return f"{write(row[name])} [{interval}]" if interval else write(row[name])
