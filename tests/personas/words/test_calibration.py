"""The search for C and alpha (methods/words#calibration), held against a plain loop over all C."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from fakes.plain_log_odds import SPEAKER, Plain
from hypothesis import given
from hypothesis import strategies as st
from needs import not_beside
from places import SHARED

from biaskit.corpora.loaders import english_counts
from biaskit.measures.personas.texts.names import is_gender_word
from biaskit.measures.personas.texts.tokens import TokenisedTexts
from biaskit.measures.personas.words import calibration
from biaskit.measures.personas.words.alpha import MarkedList
from biaskit.measures.personas.words.calibration import (
    Calibration,
    Step,
    calibrate,
    find_constant,
)
from biaskit.measures.personas.words.stability import (
    chance_corrected,
    first_halves,
    over_halvings,
    shuffled_in_halves,
)

PERSONAS = SHARED / "data/personas_text-davinci-003.csv"
# Brown counts of a few words, rounded, and a "zebra" that outweighs them all.
ENGLISH = {
    "the": 70_000, "and": 28_900, "a": 23_200, "is": 10_100, "of": 36_400, "in": 21_300, "she": 2_900,
    "he": 9_500, "her": 3_000, "his": 7_000, "i": 5_200, "my": 1_300, "works": 130, "kind": 310,
    "strong": 200, "friend": 130, "zebra": 500_000,
}  # fmt: skip


# --- the plain loop ---------------------------------------------------------------------------------


def plain_criterion(
    women: Counter[str], men: Counter[str], english: Mapping[str, int], alpha: float, c: float
):
    """The criterion words marked in either direction."""
    found = set()
    for target, other in ((women, men), (men, women)):
        marked, common = Plain(alpha, c).marked(target, other, english)
        found |= marked & common - SPEAKER
    return found


def plain_c(women: Counter[str], men: Counter[str], english: Mapping[str, int], alpha: float) -> float | None:
    """C by going through the grid and then through every 1600th of the step below the first mark."""
    first = next((i for i in range(1, 101) if plain_criterion(women, men, english, alpha, i / 100)), None)
    if first is None:
        return 1.0
    if first == 1:
        return None
    fine = range(16 * (first - 1), 16 * first)
    free = [n for n in fine if not plain_criterion(women, men, english, alpha, n / 1600)]
    assert free == list(range(free[0], free[-1] + 1))  # in these corpora halving and walking agree
    return free[-1] / 1600


# --- corpora by hand --------------------------------------------------------------------------------

WOMEN = "she works kind a the and is in the the the her friend"
MEN = "he works strong a and is is in the of the his friend"
CORPUS = [("female", WOMEN)] * 30 + [("male", MEN)] * 30


def run(texts: Sequence[tuple[str, str]], english: Mapping[str, int] = ENGLISH, **more: Any) -> Calibration:
    """Calibrate on (gender, text) pairs."""
    tokens = TokenisedTexts.build(text for _, text in texts)
    options: dict[str, Any] = {"model": "m", "occupation": "nurse", "seed": 7} | more
    strata = options.pop("strata", ["p"] * len(texts))
    return calibrate(
        tokens.counts,
        [gender for gender, _ in texts],
        strata,
        words=tokens.words,
        english=[english.get(w, 0) for w in tokens.words],
        **options,
    )


def totals(texts: Sequence[tuple[str, str]], gender: str) -> Counter[str]:
    return Counter(word for g, text in texts if g == gender for word in text.split())


def at(found: Calibration, alpha: float) -> Step:
    return next(step for step in found.sweep if step.alpha == alpha)


def listed(step: Step, gender: str, against: str) -> MarkedList:
    return next(found for found in step.lists if (found.gender, found.against) == (gender, against))


def varied(n: int, seed: int = 3) -> list[tuple[str, str]]:
    """Texts that differ, so that halves do; women have somewhat more "the", men more "is"."""
    rng = np.random.Generator(np.random.PCG64(seed))
    plain = ("the", "and", "a", "is", "in", "works", "friend", "kind", "strong")
    common = [*plain, *(f"w{c}" for c in "abcdefgh")]
    texts = []
    for gender, own, heavy in (("female", "she", "the"), ("male", "he", "is")):
        for _ in range(n):
            words = [*rng.choice(common, 12), own, own, "the", "the", "and", heavy]
            texts.append((gender, " ".join(words)))
    return texts


def graded(n: int = 150) -> list[tuple[str, str]]:
    """Texts of words that women use from half to twice as often: some are marked at one alpha alone."""
    rng = np.random.Generator(np.random.PCG64(5))
    lean = np.geomspace(0.5, 2.0, len(GRADED))
    texts = []
    for gender, weights in (("female", lean), ("male", 1 / lean)):
        for _ in range(n):
            drawn = rng.choice(GRADED, 6, p=weights / weights.sum())
            texts.append((gender, " ".join([*drawn, "the", "the", "and", "a", "in"])))
    return texts


GRADED = [f"g{a}{b}" for a in "abcde" for b in "abcdef"]
GRADED_ENGLISH = ENGLISH | {word: 400 * (i % 7) for i, word in enumerate(GRADED)}


@cache
def lively() -> tuple[tuple[tuple[str, str], ...], Calibration]:
    """Texts whose C lies inside the grid, and their calibration."""
    texts = tuple(varied(200, seed=11))
    return texts, run(texts)


# --- C ----------------------------------------------------------------------------------------------


def test_a_mark_at_the_smallest_c_gives_no_c_but_the_words() -> None:
    found = find_constant(lambda c: ("and", "the") if c <= 0.01 else ())
    assert (None, ("and", "the")) == (found.c, found.stopped_by)
    assert found.reason == "criterion words marked at C = 0.01: and the"


@given(st.sets(st.integers(1, 1600), max_size=60))
def test_no_order_of_marks_breaks_the_promise(marked: set[int]) -> None:
    def words(c: float) -> tuple[str, ...]:
        return ("the",) if round(1600 * c) in marked else ()

    c = find_constant(words).c
    first = next((i for i in range(1, 101) if 16 * i in marked), None)
    if first is None or first == 1:
        assert (1.0 if first is None else None) == c
    else:
        assert c is not None
        assert (first - 1) / 100 <= c < first / 100
        assert not words(c)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.0, 0.15, 0.5, 0.95, 1.0])
def test_c_is_that_of_a_plain_loop_over_all_c(alpha: float) -> None:
    graded_texts = graded()
    for english, texts, found in (
        (ENGLISH, CORPUS, run(CORPUS)),
        (ENGLISH, *lively()),
        (GRADED_ENGLISH, graded_texts, run(graded_texts, english=GRADED_ENGLISH)),
    ):
        women, men = totals(texts, "female"), totals(texts, "male")
        step = at(found, alpha)
        assert plain_c(women, men, english, alpha) == step.c
        assert step.c is not None
        for shown, groups in zip(step.lists, ((women, men), (men, women)), strict=True):
            assert tuple(sorted(Plain(alpha, step.c).marked(*groups, english)[0])) == shown.words


def test_a_criterion_word_at_the_smallest_c_is_named_and_nothing_is_recommended() -> None:
    texts = [("female", "she the kind kind and")] * 900 + [("male", "he and strong strong and of")] * 900
    found = run(texts)
    assert found.recommended is None
    assert all(step.c is None for step in found.sweep)
    assert ("of", "the") == found.c_topic.stopped_by
    assert "criterion words marked at C = 0.01 at every alpha: and of the" == found.reason
    rows = [row for row in found.rows() if row["prior"] == "hybrid"]
    assert all(row["n_marked"] is row["n_criterion"] is row["c"] is row["stability"] is None for row in rows)
    said = [row["reason"] for row in rows]
    # With more English "and" is at the limit too; the whole names all.
    assert {"of the", "and of the"} == {reason.partition("C = 0.01: ")[2] for reason in said}
    # The grid shows what was marked there.
    assert listed(found.topic[0], "female", "male").criterion == ("the",)


# --- non-binary people ------------------------------------------------------------------------------

OTHERS = [("nonbinary", "they works is is is is is and and zebra zebra a in the friend")] * 60


def test_pairs_with_non_binary_people_are_shown_and_decide_nothing() -> None:
    texts = varied(120)
    alone, three = run(texts), run([*texts, *OTHERS])
    assert [step.c for step in alone.sweep] == [step.c for step in three.sweep]
    assert any(step.c not in (None, 1.0) for step in alone.sweep)
    shown = listed(at(three, 1.0), "nonbinary", "female")
    assert shown.criterion
    assert 6 == len(at(three, 1.0).lists)


# --- halves and stability ---------------------------------------------------------------------------


def test_halvings_keep_gender_and_prompt_even_where_prompts_share_a_name() -> None:
    labels = ["female"] * 9 + ["male"] * 6
    strata = ["a"] * 4 + ["b"] * 5 + ["a"] * 2 + ["b"] * 4
    first = first_halves(labels, strata, np.random.default_rng(1))
    assert (20, 15) == first.shape
    for start, end, sizes in ((0, 4, {2}), (4, 9, {2, 3}), (9, 11, {1}), (11, 15, {2})):
        assert sizes == set(first[:, start:end].sum(axis=1).tolist())
    assert len({row.tobytes() for row in first}) > 15


def plain_phi(one: set[int], other: set[int], n_words: int) -> float:
    """Nogueira, Sechidis and Brown's estimator by its definition, for the lists `one` and `other`."""
    lists = [[int(word in chosen) for word in range(n_words)] for chosen in (one, other)]
    variances = [np.var([row[word] for row in lists], ddof=1) for word in range(n_words)]
    mean_length = np.mean([sum(row) for row in lists])
    return float(1 - np.mean(variances) / (mean_length / n_words * (1 - mean_length / n_words)))


