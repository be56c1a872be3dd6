"""Shares item by item, from women's jobs to men's, beside labour statistics and parity.

The first picture of one model, and the jobs of several (docs/methods.md#cells-to-tables,
docs/methods.md#representation).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from biaskit.common.wording import count
from biaskit.report.content import Content
from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.plot import PARITY, Band, Dots, Entry, Panel, Plot, Point, point, shares
from biaskit.report.figures.style import INK, Mark, asked, cut, people
from biaskit.report.figures.view import View, all_marks, figure, spread, views
from biaskit.tables.query import Row, distinct, mean_over_prompts, where

MOST_ROWS = 44
"""More items than a screen has room for are drawn against labour statistics instead (`labour.py`)."""
TALLEST = 4.4
"""Inches of the rows: with legend and axis they stay on a screen of 800 pixels."""
LABOUR = Mark(INK, "d")


@dataclass(frozen=True, slots=True)
class Measure:
    """One way to ask a model: the shares of the items."""

    panel: str  # answers | texts
    name: str
    points: Mapping[str, Point]
    mark: Mark
    fill: str = ""


def answer(content: Content, name: str) -> Iterator[Figure]:
    """The first picture of one model, where there is something to draw and a screen holds it."""
    probed, written = (next(iter(views(content, engine)), None) for engine in ("probe", "personas"))
    if (view := probed or written) is None:
        return
    group = people(probed.part.contrast[0] if probed and probed.part.contrast[0] else "female")
    noun = "job" if probed else "occupation"
    measures, labour = _measures(probed, written)
    # Every item with a share; where they are too many, those that both engines have.
    of_panels = {m.panel: set[str]() for m in measures}
    for measure in measures:
        of_panels[measure.panel] |= measure.points.keys()
    chosen = set().union(*of_panels.values())
    if len(chosen) > MOST_ROWS and len(common := set.intersection(*of_panels.values())) > 1:
        chosen = common
    order = {item: share for item, share in labour.items() if item in chosen}
    if not any(p.x == p.x for m in measures for p in m.points.values()) or len(order) > MOST_ROWS:
        return
    panels = []
    for where_said in dict.fromkeys(one.panel for one in measures):
        own = [one for one in measures if one.panel == where_said]
        dots = [Dots(one.mark, [one.points.get(item) for item in order], one.fill) for one in own]
        axis = shares(f"{group} in its {where_said}", parity=view.shows("parity"))
        rows = [*_labour(view, order), *dots]
        panels.append(Panel([*order], axis, rows, pitch=min(0.2, TALLEST / len(order)), apart=False))
    table_of = {"answers": "probe_jobs", "texts": "representation"}
    tables = " and ".join(dict.fromkeys(table_of[m.panel] for m in measures))
    caption = (
        f"In percent; n = {count(len(order), noun)}, sorted by the share of women in labour statistics; "
        f"bars: 95\u00a0% intervals. Tables: {tables}."
    )
    legend = [Entry(m.name, m.mark, m.fill) for m in measures]
    plot = Plot([Band(panels)], caption, [*legend, *_references(view, order)])
    yield figure(name, f"Share of {group} by {noun}", plot)


def _measures(probed: View | None, written: View | None) -> tuple[list[Measure], dict[str, float | None]]:
    """Every way in which the model was asked, and the items with their labour share."""
    measures: list[Measure] = []
    labour: dict[str, float | None] = {}
    if probed is not None and probed.part.contrast[0]:
        rows, mark = probed.plain("probe_jobs"), probed.marks[probed.models[0]]
        labour |= _labour_shares(rows, "job")
        for bias_type in distinct(rows, "bias_type"):
            points = of_jobs(probed, where(rows, bias_type=bias_type))
            fill = "none" if bias_type == "explicit" else ""
            measures.append(Measure("answers", asked(bias_type), points, mark, fill))
    if written is not None:
        rows = mean_over_prompts(written.rows("representation"))
        known = _labour_shares(rows, "occupation")
        labour |= {item: share for item, share in known.items() if labour.get(item) is None}
        mark = Mark(written.marks[written.models[0]].colour, "s")
        measures.append(Measure("texts", "in texts", of_occupations(rows), mark))
    return measures, by_share(labour)


def jobs(view: View) -> Iterator[Figure]:
    """Each job for each model, a panel for each way to ask; none where the first picture holds the same."""
    first = view.part.contrast[0]
    rows = view.plain("probe_jobs") if first else []
    if len(all_marks(view.content)) > 1 or len(distinct(rows, "job")) > MOST_ROWS:
        yield from view.charts(rows, "jobs", f"Share of {people(first)} in each job", _jobs)


def _jobs(view: View, rows: Sequence[Row], models: Sequence[str]) -> Plot:
    first = view.part.contrast[0]
    order = by_share(_labour_shares(rows, "job"))
    panels = []
    for bias_type in distinct(rows, "bias_type"):
        own = where(rows, bias_type=bias_type)
        points = {model: of_jobs(view, where(own, model=model)) for model in models}
        dots = [Dots(view.marks[model], [points[model].get(job) for job in order]) for model in models]
        axis = shares(f"share of {people(first)}", parity=view.shows("parity"))
        panels.append(Panel([*order], axis, [*_labour(view, order), *dots], title=asked(bias_type)))
    caption = (
        f"In percent; n = {len(order)} jobs, each the mean of {spread([row['n_templates'] for row in rows])} "
        "templates, sorted by the share of women in labour statistics; bars: 95\u00a0% intervals over "
        f"templates; without an instruction. {estimators_of(rows)}Table: probe_jobs."
    )
    return Plot([Band(panels)], caption, [*view.entries(models), *_references(view, order)])


def estimators_of(rows: Sequence[Row]) -> str:
    """A sentence for a caption where the rows' estimators differ: their intervals are not alike."""
    of_models = {str(row["model"]): str(row["estimator"]) for row in rows}
    if len(set(of_models.values())) < 2:
        return ""
    return f"Estimators differ: {', '.join(f'{cut(m)} {cut(e)}' for m, e in of_models.items())}. "


def of_jobs(view: View, rows: Sequence[Row]) -> dict[str, Point]:
    """Shares of the contrast's first group in each job."""
    share = f"{view.part.contrast[0]}_share"
    return {str(row["job"]): point(row, (share, f"{share}_ci_low", f"{share}_ci_high")) for row in rows}


def of_occupations(rows: Sequence[Row]) -> dict[str, Point]:
    """Shares of women in the texts about each occupation."""
    return {str(row["occupation"]): point(row, ("female_share", "ci_low", "ci_high")) for row in rows}


def _labour_shares(rows: Sequence[Row], item: str) -> dict[str, float | None]:
    return {str(row[item]): row["labour_female_share"] for row in rows}


def by_share(labour: Mapping[str, float | None]) -> dict[str, float | None]:
    """Items with the highest labour share of women first, those without one last in their own order."""
    return dict(sorted(labour.items(), key=lambda pair: (pair[1] is None, -(pair[1] or 0.0))))


def _labour(view: View, order: Mapping[str, float | None]) -> list[Dots]:
    """The share of women in labour statistics, where the report holds shares against it."""
    if not view.shows("labour") or all(share is None for share in order.values()):
        return []
    return [Dots(LABOUR, [None if share is None else Point(share) for share in order.values()], "none")]


def _references(view: View, order: Mapping[str, float | None]) -> list[Entry]:
    legend = [Entry("labour statistics", LABOUR, "none")] if _labour(view, order) else []
    return [*legend, PARITY] if view.shows("parity") else legend
