"""Where commands write: every command that writes x every place it must not write to.

The oracle is one: exit code 1 or 2, one line, no traceback, and everything that lay there lies there still.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.command import Cli

from biaskit.common import files
from biaskit.measures.personas.own_texts import analyze_texts
from biaskit.measures.probe.command import probe
from biaskit.progress import Silent
from biaskit.workflow.report import report

FOREIGN = b'{"key": "somebody else\'s", "text": "no line end'


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of one study, a run of texts that can be calibrated, and a page."""
    home = tmp_path_factory.mktemp("home")
    with contextlib.chdir(home):
        Path("m.jsonl").write_text('{"log_probs": {" He": -0.6, " She": -2.0}, "texts": ["She works."]}\n')
        small: dict[str, Any] = {"study": "gasp-occupations", "templates": "1-2", "watcher": Silent()}
        for name in ("one", "two"):
            probe(f"{name}=scripted:m.jsonl", jobs="nurse,cook", out=name, **small)
        texts = {
            "text": [f"{who} works as a {job}, {i} years." for i, who, job in itertools.product(
                range(4), ("She", "He"), ("nurse", "cook"))],
            "sex": ["F", "F", "M", "M"] * 4,
        }  # fmt: skip
        analyze_texts(
            texts, gender="sex", out="texts", watcher=Silent(), settings={"vectors": "marked-lists"}
        )
        Path("mine.csv").write_text("text\nShe works.\nHe works.\n")
        report("one", out="page.html", watcher=Silent())
    return home


