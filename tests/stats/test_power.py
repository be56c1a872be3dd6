"""What a design shows is what its own test finds in designs drawn anew."""

from __future__ import annotations

import math
from dataclasses import asdict

import numpy as np
import pytest
from scipy.special import stdtr, stdtrit
from scipy.stats import nct

from biaskit.stats.contrast import Contrast, Scope
from biaskit.stats.crossed import spread_of_difference, spread_of_mean
from biaskit.stats.power import Design, Side, difference_found, power, smallest_difference

N_RUNS = 3_000
PROMISED = 0.05
"""How far the share of runs may lie from what was said."""

DEMO = (Side(20, 0.0053, 0.0030), Side(20, 0.0050, 0.0021))
"""Two groups as in the demo's explicit run, rounded."""


def design(n_jobs: int, n_templates: int, noise: float = 0.0, template: float = 0.003) -> Design:
    sides = tuple(Side(n_jobs, side.job, side.cell + noise) for side in DEMO)
    return Design(sides, n_templates, template)


def found(of: Design, difference: float) -> float:
    """The share of drawn designs in which the crossed test of their difference finds one above 0."""
    rng = np.random.default_rng(7)
    between = rng.normal(0.0, math.sqrt(of.template), (N_RUNS, 1, of.n_templates))
    arms = []
    for side, shift in zip(of.sides, (difference + between, 0.0), strict=True):
        jobs = rng.normal(0.0, math.sqrt(side.job), (N_RUNS, side.n_jobs, 1))
        cells = rng.normal(0.0, math.sqrt(side.cell), (N_RUNS, side.n_jobs, of.n_templates))
        arms.append(shift + jobs + cells)
    spread = spread_of_difference(*arms)
    assert spread.variance is not None
    assert spread.dof is not None
    estimate = arms[0].mean(axis=(1, 2)) - arms[1].mean(axis=(1, 2))
    p = 2.0 * stdtr(spread.dof, -abs(estimate) / np.sqrt(spread.variance))
    return float(((p < 0.05) & (estimate > 0)).mean())


@pytest.mark.parametrize("noise", [0.0, 0.02], ids=["exact", "10 samples"])
@pytest.mark.parametrize("n_templates", [3, 10, 25])
@pytest.mark.parametrize("n_jobs", [6, 20])
def test_the_promised_difference_is_found_in_four_runs_of_five(
    n_jobs: int, n_templates: int, noise: float
) -> None:
    of = design(n_jobs, n_templates, noise)
    promised = smallest_difference(of)
    assert promised is not None
    assert found(of, promised) == pytest.approx(0.8, abs=PROMISED)


@pytest.mark.parametrize("template", [0.0, 0.05], ids=["alike", "much apart"])
def test_the_promise_holds_whatever_varies_between_templates(template: float) -> None:
    of = design(10, 5, template=template)
    promised = smallest_difference(of)
    assert promised is not None
    assert found(of, promised) == pytest.approx(0.8, abs=PROMISED)


def test_without_a_difference_the_test_finds_one_at_its_level() -> None:
    assert power(design(20, 25), 0.0) == pytest.approx(0.05, abs=0.02)


@pytest.mark.parametrize("n", [3, 8, 63])
def test_one_number_of_each_unit_is_the_power_of_the_t_test(n: int) -> None:
    of = Design((Side(n, 0.02, 0.01),), 1, 0.0)
    for difference in (0.05, 0.1, 0.3):
        shift, reach = difference / math.sqrt(0.03 / n), stdtrit(n - 1, 0.975)
        exact = nct.sf(reach, n - 1, shift) + nct.cdf(-reach, n - 1, shift)
        assert power(of, difference) == pytest.approx(exact, abs=0.01)


def test_one_side_is_the_variance_of_a_mean() -> None:
    of = Design((Side(8, 0.01, 0.02),), 6, 0.03)
    rng = np.random.default_rng(3)
    values = (
        rng.normal(0.0, math.sqrt(0.01), (N_RUNS, 8, 1))
        + rng.normal(0.0, math.sqrt(0.03), (N_RUNS, 1, 6))
        + rng.normal(0.0, math.sqrt(0.02), (N_RUNS, 8, 6))
    )
    assert of.variance() == pytest.approx(float(values.mean(axis=(1, 2)).var()), rel=0.1)
    spread = spread_of_mean(values)
    assert spread.variance is not None
    assert spread.variance.mean() == pytest.approx(of.variance(), rel=0.1)
    assert sum(of.parts().values()) == of.variance()


def test_more_of_anything_shows_less() -> None:
    base = smallest_difference(design(6, 5, 0.02))
    larger = [design(12, 5, 0.02), design(6, 10, 0.02), design(6, 5, 0.01)]
    assert base is not None
    assert all((found := smallest_difference(of)) is not None and found < base for of in larger)


def test_a_design_without_a_test_shows_nothing() -> None:
    one = Design((Side(1, 0.1, 0.1), Side(1, 0.1, 0.1)), 1, 0.1)
    assert power(one, 1.0) == 0.0
    assert smallest_difference(one) is None
    # Two templates and two jobs that differ by all that shares can.
    assert smallest_difference(Design((Side(2, 0.2, 0.2), Side(2, 0.2, 0.2)), 2, 0.2)) is None


@pytest.mark.parametrize(("n_templates", "shown"), [(4, False), (5, True)])
def test_few_templates_have_no_small_p(n_templates: int, shown: bool) -> None:
    of = Design((Side(20, 0.001, 0.001),), n_templates, 0.001)
    assert power(of, 0.9, 0.0011) > 0.9
    assert (power(of, 0.9, 0.0009) > 0.0) == shown


def test_where_nothing_varies_any_difference_shows() -> None:
    assert power(Design((Side(5, 0.0, 0.0),), 5, 0.0), 0.01) == 1.0
    assert power(Design((Side(5, 0.0, 0.0),), 5, 0.0), 0.0) == 0.0


@pytest.mark.parametrize("n", [5, 12, 40])
def test_what_a_run_says_would_be_found_is_found_in_about_four_of_five_runs(n: int) -> None:
    rng, n_runs, spread = np.random.default_rng(n), 8_000, 0.02
    sides = asdict(Scope("probe", "models", "b", "a"))
    errors = rng.normal(0.0, spread, (2, n_runs, n)).std(axis=-1, ddof=1) / np.sqrt(n)
    reach = errors * stdtrit(n - 1, 0.975)
    said = []
    for half in reach[0].tolist():
        said.append(difference_found(Contrast(**sides, kind="paired", dof=n - 1, ci_low=-half, ci_high=half)))
    found = float(np.mean(rng.normal(said, spread / np.sqrt(n)) > reach[1]))
    assert 0.74 <= found <= 0.81
