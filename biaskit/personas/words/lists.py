"""Which words mark each gender in one set of compared texts, and how long such lists are by chance.

A comparison is the texts of one model, occupation and origin, each with its gender. Women are compared
with men, and where there are texts of non-binary people each gender with both others (`all`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biaskit.personas.words.log_odds import (
    DEFAULT_PRIOR,
    METHODS,
    THRESHOLD,
    LogOdds,
    Prior,
    blocks_of_rows,
    is_fixed,
)
from biaskit.records import GENDERS, WOMEN_AND_MEN
from biaskit.stats.arrays import BoolArray, FloatArray, IntArray
from biaskit.stats.crossed import joined
from biaskit.stats.multiplicity import benjamini_hochberg
from biaskit.stats.resampling import generator
from biaskit.stats.swaps import reaches
from biaskit.stats.verdict import LEVEL
from biaskit.stats.welch import welch

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

AGAINST_ALL = "all"  # what a gender is compared with where several others had to be passed
N_SHUFFLES = 199
MOST_UNEQUAL = 1.25
"""How much longer one gender's texts may be: above it (Welch p < 0.05) shuffling is no chance level."""

_COUNTS_AT_ONCE = 8_000_000  # 64 MB of doubles

Place = Literal["both", "other-gender", "associated-only", "specified-only"]


@dataclass(frozen=True, slots=True)
class MarkedWord:
    """A word whose z lies above 1.96 and that occurs in the target group."""

    word: str
    rank: int  # from 1, by z descending, then by word; names and pronouns count
    z: float  # against `all`: the sum over the unmarked groups
    q_value: float  # Benjamini-Hochberg; against `all`: the largest
    count_target: int
    count_unmarked: int
    documents_target: int
    documents_unmarked: int


@dataclass(frozen=True, slots=True)
class WordList:
    """The words that mark one gender against another, or against `all` others, by one method."""

    gender: str
    against: str
    method: str
    n_target: int  # documents
    n_unmarked: int
    words: tuple[MarkedWord, ...] = ()
    n_marked: int | None = None  # None: the list is undefined, the reason says why
    null_mean: float | None = None  # length of the list with shuffled labels
    null_p95: float | None = None
    p_value: float | None = None  # of the length
    p_value_max_z: float | None = None  # of the largest |z| over the words of either group
    n_marked_beyond: int | None = None  # these four: without the words that `left_out` names, on both sides
    null_p95_beyond: float | None = None
    p_value_beyond: float | None = None
    p_value_max_z_beyond: float | None = None
    reason: str | None = None

    @property
    def longer_than_null(self) -> bool | None:
        """Whether more words beyond `left_out` are marked than in 95 % of shuffles; None when undefined."""
        if self.n_marked_beyond is None or self.null_p95_beyond is None:
            return None
        return self.n_marked_beyond > self.null_p95_beyond


def word_lists(
    counts: csr_matrix,
    *,
    words: Sequence[str],
    genders: Sequence[str],
    strata: Sequence[str],
    english: ArrayLike,
    seed: int,
    row_key: Sequence[str],
    prior: Prior = DEFAULT_PRIOR,
    methods: Sequence[str] = METHODS,
    n_shuffles: int = N_SHUFFLES,
    elsewhere: Mapping[str, ArrayLike] | None = None,
    left_out: ArrayLike | None = None,
) -> list[WordList]:
    """Make the lists of one comparison: female against male, male against female, each against `all`.

    Against `all` a word is marked when it passes against each of the other genders, each pair with topic
    counts, calibration words and q-values of its own; its z is the sum, of both methods; a pair in which
    the word does not occur adds 0. The null shuffles the genders of the documents within their strata,
    one set of shuffles for all genders and methods of a contrast.
    Arguments: counts `[documents, W]` of the compared texts in an order that does not depend on how they
        are stored; words `[W]` in alphabetical order; genders, strata `[documents]`; english `[W]`; seed of
        the study; row_key (model, occupation, origin); elsewhere: counts `[W]` per gender of texts that
        enter the topic prior and are not compared (a prior over all occupations); left_out `[W]`, the words
        that numbers "beyond" leave out: gender words and names, by default none.
    Returns: one list per gender, `against` and method, in this order.
    Missing or empty input: a gender without texts, a group without calibration words or fewer than two
        words: `n_marked` None with the reason; shuffles that are undefined are left out and counted, and if
        more than half are, there is no null.
    Reference: docs/methods.md#marked-words and docs/methods.md#word-list-null.
    """
    left_out = np.zeros(len(words), dtype=np.bool_) if left_out is None else np.asarray(left_out)
    if counts.shape != (len(genders), len(words)) or {np.shape(english), left_out.shape} != {(len(words),)}:
        raise ValueError(f"counts {counts.shape} of {len(genders)} documents and {len(words)} words")
    unknown = set(genders) - set(GENDERS)
    if unknown:
        raise ValueError(f"genders are {', '.join(GENDERS)}; found {', '.join(sorted(unknown))}")
    lists: list[WordList] = []
    for groups in (WOMEN_AND_MEN, GENDERS) if GENDERS[2] in set(genders) else (WOMEN_AND_MEN,):
        texts = _select(counts, words, genders, strata, english, groups, elsewhere, left_out)
        contrast = AGAINST_ALL if len(groups) > 2 else "/".join(groups)
        rng = generator(seed, "word_lists", [*row_key, contrast])
        lists += _lists_of(texts, prior, methods, rng, n_shuffles)
    return lists


