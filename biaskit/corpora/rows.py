"""From a list's file to its rows, in any of the formats that a list of its kind may have."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from biaskit.corpora.sources import (
    SHIPPED,
    SourceRow,
    check_keys,
    entries_of,
    parse_toml,
    read_source,
    shown,
    unlimited_fields,
)
from biaskit.errors import CorpusError, nearest
from biaskit.inputs import expanded, one_line
from biaskit.sheets import XLSX, is_sheet, open_sheet, split_sheet


@dataclass(frozen=True, slots=True)
class SourceLayout:
    """What a file of one kind holds: the columns of a .csv are the keys of its TOML tables."""

    kind: str
    table: str
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    top: tuple[str, ...] = ()  # keys beside the tables, TOML only
    from_line: Callable[[str], dict[str, object]] | None = None  # None: no .txt
    csv: bool = False  # read from .csv even without from_line


@dataclass(frozen=True, slots=True)
class SourceTable:
    """The rows of a file, and what stands beside them (TOML only)."""

    top: SourceRow
    rows: Sequence[SourceRow]


def read_source_rows(source: str | Path, layout: SourceLayout) -> SourceTable:
    """Read a list in any of the formats its layout allows; an empty one is an error."""
    top, rows = stream_source_rows(source, layout)
    return SourceTable(top, tuple(rows))


def stream_source_rows(source: str | Path, layout: SourceLayout) -> tuple[SourceRow, Iterator[SourceRow]]:
    """The same row by row, for lists that may be long; what stands beside them comes first."""
    formats = (".csv", ".txt", ".toml") if layout.from_line else (".csv", ".toml")[not layout.csv :]
    if ".csv" in formats:
        formats += (XLSX,)
        if is_sheet(str(source)) and not str(source).startswith(SHIPPED):
            where, rows = _sheet_rows(str(source), layout)
            return SourceRow(where, {}), _some(rows, _holds_none(where, layout))
    where, suffix, text = read_source(source, layout.kind, formats)
    top = SourceRow(where, {})
    if suffix == ".toml":
        top = SourceRow(where, parse_toml(text, where))
        check_keys(top, (*layout.top, layout.table))
        rows = _toml_rows(top, layout)
    elif suffix == ".txt" and layout.from_line:
        rows = _line_rows(text, where, layout.from_line)
    else:
        rows = _csv_rows(text, where, layout)
    return top, _some(rows, _holds_none(where, layout))


def _holds_none(where: str, layout: SourceLayout) -> str:
    return f"{where} holds no {layout.kind}. Write at least one {layout.table}."


def _some(rows: Iterator[SourceRow], otherwise: str) -> Iterator[SourceRow]:
    """The same rows, of which there must be one."""
    row = next(rows, None)
    if row is None:
        raise CorpusError(otherwise)
    yield row
    yield from rows


def _toml_rows(top: SourceRow, layout: SourceLayout) -> Iterator[SourceRow]:
    for number, entry in entries_of(top, layout.table):
        row = SourceRow(f"{top.where}, {layout.table} {number}", entry)
        check_keys(row, (*layout.required, *layout.optional))
        yield row


def _csv_rows(text: str, where: str, layout: SourceLayout) -> Iterator[SourceRow]:
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
                        f"{where}, line {line}: fields here {len(values)}, in the header {len(header)}."
                        f" Put a text that holds {_CALLED[delimiter]} in double quotes."
                    )
                if values:
                    yield SourceRow(f"{where}, line {line}", dict(zip(header, values, strict=True)))
                line = reader.line_num + 1
        except csv.Error as error:
            raise CorpusError(f"{where}, line {line} is not valid CSV: {error}. Check its quotes.") from None


def _sheet_rows(source: str, layout: SourceLayout) -> tuple[str, Iterator[SourceRow]]:
    """How messages name a workbook, and the rows of its sheet; of several one must be named."""
    name, wanted = split_sheet(source)
    path, where = expanded(name), one_line(name)
    found = open_sheet(path, where, wanted)
    if wanted is None and found.others:
        sheets = ", ".join(map(shown, (found.name, *found.others[:8])))
        raise CorpusError(f"{where} has several sheets: {sheets}. Name one, as in {where}#{found.name}.")
    _check_header(list(found.header), where, layout)
    columns = {column: place for place, column in enumerate(found.header) if column}
    return where, (SourceRow(f"{where}, row {n}", values) for n, values in found.rows(columns))


_CALLED = {",": "a comma", ";": "a semicolon", "\t": "a tab"}
"""What may part the columns of a list."""


def _delimiter(text: str, layout: SourceLayout) -> str:
    """Commas, unless by these the header lacks a column, and by semicolons or tabs alone it has all."""
    first = text.partition("\n")[0]
    fits = []
    for delimiter in _CALLED:
        with contextlib.suppress(csv.Error):  # the reading proper says so with its line
            if set(layout.required) <= set(next(csv.reader([first], delimiter=delimiter), [])):
                fits.append(delimiter)
    return fits[0] if len(fits) == 1 else ","


def _check_header(header: list[str], where: str, layout: SourceLayout) -> None:
    known = (*layout.required, *layout.optional)
    for column in layout.required:
        if column not in header:
            raise CorpusError(f"{where} has no column {column!r}; {_instead(header, column, known)}")
    for column in known:
        if header.count(column) > 1:
            raise CorpusError(f"{where} has the column {column!r} twice. Remove or rename one.")


def _instead(header: list[str], column: str, known: Sequence[str]) -> str:
    """What a list has in the place of its header, and what to do: rename a column, or write a header."""
    fields = ", ".join(map(shown, header[:12])) or "no header"
    if not header or set(known) & {name.strip().casefold() for name in header}:
        return f"it has {fields}.{nearest(column, header)}"
    wanted = ",".join(known[: max(len(header), known.index(column) + 1)])
    return (
        f"its first line is {fields}. If that is data, write the header above it, such as {wanted}; if it is"
        f" a header, rename its columns so.{nearest(column, header)}"
    )


def _line_rows(text: str, where: str, from_line: Callable[[str], dict[str, object]]) -> Iterator[SourceRow]:
    # Not splitlines(): U+2028 and its like are characters of a text, not ends of a line.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield SourceRow(f"{where}, line {number}", from_line(line.removesuffix("\r")))
