"""What both engines do when they ask models: open them, give one up, count failures, note what was used."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeVar

from biaskit.errors import AskingStopped, BiaskitError, ModelError, RunError
from biaskit.models.api.endpoint import hide_urls
from biaskit.models.base import ContinuationScorer, TextGenerator
from biaskit.provenance import versions
from biaskit.records import ANSWERED_SEPARATOR, Draw, Failed, ModelIdentity, PromptForm, Scored
from biaskit.runs import MANIFEST, RUN_FORMAT, check_same_question, read_manifest, write_json, write_manifest
from biaskit.watching import ModelPlan, Watcher


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
            money = {"spent": spent(run), "promise": partial(_promise, run, label, spent(run, label))}
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


def model_entry(identity: ModelIdentity, form: PromptForm) -> dict[str, Any]:
    """A model as the manifest holds it."""
    found = {} if identity.found is None else {"found": dict(identity.found)}
    return {
        **found,
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
    named = resolved["study"].get("models", {})
    shown = {label: hide_urls(spec) for label, spec in named.items()}
    return {
        "format": RUN_FORMAT,
        "engine": engine,
        "study": study,
        "question": asked,
        "resolved": {**resolved, "study": {**resolved["study"], "models": shown}},
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


# --- what was used -------------------------------------------------------------------------------------

USAGE = "usage.json"
PROMISED = ("promised", "promised_since")
"""USD that a model may have cost by now, and which process said so: gone when that one ends by itself."""
_THIS_PROCESS = time.time()
_WRITING = threading.Lock()  # the model's own thread writes too


class Usage:
    """One model's line of usage.json, kept while it is asked: a killed run has counted too."""

    EVERY_S = 5.0

    def __init__(self, run: Path, label: str) -> None:
        self._path = run / USAGE
        self._label = label
        self._before = _with_what_was_lost(_read_usage(self._path).get(label, {}))
        self._started = self._written = time.perf_counter()

    def note(self, used: Mapping[str, float | None], *, last: bool = False) -> None:
        """Add what this start has used so far to what the earlier ones had; written now and then."""
        now = time.perf_counter()
        if (not last and now - self._written < self.EVERY_S) or not self._path.parent.is_dir():
            return
        self._written = now
        counted = {**used, "seconds": now - self._started, "starts": 1}
        line = {name: _plus(self._before.get(name), value) for name, value in counted.items()}
        line.setdefault("cost", 0.0)
        with _WRITING:
            usage = _read_usage(self._path)
            promised = {} if last else {name: usage.get(self._label, {}).get(name) for name in PROMISED}
            line |= {name: value for name, value in promised.items() if value is not None}
            write_json(self._path, {**usage, self._label: {**self._before, **line}})


def _plus(before: float | None, value: float | None) -> float | None:
    """A sum; what is unknown (a price) stays so."""
    return None if value is None else round((before or 0) + value, 9)


