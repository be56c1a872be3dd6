"""Word → vector: trained on a run's texts, or read from a pretrained file (docs/methods.md#word-vectors).

A trained vector depends on the texts, their order, the seed and the epochs alone: gensim with one worker
gives the same vectors for every hash seed and number of threads.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import logging
import math
import threading
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biaskit.inputs import expanded
from biaskit.vectors.files import read_vectors

FloatMatrix = NDArray[np.floating[Any]]
Sentences = Callable[[], Iterator[list[str]]]
"""Gives the sentences anew at each call: training passes over them once for each epoch, and once before."""
TrainingProgress = Callable[[int, int], None]
"""Told how many epochs of how many are done, all seeds together; always in the caller's own thread."""

VECTOR_SIZE = 100
WINDOW = 5
NEGATIVE_SAMPLES = 5
FEWEST_EPOCHS = 5
TRAINING_TOKENS = 5_000_000
LONGEST_SENTENCE = 10_000
"""Tokens; gensim drops what follows in a sentence, without a message."""
NEARLY_UNTRAINED = 0.5
"""A median cosine of random words above this is warned about: all words still point the same way."""
RANDOM_PAIRS = 10_000


@dataclass(frozen=True, slots=True)
class Vectors:
    """Words and their vectors of unit length."""

    words: Mapping[str, int]  # word → row
    matrix: FloatMatrix  # (n, d)
    digest: str | None = None  # SHA-256 of the file they were read from

    @classmethod
    def of(cls, words: Sequence[str], matrix: ArrayLike, digest: str | None = None) -> Vectors:
        """Scale the rows `(n, d)` of n distinct words to unit length; a row of zeros is left out."""
        rows = np.atleast_2d(np.asarray(matrix))
        if not np.issubdtype(rows.dtype, np.floating):
            rows = rows.astype(np.float64)
        lengths = np.sqrt(np.square(rows, dtype=np.float64).sum(axis=1))
        kept = np.flatnonzero(lengths)
        unit = (rows[kept] / lengths[kept, None]).astype(rows.dtype)
        return cls({words[row]: place for place, row in enumerate(kept.tolist())}, unit, digest)

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self.words

    def rows(self, words: Sequence[str]) -> tuple[NDArray[np.float64], list[str], list[str]]:
        """Vectors of the known words `(k, d)` in double precision, those words, and the words without one."""
        known = [word for word in words if word in self.words]
        unknown = [word for word in words if word not in self.words]
        found = self.matrix[[self.words[word] for word in known]].astype(np.float64)
        # Unit length was rounded to the precision of the store.
        found /= np.linalg.norm(found, axis=1, keepdims=True)
        return found, known, unknown


def median_cosine(vectors: Vectors, rng: np.random.Generator, *, n_pairs: int = RANDOM_PAIRS) -> float | None:
    """Median cosine of random pairs of two words: near 0 when trained, near 1 when hardly.

    Arguments: vectors; rng; n_pairs, drawn with replacement, every word as likely.
    Returns: in [−1, 1]; above `NEARLY_UNTRAINED` the caller warns.
    Missing or empty input: None with fewer than two words.
    Reference: docs/methods.md#word-vectors (0.72 after 5 epochs on 1,350 texts).
    """
    n = len(vectors)
    if n < 2:
        return None
    first = rng.integers(0, n, size=n_pairs)
    second = (first + rng.integers(1, n, size=n_pairs)) % n
    cosines = np.einsum("ij,ij->i", vectors.matrix[first], vectors.matrix[second], dtype=np.float64)
    return float(np.median(cosines))


# --- training ------------------------------------------------------------------------------------


def n_epochs(n_tokens: int) -> int:
    """Epochs that bring a corpus to five million tokens of training, at least 5."""
    return max(FEWEST_EPOCHS, math.ceil(TRAINING_TOKENS / n_tokens)) if n_tokens else FEWEST_EPOCHS


def settings(epochs: int = FEWEST_EPOCHS) -> dict[str, int]:
    """What `train` tells gensim beside the sentences and the seed."""
    return {
        "vector_size": VECTOR_SIZE,
        "window": WINDOW,
        "min_count": 1,
        "sg": 0,
        "negative": NEGATIVE_SAMPLES,
        "epochs": epochs,
    }


def train(
    sentences: Sentences,
    *,
    n_tokens: int,
    seed: int,
    workers: int = 1,
    epochs: int | None = None,
    progress: TrainingProgress | None = None,
) -> Vectors:
    """Train word2vec: CBOW, 100 dimensions, window 5, every word, 5 negative samples, else gensim's defaults.

    Arguments: sentences, none longer than `LONGEST_SENTENCE`; n_tokens, what they hold together; epochs,
        by default `n_epochs(n_tokens)`; workers, threads of gensim: more than one is not repeatable.
    Returns: vectors of all words, in alphabetical order; without tokens, none.
    Errors: whatever `sentences` or `progress` raises.
    Reference: docs/methods.md#word-vectors; gensim does the arithmetic.
    """
    if not n_tokens:
        return Vectors({}, np.empty((0, VECTOR_SIZE), dtype=np.float32))
    passes = _Passes(sentences)
    with _silent_gensim():
        from gensim.models import Word2Vec

        # The time is in gensim's C loop: its `corpus_file`, or calling that loop ourselves, is no faster.
        model = Word2Vec(
            passes,
            **settings(n_epochs(n_tokens) if epochs is None else epochs),
            workers=workers,
            seed=seed,
            callbacks=[_epoch_counter(progress)] if progress else (),
        )
    if passes.error is not None:
        raise passes.error
    words = sorted(model.wv.key_to_index)
    return Vectors.of(words, model.wv.vectors[[model.wv.key_to_index[word] for word in words]])


