"""Figure of a user's own groups: the length of each group's list of marked words against chance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.plot import BEHIND, INKED, Band, Dots, Entry, Panel, Plot, amounts, ends_of, point
from biaskit.report.figures.style import FEMALE, INK, MALE, Mark, cut, people
from biaskit.report.figures.view import View
from biaskit.tables.query import Row, defined, where

MOST_ROWS = 60
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
    nulls = Dots(BEHIND, [point(row, ("null_p95_beyond",)) for row in shown])
    marked = [point(row, ("n_marked_beyond",), mark=_MARKS[row["gender"]][1]) for row in shown]
    dots = [nulls, Dots(INKED, marked)]
    axis = amounts(ends_of(dots), 5, "marked words beyond gender words", whole=True)
    caption = (
        f"Length of the list of words that mark each group of {column}, and each gender of a group, in the "
        f"texts of {cut(models[0])}; n = {len(known)} of {len(rows)} lists; unit: words with z > 1.96, "
        "without gender words, names and the groups' own names; null: labels of the texts shuffled (its "
        "95th percentile; no interval). Table: group_lists, method calibrated."
    )
    legend = [Entry(*_MARKS[gender]) for gender in _MARKS if where(shown, gender=gender)]
    legend += [Entry("null 95 %", BEHIND)]
    labels = [f"{r['group']}, {people(r['gender'])}" if r["gender"] else str(r["group"]) for r in shown]
    panel = Panel(labels, axis, dots, apart=False)
    return Plot([Band([panel])], caption, legend)
