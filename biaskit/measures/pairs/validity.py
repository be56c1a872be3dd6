"""What pairs of sentences tell of each stereotype, such as a job (methods/reliability#validity)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from biaskit.compare.validity import Measure
from biaskit.stats.reliability import Estimate, split_half
from biaskit.stats.resampling import generator
from biaskit.tables.query import Tables, column, defined, grouped, where

_UNEVEN = "not as many pairs of every stereotype, two at least"


def of_jobs(tables: Tables, model: str) -> Iterator[Measure]:
    """Yield the mean share of the feminine sentence of each stereotype."""
    rows = defined(where(tables.get("pair_scores", ()), model=model), "female_share")
    values = {key[0]: column(pairs, "female_share") for key, pairs in grouped(rows, "stereotype").items()}
    halves, sizes = Estimate(reason=_UNEVEN), {*map(len, values.values())}
    if len(sizes) == 1 < max(sizes):
        halves = split_half(np.array([*values.values()]), generator(1, "reliability", [model, "pairs"]))
    if values:
        means = {stereotype: float(np.mean(shares)) for stereotype, shares in values.items()}
        yield Measure("pairs", means, halves, min(sizes))
