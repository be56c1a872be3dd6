"""The agreement check above the cell: means of jobs and groups, and the difference between two groups.

The cells of the check are no full table of jobs by templates, so each stands as a job of one template: the
mean over them and its bounds are then those that a run's tables would print of these cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist

import numpy as np

from biaskit.probe.shares.draws import FEWEST_MATCHED, se_of_mean
from biaskit.records import CellShares
from biaskit.stats.arms import Arm, CrossedCells, cross
from biaskit.stats.arrays import FloatArray
from biaskit.stats.contrasts import Scope, between_groups

Pair = tuple[CellShares, CellShares]
"""A cell by the exact estimator and by another."""
N_SIMULATED = 4_000
Z95 = NormalDist().inv_cdf(0.975)
_ARM = Arm("", "", 0, "", "")


@dataclass(frozen=True, slots=True)
class MeanCompared:
    """An exact mean, and what an estimator says of it: point and ends, None where it says nothing."""

    level: str  # job, group, contrast
    quantity: str
    exact: float
    point: float | None
    ends: tuple[float, float] | None
    chance: float = 1.0  # with which such an interval holds the exact value


def bounded_means(pairs: Sequence[Pair], contrast: tuple[int, int]) -> Iterator[MeanCompared]:
    """Means of jobs and of groups with their bounds, and the differences of groups, of cells by `top-k`.

    A cell where nothing is listed has the shares [0, 1] and the difference [-1, 1]. `contrast`: the places of
    the two genders whose difference is taken.
    """
    for level, of in (("job", "job"), ("group", "job_group")):
        for members in _by(pairs, of).values():
            values = _block([got for _, got in members]).shares_at([1])
            (low, high), exact = values.low_and_high, _exact(members)
            for k in range(len(exact)):
                ends = float(low[k].mean()), float(high[k].mean())
                yield MeanCompared(level, "share", float(exact[k].mean()), _known(values.point[k]), ends)
            first, second = contrast
            difference = np.array([got.difference_ends or (None, None) for _, got in members], np.float64)
            difference = np.where(np.isnan(difference), [-1.0, 1.0], difference).mean(axis=0)
            yield MeanCompared(
                level,
                "difference",
                float((exact[first] - exact[second]).mean()),
                _known(values.point[first] - values.point[second]),
                (float(difference[0]), float(difference[1])),
            )
    yield from _bounded_contrasts(_by(pairs, "job_group"))


def _bounded_contrasts(groups: Mapping[str, list[Pair]]) -> Iterator[MeanCompared]:
    """By the rows that a run would write of these cells to tests.csv."""
    scope = Scope("probe", "groups", "", "")
    for one, other in combinations(groups.values(), 2):
        a, b = (_block([got for _, got in members]).shares_at([1]) for members in (one, other))
        exact_a, exact_b = _exact(one), _exact(other)
        for k in range(len(exact_a)):
            rows = between_groups(a[k], b[k], scope=scope, margins={})
            row = next(row for row in rows if row["kind"] == "crossed")
            low, high, point = row["bound_low"], row["bound_high"], row["estimate"]
            assert isinstance(low, float)
            assert isinstance(high, float)
            exact = float(exact_a[k].mean() - exact_b[k].mean())
            yield MeanCompared(
                "contrast", "share", exact, point if isinstance(point, float) else None, (low, high)
            )


def drawn_means(pairs: Sequence[Pair], *, seed: int) -> Iterator[MeanCompared]:
    """Means of groups and their differences with the interval of the draws' own noise, of `sampling`.

    Formula: mean of k/K ± 1.96 se_sampling, over the cells with two matched draws or more, and the exact mean
        over the same cells: how many match does not depend on whom they name. A difference has the root of
        the sum of the squares. `chance` is how often such an interval holds in 4,000 simulated draws of these
        cells, whose exact shares and numbers of matched draws are known.
    """
    rng = np.random.default_rng(seed)
    groups = {name: _Drawn.of(members) for name, members in _by(pairs, "job_group").items()}
    for own in groups.values():
        yield from _intervals("group", [own], rng)
    for one, other in combinations(groups.values(), 2):
        yield from _intervals("contrast", [one, other], rng)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Cells with enough matched draws: exact and drawn shares `[genders, cells]`, matched draws `[cells]`."""

    exact: FloatArray
    shares: FloatArray
    matched: FloatArray

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> _Drawn:
        enough = [pair for pair in pairs if (pair[1].matched or 0) >= FEWEST_MATCHED]
        shares = np.array([got.shares for _, got in enough], dtype=np.float64)
        matched = np.array([got.matched for _, got in enough], dtype=np.float64)
        return cls(_exact(enough), shares.T, matched)


def _intervals(level: str, sides: Sequence[_Drawn], rng: np.random.Generator) -> Iterator[MeanCompared]:
    if any(not side.matched.size for side in sides):
        return
    signs = (1.0, -1.0)[: len(sides)]
    for k in range(len(sides[0].exact)):
        exact, point = (
            sum(sign * float(of[k].mean()) for sign, of in zip(signs, values, strict=True))
            for values in ([side.exact for side in sides], [side.shares for side in sides])
        )
        half = Z95 * float(np.sqrt(sum((se_of_mean(s.shares[k], s.matched)[0] or 0.0) ** 2 for s in sides)))
        chance = _chance([(side.exact[k], side.matched) for side in sides], rng)
        yield MeanCompared(level, "share", exact, point, (point - half, point + half), chance)


def _chance(sides: Sequence[tuple[FloatArray, FloatArray]], rng: np.random.Generator) -> float:
    """How often the interval holds where the exact shares and numbers of matched draws are those given."""
    off, variance = np.zeros(N_SIMULATED), np.zeros(N_SIMULATED)
    for sign, (exact, matched) in zip((1.0, -1.0), sides, strict=False):
        n = matched.astype(np.int64)
        p = rng.binomial(n, np.clip(exact, 0.0, 1.0), (N_SIMULATED, n.size)) / matched
        off += sign * (p.mean(axis=1) - exact.mean())
        variance += (p * (1.0 - p) / (matched - 1.0)).sum(axis=1) / n.size**2
    return float((np.abs(off) <= Z95 * np.sqrt(variance)).mean())


def _by(pairs: Sequence[Pair], name: str) -> dict[str, list[Pair]]:
    """The cells with an exact share by a field of theirs, in order of appearance."""
    found: dict[str, list[Pair]] = {}
    for pair in pairs:
        if pair[0].shares is not None:
            found.setdefault(str(getattr(pair[0].cell, name)), []).append(pair)
    return found


def _exact(pairs: Sequence[Pair]) -> FloatArray:
    return np.array([true.shares for true, _ in pairs], dtype=np.float64).T


def _block(cells: Sequence[CellShares]) -> CrossedCells:
    """The cells as one block, each a job of the one template."""
    nothing: tuple[float | None, ...] = (None,) * len(cells[0].masses or ())
    values = [(*(x.masses or nothing), *(x.shares or nothing), x.coverage) for x in cells]
    ends = [[pair[i] for i in (0, 1) for pair in x.share_ends or ()] for x in cells]
    places = [f"{i:06}" for i in range(len(cells))]
    blocks = cross(
        [_ARM] * len(cells),
        places,
        [1] * len(cells),
        [x.estimator for x in cells],
        np.array(values, dtype=np.float64),
        np.array(ends, dtype=np.float64),
    )
    return blocks[_ARM]


def _known(values: FloatArray) -> float | None:
    return None if np.isnan(values).any() else float(values.mean())
