"""Lists of marked words and their nulls: by hand, against plain loops, and against simulated truth."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from fakes.scored import z_scores
from fakes.word_bursts import rejected_without_difference
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from biaskit.measures.personas.words import log_odds as marked_words
from biaskit.measures.personas.words import shuffles as module
from biaskit.measures.personas.words.contrasts import WordList
from biaskit.measures.personas.words.lists import overlap, word_lists
from biaskit.measures.personas.words.log_odds import METHODS, THRESHOLD, Prior
from biaskit.measures.personas.words.shuffles import Shuffles
from biaskit.records import GENDERS, WOMEN_AND_MEN
from biaskit.stats.resampling import generator

FloatArray = NDArray[np.float64]

KEY = ("demo", "nurse", "requested")
ENGLISH = {"the": 69_971, "a": 23_195, "of": 36_412, "he": 9_548, "she": 2_860, "law": 299, "art": 208}


@dataclass(frozen=True)
class Corpus:
    """Texts with their genders and prompts."""

    texts: tuple[str, ...]
    genders: tuple[str, ...]
    strata: tuple[str, ...]
    elsewhere: tuple[str, ...] = ()  # words of other occupations only

    @property
    def words(self) -> list[str]:
        return sorted({word for text in self.texts for word in text.split()} | set(self.elsewhere))

    def counts(self) -> csr_matrix:
        words = self.words
        rows = [[text.split().count(word) for word in words] for text in self.texts]
        return csr_matrix(np.array(rows, dtype=np.int32).reshape(len(self.texts), len(words)))

    def total(self, gender: str) -> FloatArray:
        found = Counter(
            word
            for text, one in zip(self.texts, self.genders, strict=True)
            if one == gender
            for word in text.split()
        )
        return np.array([found[word] for word in self.words], dtype=np.float64)

    def english(self) -> FloatArray:
        return np.array([ENGLISH.get(word, 0) for word in self.words], dtype=np.float64)

    def lists(self, **choices: object) -> list[WordList]:
        scope: dict[str, object] = {
            "words": self.words,
            "genders": self.genders,
            "strata": self.strata,
            "english": self.english(),
            "seed": 7,
            "row_key": KEY,
            **choices,
        }
        return word_lists(self.counts(), **scope)  # type: ignore[arg-type]

    def only(self, *genders: str) -> Corpus:
        rows = [i for i, gender in enumerate(self.genders) if gender in genders]
        columns = (self.texts, self.genders, self.strata)
        return Corpus(*(tuple(column[i] for i in rows) for column in columns))


def simulated(rng: np.random.Generator, genders: Sequence[str] = GENDERS, n: int = 12) -> Corpus:
    """n texts per gender of two prompts; each gender has a pronoun, women and non-binary people yoga."""
    own = {"female": "she yoga", "male": "he chess", "nonbinary": "they yoga"}
    common = ("a", "law", "of", "the", "job", "town", "the", "works", "with", "a", "life", "of", "the")
    rare = [f"w{i}" for i in range(60)]
    texts, labels = [], []
    for gender in genders:
        for _ in range(n):
            pick = [*rng.choice(common, 12), *rng.choice(rare, 6)]
            mine = rng.choice(own[gender].split(), 8) if rng.random() < 0.8 else []
            texts.append(" ".join([*pick, *mine]))
            labels.append(gender)
    strata = tuple("biography" if i % 2 else "persona" for i in range(len(texts)))
    return Corpus(tuple(texts), tuple(labels), strata)


THREE = simulated(np.random.default_rng(5))
TWO = THREE.only("female", "male")


def one_list(lists: Sequence[WordList], gender: str, against: str, method: str) -> WordList:
    (found,) = [x for x in lists if (gender, against, method) == (x.gender, x.against, x.method)]
    return found


def z_of(
    corpus: Corpus, gender: str, against: str, method: str, prior: Prior | None = None
) -> dict[str, float]:
    """From the totals of the two genders alone, by the function that has tests of its own."""
    pair = corpus.only(gender, against)
    z = z_scores(
        pair.total(gender),
        pair.total(against),
        words=pair.words,
        english=pair.english(),
        method=method,
        prior=prior or Prior(),
    )
    return dict(zip(pair.words, z.tolist(), strict=True))


def plain_q(z: Mapping[str, float]) -> dict[str, float]:
    """Benjamini and Hochberg by the definition: the smallest m p / rank of this and all later ranks."""
    p = {w: math.erfc(abs(value) / math.sqrt(2)) for w, value in z.items()}
    q, smallest = {}, 1.0
    for rank, w in sorted(enumerate(sorted(p, key=lambda w: p[w]), start=1), reverse=True):
        smallest = min(smallest, len(p) * p[w] / rank)
        q[w] = smallest
    return q


# --- two genders ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("gender", "against"), [("female", "male"), ("male", "female")])
def test_a_list_holds_the_words_above_the_threshold_with_their_counts_and_q_values(
    gender: str, against: str, method: str
) -> None:
    found = one_list(TWO.lists(n_shuffles=3), gender, against, method)
    z = z_of(TWO, gender, against, method)
    q = plain_q(z)
    target, unmarked = (Counter(" ".join(TWO.only(g).texts).split()) for g in (gender, against))
    in_texts = {g: [set(text.split()) for text in TWO.only(g).texts] for g in (gender, against)}
    expected = sorted((w for w in z if z[w] > THRESHOLD and target[w]), key=lambda w: (-z[w], w))
    assert expected
    assert expected == [one.word for one in found.words]
    for rank, one in enumerate(found.words, start=1):
        documents = (sum(one.word in words for words in in_texts[g]) for g in (gender, against))
        assert (rank, target[one.word], unmarked[one.word], *documents) == (
            one.rank,
            one.count_target,
            one.count_unmarked,
            one.documents_target,
            one.documents_unmarked,
        )
        assert (z[one.word], q[one.word]) == pytest.approx((one.z, one.q_value), rel=1e-9)
    assert (len(expected), 12, 12) == (found.n_marked, found.n_target, found.n_unmarked)


@st.composite
def corpora(draw: st.DrawFn) -> Corpus:
    """Up to ten short texts of any genders, some of them empty."""
    text = st.lists(st.sampled_from(("art", "he", "law", "of", "she", "the", "yoga")), max_size=12)
    n = draw(st.integers(2, 10))
    return Corpus(
        tuple(" ".join(draw(text)) for _ in range(n)),
        tuple(draw(st.sampled_from(GENDERS)) for _ in range(n)),
        tuple(draw(st.sampled_from(("biography", "persona"))) for _ in range(n)),
    )


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(corpora(), st.sampled_from((0.01, 0.15, 1.0)))
def test_any_texts_give_a_list_or_a_reason_and_no_word_that_the_target_lacks(
    corpus: Corpus, alpha: float
) -> None:
    elsewhere = {gender: 40.0 * (i + np.arange(len(corpus.words))) for i, gender in enumerate(GENDERS)}
    for choices in ({}, {"elsewhere": elsewhere}):
        for one in corpus.lists(prior=Prior(alpha=alpha), n_shuffles=9, **choices):
            assert all(word.count_target >= word.documents_target >= 1 for word in one.words)
            if one.n_marked is None:
                assert one.reason
                assert (None, None, None, None, ()) == (
                    one.null_mean,
                    one.null_p95,
                    one.p_value,
                    one.p_value_max_z,
                    one.words,
                )
            else:
                assert len(one.words) == one.n_marked
                # Of nine shuffles p is 0.1 at the least; where none is as long beyond the rest, 90 follow.
                assert one.p_value is None or 0.01 <= one.p_value <= 1.0
                assert one.p_value_beyond is None or 0.01 <= one.p_value_beyond <= 1.0
                unequal = "times as long as" in (one.reason or "")
                assert (one.p_value is None or unequal) == (one.longer_than_null is None)


# --- three genders --------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("gender", GENDERS)
def test_against_all_a_word_passes_against_each_its_z_is_the_sum_and_its_q_the_largest(
    gender: str, method: str
) -> None:
    found = one_list(THREE.lists(n_shuffles=3), gender, "all", method)
    others = [other for other in GENDERS if other != gender]
    z = [z_of(THREE, gender, other, method) for other in others]
    q = [plain_q(one) for one in z]
    own = Counter(" ".join(THREE.only(gender).texts).split())
    unmarked = Counter(" ".join(THREE.only(*others).texts).split())
    passed = {w for w in own if all(one[w] > THRESHOLD for one in z)}
    assert passed
    assert sorted(passed, key=lambda w: (-z[0][w] - z[1][w], w)) == [one.word for one in found.words]
    for one in found.words:
        expected = (z[0][one.word] + z[1][one.word], max(q[0][one.word], q[1][one.word]))
        assert expected == pytest.approx((one.z, one.q_value), rel=1e-9)
        assert (own[one.word], unmarked[one.word]) == (one.count_target, one.count_unmarked)
    assert (12, 24) == (found.n_target, found.n_unmarked)


def test_texts_of_nonbinary_people_change_no_number_of_women_against_men() -> None:
    without = TWO.lists(n_shuffles=39)
    assert without == [one for one in THREE.lists(n_shuffles=39) if one.against != "all"]


# --- the null -------------------------------------------------------------------------------------


def test_shuffles_keep_each_prompts_genders_and_every_words_total() -> None:
    # One word per prompt, once in each of its texts: its count by gender is the number of texts.
    genders = ("female", "male", "male", "female", "female", "nonbinary", "male", "female")
    strata = ("p", "p", "p", "q", "q", "q", "q", "r")
    corpus = Corpus(tuple(f"{s} x{i}" for i, s in enumerate(strata)), genders, strata)
    shuffles = Shuffles.of(genders, strata, np.random.default_rng(1), 50, groups=GENDERS)
    ((_, counts),) = shuffles.counted(corpus.counts())  # [gender, shuffle, word]
    assert (3, 50, 11) == counts.shape
    by_prompt = counts[:, :, :3]
    assert (by_prompt == np.array([[1, 2, 1], [2, 1, 0], [0, 1, 0]])[:, None]).all()
    assert (1.0 == counts[:, :, 3:].sum(axis=0)).all()


@pytest.mark.parametrize("most", [3, 1 << 14, 1 << 15, 1 << 22])
@pytest.mark.parametrize("groups", [WOMEN_AND_MEN, GENDERS])
def test_counts_under_shuffled_labels_are_exact_for_words_of_any_number_in_few_texts_and_in_many(
    groups: Sequence[str], most: int
) -> None:
    rng = np.random.default_rng(3)
    labels, has = rng.choice(groups, 40).tolist(), rng.random((40, 30)) < np.linspace(0.03, 1, 30)
    counts = rng.integers(1, most, (40, 30)) * has
    counts[0, :3] = most  # of two texts, and of one alone
    shuffles = Shuffles.of(labels, ["p"] * 40, rng, 25, groups=groups)
    ((_, found),) = shuffles.counted(csr_matrix(counts))
    for g, of_label in enumerate(found):
        assert ((shuffles.labels == g) @ counts == of_label).all()


def shuffles(corpus: Corpus, contrast: str, *n: int) -> FloatArray:
    """Counts by gender of every word under the shuffles of one contrast: `[gender, sum of n, W]`."""
    rng = generator(7, "word_lists", [*KEY, contrast])
    groups = tuple(dict.fromkeys(corpus.genders))
    blocks = []
    for m in n:
        shuffled = Shuffles.of(corpus.genders, corpus.strata, rng, m, groups=groups)
        blocks += [counts for _, counts in shuffled.counted(corpus.counts())]
    return np.concatenate(blocks, axis=1)


def statistics(
    corpus: Corpus,
    counts: FloatArray,
    gender: str,
    method: str,
    prior: Prior,
    elsewhere: Mapping[str, FloatArray] | None = None,
    left_out: Sequence[str] = (),
) -> tuple[int, float]:
    """Length of the list and largest |z| of one row of counts `[gender, W]`, pair by pair."""
    of = dict(zip(dict.fromkeys(corpus.genders), counts, strict=True))
    scope = {"words": corpus.words, "english": corpus.english(), "method": method, "prior": prior}
    z = []
    for other in of:
        if other != gender:
            both = of[gender] + of[other]
            topic = both + (elsewhere[gender] + elsewhere[other] if elsewhere else 0)
            found = z_scores(of[gender], of[other], topic=topic, **scope)  # type: ignore[arg-type]
            z.append(np.where(both > 0, found, 0.0))
    passed = [of[gender][i] > 0 and all(one[i] > THRESHOLD for one in z) for i in range(len(corpus.words))]
    kept = [i for i, word in enumerate(corpus.words) if word not in left_out]
    return sum(passed[i] for i in kept), float(np.abs(sum(z))[kept].max())


GENDERED = ("he", "she", "they")


def left_out(corpus: Corpus) -> list[bool]:
    return [word in GENDERED for word in corpus.words]


def test_texts_that_differ_in_pronouns_alone_are_no_longer_than_chance_beyond_them() -> None:
    rng = np.random.default_rng(3)
    texts, genders = [], []
    for i in range(80):
        gender, own = (("female", "she"), ("male", "he"))[i % 2]
        texts.append(" ".join([*rng.choice([f"w{k}" for k in range(80)], 40), *[own] * 6, "the", "a", "of"]))
        genders.append(gender)
    corpus = Corpus(tuple(texts), tuple(genders), ("p",) * 80)
    for one in corpus.lists(left_out=left_out(corpus)):
        assert one.p_value_max_z == 1 / 200  # circular: shuffled genders cannot follow she and he
        assert one.p_value_max_z_beyond is not None
        assert one.p_value_max_z_beyond > 0.05
        assert one.n_marked is not None
        assert one.n_marked - 1 == one.n_marked_beyond
        assert one.longer_than_null is False


@pytest.mark.parametrize(("times", "judged"), [(1, True), (2, False)])
def test_texts_of_unequal_length_have_no_chance_level_beyond(times: int, judged: bool) -> None:
    """methods/words#word-list-null: shuffled labels level the lengths, and the shorter list grows."""
    longer = [
        " ".join([text] * times) if gender == "male" else text
        for text, gender in zip(TWO.texts, TWO.genders, strict=True)
    ]
    for one in replace(TWO, texts=tuple(longer)).lists(n_shuffles=19):
        beyond = (one.null_p95_beyond, one.p_value_beyond, one.p_value_max_z_beyond, one.longer_than_null)
        assert all((value is not None) == judged for value in beyond)
        assert one.p_value is not None
        assert one.n_marked_beyond is not None
        said = "male texts are" in (one.reason or "") and "times as long as female ones" in (one.reason or "")
        assert said == (not judged)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("corpus", "contrast"), [(TWO, "female/male"), (THREE, "all")])
