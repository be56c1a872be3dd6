"""What answers say, by outcome: means, and who differs (methods/probabilities#outcomes)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from biaskit.common.wording import joined
from biaskit.measures.probe.contrasts import Number, arm_of, between_arms, between_job_groups, scope_of
from biaskit.measures.probe.design import ProbeDesign
from biaskit.measures.probe.outcomes import OUTCOMES, outcome_of
from biaskit.records import ALL, PromptCell
from biaskit.stats.arms import Arm, CrossedCells, Label, complete_in_all, cross, frame_places, rows_of_groups
from biaskit.stats.contrast import Contrast
from biaskit.stats.crossed import share_interval, spread_of_mean
from biaskit.stats.proportions import wilson
from biaskit.tables.quantities import ANSWERS_OF_MODELS, NAMED, OUTCOME_SHARE, TESTED_OUTCOMES
from biaskit.tables.query import Row

_WITHHELD = ("refusal", "filter")
"""What a server calls an answer that it or its model declined to give."""
_Kind = tuple[str, str]  # an outcome, and the group where the answer names one, else ""


@dataclass(slots=True)
class AnswersOfRun:
    """The answers of a run's cells, taken in row by row; of a text only the outcome is kept."""

    design: ProbeDesign
    cells: dict[PromptCell, Counter[_Kind]] = field(default_factory=dict)

    def add(self, cell: PromptCell, row: Mapping[str, Any]) -> None:
        """Count the answers that a row keeps, if any, by outcome; a cell's batches add up."""
        target_words, groups = self.design.target_words[cell.bias_type, cell.template_id], self.design.groups
        for text, finish in row.get("answers", ()):
            said, group = "declines", ""
            if finish not in _WITHHELD:
                outcome = outcome_of(text, question=row["prompt"], target_words=target_words, groups=groups)
                said, group = outcome.outcome, outcome.group
            self.cells.setdefault(cell, Counter())[said, group] += 1


def counted(answers: AnswersOfRun, cell: PromptCell) -> dict[str, int | None]:
    """Fill the columns of probe_prompts.csv that count a cell's answers by outcome."""
    counts, columns = answers.cells.get(cell), [f"n_{outcome}" for outcome in OUTCOMES]
    if counts is None:
        return dict.fromkeys(("n_answers", *columns))
    numbers = (_count(counts, (outcome, "")) for outcome in OUTCOMES)
    return {"n_answers": counts.total(), **dict(zip(columns, numbers, strict=True))}


def _count(counts: Counter[_Kind], kind: _Kind) -> int:
    """Count the answers of a kind; without a group, those of every group."""
    outcome, group = kind
    return sum(n for (name, of_group), n in counts.items() if name == outcome and group in ("", of_group))


def differences_said(
    answers: AnswersOfRun, cells: Sequence[PromptCell], blocks: Mapping[Arm, CrossedCells]
) -> dict[Arm, dict[str, list[float]]]:
    """Map each arm and job to answers naming the first group minus the second, of all: one per template.

    `blocks`: of the shares; an arm whose shares are counted in the same answers is left out.
    """
    first, second = ((NAMED, group) for group in answers.design.contrast)
    said: dict[Arm, dict[str, list[float]]] = {}
    for cell in cells:
        counts, arm = answers.cells.get(cell), arm_of(cell)
        if counts is not None and blocks[arm].estimator != "sampling":
            of_template = (counts[first] - counts[second]) / counts.total()
            said.setdefault(arm, {}).setdefault(cell.job, []).append(of_template)
    return said


def outcome_rows(answers: AnswersOfRun, cells: Sequence[PromptCell]) -> tuple[list[Row], list[Contrast]]:
    """Make the rows of probe_outcomes.csv, and those of tests.csv between groups of jobs and between models.

    `cells`: every cell in study order, which is the order of the rows.

    A cell's share of an outcome is its part of the cell's answers; a group's is the mean over its jobs and
    the templates that every job has. The interval is the crossed one, or Wilson's of all answers where that
    is wider: an outcome that never came varies nowhere, and is still possible.
    """
    design = answers.design
    kinds: list[_Kind] = []
    tested: list[Number] = []
    for outcome in OUTCOMES:
        if outcome in TESTED_OUTCOMES:
            tested.append((len(kinds), outcome, ""))
        kinds.append((outcome, ""))
        if outcome == NAMED:
            kinds += [(outcome, group) for group in design.groups]
    of_cells: dict[PromptCell, Counter[_Kind]] = {}
    group_of: dict[str, str] = {}
    for cell in cells:
        if cell in answers.cells:
            of_cells[cell], group_of[cell.job] = answers.cells[cell], cell.job_group
    blocks = _blocks(of_cells, kinds, design.frames)
    rows: list[Row] = []
    for block in blocks.values():
        all_jobs = {ALL: list(range(len(block.jobs)))}
        for job_group, jobs in {**all_jobs, **rows_of_groups(block.jobs, group_of)}.items():
            rows += _rows(block, job_group, jobs, kinds)
    return rows, list(_tests(blocks, group_of, tested, design.study.margin))


