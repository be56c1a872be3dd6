"""Which target word a text begins with, for `sampling` (methods/estimators#sampling-estimator)."""

from __future__ import annotations

from collections.abc import Iterable

SKIPPED = "*_\"'("
"""Characters that may precede the word, beside white space: emphasis, a quotation mark, a bracket."""


def match(text: str, target_words: Iterable[str], *, ended: bool = True) -> str | None:
    """Return the longest of `target_words` that `text` begins with as a whole word, or None.

    Leading white space and `SKIPPED` are passed over; case counts. `ended=False` says that the text was
    cut at its limit: a beginning that could still grow into a target word, or a longer one, is no match.
    """
    text = text[_start_of_word(text) :]
    target_words = list(target_words)
    if not ended and any(target_word.startswith(text) for target_word in target_words):
        return None
    matches = [e for e in target_words if text.startswith(e) and starts_new_word(text[len(e) :])]
    return max(matches, key=len, default=None)


def can_match(target_word: str) -> bool:
    """Return whether a text can begin with this target word after the characters that are passed over."""
    return bool(target_word) and _start_of_word(target_word) == 0


def starts_new_word(text: str) -> bool:
    """Return whether a word before `text` is complete; half of a byte pair (U+FFFD) is part of it."""
    return not text or not (text[0].isalnum() or text[0] == "\ufffd")


def _start_of_word(text: str) -> int:
    return next((i for i, c in enumerate(text) if not (c.isspace() or c in SKIPPED)), len(text))
