"""The course of one model's questions, the same for every kind: plan, take over, ask, store, count.

A request is *planned* by a study, *stored* once its row is in the file, and *pending* while it is planned
and not stored. One that got no answer in this start has *failed*; for the next start it is pending.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from biaskit.common.wording import count
from biaskit.errors import ModelError
from biaskit.models.base import closing_stream
from biaskit.models.entry import ModelEntry
from biaskit.progress import ModelPlan
from biaskit.records import Failed, PromptFormat
from biaskit.runs.designs import Design
from biaskit.runs.drift import Drift, model_of
from biaskit.runs.reuse import copy_rows, rows_beside
from biaskit.runs.session import Session
from biaskit.runs.store import RowWriter, StoredRows, rows_file
from biaskit.runs.usage import Usage

V = TypeVar("V")
MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Pending:
    """What of a model's requests is to be asked, after other runs gave what they have."""

    requests: Sequence[Any]
    n_before: int  # how many there were before
    taken: Mapping[str, Path]  # key → the run beside this one that gives its row

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of those runs."""
        return tuple(dict.fromkeys(path.name for path in self.taken.values()))


class Work(ABC, Generic[V]):
    """One model's questions, as a measurement knows them."""

    measurement: ClassVar[str]  # whose row file they are stored in
    # Beside a model's main questions: nothing is taken over, no batch size kept.
    extra: ClassVar[bool] = False

    def __init__(self, model: Any, prompt_format: PromptFormat, stored: StoredRows[V]) -> None:
        self.model, self.prompt_format, self.stored = model, prompt_format, stored
        self.label: str = model.identity.label

    @abstractmethod
    def planned(self) -> Iterable[Any]:
        """The requests of this model that may be stored, as far as is known now."""

    @abstractmethod
    def pending(self) -> Sequence[Any]:
        """The requests that are certain to be asked: planned, and not stored."""

    @abstractmethod
    def named(self, key: str) -> str:
        """What a request asks, for a message."""

    @abstractmethod
    def plan(self, pending: Pending, session: Session[Any]) -> ModelPlan:
        """What is still to be asked, with what it takes."""

    @abstractmethod
    def answers(self, session: Session[Any]) -> Iterator[Sequence[Any]]:
        """Ask what is pending and what follows from it; a group is stored before the next is asked for."""

    @abstractmethod
    def row(self, answer: Any) -> dict[str, Any]:
        """The row of an answer."""

    @abstractmethod
    def progress(self) -> tuple[str, int, int]:
        """What is shown: a label, how many are done, of how many."""

    def as_plan(self, session: Session[Any], pending: Pending, n_units: int, **more: Any) -> ModelPlan:
        """Say how many of all units are stored, taken over and to be asked; `more`: what that takes."""
        return ModelPlan(
            run=session.run,
            label=self.label,
            prompt_format=self.prompt_format,
            n_units=n_units,
            n_stored=n_units - pending.n_before,
            n_taken=pending.n_before - len(pending.requests),
            taken_from=pending.sources,
            **more,
        )

    def failures(self, answers: Sequence[Any]) -> Sequence[Any]:
        """The answers among which failed ones count: those that are not tried once more."""
        return answers


def ask_models(
    session: Session[Any],
    design: Design,
    models: Mapping[str, Any],
    stored: StoredRows[Any],
    work_of: Callable[[str], Work[Any]],
    entry_of: Callable[[str], ModelEntry],
) -> None:
    """Ask every model or show its plan; `work_of`, `entry_of`: from a label to questions, to its entry."""
    study = design.study
    if session.dry_run:
        stored.read(rows_file(session.run, study.measurement), skip_bad=study.skip_bad_lines)
        for label, model in models.items():
            try:
                plan_work(work_of(label), session)
            except ModelError as error:
                session.leave_out(label, error)
            finally:
                model.close()
    elif models:
        with session.writing(study.measurement, study, stored) as writer:
            for label, model in models.items():
                entry, earlier = entry_of(label), session.manifest.models.get(label)
                if earlier is not None and earlier.batch_size is not None:
                    entry.batch_size = earlier.batch_size
                with session.turn(model, entry, design):
                    try:
                        ask(work_of(label), session, writer)
                    except ModelError as error:
                        session.leave_out(label, error)


