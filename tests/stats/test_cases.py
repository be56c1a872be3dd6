"""Groups within the same cases: against crossed mean squares, by hand, and in worlds of known truth."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from biaskit.stats.cases import ONE_CASE, ONE_PERSON, Decisions, welch_degrees, within_cases
from biaskit.stats.crossed import crossed_test, spread_of_difference, spread_of_mean, with_tails
from biaskit.stats.ratios import equal_groups, impact_ratios

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

import decision_worlds as worlds

FloatArray = NDArray[np.float64]


def crossed(n_people: tuple[int, int], n_cases: int, **more: NDArray[np.int64]) -> Decisions:
    """People of two groups, each decided on in every case."""
    person, case = (code.ravel() for code in np.indices((sum(n_people), n_cases)))
    group = (person >= n_people[0]).astype(np.int64)
    return Decisions(group, np.zeros(len(group), np.int64), person, case, **more)


@given(st.integers(2, 6), st.integers(2, 6), st.integers(3, 7), st.integers(0, 10_000))
def test_a_full_table_has_the_spread_of_a_crossed_difference(i: int, k: int, j: int, seed: int) -> None:
    x = np.random.default_rng(seed).random((i + k, j))
    found = within_cases(crossed((i, k), j), x.ravel(), 0, 1)
    expected = spread_of_difference(x[:i], x[i:])
    assert found is not None
    assert found.estimate == pytest.approx(x[:i].mean() - x[i:].mean(), abs=1e-12)
    assert found.spread.variance == pytest.approx(expected.variance, abs=1e-12)
    # The degrees are the house's, or those of people where these are fewer.
    least = with_tails(expected.variance, expected.dof, (i, k), 1)[1]  # type: ignore[arg-type]
    assert found.spread.dof == pytest.approx(least, rel=1e-9)
    assert found.spread.n_templates == pytest.approx(j)
    assert (found.n_cases, found.n_people, found.n_left_out) == (j, i + k, 0)


@given(st.integers(2, 6), st.integers(3, 7), st.integers(0, 10_000))
def test_pairs_have_the_spread_of_the_mean_of_two_p_minus_one(i: int, j: int, seed: int) -> None:
    p = np.random.default_rng(seed).random((i, j))
    rows = crossed((i, i), j, chosen_of=2, paired=True)  # type: ignore[arg-type]
    found = within_cases(rows, np.concatenate([p.ravel(), 1 - p.ravel()]), 0, 1)
    expected = spread_of_mean(2 * p - 1)
    assert found is not None
    assert found.estimate == pytest.approx((2 * p - 1).mean(), abs=1e-12)
    assert found.spread.variance == pytest.approx(expected.variance, abs=1e-12)
    assert found.spread.dof == pytest.approx(min(float(expected.dof), i - 1), rel=1e-9)  # type: ignore[arg-type]


def test_people_vary_within_both_attributes_where_each_cell_has_three() -> None:
    # Blocks are case × other: six people of each group, three of each race; races differ by 10 in all.
    rng = np.random.default_rng(1)
    x = rng.random((12, 5))
    other = np.repeat(np.arange(12) % 2, 5)
    far = x + 10 * (np.arange(12) % 2)[:, None]
    rows = Decisions(crossed((6, 6), 5).group, other, *_codes(12, 5))
    near, apart = (within_cases(rows, values.ravel(), 0, 1) for values in (x, far))
    assert near is not None
    assert apart is not None
    assert near.spread.variance == pytest.approx(apart.spread.variance, rel=1e-9)
    plain = within_cases(crossed((6, 6), 5), far.ravel(), 0, 1)
    assert plain is not None
    assert float(plain.spread.variance) > 100 * float(near.spread.variance)  # type: ignore[arg-type]


def _codes(n_people: int, n_cases: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    person, case = (code.ravel() for code in np.indices((n_people, n_cases)))
    return person, case


def test_one_person_of_each_cell_does_not_halve_the_variance() -> None:
    # In blocks of one woman and one man half of what tells people apart would go with the block's mean.
    x = np.random.default_rng(2).random((4, 30)) + np.array([0.0, 5.0, 1.0, 9.0])[:, None]
    person, case = _codes(4, 30)
    rows = Decisions(person // 2, person % 2, person, case)
    found = within_cases(rows, x.ravel(), 0, 1)
    assert found is not None
    assert found.spread.variance == pytest.approx(spread_of_difference(x[:2], x[2:]).variance, rel=1e-9)


def test_people_who_do_not_repeat_leave_cases_by_hand() -> None:
    # Three postings: differences of means 1, −1 and 3, weights 2·2/4, 1·1/2 and 2·1/3.
    group = np.array([0, 0, 1, 1, 0, 1, 0, 0, 1])
    case = np.array([0, 0, 0, 0, 1, 1, 2, 2, 2])
    x = np.array([2.0, 4, 1, 3, 0, 1, 3, 5, 1])
    found = within_cases(Decisions(group, 0 * group, np.arange(9), case), x, 0, 1)
    weights = np.array([1.0, 1 / 2, 2 / 3])
    weights /= weights.sum()
    d = np.array([1.0, -1.0, 3.0])
    mean = (weights * d).sum()
    assert found is not None
    assert found.estimate == pytest.approx(mean)
    assert found.spread.variance == pytest.approx(3 / 2 * np.square(weights * (d - mean)).sum())
    assert found.n_cases == 3


def test_a_case_without_one_group_is_left_out_and_counted() -> None:
    group, case = np.array([0, 1, 0, 1, 0, 0]), np.array([0, 0, 1, 1, 2, 2])
    found = within_cases(Decisions(group, 0 * group, np.arange(6), case), np.arange(6.0), 0, 1)
    assert found is not None
    assert (found.n_cases, found.n_left_out, found.used.tolist()) == (2, 1, [True] * 4 + [False] * 2)
    assert within_cases(Decisions(case, 0 * case, np.arange(6), case), np.arange(6.0), 0, 1) is None


def test_fixed_jobs_do_not_widen_and_many_jobs_stand_for_cases() -> None:
    x = np.random.default_rng(3).random((8, 32))
    of_jobs = np.where(np.arange(8)[:, None] < 4, 1, -1) * (np.arange(32) // 8 - 1.5)
    person, case = _codes(8, 32)
    few = Decisions(person // 4, 0 * person, person, case, case // 8)
    same, other = (within_cases(few, values.ravel(), 0, 1) for values in (x, x + of_jobs))
    assert same is not None
    assert other is not None
    assert other.spread.variance == pytest.approx(same.spread.variance)
    assert other.spread.n_templates == pytest.approx(4 * 7 + 1)
    many = within_cases(Decisions(person // 4, 0 * person, person, case, case // 4), x.ravel(), 0, 1)
    assert many is not None
    assert many.spread.n_templates == pytest.approx(8)


@pytest.mark.parametrize(("n_people", "n_cases", "reason"), [((1, 5), 4, ONE_PERSON), ((3, 3), 1, ONE_CASE)])
def test_one_person_or_one_case_has_an_estimate_alone(
    n_people: tuple[int, int], n_cases: int, reason: str
) -> None:
    rows = crossed(n_people, n_cases)
    found = within_cases(rows, np.random.default_rng(4).random(rows.n), 0, 1)
    assert found is not None
    assert (found.spread.variance, found.spread.reason) == (None, reason)
    assert crossed_test(found.estimate, found.spread).p_value is None


def test_degrees_of_people_are_those_of_welch_at_equal_variances() -> None:
    assert welch_degrees([(1.0, 10.0), (1.0, 10.0)]) == pytest.approx(18)
    assert welch_degrees([(1.0, 3.0), (1.0, 20.0)]) == pytest.approx(
        (1 / 3 + 1 / 20) ** 2 / (1 / 18 + 1 / 7600)
    )


# --- ratios ------------------------------------------------------------------------------------------


def counts(selected: list[int], n: list[int]) -> tuple[Decisions, FloatArray]:
    """Rows of groups, so many of each selected; no case and nobody twice."""
    group = np.repeat(np.arange(len(n)), n)
    x = np.concatenate([np.arange(size) < chosen for chosen, size in zip(selected, n, strict=True)])
    return Decisions(group, 0 * group, np.arange(len(group)), None), x.astype(float)


def test_ratios_are_raw_and_their_bounds_by_hand() -> None:
    rows, x = counts([60, 40], [100, 100])
    found = impact_ratios(rows, x, np.array([True, True]), counted=True)
    assert found.ratio.tolist() == pytest.approx([1, 2 / 3])
    # Two groups: the studentized range is √2 t, so a bound is one of a 90 % interval of log rates.
    l_k = np.log(np.array([60.5, 40.5]) / 101)
    variance = sum(
        100 / 99 * s * (1 - s / 100) / 100**2 / (q**2) for s, q in ((60, 60.5 / 101), (40, 40.5 / 101))
    )
    from scipy.stats import t

    reach = t.ppf(0.95, 190) * variance**0.5  # degrees are rounded down to two digits
    low, high = np.exp(l_k[1] - l_k[0] - reach), np.exp(l_k[1] - l_k[0] + reach)
    assert [found.low[1], found.high[1]] == pytest.approx([low, high], rel=1e-3)
    assert found.high[0] == 1.0
    assert found.verdict(1, np.array([100.0, 100.0])) == "not-decided"


def test_few_selected_are_no_certainty() -> None:
    rows, x = counts([30, 0, 0], [40, 40, 40])
    found = impact_ratios(rows, x, np.ones(3, bool), counted=True)
    assert found.ratio.tolist() == [1, 0, 0]
    assert 0.02 < found.high[1] < 0.8
    assert found.verdict(1, np.full(3, 40.0)) == "below"
    few = impact_ratios(*counts([8, 0], [10, 40]), np.ones(2, bool), counted=True)
    assert few.high[1] < 0.8
    assert few.verdict(1, np.array([10.0, 40.0])) == "not-decided"  # the highest has under ten selected
    nobody = impact_ratios(*counts([0, 0], [10, 10]), np.ones(2, bool), counted=True)
    assert nobody.reason == "nobody selected: no ratio"


def test_a_category_left_out_is_never_the_highest() -> None:
    rows, x = counts([2, 50, 40], [2, 100, 100])
    found = impact_ratios(rows, x, np.array([False, True, True]), counted=True)
    assert np.isnan(found.ratio[0])
    assert found.ratio[1:].tolist() == pytest.approx([1, 0.8])


def test_a_group_in_which_nobody_repeats_beside_others_who_do() -> None:
    # One of four is chosen in each of 20 cases; of the first group each is met once, of the others ten times.
    group, case = np.tile(np.arange(4), 20), np.repeat(np.arange(20), 4)
    person = np.where(group == 0, np.arange(80), 100 + 10 * group + case % 2)
    x = (group == case * 7 % 5 % 4).astype(float)
    rows = Decisions(group, 0 * group, person, case, None, 4)
    assert (impact_ratios(rows, x, np.ones(4, bool), counted=True).low > 0).all()


def test_equal_groups_by_luck_against_brute_force() -> None:
    found = impact_ratios(*counts([125] * 8, [1000] * 8), np.ones(8, bool), counted=True)
    equal = equal_groups(found, np.random.default_rng(1))
    assert equal is not None
    drawn = np.random.default_rng(2).binomial(1000, 0.125, (20_000, 8))
    smallest = drawn.min(axis=1) / drawn.max(axis=1)
    assert equal[0] == pytest.approx(np.median(smallest), abs=0.01)
    assert equal[1] == pytest.approx(np.quantile(smallest, 0.05), abs=0.01)
    assert equal[2] > 0.99


# --- worlds, reduced ---------------------------------------------------------------------------------

MADE = dict(worlds.worlds())


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("gap null 20 names 32 cases sd 0.15 case×sex 0.0", 8),
        ("gap null 8 names 8 cases sd 0.3 case×sex 0.3", 8),
        ("gap 20 % missing", 8),
        ("gap one of 8 25 a group", 9),
        ("gap postings 100×8 confounded 0.8 again 0.0", 8),
        ("gap pairs 5×8 sd 0.15", 8),
    ],
)
def test_worlds_in_which_nothing_differs(name: str, most: float) -> None:
    found = MADE[name](300)
    assert found["found"] <= most
    assert 0.9 <= found["sd"] <= 1.15


@pytest.mark.parametrize(("name", "least"), [("gap effect 0.4 20 names 32 cases case×sex 0.0", 95)])
def test_a_difference_of_eight_points_is_found(name: str, least: float) -> None:
    found = MADE[name](100)
    assert found["found"] >= least
    assert found["held"] >= 90


def test_verdicts_of_ratios() -> None:
    at_four_fifths: Mapping[str, float] = MADE["ratio 0.8 of 1/4, rows 300"](300)
    assert at_four_fifths["false below"] <= 8
    assert at_four_fifths["false above"] <= 8
    assert MADE["ratio 0.6 4×10 P"](60)["below"] >= 85
