"""Figures of the prober (docs/methods.md#cells-to-tables): shares of jobs and of groups, where they vary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from biaskit.report.figures import dots
from biaskit.report.figures.figure import Figure, Missing
from biaskit.report.figures.lettering import asked, clean, cut, people, shorten
from biaskit.report.figures.sheet import WIDTH, Entry, Sheet, marker_style
from biaskit.report.figures.style import HATCHES, INK, Mark, look_of
from biaskit.report.figures.view import Drawing, View, mean, number, short, told
from biaskit.report.findings.blocks import jobs_of
from biaskit.tables.query import Row, distinct, in_main_setting, where

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABOUR_MARK = Mark(INK, "d")
LABOUR = Entry("labour statistics", LABOUR_MARK, hollow=True)
INTERVAL = "95\u00a0% intervals over templates"


def plain(view: View, table: str) -> list[Row]:
    """Rows without an instruction, in the plain setting (in its only one where there is no plain one)."""
    return in_main_setting(view.rows(table, instruction_id=0))


def shows(view: View, reference: str) -> bool:
    """Whether the report holds numbers against parity, or against labour statistics (`labour`)."""
    return view.content.reference in (reference, "both")


def by_labour(rows: Sequence[Row], item: str) -> dict[str, float | None]:
    """Items with their labour share, the highest share of women first; unknown ones last, in study order."""
    return by_share({str(row[item]): row["labour_female_share"] for row in rows})


def by_share(labour: Mapping[str, float | None]) -> dict[str, float | None]:
    """Items with the highest labour share of women first, those without one last."""
    return dict(sorted(labour.items(), key=lambda pair: (pair[1] is None, -(pair[1] or 0.0))))


def job_groups_of(view: View) -> list[str]:
    """Job groups, the one with the highest share of women in labour statistics first."""
    shares: dict[str, list[float]] = {}
    for row in view.rows("probe_jobs"):
        shares.setdefault(str(row["job_group"]), []).append(number(row["labour_female_share"]))
    return sorted(shares, key=lambda group: -(mean(shares[group]) or 0.0))


def spread(counts: Sequence[int | None]) -> str:
    """25, or 4 to 25, for a note."""
    known = [count for count in counts if count is not None]
    if not known:
        return "–"
    return str(known[0]) if min(known) == max(known) else f"{min(known)} to {max(known)}"


def estimators_of(rows: Sequence[Row]) -> str:
    """A sentence for a caption where the rows' estimators differ: their intervals are not alike."""
    of = {str(row["model"]): str(row["estimator"]) for row in rows}
    if len(set(of.values())) < 2:
        return ""
    return f"Estimators differ: {', '.join(f'{cut(m)} {cut(e)}' for m, e in of.items())}. "


def range_of(values: dict[str, float]) -> str:
    """The least and the greatest value with their names, for an alternative text."""
    defined = {name: value for name, value in values.items() if value == value}
    if not defined:
        return "no value is defined"
    least, most = min(defined, key=defined.__getitem__), max(defined, key=defined.__getitem__)
    if defined[least] == defined[most]:
        return f"{short(defined[least])} in {f'all {len(defined)}' if len(defined) > 1 else cut(least)}"
    return f"from {short(defined[least])} ({cut(least)}) to {short(defined[most])} ({cut(most)})"


def jobs(view: View) -> Iterator[Figure | Missing]:
    """Share of the contrast's first group in each job with its interval, sorted by labour share."""
    first = view.part.contrast[0]
    rows = plain(view, "probe_jobs") if first else ()
    reason = "There is no table probe_jobs for this study."
    return view.charts(rows, "jobs", f"Share of {people(first)} in each job", reason, _jobs)


