"""Texts that users already have, as records: .csv, .tsv, .jsonl, .ndjson, .parquet, .xlsx, DataFrames.

A source can be read more than once, each time as a stream, so that no file is too long. Nothing is guessed
and nothing is converted: text is text, and a record that is not whole is an error with its line.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import hashlib
import io
import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from biaskit.corpora.sources import check_label, shown, unlimited_fields
from biaskit.errors import CorpusError, nearest
from biaskit.inputs import UTF16, Inputs, digest_of_file, expanded, one_line, opened, parse_json, unpacked
from biaskit.personas.texts.parquet import parquet_columns, parquet_records
from biaskit.sheets import XLSX, Sheet, open_sheet, split_sheet

if TYPE_CHECKING:
    import pandas as pd

_TEXTS = Inputs(CorpusError, most=0)
Record = tuple[int, Mapping[str, object]]
"""The line (or row, from 1) where a record begins, and its values by what they are: text, gender, …"""


@dataclass(frozen=True, slots=True)
class TextSource:
    """Records that can be read more than once, and the digest that tells them from all others."""

    where: str  # as messages name it
    label: str  # what tables call it: the file's name without its ending
    unit: str  # what a record's number counts: line or row
    columns: Mapping[str, str]  # text, gender, occupation, model → the column that holds it
    digest: str  # SHA-256, hex
    records: Callable[[], Iterator[Record]]
    header: tuple[str, ...] = ()  # every column, used or not, where the header is a line of its own
    notes: tuple[str, ...] = ()


ENCODINGS = ("utf-8", "cp1252")
"""How a file may be written; cp1252 is what Western European Windows programs write."""


def open_file(
    path: str | Path, columns: Mapping[str, str], encoding: str = "utf-8", separator: str | None = None
) -> TextSource:
    """A file of texts by its suffix; its digest is that of its bytes, compressed or not.

    `separator` parts the columns of a .csv or .tsv; by default what its header says (`_header`).

    `columns` names the column of the text and of whatever else is wanted. A file that changes between two
    readings is a `CorpusError`, as is whatever is wrong with it; a library missing a `MissingExtraError`.
    FILE.xlsx#SHEET names a sheet, which is then in the digest too.
    """
    name, sheet = split_sheet(str(path))
    path = expanded(name)
    where = one_line(str(path))
    suffix = _suffix_of(path, where)
    state = _state(path, where)
    with _readable(path, where):
        digest = digest_of_file(path)
    if encoding not in ENCODINGS or (encoding != "utf-8" and suffix in BINARY):
        raise CorpusError(
            f"{where}: --encoding is {' or '.join(ENCODINGS)}, and no choice for {' and '.join(BINARY)}."
        )
    if separator is not None and (suffix not in _DELIMITERS or len(separator) != 1 or separator in '\r\n"'):
        raise CorpusError(f"{where}: a separator is one character between the columns of a .csv or .tsv.")
    with _readable(path, where):
        found = _reading(path, where, columns, suffix, encoding, sheet, separator)
    return TextSource(
        where,
        _label_of(path),
        "row" if suffix in BINARY else "line",
        columns,
        digest if sheet is None else hashlib.sha256(f"{digest}#{sheet}".encode()).hexdigest(),
        lambda: _unchanged(path, where, state, found.records(path, where, columns)),
        found.header,
        found.notes,
    )


@dataclass(frozen=True, slots=True)
class _Reading:
    """How a file is read once its beginning is known."""

    records: Reader
    header: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def _reading(
    path: Path,
    where: str,
    columns: Mapping[str, str],
    suffix: str,
    encoding: str,
    sheet: str | None,
    separator: str | None,
) -> _Reading:
    if suffix == XLSX:
        found = open_sheet(path, where, sheet)
        return _Reading(partial(_sheet_records, sheet=found), found.header, tuple(_passed_by(found, sheet)))
    if suffix == ".parquet":
        header = parquet_columns(path, where)
        _positions(header, columns, where)
        return _Reading(parquet_records, header)
    if suffix not in _DELIMITERS:
        header = _first_keys(path, where, encoding)
        return _Reading(partial(_json_records, encoding=encoding), header)
    stated = separator or _DELIMITERS[suffix]
    others = tuple(_SEPARATORS) if suffix == ".csv" and separator is None else ()
    delimiter, header = _header(path, where, columns, (stated, *others), encoding)
    notes: tuple[str, ...] = ()
    if others and (name := _SEPARATORS.get(delimiter)):
        notes = (f"columns were parted at {name}: by it the header has the columns that were asked for",)
    return _Reading(partial(_csv_records, delimiter=delimiter, encoding=encoding), header, notes)


def _passed_by(found: Sheet, wanted: str | None) -> Iterator[str]:
    """Which sheet was read, where nobody said so and there are several."""
    if wanted is None and found.others:
        others = ", ".join(map(shown, found.others[:8]))
        yield f"the first sheet was read, {shown(found.name)}, and not {others}: FILE.xlsx#SHEET names one"


_SEPARATORS = {";": "semicolons", "\t": "tabs"}
"""What parts the columns of a .csv that is not parted at commas."""


def _header(
    path: Path, where: str, columns: Mapping[str, str], delimiters: Sequence[str], encoding: str
) -> tuple[str, tuple[str, ...]]:
    """What parts the columns of a file, and its header by it.

    It is the first of `delimiters`, unless by that the header lacks a column that is asked for and by one of
    the others alone it has all of them. So no guess can be wrong: no other reading has these columns.
    """
    headers: dict[str, tuple[str, ...]] = {}
    for delimiter in delimiters:
        with _readable(path, where), unpacked(path) as file:
            text = io.TextIOWrapper(file, encoding=_with_mark(encoding), newline="\n")
            with contextlib.suppress(csv.Error):  # the reading proper says so with its line
                reader = csv.reader(text, delimiter=delimiter, strict=True)
                while (fields := _next_fields(reader)) is not None and not fields:
                    pass
                headers[delimiter] = tuple(fields or ())
    fits = [delimiter for delimiter, header in headers.items() if set(columns.values()) <= set(header)]
    if not fits:  # an error, which then lists the columns as a person sees them
        fits = [delimiter for delimiter, header in headers.items() if len(header) > 1]
    chosen = fits[0] if len(fits) == 1 else delimiters[0]
    return chosen, headers.get(chosen, ())


UNNAMED = "texts"
"""What tables call texts without a file's name."""


