"""Draw the gap in each way to ask (methods/reliability#ways)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.common.wording import percent
from biaskit.measurement import words
from biaskit.measures.probe.figures.groups import CAPTIONS
from biaskit.measures.probe.ways.design import OWN
from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.plot import Axis, Band, Dots, Entry, Panel, Plot, ends_of, point
from biaskit.report.figures.style import GREY, INK, Mark, asked
from biaskit.report.figures.view import View
from biaskit.tables.coverage import WEAK
from biaskit.tables.query import Row, defined, distinct, where

_LOOKS = {
    "this run’s way": Mark("#d55e00", "D"),
    "another way": Mark(INK, "o"),
    f"weak evidence: coverage under {percent(WEAK)} %": Mark(GREY, "o"),
}


def ways(view: View) -> Iterator[Figure]:
    """Draw a panel for each bias type of each model, ways sorted by their gap; none of one way."""
    rows = defined(view.rows("ways"), "gap")
    if len(rows) > 1:
        yield from view.charts(
            rows, "ways", f"Gap in each way to ask, in the share of {view.whom}", _ways, size=1
        )


def _ways(view: View, rows: Sequence[Row], models: Sequence[str]) -> Plot:
    bands = []
    main, other, weak = _LOOKS.values()
    ends = ends_of([point(row, ("gap", "ci_low", "ci_high")) for row in rows])
    known = [0.0, *(end for end in ends if end == end)]
    axis = Axis("points", 1.06 * min(known) - 0.02, 1.06 * max(known) + 0.02, "points", 0)
    for bias_type in distinct(rows, "bias_type"):
        of_type = sorted(where(rows, bias_type=bias_type), key=lambda row: -row["gap"])
        dots = []
        for row in of_type:
            mark = main if row["main"] else other
            mark = mark if row["counted"] else Mark(weak.colour, mark.marker)
            dots.append(point(row, ("gap", "ci_low", "ci_high"), mark=mark))
        labels = list(map(_named, of_type))
        beside = [
            "–" if row["binary_coverage"] is None else percent(row["binary_coverage"]) for row in of_type
        ]
        panel = Panel(
            labels, axis, [Dots(other, dots)], title=asked(bias_type), beside=beside, heading="cov. %"
        )
        bands.append(Band([panel]))
    legend = [Entry(name, mark) for name, mark in _LOOKS.items()]
    n_jobs = max(row["n_jobs"] or 0 for row in rows)
    return Plot(bands, CAPTIONS["ways"].format(n_jobs, max(row["n_templates"] or 0 for row in rows)), legend)


def _named(row: Row) -> str:
    """Name a way as short as a phone needs it: 'prefill, empty system, paraphrase 2'."""
    names, wording = words("probe")["reliability"]["named"], row["wording"]
    system = names.get(row["system_prompt"], "")
    wording = names["wording"] if wording == OWN else wording
    return ", ".join(filter(None, (row["prompt_format"].removeprefix("chat-"), system, wording)))
