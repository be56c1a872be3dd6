"""From shares of single cells to every table of the prober (methods/averages#cells-to-tables)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from biaskit.errors import StudyError
from biaskit.measures.probe.contrasts import Choices, Interval, arm_of, arms_of_levels, contrast_rows
from biaskit.records import CellShares
from biaskit.stats.arms import (
    BOUNDED,
    Arm,
    CellValues,
    CrossedCells,
    complete_in_all,
    cross,
    empty_note,
    frame_places,
    mean_of,
    rows_of_groups,
)
from biaskit.stats.arrays import FloatArray
from biaskit.stats.contrasts import Row, adjust
from biaskit.stats.crossed import (
    difference_interval,
    joined,
    se_over_templates,
    share_interval,
    spread_of_mean,
    variance_components,
)
from biaskit.stats.proportions import se_of_mean
from biaskit.stats.resampling import crossed_bootstrap, generator
from biaskit.stats.verdict import Rule


@dataclass(frozen=True, slots=True)
class _Entered:
    """The part of a block that enters its tables: the complete templates, and why the others do not."""

    templates: list[int]
    shares: CellValues  # [groups, I, J], J counts frames where templates have one
    coverage: FloatArray  # [I, J]
    note: str | None
    difference_ends: FloatArray | None = None  # [I, J, 2], where the estimator gives bounds
    draws: tuple[FloatArray, FloatArray, FloatArray] | None = None
    """Where it counts draws: shares [groups, I, K], matched draws [I, K] and weights [I, K] of templates."""


def tables(
    cells: Sequence[CellShares],  # all, in study order, which decides the order of the rows and no number
    *,
    groups: tuple[str, ...],
    contrast: tuple[str, str],
    levels: Mapping[str, tuple[int, ...]],
    floor: float,
    interval: Interval,  # of probe_jobs and probe_groups
    margins: Mapping[str, float],
    seed: int,
    frames: Mapping[str, Mapping[int, str]] | None = None,  # bias type → template → frame: averaged first
    strict: bool = False,  # the rule of verdicts
) -> dict[str, list[Row]]:
    """Make the rows of a run's tables, by table name; a table that the study has nothing for is absent."""
    choices = Choices(groups, contrast, levels, margins, seed, floor, interval)
    roster = {x.cell.job: x.cell for x in cells}
    group_of = {job: cell.job_group for job, cell in roster.items()}
    labour_of = {job: cell.labour_female_share for job, cell in roster.items()}
    by_template = _blocks(cells, len(groups))
    frames = frames or {}
    blocks = {arm: block.by_frame(frames.get(arm.bias_type, {})) for arm, block in by_template.items()}
    inexact = [x for x in cells if x.estimator in (BOUNDED, "sampling")]
    cell_at = {(arm_of(x.cell), x.cell.job, x.cell.template_id): x for x in inexact}
    entered = {
        arm: _enter(block, by_template[arm], frames.get(arm.bias_type, {}), cell_at)
        for arm, block in blocks.items()
    }
    rows_by_table: dict[str, list[Row]] = {"probe_cells": _cell_rows(cells, groups, floor)}
    for name in ("probe_jobs", "probe_groups", "probe_templates", "probe_variance"):
        rows_by_table[name] = []
    for arm, block in blocks.items():
        inside = entered[arm]
        rows_of = rows_of_groups(block.jobs, group_of)
        rows_by_table["probe_jobs"] += _job_rows(block, inside, group_of, labour_of, choices)
        for job_group, rows in rows_of.items():
            scope: Row = {**arm._asdict(), "estimator": block.estimator, "job_group": job_group}
            rows_by_table["probe_groups"] += _group_rows(scope, block, inside, rows, choices)
            rows_by_table["probe_variance"] += _variance_rows(scope, inside, rows, groups)
        rows_by_table["probe_templates"] += _template_rows(by_template[arm], rows_of, groups)
    if level_rows := list(_level_rows(blocks, group_of, choices)):
        rows_by_table["probe_levels"] = level_rows
    rows_by_table["tests"] = adjust(
        contrast_rows(blocks, group_of, labour_of, choices), Rule(contrast[:1], strict)
    )
    return rows_by_table


