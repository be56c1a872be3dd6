"""Tests of the SRB score: by hand in two dimensions, against a double loop, and what stands beside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biaskit.measures.personas.srb.score import (
    PRONOUNS,
    ShuffledZ,
    SrbScore,
    chamfer_distance,
    srb,
    srb_scores,
)
from biaskit.measures.personas.vectors.training import Vectors
from biaskit.measures.personas.words.contrasts import MarkedWord

ROUNDING = 1e-12
NO_NULL = "no null here"


def word_of(word: str, z: float) -> MarkedWord:
    return MarkedWord(word, 1, z, 0.0, 1, 0, 1, 0)


def at(**degrees: float) -> Vectors:
    """Words as directions in the plane."""
    angles = np.radians(list(degrees.values()))
    return Vectors.from_rows(list(degrees), np.stack([np.cos(angles), np.sin(angles)], axis=1))


def marked(text: str, *z: float) -> list[MarkedWord]:
    """Words with z as given, else 9, 8, 7, …"""
    words = text.split()
    return [word_of(w, value) for w, value in zip(words, z or range(9, 9 - len(words), -1), strict=True)]


def random_vectors(n: int, seed: int = 0) -> Vectors:
    return Vectors.from_rows([f"w{i}" for i in range(n)], np.random.default_rng(seed).normal(size=(n, 8)))


def double_loop(candidates: Sequence[str], targets: Sequence[str], vectors: Vectors) -> float:
    total = 0.0
    for c in candidates:
        nearest = math.inf
        for t in targets:
            a, b = vectors.matrix[vectors.words[c]], vectors.matrix[vectors.words[t]]
            cosine = sum(x * y for x, y in zip(a, b, strict=True)) / math.hypot(*a) / math.hypot(*b)
            nearest = min(nearest, 1 - cosine)
        total += nearest
    return total / len(candidates)


def printed_algorithm_6(
    candidates: Sequence[str], female: Sequence[str], male: Sequence[str], vectors: Vectors
) -> float:
    """GAS(P) Algorithm 6 as printed: divides inside the loop, keeps the women's minimum for the men."""
    mu_f = mu_m = 0.0
    for c in candidates:
        most_similar = 2.0
        for t in female:
            most_similar = min(most_similar, double_loop([c], [t], vectors))
        mu_f = (mu_f + most_similar) / len(candidates)
        for t in male:
            most_similar = min(most_similar, double_loop([c], [t], vectors))
        mu_m = (mu_m + most_similar) / len(candidates)
    return mu_f - mu_m


def score(
    candidates: str,
    female: Sequence[MarkedWord],
    male: Sequence[MarkedWord],
    vectors: Vectors | Sequence[Vectors],
    *,
    null: Callable[[], ShuffledZ] | str = NO_NULL,
    pronouns: str = "all",
    names: Sequence[str] = (),
) -> SrbScore:
    models = [vectors] if isinstance(vectors, Vectors) else vectors
    targets = {"female": female, "male": male}
    of_women = {"female": candidates.split()}
    return srb_scores(of_women, targets, models, null=null, pronouns=pronouns, names=names)["female"]


# --- Chamfer distance and the score --------------------------------------------------------------

PLANE = at(a=0, b=90, c=60, d=180, e=90, f=0)


def test_chamfer_matches_the_angles_in_the_plane() -> None:
    # a (0°): nearest is c (60°), 1 - 1/2; b (90°): nearest is c (30° away), 1 - √3/2; d is 180° and 90° off.
    candidates, targets = (PLANE.rows(words)[0] for words in (["a", "b"], ["c", "d"]))
    assert pytest.approx((0.5 + 1 - math.sqrt(3) / 2) / 2, abs=ROUNDING) == chamfer_distance(
        candidates, targets
    )
    # c: nearest is b, 1 - √3/2; d: nearest is b, 1 - 0. The distance is not symmetric.
    assert pytest.approx((2 - math.sqrt(3) / 2) / 2, abs=ROUNDING) == chamfer_distance(targets, candidates)


def test_the_score_matches_the_angles_in_the_plane() -> None:
    # Women's c (60°), men's d (180°). To c: 0.5 and 1 - √3/2; to d: 2 and 1. Mean difference.
    expected = (0.5 + 1 - math.sqrt(3) / 2) / 2 - 1.5
    assert pytest.approx(expected, abs=ROUNDING) == srb(["a", "b"], ["c"], ["d"], PLANE)
    found = score("a b", marked("c"), marked("d"), PLANE)
    assert pytest.approx(expected, abs=ROUNDING) == found.srb
    assert pytest.approx(1.5, abs=ROUNDING) == found.distance_male


