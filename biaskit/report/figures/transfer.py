"""How well women's and men's texts are told apart by words that name no gender (docs/methods.md#transfer)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from biaskit.report.figures import dots
from biaskit.report.figures.figure import Figure, Missing
from biaskit.report.figures.forest import JOB
from biaskit.report.figures.lettering import cut
from biaskit.report.figures.sheet import WIDTH, Entry, Sheet
from biaskit.report.figures.style import GRID, INK
from biaskit.report.figures.view import Drawing, View, number, short, told
from biaskit.stats.held_out import CHANCE
from biaskit.stats.verdict import Verdict, verdict_of
from biaskit.tables.quantities import ALL_OCCUPATIONS, AREAS
from biaskit.tables.query import Row, defined, distinct, first, where
from biaskit.tables.reasons import HOLD_OUT, is_reason, parts_of_reason
from biaskit.wording import count

TITLE = "Women's and men's texts told apart"
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


def areas(view: View) -> Iterator[Figure | Missing]:
    """Areas under the curve of every model beside 0.5."""
    rows = view.rows("text_transfer")
    if rows and not defined(rows, "auc"):
        why = next((cut(row["reason"], 160) for row in rows if row["reason"]), "no reason is stored")
        yield view.missing(
            "transfer", TITLE, f"No area is defined in table text_transfer, first because: {why}."
        )
        return
    reason = "There is no table text_transfer: no texts are compared by gender, or an older biaskit made it."
    yield from view.charts(rows, "transfer", TITLE, reason, _areas)


def _areas(view: View, rows: Sequence[Row], models: Sequence[str]) -> Drawing:
    means = where(rows, occupation=ALL_OCCUPATIONS)
    single = [row for row in defined(rows, "auc") if row["occupation"] != ALL_OCCUPATIONS]
    n = len(distinct(single, "occupation")) or 1  # texts without an occupation have the mean alone
    control = any(is_reason(part, HOLD_OUT) for row in rows for part in parts_of_reason(row["reason"]))
    note = (
        f"n = {count(n, 'occupation')}; area under the curve of words that are no gender words and no names "
        "(0 to 1; dotted line: 0.5, as well as by a coin); points: mean over occupations, bars: 95\u00a0% "
        "intervals over occupations."
    )
    note += " Positive control (hold-out): no result." if control else ""
    legend = [*view.entries(models), Entry("single occupations", JOB), Entry("0.5", line=":")]
    legend += [dots.UNDEFINED] if len(defined(means, "auc")) < len(CELLS) * len(models) else []
    labels = list(CELLS.values())
    pitch, left = max(0.24, dots.row_height(len(models))), dots.label_width(labels)
    sheet = Sheet(len(labels) * pitch + 0.5, legend=legend)
    dots.row_labels(sheet, labels, 0.08, pitch, left)
    axes = sheet.axes(left + 0.12, 0.08, WIDTH - left - 0.2 - dots.GUTTER, len(labels) * pitch)
    series = []
    for model, offset in zip(models, dots.offsets(len(models), pitch), strict=True):
        own = where(means, model=model)
        of_cells = [first(own, trained_on=a, tested_on=b) for a, b in CELLS]
        series.append(dots.series_of(view.marks[model], of_cells, ("auc", "ci_low", "ci_high")))
        behind = [(row, i) for i, (a, b) in enumerate(CELLS) for row in _of_cell(single, model, a, b)]
        xs, ys = [number(row["auc"]) for row, _ in behind], [i + offset for _, i in behind]
        dots.ticks_at(axes, xs, ys, 0.022 / pitch, color=JOB.colour, linewidth=0.5, zorder=1)
    dots.dot_panel(axes, series, len(labels), pitch)
    axes.set_xlim(0, 1)
    axes.set_xticks(*dots.SHARE_TICKS)
    axes.grid(axis="x", color=GRID, linewidth=0.5)
    axes.axvline(CHANCE, color=INK, linewidth=0.8, linestyle=":", zorder=1)
    axes.set_xlabel("area under the curve", labelpad=2)
    caption = (
        "How often a text about a woman scores higher than one about a man of the same prompt, by weights "
        f"learnt from other texts. With, without: the gender in the prompt. {note} Tables: text_transfer, "
        "tests (auc_associated, auc_specified, auc_transfer)."
    )
    said = told([_told(view, model, where(means, model=model)) for model in models], "text_transfer")
    return Drawing(sheet, caption, f"Dot plot of {len(labels)} areas under the curve. {said}")


def _of_cell(rows: Sequence[Row], model: str, trained_on: str, tested_on: str) -> list[Row]:
    return where(rows, model=model, trained_on=trained_on, tested_on=tested_on)


def _told(view: View, model: str, means: Sequence[Row]) -> str:
    clauses = []
    for (trained_on, tested_on), label in CELLS.items():
        row = first(means, trained_on=trained_on, tested_on=tested_on)
        if row is None or row["auc"] is None:
            clauses.append(f"{label} not measured")
            continue
        ends = "no interval"
        if row["ci_low"] is not None:
            ends = f"{short(row['ci_low'])} to {short(row['ci_high'])}"
        clauses.append(
            f"{label} {short(row['auc'])} ({ends}{_verdict(view, model, (trained_on, tested_on))})"
        )
    return f"{cut(model)}: {'; '.join(clauses)}."


def _verdict(view: View, model: str, cell: tuple[str, str]) -> str:
    """What the page says of an area: a pair of origins without a test has no verdict."""
    found = view.rows("tests", quantity=QUANTITIES.get(cell, ""), kind="paired")
    test = first(found, model_a=model)
    return f", {VERDICTS[verdict_of(test)]}"
