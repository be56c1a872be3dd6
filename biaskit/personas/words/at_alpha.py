"""Two genders' texts under one prior, C open: which words each marks, in all texts and in halves.

The search for C and alpha (`calibration.py`) asks this of every pair at every alpha.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from biaskit.personas.words.gender_words import says_gender
from biaskit.personas.words.log_odds import (
    SPEAKER_WORDS,
    THRESHOLD,
    LogOdds,
    Prior,
    calibration_words,
    is_fixed,
    z_scores,
)
from biaskit.personas.words.stability import chance_corrected, shuffled_in_halves
from biaskit.records import GENDERS
from biaskit.stats.arrays import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MarkedList:
    """What one pair of genders marks at one (alpha, C), in alphabetical order; None where undefined."""

    gender: str
    against: str
    words: Words | None = None
    criterion: Words | None = None  # marked words of W, but not i, you, your, am, my
    n_common: int | None = None  # marked words of W
    n_names: int | None = None
    gained: Words | None = None  # not in the list at the alpha before; None where that has none
    lost: Words | None = None
    differing: Words | None = None  # at `COMPARED` alone: not in all lists of these alphas
    n_beyond: int | None = None  # marked words but gender words and names
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Contrast:
    """The texts of two genders; W are the words that occur in them, not in all texts."""

    genders: tuple[str, str]
    words: Words  # [W]
    english: FloatArray  # [W]
    is_fixed: BoolArray  # [W], on the fixed list of calibration words
    is_speaker: BoolArray  # [W], of that list those that mark who speaks
    is_name: BoolArray  # [W]
    is_content: BoolArray  # [W], no gender word and no name
    counts: tuple[IntArray, IntArray]  # [W], of one gender and of the other
    halves: tuple[IntArray, IntArray]  # [2, 40, W]: halves, halvings as they are and with shuffled genders


@dataclass(frozen=True, slots=True)
class AtAlpha:
    """Two genders under one prior, C open; the second against the first has −z, to the last digit."""

    contrast: Contrast
    prior: Prior
    common: BoolArray  # [W], calibration words
    criterion: BoolArray  # [W], those of them that must not be marked

    @classmethod
    def of(cls, contrast: Contrast, prior: Prior) -> AtAlpha:
        """With the calibration words that its own blend of the texts and English names."""
        one, other = (counts[None].astype(np.float64) for counts in contrast.counts)
        odds = LogOdds(contrast.is_fixed, contrast.english, "calibrated", prior)
        blend = odds.regularise(one, other, one + other).prior
        common = calibration_words(blend, one, other, contrast.words)[0]
        return cls(contrast, prior, common, common & ~contrast.is_speaker)

    def undefined(self) -> str | None:
        """Why there is no list, whatever C."""
        if not np.isnan(self._z(1.0)).any():
            return None
        for gender, counts in zip(self.contrast.genders, self.contrast.counts, strict=True):
            if not counts[self.common].any():
                return f"no calibration word in the texts of {gender}"
        return "too few words for a prior"

    def _z(self, c: float) -> FloatArray:
        """Score the first gender against the second, `[W]`: what a grid of C does a thousand times."""
        contrast = self.contrast
        one, other = (counts[None].astype(np.float64) for counts in contrast.counts)
        odds = LogOdds(contrast.is_fixed, contrast.english, "calibrated", replace(self.prior, c=c))
        z: FloatArray = odds.z(one, other, one + other)[0]
        return z

    def _marked(self, c: float) -> tuple[BoolArray, BoolArray]:
        return _both_ways(self._z(c), self.contrast.counts)

    def marked_criterion_words(self, c: float) -> Words:
        """The criterion words that either gender marks."""
        one, other = self._marked(c)
        return _named(self.contrast.words, (one | other) & self.criterion)

    def lists(self, c: float | None) -> list[MarkedList]:
        """The lists of both directions; without C, or where r is undefined, without words."""
        pairs = list(itertools.permutations(self.contrast.genders))
        reason = None if c is None else self.undefined()
        if c is None or reason:
            return [MarkedList(gender, against, reason=reason) for gender, against in pairs]
        return [
            MarkedList(
                gender,
                against,
                words=_named(self.contrast.words, marked),
                criterion=_named(self.contrast.words, marked & self.criterion),
                n_common=int((marked & self.common).sum()),
                n_names=int((marked & self.contrast.is_name).sum()),
                n_beyond=int((marked & self.contrast.is_content).sum()),
            )
            for (gender, against), marked in zip(pairs, self._marked(c), strict=True)
        ]

    def agreements(self, c: float) -> FloatArray:
        """How far two halves' lists agree, `[2, 40]`: directions, halvings; each half is its own topic."""
        contrast, content = self.contrast, self.contrast.is_content
        prior = replace(self.prior, c=c)
        z = z_scores(*contrast.halves, words=contrast.words, english=contrast.english, prior=prior)
        defined = np.logical_not(np.isnan(z).any(axis=(0, 2)))
        found = [chance_corrected(marked[..., content]) for marked in _both_ways(z, contrast.halves)]
        return np.where(defined, np.stack(found), np.nan)