@given(st.sets(st.integers(0, 8)), st.sets(st.integers(0, 8)))
def test_agreement_beyond_chance_is_the_published_estimator(one: set[int], other: set[int]) -> None:
    marked = np.zeros((2, 1, 9), dtype=bool)
    marked[0, 0, list(one)] = marked[1, 0, list(other)] = True
    (found,) = chance_corrected(marked).tolist()
    says_nothing = not one | other or len(one & other) == 9
    assert pytest.approx(0.0 if says_nothing else plain_phi(one, other, 9), abs=1e-12) == found
    assert -1 - 1e-12 <= found <= 1 + 1e-12


def test_the_interval_over_halvings_by_hand_and_what_has_none() -> None:
    found = over_halvings(np.array([0.2, 0.4, np.nan, 0.6]))
    assert found is not None
    half = 4.302652729911275 * 0.2 * math.sqrt(1 / 3 + 1)  # t(0.975, 2), SD, Nadeau and Bengio
    assert pytest.approx((0.4, 0.4 - half, 0.4 + half)) == (found.mean, found.low, found.high)
    assert over_halvings(np.array([0.2, 0.4, np.nan, np.nan, np.nan])) is None
    assert over_halvings(np.array([0.5])) is None


def test_shuffled_genders_keep_their_numbers_in_each_half_and_prompt() -> None:
    labels = np.array(["female", "male"] * 9 + ["female"] * 3)
    strata = ["p"] * 10 + ["b"] * 11
    first = first_halves(labels.tolist(), strata, np.random.default_rng(2))
    shuffled = shuffled_in_halves(labels, strata, first, np.random.default_rng(3))
    for row, half in zip(shuffled, first, strict=True):
        before, after = (
            Counter(zip(one.tolist(), strata, half.tolist(), strict=True)) for one in (labels, row)
        )
        assert before == after
    assert (shuffled != labels).any()


