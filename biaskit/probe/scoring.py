"""The prober's recipe: cells → scores → rows on disk → shares → effects → tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from biaskit.errors import AskingStopped, ModelError, RunError, StudyError, TokenizationError
from biaskit.models.base import ContinuationScorer
from biaskit.probe.design import ProbeDesign, cell_key, cells
from biaskit.probe.shares.cells import as_json
from biaskit.probe.stored_design import compatibility, describe_design, design_signature
from biaskit.progress import ModelPlan, Watcher
from biaskit.records import (
    Cell,
    Estimator,
    EstimatorName,
    Expression,
    LogProb,
    Prompt,
    PromptForm,
    Scored,
    ScoreRequest,
)
from biaskit.runs.drift import Drift
from biaskit.runs.manifest import estimator_of, model_entry, start_manifest, write_manifest
from biaskit.runs.session import OpenModel, Outcome, closable, keep_batch_size, open_all
from biaskit.runs.store import RowWriter, read_rows, rows_file
from biaskit.runs.usage import Usage
from biaskit.study.keys import ProbeStudy

FORMS: tuple[PromptForm, ...] = ("raw", "chat-prefill", "chat-continue")


@dataclass(frozen=True, slots=True)
class PlannedCells:
    """One model's cells as requests, in study order."""

    cells: tuple[Cell, ...]
    requests: tuple[ScoreRequest, ...]


def score_cells(
    design: ProbeDesign,
    models: Mapping[str, str],
    run: Path,
    *,
    open_model: OpenModel[ContinuationScorer],
    watcher: Watcher,
    dry_run: bool = False,
    accept_drift: bool = False,
    command: str = "",
) -> Outcome:
    """Score every cell that has no row yet and store it; the same call goes on where it stopped."""
    study = design.study
    done = Outcome()
    manifest = start_manifest(
        run,
        "probe",
        study.name,
        question=compatibility(design),
        resolved=describe_design(design),
        command=command,
    )
    scorers = dict(open_all(run, models, manifest, open_model, done, watcher))
    forms = _choose_forms(study, scorers, done, watcher)
    if dry_run:
        stored = _stored_keys(run, study)
        for label, form in forms.items():
            _plan_model(
                run,
                design,
                scorers[label],
                form,
                stored,
                done,
                watcher,
                alone=len(models) == 1,
                dry_run=True,
            )
        return done
    if not forms:
        return done
    with RowWriter(run, "probe", lock=study.lock, skip_bad=study.skip_bad_lines) as writer:
        done.notes += writer.reading.notes
        for label, form in forms.items():
            scorer = scorers[label]
            _enter(manifest, scorer, form, run)
            manifest["signature"] = design_signature(design, manifest["models"])
            write_manifest(run, manifest)
            drift = Drift(scorer.identity, writer.answered.get(label, ()), accept=accept_drift)
            try:
                _run_model(
                    design, scorer, form, writer, manifest, done, watcher, drift, alone=len(models) == 1
                )
            except AskingStopped as stopped:
                done.stop(label, stopped, watcher)
            finally:
                scorer.close()
    return done


def _enter(manifest: dict[str, Any], scorer: ContinuationScorer, form: PromptForm, run: Path) -> None:
    """A model's entry in the manifest; a folder holds one estimator of a model."""
    label = scorer.identity.label
    entry, earlier = model_entry(scorer.identity, form), manifest["models"].get(label, {})
    entry["estimator"] = scorer.estimator_for(form).in_key()
    before = earlier.get("estimator", "exact") if earlier else entry["estimator"]
    if before != entry["estimator"] and earlier.get("prompt_form") == form:
        raise RunError(
            f"{run} holds {label} by another estimator: {estimator_of(earlier)}, this command's is"
            f" {estimator_of(entry)}. Choose another --out."
        )
    entry |= {name: earlier.get(name) for name in ("batch_size", "notes")}
    manifest["models"][label] = entry


