"""Say why numbers that a table shows as – are missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

MOST_REASONS = 3


def because(rows: Iterable[Mapping[str, Any]], *columns: str) -> str:
    """Write the reasons of the rows that lack one of the columns, for the note of a table.

    Each reason once with how many rows have it: the three most frequent, then the number of others. Begins
    with a space; "" where nothing is missing.
    """
    reasons = Counter(
        str(row["reason"]) for row in rows if row["reason"] and any(row[name] is None for name in columns)
    )
    shown = [f"{reason} ({n})" if n > 1 else reason for reason, n in reasons.most_common(MOST_REASONS)]
    n_others = len(reasons) - len(shown)
    others = f"; {n_others} other reasons" if n_others > 1 else "; another reason" if n_others else ""
    return f" – not measured: {'; '.join(shown)}{others}." if shown else ""
