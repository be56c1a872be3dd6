"""Draw several models in one figure, a row each: shares in answers and in texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from biaskit.common.wording import count
from biaskit.report.content import Content
from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.plot import (
    INKED,
    PARITY,
    Band,
    Dots,
    Entry,
    Panel,
    Plot,
    effects,
    ends_of,
    number,
    point,
    shares,
)
from biaskit.report.figures.style import FILLS, asked
from biaskit.report.figures.view import View, all_marks, figure
from biaskit.report.findings.groups import jobs_of
from biaskit.stats.contrast import Contrast
from biaskit.tables.quantities import SHARES
from biaskit.tables.query import Row, defined, distinct, where

MOST_MODELS = 8  # rows of the first figure; that of the question has all models
PITCH = 0.24


@dataclass(frozen=True, slots=True)
class Answers:
    """Rows of probe_groups of a view for the contrast's first group, by way to ask."""

    view: View
    rows: Mapping[str, Sequence[Row]]

    @classmethod
    def of(cls, view: View) -> Answers:
        """Pick the rows without a debiasing prompt; none in a study without a contrast."""
        gender = view.part.contrast[0]
        share, *_ = SHARES[view.part.rule.binary]
        rows = defined(where(view.plain("probe_groups"), gender=gender), share) if gender else []
        return cls(view, {asked(way): where(rows, bias_type=way) for way in distinct(rows, "bias_type")})

    def panels(self, models: Sequence[str]) -> Iterator[Panel]:
        """Make a panel of shares for each way to ask, with a series for each group of jobs."""
        view = self.view
        axis = shares(f"{view.whom} in their answers", parity=view.shows("parity"))
        for title, rows in self.rows.items():
            dots: list[Dots] = []
            for group, fill in self.groups():
                points = {}
                for row in where(rows, job_group=group):
                    mark = view.marks[row["model"]]
                    points[row["model"]] = point(row, SHARES[view.part.rule.binary], mark=mark)
                gone = None if dots else point(None)  # a model without answers has one dash
                dots.append(Dots(INKED, [points.get(model, gone) for model in models], fill))
            yield Panel(models, axis, dots, title=title, pitch=PITCH, apart=False, **_gaps(dots))

    def groups(self) -> list[tuple[str, str]]:
        """List the groups of jobs with the fill of their marks."""
        return list(zip(self.view.job_groups(), FILLS, strict=False))

    def entries(self) -> Iterator[Entry]:
        """Make the legend."""
        groups = self.groups()
        for group, fill in groups if len(groups) > 1 else ():
            yield Entry(jobs_of(self.view.part, group), INKED, fill)
        if self.view.shows("parity"):
            yield PARITY


def _gaps(dots: Sequence[Dots]) -> dict[str, Any]:
    """Write beside each row how far the first of two series is above the second, in points."""
    if len(dots) != 2:
        return {}
    pairs = zip(*(series.points for series in dots), strict=True)
    gaps = [number(a and a.x) - number(b and b.x) for a, b in pairs]
    beside = ["" if gap != gap else f"{100 * gap:+.0f}".replace("-", "−") for gap in gaps]
    return {"beside": beside, "heading": "gap", "joined": True}


def side_by_side(
    content: Content, name: str, answers: Answers | None, written: Mapping[str, Contrast], most: int
) -> Iterator[Figure]:
    """Draw the first models in the order of the page; none without data.

    `written`: the test of women in texts minus women in labour statistics of each model.
    """
    rows = [row for of_way in answers.rows.values() for row in of_way] if answers else []
    measured = {str(row["model"]) for row in rows} | set(written)
    every = [model for model in all_marks(content) if model in measured]
    models = every[:most]
    if not models:
        return
    panels: list[Panel] = []
    legend: list[Entry] = []
    if answers and rows:
        panels += answers.panels(models)
        legend += answers.entries()
    if written:
        marks = all_marks(content)
        points = [point(written.get(model), mark=marks[model]) for model in models]
        axis = effects(ends_of(points), 0.2, "points from workforce share")
        panels.append(Panel(models, axis, [Dots(INKED, points)], title="in texts", pitch=PITCH, apart=False))
    n = sorted({row["n_jobs"] for row in rows} | {row.n_a for row in written.values()})
    left_out = f" {most} of {len(every)} models." if len(every) > most else ""
    caption = (
        f"In percent; means over n = {' or '.join(map(str, n))} jobs or occupations; bars: 95\u00a0% "
        f"intervals.{left_out} Tables: probe_groups, tests.{answers.view.weak if answers else ''}"
    )
    yield figure(name, f"{count(len(every), 'model')} side by side", Plot([Band(panels)], caption, legend))
