"""Figures of marked words: lists against chance, clusters (GAS(P) Figure 5), silhouette (Figure 8)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from matplotlib.ticker import MaxNLocator

from biaskit.report.figures import dots
from biaskit.report.figures.figure import Figure, Missing
from biaskit.report.figures.lettering import cut
from biaskit.report.figures.probe import shows
from biaskit.report.figures.representation import panels_of
from biaskit.report.figures.sheet import WIDTH, Entry, Sheet, marker_style
from biaskit.report.figures.style import FEMALE, GRID, INK, MALE, Mark
from biaskit.report.figures.view import Drawing, View, number, short, told
from biaskit.tables.query import Row, defined, distinct, first, where
from biaskit.wording import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_CLUSTERS = 40
ALL = Entry("all models", Mark(INK, "o"), hollow=True)


_MARKS = (("female", "women", Mark(FEMALE, "o")), ("male", "men", Mark(MALE, "s")))
_ORIGINS = (("associated", "gender not in the prompt", False), ("specified", "in the prompt", True))


def word_lists(view: View) -> Iterator[Figure | Missing]:
    """Length of each list of marked words against what shuffled labels give."""
    rows = [r for r in view.rows("word_lists", method="calibrated") if r["against"] in ("female", "male")]
    shown = rows if defined(rows, "n_marked_beyond", "null_p95_beyond") else ()
    reason = "No list has a null beyond gender words (table word_lists): too few texts, or no permutations."
    return view.charts(shown, "word-lists", "Marked words against chance", reason, _word_lists, size=9)


def _word_lists(view: View, rows: Sequence[Row], models: Sequence[str]) -> Drawing:  # noqa: ARG001
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
        for _, who, mark in _MARKS
        for _, text, hollow in _ORIGINS
    ]
    sheet, _, panels = panels_of(models, legend)
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
    alt = f"Scatter plots for {count(len(models), 'model')}. {told(said, 'word_lists')}"
    return Drawing(sheet, caption, alt)


def _lists_panel(axes: Axes, rows: Sequence[Row], widest_null: float, longest: float) -> None:
    """One model's lists, above the line where they are longer than their null."""
    axes.set(xlim=(0, widest_null), ylim=(0, longest))
    axes.set(xlabel="95th percentile of the null (words)", ylabel="marked words beyond gender words")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5, integer=True))
        axis.labelpad = 2
    axes.grid(color=GRID, linewidth=0.5)
    end = min(widest_null, longest)
    axes.plot([0, end], [0, end], color=INK, linewidth=0.8, zorder=1)
    for gender, _, mark in _MARKS:
        for origin, _, hollow in _ORIGINS:
            own = where(rows, gender=gender, origin=origin)
            xs, ys = [r["null_p95_beyond"] for r in own], [r["n_marked_beyond"] for r in own]
            axes.plot(xs, ys, clip_on=False, zorder=3, **marker_style(mark, hollow=hollow, size=3.6))


def clusters(view: View) -> Iterator[Figure | Missing]:
    """Share of women among the lists that hold a word of each kept cluster."""
    rows = view.rows("clusters")
    kept = [row for row in rows if row["kept"] and row["model"] != "all"]
    reason = (
        "No cluster passes the keep rule in every model; table clusters and the LaTeX table of Figure 5 hold"
        " all."
        if rows
        else "There is no table clusters: clusters were left out, or fewer than four words have a vector."
    )
    return view.charts(rows if kept else (), "clusters", "Clusters of marked words", reason, _clusters)


