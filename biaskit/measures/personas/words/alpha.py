"""Two genders' texts under one prior, C still open: which words each marks, in all texts and in halves.

The search for C and alpha (`calibration.py`) asks this of every pair at every alpha.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, compress, permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from biaskit.common.plain import attributes
from biaskit.measures.personas.texts.names import says_gender
from biaskit.measures.personas.texts.tokens import mask
from biaskit.measures.personas.words.log_odds import (
    SPEAKER_WORDS,
    THRESHOLD,
    LogOdds,
    Prior,
    calibration_words,
    is_fixed,
)
from biaskit.measures.personas.words.stability import chance_corrected, first_halves, shuffled_in_halves
from biaskit.records import GENDERS
from biaskit.stats.arrays import BoolArray, FloatArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MarkedList:
    """The words that mark a gender against another at one (alpha, C), alphabetical; None where undefined."""

    gender: str
    against: str
    words: Words | None = None
    criterion: Words | None = None  # marked words of W, but not i, you, your, am, my
    n_common: int | None = None  # marked words of W
    n_names: int | None = None
    gained: Words | None = None  # not in the list at the alpha before; None where that has none
    lost: Words | None = None
    differing: Words | None = None  # only at the alphas `COMPARED`: words not in all their lists
    n_beyond: int | None = None  # marked words, without gender words and names
    reason: str | None = None

    def row(self) -> dict[str, Any]:
        """Return its columns of calibration.csv."""
        columns = attributes(self, ("gender", "against", "n_common", "n_names"))
        columns |= {"n_marked": None, "n_criterion": None, "n_marked_beyond": self.n_beyond}
        if self.words is not None and self.criterion is not None:
            columns |= {"n_marked": len(self.words), "n_criterion": len(self.criterion)}
        named = {"gained": self.gained, "lost": self.lost, "words_differing": self.differing}
        for name, words in named.items():
            columns[name] = None if words is None else " ".join(words)
        return columns


@dataclass(frozen=True, slots=True)
class Pair:
    """The texts of two genders; W are the words that occur in these texts."""

    genders: tuple[str, str]
    words: Words  # [W]
    english: FloatArray  # [W]
    is_fixed: BoolArray  # [W], on the fixed list of calibration words
    is_name: BoolArray  # [W]
    is_content: BoolArray  # [W], no gender word and no name
    counts: tuple[FloatArray, FloatArray]  # [1, W], of one gender and of the other
    halves: tuple[FloatArray, FloatArray]  # [2, 40, W]: halves; 20 halvings, then 20 with shuffled genders


def pairs_of(
    counts: csr_matrix,
    labels: Sequence[str],
    strata: Sequence[Hashable],
    words: Words,
    english: FloatArray,
    names: Collection[str],
    *,
    halving: np.random.Generator,
    shuffling: np.random.Generator,
) -> list[Pair]:
    """Make every pair of the genders present, with what does not depend on alpha or C."""
    genders, first, pairs = np.asarray(labels), first_halves(labels, strata, halving), []
    for pair in combinations([gender for gender in GENDERS if gender in labels], 2):
        rows = np.flatnonzero(np.isin(genders, pair))
        genders_here, first_here, counts_here = genders[rows], first[:, rows], counts[rows]
        strata_here = [strata[row] for row in rows.tolist()]
        shuffled = shuffled_in_halves(genders_here, strata_here, first_here, shuffling)
        labelled = np.concatenate([np.tile(genders_here, (len(first), 1)), shuffled])
        both = np.concatenate([first_here, first_here])
        halves = []
        for gender in pair:
            for half in (both, ~both):
                halves.append((half & (labelled == gender)).astype(np.float64) @ counts_here)
        of_halves = np.stack(halves).reshape(2, 2, *halves[0].shape)
        here = np.flatnonzero(of_halves[:, :, 0].sum(axis=(0, 1)))
        of_first, of_second = of_halves[..., here]
        words_here = tuple(words[column] for column in here)
        is_name, is_content = mask(words_here, names.__contains__), ~says_gender(words_here, names)
        known = pair, words_here, english[here], is_fixed(words_here), is_name, is_content
        totals = of_first[:, :1].sum(axis=0), of_second[:, :1].sum(axis=0)
        pairs.append(Pair(*known, counts=totals, halves=(of_first, of_second)))
    return pairs


@dataclass(frozen=True, slots=True)
class AtAlpha:
    """Two genders under one prior, C open; the second against the first has exactly −z."""

    pair: Pair
    prior: Prior
    common: BoolArray  # [W], calibration words
    criterion: BoolArray  # [W], the calibration words that must not be marked

    @classmethod
    def under(cls, pair: Pair, prior: Prior) -> AtAlpha:
        """Find the calibration words by the prior's own blend of texts and English."""
        odds = LogOdds(pair.is_fixed, pair.english, "calibrated", prior)
        blend = odds.regularise(*pair.counts, pair.counts[0] + pair.counts[1]).prior
        common = calibration_words(blend, pair.counts, pair.is_fixed)[0]
        is_speaker = mask(pair.words, SPEAKER_WORDS.__contains__)
        return cls(pair, prior, common, common & ~is_speaker)

    def undefined(self) -> str | None:
        """Say why there is no list, whatever C; None where there is one."""
        if not np.isnan(self._z(1.0)).any():
            return None
        for gender, counts in zip(self.pair.genders, self.pair.counts, strict=True):
            if not counts[0, self.common].any():
                return f"no calibration word in the texts of {gender}"
        return "too few words for a prior"

    def _z(self, c: float) -> FloatArray:
        """Score the first gender against the second, `[1, W]`; the search for C calls it a thousand times."""
        return self._odds(c).z(*self.pair.counts, self.pair.counts[0] + self.pair.counts[1])

    def _odds(self, c: float) -> LogOdds:
        return LogOdds(self.pair.is_fixed, self.pair.english, "calibrated", replace(self.prior, c=c))

    def marked_criterion_words(self, c: float) -> Words:
        """List the criterion words that mark either gender."""
        marked = _both_ways(self._z(c), self.pair.counts)
        return tuple(compress(self.pair.words, marked.any(axis=(0, 1)) & self.criterion))

    def lists(self, c: float | None) -> list[MarkedList]:
        """Make the lists of both directions; without C, or where r is undefined, they have no words."""
        directions = list(permutations(self.pair.genders))
        reason = None if c is None else self.undefined()
        if c is None or reason:
            return [MarkedList(gender, against, reason=reason) for gender, against in directions]
        both_ways = _both_ways(self._z(c), self.pair.counts)
        kinds, lists = (self.common, self.pair.is_name, self.pair.is_content), []
        for (gender, against), (marked,) in zip(directions, both_ways, strict=True):
            words = tuple(compress(self.pair.words, marked))
            criterion = tuple(compress(self.pair.words, marked & self.criterion))
            n_common, n_names, n_beyond = (int((marked & kind).sum()) for kind in kinds)
            lists.append(MarkedList(gender, against, words, criterion, n_common, n_names, n_beyond=n_beyond))
        return lists

    def agreements(self, c: float) -> FloatArray:
        """Compare two halves' lists, `[2, 40]`: directions, halvings; each half is its own topic."""
        odds, halves = self._odds(c), zip(*self.pair.halves, strict=True)
        z = np.stack([odds.z(first, second, first + second) for first, second in halves])
        is_defined = ~np.isnan(z).any(axis=(0, 2))
        marked = _both_ways(z, self.pair.halves)[..., self.pair.is_content]
        return np.where(is_defined, np.stack(list(map(chance_corrected, marked))), np.nan)


def _both_ways(z: FloatArray, counts: Sequence[FloatArray]) -> BoolArray:
    """Say which words mark the first gender against the second, and the reverse: `[2, ..., W]`."""
    return np.stack([(z > THRESHOLD) & (counts[0] > 0), (-z > THRESHOLD) & (counts[1] > 0)])
