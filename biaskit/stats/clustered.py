"""A mean over units in clusters of one or two kinds, or the gap of two such means.

See methods/averages#clusters.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from biaskit.stats.arrays import BoolArray, FloatArray
from biaskit.stats.crossed import MANY, Spread, Term, combined
from biaskit.stats.proportions import wilson

FEWEST_CLUSTERS = 4
"""Fewer clusters of a kind are no sample of it: the numbers hold for these alone."""
ONE_CLUSTER = "one cluster: no interval"


def spread_of_clusters(
    values: FloatArray, a: Sequence[Hashable], b: Sequence[Hashable] | None = None
) -> Spread:
    """Estimate the variance of a mean over units whose clusters are taken as drawn at random.

    Formula: u_i = (x_i − x̄)/n; S_A = G/(G−1) Σ_g (Σ_{i in g} u_i)² over the G clusters of a, alike S_B;
        W = C/f Σ_c (Σ_{i in c} e_i/n)² over the C cells of a × b, e the residuals of least squares on a and
        b, f = C less their rank; v = max(S_A + S_B − W, S_A, S_B);
        dof = v² / (S_A²/(g−1) + S_B²/(h−1) + W²/f), at least 1, with g = n² / Σ n_g², alike h.
    Arguments: values `[n]`; the cluster of each unit, of a kind that nests others (stereotypes), and of a
        second kind in which units repeat (languages).
    Returns: v and dof. Where each cell has one unit, those of `crossed.spread_of_mean`.
    Missing or empty input: a second kind with one cluster is left out; None where the first has one.
    Reference: methods/averages#clusters; two kinds as in Cameron, Gelbach and Miller 2011; checked against
        crossed mean squares and in simulation (`benchmarks/pair_worlds.py`).
    """
    return _spread([(values, np.ones(len(values), np.bool_), 1.0)], a, b)


def spread_of_gap(
    values: FloatArray, side: BoolArray, a: Sequence[Hashable], b: Sequence[Hashable] | None = None
) -> Spread:
    """Estimate the variance of the mean of the units on one side less that of the others.

    Formula: S_A and W of `spread_of_clusters` for each side, summed; S_B from the sums over both sides, u_i
        of the second with a minus.
    Arguments: values `[n]`; side `[n]`; clusters, of which the first kind's lie on one side each.
    Returns: v and dof. Where each cell has one unit, the variance of `crossed.spread_of_difference`.
    Missing or empty input: None where a side has one cluster.
    Reference: methods/averages#clusters.
    """
    return _spread([(values, side, 1.0), (values, ~side, -1.0)], a, b)


def _spread(
    parts: Sequence[tuple[FloatArray, BoolArray, float]],
    a: Sequence[Hashable],
    b: Sequence[Hashable] | None,
) -> Spread:
    second = _numbered(b) if b is not None else np.zeros(len(a), np.intp)
    n_second = int(second.max(initial=0)) + 1
    own = np.zeros(len(a))
    of_first: list[Term] = []
    within: list[Term] = []
    for values, here, sign in parts:
        first, n = _numbered([label for label, is_here in zip(a, here, strict=True) if is_here]), here.sum()
        n_first = int(first.max(initial=0)) + 1
        if n_first < 2:
            return Spread(None, None, ONE_CLUSTER if len(a) else None)
        off = values[here] - values[here].mean()
        own[here] = sign * off / n
        of_first.append(_term(first, off / n, n_first / (n_first - 1)))
        if n_second > 1:
            factors = (first, second[here])
            additive = np.hstack([np.equal.outer(kind, np.unique(kind)) for kind in factors]).astype(
                np.float64
            )
            fitted, _, rank, _ = np.linalg.lstsq(additive, off, rcond=None)
            cells = _numbered([*zip(*(kind.tolist() for kind in factors), strict=True)])
            n_cells = int(cells.max()) + 1
            if (free := n_cells - int(rank)) > 0:
                left = np.bincount(cells, (off - additive @ fitted) / n)
                within.append((np.asarray(n_cells / free * np.square(left).sum()), free))
    of_second = _term(second, own, n_second / (n_second - 1)) if n_second > 1 else None
    sizes = tuple(
        len({label for label, is_here in zip(a, here, strict=True) if is_here}) for _, here, _ in parts
    )
    return Spread(*combined(of_first, of_second, within), None, sizes, n_second)


def _term(kind: NDArray[np.intp], own: FloatArray, correction: float) -> Term:
    """Sum the squares of the clusters' sums, with the degrees of freedom of clusters of such sizes."""
    sizes = np.bincount(kind)
    dof = max(sizes.sum() ** 2 / np.square(sizes).sum() - 1, 1.0)
    return np.asarray(correction * np.square(np.bincount(kind, own)).sum()), dof


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