def test_lists_of_pronouns_and_names_alone_are_not_stable() -> None:
    # With them the two halves always mark the same words.
    common = "and the is in the the a a of works friend"
    texts = [("female", f"she her anna {common}")] * 30 + [("male", f"he his otto {common}")] * 30
    found = run(texts, names={"anna", "otto"})
    assert {0} == {one.n_beyond for step in found.sweep for one in step.lists}
    assert any(one.words for step in found.sweep for one in step.lists)
    assert {0.0} == {step.stability for step in found.sweep}
    assert (None, None) == (found.recommended, found.prior)
    assert found.reason.startswith("nothing is stable: ")


def test_texts_of_shuffled_genders_are_not_stable() -> None:
    texts = graded()
    genders = np.random.default_rng(4).permutation([gender for gender, _ in texts]).tolist()
    found = run([(g, text) for g, (_, text) in zip(genders, texts, strict=True)], english=GRADED_ENGLISH)
    assert found.prior is None
    assert not any(step.beyond_chance for step in found.sweep)
    assert run(texts, english=GRADED_ENGLISH).prior is not None


def steps(**stability: float | None) -> list[Step]:
    """Steps with a C by alpha in hundredths: `steps(a15=0.4)`."""
    return [Step(int(name[1:]) / 100, 0.2, (), stability=value) for name, value in stability.items()]


