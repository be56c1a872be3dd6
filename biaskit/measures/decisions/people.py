"""Rows of decisions.csv as the statistics take them: wordings averaged, people grouped, jobs apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from biaskit.records import ALL
from biaskit.stats.arrays import FloatArray, IntArray
from biaskit.stats.cases import Decisions

if TYPE_CHECKING:
    import pandas as pd

BY = ("sex", "race", "sex+race")
"""What people are grouped by; of both the category is "female × Black", where both are known."""
TEXTS = ["question", "wording", "job", "case", "person", "sex", "race", "position", "pair"]
NUMBERS = ["p_yes", "selected", "p_low", "p_high", "n_answers"]


@dataclass(frozen=True)
class Table:
    """Decisions about one question in one job or all: a row for each case, person and position.

    `rows` has the columns of decisions.csv, `sex+race` and `x`, the outcome; `asked` are all, in every
    wording, with or without an answer. A sex or race that is not known is empty.
    """

    question: str
    job: str
    rows: pd.DataFrame
    asked: pd.DataFrame
    choice: int
    scores: bool
    counted: bool  # x is 0 or 1; with `scores` the change of one from model to model
    paired: bool  # two are shown together throughout, a woman and a man of one race

    @property
    def x(self) -> FloatArray:
        """The outcomes `[n]`."""
        return self.rows["x"].to_numpy(float)

    def decisions(self, by: str, categories: list[str]) -> Decisions:
        """Number groups in the order of `categories`, people and cases."""
        rows, person, case, job = self.rows, None, None, None
        other = {"sex": "race", "race": "sex"}.get(by, "question")
        if (rows["person"] != "").any():
            person = _codes(rows["person"])
        if (rows["case"] != "").any():
            case = _codes(rows["job"] + "\0" + rows["case"])
        if self.job == ALL and rows["job"].nunique() > 1:
            job = _codes(rows["job"])
        group = np.asarray(rows[by].map(categories.index), np.int64)
        return Decisions(group, _codes(rows[other]), person, case, job, self.choice, self.paired)

    def ends(self) -> tuple[FloatArray, FloatArray] | None:
        """What the outcome lies between, `[n]`, where a list of the likeliest tokens leaves it open.

        Intervals of samples stand in the same columns, and are no bounds.
        """
        rows = self.rows
        open_ = (rows["p_high"] > rows["p_low"]) & ~(rows["n_answers"] > 0)
        if self.counted or not open_.any():
            return None
        low, high = (rows[name].where(open_, rows["x"]) for name in ("p_low", "p_high"))
        return low.to_numpy(float), high.to_numpy(float)


def _codes(values: pd.Series) -> IntArray:
    return np.unique(values.to_numpy(str), return_inverse=True)[1].astype(np.int64)


def tables_of(
    rows: pd.DataFrame, *, choice: int = 0, scores: bool = False, places: bool = False
) -> Iterator[Table]:
    """Yield the decisions of one model on one question, in all jobs, then in each if several.

    `choice`: how many are shown of whom one is chosen, 0 where each is decided on alone; `scores`: p_yes is a
    score. The outcome is `p_yes`; `selected` where no row has a p_yes. A column that is not given is empty.
    Wordings are averaged, and the places of pairs shown in both orders, unless `places` are asked for.
    """
    import pandas as pd

    asked = rows.reindex(columns=[*TEXTS, *NUMBERS])
    for name in TEXTS:
        asked[name] = asked[name].astype(object).where(asked[name].notna(), "")
        if name != "position":
            asked[name] = asked[name].map(str)
    for name in NUMBERS:
        asked[name] = pd.to_numeric(asked[name])
    asked[["sex", "race"]] = asked[["sex", "race"]].replace("unknown", "")
    known = (asked["sex"] != "") & (asked["race"] != "")
    asked["sex+race"] = (asked["sex"] + " × " + asked["race"]).where(known, "")
    counted = bool(asked["p_yes"].isna().all())
    asked["x"] = asked["selected"] if counted else asked["p_yes"]
    paired = choice == 2 and bool((asked["pair"] != "").all())
    fixed = ["wording", "position"] if paired and not places else ["wording"]
    answered = _averaged(asked[asked["x"].notna()], fixed)
    for name in ("person", "case"):
        lacks = answered[name] == ""
        if lacks.any() and not lacks.all():  # nobody knows what such rows share: each has its own
            own = [f"\0{n}" for n in range(len(lacks))]
            answered = answered.assign(**{name: answered[name].where(~lacks, own)})
    question, *_ = asked["question"]
    jobs = asked["job"].unique()
    for job in [ALL, *jobs] if len(jobs) > 1 else [ALL]:
        kept = (part[(part["job"] == job) | (job == ALL)] for part in (answered, asked))
        yield Table(question, job, next(kept), next(kept), choice, scores, counted, paired)


def _averaged(rows: pd.DataFrame, fixed: list[str]) -> pd.DataFrame:
    """Average what is fixed; where a part of it has no answer, the others are set to the level of all."""
    if len(rows[fixed].drop_duplicates()) < 2:
        return rows
    numbers = ["x", "p_low", "p_high"]
    levels = rows.groupby(fixed)["x"]
    shift = levels.mean().mean() - levels.transform("mean")
    rows = rows.assign(**rows[numbers].add(shift, axis=0))
    key = [name for name in TEXTS if name not in fixed]
    each = rows.groupby(key, sort=False, as_index=False)
    averaged = each.first().assign(**each[numbers].mean()[numbers])
    return averaged.assign(n_answers=each["n_answers"].sum()["n_answers"])
