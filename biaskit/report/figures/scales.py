"""The level axes of figures: shares in percent, differences around 0, counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from biaskit.report.figures.lettering import shorten, text_width
from biaskit.report.figures.sheet import Entry
from biaskit.report.figures.style import GRID, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Scale = Callable[["Axes", float], None]
"""Sets the level axis of axes that are so many inches wide."""

PARITY = Entry("as many women as men", line=":")
_OVER = 0.25
"""Inches by which a name may be longer than its axis."""


def shares(*names: str, parity: bool) -> Scale:
    """From 0 to 100 %, with a dotted line where women's and men's share would be the same.

    `names`: of the axis, the longest first; the first that fits is used.
    """

    def draw(axes: Axes, room: float) -> None:
        _level(axes, names, room)
        axes.set_xlim(0, 1)
        ticks = [0, 0.25, 0.5, 0.75, 1] if room > 1.4 else [0, 0.5, 1]
        axes.set_xticks(ticks, percents(ticks))
        if parity:
            axes.axvline(0.5, color=INK, linewidth=0.8, linestyle=":", zorder=1)

    return draw


def upright_shares(axes: Axes, name: str) -> None:
    """The same for the upright axis of a square."""
    ticks = [0, 0.25, 0.5, 0.75, 1]
    axes.set_ylim(0, 1)
    axes.set_yticks(ticks, percents(ticks))
    axes.grid(axis="y", color=GRID, linewidth=0.5)
    axes.set_ylabel(name, labelpad=1)


def percents(ticks: Sequence[float]) -> list[str]:
    """Shares as ticks name them; the last one says of what they are."""
    return [*(f"{100 * tick:g}" for tick in ticks[:-1]), f"{100 * ticks[-1]:g}\u00a0%"]


def effects(limit: float, *names: str, margin: float | None = None, per: float = 100) -> Scale:
    """Around 0, with the line of no difference and the band of equivalence; `per`: units in a 1."""

    def draw(axes: Axes, room: float) -> None:
        _level(axes, names, room)
        axes.set_xlim(-limit, limit)
        axes.axvline(0, color=INK, linewidth=0.8, zorder=1)
        ticks = nice_ticks(0.95 * limit * per, most=2 if room > 1.9 else 1)
        axes.set_xticks([tick / per for tick in ticks], [signed(tick) for tick in ticks])
        if margin:
            band: Any = {
                "facecolor": "none",
                "edgecolor": GRID,
                "hatch": "/////",
                "linewidth": 0,
                "zorder": 0,
            }
            axes.axvspan(-margin, margin, **band)
            for end in (-margin, margin):
                axes.axvline(end, color=INK, linewidth=0.5, linestyle=(0, (2, 2)), zorder=1)

    return draw


def amounts(
    values: Sequence[float], *names: str, least: float = 0.0, most: float = float("inf"), whole: bool = False
) -> Scale:
    """From 0 to what holds the values and `least`, but not over `most`; numbers under 1 are shares."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    end = min(most, 1.06 * max([least, *(value for value in values if value == value)]))

    def draw(axes: Axes, room: float) -> None:
        _level(axes, names, room)
        axes.set_xlim(0, end)
        axes.xaxis.set_major_locator(MaxNLocator(6 if room > 1.9 else 3 if room > 0.9 else 2, integer=whole))
        if not whole and end <= 1:
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g}\u00a0%"))

    return draw


def nice_ticks(limit: float, *, most: int = 2) -> list[float]:
    """Round ticks, `most` on each side of 0."""
    steps = (base * 10.0**power for power in range(-3, 7) for base in (1, 2, 2.5, 5))
    step = next((step for step in steps if limit / step < most + 1), limit)
    n = int(limit / step + 1e-9)
    return [round(i * step, 6) for i in range(-n, n + 1)]


def signed(value: float) -> str:
    """A tick's label: a sign, no leading zero, a real minus."""
    text = f"{abs(value):g}"
    text = text.removeprefix("0") if text != "0" and abs(value) < 1 else text
    return ("\u2212" if value < 0 else "+" if value > 0 else "") + text


def widest(values: Sequence[float], least: float) -> float:
    """Half the width of an axis around 0 that holds the values."""
    return max([least, *(1.06 * abs(value) for value in values if value == value)])


def _level(axes: Axes, names: Sequence[str], room: float) -> None:
    """The grid, and the name that fits."""
    axes.grid(axis="x", color=GRID, linewidth=0.5)
    fitting = [name for name in names if text_width(name) <= room + _OVER]
    axes.set_xlabel(fitting[0] if fitting else shorten(names[-1], room + _OVER, sentence=True), labelpad=2)
