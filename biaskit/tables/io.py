"""The one writer and the one reader of the public tables; `schema` says what each holds.

See docs/reading.md#tables.

Rows are written in the order they come in, which is study order.
"""

from __future__ import annotations

import csv
import io
import math
import numbers
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from biaskit.corpora.sources import unlimited_fields
from biaskit.errors import TableError, nearest
from biaskit.files import write_atomically
from biaskit.foreign import is_formula
from biaskit.inputs import Inputs
from biaskit.tables.quantities import QUANTITIES
from biaskit.tables.schema import (
    SCHEMAS,
    Column,
    Difference,
    Kind,
    PerGroup,
    TablePart,
    TableSchema,
    TableScope,
)

if TYPE_CHECKING:
    import pandas as pd


def columns(
    name: str, *, groups: Sequence[str] = (), contrast: tuple[str, str] = ("", ""), scoped: bool = False
) -> tuple[Column, ...]:
    """Name the columns of a table for a study's gender groups and the contrast of two of them, if it has one.

    `scoped`: with the columns that only a study under instructions has.
    """
    found: list[Column] = []
    for part in _table(name).parts:
        if isinstance(part, Column):
            found.append(part)
        elif isinstance(part, PerGroup):
            found += [Column(f"{group}{suffix}", "number") for group in groups for suffix in part.suffixes]
        elif isinstance(part, TableScope):
            found += part.columns if scoped else ()
        elif any(contrast):
            found.append(Column(f"{contrast[0]}_minus_{contrast[1]}", "number"))
    names = [column.name for column in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise TableError(f"{name}.csv: two columns are called {twice[0]!r}. Rename a gender group.")
    return tuple(found)


def check_group_names(groups: Sequence[str], contrast: tuple[str, str], where: str) -> None:
    """Refuse gender groups called like something in the tables that name them. Raises `TableError`."""
    named = [name for name in SCHEMAS if name == "tests" or name.startswith("probe_")]
    reserved = {column.name for name in named for column in columns(name, scoped=True)}
    reserved |= {*named, *QUANTITIES}
    for group in groups:
        if group in reserved:
            raise TableError(
                f"{where}: a group cannot be called {group!r}, as a column, table or quantity is. Rename it;"
                f" reserved are {', '.join(sorted(reserved))}."
            )
    for name in named:
        columns(name, groups=groups, contrast=contrast)


def write_table(
    path: Path,
    name: str,
    rows: Sequence[Mapping[str, object]],
    *,
    groups: Sequence[str] = (),
    contrast: tuple[str, str] = ("", ""),
    scoped: bool = False,
) -> None:
    """Write one table by itself; those of one analysis are a set (`tables.sets`)."""
    content = table_bytes(name, rows, groups=groups, contrast=contrast, scoped=scoped)
    try:
        write_atomically(path, content)
    except OSError as error:
        raise TableError(f"{path} cannot be written: {error.strerror or error}.") from error


def table_bytes(
    name: str,
    rows: Sequence[Mapping[str, object]],
    *,
    groups: Sequence[str] = (),
    contrast: tuple[str, str] = ("", ""),
    scoped: bool = False,
) -> bytes:
    """A table as its file holds it, rows as they come; one that breaks the contract is a `TableError`."""
    layout = columns(name, groups=groups, contrast=contrast, scoped=scoped)
    names = [column.name for column in layout]
    expected = set(names)
    keys = [key for key in _table(name).keys if key in expected]
    seen: set[tuple[object, ...]] = set()
    lines = [",".join(_quoted(name) for name in names)]
    for number, row in enumerate(rows, 1):
        where = f"{name}.csv, row {number}"
        if row.keys() != expected:
            missing, surplus = sorted(expected - row.keys()), sorted(row.keys() - expected)
            raise TableError(f"{where}: missing {missing}, surplus {surplus}.")
        key = tuple("" if row[column] is None else row[column] for column in keys)
        if key in seen:
            raise TableError(f"{where}: a row with the same keys was written before: {key}.")
        seen.add(key)
        lines.append(",".join(_quoted(_field(row[column.name], column, where)) for column in layout))
    return ("\n".join(lines) + "\n").encode("utf-8", errors="surrogatepass")


def read_table_rows(path: Path) -> list[dict[str, object]]:
    """Read a public table as typed rows; an empty number or boolean is None, an empty text ''.

    A column that an older biaskit did not write is undefined in every row.
    """
    return rows_of(path, _content(path))


def rows_of(path: Path, content: bytes) -> list[dict[str, Any]]:
    """`read_table_rows` of a file whose content is at hand; the path names table and file."""
    layout, body = _read(path, content)
    values = [_values(path, column, [row[i] for row in body]) for i, column in enumerate(layout)]
    names = [column.name for column in layout]
    return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]