@pytest.mark.parametrize("rounding", ["exact", "released"])
@pytest.mark.parametrize("scope", ["occupation", "all"])
def test_the_null_is_that_of_a_plain_loop_over_the_same_shuffles(
    corpus: Corpus, contrast: str, method: str, rounding: str, scope: str
) -> None:
    prior = Prior(alpha=0.5, rounding=rounding)  # type: ignore[arg-type]
    genders = list(dict.fromkeys(corpus.genders))
    if scope == "all":  # `queen` has a large z wherever r_1 and r_2 differ
        corpus = replace(corpus, elsewhere=("queen",))
    elsewhere = {gender: (100.0 * i + 7) * corpus.total(gender) for i, gender in enumerate(genders)}
    elsewhere["female"][corpus.words.index("queen") if scope == "all" else 0] += 1e8
    choices = {"elsewhere": elsewhere} if scope == "all" else {}
    found = corpus.lists(prior=prior, n_shuffles=60, left_out=left_out(corpus), **choices)
    first = shuffles(corpus, contrast, 60)
    for gender in genders:
        against = "all" if contrast == "all" else {"female": "male", "male": "female"}[gender]
        one = one_list(found, gender, against, method)
        observed = np.array([corpus.total(g) for g in genders])
        scope = {"left_out": GENDERED, **choices}
        beyond = statistics(corpus, observed, gender, method, prior, **scope)[0]  # type: ignore[arg-type]
        of_first = [statistics(corpus, first[:, row], gender, method, prior, **scope) for row in range(60)]  # type: ignore[arg-type]
        at_floor = all(length < beyond for length, _ in of_first)
        shuffled = shuffles(corpus, contrast, 60, 9 * 61) if at_floor else first
        n = shuffled.shape[1]
        length, max_z = statistics(corpus, observed, gender, method, prior, **choices)
        null = [statistics(corpus, shuffled[:, row], gender, method, prior, **choices) for row in range(n)]
        lengths = [row[0] for row in null]
        assert length == one.n_marked
        assert float(np.mean(lengths)) == pytest.approx(one.null_mean)
        assert float(np.percentile(lengths, 95)) == pytest.approx(one.null_p95)
        assert (1 + sum(n >= length for n in lengths)) / (n + 1) == one.p_value
        reached = sum(row[1] >= max_z * (1 - 1e-12) for row in null)
        assert (1 + reached) / (n + 1) == one.p_value_max_z
        length, max_z = statistics(corpus, observed, gender, method, prior, **scope)  # type: ignore[arg-type]
        null = [statistics(corpus, shuffled[:, row], gender, method, prior, **scope) for row in range(n)]  # type: ignore[arg-type]
        lengths = [row[0] for row in null]
        assert length == one.n_marked_beyond
        assert float(np.percentile(lengths, 95)) == pytest.approx(one.null_p95_beyond)
        assert (1 + sum(n >= length for n in lengths)) / (n + 1) == one.p_value_beyond
        reached = sum(row[1] >= max_z * (1 - 1e-12) for row in null)
        assert (1 + reached) / (n + 1) == one.p_value_max_z_beyond


