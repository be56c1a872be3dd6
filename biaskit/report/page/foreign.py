"""Foreign text as a page may hold it: escapes for what is hidden, and an end to what is endless."""

from __future__ import annotations

from typing import Any

from biaskit.foreign import visible

LONGEST_TEXT = 20_000
LONGEST_SENTENCE = 2_000
"""Letters of a finding, a note, a caption: they stand in the open and are not compressed."""
LONGEST_NAME = 300
"""Letters of a label, a word or a reason: beyond it a table cell is no cell."""

_NUMBERS = frozenset((int, float, bool, type(None)))


def shown(text: str) -> str:
    """Control characters, bidirectional overrides and lone surrogates as escapes; line ends as line feeds.

    What comes back is valid UTF-8 once encoded, and cannot reorder what stands beside it.
    """
    return visible(text.replace("\r\n", "\n"), keep="\n\t")


def cut(text: str, longest: int = LONGEST_NAME) -> str:
    """The beginning of a text that is too long, with the number of characters that it had."""
    return text if len(text) <= longest else f"{text[:longest]} … (cut: {len(text):,} characters)"


def name(text: object) -> str:
    """A label, a word, a reason or another short thing, ready for a page."""
    return shown(cut(str(text)))


def all_shown(value: Any) -> Any:
    """`shown` on every string of a JSON value, keys included."""
    if isinstance(value, str):
        return value if value.isprintable() else shown(value)
    if isinstance(value, dict):
        return {shown(str(key)): all_shown(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        if _NUMBERS.issuperset(map(type, value)):  # a column of a table: a million of them, none a text
            return value
        return [all_shown(one) for one in value]
    return value
