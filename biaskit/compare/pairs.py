"""Who is compared with whom: two models, or the means of two groups (methods/comparisons#model-groups)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, TypeVar

from biaskit.corpora.sources import check_label
from biaskit.errors import UsageError, nearest
from biaskit.records import ALL
from biaskit.runs.collection import Model
from biaskit.stats.contrast import Contrast

T = TypeVar("T")
OPEN_WEIGHT, API = "open-weight models", "API models"
BASE, INSTRUCT = "base models", "instruct models"


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a difference: a model, or a group whose value is the mean over its models."""

    name: str  # stands in the tables' columns model_a and model_b
    models: tuple[str, ...]


SidePair = tuple[Side, Side]
"""(later, earlier): their difference is later − earlier."""


def members_of(pair: SidePair, of_model: Mapping[str, T]) -> list[T]:
    """List what both sides' models have, the later side's first."""
    later, earlier = pair
    return [of_model[label] for label in later.models + earlier.models]


@dataclass(frozen=True, slots=True)
class PairNote:
    """Why two sides, or their scores, have no test: the cause, and the sentence that says so."""

    cause: Literal["gender groups", "prompt formats", "prompts", "no common prompt"]
    text: str = ""  # empty for prompt formats, on which all pairs share one sentence (`say_apart`)


PairTests = tuple[Sequence[Contrast], Sequence[PairNote]]
"""Rows of tests.csv of two sides, and why others are lacking."""
PairTest = Callable[[SidePair], PairTests]


def rows_of_all(test: PairTest, formats: Mapping[str, str]) -> tuple[list[Contrast], list[str]]:
    """Make the rows of every pair of models, and say which have none. `formats`: model → its format."""
    return rows_of_pairs(model_pairs(list(formats)), test, formats)


def rows_of_pairs(
    pairs: Iterable[SidePair], test: PairTest, formats: Mapping[str, str]
) -> tuple[list[Contrast], list[str]]:
    """Make the rows of every pair, and say which have none. `formats`: model → its prompt format."""
    rows: list[Contrast] = []
    notes: list[PairNote] = []
    for pair in pairs:
        rows_of_pair, notes_of_pair = test(pair)
        rows += rows_of_pair
        notes += notes_of_pair
    return rows, say_apart(notes, formats)


def nothing_common(pair: SidePair) -> PairNote:
    """Return the note on two sides that were asked nothing in common."""
    text = f"{pair[0].name} and {pair[1].name} have no common prompt, so there is no test between them."
    return PairNote("no common prompt", text)


def say_apart(notes: Sequence[PairNote], formats: Mapping[str, str]) -> list[str]:
    """Say which pairs have no test, in one sentence where formats differ. `formats`: model → its format."""
    sentences = [note.text for note in notes if note.text]
    if len(sentences) < len(notes):
        models_of: dict[str, list[str]] = {}
        for model, prompt_format in formats.items():
            models_of.setdefault(prompt_format or "no prompt", []).append(model)
        listed = "; ".join(f"{name}: {', '.join(models)}" for name, models in models_of.items())
        sentences.append(
            f"The models have different prompt formats ({listed}): there is no test between two formats."
            " Use one for all, with --prompt-format."
        )
    return sentences


def model_pairs(models: Sequence[str]) -> Iterator[SidePair]:
    """Pair every model with every model named before it."""
    labels = list(dict.fromkeys(models))
    for i, later in enumerate(labels):
        for earlier in labels[:i]:
            yield Side(later, (later,)), Side(earlier, (earlier,))


