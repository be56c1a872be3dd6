"""What changed between two models asked the same: answers and shares (methods/comparisons#change)."""

from __future__ import annotations

import math

import numpy as np

from biaskit.common.wording import ROUNDING
from biaskit.stats.arms import additive_fit
from biaskit.stats.arrays import BoolArray, FloatArray, IntArray
from biaskit.stats.crossed import crossed_test, spread_of_mean

TIE_ZONE = 0.04
"""Two shares at most this far apart are nearly a tie."""
ALWAYS = 0.05
"""The level of the one-sided test of a typical change."""


def answers(shares: FloatArray, zone: float) -> tuple[IntArray, BoolArray]:
    """Find the most probable group of shares `[groups, ...]`, and where the next is at most `zone` below."""
    *_, second, largest = np.sort(shares, axis=0)
    return shares.argmax(axis=0), largest - second <= zone + ROUNDING


def flip_interval(rate: float, flips: FloatArray, n: int) -> tuple[float | None, float | None, str | None]:
    """Find the 95 % interval of the rate at which `n` prompts flip, and its reason; `flips` `[I, J]`: 0 or 1.

    Formula: Wilson's of rate and n* with t for z; n* = r(1 − r)/v, at least 2 and at most n, v and dof the
        crossed variance of the mean of `flips`. Where none or all flip n* = I, dof = I − 1.
    One job in which none or all flip: no interval.
    Reference: methods/comparisons#change; checked in simulation (`benchmarks/change_worlds.py`).
    """
    from scipy.special import stdtrit

    n_jobs = len(flips)
    spread = spread_of_mean(flips)
    if spread.variance is None or spread.dof is None:
        return None, None, spread.reason
    size, dof, inner = float(n_jobs), n_jobs - 1.0, rate * (1 - rate)
    if inner:
        size = min(max(inner / float(spread.variance), 2.0), n) if spread.variance else float(n)
        dof = float(spread.dof)
    if not dof:
        return None, None, "one job, and none or all flip: no interval"
    t2 = float(stdtrit(dof, 0.975)) ** 2
    middle, reach = rate + t2 / (2 * size), math.sqrt(t2 * (inner / size + t2 / (4 * size**2)))
    low, high = (middle - reach) / (1 + t2 / size), (middle + reach) / (1 + t2 / size)
    return max(low, 0.0), min(high, 1.0), spread.reason


def mean_of_sizes(sizes: FloatArray) -> tuple[float, float | None, float | None]:
    """Average sizes `[I, J]`, such as absolute changes, with the crossed 95 % interval on the log scale.

    Formula: m exp(± t √v/m); all 0: [0, 0].
    Reference: methods/comparisons#change; checked in simulation.
    """
    from scipy.special import stdtrit

    mean, spread = float(sizes.mean()), spread_of_mean(sizes)
    if not mean:
        return 0.0, 0.0, 0.0
    if spread.variance is None or spread.dof is None:
        return mean, None, None
    reach = math.exp(float(stdtrit(spread.dof, 0.975)) * math.sqrt(float(spread.variance)) / mean)
    return mean, mean / reach, mean * reach


def squares_without_noise(
    before: FloatArray, after: FloatArray, inverse: tuple[FloatArray | None, FloatArray | None]
) -> FloatArray:
    """Square each change of a share `[I, J]`, less what sampling adds to it on average.

    Formula: (y − x)² − x(1 − x)/(n_x − 1) − y(1 − y)/(n_y − 1); `inverse`: 1/n of both, None where exact.
    NaN where n is below 2.
    Reference: methods/comparisons#change; unbiased, checked in simulation.
    """
    squares = np.square(after - before)
    for share, of_share in zip((before, after), inverse, strict=True):
        if of_share is not None:
            n = np.where(of_share < 0.75, 1 / of_share, np.nan)  # read from an interval: 1/n is not exact
            squares = squares - share * (1 - share) / (n - 1)
    return squares


def is_separable(squares: FloatArray) -> tuple[bool | None, str | None]:
    """Test whether the mean of `squares_without_noise` `[I, J]` is above 0, one-sided at 5 %.

    Cells without a number get their additive fit for the test alone. Too few jobs or templates for a test:
    None, with the reason.
    Reference: methods/comparisons#change.
    """
    filled = additive_fit(squares, np.isnan(squares))
    test = crossed_test(float(filled.mean()), spread_of_mean(filled))
    if test.p_value is None or test.estimate is None:
        return None, test.reason
    return test.estimate > 0 and test.p_value / 2 < ALWAYS, test.reason
