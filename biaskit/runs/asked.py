"""What a run asked, and what a shipped study asks, in one comparable form (`runs/claims.py` compares)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

from biaskit.corpora.loaders import (
    load_dialogue,
    load_expression_sets,
    load_instructions,
    load_items,
    load_templates,
    render_forms,
)
from biaskit.corpora.prompts import load_persona_prompts
from biaskit.records import BiasType, Item, Setting
from biaskit.study.config import load_study, select
from biaskit.study.keys import Choice, InstructionChoice, PersonasStudy, ProbeStudy, Study

_PROBE_KEYS = ("articles", "system_prompt", "instruction_position", "word_boundary")
_TEXT_KEYS = ("task", "articles", "system_prompt", "temperature", "top_p", "fill")
_AMOUNTS = ("per_gender", "max_new_tokens")

_EXPRESSIONS = "corpus:expressions/sets.toml"
_RELEASED = {
    "occugender-explicit": "occugender-released-explicit",
    "pronoun-subject": "occugender-released-implicit",
}
"""The expressions that a paper prints → those that its released scripts score: both are the paper's."""


@dataclass(frozen=True, slots=True)
class Slice:
    """As much of a shipped study as a table lays out."""

    study: str
    bias_types: tuple[BiasType, ...] = ("explicit", "implicit")
    settings: tuple[Setting, ...] = ("plain", "dialogue")
    instructions: bool = True


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, as far as a slice goes."""

    lists: Mapping[str, frozenset[Any]]  # of which a part may have been asked
    fixed: Mapping[str, Any]  # what must be the same
    amounts: Mapping[str, float] = field(default_factory=dict)  # of which less may have been asked
    wording: str = ""  # which of a paper's wordings


def asked_in(resolved: Mapping[str, Any], part: Slice) -> Asked | None:
    """What a run asked, from its manifest; None where it is no run of the slice's engine."""
    engine = resolved["study"]["engine"]
    if resolved.get("imported") or engine != _shipped(part.study).engine:
        return None
    return _cells(resolved, part) if engine == "probe" else _texts(resolved)


@cache
def asked_by(part: Slice, wording: str) -> Asked:
    """What a shipped study asks; `wording`: of prompts for texts."""
    study = _shipped(part.study)
    return _papers_cells(study, part) if isinstance(study, ProbeStudy) else _papers_texts(study, wording)


@cache
def _shipped(name: str) -> Study:
    return load_study(name)


# --- the probe ---------------------------------------------------------------------------------------


def _cells(resolved: Mapping[str, Any], part: Slice) -> Asked:
    study, settings = resolved["study"], [one for one in resolved["settings"] if one in part.settings]
    asked = [_setting(one, resolved["dialogue"]) for one in settings]
    which, sets, released = resolved["expressions_of_template"], resolved["expression_sets"], _released_sets()
    templates = []
    for one in resolved["templates"]:
        if one["bias_type"] in part.bias_types:
            forms = frozenset(map(tuple, sets[which[f"{one['bias_type']}:{one['id']}"]]))
            templates.append((*_prompt(one), released.get(forms, forms)))
    said = [one["text"] if one else None for one in resolved["instructions"]]
    items = [_item(item) for item in resolved["items"]]
    lists = _lists(part, jobs=items, templates=templates, settings=asked, instructions=said)
    return Asked(lists, _fixed(study, part))


def _papers_cells(study: ProbeStudy, part: Slice) -> Asked:
    found = load_templates(study.templates.source).templates
    ids = sorted({one.id for one in found})
    chosen = set(select(study.templates.select, [], ids, ids, "templates"))
    settings = [one for one in part.settings if study.setting in (one, "both")]
    templates = []
    for one in found:
        if one.id in chosen and one.bias_type in part.bias_types:
            name = one.expressions or getattr(study.expressions, one.bias_type)
            templates.append((*_prompt(asdict(one)), _forms(study.expressions.source, name)))
    items = [_item(asdict(item)) for item in _chosen_items(study.jobs)]
    said = _said(study.instructions)
    dialogue = asdict(load_dialogue(study.dialogue))
    asked = [_setting(one, dialogue) for one in settings]
    lists = _lists(part, jobs=items, templates=templates, settings=asked, instructions=said)
    return Asked(lists, _fixed(study.model_dump(), part))


