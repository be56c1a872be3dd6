"""Do intervals of the SD of ways, of a reliability and of a corrected correlation hold the truth?

    python benchmarks/ways_worlds.py [WORLDS]

`ways`: 10 + 10 jobs in K ways whose gaps differ by a known SD (points). What jobs do in each way is
drawn alike for every way (`even`), in common where ways share a format or a wording (`shared`), or with
heavy tails and four times as much in every third way (`uneven`). `halves`: jobs of one population, or of
two far apart, whose means over templates have a known reliability. `validity`: two measures of the same
jobs, of one population or of two far apart, whose true values have a known correlation there, each as noisy
as its reliability says (1: the workforce).
Printed is how often the 95 % interval holds the truth, and the mean estimate.
"""

from __future__ import annotations

import sys
from itertools import product

import numpy as np

from biaskit.stats.arrays import FloatArray
from biaskit.stats.reliability import Estimate, corrected_correlation, split_half, spread_of_levels

N_WORLDS, N_JOBS = 1_000, 10


def reactions(shape: str, n_ways: int, rng: np.random.Generator) -> FloatArray:
    """Draw what jobs do in each way beside their mean: `[jobs, ways]`."""
    ways, size = np.arange(n_ways), (N_JOBS, n_ways)
    if shape == "even":
        return rng.normal(0, 0.1, size)
    if shape == "shared":
        of_format, of_wording = rng.normal(0, 0.1, (N_JOBS, 3)), rng.normal(0, 0.08, (N_JOBS, 4))
        return of_format[:, ways % 3] + of_wording[:, ways // 3 % 4] + rng.normal(0, 0.04, size)
    return rng.standard_t(4, size) * np.where(ways % 3 == 0, 0.2, 0.05)


def ways_world(shape: str, n_ways: int, sd: float, rng: np.random.Generator) -> Estimate:
    """Make shares of two groups of jobs in ways whose gaps have this SD, and estimate it."""
    effects = rng.normal(size=n_ways)
    effects = (effects - effects.mean()) / effects.std(ddof=1) * sd
    groups = []
    for side in (0.5, -0.5):
        jobs = rng.normal(0.5 + side / 2, 0.2, (N_JOBS, 1))
        groups.append(jobs + side * effects + reactions(shape, n_ways, rng))
    return spread_of_levels(groups)


def halves_world(
    n_jobs: int, n_templates: int, reliability: float, apart: float, rng: np.random.Generator
) -> Estimate:
    """Make shares whose means over templates have this reliability, and estimate it."""
    jobs = rng.normal(size=n_jobs) + np.repeat([apart, -apart], n_jobs // 2)
    noise = (1 + apart**2) * (1 - reliability) / reliability * n_templates
    templates = rng.normal(size=(1, n_templates))
    cells = rng.normal(0, np.sqrt(noise), (n_jobs, n_templates))
    return split_half(jobs[:, None] + templates + cells, rng)


def validity_world(
    n_jobs: int,
    n_templates: int,
    reliabilities: tuple[float, float],
    rho: float,
    apart: float,
    rng: np.random.Generator,
) -> Estimate:
    """Make two measures whose true values have this correlation in each population, and estimate it."""
    true, other = rng.normal(size=(2, n_jobs))
    means, noise = [], []
    side = np.repeat([apart, -apart], n_jobs // 2)
    for of_jobs, reliability in zip(
        (true, rho * true + np.sqrt(1 - rho**2) * other), reliabilities, strict=True
    ):
        sd = np.sqrt((1 + apart**2) * n_templates * (1 - reliability) / reliability)
        cells = rng.normal(0, sd, (n_jobs, n_templates)) + rng.normal(size=n_templates)
        cells += (side + of_jobs)[:, None]
        means.append(cells.mean(axis=1))
        noise.append((1.0 if reliability == 1 else split_half(cells, rng).value or 0.0, n_templates))
    return corrected_correlation(*means, *noise) if min(noise) > (0, 0) else Estimate()


def told(name: str, truth: float, found: list[Estimate]) -> None:
    """Print how often intervals hold the truth, and the mean of the estimates."""
    found = [e for e in found if e.value is not None]
    held = sum(e.low <= truth <= e.high for e in found if e.low is not None and e.high is not None)
    mean = np.mean([e.value for e in found if e.value is not None])
    print(f"{name}: {100 * held / len(found):.1f} % of {len(found)}, mean {mean:.3f}", flush=True)


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else N_WORLDS
    for shape, n_ways, sd in product(("even", "shared", "uneven"), (3, 6, 12, 20), (0.0, 0.03, 0.1)):
        rng = np.random.default_rng(1)
        found = [ways_world(shape, n_ways, sd, rng) for _ in range(n)]
        told(f"ways {shape}, {n_ways} ways, SD {sd}", sd, found)
    for n_jobs, n_templates, reliability, apart in product((20, 40), (5, 25), (0.5, 0.8, 0.95), (0.0, 2.0)):
        rng = np.random.default_rng(1)
        found = [halves_world(n_jobs, n_templates, reliability, apart, rng) for _ in range(n)]
        told(
            f"halves {n_jobs} jobs, {n_templates} templates, {reliability}, {apart} apart", reliability, found
        )
    of_both = (0.5, 0.5), (0.5, 0.95), (0.8, 0.8), (0.95, 0.95), (0.7, 1.0)
    for apart, n_jobs, n_templates, both, rho in product(
        (0.0, 2.0), (10, 20, 40), (2, 5, 15), of_both, (-0.3, 0.0, 0.3, 0.6, 0.9)
    ):
        rng = np.random.default_rng([n_jobs, n_templates, round(100 * sum(both)), round(10 * rho) + 3])
        found = [validity_world(n_jobs, n_templates, both, rho, apart, rng) for _ in range(n)]
        truth = (apart**2 + rho) / (apart**2 + 1)
        told(f"validity {n_jobs} jobs, {n_templates} templates, {both}, {rho}, {apart} apart", truth, found)


if __name__ == "__main__":
    main()
