"""Vectors that were trained before: kept beside converted models, by all that they depend on.

A file holds one seed's matrix, its name says of what: corpus, settings, seed and the versions of the
libraries that do the arithmetic. What a file says of itself is checked before a number of it is believed; a
file that is damaged, somebody else's or not there costs a training, and so does a folder that cannot be
written.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import platform
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biaskit.errors import BiaskitError, UsageError
from biaskit.files import cache_dir, write_atomically
from biaskit.inputs import Inputs
from biaskit.provenance import digest, versions
from biaskit.vectors.seeds import Results, begin_training
from biaskit.vectors.training import (
    FloatMatrix,
    TrainingProgress,
    TrainingTexts,
    Vectors,
    n_epochs,
    settings,
)

FORMAT = 1
"""Raised when a file's layout changes, or when the same corpus would be trained to other vectors."""
MOST_KEPT = 512 * 2**20
"""Bytes of all files together: those not used for the longest time go."""
_SUFFIX = ".vectors"
_ARITHMETIC = ("gensim", "numpy", "scipy")
_FILE = Inputs(UsageError, most=MOST_KEPT)


@contextlib.contextmanager
def kept_or_begun(corpus: TrainingTexts, *, seeds: Sequence[int]) -> Iterator[Results]:
    """One vector model for each seed, as `begin_training`; only seeds that no file holds are trained.

    Arguments: as of `begin_training`.
    Returns: as that, the same bytes with and without files; what was trained is kept when it is given.
    Reference: docs/methods.md#word-vectors.
    """
    words = {word: row for row, word in enumerate(corpus.vocabulary())}
    keys = dict(zip(seeds, _keys(corpus, seeds), strict=True))
    found = {seed: _read(key, len(words)) for seed, key in keys.items()}
    missing = [seed for seed in seeds if found[seed] is None]

    def results(progress: TrainingProgress | None = None) -> Iterator[Vectors]:
        trained = begun(progress)
        for seed in seeds:
            matrix = found[seed]
            if matrix is None:
                vectors = next(trained)
                if [*vectors.words] == [*words]:  # one that is all zeros has no vector: rows would not fit
                    _keep(keys[seed], vectors.matrix)
                yield vectors
            else:
                yield Vectors(words, matrix)

    with begin_training(corpus, seeds=missing) as begun:
        yield results


def folder() -> Path:
    """Where the files are. Raises `UsageError` for a user without a home."""
    return cache_dir() / "vectors"


def _keys(corpus: TrainingTexts, seeds: Sequence[int]) -> list[str]:
    """What each seed's vectors depend on, as a digest."""
    installed = versions()
    depends = {
        "format": FORMAT,
        "corpus": corpus.digest(),
        "settings": settings(n_epochs(corpus.n_tokens)),
        "versions": {name: installed.get(name) for name in _ARITHMETIC},
        "machine": [platform.system(), platform.machine()],
    }
    return [digest({**depends, "seed": seed}) for seed in seeds]


def _read(key: str, n_words: int) -> FloatMatrix | None:
    """The matrix of a file that is whole and of this key; None otherwise."""
    with contextlib.suppress(BiaskitError, OSError, ValueError, EOFError, MemoryError):
        path = folder() / f"{key}{_SUFFIX}"
        head, _, content = _FILE.content(path).partition(b"\n")
        if head != _head(key, content):
            return None
        matrix: FloatMatrix = np.load(io.BytesIO(content), allow_pickle=False)
        if matrix.shape == (n_words, settings()["vector_size"]) and matrix.dtype == np.float32:
            with contextlib.suppress(OSError):
                os.utime(path)  # used: what is oldest goes first
            return matrix
    return None


def _head(key: str, content: bytes) -> bytes:
    """The first line of a file, before its array in NumPy's format."""
    return json.dumps({"key": key, "sha256": hashlib.sha256(content).hexdigest()}).encode("ascii")


def _keep(key: str, matrix: NDArray[Any]) -> None:
    """Write a file and make room for it; where that cannot be, nothing is kept."""
    written = io.BytesIO()
    np.save(written, matrix, allow_pickle=False)
    content = written.getvalue()
    with contextlib.suppress(BiaskitError, OSError):
        if len(content) < MOST_KEPT:
            write_atomically(folder() / f"{key}{_SUFFIX}", _head(key, content) + b"\n" + content)
            _make_room()


def _make_room() -> None:
    """Remove the files not used for the longest time until the rest is within `MOST_KEPT`."""
    found = []
    for path in folder().glob(f"*{_SUFFIX}"):
        status = path.lstat()
        if stat.S_ISREG(status.st_mode):
            found.append((status.st_mtime_ns, path.name, status.st_size, path))
    total = sum(size for _, _, size, _ in found)
    for _, _, size, path in sorted(found):
        if total <= MOST_KEPT:
            return
        path.unlink(missing_ok=True)
        total -= size