def _choose_forms(
    study: ProbeStudy, scorers: Mapping[str, ContinuationScorer], done: Outcome, watcher: Watcher
) -> dict[str, PromptForm]:
    """`auto`: the first form that every model can take; where there is none, each model its own first."""
    system = bool(study.system_prompt) or study.instruction_position == "system"
    if system and study.prompt_form == "raw":
        raise StudyError(
            "A raw prompt has no system role: leave out the system prompt, or --prompt-form raw."
        )
    usable = [form for form in FORMS if not (system and form == "raw")]
    usable = usable if study.prompt_form == "auto" else [study.prompt_form]
    takes: dict[str, list[PromptForm]] = {}
    for label, scorer in scorers.items():
        forms = [form for form in usable if form in scorer.identity.forms]
        if system and not scorer.identity.takes_system:
            forms = []
        if forms:
            takes[label] = forms
            continue
        error = _no_form(scorer, study, system=system)
        if len(scorers) == 1:
            raise error
        done.give_up(label, error, watcher)
    common = [form for form in usable if all(form in forms for forms in takes.values())]
    if takes and not common:
        done.notes.append("Prompt forms differ between the models: no contrast between those is made.")
    chosen = {label: common[0] if common else forms[0] for label, forms in takes.items()}
    for label, form in list(chosen.items()):
        name = scorers[label].estimator_for(form).name
        if study.word_boundary == "word" and name not in ("exact", "sampling"):
            # The others give tokens: whether a word ends after them they do not say.
            error = ModelError(
                f"{label}: word_boundary = word is not possible by {name}. Take --estimator sampling, or"
                " word_boundary = token."
            )
            if len(scorers) == 1:
                raise error
            done.give_up(label, error, watcher)
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


def plan_cells(
    design: ProbeDesign, label: str, form: PromptForm, fingerprint: str, estimator: object = "exact"
) -> PlannedCells:
    """One model's cells and their requests, keys included; needs no model."""
    found: list[tuple[Cell, ScoreRequest]] = []
    for cell, prompt, expressions in cells(design, label, form):
        key = cell_key(cell, prompt, expressions, fingerprint, design.study, estimator)
        found.append((cell, ScoreRequest(key, prompt, expressions)))
    return PlannedCells(tuple(c for c, _ in found), tuple(r for _, r in found))


def _stored_keys(run: Path, study: ProbeStudy) -> set[str]:
    path = rows_file(run, "probe")
    return {row["key"] for row in read_rows(path, skip_bad=study.skip_bad_lines)} if path.exists() else set()


def _plan_model(
    run: Path,
    design: ProbeDesign,
    scorer: ContinuationScorer,
    form: PromptForm,
    stored: set[str],
    done: Outcome,
    watcher: Watcher,
    *,
    alone: bool,
    dry_run: bool,
) -> tuple[PlannedCells, list[tuple[ScoreRequest, ...]]] | None:
    """A model's cells and the batches that hold a missing one; None where it failed its checks."""
    label = scorer.identity.label
    estimator = scorer.estimator_for(form)
    asked = plan_cells(design, label, form, scorer.identity.fingerprint, estimator.in_key())
    n_stored = sum(request.key in stored for request in asked.requests)
    pending: list[tuple[ScoreRequest, ...]] = []
    tokens, notes = 0, cast(tuple[str, ...], ())
    seconds: float | None = 0.0
    calls, cost = None, cast(float | None, 0.0)
    try:
        if n_stored < len(asked.requests):
            plan = scorer.plan_scores(_to_plan(scorer, asked, stored))
            pending = [batch for batch in plan.batches if any(r.key not in stored for r in batch)]
            tokens, notes = plan.prompt_tokens, plan.notes
            calls = plan.calls if scorer.identity.where == "api" else None
            cost = plan.cost_max
            seconds = scorer.estimate_seconds(pending)
    except ModelError as error:
        named = _name_cell(error, asked)
        scorer.close()
        if alone:
            raise named from error
        done.give_up(label, named, watcher)
        return None
    shown = ModelPlan(
        run=run,
        label=label,
        form=form,
        n_cells=len(asked.requests),
        n_stored=n_stored,
        n_batches=len(pending),
        prompt_tokens=tokens,
        seconds=seconds,
        notes=notes,
        estimator=estimator.name,
        calls=calls,
        cost=cost,
    )
    done.plans.append(shown)
    watcher.planned(shown, dry_run=dry_run)
    if dry_run:
        scorer.close()
    return asked, pending


