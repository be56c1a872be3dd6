"""Draw plots with matplotlib: panels side by side in lines of one width, a legend above them."""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biaskit.errors import UsageError
from biaskit.report.figures.plot import NAN, Axis, Bar, Dots, Entry, Panel, Plot, Point, Square
from biaskit.report.figures.style import GREY, GRID, INK, Mark, cut
from biaskit.report.questions import QuestionId

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MatplotlibFigure

WIDTH, NARROW = 7.0, 3.5  # inches; the width of a text block, and of a telephone
_LETTERS = 100  # letters of 8 points in a line of `WIDTH`
_SQUARES, _PANELS, _WIDE_PANELS = 3, 4, 2
"""Most panels in a line: squares, panels that share short names, panels with long names or own rows; in a
narrow one each stands alone."""
_LONG = 24
_TITLE = 0.7  # of a panel's width that a title may take, in letters
_STYLE = Path(__file__).with_name("style.mplstyle")
_INKED = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
_COLOURS: Any = {**dict.fromkeys(_INKED, INK), "grid.color": GRID}


_CLIP_ID = re.compile(rb'(?<=<clipPath id=")p[0-9a-f]{10}(?=")')


@dataclass(frozen=True)
class Figure:
    """A figure of a report; `name` is a slug, unique in the report."""

    name: str
    title: str
    plot: Plot
    question: QuestionId = "say"  # that it answers

    @cached_property
    def svg(self) -> bytes:
        """The SVG document, without a date; shown as an image it runs and reaches nothing."""
        return self._saved("svg", **self._about)

    @cached_property
    def narrow(self) -> bytes:
        """The SVG document for a telephone: panels and legend one under the other."""
        return self._saved("svg", width=NARROW, **self._about)

    @property
    def _about(self) -> dict[str, Any]:
        absent = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        return {"metadata": {**absent, "Title": cut(self.title, 200)}}

    def png(self, dpi: int = 200) -> bytes:
        """Draw the PNG, by default with as many pixels as a slide takes."""
        return self._saved("png", dpi=dpi, metadata={"Software": None})

    def pdf(self) -> bytes:
        """Draw the PDF, with TrueType fonts and without a date."""
        return self._saved("pdf", metadata=dict.fromkeys(("CreationDate", "Producer", "Creator")))

    def _saved(self, kind: str, width: float = WIDTH, **how: Any) -> bytes:
        out = io.BytesIO()
        with rules():
            draw(self.plot, width).savefig(out, format=kind, facecolor="white", **how)
        content = out.getvalue()
        if kind == "svg":  # an id is a digest of a place, and the layout's last bits differ from time to time
            for n, name in enumerate(dict.fromkeys(_CLIP_ID.findall(content))):
                content = content.replace(name, b"clip-%d" % n)
        return content


@contextmanager
def rules() -> Iterator[None]:
    """Set the same style for every figure, whatever the user's matplotlibrc says, and restore it after."""
    try:
        import matplotlib
    except (ValueError, OSError) as error:
        raise UsageError(f"matplotlib does not start; see MPLBACKEND and matplotlibrc: {error}") from error
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # a box stands for it
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(matplotlib.rc_params_from_file(_STYLE, use_default_template=False))
        matplotlib.rcParams.update(_COLOURS)
        yield


