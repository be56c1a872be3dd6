"""Texts sampled beside the probabilities, in a file of their own (methods/probabilities#continuations)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from biaskit.measures.probe.answers import AnswersOfRun
from biaskit.measures.probe.beside import ask_beside
from biaskit.measures.probe.design import ProbeDesign
from biaskit.measures.probe.prompts import scope_of_cell
from biaskit.measures.probe.requests import CellsOfRun
from biaskit.measures.probe.scoring import CellWork
from biaskit.models.base import ContinuationScorer
from biaskit.models.entry import Continuations
from biaskit.models.options import ScoringOptions
from biaskit.progress import ModelPlan
from biaskit.records import Failed, PromptFormat, Scored, ScoreRequest
from biaskit.runs.course import Pending, ask, plan_work
from biaskit.runs.drift import Answerers
from biaskit.runs.manifest import Manifest
from biaskit.runs.sample_batches import SampleBatches
from biaskit.runs.score_rows import row_of
from biaskit.runs.score_work import ScoreWork
from biaskit.runs.session import Session
from biaskit.runs.store import Reading, RowWriter, StoredRows, read_rows, rows_file

ROWS = "continuations"
_BATCH = 5
"""Texts of a row where their number is a multiple of it: a later run of more texts can then add rows."""


def continue_cells(design: ProbeDesign, session: Session[ContinuationScorer]) -> None:
    """Draw the texts of each cell that has none yet, of the models whose probabilities `session` planned."""
    stored: StoredRows[int] = StoredRows(lambda _: 0, 0)

    def ask_one(label: str, prompt_format: PromptFormat, writer: RowWriter | None, stack: ExitStack) -> None:
        spec, account = session.models[label], session.account(label)
        n, tokens = design.study.continuations, design.study.continuation_tokens
        sample_batches = SampleBatches(_BATCH, n // _BATCH) if n % _BATCH == 0 else SampleBatches(n, 1)
        scoring = ScoringOptions("sampling", samples=sample_batches.size, new_tokens=tokens)
        scorer = stack.enter_context(closing(session.open_model(label, spec, None, account, scoring=scoring)))
        work = _ContinuationWork(design, scorer, prompt_format, stored, session.shard, sample_batches)
        if writer is None:
            plan_work(work, session)
            return
        entry = session.manifest.models[label]
        # By this fingerprint and estimator the analysis finds the rows.
        fingerprint = scorer.identity.fingerprint
        entry.continuations = Continuations(fingerprint=fingerprint, estimator=work.estimator)
        session.manifest.signature = design.sign(session.manifest.models)
        session.manifest.write(session.run)
        ask(work, session, writer, starts=0)

    said = "has no continuations", "continuations were stopped"
    ask_beside(design, session, ROWS, stored, ask_one, said)


class _ContinuationWork(CellWork):
    """One model's texts: every batch of every cell."""

    measurement = ROWS
    extra = True

    def pending(self) -> Sequence[ScoreRequest]:
        """List the batches that have no row."""
        self._asked = {}
        for cell, request in zip(self.cells.cells, self.cells.requests, strict=True):
            for number in range(self.sample_batches.most):
                asked = self.sample_batches.request(request, number)
                self._asked[asked.key] = cell, asked
        return [request for key, (_, request) in self._asked.items() if key not in self.stored.values]

    def plan(self, pending: Pending, session: Session[Any]) -> ModelPlan:
        """Plan the batches that have no row."""
        due, n, size = pending.requests, len(self._asked), self.sample_batches.size
        n_stored = (n - len(due)) * size
        plan = self.model.plan_scores(due)
        self.batches, self.n_due = plan.batches, len(due)
        planned = ModelPlan(
            run=session.run,
            label=self.label,
            prompt_format=self.prompt_format,
            n_units=n * size,
            n_stored=n_stored,
            n_batches=len(plan.batches),
            prompt_tokens=plan.prompt_tokens,
            seconds=0.0,
            unit="continuations",
            estimator="sampling",
        )
        if not due:
            return planned
        seconds = self.model.estimate_seconds(plan.batches)
        calls = plan.calls if self.model.identity.where == "api" else None
        return replace(
            planned, new_tokens=plan.new_tokens_max, seconds=seconds, calls=calls, cost=plan.cost_max
        )

    def answers(self, session: Session[Any]) -> Iterator[Sequence[Scored | Failed]]:
        """Ask the planned batches."""
        return ScoreWork.answers(self, session)

    def row(self, answer: Scored) -> dict[str, Any]:
        """Make the row of continuations.jsonl for an answer."""
        cell, request = self._asked[answer.key]
        number = self.sample_batches.number_of(request)
        row = row_of(answer, scope_of_cell(cell), request.prompt, self.estimator, number)
        return {**row, "model_key": self.cells.model_key}

    def failures(self, answers: Sequence[Scored | Failed]) -> Sequence[Scored | Failed]:
        """Pick the failed answers, worded so that they are not taken for failed probabilities."""
        failed = []
        for answer in answers:
            if isinstance(answer, Failed):
                failed.append(replace(answer, reason=f"its continuations: {answer.reason}"))
        return failed

    def progress(self) -> tuple[str, int, int]:
        """Count the batches that were answered, of those that were due."""
        return self.label, self.n_done, self.n_due


def read_continuations(
    run: Path, manifest: Manifest, answers: AnswersOfRun, reading: Reading, answerers: Answerers
) -> int:
    """Put what continuations say in place of short samples; returns how many rows were not needed."""
    path, design = rows_file(run, ROWS), answers.design
    if not path.exists():
        return 0
    # The keys of continuations rest on a fingerprint and an estimator of their own.
    models = {}
    for label, entry in manifest.models.items():
        if entry.continuations is not None:
            models[label] = entry.model_copy(update=dict(entry.continuations))
    answers.cells = {cell: counts for cell, counts in answers.cells.items() if cell.model not in models}
    asked = CellsOfRun(models, design)
    seen: set[tuple[int, int]] = set()  # place of a cell, and a batch
    n_unused = 0
    rows = read_rows(path, skip_bad=design.study.skip_bad_lines, reading=reading)
    for row, answered in asked.answered(rows, path, reading, answerers, lambda *batch: batch in seen):
        n_unused += not answered
        for i in answered:
            seen.add((i, row["batch"]))
            answers.add(asked.cells[i], row)
    return n_unused
