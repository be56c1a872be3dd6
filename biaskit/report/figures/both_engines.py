"""The figure of both engines: their gaps (docs/methods.md#gaps) against each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from biaskit.report.content import Content
from biaskit.report.figures.dots import nice_ticks, signed
from biaskit.report.figures.figure import Figure, Missing
from biaskit.report.figures.lettering import clean, cut, shorten
from biaskit.report.figures.sheet import LINE, WIDTH, Entry, Sheet, marker_style
from biaskit.report.figures.style import GRID, INK, Mark
from biaskit.report.figures.view import PER_PAGE, Drawing, all_marks, finished, number, portions, short, told
from biaskit.runs.store import slug
from biaskit.tables.quantities import BETWEEN_ENGINES, relation
from biaskit.tables.query import Row, distinct, grouped, where

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GAP_NAMES = {"probe_gap": "probe gap", "represented_gap": "gap in texts", "srb_spread": "SRB spread"}
TITLE = "Probe, texts and words against each other"


def figures(content: Content) -> Iterator[Figure | Missing]:
    """One figure per bias type and prompt form, five models at a time."""
    every = [r for r in content.between.get("gaps", ()) if sum(r[c] is not None for c in GAP_NAMES) > 1]
    if not every:
        engines = {part.engine for part in content.parts}
        reason = (
            "No occupation has two of the gaps (table gaps): the engines asked about no common occupation "
            "and model."
            if len(engines) > 1
            else "It takes a run of each engine on the same model and occupations (table gaps)."
        )
        yield Missing("gaps", TITLE, reason)
        return
    blocks = grouped(every, "bias_type", "prompt_form")
    several = len({form for _, form in blocks}) > 1
    for (bias_type, form), rows in blocks.items():
        name = f"gaps-{slug(bias_type)}" + (f"-{slug(form)}" if several else "")
        title = f"{TITLE} ({clean(bias_type)}{f', prompt form {clean(form)}' if several else ''})"
        for nth, place, some in portions(distinct(rows, "model"), PER_PAGE):
            drawing = _gaps(content, [r for r in rows if r["model"] in some], some, bias_type)
            yield finished(name + nth, title + place, drawing)


def _gaps(content: Content, rows: Sequence[Row], models: Sequence[str], bias_type: str) -> Drawing:
    known = all_marks(content)
    marks = {model: known.get(model, Mark(INK, "o")) for model in models}
    n = len(distinct(rows, "occupation"))
    note = (
        f"n = {n} occupations; both axes are differences, right and up = women more (shares: −1 to 1) or, "
        "for the SRB spread (−4 to 4), men's words minus women's; ρ: Spearman with its 95\u00a0% bootstrap "
        "interval over occupations."
    )
    legend = [Entry(shorten(model, 2.1), mark) for model, mark in marks.items()]
    head = 0.3 + LINE * len(models)
    side = WIDTH / 3 - 0.62
    sheet = Sheet(head + side + 0.38, legend=legend)
    said = []
    for i, (y_name, x_name) in enumerate(BETWEEN_ENGINES):
        x = i * WIDTH / 3 + 0.5
        sheet.title(x - 0.4, 0.1, f"{GAP_NAMES[y_name]} against {GAP_NAMES[x_name]}")
        for k, model in enumerate(models):
            shown, words = _relation(content, model, bias_type, relation(y_name, x_name))
            sheet.line([x - 0.33], [0.27 + k * LINE], **marker_style(marks[model]))
            sheet.text(x - 0.22, 0.27 + k * LINE, shown)
            said.append(f"{cut(model)}, {GAP_NAMES[y_name]} against {GAP_NAMES[x_name]}: {words}.")
        axes = sheet.axes(x, head, side, side)
        _panel(axes, rows, marks, x_name, y_name)
    caption = (
        "Each point is an occupation. Probe gap: share of women minus share of men in the probe; gap in "
        "texts: the same in texts whose prompt names no gender; SRB spread: SRB of men minus SRB of women, "
        f"right and up = words nearer to one's own specified gender. {note} Occupations without a gap are "
        "left out. Tables: gaps, tests (kind spearman)."
    )
    return Drawing(sheet, caption, f"Three scatter plots of {n} occupations. {told(said, 'tests')}")


def _panel(axes: Axes, rows: Sequence[Row], marks: Mapping[str, Mark], x_name: str, y_name: str) -> None:
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
        axes.plot(xs, ys, clip_on=False, zorder=3, **marker_style(mark, size=3.6))


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
