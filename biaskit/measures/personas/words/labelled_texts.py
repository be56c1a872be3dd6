"""Texts with labels (genders, or a user's column) and contrasts of them: what lists of words are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from biaskit.measures.personas.texts.tokens import mask
from biaskit.stats.arrays import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Labels = tuple[int, ...]
"""Places in `LabelledTexts.groups`, in order: the texts of all these labels together."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """Texts of some labels against those of others: a marked word passes against each of them."""

    target: Labels
    against: tuple[Labels, ...]
    name: str  # of the target, in messages and in `WordList.gender`
    opponents: tuple[str, ...]  # names of `against`, in messages
    said_against: str  # `WordList.against`

    @property
    def unmarked(self) -> Labels:
        """Every label of `against`, once."""
        return tuple(sorted(set[int]().union(*self.against)))


@dataclass(frozen=True, slots=True)
class LabelledTexts:
    """The texts of k labels, reduced to the words of their topic vocabulary."""

    groups: tuple[str, ...]
    counts: csr_matrix  # [documents, V]
    labels: tuple[str, ...]  # [documents], each one of `groups`
    strata: tuple[str, ...]  # [documents]: labels are shuffled within them
    words: tuple[str, ...]  # [V]
    english: FloatArray  # [V]
    elsewhere: FloatArray  # [k, V]
    totals: FloatArray  # [k, V], how often a word occurs
    weighted: FloatArray  # [k, V], the same with the weights of the texts
    documents: FloatArray  # [k, V], in how many texts
    sizes: IntArray  # [k], how many texts
    left_out: BoolArray  # [V]
    whole_topic: bool = False  # every pair has the topic of all these texts
    weights: FloatArray | None = None  # [k, documents], what a text weighs under each label; None: 1

    def topic(self, target: FloatArray, unmarked: FloatArray, pair: Labels) -> FloatArray:
        """Count the topic of a pair `[R, V]`: its own words and those elsewhere, `[R or 1, V]`."""
        if self.whole_topic:
            every: FloatArray = self.totals.sum(axis=0)[None]
            return every
        # Shuffled within the pair a word keeps its count; with more labels it may leave the pair.
        rows = slice(1) if len(pair) == len(self.groups) else slice(None)
        topic = target[rows] + unmarked[rows]
        return topic + sum_of(self.elsewhere, pair) if self.elsewhere.any() else topic


def labelled_texts(
    counts: csr_matrix,
    words: Sequence[str],
    labels: Sequence[str],
    strata: Sequence[str],
    english: ArrayLike,
    groups: tuple[str, ...],
    left_out: BoolArray,
    *,
    elsewhere: Mapping[str, ArrayLike] | None = None,
    whole_topic: bool = False,
    occupations: Sequence[str] | None = None,
) -> LabelledTexts:
    """Take the texts with a label of `groups`; `elsewhere`: further counts `[W]` by label for the topics.

    With `occupations`, labels are compared within those that have every label (`overlap_weights`).
    """
    from scipy.sparse import csr_matrix

    wanted, weights = mask(labels, groups.__contains__), None
    if occupations is not None:
        weights = overlap_weights(labels, occupations, groups)
        wanted &= weights[0] > 0
        weights = weights[:, wanted]
    labels_here = tuple(compress(labels, wanted))
    counts_here = csr_matrix(counts, dtype=np.float64)[np.flatnonzero(wanted)]
    # Only the words that occur: the vocabulary grows with the run, and this is done for each part of it.
    columns = np.flatnonzero(counts_here.sum(axis=0))
    outside = np.zeros((len(groups), len(columns)))
    if elsewhere:
        extra = np.array([elsewhere.get(group, np.zeros(len(words))) for group in groups], dtype=np.float64)
        columns = np.union1d(columns, np.flatnonzero(extra.any(axis=0)))
        outside = extra[:, columns]
    counts_here = counts_here[:, columns]
    is_of = np.array(groups)[:, None] == np.array(labels_here, dtype=str)
    members = is_of.astype(np.float64)  # [k, documents]
    totals = (counts_here.T @ members.T).T
    weighted = totals if weights is None else (counts_here.T @ (members * weights).T).T
    documents = ((counts_here > 0).astype(np.float64).T @ members.T).T
    strata_here = tuple(compress(strata, wanted))
    words_here = tuple(map(words.__getitem__, columns.tolist()))
    english_here, sizes = np.asarray(english, dtype=np.float64)[columns], members.sum(axis=1)
    return LabelledTexts(
        groups,
        counts_here,
        labels_here,
        strata_here,
        words_here,
        english_here,
        elsewhere=outside,
        totals=totals,
        weighted=weighted,
        documents=documents,
        sizes=sizes.astype(np.int64),
        left_out=left_out[columns],
        whole_topic=whole_topic or weights is not None,
        weights=weights,
    )


def overlap_weights(labels: Sequence[str], occupations: Sequence[str], groups: Sequence[str]) -> FloatArray:
    """Weigh texts so that every label has the same occupations: `[k, documents]`, under each label.

    Formula: w_g(s) = [1/n_g(s) / Σ_h 1/n_h(s)] / [1/n_g / Σ_h 1/n_h], n_g(s) the texts of label g in
        occupation s, n_g in all. Of two labels: the other's share there over its share in all.
    0 in an occupation that lacks a label. Weighted counts have the ratio of Mantel and Haenszel (1959), and
    the variance that z expects where no word differs within an occupation.
    Reference: methods/words#words-all; Li, Morgan and Zaslavsky (2018).
    """
    names, place = np.unique(np.array(occupations, dtype=str), return_inverse=True)
    is_of = np.array(labels, dtype=str) == np.array(groups)[:, None]
    sizes = is_of.astype(np.int64) @ (place[:, None] == np.arange(len(names)))  # [k, occupations]
    whole = sizes.all(axis=0)
    of_each = 1 / np.maximum(sizes, 1)
    of_all = 1 / np.maximum(sizes[:, whole].sum(axis=1, keepdims=True), 1)
    weights: FloatArray = whole * of_each / of_each.sum(axis=0) / (of_all / of_all.sum())
    return weights[:, place]


def sum_of(rows: Sequence[FloatArray] | FloatArray, members: Labels) -> FloatArray:
    """Add up the rows of some labels."""
    first, *others = members
    total: FloatArray = rows[first]
    for label in others:
        total = total + rows[label]
    return total
