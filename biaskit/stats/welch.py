"""Welch's and the paired t-test and Wilcoxon's, with what a reader needs beside p."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from biaskit.stats.arrays import FloatArray

NO_SPREAD = 1e-12
"""Values that differ by less than this part of their size differ by rounding: zero variance."""


@dataclass(frozen=True, slots=True)
class Statistic:
    """A number with its test and intervals; what is not defined is None, and the reason says why."""

    estimate: float | None = None
    effect_size: float | None = None
    statistic: float | None = None
    dof: float | None = None
    p_value: float | None = None
    ci95: tuple[float, float] | None = None
    ci90: tuple[float, float] | None = None
    reason: str | None = None


def welch(a: FloatArray, b: FloatArray) -> Statistic:
    """Test the means of two groups of units by Welch's t-test, their variances not taken as equal.

    Formula: t = (ā − b̄) / √(s_a²/n_a + s_b²/n_b), dof by Welch and Satterthwaite; two-sided p;
        Hedges' g = (ā − b̄) / s_pooled · (1 − 3/(4(n_a + n_b − 2) − 1)).
    One value per unit (a job's mean share), never per cell; numbers are positive when a is larger. Fewer than
    two units on a side, or no variance on both: only the estimate, with the reason.
    Reference: methods/tests#welch-and-paired; statsmodels' `CompareMeans`.
    """
    estimate = float(a.mean() - b.mean())
    if min(a.size, b.size) < 2:
        return Statistic(estimate, reason="fewer than two units in a group: no test")
    if not varies(a, a) and not varies(b, b):
        return Statistic(estimate, reason="zero variance: no test")
    from statsmodels.stats.weightstats import CompareMeans

    compared = CompareMeans.from_data(a, b)
    degrees = a.size + b.size - 2
    pooled = math.sqrt(((a.size - 1) * a.var(ddof=1) + (b.size - 1) * b.var(ddof=1)) / degrees)
    hedges = estimate / pooled * (1 - 3 / (4 * degrees - 1))
    intervals = [compared.tconfint_diff(alpha, usevar="unequal") for alpha in (0.05, 0.10)]
    return _tested(estimate, hedges, compared.ttest_ind(usevar="unequal"), intervals)


def paired(a: FloatArray, b: FloatArray) -> Statistic:
    """Test the same units in two arms `[n]` by the paired t-test.

    Formula: d = a − b; t = d̄ / (s_d/√n), dof n − 1; two-sided p; d_z = d̄ / s_d, uncorrected.
    Fewer than two units, or differences without variance: only the estimate, with the reason.
    Reference: methods/tests#welch-and-paired; statsmodels' `DescrStatsW`.
    """
    difference = a - b
    estimate = float(difference.mean())
    if difference.size < 2:
        return Statistic(estimate, reason="fewer than two units: no test")
    if not varies(difference, np.concatenate([a, b])):
        return Statistic(estimate, reason="zero variance: no test")
    from statsmodels.stats.weightstats import DescrStatsW

    described = DescrStatsW(difference)
    intervals = [described.tconfint_mean(alpha) for alpha in (0.05, 0.10)]
    return _tested(estimate, estimate / float(difference.std(ddof=1)), described.ttest_mean(0.0), intervals)


def _tested(
    estimate: float, effect: float, test: Sequence[float], intervals: Sequence[tuple[float, float]]
) -> Statistic:
    """Put together a t-test as statsmodels gives it (statistic, p, dof), and its 95 % and 90 % intervals."""
    statistic, p_value, dof = map(float, test)
    ci95, ci90 = ((float(low), float(high)) for low, high in intervals)
    return Statistic(estimate, effect, statistic, dof, p_value, ci95, ci90)


def mean_distance(a: FloatArray, b: FloatArray) -> Statistic:
    """Estimate how far the same units `[n]` lie apart in two arms, whichever way.

    Formula: the mean of d = |a − b|, ± t s_d/√n with n − 1 degrees of freedom, not under 0.
    There is no test: noise in a or b alone keeps it above 0, so it can show that the arms agree and never
    that they differ. Fewer than two units, or no variance: only the estimate, with the reason.
    Reference: methods/representation#workforce-slope.
    """
    test = paired(np.abs(a - b), np.zeros_like(a))
    ci95, ci90 = ((max(ci[0], 0.0), ci[1]) if ci else None for ci in (test.ci95, test.ci90))
    return Statistic(test.estimate, dof=test.dof, ci95=ci95, ci90=ci90, reason=test.reason)


def wilcoxon(a: FloatArray, b: FloatArray) -> Statistic:
    """Test the same units in two arms `[n]` by Wilcoxon's signed ranks.

    Formula: ranks of |a − b|, zeros dropped, ties at their average rank; W+ and W− the sums of the ranks of
        positive and negative differences; statistic min(W+, W−); two-sided p by scipy's defaults; effect
        size, the rank-biserial correlation (W+ − W−) / (W+ + W−).
    Fewer than two units, or differences without variance: None with the reason. Differences that are equal up
    to rounding are ties; those that are 0 up to rounding are zeros.
    Reference: methods/tests#welch-and-paired; scipy does the test.
    """
    from scipy.stats import rankdata
    from scipy.stats import wilcoxon as signed_rank_test

    difference = a - b
    if difference.size < 2:
        return Statistic(reason="fewer than two units: no test")
    both = np.concatenate([a, b])
    if not varies(difference, both):
        return Statistic(reason="zero variance: no test")
    # 0.3 − 0.1 and 0.2 are no two ranks.
    difference = np.round(difference / np.abs(both).max() / NO_SPREAD) * NO_SPREAD
    used = difference[difference != 0]
    ranks = rankdata(np.abs(used))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few units: p is what scipy makes of them
        test = signed_rank_test(difference)
    return Statistic(
        effect_size=float((np.sign(used) * ranks).sum() / ranks.sum()),
        statistic=float(test.statistic),
        p_value=float(test.pvalue),
    )


def varies(values: FloatArray, scale_of: FloatArray) -> bool:
    """Tell whether values differ by more than the rounding of the numbers they were made of."""
    return bool(np.ptp(values) > NO_SPREAD * np.abs(scale_of).max())
