"""The course of questions whose answers are probabilities: what kinds that score share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from biaskit.errors import RunError
from biaskit.models.base import ContinuationScorer
from biaskit.models.entry import ModelEntry
from biaskit.progress import ModelPlan
from biaskit.records import Failed, Plan, PromptFormat, Scored, ScoreRequest
from biaskit.runs.course import Pending, Work, ask_models
from biaskit.runs.designs import Design
from biaskit.runs.rows import NoRow
from biaskit.runs.sample_batches import OpenCells, SampleBatches
from biaskit.runs.session import Outcome, Session
from biaskit.runs.store import StoredRows, read_rows

V = TypeVar("V")
Batches = Sequence[tuple[ScoreRequest, ...]]


class ScoreWork(Work[V]):
    """One model's requests, each asked once; a kind adds how a row is made and named."""

    def __init__(
        self,
        scorer: ContinuationScorer,
        prompt_format: PromptFormat,
        stored: StoredRows[V],
        requests: Sequence[ScoreRequest],
    ) -> None:
        super().__init__(scorer, prompt_format, stored)
        self.requests, self.estimator = requests, scorer.estimator_for(prompt_format)
        self.batches: Batches = ()
        self.n_due = self.n_done = 0

    def planned(self) -> Iterator[ScoreRequest]:
        """Each request."""
        yield from self.requests

    def pending(self) -> Sequence[ScoreRequest]:
        """Each request that has no row."""
        return [request for request in self.requests if request.key not in self.stored.values]

    def plan(self, pending: Pending, session: Session[Any]) -> ModelPlan:
        """What is still to be asked, in batches."""
        scorer, due = self.model, pending.requests
        plan: Plan[ScoreRequest] = Plan((), calls=0, prompt_tokens=0, new_tokens_max=0, cost_max=0.0)
        seconds: float | None = 0.0
        if due:
            # Where neighbours share a forward, batches are cut from all requests, so that a resumed run has
            # those of an unbroken one, and each that holds a request without a row is asked.
            whole, stored = scorer.whole_batches, self.stored.values
            plan = scorer.plan_scores(self.requests if whole else due)
            self.batches = plan.batches
            if whole and stored:

                def is_open(batch: tuple[ScoreRequest, ...]) -> bool:
                    return any(request.key not in stored for request in batch)

                self.batches = list(filter(is_open, plan.batches))
            seconds = scorer.estimate_seconds(self.batches)
            # What the target words' tokens have in common belongs beside the numbers at every later reading.
            if entry := session.manifest.models.get(self.label):
                entry.notes = list(plan.notes)
        self.n_due = len(due)
        calls = plan.calls if due and scorer.identity.where == "api" else None
        shows = self.shows(session) if session.shard.whole else ""
        return self.as_plan(
            session,
            pending,
            len(self.requests),
            n_batches=len(self.batches),
            prompt_tokens=plan.prompt_tokens,
            seconds=seconds,
            notes=plan.notes,
            estimator=self.estimator.name,
            calls=calls,
            cost=plan.cost_max,
            shows=shows,
        )

    def shows(self, session: Session[Any]) -> str:  # noqa: ARG002
        """Say which difference the plan could show; empty where nobody knows."""
        return ""

    def answers(self, session: Session[Any]) -> Iterator[Sequence[Scored | Failed]]:  # noqa: ARG002
        """Ask the planned batches."""
        for group in self.model.score(self.batches):
            self.n_done += len(group)
            yield group

    def progress(self) -> tuple[str, int, int]:
        """How many were answered, of those that were due."""
        return self.label, self.n_done, self.n_due


def matched_samples(row: Mapping[str, Any]) -> int:
    """How many samples of a stored row say a target word; 0 where nothing was drawn."""
    counts = row.get("counts", {})
    if not isinstance(counts, dict) or not all(type(n) is int for n in counts.values()):
        raise NoRow("its counts are not numbers")
    return sum(counts.values())


