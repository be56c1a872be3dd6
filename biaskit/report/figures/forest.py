"""Forest plots of differences: panels, and what each instruction changes (docs/methods.md#contrasts)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from biaskit.report.figures import panels, scales
from biaskit.report.figures.figure import Figure
from biaskit.report.figures.lettering import asked, clean, cut, people
from biaskit.report.figures.panels import BEHIND, Band, Dots, Panel, Point, point
from biaskit.report.figures.probe import job_groups_of
from biaskit.report.figures.sheet import Entry
from biaskit.report.figures.style import INK, Mark
from biaskit.report.figures.view import Plot, View, told
from biaskit.stats.verdict import direction_of
from biaskit.tables.query import Row, contrast_of, distinct, where
from biaskit.wording import count, points, points_range

SIDES = {"female-dominated": "mostly women", "male-dominated": "mostly men"}
"""Short names of the shipped groups of jobs or fields."""
JOBS = Entry("single jobs", BEHIND)
Key = tuple[object, ...]
OfJobs = dict[Key, list[float]]


def crossed(rows: Sequence[Row], *contrasts: str) -> list[Row]:
    """Rows of the prober's shares for some contrasts, with the interval over jobs and templates."""
    found = where(rows, engine="probe", kind="crossed", quantity="share")
    return [row for row in found if contrast_of(row) in contrasts]


def bands(
    view: View,
    rows: Sequence[Row],
    labels: Sequence[str],
    scale: scales.Scale,
    dots: Callable[[Sequence[Row], tuple[str, str, str]], Sequence[Dots]],
) -> list[Band]:
    """A band for each gender of the contrast, a panel for each bias type and group of jobs.

    `dots` gets a panel's rows, and its bias type, group and gender.
    """
    job_groups = [g for g in job_groups_of(view) if where(rows, group_a=g)] or [""]
    columns = [(b, g) for b in distinct(rows, "bias_type") for g in job_groups]
    made = []
    for gender in [g for g in view.part.contrast if where(rows, gender=g)]:
        of_gender = []
        for bias_type, group in columns:
            own = where(rows, bias_type=bias_type, group_a=group, gender=gender)
            drawn, below = dots(own, (bias_type, group, gender)), SIDES.get(group, group)
            of_gender.append(Panel(labels, scale, drawn, title=asked(bias_type), below=below, sentences=True))
        made.append(Band(of_gender, f"Share of {people(gender)}"))
    return made


def n_jobs_of(rows: Sequence[Row]) -> str:
    """How many jobs the rows rest on, for a note."""
    n_jobs = sorted({row["n_a"] for row in rows if row["n_a"] is not None})
    return " or ".join(map(str, n_jobs)) or "–"


def limit_of(rows: Sequence[Row], of_jobs: Iterable[Iterable[float]], least: float) -> float:
    """Half the width of an axis of differences."""
    ends = [panels.number(row[column]) for row in rows for column in panels.ESTIMATE]
    return scales.widest(ends + [x for jobs in of_jobs for x in jobs], least)


def tip_of(row: Row, names: str) -> str:
    """'explicit, jobs …: 3 points [1 to 5] more women'."""
    if row["estimate"] is None:
        return f"{names}: not measured"
    ends = "" if row["ci_low"] is None else f" [{points_range(row['ci_low'], row['ci_high'])}]"
    n = f", {count(row['n_a'], 'job')}" if row["n_a"] is not None else ""
    return f"{names}: {people(row['gender'])} {points(row['estimate'])}{ends}{n}"


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


def debiasing(view: View) -> Iterator[Figure]:
    """Share under each instruction (and level) minus share without one."""
    rows = crossed(view.rows("tests"), "instructions", "levels")
    rows = [row for row in rows if row["gender"] in view.part.contrast]
    yield from view.charts(rows, "debiasing", "What each instruction changes", _debiasing, column="model_a")


def _debiasing(view: View, rows: Sequence[Row], models: Sequence[str]) -> Plot:
    texts = {str(i["id"]): str(i["text"]) for i in view.part.instructions}
    lines = list(dict.fromkeys(str(row["instruction_a"]) for row in rows))
    labels = [f"{line} · {texts[line]}" if line in texts else f"level {line}" for line in lines]
    settings = distinct(rows, "setting")
    of_jobs = _effects_on_jobs(view)

    def dots(own: Sequence[Row], column: tuple[str, str, str]) -> list[Dots]:
        found = {(r["model_a"], r["setting"], str(r["instruction_a"])): r for r in own}
        series = []
        for model in models:
            for i, setting in enumerate(settings):
                points = [_effect(found.get((model, setting, line))) for line in lines]
                behind = [of_jobs.get((model, setting, line, *column), []) for line in lines]
                series.append(Dots(view.marks[model], points, "none" if i else "", behind))
        return series

    limit = limit_of(rows, (jobs for key, jobs in of_jobs.items() if key[0] in models), 0.1)
    scale = scales.effects(limit, "with − without, points", "points")
    drawn = bands(view, rows, labels, scale, dots)
    legend = view.entries(models)
    if len(settings) > 1:
        fills = ["", *["none"] * (len(settings) - 1)]
        legend += [Entry(clean(s), Mark(INK, "o"), fill=f) for s, f in zip(settings, fills, strict=True)]
    legend += [JOBS, Entry("no difference", line="-")]
    caption = (
        "Share of each gender group under an instruction minus its share without one, in points (of −1 to "
        f"1); n = {n_jobs_of(rows)} jobs per group; right of the line = larger with the instruction; bars: "
        "95\u00a0% intervals over jobs and templates. Tables: tests (kind crossed, contrasts instructions "
        "and levels), probe_jobs."
    )
    said = told([_said_of_effects(model, rows) for model in models], "tests")
    return Plot(drawn, caption, f"Forest plot of {len(lines)} instructions. {said}", legend)


def _effect(row: Row | None) -> Point:
    if row is None:
        return point(None)
    names = f"{cut(row['model_a'])}, {cut(row['instruction_a'])}, {cut(row['group_a'] or 'all')} jobs"
    return point(row, tip=tip_of(row, names))


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
        f"{points(abs(most['estimate']))}."
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
