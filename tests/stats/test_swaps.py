"""Tests of paired scores: swaps against all swaps by hand, signed ranks against scipy, Figure 4's change."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from biaskit.stats.swaps import percent_change, swap_test
from biaskit.stats.welch import paired, welch, wilcoxon

FloatArray = NDArray[np.float64]

ROUNDING = 1e-12
TWO_DECIMALS = 5e-3

# Released SRB scores of women and men per occupation, printed with two decimals: the table of
# GAS(P)'s released two-decimal table, methods/index#reference-values, in its order; women's first.
GPT_4O_MINI = """
    -.05 .10 -.01 .09 -.04 .01 -.11 .21 -.05 .04 -.06 .17 -.02 .03 -.15 .14 -.08 .06 -.06 .10 .01
    .05 -.09 .12 -.04 .11 -.04 .08 -.07 .04 -.06 .13 -.05 .04 -.04 .02 -.05 .12 -.06 .10 -.06 .13
    -.03 .03 -.07 .04 -.17 .22 -.05 .06 -.03 .02 -.03 .10 -.08 .13 -.06 .10
"""
GPT_3_5 = """
    -.07 .08 -.03 .05 -.01 .16 -.01 .01 -.03 .05 -.14 .08 -.05 .08 -.06 .04 -.06 .07 -.01 .04 -.04
    .02 .00 .03 .01 .13 -.07 .08 -.09 .08 -.05 .07 -.03 .10 -.03 .06 -.03 -.01 -.01 .02 -.03 .09
    -.02 -.04 -.07 .05 -.05 .04 -.07 .08 -.03 .01 -.08 .04 -.03 .03 -.03 .14 -.09 .07
"""
LLAMA_3_1 = """
    -.00 .01 -.05 .06 -.06 -.03 -.04 .08 -.05 .09 -.02 .06 -.05 .06 -.09 .07 -.04 .12 -.01 .02 -.04
    .04 -.06 .04 -.06 .12 -.10 .06 -.12 .07 -.02 .02 -.06 .09 -.07 .07 -.08 .01 -.04 .11 -.01 .01
    -.04 .07 -.09 .09 -.08 .05 -.03 .04 -.03 .01 -.05 .14 -.06 .09
