"""Means of cells against their bounds and against the noise of their draws, from made-up cells."""

from __future__ import annotations

import numpy as np
import pytest

from biaskit.records import Cell, CellShares
from biaskit.workflow.agreed_means import MeanCompared, Pair, bounded_means, drawn_means

GENDERS = 3
Ends = tuple[float | None, float | None]


def cell(job: str, group: str, template: int) -> Cell:
    return Cell("m", "explicit", template, job, group, None, 0, "plain", "raw")


def exact(of: Cell, shares: np.ndarray) -> CellShares:
    return CellShares(of, "exact", tuple(0.5 * shares), 0.5, tuple(map(float, shares)))


def listed(of: Cell, shares: np.ndarray, width: float) -> CellShares:
    """Bounds that hold the shares, and joint ones of the first minus the second; none for width 0."""
    if not width:
        ends: tuple[Ends, ...] = ((None, None),) * GENDERS
        return CellShares(of, "top-k", (0.0,) * GENDERS, 0.0, None, "nothing listed", ends, (0.0, 1.0), None)
    ends = tuple((max(0.0, p - width), min(1.0, p + width / 2)) for p in map(float, shares))
    d = float(shares[0] - shares[1])
    point = tuple(map(float, shares))
    return CellShares(of, "top-k", point, 1.0, point, None, ends, (0.0, 1.0), (d - width, d + width))


@pytest.fixture
def made() -> list[Pair]:
    """Ten jobs in two groups, one to three cells each; in every fourth nothing is listed."""
    rng = np.random.default_rng(4)
    pairs = []
    for i in range(10):
        for template in range(1, 2 + i % 3):
            of = cell(f"job {i}", "one" if i < 6 else "two", template)
            shares = rng.dirichlet(np.ones(GENDERS))
            width = 0.0 if len(pairs) % 4 == 3 else float(rng.uniform(0.01, 0.2))
            pairs.append((exact(of, shares), listed(of, shares, width)))
    return pairs


def by(found: list[MeanCompared], level: str, quantity: str) -> list[MeanCompared]:
    return [x for x in found if (x.level, x.quantity) == (level, quantity)]


def test_bounds_of_means_are_means_of_bounds_and_empty_cells_are_anything(made: list[Pair]) -> None:
    found = list(bounded_means(made, (0, 1)))
    assert 10 * GENDERS == len(by(found, "job", "share"))
    assert 2 * GENDERS == len(by(found, "group", "share"))
    assert [10, 2, GENDERS] == [
        len(by(found, *of)) for of in (("job", "difference"), ("group", "difference"), ("contrast", "share"))
    ]
    ends = {}
    for number, name in enumerate(("one", "two")):
        members = [pair for pair in made if pair[0].cell.job_group == name]
        for k in range(GENDERS):
            low = [0.0 if got.shares is None else got.share_ends[k][0] for _, got in members]  # type: ignore[index]
            high = [1.0 if got.shares is None else got.share_ends[k][1] for _, got in members]  # type: ignore[index]
            x = by(found, "group", "share")[number * GENDERS + k]
            ends[name, k] = sum(low) / len(low), sum(high) / len(high)  # type: ignore[arg-type]
            assert x.ends == pytest.approx(ends[name, k])
            assert x.exact == pytest.approx(sum(true.shares[k] for true, _ in members) / len(members))  # type: ignore[index]
        low = [-1.0 if got.difference_ends is None else got.difference_ends[0] for _, got in members]
        assert by(found, "group", "difference")[number].ends[0] == pytest.approx(sum(low) / len(low))  # type: ignore[index,arg-type]
    for k, x in enumerate(by(found, "contrast", "share")):
        (low_a, high_a), (low_b, high_b) = ends["one", k], ends["two", k]
        assert x.ends == pytest.approx((low_a - high_b, high_a - low_b))


def test_every_bound_holds_where_those_of_the_cells_do(made: list[Pair]) -> None:
    for x in bounded_means(made, (0, 1)):
        assert x.ends is not None
        assert x.ends[0] - 1e-12 <= x.exact <= x.ends[1] + 1e-12


def test_leaving_empty_cells_out_would_be_seen(made: list[Pair]) -> None:
    """The mean over the cells that list something alone misses what the others hold."""
    of = cell("job 0", "one", 9)
    certain = exact(of, np.array([1.0, 0.0, 0.0])), listed(of, np.array([1.0, 0.0, 0.0]), 0.001)
    other = cell("job 0", "one", 10)
    empty = exact(other, np.array([0.0, 1.0, 0.0])), listed(other, np.array([0.0, 1.0, 0.0]), 0.0)
    x = by(list(bounded_means([certain, empty], (0, 1))), "group", "share")[0]
    assert x.exact == 0.5
    assert x.ends is not None
    assert x.ends[0] <= 0.5 <= x.ends[1]
    assert x.point is None


def drawn(shares: np.ndarray, matched: np.ndarray, rng: np.random.Generator) -> list[Pair]:
    pairs = []
    for i, (p, k) in enumerate(zip(shares, matched, strict=True)):
        of = cell(f"job {i}", "one" if i % 2 else "two", 1)
        counts = rng.multinomial(k, p)
        point = tuple(float(c / k) for c in counts) if k else None
        got = CellShares(of, "sampling", tuple(counts / 20), k / 20, point, matched=int(k))
        pairs.append((exact(of, p), got))
    return pairs


def test_the_interval_of_drawn_means_holds_as_often_as_it_says() -> None:
    rng = np.random.default_rng(8)
    shares = rng.dirichlet(np.ones(GENDERS), 24)
    matched = rng.integers(0, 9, 24)
    held: dict[str, list[bool]] = {"group": [], "contrast": []}
    chance: dict[str, list[float]] = {"group": [], "contrast": []}
    for _ in range(300):
        for x in drawn_means(drawn(shares, matched, rng), seed=1):
            assert x.ends is not None
            held[x.level].append(x.ends[0] <= x.exact <= x.ends[1])
            chance[x.level].append(x.chance)
    for level in ("group", "contrast"):
        assert float(np.mean(held[level])) == pytest.approx(float(np.mean(chance[level])), abs=0.03)
        assert 0.85 < float(np.mean(chance[level])) < 0.97


def test_the_same_cells_stand_on_both_sides() -> None:
    rng = np.random.default_rng(9)
    shares = rng.dirichlet(np.ones(GENDERS), 6)
    pairs = drawn(shares, np.array([0, 5, 1, 4, 6, 3]), rng)
    found = [x for x in drawn_means(pairs, seed=1) if x.level == "group"]
    # "two" holds cells 0, 2 and 4, of which only the last has two matched draws.
    assert found[0].exact == pytest.approx(shares[4, 0])
    assert found[GENDERS].exact == pytest.approx(shares[[1, 3, 5], 0].mean())
    assert [] == list(drawn_means(pairs[:1], seed=1))
