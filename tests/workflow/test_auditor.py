"""An auditor's file from the command line to the page for her boss (tests/fakes/auditor.py)."""

from __future__ import annotations

import html
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fakes import auditor
from fakes.command import Cli

pytestmark = pytest.mark.slow

FAST = ("--set", "permutations=19", "--vectors", "marked-lists", "--no-clusters")
OPTIONS = ("--encoding", "cp1252", "--text-col", "Letter")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audit")
    (folder / "letters.csv").write_bytes(auditor.file_of())
    return folder


@pytest.fixture
def run(made: Path, console: Cli, tmp_path: Path) -> Path:
    """Her letters by department, analysed once."""
    if not (made / "run").exists():
        columns = (*OPTIONS, "--occupation-col", "Dept")
        said = console("analyze", "--texts", made / "letters.csv", *columns, *FAST, "--out", made / "run")
        assert 0 == said.code, said.err
        (made / "printed.txt").write_text(said.out, "utf-8")
    return Path(shutil.copytree(made / "run", tmp_path / "run"))


def first_screen(page: Path) -> str:
    above = page.read_text("utf-8").partition("<body>")[2].partition("</main>")[0].partition("<nav")[0]
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", above)).split())


def test_the_file_is_what_it_says() -> None:
    rows = auditor.rows()
    assert auditor.N_LETTERS == len(rows)
    assert rows == auditor.rows() != auditor.rows(seed=51)
    assert {"F", "M", "X", ""} == {row["Gender"] for row in rows}
    texts = [row["Letter"] for row in rows]
    assert (auditor.N_REFUSED, auditor.N_EMPTY) == (texts.count(auditor.REFUSED), texts.count(""))
    assert auditor.N_COPIES <= len(texts) - len({*texts}) - auditor.N_REFUSED - auditor.N_EMPTY + 2
    with pytest.raises(UnicodeDecodeError):
        auditor.file_of().decode()


def test_words_stand_once_under_their_row_and_what_is_not_there_has_no_table(run: Path, made: Path) -> None:
    printed = (made / "printed.txt").read_text("utf-8")
    assert re.search(r"\n  \(she\), \(her\)(, [a-z()]+)*\n", printed)
    assert 1 == printed.count("\n  first ten\n")
    assert 1 == printed.count("(she)") // len(auditor.WOMEN), "in the list of every department, once"
    assert "Subset Representational Bias (SRB)\nNot measured: no texts with a requested gender.\n" in printed
    assert "workforce" not in printed.partition("Words that mark")[0]
    assert printed.rstrip("\n").splitlines()[-1].endswith("--no-texts leaves them out.")


def test_the_first_screen_says_what_was_read_and_the_questions_are_of_texts(run: Path, console: Cli) -> None:
    said = console("report", run)
    assert said.out.rstrip("\n").splitlines()[-1].endswith("--no-texts leaves them out.")
    page = run / "report.html"
    today = datetime.now(UTC).date().isoformat()
    shown = first_screen(page)
    assert shown.startswith("To the findings Gender in letters.csv letters.csv, read on ")
    assert f"read on {today} · 400 texts · " in shown or "read on 20" in shown
    without = re.search(r"400 texts · (\d+) \((\d+) %\) without a gender", shown)
    assert without is not None
    assert round(int(without[1]) / 4) == int(without[2])
    content = page.read_text("utf-8")
    assert "Whom do these texts write about?</h2>" in content
    assert "How do they write?</h2>" in content
    assert "does it write" not in content
    assert (
        '<p class="nothing" id="table-1-srb"><strong>Subset Representational Bias score (SRB)</strong>'
        in content
    )
    assert "not measured (no texts with a requested gender)</p>" in content
    assert "may name people" in content
    assert "Müller" in content
    assert "--no-texts" not in console("report", run, "--no-texts").out.splitlines()[-1]
    without_texts = page.read_text("utf-8")
    assert "Müller" not in without_texts
    assert "This page shows texts" not in without_texts


def test_a_title_given_once_is_kept_until_another_is(run: Path, console: Cli) -> None:
    page = run / "report.html"
    for arguments, title in (
        (("--title", "Letters & genders\n2026"), "Letters &amp; genders\n2026"),
        ((), "Letters &amp; genders\n2026"),
        (("--title", "Other"), "Other"),
        ((), "Other"),
    ):
        assert 0 == console("report", run, *arguments).code
        assert f'<h1 dir="auto">{title}</h1>' in page.read_text("utf-8")