def _jobs(view: View, rows: Sequence[Row], models: Sequence[str]) -> Drawing:
    first = view.part.contrast[0]
    unit = f"share of {people(first)}"
    bias_types = distinct(rows, "bias_type")
    order = by_labour(rows, "job")
    templates = spread([row["n_templates"] for row in rows])
    n = f"n = {len(order)} jobs, each the mean of {templates} templates"
    legend = view.entries(models)
    legend += [LABOUR] if shows(view, "labour") else []
    legend += [dots.PARITY] if shows(view, "parity") else []
    legend += [dots.UNDEFINED] if any(row[f"{first}_share"] is None for row in rows) else []
    pitch = dots.row_height(len(models))
    left = dots.label_width(order)
    top = 0.36 if len(order) > 20 else 0.2
    sheet = Sheet(len(order) * pitch + top + 0.32, legend=legend)
    dots.row_labels(sheet, order, top, pitch, left)
    width = (WIDTH - left - 0.1 - len(bias_types) * dots.GUTTER - 0.1) / len(bias_types) - 0.05
    columns = (f"{first}_share", f"{first}_share_ci_low", f"{first}_share_ci_high")
    said = []
    for i, bias_type in enumerate(bias_types):
        x = left + 0.1 + i * (width + dots.GUTTER + 0.1)
        sheet.title(x, 0.06, asked(bias_type))
        axes = sheet.axes(x, top, width, len(order) * pitch)
        series = []
        for model in models:
            of_job = {r["job"]: r for r in where(rows, model=model, bias_type=bias_type)}
            series.append(dots.series_of(view.marks[model], [of_job.get(job) for job in order], columns))
            said.append(_said_of_jobs(model, str(bias_type), of_job, first))
        dots.dot_panel(axes, series, len(order), pitch)
        dots.share_axis(axes, unit, parity=shows(view, "parity"), above=len(order) > 20)
        if shows(view, "labour"):
            labour = [number(share) for share in order.values()]
            style = marker_style(LABOUR_MARK, hollow=True, size=4)
            axes.plot(labour, range(len(order)), zorder=4, clip_on=False, **style)
    caption = (
        f"{unit.capitalize()} (0 to 1) in the probability on the listed words, per job, sorted by the share "
        f"of women in labour statistics; {n}; {INTERVAL}; instruction none. {estimators_of(rows)}Table: "
        "probe_jobs."
    )
    return Drawing(sheet, caption, f"Dot plot of the {unit} in {len(order)} jobs. {told(said, 'probe_jobs')}")


def _said_of_jobs(model: str, bias_type: str, of_job: dict[str, Row], group: str) -> str:
    shares = {job: number(row[f"{group}_share"]) for job, row in of_job.items()}
    means = []
    for job_group in sorted({str(row["job_group"]) for row in of_job.values() if row["job_group"]}):
        own = [number(row[f"{group}_share"]) for row in of_job.values() if row["job_group"] == job_group]
        means.append(f"mean {short(mean(own))} in {cut(job_group)} jobs")
    return f"{cut(model)}, {cut(bias_type)}: {'; '.join([range_of(shares), *means])}."


def groups(view: View) -> Iterator[Figure | Missing]:
    """Stacked shares of every gender group per model and job group, jobs beneath, coverage beside."""
    reason = "There is no table probe_groups for this study."
    rows = plain(view, "probe_groups")
    return view.charts(rows, "groups", "Shares of each job group", reason, _groups, size=10)


