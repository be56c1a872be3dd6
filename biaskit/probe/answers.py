"""What the answers of a run's cells say, by outcome: means over jobs and templates, and who differs.

See docs/methods.md#outcomes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from biaskit.probe.contrasts import scope_of
from biaskit.probe.design import ProbeDesign
from biaskit.probe.outcomes import OUTCOMES, outcome_of
from biaskit.records import Cell
from biaskit.report.said_next import EVERY_GROUP
from biaskit.stats.arms import Arm, CrossedCells, complete_in_all, cross, group_pairs, rows_of_groups
from biaskit.stats.arrays import FloatArray
from biaskit.stats.contrasts import Row, Scope, between_groups, within_jobs
from biaskit.stats.crossed import joined, share_interval, spread_of_mean
from biaskit.stats.proportions import wilson
from biaskit.tables.quantities import ANSWERS_OF_MODELS, OUTCOME_SHARE, TESTED_OUTCOMES

NAMED = "listed"
"""The outcome of an answer that names one group of the study; below it stand the groups one by one."""
_WITHHELD = ("refusal", "filter")
"""What a server calls an answer that it or its model declined to give."""
_Said = tuple[str, str]  # outcome, and the group where it names one


@dataclass(slots=True)
class AnswersOfRun:
    """The answers of a run's cells, taken in row by row; nothing of a text is kept but its outcome."""

    design: ProbeDesign
    cells: dict[Cell, Counter[_Said]] = field(default_factory=dict)

    def add(self, cell: Cell, said: Counter[_Said]) -> None:
        """Take in what the answers of a row said; a cell's rounds add up."""
        if said:
            self.cells.setdefault(cell, Counter()).update(said)

    def read(self, cell: Cell, row: Mapping[str, Any]) -> Counter[_Said]:
        """What the answers of a row say, by outcome; nothing where it keeps none."""
        counts: Counter[_Said] = Counter()
        expressions = self.design.expressions[cell.bias_type, cell.template_id]
        for text, finish in row.get("answers", ()):
            if finish in _WITHHELD:
                counts["declines", ""] += 1
                continue
            said = outcome_of(
                text, question=row["prompt"], expressions=expressions, groups=self.design.groups
            )
            counts[said.outcome, said.group] += 1
        return counts


def counted(answers: AnswersOfRun, cell: Cell) -> dict[str, int | None]:
    """The columns of probe_cells.csv that say how many answers of a cell have which outcome."""
    said = answers.cells.get(cell)
    names = {outcome: f"n_{outcome}" for outcome in OUTCOMES}
    if said is None:
        return dict.fromkeys(("n_answers", *names.values()))
    return {"n_answers": said.total(), **{name: _count(said, (one, "")) for one, name in names.items()}}


def outcome_rows(answers: AnswersOfRun, cells: Sequence[Cell]) -> tuple[list[Row], list[Row]]:
    """Rows of probe_outcomes.csv, and the contrasts between groups of jobs and between models for tests.csv.

    `cells`: every cell in study order, in which the rows stand whatever order the answers came in.

    A cell's share of an outcome is its part of the cell's answers; a group's is the mean over its jobs and
    the templates that every job has. The interval is the crossed one, or Wilson's of all answers where that
    is wider: an outcome that never came varies nowhere, and is still possible.
    """
    kinds = _kinds(answers.design)
    found = {cell: answers.cells[cell] for cell in cells if cell in answers.cells}
    blocks = _blocks(found, kinds, answers.design.frames)
    group_of = {cell.job: cell.job_group for cell in found}
    rows: list[Row] = []
    for block in blocks.values():
        every = {EVERY_GROUP: list(range(len(block.jobs)))}
        for job_group, jobs in {**every, **rows_of_groups(block.jobs, group_of)}.items():
            rows += _rows(block, job_group, jobs, kinds)
    margins = answers.design.study.margin
    tests = [*_between_groups(blocks, group_of, kinds, margins)]
    return rows, [*tests, *_between_models(blocks, group_of, kinds, margins)]


def _kinds(design: ProbeDesign) -> list[_Said]:
    """What has a row: every outcome, and each group that an answer can name."""
    return [
        kind
        for outcome in OUTCOMES
        for kind in [(outcome, ""), *((outcome, group) for group in design.groups if outcome == NAMED)]
    ]