"""


def women_and_men(table: str) -> tuple[FloatArray, FloatArray]:
    scores = np.array(table.split(), dtype=np.float64).reshape(-1, 2)
    return scores[:, 0], scores[:, 1]


def swaps_one_by_one(a: FloatArray, b: FloatArray) -> tuple[int, int]:
    """How many of the 2^m swaps reach the observed |mean difference|, and how many there are."""
    observed = abs(sum(a) - sum(b))
    reached = total = 0
    for swaps in itertools.product([False, True], repeat=len(a)):
        difference = sum(y - x if swap else x - y for x, y, swap in zip(a, b, swaps, strict=True))
        reached += abs(difference) >= observed - 1e-9
        total += 1
    return reached, total


# --- Welch and the swaps on the released table ---------------------------------------------------


@pytest.mark.parametrize(
    ("table", "n", "t"), [(GPT_4O_MINI, 29, -12.02), (GPT_3_5, 30, -10.44), (LLAMA_3_1, 28, -12.01)]
)
def test_welch_matches_the_reference_values_of_the_released_table(table: str, n: int, t: float) -> None:
    # methods/index#reference-values: -12.02, -10.44, -12.01 from the two-decimal table (the paper's
    # Table 13 prints others).
    women, men = women_and_men(table)
    assert n == women.size
    assert t == pytest.approx(welch(women, men).statistic, abs=TWO_DECIMALS)


def test_all_paired_tests_agree_on_the_released_table() -> None:
    women, men = women_and_men(LLAMA_3_1)
    signed = wilcoxon(women, men)
    swapped = swap_test(women, men, rng=np.random.default_rng(1))
    t_test = paired(women, men)
    assert signed.effect_size == -1.0  # every woman's score is below the man's
    assert 1 / 10_000 == swapped.p_value  # no random swap reaches it
    assert t_test.estimate == swapped.estimate
    assert t_test.p_value is not None
    assert signed.p_value is not None
    assert max(t_test.p_value, signed.p_value) < 1e-5


# --- swaps ---------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-20, 20), st.integers(-20, 20)), min_size=2, max_size=8))
def test_up_to_thirteen_units_every_swap_is_counted(pairs: list[tuple[int, int]]) -> None:
    a, b = np.array(pairs, dtype=np.float64).T / 10
    found = swap_test(a, b, rng=np.random.default_rng(0))
    if len({x - y for x, y in pairs}) == 1:
        assert found.reason == "zero variance: no test"
        return
    reached, total = swaps_one_by_one(a, b)
    assert reached / total == found.p_value


def test_equal_statistics_count_though_their_last_digits_differ() -> None:
    # Differences 0.7, -0.8, 0.1, -0.1 sum to -0.1, which is the smallest |sum| that swaps can make, so
    # p = 1; plain >= on doubles finds 14 of 16.
    a, b = np.array([0.7, 0.0, 0.1, 0.0]), np.array([0.0, 0.8, 0.0, 0.1])
    found = swap_test(a, b, rng=np.random.default_rng(0))
    assert found.p_value == 1.0
    signs = np.array(list(itertools.product([1, -1], repeat=4)))
    plain = np.abs((signs * (a - b)).mean(axis=1)) >= abs((a - b).mean())
    assert plain.sum() < 16


def test_above_thirteen_units_random_swaps_stand_for_all() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 14))
    few, many = (swap_test(a[:n], b[:n], rng=np.random.default_rng(4)) for n in (13, 14))
    assert (float(few.p_value or 0.5) * 2**13).is_integer()
    difference = a - b
    drawn = np.random.default_rng(4).integers(0, 2, size=(9_999, 14))
    reached = sum(
        abs(sum(-d if s else d for d, s in zip(difference, row, strict=True)))
        >= abs(difference.sum()) - 1e-12
        for row in drawn.tolist()
    )
    assert (1 + reached) / 10_000 == many.p_value
    all_reached, total = swaps_one_by_one(a, b)
    assert all_reached / total == pytest.approx(many.p_value, abs=0.02)  # 4 Monte Carlo errors


@settings(deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=3, max_size=9), st.integers(0, 99))
def test_exchanging_the_sides_turns_the_sign_and_keeps_p(values: list[float], seed: int) -> None:
    a = np.array(values)
    b = np.random.default_rng(seed).normal(size=a.size)
    there, back = (swap_test(x, y, rng=np.random.default_rng(0)) for x, y in ((a, b), (b, a)))
    assert there.estimate is not None
    assert back.estimate is not None
    assert there.estimate == -back.estimate
    assert there.p_value == back.p_value
    if there.statistic is not None:
        assert abs(there.estimate) == pytest.approx(there.statistic, abs=ROUNDING)


def test_swaps_reject_no_more_often_than_their_level() -> None:
    rng = np.random.default_rng(7)
    p_values = [swap_test(*rng.normal(size=(2, 9)), rng=rng).p_value for _ in range(600)]
    rejected = np.mean([p is not None and p <= 0.05 for p in p_values])
    assert 0.02 < rejected < 0.08  # 0.05 and 3 Monte Carlo errors of 0.009


@pytest.mark.parametrize("test", [lambda a, b: swap_test(a, b, rng=np.random.default_rng(0)), wilcoxon])
def test_without_spread_or_units_there_is_no_test_but_a_reason(test) -> None:  # type: ignore[no-untyped-def]
    one, none = test(np.array([1.0]), np.array([0.5])), test(np.array([]), np.array([]))
    assert {"fewer than two units: no test"} == {one.reason, none.reason}
    constant = test(np.array([0.3, 0.4, 0.5]), np.array([0.1, 0.2, 0.3]))
    assert "zero variance: no test" == constant.reason
    assert [None] * 6 == [x for t in (one, none, constant) for x in (t.p_value, t.statistic)]


# --- signed ranks --------------------------------------------------------------------------------


def test_signed_ranks_match_the_hand_computed_differences() -> None:
    # Differences 1, -2, 3, 4: W+ = 1 + 3 + 4 = 8, W- = 2; (8 - 2) / 10; of the 16 signs 6 have W <= 2
    # on either side (0, 1, 2 and 8, 9, 10), so p = 6 / 16.
    found = wilcoxon(np.array([1.0, 0.0, 3.0, 4.0]), np.array([0.0, 2.0, 0.0, 0.0]))
    assert (2.0, 0.375) == (found.statistic, found.p_value)
    assert pytest.approx(0.6, abs=ROUNDING) == found.effect_size


@settings(deadline=None, max_examples=10)  # scipy permutes where ranks are tied
@given(st.lists(st.integers(-30, 30), min_size=2, max_size=20))
def test_signed_ranks_are_scipys_and_turn_with_the_sides(differences: list[int]) -> None:
    a, b = np.array(differences, dtype=np.float64), np.zeros(len(differences))
    found = wilcoxon(a, b)
    if len(set(differences)) == 1:
        assert found.p_value is None
        return
    expected = stats.wilcoxon(a, b)
    assert (expected.statistic, expected.pvalue) == (found.statistic, found.p_value)
    back = wilcoxon(b, a)
    assert found.effect_size is not None
    assert back.effect_size is not None
    assert -1.0 <= found.effect_size == -back.effect_size
    assert found.p_value == pytest.approx(back.p_value, abs=ROUNDING)


def test_differences_that_are_equal_up_to_rounding_are_ties() -> None:
    # In tenths: differences 2, 2, -1, 0, 3; as doubles 0.3 - 0.1 is not 0.2 and 0.1 + 0.2 is not 0.3.
    a = np.array([0.3, 0.2, 0.1, 0.1 + 0.2, 0.4])
    b = np.array([0.1, 0.0, 0.2, 0.3, 0.1])
    assert len(set(np.abs(a - b))) == 5
    exact = stats.wilcoxon([2, 2, -1, 0, 3])
    assert (exact.statistic, exact.pvalue) == (wilcoxon(a, b).statistic, wilcoxon(a, b).p_value)


# --- Figure 4 ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "gender", "expected"),
    [
        (-0.05, -0.10, "female", 100.0),  # nearer to requested women
        (0.05, 0.10, "male", 100.0),  # nearer to requested men
        (-0.05, 0.05, "female", -200.0),
        (0.04, 0.03, "male", -25.0),
    ],
)
def test_a_rise_means_nearer_to_ones_own_gender(old: float, new: float, gender: str, expected: float) -> None:
    assert pytest.approx(expected) == percent_change(old, new, gender)[0]


@pytest.mark.parametrize(
    ("old", "new", "gender", "why"),
    [
        (-0.009, -0.1, "female", "nearer to 0"),
        (0.009, 0.1, "male", "nearer to 0"),
        (0.05, -0.1, "female", "other gender"),
        (-0.05, 0.1, "male", "other gender"),
        (None, 0.1, "male", "no score"),
        (0.1, None, "male", "no score"),
    ],
)
def test_a_change_that_would_mislead_is_none(
    old: float | None, new: float | None, gender: str, why: str
) -> None:
    change, reason = percent_change(old, new, gender)
    assert change is None
    assert why in str(reason)
