"""From decisions.csv to decision_gaps.csv: differences between groups within the same cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from biaskit.stats.contrast import Contrast
from biaskit.stats.welch import Statistic

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Gap:
    """A row of decision_gaps.csv and its test.

    `row` has the columns of the table; `test` what tests.csv has besides (statistic, dof, ci90).
    """

    row: Mapping[str, Any]
    test: Statistic

    def contrast(self, margin: float) -> Contrast:
        """Make its row of tests.csv: measurement `decisions`, kind `crossed`, unit `case`."""
        raise NotImplementedError


def gaps_of(
    rows: pd.DataFrame,
    *,
    reference_race: str = "White",
    choice: int = 0,
    scores: bool = False,
    stated: bool = False,
) -> list[Gap]:
    """Compare groups within cases, for one model: rows of decisions.csv, all questions or one.

    Contrasts, in `row["contrast"]`: `sex` (female − male), `other_sex` (each other sex − male), `race` (each
    race − reference), and as details `sex_within_race` (group_a "female × Black", group_b "male × Black"); each
    for job `all`, and `sex` and `race` for every job where there are several.
    `choice`: how many are shown of whom one is chosen, 0 where each is decided on alone. With `choice` 2 and a
    column `pair` (what two are shown together, in both orders) the gap is the mean of 2 P(woman) − 1 per pair
    and case. `scores`: p_yes is a score. `stated`: people are stated, not names: none is a sample.
    Outcome: `p_yes`; `selected` where no row has a p_yes. A row counts as unanswered where both are missing.
    """
    raise NotImplementedError


def decision_gaps(rows: pd.DataFrame, *, margin: float = 0.05, **how: Any) -> pd.DataFrame:
    """Make decision_gaps.csv of one model: `gaps_of` with the verdict that each row has on its own.

    The verdict of a page (tests.csv, Holm and the tree) replaces it where several rows are judged together.
    """
    raise NotImplementedError