def named_groups(texts: Sequence[str], labels: Sequence[str]) -> tuple[Side, ...]:
    """Read groups of models from `NAME=LABEL,LABEL`.

    A label that holds a comma must be the only one of its group. Raises `UsageError` for a name that is a
    model's or stands twice, for a label that no run has, and for a label in two groups.
    """
    groups: dict[str, Side] = {}
    for text in texts:
        name, equals, listed = text.partition("=")
        name = name.strip()
        if not equals or not name or not listed.strip():
            raise UsageError(f"--group {text}: write --group NAME=LABEL,LABEL.")
        check_label(name, "The group name")
        if name in labels or name == ALL:
            raise UsageError(f"--group {name}: a model is called so. Give the group another name.")
        if name in groups or name in (OPEN_WEIGHT, API, BASE, INSTRUCT):
            raise UsageError(f"--group {name}: there is such a group already. Give it another name.")
        parts = [part.strip() for part in listed.split(",")]
        parts = [listed.strip()] if listed.strip() in labels else parts
        if unknown := [part for part in parts if part not in labels]:
            raise UsageError(
                f"--group {name}: there is no model {unknown[0]!r}.{nearest(unknown[0], labels)}"
                f" Models: {', '.join(labels)}."
            )
        members = tuple(dict.fromkeys(parts))
        for group in groups.values():
            if both := [model for model in members if model in group.models]:
                raise UsageError(f"--group {name}: {both[0]} is in the group {group.name} already.")
        groups[name] = Side(name, members)
    if len(groups) == 1:
        raise UsageError("One --group has nothing to be compared with: name a second one.")
    return tuple(groups.values())


def pairs_of_groups(groups: Sequence[Side], models: Sequence[Model]) -> Iterator[SidePair]:
    """Pair the groups that the user named, then API − open-weight and instruct − base by metadata.

    A group is left out where one of its models is missing. Instruct and base models are paired by family,
    one of each: else a difference between families would pass for one of tuning. Two groups by metadata of
    one model each, however often it was asked, would only repeat the row of these models, and are left out.
    """
    weights = {model.label: model.weights for model in models}
    whole = [side for side in groups if weights.keys() >= {*side.models}]
    for i, later in enumerate(whole):
        for earlier in whole[:i]:
            yield later, earlier
    local = tuple(model.label for model in models if model.where == "local")
    api = tuple(model.label for model in models if model.where == "api")
    for earlier, later in ((Side(OPEN_WEIGHT, local), Side(API, api)), by_family(models)):
        sizes = [len(set(map(weights.get, side.models))) for side in (earlier, later)]
        if min(sizes) >= 1 and max(sizes) > 1 and not weights.keys() & {earlier.name, later.name}:
            yield later, earlier


def by_family(models: Sequence[Model]) -> SidePair:
    """Pair the base and the instruct models of families with exactly one of each, in the same order."""
    families: dict[str, dict[str, list[str]]] = {}
    for model in models:
        of_family = families.setdefault(family_of(model.spec), {"base": [], "instruct": []})
        of_family.setdefault(model.tuning, []).append(model.label)
    base: list[str] = []
    instruct: list[str] = []
    for family in families.values():
        if len(family["base"]) == len(family["instruct"]) == 1:
            base += family["base"]
            instruct += family["instruct"]
    return Side(BASE, tuple(base)), Side(INSTRUCT, tuple(instruct))


_TUNED = frozenset({"instruct", "it", "chat", "base", "pt", "pretrained", "sft", "dpo", "rlhf", "hf", "gguf"})


def family_of(spec: str) -> str:
    """Reduce a spec to its last part in lower case, without words for tuning.

    hf:org/Llama-3.1-8B-Instruct and hf:org/Llama-3.1-8B are of one family; a version or size makes another.
    """
    name = re.split(r"[/\\:]", spec.rstrip("/\\").partition("@")[0])[-1].lower()
    words = re.split(r"[-_ ]|\.(?=gguf$)", name)
    return "-".join(word for word in words if word and word not in _TUNED)


def group_notes(groups: Sequence[Side], models: Sequence[Model]) -> Iterator[str]:
    """Say which models each group holds, since tests speak of these alone, and which found no partner."""
    pairs = list(pairs_of_groups(groups, models))
    for side in dict.fromkeys(chain(*pairs)):
        n = len(side.models)
        verb = "are" if side.name.endswith("s") else "is"
        whom = "this model" if n == 1 else f"these {n} models"
        yield f"{side.name} {verb} the mean of {whom}: {', '.join(side.models)}."
    tuned = {model.label: model.tuning for model in models if model.tuning in ("base", "instruct")}
    if len(tuned) > 2 and len({*tuned.values()}) > 1:
        base, instruct = by_family(models)
        in_order = sorted(tuned, key=lambda label: tuned[label])
        if alone := [label for label in in_order if label not in base.models + instruct.models]:
            yield (
                "Base and instruct models are paired by family, one of each; without a partner, or with"
                f" several: {', '.join(alone)}. --group NAME=LABEL,LABEL makes your own groups."
            )
