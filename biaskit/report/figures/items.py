"""Draw shares item by item, from women's jobs to men's, beside workforce shares and parity.

The first figure of one model, and the jobs of several (methods/averages#cells-to-tables,
methods/representation#representation).
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
from biaskit.tables.query import Row, by_labels, distinct, mean_over_prompts, where

MOST_ROWS = 44
"""More items than this do not fit a screen, and are drawn against workforce shares (`labour.py`)."""
TALLEST = 4.4  # inches of all rows: with legend and axis they fit a screen of 800 pixels
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
    """Draw the first figure of one model, if there is data and it fits a screen."""
    probed, written = (next(iter(views(content, engine)), None) for engine in ("probe", "personas"))
    if (view := probed or written) is None:
        return
    group = people(probed.part.contrast[0] if probed and probed.part.contrast[0] else "female")
    noun = "job" if probed else "occupation"
    measures, labour = _measures(probed, written)
    # Every item with a share; where they are too many, those that both engines have.
    items_of_panel = {m.panel: set[str]() for m in measures}
    for measure in measures:
        items_of_panel[measure.panel] |= measure.points.keys()
    chosen = set().union(*items_of_panel.values())
    if len(chosen) > MOST_ROWS and len(common := set.intersection(*items_of_panel.values())) > 1:
        chosen = common
    order = {item: share for item, share in labour.items() if item in chosen}
    if not any(p.x == p.x for m in measures for p in m.points.values()) or len(order) > MOST_ROWS:
        return
    panels = []
    for name_of_panel in items_of_panel:
        of_panel = [measure for measure in measures if measure.panel == name_of_panel]
        dots = [Dots(m.mark, [m.points.get(item) for item in order], m.fill) for m in of_panel]
        axis = shares(f"{group} in its {name_of_panel}", parity=view.shows("parity"))
        rows = [*_labour(view, order), *dots]
        panels.append(Panel([*order], axis, rows, pitch=min(0.2, TALLEST / len(order)), apart=False))
    table_of = {"answers": "probe_jobs", "texts": "representation"}
    tables = " and ".join(table_of[panel] for panel in items_of_panel)
    caption = (
        f"In percent; n = {count(len(order), noun)}, {_sorting(order)}; "
        f"bars: 95\u00a0% intervals. Tables: {tables}.{probed.weak if probed else ''}"
    )
    legend = [Entry(m.name, m.mark, m.fill) for m in measures]
    plot = Plot([Band(panels)], caption, [*legend, *_references(view, order)])
    yield figure(name, f"Share of {group} by {noun}", plot)


def _measures(probed: View | None, written: View | None) -> tuple[list[Measure], dict[str, float | None]]:
    """List the ways in which the model was asked, and the items with their labour share."""
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
        of_texts = _labour_shares(rows, "occupation")
        labour |= {item: share for item, share in of_texts.items() if labour.get(item) is None}
        mark = Mark(written.marks[written.models[0]].colour, "s")
        name = "in texts, corrected by labels" if by_labels(rows) else "in texts"
        measures.append(Measure("texts", name, of_occupations(rows), mark))
    return measures, by_share(labour)


def jobs(view: View) -> Iterator[Figure]:
    """Draw each job for each model, a panel for each way to ask; none if the first figure shows the same."""
    first = view.part.contrast[0]
    rows = view.plain("probe_jobs") if first else []
    if len(all_marks(view.content)) > 1 or len(distinct(rows, "job")) > MOST_ROWS:
        yield from view.charts(rows, "jobs", f"Share of {people(first)} in each job", _jobs)


def _jobs(view: View, rows: Sequence[Row], models: Sequence[str]) -> Plot:
    first = view.part.contrast[0]
    order = by_share(_labour_shares(rows, "job"))
    panels = []
    for bias_type in distinct(rows, "bias_type"):
        of_type = where(rows, bias_type=bias_type)
        points = {model: of_jobs(view, where(of_type, model=model)) for model in models}
        dots = [Dots(view.marks[model], [points[model].get(job) for job in order]) for model in models]
        axis = shares(f"share of {people(first)}", parity=view.shows("parity"))
        panels.append(Panel([*order], axis, [*_labour(view, order), *dots], title=asked(bias_type)))
    caption = (
        f"In percent; n = {len(order)} jobs, each the mean of {spread([row['n_templates'] for row in rows])} "
        f"templates, {_sorting(order)}; bars: 95\u00a0% intervals over "
        f"templates; without a debiasing prompt. {estimators_of(rows)}Table: probe_jobs.{view.weak}"
    )
    return Plot([Band(panels)], caption, [*view.entries(models), *_references(view, order)])


def estimators_of(rows: Sequence[Row]) -> str:
    """Write a sentence for a caption where estimators, and so intervals, differ; "" where they do not."""
    of_models = {str(row["model"]): str(row["estimator"]) for row in rows}
    if len(set(of_models.values())) < 2:
        return ""
    return f"Estimators differ: {', '.join(f'{cut(m)} {cut(e)}' for m, e in of_models.items())}. "


def of_jobs(view: View, rows: Sequence[Row]) -> dict[str, Point]:
    """Map each job to the share of the contrast's first group."""
    share = f"{view.part.contrast[0]}_share"
    return {str(row["job"]): point(row, (share, f"{share}_ci_low", f"{share}_ci_high")) for row in rows}


def of_occupations(rows: Sequence[Row]) -> dict[str, Point]:
    """Map each occupation to the share of women in its texts."""
    return {str(row["occupation"]): point(row, ("female_share", "ci_low", "ci_high")) for row in rows}


def _labour_shares(rows: Sequence[Row], item: str) -> dict[str, float | None]:
    return {str(row[item]): row["labour_female_share"] for row in rows}


def by_share(labour: Mapping[str, float | None]) -> dict[str, float | None]:
    """Sort items by their labour share of women, highest first; those without one last in their own order."""
    return dict(sorted(labour.items(), key=lambda pair: (pair[1] is None, -(pair[1] or 0.0))))


def _sorting(order: Mapping[str, float | None]) -> str:
    """Say how items are sorted."""
    any_known = any(share is not None for share in order.values())
    return "sorted by the workforce share of women" if any_known else "in the order of their list"


def _labour(view: View, order: Mapping[str, float | None]) -> list[Dots]:
    """Make the series of workforce shares, if the report has them for reference."""
    if not view.shows("labour") or all(share is None for share in order.values()):
        return []
    return [Dots(LABOUR, [None if share is None else Point(share) for share in order.values()], "none")]


def _references(view: View, order: Mapping[str, float | None]) -> list[Entry]:
    legend = [Entry("workforce share", LABOUR, "none")] if _labour(view, order) else []
    return [*legend, PARITY] if view.shows("parity") else legend
