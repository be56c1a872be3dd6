"""Which expression a text begins with, for `sampling` (docs/methods.md#sampling-estimator)."""

from __future__ import annotations

from collections.abc import Iterable

SKIPPED = "*_\"'("
"""What may stand before the word beside white space: emphasis, a quotation mark, a bracket."""


def match(text: str, expressions: Iterable[str], *, ended: bool = True) -> str | None:
    """The longest of `expressions` that `text` begins with as a whole word; None: none of them.

    Leading white space and `SKIPPED` are passed over; case counts. `ended=False` says that the text was
    cut by its length: what might still become an expression, or a longer one, is no match.
    """
    rest = text[_beginning(text) :]
    known = list(expressions)
    if not ended and any(expression.startswith(rest) for expression in known):
        return None
    said = [e for e in known if rest.startswith(e) and starts_new_word(rest[len(e) :])]
    return max(said, key=len, default=None)


def can_match(expression: str) -> bool:
    """Whether a text can begin with this expression after what is passed over."""
    return bool(expression) and _beginning(expression) == 0


def starts_new_word(text: str) -> bool:
    """Whether text that follows a word leaves it complete: nothing, a space, punctuation, a symbol.

    An unfinished character (U+FFFD, half of a byte pair) counts as part of the word.
    """
    return not text or not (text[0].isalnum() or text[0] == "\ufffd")


def _beginning(text: str) -> int:
    return next((i for i, c in enumerate(text) if not (c.isspace() or c in SKIPPED)), len(text))
