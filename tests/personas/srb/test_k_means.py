"""Clusters of marked words: the words, k, the count of occupations, and what is kept.

See methods/srb#clusters.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biaskit.measures.personas.srb.cluster_chance import chance_of, differs_by_half, is_kept
from biaskit.measures.personas.srb.k_means import (
    Clustering,
    choose_k,
    find_clusters,
    k_grid,
    words_to_cluster,
)
from biaskit.records import ALL
from biaskit.stats.arrays import BoolArray

# methods/index#reference-values: the released run's women:men occupations in GPT-3.5, GPT-4o-mini and
# Llama-3.1 of the 36 clusters
# that the released notebook keeps.
RELEASED = """
30:0 29:0 28:0  4:0 15:1 3:0  7:0 13:0 7:0  8:0 18:0 11:1  6:0 7:0 8:0  3:0 4:1 6:0  5:0 6:2 3:1
3:0 10:0 13:0  5:0 17:0 8:0  5:0 4:1 6:2  3:0 4:1 4:0  3:0 15:0 8:0  4:0 4:2 4:1  6:0 3:0 10:0
4:0 5:0 5:1  3:0 1:3 3:0  7:0 15:0 16:0  3:0 1:4 1:4  3:0 12:1 9:1  3:0 4:1 4:0  9:1 8:0 6:0
6:1 9:0 13:0  5:1 6:1 8:0  3:1 3:2 2:1  2:1 0:3 2:5  2:1 2:11 1:3  3:2 4:1 6:1  5:10 0:12 1:11
0:4 0:4 0:10  0:3 1:2 4:0  0:3 3:0 6:4  0:5 0:3 3:1  0:9 0:7 0:8  0:30 0:29 0:28  0:3 0:4 0:5
0:3 1:2 0:3
"""


def released_counts() -> list[list[tuple[int, int]]]:
    pairs = [tuple(map(int, pair.split(":"))) for pair in RELEASED.split()]
    return [[(f, m) for f, m in pairs[i : i + 3]] for i in range(0, len(pairs), 3)]


def angle(degrees: float) -> list[float]:
    return [math.cos(math.radians(degrees)), math.sin(math.radians(degrees))]


FOUR = {"care": 0.0, "caring": 10.0, "engine": 180.0, "engines": 190.0}
"""Two pairs of words, seen from the origin."""
FOUR_VECTORS = np.array([angle(degrees) for degrees in FOUR.values()])
FOUR_LISTS = {
    ("a", "nurse", "female"): ["care", "caring", "engine"],
    ("a", "nurse", "male"): ["engines"],
    ("a", "nurse", "nonbinary"): ["care", "engine"],
    ("a", "cook", "female"): ["caring"],
    ("a", "cook", "male"): ["engine", "engines"],
    ("a", "clerk", "female"): ["care"],
    ("a", "clerk", "male"): [],
    ("b", "nurse", "female"): [],
    ("b", "nurse", "male"): ["engine"],
}
# By hand. care: women of nurse, cook and clerk in a. engine: women of nurse, men of nurse and cook in a,
# men of nurse in b. In b neither has three pairs. engine comes first: four lists hold it, three hold
# care.
FOUR_COUNTS = {
    ("a", "engine engines"): (1, 2),
    ("b", "engine engines"): (0, 1),
    ("all", "engine engines"): (1, 3),
    ("a", "care caring"): (3, 0),
    ("b", "care caring"): (0, 0),
    ("all", "care caring"): (3, 0),
}


def four(**options: Any) -> Clustering:
    return find_clusters(FOUR_LISTS, list(FOUR), FOUR_VECTORS, **options)


def counts_of(found: Clustering) -> dict[tuple[str, str], tuple[int | None, int | None]]:
    return {(r.model, r.words): (r.n_occupations_female, r.n_occupations_male) for r in found.rows}


# --- words -----------------------------------------------------------------------------------------


def test_short_words_leave_but_dr_and_md_and_pronouns_of_three_letters_stay() -> None:
    lists = {("m", "nurse", "female"): ["she", "he", "d", "dr", "md", "ms", "zoe", "care", "video"]}
    assert words_to_cluster(lists, drop_words={"video", "zoe"}) == ("care", "dr", "md", "she")


# --- k ---------------------------------------------------------------------------------------------


def test_the_grid_runs_from_two_to_one_less_than_the_words() -> None:
    # methods/srb#choosing-k by hand for the paper's 2,424 words: 2421 / 19 = 127.42.
    grid = k_grid(2424)
    assert (2, 129, 257, 384) == grid[:4]
    assert (20, 2423) == (len(grid), grid[-1])
    assert (2, 3) == k_grid(4)
    assert (2, 3, 4, 5) == k_grid(6)
    assert k_grid(22) == tuple(range(2, 22))


def test_the_rules_choose_the_highest_value_and_the_largest_rise() -> None:
    curve = [(2, 0.10), (5, 0.40), (8, 0.45), (11, 0.20)]
    assert 8 == choose_k(curve, "max")
    assert 5 == choose_k(curve, "largest-gain")


def test_the_silhouette_is_that_of_the_hand_computed_four_words() -> None:
    """Two pairs 10° apart on opposite sides: chords 2 sin 5°, and 2 or 2 sin 85° to the other pair."""
    near, far = 2 * math.sin(math.radians(5)), (2 + 2 * math.sin(math.radians(85))) / 2
    found = four()
    assert [2, 3] == [row.k for row in found.curve]
    assert found.curve[0].silhouette == pytest.approx(1 - near / far, abs=1e-12)
    # k = 3 cuts one pair: its words are alone and count 0, the other pair keeps its value.
    assert found.curve[1].silhouette == pytest.approx((1 - near / far) / 2, abs=1e-3)
    assert [True, False] == [row.chosen for row in found.curve]


# --- counting --------------------------------------------------------------------------------------


def test_clusters_hold_the_hand_counted_occupations_most_lists_first() -> None:
    found = four()
    assert list(FOUR_COUNTS.items()) == list(counts_of(found).items())
    assert [1, 1, 1, 2, 2, 2] == [row.cluster for row in found.rows]
    shares = {(row.model, row.words): row.female_share for row in found.rows}
    assert shares["all", "engine engines"] == 0.25
    assert shares["a", "care caring"] == 1.0


# --- the keep rule ---------------------------------------------------------------------------------


def half(f: int, m: int, *, released: bool = False) -> bool:
    return bool(differs_by_half(np.array(f), np.array(m), released=released))


def kept(counts: Sequence[tuple[int, int]], *, released: bool = False) -> bool:
    f, m = np.array(counts).T
    return bool(is_kept(f, m, released=released))


def test_the_released_rule_is_lopsided_and_ours_is_not() -> None:
    """methods/srb#keep-rule: F 6, M 4 passes, F 4, M 6 does not."""
    assert half(6, 4, released=True)
    assert not half(4, 6, released=True)
    assert half(6, 4)
    assert half(4, 6)
    mirrored = [[(m, f) for f, m in cluster] for cluster in released_counts()]
    # Turned round, three of the 36 would be lost: travels (3:2), award (3:2) and ties (6:4).
    assert 33 == sum(kept(cluster, released=True) for cluster in mirrored)
    assert 36 == sum(kept(cluster) for cluster in mirrored)


