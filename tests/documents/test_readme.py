"""What the documents say is so: commands, keys, tables, links, Python, examples."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
from places import ROOT, anchors, is_written, module_of

import biaskit as bk
from biaskit.measurement import measurements
from biaskit.study.config import describe_keys, study_names
from biaskit.tables.schema import SCHEMAS

generated = module_of(ROOT / "docs" / "generated.py")
DOCUMENTS = [
    path
    for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
    if is_written(path) and "_site" not in path.parts
]
TEXTS = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in DOCUMENTS}
README = TEXTS["README.md"]
SITE = "https://github.com/biaskit/biaskit/blob/main/"
"""Where the README's links lead, so that they work on an index page too."""
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.S | re.M)
BLOCKS = [(name, *match.groups()) for name, text in TEXTS.items() for match in FENCE.finditer(text)]
SCRIPTS = [block for _, kind, block in BLOCKS if "sh" == kind]
SCRIPTS += [module_of(ROOT / "docs" / "gallery.py").__doc__ or ""]
SHELL = [line.split("   #")[0].strip() for block in SCRIPTS for line in block.splitlines()]
COMMANDS = sorted(
    {found[1] for line in SHELL if (found := re.search(r"(?:^|&& )(?:\.venv/bin/)?(biaskit .*)$", line))}
)
PYTHON = [(name, block) for name, kind, block in BLOCKS if kind == "python"]
MOST_BYTES = {"README.md": 5_000, "docs/architecture.md": 12_000, "docs/verification.md": 8_000}
MOST_OF_A_PAGE, MOST_OF_ALL = 15_000, 205_000


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


# --- commands and code --------------------------------------------------------------------------------


def test_no_document_holds_an_unfilled_place() -> None:
    assert [] == [found for text in TEXTS.values() for found in re.findall(r"@[A-Z_]+@", text)]


def test_every_page_is_short_enough_to_be_read() -> None:
    sizes = {name: len(text.encode()) for name, text in TEXTS.items() if "/" in name or "README.md" == name}
    assert {} == {name: size for name, size in sizes.items() if size > MOST_BYTES.get(name, MOST_OF_A_PAGE)}
    assert MOST_OF_ALL >= sum(sizes.values())


@cache
def help_of(name: str) -> str:
    known = run([sys.executable, "-m", "biaskit", name, "--help"], ROOT)
    assert 0 == known.returncode, known.stderr
    return known.stdout


def test_blocks_of_commands_are_labelled() -> None:
    begun = re.compile(r"(?:biaskit|bash|git|pip) ")
    assert [] == [(name, block) for name, kind, block in BLOCKS if not kind and begun.match(block)]


def test_commands_were_found() -> None:
    assert {"biaskit probe demo --bias-type implicit"} < set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_options_that_exist(command: str) -> None:
    _, name, *words = shlex.split(command)
    options = [word.partition("=")[0] for word in words if word.startswith("--")]
    assert [] == [option for option in options if not re.search(rf"{option}\b", help_of(name))]


def test_every_key_that_a_command_sets_exists() -> None:
    known = {key for kind in measurements() for key, _, _ in describe_keys(kind.study)}
    written = {key for text in TEXTS.values() for key in re.findall(r"--set ([\w.]+)=", text)}
    named = ("margin.", "gender_codes.")
    assert set() == {key for key in written if key not in known and not key.startswith(named)} - {
        "key.sub",
        "KEY",
    }


@pytest.mark.parametrize(("name", "block"), PYTHON)
def test_the_python_shown_uses_public_names(name: str, block: str) -> None:
    used = {
        node.attr
        for node in ast.walk(ast.parse(block))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and "bk" == node.value.id
    }
    assert used or name.startswith("docs/tutorials/"), "a tutorial's blocks go on from each other"
    assert used <= {*bk.__all__, "ModelCallback"}


def test_toml_and_scripts_shown_can_be_read() -> None:
    shown = [block for _, kind, block in BLOCKS if kind == "toml"]
    assert shown
    for block in shown:
        tomllib.loads(block)
    scripts = [block for _, _, block in BLOCKS if block.startswith('{"contains"')]
    assert scripts
    for line in "".join(scripts).splitlines():
        json.loads(line)


# --- the reference that is made from code ----------------------------------------------------------------


def test_the_reference_has_every_study_key_table_and_column() -> None:
    keys, tables = generated.keys(), generated.tables()
    assert [] == [name for name in study_names() if f"| `{name}` |" not in keys]
    parts = {kind.name: generated.measurement(kind) for kind in measurements()}
    for kind in measurements():
        part = parts[kind.name].partition('<a id="keys"></a>')[2]
        assert [key for key, _, _ in describe_keys(kind.study)] == re.findall(r"</a>`([\w.]+)`", part)
    described = re.findall(r"^## (\w+)\.csv$", "\n".join([*parts.values(), tables]), re.M)
    assert sorted(SCHEMAS) == sorted(described)
    assert list(SCHEMAS) == re.findall(r"^\| \[(\w+)\.csv\]", tables, re.M), "its table of contents"
    assert "| `srb` | number |" in parts["personas"]
    assert "| `min_coverage` ¹ | `0.01` | 0 to 1 |" in re.sub("<a[^>]*></a>", "", parts["probe"])


