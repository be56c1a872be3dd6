"""Tests of vectors of several seeds: the same from one process and from many, whatever becomes of them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fakes.training_texts import equal, random_corpus, train_seeds

import biaskit
from biaskit.vectors import seeds as module
from biaskit.vectors.seeds import begin_training
from biaskit.vectors.training import TrainingTexts, Vectors, train

WAIT_S = 60


def python(program: str, **environment: str) -> str:
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
import glob, hashlib, os, time, numpy as np
from biaskit.vectors.seeds import begin_training
from biaskit.vectors.training import TrainingTexts
rng = np.random.default_rng(0)
words = [f"w{i:03d}" for i in range(300)]
corpus = TrainingTexts(words, rng.integers(0, 300, size=6000, dtype=np.int32), np.arange(0, 6001, 60))
print("started")
with begin_training(corpus, seeds=[1, 2, 3], epochs=3, processes=PROCESSES) as results:
    while PROCESSES > 1 and not glob.glob(os.environ["TMPDIR"] + "/*/WAITED"):
        time.sleep(0.01)
    models = list(results(None))
print(hashlib.sha256(b"".join(v.matrix.tobytes() for v in models)).hexdigest())
"""


@pytest.mark.process
def test_vectors_are_the_same_for_every_hash_seed_thread_count_and_number_of_processes(
    tmp_path: Path,
) -> None:
    # The program has neither a file nor a guard: multiprocessing would run it again, or die.
    one, two = (PROGRAM.replace("PROCESSES", n).replace("WAITED", "seed-2.npy") for n in "13")
    outputs = {
        python(one, PYTHONHASHSEED="0", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1"),
        python(one, PYTHONHASHSEED="1", OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="2"),
        python(two, PYTHONHASHSEED="random", TMPDIR=str(tmp_path)),
    }
    assert len(outputs) == 1
    started, digest = outputs.pop().split()
    assert "started" == started
    assert 64 == len(digest)


def test_progress_counts_epochs_of_all_seeds_and_can_stop_the_training() -> None:
    told: list[tuple[int, int]] = []
    train_seeds(random_corpus(), seeds=[1, 2], epochs=3, progress=lambda *p: told.append(p))
    assert [(n, 6) for n in range(7)] == told

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_seeds(random_corpus(), seeds=[1], epochs=3, progress=stop)


@pytest.fixture
def until(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Path]:
    """Waits for a file in the folder that processes share, and gives that folder."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def wait(name: str) -> Path:
        end = time.monotonic() + WAIT_S
        while not (found := list(tmp_path.glob(f"*/{name}"))):
            assert time.monotonic() < end
            time.sleep(0.01)
        return found[0].parent

    return wait


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The other processes."""
    found: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **k: found.append(popen(*a, **k)) or found[-1])
    return found


def held(seed: int, file: str) -> str:
    """What another process runs that goes on with a seed when there is a file in the shared folder."""
    return f"""
import json, sys, time
from pathlib import Path
sys.path[:] = json.loads(sys.argv[2])
from biaskit.vectors import seeds as module
original = module.train
def train(*args, seed, **more):
    while seed == {seed} and not Path(sys.argv[1], "{file}").exists():
        time.sleep(0.01)
    return original(*args, seed=seed, **more)
module.train = train
module.train_in_another_process(sys.argv[1], json.loads(sys.argv[3]), int(sys.argv[4]))
"""


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
@pytest.mark.parametrize("seeds", [[4], [5, 1, 3]])
def test_what_is_begun_is_trained_beside_whatever_this_process_does(
    seeds: list[int], trained_here: list[int], until: Callable[[str], Path]
) -> None:
    corpus = random_corpus(length=400)
    told: list[tuple[int, int]] = []
    with begin_training(corpus, seeds=seeds, epochs=4, processes=2) as results:
        until(f"seed-{seeds[-1]}.npy")
        found = list(results(lambda *p: told.append(p)))
    assert [] == trained_here
    assert [(4 * len(seeds), 4 * len(seeds))] == told
    assert equal(train_seeds(corpus, seeds=seeds, epochs=4), found)
    assert found[0].words is found[-1].words


@pytest.mark.process
def test_who_is_free_takes_the_next_seed(
    trained_here: list[int], until: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module._Processes, "_PROGRAM", held(5, "taken-3"))
    corpus = random_corpus()
    told: list[tuple[int, int]] = []
    with begin_training(corpus, seeds=[5, 1, 3], epochs=4, processes=2) as results:
        until("taken-5")
        found = list(results(lambda *p: told.append(p)))
    assert [1, 3] == trained_here
    assert (12, 12) == told[-1]
    assert sorted(set(told)) == told, "each number of epochs is told once"
    assert equal(train_seeds(corpus, seeds=[5, 1, 3], epochs=4), found)


