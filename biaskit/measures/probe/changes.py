"""Rows of what changed, prompt by prompt, between two models probed (methods/comparisons#change)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from biaskit.common.wording import joined
from biaskit.compare.changes import ZONE, Change, shown_prompt
from biaskit.compare.comparison import MODELS
from biaskit.compare.same_prompts import SLOT
from biaskit.measures.probe.compare_cells import Answers, asked_alike, common_cells
from biaskit.measures.probe.contrasts import scope_of
from biaskit.records import ALL
from biaskit.stats.arms import BOUNDED, Arm, CrossedCells, complete_in_all, frame_places, rows_of_groups
from biaskit.stats.changes import TIE_ZONE
from biaskit.stats.contrasts import within_jobs
from biaskit.tables.query import Row
from biaskit.tables.reasons import ESTIMATORS_DIFFER

NOTHING_COMMON = "no prompt that both answered in the same words and format"
OF_BOUNDS = "bounds: single answers and sizes of changes are not known"
OF_TEST = {"mean_change": "estimate", "mean_change_low": "ci_low", "mean_change_high": "ci_high"}
OF_TEST |= {"margin": "margin", "equivalent": "equivalent"}


def change_rows(
    before: str, after: str, answers: Mapping[str, Answers], margins: Mapping[str, float]
) -> tuple[list[Row], list[Row]]:
    """Make the rows of changes.csv and of changed_prompts.csv of two models, for every arm of `before`."""
    early, late = answers[before], answers[after]
    rows: list[Row] = []
    prompts: list[Row] = []
    for arm, block in early.blocks.items():
        key: dict[str, Any] = {"before": before, "after": after, **arm._asdict()}
        answered = ~np.isnan(block.shares[0])
        blocks, note = matched(arm, [early, late])
        for job_group, jobs in groups_of(block.jobs, early).items() if blocks else [(ALL, block.jobs)]:
            own = [common.cut([*{*jobs} & {*common.jobs}], common.templates) for common in blocks]
            numbers, reason = _numbers(arm, own, early, margins)
            numbers["n_unmatched"] = int(answered[np.isin(block.jobs, jobs)].sum()) - numbers["n_prompts"]
            rows.append({**key, "job_group": job_group, **numbers, "reason": joined([note, reason])})
        change = change_of(arm, blocks, early, margins) if blocks and not is_bounded(blocks) else None
        if change is not None and not change.is_sampled:
            for (i, j), changed in change.listed():
                job, template = blocks[0].jobs[i], blocks[0].templates[j]
                where = {"job": job, "job_group": early.group_of[job], "template_id": template}
                texts: Any = early.asked.text(f"{arm.bias_type} template {template}") or ()
                prompts.append({**key, **where, "prompt": shown_prompt(*texts).replace(SLOT, job), **changed})
    return rows, prompts


def matched(arm: Arm, members: Sequence[Answers]) -> tuple[list[CrossedCells], str | None]:
    """Cut an arm of several models to the prompts that all answered in the same words; say what was cut."""
    if not all(arm in member.blocks for member in members) or not asked_alike(arm, members):
        return [], NOTHING_COMMON
    common, note = common_cells(arm, members)
    templates, incomplete = complete_in_all(common)
    if not templates or not common[0].jobs:
        return [], joined([NOTHING_COMMON, note, incomplete])
    return [block.cut(block.jobs, templates) for block in common], joined([note, incomplete])


def groups_of(jobs: Sequence[str], asked: Answers) -> dict[str, Sequence[str]]:
    """Map each group of jobs to its jobs, `all` first, alone where there is only one group."""
    groups: dict[str, Sequence[str]] = {ALL: jobs}
    for name, places in rows_of_groups(jobs, asked.group_of).items():
        groups.setdefault(name, [jobs[i] for i in places])
    return groups if len(groups) > 2 else {ALL: jobs}


def change_of(
    arm: Arm, blocks: Sequence[CrossedCells], asked: Answers, margins: Mapping[str, float]
) -> Change:
    """Take the first block as before and the last as after."""
    before, after = blocks[0], blocks[-1]
    frames = [*frame_places(before.templates, asked.frames(arm.bias_type)).values()]
    contrast, inverse = asked.contrast or asked.groups[:2], (before.inverse, after.inverse)
    zone = margins.get(ZONE, TIE_ZONE)
    return Change(before.shares, after.shares, asked.groups, contrast, zone, inverse, frames)


def is_bounded(blocks: Sequence[CrossedCells]) -> bool:
    """Tell whether shares of a block are known between bounds alone."""
    return BOUNDED in map(attrgetter("estimator"), blocks)


def _numbers(
    arm: Arm, blocks: Sequence[CrossedCells], asked: Answers, margins: Mapping[str, float]
) -> tuple[dict[str, Any], str | None]:
    """Make the numbers of one group of jobs; the mean is tested as in tests.csv, frames averaged."""
    if not blocks or not blocks[0].jobs:
        return {"n_prompts": 0}, None
    change = change_of(arm, blocks, asked, margins)
    estimators = " against ".join(dict.fromkeys(map(str, map(attrgetter("estimator"), blocks))))
    row: dict[str, Any] = {"estimator": estimators, "n_jobs": len(blocks[0].jobs)}
    row["n_prompts"] = blocks[0].coverage.size
    row["coverage"] = min(float(blocks[0].coverage.mean()), float(blocks[-1].coverage.mean()))
    first, sides = change.groups.index(change.contrast[0]), []
    for block in reversed(blocks):
        framed = block.by_frame(asked.frames(arm.bias_type))
        sides.append(framed.shares_at(framed.templates)[first])
    test = within_jobs(*sides, scope=scope_of(arm, MODELS), margins=margins)[-1]
    row |= zip(OF_TEST, map(test.__getitem__, OF_TEST.values()), strict=True)
    numbers, reason = ({}, OF_BOUNDS) if is_bounded(blocks) else change.numbers()
    differ = f"{ESTIMATORS_DIFFER}: {estimators}" if " against " in estimators else None
    return row | numbers, joined([differ, reason])
