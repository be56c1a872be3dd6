"""The exact prompts of a run, one of each kind, as the rows hold them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from biaskit.report.content import PromptShown
from biaskit.runs.collection import Part

LONGEST_PROMPT = 20_000


def prompts_shown(
    part: Part, rows: Iterable[Mapping[str, Any]], names: Mapping[str, str]
) -> list[PromptShown]:
    """The first job's prompt, by name, for each model, template, instruction, setting and gender asked for.

    `rows`: as stored; `names`: label in the row → label in the report. Prompts that several models got
    alike stand once, with all their names.
    """
    chosen: dict[tuple[Any, ...], tuple[str, Mapping[str, Any]]] = {}
    for row in rows:
        label = names.get(str(row.get("model")))
        if label is None or not isinstance(row.get("prompt"), str):
            continue
        key = (label, *(row.get(name) for name in _DESIGN[part.engine]))
        if key not in chosen or _item(row) < chosen[key][0]:
            chosen[key] = (_item(row), {**row, "model": label})
    alike: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for key, (_, row) in chosen.items():
        asked = (*key[1:], row["prompt"][:LONGEST_PROMPT], row.get("system") or None)
        alike.setdefault(asked, []).append(row)
    return [_shown(part, same) for same in sorted(alike.values(), key=lambda same: _place(same[0]))]


_DESIGN = {
    "probe": ("bias_type", "template_id", "instruction_id", "setting", "prompt_form"),
    "personas": ("template_id", "specified_gender", "instruction_id", "setting", "prompt_form"),
}
"""The columns that tell prompts of one model apart, but for the item."""


def _item(row: Mapping[str, Any]) -> str:
    return str(row.get("job") or row.get("occupation") or "")


def _shown(part: Part, rows: Sequence[Mapping[str, Any]]) -> PromptShown:
    first, models = rows[0], sorted({str(row["model"]) for row in rows})
    return PromptShown(
        engine=part.engine,
        study=part.study,
        model=", ".join(models) if len(models) <= 3 else f"{len(models)} models",
        kind=str(first.get("bias_type") or f"template {first.get('template_id')}"),
        what=_what(first),
        form=str(first.get("prompt_form") or ""),
        prompt=first["prompt"][:LONGEST_PROMPT],
        system=first.get("system") or None,
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
    return ", ".join([*said, _item(row)])


def _place(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """In the order of the design; numbered templates by number, named ones after the instruction."""
    template = str(row.get("template_id"))
    numbers = (int(template) if template.isdecimal() else 0, row.get("instruction_id") or 0)
    return str(row.get("bias_type") or ""), numbers, _what(row), str(row["model"])
