"""Shares of the prober: a dot for each job, a bar for each group of jobs.

See docs/methods.md#cells-to-tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from biaskit.report.figures.dots import (
    GUTTER,
    PARITY,
    UNDEFINED,
    dot_panel,
    panel_title,
    row_height,
    row_labels,
    rows_axis,
    series_of,
    share_axis,
    ticks_at,
)
from biaskit.report.figures.figure import Figure, Missing
from biaskit.report.figures.lettering import clean, cut, people, shorten, text_width
from biaskit.report.figures.sheet import MARGIN, WIDTH, Entry, Sheet, marker_style
from biaskit.report.figures.style import INK, Mark, colour_of, hatch_of
from biaskit.report.figures.view import Drawing, View, charts, mean, number, short, told
from biaskit.tables.query import Row, distinct, in_main_setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABOUR = Entry("labour statistics", Mark(INK, "d"), hollow=True)
INTERVAL = "95\u00a0% intervals over templates"


def plain(view: View, table: str) -> list[Row]:
    """Rows without an instruction, in the plain setting (in its only one where there is no plain one)."""
    return in_main_setting(view.rows(table, instruction_id=0))


def shows_parity(view: View) -> bool:
    """Whether the report holds numbers against parity."""
    return view.content.reference in ("parity", "both")


def shows_labour(view: View) -> bool:
    """Whether the report holds numbers against labour statistics."""
    return view.content.reference in ("labour", "both")


def by_labour(rows: Sequence[Row], item: str) -> dict[str, float | None]:
    """Items with their labour share, the highest share of women first; unknown ones last, in study order."""
    shares = {str(row[item]): row["labour_female_share"] for row in rows}
    return dict(sorted(shares.items(), key=lambda pair: (pair[1] is None, -(pair[1] or 0.0))))


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


# --- a dot for each job --------------------------------------------------------------------------------


def jobs(view: View) -> Iterator[Figure | Missing]:
    """Share of the contrast's first group in each job with its interval, sorted by labour share."""
    rows = plain(view, "probe_jobs")
    first = view.part.contrast[0]
    title = f"Share of {people(first)} in each job ({view.heading})"
    reason = "There is no table probe_jobs for this study."
    yield from charts(view, rows if first else (), "jobs", title, reason, _jobs)


def _jobs(view: View, models: Sequence[str]) -> Drawing:
    rows = [row for row in plain(view, "probe_jobs") if row["model"] in models]
    first = view.part.contrast[0]
    unit = f"share of {people(first)}"
    bias_types = distinct(rows, "bias_type")
    order = by_labour(rows, "job")
    templates = spread([row["n_templates"] for row in rows])
    lacking = any(row[f"{first}_share"] is None for row in rows)
    n = f"n = {len(order)} jobs, each the mean of {templates} templates"
    legend = view.entries(models)
    legend += [LABOUR] if shows_labour(view) else []
    legend += [PARITY] if shows_parity(view) else []
    legend += [UNDEFINED] if lacking else []
    pitch = row_height(len(models))
    left = label_width(order)
    top = 0.36 if len(order) > 20 else 0.2
    sheet = Sheet(
        len(order) * pitch + top + 0.32, legend=legend, note=f"{n}; bars: {INTERVAL}; unit: share, 0 to 1."
    )
    row_labels(sheet, [shorten(job, left - MARGIN) for job in order], top, pitch, left)
    width = (WIDTH - left - 0.1 - len(bias_types) * GUTTER - 0.1) / len(bias_types) - 0.05
    columns = (f"{first}_share", f"{first}_share_ci_low", f"{first}_share_ci_high")
    said = []
    for i, bias_type in enumerate(bias_types):
        x = left + 0.1 + i * (width + GUTTER + 0.1)
        panel_title(sheet, x, 0.06, clean(bias_type))
        axes = sheet.axes(x, top, width, len(order) * pitch)
        series = []
        for model in models:
            of_job = {r["job"]: r for r in rows if r["model"] == model and r["bias_type"] == bias_type}
            series.append(series_of(view.marks[model], [of_job.get(job) for job in order], columns))
            said.append(_said_of_jobs(model, str(bias_type), of_job, first))
        dot_panel(axes, series, len(order), pitch)
        share_axis(axes, unit, parity=shows_parity(view), above=len(order) > 20)
        if shows_labour(view):
            labour = [number(share) for share in order.values()]
            style = marker_style(LABOUR.mark or Mark(INK, "d"), hollow=True, size=4)
            axes.plot(labour, range(len(order)), zorder=4, clip_on=False, **style)
    caption = (
        f"{unit.capitalize()} (0 to 1) in the probability on the listed words, per job, sorted by the share "
        f"of women in labour statistics; {n}; {INTERVAL}; instruction none. {estimators_of(rows)}Table: "
        "probe_jobs."
    )
    return Drawing(sheet, caption, f"Dot plot of the {unit} in {len(order)} jobs. {told(said, 'probe_jobs')}")


