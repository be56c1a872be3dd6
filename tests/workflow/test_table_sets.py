"""The tables of one analysis are one set: after a kill, an edit or a mixture nobody reads half of two."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.run_files import tables as of

from biaskit.errors import RunError
from biaskit.measures.probe.command import probe
from biaskit.progress import Silent
from biaskit.runs.collection import gather
from biaskit.tables.sets import ANALYSIS, UnfitError, read_set
from biaskit.workflow.analyze import make_fit, rebuild_tables, result_of
from biaskit.workflow.compare import compare

Tables = dict[str, bytes]
MODELS = ("a=scripted:a.jsonl", "b=scripted:b.jsonl")
SMALL: dict[str, Any] = {"study": "gasp-occupations", "templates": "1-2", "watcher": Silent()}


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Tables, Tables]:
    """A run that has grown since its tables were made, with its tables before and after."""
    home = tmp_path_factory.mktemp("grown")
    here = Path.cwd()
    os.chdir(home)
    for name, she in (("a", -0.5), ("b", -1.5)):
        lines = [{"contains": "nurse", "log_probs": {" She": she}}, {"log_probs": {" He": -0.6, " She": -2}}]
        Path(f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "ascii")
    run = probe(*MODELS, jobs="nurse,mechanic", out="run", **SMALL).path.absolute()
    before = of(run)
    probe(*MODELS, jobs="nurse,mechanic,cook", out="run", **SMALL)
    after = of(run)
    assert before.keys() == after.keys()
    assert not [name for name in before if name != ANALYSIS and before[name] == after[name]]
    for name, content in before.items():
        (run / "tables" / name).write_bytes(content)
    os.chdir(here)
    return run, before, after


@pytest.fixture
def grown(states: tuple[Path, Tables, Tables], tmp_path: Path) -> Path:
    return Path(shutil.copytree(states[0], tmp_path / "run"))


# --- kill -9 at every operation on files -----------------------------------------------------------------

OPERATIONS = ("open", "fsync", "chmod", "replace", "rename", "unlink", "mkdir")


def killed_at(n: int, act: Callable[[], object], *, within: Path) -> bool:
    """Act in a child that is killed before its n-th operation on files of a folder; whether it was."""
    opening = os.open
    child = os.fork()
    if child == 0:
        left = n

        def counted(call: Callable[..., Any]) -> Callable[..., Any]:
            def instead(*arguments: Any, **more: Any) -> Any:
                nonlocal left
                # A descriptor has no name; what syncs one here is the writer.
                inside = isinstance(arguments[0], int) or str(arguments[0]).startswith(str(within))
                # What is only read leaves nothing; and every kill leaves one more journal to be read.
                inside = inside and not (call is opening and not arguments[1] & (os.O_WRONLY | os.O_RDWR))
                left -= inside
                if inside and not left:
                    os.kill(os.getpid(), signal.SIGKILL)
                return call(*arguments, **more)

            return instead

        for name in OPERATIONS:
            setattr(os, name, counted(getattr(os, name)))
        status = 1
        try:
            act()
            status = 0
        finally:
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    assert os.WIFSIGNALED(ended) or 0 == os.WEXITSTATUS(ended)
    return os.WIFSIGNALED(ended)


def test_a_kill_at_any_moment_leaves_one_set_or_one_that_tells(
    states: tuple[Path, Tables, Tables], tmp_path: Path
) -> None:
    source, before, after = states
    n, seen = 0, {"before": 0, "after": 0, "unfit": 0}
    killed = True
    while killed:
        n += 1
        run = Path(shutil.copytree(source, tmp_path / "run"))
        killed = killed_at(n, lambda run=run: rebuild_tables(run), within=run / "tables")  # type: ignore[misc]
        left = {name: content for name, content in of(run).items() if name in before}
        try:
            read_set(run)
        except UnfitError:
            assert left not in (before, after)
            seen["unfit"] += 1
        else:
            assert left in (before, after)
            seen["before" if left == before else "after"] += 1
        make_fit([run], Silent())
        read_set(run)
        assert {name: content for name, content in of(run).items() if name in before} in (before, after)
        rebuild_tables(run)
        assert after == of(run), f"killed at {n}: files that stayed, or other tables"
        shutil.rmtree(run)
    assert n > 5 * len(before)
    assert all(seen.values()), seen


def said_of(run: Path) -> str:
    """What is said of tables that do not fit; nothing where they do."""
    try:
        read_set(run)
    except UnfitError as error:
        return str(error)
    return ""


def test_a_comparison_that_was_killed_tells_and_is_made_again(grown: Path, tmp_path: Path) -> None:
    rebuild_tables(grown)
    compare(grown, out=tmp_path / "c", settings={"margin.share": 0.2})
    again = lambda: compare(grown, out=tmp_path / "c", settings={"margin.share": 0.01})  # noqa: E731
    n, unfit = 0, list[str]()
    while killed_at(n := n + 1, again, within=tmp_path / "c" / "tables"):
        unfit += [fault] if (fault := said_of(tmp_path / "c")) else []
    assert unfit
    assert all("rerun the compare command" in fault for fault in unfit)
    assert [ANALYSIS, "changed_prompts.csv", "changes.csv", "tests.csv"] == sorted(of(tmp_path / "c"))
    tests = again().tests.dropna(subset=["margin"])
    of_shares = tests["quantity"].str.endswith("share")
    assert {0.01} == {*tests["margin"][of_shares]}
    assert {0.1} == {*tests["margin"][~of_shares]}  # of gaps, which nobody has set


# --- edited, deleted, foreign ------------------------------------------------------------------------------


def edit(path: Path) -> bytes:
    """As a spreadsheet saves a table: other line ends, and one number rounded."""
    content = path.read_bytes().replace(b"\n", b"\r\n").replace(b"0.5", b"0.9", 1)
    path.write_bytes(content)
    return content


def damages() -> Iterator[tuple[str, Callable[[Path], object]]]:
    yield "edited", lambda tables: edit(tables / "tests.csv")
    yield "deleted", lambda tables: (tables / "probe_groups.csv").unlink()
    yield "emptied", lambda tables: (tables / "probe_prompts.csv").write_bytes(b"")
    yield "torn", lambda tables: (tables / "probe_jobs.csv").write_bytes(b'model,"')
    yield "swapped", lambda tables: shutil.copy(tables / "probe_jobs.csv", tables / "probe_groups.csv")
    yield "in capitals", lambda tables: (tables / "tests.csv").rename(tables / "TESTS.CSV")


@pytest.mark.parametrize(("name", "damage"), damages(), ids=lambda one: one if isinstance(one, str) else "")
def test_a_table_that_is_not_as_written_is_told_by_all_and_made_again(
    grown: Path, name: str, damage: Callable[[Path], object]
) -> None:
    rebuild_tables(grown)
    whole = of(grown)
    result = result_of(grown)
    damage(grown / "tables")
    with pytest.raises(UnfitError, match=rf"{grown}/tables: .*`biaskit analyze {grown}` rebuilds the tables"):
        gather([grown])
    with pytest.raises(UnfitError):
        for table in ("tests", "probe_groups", "probe_prompts", "probe_jobs"):
            result.table(table)
    make_fit([grown], Silent())
    assert whole == {name: content for name, content in of(grown).items() if name in whole}
    gather([grown])


def test_an_edited_table_is_kept_beside_its_place(grown: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rebuild_tables(grown)
    whole = of(grown)
    first = edit(grown / "tables" / "tests.csv")
    compare(grown, out=grown.with_name("c"))
    said = capsys.readouterr().err
    assert 1 == said.count("\n")
    assert "tables: tests.csv is not as it was written. All tables are rebuilt" in said
    assert first == (grown / "tables" / "tests.csv.changed-1").read_bytes()
    (grown / "tables" / "tests.csv").write_text("mine", "utf-8")
    notes = rebuild_tables(grown)
    assert notes[-1].endswith("tests.csv was edited and is kept as tests.csv.changed-2")
    assert "mine" == (grown / "tables" / "tests.csv.changed-2").read_text("utf-8")
    assert {**whole, "tests.csv.changed-1": first, "tests.csv.changed-2": b"mine"} == of(grown)


def test_a_file_of_ones_own_in_the_tables_is_left_alone_and_not_read(grown: Path) -> None:
    rebuild_tables(grown)
    for name, content in (("notes.csv", "x,y\n"), ("probe_levels.csv", "of another run"), ("a.xlsx", "PK")):
        (grown / "tables" / name).write_text(content, "utf-8")
    gather([grown])
    assert result_of(grown).table("probe_levels").empty
    rebuild_tables(grown)
    kept = {
        path.name: path.read_text("utf-8") for path in (grown / "tables").iterdir() if path.suffix != ".json"
    }
    assert ("x,y\n", "PK") == (kept["notes.csv"], kept["a.xlsx"])
    assert "of another run" == kept["probe_levels.csv.changed-1"]


@pytest.mark.parametrize(
    "change", [{"signature": "other"}, {"choices": {}}, {"files": {}}, {"sum": None}, {"rows_digest": "0"}]
)
def test_a_record_that_was_changed_is_not_trusted(grown: Path, change: dict[str, Any]) -> None:
    rebuild_tables(grown)
    whole = of(grown)
    record = grown / "tables" / ANALYSIS
    record.write_text(json.dumps({**json.loads(whole[ANALYSIS]), **change}), "ascii")
    with pytest.raises(RunError, match=r"analysis\.json was changed .*`biaskit analyze"):
        make_fit([grown], Silent())
    rebuild_tables(grown)
    assert {*whole, "analysis.json.changed-1"} == set(of(grown))
    assert whole[ANALYSIS] == record.read_bytes()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"3", b"[" * 200_000, b"\xff\xfe", b'{"files": []}'])
def test_a_record_that_is_none_is_one_line(grown: Path, content: bytes) -> None:
    (grown / "tables" / ANALYSIS).write_bytes(content)
    for read in (lambda: gather([grown]), lambda: make_fit([grown], Silent()), result_of(grown).analysis):
        with pytest.raises(RunError, match=rf"{ANALYSIS}.*`biaskit analyze {grown}`") as error:
            read()
        assert "\n" not in str(error.value)
        assert len(str(error.value)) < 1000
    rebuild_tables(grown)
    gather([grown])


# --- with the choices that were made -----------------------------------------------------------------------

CHOSEN: tuple[dict[str, Any], ...] = (
    {},
    {"min_coverage": 1.0},
    {"interval": "bootstrap", "seed": 3},
    {"contrast": ["diverse", "male"]},
    {"margin.share": 0.5},
    {"skip_bad_lines": True},
)


@pytest.mark.parametrize("chosen", CHOSEN, ids=str)
def test_tables_of_the_prober_are_made_again_with_the_stored_choices(grown: Path, chosen: Any) -> None:
    if "skip_bad_lines" in chosen:
        rows = grown / "probe.jsonl"
        first, *others = rows.read_text("ascii").splitlines(keepends=True)
        rows.write_text("".join([first[:50] + "\n", *others]), "ascii")
    rebuild_tables(grown, chosen)
    whole = of(grown)
    (grown / "tables" / "tests.csv").unlink()
    make_fit([grown], Silent())
    assert whole == of(grown)


# --- several at once ---------------------------------------------------------------------------------------


def test_readers_beside_two_writers_see_one_set_or_the_other(grown: Path) -> None:
    ends = []
    for chosen in ({"min_coverage": 1.0}, {"min_coverage": 0.0}):
        rebuild_tables(grown, chosen)
        ends.append({name: content for name, content in of(grown).items() if name != ANALYSIS})
    children = []
    stop = time.monotonic() + 3
    for chosen in ({"min_coverage": 1.0}, {"min_coverage": 0.0}):
        if not (child := os.fork()):
            while time.monotonic() < stop:
                rebuild_tables(grown, chosen)
            os._exit(0)
        children.append(child)
    seen = [0, 0]
    while time.monotonic() < stop:
        found = {f"{name}.csv": content for name, content in read_set(grown).tables.items()}
        assert found in ends
        seen[ends.index(found)] += 1
    assert [0, 0] == [os.waitpid(child, 0)[1] for child in children]
    assert all(seen), seen
    assert sorted(ends[0]) == sorted(set(of(grown)) - {ANALYSIS})
