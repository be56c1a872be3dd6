"""Figures of the SRB score: GAS(P) Figure 3 (heat map) and Figure 4 (change between two models)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from biaskit.report.figures.dots import (
    NAN,
    UNDEFINED,
    DotSeries,
    dot_panel,
    effect_axis,
    panel_title,
    row_height,
    row_labels,
    widest,
)
from biaskit.report.figures.figure import Figure, Missing
from biaskit.report.figures.lettering import cut, shorten
from biaskit.report.figures.probe import label_width
from biaskit.report.figures.sheet import LINE, MARGIN, WIDTH, Entry, Sheet
from biaskit.report.figures.style import FEMALE, MALE, ON_DARK, ON_LIGHT, Mark
from biaskit.report.figures.view import (
    Drawing,
    View,
    finished,
    mean,
    missing,
    number,
    pages,
    short,
    told,
)
from biaskit.tables.query import Row, distinct, where

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GENDERS = ("female", "male")
HEAT = ("#b35a00", "#f4f1ea", "#00614a")
"""Nearer to specified women, no difference, nearer to specified men: orange and teal, told apart by all."""
CELL = 0.165


def figures(view: View) -> Iterator[Figure | Missing]:
    """The heat map of every vector model, then the changes."""
    yield from heat_maps(view)
    yield from changes(view)


def heat_maps(view: View) -> Iterator[Figure | Missing]:
    """One heat map per vector model: scores of two vector models never share a figure.

    See docs/methods.md#vector-models.
    """
    title = f"SRB scores ({view.heading})"
    rows = view.rows("srb")
    if not rows:
        yield missing(
            view.prefix, "srb", title, "There is no table srb: the texts have no marked words to compare."
        )
        return
    if all(row["srb"] is None for row in rows):
        reason = next((cut(row["reason"], 160) for row in rows if row.get("reason")), "no reason is stored")
        yield missing(
            view.prefix, "srb", title, f"No score is defined in table srb, first because: {reason}."
        )
        return
    vectors = [v for v in distinct(rows, "vectors") if v] or [""]
    if len(vectors) == 1:
        yield from pages(view, view.models_of(rows), "srb", title, partial(_heat_map, every=rows), size=6)
        return
    for i, name in enumerate(vectors):
        own = where(rows, vectors=name)
        yield from pages(
            view,
            view.models_of(own),
            f"srb-vectors-{i + 1}",
            f"{title}, vectors {cut(name)}",
            partial(_heat_map, every=own),
            size=6,
        )


def _order(view: View, rows: Sequence[Row]) -> list[str]:
    """Occupations by the share of women in labour statistics where known, else as they come."""
    shares = {row["occupation"]: row["labour_female_share"] for row in view.rows("representation")}
    names = distinct(rows, "occupation")
    return sorted(names, key=lambda name: -(shares.get(name) or -1.0))


def _heat_map(view: View, models: Sequence[str], every: Sequence[Row]) -> Drawing:
    rows = [row for row in every if row["model"] in models]
    order = _order(view, every)
    limit = max([0.1, *(abs(r["srb"]) for r in every if r["srb"] is not None)])
    found = {(row["occupation"], row["model"], row["gender"]): row for row in rows}
    columns = [(model, gender) for model in models for gender in GENDERS]
    n_defined = sum(row["srb"] is not None for row in rows)
    vectors = " and ".join(cut(v) for v in distinct(rows, "vectors") if v) or "–"
    note = (
        f"n = {len(order)} occupations, {n_defined} of {len(order) * len(columns)} scores defined (hatched, "
        "–: undefined); unit: difference of distances (−2 to 2), negative = nearer to specified women; no "
        f"interval; bold: outside its null (p < .05); vectors {vectors}."
    )
    left = label_width(order)
    width = min(0.62, (WIDTH - left - 0.1) / len(columns))
    sheet = Sheet(len(order) * CELL + 1.0, note=note)
    top = 0.42
    row_labels(sheet, [shorten(name, left - MARGIN) for name in order], top, CELL, left)
    for j, model in enumerate(models):
        x = left + 0.08 + 2 * j * width
        panel_title(sheet, x, 0.1, shorten(model, 2 * width - 0.06, bold=True))
        for k, word in enumerate(("women", "men")):
            sheet.text(x + (k + 0.5) * width, 0.28, word, ha="center")
    axes = sheet.axes(left + 0.08, top, len(columns) * width, len(order) * CELL)
    axes.set(xlim=(0, len(columns)), ylim=(len(order), 0), xticks=[], yticks=[])
    axes.spines[["left", "bottom"]].set_visible(False)
    _cells(axes, order, columns, found, limit)
    _scale(sheet, 0.4, top + len(order) * CELL + 0.14, limit)
    caption = (
        "Subset Representational Bias score (GAS(P) Figure 3, Algorithm 6) of words marked for women and for "
        f"men in texts whose prompt names no gender. {note} Raw scores grow with the training of the "
        "vectors: compare only within one vector model. Table: srb."
    )
    said = told([_said(model, rows) for model in models], "srb")
    return Drawing(sheet, caption, f"Heat map of {len(order)} occupations. {said}")


def _cells(
    axes: Axes,
    order: Sequence[str],
    columns: Sequence[tuple[str, str]],
    found: Mapping[tuple[str, str, str], Row],
    limit: float,
) -> None:
    """A rectangle for each score with the score in it; undefined ones are hatched."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    colours = LinearSegmentedColormap.from_list("srb", HEAT)
    for y, occupation in enumerate(order):
        for x, (model, gender) in enumerate(columns):
            row = found.get((occupation, model, gender))
            value = row["srb"] if row else None
            place = (x + (0.03 if gender == "female" else 0), y)
            if row is None or value is None:
                blank = Rectangle(place, 0.97, 1, facecolor="none", edgecolor="#9a9a9a", linewidth=0)
                blank.set_hatch("//////")
                axes.add_patch(blank)
                axes.text(x + 0.5, y + 0.5, "–", ha="center", va="center_baseline")
                continue
            colour = colours(0.5 + 0.5 * value / limit)
            axes.add_patch(Rectangle(place, 0.97, 1, facecolor=colour, edgecolor="none"))
            dark = 0.3 * colour[0] + 0.59 * colour[1] + 0.11 * colour[2] < 0.5
            axes.text(
                x + 0.5,
                y + 0.52,
                short(value, sign=True),
                ha="center",
                va="center_baseline",
                color=ON_DARK if dark else ON_LIGHT,
                fontweight="bold" if row["p_value"] is not None and row["p_value"] < 0.05 else "normal",
            )


