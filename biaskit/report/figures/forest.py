"""Forest plots of differences: panels, and what each instruction changes (docs/methods.md#contrasts)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.plot import (
    ESTIMATE,
    INKED,
    LEGEND_OF_BEHIND,
    NO_DIFFERENCE,
    Axis,
    Band,
    Dots,
    Entry,
    Panel,
    Plot,
    effects,
    number,
    point,
)
from biaskit.report.figures.style import asked, cut, people
from biaskit.report.figures.view import View, told
from biaskit.stats.verdict import direction_of
from biaskit.tables.query import Row, contrast_of, defined, distinct, where
from biaskit.wording import points

SIDES = {"female-dominated": "mostly women", "male-dominated": "mostly men"}
"""Short names of the shipped groups of jobs or fields."""
Place = tuple[str, str, str]
"""Bias type, group of jobs and gender of a panel."""
OfJobs = dict[tuple[object, ...], list[float]]


def crossed(rows: Sequence[Row], *contrasts: str) -> list[Row]:
    """Rows of the prober's shares for some contrasts, with the interval over jobs and templates."""
    shares = where(rows, engine="probe", kind="crossed", quantity="share")
    return [row for row in shares if contrast_of(row) in contrasts]


def bands(
    view: View,
    rows: Sequence[Row],
    labels: Sequence[str],
    axis: Axis,
    dots: Callable[[Sequence[Row], Place], Sequence[Dots]],
) -> list[Band]:
    """A band for each gender of the contrast, a panel for each bias type and group of jobs.

    `dots` gets a panel's rows and its place.
    """
    job_groups = [g for g in view.job_groups() if where(rows, group_a=g)] or [""]
    made = []
    for gender in [g for g in view.part.contrast if where(rows, gender=g)]:
        panels = []
        for bias_type in distinct(rows, "bias_type"):
            for group in job_groups:
                own = where(rows, bias_type=bias_type, group_a=group, gender=gender)
                title = ", ".join(filter(None, (asked(bias_type), SIDES.get(group, group))))
                panels.append(Panel(labels, axis, dots(own, (bias_type, group, gender)), title=title))
        made.append(Band(panels, f"Share of {people(gender)}"))
    return made


def n_jobs_of(rows: Sequence[Row]) -> str:
    """How many jobs the rows rest on, for a note."""
    return " or ".join(map(str, sorted({row["n_a"] for row in defined(rows, "n_a")}))) or "–"


def ends_of(rows: Sequence[Row], of_jobs: Iterable[Iterable[float]]) -> list[float]:
    """Every number that an axis of differences must hold."""
    ends = [number(row[column]) for row in rows for column in ESTIMATE]
    return [*ends, *(x for jobs in of_jobs for x in jobs)]


def differences_on_jobs(
    view: View, rows: Sequence[Row], others: Callable[[Row], Iterable[tuple[tuple[object, ...], Row | None]]]
) -> OfJobs:
    """Each job's share minus that of every row it is held against, where both rest on as many templates.

    `others` gives them with the beginning of a key, which ends with the job group and the gender.
    """
    differences: OfJobs = {}
    for row in rows:
        for key, other in others(row):
            if other is None or other["n_templates"] != row["n_templates"]:
                continue
            for gender in view.part.contrast:
                a, b = row.get(f"{gender}_share"), other.get(f"{gender}_share")
                if a is not None and b is not None:
                    differences.setdefault((*key, row["job_group"], gender), []).append(a - b)
    return differences


def debiasing(view: View) -> Iterator[Figure]:
    """Share under each instruction (and level) minus share without one."""
    rows = crossed(view.rows("tests"), "instructions", "levels")
    rows = [row for row in rows if row["gender"] in view.part.contrast]
    yield from view.charts(rows, "debiasing", "What each instruction changes", _debiasing, column="model_a")


def _debiasing(view: View, rows: Sequence[Row], models: Sequence[str]) -> Plot:
    texts = {str(i["id"]): str(i["text"]) for i in view.part.instructions}
    lines = list(dict.fromkeys(str(row["instruction_a"]) for row in rows))
    labels = [f"{line} · {texts[line]}" if line in texts else f"level {line}" for line in lines]
    settings, of_jobs = distinct(rows, "setting"), _effects_on_jobs(view)

    def dots(own: Sequence[Row], place: Place) -> list[Dots]:
        rows_by_line = {(r["model_a"], r["setting"], str(r["instruction_a"])): r for r in own}
        series = []
        for model in models:
            for i, setting in enumerate(settings):
                points = [point(rows_by_line.get((model, setting, line))) for line in lines]
                behind = [of_jobs.get((model, setting, line, *place), []) for line in lines]
                series.append(Dots(view.marks[model], points, "none" if i else "", behind))
        return series

    shown_jobs = (jobs for key, jobs in of_jobs.items() if key[0] in models)
    axis = effects(ends_of(rows, shown_jobs), 0.1, "with − without, points")
    legend = view.entries(models)
    if len(settings) > 1:
        legend += [Entry(cut(s), INKED, "none" if i else "") for i, s in enumerate(settings)]
    legend += [LEGEND_OF_BEHIND, NO_DIFFERENCE]
    caption = (
        "Share of each gender group under an instruction minus its share without one, in points (of −1 to "
        f"1); n = {n_jobs_of(rows)} jobs per group; right of the line = larger with the instruction; bars: "
        "95\u00a0% intervals over jobs and templates. Tables: tests (kind crossed, contrasts instructions "
        "and levels), probe_jobs."
    )
    said = told([_said_of_effects(model, rows) for model in models], "tests")
    alt = f"Forest plot of {len(lines)} instructions. {said}"
    return Plot(bands(view, rows, labels, axis, dots), caption, alt, legend)


def _said_of_effects(model: str, rows: Sequence[Row]) -> str:
    """How many effects are clearly up or down, and the largest."""
    own = defined(where(rows, model_a=model), "estimate")
    if not own:
        return f"{cut(model)}: no effect is defined."
    up, down = (sum(direction_of(row) == way for row in own) for way in ("higher", "lower"))
    most = max(own, key=lambda r: abs(r["estimate"]))
    way = "raises" if most["estimate"] > 0 else "lowers" if most["estimate"] < 0 else "leaves"
    return (
        f"{cut(model)}: of {len(own)} effects {up} clearly raise and {down} clearly lower a share; the "
        f"largest, {cut(most['instruction_a'])} on {cut(most['group_a'] or 'all')} jobs "
        f"({cut(most['bias_type'])}), {way} the share of {people(most['gender'])} by "
        f"{points(abs(most['estimate']))}."
    )


def _effects_on_jobs(view: View) -> OfJobs:
    """Each job's share with an instruction minus without."""
    rows = view.rows("probe_jobs")
    same = ("model", "setting", "bias_type", "job")
    bare = {tuple(r[c] for c in same): r for r in where(rows, instruction_id=0)}

    def without(row: Row) -> Iterator[tuple[tuple[object, ...], Row | None]]:
        if row["instruction_id"] != 0:
            key = (row["model"], row["setting"], str(row["instruction_id"]), row["bias_type"])
            yield key, bare.get(tuple(row[c] for c in same))

    return differences_on_jobs(view, rows, without)
