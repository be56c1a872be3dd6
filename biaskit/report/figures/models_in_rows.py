"""Several models in one picture, a row each: who is said in whose jobs, and who is written about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from biaskit.report.content import Content
from biaskit.report.figures import dots
from biaskit.report.figures.figure import Figure
from biaskit.report.figures.lettering import asked, clean, cut, people, shorten
from biaskit.report.figures.probe import job_groups_of, plain, shows
from biaskit.report.figures.sheet import FILLS, MARGIN, Entry, Sheet, fill_style, marker_style
from biaskit.report.figures.style import INK, Mark
from biaskit.report.figures.view import Drawing, View, both_widths, number, views
from biaskit.report.findings.blocks import jobs_of
from biaskit.tables.query import Row, contrast_of, distinct, first, where
from biaskit.wording import count, percent, points_range, share_with_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_MODELS = 8
"""Rows; the figure of a question has all models."""
PITCH = 0.24


@dataclass(frozen=True, slots=True)
class Dot:
    """A number with its interval, of the n-th group of jobs."""

    x: float
    low: float
    high: float
    group: int
    n: int  # jobs or occupations
    tip: str


@dataclass(frozen=True, slots=True)
class Panel:
    """What one column shows: for each model its dots; shares (0 to 1), or points around labour statistics."""

    title: str
    axis: str
    of: dict[str, list[Dot]]
    shares: bool


def models_in_rows(content: Content, name: str) -> Iterator[Figure]:
    """One figure of the first models in the order of the page, where there is something to draw."""
    panels = [*_said(content), *_written(content)]
    found = dict.fromkeys(model for panel in panels for model in panel.of)
    if not found:
        return
    order = dict.fromkeys(model.label for part in content.parts for model in part.models)
    models = [model for model in order if model in found]
    title = f"{count(len(models), 'model')} side by side"
    yield both_widths(name, title, partial(_drawing, content, panels, models))


def _said(content: Content) -> Iterator[Panel]:
    """Shares of the contrast's first group by job group, a panel for each way to ask."""
    view = next(iter(views(content, "probe")), None)
    if view is None or not view.part.contrast[0]:
        return
    gender = view.part.contrast[0]
    rows = where(plain(view, "probe_groups"), gender=gender)
    groups = job_groups_of(view)
    for bias_type in distinct(rows, "bias_type"):
        own = [row for row in where(rows, bias_type=bias_type) if row["share"] is not None]
        of: dict[str, list[Dot]] = {}
        for row in own:
            of.setdefault(str(row["model"]), []).append(_dot(view, row, gender, groups))
        yield Panel(asked(bias_type), f"{people(gender)} in their answers", of, True)


def _dot(view: View, row: Row, gender: str, groups: Sequence[str]) -> Dot:
    group = str(row["job_group"])
    share = share_with_interval(row["share"], row["ci_low"], row["ci_high"])
    tip = f"{cut(row['model'])}, {clean(jobs_of(view.part, group))}: {share} {people(gender)}"
    tip += f"; coverage {percent(row['coverage'])} %" if row["coverage"] is not None else ""
    tip += f", {count(row['n_jobs'] or 0, 'job')} and {count(row['n_templates'] or 0, 'template')}"
    ends = number(row["ci_low"]), number(row["ci_high"])
    place = groups.index(group) if group in groups else 0
    return Dot(number(row["share"]), *ends, place, row["n_jobs"] or 0, tip)


def _written(content: Content) -> Iterator[Panel]:
    """Women in texts minus women in labour statistics, averaged over occupations."""
    of: dict[str, list[Dot]] = {}
    for view in views(content, "personas"):
        rows = view.rows("tests", quantity="represented_share", kind="paired", gender="female")
        for model in view.models:
            row = first([r for r in rows if contrast_of(r) == "labour"], model_a=model)
            if row is None or row["estimate"] is None:
                continue
            low, high = (max(-1.0, min(1.0, number(row[end]))) for end in ("ci_low", "ci_high"))
            tip = f"{cut(model)}: {100 * row['estimate']:+.0f} points against labour statistics"
            tip += f" [{points_range(low, high)}]" if low == low else ""
            tip += f", {count(row['n_a'] or 0, 'occupation')}"
            of[model] = [Dot(row["estimate"], low, high, 0, row["n_a"] or 0, tip)]
    if of:
        yield Panel("in texts", "women, points from labour statistics", of, False)


