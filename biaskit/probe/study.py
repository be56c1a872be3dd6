"""The prober's recipe: cells → scores → rows on disk → shares → effects → tables."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

from biaskit.config import ProbeStudy
from biaskit.errors import BiaskitError, ModelError, RunError, StudyError, TokenizationError
from biaskit.models.base import ContinuationScorer
from biaskit.probe.cells import Questions, cell_key, cells
from biaskit.probe.manifest import describe_question, identity_of_question, model_entry, sign
from biaskit.probe.shares import as_json
from biaskit.probe.watching import ModelPlan, Watcher
from biaskit.provenance import versions
from biaskit.records import Cell, Expression, Failed, Prompt, PromptForm, Scored, ScoreRequest
from biaskit.runs import (
    MANIFEST,
    RUN_FORMAT,
    RowWriter,
    check_same_question,
    read_manifest,
    read_rows,
    rows_file,
    write_json,
    write_manifest,
)

FORMS: tuple[PromptForm, ...] = ("raw", "chat-prefill", "chat-continue")
OpenModel = Callable[[str, str, int | None], ContinuationScorer]
"""(label, spec, batch size of an earlier start or None) → model."""


@dataclass(slots=True)
class Sampled:
    """What asking did: which models gave up, which cells have no answer, and what was noticed."""

    failed_models: dict[str, str] = field(default_factory=dict)
    failed_cells: dict[str, dict[str, int]] = field(default_factory=dict)  # label → reason → number
    notes: list[str] = field(default_factory=list)
    plans: list[ModelPlan] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether every cell of every model has its row."""
        return not self.failed_models and not self.failed_cells


@dataclass(frozen=True, slots=True)
class Asked:
    """One model's cells as requests, in study order."""

    cells: tuple[Cell, ...]
    requests: tuple[ScoreRequest, ...]


