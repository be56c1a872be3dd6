"""Welch's and the paired t-test and Wilcoxon's, with what a reader needs beside p."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from biaskit.stats.arrays import FloatArray

NO_SPREAD = 1e-12
"""Values that differ by less than this part of their size differ by rounding: zero variance."""


@dataclass(frozen=True, slots=True)
class TTest:
    """A t-test of a − b; everything but the estimate is None where the reason says why."""

    estimate: float | None
    effect_size: float | None = None
    statistic: float | None = None
    dof: float | None = None
    p_value: float | None = None
    ci95: tuple[float, float] | None = None
    ci90: tuple[float, float] | None = None
    reason: str | None = None


def welch(a: FloatArray, b: FloatArray) -> TTest:
    """Welch's t-test of the units of two groups, their variances not taken as equal.

    Formula: t = (ā − b̄) / √(s_a²/n_a + s_b²/n_b), dof by Welch and Satterthwaite; two-sided p;
        Hedges' g = (ā − b̄) / s_pooled · (1 − 3/(4(n_a + n_b − 2) − 1)).
    Arguments: a `[n_a]`, b `[n_b]`: one value per unit (a job's mean share), never per cell.
    Returns: estimate ā − b̄, positive when a is larger; statistic and effect size have its sign.
    Missing or empty input: fewer than two units on a side, or no variance on both: only the estimate,
        with the reason.
    Reference: docs/methods.md#welch-and-paired; checked against statsmodels' `CompareMeans`,
        whose import takes longer than most analyses, and against `scipy.stats.ttest_ind(equal_var=False)`.
    """
    estimate = float(a.mean() - b.mean())
    if min(a.size, b.size) < 2:
        return TTest(estimate, reason="fewer than two units in a group: no test")
    if not varies(a, a) and not varies(b, b):
        return TTest(estimate, reason="zero variance: no test")
    (mean_a, variance_a), (mean_b, variance_b) = _moments(a), _moments(b)
    squared_a, squared_b = variance_a / (a.size - 1), variance_b / (b.size - 1)
    both = squared_a + squared_b
    dof = 1.0 / ((squared_a / both) ** 2 / (a.size - 1) + (squared_b / both) ** 2 / (b.size - 1))
    degrees = a.size + b.size - 2
    pooled = math.sqrt(((a.size - 1) * a.var(ddof=1) + (b.size - 1) * b.var(ddof=1)) / degrees)
    return TTest(
        estimate,
        effect_size=estimate / pooled * (1 - 3 / (4 * degrees - 1)),
        **t_of(mean_a - mean_b, math.sqrt(both), dof),
    )


def paired(a: FloatArray, b: FloatArray) -> TTest:
    """Paired t-test of the same units in two arms.

    Formula: d = a − b; t = d̄ / (s_d/√n), dof n − 1; two-sided p; d_z = d̄ / s_d, uncorrected.
    Arguments: a `[n]`, b `[n]`: the same units in the same order.
    Returns: estimate d̄, positive when a is larger; statistic and effect size have its sign.
    Missing or empty input: fewer than two units, or differences without variance: only the estimate, with
        the reason.
    Reference: docs/methods.md#welch-and-paired; checked against statsmodels' `DescrStatsW`,
        and against `scipy.stats.ttest_rel`.
    """
    difference = a - b
    estimate = float(difference.mean())
    if difference.size < 2:
        return TTest(estimate, reason="fewer than two units: no test")
    if not varies(difference, np.concatenate([a, b])):
        return TTest(estimate, reason="zero variance: no test")
    mean, variance = _moments(difference)
    left = difference.size - 1
    return TTest(
        estimate,
        effect_size=estimate / float(difference.std(ddof=1)),
        **t_of(mean, math.sqrt(variance) / math.sqrt(left), float(left)),
    )


def mean_distance(a: FloatArray, b: FloatArray) -> TTest:
    """How far the same units lie apart in two arms, whichever way.

    Formula: the mean of d = |a − b|, ± t s_d/√n with n − 1 degrees of freedom, not under 0.
    Arguments: a `[n]`, b `[n]`: the same units in the same order.
    Returns: the mean distance, at least 0, with its intervals and without a test: noise in a or b alone
        keeps it above 0, so it can show that the arms agree and never that they differ.
    Missing or empty input: fewer than two units, or no variance: only the estimate, with the reason.
    Reference: docs/methods.md#labour-slope.
    """
    found = paired(np.abs(a - b), np.zeros_like(a))
    ci95, ci90 = ((max(ci[0], 0.0), ci[1]) if ci else None for ci in (found.ci95, found.ci90))
    return TTest(found.estimate, dof=found.dof, ci95=ci95, ci90=ci90, reason=found.reason)


@dataclass(frozen=True, slots=True)
class SignedRanks:
    """A Wilcoxon signed-rank test of a − b; everything is None where the reason says why."""

    effect_size: float | None = None
    statistic: float | None = None
    p_value: float | None = None
    reason: str | None = None


def wilcoxon(a: FloatArray, b: FloatArray) -> SignedRanks:
    """Wilcoxon signed-rank test of the same units in two arms.

    Formula: ranks of |a − b|, zeros dropped, ties at their average rank; W+ and W− the sums of the ranks
        of positive and negative differences; statistic min(W+, W−); two-sided p by scipy's defaults;
        effect size, the rank-biserial correlation (W+ − W−) / (W+ + W−).
    Arguments: a `[n]`, b `[n]`: the same units in the same order.
    Returns: the effect size in [−1, 1], positive when a is larger; the statistic carries no direction.
    Missing or empty input: fewer than two units, or differences without variance: None with the reason.
        Differences that are equal up to rounding are ties, and such that are 0 up to rounding are zeros.
    Reference: docs/methods.md#welch-and-paired; scipy does the test.
    """
    from scipy.stats import rankdata
    from scipy.stats import wilcoxon as signed_rank_test

    difference = a - b
    if difference.size < 2:
        return SignedRanks(reason="fewer than two units: no test")
    both = np.concatenate([a, b])
    if not varies(difference, both):
        return SignedRanks(reason="zero variance: no test")
    # 0.3 − 0.1 and 0.2 are no two ranks.
    difference = np.round(difference / np.abs(both).max() / NO_SPREAD) * NO_SPREAD
    used = difference[difference != 0]
    ranks = rankdata(np.abs(used))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few units: p is what scipy makes of them
        test = signed_rank_test(difference)
    return SignedRanks(
        effect_size=float((np.sign(used) * ranks).sum() / ranks.sum()),
        statistic=float(test.statistic),
        p_value=float(test.pvalue),
    )


def varies(values: FloatArray, scale_of: FloatArray) -> bool:
    """Whether values differ by more than the rounding of the numbers they were made of."""
    return bool(np.ptp(values) > NO_SPREAD * np.abs(scale_of).max())


def t_of(estimate: float, error: float, dof: float) -> dict[str, Any]:
    """Statistic, p-value and intervals of an estimate with a standard error, as `TTest` names them."""
    from scipy.special import stdtr, stdtrit

    with np.errstate(divide="ignore", invalid="ignore"):  # a line through every point
        statistic = np.float64(estimate) / error
    wide, narrow = (float(stdtrit(dof, 1 - alpha / 2.0)) for alpha in (0.05, 0.10))
    return {
        "statistic": float(statistic),
        "dof": float(dof),
        "p_value": float(stdtr(dof, -abs(float(statistic))) * 2),
        "ci95": (float(estimate - wide * error), float(estimate + wide * error)),
        "ci90": (float(estimate - narrow * error), float(estimate + narrow * error)),
    }


def _moments(values: FloatArray) -> tuple[float, float]:
    """Mean and variance over n, summed in the order of statsmodels: old tables keep their last digits."""
    ones = np.ones(values.size)
    mean = np.dot(values, ones) / values.size
    return float(mean), float(np.dot((values - mean) ** 2, ones) / values.size)