lists_of_words = st.lists(st.integers(0, 29).map(lambda i: f"w{i}"), min_size=1, max_size=12, unique=True)


@settings(deadline=None)
@given(lists_of_words, lists_of_words, lists_of_words, st.integers(0, 9))
def test_the_score_is_that_of_a_double_loop(c: list[str], f: list[str], m: list[str], seed: int) -> None:
    vectors = random_vectors(30, seed)
    expected = double_loop(c, f, vectors) - double_loop(c, m, vectors)
    assert pytest.approx(expected, abs=ROUNDING) == srb(c, f, m, vectors)
    found = score(
        " ".join(c), marked(" ".join(f), *[2.0] * len(f)), marked(" ".join(m), *[2.0] * len(m)), vectors
    )
    assert pytest.approx(expected, abs=ROUNDING) == found.srb
    assert pytest.approx(double_loop(c, m, vectors), abs=ROUNDING) == found.distance_male


@settings(deadline=None)
@given(lists_of_words, lists_of_words, lists_of_words, lists_of_words)
def test_swapping_the_groups_turns_womens_score_into_mens_negated(
    cf: list[str], cm: list[str], f: list[str], m: list[str]
) -> None:
    vectors = [random_vectors(30, seed) for seed in (1, 2)]
    there = srb_scores(
        {"female": cf, "male": cm},
        {"female": marked(" ".join(f)), "male": marked(" ".join(m))},
        vectors,
        null=NO_NULL,
    )
    back = srb_scores(
        {"female": cm, "male": cf},
        {"female": marked(" ".join(m)), "male": marked(" ".join(f))},
        vectors,
        null=NO_NULL,
    )
    for of_women, of_men in ((there["female"], back["male"]), (back["female"], there["male"])):
        for number in ("srb", "srb_matched", "overlap_only"):
            assert getattr(of_women, number) == -getattr(of_men, number)
        assert of_women.distance_female == of_men.distance_male
        assert of_women.srb_seed_sd == of_men.srb_seed_sd


def test_the_printed_algorithm_gives_another_number() -> None:
    # Candidates a (0°) and b (90°), women's e (90°), men's f (0°): by symmetry 0. As printed: a is 1 from
    # e, mu_F = 1/2, then 0 from f, mu_M = 0; b is 0 from e, mu_F = 1/4, and stays 0, mu_M = 0: 0.25.
    assert srb(["a", "b"], ["e"], ["f"], PLANE) == pytest.approx(0.0, abs=ROUNDING)
    assert printed_algorithm_6(["a", "b"], ["e"], ["f"], PLANE) == pytest.approx(0.25, abs=ROUNDING)
    # It also depends on the order of the candidates; the last counts most.
    assert printed_algorithm_6(["b", "a"], ["e"], ["f"], PLANE) == pytest.approx(0.5, abs=ROUNDING)


# --- what stands beside the score ----------------------------------------------------------------


def test_with_vectors_at_right_angles_the_score_is_the_overlap() -> None:
    # Every other word is at distance 1, an equal one at 0: CH = 1 - |C ∩ T| / |C|.
    vectors = Vectors.from_rows(list("abcdxy"), np.eye(6))
    found = score("a b c d", marked("a b x"), marked("d y"), vectors)
    assert found.overlap_only == -0.25
    assert pytest.approx(-0.25, abs=ROUNDING) == found.srb


def test_matched_lists_have_the_length_of_the_shorter_by_z() -> None:
    # a (0°) against women's e (90°) and a: the second one by z is cut, since the men have one word (c, 60°).
    found = score("a", marked("a e", 2.0, 3.0), marked("c"), PLANE)
    assert pytest.approx(0.0 - 0.5, abs=ROUNDING) == found.srb
    assert pytest.approx(1.0 - 0.5, abs=ROUNDING) == found.srb_matched
    assert (2, 1) == (found.n_target_female, found.n_target_male)
    assert found.sign_changes
    assert "the sign changes" in str(found.reason)


def test_words_without_a_vector_are_named_counted_and_left_out() -> None:
    found = score("a zebra b", marked("c ghost"), marked("zebra d"), PLANE)
    bare = score("a b", marked("c"), marked("d"), PLANE)
    assert (found.srb, found.srb_matched, found.overlap_only) == (
        bare.srb,
        bare.srb_matched,
        bare.overlap_only,
    )
    assert (2, 1, 1, 2) == (found.n_candidates, found.n_target_female, found.n_target_male, found.n_oov)
    assert ("ghost", "zebra") == found.oov
    assert "left out, without a vector: ghost zebra" in str(found.reason)
    assert (0, ()) == (bare.n_oov, bare.oov)


