"""How far numbers depend on how one asks, and whether they agree (methods/reliability)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from biaskit.stats.arms import Z95
from biaskit.stats.arrays import FloatArray
from biaskit.stats.welch import NO_SPREAD, varies

MOST_SPLITS = 200
"""Random halves where all are more."""
N_RESAMPLES = 500
"""Enough for a standard deviation of resamples."""
FEW_JOBS, ENOUGH_JOBS = 4, 10
"""With fewer jobs, of each group, there is no SD; with fewer of all no order to be stable."""
N_POSSIBLE = 2001
"""Correlations that are tried as ends of an interval: a thousandth apart."""
EXACT = (1.0, 1)
"""The reliability of what has no noise, such as a share of the workforce, and its number of templates."""
LEAST = 1e-9
_TAILS = (0.025, 0.975)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 95 % interval, or why there is none."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str | None = None


def spread_of_levels(groups: Sequence[FloatArray]) -> Estimate:
    """Estimate the standard deviation of a number between ways to ask the same jobs, or between templates.

    Formula: g_k the number in way k: the mean of the first group of jobs, minus that of the second; S² the
        variance of the g_k, N Σ the covariance of jobs' values between ways, centred over ways, each group's
        over its jobs, summed: SD = √max(S² − tr N/(K−1), 0). Interval: the noncentral F distribution of
        S² (K−1)/tr N, its degrees (K−1) ε and f (K−1) ε, f the jobs minus the groups, ε by Lecoutre.
    groups: one or two arrays `[I, K]` with K ways. None with one way, or a group of fewer than four jobs.
    Reference: methods/reliability#ways; the interval by Steiger (2004), ε by Huynh and Feldt (1976) as
        corrected by Lecoutre (1991); simulated in `benchmarks/ways_worlds.py`.
    """
    n_ways = groups[0].shape[1]
    if n_ways < 2:
        return Estimate(reason="one way: no SD")
    if min(map(len, groups)) < FEW_JOBS:
        return Estimate(reason=f"a group of fewer than {FEW_JOBS} jobs: no SD")
    means = [values.mean(axis=0) for values in groups]
    observed = float((means[0] - (means[1] if len(groups) > 1 else 0.0)).var(ddof=1))
    noise = np.zeros((n_ways, n_ways))
    for values in groups:
        centred = values - values.mean(axis=1, keepdims=True)
        noise += np.cov(centred, rowvar=False) / len(values)
    free, k = sum(map(len, groups)) - len(groups), n_ways - 1
    of_noise = float(np.trace(noise)) / k
    if of_noise <= NO_SPREAD**2:
        return Estimate(math.sqrt(observed), math.sqrt(observed), math.sqrt(observed))
    greenhouse = (k * of_noise) ** 2 / (k * float(np.square(noise).sum()))
    epsilon = greenhouse
    if free > k * greenhouse:
        epsilon = ((free + 1) * k * greenhouse - 2) / (k * (free - k * greenhouse))
    epsilon = min(max(epsilon, greenhouse, 1 / k), 1.0)
    low, high = _noncentral(observed / of_noise, k * epsilon, free * k * epsilon)
    scale = of_noise / (k * epsilon)
    sd = math.sqrt(max(observed - of_noise, 0.0))
    return Estimate(sd, math.sqrt(low * scale), math.sqrt(high * scale))


def _noncentral(f: float, dof: float, dof_below: float) -> tuple[float, float]:
    """Find the ends of the 95 % interval of the noncentrality of an F statistic; 0 where f is small."""
    from scipy.special import fdtr, ncfdtrinc

    central = fdtr(dof, dof_below, f)
    low, high = (float(ncfdtrinc(dof, dof_below, p, f)) if central > p else 0.0 for p in reversed(_TAILS))
    return low, high


# --- halves of templates ----------------------------------------------------------------------------------


def splits(n_templates: int, rng: np.random.Generator) -> FloatArray:
    """Choose all ways to halve the templates, or 200 at random: `[S, J]`, 1 for those of the first half."""
    half = n_templates // 2
    n_all = math.comb(n_templates, half) // (2 - n_templates % 2)
    chosen = []
    if n_all <= MOST_SPLITS:
        chosen = list(combinations(range(n_templates), half))[:n_all]
    else:
        chosen = [tuple(rng.permutation(n_templates)[:half]) for _ in range(MOST_SPLITS)]
    halves = np.zeros((len(chosen), n_templates))
    for row, places in enumerate(chosen):
        halves[row, list(places)] = 1.0
    return halves


def _reliabilities(values: FloatArray, halves: FloatArray, weights: FloatArray) -> FloatArray:
    """Find the reliability of jobs' means over templates `[I, J]` in each resample of jobs `[R, I]`."""
    first = values @ halves.T / halves.sum(axis=1)  # [I, S]
    second = values @ (1 - halves).T / (1 - halves).sum(axis=1)
    r = _weighted_correlation(first, second, weights).mean(axis=1)
    stepped_up: FloatArray = np.divide(2 * r, 1 + r, out=np.full_like(r, np.nan), where=r > -1)
    return stepped_up.clip(-1.0, 1.0)


