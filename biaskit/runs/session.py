"""What both engines do when they ask models: open them, give one up, count failures, note what was used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from biaskit.errors import AskingStopped, BiaskitError, ModelError
from biaskit.models.base import ContinuationScorer, TextGenerator
from biaskit.progress import ModelPlan, Watcher
from biaskit.records import Failed
from biaskit.runs.manifest import (
    write_manifest,
)
from biaskit.runs.usage import promise, spent


@dataclass(slots=True)
class Outcome:
    """What asking did: which models gave up, which requests have no answer, and what was noticed."""

    failed_models: dict[str, str] = field(default_factory=dict)
    stopped: set[str] = field(default_factory=set)  # of those, the models that had begun to answer
    failed: dict[str, dict[str, int]] = field(default_factory=dict)  # label → reason → number
    notes: list[str] = field(default_factory=list)
    plans: list[ModelPlan] = field(default_factory=list)

    def give_up(self, label: str, error: BiaskitError, watcher: Watcher) -> None:
        """A model is left out with its reason; the others go on."""
        self.failed_models[label] = str(error)
        watcher.note(f"{label} is left out: {error}")

    def stop(self, label: str, error: AskingStopped, watcher: Watcher) -> None:
        """A model is not asked any further; what it answered before stays."""
        self.failed_models[label] = str(error)
        self.stopped.add(label)
        watcher.note(f"{label} is not asked any further: {error}")

    def count_failures(self, label: str, answers: Sequence[object]) -> None:
        """Count the answers that are none, by reason."""
        for answer in answers:
            if isinstance(answer, Failed):
                reasons = self.failed.setdefault(label, {})
                reasons[answer.reason] = reasons.get(answer.reason, 0) + 1


A = TypeVar("A")
M = TypeVar("M", ContinuationScorer, TextGenerator)
OpenModel = Callable[[str, str, Mapping[str, Any]], M]
"""(label, spec, what the manifest knows of an earlier start, with `spent` USD and `promise`) → model."""


def open_all(
    run: Path,
    models: Mapping[str, str],
    manifest: Mapping[str, Any],
    open_model: OpenModel[M],
    done: Outcome,
    watcher: Watcher,
) -> Iterator[tuple[str, M]]:
    """Every model that passes its first checks; the others are named with their reason."""
    for label, spec in models.items():
        earlier = manifest["models"].get(label, {})
        try:
            money = {"spent": spent(run), "promise": partial(promise, run, label, spent(run, label))}
            model = open_model(label, spec, {**earlier, **money})
        except ModelError as error:
            if len(models) == 1:
                raise
            done.give_up(label, error, watcher)
            continue
        if earlier and earlier["fingerprint"] != model.identity.fingerprint:
            done.notes.append(
                f"{label} is not the model it was: its earlier rows stay in the file and are not used."
            )
        yield label, model


def keep_batch_size(label: str, batch_size: int, run: Path, manifest: dict[str, Any]) -> None:
    """A resumed run must cut the same batches, so a size that `auto` found is kept."""
    entry = manifest["models"][label]
    if entry.get("batch_size") != batch_size:
        entry["batch_size"] = batch_size
        write_manifest(run, manifest)


def closable(groups: Iterator[Any]) -> Any:
    """An iterator that can be closed: closing is what stops a model's work."""
    return groups if hasattr(groups, "close") else (group for group in groups)
