"""kill -9 at any moment, then the same command: nothing lost, nothing twice, the same tables (issue 3)."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from fakes.killed import LONGEST_S, Command, environment, tables
from needs import missing, require_demo_base, require_torch

from biaskit.measures.probe.design import resolve
from biaskit.measures.probe.requests import PlannedCells
from biaskit.models.options import LocalOptions
from biaskit.models.spec import open_scorer
from biaskit.study.config import load_study

pytestmark = pytest.mark.process

BATCH = 4


def whole_keys(path: Path) -> list[str]:
    """The keys of the lines that a killed writer finished."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")[:-1]
    return [json.loads(line)["key"] for line in lines]


def numbers(path: Path) -> dict[str, str]:
    """Key → what was computed, without when."""
    found = {}
    for line in path.read_text("ascii").splitlines():
        row = json.loads(line)
        found[row.pop("key")] = json.dumps(
            {k: v for k, v in row.items() if k not in ("answered_at", "sum")}, sort_keys=True
        )
    return found


def kill_when(process: subprocess.Popen[bytes], path: Path, n_rows: int, pause_s: float) -> tuple[bool, str]:
    """Kill a moment after the file has so many rows; whether it still ran, and its stderr."""
    limit = time.monotonic() + LONGEST_S
    while process.poll() is None:
        assert time.monotonic() < limit
        if n_rows == 0 or (path.exists() and path.read_bytes().count(b"\n") >= n_rows):
            time.sleep(pause_s)
            break
        time.sleep(0.002)
    running = process.poll() is None
    os.killpg(process.pid, signal.SIGKILL)
    _, err = process.communicate()
    return running, err.decode()


def planned_batches(command: Command) -> list[set[str]]:
    """The batches of a model's plan as keys; the same requests give the same batches, whoever cuts them."""
    label, _, spec = command.arguments[0].rpartition("=")
    options = dict(zip(command.arguments[1::2], command.arguments[2::2], strict=True))
    names = {"--jobs": "jobs.select", "--templates": "templates.select", "--bias-type": "bias_type"}
    chosen = {names[option]: value for option, value in options.items() if option in names}
    with contextlib.chdir(command.folder):
        scorer = open_scorer(spec, label=label or spec, local=LocalOptions(batch_size=BATCH))
        design = resolve(load_study("occugender", chosen))
        asked = PlannedCells(design, label or spec, "raw", scorer.identity.fingerprint)
        return [{request.key for request in batch} for batch in scorer.plan_scores(asked.requests).batches]


def check_plan(err: str, batches: list[set[str]], stored: list[str]) -> None:
    """A start asks for the batches that are not whole on disk, and at most one of them is there in part."""
    kept = set(stored)
    pending = [batch for batch in batches if batch - kept]
    assert sum(bool(batch & kept) for batch in pending) <= 1
    n_prompts = sum(map(len, batches))
    if found := re.search(r"([\d,]+) stored, ([\d,]+) to run; [\d,]+ tokens in ([\d,]+) batches", err):
        expected = (len(kept), n_prompts - len(kept), len(pending))
        assert expected == tuple(int(number.replace(",", "")) for number in found.groups())


