"""The interval of a mean share over jobs and templates, by the study's choice of method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from biaskit.stats.arms import CellValues
from biaskit.stats.crossed import share_interval, spread_of_mean
from biaskit.stats.resampling import crossed_bootstrap, generator

Interval = Literal["crossed", "bootstrap"]


def share_ends(
    cells: CellValues, interval: Interval, seed: int, key: Sequence[object], table: str = "probe_groups"
) -> tuple[float | None, float | None, str | None]:
    """Find the interval of a mean share, and what it is conditional on or why there is none.

    Under bounds it goes from the lower end's low to the upper end's high.
    """
    found = []
    for values in cells.low_and_high if cells.tested == "ends" else (cells.point,):
        spread = spread_of_mean(values)
        if spread.variance is None or spread.dof is None or np.isnan(values).any():
            return None, None, spread.reason
        ends = None
        if interval == "bootstrap":
            ends = crossed_bootstrap(values, rng=generator(seed, table, key))
        found.append(ends or share_interval(float(values.mean()), spread.variance, spread.dof))
    return float(found[0][0]), float(found[-1][1]), spread.reason
