"""Draw decisions: gaps within cases, with jobs and the first place below; then ratios and what luck makes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

from biaskit.measurement import words
from biaskit.measures.decisions.printing import is_scored, who
from biaskit.records import ALL
from biaskit.report.figures import FigureKind
from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.plot import NAN, Axis, Band, Dots, Panel, Plot, Point, effects, ends_of, point
from biaskit.report.figures.style import GREY, Mark
from biaskit.report.figures.view import View
from biaskit.report.questions import QuestionId
from biaskit.tables.query import Row, among, defined, distinct, first, grouped

MOST_ROWS = 40
_GAP = ("gap", "ci_low", "ci_high")
_RATIO = ("ratio", "ratio_low", "ratio_high")
_CAPTIONS = words("decisions")["captions"]


def figures() -> Mapping[QuestionId, Sequence[FigureKind]]:
    """Name the kinds of figures in the order of the page."""
    return {"sex": (gaps,), "race": (ratios,)}


def gaps(view: View) -> Iterator[Figure]:
    """Draw a row for each contrast, jobs below."""
    rows = among(view.rows("decision_gaps"), "contrast", ("sex", "race"))
    rows.sort(key=lambda row: (row["job"] != ALL, row["contrast"] != "sex"))
    for (question,), own in grouped(defined(rows, "gap"), "question").items():
        scored = is_scored(view.rows("decision_groups", question=question))
        title = f"Who {'scores higher' if scored else 'gets a yes more often'}: {question}"
        yield from view.charts(own, f"decisions-{question}", title, _gaps)


def _gaps(view: View, rows: Sequence[Row], models: Sequence[str]) -> Plot:
    keys = list(grouped(rows, "job", "group_a", "group_b"))[:MOST_ROWS]
    labels = [f"{who(a)} − {who(b)}" + ("" if job == ALL else f", {job}") for job, a, b in keys]
    question, dots = rows[0]["question"], []
    order = view.rows("decision_order", question=question, job=ALL)
    labels += ["first place − chance"] * bool(order)
    for model in models:
        found = [first(rows, model=model, job=j, group_a=a, group_b=b) for j, a, b in keys]
        points: list[Point | None] = [None if row is None else point(row, _GAP) for row in found]
        if order:
            place, chance = first(order, model=model, position=1), 1 / len(distinct(order, "position"))
            points.append(Point(place["rate"] - chance if place else NAN, mark=Mark(GREY, "s")))
        dots.append(Dots(view.marks[model], points))
    drawn = [p for series in dots for p in series.points if p is not None]
    test = first(view.tests(), contrast="sex") or first(view.tests(), contrast="race")
    axis = effects(ends_of(drawn), 0.1, "difference, points", margin=test.margin if test else None)
    if is_scored(view.rows("decision_groups", question=question)):
        axis = effects(ends_of(drawn), 0.1, "difference of scores", unit="")
    hatched = "" if axis.margin is None else _CAPTIONS["hatched"]
    caption = _CAPTIONS["gaps"].format(hatched, *(_CAPTIONS["order"] if order else ("", "")))
    return Plot([Band([Panel(labels, axis, dots)])], caption, view.entries(models))


def ratios(view: View) -> Iterator[Figure]:
    """Draw each group's rate by the highest, beside four fifths and what equal groups would show."""
    known = defined(view.rows("decision_groups", job=ALL), "ratio")
    rows = list(filter(itemgetter("verdict"), known))
    for (question,), own in grouped(rows, "question").items():
        yield from view.charts(own, f"ratios-{question}", f"Rates by the highest: {question}", _ratios)


def _ratios(view: View, rows: Sequence[Row], models: Sequence[str]) -> Plot:
    panels = []
    for (by, kind), own in grouped(rows, "by", "rate_kind").items():
        names = distinct(own, "category")
        same = {"question": own[0]["question"], "job": ALL, "by": by, "rate_kind": kind}
        dots = []
        for model in models:
            found = [first(own, model=model, category=name) for name in names]
            points: list[Point | None] = [None if row is None else point(row, _RATIO) for row in found]
            equal = first(view.rows("decision_equal", **same), model=model)
            points.append(point(equal, ("equal_median",), mark=Mark(GREY, "P")))
            dots.append(Dots(view.marks[model], points))
        labels = [*map(who, names), "if all were equal"]
        axis = Axis("ratio to the highest", 0, 1, line=0.8, ticks=(0, 0.4, 0.8, 1))
        panels.append(Panel(labels, axis, dots, title=by.replace("+", " and ")))
    return Plot([Band(panels)], _CAPTIONS["ratios"], view.entries(models))
