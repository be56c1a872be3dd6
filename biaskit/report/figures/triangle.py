"""Jobs between women, men and a third group: a triangle per model (docs/methods.md#mass-coverage-share)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from biaskit.report.figures.figure import Figure, Missing
from biaskit.report.figures.lettering import cut, people, shorten
from biaskit.report.figures.probe import job_groups_of, plain
from biaskit.report.figures.sheet import LINE, WIDTH, Entry, Sheet, marker_style
from biaskit.report.figures.style import GRID, INK, Mark
from biaskit.report.figures.view import Drawing, View, mean, number, short, told
from biaskit.tables.query import Row, distinct, where

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def ternary(view: View) -> Iterator[Figure | Missing]:
    """Jobs by the shares of three gender groups."""
    rows = plain(view, "probe_jobs")
    n_groups = len(view.part.groups)
    reason = (
        f"A triangle takes three gender groups; this study has {n_groups}."
        if rows
        else "There is no table probe_jobs for this study."
    )
    shown = rows if n_groups == 3 else ()
    return view.charts(shown, "ternary", "Jobs between the gender groups", reason, _ternary, size=10)


def _ternary(view: View, rows: Sequence[Row], models: Sequence[str]) -> Drawing:
    first, last = view.part.contrast
    corners = (first, last, next(g for g in view.part.groups if g not in (first, last)))
    job_groups = [g for g in job_groups_of(view) if g]
    n_undefined = sum(row[f"{first}_share"] is None for row in rows)
    n_jobs = len(distinct(rows, "job"))
    note = (
        f"n = {n_jobs} jobs, each the mean over templates (no interval is drawn: see the dot plot); every "
        "point's three shares (0 to 1) sum to 1; grid: .25, .5 and .75 of each share."
    )
    if n_undefined:
        note += f" {n_undefined} undefined points are not drawn."
    legend = view.entries(models)
    if len(job_groups) > 1:
        legend += [Entry(shorten(job_groups[0], 2), Mark(INK, "o"))]
        legend += [Entry(shorten(g, 2), Mark(INK, "o"), hollow=True) for g in job_groups[1:2]]
    panels = [(model, bias_type) for model in models for bias_type in distinct(rows, "bias_type")]
    per_line = len(panels) if len(panels) <= 3 else 4
    cell = WIDTH / per_line
    side = min(2.9, cell - 0.3)
    block = side * 0.87 + 0.72
    sheet = Sheet(block * -(-len(panels) // per_line) - 0.08, legend=legend, note=note)
    said = []
    for i, (model, bias_type) in enumerate(panels):
        x, top = (i % per_line) * cell + 0.15, (i // per_line) * block
        sheet.title(x, top + 0.08, model, cell - 0.2)
        sheet.text(x, top + 0.08 + LINE, shorten(bias_type, cell / 2 - 0.4))
        axes = sheet.axes(x, top + 0.42, side, side * 0.87)
        _triangle(axes, [people(g) for g in corners])
        own = where(rows, model=model, bias_type=bias_type)
        for hollow in (False, True):
            some = [r for r in own if (r["job_group"] in job_groups[1:]) == hollow]
            points = [_point([number(r[f"{g}_share"]) for g in corners]) for r in some]
            style = marker_style(view.marks[model], hollow=hollow, size=3.4)
            axes.plot([p[0] for p in points], [p[1] for p in points], clip_on=False, zorder=3, **style)
        means = ", ".join(
            f"{people(g)} {short(mean([number(r[f'{g}_share']) for r in own]))}" for g in corners
        )
        said.append(f"{cut(model)}, {cut(bias_type)}: mean over jobs {means}.")
    caption = (
        f"Each point is a job; the nearer to a corner, the larger that group's share. {note} Instruction "
        "none. Table: probe_jobs."
    )
    return Drawing(sheet, caption, f"Triangle plot of {n_jobs} jobs. {told(said, 'probe_jobs')}")


def _point(shares: Sequence[float]) -> tuple[float, float]:
    """Left corner: the contrast's first group; right: its last; top: the third."""
    _, last, third = shares
    return last + third / 2, third


def _triangle(axes: Axes, corners: Sequence[str]) -> None:
    axes.set_axis_off()
    axes.set(xlim=(0, 1), ylim=(0, 1))
    for level in (0.25, 0.5, 0.75):
        ends = ((level, 1 - level, 0.0), (level, 0.0, 1 - level))
        for turn in range(3):
            a, b = (_point([end[(k + turn) % 3] for k in range(3)]) for end in ends)
            axes.plot([a[0], b[0]], [a[1], b[1]], color=GRID, linewidth=0.6, zorder=1)
    axes.plot([0, 1, 0.5, 0], [0, 0, 1, 0], color=INK, linewidth=0.8, zorder=1, clip_on=False)
    axes.text(0, -0.03, corners[0], ha="left", va="top", fontweight="bold")
    axes.text(1, -0.03, corners[1], ha="right", va="top", fontweight="bold")
    axes.text(0.5, 1.02, corners[2], ha="center", va="bottom", fontweight="bold")
