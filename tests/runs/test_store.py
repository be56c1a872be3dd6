"""A run on disk: whatever kills a writer, no finished row is lost, none is read twice.

See reference/run-folder.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from needs import missing

from biaskit.errors import RunError
from biaskit.runs import store as runs
from biaskit.runs.manifest import MANIFEST, Manifest, merge_questions
from biaskit.runs.rows import read_row, row_line
from biaskit.runs.store import Reading, RowWriter, find_run, list_runs, read_rows, slug

ROWS = "probe.jsonl"


def row(number: int, **more: Any) -> dict[str, Any]:
    return {"key": f"{number:032x}", "text": f"row {number}", **more}


def write(run: Path, *numbers: int) -> None:
    with RowWriter(run, "probe") as writer:
        for number in numbers:
            writer.append([row(number)])


def keys_in(path: Path, **how: Any) -> list[int]:
    return [int(r["key"], 16) for r in read_rows(path, **how)]


# --- rows -------------------------------------------------------------------------------------------


@given(
    st.dictionaries(
        st.text(max_size=5),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats(allow_nan=False, allow_infinity=False)
            | st.text(st.characters(codec=None, exclude_categories=())),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
            ),
            max_leaves=6,
        ),
        max_size=4,
    )
)
@example({"text": "\u2028 \x85 \ud800 \udcff \x00 \r\n NaN"})
def test_any_text_and_number_survives_a_row_of_ascii(content: dict[str, Any]) -> None:
    stored = {"text": "", **content, "key": "k"}
    stored.pop("sum", None)
    line = row_line(stored)
    assert line.isascii()
    assert "\n" not in line
    assert "\r" not in line
    assert stored == read_row(line.encode("ascii"))
    # The checksum is that of the content: names in another order, or spaces, change nothing.
    turned = dict(reversed(json.loads(line).items()))
    assert stored == read_row(json.dumps(turned, indent=0).replace("\n", " ").encode())


def test_the_same_key_twice_counts_the_first(tmp_path: Path) -> None:
    path = tmp_path / ROWS
    path.write_text("".join(row_line(row(n, value=v)) + "\n" for n, v in [(1, "a"), (2, "b"), (1, "c")]))
    reading = Reading()
    assert ["a", "b"] == [r["value"] for r in read_rows(path, reading=reading)]
    assert (3, 1) == (reading.n_rows, reading.n_twice)
    assert any("duplicate rows, of which the first counts: 1" in note for note in reading.notes)


def test_a_row_that_is_stored_is_not_written_again(tmp_path: Path) -> None:
    write(tmp_path, 1, 2)
    before = (tmp_path / ROWS).read_bytes()
    with RowWriter(tmp_path, "probe") as writer:
        writer.append([row(2), row(1)])
        assert before == (tmp_path / ROWS).read_bytes()
        writer.append([row(2), row(3)])
        writer.append([row(4, value=1), row(4, value=2), row(5)])  # of two models that are one: a merged run
    assert 5 == (tmp_path / ROWS).read_bytes().count(b"\n")
    assert [1, 2, 3, 4, 5] == keys_in(tmp_path / ROWS)
    assert [1] == [r["value"] for r in read_rows(tmp_path / ROWS) if "value" in r]
    assert (tmp_path / ROWS).read_bytes().startswith(before)


# --- what a killed writer leaves ----------------------------------------------------------------------


def test_a_file_cut_at_any_byte_of_its_last_two_lines_keeps_every_whole_row(tmp_path: Path) -> None:
    write(tmp_path, 1, 2, 3, 4)
    content = (tmp_path / ROWS).read_bytes()
    lines = content.splitlines(keepends=True)
    start = len(content) - len(lines[-1]) - len(lines[-2])
    path = tmp_path / "cut" / ROWS
    path.parent.mkdir()
    for end in range(start, len(content) + 1):
        path.write_bytes(content[:end])
        # A whole row may lack its line feed alone.
        whole = [n for n in (1, 2, 3, 4) if end >= len(b"".join(lines[:n])) - 1]
        assert whole == keys_in(path), end
        with RowWriter(path.parent, "probe") as writer:
            assert {f"{n:032x}" for n in whole} == writer.keys
            cut = end - len(b"".join(lines[: len(whole)]))
            assert (1 if cut > 0 else 0) == len(writer.reading.notes), end
            writer.append([row(n) for n in (1, 2, 3, 4)])
        assert content == path.read_bytes(), end


@pytest.mark.parametrize("zeros", [1, 7, 4096])
@pytest.mark.parametrize("end", [0, -1, -9], ids=["after the line", "in place of its end", "in the last row"])
def test_zero_bytes_at_the_tail_are_cut_off(tmp_path: Path, zeros: int, end: int) -> None:
    write(tmp_path, 1, 2, 3)
    path = tmp_path / ROWS
    content = path.read_bytes()
    path.write_bytes(content[: len(content) + end] + b"\x00" * zeros)
    with RowWriter(tmp_path, "probe") as writer:
        assert [1, 2] == sorted(int(key, 16) for key in writer.keys)[:2]
        assert 1 == len(writer.reading.notes)
        assert ROWS in writer.reading.notes[0]
        writer.append([row(1), row(2), row(3)])
    assert content == path.read_bytes()


@pytest.mark.parametrize(
    "tail",
    [b"{}\n", b"[]\n", b'"text"\n', b'{"key": 5}\n', b"\xff\xfe\n", b"[" * 10**5, b'{"key":"x"',
     b'{"key":"a\n', b'{"key":"\xff', b'{"id":"a', b"half a line of text"],
)  # fmt: skip
def test_only_what_one_write_can_leave_is_an_unfinished_end(tmp_path: Path, tail: bytes) -> None:
    write(tmp_path, 1, 2)
    content = (tmp_path / ROWS).read_bytes() + tail
    (tmp_path / ROWS).write_bytes(content)
    ours = tail == b'{"key":"x"'
    if ours:
        with RowWriter(tmp_path, "probe") as writer:
            assert (
                f"{len(tail)} bytes was cut off and is kept in probe.jsonl.cut-1" in writer.reading.notes[0]
            )
        assert content == (tmp_path / ROWS).read_bytes() + tail
        assert tail == (tmp_path / "probe.jsonl.cut-1").read_bytes()
    else:
        with pytest.raises(RunError, match="line 3"):
            RowWriter(tmp_path, "probe").__enter__()
        assert content == (tmp_path / ROWS).read_bytes()
        assert not list(tmp_path.glob("*.cut-*"))


# --- files of other things ----------------------------------------------------------------------------


LINE = row_line(row(1)).encode()
OTHER_FORMS = {
    "pretty-printed": json.dumps(json.loads(LINE), indent=2).encode(),
    "array": b"[" + LINE + b"]",
    "commas": LINE + b",\n" + LINE + b",\n",
    "renamed": LINE.replace(b'"key"', b'"id"'),
    "gzip": gzip.compress(LINE),
    "utf-16": LINE.decode().encode("utf-16"),
    "csv": b"key,text\n1,row\n",
    "zeros": b"\0\n" * 5,
}


@pytest.mark.parametrize("form", OTHER_FORMS)
def test_a_file_of_another_form_is_named_and_never_cut(tmp_path: Path, form: str) -> None:
    path = tmp_path / ROWS
    path.write_bytes(OTHER_FORMS[form])
    for read in (lambda: list(read_rows(path)), lambda: RowWriter(tmp_path, "probe").__enter__()):
        with pytest.raises(RunError, match="not a row file of biaskit"):
            read()
    assert OTHER_FORMS[form] == path.read_bytes()
    assert [] == list(tmp_path.glob("*.cut-*"))


# --- rows that were changed ---------------------------------------------------------------------------


def tampered(line: str) -> dict[str, str]:
    """One row changed in many ways."""
    stored = json.loads(line)
    changes: dict[str, Any] = {
        "number": {**stored, "log_prob": -0.2},
        "key": {**stored, "key": "f" * 32},
        "swapped": {**stored, "log_prob": stored["text"], "text": stored["log_prob"]},
        "order": {**stored, "target_words": list(reversed(stored["target_words"]))},
        "group": {**stored, "target_words": [{**e, "group": "female"} for e in stored["target_words"]]},
        "sum": {**stored, "sum": "00000000"},
        "sum of another kind": {**stored, "sum": 5},
    }
    found = {name: json.dumps(one) for name, one in changes.items()}
    return found | {
        "nan": line.replace("-0.1", "NaN"),
        "infinity": line.replace("-0.1", "-Infinity"),
        "digits": line.replace("-0.1", "1" * 5000),
        "nested": line.replace("-0.1", "[" * 100_000 + "]" * 100_000),
    }


FULL = row(
    2,
    log_prob=-0.1,
    target_words=[{"group": "female", "text": " she", "log_prob": -1.0}, {"group": "male", "text": " he"}],
)


@pytest.mark.parametrize("change", tampered(row_line(FULL)))
def test_a_changed_row_is_named_by_its_line(tmp_path: Path, change: str) -> None:
    with RowWriter(tmp_path, "probe") as writer:
        writer.append([row(1), FULL, row(3)])
    path = tmp_path / ROWS
    lines = path.read_text().splitlines()
    lines[1] = tampered(lines[1])[change]
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(
        RunError, match=r"line 2: it (does not match its checksum|is not a row).*skip_bad_lines=true"
    ):
        list(read_rows(path))
    reading = Reading()
    assert [1, 3] == keys_in(path, skip_bad=True, reading=reading)
    assert 1 == reading.n_skipped
    assert any("lines left out as no rows or changed: 1" in note for note in reading.notes)


def spoiled(tmp_path: Path) -> Path:
    """A row file whose second and third lines are bad, and whose last one is unfinished."""
    write(tmp_path, 1, 2, 3, 4)
    path = tmp_path / ROWS
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"\x00\x00\n" + lines[1][:20] + b"\n" + lines[2] + lines[3][:9])
    return path


def test_a_bad_line_before_the_tail_is_an_error_with_its_number(tmp_path: Path) -> None:
    path = spoiled(tmp_path)
    before = path.read_bytes()
    for read in (lambda: list(read_rows(path)), lambda: RowWriter(tmp_path, "probe").__enter__()):
        with pytest.raises(RunError, match=r"line 2\b.*--set skip_bad_lines=true"):
            read()
    assert before == path.read_bytes()


def test_skip_bad_lines_counts_what_it_leaves_out_and_writes_on_behind_it(tmp_path: Path) -> None:
    path = spoiled(tmp_path)
    reading = Reading()
    assert [1, 3] == keys_in(path, skip_bad=True, reading=reading)
    assert (2, 9) == (reading.n_skipped, reading.cut_bytes)
    assert any("lines left out as no rows or changed: 2" in note for note in reading.notes)
    with RowWriter(tmp_path, "probe", skip_bad=True) as writer:
        writer.append([row(n) for n in (1, 2, 3, 4)])
    assert [1, 3, 2, 4] == keys_in(path, skip_bad=True)


# --- one writer -------------------------------------------------------------------------------------

HOLDER = """
import sys, time
from pathlib import Path
from biaskit.runs.store import RowWriter
with RowWriter(Path(sys.argv[1]), "probe") as writer:
    writer.append([{"key": "%032x" % 1, "text": "row 1"}])
    print("held", flush=True)
    time.sleep(120)
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that writes the run."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert "held\n" == process.stdout.readline()
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.process
def test_a_second_writer_is_refused_and_told_who_writes(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    with pytest.raises(RunError) as refused:
        RowWriter(tmp_path, "probe").__enter__()
    assert str(holder.pid) in str(refused.value)
    assert str(tmp_path) in str(refused.value)
    # Reading goes on beside it.
    assert [1] == keys_in(tmp_path / ROWS)


@pytest.mark.process
def test_kill_9_frees_the_lock(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    write(tmp_path, 2)
    assert [1, 2] == keys_in(tmp_path / ROWS)


def test_without_locks_the_message_names_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Any, timeout: float | None = None, **_: Any) -> None:
        raise NotImplementedError("no locks here")

    monkeypatch.setattr(runs.FileLock, "acquire", refuse)
    with pytest.raises(RunError, match="--set lock=none"):
        RowWriter(tmp_path, "probe").__enter__()
    with RowWriter(tmp_path, "probe", lock="none") as writer:
        writer.append([row(1)])
    assert [1] == keys_in(tmp_path / ROWS)


# --- disks that refuse ------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB, where the tests may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        missing("no small file system could be mounted: run the tests as root where mount is allowed")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True, capture_output=True)


@pytest.mark.process
def test_a_disk_that_fills_up_ends_the_run_at_the_last_whole_row(small_disk: Path) -> None:
    run = small_disk / "run"
    number = 0
    with (
        pytest.raises(RunError, match="No space left on device") as refused,
        RowWriter(run, "probe") as writer,
    ):
        for number in range(1000):
            writer.append([row(number, text="x" * 1000)])
    assert "rerun the command" in str(refused.value)
    content = (run / ROWS).read_bytes()
    assert content.endswith(b"}\n")
    assert list(range(number)) == keys_in(run / ROWS)
    assert 10 < number < 70


def test_a_write_that_fails_half_way_leaves_whole_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, 1)
    with RowWriter(tmp_path, "probe") as writer:
        file = writer._file
        assert file is not None

        class Half:
            def write(self, content: bytes) -> int:
                return file.write(content[: len(content) // 2])

            def __getattr__(self, name: str) -> Any:
                return getattr(file, name)

        writer._file = Half()  # type: ignore[assignment]
        with pytest.raises(RunError, match="cannot be written"):
            writer.append([row(2), row(3)])
        assert [1] == [int(key, 16) for key in writer.keys]
    assert [1] == keys_in(tmp_path / ROWS)
    assert (tmp_path / ROWS).read_bytes().endswith(b"}\n")


@pytest.mark.parametrize("replaced", [False, True])
def test_rows_that_were_removed_during_the_run_are_noticed(tmp_path: Path, replaced: bool) -> None:
    run = tmp_path / "run"
    with RowWriter(run, "probe") as writer:
        writer.append([row(1)])
        shutil.rmtree(run)
        if replaced:
            run.mkdir()
            (run / ROWS).write_text("")
        with pytest.raises(RunError, match="removed or replaced"):
            writer.append([row(2)])
    assert replaced == run.exists()


# --- manifest ---------------------------------------------------------------------------------------


def test_a_manifest_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Manifest.new("probe", "study").write(tmp_path)
    before = (tmp_path / MANIFEST).read_bytes()

    def refuse(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(RunError, match="No space left on device"):
        Manifest.new("probe", "another").write(tmp_path)
    assert before == (tmp_path / MANIFEST).read_bytes()
    assert [MANIFEST] == [path.name for path in tmp_path.iterdir()]


# --- which run --------------------------------------------------------------------------------------


def test_without_a_path_it_is_the_run_that_was_last_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunError, match="There is no run"):
        find_run(None)
    now = time.time()
    for name, age in (("a", 50), ("b", 90), ("c", 70)):
        run = runs.DEFAULT_PARENT / name
        Manifest.new("probe", "study").write(run)
        write(run, 1)
        os.utime(run / MANIFEST, (now - 500, now - 500))
        os.utime(run / ROWS, (now - age, now - age))
    assert ["b", "c", "a"] == [path.name for path in list_runs()]
    assert "a" == find_run(None).name


# --- another study ----------------------------------------------------------------------------------

STORED = {"study": "own", "articles": "as-published", "texts": {"explicit template 1": ["Who?", ""]}}


@pytest.mark.parametrize(
    ("asked", "values"),
    [
        ({"articles": "grammatical"}, ("as-published", "grammatical")),
        ({"study": "other"}, ("own", "other")),
        ({"texts": {"explicit template 1": ["Whom?", ""]}}, ('["Who?",""]', '["Whom?",""]')),
    ],
)
def test_another_study_is_refused_and_both_values_are_printed(
    asked: dict[str, Any], values: tuple[str, str]
) -> None:
    with pytest.raises(RunError) as refused:
        merge_questions(Path("run"), STORED, {**STORED, **asked})
    assert all(value in str(refused.value) for value in values)
    assert "--out" in str(refused.value)


def test_more_of_the_same_study_joins_the_folder() -> None:
    asked = {**STORED, "texts": {"explicit template 2": ["Where?", ""]}}
    expected = {"explicit template 1": ["Who?", ""], "explicit template 2": ["Where?", ""]}
    assert expected == merge_questions(Path("run"), STORED, asked)["texts"]
    assert {"explicit template 1": ["Who?", ""]} == STORED["texts"]


# --- slugs ------------------------------------------------------------------------------------------

HOSTILE = [
    *("../x", "..", ".", "", "/etc/passwd", "C:\\x", "CON", "con", "nul.txt", "COM1", "lpt9.csv", "a" * 300),
    *("a" * 299 + "b", "Demo", "demo", "DEMO", "hf:org/name", "hf:org-name", "a b", "a  b", "-rf", ".hidden"),
    *("trailing.", "ünï", "uni", "\ud800", "\u202e", "a\nb", "a\x00b", "~", "$HOME", "%2e%2e", "日本", "x"),
]


@pytest.mark.parametrize("label", HOSTILE, ids=ascii)
def test_a_slug_is_a_file_name_on_every_system(label: str) -> None:
    name = slug(label)
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.-]*", name)
    assert len(name) <= 80
    assert not name.endswith(".")
    assert not re.fullmatch(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?", name)


@given(
    st.text(st.characters(codec=None, exclude_categories=())),
    st.text(st.characters(codec=None, exclude_categories=())),
)
@example("demo", "Demo")
@example("a" * 61, "a" * 62)
def test_two_labels_never_share_a_slug(one: str, two: str) -> None:
    assert (one == two) == (slug(one).lower() == slug(two).lower())
