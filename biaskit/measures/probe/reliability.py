"""How stable the numbers of a run are: the rows of reliability.csv (methods/reliability)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np

from biaskit.measures.probe.contrasts import StudyCells
from biaskit.measures.probe.ways.design import CONTROLS
from biaskit.measures.probe.ways.tables import ONE_GROUP, pair_of
from biaskit.records import ALL, NO_DEBIASING
from biaskit.stats.arms import Arm, complete_in_all, rows_of_groups
from biaskit.stats.arrays import FloatArray
from biaskit.stats.crossed import share_interval, spread_of_mean
from biaskit.stats.reliability import Estimate, split_half, spread_of_levels, without_one
from biaskit.stats.resampling import generator
from biaskit.tables.query import Row, apart_from, column, first, where

HALVES, SAMPLED, WAYS_SD, TEMPLATES_SD = "split half", "split half, sampled", "ways: SD", "templates: SD"
MEDIAN, SAME = "ways: median", "ways: same direction"
WITHOUT = ("without one job", "without one template")


def reliability_rows(
    study: StudyCells, asked: Sequence[Row], said: Mapping[Arm, Mapping[str, Sequence[float]]]
) -> Iterator[Row]:
    """Yield the rows of every arm without a debiasing prompt, then of its ways.

    `study`: as computed; `said`: what sampled answers name (`answers.differences_said`).
    """
    scope_of: dict[tuple[str, str], Row] = {}  # model, bias type → where its ways stand: its first block
    for arm, block in study.blocks.items():
        if arm.debiasing_id != NO_DEBIASING:
            continue
        scope = arm._asdict()
        del scope["debiasing_id"]
        scope_of.setdefault((arm.model, arm.bias_type), scope)
        templates, _ = complete_in_all([block])
        values = block.numbers_at(templates)[-1].point
        size = {"n_templates": len(templates)}
        rows_of = rows_of_groups(block.jobs, study.group_of)
        for group, rows in {ALL: list(range(len(block.jobs))), **rows_of}.items():
            found = split_half(values[rows], generator(study.seed, "reliability", [*arm, group]))
            yield _row({**scope, "job_group": group}, HALVES, found, n_jobs=len(rows), **size)
        if sampled := [*said.get(arm, {}).values()]:
            found = Estimate(reason="prompts without answers: no reliability")
            if len({*map(len, sampled)}) == 1:
                found = split_half(np.array(sampled), generator(study.seed, "reliability", [*arm, SAMPLED]))
            of_answers = {"n_jobs": len(sampled), "n_templates": max(map(len, sampled))}
            yield _row({**scope, "job_group": ALL}, SAMPLED, found, **of_answers)
        if (pair := pair_of(list(rows_of))) is None or not templates:
            continue
        a, b = values[rows_of[pair[0]]], values[rows_of[pair[1]]]
        size["n_jobs"] = len(a) + len(b)
        for axis, measure in enumerate(WITHOUT):
            least, most = without_one(a, b, axis) or (None, None)
            gap = Estimate(float(a.mean() - b.mean()))
            yield _row({**scope, "job_group": ALL}, measure, gap, least=least, most=most, **size)
        yield _row({**scope, "job_group": ALL}, TEMPLATES_SD, spread_of_levels([a, b]), **size)
    for (model, bias_type), of_ways in scope_of.items():
        ways, of_ways = where(asked, model=model, bias_type=bias_type), {**of_ways, "job_group": ALL}
        for way in where(ways, wording=CONTROLS):
            for shares in way["values"]:  # [I, J], of two; nouns without a stereotype
                share, spread, low, high = float(shares.mean()), spread_of_mean(shares), None, None
                if spread.variance is not None and spread.dof is not None:
                    low, high = map(float, share_interval(share, spread.variance, spread.dof))
                size = {"n_jobs": len(shares), "n_templates": shares.shape[1]}
                yield _row(of_ways, CONTROLS, Estimate(share, low, high), **size)
        if others := apart_from(ways, wording=CONTROLS):
            yield from _of_ways(of_ways, others)


def _of_ways(scope: Row, ways: Sequence[Row]) -> Iterator[Row]:
    """Yield what the ways of one model and bias type differ by: of those that are counted."""
    counted = where(ways, counted=True)
    gaps, size = column(counted, "gap"), {"n_ways": len(counted)}
    if not counted:
        reason = ONE_GROUP if where(ways, reason=ONE_GROUP) else "no way reaches 10 % coverage"
        yield _row(scope, MEDIAN, Estimate(reason=reason), **size)
        return
    main, middle = first(counted, main=True), median(gaps)
    same = np.sign(gaps) == np.sign(middle if main is None else main["gap"])
    yield _row(scope, MEDIAN, Estimate(middle), least=min(gaps), most=max(gaps), **size)
    yield _row(scope, SAME, Estimate(float(same.sum())), **size)
    groups: tuple[list[FloatArray], list[FloatArray]] = ([], [])
    for way in counted:
        for of_group, values in zip(groups, way["values"], strict=True):
            of_group.append(values.mean(axis=1))
    spread = Estimate(reason="ways have other jobs: no SD")
    if len({*map(len, groups[0])}) == len({*map(len, groups[1])}) == 1:
        spread = spread_of_levels(list(map(np.column_stack, groups)))
    yield _row(scope, WAYS_SD, spread, **size)


def _row(scope: Row, measure: str, found: Estimate, **more: Any) -> dict[str, Any]:
    row = {**scope, "measure": measure, "value": found.value, "ci_low": found.low, "ci_high": found.high}
    row |= (
        dict.fromkeys(("least", "most", "n_jobs", "n_templates", "n_ways")) | more | {"reason": found.reason}
    )
    for name in ("value", "ci_low", "ci_high", "least", "most"):
        if row[name] is not None and np.isnan(row[name]):  # of cells without a share
            row |= {name: None, "reason": found.reason or "a cell has no share"}
    return row