def label_width(labels: Sequence[str] | dict[str, float | None], most: float = 1.8) -> float:
    """Inches that row labels may take on the left."""
    return min(most, MARGIN + max((text_width(clean(label)) for label in labels), default=0.3))


def _said_of_jobs(model: str, bias_type: str, of_job: dict[str, Row], group: str) -> str:
    shares = {job: number(row[f"{group}_share"]) for job, row in of_job.items()}
    means = []
    for job_group in sorted({str(row["job_group"]) for row in of_job.values() if row["job_group"]}):
        own = [number(row[f"{group}_share"]) for row in of_job.values() if row["job_group"] == job_group]
        means.append(f"mean {short(mean(own))} in {cut(job_group)} jobs")
    return f"{cut(model)}, {cut(bias_type)}: {'; '.join([range_of(shares), *means])}."


# --- bars for groups -----------------------------------------------------------------------------------


BAR_PITCH = 0.34
"""Inches from one model's bar to the next."""


def groups(view: View) -> Iterator[Figure | Missing]:
    """Stacked shares of every gender group per model and job group, jobs beneath, coverage beside."""
    rows = plain(view, "probe_groups")
    title = f"Shares of each job group ({view.heading})"
    reason = "There is no table probe_groups for this study."
    yield from charts(view, rows, "groups", title, reason, _groups, size=10)


def _groups(view: View, models: Sequence[str]) -> Drawing:
    rows = [row for row in plain(view, "probe_groups") if row["model"] in models]
    bias_types = distinct(rows, "bias_type")
    job_groups = [g for g in job_groups_of(view) if any(row["job_group"] == g for row in rows)]
    genders = _stack_order(view, distinct(rows, "gender"))
    note = _note_of_groups(view, rows, job_groups, genders)
    legend = [Entry(people(g), patch=(colour_of(g, genders), hatch_of(g, genders))) for g in genders]
    pitch = BAR_PITCH
    block = len(models) * pitch + 0.62
    sheet = Sheet(block * len(job_groups), legend=legend, note=note)
    left = label_width(models, 1.6)
    width = (WIDTH - left - 0.1) / len(bias_types) - 0.62
    said = []
    for k, job_group in enumerate(job_groups):
        top = k * block + 0.3
        names = [shorten(model, left - MARGIN) for model in models]
        row_labels(sheet, names, top - 0.12 * pitch, pitch, left)
        for i, bias_type in enumerate(bias_types):
            x = left + 0.1 + i * (width + 0.62)
            axes = _panel_of_groups(sheet, view, (bias_type, job_group), (x, top, width, len(models) * pitch))
            for y, model in enumerate(models):
                own = {
                    row["gender"]: row
                    for row in rows
                    if (row["model"], row["bias_type"], row["job_group"]) == (model, bias_type, job_group)
                }
                _bar(sheet, axes, view, own, genders, y, (x + width + 0.08, top + (y + 0.38) * pitch))
                said.append(_said_of_group(model, str(bias_type), str(job_group), own, genders))
    caption = (
        f"{note} Hatches tell the gender groups apart without colour; instruction none. "
        f"{estimators_of(rows)}Tables: probe_groups, probe_jobs."
    )
    return Drawing(sheet, caption, f"Stacked bars. {told(said, 'probe_groups')}")