def check_kills(command: Command, n_prompts: int, *, seed: int, n_kills: int = 10) -> None:
    """Kills at random moments of one run, each followed by the same command, until it ends."""
    command.finish("unbroken")
    unbroken = command.rows_file("unbroken")
    assert n_prompts == len(whole_keys(unbroken))
    batches = planned_batches(command)
    assert n_prompts == sum(map(len, batches))
    chance = random.Random(seed)
    # Random rows, in order, so that each start gets further than the last; the first before any row.
    moments = [0, *sorted(chance.sample(range(1, 3 * n_prompts // 4), n_kills - 1))]
    path = command.rows_file("killed")
    before: list[str] = []
    killed = 0
    for moment in moments:
        # Within a batch's time after the row, so that some kills fall into a write, some between two.
        running, err = kill_when(command.start("killed"), path, moment, chance.uniform(0, 0.01))
        check_plan(err, batches, before)
        killed += running
        kept = whole_keys(path)
        assert before == kept[: len(before)], "a finished row was lost"
        assert len(kept) == len(set(kept)), "a row was written twice"
        before = kept
    assert killed >= n_kills - 1
    assert 0 < len(before) < n_prompts, "the kills did not fall into the run"
    check_plan(command.finish("killed"), batches, before)
    after = whole_keys(path)
    assert before == after[: len(before)]
    assert n_prompts == len(after) == len(set(after))
    assert numbers(unbroken) == numbers(path)
    assert tables(command.folder / "unbroken") == tables(command.folder / "killed")
    # The batches of the plan, in its order: a broken run keeps to those of an unbroken one.
    assert whole_keys(unbroken) == after
    manifest = json.loads((command.folder / "killed" / "manifest.json").read_text("ascii"))
    assert [BATCH] == [entry["batch_size"] for entry in manifest["models"].values()]


# --- a scripted model: many cells, nothing but the store ------------------------------------------------


@pytest.fixture
def scripted(tmp_path: Path) -> Command:
    lines = [{"contains": "nurse", "log_probs": {" She": -0.5}}, {"log_probs": {" He": -0.75}}]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    arguments = ("scripted:m.jsonl", "--jobs", "1-20", "--batch-size", str(BATCH))
    return Command("probe", arguments, tmp_path)


@pytest.mark.parametrize("n_kills", [pytest.param(3, marks=pytest.mark.daily), 10])
def test_kills_of_a_run_that_does_little_but_write(scripted: Command, n_kills: int) -> None:
    check_kills(scripted, 1000, seed=3, n_kills=n_kills)


@pytest.mark.parametrize("cut", [1, 2500])
def test_a_batch_of_which_a_part_was_stored_is_computed_whole_and_its_missing_rows_are_written(
    scripted: Command, cut: int
) -> None:
    scripted.finish("unbroken")
    content = scripted.rows_file("unbroken").read_bytes()
    shutil.copytree(scripted.folder / "unbroken", scripted.folder / "cut")
    path = scripted.rows_file("cut")
    path.write_bytes(content[: len(content) // 2 - cut])
    kept = whole_keys(path)
    check_plan(scripted.finish("cut"), planned_batches(scripted), kept)
    assert numbers(scripted.rows_file("unbroken")) == numbers(path)
    assert tables(scripted.folder / "unbroken") == tables(scripted.folder / "cut")


# --- a saved transformers model -----------------------------------------------------------------------


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    require_torch()
    # Digests of files that live for one test do not belong into the user's cache.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    from fakes.tiny_models import save_model

    save_model(tmp_path / "model", "llama", "bpe")
    arguments = (
        "tiny=hf:./model", "--jobs", "1-8", "--templates", "1-5", "--batch-size", str(BATCH),
    )  # fmt: skip
    return Command("probe", arguments, tmp_path)


def test_ten_kills_of_a_saved_model(tiny: Command) -> None:
    check_kills(tiny, 80, seed=5)


def test_a_broken_run_computes_the_batches_of_an_unbroken_one_bit_for_bit(tiny: Command) -> None:
    tiny.finish("unbroken")
    path = tiny.rows_file("half")
    shutil.copytree(tiny.folder / "unbroken", tiny.folder / "half")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: len(lines) // 3]))
    tiny.finish("half")
    assert numbers(tiny.rows_file("unbroken")) == numbers(path)


# --- the demo model -----------------------------------------------------------------------------------


@pytest.mark.real_model
def test_ten_kills_of_the_demo_model(tmp_path: Path) -> None:
    require_demo_base()
    chosen = ("--jobs", "1-8", "--templates", "1-5", "--bias-type", "implicit")
    arguments = ("demo-base", *chosen, "--batch-size", str(BATCH))
    check_kills(Command("probe", arguments, tmp_path), 40, seed=7)


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
