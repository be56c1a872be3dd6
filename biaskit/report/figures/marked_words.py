"""Figures of marked words: lists against chance, clusters (GAS(P) Figure 5), silhouette (Figure 8)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from matplotlib.ticker import MaxNLocator

from biaskit.report.figures.dots import (
    PARITY,
    DotSeries,
    dot_panel,
    row_height,
    row_labels,
    share_axis,
)
from biaskit.report.figures.figure import Figure, Missing
from biaskit.report.figures.lettering import cut, shorten
from biaskit.report.figures.probe import label_width, shows_parity
from biaskit.report.figures.representation import squares
from biaskit.report.figures.sheet import MARGIN, WIDTH, Entry, Sheet, marker_style
from biaskit.report.figures.style import FEMALE, GRID, INK, MALE, Mark
from biaskit.report.figures.view import (
    Drawing,
    View,
    charts,
    finished,
    missing,
    number,
    short,
    told,
)
from biaskit.tables.query import Row, defined, distinct, where
from biaskit.wording import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_CLUSTERS = 40
ALL = Entry("all models", Mark(INK, "o"), hollow=True)


def figures(view: View) -> Iterator[Figure | Missing]:
    """Every figure that the tables of one study and prompt form allow."""
    yield from word_lists(view)
    yield from clusters(view)
    yield from silhouette(view)


# --- word lists ----------------------------------------------------------------------------------------

_LISTS = (("associated", False), ("specified", True))
_GENDERS = (("female", Mark(FEMALE, "o")), ("male", Mark(MALE, "s")))


def word_lists(view: View) -> Iterator[Figure | Missing]:
    """Length of each list of marked words against what shuffled labels give."""
    title = f"Marked words against chance ({view.heading})"
    rows = [r for r in view.rows("word_lists", method="calibrated") if r["against"] in ("female", "male")]
    shown = rows if defined(rows, "n_marked_beyond", "null_p95_beyond") else ()
    reason = "No list has a null beyond gender words (table word_lists): too few texts, or no permutations."
    yield from charts(view, shown, "word-lists", title, reason, _word_lists, size=9)


def _word_lists(view: View, models: Sequence[str]) -> Drawing:
    rows = [
        row
        for row in view.rows("word_lists", method="calibrated")
        if row["against"] in ("female", "male") and row["model"] in models
    ]
    known = defined(rows, "n_marked_beyond", "null_p95_beyond")
    lacking = len(rows) - len(known)
    widest_null = max([5.0, *(float(r["null_p95_beyond"]) for r in known)]) * 1.06
    longest = max([5.0, *(float(r["n_marked_beyond"]) for r in known)]) * 1.06
    note = (
        f"n = {len(known)} lists of {len(distinct(rows, 'occupation'))} occupations; unit: words with z > "
        "1.96, without gender words and names; null: labels of the texts shuffled (its 95th percentile; no "
        "interval). Above the line: longer than its null."
    )
    if lacking:
        note += f" {lacking} lists are not defined and not drawn."
    legend = [
        Entry(f"{who}, {text}", mark, hollow=hollow)
        for who, mark in (("women", _GENDERS[0][1]), ("men", _GENDERS[1][1]))
        for text, hollow in (("gender not in the prompt", False), ("in the prompt", True))
    ]
    sheet, panels = squares(models, legend, note)
    said = []
    for model, axes in panels:
        own = where(known, model=model)
        _lists_panel(axes, own, widest_null, longest)
        longer = sum(row["n_marked_beyond"] > row["null_p95_beyond"] for row in own)
        said.append(
            f"{cut(model)}: {longer} of {len(own)} lists are longer than their null's 95th percentile."
        )
    caption = (
        f"Each point is a list of marked words of an occupation, a gender and an origin. {note} Table: "
        "word_lists, method calibrated."
    )
    return Drawing(
        sheet, caption, f"Scatter plots for {count(len(models), 'model')}. {told(said, 'word_lists')}"
    )


def _lists_panel(axes: Axes, rows: Sequence[Row], widest_null: float, longest: float) -> None:
    """One model's lists, above the line where they are longer than their null."""
    axes.set(
        xlim=(0, widest_null),
        ylim=(0, longest),
        xlabel="95th percentile of the null (words)",
        ylabel="marked words beyond gender words",
    )
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5, integer=True))
        axis.labelpad = 2
    axes.grid(color=GRID, linewidth=0.5)
    end = min(widest_null, longest)
    axes.plot([0, end], [0, end], color=INK, linewidth=0.8, zorder=1)
    for gender, mark in _GENDERS:
        for origin, hollow in _LISTS:
            own = [r for r in rows if (r["gender"], r["origin"]) == (gender, origin)]
            xs, ys = [r["null_p95_beyond"] for r in own], [r["n_marked_beyond"] for r in own]
            axes.plot(xs, ys, clip_on=False, zorder=3, **marker_style(mark, hollow=hollow, size=3.6))


# --- Figure 5 ------------------------------------------------------------------------------------------


def clusters(view: View) -> Iterator[Figure | Missing]:
    """Share of women among the lists that hold a word of each kept cluster."""
    title = f"Clusters of marked words ({view.heading})"
    rows = view.rows("clusters")
    kept = [row for row in rows if row["kept"] and row["model"] != "all"]
    reason = (
        "No cluster passes the keep rule in every model; table clusters and the LaTeX table of Figure 5 hold"
        " all."
        if rows
        else "There is no table clusters: clusters were left out, or fewer than four words have a vector."
    )
    yield from charts(view, rows if kept else (), "clusters", title, reason, _clusters)


