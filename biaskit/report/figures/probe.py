"""Figures of the prober (docs/methods.md#cells-to-tables): shares of groups of jobs, and where they vary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from biaskit.report.figures import scales
from biaskit.report.figures.figure import Figure
from biaskit.report.figures.lettering import asked, clean, cut, people
from biaskit.report.figures.panels import Band, Bar, Panel, number, ticks_at
from biaskit.report.figures.sheet import Entry, Sheet
from biaskit.report.figures.style import HATCHES, INK, look_of
from biaskit.report.figures.view import Plot, View, mean, short, told
from biaskit.report.findings.blocks import jobs_of
from biaskit.tables.query import Row, distinct, first, grouped, in_main_setting, where
from biaskit.wording import count, percent, share_with_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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


def _n_jobs(rows: Sequence[Row]) -> str:
    """'20 female-dominated, 20 male-dominated'."""
    return ", ".join(f"{own[0]['n_jobs']} {cut(name)}" for (name,), own in grouped(rows, "job_group").items())


def estimators_of(rows: Sequence[Row]) -> str:
    """A sentence for a caption where the rows' estimators differ: their intervals are not alike."""
    of = {str(row["model"]): str(row["estimator"]) for row in rows}
    if len(set(of.values())) < 2:
        return ""
    return f"Estimators differ: {', '.join(f'{cut(m)} {cut(e)}' for m, e in of.items())}. "


def groups(view: View) -> Iterator[Figure]:
    """Stacked shares of every gender group per model and job group, jobs beneath, coverage beside."""
    rows = plain(view, "probe_groups")
    yield from view.charts(rows, "groups", "Shares of each job group", _groups, size=10)


def _groups(view: View, rows: Sequence[Row], models: Sequence[str]) -> Plot:
    # The contrast's groups stand at the two ends, so that each can be read from a straight edge.
    one, last = view.part.contrast
    genders = [one, *(g for g in distinct(rows, "gender") if g not in (one, last)), last]
    job_groups = [g for g in job_groups_of(view) if where(rows, job_group=g)]
    bands, said = [], []
    for group in job_groups:
        panels = []
        for bias_type in distinct(rows, "bias_type"):
            own = where(rows, bias_type=bias_type, job_group=group)
            panels.append(_shares(view, own, models, genders))
            said += [_told(row, own, genders) for row in where(own, gender=one)]
        name = clean(jobs_of(view.part, group)) if group else ""
        bands.append(Band(panels, name[:1].upper() + name[1:]))
    caption = f"{_note(view, rows, one)} {estimators_of(rows)}Tables: probe_groups, probe_jobs."
    legend = [Entry(people(g), patch=look_of(g, genders)) for g in genders]
    return Plot(bands, caption, f"Stacked bars. {told(said, 'probe_groups')}", legend)


def _told(row: Row, own: Sequence[Row], genders: Sequence[str]) -> str:
    of = {r["gender"]: r["share"] for r in where(own, model=row["model"])}
    shares = ", ".join(f"{people(g)} {short(of.get(g))}" for g in genders)
    return f"{cut(row['model'])}, {asked(row['bias_type'])}, {cut(row['job_group'])} jobs: {shares}."


def _note(view: View, rows: Sequence[Row], gender: str) -> str:
    templates = spread([row["n_templates"] for row in rows])
    bounds = any(row["share_low"] is not None for row in rows)
    thin = " (thick) and the bounds of top-k (thin)" if bounds else ""
    return (
        f"In percent, means over n = {_n_jobs(rows)} jobs × {templates} templates, without an instruction; "
        f"for {people(gender)} the 95\u00a0% interval over jobs and templates{thin}; ticks under a bar: "
        "single jobs. cov.: mean probability on the listed words (coverage); in brackets and pale: its "
        f"median is under {view.part.floor:g}, so the shares rest on little; –: not measured."
    )


def _shares(view: View, rows: Sequence[Row], models: Sequence[str], genders: Sequence[str]) -> Panel:
    """A bar for each model."""
    bars: list[Bar | None] = []
    beside, marked = [], []
    for y, model in enumerate(models):
        own = {row["gender"]: row for row in where(rows, model=model)}
        one = own.get(genders[0])
        if one is None or any(g not in own or own[g]["share"] is None for g in genders):
            bars.append(None)
            beside.append("–")
            continue
        little = one["coverage_median"] is not None and one["coverage_median"] < view.part.floor
        parts = [(own[g]["share"], *look_of(g, genders), _tip(own[g])) for g in genders]
        bars.append(Bar(parts, pale=little))
        coverage = "–" if one["coverage"] is None else f"{one['coverage']:.2g}"
        beside.append(f"[{coverage}]" if little else coverage)
        marked.append((y, one))
    title = asked(rows[0]["bias_type"]) if rows else ""
    scale = scales.shares("share", parity=shows(view, "parity"))
    of_jobs = plain(view, "probe_jobs")
    draw = partial(_ends_and_jobs, marked, of_jobs)
    return Panel(models, scale, (), bars, title, "", beside, "cov.", pitch=0.34, least=1.1, draw=draw)


