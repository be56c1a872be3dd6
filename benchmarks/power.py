"""How often the promised 80 % of methods/averages#power is kept: designs are drawn, the house's test judges.

    python benchmarks/power.py [RUN]

For each design the smallest difference that it is said to show is set as the truth in runs whose jobs,
templates and cells are drawn anew with the shipped variances of demo-base; with RUN (a whole
`biaskit probe demo-base`) also in runs whose jobs and templates are those of RUN, drawn with replacement.
The last column judges what a run without a difference says of itself, "X points would be found in 80 % of
runs": the next run has X as its truth.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from biaskit.corpora.variance import CellVariance, load_cell_variance
from biaskit.measures.probe.power import matched_samples, smallest_shown
from biaskit.stats.arms import FEMALE_DOMINATED, MALE_DOMINATED, CellValues
from biaskit.stats.contrast import Contrast, Scope
from biaskit.stats.contrasts import adjust, between_groups
from biaskit.stats.power import difference_found
from biaskit.stats.proportions import wilson
from biaskit.tables.io import read_table_rows

N_RUNS = 1_000
SCOPE = Scope("probe", "groups", "m", "m", gender="female")
FloatArray = NDArray[np.float64]
World = Callable[[np.random.Generator], tuple[FloatArray, FloatArray]]
DESIGNS = [
    (jobs, templates, samples) for jobs in (6, 20) for templates in (3, 10, 25) for samples in (None, 10)
]


@dataclass(frozen=True, slots=True)
class Planned:
    """Two groups of jobs in a design of some size; every sample names a target word."""

    variances: Sequence[CellVariance]
    jobs: int
    templates: int
    samples: int | None

    def difference(self) -> float | None:
        """Find the smallest difference that the design is said to show."""
        matched = None if self.samples is None else matched_samples(self.samples, self.samples, 1.0)
        return smallest_shown(self.variances, (self.jobs, self.jobs), self.templates, matched).difference


def normal_world(of: Planned, difference: float) -> World:
    """Jobs, templates and cells as normal effects with the variances that the plan reckons with."""
    a, b = of.variances
    n_templates = of.templates

    def sample(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        # What templates do to the difference lies on one side alone: the other's would cancel.
        between = rng.normal(0.0, np.sqrt(a.var_difference or 0.0), (1, n_templates))
        sides = []
        for v, n, shift in ((a, of.jobs, difference + between), (b, of.jobs, 0.0)):
            jobs = rng.normal(0.0, np.sqrt(v.var_job), (n, 1))
            shares = shift + jobs + rng.normal(0.0, np.sqrt(v.var_residual), (n, n_templates))
            if of.samples is not None:
                # The noise of samples is that about the group's own mean, wherever the difference puts it.
                p = np.clip(v.share - difference * (v is a) + shares, 0.0, 1.0)
                shares = shares + rng.binomial(of.samples, p) / of.samples - p
            sides.append(np.asarray(shares))
        return sides[0], sides[1]

    return sample


def resampled_world(of: Planned, difference: float, cells: tuple[FloatArray, FloatArray]) -> World:
    """Jobs and templates of a real run, drawn with replacement, shifted to the difference."""
    shift = (difference - (cells[0].mean() - cells[1].mean())) / 2

    def sample(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        templates = rng.integers(0, cells[0].shape[1], of.templates)
        a, b = (x[rng.integers(0, x.shape[0], of.jobs)][:, templates] for x in cells)
        return a + shift, b - shift

    return sample


def judged(world: World, rng: np.random.Generator) -> Contrast:
    """Make one run's crossed row, judged as the only claim of its page."""
    a, b = world(rng)
    rows = adjust(between_groups(CellValues(a), CellValues(b), scope=SCOPE, margins={}))
    return next(row for row in rows if row.kind == "crossed")


def found(world: World, rng: np.random.Generator) -> bool:
    """Whether one run's difference is judged higher."""
    return judged(world, rng).verdict == "higher"


def found_as_said(of: Planned, rng: np.random.Generator) -> tuple[bool, float]:
    """Whether a run finds what another without a difference said would be found, and how much that is."""
    said = difference_found(judged(normal_world(of, 0.0), rng))
    return found(normal_world(of, said), rng), said


def cells_of(run: Path, bias_type: str) -> tuple[FloatArray, FloatArray]:
    """Women's shares `[jobs, templates]` of a stored run, female- and male-dominated jobs."""
    rows = [r for r in read_table_rows(run / "tables" / "probe_prompts.csv") if r["bias_type"] == bias_type]

    def of(group: str) -> FloatArray:
        own = {}
        for r in rows:
            if r["job_group"] == group:
                own[r["job"], r["template_id"]] = r["female_mass"] / (r["female_mass"] + r["male_mass"])
        jobs, templates = (list(dict.fromkeys(key[i] for key in own)) for i in (0, 1))
        return np.array([[own[job, t] for t in templates] for job in jobs], dtype=np.float64)

    return of(FEMALE_DOMINATED), of(MALE_DOMINATED)


def percent_of(n: int) -> str:
    """Write a part of all runs in percent, with its interval."""
    low, high = wilson(n, N_RUNS) or (0.0, 1.0)
    return f"{100 * n / N_RUNS:.1f} [{100 * low:.1f}-{100 * high:.1f}]"


def main(run: Path | None) -> None:
    """Print one line for each design."""
    print(
        f"{'bias':9} {'jobs':>7} {'templates':>9} {'samples':>5} {'points':>6}  found in % of {N_RUNS:,} runs"
    )
    for bias_type in ("explicit", "implicit"):
        known = [v for v in load_cell_variance() if v.bias_type == bias_type]
        for jobs, templates, samples in DESIGNS:
            of = Planned(known, jobs, templates, samples)
            difference = of.difference()
            if difference is None:
                continue
            worlds = [normal_world(of, difference)]
            if run is not None and samples is None:
                worlds.append(resampled_world(of, difference, cells_of(run, bias_type)))
            shown = []
            for world in worlds:
                rng = np.random.default_rng(20_261_123)
                shown.append(percent_of(sum(found(world, rng) for _ in range(N_RUNS))))
            rng = np.random.default_rng(20_261_129)
            by_itself = [found_as_said(of, rng) for _ in range(N_RUNS)]
            median = 100 * np.median([said for _, said in by_itself])
            own = f"{percent_of(sum(is_found for is_found, _ in by_itself))} at {median:.1f} (median)"
            size = f"{jobs} + {jobs}"
            print(
                f"{bias_type:9} {size:>7} {templates:9} {samples or '-':>5} {100 * difference:6.1f}  "
                + f"{'; of the run’s cells '.join(shown)}; by itself {own}",
                flush=True,
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
