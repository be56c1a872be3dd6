"""The cells of a study laid out as jobs × templates, one block for each arm that can be compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, compress
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from biaskit.common.wording import count, joined
from biaskit.stats.arrays import BoolArray, FloatArray

FEMALE_DOMINATED = "female-dominated"
MALE_DOMINATED = "male-dominated"
Scalar = TypeVar("Scalar", bound=np.generic)


class Arm(NamedTuple):
    """What the cells of one block have in common."""

    model: str
    bias_type: str
    debiasing_id: int
    context: str
    prompt_format: str


Z95 = 1.959963984540054
BOUNDED = "top-k"
"""The estimator whose cells have ends that hold the exact share: only the ends are tested."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Shares that were counted `[..., I, J]`, and 1/K of each, K the samples behind it (NaN without any)."""

    shares: FloatArray
    inverse: FloatArray

    def __getitem__(self, place: Any) -> Counted:
        """Return the part of both at a place."""
        return Counted(self.shares[place], self.inverse[place])

    @property
    def mean_and_n(self) -> tuple[FloatArray, FloatArray]:
        """The mean of all cells `[...]`, and as of how many samples it is: (cells with samples)²/Σ 1/K."""
        cells = (~np.isnan(self.inverse)).sum(axis=(-2, -1))
        total = np.nansum(self.inverse, axis=(-2, -1))
        return self.shares.mean(axis=(-2, -1)), np.square(cells) / np.where(cells, total, 1.0)

    @property
    def wilson(self) -> tuple[FloatArray, FloatArray]:
        """Wilson's 95 % interval of the mean; without any sample from 0 to 1."""
        m, n = self.mean_and_n
        middle, reach = n * m + Z95**2 / 2, Z95 * np.sqrt(n * m * (1 - m) + Z95**2 / 4)
        return (middle - reach) / (n + Z95**2), (middle + reach) / (n + Z95**2)

    @property
    def noise(self) -> FloatArray:
        """The variance that counting alone gives the mean, above 0 where all agree (Agresti and Caffo)."""
        m, n = self.mean_and_n
        p = (n * m + 1) / (n + 2)
        return p * (1 - p) / (n + 2)


@dataclass(frozen=True, slots=True)
class CellValues:
    """Shares `[..., I, J]`, or differences of shares, and the ends between which each exact number lies.

    Without ends they are points. `tested` says what inference rests on: with `top-k` on the ends, with
    `sampling` on the points, beside which the ends show what empty cells leave open.
    """

    point: FloatArray
    ends: tuple[FloatArray, FloatArray] | None = None  # low, high
    tested: Literal["point", "ends"] = "point"
    empty: BoolArray | None = None  # cells that hold a fitted point, in the shape of the points
    counted: tuple[Counted, ...] = ()  # of each arm whose shares were counted

    def __getitem__(self, place: Any) -> CellValues:
        """Return the part of each array at a place."""
        ends = None if self.ends is None else (self.ends[0][place], self.ends[1][place])
        empty = None if self.empty is None else self.empty[place]
        counted = tuple(arm[place] for arm in self.counted)
        return CellValues(self.point[place], ends, self.tested, empty, counted)

    def __sub__(self, other: CellValues) -> CellValues:
        """Subtract other cells: the least difference is the low end minus the other's high end."""
        point, counted = self.point - other.point, self.counted + other.counted
        if self.ends is None and other.ends is None:
            return CellValues(point, counted=counted)
        (low, high), (other_low, other_high) = self.low_and_high, other.low_and_high
        return CellValues(point, (low - other_high, high - other_low), *_tested([self, other]), counted)

    @property
    def noise(self) -> float:
        """The variance that counting alone gives the mean of all cells; 0 where nothing was counted."""
        return float(sum(arm.noise for arm in self.counted))

    @property
    def low_and_high(self) -> tuple[FloatArray, FloatArray]:
        """Both ends; for points, the points twice."""
        return self.ends or (self.point, self.point)


