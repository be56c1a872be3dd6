"""Marked words: Algorithms 2 to 4 by hand, against a plain loop over real personas, and their properties."""

from __future__ import annotations

import csv
import math
import zipfile
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from fakes.plain_log_odds import FIXED, SPEAKER, Counts, Plain
from fakes.scored import z_scores
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from needs import not_beside
from numpy.typing import NDArray
from places import SHARED

from biaskit.errors import StudyError
from biaskit.measures.personas.words import log_odds as module
from biaskit.measures.personas.words.log_odds import (
    FIXED_CALIBRATION_WORDS,
    METHODS,
    SPEAKER_WORDS,
    Prior,
    calibration_words,
    is_fixed,
    topic_share,
)

DATA = SHARED / "data"
ROUNDING = 1e-12
Z_TOLERANCE = 1e-9


def ours(
    target: Counts,
    unmarked: Counts,
    english: Counts | None = None,
    method: str = "calibrated",
    prior: Prior | None = None,
) -> dict[str, float]:
    words = sorted({*target, *unmarked})
    rows = ([counts.get(w, 0) for w in words] for counts in (target, unmarked, english or {}))
    one, other, of_english = (np.array(row) for row in rows)
    z = z_scores(one, other, words=words, english=of_english, method=method, prior=prior or Prior())
    return dict(zip(words, z.tolist(), strict=True))


# --- by hand ---------------------------------------------------------------------------------------

# Three words. n_G = 4, n_U = 3; the prior is art 3, law 3, war 1 (sum 7), so N_G = 11 and N_U = 10.
ONE = {"art": 3, "law": 1}
OTHER = {"law": 2, "war": 1}


def test_algorithm_2_gives_the_hand_computed_z_of_three_words() -> None:
    # T + a: art 6 and 3, law 4 and 5, war 1 and 2.
    # art: (6/5) / (3/7) = 14/5, variance 1/6 + 1/3; law: (4/7) / (5/5), 1/4 + 1/5; war: (1/10) / (2/8), 3/2.
    expected = {
        "art": math.log(14 / 5) / math.sqrt(1 / 2),
        "law": math.log(4 / 7) / math.sqrt(9 / 20),
        "war": math.log(2 / 5) / math.sqrt(3 / 2),
    }
    assert expected == pytest.approx(ours(ONE, OTHER, method="marked-personas"), rel=ROUNDING)


# `the` is the only calibration word: art and war are in one group each.
WOMEN = {"art": 2, "the": 4}
MEN = {"the": 2, "war": 2}
ENGLISH = {"the": 10, "war": 2}


def test_algorithms_3_and_4_give_the_hand_computed_z_of_three_words() -> None:
    # alpha = C = 1/2: P = art 1, the 8, war 2; r_1 = 1/2 · 8/4 = 1, r_2 = 1/2 · 8/2 = 2.
    # T + a: art 3 and 1/2, the 12 and 6, war 2 and 3; N_G = 6 + 11 = 17, N_U = 4 + 11/2 = 19/2.
    expected = {
        "art": math.log((3 / 14) / (1 / 18)) / math.sqrt(1 / 3 + 2),
        "the": math.log((12 / 5) / (12 / 7)) / math.sqrt(1 / 12 + 1 / 6),
        "war": math.log((2 / 15) / (6 / 13)) / math.sqrt(1 / 2 + 1 / 3),
    }
    found = ours(WOMEN, MEN, ENGLISH, prior=Prior(alpha=0.5, c=0.5))
    assert expected == pytest.approx(found, rel=ROUNDING)


def test_exact_and_released_priors_differ_by_what_the_integers_make_of_art() -> None:
    # alpha = 1/4, C = 1/2: P = art 1/2, the 9, war 2. Released: int(1/2) = 0 becomes 1.
    # r_1 = 9/8, r_2 = 9/4. Exact: art 22/9 of 146/9 and 2/9 of 82/9; released: 26/9 of 150/9, 4/9 of 84/9.
    exact = math.log((22 / 124) / (2 / 80)) / math.sqrt(9 / 22 + 9 / 2)
    released = math.log((26 / 124) / (4 / 80)) / math.sqrt(9 / 26 + 9 / 4)
    for rounding, expected in (("exact", exact), ("released", released)):
        prior = Prior(alpha=0.25, c=0.5, rounding=rounding)  # type: ignore[arg-type]
        assert expected == pytest.approx(ours(WOMEN, MEN, ENGLISH, prior=prior)["art"], rel=ROUNDING)
    assert 0.0053 == round(released - exact, 4)