def test_a_list_at_the_floor_of_its_shuffles_gets_ten_times_as_many_and_no_other() -> None:
    corpus = apart("warm", "team")
    for n, least in ((19, 1 / 200), (199, 1 / 2_000), (999, 1 / 2_000)):
        found = corpus.lists(n_shuffles=n, methods=("marked-personas",))
        assert [least, least] == [one.p_value_beyond for one in found]


def test_a_list_that_shuffles_reach_keeps_its_own_beside_one_that_none_does() -> None:
    """Which shuffles serve a list must not hang on another list of the contrast."""
    women, men = apart("warm", "w", seed=8).lists(n_shuffles=60, methods=("marked-personas",))
    assert (1 / 610, 4 / 61) == (women.p_value_beyond, men.p_value_beyond)


def apart(*own: str, seed: int = 3) -> Corpus:
    """Texts of women and of men, of 40 common words and four of ten words that begin as here."""
    rng, texts = np.random.default_rng(seed), []
    for beginning in own * 40:
        said = [
            *rng.choice([f"w{k}" for k in range(80)], 40),
            *rng.choice([f"{beginning}{k}" for k in range(10)], 4),
        ]
        texts.append(" ".join([*said, "the", "a", "of"]))
    return Corpus(tuple(texts), ("female", "male") * 40, ("p",) * 80)


