"""Reasons in tables that code decides by, worded once for writer and reader.

A table tells a reason by its text alone. Reasons that only people read are worded where they arise.
"""

from __future__ import annotations

from collections.abc import Iterable

from biaskit.tables.query import Row

ESTIMATORS_DIFFER = "estimators differ"
_SAME_NUMBER = ("exact", "selected-ids", "echo")
"""Estimators that read the same probabilities, by other calls."""
UNREAD = "no gender is inferred"
"""Texts that no rules of association read have no share; which language they are in follows the colon."""
OTHER_LANGUAGE = "words are read in English only"
"""What is not made of texts in a language whose rules infer genders and nothing else."""

HOLD_OUT = "hold-out"
"""Texts without a gender in the prompt are a held-out half of those with one: a control, no result."""


def do_differ(estimators: Iterable[str]) -> bool:
    """Tell whether the estimators among these may give different numbers of one model."""
    return len({_SAME_NUMBER[0] if name in _SAME_NUMBER else name for name in estimators}) > 1


def parts_of_reason(reason: object) -> list[str]:
    """Split a row's column `reason` into the single reasons that it joins."""
    return str(reason).split("; ")


def is_reason(text: str, reason: str) -> bool:
    """Tell whether a part of a row's reason is the reason named; particulars follow its colon."""
    return text.partition(":")[0] == reason


def is_unread(row: Row) -> bool:
    """Tell whether a row has no number of its own because no rules read its texts."""
    return any(is_reason(part, UNREAD) for part in parts_of_reason(row["reason"]))


def are_held_out(rows: Iterable[Row]) -> bool:
    """Tell whether a row of text_transfer.csv is of held-out texts: a positive control."""
    parts = {part for row in rows for part in parts_of_reason(row["reason"])}
    return any(is_reason(part, HOLD_OUT) for part in parts)
