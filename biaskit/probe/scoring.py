"""The prober's recipe: cells → scores → rows on disk → shares → effects → tables."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from biaskit.errors import BiaskitError, ModelError, RunError, StudyError, TokenizationError
from biaskit.models.base import ContinuationScorer, closing_stream
from biaskit.probe.design import ProbeDesign
from biaskit.probe.planned import PlannedCells
from biaskit.probe.power import plan_sentence
from biaskit.probe.rounds import OpenCells, Rounds
from biaskit.probe.rows import columns_of, fault_of, row_of
from biaskit.probe.shares.cells import cell_shares
from biaskit.probe.stored_design import compatibility, describe_design, design_signature
from biaskit.progress import ModelPlan
from biaskit.records import (
    PROBE_FORMS,
    Estimator,
    Plan,
    PromptForm,
    Scored,
    ScoreRequest,
)
from biaskit.runs.drift import Drift
from biaskit.runs.manifest import estimator_of, model_entry
from biaskit.runs.prompts import SamePrompts
from biaskit.runs.reuse import Answers, rows_with
from biaskit.runs.session import Outcome, Session
from biaskit.runs.store import ModelSpans, Reading, RowWriter, read_rows, rows_file
from biaskit.runs.usage import Usage
from biaskit.sequences import picked
from biaskit.study.keys import ProbeStudy

Json = dict[str, Any]
Batches = Sequence[tuple[ScoreRequest, ...]]
Look = Callable[[ContinuationScorer, PromptForm], None]


def score_cells(
    design: ProbeDesign,
    session: Session[ContinuationScorer],
    look: Look | None = None,
    resolved: Json | None = None,
) -> Outcome:
    """Score every cell that has no row yet and store it; the same call goes on where it stopped.

    `look`: is given each model with the form that was chosen for it, before anything of it is planned.
    `resolved`: the design's description, where it is at hand.
    """
    study, run = design.study, session.run
    scorers = session.begin(
        "probe",
        study.name,
        question=partial(compatibility, design),
        resolved=lambda: describe_design(design) if resolved is None else resolved,
    )
    forms = _choose_forms(study, scorers, session)
    if session.dry_run:
        stored, spans = _stored(run, study)
        for label, form in forms.items():
            if look is not None:
                look(scorers[label], form)
            _plan_model(design, scorers[label], form, stored, spans, (), session)
            scorers[label].close()
        return session.outcome
    if not forms:
        return session.outcome
    with session.writing("probe", study) as writer:
        drawn = any(scorers[label].estimator_for(form).draws for label, form in forms.items())
        stored = _stored(run, study)[0] if drawn else dict.fromkeys(writer.keys, 0)
        for label, form in forms.items():
            entry = _entry(session, scorers[label], form)
            with session.turn(scorers[label], entry, partial(design_signature, design)):
                if look is not None:
                    look(scorers[label], form)
                _run_model(design, scorers[label], form, writer, stored, session)
    return session.outcome


def _entry(session: Session[ContinuationScorer], scorer: ContinuationScorer, form: PromptForm) -> Json:
    """A model's entry in the manifest; a folder holds one estimator of a model."""
    label = scorer.identity.label
    entry, earlier = model_entry(scorer.identity, form), session.manifest["models"].get(label, {})
    entry["estimator"] = scorer.estimator_for(form).in_key()
    before = earlier.get("estimator", "exact") if earlier else entry["estimator"]
    if before != entry["estimator"] and earlier.get("prompt_form") == form:
        raise RunError(
            f"{session.run} holds {label} by another estimator: {estimator_of(earlier)}, this command's is"
            f" {estimator_of(entry)}. Choose another --out."
        )
    kept = {name: earlier[name] for name in ("continuations",) if name in earlier}
    return entry | {name: earlier.get(name) for name in ("batch_size", "notes")} | kept


def _choose_forms(
    study: ProbeStudy, scorers: Mapping[str, ContinuationScorer], session: Session[ContinuationScorer]
) -> dict[str, PromptForm]:
    """`auto`: the first form that every model can take; where there is none, each model its own first."""
    system = bool(study.system_prompt) or study.instruction_position == "system"
    if system and study.prompt_form == "raw":
        raise StudyError(
            "A raw prompt has no system role: leave out the system prompt, or --prompt-form raw."
        )
    usable = [form for form in PROBE_FORMS if not (system and form == "raw")]
    usable = usable if study.prompt_form == "auto" else [study.prompt_form]
    takes: dict[str, list[PromptForm]] = {}
    for label, scorer in scorers.items():
        forms = [form for form in usable if form in scorer.identity.forms]
        if forms and (scorer.identity.takes_system or not system):
            takes[label] = forms
        else:
            session.leave_out(label, _no_form(scorer, study, system=system))
    common = [form for form in usable if all(form in forms for forms in takes.values())]
    if takes and not common:
        session.outcome.notes.append(
            "Prompt forms differ between the models: no contrast between those is made."
        )
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
            scorer.estimator_for("raw" if study.prompt_form == "auto" else study.prompt_form)
        except ModelError as error:
            return ModelError(f"{label}: {error}")
    why = "system prompt" if system else f"prompt form {study.prompt_form}"
    return ModelError(f"{label} takes no {why}: its chat template has no place for it, or it has none.")


