"""The prober's recipe: cells → scores → rows on disk → shares → effects → tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from biaskit.errors import ModelError, RunError, StudyError
from biaskit.measures.probe.design import ProbeDesign
from biaskit.measures.probe.power import plan_sentence
from biaskit.measures.probe.requests import PlannedCells
from biaskit.measures.probe.rounds import OpenCells, Rounds
from biaskit.measures.probe.rows import row_of
from biaskit.measures.probe.study import ProbeStudy
from biaskit.models.base import ContinuationScorer
from biaskit.progress import ModelPlan
from biaskit.records import PROBE_FORMS, Failed, Plan, PromptForm, Scored, ScoreRequest
from biaskit.runs.course import Pending, Work, ask_models
from biaskit.runs.manifest import estimator_of, model_entry
from biaskit.runs.rows import NoRow
from biaskit.runs.session import Outcome, Session
from biaskit.runs.shards import Shard
from biaskit.runs.store import StoredRows

Json = dict[str, Any]
Batches = Sequence[tuple[ScoreRequest, ...]]
Look = Callable[[ContinuationScorer, PromptForm], None]
CHAT_FIRST: tuple[PromptForm, ...] = ("chat-prefill", "raw", "chat-continue")


def score_cells(
    design: ProbeDesign,
    session: Session[ContinuationScorer],
    look: Look | None = None,  # is given each model and its form before anything of it is planned
    resolved: Json | None = None,  # the design's description, where it is at hand
) -> Outcome:
    """Score every cell that has no row yet and store it; the same call goes on where it stopped."""
    study = design.study
    scorers = session.begin(
        "probe",
        study.name,
        question=design.question,
        resolved=lambda: design.describe() if resolved is None else resolved,
    )
    forms = _take_sentences(scorers, session) if design.pairs else _choose_forms(study, scorers, session)
    stored: StoredRows[int] = StoredRows(matched_draws, 0)

    def work_of(label: str) -> CellWork:
        if look is not None:
            look(scorers[label], forms[label])
        return CellWork(design, scorers[label], forms[label], stored, session.shard)

    def entry_of(label: str) -> Json:
        return _entry(session, scorers[label], forms[label])

    models = {label: scorers[label] for label in forms}
    ask_models(session, study, models, stored, work_of, entry_of, design.sign)
    return session.outcome


def matched_draws(row: Mapping[str, Any]) -> int:
    """How many draws of a stored row say an expression; 0 where nothing was drawn."""
    counts = row.get("counts", {})
    if not isinstance(counts, dict) or not all(type(n) is int for n in counts.values()):
        raise NoRow("its counts are not numbers")
    return sum(counts.values())


class CellWork(Work[int]):
    """One model's cells: a request for each, or one for each round of its draws."""

    engine = "probe"

    def __init__(
        self,
        design: ProbeDesign,
        scorer: ContinuationScorer,
        form: PromptForm,
        stored: StoredRows[int],
        shard: Shard,
        rounds: Rounds | None = None,
    ) -> None:
        super().__init__(scorer, form, stored)
        self.design, self.estimator = design, scorer.estimator_for(form)
        fingerprint = scorer.identity.fingerprint
        self.cells = PlannedCells(design, self.label, form, fingerprint, self.estimator.in_key(), shard)
        self.rounds = rounds or Rounds.up_to(self.estimator.draws, design.study.max_samples_per_prompt)
        self._places: dict[str, int] = {}  # key of a cell → its place
        self._batches: Batches = ()
        self._n_due = 0

    def planned(self) -> Iterator[ScoreRequest]:
        """Each cell's rounds, up to the first that is not stored."""
        for cell in self.cells.requests:
            for number in range(self.rounds.most):
                asked = self.rounds.request(cell, number)
                yield asked
                if asked.key not in self.stored.values:
                    break

    def pending(self) -> Sequence[ScoreRequest]:
        """Each open cell's next round."""
        self._open = OpenCells(self.cells.requests, self.rounds, self.stored.values)
        return self._open.due

    def named(self, key: str) -> str:
        """The template and the job of a request."""
        for cell, request in zip(self.cells.cells, self.cells.requests, strict=True):
            if any(self.rounds.request(request, number).key == key for number in range(self.rounds.most)):
                if self.design.pairs:
                    pair = self.design.pairs[cell.template_id - 1]
                    return f"pair {pair.item!r} {pair.language}".strip()
                return f"{cell.bias_type} template {cell.template_id}, job {cell.job!r}"
        return ""

    def plan(self, pending: Pending, session: Session[Any]) -> ModelPlan:
        """Of each open cell's next round, with what all rounds up to the cap would take."""
        scorer, requests, due = self.model, self.cells.requests, pending.requests
        plan: Plan[ScoreRequest] = Plan((), calls=0, prompt_tokens=0, new_tokens_max=0, cost_max=0.0)
        seconds: float | None = 0.0
        if due:
            # Where neighbours share a forward, batches are cut from all cells, so that a resumed run has
            # those of an unbroken one, and each that holds a request without a row is asked.
            whole, stored = scorer.whole_batches, self.stored.values
            plan = scorer.plan_scores(requests if whole else due)
            self._batches = plan.batches
            if whole and stored:
                self._batches = [b for b in plan.batches if any(r.key not in stored for r in b)]
            seconds = scorer.estimate_seconds(self._batches)
            # What the expressions' tokens have in common belongs beside the numbers at every later reading.
            session.manifest["models"].setdefault(self.label, {})["notes"] = list(plan.notes)
        self._n_due = len(due)
        over_network = bool(due) and scorer.identity.where == "api"
        draws, of_demo = self.estimator.draws, scorer.identity.spec == "demo-base"
        shown = ModelPlan(
            run=session.run,
            label=self.label,
            form=self.form,
            n_cells=len(requests),
            n_stored=len(requests) - pending.n_before,
            n_taken=pending.n_before - len(due),
            taken_from=pending.sources,
            n_batches=len(self._batches),
            prompt_tokens=plan.prompt_tokens,
            seconds=seconds,
            notes=plan.notes,
            estimator=self.estimator.name,
            calls=plan.calls if over_network else None,
            cost=plan.cost_max,
            shows=plan_sentence(
                *(self.design, self.estimator.name, draws), of_demo=of_demo, n_models=len(session.models)
            )
            if session.shard.whole and not self.design.pairs
            else "",
        )
        return self._with_all_rounds(shown) if due and draws is not None else shown

    def _with_all_rounds(self, plan: ModelPlan) -> ModelPlan:
        """The plan with what all rounds up to the cap would take."""
        (least, most), rounds = self._open.outlook(), self.rounds
        more = most / least
        if plan.calls is not None:
            # Requests are cut at multiples of their number of texts: a later round may need one more.
            cell = self.cells.requests[0]
            calls = [self.model.plan_scores([rounds.request(cell, n)]).calls for n in range(rounds.most)]
            more *= max(calls) / calls[0]
        return replace(
            plan,
            draws=(least, most),
            prompt_tokens_most=round(plan.prompt_tokens * more),
            calls_most=None if plan.calls is None else round(plan.calls * more),
            seconds_most=None if plan.seconds is None else plan.seconds * more,
            cost_most=None if plan.cost is None else plan.cost * more,
        )

    def answers(self, session: Session[Any]) -> Iterator[Sequence[Scored | Failed]]:  # noqa: ARG002
        """The planned batches, and the rounds that follow from their answers."""
        self._places = {request.key: place for place, request in enumerate(self.cells.requests)}
        yield from self._open.score(self.model, self._batches)

    def row(self, answer: Scored) -> Json:
        """A row of probe.jsonl."""
        key, number = self._open.place(answer.key)
        place = self._places[key]
        cell, prompt = self.cells.cells[place], self.cells.prompts[place]
        return {**row_of(answer, cell, prompt, self.estimator, number), "model_key": self.cells.model_key}

    def progress(self) -> tuple[str, int, int]:
        """Cells that need no further round, of those that were due."""
        return self.label, self._n_due - self._open.n_left, self._n_due


