"""Simulated texts whose words come in bursts and whose genders mean nothing: a null that is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from biaskit.measures.personas.words import log_odds as marked_words
from biaskit.measures.personas.words.lists import word_lists
from biaskit.measures.personas.words.log_odds import METHODS


@dataclass(frozen=True)
class Rejected:
    """In which share of corpora without any difference each test rejects at 5 %, by method."""

    length: Mapping[str, float]
    max_z: Mapping[str, float]
    any_q: Mapping[str, float]  # some word with q ≤ 0.05: takes tokens for independent


def rejected_without_difference(
    n_corpora: int, *, n_texts: int = 40, n_words: int = 120, n_shuffles: int = 19, seed: int = 1
) -> Rejected:
    """Simulate texts whose words come in bursts and whose genders mean nothing; reject at p ≤ 0.05.

    With 19 or 199 shuffles p ≤ 0.05 is met with probability 1/20 exactly where there are no ties.
    """
    words = sorted([*marked_words.FIXED_CALIBRATION_WORDS, *(f"w{i:03}" for i in range(n_words - 27))])
    rate = 60.0 / (np.arange(n_words) + 3.0)
    counts = {method: np.zeros(3) for method in METHODS}
    for number in range(n_corpora):
        rng = np.random.default_rng([seed, number])
        bursts = rng.gamma(0.3, 1 / 0.3, size=(n_texts, n_words))
        lists = word_lists(
            csr_matrix(rng.poisson(rng.permutation(rate) * bursts)),
            words=words,
            genders=["female", "male"] * (n_texts // 2),
            strata=["persona"] * (n_texts // 2) + ["biography"] * (n_texts - n_texts // 2),
            english=rate * 500,
            seed=seed,
            row_key=("simulated", str(number), "requested"),
            n_shuffles=n_shuffles,
        )
        for one in lists[:2]:
            assert one.p_value is not None
            assert one.p_value_max_z is not None
            is_any = any(word.q_value <= 0.05 for x in lists if x.method == one.method for word in x.words)
            counts[one.method] += [one.p_value <= 0.05, one.p_value_max_z <= 0.05, is_any]
    length, max_z, any_q = (
        {method: float(found[i]) / n_corpora for method, found in counts.items()} for i in range(3)
    )
    return Rejected(length, max_z, any_q)
