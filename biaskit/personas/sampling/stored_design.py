"""A study of the generation engine in the run's manifest: enough to make every table again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from biaskit.corpora.prompts import PersonaPrompt
from biaskit.errors import RunError, StudyError, nearest
from biaskit.personas.sampling.design import PersonasDesign
from biaskit.provenance import digest, signature, versions
from biaskit.records import Instruction, Item, Template
from biaskit.study.config import build_study
from biaskit.study.keys import PERSONAS_ANALYSIS_KEYS, PersonasStudy


def describe_design(design: PersonasDesign) -> dict[str, Any]:
    """Everything that was asked, with occupations and prompts in full."""
    content: dict[str, Any] = {
        "study": design.study.model_dump(mode="json"),
        "items": [asdict(item) for item in design.occupations],
        "prompts": [asdict(prompt) for prompt in design.prompts],
        "templates": [asdict(template) for template in design.templates],
        "slot": design.slot,
        "instructions": [None if i is None else asdict(i) for i in design.instructions],
    }
    return {**content, "digest": design_digest(content), "sources": design.sources}


def design_digest(content: Mapping[str, Any]) -> str:
    """What was asked, in short: neither where a list lies nor how the texts are analysed."""
    asked = {name: value for name, value in content.items() if name not in ("digest", "sources")}
    left_out = PERSONAS_ANALYSIS_KEYS | {"models", "occupations", "templates", "instructions"}
    asked["study"] = {name: value for name, value in content["study"].items() if name not in left_out}
    return digest(asked)


def compatibility(design: PersonasDesign) -> dict[str, Any]:
    """What must agree for two commands to share one folder: every choice that changes a key or a round.

    Which occupations, prompts or instructions are asked, and how many texts at most, is not in it: those
    only add keys.
    """
    study = design.study
    texts: dict[str, Any] = {
        f"{p.name}, {p.form}": [p.open, p.specified, [list(pair) for pair in p.genders]]
        for p in design.prompts
    }
    texts |= {f"template {t.id}": [t.question, t.opening] for t in design.templates}
    texts |= {f"instruction {i.id}": i.text for i in design.instructions if i is not None}
    return {
        "study": study.name,
        "task": study.task,
        "articles": study.articles,
        "system_prompt": study.system_prompt,
        "sampling": asdict(design.sampling),
        "seed": study.seed,
        "texts": texts,
    }


def design_signature(design: PersonasDesign, models: Mapping[str, Mapping[str, Any]], **analysis: str) -> str:
    """The line that stands under every table: each choice that changes one of its numbers."""
    study, known = design.study, versions()
    forms = sorted({str(entry["prompt_form"]) for entry in models.values()})
    return signature(
        {
            "biaskit": known.get("biaskit", ""),
            "study": study.name,
            "models": ",".join(f"{label}@{entry['fingerprint'][:12]}" for label, entry in models.items()),
            "form": ",".join(forms),
            "n": "" if study.name == "texts" else str(study.per_gender),
            "seed": str(study.seed),
            "variant": study.variant,
            **analysis,
            "question": describe_design(design)["digest"][:12],
        }
    )


def read_design(resolved: Mapping[str, Any], overrides: Mapping[str, Any] | None = None) -> PersonasDesign:
    """The question a manifest describes; `overrides` may set analysis keys only."""
    for dotted in overrides or {}:
        top = dotted.split(".")[0]
        if top not in PERSONAS_ANALYSIS_KEYS:
            raise StudyError(
                f"{dotted} changes what was asked; `analyze` takes"
                f" {', '.join(sorted(PERSONAS_ANALYSIS_KEYS))}.{nearest(top, PERSONAS_ANALYSIS_KEYS)}"
            )
    try:
        study = build_study(resolved["study"], overrides or {}, "analysis options")
        assert isinstance(study, PersonasStudy)
        return PersonasDesign(
            study=study,
            occupations=tuple(Item(**item) for item in resolved["items"]),
            prompts=tuple(
                PersonaPrompt(**{**p, "genders": tuple(tuple(pair) for pair in p["genders"])})
                for p in resolved["prompts"]
            ),
            templates=tuple(Template(**template) for template in resolved["templates"]),
            slot=resolved["slot"],
            instructions=tuple(None if i is None else Instruction(**i) for i in resolved["instructions"]),
            sources=dict(resolved["sources"]),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RunError(f"The manifest's study cannot be read ({error!r}). Restore manifest.json.") from error
