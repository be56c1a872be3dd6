"""Panels of forest plots: differences with their intervals, single jobs behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from biaskit.report.figures.dots import GUTTER, label_width, offsets, row_height, row_labels, ticks_at
from biaskit.report.figures.lettering import cut, people, shorten
from biaskit.report.figures.probe import job_groups_of
from biaskit.report.figures.sheet import MARGIN, WIDTH, Entry, Sheet
from biaskit.report.figures.style import Mark
from biaskit.report.figures.view import View, number
from biaskit.tables.query import Row, contrast_of, distinct, where

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PER_FIGURE = 4
"""Panels side by side; more job groups take one figure for each bias type."""
JOB = Mark("#9a9a9a", "|")
NO_DIFFERENCE = Entry("no difference", line="-")
Key = tuple[object, ...]
OfJobs = dict[Key, list[float]]


@dataclass(frozen=True, slots=True)
class Grid:
    """Panels of one forest: columns are (bias type, job group), blocks are gender groups."""

    columns: Sequence[tuple[str, str]]
    blocks: Sequence[str]
    labels: Sequence[str]  # clean, one for each row
    n_series: int
    axis: str
    limit: float
    margin: float | None = None

    @property
    def pitch(self) -> float:
        """Inches between rows."""
        return row_height(self.n_series)

    @property
    def block(self) -> float:
        """Inches of one block with its titles and axis."""
        return len(self.labels) * self.pitch + 0.92


def crossed(rows: Sequence[Row], *contrasts: str) -> list[Row]:
    """Rows of the prober's shares for some contrasts, with the interval over jobs and templates."""
    return [
        row
        for row in where(rows, engine="probe", kind="crossed", quantity="share")
        if contrast_of(row) in contrasts
    ]


def in_figures(
    view: View, rows: Sequence[Row], name: str
) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Names, ends of titles and columns: one figure where all panels fit side by side, else several."""
    job_groups = [g for g in job_groups_of(view) if any(row["group_a"] == g for row in rows)]
    bias_types = distinct(rows, "bias_type")
    columns = [(b, g) for b in bias_types for g in job_groups or [""]]
    if len(columns) <= PER_FIGURE:
        yield name, "", columns
        return
    size = len(job_groups) if len(job_groups) <= PER_FIGURE else PER_FIGURE
    for i in range(0, len(columns), size):
        some = columns[i : i + size]
        said = " and ".join(dict.fromkeys(cut(b) for b, _ in some))
        yield f"{name}-part-{i // size + 1}", f", {said}", some


def genders_of(view: View, rows: Sequence[Row]) -> list[str]:
    """The groups of the contrast that have a row."""
    present = {row["gender"] for row in rows}
    return [gender for gender in view.part.contrast if gender in present]


def n_jobs_of(rows: Sequence[Row]) -> str:
    """How many jobs the rows rest on, for a note."""
    n_jobs = sorted({row["n_a"] for row in rows if row["n_a"] is not None})
    return " or ".join(map(str, n_jobs)) or "–"


def ends_of(rows: Sequence[Row], of_jobs: Iterable[Iterable[float]]) -> list[float]:
    """Every number that an axis of differences must hold."""
    ends = [number(row[column]) for row in rows for column in ("estimate", "ci_low", "ci_high")]
    return ends + [x for jobs in of_jobs for x in jobs]


def differences_on_jobs(
    view: View, rows: Sequence[Row], others: Callable[[Row], Iterable[tuple[Key, Row | None]]]
) -> OfJobs:
    """Each job's share minus that of every row it is held against, where both rest on as many templates.

    `others` gives them with the beginning of a key, which ends with the job group and the gender.
    """
    found: OfJobs = {}
    for row in rows:
        for key, other in others(row):
            if other is None or other["n_templates"] != row["n_templates"]:
                continue
            for gender in view.part.contrast:
                a, b = row.get(f"{gender}_share"), other.get(f"{gender}_share")
                if a is not None and b is not None:
                    found.setdefault((*key, row["job_group"], gender), []).append(a - b)
    return found


def jobs_behind(axes: Axes, values: Sequence[Sequence[Sequence[float]]], grid: Grid) -> None:
    """Single jobs as faint ticks behind their group's mean."""
    xs: list[float] = []
    ys: list[float] = []
    for of_rows, offset in zip(values, offsets(len(values), grid.pitch), strict=True):
        for y, jobs in enumerate(of_rows):
            xs += jobs
            ys += [y + offset] * len(jobs)
    ticks_at(axes, xs, ys, 0.022 / grid.pitch, color=JOB.colour, linewidth=0.5, zorder=1)


def panels(sheet: Sheet, grid: Grid) -> Iterator[tuple[Axes, str, tuple[str, str]]]:
    """Axes for every block and column with their titles; row labels at the left of each block."""
    left = label_width(grid.labels, 2.0)
    width = (WIDTH - left - 0.12) / len(grid.columns) - GUTTER - 0.02
    for i, gender in enumerate(grid.blocks):
        top = i * grid.block + 0.58
        sheet.title(MARGIN, top - 0.46, f"Share of {people(gender)}")
        row_labels(sheet, grid.labels, top, grid.pitch, left)
        for j, (bias_type, group) in enumerate(grid.columns):
            x = left + 0.12 + j * (width + GUTTER + 0.02)
            sheet.title(x, top - 0.3, bias_type, width)
            sheet.text(x, top - 0.14, shorten(group, width + GUTTER))
            yield sheet.axes(x, top, width, len(grid.labels) * grid.pitch), gender, (bias_type, group)
