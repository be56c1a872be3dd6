"""Least-squares slope and rank correlation, of one sample or of many resamples at once."""

from __future__ import annotations

import numpy as np

from biaskit.stats.arrays import BoolArray, FloatArray
from biaskit.stats.welch import NO_SPREAD


def slope(x: FloatArray, y: FloatArray) -> FloatArray:
    """Least-squares slope of y on x.

    Formula: Σ (x − x̄)(y − ȳ) / Σ (x − x̄)².
    Arguments: x, y `[..., n]`.
    Returns: `[...]`; positive when y rises with x, in units of y per unit of x.
    Missing or empty input: NaN (for the caller to turn into None) where x has no spread.
    Reference: docs/methods.md#labour-slope; checked against `scipy.stats.linregress`.
    """
    dx = x - x.mean(axis=-1, keepdims=True)
    dy = y - y.mean(axis=-1, keepdims=True)
    return _ratio((dx * dy).sum(axis=-1), np.square(dx).sum(axis=-1), _spread(x))


def spearman(x: FloatArray, y: FloatArray) -> FloatArray:
    """Spearman's rank correlation, ties at their average rank.

    Formula: Pearson's correlation of the ranks.
    Arguments: x, y `[..., n]`.
    Returns: `[...]` in [−1, 1]; positive when y rises with x.
    Missing or empty input: NaN (for the caller to turn into None) where x or y has no spread.
    Reference: docs/methods.md#labour-slope; checked against `scipy.stats.spearmanr`.
    """
    from scipy.stats import rankdata

    dx = rankdata(x, axis=-1) - (x.shape[-1] + 1) / 2
    dy = rankdata(y, axis=-1) - (y.shape[-1] + 1) / 2
    below = np.sqrt(np.square(dx).sum(axis=-1) * np.square(dy).sum(axis=-1))
    return np.clip(_ratio((dx * dy).sum(axis=-1), below, _spread(x) & _spread(y)), -1.0, 1.0)


def _spread(values: FloatArray) -> BoolArray:
    spread: BoolArray = np.ptp(values, axis=-1) > NO_SPREAD * np.abs(values).max(axis=-1)
    return spread


def _ratio(above: FloatArray, below: FloatArray, defined: BoolArray) -> FloatArray:
    return np.divide(above, below, out=np.full_like(above, np.nan), where=defined)
