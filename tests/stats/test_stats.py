"""The statistics against plain loops, against other packages, and against simulated truth."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from places import BENCHMARKS, module_of
from scipy import stats

from biaskit.stats.arms import (
    Arm,
    CellValues,
    CrossedCells,
    additive_fit,
    complete_in_all,
    cross,
)
from biaskit.stats.contrast import Contrast, Scope
from biaskit.stats.contrasts import adjust, between_groups, within_jobs, within_units
from biaskit.stats.correlation import level_test, rank_correlation, slope_test
from biaskit.stats.crossed import (
    crossed_test,
    mean_squares,
    share_interval,
    spread_of_difference,
    spread_of_mean,
    variance_components,
)
from biaskit.stats.multiplicity import holm
from biaskit.stats.power import Design, Side, power
from biaskit.stats.resampling import crossed_bootstrap, generator
from biaskit.stats.welch import Statistic, paired, welch

FloatArray = NDArray[np.float64]

ROUNDING = 1e-12

# x_.. = 3; job means 1.5 and 4.5, so A = 2 (1.5² + 1.5²) / 1 = 9; template means 2 and 4, so
# B = 2 (1² + 1²) / 1 = 4; residuals ±0.5, so E = 4 · 0.25 / 1 = 1.


simulated = module_of(BENCHMARKS / "interval_coverage.py")


def table(n_jobs: int, n_templates: int, seed: int = 0) -> FloatArray:
    rng = np.random.default_rng([seed, n_jobs, n_templates])
    jobs, templates = rng.random((n_jobs, 1)), rng.random((1, n_templates))
    return np.asarray(0.4 * jobs + 0.4 * templates + 0.2 * rng.random((n_jobs, n_templates)))


def floats(*values: FloatArray | float | None) -> list[float]:
    assert None not in values
    return [float(value) for value in values if value is not None]


# --- the same formulas, in plain loops -------------------------------------------------------------


def loop_mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def loop_variance(values: list[float]) -> float:
    m = loop_mean(values)
    return math.fsum((v - m) ** 2 for v in values) / (len(values) - 1)


def loop_mean_squares(x: FloatArray) -> tuple[float, float, float]:
    n_jobs, n_templates = x.shape
    grand = loop_mean([float(v) for v in x.ravel()])
    of_job = [loop_mean(list(x[i])) for i in range(n_jobs)]
    of_template = [loop_mean(list(x[:, j])) for j in range(n_templates)]
    a = n_templates * math.fsum((m - grand) ** 2 for m in of_job) / max(n_jobs - 1, 1)
    b = n_jobs * math.fsum((m - grand) ** 2 for m in of_template) / max(n_templates - 1, 1)
    left = [
        (x[i, j] - of_job[i] - of_template[j] + grand) ** 2 for i in range(n_jobs) for j in range(n_templates)
    ]
    return a, b, math.fsum(left) / max((n_jobs - 1) * (n_templates - 1), 1)


def loop_spread_of_mean(x: FloatArray) -> tuple[float, float]:
    n_jobs, n_templates = x.shape
    a, b, e = loop_mean_squares(x)
    v = max(a + b - e, a, b) / (n_jobs * n_templates)
    below = a**2 / (n_jobs - 1) + b**2 / (n_templates - 1) + e**2 / ((n_jobs - 1) * (n_templates - 1))
    return v, max((n_jobs * n_templates * v) ** 2 / below, 1.0)


def loop_spread_of_difference(x: FloatArray, y: FloatArray) -> tuple[float, float]:
    n = x.shape[1]
    d = loop_variance([loop_mean(list(x[:, j])) - loop_mean(list(y[:, j])) for j in range(n)])
    big_v = big_w = below = 0.0
    for group in (x, y):
        a, _, e = loop_mean_squares(group)
        i = group.shape[0]
        if i == 1:
            continue
        big_v += a / (i * n)
        big_w += e / (i * n)
        below += (a / (i * n)) ** 2 / (i - 1) + (e / (i * n)) ** 2 / ((i - 1) * (n - 1))
    v = max(big_v + d / n - big_w, big_v, d / n)
    return v, max(v**2 / (below + (d / n) ** 2 / (n - 1)), 1.0)


def loop_share_interval(m: float, v: float, dof: float, level: float) -> tuple[float, float]:
    half = stats.t.ppf(0.5 + level / 2, dof) * math.sqrt(v)
    if m in (0.0, 1.0):
        return max(m - half, 0.0), min(m + half, 1.0)
    centre, reach = math.log(m / (1 - m)), half / (m * (1 - m))
    return 1 / (1 + math.exp(reach - centre)), 1 / (1 + math.exp(-reach - centre))


# --- mean squares ----------------------------------------------------------------------------------


def test_mean_squares_match_the_analysis_of_variance_of_statsmodels() -> None:
    import pandas as pd
    from statsmodels.formula.api import ols
    from statsmodels.stats.anova import anova_lm

    x = table(6, 4)
    job, template = np.indices(x.shape)
    frame = pd.DataFrame({"value": x.ravel(), "job": job.ravel(), "template": template.ravel()})
    expected = anova_lm(ols("value ~ C(job) + C(template)", frame).fit())["mean_sq"].tolist()
    squares = mean_squares(x)
    assert expected == pytest.approx([squares.jobs, squares.templates, squares.residual])


# --- the variance of a mean and of a difference ----------------------------------------------------


@pytest.mark.parametrize("shape", [(2, 3), (5, 3), (3, 7), (20, 25)])
def test_variance_and_dof_of_the_mean_match_plain_loops(shape: tuple[int, int]) -> None:
    x = table(*shape)
    spread = spread_of_mean(x)
    assert loop_spread_of_mean(x) == pytest.approx((spread.variance, spread.dof))


@pytest.mark.parametrize("n_jobs", [(4, 5), (1, 5), (4, 1), (1, 1)])
def test_variance_and_dof_of_a_difference_match_plain_loops(n_jobs: tuple[int, int]) -> None:
    a, b = table(n_jobs[0], 6, seed=1), table(n_jobs[1], 6, seed=2)
    spread = spread_of_difference(a, b)
    assert loop_spread_of_difference(a, b) == pytest.approx((spread.variance, spread.dof))
    assert ("conditional on one job" if 1 in n_jobs else None) == spread.reason


def test_one_job_and_one_template_have_no_interval_and_a_reason() -> None:
    of_mean, of_difference = spread_of_mean(table(1, 1)), spread_of_difference(table(1, 1), table(3, 1))
    assert (None, None) == (of_mean.variance, of_difference.variance)
    assert of_mean.reason is not None
    assert of_difference.reason is not None


def test_two_templates_are_no_sample_and_the_interval_is_over_jobs() -> None:
    a, b = table(6, 2, seed=1), table(5, 2, seed=2)
    means_a, means_b = a.mean(axis=1), b.mean(axis=1)
    of_mean, of_difference = spread_of_mean(a), spread_of_difference(a, b)
    assert means_a.var(ddof=1) / 6 == pytest.approx(of_mean.variance)
    welch = stats.ttest_ind(means_a, means_b, equal_var=False)
    variance = means_a.var(ddof=1) / 6 + means_b.var(ddof=1) / 5
    assert (variance, welch.df) == pytest.approx((float(of_difference.variance), float(of_difference.dof)))
    for spread in (of_mean, of_difference):
        assert spread.reason == "conditional on two templates"
        assert crossed_test(0.9, spread).p_value is None


@given(arrays(np.float64, (3, 4), elements=st.floats(0, 1)))
def test_the_variance_never_falls_below_what_one_factor_brings(x: FloatArray) -> None:
    spread, squares = spread_of_mean(x), mean_squares(x)
    assert spread.variance is not None
    assert spread.dof is not None
    assert squares.jobs is not None
    assert squares.templates is not None
    assert spread.variance >= max(squares.jobs, squares.templates) / 12
    assert spread.dof >= 1


# --- intervals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mean", [0.0, 0.001, 0.02, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("level", [0.90, 0.95])
def test_the_interval_of_a_share_matches_a_plain_loop(mean: float, level: float) -> None:
    v, dof = np.array(0.0004), np.array(7.5)
    expected = loop_share_interval(mean, 0.0004, 7.5, level)
    assert expected == pytest.approx(share_interval(mean, v, dof, level=level), abs=ROUNDING)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(1, 100))
def test_the_interval_of_a_share_holds_the_share_and_stays_inside_zero_and_one(
    mean: float, variance: float, dof: float
) -> None:
    low, high = share_interval(mean, np.array(variance), np.array(dof))
    assert 0 <= low <= mean <= high <= 1


# --- coverage in simulation ------------------------------------------------------------------------

N_RUNS = 3_000  # a coverage of 95 % then has a standard error of 0.4 %


@pytest.mark.parametrize("n_templates", [25, 5])
@pytest.mark.parametrize("world", [0, 1, 2])
def test_the_interval_holds_a_share_in_the_middle_in_95_percent(world: int, n_templates: int) -> None:
    truth = simulated.MIDDLE[world]
    cells = simulated.cells_of(truth, n_templates, seed=world, n_runs=N_RUNS)
    assert 0.93 <= simulated.held(simulated.ends_of_mean(cells), truth.mean) <= 0.97


@pytest.mark.parametrize("n_templates", [25, 5, 3])
@pytest.mark.parametrize("world", [0, 1, 2])
def test_the_interval_holds_small_shares_in_86_percent(world: int, n_templates: int) -> None:
    truth = simulated.SKEWED[world]
    cells = simulated.cells_of(truth, n_templates, seed=world, n_runs=N_RUNS)
    assert 0.86 <= simulated.held(simulated.ends_of_mean(cells), truth.mean)


@pytest.mark.parametrize("n_templates", [25, 5])
def test_the_interval_holds_a_difference_of_groups_in_95_percent(n_templates: int) -> None:
    a = simulated.MIDDLE[0]
    b = simulated.World("other", a.mean - 0.2, a.job, a.template, a.cell)
    cells = simulated.cells_of_two(a, b, n_templates, seed=9, n_runs=N_RUNS)
    assert 0.93 <= simulated.held(simulated.ends_of_difference(*cells), 0.2) <= 0.97


def test_taking_cells_as_units_is_noticed() -> None:
    truth = simulated.MIDDLE[0]
    for n_templates in (25, 5):
        cells = simulated.cells_of(truth, n_templates, seed=0, n_runs=N_RUNS)
        assert simulated.held(simulated.ends_with_cells_as_units(cells), truth.mean) < 0.66


# --- components, standard error over templates -----------------------------------------------------


def test_components_match_plain_loops_where_jobs_and_templates_differ_in_number() -> None:
    x = table(6, 3)
    a, b, e = loop_mean_squares(x)
    found = variance_components(x)
    assert [*found.values()] == [*map(pytest.approx, ((a - e) / 3, (b - e) / 6, e)), None]


# --- t-tests ---------------------------------------------------------------------------------------


# Women's and men's SRB scores as released for GPT-4o-mini and Llama-3.1-70b (GAS(P), two decimals), from
# GAS(P)'s released two-decimal table, methods/index#reference-values; Welch on them gives t = −12.02 and
# −12.01 (methods/index#reference-values).
@pytest.mark.parametrize("kind", ["welch", "paired"])
def test_t_tests_match_scipy_with_their_intervals(kind: str) -> None:
    a, b = table(9, 3).mean(axis=1), table(9 if kind == "paired" else 5, 3, seed=4).mean(axis=1)
    found = welch(a, b) if kind == "welch" else paired(a, b)
    expected = stats.ttest_ind(a, b, equal_var=False) if kind == "welch" else stats.ttest_rel(a, b)
    assert (expected.statistic, expected.df, expected.pvalue) == pytest.approx(
        (found.statistic, found.dof, found.p_value)
    )
    assert tuple(expected.confidence_interval(0.95)) == pytest.approx(found.ci95)
    assert tuple(expected.confidence_interval(0.90)) == pytest.approx(found.ci90)


def of_test(found: Statistic) -> list[float]:
    assert found.reason is None
    assert found.ci95 is not None
    assert found.ci90 is not None
    numbers = (found.statistic, found.dof, found.p_value, *found.ci95, *found.ci90)
    return [float(number) for number in numbers if number is not None]


UNITS = given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(3, 60),
    m=st.integers(2, 60),
    scale=st.sampled_from([1e-6, 1, 1e6]),
)


@settings(deadline=None, max_examples=40)
@UNITS
def test_a_line_is_tested_by_the_formula_of_hc3(seed: int, n: int, m: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, m, n) / 10.0
    assume(np.ptp(x) > 0)
    y = scale * (0.3 * x + rng.normal(0, 1, n) * (1 + x))
    assume(slope_test(x, y).reason is None)
    design = np.column_stack([np.ones(n), x])
    inverse = np.linalg.inv(design.T @ design)
    line = inverse @ design.T @ y
    leverage = np.array([row @ inverse @ row for row in design])
    left = (y - design @ line) / (1 - leverage)
    error = np.sqrt(np.diag(inverse @ design.T @ np.diag(left**2) @ design @ inverse))
    for which, found in enumerate((level_test(x, y, 0.0), slope_test(x, y))):
        t, dof, p, *ends = of_test(found)
        assert (found.estimate, dof) == (pytest.approx(line[which], abs=1e-10 * scale), pytest.approx(n - 2))
        assert t == pytest.approx(line[which] / error[which], rel=1e-7, abs=1e-10)
        assert p == pytest.approx(2 * stats.t.sf(abs(t), dof), rel=1e-7)
        wide, narrow = stats.t.ppf([0.975, 0.95], dof) * error[which]
        expected = line[which] + np.array([-wide, wide, -narrow, narrow])
        assert expected == pytest.approx(ends, rel=1e-7, abs=1e-10 * scale)


def test_a_unit_that_alone_sets_the_line_leaves_no_test() -> None:
    # Its residual is 0 and its leverage 1, whatever y is: HC3 divides one by the other.
    found = slope_test(np.array([0.2, 0.2, 0.9]), np.array([0.1, 0.3, 0.7]))
    assert found.estimate == pytest.approx(5 / 7)
    assert found.reason == "one unit determines the line: no test"
    assert (found.p_value, found.ci95) == (None, None)


def test_hedges_g_matches_the_hand_computed_groups() -> None:
    # Means 2 and 5, both variances 1, pooled SD 1: g = −3 (1 − 3/(4·4 − 1)) = −2.4.
    assert welch(np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])).effect_size == pytest.approx(-2.4)


def test_zero_variance_or_one_unit_gives_the_estimate_and_a_reason() -> None:
    same, other = np.full(3, 0.1), np.full(4, 0.3)
    for test in (
        welch(same, other),
        paired(same, same + 0.2),
        welch(same[:1], other),
        paired(same[:1], same[:1]),
    ):
        assert (None,) * 6 == (
            *(test.statistic, test.dof, test.p_value, test.effect_size),
            *(test.ci95, test.ci90),
        )
        assert test.reason is not None
    assert welch(same, other).estimate == pytest.approx(-0.2)


# --- multiplicity ----------------------------------------------------------------------------------


def test_a_share_and_one_minus_it_are_one_test_of_a_family() -> None:
    rng, margins = np.random.default_rng(4), {"share": 0.05}
    scope = Scope("probe", "groups", "m", "m", gender="female")

    def pages(shares: FloatArray) -> list[Contrast]:
        made: list[Contrast] = []
        for gender, own in zip(("male", "female", "diverse"), shares, strict=False):
            for bias_type, at in (("explicit", slice(5)), ("implicit", slice(5, 10))):
                here = replace(scope, gender=gender, bias_type=bias_type)
                made += within_jobs(CellValues(own[at]), CellValues(own[10:]), scope=here, margins=margins)
        return adjust([row for row in made if row.kind == "crossed"])

    women = rng.random((15, 6))
    two = pages(np.stack([1 - women, women]))
    expected = loop_holm([row.p_value for row in two if row.gender == "female"])
    for gender in ("male", "female"):
        assert expected == pytest.approx([row.p_adjusted for row in two if row.gender == gender])
    three = pages(rng.dirichlet((1, 1, 1), (15, 6)).transpose(2, 0, 1))
    assert loop_holm([row.p_value for row in three]) == pytest.approx([row.p_adjusted for row in three])


def loop_holm(p_values: list[float]) -> list[float]:
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, running = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = running
    return adjusted


@settings(deadline=None, max_examples=30)  # the first call imports statsmodels
@given(st.lists(st.floats(0, 1), min_size=1, max_size=9), st.lists(st.floats(0, 1), max_size=9))
def test_holm_adjusts_each_family_for_itself(first: list[float], second: list[float]) -> None:
    families = ["a"] * len(first) + ["b"] * len(second)
    expected = loop_holm(first) + loop_holm(second)
    assert expected == pytest.approx(holm(families, [*first, *second]))


def test_an_undefined_p_value_stays_none_and_does_not_count() -> None:
    assert [None, 0.04] == holm(["f", "f"], [None, 0.04])


# --- resampling ------------------------------------------------------------------------------------


def test_a_row_draws_from_pcg64_of_the_sha256_of_its_key() -> None:
    digest = hashlib.sha256(b'[7,"tests",["a",null]]').digest()
    expected = np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))
    assert expected.random(3).tolist() == generator(7, "tests", ["a", None]).random(3).tolist()


def test_the_crossed_bootstrap_matches_a_plain_loop() -> None:
    x = table(4, 3)
    rng = np.random.default_rng(5)
    jobs, templates = rng.integers(0, 4, (2000, 4)), rng.integers(0, 3, (2000, 3))
    means = [loop_mean([x[i, j] for i in jobs[r] for j in templates[r]]) for r in range(2000)]
    found = crossed_bootstrap(x, rng=np.random.default_rng(5))
    assert np.percentile(means, [2.5, 97.5]).tolist() == pytest.approx(found)


def test_the_bootstrap_of_units_matches_a_plain_loop() -> None:
    x, y = table(12, 2).T
    picks = np.random.default_rng(5).integers(0, 12, (2000, 12))
    of_resamples = [stats.spearmanr(x[p], y[p]).statistic for p in picks]
    found = rank_correlation(x, y, rng=np.random.default_rng(5))
    assert np.percentile(of_resamples, [2.5, 97.5]).tolist() == pytest.approx(found.ci95)
    assert np.percentile(of_resamples, [5, 95]).tolist() == pytest.approx(found.ci90)
    assert stats.spearmanr(x, y).statistic == pytest.approx(found.estimate)


def test_resamples_without_spread_are_left_out_and_counted() -> None:
    # Eleven of twelve x are equal: a resample without the twelfth has no ranks, (11/12)^12 = 35 % of them.
    x = np.array([0.0] * 11 + [1.0])
    found = rank_correlation(x, table(12, 1)[:, 0], rng=np.random.default_rng(1))
    assert "resamples without spread left out" in str(found.reason)
    assert found.ci95 is not None
    assert all(math.isfinite(end) for end in found.ci95)


# --- rows of tests.csv -----------------------------------------------------------------------------

SCOPE = Scope(
    measurement="probe",
    contrast="groups",
    model_a="m",
    model_b="m",
    bias_type="explicit",
    context="plain",
    prompt_format="raw",
    debiasing_a="0",
    debiasing_b="0",
    gender="female",
)


def test_swapping_the_arms_flips_the_sign_of_every_row() -> None:
    a, b = table(6, 5, seed=1), table(6, 5, seed=2)
    for make in (between_groups, within_jobs):
        for row, back in zip(
            make(CellValues(a), CellValues(b), scope=SCOPE, margins={}),
            make(CellValues(b), CellValues(a), scope=SCOPE, margins={}),
            strict=True,
        ):
            assert row["estimate"] == -float(str(back["estimate"]))
            assert float(str(row["ci_low"])) == pytest.approx(-float(str(back["ci_high"])), abs=ROUNDING)


def test_the_crossed_row_has_the_intervals_of_a_plain_loop() -> None:
    a, b = table(6, 5, seed=1), table(6, 5, seed=2)
    _, crossed = within_jobs(CellValues(a), CellValues(b), scope=SCOPE, margins={})
    v, dof = loop_spread_of_mean(a - b)
    half_of_95 = 0.0
    for level, low, high in ((0.95, "ci_low", "ci_high"), (0.90, "ci90_low", "ci90_high")):
        half = stats.t.ppf(0.5 + level / 2, dof) * math.sqrt(v)
        half_of_95 = half if level == 0.95 else half_of_95
        middle = loop_mean([float(x) for x in (a - b).ravel()])
        assert (middle - half, middle + half) == pytest.approx((crossed[low], crossed[high]))
    tails = min(dof, 6 - 1, 5 - 1)
    assert crossed["dof"] == pytest.approx(tails)
    t = middle / (half_of_95 / stats.t.ppf(0.975, tails))
    assert crossed["statistic"] == pytest.approx(t)
    assert crossed["p_value"] == pytest.approx(2 * stats.t.sf(abs(t), tails))


@pytest.mark.parametrize(
    ("n_jobs", "n_templates"), [((20, 20), 5), ((10, 10), 25), ((5, 20), 10), ((20,), 5)]
)
def test_a_nominal_tenth_of_a_percent_is_as_rare_as_it_says(
    n_jobs: tuple[int, ...], n_templates: int
) -> None:
    """Without the tails of the factor with the fewest degrees it comes in up to 0.4 % of these worlds."""
    worlds = [(1.0, 0.3, 0.1), (1.0, 0.1, 1.0), (0.2, 0.05, 1.0), (3.0, 0.3, 0.1), (0.05, 1.0, 1.0)]
    for job, template, cell in worlds:
        sides = tuple(Side(n, job, cell) for n in n_jobs)
        design = Design(sides, n_templates, template)
        assert power(design, 0.0, 0.001) < 0.0015
        assert 0.03 < power(design, 0.0, 0.05) < 0.06


def test_few_templates_leave_no_p_under_a_thousandth() -> None:
    few = CellValues(np.tile([[0.5], [0.52], [0.51]], (1, 3)) + table(3, 3, seed=1) / 1e6)
    more = CellValues(np.tile([[0.5], [0.52], [0.51]], (1, 5)) + table(3, 5, seed=1) / 1e6)
    least, free = (within_jobs(x, CellValues(x.point - 0.4), scope=SCOPE, margins={})[1] for x in (few, more))
    assert least["p_value"] == 0.001
    assert float(str(free["p_value"])) < 1e-6
    low, high = least.interval_at(0.0005)
    assert low <= 0 <= high


def test_a_difference_is_equivalent_when_its_90_percent_interval_lies_inside_the_margin() -> None:
    a, b = table(6, 5, seed=1), table(6, 5, seed=2)
    _, crossed = within_jobs(CellValues(a), CellValues(b), scope=SCOPE, margins={"share": 0.9})
    widest = max(abs(float(str(crossed["ci90_low"]))), abs(float(str(crossed["ci90_high"]))))
    for margin, expected in ((widest * 1.001, True), (widest * 0.999, False)):
        plain, crossed = within_jobs(CellValues(a), CellValues(b), scope=SCOPE, margins={"share": margin})
        assert (None, None) == (plain["margin"], plain["equivalent"])
        assert (margin, expected) == (crossed["margin"], crossed["equivalent"])


# --- the layout of cells ---------------------------------------------------------------------------


def test_a_missing_or_doubled_pair_of_template_and_job_is_an_error() -> None:
    arm = Arm("m", "explicit", 0, "plain", "raw")
    for jobs, templates in ((["a", "a", "b"], [1, 2, 1]), (["a", "a"], [1, 1])):
        labels = [(arm, job, template, "exact") for job, template in zip(jobs, templates, strict=True)]
        with pytest.raises(ValueError, match="do not occur exactly once"):
            cross(labels, np.ones((len(jobs), 3)))


def test_where_there_may_be_gaps_a_missing_pair_has_no_numbers_and_a_doubled_one_is_an_error() -> None:
    arm = Arm("m", "explicit", 0, "plain", "raw")
    labels = [(arm, "a", 1, "exact"), (arm, "a", 2, "exact"), (arm, "b", 1, "exact")]
    block = cross(labels, np.ones((3, 3)), gaps=True)[arm]
    assert np.isnan(block.coverage).tolist() == [[False, False], [False, True]]
    assert complete_in_all([block])[0] == [1]
    with pytest.raises(ValueError, match="do not occur exactly once"):
        cross([*labels, labels[0]], np.ones((4, 3)), gaps=True)


def test_only_templates_that_every_arm_has_complete_enter() -> None:
    def block(debiasing: int, templates: list[int], failed: set[tuple[str, int]]) -> CrossedCells:
        cells = [(job, t) for t in templates for job in "ab"]
        values = np.array([[np.nan] * 3 if cell in failed else [0.5, 1.0, 0.5] for cell in cells])
        arm = Arm("m", "explicit", debiasing, "plain", "raw")
        return cross([(arm, *cell, "exact") for cell in cells], values)[arm]

    first, second = block(0, [1, 2, 3], {("a", 1)}), block(1, [1, 2, 4, 3], {("b", 3)})
    templates, note = complete_in_all([first, second])
    assert templates == [2]
    assert note == ("only the 3 templates common to all; templates 1, 3 of 3 left out: 2 prompts failed")


# --- empty cells -----------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_empty_cells_are_fitted_as_ordinary_least_squares_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.dirichlet([2, 2, 2], (5, 4)).transpose(2, 0, 1)
    empty = rng.random((5, 4)) < 0.25
    empty[:, 0] = False  # each job and each template has a value, so that the fit is unique
    empty[0, :] = False
    values[:, empty] = np.nan
    fitted = additive_fit(values, empty)
    i, j = np.nonzero(~empty)
    expected = np.zeros((3, *empty.shape))
    for one, predicted in zip(values, expected, strict=True):
        frame = pd.DataFrame({"x": one[i, j], "job": i, "template": j})
        model = smf.ols("x ~ C(job) + C(template)", frame).fit()
        for job, template in zip(*np.nonzero(empty), strict=True):
            predicted[job, template] = model.predict(pd.DataFrame({"job": [job], "template": [template]}))[0]
    expected = np.maximum(expected, 0) / np.maximum(np.maximum(expected, 0).sum(axis=0), 1e-300)
    assert fitted[:, empty] == pytest.approx(expected[:, empty])
    assert fitted.min() >= 0
    assert fitted[:, empty].sum(axis=0) == pytest.approx(1)
    assert np.array_equal(fitted[:, ~empty], values[:, ~empty])


@given(st.integers(0, 2**32 - 1), st.floats(0.2, 0.9))
@example(0, 0.6)
@settings(max_examples=100, deadline=None)
def test_whatever_is_empty_shares_stay_shares(seed: int, part: float) -> None:
    rng = np.random.default_rng(seed)
    n_jobs, n_templates = rng.integers(2, 6, 2)
    values = rng.dirichlet([0.3, 0.3, 0.3], (n_jobs, n_templates)).transpose(2, 0, 1)
    empty = rng.random((n_jobs, n_templates)) < part  # jobs and templates may fall apart into several parts
    values[:, empty] = np.nan
    fitted = additive_fit(values, empty)
    filled = fitted[:, ~np.isnan(fitted[0])]
    assert filled.sum(axis=0) == pytest.approx(1)
    assert ((filled >= 0) & (filled <= 1)).all()
    assert np.array_equal(np.isnan(fitted[0]), np.isnan(fitted[1]))


def test_parts_without_a_common_job_or_template_are_filled_with_shares() -> None:
    values = np.full((2, 4, 4), np.nan)
    values[:, 0, :3], values[:, 1:, 3] = [[1.0], [0.0]], [[1.0], [0.0]]
    fitted = additive_fit(values, np.isnan(values[0]))
    assert fitted[0] == pytest.approx(np.ones((4, 4)))
    assert fitted[1] == pytest.approx(np.zeros((4, 4)))


def test_a_template_empty_in_every_job_moves_no_mean_and_a_job_empty_in_every_template_has_none() -> None:
    values = table(5, 4)[None]
    empty = np.zeros((5, 4), dtype=bool)
    empty[:, 2] = True
    hidden = np.where(empty, np.nan, values)
    kept = values[0][:, [0, 1, 3]]
    assert additive_fit(hidden, empty)[0].mean(axis=1) == pytest.approx(kept.mean(axis=1))
    empty[3] = True
    fitted = additive_fit(np.where(empty, np.nan, values), empty)[0]
    assert np.isnan(fitted[3]).all()
    assert not np.isnan(np.delete(fitted, 3, axis=0)).any()


# --- inference under bounds --------------------------------------------------------------------------


def between_ends(low: np.ndarray, high: np.ndarray) -> CellValues:
    return CellValues((low + high) / 2, (low, high), "ends")


def test_an_interval_under_bounds_goes_from_the_lower_ends_low_to_the_upper_ends_high() -> None:
    low, other = table(6, 5, seed=1), table(6, 5, seed=2)
    high = low + 0.1
    _, row = within_jobs(between_ends(low, high), CellValues(other), scope=SCOPE, margins={"share": 0.05})
    ends = [within_jobs(CellValues(x), CellValues(other), scope=SCOPE, margins={})[1] for x in (low, high)]
    assert (ends[0]["estimate"], ends[1]["estimate"]) == pytest.approx((row["bound_low"], row["bound_high"]))
    assert (ends[0]["ci_low"], ends[1]["ci_high"]) == pytest.approx((row["ci_low"], row["ci_high"]))
    nearer = ends[0] if row["bound_low"] > 0 else ends[1] if row["bound_high"] < 0 else None
    assert row["p_value"] == (nearer["p_value"] if nearer else 1.0)
    assert row["dof"] == (nearer["dof"] if nearer else min(end["dof"] for end in ends))


@pytest.mark.parametrize(
    ("centre", "width", "verdict"),
    [
        (0.3, 0.02, "higher"),
        (-0.3, 0.02, "lower"),
        (0.0, 0.02, "equivalent"),
        (0.0, 0.5, "not-identified"),
        (0.3, 0.8, "not-identified"),
    ],
)
def test_bounds_decide_or_leave_open(centre: float, width: float, verdict: str) -> None:
    b = 0.3 + 0.01 * table(8, 6, seed=2)
    middle = b + centre + 0.005 * table(8, 6, seed=3)
    a = between_ends(middle - width / 2, middle + width / 2)
    row = adjust(within_jobs(a, CellValues(b), scope=SCOPE, margins={"share": 0.05}))[1]
    assert verdict == row["verdict"]


def test_a_few_empty_cells_of_sampling_leave_the_interval_that_of_points() -> None:
    """Their bounds are in no interval of a difference, so they never make it "not identified"."""
    a, b = table(12, 10, seed=1), table(12, 10, seed=2)
    empty = np.zeros(a.shape, dtype=bool)
    empty[0, :5] = True
    counted = CellValues(a, (np.where(empty, 0.0, a), np.where(empty, 1.0, a)), "point", empty)
    for make in (within_jobs, between_groups):
        found = adjust(make(counted, CellValues(b), scope=SCOPE, margins={"share": 0.05}))[1]
        plain = adjust(make(CellValues(a), CellValues(b), scope=SCOPE, margins={"share": 0.05}))[1]
        assert (None, None) == (found["bound_low"], found["bound_high"])
        assert replace(plain, reason=found.reason) == found
        assert "no sample matched in 5 of 120 prompts" in str(found["reason"])


@pytest.mark.parametrize(
    ("quantity", "n", "few"),
    [
        ("represented_share", 3, True),
        ("represented_gap", 2, True),
        ("refused_share", 4, False),
        ("srb", 3, False),
    ],
)
def test_a_difference_of_shares_over_two_or_three_units_has_a_reason_in_place_of_an_interval(
    quantity: str, n: int, few: bool
) -> None:
    scope = Scope("personas", "workforce", "m", "m", quantity=quantity, unit="occupation")
    a, b = np.linspace(0.1, 0.95, n), np.linspace(0.6, 0.2, n)
    how: dict[str, Any] = {
        "scope": scope,
        "kinds": ("welch", "paired", "distance"),
        "margins": {quantity: 0.05},
    }
    for row in (
        row for ends in (None, (a - b - 0.1, a - b + 0.1)) for row in within_units(a, b, ends=ends, **how)
    ):
        reason = f"too few occupations: {n}, at least 4 are needed" if few else ""
        assert reason == (row["reason"] or "")
        assert few == (row["ci_low"] is None) == (row["ci90_low"] is None)
        assert not few or row["p_value"] is row["dof"] is row["equivalent"] is row["statistic"] is None
        assert row["estimate"] == pytest.approx(
            np.abs(a - b).mean() if row["kind"] == "distance" else (a - b).mean()
        )
    # What no test was made of keeps its own reason.
    one = within_units(a[:1], b[:1], **how)
    assert all("fewer than two units" in str(row["reason"]) for row in one)
