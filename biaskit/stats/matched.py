"""Two scores of the same samples: McNemar's test, Tango's interval, and swaps of scores on a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from biaskit.stats.arrays import FloatArray
from biaskit.stats.swaps import MOST_UNITS_FOR_ALL_SWAPS, TIE
from biaskit.stats.welch import TTest, paired

Ends = tuple[float, float]

FINEST_GRID = 60
"""Steps of 1 whose multiples count as a grid: halves, tenths and means over up to 30 epochs of C, P and I."""
FEW_DIFFER = 20
"""Below this many samples that differ, a t-interval of their mean is too short."""
_MOST_SUMS = 2**26
"""Samples times sums of a grid that are worked through."""


@dataclass(frozen=True, slots=True)
class Matched:
    """A test of a − b on the same samples; what is None is None for the reason given.

    Attributes:
        kind: "mcnemar" (all scores 0 or 1) or "paired".
        p_mid: McNemar's mid-p.
        n_higher: samples on which a is higher, and on which b is.
    """

    kind: str
    estimate: float | None
    effect_size: float | None = None
    statistic: float | None = None
    dof: float | None = None
    p_value: float | None = None
    p_mid: float | None = None
    ci95: Ends | None = None
    ci90: Ends | None = None
    n_higher: tuple[int, int] = (0, 0)
    reason: str | None = None


def matched(a: FloatArray, b: FloatArray) -> Matched:
    """The test of two scores of the same samples that fits them.

    Formula: scores that are all 0 or 1: `mcnemar_p` and `tango`; else the paired t-test, its p-value
        replaced by `swaps_p` where that is exact, its interval by that with two more samples, of
        differences 1 and −1, where all scores lie in [0, 1] and fewer than 20 samples differ.
    Arguments: a, b `[n]`: the same samples in the same order.
    Returns: estimate mean(a − b), positive when a is larger; statistic and effect size have its sign.
    Missing or empty input: no sample, or one whose scores are not 0 or 1: no test, with the reason.
    Reference: docs/methods.md#logs; checked against scipy and statsmodels.
    """
    if not a.size:
        return Matched("paired", None, reason="no sample is paired")
    difference = a - b
    higher = int((difference > 0).sum()), int((difference < 0).sum())
    both = np.concatenate([a, b])
    if np.isin(both, (0.0, 1.0)).all():
        return _of_correctness(a.size, higher)
    test = paired(a, b)
    ci95, ci90, reason = test.ci95, test.ci90, test.reason
    if a.size > 1 and sum(higher) < FEW_DIFFER and both.min() >= 0 and both.max() <= 1:
        more = np.append(difference, [1.0, -1.0])
        wider = paired(more, np.zeros_like(more))
        ci95, ci90, reason = wider.ci95, wider.ci90, None
    exact = swaps_p(difference) if a.size > 1 else None
    return Matched(
        "paired",
        test.estimate,
        effect_size=test.effect_size,
        statistic=test.statistic,
        dof=test.dof,
        p_value=test.p_value if exact is None else exact,
        ci95=ci95,
        ci90=ci90,
        n_higher=higher,
        reason=reason,
    )


def _of_correctness(n: int, higher: tuple[int, int]) -> Matched:
    p_value, p_mid = mcnemar_p(*higher)
    return Matched(
        "mcnemar",
        (higher[0] - higher[1]) / n,
        statistic=float(min(higher)),
        p_value=p_value,
        p_mid=p_mid,
        ci95=tango(*higher, n),
        ci90=tango(*higher, n, level=0.90),
        n_higher=higher,
    )


def mcnemar_p(only_a: int, only_b: int) -> tuple[float, float]:
    """McNemar's exact two-sided p-value and its mid-p.

    Formula: X ~ Binomial(b + c, 1/2): p = min(1, 2 P(X ≤ min(b, c))); mid-p = p_uncapped − P(X = min(b, c)).
    Arguments: only_a = b, samples that a alone has right; only_b = c, those that b alone has.
    Returns: p, never above 0.05 in more than one of twenty worlds where nothing differs; and mid-p, which
        wastes less and may be above it by little.
    Missing or empty input: 1 and 1 where no sample differs.
    Reference: docs/methods.md#logs; McNemar 1947; Fagerland, Lydersen and Laake 2013; checked against
        statsmodels' `mcnemar(exact=True)` and scipy's `binomtest`.
    """
    from scipy.stats import binom

    n, least = only_a + only_b, min(only_a, only_b)
    if not n:
        return 1.0, 1.0
    tail, point = float(binom.cdf(least, n, 0.5)), float(binom.pmf(least, n, 0.5))
    return min(2 * tail, 1.0), min(2 * tail - point, 1.0)


def tango(only_a: int, only_b: int, n: int, *, level: float = 0.95) -> Ends:
    """Tango's score interval of a difference of paired proportions.

    Formula: all Δ with |b − c − nΔ| ≤ z √(n(2q + Δ(1 − Δ))), q the likelihood's largest probability of
        "b alone" given Δ: q = (√(B² − 4AC) − B) / 2A with A = 2n, B = −b − c + (2n − b + c)Δ,
        C = −cΔ(1 − Δ).
    Arguments: only_a = b, samples that a alone has right, only_b = c, n samples in all; level.
    Returns: lower and upper end of p_a − p_b, in [−1, 1]; never a point.
    Missing or empty input: `ValueError` for counts that cannot be.
    Reference: docs/methods.md#logs; Tango 1998; checked against a score test whose likelihood is maximised
        by search, and by simulated coverage.
    """
    from scipy.stats import norm

    if min(only_a, only_b) < 0 or only_a + only_b > n or n < 1:
        raise ValueError(f"{only_a} and {only_b} of {n} are no counts of pairs.")
    z = float(norm.ppf((1 + level) / 2))
    upper = _upper_end(only_a, only_b, n, z)
    return -_upper_end(only_b, only_a, n, z), upper


def _upper_end(b: int, c: int, n: int, z: float) -> float:
    from scipy.optimize import brentq

    if b == n:
        return 1.0

    def beyond(delta: float) -> float:
        first = 2 * n - b + c
        linear, constant = -b - c + first * delta, -c * delta * (1 - delta)
        q = (math.sqrt(max(linear**2 - 8 * n * constant, 0.0)) - linear) / (4 * n)
        variance = max(n * (2 * q + delta * (1 - delta)), 0.0)
        return n * delta - (b - c) - z * math.sqrt(variance)

    # At 1 the variance is 0 and what is left is n − b + c > 0. The estimate itself may be a root: of 0 of n.
    return float(brentq(beyond, (b - c) / n + 1e-9, 1.0, xtol=1e-12))


def swaps_p(difference: FloatArray) -> float | None:
    """Exact two-sided p-value of a mean of paired differences: a sample's two scores may change places.

    Formula: the share of all 2^k choices of signs of the k differences other than 0 whose sum is at least
        as far from 0 as the observed one. On a grid (differences are multiples of 1/g, g ≤ 60) the sums are
        counted by convolution, otherwise one by one where k ≤ 13.
    Arguments: difference `[n]`.
    Returns: a p-value, never 0; 1 where no sample differs; of 0/1 scores it is McNemar's exact one.
    Missing or empty input: None where it is neither on a grid nor k ≤ 13, or the grid is too large.
    Reference: docs/methods.md#logs; Fisher 1935; checked against a plain loop over all swaps.
    """
    size = np.abs(difference[difference != 0])
    if not size.size:
        return 1.0
    observed = abs(float(difference.sum()))
    steps = _on_grid(size)
    if steps is not None and len(steps) * int(steps.sum()) <= _MOST_SUMS:
        return _tail_on_grid(steps, observed * int(steps.sum()) / float(size.sum()))
    if size.size > MOST_UNITS_FOR_ALL_SWAPS:
        return None
    signs = 1 - 2 * (np.arange(2**size.size)[:, None] >> np.arange(size.size) & 1)
    return float((np.abs(signs @ size) >= observed - TIE * size.sum()).mean())


def _on_grid(size: FloatArray) -> np.ndarray | None:
    """The differences as whole numbers of steps, by the coarsest grid that has them."""
    for steps_of_one in range(1, FINEST_GRID + 1):
        steps = size * steps_of_one
        if np.abs(steps - np.round(steps)).max() < 1e-9 and steps.max() < _MOST_SUMS:
            return np.round(steps).astype(np.int64)
    return None


def _tail_on_grid(steps: np.ndarray, observed: float) -> float:
    total = int(steps.sum())
    # chance[s]: of s steps in favour of one side; the other side has the rest.
    chance = np.zeros(total + 1)
    chance[0], reached = 1.0, 0
    for step in steps:
        moved = chance[: reached + 1] / 2
        chance[: reached + 1] = moved
        chance[step : step + reached + 1] += moved
        reached += int(step)
    distance = np.abs(2 * np.arange(total + 1) - total)
    return min(float(chance[distance >= observed - 0.5].sum()), 1.0)


def unmatched(test: TTest) -> Matched:
    """Welch's test of two sets of samples that are not the same, as a record of the same kind."""
    return Matched(
        "welch",
        test.estimate,
        effect_size=test.effect_size,
        statistic=test.statistic,
        dof=test.dof,
        p_value=test.p_value,
        ci95=test.ci95,
        ci90=test.ci90,
        reason=test.reason,
    )
