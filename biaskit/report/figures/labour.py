"""Draw answers and texts against workforce shares: each item, the diagonal, the best-fitting line.

See methods/averages#cells-to-tables (level, slope, distance) and methods/representation#representation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from biaskit.common.wording import count
from biaskit.report.figures import items
from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.plot import Band, Entry, Plot, Point, Spot, Square, shares
from biaskit.report.figures.style import Mark, asked, people
from biaskit.report.figures.view import View, all_marks, portions, spread
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

PER_FIGURE = 6
Lines = list[tuple[tuple[float, float], tuple[float, float], str]]
SAME = ((0.0, 0.0), (1.0, 1.0), "-")
LEGEND = (Entry("as in the workforce", line="-"), Entry("fit within the two genders", line="--"))


def labour(view: View) -> Iterator[Figure]:
    """Draw a panel per model and way to ask, six to a figure; none if no job has a labour share."""
    group = view.part.contrast[0]
    if not group or not view.shows("labour"):
        return
    rows = defined(view.plain("probe_jobs"), "labour_female_share")
    pairs = [
        (model, kind) for model in view.models for kind in distinct(where(rows, model=model), "bias_type")
    ]
    for nth, place, some in portions(pairs, PER_FIGURE):
        title = f"Share of {people(group)} and the workforce share"
        yield view.figure(f"labour{nth}", title, _labour(view, rows, some), place)


def _labour(view: View, rows: Sequence[Row], pairs: Sequence[tuple[str, str]]) -> Plot:
    group = people(view.part.contrast[0])
    several = len({model for model, _ in pairs}) > 1
    squares = []
    for model, kind in pairs:
        of_square = where(rows, model=model, bias_type=kind)
        name = f"{model}, {asked(kind)}" if several else asked(kind)
        spots = _spots(items.of_jobs(view, of_square), of_square, "job")
        line = _fitted(view, model, kind, [spot.x for spot in spots])
        squares.append(_square(name, "answers", spots, view.marks[model], line))
    n = count(len(distinct(rows, "job")), "job")
    caption = (
        f"Each point is a job: the share of {group} in the model's answers against the share of women in "
        f"U.S. labour statistics, in percent; n = {n}; bars: 95\u00a0% intervals over templates. The line "
        "is fitted to the share within the two genders; flatter than the diagonal: jobs differ less in the "
        f"model than in the workforce. Tables: probe_jobs, tests (kinds slope and level).{view.weak}"
    )
    fitted = any(len(square.lines) > 1 for square in squares)
    return Plot([Band(squares)], caption, LEGEND if fitted else LEGEND[:1])


def scatter(view: View) -> Iterator[Figure]:
    """Draw the same of texts; none if the first figure shows every occupation."""
    rows = defined(mean_over_prompts(view.rows("representation")), "labour_female_share")
    if len(all_marks(view.content)) > 1 or len(distinct(rows, "occupation")) > items.MOST_ROWS:
        title = "Share of women in texts and in the workforce"
        yield from view.charts(rows, "scatter", title, _scatter, size=PER_FIGURE)


def _scatter(view: View, rows: Sequence[Row], models: Sequence[str]) -> Plot:
    squares = []
    for model in models:
        of_model = where(rows, model=model)
        spots = _spots(items.of_occupations(of_model), of_model, "occupation")
        squares.append(_square(model, "texts", spots, view.marks[model]))
    caption = (
        f"Each point is an occupation{view.place('Figure 6')}: the share of women among texts with an "
        "inferred gender, over all prompts, against U.S. labour statistics, in percent; n = "
        f"{len(distinct(rows, 'occupation'))} occupations, each with "
        f"{spread([row['n_texts'] for row in rows])} texts; bars: Wilson 95\u00a0% intervals combined over "
        "prompts; occupations without such texts are left out. Table: representation, template all."
    )
    return Plot([Band(squares)], caption, LEGEND[:1])


def _spots(points: Mapping[str, Point], rows: Sequence[Row], item: str) -> list[Spot]:
    labour_of = {str(row[item]): row["labour_female_share"] for row in rows}
    return [Spot(name, labour_of[name], p.x, p.low, p.high) for name, p in points.items()]


def _square(title: str, what: str, spots: Sequence[Spot], mark: Mark, fitted: Lines | None = None) -> Square:
    """Make a square; the items farthest from the diagonal on either side are named."""
    known = sorted((spot for spot in spots if spot.y == spot.y), key=lambda spot: spot.y - spot.x)
    named = dict.fromkeys((*known[:1], *known[-1:]))
    axes = shares("workforce share"), shares(f"share in {what}")
    return Square(title, *axes, {mark: spots}, [SAME, *(fitted or [])], [*named])


def _fitted(view: View, model: str, bias_type: str, xs: Sequence[float]) -> Lines:
    """Make the line of the tests over the items' labour shares; none if the run has no such test."""
    rows = where(view.rows("tests"), model_a=model, bias_type=bias_type, instruction_a="0", group_a="")
    rows = [row for row in in_main_setting(rows) if contrast_of(row) == "labour"]
    level, slope = (first(defined(rows, "estimate"), kind=kind) for kind in ("level", "slope"))
    if level is None or slope is None or len({*xs}) < 2:
        return []
    start, end = ((x, 0.5 + level["estimate"] + slope["estimate"] * (x - 0.5)) for x in (min(xs), max(xs)))
    return [(start, end, "--")]
