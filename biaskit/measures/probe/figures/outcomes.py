"""What answers come to: a target word, unknown, both, a refusal, … (methods/probabilities#outcomes)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from biaskit.measurement import words
from biaskit.measures.probe.figures.groups import CAPTIONS
from biaskit.records import ALL
from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.plot import Band, Bar, Entry, Panel, Plot, shares
from biaskit.report.figures.style import HATCHES, asked, look_of, people
from biaskit.report.figures.view import View, spread
from biaskit.report.findings.groups import jobs_of
from biaskit.tables.query import (
    Row,
    apart_from,
    column,
    defined,
    distinct,
    grouped,
    in_main_context,
    where,
    without_debiasing,
)

LISTED = "listed:"
KINDS: Mapping[str, Sequence[str]] = words("probe")["outcomes"]["drawn"]
"""Outcome that is no listed group → words and colour."""
_MOST_ROWS = 24


def outcomes(view: View) -> Iterator[Figure]:
    """Draw the outcomes of answers, without a debiasing prompt; none where no answer was drawn."""
    rows = in_main_context(without_debiasing(view.rows("probe_outcomes")))
    if rows := defined(rows, "share"):
        yield view.figure("outcomes", "What the answers say", _outcomes(view, rows))


def _outcomes(view: View, rows: Sequence[Row]) -> Plot:
    listed = [str(o).removeprefix(LISTED) for o in distinct(rows, "outcome") if str(o).startswith(LISTED)]
    left, right = view.part.contrast  # at the two ends, as in the figure of shares
    listed.sort(key=lambda group: (group != left, group == right))
    # Outcome → name, colour and hatch.
    looks = {f"{LISTED}{group}": (people(group), *look_of(group, listed)) for group in listed}
    for i, (kind, (words_of_kind, colour)) in enumerate(KINDS.items()):
        if any(column(where(rows, outcome=kind), "share")):
            looks[kind] = (words_of_kind, colour, HATCHES[i % 2 * 3])
    several = len(distinct(rows, "model")) > 1
    of_groups = apart_from(rows, job_group=ALL)
    bars: dict[str, dict[str, Bar]] = {}
    drawn = grouped(of_groups or rows, "model", "bias_type", "job_group")
    for (model, bias_type, group), of_bar in islice(drawn.items(), _MOST_ROWS):
        jobs = jobs_of(view.part, group) if group not in (ALL, "") else ""
        name = ", ".join(filter(None, [model if several else "", jobs])) or "all jobs"
        share_of = {row["outcome"]: row["share"] for row in of_bar}
        parts = [(share_of[kind], *look[1:]) for kind, look in looks.items() if kind in share_of]
        bars.setdefault(bias_type, {})[name] = Bar(parts)
    axis = shares("share of the answers")
    panels = []
    for bias_type, of_kind in bars.items():
        panels.append(Panel([*of_kind], axis, (), [*of_kind.values()], asked(bias_type), pitch=0.26))
    caption = CAPTIONS["outcomes"].format(spread(of_groups, "n_answers"))
    legend = [Entry(name, patch=(colour, hatch)) for name, colour, hatch in looks.values()]
    return Plot([Band(panels)], caption, legend)