def _stored(run: Path, study: ProbeStudy) -> tuple[dict[str, int], ModelSpans]:
    """Key → matched draws of every stored row, 0 where nothing is drawn; and where each model's rows lie."""
    path, reading = rows_file(run, "probe"), Reading()
    stored: dict[str, int] = {}
    spans = ModelSpans()
    for row in read_rows(path, skip_bad=study.skip_bad_lines, reading=reading) if path.exists() else ():
        stored[row["key"]] = sum(row.get("counts", {}).values())
        spans.add(row, reading.start, reading.good_end)
    return stored, spans


def _plan_model(
    design: ProbeDesign,
    scorer: ContinuationScorer,
    form: PromptForm,
    stored: dict[str, int],
    spans: ModelSpans,
    answered: Collection[str],
    session: Session[ContinuationScorer],
) -> tuple[PlannedCells, OpenCells, Batches, Answers[int]] | None:
    """A model's cells, those that are open, the batches that hold one, and what is taken over for the others.

    None where it failed its checks. `spans`: of the stored rows; `answered`: who answered the model's.
    """
    identity, estimator = scorer.identity, scorer.estimator_for(form)
    model = identity.fingerprint
    planned = PlannedCells(design, identity.label, form, model, estimator.in_key(), session.shard)
    rounds = Rounds.of(estimator.draws, design.study.max_draws_per_cell)
    same = SamePrompts(scorer)
    try:
        path, skip_bad = rows_file(session.run, "probe"), design.study.skip_bad_lines
        hold_prompts(spans.rows(path, planned.model_key, skip_bad=skip_bad), planned, same)
    except ModelError as error:
        scorer.close()
        session.leave_out(identity.label, error)
        return None
    open_cells = OpenCells(planned.requests, rounds, stored)
    n_stored = len(planned.requests) - len(open_cells.due)
    taken: Answers[int] = Answers()
    if open_cells.due:
        fits = partial(_matched_draws, stored, planned, rounds, estimator, design, same)
        own = partial(rows_with, planned.model_key)
        taken = session.find_answers("probe", scorer, fits, answered, own)
        session.outcome.notes += same.notes()
    if taken.values:
        stored |= taken.values
        open_cells = OpenCells(planned.requests, rounds, stored)
        taken.keep(open_cells.used)
    plan: Plan[ScoreRequest] = Plan((), calls=0, prompt_tokens=0, new_tokens_max=0, cost_max=0.0)
    pending: Batches = ()
    seconds: float | None = 0.0
    try:
        if open_cells.due:
            # All where neighbours share a forward, so that the batches stay; else those that are due.
            plan = scorer.plan_scores(planned.requests if scorer.whole_batches else open_cells.due)
            pending = _pending(plan.batches, stored)
            seconds = scorer.estimate_seconds(pending)
    except ModelError as error:
        scorer.close()
        session.leave_out(identity.label, _name_cell(error, planned, open_cells))
        return None
    shown = ModelPlan(
        run=session.run,
        label=identity.label,
        form=form,
        n_cells=len(planned.requests),
        n_stored=n_stored,
        n_taken=len(planned.requests) - len(open_cells.due) - n_stored,
        taken_from=taken.sources,
        n_batches=len(pending),
        prompt_tokens=plan.prompt_tokens,
        seconds=seconds,
        notes=plan.notes,
        estimator=estimator.name,
        calls=plan.calls if pending and identity.where == "api" else None,
        cost=plan.cost_max,
        shows=plan_sentence(design, estimator.name, estimator.draws, of_demo=identity.spec == "demo")
        if session.shard.whole
        else "",
    )
    if pending and estimator.draws is not None:
        shown = _in_rounds(shown, open_cells, planned, scorer)
    session.show_plan(shown)
    return planned, open_cells, pending, taken


def hold_prompts(rows: Iterable[Mapping[str, Any]], planned: PlannedCells, same: SamePrompts) -> None:
    """Hold a model's own rows of a run against its prompts. Raises `ModelError` where one is another."""
    for row in rows:
        with suppress(LookupError, TypeError):  # not asked here, or no label where one belongs
            same.holds(row, planned.prompts[planned.place_of(row)])
    same.check()


def _pending(batches: Batches, stored: Collection[str]) -> Batches:
    """The batches that hold a request without a row."""
    if not stored:
        return batches
    places = array("Q", (i for i, batch in enumerate(batches) if any(r.key not in stored for r in batch)))
    return picked(batches, places)


