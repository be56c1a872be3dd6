"""Least-squares slope and rank correlation, of one sample or of many resamples at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from biaskit.stats.arrays import BoolArray, FloatArray
from biaskit.stats.resampling import Resampled, bootstrap_of_units
from biaskit.stats.welch import NO_SPREAD, TTest, t_of, varies


def slope(x: FloatArray, y: FloatArray) -> FloatArray:
    """Least-squares slope of y on x.

    Formula: Σ (x − x̄)(y − ȳ) / Σ (x − x̄)².
    Arguments: x, y `[..., n]`.
    Returns: `[...]`; positive when y rises with x, in units of y per unit of x.
    Missing or empty input: NaN (for the caller to turn into None) where x has no spread.
    Reference: docs/methods.md#labour-slope; checked against `scipy.stats.linregress`.
    """
    dx = x - x.mean(axis=-1, keepdims=True)
    dy = y - y.mean(axis=-1, keepdims=True)
    return _ratio((dx * dy).sum(axis=-1), np.square(dx).sum(axis=-1), _spread(x))


def spearman(x: FloatArray, y: FloatArray) -> FloatArray:
    """Spearman's rank correlation, ties at their average rank.

    Formula: Pearson's correlation of the ranks.
    Arguments: x, y `[..., n]`.
    Returns: `[...]` in [−1, 1]; positive when y rises with x.
    Missing or empty input: NaN (for the caller to turn into None) where x or y has no spread.
    Reference: docs/methods.md#labour-slope; checked against `scipy.stats.spearmanr`.
    """
    dx = ranks(x) - (x.shape[-1] + 1) / 2
    dy = ranks(y) - (y.shape[-1] + 1) / 2
    below = np.sqrt(np.square(dx).sum(axis=-1) * np.square(dy).sum(axis=-1))
    return np.clip(_ratio((dx * dy).sum(axis=-1), below, _spread(x) & _spread(y)), -1.0, 1.0)


def slope_test(x: FloatArray, y: FloatArray) -> TTest:
    """t-test and interval of a least-squares slope whose units may vary differently.

    Formula: the slope ± t × its HC3 standard error, n − 2 degrees of freedom.
    Arguments: x, y `[n]`, n ≥ 3.
    Returns: slope, t, p and the 95 % and 90 % intervals; positive when y rises with x.
    Missing or empty input: x without spread: NaN is no estimate, so the reason stands alone; one unit that
        alone sets the slope: no test, since its HC3 residual is 0 / 0.
    Reference: docs/methods.md#labour-slope; checked against statsmodels (`cov_type="HC3"`).
        At 10 to 20 units a percentile bootstrap covers 89 to 93 % only.
    """
    return _of_line(x, y, 1)


def level_test(x: FloatArray, y: FloatArray, at: float) -> TTest:
    """How far a least-squares line lies above the diagonal at one place: its level apart from its slope.

    Formula: (line at x = `at`) − `at`, ± t × its HC3 standard error, n − 2 degrees of freedom.
    Arguments: x, y `[n]`, n ≥ 3, in one unit.
    Returns: the distance in that unit, t, p and the intervals; positive where the line lies above `at`.
    Missing or empty input: as `slope_test`.
    Reference: docs/methods.md#labour-slope.
    """
    return _of_line(x - at, y - at, 0)


def level_weights(x: FloatArray, at: float) -> FloatArray:
    """What each y of a least-squares line weighs in its value at x = `at`: `[n]`, sum 1, also negative.

    Reference: docs/methods.md#labour-slope; a row of the hat matrix.
    """
    dx = x - x.mean()
    weights: FloatArray = 1 / x.size + (at - x.mean()) * dx / np.square(dx).sum()
    return weights


def _of_line(x: FloatArray, y: FloatArray, which: int) -> TTest:
    """Test the constant (0) or the slope (1) of a line."""
    if np.isnan(steepness := float(slope(x, y))):
        return TTest(None, reason="zero variance: no estimate")
    if not varies(y, y):
        return TTest(steepness if which else float(y[0]), reason="zero variance: no test")
    columns = np.column_stack([np.ones(x.size), x])
    u, singular, vt = np.linalg.svd(columns, full_matrices=False)
    inverse = np.dot(vt.T, np.multiply(1.0 / singular[:, None], u.T))
    found = np.dot(inverse, y)
    leverage = np.einsum("ij,ik,kj->i", columns, columns, np.dot(inverse, inverse.T))
    estimate = steepness if which else float(found[0])
    if leverage.max() > 1 - NO_SPREAD:
        return TTest(estimate, reason="one unit alone sets the line: no test")
    scale = ((y - np.dot(columns, found)) / (1 - leverage)) ** 2
    errors = np.sqrt(np.diag(np.dot(inverse, scale[:, None] * inverse.T)))
    return TTest(estimate, **t_of(found[which], errors[which], float(x.size - 2)))


def rank_correlation(x: FloatArray, y: FloatArray, *, rng: np.random.Generator) -> Resampled:
    """Spearman's rank correlation with a percentile interval and the p-value of no association.

    Arguments: x, y `[n]`; rng of the units' resamples.
    Returns: the correlation in [−1, 1], its intervals, and a two-sided p-value by t with n − 2 degrees.
    Missing or empty input: no spread in x or y: None with the reason.
    Reference: docs/methods.md#labour-slope; `bootstrap_of_units`; p is checked against
        `scipy.stats.spearmanr`, whose import takes longer than the analysis of a run.
    """
    from scipy.special import stdtr

    found = bootstrap_of_units(spearman, x, y, rng=rng)
    if found.ci95 is None:
        return found
    r, left = np.corrcoef(ranks(x), ranks(y))[1, 0], x.size - 2
    with np.errstate(divide="ignore"):  # one order
        t = r * np.sqrt((left / ((r + 1.0) * (1.0 - r))).clip(0))
    return replace(found, p_value=float(2 * stdtr(left, -abs(t))))


def ranks(values: FloatArray) -> FloatArray:
    """Ranks along the last axis from 1 on, ties at their average; none is NaN. As `scipy.stats.rankdata`."""
    order = np.argsort(values, axis=-1, kind="stable")
    in_order = np.take_along_axis(values, order, axis=-1)
    begins = np.ones(values.shape, dtype=bool)  # of equal values, along the whole array
    begins[..., 1:] = in_order[..., 1:] != in_order[..., :-1]
    starts = np.flatnonzero(begins)
    counts = np.diff(starts, append=values.size)
    means = starts % values.shape[-1] + 1 + (counts - 1) / 2
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, np.repeat(means, counts).reshape(values.shape), axis=-1)
    return ranks


def _spread(values: FloatArray) -> BoolArray:
    spread: BoolArray = np.ptp(values, axis=-1) > NO_SPREAD * np.abs(values).max(axis=-1)
    return spread


def _ratio(above: FloatArray, below: FloatArray, defined: BoolArray) -> FloatArray:
    return np.divide(above, below, out=np.full_like(above, np.nan), where=defined)
