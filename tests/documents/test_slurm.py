"""examples/slurm.sh without Slurm: tasks one after another, one of them stopped and queued again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fakes.command import Cli

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "slurm.sh"
MODEL = ("m=scripted:m.jsonl", "--jobs", "1-10", "--batch-size", "2", "--no-reuse")

pytestmark = pytest.mark.process


@pytest.fixture
def environment(quick_folder: Path) -> dict[str, str]:
    """A biaskit and a scontrol on the path, in a folder with a scripted model."""
    lines = [{"contains": "nurse", "log_probs": {" She": -0.5}}, {"log_probs": {" He": -0.75}}]
    Path("m.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    commands = quick_folder / "bin"
    commands.mkdir()
    (commands / "biaskit").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m biaskit "$@"\n')
    (commands / "scontrol").write_text('#!/bin/sh\necho "$@" >> requeued\n')
    for command in commands.iterdir():
        command.chmod(0o755)
    path = f"{commands}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "SLURM_ARRAY_JOB_ID": "7"}


def start(environment: dict[str, str], task: int) -> subprocess.Popen[bytes]:
    own = {"SLURM_ARRAY_TASK_ID": str(task), "SLURM_ARRAY_TASK_MAX": "2"}
    command = ["bash", str(SCRIPT), "probe", *MODEL]
    return subprocess.Popen(command, env=environment | own, stderr=subprocess.PIPE)


def test_a_task_that_is_stopped_is_queued_again_and_goes_on(
    environment: dict[str, str], console: Cli
) -> None:
    stopped = start(environment, 1)
    limit = time.monotonic() + 100
    while (
        not (found := list(Path().glob("biaskit-runs/*-1-of-2/probe.jsonl"))) or not found[0].stat().st_size
    ):
        assert time.monotonic() < limit
        assert stopped.poll() is None
        time.sleep(0.01)
    stopped.send_signal(signal.SIGTERM)
    stopped.communicate(timeout=100)
    assert 0 == stopped.returncode
    assert "requeue 7_1\n" == Path("requeued").read_text()
    for task in (1, 2):
        again = start(environment, task)
        _, err = again.communicate(timeout=200)
        assert 0 == again.returncode, err.decode()
    shards = sorted(map(str, Path("biaskit-runs").glob("*-shard-*-of-2")))
    assert 2 == len(shards)
    said = console("analyze", *shards, "--out", "whole")
    assert 0 == said.code, said.err
    assert 0 == console("probe", *MODEL, "--out", "unbroken").code
    for path in sorted(Path("unbroken/tables").glob("*.csv")):
        assert path.read_bytes() == Path("whole/tables", path.name).read_bytes(), path.name


def test_without_a_model_it_says_how_it_is_used(environment: dict[str, str]) -> None:
    done = subprocess.run(["bash", str(SCRIPT), "probe"], env=environment, capture_output=True, text=True)
    assert 2 == done.returncode
    assert done.stderr.startswith("usage: sbatch --array=1-N")
