"""One start of a run of either engine: models are opened, left out or stopped, and failures counted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from biaskit.errors import AskingStopped, BiaskitError, ModelError
from biaskit.models.base import ContinuationScorer, TextGenerator
from biaskit.models.options import NEW, Account
from biaskit.progress import ModelPlan, Silent, Watcher
from biaskit.records import Failed
from biaskit.runs.before import Before
from biaskit.runs.folder import check_run_folder
from biaskit.runs.manifest import MANIFEST, start_manifest, write_manifest
from biaskit.runs.prompts import EarlierPrompts, earlier_prompts
from biaskit.runs.reuse import Answers, RowsOf, find_answers
from biaskit.runs.shards import WHOLE, Shard
from biaskit.runs.store import RowWriter
from biaskit.runs.usage import promise, spent
from biaskit.study.keys import Study

if TYPE_CHECKING:
    from biaskit.models.api.offline import Offline


@dataclass(slots=True)
class Outcome:
    """Which models were left out or stopped, which requests have no answer, and what was noticed."""

    failed_models: dict[str, str] = field(default_factory=dict)
    stopped: set[str] = field(default_factory=set)  # of those, the models that had begun to answer
    failed: dict[str, dict[str, int]] = field(default_factory=dict)  # label → reason → number
    notes: list[str] = field(default_factory=list)
    plans: list[ModelPlan] = field(default_factory=list)
    offline: Offline | None = None  # nobody is asked: what has no answer has not failed

    def count_failures(self, label: str, answers: Sequence[object]) -> None:
        """Count the failed requests among some answers, by reason."""
        for answer in answers if self.offline is None else ():
            if isinstance(answer, Failed):
                reasons = self.failed.setdefault(label, {})
                reasons[answer.reason] = reasons.get(answer.reason, 0) + 1


M = TypeVar("M", ContinuationScorer, TextGenerator)
V = TypeVar("V")
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
    accept_drift: bool = False
    command: str = ""  # as given in the shell, for the manifest
    manifest: dict[str, Any] = field(default_factory=dict)
    outcome: Outcome = field(default_factory=Outcome)
    reuse: bool = True  # take over what runs beside this one have stored
    earlier: dict[str, EarlierPrompts] = field(default_factory=dict)  # of models that are not what they were
    shard: Shard = WHOLE  # which part of the plan is asked

    def begin(
        self,
        engine: str,
        study: str,
        *,
        question: Callable[[], Mapping[str, Any]],
        resolved: Callable[[], Mapping[str, Any]],
    ) -> dict[str, M]:
        """Bring the manifest up to this question, and open every model that passes its first checks.

        A dry run of a folder that is still to be made has nothing to hold them against, and writes nothing.
        """
        check_run_folder(self.run)
        if self.dry_run and not (self.run / MANIFEST).exists():
            self.manifest = {"models": {}}
        else:
            self.manifest = start_manifest(
                self.run,
                engine,
                study,
                question=question(),
                resolved=resolved(),
                command=self.command,
                shard=self.shard,
            )
        opened: dict[str, M] = {}
        changed: list[str] = []
        for label, spec in self.models.items():
            known = self.manifest["models"].get(label, NEW)
            try:
                model = self.open_model(label, spec, known, self.account(label))
            except ModelError as error:
                self.leave_out(label, error)
                continue
            if known and known["fingerprint"] != model.identity.fingerprint:
                self.outcome.notes.append(
                    f"{label} is not the model it was: its earlier rows stay in the file and are not used."
                )
                changed.append(label)
            opened[label] = model
        self.earlier = earlier_prompts(self.run, engine, changed)
        return opened

    def account(self, label: str) -> Account:
        """What the run has spent so far, and where this model says that it will spend more."""
        return Account(spent(self.run), partial(promise, self.run, label, spent(self.run, label)))

    def leave_out(self, label: str, error: BiaskitError) -> None:
        """Go on without a model, which is named with its reason; the only model's error is raised."""
        if len(self.models) == 1:
            raise error
        self.outcome.failed_models[label] = str(error)
        self.watcher.note(f"{label} is left out: {error}")

    @contextmanager
    def writing(self, engine: str, study: Study) -> Iterator[RowWriter]:
        """The run's rows, open to be added to. A start that stores nothing and spends nothing leaves nothing.

        A declined plan, Ctrl-C before the first answer, or the only model's error make no run, so the newest
        run stays the last real one.
        """
        before = Before.of(self.run, engine)
        try:
            with RowWriter(self.run, engine, lock=study.lock, skip_bad=study.skip_bad_lines) as writer:
                n_before = len(writer.keys)
                self.outcome.notes += writer.reading.notes
                done = False
                try:
                    yield writer
                    done = bool(self.outcome.failed) or not self.outcome.failed_models
                finally:
                    if not done and len(writer.keys) == n_before:
                        before.restore(engine)
        finally:
            before.remove_folders()

    @contextmanager
    def turn(
        self, model: M, entry: dict[str, Any], sign: Callable[[Mapping[str, Any]], str]
    ) -> Iterator[None]:
        """A model's turn: its entry and the run's signature are written first, the model is closed last.

        `AskingStopped` (the money is spent, the key was refused, another model answers) ends the turn; the
        rows that came before stay.
        """
        label = model.identity.label
        self.manifest["models"][label] = entry
        self.manifest["signature"] = sign(self.manifest["models"])
        write_manifest(self.run, self.manifest)
        try:
            yield
        except AskingStopped as stopped:
            self.outcome.failed_models[label] = str(stopped)
            self.outcome.stopped.add(label)
            self.watcher.note(f"{label} was stopped: {stopped}")
        finally:
            model.close()
            if label in self.earlier:
                self.outcome.notes += self.earlier[label].notes()

    def note_prompts(self, label: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Hold the prompts of new rows against those of the model that had the label before."""
        if label in self.earlier:
            self.earlier[label].compare(rows)

    def find_answers(
        self,
        engine: str,
        model: M,
        fits: Callable[[Mapping[str, Any], str], V | None],
        answered: Collection[str],
        rows_of: RowsOf,
    ) -> Answers[V]:
        """What runs beside this one have stored of a model's questions (`runs/reuse.py`); none if refused."""
        if not self.reuse:
            return Answers()
        drift = self.accept_drift
        found = find_answers(
            self.run, engine, model.identity, fits,
            answered=answered, accept_drift=drift, rows_of=rows_of,
        )  # fmt: skip
        self.outcome.notes += [note for note in found.notes if note not in self.outcome.notes]
        return found

    def show_plan(self, plan: ModelPlan) -> None:
        """Show what a model is still to be asked, before it is asked."""
        self.outcome.plans.append(plan)
        self.watcher.planned(plan, dry_run=self.dry_run or self.outcome.offline is not None)

    def keep_batch_size(self, model: M) -> None:
        """Write down the size that `auto` found: a resumed run must cut the same batches."""
        entry = self.manifest["models"][model.identity.label]
        if entry.get("batch_size") != model.batch_size:
            entry["batch_size"] = model.batch_size
            write_manifest(self.run, self.manifest)