def read_table(path: Path) -> pd.DataFrame:
    """Read a public table as a DataFrame: text as text ("NA" is a name), an empty number NaN or `pd.NA`."""
    return frame_of(path, _content(path))


def frame_of(path: Path, content: bytes) -> pd.DataFrame:
    """`read_table` of a file whose content is at hand; the path names table and file."""
    import pandas as pd

    layout, body = _read(path, content)
    frame: dict[str, pd.Series] = {}
    for i, column in enumerate(layout):
        values = _values(path, column, [row[i] for row in body])
        frame[column.name] = pd.Series(values, dtype=_DTYPES[column.kind])
    return pd.DataFrame(frame)


def empty_table(
    name: str, *, groups: Sequence[str] = (), contrast: tuple[str, str] = ("", ""), scoped: bool = False
) -> pd.DataFrame:
    """The DataFrame of a public table without rows, typed as `read_table` types it; see `columns`."""
    import pandas as pd

    layout = columns(name, groups=groups, contrast=contrast, scoped=scoped)
    return pd.DataFrame({column.name: pd.Series([], dtype=_DTYPES[column.kind]) for column in layout})


# Text stays `object`: pandas' own string type may be Arrow's, which refuses a lone surrogate.
_DTYPES: Mapping[Kind, str] = MappingProxyType(
    {"text": "object", "integer": "Int64", "number": "float64", "boolean": "boolean"}
)


def _table(name: str) -> TableSchema:
    if name not in SCHEMAS:
        raise TableError(f"There is no public table {name!r}.{nearest(name, SCHEMAS)}")
    return SCHEMAS[name]


# --- one field -------------------------------------------------------------------------------------


def _field(value: object, column: Column, where: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):  # before the numbers, since Python counts a bool among them
        if column.kind == "boolean":
            return "yes" if value else "no"
    elif column.kind == "number" and isinstance(value, numbers.Real):
        number = float(value)
        if not math.isfinite(number):
            raise TableError(f"{where}: {column.name} is {number}; an undefined number is None.")
        return repr(number)
    elif column.kind == "integer" and isinstance(value, numbers.Integral):
        return str(int(value))
    elif column.kind == "text" and isinstance(value, str):
        return _reason(value) if column.name == "reason" else _name(value, column, where)
    raise TableError(f"{where}: {column.name} is {value!r}, expected: {column.kind}.")


def _quoted(field: str) -> str:
    # The csv module, told to end lines in "\n", leaves a "\r" bare, and then cannot read it back.
    if not any(mark in field for mark in ',"\r\n'):
        return field
    return '"' + field.replace('"', '""') + '"'


def _name(text: str, column: Column, where: str) -> str:
    if is_formula(text):
        raise TableError(f"{where}: {column.name} is {text!r}, which a spreadsheet would run as a formula.")
    return text


def _reason(text: str) -> str:
    # A reason may quote a server. It stays one line, and no spreadsheet runs it.
    line = " ".join(text.split())
    return f"reason given: {line}" if is_formula(line) else line


_BOOLEANS: Mapping[str, bool | None] = MappingProxyType({"yes": True, "no": False, "": None})


def _values(path: Path, column: Column, fields: Sequence[str]) -> list[object]:
    try:
        if column.kind == "integer":
            return [int(field) if field else None for field in fields]
        if column.kind == "number":
            return [float(field) if field else None for field in fields]
        if column.kind == "boolean":
            return [_BOOLEANS[field] for field in fields]
    except (ValueError, KeyError) as error:
        raise TableError(f"{path}: column {column.name} holds no {column.kind}: {error}.") from error
    return list(fields)


