"""Vectors of several seeds on one corpus: trained side by side on all cores, and kept for the next time.

A kept file holds one seed's matrix in NumPy's format, and its name says of what. Where a file is damaged or
missing, or the folder cannot be written, vectors are trained again.
"""

from __future__ import annotations

import contextlib
import io
import os
import platform
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import joblib
import numpy as np

from biaskit.common.files import cache_dir, write_atomically
from biaskit.common.provenance import digest, versions
from biaskit.errors import BiaskitError
from biaskit.measures.personas.vectors.training import (
    VECTOR_SIZE,
    FloatMatrix,
    TrainingTexts,
    Vectors,
    settings,
    train,
)

MOST_KEPT = 512 * 2**20  # bytes of all files together: those not used for the longest time go
FEW_TOKENS = 1_000_000
"""Tokens times epochs: fewer are trained before another process has even started."""


def vectors_of_seeds(corpus: TrainingTexts, seeds: Sequence[int]) -> Iterator[Vectors]:
    """Make one vector model for each seed, in their order; seeds without a file are trained from now on.

    One seed is trained in a thread: gensim leaves the interpreter to others, and no process is to be started.
    The vectors are the same for any number of processes, with and without files.
    Reference: methods/srb#word-vectors.
    """
    words = {word: row for row, word in enumerate(corpus.vocabulary())}
    paths = {seed: _kept_file(corpus, seed) for seed in seeds}
    stored = {seed: _read(path, len(words)) for seed, path in paths.items()}
    missing, epochs = [seed for seed in seeds if stored[seed] is None], corpus.n_epochs
    n_jobs = 1 if corpus.n_tokens * epochs < FEW_TOKENS else min(joblib.cpu_count(), max(2, len(missing)))
    how = {"n_jobs": n_jobs, "pre_dispatch": "n_jobs", "return_as": "generator"}
    parallel = joblib.Parallel(**how, backend="loky" if len(missing) > 1 else "threading")
    trained = parallel(joblib.delayed(train)(corpus, seed=seed, epochs=epochs) for seed in missing)

    def in_order() -> Iterator[Vectors]:
        for seed in seeds:
            matrix = stored[seed]
            vectors = next(trained) if matrix is None else Vectors(words, matrix)
            if matrix is None and len(vectors) == len(words):  # a word of zeros has no row
                _keep(paths[seed], vectors.matrix)
            yield vectors
        next(trained, None)  # joblib takes a generator that was not read to its end for a cancelled one

    return in_order()


def folder() -> Path:
    """Return the folder of the files. Raises `UsageError` for a user without a home."""
    return cache_dir() / "vectors"


def _kept_file(corpus: TrainingTexts, seed: int) -> Path | None:
    """Name the file of a seed after all that its vectors depend on; None for a user without a home."""
    depends = {
        "corpus": corpus.digest(),
        "settings": settings(corpus.n_epochs),
        "seed": seed,
        "versions": {name: versions().get(name) for name in ("gensim", "numpy", "scipy")},
        "machine": [platform.system(), platform.machine()],
    }
    with contextlib.suppress(BiaskitError):
        return folder() / f"{digest(depends)}.npz"
    return None


def _read(path: Path | None, n_words: int) -> FloatMatrix | None:
    """Read the matrix of a complete file; None otherwise."""
    with contextlib.suppress(OSError, ValueError, EOFError, LookupError, zipfile.BadZipFile):
        if path is not None and path.is_file():
            with path.open("rb") as file:
                matrix: FloatMatrix = np.load(file, allow_pickle=False)["matrix"]
            if matrix.shape == (n_words, VECTOR_SIZE) and matrix.dtype == np.float32:
                os.utime(path)  # marks it as used: the oldest go first
                return matrix
    return None


def _keep(path: Path | None, matrix: FloatMatrix) -> None:
    """Write a file and remove those not used for the longest time; where that fails, nothing is kept."""
    written = io.BytesIO()
    np.savez(written, matrix=matrix)
    if path is None or written.tell() > MOST_KEPT:
        return
    with contextlib.suppress(BiaskitError, OSError):
        write_atomically(path, written.getvalue())
        total = 0
        for stored in sorted(path.parent.glob("*.npz"), key=lambda file: -file.stat().st_mtime_ns):
            total += stored.stat().st_size
            if total > MOST_KEPT:
                stored.unlink(missing_ok=True)
