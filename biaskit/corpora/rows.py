"""From a list's file to its entries, in any of the formats that a list of its kind may have."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Generic

from biaskit.common.inputs import expanded, one_line, opened, parse_json
from biaskit.common.sheets import XLSX, is_sheet, open_sheets, split_sheet
from biaskit.common.wording import count, short
from biaskit.corpora.sources import LISTS, SHIPPED, E, entry_of, read_source, shown, unlimited_fields
from biaskit.errors import CorpusError, UsageError, nearest

Source = str | Path | Sequence[Mapping[str, object]]
"""A file, or rows that a program holds."""
Entries = Iterator[tuple[str, E]]
"""Places in a list, as messages name them, and the entries there."""


@dataclass(frozen=True, slots=True)
class SourceLayout(Generic[E]):
    """What a file of one kind holds: the columns of a .csv are the keys of its TOML tables."""

    kind: str
    table: str
    entry: type[E]
    top: tuple[str, ...] = ()  # keys beside the tables, TOML only
    from_line: Callable[[str], dict[str, object]] | None = None  # None: no .txt
    csv: bool = False  # read from .csv even without from_line
    jsonl: bool = False
    columns: tuple[str, ...] = ()  # that are there, though a cell may be empty

    @property
    def required(self) -> tuple[str, ...]:
        """Keys that every entry has."""
        needed = tuple(name for name, field in self.entry.model_fields.items() if field.is_required())
        return needed + self.columns


@dataclass(frozen=True, slots=True)
class SourceTable(Generic[E]):
    """The entries of a file, each with its place, read once; `top`: the keys beside them (TOML only)."""

    where: str
    top: dict[str, Any]
    entries: Entries[E]


def given_list(listed: Any, name: str) -> str | list[dict[str, object]]:
    """Take a file's path, or rows: of a DataFrame, or dicts. Raises `UsageError` for anything else."""
    if isinstance(listed, str | Path):
        return str(listed)
    import pandas as pd

    rows = listed.to_dict("records") if isinstance(listed, pd.DataFrame) else listed
    if not isinstance(rows, Sequence) or not all(isinstance(row, Mapping) for row in rows):
        raise UsageError(f"{name} is {short(repr(listed), 60)}: give a file, a DataFrame or a list of dicts.")
    return list(map(dict, rows))


def read_list(source: Source, layout: SourceLayout[E], *others: SourceLayout[E]) -> SourceTable[E]:
    """Read a list, in memory or in a format of its layout; an empty one is a `CorpusError`.

    `others`: how the columns of such a list may be named too; the first layout counts that finds its own.
    """
    layouts = (layout, *others)
    if not isinstance(source, str | Path):
        places = ((f"{layout.kind}, row {n}", row) for n, row in enumerate(source, start=1))
        return SourceTable(layout.kind, {}, _some(_mapped(places, layouts), layout.kind, layout))
    name = str(source)
    formats: tuple[str, ...] = (".toml",)
    if layout.from_line:
        formats = (".csv", ".txt", ".toml")
    elif layout.csv:
        formats = (".csv", ".toml")
    if ".csv" in formats and is_sheet(name) and not name.startswith(SHIPPED):
        where = one_line(split_sheet(name)[0])
        return SourceTable(where, {}, _some(_sheet_rows(name, where, layouts), where, layout))
    if ".csv" in formats:
        formats = (*formats, XLSX)
    if layout.jsonl:
        formats = (*formats, ".jsonl")
    where, suffix, text = read_source(source, layout.kind, formats)
    top: dict[str, Any] = {}
    if suffix == ".toml":
        top = LISTS.parsed_toml(text, where)
        rows = _toml_rows(top, where, layout)
        top.pop(layout.table, None)
    elif suffix == ".txt" and layout.from_line:
        written = ((place, layout.from_line(line)) for place, line in _lines(text, where))
        rows = _checked(written, layout.entry)
    elif suffix == ".jsonl":
        rows = _mapped(((place, json_object(line, place)) for place, line in _lines(text, where)), layouts)
    else:
        rows = _csv_rows(text, where, layouts)
    return SourceTable(where, top, _some(rows, where, layout))