def test_shuffles_are_shared_by_genders_and_methods_and_do_not_depend_on_the_blocks() -> None:
    whole = THREE.lists(n_shuffles=39)
    for method in METHODS:
        alone = THREE.lists(n_shuffles=39, methods=(method,))
        assert alone == [one for one in whole if one.method == method]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(marked_words, "_CELLS_AT_ONCE", 100)
        patch.setattr(module, "AT_ONCE", 2000)
        assert whole == THREE.lists(n_shuffles=39)


def test_genders_that_go_with_their_prompt_are_no_finding_since_shuffles_stay_within_prompts() -> None:
    # Women's texts come mostly from one prompt, and the prompts' words differ: no gender in it.
    texts = ("yoga " * 6 + "the a of", "chess " * 6 + "the a of")
    of_female, of_male = [0] * 18 + [1] * 2, [0] * 2 + [1] * 18
    prompts = [*of_female, *of_male]
    corpus = Corpus(
        tuple(texts[p] for p in prompts), ("female",) * 20 + ("male",) * 20, tuple(f"p{p}" for p in prompts)
    )
    within = one_list(corpus.lists(), "female", "male", "calibrated")
    across = one_list(replace(corpus, strata=("p",) * 40).lists(), "female", "male", "calibrated")
    assert ["yoga"] == [one.word for one in within.words] == [one.word for one in across.words]
    assert (1.0, 1.0) == (within.p_value, within.p_value_max_z)
    assert 1 / 200 == across.p_value_max_z


