"""Ask a model in other ways than its run does, into ways.jsonl (methods/reliability#ways)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import chain
from typing import Any

from biaskit.errors import ModelError
from biaskit.measures.probe.beside import ask_beside
from biaskit.measures.probe.design import ProbeDesign
from biaskit.measures.probe.prompts import scope_of_cell
from biaskit.measures.probe.requests import PlannedCells
from biaskit.measures.probe.ways.design import reduced, ways_of
from biaskit.models.base import ContinuationScorer
from biaskit.models.entry import Way
from biaskit.progress import ModelPlan
from biaskit.records import PromptFormat, Scored
from biaskit.runs.course import Pending, ask, plan_work
from biaskit.runs.score_rows import row_of
from biaskit.runs.score_work import BatchWork, matched_samples
from biaskit.runs.session import Session
from biaskit.runs.store import RowWriter, StoredRows, read_rows, rows_file

ROWS = "ways"


def ask_ways(design: ProbeDesign, session: Session[ContinuationScorer]) -> None:
    """Ask each model of a session, once its main prompts are planned, in every way that it takes."""
    stored: StoredRows[int] = StoredRows(matched_samples, 0)

    def ask_one(label: str, own_format: PromptFormat, writer: RowWriter | None, opened: ExitStack) -> None:
        known, spec = session.manifest.models.get(label), session.models[label]
        scorer = opened.enter_context(closing(session.open_model(label, spec, known, session.account(label))))
        planned, ways = _planned(design, scorer, own_format)
        if writer is not None:
            session.manifest.models[label].ways = ways
            session.manifest.write(session.run)
        for prompt_format in dict.fromkeys(way.prompt_format for way in planned):
            of_format = {way: cells for way, cells in planned.items() if way.prompt_format == prompt_format}
            work = WaysWork(of_format, scorer, prompt_format, stored, session, design)
            work.take_over(writer)
            if writer is None:
                plan_work(work, session)
            else:
                ask(work, session, writer, starts=0)

    said = "was not asked in other ways", "other ways to ask were stopped"
    ask_beside(design, session, ROWS, stored, ask_one, said)


def _planned(
    design: ProbeDesign, scorer: ContinuationScorer, own_format: PromptFormat
) -> tuple[dict[Way, PlannedCells], list[Way]]:
    """Plan each way that a model takes; and list all ways, those that it refuses with the reason.

    A way whose prompts are another's, to the letter, is left out: an empty system prompt that the template
    drops is none.
    """
    planned: dict[Way, PlannedCells] = {}
    listed: list[Way] = []
    seen: set[tuple[str, ...]] = set()
    for way in ways_of(design, scorer.identity, own_format):
        arm = reduced(design, way)
        try:
            estimator = scorer.estimator_for(way.prompt_format)
            cells = PlannedCells(
                *(arm, scorer.identity.label, way.prompt_format, scorer.identity.fingerprint),
                estimator.in_key(),
                empty_system=way.system_prompt == "empty",
            )
            texts = (way.prompt_format, *map(scorer.rendered, cells.prompts))
        except ModelError as error:
            listed.append(way.model_copy(update={"reason": str(error)}))
            continue
        if texts not in seen:
            seen.add(texts)
            listed.append(way.model_copy(update={"estimator": estimator}))
            planned[listed[-1]] = cells
    return planned, listed


class WaysWork(BatchWork):
    """One model's prompts in all ways of one format."""

    measurement = ROWS
    extra = True

    def __init__(
        self,
        ways: Mapping[Way, PlannedCells],
        scorer: ContinuationScorer,
        prompt_format: PromptFormat,
        stored: StoredRows[int],
        session: Session[Any],
        design: ProbeDesign,
    ) -> None:
        requests = session.shard.among(list(chain.from_iterable(cells.requests for cells in ways.values())))
        super().__init__(scorer, prompt_format, stored, requests, design.study.max_samples_per_prompt)
        self._run = session.run
        self._asked: dict[str, tuple[Way, PlannedCells, int]] = {}
        for way, cells in ways.items():
            for place, request in enumerate(cells.requests):
                for number in range(self.sample_batches.most):
                    self._asked[self.sample_batches.request(request, number).key] = way, cells, place

    def take_over(self, writer: RowWriter | None) -> None:
        """Copy the rows of the run's own way: its prompts were asked already, under the same keys."""
        main, own = rows_file(self._run, "probe"), []
        for row in read_rows(main, skip_bad=True) if main.exists() else ():
            key = row["key"]
            if key in self._asked and key not in self.stored.values:
                own.append({**row, "way": self._asked[key][0].name})
                self.stored.values[key] = matched_samples(row)
        if writer is not None:
            writer.append_all(own)

    def plan(self, pending: Pending, session: Session[Any]) -> ModelPlan:
        """What is still to be asked; the plan's line says that these are other ways."""
        return replace(super().plan(pending, session), unit="prompts in other ways")

    def named(self, key: str) -> str:
        """The way, the template and the job of a request."""
        way, cells, place = self._asked[key]
        cell = cells.cells[place]
        return f"{way.name}, {cell.bias_type} template {cell.template_id}, job {cell.job!r}"

    def row(self, answer: Scored) -> dict[str, Any]:
        """Make the row of ways.jsonl for an answer."""
        key, number = self._open.place(answer.key)
        way, cells, place = self._asked[key]
        row = row_of(answer, scope_of_cell(cells.cells[place]), cells.prompts[place], self.estimator, number)
        return {**row, "model_key": cells.model_key, "way": way.name}
