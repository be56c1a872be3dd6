"""The one writer and reader of the public tables, rows in study order; `schema` says what each holds."""

from __future__ import annotations

import csv
import io
import math
import numbers
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from itertools import permutations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from biaskit.common.foreign import is_formula
from biaskit.common.inputs import Inputs
from biaskit.corpora.sources import unlimited_fields
from biaskit.errors import TableError, nearest
from biaskit.tables.quantities import QUANTITIES
from biaskit.tables.schema import SCHEMAS, Column, Kind, PerGroup, TableSchema

if TYPE_CHECKING:
    import pandas as pd

_REMEDY = "`biaskit analyze` rebuilds the tables"
_TABLE = Inputs(TableError, most=2**30, remedy=f"{_REMEDY}.")
# Text stays `object`: pandas' own string type may be Arrow's, which refuses a lone surrogate.
_DTYPES: dict[Kind, str] = {"text": "object", "integer": "Int64", "number": "float64", "boolean": "boolean"}


class OfStudy(TypedDict, total=False):
    """What a study adds to the columns of a table: the arguments of `columns`."""

    groups: Sequence[str]
    contrast: tuple[str, str]
    scoped: bool
    labelled: bool
    known: bool
    foreign: bool


def columns(
    name: str, *, groups: Sequence[str] = (), contrast: tuple[str, str] = ("", ""), **kept: bool
) -> tuple[Column, ...]:
    """List the columns of a table for a study's gender groups, and the contrast of two of them if it has one.

    `kept`: whether the columns that only some runs have are kept, such as `scoped` (`Column.only`).
    """
    layout: list[Column] = []
    for part in _schema(name).parts:
        if isinstance(part, Column):
            if not part.only or kept.get(part.only):
                layout.append(part)
        elif isinstance(part, PerGroup):
            for group, own in product(groups, part.names):
                layout.append(Column(own.replace("GROUP", group, 1), part.kind))
        elif any(contrast):
            layout.append(part.of(*contrast))
    names = [column.name for column in layout]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise TableError(f"{name}.csv: two columns are called {twice[0]!r}. Rename a gender group.")
    return tuple(layout)


def check_group_names(kind: str, groups: Sequence[str], contrast: tuple[str, str], where: str) -> None:
    """Refuse gender groups called like something in the tables of their kind. Raises `TableError`."""
    tables = [name for name, schema in SCHEMAS.items() if schema.owner in ("", kind)]
    reserved = {column.name for name in tables for column in columns(name, scoped=True)}
    reserved |= {*tables, *QUANTITIES}
    for group in groups:
        if group in reserved:
            raise TableError(
                f"{where}: a group cannot be called {group!r}, as a column, table or quantity is. Rename it;"
                f" reserved are {', '.join(sorted(reserved))}."
            )
    for name in tables:
        columns(name, groups=groups, contrast=contrast)


def _schema(name: str) -> TableSchema:
    if name not in SCHEMAS:
        raise TableError(f"There is no public table {name!r}.{nearest(name, SCHEMAS)}")
    return SCHEMAS[name]


# --- writing ---------------------------------------------------------------------------------------


def table_bytes(name: str, rows: Sequence[Mapping[str, object]], **study: Unpack[OfStudy]) -> bytes:
    """Write a table as its file holds it, rows as they come. Raises `TableError` where a row does not fit."""
    layout = columns(name, **study)
    expected = dict.fromkeys(column.name for column in layout)
    keys = [key for key in _schema(name).keys if key in expected]
    seen: set[tuple[object, ...]] = set()
    lines = [",".join(map(_quoted, expected))]
    for number, row in enumerate(rows, 1):
        where = f"{name}.csv, row {number}"
        if row.keys() != expected.keys():
            missing, surplus = sorted(expected.keys() - row), sorted(row.keys() - expected)
            raise TableError(f"{where}: missing {missing}, surplus {surplus}.")
        key = tuple("" if row[key_column] is None else row[key_column] for key_column in keys)
        if keys and key in seen:
            raise TableError(f"{where}: a row with the same keys was written before: {key}.")
        seen.add(key)
        try:
            lines.append(",".join([_field(row[column.name], column) for column in layout]))
        except TableError as error:
            raise TableError(f"{where}: {error}") from None
    return ("\n".join(lines) + "\n").encode("utf-8", errors="surrogatepass")


def _field(value: object, column: Column) -> str:
    if value is None:
        return ""
    if isinstance(value, str) and column.kind == "text":
        return _text(value, column.name)
    if isinstance(value, bool):  # before the numbers, since Python counts a bool among them
        if column.kind == "boolean":
            return "yes" if value else "no"
    elif column.kind == "number" and isinstance(value, float | numbers.Real):
        if not math.isfinite(number := float(value)):
            raise TableError(f"{column.name} is {number}; an undefined number is None.")
        return repr(number)
    elif column.kind == "integer" and isinstance(value, int | numbers.Integral):
        return str(int(value))
    raise TableError(f"{column.name} is {value!r}, expected: {column.kind}.")