@dataclass(frozen=True, slots=True)
class _Texts:
    """The texts of k genders, reduced to the words of their topic vocabulary."""

    groups: tuple[str, ...]
    counts: csr_matrix  # [documents, V]
    labels: tuple[str, ...]  # [documents]
    strata: tuple[str, ...]
    words: tuple[str, ...]  # [V]
    english: FloatArray  # [V]
    elsewhere: FloatArray  # [k, V]
    totals: FloatArray  # [k, V], how often a word occurs
    documents: FloatArray  # [k, V], in how many texts
    left_out: BoolArray  # [V]

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(self.labels.count(group) for group in self.groups)


def _select(
    counts: csr_matrix,
    words: Sequence[str],
    genders: Sequence[str],
    strata: Sequence[str],
    english: ArrayLike,
    groups: tuple[str, ...],
    elsewhere: Mapping[str, ArrayLike] | None,
    left_out: BoolArray,
) -> _Texts:
    from scipy.sparse import csr_matrix

    rows = [i for i, gender in enumerate(genders) if gender in groups]
    labels = tuple(genders[i] for i in rows)
    some = csr_matrix(counts, dtype=np.float64)[rows]
    outside = np.array(
        [(elsewhere or {}).get(group, np.zeros(len(words))) for group in groups], dtype=np.float64
    )
    columns = np.flatnonzero((np.bincount(some.indices, some.data, len(words)) > 0) | outside.any(axis=0))
    some = some[:, columns]
    members = np.array([[label == group for label in labels] for group in groups], dtype=np.float64)
    return _Texts(
        groups=groups,
        counts=some,
        labels=labels,
        strata=tuple(strata[i] for i in rows),
        words=tuple(words[i] for i in columns.tolist()),
        english=np.asarray(english, dtype=np.float64)[columns],
        elsewhere=outside[:, columns],
        totals=(some.T @ members.T).T,
        documents=((some > 0).astype(np.float64).T @ members.T).T,
        left_out=left_out[columns],
    )


# --- the lists -----------------------------------------------------------------------------------


def _lists_of(
    texts: _Texts, prior: Prior, methods: Sequence[str], rng: np.random.Generator, n_shuffles: int
) -> Iterator[WordList]:
    fixed = is_fixed(texts.words)
    log_odds = [LogOdds(fixed, texts.english, method, prior) for method in methods]
    empty = [[_without_words(texts, one, g) for one in log_odds] for g in range(len(texts.groups))]
    is_any_defined = any(found.reason is None for of_gender in empty for found in of_gender)
    nulls = _nulls(texts, log_odds, rng, n_shuffles if is_any_defined else 0)
    for g, of_gender in enumerate(empty):
        for one, found, null in zip(log_odds, of_gender, nulls, strict=True):
            yield found if found.reason else _with_words(found, texts, one, g, null[g])


def _without_words(texts: _Texts, log_odds: LogOdds, g: int) -> WordList:
    """Name the list of gender g, with the reason where it is undefined."""
    groups, n_target = texts.groups, texts.sizes[g]
    return WordList(
        gender=groups[g],
        against=AGAINST_ALL if len(groups) > 2 else groups[1 - g],
        method=log_odds.method,
        n_target=n_target,
        n_unmarked=len(texts.labels) - n_target,
        reason=_why_undefined(texts, log_odds, g),
    )


