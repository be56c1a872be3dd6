"""A study as it was asked, in the run's manifest: enough to make every table again without any other file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from biaskit.errors import RunError, StudyError, nearest
from biaskit.probe.design import ProbeDesign, choose_contrast
from biaskit.provenance import digest, signature, versions
from biaskit.records import Dialogue, Expression, Instruction, Item, Template, Turn
from biaskit.runs.manifest import estimator_of
from biaskit.study.config import build_study
from biaskit.study.keys import PROBE_ANALYSIS_KEYS as ANALYSIS_KEYS
from biaskit.study.keys import ProbeStudy


def describe_design(design: ProbeDesign) -> dict[str, Any]:
    """Everything that was asked, with items, templates and expressions in full."""
    sets: list[list[list[str]]] = []
    which: dict[str, int] = {}
    for (bias_type, number), expressions in design.expressions.items():
        listed = [[e.group, e.text] for e in expressions]
        if listed not in sets:
            sets.append(listed)
        which[f"{bias_type}:{number}"] = sets.index(listed)
    content: dict[str, Any] = {
        "study": design.study.model_dump(mode="json"),
        "slot": design.slot,
        "items": [asdict(item) for item in design.items],
        "templates": [asdict(template) for template in design.templates],
        "instructions": [None if i is None else asdict(i) for i in design.instructions],
        "settings": list(design.settings),
        "dialogue": asdict(design.dialogue) if design.dialogue else None,
        "expression_sets": sets,
        "expressions_of_template": which,
        "groups": list(design.groups),
        "contrast": list(design.contrast),
    }
    return {**content, "digest": design_digest(content), "sources": design.sources}


def design_digest(content: Mapping[str, Any]) -> str:
    """What was asked, in short: neither where a list lies nor how the answers are analysed."""
    asked = {name: value for name, value in content.items() if name not in ("digest", "sources", "contrast")}
    left_out = ANALYSIS_KEYS | {"models", "jobs", "templates", "instructions"}
    asked["study"] = {name: value for name, value in content["study"].items() if name not in left_out}
    asked["study"]["expressions"] = None  # stands in full under expression_sets
    return digest(asked)


def design_signature(design: ProbeDesign, models: Mapping[str, Mapping[str, Any]]) -> str:
    """The line that stands under every table: each choice that changes one of its numbers."""
    study, known = design.study, versions()
    forms = sorted({entry["prompt_form"] for entry in models.values()})
    return signature(
        {
            "biaskit": known.get("biaskit", ""),
            "study": study.name,
            "models": ",".join(f"{label}@{entry['fingerprint'][:12]}" for label, entry in models.items()),
            "form": ",".join(forms),
            "estimator": ",".join(sorted({estimator_of(entry) for entry in models.values()})),
            "word_boundary": study.word_boundary,
            "on_prefix": study.on_prefix,
            "articles": study.articles,
            "interval": study.interval,
            "question": describe_design(design)["digest"][:12],
            "contrast": "-".join(design.contrast),
        }
    )


def compatibility(design: ProbeDesign) -> dict[str, Any]:
    """What must agree for two commands to share one folder: every choice that changes a key.

    Which jobs, templates, instructions or settings are asked is not in it: those only add keys.
    """
    study = design.study
    texts = {f"{t.bias_type} template {t.id}": [t.question, t.opening] for t in design.templates}
    dialogue = {"dialogue": asdict(design.dialogue)} if design.dialogue else {}
    listed = {f"instruction {i.id}": i.text for i in design.instructions if i is not None}
    return {
        "study": study.name,
        "slot": design.slot,
        "instruction_place": study.instruction_place,
        "instruction_position": study.instruction_position,
        "system_prompt": study.system_prompt,
        "articles": study.articles,
        "word_boundary": study.word_boundary,
        "groups": list(design.groups),
        "texts": {**texts, **listed, **dialogue},
        "expressions": {
            f"{bias_type}:{number}": [[e.group, e.text] for e in expressions]
            for (bias_type, number), expressions in design.expressions.items()
        },
    }


def read_design(resolved: Mapping[str, Any], overrides: Mapping[str, Any] | None = None) -> ProbeDesign:
    """The question a manifest describes; `overrides` may set analysis keys only."""
    for dotted in overrides or {}:
        top = dotted.split(".")[0]
        if top not in ANALYSIS_KEYS:
            raise StudyError(
                f"{dotted} changes what was asked; `analyze` takes {', '.join(sorted(ANALYSIS_KEYS))}."
                f"{nearest(top, ANALYSIS_KEYS)}"
            )
    try:
        study = build_study(resolved["study"], overrides or {}, "analysis options")
        assert isinstance(study, ProbeStudy)
        sets = [tuple(Expression(*e) for e in listed) for listed in resolved["expression_sets"]]
        dialogue = resolved["dialogue"]
        groups = tuple(resolved["groups"])
        contrast = choose_contrast(study, groups)
        return ProbeDesign(
            study=study,
            slot=resolved["slot"],
            items=tuple(Item(**item) for item in resolved["items"]),
            templates=tuple(Template(**template) for template in resolved["templates"]),
            instructions=tuple(None if i is None else Instruction(**i) for i in resolved["instructions"]),
            settings=tuple(resolved["settings"]),
            dialogue=Dialogue(dialogue["opening_line"], tuple(Turn(**t) for t in dialogue["turns"]))
            if dialogue
            else None,
            expressions={
                (name.split(":")[0], int(name.split(":")[1])): sets[which]
                for name, which in resolved["expressions_of_template"].items()
            },
            groups=groups,
            contrast=contrast,
            sources=dict(resolved["sources"]),
        )
    except (AttributeError, KeyError, TypeError, IndexError, ValueError) as error:
        raise RunError(f"The manifest's study cannot be read ({error!r}). Restore manifest.json.") from error
