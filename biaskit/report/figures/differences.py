"""Draw how models differ: a forest of differences (methods/tests#verdicts)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from biaskit.report.figures import forest
from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.plot import INKED, Dots, Entry, Plot, effects, point
from biaskit.report.figures.style import INK, Mark, cut
from biaskit.report.figures.view import View
from biaskit.stats.contrast import Contrast, Verdict
from biaskit.tables.query import first, in_main_context

MOST_PAIRS = 15
"""Pairs of models in one forest; where there are more, a kind may draw a row for each model instead."""
Shape = Literal["different", "equivalent", "both", "unclear", "shown", "unidentified", "unmeasured"]
SHAPES: Mapping[Shape, tuple[Mark, str, str]] = {
    "different": (Mark("#d55e00", "o"), "", "different"),
    "equivalent": (Mark("#0072b2", "s"), "", "equivalent"),
    "both": (Mark("#0072b2", "D"), "none", "equivalent, but not 0"),
    "unclear": (Mark("#7a7a7a", "o"), "none", "no clear difference"),
    "shown": (Mark("#7a7a7a", "d"), "none", "shown without a conclusion"),
    "unidentified": (Mark("#7a7a7a", "s"), "none", "not identified (bounds too wide) or no conclusion"),
    "unmeasured": (Mark(INK, "_"), "", "not measured"),
}
"""Marker, its fill, and its name in the legend."""
_SHAPE_OF: Mapping[Verdict, Shape] = {
    "higher": "different",
    "lower": "different",
    "equivalent": "equivalent",
    "no-clear-difference": "unclear",
    "not-identified": "unidentified",
    "no-verdict": "unidentified",
    "shown": "shown",
    "not-measured": "unmeasured",
}


def shape_of(row: Contrast | None) -> Shape:
    """Choose a shape by the verdict; "both": equivalent, with an interval that excludes 0."""
    if row is None:
        return "unmeasured"
    shape = _SHAPE_OF[row.conclusion]
    return "both" if shape == "equivalent" and row.direction else shape


def models(view: View) -> Iterator[Figure]:
    """Draw the differences between models without a debiasing prompt; none where models are too many."""
    rows = between_models(view)
    pairs = _pairs(rows)
    if rows and len(pairs) <= MOST_PAIRS:
        yield view.figure("models", "How the models differ", _forest(view, rows, pairs))


def are_many(view: View) -> bool:
    """Tell whether more pairs of models are compared than one forest shows."""
    return len(_pairs(between_models(view))) > MOST_PAIRS


def between_models(view: View) -> list[Contrast]:
    """Pick the differences of shares between a view's models, and between groups of models."""
    parts = view.content.parts
    labels = {model.label for part in parts for model in part.models}
    alone = sum(part.measurement == view.part.measurement for part in parts) == 1
    rows = []
    for row in forest.crossed(view, view.content.tests, "models"):
        sides = {*row.models}
        plain = row.debiasing_a == row.debiasing_b and row.debiasing_a in ("0", "", None)
        # Rows of this part's models, or of groups of them, which no model is called.
        here = sides <= set(view.models) or (alone and not sides & labels)
        if here and plain and row.gender in view.part.contrast:
            rows.append(row)
    return in_main_context(rows)


def _pairs(rows: Sequence[Contrast]) -> list[tuple[str, str]]:
    return list(dict.fromkeys(row.models for row in rows))


def _forest(view: View, rows: Sequence[Contrast], pairs: Sequence[tuple[str, str]]) -> Plot:
    margins = sorted({row.margin for row in rows if row.margin is not None})
    within = f"within ±{100 * margins[0]:g} points" if len(margins) == 1 else "within the margin"
    margin = margins[0] if margins else None

    def dots(rows_of_panel: Sequence[Contrast]) -> list[Dots]:
        drawn = []
        for a, b in pairs:
            row = first(rows_of_panel, model_a=a, model_b=b)
            mark, fill, _ = SHAPES[shape_of(row)]
            drawn.append(point(row, mark=mark, fill=fill))
        return [Dots(INKED, drawn)]

    axis = effects(forest.ends_of(rows), 2 * (margin or 0.05), "difference, points", margin=margin)
    n = forest.n_jobs_of(rows)
    over = f"without a debiasing prompt; n = {n} common jobs per group; bars: 95\u00a0% intervals over jobs "
    over += "and templates"
    if all(row.unit == "pair" for row in rows):
        over = f"n = {n} common pairs of sentences; bars: 95\u00a0% intervals over stereotypes and languages"
    caption = (
        f"Share for the first model minus share for the second, in percentage points, {over}; "
        f"equivalent: the 90\u00a0% interval is {within}; shapes: conclusions. Tables: tests "
        f"(kind crossed, contrast models).{view.weak}"
    )
    shapes = {*map(shape_of, rows)}
    legend = [
        Entry(f"{text} {within}" if shape == "equivalent" else text, mark, fill)
        for shape, (mark, fill, text) in SHAPES.items()
        if shape in shapes and shape != "unmeasured"
    ]
    labels = [f"{cut(a, 18)} − {cut(b, 18)}" for a, b in pairs]
    return Plot(forest.bands(view, rows, labels, axis, dots), caption, legend)
