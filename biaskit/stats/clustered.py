"""Means over pairs in clusters of one or two kinds, and gaps of two sides (methods/averages#clusters)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biaskit.common.wording import ROUNDING, joined
from biaskit.records import WOMEN_AND_MEN
from biaskit.stats.arrays import FloatArray
from biaskit.stats.crossed import MANY, Spread, Term, combined, crossed_test, with_tails
from biaskit.stats.proportions import wilson
from biaskit.stats.welch import Statistic

Row = Mapping[str, Any]
MOST_STEPS = 10_000  # of alternating means; clusters that hang together by a thread take many


def spread_of_clusters(
    values: FloatArray,
    a: Sequence[Hashable],
    b: Sequence[Hashable] | None = None,
    side: Sequence[Hashable] | None = None,
    weights: FloatArray | None = None,
) -> Spread:
    """Estimate the variance of a weighted sum over units `[n]` whose clusters are taken as drawn at random.

    Formula: u_i = w_i (x_i − x̄), x̄ the weighted mean of the unit's side; S_A = G/(G−1) Σ_g (Σ_{i in g} u_i)²
        over the G clusters of a, alike S_B; W = C/f Σ_c (Σ_{i in c} w_i e_i)² over the C cells of a × b, e
        the residuals of least squares of x − x̄ on a and b, f = C less their rank, W = 0 if f = 0;
        v = max(S_A + S_B − W, S_A, S_B); dof = v² / (S_A²/(g−1) + S_B²/(h−1) + W²/f), at least 1, with
        g = (Σ_g w_g)² / Σ_g w_g², alike h, g − 1 at least 1. Where each cluster of a lies on one side, S_A
        and W are sums over the sides.
    Clusters a nest others (stereotypes), units repeat in those of b (languages); of sides there are as many
    whatever is drawn; weights are 1/n by default, and of a gap negative on one side. Where each cell has one
    unit, the result is that of `crossed.spread_of_mean` and `crossed.spread_of_difference`. A second kind
    with one cluster is left out; None where the first has one, and without variance unless all values are 0:
    numbers that happen to be equal are no certainty, a model against itself is.
    Reference: methods/averages#clusters; crossed mean squares for unequal cells, checked against them and in
        simulation (`benchmarks/pair_worlds.py`).
    """
    n = len(values)
    w = np.full(n, 1 / max(n, 1)) if weights is None else weights
    sides = _numbered(side if side is not None else [0] * n)
    first, second = _numbered(a), _numbered(b if b is not None else [0] * n)
    n_second = int(second.max(initial=0)) + 1
    means = np.bincount(sides, w * values) / np.bincount(sides, w) if n else np.empty(0)
    off = values - means[sides]
    nested = len({*zip(first.tolist(), sides.tolist(), strict=True)}) == len({*first.tolist()})
    of_first: list[Term] = []
    within: list[Term] = []
    sizes = []
    parts = [sides == one for one in range(int(sides.max(initial=0)) + 1)] if nested else [sides >= 0]
    for here in parts:
        kind, w_here = _numbered(first[here].tolist()), w[here]
        sizes.append(int(kind.max(initial=0)) + 1)
        if sizes[-1] < 2:
            return Spread(None, None, "one cluster: no interval" if n else None)
        of_first.append(term(kind, w_here, off[here]))
        if n_second > 1:
            left, rank, _ = additive(kind, _numbered(second[here].tolist()), off[here])
            cells = _numbered([*zip(kind.tolist(), second[here].tolist(), strict=True)])
            n_cells = int(cells.max()) + 1
            if (free := n_cells - rank) > 0:
                of_cells = np.bincount(cells, w_here * left)
                within.append((np.asarray(n_cells / free * np.square(of_cells).sum()), free))
    variance, dof = combined(of_first, term(second, w, off) if n_second > 1 else None, within)
    if variance <= ROUNDING**2 and values.any():
        return Spread(None, None, "zero variance: no interval", tuple(sizes), n_second)
    return Spread(variance, dof, None, tuple(sizes), n_second)


def term(kind: NDArray[np.intp], w: FloatArray, off: FloatArray) -> Term:
    """Sum the squares of the clusters' sums, with the degrees of freedom of clusters of such sizes."""
    sizes = np.bincount(kind, np.abs(w))
    dof = max(sizes.sum() ** 2 / np.square(sizes).sum() - 1, 1.0)
    return np.asarray(len(sizes) / (len(sizes) - 1) * np.square(np.bincount(kind, w * off)).sum()), dof