@pytest.mark.process
def test_the_first_is_given_while_another_is_trained(
    trained_here: list[int], until: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module._Processes, "_PROGRAM", held(2, "go"))
    corpus = random_corpus()
    with begin_training(corpus, seeds=[1, 2, 3], epochs=2, processes=2) as results:
        folder = until("taken-2")
        models = results(None)
        found = [next(models)]
        assert [3] == trained_here
        assert not (folder / "seed-2.npy").exists()
        (folder / "go").touch()
        found += models
    assert [3] == trained_here
    assert equal(train_seeds(corpus, seeds=[1, 2, 3], epochs=2), found)


@pytest.mark.process
def test_a_process_that_is_killed_with_a_seed_costs_time_alone(
    trained_here: list[int],
    until: Callable[[str], Path],
    started: list[subprocess.Popen[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module._Processes, "_PROGRAM", held(2, "never"))
    told: list[tuple[int, int]] = []
    with begin_training(random_corpus(), seeds=[1, 2, 3], epochs=2, processes=2) as results:
        until("taken-2")
        started[0].kill()
        found = list(results(lambda *p: told.append(p)))
    assert [3, 2] == trained_here
    assert (6, 6) == told[-1]
    assert equal(train_seeds(random_corpus(), seeds=[1, 2, 3], epochs=2), found)


@pytest.mark.process
@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_what_nobody_asks_for_ends_with_the_context(
    error: type[BaseException] | None,
    until: Callable[[str], Path],
    started: list[subprocess.Popen[bytes]],
    tmp_path: Path,
) -> None:
    begun = begin_training(random_corpus(), seeds=[1, 2], epochs=1_000_000, processes=2)
    with contextlib.suppress(ValueError, KeyboardInterrupt), begun:
        until("taken-1")
        assert started[0].poll() is None
        if error:
            raise error
    assert started[0].poll() is not None
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(("cores", "n"), [(1, 0), (2, 1), (3, 2), (8, 2)])
def test_one_process_is_begun_for_each_other_core_and_seed(
    cores: int, n: int, until: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_n_cores", lambda: cores)
    monkeypatch.setattr(module, "_memory_available", lambda: None)
    calls: list[int] = []
    monkeypatch.setattr(module._Processes, "_start", lambda *_: calls.append(1))
    with begin_training(random_corpus(), seeds=[1, 2], epochs=1_000):
        assert n == len(calls)
        assert bool(n) == bool(list(tmp_path.iterdir()))
    assert [] == list(tmp_path.iterdir())


@pytest.mark.process
@pytest.mark.parametrize("fault", ["no python", "dies", "no space", "half a result"])
def test_without_a_second_process_this_one_does_all(
    fault: str,
    trained_here: list[int],
    until: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    if fault == "no python":
        monkeypatch.setattr(sys, "executable", "/nowhere/python")
    elif fault == "no space":
        monkeypatch.setattr(TrainingTexts, "save", lambda *_: (_ for _ in ()).throw(OSError("No space left")))
    else:
        program = "raise SystemExit('no')" if fault == "dies" else WRITES_HALF
        monkeypatch.setattr(module._Processes, "_PROGRAM", program)
    with begin_training(random_corpus(), seeds=[1, 2], epochs=2, processes=2) as results:
        if fault == "half a result":
            until("seed-2.npy")
        found = list(results(None))
    assert [1, 2] == trained_here
    assert equal(train_seeds(random_corpus(), seeds=[1, 2], epochs=2), found)
    assert ("", "") == capfd.readouterr()


WRITES_HALF = """
import pathlib, sys, numpy as np
pathlib.Path(sys.argv[1], "taken-2").touch()
np.save(sys.argv[1] + "/seed-2.npy", np.zeros((2, 100)))
"""


@pytest.mark.process
def test_an_interruption_leaves_neither_process_nor_files(
    until: Callable[[str], Path], started: list[subprocess.Popen[bytes]], tmp_path: Path
) -> None:
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
    program = program.replace("WAITED", "progress")
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
    with begin_training(random_corpus(), seeds=[1, 2], epochs=1, processes=2):
        pass
    assert {"1"} == {
        given[0][name] for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    }
