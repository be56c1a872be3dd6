"""Paired scores: McNemar, Tango and swaps against scipy, statsmodels, a search and plain loops."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize_scalar
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.weightstats import DescrStatsW

from biaskit.stats.matched import matched, mcnemar_p, swaps_p, tango

RNG = np.random.default_rng(20261123)


def test_right_and_wrong_answers_are_tested_as_statsmodels_and_scipy_do() -> None:
    for _ in range(500):
        n = int(RNG.integers(2, 200))
        a, b = (RNG.random(n) < RNG.uniform(0, 1) for _ in range(2))
        found = matched(a.astype(float), b.astype(float))
        table = [[int((x & y).sum()) for y in (b, ~b)] for x in (a, ~a)]
        theirs = mcnemar(table, exact=True)
        assert found.kind == "mcnemar"
        assert found.p_value == pytest.approx(theirs.pvalue, abs=1e-12)
        assert found.statistic == theirs.statistic
        only_a, only_b = table[0][1], table[1][0]
        assert found.n_higher == (only_a, only_b)
        if only_a + only_b:
            test = stats.binomtest(only_a, only_a + only_b)
            assert found.p_value == pytest.approx(test.pvalue, abs=1e-12)
            half = stats.binom(only_a + only_b, 0.5)
            beyond = half.cdf(min(only_a, only_b) - 1)
            expected = 2 * beyond + half.pmf(only_a)
            assert found.p_mid == pytest.approx(expected, abs=1e-12)


def test_other_scores_are_tested_as_scipy_and_statsmodels_do() -> None:
    for _ in range(500):
        n = int(RNG.integers(15, 200))
        a, b = RNG.normal(0.1, 2, n), RNG.normal(0, 1, n)
        found, theirs = matched(a, b), stats.ttest_rel(a, b)
        assert found.kind == "paired"
        assert (found.statistic, found.p_value) == pytest.approx((theirs.statistic, theirs.pvalue))
        assert found.ci95 == pytest.approx(tuple(theirs.confidence_interval(0.95)))
        assert found.ci90 == pytest.approx(DescrStatsW(a - b).tconfint_mean(alpha=0.1))


def maximised(b: int, c: int, n: int, delta: float) -> float:
    """The score statistic of Δ, the probability of "b alone" that is likeliest given Δ found by search."""

    def against(q: float) -> float:
        chances = (q + delta, q, 1 - 2 * q - delta)
        return -sum(
            k * math.log(max(p, 1e-300)) for k, p in zip((b, c, n - b - c), chances, strict=True) if k
        )

    low, high = max(0.0, -delta), (1 - delta) / 2
    q = minimize_scalar(against, bounds=(low, high), method="bounded", options={"xatol": 1e-12}).x
    return (b - c - n * delta) / math.sqrt(n * (2 * q + delta * (1 - delta)))


@pytest.mark.parametrize(("b", "c", "n"), [(12, 2, 50), (3, 0, 40), (7, 9, 20), (1, 1, 100), (0, 5, 30)])
def test_the_ends_of_tangos_interval_are_where_the_score_test_ends(b: int, c: int, n: int) -> None:
    for level in (0.95, 0.90):
        z = stats.norm.ppf((1 + level) / 2)
        low, high = tango(b, c, n, level=level)
        assert maximised(b, c, n, low) == pytest.approx(z, abs=2e-3)
        assert maximised(b, c, n, high) == pytest.approx(-z, abs=2e-3)


@pytest.mark.parametrize("n", [1, 2, 30, 20_000])
def test_tangos_interval_is_never_a_point(n: int) -> None:
    z2 = stats.norm.ppf(0.975) ** 2
    assert tango(0, 0, n) == pytest.approx((-z2 / (n + z2), z2 / (n + z2)), rel=1e-6)
    low, high = tango(n, 0, n)
    assert high == 1.0
    assert -1 < low < 1
    assert tango(0, n, n) == pytest.approx((-high, -low))


@pytest.mark.parametrize("wrong", [(-1, 0, 3), (2, 2, 3), (0, 0, 0)])
def test_counts_that_cannot_be_are_refused(wrong: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="no counts"):
        tango(*wrong)


def coverage(n: int, chances: list[tuple[float, float]]) -> list[float]:
    """How often the interval of n pairs holds p_b − p_c, for each (p_b, p_c), over all tables."""
    tables = np.array([(b, c, n - b - c) for b in range(n + 1) for c in range(n + 1 - b)])
    ends = np.array([tango(b, c, n) for b, c, _ in tables.tolist()])
    return [
        float(
            stats.multinomial.pmf(tables, n, [b, c, 1 - b - c])[
                (ends[:, 0] <= b - c) & (b - c <= ends[:, 1])
            ].sum()
        )
        for b, c in chances
    ]


@pytest.mark.parametrize("n", [8, 30])
def test_tangos_interval_holds_the_true_difference(n: int) -> None:
    chances = [(b / 40, c / 40) for b in range(16) for c in range(16)]
    covered = coverage(n, chances)
    assert np.mean(covered) > 0.95
    assert min(covered) > 0.92  # 0.930 at n = 30 is the least on this grid


def by_hand(difference: np.ndarray) -> float:
    observed = abs(difference.sum()) - 1e-9
    signs = itertools.product((1, -1), repeat=len(difference))
    return float(np.mean([abs(np.dot(one, difference)) >= observed for one in signs]))


def test_swaps_are_all_counted() -> None:
    for _ in range(25):
        n = int(RNG.integers(1, 10))
        for difference in (RNG.integers(-3, 4, n) / 4, RNG.normal(0, 1, n), RNG.integers(-1, 2, n) * 1.0):
            assert swaps_p(difference) == pytest.approx(by_hand(difference), abs=1e-12)


def test_of_right_and_wrong_answers_swaps_are_mcnemars_test() -> None:
    for b, c in ((0, 0), (6, 0), (3, 3), (15, 2), (140, 90)):
        difference = np.repeat([1.0, -1.0, 0.0], [b, c, 5])
        assert swaps_p(difference) == pytest.approx(mcnemar_p(b, c)[0], rel=1e-9)


def test_few_samples_that_differ_widen_the_interval() -> None:
    a = np.r_[np.full(50, 0.5), 1.0]
    b = np.full(51, 0.5)
    found = matched(a, b)
    assert found.p_value == 1.0
    assert found.ci95 is not None
    assert found.ci95[0] < -0.02  # t alone would end at −0.01
    assert matched(b, b).ci95 is not None
    assert matched(10 * b, 10 * b).ci95 is None  # of scores without an end, equal ones say nothing


@pytest.mark.parametrize("n", [0, 1])
def test_too_few_scores_have_a_reason(n: int) -> None:
    found = matched(np.full(n, 0.3), np.full(n, 0.4))
    assert found.p_value is None
    assert found.ci95 is None
    assert found.reason


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "mean", "epochs"), [(30, 0.95, 2), (100, 0.97, 3), (100, 0.5, 4), (12, 0.5, 2)]
)
def test_means_over_epochs_claim_nothing_where_nothing_differs(n: int, mean: float, epochs: int) -> None:
    rng = np.random.default_rng(n + epochs)
    rejected = covered = 0
    worlds = 6000
    for _ in range(worlds):
        chance = rng.beta(20 * mean, 20 * (1 - mean), n)
        a, b = (rng.binomial(epochs, chance) / epochs for _ in range(2))
        found = matched(a, b)
        assert found.ci95 is not None
        assert found.p_value is not None
        rejected += found.p_value < 0.05
        covered += found.ci95[0] <= 0 <= found.ci95[1]
    # Each bound is 3.5 standard errors from 5 and 95 %: another processor may draw other worlds.
    assert rejected / worlds < 0.06
    assert covered / worlds > 0.94