# --- links ----------------------------------------------------------------------------------------------


LINKING = TEXTS | {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (ROOT / "benchmarks").glob("*.md")
}


@pytest.mark.parametrize("name", LINKING)
def test_every_link_leads_somewhere(name: str) -> None:
    lost = []
    generated.write(ROOT / "docs" / "reference")
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", LINKING[name])):
        base = ROOT if target.startswith(SITE) else (ROOT / name).parent
        path, _, anchor = target.removeprefix(SITE).partition("#")
        if path.startswith(("https://", "http://")):
            continue
        file = (base / path).resolve() if path else ROOT / name
        is_checked = anchor and file.is_file() and file.stem not in ("cli", "python")  # Sphinx makes theirs
        if not file.exists() or (is_checked and anchor not in anchors(file.read_text(encoding="utf-8"))):
            lost.append(target)
    assert [] == lost


@pytest.mark.parametrize("name", TEXTS)
def test_an_anchor_stands_once(name: str) -> None:
    found = re.findall(r'<a id="([^"]+)"></a>', TEXTS[name])
    assert sorted(set(found)) == sorted(found)


def test_every_file_that_is_named_is_there() -> None:
    named = {
        one for text in TEXTS.values() for one in re.findall(r"(?:tests|examples|\.ci)/[\w/.-]*\w", text)
    }
    assert [] == [name for name in sorted(named) if not (ROOT / name).exists()]


def test_one_version_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert [bk.__version__] == re.findall(r"^version: (.*)$", citation, re.M)
    assert f"## [{bk.__version__}]" in TEXTS["CHANGELOG.md"]


def test_biaskits_own_entry_says_what_the_citation_file_says() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8").partition("references:")[0]
    stated = dict(re.findall(r'^(?:  - )?([a-z-]+): "?([^"\n]+)"?$', citation, re.M))
    entry = dict(re.findall(r"^  (\w+) = \{+([^{}]+)\}+,$", bk.cite().partition("\n}")[0], re.M))
    assert entry == {
        "author": stated["name"],
        "title": stated["title"],
        "year": stated["date-released"][:4],
        "version": stated["version"],
        "url": stated["url"],
    }
    assert ("biaskit contributors", "2026-11-26") == (stated["name"], stated["date-released"])


# --- examples ---------------------------------------------------------------------------------------------


def example(name: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "examples" / f"{name}.py"), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
    )


@pytest.fixture
def model(tmp_path: Path) -> str:
    line = {"log_probs": {" She": -0.5, " He": -2.0}, "texts": ["She is a nurse.", "He is a nurse."]}
    (tmp_path / "m.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    return "scripted:m.jsonl"


@pytest.mark.process
@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("researcher", "\\begin{table}"),
        ("auditor", "\nPage: biaskit-runs/compare-"),
        ("check", "The new model is equivalent within ±0.05"),
        ("any_sdk", "\nmechanic, biography: "),
        ("training", "\nFigure: training.png"),
    ],
)
def test_an_example_runs_without_an_argument(name: str, printed: str, tmp_path: Path) -> None:
    done = example(name, tmp_path)
    assert 0 == done.returncode, done.stderr
    assert "Traceback" not in done.stderr
    assert printed in done.stdout


@pytest.mark.process
def test_the_training_of_the_example_moves_its_bias_apart(tmp_path: Path) -> None:
    done = example("training", tmp_path, "moved.png")
    shares = re.findall(r"female-dominated ([\d.]+) .*, male-dominated ([\d.]+)", done.stdout)
    apart = [float(women) - float(men) for women, men in shares]
    assert 6 == len(apart), done.stderr
    assert 0.2 > abs(apart[0])
    assert 0.5 < apart[-1]
    assert (tmp_path / "moved.png").stat().st_size > 10_000


@pytest.mark.process
@pytest.mark.parametrize(("name", "status"), [("researcher", 0), ("auditor", 0), ("check", 4)])
def test_an_example_takes_a_model(name: str, status: int, model: str, tmp_path: Path) -> None:
    done = example(name, tmp_path, model)
    assert status == done.returncode, done.stderr


@pytest.mark.process
def test_the_auditor_takes_texts_and_the_check_stored_runs(model: str, tmp_path: Path) -> None:
    texts = ["text,gender,occupation"]
    for i in range(8):
        for words in ("She is a warm {} and she is in the town", "He is a calm {} and he is in the city"):
            gender = "woman" if words.startswith("She") else "man"
            texts += [f'"{words.format("nurse")}, {i}.",{asked},nurse' for asked in (gender, "")]
    (tmp_path / "t.csv").write_text("\n".join(texts) + "\n", encoding="utf-8")
    done = example("auditor", tmp_path, "t.csv")
    assert "\nPage: biaskit-runs/texts-" in done.stdout, done.stderr
    for out in ("old", "new"):
        bk.probe(
            f"{out}=scripted:{tmp_path / 'm.jsonl'}", jobs="1-3,21-23", templates="1-3", out=tmp_path / out
        )
    done = example("check", tmp_path, "new", "old", "0.1")
    assert 0 == done.returncode, done.stdout + done.stderr
