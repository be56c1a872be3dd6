"""Whether two sets of samples can be of the same probabilities, over many questions at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

SPLITS = 1_999
_STATISTICS = 3


def p_of_same_counts(pairs: Sequence[tuple[Sequence[int], Sequence[int]]], seed: int) -> float:
    """Test whether first and second samples of each question have one distribution: one p for all questions.

    Formula: permutation p of three statistics, where the samples of a question are split anew at random: the
        sum over questions of Σ (a − e)²/e, the largest of those, and Σ over kinds of answer of the squared
        sum of a − e, over all questions. The smallest of the three, times three.
    Pairs are counts of each kind of answer, kinds the same in all questions. p < 0.05 errs in at most one of
    twenty runs, however many questions there are; without a question p is 1.
    Reference: Phipson and Smyth (2010) for p = (1 + number ≥)/(1 + splits); Bonferroni over the three.
    """
    if not pairs:
        return 1.0
    rng = np.random.default_rng(seed)
    total, largest = np.zeros(SPLITS + 1), np.zeros(SPLITS + 1)
    shift = np.zeros((SPLITS + 1, len(pairs[0][0])))
    for first, second in pairs:
        both = np.asarray(first) + np.asarray(second)
        n = int(np.sum(first))
        splits = rng.multivariate_hypergeometric(both, n, size=SPLITS)
        apart = np.vstack([np.asarray(first)[None, :], splits]) - both * (n / both.sum())
        distance = (apart**2 / np.maximum(both, 1)).sum(axis=1)
        total += distance
        largest = np.maximum(largest, distance)
        shift += apart
    return min(1.0, _STATISTICS * min(_p(total), _p(largest), _p((shift**2).sum(axis=1))))


def _p(statistic: np.ndarray) -> float:
    """Find the p of the first value among those of the splits; sums in another order differ by rounding."""
    return float(1 + np.sum(statistic[1:] >= statistic[0] * (1 - 1e-12))) / len(statistic)