def _read_usage(path: Path) -> dict[str, dict[str, float | None]]:
    try:
        usage = json.loads(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return {}
    return usage if isinstance(usage, dict) else {}


def spent(run: Path, label: str | None = None) -> float:
    """USD that earlier starts of a run may have spent, on one model or on all of them."""
    usage = _read_usage(run / USAGE)
    lines = list(usage.values()) if label is None else [usage.get(label, {})]
    return sum(_spent(_with_what_was_lost(line)) for line in lines)


def _spent(line: Mapping[str, float | None]) -> float:
    return sum(line.get(name) or 0.0 for name in ("cost", "cost_unsure"))


def _promise(run: Path, label: str, before: float, most: float) -> None:
    """Write that a model may have spent so much more than `before`, ahead of its spending it."""
    if not run.is_dir():  # the questions before a first start: what they cost is counted when it begins
        return
    with _WRITING:
        usage = _read_usage(run / USAGE)
        line = _with_what_was_lost(usage.get(label, {}))
        line |= dict(zip(PROMISED, (round(before + most, 9), _THIS_PROCESS), strict=True))
        write_json(run / USAGE, {**usage, label: line})


def _with_what_was_lost(line: Mapping[str, float | None]) -> dict[str, float | None]:
    """A line after the death of a process that left a promise: all of it may have been spent."""
    most, process = (line.get(name) for name in PROMISED)
    if most is None or process == _THIS_PROCESS:
        return dict(line)
    kept = {name: value for name, value in line.items() if name not in PROMISED}
    lost = round(most - (line.get("cost") or 0.0), 9)
    return {**kept, "cost_unsure": max(line.get("cost_unsure") or 0.0, lost)}


# --- who answered --------------------------------------------------------------------------------------


class Drift:
    """Notices that another model answers under the same name (DESIGN §4).

    Known are the names of the stored rows, else the first that answers.
    """

    def __init__(self, identity: ModelIdentity, stored: Collection[str], *, accept: bool) -> None:
        self._watches = identity.where == "api" and not accept
        self._label = identity.label
        self._known = {model_of(by) for by in stored}

    def watch(self, groups: Iterable[Sequence[A]]) -> Iterator[Sequence[A]]:
        """The answers as they come, up to the first of a model that is not in the stored rows.

        Raises `AskingStopped` there; those before it in its group are handed on, to be stored.
        """
        for group in groups:
            n_known = sum(1 for _ in takewhile(self._is_known, group))
            if n_known:
                yield group[:n_known]
            self.check(group[n_known : n_known + 1])

    def check(self, answers: Sequence[object]) -> None:
        """Raise `AskingStopped` at the first answer of a model that is not in the stored rows."""
        for answer in answers:
            if not self._is_known(answer):
                raise AskingStopped(
                    f"{self._label} now answers as {_name_of(answer)!r}; the stored rows are of"
                    f" {', '.join(sorted(self._known))}. They are kept. To mix both: --accept-drift"
                )

    def _is_known(self, answer: object) -> bool:
        name = _name_of(answer)
        if not self._watches or name is None:
            return True
        self._known = self._known or {name}
        return name in self._known


def _name_of(answer: object) -> str | None:
    """The model's name in an answer; None where there is no answer."""
    return model_of(answer.answered.by) if isinstance(answer, Draw | Scored) else None


class Answerers:
    """Which models answered, from when to when, read off the rows: for the notes beside the tables."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, Counter[str]]] = {}
        self._dates: dict[str, tuple[str, str]] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        """Count one row."""
        label, by, at = row.get("model"), row.get("answered_by"), row.get("answered_at")
        if not isinstance(label, str) or not isinstance(by, str) or not isinstance(at, str):
            return
        names = self._rows.setdefault(label, {})
        names.setdefault(model_of(by), Counter())[by] += 1
        first, last = self._dates.get(label, (at, at))
        self._dates[label] = min(first, at), max(last, at)

    def counting(self, rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """The same rows, counted as they go by."""
        for row in rows:
            self.add(row)
            yield row

    def record(self) -> dict[str, dict[str, Any]]:
        """By label: who answered, and the days of the first and the last answer; for analysis.json."""
        return {
            label: {"by": sorted(self._rows[label]), "first": first[:10], "last": last[:10]}
            for label, (first, last) in self._dates.items()
        }

    def notes(self, models: Mapping[str, Mapping[str, Any]]) -> list[str]:
        """A sentence for each API model, and a warning where its answers are of several."""
        found = []
        for label, entry in models.items():
            names = self._rows.get(label)
            if entry.get("where") != "api" or not names:
                continue
            first, last = (at[:10] for at in self._dates[label])
            when = first if first == last else f"{first} to {last}"
            if len(names) > 1:
                listed = ", ".join(f"{name} ({sum(by.values())} rows)" for name, by in names.items())
                found.append(f"{label} is a mixture: its answers ({when}) are of {listed}")
                continue
            name, by = next(iter(names.items()))
            systems = f", {len(by)} system fingerprints" if len(by) > 1 else ""
            found.append(f"{label}: answered as {name}, {when}{systems}")
        return found


def model_of(answered_by: str) -> str:
    """The model's name in `answered_by`, without the server's fingerprint."""
    return answered_by.split(ANSWERED_SEPARATOR)[0]
