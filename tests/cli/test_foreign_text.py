"""Foreign names come through rows, tables, DataFrames and terminal as what they are.

See reference/reasons#foreign-text.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import biaskit as bk
from biaskit.cli.output import print_result
from biaskit.cli.terminal import emit
from biaskit.common.foreign import visible
from biaskit.errors import BiaskitError, CorpusError, UsageError
from biaskit.measures.probe.command import ProbeResult, probe
from biaskit.models.spec import split_label
from biaskit.tables.io import read_table_rows as read_table_rows

ESCAPES = "\x1b[31mred\x1b[0m"
OVERRIDE = "abc\u202ecod\u2066x"
SURROGATE = "lone \ud83d surrogate"
NAMES = [
    "[bold]nurse[/bold]",
    "[/]",
    "[link=http://x]x[/link]",
    ESCAPES,
    "bell\x07 back\x08space",
    "c1 \x9b31m",
    OVERRIDE,
    "عربي, עברית",
    "日本の看護師",
    "e\u0301 combining",
    "fam\u200dily \U0001f469\u200d\u2695\ufe0f",
    "\ufeffmark",
    "soft\u00adhyphen",
    "tag\U000e0041",
    "NA",
    "None",
    "nan",
    "null",
    "inf",
    "1e5",
    "007",
    "1.0",
    "true",
    "yes",
    "a,b",
    'say "no"',
    '"',
    "''",
    "semi;colon\ttab",
    "back\\slash \\n \\u202e",
    "{job} %s $HOME `x`",
    "[JOB]",
    "<b>x</b> & y",
    "x" * 10_000,
    "[red]" * 100,
]
"""What a user's list may call an item: none of it is refused, none of it is changed."""

# Not in a file of UTF-8, but in an argument of the command line or a call from Python.
LABELS = [name for name in NAMES if "=" not in name]

HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
ALLOWED = "\n\u200c\u200d"
ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))