def _tip(row: Row) -> str:
    share = share_with_interval(row["share"], row["ci_low"], row["ci_high"])
    coverage = "" if row["coverage"] is None else f"; coverage {percent(row['coverage'])} %"
    n = f"{count(row['n_jobs'] or 0, 'job')} and {count(row['n_templates'] or 0, 'template')}"
    return f"{cut(row['model'])}, {asked(row['bias_type'])}: {people(row['gender'])} {share}{coverage}, {n}"


def _ends_and_jobs(marked: Sequence[tuple[int, Row]], jobs: Sequence[Row], _: Sheet, axes: Axes) -> None:
    """The interval of each bar's first part, the bounds of top-k above it, single jobs beneath."""
    for y, row in marked:
        ends = [number(row["ci_low"]), number(row["ci_high"])]
        axes.plot(ends, [y] * 2, color="#000000", linewidth=1.6, solid_capstyle="butt", zorder=4)
        if row["share_low"] is not None:
            bounds: Any = {"color": "#000000", "linewidth": 0.7, "marker": "|", "markersize": 4, "zorder": 4}
            axes.plot([row["share_low"], row["share_high"]], [y - 0.2] * 2, **bounds)
        same = {column: row[column] for column in ("model", "bias_type", "job_group")}
        shares = [number(job[f"{row['gender']}_share"]) for job in where(jobs, **same)]
        ticks_at(axes, shares, [y + 0.42] * len(shares), 0.08, color=INK, linewidth=0.7)


_SOURCES = (
    ("var_job", "jobs", "#b8a37a"),
    ("var_template", "templates", "#7c9cb5"),
    ("var_residual", "residual", "#e0e0e0"),
)


def variance(view: View) -> Iterator[Figure]:
    """The part of the variance of a share that lies between jobs, templates, and in the rest."""
    one = view.part.contrast[0]
    rows = where(plain(view, "probe_variance"), gender=one)
    title = f"Where the share of {people(one)} varies"
    yield from view.charts(rows, "variance", title, _variance, size=10)


def _variance(view: View, rows: Sequence[Row], models: Sequence[str]) -> Plot:
    job_groups = job_groups_of(view)
    lines = list(dict.fromkeys((str(r["model"]), str(r["job_group"])) for r in rows))
    lines.sort(key=lambda line: (models.index(line[0]), job_groups.index(line[1])))
    names = [_line(view, *line, several=len(models) > 1) for line in lines]
    panels, said = [], []
    for bias_type in distinct(rows, "bias_type"):
        own = where(rows, bias_type=bias_type)
        found = [_parts(first(own, model=m, job_group=g), n) for (m, g), n in zip(lines, names, strict=True)]
        bars, beside = [bar for bar, _ in found], [sd for _, sd in found]
        scale = scales.shares("part of the variance", parity=False)
        title = asked(bias_type)
        panels.append(Panel(names, scale, (), bars, title, beside=beside, heading="SD", pitch=0.22))
        said += [tip for bar in bars if bar for *_, tip in bar.parts[:1]]
    measured = plain(view, "probe_groups")
    templates = " and ".join(map(str, distinct(measured, "n_templates")))
    caption = (
        f"n = {_n_jobs(measured)} jobs × {templates} templates; parts of the variance of the cells' shares "
        "in percent (no interval); SD: square root of the whole variance (–: not measured); without an "
        "instruction. Table: probe_variance."
    )
    legend = [Entry(name, patch=(colour, HATCHES[i])) for i, (_, name, colour) in enumerate(_SOURCES)]
    return Plot([Band(panels)], caption, f"Stacked bars. {told(said, 'probe_variance')}", legend)


def _line(view: View, model: str, group: str, *, several: bool) -> str:
    jobs = jobs_of(view.part, group) if group else ""
    return ", ".join(text for text in ((model if several or not jobs else ""), jobs) if text)


def _parts(row: Row | None, name: str) -> tuple[Bar | None, str]:
    """A bar of the parts, and the standard deviation to stand beside it."""
    parts = [number(row[column]) for column, *_ in _SOURCES] if row else [number(None)]
    total = sum(parts)
    if row is None or not total > 0:
        return None, "0" if total == 0 else "–"
    known = zip(parts, _SOURCES, HATCHES, strict=False)
    shares = [(part / total, what, colour, hatch) for part, (_, what, colour), hatch in known]
    said = ", ".join(f"{what} {percent(share)} %" for share, what, *_ in shares)
    tip = f"{cut(name)}, {asked(row['bias_type'])}: {said}"
    return Bar([(share, colour, hatch, tip) for share, _, colour, hatch in shares]), (
        f"{total**0.5:.2f}".removeprefix("0")
    )