def ask(
    questions: Questions,
    models: Mapping[str, str],
    run: Path,
    *,
    open_model: OpenModel,
    watcher: Watcher,
    dry_run: bool = False,
    command: str = "",
) -> Sampled:
    """Score every cell that has no row yet and store it; the same call goes on where it stopped."""
    study = questions.study
    done = Sampled()
    manifest = _manifest(questions, run, command)
    scorers = dict(_open_all(models, manifest, open_model, done, watcher))
    forms = _choose_forms(study, scorers, done, watcher)
    if dry_run:
        stored = _stored_keys(run, study)
        for label, form in forms.items():
            _plan_model(
                run,
                questions,
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
            entry = model_entry(scorer.identity, form)
            earlier = manifest["models"].get(label, {})
            entry |= {name: earlier.get(name) for name in ("batch_size", "notes")}
            manifest["models"][label] = entry
            manifest["signature"] = sign(questions, manifest["models"])
            write_manifest(run, manifest)
            _run_model(questions, scorer, form, writer, manifest, done, watcher, alone=len(models) == 1)
    return done


def _manifest(questions: Questions, run: Path, command: str) -> dict[str, Any]:
    """The stored manifest brought up to this question, or a new one."""
    stored: dict[str, Any] = {"models": {}}
    question = _plain(identity_of_question(questions))
    if (run / MANIFEST).exists():
        stored = read_manifest(run)
        if stored.get("engine") != "probe":
            raise RunError(f"{run} is a run of the engine {stored.get('engine')!r}. Choose another --out.")
        question = check_same_question(run, stored["question"], question)
    return {
        "format": RUN_FORMAT,
        "engine": "probe",
        "study": questions.study.name,
        "question": question,
        "resolved": describe_question(questions),
        "models": dict(stored["models"]),
        "versions": versions(),
        "command": command,
        "signature": "",
    }


def _plain(value: Mapping[str, Any]) -> dict[str, Any]:
    """As it reads back from JSON, so that stored and asked compare equal."""
    return dict(json.loads(json.dumps(value)))


def _open_all(
    models: Mapping[str, str],
    manifest: Mapping[str, Any],
    open_model: OpenModel,
    done: Sampled,
    watcher: Watcher,
) -> Iterator[tuple[str, ContinuationScorer]]:
    """Every model that passes its first checks; the others are named with their reason."""
    for label, spec in models.items():
        earlier = manifest["models"].get(label, {})
        try:
            scorer = open_model(label, spec, earlier.get("batch_size"))
        except ModelError as error:
            if len(models) == 1:
                raise
            _give_up(label, error, done, watcher)
            continue
        if earlier and earlier["fingerprint"] != scorer.identity.fingerprint:
            done.notes.append(
                f"{label} is not the model it was: its earlier rows stay in the file and are not used."
            )
        yield label, scorer


def _give_up(label: str, error: BiaskitError, done: Sampled, watcher: Watcher) -> None:
    done.failed_models[label] = str(error)
    watcher.note(f"{label} is left out: {error}")


def _choose_forms(
    study: ProbeStudy, scorers: Mapping[str, ContinuationScorer], done: Sampled, watcher: Watcher
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
        why = "system prompt" if system else f"prompt form {study.prompt_form}"
        error = ModelError(f"{label} takes no {why}: its chat template has no place for it, or it has none.")
        if len(scorers) == 1:
            raise error
        _give_up(label, error, done, watcher)
    common = [form for form in usable if all(form in forms for forms in takes.values())]
    if takes and not common:
        done.notes.append("Prompt forms differ between the models: no contrast between those is made.")
    return {label: common[0] if common else forms[0] for label, forms in takes.items()}


def asked_of(questions: Questions, label: str, form: PromptForm, fingerprint: str) -> Asked:
    """One model's cells and their requests, keys included; needs no model."""
    found: list[tuple[Cell, ScoreRequest]] = []
    for cell, prompt, expressions in cells(questions, label, form):
        key = cell_key(cell, prompt, expressions, fingerprint, questions.study)
        found.append((cell, ScoreRequest(key, prompt, expressions)))
    return Asked(tuple(c for c, _ in found), tuple(r for _, r in found))


def _stored_keys(run: Path, study: ProbeStudy) -> set[str]:
    path = rows_file(run, "probe")
    return {row["key"] for row in read_rows(path, skip_bad=study.skip_bad_lines)} if path.exists() else set()


def _plan_model(
    run: Path,
    questions: Questions,
    scorer: ContinuationScorer,
    form: PromptForm,
    stored: set[str],
    done: Sampled,
    watcher: Watcher,
    *,
    alone: bool,
    dry_run: bool,
) -> tuple[Asked, list[tuple[ScoreRequest, ...]]] | None:
    """A model's cells and the batches that hold a missing one; None where it failed its checks."""
    label = scorer.identity.label
    asked = asked_of(questions, label, form, scorer.identity.fingerprint)
    n_stored = sum(request.key in stored for request in asked.requests)
    pending: list[tuple[ScoreRequest, ...]] = []
    tokens, notes = 0, cast(tuple[str, ...], ())
    seconds: float | None = 0.0
    try:
        if n_stored < len(asked.requests):
            plan = scorer.plan_scores(asked.requests)
            pending = [batch for batch in plan.batches if any(r.key not in stored for r in batch)]
            tokens, notes = plan.prompt_tokens, plan.notes
            seconds = scorer.estimate_seconds(pending)
    except ModelError as error:
        named = _name_cell(error, asked)
        scorer.close()
        if alone:
            raise named from error
        _give_up(label, named, done, watcher)
        return None
    shown = ModelPlan(run, label, form, len(asked.requests), n_stored, len(pending), tokens, seconds, notes)
    done.plans.append(shown)
    watcher.planned(shown, dry_run=dry_run)
    if dry_run:
        scorer.close()
    return asked, pending


def _name_cell(error: ModelError, asked: Asked) -> ModelError:
    """Say which template and job a tokenization failed at: the backend knows only the key."""
    key = getattr(error, "request_key", None)
    for cell, request in zip(asked.cells, asked.requests, strict=True):
        if request.key == key:
            where = f"{cell.model}, {cell.bias_type} template {cell.template_id}, job {cell.job!r}"
            kind = TokenizationError if isinstance(error, TokenizationError) else ModelError
            return kind(f"{where}: {error}")
    return error


def _run_model(
    questions: Questions,
    scorer: ContinuationScorer,
    form: PromptForm,
    writer: RowWriter,
    manifest: dict[str, Any],
    done: Sampled,
    watcher: Watcher,
    *,
    alone: bool,
) -> None:
    label = scorer.identity.label
    started = time.perf_counter()
    planned = _plan_model(
        writer.run, questions, scorer, form, writer.keys, done, watcher, alone=alone, dry_run=False
    )
    if planned is None:
        return
    asked, pending = planned
    if pending:
        # What the expressions' tokens have in common belongs beside the numbers at every later reading.
        manifest["models"][label]["notes"] = list(done.plans[-1].notes)
        _keep_batch_size(scorer, writer.run, manifest)
        cell_of = {
            request.key: (cell, request.prompt)
            for cell, request in zip(asked.cells, asked.requests, strict=True)
        }
        missing = sum(request.key not in writer.keys for batch in pending for request in batch)
        stored = 0
        watcher.progress(label, 0, missing)
        # Closing the iterator is what stops the work, on Ctrl-C as on an error.
        with closing(_closable(scorer.score(pending))) as groups:
            for group in groups:
                rows = [_row(answer, *cell_of[answer.key]) for answer in group if isinstance(answer, Scored)]
                fresh = sum(row["key"] not in writer.keys for row in rows)
                writer.append(rows)
                stored += fresh
                _count_failures(label, group, done)
                watcher.progress(label, stored, missing)
                _keep_batch_size(scorer, writer.run, manifest)
        _note_usage(
            writer.run, label, n_rows=stored, plan=done.plans[-1], seconds=time.perf_counter() - started
        )
    scorer.close()


def _closable(groups: Iterator[Sequence[Scored | Failed]]) -> Any:
    return groups if hasattr(groups, "close") else (group for group in groups)


def _keep_batch_size(scorer: ContinuationScorer, run: Path, manifest: dict[str, Any]) -> None:
    """A resumed run must cut the same batches, so a size that `auto` found is kept."""
    entry = manifest["models"][scorer.identity.label]
    if entry.get("batch_size") != scorer.batch_size:
        entry["batch_size"] = scorer.batch_size
        write_manifest(run, manifest)


def _count_failures(label: str, group: Sequence[Scored | Failed], done: Sampled) -> None:
    for answer in group:
        if isinstance(answer, Failed):
            reasons = done.failed_cells.setdefault(label, {})
            reasons[answer.reason] = reasons.get(answer.reason, 0) + 1


def _row(answer: Scored, cell: Cell, prompt: Prompt) -> dict[str, Any]:
    """A row of probe.jsonl (DESIGN §4)."""
    return {
        "key": answer.key,
        **{name: value for name, value in asdict(cell).items() if name != "labour_female_share"},
        "prompt": answer.prompt,
        "system": prompt.system,
        "estimator": answer.estimator,
        "answered_by": answer.answered.by,
        "answered_at": answer.answered.at,
        "prompt_tokens": answer.answered.prompt_tokens,
        "expressions": [
            {"group": e.group, "text": e.text, "log_prob": as_json(e.high), "token_ids": e.token_ids}
            for e in answer.log_probs
        ],
    }


def _note_usage(run: Path, label: str, *, n_rows: int, plan: ModelPlan, seconds: float) -> None:
    """Add this start to usage.json: what was computed and how long it took."""
    path = run / "usage.json"
    try:
        usage = json.loads(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        usage = {}
    known = usage.get(label, {"starts": 0, "rows": 0, "calls": 0, "seconds": 0.0, "cost": 0.0})
    usage[label] = {
        "starts": known["starts"] + 1,
        "rows": known["rows"] + n_rows,
        "calls": known["calls"] + plan.n_batches,
        "planned_prompt_tokens": plan.prompt_tokens,
        "seconds": round(known["seconds"] + seconds, 3),
        "cost": 0.0,
    }
    write_json(path, usage)


def expressions_of(texts: Mapping[str, Sequence[str]]) -> tuple[Expression, ...]:
    """Group → texts as expressions, in order."""
    return tuple(Expression(group, text) for group, listed in texts.items() for text in listed)
