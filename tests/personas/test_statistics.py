"""Statistical truth of personas, reduced: `benchmarks/personas_statistics.py` is in full.

Everything is seeded, so an outcome is the same every time; limits are three standard errors of an exact test.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from places import BENCHMARKS, module_of

from biaskit.measures.personas.words.log_odds import METHODS

NOWHERE = Path("/there/is/no/such/file.csv")  # made-up texts: the real personas are not everywhere


analysis = module_of(BENCHMARKS / "personas_analysis.py")
truth = module_of(BENCHMARKS / "personas_statistics.py")


@pytest.fixture(scope="module")
def rejected() -> Any:
    """400 corpora of texts by three pools, each with words of its own, and genders at random."""
    return truth.rejections(truth.Texts.of(NOWHERE), n_corpora=400, n_texts=40, n_shuffles=19)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_with_genders_at_random_a_list_is_too_long_in_at_most_5_percent(rejected: Any, method: str) -> None:
    assert rejected.n == 400
    assert rejected.length[method] / rejected.n < 0.05 + 3 * rejected.error()
    assert rejected.length[method] > 0  # a test that never rejects would pass too


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_with_genders_at_random_the_largest_z_is_too_large_in_5_percent(rejected: Any, method: str) -> None:
    assert abs(rejected.max_z[method] / rejected.n - 0.05) < 3 * rejected.error()


@pytest.mark.parametrize("level", [0.90, 0.95, 0.99])
@pytest.mark.parametrize("n", [20, 100])
def test_wilson_intervals_cover_at_every_level(n: int, level: float) -> None:
    # Exact. The mean over true shares is the level; single shares lie below (Brown, Cai and DasGupta 2001).
    mean, least = truth.wilson_coverage(n, level)
    assert level - 0.005 < mean < level + 0.012
    assert level - 0.14 < least < level


@pytest.mark.parametrize("n", [10, 200])
def test_the_interval_of_the_mean_of_two_prompts_covers_at_its_level(n: int) -> None:
    n_runs = 20_000
    error = math.sqrt(0.95 * 0.05 / n_runs)
    assert -3 * error < truth.mean_coverage(n, n_runs=n_runs) - 0.95 < 0.006 + 3 * error


@pytest.mark.slow
def test_counting_anew_with_pandas_gives_the_same_z() -> None:
    # The slow way of the benchmark shares no line with ours: what it times is the same thing.
    pool = {code: listed[:400] for code, listed in analysis.made_up_sentences().items()}
    texts = [row for row in analysis.biographies(pool, 1) if row[1]][::4]
    ours = analysis.score_with_ours(texts)
    theirs = analysis.score_with_pandas(texts, analysis.brown_texts())
    assert len(ours) == 4
    assert all(len(z) > 100 and np.isfinite(list(z.values())).all() for z in ours.values())
    assert analysis.largest_difference(ours, theirs) < 1e-9
