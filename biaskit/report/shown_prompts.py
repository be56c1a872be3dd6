"""The exact prompts of a run, one of each kind, as the rows hold them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from biaskit.report.content import PromptShown
from biaskit.runs.collection import Part

LONGEST_PROMPT = 20_000


class PromptsToShow:
    """Collects the prompts of a run from its stored rows, added one by one.

    Of each model, template, instruction, setting and gender asked for it keeps the prompt of the first job by
    name; prompts that several models got alike stand once, with all their names. `names`: label in the row →
    label in the report.
    """

    def __init__(self, part: Part, names: Mapping[str, str]) -> None:
        self._part, self._names = part, names
        self._found: dict[tuple[Any, ...], tuple[str, PromptShown]] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        """Look at a row as it is stored."""
        label = self._names.get(str(row.get("model")))
        if label is None or not isinstance(row.get("prompt"), str):
            return
        kind = (label, *(row.get(name) for name in _KINDS[self._part.engine]))
        item = str(row.get("job") or row.get("occupation") or "")
        if kind not in self._found or item < self._found[kind][0]:
            self._found[kind] = (item, _shown(self._part, label, row))

    def shown(self) -> list[PromptShown]:
        """What the rows so far bring."""
        return list(_together(self._found.values()))


_KINDS = {
    "probe": ("bias_type", "template_id", "instruction_id", "setting", "prompt_form"),
    "personas": ("template_id", "specified_gender", "instruction_id", "setting", "prompt_form"),
}


def _shown(part: Part, label: str, row: Mapping[str, Any]) -> PromptShown:
    return PromptShown(
        engine=part.engine,
        study=part.study,
        model=label,
        what=_what(row),
        form=str(row.get("prompt_form") or ""),
        prompt=row["prompt"][:LONGEST_PROMPT],
        system=row.get("system") or None,
    )


def _what(row: Mapping[str, Any]) -> str:
    """Where the prompt stands in the design, such as "explicit, template 3, instruction 1, nurse"."""
    said = [str(row["bias_type"])] if row.get("bias_type") else []
    said.append(f"template {row.get('template_id')}")
    if row.get("instruction_id"):
        said.append(f"instruction {row['instruction_id']}")
    if row.get("setting") == "dialogue":
        said.append("dialogue")
    if row.get("specified_gender"):
        said.append(f"asked for: {row['specified_gender']}")
    return ", ".join([*said, str(row.get("job") or row.get("occupation") or "")])


def _together(found: Iterable[tuple[str, PromptShown]]) -> Iterator[PromptShown]:
    """In the order of the design; models that got the same prompt under one entry."""
    alike: dict[tuple[Any, ...], list[PromptShown]] = {}
    for _, one in found:
        alike.setdefault((one.what.rpartition(", ")[0], one.form, one.prompt, one.system), []).append(one)
    for ones in sorted(alike.values(), key=lambda ones: _place(ones[0])):
        first, models = ones[0], sorted({one.model for one in ones})
        listed = ", ".join(models) if len(models) <= 3 else f"{len(models)} models"
        yield PromptShown(
            first.engine, first.study, listed, first.what, first.form, first.prompt, first.system
        )


def _place(one: PromptShown) -> tuple[Any, ...]:
    parts = one.what.split(", ")
    numbers = [int(word) for part in parts for word in part.split() if word.isdecimal()]
    return (
        one.engine,
        parts[0] if parts[0] in ("explicit", "implicit") else "",
        numbers,
        one.what,
        one.model,
    )
