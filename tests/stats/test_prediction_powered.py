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

ONE = np.zeros(4000, dtype=np.int64)  # all of one prompt, or of one stratum


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
    found = corrected_share(careful, cheap, np.full(240, 0.25), strata, ONE[:240])
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
    # (3 women, 7 men). Y = 0.4·0.6 + 0.6·0.3 = 0.42, D = 0.4·0.8 + 0.6 = 0.92. Of another prompt 50 texts,
    # rules silent in all, 10 labelled (2 women, 3 men, 5 nobody's): Y = 0.2, D = 0.5. Prompts weigh the same.
    labels_of = [(1, 1)] * 6 + [(0, 1)] * 2 + [(0, 0)] * 2, [(1, 1)] * 3 + [(0, 1)] * 7
    labels_of = *labels_of, [(1, 1)] * 2 + [(0, 1)] * 3 + [(0, 0)] * 5
    strata = np.repeat([0, 1, 2], [40, 60, 50])
    careful = np.full((150, 2), np.nan)
    for start, values in zip((0, 40, 100), labels_of, strict=True):
        careful[start : start + 10] = values
    cheap = np.column_stack([np.zeros(150), strata == 1]).astype(float)
    probability = np.array([10 / 40, 10 / 60, 10 / 50])[strata]
    prompts = (strata == 2).astype(np.int64)
    variances = []
    for theta, anybody, n, of in (
        (0.42 / 0.92, 0.92, 100, ((0.4, 0), (0.6, 1))),
        (0.4, 0.5, 50, ((1.0, 2),)),
    ):
        variances.append(0.0)
        for part, h in of:
            psi = [(y - theta * d) / anybody for y, d in labels_of[h]]
            mean = sum(psi) / 10
            variances[-1] += part**2 * sum((x - mean) ** 2 for x in psi) / 9 / 10 + part * mean**2 / n
    both, first = slice(None), slice(100)
    for some, share, variance in (
        (first, 0.42 / 0.92, variances[0]),
        (both, (0.42 / 0.92 + 0.4) / 2, sum(variances) / 4),
    ):
        found = corrected_share(careful[some], cheap[some], probability[some], strata[some], prompts[some])
        assert found is not None
        assert pytest.approx(share) == found.estimate
        assert {0.0} == {*found.power}
        assert pytest.approx(math.sqrt(variance)) == found.se
        low, high = found.ci95
        assert low < found.estimate < high


def test_unequal_probabilities_weigh_labels() -> None:
    rng = np.random.default_rng(34)
    truth = rng.random(4000) < 0.3
    probability = np.where(truth, 0.4, 0.1)  # women are drawn four times as often
    labelled = rng.random(4000) < probability
    careful = labels(truth.astype(float), labelled)
    found = corrected_share(careful, labels(np.zeros(4000)), probability, ONE, ONE)
    wrong = corrected_share(careful, labels(np.zeros(4000)), np.full(4000, 0.2), ONE, ONE)
    assert found is not None
    assert wrong is not None
    assert abs(found.estimate - 0.3) < 3 * found.se < 0.1
    assert wrong.estimate > 0.5


def test_labels_that_agree_leave_an_interval_with_a_width_and_copies_widen_it() -> None:
    labelled = np.arange(200) < 20
    agreeing = corrected_share(
        labels(np.ones(200), labelled), labels(np.ones(200)), np.full(200, 0.1), ONE[:200], ONE[:200]
    )
    assert agreeing is not None
    assert (1.0, 1.0) == (agreeing.estimate, agreeing.ci95[1])
    assert 0.8 < agreeing.ci95[0] < 0.99
    truth, rules, labelled, strata = made(2)
    plain, copies = (
        corrected_share(labels(truth, labelled), labels(rules), np.full(240, 0.25), strata, ONE[:240], n)
        for n in (None, 120)
    )
    assert plain is not None
    assert copies is not None
    assert pytest.approx(math.sqrt(2)) == copies.se / plain.se


def test_without_a_label_that_names_a_gender_there_is_no_share() -> None:
    careful = np.full((50, 2), np.nan)
    careful[:20] = 0
    assert None is corrected_share(careful, labels(np.ones(50)), np.full(50, 0.4), ONE[:50], ONE[:50])


@given(seed=st.integers(0, 10_000), n_strata=st.integers(1, 4), n_prompts=st.integers(1, 2))
def test_a_share_and_its_ends_are_shares_whatever_the_labels(
    seed: int, n_strata: int, n_prompts: int
) -> None:
    rng = np.random.default_rng(seed)
    n_strata = max(n_strata, n_prompts)
    strata = rng.integers(0, n_strata, 60)
    labelled = rng.random(60) < 0.5
    for h in range(n_strata):
        labelled[np.flatnonzero(strata == h)[:2]] = True
    kinds = np.array([(1.0, 1.0), (0.0, 1.0), (0.0, 0.0), (0.5, 1.0)])
    careful, cheap = (kinds[rng.integers(0, 4, 60)] for _ in range(2))
    found = corrected_share(
        np.where(labelled[:, None], careful, np.nan),
        cheap,
        rng.uniform(0.1, 1, 60),
        strata,
        strata % n_prompts,
    )
    if found is not None:
        assert 0 <= found.ci95[0] <= found.estimate <= found.ci95[1] <= 1
        assert found.se > 0
        assert all(0 <= power <= 1 for power in found.power)


@pytest.mark.parametrize(
    ("numbers", "groups"),
    [
        ([[5, 5, 5]], [0, 1, 2]),
        ([[2, 3, 5]], [0, 0, 1]),
        ([[6, 1, 2]], [0, 0, 0]),
        ([[1, 2]], [0, 0]),
        ([[4, 15, 1, 4]], [0, 0, 1, 1]),
        ([[12, 0, 0]], [0, 0, 0]),
        ([[1, 2], [3, 1]], [0, 0, 1, 1]),  # never with another prompt's
        ([[5, 2], [3, 2, 9]], [0, 0, 1, 1, 2]),
    ],
)
def test_strata_with_few_labels_are_joined_to_the_next(numbers: list[list[int]], groups: list[int]) -> None:
    classes = np.concatenate([np.repeat(np.arange(len(of)), 40) for of in numbers])
    prompts = np.repeat(np.arange(len(numbers)), [40 * len(of) for of in numbers])
    labelled = np.concatenate([np.arange(40) < n for of in numbers for n in of])
    assert groups == pooled(classes, prompts, labelled)[::40].tolist()
