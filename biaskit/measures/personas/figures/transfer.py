"""Draw how well texts are told apart by words that name no gender (methods/srb#transfer)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.common.wording import count
from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.plot import BEHIND, Axis, Band, Dots, Entry, Panel, Plot, point
from biaskit.report.figures.view import View
from biaskit.stats.classification import CHANCE
from biaskit.tables.quantities import ALL_OCCUPATIONS
from biaskit.tables.query import Row, defined, distinct, first, where
from biaskit.tables.reasons import HOLD_OUT, is_reason, parts_of_reason

CELLS = {
    ("associated", "associated"): "gender not in the prompt",
    ("specified", "specified"): "gender in the prompt",
    ("specified", "associated"): "trained with, tested without",
    ("associated", "specified"): "trained without, tested with",
}
"""(trained on, tested on) → label of the row; with, without: the gender in the prompt."""


def areas(view: View) -> Iterator[Figure]:
    """Draw areas under the curve of every model beside 0.5."""
    rows = view.rows("text_transfer")
    if defined(rows, "auc"):
        yield from view.charts(rows, "transfer", "Women's and men's texts: held-out AUC", _areas)


def _areas(view: View, rows: Sequence[Row], models: Sequence[str]) -> Plot:
    means = where(rows, occupation=ALL_OCCUPATIONS)
    single = [row for row in defined(rows, "auc") if row["occupation"] != ALL_OCCUPATIONS]
    cells = [cell for cell in CELLS if defined(where(rows, **_scope(cell)), "auc")]
    dots = []
    for model in models:
        points, behind = [], []
        for cell in cells:
            scope = {"model": model, **_scope(cell)}
            points.append(point(first(means, **scope), ("auc", "ci_low", "ci_high")))
            behind.append([row["auc"] for row in where(single, **scope)])
        dots.append(Dots(view.marks[model], points, behind=behind))
    n = len(distinct(single, "occupation")) or 1  # texts without an occupation have the mean alone
    control = any(is_reason(part, HOLD_OUT) for row in rows for part in parts_of_reason(row["reason"]))
    caption = (
        "How often a classifier trained on other texts, without gendered words and names, scores a text "
        "about a woman higher than one about a man of the same prompt (0 to 1; dotted line: chance, 0.5). "
        f"With, without: the gender in the prompt. n = {count(n, 'occupation')}; points: mean over "
        "occupations, bars: 95\u00a0% intervals over occupations. "
        f"{'Positive control (hold-out), not a result. ' if control else ''}Tables: text_transfer, tests "
        "(auc_associated, auc_specified, auc_transfer)."
    )
    axis = Axis("AUC", 0, 1, line=CHANCE, ticks=(0, 0.25, 0.5, 0.75, 1))
    panel = Panel([CELLS[cell] for cell in cells], axis, dots, pitch=0.2 + 0.045 * len(models))
    behind_entry = Entry("single occupations", BEHIND)
    return Plot([Band([panel])], caption, [*view.entries(models), behind_entry])


def _scope(cell: tuple[str, str]) -> dict[str, str]:
    return {"trained_on": cell[0], "tested_on": cell[1]}