def _blocks(cells: Sequence[CellShares], n_groups: int) -> dict[Arm, CrossedCells]:
    """Lay the cells out by arm. Raises `StudyError` where they are no full product of jobs and templates."""
    nothing, unknown = (np.nan,) * n_groups, ((np.nan, np.nan),) * n_groups
    values = np.array(
        [
            (*(x.masses or nothing), *(x.shares or nothing), np.nan if x.coverage is None else x.coverage)
            for x in cells
        ],
        dtype=np.float64,
    ).reshape(len(cells), 2 * n_groups + 1)
    ends = np.array(
        [[end for of_end in zip(*(x.share_ends or unknown), strict=True) for end in of_end] for x in cells],
        dtype=np.float64,
    ).reshape(len(cells), 2 * n_groups)
    try:
        return cross(
            [arm_of(x.cell) for x in cells],
            [x.cell.job for x in cells],
            [x.cell.template_id for x in cells],
            [x.estimator for x in cells],
            values,
            ends,
        )
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
    if not templates or block.estimator not in (BOUNDED, "sampling"):
        return _Entered(templates, shares, coverage, note)
    members = frame_places(by_template.templates, frame_of)
    entered_frames = [[by_template.templates[place] for place in members[first]] for first in templates]
    if block.estimator == "sampling":
        ids = [template for frame in entered_frames for template in frame]
        matched = np.array(
            [[cell_at[block.arm, job, template].matched for template in ids] for job in block.jobs],
            dtype=np.float64,
        )
        weights = np.broadcast_to(
            [1.0 / len(frame) for frame in entered_frames for _ in frame], matched.shape
        )
        draws = by_template.shares_at(ids).point, matched, weights
        return _Entered(templates, shares, coverage, note, draws=draws)
    of_frames = []
    for frame in entered_frames:
        cells = [[cell_at[block.arm, job, template] for template in frame] for job in block.jobs]
        ends = np.array([[x.difference_ends or (None, None) for x in row] for row in cells], np.float64)
        # Where nothing is listed the difference can be anything.
        of_frames.append(np.where(np.isnan(ends), [-1.0, 1.0], ends).mean(axis=1))
    return _Entered(templates, shares, coverage, note, difference_ends=np.stack(of_frames, axis=1))


# --- probe_cells -----------------------------------------------------------------------------------


def _cell_rows(cells: Sequence[CellShares], groups: Sequence[str], floor: float) -> list[Row]:
    mass = [f"{group}_mass" for group in groups]
    share = [f"{group}_share" for group in groups]
    nothing, unknown = (None,) * len(groups), (None, None)
    return [
        {
            **arm_of(x.cell)._asdict(),
            "template_id": x.cell.template_id,
            "job": x.cell.job,
            "job_group": x.cell.job_group,
            "estimator": x.estimator,
            **dict(zip(mass, x.masses or nothing, strict=True)),
            "coverage": x.coverage,
            **dict(zip(share, x.shares or nothing, strict=True)),
            **{
                f"{group}_share_{name}": end
                for group, ends in zip(groups, x.share_ends or (unknown,) * len(groups), strict=True)
                for name, end in zip(("low", "high"), ends, strict=True)
            },
            **dict(zip(("coverage_low", "coverage_high"), x.coverage_ends or unknown, strict=True)),
            "below_floor": None if x.coverage is None else x.coverage < floor,
            "reason": x.reason,
        }
        for x in cells
    ]


# --- probe_jobs ------------------------------------------------------------------------------------


def _job_rows(
    block: CrossedCells,
    inside: _Entered,
    group_of: Mapping[str, str],
    labour_of: Mapping[str, float | None],
    choices: Choices,
) -> Iterator[Row]:
    names, columns = _job_columns(block, inside, choices)
    ends = None if inside.difference_ends is None else inside.difference_ends.mean(axis=1)
    few = "one template: no interval" if len(inside.templates) == 1 else None
    place = {job: i for i, job in enumerate(block.jobs)}
    for job in (job for job in group_of if job in place):
        yield {
            **block.arm._asdict(),
            "estimator": block.estimator,
            "job": job,
            "job_group": group_of[job],
            "labour_female_share": labour_of[job],
            **{name: _or_none(columns[name][place[job]]) if name in columns else None for name in names},
            "n_templates": len(inside.templates),
            "difference_low": ends[place[job], 0] if ends is not None else None,
            "difference_high": ends[place[job], 1] if ends is not None else None,
            "reason": joined([inside.note, few]),
        }


