"""Answers and texts against labour statistics: each item, the line of the same share, the line that fits.

See docs/methods.md#cells-to-tables (level, slope, distance) and docs/methods.md#representation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from biaskit.report.figures import items, scales
from biaskit.report.figures.figure import Figure
from biaskit.report.figures.lettering import asked, cut, people, shorten, text_width
from biaskit.report.figures.panels import NAN, Band, Point, Square
from biaskit.report.figures.probe import plain, shows, spread
from biaskit.report.figures.sheet import Entry, Sheet, marker_style
from biaskit.report.figures.style import INK, Mark
from biaskit.report.figures.view import Plot, View, all_marks, mean, portions, short, told
from biaskit.tables.query import (
    Row,
    contrast_of,
    defined,
    distinct,
    first,
    in_main_setting,
    mean_over_prompts,
    where,
)
from biaskit.wording import count, percent, plain_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PER_FIGURE = 6
NAMED = 6
"""Points farthest from the line that get their name, where there is room for it."""
LEGEND = (Entry("as in labour statistics", line="-"), Entry("line that fits best", line="--"))
_Pairs = Mapping[str, tuple[Point, float]]
"""Items with their share and the share of women in labour statistics."""


def labour(view: View) -> Iterator[Figure]:
    """A figure of each six models and ways to ask; none where no job has a labour share."""
    group = view.part.contrast[0]
    if not group or not shows(view, "labour"):
        return
    rows = defined(plain(view, "probe_jobs"), "labour_female_share")
    pairs = [
        (model, kind) for model in view.models for kind in distinct(where(rows, model=model), "bias_type")
    ]
    for nth, place, some in portions(pairs, PER_FIGURE, even=False):
        title = f"Share of {people(group)} against labour statistics"
        yield view.finished(f"labour{nth}", title, _labour(view, rows, some), place)


def _labour(view: View, rows: Sequence[Row], pairs: Sequence[tuple[str, str]]) -> Plot:
    group = people(view.part.contrast[0])
    several = len({model for model, _ in pairs}) > 1
    squares, said = [], []
    for model, kind in pairs:
        own = where(rows, model=model, bias_type=kind)
        of = _paired(items.of_jobs(view, own), {str(r["job"]): r["labour_female_share"] for r in own})
        name, line = f"{model}, {asked(kind)}" if several else asked(kind), _line(view, model, kind)
        squares.append(Square(name, partial(_square, "answers", of, view.marks[model], line)))
        said += [f"{cut(name)}: slope {plain_number(line[1])}."] if line else []
    n = count(len(distinct(rows, "job")), "job")
    caption = (
        f"Each point is a job: the share of {group} in the model's answers against the share of women in "
        f"U.S. labour statistics, in percent; n = {n}; bars: 95\u00a0% intervals over templates. A line "
        "flatter than the diagonal: the model tells the jobs apart less than the labour force does. "
        "Tables: probe_jobs, tests (kinds slope and level)."
    )
    legend = LEGEND if said else LEGEND[:1]
    return Plot([Band(squares)], caption, f"Scatter plots of {n}. {told(said, 'tests')}", legend)


def scatter(view: View) -> Iterator[Figure]:
    """The same of texts; none where the first picture holds every occupation."""
    rows = defined(mean_over_prompts(view.rows("representation")), "labour_female_share")
    if len(all_marks(view.content)) > 1 or len(distinct(rows, "occupation")) > items.MOST_ROWS:
        title = "Share of women in texts and in labour statistics"
        yield from view.charts(rows, "scatter", title, _scatter, size=PER_FIGURE)


def _scatter(view: View, rows: Sequence[Row], models: Sequence[str]) -> Plot:
    squares, said = [], []
    for model in models:
        own = where(rows, model=model)
        of = _paired(items.of_occupations(own), {str(r["occupation"]): r["labour_female_share"] for r in own})
        squares.append(Square(model, partial(_square, "texts", of, view.marks[model], None)))
        gaps = [each.x - share for each, share in of.values() if each.x == each.x]
        said.append(
            f"{cut(model)}: more women than in labour statistics in {sum(gap > 0 for gap in gaps)} of "
            f"{len(gaps)} occupations, mean difference {short(mean(gaps), sign=True)}."
        )
    texts = f"{spread([row['n_texts'] for row in rows])} texts"
    caption = (
        f"Each point is an occupation{view.place('Figure 6')}: the share of women among texts with an "
        "associated gender, over all prompts, against U.S. labour statistics, in percent; n = "
        f"{len(distinct(rows, 'occupation'))} occupations, each with {texts}; bars: Wilson 95\u00a0% "
        "intervals joined over prompts; what has no such text is not drawn. Table: representation, template "
        "all."
    )
    alt = f"Scatter plots for {count(len(models), 'model')}. {told(said, 'representation')}"
    return Plot([Band(squares)], caption, alt, LEGEND[:1])


def _paired(points: Mapping[str, Point], of: Mapping[str, float]) -> _Pairs:
    return {item: (each, of[item]) for item, each in points.items()}


def _square(
    what: str,
    of: _Pairs,
    mark: Mark,
    line: tuple[float, float] | None,
    sheet: Sheet,
    axes: Axes,
    side: float,
) -> None:
    scales.shares("labour statistics", parity=False)(axes, side)
    scales.upright_shares(axes, what)
    axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, zorder=1)
    xs = [share for _, share in of.values()]
    across = [x for share in xs for x in (share, share, NAN)]
    ends = [end for each, _ in of.values() for end in (each.low, each.high, NAN)]
    axes.plot(across, ends, color=mark.colour, linewidth=0.6)
    shares = [each.x for each, _ in of.values()]
    (marks,) = axes.plot(xs, shares, clip_on=False, zorder=3, **marker_style(mark, size=3.4))
    tips = [f"{each.tip}; labour statistics {percent(x)} % women" for each, x in of.values()]
    sheet.tip(marks, tips)
    if line is not None:
        ends = [min(xs), max(xs)]
        fitted = [line[0] + line[1] * (x - 0.5) for x in ends]
        axes.plot(ends, fitted, color=INK, linewidth=1, linestyle="--", zorder=2)
    _name_far_points(axes, of, side)


def _line(view: View, model: str, bias_type: str) -> tuple[float, float] | None:
    """Share where half are women in labour statistics, and slope; None where a run has no such row."""
    rows = where(view.rows("tests"), model_a=model, bias_type=bias_type, instruction_a="0", group_a="")
    rows = [row for row in in_main_setting(rows) if contrast_of(row) == "labour"]
    level, slope = (first(rows, kind=kind) for kind in ("level", "slope"))
    if level is None or slope is None or level["estimate"] is None or slope["estimate"] is None:
        return None
    return 0.5 + level["estimate"], slope["estimate"]


def _name_far_points(axes: Axes, of: _Pairs, side: float) -> None:
    """The items farthest from the line get their name, where it meets no bar and no other name."""
    known = {item: (each, x) for item, (each, x) in of.items() if each.x == each.x}
    taken = [(x, x, min(each.x, each.low), max(each.x, each.high)) for each, x in known.values()]
    far = sorted(known, key=lambda item: -abs(known[item][0].x - known[item][1]))
    for item in far[:NAMED]:
        each, x = known[item]
        text = shorten(item, 0.4 * side)
        width = text_width(text) / side
        for left in (x + 0.03, x - 0.03 - width):
            box = (left - 0.01, left + width + 0.01, each.x - 0.03, each.x + 0.03)
            if box[0] > 0 and box[1] < 1.05 and not any(_meet(box, other) for other in taken):
                taken.append(box)
                axes.text(left, each.x, text, va="center_baseline")
                break


def _meet(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    """Whether two boxes (left, right, below, above) have a point in common."""
    return a[0] <= b[1] and b[0] <= a[1] and a[2] <= b[3] and b[2] <= a[3]
