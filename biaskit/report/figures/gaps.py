"""Draw the gaps of both engines (methods/comparisons#gaps) against each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from biaskit.report.content import Content
from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.plot import INKED, Axis, Band, Entry, Plot, Spot, Square
from biaskit.report.figures.style import Mark, cut
from biaskit.report.figures.view import PER_FIGURE, all_marks, figure, portions, short, views
from biaskit.runs.store import slug
from biaskit.tables.quantities import BETWEEN_ENGINES, relation
from biaskit.tables.query import Row, defined, distinct, grouped, where

GAP_NAMES = {"probe_gap": "probe gap", "represented_gap": "gap in texts", "srb_spread": "SRB spread"}
TITLE = "Gaps in the probe, in texts and in words"


def figures(content: Content) -> Iterator[Figure]:
    """Draw a figure per bias type and prompt form, for five models at a time."""
    every = [r for r in content.between.get("gaps", ()) if sum(r[c] is not None for c in GAP_NAMES) > 1]
    blocks = grouped(every, "bias_type", "prompt_form")
    several = len({form for _, form in blocks}) > 1
    for (bias_type, form), rows in blocks.items():
        name = f"gaps-{slug(bias_type)}" + (f"-{slug(form)}" if several else "")
        title = f"{TITLE} ({cut(bias_type)}{f', prompt format {cut(form)}' if several else ''})"
        for nth, place, some in portions(distinct(rows, "model"), PER_FIGURE):
            plot = _gaps(content, [r for r in rows if r["model"] in some], some, bias_type)
            yield figure(name + nth, title + place, plot)


def _gaps(content: Content, rows: Sequence[Row], models: Sequence[str], bias_type: str) -> Plot:
    marks_of_page = all_marks(content)
    marks = {model: marks_of_page.get(model, INKED) for model in models}
    squares = []
    for y, x in BETWEEN_ENGINES:
        notes = []
        for model in models:
            shown, size = _relation(content, model, bias_type, relation(y, x))
            notes.append(f"{cut(model, 12)}: {shown}" if len(models) > 1 else f"{shown}{size}")
        squares.append(_square(rows, marks, x, y, notes))
    n = len(distinct(rows, "occupation"))
    caption = (
        "Each point is an occupation. Probe gap: share of women minus share of men in the probe; gap in "
        "texts: the same in texts whose prompt names no gender; SRB spread: SRB of men minus SRB of women, "
        f"right and up: words closer to their own requested gender. n = {n} occupations; both axes are "
        "differences, right and up: more women (shares: −1 to 1) or, for the SRB spread (−4 to 4), men's "
        "words minus women's; ρ: Spearman with its 95\u00a0% bootstrap interval over occupations. "
        "Occupations without a gap are left out. Tables: gaps, tests (kind spearman)."
        f"{''.join(view.weak for view in views(content, 'probe'))}"
    )
    legend = [Entry(model, mark) for model, mark in marks.items()] if len(marks_of_page) > 1 else []
    return Plot([Band(squares)], caption, legend)


def _square(rows: Sequence[Row], marks: Mapping[str, Mark], x: str, y: str, notes: Sequence[str]) -> Square:
    spots = {
        mark: [Spot(str(r["occupation"]), r[x], r[y]) for r in defined(where(rows, model=model), x, y)]
        for model, mark in marks.items()
    }
    every = [spot for of_model in spots.values() for spot in of_model]
    notes = notes if every else [*notes, "no occupation has both"]
    axes = []
    for gap, values in ((x, [spot.x for spot in every]), (y, [spot.y for spot in every])):
        low, high = min([-0.05, *values]), max([0.05, *values])
        room = 0.06 * (high - low)
        axes.append(Axis(GAP_NAMES[gap], low - room, high + room, line=0))
    return Square("", axes[0], axes[1], spots, notes=notes)


def _relation(content: Content, model: str, bias_type: str, quantity: str) -> tuple[str, str]:
    """Write ρ with its interval, and its n."""
    rows = where(content.between.get("tests", ()), quantity=quantity, kind="spearman", model_a=model)
    row = next((row for row in rows if row["bias_type"] in (bias_type, "", None)), None)
    n = f", n = {row['n_a']}" if row is not None and row["n_a"] is not None else ""
    if row is None or row["estimate"] is None:
        return "ρ –", n
    ends = "" if row["ci_low"] is None else f" [{short(row['ci_low'])}, {short(row['ci_high'])}]"
    return f"ρ {short(row['estimate'])}{ends}", n
