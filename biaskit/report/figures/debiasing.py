"""What each debiasing instruction changes (docs/methods.md#contrasts, Mattern et al. §5.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from biaskit.report.figures.dots import UNDEFINED, dot_panel, effect_axis, series_of, widest
from biaskit.report.figures.figure import Figure, Missing
from biaskit.report.figures.forest import (
    JOB,
    NO_DIFFERENCE,
    Grid,
    Key,
    crossed,
    in_figures,
    jobs_behind,
    panels,
)
from biaskit.report.figures.lettering import clean, cut, people, shorten
from biaskit.report.figures.sheet import Entry, Sheet
from biaskit.report.figures.style import INK, Mark
from biaskit.report.figures.view import Drawing, View, missing, number, pages, short, told
from biaskit.stats.verdict import direction_of
from biaskit.tables.query import Row, distinct


def debiasing(view: View) -> Iterator[Figure | Missing]:
    """Share under each instruction (and level) minus share without one."""
    title = f"What each instruction changes ({view.heading})"
    rows = crossed(view.rows("tests"), "instructions", "levels")
    if not rows:
        reason = (
            "No row of tests holds an instruction against none: the study was asked without instructions."
        )
        yield missing(view.prefix, "debiasing", title, reason)
        return
    present = {row["model"] if "model" in row else row["model_a"] for row in rows}
    some = [model for model in view.models if model in present]
    for name, more, columns in in_figures(view, rows, "debiasing"):
        yield from pages(view, some, name, title + more, partial(_debiasing, columns=columns))


def _debiasing(view: View, models: Sequence[str], columns: Sequence[tuple[str, str]]) -> Drawing:
    rows = [
        row
        for row in crossed(view.rows("tests"), "instructions", "levels")
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
    genders = [g for g in view.part.contrast if any(row["gender"] == g for row in rows)]
    of_jobs = _effects_on_jobs(view)
    ends = [number(row[c]) for row in rows for c in ("estimate", "ci_low", "ci_high")]
    ends += [x for key, jobs in of_jobs.items() if key[0] in models for x in jobs]
    n_series = len(models) * len(settings)
    grid = Grid(columns, genders, labels, n_series, "with − without", widest(ends, 0.1))
    legend = [*view.entries(models)]
    if len(settings) > 1:
        legend += [Entry(clean(s), Mark(INK, "o"), hollow=i > 0) for i, s in enumerate(settings)]
    legend += [Entry("single jobs", JOB), NO_DIFFERENCE]
    legend += [UNDEFINED] if any(row["estimate"] is None for row in rows) else []
    n_jobs = sorted({row["n_a"] for row in rows if row["n_a"] is not None})
    note = (
        f"n = {' or '.join(map(str, n_jobs)) or '–'} jobs per group; points: difference of shares (−1 to 1), "
        "right of the line = larger with the instruction; bars: 95\u00a0% intervals over jobs and templates."
    )
    sheet = Sheet(grid.block * len(genders), legend=legend, note=note)
    found = {
        (r["model_a"], r["setting"], r["bias_type"], r["group_a"], r["gender"], str(r["instruction_a"])): r
        for r in rows
    }
    for axes, gender, (bias_type, group) in panels(sheet, grid):
        series, behind = [], []
        for model in models:
            for i, setting in enumerate(settings):
                own = [found.get((model, setting, bias_type, group, gender, line)) for line in lines]
                series.append(series_of(view.marks[model], own, hollow=i > 0))
                behind.append(
                    [of_jobs.get((model, setting, bias_type, group, gender, line), []) for line in lines]
                )
        jobs_behind(axes, behind, grid)
        dot_panel(axes, series, len(lines), grid.pitch)
        effect_axis(axes, grid.limit, grid.axis)
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


def _effects_on_jobs(view: View) -> dict[Key, list[float]]:
    """Each job's share with minus without, where both rest on as many templates."""
    rows = view.rows("probe_jobs")
    at = {(r["model"], r["setting"], r["bias_type"], r["job"], r["instruction_id"]): r for r in rows}
    found: dict[Key, list[float]] = {}
    for (model, setting, bias_type, job, instruction), row in at.items():
        bare = at.get((model, setting, bias_type, job, 0))
        if instruction == 0 or bare is None or bare["n_templates"] != row["n_templates"]:
            continue
        for gender in view.part.contrast:
            a, b = row.get(f"{gender}_share"), bare.get(f"{gender}_share")
            if a is not None and b is not None:
                key = (model, setting, bias_type, row["job_group"], gender, str(instruction))
                found.setdefault(key, []).append(a - b)
    return found