def _clusters(view: View, models: Sequence[str]) -> Drawing:
    rows = [row for row in view.rows("clusters") if row["model"] in (*models, "all")]
    kept = {row["cluster"] for row in rows if row["kept"] and row["model"] != "all"}
    of_all = {row["cluster"]: row for row in rows if row["model"] == "all" and row["cluster"] in kept}
    by_size = sorted(of_all, key=lambda c: (-_pairs(of_all[c]), c))[:MOST_CLUSTERS]
    order = sorted(by_size, key=lambda c: (-number(of_all[c]["female_share"]), c))
    n = [_pairs(of_all[c]) for c in order]
    note = (
        f"n = {len(order)} of {len(kept)} kept clusters, {min(n)} to {max(n)} lists each (column n, all "
        "models); unit: share of women's lists among the lists that hold a word of the cluster, 0 to 1; "
        "counts, so no interval."
    )
    joint = len(view.models) > 1
    legend = [*view.entries(models), *([ALL] if joint else [])]
    legend += [PARITY] if shows_parity(view) else []
    pitch = row_height(len(models) + joint)
    labels = [_named(of_all[c]) for c in order]
    left = label_width(labels, 3.0)
    sheet = Sheet(len(order) * pitch + 0.52, legend=legend, note=note)
    row_labels(sheet, [shorten(t, left - MARGIN, sentence=True) for t in labels], 0.2, pitch, left)
    sheet.text(left + 0.3, 0.1, "n", ha="right")
    row_labels(sheet, [str(each) for each in n], 0.2, pitch, left + 0.3)
    axes = sheet.axes(left + 0.45, 0.2, WIDTH - left - 0.7, len(order) * pitch)
    nothing = [number(None)] * len(order)
    series = []
    for model in models:
        of = {row["cluster"]: number(row["female_share"]) for row in rows if row["model"] == model}
        series.append(
            DotSeries(view.marks[model], [of.get(c, number(None)) for c in order], nothing, nothing)
        )
    shares = [number(of_all[c]["female_share"]) for c in order]
    if joint:
        series.append(DotSeries(Mark(INK, "o"), shares, nothing, nothing, hollow=True))
    dot_panel(axes, series, len(order), pitch)
    share_axis(axes, "share of women's lists", parity=shows_parity(view))
    women = sum(share > 0.5 for share in shares)
    caption = (
        "Kept clusters of words marked for the associated genders (GAS(P) Figure 5), most of women first; a "
        f"label begins with the cluster's first words. {note} Table: clusters."
    )
    alt = (
        f"Dot plot of {len(order)} clusters: {women} stand more often in women's lists, "
        f"{sum(share < 0.5 for share in shares)} in men's. Most of women: {cut(labels[0])} "
        f"({short(shares[0])}); most of men: {cut(labels[-1])} ({short(shares[-1])})."
    )
    return Drawing(sheet, caption, alt)


def _named(row: Row) -> str:
    return f"{row['category']}: {row['words']}" if row["category"] else str(row["words"])


def _pairs(row: Row) -> int:
    return int(row["n_occupations_female"] or 0) + int(row["n_occupations_male"] or 0)


# --- Figure 8 ------------------------------------------------------------------------------------------


def silhouette(view: View) -> Iterator[Figure | Missing]:
    """Mean silhouette for each number of clusters, the chosen one marked."""
    title = f"How many clusters ({view.heading})"
    rows = defined(view.part.tables.get("silhouette", ()), "silhouette")
    if not rows or view.form:
        reason = (
            "There is no table silhouette: clusters were left out, or fewer than four words have a vector."
            if not rows
            else "The clusters are those of several prompt forms together; table silhouette holds the curve."
        )
        yield missing(view.prefix, "silhouette", title, reason)
        return
    ks, values = [row["k"] for row in rows], [row["silhouette"] for row in rows]
    chosen = next((row for row in rows if row["chosen"]), None)
    note = (
        f"n = {len(rows)} numbers of clusters k tried; unit: mean silhouette of the words (−1 to 1), one "
        "start per k, no interval."
    )
    legend = [Entry("chosen k", Mark("#d55e00", "D"))] if chosen else []
    sheet = Sheet(2.3, legend=legend, note=note)
    axes = sheet.axes(0.6, 0.1, WIDTH - 0.8, 1.8)
    axes.grid(color=GRID, linewidth=0.5)
    axes.plot(ks, values, color="#0072b2", marker="o", markersize=3, linewidth=1)
    if chosen:
        axes.plot(
            [chosen["k"]], [chosen["silhouette"]], zorder=4, **marker_style(Mark("#d55e00", "D"), size=7)
        )
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.set_xlabel("number of clusters k", labelpad=2)
    axes.set_ylabel("mean silhouette", labelpad=3)
    said = f"k = {chosen['k']} is chosen with {short(chosen['silhouette'])}" if chosen else "no k is chosen"
    ends = f"from {short(values[0])} at k = {ks[0]} to {short(values[-1])} at k = {ks[-1]}"
    alt = f"Line: the silhouette goes {ends}; {said}."
    yield finished(
        view.prefix,
        "silhouette",
        title,
        Drawing(
            sheet,
            f"Mean silhouette for each number of clusters (GAS(P) Figure 8). {note} Table: silhouette.",
            alt,
        ),
    )
