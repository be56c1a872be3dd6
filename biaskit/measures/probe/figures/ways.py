"""Draw the gap in each way to ask (methods/reliability#ways)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.common.wording import percent
from biaskit.measurement import words
from biaskit.measures.probe.figures.groups import CAPTIONS
from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.plot import Axis, Band, Dots, Entry, Panel, Plot, point
from biaskit.report.figures.style import GREY, INK, Mark, asked
from biaskit.report.figures.view import View
from biaskit.tables.coverage import WEAK
from biaskit.tables.query import Row, column, defined, distinct, where

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
    least = min([0.0, *column(rows, "gap"), *column(defined(rows, "ci_low"), "ci_low")])
    most = max([0.0, *column(rows, "gap"), *column(defined(rows, "ci_high"), "ci_high")])
    axis = Axis("points", 1.06 * least - 0.02, 1.06 * most + 0.02, "points", 0)
    for bias_type in distinct(rows, "bias_type"):
        of_type = sorted(where(rows, bias_type=bias_type), key=lambda row: -row["gap"])
        dots = []
        for row in of_type:
            mark = main if row["main"] else other
            mark = mark if row["counted"] else Mark(weak.colour, mark.marker)
            dots.append(point(row, ("gap", "ci_low", "ci_high"), mark=mark))
        labels = list(map(_named, of_type))
        beside, name = list(map(percent, column(of_type, "binary_coverage"))), asked(bias_type)
        panel = Panel(labels, axis, [Dots(other, dots)], title=name, beside=beside, heading="cov. %")
        bands.append(Band([panel]))
    size = max(column(rows, "n_jobs")), max(column(rows, "n_templates"))
    return Plot(bands, CAPTIONS["ways"].format(*size), list(map(Entry, _LOOKS, _LOOKS.values())))


def _named(row: Row) -> str:
    """Name a way as short as a phone needs it: 'prefill, empty, words 2'."""
    names = words("probe")["reliability"]["named"]
    wording = row["wording"].replace("paraphrase", names["paraphrase"])
    shown = row["prompt_format"].removeprefix("chat-"), names.get(row["system_prompt"], ""), wording
    return ", ".join(filter(None, shown))
