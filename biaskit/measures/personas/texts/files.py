"""Texts that users already have, as records: .csv, .tsv, .jsonl, .ndjson, .parquet, .xlsx, DataFrames.

Nothing is guessed and nothing is converted: text is text, and a record that is not whole is an error with its
line. That is why .csv and .jsonl are read by Python's own modules, which know the line of every record, and
only .parquet and .xlsx by libraries.
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from biaskit.common.inputs import Inputs, expanded, one_line
from biaskit.common.sheets import XLSX, open_sheets, split_sheet
from biaskit.corpora.rows import csv_records, find_delimiter, json_object
from biaskit.corpora.sources import check_label, shown
from biaskit.errors import BiaskitError, CorpusError, MissingExtraError, nearest
from biaskit.records import ALL, UNNAMED

if TYPE_CHECKING:
    import pandas as pd

Record = tuple[int, Mapping[str, object]]
"""The line (or row, from 1) where a record begins, and its values by role: text, gender, …"""
Records = tuple[tuple[str, ...], list[Record]]  # the header, and every record below it
ENCODINGS = ("utf-8", "cp1252")
"""How a file may be written; cp1252 is what Western European Windows programs write."""
ANY = "any"  # for columns in ASCII: whatever encoding the texts beside them are in
BINARY = (".parquet", XLSX)
"""Binary formats: they have rows and no lines, no encoding, and are compressed already."""
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_SEPARATORS = {";": "semicolons", "\t": "tabs"}  # what else may separate the columns of a .csv
SUFFIXES = (*_DELIMITERS, ".jsonl", ".ndjson", *BINARY)
_UNICODE_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SEP_LINE = re.compile(r'("?sep=([^\r\n"])"?)(?=\r?\n)', re.IGNORECASE)
_LINE_END = re.compile(r"\r*\n|\r")
_GENDERS = ("gender", "person_gender")  # roles that a JSON object may lack
_TEXTS = Inputs(CorpusError, most=4 * 2**30)


@dataclass(frozen=True, slots=True)
class TextSource:
    """The records of a file or DataFrame, and the digest that tells them from all others."""

    where: str  # as messages name it
    label: str  # what tables call it: the file's name without its ending
    unit: str  # what a record's number counts: line or row
    columns: Mapping[str, str]  # text, gender, occupation, model → the column that holds it
    digest: str  # SHA-256, hex
    records: Sequence[Record]
    header: tuple[str, ...] = ()  # every column, used or not
    notes: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()  # other sheets of the workbook with these columns


def names_texts(name: str) -> bool:
    """Tell whether a text is the path of a file of texts, rather than one of them."""
    return "\n" not in name and split_sheet(name)[0].lower().removesuffix(".gz").endswith(SUFFIXES)


def open_file(
    path: str | Path, columns: Mapping[str, str], encoding: str = "utf-8", separator: str | None = None
) -> TextSource:
    """Read a file of texts by its suffix; its digest is that of its bytes, compressed or not.

    `columns` names the column of the text and of whatever else is wanted; `separator` parts the columns of a
    .csv or .tsv, by default what its header says. FILE.xlsx#SHEET names a sheet, which is then in the digest
    too. Whatever is wrong is a `CorpusError`, a library missing a `MissingExtraError`.
    """
    name, sheet = split_sheet(str(path))
    path = expanded(name)
    where, lower = one_line(str(path)), path.name.lower()
    suffix = Path(lower.removesuffix(".gz")).suffix
    if suffix not in SUFFIXES or (suffix in BINARY and lower.endswith(".gz")):
        raise CorpusError(
            f"{where}: a file of texts ends in {', '.join(SUFFIXES)} (all but the last two also with .gz),"
            f" not in {shown(path.suffix)}."
        )
    if encoding not in (*ENCODINGS, ANY) or (encoding == "cp1252" and suffix in BINARY):
        raise CorpusError(
            f"{where}: --encoding is {' or '.join(ENCODINGS)}, and no choice for {' and '.join(BINARY)}."
        )
    if separator is not None and (suffix not in _DELIMITERS or len(separator) != 1 or separator in '\r\n"'):
        raise CorpusError(f"{where}: a separator is one character between the columns of a .csv or .tsv.")
    content = _TEXTS.content(path, where)
    digest, notes, alike = hashlib.sha256(content).hexdigest(), list[str](), tuple[str, ...]()
    unit = "row" if suffix in BINARY else "line"

    def fits(header: Sequence[str]) -> bool:
        return set(columns.values()) <= {*_as_asked(header, columns)}

    if suffix == XLSX:
        sheets = open_sheets(path, where, sheet)
        fitting = [one for one in sheets if fits(one.header)] or sheets
        opened, alike = fitting[0], tuple(one.name for one in fitting[1:])
        header, records = opened.header, list(opened.rows(_positions(opened.header, columns, where)))
        if others := [shown(one.name) for one in sheets if one is not opened]:
            which = "first sheet" if opened is sheets[0] else "sheet with these columns"
            read = f"the {which} was read, {shown(opened.name)}, and not {', '.join(others[:8])}"
            notes, unit = [f"{read}: FILE.xlsx#SHEET names one"], f"sheet {shown(opened.name)}, row"
        digest = digest if sheet is None else hashlib.sha256(f"{digest}#{sheet}".encode()).hexdigest()
    elif suffix == ".parquet":
        header, records = _parquet_records(content, where, columns)
    else:
        if lower.endswith(".gz"):
            with _TEXTS.saying(where):
                content = gzip.decompress(content)
        text = _decoded(content, where, encoding)
        if suffix in _DELIMITERS:
            first_line = _SEP_LINE.match(text)
            if first_line:  # what spreadsheets write for each other; an empty line keeps the numbers of lines
                text, separator = text[first_line.end(1) :], separator or first_line[2]
            stated = separator or _DELIMITERS[suffix]
            others_too = tuple(_SEPARATORS) if suffix == ".csv" and separator is None else ()
            delimiter = find_delimiter(text, fits, (stated, *others_too))
            header, records = _csv_records(text, where, columns, delimiter)
            if delimiter != stated:
                by = _SEPARATORS[delimiter]
                notes = [f"columns were split at {by}, which gives the requested columns"]
        else:
            header, records = _json_records(text, where, columns)
    return TextSource(where, _label_of(path), unit, columns, digest, records, header, tuple(notes), alike)


def open_frame(df: pd.DataFrame, columns: Mapping[str, str]) -> TextSource:
    """Copy the wanted columns of a DataFrame: rows count from 1, what pandas calls missing is None."""
    where = "the DataFrame"
    header, records = _frame_records(df, where, columns)
    digest = hashlib.sha256(json.dumps(list(columns)).encode("ascii"))
    for _, values in records:
        record = [values[role] for role in columns]
        digest.update(json.dumps(record, default=repr, skipkeys=True).encode("ascii") + b"\n")
    return TextSource(where, UNNAMED, "row", columns, digest.hexdigest(), records, header)


def _label_of(path: Path) -> str:
    name = Path(path.name.removesuffix(".gz")).stem
    try:
        # `all` is what tables call the sum of models and of occupations.
        return UNNAMED if name == ALL or not name.isprintable() else check_label(name, "The file's name")
    except CorpusError:
        return UNNAMED


def _decoded(content: bytes, where: str, encoding: str) -> str:
    """Decode a file whose lines end in a line feed or, where the first does, in a carriage return alone."""
    if encoding == "cp1252" and content.startswith(_UNICODE_MARKS):
        raise CorpusError(f"{where} begins with a mark of Unicode: leave --encoding {encoding} out.")
    try:
        if encoding == ANY:
            text = content.decode("utf-16" if content.startswith(_UNICODE_MARKS[1:]) else "utf-8", "replace")
        else:
            text = _TEXTS.decoded(content, where) if encoding == "utf-8" else content.decode(encoding)
    except UnicodeDecodeError:
        raise CorpusError(f"{where} is not cp1252. Leave --encoding out, or save it as UTF-8.") from None
    except CorpusError as error:
        hint = " Or try --encoding cp1252 (Windows, Western Europe)." if " is not UTF-8" in str(error) else ""
        raise CorpusError(f"{error}{hint}") from None
    text = text.lstrip("\ufeff")  # one for each file that was joined into this
    end = _LINE_END.search(text)
    if end and "\0" in text[: end.start()]:
        raise CorpusError(f"{where} has NUL characters, like UTF-16 without its mark. Save it as UTF-8.")
    return text.replace("\r", "\n") if end and end[0] == "\r" else text


def _csv_records(text: str, where: str, columns: Mapping[str, str], delimiter: str) -> Records:
    # Lines end in "\n" alone: a "\r" outside quotes (pandas writes texts so) is an error, not a new record.
    lines = csv_records(io.StringIO(text, newline="\n"), where, delimiter)
    header = next(lines, (1, []))[1]
    if not header:
        raise CorpusError(f"{where} is empty. Write a header line, and a line for each text.")
    positions = _positions(header, columns, where)
    records: list[Record] = []
    for line, fields in lines:
        records.append((line, {role: fields[place] for role, place in positions.items()}))
    return tuple(header), records


def _json_records(text: str, where: str, columns: Mapping[str, str]) -> Records:
    records: list[Record] = []
    header: tuple[str, ...] = ()  # keys of the first object
    met = set[str]()  # roles
    for number, line in enumerate(text.split("\n"), start=1):  # U+2028 and "\r" are characters of a text
        if not line.strip(" \t\r"):
            continue
        here = f"{where}, line {number}"
        values = json_object(line, here)
        header = header or tuple(values)
        for role, column in columns.items():
            if column in values:
                met.add(role)
            elif role not in _GENDERS:
                raise _no_column(here, column, list(values))
        records.append((number, {role: values.get(column) for role, column in columns.items()}))
    if not records:
        raise CorpusError(f"{where} is empty. Write a JSON object on a line for each text.")
    for role, column in columns.items():
        if role not in met:
            raise _no_column(where, column, header)
    return header, records


def _parquet_records(content: bytes, where: str, columns: Mapping[str, str]) -> Records:
    import pandas as pd

    try:
        return _frame_records(pd.read_parquet(io.BytesIO(content), engine="pyarrow"), where, columns)
    except ImportError as error:
        raise MissingExtraError(
            f'{where}: Parquet needs pyarrow, which is not installed: pip install "biaskit[parquet]"'
        ) from error
    except BiaskitError:
        raise
    except Exception as error:  # a library reads a stranger's file: it may raise anything
        why = " ".join(str(error).split())[:200]
        raise CorpusError(f"{where} cannot be read as Parquet: {why}. Write the file again.") from None


def _frame_records(df: pd.DataFrame, where: str, columns: Mapping[str, str]) -> Records:
    header = tuple(str(name) for name in df.columns)
    values: list[list[object]] = []
    for position in _positions(header, columns, where).values():
        series = df.iloc[:, position]
        pairs = zip(series.tolist(), series.isna().tolist(), strict=True)
        values.append([None if missing else value for value, missing in pairs])
    rows = enumerate(zip(*values, strict=True), start=1)
    return header, [(number, dict(zip(columns, row, strict=True))) for number, row in rows]


def _positions(header: Sequence[str], columns: Mapping[str, str], where: str) -> dict[str, int]:
    named = _as_asked(header, columns)
    for column in columns.values():
        if column not in named:
            raise _no_column(where, column, header)
        if named.count(column) > 1:
            raise CorpusError(f"{where} has the column {shown(column)} twice. Remove or rename one.")
    return {role: named.index(column) for role, column in columns.items()}


def _as_asked(header: Sequence[str], columns: Mapping[str, str]) -> list[str]:
    """Name the columns of a header as they are asked for, where only case and blanks around them differ."""
    asked = {name.casefold(): name for name in columns.values() if name not in header}
    return [asked.get(name.strip().casefold(), name) for name in header]


def _no_column(where: str, column: str, known: Sequence[str]) -> CorpusError:
    listed = ", ".join(map(shown, known[:12])) + (", …" if len(known) > 12 else "")
    hint = nearest(column, known) or " Name one of these, or remove the lines above the header."
    return CorpusError(f"{where} has no column {shown(column)}; it has {listed or 'none'}.{hint}")