@given(st.integers(0, 63), st.integers(0, 63))
def test_exact_is_symmetric_and_keeps_what_released_keeps(f: int, m: int) -> None:
    assert half(f, m) == half(m, f)
    assert half(f, m) >= half(f, m, released=True)
    assert half(f, m) == (f != m and abs(f - m) >= 0.5 * min(f, m))
    assert half(f, m, released=True) == (abs(f - m) / max(1, m) >= 0.5)


def test_every_model_must_pass_with_three_pairs_and_directions_may_differ() -> None:
    assert kept([(3, 0), (0, 3)])
    assert not kept([(3, 0), (2, 0)])  # two pairs
    assert not kept([(3, 0), (3, 3)])  # no difference
    assert not kept([(3, 0), (7, 5)])  # 2 is less than half of 5


# --- the chance level ------------------------------------------------------------------------------


def held_at_random(n_occupations: int, n_clusters: int = 40, seed: int = 1) -> BoolArray:
    """Lists of women and of men that hold clusters by the same coin."""
    return np.random.default_rng(seed).random((n_clusters, 2, n_occupations, 2)) < 0.4


def test_swaps_of_four_occupations_come_to_what_counting_all_of_them_says() -> None:
    """All 16 swaps of one model's four occupations, one by one."""
    held = np.array([[[[1, 0], [1, 0], [1, 1], [1, 0]]], [[[1, 0], [0, 1], [0, 0], [1, 0]]]], dtype=np.bool_)
    found = chance_of(held, rng=np.random.default_rng(0), n_swaps=20_000)
    for i, cluster in enumerate(held):
        (lists,) = cluster
        observed = abs(int(lists[:, 0].sum()) - int(lists[:, 1].sum()))
        every = []
        for coins in itertools.product((False, True), repeat=4):
            turned = [pair[::-1] if coin else pair for coin, pair in zip(coins, lists.tolist(), strict=True)]
            every.append(tuple(sum(pair[k] for pair in turned) for k in (0, 1)))
        p = np.mean([abs(f - m) >= observed for f, m in every])
        assert found.p_value[i, 0] == pytest.approx(p, abs=0.02)
        assert found.kept[i, 0] == pytest.approx(np.mean([kept([pair]) for pair in every]), abs=0.02)