def train_on_lists(lists: Sequence[Sequence[str]]) -> Vectors:
    """Train on lists of marked words, one sentence each, as released: seed 1, 5 epochs, three workers.

    Arguments: lists, for each model and occupation specified women, associated women, specified men,
        associated men, words by z descending. Not repeatable, and nearly untrained
        (docs/methods.md#word-vectors).
    """
    sentences = [list(words) for words in lists if words]
    n_tokens = sum(map(len, sentences))
    return train(lambda: iter(sentences), n_tokens=n_tokens, seed=1, workers=3, epochs=FEWEST_EPOCHS)


class _Passes:
    """Sentences that can be gone through again; keeps an error that gensim's thread would wait behind.

    gensim reads in a thread of its own, and when that dies its workers wait for ever.
    """

    def __init__(self, sentences: Sentences) -> None:
        self.sentences = sentences
        self.error: BaseException | None = None
        self._own_thread = threading.get_ident()

    def __iter__(self) -> Iterator[list[str]]:
        if self.error is not None:
            return
        try:
            yield from self.sentences()
        except BaseException as error:
            if threading.get_ident() == self._own_thread:
                raise
            self.error = error


def _epoch_counter(progress: TrainingProgress) -> Any:
    from gensim.models.callbacks import CallbackAny2Vec

    class EpochCounter(CallbackAny2Vec):  # type: ignore[misc]
        done = 0

        def on_epoch_end(self, model: Any) -> None:
            self.done += 1
            progress(self.done, model.epochs)

    return EpochCounter()


@contextlib.contextmanager
def _silent_gensim() -> Iterator[None]:
    """Keep gensim's log and its warnings from the terminal; what they say is known here."""
    logger = logging.getLogger("gensim")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


# --- the texts of a run as training reads them -----------------------------------------------------


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

    def vocabulary(self) -> list[str]:
        """The words that occur, in alphabetical order: the rows of every model trained on them."""
        return sorted(self.words[place] for place in np.unique(self.ids).tolist())

    def digest(self) -> str:
        """SHA-256 of the texts, their order and how long a sentence may be."""
        found = hashlib.sha256(json.dumps([LONGEST_SENTENCE, len(self.ids), *self.words]).encode("ascii"))
        for numbers, kind in ((self.ids, "<i4"), (self.starts, "<i8")):
            found.update(np.ascontiguousarray(numbers, dtype=kind).data)
        return found.hexdigest()

    def sentences(self, limit: int = LONGEST_SENTENCE) -> Iterator[list[str]]:
        """One list of words for each text; a text of more than `limit` words comes in pieces."""
        word = self.words.__getitem__
        for start, end in itertools.pairwise(self.starts.tolist()):
            for piece in range(start, end, limit):
                yield list(map(word, self.ids[piece : min(piece + limit, end)].tolist()))

    def save(self, folder: Path) -> None:
        """Write the corpus for another process, which maps the numbers instead of reading them."""
        np.save(folder / "ids.npy", self.ids)
        np.save(folder / "starts.npy", self.starts)
        (folder / "words.json").write_text(json.dumps(list(self.words)), encoding="ascii")

    @classmethod
    def load(cls, folder: Path) -> TrainingTexts:
        """Read what `save` wrote."""
        words = json.loads((folder / "words.json").read_text(encoding="ascii"))
        return cls(words, np.load(folder / "ids.npy", mmap_mode="r"), np.load(folder / "starts.npy"))


# --- pretrained ----------------------------------------------------------------------------------


def load_pretrained(path: str | Path, wanted: Collection[str]) -> Vectors:
    """Vectors of the wanted words from a file in word2vec's or GloVe's format.

    Arguments: path of a text or binary file, also as .gz; wanted, the words to keep, spelt as in the file.
    Returns: the words that the file has, in alphabetical order, with the file's digest; a word whose
        vector is all zeros has none.
    Errors: UsageError for a file that is cut, broken or in another format; a pickle is never loaded.
    Reference: docs/methods.md#word-vectors; `biaskit.vectors.files`.
    """
    found, digest = read_vectors(expanded(path), wanted)
    words = sorted(found)
    matrix = np.array([found[word] for word in words]) if words else np.empty((0, 1), dtype=np.float32)
    return Vectors.of(words, matrix, digest)