@lru_cache(maxsize=4096)  # a name stands in thousands of rows
def _text(text: str, column: str) -> str:
    if column == "reason":  # it may quote a server: it stays one line, and no spreadsheet runs it
        line = " ".join(text.split())
        return _quoted(f"reason given: {line}" if is_formula(line) else line)
    if is_formula(text):
        raise TableError(f"{column} is {text!r}, which a spreadsheet would run as a formula.")
    return _quoted(text)


def _quoted(text: str) -> str:
    # The csv module, told to end lines in "\n", leaves a "\r" bare, and then cannot read it back.
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\r\n') else text


# --- reading ---------------------------------------------------------------------------------------


def read_table_rows(path: Path) -> list[dict[str, object]]:
    """Read a public table as typed rows; an empty number or boolean is None, an empty text ''."""
    return rows_of(path, _content(path))


def rows_of(path: Path, content: bytes) -> list[dict[str, Any]]:
    """Read the typed rows of a file whose content is at hand; the path names table and file."""
    values = _values_by_column(path, content)
    names = [column.name for column in values]
    return [dict(zip(names, row, strict=True)) for row in zip(*values.values(), strict=True)]


def read_table(path: Path) -> pd.DataFrame:
    """Read a public table as a DataFrame: text as text ("NA" is a name), an empty number NaN or `pd.NA`."""
    return frame_of(path, _content(path))


def frame_of(path: Path, content: bytes) -> pd.DataFrame:
    """Read the DataFrame of a file whose content is at hand; the path names table and file."""
    return _frame(_values_by_column(path, content))


def empty_table(name: str, **study: Unpack[OfStudy]) -> pd.DataFrame:
    """Make the DataFrame of a public table without rows, typed as by `read_table`."""
    return _frame({column: [] for column in columns(name, **study)})


def _frame(by_column: Mapping[Column, list[Any]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(
        {column.name: pd.Series(values, dtype=_DTYPES[column.kind]) for column, values in by_column.items()}
    )


def _content(path: Path) -> bytes:
    if not path.exists():
        raise TableError(f"There is no table {path}; {_REMEDY}.")
    return _TABLE.content(path)


def _values_by_column(path: Path, content: bytes) -> dict[Column, list[Any]]:
    # Not pandas' reader: it fills up a row that is too short, and takes a field too many for an index.
    try:
        text = content.decode("utf-8", errors="surrogatepass")
        with unlimited_fields():
            header, *body = [*csv.reader(io.StringIO(text, newline=""), strict=True)] or [[]]
    except (UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"{path}: {error}; {_REMEDY}.") from error
    layout = _layout(path, header)
    for number, row in enumerate(body, 2):
        if len(row) != len(header):
            raise TableError(
                f"{path}, record {number}: {len(row)} fields where the header has {len(header)}."
            )
    fields = zip(*body, strict=True) if body else [()] * len(layout)
    texts: dict[str, str] = {}  # a name stands in thousands of rows, and is held once
    return {column: _values(path, column, f, texts) for column, f in zip(layout, fields, strict=True)}


def _values(path: Path, column: Column, fields: Sequence[str], texts: dict[str, str]) -> list[object]:
    """Read the fields of a column; `texts` holds each text once."""
    try:
        if column.kind == "integer":
            return [int(field) if field else None for field in fields]
        if column.kind == "number":
            return [float(field) if field else None for field in fields]
        if column.kind == "boolean":
            return [{"yes": True, "no": False, "": None}[field] for field in fields]
    except (ValueError, KeyError) as error:
        raise TableError(f"{path}: column {column.name} has no {column.kind}: {error}.") from error
    return [texts.setdefault(field, field) for field in fields]


def _layout(path: Path, header: list[str]) -> tuple[Column, ...]:
    """Find the columns that a header names, whatever gender groups and contrast it was written with.

    The groups are found by position: their number follows from the length of the header, so a group
    may have any name, also one that looks like another column's.
    """
    parts = _schema(path.stem).parts
    kept = {part.only for part in parts if isinstance(part, Column) and part.name in header} | {""}
    parts = tuple(part for part in parts if not isinstance(part, Column) or part.only in kept)
    groups: list[str] = []
    if of_groups := [part for part in parts if isinstance(part, PerGroup)]:
        start, width = parts.index(of_groups[0]), len(of_groups[0].names)
        n_alone = len(parts) - len(of_groups)
        n = max(len(header) - n_alone, 0) // sum(len(part.names) for part in of_groups)
        before, _, after = of_groups[0].names[0].partition("GROUP")
        own = header[start : start + n * width : width]
        groups = [name.removeprefix(before).removesuffix(after) for name in own]
    only: Any = dict.fromkeys(kept - {""}, True)
    layout_of = partial(columns, path.stem, **only)
    for contrast in [("", ""), *permutations(groups, 2)]:
        layout = layout_of(groups=groups, contrast=contrast)
        if header == [column.name for column in layout]:
            return layout
    expected = [column.name for column in layout_of(groups=groups)]
    raise TableError(f"{path}: the columns are {header}, expected {expected}.")
