"""From decisions.csv to decision_groups.csv and decision_equal.csv: rates, impact ratios, what luck makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from biaskit.measures.decisions.people import Table, model_of, tables_of
from biaskit.stats.arrays import BoolArray, FloatArray
from biaskit.stats.ratios import Ratios, equal_groups, impact_ratios
from biaskit.stats.resampling import generator

if TYPE_CHECKING:
    import pandas as pd

BY = ("sex", "race", "sex+race")
GROUPS = [
    *("model", "question", "job", "by", "category", "rate_kind", "n", "n_people", "selected", "rate"),
    *("ratio", "ratio_low", "ratio_high", "verdict", "excluded", "reason"),
]
PLACE = ["question", "job", "by", "rate_kind"]
EQUAL = [
    *("model", "question", "job", "by", "rate_kind", "smallest", "equal_median", "equal_low", "p_equal"),
    "n_unknown",
]


@dataclass(frozen=True, slots=True)
class _Rates:
    """The rates of all categories of one attribute, of one kind, in one table."""

    table: Table
    by: str
    kind: str
    judged: bool
    categories: list[str]
    n: FloatArray  # [K], rows
    n_unknown: int

    @property
    def place(self) -> dict[str, Any]:
        """The key columns that its rows share."""
        return {"question": self.table.question, "job": self.table.job, "by": self.by, "rate_kind": self.kind}

    def ratios(self, included: BoolArray) -> Ratios:
        """Compare the categories included `[K]` with the highest of them."""
        counted = self.kind != "expected"
        rows = self.table.decisions(self.by, self.categories)
        ends = None if counted else self.table.ends()
        return impact_ratios(rows, self.table.x, included, counted=counted, ends=ends)


def decision_groups(
    rows: pd.DataFrame,
    *,
    min_category: float = 0.02,
    choice: int = 0,
    scores: bool = False,
    stated: bool = False,
) -> pd.DataFrame:
    """Make decision_groups.csv of one model: rates of each sex, race and both, and ratios to the highest.

    `rows` of decisions.csv, all questions or one; `by` is `sex`, `race` or `sex+race`, `category` "female",
    "Black", "female × Black". `rate_kind`: `expected` (mean p_yes) and `selected` where there are
    probabilities, `selected` alone without, `above-median` for `scores`. `verdict` is that of the first of
    them; empty beside it. `excluded`: a category under `min_category` of rows. Rows with an unknown sex or
    race (empty, "unknown") are in no category that needs it.
    """
    import pandas as pd

    made: list[dict[str, Any]] = []
    for table in tables_of(rows, choice=choice, scores=scores, stated=stated):
        for rates in _rates(table):
            made += _rows(rates, rates.n >= min_category * len(table.rows))
    return pd.DataFrame(made, columns=GROUPS).assign(model=model_of(rows))


def decision_equal(
    rows: pd.DataFrame, groups: pd.DataFrame, seed: int, *, choice: int = 0, stated: bool = False
) -> pd.DataFrame:
    """Make decision_equal.csv of one model: the smallest ratio that equal groups would have.

    `groups` is what `decision_groups` made of the same rows; a row for each question, job, `by` and rate_kind
    with at least two categories that have a ratio.
    """
    import pandas as pd

    made, model = [], model_of(rows)
    scores = bool((groups["rate_kind"] == "above-median").any())
    excluded = groups[groups["excluded"].astype(bool)]
    without = {*excluded[[*PLACE, "category"]].itertuples(index=False, name=None)}
    for table in tables_of(rows, choice=choice, scores=scores, stated=stated):
        for rates in _rates(table):
            key = tuple(rates.place.values())
            found = rates.ratios(np.array([(*key, name) not in without for name in rates.categories]))
            equal = equal_groups(found, generator(seed, "decision_equal", [model, *key]))
            if equal is not None:
                row = {**rates.place, "smallest": np.nanmin(found.ratio), "n_unknown": rates.n_unknown}
                row["equal_median"], row["equal_low"], row["p_equal"] = equal
                made.append(row)
    return pd.DataFrame(made, columns=EQUAL).assign(model=model)


def _rates(table: Table) -> Iterator[_Rates]:
    """Yield the rates by sex, by race and by both, of every kind."""
    x = table.x
    kinds: dict[str, FloatArray] = {}
    if table.scores:
        kinds["above-median"] = (x > np.median(x)).astype(float) if len(x) else x
    else:
        if not table.counted:
            kinds["expected"] = x
        kinds["selected"] = (x >= 0.5).astype(float)
    for by in BY[:1] if table.paired else BY:  # of pairs of one race, sex alone makes a ratio
        for kind, values in kinds.items():
            here = replace(table, rows=table.rows.assign(x=values)).of(by)
            if len(here.rows):
                counts = here.rows["category"].value_counts().sort_index()
                unknown = len(table.rows) - len(here.rows)
                judged = kind == next(iter(kinds))
                n = counts.to_numpy().astype(np.float64)
                yield _Rates(here, by, kind, judged, [*counts.index], n, unknown)


def _rows(rates: _Rates, included: BoolArray) -> Iterator[dict[str, Any]]:
    """Yield the rows of decision_groups.csv of one attribute and kind."""
    found, people = rates.ratios(included), rates.table.rows.groupby("category")["person"].nunique()
    for i, category in enumerate(rates.categories):
        row = rates.place | {"category": category, "n": int(rates.n[i]), "n_people": int(people[category])}
        row |= {"rate": found.rate[i], "selected": found.rate[i] * rates.n[i], "verdict": ""}
        row |= {"ratio": found.ratio[i], "ratio_low": found.low[i], "ratio_high": found.high[i]}
        row |= {"excluded": not included[i], "reason": found.reason}
        if rates.judged and not np.isnan(found.low[i]):
            row["verdict"] = found.verdict(i, rates.n)
        yield row
