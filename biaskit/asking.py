"""What both engines do when they ask models: open them, give one up, count failures, note what was used."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from biaskit.errors import BiaskitError, ModelError, RunError
from biaskit.models.base import ContinuationScorer, TextGenerator
from biaskit.provenance import versions
from biaskit.records import Failed, ModelIdentity, PromptForm
from biaskit.runs import MANIFEST, RUN_FORMAT, check_same_question, read_manifest, write_json, write_manifest
from biaskit.watching import ModelPlan, Watcher


@dataclass(slots=True)
class Outcome:
    """What asking did: which models gave up, which requests have no answer, and what was noticed."""

    failed_models: dict[str, str] = field(default_factory=dict)
    failed: dict[str, dict[str, int]] = field(default_factory=dict)  # label → reason → number
    notes: list[str] = field(default_factory=list)
    plans: list[ModelPlan] = field(default_factory=list)

    def give_up(self, label: str, error: BiaskitError, watcher: Watcher) -> None:
        """A model is left out with its reason; the others go on."""
        self.failed_models[label] = str(error)
        watcher.note(f"{label} is left out: {error}")

    def count_failures(self, label: str, answers: Sequence[object]) -> None:
        """Count the answers that are none, by reason."""
        for answer in answers:
            if isinstance(answer, Failed):
                reasons = self.failed.setdefault(label, {})
                reasons[answer.reason] = reasons.get(answer.reason, 0) + 1


M = TypeVar("M", ContinuationScorer, TextGenerator)
OpenModel = Callable[[str, str, int | None], M]
"""(label, spec, batch size of an earlier start or None) → model."""


def open_all(
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
            model = open_model(label, spec, earlier.get("batch_size"))
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


def model_entry(identity: ModelIdentity, form: PromptForm) -> dict[str, Any]:
    """A model as the manifest holds it."""
    return {
        "spec": identity.spec,
        "fingerprint": identity.fingerprint,
        "tuning": identity.tuning,
        "where": identity.where,
        "prompt_form": form,
        "details": dict(identity.details),
    }


def start_manifest(
    run: Path,
    engine: str,
    study: str,
    *,
    question: Mapping[str, Any],
    resolved: Mapping[str, Any],
    command: str,
) -> dict[str, Any]:
    """The stored manifest brought up to this question, or a new one."""
    stored: dict[str, Any] = {"models": {}}
    asked: dict[str, Any] = json.loads(json.dumps(question))  # as it reads back, so that both compare equal
    if (run / MANIFEST).exists():
        stored = read_manifest(run)
        if stored.get("engine") != engine:
            raise RunError(f"{run} is a run of the engine {stored.get('engine')!r}. Choose another --out.")
        asked = check_same_question(run, stored["question"], asked)
    return {
        "format": RUN_FORMAT,
        "engine": engine,
        "study": study,
        "question": asked,
        "resolved": dict(resolved),
        "models": dict(stored["models"]),
        "versions": versions(),
        "command": command,
        "signature": "",
    }


def keep_batch_size(label: str, batch_size: int, run: Path, manifest: dict[str, Any]) -> None:
    """A resumed run must cut the same batches, so a size that `auto` found is kept."""
    entry = manifest["models"][label]
    if entry.get("batch_size") != batch_size:
        entry["batch_size"] = batch_size
        write_manifest(run, manifest)


def closable(groups: Iterator[Any]) -> Any:
    """An iterator that can be closed: closing is what stops a model's work."""
    return groups if hasattr(groups, "close") else (group for group in groups)


def note_usage(run: Path, label: str, **used: float) -> None:
    """Add this start to usage.json: what was computed and how long it took."""
    path = run / "usage.json"
    try:
        usage = json.loads(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        usage = {}
    known = usage.get(label, {})
    summed = {name: round(known.get(name, 0) + value, 3) for name, value in used.items()}
    usage[label] = {**known, **summed, "starts": known.get("starts", 0) + 1, "cost": known.get("cost", 0.0)}
    write_json(path, usage)
