"""Mass, coverage and share, held against an enumeration of every text.

See methods/probabilities#mass-coverage-share.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from biaskit.errors import RunError
from biaskit.records import CellShares, PromptCell
from biaskit.runs.score_rows import as_json
from biaskit.runs.shares.cells import cell_shares

CELL = PromptCell("tiny", "explicit", 1, "nurse", "female-dominated", None, 0, "plain", "raw")
GROUPS = ("male", "female", "diverse")
CLOSE = 1e-12


def row(*target_words: tuple[str, str, float | None, Sequence[int] | None]) -> dict[str, Any]:
    """A stored row of (group, text, log-probability, token ids)."""
    names = ("group", "text", "log_prob", "token_ids")
    return {
        "key": "a" * 32,
        "estimator": "exact",
        "target_words": [dict(zip(names, e, strict=True)) for e in target_words],
    }


def plain(*target_words: tuple[str, float]) -> dict[str, Any]:
    """A row of (group, probability) with one token each."""
    return row(*((g, f" w{i}", math.log(p), (i,)) for i, (g, p) in enumerate(target_words)))


# --- by hand ----------------------------------------------------------------------------------------


def test_a_mass_is_the_sum_over_its_target_words_and_a_share_is_its_part_of_the_coverage() -> None:
    found = cell_shares(
        CELL, plain(("male", 0.1), ("female", 0.2), ("male", 0.05), ("diverse", 0.05)), GROUPS
    )
    assert pytest.approx((0.15, 0.2, 0.05), abs=CLOSE) == found.masses
    assert pytest.approx(0.4, abs=CLOSE) == found.coverage
    assert pytest.approx((0.375, 0.5, 0.125), abs=CLOSE) == found.shares
    assert ("exact", None) == (found.estimator, found.reason)


def test_a_cell_without_a_row_has_no_numbers_and_says_why() -> None:
    found = cell_shares(CELL, None, GROUPS)
    assert (None, None, None, None) == (found.estimator, found.masses, found.coverage, found.shares)
    assert found.reason


def test_an_impossible_target_word_counts_nothing() -> None:
    found = cell_shares(CELL, row(("male", " He", None, (1,)), ("female", " She", -1.0, (2,))), GROUPS)
    assert (0.0, 1.0, 0.0) == found.shares
    assert pytest.approx(math.exp(-1), abs=CLOSE) == found.coverage


def test_where_everything_is_impossible_there_is_no_share_but_a_reason() -> None:
    found = cell_shares(CELL, row(("male", " He", None, (1,)), ("female", " She", None, (2,))), GROUPS)
    assert found.shares is None
    assert ((0.0, 0.0, 0.0), 0.0) == (found.masses, found.coverage)
    assert found.reason


def test_shares_have_all_digits_at_the_least_masses_and_none_are_made_of_nothing() -> None:
    def at(log: float) -> CellShares:
        words = ("male", " He", log, (1,)), ("female", " She", log + math.log(3), (2,))
        return cell_shares(CELL, row(*words), GROUPS)

    assert 0.0 < math.exp(-740) < 1e-320, "three digits"
    assert pytest.approx((0.25, 0.75, 0.0), abs=CLOSE) == at(-740).shares
    assert 0.0 == math.exp(-2000)
    assert (0.0, (0.0, 0.0, 0.0), None) == (at(-2000).coverage, at(-2000).masses, at(-2000).shares)
    assert "no probability on any target word" == at(-2000).reason


@pytest.mark.parametrize(("total", "allowed"), [(1 + 5e-7, True), (1 + 2e-6, False), (1.5, False)])
def test_a_coverage_over_one_is_an_error_past_rounding(total: float, allowed: bool) -> None:
    stored = plain(("male", total / 2), ("female", total / 2))
    if allowed:
        assert 1.0 == cell_shares(CELL, stored, GROUPS).coverage
    else:
        with pytest.raises(RunError, match=r"above 1") as refused:
            cell_shares(CELL, stored, GROUPS)
        assert "a" * 32 in str(refused.value)


# --- prefixes ---------------------------------------------------------------------------------------


def test_a_prefix_in_another_group_counts_without_what_extends_it() -> None:
    found = cell_shares(
        CELL, row(("male", " He", math.log(0.5), (7,)), ("female", " Her", math.log(0.2), (7, 8))), GROUPS
    )
    assert pytest.approx((0.3, 0.2, 0.0), abs=CLOSE) == found.masses


def test_tokens_decide_what_extends_what_not_letters() -> None:
    found = cell_shares(
        CELL, row(("male", " He", math.log(0.5), (7,)), ("female", " Her", math.log(0.2), (9,))), GROUPS
    )
    assert pytest.approx((0.5, 0.2, 0.0), abs=CLOSE) == found.masses


def test_with_a_word_boundary_a_longer_word_is_no_part_of_a_shorter_one() -> None:
    # " He" already means that the word ends there: " Her" is outside it, " He-man" is inside.
    stored = row(
        ("male", " He", math.log(0.4), (7,)),
        ("female", " Her", math.log(0.2), (7, 8)),
        ("diverse", " He-man", math.log(0.1), (7, 9)),
    )
    assert (
        pytest.approx((0.3, 0.2, 0.1), abs=CLOSE)
        == cell_shares(CELL, stored, GROUPS, word_boundary="word").masses
    )
    assert pytest.approx((0.1, 0.2, 0.1), abs=CLOSE) == cell_shares(CELL, stored, GROUPS).masses


def test_with_a_word_boundary_a_chain_counts_its_longest_form_once() -> None:
    # " Non-b" ends before a letter: it holds no " Non-binary", but " Non" holds both.
    stored = row(
        ("male", " Non", math.log(0.5), (7,)),
        ("female", " Non-b", math.log(0.1), (7, 9, 2)),
        ("diverse", " Non-binary", math.log(0.3), (7, 9, 2, 4)),
    )
    found = cell_shares(CELL, stored, GROUPS, word_boundary="word")
    assert pytest.approx((0.1, 0.1, 0.3), abs=CLOSE) == found.masses
    assert pytest.approx(0.5, abs=CLOSE) == found.coverage


# --- other estimators than the exact one -------------------------------------------------------------


def told_by_texts(stored: dict[str, Any]) -> dict[str, Any]:
    """The same row as a server without token ids gives it: the texts of the tokens instead."""
    texts = ("He", "r", "Man", "kind", "-", "x", "y", "z")
    own = [{**e, "token_ids": None, "tokens": [texts[i % 8] for i in e["token_ids"]]}
           for e in stored["target_words"]]  # fmt: skip
    return {**stored, "estimator": "echo", "target_words": own}


@pytest.mark.parametrize(
    "stored",
    [
        row(("male", " He", math.log(0.5), (0,)), ("female", " Her", math.log(0.2), (0, 1))),
        row(("male", " Man", math.log(0.5), (2,)), ("male", " Mankind", math.log(0.2), (2, 3))),
        row(
            ("male", " a", math.log(0.5), (5,)),
            ("female", " ab", math.log(0.3), (5, 6)),
            ("diverse", " abc", math.log(0.2), (5, 6, 7)),
        ),
        row(("male", " He", math.log(0.5), (0,)), ("female", " Her", math.log(0.2), (5, 1))),
    ],
    ids=["another group", "its own group", "three", "no prefix"],
)
def test_texts_of_tokens_stand_in_for_ids(stored: dict[str, Any]) -> None:
    exact, echo = cell_shares(CELL, stored, GROUPS), cell_shares(CELL, told_by_texts(stored), GROUPS)
    assert exact.masses == echo.masses
    assert ("echo", None, None) == (echo.estimator, echo.share_ends, echo.matched)


def test_without_ids_or_texts_for_all_nothing_is_taken_off() -> None:
    target_words = (
        ("diverse", " x", -2.0, (5,)),
        ("male", " He", -1.0, (0,)),
        ("female", " Her", -1.5, (0, 1)),
    )
    stored = told_by_texts(row(*target_words))
    del stored["target_words"][0]["tokens"]
    found = cell_shares(CELL, stored, GROUPS)
    assert pytest.approx((math.exp(-1.0), math.exp(-1.5), math.exp(-2.0))) == found.masses


def listed(*entries: tuple[str, float], k: int = 2) -> dict[str, Any]:
    stored = row(
        ("male", " He", None, None), ("female", " She", None, None), ("diverse", " They", None, None)
    )
    lists = {"": [[token, math.log(p)] for token, p in entries]}
    return {**stored, "estimator": "top-k", "k": k, "listed": lists}


def test_a_list_of_tokens_gives_points_and_bounds() -> None:
    found = cell_shares(CELL, listed((" He", 0.5), (" She", 0.3)), GROUPS, contrast=("female", "male"))
    assert pytest.approx((0.5, 0.3, 0.0)) == found.masses
    assert pytest.approx((0.625, 0.375, 0.0)) == found.shares
    assert found.share_ends is not None
    # R = 0.2 and p_2 = 0.3: only They is unlisted.
    assert (
        pytest.approx((0.5, 0.625)),
        pytest.approx((0.3, 0.375)),
        pytest.approx((0.0, 0.2)),
    ) == found.share_ends
    assert pytest.approx((0.8, 1.0)) == found.coverage_ends
    # Already the largest difference is negative, so there the third group is as large as R allows.
    assert pytest.approx((-0.2 / 0.8, -0.2)) == found.difference_ends
    assert ("top-k", pytest.approx(0.8), None) == (found.estimator, found.coverage, found.reason)
    assert cell_shares(CELL, listed((" He", 0.5)), GROUPS).difference_ends is None


def test_a_list_that_holds_no_target_word_has_a_coverage_and_no_share() -> None:
    found = cell_shares(CELL, listed((" a", 0.5), (" b", 0.3)), GROUPS, contrast=("female", "male"))
    assert (None, "no target word listed") == (found.shares, found.reason)
    assert ((0.0, 0.0, 0.0), 0.0) == (found.masses, found.coverage)
    assert pytest.approx((0.0, 0.2)) == found.coverage_ends
    assert ((0.0, 1.0),) * 3 == found.share_ends


def test_what_is_known_of_the_tokens_narrows_the_bounds() -> None:
    stored = listed((" The", 0.5), (" She", 0.3), (" He", 0.2))
    assert pytest.approx(0.5) == cell_shares(CELL, stored, GROUPS).share_ends[2][1]  # type: ignore[index]
    stored["target_words"][2]["token_ids"] = [9]
    assert pytest.approx(0.0) == cell_shares(CELL, stored, GROUPS).share_ends[2][1]  # type: ignore[index]
    stored["target_words"][2] |= {"token_ids": None, "tokens": [" Th", "ey"]}
    assert pytest.approx(0.0) == cell_shares(CELL, stored, GROUPS).share_ends[2][1]  # type: ignore[index]


# --- by enumeration ---------------------------------------------------------------------------------

DEPTH = 4
TOKENS = range(3)
Sequences = Mapping[tuple[int, ...], str]


@st.composite
def worlds(draw: st.DrawFn) -> tuple[dict[tuple[int, ...], float], dict[tuple[int, ...], str]]:
    """The probability of every text of `DEPTH` tokens, and listed sequences with their groups."""
    weights = draw(st.lists(st.integers(0, 20), min_size=len(TOKENS) ** DEPTH, max_size=len(TOKENS) ** DEPTH))
    assume(sum(weights) > 0)
    texts = dict(zip(itertools.product(TOKENS, repeat=DEPTH), weights, strict=True))
    total = sum(weights)
    lengths = st.integers(1, DEPTH).flatmap(lambda n: st.tuples(*[st.sampled_from(TOKENS)] * n))
    listed = draw(st.dictionaries(lengths, st.sampled_from(GROUPS), min_size=1, max_size=8))
    return {text: weight / total for text, weight in texts.items()}, listed


def probability(texts: Mapping[tuple[int, ...], float], start: tuple[int, ...]) -> float:
    return math.fsum(p for text, p in texts.items() if text[: len(start)] == start)


def stored_row(texts: Mapping[tuple[int, ...], float], listed: Sequences) -> dict[str, Any]:
    logs = {s: probability(texts, s) for s in listed}
    return row(
        *(
            (group, " " + "".join(map(str, s)), math.log(logs[s]) if logs[s] else None, s)
            for s, group in listed.items()
        )
    )


@given(worlds())
def test_masses_are_those_of_every_text_counted_under_its_longest_listed_beginning(
    world: tuple[dict[tuple[int, ...], float], dict[tuple[int, ...], str]],
) -> None:
    texts, listed = world
    expected = dict.fromkeys(GROUPS, 0.0)
    for text, p in texts.items():
        beginnings = [text[:n] for n in range(DEPTH, 0, -1) if text[:n] in listed]
        if beginnings:
            expected[listed[beginnings[0]]] += p
    found = cell_shares(CELL, stored_row(texts, listed), GROUPS)
    covered = sum(expected.values())
    assert found.masses is not None
    assert pytest.approx(tuple(expected.values()), abs=1e-9) == found.masses
    assert pytest.approx(covered, abs=1e-9) == found.coverage
    if covered > 0:
        assert found.shares is not None
        assert pytest.approx(tuple(m / covered for m in expected.values()), abs=1e-9) == found.shares
        assert pytest.approx(1.0, abs=1e-12) == math.fsum(found.shares)
    else:
        assert found.shares is None


@given(worlds())
def test_swapping_the_male_and_the_female_set_swaps_the_shares(
    world: tuple[dict[tuple[int, ...], float], dict[tuple[int, ...], str]],
) -> None:
    texts, listed = world
    other = {"male": "female", "female": "male", "diverse": "diverse"}
    stored = stored_row(texts, listed)
    swapped = stored_row(texts, {s: other[group] for s, group in listed.items()})
    one, two = cell_shares(CELL, stored, GROUPS), cell_shares(CELL, swapped, GROUPS)
    assert one.coverage == two.coverage
    assert (one.shares is None) == (two.shares is None)
    if one.shares is not None and two.shares is not None:
        assert (one.shares[1], one.shares[0], one.shares[2]) == two.shares


@given(worlds(), st.randoms(use_true_random=False))
def test_the_order_of_the_target_words_in_a_row_is_irrelevant(world: Any, random: Any) -> None:
    texts, listed = world
    names = list(listed)
    random.shuffle(names)
    one = cell_shares(CELL, stored_row(texts, listed), GROUPS)
    two = cell_shares(CELL, stored_row(texts, {s: listed[s] for s in names}), GROUPS)
    assert one.masses is not None
    assert pytest.approx(one.masses, abs=1e-15) == two.masses


@example(-600.0, -601.0, -140.0)
@given(st.floats(-800, 0), st.floats(-3000, 0), st.floats(-800, -1))
def test_a_common_factor_on_every_probability_leaves_the_shares(a: float, b: float, shift: float) -> None:
    assume(math.exp(a) + math.exp(b) <= 1)
    one = cell_shares(CELL, row(("male", " He", a, (1,)), ("female", " She", b, (2,))), GROUPS)
    two = cell_shares(
        CELL, row(("male", " He", a + shift, (1,)), ("female", " She", b + shift, (2,))), GROUPS
    )
    assert (one.shares is None, two.shares is None) == (one.coverage == 0, two.coverage == 0)
    if one.shares and two.shares:
        assert pytest.approx(one.shares, abs=1e-9) == two.shares


@pytest.mark.parametrize(("given_value", "expected"), [(-2000.5, -2000.5), (0.0, 0.0), (-math.inf, None)])
def test_an_impossible_log_probability_is_stored_as_null(given_value: float, expected: float | None) -> None:
    assert expected == as_json(given_value)
