"""The first picture of a page: jobs from women's to men's for one model, one row each for several.

Beside the answers stand labour statistics and parity (docs/methods.md#cells-to-tables,
docs/methods.md#representation).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from biaskit.report.content import Content
from biaskit.report.figures import dots
from biaskit.report.figures.figure import Figure
from biaskit.report.figures.lettering import asked, cut, people, shorten
from biaskit.report.figures.models_in_rows import models_in_rows
from biaskit.report.figures.probe import LABOUR_MARK, by_labour, by_share, plain, shows
from biaskit.report.figures.sheet import Entry, Sheet, marker_style
from biaskit.report.figures.style import GRID, PAPER, Mark
from biaskit.report.figures.view import Drawing, View, both_widths, number, views
from biaskit.tables.query import Row, distinct, mean_over_prompts, where
from biaskit.wording import count, percent, share_with_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME = "answer"
MOST_ROWS = 44
"""More items than a screen has room for are drawn against labour statistics instead (`labour.py`)."""
TALLEST = 4.5
"""Inches of the rows: with legend and axis they stay on a screen of 800 pixels."""


@dataclass(frozen=True, slots=True)
class Share:
    """A share of an item with its interval, and what it says to whoever points at it."""

    share: float
    low: float
    high: float
    tip: str


@dataclass(frozen=True, slots=True)
class Measure:
    """One way to ask a model: the shares of the items."""

    panel: str
    name: str
    of: Mapping[str, Share]
    mark: Mark
    hollow: bool


def answer(content: Content) -> Iterator[Figure]:
    """The first picture, where there is something to draw."""
    models = list(dict.fromkeys(model.label for part in content.parts for model in part.models))
    if len(models) > 1:
        yield from models_in_rows(content, NAME)
        return
    measures, labour = _measures(content)
    items = _items(measures, labour)
    if (
        not any(share.share == share.share for one in measures for share in one.of.values())
        or len(items) > MOST_ROWS
    ):
        return
    title = f"Share of {_who(content)} by {_noun(content)}"
    order = {item: labour.get(item) for item in items}

    def draw(width: float) -> Drawing:
        return _rows(content, measures, order, width)

    yield both_widths(NAME, title, draw)


def _first(content: Content, engine: str) -> View | None:
    return next(iter(views(content, engine)), None)


def _who(content: Content) -> str:
    view = _first(content, "probe")
    return people(view.part.contrast[0] if view and view.part.contrast[0] else "female")


def _noun(content: Content) -> str:
    return "job" if _first(content, "probe") else "occupation"


def _measures(content: Content) -> tuple[list[Measure], dict[str, float | None]]:
    """Every way in which the model was asked, and the items with their labour share."""
    found: list[Measure] = []
    labour: dict[str, float | None] = {}
    if (view := _first(content, "probe")) is not None and view.part.contrast[0]:
        rows = plain(view, "probe_jobs")
        labour |= by_labour(rows, "job")
        found += _said(view, rows)
    if (view := _first(content, "personas")) is not None:
        rows = mean_over_prompts(view.rows("representation"))
        shares = by_labour(rows, "occupation")
        labour |= {item: share for item, share in shares.items() if labour.get(item) is None}
        found += _written(view, rows)
    return found, by_share(labour)


def _share(row: Row, columns: tuple[str, str, str], tip: str) -> Share:
    share, low, high = (number(row[column]) for column in columns)
    return Share(share, low, high, tip)


def _said(view: View, rows: Sequence[Row]) -> Iterator[Measure]:
    first = view.part.contrast[0]
    columns = (f"{first}_share", f"{first}_share_ci_low", f"{first}_share_ci_high")
    for bias_type in distinct(rows, "bias_type"):
        name = asked(bias_type)
        own = where(rows, bias_type=bias_type)
        of = {
            str(row["job"]): _share(
                row,
                columns,
                f"{cut(row['job'])}, {name}: {share_with_interval(*(row[c] for c in columns))} "
                f"{people(first)}; coverage {percent(row['coverage'] or 0.0)} %, "
                f"{count(row['n_templates'] or 0, 'template')}",
            )
            for row in own
        }
        mark = view.marks[view.models[0]]
        yield Measure("says", name, of, mark, hollow=bias_type == "explicit")


def _written(view: View, rows: Sequence[Row]) -> Iterator[Measure]:
    columns = ("female_share", "ci_low", "ci_high")
    of = {
        str(row["occupation"]): _share(
            row,
            columns,
            f"{cut(row['occupation'])}, in texts: {share_with_interval(*(row[c] for c in columns))} women; "
            f"{sum(row[n] or 0 for n in ('n_female', 'n_male', 'n_nonbinary')):,} of "
            f"{count(row['n_texts'] or 0, 'text')} name a gender",
        )
        for row in rows
    }
    yield Measure("writes", "in texts", of, Mark(view.marks[view.models[0]].colour, "s"), hollow=False)


def _items(measures: Sequence[Measure], labour: Mapping[str, float | None]) -> list[str]:
    """Every item with a share; where they are too many, those that both engines have."""
    each = [set().union(*(m.of for m in measures if m.panel == p)) for p in {m.panel: 0 for m in measures}]
    every = set().union(*each) if each else set()
    common = set.intersection(*each) if each else set()
    chosen = common if len(every) > MOST_ROWS and len(common) > 1 else every
    return [item for item in labour if item in chosen]


def _rows(
    content: Content, measures: Sequence[Measure], order: Mapping[str, float | None], width: float
) -> Drawing:
    panels = list(dict.fromkeys(one.panel for one in measures))
    pitch = min(0.2, TALLEST / len(order))
    size = 8.0 if pitch >= 0.125 else 7.0
    references = _references(content, order)
    sheet = Sheet(len(order) * pitch + 0.42, legend=_legend(measures, references), width=width)
    left = dots.label_width(order, 0.37 * width)
    for i, item in enumerate(order):
        label = shorten(item, left - 0.06, size=size)
        sheet.text(left, 0.04 + (i + 0.5) * pitch, label, ha="right", fontsize=size)
    gap = 0.3
    room = (width - left - 0.02) / len(panels) - gap
    for k, panel in enumerate(panels):
        axes = sheet.axes(left + 0.12 + k * (room + gap), 0.04, room, len(order) * pitch)
        dots.rows_axis(axes, len(order))
        own = [one for one in measures if one.panel == panel]
        dots.share_axis(axes, _axis(content, panel, own, wide=room > 2), parity="parity" in references)
        dots.percent_axis(axes, room)
        axes.hlines(range(len(order)), 0, 1, color=GRID, linewidth=0.4, zorder=0)
        if "labour" in references:
            _labour(sheet, axes, order)
        for one in own:
            _series(sheet, axes, one, list(order))
    return Drawing(sheet, _caption(content, measures, len(order)), _alt(measures, order))


def _references(content: Content, order: Mapping[str, float | None]) -> set[str]:
    """What the shares are held against: parity, and labour statistics where an item has some."""
    view = _first(content, "probe") or _first(content, "personas")
    asked_for = {name for name in ("labour", "parity") if view is not None and shows(view, name)}
    return asked_for if any(share is not None for share in order.values()) else asked_for - {"labour"}


def _legend(measures: Sequence[Measure], references: set[str]) -> list[Entry]:
    # One way to ask needs no entry: the axis names it.
    legend = [Entry(m.name, m.mark, hollow=m.hollow) for m in measures] if len(measures) > 1 else []
    legend += [Entry("labour statistics", LABOUR_MARK, hollow=True)] * ("labour" in references)
    legend += [Entry("as many women as men", line=":")] * ("parity" in references)
    missing = any(share.share != share.share for one in measures for share in one.of.values())
    return legend + [dots.UNDEFINED] * missing


def _labour(sheet: Sheet, axes: Axes, order: Mapping[str, float | None]) -> None:
    style = marker_style(LABOUR_MARK, hollow=True, size=3.6)
    shares = [number(share) for share in order.values()]
    (marks,) = axes.plot(shares, range(len(order)), zorder=2, clip_on=False, **style)
    said = [f"{cut(item)}, labour statistics: {percent(s or 0.0)} % women" for item, s in order.items()]
    sheet.tip(marks, said)


def _series(sheet: Sheet, axes: Axes, one: Measure, items: Sequence[str]) -> None:
    found = [one.of.get(item) for item in items]
    ys = list(range(len(items)))
    ends = [
        end for share in found for end in ((share.low, share.high, dots.NAN) if share else [dots.NAN] * 3)
    ]
    at = [each for y in ys for each in (y, y, dots.NAN)]
    axes.plot(ends, at, color=one.mark.colour, linewidth=0.9, solid_capstyle="butt", zorder=3)
    style = marker_style(one.mark, hollow=one.hollow, size=4)
    (marks,) = axes.plot([s.share if s else dots.NAN for s in found], ys, zorder=4, clip_on=False, **style)
    if one.hollow:
        marks.set_markerfacecolor(PAPER)
    sheet.tip(marks, [share.tip if share else "" for share in found])
    gone = [y for y, share in zip(ys, found, strict=True) if share and share.share != share.share]
    dots.dashes(axes, gone, one.mark.colour)


def _axis(content: Content, panel: str, measures: Sequence[Measure], *, wide: bool) -> str:
    what = f"{_who(content)} in its {'texts' if panel == 'writes' else 'answers'}"
    named = f" ({measures[0].name})" if panel == "says" and len(measures) == 1 else ""
    return f"share of {what}{named}" if wide else what


def _caption(content: Content, measures: Sequence[Measure], n: int) -> str:
    tables = ["probe_jobs"] * any(m.panel == "says" for m in measures)
    tables += ["representation"] * any(m.panel == "writes" for m in measures)
    named = count(n, _noun(content))
    return (
        f"In percent; n = {named}, sorted by the share of women in labour statistics; bars: 95\u00a0% "
        f"intervals. Tables: {' and '.join(tables)}."
    )


def _alt(measures: Sequence[Measure], order: Mapping[str, float | None]) -> str:
    said = []
    for one in measures:
        known = {i: own.share for i, own in one.of.items() if i in order and own.share == own.share}
        if known:
            least, most = min(known, key=known.__getitem__), max(known, key=known.__getitem__)
            said.append(
                f"{one.name}: from {percent(known[least])} % ({cut(least)}) to {percent(known[most])} % "
                f"({cut(most)})."
            )
    return f"Dot plot of {len(order)} rows. {' '.join(said)}"