class BatchWork(ScoreWork[int]):
    """Requests that sampling asks batch by batch (`sample_batches`); other estimators ask each once."""

    def __init__(
        self,
        scorer: ContinuationScorer,
        prompt_format: PromptFormat,
        stored: StoredRows[int],
        requests: Sequence[ScoreRequest],
        most: int,  # samples of a request
        sample_batches: SampleBatches | None = None,
    ) -> None:
        super().__init__(scorer, prompt_format, stored, requests)
        self.sample_batches = sample_batches or SampleBatches.up_to(self.estimator.samples, most)

    def planned(self) -> Iterator[ScoreRequest]:
        """Each request's batches, up to the first that is not stored."""
        for request in self.requests:
            for number in range(self.sample_batches.most):
                asked = self.sample_batches.request(request, number)
                yield asked
                if asked.key not in self.stored.values:
                    break

    def pending(self) -> Sequence[ScoreRequest]:
        """Each open request's next batch."""
        self._open = OpenCells(self.requests, self.sample_batches, self.stored.values)
        return self._open.due

    def plan(self, pending: Pending, session: Session[Any]) -> ModelPlan:
        """Of each open request's next batch, with what all batches up to the cap would take."""
        plan = super().plan(pending, session)
        if not pending.requests or self.estimator.samples is None:
            return plan
        (least, most), sample_batches = self._open.outlook(), self.sample_batches
        more = most / least
        of_most: dict[str, Any] = {}
        if plan.calls is not None:
            # Requests are cut at multiples of their number of texts: a later batch may need one more.
            calls = []
            for number in range(sample_batches.most):
                asked = sample_batches.request(self.requests[0], number)
                calls.append(self.model.plan_scores([asked]).calls)
            more *= max(calls) / calls[0]
            of_most["calls_most"] = round(plan.calls * more)
        if plan.seconds is not None:
            of_most["seconds_most"] = plan.seconds * more
        if plan.cost is not None:
            of_most["cost_most"] = plan.cost * more
        tokens = round(plan.prompt_tokens * more)
        return replace(plan, samples=(least, most), prompt_tokens_most=tokens, **of_most)

    def answers(self, session: Session[Any]) -> Iterator[Sequence[Scored | Failed]]:  # noqa: ARG002
        """The planned batches, and the batches that follow from their answers."""
        yield from self._open.score(self.model, self.batches)

    def progress(self) -> tuple[str, int, int]:
        """Requests that need no further batch, of those that were due."""
        return self.label, self.n_due - self._open.n_left, self.n_due


def prompts_begun(rows: Path) -> int:
    """Count the prompts that have a row: how many batches of samples one needs shows when it is asked."""
    return sum(not row.get("batch") for row in read_rows(rows, skip_bad=True)) if rows.is_file() else 0


def score_models(
    design: Design,
    session: Session[ContinuationScorer],
    stored: StoredRows[V],
    formats_of: Callable[[Mapping[str, ContinuationScorer]], Mapping[str, PromptFormat]],
    work_of: Callable[[ContinuationScorer, PromptFormat], ScoreWork[V]],
) -> Outcome:
    """Score what has no row yet and store it; the same call goes on where it stopped.

    `formats_of`: label → prompt format of the models that can be asked; `work_of`: the questions of one.
    """
    scorers = session.begin(design)
    formats = formats_of(scorers)

    def work(label: str) -> ScoreWork[V]:
        return work_of(scorers[label], formats[label])

    def entry(label: str) -> ModelEntry:
        return entry_of_scorer(session, scorers[label], formats[label])

    models = {label: scorers[label] for label in formats}
    ask_models(session, design, models, stored, work, entry)
    return session.outcome


def entry_of_scorer(
    session: Session[Any], scorer: ContinuationScorer, prompt_format: PromptFormat
) -> ModelEntry:
    """Make a model's entry in the manifest. Raises `RunError`: a folder holds one estimator of a model."""
    label, estimator = scorer.identity.label, scorer.estimator_for(prompt_format)
    earlier = session.manifest.models.get(label)
    kept: dict[str, Any] = {"batch_size": None, "notes": None}
    if earlier is not None:
        if earlier.estimator != estimator and earlier.prompt_format == prompt_format:
            raise RunError(
                f"{session.run} has {label} with another estimator: {earlier.estimator_name}, this command's"
                f" is {estimator}. Choose another --out."
            )
        kept |= {name: getattr(earlier, name) for name in _KEPT & earlier.model_fields_set}
    return ModelEntry.of(scorer.identity, prompt_format, estimator=estimator, **kept)


_KEPT = {"notes", "reach", "continuations", "ways"}
"""Of a model's entry, what a new start takes over beside its batch size, which `ask_models` takes over."""


def as_asked(entry: ModelEntry) -> dict[str, Any]:
    """Give the scoring options that ask a model as its entry in a manifest says it was asked."""
    estimator = entry.estimator
    if estimator is None or estimator.name == "exact":
        return {"estimator": "auto"}
    chosen = {"estimator": estimator.name, "k": estimator.k, "samples": estimator.samples}
    return {name: value for name, value in chosen.items() if value is not None}
