"""From decisions.csv to decision_order.csv: how often the one shown first is chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def decision_order(rows: pd.DataFrame, *, choice: int) -> pd.DataFrame:
    """Make decision_order.csv of one model, where one of `choice` shown is chosen; else no row.

    `rows` of decisions.csv with `position` from 1; a row for each question, job (`all`, each if several) and
    position: `rate` is the share chosen there (by chance 1/choice), `chosen` its count or expected count. With
    `choice` 2 and a column `pair`, in both orders: shares of pairs and cases that are `robust`, `fragile` and
    `near_even`, in the row of position 1.
    """
    raise NotImplementedError