def _groups(view: View, rows: Sequence[Row], models: Sequence[str]) -> Drawing:
    bias_types = distinct(rows, "bias_type")
    job_groups = [g for g in job_groups_of(view) if any(row["job_group"] == g for row in rows)]
    # The contrast's groups stand at the two ends, so that each can be read from a straight edge.
    first, last = view.part.contrast
    genders = [first, *(g for g in distinct(rows, "gender") if g not in (first, last)), last]
    note = _note_of_groups(view, rows, job_groups, genders[0])
    legend = [Entry(people(g), patch=look_of(g, genders)) for g in genders]
    pitch = 0.34
    block = len(models) * pitch + 0.78
    sheet = Sheet(block * len(job_groups), legend=legend)
    left = dots.label_width(models, 1.6)
    width = (WIDTH - left - 0.1) / len(bias_types) - 0.62
    said = []
    for k, job_group in enumerate(job_groups):
        top = k * block + 0.44
        dots.row_labels(sheet, models, top - 0.12 * pitch, pitch, left)
        for i, bias_type in enumerate(bias_types):
            x = left + 0.1 + i * (width + 0.62)
            sheet.title(x, top - 0.28, asked(bias_type), width)
            if job_group:
                sheet.text(x, top - 0.12, shorten(jobs_of(view.part, job_group), width))
            sheet.text(x + width + 0.08, top - 0.12, "cov.")
            axes = sheet.axes(x, top, width, len(models) * pitch)
            dots.rows_axis(axes, len(models))
            dots.share_axis(axes, "share", parity=shows(view, "parity"))
            for y, model in enumerate(models):
                same = where(rows, model=model, bias_type=bias_type, job_group=job_group)
                own = {row["gender"]: row for row in same}
                beside = _bar(axes, view, own, genders, y)
                sheet.text(x + width + 0.08, top + (y + 0.38) * pitch, beside)
                shares = [f"{people(g)} {short(own[g]['share'] if g in own else None)}" for g in genders]
                place = f"{cut(model)}, {cut(bias_type)}, {cut(job_group)} jobs"
                said.append(f"{place}: {', '.join(shares)}.")
    caption = (
        f"{note} Hatches tell the gender groups apart without colour; instruction none. "
        f"{estimators_of(rows)}Tables: probe_groups, probe_jobs."
    )
    return Drawing(sheet, caption, f"Stacked bars. {told(said, 'probe_groups')}")


def _note_of_groups(view: View, rows: Sequence[Row], job_groups: Sequence[str], gender: str) -> str:
    n_jobs = ", ".join(
        f"{next(r['n_jobs'] for r in rows if r['job_group'] == g)} {cut(g)}" for g in job_groups
    )
    templates = spread([row["n_templates"] for row in rows])
    bounds = any(row["share_low"] is not None for row in rows)
    thin = " (thick) and the bounds of top-k (thin)" if bounds else ""
    return (
        f"n = {n_jobs} jobs × {templates} templates. Bars: means over jobs (0 to 1) and, for "
        f"{people(gender)}, the 95\u00a0% interval over jobs and templates{thin}; ticks under a "
        "bar: single jobs. cov.: mean probability on the listed words (coverage); in brackets and pale: its "
        f"median is under {view.part.floor:g}, so the shares rest on little; –: not measured."
    )


def _bar(axes: Axes, view: View, own: Mapping[str, Row], genders: Sequence[str], y: int) -> str:
    """One model's stacked bar with its interval and its jobs; returns its coverage, to stand beside it."""
    shares = [number(own[g]["share"]) if g in own else number(None) for g in genders]
    if any(share != share for share in shares):
        return "–"
    first = own[genders[0]]
    median = first["coverage_median"]
    rests_on_little = median is not None and median < view.part.floor
    parts = [(s, *look_of(g, genders)) for s, g in zip(shares, genders, strict=True)]
    dots.stacked(axes, y - 0.12, parts, 0.5, alpha=0.4 if rests_on_little else None, zorder=2)
    ends = [number(first["ci_low"]), number(first["ci_high"])]
    axes.plot(ends, [y - 0.12] * 2, color="#000000", linewidth=1.6, solid_capstyle="butt", zorder=4)
    if first["share_low"] is not None:
        bounds = [first["share_low"], first["share_high"]]
        axes.plot(bounds, [y - 0.3] * 2, color="#000000", linewidth=0.7, marker="|", markersize=4, zorder=4)
    same = {column: first[column] for column in ("model", "bias_type", "job_group")}
    of_jobs = [number(row[f"{genders[0]}_share"]) for row in where(plain(view, "probe_jobs"), **same)]
    dots.ticks_at(axes, of_jobs, [y + 0.3] * len(of_jobs), 0.09, color=INK, linewidth=0.7)
    coverage = "–" if first["coverage"] is None else f"{first['coverage']:.2g}"
    return f"[{coverage}]" if rests_on_little else coverage


