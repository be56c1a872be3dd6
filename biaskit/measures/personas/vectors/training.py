"""Word → vector, trained on a run's texts (methods/srb#word-vectors).

A trained vector depends on the texts, their order, the seed and the epochs alone: gensim with one worker
gives the same vectors for every hash seed and number of threads.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatMatrix = NDArray[np.floating[Any]]

VECTOR_SIZE = 100
WINDOW = 5
NEGATIVE_SAMPLES = 5
FEWEST_EPOCHS = 5
TRAINING_TOKENS = 5_000_000
LONGEST_SENTENCE = 10_000  # tokens; gensim drops what follows in a sentence, without a message
NEARLY_UNTRAINED = 0.5
"""A median cosine of random words above this gets a warning: all words still point the same way."""
RANDOM_PAIRS = 10_000


@dataclass(frozen=True, slots=True)
class Vectors:
    """Words and their vectors of unit length."""

    words: Mapping[str, int]  # word → row
    matrix: FloatMatrix  # (n, d)
    digest: str | None = None  # SHA-256 of the file they were read from

    @classmethod
    def from_rows(cls, words: Sequence[str], matrix: ArrayLike, digest: str | None = None) -> Vectors:
        """Scale the rows `(n, d)` of n distinct words to unit length; a row of zeros is left out."""
        rows = np.atleast_2d(np.asarray(matrix))
        if not np.issubdtype(rows.dtype, np.floating):
            rows = rows.astype(np.float64)
        lengths = np.sqrt(np.square(rows, dtype=np.float64).sum(axis=1))
        nonzero = np.flatnonzero(lengths)
        unit = (rows[nonzero] / lengths[nonzero, None]).astype(rows.dtype)
        return cls({words[row]: place for place, row in enumerate(nonzero.tolist())}, unit, digest)

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self.words

    def rows(self, words: Sequence[str]) -> tuple[NDArray[np.float64], list[str]]:
        """Return the known words' vectors `(k, d)` in double precision, and these words."""
        known = [word for word in words if word in self.words]
        unit = self.matrix[[self.words[word] for word in known]].astype(np.float64)
        # The stored rows have unit length only to single precision.
        unit /= np.linalg.norm(unit, axis=1, keepdims=True)
        return unit, known


def median_cosine(vectors: Vectors, rng: np.random.Generator) -> float | None:
    """Compute the median cosine of 10,000 pairs of words: near 0 when well trained, near 1 when hardly.

    None with fewer than two words. Reference: methods/srb#word-vectors (0.72 after 5 epochs on 1,350 texts).
    """
    n = len(vectors)
    if n < 2:
        return None
    first = rng.integers(0, n, size=RANDOM_PAIRS)
    second = (first + rng.integers(1, n, size=RANDOM_PAIRS)) % n
    cosines = np.einsum("ij,ij->i", vectors.matrix[first], vectors.matrix[second], dtype=np.float64)
    return float(np.median(cosines))


def settings(epochs: int = FEWEST_EPOCHS) -> dict[str, int]:
    """Return what `train` passes to gensim besides the sentences and the seed."""
    size = {"vector_size": VECTOR_SIZE, "window": WINDOW, "min_count": 1}
    return {**size, "sg": 0, "negative": NEGATIVE_SAMPLES, "epochs": epochs}


def train(sentences: Iterable[list[str]], *, seed: int, epochs: int, workers: int = 1) -> Vectors:
    """Train word2vec: CBOW, 100 dimensions, window 5, every word, 5 negative samples, else gensim's defaults.

    `sentences` can be gone through again, none longer than `LONGEST_SENTENCE`; more than one of gensim's
    threads (`workers`) is not repeatable. Words come in alphabetical order. Reference:
    methods/srb#word-vectors.
    """
    if next(iter(sentences), None) is None:
        return Vectors({}, np.empty((0, VECTOR_SIZE), dtype=np.float32))
    logger = logging.getLogger("gensim")  # nothing it reports is news here
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():  # of the import alone: filters are those of every thread
            warnings.simplefilter("ignore")
            from gensim.models import Word2Vec

        model = Word2Vec(sentences, **settings(epochs), workers=workers, seed=seed)
    finally:
        logger.setLevel(level)
    words = sorted(model.wv.key_to_index)
    return Vectors.from_rows(words, model.wv.vectors[[model.wv.key_to_index[word] for word in words]])


def train_on_lists(lists: Sequence[Sequence[str]]) -> Vectors:
    """Train on lists of marked words, one sentence each, as released: not repeatable, nearly untrained.

    For each model and occupation: requested women, inferred women, requested men, inferred men.
    """
    return train([list(words) for words in lists if words], seed=1, workers=3, epochs=FEWEST_EPOCHS)


@dataclass(frozen=True, slots=True)
class TrainingTexts:
    """Texts in the order of training, as numbers: text i is `words[ids[starts[i]:starts[i + 1]]]`."""

    words: Sequence[str]
    ids: NDArray[np.int32]
    starts: NDArray[np.int64]

    @classmethod
    def ordered(
        cls, words: Sequence[str], ids: NDArray[np.int32], starts: NDArray[np.int64], order: Sequence[int]
    ) -> TrainingTexts:
        """Take the texts numbered in `order` (ascending keys) of tokenised texts, without the empty ones."""
        pieces = [ids[starts[text] : starts[text + 1]] for text in order]
        pieces = [piece for piece in pieces if piece.size]
        ends = np.cumsum([0, *(piece.size for piece in pieces)], dtype=np.int64)
        return cls(tuple(words), np.concatenate([ids[:0], *pieces]), ends)

    @property
    def n_tokens(self) -> int:
        """Words of all texts, repetitions counted."""
        return int(self.ids.size)

    @property
    def n_epochs(self) -> int:
        """Epochs that bring the texts to five million tokens of training, at least 5."""
        n = self.n_tokens
        return max(FEWEST_EPOCHS, math.ceil(TRAINING_TOKENS / n)) if n else FEWEST_EPOCHS

    def vocabulary(self) -> list[str]:
        """List the words that occur, in alphabetical order: the rows of every model trained on them."""
        return sorted(map(self.words.__getitem__, np.flatnonzero(np.bincount(self.ids)).tolist()))

    def digest(self) -> str:
        """Compute SHA-256 of the texts, their order and how long a sentence may be."""
        sha = hashlib.sha256(json.dumps([LONGEST_SENTENCE, len(self.ids), *self.words]).encode("ascii"))
        for numbers, kind in ((self.ids, "<i4"), (self.starts, "<i8")):
            sha.update(np.ascontiguousarray(numbers, dtype=kind).data)
        return sha.hexdigest()

    def __iter__(self) -> Iterator[list[str]]:
        """Yield each text as a list of words; one of more than `LONGEST_SENTENCE` words comes in pieces."""
        words = np.array(self.words, dtype=object)  # picks many at once
        for start, end in itertools.pairwise(self.starts.tolist()):
            for piece in range(start, end, LONGEST_SENTENCE):
                yield words[self.ids[piece : min(piece + LONGEST_SENTENCE, end)]].tolist()
