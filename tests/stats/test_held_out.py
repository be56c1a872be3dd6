"""Areas under the curve: against loops, at chance where nothing differs, and never from a text itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from fakes.told_apart import World, occupation
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.special import logit

from biaskit.stats.held_out import (
    PRIOR_WORDS,
    Sample,
    across,
    area_interval,
    area_under_curve,
    p_of_area,
    strata_with_both,
    within,
)

SCORES = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=12)
Counts = np.ndarray


def sample(counts: Counts, is_first: Sequence[bool], strata: Sequence[str], n_shuffles: int = 3) -> Sample:
    return Sample.shuffled(csr_matrix(counts), is_first, strata, np.random.default_rng(7), n_shuffles)


# --- against loops -------------------------------------------------------------------------------------


def by_pairs(first: Sequence[float], second: Sequence[float], tie: float = 0.0) -> float:
    won = [1.0 if a - b > tie else 0.5 if a - b >= -tie else 0.0 for a in first for b in second]
    return sum(won) / len(won)


@given(SCORES, SCORES)
def test_the_area_is_the_part_of_pairs_won(first: list[float], second: list[float]) -> None:
    area = area_under_curve(first, second)
    assert area is not None
    assert area == pytest.approx(by_pairs(first, second), abs=1e-12)
    assert area_under_curve(second, first) == pytest.approx(1 - area, abs=1e-12)


def test_without_a_pair_there_is_no_area() -> None:
    assert area_under_curve([], [1.0]) is None
    assert area_under_curve([1.0], []) is None


def shares_of(counts: Counts) -> Counts:
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))


def weights_of(counts: Counts, labels: Counts, strata: Sequence[str], kept: Sequence[int]) -> Counts:
    """Fitted anew, as the docstring has it: scale of all documents, difference of the kept ones."""
    shares = shares_of(counts)
    mean = shares.mean(axis=0)
    weights = np.zeros(counts.shape[1])
    for stratum in set(strata):
        one, other = (
            [i for i in kept if strata[i] == stratum and labels[i] == is_first] for is_first in (True, False)
        )
        if one and other:
            size = len(one) * len(other) / (len(one) + len(other))
            weights += size * (shares[one].mean(axis=0) - shares[other].mean(axis=0))
    return np.where(mean > 0, weights / (mean + PRIOR_WORDS / max(counts.sum(), 1)), 0.0)


def fitted_anew(counts: Counts, labels: Counts, strata: Sequence[str]) -> float:
    shares, won = shares_of(counts), []
    for a in np.flatnonzero(labels):
        for b in np.flatnonzero(~labels):
            if strata[a] == strata[b]:
                kept = [i for i in range(len(labels)) if i not in (a, b)]
                weights = weights_of(counts, labels, strata, kept)
                won.append(by_pairs([shares[a] @ weights], [shares[b] @ weights], 1e-9))
    return float(np.mean(won))


DOCUMENTS = st.lists(
    st.tuples(
        st.lists(st.integers(0, 3), min_size=4, max_size=4), st.booleans(), st.sampled_from(("p", "q"))
    ),
    min_size=4,
    max_size=9,
)


@settings(max_examples=60, deadline=None)
@given(DOCUMENTS)
def test_a_pair_left_out_is_the_fit_without_it(documents: list[tuple[list[int], bool, str]]) -> None:
    places = list(strata_with_both([d[1] for d in documents], [d[2] for d in documents]))
    if not places:
        return
    counts = np.array([documents[i][0] for i in places])
    labels = np.array([documents[i][1] for i in places])
    strata = [documents[i][2] for i in places]
    one = sample(counts, labels.tolist(), strata)
    found = within(one)
    assert found.area == pytest.approx(fitted_anew(counts, labels, strata), abs=1e-12)
    for b, area in enumerate(found.taught):
        assert area == pytest.approx(fitted_anew(counts, one.labels[:, 1 + b], strata), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(DOCUMENTS, DOCUMENTS)
def test_what_is_carried_over_is_the_fit_of_the_other_sample(
    teaching: list[tuple[list[int], bool, str]], judged: list[tuple[list[int], bool, str]]
) -> None:
    made = []
    for documents in (teaching, judged):
        places = list(strata_with_both([d[1] for d in documents], [d[2] for d in documents]))
        if not places:
            return
        counts, labels, strata = zip(*(documents[i] for i in places), strict=True)
        made.append((np.array(counts), np.array(labels), strata))
    (taught, by, of), (seen, told, prompts) = made
    one, other = sample(taught, by.tolist(), of), sample(seen, told.tolist(), prompts)
    found, shares = across(one, other), shares_of(seen)

    def loop(labels: Counts, judged: Counts) -> float:
        weights, won = weights_of(taught, labels, of, range(len(labels))), []
        for a in np.flatnonzero(judged):
            for b in np.flatnonzero(~judged):
                if prompts[a] == prompts[b]:
                    won.append(by_pairs([shares[a] @ weights], [shares[b] @ weights], 1e-9))
        return float(np.mean(won))

    assert found.area == pytest.approx(loop(by, told), abs=1e-12)
    assert found.taught[0] == pytest.approx(loop(one.labels[:, 1], told), abs=1e-12)
    assert found.judged[0] == pytest.approx(loop(by, other.labels[:, 1]), abs=1e-12)


def test_labels_are_shuffled_within_their_prompt() -> None:
    strata = ["p"] * 6 + ["q"] * 4
    is_first = [True, True, True, True, False, False, True, False, False, False]
    one = sample(np.ones((10, 2)), is_first, strata, 50)
    assert one.labels[:, 0].tolist() == is_first
    assert set(one.labels[:6].sum(axis=0).tolist()) == {4}
    assert set(one.labels[6:].sum(axis=0).tolist()) == {1}
    assert len({tuple(column) for column in one.labels.T.tolist()}) > 10


def test_p_is_the_larger_of_both_shuffles_and_two_sided() -> None:
    far, near = np.array([0.9, 0.5, 0.45]), np.array([0.5, 0.52, 0.48])
    assert p_of_area(0.1, far, near) == p_of_area(0.9, near, far) == 2 / 4
    assert p_of_area(0.9, near, near) == 1 / 4


def test_the_interval_over_occupations_is_even_on_the_logit_scale() -> None:
    areas = [0.7, 0.85, 0.9, 0.95]
    low, high = area_interval(areas) or (0.0, 0.0)
    mean = float(np.mean(areas))
    reach = 3.182446305284263 * np.std(areas, ddof=1) / 2 / (mean * (1 - mean))  # t of 3 degrees of freedom
    assert logit([low, high]) == pytest.approx([logit(mean) - reach, logit(mean) + reach])
    narrow = area_interval(areas, level=0.9)
    assert narrow is not None
    assert low < narrow[0] < mean < narrow[1] < high
    assert area_interval([0.7]) is None
    assert area_interval([0.7, 0.7]) is None


# --- a text teaches nothing of itself ------------------------------------------------------------------


def test_words_of_one_text_alone_tell_nothing() -> None:
    rng = np.random.default_rng(3)
    n, areas = 20, []
    for _ in range(40):
        junk = np.kron(np.eye(2 * n), np.ones((1, 3))) * rng.integers(1, 4, size=(2 * n, 3 * 2 * n))
        shared = rng.poisson(1.0, size=(2 * n, 30))
        is_first = rng.permutation([True, False] * n)
        one = sample(np.hstack([junk, shared]), is_first.tolist(), ["p"] * (2 * n), 1)
        areas.append(within(one).area)
        # The same weights with the text itself among those that teach tell everything: the check can fail.
        assert across(one, one).area > 0.9
    assert abs(np.mean(areas) - 0.5) < 3 * np.std(areas) / np.sqrt(len(areas)) + 1e-9


def test_equal_texts_are_ties() -> None:
    counts = np.tile([[3, 1, 0, 7, 1]], (8, 1))
    one = sample(counts, [True, False] * 4, ["p"] * 8)
    assert within(one).area == 0.5
    assert across(one, one).area == 0.5
    assert within(sample(np.zeros((8, 5)), [True, False] * 4, ["p"] * 8)).area == 0.5


# --- worlds whose truth is known; tests/benchmarks/text_transfer.py has the large ones -------------------

N = 60
WITHIN = (("associated", "associated"), ("specified", "specified"))
CARRIED = (("specified", "associated"), ("associated", "specified"))


def areas_of(world: World, seed: int, n_shuffles: int = 19) -> dict[tuple[str, str], tuple[Counts, float]]:
    """Of each cell: the areas of 60 occupations, and the part of them with p at most 0.05."""
    rng = np.random.default_rng(seed)
    made = [occupation(world, rng, n_shuffles) for _ in range(N)]
    return {
        cell: (
            np.array([one[cell].area for one in made]),
            float(np.mean([one[cell].p_value <= 0.05 for one in made])),
        )
        for cell in made[0]
    }


@pytest.mark.parametrize(
    "world",
    [World(n_words=150), World(n_words=150, n_female=8, n_male=24, concentration=40.0)],
    ids=["balanced", "unequal and bursty"],
)
def test_where_nothing_differs_areas_are_at_chance(world: World) -> None:
    for areas, rejected in areas_of(world, 11).values():
        assert abs(areas.mean() - 0.5) < 3.5 * areas.std(ddof=1) / np.sqrt(N)
        assert rejected <= 0.15  # 5 % of 60: over 9 with probability 0.001


def test_a_difference_is_seen_where_it_is_and_carries_over_where_it_is_the_same() -> None:
    both = areas_of(World(associated=0.5, specified=0.5, n_words=150), 5)
    assert min(areas.mean() for areas, _ in both.values()) > 0.8
    alone = areas_of(World(specified=0.8, n_words=150), 6)
    assert alone[WITHIN[1]][0].mean() > 0.9
    for cell in (WITHIN[0], *CARRIED):
        areas, rejected = alone[cell]
        assert abs(areas.mean() - 0.5) < 3.5 * areas.std(ddof=1) / np.sqrt(N)
        # Weights learnt from noise lean on words that do tell the other texts apart.
        assert rejected <= 0.15
