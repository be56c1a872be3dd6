"""Texts that a model answers with, beside the probabilities of its words: some for each cell, kept whole.

See docs/methods.md#continuations. They are draws of the estimator `sampling`, longer than a word, in a file
of their own: no number of the cells' shares depends on them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from biaskit.errors import AskingStopped, ModelError
from biaskit.models.base import ContinuationScorer, closing_stream
from biaskit.models.options import NEW, ScoringOptions
from biaskit.probe.answers import AnswersOfRun
from biaskit.probe.design import ProbeDesign, model_key
from biaskit.probe.planned import PlannedCells
from biaskit.probe.rounds import Rounds
from biaskit.probe.rows import fault_of, row_of
from biaskit.probe.scoring import hold_prompts
from biaskit.probe.stored_design import design_signature
from biaskit.progress import ModelPlan
from biaskit.records import Cell, Failed, PromptForm, Scored, ScoreRequest
from biaskit.runs.drift import Drift
from biaskit.runs.manifest import write_manifest
from biaskit.runs.prompts import SamePrompts
from biaskit.runs.session import Session
from biaskit.runs.store import ModelSpans, Reading, RowWriter, read_rows, rows_file
from biaskit.runs.usage import Usage

ROWS = "continuations"
_ROUND = 5
"""Texts of a row, where their number is a multiple of it: more of them later take over those of before."""
Batches = Sequence[tuple[ScoreRequest, ...]]


def continuing(design: ProbeDesign) -> ScoringOptions:
    """How a model is opened that continues the prompts of a study."""
    rounds, tokens = _rounds(design), design.study.continuation_tokens
    return ScoringOptions("sampling", draws=rounds.size, new_tokens=tokens)


def _rounds(design: ProbeDesign) -> Rounds:
    n = design.study.continuations
    return Rounds(_ROUND, n // _ROUND) if n % _ROUND == 0 else Rounds(n, 1)


def continue_cells(design: ProbeDesign, session: Session[ContinuationScorer]) -> None:
    """Draw the texts of every cell that has none yet, for each model that was scored, in its prompt form.

    `session` has planned the probabilities: its plans name the models and their forms. A model that cannot
    be continued in its form is named and keeps its probabilities.
    """
    forms = {plan.label: plan.form for plan in session.outcome.plans}
    gone = session.outcome.failed_models
    asked = {label: form for label, form in forms.items() if label not in gone}
    if session.dry_run:
        path, reading = rows_file(session.run, ROWS), Reading()
        stored: set[str] = set()
        spans = ModelSpans()
        for row in read_rows(path, reading=reading) if path.exists() else ():
            stored.add(row["key"])
            spans.add(row, reading.start, reading.good_end)
        for label, form in asked.items():
            _plan(design, label, form, stored, spans, session)
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


Asked = Mapping[str, tuple[Cell, ScoreRequest]]
"""Key of a round → its cell, and what is asked."""
Planned = tuple[ContinuationScorer, Asked, Batches]


def _plan(
    design: ProbeDesign,
    label: str,
    form: PromptForm,
    stored: set[str],
    spans: ModelSpans,
    session: Session[ContinuationScorer],
) -> Planned | None:
    """The model, its cells and the batches of those without a row; None where it cannot be continued."""
    scorer = _open(design, label, form, session)
    if scorer is None:
        return None
    estimator, rounds = scorer.estimator_for(form), _rounds(design)
    model = scorer.identity.fingerprint
    cells = PlannedCells(design, label, form, model, estimator.in_key(), session.shard)
    requests = {
        asked.key: (cell, asked)
        for cell, request in zip(cells.cells, cells.requests, strict=True)
        for asked in (rounds.request(request, number) for number in range(rounds.most))
    }
    try:
        own = spans.rows(rows_file(session.run, ROWS), cells.model_key, skip_bad=True)
        hold_prompts(own, cells, SamePrompts(scorer))
    except ModelError as error:
        session.outcome.notes.append(f"no continuations: {error}")
        return None
    due = [asked for key, (_, asked) in requests.items() if key not in stored]
    plan = scorer.plan_scores(due)
    seconds = scorer.estimate_seconds(plan.batches) if due else 0.0
    session.show_plan(
        ModelPlan(
            run=session.run,
            label=label,
            form=form,
            n_cells=len(requests) * rounds.size,
            n_stored=(len(requests) - len(due)) * rounds.size,
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
    return scorer, requests, plan.batches


def _continue(
    design: ProbeDesign,
    label: str,
    form: PromptForm,
    writer: RowWriter,
    session: Session[ContinuationScorer],
) -> None:
    usage = Usage(session.run, label, starts=0)
    found = _plan(design, label, form, writer.keys, writer.spans, session)
    if found is None:
        return
    scorer, asked, batches = found
    try:
        _note_in_manifest(design, scorer, form, session)
        if batches:
            _draw(design, scorer, form, asked, batches, writer, session)
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
    asked: Asked,
    batches: Batches,
    writer: RowWriter,
    session: Session[ContinuationScorer],
) -> None:
    label, estimator = scorer.identity.label, scorer.estimator_for(form)
    shared = model_key(scorer.identity.fingerprint, design.study, estimator.in_key())
    rounds = _rounds(design)
    drift = Drift(scorer.identity, writer.answered.get(label, ()), accept=session.accept_drift)
    n, done = sum(map(len, batches)), 0
    session.watcher.progress(label, 0, n)
    with closing_stream(scorer.score(batches)) as groups:
        for group in drift.watch(groups):
            rows = []
            for answer in group:
                if isinstance(answer, Scored):
                    cell, request = asked[answer.key]
                    row = row_of(answer, cell, request.prompt, estimator, rounds.number_of(request))
                    rows.append({**row, "model_key": shared})
            writer.append(rows)
            failed = [a for a in group if isinstance(a, Failed)]
            named = [replace(a, reason=f"its continuations: {a.reason}") for a in failed]
            session.outcome.count_failures(label, named)
            done += len(group)
            session.watcher.progress(label, done, n)


# --- and read back ----------------------------------------------------------------------------------------

PlacesOf = Callable[[Mapping[str, Any]], Sequence[int]]
Places = Callable[[Mapping[str, Any], ProbeDesign], tuple[list[Cell], PlacesOf]]


def continued_models(manifest: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The models of a manifest that were continued, each as the entry that keys of continuations rest on."""
    return {
        label: {**entry, **entry["continuations"]}
        for label, entry in manifest["models"].items()
        if entry.get("continuations")
    }


def read_continuations(
    run: Path, manifest: Mapping[str, Any], answers: AnswersOfRun, places_of: Places, reading: Reading
) -> int:
    """Put what the continuations say in the place of what short draws of the same models said.

    Returns how many rows were not needed; a row that cannot be believed is refused as those of the cells are.
    """
    path, design = rows_file(run, ROWS), answers.design
    if not path.exists():
        return 0
    models = continued_models(manifest)
    answers.cells = {cell: said for cell, said in answers.cells.items() if cell.model not in models}
    cells, places = places_of({"models": models}, design)
    seen: set[tuple[int, int]] = set()
    n_unused, skip_bad = 0, design.study.skip_bad_lines
    for row in read_rows(path, skip_bad=skip_bad, reading=reading):
        own = places(row)
        n_unused += not own
        if not own:
            continue
        why = fault_of(row, design.expressions[cells[own[0]].bias_type, cells[own[0]].template_id])
        if why is None and (own[0], row["round"]) in seen:
            why = "another row answers the same cell"
        if why is not None:
            reading.refuse(path, why, skip_bad=skip_bad)
            continue
        for i in own:
            seen.add((i, row["round"]))
            answers.add(cells[i], answers.read(cells[i], row))
    return n_unused
