"""Why a number that a table shows as – is not there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

MOST_REASONS = 3


def because(rows: Iterable[Mapping[str, Any]], *columns: str) -> str:
    """A sentence for the note of a table: the reasons of the rows that lack one of the columns.

    Each reason once, the most frequent first, with how many rows have it; of many the first three and the
    number of the others. Begins with a space; nothing is missing: an empty text.
    """
    reasons = Counter(
        str(row["reason"]) for row in rows if row["reason"] and any(row[name] is None for name in columns)
    )
    said = [f"{reason} ({n})" if n > 1 else reason for reason, n in reasons.most_common(MOST_REASONS)]
    rest = len(reasons) - len(said)
    more = f"; {rest} other reasons" if rest > 1 else "; another reason" if rest else ""
    return f" – not measured: {'; '.join(said)}{more}." if said else ""
