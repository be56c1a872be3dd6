"""Word counts under shuffled labels, and when these are no chance level (methods/words#word-list-null)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from biaskit.measures.personas.words.log_odds import blocks_of_rows
from biaskit.records import WOMEN_AND_MEN
from biaskit.stats.arrays import FloatArray
from biaskit.stats.contrast import LEVEL
from biaskit.stats.resampling import shuffled_within
from biaskit.stats.welch import welch

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

N_SHUFFLES, MOST_SHUFFLES = 199, 1_999  # most: of a list that none of ten times fewer reaches
MOST_UNEQUAL = 1.25
"""How much longer one side's texts may be: above it (Welch p < 0.05) shuffling is no chance level."""

AT_ONCE = 2_000_000  # counts: 16 MB of doubles, for the processor's cache
_SPARSE = 4


@dataclass(frozen=True, slots=True)
class Shuffles:
    """Labels of documents, shuffled within their strata (methods/words#word-list-null)."""

    labels: NDArray[np.integer[Any]]  # [shuffles, documents]: places of groups
    n_groups: int
    weights: FloatArray | None = None  # [groups, documents], what a text weighs under each label; None: 1

    @classmethod
    def of(
        cls,
        labels: Sequence[str],
        strata: Sequence[str],
        rng: np.random.Generator,
        n: int,
        *,
        groups: Sequence[str] = WOMEN_AND_MEN,
        weights: FloatArray | None = None,
    ) -> Shuffles:
        """Shuffle labels, each one of `groups`, n times; the order of documents counts."""
        if weights is not None and (weights == 1).all():  # as many texts of each label in every occupation
            weights = None
        places = np.array(list(map(groups.index, labels)), dtype=np.min_scalar_type(len(groups)))
        return cls(shuffled_within(strata, places, rng, n), len(groups), weights)

    def counted(self, counts: csr_matrix) -> Iterator[tuple[slice, FloatArray]]:
        """Add up counts `[documents, W]` by label, `[groups, R, W]` for each of some blocks of shuffles.

        Whole numbers are exact: in single precision below 2^24, and in two bytes, of words that few texts
        have. A product with a sparse table of such costs as much as with a dense one at a text of `_SPARSE`.
        """
        from scipy.sparse import csr_matrix

        n_documents, n_words = counts.shape
        is_small = self.weights is None and counts.sum() < 1 << 24
        table = counts.astype(np.float32 if is_small else np.float64)
        totals = np.asarray(table.sum(axis=0)).ravel()
        often = (counts.getnnz(axis=0) * _SPARSE > n_documents) | (totals >= 1 << 16)
        of_few = np.uint16 if self.weights is None else np.float64
        dense, by_word = table[:, often].toarray(), csr_matrix(table[:, ~often].T, dtype=of_few)
        for rows in blocks_of_rows(len(self.labels), max(n_documents, n_words * self.n_groups), AT_ONCE):
            labels = np.ascontiguousarray(self.labels[rows].T)  # [documents, R]
            found: FloatArray = np.zeros((self.n_groups, labels.shape[1], n_words), dtype=table.dtype)
            for group in range(self.n_groups - (self.weights is None)):
                weighs = (labels == group).astype(table.dtype)
                if self.weights is not None:
                    weighs *= self.weights[group][:, None]
                found[group][:, often] = weighs.T @ dense
                found[group][:, ~often] = (by_word @ weighs.astype(of_few)).T
            if self.weights is None:  # the last group has what the others leave
                found[-1] = totals
                for group in range(self.n_groups - 1):
                    found[-1] -= found[group]
            yield rows, found


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
