"""Foreign text: what may be shown of it, wherever it is shown (reference/reasons#foreign-text).

Labels, words, texts, reasons and server messages are written by others. Terminal, tables of text, figures
and the page show them through `visible`; files that a spreadsheet may open ask `is_formula`.
"""

from __future__ import annotations

import re
import unicodedata

HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
"""Categories without a shape of their own: control characters, bidirectional overrides, lone surrogates, …"""
JOINERS = "\u200c\u200d"  # hidden too, but they belong to scripts and shape their letters
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""

_MARKUP = frozenset("\\`*_{}[]<>#+|~&$@")
"""What Markdown may read as its own; a batch bracket does nothing after an escaped square one."""


def visible(text: str, *, keep: str = "", joiners: bool = True, longest: int | None = None) -> str:
    r"""Show every hidden character of a text as an escape, such as \u202e, so that none moves or reorders.

    The defaults are for one line of a terminal or a table.

    Args:
        keep: hidden characters that the medium can take, such as line feeds.
        joiners: False shows joiners as escapes too, where every character must have a width.
        longest: characters that are looked at: of a longer text beginning and end, with … between.
    """
    if longest is not None and len(text) > longest:
        text = f"{text[: longest // 2]}…{text[-longest // 2 :]}"
    if text.isprintable():
        return text
    kept = keep + (JOINERS if joiners else "")
    # Each letter is looked up once, however long the text.
    hidden = {ord(c): ascii(c)[1:-1] for c in set(text) - {*kept} if unicodedata.category(c) in HIDDEN}
    return text.translate(hidden) if hidden else text


def markdown(text: str) -> str:
    """Escape foreign text inside Markdown: no markup of its own, no new cell of a table, no new line."""
    return "".join(f"\\{letter}" if letter in _MARKUP else letter for letter in visible(text))


def fenced(text: str) -> str:
    """Put foreign lines into a block of code in Markdown, behind a fence that none of them can close."""
    shown = visible(text, keep="\n")
    longest = max(map(len, re.findall("`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{shown}\n{fence}"


def is_formula(text: str) -> bool:
    """Tell whether a spreadsheet may run a cell that holds this text."""
    return text.startswith(FORMULA_STARTS)
