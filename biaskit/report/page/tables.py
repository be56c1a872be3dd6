"""Tables of the page as finished text: at most 200 rows, values that all rows share said once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from biaskit.common.wording import PEOPLE
from biaskit.measurement import measurement
from biaskit.report.content import Content
from biaskit.report.findings.finding import reasons_of
from biaskit.report.page import labels
from biaskit.report.questions import QuestionId
from biaskit.runs.collection import Model, Part
from biaskit.tables.query import Row, Tables, where
from biaskit.tables.schema import SCHEMAS

MOST_ROWS = 200
UNDEFINED = "–"
_WORDS_OF_A_LIST = 20
_MANY_MODELS = 3
_ABOUT = ("word", "occupation", "job", "words", "job_group", "quantity", "k", "level", "id", "model")
"""A table's first column: the first of these that it has."""
_OF_A_WORD = ("word", "model", "occupation", "origin", "gender", "z")
_LAST = ("measurement", "family", "reason")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of finished text."""

    label: str
    is_number: bool
    cells: Sequence[str]


@dataclass(frozen=True, slots=True)
class ListedTable:
    """A table on the page; `anchor` is its HTML id. Without columns it is only said why (`what`)."""

    name: str
    anchor: str
    question: QuestionId
    title: str
    what: str
    columns: Sequence[Column]
    same: Sequence[tuple[str, str]]  # label and value, the same in every row
    n_rows: int
    n_stored: int
    files: tuple[str, ...] = ()  # that hold all of it
    measured_with: str = ""
    part: str = ""  # its measurement and study, where there are several

    @property
    def rows(self) -> Iterator[tuple[tuple[Column, str], ...]]:
        """Each row as (column, cell) pairs."""
        for i in range(self.n_rows):
            yield tuple((column, column.cells[i]) for column in self.columns)


def list_tables(content: Content) -> list[ListedTable]:
    """List the tables between models, then those of each part in the order of the schema, then words."""
    tables = [*_public(content.between, 0, content.models)]
    for number, part in enumerate(content.parts, 1):
        label = f"{part.measurement}, {part.study}" if len(content.parts) > 1 else ""
        tables += (replace(table, part=label) for table in _public(part.tables, number, part.models, part))
        kind = measurement(part.measurement)
        question = kind.question
        for what, rows in ((kind.listed, part.templates), ("debiasing prompts", part.debiasing_prompts)):
            if rows:
                title = f"{what.capitalize()} of {part.study}"
                anchor = f"asked-{number}-{what.replace(' ', '-')}"
                tables.append(_listed(what, anchor, question, title, "", rows, len(rows)))
    words = []
    for word in content.words:
        for first in word.sentences[:1]:
            about = {column: getattr(word, column) for column in _OF_A_WORD}
            words.append(about | {"sentence": content.sentences[first]})
    if content.words:
        what = "Words of the marked-word lists, each with a sentence that uses it. Sentences may offend."
        n = len(content.words)
        tables.append(_listed("words", "words-in-context", "how", "Words in context", what, words, n))
    return tables


def _public(
    tables: Tables, number: int, models: Sequence[Model], part: Part | None = None
) -> Iterator[ListedTable]:
    """List the public tables of a part, or those between parts (number 0, no part), their tests first."""
    names = SCHEMAS if part else sorted(SCHEMAS, key=lambda name: name != "tests")
    for name in names:
        schema, stored = SCHEMAS[name], tables.get(name, ())
        if not stored or schema.not_on_page:
            continue
        rows = stored
        if name in ("marked_words", "group_words"):
            rows = [r for r in where(stored, method="calibrated") if (r.get("rank") or 0) <= _WORDS_OF_A_LIST]
        anchor = f"table-{number}-{name}"
        question = "models" if name == "tests" and part is None else schema.question
        title = schema.title.replace("{column}", f"“{stored[0].get('column')}”")
        files = [f"{run}/tables/{name}.csv" for run in part.runs] if part else [f"{name}.csv"]
        if all(_is_empty(row, schema.keys) for row in stored):
            what = f"not measured ({reasons_of(stored)})"
            yield ListedTable(name, anchor, question, title, what, (), (), 0, len(stored))
            continue
        table = _listed(name, anchor, question, title, schema.what, rows, len(stored))
        yield replace(table, files=tuple(files), measured_with=measured_with(models, stored))


def _is_empty(row: Row, keys: Sequence[str]) -> bool:
    """Tell whether a row has a reason and no number beside its keys."""
    for name, value in row.items():
        if isinstance(value, int | float) and name not in keys:
            return False
    return bool(row.get("reason"))


def _listed(
    name: str, anchor: str, question: QuestionId, title: str, what: str, rows: Sequence[Row], n_stored: int
) -> ListedTable:
    rows = rows[:MOST_ROWS]
    headers = list(dict.fromkeys(header for row in rows for header in row))
    about = next((h for h in _ABOUT if h in headers), headers[0] if headers else "")
    headers.sort(key=lambda header: (header != about, header in _LAST and 1 + _LAST.index(header)))
    columns, same = [], []
    for header in headers:
        values = [row.get(header) for row in rows]
        known = [value for value in values if value not in (None, "")]
        cells = [_shown(header, value) for value in values]
        is_number = all(isinstance(value, int | float) and not isinstance(value, bool) for value in known)
        if len(set(cells)) > 1 or (len(rows) == 1 and known):
            columns.append(Column(labels.column(header), is_number, cells))
        elif known:
            same.append((labels.column(header), cells[0]))
    return ListedTable(name, anchor, question, title, what, columns, same, len(rows), n_stored)


def _shown(header: str, value: Any) -> str:
    """Write a value: in words where the column has them, numbers with four digits (the file has all)."""
    if value is None or value == "" or value != value:
        return UNDEFINED
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}".replace("-", "−")
    if isinstance(value, list | tuple):
        return " ".join(map(str, value)) or UNDEFINED
    return labels.VALUES.get(header, {}).get(str(value), str(value))


def measured_with(models: Sequence[Model], rows: Sequence[Row]) -> str:
    """Say which models, prompt formats, estimators and vectors are behind rows."""
    labels_in_rows = set().union(*(_named_in(rows, column) for column in ("model", "model_a", "model_b")))
    behind = {m.label: m for m in models if m.label in labels_in_rows or not labels_in_rows}.values()
    parts = []
    for model in behind:
        tuning = "" if model.tuning == "unknown" else model.tuning
        about = filter(None, (model.fingerprint[:12], tuning, model.where))
        parts.append(f"{model.label} ({', '.join(about)})")
    if len(parts) > _MANY_MODELS:
        parts = [f"{len(parts)} models (see Models)"]
    for column, what in (("prompt_format", "format"), ("estimator", "estimator"), ("vectors", "vectors")):
        of_models = {str(getattr(model, column, "")) for model in behind} - {""}
        if kinds := _named_in(rows, column) or of_models:
            parts.append(f"{what} {', '.join(sorted(kinds))}")
    return " · ".join(parts)


def _named_in(rows: Iterable[Mapping[str, Any]], column: str) -> set[str]:
    return {str(row[column]) for row in rows if row.get(column)}


def gender(value: str | None) -> str:
    """Name a gender as readers know it."""
    return PEOPLE.get(value or "", value or "no gender")
