"""From a list's file to its entries, in any of the formats that a list of its kind may have."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from biaskit.common.inputs import expanded, one_line, opened
from biaskit.common.sheets import XLSX, is_sheet, open_sheet, split_sheet
from biaskit.common.wording import count
from biaskit.corpora.sources import (
    LISTS,
    SHIPPED,
    E,
    ListEntry,
    entry_of,
    read_source,
    shown,
    unlimited_fields,
)
from biaskit.errors import CorpusError, nearest

Rows = Iterator[tuple[str, dict[str, Any]]]
"""Places in a file, as messages name them, and the values there."""


@dataclass(frozen=True, slots=True)
class SourceLayout(Generic[E]):
    """What a file of one kind holds: the columns of a .csv are the keys of its TOML tables."""

    kind: str
    table: str
    entry: type[E]
    top: tuple[str, ...] = ()  # keys beside the tables, TOML only
    from_line: Callable[[str], dict[str, object]] | None = None  # None: no .txt
    csv: bool = False  # read from .csv even without from_line

    @property
    def required(self) -> tuple[str, ...]:
        """Keys that every entry has."""
        return tuple(name for name, field in self.entry.model_fields.items() if field.is_required())


@dataclass(frozen=True, slots=True)
class SourceTable(Generic[E]):
    """The entries of a file, each with its place, read once; `top`: the keys beside them (TOML only)."""

    where: str
    top: dict[str, Any]
    entries: Iterator[tuple[str, E]]


def read_list(source: str | Path, layout: SourceLayout[E]) -> SourceTable[E]:
    """Read a list in any of the formats that its layout allows; an empty one is a `CorpusError`."""
    formats = (".csv", ".txt", ".toml") if layout.from_line else (".csv", ".toml")[not layout.csv :]
    top: dict[str, Any] = {}
    if ".csv" in formats and is_sheet(str(source)) and not str(source).startswith(SHIPPED):
        where, rows = _sheet_rows(str(source), layout)
    else:
        formats += (XLSX,) if ".csv" in formats else ()
        where, suffix, text = read_source(source, layout.kind, formats)
        if suffix == ".toml":
            top = LISTS.parsed_toml(text, where)
            rows = _toml_rows(top, where, layout)
            top.pop(layout.table, None)
        elif suffix == ".txt" and layout.from_line:
            # Not splitlines(): U+2028 and its like are characters of a text, not ends of a line.
            lines = enumerate((line.removesuffix("\r") for line in text.split("\n")), start=1)
            rows = ((f"{where}, line {n}", layout.from_line(line)) for n, line in lines if line.strip())
        else:
            rows = _csv_rows(text, where, layout)
    return SourceTable(where, top, _entries(rows, where, layout))


def _entries(rows: Rows, where: str, layout: SourceLayout[E]) -> Iterator[tuple[str, E]]:
    place = None
    for place, values in rows:
        yield place, entry_of(layout.entry, values, place)
    if place is None:
        raise CorpusError(f"{where} has no {layout.kind}. Write at least one {layout.table}.")


def _toml_rows(top: dict[str, Any], where: str, layout: SourceLayout[E]) -> Rows:
    known = (*layout.top, layout.table)
    for key in top:
        if key not in known:
            raise CorpusError(
                f"{where}: unknown key {shown(key)}.{nearest(key, known)} Known: {', '.join(known)}."
            )
    entries = top.get(layout.table, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise CorpusError(f"{where}: write each {layout.table} as a table under [[{layout.table}]].")
    return ((f"{where}, {layout.table} {n}", dict(entry)) for n, entry in enumerate(entries, start=1))


def _csv_rows(text: str, where: str, layout: SourceLayout[E]) -> Rows:
    with unlimited_fields():
        delimiter = _delimiter(text, layout)
        reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
        line = 1  # where the record to come begins
        try:
            header = next(reader, [])
            _check_header(header, where, layout)
            line = reader.line_num + 1
            for values in reader:
                if values and len(values) != len(header):
                    raise CorpusError(
                        f"{where}, line {line}: {count(len(values), 'field')}, but {len(header)} in the"
                        f" header. Put a text with {_CALLED[delimiter]} in double quotes."
                    )
                if values:
                    yield f"{where}, line {line}", _filled(layout.entry, zip(header, values, strict=True))
                line = reader.line_num + 1
        except csv.Error as error:
            raise CorpusError(f"{where}, line {line} is not valid CSV: {error}. Check its quotes.") from None


def _filled(entry: type[ListEntry], cells: Iterable[tuple[str, object]]) -> dict[str, Any]:
    """Keep the known columns of a row; an empty cell is left out."""
    return {name: value for name, value in cells if name in entry.model_fields and value != ""}


def _sheet_rows(source: str, layout: SourceLayout[E]) -> tuple[str, Rows]:
    """Read a sheet of a workbook: how messages name the file, and the rows."""
    name, wanted = split_sheet(source)
    path, where = expanded(name), one_line(name)
    with LISTS.saying(where), opened(path):  # a regular file, else a line that says so
        sheet = open_sheet(path, where, wanted)
    if wanted is None and sheet.others:
        sheets = ", ".join(map(shown, (sheet.name, *sheet.others[:8])))
        raise CorpusError(f"{where} has several sheets: {sheets}. Name one, as in {where}#{sheet.name}.")
    _check_header(list(sheet.header), where, layout)
    columns = {column: place for place, column in enumerate(sheet.header) if column}
    rows = sheet.rows(columns)
    return where, ((f"{where}, row {n}", _filled(layout.entry, values.items())) for n, values in rows)


_CALLED = {",": "a comma", ";": "a semicolon", "\t": "a tab"}  # what may part the columns of a list


def _delimiter(text: str, layout: SourceLayout[E]) -> str:
    """Choose commas, unless with them the header lacks a column and with one of the others it has all."""
    first = text.partition("\n")[0]
    fits = []
    for delimiter in _CALLED:
        with contextlib.suppress(csv.Error):  # reported with its line when the rows are read
            if set(layout.required) <= set(next(csv.reader([first], delimiter=delimiter), [])):
                fits.append(delimiter)
    return fits[0] if len(fits) == 1 else ","


def _check_header(header: list[str], where: str, layout: SourceLayout[E]) -> None:
    for column in layout.required:
        if column not in header:
            fields = ", ".join(map(shown, header[:12])) or "empty"
            raise CorpusError(
                f"{where} has no column {column!r}; its first line is {fields}.{nearest(column, header)}"
                f" Write the header {','.join(layout.required)}, with other columns as you need them."
            )
    for column in layout.entry.model_fields:
        if header.count(column) > 1:
            raise CorpusError(f"{where} has the column {column!r} twice. Remove or rename one.")