_SOURCES = (
    ("var_job", "jobs", "#b8a37a"),
    ("var_template", "templates", "#7c9cb5"),
    ("var_residual", "residual", "#e0e0e0"),
)


def variance(view: View) -> Iterator[Figure | Missing]:
    """The part of the variance of a share that lies between jobs, templates, and in the rest."""
    first = view.part.contrast[0]
    rows = where(plain(view, "probe_variance"), gender=first)
    reason = "There is no table probe_variance: it takes several jobs and templates."
    title = f"Where the share of {people(first)} varies"
    return view.charts(rows, "variance", title, reason, _variance, size=10)


def _variance(view: View, rows: Sequence[Row], models: Sequence[str]) -> Drawing:
    bias_types = distinct(rows, "bias_type")
    lines = list(dict.fromkeys((str(r["model"]), str(r["job_group"])) for r in rows))
    job_groups = job_groups_of(view)
    lines.sort(key=lambda line: (models.index(line[0]), job_groups.index(line[1])))
    measured = plain(view, "probe_groups")
    n_jobs = {str(r["job_group"]): r["n_jobs"] for r in measured}
    n = ", ".join(f"{count} {cut(group)}" for group, count in n_jobs.items())
    templates = " and ".join(map(str, distinct(measured, "n_templates")))
    note = (
        f"n = {n} jobs × {templates} templates; parts of the variance of the cells' shares (0 to 1, no "
        "interval); SD: square root of the whole variance (–: not measured)."
    )
    legend = [Entry(name, patch=(colour, HATCHES[i])) for i, (_, name, colour) in enumerate(_SOURCES)]
    pitch = 0.2
    sheet = Sheet(len(lines) * pitch + 0.62, legend=legend)
    named = [(model, jobs_of(view.part, group) if group else "") for model, group in lines]
    labels = [", ".join(clean(text) for text in line if text) for line in named]
    left = dots.label_width(labels, 2.3)
    dots.row_labels(sheet, labels, 0.3, pitch, left)
    width = (WIDTH - left - 0.1) / len(bias_types) - 0.5
    said = []
    for i, bias_type in enumerate(bias_types):
        x = left + 0.1 + i * (width + 0.5)
        sheet.title(x, 0.12, asked(bias_type))
        sheet.text(x + width + 0.06, 0.12, "SD")
        axes = sheet.axes(x, 0.3, width, len(lines) * pitch)
        axes.set_ylim(len(lines) - 0.5, -0.5)
        axes.set_yticks([])
        dots.share_axis(axes, "part of the variance", parity=False)
        for y, (model, group) in enumerate(lines):
            own = where(rows, model=model, job_group=group, bias_type=bias_type)
            beside, sentence = _variance_bar(axes, own, y)
            sheet.text(x + width + 0.06, 0.3 + (y + 0.5) * pitch, beside)
            said.append(sentence)
    caption = f"{note} Negative components are 0. Instruction none. Table: probe_variance."
    return Drawing(sheet, caption, f"Stacked bars. {told(said, 'probe_variance')}")


def _variance_bar(axes: Axes, own: Sequence[Row], y: int) -> tuple[str, str]:
    """A bar of the parts; the standard deviation, to stand beside it, and a sentence."""
    parts = [number(own[0][column]) for column, _, _ in _SOURCES] if own else [number(None)]
    total = sum(parts)
    if not total > 0:
        return "0" if total == 0 else "–", ""
    shown = zip(parts, _SOURCES, HATCHES, strict=False)
    dots.stacked(axes, y, [(part / total, colour, hatch) for part, (_, _, colour), hatch in shown], 0.62)
    row = own[0]
    said = ", ".join(f"{name} {short(p / total)}" for p, (_, name, _) in zip(parts, _SOURCES, strict=True))
    sentence = f"{cut(row['model'])}, {cut(row['bias_type'])}, {cut(row['job_group'])}: {said}."
    return f"{total**0.5:.2f}".removeprefix("0"), sentence