def draw(plot: Plot, width: float = WIDTH) -> MatplotlibFigure:
    """Draw a plot of so many inches; call it under `rules`, which matplotlib reads when artists are made."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    letters = int(_LETTERS * width / WIDTH)
    lines: list[tuple[str, Sequence[Panel | Square], int]] = []
    for band in plot.bands:
        n = _per_line(band.panels, width)
        for start in range(0, len(band.panels), n):
            lines.append(("" if start else band.heading, band.panels[start : start + n], n))
    texts = [textwrap.fill(cut(entry.text, 3 * _LETTERS), letters - 8) for entry in plot.legend]
    n_columns = max(1, letters // (max(map(len, texts), default=letters) + 8))
    n_lines = sum(text.count("\n") + 1 for text in texts) if n_columns == 1 else -(-len(texts) // n_columns)
    legend_height = 0.2 * n_lines
    heights = [_height(*line, width) for line in lines]
    layout = ConstrainedLayoutEngine()
    figure = Figure((width, sum(heights) + legend_height + 0.1), layout=layout)
    if plot.legend:
        handles = list(map(_handle, plot.legend))
        figure.legend(handles, texts, loc="outside upper left", ncols=n_columns, handlelength=1.6)
    parts = figure.subfigures(len(lines), 1, height_ratios=heights, squeeze=False)[:, 0]
    for part, (heading, panels, n) in zip(parts, lines, strict=True):
        if heading:
            part.suptitle(cut(heading, letters), x=0.01, ha="left", weight="bold")
        grid = part.subplots(1, n, squeeze=False)[0]
        for i, axes in enumerate(grid):
            if i >= len(panels):
                axes.set_axis_off()
            elif isinstance(panel := panels[i], Square):
                _draw_square(axes, panel, letters // n)
            else:
                before = panels[i - 1] if i else None
                shared = isinstance(before, Panel) and [*before.labels] == [*panel.labels]
                _draw_panel(axes, panel, named=not shared, letters=letters, n=n)
    if any(isinstance(panel, Square) for _, panels, _ in lines for panel in panels):
        # With the passes of drawing alone a square below a long legend lost the name of its axis.
        for _ in range(2):
            layout.execute(figure)
    return figure


def _per_line(panels: Sequence[Panel] | Sequence[Square], width: float) -> int:
    """Count the panels side by side: as many as fit, spread evenly over lines."""
    if width < WIDTH:
        return 1

    def spread(most: int) -> int:
        return -(-len(panels) // -(-len(panels) // most))

    if isinstance(panels[0], Square):
        return spread(_SQUARES)
    rows = {tuple(getattr(panel, "labels", ())) for panel in panels}
    is_wide = len(rows) > 1 or any(len(label) > _LONG for labels in rows for label in labels)
    n = spread(_WIDE_PANELS if is_wide else _PANELS)
    titles_fit = all(len(panel.title) <= 2 * _TITLE * _LETTERS / n for panel in panels)
    return n if titles_fit else spread(_WIDE_PANELS)


def _height(heading: str, panels: Sequence[Panel | Square], n: int, width: float) -> float:
    inside = 0.0
    for panel in panels:
        if isinstance(panel, Square):
            inside = max(inside, min(width / n - 0.8, 2.4) + 0.17 * len(panel.notes))
        else:
            pitch = panel.pitch or max(0.17, 0.05 * len(panel.dots) * panel.apart + 0.08)
            inside = max(inside, len(panel.labels) * pitch)
    letters = int(_LETTERS * width / WIDTH / n)
    more = 0
    for panel in panels:
        axis = panel.x if isinstance(panel, Square) else panel.axis
        more = max(more, _lines(panel.title, letters).count("\n") + _lines(axis.name, letters).count("\n"))
    return inside + 0.65 + 0.2 * bool(heading) + 0.14 * more


def _lines(text: str, letters: int) -> str:
    """Break a title or the name of an axis into lines that fit a panel; so many letters with its names."""
    return textwrap.fill(cut(text, 2 * letters), max(int(_TITLE * letters), 1))


def _draw_panel(axes: Axes, panel: Panel, *, named: bool, letters: int, n: int) -> None:
    axes.set_title(_lines(panel.title, letters // n))
    axes.set_ylim(len(panel.labels) - 0.5, -0.5)
    labels = [cut(label, max(letters // (n + 1), _LONG)) for label in panel.labels]
    axes.set_yticks(range(len(labels)), labels)
    axes.tick_params(axis="y", length=0, labelleft=named)
    axes.grid(axis="y", visible=bool(panel.dots))
    for i, dots in enumerate(panel.dots):
        offset = (i - (len(panel.dots) - 1) / 2) * 0.7 / len(panel.dots) if panel.apart else 0.0
        _draw_dots(axes, dots, offset)
    for y in range(len(panel.labels)) if panel.joined else ():
        points = [dots.points[y] for dots in panel.dots]
        xs = [point.x for point in points if point is not None]
        axes.plot(xs, [y] * len(xs), color=GREY, lw=3, alpha=0.5, solid_capstyle="butt", zorder=1)
    for y, bar in enumerate(panel.bars):
        if bar is not None:
            _draw_bar(axes, bar, y)
    right = axes.get_yaxis_transform()
    for y, text in enumerate(panel.beside):
        axes.text(1.03, y, text, transform=right, va="center")
    if panel.heading:
        axes.text(1.03, 1.01, panel.heading, transform=axes.transAxes, va="bottom")
    _set_axis(axes, "x", panel.axis)
    axes.set_xlabel(_lines(panel.axis.name, letters // n))


def _draw_dots(axes: Axes, dots: Dots, offset: float) -> None:
    for y, numbers in enumerate(dots.behind):
        axes.plot(numbers, [y + offset] * len(numbers), "|", color=GREY, ms=4, mew=0.5, zorder=1)
    looks: dict[tuple[Mark, str], list[tuple[float, Point]]] = {}
    for y, point in enumerate(dots.points):
        if point is not None:
            look = point.mark or dots.mark, point.fill or dots.fill
            looks.setdefault(look, []).append((y + offset, point))
    for (mark, fill), placed in looks.items():
        ys, points = zip(*placed, strict=True)
        xs, lows, highs = (list(map(attrgetter(name), points)) for name in ("x", "low", "high"))
        axes.hlines(ys, lows, highs, color=mark.colour, lw=0.9)
        axes.plot(xs, ys, clip_on=False, zorder=3, **marker_style(mark, fill))
        for place, point in placed:
            if point.x != point.x:
                right = axes.get_yaxis_transform()
                axes.text(1.03, place, "–", transform=right, color=mark.colour, va="center")


def _draw_bar(axes: Axes, bar: Bar, y: float) -> None:
    start = 0.0
    for length, colour, hatch in bar.parts:
        look: Any = {"facecolor": colour, "edgecolor": INK, "linewidth": 0.5, "hatch": hatch}
        axes.barh(y, length, 0.6, left=start, alpha=0.4 if bar.pale else None, zorder=2, **look)
        start += length
    if bar.interval is not None:
        axes.hlines(y, *bar.interval, color="black", lw=1.6, zorder=4)
    if bar.bounds is not None:
        axes.plot(bar.bounds, [y - 0.2] * 2, color="black", lw=0.7, marker="|", ms=4, zorder=4)
    axes.plot(bar.behind, [y + 0.4] * len(bar.behind), "|", color=INK, ms=4, mew=0.6, zorder=4)


def _draw_square(axes: Axes, square: Square, letters: int) -> None:
    axes.set_title(_lines(square.title, letters))
    axes.spines["left"].set_visible(True)
    axes.set_box_aspect(1)
    _set_axis(axes, "x", square.x)
    _set_axis(axes, "y", square.y)
    axes.set_xlabel("\n".join([square.x.name, *(cut(note, 36) for note in square.notes)]))
    for span in (axes.axvspan, axes.axhspan) if square.zone else ():
        span(-square.zone, square.zone, color=GRID, lw=0, zorder=0)
    for (x, y), (x_end, y_end), style in square.lines:
        axes.plot([x, x_end], [y, y_end], color=INK, lw=0.8, ls=style, zorder=1)
    for mark, spots in square.spots.items():
        xs, ys, lows, highs = (list(map(attrgetter(name), spots)) for name in ("x", "y", "low", "high"))
        if square.joined:
            axes.fill_between(xs, lows, highs, color=mark.colour, alpha=0.2, lw=0)
            axes.plot(xs, ys, color=mark.colour, lw=0.9)
        else:
            axes.vlines(xs, lows, highs, color=mark.colour, lw=0.6)
        axes.plot(xs, ys, clip_on=False, zorder=3, **marker_style(mark, size=3.4))
    edge = 0.08 * (square.y.high - square.y.low)
    taken: list[tuple[float, float, float]] = []  # of each name: its ends along x and its middle along y
    for spot in square.named:
        low, high = (spot.low, spot.high) if spot.low == spot.low else (spot.y, spot.y)
        # Off its interval, on the side that faces away from the diagonal and its line, inside the frame.
        over = low < square.y.low + edge or (spot.y > spot.x and high < square.y.high - edge)
        shift, up = (3, "bottom") if over else (-3, "top")
        name, place = cut(spot.name, 20), (spot.x - square.x.low) / (square.x.high - square.x.low)
        half = len(name) / (2 * _TITLE * letters)
        side = "left" if place < 0.5 else "right"
        if half <= place <= 1 - half:
            side = "center"
        start, base = place - half * {"left": 0, "center": 1, "right": 2}[side], high if over else low
        middle = base + edge / 2 * (1 if over else -1)
        if any(start < e and s < start + 2 * half and abs(middle - y) < edge for s, e, y in taken):
            continue
        taken.append((start, start + 2 * half, middle))
        axes.annotate(
            name, (spot.x, base), (0, shift), textcoords="offset points",
            ha=side, va=up, bbox={"facecolor": "white", "linewidth": 0, "pad": 0.5}, zorder=1.5,
        )  # fmt: skip


def _set_axis(axes: Axes, which: str, axis: Axis) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    along = axes.xaxis if which == "x" else axes.yaxis
    along.set_label_text(axis.name)
    (axes.set_xlim if which == "x" else axes.set_ylim)(axis.low, axis.high)
    if axis.ticks is not None:
        along.set_ticks(axis.ticks)
    else:
        along.set_major_locator(MaxNLocator(4, integer=axis.whole))
    along.set_major_formatter(FuncFormatter(lambda value, _: axis.shown(value, 6)))
    across = axes.axvline if which == "x" else axes.axhline
    if axis.line is not None:
        across(axis.line, color=INK, lw=0.8, ls=":", zorder=1)
    if axis.margin is not None:
        band: Any = {"facecolor": "none", "edgecolor": GRID, "hatch": "/////", "linewidth": 0, "zorder": 0}
        axes.axvspan(-axis.margin, axis.margin, **band)


def marker_style(mark: Mark, fill: str = "", size: float = 4.2) -> dict[str, Any]:
    """Style a mark for matplotlib: full, hollow, or filled on one side."""
    style: dict[str, Any] = {"ls": "none", "marker": mark.marker, "ms": size, "mew": 0.9}
    style |= {"mec": mark.colour, "mfc": "white" if fill == "none" else mark.colour}
    return style if fill in ("", "full", "none") else {**style, "fillstyle": fill, "mfcalt": "white"}


def _handle(entry: Entry) -> Artist:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if entry.patch is not None:
        return Patch(facecolor=entry.patch[0], edgecolor=INK, hatch=entry.patch[1], linewidth=0.5)
    if entry.mark is not None:
        return Line2D([NAN], [NAN], **marker_style(entry.mark, entry.fill))
    return Line2D([NAN], [NAN], color=INK, lw=0.8, ls=entry.line or "none")
