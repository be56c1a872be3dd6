"""The course of questions whose answers are probabilities: what kinds that score share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from biaskit.errors import RunError
from biaskit.models.base import ContinuationScorer
from biaskit.models.entry import ModelEntry
from biaskit.progress import ModelPlan
from biaskit.records import Failed, Plan, PromptFormat, Scored, ScoreRequest
from biaskit.runs.course import Pending, Work, ask_models
from biaskit.runs.designs import Design
from biaskit.runs.session import Outcome, Session
from biaskit.runs.store import StoredRows

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


_KEPT = {"notes", "reach", "continuations"}
"""Of a model's entry, what a new start takes over beside its batch size, which `ask_models` takes over."""


def as_asked(entry: ModelEntry) -> dict[str, Any]:
    """Give the scoring options that ask a model as its entry in a manifest says it was asked."""
    estimator = entry.estimator
    if estimator is None or estimator.name == "exact":
        return {"estimator": "auto"}
    chosen = {"estimator": estimator.name, "k": estimator.k, "samples": estimator.samples}
    return {name: value for name, value in chosen.items() if value is not None}
