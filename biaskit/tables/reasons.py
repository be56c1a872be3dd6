"""Reasons in tables that something is decided on: their wording stands here, for writer and reader alike.

A table has no other carrier of a reason than its text; what is only read by people is worded where it arises.
"""

from __future__ import annotations

ESTIMATORS_DIFFER = "estimators differ"
"""A difference between models that were measured with two estimators holds theirs too."""
NOT_ENGLISH = "these texts are not in English, and the rules read no other language"
"""Texts that the rules of association cannot read have no share."""

HOLD_OUT = "hold-out"
"""The texts without a gender in the prompt are a held-out half of those with one: a control, no result."""


def parts_of_reason(reason: object) -> list[str]:
    """The single reasons that a row's column `reason` joins."""
    return str(reason).split("; ")


def is_reason(text: str, reason: str) -> bool:
    """Whether a part of a row's reason is the one named; what follows its colon are particulars."""
    return text.partition(":")[0] == reason
