"""Draw several models in one figure, a row each: shares in answers and in texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.common.wording import count
from biaskit.report.content import Content
from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.plot import INKED, PARITY, Band, Dots, Entry, Panel, Plot, effects, point, shares
from biaskit.report.figures.style import FILLS, asked, people
from biaskit.report.figures.view import View, all_marks, figure, views
from biaskit.report.findings.blocks import jobs_of
from biaskit.tables.query import Row, contrast_of, defined, distinct, first, where

MOST_MODELS = 8  # rows of the first figure; that of the question has all models
PITCH = 0.24


def model_rows(content: Content, name: str) -> Iterator[Figure]:
    """Draw the first models in the order of the page; none without data."""
    yield from _figure(content, next(iter(views(content, "probe")), None), name, MOST_MODELS)


def every_model(view: View) -> Iterator[Figure]:
    """Draw all models, if the first figure left some out."""
    if len(all_marks(view.content)) > MOST_MODELS:
        yield from _figure(view.content, view, f"{view.prefix}models", len(view.models))


def _figure(content: Content, probed: View | None, name: str, most: int) -> Iterator[Figure]:
    answers: dict[str, list[Row]] = {}  # of the contrast's first group, by way to ask
    if probed is not None and probed.part.contrast[0]:
        rows = defined(where(probed.plain("probe_groups"), gender=probed.part.contrast[0]), "share")
        answers = {asked(kind): where(rows, bias_type=kind) for kind in distinct(rows, "bias_type")}
    written = _written(content) if most == MOST_MODELS else {}
    measured = {str(row["model"]) for rows in answers.values() for row in rows} | set(written)
    every = [model for model in all_marks(content) if model in measured]
    models, panels, legend = every[:most], [], []
    if not models:
        return
    if probed is not None and answers:
        groups = list(zip(probed.job_groups(), FILLS, strict=False))
        panels += [_shares(probed, title, rows, models, groups) for title, rows in answers.items()]
        entries = [Entry(jobs_of(probed.part, group), INKED, fill) for group, fill in groups]
        legend += entries if len(groups) > 1 else []
        legend += [PARITY] if probed.shows("parity") else []
    if written:
        marks = all_marks(content)
        points = [point(written.get(model), mark=marks[model]) for model in models]
        ends = [end for p in points for end in (p.x, p.low, p.high)]
        axis = effects(ends, 0.2, "points from workforce share")
        panels.append(Panel(models, axis, [Dots(INKED, points)], title="in texts", pitch=PITCH, apart=False))
    n = sorted(
        {row["n_jobs"] for rows in answers.values() for row in rows} | {r["n_a"] for r in written.values()}
    )
    left_out = f" {most} of {len(every)} models." if len(every) > most else ""
    caption = (
        f"In percent; means over n = {' or '.join(map(str, n))} jobs or occupations; bars: 95\u00a0% "
        f"intervals.{left_out} Tables: probe_groups, tests.{probed.weak if probed else ''}"
    )
    title = f"{count(len(every), 'model')} side by side"
    yield figure(name, title, Plot([Band(panels)], caption, legend))


def _shares(
    view: View, title: str, rows: Sequence[Row], models: Sequence[str], groups: Sequence[tuple[str, str]]
) -> Panel:
    """Make a panel of shares, with a series for each group of jobs."""
    dots: list[Dots] = []
    for group, fill in groups:
        points = {
            row["model"]: point(row, ("share", "ci_low", "ci_high"), mark=view.marks[row["model"]])
            for row in where(rows, job_group=group)
        }
        gone = None if dots else point(None)  # a model without answers has one dash
        dots.append(Dots(INKED, [points.get(model, gone) for model in models], fill))
    axis = shares(f"{people(view.part.contrast[0])} in their answers", parity=view.shows("parity"))
    return Panel(models, axis, dots, title=title, pitch=PITCH, apart=False)


def _written(content: Content) -> dict[str, Row]:
    """Map each model to its test of women in texts minus women in labour statistics, over occupations."""
    rows_by_model = {}
    for view in views(content, "personas"):
        rows = view.rows("tests", quantity="represented_share", kind="paired", gender="female")
        rows = [row for row in defined(rows, "estimate") if contrast_of(row) == "labour"]
        for model in view.models:
            if (row := first(rows, model_a=model)) is not None:
                rows_by_model[model] = row
    return rows_by_model
