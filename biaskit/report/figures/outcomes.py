"""What answers come to: a listed word, unknown, both, a refusal, … (docs/methods.md#outcomes)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from biaskit.report.figures import dots
from biaskit.report.figures.figure import Figure
from biaskit.report.figures.lettering import asked, clean, cut, people
from biaskit.report.figures.probe import spread
from biaskit.report.figures.sheet import COLUMN, Entry, Sheet
from biaskit.report.figures.style import HATCHES, look_of
from biaskit.report.figures.view import Drawing, View, both_widths, number, told
from biaskit.report.findings.blocks import jobs_of
from biaskit.tables.query import Row, distinct, first, in_main_setting, where, without_instruction
from biaskit.wording import percent

NAME = "outcomes"
EVERY_GROUP = "all"
LISTED = "listed:"
KINDS = {
    "unknown": ("unknown or neutral", "#d9c9a3"),
    "both": ("names both", "#bcd3e0"),
    "declines": ("declines", "#6d6d6d"),
    "restates": ("restates the question", "#cfcfcf"),
    "empty": ("empty", "#f2f2f2"),
    "other": ("something else", "#e5e0d5"),
}
"""Words and colour of what is no listed group."""
_PITCH = 0.26
_MOST_ROWS = 24


def outcomes(view: View) -> Iterator[Figure]:
    """One figure of the models' answers, without an instruction; none where no answer was drawn."""
    rows = in_main_setting(without_instruction(view.rows("probe_outcomes")))
    rows = [row for row in rows if row["share"] is not None]
    if rows:
        title = f"What the answers say ({view.heading})"
        yield both_widths(f"{view.prefix}{NAME}", title, partial(_drawing, view, rows))


def _drawing(view: View, rows: Sequence[Row], width: float) -> Drawing:
    lines = _lines(view, rows)
    listed = [str(o).removeprefix(LISTED) for o in distinct(rows, "outcome") if str(o).startswith(LISTED)]
    one, other = view.part.contrast  # at the two ends of the listed ones, as in the figure of shares
    groups = sorted(listed, key=lambda group: (group != one, group == other))
    looks = {f"{LISTED}{group}": (people(group), *look_of(group, groups)) for group in groups}
    present = {row["outcome"] for row in rows if row["share"]}
    hatches = {kind: HATCHES[i % 2 * 3] for i, kind in enumerate(KINDS)}
    looks |= {kind: (*KINDS[kind], hatches[kind]) for kind in KINDS if kind in present}
    legend = [Entry(name, patch=(colour, hatch)) for name, colour, hatch in looks.values()]
    left = dots.label_width([name for name, *_ in lines], 0.42 * width)
    sheet = Sheet(len(lines) * _PITCH + 0.42, legend=legend, width=width)
    dots.row_labels(sheet, [name for name, *_ in lines], 0.04, _PITCH, left)
    axes = sheet.axes(
        left + 0.12, 0.04, width - left - (0.35 if width > COLUMN else 0.3), len(lines) * _PITCH
    )
    dots.rows_axis(axes, len(lines))
    dots.share_axis(axes, "share of the answers", parity=False)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100\u00a0%"])
    said = []
    for y, (name, *scope) in enumerate(lines):
        model, bias_type, group = scope
        own = where(rows, model=model, bias_type=bias_type, job_group=group)
        parts = _parts(own, looks)
        dots.stacked(axes, y, [(share, *looks[kind][1:]) for kind, share in parts], 0.62)
        shares = ", ".join(f"{looks[kind][0]} {percent(share)} %" for kind, share in parts if share)
        said.append(f"{cut(name)}: {shares}.")
    answers = spread([row["n_answers"] for row in rows if row["job_group"] != EVERY_GROUP] or [None])
    caption = (
        f"Sampled answers in percent by what they say, by rules over their words; n = {answers} answers a "
        "row; means over jobs and templates. Intervals, and which rule counted, stand in the table. Table: "
        "probe_outcomes."
    )
    return Drawing(sheet, caption, f"Stacked bars. {told(said, 'probe_outcomes')}")


def _lines(view: View, rows: Sequence[Row]) -> list[tuple[str, str, str, str]]:
    """Label, model, bias type and job group of each bar: groups of jobs where there are several."""
    models = distinct(rows, "model")
    found = []
    for model in models:
        for bias_type in distinct(where(rows, model=model), "bias_type"):
            own = [str(g) for g in distinct(where(rows, model=model, bias_type=bias_type), "job_group")]
            for group in [g for g in own if g != EVERY_GROUP] or own:
                jobs = jobs_of(view.part, group) if group not in (EVERY_GROUP, "") else ""
                bits = [clean(model) if len(models) > 1 else "", asked(bias_type), jobs]
                found.append((", ".join(filter(None, bits)), str(model), str(bias_type), group))
    return found[:_MOST_ROWS]


def _parts(own: Sequence[Row], looks: dict[str, tuple[str, str, str]]) -> list[tuple[str, float]]:
    rows = [(kind, first(own, outcome=kind)) for kind in looks]
    return [(kind, number(row["share"]) if row else 0.0) for kind, row in rows]
