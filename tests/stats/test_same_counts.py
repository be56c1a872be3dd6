"""One test for many questions: clean samples pass, and samples of another model do not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from biaskit.stats.same_counts import p_of_same_counts

ALPHA = 0.05
RUNS = 200


def drawn(rng: np.random.Generator, chances: np.ndarray, n: int = 10) -> list[tuple[list[int], list[int]]]:
    return [tuple(rng.multinomial(n, p).tolist() for _ in range(2)) for p in chances]  # type: ignore[misc]


@pytest.mark.slow
@pytest.mark.parametrize("level", ["rare", "even"])
def test_at_most_one_clean_run_in_twenty_is_called_different(level: str) -> None:
    rng = np.random.default_rng(17)
    weights = {"rare": (0.02, 0.02, 0.01, 0.95), "even": (0.3, 0.3, 0.2, 0.2)}[level]
    n = 0
    for run in range(RUNS):
        chances = rng.dirichlet(np.array(weights) * 20, size=20)
        n += p_of_same_counts(drawn(rng, chances), run) < ALPHA
    assert n <= binom.ppf(0.999, RUNS, ALPHA)


def test_a_shift_in_every_question_is_found() -> None:
    rng = np.random.default_rng(3)
    pairs = [
        (rng.multinomial(10, (0.6, 0.2, 0.2)).tolist(), rng.multinomial(10, (0.3, 0.5, 0.2)).tolist())
        for _ in range(50)
    ]
    assert p_of_same_counts(pairs, 1) < 0.01


def test_one_question_that_was_turned_round_is_found() -> None:
    rng = np.random.default_rng(4)
    pairs = drawn(rng, np.tile((0.1, 0.1, 0.8), (50, 1)))
    pairs[7] = ([10, 0, 0], [0, 0, 10])
    assert p_of_same_counts(pairs, 1) < ALPHA


def test_equal_counts_and_no_question_are_no_difference() -> None:
    assert p_of_same_counts([], 1) == 1.0
    assert p_of_same_counts([([3, 7], [3, 7])] * 5, 1) == 1.0
    assert p_of_same_counts([([0, 10], [0, 10])] * 5, 1) == 1.0
