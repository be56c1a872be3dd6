"""Figure of a user's own groups: the length of each group's list of marked words against chance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from biaskit.report.figures import panels, scales
from biaskit.report.figures.figure import Figure
from biaskit.report.figures.lettering import cut, people
from biaskit.report.figures.panels import Band, Dots, Panel, number, point, ticks_at
from biaskit.report.figures.sheet import Entry, Sheet
from biaskit.report.figures.style import FEMALE, INK, MALE, Mark
from biaskit.report.figures.view import Plot, View, told
from biaskit.tables.query import Row, defined, where

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ROWS = 60
_NULL = Mark("#9a9a9a", "|")
_MARKS = {
    "": ("all texts of a group", Mark(INK, "D")),
    "female": ("women", Mark(FEMALE, "o")),
    "male": ("men", Mark(MALE, "s")),
    "nonbinary": ("non-binary people", Mark("#117733", "^")),
}


def group_lists(view: View) -> Iterator[Figure]:
    """A row for each group, and for each gender of it, one figure a model; none where there are no groups."""
    rows = view.rows("group_lists", method="calibrated")
    if defined(rows, "n_marked_beyond", "null_p95_beyond"):
        title = f"Marked words by {cut(rows[0]['column'])} against chance"
        yield from view.charts(rows, "group-lists", title, _lists, size=1)


def _lists(view: View, rows: Sequence[Row], models: Sequence[str]) -> Plot:  # noqa: ARG001
    shown, column = rows[:MOST_ROWS], cut(rows[0]["column"])
    known = defined(shown, "n_marked_beyond", "null_p95_beyond")
    nulls = [number(row["null_p95_beyond"]) for row in shown]
    labels = [_label(row) for row in shown]
    tips = [
        f"{cut(name)}: {row['n_marked_beyond']} words, null {null:.0f}"
        for name, row, null in zip(labels, shown, nulls, strict=True)
    ]
    points = [
        point(row, ("n_marked_beyond",), tip, mark=_MARKS[row["gender"]][1])
        for row, tip in zip(shown, tips, strict=True)
    ]
    dots = [Dots(Mark(INK, "o"), points)]
    scale = scales.amounts(
        [*nulls, *panels.ends_of(dots)],
        "marked words beyond gender words",
        "marked words",
        least=5,
        whole=True,
    )

    def draw(_: Sheet, axes: Axes) -> None:
        ticks_at(axes, nulls, range(len(shown)), 0.38, color=_NULL.colour, linewidth=1.6, zorder=2)

    panel = Panel(labels, scale, dots, pitch=0.19, draw=draw)
    longer = [row for row in known if row["n_marked_beyond"] > row["null_p95_beyond"]]
    longer.sort(key=lambda row: row["null_p95_beyond"] - row["n_marked_beyond"])
    said = [
        f"{_label(row)}: {row['n_marked_beyond']} words, null {row['null_p95_beyond']:.0f}." for row in longer
    ]
    caption = (
        f"Length of the list of words that mark each group of {column}, and each gender of a group, in the "
        f"texts of {cut(models[0])}; n = {len(known)} of {len(rows)} lists; unit: words with z > 1.96, "
        "without gender words, names and the groups' own names; null: labels of the texts shuffled (its "
        "95th percentile; no interval). Table: group_lists, method calibrated."
    )
    alt = f"Dot plot of {len(shown)} lists; {len(longer)} are longer than their null."
    legend = [Entry(*_MARKS[gender]) for gender in _MARKS if where(shown, gender=gender)]
    legend += [Entry("null 95 %", _NULL)]
    return Plot([Band([panel])], caption, f"{alt} {told(said, 'group_lists')}", legend)


def _label(row: Row) -> str:
    return f"{row['group']}, {people(row['gender'])}" if row["gender"] else str(row["group"])
