"""How well two groups of documents can be told apart by their words: a size, and whether it is chance.

A document is judged by weights learnt from other documents. The size is learnt from few, always as many; p
from all there are (methods/srb#transfer).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from biaskit.stats.arrays import BoolArray, FloatArray, IntArray
from biaskit.stats.crossed import share_interval
from biaskit.stats.resampling import shuffled_within
from biaskit.stats.swaps import reaches
from biaskit.stats.welch import varies

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

CHANCE = 0.5
TAUGHT, SAMPLES = 10, 10
"""Documents of either group that teach where the size is reported, and how often they are drawn."""
FOLDS, REPEATS = 5, 2
PENALTY = 1.0
"""The penalty of the ridge regression."""
PRIOR_WORDS = 5.0
"""Occurrences added to every word: a rare word's weight is a quotient of two small numbers."""
_DIGITS = 9
"""Scores that agree to so many decimal places are a tie."""


@dataclass(frozen=True, eq=False, slots=True)
class Sample:
    """Documents of two groups in strata, with shuffled labels: column 0 of `labels` is as observed."""

    counts: csr_matrix  # [documents, W], of the words that may be used
    labels: BoolArray  # [documents, 1 + shuffles]: whether of the first group
    strata: IntArray  # [documents], in the order of their names
    units: IntArray  # [documents]: copies have the same, and do not judge one another

    @classmethod
    def shuffled(
        cls,
        counts: csr_matrix,
        is_first: Sequence[bool],
        strata: Sequence[str],
        rng: np.random.Generator,
        n_shuffles: int,
        units: Sequence[str] | None = None,
    ) -> Sample:
        """Shuffle labels within strata `n_shuffles` times; `units` are equal for copies, by default none."""
        observed, of_units = np.asarray(is_first, dtype=np.bool_), units or range(len(strata))
        labels = np.vstack([observed, shuffled_within(strata, observed, rng, n_shuffles)])
        numbers = (np.unique(names, return_inverse=True)[1] for names in (strata, of_units))
        return cls(counts, np.ascontiguousarray(labels.T), *numbers)

    @property
    def shares(self) -> csr_matrix:
        """Divide by the words of the document, so that length has no part, `[documents, W]`."""
        shares = self.counts.astype(np.float64)
        words = np.asarray(shares.sum(axis=1)).ravel()
        shares.data /= np.repeat(np.maximum(words, 1.0), np.diff(shares.indptr))
        return shares


@dataclass(frozen=True, slots=True)
class HeldOut:
    """An area under the curve, and those with shuffled labels of the teaching or of the judged documents."""

    area: float
    taught: FloatArray  # [shuffles], labels shuffled where the weights are learnt
    judged: FloatArray  # [shuffles], labels shuffled where they are tested; within a sample the same

    @property
    def p_value(self) -> float:
        """The larger two-sided p of two shuffles, of the labels taught and of those judged.

        Formula: max over the two of (1 + number with |area_b − 0.5| ≥ |area − 0.5|) / (1 + shuffles).
        Where one sample tells the groups apart by words that say nothing in the other, weights learnt
            from noise still lean on them: shuffling the judged labels alone would call that a transfer.
        """
        far = [np.abs(null - CHANCE) for null in (self.taught, self.judged)]
        n_reaching = max(int(reaches(null, abs(self.area - CHANCE)).sum()) for null in far)
        return (1 + n_reaching) / (1 + self.taught.size)