def _in_rounds(
    plan: ModelPlan, open_cells: OpenCells, planned: PlannedCells, scorer: ContinuationScorer
) -> ModelPlan:
    """A plan of each open cell's next round, with what all rounds up to the cap would take."""
    (least, most), rounds = open_cells.outlook(), open_cells.rounds
    more = most / least
    if plan.calls is not None:
        # Requests are cut at multiples of their number of texts: a later round may need one more.
        cell = planned.requests[0]
        calls = [scorer.plan_scores([rounds.request(cell, n)]).calls for n in range(rounds.most)]
        more *= max(calls) / calls[0]

    def at_most(value: float | None) -> float | None:
        return None if value is None else value * more

    return replace(
        plan,
        draws=(least, most),
        prompt_tokens_most=round(plan.prompt_tokens * more),
        calls_most=None if plan.calls is None else round(plan.calls * more),
        seconds_most=at_most(plan.seconds),
        cost_most=at_most(plan.cost),
    )


def _name_cell(error: ModelError, planned: PlannedCells, open_cells: OpenCells) -> ModelError:
    """Say which template and job a tokenization failed at: the backend knows only the key."""
    key, _ = open_cells.place(getattr(error, "request_key", ""))
    for cell, request in zip(planned.cells, planned.requests, strict=True):
        if request.key == key:
            where = f"{cell.model}, {cell.bias_type} template {cell.template_id}, job {cell.job!r}"
            kind = TokenizationError if isinstance(error, TokenizationError) else ModelError
            return kind(f"{where}: {error}")
    return error


def _run_model(
    design: ProbeDesign,
    scorer: ContinuationScorer,
    form: PromptForm,
    writer: RowWriter,
    stored: dict[str, int],
    session: Session[ContinuationScorer],
) -> None:
    label, estimator = scorer.identity.label, scorer.estimator_for(form)
    # Made before the plan, whose measurements take time too.
    usage = Usage(session.run, label)
    answered = writer.answered.get(label, ())
    found = _plan_model(design, scorer, form, stored, writer.spans, answered, session)
    if found is None:
        return
    planned, open_cells, pending, taken = found
    taken.copy(writer, lambda row: {**row, **columns_of(planned.cells[planned.place_of(row)])})
    if not pending:
        return
    known = writer.answered.get(label, ())
    drift = Drift(scorer.identity, known, accept=session.accept_drift, taken=taken.sources)
    plan = session.outcome.plans[-1]
    # What the expressions' tokens have in common belongs beside the numbers at every later reading.
    session.manifest["models"][label]["notes"] = list(plan.notes)
    session.keep_batch_size(scorer)
    place_of = {request.key: place for place, request in enumerate(planned.requests)}
    missing, written = open_cells.n_left, 0
    session.watcher.progress(label, 0, missing)
    used: dict[str, float | None] = {"calls": plan.n_batches, "planned_prompt_tokens": plan.prompt_tokens}
    usage.note({**used, "rows": written, **scorer.used()})
    try:
        with closing_stream(open_cells.score(scorer, pending)) as groups:
            for group in drift.watch(groups):
                rows = []
                for answer in group:
                    if isinstance(answer, Scored):
                        key, number = open_cells.place(answer.key)
                        place = place_of[key]
                        cell, prompt = planned.cells[place], planned.prompts[place]
                        row = row_of(answer, cell, prompt, estimator, number)
                        rows.append({**row, "model_key": planned.model_key})
                written += sum(row["key"] not in writer.keys for row in rows)
                writer.append(rows)
                session.note_prompts(label, rows)
                session.outcome.count_failures(label, group)
                session.watcher.progress(label, missing - open_cells.n_left, missing)
                session.keep_batch_size(scorer)
                usage.note({**used, "rows": written, **scorer.used()})
    finally:
        usage.note({**used, "rows": written, **scorer.used()}, last=True)


def _matched_draws(
    stored: Mapping[str, int],
    planned: PlannedCells,
    rounds: Rounds,
    estimator: Estimator,
    design: ProbeDesign,
    same: SamePrompts,
    row: Mapping[str, Any],
    run: str,
) -> int | None:
    """Another run's row as `OpenCells` knows it; None where it was not asked here or is no sound answer."""
    try:
        place = planned.place_of(row)
        cell, request = planned.cells[place], planned.requests[place]
        number = row.get("round", 0)
        asked = rounds.request(request, number) if number in range(rounds.most) else None
        if asked is None or asked.key != row["key"] or asked.key in stored:
            return None
        if row["estimator"] != estimator.name or not isinstance(row["prompt"], str):
            return None
        if fault_of(row, request.expressions) or not same.holds(row, request.prompt, run):
            return None
        cell_shares(cell, row, design.groups, word_boundary=design.study.word_boundary)
        return int(sum(row.get("counts", {}).values()))
    except (BiaskitError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None
