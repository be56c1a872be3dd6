"""Texts that a model answers with, beside the probabilities of its words: some for each cell, kept whole.

See docs/methods.md#continuations. They are draws of the estimator `sampling`, longer than a word, in a file
of their own: no number of the cells' shares depends on them.
"""

from __future__ import annotations

from collections.abc import Sequence

from biaskit.errors import AskingStopped, ModelError
from biaskit.models.base import ContinuationScorer, closing_stream
from biaskit.models.options import NEW, ScoringOptions
from biaskit.probe.design import ProbeDesign, model_key
from biaskit.probe.scoring import PlannedCells, plan_cells, row_of
from biaskit.probe.stored_design import design_signature
from biaskit.progress import ModelPlan
from biaskit.records import PromptForm, Scored, ScoreRequest
from biaskit.runs.drift import Drift
from biaskit.runs.manifest import write_manifest
from biaskit.runs.session import Session
from biaskit.runs.store import RowWriter, read_rows, rows_file
from biaskit.runs.usage import Usage

ROWS = "continuations"
Batches = Sequence[tuple[ScoreRequest, ...]]


def continuing(design: ProbeDesign) -> ScoringOptions:
    """How a model is opened that continues the prompts of a study."""
    study = design.study
    return ScoringOptions("sampling", draws=study.continuations, new_tokens=study.continuation_tokens)


def continue_cells(design: ProbeDesign, session: Session[ContinuationScorer]) -> None:
    """Draw the texts of every cell that has none yet, for each model that was scored, in its prompt form.

    `session` has planned the probabilities: its plans name the models and their forms. A model that cannot
    be continued in its form is named and keeps its probabilities.
    """
    forms = {plan.label: plan.form for plan in session.outcome.plans}
    gone = session.outcome.failed_models
    asked = {label: form for label, form in forms.items() if label not in gone}
    if session.dry_run:
        path = rows_file(session.run, ROWS)
        stored = {row["key"] for row in read_rows(path)} if path.exists() else set()
        for label, form in asked.items():
            _plan(design, label, form, stored, session)
        return
    with session.writing(ROWS, design.study) as writer:
        for label, form in asked.items():
            _continue(design, label, form, writer, session)


def _open(
    design: ProbeDesign, label: str, form: PromptForm, session: Session[ContinuationScorer]
) -> ContinuationScorer | None:
    try:
        spec = session.models[label]
        scorer = session.open_model(label, spec, NEW, session.account(label), scoring=continuing(design))
        scorer.estimator_for(form)
    except ModelError as error:
        session.outcome.notes.append(f"{label} has no continuations: {error}")
        return None
    return scorer


Planned = tuple[ContinuationScorer, PlannedCells, Batches]


def _plan(
    design: ProbeDesign,
    label: str,
    form: PromptForm,
    stored: set[str],
    session: Session[ContinuationScorer],
) -> Planned | None:
    """The model, its cells and the batches of those without a row; None where it cannot be continued."""
    scorer = _open(design, label, form, session)
    if scorer is None:
        return None
    estimator = scorer.estimator_for(form)
    planned = plan_cells(design, label, form, scorer.identity.fingerprint, estimator.in_key())
    due = [request for request in planned.requests if request.key not in stored]
    plan = scorer.plan_scores(due)
    seconds = scorer.estimate_seconds(plan.batches) if due else 0.0
    session.show_plan(
        ModelPlan(
            run=session.run,
            label=label,
            form=form,
            n_cells=len(planned.requests) * design.study.continuations,
            n_stored=(len(planned.requests) - len(due)) * design.study.continuations,
            n_batches=len(plan.batches),
            prompt_tokens=plan.prompt_tokens,
            new_tokens=plan.new_tokens_max,
            seconds=seconds,
            unit="continuations",
            estimator="sampling",
            calls=plan.calls if due and scorer.identity.where == "api" else None,
            cost=plan.cost_max if due else 0.0,
        )
    )
    return scorer, planned, plan.batches


def _continue(
    design: ProbeDesign,
    label: str,
    form: PromptForm,
    writer: RowWriter,
    session: Session[ContinuationScorer],
) -> None:
    usage = Usage(session.run, label)
    found = _plan(design, label, form, set(writer.keys), session)
    if found is None:
        return
    scorer, planned, batches = found
    try:
        _note_in_manifest(design, scorer, form, session)
        if batches:
            _draw(design, scorer, form, planned, batches, writer, session)
    except AskingStopped as stopped:
        session.outcome.notes.append(f"{label}: continuations were stopped: {stopped}")
        session.outcome.stopped.add(label)
    finally:
        usage.note(dict(scorer.used()), last=True)
        scorer.close()


def _note_in_manifest(
    design: ProbeDesign, scorer: ContinuationScorer, form: PromptForm, session: Session[ContinuationScorer]
) -> None:
    """By which fingerprint and estimator analysis finds the rows."""
    entry = session.manifest["models"][scorer.identity.label]
    entry["continuations"] = {
        "fingerprint": scorer.identity.fingerprint,
        "estimator": scorer.estimator_for(form).in_key(),
    }
    session.manifest["signature"] = design_signature(design, session.manifest["models"])
    write_manifest(session.run, session.manifest)


def _draw(
    design: ProbeDesign,
    scorer: ContinuationScorer,
    form: PromptForm,
    planned: PlannedCells,
    batches: Batches,
    writer: RowWriter,
    session: Session[ContinuationScorer],
) -> None:
    label, estimator = scorer.identity.label, scorer.estimator_for(form)
    shared = model_key(scorer.identity.fingerprint, design.study, estimator.in_key())
    places = zip(planned.cells, planned.requests, strict=True)
    cell_of = {request.key: (cell, request.prompt) for cell, request in places}
    drift = Drift(scorer.identity, writer.answered.get(label, ()), accept=session.accept_drift)
    n, done = sum(map(len, batches)), 0
    session.watcher.progress(label, 0, n)
    with closing_stream(scorer.score(batches)) as groups:
        for group in drift.watch(groups):
            rows = [
                {**row_of(answer, *cell_of[answer.key], estimator), "model_key": shared}
                for answer in group
                if isinstance(answer, Scored)
            ]
            writer.append(rows)
            session.outcome.count_failures(label, group)
            done += len(group)
            session.watcher.progress(label, done, n)
