"""Ratios of groups' rates to the highest, for a whole table at once (methods/decisions#ratios)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

from biaskit.stats.arrays import BoolArray, FloatArray
from biaskit.stats.cases import Decisions, Spreads
from biaskit.stats.crossed import with_tails

FOUR_FIFTHS = 0.8
FEW_SELECTED, RULE_OF_TEN = 5, 10
"""Below, counting alone says how uncertain a rate is; below, a rate bears no verdict."""
N_DRAWS = 20_000


@dataclass(frozen=True, slots=True)
class Ratios:
    """Rates of K groups and their ratios to the highest, `[K]`; NaN where there is none.

    `spread` `[K, K]` is the variance of each difference of log rates with its tails, `dof` the least.
    """

    rate: FloatArray
    ratio: FloatArray
    low: FloatArray
    high: FloatArray
    log_rate: FloatArray
    spread: FloatArray
    dof: float
    reason: str | None = None

    def verdict(self, group: int, n: FloatArray) -> str:
        """Judge one ratio of rates of `n` `[K]` rows each: `below`, `above` four fifths, or `not-decided`."""
        selected = self.rate * n
        highest = selected[int(np.nanargmax(self.ratio))] >= RULE_OF_TEN
        if self.high[group] < FOUR_FIFTHS and highest:
            return "below"
        enough = highest and selected[group] >= RULE_OF_TEN
        return "above" if self.low[group] >= FOUR_FIFTHS and enough else "not-decided"


def impact_ratios(
    rows: Decisions,
    x: FloatArray,
    included: BoolArray,
    *,
    counted: bool,
    ends: tuple[FloatArray, FloatArray] | None = None,
) -> Ratios:
    """Compute rates of groups, raw, and the ratios of those included `[K]` to the highest of them.

    Formula: low, high = min_j exp(l_k − l_j ∓ Q s_kj), s² of `cases.Spreads` (w = 1/n) with its tails, Q =
        q(0.90; K, f)/√2 of the studentized range. `counted`: x is 0 or 1; `ends` `[n]`: bounds of x.
    Each end is a 95 % bound for the whole table: the highest of K has luck.
    Reference: methods/decisions#ratios; 6 RCNY 5-301 (raw rates); `benchmarks/decision_worlds.py`.
    """
    k = len(included)
    n = np.bincount(rows.group, minlength=k).astype(float)
    s = np.bincount(rows.group, x, minlength=k)
    rate = np.divide(s, n, out=np.full(k, np.nan), where=n > 0)
    chosen = np.flatnonzero(included & (n > 0)).tolist()
    low, high = np.full((2, k), np.nan)
    spread, reach = np.zeros((2, k, k))
    if not (rate[chosen] > 0).any():
        why = "nobody selected: no ratio" if len(chosen) else "no category"
        return Ratios(rate, low, low, high, low, spread, 1.0, why)
    smoothed = (s + 0.5) / (n + 1) if counted else np.maximum(rate, 0.5 / (n + 1))
    log_rate = np.log(smoothed)
    ratio = np.where(included, rate / rate[chosen].max(), np.nan)
    spreads = Spreads(rows, x / smoothed[rows.group], 1 / n[rows.group])
    of_counts = 1 / (s + 0.5) - 1 / (n + 1)
    dof = math.inf
    for a, b in combinations(chosen, 2):
        one = spreads.spread(a, b)
        if one.variance is None or one.dof is None:
            return Ratios(rate, ratio, low, high, log_rate, spread, 1.0, one.reason)
        variance = one.variance
        if counted and min(s[a], s[b]) < FEW_SELECTED:
            variance = np.maximum(variance, of_counts[a] + of_counts[b])
        tails, f = with_tails(variance, one.dof, (), one.n_templates)
        spread[a, b] = spread[b, a] = tails
        reach[a, b] = reach[b, a] = _range_quantile(len(chosen), _rounded(float(f))) * np.sqrt(tails / 2)
        dof = min(dof, float(f))
    least = most = log_rate
    if ends is not None:
        least, most = (np.log(np.bincount(rows.group, end, minlength=k) / n) for end in ends)
    for a in chosen:
        others = [b for b in chosen if b != a]
        low[a] = np.exp(least[a] - most[others] - reach[a, others]).min(initial=ratio[a])
        high[a] = np.exp(most[a] - least[others] + reach[a, others]).min(initial=1.0)
    return Ratios(rate, ratio, low, np.maximum(high, ratio), log_rate, spread, dof)


def equal_groups(found: Ratios, rng: np.random.Generator) -> tuple[float, float, float] | None:
    """Find what the smallest ratio of groups with equal rates would be: its median, 5 % quantile, p.

    Formula: of multivariate t draws, methods/decisions#equal. None without a spread or with one group.
    """
    chosen = np.flatnonzero(~np.isnan(found.low))
    if len(chosen) < 2:
        return None
    centring = np.eye(len(chosen)) - 1 / len(chosen)
    values, vectors = np.linalg.eigh(-centring @ found.spread[np.ix_(chosen, chosen)] @ centring / 2)
    normal = rng.standard_normal((N_DRAWS, len(chosen))) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    drawn = normal * np.sqrt(found.dof / rng.chisquare(found.dof, (N_DRAWS, 1)))
    smallest = np.exp(np.min(drawn, axis=1) - np.max(drawn, axis=1))
    own = np.exp(np.ptp(found.log_rate[chosen]) * -1)
    median, low = np.quantile(smallest, [0.5, 0.05])
    return float(median), float(low), float((1 + (smallest <= own).sum()) / (1 + N_DRAWS))


def _rounded(dof: float) -> float:
    """Round degrees of freedom down to two digits, within [2, 1000]: more would move no digit shown."""
    bounded = min(max(dof, 2.0), 1000.0)
    step = 10.0 ** max(math.floor(math.log10(bounded)) - 1, 0)
    return math.floor(bounded / step) * step


@lru_cache(maxsize=10_000)
def _range_quantile(k: int, dof: float) -> float:
    """Find the 90 % quantile of the studentized range; scipy takes a tenth of a second for it."""
    from scipy.stats import studentized_range

    return float(studentized_range.ppf(0.90, max(k, 2), dof))
