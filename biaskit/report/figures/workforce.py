"""Draw items against workforce shares: a square with a spot for each, the diagonal, a fitted line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from biaskit.report.figures.plot import Entry, Point, Spot, Square, shares
from biaskit.report.figures.style import Mark
from biaskit.tables.query import Row

PER_FIGURE = 6
Lines = list[tuple[tuple[float, float], tuple[float, float], str]]
SAME = ((0.0, 0.0), (1.0, 1.0), "-")
LEGEND = (Entry("as in the workforce", line="-"), Entry("fitted line", line="--"))


def spots_of(points: Mapping[str, Point], rows: Sequence[Row], item: str) -> list[Spot]:
    """Place each item at its workforce share; `item`: the column that names it."""
    workforce_of = {str(row[item]): row["workforce_share"] for row in rows}
    return [Spot(name, workforce_of[name], p.x, p.low, p.high) for name, p in points.items()]


def square(title: str, what: str, spots: Sequence[Spot], mark: Mark, fitted: Lines | None = None) -> Square:
    """Make a square; the items farthest from the diagonal on either side are named."""
    known = sorted((spot for spot in spots if spot.y == spot.y), key=lambda spot: spot.y - spot.x)
    named = dict.fromkeys((*known[:1], *known[-1:]))
    axes = shares("workforce share"), shares(f"share in {what}")
    return Square(title, *axes, {mark: spots}, [SAME, *(fitted or [])], [*named])
