"""Vectors of several seeds on one corpus, on all cores: the same numbers as one after the other.

Other processes begin at once, while this one is busy with something else; it helps when it needs the vectors.
Whoever is free takes the next seed and trains it from beginning to end, so nothing depends on how many there
are, or on which trains what.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from biaskit.vectors.training import (
    TRAINING_TOKENS,
    VECTOR_SIZE,
    TrainingProgress,
    TrainingTexts,
    Vectors,
    n_epochs,
    train,
)

Results = Callable[[TrainingProgress | None], Iterator[Vectors]]
"""Asks for the vectors of all seeds: told of progress, it gives them in the order of the seeds."""

PROCESS_BYTES = 250 * 2**20
"""Memory of a process that has loaded gensim."""
WORD_BYTES = 2_000
"""Memory of a word that is trained: three rows of 100 numbers, and its entries in gensim's tables."""
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@contextlib.contextmanager
def begin_training(
    corpus: TrainingTexts, *, seeds: Sequence[int], epochs: int | None = None, processes: int | None = None
) -> Iterator[Results]:
    """Train one vector model for each seed in other processes, beside whatever is done inside the context.

    Arguments: corpus; seeds, distinct; epochs as in `train`; processes, this one included, by default one
        for each core where there is enough to do and memory for them. With one, nothing is begun.
    Returns: what gives the vectors in the order of the seeds, each as soon as it is there. This process then
        trains what no other has taken, all before it gives the first; the vectors are the same for any number
        of processes. Where another process cannot start or dies, this one does its work.
    Errors: none of the other processes'; when the context is left they end, and their files are removed.
    Reference: docs/methods.md#word-vectors.
    """
    each = n_epochs(corpus.n_tokens) if epochs is None else epochs
    n = n_processes(corpus, each) if processes is None else processes
    with _Processes(corpus, seeds, each, min(len(seeds), n - 1)) as others:
        yield partial(_results, corpus, seeds, each, others)


def _results(
    corpus: TrainingTexts,
    seeds: Sequence[int],
    epochs: int,
    others: _Processes,
    progress: TrainingProgress | None = None,
) -> Iterator[Vectors]:
    """Help with seeds that nobody has taken, then give each when it is there."""
    here: dict[int, Vectors] = {}
    total, last = epochs * len(seeds), -1

    def tell(done_of_one: int = 0, _: int = 0) -> None:
        nonlocal last
        done = min(total, len(here) * epochs + done_of_one + others.epochs_done())
        if progress and done != last:
            last = done
            progress(done, total)

    def train_here(seed: int) -> Vectors:
        here[seed] = train(
            corpus.sentences, n_tokens=corpus.n_tokens, seed=seed, epochs=epochs, progress=tell
        )
        tell()
        return here[seed]

    tell()
    for seed in seeds:
        if others.leave(seed):
            train_here(seed)
    words = {word: row for row, word in enumerate(corpus.vocabulary())}
    for seed in seeds:
        vectors = here[seed] if seed in here else others.result(seed, words, tell)
        yield train_here(seed) if vectors is None else vectors


def n_processes(corpus: TrainingTexts, epochs: int) -> int:
    """How many processes train seeds: one for each core, fewer where the memory would not last.

    One where the work is done before another interpreter has started.
    """
    if corpus.n_tokens * epochs < TRAINING_TOKENS // 5:
        return 1
    available, each = _memory_available(), PROCESS_BYTES + WORD_BYTES * len(corpus.words)
    return max(1, _n_cores() if available is None else min(_n_cores(), 1 + available // each))


def _n_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory_available() -> int | None:
    """Bytes that can be had without swapping; None where the system does not say."""
    with contextlib.suppress(OSError, ValueError, IndexError, StopIteration):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1])
    return None


