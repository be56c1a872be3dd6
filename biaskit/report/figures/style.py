"""Colours and markers of genders and models, the same in every figure.

Women are orange, men teal, non-binary people and the neutral words grey-purple: three hues that deuteranopes,
protanopes and tritanopes tell apart by lightness too, and not the pink and blue of the cliché. Models take
other hues, so that no colour means a gender in one figure and a model in the next. A colour never says
anything alone: genders also have a hatch or a marker, models a marker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from biaskit.common.foreign import visible
from biaskit.common.wording import PEOPLE
from biaskit.report.findings.sentence import OPENINGS

INK, GREY, GRID = "#222222", "#9a9a9a", "#dddddd"

FEMALE = "#e69f00"
MALE = "#009e73"
OTHER = "#8f84b0"
_MORE_GROUPS = ("#8f84b0", "#b7b0c9", "#6d6d6d", "#a8a8a8")
HATCHES = ("", "////", "||||", "xxxx", "----", "++++")
_LOOKS = {"female": (FEMALE, ""), "male": (MALE, "////")} | dict.fromkeys(
    ("diverse", "nonbinary"), (OTHER, "||||")
)

MODEL_COLOURS = ("#0072b2", "#d55e00", "#56a4d8", "#a0522d", "#cc79a7", "#7a7a7a", "#8f8f1f")
MODEL_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")  # 70 pairs before one repeats
FILLS = ("full", "none", "left", "right", "top", "bottom")  # fills of marks, by the order of groups


@dataclass(frozen=True, slots=True)
class Mark:
    """Colour and marker of a model."""

    colour: str
    marker: str


def look_of(group: str, groups: Sequence[str]) -> tuple[str, str]:
    """Choose colour and hatch of a gender group, also of one from a user's target word file."""
    if group in _LOOKS:
        return _LOOKS[group]
    i = [name for name in groups if name not in _LOOKS].index(group)
    return _MORE_GROUPS[i % len(_MORE_GROUPS)], HATCHES[3 + i % 3]


def cut(text: object, n: int = 48) -> str:
    """Cut foreign text to one line of `n` characters, in the middle: names differ at their ends."""
    shown = visible(" ".join(str(text).split()), longest=400)
    return shown if len(shown) <= n else f"{shown[: (n - 1) // 2]}…{shown[-(n - 1 - (n - 1) // 2) :]}"


def asked(bias_type: object) -> str:
    """Name a bias type as readers know it: how the model was asked."""
    return str(OPENINGS.get(str(bias_type), cut(bias_type)))


def people(group: str) -> str:
    """Name a gender group as readers know it; a study's own group keeps its name."""
    return cut(PEOPLE.get(group, group))
