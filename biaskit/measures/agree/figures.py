"""Draw answers and texts of a model beside each other: the first figure, and the gaps of occupations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from biaskit.common.wording import count, percent
from biaskit.measurement import words
from biaskit.report.content import Content
from biaskit.report.figures import FIRST, FigureKind, items, model_rows
from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.plot import (
    INKED,
    Axis,
    Band,
    Dots,
    Entry,
    Panel,
    Plot,
    Point,
    Spot,
    Square,
    shares,
)
from biaskit.report.figures.style import Mark, asked, cut, people
from biaskit.report.figures.view import PER_FIGURE, View, all_marks, figure, portions, short, views
from biaskit.report.findings.groups import jobs_of
from biaskit.report.questions import QuestionId
from biaskit.runs.store import slug
from biaskit.stats.contrast import Contrast
from biaskit.tables.quantities import BETWEEN_KINDS, SHARES, relation
from biaskit.tables.query import (
    Row,
    among,
    by_labels,
    defined,
    distinct,
    first,
    grouped,
    mean_over_prompts,
    where,
)

ANSWER = "answer"  # name of the first figure
TALLEST = 4.4  # inches of all rows: with legend and axis they fit a screen of 800 pixels
TABLE_OF = {"answers": "probe_jobs", "texts": "representation"}
CAPTIONS: Mapping[str, str] = words("agree")["captions"]
GAP_NAMES = {"probe_gap": "probe gap", "represented_gap": "gap in texts", "srb_spread": "SRB spread"}
FEWEST = 10  # occupations: of fewer no correlation is made (`stats/contrasts.py`, which imports scipy)
TITLE = "Gaps in the probe, in texts and in words"


def figures() -> Mapping[QuestionId, Sequence[FigureKind]]:
    """Name the figures of a whole page, the one at its top first."""
    return {FIRST: (answer,), "agree": (gaps,)}


def answer(content: Content) -> Iterator[Figure]:
    """Draw items of one model, or a row for each of several; none without data."""
    probed, written = (next(views(content, kind_name), None) for kind_name in ("probe", "personas"))
    if len(all_marks(content)) > 1:
        answers = model_rows.Answers.of(probed) if probed else None
        of_women: dict[str, Contrast] = {}  # women in texts minus women in labour statistics
        scope = {"quantity": "represented_share", "kind": "paired", "gender": "female"}
        for view in views(content, "personas"):
            for row in defined(view.tests(contrast="workforce", **scope), "estimate"):
                of_women.setdefault(row.model_a, row)
        most = model_rows.MOST_MODELS
        yield from model_rows.side_by_side(content, ANSWER, answers, of_women, most)
    elif probed or written:
        yield from _of_items(probed, written)


@dataclass(frozen=True, slots=True)
class _Measure:
    """One way to ask a model: the shares of the items."""

    panel: str  # of TABLE_OF
    name: str
    points: Mapping[str, Point]
    mark: Mark
    fill: str = ""


def _of_items(probed: View | None, written: View | None) -> Iterator[Figure]:
    """Draw the items of one model, if there is data and it fits a screen."""
    view = probed or written
    assert view is not None
    group = people(probed.part.contrast[0] if probed and probed.part.contrast[0] else "female")
    noun = "job" if probed else "occupation"
    measures, workforce = _measures(probed, written)
    # Every item with a share; where they are too many, those that both measurements have.
    items_of_panel: dict[str, set[str]] = {}
    for measure in measures:
        items_of_panel.setdefault(measure.panel, set()).update(measure.points)
    chosen = set().union(*items_of_panel.values())
    if len(chosen) > items.MOST_ROWS:
        common = set.intersection(*items_of_panel.values())
        chosen = common if len(common) > 1 else chosen
    order = {item: share for item, share in workforce.items() if item in chosen}
    points = chain.from_iterable(measure.points.values() for measure in measures)
    if all(point.x != point.x for point in points) or len(order) > items.MOST_ROWS:
        return
    panels = []
    for name in items_of_panel:
        rows = items.workforce_dots(view, order)
        for measure in measures:
            if measure.panel == name:
                rows.append(Dots(measure.mark, list(map(measure.points.get, order)), measure.fill))
        whom = probed.whom if probed and name == "answers" else group
        axis = shares(f"{whom} in its {name}", parity=view.shows("parity"))
        panels.append(Panel([*order], axis, rows, pitch=min(0.2, TALLEST / len(order)), apart=False))
    tables = " and ".join(TABLE_OF[name] for name in items_of_panel)
    sorting, weak = items.sorting(order), probed.weak if probed else ""
    means = ""
    if any(":" in measure.name for measure in measures) and probed is not None:
        means = CAPTIONS["means"].format(*(jobs_of(probed.part, group) for group in probed.job_groups()))
    caption = CAPTIONS["answer"].format(count(len(order), noun), sorting, means, tables, weak)
    legend = [Entry(measure.name, measure.mark, measure.fill) for measure in measures]
    plot = Plot([Band(panels)], caption, [*legend, *items.references(view, order)])
    yield figure(ANSWER, f"Share of {group} by {noun}", plot)


def _measures(probed: View | None, written: View | None) -> tuple[list[_Measure], dict[str, float | None]]:
    """List the ways in which the model was asked, and the items with their workforce share."""
    measures: list[_Measure] = []
    workforce: dict[str, float | None] = {}
    if probed is not None and probed.part.contrast[0]:
        rows, mark = probed.plain("probe_jobs"), probed.marks[probed.models[0]]
        workforce |= items.workforce_shares(rows, "job")
        for bias_type in distinct(rows, "bias_type"):
            points = items.of_jobs(probed, where(rows, bias_type=bias_type), of_two=probed.part.rule.binary)
            fill = "none" if bias_type == "explicit" else ""
            name = f"{asked(bias_type)}{_means(probed, bias_type)}"
            measures.append(_Measure("answers", name, points, mark, fill))
    if written is not None:
        rows = mean_over_prompts(written.rows("representation"))
        for item, share in items.workforce_shares(rows, "occupation").items():
            if workforce.get(item) is None:
                workforce[item] = share
        mark = Mark(written.marks[written.models[0]].colour, "s")
        name = "in texts, corrected by labels" if by_labels(rows) else "in texts"
        measures.append(_Measure("texts", name, items.of_occupations(rows), mark))
    return measures, items.by_share(workforce)


def _means(view: View, bias_type: str) -> str:
    """Write the means of two groups of jobs behind a way to ask; "" of other numbers of groups."""
    share, *_ = SHARES[view.part.rule.binary]
    rows = where(view.plain("probe_groups"), bias_type=bias_type, gender=view.part.contrast[0])
    found = (first(defined(rows, share), job_group=group) for group in view.job_groups())
    means = [percent(row[share]) for row in found if row is not None]
    return f": {' and '.join(means)} %" if len(means) == 2 else ""


def gaps(content: Content) -> Iterator[Figure]:
    """Draw gaps against each other (methods/comparisons#gaps): a figure per bias type and prompt format."""
    rows_of_page = []
    for row in content.between.get("gaps", ()):
        if sum(row[gap] is not None for gap in GAP_NAMES) > 1:
            rows_of_page.append(row)
    blocks = grouped(rows_of_page, "bias_type", "prompt_format")
    several = len({prompt_format for _, prompt_format in blocks}) > 1
    for (bias_type, prompt_format), rows in blocks.items():
        name = f"gaps-{slug(bias_type)}" + (f"-{slug(prompt_format)}" if several else "")
        title = f"{TITLE} ({cut(bias_type)}{f', prompt format {cut(prompt_format)}' if several else ''})"
        if len(distinct(rows, "occupation")) < FEWEST:
            continue
        for nth, place, some in portions(distinct(rows, "model"), PER_FIGURE):
            plot = _gaps(content, among(rows, "model", some), some, bias_type)
            yield figure(name + nth, title + place, plot)


def _gaps(content: Content, rows: Sequence[Row], models: Sequence[str], bias_type: str) -> Plot:
    marks_of_page = all_marks(content)
    marks = {model: marks_of_page.get(model, INKED) for model in models}
    squares = []
    for y, x in BETWEEN_KINDS:
        notes = []
        for model in models:
            shown, size = _relation(content, model, bias_type, relation(y, x))
            notes.append(f"{cut(model, 12)}: {shown}" if len(models) > 1 else f"{shown}{size}")
        squares.append(_square(rows, marks, x, y, notes))
    weak = "".join(view.weak for view in views(content, "probe"))
    caption = CAPTIONS["gaps"].format(len(distinct(rows, "occupation")), weak)
    legend = [Entry(model, mark) for model, mark in marks.items()] if len(marks_of_page) > 1 else []
    return Plot([Band(squares)], caption, legend)


def _square(rows: Sequence[Row], marks: Mapping[str, Mark], x: str, y: str, notes: Sequence[str]) -> Square:
    spots = {}
    every: list[Spot] = []
    for model, mark in marks.items():
        known = defined(where(rows, model=model), x, y)
        spots[mark] = [Spot(str(row["occupation"]), row[x], row[y]) for row in known]
        every += spots[mark]
    notes = notes if every else [*notes, "no occupation has both"]
    axes = []
    for gap, values in ((x, [spot.x for spot in every]), (y, [spot.y for spot in every])):
        low, high = min([-0.05, *values]), max([0.05, *values])
        room = 0.06 * (high - low)
        axes.append(Axis(GAP_NAMES[gap], low - room, high + room, line=0))
    return Square("", axes[0], axes[1], spots, notes=notes)


def _relation(content: Content, model: str, bias_type: str, quantity: str) -> tuple[str, str]:
    """Write ρ with its interval, and its n."""
    rows = where(content.tests, quantity=quantity, kind="spearman", model_a=model)
    row = next((row for row in rows if row.bias_type in (bias_type, "", None)), None)
    n = f", n = {row.n_a}" if row is not None and row.n_a is not None else ""
    if row is None or row.estimate is None:
        return "ρ –", n
    ends = "" if row.ci_low is None else f" [{short(row.ci_low)}, {short(row.ci_high)}]"
    return f"ρ {short(row.estimate)}{ends}", n
