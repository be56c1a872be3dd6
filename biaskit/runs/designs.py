"""A study in a run's manifest: how both engines describe it, read it back, and sign it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from biaskit.common.provenance import digest, signature, versions
from biaskit.errors import StudyError, nearest
from biaskit.records import Item, Template, as_record
from biaskit.study.config import build_study, stated_choices
from biaskit.study.keys import ANALYSIS_KEYS, LATER_KEYS, STUDIES, Study

_IN_FULL = frozenset({"models", "jobs", "occupations", "templates", "instructions"})
"""Keys of a study whose lists stand in the manifest in full."""

_GROWING = frozenset({"max_draws_per_cell", "record_next", "continuations", "continuation_tokens"})
"""Keys that only say how far and how a cell is asked and what is kept of it: the same folder goes on."""


def describe_lists(design: Any, items: Sequence[Item], **own: Any) -> dict[str, Any]:
    """A design of either engine with its lists in full, so that no table needs another file.

    `own`: what only that engine's designs hold.
    """
    content = {
        "study": design.study.model_dump(mode="json"),
        "slot": design.slot,
        "items": [as_record(item) for item in items],
        "templates": [_with_frame(template) for template in design.templates],
        "instructions": [None if i is None else as_record(i) for i in design.instructions],
        **own,
    }
    return {**content, "digest": design_digest(content), "sources": design.sources}


def _with_frame(template: Template) -> dict[str, Any]:
    """A template; its frame stands there where it has one."""
    return {name: value for name, value in as_record(template).items() if value or name != "frame"}


def read_study(resolved: Mapping[str, Any], overrides: Mapping[str, Any] | None) -> Study:
    """The stored study; `overrides` may set analysis keys only."""
    known = ANALYSIS_KEYS[resolved["study"]["engine"]]
    for dotted in overrides or {}:
        top = dotted.split(".")[0]
        if top not in known:
            raise StudyError(
                f"{dotted} changes what was asked; `analyze` takes {', '.join(sorted(known))}."
                f"{nearest(top, known)}"
            )
    return build_study(resolved["study"], overrides or {}, "analysis options")


def design_digest(content: Mapping[str, Any]) -> str:
    """What was asked, in short: neither where a list lies nor how the answers are analysed."""
    study = content["study"]
    left_out = ANALYSIS_KEYS[study["engine"]] | _IN_FULL | _GROWING
    asked = {name: value for name, value in content.items() if name not in ("digest", "sources", "contrast")}
    asked["study"] = {name: value for name, value in study.items() if name not in left_out}
    for name in LATER_KEYS:  # a study that says nothing of it is the study that it was before
        if asked["study"].get(name) == STUDIES[study["engine"]].model_fields[name].default:
            asked["study"].pop(name, None)
    if "expressions" in study:
        asked["study"]["expressions"] = None  # stands in full under expression_sets
    return digest(asked)


def sign_design(
    study: Study, models: Mapping[str, Mapping[str, Any]], design: str, shown: Mapping[str, str]
) -> str:
    """The line that stands under every table: each choice that changes one of its numbers.

    `design` is the digest of what was asked, `shown` what the engine always states; beside it stands every
    analysis key that is not at its default.
    """
    forms = sorted({str(entry["prompt_form"]) for entry in models.values()})
    return signature(
        {
            "biaskit": versions().get("biaskit", ""),
            "study": study.name,
            "models": ",".join(f"{label}@{entry['fingerprint'][:12]}" for label, entry in models.items()),
            "form": ",".join(forms),
            **shown,
            **stated_choices(study),
            **shown,  # again: the engine's own wording of a key goes before the plain value
            "question": design[:12],
        }
    )