def within(sample: Sample, rng: np.random.Generator) -> HeldOut:
    """Find the area under the curve by cross-validation: five folds, cut anew twice, blind to labels.

    Formula: share of pairs of one document of either group, of one stratum and fold, in which the first
        group's scores higher, ties half; scores by ridge regression, learnt from the other folds.
    It is 0.5 in expectation where labels mean nothing, whatever the lengths and the sizes of the groups: the
    two documents of a pair teach nothing and can change places.
    Reference: methods/srb#transfer; checked against a loop over pairs that learns anew for each.
    """
    from scipy.sparse import csr_matrix

    shares = sample.shares
    words = csr_matrix(shares.multiply(_scale(shares, float(sample.counts.sum()))))
    similarity, targets = (words @ words.T).toarray(), _targets(sample.labels, sample.strata)
    wins, pairs, scores = np.zeros(targets.shape[1]), np.zeros(targets.shape[1]), np.empty(targets.shape)
    _, first, unit = np.unique(sample.units, return_index=True, return_inverse=True)
    for _ in range(REPEATS):
        fold = folds(sample.strata, rng)[first[unit]]
        for number in np.unique(fold):
            left_out, taught = fold == number, fold != number
            learnt = _learnt(similarity[np.ix_(taught, taught)], targets[taught])
            scores[left_out] = similarity[np.ix_(left_out, taught)] @ learnt
        for group in _groups(sample.strata * FOLDS + fold):
            won, compared = _wins(scores[group], sample.labels[group])
            wins, pairs = wins + won, pairs + compared
    areas = np.divide(wins, pairs, out=np.full(wins.shape, CHANCE), where=pairs > 0)
    return HeldOut(float(areas[0]), areas[1:], areas[1:])


def at_one_size(teaching: Sample, judged: Sample, rng: np.random.Generator) -> tuple[float, float] | None:
    """Find the area under the curve by weights learnt from 10 + 10 documents, ten times, and its variance.

    Of one sample that teaches and is judged, what was not drawn and is no copy of it is judged. 0.5 in
    expectation where labels mean nothing, None without a pair in one stratum; more documents do not raise it.
    Formula: variance f Σ_u (Σ_{d in u} (won_d - area · pairs_d))²/N², units u, N pairs (DeLong et al. 1988).
        In one sample two documents teach and judge each other in turn: f = 1 + 9 p/(1 + 9 p), p = q (1 - q),
        q the part that teaches; else f = 1.
    Reference: methods/srb#transfer; checked against a loop, the variance in worlds.
    """
    is_first, of_first = teaching.labels[:, 0], judged.labels[:, 0]
    won, pairs = np.zeros(len(of_first)), np.zeros(len(of_first))
    shares, of_judged = teaching.shares, judged.shares
    for _ in range(SAMPLES):
        sides = (np.flatnonzero(side) for side in (is_first, ~is_first))
        drawn = np.concatenate([rng.choice(side, TAUGHT, replace=False) for side in sides])
        left = np.flatnonzero(~np.isin(teaching.units, teaching.units[drawn]))
        places = left if judged is teaching else np.arange(len(of_first))
        words = shares[drawn].toarray()
        scale = _scale(words, float(teaching.counts[drawn].sum()))
        words *= scale
        learnt = _learnt(words @ words.T, _targets(is_first[drawn], teaching.strata[drawn]))
        scores = (of_judged @ (scale * (learnt @ words)))[places]
        for group in _groups(judged.strata[places]):
            first = of_first[places[group]]
            won[places[group]] += _won(scores[group], first)
            pairs[places[group]] += np.where(first, (~first).sum(), first.sum())
    n_pairs = pairs[of_first].sum()
    if not n_pairs:
        return None
    area, unit = won[of_first].sum() / n_pairs, np.unique(judged.units, return_inverse=True)[1]
    of_units = np.bincount(unit, won - area * pairs) / n_pairs
    taught = 2 * TAUGHT / len(of_first) if judged is teaching else 0.0
    both_ways = (SAMPLES - 1) * taught * (1 - taught)
    return float(area), float((of_units**2).sum()) * (1 + both_ways / (1 + both_ways))


def across(teaching: Sample, judged: Sample) -> HeldOut:
    """Find the area under the curve of one sample's documents, by weights learnt from all of another.

    Samples have the same columns; words that the teaching sample lacks have no weight.
    """
    from scipy.sparse import csr_matrix

    shares = teaching.shares
    scale = _scale(shares, float(teaching.counts.sum()))
    words, of_judged = csr_matrix(shares.multiply(scale)), csr_matrix(judged.shares.multiply(scale))
    learnt = _learnt((words @ words.T).toarray(), _targets(teaching.labels, teaching.strata))
    scores = (of_judged @ words.T).toarray() @ learnt
    of_taught, of_shuffled, n_pairs = np.zeros(scores.shape[1]), np.zeros(scores.shape[1]), 0.0
    for group in _groups(judged.strata):
        won, pairs = _wins(scores[group], judged.labels[group, :1])
        of_taught, n_pairs = of_taught + won, n_pairs + float(pairs[0])
        of_shuffled += _wins(scores[group, :1], judged.labels[group])[0]
    return HeldOut(float(of_taught[0] / n_pairs), of_taught[1:] / n_pairs, of_shuffled[1:] / n_pairs)


