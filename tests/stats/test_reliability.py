"""Reliability against plain loops, and what ways differ by where the truth is known."""

from __future__ import annotations

from itertools import combinations
from math import sqrt
from statistics import correlation, fmean, variance

import numpy as np
import pytest
from numpy.random import default_rng

from biaskit.stats.reliability import split_half, splits, spread_of_levels, without_one

Table = list[list[float]]


def shares(n_jobs: int, n_templates: int, seed: int = 1) -> Table:
    rng = default_rng(seed)
    jobs, templates = rng.normal(0.5, 0.2, (n_jobs, 1)), rng.normal(0, 0.1, (1, n_templates))
    table: Table = (jobs + templates + rng.normal(0, 0.1, (n_jobs, n_templates))).tolist()
    return table


def plain_split_half(table: Table, first_halves: list[tuple[int, ...]]) -> float:
    """All halves, one after the other: Pearson's r of jobs' means, their mean stepped up."""
    found = []
    for first in first_halves:
        rest = [j for j in range(len(table[0])) if j not in first]
        of_first = [fmean(row[j] for j in first) for row in table]
        of_rest = [fmean(row[j] for j in rest) for row in table]
        found.append(correlation(of_first, of_rest))
    r = fmean(found)
    return 2 * r / (1 + r)


@pytest.mark.parametrize("n_templates", [2, 3, 6])
def test_split_half_is_that_of_plain_loops(n_templates: int) -> None:
    table = shares(12, n_templates)
    halves = list(combinations(range(n_templates), n_templates // 2))
    if n_templates % 2 == 0:  # each half once, not the other one too
        halves = [half for half in halves if 0 in half]
    found = split_half(np.array(table), default_rng(1))
    assert found.value == pytest.approx(plain_split_half(table, halves), abs=1e-12)
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.value < found.high < 1


def test_many_templates_are_halved_two_hundred_times() -> None:
    halves = splits(25, default_rng(1))
    assert (200, 25) == halves.shape
    assert {12.0} == {*halves.sum(axis=1).tolist()}
    assert (10, 5) == splits(5, default_rng(1)).shape
    assert (3, 4) == splits(4, default_rng(1)).shape
    picked = [tuple(np.flatnonzero(half).tolist()) for half in halves]
    found = split_half(np.array(shares(12, 25)), default_rng(1))
    assert found.value == pytest.approx(plain_split_half(shares(12, 25), picked), abs=1e-12)


def test_where_there_is_no_reliability_the_reason_says_why() -> None:
    rng = default_rng(1)
    assert split_half(np.ones((12, 1)), rng).reason == "one template: no reliability"
    assert split_half(np.ones((9, 4)), rng).reason == "fewer than 10 jobs: no reliability"
    assert split_half(np.ones((12, 4)), rng).reason == "jobs do not differ: no reliability"


def test_the_range_without_one_is_that_of_plain_loops() -> None:
    a, b = shares(5, 3, seed=1), shares(4, 3, seed=2)

    def gap(a: Table, b: Table) -> float:
        return fmean(map(fmean, a)) - fmean(map(fmean, b))

    jobs = [gap(a[:i] + a[i + 1 :], b) for i in range(5)] + [gap(a, b[:i] + b[i + 1 :]) for i in range(4)]
    templates = []
    for j in range(3):
        templates.append(gap(*([row[:j] + row[j + 1 :] for row in table] for table in (a, b))))
    for axis, gaps in enumerate((jobs, templates)):
        assert without_one(np.array(a), np.array(b), axis) == pytest.approx((min(gaps), max(gaps)))
    assert without_one(np.array(a)[:1], np.array(b), 0) is None


def test_the_sd_of_ways_is_that_of_plain_loops() -> None:
    a, b = shares(6, 4, seed=3), shares(5, 4, seed=4)
    gaps = [fmean(row[k] for row in a) - fmean(row[k] for row in b) for k in range(4)]
    noise = 0.0
    for table in (a, b):
        left = [[x - fmean(row) for x in row] for row in table]
        noise += sum(variance(row[k] for row in left) for k in range(4)) / len(table)
    found = spread_of_levels([np.array(a), np.array(b)])
    assert found.value == pytest.approx(sqrt(max(variance(gaps) - noise / 3, 0)), abs=1e-12)


def test_the_interval_of_the_sd_holds_the_truth_and_0_where_ways_do_nothing() -> None:
    rng = default_rng(5)
    for truth in (0.0, 0.1):
        effects = rng.normal(size=8)
        effects = (effects - effects.mean()) / effects.std(ddof=1) * truth
        held = 0
        for _ in range(300):
            groups = [side * effects / 2 + rng.normal(0, 0.1, (10, 8)) for side in (1, -1)]
            found = spread_of_levels(groups)
            assert found.low is not None
            assert found.high is not None
            held += found.low <= truth <= found.high
        assert 0.93 * 300 <= held


def test_ways_without_any_noise_have_a_plain_sd() -> None:
    a, b = np.tile([0.8, 0.9, 0.8], (5, 1)), np.tile([0.4, 0.4, 0.4], (4, 1))
    found = spread_of_levels([a, b])
    assert (found.low, found.value, found.high) == pytest.approx((np.std([0.4, 0.5, 0.4], ddof=1),) * 3)
    assert spread_of_levels([a[:, :1], b[:, :1]]).reason == "one way: no SD"
    assert spread_of_levels([a[:3], b]).reason == "a group of fewer than 4 jobs: no SD"
