"""A study in a run's manifest: how every kind describes it, reads it back, and signs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from biaskit.common.provenance import digest, signature, versions
from biaskit.errors import StudyError, nearest
from biaskit.measurement import measurement
from biaskit.models.entry import ModelEntry
from biaskit.records import Item, as_record
from biaskit.study.config import build_study, stated_choices
from biaskit.study.keys import LATER_KEYS, Study

_IN_FULL = frozenset({"models", "jobs", "occupations", "templates", "debiasing_prompts"})
"""Keys of a study whose lists stand in the manifest in full."""

_GROWING = frozenset(
    {"max_samples_per_prompt", "record_next", "continuations", "continuation_tokens", "ways"}
)
"""Keys that only say how far a cell is asked and what is kept of it: a run goes on in the same folder."""


class Design(Protocol):
    """A study with its lists read and its choices made: all that is asked, whatever the model."""

    @property
    def study(self) -> Study:
        """The study that it is of."""

    def describe(self) -> dict[str, Any]:
        """Describe everything that was asked, for the manifest."""

    def question(self) -> dict[str, Any]:
        """List what must agree for two commands to share one folder: each choice that changes a key."""

    def sign(self, models: Mapping[str, ModelEntry]) -> str:
        """Write the line that stands under every table."""


def describe_lists(design: Any, **lists: Any) -> dict[str, Any]:
    """Describe a design with its lists in full."""
    content = {"study": design.study.model_dump(mode="json"), **lists}
    return {**content, "digest": design_digest(content), "sources": design.sources}


def lists_of_templates(design: Any, items: Sequence[Item]) -> dict[str, Any]:
    """Describe the lists of a design that fills items into templates."""
    prompts = [None if i is None else as_record(i) for i in design.debiasing_prompts]
    return {
        "slot": design.slot,
        "items": [_without(as_record(item), "rating") for item in items],
        "templates": [_without(as_record(template), "frame") for template in design.templates],
        "debiasing_prompts": prompts,
    }


def _without(record: dict[str, Any], name: str) -> dict[str, Any]:
    """Leave out a field that is empty, so that older designs keep their digest."""
    if record[name] in (None, ""):
        del record[name]
    return record


def read_study(resolved: Mapping[str, Any], overrides: Mapping[str, Any] | None) -> Study:
    """Read the stored study; `overrides` may set analysis keys only. Raises `StudyError`."""
    analysis_keys = measurement(resolved["study"]["measurement"]).study.analysis_keys
    for dotted in overrides or {}:
        top = dotted.split(".")[0]
        if top not in analysis_keys:
            raise StudyError(
                f"{dotted} needs a new run; `analyze` accepts {', '.join(sorted(analysis_keys))}."
                f"{nearest(top, analysis_keys)}"
            )
    return build_study(resolved["study"], overrides or {}, "analysis options")


def design_digest(content: Mapping[str, Any]) -> str:
    """Digest what was asked, leaving out where a list lies and how the answers are analysed."""
    study = content["study"]
    kind = measurement(study["measurement"]).study
    left_out = kind.analysis_keys | _IN_FULL | _GROWING
    question = {name: content[name] for name in content if name not in ("digest", "sources", "contrast")}
    question["study"] = {name: value for name, value in study.items() if name not in left_out}
    for name in LATER_KEYS:  # a study with the default keeps the digest that it had before there was the key
        if question["study"].get(name) == kind.model_fields[name].default:
            question["study"].pop(name, None)
    if "target_words" in study:
        question["study"]["target_words"] = None  # stands in full under target_word_sets
    return digest(question)


def sign_design(study: Study, models: Mapping[str, ModelEntry], design: str, shown: Mapping[str, str]) -> str:
    """Write the line that stands under every table: each choice that changes one of its numbers.

    `design` is the digest of what was asked, `shown` what the measurement always states; every analysis key
    that is not at its default is stated too.
    """
    choices = stated_choices(study)
    named, callables, unsaved, formats = [], [], [], set()
    for label, entry in models.items():
        named.append(f"{label}@{entry.fingerprint[:12]}")
        formats.add(entry.prompt_format)
        if entry.where == "callable":
            callables.append(label)
        if entry.spec.startswith("object:"):
            unsaved.append(label)
    stated = {
        "biaskit": versions().get("biaskit", ""),
        "study": study.name,
        "models": ",".join(named),
        "callable": ",".join(callables),
        "unsaved objects": ",".join(unsaved),
        "prompt_format": ",".join(sorted(formats)),
    }
    stated["thinking"] = "" if study.thinking == "auto" else study.thinking
    # The measurement's own wording of a key stands in the place of that of the plain value.
    return signature({**stated, **shown, **choices, **shown, "question": design[:12]})
