"""The public tables as the page lists them: columns of values, what is the same in every row said once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from biaskit.report.content import Content
from biaskit.report.page import labels
from biaskit.report.page.foreign import name
from biaskit.runs.collection import Model, Part
from biaskit.tables.query import Row, Tables, where
from biaskit.tables.schema import SCHEMAS

BETWEEN = 0
"""Number of the tables that compare models and engines; those of a part carry the part's, from 1."""

_ORDER = (
    *("gaps", "srb_change", "probe_groups", "probe_jobs", "probe_levels"),
    *("representation", "srb", "tests"),
    "text_transfer",
    *(
        "probe_outcomes",
        "probe_next",
        "probe_templates",
        "probe_variance",
        "deciles",
        "association_validation",
        "text_outcomes",
    ),
    *("marked_words", "word_lists", "group_lists", "group_words"),
    *("word_overlap", "word_methods", "instruction_words"),
    *("clusters", "silhouette"),
)
_ABOUT = ("word", "occupation", "job", "words", "job_group", "quantity", "k", "level", "id", "model")
"""The first of these that a table has names its rows."""
_LAST = ("engine", "family", "reason")
_MANY_MODELS = 3
_DIGITS = (6, 9, 12)
_NUMBERS, _TEXTS = frozenset((float, int, bool, type(None))), frozenset((str, type(None)))


@dataclass(frozen=True)
class ListedTable:
    """A public table on the page: `anchor` is its id, `files` say where all of it lies."""

    name: str
    number: int  # of its part, from 1; BETWEEN for those between models and engines
    anchor: str
    title: str
    what: str
    models: Sequence[Model]  # of its part, or of all parts
    stored: Sequence[Row]
    rows: Sequence[Row]  # those of them that the page holds
    files: tuple[str, ...]
    groups: tuple[str, ...] = ()
    contrast: tuple[str, str] = ("", "")

    @cached_property
    def measured_with(self) -> str:
        """Models, prompt forms, estimators and vectors that stand behind the stored rows."""
        return measured_with(self.models, self.stored)

    @property
    def n_stored(self) -> int:
        """Rows that its file holds."""
        return len(self.stored)


def list_tables(content: Content, *, marked: int = 20, longest: int | None = None) -> tuple[ListedTable, ...]:
    """The tables between models, then those of each part, in the order of reading.

    `marked`: first words of each calibrated list; `longest`: rows that a table may have at most.
    """
    found = list(_tables(content, BETWEEN, content.between, None, marked, longest))
    for number, part in enumerate(content.parts, 1):
        found += _tables(content, number, part.tables, part, marked, longest)
    return tuple(found)


def measured_with(models: Sequence[Model], rows: Sequence[Row]) -> str:
    """Models, prompt forms, estimators and vectors that stand behind rows."""
    named = set().union(*(_named_in(rows, column) for column in ("model", "model_a", "model_b")))
    own = [model for model in models if model.label in named] or list(models)
    own = list({model.label: model for model in own}.values())
    said = [_described(model) for model in own]
    if len(said) > _MANY_MODELS:
        said = [f"{len(said)} models (see Models)"]
    for column, what in (("prompt_form", "form"), ("estimator", "estimator"), ("vectors", "vectors")):
        of_rows = _named_in(rows, column)
        of_models = {str(getattr(model, column, "")) for model in own} - {""}
        if kinds := of_rows or of_models:
            said.append(f"{what} {', '.join(sorted(kinds))}")
    return " · ".join(said)


def _named_in(rows: Sequence[Row], column: str) -> set[str]:
    return {str(value) for value in {row.get(column) for row in rows} if value}


def packed(table: ListedTable) -> dict[str, Any]:
    """A table as the page's script reads it: one array per column, or one value where all rows agree."""
    columns, same, empty = [], [], []
    of_rows = _columns(table.rows)
    for header in _headers(list(of_rows)):
        label, explained = labels.column(header, table.groups, table.contrast)
        values = _values(header, of_rows[header])
        first = _hashable(values[0])
        agree = all(_hashable(value) == first for value in values)
        if agree and values[0] is None:
            empty += [label] * (header != "reason")
        elif agree and len(values) > 1:
            same.append([label, _as_text(values[0])])
        else:
            columns.append({"name": header, "label": label, "explained": explained, **_coded(values)})
    return {
        "id": table.anchor,
        "title": name(table.title),
        "n": len(table.rows),
        "stored": table.n_stored,
        "file": f"{table.name}.csv",
        "columns": columns,
        "same": same,
        "empty": empty,
    }


