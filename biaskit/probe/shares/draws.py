"""What draws say of a share: counts of the expressions they begin with.

See docs/methods.md#sampling-estimator.
"""

from __future__ import annotations

import math

import numpy as np

from biaskit.stats.arrays import FloatArray

FEWEST_MATCHED = 2
"""Draws that a cell's share needs for an estimate of its variance."""


def se_of_mean(
    shares: FloatArray, matched: FloatArray, weights: FloatArray | None = None
) -> tuple[float | None, str | None]:
    """Standard error that the draws bring into a mean of cells' shares, and what it leaves out.

    Formula: √(Σ w² p(1 − p)/(K − 1)) / Σ w, over the cells with K ≥ 2 matched draws.
    Arguments: shares p, matched draws K and weights w (1) of the cells, all of one shape.
    Returns: a standard error; it carries no direction. It is already inside the interval over jobs and
        templates.
    Missing or empty input: None without a cell of two matched draws; the reason counts the cells left out.
    Reference: docs/methods.md#sampling-estimator; checked in simulation.
    """
    enough = matched >= FEWEST_MATCHED
    n = int(enough.sum())
    left_out = matched.size - n
    if not n:
        return None, "no cell with two matched draws: no se_sampling" if left_out else None
    p, k = shares[enough], matched[enough]
    w = np.ones(n) if weights is None else weights[enough]
    se = math.sqrt(math.fsum(w**2 * p * (1.0 - p) / (k - 1.0))) / math.fsum(w)
    few = (
        f"se_sampling over {n} of {matched.size} cells, in the others one draw matched" if left_out else None
    )
    return se, few
