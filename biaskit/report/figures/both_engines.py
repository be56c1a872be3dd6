"""The figure of both engines: their gaps (docs/methods.md#gaps) against each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from biaskit.report.content import Content
from biaskit.report.figures.figure import Figure
from biaskit.report.figures.lettering import clean, cut
from biaskit.report.figures.panels import Band, Square, number
from biaskit.report.figures.scales import nice_ticks, signed
from biaskit.report.figures.sheet import Entry, Sheet, marker_style
from biaskit.report.figures.style import GRID, INK, Mark
from biaskit.report.figures.view import PER_PAGE, Plot, all_marks, finished, portions, short, told
from biaskit.runs.store import slug
from biaskit.tables.quantities import BETWEEN_ENGINES, relation
from biaskit.tables.query import Row, distinct, grouped, where

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GAP_NAMES = {"probe_gap": "probe gap", "represented_gap": "gap in texts", "srb_spread": "SRB spread"}
TITLE = "Probe, texts and words against each other"


def figures(content: Content) -> Iterator[Figure]:
    """One figure per bias type and prompt form, five models at a time."""
    every = [r for r in content.between.get("gaps", ()) if sum(r[c] is not None for c in GAP_NAMES) > 1]
    blocks = grouped(every, "bias_type", "prompt_form")
    several = len({form for _, form in blocks}) > 1
    for (bias_type, form), rows in blocks.items():
        name = f"gaps-{slug(bias_type)}" + (f"-{slug(form)}" if several else "")
        title = f"{TITLE} ({clean(bias_type)}{f', prompt form {clean(form)}' if several else ''})"
        for nth, place, some in portions(distinct(rows, "model"), PER_PAGE):
            plot = _gaps(content, [r for r in rows if r["model"] in some], some, bias_type)
            yield finished(name + nth, title + place, plot)


def _gaps(content: Content, rows: Sequence[Row], models: Sequence[str], bias_type: str) -> Plot:
    known = all_marks(content)
    marks = {model: known.get(model, Mark(INK, "o")) for model in models}
    squares, said = [], []
    for y_name, x_name in BETWEEN_ENGINES:
        notes = []
        for model in models:
            shown, words = _relation(content, model, bias_type, relation(y_name, x_name))
            notes.append((marks[model], shown))
            said.append(f"{cut(model)}, {GAP_NAMES[y_name]} against {GAP_NAMES[x_name]}: {words}.")
        title = f"{GAP_NAMES[y_name]} against {GAP_NAMES[x_name]}"
        squares.append(Square(title, partial(_square, rows, marks, x_name, y_name), notes))
    n = len(distinct(rows, "occupation"))
    caption = (
        "Each point is an occupation. Probe gap: share of women minus share of men in the probe; gap in "
        "texts: the same in texts whose prompt names no gender; SRB spread: SRB of men minus SRB of women, "
        f"right and up = words nearer to one's own specified gender. n = {n} occupations; both axes are "
        "differences, right and up = women more (shares: −1 to 1) or, for the SRB spread (−4 to 4), men's "
        "words minus women's; ρ: Spearman with its 95\u00a0% bootstrap interval over occupations. "
        "Occupations without a gap are left out. Tables: gaps, tests (kind spearman)."
    )
    legend = [Entry(model, mark) for model, mark in marks.items()] if len(known) > 1 else []
    return Plot(
        [Band(squares)], caption, f"Three scatter plots of {n} occupations. {told(said, 'tests')}", legend
    )


def _square(
    rows: Sequence[Row],
    marks: Mapping[str, Mark],
    x_name: str,
    y_name: str,
    sheet: Sheet,
    axes: Axes,
    side: float,  # noqa: ARG001
) -> None:
    for name, set_limits, axis in ((x_name, axes.set_xlim, axes.xaxis), (y_name, axes.set_ylim, axes.yaxis)):
        low, high = _span([number(row[name]) for row in rows])
        set_limits(low, high)
        ticks = [t for t in nice_ticks(max(high, -low), most=2) if low <= t <= high]
        axis.set_ticks(ticks, labels=[signed(tick) for tick in ticks])
        axis.set_label_text(GAP_NAMES[name])
        axis.labelpad = 2
    if not any(row[x_name] is not None and row[y_name] is not None for row in rows):
        axes.set(xticks=[], yticks=[])
        axes.text(0.5, 0.5, "– no occupation has both", ha="center", transform=axes.transAxes)
        return
    axes.grid(color=GRID, linewidth=0.5)
    axes.axhline(0, color=INK, linewidth=0.6, zorder=1)
    axes.axvline(0, color=INK, linewidth=0.6, zorder=1)
    for model, mark in marks.items():
        own = where(rows, model=model)
        xs, ys = [number(r[x_name]) for r in own], [number(r[y_name]) for r in own]
        (drawn,) = axes.plot(xs, ys, clip_on=False, zorder=3, **marker_style(mark, size=3.6))
        names = [f"{cut(model)}, {cut(row['occupation'])}" for row in own]
        numbers = [(short(x, sign=True), short(y, sign=True)) for x, y in zip(xs, ys, strict=True)]
        what = [f"{GAP_NAMES[x_name]} {x}, {GAP_NAMES[y_name]} {y}" for x, y in numbers]
        sheet.tip(drawn, [f"{name}: {said}" for name, said in zip(names, what, strict=True)])


def _span(values: Sequence[float]) -> tuple[float, float]:
    """Ends of an axis that holds the values and, with room around it, 0."""
    defined = [value for value in values if value == value]
    low, high = min([-0.05, *defined]), max([0.05, *defined])
    return low - 0.06 * (high - low), high + 0.06 * (high - low)


def _relation(content: Content, model: str, bias_type: str, quantity: str) -> tuple[str, str]:
    """ρ with its interval as it stands in the figure, and in words."""
    rows = where(content.between.get("tests", ()), quantity=quantity, kind="spearman", model_a=model)
    row = next((row for row in rows if row["bias_type"] in (bias_type, "", None)), None)
    if row is None or row["estimate"] is None:
        n = f" (n = {row['n_a']})" if row is not None and row["n_a"] is not None else ""
        return f"ρ –{n}", f"no rank correlation{n}"
    interval = ""
    if row["ci_low"] is not None and row["ci_high"] is not None:
        interval = f" [{short(row['ci_low'])}, {short(row['ci_high'])}]"
    way = "rise together" if row["estimate"] > 0 else "move against each other"
    return (
        f"ρ {short(row['estimate'])}{interval}, n = {row['n_a']}",
        f"they {way}, rank correlation {short(row['estimate'])}{interval}",
    )
