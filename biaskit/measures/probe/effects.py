"""From shares of single cells to every table of the prober (methods/averages#cells-to-tables)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from biaskit.common.wording import joined
from biaskit.errors import StudyError
from biaskit.measures.probe.contrasts import StudyCells, arm_of, arms_of_levels, columns_of, contrast_rows
from biaskit.records import CellShares
from biaskit.stats.arms import (
    BOUNDED,
    Z95,
    Arm,
    CellValues,
    CrossedCells,
    Label,
    complete_in_all,
    cross,
    empty_note,
    frame_places,
    mean_of,
    rows_of_groups,
)
from biaskit.stats.arrays import FloatArray
from biaskit.stats.contrasts import adjust
from biaskit.stats.crossed import (
    difference_interval,
    se_over_templates,
    share_interval,
    spread_of_mean,
    variance_components,
)
from biaskit.stats.proportions import se_of_mean
from biaskit.stats.resampling import crossed_bootstrap, generator
from biaskit.tables.query import Row


@dataclass(frozen=True, slots=True)
class _Entered:
    """The part of a block that enters its tables: the complete templates, and why the others do not."""

    templates: list[int]
    shares: CellValues  # [groups, I, J], J counts frames where templates have one
    binary: CellValues  # [I, J], the part of the contrast's first group in both
    coverage: FloatArray  # [I, J]
    note: str | None
    difference_ends: FloatArray | None = None  # [I, J, 2], where the estimator gives bounds
    samples: tuple[FloatArray, FloatArray, FloatArray] | None = None
    """Where it counts samples: shares [groups, I, K], matched samples [I, K], weights [I, K] of templates."""


def tables(cells: Sequence[CellShares], study: StudyCells) -> dict[str, list[Any]]:
    """Make the rows of a run's tables, by table name; a table that the study has nothing for is absent.

    `cells`: all, in study order, which decides the order of the rows and no number.
    """
    groups = study.groups
    cell_at: dict[tuple[Arm, str, int], CellShares] = {}
    for x in cells:
        job = x.cell.job
        study.group_of[job], study.workforce_of[job] = x.cell.job_group, x.cell.workforce_share
        study.rating_of[job] = x.cell.rating
        if x.estimator in (BOUNDED, "sampling"):
            cell_at[arm_of(x.cell), job, x.cell.template_id] = x
    rows_by_table: dict[str, list[Any]] = {"probe_prompts": list(_cell_rows(cells, study))}
    for name in ("probe_jobs", "probe_groups", "probe_templates", "probe_variance"):
        rows_by_table[name] = []
    for arm, by_template in blocks_of_cells(cells, study).items():
        frame_of = study.frames.get(arm.bias_type, {})
        block = study.blocks[arm] = by_template.by_frame(frame_of)
        inside = _enter(block, by_template, frame_of, cell_at)
        rows_of = rows_of_groups(block.jobs, study.group_of)
        rows_by_table["probe_jobs"] += _job_rows(block, inside, study)
        for job_group, rows in rows_of.items():
            scope = {**arm._asdict(), "estimator": block.estimator, "job_group": job_group}
            rows_by_table["probe_groups"] += _group_rows(scope, block, inside, rows, study)
            rows_by_table["probe_variance"] += _variance_rows(scope, inside, rows, groups)
        rows_by_table["probe_templates"] += _template_rows(by_template, rows_of, groups)
    if level_rows := list(_level_rows(study)):
        rows_by_table["probe_levels"] = level_rows
    rows_by_table["tests"] = adjust(contrast_rows(study), study.rule)
    return rows_by_table


def blocks_of_cells(cells: Sequence[CellShares], study: StudyCells) -> dict[Arm, CrossedCells]:
    """Lay the cells out by arm. Raises `StudyError` where they are no full product of jobs and templates."""
    if not cells:
        return {}
    n_groups = len(study.groups)
    nothing, unknown = (np.nan,) * n_groups, ((np.nan, np.nan),) * n_groups
    labels: list[Label] = []
    values, ends = [], []
    for x in cells:
        labels.append((arm_of(x.cell), x.cell.job, x.cell.template_id, x.estimator))
        coverage = np.nan if x.coverage is None else x.coverage
        values.append((*(x.masses or nothing), *(x.shares or nothing), coverage))
        low, high = zip(*(x.share_ends or unknown), strict=True)
        ends.append((*low, *high))
    try:
        numbers, bounds = np.array(values, dtype=np.float64), np.array(ends, dtype=np.float64)
        return cross(labels, numbers, bounds, binary=study.binary)
    except ValueError as error:
        raise StudyError(f"The prompts are not a full table of jobs by templates. {error}.") from error


def _enter(
    block: CrossedCells,
    by_template: CrossedCells,
    frame_of: Mapping[int, str],
    cell_at: Mapping[tuple[Arm, str, int], CellShares],
) -> _Entered:
    """Pick what enters the tables; `cell_at` has, by arm, job and template, each cell that is no point."""
    templates, note = complete_in_all([block])
    shares, coverage = block.shares_at(templates), block.at(block.coverage, templates)
    entered = _Entered(templates, shares, block.numbers_at(templates)[-1], coverage, note)
    if not templates or block.estimator not in (BOUNDED, "sampling"):
        return entered
    members = frame_places(by_template.templates, frame_of)
    places = [members[first] for first in templates]
    sizes = list(map(len, places))  # of the frames
    ids = [by_template.templates[place] for of_frame in places for place in of_frame]
    cells = [cell_at[block.arm, job, template] for job in block.jobs for template in ids]
    shape = len(block.jobs), len(ids)
    if block.estimator == "sampling":
        matched = np.array([x.matched for x in cells], dtype=np.float64).reshape(shape)
        weights = np.broadcast_to(1.0 / np.repeat(sizes, sizes), shape)
        return replace(entered, samples=(by_template.shares_at(ids).point, matched, weights))
    ends = np.array([x.difference_ends or (None, None) for x in cells], np.float64).reshape(*shape, 2)
    # Where nothing is listed the difference can be anything.
    ends = np.where(np.isnan(ends), [-1.0, 1.0], ends)
    of_frames = [part.mean(axis=1) for part in np.split(ends, np.cumsum(sizes)[:-1], axis=1)]
    return replace(entered, difference_ends=np.stack(of_frames, axis=1))


def _cell_rows(cells: Sequence[CellShares], study: StudyCells) -> Iterator[Row]:
    masses, shares = columns_of(study.groups, "mass"), columns_of(study.groups, "share")
    nothing, unknown = (None,) * len(masses), (None, None)
    for x in cells:
        row = arm_of(x.cell)._asdict()
        row |= {"template_id": x.cell.template_id, "job": x.cell.job, "job_group": x.cell.job_group}
        row["estimator"] = x.estimator
        row |= zip(masses, x.masses or nothing, strict=True)
        row["coverage"] = x.coverage
        row |= zip(shares, x.shares or nothing, strict=True)
        for share, ends in zip(shares, x.share_ends or (unknown,) * len(masses), strict=True):
            row[f"{share}_low"], row[f"{share}_high"] = ends
        row["coverage_low"], row["coverage_high"] = x.coverage_ends or unknown
        row["low_coverage"] = None if x.coverage is None else x.coverage < study.min_coverage
        row["reason"] = x.reason
        yield row


def _job_rows(block: CrossedCells, inside: _Entered, study: StudyCells) -> Iterator[Row]:
    columns = _job_columns(block, inside, study)
    few = "one template: no interval" if len(inside.templates) == 1 else None
    place = {job: i for i, job in enumerate(block.jobs)}
    for job in study.group_of:
        if job not in place:
            continue
        row = {**block.arm._asdict(), "estimator": block.estimator, "job": job}
        row |= {"job_group": study.group_of[job], "workforce_share": study.workforce_of[job]}
        for name, numbers in columns.items():
            row[name] = or_none(numbers[place[job]])
        row["n_templates"] = len(inside.templates)
        row["reason"] = joined([inside.note, few])
        yield row


def _job_columns(block: CrossedCells, inside: _Entered, study: StudyCells) -> dict[str, FloatArray]:
    """Map every number of a job to its column `[I]` over the jobs of a block; NaN where there is none."""
    shares = columns_of([*study.groups, "binary"], "share")
    difference = "{}_minus_{}".format(*study.contrast)
    low_names = [*columns_of(shares, "ci_low"), "ci_low"]
    high_names = [*columns_of(shares, "ci_high"), "ci_high"]
    bounds = ("difference_low", "difference_high")
    names = [*shares, difference, "coverage", *chain(*zip(low_names, high_names, strict=True)), *bounds]
    columns = dict.fromkeys(names, np.full(len(block.jobs), np.nan))
    if not inside.templates:
        return columns
    point, (first, second) = np.concatenate([inside.shares.point, inside.binary.point[None]]), study.binary
    means = point.mean(axis=-1)
    columns |= zip(shares, means, strict=True)
    columns[difference] = means[first] - means[second]
    columns["coverage"] = inside.coverage.mean(axis=-1)
    # The shares and, last, the difference. Bounds of the difference are its own, not made of the shares'.
    low = high = np.concatenate([point, [point[first] - point[second]]])
    if inside.difference_ends is not None:
        columns["difference_low"], columns["difference_high"] = inside.difference_ends.mean(axis=1).T
        (lows, highs), (binary_low, binary_high) = inside.shares.low_and_high, inside.binary.low_and_high
        low = np.concatenate([lows, [binary_low, inside.difference_ends[..., 0]]])
        high = np.concatenate([highs, [binary_high, inside.difference_ends[..., 1]]])
    of_low = _job_intervals(block, low, study)
    of_high = of_low if high is low else _job_intervals(block, high, study)
    if of_low is not None and of_high is not None:
        low, high = of_low[0], of_high[1]
        for arm, of_two in zip(inside.shares.counted, inside.binary.counted, strict=True):
            of_jobs = arm[:, :, None]
            (least, most), (binary_least, binary_most) = of_jobs.wilson, of_two[:, None].wilson
            low[:-1] = np.minimum(low[:-1], [*least, binary_least])
            high[:-1] = np.maximum(high[:-1], [*most, binary_most])
            # The two shares of a job go against each other: their standard errors add up.
            reach = Z95 * np.sqrt(of_jobs.noise[[first, second]]).sum(axis=0)
            low[-1] = np.maximum(np.minimum(low[-1], columns[difference] - reach), -1.0)
            high[-1] = np.minimum(np.maximum(high[-1], columns[difference] + reach), 1.0)
        columns |= zip(low_names, low, strict=True)
        columns |= zip(high_names, high, strict=True)
    return columns


def _job_intervals(
    block: CrossedCells, cells: FloatArray, study: StudyCells
) -> tuple[FloatArray, FloatArray] | None:
    """Find the ends `[groups + 2, I]` of every job's shares and, last, of their difference."""
    if cells.shape[-1] < 2:
        return None
    means = cells.mean(axis=-1)
    if study.interval == "bootstrap":
        low, high = np.empty_like(means), np.empty_like(means)
        for i, job in enumerate(block.jobs):
            rng = generator(study.seed, "probe_jobs", [*block.arm, job])
            resampled = crossed_bootstrap(cells[:, i, None, :], rng=rng)
            if resampled is not None:
                low[:, i], high[:, i] = resampled
        return low, high
    spread = spread_of_mean(cells[:, :, None, :])
    if spread.variance is None or spread.dof is None:
        return None
    of_shares = share_interval(means[:-1], spread.variance[:-1], spread.dof[:-1])
    of_difference = difference_interval(means[-1:], spread.variance[-1:], spread.dof[-1:])
    low = np.concatenate([of_shares[0], of_difference[0]])
    return low, np.concatenate([of_shares[1], of_difference[1]])


