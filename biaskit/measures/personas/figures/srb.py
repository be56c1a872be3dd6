"""Draw the SRB scores of occupations (GAS(P), Figure 3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.plot import INKED, Band, Dots, Entry, Panel, Plot, effects, point
from biaskit.report.figures.style import FEMALE, MALE, Mark, cut
from biaskit.report.figures.view import View
from biaskit.tables.query import Row, defined, distinct, named, where

GENDERS = {"female": ("women", Mark(FEMALE, "o")), "male": ("men", Mark(MALE, "s"))}
SURE = 0.05  # a score with a smaller p-value is outside its null
PER_FIGURE = 4


def scores(view: View) -> Iterator[Figure]:
    """Draw a figure per vector model, since their scores do not compare (methods/srb#vector-models)."""
    rows = defined(view.rows("srb"), "srb")
    vectors = named(rows, "vectors")
    for i, vector in enumerate(vectors or [""], 1):
        several = len(vectors) > 1
        # Lists without a score have no vectors: they are shown where there is one vector model.
        of_vectors = where(view.rows("srb"), vectors=vector) if several else view.rows("srb")
        name, title = f"srb-vectors-{i}" if several else "srb", "SRB scores"
        if several:
            title += f", vectors {cut(vector)}"
        if rows:
            yield from view.charts(of_vectors, name, title, _scores, size=PER_FIGURE)


def _scores(view: View, rows: Sequence[Row], models: Sequence[str]) -> Plot:
    # The paper's figure has raw scores; everywhere else gender words are left out.
    place = view.place("Figure 3")
    raw = bool(place) or not defined(rows, "srb_content")
    score, p_value = ("srb", "p_value") if raw else ("srb_content", "srb_content_p_value")
    labour = {row["occupation"]: row["labour_female_share"] for row in view.rows("representation")}
    order = sorted(map(str, distinct(rows, "occupation")), key=lambda name: -(labour.get(name) or -1.0))
    axis = effects([row[score] for row in defined(rows, score)], 0.1, "closer to women · men", unit="")
    panels = []
    for model in models:
        dots = []
        for gender, (_, mark) in GENDERS.items():
            row_of = {str(row["occupation"]): row for row in where(rows, model=model, gender=gender)}
            points = []
            for row in map(row_of.get, order):
                sure = row is not None and row[p_value] is not None and row[p_value] < SURE
                points.append(point(row, (score,), fill="" if sure else "none"))
            dots.append(Dots(mark, points))
        panels.append(Panel(order, axis, dots, title=model if len(view.models) > 1 else ""))
    beyond = ", without gendered words," if not raw else ""
    vectors = " and ".join(map(cut, named(rows, "vectors"))) or "–"
    caption = (
        f"Subset Representational Bias score{place} of words marked for women and for men{beyond} "
        f"in texts whose prompt names no gender; n = {len(order)} occupations, {len(defined(rows, score))} "
        f"of {2 * len(order) * len(models)} scores defined; unit: difference of distances (−2 to 2), left: "
        "closer to requested women, right: to requested men; no interval; full: outside its permutation "
        f"baseline (p < .05); vectors {vectors}. Raw scores grow with the training of the vectors: compare "
        "only within one vector model. Table: srb."
    )
    legend = [Entry(f"words of {who}", mark) for who, mark in GENDERS.values()]
    legend += [Entry("within its permutation baseline", INKED, "none")]
    return Plot([Band(panels)], caption, legend)
