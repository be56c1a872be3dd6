"""Answers against labour statistics: each job, the line of the same share, and the line that fits best.

See docs/methods.md#cells-to-tables (level, slope, distance).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from biaskit.report.figures import dots
from biaskit.report.figures.figure import Figure
from biaskit.report.figures.lettering import asked, clean, cut, people
from biaskit.report.figures.probe import plain, shows
from biaskit.report.figures.representation import panels_of
from biaskit.report.figures.sheet import Entry, marker_style
from biaskit.report.figures.style import GRID, INK
from biaskit.report.figures.view import Drawing, View, both_widths, number, portions, told
from biaskit.tables.query import Row, contrast_of, defined, distinct, first, in_main_setting, where
from biaskit.wording import count, percent, plain_number, share_with_interval

PER_FIGURE = 6
NAME = "labour"


def labour(view: View) -> Iterator[Figure]:
    """A figure of each six models and ways to ask; none where no job has a labour share."""
    group = view.part.contrast[0]
    if not group or not shows(view, "labour"):
        return
    rows = defined(plain(view, "probe_jobs"), "labour_female_share")
    pairs = [
        (model, kind) for model in view.models for kind in distinct(where(rows, model=model), "bias_type")
    ]
    title = f"Share of {people(group)} against labour statistics ({view.heading})"
    for nth, place, some in portions(pairs, PER_FIGURE, even=False):
        draw = partial(_drawing, view, rows, some)
        yield both_widths(f"{view.prefix}{NAME}{nth}", f"{title}{place}", draw)


def _drawing(view: View, rows: Sequence[Row], pairs: Sequence[tuple[str, str]], width: float) -> Drawing:
    group = view.part.contrast[0]
    columns = (f"{group}_share", f"{group}_share_ci_low", f"{group}_share_ci_high")
    several = len({model for model, _ in pairs}) > 1
    names = {f"{model}, {asked(kind)}" if several else asked(kind): (model, kind) for model, kind in pairs}
    legend = [Entry("as in labour statistics", line="-"), Entry("line that fits best", line="--")]
    sheet, _, panels = panels_of(list(names), legend, width=width)
    said = []
    for name, axes in panels:
        model, kind = names[name]
        own = where(rows, model=model, bias_type=kind)
        mark = view.marks[model]
        dots.share_axis(axes, "labour statistics", parity=False)
        axes.set_ylim(0, 1)
        axes.set_yticks(*dots.SHARE_TICKS)
        axes.grid(axis="y", color=GRID, linewidth=0.5)
        axes.set_ylabel("answers", labelpad=1)
        axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, zorder=1)
        xs = [row["labour_female_share"] for row in own]
        for x, row in zip(xs, own, strict=True):
            axes.plot([x, x], [number(row[end]) for end in columns[1:]], color=mark.colour, linewidth=0.6)
        shares = [number(row[columns[0]]) for row in own]
        (marks,) = axes.plot(xs, shares, clip_on=False, zorder=3, **marker_style(mark, size=3.4))
        sheet.tip(marks, [_tip(row, columns, group) for row in own])
        if (line := _line(view, model, kind)) is not None:
            ends = [min(xs), max(xs)]
            fitted = [line[0] + line[1] * (x - 0.5) for x in ends]
            axes.plot(ends, fitted, color=INK, linewidth=1, linestyle="--", zorder=2)
            said.append(f"{cut(name)}: slope {plain_number(line[1])}.")
    n = count(len(distinct(rows, "job")), "job")
    caption = (
        f"Each point is a job: the share of {people(group)} in the model's answers against the share of "
        f"women in U.S. labour statistics, 0 to 1; n = {n}; bars: 95\u00a0% intervals over templates. A "
        "line flatter than the diagonal: the model tells the jobs apart less than the labour force does. "
        "Tables: probe_jobs, tests (kinds slope and level)."
    )
    return Drawing(sheet, caption, f"Scatter plots of {n}. {told(said, 'tests')}")


def _tip(row: Row, columns: tuple[str, str, str], group: str) -> str:
    share = share_with_interval(*(row[column] for column in columns))
    labour_share = percent(row["labour_female_share"])
    return f"{clean(row['job'])}: {share} {people(group)}; labour statistics {labour_share} % women"


def _line(view: View, model: str, bias_type: str) -> tuple[float, float] | None:
    """Share where half are women in labour statistics, and slope; None where a run has no such row."""
    rows = where(view.rows("tests"), model_a=model, bias_type=bias_type, instruction_a="0", group_a="")
    rows = [row for row in in_main_setting(rows) if contrast_of(row) == "labour"]
    level, slope = (first(rows, kind=kind) for kind in ("level", "slope"))
    if level is None or slope is None or level["estimate"] is None or slope["estimate"] is None:
        return None
    return 0.5 + level["estimate"], slope["estimate"]
