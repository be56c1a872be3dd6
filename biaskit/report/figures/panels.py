"""What stands in a figure: panels of named rows with dots and intervals or stacked bars, and squares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from biaskit.report.figures.lettering import clean, text_width
from biaskit.report.figures.scales import Scale
from biaskit.report.figures.sheet import MARGIN, Entry, Sheet, fill_style, marker_style
from biaskit.report.figures.style import GRID, INK, PAPER, Mark
from biaskit.tables.query import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GUTTER = 0.2
"""Inches at the right of a panel where "–" stands for a number that is not defined."""
_TALL = 4.6  # inches
NAN = float("nan")
UNDEFINED = Entry("not measured", Mark(INK, "_"))
ESTIMATE = ("estimate", "ci_low", "ci_high")
BEHIND = Mark("#9a9a9a", "|")
"""Single jobs or occupations behind their mean."""


@dataclass(frozen=True, slots=True)
class Point:
    """A number with its interval (NaN is undefined), and what it says to whoever points at it.

    `mark` and `fill` are its own where it differs from its series.
    """

    x: float
    low: float = NAN
    high: float = NAN
    tip: str = ""
    mark: Mark | None = None
    fill: str = ""


@dataclass(frozen=True, slots=True)
class Dots:
    """A series: for each row a point, or None where there is nothing to be drawn or said.

    `behind`: for each row single numbers, as faint ticks.
    """

    mark: Mark
    points: Sequence[Point | None]
    fill: str = ""  # of `sheet.FILLS`
    behind: Sequence[Sequence[float]] = ()


@dataclass(frozen=True, slots=True)
class Bar:
    """A stacked bar: length, colour, hatch and tip of each part."""

    parts: Sequence[tuple[float, str, str, str]]
    pale: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """Named rows above one axis."""

    labels: Sequence[str]  # as they are; the layout cleans and shortens them
    scale: Scale
    dots: Sequence[Dots] = ()
    bars: Sequence[Bar | None] = ()
    title: str = ""
    below: str = ""  # a second line under the title
    beside: Sequence[str] = ()  # a text at the right of each row
    heading: str = ""  # above what stands beside
    pitch: float = 0.0  # inches between rows; 0: by the number of series
    least: float = 0.95  # inches that its axes take at least
    sentences: bool = False  # long labels lose their end, and not their middle
    apart: bool = True  # series stand one under the other within a row
    draw: Callable[[Sheet, Axes], None] | None = None  # what else stands in it

    @property
    def step(self) -> float:
        """Inches between rows."""
        return self.pitch or row_height(len(self.dots) if self.apart else 1)

    @property
    def tall(self) -> bool:
        """Whether its ticks stand above too."""
        return len(self.labels) * self.step > _TALL

    @property
    def right(self) -> float:
        """Inches at the right of the axes."""
        return max([GUTTER, *(0.14 + text_width(text) for text in (*self.beside, self.heading))])


@dataclass(frozen=True, slots=True)
class Square:
    """Axes as wide as high, for points between two of them; `notes` stand under the title."""

    title: str
    draw: Callable[[Sheet, Axes, float], None]  # gets the side in inches
    notes: Sequence[tuple[Mark, str]] = ()


@dataclass(frozen=True, slots=True)
class Band:
    """Panels that stand together, under a heading of their own."""

    panels: Sequence[Panel] | Sequence[Square]
    heading: str = ""


def number(value: Any) -> float:
    """A table's number as matplotlib takes it: undefined is NaN, and nothing is drawn there."""
    return NAN if value is None else float(value)


def point(
    row: Mapping[str, Any] | None, columns: Sequence[str] = ESTIMATE, tip: str = "", **look: Any
) -> Point:
    """A row's number with the ends of its interval, where it has any; no row is an undefined number."""
    read = [number(row[column] if row else None) for column in columns] + [NAN, NAN]
    return Point(read[0], read[1], read[2], tip, **look)


def undefined(bands: Iterable[Band]) -> list[Entry]:
    """The entry of a legend for numbers that are not defined, where there is one."""
    panels = [panel for band in bands for panel in band.panels if isinstance(panel, Panel)]
    points = [each for panel in panels for one in panel.dots for each in one.points]
    return [UNDEFINED] if any(each is not None and each.x != each.x for each in points) else []


def ends_of(series: Iterable[Dots]) -> list[float]:
    """Every number that an axis must hold."""
    ends: list[float] = []
    for one in series:
        ends += [end for each in one.points if each for end in (each.x, each.low, each.high)]
        ends += [x for of_row in one.behind for x in of_row]
    return ends


