"""Figures of who is represented in texts: GAS(P) Figures 2, 6 and 7."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.ticker import MaxNLocator

from biaskit.report.figures import dots
from biaskit.report.figures.figure import Figure, Missing
from biaskit.report.figures.lettering import cut, shorten, text_width
from biaskit.report.figures.probe import by_labour, range_of, spread
from biaskit.report.figures.sheet import COLUMN, WIDTH, Entry, Sheet, marker_style
from biaskit.report.figures.style import FEMALE, GRID, INK, MALE
from biaskit.report.figures.view import Drawing, View, mean, number, short, told
from biaskit.tables.query import Row, defined, distinct, mean_over_prompts, where
from biaskit.wording import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIDES = (("female-dominated", FEMALE, ""), ("male-dominated", MALE, "////"))
US_NONBINARY = 1.6
"""Percent of non-binary U.S. adults in GAS(P) Figure 7 (docs/methods.md#representation-references)."""


def representation(view: View) -> list[Row]:
    """Rows over all prompts, without an instruction."""
    return mean_over_prompts(view.rows("representation"))


def panels_of(
    models: Sequence[str],
    legend: Sequence[Entry],
    *,
    height: float | None = None,
    left: float = 0.48,
    width: float = WIDTH,
) -> tuple[Sheet, float, Iterator[tuple[str, Axes]]]:
    """A sheet, the width of a panel in inches, and a panel for each model under its name, three in a line.

    `height`: of a panel; without it panels are square. `left`: inches before a panel, for its axis.
    """
    per_line = min(max(len(models), 2), 3 if width > COLUMN else 2)
    cell = width / per_line
    side = min(cell - 0.65, 2.2) if height is None else cell - 0.6
    block = (side if height is None else height) + 0.75
    sheet = Sheet(block * -(-len(models) // per_line) - 0.15, legend=legend, width=width)

    def panels() -> Iterator[tuple[str, Axes]]:
        for i, model in enumerate(models):
            x, top = (i % per_line) * cell + left, (i // per_line) * block + 0.25
            sheet.title(x, top - 0.14, model, side + (0.1 if height is None else 0))
            yield model, sheet.axes(x, top, side, side if height is None else height)

    return sheet, side, panels()


def drawn_of(rows: Sequence[Row]) -> str:
    """The number of texts behind the shares, for a note."""
    if any(row["n_texts"] is not None for row in rows):
        return f"{spread([row['n_texts'] for row in rows])} texts"
    return "no text"


def deciles(view: View) -> Iterator[Figure | Missing]:
    """Occupations counted by the share of women in texts, both sides of labour statistics apart."""
    rows = view.rows("deciles", template_id="all")
    title = "Occupations by the share of women in texts"
    reason = "There is no table deciles: no text without a gender in the prompt has an association."
    return view.charts(rows, "deciles", title, reason, _deciles, size=12)


def _deciles(view: View, rows: Sequence[Row], models: Sequence[str]) -> Drawing:
    of_model = {model: where(rows, model=model) for model in models}
    stacks = Counter[tuple[str, float]]()
    for row in rows:
        stacks[row["model"], row["decile_low"]] += row["n_occupations"]
    most = max(stacks.values(), default=1)
    n = sorted({sum(r["n_occupations"] for r in own) for own in of_model.values()})
    note = (
        f"n = {' or '.join(map(str, n))} occupations with a share and labour statistics; bars: number of "
        "occupations per tenth of the share (0 to 1), a count without interval."
    )
    legend = [Entry(f"{side} in labour statistics", patch=(colour, hatch)) for side, colour, hatch in SIDES]
    sheet, _, panels = panels_of(models, legend, height=1.1, left=0.42)
    said = []
    for model, axes in panels:
        axes.set_xlim(0, 1)
        axes.set_xticks([i / 5 for i in range(6)], ["0", ".2", ".4", ".6", ".8", "1"])
        axes.set_xlabel("share of women in texts", labelpad=2)
        axes.grid(axis="y", color=GRID, linewidth=0.5)
        axes.set_ylim(0, max(most * 1.05, 1))
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.set_ylabel("occupations", labelpad=2)
        below = Counter[float]()
        for side, colour, hatch in SIDES:
            own = where(of_model[model], labour_side=side)
            lows, counts = [r["decile_low"] for r in own], [r["n_occupations"] for r in own]
            look: Any = {"facecolor": colour, "edgecolor": INK, "linewidth": 0.5, "hatch": hatch}
            places = [low + 0.05 for low in lows]
            axes.bar(places, counts, 0.09, bottom=[below[low] for low in lows], **look)
            for low, n_there in zip(lows, counts, strict=True):
                below[low] += n_there
            if sum(counts):
                low_half = sum(r["n_occupations"] for r in own if r["decile_low"] < 0.499)
                said.append(
                    f"{cut(model)}: {low_half} of {sum(counts)} {side} occupations have fewer than half "
                    "women in texts."
                )
    caption = (
        f"Occupations by the share of women in texts whose prompt names no gender{view.place('Figure 2')}. "
        f"{note} Table: deciles, template all."
    )
    return Drawing(sheet, caption, f"Histograms for {count(len(models), 'model')}. {told(said, 'deciles')}")


def scatter(view: View) -> Iterator[Figure | Missing]:
    """Share of women in texts against labour statistics."""
    rows = defined(representation(view), "labour_female_share")
    title = "Share of women in texts and in labour statistics"
    reason = (
        "No occupation with labour statistics has texts without a gender in the prompt "
        "(table representation)."
    )
    return view.charts(rows, "scatter", title, reason, _scatter, size=9)


def _scatter(view: View, rows: Sequence[Row], models: Sequence[str]) -> Drawing:
    lacking = sum(row["female_share"] is None for row in rows)
    note = (
        f"n = {len(distinct(rows, 'occupation'))} occupations, each with {drawn_of(rows)}; bars: Wilson "
        "95\u00a0% intervals joined over prompts; both axes: share of women, 0 to 1."
    )
    if lacking:
        note += f" {lacking} undefined shares (–) are not drawn."
    sheet, side, panels = panels_of(models, [Entry("as in labour statistics", line="-")])
    said = []
    for model, axes in panels:
        dots.share_axis(axes, "labour statistics", parity=False)
        axes.set_ylim(0, 1)
        axes.set_yticks(*dots.SHARE_TICKS)
        axes.grid(axis="y", color=GRID, linewidth=0.5)
        axes.set_ylabel("texts", labelpad=1)
        axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, zorder=1)
        own = where(rows, model=model)
        for row in own:
            ends = [number(row["ci_low"]), number(row["ci_high"])]
            axes.plot([row["labour_female_share"]] * 2, ends, color=view.marks[model].colour, linewidth=0.7)
        xs = [row["labour_female_share"] for row in own]
        ys = [number(row["female_share"]) for row in own]
        axes.plot(xs, ys, clip_on=False, zorder=3, **marker_style(view.marks[model], size=3.4))
        gaps = [y - x for x, y in zip(xs, ys, strict=True)]
        _name_far_points(axes, own, side)
        way = sum(gap > 0 for gap in gaps)
        said.append(
            f"{cut(model)}: more women than in labour statistics in {way} of {sum(g == g for g in gaps)} "
            f"occupations, mean difference {short(mean(gaps), sign=True)}."
        )
    caption = (
        f"Each point is an occupation{view.place('Figure 6')}: the share of women among texts with an "
        f"associated gender, over all prompts, against U.S. labour statistics. {note} Table: "
        "representation, template all."
    )
    alt = f"Scatter plots for {count(len(models), 'model')}. {told(said, 'representation')}"
    return Drawing(sheet, caption, alt)


def _name_far_points(axes: Axes, rows: Sequence[Row], side: float) -> None:
    """The occupations farthest from the line get their name, where it meets no bar and no other name."""
    known = defined(rows, "female_share")
    taken = [(r["labour_female_share"],) * 2 + (number(r["ci_low"]), number(r["ci_high"])) for r in known]
    far = sorted(known, key=lambda r: -abs(r["female_share"] - r["labour_female_share"]))
    for row in far[:6]:
        x, y = row["labour_female_share"], row["female_share"]
        text = shorten(row["occupation"], 0.4 * side)
        width = text_width(text) / side
        for left in (x + 0.03, x - 0.03 - width):
            box = (left - 0.01, left + width + 0.01, y - 0.03, y + 0.03)
            inside = box[0] > 0 and box[1] < 1.05
            if inside and not any(_meet(box, other) for other in taken):
                taken.append(box)
                axes.text(left, y, text, va="center_baseline")
                break


def _meet(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    """Whether two boxes (left, right, below, above) have a point in common."""
    return a[0] <= b[1] and b[0] <= a[1] and a[2] <= b[3] and b[2] <= a[3]


def nonbinary(view: View) -> Iterator[Figure | Missing]:
    """Share of non-binary people in texts per occupation."""
    reason = "There is no table representation: no text has a prompt without a gender."
    rows = representation(view)
    return view.charts(rows, "nonbinary", "Non-binary people in texts", reason, _nonbinary)


def _nonbinary(view: View, rows: Sequence[Row], models: Sequence[str]) -> Drawing:
    order = by_labour(rows, "occupation")
    note = (
        f"n = {len(order)} occupations, each with {drawn_of(rows)}; bars: Wilson 95\u00a0% intervals joined "
        "over prompts; unit: share of texts with an associated gender, 0 to 1; dashed: "
        f"{US_NONBINARY:.1f}\u00a0% of U.S. adults."
    )
    legend = [*view.entries(models), Entry("U.S. adults", line="--")]
    legend += [dots.UNDEFINED] if any(row["nonbinary_share"] is None for row in rows) else []
    pitch = dots.row_height(len(models))
    left = dots.label_width(order)
    sheet = Sheet(len(order) * pitch + 0.42, legend=legend)
    dots.row_labels(sheet, order, 0.05, pitch, left)
    axes = sheet.axes(left + 0.1, 0.05, WIDTH - left - dots.GUTTER - 0.25, len(order) * pitch)
    series, said, ends = [], [], [0.05]
    for model in models:
        of = {r["occupation"]: r for r in where(rows, model=model)}
        columns = ("nonbinary_share", "nonbinary_ci_low", "nonbinary_ci_high")
        own = dots.series_of(view.marks[model], [of.get(occupation) for occupation in order], columns)
        series.append(own)
        ends += [end for end in (*own.x, *own.high) if end == end]
        above = sum(share > US_NONBINARY / 100 for share in own.x)
        said.append(
            f"{cut(model)}: {range_of(dict(zip(order, own.x, strict=True)))}; {above} of "
            f"{sum(share == share for share in own.x)} occupations lie above {US_NONBINARY:.1f}\u00a0%."
        )
    dots.dot_panel(axes, series, len(order), pitch)
    axes.set_xlim(0, min(max(ends) * 1.03, 1))
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.grid(axis="x", color=GRID, linewidth=0.5)
    axes.set_xlabel("share of non-binary people", labelpad=2)
    axes.axvline(US_NONBINARY / 100, color=INK, linewidth=0.8, linestyle="--", zorder=1)
    caption = (
        f"Share of non-binary people among texts whose prompt names no gender{view.place('Figure 7')}, "
        f"occupations sorted by the share of women in labour statistics. {note} Table: "
        "representation, template all."
    )
    return Drawing(sheet, caption, f"Dot plot for {len(order)} occupations. {told(said, 'representation')}")
