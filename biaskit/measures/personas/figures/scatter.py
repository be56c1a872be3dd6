"""Draw occupations in texts against workforce shares (methods/representation#representation)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.figures import items
from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.labour import LEGEND, PER_FIGURE, spots_of, square
from biaskit.report.figures.plot import Band, Plot
from biaskit.report.figures.view import View, all_marks, spread
from biaskit.tables.query import Row, defined, distinct, mean_over_prompts, where


def scatter(view: View) -> Iterator[Figure]:
    """Draw each occupation; none if the first figure shows them all."""
    rows = defined(mean_over_prompts(view.rows("representation")), "labour_female_share")
    if len(all_marks(view.content)) > 1 or len(distinct(rows, "occupation")) > items.MOST_ROWS:
        title = "Share of women in texts and in the workforce"
        yield from view.charts(rows, "scatter", title, _scatter, size=PER_FIGURE)


def _scatter(view: View, rows: Sequence[Row], models: Sequence[str]) -> Plot:
    squares = []
    for model in models:
        of_model = where(rows, model=model)
        spots = spots_of(items.of_occupations(of_model), of_model, "occupation")
        squares.append(square(model, "texts", spots, view.marks[model]))
    caption = (
        f"Each point is an occupation{view.place('Figure 6')}: the share of women among texts with an "
        "inferred gender, over all prompts, against U.S. labour statistics, in percent; n = "
        f"{len(distinct(rows, 'occupation'))} occupations, each with "
        f"{spread(rows, 'n_texts')} texts; bars: Wilson 95\u00a0% intervals combined over "
        "prompts; occupations without such texts are left out. Table: representation, template all."
    )
    return Plot([Band(squares)], caption, LEGEND[:1])
