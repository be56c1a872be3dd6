"""Adjusting p-values for how many of them there are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from biaskit.stats.arrays import FloatArray


def holm(families: Sequence[str], p_values: Sequence[float | None]) -> list[float | None]:
    """Adjust p-values by Holm's step-down method, each family for itself; None stays None and is not in m.

    Formula: for p_(1) ≤ … ≤ p_(m) of a family: p̃_(k) = max over l ≤ k of min(1, (m − l + 1) p_(l)).
    Reference: methods/tests#holm; checked against statsmodels' `multipletests`, which collects garbage at
        every call, a plain loop and R's `p.adjust(method = "holm")`.
    """
    adjusted: list[float | None] = [None] * len(p_values)
    members: dict[str, list[int]] = {}
    for i, family in enumerate(families):
        if p_values[i] is not None:
            members.setdefault(family, []).append(i)
    for indices in members.values():
        indices.sort(key=lambda i: p_values[i] or 0.0)
        steps = np.array([p_values[i] for i in indices]) * np.arange(len(indices), 0, -1)
        for i, p in zip(indices, np.minimum(np.maximum.accumulate(steps), 1.0).tolist(), strict=True):
            adjusted[i] = p
    return adjusted


def benjamini_hochberg(p_values: ArrayLike) -> FloatArray:
    """Adjust p-values by Benjamini and Hochberg: the q-values of one family. NaN is a `ValueError`.

    Formula: for p_(1) ≤ … ≤ p_(m): q_(k) = min over l ≥ k of min(1, m p_(l) / l).
    Reference: methods/words#q-values; scipy's `false_discovery_control`.
    """
    from scipy.stats import false_discovery_control

    p = np.asarray(p_values, dtype=np.float64)
    return np.asarray(false_discovery_control(p)) if p.size else p
