"""Dot plots: named rows, a marker with its interval for each model, undefined numbers in a column beside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from biaskit.report.figures.lettering import clean, shorten, text_width
from biaskit.report.figures.sheet import MARGIN, Entry, Sheet, marker_style
from biaskit.report.figures.style import GRID, INK, Mark
from biaskit.report.figures.view import number
from biaskit.tables.query import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GUTTER = 0.2
"""Inches at the right of a panel where "–" stands for a number that is not defined."""
NAN = float("nan")
UNDEFINED = Entry("not measured", Mark(INK, "_"))
PARITY = Entry("parity", line=":")
SHARE_TICKS = ([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"])


@dataclass(frozen=True, slots=True)
class DotSeries:
    """One model's numbers for the rows of a panel; NaN is undefined."""

    mark: Mark
    x: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    hollow: bool = False


def row_height(n_series: int) -> float:
    """Inches between rows, so that the markers of a row stand apart."""
    return max(0.165, 0.045 * n_series + 0.075)


def offsets(n: int, pitch: float) -> list[float]:
    """Where each of `n` series stands around the middle of a row, in rows."""
    step = min(0.055 / pitch, 0.8 / max(n, 1))
    return [(i - (n - 1) / 2) * step for i in range(n)]


def series_of(
    mark: Mark,
    rows: Sequence[Row | None],
    columns: Sequence[str] = ("estimate", "ci_low", "ci_high"),
    *,
    hollow: bool = False,
) -> DotSeries:
    """Numbers as dots, with the ends of their intervals where there are columns for them.

    A row that is not there is undefined.
    """
    read = [[number(row[column] if row else None) for row in rows] for column in columns]
    x, low, high = (*read, *[[NAN] * len(rows)] * (3 - len(columns)))
    return DotSeries(mark, x, low, high, hollow)


def rows_axis(axes: Axes, n_rows: int) -> None:
    """Let y be the row's number from the top, without a line or ticks of its own."""
    axes.set_ylim(n_rows - 0.5, -0.5)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)


def dot_panel(axes: Axes, series: Sequence[DotSeries], n_rows: int, pitch: float) -> None:
    """Draw the series into axes whose y is the row's number from the top."""
    rows_axis(axes, n_rows)
    lines = [y for row in range(n_rows) for y in (row, row, NAN)]
    across = axes.get_yaxis_transform()
    axes.plot([0, 1, NAN] * n_rows, lines, transform=across, color=GRID, linewidth=0.5, zorder=0)
    for one, offset in zip(series, offsets(len(series), pitch), strict=True):
        ys = [y + offset for y in range(n_rows)]
        ends = [end for low, high in zip(one.low, one.high, strict=True) for end in (low, high, NAN)]
        at = [each for y in ys for each in (y, y, NAN)]
        axes.plot(ends, at, color=one.mark.colour, linewidth=0.9, solid_capstyle="butt", zorder=2)
        axes.plot(one.x, ys, zorder=3, clip_on=False, **marker_style(one.mark, hollow=one.hollow))
        dashes(axes, [y for y, x in zip(ys, one.x, strict=True) if x != x], one.mark.colour)


def ticks_at(axes: Axes, xs: Sequence[float], ys: Sequence[float], half: float, **how: Any) -> None:
    """Upright ticks, each `half` rows up and down from its place: one path, which keeps a page small."""
    across = [each for x in xs for each in (x, x, NAN)]
    down = [each for y in ys for each in (y - half, y + half, NAN)]
    axes.plot(across, down, solid_capstyle="butt", **how)


def dashes(axes: Axes, ys: Sequence[float], colour: str) -> None:
    """A dash in the gutter for each number that is not defined."""
    if ys:
        x = 1 + 0.6 * GUTTER / _inches(axes)
        across = axes.get_yaxis_transform()
        axes.plot([x] * len(ys), ys, "_", ms=5, mew=1, mec=colour, transform=across, clip_on=False)


def stacked(axes: Axes, y: float, parts: Iterable[tuple[float, str, str]], height: float, **how: Any) -> None:
    """A bar of parts one after the other, each with its length, its colour and its hatch."""
    start = 0.0
    for length, colour, hatch in parts:
        look = {"facecolor": colour, "edgecolor": INK, "linewidth": 0.5, "hatch": hatch, **how}
        axes.barh(y, length, height, left=start, **look)
        start += length


def _inches(axes: Axes) -> float:
    return float(axes.get_position().width * axes.figure.get_figure(root=True).get_figwidth())


def share_axis(axes: Axes, label: str, *, parity: bool, above: bool = False) -> None:
    """An axis from 0 to 1 with grid, and a dotted line where women's and men's share would be the same."""
    axes.set_xlim(0, 1)
    axes.set_xticks(*SHARE_TICKS)
    axes.grid(axis="x", color=GRID, linewidth=0.5)
    axes.set_xlabel(label, labelpad=2)
    if above:
        axes.tick_params(top=True, labeltop=True)
    if parity:
        axes.axvline(0.5, color=INK, linewidth=0.8, linestyle=":", zorder=1)


def percent_axis(axes: Axes, room: float) -> None:
    """Ticks of shares in percent, as many as `room` inches take."""
    ticks = [0, 0.25, 0.5, 0.75, 1] if room > 1.4 else [0, 0.5, 1]
    axes.set_xticks(ticks, [*(f"{100 * tick:.0f}" for tick in ticks[:-1]), "100\u00a0%"])


def effect_axis(axes: Axes, limit: float, label: str, margin: float | None = None) -> None:
    """An axis around 0 with the line of no difference and the band of equivalence."""
    axes.set_xlim(-limit, limit)
    axes.grid(axis="x", color=GRID, linewidth=0.5)
    axes.axvline(0, color=INK, linewidth=0.8, zorder=1)
    axes.set_xlabel(label, labelpad=2)
    ticks = nice_ticks(0.95 * limit, most=2 if _inches(axes) > 1.9 else 1)
    axes.set_xticks(ticks, [signed(tick) for tick in ticks])
    if margin:
        axes.axvspan(-margin, margin, facecolor="none", edgecolor=GRID, hatch="/////", linewidth=0, zorder=0)
        for end in (-margin, margin):
            axes.axvline(end, color=INK, linewidth=0.5, linestyle=(0, (2, 2)), zorder=1)


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
    defined = [abs(value) for value in values if value == value]
    return max([least, *(1.06 * value for value in defined)])


def label_width(labels: Iterable[str], most: float = 1.8) -> float:
    """Inches that row labels may take on the left."""
    return min(most, MARGIN + max((text_width(clean(label)) for label in labels), default=0.3))


def row_labels(
    sheet: Sheet, labels: Iterable[str], top: float, pitch: float, right: float, *, sentence: bool = False
) -> None:
    """Labels that end at `right` inches; … stands for the middle of a long one, of a sentence for its end."""
    for i, label in enumerate(labels):
        shown = shorten(label, right - MARGIN, sentence=sentence)
        sheet.text(right, top + (i + 0.5) * pitch, shown, ha="right")