def test_pronouns_leave_both_sides_or_as_released_the_candidates() -> None:
    vectors = at(she=0, her=10, he=180, a=20, b=40, c=60)
    both = score("she her a", marked("she b"), marked("he c"), vectors)
    assert (1, 1, 1) == (both.n_candidates, both.n_target_female, both.n_target_male)
    released = score("she her a", marked("she b"), marked("he c"), vectors, pronouns="released")
    assert (2, 2, 2) == (released.n_candidates, released.n_target_female, released.n_target_male)
    # The released list leaves "her" in: 10° and 20° from "she", against 50° and 40° from c.
    expected = sum(1 - math.cos(math.radians(x)) for x in (10, 20)) / 2
    assert pytest.approx(expected, abs=ROUNDING) == released.distance_female


def test_the_pronoun_lists_hold_what_was_published() -> None:
    # methods/srb#srb-pronouns; the list in the released notebook.
    assert {"she", "he", "they", "them", "hers", "his", "their", "theirs"} == PRONOUNS["released"]
    assert 20 == len(PRONOUNS["all"])
    assert {"him", "themself", "theyd"} < PRONOUNS["all"]
    assert not PRONOUNS["all"] & {"shell", "shed", "hed", "hell"}


def test_the_score_is_the_mean_over_the_seeds_with_their_sample_sd() -> None:
    models = [random_vectors(30, seed) for seed in (1, 2, 3)]
    words = list(models[0].words)
    lists = words[:8], words[5:15], words[12:25]
    each = [srb(*lists, model) for model in models]
    found = score(" ".join(lists[0]), *(marked(" ".join(one)) for one in lists[1:]), models)
    assert pytest.approx(np.mean(each), abs=ROUNDING) == found.srb
    assert pytest.approx(np.std(each, ddof=1), abs=ROUNDING) == found.srb_seed_sd
    alone = score(" ".join(lists[0]), *(marked(" ".join(one)) for one in lists[1:]), models[:1])
    assert alone.srb_seed_sd is None
    assert "one vector model" in str(alone.reason)


@pytest.mark.parametrize(
    ("candidates", "female", "male", "why"),
    [
        ("", "a", "b", "no candidate words"),
        ("she", "a", "b", "no candidate words"),
        ("a", "her", "b", "no words for requested women"),
        ("a", "b", "", "no words for requested men"),
        ("ghost", "a", "b", "no candidate word has a vector"),
        ("a", "ghost", "b", "no word for requested women has a vector"),
        ("a", "b", "ghost", "no word for requested men has a vector"),
    ],
)
def test_without_a_list_there_is_no_score_but_a_reason(
    candidates: str, female: str, male: str, why: str
) -> None:
    def never() -> ShuffledZ:
        raise AssertionError("a null without a score")

    found = score(candidates, marked(female), marked(male), PLANE, null=never)
    assert why in str(found.reason)
    numbers = (
        found.srb,
        found.distance_female,
        found.srb_matched,
        found.p_value,
        found.srb_z,
        found.overlap_only,
    )
    assert (None,) * 6 == numbers


# --- the null ------------------------------------------------------------------------------------


def random_shuffles(words: Sequence[str], n: int = 199, seed: int = 0) -> ShuffledZ:
    rng = np.random.default_rng(seed)
    shape = (n, len(words))
    # One decimal: many equal z, so that cuts fall among them.
    return ShuffledZ(words, rng.normal(size=shape).round(1), rng.random(shape) < 0.7, rng.random(shape) < 0.7)


def plain_null(
    candidates: Sequence[str],
    lengths: Mapping[str, int],
    shuffled: ShuffledZ,
    left_out: set[str],
    vectors: Vectors,
) -> list[float]:
    """Scores under shuffled labels, one after the other."""
    scores = []
    for s in range(len(shuffled.z)):
        distances = {}
        for gender, sign, present in (("female", 1, shuffled.in_female), ("male", -1, shuffled.in_male)):
            of_words = {
                word: sign * shuffled.z[s, i]
                for i, word in enumerate(shuffled.words)
                if present[s, i] and word not in left_out and word in vectors
            }
            last = sorted(of_words.values(), reverse=True)[: lengths[gender]][-1]
            chosen = [word for word, z in of_words.items() if z >= last]
            distances[gender] = double_loop(candidates, chosen, vectors)
        scores.append(distances["female"] - distances["male"])
    return scores