def _label_of(path: Path) -> str:
    name = Path(path.name.removesuffix(".gz")).stem
    try:
        # `all` is what tables call the sum of models and of occupations.
        return UNNAMED if name == "all" or not name.isprintable() else check_label(name, "The file's name")
    except CorpusError:
        return UNNAMED


def open_frame(df: pd.DataFrame, columns: Mapping[str, str]) -> TextSource:
    """The columns used of a DataFrame, taken once: changing the frame afterwards changes nothing.

    Rows count from 1 whatever the index; what pandas calls missing is None.
    """
    where = "the DataFrame"
    values: dict[str, list[object]] = {}
    for role, position in _positions([str(name) for name in df.columns], columns, where).items():
        series = df.iloc[:, position]
        pairs = zip(series.tolist(), series.isna().tolist(), strict=True)
        values[role] = [None if missing else value for value, missing in pairs]
    digest = hashlib.sha256(json.dumps(list(values)).encode("ascii"))
    for record in zip(*values.values(), strict=True):
        digest.update(json.dumps(record, default=repr, skipkeys=True).encode("ascii") + b"\n")
    header = tuple(str(name) for name in df.columns)
    return TextSource(
        where, UNNAMED, "row", columns, digest.hexdigest(), lambda: _numbered(values, 1), header
    )


Reader = Callable[[Path, str, Mapping[str, str]], Iterator[Record]]