def test_of_tied_alphas_the_nearest_to_0_15_then_the_smaller_is_chosen() -> None:
    def best(found: list[Step]) -> float | None:
        step = calibration._most_stable(found)
        return None if step is None else step.alpha

    assert 0.20 == best(steps(a0=0.4, a20=0.4, a95=0.4))
    assert 0.10 == best(steps(a20=0.4, a10=0.4))
    assert 0.10 == best(steps(a10=0.4, a20=0.4))
    assert 0.15 == best(steps(a0=0.3 + 1e-16, a15=0.1 + 0.2, a30=0.3))
    assert 0.00 == best(steps(a30=0.4, a0=0.4))
    assert 0.90 == best(steps(a15=0.4, a90=0.4 + 1e-9))
    assert best(steps(a15=None)) is None


def judged(alpha: float, values: Sequence[float], shuffled: float = 0.0) -> Step:
    found = over_halvings(np.array(values))
    assert found is not None
    numbers = (found.mean, found.low, found.high, shuffled)
    return Step(alpha, 0.2, (), *numbers, tuple(values))


NOISE = np.tile([-0.01, 0.01], 10)


@pytest.mark.parametrize(
    ("paper", "other", "shuffled", "chosen", "is_clear"),
    [
        (0.30, 0.60, 0.0, 0.9, True),
        (0.59, 0.60, 0.0, 0.15, False),  # within the noise of the halvings
        (0.30, 0.60, 0.7, None, False),  # no better than shuffled genders
        (0.60, 0.30, 0.0, 0.15, False),
        (0.00, 0.60, 0.0, 0.9, True),
    ],
)
def test_an_alpha_must_be_clearly_above_chance_and_above_the_papers(
    paper: float, other: float, shuffled: float, chosen: float | None, is_clear: bool
) -> None:
    made = [judged(0.15, paper + NOISE, shuffled), judged(0.9, other - NOISE, shuffled)]
    best, clear, reason = calibration._decision(made, [])
    assert (chosen, is_clear) == (best.alpha if best else None, clear)
    assert ("nothing is stable" in reason) == (chosen is None)


def test_each_half_is_its_own_corpus() -> None:
    texts = graded(60)
    found = run(texts, english=GRADED_ENGLISH)
    step = at(found, 1.0)
    c = step.c
    assert c is not None
    labels = [gender for gender, _ in texts]
    rng = calibration.generator(7, "calibration", ("m", "nurse"))
    words = sorted({word for _, text in texts for word in text.split()})
    assert not any(map(is_gender_word, words))
    agreement = []
    for row in first_halves(labels, ["p"] * len(texts), rng):
        lists = []
        for half in (row, ~row):
            kept = [text for text, chosen in zip(texts, half, strict=True) if chosen]
            both = Plain(1.0, c).marked(totals(kept, "female"), totals(kept, "male"), ENGLISH)[0]
            other = Plain(1.0, c).marked(totals(kept, "male"), totals(kept, "female"), ENGLISH)[0]
            lists.append([{words.index(word) for word in one} for one in (both, other)])
        pairs = [(lists[0][k], lists[1][k]) for k in (0, 1)]
        agreement.append(
            np.mean([plain_phi(*pair, len(words)) if set.union(*pair) else 0.0 for pair in pairs])
        )
    assert len(set(agreement)) > 1
    assert pytest.approx(agreement, abs=1e-12) == step.by_halving
    assert pytest.approx(np.mean(agreement), abs=1e-12) == step.stability


# --- lists from alpha to alpha ----------------------------------------------------------------------


def test_gained_lost_and_differing_words_follow_from_the_lists() -> None:
    found = run(graded(), english=GRADED_ENGLISH)
    assert [None, None] == [listed(found.sweep[0], "female", "male").gained, found.sweep[0].lists[0].lost]
    changes = 0
    for pair in range(2):
        lists = [set(step.lists[pair].words or ()) for step in found.sweep]
        for i in range(1, 21):
            now = found.sweep[i].lists[pair]
            assert (tuple(sorted(lists[i] - lists[i - 1])), tuple(sorted(lists[i - 1] - lists[i]))) == (
                now.gained,
                now.lost,
            )
            changes += len(now.gained or ()) + len(now.lost or ())
        shared = set.intersection(*(lists[i] for i in (0, 5, 10, 15, 20)))
        assert shared
        for step, words in zip(found.sweep, lists, strict=True):
            expected = tuple(sorted(words - shared)) if step.alpha in (0, 0.25, 0.5, 0.75, 1) else None
            assert expected == step.lists[pair].differing
    assert changes > 3
    assert any(one.differing for one in found.sweep[0].lists)


