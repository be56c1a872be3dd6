"""From two arrays of shares to the rows of tests.csv that compare them (methods/tests#contrasts)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter

import numpy as np

from biaskit.common.wording import ROUNDING, joined
from biaskit.stats.arms import CellValues, empty_note
from biaskit.stats.arrays import BoolArray, FloatArray
from biaskit.stats.contrast import IDENTITY, JUDGED, Contrast, Scope
from biaskit.stats.correlation import level_test, level_weights, rank_correlation, slope_test, spearman
from biaskit.stats.crossed import (
    CONDITIONAL_ON_TEMPLATES,
    Spread,
    crossed_test,
    not_below,
    spread_of_difference,
    spread_of_mean,
)
from biaskit.stats.multiplicity import holm
from biaskit.stats.proportions import at_an_end
from biaskit.stats.resampling import generator
from biaskit.stats.swaps import swap_test
from biaskit.stats.verdict import Rule, with_verdicts
from biaskit.stats.welch import Statistic, mean_distance, paired, welch, wilcoxon

MIN_WORKFORCE_ITEMS = 10
PARITY = 0.5
FEW_WORKFORCE_ITEMS = f"{{}} items with a workforce share, at least {MIN_WORKFORCE_ITEMS} are needed"
OF_WORKFORCE = ("slope", "level", "distance", "spearman")

LEAST_UNITS = 4
"""Over fewer units a t interval of a difference of shares reaches beyond all that is possible."""
FEW_UNITS = f"too few {{}}s: {{}}, at least {LEAST_UNITS} are needed"
NO_TEMPLATE = "no template"
ONE_SIDE = "all workforce shares are on one side of 50 %"
NO_SHARE = "a job has no share in any template"
AT_AN_END = "no equivalence among shares under 1 % or over 99 %"
BOUNDS_ALONE = "a point between bounds is not tested"
OF_DIFFERENCES = ("group_gap", "debiasing_effect")
"""Quantities that are differences of shares themselves: two of them may lie 2 apart."""
MOST_EMPTY = 0.1
"""Above this part of empty cells in a group there is no verdict (methods/averages#empty-cells)."""


def between_groups(
    a: CellValues, b: CellValues, *, scope: Scope, margins: Mapping[str, float], note: str | None = None
) -> list[Contrast]:
    """Contrast the mean shares of two groups of jobs, a − b: rows welch and crossed.

    a is `[I_a, J]`, b `[I_b, J]` on the same templates; `note` says what was left out. Without a template
    both rows have no numbers, and the note as reason.
    """
    rows = _Rows(scope, (len(a.point), len(b.point)), margins, note)
    if empty := rows.without_shares(a, b, "welch", "crossed"):
        return empty
    if "ends" in (a.tested, b.tested):
        (low_a, high_a), (low_b, high_b) = a.low_and_high, b.low_and_high
        spreads = [spread_of_difference(low_a, high_b), spread_of_difference(high_a, low_b)]
    else:
        spreads = [spread_of_difference(a.point, b.point)]
    return rows.pair("welch", (a, b), spreads)


def within_jobs(
    a: CellValues, b: CellValues, *, scope: Scope, margins: Mapping[str, float], note: str | None = None
) -> list[Contrast]:
    """Contrast the same jobs and templates in two arms, a − b: rows paired and crossed.

    a and b are `[I, J]`, cell by cell the same.
    """
    rows = _Rows(scope, (len(a.point), len(b.point)), margins, note)
    if empty := rows.without_shares(a, b, "paired", "crossed"):
        return empty
    d = a - b
    spreads = [spread_of_mean(x) for x in (d.low_and_high if d.tested == "ends" else (d.point,))]
    return rows.pair("paired", (a, b), spreads)


def estimate_only(a: CellValues, b: CellValues, *, scope: Scope, note: str | None = None) -> list[Contrast]:
    """Make one row of a − b that is never tested; a `[I, J_a]` and b `[I, J_b]` share no template."""
    rows = _Rows(scope, (len(a.point), len(b.point)), {}, note)
    if empty := rows.without_shares(a, b, "estimate"):
        return empty
    return [rows.row("estimate", Statistic(_mean(a.point) - _mean(b.point)), bounds=_bounds(a, b))]


def _mean(values: FloatArray) -> float:
    return float(values.mean())


def _bounds(a: CellValues, b: CellValues) -> tuple[float, float] | None:
    """Find the bounds of the exact difference of two means; None where points are tested.

    The interval then holds no bounds, and what empty cells leave open stands beside the shares alone.
    """
    if "ends" not in (a.tested, b.tested):
        return None
    (low_a, high_a), (low_b, high_b) = a.low_and_high, b.low_and_high
    return _mean(low_a) - _mean(high_b), _mean(high_a) - _mean(low_b)


def against_workforce(
    shares: CellValues,
    workforce: FloatArray,
    *,
    scope: Scope,
    margins: Mapping[str, float],
    seed: int,
    note: str | None = None,
) -> list[Contrast]:
    """Hold jobs' mean shares `[I, J]` against workforce shares `[I]`: slope, level, distance, spearman.

    NaN is a workforce share that is not known. With fewer than ten known, the rows have no numbers, and how
    many there are as reason.
    """
    has_both = ~np.isnan(workforce) & ~np.asarray(np.isnan(shares.point).any(axis=1))
    x = workforce[has_both]
    rows = _Rows(scope, (int(x.size), None), margins, note)
    if x.size < MIN_WORKFORCE_ITEMS:
        return rows.empty(*OF_WORKFORCE, reason=FEW_WORKFORCE_ITEMS.format(x.size))
    if not shares.point.size:
        return rows.empty(*OF_WORKFORCE)
    y = shares[has_both]
    made = [rows.slope(x, y), rows.level(x, y), rows.distance(x, y)]
    means, speaks = y.point.mean(axis=1), not _too_few([y])
    if y.tested == "ends":
        rho = float(spearman(x, means))
        ranks = Statistic(None if np.isnan(rho) else rho, reason=BOUNDS_ALONE)
    else:
        ranks = rank_correlation(x, means, rng=generator(seed, "tests", [*_identity(scope), "spearman"]))
    if not speaks:
        ranks = replace(ranks, p_value=None)
    return [*made, rows.row("spearman", ranks, speaks=speaks)]


def _too_few(arms: Sequence[CellValues]) -> bool:
    """Tell whether too many cells are empty for points to be judged; ends hold whatever is empty."""
    return any(
        arm.tested == "point" and arm.empty is not None and arm.empty.mean() > MOST_EMPTY for arm in arms
    )


def between(estimate: float | None, least: Statistic, most: Statistic) -> Statistic:
    """Test a number that lies between two ends (methods/tests#inference-under-bounds).

    The interval goes from the low end of the lower end's interval to the high end of the upper end's; the
    p-value is that of the end nearer to 0, and 1 where the bounds hold 0.
    """
    if least.ci95 is None or least.ci90 is None or most.ci95 is None or most.ci90 is None:
        return Statistic(estimate, reason=least.reason or most.reason)
    if (least.estimate or 0.0) > 0:
        test = least
    elif (most.estimate or 0.0) < 0:
        test = most
    else:
        test = Statistic(dof=least.dof and most.dof and min(least.dof, most.dof), p_value=1.0)
    if least.p_value is None or most.p_value is None:
        test = replace(test, p_value=None)
    ci95, ci90 = (least.ci95[0], most.ci95[1]), (least.ci90[0], most.ci90[1])
    return replace(test, estimate=estimate, effect_size=None, ci95=ci95, ci90=ci90, reason=least.reason)


def within_units(
    a: FloatArray,
    b: FloatArray,
    *,
    scope: Scope,
    kinds: Sequence[str],
    margins: Mapping[str, float],
    seed: int = 1,
    note: str | None = None,
    ends: tuple[FloatArray, FloatArray] | None = None,
) -> list[Contrast]:
    """Contrast one number of the same units in two arms, a − b: a `[n]`, b `[n]`; a row of each kind named.

    welch takes the arms as independent; the others pair them unit by unit. Without a unit the rows have no
    numbers, and the note and what is missing as reason; slope is of a on b. `ends` `[n]`: what a − b lies
    between where units are not known in full; so do the paired difference and the slope. Below
    `LEAST_UNITS` means of shares have an estimate and a reason alone.
    """
    rows = _Rows(scope, (int(a.size), int(b.size)), margins, note)
    if not a.size:
        return rows.empty(*kinds, reason=f"no {scope.unit} has both numbers")
    of_shares = scope.quantity.endswith("share") or scope.quantity in ("probe_gap", "represented_gap")

    def test(kind: str) -> Statistic:
        if kind == "permutation":
            return swap_test(a, b, rng=generator(seed, "tests", [*_identity(scope), kind]))
        if kind == "slope":
            few = Statistic(reason=FEW_WORKFORCE_ITEMS.format(a.size))
            return slope_test(b, a) if a.size >= MIN_WORKFORCE_ITEMS else few
        return _TWO_ARMS[kind](a, b)

    def enough(test: Statistic) -> Statistic:
        if of_shares and test.ci95 is not None and a.size < LEAST_UNITS:
            return Statistic(test.estimate, reason=FEW_UNITS.format(scope.unit, a.size))
        return test

    made = {kind: rows.row(kind, enough(test(kind))) for kind in kinds}
    if ends is None:
        return [*made.values()]
    low, high = ends
    if "paired" in kinds:
        bounds = float(low.mean()), float(high.mean())
        of_means = test("paired")
        if bounds[0] != bounds[1]:
            least, most = (paired(end, np.zeros_like(end)) for end in ends)
            of_means = between(float((a - b).mean()), least, most)
        made["paired"] = rows.row("paired", enough(of_means), bounds=bounds)
    if "slope" in kinds and a.size >= MIN_WORKFORCE_ITEMS:
        adds = b >= b.mean()
        of_ends = (slope_test(b, np.where(adds, *pair) + b) for pair in ((low, high), (high, low)))
        made["slope"] = rows._of_ends("slope", test("slope").estimate, *of_ends)
    return [*made.values()]


def one_row(
    kind: str, result: Statistic, *, scope: Scope, n: int, margins: Mapping[str, float], note: str | None
) -> Contrast:
    """Make the row of a test over `n` units that was computed elsewhere; without a p-value no verdict."""
    return _Rows(scope, (n, None), margins, note).row(kind, result, speaks=result.p_value is not None)


def adjust(rows: Sequence[Contrast], rule: Rule = Rule()) -> list[Contrast]:  # noqa: B008
    """Fill p_adjusted (Holm's within each `family`) and the verdict; all rows of a tests.csv are one page.

    Of two groups' shares one is one minus the other: their rows are one test, and count once.
    """
    first: dict[tuple[object, ...], int] = {}  # a comparison without its gender → its first row
    places: list[int] = []  # of the row whose p-value counts
    counted: list[float | None] = []
    for i, row in enumerate(rows):
        place = first.setdefault(tuple(row[name] for name in IDENTITY if name != "gender"), i)
        values = row.estimate, rows[place].estimate
        mirrored = place != i and None not in values and abs(sum(values)) <= ROUNDING
        places.append(place if mirrored else i)
        counted.append(None if mirrored else row.p_value)
    adjusted = holm(list(map(attrgetter("family"), rows)), counted)
    judged = with_verdicts(rows, rule=rule)[0]
    return [
        replace(row, p_adjusted=adjusted[place], verdict=own.verdict)
        for row, own, place in zip(rows, judged, places, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Rows:
    """What the rows of one contrast have in common."""

    scope: Scope
    n: tuple[int, int | None]
    margins: Mapping[str, float]
    note: str | None

    def without_shares(self, a: CellValues, b: CellValues, *kinds: str) -> list[Contrast]:
        """Make empty rows where no template is left, or a job is empty in all of them; else no row."""
        if not a.point.size or not b.point.size:
            return self.empty(*kinds)
        if np.isnan(a.point).any() or np.isnan(b.point).any():
            return self.empty(*kinds, reason=NO_SHARE, bounds=_bounds(a, b))
        return []

    def empty(
        self, *kinds: str, reason: str = NO_TEMPLATE, bounds: tuple[float, float] | None = None
    ) -> list[Contrast]:
        """Make a row of each kind without numbers other than bounds."""
        why = None if self.note and reason == NO_TEMPLATE else reason
        return [self.row(kind, Statistic(None, reason=why), bounds=bounds) for kind in kinds]

    def pair(
        self, kind: str, arms: tuple[CellValues, CellValues], spreads: Sequence[Spread]
    ) -> list[Contrast]:
        """Make the row of the test whose unit is the job, and the crossed one; with bounds and empty cells.

        `spreads` are of the points, or of the least and the greatest difference where these are tested.
        """
        bounds, few = _bounds(*arms), _too_few(arms)
        masks = [(arm.empty, arm.tested) for arm in arms if arm.empty is not None and arm.empty.any()]
        notes = [empty_note(int(empty.sum()), empty.size, tested=tested) for empty, tested in masks]
        rows = self if not notes else replace(self, note=joined([self.note, *notes]))
        of_jobs = _TWO_ARMS[kind](*(arm.point.mean(axis=1) for arm in arms))
        if len(spreads) > 1:
            of_jobs = Statistic(of_jobs.estimate, reason=BOUNDS_ALONE)
        estimate = _mean(arms[0].point) - _mean(arms[1].point)
        ends = bounds if bounds is not None and len(spreads) > 1 else (estimate,)
        noise = sum(arm.noise for arm in arms)
        limit, tests = 2.0 if self.scope.whole in OF_DIFFERENCES else 1.0, []
        for end, spread in zip(ends, spreads, strict=True):
            tests.append(crossed_test(end, not_below(spread, noise), limit=limit))
        crossed = tests[0] if len(tests) == 1 else between(estimate, *tests)
        if few:
            of_jobs, crossed = (replace(x, p_value=None, statistic=None) for x in (of_jobs, crossed))
        speaks = not few and not any(spread.conditional for spread in spreads)
        of_shares = self.scope.whole in ("share", "outcome_share") and estimate != 0
        if of_shares and at_an_end(arms[0].point, arms[1].point):
            rows = replace(rows, note=joined([rows.note, AT_AN_END]), margins={})
        return [
            rows.row(kind, of_jobs, bounds=bounds),
            rows.row("crossed", crossed, bounds=bounds, speaks=speaks),
        ]

    def slope(self, x: FloatArray, y: CellValues) -> Contrast:
        """Make the row of the slope of jobs' means on x `[I]`; between bounds where the cells have ends."""
        adds = x >= x.mean()
        speaks = not _too_few([y]) and y.point.shape[1] not in CONDITIONAL_ON_TEMPLATES
        return self._of_line("slope", y, adds, lambda cells: slope_test(x, cells), speaks=speaks)

    def level(self, x: FloatArray, y: CellValues) -> Contrast:
        """Make the row of the line's height where x is one half, less one half: level apart from slope."""
        if not x.min() <= PARITY <= x.max():
            return self.empty("level", reason=ONE_SIDE)[0]
        adds = level_weights(x, PARITY) >= 0 if np.ptp(x) else x > PARITY  # equal shares have no line
        return self._of_line("level", y, adds, lambda cells: level_test(x, cells, PARITY))

    def _of_line(
        self,
        kind: str,
        y: CellValues,
        adds: BoolArray,
        test: Callable[[FloatArray], Statistic],
        *,
        speaks: bool = True,
    ) -> Contrast:
        """Make the row of a number linear in the cells; `adds`: the jobs whose larger shares raise it."""
        result = test(y.point)
        if y.tested == "point":
            return self.row(kind, replace(result, p_value=None) if _too_few([y]) else result, speaks=speaks)
        low, high = y.low_and_high
        least, most = test(np.where(adds[:, None], low, high)), test(np.where(adds[:, None], high, low))
        return self._of_ends(kind, result.estimate, least, most)

    def distance(self, x: FloatArray, y: CellValues) -> Contrast:
        """Make the row of the mean distance of jobs' means from x."""
        result = mean_distance(y.point.mean(axis=1), x)
        if y.tested == "point":
            return self.row("distance", result)
        low, high = (end.mean(axis=1) for end in y.low_and_high)
        nearest, farthest = np.clip(x, low, high), np.where(high - x > x - low, high, low)
        least, most = mean_distance(nearest, x), mean_distance(farthest, x)
        return self._of_ends("distance", result.estimate, least, most)

    def _of_ends(self, kind: str, estimate: float | None, least: Statistic, most: Statistic) -> Contrast:
        """Make the row of a number between the tests of two ends."""
        low, high = least.estimate, most.estimate
        bounds = None if low is None or high is None else (low, high)
        return self.row(kind, between(estimate, least, most), bounds=bounds)

    def row(
        self, kind: str, result: Statistic, *, bounds: tuple[float, float] | None = None, speaks: bool = True
    ) -> Contrast:
        """Make a row of tests.csv; what a kind of test lacks is empty. `speaks`: it may have a verdict."""
        scope = self.scope
        margin = self.margins.get(scope.whole) if (scope.measurement, kind) in JUDGED else None
        equivalent = None
        if margin is not None and result.ci90 is not None and speaks:
            equivalent = -margin <= result.ci90[0] and result.ci90[1] <= margin
        numbers = {name: getattr(result, name) for name in _NUMBERS}
        numbers["n_a"], numbers["n_b"] = self.n
        numbers["ci_low"], numbers["ci_high"] = result.ci95 or (None, None)
        numbers["ci90_low"], numbers["ci90_high"] = result.ci90 or (None, None)
        numbers["bound_low"], numbers["bound_high"] = bounds or (None, None)
        reason = joined([self.note, result.reason])
        stated = {name: getattr(scope, name) for name in _SCOPE}
        return Contrast(**stated, kind=kind, margin=margin, equivalent=equivalent, reason=reason, **numbers)


_SCOPE = [column.name for column in fields(Scope)]
_TWO_ARMS: Mapping[str, Callable[[FloatArray, FloatArray], Statistic]] = {
    "welch": welch,
    "paired": paired,
    "wilcoxon": wilcoxon,
    "distance": mean_distance,
}
_NUMBERS = ("estimate", "effect_size", "statistic", "dof", "p_value")


def _identity(scope: Scope) -> list[str | None]:
    """List the key columns of a row except its kind: they seed its random numbers."""
    columns = ("measurement", "contrast", "quantity", *IDENTITY[1:])
    return [getattr(scope, name) for name in columns]