def _drawing(content: Content, panels: Sequence[Panel], every: Sequence[str], width: float) -> Drawing:
    models = list(every)[:MOST_MODELS]
    view = next((v for engine in ("probe", "personas") for v in views(content, engine)), None)
    assert view is not None  # there are panels
    said = any(dot.group for panel in panels for own in panel.of.values() for dot in own)
    groups = job_groups_of(view)[: len(FILLS)] if said else []
    ink = Mark(INK, "o")
    legend = [
        Entry(clean(jobs_of(view.part, group)), ink, fill=fill)
        for group, fill in zip(groups, FILLS, strict=False)
    ]
    legend += [Entry("as many women as men", line=":")] if groups else []
    stacked = width < 5
    left = dots.label_width(models, 0.36 * width if stacked else 0.3 * width)
    gap = 0.3
    n_across = 1 if stacked else len(panels)
    room = (width - left - 0.02) / n_across - gap
    block = len(models) * PITCH + 0.72
    sheet = Sheet(block * (len(panels) if stacked else 1) - 0.1, legend=legend, width=width)
    for k, panel in enumerate(panels):
        x, top = left + 0.12 + (0 if stacked else k * (room + gap)), 0.24 + (k * block if stacked else 0)
        if stacked or k == 0:
            for i, model in enumerate(models):
                sheet.text(left, top + (i + 0.5) * PITCH, shorten(model, left - MARGIN), ha="right")
        sheet.title(x, top - 0.12, panel.title, room)
        axes = sheet.axes(x, top, room, len(models) * PITCH)
        _panel(sheet, axes, panel, models, view, room)
    more = f" {MOST_MODELS} of {len(every)} models." if len(every) > MOST_MODELS else ""
    n = sorted({dot.n for panel in panels for own in panel.of.values() for dot in own})
    means = " or ".join(map(str, n))
    caption = (
        f"In percent; means over n = {means} jobs or occupations; bars: 95\u00a0% intervals.{more} Tables: "
        "probe_groups, tests."
    )
    told = [dot.tip for panel in panels for model in models[:3] for dot in panel.of.get(model, ())]
    return Drawing(sheet, caption, f"Dot plot of {count(len(models), 'model')}. {'; '.join(told)}.")


def _panel(sheet: Sheet, axes: Axes, panel: Panel, models: Sequence[str], view: View, room: float) -> None:
    dots.rows_axis(axes, len(models))
    if panel.shares:
        dots.share_axis(axes, panel.axis, parity=shows(view, "parity"))
        dots.percent_axis(axes, room)
    else:
        every = [x for own in panel.of.values() for dot in own for x in (dot.x, dot.low, dot.high)]
        dots.effect_axis(axes, dots.widest(every, 0.2), panel.axis)
        ticks = axes.get_xticks()
        axes.set_xticks(
            ticks, [f"{100 * tick:+.0f}".replace("-", "\u2212") if tick else "0" for tick in ticks]
        )
    for y, model in enumerate(models):
        own = panel.of.get(model, [])
        mark = view.marks[model]
        if len(own) > 1:
            ends = [dot.x for dot in own]
            axes.plot([min(ends), max(ends)], [y, y], color=mark.colour, linewidth=0.6, alpha=0.5, zorder=1)
        for dot in own:
            axes.plot([dot.low, dot.high], [y, y], color=mark.colour, linewidth=1.2, zorder=2)
            style = marker_style(mark, size=4.6) | fill_style(mark, FILLS[dot.group % len(FILLS)])
            (drawn,) = axes.plot([dot.x], [y], zorder=3, clip_on=False, **style)
            sheet.tip(drawn, [dot.tip])
        if not own:
            dots.dashes(axes, [y], mark.colour)
