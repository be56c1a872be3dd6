"""How well two groups of documents can be told apart by their words: a size, not evidence.

A document is judged by what other documents teach: within a sample each pair of one document of either group
by all the others (leave-pair-out), across two samples by the whole of the other (docs/methods.md#transfer).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from biaskit.stats.arrays import BoolArray, FloatArray
from biaskit.stats.crossed import share_interval
from biaskit.stats.swaps import reaches
from biaskit.stats.welch import varies

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

CHANCE = 0.5
PRIOR_WORDS = 5.0
"""Occurrences added to every word: a rare word's weight is a quotient of two small numbers."""
_SAME = 1e-9  # of the largest score: what is nearer is a tie, whatever rounding made of it


def area_under_curve(first: ArrayLike, second: ArrayLike) -> float | None:
    """Area under the ROC curve: how often a score of `first` lies above one of `second`.

    Formula: (number of pairs with a > b + half the number with a = b) / number of pairs.
    Arguments: first `[n]`, second `[m]`: scores.
    Returns: in [0, 1]; 0.5 where the scores tell nothing.
    Missing or empty input: None without a pair.
    Reference: docs/methods.md#transfer; Hanley and McNeil 1982; checked against a loop over all pairs.
    """
    a, b = (np.asarray(scores, dtype=np.float64).ravel() for scores in (first, second))
    if not a.size or not b.size:
        return None
    labels = np.concatenate([np.ones(a.size, dtype=np.bool_), np.zeros(b.size, dtype=np.bool_)])
    return float(_wins(np.concatenate([a, b])[:, None], labels[:, None])[0]) / (a.size * b.size)


@dataclass(frozen=True, eq=False)
class Sample:
    """Documents of two groups in strata, with shuffled labels: column 0 of `labels` is as observed."""

    counts: csr_matrix  # [documents, W], of the words that may be used
    labels: BoolArray  # [documents, 1 + shuffles]: whether of the first group
    strata: tuple[str, ...]  # [documents]

    @classmethod
    def shuffled(
        cls,
        counts: csr_matrix,
        is_first: Sequence[bool],
        strata: Sequence[str],
        rng: np.random.Generator,
        n_shuffles: int,
    ) -> Sample:
        """Documents with their labels, and the labels shuffled within strata `n_shuffles` times."""
        observed = np.asarray(is_first, dtype=np.bool_)
        labels = np.tile(observed[:, None], (1, 1 + n_shuffles))
        names = np.asarray(strata, dtype=object)
        for stratum in sorted(set(strata)):
            members = np.flatnonzero(names == stratum)
            labels[members, 1:] = rng.permuted(labels[members, 1:], axis=0)
        return cls(counts, labels, tuple(strata))

    @cached_property
    def shares(self) -> csr_matrix:
        """Each word's share of its document, so that a document's length has no part in its score."""
        from scipy.sparse import csr_matrix, diags_array

        counts = csr_matrix(self.counts, dtype=np.float64)
        lengths = np.asarray(counts.sum(axis=1)).ravel()
        return csr_matrix(diags_array(1.0 / np.maximum(lengths, 1.0)) @ counts)

    @cached_property
    def scale(self) -> FloatArray:
        """1 / (mean share + prior) of each word of these documents, `[W]`; blind to their labels."""
        n_words = max(float(self.counts.sum()), 1.0)
        mean = np.asarray(self.shares.mean(axis=0)).ravel()
        scale: FloatArray = np.where(mean > 0, 1.0 / (mean + PRIOR_WORDS / n_words), 0.0)
        return scale

    @cached_property
    def members(self) -> tuple[np.ndarray, ...]:
        """Places of the documents of each stratum."""
        names = np.asarray(self.strata, dtype=object)
        return tuple(np.flatnonzero(names == stratum) for stratum in sorted(set(self.strata)))

    @cached_property
    def coefficients(self) -> FloatArray:
        """Of each document in the weights, `[documents, 1 + shuffles]`: sums to 0 within a stratum."""
        found = self.labels.astype(np.float64)
        for own in self.members:
            found[own] -= found[own].mean(axis=0)
        return found

    @property
    def n_pairs(self) -> int:
        """Pairs of one document of either group within a stratum."""
        first = [int(self.labels[own, 0].sum()) for own in self.members]
        return sum(n * (len(own) - n) for n, own in zip(first, self.members, strict=True))


@dataclass(frozen=True, slots=True)
class HeldOut:
    """An area under the curve with those of shuffled labels: of the teaching, and of the judged documents."""

    area: float
    taught: FloatArray  # [shuffles], labels shuffled where the weights are learnt
    judged: FloatArray  # [shuffles], labels shuffled where they are tested; within a sample the same

    @property
    def p_value(self) -> float:
        """Two-sided permutation p: see `p_of_area`."""
        return p_of_area(self.area, self.taught, self.judged)


def p_of_area(area: float, taught: FloatArray, judged: FloatArray) -> float:
    """The larger p of two shuffles, of the labels taught and of those judged.

    Formula: max over the two of (1 + number with |area_b − 0.5| ≥ |area − 0.5|) / (1 + shuffles).
    Where one sample tells the groups apart by words that say nothing in the other, weights that are learnt
        from noise still lean on them: shuffling the judged labels alone would call that a transfer.
    Reference: docs/methods.md#transfer.
    """
    observed = abs(area - CHANCE)
    n_reaching = [int(reaches(np.abs(null - CHANCE), observed).sum()) for null in (taught, judged)]
    return (1 + max(n_reaching)) / (1 + taught.size)


