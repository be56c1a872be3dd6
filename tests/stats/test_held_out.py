"""Areas under the curve: against loops, at chance where nothing differs, and never from a text itself."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from fakes.told_apart import World, occupation
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.special import logit

from biaskit.stats.classification import (
    FOLDS,
    PENALTY,
    PRIOR_WORDS,
    TAUGHT,
    HeldOut,
    Sample,
    across,
    area_interval,
    at_one_size,
    folds,
    within,
)

Counts = np.ndarray


def sample(counts: Counts, is_first: Sequence[bool], strata: Sequence[str], n_shuffles: int = 3) -> Sample:
    return Sample.shuffled(csr_matrix(counts), is_first, strata, np.random.default_rng(7), n_shuffles)


# --- against loops -------------------------------------------------------------------------------------


def shares_of(counts: Counts, teaching: Counts) -> Counts:
    """Shares of words over the root of their mean share, as the docstring has it."""
    taught = teaching / np.maximum(teaching.sum(axis=1, keepdims=True), 1)
    mean = taught.mean(axis=0)
    scale = np.where(mean > 0, 1 / np.sqrt(mean + PRIOR_WORDS / max(teaching.sum(), 1)), 0.0)
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1) * scale)


def fitted(words: Counts, labels: Counts, strata: Sequence[str], kept: Sequence[int]) -> Counts:
    """Weights of a ridge regression by its normal equations, of labels less their mean in the stratum."""
    targets = [
        float(labels[i]) - np.mean([labels[j] for j in range(len(strata)) if strata[j] == s])
        for i, s in enumerate(strata)
    ]
    x, y = words[kept], np.array(targets)[kept]
    return np.asarray(np.linalg.solve(x.T @ x + PENALTY * np.eye(words.shape[1]), x.T @ y))


def by_pairs(scores: Counts, labels: Counts, groups: Sequence[object]) -> float:
    won = [
        0.5 if abs(scores[a] - scores[b]) < 1e-9 else float(scores[a] > scores[b])
        for a in np.flatnonzero(labels)
        for b in np.flatnonzero(~labels)
        if groups[a] == groups[b]
    ]
    return float(np.mean(won)) if won else 0.5


DOCUMENTS = st.lists(
    st.tuples(
        st.lists(st.integers(0, 3), min_size=4, max_size=4), st.booleans(), st.sampled_from(("p", "q"))
    ),
    min_size=4,
    max_size=12,
).filter(lambda documents: all(len({d[1] for d in documents if d[2] == s}) != 1 for s in "pq"))


@settings(max_examples=40, deadline=None)
@given(DOCUMENTS.filter(lambda documents: len(documents) > 3))
def test_cross_validation_is_the_fit_of_the_other_folds(documents: list[tuple[list[int], bool, str]]) -> None:
    counts, labels, strata = (np.array(column) for column in zip(*documents, strict=True))
    one = sample(counts, labels.tolist(), strata.tolist())
    if len(set(folds(one.strata, np.random.default_rng(5)))) < 2:
        return
    found = within(one, np.random.default_rng(5))
    words, rng = shares_of(counts, counts), np.random.default_rng(5)
    cuts = [folds(one.strata, rng), folds(one.strata, rng)]
    for column in range(one.labels.shape[1]):
        own, scores, groups = one.labels[:, column], [], []
        for fold in cuts:
            for i in range(len(strata)):
                kept = [j for j in range(len(strata)) if fold[j] != fold[i]]
                scores.append(words[i] @ fitted(words, own, strata, kept))
                groups.append((strata[i], fold[i], id(fold)))
        area = by_pairs(np.array(scores), np.tile(own, 2), groups)
        assert [found.area, *found.taught][column] == pytest.approx(area, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(DOCUMENTS, DOCUMENTS)
def test_what_is_carried_over_is_the_fit_of_the_other_sample(
    teaching: list[tuple[list[int], bool, str]], judged: list[tuple[list[int], bool, str]]
) -> None:
    taught, by, of = (np.array(column) for column in zip(*teaching, strict=True))
    seen, told, prompts = (np.array(column) for column in zip(*judged, strict=True))
    one, other = sample(taught, by.tolist(), of.tolist()), sample(seen, told.tolist(), prompts.tolist())
    found, words = across(one, other), shares_of(taught, taught)

    def loop(labels: Counts, of_judged: Counts) -> float:
        weights = fitted(words, labels, of, range(len(of)))
        return by_pairs(shares_of(seen, taught) @ weights, of_judged, prompts)

    assert found.area == pytest.approx(loop(by, told), abs=1e-12)
    assert found.taught[0] == pytest.approx(loop(one.labels[:, 1], told), abs=1e-12)
    assert found.judged[0] == pytest.approx(loop(by, other.labels[:, 1]), abs=1e-12)


@pytest.mark.parametrize("same", [True, False])
def test_the_size_is_the_fit_of_ten_and_ten_drawn_ten_times(same: bool) -> None:
    rng = np.random.default_rng(9)
    one, other = (
        sample(
            rng.poisson(1.0, (n, 6)), rng.permutation([True, False] * (n // 2)).tolist(), list("pqr" * n)[:n]
        )
        for n in (30, 16)
    )
    copies = replace(other, units=np.repeat(other.units[:8], 2))
    left = one if same else copies
    area, variance = at_one_size(one, left, np.random.default_rng(5)) or (0.0, 0.0)
    rng, won, of_texts = np.random.default_rng(5), [], []
    for _ in range(10):
        first = one.labels[:, 0]
        drawn = [rng.choice(np.flatnonzero(side), TAUGHT, replace=False) for side in (first, ~first)]
        few = np.concatenate(drawn).tolist()
        places = [i for i in range(len(left.strata)) if not same or i not in few]
        of = [str(one.strata[i]) for i in few]
        taught = one.counts.toarray()[few]
        weights = fitted(shares_of(taught, taught), first[few], of, range(20))
        scores = shares_of(left.counts.toarray(), taught) @ weights
        for a, b in itertools.product(places, places):
            if left.labels[a, 0] and not left.labels[b, 0] and left.strata[a] == left.strata[b]:
                is_tie = abs(scores[a] - scores[b]) < 1e-9
                won.append(0.5 if is_tie else float(scores[a] > scores[b]))
                of_texts.append((left.units[a], left.units[b]))
    assert area == pytest.approx(np.mean(won), abs=1e-12)
    beyond = dict.fromkeys(left.units.tolist(), 0.0)
    for one_won, pair in zip(won, of_texts, strict=True):
        for unit in pair:
            beyond[unit] += (one_won - area) / len(won)
    both_ways = 9 * (20 / 30) * (10 / 30) if same else 0.0
    factor = 1 + both_ways / (1 + both_ways)
    assert variance == pytest.approx(factor * sum(value**2 for value in beyond.values()), rel=1e-9)


def test_folds_take_two_by_two_from_every_prompt() -> None:
    strata = np.array(["p"] * 20 + ["q"] * 2 + ["r"] * 2)
    fold = folds(strata, np.random.default_rng(1))
    assert sorted(fold[:20].tolist()) == sorted([*range(FOLDS)] * 4)
    assert len({*fold[20:22].tolist()}) == len({*fold[22:].tolist()}) == 1
    assert fold[20] != fold[22]


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
    assert HeldOut(0.1, far, near).p_value == HeldOut(0.9, near, far).p_value == 2 / 4
    assert HeldOut(0.9, near, near).p_value == 1 / 4


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
        areas.append(within(one, rng).area)
        # The same weights with the text itself among those that teach tell everything: the check can fail.
        assert across(one, one).area > 0.9
    assert abs(np.mean(areas) - 0.5) < 4.5 * np.std(areas) / np.sqrt(len(areas)) + 1e-9


def test_equal_texts_are_ties() -> None:
    counts = np.tile([[3, 1, 0, 7, 1]], (8, 1))
    one = sample(counts, [True, False] * 4, ["p"] * 8)
    rng = np.random.default_rng(1)
    assert within(one, rng).area == 0.5
    assert across(one, one).area == 0.5
    assert within(sample(np.zeros((8, 5)), [True, False] * 4, ["p"] * 8), rng).area == 0.5
    many = sample(np.tile(counts, (4, 1)), [True, False] * 16, ["p"] * 32)
    assert at_one_size(many, many, rng) == at_one_size(many, one, rng) == (0.5, 0.0)
    apart = sample(np.ones((24, 2)), [True, False] * 12, ["p", "q"] * 12)
    assert at_one_size(apart, apart, rng) is None


# --- worlds whose truth is known; benchmarks/text_transfer.py has the large ones -------------------

N = 25
WITHIN = (("inferred", "inferred"), ("requested", "requested"))
CARRIED = (("requested", "inferred"), ("inferred", "requested"))


def areas_of(world: World, seed: int, n_shuffles: int = 19) -> dict[tuple[str, str], tuple[Counts, float]]:
    """Of each cell: the areas of 25 occupations, and the part of them with p at most 0.05."""
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
        assert abs(areas.mean() - 0.5) < 4.5 * areas.std(ddof=1) / np.sqrt(N)
        assert rejected <= 0.25  # 5 % of 25 and 4.5 standard errors


def test_more_texts_teach_better_and_the_area_that_is_reported_stays() -> None:
    few, many = (
        [
            occupation(World(0.2, 0.2, n_female=n, n_male=n, n_words=150), np.random.default_rng([n, i]), 1)
            for i in range(10)
        ]
        for n in (8, 40)
    )
    for cell in few[0]:
        areas, of_all = (
            [np.array([getattr(one[cell], name) for one in made]) for made in (few, many)]
            for name in ("area", "of_all")
        )
        noise = float(np.sqrt(sum(a.var(ddof=1) / 10 for a in areas)))
        assert abs(areas[1].mean() - areas[0].mean()) < 4 * noise
        assert (of_all[1] - areas[1]).mean() > 0.05, "80 texts a side teach better than ten"


def test_a_difference_is_seen_where_it_is_and_carries_over_where_it_is_the_same() -> None:
    both = areas_of(World(inferred=0.5, requested=0.5, n_words=150), 5)
    assert min(areas.mean() for areas, _ in both.values()) > 0.75
    alone = areas_of(World(requested=0.8, n_words=150), 6)
    assert alone[WITHIN[1]][0].mean() > 0.9
    for cell in (WITHIN[0], *CARRIED):
        areas, rejected = alone[cell]
        assert abs(areas.mean() - 0.5) < 4.5 * areas.std(ddof=1) / np.sqrt(N)
        # Weights learnt from noise lean on words that do tell the other texts apart.
        assert rejected <= 0.25
