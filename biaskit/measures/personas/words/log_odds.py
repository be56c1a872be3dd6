"""Which words mark one group of texts against another: z of their log-odds (methods/words#marked-words).

Everything is vectorised over leading dimensions: two hundred shuffles of the labels are one call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biaskit.errors import StudyError, UsageError, nearest
from biaskit.measurement import words as words_of_kind
from biaskit.measures.personas.texts.tokens import mask
from biaskit.stats.arrays import BoolArray, FloatArray, IntArray

Method = Literal["calibrated", "marked-personas"]
METHODS: tuple[Method, ...] = get_args(Method)

THRESHOLD = 1.96  # a word is marked strictly above it, as released; the paper says at or above
N_FREQUENT = 20  # released; not in the paper
TIED = 1e-8  # counts that differ by less are equal

FIXED_CALIBRATION_WORDS = tuple(words_of_kind("personas")["calibration_words"]["fixed"].split())
# They tell who speaks, and are marked for that and not by chance, whatever the calibration.
SPEAKER_WORDS = frozenset(("i", "you", "your", "am", "my"))

_LOGITS = np.linspace(0.0, 2.39935728052, 1_025)  # log((1 − q)/q); at the last one f(q) is largest
_SHARES, _PARTS = 1 / (1 + np.exp(_LOGITS)), _LOGITS / (2 * np.cosh(_LOGITS / 2))  # q, f(q)
_GATHERED = 3  # so many times longer takes a cell alone
_CELLS_AT_ONCE = 1 << 16  # half a megabyte of doubles: the few arrays of a step stay in the cache


@dataclass(frozen=True, slots=True)
class Prior:
    """How the hybrid prior of the calibrated method is made: alpha · topic + (1 − alpha) · English.

    `alpha` is the paper's; `c_topic` and `c_english` are the release's (not in the paper). `c` replaces
    the constant that alpha makes of the two. `rounding = released` truncates the prior to integers and
    makes a prior of 0 a 1 for words of either group; `exact` gives such a word the smallest positive prior.
    `scale = counts` blends raw counts, so the smaller the corpus, the less of the prior is topic;
    `rates` first scales the English counts to the total of the topic counts, both over the topic
    vocabulary, so that alpha is the share of topic mass (`topic_share`) in a corpus of any size.
    """

    alpha: float = 0.15
    c: float | None = None
    c_topic: float = 0.45
    c_english: float = 0.225
    rounding: Literal["exact", "released"] = "exact"
    scale: Literal["counts", "rates"] = "counts"

    def __post_init__(self) -> None:
        if not 0.0 <= self.alpha <= 1.0:
            raise StudyError(f"alpha = {self.alpha}: the share of the topic prior is between 0 and 1.")
        if not 0.0 < self.constant < float("inf"):
            raise StudyError(f"C = {self.constant}: the calibration constant is a number above 0.")
        for key, choices in (("rounding", ("exact", "released")), ("scale", ("counts", "rates"))):
            if (value := getattr(self, key)) not in choices:
                raise StudyError(
                    f"{key} = {value!r}: choose one of {', '.join(choices)}.{nearest(value, choices)}"
                )

    @property
    def constant(self) -> float:
        """C of Algorithm 3: `c` if given, else alpha · C_topic + (1 − alpha) · C_english."""
        return self.alpha * self.c_topic + (1.0 - self.alpha) * self.c_english if self.c is None else self.c


DEFAULT_PRIOR = Prior()


def blocks_of_rows(n_rows: int, n_words: int, cells: int = _CELLS_AT_ONCE) -> Iterator[slice]:
    """Cut rows of W words into blocks, by default such as stay in the processor's cache."""
    step = max(1, cells // max(1, n_words))
    return (slice(start, start + step) for start in range(0, n_rows, step))


@dataclass(frozen=True, slots=True)
class Regularised:
    """What the log-odds of R rows of counts need beside the counts (Algorithm 3)."""

    prior: FloatArray  # [R or 1, W], P; 0 outside the topic vocabulary
    by_r: FloatArray  # [2, R, 1], 1 / r_i of both groups; NaN where undefined
    totals: FloatArray  # [2, R, 1], N_i = n_i + Σ a_i
    floors: FloatArray | None = None  # [2, W], counts from which on z need not be known

    @np.errstate(invalid="ignore")  # some logarithms warn of NaN, which stands for what is undefined
    def z(self, target: FloatArray, unmarked: FloatArray) -> FloatArray:
        """Score rows of counts, `[R, W]`.

        log l_1 − log l_2 is the difference of two logarithms that change places with the groups, so
        swapping them changes the sign and not one digit.
        """
        has_prior = self.prior > 0
        prior = self.prior if has_prior.all() else np.where(has_prior, self.prior, 1.0)
        # In place: fresh arrays of this size cost more than the arithmetic.
        a = prior * self.by_r[0]
        a += target  # T_1 + a_1
        b = prior * self.by_r[1]
        b += unmarked
        z: FloatArray = self.totals[1] - b
        z *= a
        np.log(z, out=z)
        scratch = self.totals[0] - a
        scratch *= b
        z -= np.log(scratch, out=scratch)
        np.add(a, b, out=scratch)
        a *= b
        a /= scratch
        z *= np.sqrt(a, out=a)
        if prior is not self.prior:
            z *= has_prior
        return z

    def z_that_matters(self, target: FloatArray, unmarked: FloatArray) -> FloatArray:
        """Score rows of counts as `z` does; from the floors on it is 0."""
        if self.floors is None:
            return self.z(target, unmarked)
        far = np.flatnonzero(~((target >= self.floors[0]) & (unmarked >= self.floors[1])))
        if far.size * _GATHERED > target.size:
            return self.z(target, unmarked)
        rows, words = np.divmod(far, target.shape[1])
        of_cells = Regularised(self.prior[0, words], self.by_r[:, rows, 0], self.totals[:, rows, 0])
        z: FloatArray = np.zeros(target.shape)
        z.ravel()[far] = of_cells.z(target.ravel()[far], unmarked.ravel()[far])
        return z

    def at(self, rows: slice, words: IntArray | slice = slice(None)) -> Regularised:
        """Take some rows and words; the totals stay those of all words."""
        floors = None if self.floors is None else self.floors[:, words]
        return Regularised(self.prior[:, words], self.by_r[:, rows], self.totals[:, rows], floors)

    def with_floors(self, most: FloatArray, least: float) -> Regularised:
        """Find counts of both groups from which on no row's |z| is as large as `least`.

        Formula: min(x, y) ≥ q S, S the largest and √S (f(q) + ½ log ρ) = least, as in methods/words#reach.
            Both groups together have a word at most `most` times `[W]`; at or below 0: |z| is smaller in
            every row. Infinite where no count is enough, NaN if a row is NaN.
        """
        prior, by_r, totals = self.prior[0], self.by_r, self.totals
        largest = most + prior * by_r.sum(axis=0).max()  # S
        ratio = np.zeros(prior.shape)
        for ours, theirs in ((0, 1), (1, 0)):
            above = totals[ours].max() - prior * by_r[ours].min()
            below = totals[theirs].min() - most - prior * by_r[theirs].max()
            above = np.divide(above, below, out=np.full(prior.shape, np.inf), where=below > 0)
            ratio = np.maximum(ratio, above)
        of_parts = (least / np.sqrt(largest) - np.log(ratio) / 2) * (1 - 1e-9)  # rounding
        # Between two places of the table the larger q is taken.
        q = np.interp(of_parts, _PARTS[1:], _SHARES[:-1], left=np.inf, right=0.0)
        floors = (q * largest - prior * by_r.min(axis=1)) * (1 + 1e-6)
        return replace(self, floors=floors.astype(np.float32))  # as counts are


@dataclass(frozen=True, slots=True)
class LogOdds:
    """One method and what it needs to know of W words, ready for many rows of their counts.

    Counts and topic are `[R, W]` doubles; a topic that all rows share is `[1, W]`.
    """

    fixed: BoolArray  # [W], words of the fixed calibration list
    english: FloatArray  # [W]
    method: str
    prior: Prior

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            known = f"choose one of {', '.join(METHODS)}.{nearest(self.method, METHODS)}"
            raise UsageError(f"no method {self.method!r}: {known}")

    @property
    def calibrates(self) -> bool:
        """Whether there are calibration words, and a hybrid prior."""
        return self.method == "calibrated"

    def z(self, target: FloatArray, unmarked: FloatArray, topic: FloatArray) -> FloatArray:
        """Score every word of R rows, target against unmarked: z of its log-odds, `[R, W]`.

        Formula: with a_i = P / r_i and N_i = n_i + Σ a_i: l_i = (T_i + a_i) / (N_i − T_i − a_i);
            z = (log l_1 − log l_2) / sqrt(1 / (T_1 + a_1) + 1 / (T_2 + a_2)).
            Marked Personas: P = topic counts, r_i = 1. Calibrated: P = hybrid prior on the topic vocabulary,
            r_i = C · Σ_W P / Σ_W T_i over the calibration words W. Sums run over the topic vocabulary.
        The topic is never less than both counts together. Exactly negative when the groups are swapped. NaN
        along a row where r is undefined (no calibration word in a group) or with fewer than two words; 0 for
        a word without topic counts.
        Reference: methods/words#marked-words; GAS(P) Algorithms 2 to 4, with n_G in the first denominator,
            where they print n_U (Monroe et al. 2008). Checked against a plain loop.
        """
        return self.regularise(target, unmarked, topic).z(target, unmarked)

    def regularise(self, target: FloatArray, unmarked: FloatArray, topic: FloatArray) -> Regularised:
        """Compute prior, 1 / r and totals of rows."""
        groups = (target, unmarked)
        prior = self.blend(topic, groups)
        lengths = np.sum(groups, axis=2, keepdims=True)
        return self.terms(prior, lengths, self.scales(prior, groups))

    def terms(self, prior: FloatArray, lengths: FloatArray, by_r: FloatArray) -> Regularised:
        """Add up the groups' totals from n_G and n_U and 1 / r, `[2, R, 1]` both."""
        mass = prior.sum(axis=1, keepdims=True)
        # With one word in all, the odds are 0 / 0.
        mass[np.count_nonzero(prior, axis=1) < 2] = np.nan
        return Regularised(prior, by_r, lengths + mass * by_r)

    def scales(self, prior: FloatArray, groups: tuple[FloatArray, FloatArray]) -> FloatArray:
        """Compute 1 / r of both groups, `[2, R, 1]`, from the words that can be calibration words."""
        if not self.calibrates:
            return np.ones((2, len(groups[0]), 1))
        chosen = calibration_words(prior, groups, self.fixed)
        columns = np.flatnonzero(chosen.any(axis=0))
        chosen = chosen[:, columns]
        weight = self.prior.constant * (prior[:, columns] * chosen).sum(axis=1, keepdims=True)
        uses = np.array([(counts[:, columns] * chosen).sum(axis=1, keepdims=True) for counts in groups])
        return uses / np.where((uses > 0) & (weight > 0), weight, np.nan)

    def blend(self, topic: FloatArray, groups: tuple[FloatArray, FloatArray]) -> FloatArray:
        """Make the prior P, `[1 or R, W]`; only a `released` one hangs on the groups."""
        if not self.calibrates:
            return topic
        return _hybrid_prior(topic, self.english, self.prior, groups)


def _hybrid_prior(
    topic: FloatArray, english: FloatArray, prior: Prior, groups: tuple[FloatArray, FloatArray]
) -> FloatArray:
    """Blend P of the calibrated method, `[1 or R, W]`; 0 outside the topic vocabulary."""
    weights = prior.alpha * topic + (1.0 - prior.alpha) * _scaled(topic, english, prior)
    if prior.rounding == "released":
        weights = np.trunc(weights)
    weights *= topic > 0
    if prior.rounding == "exact" and prior.alpha > 0:
        return weights  # no word of the vocabulary is without prior
    rows, columns = np.nonzero((weights == 0) & (topic > 0))
    if rows.size == 0:
        return weights
    if prior.rounding == "exact":
        smallest = np.where(weights > 0, weights, np.inf).min(axis=1)
        weights[rows, columns] = np.where(np.isfinite(smallest), smallest, 0.0)[rows]
        return weights
    columns = np.unique(columns)
    in_a_group = (groups[0][:, columns] > 0) | (groups[1][:, columns] > 0)
    if len(weights) == 1 and not (in_a_group == in_a_group[:1]).all():
        weights = np.repeat(weights, len(in_a_group), axis=0)
    some = weights[:, columns]
    weights[:, columns] = np.where((some == 0) & in_a_group[: len(weights)], 1.0, some)
    return weights


def _scaled(topic: FloatArray, english: FloatArray, prior: Prior) -> FloatArray:
    """Scale English counts under `scale = rates` to the total of the topic counts, on their vocabulary."""
    if prior.scale == "counts":
        return english
    total = ((topic > 0) * english).sum(axis=-1, keepdims=True)
    by = np.divide(topic.sum(axis=-1, keepdims=True), total, out=np.zeros(total.shape), where=total > 0)
    scaled: FloatArray = english * by
    return scaled


def topic_share(topic: ArrayLike, english: ArrayLike, prior: Prior = DEFAULT_PRIOR) -> float | None:
    """Compute the part of the hybrid prior's mass that topic counts `[W]` bring, before any rounding.

    Formula: alpha · Σ topic / (alpha · Σ topic + (1 − alpha) · Σ English), sums over the topic vocabulary:
        with `scale = rates` alpha wherever both sums are positive (methods/words#prior-scale). None without
        mass.
    """
    counts = np.asarray(topic, dtype=np.float64)
    from_topic = prior.alpha * float(counts.sum())
    scaled = _scaled(counts, np.asarray(english, dtype=np.float64), prior)
    mass = from_topic + (1.0 - prior.alpha) * float(scaled[counts > 0].sum())
    return from_topic / mass if mass > 0 else None


def counts_in(english: Mapping[str, int], words: Sequence[str]) -> FloatArray:
    """Look up how often general English has these words, `[W]`; 0 where it has not."""
    return np.array([english.get(word, 0) for word in words], dtype=np.float64)


def is_fixed(words: Sequence[str]) -> BoolArray:
    """Say which words are on the fixed calibration list, `[W]`."""
    return mask(words, frozenset(FIXED_CALIBRATION_WORDS).__contains__)


def calibration_words(
    prior: NDArray[Any], groups: tuple[NDArray[Any], NDArray[Any]], fixed: BoolArray
) -> BoolArray:
    """Say which words are W: the fixed list, and those among the 20 most frequent in each of the counts.

    Prior and counts are `[R or 1, W]` in alphabetical order of the words, and so is the answer. At equal
    counts the later word is the more frequent; a word that does not occur is never frequent, and one without
    prior is not of W (methods/words#calibration-words; the list and the 20 are the release's).
    """
    frequent = most_frequent(prior) & most_frequent(groups[0]) & most_frequent(groups[1])
    mask: BoolArray = (frequent | fixed) & (prior > 0)
    return mask


def most_frequent(rows: NDArray[Any]) -> BoolArray:
    """Mark the 20 largest positive counts of each row; at equal counts the last ones."""
    columns = np.arange(rows.shape[1])
    if rows.shape[1] > N_FREQUENT and len(rows):
        # Any 20 words bound every row's 20th largest count from below; few others reach that anywhere.
        heavy = np.argpartition(rows[0], -N_FREQUENT)[-N_FREQUENT:]
        columns = np.flatnonzero(rows.max(axis=0) >= rows[:, heavy].min() - TIED)
    # Weighted counts that are equal may differ by rounding.
    order = np.argsort(np.round(rows[:, columns], 8), axis=1, kind="stable")[:, -N_FREQUENT:]
    frequent = np.zeros(rows.shape, dtype=np.bool_)
    np.put_along_axis(frequent, columns[order], True, axis=1)
    return frequent & (rows > 0)
