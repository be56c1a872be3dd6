"""A study as it was asked, in the run's manifest: enough to make every table again without any other file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, cast

from biaskit.measures.probe.design import ProbeDesign, choose_contrast
from biaskit.records import Expression, as_record
from biaskit.runs.designs import describe_lists, read_study, sign_design
from biaskit.runs.manifest import Cells, draws_of, estimator_of
from biaskit.study.keys import ProbeStudy

_OF_PROMPTS = ("debiasing_place", "debiasing_position", "system_prompt", "thinking", "articles")


def describe_design(design: ProbeDesign) -> dict[str, Any]:
    """Describe everything that was asked, with items, templates and expressions in full."""
    sets, set_of_template = _sets_of(design)
    described = describe_lists(
        design,
        design.items,
        **({"pairs": [as_record(pair) for pair in design.pairs]} if design.pairs else {}),
        settings=list(design.settings),
        dialogue=asdict(design.dialogue) if design.dialogue else None,
        expression_sets=sets,
        expressions_of_template=set_of_template,
        groups=list(design.groups),
        contrast=list(design.contrast),
    )
    return described | ({"notes": list(design.notes)} if design.notes else {})


def _sets_of(design: ProbeDesign) -> tuple[list[list[list[str]]], dict[str, int]]:
    """List each different set of expressions once, and number the set of each template."""
    number_of: dict[tuple[Expression, ...], int] = {}
    by_identity: dict[int, int] = {}  # templates share a set, and its hash takes long
    number_of_template: dict[str, int] = {}
    for (bias_type, template_id), expressions in design.expressions.items():
        if id(expressions) not in by_identity:
            by_identity[id(expressions)] = number_of.setdefault(expressions, len(number_of))
        number_of_template[f"{bias_type}:{template_id}"] = by_identity[id(expressions)]
    return [[[e.group, e.text] for e in expressions] for expressions in number_of], number_of_template


def design_signature(design: ProbeDesign, models: Mapping[str, Mapping[str, Any]]) -> str:
    """Write the line that stands under every table: each choice that changes one of its numbers."""
    study = design.study
    drawn = any(draws_of(entry) is not None for entry in models.values())
    continued = [entry["continuations"] for entry in models.values() if entry.get("continuations")]
    lengths = {entry["estimator"]["max_new_tokens"] for entry in continued}
    shown = {
        "estimator": ",".join(sorted({estimator_of(entry) for entry in models.values()})),
        "max_samples_per_prompt": str(study.max_samples_per_prompt) if drawn else "",
        "continuations": ",".join(sorted(f"{n} tokens" for n in lengths)),
        **{name: getattr(study, name) for name in ("word_boundary", "on_prefix", "articles", "interval")},
        "seed": str(study.seed),
        "contrast": "-".join(design.contrast),
    }
    return sign_design(study, models, describe_design(design)["digest"], shown)


def compatibility(design: ProbeDesign) -> dict[str, Any]:
    """List what must agree for two commands to share one folder: each choice that changes a cell's key."""
    study = design.study
    sets, set_of_template = _sets_of(design)
    texts = {f"{t.bias_type} template {t.id}": [t.question, t.opening] for t in design.templates}
    dialogue = {"dialogue": asdict(design.dialogue)} if design.dialogue else {}
    instructions = {f"instruction {i.id}": i.text for i in design.instructions if i is not None}
    articles = {item.name: item.article for item in design.items} if study.articles == "grammatical" else {}
    frames = {f"{t.bias_type} template {t.id}": t.frame for t in design.templates if t.frame}
    return {
        "study": study.name,
        "slot": design.slot,
        **{name: getattr(study, name) for name in _OF_PROMPTS},
        **({"article of": articles} if articles else {}),
        **({"frame of": frames} if frames else {}),
        "word_boundary": study.word_boundary,
        "groups": list(design.groups),
        "texts": {**texts, **instructions, **dialogue},
        "expressions": {name: sets[number] for name, number in set_of_template.items()},
    }


def read_design(resolved: Mapping[str, Any], overrides: Mapping[str, Any] | None = None) -> ProbeDesign:
    """Read the design that a manifest describes; `overrides` may set analysis keys only."""
    stored, study = Cells.model_validate(resolved), cast("ProbeStudy", read_study(resolved, overrides))
    sets = [tuple(Expression(*pair) for pair in pairs) for pairs in stored.expression_sets]
    set_of_template = stored.expressions_of_template
    return ProbeDesign(
        study=study,
        items=stored.items,
        slot=stored.slot,
        templates=stored.templates,
        instructions=stored.instructions,
        settings=stored.settings,
        dialogue=stored.dialogue,
        expressions={
            (t.bias_type, t.id): sets[set_of_template[f"{t.bias_type}:{t.id}"]] for t in stored.templates
        },
        groups=stored.groups,
        contrast=choose_contrast(study, stored.groups),
        sources=stored.sources,
        pairs=stored.pairs,
        notes=stored.notes,
    )
