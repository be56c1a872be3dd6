"""First starts of a demo model: converted once, begun again after a kill, and no network after that."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from fakes.killed import LONGEST_S, Command, tables
from fakes.run_files import environment
from needs import missing, require_demo_base, require_torch

pytestmark = pytest.mark.process


@pytest.mark.real_model
def test_the_second_start_of_the_demo_needs_no_network(tmp_path: Path) -> None:
    require_demo_base()
    command = Command("probe", ("demo-base", "--jobs", "nurse,plumber", "--templates", "1"), tmp_path)
    command.finish("first")
    cut_off = ["unshare", "-n", sys.executable]
    try:
        allowed = subprocess.run([*cut_off, "-c", ""], capture_output=True, timeout=60).returncode == 0
    except FileNotFoundError:
        allowed = False
    if not allowed:
        missing("no network namespace: run the tests where `unshare -n true` works (apt install util-linux)")
    names = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    done = subprocess.run(
        [*cut_off, "-m", "biaskit", "probe", *command.arguments, "--out", "second"],
        cwd=tmp_path,
        env={k: v for k, v in environment().items() if k not in names},
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
    )
    assert 0 == done.returncode, done.stderr
    assert tables(tmp_path / "first") == tables(tmp_path / "second")


# --- two first starts of the demo at once ---------------------------------------------------------------

CONVERT = """
import os, sys, time
from pathlib import Path
from biaskit.common.files import cache_dir
from biaskit.models.huggingface import demo

def convert(name, target):
    # What _convert does, with a saved model in place of a GGUF file, and slow enough to be met.
    import shutil
    with open("conversions", "a") as file:
        file.write(f"{os.getpid()}\\n")
    work = target.with_name(f"{target.name}.part")
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree("model", work)
    time.sleep(float(sys.argv[1]))
    work.rename(target)

demo.DEMOS = {"tiny": demo.Demo("biaskit", "0123456789abcdef" * 4, "")}
demo._convert = convert
print(demo.find_demo("tiny").path, flush=True)
"""


@pytest.fixture
def converting(tmp_path: Path) -> Iterator[list[subprocess.Popen[str]]]:
    require_torch()
    from fakes.tiny_models import save_model

    save_model(tmp_path / "model", "llama", "bpe")
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def start_conversion(
    folder: Path, started: list[subprocess.Popen[str]], seconds: float
) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", CONVERT, str(seconds)],
        cwd=folder,
        env=environment(XDG_CACHE_HOME=str(folder / "cache")),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    started.append(process)
    return process


def outcomes(processes: Sequence[subprocess.Popen[str]]) -> Counter[tuple[int, str]]:
    found: Counter[tuple[int, str]] = Counter()
    for process in processes:
        out, err = process.communicate(timeout=60)
        assert 0 == process.returncode, err
        found[process.returncode, out.strip()] += 1
    return found


def test_two_first_starts_of_the_demo_convert_it_once(
    tmp_path: Path, converting: list[subprocess.Popen[str]]
) -> None:
    processes = [start_conversion(tmp_path, converting, 1.0) for _ in range(2)]
    [(_, path)] = outcomes(processes)
    assert path.startswith(str(tmp_path / "cache" / "biaskit" / "demo-0123456789ab-"))
    assert 1 == len((tmp_path / "conversions").read_text().splitlines())


def test_a_conversion_that_was_killed_is_begun_again(
    tmp_path: Path, converting: list[subprocess.Popen[str]]
) -> None:
    first = start_conversion(tmp_path, converting, 60.0)
    limit = time.monotonic() + 60
    while not list((tmp_path / "cache").glob("**/*.part/model.safetensors")):
        assert time.monotonic() < limit
        assert first.poll() is None, first.communicate()
        time.sleep(0.01)
    first.send_signal(signal.SIGKILL)
    first.wait()
    outcomes([start_conversion(tmp_path, converting, 0.0)])
    assert 2 == len((tmp_path / "conversions").read_text().splitlines())
    outcomes([start_conversion(tmp_path, converting, 0.0)])
    assert 2 == len((tmp_path / "conversions").read_text().splitlines())