# --- a prior over all occupations -----------------------------------------------------------------


def test_texts_elsewhere_enter_the_topic_prior_and_neither_counts_nor_q_values() -> None:
    # `queen` stands only in other occupations: part of the prior, never marked, no test among the q-values.
    corpus = replace(TWO, texts=(*TWO.texts[:-1], TWO.texts[-1] + " queen"))
    words, counts = corpus.words, corpus.counts().toarray()
    queen = words.index("queen")
    counts[:, queen] = 0
    elsewhere = {gender: 5.0 * corpus.total(gender) for gender in ("female", "male")}
    elsewhere["female"][queen] = 400.0
    scope = {"words": words, "english": corpus.english()}
    (found, *_) = word_lists(
        csr_matrix(counts),
        genders=corpus.genders,
        strata=corpus.strata,
        seed=7,
        row_key=KEY,
        n_shuffles=5,
        elsewhere=elsewhere,
        **scope,  # type: ignore[arg-type]
    )
    target, unmarked = (
        counts[[g == gender for g in corpus.genders]].sum(axis=0) for gender in ("female", "male")
    )
    topic = target + unmarked + elsewhere["female"] + elsewhere["male"]
    z = dict(zip(words, z_scores(target, unmarked, topic=topic, **scope), strict=True))  # type: ignore[arg-type]
    without = z_scores(target, unmarked, **scope)  # type: ignore[arg-type]
    assert z["she"] != pytest.approx(without[words.index("she")], rel=1e-3)
    q = plain_q({w: z[w] for w in words if w != "queen"})
    assert found.words
    for one in found.words:
        assert (z[one.word], q[one.word]) == pytest.approx((one.z, one.q_value), rel=1e-9)


