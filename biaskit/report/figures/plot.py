"""Describe a figure before it is drawn: panels of named rows with dots or bars, squares, a legend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from biaskit.report.figures.style import GREY, INK, Mark, cut

NAN = float("nan")
ESTIMATE = ("estimate", "ci_low", "ci_high")
BEHIND = Mark(GREY, "|")  # single jobs or occupations behind their mean
ALT_ROWS, ALT_PANELS = 6, 8  # rows of a panel, and panels, in an alternative text


@dataclass(frozen=True, slots=True)
class Axis:
    """The axis of numbers: its name, its ends, and the lines across it."""

    name: str
    low: float
    high: float
    unit: Literal["%", "points", ""] = ""
    line: float | None = None  # dotted
    margin: float | None = None  # of equivalence, around 0
    ticks: Sequence[float] | None = None
    whole: bool = False  # ticks are whole numbers

    def shown(self, value: float, digits: int = 3) -> str:
        """Write a number of the axis: in percent where it has a unit, with a sign where it has two sides."""
        if value != value:
            return "not measured"
        text = f"{value * (100 if self.unit else 1):.{digits}g}"
        text = f"{float(text):g}" if float(text) else "0"
        sign = "+" if self.low < 0 and float(text) > 0 else ""
        return sign + text.replace("-", "−") + ("%" if self.unit == "%" else "")


@dataclass(frozen=True, slots=True)
class Point:
    """A number with its interval; NaN is undefined. `mark` and `fill` replace those of its series."""

    x: float
    low: float = NAN
    high: float = NAN
    mark: Mark | None = None
    fill: str = ""


@dataclass(frozen=True, slots=True)
class Dots:
    """A series: a point for each row, None for an empty place; `behind`: numbers drawn as faint ticks."""

    mark: Mark
    points: Sequence[Point | None]
    fill: str = ""  # of `style.FILLS`
    behind: Sequence[Sequence[float]] = ()


@dataclass(frozen=True, slots=True)
class Bar:
    """A stacked bar: length, colour and hatch of each part; `interval` and `bounds` of the first."""

    parts: Sequence[tuple[float, str, str]]
    pale: bool = False
    interval: tuple[float, float] | None = None
    bounds: tuple[float, float] | None = None
    behind: Sequence[float] = ()  # single jobs, as ticks below


@dataclass(frozen=True, slots=True)
class Panel:
    """Named rows above one axis."""

    labels: Sequence[str]
    axis: Axis
    dots: Sequence[Dots] = ()
    bars: Sequence[Bar | None] = ()
    title: str = ""
    beside: Sequence[str] = ()  # a text at the right of each row
    heading: str = ""  # above what stands beside
    pitch: float = 0.0  # inches between rows; 0: by the number of series
    apart: bool = True  # series stand one under the other within a row
    joined: bool = False  # a grey line between the points of a row

    def in_words(self, names: Mapping[object, str]) -> Iterator[str]:
        """Describe each row: 'nurse: asked outright 56%, finishing a sentence 84%'."""
        for i, label in enumerate(self.labels):
            numbers = []
            for dots in self.dots:
                point = dots.points[i]
                if point is not None:
                    look = (point.mark or dots.mark, point.fill or dots.fill)
                    numbers.append((names.get(look, ""), point.x))
            bar = self.bars[i] if self.bars else None
            if bar is not None:
                numbers += [(names.get((colour, hatch), ""), x) for x, colour, hatch in bar.parts]
            text = ", ".join(f"{name} {self.axis.shown(x)}".strip() for name, x in numbers)
            yield f"{cut(label)}: {text or 'not measured'}"


@dataclass(frozen=True, slots=True)
class Spot:
    """An item between two axes, with the interval of its y."""

    name: str
    x: float
    y: float
    low: float = NAN
    high: float = NAN


@dataclass(frozen=True, slots=True)
class Square:
    """Axes as wide as high: spots by mark, lines, names of some spots."""

    title: str
    x: Axis
    y: Axis
    spots: Mapping[Mark, Sequence[Spot]]
    lines: Sequence[tuple[tuple[float, float], tuple[float, float], str]] = ()
    named: Sequence[Spot] = ()
    notes: Sequence[str] = ()  # below the level axis
    joined: bool = False  # spots by a line, their intervals by a band
    zone: float = 0.0  # grey around 0 of both axes

    def in_words(self, _: Mapping[object, str]) -> Iterator[str]:
        """Count the spots, name the axes, repeat the notes."""
        n = sum(map(len, self.spots.values()))
        yield f"{n} points, {self.y.name} against {self.x.name}"
        yield from self.notes


@dataclass(frozen=True, slots=True)
class Band:
    """Panels under one heading."""

    panels: Sequence[Panel] | Sequence[Square]
    heading: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the legend: a marker, a line, or a patch of a colour with a hatch."""

    text: str
    mark: Mark | None = None
    fill: str = ""
    line: str | None = None
    patch: tuple[str, str] | None = None


PARITY = Entry("as many women as men", line=":")


@dataclass(frozen=True, slots=True)
class Plot:
    """Everything that is drawn, and the caption below."""

    bands: Sequence[Band]
    caption: str  # n, interval, unit and tables
    legend: Sequence[Entry] = ()

    @property
    def alt(self) -> str:
        """Text for a screen reader: the first rows of every panel, and how many more there are."""
        names: dict[object, str] = {(e.mark, e.fill): e.text for e in self.legend if e.mark}
        names |= {entry.patch: entry.text for entry in self.legend if entry.patch}
        texts, n_more = [], 0
        for band in self.bands:
            for panel in band.panels:
                title = ", ".join(filter(None, (band.heading, panel.title)))
                rows = [*panel.in_words(names)]
                lead = f"{title}: " if title else ""
                texts.append(cut(lead + "; ".join(rows[:ALT_ROWS]), 500) + ".")
                n_more += max(len(rows) - ALT_ROWS, 0)
        more = f" {n_more} more rows are in the table." if n_more else ""
        return " ".join(texts[:ALT_PANELS]) + more


def number(value: Any) -> float:
    """Make NaN of an undefined number, which matplotlib does not draw."""
    return NAN if value is None else float(value)


def point(row: Mapping[str, Any] | None, columns: Sequence[str] = ESTIMATE, **look: Any) -> Point:
    """Make a point of a row's number and, if named, the ends of its interval; undefined without a row."""
    x, low, high = ([number(row[column] if row else None) for column in columns] + [NAN, NAN])[:3]
    return Point(x, low, high, **look)


def ends_of(points: Iterable[Point]) -> list[float]:
    """List the numbers that an axis must cover."""
    return [end for p in points for end in (p.x, p.low, p.high)]


def shares(name: str, *, parity: bool = False) -> Axis:
    """Make an axis from 0 to 100 %; `parity`: a dotted line where women's and men's share are the same."""
    return Axis(name, 0, 1, "%", 0.5 if parity else None, ticks=(0, 0.25, 0.5, 0.75, 1))


def effects(
    values: Iterable[float], least: float, name: str, *, margin: float | None = None, unit: Any = "points"
) -> Axis:
    """Make an axis around 0, wide enough for the values, with the band of equivalence."""
    limit = max([least, *(1.06 * abs(value) for value in values if value == value)])
    return Axis(name, -limit, limit, unit, 0, margin)


INKED = Mark(INK, "o")
