"""A study of the generation engine in the run's manifest: enough to make every table again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from biaskit.config import build_study
from biaskit.errors import RunError, StudyError, nearest
from biaskit.personas.questions import Questions
from biaskit.prompts import PersonaPrompt
from biaskit.provenance import digest, signature, versions
from biaskit.records import Instruction, Item, Template
from biaskit.studies import PERSONAS_ANALYSIS_KEYS, PersonasStudy


def describe_question(questions: Questions) -> dict[str, Any]:
    """Everything that was asked, with occupations and prompts in full."""
    content: dict[str, Any] = {
        "study": questions.study.model_dump(mode="json"),
        "items": [asdict(item) for item in questions.occupations],
        "prompts": [asdict(prompt) for prompt in questions.prompts],
        "templates": [asdict(template) for template in questions.templates],
        "slot": questions.slot,
        "instructions": [None if i is None else asdict(i) for i in questions.instructions],
    }
    return {**content, "digest": question_digest(content), "sources": questions.sources}


def question_digest(content: Mapping[str, Any]) -> str:
    """What was asked, in short: neither where a list lies nor how the texts are analysed."""
    asked = {name: value for name, value in content.items() if name not in ("digest", "sources")}
    left_out = PERSONAS_ANALYSIS_KEYS | {"models", "occupations", "templates", "instructions"}
    asked["study"] = {name: value for name, value in content["study"].items() if name not in left_out}
    return digest(asked)


def identity_of_question(questions: Questions) -> dict[str, Any]:
    """What must agree for two commands to share one folder: every choice that changes a key or a round.

    Which occupations, prompts or instructions are asked, and how many texts at most, is not in it: those
    only add keys.
    """
    study = questions.study
    texts: dict[str, Any] = {
        f"{p.name}, {p.form}": [p.open, p.specified, [list(pair) for pair in p.genders]]
        for p in questions.prompts
    }
    texts |= {f"template {t.id}": [t.question, t.opening] for t in questions.templates}
    texts |= {f"instruction {i.id}": i.text for i in questions.instructions if i is not None}
    return {
        "study": study.name,
        "task": study.task,
        "articles": study.articles,
        "system_prompt": study.system_prompt,
        "sampling": asdict(questions.sampling),
        "seed": study.seed,
        "texts": texts,
    }


def sign(questions: Questions, models: Mapping[str, Mapping[str, Any]], **analysis: str) -> str:
    """The line that stands under every table: each choice that changes one of its numbers."""
    study, known = questions.study, versions()
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
            "question": describe_question(questions)["digest"][:12],
        }
    )


def read_question(resolved: Mapping[str, Any], overrides: Mapping[str, Any] | None = None) -> Questions:
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
        return Questions(
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
