"""Who is held against whom: two models, or two groups of models as one mean each.

See docs/methods.md#model-groups.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from biaskit.corpora.sources import check_label
from biaskit.errors import UsageError, nearest
from biaskit.runs.collection import Model

OPEN_WEIGHT, API = "open-weight models", "API models"
BASE, INSTRUCT = "base models", "instruct models"


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a difference: a model, or a group whose value is the mean over its models."""

    name: str  # stands in the tables' columns model_a and model_b
    models: tuple[str, ...]


SidePair = tuple[Side, Side]
"""(later, earlier) for a difference later − earlier."""


@dataclass(frozen=True, slots=True)
class PairNote:
    """Why two sides, or their scores, have no test: what keeps them apart, and the sentence that says so."""

    cause: Literal["gender groups", "prompt forms", "prompts", "no common cell"]
    text: str = ""  # of two prompt forms there is one sentence for all pairs (`say_apart`)


def say_apart(notes: Sequence[PairNote], forms: Mapping[str, str]) -> list[str]:
    """The sentences of pairs without a test; those in two prompt forms as one. `forms`: model → its form."""
    said = [note.text for note in notes if note.cause != "prompt forms"]
    if len(said) < len(notes):
        models_of: dict[str, list[str]] = {}
        for model, form in forms.items():
            models_of.setdefault(form or "no prompt", []).append(model)
        listed = "; ".join(f"{form}: {', '.join(models)}" for form, models in models_of.items())
        said.append(f"The models have different prompt forms ({listed}): there is no test between two forms.")
    return said


def model_pairs(models: Sequence[str]) -> Iterator[SidePair]:
    """Every pair of models, later named minus earlier named."""
    named = list(dict.fromkeys(models))
    for i, later in enumerate(named):
        for earlier in named[:i]:
            yield Side(later, (later,)), Side(earlier, (earlier,))


def named_groups(texts: Sequence[str], labels: Sequence[str]) -> tuple[Side, ...]:
    """The groups of `NAME=LABEL,LABEL`, in the order they were named.

    A label that holds a comma can be given whole. Raises `UsageError` for a name that is a model's or
    stands twice, for a label that no run has, and for one in two groups.
    """
    found: dict[str, Side] = {}
    for text in texts:
        name, equals, listed = text.partition("=")
        name = name.strip()
        if not equals or not name or not listed.strip():
            raise UsageError(f"--group {text}: write --group NAME=LABEL,LABEL.")
        check_label(name, "The group name")
        if name in labels or name == "all":
            raise UsageError(f"--group {name}: a model is called so. Give the group another name.")
        if name in found or name in (OPEN_WEIGHT, API, BASE, INSTRUCT):
            raise UsageError(f"--group {name}: there is such a group already. Give it another name.")
        parts = [part.strip() for part in listed.split(",")]
        parts = [listed.strip()] if listed.strip() in labels else parts
        if unknown := [part for part in parts if part not in labels]:
            raise UsageError(
                f"--group {name}: there is no model {unknown[0]!r}.{nearest(unknown[0], labels)}"
                f" Models: {', '.join(labels)}."
            )
        members = tuple(dict.fromkeys(parts))
        for other in found.values():
            if both := [model for model in members if model in other.models]:
                raise UsageError(f"--group {name}: {both[0]} is in the group {other.name} already.")
        found[name] = Side(name, members)
    if len(found) == 1:
        raise UsageError("One --group alone has no other to be compared with: name a second one.")
    return tuple(found.values())


def pairs_of_groups(named: Sequence[Side], models: Sequence[Model]) -> Iterator[SidePair]:
    """Later minus earlier of the groups named, then API − open-weight and instruct − base by metadata.

    A group of which a model is missing is left out. Instruct and base models are paired by family, one of
    each: else a difference between families would pass for one of tuning. Two groups of one model each that
    nobody named would repeat the pair's own row.
    """
    labels = {model.label for model in models}
    own = [side for side in named if labels.issuperset(side.models)]
    yield from ((later, earlier) for i, later in enumerate(own) for earlier in own[:i])
    local, api = (tuple(m.label for m in models if m.where == place) for place in ("local", "api"))
    for earlier, later in ((Side(OPEN_WEIGHT, local), Side(API, api)), by_family(models)):
        sizes = len(earlier.models), len(later.models)
        if min(sizes) >= 1 and max(sizes) > 1 and not labels & {earlier.name, later.name}:
            yield later, earlier


def by_family(models: Sequence[Model]) -> SidePair:
    """The base and the instruct models of which a family has exactly one each, in the same order."""
    members: dict[str, dict[str, list[str]]] = {}
    for model in models:
        of_family = members.setdefault(family_of(model.spec), {})
        of_family.setdefault(model.tuning, []).append(model.label)
    whole = [of for of in members.values() if len(of.get("base", ())) == len(of.get("instruct", ())) == 1]
    base, instruct = (tuple(of[tuning][0] for of in whole) for tuning in ("base", "instruct"))
    return Side(BASE, base), Side(INSTRUCT, instruct)


_TUNED = frozenset({"instruct", "it", "chat", "base", "pt", "pretrained", "sft", "dpo", "rlhf", "hf", "gguf"})


def family_of(spec: str) -> str:
    """A model's name without what says how it was tuned: its spec's last part, in lower case.

    hf:org/Llama-3.1-8B-Instruct and hf:org/Llama-3.1-8B are of one family; a version or size makes another.
    """
    name = re.split(r"[/\\:]", spec.rstrip("/\\").partition("@")[0])[-1].lower()
    words = re.split(r"[-_ ]|\.(?=gguf$)", name)
    return "-".join(word for word in words if word and word not in _TUNED)


def group_notes(named: Sequence[Side], models: Sequence[Model]) -> Iterator[str]:
    """Whom each group holds, since a contrast of groups speaks of these alone; and whom pairing left out."""
    pairs = list(pairs_of_groups(named, models))
    for side in dict.fromkeys(side for pair in pairs for side in pair):
        n = len(side.models)
        yield (
            f"{side.name} {'are' if side.name.endswith('s') else 'is'} the mean of"
            f" {'this model' if n == 1 else f'these {n} models'}: {', '.join(side.models)}."
        )
    tuned = {tuning: [m.label for m in models if m.tuning == tuning] for tuning in ("base", "instruct")}
    if all(tuned.values()) and sum(map(len, tuned.values())) > 2:
        paired = {label for side in by_family(models) for label in side.models}
        if alone := [label for labels in tuned.values() for label in labels if label not in paired]:
            yield (
                "Base and instruct models are paired by family, one of each; without a partner, or with"
                f" several: {', '.join(alone)}. --group NAME=LABEL,LABEL makes groups of your own."
            )
