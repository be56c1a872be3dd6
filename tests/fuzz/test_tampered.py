"""What biaskit says of a run that somebody tampered with.

A checksum is no signature: who changes a row and sums it anew is believed as long as it fits the study.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.command import Cli

import biaskit as bk
from biaskit.runs.rows import row_line

pytestmark = pytest.mark.usefixtures("no_waiting")

Row = dict[str, Any]
Change = Callable[[Path], object]
ANALYZE, SKIP = ("analyze", "run", "--verbose"), ("analyze", "run", "--set", "skip_bad_lines=true")
COMPARE, REPORT = ("compare", "run", "other", "--out", "comparison"), ("report", "run")
TEXTS = ("analyze", "personas")
PROBE = ("probe", "m=scripted:m.jsonl", "--jobs", "nurse,plumber", "--templates", "1-3", "--out", "run")


def rows(change: Callable[[list[Row]], object], *, summed: bool = False) -> Change:
    """Change the list of rows in place; `summed`: each gets a checksum that fits, as a forger would do it."""

    def act(home: Path) -> None:
        path = home / "run/probe.jsonl"
        found = [json.loads(line) for line in path.read_text("ascii").splitlines()]
        change(found)
        path.write_text(
            "".join((row_line(row) if summed else json.dumps(row)) + "\n" for row in found), "ascii"
        )

    return act


def of_third(**more: Any) -> Callable[[list[Row]], object]:
    """Something else in the first target word of the third row."""
    return lambda found: found[2]["target_words"][0].update(more)


def stated(file: str, change: Callable[[Any], object]) -> Change:
    """Change what a JSON file says."""

    def act(home: Path) -> None:
        content = json.loads((home / file).read_bytes())
        change(content)
        (home / file).write_text(json.dumps(content), "ascii")

    return act


def written(file: str, content: str) -> Change:
    return lambda home: (home / file).write_text(content, "utf-8")


def gone(file: str) -> Change:
    return lambda home: (home / file).unlink()


def linked(home: Path) -> None:
    (home / "run/probe.jsonl").rename(home / "elsewhere.jsonl")
    (home / "run/probe.jsonl").symlink_to(home / "elsewhere.jsonl")


def with_a_foreign_row(home: Path) -> None:
    """A sound row of a run with another job."""
    with (home / "run/probe.jsonl").open("a", encoding="ascii") as file:
        file.write((home / "pilot/probe.jsonl").read_text("ascii").splitlines()[0] + "\n")


def with_rows_twice(home: Path) -> None:
    path = home / "run/probe.jsonl"
    path.write_bytes(2 * path.read_bytes())


def with_a_text_reworded(home: Path) -> None:
    path = home / "personas/personas.jsonl"
    path.write_bytes(path.read_bytes().replace(b"helps", b"harms", 1))


def with_another_table(home: Path) -> None:
    path = home / "run/tables/tests.csv"
    path.write_bytes(path.read_bytes().replace(b"0.5", b"0.9"))


CASES: tuple[tuple[str, Change, tuple[str, ...], int, str], ...] = (
    # Rows, by a hand that knows nothing of checksums.
    ("a number", rows(of_third(log_prob=-9.0)), ANALYZE, 1, "line 3: .*checksum"),
    ("a number, left out", rows(of_third(log_prob=-9.0)), SKIP, 0, "left out .*: 1"),
    ("a text", with_a_text_reworded, TEXTS, 1, "line 1: .*checksum"),
    # Rows, by one who sums them anew.
    ("another group", rows(of_third(group="female"), summed=True), ANALYZE, 1, "line 3: its target words"),
    (
        "no number",
        rows(of_third(log_prob=-0.001), summed=True),
        ANALYZE,
        1,
        r"total probability of 1\.\d+",
    ),
    (
        "a second key",
        rows(lambda found: found.append({**found[0], "key": "e" * 32}), summed=True),
        *(ANALYZE, 1, "line 13: another row answers the same prompt"),
    ),
    ("a number, summed", rows(of_third(log_prob=-9.0), summed=True), ANALYZE, 0, ""),
    # Rows that are there twice, of others, or gone.
    ("rows twice", with_rows_twice, ANALYZE, 0, "duplicate rows.*: 12"),
    ("a foreign row", with_a_foreign_row, ANALYZE, 0, "1 stored rows are not part of this study"),
    (
        "half gone",
        rows(lambda found: found.__delitem__(slice(6, None))),
        ANALYZE,
        0,
        "6 of 12 prompts have no share",
    ),
    ("all gone", gone("run/probe.jsonl"), ANALYZE, 1, r"no probe\.jsonl"),
    ("a link", linked, PROBE, 1, r"probe\.jsonl is a symbolic link"),
    # Tables, page, figures.
    ("a table", with_another_table, COMPARE, 0, r"tests\.csv is not as it was written"),
    ("a table gone", gone("run/tables/probe_jobs.csv"), COMPARE, 0, r"probe_jobs\.csv is gone"),
    (
        "the record",
        stated("run/tables/analysis.json", lambda r: r.update(notes=["x"])),
        COMPARE,
        1,
        "was changed",
    ),
    ("the record gone", gone("run/tables/analysis.json"), COMPARE, 1, "no tables yet"),
    (
        "a page",
        written("run/report.html", "<h1>mine</h1>"),
        REPORT,
        1,
        r"report\.html exists and is not a page",
    ),
    ("a figure", written("run/figures/groups.svg", "<svg/>"), REPORT, 0, r"groups\.svg was edited"),
    # What was asked of whom.
    ("the format", stated("run/manifest.json", lambda m: m.update(format=9)), ANALYZE, 1, "format"),
    (
        "the question",
        stated("run/manifest.json", lambda m: m["question"].update(articles="grammatical")),
        *(PROBE, 1, "another study: its articles"),
    ),
    (
        "the model",
        stated("run/manifest.json", lambda m: m["models"]["m"].update(fingerprint="0" * 64)),
        *(ANALYZE, 0, "12 of 12 prompts have no share"),
    ),
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, stored_probe: Path, stored_personas: Path) -> Path:
    """Runs of both measurements, with page and figures, and one with another job beside them."""
    home = tmp_path_factory.mktemp("tampered")
    shutil.copytree(stored_personas, home / "personas")
    shutil.copytree(stored_probe, home / "run")
    shutil.copy(stored_probe.parent / "m.jsonl", home)
    bk.report(home / "run", watcher=bk.Silent())
    asked: dict[str, Any] = {"jobs": ["pilot"], "templates": "1-3", "watcher": bk.Silent()}
    bk.probe(f"m=scripted:{home / 'm.jsonl'}", **asked, out=home / "pilot")
    shutil.copytree(home / "run", home / "other")
    return home


@pytest.mark.parametrize(
    ("change", "words", "code", "says"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_what_is_said_of_a_run_that_somebody_tampered_with(
    change: Change,
    words: tuple[str, ...],
    code: int,
    says: str,
    home: Path,
    tmp_path: Path,
    console: Cli,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copy = tmp_path / "home"
    shutil.copytree(home, copy)
    monkeypatch.chdir(copy)
    change(copy)
    before = {path: path.read_bytes() for path in copy.rglob("*.csv")}
    said = console(*words)
    heard = " ".join(f"{said.out} {said.err}".split())
    assert code == said.code, heard
    assert "Traceback" not in heard
    assert re.search(says, heard), heard
    if code:  # a command that refuses changes nothing
        assert before == {path: path.read_bytes() for path in copy.rglob("*.csv")}