def _job_columns(
    block: CrossedCells, inside: _Entered, choices: Choices
) -> tuple[list[str], dict[str, FloatArray]]:
    """Name every number of a job, and give those that the jobs of a block have, `[I]` each."""
    shares = [f"{group}_share" for group in choices.groups]
    means_of = [*shares, f"{choices.contrast[0]}_minus_{choices.contrast[1]}"]
    ends_of = [*((f"{share}_ci_low", f"{share}_ci_high") for share in shares), ("ci_low", "ci_high")]
    names = [*means_of, "coverage", *(name for ends in ends_of for name in ends)]
    if not inside.templates:
        return names, {}
    first, second = (choices.groups.index(name) for name in choices.contrast)
    point = inside.shares.point
    # The shares and, last, the difference. Bounds of the difference are its own, not made of the shares'.
    cells = [np.concatenate([point, [point[first] - point[second]]])]
    means = point.mean(axis=-1)
    columns = dict(zip(means_of, [*means, means[first] - means[second]], strict=True))
    columns["coverage"] = inside.coverage.mean(axis=-1)
    if (differences := inside.difference_ends) is not None:
        ends = inside.shares.low_and_high
        cells = [np.concatenate([ends[side], [differences[..., side]]]) for side in (0, 1)]
    intervals = [_job_intervals(block, values, choices) for values in cells]
    if intervals[0] is not None and intervals[-1] is not None:
        for (low, high), lows, highs in zip(ends_of, intervals[0][0], intervals[-1][1], strict=True):
            columns[low], columns[high] = lows, highs
    return names, columns


def _job_intervals(
    block: CrossedCells, cells: FloatArray, choices: Choices
) -> tuple[FloatArray, FloatArray] | None:
    """Find the ends `[groups + 1, I]` of every job's shares and, last, of their difference."""
    if cells.shape[-1] < 2:
        return None
    means = cells.mean(axis=-1)
    if choices.interval == "bootstrap":
        low, high = np.empty_like(means), np.empty_like(means)
        for i, job in enumerate(block.jobs):
            rng = generator(choices.seed, "probe_jobs", [*block.arm, job])
            resampled = crossed_bootstrap(cells[:, i, None, :], rng=rng)
            if resampled is not None:
                low[:, i], high[:, i] = resampled
        return low, high
    spread = spread_of_mean(cells[:, :, None, :])
    if spread.variance is None or spread.dof is None:
        return None
    of_shares = share_interval(means[:-1], spread.variance[:-1], spread.dof[:-1])
    of_difference = difference_interval(means[-1:], spread.variance[-1:], spread.dof[-1:])
    low, high = (np.concatenate(pair) for pair in zip(of_shares, of_difference, strict=True))
    return low, high


# --- probe_groups, probe_templates, probe_variance -------------------------------------------------


def _share_ends(
    cells: CellValues, choices: Choices, key: Sequence[object]
) -> tuple[float | None, float | None, str | None]:
    """Find the interval of a mean share, and what it is conditional on or why there is none."""
    intervals = []  # under bounds of both: what lies between their outer ends
    for values in cells.low_and_high if cells.tested == "ends" else (cells.point,):
        spread = spread_of_mean(values)
        if spread.variance is None or spread.dof is None or np.isnan(values).any():
            return None, None, spread.reason
        ends = None
        if choices.interval == "bootstrap":
            ends = crossed_bootstrap(values, rng=generator(choices.seed, "probe_groups", key))
        intervals.append(ends or share_interval(float(values.mean()), spread.variance, spread.dof))
    return float(intervals[0][0]), float(intervals[-1][1]), spread.reason