def _entry(session: Session[ContinuationScorer], scorer: ContinuationScorer, form: PromptForm) -> Json:
    """A model's entry in the manifest; a folder holds one estimator of a model."""
    label = scorer.identity.label
    entry, earlier = model_entry(scorer.identity, form), session.manifest["models"].get(label, {})
    entry["estimator"] = scorer.estimator_for(form).in_key()
    before = earlier["estimator"] if earlier else entry["estimator"]
    if before != entry["estimator"] and earlier.get("prompt_form") == form:
        raise RunError(
            f"{session.run} has {label} with another estimator: {estimator_of(earlier)}, this command's is"
            f" {estimator_of(entry)}. Choose another --out."
        )
    kept = {name: earlier[name] for name in ("continuations", "reach") if name in earlier}
    return entry | {name: earlier.get(name) for name in ("batch_size", "notes")} | kept


def _take_sentences(
    scorers: Mapping[str, ContinuationScorer], session: Session[ContinuationScorer]
) -> dict[str, PromptForm]:
    """Leave out the models that do not give the probability of a whole sentence."""
    forms: dict[str, PromptForm] = {}
    for label, scorer in scorers.items():
        try:
            scorer.estimator_for("sentence")
        except ModelError as error:
            session.leave_out(label, ModelError(f"{label}: {error}"))
        else:
            forms[label] = "sentence"
    return forms


