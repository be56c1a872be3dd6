"""What each debiasing instruction changes (docs/methods.md#contrasts, Mattern et al. §5.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from biaskit.report.figures import dots, forest
from biaskit.report.figures.figure import Figure, Missing
from biaskit.report.figures.lettering import clean, cut, people, shorten
from biaskit.report.figures.sheet import Entry, Sheet
from biaskit.report.figures.style import INK, Mark
from biaskit.report.figures.view import Drawing, View, short, told
from biaskit.tables.query import Row, distinct, where
from biaskit.tables.verdict import direction_of


def debiasing(view: View) -> Iterator[Figure | Missing]:
    """Share under each instruction (and level) minus share without one."""
    title = "What each instruction changes"
    rows = forest.crossed(view.rows("tests"), "instructions", "levels")
    if not rows:
        reason = (
            "No row of tests holds an instruction against none: the study was asked without instructions."
        )
        yield view.missing("debiasing", title, reason)
        return
    for name, more, columns in forest.in_figures(view, rows, "debiasing"):
        draw = partial(_debiasing, every=rows, columns=columns)
        yield from view.pages(view.having(rows, "model_a"), name, title, draw, more=more)


def _debiasing(
    view: View, models: Sequence[str], every: Sequence[Row], columns: Sequence[tuple[str, str]]
) -> Drawing:
    rows = [
        row
        for row in every
        if row["model_a"] in models
        and row["gender"] in view.part.contrast
        and (row["bias_type"], row["group_a"]) in columns
    ]
    texts = {str(i["id"]): str(i["text"]) for i in view.part.instructions}
    lines = list(dict.fromkeys(str(row["instruction_a"]) for row in rows))
    labels = [
        shorten(f"{line} · {texts[line]}" if line in texts else f"level {line}", 1.9, sentence=True)
        for line in lines
    ]
    settings = distinct(rows, "setting")
    genders = forest.genders_of(view, rows)
    of_jobs = _effects_on_jobs(view)
    ends = forest.ends_of(rows, (jobs for key, jobs in of_jobs.items() if key[0] in models))
    n_series = len(models) * len(settings)
    grid = forest.Grid(columns, genders, labels, n_series, "with − without", dots.widest(ends, 0.1))
    legend = view.entries(models)
    if len(settings) > 1:
        legend += [Entry(clean(s), Mark(INK, "o"), hollow=i > 0) for i, s in enumerate(settings)]
    legend += [Entry("single jobs", forest.JOB), forest.NO_DIFFERENCE]
    legend += [dots.UNDEFINED] if any(row["estimate"] is None for row in rows) else []
    note = (
        f"n = {forest.n_jobs_of(rows)} jobs per group; points: difference of shares (−1 to 1), "
        "right of the line = larger with the instruction; bars: 95\u00a0% intervals over jobs and templates."
    )
    sheet = Sheet(grid.block * len(genders), legend=legend, note=note)
    for axes, gender, (bias_type, group) in forest.panels(sheet, grid):
        own = where(rows, bias_type=bias_type, group_a=group, gender=gender)
        found = {(r["model_a"], r["setting"], str(r["instruction_a"])): r for r in own}
        series, behind = [], []
        for model in models:
            for i, setting in enumerate(settings):
                of_lines = [found.get((model, setting, line)) for line in lines]
                series.append(dots.series_of(view.marks[model], of_lines, hollow=i > 0))
                keys = [(model, setting, line, bias_type, group, gender) for line in lines]
                behind.append([of_jobs.get(key, []) for key in keys])
        forest.jobs_behind(axes, behind, grid)
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


def _effects_on_jobs(view: View) -> forest.OfJobs:
    """Each job's share with an instruction minus without."""
    rows = view.rows("probe_jobs")
    same = ("model", "setting", "bias_type", "job")
    bare = {tuple(r[c] for c in same): r for r in where(rows, instruction_id=0)}

    def without(row: Row) -> Iterator[tuple[forest.Key, Row | None]]:
        if row["instruction_id"] != 0:
            key = (row["model"], row["setting"], str(row["instruction_id"]), row["bias_type"])
            yield key, bare.get(tuple(row[c] for c in same))

    return forest.differences_on_jobs(view, rows, without)
