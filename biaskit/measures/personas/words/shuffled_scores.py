"""z of words by many counts at once: of texts as they are, or under shuffled labels (methods/words#reach)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

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
from biaskit.measures.personas.words.shuffles import Shuffles
from biaskit.stats.arrays import BoolArray, FloatArray


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
            z = terms.z_that_matters(ours, theirs)
            if self.texts.whole_topic or self.texts.elsewhere.any():  # z is 0 for a word of neither
                z = z * (ours + theirs > 0)
            self._known[target, against] = z
        return self._known[target, against]


def shuffled_scores(
    texts: LabelledTexts,
    methods: Sequence[LogOdds],
    least: Sequence[float] | None,
    rng: np.random.Generator,
    n: int,
) -> Iterator[Scores]:
    """Score n shuffles of the labels in blocks, by methods of one prior; of two labels the words that matter.

    `least`: the smallest |z| that matters by each; one that is certainly smaller may be 0, and a word that
    reaches it in no shuffle is left out, unless the prior is rounded. If a shuffle is undefined (its z is
    NaN), every word stays; so it does without `least`.
    """
    of_texts = texts.labels, texts.strata
    shuffles = Shuffles.of(*of_texts, rng, n, groups=texts.groups, weights=texts.weights)
    places, terms = np.arange(len(texts.words)), list[Regularised | None]([None] * len(methods))
    if least is not None and len(texts.groups) == 2 and methods[0].prior.rounding == "exact":
        found = list(_terms(shuffles, texts, methods, least))
        places = np.flatnonzero(~(np.array([of_method.floors for of_method in found]) <= 0).all(axis=(0, 1)))
        terms = [of_method.at(slice(None), places) for of_method in found]
    some, left_out = texts.counts[:, places], texts.left_out[places]
    for rows, counted in shuffles.counted(some):
        if None in terms:
            counted = counted.astype(np.float64)  # what is blended needs every digit
        for odds, of_method in zip(methods, terms, strict=True):
            here = of_method and of_method.at(rows)
            for block in blocks_of_rows(counted.shape[1], len(places)):
                yield Scores(odds, texts, list(counted[:, block]), left_out, here and here.at(block))


def _terms(
    shuffles: Shuffles, texts: LabelledTexts, methods: Sequence[LogOdds], least: Sequence[float]
) -> Iterator[Regularised]:
    """Compute prior, 1 / r, totals and floors of two labels by each method."""
    from scipy.sparse import csr_matrix, hstack

    def counted(columns: csr_matrix) -> FloatArray:
        return np.concatenate([block for _, block in shuffles.counted(columns)], axis=1)

    weights = np.ones(len(texts.labels)) if texts.weights is None else texts.weights.max(axis=0)
    most = texts.counts.T @ weights  # how often a label can have a word
    topic = texts.topic(texts.totals[:1], texts.totals[1:], (0, 1))
    heavy, lengths = np.argsort(most)[-N_FREQUENT:], csr_matrix(texts.counts.sum(axis=1))
    of_heavy = counted(csr_matrix(hstack([texts.counts[:, heavy], lengths])))
    # The 20 most frequent words of a shuffle have at least as many as any 20 words in all shuffles.
    can_be = methods[0].fixed | (most >= of_heavy[..., :-1].min() - TIED)
    for odds, value in zip(methods, least, strict=True):
        prior = odds.blend(topic, (topic, topic))
        few = np.flatnonzero(odds.calibrates & (can_be | most_frequent(prior)[0]))
        ours, theirs = counted(texts.counts[:, few])
        by_r = replace(odds, fixed=odds.fixed[few]).scales(prior[:, few], (ours, theirs))
        yield odds.terms(prior, of_heavy[..., -1:], by_r).with_floors(most, value)