def _scale(sheet: Sheet, left: float, top: float, limit: float) -> None:
    """The colours' scale, in 21 steps, with its ends in words."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    colours = LinearSegmentedColormap.from_list("srb", HEAT)
    axes = sheet.axes(left, top, 2.4, 0.1)
    axes.set(xlim=(-limit, limit), ylim=(0, 1), yticks=[])
    for i in range(21):
        start = -limit + i * 2 * limit / 21
        axes.add_patch(
            Rectangle((start, 0), 2 * limit / 21 * 1.02, 1, facecolor=colours(i / 20), edgecolor="none")
        )
    axes.spines["left"].set_visible(False)
    ends = [-limit, 0, limit]
    axes.set_xticks(ends, [short(end, sign=True) for end in ends])
    sheet.text(left + 2.55, top + 0.05, "left: nearer to specified women; right: to specified men")


def _said(model: str, rows: Sequence[Row]) -> str:
    means = []
    for gender, word in (("female", "women"), ("male", "men")):
        values = [number(r["srb"]) for r in rows if r["model"] == model and r["gender"] == gender]
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


# --- Figure 4 ------------------------------------------------------------------------------------------


def changes(view: View) -> Iterator[Figure | Missing]:
    """Percent change of the scores between models named one after the other."""
    title = f"Change of the SRB scores ({view.heading})"
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
        yield missing(view.prefix, "srb-change", title, reason)
        return
    for i in range(0, len(pairs), 3):
        name = "srb-change" if i == 0 else f"srb-change-{i // 3 + 1}"
        place = f" ({i // 3 + 1} of {-(-len(pairs) // 3)})" if len(pairs) > 3 else ""
        yield finished(view.prefix, name, title + place, _changes(view, rows, pairs[i : i + 3]))


def _changes(view: View, every: Sequence[Row], pairs: Sequence[tuple[str, str]]) -> Drawing:
    rows = [row for row in every if (row["model_old"], row["model_new"]) in pairs]
    order = _order(view, rows)
    limit = widest([number(row["percent_change"]) for row in rows], 10)
    n_defined = sum(row["percent_change"] is not None for row in rows)
    note = (
        f"n = {len(order)} occupations, {n_defined} of {len(rows)} changes defined; unit: percent of the "
        "older score; right = nearer to one's own specified gender; a change of single scores, no interval."
    )
    marks = {"female": Mark(FEMALE, "o"), "male": Mark(MALE, "s")}
    legend = [Entry("women", marks["female"]), Entry("men", marks["male"])]
    legend += [UNDEFINED] if n_defined < len(rows) else []
    pitch = row_height(2)
    left = label_width(order)
    sheet = Sheet(len(order) * pitch + 0.72, legend=legend, note=note)
    row_labels(sheet, [shorten(name, left - MARGIN) for name in order], 0.4, pitch, left)
    width = (WIDTH - left - 0.1) / len(pairs) - 0.3
    nothing = [NAN] * len(order)
    said = []
    for i, (old, new) in enumerate(pairs):
        x = left + 0.1 + i * (width + 0.3)
        panel_title(sheet, x, 0.08, f"{shorten(old, width, bold=True)} →")
        panel_title(sheet, x, 0.08 + LINE, shorten(new, width + 0.2, bold=True))
        axes = sheet.axes(x, 0.4, width, len(order) * pitch)
        series = []
        for gender, word in (("female", "women"), ("male", "men")):
            of = {
                r["occupation"]: number(r["percent_change"])
                for r in rows
                if (r["model_old"], r["model_new"], r["gender"]) == (old, new, gender)
            }
            values = [of.get(name, NAN) for name in order]
            series.append(DotSeries(marks[gender], values, nothing, nothing))
            up = sum(value > 0 for value in values)
            n = sum(value == value for value in values)
            said.append(f"{cut(old)} to {cut(new)}, {word}: up in {up} of {n} occupations.")
        dot_panel(axes, series, len(order), pitch)
        effect_axis(axes, limit, "percent change")
    caption = (
        "Change of the SRB score from an older to a newer model (GAS(P) Figure 4), for models named one "
        f"after the other; other pairs stand in the table. {note} Table: srb_change."
    )
    return Drawing(sheet, caption, f"Dot plot of {len(order)} occupations. {told(said, 'srb_change')}")
