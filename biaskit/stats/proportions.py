"""Shares of counted texts: Wilson interval, standard error, and the mean of the shares of several prompts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from biaskit.common.wording import joined
from biaskit.stats.arrays import FloatArray

FEWEST_MATCHED = 2
"""Samples that a cell's share needs for an estimate of its variance."""
END = 0.01


@dataclass(frozen=True, slots=True)
class Proportion:
    """A share with its interval; whatever is None is None for the reason given."""

    estimate: float | None
    ci95: tuple[float, float] | None = None
    se: float | None = None
    reason: str | None = None


@lru_cache(maxsize=10_000)
def wilson(count: float, n: float, *, level: float = 0.95) -> tuple[float, float] | None:
    """Compute Wilson's score interval of count out of n independent samples; None with n = 0.

    Formula: the two p with |count/n − p| = z √(p(1 − p)/n), z the normal quantile at (1 + level)/2.
    Exactly 0 for no success, exactly 1 for n; `ValueError` for counts that cannot be.
    Reference: methods/estimators#wilson; Wilson 1927; statsmodels' `proportion_confint`.
    """
    if not 0 <= count <= n:
        raise ValueError(f"{count} of {n} is not a share.")
    if n == 0:
        return None
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(count, n, 1.0 - level, method="wilson")
    # Rounding leaves some of these ends at 3e-17, and then a share of 0 has a lower end above it.
    return (0.0 if count == 0 else float(low)), (1.0 if count == n else float(high))


def at_an_end(*sides: FloatArray | float) -> bool:
    """Tell whether the mean shares of all sides are under 1 %, or all over 99 % (methods/tests#equivalence).

    They then differ by less than a point whatever the model, and "about the same" would say nothing of it.
    """
    means = [float(np.mean(side)) for side in sides]
    return max(means) < END or min(means) > 1 - END


def proportion(count: int, n: int, independent: float | None = None) -> Proportion:
    """Estimate a share with its Wilson 95 % interval and standard error, as certain as `independent` samples.

    Formula: p = count/n; se = √(p(1 − p)/(n − 1)), which is the sample standard deviation of n zeros and
        ones over √n: 0 where all n agree, and the interval is not a point there.
    n = 0: no number; n = 1: no standard error; both with the reason.
    Reference: methods/representation#representation; checked with `statistics.stdev`. GAS(P) Table 11 divides
        the same standard deviation by 200 whatever n is.
    """
    if n == 0:
        return Proportion(None, reason="nothing was counted")
    p, samples = count / n, n if independent is None else independent
    ends = wilson(count, n) if samples == n else wilson(p * samples, samples)
    if samples <= 1:
        return Proportion(p, ends, reason="one observation: no standard error")
    return Proportion(p, ends, math.sqrt(p * (1.0 - p) / (samples - 1)))


def noise_of(share: FloatArray, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Estimate the variances of shares from their Wilson 95 % intervals, and their degrees, all `[...]`.

    Formula: n = z²/(p²/(l u) − 1), of the complement where p < ½; q = (n p + 1)/(n + 2); q (1 − q)/n; n − 1.
    Reference: methods/comparisons#own-texts; checked in simulation (`benchmarks/month_worlds.py`).
    """
    from scipy.special import ndtri

    p = np.maximum(share, 1 - share)
    ends = np.where(share < 0.5, (1 - low) * (1 - high), low * high)
    n = ndtri(0.975) ** 2 / (p**2 / ends - 1)
    q = (n * p + 1) / (n + 2)
    return q * (1 - q) / n, np.maximum(n - 1, 1.0)


def mean_of_proportions(parts: Sequence[Proportion]) -> Proportion:
    """Average the shares of k prompts, each with equal weight whatever its number of texts.

    Formula: p̄ = Σ p_i/k; p̄ − √(Σ (p_i − l_i)²)/k and p̄ + √(Σ (u_i − p_i)²)/k, with [l_i, u_i] the prompts'
        intervals; se = √(Σ se_i²)/k. Of one prompt, the prompt's own numbers.
    A prompt without a share leaves no number, one without a standard error no standard error; with the
    prompts' reasons.
    Reference: methods/representation#representation-all; GAS(P) C.1; square-and-add (MOVER) interval; checked
        against a plain loop and by simulated coverage.
    """
    if len(parts) == 1:
        return parts[0]  # p − √((p − l)²) can differ from l in the last digit
    k = len(parts)
    if not parts:
        return Proportion(None, reason="no prompt")
    reason = joined([part.reason for part in parts])
    estimates, below, above, errors = [], [], [], []
    for part in parts:
        if part.estimate is None or part.ci95 is None:
            return Proportion(None, reason=reason)
        estimates.append(part.estimate)
        below.append(part.estimate - part.ci95[0])
        above.append(part.ci95[1] - part.estimate)
        if part.se is not None:
            errors.append(part.se)
    mean = math.fsum(estimates) / k
    low, high = mean - math.hypot(*below) / k, mean + math.hypot(*above) / k
    se = math.hypot(*errors) / k if len(errors) == k else None
    return Proportion(mean, (max(low, 0.0), min(high, 1.0)), se, reason)


def se_of_mean(
    shares: FloatArray, matched: FloatArray, weights: FloatArray | None = None
) -> tuple[float | None, str | None]:
    """Estimate the standard error that samples add to a mean of cells' shares, and say what it leaves out.

    Formula: √(Σ w² p(1 − p)/(K − 1)) / Σ w, over the cells with K ≥ 2 matched samples; None without one. It
        is already inside the interval over jobs and templates.
    Reference: methods/estimators#sampling-estimator; checked in simulation.
    """
    enough = matched >= FEWEST_MATCHED
    n = int(enough.sum())
    left_out = matched.size - n
    if not n:
        return None, "no prompt with two matched samples: no se_sampling" if left_out else None
    p, k = shares[enough], matched[enough]
    w = np.ones(n) if weights is None else weights[enough]
    se = math.sqrt(math.fsum(w**2 * p * (1.0 - p) / (k - 1.0))) / math.fsum(w)
    few = f"se_sampling over {n} of {matched.size} prompts, the others have one match" if left_out else None
    return se, few


def spread_of_true(d: FloatArray, noise: FloatArray) -> float:
    """Find the upper end of the standard deviation of true differences `[m]`, without the counts' noise.

    Formula: the τ with Σ (d − μ)²/(v + τ²) = the 5 % quantile of χ² with m − 1 degrees of freedom, μ the mean
        of d weighted by 1/(v + τ²): the one-sided 95 % end; 0 where noise alone is more than what is seen.
    Fewer than two differences: infinity. `noise` `[m]` is a variance.
    Reference: methods/tests#equivalence; the Q-profile of Viechtbauer 2007.
    """
    from scipy.optimize import brentq
    from scipy.stats import chi2

    if d.size < 2:
        return math.inf
    target = float(chi2.ppf(0.05, d.size - 1))

    def over(variance: float) -> float:
        weights = 1 / (noise + variance)
        return float((weights * np.square(d - (weights * d).sum() / weights.sum())).sum()) - target

    most = 4.0 * d.size / target  # differences lie in [−1, 1]
    return math.sqrt(brentq(over, 0.0, most)) if over(0.0) > 0 else 0.0
