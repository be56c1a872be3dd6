"""Run folders that a person can type: the same question finds its folder, two questions never meet in one."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from fakes.command import Cli, Said

from biaskit.runs import folder as folders
from biaskit.runs.folder import folder_name, run_folder
from biaskit.runs.shards import Shard

PARENT = Path("biaskit-runs")
NURSE, PLUMBER = ("--jobs", "nurse", "--templates", "1"), ("--jobs", "plumber", "--templates", "1")


@pytest.fixture(autouse=True)
def here(quick_folder: Path) -> Path:
    Path("m.jsonl").write_text('{"log_probs": {" He": -0.6, " She": -2.0}, "texts": ["She works."]}\n')
    return quick_folder


def names() -> list[str]:
    return sorted(path.name for path in PARENT.iterdir()) if PARENT.exists() else []


def asked(said: Said) -> list[int]:
    return [int(n) for n in re.findall(r"([0-9]+) to run", said.err)]


@pytest.mark.parametrize(
    ("study", "labels", "name"),
    [
        ("occugender", ["demo"], "occugender-demo"),
        ("occugender", ["demo", "demo-base"], "occugender-demo-demo-base"),
        ("gasp-pilot", ["hf:Qwen/Qwen2.5-0.5B-Instruct@main"], "gasp-pilot-Qwen2.5-0.5B-Instruct"),
        ("occugender", ["hf:./models/mine/"], "occugender-mine"),
        ("occugender", ["hf:C:\\models\\mine"], "occugender-mine"),
        ("occugender", ["api:meta/llama@http://127.0.0.1:8000/v1,http://b/v1"], "occugender-llama"),
        ("occugender", ["scripted:m.jsonl"], "occugender-m"),
        ("occugender", ["a b/c:d"], "occugender-c-d"),
        ("occugender", ["日本", "..", "x"], "occugender-x"),
        ("occugender", list("abcd"), "occugender-a-b-and-2-more"),
        ("con.x", ["demo"], "x-con.x-demo"),
        ("", ["nul"], "x-nul"),
        ("s" * 70, ["demo"], "s" * 60),
        ("s" * 59 + "..", ["demo"], "s" * 59),
    ],
    ids=ascii,
)
def test_a_name_is_study_and_models_and_a_file_name_on_every_system(
    study: str, labels: list[str], name: str
) -> None:
    made = folder_name(study, labels)
    assert made == name
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.-]*[A-Za-z0-9]", made)
    assert not re.fullmatch(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?", made)


def test_the_same_command_finds_its_run_and_another_gets_a_digest(console: Cli) -> None:
    def ask(*options: str) -> Said:
        said = console("probe", "m=scripted:m.jsonl", *options)
        assert 0 == said.code, said.err
        return said

    planned = ask(*NURSE, "--dry-run")
    assert "Run folder: biaskit-runs/occugender-m\n" in planned.out
    assert not PARENT.exists()
    ask(*NURSE)
    assert ["occugender-m"] == names()
    first = {path: path.read_bytes() for path in PARENT.rglob("*") if path.is_file()}
    planned = ask(*PLUMBER, "--dry-run")
    ask(*PLUMBER)
    plain, other = names()
    assert re.fullmatch("occugender-m-[0-9a-f]{8}", other)
    assert f"Run folder: {PARENT / other}\n" in planned.out
    assert first == {path: path.read_bytes() for path in first}
    assert ([0], [0]) == (asked(ask(*NURSE)), asked(ask(*PLUMBER)))
    assert [plain, other] == names()
    # A run that is removed frees its name; the other one keeps its own.
    for path in sorted((PARENT / plain).rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (PARENT / plain).rmdir()
    assert [0] == asked(ask(*PLUMBER))
    assert [other] == names()


def test_a_folder_of_somebody_else_keeps_its_name(console: Cli) -> None:
    (PARENT / "occugender-m").mkdir(parents=True)
    (PARENT / "occugender-m" / "mine.txt").write_text("mine")
    assert 0 == console("probe", "m=scripted:m.jsonl", *NURSE).code
    assert ["mine.txt"] == [path.name for path in (PARENT / "occugender-m").iterdir()]
    assert 2 == len(names())


@pytest.mark.parametrize(
    "command",
    [
        ("probe", "m=hf:./nowhere", *NURSE),
        ("probe", "m=scripted:fails.jsonl", *NURSE, "--set", "lock=what"),
        ("personas", "m=scripted:nowhere.jsonl"),
        ("compare", "nowhere"),
        ("analyze", "--texts", "nowhere.csv"),
    ],
)
def test_a_start_that_stores_nothing_leaves_no_name(console: Cli, command: tuple[str, ...]) -> None:
    assert console(*command).code in (1, 2)
    assert not PARENT.exists()


def test_comparisons_texts_and_recordings_have_names_too(console: Cli) -> None:
    for label in ("one", "two"):
        assert 0 == console("probe", f"{label}=scripted:m.jsonl", *NURSE).code
    runs = [str(PARENT / f"occugender-{label}") for label in ("one", "two")]
    Path("mine.csv").write_text("text\nShe works.\nHe works.\n")
    for _ in range(2):  # the same again is the same folder
        assert 0 == console("compare", *runs).code
        assert 0 == console("analyze", "--texts", "mine.csv").code
        assert ["compare-one-two", "occugender-one", "occugender-two", "texts-mine"] == names()
    assert 0 == console("compare", *runs, "--set", "margin.share=0.1").code
    assert re.fullmatch("compare-one-two-[0-9a-f]{8}", names()[1])


def test_starts_at_the_same_time_never_meet() -> None:
    ready, chosen = threading.Barrier(8), list[tuple[int, Path]]()

    def start(n: int) -> None:
        ready.wait()
        with run_folder("study", ["m"], n) as run:
            (run / "manifest.json").parent.mkdir(parents=True, exist_ok=True)
            (run / f"row-{n}").write_text(str(n))
            chosen.append((n, run))
            ready.wait()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(start, range(8)))
    assert 8 == len({run for _, run in chosen}) == len(names())
    assert [f"row-{n}" for n, run in chosen] == [
        path.name for _, run in chosen for path in run.iterdir() if path.name != folders.CLAIM
    ]
    for n, run in chosen:
        with run_folder("study", ["m"], n, dry_run=True) as again:
            assert run == again


def test_what_a_killed_start_left_is_its_own_alone() -> None:
    with suppress(ZeroDivisionError), run_folder("study", ["m"], "one") as run:
        (run / "usage.json").write_text("{}")  # a start that may have spent something keeps its name
        raise ZeroDivisionError
    with run_folder("study", ["m"], "one") as again, run_folder("study", ["m"], "two") as other:
        assert (run, f"{run}-") == (again, str(other)[: len(str(run)) + 1])


def test_shards_have_a_digest_since_several_machines_name_them() -> None:
    for n in (1, 2):
        with run_folder("study", ["m"], "asked", shard=Shard(n, 2)) as of_all:
            assert re.fullmatch("study-m-[0-9a-f]{8}", of_all.name)
            assert not of_all.exists()
    of_all.mkdir(parents=True)  # once they are put together
    with run_folder("study", ["m"], "asked") as whole:
        assert whole == of_all
