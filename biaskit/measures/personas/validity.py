"""What texts tell of each occupation, to be held against other measures (methods/reliability#validity)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from biaskit.compare.validity import Measure
from biaskit.records import ALL
from biaskit.stats.reliability import split_half
from biaskit.stats.resampling import generator
from biaskit.tables.query import (
    Tables,
    apart_from,
    column,
    defined,
    grouped,
    lookup,
    mean_over_prompts,
    where,
    without_debiasing,
)


def of_jobs(tables: Tables, model: str) -> Iterator[Measure]:
    """Yield the share of women in a model's texts, and in the workforce."""
    rows = where(tables.get("representation", ()), model=model)
    means = mean_over_prompts(rows)
    shares = lookup(defined(means, "female_share"), "occupation", "female_share")
    if shares:
        prompts = apart_from(without_debiasing(rows), template_id=ALL)
        by_occupation = grouped(prompts, "occupation")
        values = [column(by_occupation[occupation,], "female_share") for occupation in shares]
        of_prompts = np.array(values, dtype=np.float64)  # of None NaN
        halves = split_half(of_prompts, generator(1, "reliability", [model, "texts"]))
        yield Measure("texts", shares, halves, of_prompts.shape[1])
    if shares := lookup(defined(means, "workforce_share"), "occupation", "workforce_share"):
        yield Measure("workforce", shares)