def _choose_forms(
    study: ProbeStudy, scorers: Mapping[str, ContinuationScorer], session: Session[ContinuationScorer]
) -> dict[str, PromptForm]:
    """`auto`: the first form that every model can take; where there is none, each model its own first."""
    system = bool(study.system_prompt) or study.debiasing_position == "system"
    if system and study.prompt_format == "raw":
        raise StudyError(
            "A raw prompt has no system role: leave out the system prompt, or --prompt-format raw."
        )
    tunings = {scorer.identity.tuning for scorer in scorers.values()}
    # Chat models are asked as people use them, where no base model is beside them (methods/prompts#forms).
    order = CHAT_FIRST if "instruct" in tunings and "base" not in tunings else PROBE_FORMS
    usable = [form for form in order if not (system and form == "raw")]
    usable = usable if study.prompt_format == "auto" else [study.prompt_format]
    takes: dict[str, list[PromptForm]] = {}
    for label, scorer in scorers.items():
        forms = [form for form in usable if form in scorer.identity.forms]
        if forms and (scorer.identity.takes_system or not system):
            takes[label] = forms
        else:
            session.leave_out(label, _no_form(scorer, study, system=system))
    common = [form for form in usable if all(form in forms for forms in takes.values())]
    if takes and not common:
        session.outcome.notes.append("Prompt formats differ between the models: no test between them.")
    chosen = {label: common[0] if common else forms[0] for label, forms in takes.items()}
    for label, form in list(chosen.items()):
        name = scorers[label].estimator_for(form).name
        if study.word_boundary == "word" and name not in ("exact", "sampling"):
            # The others give tokens: they do not say whether a word ends after them.
            error = ModelError(
                f"{label}: word_boundary = word is not possible by {name}. Use --estimator sampling, or"
                " word_boundary = token."
            )
            session.leave_out(label, error)
            del chosen[label]
    return chosen


def _no_form(scorer: ContinuationScorer, study: ProbeStudy, *, system: bool) -> ModelError:
    """Why a model can take none of the forms that are left."""
    label = scorer.identity.label
    if scorer.identity.where == "api" and not (system and scorer.identity.forms):
        try:
            scorer.estimator_for("raw" if study.prompt_format == "auto" else study.prompt_format)
        except ModelError as error:
            return ModelError(f"{label}: {error}")
    why = "system prompt" if system else f"prompt format {study.prompt_format}"
    return ModelError(f"{label} takes no {why}: its chat template has no place for it, or it has none.")
