"""No answer is paid for twice: what another run of the folder has is taken over (`runs/reuse.py`)."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.api_server import ApiServer, Behaviour
from fakes.command import Cli, Said
from fakes.personas_runs import write_script, write_vectors
from fakes.run_files import csv_tables as tables

import biaskit

pytestmark = pytest.mark.reuse

KIND_NAMES = ("probe", "personas")
ROWS = {"probe": "probe.jsonl", "personas": "personas.jsonl"}
ITEMS = {"probe": "--jobs", "personas": "--occupations"}
QUICK = {
    "probe": ("--templates", "1-2"),
    "personas": (
        *("--per-gender", "3", "--max-samples", "9", "--max-new-tokens", "60"),
        *("--set", "permutations=19", "--set", "clusters=false", "--set", "vectors=pretrained:vectors.txt"),
    ),
}
FEW, MORE = "nurse,mechanic", "nurse,mechanic,cook"
PROBED, PROBED_MORE = "nurse,plumber", "nurse,plumber,carpenter"


@pytest.fixture(autouse=True)
def folder(quick_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in list(os.environ):
        if name.startswith("OPENAI_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    write_vectors(Path("vectors.txt"))
    texts = ["She said her day was good.", "He said his day was good.", "The day was good."]
    write_script(Path("m.jsonl"), {"contains": "", "log_probs": {" She": -0.5}, "else": -9, "texts": texts})
    return quick_folder


def words(kind_name: str, *, more: bool, model: str = "a=scripted:m.jsonl") -> tuple[str, ...]:
    items = (PROBED_MORE if more else PROBED) if kind_name == "probe" else MORE if more else FEW
    return (kind_name, model, ITEMS[kind_name], items, *QUICK[kind_name])


def rows_of(run: str | Path, kind_name: str) -> dict[str, dict[str, Any]]:
    lines = (Path(run) / ROWS[kind_name]).read_text("ascii").splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == len({row["key"] for row in rows}), "a key stands twice"
    return {row["key"]: row for row in rows}


def bare(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ("model", "sum")}


def taken(said: Said) -> tuple[int, ...]:
    """Stored, taken over and to ask at least, as the plan says."""
    (line,) = [line for line in said.err.splitlines() if " to run" in line]
    found = [re.search(rf"([\d,]+)(?: to [\d,]+)? {what}", line) for what in ("stored", "reused")]
    to_ask = re.search(r"([\d,]+)(?: to [\d,]+)? to run", line)
    return tuple(int(one[1].replace(",", "")) if one else 0 for one in (*found, to_ask))


@pytest.mark.parametrize("kind_name", KIND_NAMES)
def test_a_longer_list_under_another_label_asks_only_what_is_new(console: Cli, kind_name: str) -> None:
    assert 0 == console(*words(kind_name, more=False), "--out", "r/first").code
    first = rows_of("r/first", kind_name)
    dry = console(*words(kind_name, more=True, model="b=scripted:m.jsonl"), "--out", "r/second", "--dry-run")
    assert not Path("r/second").exists()
    said = console(*words(kind_name, more=True, model="b=scripted:m.jsonl"), "--out", "r/second")
    assert 0 == said.code, said.err
    stored, over, to_ask = taken(said)
    assert (0, len(first)) == (stored, over)
    assert taken(dry) == taken(said)
    assert f"{over:,} reused from first" in said.err
    second = rows_of("r/second", kind_name)
    assert {"b"} == {row["model"] for row in second.values()}
    assert to_ask <= len(second) - len(first)
    assert [bare(row) for row in first.values()] == [bare(second[key]) for key in first]
    assert len(second) - len(first) == json.loads(Path("r/second/usage.json").read_text())["b"]["rows"]
    # An unbroken run of its own has the same tables.
    assert (
        0
        == console(
            *words(kind_name, more=True, model="b=scripted:m.jsonl"), "--out", "r/third", "--no-reuse"
        ).code
    )
    assert tables("r/third") == tables("r/second")
    assert first.keys() < rows_of("r/third", kind_name).keys()
    assert all(
        rows_of("r/third", kind_name)[key]["answered_at"] >= first[key]["answered_at"] for key in first
    )


def damage_manifest(run: Path, kind_name: str) -> None:
    (run / "manifest.json").write_text("{")


def damage_gzip(run: Path, kind_name: str) -> None:
    plain = run / ROWS[kind_name]
    plain.with_name(plain.name + ".gz").write_bytes(gzip.compress(plain.read_bytes())[:-20])
    plain.unlink()


def imported(run: Path, kind_name: str) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["resolved"]["imported"] = {"source": "texts.csv", "digest": "0"}
    (run / "manifest.json").write_text(json.dumps(manifest))


UNUSABLE = {
    damage_manifest: "no answers are reused from",
    damage_gzip: "no answers are reused from",
    imported: "",
}


@pytest.mark.parametrize("kind_name", KIND_NAMES)
@pytest.mark.parametrize("damage", UNUSABLE, ids=lambda damage: damage.__name__)
def test_a_run_that_cannot_be_used_is_passed_by(
    console: Cli, kind_name: str, damage: Callable[[Path, str], None]
) -> None:
    assert 0 == console(*words(kind_name, more=False), "--out", "r/first").code
    n = len(rows_of("r/first", kind_name))
    damage(Path("r/first"), kind_name)
    before = {path.name: path.read_bytes() for path in Path("r/first").iterdir() if path.is_file()}
    said = console(*words(kind_name, more=True), "--out", "r/second")
    assert 0 == said.code, said.err
    assert 0 == taken(said)[1]
    assert len(rows_of("r/second", kind_name)) > n
    assert UNUSABLE[damage] in said.out
    assert before == {path.name: path.read_bytes() for path in Path("r/first").iterdir() if path.is_file()}


KILL = """
import os, signal, sys
from biaskit.runs import store
store.ROWS_AT_ONCE = 2
real, left = store.RowWriter.append, [3]
def append(self, rows):
    if not left[0]:
        self._file.write(b'{"key":"0123')
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
    real(self, rows)
