"""A study as it was asked, in the run's manifest: enough to make every table again without any other file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, cast

from biaskit.probe.design import ProbeDesign, choose_contrast
from biaskit.records import Expression
from biaskit.runs.designs import describe_lists, read_study, sign_design
from biaskit.runs.manifest import Cells, draws_of, estimator_of
from biaskit.study.keys import ProbeStudy


def describe_design(design: ProbeDesign) -> dict[str, Any]:
    """Everything that was asked, with items, templates and expressions in full."""
    sets, which = _sets_of(design)
    return describe_lists(
        design,
        design.items,
        settings=list(design.settings),
        dialogue=asdict(design.dialogue) if design.dialogue else None,
        expression_sets=sets,
        expressions_of_template=which,
        groups=list(design.groups),
        contrast=list(design.contrast),
    )


def _sets_of(design: ProbeDesign) -> tuple[list[list[list[str]]], dict[str, int]]:
    """Each different set of expressions, once, and which of them a template has."""
    number_of: dict[tuple[Expression, ...], int] = {}
    known: dict[int, int] = {}  # the same by identity: templates share a set, and its hash takes long
    which: dict[str, int] = {}
    for (bias_type, number), expressions in design.expressions.items():
        if id(expressions) not in known:
            known[id(expressions)] = number_of.setdefault(expressions, len(number_of))
        which[f"{bias_type}:{number}"] = known[id(expressions)]
    return [[[e.group, e.text] for e in expressions] for expressions in number_of], which


def design_signature(design: ProbeDesign, models: Mapping[str, Mapping[str, Any]]) -> str:
    """The line that stands under every table: each choice that changes one of its numbers."""
    study = design.study
    drawn = any(draws_of(entry) is not None for entry in models.values())
    hows = [how for entry in models.values() if (how := entry.get("continuations"))]
    continued = {how["estimator"]["max_new_tokens"] for how in hows}
    shown = {
        "estimator": ",".join(sorted({estimator_of(entry) for entry in models.values()})),
        "max_draws_per_cell": str(study.max_draws_per_cell) if drawn else "",
        "continuations": ",".join(sorted(f"{n} tokens" for n in continued)),
        "word_boundary": study.word_boundary,
        "on_prefix": study.on_prefix,
        "articles": study.articles,
        "interval": study.interval,
        "seed": str(study.seed),
        "contrast": "-".join(design.contrast),
    }
    return sign_design(study, models, describe_design(design)["digest"], shown)


def compatibility(design: ProbeDesign) -> dict[str, Any]:
    """What must agree for two commands to share one folder: every choice that changes a key.

    Which jobs, templates, instructions or settings are asked is not in it: those only add keys.
    """
    study = design.study
    sets, which = _sets_of(design)
    texts = {f"{t.bias_type} template {t.id}": [t.question, t.opening] for t in design.templates}
    dialogue = {"dialogue": asdict(design.dialogue)} if design.dialogue else {}
    listed = {f"instruction {i.id}": i.text for i in design.instructions if i is not None}
    stated = {item.name: item.article for item in design.items} if study.articles == "grammatical" else {}
    frames = {f"{t.bias_type} template {t.id}": t.frame for t in design.templates if t.frame}
    return {
        "study": study.name,
        "slot": design.slot,
        "instruction_place": study.instruction_place,
        "instruction_position": study.instruction_position,
        "system_prompt": study.system_prompt,
        "articles": study.articles,
        **({"article of": stated} if stated else {}),
        **({"frame of": frames} if frames else {}),
        "word_boundary": study.word_boundary,
        "groups": list(design.groups),
        "texts": {**texts, **listed, **dialogue},
        "expressions": {name: sets[number] for name, number in which.items()},
    }


def read_design(resolved: Mapping[str, Any], overrides: Mapping[str, Any] | None = None) -> ProbeDesign:
    """The design that a manifest describes; `overrides` may set analysis keys only."""
    stored, study = Cells.model_validate(resolved), cast("ProbeStudy", read_study(resolved, overrides))
    sets = [tuple(Expression(*pair) for pair in pairs) for pairs in stored.expression_sets]
    which = stored.expressions_of_template
    return ProbeDesign(
        study=study,
        items=stored.items,
        slot=stored.slot,
        templates=stored.templates,
        instructions=stored.instructions,
        settings=stored.settings,
        dialogue=stored.dialogue,
        expressions={(t.bias_type, t.id): sets[which[f"{t.bias_type}:{t.id}"]] for t in stored.templates},
        groups=stored.groups,
        contrast=choose_contrast(study, stored.groups),
        sources=stored.sources,
    )
