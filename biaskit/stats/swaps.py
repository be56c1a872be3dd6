"""Two scores of each unit: a permutation test that swaps them, and the change from one to the other."""

from __future__ import annotations

import numpy as np

from biaskit.stats.arrays import BoolArray, FloatArray
from biaskit.stats.welch import Statistic, varies

TIE = 1e-12
"""A permutation reaches the observed value within this relative tolerance.

See methods/srb#permutation-test.
"""
MOST_UNITS_FOR_ALL_SWAPS = 13
N_SWAPS = 9_999
SMALLEST_OLD_SCORE = 0.01

# A score that grows in this direction comes nearer to one's own requested gender.
_OWN_DIRECTION = {"female": -1.0, "male": 1.0}


def reaches(values: FloatArray, observed: float) -> BoolArray:
    """Tell which values are at least the observed one, equality within a relative tolerance of 1e-12."""
    return values >= observed - TIE * abs(observed)


def swap_test(a: FloatArray, b: FloatArray, *, rng: np.random.Generator) -> Statistic:
    """Test paired scores `[m]` by permutation: within each unit the two may change places.

    Formula: statistic |mean(a − b)|; over all 2^m sign changes of the differences if m ≤ 13:
        p = number ≥ observed / 2^m, the observed one among them; else over 9,999 random ones:
        p = (1 + number ≥ observed) / 10,000.
    The estimate is positive when a is larger. Fewer than two units, or differences without variance: only the
    estimate, with the reason.
    Reference: methods/srb#permutation-test; checked against a plain loop over all swaps.
    """
    difference = a - b
    m = difference.size
    estimate = float(difference.mean()) if m else None
    if m < 2:
        return Statistic(estimate, reason="fewer than two units: no test")
    if not varies(difference, np.concatenate([a, b])):
        return Statistic(estimate, reason="zero variance: no test")
    observed = float(np.abs(difference.mean()))
    if observed <= TIE * np.abs(difference).max():
        observed = 0.0  # differences that cancel: what rounding leaves of them is no mean to reach
    every = m <= MOST_UNITS_FOR_ALL_SWAPS
    swapped: BoolArray
    if every:  # each choice of units to swap, none of them first
        swapped = (np.arange(2**m)[:, None] >> np.arange(m)) & 1 == 1
    else:
        swapped = rng.integers(0, 2, size=(N_SWAPS, m)) == 1
    statistics = np.abs(np.where(swapped, -difference, difference).mean(axis=1))
    n_reaching = int(reaches(statistics, observed).sum())
    p_value = n_reaching / len(swapped) if every else (1 + n_reaching) / (N_SWAPS + 1)
    return Statistic(estimate, statistic=observed, p_value=p_value)


def percent_change(old: float | None, new: float | None, gender: str) -> tuple[float | None, str | None]:
    """Compute the change of an SRB score between two models in percent of the old one, and why there is none.

    Formula: 100 · s · (new − old) / |old|, s = −1 for women and +1 for men: positive = nearer to one's own
        requested gender, since scores are negative closer to requested women.
    None where a score is missing, |old| < 0.01, or old has the unexpected sign (women's positive, men's
    negative).
    Reference: methods/srb#percent-change; GAS(P) Figure 4.
    """
    sign = _OWN_DIRECTION[gender]
    if old is None or new is None:
        return None, "no score of one of the models"
    if abs(old) < SMALLEST_OLD_SCORE:
        return None, "the old score is nearer to 0 than 0.01"
    if sign * old < 0:
        return None, "the old score points to the other gender"
    return 100.0 * sign * (new - old) / abs(old), None