def _share_ends(
    cells: CellValues, study: StudyCells, key: Sequence[object]
) -> tuple[float | None, float | None, str | None]:
    """Find the interval of a mean share, and what it is conditional on or why there is none."""
    intervals = []  # under bounds of both: what lies between their outer ends
    for values in cells.low_and_high if cells.tested == "ends" else (cells.point,):
        spread = spread_of_mean(values)
        if spread.variance is None or spread.dof is None or np.isnan(values).any():
            return None, None, spread.reason
        ends = None
        if study.interval == "bootstrap":
            ends = crossed_bootstrap(values, rng=generator(study.seed, "probe_groups", key))
        intervals.append(ends or share_interval(float(values.mean()), spread.variance, spread.dof))
    low, high = float(intervals[0][0]), float(intervals[-1][1])
    for arm in cells.counted:  # samples that all agree vary nowhere, and are no certainty
        low, high = min(low, float(arm.wilson[0])), max(high, float(arm.wilson[1]))
    return low, high, spread.reason


def _group_rows(
    scope: Row, block: CrossedCells, inside: _Entered, rows: list[int], study: StudyCells
) -> Iterator[Row]:
    coverage = inside.coverage[rows]
    all_coverage = float(np.nansum(block.coverage[rows]))
    for k, gender in enumerate(study.groups):
        cells = inside.shares[k, rows]
        values, empty = cells.point, 0 if cells.empty is None else int(cells.empty.sum())
        low, high, conditional = _share_ends(cells, study, [*block.arm, scope["job_group"], gender])
        pooled = float(np.nansum(block.masses[k, rows])) / all_coverage if all_coverage else None
        no_mass = "the summed coverage is 0: no pooled share" if pooled is None else None
        empty_of = empty_note(empty, values.size, tested=cells.tested) if empty else None
        se, few = None, None
        if inside.samples is not None:
            drawn, matched, weights = inside.samples
            se, few = se_of_mean(drawn[k, rows], matched[rows], weights[rows])
        row = {**scope, "gender": gender, "share": _mean(values), "pooled_share": pooled}
        row["se_templates"] = None if np.isnan(values).any() else se_over_templates(values)
        row |= {"ci_low": low, "ci_high": high, "share_low": None, "share_high": None}
        if cells.ends is not None and (cells.tested == "ends" or empty):
            row["share_low"], row["share_high"] = map(_mean, cells.ends)
        row |= {"coverage": _mean(coverage), "n_jobs": len(rows), "n_templates": len(inside.templates)}
        row |= {"coverage_median": None, "n_low_coverage": None, "se_sampling": se}
        if coverage.size:
            row["coverage_median"] = float(np.median(coverage))
            row["n_low_coverage"] = int((coverage < study.min_coverage).sum())
        row["n_empty"] = empty if block.estimator in (BOUNDED, "sampling") else None
        row |= dict.fromkeys(
            ("binary_share", "binary_share_ci_low", "binary_share_ci_high", "binary_coverage")
        )
        if gender == study.contrast[0]:
            of_two, key = inside.binary[rows], [*block.arm, scope["job_group"], "binary"]
            of_both = block.at(block.masses, inside.templates)[list(study.binary)].sum(axis=0)
            row["binary_share"], row["binary_coverage"] = _mean(of_two.point), _mean(of_both[rows])
            row["binary_share_ci_low"], row["binary_share_ci_high"], _ = _share_ends(of_two, study, key)
        row["reason"] = joined([inside.note, empty_of, conditional, no_mass, few])
        yield row


