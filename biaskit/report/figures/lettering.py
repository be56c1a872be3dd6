"""Foreign text (docs/reading.md#foreign-text) in a figure: what is shown, how wide it is, how it is cut."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from biaskit.foreign import visible
from biaskit.wording import PEOPLE

if TYPE_CHECKING:
    from matplotlib.ft2font import FT2Font

FONT = "DejaVu Sans"
SIZE = 8.0
"""Points, also of the smallest text: figures are drawn at the width of a text block."""
BOX = "\u25a1"
BOX_NOTE = f"A box ({BOX}) stands for a character that the figures' font lacks."
_LONGEST = 400
"""Characters of a text that are looked at: its beginning and its end, since its middle is cut anyway."""


def clean(text: object) -> str:
    """Foreign text as a figure may show it, on one line.

    Control characters, bidirectional overrides and lone surrogates are shown as escapes, a character that
    the font lacks as a box; marks piled on one letter are cut to two.
    """
    shown = visible(str(text), longest=_LONGEST, marks=2)
    if shown.isascii() or _characters().issuperset(map(ord, shown)):
        return shown
    return "".join(c if ord(c) in _characters() else BOX for c in shown)


ASKED = {"explicit": "asked outright", "implicit": "finishing a sentence"}


def asked(bias_type: object) -> str:
    """A bias type as readers know it: how the model was asked."""
    return ASKED.get(str(bias_type), clean(bias_type))


def people(group: str) -> str:
    """A gender group as readers know it; a study's own group as it is, clean."""
    return clean(PEOPLE.get(group, group))


def cut(text: object, n: int = 48) -> str:
    """Clean text of at most `n` characters, for a sentence; the middle goes."""
    shown = clean(text)
    return shown if len(shown) <= n else f"{shown[: (n - 1) // 2]}…{shown[-(n - 1 - (n - 1) // 2) :]}"


def shorten(
    text: object, width: float, *, size: float = SIZE, bold: bool = False, sentence: bool = False
) -> str:
    """Clean text at most `width` inches wide; … stands for the middle, of a sentence for the end."""
    shown = clean(text)
    width += 1e-6  # a label exactly as wide as its column fits
    if text_width(shown, size=size, bold=bold) <= width:
        return shown
    most = (
        int(width / text_width(shown, size=size, bold=bold) * len(shown) * 2) + 2
    )  # letters differ in width
    for n in range(min(len(shown) - 1, most), 0, -1):
        end = "" if sentence else shown[len(shown) - n // 2 :]
        shorter = f"{shown[: n - len(end)].rstrip()}…{end}"
        if text_width(shorter, size=size, bold=bold) <= width:
            return shorter
    return "…"


@cache
def text_width(text: str, *, size: float = SIZE, bold: bool = False) -> float:
    """Inches that clean text takes in a line."""
    return sum(_advance(c, bold) for c in text) * size / 72


@cache
def _font(bold: bool) -> FT2Font:
    import matplotlib
    from matplotlib.ft2font import FT2Font

    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    font = FT2Font(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name))
    font.set_size(100, 72)
    return font


@cache
def _characters() -> frozenset[int]:
    return frozenset(_font(False).get_charmap())


@cache
def _advance(c: str, bold: bool) -> float:
    """Of an em."""
    from matplotlib.ft2font import LoadFlags

    glyph = _font(bold).load_char(ord(c), flags=LoadFlags.NO_HINTING)
    return float(glyph.linearHoriAdvance) / 65536 / 100