def _with_words(empty: WordList, texts: _Texts, log_odds: LogOdds, g: int, null: _Statistics) -> WordList:
    counts = list(texts.totals[:, None])  # one row each
    z = _z_of_pairs(log_odds, counts, texts.elsewhere)
    words = tuple(_marked_words(texts, z, g))
    observed = _statistics(z, counts, g, texts.left_out)
    found = _beside_null(replace(empty, words=words, n_marked=len(words)), observed, null)
    return _unless_unequal(found, texts, g)


def _why_undefined(texts: _Texts, log_odds: LogOdds, g: int) -> str | None:
    """Why gender g has no list: in one of its pairs texts, words or calibration words are missing."""
    for group, size in zip(texts.groups, texts.sizes, strict=True):
        if size == 0:
            return f"no {group} texts"
    for h in _others(texts.groups, g):
        one, other = texts.totals[[g]], texts.totals[[h]]
        topic = one + other + texts.elsewhere[g] + texts.elsewhere[h]
        if np.count_nonzero(topic) < 2:
            return f"fewer than two words in the {texts.groups[g]} and {texts.groups[h]} texts"
        by = log_odds.regularise(one, other, topic)
        by_r = {texts.groups[g]: by.by_r_target, texts.groups[h]: by.by_r_unmarked}
        without = [group for group, value in by_r.items() if np.isnan(value).any()]
        if without:
            return f"no calibration word in the {' and '.join(without)} texts"
    return None


def _marked_words(texts: _Texts, z: _PairZ, g: int) -> Iterator[MarkedWord]:
    """The marked words of gender g in their order."""
    others = _others(texts.groups, g)
    target, unmarked = texts.totals[g], texts.totals[others]
    against = [_z_of(z, g, h)[0] for h in others]
    total = np.sum(against, axis=0)
    q = np.max(
        [_q_values(one, (target + other) > 0) for one, other in zip(against, unmarked, strict=True)], axis=0
    )
    marked = np.flatnonzero(_is_marked(against, target))
    # Columns are in alphabetical order, so a stable sort keeps words of equal z in theirs.
    ordered = marked[np.argsort(-total[marked], kind="stable")]
    counts = (target, unmarked.sum(axis=0), texts.documents[g], texts.documents[others].sum(axis=0))
    columns = [values[ordered].astype(np.int64).tolist() for values in counts]
    scores = (total[ordered].tolist(), q[ordered].tolist())
    for rank, (i, *numbers) in enumerate(zip(ordered.tolist(), *scores, *columns, strict=True), start=1):
        yield MarkedWord(texts.words[i], rank, *numbers)


def _q_values(z: FloatArray, in_a_group: BoolArray) -> FloatArray:
    """Benjamini-Hochberg on p = 2 Φ(−|z|) over the words that occur in either group; 1 for the others."""
    from scipy.special import erfc

    q = np.ones(z.shape)
    q[in_a_group] = benjamini_hochberg(erfc(np.abs(z[in_a_group]) / np.sqrt(2.0)))
    return q


# --- statistics of a list, of the texts as they are or of many shuffles at once ------------------------

_PairZ = Mapping[tuple[int, int], FloatArray]  # genders g < h → z of g against h, [R, V]


@dataclass(frozen=True, slots=True)
class _Statistics:
    length: IntArray  # [R]
    max_z: FloatArray  # [R], the largest |z|; NaN where the list is undefined
    length_beyond: IntArray  # [R], these two: without the words left out
    max_z_beyond: FloatArray


def _others(groups: Sequence[object], g: int) -> list[int]:
    return [h for h in range(len(groups)) if h != g]


def _z_of_pairs(log_odds: LogOdds, counts: Sequence[FloatArray], elsewhere: FloatArray) -> _PairZ:
    """Score each pair of genders with topic counts of its own: z; 0 for a word that occurs in neither.

    counts: one `[R, V]` per gender; elsewhere `[k, V]`.
    """
    found = {}
    for g, h in combinations(range(len(counts)), 2):
        # Shuffled between two genders a word keeps its count; among three it may leave the pair.
        rows = slice(None) if len(counts) > 2 else slice(1)
        topic = counts[g][rows] + counts[h][rows]
        if not elsewhere.any():
            found[g, h] = log_odds.z(counts[g], counts[h], topic)
        else:
            z = log_odds.z(counts[g], counts[h], topic + (elsewhere[g] + elsewhere[h]))
            found[g, h] = z * (topic > 0)
    return found