def row_height(n_series: int) -> float:
    """Inches between rows, so that the markers of a row stand apart."""
    return max(0.165, 0.045 * n_series + 0.075)


def label_width(labels: Iterable[object], most: float) -> float:
    """Inches that row labels may take on the left."""
    return min(most, MARGIN + max((text_width(clean(label)) for label in labels), default=0.3))


def fill_panel(sheet: Sheet, axes: Axes, panel: Panel, room: float) -> None:
    """Draw a panel into axes whose y is the row's number from the top."""
    n = len(panel.labels)
    axes.set_ylim(n - 0.5, -0.5)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    if panel.dots:
        across = axes.get_yaxis_transform()
        lines = [y for row in range(n) for y in (row, row, NAN)]
        axes.plot([0, 1, NAN] * n, lines, transform=across, color=GRID, linewidth=0.5, zorder=0)
    step = min(0.055 / panel.step, 0.8 / max(len(panel.dots), 1)) if panel.apart else 0.0
    for i, one in enumerate(panel.dots):
        _series(sheet, axes, one, (i - (len(panel.dots) - 1) / 2) * step, panel.step, room)
    for y, bar in enumerate(panel.bars):
        if bar is not None:
            _bar(sheet, axes, bar, y)
    if panel.draw is not None:
        panel.draw(sheet, axes)
    panel.scale(axes, room)
    if panel.tall:
        axes.tick_params(top=True, labeltop=True)


def _series(sheet: Sheet, axes: Axes, one: Dots, offset: float, step: float, room: float) -> None:
    pairs = [(x, y + offset) for y, of_row in enumerate(one.behind) for x in of_row]
    if pairs:
        look: Any = {"color": BEHIND.colour, "linewidth": 0.5, "zorder": 1}
        ticks_at(axes, [x for x, _ in pairs], [y for _, y in pairs], 0.022 / step, **look)
    looks: dict[tuple[Mark, str], list[tuple[Point, float]]] = {}
    for y, each in enumerate(one.points):
        if each is not None:
            looks.setdefault((each.mark or one.mark, each.fill or one.fill), []).append((each, y + offset))
    for (mark, fill), placed in looks.items():
        ends = [end for each, _ in placed for end in (each.low, each.high, NAN)]
        at = [y for _, y in placed for y in (y, y, NAN)]
        axes.plot(ends, at, color=mark.colour, linewidth=0.9, solid_capstyle="butt", zorder=2)
        style = marker_style(mark) | fill_style(mark, fill)
        xs, ys = [each.x for each, _ in placed], [y for _, y in placed]
        (marks,) = axes.plot(xs, ys, clip_on=False, zorder=3, **style)
        if fill == "none":
            marks.set_markerfacecolor(PAPER)  # the line of the interval ends at the mark
        sheet.tip(marks, [each.tip for each, _ in placed])
        gone = [y for each, y in placed if each.x != each.x]
        if gone:
            dash: Any = {"transform": axes.get_yaxis_transform(), "clip_on": False}
            axes.plot([1 + 0.6 * GUTTER / room] * len(gone), gone, "_", ms=5, mew=1, mec=mark.colour, **dash)


def _bar(sheet: Sheet, axes: Axes, bar: Bar, y: float, height: float = 0.62) -> None:
    start = 0.0
    for length, colour, hatch, tip in bar.parts:
        look: Any = {"facecolor": colour, "edgecolor": INK, "linewidth": 0.5, "hatch": hatch}
        (patch,) = axes.barh(y, length, height, left=start, alpha=0.4 if bar.pale else None, zorder=2, **look)
        sheet.tip(patch, [tip])
        start += length


def ticks_at(axes: Axes, xs: Sequence[float], ys: Sequence[float], half: float, **how: Any) -> None:
    """Upright ticks, each `half` rows up and down from its place: one path, which keeps a page small."""
    across = [each for x in xs for each in (x, x, NAN)]
    down = [each for y in ys for each in (y - half, y + half, NAN)]
    axes.plot(across, down, solid_capstyle="butt", **how)


def of_items(
    items: Iterable[str], rows: Sequence[Row], key: str, make: Callable[[Row | None], Point]
) -> list[Point]:
    """A point for each item: of its row, or undefined where it has none."""
    found = {str(row[key]): row for row in rows}
    return [make(found.get(item)) for item in items]