# --- what cannot be computed ----------------------------------------------------------------------


def test_without_a_calibration_word_only_the_calibrated_list_is_undefined() -> None:
    lists = Corpus(("the art the law", "chess war war"), ("female", "male"), ("p", "p")).lists(n_shuffles=9)
    assert "no calibration word in the male texts" == one_list(lists, "female", "male", "calibrated").reason
    assert "no calibration word in the male texts" == one_list(lists, "male", "female", "calibrated").reason
    assert one_list(lists, "male", "female", "marked-personas").reason is None


def test_undefined_shuffles_are_left_out_and_counted() -> None:
    # `the` stands in two of four texts and is the only word of two texts: given both, one gender has no r.
    corpus = Corpus(
        ("the she she", "art", "the he he", "law"), ("female", "female", "male", "male"), ("p",) * 4
    )
    found = one_list(corpus.lists(), "female", "male", "calibrated")
    shuffled = shuffles(corpus, "female/male", 199)[:, :, corpus.words.index("the")]
    n_undefined = int((shuffled == 0).any(axis=0).sum())
    assert 0 < n_undefined < 100
    assert f"{n_undefined} of 199 shuffles are undefined and left out" == found.reason
    assert found.p_value_max_z is not None
    assert found.p_value_max_z * (200 - n_undefined) == pytest.approx(
        round(found.p_value_max_z * (200 - n_undefined))
    )


# --- two lists side by side -----------------------------------------------------------------------


def test_a_word_stands_in_both_lists_in_the_other_genders_or_in_one() -> None:
    inferred = {"female": ["she", "chess", "yoga"], "male": ["he"]}
    requested = {"female": ["woman", "she"], "male": ["chess", "he", "she"]}
    expected = [
        ("female", "she", "both"),
        ("female", "chess", "other-gender"),
        ("female", "yoga", "inferred-only"),
        ("female", "woman", "requested-only"),
        ("male", "he", "both"),
        ("male", "chess", "requested-only"),
        ("male", "she", "requested-only"),
    ]
    assert expected == overlap(inferred, requested)


# --- statistical truth ----------------------------------------------------------------------------


@pytest.mark.slow
def test_without_a_difference_the_permutation_tests_keep_their_level() -> None:
    n = 400
    found = rejected_without_difference(n)
    three_errors = 3 * math.sqrt(0.05 * 0.95 / n)
    for method in METHODS:
        assert found.length[method] < 0.05 + three_errors
        assert abs(found.max_z[method] - 0.05) < three_errors
        # What the nulls are for: q-values take the tokens of a text for independent.
        assert found.any_q[method] > 0.9