def _mean(values: FloatArray) -> float | None:
    """Average cells; None where there are none, or one is unknown."""
    return or_none(values.mean()) if values.size else None


def or_none(number: float) -> float | None:
    """Give a mean, or None where a cell in it is unknown."""
    return None if np.isnan(number) else float(number)


def _variance_rows(scope: Row, inside: _Entered, rows: list[int], groups: Sequence[str]) -> Iterator[Row]:
    for k, gender in enumerate(groups):
        values = inside.shares[k, rows].point
        row = {**scope, "gender": gender}
        row |= variance_components(values[:0] if np.isnan(values).any() else values)
        yield {**row, "reason": joined([inside.note, row["reason"]])}


def _template_rows(
    block: CrossedCells, rows_of: Mapping[str, list[int]], groups: Sequence[str]
) -> Iterator[Row]:
    answered = ~np.asarray(np.isnan(block.shares).any(axis=0) | block.empty)
    complete = np.asarray(answered.all(axis=0))
    for j, template in enumerate(block.templates):
        missing = int((~answered[:, j]).sum())
        reason = f"no share in {missing} of {len(block.jobs)} jobs" if missing else None
        for job_group, rows in rows_of.items():
            for k, gender in enumerate(groups):
                row = {**block.arm._asdict(), "template_id": template, "job_group": job_group}
                row |= {"gender": gender, "share": None, "coverage": None}
                if complete[j]:
                    row["share"] = float(block.shares[k, rows, j].mean())
                    row["coverage"] = float(block.coverage[rows, j].mean())
                row["n_jobs"] = int(answered[rows, j].sum())
                row |= {"estimator": block.estimator, "reason": reason}
                yield row


def _level_rows(study: StudyCells) -> Iterator[Row]:
    """Average a level's share: the plain mean over those of its debiasing prompts that were run."""
    for arm, run in arms_of_levels(study):
        scope = arm._asdict()
        del scope["debiasing_id"]
        for level, members in run.items():
            templates, note = complete_in_all(members)
            shares = mean_of(members, templates)
            for job_group, rows in rows_of_groups(members[0].jobs, study.group_of).items():
                for k, gender in enumerate(study.groups):
                    row = {**scope, "job_group": job_group, "gender": gender, "level": level}
                    row["share"] = _mean(shares[k].point[rows])
                    row |= {"n_debiasing_prompts": len(members), "estimator": members[0].estimator}
                    yield {**row, "reason": note}
