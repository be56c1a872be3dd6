"""The difference of two shares over strata that are fixed and weighted alike (methods/comparisons#own-texts)."""

from __future__ import annotations

import math

import numpy as np

from biaskit.stats.arrays import FloatArray
from biaskit.stats.crossed import MANY, p_of_interval
from biaskit.stats.welch import Statistic

_STEPS = 50  # of halving: to the last digit of a share


def independent(share: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Find how many independent texts Wilson's 95 % intervals of shares `[...]` are worth.

    Formula: z² / (p²/(l u) − 1), of the complement where p is below one half.
    """
    from scipy.special import ndtri

    swap = share < 0.5
    p, ends = np.where(swap, 1 - share, share), np.where(swap, (1 - low) * (1 - high), low * high)
    return np.maximum(ndtri(0.975) ** 2 / np.maximum(p**2 / ends - 1, 1 / MANY), 1.0)


def standardised(shares: FloatArray, n: FloatArray, weights: FloatArray) -> Statistic:
    """Test the weighted mean over strata of a difference of shares, first side minus second, by its score.

    Formula: d = Σ w (p₁ − p₂); the interval has every δ with |d − δ| ≤ z √v(δ), v(δ) = Σ w² (q₁(1 − q₁)/n₁ +
        q₂(1 − q₂)/n₂) N/(N − 1), N = n₁ + n₂, q the most likely shares with q₁ − q₂ = δ; p inverts the 95 %
        interval on the side of 0.
    `shares` and `n` (independent texts, at least 1) are `[2, strata]`, `weights` `[strata]` sum to 1.
    Reference: methods/comparisons#own-texts; Miettinen and Nurminen 1985; `benchmarks/month_worlds.py`.
    """
    from scipy.optimize import brentq
    from scipy.special import ndtri

    estimate = float(weights @ (shares[0] - shares[1]))
    inside = min(max(estimate, 1e-9 - 1), 1 - 1e-9)  # at the ends no variance is left, and each is a solution

    def beyond(delta: float, z: float) -> float:
        q = _likely(shares, n, delta)
        total = n.sum(axis=0)
        variance = np.square(weights) @ ((q * (1 - q) / n).sum(axis=0) * total / (total - 1))
        return abs(estimate - delta) - z * math.sqrt(variance)

    intervals = []
    for level in (0.95, 0.90):
        z, ends = float(ndtri(0.5 + level / 2)), []
        for end in (-1.0, 1.0):
            ends.append(end if abs(estimate - end) < 1e-9 else brentq(beyond, end, inside, (z,)))
        intervals.append((ends[0], ends[1]))
    low, high = intervals[0]
    half = estimate - low if estimate > 0 else high - estimate
    p = p_of_interval(estimate, estimate - half, estimate + half, MANY)
    return Statistic(estimate, p_value=p, ci95=intervals[0], ci90=intervals[1])


def _likely(shares: FloatArray, n: FloatArray, delta: float) -> FloatArray:
    """Find the most likely shares `[2, strata]` whose difference is delta, by halving."""
    low = np.full(shares.shape[1], max(0.0, -delta))
    high = np.full(shares.shape[1], min(1.0, 1.0 - delta))
    for _ in range(_STEPS):
        q = np.array([(low + high) / 2 + delta, (low + high) / 2])
        # The derivative of the log likelihood, without its denominators.
        rises = (n * (shares - q) * (q * (1 - q))[::-1]).sum(axis=0) > 0
        low, high = np.where(rises, q[1], low), np.where(rises, high, q[1])
    return q
