"""Corrected shares: another tool's numbers, a plain loop, what pooling does, and what bounds hold.

See methods/representation#corrected.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from biaskit.stats.arrays import BoolArray, FloatArray, IntArray
from biaskit.stats.prediction_powered import corrected_share, pooled


def labels(values: FloatArray, labelled: BoolArray | None = None) -> FloatArray:
    """Labels of texts that all name a gender: (about women, about anybody)."""
    both = np.column_stack([values, np.ones(values.size)])
    return both if labelled is None else np.where(labelled[:, None], both, np.nan)


def made(n_strata: int) -> tuple[FloatArray, FloatArray, BoolArray, IntArray]:
    """240 texts by plain arithmetic; a quarter of each stratum is labelled, rules err in two of thirteen."""
    i = np.arange(240)
    truth = ((i * 7) % 10 < 3 + 2 * (i % n_strata)).astype(float)
    rules = np.where((i * i + i) % 13 == 0, 1 - truth, truth)
    return truth, rules, (i // n_strata) % 4 == 1, i % n_strata


@pytest.mark.parametrize(
    ("n_strata", "mean", "std"),
    [
        # glide-py 0.11.0, PPIMeanEstimator and StratifiedPPIMeanEstimator, on what `made` gives.
        (1, 0.2292150368816921, 0.04521067112905402),
        (2, 0.3849283685172556, 0.05073060407962452),
        (3, 0.45082295500999303, 0.05245261220890387),
    ],
)
def test_a_mean_is_that_of_glide_but_for_the_spread_between_strata(
    n_strata: int, mean: float, std: float
) -> None:
    truth, rules, labelled, strata = made(n_strata)
    careful, cheap = labels(truth, labelled), labels(rules)
    found = corrected_share(careful, cheap, np.full(240, 0.25), strata)
    assert found is not None
    assert pytest.approx(mean, abs=1e-8) == found.estimate
    of_strata = []
    for h, power in enumerate(found.power):
        of, own = strata == h, (strata == h) & labelled
        of_strata.append(truth[own].mean() + power * (rules[of & ~labelled].mean() - rules[own].mean()))
    between = np.mean([(x - mean) ** 2 for x in of_strata]) / 240
    assert pytest.approx(std, abs=1e-8) == math.sqrt(found.se**2 - between)
    assert n_strata == 1 or between > 1e-6


def test_rules_that_say_one_thing_of_a_stratum_leave_a_stratified_share() -> None:
    # By hand: 100 texts, rules silent in 40. Labelled: 10 silent (6 women, 2 men, 2 nobody's), 10 others
    # (3 women, 7 men). Y = 0.4·0.6 + 0.6·0.3 = 0.42, D = 0.4·0.8 + 0.6 = 0.92.
    silent = np.arange(100) < 40
    labelled = np.zeros(100, dtype=bool)
    labelled[[*range(10), *range(40, 50)]] = True
    women = np.zeros(100)
    women[[*range(6), *range(40, 43)]] = 1
    anybody = np.ones(100)
    anybody[[8, 9]] = 0
    careful = np.where(labelled[:, None], np.column_stack([women, anybody]), np.nan)
    cheap = np.column_stack([np.zeros(100), ~silent]).astype(float)
    found = corrected_share(careful, cheap, np.where(silent, 10 / 40, 10 / 60), silent.astype(np.int64))
    assert found is not None
    assert pytest.approx(0.42 / 0.92) == found.estimate
    assert (0.0, 0.0) == found.power
    low, high = found.ci95
    assert low < found.estimate < high
    theta, variance = 0.42 / 0.92, 0.0
    for part, values in (
        (0.4, [(1, 1)] * 6 + [(0, 1)] * 2 + [(0, 0)] * 2),
        (0.6, [(1, 1)] * 3 + [(0, 1)] * 7),
    ):
        psi = [(y - theta * d) / 0.92 for y, d in values]
        mean = sum(psi) / 10
        variance += part**2 * sum((x - mean) ** 2 for x in psi) / 9 / 10 + part * mean**2 / 100
    assert pytest.approx(math.sqrt(variance)) == found.se


def test_unequal_probabilities_weigh_labels() -> None:
    rng = np.random.default_rng(34)
    truth = rng.random(4000) < 0.3
    probability = np.where(truth, 0.4, 0.1)  # women are drawn four times as often
    labelled = rng.random(4000) < probability
    careful = labels(truth.astype(float), labelled)
    one = np.zeros(4000, dtype=np.int64)
    found = corrected_share(careful, labels(np.zeros(4000)), probability, one)
    wrong = corrected_share(careful, labels(np.zeros(4000)), np.full(4000, 0.2), one)
    assert found is not None
    assert wrong is not None
    assert abs(found.estimate - 0.3) < 3 * found.se < 0.1
    assert wrong.estimate > 0.5


def test_labels_that_agree_leave_an_interval_with_a_width_and_copies_widen_it() -> None:
    labelled = np.arange(200) < 20
    agreeing = corrected_share(
        labels(np.ones(200), labelled), labels(np.ones(200)), np.full(200, 0.1), np.zeros(200, dtype=np.int64)
    )
    assert agreeing is not None
    assert (1.0, 1.0) == (agreeing.estimate, agreeing.ci95[1])
    assert 0.8 < agreeing.ci95[0] < 0.99
    truth, rules, labelled, strata = made(2)
    plain, copies = (
        corrected_share(labels(truth, labelled), labels(rules), np.full(240, 0.25), strata, n)
        for n in (None, 120)
    )
    assert plain is not None
    assert copies is not None
    assert pytest.approx(math.sqrt(2)) == copies.se / plain.se


def test_without_a_label_that_names_a_gender_there_is_no_share() -> None:
    careful = np.full((50, 2), np.nan)
    careful[:20] = 0
    assert None is corrected_share(
        careful, labels(np.ones(50)), np.full(50, 0.4), np.zeros(50, dtype=np.int64)
    )


@given(seed=st.integers(0, 10_000), n_strata=st.integers(1, 4))
def test_a_share_and_its_ends_are_shares_whatever_the_labels(seed: int, n_strata: int) -> None:
    rng = np.random.default_rng(seed)
    strata = rng.integers(0, n_strata, 60)
    labelled = rng.random(60) < 0.5
    for h in range(n_strata):
        labelled[np.flatnonzero(strata == h)[:2]] = True
    kinds = np.array([(1.0, 1.0), (0.0, 1.0), (0.0, 0.0), (0.5, 1.0)])
    careful, cheap = (kinds[rng.integers(0, 4, 60)] for _ in range(2))
    found = corrected_share(
        np.where(labelled[:, None], careful, np.nan), cheap, rng.uniform(0.1, 1, 60), strata
    )
    if found is not None:
        assert 0 <= found.ci95[0] <= found.estimate <= found.ci95[1] <= 1
        assert found.se > 0
        assert all(0 <= power <= 1 for power in found.power)


@pytest.mark.parametrize(
    ("numbers", "groups"),
    [
        ([10, 10, 10], [0, 1, 2]),
        ([4, 6, 10], [0, 0, 1]),
        ([12, 3, 4], [0, 0, 0]),
        ([3, 4], [0, 0]),
        ([9, 30, 2, 9], [0, 0, 1, 1]),
        ([25, 0, 0], [0, 0, 0]),
    ],
)
def test_strata_with_few_labels_are_joined_to_the_next(numbers: list[int], groups: list[int]) -> None:
    strata = np.repeat(np.arange(len(numbers)), 40)
    labelled = np.concatenate([np.arange(40) < n for n in numbers])
    assert groups == pooled(strata, labelled)[::40].tolist()