def _tables(
    content: Content, number: int, tables: Tables, part: Part | None, marked: int, longest: int | None
) -> Iterator[ListedTable]:
    known = [*_ORDER, *(name for name in SCHEMAS if name not in _ORDER), *sorted(set(tables) - set(SCHEMAS))]
    for table in known:
        rows = tables.get(table, ())
        if not rows or table in labels.NOT_ON_PAGE:
            continue
        kept = rows
        if table in ("marked_words", "group_words"):
            kept = [row for row in where(rows, method="calibrated") if (row.get("rank") or 0) <= marked]
        models = part.models if part else [model for one in content.parts for model in one.models]
        title, what = labels.TITLES.get(table, (table.replace("_", " "), ""))
        title = title.replace("{column}", f"“{rows[0].get('column')}”")
        yield ListedTable(
            table,
            number,
            f"table-{number}-{table}",
            title,
            what,
            models,
            rows,
            kept[:longest],
            tuple(f"{run}/tables/{table}.csv" for run in part.runs) if part else (f"{table}.csv",),
            part.groups if part else (),
            part.contrast if part else ("", ""),
        )


def _described(model: Model) -> str:
    inside = [model.fingerprint[:12], model.tuning if model.tuning != "unknown" else "", model.where]
    return f"{name(model.label)} ({', '.join(filter(None, inside))})"


def _columns(rows: Sequence[Row]) -> dict[str, Sequence[Any]]:
    """The values of each column, in the order of the file."""
    kinds = list(dict.fromkeys(map(tuple, rows)))
    if len(kinds) == 1:  # as those of one file are: turned in one go
        return dict(zip(kinds[0], zip(*(row.values() for row in rows), strict=True), strict=True))
    headers = dict.fromkeys(header for kind in kinds for header in kind)
    return {header: [row.get(header) for row in rows] for header in headers}


def _headers(headers: Sequence[str]) -> list[str]:
    """Columns from left to right: what a row is about, then the order of the file, the reason last."""
    about = next((h for h in _ABOUT if h in headers), headers[0] if headers else "")
    rest = [h for h in headers if h != about and h not in _LAST]
    return [about] * bool(about) + rest + [h for h in _LAST if h in headers]


def _values(header: str, values: Sequence[Any]) -> Sequence[Any]:
    """`_value` of each: numbers and texts that stand in many rows are not looked at one by one."""
    kinds = set(map(type, values))
    if kinds <= _NUMBERS and all(map(math.isfinite, (value for value in values if type(value) is float))):
        return values
    if kinds <= _TEXTS:
        named = {value: _value(header, value) for value in set(values)}
        return [named[value] for value in values]
    return [_value(header, value) for value in values]


def _value(header: str, value: Any) -> Any:
    """A value in words where the column has them; an empty text is none."""
    if isinstance(value, str):
        return _named(header, value) if value else None
    if isinstance(value, list | tuple):
        return name(" ".join(map(str, value))) or None
    if isinstance(value, float) and not math.isfinite(value):  # tables hold none; JSON has no word for it
        return None
    return value


@lru_cache(maxsize=10_000)
def _named(header: str, value: str) -> str:
    return name(labels.VALUES.get(header, {}).get(value, value))


def _hashable(value: Any) -> tuple[str, Any]:
    return type(value).__name__, value if isinstance(value, str | int | float | None) else str(value)


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _coded(values: Sequence[Any]) -> dict[str, Any]:
    """Numbers as an array; texts and yes/no as levels and, for each row, the place of its level."""
    kinds = set(map(type, values)) - {type(None)}
    if all(issubclass(kind, int | float) and not issubclass(kind, bool) for kind in kinds):
        whole = all(issubclass(kind, int) for kind in kinds)
        return {"kind": "integer" if whole else "number", "values": list(values) if whole else _short(values)}
    texts = values if kinds == {str} else [None if value is None else _as_text(value) for value in values]
    levels = [text for text in dict.fromkeys(texts) if text is not None]
    places = {None: -1} | {text: place for place, text in enumerate(levels)}
    return {"kind": "text", "levels": levels, "codes": [places[text] for text in texts]}


def _short(values: Sequence[float | None]) -> list[float | None]:
    """The fewest digits that keep every pair in its order: sorting is by the number, not by what is shown."""
    distinct = {value for value in values if value is not None}
    for digits in _DIGITS:
        rounded = {value: float(f"{value:.{digits}g}") for value in distinct}
        if len(set(rounded.values())) == len(distinct):
            return [None if value is None else rounded[value] for value in values]
    return list(values)
