"""A few kills of every command; a hundred each by `python tests/fuzz/kills.py --kills 100`."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from needs import missing, require_torch

from biaskit.runs.rows import row_line
from fuzz import kills
from fuzz.kills import Counts
from fuzz.lives import LIVES, tree, whole_rows

KILLS = 2


@pytest.mark.process
def test_what_stands_after_kills_is_what_an_unbroken_run_leaves() -> None:
    if not Path("/proc/self/task").is_dir():
        missing("kills fork a process and count its threads: run the tests on Linux")
    require_torch()
    done = subprocess.run(
        [sys.executable, kills.__file__, "--kills", str(KILLS), "--quick"],
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for command in LIVES:
        assert f"{command}: {KILLS} kills, lost 0, doubled 0, unequal 0\n" in done.stdout


def row(number: int, **more: object) -> str:
    return row_line({"key": f"{number:032x}", "text": "x", "answered_at": "2026-01-01", **more}) + "\n"


def test_a_lost_row_a_doubled_one_and_an_unequal_file_are_counted(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "probe.jsonl").write_text(row(1) + row(2) + row(3))
    (run / "manifest.json").write_text("{}")
    whole, rows = tree(tmp_path), whole_rows(tmp_path)
    (run / "probe.jsonl").write_text(row(1) + row(3, answered_at="2027-01-01") + row(3))
    counts = Counts()
    kills._kept(rows, whole_rows(tmp_path), counts, ())
    assert counts.lost == 1
    counts = Counts()
    kills._check_rows(rows, whole_rows(tmp_path), counts, ())
    kills._compare("it", whole, tree(tmp_path), counts)
    assert (1, 1, 1) == (counts.lost, counts.doubled, counts.unequal)
    assert not counts.is_clean


def test_only_times_and_process_numbers_may_differ(tmp_path: Path) -> None:
    for name, second in (("a", "01"), ("b", "02")):
        run = tmp_path / name
        (run / "tables").mkdir(parents=True)
        (run / "probe.jsonl").write_text(row(1, answered_at=second) + row(2))
        (run / ".lock").write_text(f"process {second}")
        (run / "usage.json").write_text(f'{{"m": {{"seconds": {second[1]}, "starts": 1}}}}')
    assert tree(tmp_path / "a") == tree(tmp_path / "b")
    assert Counter(tree(tmp_path / "a")).keys() == {".lock", "usage.json", "probe.jsonl", "tables/"}
    (tmp_path / "b/tables/.x.biaskit-12345678.tmp").write_text("left")
    assert tree(tmp_path / "a") != tree(tmp_path / "b")
    (tmp_path / "b/probe.jsonl").write_text(re.sub("x", "y", row(1)))
    with pytest.raises(ValueError, match="checksum"):
        tree(tmp_path / "b")
