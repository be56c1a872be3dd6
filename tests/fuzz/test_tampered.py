"""A run that somebody tampered with: what biaskit says of it, and where it cannot know.

A checksum is no signature. Who changes a row and sums it anew, or a table and its record alike, is believed
as long as what stands there fits the study: those cases are here too, so that nobody takes them for safe.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fakes.command import Cli

from biaskit.files import digest_of
from biaskit.runs.rows import row_line
from fuzz.common import personas_run, probe_run

pytestmark = pytest.mark.usefixtures("no_waiting")

Row = dict[str, Any]
Change = Callable[[Path], object]
CHECKSUM = r"line 3: it does not fit its checksum: something changed it\. Restore the file"
WORDS_OF_ALARM = ("checksum", "left out", "changed", "not part of", "made again", "not the model", "twice")


def rows(change: Callable[[list[Row]], object], *, summed: bool = False) -> Change:
    """Change the list of rows in place; `summed`: each gets a checksum that fits, as a forger would do it."""

    def act(run: Path) -> None:
        (path,) = (run / name for name in ("probe.jsonl", "generations.jsonl") if (run / name).exists())
        found = [json.loads(line) for line in path.read_text("ascii").splitlines()]
        change(found)
        lines = [row_line(row) if summed else json.dumps(row) for row in found]
        path.write_text("".join(line + "\n" for line in lines), "ascii")

    return act


def third(**more: Any) -> Callable[[list[Row]], object]:
    return lambda found: found[2].update(more)


def rarer(found: list[Row]) -> None:
    she = next(e for e in found[2]["expressions"] if e["text"] == " She")
    she["log_prob"] -= 0.5


def certain(found: list[Row]) -> None:
    found[2]["expressions"][0]["log_prob"] = -0.01


def exchanged(found: list[Row]) -> None:
    """Two prompts, the one in the other's place."""
    found[2]["prompt"], found[3]["prompt"] = found[3]["prompt"], found[2]["prompt"]


def other_group(found: list[Row]) -> None:
    found[2]["expressions"][0]["group"] = "female"


def manifest(change: Callable[[dict[str, Any]], object]) -> Change:
    def act(run: Path) -> None:
        content = json.loads((run / "manifest.json").read_text("ascii"))
        change(content)
        (run / "manifest.json").write_text(json.dumps(content), "ascii")

    return act


def another_model(content: dict[str, Any]) -> None:
    content["models"]["m"]["fingerprint"] = "0" * 64


def table(run: Path, *, known: bool = False) -> None:
    """Edit a table by hand; `known`: its digest in analysis.json too."""
    path, record = run / "tables/tests.csv", run / "tables/analysis.json"
    content = path.read_bytes().replace(b"0.5", b"0.9")
    path.write_bytes(content)
    stated = json.loads(record.read_bytes())
    if known:
        stated["files"]["tests.csv"] = digest_of(content)
        record.write_text(json.dumps(stated), "ascii")


def write(name: str, content: str) -> Change:
    return lambda run: (run / name).write_text(content, "utf-8")


def linked(run: Path) -> None:
    (run / "probe.jsonl").rename(run.parent / "elsewhere.jsonl")
    (run / "probe.jsonl").symlink_to(run.parent / "elsewhere.jsonl")


def foreign_row(run: Path) -> None:
    """A sound row of a run with another job."""
    other = next(
        line
        for line in (run.parent / "pilot/probe.jsonl").read_text("ascii").splitlines()
        if '"job":"pilot"' in line
    )
    with (run / "probe.jsonl").open("a", encoding="ascii") as file:
        file.write(f"{other}\n")


@dataclass(frozen=True)
class Case:
    """One way to tamper, the command that meets it, what it says and whether numbers follow the change."""

    change: Change
    words: tuple[str, ...]
    code: int
    says: str = ""  # a pattern; none: biaskit cannot know, and says nothing
    why: str = ""  # it cannot know
    follows: bool = False  # tables are made of what was changed
    engine: str = "probe"


ANALYZE, SKIP = ("analyze", "RUN"), ("analyze", "RUN", "--set", "skip_bad_lines=true")
COMPARE, REPORT = ("compare", "RUN", "OTHER", "--out", "comparison"), ("report", "RUN")
PROBE = ("probe", "m=scripted:m.jsonl", "--jobs", "nurse,plumber", "--templates", "1-3", "--out", "RUN")
FORGER = "who can sum a row anew can make any row that fits"