def _blocks(
    of_cells: Mapping[PromptCell, Counter[_Kind]], kinds: list[_Kind], frames: Mapping[str, Mapping[int, str]]
) -> dict[Arm, CrossedCells]:
    """Lay cells out by arm, with counts as masses and answers as coverage; without any a cell is a gap."""
    labels: list[Label] = []
    values = np.empty((len(of_cells), 2 * len(kinds) + 1))
    for i, (cell, counts) in enumerate(of_cells.items()):
        labels.append((arm_of(cell), cell.job, cell.template_id, "answers"))
        numbers, n = np.array([_count(counts, kind) for kind in kinds]), counts.total()
        values[i] = [*numbers, *numbers / n, n]
    blocks = {}
    for arm, block in cross(labels, values, gaps=True).items():
        frame_of = frames.get(arm.bias_type, {})
        sizes = [*map(len, frame_places(block.templates, frame_of).values())]
        framed = block.by_frame(frame_of)  # averages shares; counts are summed
        blocks[arm] = replace(framed, masses=framed.masses * sizes, coverage=framed.coverage * sizes)
    return blocks


def _rows(block: CrossedCells, job_group: str, jobs: list[int], kinds: list[_Kind]) -> Iterator[Row]:
    templates, note = complete_in_all([block])
    shares = block.shares_at(templates).point[:, jobs]
    counts = block.at(block.masses, templates)[:, jobs].sum(axis=(1, 2))
    n_answers = round(block.at(block.coverage, templates)[jobs].sum())
    for k, (outcome, group) in enumerate(kinds):
        low = high = None
        spread, ends = spread_of_mean(shares[k]), wilson(round(counts[k]), n_answers)
        if spread.variance is not None and spread.dof is not None and ends is not None:
            crossed = share_interval(float(shares[k].mean()), spread.variance, spread.dof)
            low, high = min(float(crossed[0]), ends[0]), max(float(crossed[1]), ends[1])
        row = {**block.arm._asdict(), "job_group": job_group}
        row["outcome"] = f"{outcome}:{group}" if group else outcome
        row["share"] = float(shares[k].mean()) if shares[k].size else None
        row |= {"ci_low": low, "ci_high": high, "n_prompts": int(shares[k].size), "n": round(counts[k])}
        row |= {"n_answers": n_answers, "n_jobs": len(jobs), "n_templates": len(templates)}
        yield {**row, "reason": joined([note, spread.reason])}


def _tests(
    blocks: Mapping[Arm, CrossedCells],
    group_of: Mapping[str, str],
    tested: Sequence[Number],
    margins: Mapping[str, float],
) -> Iterator[Contrast]:
    for arm, block in blocks.items():
        templates, note = complete_in_all([block])
        values, rows_of = block.numbers_at(templates), rows_of_groups(block.jobs, group_of)
        scope = replace(scope_of(arm, "answers"), quantity=OUTCOME_SHARE)
        yield from between_job_groups(values, rows_of, tested, scope, margins, note)
    for (arm_b, b), (arm_a, a) in combinations(blocks.items(), 2):
        jobs = [job for job in a.jobs if job in b.jobs]
        if arm_a._replace(model="") != arm_b._replace(model="") or not jobs:
            continue
        a, b = a.cut(jobs, a.templates), b.cut(jobs, b.templates)
        templates, note = complete_in_all([a, b])
        of_a, of_b = a.numbers_at(templates), b.numbers_at(templates)
        scope = replace(scope_of(arm_a, ANSWERS_OF_MODELS), quantity=OUTCOME_SHARE, model_b=arm_b.model)
        rows_of = rows_of_groups(a.jobs, {job: group_of[job] for job in jobs})
        yield from between_arms(of_a, of_b, rows_of, tested, scope, margins, note)
