"""How often the intervals of methods/averages#crossed-intervals hold the mean that they are intervals of.

    python benchmarks/interval_coverage.py

Jobs and templates are drawn anew in every run; a cell's share is expit(μ + job + template + cell), each
effect normal on the logit scale, so that small means come with skewed cells. The true mean is that over
all jobs and templates there could be, by Gauss-Hermite quadrature.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, stdtrit

from biaskit.stats.correlation import level_test, slope_test
from biaskit.stats.crossed import (
    Spread,
    difference_interval,
    share_interval,
    spread_of_difference,
    spread_of_mean,
)

N_RUNS = 4_000
N_JOBS = 20
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class World:
    """Standard deviations on the logit scale, and the mean share that they are set around."""

    name: str
    mean: float
    job: float
    template: float
    cell: float

    def centre(self) -> float:
        """The μ that gives the mean."""
        return float(brentq(lambda mu: self._mean_at(mu) - self.mean, -40.0, 40.0))

    def _mean_at(self, mu: float) -> float:
        points, weights = hermegauss(80)
        spread = np.sqrt(self.job**2 + self.template**2 + self.cell**2)
        return float((weights * expit(mu + spread * points)).sum() / weights.sum())

    def sample(self, rng: np.random.Generator, n_runs: int, n_jobs: int, templates: FloatArray) -> FloatArray:
        """Shares `[n_runs, n_jobs, J]` on the template effects given, `[n_runs, 1, J]`."""
        jobs = rng.normal(0.0, self.job, (n_runs, n_jobs, 1))
        cells = rng.normal(0.0, self.cell, (n_runs, n_jobs, templates.shape[-1]))
        return np.asarray(expit(self.centre() + jobs + templates + cells), dtype=np.float64)


MIDDLE = (
    World("even", 0.5, job=0.5, template=0.5, cell=0.5),
    World("jobs differ", 0.5, job=1.0, template=0.3, cell=0.5),
    World("templates differ", 0.4, job=0.3, template=1.0, cell=0.5),
    World("cells differ", 0.6, job=0.2, template=0.2, cell=1.0),
)
SKEWED = tuple(World(f"mean {m}", m, job=0.8, template=0.8, cell=0.8) for m in (0.02, 0.05, 0.10))


def held(ends: tuple[FloatArray, FloatArray], truth: float) -> float:
    """The part of the intervals that hold the true value."""
    return float(((ends[0] <= truth) & (truth <= ends[1])).mean())


def ends_of_mean(values: FloatArray, *, raw: bool = False) -> tuple[FloatArray, FloatArray]:
    """The crossed interval of a mean share; `raw` leaves out the logit scale."""
    spread, mean = spread_of_mean(values), values.mean(axis=(-2, -1))
    variance, dof = defined(spread)
    return difference_interval(mean, variance, dof) if raw else share_interval(mean, variance, dof)


def ends_with_cells_as_units(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What must not be done: every cell taken as an independent unit."""
    flat = values.reshape(*values.shape[:-2], -1)
    mean, se = flat.mean(axis=-1), flat.std(axis=-1, ddof=1) / np.sqrt(flat.shape[-1])
    half = stdtrit(flat.shape[-1] - 1, 0.975) * se
    return mean - half, mean + half


