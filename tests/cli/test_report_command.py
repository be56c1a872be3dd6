"""`biaskit report` as a user meets it: what it writes, prints and refuses."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.command import Cli
from fakes.many_models import make_personas_run, make_probe_run

pytestmark = pytest.mark.slow

OCCUPATIONS = ("nurse", "mechanic", "cook", "lawyer")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A probe run and a personas run of the same two models, made once."""
    folder = tmp_path_factory.mktemp("runs")
    probe = make_probe_run(folder / "probe", 2, OCCUPATIONS)
    return probe, make_personas_run(folder / "personas", 2, OCCUPATIONS, 6)


@pytest.fixture(autouse=True)
def folder(quick_folder: Path) -> Path:
    return quick_folder


def said_on(page: Path) -> str:
    """The text of a page without its marks."""
    without = re.sub(r'<sup.*?</sup><span class="hidden">.*?</span>|<[^>]+>', "", page.read_text("utf-8"))
    return html.unescape(without)


def test_two_runs_make_a_page_figures_and_latex_in_the_comparisons_folder(
    console: Cli, runs: tuple[Path, Path]
) -> None:
    said = console("report", *runs)
    assert 0 == said.code, said.err
    (made,) = Path("biaskit-runs").glob("compare-*")
    assert {"report.html", "figures", "latex", "tables", "manifest.json"} <= {p.name for p in made.iterdir()}
    assert f"Page: {made / 'report.html'}" in said.out
    drawn = {path.name for path in (made / "figures").iterdir()}
    assert {"jobs.svg", "jobs.png"} <= drawn
    assert "scatter.svg" in drawn
    assert {"explicit-bias.tex", "association.tex"} <= {p.name for p in (made / "latex").iterdir()}
    assert max(len(line) for line in said.out.split("Page:")[0].splitlines()) <= 80
    # A comparison's folder stands for its runs, and the same command makes the same page.
    assert 0 == console("report", made).code
    first = (made / "report.html").read_bytes()
    assert 0 == console("report", made).code
    assert first == (made / "report.html").read_bytes()
    assert all(str(run.name) in first.decode() for run in runs)


IMPORTED = """
import sys
from biaskit.cli import main
try:
    main()
finally:
    others = ("biaskit.compare", "biaskit.measures.personas.", "biaskit.measures.pairs.", "scipy", "pandas")
    also = [name for name in sys.modules if name.startswith(others)]
    # What a kind says of its absence is in its findings.
    print("also imported:", [name for name in also if ".findings" not in name])
"""


@pytest.mark.process
def test_the_report_of_one_probe_run_imports_no_comparison_and_no_other_measurement(tmp_path: Path) -> None:
    run = make_probe_run(tmp_path / "probe", 1, OCCUPATIONS[:2])
    command = [sys.executable, "-c", IMPORTED, "report", str(run)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert "also imported: []" in done.stdout, done.stderr


def test_without_texts_no_text_is_in_the_page(console: Cli, runs: tuple[Path, Path]) -> None:
    rows = (runs[1] / "personas.jsonl").read_text("ascii").splitlines()
    texts = [json.loads(row)["text"] for row in rows]

    def pages_texts(*options: str) -> int:
        assert 0 == console("report", runs[1], "--out", "page.html", *options).code
        held = said_on(Path("page.html"))
        return sum(text[:40] in held for text in texts)

    assert pages_texts() > 0
    assert 0 == pages_texts("--no-texts")
    assert "left out by --no-texts" in Path("page.html").read_text("utf-8")


def test_json_has_the_findings(console: Cli, runs: tuple[Path, Path]) -> None:
    made = json.loads(console("report", runs[0], "--out", "x/page.html", "--format", "json").out)
    assert "x/page.html" == made["page"]
    assert Path("x/page.html").is_file()
    assert {"topic", "question", "verdict", "text", "measured_with", "weak"} == set(made["findings"][0])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "report.pfd=true"], "report.pfd is not a key of the page. Did you mean 'report.pdf'?"),
        (["--set", "report.pdf=maybe"], "--set: report.pdf = maybe"),
        (["--set", "reference=men"], "reference is 'men': write one of none, parity, workforce, both"),
        (["--group", "a"], "--group"),
        (["--aliases", "nothing.csv"], "nothing.csv"),
    ],
)
def test_a_mistake_is_one_line(
    console: Cli, runs: tuple[Path, Path], arguments: list[str], said: str
) -> None:
    done = console("report", *runs, *arguments)
    assert done.code in (1, 2)
    assert said in done.err
    assert 1 == done.err.count("\n")