store.RowWriter.append = append
from biaskit.cli import main
sys.argv[0] = "biaskit"
main()
"""


@pytest.mark.process
@pytest.mark.parametrize("kind_name", KIND_NAMES)
def test_a_kill_while_rows_are_taken_over_loses_nothing(console: Cli, kind_name: str) -> None:
    assert 0 == console(*words(kind_name, more=False), "--out", "r/first").code
    asked = [*words(kind_name, more=True, model="b=scripted:m.jsonl"), "--out", "r/second"]
    root = str(Path(biaskit.__file__).parents[1])
    killed = subprocess.run(
        [sys.executable, "-c", KILL, *asked], env={**os.environ, "PYTHONPATH": root}, capture_output=True
    )
    assert -signal.SIGKILL == killed.returncode, killed.stderr
    said = console(*asked)
    assert 0 == said.code, said.err
    stored, over, _ = taken(said)
    first = rows_of("r/first", kind_name)
    assert (6, len(first) - 6) == (stored, over)
    assert 0 == console(*asked[:-1], "r/third", "--no-reuse").code
    assert tables("r/third") == tables("r/second")


def asked_again(server: ApiServer, rows: dict[str, dict[str, Any]]) -> int:
    """Requests of the run's questions that these rows answer already; its first checks ask others."""
    sent = " ".join(json.dumps(one.body) for one in server.requests if one.generates)
    prompts = {row["prompt"] for row in rows.values()}
    said = [json.loads(text)[0]["content"] if text.startswith("[{") else text for text in prompts]
    return sum(json.dumps(text)[1:-1] in sent for text in said)


API = {
    "probe": ("--bias-type", "implicit", "--estimator", "top-k"),
    "sampling": ("--bias-type", "implicit", "--estimator", "sampling", "--samples", "4"),
    "personas": (),
}


@pytest.mark.parametrize("how", API)
def test_a_server_is_not_asked_again_and_nothing_is_paid(console: Cli, how: str) -> None:
    kind_name = "personas" if how == "personas" else "probe"
    with ApiServer(behaviour=Behaviour()) as server:
        model, priced = f"toy=api:toy@{server.url}", ("--price", "1000,2000", "--yes", *API[how])
        said = console(*words(kind_name, more=False, model=model), *priced, "--out", "r/first")
        assert 0 == said.code, said.err
        first, paid = rows_of("r/first", kind_name), server.cost(1000, 2000)
        server.requests.clear()
        label = f"other=api:toy@{server.url}"
        said = console(
            *words(kind_name, more=True, model=label), *priced, "--out", "r/second", "--max-cost", "90"
        )
        assert 0 == said.code, said.err
        assert taken(said)[1] > 0
        assert 0 == asked_again(server, first)
        second = rows_of("r/second", kind_name)
        assert [bare(row) for row in first.values()] == [bare(second[key]) for key in first]
        usage = json.loads(Path("r/second/usage.json").read_text())["other"]
        assert usage["cost"] <= server.cost(1000, 2000) - paid + 1e-6
        assert usage["rows"] == len(second) - len(first)
        server.requests.clear()
        said = console(*words(kind_name, more=True, model=label), *priced, "--out", "r/third", "--no-reuse")
        assert 0 == said.code, said.err
        assert asked_again(server, first)


def test_answers_of_another_model_under_the_name_are_not_mixed_in(console: Cli) -> None:
    how = ("--estimator", "top-k", "--bias-type", "implicit")
    behaviour = Behaviour()
    with ApiServer(behaviour=behaviour) as server:
        asked = words("probe", more=False, model=f"toy=api:toy@{server.url}")
        assert 0 == console(*asked, *how, "--out", "r/first").code
        behaviour.answers_as = "toy-2"
        said = console(*asked, *how, "--out", "r/second")
        assert (0, 0) == (said.code, taken(said)[1]), said.err
        said = console(*asked, *how, "--out", "r/third", "--accept-model-change")
        assert 4 == taken(said)[1], said.err
