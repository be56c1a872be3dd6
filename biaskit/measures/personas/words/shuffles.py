"""Word counts under shuffled labels, and when these are no chance level (methods/words#word-list-null)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from biaskit.measures.personas.words.log_odds import blocks_of_rows
from biaskit.records import WOMEN_AND_MEN
from biaskit.stats.arrays import FloatArray
from biaskit.stats.contrast import LEVEL
from biaskit.stats.welch import welch

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

N_SHUFFLES, MOST_SHUFFLES = 199, 1_999  # most: of a list that none of ten times fewer reaches
MOST_UNEQUAL = 1.25
"""How much longer one side's texts may be: above it (Welch p < 0.05) shuffling is no chance level."""

AT_ONCE = 8_000_000  # counts: 64 MB of doubles


def permuted_labels(
    labels: Sequence[str], strata: Sequence[str], rng: np.random.Generator, n: int, groups: Sequence[str]
) -> NDArray[np.int16]:
    """Shuffle labels within strata: places in `groups`, `[n, documents]`; the order of documents counts."""
    place = {group: g for g, group in enumerate(groups)}
    shuffled = np.tile(np.array([place[label] for label in labels], dtype=np.int16), (n, 1))
    names = np.asarray(strata, dtype=object)
    for stratum in sorted(set(strata)):
        members = np.flatnonzero(names == stratum)
        shuffled[:, members] = rng.permuted(shuffled[:, members], axis=1)
    return shuffled


def permuted_counts(
    counts: csr_matrix,
    labels: Sequence[str],
    strata: Sequence[str],
    rng: np.random.Generator,
    n: int,
    *,
    groups: Sequence[str] = WOMEN_AND_MEN,
    weights: FloatArray | None = None,
) -> Iterator[tuple[FloatArray, ...]]:
    """Count words by label with the labels of the documents shuffled within strata, n times.

    `counts` are `[documents, W]`, `weights` `[groups, documents]` what a text weighs in each. Yields blocks
    of b shuffles that stay in the cache, per group `[b, W]` doubles (methods/words#word-list-null).
    """
    from scipy.sparse import csr_matrix

    shuffled = permuted_labels(labels, strata, rng, n, groups)
    by_word = csr_matrix(counts.T, dtype=np.float64)  # [W, documents]
    scale = np.ones((len(groups), len(labels))) if weights is None else weights
    total = np.asarray(by_word.sum(axis=1)).ravel()
    for rows in blocks_of_rows(n, len(total) * len(groups), AT_ONCE):
        some = shuffled[rows].T
        # Without weights the last group has what the others leave.
        counted_for = range(len(groups) - (weights is None))
        by_group = [by_word @ ((some == g) * scale[g][:, None]) for g in counted_for]  # [W, step]
        for block in blocks_of_rows(some.shape[1], len(total)):
            counted = [np.ascontiguousarray(of_group[:, block].T) for of_group in by_group]
            yield (*counted, total - np.sum(counted, axis=0)) if weights is None else tuple(counted)


def why_unequal(lengths: Mapping[str, FloatArray], shuffled: str = "genders") -> str | None:
    """Say why shuffled labels are no chance level: the texts of one side are much longer; else None."""
    (least, short), (most, long) = sorted((values.mean(), gender) for gender, values in lengths.items())
    if most <= MOST_UNEQUAL * least or min(values.size for values in lengths.values()) < 2:
        return None
    p = welch(*lengths.values()).p_value  # None where the texts of each gender are all of one length
    if p is not None and p >= LEVEL:
        return None
    times = f"{most / least:.1f}" if least else "many"
    return f"{long} texts are {times} times as long as {short} ones: shuffled {shuffled} are no baseline"