def within(sample: Sample) -> HeldOut:
    """Area under the curve of each pair's difference when all other documents teach (leave-pair-out).

    Formula: weight of a word = scale · Σ over strata of (k m / (k + m)) (mean share in the first group −
        mean share in the second), of the k and m documents left when the pair is out; a document's score is
        Σ share · weight; the area is over the pairs of one stratum, ties half.
    Returns: in expectation 0.5 where labels mean nothing, whatever the lengths and the sizes of the groups:
        the pair can change places given all others.
    Reference: docs/methods.md#transfer; Airola et al. 2011 for leave-pair-out; checked against fitting anew
        for every pair.
    """
    from scipy.sparse import csr_matrix, diags_array

    scaled = csr_matrix(sample.shares @ diags_array(np.sqrt(sample.scale)))
    weights = scaled.T @ sample.coefficients  # [W, 1 + shuffles]
    wins = np.zeros(sample.labels.shape[1])
    for own in sample.members:
        n_first = int(sample.labels[own, 0].sum())
        if 0 < n_first < len(own):
            wins += _wins_left_out(scaled[own], weights, sample, own, n_first)
    areas = wins / sample.n_pairs
    return HeldOut(float(areas[0]), areas[1:], areas[1:])


def _wins_left_out(
    scaled: csr_matrix, weights: FloatArray, sample: Sample, own: np.ndarray, n_first: int
) -> FloatArray:
    """Pairs of a stratum in which the document of the first group scores higher, of each shuffle."""
    labels, gram = sample.labels[own], (scaled @ scaled.T).toarray()
    left = len(own) - 2
    share = (n_first - 1) / left if left else CHANCE  # of the first group among those left
    # The stratum's own part of the weights as its coefficients are without the pair, the pair still in it.
    scores = scaled @ weights + gram @ (labels - share - sample.coefficients[own])
    diagonal = gram.diagonal()
    tie = _SAME * (np.abs(scores).max() + diagonal.max())
    wins = np.empty(labels.shape[1])
    for b in range(labels.shape[1]):
        first, second = np.flatnonzero(labels[:, b]), np.flatnonzero(~labels[:, b])
        above = scores[first, b] - (1.0 - share) * diagonal[first]
        below = scores[second, b] + share * diagonal[second]
        difference = above[:, None] - below[None, :] + gram[np.ix_(first, second)]
        wins[b] = np.count_nonzero(difference > tie) + np.count_nonzero(difference >= -tie)
    return wins / 2.0


def across(teaching: Sample, judged: Sample) -> HeldOut:
    """Area under the curve of documents of one sample, by weights learnt from all of another.

    Words that the teaching sample lacks have no weight. Samples have the same columns.
    """
    weights = teaching.scale[:, None] * (teaching.shares.T @ teaching.coefficients)
    scores = judged.shares @ weights  # [documents, 1 + shuffles]
    wins = np.zeros((2, teaching.labels.shape[1]))
    for own in judged.members:
        observed, shuffled = judged.labels[own, :1], judged.labels[own]
        of = _rounded(scores[own])
        wins += [_wins(of, observed), _wins(of[:, :1], shuffled)]
    areas = wins / judged.n_pairs
    return HeldOut(float(areas[0, 0]), areas[0, 1:], areas[1, 1:])


def area_interval(areas: ArrayLike, *, level: float = 0.95) -> tuple[float, float] | None:
    """Interval of the mean area over occupations, a t interval made on the logit scale.

    Formula: `share_interval` with v = s²/m and m − 1 degrees of freedom.
    Arguments: areas `[m]`, one per occupation; level of confidence.
    Returns: lower and upper end, in [0, 1].
    Missing or empty input: None with fewer than two occupations, or areas that do not vary.
    Reference: docs/methods.md#transfer; in simulation it covers better than the plain t interval, which
        is as good near 0.5 (`tests/benchmarks/text_transfer.py`).
    """
    values = np.asarray(areas, dtype=np.float64)
    if values.size < 2 or not varies(values, values):
        return None
    variance, dof = np.asarray(values.var(ddof=1) / values.size), np.asarray(values.size - 1.0)
    low, high = share_interval(float(values.mean()), variance, dof, level=level)
    return float(low), float(high)


def _rounded(scores: FloatArray) -> FloatArray:
    """Scores of documents with the same words are the same, whatever rounding made of them."""
    unit = _SAME * np.maximum(np.abs(scores).max(axis=0), np.finfo(np.float64).tiny)
    rounded: FloatArray = np.rint(scores / unit)
    return rounded


def _wins(scores: FloatArray, is_first: BoolArray) -> FloatArray:
    """Pairs in which the first group scores higher, ties half: of each column, broadcast."""
    from scipy.stats import rankdata

    n = is_first.sum(axis=0)
    ranks: FloatArray = rankdata(scores, axis=0)
    wins: FloatArray = (ranks * is_first).sum(axis=0) - n * (n + 1) / 2.0
    return wins


def strata_with_both(is_first: Sequence[bool], strata: Sequence[str]) -> Iterator[int]:
    """Places of the documents whose stratum has both groups: others teach and show nothing."""
    found: dict[str, set[bool]] = {}
    for one, stratum in zip(is_first, strata, strict=True):
        found.setdefault(stratum, set()).add(bool(one))
    return (i for i, stratum in enumerate(strata) if len(found[stratum]) == 2)
