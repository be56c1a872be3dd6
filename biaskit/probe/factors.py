"""The share of each gender in each arm of a study with factors: rows of probe_factors.csv."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from biaskit.probe.contrasts import Choices
from biaskit.probe.frames import shares_of_arms
from biaskit.probe.intervals import Interval, share_ends
from biaskit.stats.arms import Arm, CellValues, CrossedCells, rows_of_groups
from biaskit.stats.arrays import FloatArray
from biaskit.stats.contrasts import Row
from biaskit.stats.crossed import joined


def arm_rows(
    blocks: Mapping[Arm, CrossedCells], group_of: Mapping[str, str], choices: Choices, interval: Interval
) -> list[Row]:
    """A row for each block, arm, job group and gender, over the frames that are complete in every arm."""
    made: list[Row] = []
    for block in blocks.values():
        layout = choices.layouts.get(block.arm.bias_type)
        if layout is None or layout.arms is None:
            continue
        shares, frames, note = shares_of_arms(block, layout)
        for arm, cells in shares.items():
            templates = [layout.arms[arm][frame] for frame in frames]
            coverage = block.at(block.coverage, templates)
            of_arm = {"arm": layout.name_of(arm), "n_frames": len(frames)}
            scope: Row = {**block.arm._asdict(), "estimator": block.estimator, **of_arm}
            for job_group, rows in rows_of_groups(block.jobs, group_of).items():
                for k, gender in enumerate(choices.groups):
                    named: Row = {**scope, "job_group": job_group, "gender": gender, "n_jobs": len(rows)}
                    made.append(_row(named, cells[k, rows], coverage[rows], interval, choices.seed, note))
    return made


def _row(
    named: Row, cells: CellValues, coverage: FloatArray, interval: Interval, seed: int, note: str | None
) -> Row:
    key = [named[name] for name in ("model", "bias_type", "instruction_id", "setting", "prompt_form")]
    key += [named["arm"], named["job_group"], named["gender"]]
    low, high, why = share_ends(cells, interval, seed, key, "probe_factors")
    known = bool(cells.point.size) and not np.isnan(cells.point).any()
    return {
        **named,
        "share": float(cells.point.mean()) if known else None,
        "ci_low": low,
        "ci_high": high,
        "coverage": float(coverage.mean()) if coverage.size else None,
        "reason": joined([note, why]),
    }