def _lines(text: str, where: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of a text that are not blank, each with its place."""
    # Not splitlines(): U+2028 and its like are characters of a text, not ends of a line.
    for n, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield f"{where}, line {n}", line.removesuffix("\r")


def _checked(rows: Iterable[tuple[str, Mapping[str, object]]], kind: type[E]) -> Entries[E]:
    for place, values in rows:
        yield place, entry_of(kind, values, place)


def _some(rows: Entries[E], where: str, layout: SourceLayout[E]) -> Entries[E]:
    place = None
    for place, entry in rows:
        yield place, entry
    if place is None:
        raise CorpusError(f"{where} has no {layout.kind}. Write at least one {layout.table}.")


def _toml_rows(top: dict[str, Any], where: str, layout: SourceLayout[E]) -> Entries[E]:
    known = (*layout.top, layout.table)
    for key in top:
        if key not in known:
            raise CorpusError(
                f"{where}: unknown key {shown(key)}.{nearest(key, known)} Known: {', '.join(known)}."
            )
    entries = top.get(layout.table, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise CorpusError(f"{where}: write each {layout.table} as a table under [[{layout.table}]].")
    places = ((f"{where}, {layout.table} {n}", values) for n, values in enumerate(entries, start=1))
    return _checked(places, layout.entry)


def json_object(line: str, place: str) -> Mapping[str, object]:
    """Read a line of JSON Lines."""
    try:
        values = parse_json(line, parse_constant=float)  # NaN: an empty cell
    except ValueError as error:
        reason = str(error).partition(": line ")[0]  # without the position in the line
        raise CorpusError(f"{place} is not valid JSON: {reason}. Write one object on a line.") from None
    if not isinstance(values, dict):
        raise CorpusError(f"{place} is {shown(values)}, not an object. Write one object on a line.")
    return values


def _mapped(
    rows: Iterable[tuple[str, Mapping[str, object]]], layouts: Sequence[SourceLayout[E]]
) -> Entries[E]:
    layout = None
    for place, values in rows:
        columns = list(map(str, values))
        if layout is None:
            layout = _fitting(layouts, values)
            _check_header(columns, place, layout, "it has", "Name columns")
        _check_near(columns, place, layout)
        yield place, _entry(layout, values.items(), place)


def csv_records(file: io.StringIO, where: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the header of a .csv and the records that are not empty, each with the line where it begins."""
    reader = csv.reader(file, strict=True, delimiter=delimiter)
    line, width = 1, 0
    try:
        with unlimited_fields():
            for fields in reader:
                width = width or len(fields)
                if fields and len(fields) != width:
                    raise CorpusError(
                        f"{where}, line {line}: {count(len(fields), 'field')}, but {width} in the"
                        " header. Put texts with a delimiter or a line break in double quotes."
                    )
                if fields:
                    yield line, fields
                line = reader.line_num + 1
    except csv.Error as error:
        reason = str(error).partition(" - ")[0]  # what follows is advice to programmers
        raise CorpusError(
            f"{where}, line {line} is not valid CSV: {reason}. Put texts with quotes or line breaks in double"
            " quotes, and double the quotes inside."
        ) from None


def _csv_rows(text: str, where: str, layouts: Sequence[SourceLayout[E]]) -> Entries[E]:
    required = [set(layout.required) for layout in layouts]
    delimiter = find_delimiter(text, lambda header: any(map({*header}.issuperset, required)), ",;\t")
    records = csv_records(io.StringIO(text, newline=""), where, delimiter)
    header = next(records, (1, []))[1]
    layout = _fitting(layouts, header)
    _check_header(header, where, layout)
    for line, values in records:
        place = f"{where}, line {line}"
        yield place, _entry(layout, zip(header, values, strict=True), place)


def _entry(layout: SourceLayout[E], cells: Iterable[tuple[str, object]], place: str) -> E:
    """Check the known columns of a row; an empty cell is left out."""
    known = layout.entry.model_fields
    filled = {name: value for name, value in cells if name in known and not _is_empty(value)}
    return entry_of(layout.entry, filled, place)


def _is_empty(value: object) -> bool:
    # What pandas calls missing is told by its name: pd.NA cannot be compared.
    return not value.strip() if isinstance(value, str) else str(value) in ("None", "nan", "NaT", "<NA>")


def _fitting(layouts: Sequence[SourceLayout[E]], header: Collection[str]) -> SourceLayout[E]:
    """Choose the first layout whose columns are all there, else the first of all."""
    return next((layout for layout in layouts if set(layout.required) <= set(header)), layouts[0])


def _sheet_rows(source: str, where: str, layouts: Sequence[SourceLayout[E]]) -> Entries[E]:
    name, wanted = split_sheet(source)
    path = expanded(name)
    with LISTS.saying(where), opened(path):  # a regular file, else a line that says so
        sheet, *others = open_sheets(path, where, wanted)
    if others:
        names = ", ".join(shown(one.name) for one in (sheet, *others[:8]))
        raise CorpusError(f"{where} has several sheets: {names}. Name one, as in {where}#{sheet.name}.")
    layout = _fitting(layouts, sheet.header)
    _check_header(list(sheet.header), where, layout)
    known = layout.entry.model_fields
    columns = {column: place for place, column in enumerate(sheet.header) if column in known}
    for number, values in sheet.rows(columns):
        place = f"{where}, row {number}"
        yield place, _entry(layout, values.items(), place)


def find_delimiter(text: str, fits: Callable[[Sequence[str]], bool], delimiters: Sequence[str]) -> str:
    """Choose the first of `delimiters`, unless exactly one splits the header into one that fits."""
    headers: dict[str, list[str]] = {}
    for delimiter in delimiters:
        with contextlib.suppress(csv.Error), unlimited_fields():  # reported when the file is read
            reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
            headers[delimiter] = next(filter(None, reader), [])
    found = [delimiter for delimiter, header in headers.items() if fits(header)]
    if not found:  # an error follows; it lists the columns as a person sees them
        found = [delimiter for delimiter, header in headers.items() if len(header) > 1]
    return found[0] if len(found) == 1 else delimiters[0]


def _check_header(
    header: list[str],
    where: str,
    layout: SourceLayout[E],
    has: str = "its first line is",
    write: str = "Write the header",
) -> None:
    for column in layout.required:
        if column not in header:
            fields = ", ".join(map(shown, header[:12])) or "empty"
            raise CorpusError(
                f"{where} has no column {column!r}; {has} {fields}.{nearest(column, header)}"
                f" {write} {','.join(layout.required)}, with other columns as you need them."
            )
    for column in layout.entry.model_fields:
        if header.count(column) > 1:
            raise CorpusError(f"{where} has the column {column!r} twice. Remove or rename one.")
    _check_near(header, where, layout)


def _check_near(header: list[str], where: str, layout: SourceLayout[E]) -> None:
    """Refuse a misspelled column of a list whose optional columns decide what is measured."""
    lacking = [name for name in layout.entry.model_fields if name not in header]
    for column in header if layout.jsonl else ():
        near = get_close_matches(column.strip().lower(), lacking, n=1, cutoff=0.75)
        if near and column not in layout.entry.model_fields:
            raise CorpusError(
                f"{where}: unknown column {shown(column)}. Did you mean {near[0]!r}? Rename it."
            )
