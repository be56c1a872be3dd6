"""From decisions.csv to decision_groups.csv and decision_equal.csv: rates, impact ratios, what luck makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from biaskit.common.wording import ROUNDING
from biaskit.measures.decisions.people import BY, Table, tables_of
from biaskit.stats.arrays import FloatArray
from biaskit.stats.ratios import equal_groups, impact_ratios
from biaskit.stats.resampling import generator

if TYPE_CHECKING:
    import pandas as pd


def decision_groups(
    rows: pd.DataFrame, *, seed: int, min_category: float = 0.02, **how: Any
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Make decision_groups.csv and decision_equal.csv of one model and question; `how`: as of `tables_of`.

    The verdict stands beside the first kind of rate alone. `excluded`: a category under `min_category` of
    rows. Rows whose sex or race is not known are in no category that needs it. Where two categories have a
    ratio with an interval, the second table says what the smallest would be in equal groups.
    """
    import pandas as pd

    groups: list[dict[str, Any]] = []
    equal: list[dict[str, Any]] = []
    model = str(rows["model"].iloc[0])
    for table in tables_of(rows, **how):
        for by in BY[:1] if table.paired else BY:  # of pairs of one race, sex alone makes a ratio
            known = table.rows[by] != ""
            judged = True
            for kind, x in _kinds(table) if known.any() else ():
                part = replace(table, rows=table.rows.assign(x=x)[known], counted=kind != "expected")
                place = {"question": table.question, "job": table.job, "by": by, "rate_kind": kind}
                rng = generator(seed, "decision_equal", [model, *place.values()])
                made, luck = _rates(part, by, min_category * len(table.rows), rng, judged=judged)
                groups += [place | row for row in made]
                equal += [place | row | {"n_unknown": int((~known).sum())} for row in luck]
                judged = False
    return pd.DataFrame(groups), pd.DataFrame(equal)


def _kinds(table: Table) -> Iterator[tuple[str, FloatArray]]:
    """Yield every kind of rate and what it is the mean of, `[n]`."""
    x = table.x
    if table.scores:
        yield "above-median", (x > np.median(x)).astype(float)
        return
    if not table.counted:
        yield "expected", x
    yield "selected", (x >= 0.5).astype(float)


def _rates(
    table: Table, by: str, fewest: float, rng: np.random.Generator, *, judged: bool
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Make the rows of one attribute and kind, and the row of equal groups; `fewest` rows have a ratio."""
    each = table.rows.groupby(by)
    people, n = each["person"].nunique(), np.asarray(each.size(), np.float64)
    included, categories = n >= fewest - ROUNDING, [*people.index]
    if not table.rows["person"].any():
        people[:] = 0  # stated, or not known
    found = impact_ratios(
        table.decisions(by, categories), table.x, included, counted=table.counted, ends=table.ends()
    )
    made = []
    for i, category in enumerate(categories):
        row = {"category": category, "n": int(n[i]), "n_people": int(people[category]), "rate": found.rate[i]}
        row |= {"selected": round(found.rate[i] * n[i], 9), "ratio": found.ratio[i]}
        row |= {"ratio_low": found.low[i], "ratio_high": found.high[i]}
        row |= {"verdict": "", "excluded": not included[i], "reason": found.reason}
        if judged and not np.isnan(found.low[i]):
            row["verdict"] = found.verdict(i, n)
        made.append(row)
    if (equal := equal_groups(found, rng)) is None:
        return made, []
    luck = dict(zip(("equal_median", "equal_low", "p_equal"), equal, strict=True))
    return made, [{"smallest": np.nanmin(found.ratio)} | luck]