def _scale(shares: csr_matrix | FloatArray, n_words: float) -> FloatArray:
    """Compute the weight of each word, `[W]`: one over the root of its mean share in the teaching documents.

    The mean is over documents, with five occurrences added, and blind to their labels; 0 for a word of none.
    """
    mean = np.asarray(shares.mean(axis=0)).ravel()
    return np.where(mean > 0, 1.0 / np.sqrt(mean + PRIOR_WORDS / max(n_words, 1.0)), 0.0)


def _targets(labels: BoolArray, strata: IntArray) -> FloatArray:
    """Make what is learnt, as `labels` `[documents, …]`: the label less its mean over the stratum."""
    targets = labels.astype(np.float64)
    for stratum in np.unique(strata):
        targets[strata == stratum] -= targets[strata == stratum].mean(axis=0)
    return targets


def _learnt(similarity: FloatArray, targets: FloatArray) -> FloatArray:
    """Fit a ridge regression: the weight of each document, from their products `[n, n]`."""
    from scipy.linalg import solve

    learnt: FloatArray = solve(similarity + PENALTY * np.eye(len(similarity)), targets, assume_a="pos")
    return learnt


def folds(strata: IntArray, rng: np.random.Generator) -> IntArray:
    """Give each document a fold, blind to labels: two by two from each shuffled stratum, in turn."""
    fold, n_twos = np.empty(len(strata), dtype=np.int64), 0
    for stratum in np.unique(strata):
        members = rng.permutation(np.flatnonzero(strata == stratum))
        twos = n_twos + np.arange(len(members)) // 2
        fold[members] = twos % FOLDS
        n_twos = int(twos[-1]) + 1
    return fold


def area_interval(areas: ArrayLike, *, level: float = 0.95) -> tuple[float, float] | None:
    """Find the interval of the mean of areas `[m]`, one per occupation: a t interval made on the logit scale.

    Formula: `share_interval` with v = s²/m and m − 1 degrees of freedom.
    None with fewer than two occupations, or areas that do not vary.
    Reference: methods/srb#transfer; in simulation it covers better than the plain t interval, which
        is as good near 0.5.
    """
    values = np.asarray(areas, dtype=np.float64)
    if values.size < 2 or not varies(values, values):
        return None
    variance, dof = np.asarray(values.var(ddof=1) / values.size), np.asarray(values.size - 1.0)
    low, high = share_interval(float(values.mean()), variance, dof, level=level)
    return float(low), float(high)


def _groups(number_of: IntArray) -> list[IntArray]:
    """Group the places of the documents that have the same number."""
    return [np.flatnonzero(number_of == number) for number in np.unique(number_of)]


def _won(scores: FloatArray, is_first: BoolArray) -> FloatArray:
    """Count the pairs of each document, `[n]`, in which the first group's scores higher, ties half."""
    rounded, won = np.round(scores, _DIGITS), np.empty(len(scores))
    for side in (is_first, ~is_first):
        others = np.sort(rounded[~side])
        below = np.searchsorted(others, rounded[side]) + np.searchsorted(others, rounded[side], "right")
        won[side] = below / 2 if side is is_first else len(others) - below / 2
    return won


def _wins(scores: FloatArray, is_first: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Count pairs in which the first group scores higher, ties half, and all pairs: by column, broadcast."""
    from scipy.stats import rankdata

    n_first, n = is_first.sum(axis=0), len(is_first)
    ranks = rankdata(np.round(scores, _DIGITS), axis=0)
    wins = (ranks * is_first).sum(axis=0) - n_first * (n_first + 1) / 2.0
    return wins, np.asarray(n_first * (n - n_first), dtype=np.float64)
