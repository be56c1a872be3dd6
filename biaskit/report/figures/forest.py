"""Draw forests of differences: bands of panels of rows of tests.csv (methods/tests#contrasts)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from biaskit.report.figures.plot import Axis, Band, Dots, Panel
from biaskit.report.figures.style import asked, people
from biaskit.report.figures.view import View
from biaskit.report.findings.groups import jobs_of
from biaskit.stats.contrast import Contrast
from biaskit.tables.query import defined, distinct, where


def crossed(view: View, rows: Sequence[Contrast], *contrasts: str) -> list[Contrast]:
    """Pick the view's rows of shares for some contrasts, with the interval over all that they rest on."""
    picked = []
    for row in where(rows, kind="crossed", measurement=view.part.measurement):
        if row.whole == "share" and row.contrast in contrasts:
            picked.append(row)
    of_two = [row for row in picked if row.is_binary]
    return of_two if view.part.rule.binary and of_two else [row for row in picked if not row.is_binary]


def bands(
    view: View,
    rows: Sequence[Contrast],
    labels: Sequence[str],
    axis: Axis,
    dots: Callable[[Sequence[Contrast]], Sequence[Dots]],
) -> list[Band]:
    """Make a band for each gender of the contrast: panels of the series that `dots` makes of their rows."""
    job_groups = [g for g in view.job_groups() if where(rows, group_a=g)] or [""]
    bands_of_genders = []
    for gender in view.part.contrast:
        if not where(rows, gender=gender):
            continue
        panels = []
        for bias_type in distinct(rows, "bias_type"):
            for group in job_groups:
                of_panel = where(rows, bias_type=bias_type, group_a=group, gender=gender)
                named = jobs_of(view.part, group) if group else ""
                title = ", ".join(filter(None, (asked(bias_type), named)))
                panels.append(Panel(labels, axis, dots(of_panel), title=title))
        whom = view.whom if any(row.is_binary for row in rows) else people(gender)
        bands_of_genders.append(Band(panels, f"Share of {whom}"))
    return bands_of_genders


def n_jobs_of(rows: Sequence[Contrast]) -> str:
    """Say how many jobs the rows rest on."""
    return " or ".join(map(str, sorted({row["n_a"] for row in defined(rows, "n_a")}))) or "–"
