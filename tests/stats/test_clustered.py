"""Means and gaps over clustered units, against crossed mean squares and plain loops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from biaskit.stats.clustered import (
    even_weights,
    gap_of_pairs,
    mean_of_pairs,
    spread_of_clusters,
    wilson_of_clusters,
)
from biaskit.stats.crossed import spread_of_difference, spread_of_mean
from biaskit.stats.proportions import wilson

FloatArray = NDArray[np.float64]


def table(n_jobs: int, n_templates: int, seed: int) -> tuple[FloatArray, list[int], list[int]]:
    """A crossed table with its clusters, cell by cell."""
    values = np.random.default_rng(seed).random((n_jobs, n_templates))
    a, b = np.indices(values.shape).reshape(2, -1).tolist()
    return values, a, b


@given(st.integers(2, 7), st.sampled_from([1, 3, 4, 6]), st.integers(0, 10_000))
def test_a_complete_table_has_the_spread_of_crossed_mean_squares(i: int, j: int, seed: int) -> None:
    values, a, b = table(i, j, seed)
    expected, found = spread_of_mean(values), spread_of_clusters(values.ravel(), a, b)
    assert found.variance == pytest.approx(expected.variance)
    assert found.dof == pytest.approx(expected.dof)


@given(st.integers(2, 5), st.integers(2, 5), st.integers(3, 6), st.integers(0, 10_000))
def test_a_complete_gap_has_the_spread_of_a_crossed_difference(i: int, k: int, j: int, seed: int) -> None:
    values, a, b = table(i + k, j, seed)
    side = np.array(a) < i
    expected = spread_of_difference(values[:i], values[i:])
    weights = np.where(side, 1 / (i * j), -1 / (k * j))
    found = spread_of_clusters(values.ravel(), a, b, side.tolist(), weights)
    assert found.variance == pytest.approx(expected.variance)
    assert found.dof == pytest.approx(expected.dof)


def test_clusters_of_one_kind_by_hand() -> None:
    values, clusters = np.array([1.0, 2.0, 4.0, 9.0]), ["x", "x", "y", "z"]
    # Mean 4; sums of deviations −5, 0, 5; squares 50; 3/2 · 50/16; sizes 2, 1, 1: 16/6 − 1.
    found = spread_of_clusters(values, clusters)
    assert found.variance == pytest.approx(3 / 2 * 50 / 16)
    assert found.dof == pytest.approx(16 / 6 - 1)
    assert (found.n_jobs, found.n_templates) == ((3,), 1)


def test_sides_of_a_mean_vary_about_their_own_means() -> None:
    values, clusters = np.array([0.0, 2.0, 10.0, 16.0]), [1, 2, 3, 4]
    side = ["x", "x", "y", "y"]
    # Within the sides ±1 and ±3, each over n = 4: 2 (1 + 1)/16 + 2 (9 + 9)/16.
    assert spread_of_clusters(values, clusters, None, side).variance == pytest.approx(40 / 16)
    # As a gap each side is over its own n = 2.
    weights = np.array([0.5, 0.5, -0.5, -0.5])
    assert spread_of_clusters(values, clusters, None, side, weights).variance == pytest.approx(40 / 4)


def test_a_cluster_on_both_sides_counts_once() -> None:
    values = np.array([0.0, 2.0, 4.0, 10.0, 13.0, 19.0])
    clusters, side = ["p", "q", "r"] * 2, ["x"] * 3 + ["y"] * 3
    weights = np.repeat([1 / 3, -1 / 3], 3)
    # Deviations −2, 0, 2 and −4, −1, 5; the clusters' sums of w·off are 2/3, 1/3 and −1.
    found = spread_of_clusters(values, clusters, None, side, weights)
    assert found.variance == pytest.approx(3 / 2 * (4 / 9 + 1 / 9 + 1))
    assert found.n_jobs == (3,)


def test_unequal_cells_by_plain_loops() -> None:
    rng = np.random.default_rng(5)
    a = [0, 0, 0, 1, 1, 2, 2, 2, 3, 3]
    b = [0, 1, 1, 0, 1, 0, 1, 2, 2, 0]
    x = rng.random(len(a))
    off, n = x - x.mean(), len(x)

    def summed(labels: Sequence[object], e: FloatArray) -> float:
        sums: dict[object, float] = {}
        for label, value in zip(labels, e, strict=True):
            sums[label] = sums.get(label, 0.0) + value
        return sum(value**2 for value in sums.values()) / n**2

    columns = [[float(label == k) for label in labels] for labels, m in ((a, 4), (b, 3)) for k in range(m)]
    design = np.array(columns).T
    left = off - design @ np.linalg.pinv(design) @ off
    cells = list(zip(a, b, strict=True))
    free = len(set(cells)) - (4 + 3 - 1)
    s_a, s_b, w = 4 / 3 * summed(a, off), 3 / 2 * summed(b, off), len(set(cells)) / free * summed(cells, left)
    assert spread_of_clusters(x, a, b).variance == pytest.approx(max(s_a + s_b - w, s_a, s_b))


def test_one_cluster_has_no_interval() -> None:
    found = spread_of_clusters(np.array([0.1, 0.2]), ["x", "x"])
    assert (found.variance, found.reason) == (None, "one cluster: no interval")
    assert wilson_of_clusters(0.5, 2, found) is None


def test_a_rate_of_independent_units_has_wilsons_interval() -> None:
    zeros_and_ones = np.array([1.0] * 700 + [0.0] * 300)
    spread = spread_of_clusters(zeros_and_ones, [*range(1000)])
    found, expected = wilson_of_clusters(0.7, 1000, spread), wilson(700, 1000)
    assert found == pytest.approx(expected, abs=2e-4)
    # Of ten clusters of 100 equal units it is that of ten, and wider for the t.
    clusters = spread_of_clusters(zeros_and_ones, [i // 100 for i in range(1000)])
    low, high = wilson_of_clusters(0.7, 1000, clusters) or (0.0, 0.0)
    alone_low, alone_high = wilson(7, 10) or (0.0, 0.0)
    assert low < alone_low < alone_high < high


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_rate_of_all_or_none_rests_on_the_clusters(value: float) -> None:
    spread = spread_of_clusters(np.full(144, value), [i // 12 for i in range(144)])
    low, high = wilson_of_clusters(value, 144, spread) or (0.0, 0.0)
    alone = wilson(12 * value, 12) or (0.0, 0.0)
    assert value in (low, high)
    assert 0.25 < high - low < 0.35
    assert high - low > alone[1] - alone[0]


def rows_of(n_stereotypes: int, n_items: int, n_languages: int) -> list[dict[str, str | None]]:
    return [
        {
            "item": f"{s}-{i}",
            "stereotype": f"s{s}",
            "language": f"l{k}",
            "direction": "female" if s % 2 else "male",
        }
        for s in range(n_stereotypes)
        for i in range(n_items)
        for k in range(n_languages)
    ]


def test_pairs_lie_in_stereotypes_or_where_there_is_one_in_items() -> None:
    rows = rows_of(6, 4, 4)
    values = np.random.default_rng(1).random(len(rows))
    found = mean_of_pairs(values, rows)[1]
    assert (found.n_jobs, found.n_templates) == ((3, 3), 4)
    one = [row for row in rows if row["stereotype"] == "s1"]
    found = mean_of_pairs(values[: len(one)], one)[1]
    assert (found.n_jobs, found.n_templates) == ((4,), 4)


def test_a_pair_without_a_direction_changes_no_cluster() -> None:
    rows = [row for row in rows_of(12, 3, 1) if row["direction"] == "female"]
    values = np.random.default_rng(3).random(len(rows) + 1)
    odd = {"item": "odd", "stereotype": "other", "language": "l0", "direction": None}
    assert mean_of_pairs(values[:-1], rows)[1].n_jobs == (6,)
    assert mean_of_pairs(values, [*rows, odd])[1].n_jobs == (7,)


def test_few_languages_are_what_the_numbers_are_conditional_on() -> None:
    rows = rows_of(6, 4, 3)
    found = mean_of_pairs(np.random.default_rng(1).random(len(rows)), rows)[1]
    assert (found.n_templates, found.reason) == (1, "conditional on these 3 languages")


def test_a_gap_needs_both_sides_and_passes_pairs_without_a_direction_over() -> None:
    rows = rows_of(4, 3, 1)
    values = np.array([0.8 if row["direction"] == "female" else 0.3 for row in rows])
    values += np.random.default_rng(2).normal(0, 0.05, len(rows))
    found = gap_of_pairs(values, rows)
    assert found is not None
    side = np.array([row["direction"] == "female" for row in rows])
    assert (found.women, found.men) == pytest.approx((values[side].mean(), values[~side].mean()))
    assert found.test.estimate == pytest.approx(found.women - found.men)
    others = [{**rows[0], "item": f"x{i}", "direction": None} for i in range(5)]
    assert gap_of_pairs(np.append(values, [9.0] * 5), [*rows, *others]) == found
    assert gap_of_pairs(values[side], [row for row in rows if row["direction"] == "female"]) is None


def test_languages_that_differ_are_no_gap() -> None:
    """One language is about women's stereotypes, another about men's, and a third about both, evenly."""
    rows = rows_of(8, 3, 3)
    kept = [
        r
        for r in rows
        if r["language"] == "l2" or r["direction"] == ("female", "male")[r["language"] == "l1"]
    ]
    level = {"l0": 0.9, "l1": 0.1, "l2": 0.5}
    values = np.array([level[str(row["language"])] for row in kept])
    found = gap_of_pairs(values, kept)
    assert found is not None
    assert found.test.estimate == pytest.approx(0.0)
    assert "24 pairs left out: their language has one direction" in str(found.test.reason)
    # Unequal parts of each direction in a language weigh the same on both sides.
    uneven = [
        r for r in rows if not (r["language"] == "l0" and r["direction"] == "male" and r["item"] != "0-0")
    ]
    values = np.array([level[str(row["language"])] for row in uneven])
    again = gap_of_pairs(values, uneven)
    assert again is not None
    assert again.test.estimate == pytest.approx(0.0)


def of_sizes(women: Sequence[int], men: Sequence[int]) -> list[dict[str, str | None]]:
    """Pairs of as many stereotypes as there are sizes, in one language."""
    rows: list[dict[str, str | None]] = []
    for side, sizes in (("female", women), ("male", men)):
        for s, n in enumerate(sizes):
            own: dict[str, str | None] = {"stereotype": f"{side} {s}", "language": "", "direction": side}
            rows += [{**own, "item": f"{side} {s} {i}"} for i in range(n)]
    return rows


@pytest.mark.parametrize("few", [1, 2])
def test_fewer_than_three_stereotypes_on_a_side_are_no_sample_of_stereotypes(few: int) -> None:
    rows = of_sizes([5] * few, [5] * 6)
    found = gap_of_pairs(np.random.default_rng(4).random(len(rows)), rows)
    assert found is not None
    assert found.test.p_value is None
    assert "fewer than 3 of a direction" in str(found.test.reason)
    assert found.test.ci95 is not None
    # Over items: the degrees of freedom are theirs.
    assert (found.test.dof or 0) > 2


def test_a_long_stereotype_weighs_no_more_than_a_short_one() -> None:
    """The gap is Welch's over the means of stereotypes (scipy), whatever their lengths."""
    rows = of_sizes([200, 5, 5, 5, 5, 5], [60, 30, 15, 8, 4, 2])
    values = np.random.default_rng(7).random(len(rows))
    means = {}
    for name in dict.fromkeys(row["stereotype"] for row in rows):
        means[str(name)] = values[[row["stereotype"] == name for row in rows]].mean()
    women = [mean for name, mean in means.items() if name.startswith("female")]
    men = [mean for name, mean in means.items() if name.startswith("male")]
    found, expected = gap_of_pairs(values, rows), stats.ttest_ind(women, men, equal_var=False)
    assert found is not None
    assert (found.women, found.men) == pytest.approx((np.mean(women), np.mean(men)))
    assert found.test.p_value == pytest.approx(expected.pvalue)
    assert found.test.ci95 == pytest.approx(tuple(expected.confidence_interval()))
    mean, spread = mean_of_pairs(values, rows)
    assert mean == pytest.approx(np.mean([*means.values()]))
    # Each side's mean has part 1/2: a quarter of the variances of both.
    assert spread.variance == pytest.approx((np.var(women, ddof=1) + np.var(men, ddof=1)) / 6 / 4)


