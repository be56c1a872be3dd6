"""Personas's first half: series of samples → batches → texts on disk, where analysis starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from biaskit.errors import ModelError
from biaskit.measurement import words
from biaskit.measures.personas.design import PersonasDesign
from biaskit.measures.personas.power import plan_sentence
from biaskit.measures.personas.sampling.open_samples import OpenSamples
from biaskit.measures.personas.sampling.series import SampleSeries, format_for
from biaskit.measures.personas.texts.association import associate_answer
from biaskit.measures.personas.texts.documents import why_not
from biaskit.models.base import TextGenerator, closing_stream
from biaskit.models.entry import ModelEntry
from biaskit.progress import ModelPlan
from biaskit.records import Failed, Plan, PromptFormat, Sample, SampleRequest
from biaskit.runs.course import Pending, Work, ask_models
from biaskit.runs.rows import NoRow
from biaskit.runs.session import Outcome, Session
from biaskit.runs.store import StoredRows


def sample_texts(design: PersonasDesign, session: Session[TextGenerator]) -> Outcome:
    """Sample and store every text that has no row yet."""
    generators = session.begin(design)
    formats = _formats(design, generators, session)
    stored: StoredRows[str | None] = StoredRows(gender_of(design), None)
    sharded = design.part(session.shard)

    def work_of(label: str) -> SampleWork:
        return SampleWork(sharded, generators[label], formats[label], stored)

    def entry_of(label: str) -> ModelEntry:
        return ModelEntry.of(generators[label].identity, formats[label])

    models = {label: generators[label] for label in formats}
    ask_models(session, design, models, stored, work_of, entry_of)
    return session.outcome


def gender_of(design: PersonasDesign) -> Callable[[Mapping[str, Any]], str | None]:
    """From a stored text to its inferred gender, as a study reads it."""

    def gender(row: Mapping[str, Any]) -> str | None:
        if why := why_not(row):
            raise NoRow(why)
        return associate_answer(row["text"], row["finish_reason"], **design.study.reading).gender

    return gender


def _formats(
    design: PersonasDesign, generators: Mapping[str, TextGenerator], session: Session[TextGenerator]
) -> dict[str, PromptFormat]:
    """Each model's own form: a personas run has one format per model (methods/texts#completion-formats)."""
    formats: dict[str, PromptFormat] = {}
    for label, generator in generators.items():
        try:
            formats[label] = format_for(design.study, generator.identity)
        except ModelError as error:
            session.leave_out(label, error)
    if len(set(formats.values())) > 1:
        listed = ", ".join(map(" ".join, formats.items()))
        session.outcome.notes.append(words("personas")["notes"]["formats_differ"].format(listed))
    return formats