class _Processes(contextlib.ExitStack):
    """Other Pythons that train some of the seeds; whatever fails there leaves them untrained, no more.

    Plain interpreters instead of `multiprocessing`: that runs the caller's `__main__` again, which a
    notebook does not have and a script without its guard does not survive.
    """

    _PROGRAM = (
        "import json, sys; sys.path[:] = json.loads(sys.argv[2]);"
        " from biaskit.vectors.seeds import train_in_another_process as train;"
        " train(sys.argv[1], json.loads(sys.argv[3]), int(sys.argv[4]))"
    )

    def __init__(self, corpus: TrainingTexts, seeds: Sequence[int], epochs: int, n: int) -> None:
        super().__init__()
        self._running: list[subprocess.Popen[bytes]] = []
        self._path: Any = None
        if n < 1 or getattr(sys, "frozen", False):  # frozen: sys.executable is the program, no Python
            return
        with contextlib.suppress(Exception):
            folder = tempfile.TemporaryDirectory(prefix="biaskit-", ignore_cleanup_errors=True)
            self._path = Path(self.enter_context(folder))
            corpus.save(self._path)
            for _ in range(n):
                self._start(seeds, epochs)

    def _start(self, seeds: Sequence[int], epochs: int) -> None:
        search = json.dumps([entry for entry in sys.path if isinstance(entry, str)])
        process = subprocess.Popen(  # noqa: S603  our own program, no shell
            [
                sys.executable,
                "-c",
                self._PROGRAM,
                str(self._path),
                search,
                json.dumps(list(seeds)),
                str(epochs),
            ],
            stdin=subprocess.PIPE,  # its end tells the other side that this process is gone
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **_ONE_THREAD},
        )
        self._running.append(process)
        self.callback(self._end, process)

    def leave(self, seed: int) -> bool:
        """Whether they leave a seed to this process: none of them has taken it, and none will."""
        with contextlib.suppress(OSError, TypeError):  # removed from outside; no folder
            return _take(self._path, seed)
        return True

    def epochs_done(self) -> int:
        """How many epochs they have finished, of all their seeds."""
        try:
            return int((self._path / "progress").stat().st_size)
        except (OSError, TypeError):  # not begun; no folder
            return 0

    def result(self, seed: int, words: Mapping[str, int], told: Callable[[], None]) -> Vectors | None:
        """Wait for the vectors of a seed; None if all have ended without it, or it is not of these words."""
        path = self._path / f"seed-{seed}.npy"
        while not path.exists() and any(process.poll() is None for process in self._running):
            time.sleep(0.1)
            told()
        told()
        with contextlib.suppress(Exception):
            matrix = np.load(path, allow_pickle=False)
            if matrix.shape == (len(words), VECTOR_SIZE):
                return Vectors(words, matrix)
        return None

    @staticmethod
    def _end(process: subprocess.Popen[bytes]) -> None:
        process.kill()
        with contextlib.suppress(OSError):
            process.communicate()


def train_in_another_process(folder: str, seeds: Sequence[int], epochs: int) -> None:
    """What another process does: train each seed that nobody has taken and write it when it is ready."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    path = Path(folder)
    corpus = TrainingTexts.load(path)
    with open(path / "progress", "ab", buffering=0) as counter:  # a byte for each epoch, of all processes

        def count(*_: int) -> None:
            counter.write(b".")

        for seed in filter(partial(_take, path), seeds):
            vectors = train(
                corpus.sentences, n_tokens=corpus.n_tokens, seed=seed, epochs=epochs, progress=count
            )
            unfinished = path / f"unfinished-{seed}.npy"
            np.save(unfinished, vectors.matrix)
            unfinished.replace(path / f"seed-{seed}.npy")


def _take(folder: Path, seed: int) -> bool:
    """Make a seed the caller's own; False where another process was first."""
    try:
        (folder / f"taken-{seed}").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _end_with_parent() -> None:
    # Not sys.stdin: the interpreter waits for its lock when it ends.
    while os.read(0, 1):
        pass
    os._exit(1)
