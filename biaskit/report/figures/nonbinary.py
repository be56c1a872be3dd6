"""Non-binary people in texts, beside their share of U.S. adults (docs/methods.md#representation)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from biaskit.records import NONBINARY_REFERENCE
from biaskit.report.figures import panels, scales
from biaskit.report.figures.figure import Figure
from biaskit.report.figures.lettering import cut
from biaskit.report.figures.panels import Band, Dots, Panel, Point
from biaskit.report.figures.probe import by_labour, spread
from biaskit.report.figures.sheet import Entry, Sheet
from biaskit.report.figures.style import INK
from biaskit.report.figures.view import Plot, View, told
from biaskit.tables.query import Row, mean_over_prompts, where
from biaskit.wording import count, percent, share_with_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = ("nonbinary_share", "nonbinary_ci_low", "nonbinary_ci_high")


def nonbinary(view: View) -> Iterator[Figure]:
    """Share of non-binary people in texts per occupation."""
    rows = mean_over_prompts(view.rows("representation"))
    yield from view.charts(rows, "nonbinary", "Non-binary people in texts", _nonbinary)


def _nonbinary(view: View, rows: Sequence[Row], models: Sequence[str]) -> Plot:
    order = list(by_labour(rows, "occupation"))
    dots, said = [], []
    for model in models:
        points = panels.of_items(order, where(rows, model=model), "occupation", _point)
        dots.append(Dots(view.marks[model], points))
        known = [each.x for each in points if each.x == each.x]
        above = sum(share > NONBINARY_REFERENCE for share in known)
        least_most = f"{percent(min(known))} to {percent(max(known))} %; " if known else ""
        said.append(f"{cut(model)}: {least_most}{above} of {len(known)} occupations lie above U.S. adults.")
    scale = scales.amounts(panels.ends_of(dots), "share of non-binary people", least=0.05, most=1.0)

    def draw(_: Sheet, axes: Axes) -> None:
        axes.axvline(NONBINARY_REFERENCE, color=INK, linewidth=0.8, linestyle="--", zorder=1)

    panel = Panel(order, scale, dots, draw=draw)
    caption = (
        f"Share of non-binary people among texts whose prompt names no gender{view.place('Figure 7')}, in "
        "percent of the texts with an associated gender; occupations sorted by the share of women in labour "
        f"statistics; n = {len(order)} occupations, each with {spread([r['n_texts'] for r in rows])} texts; "
        "bars: Wilson 95\u00a0% intervals joined over prompts; dashed: "
        f"{percent(NONBINARY_REFERENCE)}\u00a0% of U.S. adults. Table: representation, template all."
    )
    legend = [*view.entries(models), Entry("U.S. adults", line="--"), *panels.undefined([panel])]
    alt = f"Dot plot for {len(order)} occupations. {told(said, 'representation')}"
    return Plot([Band([panel])], caption, alt, legend)


def _point(row: Row | None) -> Point:
    if row is None:
        return panels.point(None)
    share = share_with_interval(*(row[column] for column in COLUMNS))
    tip = f"{cut(row['model'])}, {cut(row['occupation'])}: {share} non-binary people, "
    return panels.point(row, COLUMNS, tip + count(row["n_texts"] or 0, "text"))
