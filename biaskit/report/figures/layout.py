"""Where panels stand: side by side as far as a width has room, else one under the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from biaskit.report.figures.lettering import shorten
from biaskit.report.figures.panels import Band, Panel, Square, fill_panel, label_width
from biaskit.report.figures.sheet import COLUMN, LINE, MARGIN, Entry, Sheet, marker_style

_GAP = 0.12
_FOOT = 0.42
"""Inches under axes: ticks and their name."""
_LABELS, _LABELS_OF_ONE, _LABELS_IN_COLUMN = 0.3, 0.37, 0.5
"""Part of a width that the names of rows take at most, beside several panels, beside one, and in a column."""
_LARGEST, _LEAST, _BEFORE = 2.2, 1.0, 0.6
"""Inches: the side of a square at most and at least, and what its upright axis takes."""


@dataclass(frozen=True, slots=True)
class _Line:
    """Panels side by side: their left ends and the inches of their axes, and how high all of it is."""

    heading: str
    panels: Sequence[Panel | Square]
    lefts: Sequence[float]  # 0: the names stand at the panel before
    room: float
    head: float
    height: float


def lay_out(bands: Sequence[Band], legend: Sequence[Entry], width: float) -> Sheet:
    """The sheet of a width in inches."""
    lines = [line for band in bands for line in _lines(band, width)]
    sheet = Sheet(sum(line.height for line in lines), legend=legend, width=width)
    top = 0.0
    for line in lines:
        _draw(sheet, line, top)
        top += line.height
    return sheet


def _lines(band: Band, width: float) -> Iterator[_Line]:
    """As many panels side by side as fit, in lines of about equal numbers of them."""
    panels: list[Panel | Square] = [*band.panels]
    most = next((n for n in range(len(panels), 1, -1) if _fits(panels, n, width)), 1)
    each = -(-len(panels) // -(-len(panels) // most))
    for i in range(0, len(panels), each):
        some = panels[i : i + each]
        lefts, room = _rooms(some, width, each)
        head = MARGIN + (0.2 if band.heading and not i else 0.0) + max(map(_head, some))
        height = head + max(_body(panel, room) for panel in some) + _FOOT
        yield _Line(band.heading if not i else "", some, lefts, room, head, height)


def _fits(panels: Sequence[Panel | Square], n: int, width: float) -> bool:
    if isinstance(panels[0], Square) and (n > 3 or (width <= COLUMN and len(panels) <= n)):
        return False  # two squares in a column stand one under the other, larger
    starts = range(0, len(panels), n)
    return all(
        _rooms(some, width, n)[1] >= max(map(_least, some)) for some in (panels[i : i + n] for i in starts)
    )


def _least(panel: Panel | Square) -> float:
    return _LEAST if isinstance(panel, Square) else panel.least


def _rooms(panels: Sequence[Panel | Square], width: float, n: int) -> tuple[list[float], float]:
    """What stands before each panel's axes, and the inches that are left for the axes of each."""
    lefts = []
    for i, panel in enumerate(panels):
        if isinstance(panel, Square):
            lefts.append(_BEFORE)
            continue
        before = panels[i - 1] if i else None
        shared = isinstance(before, Panel) and list(before.labels) == list(panel.labels)
        own = isinstance(before, Panel) or (len(panels) > 1 and _own_names(panels))
        part = _LABELS_OF_ONE if n == 1 else _LABELS
        part = _LABELS_IN_COLUMN if own or width <= COLUMN else part
        lefts.append(0.0 if shared else label_width(panel.labels, part * (width / n if own else width)))
    rights = sum(_right(panel) for panel in panels)
    free = width - sum(lefts) - rights - _GAP * len(panels)
    if len(panels) < n:  # a last line with fewer panels: as wide as those above
        free -= (n - len(panels)) * (width / n)
    room = free / len(panels)
    if isinstance(panels[0], Square):
        room = min(room, _LARGEST)
    return lefts, room


def _own_names(panels: Sequence[Panel | Square]) -> bool:
    """Whether panels side by side have rows of their own."""
    return len({tuple(panel.labels) for panel in panels if isinstance(panel, Panel)}) > 1


def _right(panel: Panel | Square) -> float:
    return panel.right if isinstance(panel, Panel) else 0.1


def _head(panel: Panel | Square) -> float:
    if isinstance(panel, Square):
        return 0.28 + LINE * len(panel.notes)
    lines = bool(panel.below) + panel.tall
    return (0.18 if panel.title or panel.heading else 0.0) + 0.16 * lines


def _body(panel: Panel | Square, room: float) -> float:
    return room if isinstance(panel, Square) else len(panel.labels) * panel.step


def _draw(sheet: Sheet, line: _Line, top: float) -> None:
    if line.heading:
        sheet.title(MARGIN, top + 0.1, line.heading)
    x = 0.0
    for panel, left in zip(line.panels, line.lefts, strict=True):
        place = top + line.head
        if isinstance(panel, Square):
            _draw_square(sheet, panel, x + left, place, line.room)
        else:
            _draw_panel(sheet, panel, (x, left), place, line.room)
        x += left + _GAP + line.room + _right(panel)


def _draw_square(sheet: Sheet, square: Square, x: float, top: float, side: float) -> None:
    above = top - LINE * len(square.notes) - 0.08
    sheet.title(x - 0.4, above - 0.1, square.title, side + 0.45)
    for i, (mark, text) in enumerate(square.notes):
        sheet.line([x - 0.33], [above + (i + 0.5) * LINE], **marker_style(mark))
        sheet.text(x - 0.22, above + (i + 0.5) * LINE, shorten(text, side + 0.3))
    square.draw(sheet, sheet.axes(x, top, side, side), side)


def _draw_panel(sheet: Sheet, panel: Panel, ends: tuple[float, float], top: float, room: float) -> None:
    start, left = ends
    x, pitch = start + left + _GAP, panel.step
    size = 8.0 if pitch >= 0.125 else 7.0
    if left:
        for i, label in enumerate(panel.labels):
            shown = shorten(label, left - MARGIN, size=size, sentence=panel.sentences)
            sheet.text(start + left, top + (i + 0.5) * pitch, shown, ha="right", fontsize=size)
    above = top - (0.16 if panel.tall else 0.0)
    if panel.below:
        sheet.text(x, above - 0.1, shorten(panel.below, room + 0.1))
    if panel.heading:
        sheet.text(x + room + 0.08, above - 0.1, panel.heading)
    if panel.title:
        above -= 0.16 if panel.below else 0.0
        sheet.title(x, above - 0.1, panel.title, room + (0.05 if panel.heading else panel.right))
    axes = sheet.axes(x, top, room, len(panel.labels) * pitch)
    for i, text in enumerate(panel.beside):
        sheet.text(x + room + 0.08, top + (i + 0.5) * pitch, text)
    fill_panel(sheet, axes, panel, room)