def test_lists_that_hold_clusters_by_the_same_coin_are_kept_as_often_as_their_swaps() -> None:
    p_values, places = [], []
    for seed in range(60):
        held = held_at_random(12, seed=seed)
        found = chance_of(held, rng=np.random.default_rng(seed))
        p_values += found.p_value[:, :2].ravel().tolist()
        counts = held.sum(axis=2)
        places.append(int(is_kept(counts[..., 0], counts[..., 1]).sum()) > np.percentile(found.n_kept, 95))
    assert np.mean(np.array(p_values) <= 0.05) <= 0.05
    assert np.mean(places) <= 0.12  # 60 worlds at 5 %: 7 at the most


def test_the_row_of_all_models_is_judged_by_the_half_rule_alone() -> None:
    """care 3:0 and 0:0, engine 1:2 and 0:1: none kept (model b), both differ by half when summed."""
    found = four()
    assert [False] * 4 == [row.kept for row in found.rows if row.model != ALL]
    assert [True] * 2 == [row.kept for row in found.rows if row.model == ALL]
    assert (0, 1.0) == (found.n_kept, found.share_passing)
    alone = find_clusters({k: v for k, v in FOUR_LISTS.items() if k[0] == "a"}, list(FOUR), FOUR_VECTORS)
    assert [True, True] == [row.kept for row in alone.rows if row.model == "a"]
    assert 2 == alone.n_kept


# --- what is undefined -----------------------------------------------------------------------------


def test_fewer_than_four_words_with_a_vector_give_a_reason_for_every_model() -> None:
    found = find_clusters(FOUR_LISTS, list(FOUR)[:3], FOUR_VECTORS[:3])
    assert "3 words to cluster; at least 4 are needed" == found.reason
    assert ["a", "b", ALL] == [row.model for row in found.rows]
    assert {found.reason} == {row.reason for row in found.rows}
    assert {(None, None, None)} == {(r.cluster, r.n_occupations_female, r.kept) for r in found.rows}
    assert (None, None, None, ()) == (found.n_clusters, found.n_kept, found.share_passing, found.curve)
    assert ("engines",) == found.without_vector


def test_words_without_a_direction_are_named_and_left_out() -> None:
    lists = {**FOUR_LISTS, ("b", "cook", "male"): ["absent", "nought", "unknown"]}
    vectors = np.vstack([FOUR_VECTORS, [[0.0, 0.0], [np.nan, 1.0]]])
    found = find_clusters(lists, [*FOUR, "nought", "unknown"], vectors)
    assert ("absent", "nought", "unknown") == found.without_vector
    assert "3 of 7 words have no vector: absent nought unknown" in found.notes
    assert FOUR_COUNTS == counts_of(found)


def test_more_clusters_than_distinct_vectors_are_not_compared_and_warn_nobody() -> None:
    """Six words on three vectors: k = 4 and 5 do not come out, so they have no silhouette."""
    words = ["aaa", "bbb", "ccc", "ddd", "eee", "fff"]
    vectors = np.array([angle(degrees) for degrees in (0, 0, 90, 90, 200, 200)])
    lists = {("a", "nurse", "female"): words}
    found = find_clusters(lists, words, vectors)
    assert [2, 3, 4, 5] == [row.k for row in found.curve]
    assert [False, False, True, True] == [row.silhouette is None for row in found.curve]
    assert found.curve[1].chosen
    assert found.curve[1].silhouette == pytest.approx(1.0, abs=1e-6)
    given_k = find_clusters(lists, words, vectors, k=5)
    assert 3 == given_k.n_clusters
    assert "k = 5 gave only 3 clusters: some words share their vectors" in given_k.notes