class SampleWork(Work[str | None]):
    """One model's samples: batches of all its open series, and once the texts whose prompt names a gender."""

    measurement = "personas"

    def __init__(
        self,
        design: PersonasDesign,
        generator: TextGenerator,
        prompt_format: PromptFormat,
        stored: StoredRows[str | None],
    ) -> None:
        super().__init__(generator, prompt_format, stored)
        self.design = design
        self.samples = OpenSamples(design, prompt_format, generator.identity.fingerprint, stored.values)
        self._batch_number, self._written, self._missing = 0, 0, 0
        self._last_try = False

    def planned(self) -> Iterator[SampleRequest]:
        """Each series' samples, up to the first that is not stored."""
        for series in self.samples.series:
            yield from self.samples.stored_of(series)

    def pending(self) -> Sequence[SampleRequest]:
        """The samples that are certain to be asked."""
        return self.samples.outlook()[0]

    def named(self, key: str) -> str:
        """The prompt and the occupation of a sample."""
        series = self.samples.series_with(key)
        return "" if series is None else f"prompt {series.template_id}, occupation {series.occupation!r}"

    def plan(self, pending: Pending, session: Session[Any]) -> ModelPlan:
        """How many samples are to come, as a range where Algorithm 5 decides."""
        missing, later = len(pending.requests), self.samples.outlook()[1]
        plan: Plan[SampleRequest] = Plan((), calls=0, prompt_tokens=0, new_tokens_max=0, cost_max=0.0)
        seconds: float | None = 0.0
        if missing:
            plan = self.model.plan_samples(pending.requests)
            seconds = self.model.estimate_seconds(plan.new_tokens_max)
        samples, filling = self.samples, self.samples.filling
        n_there = sum(key in samples.stored for key in samples.of_key)
        n_most = len(samples.open_series) * filling.most + len(samples.requested) * filling.n
        texts: dict[str, Any] = {
            "n_units": n_there + missing,
            "n_units_most": min(n_most, n_there + missing + later),
            "n_stored": n_there - len(pending.taken),
            "n_taken": len(pending.taken),
        }
        growth = (missing + later) / missing if missing else 1.0
        takes: dict[str, Any] = {"new_tokens": plan.new_tokens_max, "seconds": seconds, "cost": plan.cost_max}
        for name in ("seconds", "cost"):
            takes[f"{name}_most"] = None if takes[name] is None else takes[name] * growth
        if self.model.identity.where == "api":
            takes["calls"] = plan.calls
        if session.shard.whole:
            takes["shows"] = plan_sentence(self.design, len(session.models))
        return ModelPlan(
            run=session.run,
            label=self.label,
            prompt_format=self.prompt_format,
            taken_from=pending.sources,
            n_batches=0,
            prompt_tokens=plan.prompt_tokens,
            unit="texts",
            **texts,
            **takes,
        )

    def answers(self, session: Session[Any]) -> Iterator[Sequence[Sample | Failed]]:
        """Batch after batch, until no series is open; a failed sample is requested once more in its batch."""
        if session.outcome.offline is not None:
            # Nobody is asked: what came may have opened a batch whose answers are at hand too.
            n_stored = -1
            while len(self.samples.stored) > n_stored and (due := self.pending()):
                n_stored = len(self.samples.stored)
                yield from self._answers_to(due)
            return
        still_open: list[SampleSeries] = list(self.samples.open_series)
        while still_open or self._batch_number == 0:
            requests = self.samples.batch(self._batch_number, still_open)
            for self._last_try in (False, True):
                if any(map(self.samples.is_missing, requests)):
                    yield from self._answers_to(requests)
            self._batch_number += 1
            still_open = [series for series in still_open if self.samples.is_open(series, self._batch_number)]

    def _answers_to(self, requests: Sequence[SampleRequest]) -> Iterator[Sequence[Sample | Failed]]:
        """Sample what a batch lacks."""
        missing = [request for request in requests if self.samples.is_missing(request)]
        # Where neighbours share a forward, a resumed run has the batches of an unbroken one.
        plan = self.model.plan_samples(requests if self.model.whole_batches else missing)
        batches = [batch for batch in plan.batches if any(map(self.samples.is_missing, batch))]
        self._written, self._missing = 0, len(missing)
        with closing_stream(self.model.generate(batches)) as groups:
            for group in groups:
                fresh = [answer for answer in group if answer.key not in self.samples.stored]
                self._written += sum(isinstance(answer, Sample) for answer in fresh)
                yield fresh
                for answer in fresh:
                    if isinstance(answer, Sample):
                        found = associate_answer(answer.text, answer.finish, **self.design.study.reading)
                        self.samples.stored[answer.key] = found.gender
                    elif self._last_try:
                        self.samples.given_up.add(answer.key)

    def failures(self, answers: Sequence[Sample | Failed]) -> Sequence[Sample | Failed]:
        """Those of the second try."""
        return answers if self._last_try else ()

    def progress(self) -> tuple[str, int, int]:
        """Texts of the batch."""
        return f"{self.label}, batch {self._batch_number + 1}", self._written, self._missing

    def row(self, answer: Sample) -> dict[str, Any]:
        """A row of personas.jsonl (reference/run-folder#rows)."""
        series, request = self.samples.of_key[answer.key]
        row = {"key": answer.key, "model": self.label, **series.scope(), "sample": request.number}
        row["seed"] = request.seed if answer.seeded else None
        row |= {"prompt_format": self.prompt_format, "prompt": answer.prompt, "system": series.prompt.system}
        row["text"] = answer.text
        if answer.raw is not None:
            row["raw"] = answer.raw
        how = answer.answered
        row |= {"finish_reason": answer.finish, "n_tokens": how.new_tokens}
        return row | {"prompt_tokens": how.prompt_tokens, "answered_by": how.by, "answered_at": how.at}
