"""Figures of the SRB score: GAS(P) Figure 3 (heat map) and Figure 4 (change between two models)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from biaskit.report.figures import dots
from biaskit.report.figures.figure import Figure, Missing
from biaskit.report.figures.lettering import cut, shorten
from biaskit.report.figures.sheet import LINE, WIDTH, Entry, Sheet
from biaskit.report.figures.style import FEMALE, MALE, ON_DARK, ON_LIGHT, Mark
from biaskit.report.figures.view import Drawing, View, mean, number, portions, short, told
from biaskit.tables.query import Row, distinct, where

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GENDERS = {"female": "women", "male": "men"}
HEAT = ("#b35a00", "#f4f1ea", "#00614a")
"""Nearer to specified women, no difference, nearer to specified men: orange and teal, told apart by all."""
CELL = 0.165


def heat_maps(view: View) -> Iterator[Figure | Missing]:
    """One heat map per vector model: scores of two never share a figure (docs/methods.md#vector-models)."""
    title = "SRB scores"
    rows = view.rows("srb")
    if all(row["srb"] is None for row in rows):
        reason = next((cut(row["reason"], 160) for row in rows if row.get("reason")), "no reason is stored")
        why = (
            f"No score is defined in table srb, first because: {reason}."
            if rows
            else "There is no table srb: the texts have no marked words to compare."
        )
        yield view.missing("srb", title, why)
        return
    vectors = [v for v in distinct(rows, "vectors") if v]
    several = len(vectors) > 1
    for i, vector in enumerate(vectors if several else [""], 1):
        own = where(rows, vectors=vector) if several else rows
        name, more = (f"srb-vectors-{i}", f", vectors {cut(vector)}") if several else ("srb", "")
        yield from view.charts(own, name, title, "", partial(_heat_map, every=own), size=6, more=more)


def _order(view: View, rows: Sequence[Row]) -> list[str]:
    """Occupations by the share of women in labour statistics where known, else as they come."""
    shares = {row["occupation"]: row["labour_female_share"] for row in view.rows("representation")}
    names = distinct(rows, "occupation")
    return sorted(names, key=lambda name: -(shares.get(name) or -1.0))


def _heat_map(view: View, rows: Sequence[Row], models: Sequence[str], every: Sequence[Row]) -> Drawing:
    order = _order(view, every)
    limit = max([0.1, *(abs(r["srb"]) for r in every if r["srb"] is not None)])
    columns = [(model, gender) for model in models for gender in GENDERS]
    n_defined = sum(row["srb"] is not None for row in rows)
    vectors = " and ".join(cut(v) for v in distinct(rows, "vectors") if v) or "–"
    note = (
        f"n = {len(order)} occupations, {n_defined} of {len(order) * len(columns)} scores defined (hatched, "
        "–: undefined); unit: difference of distances (−2 to 2), negative = nearer to specified women; no "
        f"interval; bold: outside its null (p < .05); vectors {vectors}."
    )
    left = dots.label_width(order)
    width = min(0.62, (WIDTH - left - 0.1) / len(columns))
    sheet = Sheet(len(order) * CELL + 1.0)
    top = 0.42
    dots.row_labels(sheet, order, top, CELL, left)
    for j, model in enumerate(models):
        x = left + 0.08 + 2 * j * width
        sheet.title(x, 0.1, model, 2 * width - 0.06)
        for k, word in enumerate(GENDERS.values()):
            sheet.text(x + (k + 0.5) * width, 0.28, word, ha="center")
    axes = sheet.axes(left + 0.08, top, len(columns) * width, len(order) * CELL)
    axes.set(xlim=(0, len(columns)), ylim=(len(order), 0), xticks=[], yticks=[])
    axes.spines[["left", "bottom"]].set_visible(False)
    _cells(axes, order, columns, rows, limit)
    _scale(sheet, 0.4, top + len(order) * CELL + 0.14, limit)
    caption = (
        f"Subset Representational Bias score{view.place('Figure 3')} of words marked for women and for "
        f"men in texts whose prompt names no gender. {note} Raw scores grow with the training of the "
        "vectors: compare only within one vector model. Table: srb."
    )
    said = told([_said(model, rows) for model in models], "srb")
    return Drawing(sheet, caption, f"Heat map of {len(order)} occupations. {said}")


def _cells(
    axes: Axes, order: Sequence[str], columns: Sequence[tuple[str, str]], rows: Sequence[Row], limit: float
) -> None:
    """A rectangle for each score with the score in it; undefined ones are hatched."""
    from matplotlib.patches import Rectangle

    found = {(row["occupation"], row["model"], row["gender"]): row for row in rows}
    colours = _colours()
    centred: Any = {"ha": "center", "va": "center_baseline"}
    for y, occupation in enumerate(order):
        for x, (model, gender) in enumerate(columns):
            row = found.get((occupation, model, gender))
            value = row["srb"] if row else None
            place = (x + (0.03 if gender == "female" else 0), y)
            if row is None or value is None:
                blank = Rectangle(place, 0.97, 1, facecolor="none", edgecolor="#9a9a9a", linewidth=0)
                blank.set_hatch("//////")
                axes.add_patch(blank)
                axes.text(x + 0.5, y + 0.5, "–", **centred)
                continue
            colour = colours(0.5 + 0.5 * value / limit)
            axes.add_patch(Rectangle(place, 0.97, 1, facecolor=colour, edgecolor="none"))
            dark = 0.3 * colour[0] + 0.59 * colour[1] + 0.11 * colour[2] < 0.5
            ink = ON_DARK if dark else ON_LIGHT
            weight = "bold" if row["p_value"] is not None and row["p_value"] < 0.05 else "normal"
            shown = short(value, sign=True)
            axes.text(x + 0.5, y + 0.52, shown, color=ink, fontweight=weight, **centred)


def _colours() -> Callable[[float], tuple[float, ...]]:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("srb", HEAT)


def _scale(sheet: Sheet, left: float, top: float, limit: float) -> None:
    """The colours' scale, in 21 steps, with its ends in words."""
    from matplotlib.patches import Rectangle

    axes = sheet.axes(left, top, 2.4, 0.1)
    axes.set(xlim=(-limit, limit), ylim=(0, 1), yticks=[])
    for i in range(21):
        start = -limit + i * 2 * limit / 21
        colour = _colours()(i / 20)
        axes.add_patch(Rectangle((start, 0), 2 * limit / 21 * 1.02, 1, facecolor=colour, edgecolor="none"))
    axes.spines["left"].set_visible(False)
    ends = [-limit, 0, limit]
    axes.set_xticks(ends, [short(end, sign=True) for end in ends])
    sheet.text(left + 2.55, top + 0.05, "left: nearer to specified women; right: to specified men")


def _said(model: str, rows: Sequence[Row]) -> str:
    means = []
    for gender, word in GENDERS.items():
        values = [number(r["srb"]) for r in where(rows, model=model, gender=gender)]
        value = mean(values)
        if value is None:
            means.append(f"{word}'s words undefined")
            continue
        nearer = "women" if value < 0 else "men"
        n = sum(v == v for v in values)
        means.append(
            f"{word}'s words {short(value, sign=True)} on average over {n} occupations (nearer to specified "
            f"{nearer})"
        )
    return f"{cut(model)}: {'; '.join(means)}."


def changes(view: View) -> Iterator[Figure | Missing]:
    """Percent change of the scores between models named one after the other."""
    title = "Change of the SRB scores"
    rows = view.content.between.get("srb_change") or view.part.tables.get("srb_change", ())
    pairs = [
        pair
        for pair in zip(view.models, view.models[1:], strict=False)
        if any((r["model_old"], r["model_new"]) == pair and r["percent_change"] is not None for r in rows)
    ]
    if not pairs:
        reason = (
            "No score of two models can be set against each other (table srb_change): fewer than two models "
            "with the same word vectors, or every change is undefined."
        )
        yield view.missing("srb-change", title, reason)
        return
    for nth, place, some in portions(pairs, 3, even=False):
        yield view.finished(f"srb-change{nth}", title, _changes(view, rows, some), place)


def _changes(view: View, every: Sequence[Row], pairs: Sequence[tuple[str, str]]) -> Drawing:
    rows = [row for row in every if (row["model_old"], row["model_new"]) in pairs]
    order = _order(view, rows)
    limit = dots.widest([number(row["percent_change"]) for row in rows], 10)
    n_defined = sum(row["percent_change"] is not None for row in rows)
    note = (
        f"n = {len(order)} occupations, {n_defined} of {len(rows)} changes defined; unit: percent of the "
        "older score; right = nearer to one's own specified gender; a change of single scores, no interval."
    )
    marks = {"female": Mark(FEMALE, "o"), "male": Mark(MALE, "s")}
    legend = [Entry(word, marks[gender]) for gender, word in GENDERS.items()]
    legend += [dots.UNDEFINED] if n_defined < len(rows) else []
    pitch = dots.row_height(2)
    left = dots.label_width(order)
    sheet = Sheet(len(order) * pitch + 0.72, legend=legend)
    dots.row_labels(sheet, order, 0.4, pitch, left)
    width = (WIDTH - left - 0.1) / len(pairs) - 0.3
    said = []
    for i, (old, new) in enumerate(pairs):
        x = left + 0.1 + i * (width + 0.3)
        sheet.title(x, 0.08, f"{shorten(old, width, bold=True)} →")
        sheet.title(x, 0.08 + LINE, new, width + 0.2)
        axes = sheet.axes(x, 0.4, width, len(order) * pitch)
        series = []
        for gender, word in GENDERS.items():
            own = where(rows, model_old=old, model_new=new, gender=gender)
            of = {row["occupation"]: row for row in own}
            of_gender = dots.series_of(marks[gender], [of.get(name) for name in order], ("percent_change",))
            series.append(of_gender)
            up, n = sum(value > 0 for value in of_gender.x), sum(value == value for value in of_gender.x)
            said.append(f"{cut(old)} to {cut(new)}, {word}: up in {up} of {n} occupations.")
        dots.dot_panel(axes, series, len(order), pitch)
        dots.effect_axis(axes, limit, "percent change")
    caption = (
        "Change of the SRB score from an older to a newer model, for models named one "
        f"after the other; other pairs stand in the table. {note} Table: srb_change."
    )
    return Drawing(sheet, caption, f"Dot plot of {len(order)} occupations. {told(said, 'srb_change')}")
