"""What answers come to: a listed word, unknown, both, a refusal, … (docs/methods.md#outcomes)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from biaskit.report.figures import scales
from biaskit.report.figures.figure import Figure
from biaskit.report.figures.lettering import asked, cut, people
from biaskit.report.figures.panels import Band, Bar, Panel
from biaskit.report.figures.probe import spread
from biaskit.report.figures.sheet import Entry
from biaskit.report.figures.style import HATCHES, look_of
from biaskit.report.figures.view import Plot, View, told
from biaskit.report.findings.blocks import jobs_of
from biaskit.tables.query import Row, distinct, first, in_main_setting, where, without_instruction
from biaskit.wording import count, percent, share_with_interval

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
_MOST_ROWS = 24
_Looks = Mapping[str, tuple[str, str, str]]
"""Name, colour and hatch by outcome."""


def outcomes(view: View) -> Iterator[Figure]:
    """One figure of the models' answers, without an instruction; none where no answer was drawn."""
    rows = in_main_setting(without_instruction(view.rows("probe_outcomes")))
    rows = [row for row in rows if row["share"] is not None]
    if rows:
        yield view.finished("outcomes", "What the answers say", _outcomes(view, rows))


def _outcomes(view: View, rows: Sequence[Row]) -> Plot:
    looks, lines = _looks(view, rows), _lines(view, rows)
    scale = scales.shares("share of the answers", parity=False)
    panels = []
    for title in dict.fromkeys(title for title, *_ in lines):
        of = [(name, own) for place, name, own in lines if place == title]
        bars = [_bar(f"{title}, {name}" if name else title, own, looks) for name, own in of]
        labels = [name or "all jobs" for name, _ in of]
        panels.append(Panel(labels, scale, (), bars, title, pitch=0.26, least=1.3))
    said = []
    for title, name, own in lines:
        shares = {looks[kind][0]: first(own, outcome=kind) for kind in looks}
        known = [f"{what} {percent(row['share'])} %" for what, row in shares.items() if row and row["share"]]
        said.append(f"{title}, {cut(name)}: {', '.join(known)}.")
    answers = spread([row["n_answers"] for row in rows if row["job_group"] != EVERY_GROUP] or [None])
    caption = (
        f"Sampled answers in percent by what they say, by rules over their words; n = {answers} answers a "
        "row; means over jobs and templates. Intervals, and which rule counted, stand in the table. Table: "
        "probe_outcomes."
    )
    legend = [Entry(name, patch=(colour, hatch)) for name, colour, hatch in looks.values()]
    return Plot([Band(panels)], caption, f"Stacked bars. {told(said, 'probe_outcomes')}", legend)


def _looks(view: View, rows: Sequence[Row]) -> _Looks:
    listed = [str(o).removeprefix(LISTED) for o in distinct(rows, "outcome") if str(o).startswith(LISTED)]
    one, other = view.part.contrast  # at the two ends of the listed ones, as in the figure of shares
    groups = sorted(listed, key=lambda group: (group != one, group == other))
    looks = {f"{LISTED}{group}": (people(group), *look_of(group, groups)) for group in groups}
    present = {row["outcome"] for row in rows if row["share"]}
    hatches = {kind: HATCHES[i % 2 * 3] for i, kind in enumerate(KINDS)}
    return looks | {kind: (*KINDS[kind], hatches[kind]) for kind in KINDS if kind in present}


def _lines(view: View, rows: Sequence[Row]) -> list[tuple[str, str, list[Row]]]:
    """Panel, label and rows of each bar: groups of jobs where there are several."""
    models = distinct(rows, "model")
    found = []
    for model in models:
        for bias_type in distinct(where(rows, model=model), "bias_type"):
            of = where(rows, model=model, bias_type=bias_type)
            groups = [str(group) for group in distinct(of, "job_group")]
            for group in [g for g in groups if g != EVERY_GROUP] or groups:
                jobs = jobs_of(view.part, group) if group not in (EVERY_GROUP, "") else ""
                name = ", ".join(filter(None, [str(model) if len(models) > 1 else "", jobs]))
                found.append((asked(bias_type), name, where(of, job_group=group)))
    return found[:_MOST_ROWS]


def _bar(name: str, own: Sequence[Row], looks: _Looks) -> Bar:
    parts = []
    for kind, (what, colour, hatch) in looks.items():
        if (row := first(own, outcome=kind)) is not None:
            share = share_with_interval(row["share"], row.get("ci_low"), row.get("ci_high"))
            tip = f"{cut(name)}: {what} {share}, {count(row['n_answers'] or 0, 'answer')}"
            parts.append((row["share"], colour, hatch, tip))
    return Bar(parts)