def _group_rows(
    scope: Row, block: CrossedCells, inside: _Entered, rows: list[int], choices: Choices
) -> Iterator[Row]:
    coverage = inside.coverage[rows]
    all_coverage = float(np.nansum(block.coverage[rows]))
    for k, gender in enumerate(choices.groups):
        cells = inside.shares[k, rows]
        values, empty = cells.point, 0 if cells.empty is None else int(cells.empty.sum())
        key = [*block.arm, scope["job_group"], gender]
        low, high, conditional = _share_ends(cells, choices, key)
        pooled = float(np.nansum(block.masses[k, rows])) / all_coverage if all_coverage else None
        no_mass = "the summed coverage is 0: no pooled share" if pooled is None else None
        bounds = cells.ends if cells.tested == "ends" or empty else None
        empty_of = empty_note(empty, values.size, tested=cells.tested) if empty else None
        unknown = bool(np.isnan(values).any())
        se, few = None, None
        if inside.draws is not None:
            drawn, matched, weights = inside.draws
            se, few = se_of_mean(drawn[k, rows], matched[rows], weights[rows])
        yield {
            **scope,
            "gender": gender,
            "share": _or_none(values.mean()) if values.size else None,
            "pooled_share": pooled,
            "se_templates": None if unknown else se_over_templates(values),
            "ci_low": low,
            "ci_high": high,
            "share_low": float(bounds[0].mean()) if bounds and values.size else None,
            "share_high": float(bounds[1].mean()) if bounds and values.size else None,
            "coverage": float(coverage.mean()) if coverage.size else None,
            "n_jobs": len(rows),
            "n_templates": len(inside.templates),
            "coverage_median": float(np.median(coverage)) if coverage.size else None,
            "n_below_floor": int((coverage < choices.floor).sum()) if coverage.size else None,
            "se_sampling": se,
            "n_empty": empty if block.estimator in (BOUNDED, "sampling") else None,
            "reason": joined([inside.note, empty_of, conditional, no_mass, few]),
        }


def _or_none(number: float) -> float | None:
    """Give a mean, or None where a cell in it is unknown."""
    return None if np.isnan(number) else float(number)


def _variance_rows(scope: Row, inside: _Entered, rows: list[int], groups: Sequence[str]) -> Iterator[Row]:
    for k, gender in enumerate(groups):
        values = inside.shares[k, rows].point
        components = variance_components(values[:0] if np.isnan(values).any() else values)
        yield {
            **scope,
            "gender": gender,
            "var_job": components.job,
            "var_template": components.template,
            "var_residual": components.residual,
            "reason": joined([inside.note, components.reason]),
        }


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
                yield {
                    **block.arm._asdict(),
                    "template_id": template,
                    "job_group": job_group,
                    "gender": gender,
                    "share": float(block.shares[k, rows, j].mean()) if complete[j] else None,
                    "coverage": float(block.coverage[rows, j].mean()) if complete[j] else None,
                    "n_jobs": int(answered[rows, j].sum()),
                    "estimator": block.estimator,
                    "reason": reason,
                }


# --- probe_levels ----------------------------------------------------------------------------------


def _level_rows(
    blocks: Mapping[Arm, CrossedCells], group_of: Mapping[str, str], choices: Choices
) -> Iterator[Row]:
    """Average a level's share: the plain mean over those of its instructions that were run."""
    for arm, run in arms_of_levels(blocks, choices.levels):
        for level, members in run.items():
            templates, note = complete_in_all(members)
            shares = mean_of([block.shares_at(templates) for block in members]).point
            for job_group, rows in rows_of_groups(members[0].jobs, group_of).items():
                for k, gender in enumerate(choices.groups):
                    yield {
                        "model": arm.model,
                        "bias_type": arm.bias_type,
                        "setting": arm.setting,
                        "prompt_form": arm.prompt_form,
                        "job_group": job_group,
                        "gender": gender,
                        "level": level,
                        "share": _or_none(shares[k, rows].mean()) if templates else None,
                        "n_instructions": len(members),
                        "estimator": members[0].estimator,
                        "reason": note,
                    }