def mean_of(blocks: Sequence[CrossedCells], templates: Sequence[int]) -> list[CellValues]:
    """Average each number of arms cell by cell: points, lower ends and upper ends each for themselves."""
    means = []
    for arms in zip(*(block.numbers_at(templates) for block in blocks), strict=True):
        point, ends = np.mean([arm.point for arm in arms], axis=0), None
        counted: tuple[Counted, ...] = ()
        if all(arm.counted for arm in arms):
            counted = (Counted(point, np.mean([arm.counted[0].inverse for arm in arms], axis=0) / len(arms)),)
        if any(arm.ends is not None for arm in arms):
            low, high = np.mean([arm.low_and_high for arm in arms], axis=0)
            ends = low, high
        means.append(CellValues(point, ends, *_tested(arms), counted))
    return means


def part_of_two(first: CellValues, second: CellValues) -> CellValues:
    """Give the first share `[I, J]` as a part of both: of *she* in *she* and *he*; empty where both are 0.

    Reference: methods/representation#workforce-slope, #empty-cells.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        part = first.point / (first.point + second.point)
        nothing = np.isnan(part) & ~np.isnan(first.point)
        point = np.clip(additive_fit(part, nothing), 0.0, 1.0)
        counted: tuple[Counted, ...] = ()
        for a, b in zip(first.counted, second.counted, strict=True):
            # K times both shares are the samples that say either group.
            inverse = np.where(nothing, np.nan, a.inverse / (a.shares + b.shares))
            counted += (Counted(point, inverse),)
        if first.ends is None and second.ends is None and not nothing.any():
            return CellValues(point, counted=counted)
        (low, high), (other_low, other_high) = first.low_and_high, second.low_and_high
        ends = np.nan_to_num(low / (low + other_high)), np.nan_to_num(high / (high + other_low), nan=1.0)
    tested, empty = _tested([first, second])
    return CellValues(point, ends, tested, nothing if empty is None else nothing | empty, counted)


def _tested(arms: Sequence[CellValues]) -> tuple[Literal["point", "ends"], BoolArray | None]:
    """Say what inference about several arms rests on, and which cells are empty in any of them."""
    masks = [arm.empty for arm in arms if arm.empty is not None]
    empty = np.logical_or.reduce(masks) if masks else None
    return "ends" if any(arm.tested == "ends" for arm in arms) else "point", empty


def empty_note(n_empty: int, n_prompts: int, *, tested: str = "point") -> str:
    """Say in a row how many of its cells are empty."""
    if tested == "ends":
        return f"no target word listed in {n_empty} of {n_prompts} prompts: their bounds are 0 and 1"
    return f"no sample matched in {n_empty} of {n_prompts} prompts: fitted from the others"


@dataclass(frozen=True, slots=True)
class CrossedCells:
    """All cells of one arm; a number that a cell does not have is NaN here and nowhere else.

    Jobs and templates are in the order of their names and ids, not of the study: the sums over them are
    then the same to the last bit whatever order the cells came in.
    """

    arm: Arm
    estimator: str | None
    jobs: tuple[str, ...]  # I names
    templates: tuple[int, ...]  # J ids
    shares: FloatArray  # [groups, I, J]; an empty cell's is fitted
    masses: FloatArray  # [groups, I, J]
    coverage: FloatArray  # [I, J]
    empty: BoolArray  # [I, J]: answered, but nothing was listed or no sample matched
    ends: tuple[FloatArray, FloatArray] | None = None  # low and high end of each share
    inverse: FloatArray | None = None  # [I, J]: 1/K of shares that were counted, K the samples of each
    binary: tuple[int, int] | None = None  # places of the two groups that are held against each other

    def complete(self) -> BoolArray:
        """Tell which templates have a share, or are known to be empty, in every job: `[J]`."""
        missing = np.isnan(self.shares).any(axis=0) & ~self.empty
        return ~np.asarray(missing.any(axis=0))

    def shares_at(self, templates: Sequence[int]) -> CellValues:
        """Return the shares of the templates named: `[groups, I, len(templates)]`."""
        point, counted = self.at(self.shares, templates), tuple[Counted, ...]()
        if self.inverse is not None:
            counted = (Counted(point, np.broadcast_to(self.at(self.inverse, templates), point.shape)),)
        if self.ends is None:
            return CellValues(point, counted=counted)
        low, high = (self.at(end, templates) for end in self.ends)
        empty = np.broadcast_to(self.at(self.empty, templates), point.shape)
        tested: Literal["point", "ends"] = "ends" if self.estimator == BOUNDED else "point"
        return CellValues(point, (low, high), tested, empty, counted)

    def numbers_at(self, templates: Sequence[int]) -> list[CellValues]:
        """List each share `[I, len(templates)]` and, last, the first group's part of the two.

        Shares move with what belongs to neither group, such as *they*; the part of two does not.
        """
        shares = self.shares_at(templates)
        numbers = [shares[k] for k in range(len(self.shares))]
        if self.binary is not None:
            first, second = self.binary
            numbers.append(part_of_two(numbers[first], numbers[second]))
        return numbers

    def at(self, values: NDArray[Scalar], templates: Sequence[int]) -> NDArray[Scalar]:
        """Return an array of this block with its last axis cut to the templates named."""
        place = {template: j for j, template in enumerate(self.templates)}
        return np.take(values, [place[template] for template in templates], axis=-1)

    def by_frame(self, frame_of: Mapping[int, str]) -> CrossedCells:
        """Average the templates of each frame; a template without a frame stands by itself.

        The id of a frame is that of its first template. A number that one of its templates lacks, it lacks.
        """
        members = frame_places(self.templates, frame_of)
        if len(members) == len(self.templates):
            return self

        def means(values: FloatArray) -> FloatArray:
            return np.stack([values[..., places].mean(axis=-1) for places in members.values()], axis=-1)

        empty = np.stack([self.empty[:, places].any(axis=-1) for places in members.values()], axis=-1)
        averaged = self._with(means, templates=tuple(members))
        inverse = averaged.inverse
        if inverse is not None:  # of a mean of m shares Σ 1/K / m²
            inverse = inverse / list(map(len, members.values()))
        return replace(averaged, empty=empty & ~np.isnan(averaged.coverage), inverse=inverse)

    def _with(self, change: Callable[[FloatArray], FloatArray], **places: Any) -> CrossedCells:
        """Copy the block with every array of numbers changed alike, and other jobs or templates."""
        ends = None if self.ends is None else (change(self.ends[0]), change(self.ends[1]))
        shares, masses, coverage = change(self.shares), change(self.masses), change(self.coverage)
        inverse = None if self.inverse is None else change(self.inverse)
        return replace(
            self, **places, shares=shares, masses=masses, coverage=coverage, ends=ends, inverse=inverse
        )

    def cut(self, jobs: Sequence[str], templates: Sequence[int]) -> CrossedCells:
        """Return the block with only the jobs and templates named, in the order of names and ids."""
        names, ids = sorted(jobs), sorted(templates)
        if (tuple(names), tuple(ids)) == (self.jobs, self.templates):
            return self
        place = {job: i for i, job in enumerate(self.jobs)}
        rows = [place[job] for job in names]

        def cut(values: NDArray[Scalar]) -> NDArray[Scalar]:
            return np.take(self.at(values, ids), rows, axis=-2)

        return replace(self._with(cut, jobs=tuple(names), templates=tuple(ids)), empty=cut(self.empty))


Label = tuple[Arm, str, int, str | None]
"""Of a cell: arm, job, template and estimator."""


def cross(
    labels: Sequence[Label],
    values: FloatArray,
    ends: FloatArray | None = None,
    *,
    binary: tuple[int, int] | None = None,
    gaps: bool = False,
) -> dict[Arm, CrossedCells]:
    """Lay a list of cells out as blocks, in the order in which their arms first appear.

    `values` is `[cells, 2 * groups + 1]`: masses, shares, coverage, NaN where a cell has none; `ends`
    `[cells, 2 * groups]`: lower, then upper ends of the shares where the estimator bounds them. Raises
    ValueError for cells that are no full product: a pair that is missing (unless there may be `gaps`, which
    are cells without numbers), or there twice.
    """
    members: dict[Arm, list[int]] = {}
    for i, (arm, *_) in enumerate(labels):
        members.setdefault(arm, []).append(i)
    groups = (values.shape[1] - 1) // 2
    if ends is None:
        ends = np.full((len(labels), 2 * groups), np.nan)
    blocks = {}
    for arm, cells in members.items():
        _, jobs, templates, estimators = zip(*(labels[cell] for cell in cells), strict=True)
        used = sorted(filter(None, {*estimators}))
        if len(used) > 1:
            raise ValueError(f"{arm}: prompts with several estimators, {used}")
        numbers = np.concatenate([values[cells], ends[cells]], axis=1)
        block = _block(arm, used[0] if used else None, jobs, templates, numbers, gaps=gaps)
        blocks[arm] = replace(block, binary=binary)
    return blocks


def _block(
    arm: Arm,
    estimator: str | None,
    jobs: Sequence[str],
    templates: Sequence[int],
    values: FloatArray,
    *,
    gaps: bool,
) -> CrossedCells:
    job_names, template_ids = sorted(set(jobs)), sorted(set(templates))
    row = {job: i for i, job in enumerate(job_names)}
    column = {template: j for j, template in enumerate(template_ids)}
    place = np.array([row[job] * len(column) + column[t] for job, t in zip(jobs, templates, strict=True)])
    counts = np.bincount(place, minlength=len(row) * len(column))
    wrong = np.flatnonzero(counts > 1 if gaps else counts != 1)
    if wrong.size:
        i, j = divmod(int(wrong[0]), len(column))
        raise ValueError(
            f"{arm}: {wrong.size} pairs of template and job do not occur exactly once, "
            f"the first is template {template_ids[j]} with {job_names[i]!r}"
        )
    flat = np.full((values.shape[1], counts.size), np.nan)
    flat[:, place] = values.T
    table = flat.reshape(-1, len(row), len(column))
    groups = len(table) // 4  # masses, shares, coverage, and two ends of each share
    masses, shares, coverage = table[:groups], table[groups : 2 * groups], table[2 * groups]
    empty, ends, inverse = np.zeros(coverage.shape, dtype=np.bool_), None, None
    if gaps:  # answers by outcome: their number is in the place of coverage
        inverse = 1.0 / coverage
    elif estimator == "sampling":
        inverse = inverse_of_wilson(shares, *np.split(table[2 * groups + 1 :], 2))
    if estimator in (BOUNDED, "sampling"):
        # Where coverage goes with the share, so does which cells are empty: leaving them out biases the mean.
        empty = np.isnan(shares[0]) & ~np.isnan(coverage)
        shares = additive_fit(shares, empty)
        if estimator == BOUNDED or empty.any():
            low, high = np.split(table[2 * groups + 1 :], 2) if estimator == BOUNDED else (shares, shares)
            ends = (np.where(empty, 0.0, low), np.where(empty, 1.0, high))
    jobs_and_templates = tuple(job_names), tuple(template_ids)
    return CrossedCells(arm, estimator, *jobs_and_templates, shares, masses, coverage, empty, ends, inverse)


def inverse_of_wilson(shares: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Read from Wilson's 95 % intervals `[groups, I, J]` how many samples they are of: 1/K `[I, J]`.

    Formula: low · high = p²/(1 + z²/K), of the group with the largest share p; NaN where a cell has no share.
    """
    largest = np.argmax(np.nan_to_num(shares), axis=0)[None]
    p, low, high = (np.take_along_axis(x, largest, axis=0)[0] for x in (shares, low, high))
    inverse: FloatArray = (p**2 / (low * high) - 1.0) / Z95**2
    return inverse


