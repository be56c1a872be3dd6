"""A report's LaTeX files in a real TeX where one is installed; `fakes/latex.py` checks them everywhere."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from fakes.many_models import make_personas_run, make_probe_run
from needs import require_tex

import biaskit as bk
from biaskit.measures.personas.words.log_odds import FIXED_CALIBRATION_WORDS
from biaskit.report.render.document import Heading, PaperTable, TitledTable
from biaskit.report.render.latex import latex_files

pytestmark = [pytest.mark.slow, pytest.mark.process]

JOBS = ["nurse", "mechanic", "teacher", "lawyer"]
OWN_WORDS = {"F": "gentle graceful", "M": "bold rugged", "N": "fluid quirky"}
PAPERS = re.compile(r"Table|Figure|OccuGender|Mattern|GAS\(P\)")
SECONDS = 300

Files = Mapping[str, Mapping[str, str]]


def own_texts(home: Path, n: int = 24) -> Path:
    """An auditor's texts, each of which names its gender; each gender has words that the others lack."""
    rows = []
    for gender, words in OWN_WORDS.items():
        for i in range(n):
            said = [*FIXED_CALIBRATION_WORDS[i % 5 :], *words.split() * 2]
            word = f" word{chr(97 + i)} "  # of this text, in every run of five words: no text is a copy
            rows.append((gender, word.join(" ".join(said[j : j + 3]) for j in range(0, len(said), 3))))
    made = bk.analyze_texts(
        {
            "text": [text for _, text in rows],
            "gender": [gender for gender, _ in rows],
            "team_%": ["R & D", "$x_1$"] * (len(rows) // 2),
        },
        gender="gender",
        group_col="team_%",
        settings={"permutations": 99, "clusters": False, "srb_seeds": "1"},
        out=home / "own",
        watcher=bk.Silent(),
    )
    return made.path


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    home = tmp_path_factory.mktemp("runs")
    return {
        "probe": make_probe_run(home / "probe", 2, JOBS),
        "texts": make_personas_run(home / "texts", 2, JOBS, 6, quick=True),
        "own": own_texts(home),
    }


@pytest.fixture(scope="module")
def files(runs: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Files:
    """What a report of each run writes for a manuscript, by file name."""
    made: dict[str, dict[str, str]] = {}
    for kind, run in runs.items():
        page = tmp_path_factory.mktemp("page") / "report.html"
        report = bk.report(run, out=page, watcher=bk.Silent())
        made[kind] = {path.name: path.read_text("utf-8") for path in report.latex}
    return made


def compiled(folder: Path, files: Mapping[str, str]) -> str:
    """The log of two runs of pdfLaTeX over all-tables.tex; asserts that they end well."""
    program = require_tex()
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    command = [program, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "all-tables.tex"]
    for _ in range(2):  # a table over pages finds its widths in the second
        done = subprocess.run(
            command, cwd=folder, capture_output=True, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL
        )
        assert done.returncode == 0, done.stdout.decode("utf-8", "replace")[-2000:]
    assert (folder / "all-tables.pdf").read_bytes().startswith(b"%PDF")
    return (folder / "all-tables.log").read_text("latin-1")


def unfit(log: str) -> list[str]:
    """Lines that stick out of their column by more than a hair, floats over a page, lost references."""
    wide = [by for by in re.findall(r"Overfull \\hbox \(([0-9.]+)pt too wide\)", log) if float(by) > 1]
    return [*wide, *re.findall(r"Float too large.*|multiply.defined.*|There were undefined.*", log)]


@pytest.mark.parametrize("kind", ["probe", "texts", "own"])
def test_a_reports_tables_compile_and_fit(files: Files, tmp_path: Path, kind: str) -> None:
    assert [] == unfit(compiled(tmp_path, files[kind]))


def test_long_broad_and_hostile_tables_compile_and_fit(tmp_path: Path) -> None:
    made = [PaperTable(f"t{i}", table) for i, table in enumerate(extremes())]
    texts = {name: text.decode("utf-8") for name, text in latex_files(made).items()}
    assert [] == unfit(compiled(tmp_path, texts))


def extremes() -> Sequence[TitledTable]:
    head = (tuple(Heading(f"column {i}") for i in range(14)),)
    words = ", ".join(f"word{i}" for i in range(150))
    lists = tuple(("women", words, str(i)) for i in range(6))
    hostile = "100 % & $x_1$ \\end{table} {~^#} ‘a’ “b” – … ± − é ß 日本 \u202e [x] *"
    return (
        TitledTable("Long", ((Heading("job"), Heading("n")),), tuple((f"j{i}", "1") for i in range(120))),
        TitledTable("Broad", head, (("1234.567",) * 14,) * 9, note="n: texts"),
        TitledTable("Both", head, (("1234.56",) * 14,) * 100, note="n: texts"),
        TitledTable(
            "Lists",
            ((Heading("Gender"), Heading("words"), Heading("n")),),
            lists,
            note="z",
            n_text=2,
            wide=frozenset({1}),
        ),
        TitledTable(hostile, ((Heading(hostile), Heading("n")),), ((hostile, "-1.5"),) * 3, note=hostile),
    )


# --- what is in them ------------------------------------------------------------------------------------


def test_an_auditors_own_texts_have_their_words_and_captions_of_their_own(files: Files) -> None:
    own = files["own"]
    for who, word in (("women", "graceful"), ("men", "rugged"), ("non-binary", "fluid")):
        counted = rf"{who} & {word} & [0-9.]+ & .* & 48 & 24 & 24 & 0 & (24|48) \\\\"
        assert re.search(counted, own["marked-words.tex"])
    captions = re.findall(r"\\caption\{(.*?)\}\\", " ".join(own.values()))
    assert len(captions) == len(own) - 1
    assert [] == [caption for caption in captions if PAPERS.search(caption)]
    assert "words-of-groups.tex" in own
    assert [] == [name for name in own if re.search("table-|figure-|gasp|occugender|mattern", name)]
