"""Figures of the generation engine: GAS(P) Figures 2 to 8, and word lists against chance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from matplotlib.ticker import MaxNLocator

from biaskit.report.content import Row
from biaskit.report.figures.dots import (
    GUTTER,
    PARITY,
    UNDEFINED,
    Series,
    dot_panel,
    panel_title,
    row_height,
    row_labels,
    share_axis,
)
from biaskit.report.figures.lettering import cut, shorten, text_width
from biaskit.report.figures.probe import (
    by_labour,
    label_width,
    models_of,
    range_of,
    shows_parity,
)
from biaskit.report.figures.record import Figure, Missing
from biaskit.report.figures.sheet import MARGIN, WIDTH, Entry, Sheet, marker_style
from biaskit.report.figures.style import FEMALE, GRID, INK, MALE, Mark
from biaskit.report.figures.view import (
    Drawing,
    View,
    distinct,
    finished,
    mean,
    missing,
    number,
    pages,
    short,
    told,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIDES = (("female-dominated", FEMALE, ""), ("male-dominated", MALE, "////"))
US_NONBINARY = 1.6
"""Percent of non-binary people among U.S. adults that GAS(P) Figure 7 draws (METHODS §2.3)."""
MOST_CLUSTERS = 40
ALL = Entry("all models", Mark(INK, "o"), hollow=True)


def figures(view: View) -> Iterator[Figure | Missing]:
    """Every figure that the tables of one study and prompt form allow."""
    yield from deciles(view)
    yield from scatter(view)
    yield from nonbinary(view)
    yield from word_lists(view)
    yield from clusters(view)
    yield from silhouette(view)


def representation(view: View) -> list[Row]:
    """Rows over all prompts, without an instruction."""
    return [r for r in view.rows("representation", template_id="all") if r.get("instruction_id") in (None, 0)]


def grid_of(n: int, most: int = 3) -> tuple[int, float]:
    """How many small panels stand in a line, and how wide one is with its margins."""
    per_line = min(max(n, 2), most)
    return per_line, WIDTH / per_line


def drawn_of(rows: Sequence[Row]) -> str:
    """The number of texts behind the shares, for a note."""
    texts = sorted({row["n_texts"] for row in rows if row["n_texts"] is not None})
    if not texts:
        return "no text"
    return f"{texts[0]} texts" if len(texts) == 1 else f"{texts[0]} to {texts[-1]} texts"


# --- Figure 2 ------------------------------------------------------------------------------------------


def deciles(view: View) -> Iterator[Figure | Missing]:
    """Occupations counted by the share of women in texts, both sides of labour statistics apart."""
    title = f"Occupations by the share of women in texts ({view.heading})"
    rows = view.rows("deciles", template_id="all")
    if not rows:
        reason = "There is no table deciles: no text without a gender in the prompt has an association."
        yield missing(view.prefix, "deciles", title, reason)
        return
    yield from pages(view, models_of(view, rows), "deciles", title, _deciles, size=12)


def _deciles(view: View, models: Sequence[str]) -> Drawing:
    rows = [row for row in view.rows("deciles", template_id="all") if row["model"] in models]
    of_model = {m: [r for r in rows if r["model"] == m] for m in models}
    most = max((sum(r["n_occupations"] for r in own if r["decile_low"] == low) for own in of_model.values()
                for low in {r["decile_low"] for r in own}), default=1)  # fmt: skip
    n = sorted({sum(r["n_occupations"] for r in own) for own in of_model.values()})
    note = (
        f"n = {' or '.join(map(str, n))} occupations with a share and labour statistics; bars: number of "
        "occupations per tenth of the share (0 to 1), a count without interval."
    )
    legend = [Entry(f"{side} in labour statistics", patch=(colour, hatch)) for side, colour, hatch in SIDES]
    per_line, cell = grid_of(len(models))
    sheet = Sheet(1.85 * -(-len(models) // per_line) - 0.15, legend=legend, note=note)
    said = []
    for i, model in enumerate(models):
        x, top = (i % per_line) * cell + 0.42, (i // per_line) * 1.85 + 0.25
        panel_title(sheet, x, top - 0.14, shorten(model, cell - 0.6, bold=True))
        axes = sheet.axes(x, top, cell - 0.6, 1.1)
        axes.set_xlim(0, 1)
        axes.set_xticks([i / 5 for i in range(6)], ["0", ".2", ".4", ".6", ".8", "1"])
        axes.set_xlabel("share of women in texts", labelpad=2)
        axes.grid(axis="y", color=GRID, linewidth=0.5)
        axes.set_ylim(0, max(most * 1.05, 1))
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.set_ylabel("occupations", labelpad=2)
        below = dict.fromkeys((r["decile_low"] for r in of_model[model]), 0)
        for side, colour, hatch in SIDES:
            own = [r for r in of_model[model] if r["labour_side"] == side]
            lows = [r["decile_low"] for r in own]
            axes.bar(
                [low + 0.05 for low in lows],
                [r["n_occupations"] for r in own],
                0.09,
                bottom=[below[low] for low in lows],
                facecolor=colour,
                edgecolor=INK,
                linewidth=0.5,
                hatch=hatch,
            )
            for row in own:
                below[row["decile_low"]] += row["n_occupations"]
            low_half = sum(r["n_occupations"] for r in own if r["decile_low"] < 0.499)
            said.append(
                f"{cut(model)}: {low_half} of {sum(r['n_occupations'] for r in own)} {side} occupations have "
                "fewer "
                "than half women in texts."
            )
    caption = (
        f"Occupations by the share of women in texts whose prompt names no gender (GAS(P) Figure 2). {note} "
        "Table: deciles, template all."
    )
    return Drawing(sheet, caption, f"Histograms for {len(models)} models. {told(said, 'deciles')}")


# --- Figure 6 ------------------------------------------------------------------------------------------


def scatter(view: View) -> Iterator[Figure | Missing]:
    """Share of women in texts against labour statistics."""
    title = f"Share of women in texts and in labour statistics ({view.heading})"
    rows = [row for row in representation(view) if row["labour_female_share"] is not None]
    if not rows:
        reason = (
            "No occupation with labour statistics has texts without a gender in the prompt "
            "(table representation)."
        )
        yield missing(view.prefix, "scatter", title, reason)
        return
    yield from pages(view, models_of(view, rows), "scatter", title, _scatter, size=9)


def _scatter(view: View, models: Sequence[str]) -> Drawing:
    known = [row for row in representation(view) if row["labour_female_share"] is not None]
    rows = [row for row in known if row["model"] in models]
    lacking = sum(row["female_share"] is None for row in rows)
    note = (
        f"n = {len(distinct(rows, 'occupation'))} occupations, each with {drawn_of(rows)}; bars: Wilson "
        "95\u00a0% "
        "intervals joined over prompts; both axes: share of women, 0 to 1."
    )
    if lacking:
        note += f" {lacking} undefined shares (–) are not drawn."
    per_line, cell = grid_of(len(models))
    side = min(cell - 0.65, 2.2)
    block = side + 0.75
    legend = [Entry("as in labour statistics", line="-")]
    sheet = Sheet(block * -(-len(models) // per_line) - 0.15, legend=legend, note=note)
    said = []
    for i, model in enumerate(models):
        x, top = (i % per_line) * cell + 0.48, (i // per_line) * block + 0.25
        panel_title(sheet, x, top - 0.14, shorten(model, side + 0.1, bold=True))
        axes = sheet.axes(x, top, side, side)
        share_axis(axes, "labour statistics", parity=False)
        axes.set_ylim(0, 1)
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"])
        axes.grid(axis="y", color=GRID, linewidth=0.5)
        axes.set_ylabel("texts", labelpad=1)
        axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, zorder=1)
        own = [row for row in rows if row["model"] == model]
        for row in own:
            ends = [number(row["ci_low"]), number(row["ci_high"])]
            axes.plot([row["labour_female_share"]] * 2, ends, color=view.marks[model].colour, linewidth=0.7)
        xs = [row["labour_female_share"] for row in own]
        ys = [number(row["female_share"]) for row in own]
        axes.plot(xs, ys, clip_on=False, zorder=3, **marker_style(view.marks[model], size=3.4))
        gaps = [y - x for x, y in zip(xs, ys, strict=True)]
        _name_far_points(axes, [str(row["occupation"]) for row in own], xs, ys, side)
        way = sum(gap > 0 for gap in gaps)
        said.append(
            f"{cut(model)}: more women than in labour statistics in {way} of {sum(g == g for g in gaps)} "
            f"occupations, mean difference {short(mean(gaps), sign=True)}."
        )
    caption = (
        "Each point is an occupation (GAS(P) Figure 6): the share of women among texts with an associated "
        "gender, "
        f"over all prompts, against U.S. labour statistics. {note} Table: representation, template all."
    )
    return Drawing(sheet, caption, f"Scatter plots for {len(models)} models. {told(said, 'representation')}")


def _name_far_points(
    axes: Axes, names: Sequence[str], xs: Sequence[float], ys: Sequence[float], side: float
) -> None:
    """The occupations farthest from the line get their name, where names do not meet."""
    defined = [(abs(y - x), name, x, y) for name, x, y in zip(names, xs, ys, strict=True) if y == y]
    taken: list[tuple[float, float, float]] = []  # left, right, height
    for _, name, x, y in sorted(defined, reverse=True)[:6]:
        text = shorten(name, 0.4 * side)
        width = text_width(text) / side
        left = x + 0.03 if x < y else x - 0.03 - width  # away from the line
        free = all(right < left or start > left + width or abs(y - at) > 0.06 for start, right, at in taken)
        if free and left > 0.01 and left + width < 1.05:
            taken.append((left, left + width, y))
            axes.text(left, y, text, va="center_baseline")


# --- Figure 7 ------------------------------------------------------------------------------------------


def nonbinary(view: View) -> Iterator[Figure | Missing]:
    """Share of non-binary people in texts per occupation."""
    title = f"Non-binary people in texts ({view.heading})"
    rows = representation(view)
    if not rows:
        reason = "There is no table representation: no text has a prompt without a gender."
        yield missing(view.prefix, "nonbinary", title, reason)
        return
    yield from pages(view, models_of(view, rows), "nonbinary", title, _nonbinary)


def _nonbinary(view: View, models: Sequence[str]) -> Drawing:
    rows = [row for row in representation(view) if row["model"] in models]
    order = by_labour(rows, "occupation")
    note = (
        f"n = {len(order)} occupations, each with {drawn_of(rows)}; bars: Wilson 95\u00a0% intervals joined "
        "over "
        f"prompts; unit: share of texts with an associated gender, 0 to 1; dashed: {US_NONBINARY:.1f}\u00a0% "
        "of U.S. adults."
    )
    legend = [*view.entries(models), Entry("U.S. adults", line="--")]
    legend += [UNDEFINED] if any(row["nonbinary_share"] is None for row in rows) else []
    pitch = row_height(len(models))
    left = label_width(order)
    sheet = Sheet(len(order) * pitch + 0.42, legend=legend, note=note)
    row_labels(sheet, [shorten(o, left - MARGIN) for o in order], 0.05, pitch, left)
    axes = sheet.axes(left + 0.1, 0.05, WIDTH - left - GUTTER - 0.25, len(order) * pitch)
    series, said, ends = [], [], [0.05]
    for model in models:
        of = {r["occupation"]: r for r in rows if r["model"] == model}
        columns = ("nonbinary_share", "nonbinary_ci_low", "nonbinary_ci_high")
        x, low, high = ([number(of[o][c]) if o in of else number(None) for o in order] for c in columns)
        series.append(Series(view.marks[model], x, low, high))
        ends += [end for end in (*x, *high) if end == end]
        above = sum(share > US_NONBINARY / 100 for share in x)
        said.append(
            f"{cut(model)}: {range_of(dict(zip(order, x, strict=True)))}; {above} of "
            f"{sum(s == s for s in x)} occupations lie above {US_NONBINARY:.1f}\u00a0%."
        )
    dot_panel(axes, series, len(order), pitch)
    axes.set_xlim(0, min(max(ends) * 1.03, 1))
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.grid(axis="x", color=GRID, linewidth=0.5)
    axes.set_xlabel("share of non-binary people", labelpad=2)
    axes.axvline(US_NONBINARY / 100, color=INK, linewidth=0.8, linestyle="--", zorder=1)
    caption = (
        "Share of non-binary people among texts whose prompt names no gender (GAS(P) Figure 7), occupations "
        "sorted "
        f"by the share of women in labour statistics. {note} Table: representation, template all."
    )
    return Drawing(sheet, caption, f"Dot plot for {len(order)} occupations. {told(said, 'representation')}")


# --- word lists ----------------------------------------------------------------------------------------

_LISTS = (("associated", False), ("specified", True))
_GENDERS = (("female", Mark(FEMALE, "o")), ("male", Mark(MALE, "s")))


def word_lists(view: View) -> Iterator[Figure | Missing]:
    """Length of each list of marked words against what shuffled labels give."""
    title = f"Marked words against chance ({view.heading})"
    rows = [r for r in view.rows("word_lists", method="calibrated") if r["against"] in ("female", "male")]
    if not any(row["n_marked"] is not None and row["null_p95"] is not None for row in rows):
        reason = "No list of marked words has a null (table word_lists): too few texts, or no permutations."
        yield missing(view.prefix, "word-lists", title, reason)
        return
    yield from pages(view, models_of(view, rows), "word-lists", title, _word_lists, size=9)


def _word_lists(view: View, models: Sequence[str]) -> Drawing:
    rows = [
        row
        for row in view.rows("word_lists", method="calibrated")
        if row["against"] in ("female", "male") and row["model"] in models
    ]
    defined = [r for r in rows if r["n_marked"] is not None and r["null_p95"] is not None]
    lacking = len(rows) - len(defined)
    widest_null = max([5.0, *(float(r["null_p95"]) for r in defined)]) * 1.06
    longest = max([5.0, *(float(r["n_marked"]) for r in defined)]) * 1.06
    note = (
        f"n = {len(defined)} lists of {len(distinct(rows, 'occupation'))} occupations; unit: words with z > "
        "1.96; "
        "null: labels of the texts shuffled (its 95th percentile; no interval). Above the line: longer than "
        "its null."
    )
    if lacking:
        note += f" {lacking} lists are not defined and not drawn."
    legend = [
        Entry(f"{who}, {text}", mark, hollow=hollow)
        for who, mark in (("women", _GENDERS[0][1]), ("men", _GENDERS[1][1]))
        for text, hollow in (("gender not in the prompt", False), ("in the prompt", True))
    ]
    per_line, cell = grid_of(len(models))
    side = min(cell - 0.65, 2.2)
    block = side + 0.75
    sheet = Sheet(block * -(-len(models) // per_line) - 0.15, legend=legend, note=note)
    said = []
    for i, model in enumerate(models):
        x, top = (i % per_line) * cell + 0.48, (i // per_line) * block + 0.25
        panel_title(sheet, x, top - 0.14, shorten(model, side + 0.1, bold=True))
        axes = sheet.axes(x, top, side, side)
        axes.set(
            xlim=(0, widest_null),
            ylim=(0, longest),
            xlabel="95th percentile of the null (words)",
            ylabel="marked words",
        )
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(5, integer=True))
            axis.labelpad = 2
        axes.grid(color=GRID, linewidth=0.5)
        end = min(widest_null, longest)
        axes.plot([0, end], [0, end], color=INK, linewidth=0.8, zorder=1)
        for gender, mark in _GENDERS:
            for origin, hollow in _LISTS:
                own = [
                    r for r in defined if (r["model"], r["gender"], r["origin"]) == (model, gender, origin)
                ]
                xs, ys = [r["null_p95"] for r in own], [r["n_marked"] for r in own]
                axes.plot(xs, ys, clip_on=False, zorder=3, **marker_style(mark, hollow=hollow, size=3.6))
        own = [row for row in defined if row["model"] == model]
        longer = sum(row["n_marked"] > row["null_p95"] for row in own)
        said.append(
            f"{cut(model)}: {longer} of {len(own)} lists are longer than their null's 95th percentile."
        )
    caption = (
        f"Each point is a list of marked words of an occupation, a gender and an origin. {note} Table: "
        "word_lists, "
        "method calibrated."
    )
    return Drawing(sheet, caption, f"Scatter plots for {len(models)} models. {told(said, 'word_lists')}")


# --- Figure 5 ------------------------------------------------------------------------------------------


def clusters(view: View) -> Iterator[Figure | Missing]:
    """Share of women among the lists that hold a word of each kept cluster."""
    title = f"Clusters of marked words ({view.heading})"
    rows = view.rows("clusters")
    kept = {row["cluster"] for row in rows if row["kept"] and row["model"] != "all"}
    if not kept:
        what = "No cluster passes the keep rule in every model" if rows else "There is no table clusters"
        reason = f"{what}; the LaTeX table of Figure 5 and clusters.csv hold what there is."
        yield missing(view.prefix, "clusters", title, reason)
        return
    yield from pages(view, models_of(view, rows), "clusters", title, _clusters)


def _clusters(view: View, models: Sequence[str]) -> Drawing:
    rows = [row for row in view.rows("clusters") if row["model"] in (*models, "all")]
    kept = {row["cluster"] for row in rows if row["kept"] and row["model"] != "all"}
    of_all = {row["cluster"]: row for row in rows if row["model"] == "all" and row["cluster"] in kept}
    by_size = sorted(of_all, key=lambda c: (-_pairs(of_all[c]), c))[:MOST_CLUSTERS]
    order = sorted(by_size, key=lambda c: (-number(of_all[c]["female_share"]), c))
    n = [_pairs(of_all[c]) for c in order]
    note = (
        f"n = {len(order)} of {len(kept)} kept clusters, {min(n)} to {max(n)} lists each (column n, all "
        "models); unit: "
        "share of women's lists among the lists that hold a word of the cluster, 0 to 1; counts, so no "
        "interval."
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
        series.append(Series(view.marks[model], [of.get(c, number(None)) for c in order], nothing, nothing))
    shares = [number(of_all[c]["female_share"]) for c in order]
    if joint:
        series.append(Series(Mark(INK, "o"), shares, nothing, nothing, hollow=True))
    dot_panel(axes, series, len(order), pitch)
    share_axis(axes, "share of women's lists", parity=shows_parity(view))
    women = sum(share > 0.5 for share in shares)
    caption = (
        "Kept clusters of words marked for the associated genders (GAS(P) Figure 5), most of women first; a "
        "label "
        f"begins with the cluster's first words. {note} Table: clusters."
    )
    alt = (
        f"Dot plot of {len(order)} clusters: {women} stand more often in women's lists, "
        f"{sum(share < 0.5 for share in shares)} in men's. Most of women: {cut(labels[0])} "
        f"({short(shares[0])}); most of "
        f"men: {cut(labels[-1])} ({short(shares[-1])})."
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
    rows = [row for row in view.part.tables.get("silhouette", ()) if row["silhouette"] is not None]
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
