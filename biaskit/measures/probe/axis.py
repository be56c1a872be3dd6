"""Follow what models say along an axis, such as bits or training steps (methods/comparisons#change)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from biaskit.compare.comparison import Axis
from biaskit.measures.probe.changes import change_of, groups_of, is_bounded, matched
from biaskit.measures.probe.compare_cells import Answers
from biaskit.measures.probe.contrasts import scope_of
from biaskit.records import ALL
from biaskit.stats.contrast import Contrast
from biaskit.stats.contrasts import one_row
from biaskit.stats.crossed import crossed_test, share_interval, spread_of_mean
from biaskit.tables.query import Row


def along_axis(
    axis: Axis, answers: Mapping[str, Answers], margins: Mapping[str, float]
) -> tuple[list[Row], list[Contrast]]:
    """Make the rows of curve.csv, over the prompts that all models answered, and test the slope.

    Formula: slope of a cell Σ (v − v̄) y / Σ (v − v̄)², v the values; its mean is tested as a crossed mean.
    """
    labels, values = [*axis.values], np.array([*axis.values.values()])
    members, centred = [*map(answers.__getitem__, labels)], values - values.mean()
    rows: list[Row] = []
    tests: list[Contrast] = []
    for arm in members[0].blocks:
        blocks, note = matched(arm, members)
        if not blocks or is_bounded(blocks):
            continue
        for job_group, jobs in groups_of(blocks[0].jobs, members[0]).items():
            own = [block.cut(jobs, block.templates) for block in blocks]
            shares = []
            for label, block in zip(labels, own, strict=True):
                change = change_of(arm, [own[0], block], members[0], margins)
                shares.append(change.by_frame(change.sides[1]))
                row: dict[str, Any] = {**arm._asdict(), "axis": axis.name, "value": axis.values[label]}
                row |= {"model": label, "job_group": job_group, "n_prompts": block.coverage.size}
                spread, mean = spread_of_mean(shares[-1]), float(shares[-1].mean())
                row |= {"share": mean, "reason": spread.reason}
                if spread.variance is not None and spread.dof is not None:
                    ends = share_interval(mean, spread.variance, spread.dof)
                    row["ci_low"], row["ci_high"] = map(float, ends)
                if label != labels[0]:
                    row |= change.numbers()[0]
                rows.append(row)
            slopes = np.tensordot(centred, shares, axes=1) / np.square(centred).sum()
            test = crossed_test(float(slopes.mean()), spread_of_mean(slopes), limit=math.inf)
            scope = replace(scope_of(arm, "axis"), model_a=labels[-1], model_b=labels[0])
            scope = replace(scope, quantity="share~axis", gender=change.contrast[0])
            if job_group != ALL:
                scope = replace(scope, group_a=job_group, group_b=job_group)
            tests.append(one_row("crossed", test, scope=scope, n=len(jobs), margins={}, note=note))
    return rows, tests