# --- the layout of a file --------------------------------------------------------------------------


_REMEDY = "`biaskit analyze` makes the tables again"
_TABLE = Inputs(TableError, most=2**30, remedy=f"{_REMEDY}.")


def _content(path: Path) -> bytes:
    if not path.exists():
        raise TableError(f"There is no table {path}; {_REMEDY}.")
    return _TABLE.content(path)


def _read(path: Path, content: bytes) -> tuple[tuple[Column, ...], list[list[str]]]:
    try:
        text = content.decode("utf-8", errors="surrogatepass")
        with unlimited_fields():
            header, *body = list(csv.reader(io.StringIO(text, newline=""), strict=True)) or [[]]
    except (csv.Error, UnicodeDecodeError) as error:
        raise TableError(f"{path}: {error}; {_REMEDY}.") from error
    layout = _layout(path, header)
    for line, row in enumerate(body, 2):
        if len(row) != len(header):
            raise TableError(f"{path}, record {line}: {len(row)} fields where the header has {len(header)}.")
    places = [header.index(column.name) if column.name in header else None for column in layout]
    if None in places:
        body = [["" if place is None else row[place] for place in places] for row in body]
    return layout, body


def _layout(path: Path, header: list[str]) -> tuple[Column, ...]:
    """The columns that a header names: those of today, or of an older biaskit, which had fewer."""
    scoped = any(
        column.name in header
        for part in _table(path.stem).parts
        if isinstance(part, TableScope)
        for column in part.columns
    )
    expected: list[str] = []
    for groups, contrast in (_groups_of(path.stem, header, scoped), _groups_by_name(path.stem, header)):
        layout = columns(path.stem, groups=groups, contrast=contrast, scoped=scoped)
        names = [column.name for column in layout]
        if header == names:
            return layout
        expected = expected or names
        keys = {key for key in _table(path.stem).keys if key in names}
        if header == [name for name in names if name in header] and keys <= set(header):
            return layout
    raise TableError(f"{path}: the columns are {header}, expected {expected}.")


def _groups_by_name(name: str, header: list[str]) -> tuple[list[str], tuple[str, str]]:
    """The gender groups of a header that lacks columns of today: what stands together with one ending."""
    parts = _table(name).parts
    start = next((i for i, part in enumerate(parts) if isinstance(part, PerGroup)), len(parts))
    if start == len(parts):
        return [], ("", "")
    suffixes = parts[start].suffixes  # type: ignore[union-attr]
    groups = []
    for column in header[start :: len(suffixes)]:
        if not column.endswith(suffixes[0]):
            break
        groups.append(column.removesuffix(suffixes[0]))
    pairs = {f"{first}_minus_{second}": (first, second) for first in groups for second in groups}
    return groups, next((pairs[column] for column in header if column in pairs), ("", ""))


def _groups_of(name: str, header: list[str], scoped: bool) -> tuple[list[str], tuple[str, str]]:
    """Find the gender groups and the contrast that a header was written with.

    The groups are found by position: their number follows from the length of the header, so a group
    may have any name, also one that looks like another column's. `scoped`: whether it has the columns that
    only some studies have.
    """
    parts: list[TablePart] = []
    for part in _table(name).parts:
        if not isinstance(part, TableScope):
            parts.append(part)
        elif scoped:
            parts += part.columns
    per_group = sum(len(part.suffixes) for part in parts if isinstance(part, PerGroup))
    if not per_group:
        return [], ("", "")
    n = max(len(header) - sum(not isinstance(part, PerGroup) for part in parts), 0) // per_group
    groups: list[str] = []
    contrast = ("", "")
    start = 0
    for part in parts:
        if isinstance(part, PerGroup):
            width = len(part.suffixes)
            groups = groups or [
                column.removesuffix(part.suffixes[0]) for column in header[start : start + n * width : width]
            ]
            start += n * width
            continue
        if isinstance(part, Difference) and start < len(header):
            pairs = {f"{first}_minus_{second}": (first, second) for first in groups for second in groups}
            contrast = pairs.get(header[start], contrast)
        start += 1
    return groups, contrast