def _to_plan(scorer: ContinuationScorer, asked: PlannedCells, stored: set[str]) -> Sequence[ScoreRequest]:
    """All requests where neighbours share a forward, so that the batches stay; else the missing ones."""
    if scorer.whole_batches:
        return asked.requests
    return [request for request in asked.requests if request.key not in stored]


def _name_cell(error: ModelError, asked: PlannedCells) -> ModelError:
    """Say which template and job a tokenization failed at: the backend knows only the key."""
    key = getattr(error, "request_key", None)
    for cell, request in zip(asked.cells, asked.requests, strict=True):
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
    manifest: dict[str, Any],
    done: Outcome,
    watcher: Watcher,
    drift: Drift,
    *,
    alone: bool,
) -> None:
    label = scorer.identity.label
    usage = Usage(writer.run, label)
    planned = _plan_model(
        writer.run, design, scorer, form, writer.keys, done, watcher, alone=alone, dry_run=False
    )
    if planned is None:
        return
    asked, pending = planned
    if pending:
        # What the expressions' tokens have in common belongs beside the numbers at every later reading.
        manifest["models"][label]["notes"] = list(done.plans[-1].notes)
        keep_batch_size(label, scorer.batch_size, writer.run, manifest)
        cell_of = {
            request.key: (cell, request.prompt)
            for cell, request in zip(asked.cells, asked.requests, strict=True)
        }
        missing = sum(request.key not in writer.keys for batch in pending for request in batch)
        stored, estimator = 0, scorer.estimator_for(form)
        watcher.progress(label, 0, missing)
        plan = done.plans[-1]
        used: dict[str, float | None] = {"calls": plan.n_batches, "planned_prompt_tokens": plan.prompt_tokens}
        try:
            # Closing the iterator is what stops the work, on Ctrl-C as on an error.
            with closing(closable(scorer.score(pending))) as groups:
                for group in drift.watch(groups):
                    rows = [row_of(a, *cell_of[a.key], estimator) for a in group if isinstance(a, Scored)]
                    fresh = sum(row["key"] not in writer.keys for row in rows)
                    writer.append(rows)
                    stored += fresh
                    done.count_failures(label, group)
                    watcher.progress(label, stored, missing)
                    keep_batch_size(label, scorer.batch_size, writer.run, manifest)
                    usage.note({**used, "rows": stored, **scorer.used()})
        finally:
            usage.note({**used, "rows": stored, **scorer.used()}, last=True)


def row_of(answer: Scored, cell: Cell, prompt: Prompt, estimator: Estimator) -> dict[str, Any]:
    """A row of probe.jsonl (docs/reading.md#rows)."""
    row = {
        "key": answer.key,
        **{name: value for name, value in asdict(cell).items() if name != "labour_female_share"},
        "prompt": answer.prompt,
        "system": prompt.system,
        "estimator": answer.estimator,
        "answered_by": answer.answered.by,
        "answered_at": answer.answered.at,
        "prompt_tokens": answer.answered.prompt_tokens,
        "expressions": [_expression(e, answer.estimator) for e in answer.log_probs],
    }
    if answer.listed is not None:
        row |= {
            "k": estimator.k,
            "listed": {before: list(listed) for before, listed in answer.listed.items()},
        }
    if answer.counts is not None:
        row |= {"draws": answer.draws, "counts": dict(answer.counts)}
    return row


def _expression(e: LogProb, estimator: EstimatorName) -> dict[str, Any]:
    """One expression of a row: a point, or the ends of what is known; JSON has no -inf, so that is null."""
    shown: dict[str, Any] = {"group": e.group, "text": e.text, "log_prob": None, "token_ids": e.token_ids}
    if estimator == "top-k":
        shown |= {"low": _finite(e.low), "high": _finite(e.high)}
    elif estimator != "sampling":
        shown["log_prob"] = _finite(e.high)
    return shown if e.tokens is None else {**shown, "tokens": e.tokens}


def _finite(log_prob: float | None) -> float | None:
    return None if log_prob is None else as_json(log_prob)


def expressions_of(texts: Mapping[str, Sequence[str]]) -> tuple[Expression, ...]:
    """Group → texts as expressions, in order."""
    return tuple(Expression(group, text) for group, listed in texts.items() for text in listed)
