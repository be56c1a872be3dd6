"""Tests of vectors of several seeds: the same from one process and from many, whatever becomes of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from fakes.training_texts import equal, random_corpus

import biaskit
from biaskit.vectors import seeds as module
from biaskit.vectors.seeds import train_seeds
from biaskit.vectors.training import TrainingTexts, Vectors, train

WAIT_S = 60


def python(program: str, *, file: bool = False, **environment: str) -> str:
    """Run a program from standard input, where `__main__` has no file."""
    root = str(Path(biaskit.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-"],
        input=program,
        env={**os.environ, "PYTHONPATH": root, **environment},
        capture_output=True,
        text=True,
        timeout=4 * WAIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


PROGRAM = """
import hashlib, numpy as np
from biaskit.vectors.seeds import train_seeds
from biaskit.vectors.training import TrainingTexts
rng = np.random.default_rng(0)
words = [f"w{i:03d}" for i in range(300)]
corpus = TrainingTexts(words, rng.integers(0, 300, size=6000, dtype=np.int32), np.arange(0, 6001, 60))
print("started")
models = train_seeds(corpus, seeds=[1, 2, 3], epochs=3, processes=PROCESSES)
print(hashlib.sha256(b"".join(v.matrix.tobytes() for v in models)).hexdigest())
"""


@pytest.mark.process
def test_vectors_are_the_same_for_every_hash_seed_thread_count_and_number_of_processes() -> None:
    # The program has neither a file nor a guard: multiprocessing would run it again, or die.
    one, two = (PROGRAM.replace("PROCESSES", n) for n in "13")
    outputs = {
        python(one, PYTHONHASHSEED="0", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1"),
        python(one, PYTHONHASHSEED="1", OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="2"),
        python(two, PYTHONHASHSEED="random"),
    }
    assert len(outputs) == 1
    started, digest = outputs.pop().split()
    assert "started" == started
    assert 64 == len(digest)


def test_progress_counts_epochs_of_all_seeds_and_can_stop_the_training() -> None:
    told: list[tuple[int, int]] = []
    train_seeds(random_corpus(), seeds=[1, 2], epochs=3, processes=1, progress=lambda *p: told.append(p))
    assert [(n, 6) for n in range(1, 7)] == [p for p in told if p[0]]

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_seeds(random_corpus(), seeds=[1], epochs=3, progress=stop)


@pytest.fixture
def trained_here(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Seeds that this process trains, in order."""
    seeds: list[int] = []
    original = train

    def counted(*args: object, seed: int, **more: object) -> Vectors:
        seeds.append(seed)
        return original(*args, seed=seed, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "train", counted)
    return seeds


@pytest.mark.process
def test_a_second_process_trains_every_other_seed_to_the_same_vectors(trained_here: list[int]) -> None:
    corpus = random_corpus(length=400)
    told: list[tuple[int, int]] = []
    found = train_seeds(corpus, seeds=[5, 1, 3], epochs=4, processes=2, progress=lambda *p: told.append(p))
    assert [5, 3] == trained_here
    assert 12 == told[-1][0]
    three = train_seeds(corpus, seeds=[5, 1, 3], epochs=4, processes=3)
    assert [5, 3, 5] == trained_here
    assert equal(three, found)
    assert equal(train_seeds(corpus, seeds=[5, 1, 3], epochs=4, processes=1), found)
    assert found[0].words is found[1].words


@pytest.mark.process
@pytest.mark.parametrize("fault", ["no python", "dies", "no space", "half a result"])
def test_without_a_second_process_this_one_does_all(
    fault: str, trained_here: list[int], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    if fault == "no python":
        monkeypatch.setattr(sys, "executable", "/nowhere/python")
    elif fault == "no space":
        monkeypatch.setattr(TrainingTexts, "save", lambda *_: (_ for _ in ()).throw(OSError("No space left")))
    else:
        program = "raise SystemExit('no')" if fault == "dies" else WRITES_HALF
        monkeypatch.setattr(module._Processes, "_PROGRAM", program)
    corpus = random_corpus()
    found = train_seeds(corpus, seeds=[1, 2], epochs=2, processes=2)
    assert [1, 2] == trained_here
    assert equal(train_seeds(corpus, seeds=[1, 2], epochs=2, processes=1), found)
    assert ("", "") == capfd.readouterr()


WRITES_HALF = """
import sys, numpy as np
np.save(sys.argv[1] + "/seed-2.npy", np.zeros((2, 100)))
"""


@pytest.mark.process
def test_an_interruption_leaves_neither_process_nor_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **k: started.append(popen(*a, **k)) or started[-1])

    def stop(done: int, total: int) -> None:
        assert list(tmp_path.iterdir())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_seeds(random_corpus(), seeds=[1, 2], epochs=1_000, processes=2, progress=stop)
    assert started[0].poll() is not None
    assert [] == list(tmp_path.iterdir())


@pytest.mark.process
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc to list a process's children")
def test_the_second_process_ends_when_the_first_is_killed(tmp_path: Path) -> None:
    program = PROGRAM.replace("epochs=3", "epochs=1_000_000").replace("PROCESSES", "2")
    root = str(Path(biaskit.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": root, "TMPDIR": str(tmp_path)}
    parent = subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + WAIT_S
        while not list(tmp_path.glob("*/progress")):  # then it trains
            assert time.monotonic() < end
            time.sleep(0.1)
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
        assert len(children) == 1
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    while (
        Path(f"/proc/{children[0]}").exists()
        and "\nState:\tZ" not in Path(f"/proc/{children[0]}/status").read_text()
    ):
        assert time.monotonic() < end + WAIT_S
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("cores", "gigabytes", "n_tokens", "expected"),
    [
        (4, 100, 10**7, 4),
        (4, None, 10**7, 4),  # a system that does not say
        (1, 100, 10**7, 1),
        (4, 0.1, 10**7, 1),
        (4, 0.6, 10**7, 3),
        (4, 100, 1_000, 1),  # done before another interpreter has started
    ],
)
def test_there_is_a_process_for_each_core_where_it_pays_and_memory_lasts(
    cores: int, gigabytes: float | None, n_tokens: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_n_cores", lambda: cores)
    memory = None if gigabytes is None else int(gigabytes * 2**30)
    monkeypatch.setattr(module, "_memory_available", lambda: memory)
    corpus = TrainingTexts(["a"], np.zeros(n_tokens, dtype=np.int32), np.array([0, n_tokens]))
    assert expected == module.n_processes(corpus, epochs=5)


def test_other_processes_do_their_sums_in_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, str]] = []

    def refuse(*_: object, env: dict[str, str], **__: object) -> None:
        given.append(env)
        raise OSError("no process")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    train_seeds(random_corpus(), seeds=[1, 2], epochs=1, processes=2)
    assert {"1"} == {
        given[0][name] for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    }
