"""From decisions.csv to decision_groups.csv and decision_equal.csv: rates, impact ratios, what luck makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def decision_groups(
    rows: pd.DataFrame,
    *,
    min_category: float = 0.02,
    choice: int = 0,
    scores: bool = False,
    stated: bool = False,
) -> pd.DataFrame:
    """Make decision_groups.csv of one model: rates of each sex, race and sex × race, and ratios to the highest.

    `rows` of decisions.csv, all questions or one; `by` is `sex`, `race` or `sex+race`, `category` "female",
    "Black", "female × Black". `rate_kind`: `expected` (mean p_yes) and `selected` where there are
    probabilities, `selected` alone without, `above-median` for `scores`. `verdict` is that of `expected` where
    there is one, else of `selected`; empty beside it. `excluded`: a category under `min_category` of rows.
    Rows with an unknown sex or race (empty, "unknown") are in no category that needs it.
    """
    raise NotImplementedError


def decision_equal(
    rows: pd.DataFrame,
    groups: pd.DataFrame,
    seed: int,
    *,
    choice: int = 0,
    stated: bool = False,
) -> pd.DataFrame:
    """Make decision_equal.csv of one model: the smallest ratio that equal groups would have.

    `groups` is what `decision_groups` made of the same rows; a row for each question, job, `by` and rate_kind
    with at least two categories that have a ratio.
    """
    raise NotImplementedError
