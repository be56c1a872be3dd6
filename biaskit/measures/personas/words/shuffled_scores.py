"""z of words by many counts at once: of texts as they are, or under shuffled labels (methods/words#reach)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from biaskit.measures.personas.words.labelled_texts import LabelledTexts, Labels, sum_of
from biaskit.measures.personas.words.log_odds import (
    N_FREQUENT,
    TIED,
    LogOdds,
    Regularised,
    blocks_of_rows,
    most_frequent,
)
from biaskit.measures.personas.words.shuffles import AT_ONCE, permuted_counts, permuted_labels
from biaskit.stats.arrays import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_PART = 2_048  # texts at once in a dense table
_FEWEST_OF_A_WEIGHT = 32
"""Texts of one weight, on average, that make a dense table faster than a sparse one."""


@dataclass(frozen=True, slots=True)
class Scores:
    """z of any pair of labels by one method, of counts `[R, V]` per label; each pair is scored once."""

    log_odds: LogOdds
    texts: LabelledTexts
    counts: Sequence[FloatArray]
    left_out: BoolArray  # [V]
    terms: Regularised | None = None  # of the two labels there are, where V are not all words
    _known: dict[tuple[Labels, Labels], FloatArray] = field(default_factory=dict)
    _sums: dict[Labels, FloatArray] = field(default_factory=dict)

    def counts_of(self, members: Labels) -> FloatArray:
        """Add up the counts of some labels, `[R, V]`."""
        if members not in self._sums:
            self._sums[members] = sum_of(self.counts, members)
        return self._sums[members]

    def z(self, target: Labels, against: Labels) -> FloatArray:
        """Score the target, `[R, V]`; swapped sides give the same numbers with the other sign."""
        if against < target:
            return -self.z(against, target)
        if (target, against) not in self._known:
            ours, theirs = self.counts_of(target), self.counts_of(against)
            terms = self.terms
            if terms is None:
                topic = self.texts.topic(ours, theirs, (*target, *against))
                terms = self.log_odds.regularise(ours, theirs, topic)
            z = terms.z(ours, theirs)
            if self.texts.whole_topic or self.texts.elsewhere.any():  # z is 0 for a word of neither
                z = z * (ours + theirs > 0)
            self._known[target, against] = z
        return self._known[target, against]


def shuffled_scores(
    texts: LabelledTexts,
    methods: Sequence[LogOdds],
    least: Sequence[float],
    rng: np.random.Generator,
    n: int,
) -> Iterator[Scores]:
    """Score n shuffles of the labels in blocks, by methods of one prior; of two labels the words that matter.

    `least`: the smallest |z| that matters by each; a word that reaches it in no shuffle is left out. If
    a shuffle is undefined (its z is NaN), every word stays.
    """
    weights = np.ones((2, len(texts.labels))) if texts.weights is None else texts.weights
    kinds, kind = np.unique(weights, axis=1, return_inverse=True)
    many = texts.weights is not None and kinds.shape[1] * _FEWEST_OF_A_WEIGHT > len(texts.labels)
    if len(texts.groups) != 2 or many or methods[0].prior.rounding != "exact":
        yield from scores_of_every_word(texts, methods, rng, n)
        return
    parts = []
    for number, of_kind in enumerate(kinds.T.tolist()):
        members = np.flatnonzero(kind == number)
        parts += [(members[start : start + _PART], *of_kind) for start in range(0, len(members), _PART)]
    is_first = permuted_labels(texts.labels, texts.strata, rng, n, texts.groups) == 0
    kept = np.float32 if texts.weights is None else np.float64
    shuffles, most = _Shuffles(is_first, parts, kept), texts.counts.T @ weights.max(axis=0)
    terms, matters = shuffles.terms(texts, methods, most), np.zeros(len(most), dtype=np.bool_)
    for of_method, smallest in zip(terms, least, strict=True):
        matters |= ~(of_method.bound(most) < smallest)
    places = np.flatnonzero(matters)
    some, left_out = texts.counts[:, places], texts.left_out[places]
    for rows in blocks_of_rows(n, 2 * len(places), AT_ONCE):
        counted = shuffles.counted(some, rows)
        for of_method, odds in zip(terms, methods, strict=True):
            here = of_method.at(rows, places)
            for block in blocks_of_rows(counted.shape[1], len(places)):
                yield Scores(odds, texts, list(counted[:, block]), left_out, here.at(block))


def scores_of_every_word(
    texts: LabelledTexts, methods: Sequence[LogOdds], rng: np.random.Generator, n: int
) -> Iterator[Scores]:
    """Score every word under n shuffles of any number of labels, in blocks."""
    of_texts = texts.counts, texts.labels, texts.strata
    for counts in permuted_counts(*of_texts, rng, n, groups=texts.groups, weights=texts.weights):
        for odds in methods:
            yield Scores(odds, texts, counts, texts.left_out)


@dataclass(frozen=True, slots=True)
class _Shuffles:
    """Two labels, shuffled."""

    is_first: BoolArray  # [n, documents]: whether a text has the first one
    parts: Sequence[tuple[IntArray, float, float]]  # texts, and what each weighs under either label

    kept: type[np.floating[Any]]  # of sums: whole numbers are exact in single precision

    def counted(self, counts: csr_matrix, rows: slice = slice(None)) -> FloatArray:
        """Add up `counts` `[documents, K]` by label in some shuffles, `[2, R, K]`, by dense products."""
        # Whole numbers below 2^24 are exact in single precision.
        exact = np.float32 if counts.sum(axis=0).max() < 1 << 24 else np.float64
        kept = np.promote_types(exact, self.kept)
        table, is_first = counts.astype(exact), self.is_first[rows]
        found: FloatArray = np.zeros((2, len(is_first), counts.shape[1]), dtype=kept)
        for members, weight, other in self.parts:
            dense = table[members].toarray()
            in_first = is_first[:, members].astype(exact) @ dense
            found[0] += np.multiply(in_first, weight, dtype=kept)
            found[1] += np.multiply(dense.sum(axis=0) - in_first, other, dtype=kept)
        return found

    def terms(self, texts: LabelledTexts, methods: Sequence[LogOdds], most: FloatArray) -> list[Regularised]:
        """Compute prior, 1 / r and totals by each method; `most`: how often a label can have a word."""
        from scipy.sparse import csr_matrix, hstack

        topic = texts.topic(texts.totals[:1], texts.totals[1:], (0, 1))
        heavy, lengths = np.argsort(most)[-N_FREQUENT:], csr_matrix(texts.counts.sum(axis=1))
        counted = self.counted(csr_matrix(hstack([texts.counts[:, heavy], lengths])))
        # The 20 most frequent words of a shuffle have at least as many as any 20 words in all shuffles.
        can_be, terms = methods[0].fixed | (most >= counted[..., :-1].min() - TIED), []
        for odds in methods:
            prior = odds.blend(topic, (topic, topic))
            few = np.flatnonzero(can_be | most_frequent(prior)[0])
            ours, theirs = self.counted(texts.counts[:, few])
            by_r = replace(odds, fixed=odds.fixed[few]).scales(prior[:, few], (ours, theirs))
            terms.append(odds.terms(prior, counted[..., -1:], by_r))
        return terms