CASES: Mapping[str, Case] = {
    # Rows, by a hand that knows nothing of checksums.
    "a number of a row": Case(rows(rarer), ANALYZE, 1, CHECKSUM),
    "a number of a row, left out": Case(
        rows(rarer), SKIP, 0, r"lines left out as no rows or changed: 1", follows=True
    ),
    "the words of a text": Case(rows(third(text="He is rude.")), ANALYZE, 1, CHECKSUM, engine="personas"),
    "the prompts of two rows": Case(
        rows(exchanged), ANALYZE, 1, CHECKSUM
    ),
    # Rows, by one who sums them anew.
    "another group, summed": Case(
        rows(other_group, summed=True), ANALYZE, 1, r"line 3: its expressions are not those of the study"
    ),
    "a number that cannot be, summed": Case(
        rows(certain, summed=True), ANALYZE, 1, r"expressions have a probability of 1\.\d+ together"
    ),
    "a row under a second key, summed": Case(
        rows(lambda found: found.append({**found[0], "key": "e" * 32}), summed=True),
        ANALYZE, 1, r"line 13: another row answers the same cell",
    ),
    "a number of a row, summed": Case(rows(rarer, summed=True), ANALYZE, 0, why=FORGER, follows=True),
    # Rows that are there twice, of others, gone, or without a checksum.
    "rows twice": Case(
        lambda run: (run / "probe.jsonl").write_bytes(2 * (run / "probe.jsonl").read_bytes()),
        ANALYZE, 0, r"rows that stand there twice, of which the first counts: 12",
    ),
    "a row of another run": Case(
        foreign_row, ANALYZE, 0, r"1 stored rows are not part of this question and were not used"
    ),
    "half of the rows gone": Case(
        rows(lambda found: found.__delitem__(slice(6, None))),
        ANALYZE, 0, r"6 of 12 cells have no share; probe_cells\.csv gives each reason", follows=True,
    ),
    "all rows gone": Case(
        lambda run: (run / "probe.jsonl").unlink(), ANALYZE, 1, r"no probe\.jsonl: nothing was stored there"
    ),
    "the rows behind a link": Case(linked, PROBE, 1, r"probe\.jsonl is a symbolic link"),
    # Tables, page, figures.
    "a table": Case(table, COMPARE, 0, r"tests\.csv is not as it was written\. All tables are made again"),
    "a table and its digest": Case(
        lambda run: table(run, known=True), COMPARE, 1, r"analysis\.json was changed after the analysis"
    ),
    "a table gone": Case(
        lambda run: (run / "tables/probe_jobs.csv").unlink(), COMPARE, 0, r"probe_jobs\.csv is gone"
    ),
    "the record gone": Case(
        lambda run: (run / "tables/analysis.json").unlink(), COMPARE, 1, r"has no tables yet: `biaskit ana"
    ),
    "the page is somebody's": Case(
        write("report.html", "<h1>mine</h1>"), REPORT, 1, r"report\.html is there and is no page of biaskit's"
    ),
    "a figure": Case(
        write("figures/groups.svg", "<svg/>"), REPORT, 0, r"groups\.svg was changed by somebody else and is"
    ),
    # What was asked of whom.
    "the run's format": Case(manifest(lambda m: m.update(format=9)), ANALYZE, 1, r"manifest.json: format"),
    "the question": Case(
        manifest(lambda m: m["question"].update(articles="grammatical")), PROBE, 1,
        r"holds another study: its articles is grammatical, this command's is as-published",
    ),
    "the model's digest": Case(
        manifest(another_model), ANALYZE, 0,
        r"12 of 12 cells have no share.*12 stored rows are not part of this question", follows=True,
    ),
    "a key of the analysis": Case(
        manifest(lambda m: m["resolved"]["study"].update(coverage_floor=0.9)), ANALYZE, 0,
        r"in 6 of 12 cells the listed words have less than 0\.9", follows=True,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of both engines, with page and figures, and one with another job beside them."""
    import biaskit as bk

    home = tmp_path_factory.mktemp("tampered")
    bk.report(probe_run(home), watcher=bk.Silent())
    personas_run(home)
    asked: dict[str, Any] = {"jobs": ["pilot"], "templates": "1-3", "watcher": bk.Silent()}
    bk.probe(f"m=scripted:{home / 'm.jsonl'}", **asked, out=home / "pilot")
    return home


def numbers(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (run / "tables").glob("*.csv")}


@pytest.mark.parametrize("name", CASES)
def test_what_is_said_of_a_run_that_somebody_tampered_with(
    name: str, home: Path, tmp_path: Path, console: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, monkey = CASES[name], monkeypatch
    for source, copy in ((case.engine, "run"), ("probe", "other"), ("pilot", "pilot")):
        shutil.copytree(home / source, tmp_path / copy)
    shutil.copy(home / "m.jsonl", tmp_path)
    run, before = tmp_path / "run", numbers(home / case.engine)
    monkey.chdir(tmp_path)
    case.change(run)
    said = console(*({"RUN": "run", "OTHER": "other"}.get(word, word) for word in case.words))
    heard = " ".join(f"{said.out} {said.err}".split())
    assert case.code == said.code, heard
    assert "Traceback" not in heard
    assert bool(case.says) != bool(case.why), "either it says something, or it cannot know"
    if case.says:
        assert re.search(case.says, heard), heard
    else:
        assert not [word for word in WORDS_OF_ALARM if word in heard], heard
    if case.code == 0:
        assert (before != numbers(run)) == case.follows
    else:  # a command that refuses changes nothing
        assert case.follows is False
