"""How mentions are asked: texts that have no row yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from biaskit.measures.mentions.design import MentionsDesign
from biaskit.models.base import TextGenerator
from biaskit.models.entry import ModelEntry
from biaskit.models.spec import open_generator
from biaskit.progress import ModelPlan
from biaskit.records import Plan, Sample, SampleRequest
from biaskit.runs.course import Pending, Work, ask_models
from biaskit.runs.manifest import Manifest
from biaskit.runs.session import Outcome, Session
from biaskit.runs.shards import Shard
from biaskit.runs.store import StoredRows


class MentionsWork(Work[None]):
    """One model's texts."""

    measurement = "mentions"

    def __init__(
        self, design: MentionsDesign, generator: TextGenerator, stored: StoredRows[None], shard: Shard
    ) -> None:
        super().__init__(generator, "raw", stored)
        self.jobs, self.requests = {}, []
        for job, request in shard.among(design.requests(generator.identity.fingerprint)):
            self.jobs[request.key] = job, request
            self.requests.append(request)
        self.n_due = self.n_done = 0

    def planned(self) -> Sequence[SampleRequest]:
        """Each text."""
        return self.requests

    def pending(self) -> Sequence[SampleRequest]:
        """Each text that has no row."""
        return [request for request in self.requests if request.key not in self.stored.values]

    def named(self, key: str) -> str:
        """The job of a text."""
        return self.jobs[key][0]

    def plan(self, pending: Pending, session: Session[Any]) -> ModelPlan:
        """How many texts are to come."""
        self.n_due, n = len(pending.requests), len(self.requests)
        plan: Plan[SampleRequest] = Plan((), calls=0, prompt_tokens=0, new_tokens_max=0, cost_max=0.0)
        if pending.requests:
            plan = self.model.plan_samples(pending.requests)
        self.batches = plan.batches
        return self.as_plan(
            session,
            pending,
            n,
            n_batches=len(plan.batches),
            prompt_tokens=plan.prompt_tokens,
            new_tokens=plan.new_tokens_max,
            seconds=self.model.estimate_seconds(plan.new_tokens_max),
            unit="texts",
            calls=plan.calls if self.model.identity.where == "api" else None,
            cost=plan.cost_max,
        )

    def answers(self, session: Session[Any]) -> Iterator[Sequence[Any]]:
        """Ask what is pending."""
        for group in self.model.generate(self.batches):
            self.n_done += len(group)
            yield group

    def row(self, answer: Sample) -> dict[str, Any]:
        """Make the row of mentions.jsonl for a text."""
        job, request = self.jobs[answer.key]
        return {
            "key": answer.key,
            "model": self.label,
            "job": job,
            "number": request.number,
            "seed": request.seed if answer.seeded else None,
            "prompt": answer.prompt,
            "system": None,
            "prompt_format": self.prompt_format,
            "text": answer.text,
            "finish_reason": answer.finish,
            "answered_by": answer.answered.by,
            "answered_at": answer.answered.at,
        }

    def progress(self) -> tuple[str, int, int]:
        """How many were answered, of those that were due."""
        return self.label, self.n_done, self.n_due


def open_model(
    design: MentionsDesign,
    spec: str,
    *,
    asked_as: ModelEntry | None = None,
    **how: Any,
) -> TextGenerator:
    """Open a generator."""
    return open_generator(spec, **how)


def ask(design: MentionsDesign, session: Session[Any]) -> Outcome:
    """Ask for every text that has no row yet."""
    opened = session.begin(design)
    stored: StoredRows[None] = StoredRows(lambda _: None, None)
    ask_models(
        session,
        design,
        opened,
        stored,
        lambda label: MentionsWork(design, opened[label], stored, session.shard),
        lambda label: ModelEntry.of(opened[label].identity, "raw"),
    )
    return session.outcome


def finder(
    manifest: Manifest, design: MentionsDesign
) -> Callable[[Mapping[str, Any]], tuple[str, SampleRequest] | None]:
    """From a stored row to the model and the request that it answers."""
    asked: dict[str, tuple[str, SampleRequest]] = {}
    for label, entry in manifest.models.items():
        for _, request in design.requests(entry.fingerprint):
            asked.setdefault(request.key, (label, request))
    return lambda row: asked.get(row["key"])
