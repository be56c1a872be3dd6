"""A run in parts: what each asks, what its folder says, and that together they are the unbroken run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fakes.command import Cli
from fakes.killed import Command
from fakes.run_files import one_line, tables
from fakes.run_files import rows_by_key as rows

import biaskit as bk
from biaskit.errors import UsageError
from biaskit.runs.shards import Shard, read_shard

NURSE = {"contains": "nurse", "log_probs": {" She": -0.5, " she": -1.5, " He": -2.0, " They": -4.0}}
OTHERS = {"log_probs": {" He": -0.6, " She": -2.5, " They": -3.0, " he": -3.5, " her": -4.0}}
PROBE = ("probe", "m=scripted:m.jsonl", "--jobs", "1-7", "--templates", "1-3", "--batch-size", "4")
N_PROMPTS = 7 * (3 + 3)
WOMAN = "She is a {} who grew up in a small town and her friends like her careful hands. {}"
MAN = "He is a {} who grew up in a big city and his friends like him for his loud voice. {}"
PERSONAS = (
    *("personas", "m=scripted:t.jsonl", "--occupations", "mechanic,nurse,cook,teacher"),
    *("--per-gender", "6", "--batch-size", "4", "--set", "permutations=19", "--set", "srb_seeds=1"),
    *("--set", "clusters=false"),
)


@pytest.fixture(autouse=True)
def folder(quick_folder: Path) -> Path:
    """A folder with a scripted model of each measurement."""
    write("m.jsonl", [NURSE, OTHERS])
    write("t.jsonl", [{"contains": "nurse", "texts": texts("nurse", 6)}, {"texts": texts("person", 2)}])
    return quick_folder


def write(name: str, lines: Sequence[dict[str, Any]]) -> None:
    Path(name).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def texts(job: str, every: int) -> list[str]:
    """One of `every` is about a man."""
    return [(MAN if i % every == 1 else WOMAN).format(job, f"word{i}") for i in range(120)]


def shards(cli: Cli, command: Sequence[str], n: int) -> list[str]:
    """The folders of all shards, each made."""
    folders = [f"s{number}" for number in range(1, n + 1)]
    for number, out in enumerate(folders, start=1):
        said = cli(*command, "--shard", f"{number}/{n}", "--out", out)
        assert 0 == said.code, said.err
    return folders


# --- what a shard is ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 2, 5, 7, 8, 100])
@pytest.mark.parametrize("of", [1, 2, 3, 7, 9])
def test_shards_are_a_partition(n: int, of: int) -> None:
    places = [place for number in range(1, of + 1) for place in Shard(number, of).places(n)]
    assert list(range(n)) == sorted(places)


@pytest.mark.parametrize(
    "text", ["0/3", "4/3", "1/0", "x", "", "1", "1/2/3", "-1/3", "1.0/3", "١/٣", "1/3 x"]
)
def test_what_is_no_shard_is_refused_in_a_line(text: str, cli: Cli) -> None:
    with pytest.raises(UsageError, match="I/N"):
        read_shard(text)
    said = cli(*PROBE, "--shard", text, "--out", "r")
    assert 2 == said.code
    assert "such as 2/8" in one_line(said)
    assert not Path("r").exists()


# --- a shard's own run --------------------------------------------------------------------------------------


def test_a_shard_plans_asks_and_counts_its_own_cells(cli: Cli) -> None:
    said = cli(*PROBE, "--shard", "2/4", "--dry-run")
    n = len(Shard(2, 4).places(N_PROMPTS))
    assert f"m: {n} prompts, 0 stored, {n} to run" in said.err
    said = cli(*PROBE, "--shard", "2/4")
    [run] = Path("biaskit-runs").iterdir()
    assert run.name.endswith("-shard-2-of-4")
    assert n == len(rows(str(run), "probe.jsonl"))
    shown = " ".join(said.err.split())
    whole = str(run).removesuffix("-shard-2-of-4")
    assert f"{run} is shard 2 of 4: its rows are stored; a shard has no tables." in shown
    assert f"biaskit analyze {whole}-shard-*-of-4 --out {whole}." in shown
    assert [2, 4] == json.loads((run / "manifest.json").read_text())["shard"]
    [listed] = json.loads(cli("runs", "--format", "json").out)
    assert (n, n) == (listed["rows"], listed["planned"])


def test_the_texts_of_an_occupation_stay_in_one_shard(cli: Cli) -> None:
    seen = []
    for folder in shards(cli, PERSONAS, 3):
        seen.append({row["occupation"] for row in rows(folder, "personas.jsonl").values()})
        assert not Path(folder, "tables").exists()
    assert [1, 1, 2] == sorted(map(len, seen))
    assert {"nurse", "mechanic", "cook", "teacher"} == set.union(*seen)


def test_a_shard_makes_no_tables_by_any_way(cli: Cli) -> None:
    shards(cli, PROBE, 2)
    for command in (("analyze", "s1"), ("report", "s1"), ("compare", "s1", "s2")):
        said = cli(*command)
        assert 1 == said.code, command
        assert "s1 is shard 1 of 2, which has no tables" in one_line(said)
    with pytest.raises(bk.BiaskitError, match="shard 1 of 2"):
        bk.load("s1", watcher=bk.Silent())


@pytest.mark.parametrize("other", ["2/2", "1/3", None])
def test_a_folder_holds_one_shard(cli: Cli, other: str | None) -> None:
    assert 0 == cli(*PROBE, "--shard", "1/2", "--out", "r").code
    before = Path("r/manifest.json").read_bytes()
    said = cli(*PROBE, "--out", "r", *(("--shard", other) if other else ()))
    assert 1 == said.code
    assert "r is shard 1 of 2, but this command runs" in one_line(said)
    assert before == Path("r/manifest.json").read_bytes()


# --- together -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "name", "n"), [(PROBE, "probe.jsonl", 4), (PERSONAS, "personas.jsonl", 3)]
)
def test_shards_together_are_the_unbroken_run(cli: Cli, command: Sequence[str], name: str, n: int) -> None:
    assert 0 == cli(*command, "--out", "unbroken").code
    folders = shards(cli, command, n)
    # In any order, and once more into the same folder.
    for order in (folders, folders[::-1]):
        said = cli("analyze", *order, "--out", "merged")
        assert 0 == said.code, said.err
        assert rows("unbroken", name) == rows("merged", name)
        assert tables("unbroken") == tables("merged")
    # The whole run's command goes on with it, and finds nothing to ask.
    said = cli(*command, "--out", "merged")
    assert 0 == said.code
    assert rows("unbroken", name) == rows("merged", name)


def test_a_missing_shard_is_named_and_the_whole_command_asks_the_rest(cli: Cli) -> None:
    shards(cli, PROBE, 3)
    said = cli("analyze", "s1", "s3", "--out", "merged")
    assert 0 == said.code
    assert "Of 3 shards these are not given: 2" in " ".join(said.err.split())
    assert f"{N_PROMPTS // 3} of {N_PROMPTS} prompts have no share" in " ".join(said.out.split())
    assert 0 == cli(*PROBE, "--out", "merged").code
    assert 0 == cli(*PROBE, "--out", "unbroken").code
    assert tables("unbroken") == tables("merged")


def test_shards_of_two_questions_or_models_are_refused(cli: Cli) -> None:
    shards(cli, PROBE, 2)
    assert 0 == cli(*PROBE, "--set", "articles=grammatical", "--shard", "2/2", "--out", "other").code
    said = cli("analyze", "s1", "other", "--out", "merged")
    assert (1, True) == (said.code, "articles" in one_line(said))
    write("m.jsonl", [OTHERS])
    assert 0 == cli(*PROBE, "--shard", "2/2", "--out", "third").code
    said = cli("analyze", "s1", "third", "--out", "merged")
    assert (1, True) == (said.code, "another model" in one_line(said))


# --- killed and resumed -------------------------------------------------------------------------------------


LONG_PROBE = ("probe", "m=scripted:m.jsonl", "--jobs", "1-20", "--batch-size", "4")


@pytest.mark.process
@pytest.mark.parametrize(
    ("command", "name"),
    [(LONG_PROBE, "probe.jsonl"), (PERSONAS, "personas.jsonl")],
    ids=["probe", "personas"],
)
def test_three_shards_each_killed_and_resumed_are_the_unbroken_run(
    command: Sequence[str], name: str, cli: Cli, folder: Path
) -> None:
    kind_name, *arguments = command
    whole = Command(kind_name, tuple(arguments), folder)
    whole.finish("unbroken")
    for number in (1, 2, 3):
        out = f"s{number}"
        shard = Command(kind_name, (*arguments, "--shard", f"{number}/3"), folder)
        assert shard.kill_at(out, 5, 0.0)[0], "the run ended before its kill"
        kept = shard.kept(out)
        assert len(kept) < len(whole.kept("unbroken")) // 3 - 4
        shard.finish(out)
        assert kept == shard.kept(out)[: len(kept)]
    said = cli("analyze", "s1", "s2", "s3", "--out", "merged")
    assert 0 == said.code, said.err
    assert rows("unbroken", name) == rows("merged", name)
    assert tables("unbroken") == tables("merged")
