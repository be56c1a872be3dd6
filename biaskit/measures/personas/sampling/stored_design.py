"""A study of the generation engine in the run's manifest: enough to make every table again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, cast

from biaskit.common.provenance import digest
from biaskit.measures.personas.sampling.design import PersonasDesign
from biaskit.runs.designs import describe_lists, read_study, sign_design
from biaskit.runs.manifest import Texts
from biaskit.study.keys import PersonasStudy


def describe_design(design: PersonasDesign) -> dict[str, Any]:
    """Describe everything that was asked, with occupations and prompts in full."""
    return describe_lists(design, design.occupations, prompts=[asdict(prompt) for prompt in design.prompts])


def compatibility(design: PersonasDesign) -> dict[str, Any]:
    """Collect what must agree to share one folder: what changes a key or a round, not what only adds keys."""
    study = design.study
    texts: dict[str, Any] = {
        f"{p.name}, {p.form}": [p.open, p.specified, [list(pair) for pair in p.genders]]
        for p in design.prompts
    }
    texts |= {f"template {t.id}": [t.question, t.opening] for t in design.templates}
    texts |= {f"instruction {i.id}": i.text for i in design.instructions if i is not None}
    stated = {name: getattr(study, name) for name in ("task", "articles", "system_prompt", "thinking")}
    sampling = asdict(design.sampling)
    return {"study": study.name, **stated, "sampling": sampling, "seed": study.seed, "texts": texts}


def design_signature(design: PersonasDesign, models: Mapping[str, Mapping[str, Any]], **analysis: str) -> str:
    """Write the line under every table; `analysis`: what only an analysis knows, as a digest of vectors."""
    study = design.study
    shown = {
        "n": "" if study.name == "texts" else str(study.per_gender),
        "seed": str(study.seed),
        "variant": study.variant,
        **analysis,
    }
    return sign_design(study, models, describe_design(design)["digest"], shown)


def signed_groups(column: str | None) -> dict[str, str]:
    """Sign the column of groups by its digest: that line cannot hold free text."""
    return {} if column is None else {"groups": digest(column)[:12]}


def read_design(resolved: Mapping[str, Any], overrides: Mapping[str, Any] | None = None) -> PersonasDesign:
    """Read the design that a manifest describes; `overrides` may set analysis keys only."""
    stored = Texts.model_validate(resolved)
    return PersonasDesign(
        study=cast("PersonasStudy", read_study(resolved, overrides)),
        occupations=stored.items,
        prompts=stored.prompts,
        slot=stored.slot,
        templates=stored.templates,
        instructions=stored.instructions,
        sources=stored.sources,
    )
