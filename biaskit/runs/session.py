"""One start of a run of any measurement: models are opened, left out or stopped, and failures counted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from biaskit.common.files import write_atomically
from biaskit.errors import AskingStopped, BiaskitError, ModelError, RunError
from biaskit.models.api.endpoint import hide_urls
from biaskit.models.base import ContinuationScorer, TextGenerator
from biaskit.models.entry import ModelEntry
from biaskit.models.options import Account
from biaskit.progress import ModelPlan, Silent, Watcher
from biaskit.records import Failed
from biaskit.runs.designs import Design
from biaskit.runs.folder import check_run_folder
from biaskit.runs.manifest import MANIFEST, Manifest, manifest_there, merge_questions
from biaskit.runs.shards import WHOLE, Shard
from biaskit.runs.store import LOCK, RowWriter, StoredRows
from biaskit.runs.usage import USAGE, any_spent, promise, spent
from biaskit.study.keys import Study

if TYPE_CHECKING:
    from biaskit.models.api.offline import Offline


@dataclass(slots=True)
class Outcome:
    """Which models were left out or stopped, which requests have no answer, and what was noticed."""

    failed_models: dict[str, str] = field(default_factory=dict)
    stopped: set[str] = field(default_factory=set)  # models that were stopped while they answered
    failed: dict[str, dict[str, int]] = field(default_factory=dict)  # label → reason → number
    blocked: set[str] = field(default_factory=set)  # those reasons that are a content filter's
    notes: list[str] = field(default_factory=list)
    plans: list[ModelPlan] = field(default_factory=list)
    offline: Offline | None = None  # nobody is asked, so what has no answer has not failed

    def count_failures(self, label: str, answers: Sequence[object]) -> None:
        """Count the failed requests among some answers, by reason."""
        for answer in answers if self.offline is None else ():
            if isinstance(answer, Failed):
                reasons = self.failed.setdefault(label, {})
                reasons[answer.reason] = reasons.get(answer.reason, 0) + 1
                if answer.blocked:
                    self.blocked.add(answer.reason)


M = TypeVar("M", ContinuationScorer, TextGenerator)
OpenModel = Callable[..., M]
"""(label, spec, the model's entry in the manifest, what the run has spent, how it is opened) → model."""


@dataclass(slots=True)
class Session(Generic[M]):
    """One start of a run: which models, where, who watches, and what has come of it so far."""

    run: Path
    models: Mapping[str, str]  # label → spec
    open_model: OpenModel[M]
    watcher: Watcher = field(default_factory=Silent)
    dry_run: bool = False
    accept_model_change: bool = False
    command: str = ""  # as given in the shell, for the manifest
    manifest: Manifest = field(init=False)
    outcome: Outcome = field(default_factory=Outcome)
    reuse: bool = True  # take over what runs beside this one have stored
    beside: dict[Path, StoredRows[Any]] = field(default_factory=dict)  # rows of other runs that were read
    shard: Shard = WHOLE  # which part of the plan is asked

    def begin(self, design: Design) -> dict[str, M]:
        """Bring the manifest up to what is asked, and open every model that passes its first checks.

        A dry run of a folder that does not exist has no manifest to check against, and writes nothing.
        """
        check_run_folder(self.run)
        if self.dry_run and not (self.run / MANIFEST).exists():
            self.manifest = Manifest.new(design.study.measurement, design.study.name)
        else:
            self.manifest = self._new_manifest(design)
        opened: dict[str, M] = {}
        for label, spec in self.models.items():
            entry = self.manifest.models.get(label)
            try:
                model = self.open_model(label, spec, entry, self.account(label))
            except ModelError as error:
                self.leave_out(label, error)
                continue
            if unread := model.identity.details.get("unread"):
                self.outcome.notes.append(
                    f"{label}: what {unread} computes cannot be read, so each call measures another model."
                )
            if entry is not None and entry.fingerprint != model.identity.fingerprint:
                self.outcome.notes.append(
                    f"{label} has changed: its earlier rows stay in the file and are not used."
                )
            opened[label] = model
        return opened

    def _new_manifest(self, design: Design) -> Manifest:
        """Bring the stored manifest up to this question, or make one. Raises `RunError` for another."""
        run, study, models = self.run, design.study, dict[str, ModelEntry]()
        question, resolved = design.question(), design.describe()
        if stored := manifest_there(run, study.measurement):
            if stored.shard != self.shard:
                raise RunError(
                    f"{run} is {stored.shard}, but this command runs {self.shard}. Choose another --out."
                )
            as_read = json.loads(json.dumps(question))  # so that both compare equal
            question = merge_questions(run, stored.question, as_read)
            models = stored.models
        resolved["study"]["models"] = {label: hide_urls(spec) for label, spec in study.models.items()}
        asked = {"question": question, "resolved": resolved, "models": models}
        how = {"command": self.command, "shard": self.shard}
        return Manifest.new(study.measurement, study.name, **asked, **how)

    def account(self, label: str) -> Account:
        """Say what the run has spent so far, and how this model promises what it may spend next."""
        return Account(spent(self.run), partial(promise, self.run, label, spent(self.run, label)))

    def leave_out(self, label: str, error: BiaskitError) -> None:
        """Go on without a model, and name it with the reason; if it is the only model, raise its error."""
        if len(self.models) == 1:
            raise error
        self.outcome.failed_models[label] = str(error)
        self.watcher.note(f"{label} was skipped: {error}")

    @contextmanager
    def writing(self, kind_name: str, study: Study, stored: StoredRows[Any]) -> Iterator[RowWriter]:
        """Open the run's rows to add to them; `stored` takes in those that are there.

        A declined plan, Ctrl-C before the first answer, or the only model's error leave the folder as it was,
        except for usage.json: the newest run stays the last real one.
        """
        manifest = self.run / MANIFEST
        before = manifest.read_bytes() if manifest.exists() else None
        new_folders = [path for path in (self.run, *self.run.parents) if not path.exists()]
        there = {path.name for path in self.run.iterdir()} if self.run.exists() else set()
        lock, skip_bad = study.lock, study.skip_bad_lines
        try:
            with RowWriter(self.run, kind_name, lock=lock, skip_bad=skip_bad, stored=stored) as writer:
                n_before = len(writer.keys)
                self.outcome.notes += writer.reading.notes
                done = False
                try:
                    yield writer
                    done = bool(self.outcome.failed) or not self.outcome.failed_models
                finally:
                    if done or len(writer.keys) > n_before:
                        pass
                    elif before is not None:
                        write_atomically(manifest, before)
                    elif not any_spent(self.run):
                        for name in {MANIFEST, USAGE, LOCK, writer.path.name} - there:
                            (self.run / name).unlink(missing_ok=True)
        finally:
            with suppress(OSError):
                for path in new_folders:
                    path.rmdir()

    @contextmanager
    def turn(self, model: M, entry: ModelEntry, design: Design) -> Iterator[None]:
        """Give a model its turn: its entry and the run's signature are written first, it is closed last.

        `AskingStopped` (the money is spent, the key was refused, another model answers) ends the turn; the
        rows that came before stay.
        """
        label = model.identity.label
        self.manifest.models[label] = entry
        self.manifest.signature = design.sign(self.manifest.models)
        self.manifest.write(self.run)
        try:
            yield
        except AskingStopped as stopped:
            self.outcome.failed_models[label] = str(stopped)
            self.outcome.stopped.add(label)
            self.watcher.note(f"{label} stopped: {stopped}")
        finally:
            model.close()
