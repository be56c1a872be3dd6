"""Several models in one picture, a row each: who is said in whose jobs, and who is written about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.content import Content
from biaskit.report.figures import panels, scales
from biaskit.report.figures.figure import Figure
from biaskit.report.figures.lettering import asked, clean, cut, people
from biaskit.report.figures.panels import Band, Dots, Panel, Point, point
from biaskit.report.figures.probe import job_groups_of, plain, shows
from biaskit.report.figures.sheet import FILLS, Entry
from biaskit.report.figures.style import INK, Mark
from biaskit.report.figures.view import Plot, View, all_marks, finished, views
from biaskit.report.findings.blocks import jobs_of
from biaskit.tables.query import Row, contrast_of, distinct, first, where
from biaskit.wording import count, percent, points_range, share_with_interval

MOST_MODELS = 8
"""Rows; the figure of a question has all models."""
PITCH = 0.24


def models_in_rows(content: Content, name: str) -> Iterator[Figure]:
    """One figure of the first models in the order of the page, where there is something to draw."""
    yield from _figure(content, next(iter(views(content, "probe")), None), name, MOST_MODELS)


def every_model(view: View) -> Iterator[Figure]:
    """The same of all models, where the first picture has not all of them."""
    if len(all_marks(view.content)) > MOST_MODELS:
        yield from _figure(view.content, view, f"{view.prefix}models", len(view.models))


def _figure(content: Content, probed: View | None, name: str, most: int) -> Iterator[Figure]:
    said = _groups(probed) if probed is not None and probed.part.contrast[0] else []
    written = _written(content) if most == MOST_MODELS else {}
    found = {str(row["model"]) for _, rows in said for row in rows} | set(written)
    every = [model for model in all_marks(content) if model in found]
    models = every[:most]
    shown = [_said(probed, title, rows, models) for title, rows in said] if probed is not None else []
    shown += [_against_labour(content, written, models)] if written else []
    if not models:
        return
    n = sorted({row["n_jobs"] for _, rows in said for row in rows} | {r["n_a"] for r in written.values()})
    more = f" {most} of {len(every)} models." if len(every) > most else ""
    caption = (
        f"In percent; means over n = {' or '.join(map(str, n))} jobs or occupations; bars: 95\u00a0% "
        f"intervals.{more} Tables: probe_groups, tests."
    )
    tips = [each.tip for panel in shown for one in panel.dots for each in one.points[:3] if each]
    legend = [*_legend(probed, said)]
    plot = Plot(
        [Band(shown)], caption, f"Dot plot of {count(len(models), 'model')}. {'; '.join(tips)}.", legend
    )
    yield finished(name, f"{count(len(every), 'model')} side by side", plot)


def _legend(view: View | None, said: Sequence[tuple[str, Sequence[Row]]]) -> list[Entry]:
    if view is None or not said:
        return []
    groups = list(zip(job_groups_of(view), FILLS, strict=False))
    named = [Entry(clean(jobs_of(view.part, group)), Mark(INK, "o"), fill=fill) for group, fill in groups]
    return [*(named if len(groups) > 1 else []), *[scales.PARITY] * shows(view, "parity")]


def _groups(view: View) -> list[tuple[str, list[Row]]]:
    """The rows of the contrast's first group, for each way to ask."""
    rows = where(plain(view, "probe_groups"), gender=view.part.contrast[0])
    asked_in = {bias_type: where(rows, bias_type=bias_type) for bias_type in distinct(rows, "bias_type")}
    known = {name: [row for row in own if row["share"] is not None] for name, own in asked_in.items()}
    return [(asked(name), own) for name, own in known.items() if own]


def _said(view: View, title: str, rows: Sequence[Row], models: Sequence[str]) -> Panel:
    """Shares by group of jobs."""
    gender = people(view.part.contrast[0])
    dots: list[Dots] = []
    for group, fill in zip(job_groups_of(view), [*FILLS] * len(rows), strict=False):
        found = {row["model"]: _dot(view, row, gender) for row in where(rows, job_group=group)}
        gone = None if dots else point(None)  # a model without answers has one dash
        dots.append(Dots(Mark(INK, "o"), [found.get(model, gone) for model in models], fill))
    parity = shows(view, "parity")
    scale = scales.shares(f"{gender} in their answers", parity=parity)
    return Panel(models, scale, dots, title=title, pitch=PITCH, apart=False)


def _dot(view: View, row: Row, gender: str) -> Point:
    columns = ("share", "ci_low", "ci_high")
    tip = f"{cut(row['model'])}, {clean(jobs_of(view.part, row['job_group']))}: "
    tip += f"{share_with_interval(*(row[c] for c in columns))} {gender}"
    tip += f"; coverage {percent(row['coverage'])} %" if row["coverage"] is not None else ""
    tip += f", {count(row['n_jobs'] or 0, 'job')} and {count(row['n_templates'] or 0, 'template')}"
    return point(row, columns, tip, mark=view.marks[row["model"]])


def _written(content: Content) -> dict[str, Row]:
    """Women in texts minus women in labour statistics, averaged over occupations, by model."""
    found = {}
    for view in views(content, "personas"):
        rows = view.rows("tests", quantity="represented_share", kind="paired", gender="female")
        for model in view.models:
            row = first([r for r in rows if contrast_of(r) == "labour"], model_a=model)
            if row is not None and row["estimate"] is not None:
                found[model] = row
    return found


def _against_labour(content: Content, rows: dict[str, Row], models: Sequence[str]) -> Panel:
    marks, points = all_marks(content), []
    for model in models:
        if model not in rows:
            points.append(point(None, mark=marks[model]))
            continue
        row = rows[model]
        low, high = (max(-1.0, min(1.0, panels.number(row[end]))) for end in ("ci_low", "ci_high"))
        tip = f"{cut(model)}: {100 * row['estimate']:+.0f} points against labour statistics"
        tip += f" [{points_range(low, high)}]" if low == low else ""
        tip += f", {count(row['n_a'] or 0, 'occupation')}"
        points.append(Point(row["estimate"], low, high, tip, marks[model]))
    dots = [Dots(Mark(INK, "o"), points)]
    limit = scales.widest(panels.ends_of(dots), 0.2)
    scale = scales.effects(limit, "women, points from labour statistics", "women, points")
    return Panel(models, scale, dots, title="in texts", pitch=PITCH, apart=False)