def test_the_rate_weighs_stereotypes_alike() -> None:
    rows = of_sizes([90, 5, 5], [5, 5, 90])
    values = np.array([1.0 if row["stereotype"] in ("female 0", "male 2") else 0.0 for row in rows])
    rate, spread = mean_of_pairs(values, rows)
    ends = wilson_of_clusters(rate, len(rows), spread)
    assert rate == pytest.approx(2 / 6)  # of the pairs 180 in 200
    assert ends is not None
    assert ends[0] < 0.1
    assert ends[1] > 0.7
    assert mean_of_pairs(np.ones(len(rows)), rows)[0] == 1.0


def test_languages_stereotypes_and_pairs_share_evenly() -> None:
    found = even_weights(["x", "x", "x", "y"], ["a", "a", "b", "a"])
    assert found.tolist() == [1 / 8, 1 / 8, 1 / 4, 1 / 2]


def test_a_side_of_few_stereotypes_has_their_degrees_at_most() -> None:
    rows = of_sizes([4] * 3, [4] * 10)
    values = np.array([0.6 if row["direction"] == "female" else 0.3 for row in rows])
    noise = np.random.default_rng(1).normal(0, 0.1, len(rows))
    noise[:12] /= 100  # as estimated, all that varies is the larger side
    found = gap_of_pairs(values + noise, rows)
    assert found is not None
    # (1/3 + 1/10)² / (1/(9 · 2) + 1/(100 · 9)), Welch's at equal variances; Satterthwaite's is 9.
    assert found.test.dof == pytest.approx((1 / 3 + 1 / 10) ** 2 / (1 / 18 + 1 / 900))
    half = (
        stats.t.ppf(0.975, found.test.dof)
        * (values + noise)[12:].reshape(10, 4).mean(1).std(ddof=1)
        / 10**0.5
    )
    assert found.test.ci95 is not None
    assert found.test.ci95[1] - (found.test.estimate or 0) == pytest.approx(half, rel=0.01)


def test_numbers_that_happen_to_be_equal_are_no_certainty() -> None:
    rows = of_sizes([3] * 3, [3] * 3)
    values = np.array([0.7 if row["direction"] == "female" else 0.2 for row in rows])
    found = gap_of_pairs(values, rows)
    assert found is not None
    assert (found.test.ci95, found.test.p_value) == (None, None)
    assert found.test.reason == "zero variance: no interval"
    assert mean_of_pairs(values, rows)[1].variance is None
    # A model against itself differs nowhere, and that is no chance.
    same = gap_of_pairs(np.zeros(len(rows)), rows, limit=2.0)
    assert same is not None
    assert (same.test.ci95, same.test.p_value) == ((0.0, 0.0), 1.0)


def test_pairs_without_any_stereotype_are_said_to_be_taken_as_independent() -> None:
    rows = [{**row, "stereotype": ""} for row in of_sizes([8], [8])]
    values = np.random.default_rng(2).random(16)
    found = gap_of_pairs(values, rows)
    assert found is not None
    assert found.test.reason == mean_of_pairs(values, rows)[1].reason == "pairs taken as independent"
    assert found.test.p_value == pytest.approx(
        stats.ttest_ind(values[:8], values[8:], equal_var=False).pvalue
    )