# --- categories and notes --------------------------------------------------------------------------


def test_a_cluster_has_the_categories_of_its_words_most_first() -> None:
    mapping = {"engine": "work", "care": "warmth", "caring": "family life", "yoga": "sports"}
    found = four(categories=mapping)
    assert {"engine engines": "work", "care caring": "family life; warmth"} == {
        row.words: row.category for row in found.rows
    }
    assert "1 words of the categories are not among the words: yoga" in found.notes
    assert {None} == {row.category for row in four().rows}
    lists, vectors = {("a", "nurse", "female"): [*FOUR, "cared"]}, np.vstack([FOUR_VECTORS, angle(5)])
    most = find_clusters(lists, [*FOUR, "cared"], vectors, k=2, categories={**mapping, "cared": "warmth"})
    assert {"work", "warmth; family life"} == {row.category for row in most.rows}


# --- nothing but the words, their directions and the lists matters -----------------------------------

many = st.lists(st.integers(0, 359), min_size=4, max_size=30)


def _spread(angles: Sequence[int]) -> tuple[list[str], np.ndarray, dict[tuple[str, str, str], list[str]]]:
    words = [f"word{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(len(angles))]
    lists: dict[tuple[str, str, str], list[str]] = {}
    for i, word in enumerate(words):
        for j in range(1 + i % 3):
            gender = ("female", "male")[(i + j) % 2]
            lists.setdefault(("ab"[i % 2], f"job {j}", gender), []).append(word)
    return words, np.array([angle(degrees) for degrees in angles]), lists


@settings(max_examples=15, deadline=None)
@given(many, st.randoms(use_true_random=False))
def test_order_and_length_of_vectors_change_nothing(angles: list[int], random: Any) -> None:
    words, vectors, lists = _spread(angles)
    # Powers of two and single precision lose nothing that the unit rows would show.
    single = vectors.astype(np.float32)
    expected = find_clusters(lists, words, single)
    order = list(range(len(words)))
    random.shuffle(order)
    scale = np.array([2.0 ** random.randint(-4, 4) for _ in order])[:, None]
    shuffled = {key: random.sample(value, len(value)) for key, value in lists.items()}
    found = find_clusters(shuffled, [words[i] for i in order], single[order] * scale)
    assert expected == found


@settings(max_examples=15, deadline=None)
@given(many)
def test_counts_are_those_of_a_plain_loop_and_every_word_is_in_one_cluster(angles: list[int]) -> None:
    words, vectors, lists = _spread(angles)
    found = find_clusters(lists, words, vectors)
    if found.reason:
        assert 1 == len(set(angles))
        return
    models = list(dict.fromkeys(model for model, _, _ in lists))
    assert sorted(words) == sorted(w for r in found.rows if r.model == ALL for w in r.words.split())
    for row in found.rows:
        for gender, n in (("female", row.n_occupations_female), ("male", row.n_occupations_male)):
            inside = models if row.model == ALL else [row.model]
            assert n == _plain_count(lists, inside, gender, row.words.split())


def _plain_count(
    lists: Mapping[tuple[str, str, str], Sequence[str]], models: list[str], gender: str, words: list[str]
) -> int:
    n = 0
    for (model, _, whose), marked in lists.items():
        if model in models and whose == gender and any(word in marked for word in words):
            n += 1
    return n


# --- threads ---------------------------------------------------------------------------------------


def test_where_the_starts_decide_between_two_k_it_is_said() -> None:
    vectors = np.random.default_rng(3).normal(size=(60, 6))
    words = [f"word{i:02}" for i in range(60)]
    lists = {("a", "nurse", "female"): words, ("a", "nurse", "male"): words}
    found = find_clusters(lists, words, vectors)
    tried = [row for row in found.curve if row.silhouette_low is not None]
    (chosen,) = [row for row in tried if row.chosen]
    assert 3 == len(tried)
    for row in tried:
        assert row.silhouette_low <= row.silhouette <= row.silhouette_high  # type: ignore[operator]
    rivals = [r for r in tried if not r.chosen and r.silhouette_high >= chosen.silhouette_low]  # type: ignore[operator]
    assert bool(rivals) == any("the random starts of k-means decide" in note for note in found.notes)
    assert rivals, "noise has no right number of clusters"
