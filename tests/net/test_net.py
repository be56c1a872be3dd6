"""The public tables of small runs, by value, and what is said of them, by line (README.md)."""

from __future__ import annotations

import csv
import difflib
import math
import os
import re
import shutil
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from net.runs import RUNS
from net.texts import text_of, without_png

HERE = Path(__file__).resolve().parent
GOLDEN = HERE / "golden"
FREE = {"reason", "vectors"}
"""Columns of free wording, and names of vectors that say which library trained them."""
TOLERANCE = 1e-12
SHOWN, SHOWN_LINES = 12, 60
TEXT, SECTIONS = "text.txt", ("===== ", "## ", "--- ")

Rows = list[dict[str, str]]


def keys_of(table: str) -> list[str]:
    return tomllib.loads((HERE / "keys.toml").read_text("utf-8"))[table]


def gone() -> list[dict[str, Any]]:
    entries = tomllib.loads((HERE / "gone.toml").read_text("utf-8")).get("gone", [])
    for entry in entries:
        assert entry["table"], entry
        assert entry["reason"], entry
    return entries


def read(path: Path) -> tuple[list[str], Rows]:
    """A table's columns and rows without free wording; rows named by a digest alone are counted."""
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        columns = [name for name in reader.fieldnames or () if name not in FREE]
        rows = [{name: row[name] for name in columns} for row in reader]
    if path.stem == "genders" and "n" not in columns:
        columns = [name for name in columns if name != "key"]
        counted = Counter(tuple(row[name] for name in columns) for row in rows)
        rows = [dict(zip(columns, values, strict=True)) | {"n": str(n)} for values, n in counted.items()]
        columns.append("n")
    return columns, rows


def freeze(made: Path, golden: Path) -> None:
    """Write a run's tables as the golden ones."""
    shutil.rmtree(golden, ignore_errors=True)
    golden.mkdir(parents=True)
    for path in sorted((made / "tables").glob("*.csv")):
        columns, rows = read(path)
        with (golden / path.name).open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def same(expected: str, made: str) -> bool:
    """Whether two cells say the same: as text, or as numbers; an empty cell is an undefined number."""
    if expected == made:
        return True
    try:
        return math.isclose(float(expected), float(made), rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    except ValueError:
        return False


def indexed(rows: Rows, keys: list[str]) -> dict[tuple[str, ...], dict[str, str]]:
    by_key = {tuple(row[key] for key in keys): row for row in rows}
    assert len(by_key) == len(rows), f"several rows have the same {keys}"
    return by_key


def differences(golden: Path, made: Path) -> list[str]:
    """Everything in which a run's tables are not the golden ones, unless `gone.toml` has it."""
    found: list[str] = []
    for path in sorted(golden.glob("*.csv")):
        excused = [entry for entry in gone() if entry["table"] == path.stem]
        if any("column" not in entry and "rows" not in entry for entry in excused):
            continue
        if not (made / "tables" / path.name).exists():
            found.append(f"{path.name} is gone")
            continue
        columns, rows = read(path)
        new_columns, new_rows = read(made / "tables" / path.name)
        left_out = {entry["column"] for entry in excused if "column" in entry}
        columns = [name for name in columns if name not in left_out]
        found += [f"{path.name}: the column {name} is gone" for name in columns if name not in new_columns]
        columns = [name for name in columns if name in new_columns]
        parts = [entry["rows"] for entry in excused if "rows" in entry]
        rows = [row for row in rows if not any(part.items() <= row.items() for part in parts)]
        keys = [key for key in keys_of(path.stem) if key in columns]
        expected, now = indexed(rows, keys), indexed(new_rows, keys)
        found += [f"{path.name}: the row {key} is gone" for key in expected if key not in now]
        found += [f"{path.name}: the row {key} is new" for key in now if key not in expected]
        found += [
            f"{path.name}, {key}: {name} was {row[name]!r}, is {now[key][name]!r}"
            for key, row in expected.items()
            if key in now
            for name in columns
            if not same(row[name], now[key][name])
        ]
    return found


def changed_lines(golden: Path, text: str) -> list[str]:
    """The lines of a run's text that are not the golden ones, each place with the section it is in."""
    before, now = golden.read_text("utf-8").split("\n"), text.split("\n")
    found = []
    for line in difflib.unified_diff(before, now, "golden", "now", n=0, lineterm=""):
        if line.startswith("@@"):
            above = before[: int(re.findall(r"\d+", line)[0])]
            found.append(f"@ {[name for name in above if name.startswith(SECTIONS)][-1:]}")
        else:
            found.append(line)
    return found


@pytest.mark.parametrize("name", RUNS)
def test_no_number_and_no_sentence_of_a_run_has_moved(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "argv", ["biaskit"])  # "Made by"
    monkeypatch.chdir(tmp_path)  # paths are relative, so that no line is broken elsewhere
    without_png(monkeypatch)
    made = RUNS[name](Path())
    renew = os.environ.get("BIASKIT_UPDATE_GOLDEN") == "1"
    wrong: list[str] = []
    for run in made:
        if renew:
            freeze(Path(run), GOLDEN / run)
        assert (GOLDEN / run).is_dir(), f"{run} has no golden folder"
        found = differences(GOLDEN / run, Path(run))
        wrong += [f"{run}: {len(found)} differences", *found[:SHOWN]] if found else []
    for run, result in made.items():  # after the tables were read: a page may make them again
        text, golden = text_of(result, tmp_path, capsys), GOLDEN / run / TEXT
        if renew:
            golden.write_text(text, encoding="utf-8")
        lines = changed_lines(golden, text)
        wrong += [f"{run}: {TEXT} differs", *lines[:SHOWN_LINES]] if lines else []
    assert not wrong, "\n".join(wrong)