@pytest.mark.parametrize("pronouns", ["all", "released"])
def test_the_null_is_that_of_a_plain_loop(pronouns: str) -> None:
    models = [
        Vectors.from_rows(
            [*(f"w{i}" for i in range(40)), "she", "maria"], np.random.default_rng(s).normal(size=(42, 8))
        )
        for s in (5, 6)
    ]
    words = [*models[0].words, "ghost"]
    shuffled = random_shuffles(words, 30)
    female, male = marked("w1 w2 w3 w4 she maria"), marked("w5 w6 ghost")
    found = score(
        "w2 w6 w7 she", female, male, models, null=lambda: shuffled, pronouns=pronouns, names=["maria"]
    )
    left_out = {"maria", "she"} if pronouns == "all" else {"maria"}
    lengths = {"female": 4 if pronouns == "all" else 5, "male": 2}
    assert list(lengths.values()) == [found.n_target_female, found.n_target_male]
    candidates = ["w2", "w6", "w7"]
    expected = plain_null(candidates, lengths, shuffled, left_out, models[0])
    targets = {"female": ["w1", "w2", "w3", "w4"], "male": ["w5", "w6"]}
    if pronouns == "released":
        targets["female"].append("she")
    observed = srb(candidates, targets["female"], targets["male"], models[0])
    assert observed is not None
    mean, sd = np.mean(expected), np.std(expected, ddof=1)
    assert pytest.approx(mean, abs=ROUNDING) == found.null_mean
    assert pytest.approx(sd, abs=ROUNDING) == found.null_sd
    reached = sum(abs(value - mean) >= abs(observed - mean) * (1 - 1e-12) for value in expected)
    assert (1 + reached) / 31 == found.p_value
    # The first seed's score, not the mean over the seeds.
    assert pytest.approx((observed - mean) / sd, abs=1e-9) == found.srb_z
    assert found.srb is not None
    assert abs(found.srb - observed) > 1e-3


def test_a_null_that_gives_the_observed_lists_back_gives_p_one() -> None:
    words = [f"w{i}" for i in range(10)]
    z = np.where(np.arange(10) < 4, 5.0, -5.0)
    same = ShuffledZ(words, np.tile(z, (199, 1)), np.ones((199, 10), bool), np.ones((199, 10), bool))
    found = score(
        "w1 w7", marked("w0 w1 w2 w3"), marked("w4 w5 w6 w7 w8 w9"), random_vectors(10), null=lambda: same
    )
    assert pytest.approx(found.null_mean, abs=ROUNDING) == found.srb
    assert 1.0 == found.p_value
    assert found.srb_z is None
    assert "no spread" in str(found.reason)


def test_shuffles_without_a_list_make_no_null_but_a_reason() -> None:
    z = np.array([[1.0, -1.0, 0.5], [np.nan] * 3])
    undefined = ShuffledZ(["a", "b", "c"], z, np.ones((2, 3), bool), np.ones((2, 3), bool))
    found = score("a", marked("b"), marked("c"), PLANE, null=lambda: undefined)
    assert found.srb is not None
    assert found.p_value is found.null_mean is found.srb_z is None
    assert "1 of 2 shuffles" in str(found.reason)
    present = np.array([[True] * 3, [False] * 3])
    empty = ShuffledZ(["a", "b", "c"], np.ones((2, 3)), np.ones((2, 3), bool), present)
    assert "1 of 2 shuffles" in str(score("a", marked("b"), marked("c"), PLANE, null=lambda: empty).reason)


def test_exchangeable_labels_give_even_p_values() -> None:
    # The observed lists are those of one more shuffle, so p is uniform on 1/20 … 1 but for ties.
    words = [f"w{i}" for i in range(60)]
    p_values = []
    for seed in range(300):
        shuffled = ShuffledZ(
            words,
            np.random.default_rng([seed, 1]).normal(size=(20, 60)),
            np.ones((20, 60), bool),
            np.ones((20, 60), bool),
        )
        observed = shuffled.z[0]
        order = np.argsort(-observed)
        female = [word_of(words[i], float(observed[i])) for i in order[:9]]
        male = [word_of(words[i], float(-observed[i])) for i in order[::-1][:6]]
        null = ShuffledZ(words, shuffled.z[1:], shuffled.in_female[1:], shuffled.in_male[1:])
        found = score("w0 w1 w2 w3 w4", female, male, random_vectors(60, seed), null=lambda null=null: null)
        assert found.p_value is not None
        p_values.append(found.p_value)
    rejected = np.mean(np.array(p_values) <= 0.1 + ROUNDING)
    assert 0.05 < rejected < 0.15  # 0.1 and 3 Monte Carlo errors of 0.017
