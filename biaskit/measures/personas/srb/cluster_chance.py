"""How many clusters chance alone would keep (methods/srb#cluster-chance)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from biaskit.stats.arrays import BoolArray, FloatArray, IntArray

N_SWAPS = 199
FEWEST_OCCUPATIONS = 3


def differs_by_half(n_female: IntArray, n_male: IntArray, *, released: bool = False) -> BoolArray:
    """Apply the 50 % rule: |F − M| is at least half of the smaller count, and not zero; any shape.

    `released`: half of max(1, M), whichever is smaller. 6 women's lists to 4 men's pass, 4 to 6 do not.
    """
    base = np.maximum(1, n_male) if released else np.minimum(n_female, n_male)
    differs: BoolArray = (n_female != n_male) & (2 * np.abs(n_female - n_male) >= base)
    return differs


def is_kept(n_female: IntArray, n_male: IntArray, *, released: bool = False) -> BoolArray:
    """Say whether F and M `[..., models]` are 3 pairs or more and differ by half in every model: `[...]`."""
    enough = n_female + n_male >= FEWEST_OCCUPATIONS
    return np.asarray((enough & differs_by_half(n_female, n_male, released=released)).all(axis=-1))


@dataclass(frozen=True, slots=True, eq=False)
class Chance:
    """How observed counts compare with swapped lists; the last of `models + 1` columns sums over models."""

    p_value: FloatArray  # [clusters, models + 1]: a difference as large as the observed one, either way
    kept: FloatArray  # [clusters, models + 1]: share of swaps in which the rule holds, the sum by 50 % alone
    n_kept: FloatArray  # [swaps]: clusters kept in every model


def chance_of(
    holds: BoolArray, *, rng: np.random.Generator, released: bool = False, n_swaps: int = N_SWAPS
) -> Chance:
    """Swap the women's and the men's list of each model and occupation by a fair coin, many times.

    Formula: F + M stays, F − M becomes Σ ± (the women's list holds the cluster − the men's does); p = (1 +
        number of swaps with |F − M| ≥ the observed one) / (swaps + 1).
    `holds`: `[clusters, models, occupations, 2]`, whether the women's, the men's list holds a word of it.
    Reference: methods/srb#cluster-chance; GAS(P) keeps clusters without a chance level.
    """
    difference = holds[..., 0].astype(np.int64) - holds[..., 1]
    n = holds.sum(axis=(2, 3))
    coins = rng.integers(0, 2, size=(n_swaps, *difference.shape[1:])) * 2 - 1
    swapped = np.einsum("smo,cmo->scm", coins, difference)
    observed = difference.sum(axis=2)
    f, m = (n + swapped) // 2, (n - swapped) // 2
    kept = (n >= FEWEST_OCCUPATIONS) & differs_by_half(f, m, released=released)
    summed = differs_by_half(f.sum(axis=2), m.sum(axis=2), released=released)
    sum_reached = np.abs(swapped.sum(axis=2)) >= np.abs(observed.sum(axis=1))
    reached = np.concatenate([np.abs(swapped) >= np.abs(observed), sum_reached[..., None]], axis=2)
    null_kept = np.concatenate([kept, summed[..., None]], axis=2).mean(axis=0)
    n_kept = kept.all(axis=2).sum(axis=1).astype(np.float64)
    return Chance((1 + reached.sum(axis=0)) / (n_swaps + 1), null_kept, n_kept)
