"""Draw jobs one under the other, and against workforce shares (methods/averages#cells-to-tables)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.common.wording import count
from biaskit.measures.probe.figures.groups import CAPTIONS, estimators_of
from biaskit.report.figures import items
from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.plot import Band, Dots, Panel, Plot, shares
from biaskit.report.figures.style import asked, people
from biaskit.report.figures.view import View, all_marks, portions, spread
from biaskit.report.figures.workforce import LEGEND, PER_FIGURE, Lines, spots_of, square
from biaskit.tables.query import Row, defined, distinct, first, grouped, in_main_context, where


def jobs(view: View) -> Iterator[Figure]:
    """Draw each job for each model, a panel for each way to ask; none if the first figure shows the same."""
    group = view.part.contrast[0]
    rows = view.plain("probe_jobs") if group else []
    if len(all_marks(view.content)) > 1 or len(distinct(rows, "job")) > items.MOST_ROWS:
        yield from view.charts(rows, "jobs", f"Share of {view.whom} in each job", _jobs)


def _jobs(view: View, rows: Sequence[Row], models: Sequence[str]) -> Plot:
    order = items.by_share(items.workforce_shares(rows, "job"))
    axis = shares(view.whom, parity=view.shows("parity"))
    panels = []
    for bias_type in distinct(rows, "bias_type"):
        dots = items.workforce_dots(view, order)
        for model in models:
            of_model = where(rows, bias_type=bias_type, model=model)
            points = items.of_jobs(view, of_model, of_two=view.part.rule.binary)
            dots.append(Dots(view.marks[model], [points.get(job) for job in order]))
        panels.append(Panel([*order], axis, dots, title=asked(bias_type)))
    templates, sorting = spread(rows, "n_templates"), items.sorting(order)
    caption = CAPTIONS["jobs"].format(len(order), templates, sorting, estimators_of(rows), view.weak)
    return Plot([Band(panels)], caption, [*view.entries(models), *items.references(view, order)])


def workforce(view: View) -> Iterator[Figure]:
    """Draw a panel per model and way to ask, six to a figure; none if no job has a workforce share."""
    group = view.part.contrast[0]
    if not group or not view.shows("workforce"):
        return
    rows = defined(view.plain("probe_jobs"), "workforce_share")
    pairs = sorted(grouped(rows, "model", "bias_type"), key=lambda pair: view.models.index(pair[0]))
    for nth, place, some in portions(pairs, PER_FIGURE):
        title = f"Share of {people(group)} and the workforce share"
        yield view.figure(f"workforce{nth}", title, _workforce(view, rows, some), place)


def _workforce(view: View, rows: Sequence[Row], pairs: Sequence[tuple[str, str]]) -> Plot:
    several = len({model for model, _ in pairs}) > 1
    squares = []
    for model, bias_type in pairs:
        of_square = where(rows, model=model, bias_type=bias_type)
        name = f"{model}, {asked(bias_type)}" if several else asked(bias_type)
        # As the line, and as the workforce: of two genders.
        spots = spots_of(items.of_jobs(view, of_square, of_two=True), of_square, "job")
        line = _fitted(view, model, bias_type, [spot.x for spot in spots])
        squares.append(square(name, "answers", spots, view.marks[model], line))
    n = count(len(distinct(rows, "job")), "job")
    first, second = map(people, view.part.contrast)
    fitted = any(len(square.lines) > 1 for square in squares)
    of_line = CAPTIONS["fitted"] if fitted else ""
    caption = CAPTIONS["workforce"].format(f"{first} among {first} and {second}", n, of_line, view.weak)
    return Plot([Band(squares)], caption, LEGEND if fitted else LEGEND[:1])


def _fitted(view: View, model: str, bias_type: str, xs: Sequence[float]) -> Lines:
    """Make the line of the tests over the items' workforce shares; none if the run has no such test."""
    of_line = {"contrast": "workforce", "bias_type": bias_type, "debiasing_a": "0", "group_a": ""}
    rows = in_main_context(view.tests(model_a=model, **of_line))
    level, slope = (first(defined(rows, "estimate"), kind=kind) for kind in ("level", "slope"))
    if level is None or slope is None or len({*xs}) < 2:
        return []
    ends = [(x, 0.5 + level.estimate + slope.estimate * (x - 0.5)) for x in (min(xs), max(xs))]
    return [(ends[0], ends[1], "--")]