def _clusters(view: View, rows: Sequence[Row], models: Sequence[str]) -> Drawing:
    together = where(view.rows("clusters"), model="all")
    kept = {row["cluster"] for row in rows if row["kept"]}
    of_all = {row["cluster"]: row for row in together if row["cluster"] in kept}
    by_size = sorted(of_all, key=lambda c: (-_pairs(of_all[c]), c))[:MOST_CLUSTERS]
    order = sorted(by_size, key=lambda c: (-number(of_all[c]["female_share"]), c))
    n = [_pairs(of_all[c]) for c in order]
    note = (
        f"n = {len(order)} of {len(kept)} kept clusters, {min(n)} to {max(n)} lists each (column n, all "
        "models); unit: share of women's lists among the lists that hold a word of the cluster, 0 to 1; "
        "counts, so no interval; the rule keeps many clusters by chance (column null_kept)."
    )
    joint = len(view.models) > 1
    legend = [*view.entries(models), *([ALL] if joint else [])]
    legend += [dots.PARITY] if shows(view, "parity") else []
    pitch = dots.row_height(len(models) + joint)
    labels = [_named(of_all[c]) for c in order]
    left = dots.label_width(labels, 3.0)
    sheet = Sheet(len(order) * pitch + 0.52, legend=legend)
    dots.row_labels(sheet, labels, 0.2, pitch, left, sentence=True)
    sheet.text(left + 0.3, 0.1, "n", ha="right")
    dots.row_labels(sheet, [str(each) for each in n], 0.2, pitch, left + 0.3)
    axes = sheet.axes(left + 0.45, 0.2, WIDTH - left - 0.7, len(order) * pitch)
    share_alone = ("female_share",)
    series = []
    for model in models:
        of = {row["cluster"]: row for row in where(rows, model=model)}
        series.append(dots.series_of(view.marks[model], [of.get(c) for c in order], share_alone))
    shares = [number(of_all[c]["female_share"]) for c in order]
    if joint:
        series.append(dots.series_of(Mark(INK, "o"), [of_all[c] for c in order], share_alone, hollow=True))
    dots.dot_panel(axes, series, len(order), pitch)
    dots.share_axis(axes, "share of women's lists", parity=shows(view, "parity"))
    women = sum(share > 0.5 for share in shares)
    caption = (
        f"Kept clusters of words marked for the associated genders{view.place('Figure 5')}, most of women "
        f"first; a label begins with the cluster's first words. {note} Table: clusters."
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


def silhouette(view: View) -> Iterator[Figure | Missing]:
    """Mean silhouette for each number of clusters, the chosen one marked."""
    title = "How many clusters"
    rows = defined(view.part.tables.get("silhouette", ()), "silhouette")
    if not rows or view.form:
        reason = (
            "There is no table silhouette: clusters were left out, or fewer than four words have a vector."
            if not rows
            else "The clusters are those of several prompt forms together; table silhouette holds the curve."
        )
        yield view.missing("silhouette", title, reason)
        return
    ks, values = [row["k"] for row in rows], [row["silhouette"] for row in rows]
    chosen = first(rows, chosen=True)
    mark = Mark("#d55e00", "D")
    note = (
        f"n = {len(rows)} numbers of clusters k tried; unit: mean silhouette of the words (−1 to 1), one "
        "start per k, no interval."
    )
    legend = [Entry("chosen k", mark)] if chosen else []
    sheet = Sheet(2.3, legend=legend)
    axes = sheet.axes(0.6, 0.1, WIDTH - 0.8, 1.8)
    axes.grid(color=GRID, linewidth=0.5)
    axes.plot(ks, values, color="#0072b2", marker="o", markersize=3, linewidth=1)
    if chosen:
        axes.plot([chosen["k"]], [chosen["silhouette"]], zorder=4, **marker_style(mark, size=7))
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.set_xlabel("number of clusters k", labelpad=2)
    axes.set_ylabel("mean silhouette", labelpad=3)
    said = f"k = {chosen['k']} is chosen with {short(chosen['silhouette'])}" if chosen else "no k is chosen"
    ends = f"from {short(values[0])} at k = {ks[0]} to {short(values[-1])} at k = {ks[-1]}"
    alt = f"Line: the silhouette goes {ends}; {said}."
    caption = (
        f"Mean silhouette for each number of clusters{view.place('Figure 8')}. {note} Table: silhouette."
    )
    yield view.finished("silhouette", title, Drawing(sheet, caption, alt))
