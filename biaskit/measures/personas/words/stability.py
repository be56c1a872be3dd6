"""How far the lists of two halves of the texts agree beyond chance (methods/words#calibration-alpha)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from biaskit.common.plain import group_by
from biaskit.stats.arrays import BoolArray, FloatArray

N_HALVINGS = 20


def first_halves(labels: Sequence[str], strata: Sequence[Hashable], rng: np.random.Generator) -> BoolArray:
    """Halve the documents 20 times within gender and stratum: `[20, n]`, True in the first half.

    The odd document of a stratum goes to either half by chance.
    """
    keys = list(zip(labels, strata, strict=True))
    first = np.zeros((N_HALVINGS, len(labels)), dtype=np.bool_)
    for documents in group_by(range(len(labels)), keys.__getitem__).values():
        ranks = rng.permuted(np.tile(np.arange(len(documents)), (N_HALVINGS, 1)), axis=1)
        sizes = (len(documents) + rng.integers(0, 2, size=(N_HALVINGS, 1))) // 2
        first[:, documents] = ranks < sizes
    return first


def shuffled_in_halves(
    labels: NDArray[np.str_], strata: Sequence[Hashable], first: BoolArray, rng: np.random.Generator
) -> NDArray[np.str_]:
    """Shuffle labels within stratum and half, so that each half keeps its numbers of genders: `[20, n]`."""
    shuffled = np.tile(labels, (len(first), 1))
    stratum = np.unique(list(map(repr, strata)), return_inverse=True)[1]
    for row, half in zip(shuffled, first, strict=True):
        cells = 2 * stratum + half
        for cell in np.unique(cells):
            members = np.flatnonzero(cells == cell)
            row[members] = rng.permutation(row[members])
    return shuffled


def chance_corrected(marked: BoolArray) -> FloatArray:
    """Measure how far pairs of lists agree beyond chance.

    Formula: Φ = 1 − (1/D Σ_w s_w²) / (k̄/D · (1 − k̄/D)), s_w² the sample variance of "w is marked" over the
        two lists (1/2 where one of them marks w, else 0), k̄ their mean length.
    Arguments: marked `[2, H, D]`: two lists of D words each, H times.
    Returns: `[H]`, in [−1, 1]; 1 = the same words, 0 = chance, and where both are empty or hold every word.
    Reference: methods/words#calibration-alpha; Nogueira, Sechidis and Brown 2018, for two lists. Checked
        against a plain loop.
    """
    n_words = max(1, marked.shape[-1])
    part = np.count_nonzero(marked, axis=-1).mean(axis=0) / n_words
    differing = np.count_nonzero(marked[0] != marked[1], axis=-1) / (2 * n_words)
    chance = part * (1.0 - part)
    agreement = np.divide(differing, chance, out=np.ones(part.shape), where=chance > 0)
    return np.asarray(1.0 - agreement, dtype=np.float64)


class OverHalvings(NamedTuple):
    """A mean over halvings with its 95 % interval."""

    mean: float
    low: float
    high: float


def over_halvings(values: FloatArray) -> OverHalvings | None:
    """Average over halvings of the same texts, `[H]`; the interval allows for the texts they share.

    Formula: mean ± t(0.975, n − 1) · sd · √(1/n + 1), n values that are not NaN.
    Missing or empty input: None where fewer than half of the halvings, or than two, have a value.
    Reference: Nadeau and Bengio 2003: halvings share their texts, so n of them are not n samples; the 1 is
        the size of one half over the other's.
    """
    from scipy.stats import t

    defined = values[~np.isnan(values)]
    n = len(defined)
    if n < 2 or 2 * n < len(values):
        return None
    mean = float(defined.mean())
    half = float(t.ppf(0.975, n - 1) * defined.std(ddof=1) * np.sqrt(1 / n + 1))
    return OverHalvings(mean, mean - half, mean + half)
