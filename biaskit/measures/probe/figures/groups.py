"""Draw shares of groups of jobs, and where they vary (methods/averages#cells-to-tables)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from biaskit.common.wording import percent
from biaskit.measurement import words
from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.plot import Band, Bar, Entry, Panel, Plot, number, shares
from biaskit.report.figures.style import HATCHES, asked, cut, look_of, people
from biaskit.report.figures.view import View, spread
from biaskit.report.findings.groups import jobs_of
from biaskit.tables.coverage import WEAK, coverage_of, is_under
from biaskit.tables.query import Row, column, defined, distinct, first, grouped, named, where
from biaskit.tables.reasons import do_differ

CAPTIONS: Mapping[str, str] = words("probe")["captions"]


def groups(view: View) -> Iterator[Figure]:
    """Draw stacked shares of gender groups per model and job group, jobs beneath, coverage beside."""
    yield from view.charts(view.plain("probe_groups"), "groups", "Shares of each job group", _groups, size=10)


def _groups(view: View, rows: Sequence[Row], models: Sequence[str]) -> Plot:
    # The contrast's groups are at the two ends, so that each can be read from a straight edge.
    left, right = view.part.contrast
    genders = sorted(distinct(rows, "gender"), key=lambda gender: (gender != left, gender == right))
    bands = []
    for group in view.job_groups():
        if not where(rows, job_group=group):
            continue
        panels = []
        for bias_type in distinct(rows, "bias_type"):
            of_panel = where(rows, bias_type=bias_type, job_group=group)
            panels.append(_shares(view, of_panel, models, genders))
        bands.append(Band(panels, _heading(view, group)))
    said = {"people": people(left), "weak": percent(WEAK), "estimators": estimators_of(rows), "thin": ""}
    said["over"] = words("probe")["printed"]["over"][named(rows, "n_jobs") == [1]]
    if defined(rows, "share_low"):
        said["thin"] = CAPTIONS["thin"]
    templates = spread(rows, "n_templates")
    caption = CAPTIONS["groups"].format(jobs=_n_jobs(rows), templates=templates, **said)
    legend = [Entry(people(g), patch=look_of(g, genders)) for g in genders]
    return Plot(bands, caption, legend)


def _heading(view: View, group: str) -> str:
    """Write "Jobs mostly held by women" above the panels of a group of jobs; "" where there is none."""
    name = jobs_of(view.part, group) if group else ""
    return cut(name[:1].upper() + name[1:])


def estimators_of(rows: Sequence[Row]) -> str:
    """Write a sentence for a caption where estimators, and so intervals, differ; "" where they do not."""
    of_models = {str(row["model"]): str(row["estimator"]) for row in rows}
    if not do_differ(of_models.values()):
        return ""
    return f"Estimators differ: {', '.join(f'{cut(m)} {cut(e)}' for m, e in of_models.items())}. "


def _n_jobs(rows: Sequence[Row]) -> str:
    """Write '20 female-dominated, 20 male-dominated'."""
    by_group = grouped(rows, "job_group").items()
    return ", ".join(f"{rows_of_group[0]['n_jobs']} {cut(name)}" for (name,), rows_of_group in by_group)


def _shares(view: View, rows: Sequence[Row], models: Sequence[str], genders: Sequence[str]) -> Panel:
    jobs = view.plain("probe_jobs")
    bars: list[Bar | None] = []
    beside = []
    for model in models:
        row_of = {row["gender"]: row for row in defined(where(rows, model=model), "share")}
        row = row_of.get(genders[0])
        if row is None or not row_of.keys() >= {*genders}:
            bars.append(None)
            beside.append("–")
            continue
        little = is_under(coverage_of([row], of_two=view.part.rule.binary), WEAK)
        of_jobs = where(jobs, **{name: row[name] for name in ("model", "bias_type", "job_group")})
        parts = [(row_of[gender]["share"], *look_of(gender, genders)) for gender in genders]
        interval = number(row["ci_low"]), number(row["ci_high"])
        bounds = None if row["share_low"] is None else (row["share_low"], row["share_high"])
        behind = list(map(number, column(of_jobs, f"{genders[0]}_share")))
        bars.append(Bar(parts, pale=little, interval=interval, bounds=bounds, behind=behind))
        coverage = "–" if row["coverage"] is None else f"{row['coverage']:.2g}"
        beside.append(f"[{coverage}]" if little else coverage)
    title = asked(rows[0]["bias_type"]) if rows else ""
    axis = shares("share", parity=view.shows("parity"))
    return Panel(models, axis, (), bars, title, beside, "cov.", pitch=0.34)


_SOURCES: Mapping[str, Sequence[str]] = words("probe")["variance"]
"""Column of a part of the variance → its name and colour."""


def variance(view: View) -> Iterator[Figure]:
    """Draw the parts of a share's variance: between jobs, between templates, and the rest."""
    gender = view.part.contrast[0]
    rows, title = view.plain("probe_variance"), f"Where the share of {people(gender)} varies"
    yield from view.charts(where(rows, gender=gender), "variance", title, _variance, size=10)


def _variance(view: View, rows: Sequence[Row], models: Sequence[str]) -> Plot:
    bands = []
    for group in view.job_groups():
        of_group = where(rows, job_group=group)
        biases = distinct(of_group, "bias_type")
        panels = [_parts(where(of_group, bias_type=bias_type), models) for bias_type in biases]
        if panels:
            bands.append(Band(panels, _heading(view, group)))
    measured = view.plain("probe_groups")
    templates = " and ".join(map(str, distinct(measured, "n_templates")))
    caption = CAPTIONS["variance"].format(_n_jobs(measured), templates)
    legend = []
    for (name, colour), hatch in zip(_SOURCES.values(), HATCHES, strict=False):
        legend.append(Entry(name, patch=(colour, hatch)))
    return Plot(bands, caption, legend)


def _parts(rows: Sequence[Row], models: Sequence[str]) -> Panel:
    """Stack the parts of the variance of one group of jobs in one way to ask, their root beside."""
    bars: list[Bar | None] = []
    deviations = []
    for model in models:
        row = first(rows, model=model)
        parts = [number(row[name] if row else None) for name in _SOURCES]
        total = sum(parts)
        if total > 0:
            deviations.append(f"{total**0.5:.2f}".removeprefix("0"))
            looks = zip(parts, _SOURCES.values(), HATCHES, strict=False)
            bars.append(Bar([(part / total, colour, hatch) for part, (_, colour), hatch in looks]))
        else:
            deviations.append("0" if total == 0 else "–")
            bars.append(None)
    axis, title = shares("part of the variance"), asked(rows[0]["bias_type"])
    return Panel(models, axis, (), bars, title, deviations, "SD", pitch=0.24)