def _with_mark(encoding: str) -> str:
    """The name under which Python leaves out UTF-8's byte order mark."""
    return "utf-8-sig" if encoding == "utf-8" else encoding


def _csv_records(
    path: Path, where: str, columns: Mapping[str, str], *, delimiter: str, encoding: str = "utf-8"
) -> Iterator[Record]:
    # Lines end in "\n" alone: a "\r" outside quotes (pandas writes texts so) is an error, not a new record.
    with unpacked(path) as file, io.TextIOWrapper(file, encoding=_with_mark(encoding), newline="\n") as text:
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        header: list[str] = []
        positions: dict[str, int] = {}
        line = 1  # where the record to come begins
        try:
            while (fields := _next_fields(reader)) is not None:
                if fields and not header:
                    header, positions = fields, _positions(fields, columns, where)
                elif fields:
                    if len(fields) != len(header):
                        raise CorpusError(
                            f"{where}, line {line}: fields here {len(fields)}, in the header {len(header)}."
                            " Put a text that holds a delimiter or a line break in double quotes."
                        )
                    yield line, {role: fields[position] for role, position in positions.items()}
                line = reader.line_num + 1
        except csv.Error as error:
            reason = str(error).partition(" - ")[0]  # what follows is advice to programmers
            raise CorpusError(
                f"{where}, line {line} is not valid CSV: {reason}. Put texts that hold quotes or line breaks"
                " in double quotes, and double the quotes inside."
            ) from None
    if not header:
        raise CorpusError(f"{where} is empty. Write a header line, and a line for each text.")


def _next_fields(reader: Iterator[list[str]]) -> list[str] | None:
    """The fields of the next record, none for a blank line; None at the end."""
    # The limit is the process's: it is lifted for one record, not while a stream waits for its consumer.
    with unlimited_fields():
        return next(reader, None)


def _positions(header: Sequence[str], columns: Mapping[str, str], where: str) -> dict[str, int]:
    """Where each column that is asked for stands."""
    for column in columns.values():
        if column not in header:
            raise _no_column(where, column, header, nearest(column, header))
        if header.count(column) > 1:
            raise CorpusError(f"{where} has the column {shown(column)} twice. Remove or rename one.")
    return {role: header.index(column) for role, column in columns.items()}


def _no_column(where: str, column: str, known: Sequence[str], hint: str) -> CorpusError:
    listed = ", ".join(map(shown, known[:12])) + (", …" if len(known) > 12 else "")
    return CorpusError(
        f"{where} has no column {shown(column)}; it has {listed or 'none'}.{hint or ' Name one of these.'}"
    )


def _json_records(
    path: Path, where: str, columns: Mapping[str, str], *, encoding: str = "utf-8"
) -> Iterator[Record]:
    first: tuple[str, ...] | None = None  # keys of the first object
    gender_met = False
    with unpacked(path) as file:
        # Lines of bytes end in "\n" alone: U+2028 and a lone "\r" are characters of a text.
        for number, line in enumerate(file, start=1):
            text = line.removeprefix(codecs.BOM_UTF8 if number == 1 else b"").decode(encoding)
            if not text.strip(" \t\r\n"):
                continue
            here = f"{where}, line {number}"
            values = _json_object(text, here, set(columns.values()))
            first = tuple(values) if first is None else first
            gender_met = gender_met or columns.get("gender") in values
            for role, column in columns.items():
                if role != "gender" and column not in values:
                    raise _no_column(here, column, list(values), nearest(column, values))
            yield number, {role: values.get(column) for role, column in columns.items()}
    if first is None:
        raise CorpusError(f"{where} is empty. Write a JSON object on a line for each text.")
    if "gender" in columns and not gender_met:
        raise _no_column(where, columns["gender"], first, nearest(columns["gender"], first))