def _blocks(
    of_cells: Mapping[Cell, Counter[_Said]], kinds: list[_Said], frames: Mapping[str, Mapping[int, str]]
) -> dict[Arm, CrossedCells]:
    """Cells as blocks of jobs × templates, counts for masses and the number of answers for coverage.

    A pair without answers is a gap, as a failed cell is.
    """
    found = {(_arm(cell), cell.job, cell.template_id): counts for cell, counts in of_cells.items()}
    asked: dict[Arm, tuple[dict[str, None], dict[int, None]]] = {}
    for arm, job, template in found:
        jobs, templates = asked.setdefault(arm, ({}, {}))
        jobs[job] = templates[template] = None
    places = [
        (arm, job, template)
        for arm, (jobs, templates) in asked.items()
        for job in jobs
        for template in templates
    ]
    values = np.full((len(places), 2 * len(kinds) + 1), np.nan)
    for i, place in enumerate(places):
        if (counts := found.get(place)) is not None:
            n = counts.total()
            said = [_count(counts, kind) for kind in kinds]
            values[i] = [*said, *(x / n for x in said), n]
    blocks = cross(
        [arm for arm, _, _ in places],
        [job for _, job, _ in places],
        [template for _, _, template in places],
        ["answers"] * len(places),
        values,
    )
    return {arm: block.by_frame(frames.get(arm.bias_type, {})) for arm, block in blocks.items()}


def _count(counts: Counter[_Said], kind: _Said) -> int:
    outcome, group = kind
    return sum(n for said, n in counts.items() if said[0] == outcome and group in ("", said[1]))


def _arm(cell: Cell) -> Arm:
    return Arm(cell.model, cell.bias_type, cell.instruction_id, cell.setting, cell.prompt_form)


def _rows(block: CrossedCells, job_group: str, jobs: list[int], kinds: list[_Said]) -> Iterator[Row]:
    templates, note = complete_in_all([block])
    shares = block.shares_at(templates).point[:, jobs]
    said = block.at(block.masses, templates)[:, jobs].sum(axis=(1, 2))
    n = int(block.at(block.coverage, templates)[jobs].sum())
    for k, (outcome, group) in enumerate(kinds):
        low, high, why = _interval(shares[k], int(said[k]), n)
        yield {
            **block.arm._asdict(),
            "job_group": job_group,
            "outcome": f"{outcome}:{group}" if group else outcome,
            "share": float(shares[k].mean()) if shares[k].size else None,
            "ci_low": low,
            "ci_high": high,
            "n_cells": int(shares[k].size),
            "n": int(said[k]),
            "n_answers": n,
            "n_jobs": len(jobs),
            "n_templates": len(templates),
            "reason": joined([note, why]),
        }


def _interval(shares: FloatArray, said: int, n: int) -> tuple[float | None, float | None, str | None]:
    spread, counted = spread_of_mean(shares), wilson(said, n)
    if spread.variance is None or spread.dof is None or counted is None:
        return None, None, spread.reason
    low, high = share_interval(float(shares.mean()), spread.variance, spread.dof)
    return min(float(low), counted[0]), max(float(high), counted[1]), spread.reason


# --- who differs ------------------------------------------------------------------------------------------


def _tested(kinds: list[_Said]) -> list[tuple[int, str]]:
    return [
        (k, outcome) for k, (outcome, group) in enumerate(kinds) if outcome in TESTED_OUTCOMES and not group
    ]


def _scope(arm: Arm, contrast: str, outcome: str) -> Scope:
    return replace(scope_of(arm, contrast), quantity=OUTCOME_SHARE, gender=outcome)


def _between_groups(
    blocks: Mapping[Arm, CrossedCells],
    group_of: Mapping[str, str],
    kinds: list[_Said],
    margins: Mapping[str, float],
) -> Iterator[Row]:
    for arm, block in blocks.items():
        templates, note = complete_in_all([block])
        shares = block.shares_at(templates)
        rows_of = rows_of_groups(block.jobs, group_of)
        for a, b in group_pairs(list(rows_of)):
            for k, outcome in _tested(kinds):
                scope = replace(_scope(arm, "answers", outcome), group_a=a, group_b=b)
                values = shares[k, rows_of[a]], shares[k, rows_of[b]]
                yield from between_groups(*values, scope=scope, margins=margins, note=note)


def _between_models(
    blocks: Mapping[Arm, CrossedCells],
    group_of: Mapping[str, str],
    kinds: list[_Said],
    margins: Mapping[str, float],
) -> Iterator[Row]:
    """Later named minus earlier named, in one prompt form, on the jobs and templates that both have."""
    for (arm_b, b), (arm_a, a) in combinations(blocks.items(), 2):
        jobs = [job for job in a.jobs if job in b.jobs]
        if arm_a._replace(model="") != arm_b._replace(model="") or not jobs:
            continue
        a, b = a.cut(jobs, a.templates), b.cut(jobs, b.templates)
        templates, note = complete_in_all([a, b])
        of_a, of_b = a.shares_at(templates), b.shares_at(templates)
        for job_group, rows in rows_of_groups(a.jobs, {job: group_of[job] for job in jobs}).items():
            for k, outcome in _tested(kinds):
                scope = _scope(arm_a, ANSWERS_OF_MODELS, outcome)
                scope = replace(scope, model_b=arm_b.model, group_a=job_group, group_b=job_group)
                yield from within_jobs(of_a[k, rows], of_b[k, rows], scope=scope, margins=margins, note=note)