def test_common_words_and_names_are_counted_among_the_marked() -> None:
    found = run(CORPUS, names={"her", "kind", "she", "elsewhere"}, english={})
    women = listed(found.topic[-1], "female", "male")
    assert women.words is not None
    marked, common = Plain(1.0, 1.0).marked(totals(CORPUS, "female"), totals(CORPUS, "male"), {})
    assert tuple(sorted(marked)) == women.words
    assert (len(marked & common), len(marked & {"her", "kind", "she"})) == (women.n_common, women.n_names)
    assert 3 == women.n_names
    assert len(marked - {"her", "kind", "she", "hers"}) == women.n_beyond


# --- the papers' rule -------------------------------------------------------------------------------


def test_interpolated_c_lies_on_the_line_between_the_two_priors_alone() -> None:
    texts, searched = lively()
    found = run(texts, c_rule="interpolated")
    assert (searched.c_topic, searched.c_english) == (found.c_topic, found.c_english)
    topic, english = found.c_topic.c, found.c_english.c
    assert topic is not None
    assert english is not None
    assert topic != english
    for step in found.sweep:
        assert pytest.approx(step.alpha * topic + (1 - step.alpha) * english, abs=1e-15) == step.c
    assert [step.c for step in searched.sweep] != [step.c for step in found.sweep]


# --- missing input ----------------------------------------------------------------------------------


@pytest.mark.parametrize("texts", [[], CORPUS[:30], [*CORPUS[:30], *OTHERS]])
def test_without_women_and_men_there_is_no_c(texts: list[tuple[str, str]]) -> None:
    found = run(texts)
    assert (None, None) == (found.c_topic.c, found.prior)
    assert "C takes texts of women and of men" == found.reason
    assert len({(text[0]) for text in texts}) * (len({text[0] for text in texts}) - 1) * 221 == len(
        list(found.rows())
    )


# --- seeds and options ------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_result_and_the_row_key_is_in_it() -> None:
    texts = varied(40)
    first = run(texts)
    assert first == run(texts)
    others = [run(texts, seed=8), run(texts, model="other"), run(texts, occupation="pilot")]
    for other in others:
        assert [step.c for step in first.sweep] == [step.c for step in other.sweep]
        assert [step.stability for step in first.sweep] != [step.stability for step in other.sweep]


# --- the real personas ------------------------------------------------------------------------------


@cache
def personas() -> tuple[list[tuple[str, str]], dict[str, int]]:
    if not PERSONAS.exists():
        not_beside(f"{PERSONAS} is not there")
    genders = {"M": "male", "W": "female", "N": "nonbinary"}
    with PERSONAS.open(newline="", encoding="utf-8") as file:
        texts = [(genders[row["gender"]], row["text"]) for row in csv.DictReader(file)]
    return texts, dict(english_counts())


@cache
def calibrated_personas() -> Calibration:
    texts, english = personas()
    return run(texts, english=english)


@pytest.mark.slow
def test_c_of_the_real_personas_is_that_of_the_plain_loop() -> None:
    texts, english = personas()
    found = calibrated_personas()
    tokens = TokenisedTexts.build(text for _, text in texts)
    counts = tokens.counts
    sums = [
        np.asarray(counts[[i for i, (g, _) in enumerate(texts) if g == gender]].sum(axis=0)).ravel()
        for gender in ("female", "male")
    ]
    women, men = (Counter({w: int(n) for w, n in zip(tokens.words, s, strict=True) if n}) for s in sums)
    for alpha in (0.0, 0.15, 1.0):
        c = at(found, alpha).c
        assert c is not None
        # Free at C, marked one 1600th above, free at the grid values below.
        assert not plain_criterion(women, men, english, alpha, c)
        assert plain_criterion(women, men, english, alpha, c + 1 / 1600)
        assert not plain_criterion(women, men, english, alpha, math.floor(c * 100) / 100 - 0.05)
        marked, common = Plain(alpha, c).marked(women, men, english)
        shown = listed(at(found, alpha), "female", "male")
        assert (tuple(sorted(marked)), len(marked & common)) == (shown.words, shown.n_common)


def test_the_real_personas_as_measured() -> None:
    # methods/words#calibration-c has "0.03 from 0.25"; the plain loop above confirms the digits.
    found = calibrated_personas()
    assert (0.24625, 0.156875) == (found.c_topic.c, found.c_english.c)
    with_others = next(step.c for step in found.topic if any(one.criterion for one in step.lists))
    assert 0.04 == with_others
    assert all(not one.criterion for step in found.sweep for one in step.lists[:2])