def _lists(part: Slice, **lists: Iterable[Any]) -> dict[str, frozenset[Any]]:
    return {
        name: frozenset(own) for name, own in lists.items() if name != "instructions" or part.instructions
    }


def _setting(setting: str, dialogue: Any) -> tuple[Any, ...]:
    """A setting, and every word of the conversation that it puts before the question."""
    if setting == "plain":
        return (setting,)
    turns = tuple((turn["question"], turn["answer"]) for turn in dialogue["turns"])
    return setting, dialogue["opening_line"], turns


def _fixed(study: Mapping[str, Any], part: Slice) -> dict[str, Any]:
    """The keys that change a prompt or a share, as far as the slice's cells depend on them."""
    own = {"instruction_place": study["instruction_place"]} if part.instructions else {}
    return {**own, **{name: study[name] for name in _PROBE_KEYS}}


def _prompt(template: Mapping[str, Any]) -> tuple[str, str, str]:
    return template["bias_type"], template["question"], template["opening"]


@cache  # a shipped study's templates name a few sets a hundred times
def _forms(source: str, name: str) -> frozenset[tuple[str, str]]:
    return frozenset((one.group, one.text) for one in render_forms(load_expression_sets(source)[name]))


@cache
def _released_sets() -> dict[frozenset[Any], frozenset[Any]]:
    """The forms that released scripts score → those that the paper prints for them."""
    return {_forms(_EXPRESSIONS, r): _forms(_EXPRESSIONS, printed) for printed, r in _RELEASED.items()}


# --- texts -------------------------------------------------------------------------------------------


def _texts(resolved: Mapping[str, Any]) -> Asked:
    study = resolved["study"]
    return _of_texts(
        study,
        [_item(item) for item in resolved["items"]],
        [_persona(one) for one in resolved["prompts"]] or [_prompt(one) for one in resolved["templates"]],
        [one["text"] if one else None for one in resolved["instructions"]],
    )


def _papers_texts(study: PersonasStudy, wording: str) -> Asked:
    source = study.templates.source
    if study.task == "persona":
        listed = [asdict(one) for one in load_persona_prompts(source) if one.wording in (wording, None)]
        prompts = [_persona(one) for one in listed]
    else:
        prompts = [_prompt(asdict(one)) for one in load_templates(source).templates if one.opening]
    items = [_item(asdict(item)) for item in _chosen_items(study.occupations)]
    return _of_texts(study.model_dump(), items, prompts, _said(study.instructions))


def _of_texts(
    study: Mapping[str, Any], items: Iterable[Any], prompts: Iterable[Any], said: Iterable[Any]
) -> Asked:
    lists = {"occupations": items, "prompts": prompts, "instructions": said, "specified": study["specified"]}
    return Asked(
        {name: frozenset(own) for name, own in lists.items() if own},
        {name: study[name] for name in _TEXT_KEYS},
        {name: study[name] for name in _AMOUNTS},
        study["wording"],
    )


def _persona(prompt: Mapping[str, Any]) -> tuple[Any, ...]:
    genders = tuple(map(tuple, prompt["genders"]))
    return prompt["name"], prompt["form"], prompt["open"], prompt["specified"], genders


# --- both --------------------------------------------------------------------------------------------


def _item(item: Mapping[str, Any]) -> tuple[Any, ...]:
    return item["name"], item["group"], item["labour_female_share"]


def _chosen_items(choice: Choice) -> list[Item]:
    listed = load_items(choice.source)
    return select(choice.select, [one.name for one in listed], range(1, len(listed) + 1), listed, "items")


def _said(choice: InstructionChoice) -> list[str | None]:
    """The texts of a study's instructions; None is none, which is always among them."""
    if choice.source is None or choice.select == "none":
        return [None]
    return [None, *(one.text for one in load_instructions(choice.source))]
