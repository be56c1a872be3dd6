"""z of words by their counts alone, in any number of dimensions: `LogOdds` on the words of the topic."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from biaskit.measures.personas.words.log_odds import DEFAULT_PRIOR, LogOdds, Prior, is_fixed
from biaskit.stats.arrays import FloatArray


def z_scores(
    target: ArrayLike,
    unmarked: ArrayLike,
    *,
    words: Sequence[str],
    english: ArrayLike,
    method: str = "calibrated",
    prior: Prior = DEFAULT_PRIOR,
    topic: ArrayLike | None = None,
) -> FloatArray:
    """z of counts `[..., W]`, words in alphabetical order; the topic is by default both groups together."""
    counts = [*np.broadcast_arrays(np.asarray(target), np.asarray(unmarked))]
    shape = counts[0].shape
    counts.append(np.broadcast_to(counts[0] + counts[1] if topic is None else np.asarray(topic), shape))
    if not counts[0].size:
        return np.zeros(shape)
    rows = [each.reshape(-1, len(words)).astype(np.float64) for each in counts]
    odds = LogOdds(is_fixed(words), np.asarray(english, dtype=np.float64), method, prior)
    return odds.z(*rows).reshape(shape)