def additive_fit(values: FloatArray, empty: BoolArray) -> FloatArray:
    """Fill empty cells by the two-way additive least-squares fit of the others.

    Formula: x_ij = m + a_i + b_j fitted to the cells that have a value, m their mean, with the least effects
        where cells leave them open; an empty cell gets its fitted one, cut at 0, and then brought back to the
        sum that it had over the groups: 1, as every cell's, so that it lies in [0, 1].
    Shares are `[groups, I, J]`, or one group's `[I, J]`, which are not cut. A template that is empty in every
    job gets what the others give on average, so that it moves no mean; a job that is empty in every template
    stays NaN: nothing is known of it.
    Reference: methods/averages#empty-cells; checked against statsmodels' `ols("x ~ C(job) + C(template)")`.
    """
    if not np.any(empty):
        return values
    known = ~np.asarray(np.isnan(values).any(axis=tuple(range(values.ndim - 2))))
    n_jobs, counts = known.shape[0], known.astype(np.float64)
    mean = values[..., known].mean(axis=-1)[..., None, None] if known.any() else np.zeros(())
    observed = np.where(known, values - mean, 0.0)
    # The normal equations of the dummies of jobs and templates; their solution is unique up to a shift.
    normal = np.block([[np.diag(counts.sum(axis=1)), counts], [counts.T, np.diag(counts.sum(axis=0))]])
    sums = np.concatenate([observed.sum(axis=-1), observed.sum(axis=-2)], axis=-1)
    effects = np.linalg.lstsq(normal, sums.reshape(-1, sums.shape[-1]).T, rcond=None)[0].T
    of_jobs, of_templates = np.split(effects.reshape(sums.shape), [n_jobs], axis=-1)
    seen = known.any(axis=0)
    shift = of_templates[..., seen].mean(axis=-1, keepdims=True) if seen.any() else np.zeros(())
    of_templates = np.where(seen, of_templates - shift, 0.0)
    of_jobs = np.where(known.any(axis=1), of_jobs + shift, np.nan)
    fitted = mean + of_jobs[..., :, None] + of_templates[..., None, :]
    if values.ndim > 2:  # a sum of effects may lie outside of what a share can be
        total, fitted = fitted.sum(axis=0), np.maximum(fitted, 0.0)
        fitted = np.minimum(fitted * (total / fitted.sum(axis=0)), 1.0)
    return np.where(empty, fitted, values)


