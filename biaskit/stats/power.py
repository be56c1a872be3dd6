"""Power and smallest difference of a crossed design before it runs (methods/averages#power)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeGuard

import numpy as np

from biaskit.stats.arrays import FloatArray
from biaskit.stats.contrast import LEVEL, Contrast
from biaskit.stats.crossed import FEW_TEMPLATES, LEAST_P, Term, combined, with_tails

FEWEST_UNITS = 5  # jobs of a group, or occupations: of fewer the variance in a run is anybody's guess
NOT_JUDGED = "cannot be estimated from another model's variance"
POWER = 0.8
"""The share of runs in which a difference is to show."""
N_RUNS = 10_000
"""Runs whose mean squares are drawn; the draw of their estimates is integrated."""


@dataclass(frozen=True, slots=True)
class Side:
    """One group of units in a design: how many, and the variances of its shares (squared fractions)."""

    n_jobs: int
    job: float  # between jobs
    cell: float  # between the cells of one job beyond its templates, noise of samples included


@dataclass(frozen=True, slots=True)
class Design:
    """A mean share (one side) or the difference of two sides' means, on the same J templates."""

    sides: tuple[Side, ...]
    n_templates: int
    template: float  # variance between templates: of the mean, or of the difference of the sides' means

    def parts(self) -> dict[str, float]:
        """Split the variance of the estimate by what jobs, templates and cells add to it.

        Formula: jobs Σ σ²_job / I, templates σ²_template / J, cells Σ σ²_cell / (I J).
        """
        jobs = sum(side.job / side.n_jobs for side in self.sides)
        cells = sum(side.cell / (side.n_jobs * self.n_templates) for side in self.sides)
        return {"jobs": jobs, "templates": self.template / self.n_templates, "cells": cells}

    def variance(self) -> float:
        """Add up the variance of the estimate over designs of this size."""
        return sum(self.parts().values())


def power(design: Design, difference: float, level: float = LEVEL) -> float:
    """Find the share of runs in which the crossed test of methods/averages#power finds a true difference.

    Formula: E[Φ((|δ| − c)/√v) + Φ((−|δ| − c)/√v)], c = t(1 − level/2, dof) √v̂ with v̂ and dof as the test
        makes them of mean squares that are chi-squared about their expectations. A side of one job, and one
        template, drop their terms; without any term the test does not exist: 0.
    Reference: methods/averages#power; `tests/stats/test_power.py` runs the test on simulated designs.
    """
    from scipy.special import ndtr

    if 1 < design.n_templates < FEW_TEMPLATES and level < LEAST_P:
        return 0.0
    scale, reach = float(np.sqrt(design.variance())), _reach(design, level)
    if reach is None or scale == 0.0:
        return 0.0 if reach is None or not difference else 1.0
    d = abs(difference) / scale
    return float(np.mean(ndtr(d - reach / scale) + ndtr(-d - reach / scale)))


def smallest_difference(design: Design, level: float = LEVEL) -> float | None:
    """Solve for the smallest true difference found in 80 % of runs, in units of the shares; None above 1."""
    low, high = 0.0, 1.0
    if power(design, high, level) < POWER:
        return None
    for _ in range(30):
        middle = (low + high) / 2.0
        low, high = (low, middle) if power(design, middle, level) >= POWER else (middle, high)
    return high


def is_named(difference: float | None) -> TypeGuard[float]:
    """Tell whether a plan names a difference: one that promises larger ones than 0.6 alone is none."""
    return difference is not None and difference <= 0.6


def difference_found(row: Contrast) -> float:
    """Find the difference that a run with a row's own error finds in 80 % of cases, in the row's units.

    Formula: h + s z(0.8) √(1 + (h/s)²/ν), h: half of the interval that the page shows, s: the row's error;
    the root is for the error of s, in this run and in the next. Without degrees of freedom ν is infinite.
    Reference: methods/averages#power.
    """
    from scipy.special import ndtri, stdtrit

    low, high = row.shown
    reach = (high - low) / 2
    quantile = ndtri(0.975) if row.dof is None else stdtrit(row.dof, 0.975)
    error = (row.ci_high - row.ci_low) / 2 / quantile
    unknown = 0.0 if row.dof is None else (reach / error) ** 2 / row.dof
    return float(reach + error * ndtri(POWER) * (1 + unknown) ** 0.5)


def texts_to_show(row: Contrast, margin: float) -> int:
    """Find how many texts a side like a row's show in 80 % of comparisons without a difference that none is.

    Formula: n (w (z(0.95) + z(0.9))/(2 z(0.975) margin))², n the sides' harmonic mean, w their 95 % width.
    Reference: methods/comparisons#own-texts.
    """
    from scipy.special import ndtri

    reach = (row.ci_high - row.ci_low) * (ndtri(0.95) + ndtri((1 + POWER) / 2)) / (2 * ndtri(0.975))
    n = 2 / (1 / row.n_a + 1 / row.n_b) * (reach / margin) ** 2
    return int(float(f"{n:.2g}"))


@lru_cache(maxsize=4)  # drawn once for all differences of a design
def _reach(design: Design, level: float) -> FloatArray | None:
    """Draw how far from 0 the estimate must lie in each run: `[N_RUNS]`; None where nothing is tested."""
    from scipy.special import stdtrit

    rng = np.random.default_rng(0)
    n_templates, parts = design.n_templates, design.parts()

    def drawn(expected: float, dof: int) -> Term:
        return expected * rng.chisquare(dof, N_RUNS) / dof, dof

    jobs, residual = [], []
    for side in design.sides:
        cells = side.cell / (side.n_jobs * n_templates)
        if side.n_jobs > 1:
            jobs.append(drawn(side.job / side.n_jobs + cells, side.n_jobs - 1))
        if side.n_jobs > 1 and n_templates > 1:
            residual.append(drawn(cells, (side.n_jobs - 1) * (n_templates - 1)))
    templates = drawn(parts["templates"] + parts["cells"], n_templates - 1) if n_templates > 1 else None
    if not jobs and templates is None:
        return None
    n_jobs = [side.n_jobs for side in design.sides]
    variance, dof = with_tails(*combined(jobs, templates, residual), n_jobs, n_templates)
    return np.asarray(stdtrit(dof, 1.0 - level / 2.0) * np.sqrt(variance), dtype=np.float64)