def _weighted_correlation(x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    """Correlate columns of x and y `[I, S]` under each row of weights `[R, I]`: `[R, S]`."""
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    n = weights.sum(axis=1, keepdims=True)
    mx, my = weights @ x / n, weights @ y / n
    xx, yy = weights @ (x * x) / n - mx * mx, weights @ (y * y) / n - my * my
    xy = weights @ (x * y) / n - mx * my
    with np.errstate(invalid="ignore", divide="ignore"):
        r: FloatArray = np.clip(xy / np.sqrt(np.maximum(xx * yy, 0.0)), -1.0, 1.0)
    return r


def split_half(values: FloatArray, rng: np.random.Generator) -> Estimate:
    """Estimate how reliable jobs' means over templates are: whether other templates would order jobs alike.

    Formula: r the mean correlation over jobs between the means of the two halves of the templates, over all
        halves or 200; 2r/(1 + r). Interval: log(1 − reliability) ± t × its SD over 500 resamples of jobs,
        n − 2 degrees of freedom.
    values: `[I, J]`. None with one template, fewer than ten jobs, or jobs without spread.
    Reference: methods/reliability#halves, Spearman (1910) and Brown (1910); checked against plain loops;
        simulated in `benchmarks/ways_worlds.py`.
    """
    from scipy.special import stdtrit

    n_jobs, n_templates = values.shape
    if n_templates < 2 or n_jobs < ENOUGH_JOBS:
        few = "one template" if n_templates < 2 else f"fewer than {ENOUGH_JOBS} jobs"
        return Estimate(reason=f"{few}: no reliability")
    halves, probabilities = splits(n_templates, rng), np.full(n_jobs, 1 / n_jobs)
    # How often each job is drawn: in the sample itself once, then in the resamples.
    times = np.ones((1 + N_RESAMPLES, n_jobs))
    times[1:] = rng.multinomial(n_jobs, probabilities, size=N_RESAMPLES)
    drawn = _reliabilities(values, halves, times)
    value, resampled = float(drawn[0]), drawn[1:][~np.isnan(drawn[1:])]
    if np.isnan(value) or resampled.size < drawn.size / 2:
        return Estimate(reason="jobs do not differ: no reliability")
    # Near 1 a reliability is skewed; its distance from 1 is nearly lognormal.
    distance = np.log(np.clip(1 - np.array([value, *resampled]), LEAST, None))
    reach = float(stdtrit(n_jobs - 2, 0.975)) * float(distance[1:].std(ddof=1))
    low, high = (1 - math.exp(distance[0] + side * reach) for side in (1, -1))
    return Estimate(value, max(low, -1.0), min(high, 1.0))


# --- two measures of the same jobs ------------------------------------------------------------------------


def corrected_correlation(
    x: FloatArray, y: FloatArray, of_x: tuple[float, int] = EXACT, of_y: tuple[float, int] = EXACT
) -> Estimate:
    """Correlate two measures of the same jobs `[I]`, corrected for the noise in both.

    Formula: Pearson's r over R = √(a b), a and b the reliabilities, clipped to [-1, 1]. Interval: every ρ
        with |atanh r - atanh ρR| ≤ z s, s² = (1 + R²(c ρ² + ρ⁴)) / ((I - 3)(1 - ρ²R²)²), and
        c = 1 + Σ (1 + (1 - a)²/(J - 1) - 4a) / 2a²: Fisher's interval where both reliabilities are 1.
    of_x, of_y: reliability and number J of templates. None with fewer than ten jobs, or jobs without spread.
    Reference: methods/reliability#validity; Spearman (1904), Fisher (1921); simulated in
        `benchmarks/ways_worlds.py`.
    """
    if len(x) < ENOUGH_JOBS:
        return Estimate(reason=f"{len(x)} jobs with both, at least {ENOUGH_JOBS} are needed")
    if not (varies(x, x) and varies(y, y)):
        return Estimate(reason="jobs do not differ: no correlation")
    r = float(np.corrcoef(x, y)[0, 1])
    root, c = math.sqrt(of_x[0] * of_y[0]), 1.0
    for reliability, n_templates in (of_x, of_y):
        noise = (1 - reliability) ** 2 / max(n_templates - 1, 1)
        c += (1 + noise - 4 * reliability) / (2 * reliability**2)
    # At ±1 both sides would be infinite.
    rho = np.linspace(-1, 1, N_POSSIBLE) * (1 - 1e-6)
    free = np.sqrt(len(x) - 3) * (1 - np.square(rho * root))
    error = np.sqrt(1 + root**2 * (c * rho**2 + rho**4)) / free
    away = np.abs(np.arctanh(np.clip(r, rho[0], rho[-1])) - np.arctanh(rho * root)) / error
    within = rho[away <= max(Z95, away.min())].round(3)
    return Estimate(min(max(r / root, -1.0), 1.0), float(within[0]), float(within[-1]))


def without_one(a: FloatArray, b: FloatArray, axis: int) -> tuple[float, float] | None:
    """Find the least and the greatest gap, mean of a minus mean of b, without any one job or template.

    a `[I_a, J]`, b `[I_b, J]`; axis 0: a job of either group, 1: a template. None where one alone is left.
    """
    means = a.mean(axis=1 - axis), b.mean(axis=1 - axis)
    if min(map(len, means)) < 2:
        return None
    left_a, left_b = ((m.sum() - m) / (len(m) - 1) for m in means)
    if axis == 1:
        gaps = left_a - left_b
    else:
        gaps = np.concatenate([left_a - means[1].mean(), means[0].mean() - left_b])
    return float(gaps.min()), float(gaps.max())
