"""What a row of tests.csv comes to: one rule for every sentence, table, figure and gate.

See docs/methods.md#verdicts.
"""

from __future__ import annotations

from typing import Literal

from biaskit.tables.query import Row
from biaskit.wording import ROUNDING

Direction = Literal["higher", "lower"]
Verdict = Literal["higher", "lower", "equivalent", "no-clear-difference", "not-measured"]


def verdict_of(row: Row | None) -> Verdict:
    """Judge a contrast by its own intervals; no row, no estimate or no interval is not measured.

    A row that is equivalent is so even where its 95 % interval excludes 0; `direction_of` tells it apart.
    """
    if row is None or row["estimate"] is None or row["ci_low"] is None or row["ci_high"] is None:
        return "not-measured"
    return "equivalent" if row["equivalent"] else direction_of(row) or "no-clear-difference"


def direction_of(row: Row) -> Direction | None:
    """The side of 0 that the whole 95 % interval lies on; what rounding leaves of 0 has no direction."""
    if row["ci_low"] is None or row["ci_high"] is None:
        return None
    return "higher" if row["ci_low"] > ROUNDING else "lower" if row["ci_high"] < -ROUNDING else None
