"""What two runs asked in the same words, and measured with the same vectors.

Template ids mean the same text only if the manifests say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from biaskit.tables.query import Row

SLOT = "[]"
"""Stands for a study's own slot: texts that differ only in [JOB] and [OCCUPATION] are the same text."""


@dataclass(frozen=True, slots=True)
class PromptTexts:
    """The texts that a run asked (`question` of its manifest); left empty inside one run, where all agree."""

    question: Mapping[str, Any] = field(default_factory=dict)
    _templates: dict[tuple[str, int], object] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """A cache: every pair of models needs every template."""

    def template(self, bias_type: str, number: int) -> object:
        """A template's texts and the target words scored after it, whatever their order."""
        place = (bias_type, number)
        if place not in self._templates:
            texts = self.text(f"{bias_type} template {number}")
            target_words = self.question.get("target_words", {}).get(f"{bias_type}:{number}", [])
            self._templates[place] = [texts, sorted([str(group), str(text)] for group, text in target_words)]
        return self._templates[place]

    def prompt(self, template: str, prompt_format: str, *, with_gender: bool) -> object:
        """A prompt of personas in a format; `with_gender`: also its text for a named gender."""
        texts = self._entries.get(f"{template}, {prompt_format}", self._entries.get(f"template {template}"))
        if isinstance(texts, Sequence) and not isinstance(texts, str) and texts:
            return list(texts) if with_gender else texts[0]
        return texts

    def text(self, name: str) -> object:
        """The texts of this name, whatever the study's slot; None where the run has none."""
        return _plain(self._entries.get(name), str(self.question.get("slot", "")))

    @property
    def _entries(self) -> Mapping[str, Any]:
        """Texts by name; none for imported texts, whose manifest holds a digest instead."""
        texts = self.question.get("texts", {})
        return texts if isinstance(texts, Mapping) else {}


def _plain(value: object, slot: str) -> object:
    """Replace the slot by `SLOT` in texts of any depth, and tuples by lists."""
    if isinstance(value, str):
        return value.replace(slot, SLOT) if slot else value
    if isinstance(value, Mapping):
        return {name: _plain(entry, slot) for name, entry in value.items()}
    if isinstance(value, Sequence):
        return [_plain(entry, slot) for entry in value]
    return value


def all_equal(values: Iterable[object]) -> bool:
    """Whether all values are the same."""
    first, *others = values
    return others.count(first) == len(others)


def vectors_of(scores: Iterable[Row]) -> str:
    """Name the word vectors of one model's rows of srb.csv; "" where it has no score."""
    names: dict[str, None] = {}
    for row in scores:
        if row["srb"] is not None:  # a positive control is a score of its own
            names[" ".join(filter(None, (str(row["vectors"] or ""), str(row.get("control") or ""))))] = None
    return " / ".join(names)


def one_vector_model(used: Iterable[tuple[str, str]]) -> bool:
    """Whether all SRB scores come from one vector model (methods/srb#vector-models).

    `used`: `vectors_of` a model, and its run. Names of trained and of read vectors hold a digest of what they
    are made of; vectors of the marked lists are named alike in every run and are never the same. A model
    without a score has none.
    """
    named = ("corpus:", "pretrained:")
    return len({(vectors, "" if vectors.startswith(named) else run) for vectors, run in used if vectors}) < 2
