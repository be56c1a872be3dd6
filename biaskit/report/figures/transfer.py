"""How well women's and men's texts are told apart by words that name no gender (docs/methods.md#transfer)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from biaskit.report.figures import scales
from biaskit.report.figures.figure import Figure
from biaskit.report.figures.lettering import cut
from biaskit.report.figures.panels import BEHIND, Band, Dots, Panel, number, point
from biaskit.report.figures.sheet import Entry
from biaskit.report.figures.style import INK
from biaskit.report.figures.view import Plot, View, short, told
from biaskit.stats.held_out import CHANCE
from biaskit.stats.verdict import Verdict, verdict_of
from biaskit.tables.quantities import ALL_OCCUPATIONS, AREAS
from biaskit.tables.query import Row, defined, distinct, first, where
from biaskit.tables.reasons import HOLD_OUT, is_reason, parts_of_reason
from biaskit.wording import count

CELLS = {
    ("associated", "associated"): "gender not in the prompt",
    ("specified", "specified"): "gender in the prompt",
    ("specified", "associated"): "learnt with, tested without",
    ("associated", "specified"): "learnt without, tested with",
}
"""Where it is learnt and tested → the row's label; with and without: the gender in the prompt."""
VERDICTS: Mapping[Verdict, str] = {
    "higher": "clearly above 0.5",
    "lower": "clearly below 0.5",
    "equivalent": "equivalent to 0.5",
    "no-clear-difference": "no clear difference from 0.5",
    "not-identified": "not identified",
    "not-measured": "no verdict",
    "no-verdict": "no verdict",
}
QUANTITIES = {cell: quantity for quantity, cell in AREAS.items()}


def areas(view: View) -> Iterator[Figure]:
    """Areas under the curve of every model beside 0.5."""
    rows = view.rows("text_transfer")
    if defined(rows, "auc"):
        yield from view.charts(rows, "transfer", "Women's and men's texts told apart", _areas)


def _areas(view: View, rows: Sequence[Row], models: Sequence[str]) -> Plot:
    means = where(rows, occupation=ALL_OCCUPATIONS)
    single = [row for row in defined(rows, "auc") if row["occupation"] != ALL_OCCUPATIONS]
    cells = [cell for cell in CELLS if defined(where(rows, **_of(cell)), "auc")]
    dots, said = [], []
    for model in models:
        points, behind = [], []
        for cell in cells:
            row = first(means, model=model, **_of(cell))
            tip = f"{cut(model)}, {CELLS[cell]} {_told(view, row)}"
            points.append(point(row, ("auc", "ci_low", "ci_high"), tip))
            behind.append([number(one["auc"]) for one in where(single, model=model, **_of(cell))])
        dots.append(Dots(view.marks[model], points, behind=behind))
        said.append("; ".join([each.tip for each in points]) + ".")

    def scale(axes, room: float) -> None:  # type: ignore[no-untyped-def]
        scales.amounts([], "area under the curve", least=1 / 1.06)(axes, room)
        ticks = [0, 0.25, 0.5, 0.75, 1]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.axvline(CHANCE, color=INK, linewidth=0.8, linestyle=":", zorder=1)

    panel = Panel([CELLS[cell] for cell in cells], scale, dots, pitch=0.2 + 0.045 * len(models))
    n = len(distinct(single, "occupation")) or 1  # texts without an occupation have the mean alone
    control = any(is_reason(part, HOLD_OUT) for row in rows for part in parts_of_reason(row["reason"]))
    caption = (
        "How often a text about a woman scores higher than one about a man of the same prompt, by weights "
        "learnt from other texts, of words that are no gender words and no names (0 to 1; dotted line: 0.5, "
        f"as well as by a coin). With, without: the gender in the prompt. n = {count(n, 'occupation')}; "
        "points: mean over occupations, bars: 95\u00a0% intervals over occupations. "
        f"{'Positive control (hold-out): no result. ' if control else ''}Tables: text_transfer, tests "
        "(auc_associated, auc_specified, auc_transfer)."
    )
    legend = [*view.entries(models), Entry("single occupations", BEHIND), Entry("0.5", line=":")]
    alt = f"Dot plot of {count(len(cells), 'area')} under the curve. {told(said, 'text_transfer')}"
    return Plot([Band([panel])], caption, alt, [*legend])


def _of(cell: tuple[str, str]) -> dict[str, str]:
    return {"trained_on": cell[0], "tested_on": cell[1]}


def _told(view: View, row: Row | None) -> str:
    """The area, and what the page says of it: a pair of origins without a test has no verdict."""
    if row is None or row["auc"] is None:
        return "not measured"
    cell = (row["trained_on"], row["tested_on"])
    found = view.rows("tests", quantity=QUANTITIES.get(cell, ""), kind="paired")
    ends = "no interval"
    if row["ci_low"] is not None:
        ends = f"{short(row['ci_low'])} to {short(row['ci_high'])}"
    return f"{short(row['auc'])} ({ends}, {VERDICTS[verdict_of(first(found, model_a=row['model']))]})"
