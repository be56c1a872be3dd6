"""Forest plots of differences: panels, and what each instruction changes (docs/methods.md#contrasts)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from biaskit.report.figures import dots
from biaskit.report.figures.figure import Figure, Missing
from biaskit.report.figures.lettering import asked, clean, cut, people, shorten
from biaskit.report.figures.probe import job_groups_of
from biaskit.report.figures.sheet import MARGIN, WIDTH, Entry, Sheet
from biaskit.report.figures.style import INK, Mark
from biaskit.report.figures.view import Drawing, View, number, short, told
from biaskit.stats.verdict import direction_of
from biaskit.tables.query import Row, contrast_of, distinct, where

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIDES = {"female-dominated": "mostly women", "male-dominated": "mostly men"}
"""Short names of the shipped groups of jobs or fields."""
PER_FIGURE = 4
"""Panels side by side; more job groups take one figure for each bias type."""
JOB = Mark("#9a9a9a", "|")
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
        return dots.row_height(self.n_series)

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
    size = min(len(job_groups), PER_FIGURE)
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
    for of_rows, offset in zip(values, dots.offsets(len(values), grid.pitch), strict=True):
        for y, jobs in enumerate(of_rows):
            xs += jobs
            ys += [y + offset] * len(jobs)
    dots.ticks_at(axes, xs, ys, 0.022 / grid.pitch, color=JOB.colour, linewidth=0.5, zorder=1)


def panels(sheet: Sheet, grid: Grid) -> Iterator[tuple[Axes, str, tuple[str, str]]]:
    """Axes for every block and column with their titles; row labels at the left of each block."""
    left = dots.label_width(grid.labels, 2.0)
    width = (WIDTH - left - 0.12) / len(grid.columns) - dots.GUTTER - 0.02
    for i, gender in enumerate(grid.blocks):
        top = i * grid.block + 0.58
        sheet.title(MARGIN, top - 0.46, f"Share of {people(gender)}")
        dots.row_labels(sheet, grid.labels, top, grid.pitch, left)
        for j, (bias_type, group) in enumerate(grid.columns):
            x = left + 0.12 + j * (width + dots.GUTTER + 0.02)
            sheet.title(x, top - 0.3, asked(bias_type), width)
            sheet.text(x, top - 0.14, shorten(SIDES.get(group, group), width + dots.GUTTER))
            yield sheet.axes(x, top, width, len(grid.labels) * grid.pitch), gender, (bias_type, group)


def debiasing(view: View) -> Iterator[Figure | Missing]:
    """Share under each instruction (and level) minus share without one."""
    title = "What each instruction changes"
    reason = "No row of tests holds an instruction against none: the study was asked without instructions."
    rows = crossed(view.rows("tests"), "instructions", "levels")
    for name, more, columns in in_figures(view, rows, "debiasing") if rows else [("debiasing", "", [])]:
        draw = partial(_debiasing, columns=columns)
        yield from view.charts(rows, name, title, reason, draw, column="model_a", more=more)


def _debiasing(
    view: View, every: Sequence[Row], models: Sequence[str], columns: Sequence[tuple[str, str]]
) -> Drawing:
    rows = [
        row
        for row in every
        if row["gender"] in view.part.contrast and (row["bias_type"], row["group_a"]) in columns
    ]
    texts = {str(i["id"]): str(i["text"]) for i in view.part.instructions}
    lines = list(dict.fromkeys(str(row["instruction_a"]) for row in rows))
    labels = [
        shorten(f"{line} · {texts[line]}" if line in texts else f"level {line}", 1.9, sentence=True)
        for line in lines
    ]
    settings = distinct(rows, "setting")
    genders = genders_of(view, rows)
    of_jobs = _effects_on_jobs(view)
    ends = ends_of(rows, (jobs for key, jobs in of_jobs.items() if key[0] in models))
    n_series = len(models) * len(settings)
    grid = Grid(columns, genders, labels, n_series, "with − without", dots.widest(ends, 0.1))
    legend = view.entries(models)
    if len(settings) > 1:
        legend += [Entry(clean(s), Mark(INK, "o"), hollow=i > 0) for i, s in enumerate(settings)]
    legend += [Entry("single jobs", JOB), Entry("no difference", line="-")]
    legend += [dots.UNDEFINED] if any(row["estimate"] is None for row in rows) else []
    note = (
        f"n = {n_jobs_of(rows)} jobs per group; points: difference of shares (−1 to 1), "
        "right of the line = larger with the instruction; bars: 95\u00a0% intervals over jobs and templates."
    )
    sheet = Sheet(grid.block * len(genders), legend=legend)
    for axes, gender, (bias_type, group) in panels(sheet, grid):
        own = where(rows, bias_type=bias_type, group_a=group, gender=gender)
        found = {(r["model_a"], r["setting"], str(r["instruction_a"])): r for r in own}
        series, behind = [], []
        for model in models:
            for i, setting in enumerate(settings):
                of_lines = [found.get((model, setting, line)) for line in lines]
                series.append(dots.series_of(view.marks[model], of_lines, hollow=i > 0))
                keys = [(model, setting, line, bias_type, group, gender) for line in lines]
                behind.append([of_jobs.get(key, []) for key in keys])
        jobs_behind(axes, behind, grid)
        dots.dot_panel(axes, series, len(lines), grid.pitch)
        dots.effect_axis(axes, grid.limit, grid.axis)
    caption = (
        f"Share of each gender group under an instruction minus its share without one. {note} "
        "Tables: tests (kind crossed, contrasts instructions and levels), probe_jobs."
    )
    said = told([_said_of_effects(model, rows) for model in models], "tests")
    return Drawing(sheet, caption, f"Forest plot of {len(lines)} instructions. {said}")


def _said_of_effects(model: str, rows: Sequence[Row]) -> str:
    """How many effects are clearly up or down, and the largest."""
    own = [r for r in rows if r["model_a"] == model and r["estimate"] is not None]
    if not own:
        return f"{cut(model)}: no effect is defined."
    up, down = (sum(direction_of(row) == way for row in own) for way in ("higher", "lower"))
    most = max(own, key=lambda r: abs(r["estimate"]))
    way = "raises" if most["estimate"] > 0 else "lowers" if most["estimate"] < 0 else "leaves"
    return (
        f"{cut(model)}: of {len(own)} effects {up} clearly raise and {down} clearly lower a share; the "
        f"largest, {cut(most['instruction_a'])} on {cut(most['group_a'] or 'all')} jobs "
        f"({cut(most['bias_type'])}), {way} the share of {people(most['gender'])} by "
        f"{short(abs(most['estimate']))}."
    )


def _effects_on_jobs(view: View) -> OfJobs:
    """Each job's share with an instruction minus without."""
    rows = view.rows("probe_jobs")
    same = ("model", "setting", "bias_type", "job")
    bare = {tuple(r[c] for c in same): r for r in where(rows, instruction_id=0)}

    def without(row: Row) -> Iterator[tuple[Key, Row | None]]:
        if row["instruction_id"] != 0:
            key = (row["model"], row["setting"], str(row["instruction_id"]), row["bias_type"])
            yield key, bare.get(tuple(row[c] for c in same))

    return differences_on_jobs(view, rows, without)
