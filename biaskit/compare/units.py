"""Tests of one number over the units that all models have (methods/comparisons#model-pairs)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from biaskit.compare.pairs import Side, SidePair, members_of
from biaskit.stats.arrays import FloatArray
from biaskit.stats.contrast import Contrast, Scope
from biaskit.stats.contrasts import within_units

Values = Mapping[str, float | None]
"""Unit → number; None where it is undefined, absent where the model was not asked."""


def unit_rows(
    pair: SidePair,
    values: Mapping[str, Values],
    scope: Scope,
    margins: Mapping[str, float],
    seed: int,
    *,
    ends: tuple[Mapping[str, Values], Mapping[str, Values]] | None = None,
) -> list[Contrast]:
    """Test one number over the units that all models have: rows welch and paired, later side − earlier.

    `values`: model → unit → number; a side's number is the mean over its models. No row without any unit.
    `ends`: what the numbers lie between, where they are not known in full.
    """
    later, earlier = pair
    members = members_of(pair, values)
    if not any(members):
        return []
    shared = set(members[0]).intersection(*members[1:])
    for member in members:
        shared -= {unit for unit, value in member.items() if value is None}
    common = sorted(shared)
    n_out = len(set().union(*members)) - len(common)
    both = "both" if len(members) == 2 else "all"

    def mean(values: Mapping[str, Values], side: Side) -> FloatArray:
        by_model = [list(map(values[model].__getitem__, common)) for model in side.models]
        means: FloatArray = np.array(by_model, dtype=np.float64).mean(axis=0)
        return means

    bounds = None
    if ends:
        low, high = ends
        bounds = mean(low, later) - mean(high, earlier), mean(high, later) - mean(low, earlier)
    note = f"{n_out} {scope.unit}s left out, not in {both} models" if n_out else None
    a, b, kinds = mean(values, later), mean(values, earlier), ("welch", "paired")
    return within_units(a, b, scope=scope, kinds=kinds, margins=margins, seed=seed, note=note, ends=bounds)
