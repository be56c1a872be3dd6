"""The paper a figure is drawn on: inches from the top left, a legend above, three formats."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from biaskit.report.figures.lettering import FONT, SIZE, clean, shorten, text_width
from biaskit.report.figures.style import INK, Mark
from biaskit.report.figures.svg import tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle

WIDTH = 7.0
"""Inches: the width of a text block."""
COLUMN = 3.4
"""Inches: one of two columns of a paper, and a phone held upright."""
LINE = 0.155
"""Inches from one line of 8 points to the next."""
MARGIN = 0.06
_BEFORE_ENTRY = 2 * MARGIN + 0.26

_RULES: Any = {
    "font.family": [FONT],
    "font.size": SIZE,
    "text.parse_math": False,
    "text.usetex": False,
    "text.hinting": "none",
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
    "axes.facecolor": "none",
    "axes.linewidth": 0.6,
    "axes.unicode_minus": True,
    "axes.formatter.useoffset": False,
    "hatch.linewidth": 0.5,
    "path.simplify": False,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "biaskit",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a legend: a marker, or a patch of a colour with a hatch, and clean text."""

    text: str
    mark: Mark | None = None
    hollow: bool = False
    line: str | None = None  # a line style, drawn instead of a marker
    patch: tuple[str, str] | None = None  # colour, hatch
    fill: str = ""  # of a marker, where more than full and hollow are told apart (`FILLS`)


@contextmanager
def rules() -> Iterator[None]:
    """How every figure is set, whatever the user's matplotlibrc says; put back afterwards."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RULES)
        yield


class Sheet:
    """A figure of a given body height; axes and texts are placed in inches from the body's top left.

    Whatever is put on it is put on under `rules`: matplotlib reads most of them when a thing is made.
    """

    def __init__(self, height: float, *, legend: Sequence[Entry] = (), width: float = WIDTH) -> None:
        from matplotlib.figure import Figure

        self.width = width
        self.tips: dict[str, list[str]] = {}
        placed, legend_height = _flow(legend, width)
        self.top = legend_height
        self.height = legend_height + height + 0.02
        self.figure = Figure(figsize=(width, self.height), facecolor="none")
        for entry, x, y in placed:
            self._draw_entry(entry, x, y)

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        """Axes with a line on the left and below, and ticks that say where they are."""
        below = 1 - (self.top + top + height) / self.height
        whole = self.width
        axes = self.figure.add_axes((left / whole, below, width / whole, height / self.height))
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(length=2.5, width=0.6, pad=2)
        axes.set_axisbelow(True)
        return axes

    def text(self, x: float, y: float, text: str, **how: Any) -> None:
        """Clean text with its middle at `y` inches, from `x` on; `how` goes to matplotlib."""
        how = {"va": "center_baseline", "fontsize": SIZE, "color": INK, **how}
        self.figure.text(x / self.width, 1 - (self.top + y) / self.height, text, **how)

    def title(self, x: float, y: float, text: object, width: float | None = None) -> None:
        """Foreign text as a bold line above a panel."""
        self.text(x, y, shorten(text, width or self.width, bold=True), fontweight="bold")

    def tip(self, marks: Line2D | Rectangle, said: Sequence[str]) -> None:
        """What a bar, or each mark of a line of markers, says to whoever points at it, in their order.

        A mark whose number is not defined is not drawn, and has no tip.
        """
        if not any(said):
            return
        name = f"tips-{len(self.tips)}"
        marks.set_gid(name)
        places: Any = getattr(marks, "get_xydata", lambda: [(0, 0)])()
        self.tips[name] = [
            clean(text) for text, (x, y) in zip(said, places, strict=True) if x == x and y == y
        ]

    def line(self, x: Sequence[float], y: Sequence[float], **how: Any) -> None:
        """A line or markers in inches."""
        from matplotlib.lines import Line2D

        up = [self.height - self.top - each for each in y]
        self.figure.add_artist(Line2D(x, up, transform=self.figure.dpi_scale_trans, **how))

    def svg(self, name: str, alt: str) -> bytes:
        """One svg element without background."""
        absent = {"Date": None, "Creator": None, "Format": None, "Type": None}
        return tidy(self._saved("svg", transparent=True, metadata=absent), name, alt, self.tips)

    def png(self, dpi: int) -> bytes:
        """On white."""
        with rules():
            return self._saved("png", dpi=dpi, facecolor="white", metadata={"Software": None})

    def pdf(self) -> bytes:
        """On white, without a date."""
        absent = {"CreationDate": None, "Producer": None, "Creator": None}
        with rules():
            return self._saved("pdf", facecolor="white", metadata=absent)

    def _saved(self, kind: str, **how: Any) -> bytes:
        out = io.BytesIO()
        self.figure.savefig(out, format=kind, **how)
        return out.getvalue()

    def _draw_entry(self, entry: Entry, x: float, y: float) -> None:
        y -= self.top  # the legend stands above the body
        if entry.patch is not None:
            from matplotlib.patches import Rectangle

            colour, hatch = entry.patch
            corner = (x, self.height - self.top - y - 0.045)
            look: Any = {"facecolor": colour, "edgecolor": INK, "linewidth": 0.5, "hatch": hatch}
            patch = Rectangle(corner, 0.2, 0.09, transform=self.figure.dpi_scale_trans, **look)
            self.figure.add_artist(patch)
        elif entry.line is not None:
            self.line([x, x + 0.2], [y, y], color=INK, linestyle=entry.line, linewidth=0.8)
        elif entry.mark is not None:
            style = marker_style(entry.mark, hollow=entry.hollow) | fill_style(entry.mark, entry.fill)
            self.line([x + 0.1], [y], **style)
        self.text(x + 0.26, y, shorten(entry.text, self.width - _BEFORE_ENTRY))


def marker_style(mark: Mark, *, hollow: bool = False, size: float = 4.2) -> dict[str, Any]:
    """How a model's marker looks: full, or hollow where the fill means something."""
    return {
        "linestyle": "none",
        "marker": mark.marker,
        "markersize": size,
        "markerfacecolor": "none" if hollow else mark.colour,
        "markeredgecolor": mark.colour,
        "markeredgewidth": 0.9,
    }


FILLS = ("full", "none", "left", "right", "top", "bottom")
"""How the marks of several groups are filled, in their order."""


def fill_style(mark: Mark, fill: str) -> dict[str, Any]:
    """What `marker_style` gets on top for one of `FILLS`; nothing for ""."""
    if fill in ("", "full"):
        return {}
    if fill == "none":
        return {"markerfacecolor": "none"}
    return {"fillstyle": fill, "markerfacecolor": mark.colour, "markerfacecoloralt": "none"}


def _flow(entries: Sequence[Entry], room: float) -> tuple[list[tuple[Entry, float, float]], float]:
    """Entries from left to right in as many lines as they need, and the height of all in inches."""
    if not entries:
        return [], 0.04
    placed = []
    x, y = MARGIN, 0.12
    for entry in entries:
        width = 0.26 + min(text_width(entry.text), room - _BEFORE_ENTRY) + 0.2
        if x > MARGIN and x + width - 0.2 > room - MARGIN:
            x, y = MARGIN, y + LINE + 0.02
        placed.append((entry, x, y))
        x += width
    return placed, y + 0.14
