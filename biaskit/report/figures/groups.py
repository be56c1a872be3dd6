"""Figure of a user's own groups: the length of each group's list of marked words against chance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from matplotlib.ticker import MaxNLocator

from biaskit.report.figures import dots
from biaskit.report.figures.figure import Figure, Missing
from biaskit.report.figures.lettering import cut, people
from biaskit.report.figures.sheet import WIDTH, Entry, Sheet, marker_style
from biaskit.report.figures.style import FEMALE, GRID, INK, MALE, Mark
from biaskit.report.figures.view import Drawing, View, number, told
from biaskit.tables.query import Row, defined, where

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ROWS = 60
_NULL = "#9a9a9a"
_MARKS = {
    "": ("all texts of a group", Mark(INK, "D")),
    "female": ("women", Mark(FEMALE, "o")),
    "male": ("men", Mark(MALE, "s")),
    "nonbinary": ("non-binary people", Mark("#117733", "^")),
}
_PITCH = 0.19


def group_lists(view: View) -> Iterator[Figure | Missing]:
    """A row for each group, and for each gender of it, one figure a model; none where there are no groups."""
    rows = view.rows("group_lists", method="calibrated")
    if rows:
        shown = rows if defined(rows, "n_marked_beyond", "null_p95_beyond") else ()
        title = f"Marked words by {cut(rows[0]['column'])} against chance"
        reason = "No list has a null beyond gender words and names (table group_lists)."
        yield from view.charts(shown, "group-lists", title, reason, _lists, size=1)


def _lists(view: View, rows: Sequence[Row], models: Sequence[str]) -> Drawing:  # noqa: ARG001
    shown, column = rows[:MOST_ROWS], cut(rows[0]["column"])
    known = defined(shown, "n_marked_beyond", "null_p95_beyond")
    note = (
        f"n = {len(known)} of {len(rows)} lists; unit: words with z > 1.96, without gender words, names and "
        "the groups' own names; null: labels of the texts shuffled (its 95th percentile; no interval)."
    )
    genders = [gender for gender in _MARKS if where(shown, gender=gender)]
    legend = [Entry(*_MARKS[gender]) for gender in genders]
    sheet = Sheet(len(shown) * _PITCH + 0.55, legend=[*legend, Entry("null 95 %", Mark(_NULL, "|"))])
    labels = [_label(row) for row in shown]
    left = dots.label_width(labels, 2.6)
    dots.row_labels(sheet, labels, 0.1, _PITCH, left)
    axes = sheet.axes(left + 0.12, 0.1, WIDTH - left - 0.5, len(shown) * _PITCH)
    _panel(axes, shown, genders)
    longer = [row for row in known if row["n_marked_beyond"] > row["null_p95_beyond"]]
    said = [
        f"{_label(row)}: {row['n_marked_beyond']} words, null {number(row['null_p95_beyond']):.0f}."
        for row in sorted(longer, key=lambda row: row["null_p95_beyond"] - row["n_marked_beyond"])
    ]
    caption = (
        f"Length of the list of words that mark each group of {column}, and each gender of a group, in the "
        f"texts of {cut(models[0])}. {note} Table: group_lists, method calibrated."
    )
    alt = f"Dot plot of {len(shown)} lists; {len(longer)} are longer than their null."
    return Drawing(sheet, caption, f"{alt} {told(said, 'group_lists')}")


def _panel(axes: Axes, rows: Sequence[Row], genders: Sequence[str]) -> None:
    """A dot for each list in the colour of its gender, a grey tick at its null's 95th percentile."""
    dots.rows_axis(axes, len(rows))
    ends = [number(row[name]) for row in rows for name in ("n_marked_beyond", "null_p95_beyond")]
    axes.set_xlim(0, max([5.0, *(end for end in ends if end == end)]) * 1.05)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.grid(axis="x", color=GRID, linewidth=0.5)
    axes.set_xlabel("marked words beyond gender words", labelpad=2)
    nulls = [number(row["null_p95_beyond"]) for row in rows]
    dots.ticks_at(axes, nulls, range(len(rows)), 0.38, color=_NULL, linewidth=1.6, zorder=2)
    for gender in genders:
        mark, own = _MARKS[gender][1], [(y, row) for y, row in enumerate(rows) if row["gender"] == gender]
        xs = [number(row["n_marked_beyond"]) for _, row in own]
        axes.plot(xs, [y for y, _ in own], clip_on=False, zorder=3, **marker_style(mark))
        dots.dashes(axes, [y for (y, _), x in zip(own, xs, strict=True) if x != x], mark.colour)


def _label(row: Row) -> str:
    return f"{row['group']}, {people(row['gender'])}" if row["gender"] else str(row["group"])
