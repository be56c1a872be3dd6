"""The cells of a study laid out as jobs × templates, one block for each arm that can be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from biaskit.stats.arrays import BoolArray, FloatArray
from biaskit.stats.crossed import joined

FEMALE_DOMINATED = "female-dominated"
MALE_DOMINATED = "male-dominated"


class Arm(NamedTuple):
    """What the cells of one block have in common."""

    model: str
    bias_type: str
    instruction_id: int
    setting: str
    prompt_form: str


@dataclass(frozen=True, slots=True)
class CrossedCells:
    """All cells of one arm; a number that a cell does not have is NaN in here and nowhere else.

    Jobs and templates are in the order of their names and ids, not of the study: the sums over them are
    then the same to the last bit whatever order the cells came in.
    """

    arm: Arm
    estimator: str | None
    jobs: tuple[str, ...]  # I names
    templates: tuple[int, ...]  # J ids
    shares: FloatArray  # [groups, I, J]
    masses: FloatArray  # [groups, I, J]
    coverage: FloatArray  # [I, J]

    def complete(self) -> BoolArray:
        """Which templates have a share in every job: `[J]`."""
        return ~np.asarray(np.isnan(self.shares).any(axis=(0, 1)))

    def shares_at(self, templates: Sequence[int]) -> FloatArray:
        """Return the shares of the templates named: `[groups, I, len(templates)]`."""
        return self.at(self.shares, templates)

    def at(self, values: FloatArray, templates: Sequence[int]) -> FloatArray:
        """Return an array of this block with its last axis cut to the templates named."""
        place = {template: j for j, template in enumerate(self.templates)}
        return np.take(values, [place[template] for template in templates], axis=-1)

    def with_jobs(self, jobs: Sequence[str]) -> CrossedCells:
        """Return the block with only the jobs named, in the order of their names."""
        place = {job: i for i, job in enumerate(self.jobs)}
        kept = sorted(jobs)
        rows = [place[job] for job in kept]
        return CrossedCells(
            arm=self.arm,
            estimator=self.estimator,
            jobs=tuple(kept),
            templates=self.templates,
            shares=np.take(self.shares, rows, axis=-2),
            masses=np.take(self.masses, rows, axis=-2),
            coverage=np.take(self.coverage, rows, axis=-2),
        )


def cross(
    arms: Sequence[Arm],
    jobs: Sequence[str],
    templates: Sequence[int],
    estimators: Sequence[str | None],
    values: FloatArray,
) -> dict[Arm, CrossedCells]:
    """Lay a list of cells out as blocks, in the order in which their arms first appear.

    `values` is `[cells, 2 * groups + 1]`: masses, shares, coverage, NaN where a cell has none. Raises
    ValueError for cells that are no full product: a pair that is missing, or there twice.
    """
    members: dict[Arm, list[int]] = {}
    for i, arm in enumerate(arms):
        members.setdefault(arm, []).append(i)
    return {
        arm: _block(
            arm,
            [jobs[i] for i in cells],
            [templates[i] for i in cells],
            {estimator for i in cells if (estimator := estimators[i]) is not None},
            values[cells],
        )
        for arm, cells in members.items()
    }


def _block(
    arm: Arm, jobs: list[str], templates: list[int], estimators: set[str], values: FloatArray
) -> CrossedCells:
    if len(estimators) > 1:
        raise ValueError(f"{arm}: cells of several estimators, {sorted(estimators)}")
    job_names, template_ids = sorted(set(jobs)), sorted(set(templates))
    row = {job: i for i, job in enumerate(job_names)}
    column = {template: j for j, template in enumerate(template_ids)}
    place = np.array([row[job] * len(column) + column[t] for job, t in zip(jobs, templates, strict=True)])
    counts = np.bincount(place, minlength=len(row) * len(column))
    if (counts != 1).any():
        i, j = divmod(int(np.flatnonzero(counts != 1)[0]), len(column))
        raise ValueError(
            f"{arm}: {counts[counts != 1].size} pairs of template and job are not there exactly once, "
            f"the first is template {template_ids[j]} with {job_names[i]!r}"
        )
    flat = np.empty((values.shape[1], place.size))
    flat[:, place] = values.T
    table = flat.reshape(-1, len(row), len(column))
    groups = (values.shape[1] - 1) // 2
    return CrossedCells(
        arm=arm,
        estimator=next(iter(estimators), None),
        jobs=tuple(job_names),
        templates=tuple(template_ids),
        shares=table[groups : 2 * groups],
        masses=table[:groups],
        coverage=table[-1],
    )


# --- which templates enter -------------------------------------------------------------------------


def complete_in_all(blocks: Sequence[CrossedCells]) -> tuple[list[int], str | None]:
    """Find the templates that have a share for every job in every block, and why the others are left out.

    An incomplete template is left out whole: means over other jobs in other templates would mix what
    differs between jobs into what differs between templates (docs/methods.md#incomplete-templates).
    """
    common = [t for t in blocks[0].templates if all(t in block.templates for block in blocks)]
    whole = np.ones(len(common), dtype=np.bool_)
    for block in blocks:
        whole &= block.complete()[np.isin(block.templates, common)]
    out = [t for t, ok in zip(common, whole, strict=True) if not ok]
    several = len({block.templates for block in blocks}) > 1
    asked = f"only the {len(common)} templates that all arms have" if several else None
    return [t for t, ok in zip(common, whole, strict=True) if ok], joined(
        [asked, _left_out(blocks, out, len(common)) if out else None]
    )


def _left_out(blocks: Sequence[CrossedCells], out: Sequence[int], n_templates: int) -> str:
    failed = without_share = 0
    for block in blocks:
        unanswered = np.isnan(block.at(block.coverage, out))
        failed += int(unanswered.sum())
        without_share += int((np.isnan(block.shares_at(out)[0]) & ~unanswered).sum())
    parts = [f"{_cells(failed)} failed"] if failed else []
    if without_share:
        more = any(block.estimator == "sampling" for block in blocks)
        parts.append(f"{_cells(without_share)} without a share{' (more --draws may help)' if more else ''}")
    if len(out) == n_templates:
        return f"no template is complete for all jobs: {', '.join(parts)}"
    ids = f"template{'s' if len(out) > 1 else ''} {ranges(out)}"
    return f"{ids} of {n_templates} left out: {', '.join(parts)}"


def _cells(n: int) -> str:
    return f"{n} cell{'s' if n != 1 else ''}"


def ranges(ids: Sequence[int]) -> str:
    """Ascending ids as people write them: 1-3, 7."""
    starts = [i for i, (a, b) in enumerate(pairwise([ids[0] - 2, *ids])) if b != a + 1]
    ends = [*(i - 1 for i in starts[1:]), len(ids) - 1]
    return ", ".join(
        str(ids[i]) if i == j else f"{ids[i]}-{ids[j]}" for i, j in zip(starts, ends, strict=True)
    )


# --- groups of jobs --------------------------------------------------------------------------------


def rows_of_groups(jobs: Sequence[str], group_of: Mapping[str, str]) -> dict[str, list[int]]:
    """For every job group, in the order of `group_of`, the places of its jobs in `jobs`."""
    rows: dict[str, list[int]] = {group_of[job]: [] for job in group_of}
    for i, job in enumerate(jobs):
        rows[group_of[job]].append(i)
    return {group: found for group, found in rows.items() if found}


def group_pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    """Every pair of job groups as (a, b) for a − b, in order of appearance.

    The papers' pair has a direction of its own: female-dominated minus male-dominated, in whatever order
    a study lists them.
    """
    swapped = (MALE_DOMINATED, FEMALE_DOMINATED)
    return [(pair[1], pair[0]) if pair == swapped else pair for pair in combinations(names, 2)]
