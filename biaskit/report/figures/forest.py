"""Draw forests of differences, such as what each instruction changes (methods/tests#contrasts)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.plot import INKED, Axis, Band, Dots, Entry, Panel, Plot, effects, point
from biaskit.report.figures.style import cut, people
from biaskit.report.figures.view import View
from biaskit.tables.query import Row, contrast_of, defined, distinct, where

SIDES = {"female-dominated": "mostly women", "male-dominated": "mostly men"}
"""Short names of the shipped groups of jobs or fields."""


def crossed(rows: Sequence[Row], *contrasts: str) -> list[Row]:
    """Pick rows of the prober's shares for some contrasts, with the interval over jobs and templates."""
    shares = where(rows, engine="probe", kind="crossed", quantity="share")
    return [row for row in shares if contrast_of(row) in contrasts]


def bands(
    view: View,
    rows: Sequence[Row],
    labels: Sequence[str],
    axis: Axis,
    dots: Callable[[Sequence[Row]], Sequence[Dots]],
) -> list[Band]:
    """Make a band for each gender of the contrast: panels of the series that `dots` makes of their rows."""
    job_groups = [g for g in view.job_groups() if where(rows, group_a=g)] or [""]
    bands_of_genders = []
    for gender in [g for g in view.part.contrast if where(rows, gender=g)]:
        panels = []
        for bias_type in distinct(rows, "bias_type"):
            for group in job_groups:
                of_panel = where(rows, bias_type=bias_type, group_a=group, gender=gender)
                title = ", ".join(filter(None, (cut(bias_type), SIDES.get(group, group))))
                panels.append(Panel(labels, axis, dots(of_panel), title=title))
        bands_of_genders.append(Band(panels, f"Share of {people(gender)}"))
    return bands_of_genders


def n_jobs_of(rows: Sequence[Row]) -> str:
    """Say how many jobs the rows rest on."""
    return " or ".join(map(str, sorted({row["n_a"] for row in defined(rows, "n_a")}))) or "–"


def ends_of(rows: Sequence[Row]) -> list[float]:
    """List the numbers that an axis of differences must cover."""
    return [end for p in map(point, rows) for end in (p.x, p.low, p.high)]


def debiasing(view: View) -> Iterator[Figure]:
    """Draw the share under each instruction (and level) minus the share without one."""
    rows = crossed(view.rows("tests"), "instructions", "levels")
    rows = [row for row in rows if row["gender"] in view.part.contrast]
    yield from view.charts(
        rows, "debiasing", "What each debiasing prompt changes", _debiasing, column="model_a"
    )


def _debiasing(view: View, rows: Sequence[Row], models: Sequence[str]) -> Plot:
    texts = {str(i["id"]): str(i["text"]) for i in view.part.instructions}
    lines = list(dict.fromkeys(str(row["instruction_a"]) for row in rows))
    labels = [f"{line} · {texts[line]}" if line in texts else f"level {line}" for line in lines]
    settings = distinct(rows, "setting")

    def dots(of_panel: Sequence[Row]) -> list[Dots]:
        rows_by_line = {(r["model_a"], r["setting"], str(r["instruction_a"])): r for r in of_panel}
        series = []
        for model in models:
            for i, setting in enumerate(settings):
                points = [point(rows_by_line.get((model, setting, line))) for line in lines]
                series.append(Dots(view.marks[model], points, "none" if i else ""))
        return series

    axis = effects(ends_of(rows), 0.1, "with − without, points")
    legend = view.entries(models)
    if len(settings) > 1:
        legend += [Entry(cut(s), INKED, "none" if i else "") for i, s in enumerate(settings)]
    legend.append(Entry("no difference", line=":"))
    caption = (
        "Share of each gender group with a debiasing prompt minus its share without one, in percentage "
        f"points; n = {n_jobs_of(rows)} jobs per group; right of the line: larger with the prompt; bars: "
        "95\u00a0% intervals over jobs and templates. Tables: tests (kind crossed, contrasts instructions "
        f"and levels).{view.weak}"
    )
    return Plot(bands(view, rows, labels, axis, dots), caption, legend)
