"""Text, LaTeX, JSON and CSV of documents: hostile texts, a checker of LaTeX, golden files.

Golden files lie in tests/golden; the README there says where they come from and how they are renewed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from fakes.golden import golden
from fakes.latex import check_latex
from hypothesis import example, given, settings
from hypothesis import strategies as st
from places import TESTS

from biaskit.common.foreign import visible
from biaskit.report.reasons import because
from biaskit.report.render.document import Document, Heading, PaperTable, TitledTable
from biaskit.report.render.latex import escape, latex_files, render_latex
from biaskit.report.render.text import cell_width, render_text

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "&amp; &lt;b&gt;",
    "abc\u202ecod\u2066x",
    "\x1b[31mred\x07\r\n\t",
    r"$\frac{1$",
    r"\input{/etc/passwd}\write18{rm}",
    r"\end{tabular}\end{table}",
    r"a_b%&#$\{}~^ 50 % off",
    "=cmd|' /C calc'!A0",
    "+1-1",
    "@SUM(A1)",
    "-2",
    "[5pt] *x (y)",
    "w" * 60,
    "many words " * 400,
    "日本語 mötör 😀 \u0301 e\u0301 ŧ ĸ",
    "\ud800 lone",
    "{{7*7}} ${HOME} %s [bold]x[/bold]",
    "''quoted'' --- ``back`` ,, ?` !` << >>",
    '"straight"',
    "",
)


def table_of(*cells: str, wide: bool = False) -> TitledTable:
    """A table whose title, headings, cells and note are these texts."""
    rows = tuple((cell, cell, "-1.5") for cell in cells)
    head = ((Heading(""), Heading(cells[0], 2)), (Heading(cells[-1]), Heading("b"), Heading("n")))
    return TitledTable(cells[0], head, rows, " ".join(cells), n_text=2, wide=frozenset({1} if wide else ()))


# --- a checker of LaTeX --------------------------------------------------------------------------------


def test_the_checker_sees_what_is_wrong() -> None:
    good = render_latex(Document((table_of("a", "b"),)))
    assert check_latex(good) == 1
    row = next(line for line in good.split("\n") if line.startswith("a & a"))
    for bad in (
        good.replace(row, row.replace("&", "", 1)),
        good.replace(row, "[" + row),
        good.replace(row, row.replace("a", r"\input{x}\foo")),
        good.replace(row, row.replace("a", "$x", 1)),
        good.replace(row, row.replace("a", "50 % off")),
        good.replace(row, row.replace("a", "a_b")),
        good.replace(row, row.replace("a", "😀")),
        good.replace(r"\end{tabular}", ""),
        good.replace(r"\caption{", r"\caption", 1),
    ):
        with pytest.raises(AssertionError):
            check_latex(bad)


# --- hostile texts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("wide", [False, True])
def test_hostile_texts_are_latex_that_compiles(wide: bool) -> None:
    for text in HOSTILE:
        document = Document((table_of(text, "x", wide=wide), table_of("x", text)), (text,), text)
        assert check_latex(render_latex(document)) == 2
    whole = Document((table_of(*HOSTILE, wide=wide),))
    assert check_latex(render_latex(whole)) == 1


@settings(max_examples=150, deadline=None)
@given(st.lists(st.text(), min_size=1, max_size=4))
def test_any_text_is_latex_that_compiles(cells: list[str]) -> None:
    check_latex(render_latex(Document((table_of(*cells, wide=True),), tuple(cells), cells[0])))


def test_latex_shows_a_text_as_it_stands() -> None:
    assert escape(r"$\frac{1$") == r"\$\textbackslash{}frac\{1\$"
    assert escape("50 % of a_b & c") == r"50 \% of a\_b \& c"
    assert escape("a--b ''c''") == "a-{}-b '{}'c'{}'"
    assert escape("Zoë Đorđe Ž") == "Zoë Đorđe Ž"
    assert escape("x\u202ey\x1bz😀\ud800") == "xU+202EyU+001BzU+1F600U+D800"
    assert escape("–0.3 ± 2") == r"\textendash{}0.3 $\pm$ 2"


def test_a_hyphen_is_a_minus_before_a_number_and_nowhere_else() -> None:
    table = TitledTable(
        "t",
        ((Heading("a"), Heading("b"), Heading("c")),),
        (("self-3", "-0.25 to -.5", "2026-01-02"),),
    )
    assert r"self-3 & $-$0.25 to $-$.5 & 2026-01-02 \\" in render_latex(Document((table,)))


def test_latex_guards_the_beginning_of_a_row() -> None:
    latex = render_latex(Document((table_of("[5pt]", "*x"),)))
    assert "\n{}[5pt] & [5pt] & $-$1.5 \\\\" in latex
    assert "\n{}*x & *x" in latex


def test_a_note_or_a_signature_never_leaves_its_comment() -> None:
    latex = render_latex(Document((), ("a\nb\u2028\\input{x}\x85c",), "s\r\\end{document}"))
    assert [line[:1] for line in latex.split("\n") if line] == ["%", "%", "%"]
    assert all("\\input" not in line for line in latex.splitlines() if not line.startswith("%"))


@pytest.mark.parametrize("wide", [False, True])
def test_hostile_texts_keep_the_lines_of_a_text_table(wide: bool) -> None:
    document = Document((table_of(*HOSTILE, wide=wide),), HOSTILE, HOSTILE[4])
    text = render_text(document)
    shown = text.encode("utf-8").decode("utf-8")
    hidden = {c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    assert hidden == {"\n"}
    if not wide:
        rows = text.split("\n\n")[0].split("\n")[4:]
        assert len([row for row in rows if row.endswith("-1.5")]) == len(HOSTILE)
    assert r"\x1b[31mred\x07\r\n\t" in text
    assert r"abc\u202ecod\u2066x" in text


@given(st.text())
@example("\x7f\t")
@example("a\u0301\uff21")
def test_the_width_of_a_text_is_that_of_its_characters(text: str) -> None:
    marks = sum(bool(unicodedata.combining(c)) for c in text)
    wide = sum(unicodedata.east_asian_width(c) in "WF" and not unicodedata.combining(c) for c in text)
    assert cell_width(text) == len(text) - marks + wide


def fits(text: str, width: int) -> None:
    """No line is wider, and none ends in a space."""
    for line in text.split("\n"):
        assert cell_width(line) <= width, line
        assert line == line.rstrip()


def holds(text: str, texts: Iterable[str]) -> None:
    """Every word and number of the texts is in it, whole."""
    words = Counter(word for one in texts for word in visible(one).split())
    assert not words - Counter(text.split())


WORD = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=1, max_size=9)
WORDS = st.lists(WORD, max_size=30).map(" ".join)
NUMBER = st.text("0123456789.±– ", max_size=14).map(str.strip)


@st.composite
def any_table(draw: st.DrawFn) -> TitledTable:
    """Up to four columns of words and sixteen of numbers, with or without headings over them."""
    n_text, blocks = draw(st.integers(1, 4)), draw(st.lists(st.integers(1, 4), max_size=4))
    n = n_text + sum(blocks)
    row = st.tuples(*[WORDS] * n_text, *[NUMBER] * (n - n_text))
    header = [tuple(Heading(draw(WORDS)) for _ in range(n))]
    if blocks and draw(st.booleans()):
        over = (Heading(draw(WORDS), n_text), *(Heading(draw(WORDS), span) for span in blocks))
        header.insert(0, over)
    rows = tuple(draw(st.lists(row, max_size=4)))
    return TitledTable(draw(WORDS), tuple(header), rows, draw(WORDS), n_text)


OVER_WORDS = TitledTable(  # a heading over the words themselves once made the table a column too wide
    "",
    (
        (Heading("00000000"), Heading(""), Heading("", 3), Heading("", 4), Heading("0000000〰一")),
        tuple(
            Heading(text)
            for text in ("", "", "", "0⺀", "0000⺀", "0000000", "00000000", "000000⺀⺀", "00000000⺀", "")
        ),
    ),
    (),
    "",
    1,
)


@settings(max_examples=150, deadline=None)
@example(OVER_WORDS, 80)
@given(any_table(), st.sampled_from([80, 100, 132]))
def test_any_table_fits_the_terminal_and_loses_nothing(table: TitledTable, width: int) -> None:
    text = render_text(Document((table,)), width)
    fits(text, width)
    headings = [heading.text for line in table.header for heading in line]
    holds(text, [table.title, table.note, *headings, *(cell for row in table.rows for cell in row)])


def test_a_path_longer_than_a_line_stays_whole_on_its_own() -> None:
    path = "/runs/" + "deep/" * 30
    table = TitledTable("Runs", ((Heading("run"), Heading("rows")),), ((path, "7 of 9"), ("short", "1 of 2")))
    lines = render_text(Document((table,), (f"see {path} for more",))).split("\n")
    assert 2 == lines.count(path)
    assert max(len(line) for line in lines if line != path) <= 80


def test_a_table_of_many_rows_goes_over_pages_and_repeats_its_headings() -> None:
    head = ((Heading("Job"), Heading("n")),)
    rows = tuple((f"job {i}", str(i)) for i in range(63))
    latex = render_latex(Document((TitledTable("Jobs", head, rows, note="n: texts"),)))
    assert check_latex(latex) == 1
    assert r"\begin{longtable}{lr}" in latex
    assert latex.count(r"Job & n \\") == 2
    assert r"\usepackage{booktabs,longtable}" in latex
    short = render_latex(Document((TitledTable("Jobs", head, rows[:40]),)))
    assert r"\begin{tabular}" in short
    assert "longtable" not in short


def test_a_broad_table_is_scaled_and_a_list_gets_a_paragraph() -> None:
    head = (tuple(Heading(f"column {i}") for i in range(12)),)
    broad = render_latex(Document((TitledTable("t", head, (("1.234",) * 12,)),)))
    assert r"\resizebox{\linewidth}{!}{%" in broad
    assert r"\usepackage{booktabs,graphicx}" in broad
    listed = render_latex(Document((table_of("a", "b", wide=True),)))
    assert r">{\raggedright\arraybackslash}p{0." in listed
    assert r"\usepackage{booktabs,array}" in listed
    assert check_latex(broad) == check_latex(listed) == 1


def test_files_for_a_manuscript_have_labels_and_a_document_that_takes_them_all() -> None:
    one = PaperTable("gasp-table-13", table_of("a", "b"))
    files = latex_files([one, PaperTable("gasp-table-1", table_of("c")), one], "biaskit=1 | x\n\\end")
    assert list(files) == ["gasp-table-13.tex", "gasp-table-1.tex", "gasp-table-13-2.tex", "all-tables.tex"]
    for name, content in files.items():
        text = content.decode("utf-8")
        if name != "all-tables.tex":
            assert check_latex(text) == 1
            assert rf"\label{{tab:biaskit-{name.removesuffix('.tex')}}}" in text
            assert "% biaskit=1 | x \\end" in text
    whole = files["all-tables.tex"].decode()
    assert [f"{name}" for name in re.findall(r"\\input\{(.*)\}", whole)] == list(files)[:-1]
    assert check_latex(whole) == 0
    assert latex_files([]) == {}


def test_reasons_are_told_once_with_their_number() -> None:
    rows = [{"x": None, "reason": "a"}] * 3 + [{"x": 1.0, "reason": "b"}, {"x": None, "reason": "c"}]
    assert because(rows, "x") == " – not measured: a (3); c."
    assert because(rows[3:4], "x") == ""
    many = [{"x": None, "reason": f"r{i}"} for i in range(5)]
    assert because(many, "x") == " – not measured: r0; r1; r2; 2 other reasons."


# --- golden files --------------------------------------------------------------------------------------

DOCUMENT = Document(
    (
        TitledTable(
            "Shares of two models: % of the probability on the target words",
            (
                (Heading(""), Heading("female-dominated", 2), Heading("male-dominated", 2)),
                (Heading("Model"), *(Heading(text) for text in ("M", "F") * 2)),
            ),
            (("ash", "37.0 ± 1.6", "59.0", "[89.6]", "–"), ("a_b & c", "-0.5", "+0.5", "100.0", "0.0")),
            note="± standard error over 25 templates. – not measured: no sample matched.",
        ),
        TitledTable(
            "Marked words",
            ((Heading("Gender"), Heading("words"), Heading("n")),),
            (("women", ", ".join(f"word{i}" for i in range(30)), "30"), ("men", "(none)", "0")),
            n_text=2,
            wide=frozenset({1}),
        ),
    ),
    ("models have other prompt formats.", "3 cells have a low coverage"),
    "biaskit=1 | study=golden",
)


def test_a_fixed_document_is_what_its_golden_files_say() -> None:
    golden("document.tex", render_latex(DOCUMENT))
    assert check_latex(render_latex(DOCUMENT)) == 2


RUN = """
import json, os, re, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
os.fsync = lambda descriptor: None
from fakes.many_models import make_personas_run, make_probe_run
from biaskit.runs.collection import gather
from biaskit.measures.personas.printing.papers import paper_tables
from biaskit.measures.probe.printing import papers
from biaskit.report.render.document import Document
from biaskit.report.render.latex import latex_files, render_latex
from biaskit.report.render.text import render_text
from biaskit.workflow.analyze import result_of
from biaskit.tables.io import read_table_rows
out = Path(sys.argv[2])
jobs = ["nurse", "mechanic", "teacher", "lawyer", "cook"]
runs = [make_probe_run(Path("probe"), 2, jobs), make_personas_run(Path("personas"), 2, jobs, 6, quick=True)]
made = {}
for run in runs:
    document = result_of(run).document()
    cells = [cell for table in document.tables for row in table.rows for cell in row]
    made[f"{run.name}-cells.json"] = json.dumps(cells)
    for name, render in (("txt", render_text), ("tex", render_latex)):
        made[f"{run.name}-run.{name}"] = re.sub(r"biaskit=[0-9.a-z+]+", "biaskit=VERSION", render(document))
