"""A start that stores nothing and spends nothing leaves nothing: the newest run stays the last real one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fakes.command import Cli
from fakes.personas_runs import write_script, write_vectors

import biaskit
from biaskit.cli.terminal import TerminalWatcher
from biaskit.errors import Interrupted, ModelError
from biaskit.runs.store import find_run
from biaskit.runs.usage import promise

ASKED = {
    "probe": ("probe", "a=scripted:m.jsonl", "--jobs", "nurse,plumber", "--templates", "1"),
    "personas": (
        *("personas", "a=scripted:m.jsonl", "--occupations", "nurse,mechanic", "--per-gender", "2"),
        *("--max-samples", "6", "--set", "permutations=19", "--set", "clusters=false"),
        *("--set", "vectors=pretrained:vectors.txt"),
    ),
}
ENDS: dict[str, BaseException] = {
    "declined": Interrupted("Not started."),
    "Ctrl-C": KeyboardInterrupt(),
    "the only model": ModelError("a cannot be asked."),
}
Tree = dict[str, bytes | None]


@pytest.fixture(autouse=True)
def folder(quick_folder: Path) -> Path:
    write_vectors(Path("vectors.txt"))
    texts = ["She said her day was good.", "He said his day was good."]
    write_script(Path("m.jsonl"), {"contains": "", "log_probs": {" She": -0.5}, "else": -9, "texts": texts})
    return quick_folder


def tree(where: str | Path = ".") -> Tree:
    """Every file with its content, every folder."""
    return {str(p): p.read_bytes() if p.is_file() else None for p in sorted(Path(where).rglob("*"))}


def ending(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def planned(self: TerminalWatcher, *_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(TerminalWatcher, "planned", planned)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("kind_name", ASKED)
def test_a_start_that_comes_to_nothing_leaves_no_run(
    console: Cli, monkeypatch: pytest.MonkeyPatch, kind_name: str, end: str
) -> None:
    before = tree()
    with monkeypatch.context() as patch:
        ending(patch, ENDS[end])
        said = console(*ASKED[kind_name])
        assert (1 if end == "the only model" else 130) == said.code
        assert before == tree()
    assert end != "Ctrl-C" or "Nothing was stored" in said.err
    assert 0 == console(*ASKED[kind_name], "--dry-run").code
    assert before == tree()
    assert 0 == console(*ASKED[kind_name]).code
    real = find_run(None)
    there = tree()
    with monkeypatch.context() as patch:
        ending(patch, ENDS[end])
        console(*ASKED[kind_name], "--set", "articles=as-printed", "--out", "biaskit-runs/new/er")
    assert there == tree()
    assert real == find_run(None)


@pytest.mark.parametrize("kind_name", ASKED)
def test_a_folder_that_was_there_keeps_what_was_in_it(
    console: Cli, monkeypatch: pytest.MonkeyPatch, kind_name: str
) -> None:
    answer = {"contains": "", "log_probs": {" He": -0.5}, "else": -9, "texts": ["He is."]}
    write_script(Path("n.jsonl"), answer)
    Path("r").mkdir()
    Path("r/notes.txt").write_text("mine")
    empty = tree()
    with monkeypatch.context() as patch:
        ending(patch, ENDS["declined"])
        assert 130 == console(*ASKED[kind_name], "--out", "r").code
    assert empty == tree()
    assert 0 == console(*ASKED[kind_name], "--out", "r").code
    run = tree()
    with monkeypatch.context() as patch:
        ending(patch, ENDS["declined"])
        assert 130 == console(*ASKED[kind_name], "b=scripted:n.jsonl", "--out", "r").code
    changed = {name for name, content in tree().items() if run.get(name) != content}
    assert changed <= {"r/.lock"}, "the manifest names no model that was declined"


def test_what_may_have_been_spent_stays_written_down(console: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def planned(self: TerminalWatcher, *_: Any, **__: Any) -> None:
        promise(Path("r"), "a", 0.0, 0.5)
        raise KeyboardInterrupt

    monkeypatch.setattr(TerminalWatcher, "planned", planned)
    assert 130 == console(*ASKED["probe"], "--out", "r").code
    assert 0.5 == json.loads(Path("r/usage.json").read_text())["a"]["promised"]
    assert Path("r/manifest.json").exists()


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_at_the_question_leaves_no_run(number: signal.Signals) -> None:
    """At a real terminal, where the plan waits for a yes."""
    import pty

    slow = "import sys; from biaskit.cli import terminal, main; terminal.LONG_RUN_S = -1; main()"
    lead, follow = pty.openpty()
    root = str(Path(biaskit.__file__).parents[1])
    before = tree()
    with subprocess.Popen(
        [sys.executable, "-c", slow, *ASKED["probe"]],
        env={**os.environ, "PYTHONPATH": root},
        stdin=follow,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr is not None
        said = b""
        while b"Type yes" not in said:
            said += (more := process.stderr.read(1))
            assert more, said
        process.send_signal(number)
        process.wait(60)
    os.close(lead)
    os.close(follow)
    assert 130 == process.returncode
    assert before == tree()