def test_the_constant_is_blended_of_the_two_unless_it_is_given() -> None:
    # The facts of the release: 0.25875 at alpha 0.15, 0.28125 at 0.25.
    assert 0.25875 == pytest.approx(Prior().constant, rel=ROUNDING)
    assert 0.28125 == pytest.approx(Prior(alpha=0.25).constant, rel=ROUNDING)
    assert 0.4 == Prior(c=0.4).constant


# --- against the plain loop, on real personas ------------------------------------------------------------


def real(path: Path) -> Path:
    if not path.is_file():
        not_beside(f"shared/data/{path.name} is not beside this checkout")
    return path


@cache
def persona_counts() -> dict[str, Counter[str]]:
    """Word counts per gender code (M, W, N) of 1,350 personas by text-davinci-003."""
    counts: dict[str, Counter[str]] = {"M": Counter(), "W": Counter(), "N": Counter()}
    with real(DATA / "personas_text-davinci-003.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            tokens = ("".join(c for c in t if "a" <= c <= "z") for t in row["text"].lower().split())
            counts[row["gender"]].update(token for token in tokens if token)
    return counts


@cache
def brown_counts() -> Counter[str]:
    """Lower-cased tokens of the Brown corpus; in its files each token is followed by its tag."""
    with zipfile.ZipFile(real(DATA / "nltk_data" / "corpora" / "brown.zip")) as archive:
        names = [n for n in archive.namelist() if len(Path(n).name) == 4 and Path(n).name.startswith("c")]
        texts = (archive.read(name).decode("ascii") for name in names)
        return Counter(t.rpartition("/")[0].lower() for text in texts for t in text.split())


@pytest.mark.parametrize("pair", ["WM", "MW", "NW", "NM"])
def test_marked_personas_equals_the_plain_loop(pair: str) -> None:
    one, other = (persona_counts()[code] for code in pair)
    expected = Plain().marked_personas(one, other)
    assert expected == pytest.approx(ours(one, other, method="marked-personas"), abs=Z_TOLERANCE)


@pytest.mark.parametrize("rounding", ["exact", "released"])
@pytest.mark.parametrize("pair", ["WM", "MW", "NW", "NM"])
def test_the_calibrated_method_equals_the_plain_loop(pair: str, rounding: str) -> None:
    one, other = (persona_counts()[code] for code in pair)
    prior = Prior(rounding=rounding)  # type: ignore[arg-type]
    expected = Plain(released=rounding == "released").calibrated(one, other, brown_counts())
    assert expected == pytest.approx(ours(one, other, brown_counts(), prior=prior), abs=Z_TOLERANCE)


def marked(z: Mapping[str, float], target: Counts) -> set[str]:
    return {w for w, value in z.items() if value > module.THRESHOLD and target.get(w, 0) > 0}


def test_exact_and_released_lists_of_real_personas_differ_by_one_word_of_82() -> None:
    # Both from the plain loop above, which the lines before this one equal.
    one, other = persona_counts()["W"], persona_counts()["M"]
    exact, released = (
        ours(one, other, brown_counts(), prior=Prior(rounding=rounding))  # type: ignore[arg-type]
        for rounding in ("exact", "released")
    )
    assert (82, {"courageous"}) == (len(marked(exact, one)), marked(exact, one) ^ marked(released, one))
    assert marked(released, one) < marked(exact, one)
    changes = {w: released[w] - exact[w] for w in exact}
    assert ("blouse", -0.191) == (
        max(changes, key=lambda w: abs(changes[w])),
        round(changes["blouse"], 3),
    )


# --- properties ------------------------------------------------------------------------------------

WORDS = ("and", "art", "law", "nurse", "she", "the", "war")  # `and` and `the` are on the fixed list
COUNTS = arrays(np.int64, (2, len(WORDS)), elements=st.integers(0, 40))
BROWN = arrays(np.int64, len(WORDS), elements=st.integers(0, 500))
PRIORS = st.builds(
    Prior,
    alpha=st.sampled_from((0.0, 0.15, 0.5, 1.0)),
    rounding=st.sampled_from(("exact", "released")),
    scale=st.sampled_from(("counts", "rates")),
)
METHOD = st.sampled_from(METHODS)


@settings(deadline=None)
@given(COUNTS, BROWN, METHOD, PRIORS)
def test_swapping_the_groups_flips_every_sign_and_no_digit(
    counts: NDArray[np.int64], english: NDArray[np.int64], method: str, prior: Prior
) -> None:
    there = z_scores(*counts, words=WORDS, english=english, method=method, prior=prior)
    back = z_scores(*counts[::-1], words=WORDS, english=english, method=method, prior=prior)
    assert np.array_equal(there, -back, equal_nan=True)


@settings(deadline=None)
@given(COUNTS, BROWN, METHOD, st.sampled_from((0.0, 0.15, 1.0)), st.sampled_from(("counts", "rates")))
def test_twice_the_documents_and_twice_the_english_make_every_z_the_root_of_two_larger(
    counts: NDArray[np.int64], english: NDArray[np.int64], method: str, alpha: float, scale: str
) -> None:
    prior = Prior(alpha=alpha, scale=scale)  # type: ignore[arg-type]
    once = z_scores(*counts, words=WORDS, english=english, method=method, prior=prior)
    twice = z_scores(*(2 * counts), words=WORDS, english=2 * english, method=method, prior=prior)
    assert twice == pytest.approx(math.sqrt(2) * once, rel=ROUNDING, abs=ROUNDING, nan_ok=True)


@settings(deadline=None)
@given(arrays(np.int64, (2, 5, len(WORDS)), elements=st.integers(0, 40)), BROWN, METHOD, PRIORS)
def test_many_rows_at_once_are_the_rows_one_by_one(
    counts: NDArray[np.int64], english: NDArray[np.int64], method: str, prior: Prior
) -> None:
    scope = {"words": WORDS, "english": english, "method": method, "prior": prior}
    together = z_scores(counts[0][None], counts[1][None], **scope)  # type: ignore[arg-type]
    assert (1, 5, len(WORDS)) == together.shape
    for row in range(5):
        alone = z_scores(counts[0, row], counts[1, row], **scope)  # type: ignore[arg-type]
        assert alone == pytest.approx(together[0, row], rel=ROUNDING, abs=ROUNDING, nan_ok=True)


@settings(deadline=None)
@given(COUNTS, BROWN, METHOD, PRIORS)
def test_words_without_topic_counts_influence_nothing_and_get_0(
    counts: NDArray[np.int64], english: NDArray[np.int64], method: str, prior: Prior
) -> None:
    counts = counts.copy()
    counts[:, 2] = 0
    scope = {"words": WORDS, "method": method, "prior": prior}
    loud, silent = english.copy(), english.copy()
    loud[2], silent[2] = 1_000_000, 0
    with_loud = z_scores(*counts, english=loud, **scope)  # type: ignore[arg-type]
    assert np.array_equal(
        with_loud,
        z_scores(*counts, english=silent, **scope),  # type: ignore[arg-type]
        equal_nan=True,
    )
    assert 0.0 == with_loud[2] or np.isnan(with_loud).all()


def test_a_word_that_no_group_holds_can_have_a_large_z_from_its_prior_alone() -> None:
    # methods/words#marked-words: |z| up to 3.6. The groups hold `the` at different rates, so r_1 and r_2
    # differ, and with
    # them what the prior adds to `queen`. Not a marked word: that needs the target's count (word lists).
    words = ("he", "queen", "she", "the")
    groups = np.array([[0, 0, 300, 200], [400, 0, 0, 20]])
    topic = np.array([400, 100, 300, 220])
    found = z_scores(*groups, words=words, english=np.zeros(4), topic=topic)
    assert found[1] > module.THRESHOLD
    assert 0.0 == z_scores(*groups, words=words, english=np.zeros(4))[1]


# --- calibration words and the prior -----------------------------------------------------------------


def test_the_fixed_list_is_that_of_methods_and_the_criterion_words_leave_the_speaker_out() -> None:
    assert 27 == len(FIXED_CALIBRATION_WORDS)
    assert (FIXED, SPEAKER) == (set(FIXED_CALIBRATION_WORDS), SPEAKER_WORDS)


def test_at_equal_counts_the_alphabetically_later_word_stays_among_the_20_most_frequent() -> None:
    words = [f"w{i:02}" for i in range(30)]
    counts = np.full(30, 5)
    counts[3] = 6
    [chosen] = calibration_words(counts[None], (counts[None], counts[None]), is_fixed(words))
    assert ["w03", *words[11:]] == [w for w, is_chosen in zip(words, chosen, strict=True) if is_chosen]


@settings(deadline=None)
@given(arrays(np.int64, (3, 4, 33), elements=st.integers(0, 6)))
def test_calibration_words_of_many_rows_equal_a_plain_loop(counts: NDArray[np.int64]) -> None:
    words = sorted([f"w{i:02}" for i in range(31)] + ["and", "the"])
    chosen = calibration_words(counts[0], (counts[1], counts[2]), is_fixed(words))
    for row in range(4):
        prior, one, other = (dict(zip(words, counts[g, row].tolist(), strict=True)) for g in range(3))
        expected = Plain().common_words({w: n for w, n in prior.items() if n}, one, other)
        assert expected == {w for w, is_chosen in zip(words, chosen[row], strict=True) if is_chosen}


def test_the_share_of_topic_mass_falls_with_the_corpus_for_counts_and_is_alpha_for_rates() -> None:
    # 0.15 · 40 / (0.15 · 40 + 0.85 · 60), without the last word; ten times the texts: 60/111.
    topic, english = np.array([10, 30, 0]), np.array([60, 0, 1000])
    assert 6 / 57 == pytest.approx(topic_share(topic, english) or 0.0, rel=ROUNDING)
    assert 60 / 111 == pytest.approx(topic_share(10 * topic, english) or 0.0, rel=ROUNDING)
    rates = Prior(scale="rates")
    for times in (1, 10):
        assert 0.15 == pytest.approx(topic_share(times * topic, english, rates) or 0.0, rel=ROUNDING)


# --- what cannot be computed -----------------------------------------------------------------------------


def test_without_a_calibration_word_in_a_group_the_row_is_nan_and_marked_personas_is_not() -> None:
    target, unmarked = np.array([[2, 0, 4], [2, 0, 4]]), np.array([[0, 3, 0], [0, 3, 1]])
    scope = {"words": ("art", "law", "the"), "english": [0, 5, 900]}
    calibrated = z_scores(target, unmarked, **scope)  # type: ignore[arg-type]
    assert [True, False] == np.isnan(calibrated).all(axis=1).tolist()
    assert not np.isnan(calibrated[1]).any()
    assert not np.isnan(z_scores(target, unmarked, method="marked-personas", **scope)).any()  # type: ignore[arg-type]


@pytest.mark.parametrize("method", METHODS)
def test_one_word_alone_has_no_odds_and_no_words_at_all_have_no_z(method: str) -> None:
    one = z_scores([3, 0], [2, 0], words=("the", "war"), english=[900, 9], method=method)
    assert np.isnan(one).all()
    assert (0,) == z_scores([], [], words=(), english=[], method=method).shape
    assert np.isnan(z_scores([0, 0], [0, 0], words=("the", "war"), english=[9, 9], method=method)).all()


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"alpha": 1.5}, "alpha = 1.5"),
        ({"alpha": math.nan}, "alpha = nan"),
        ({"c": 0.0}, "C = 0.0"),
        ({"c": -0.2}, "C = -0.2"),
        ({"rounding": "release"}, "Did you mean 'released'"),
        ({"scale": "rate"}, "Did you mean 'rates'"),
    ],
)
def test_a_prior_that_cannot_be_is_refused_with_its_key(keys: dict[str, object], message: str) -> None:
    with pytest.raises(StudyError, match=message):
        Prior(**keys)  # type: ignore[arg-type]