def ends_of_difference(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The crossed interval of the difference of two groups of jobs."""
    variance, dof = defined(spread_of_difference(a, b))
    return difference_interval(a.mean(axis=(-2, -1)) - b.mean(axis=(-2, -1)), variance, dof)


def ends_with_cells_of_groups_as_units(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What must not be done: the difference of two groups with every cell as an independent unit."""
    n = a.shape[-2] * a.shape[-1]
    variance = (a.var(axis=(-2, -1), ddof=1) + b.var(axis=(-2, -1), ddof=1)) / n
    difference = a.mean(axis=(-2, -1)) - b.mean(axis=(-2, -1))
    return difference_interval(difference, variance, np.full_like(variance, 2 * n - 2))


def defined(spread: Spread) -> tuple[FloatArray, FloatArray]:
    """Variance and dof of a spread that has both."""
    assert spread.variance is not None
    assert spread.dof is not None
    return spread.variance, spread.dof


def cells_of(world: World, n_templates: int, *, seed: int, n_runs: int = N_RUNS) -> FloatArray:
    """Shares of one group of jobs, `[n_runs, N_JOBS, n_templates]`."""
    rng = np.random.default_rng([seed, n_templates])
    templates = rng.normal(0.0, world.template, (n_runs, 1, n_templates))
    return world.sample(rng, n_runs, N_JOBS, templates)


def cells_of_two(
    a: World, b: World, n_templates: int, *, seed: int, n_runs: int = N_RUNS
) -> tuple[FloatArray, FloatArray]:
    """Shares of two groups of jobs on the same templates."""
    rng = np.random.default_rng([seed, n_templates])
    templates = rng.normal(0.0, a.template, (n_runs, 1, n_templates))
    return a.sample(rng, n_runs, N_JOBS, templates), b.sample(rng, n_runs, N_JOBS, templates)


WORKFORCE = np.r_[np.linspace(0.74, 0.98, 20), np.linspace(0.02, 0.25, 20)]


def held_by_lines(slope: float, n_templates: int, *, seed: int, n_runs: int = 600) -> tuple[float, ...]:
    """How often intervals hold a true slope and level on the workforce share; then the slope by HC3 alone.

    Lines of templates vary by 0.15 in their slope and 0.08 in their height, jobs by 0.1, cells by 0.08.
    """
    rng, held_of = np.random.default_rng([seed, n_templates]), np.zeros(3)
    for _ in range(n_runs):
        lines = rng.normal(slope, 0.15, n_templates) * (WORKFORCE[:, None] - 0.5)
        shares = 0.5 + lines + rng.normal(0, 0.08, n_templates) + rng.normal(0, 0.1, (WORKFORCE.size, 1))
        shares = shares + rng.normal(0, 0.08, shares.shape)
        tests = (
            slope_test(WORKFORCE, shares),
            level_test(WORKFORCE, shares, 0.5),
            slope_test(WORKFORCE, shares.mean(axis=1)),
        )
        for k, (test, truth) in enumerate(zip(tests, (slope, 0.0, slope), strict=True)):
            assert test.ci95 is not None
            held_of[k] += test.ci95[0] <= truth <= test.ci95[1]
    return tuple(held_of / n_runs)


def main() -> None:
    """Print the whole table."""
    print(f"{N_RUNS} runs of {N_JOBS} jobs; part of nominal 95 % intervals that hold the true mean, in %")
    print(f"{'':<32}{'logit scale':>24}{'raw scale':>24}{'cells as units':>24}")
    print(f"{'templates':<32}" + f"{25:>8}{5:>8}{3:>8}" * 3)
    for seed, world in enumerate((*MIDDLE, *SKEWED)):
        drawn = [cells_of(world, n, seed=seed) for n in (25, 5, 3)]
        numbers = [held(ends_of_mean(x), world.mean) for x in drawn]
        numbers += [held(ends_of_mean(x, raw=True), world.mean) for x in drawn]
        numbers += [held(ends_with_cells_as_units(x), world.mean) for x in drawn]
        print(f"share, {world.name:<25}" + "".join(f"{100 * x:8.1f}" for x in numbers))
    for seed, world in enumerate(MIDDLE, 100):
        other = World("other", world.mean - 0.2, world.job, world.template, world.cell)
        pairs = [cells_of_two(world, other, n, seed=seed) for n in (25, 5, 3)]
        numbers = [held(ends_of_difference(a, b), 0.2) for a, b in pairs]
        numbers += [held(ends_with_cells_of_groups_as_units(a, b), 0.2) for a, b in pairs]
        print(f"difference, {world.name:<20}{'':>24}" + "".join(f"{100 * x:8.1f}" for x in numbers))
    print(f"{'600 runs of 40 jobs':<32}{'slope':>8}{'level':>8}{'slope, HC3 alone':>18}")
    for n in (25, 10, 5, 3):
        slope, level, alone = (100 * x for x in held_by_lines(1.0, n, seed=200))
        print(f"{f'line, {n} templates':<32}{slope:8.1f}{level:8.1f}{alone:18.1f}")


if __name__ == "__main__":
    main()
