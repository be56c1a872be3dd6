"""Means over pairs of sentences, which lie in clusters of one or two kinds, and gaps between two sides.

See methods/averages#clusters.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biaskit.stats.arrays import BoolArray, FloatArray
from biaskit.stats.crossed import MANY, Spread, Term, combined, crossed_test
from biaskit.stats.proportions import wilson
from biaskit.stats.welch import Statistic

Row = Mapping[str, Any]


def spread_of_clusters(
    values: FloatArray,
    a: Sequence[Hashable],
    b: Sequence[Hashable] | None = None,
    side: BoolArray | None = None,
    *,
    gap: bool = False,
) -> Spread:
    """Estimate the variance of a mean, or of a gap, over units whose clusters are taken as drawn at random.

    Formula: u_i = (x_i − x̄)/n; S_A = G/(G−1) Σ_g (Σ_{i in g} u_i)² over the G clusters of a, alike S_B;
        W = C/f Σ_c (Σ_{i in c} e_i/n)² over the C cells of a × b, e the residuals of least squares on a and
        b, f = C less their rank; v = max(S_A + S_B − W, S_A, S_B);
        dof = v² / (S_A²/(g−1) + S_B²/(h−1) + W²/f), at least 1, with g = n² / Σ n_g², alike h. With sides
        S_A and W of each, summed, deviations being from its own mean; S_B from the sums over both sides. Of a
        gap u_i is divided by the n of its side, and on the second has a minus.
    Arguments: values `[n]`; the cluster of each unit, of a kind that nests others (stereotypes), and of a
        second kind in which units repeat (languages); the side `[n]`, of which there are two whatever is
        drawn: a cluster of a lies on one. gap: the mean of one side less that of the other.
    Returns: v and dof. Where each cell has one unit, those of `crossed.spread_of_mean`; of a gap the variance
        of `crossed.spread_of_difference`.
    Missing or empty input: None where a kind, or on a side the first, has one cluster.
    Reference: methods/averages#clusters; two kinds as in Cameron, Gelbach and Miller 2011; checked against
        crossed mean squares and in simulation (`benchmarks/pair_worlds.py`).
    """
    second = _numbered(b if b is not None else [0] * len(a))
    n_second = int(second.max(initial=0)) + 1
    own = np.zeros(len(a))
    of_first: list[Term] = []
    within: list[Term] = []
    sizes = []
    for sign, here in ((1.0, np.ones(len(a), np.bool_)),) if side is None else ((1.0, side), (-1.0, ~side)):
        first, n = _numbered([*compress(a, here)]), sign * here.sum() if gap else len(a)
        sizes.append(int(first.max(initial=0)) + 1)
        if sizes[-1] < 2:
            return Spread(None, None, "one cluster: no interval" if len(a) else None)
        off = values[here] - values[here].mean()
        own[here] = off / n
        of_first.append(_term(first, off / n))
        if n_second > 1:
            left, rank = _additive(first, _numbered(second[here].tolist()), off)
            cells = _numbered([*zip(first.tolist(), second[here].tolist(), strict=True)])
            n_cells = int(cells.max()) + 1
            if (free := n_cells - rank) > 0:
                of_cells = np.bincount(cells, left / n)
                within.append((np.asarray(n_cells / free * np.square(of_cells).sum()), free))
    variance, dof = combined(of_first, _term(second, own) if n_second > 1 else None, within)
    return Spread(variance, dof, None, tuple(sizes), n_second)


def _term(kind: NDArray[np.intp], own: FloatArray) -> Term:
    """Sum the squares of the clusters' sums, with the degrees of freedom of clusters of such sizes."""
    sizes = np.bincount(kind)
    dof = max(sizes.sum() ** 2 / np.square(sizes).sum() - 1, 1.0)
    return np.asarray(len(sizes) / (len(sizes) - 1) * np.square(np.bincount(kind, own)).sum()), dof


def _additive(a: NDArray[np.intp], b: NDArray[np.intp], off: FloatArray) -> tuple[FloatArray, int]:
    """Find the residuals of least squares on two kinds of clusters, and the rank of their columns.

    By alternating means: the columns themselves of thousands of items would not fit in memory.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    left, moved = off, math.inf
    while moved > 1e-12:
        before = left
        for kind in (a, b):
            left = left - (np.bincount(kind, left) / np.bincount(kind))[kind]
        moved = float(np.abs(left - before).max())
    n_a, n_b = int(a.max()) + 1, int(b.max()) + 1
    graph = coo_array((np.ones(len(a)), (a, n_a + b)), shape=(n_a + n_b, n_a + n_b))
    return left, n_a + n_b - int(connected_components(graph, directed=False)[0])


def _numbered(labels: Sequence[Hashable]) -> NDArray[np.intp]:
    number: dict[Hashable, int] = {}
    return np.array([number.setdefault(label, len(number)) for label in labels], dtype=np.intp)


def wilson_of_clusters(rate: float, n: int, spread: Spread) -> tuple[float, float] | None:
    """Find Wilson's interval of a rate whose units lie in clusters.

    Formula: Wilson's interval of p in n' = (z/t)² p(1 − p)/v units, at most (z/t)² n, with v and the degrees
        of freedom of t those of the clusters; p of 0 or 1: n' = (z/t)² times the number of clusters.
    Arguments: rate p of n units; the spread of the units' zeros and ones.
    Returns: lower and upper end, fractions in [0, 1].
    Missing or empty input: None without a spread.
    Reference: methods/averages#clusters; Korn and Graubard 1998, with Wilson's interval.
    """
    from scipy.special import ndtri, stdtrit

    if spread.variance is None or spread.dof is None:
        return None
    variance, dof = float(spread.variance), min(float(spread.dof), MANY)
    units = rate * (1 - rate) / variance if variance > 0 and 0 < rate < 1 else float(spread.n_jobs[0])
    units = min(units, n) * float(ndtri(0.975) / stdtrit(dof, 0.975)) ** 2
    return wilson(rate * units, units)


# --- rows of pairs -------------------------------------------------------------------------------------


def spread_of_pairs(values: FloatArray, rows: Sequence[Row], *, gap: bool = False) -> Spread:
    """Estimate the spread of the mean of values, or of their gap, over rows of pair_scores.csv.

    Clusters are stereotypes, where there are several on each side, else items; and languages.
    """
    sides = [[row for row in rows if (row["direction"] == "female") is side] for side in (True, False)]
    numbers = {
        name: [len({row[name] for row in of_side}) for of_side in sides] for name in ("stereotype", "item")
    }
    name = "stereotype" if min(n for n in numbers["stereotype"] if n or gap) > 1 else "item"
    first = [(row["direction"], row["stereotype"], row[name]) for row in rows]
    side = np.array([row["direction"] == "female" for row in rows], np.bool_)
    both = gap or min(numbers[name]) > 1
    return spread_of_clusters(values, first, [r["language"] for r in rows], side if both else None, gap=gap)


def gap_of_pairs(values: FloatArray, rows: Sequence[Row], *, limit: float = 1.0) -> Statistic | None:
    """Test the mean of values where a stereotype expects women less that where it expects men.

    None where all pairs with a direction expect the same side. `limit`: the largest that the gap can be.
    """
    directed = np.array([bool(row["direction"]) for row in rows], np.bool_)
    side = np.array([row["direction"] == "female" for row in rows], np.bool_)[directed]
    if not side.any() or side.all():
        return None
    x = values[directed]
    spread = spread_of_pairs(x, [*compress(rows, directed)], gap=True)
    return crossed_test(float(x[side].mean() - x[~side].mean()), spread, limit=limit)