def _note_of_groups(
    view: View, rows: Sequence[Row], job_groups: Sequence[str], genders: Sequence[str]
) -> str:
    n_jobs = ", ".join(
        f"{next(r['n_jobs'] for r in rows if r['job_group'] == g)} {cut(g)}" for g in job_groups
    )
    templates = spread([row["n_templates"] for row in rows])
    bounds = any(row["share_low"] is not None for row in rows)
    thin = " (thick) and the bounds of top-k (thin)" if bounds else ""
    return (
        f"n = {n_jobs} jobs × {templates} templates. Bars: means over jobs (0 to 1) and, for "
        f"{people(genders[0])}, the 95\u00a0% interval over jobs and templates{thin}; ticks under a "
        "bar: single jobs. cov.: mean probability on the listed words (coverage); in brackets and pale: its "
        f"median is under {view.part.floor:g}, so the shares rest on little; –: not measured."
    )


def _panel_of_groups(
    sheet: Sheet, view: View, titles: tuple[str, str], place: tuple[float, float, float, float]
) -> Axes:
    x, top, width, height = place
    name = " · ".join(clean(text) for text in titles if text)
    panel_title(sheet, x, top - 0.12, shorten(name, width + 0.2, bold=True))
    sheet.text(x + width + 0.08, top - 0.12, "cov.")
    axes = sheet.axes(x, top, width, height)
    rows_axis(axes, round(height / BAR_PITCH))
    share_axis(axes, "share", parity=shows_parity(view))
    return axes


def _stack_order(view: View, genders: Sequence[str]) -> list[str]:
    """The contrast's groups at the two ends, so that each can be read from a straight edge."""
    first, last = view.part.contrast
    return [first, *(g for g in genders if g not in (first, last)), last]


def _bar(
    sheet: Sheet,
    axes: Axes,
    view: View,
    own: Mapping[str, Row],
    genders: Sequence[str],
    y: int,
    beside: tuple[float, float],
) -> None:
    """One model's stacked bar with its interval, its jobs and its coverage."""
    some = next(iter(own.values()), None)
    shares = [number(own[g]["share"]) if g in own else number(None) for g in genders]
    if some is None or any(share != share for share in shares):
        sheet.text(*beside, "–")
        return
    median = some["coverage_median"]
    rests_on_little = median is not None and median < view.part.floor
    start = 0.0
    for gender, share in zip(genders, shares, strict=True):
        axes.barh(
            y - 0.12,
            share,
            0.5,
            left=start,
            facecolor=colour_of(gender, genders),
            edgecolor=INK,
            linewidth=0.5,
            hatch=hatch_of(gender, genders),
            alpha=0.4 if rests_on_little else None,
            zorder=2,
        )
        start += share
    first = own[genders[0]]
    ends = [number(first["ci_low"]), number(first["ci_high"])]
    axes.plot(ends, [y - 0.12] * 2, color="#000000", linewidth=1.6, solid_capstyle="butt", zorder=4)
    if first["share_low"] is not None:
        bounds = [first["share_low"], first["share_high"]]
        axes.plot(bounds, [y - 0.3] * 2, color="#000000", linewidth=0.7, marker="|", markersize=4, zorder=4)
    column = f"{genders[0]}_share"
    of_jobs = [
        number(row[column])
        for row in plain(view, "probe_jobs")
        if all(row[c] == some[c] for c in ("model", "bias_type", "job_group"))
    ]
    ticks_at(axes, of_jobs, [y + 0.3] * len(of_jobs), 0.09, color=INK, linewidth=0.7)
    coverage = "–" if some["coverage"] is None else f"{some['coverage']:.2g}"
    sheet.text(*beside, f"[{coverage}]" if rests_on_little else coverage)


def _said_of_group(
    model: str, bias_type: str, group: str, own: dict[str, Row], genders: Sequence[str]
) -> str:
    shares = ", ".join(f"{people(g)} {short(own[g]['share'] if g in own else None)}" for g in genders)
    return f"{cut(model)}, {cut(bias_type)}, {cut(group)} jobs: {shares}."
