"""What figures of jobs and occupations share: from women's to men's, beside workforce shares and parity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from biaskit.report.figures.plot import PARITY, Dots, Entry, Point, point
from biaskit.report.figures.style import INK, Mark
from biaskit.report.figures.view import View
from biaskit.tables.query import Row

MOST_ROWS = 44
"""More items than this do not fit a screen, and are drawn against workforce shares (`workforce.py`)."""
WORKFORCE = Mark(INK, "d")
Shares = Mapping[str, float | None]
"""Item → its workforce share of women, None where that is unknown."""


def of_jobs(view: View, rows: Sequence[Row], *, of_two: bool) -> dict[str, Point]:
    """Map each job to the share of the contrast's first group; `rows`: of probe_jobs.csv."""
    share = "binary_share" if of_two else f"{view.part.contrast[0]}_share"
    return {str(row["job"]): point(row, (share, f"{share}_ci_low", f"{share}_ci_high")) for row in rows}


def of_occupations(rows: Sequence[Row]) -> dict[str, Point]:
    """Map each occupation to the share of women in its texts; `rows`: of representation.csv."""
    return {str(row["occupation"]): point(row, ("female_share", "ci_low", "ci_high")) for row in rows}


def workforce_shares(rows: Sequence[Row], item: str) -> dict[str, float | None]:
    """Map each item to its workforce share; `item`: the column that names it."""
    return {str(row[item]): row["workforce_share"] for row in rows}


def by_share(workforce: Shares) -> dict[str, float | None]:
    """Sort items by their workforce share of women, highest first; those without one last."""
    return dict(sorted(workforce.items(), key=lambda pair: (pair[1] is None, -(pair[1] or 0.0))))


def sorting(order: Shares) -> str:
    """Say how items are sorted."""
    any_known = any(share is not None for share in order.values())
    return "sorted by the workforce share of women" if any_known else "in the order of their list"


def workforce_dots(view: View, order: Shares) -> list[Dots]:
    """Make the series of workforce shares, if the report has them for reference."""
    if not view.shows("workforce") or all(share is None for share in order.values()):
        return []
    return [Dots(WORKFORCE, [None if share is None else Point(share) for share in order.values()], "none")]


def references(view: View, order: Shares) -> list[Entry]:
    """Make the legend of what items are compared with."""
    legend = []
    if workforce_dots(view, order):
        legend.append(Entry("workforce share", WORKFORCE, "none"))
    if view.shows("parity"):
        legend.append(PARITY)
    return legend