def plan_work(
    work: Work[Any], session: Session[Any], known: Collection[str] = ()
) -> tuple[ModelPlan, Pending]:
    """Show what a model is still to be asked. `known`: who answered its stored rows.

    Raises `ModelError` where it cannot be asked, or where its rows answer other prompts than it gets today.
    """
    with _naming_request(work):
        if work.stored.prompts:
            _check_prompts(work)
        requests = work.pending()
        n_before, taken = len(requests), dict[str, Path]()
        if requests and session.reuse and not work.extra:
            taken = _take_over(work, session, known)
            requests = work.pending() if taken else requests
        pending = Pending(requests, n_before, taken)
        plan = work.plan(pending, session)
    session.outcome.plans.append(plan)
    session.watcher.planned(plan, dry_run=session.dry_run or session.outcome.offline is not None)
    return plan, pending


def ask(work: Work[Any], session: Session[Any], writer: RowWriter, *, starts: int = 1) -> None:
    """Plan a model's questions, take over answers, ask the rest, store all; `starts`: 0 if counted."""
    usage = Usage(session.run, work.label, starts=starts)  # before the plan, whose measurements take time too
    plan, pending = plan_work(work, session, writer.answered.get(work.label, ()))
    copy_rows(pending.taken, writer, work.label)
    if not plan.n_missing:
        return
    known, accept = writer.answered.get(work.label, ()), session.accept_model_change
    drift = Drift(work.model.identity, known, accept=accept, taken=plan.taken_from)
    counted = {"rows": 0, "new_tokens": 0, "planned_prompt_tokens": plan.prompt_tokens}

    def note_usage(*, last: bool = False) -> None:
        used = {name: n for name, n in counted.items() if n or name == "rows"}
        usage.note({**used, **work.model.used()}, last=last)

    def keep_up() -> None:
        entry = session.manifest.models[work.label]
        if not work.extra and entry.batch_size != work.model.batch_size:
            entry.batch_size = work.model.batch_size  # what `auto` found: a resumed run must cut the same
            session.manifest.write(session.run)
        session.watcher.progress(*work.progress())
        note_usage()

    keep_up()
    try:
        with _naming_request(work), closing_stream(work.answers(session)) as groups:
            for group in drift.watch(groups):
                fresh = [a for a in group if not isinstance(a, Failed) and a.key not in writer.keys]
                writer.append([work.row(answer) for answer in fresh])
                counted["rows"] += len(fresh)
                counted["new_tokens"] += sum(answer.answered.new_tokens or 0 for answer in fresh)
                session.outcome.count_failures(work.label, work.failures(group))
                keep_up()
    finally:
        note_usage(last=True)


@contextmanager
def _naming_request(work: Work[Any]) -> Iterator[None]:
    """Say which question an error is of: the backend knows only its key."""
    try:
        yield
    except ModelError as error:
        if (key := error.request_key) and (named := work.named(key)):
            raise type(error)(f"{work.label}, {named}: {error}") from error
        raise


def _check_prompts(work: Work[Any]) -> None:
    """Refuse to mix prompts: under one key, another version of a library may render another text."""
    sent = work.stored.prompts
    may_differ = (request for request in work.planned() if request.key in sent)
    if others := [r.key for r in may_differ if sent[r.key] != hash(work.model.rendered(r.prompt))]:
        more = f"; and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
        raise ModelError(
            f"{work.label}: model and study are unchanged, but the prompts differ from those of stored rows:"
            f" {'; '.join(map(work.named, others[:MOST_NAMED]))}{more}. Its chat template renders differently"
            " (another library version?). Restore that version, or start a new run with another --out."
        )


def _take_over(work: Work[Any], session: Session[Any], known: Collection[str]) -> dict[str, Path]:
    """Key → the run that has an answer to a pending request; a key holds all that an answer depends on.

    Where an API answers, only rows of one model's name: that of the stored rows, else the one that its checks
    met, else that of the first row.
    """
    identity = work.model.identity
    names = {model_of(by) for by in known} or {str((identity.abilities or {}).get("answered_by", ""))} - {""}
    watched = identity.where == "api" and not session.accept_model_change
    taken: dict[str, Path] = {}
    for path, beside in rows_beside(session, work.measurement, identity.fingerprint, work.stored.value_of):
        others: set[str] = set()
        while answered := [
            request
            for request in work.pending()
            if request.key in beside.values
            and request.key not in beside.unfit
            and request.key not in others
            and (not watched or not names or beside.answered_by[request.key] in names)
        ]:
            for request in answered:
                if beside.prompts[request.key] != hash(work.model.rendered(request.prompt)):
                    others.add(request.key)
                    continue
                names = names or {beside.answered_by[request.key]}
                if not watched or beside.answered_by[request.key] in names:
                    work.stored.values[request.key] = beside.values[request.key]
                    taken[request.key] = path
        if others:
            session.outcome.notes.append(
                f"{work.label}: {count(len(others), 'row')} of {path.name} answer other prompts and were not"
                " reused."
            )
    return taken
