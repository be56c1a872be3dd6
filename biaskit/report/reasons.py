"""Say why numbers that a table shows as – are missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from biaskit.tables.query import Row, undefined

MOST_REASONS = 3


def because(rows: Iterable[Row], *columns: str) -> str:
    """Write the reasons of the rows that lack one of the columns, for the note of a table.

    Each reason once with how many rows have it: the three most frequent, then the number of others. Begins
    with a space; "" where nothing is missing.
    """
    reasons = Counter(str(row["reason"]) for row in undefined(rows, *columns) if row["reason"])
    shown = [f"{reason} ({n})" if n > 1 else reason for reason, n in reasons.most_common(MOST_REASONS)]
    n_others = len(reasons) - len(shown)
    others = ""
    if n_others:
        others = f"; {n_others} other reasons" if n_others > 1 else "; another reason"
    return f" – not measured: {'; '.join(shown)}{others}." if shown else ""
