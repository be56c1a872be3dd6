"""What a plan of texts reckons with: a run's variance, and the promise in drawn occupations."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from scipy import stats

from biaskit.corpora.variance import TextVariance, load_text_variance
from biaskit.errors import RunError
from biaskit.personas.power import Outlook, Size, outlook_of, plan_sentence, variance_of_tables
from biaskit.personas.sampling.design import resolve_design
from biaskit.study.config import load_personas_study

N_RUNS = 3_000


def row(
    occupation: str, share: float, labour: float | None, se: float, unassociated: int
) -> dict[str, object]:
    counts = {"n_texts": 40, "n_unassociated": unassociated}
    return {
        "model": "m",
        "occupation": occupation,
        "template_id": "all",
        "female_share": share,
        "labour_female_share": labour,
        "se": se,
        **counts,
    }


def test_a_runs_variance_is_that_of_the_distances_without_the_noise_of_draws() -> None:
    rows = [row("a", 0.9, 0.5, 0.05, 10), row("b", 0.2, 0.6, 0.1, 20), row("c", 0.5, 0.4, 0.02, 0)]
    found = variance_of_tables([*rows, row("d", 0.3, None, 0.1, 40)], "m", "RUN")
    noise = statistics.fmean(x**2 for x in (0.05, 0.1, 0.02))
    assert found.var_occupation == pytest.approx(statistics.variance([0.4, -0.4, 0.1]) - noise)
    assert found.share == pytest.approx(1.6 / 3)
    assert found.associated_share == pytest.approx(1 - 30 / 120)
    assert found.n_occupations == 3
    with pytest.raises(RunError, match="RUN has no variance of m: it takes two occupations"):
        variance_of_tables(rows[:1], "m", "RUN")


@pytest.mark.parametrize("size", [Size(8, 2, 20), Size(20, 1, 10), Size(63, 2, 100)])
def test_the_promised_difference_from_labour_statistics_is_found_in_four_runs_of_five(size: Size) -> None:
    variance = TextVariance("m", 0.45, 0.6, 0.02, 4)
    promised = Outlook(variance, size).shown().difference
    assert promised is not None
    rng = np.random.default_rng(11)
    distance = rng.normal(promised, 0.02**0.5, (N_RUNS, size.occupations))
    n = round(size.texts * size.prompts * variance.associated_share)
    # The noise of n texts about the shares that texts have, wherever the labour share puts them.
    p = np.clip(0.45 + rng.normal(0.0, 0.02, distance.shape), 0.0, 1.0)
    measured = distance + rng.binomial(n, p) / n - p
    result = stats.ttest_1samp(measured, 0.0, axis=1)
    found = ((result.pvalue < 0.05) & (measured.mean(axis=1) > 0)).mean()
    assert float(found) == pytest.approx(0.8, abs=0.05)


def test_a_study_is_as_large_as_it_is_asked() -> None:
    pilot = resolve_design(load_personas_study("gasp-pilot"))
    assert outlook_of(pilot, load_text_variance()[0]).size == Size(8, 2, 20)
    assert plan_sentence(pilot).startswith("A mean difference of 21 points (over 8 occupations; variance: ")
    one = resolve_design(load_personas_study("gasp-pilot", {"occupations.select": "nurse"}))
    assert "fewer than two occupations with a labour share" in plan_sentence(one)
