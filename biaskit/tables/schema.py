"""The public tables as data: every name, column and key, from schema.toml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from biaskit.common.files import toml_beside

Kind = Literal["text", "integer", "number", "boolean"]
_KINDS: Mapping[str, Kind] = {"": "text", "i": "integer", "n": "number", "b": "boolean"}


@dataclass(frozen=True, slots=True)
class Column:
    """One column; an undefined value of any kind is an empty field."""

    name: str
    kind: Kind = "text"
    only: str = ""  # `scoped`: only in studies such as those under instructions; `labelled`: with labels


@dataclass(frozen=True, slots=True)
class PerGroup:
    """Numbers of every gender group: `<group><suffix>` for each suffix, then the next group's."""

    suffixes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """The number `<first>_minus_<second>` of the study's contrast."""


TablePart = Column | PerGroup | Difference


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The columns of a table, from left to right, and the keys that name one of its rows."""

    parts: tuple[TablePart, ...]
    keys: tuple[str, ...]


def _table(columns: str, keys: str) -> TableSchema:
    """Read the columns and keys of a table as schema.toml writes them."""
    parts: list[TablePart] = []
    only = ""
    for word in columns.split():
        only = {"[": "scoped", "(": "labelled"}.get(word[0], only)
        name, _, kind = word.strip("[]()").partition(":")
        if name.startswith("*"):
            parts.append(PerGroup(tuple(name[1:].split("/"))))
        elif name == "first_minus_second":
            parts.append(Difference())
        else:
            parts.append(Column(name, _KINDS[kind], only))
        only = "" if word[-1] in "])" else only
    return TableSchema(tuple(parts), tuple(keys.split()))


SCHEMAS: Mapping[str, TableSchema] = {
    name: _table(**stated) for name, stated in toml_beside(__file__).items()
}
