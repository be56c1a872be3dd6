"""Collect the exact prompts of a run, one of each kind, from its rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from biaskit.measurement import measurement
from biaskit.report.content import PromptShown
from biaskit.runs.collection import Part
from biaskit.tables.query import Row

LONGEST_PROMPT = 20_000


class PromptKinds:
    """The first job's prompt for each model, template, debiasing prompt, context and gender asked for.

    A prompt that several models got is shown once, with all their names. `names`: label in the rows → label
    in the report.
    """

    def __init__(self, part: Part, names: Mapping[str, str]) -> None:
        self._part, self._names = part, names
        self._first: dict[tuple[Any, ...], Mapping[str, Any]] = {}  # (model, *kind) → row

    def noting(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Pass rows on, keeping the first of each kind."""
        shown = measurement(self._part.measurement).prompts
        for row in rows:
            label = self._names.get(str(row.get("model")))
            if shown and label is not None and isinstance(row.get("prompt"), str):
                kind = (label, *map(row.get, _DESIGN))
                first = self._first.get(kind)
                if first is None or _item(row) < _item(first):
                    self._first[kind] = row
            yield row

    def shown(self) -> Iterator[PromptShown]:
        """List the prompts in the order of the design."""
        alike: dict[tuple[Any, ...], list[tuple[str, Row]]] = {}
        for (label, *kind), row in self._first.items():
            alike.setdefault((*kind, row["prompt"], row.get("system")), []).append((label, row))
        for same in sorted(alike.values(), key=_place):
            models = sorted({label for label, _ in same})
            row = min(same, key=itemgetter(0))[1]
            asked = str(row.get("bias_type") or _template(row) or self._part.study)
            named = ", ".join(models) if len(models) <= 3 else f"{len(models)} models"
            prompt_format, prompt = str(row.get("prompt_format") or ""), row["prompt"][:LONGEST_PROMPT]
            place = (self._part.measurement, self._part.study, named, asked, _what(row))
            yield PromptShown(*place, prompt_format, prompt, row.get("system") or None)


_DESIGN = ("bias_type", "template_id", "requested_gender", "debiasing_id", "context", "prompt_format")
"""Fields of a row that tell kinds of prompts apart; a row may lack some."""


def _item(row: Row) -> str:
    return str(row.get("job") or row.get("occupation") or "")


def _template(row: Row) -> str:
    return f"template {row['template_id']}" if row.get("template_id") is not None else ""


def _what(row: Row) -> str:
    """Name the place of a prompt in the design, such as "explicit, template 3, debiasing prompt 1, nurse"."""
    parts = [str(row["bias_type"])] if row.get("bias_type") else []
    if _template(row):
        parts.append(_template(row))
    if row.get("debiasing_id"):
        parts.append(f"debiasing prompt {row['debiasing_id']}")
    if row.get("context") == "dialogue":
        parts.append("dialogue")
    if row.get("requested_gender"):
        parts.append(f"requested: {row['requested_gender']}")
    return ", ".join([*parts, _item(row)])


def _place(same: Sequence[tuple[str, Row]]) -> tuple[Any, ...]:
    """Sort key: templates by number where they have one, else by name."""
    label, row = min(same, key=itemgetter(0))
    template = str(row.get("template_id"))
    number = int(template) if template.isdecimal() else -1
    debiasing = row.get("debiasing_id") or 0
    return (str(row.get("bias_type") or ""), number, debiasing, _what(row), label)
