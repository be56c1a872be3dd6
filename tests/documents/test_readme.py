"""What the README says is so: its commands exist, its Python runs, its printed result is what comes out."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from needs import require_demo
from places import ROOT

from biaskit.study.config import study_names

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = [match[2] for match in re.finditer(r"```(\w*)\n(.*?)```", README, re.S)]
COMMANDS = sorted(
    {
        line.split("   #")[0].strip()
        for block in BLOCKS
        for line in block.splitlines()
        if line.startswith("biaskit ")
    }
)
POINT = 0.15
"""Percent points by which a real model's share may differ between machines."""


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_readme_holds_no_unfilled_place() -> None:
    assert [] == re.findall(r"@[A-Z_]+@", README)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_readme_has_options_that_exist(command: str, tmp_path: Path) -> None:
    _, name, *options = shlex.split(command)
    known = run([sys.executable, "-m", "biaskit", name, "--help"], tmp_path)
    assert 0 == known.returncode
    assert [] == [option for option in options if option.startswith("--") and option not in known.stdout]


def test_the_readme_lists_every_study() -> None:
    assert study_names() == sorted(re.findall(r"^\| `([a-z-]+)`", README, re.M))


def test_every_file_the_readme_names_is_there() -> None:
    named = re.findall(r"(?:tests|examples|\.ci)/[\w/.-]*\w", README)
    assert [] == [name for name in named if not (ROOT / name).exists()]


@pytest.mark.real_model
def test_the_readme_shows_what_the_first_command_prints(tmp_path: Path) -> None:
    require_demo()
    shown = next(block for block in BLOCKS if block.startswith("Explicit bias (OccuGender, Table 3)"))
    done = run([sys.executable, "-m", "biaskit", "probe", "demo", "--yes"], tmp_path)
    assert 0 == done.returncode, done.stderr
    tables = done.stdout.split("\nNote:")[0]
    number = r"\d+\.\d+"
    assert re.sub(number, "N", shown).split() == re.sub(number, "N", tables).split()
    for expected, found in zip(re.findall(number, shown), re.findall(number, tables), strict=True):
        assert float(expected) == pytest.approx(float(found), abs=POINT)


def test_the_readme_shows_what_the_recorded_texts_give(tmp_path: Path) -> None:
    """All but the vectors' last digits, which another machine's arithmetic may round otherwise."""
    shown = next(block for block in BLOCKS if block.startswith("Association held against"))
    done = run([sys.executable, "-m", "biaskit", "analyze", "recorded:demo", "--no-clusters"], tmp_path)
    assert 0 == done.returncode, done.stderr
    printed = {table.splitlines()[0]: table for table in done.stdout.split("\n\n")}
    for table in shown.strip().split("\n\n"):
        title, found = table.splitlines()[0], printed[table.splitlines()[0]]
        if "SRB" not in title and "Tests" not in title:
            assert table == found
            continue
        number = r"[+-]?\d+\.\d+"
        plain = [re.sub(r"corpus:\w+", "", text) for text in (table, found)]
        assert re.sub(number, "N", plain[0]).split() == re.sub(number, "N", plain[1]).split()
        if "SRB" in title:
            pairs = zip(re.findall(number, table), re.findall(number, found), strict=True)
            assert [] == [(a, b) for a, b in pairs if float(b) != pytest.approx(float(a), abs=0.15)]
