"""The SRB scores of occupations: GAS(P) Figure 3."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from biaskit.report.figures import panels, scales
from biaskit.report.figures.figure import Figure
from biaskit.report.figures.lettering import cut
from biaskit.report.figures.panels import Band, Dots, Panel, Point, number, of_items
from biaskit.report.figures.sheet import Entry
from biaskit.report.figures.style import FEMALE, INK, MALE, Mark
from biaskit.report.figures.view import Plot, View, mean, short, told
from biaskit.tables.query import Row, defined, distinct, where
from biaskit.wording import count

GENDERS = {"female": ("women", Mark(FEMALE, "o")), "male": ("men", Mark(MALE, "s"))}
SURE = 0.05
"""A score with a smaller p-value lies outside its null."""
PER_FIGURE = 6


def scores(view: View) -> Iterator[Figure]:
    """One figure per vector model: scores of two never share one (docs/methods.md#vector-models)."""
    rows = view.rows("srb")
    if not defined(rows, "srb"):
        return
    vectors = [v for v in distinct(rows, "vectors") if v]
    several = len(vectors) > 1
    for i, vector in enumerate(vectors if several else [""], 1):
        own = where(rows, vectors=vector) if several else rows
        name, more = (f"srb-vectors-{i}", f", vectors {cut(vector)}") if several else ("srb", "")
        draw = partial(_scores, every=own)
        yield from view.charts(own, name, "SRB scores", draw, size=PER_FIGURE, more=more)


def _order(view: View, rows: Sequence[Row]) -> list[str]:
    """Occupations by the share of women in labour statistics where known, else as they come."""
    shares = {row["occupation"]: row["labour_female_share"] for row in view.rows("representation")}
    return sorted(map(str, distinct(rows, "occupation")), key=lambda name: -(shares.get(name) or -1.0))


def _scores(view: View, rows: Sequence[Row], models: Sequence[str], every: Sequence[Row]) -> Plot:
    order = _order(view, every)
    limit = scales.widest([number(row["srb"]) for row in every], 0.1)
    shown, said = [], []
    for model in models:
        dots = []
        for gender, (who, mark) in GENDERS.items():
            own = where(rows, model=model, gender=gender)
            dots.append(Dots(mark, of_items(order, own, "occupation", _score)))
            said.append(_mean(model, who, [number(row["srb"]) for row in own]))
        scale = scales.effects(limit, "nearer to women · men", "SRB", per=1)
        title = model if len(view.models) > 1 else ""
        shown.append(Panel(order, scale, dots, title=title, least=0.8))
    vectors = " and ".join(cut(v) for v in distinct(rows, "vectors") if v) or "–"
    caption = (
        f"Subset Representational Bias score{view.place('Figure 3')} of words marked for women and for men "
        f"in texts whose prompt names no gender; n = {len(order)} occupations, {len(defined(rows, 'srb'))} "
        f"of {2 * len(order) * len(models)} scores defined; unit: difference of distances (−2 to 2), left = "
        "nearer to specified women, right = to specified men; no interval; full: outside its null (p < "
        f".05); vectors {vectors}. Raw scores grow with the training of the vectors: compare only within one "
        "vector model. Table: srb."
    )
    legend = [Entry(f"words of {who}", mark) for who, mark in GENDERS.values()]
    legend += [Entry("within its null", Mark(INK, "o"), fill="none")]
    return Plot([Band(shown)], caption, f"Dot plot of {len(order)} occupations. {told(said, 'srb')}", legend)


def _score(row: Row | None) -> Point:
    if row is None or row["srb"] is None:
        return panels.point(None)
    sure = row["p_value"] is not None and row["p_value"] < SURE
    null = "outside its null" if sure else "within its null"
    tip = f"{cut(row['model'])}, {cut(row['occupation'])}, {GENDERS[row['gender']][0]}: "
    return Point(row["srb"], tip=f"{tip}{short(row['srb'], sign=True)}, {null}", fill="" if sure else "none")


def _mean(model: str, who: str, values: Sequence[float]) -> str:
    value = mean(values)
    if value is None:
        return f"{cut(model)}: {who}'s words undefined."
    n = count(sum(v == v for v in values), "occupation")
    nearer = f"nearer to specified {'women' if value < 0 else 'men'}"
    return f"{cut(model)}: {who}'s words {short(value, sign=True)} on average over {n} ({nearer})."