def write_study(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """A study of these items: the options that name its files."""
    jobs = folder / "jobs.csv"
    with jobs.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item", "group", "share"])
        writer.writerows([name, ("one", "[i]two[/i]")[i % 2], "0.5"] for i, name in enumerate(names))
    templates = folder / "templates.txt"
    templates.write_text("Who is the [JOB]?\nWhat of the [JOB]?\n", encoding="utf-8")
    sets = folder / "sets.toml"
    sets.write_text('[groups]\n"[b]he" = ["He"]\n"NA" = ["She"]\n', encoding="utf-8")
    return {"jobs": str(jobs), "templates": str(templates), "target_words": str(sets)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("foreign")
    lines = [
        {"contains": ESCAPES, "log_probs": {" She": -0.5}},
        {"log_probs": {" He": -0.75, " She": -2.5, " he": -4.0}},
    ]
    (folder / "m.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def result(folder: Path) -> ProbeResult:
    """A run over every name, stored and read once."""
    return probe(
        f"{OVERRIDE}=scripted:{folder / 'm.jsonl'}", **write_study(folder, NAMES), out=folder / "run"
    )


def without(names: Sequence[str]) -> list[str]:
    """Names as a prompt holds them: the slot of a name is not filled again."""
    return [f"Q: Who is the {name}?\nA:" for name in names]


# --- through a run ----------------------------------------------------------------------------------


def test_rows_hold_each_name_as_it_is(result: ProbeResult) -> None:
    content = (result.path / "probe.jsonl").read_bytes()
    rows = [json.loads(line) for line in content.split(b"\n") if line]
    assert content.isascii()
    assert NAMES == [row["job"] for row in rows if row["template_id"] == 1]
    assert without(NAMES) == [row["prompt"] for row in rows if row["template_id"] == 1]
    assert {OVERRIDE} == {row["model"] for row in rows}


def test_csv_tables_hold_each_name_as_it_is(result: ProbeResult) -> None:
    with (result.path / "tables" / "probe_jobs.csv").open(encoding="utf-8", newline="") as file:
        csv.field_size_limit(10**6)
        rows = list(csv.DictReader(file))
    assert NAMES == [row["job"] for row in rows]
    assert {"one", "[i]two[/i]"} == {row["job_group"] for row in rows}
    assert {"[b]he_share", "NA_share", "[b]he_minus_NA"} <= set(rows[0])


def test_a_foreign_name_moves_no_number_of_another(folder: Path, result: ProbeResult, tmp_path: Path) -> None:
    alone = probe(
        f"scripted:{folder / 'm.jsonl'}", **write_study(tmp_path, [ESCAPES, "baker"]), out=tmp_path / "r"
    )
    cells = alone.prompts.set_index(["job", "template_id"])["coverage"]
    whole = result.prompts.set_index(["job", "template_id"])["coverage"]
    assert cells[(ESCAPES, 1)] == whole[(ESCAPES, 1)]
    assert cells[("baker", 1)] == whole[("NA", 1)]
    assert cells[("baker", 1)] != cells[(ESCAPES, 1)]


@pytest.mark.parametrize("output_format", ["text", "latex", "csv", "json"])
def test_nothing_that_moves_a_cursor_or_turns_a_line_reaches_stdout(
    result: ProbeResult,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    output_format: str,
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_result(result, output_format)
    out = capsys.readouterr().out
    assert [] == [c for c in out if unicodedata.category(c) in HIDDEN and c not in ALLOWED]


def test_a_notebook_shows_names_as_text_not_as_html(folder: Path, tmp_path: Path) -> None:
    label = "<script>alert(1)</script>"
    shown = probe(
        f"{label}=scripted:{folder / 'm.jsonl'}", jobs="nurse,plumber", templates="1", out=tmp_path / "r"
    )
    html = shown._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_a_label_that_is_no_text_is_refused() -> None:
    for label in (SURROGATE, "\udcff\udcfe"):
        with pytest.raises(UsageError, match="UTF-8"):
            split_label(f"{label}=scripted:m.jsonl")


@pytest.mark.parametrize("label", LABELS, ids=lambda label: ascii(label[:20]))
def test_a_model_can_have_any_label(folder: Path, tmp_path: Path, label: str) -> None:
    found = probe(
        f"{label}=scripted:{folder / 'm.jsonl'}",
        jobs="nurse,plumber",
        templates="1",
        bias_type="implicit",
        out=tmp_path / "r",
    )
    assert {label} == set(found.prompts["model"]) == set(found.groups["model"])
    assert [label] == list(json.loads((tmp_path / "r" / "manifest.json").read_text("ascii"))["models"])
    again = bk.load(tmp_path / "r")
    assert {label} == set(again.jobs["model"])
    assert {label} == {r["model"] for r in read_table_rows(tmp_path / "r" / "tables" / "probe_groups.csv")}
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        print_result(found, "text")
    assert visible(label, keep="\n") in out.getvalue()


# --- refused at reading -----------------------------------------------------------------------------


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
@pytest.mark.parametrize("place", ["item", "group", "model", "gender"])
def test_a_name_that_a_spreadsheet_would_run_is_refused(
    folder: Path, tmp_path: Path, start: str, place: str
) -> None:
    name = f"{start}cmd()"
    options = write_study(tmp_path, ["baker", name if place == "item" else "miller"])
    if place == "group":
        content = Path(options["jobs"]).read_text(encoding="utf-8")
        Path(options["jobs"]).write_text(
            content.replace("[i]two[/i]", f'"{name}"'), encoding="utf-8", newline=""
        )
    if place == "gender":
        Path(options["target_words"]).write_text(
            f'[groups]\n{json.dumps(name)} = ["He"]\nher = ["She"]\n', encoding="utf-8"
        )
    label = name if place == "model" else "m"
    with pytest.raises(BiaskitError) as refused:
        probe(f"{label}=scripted:{folder / 'm.jsonl'}", **options, out=tmp_path / "r")
    assert 2 == refused.value.exit_code
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    "name", ["two\nlines", "a\x0bb", "a\x85b", "a\u2028b", "a\u2029b", " lead", "trail ", "", "   "]
)
def test_a_name_of_several_lines_or_of_nothing_is_refused(folder: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(CorpusError):
        probe(
            f"m=scripted:{folder / 'm.jsonl'}", **write_study(tmp_path, ["baker", name]), out=tmp_path / "r"
        )
    with pytest.raises(BiaskitError):
        probe(f"{name}=scripted:{folder / 'm.jsonl'}", jobs="nurse,plumber", out=tmp_path / "r")
    assert not (tmp_path / "r").exists()


# --- the one function that prints -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain [bold] %s {x}", "plain [bold] %s {x}"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\rb\x08\x7f\x9b", r"a\rb\x08\x7f\x9b"),
        ("tab\there", r"tab\there"),
        ("a\u202eb\u2066c\u200fd", r"a\u202eb\u2066c\u200fd"),
        ("\ud800 \udcff", r"\ud800 \udcff"),
        ("a\u2028b\u2029c\x85d", r"a\u2028b\u2029c\x85d"),
        ("\ufeffx\u00ady", r"\ufeffx\xady"),
        ("two\nlines", "two\nlines"),
        ("日本 é e\u0301 ± –", "日本 é e\u0301 ± –"),
        ("\U0001f469\u200d\u2695", "\U0001f469\u200d\u2695"),
        ("\U000e0041", r"\U000e0041"),
        ("", ""),
    ],
)
def test_the_terminal_shows_what_is_hidden_as_escapes(text: str, expected: str) -> None:
    assert expected == visible(text, keep="\n")


@given(ANY_TEXT)
@example("".join(chr(i) for i in range(0x250)))
def test_the_terminal_never_emits_a_control_character(text: str) -> None:
    shown = visible(text, keep="\n")
    assert [] == [c for c in shown if unicodedata.category(c) in HIDDEN and c not in ALLOWED]
    assert text.count("\n") == shown.count("\n")
    shown.encode("utf-8")


@given(ANY_TEXT)
@example("[bold]x[/bold] [/] \x1b[31m")
def test_emit_prints_any_text_on_any_terminal(text: str) -> None:
    for encoding in ("utf-8", "ascii", "cp1252"):
        raw = io.BytesIO()
        stream = io.TextIOWrapper(raw, encoding=encoding, newline="")
        with contextlib.redirect_stdout(stream):
            emit(text)
        stream.flush()
        shown = visible(text, keep="\n")
        assert shown.encode(encoding, "backslashreplace") == raw.getvalue()


@pytest.mark.parametrize("name", [n for n in NAMES if len(n) < 1000], ids=lambda name: ascii(name[:20]))
def test_an_error_shows_a_name_in_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    from biaskit.cli import main

    arguments: list[Any] = ["biaskit", "probe", f"scripted:{folder / 'm.jsonl'}", "--study", f"x{name}"]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as ended:
        main()
    assert 2 == ended.value.code
    err = capsys.readouterr().err
    assert 1 == err.count("\n")
    assert [] == [c for c in err if unicodedata.category(c) in HIDDEN and c not in ALLOWED]
