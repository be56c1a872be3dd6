"""Simulated texts of women and men with a known difference in each origin, and what the areas say of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from biaskit.stats.classification import Sample, across, at_one_size, within

PROMPTS = ("persona", "biography")


@dataclass(frozen=True)
class World:
    """How texts are drawn; a difference is the SD of a word's log odds between women and men."""

    inferred: float = 0.0
    requested: float = 0.0
    same_words: bool = True  # the difference is of the same words in both origins
    n_female: int = 20  # of each prompt
    n_male: int = 20
    length_female: int = 80  # words of a text on average
    length_male: int = 80
    concentration: float = 300.0  # of a text's word probabilities: the smaller, the more it repeats itself
    n_words: int = 400
    varies: float = 0.0  # SD over occupations of the difference, as a part of it


class Found(NamedTuple):
    """The area that is reported, taught by 10 + 10 texts, and what its p is of."""

    area: float
    of_all: float  # the area where all texts teach
    p_value: float


def occupation(world: World, rng: np.random.Generator, n_shuffles: int) -> dict[tuple[str, str], Found]:
    """The areas of one occupation: trained on, tested on."""
    common = 1.0 / (np.arange(world.n_words) + 3.0)
    prompts = [rng.gamma(2.0, size=world.n_words) * common for _ in PROMPTS]
    times = max(0.0, 1.0 + world.varies * rng.standard_normal())
    words = rng.standard_normal(world.n_words)
    samples = {}
    for origin, size in (("inferred", world.inferred), ("requested", world.requested)):
        own = words if world.same_words else rng.standard_normal(world.n_words)
        samples[origin] = _sample(world, rng, prompts, times * size * own, n_shuffles)
    found = {}
    for trained_on, teaching in samples.items():
        for tested_on, judged in samples.items():
            held_out = within(judged, rng) if teaching is judged else across(teaching, judged)
            area, _ = at_one_size(teaching, judged, rng) or (None, 0.0)
            found[trained_on, tested_on] = Found(area, held_out.area, held_out.p_value)
    return found


def _sample(
    world: World,
    rng: np.random.Generator,
    prompts: Sequence[np.ndarray],
    log_odds: np.ndarray,
    n_shuffles: int,
) -> Sample:
    counts, is_female, strata = [], [], []
    genders = ((True, world.n_female, world.length_female), (False, world.n_male, world.length_male))
    for prompt, base in zip(PROMPTS, prompts, strict=True):
        for female, n, length in genders:
            p = base * np.exp((0.5 if female else -0.5) * log_odds)
            p = p / p.sum()
            for _ in range(n):
                of_text = rng.gamma(world.concentration * p) + 1e-300
                size = rng.integers(length // 2, 3 * length // 2 + 1)
                counts.append(rng.multinomial(size, of_text / of_text.sum()))
                is_female.append(female)
                strata.append(prompt)
    return Sample.shuffled(csr_matrix(np.array(counts)), is_female, strata, rng, n_shuffles)