@pytest.fixture
def here(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(home, tmp_path / "home", symlinks=True)
    monkeypatch.chdir(tmp_path / "home")
    return tmp_path


def everything(folder: Path) -> dict[str, bytes | str]:
    """Every file with its content, every link with where it leads, every folder."""
    found: dict[str, bytes | str] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        found[name] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else ""
    return found


def refused(cli: Cli, here: Path, *command: str) -> str:
    before = everything(here)
    said = cli(*command)
    assert said.code in (1, 2), said.out
    assert 1 == said.err.count("\n"), said.err
    assert said.err.startswith("biaskit: ")
    assert "Traceback" not in said.err
    assert before == everything(here)
    return said.err


# --- folders of runs ---------------------------------------------------------------------------------------

RUNS: dict[str, tuple[str, ...]] = {
    "probe": ("probe", "m=scripted:m.jsonl", "--jobs", "nurse", "--study", "gasp-occupations"),
    "personas": ("personas", "m=scripted:m.jsonl", "--occupations", "nurse", "--per-gender", "1"),
    "plan": ("probe", "m=scripted:m.jsonl", "--jobs", "nurse", "--dry-run"),
    "import": ("analyze", "--texts", "mine.csv"),
    "recorded": ("analyze", "recorded:demo-base"),
    "merge": ("analyze", "one", "two"),
    "compare": ("compare", "one", "two"),
}
"""Commands whose --out is a folder."""


def in_folder(name: str, content: bytes = FOREIGN) -> Callable[[], str]:
    def make() -> str:
        path = Path("out", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return "out"

    return make


def linked(name: str, *, run: bool, dangling: bool = False, folder: bool = False) -> Callable[[], str]:
    """A run of ours, or a new folder, in which one name leads to somebody else's file or folder."""

    def make() -> str:
        if run:
            shutil.copytree("one", "out")
        else:
            Path("out").mkdir()
        place, other = Path("out", name), Path("..", "elsewhere").absolute()
        if place.is_dir():
            shutil.rmtree(place)
        place.unlink(missing_ok=True)
        if folder:
            other.mkdir()
            (other / "tests.csv").write_bytes(FOREIGN)
        elif not dangling:
            other.write_bytes(FOREIGN)
        place.symlink_to(other)
        return "out"

    return make


def a_file() -> str:
    Path("out").write_bytes(FOREIGN)
    return "out"


def below_a_file() -> str:
    Path("out").write_bytes(FOREIGN)
    return "out/run"


def a_fifo() -> str:
    os.mkfifo("out")
    return "out"


FOLDERS: dict[str, Callable[[], str]] = {
    **{f"foreign {name}": in_folder(name) for name in ("probe.jsonl", "tables/tests.csv", "manifest.json")},
    "a manifest of another program": in_folder("manifest.json", b'{"format": 1, "layers": []}'),
    "rows of a run are a link": linked("probe.jsonl", run=True),
    "notes of a run are a link": linked("notes.txt", run=True),
    "tables of a run are a link to a folder": linked("tables", run=True, folder=True),
    "rows lead nowhere": linked("probe.jsonl", run=False, dangling=True),
    "a file": a_file,
    "below a file": below_a_file,
    "a fifo": a_fifo,
    "the rows of a run": lambda: "one/probe.jsonl",
}


@pytest.mark.parametrize(
    ("command", "place"),
    [(c, p) for c in RUNS for p in FOLDERS if (c, p) != ("plan", "below a file")],  # which writes nothing
)
def test_a_run_is_written_to_no_place_of_somebody_else(
    console: Cli, here: Path, command: str, place: str
) -> None:
    out = FOLDERS[place]()
    said = refused(console, here, *RUNS[command], "--out", out)
    assert "out" in said or out in said or out[:20] in said


@pytest.mark.parametrize("command", [name for name in RUNS if name != "compare"])
def test_the_folder_of_another_measurement_or_a_comparison_is_left_alone(
    console: Cli, here: Path, command: str
) -> None:
    other = "texts" if command in ("probe", "plan", "merge") else "one"
    refused(console, here, *RUNS[command], "--out", other)
    assert 0 == console("compare", "one", "two", "--out", "both").code
    refused(console, here, *RUNS[command], "--out", "both")


# --- pages and study files -----------------------------------------------------------------------------

PAGES: dict[str, tuple[str, ...]] = {
    "report": ("report", "one"),
    "report of two": ("report", "one", "two"),
    "calibrate": ("calibrate", "texts"),
}
"""Commands whose --out is a file."""


def file_of(name: str, content: bytes = FOREIGN) -> Callable[[], str]:
    def make() -> str:
        Path(name).write_bytes(content)
        return name

    return make


def link_to(name: str, to: str) -> Callable[[], str]:
    def make() -> str:
        Path(name).symlink_to(to)
        return name

    return make


def folder_of(name: str) -> Callable[[], str]:
    def make() -> str:
        Path(name).mkdir()
        return f"{name}/"

    return make


PLACES: dict[str, Callable[[], str]] = {
    **{name: lambda name=name: name for name in (  # type: ignore[misc]
        "one/probe.jsonl", "one/tables/new.csv", "one", "-", "/dev/null", "mine.csv", "out",
    )},
    **{f"foreign{suffix}": file_of(f"foreign{suffix}") for suffix in (".html", ".toml")},
    "a page of another program": file_of("out.html", b"<!doctype html>\n<html><title>biaskit</title></html>"),
    "a study of one's own": file_of(
        "out.toml", b'name = "s"\nmeasurement = "personas"\nsummary = "s"\nalpha = 1\nc = 1'),
    **{f"{kind} link to our page": link_to(f"link{kind}", "page.html") for kind in (".html", ".toml")},
    **{f"folder{kind}": folder_of(f"folder{kind}") for kind in (".html", ".toml")},
    **{f"below a file{kind}": lambda kind=kind: f"mine.csv/out{kind}" for kind in (".html", ".toml")},  # type: ignore[misc]
}  # fmt: skip


@pytest.mark.parametrize(
    ("command", "place"),
    list(itertools.product(PAGES, PLACES)),
)
def test_a_page_and_a_study_file_replace_nothing_of_another_kind(
    console: Cli, here: Path, command: str, place: str
) -> None:
    refused(console, here, *PAGES[command], "--out", PLACES[place]())


@pytest.mark.parametrize(
    ("name", "command"),
    [
        *((name, "report") for name in ("report.html", "figures", "latex")),
        *((name, "analyze") for name in ("tables",)),
        *((name, "calibrate") for name in ("tables", "calibrated.toml")),
    ],
)
@pytest.mark.parametrize("dangling", [False, True])
def test_what_a_run_has_beside_its_rows_is_no_link(
    console: Cli, here: Path, name: str, command: str, dangling: bool
) -> None:
    run = Path("texts" if command == "calibrate" else "one")
    other = here / "elsewhere"
    if (run / name).is_dir():
        shutil.move(run / name, other)
    elif not dangling and Path(name).suffix:
        other.write_bytes(Path("page.html").read_bytes())
    elif not dangling:
        other.mkdir()
    if dangling and other.exists():
        shutil.rmtree(other)
    (run / name).symlink_to(other)
    refused(console, here, command, str(run))


# --- what goes on as ever --------------------------------------------------------------------------------


def test_every_figure_and_table_is_written_again_and_what_was_changed_is_kept(
    console: Cli, here: Path
) -> None:
    Path("one/figures/mine.svg").write_bytes(FOREIGN)
    changed = Path("one/figures/groups.svg").read_bytes() + b"<!-- mine -->"
    Path("one/figures/groups.svg").write_bytes(changed)
    Path("one/latex/all-tables.tex").unlink()
    whole = everything(Path("one"))
    said = console("report", "one", "--out", "page.html")
    assert 0 == said.code
    assert "groups.svg was edited and is kept as groups.svg.changed-1" in said.err
    after = everything(Path("one"))
    assert {"figures/groups.svg.changed-1", "latex/all-tables.tex"} == after.keys() - whole.keys()
    assert changed == after["figures/groups.svg.changed-1"]
    assert {"figures/groups.svg"} == {name for name in whole if whole[name] != after[name]}
    assert 0 == console("report", "one", "--out", "page.html").code
    assert after == everything(Path("one"))


@pytest.mark.parametrize("name", ["../../page.html", "../manifest.json", "notes.txt"])
def test_a_record_from_elsewhere_removes_no_other_file(console: Cli, here: Path, name: str) -> None:
    target = Path("one/figures") / name
    if not target.exists():
        target.write_bytes(FOREIGN)
    content = target.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    record = Path("one/figures/.biaskit.json")
    stored = json.loads(record.read_bytes())["files"]
    record.write_bytes(files._as_record({"files": {**stored, name: digest}}))
    assert 0 == console("report", "one", "--out", "page.html").code
    assert content == target.read_bytes()


@pytest.mark.parametrize("command", ["probe", "import", "merge", "compare"])
def test_new_empty_and_unrelated_folders_take_a_run_and_the_command_goes_on(
    console: Cli, here: Path, command: str
) -> None:
    Path("empty").mkdir()
    Path("project").mkdir()
    for name in ("README.md", "data.csv", "script.py", "settings.json"):
        Path("project", name).write_bytes(FOREIGN)
    Path("link").symlink_to("empty-2")
    Path("empty-2").mkdir()
    for out in ("new", "deep/new", "empty", "project", "link"):
        for _ in range(2):
            said = console(*RUNS[command], "--out", out)
            assert 0 == said.code, said.err
        assert Path(out, "manifest.json").is_file()
    assert FOREIGN == Path("project/settings.json").read_bytes()


def test_nothing_temporary_stays_after_a_kill_and_the_next_command(console: Cli, here: Path) -> None:
    folders = [Path("one", name) for name in ("tables", "figures", "latex")]
    left = [folder / f".x.json.biaskit-abcd1234.{kind}" for folder in folders for kind in ("tmp", "set")]
    stranger = Path("one/.x.json.abcd1234.tmp")
    for path in (*left, stranger):
        path.write_bytes(FOREIGN)
    same = ("--study", "gasp-occupations", "--templates", "1-2", "--jobs", "nurse,cook", "--out", "one")
    for command in (("probe", "one=scripted:m.jsonl", *same), ("analyze", "one"), ("report", "one")):
        assert 0 == console(*command).code
    assert [] == [path for path in left if path.exists()]
    assert stranger.exists()