def frame_places(templates: Sequence[int], frame_of: Mapping[int, str]) -> dict[int, list[int]]:
    """Map the first template of each frame to the places of all templates of that frame, in order."""
    members: dict[object, list[int]] = {}
    for place, template in enumerate(templates):
        members.setdefault(frame_of.get(template, template), []).append(place)
    return {templates[places[0]]: places for places in members.values()}


def complete_in_all(blocks: Sequence[CrossedCells]) -> tuple[list[int], str | None]:
    """Find the templates that are complete for every job in every block, and why the others are left out.

    An incomplete template is left out whole: means over other jobs in other templates would mix what
    differs between jobs into what differs between templates (methods/averages#incomplete-templates).
    """
    common, complete = set(blocks[0].templates), set(blocks[0].templates)
    for block in blocks:
        common.intersection_update(block.templates)
        complete.intersection_update(compress(block.templates, block.complete()))
    notes = []
    if any(block.templates != blocks[0].templates for block in blocks):
        notes.append(f"only the {len(common)} templates common to all")
    if out := sorted(common - complete):
        notes.append(_left_out(blocks, out, len(common)))
    return sorted(complete), joined(notes)


def _left_out(blocks: Sequence[CrossedCells], out: Sequence[int], n_templates: int) -> str:
    failed = without_share = 0
    for block in blocks:
        unanswered = np.isnan(block.at(block.coverage, out))
        failed += int(unanswered.sum())
        no_share = np.isnan(block.at(block.shares, out)[0]) & ~block.at(block.empty, out)
        without_share += int((no_share & ~unanswered).sum())
    parts = []
    if failed:
        parts.append(f"{count(failed, 'prompt')} failed")
    if without_share:
        parts.append(f"{count(without_share, 'prompt')} without a share")
    if len(out) == n_templates:
        return f"no template is complete for all jobs: {', '.join(parts)}"
    ids = f"template{'s' if len(out) > 1 else ''} {ranges(out)}"
    return f"{ids} of {n_templates} left out: {', '.join(parts)}"


def ranges(ids: Sequence[int]) -> str:
    """Write ascending ids as people do: 1-3, 7."""
    runs: list[list[int]] = []  # first and last of each
    for i in ids:
        if runs and i == runs[-1][1] + 1:
            runs[-1][1] = i
        else:
            runs.append([i, i])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def rows_of_groups(jobs: Sequence[str], group_of: Mapping[str, str]) -> dict[str, list[int]]:
    """Find, for every job group in the order of `group_of`, the places of its jobs in `jobs`."""
    rows: dict[str, list[int]] = {group: [] for group in group_of.values()}
    for i, job in enumerate(jobs):
        rows[group_of[job]].append(i)
    return {group: places for group, places in rows.items() if places}


def group_pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    """List every pair of job groups as (a, b) for a − b, in order of appearance.

    The papers' pair is always female-dominated minus male-dominated, in whatever order a study lists them.
    """
    swapped = (MALE_DOMINATED, FEMALE_DOMINATED)
    return [(pair[1], pair[0]) if pair == swapped else pair for pair in combinations(names, 2)]
