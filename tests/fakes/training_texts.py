"""Texts as numbers that vectors can be trained on, and whether two gave the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from biaskit.measures.personas.vectors.cache import vectors_of_seeds
from biaskit.measures.personas.vectors.training import TrainingTexts, Vectors


def random_corpus(n_texts: int = 60, n_words: int = 40, length: int = 50, seed: int = 0) -> TrainingTexts:
    rng = np.random.default_rng(seed)
    words = sorted(f"word{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(n_words))
    ids = rng.zipf(1.5, size=n_texts * length).clip(max=n_words).astype(np.int32) - 1
    return TrainingTexts(words, ids, np.arange(n_texts + 1) * length)


def train_seeds(corpus: TrainingTexts, seeds: Sequence[int]) -> list[Vectors]:
    return list(vectors_of_seeds(corpus, seeds))


def equal(a: Sequence[Vectors], b: Sequence[Vectors]) -> bool:
    return [v.words for v in a] == [v.words for v in b] and all(
        np.array_equal(x.matrix, y.matrix) for x, y in zip(a, b, strict=True)
    )


class Evil:
    """Would leave a file behind if it were unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.path,))