parts = {part.measurement: part for part in gather(runs).parts}
tables = papers(parts["probe"], {})
stored = {f.stem: read_table_rows(f) for f in Path("personas/tables").glob("*.csv")}
tables += paper_tables(stored, claim=parts["personas"].claim("gasp"))
for name, content in latex_files(tables).items():
    made[f"paper-{name}"] = content.decode("utf-8")
made["paper-tables.txt"] = render_text(Document(tuple(one.table for one in tables)))
for name, text in made.items():
    (out / name).write_bytes(text.encode("utf-8"))
"""
NOT_HELD = re.compile(r"paper-(clusters|tables).*|personas-run.*|.*\.txt|.*-cells.json")
# clusters are another library's


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, bytes]]:
    """What two processes with other hash seeds make of the same scripted runs."""
    running = []
    for seed in ("1", "2"):
        folder = tmp_path_factory.mktemp(f"seed{seed}")
        (folder / "out").mkdir()
        command = [sys.executable, "-c", RUN, str(TESTS), str(folder / "out")]
        environment = {**os.environ, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": "1"}
        running.append((folder, subprocess.Popen(command, cwd=folder, env=environment)))
    assert [process.wait(timeout=300) for _, process in running] == [0, 0]
    return [{f.name: f.read_bytes() for f in sorted((folder / "out").iterdir())} for folder, _ in running]


@pytest.mark.process
def test_two_processes_with_other_hash_seeds_print_the_same_bytes(
    two_processes: list[dict[str, bytes]],
) -> None:
    first, second = two_processes
    assert first == second
    assert len(first) > 15


@pytest.mark.process
def test_a_scripted_run_is_what_its_golden_files_say(two_processes: list[dict[str, bytes]]) -> None:
    for name, content in two_processes[0].items():
        text = content.decode("utf-8")
        if name.endswith(".tex"):
            check_latex(text)
        if name.endswith("-run.txt"):
            fits(text, 80)
            holds(text, json.loads(two_processes[0][f"{name[:-7]}cells.json"]))
        if not NOT_HELD.fullmatch(name):
            golden(name, text)


# --- the formats of commands ---------------------------------------------------------------------------


def say(command: str, *arguments: str) -> Result:
    """A command in this process."""
    result = CliRunner().invoke(import_module(f"biaskit.cli.{command}").command, list(arguments))
    assert result.exit_code == 0, result.output
    return result


def test_runs_in_every_format(tmp_path: Path) -> None:
    from fakes.many_models import make_probe_run

    run = make_probe_run(tmp_path / "r_1", 1, ["nurse"])
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "manifest.json").write_text("{")
    said = say("runs", str(tmp_path), "--format", "json")
    [entry] = json.loads(said.stdout)
    assert (entry["run"], entry["rows"], entry["planned"]) == (str(run), 50, 50)
    assert "torn" in said.stderr
    assert "torn" in say("runs", str(tmp_path)).stdout
    assert json.loads(say("runs", str(tmp_path / "nothing"), "--format", "json").stdout) == []


def test_corpora_in_every_format() -> None:
    from biaskit.corpora.sources import list_corpora

    overview = json.loads(say("corpora", "--format", "json").stdout)
    assert {one["name"] for one in overview["corpora"]} == {corpus.name for corpus in list_corpora()}
    for corpus in list_corpora():
        content = json.loads(say("corpora", corpus.name, "--format", "json").stdout)["corpus"]
        assert content["licence"] == corpus.licence
        assert all(file["text"] or file["kind"] == "recorded" for file in content["files"])
