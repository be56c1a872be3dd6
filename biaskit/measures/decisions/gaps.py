"""From decisions.csv to decision_gaps.csv: differences between groups within the same cases."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from biaskit.common.wording import joined
from biaskit.measures.decisions.people import Table, tables_of
from biaskit.records import ALL
from biaskit.stats.arrays import BoolArray, IntArray
from biaskit.stats.cases import Decisions, WithinCases, numbered, within_cases
from biaskit.stats.contrast import Contrast, Scope
from biaskit.stats.contrasts import MOST_EMPTY, between, one_row
from biaskit.stats.crossed import crossed_test, not_below
from biaskit.stats.welch import Statistic
from biaskit.tables.schema import SCHEMAS

if TYPE_CHECKING:
    import pandas as pd

FEW = 5
"""Selected, or not, in a group: with fewer the numbers cannot show their own spread."""
NO_CASE = "no case has both groups"
UNANSWERED = "more than 10 % unanswered in a group: no conclusion"
FEW_DECISIONS = f"fewer than {FEW} decisions of a group: no conclusion"
NO_SPREAD = "all alike: no interval"


@dataclass(frozen=True, slots=True)
class Gap:
    """A row of decision_gaps.csv without model and verdict, its test, and bounds of an open answer."""

    row: Mapping[str, Any]
    test: Statistic
    bounds: tuple[float, float] | None = None

    def contrast(self, model: str, margin: float | None) -> Contrast:
        """Make its row of tests.csv; question and job are its context."""
        row = self.row
        context = row["question"] if row["job"] == ALL else f"{row['question']}, {row['job']}"
        scope = Scope("decisions", row["contrast"], model, model, context=context, unit="case")
        scope = replace(scope, quantity="gap", group_a=row["group_a"], group_b=row["group_b"])
        margins = {} if margin is None else {"gap": margin}
        made = one_row("crossed", self.test, scope=scope, n=row["n_cases"], margins=margins, note=None)
        low, high = self.bounds or (None, None)
        return replace(made, bound_low=low, bound_high=high)


def gaps_of(rows: pd.DataFrame, *, reference_race: str = "White", **how: Any) -> list[Gap]:
    """Compare groups within cases, for one model and question; `how`: as of `tables_of`.

    Contrasts, in `row["contrast"]`: `sex` (female − male), `other_sex` (each other sex − male), `race` (each
    race − reference, or the commonest; none of pairs of one race), for every job too where there are several;
    and `sex_within_race` ("female × Black" − "male × Black").
    """
    made = []
    for table in tables_of(rows, **how):
        for contrast, by, a, b in _contrasts(table, reference_race):
            made.append(_gap(table, contrast, by, a, b))
    return made


def _contrasts(table: Table, reference: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield contrast, attribute and the two groups of every comparison."""
    sexes, races = (_known(table, name) for name in ("sex", "race"))
    if "male" in sexes:
        for sex in sorted(sexes, key=lambda sex: sex != "female"):
            if sex != "male":
                yield "sex" if sex == "female" else "other_sex", "sex", sex, "male"
    if races and not table.paired:
        base = reference if reference in races else races[0]
        for race in races:
            if race != base:
                yield "race", "race", race, base
    if table.job == ALL and len(races) > 1 and {"female", "male"} <= {*sexes}:
        for race in races:
            yield "sex_within_race", "sex+race", f"female × {race}", f"male × {race}"


def _known(table: Table, name: str) -> list[str]:
    """List the sexes or races that are known, the commonest first."""
    return [value for value in table.rows[name].value_counts().index if value]