def additive(a: NDArray[np.intp], b: NDArray[np.intp], off: FloatArray) -> tuple[FloatArray, int, FloatArray]:
    """Find the residuals of least squares on two kinds of clusters, the rank of their columns, b's levels."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    # By alternating means: the columns themselves of thousands of items would not fit in memory.
    left, levels = off, np.zeros(int(b.max(initial=0)) + 1)
    for _ in range(MOST_STEPS):
        before = left
        of_b = np.bincount(b, left) / np.bincount(b)
        left, levels = left - of_b[b], levels + of_b
        left = left - (np.bincount(a, left) / np.bincount(a))[a]
        if float(np.abs(left - before).max()) < 1e-12:
            break
    n_a, n_b = int(a.max()) + 1, int(b.max()) + 1
    graph = coo_array((np.ones(len(a)), (a, n_a + b)), shape=(n_a + n_b, n_a + n_b))
    return left, n_a + n_b - int(connected_components(graph, directed=False)[0]), levels


def _numbered(labels: Sequence[Hashable]) -> NDArray[np.intp]:
    number: dict[Hashable, int] = {}
    return np.array([number.setdefault(label, len(number)) for label in labels], dtype=np.intp)


def wilson_of_clusters(rate: float, n: int, spread: Spread) -> tuple[float, float] | None:
    """Find Wilson's interval of a rate of n units that lie in clusters; None with one cluster.

    Formula: Wilson's interval of p in n' = (z/t)² p(1 − p)/v units, at most (z/t)² n, with v and the degrees
        of freedom of t those of the clusters. No variance: n' = (z/t)² G of G clusters, G − 1 for each side.
    Reference: methods/averages#clusters; Korn and Graubard 1998, with Wilson's interval.
    """
    from scipy.special import ndtri, stdtrit

    if not spread.n_jobs:
        return None
    n_clusters = float(sum(spread.n_jobs))
    units, dof = min(n_clusters, n), n_clusters - len(spread.n_jobs)
    if spread.variance is not None and spread.dof is not None and spread.variance > 0:
        units, dof = min(rate * (1 - rate) / float(spread.variance), n), min(float(spread.dof), MANY)
    units *= float(ndtri(0.975) / stdtrit(dof, 0.975)) ** 2
    return wilson(rate * units, units)


# --- rows of pairs -------------------------------------------------------------------------------------

FEWEST_LANGUAGES = 4
"""Fewer languages are no sample of languages: the numbers are of these."""
FEWEST_STEREOTYPES = 3
"""Of each direction: fewer are no sample of stereotypes (`benchmarks/pair_worlds.py`)."""
FEW_STEREOTYPES = f"conditional on fewer than {FEWEST_STEREOTYPES} stereotypes of a direction"


def _clusters(rows: Sequence[Row]) -> tuple[str, list[Hashable] | None, str | None]:
    """Choose clusters: stereotypes, if there are several, else items; languages; what is conditional."""
    stereotypes = {row["stereotype"] for row in rows}
    name = "stereotype" if len(stereotypes) > 1 else "item"
    note = "pairs taken as independent" if stereotypes == {""} else None
    languages = [row["language"] for row in rows]
    n = len({*languages})
    if n >= FEWEST_LANGUAGES:
        return name, languages, note
    return name, None, joined([note, f"conditional on these {n} languages" if n > 1 else None])


def even_weights(parts: Sequence[Hashable], clusters: Sequence[Hashable]) -> FloatArray:
    """Give units `[n]` weights of sum 1: each part the same, in it each cluster, in that each unit."""
    places = [*zip(parts, clusters, strict=True)]
    n_units, n_clusters = Counter(places), Counter(part for part, _ in {*places})
    return np.array([1 / len(n_clusters) / n_clusters[place[0]] / n_units[place] for place in places])


def mean_of_pairs(values: FloatArray, rows: Sequence[Row]) -> tuple[float, Spread]:
    """Average values over rows of pair_scores.csv, with the spread of the mean.

    Each language has the same weight, in it each stereotype, in that each pair.
    """
    name, languages, note = _clusters(rows)
    sides: list[Hashable] = [row["direction"] for row in rows]
    clusters: list[Hashable] = [(row["stereotype"], row[name]) for row in rows]
    # The directions are sides where each has two clusters.
    alone = Counter(one for one, _ in {*zip(sides, clusters, strict=True)}).values()
    weights = even_weights([row["language"] for row in rows], clusters)
    fixed = sides if min(alone, default=0) > 1 else None
    spread = spread_of_clusters(values, clusters, languages, fixed, weights)
    return float(np.average(values, weights=weights)), replace(spread, reason=joined([note, spread.reason]))


@dataclass(frozen=True, slots=True)
class Gap:
    """The mean where a stereotype expects women, that where it expects men, and their difference, tested."""

    women: float
    men: float
    test: Statistic
    n_pairs: int


def gap_of_pairs(values: FloatArray, rows: Sequence[Row], *, limit: float = 1.0) -> Gap | None:
    """Test the mean of values where a stereotype expects women less that where it expects men.

    Both means are over the languages that have pairs of both directions, each language with the same weight
    in both: else languages would differ where stereotypes do not; in one each stereotype. None where no
    language has both. With fewer than `FEWEST_STEREOTYPES` on a side the interval is over items, and there is
    no p-value. `limit`: the largest that the gap can be.
    """
    of_women, of_men = WOMEN_AND_MEN
    n_of = Counter((row["language"], row["direction"]) for row in rows if row["direction"])
    languages = {language for language, _ in n_of if n_of[language, of_women] and n_of[language, of_men]}
    chosen: list[Row] = []
    places = []
    stereotypes: defaultdict[str, set[str]] = defaultdict(set)  # of each direction
    for place, row in enumerate(rows):
        if row["direction"] and row["language"] in languages:
            chosen.append(row)
            places.append(place)
            stereotypes[row["direction"]].add(row["stereotype"])
    if not chosen:
        return None
    x = values[places]
    name, of_languages, note = _clusters(chosen)
    sides = [(row["language"], row["direction"]) for row in chosen]
    weights = 2 * even_weights(sides, [(row["stereotype"], row[name]) for row in chosen])
    women = np.array([row["direction"] == of_women for row in chosen])
    means = float((weights * x)[women].sum()), float((weights * x)[~women].sum())
    few = name == "stereotype" and min(map(len, stereotypes.values())) < FEWEST_STEREOTYPES
    clusters = [(row["stereotype"], row["item" if few else name]) for row in chosen]
    spread = spread_of_clusters(x, clusters, of_languages, women.tolist(), np.where(women, weights, -weights))
    if spread.variance is not None and spread.dof is not None:
        # Of 3 against 10 stereotypes dof as estimated makes 7 to 11 % false, no more than Welch's 2 to 6.
        spread = replace(spread, dof=with_tails(spread.variance, spread.dof, spread.n_jobs, 1)[1])
    test = crossed_test(means[0] - means[1], spread, limit=limit)
    n_lacking = n_of.total() - len(chosen)
    lacking = f"{n_lacking} pairs left out: their language has one direction" if n_lacking else None
    test = replace(test, reason=joined([lacking, note, test.reason]))
    if few:
        test = replace(test, statistic=None, p_value=None, reason=joined([FEW_STEREOTYPES, test.reason]))
    return Gap(*means, test, len(chosen))
