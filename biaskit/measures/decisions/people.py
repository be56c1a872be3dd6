"""Rows of decisions.csv as the statistics take them: wordings averaged, people grouped, jobs apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from biaskit.records import ALL
from biaskit.stats.arrays import FloatArray, IntArray
from biaskit.stats.cases import Decisions

if TYPE_CHECKING:
    import pandas as pd

BOTH = " × "
"""Between sex and race in the name of a category."""
UNKNOWN = ("", "unknown")
ALONE = ["case", "person", "sex", "race", "position"]
"""What one decision is about, in all wordings."""
NUMBERS = ["p_yes", "selected", "p_low", "p_high", "n_answers"]


@dataclass(frozen=True)
class Table:
    """Decisions about one question in one job or all: a row for each case, person and position.

    `rows` has the columns of decisions.csv and `x`, the outcome; `asked` are all, in every wording, with or
    without an answer.
    """

    question: str
    job: str
    rows: pd.DataFrame
    asked: pd.DataFrame
    choice: int = 0
    scores: bool = False
    stated: bool = False
    counted: bool = False  # x is 0 or 1

    @property
    def paired(self) -> bool:
        """Whether two are shown together throughout, a woman and a man of one race."""
        return self.choice == 2 and len(self.rows) > 0 and bool((self.rows["pair"] != "").all())

    @property
    def x(self) -> FloatArray:
        """The outcomes `[n]`."""
        return self.rows["x"].to_numpy(float)

    def only(self, **values: str) -> Table:
        """Keep people of this sex or race."""
        rows, asked = self.rows, self.asked
        for name, value in values.items():
            rows, asked = rows[rows[name] == value], asked[asked[name] == value]
        return replace(self, rows=rows, asked=asked)

    def of(self, by: str) -> Table:
        """Keep rows whose category is known, and name it in a column `category`."""
        parts = []
        for rows in (self.rows, self.asked):
            known = rows
            for name in by.split("+"):
                known = known[~known[name].isin(UNKNOWN)]
            names = [known[name] for name in by.split("+")]
            parts.append(known.assign(category=names[0] if len(names) == 1 else names[0] + BOTH + names[1]))
        return replace(self, rows=parts[0], asked=parts[1])

    def decisions(self, by: str, categories: list[str]) -> Decisions:
        """Number groups in the order of `categories`, people and cases."""
        rows, number = self.rows, {name: i for i, name in enumerate(categories)}
        group = np.array([number[name] for name in rows["category"]], np.int64)
        other = {"sex": "race", "race": "sex"}.get(by)
        of_other = np.zeros(len(rows), np.int64) if other is None else _codes(rows[other])
        person = case = job = None
        if not self.stated and (rows["person"] != "").any():
            person = _codes(rows["person"])
        if (rows["case"] != "").any():
            case = _codes(rows["job"] + "\0" + rows["case"])
        if self.job == ALL and rows["job"].nunique() > 1:
            job = _codes(rows["job"])
        return Decisions(group, of_other, person, case, job, self.choice, self.paired)

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
    rows: pd.DataFrame, *, choice: int = 0, scores: bool = False, stated: bool = False, places: bool = False
) -> Iterator[Table]:
    """Yield the decisions of one model: of each question those in all jobs, then in each if several.

    Wordings are averaged, and so are the places of pairs shown in both orders, unless `places` are asked for.
    """
    import pandas as pd

    known = rows.reindex(columns=[*dict.fromkeys([*rows.columns, *COLUMNS])])
    for name in ("question", "wording", "job", *ALONE, "pair"):
        known[name] = known[name].astype(object).where(known[name].notna(), "")
        if name not in ("position", "question"):
            known[name] = known[name].map(str)
    for name in NUMBERS:
        known[name] = pd.to_numeric(known[name])
    for question, asked in known.groupby("question", sort=False):
        counted = bool(asked["p_yes"].isna().all())
        asked = asked.assign(x=asked["selected"] if counted else asked["p_yes"])
        in_pairs = choice == 2 and bool((asked["pair"] != "").all())
        fixed = ["wording", "position"] if in_pairs and not places else ["wording"]
        answered = _averaged(asked[asked["x"].notna()], fixed)
        jobs = [*asked["job"].unique()]
        for job in [ALL, *jobs] if len(jobs) > 1 else [ALL]:
            parts = [answered, asked]
            if job != ALL:
                parts = [part[part["job"] == job] for part in parts]
            yield Table(str(question), str(job), parts[0], parts[1], choice, scores, stated, counted)


def model_of(rows: pd.DataFrame) -> str:
    """Name the model of rows that are all of one; empty in a log without one."""
    return str(rows["model"].iloc[0]) if "model" in rows and len(rows) else ""


COLUMNS = ("question", "wording", "job", *ALONE, "pair", *NUMBERS)


def _averaged(rows: pd.DataFrame, fixed: list[str]) -> pd.DataFrame:
    """Average what is fixed; where a part of it has no answer, the others are set to the level of all."""
    if len(rows[fixed].drop_duplicates()) < 2:
        return rows
    numbers = ["x", "p_yes", "p_low", "p_high"]
    levels = rows.groupby(fixed)["x"]
    shift = levels.mean().mean() - levels.transform("mean")
    rows = rows.assign(**rows[numbers].add(shift, axis=0))
    key = [name for name in ("job", *ALONE) if name not in fixed]
    each = rows.groupby(key, sort=False, as_index=False)
    averaged = each.first().assign(**each[numbers].mean()[numbers])
    return averaged.assign(n_answers=each["n_answers"].sum()["n_answers"])