def _both_ways(z: FloatArray, counts: tuple[IntArray, IntArray]) -> tuple[BoolArray, BoolArray]:
    """Which words the one gender marks against the other, and the other against the one: `[..., W]`."""
    return (z > THRESHOLD) & (counts[0] > 0), (-z > THRESHOLD) & (counts[1] > 0)


def _named(words: Words, chosen: BoolArray) -> Words:
    return tuple(words[i] for i in np.flatnonzero(chosen))


@dataclass(frozen=True, slots=True, eq=False)
class Halved:
    """The documents, their genders, and how they are halved."""

    counts: csr_matrix  # [n, W]
    labels: NDArray[np.str_]  # [n]
    strata: Sequence[Hashable]  # [n]
    first: BoolArray  # [20, n], in the first half
    rng: np.random.Generator

    def halves(self, pair: tuple[str, str]) -> list[IntArray]:
        """Word counts of each gender of a pair, `[2, 40, W]`: halvings as they are, then genders shuffled."""
        rows = np.flatnonzero(np.isin(self.labels, pair))
        labels, first, counts = self.labels[rows], self.first[:, rows], self.counts[rows]
        shuffled = shuffled_in_halves(labels, [self.strata[i] for i in rows.tolist()], first, self.rng)
        genders = np.concatenate([np.tile(labels, (len(first), 1)), shuffled])
        both = np.concatenate([first, first])
        return [
            np.stack([(half & (genders == gender)).astype(np.int64) @ counts for half in (both, ~both)])
            for gender in pair
        ]


def contrasts_of(texts: Halved, words: Words, english: FloatArray, names: Collection[str]) -> list[Contrast]:
    """Every pair of the genders present, with what does not change with alpha or C."""
    present = set(texts.labels.tolist())
    if unknown := present - set(GENDERS):
        raise ValueError(f"genders {sorted(unknown)} are not of {GENDERS}")
    found = []
    for pair in itertools.combinations([gender for gender in GENDERS if gender in present], 2):
        halves = texts.halves(pair)
        whole = [half[:, 0].sum(axis=0) for half in halves]
        here = np.flatnonzero(whole[0] + whole[1])
        own_words = tuple(words[i] for i in here)
        found.append(
            Contrast(
                genders=pair,
                words=own_words,
                english=english[here],
                is_fixed=is_fixed(own_words),
                is_speaker=np.array([w in SPEAKER_WORDS for w in own_words], dtype=np.bool_),
                is_name=np.array([w in names for w in own_words], dtype=np.bool_),
                is_content=~says_gender(own_words, names),
                counts=(whole[0][here], whole[1][here]),
                halves=(halves[0][..., here], halves[1][..., here]),
            )
        )
    return found