def _json_object(line: str, where: str, wanted: Collection[str]) -> dict[str, object]:
    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        for key, n in Counter(name for name, _ in pairs).items():
            if n > 1 and key in wanted:
                raise CorpusError(f"{where} has the key {shown(key)} twice. Remove or rename one.")
        return dict(pairs)

    try:
        found = parse_json(line, object_pairs_hook=unique, parse_constant=float)  # NaN: none
    except ValueError as error:
        reason = str(error).partition(": line ")[0]  # of the file we say it ourselves
        raise CorpusError(f"{where} is not valid JSON: {reason}. Write one object on a line.") from None
    if not isinstance(found, dict):
        raise CorpusError(f"{where} is {shown(found)}, not an object. Write one object on a line.")
    return found


def _first_keys(path: Path, where: str, encoding: str) -> tuple[str, ...]:
    """The keys of the first object, for the hint at columns that are not used; faults are said later."""
    with contextlib.suppress(CorpusError, UnicodeDecodeError), _readable(path, where), unpacked(path) as file:
        for line in file:
            text = line.removeprefix(codecs.BOM_UTF8).decode(encoding)
            if text.strip():
                return tuple(_json_object(text, where, ()))
    return ()


def _sheet_records(
    path: Path,  # noqa: ARG001
    where: str,
    columns: Mapping[str, str],
    *,
    sheet: Sheet,
) -> Iterator[Record]:
    yield from sheet.rows(_positions(sheet.header, columns, where))


def _numbered(values: Mapping[str, Sequence[object]], start: int) -> Iterator[Record]:
    for number, record in enumerate(zip(*values.values(), strict=True), start):
        yield number, dict(zip(values, record, strict=True))


_DELIMITERS = {".csv": ",", ".tsv": "\t"}
BINARY = (".parquet", XLSX)
"""What is no text, so that it has rows and no lines, no encoding, and is compressed anyhow."""
SUFFIXES = (*_DELIMITERS, ".jsonl", ".ndjson", *BINARY)


def _suffix_of(path: Path, where: str) -> str:
    """What kind of file a name says it is."""
    name = path.name.lower()
    suffix = Path(name.removesuffix(".gz")).suffix
    if suffix not in SUFFIXES or (suffix in BINARY and name.endswith(".gz")):
        raise CorpusError(
            f"{where}: a file of texts ends in {', '.join(SUFFIXES)} (all but the last two also with .gz),"
            f" not in {shown(path.suffix)}."
        )
    return suffix


def _unchanged(path: Path, where: str, state: object, records: Iterator[Record]) -> Iterator[Record]:
    """The records of a file, as long as it is the file whose digest is in every key."""
    _check_state(path, where, state)
    with _readable(path, where):
        yield from records
    _check_state(path, where, state)


def _check_state(path: Path, where: str, state: object) -> None:
    if _state(path, where) != state:
        raise _changed(where)


def _changed(where: str) -> CorpusError:
    return CorpusError(f"{where} changed while it was read. Give the command again when it is complete.")


def _state(path: Path, where: str) -> object:
    with _readable(path, where), opened(path) as file:
        found = os.fstat(file.fileno())
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


@contextlib.contextmanager
def _readable(path: Path, where: str) -> Iterator[None]:
    """What can go wrong with a file, in one line each."""
    with _TEXTS.saying(where):
        try:
            yield
        except UnicodeDecodeError as error:
            if error.encoding != "utf-8":
                raise CorpusError(
                    f"{where} is not cp1252. Leave --encoding out, or save it as UTF-8."
                ) from None
            raise _not_utf8(path, where) from None


def _not_utf8(path: Path, where: str) -> CorpusError:
    """Find the first byte that is not UTF-8; a stream's own decoder knows its position in a buffer only."""
    start = 0
    with unpacked(path) as file:
        for number, line in enumerate(file, 1):
            if number == 1 and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                return CorpusError(f"{where}{UTF16}")
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                return CorpusError(
                    f"{where}, line {number} is not UTF-8: byte 0x{line[error.start]:02x} at position"
                    f" {start + error.start}. Save the file as UTF-8, or try"
                    " --encoding cp1252 (Windows, Western Europe)."
                )
            start += len(line)
    return _changed(where)