def _gap(table: Table, contrast: str, by: str, a: str, b: str) -> Gap:
    """Compare two groups of one attribute."""
    table = replace(table, rows=table.rows[table.rows[by].isin([a, b])])
    row = dict.fromkeys(SCHEMAS["decision_gaps"].says)
    row |= {"question": table.question, "job": table.job, "contrast": contrast}
    row |= {"group_a": a, "group_b": b, "n_cases": 0, "n_people": 0, "n_left_out": 0}
    rows, x = table.decisions(by, [a, b]), table.x
    found = within_cases(rows, x, 0, 1) if len(x) else None
    if found is None:
        return Gap({**row, "reason": NO_CASE}, Statistic(reason=NO_CASE))
    row |= {name: getattr(found, name) for name in ("n_cases", "n_people", "n_left_out")}
    test, bounds = _tested(table, rows, found)
    asked = table.asked.groupby(by)["x"]
    unanswered = any(asked.get_group(group).isna().mean() > MOST_EMPTY for group in (a, b))
    few = table.counted and np.bincount(rows.group, found.used).min() < FEW
    if unanswered or few:
        reason = joined([UNANSWERED if unanswered else FEW_DECISIONS, test.reason])
        test = replace(test, statistic=None, p_value=None, reason=reason)
    row["ci_low"], row["ci_high"] = test.ci95 or (None, None)
    row |= {"gap": found.estimate, "p_value": test.p_value, "reason": test.reason}
    if not table.scores and not table.counted and 0 < x.min() and x.max() < 1:
        row["logit_gap"] = float((found.weights * np.log(x / (1 - x))).sum())
    if not table.scores and not table.choice and rows.case is not None:
        row["to_a"], row["to_b"], row["same_group"] = _flips(rows.group, numbered(rows.case), x >= 0.5)
    return Gap(row, test, bounds)


def _tested(
    table: Table, rows: Decisions, found: WithinCases
) -> tuple[Statistic, tuple[float, float] | None]:
    """Test a gap; between its bounds where answers leave it open (methods/tests#inference-under-bounds)."""
    limit = math.inf if table.scores else 1.0
    spread = not_below(found.spread, _noise(table, rows, found))
    test = crossed_test(found.estimate, spread, limit=limit)
    if test.p_value is not None and test.statistic is None and test.ci95 == (found.estimate, found.estimate):
        test = Statistic(found.estimate, reason=NO_SPREAD)
    ends = table.ends()
    if ends is None:
        return test, None
    tests, bounds = [], []
    for of_a, of_b in (ends, ends[::-1]):
        end = within_cases(rows, np.where(rows.group == 0, of_a, of_b), 0, 1)
        assert end is not None  # it has the same cases
        tests.append(crossed_test(end.estimate, end.spread, limit=limit))
        bounds.append(end.estimate)
    return between(found.estimate, *tests), (bounds[0], bounds[1])


def _noise(table: Table, rows: Decisions, found: WithinCases) -> float:
    """Find the variance that counting alone leaves where hardly anybody is selected, or hardly anybody not.

    Formula: Σ p(1 − p)/(n + 2) over the groups, p = (s + 1)/(n + 2) of n answers (Agresti and Caffo 2000); of
        changes of 0 and 1 Σ (p + q − (p − q)²)/(n + 2), p and q of those up and down (Bonett and Price 2012).
    """
    sampled = table.rows["n_answers"].where(table.rows["n_answers"] > 0)
    if not table.counted and (table.scores or sampled.isna().all()):
        return 0.0
    answers = sampled.fillna(1.0).to_numpy() * found.used
    n = np.bincount(rows.group, answers, minlength=2)
    up = np.bincount(rows.group, answers * np.maximum(table.x, 0), minlength=2)
    down = np.bincount(rows.group, answers * np.maximum(-table.x, 0), minlength=2)
    p = (up + 1) / (n + 2)
    # decisions of 0 and 1 themselves are never down
    q = (down + 1) / (n + 2) if table.scores else np.zeros(2)
    few = np.minimum(up + down, n - np.maximum(up, down)).min() < FEW
    return float(((p + q - (p - q) ** 2) / (n + 2)).sum()) if few else 0.0


def _flips(group: IntArray, case: IntArray, selected: BoolArray) -> tuple[float, float, float | None]:
    """Find how often a and b get different decisions in the same case, and two of one group.

    Formula: mean over cases of p_a (1 − p_b), p_b (1 − p_a), and of 2 p (1 − p) n/(n − 1) over both groups.
    """
    shape = (2, int(case.max()) + 1)
    place = group * shape[1] + case
    n, s = (np.bincount(place, each, shape[0] * shape[1]).reshape(shape) for each in (None, selected))
    both, several = (n > 0).all(axis=0), (n > 1).all(axis=0)
    p_a, p_b = (s / np.maximum(n, 1))[:, both]
    p, n = (s / np.maximum(n, 1))[:, several], n[:, several]
    same = float((2 * p * (1 - p) * n / (n - 1)).mean()) if several.any() else None
    return float((p_a * (1 - p_b)).mean()), float((p_b * (1 - p_a)).mean()), same