def _z_of(z: _PairZ, g: int, h: int) -> FloatArray:
    """Take z of gender g against gender h: the same number with the other sign when they change places."""
    return z[g, h] if g < h else -z[h, g]


def _is_marked(against: Sequence[FloatArray], target: FloatArray) -> BoolArray:
    """Marked: it occurs in the target group and passes against each unmarked group."""
    marked: BoolArray = target > 0
    for z in against:
        marked &= z > THRESHOLD
    return marked


def _statistics(z: _PairZ, counts: Sequence[FloatArray], g: int, left_out: BoolArray) -> _Statistics:
    """Length of gender g's list and largest |z| over the words of any group, of each row."""
    against = [_z_of(z, g, h) for h in _others(counts, g)]
    marked = _is_marked(against, counts[g])
    total = np.abs(against[0] if len(against) == 1 else np.sum(against, axis=0))
    kept = np.flatnonzero(~left_out)
    return _Statistics(
        np.count_nonzero(marked, axis=1),
        total.max(axis=1),
        np.count_nonzero(marked[:, kept], axis=1),
        total[:, kept].max(axis=1, initial=0.0),
    )


# --- the null ----------------------------------------------------------------------------------------


def permuted_counts(
    counts: csr_matrix,
    labels: Sequence[str],
    strata: Sequence[str],
    rng: np.random.Generator,
    n: int,
    *,
    groups: Sequence[str] = WOMEN_AND_MEN,
) -> Iterator[tuple[FloatArray, ...]]:
    """Count words by gender with the labels of the documents shuffled within strata, n times.

    Arguments: counts `[documents, W]`; labels `[documents]`, each one of `groups`; strata `[documents]`
        (a prompt); rng; n. The shuffles depend on the order of the documents, not on W.
    Returns: blocks of b shuffles, in order: per group one `[b, W]` of doubles. Blocks are small enough to
        stay in the cache and b sums to n.
    Reference: docs/methods.md#word-list-null, the document-permutation null.
    """
    from scipy.sparse import csr_matrix

    shuffled = _shuffled(labels, strata, rng, n, groups)
    by_word = csr_matrix(counts.T, dtype=np.float64)  # [W, documents]
    total = np.asarray(by_word.sum(axis=1)).ravel()
    step = max(1, _COUNTS_AT_ONCE // (max(1, len(total)) * len(groups)))
    for start in range(0, n, step):
        some = shuffled[start : start + step].T
        found = [by_word @ (some == g).astype(np.float64) for g in range(len(groups) - 1)]  # [W, step]
        for block in blocks_of_rows(some.shape[1], len(total)):
            first = [np.ascontiguousarray(one[:, block].T) for one in found]
            yield (*first, total - np.sum(first, axis=0))


def _shuffled(
    labels: Sequence[str], strata: Sequence[str], rng: np.random.Generator, n: int, groups: Sequence[str]
) -> NDArray[np.int8]:
    """Labels as places in `groups`, shuffled within strata: `[n, documents]`."""
    place = {group: g for g, group in enumerate(groups)}
    codes = np.array([place[label] for label in labels], dtype=np.int8)
    shuffled = np.tile(codes, (n, 1))
    names = np.asarray(strata, dtype=object)
    for stratum in sorted(set(strata)):
        members = np.flatnonzero(names == stratum)
        shuffled[:, members] = rng.permuted(shuffled[:, members], axis=1)
    return shuffled


def _nulls(
    texts: _Texts, log_odds: Sequence[LogOdds], rng: np.random.Generator, n: int
) -> list[list[_Statistics]]:
    """Statistics of n shuffles: per method, per gender."""
    k = len(texts.groups)
    found: list[list[list[_Statistics]]] = [[[] for _ in range(k)] for _ in log_odds]
    for counts in permuted_counts(texts.counts, texts.labels, texts.strata, rng, n, groups=texts.groups):
        for one, of_method in zip(log_odds, found, strict=True):
            z = _z_of_pairs(one, counts, texts.elsewhere)
            for g in range(k):
                of_method[g].append(_statistics(z, counts, g, texts.left_out))
    return [[_joined(blocks) for blocks in of_method] for of_method in found]


def _joined(blocks: Sequence[_Statistics]) -> _Statistics:
    if not blocks:
        lengths, z = np.zeros(0, dtype=np.int64), np.zeros(0)
        return _Statistics(lengths, z, lengths, z)
    return _Statistics(*(np.concatenate([getattr(b, f.name) for b in blocks]) for f in fields(_Statistics)))


def _unless_unequal(found: WordList, texts: _Texts, g: int) -> WordList:
    """Take the null of what is said from a list whose texts differ in length between the genders.

    The shorter gender's words weigh less in its prior, so its list grows; shuffled labels level the lengths.
    """
    if found.null_p95_beyond is None:
        return found
    lengths, labels = np.asarray(texts.counts.sum(axis=1)).ravel(), np.array(texts.labels)
    for h in _others(texts.groups, g):
        why = why_unequal({texts.groups[k]: lengths[labels == texts.groups[k]] for k in (g, h)})
        if why:
            return replace(
                found,
                null_p95_beyond=None,
                p_value_beyond=None,
                p_value_max_z_beyond=None,
                reason=joined([found.reason, why]),
            )
    return found


def why_unequal(lengths: Mapping[str, FloatArray]) -> str | None:
    """Why shuffled labels are no chance level for texts of two genders: one's are much longer; else None."""
    (least, short), (most, long) = sorted((values.mean(), gender) for gender, values in lengths.items())
    if most <= MOST_UNEQUAL * least or min(values.size for values in lengths.values()) < 2:
        return None
    p = welch(*lengths.values()).p_value  # None where the texts of each gender are all of one length
    if p is not None and p >= LEVEL:
        return None
    times = f"{most / least:.1f}" if least else "many"
    return f"{long} texts are {times} times as long as {short} ones: shuffled genders are no chance level"


def _beside_null(found: WordList, observed: _Statistics, null: _Statistics) -> WordList:
    """The list with its null: p = (1 + number of shuffles that reach the observed value) / (n + 1)."""
    found = replace(found, n_marked_beyond=int(observed.length_beyond[0]))
    defined = ~np.isnan(null.max_z)
    n, n_left_out = int(defined.sum()), int((~defined).sum())
    reason = f"{n_left_out} of {len(defined)} shuffles are undefined and left out" if n_left_out else None
    if n == 0 or n < n_left_out:
        return replace(found, reason=f"{reason}: no null" if reason else "no shuffles")
    length, beyond = null.length[defined], null.length_beyond[defined]

    def p(n_reached: NDArray[np.bool_]) -> float:
        return (1 + int(n_reached.sum())) / (n + 1)

    return replace(
        found,
        null_mean=float(length.mean()),
        null_p95=float(np.percentile(length, 95)),
        p_value=p(length >= observed.length[0]),
        p_value_max_z=p(reaches(null.max_z[defined], float(observed.max_z[0]))),
        null_p95_beyond=float(np.percentile(beyond, 95)),
        p_value_beyond=p(beyond >= observed.length_beyond[0]),
        p_value_max_z_beyond=p(reaches(null.max_z_beyond[defined], float(observed.max_z_beyond[0]))),
        reason=reason,
    )


# --- two lists side by side ----------------------------------------------------------------------------


def compare_lists(calibrated: Sequence[str], marked_personas: Sequence[str]) -> list[tuple[str, str]]:
    """Each word that one method marks and the other does not (GAS(P) Tables 7 and 8), with that method.

    Marked Personas first, each in its order.
    """
    sides = (
        ("marked-personas", marked_personas, set(calibrated)),
        ("calibrated", calibrated, set(marked_personas)),
    )
    return [(word, method) for method, own, other in sides for word in own if word not in other]


def overlap(
    associated: Mapping[str, Sequence[str]], specified: Mapping[str, Sequence[str]]
) -> list[tuple[str, str, Place]]:
    """Where each word of a gender's two lists stands (GAS(P) Table 15): (gender, word, place).

    See docs/methods.md#list-comparisons, word_overlap.csv.

    In both; associated with the gender and specified for the other; only specified; only associated. Names
    and pronouns included.
    Arguments: gender (female, male) → words of its calibrated list in their order.
    Returns: per gender the associated words in their order, then those only specified in theirs.
    Missing or empty input: a gender that lacks one of its lists has no rows.
    """
    return [
        (gender, word, place)
        for gender in WOMEN_AND_MEN
        if gender in associated and gender in specified
        for word, place in _places(gender, associated[gender], specified)
    ]


def _places(
    gender: str, associated: Sequence[str], specified: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, Place]]:
    own, placed = set(specified[gender]), set(associated)
    others = {word for other, words in specified.items() if other != gender for word in words}
    for word in associated:
        yield word, "both" if word in own else "other-gender" if word in others else "associated-only"
    for word in specified[gender]:
        if word not in placed:
            yield word, "specified-only"
