"""The public tables as data: what tables.toml, here and of each kind of measurement, states of them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from biaskit.measurement import specs

Kind = Literal["text", "integer", "number", "boolean"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column; an undefined value of any kind is an empty field."""

    name: str
    kind: Kind = "text"
    only: str = ""
    """`scoped`: only in studies such as those under debiasing prompts; `labelled`, `known`: if genders are;
    `foreign`: if texts are in another language than English"""

    @property
    def names(self) -> tuple[str, ...]:
        """Its name, as the reference lists the columns of every part of a table."""
        return (self.name,)


@dataclass(frozen=True, slots=True)
class PerGroup:
    """Numbers of every gender group: each of `names` with the group for GROUP, then the next group's."""

    names: tuple[str, ...]
    kind: Kind = "number"


@dataclass(frozen=True, slots=True)
class OfContrast:
    """A number of the study's contrast, such as `FIRST_minus_SECOND`."""

    names: tuple[str]
    kind: Kind = "number"

    def of(self, first: str, second: str) -> Column:
        """Make the column of a contrast."""
        words = {"FIRST": first, "SECOND": second}
        return Column("_".join(words.get(word, word) for word in self.names[0].split("_")), self.kind)


TablePart = Column | PerGroup | OfContrast


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchema:
    """What is stated of a table (tables.toml)."""

    owner: str  # the folder of measures/ that states it; "": all kinds share it
    parts: tuple[TablePart, ...]  # its columns, from left to right
    says: Mapping[str, str]  # column, by its name in `parts` → meaning
    rows: str
    keys: tuple[str, ...]
    read: str = ""  # about the property of a result that reads it, with an example
    title: str = ""
    what: str = ""
    question: str = "sure"
    not_on_page: str = ""  # why
    alone: bool = False
    printed: str = ""  # its columns on screens and in manuscripts (report/render/generic.py)


def _table(owner: str, stated: Mapping[str, Any], of_file: Mapping[str, Any]) -> TableSchema:
    """Read a table as tables.toml writes it; `of_file`: what its file says of columns."""
    levels = (SHARED["columns"], of_file, stated.get("own", {}))

    def said(column: str) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for level in levels:
            fields |= level.get(column, {})
        return fields

    parts: list[TablePart] = []
    only = ""
    for word in stated["columns"].split():
        only = {"[": "scoped", "(": "labelled", "<": "known", "{": "foreign"}.get(word[0], only)
        name = word.strip("[]()<>{}")
        if "*" in name:
            before, _, after = name.partition("*")
            names = tuple(f"{before}GROUP{suffix}" for suffix in after.split("/"))
            parts.append(PerGroup(names, said(names[0]).get("kind", "number")))
        elif {"first", "second"} <= {*name.split("_")}:
            own = name.replace("first", "FIRST").replace("second", "SECOND")
            parts.append(OfContrast((own,), said(own).get("kind", "number")))
        else:
            parts.append(Column(name, said(name).get("kind", "text"), only))
        only = "" if word[-1] in "])>}" else only
    says = {name: said(name).get("says", "") for part in parts for name in part.names}
    rest = {field: value for field, value in stated.items() if field not in ("columns", "keys", "own")}
    return TableSchema(owner=owner, parts=tuple(parts), says=says, keys=tuple(stated["keys"].split()), **rest)


def _tables() -> Iterator[tuple[str, TableSchema]]:
    for owner, spec in _SPECS.items():
        for name, stated in spec.get("tables", {}).items():
            yield name, _table(owner, stated, spec.get("columns", {}))


def _heads() -> Iterator[tuple[str, str]]:
    for spec in _SPECS.values():
        said = [spec.get("columns", {}), *(table.get("own", {}) for table in spec.get("tables", {}).values())]
        for columns in said:
            for column, fields in columns.items():
                if "head" in fields:
                    yield column, fields["head"]


SHARED: Mapping[str, Any] = tomllib.loads(Path(__file__).with_name("tables.toml").read_text("utf-8"))
_SPECS = {**specs(), "": SHARED}
SCHEMAS: Mapping[str, TableSchema] = dict(_tables())
"""Every public table: each kind's own, then the one of all kinds."""
HEADS: Mapping[str, str] = dict(_heads())
"""Column → its name on the page, where its name in the file says too little; the same in every table."""
