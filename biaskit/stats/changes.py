"""What changed between two models asked the same; simulated in benchmarks/change_worlds.py."""

from __future__ import annotations

import math

import numpy as np

from biaskit.stats.arms import additive_fit
from biaskit.stats.arrays import FloatArray
from biaskit.stats.crossed import crossed_test, spread_of_mean

TIE_ZONE = 0.04
"""Two shares at most this far apart are nearly a tie."""


def flip_interval(rate: float, flips: FloatArray, n: int) -> tuple[float | None, float | None, str | None]:
    """Find the 95 % interval of the rate at which `n` prompts flip, `flips` `[I, J]`, and its reason.

    Formula: Wilson's with n* = r(1 − r)/v for n, at least 2 and at most n, and t for z; v and dof crossed.
        Where none or all flip n* = I, dof = I − 1.
    Reference: methods/comparisons#change.
    """
    from scipy.special import stdtrit

    spread, size, dof = spread_of_mean(flips), float(len(flips)), len(flips) - 1.0
    inner = rate * (1 - rate)
    if inner and spread.variance is not None and spread.dof is not None:
        size = max(inner / max(float(spread.variance), inner / n), 2.0)
        dof = float(spread.dof)
    if spread.variance is None or not dof:
        return None, None, spread.reason
    t2 = float(stdtrit(dof, 0.975)) ** 2
    middle, reach = rate + t2 / (2 * size), math.sqrt(t2 * (inner / size + t2 / (4 * size**2)))
    whole = 1 + t2 / size
    return max((middle - reach) / whole, 0.0), min((middle + reach) / whole, 1.0), spread.reason


def mean_of_sizes(sizes: FloatArray) -> tuple[float, float | None, float | None]:
    """Average sizes `[I, J]`, such as absolute changes, with the crossed 95 % interval m exp(± t √v/m).

    Reference: methods/comparisons#change.
    """
    from scipy.special import stdtrit

    mean, spread = float(sizes.mean()), spread_of_mean(sizes)
    if not mean or spread.variance is None or spread.dof is None:
        return (mean, None, None) if mean else (0.0, 0.0, 0.0)
    reach = math.exp(float(stdtrit(spread.dof, 0.975)) * math.sqrt(float(spread.variance)) / mean)
    return mean, mean / reach, mean * reach


def squares_without_noise(
    before: FloatArray, after: FloatArray, inverse: tuple[FloatArray | None, FloatArray | None]
) -> FloatArray:
    """Square each change of a share, less what sampling adds to it; NaN with fewer than two samples.

    Formula: (y − x)² − x(1 − x)/(n_x − 1) − y(1 − y)/(n_y − 1); `inverse`: 1/n of both, None where exact.
    Reference: methods/comparisons#change.
    """
    squares = np.square(after - before)
    for share, of_share in zip((before, after), inverse, strict=True):
        if of_share is not None:
            n = np.where(of_share < 0.75, 1 / of_share, np.nan)  # read from an interval: 1/n is not exact
            squares = squares - share * (1 - share) / (n - 1)
    return squares


def is_separable(squares: FloatArray) -> tuple[bool | None, str | None]:
    """Test whether the mean of `squares_without_noise` `[I, J]` is above 0, one-sided at 5 %, and the reason.

    A cell without a number gets its additive fit here alone. Reference: methods/comparisons#change.
    """
    filled = additive_fit(squares, np.isnan(squares))
    test = crossed_test(float(filled.mean()), spread_of_mean(filled))
    return None if test.p_value is None else bool(filled.mean() > 0 and test.p_value < 0.1), test.reason
