"""A new kind of measurement is one folder and one line: the folder `toy/mentions` and its name in `KINDS`.

Prints how many files of the package it needs to change: none but that line.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import biaskit as bk
from biaskit import measurement, measures
from biaskit.tables import schema

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "toy" / "mentions"
LIKES = {"nurse": 4, "pilot": 1, "cook": 4, "judge": 3}
"""Texts of four about each job that mention the word."""
QUIET: Any = {"watcher": bk.Silent()}


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A copy of the package with the toy's folder and its line in `KINDS`; returns where it lies."""
    package = Path(measurement.__file__).parent
    copy = tmp_path / "site" / "biaskit"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(FOLDER, copy / "measures" / "mentions")
    registry = copy / "measurement.py"
    text = registry.read_text("utf-8")
    assert text.count('    "personas",\n)') == 1
    registry.write_text(text.replace('    "personas",\n)', '    "personas",\n    "mentions",\n)'), "utf-8")
    for name in ("corpora", "configs", "docs"):
        (copy.parent / name).symlink_to(package.parent / name)
    return copy.parent


COMMANDS = """
import json, sys
from click.testing import CliRunner
from biaskit.cli import cli

said = {}
for words in json.loads(sys.argv[1]):
    done = CliRunner().invoke(cli, words.split(), terminal_width=120)
    if done.exit_code:
        raise SystemExit(f"{words}: {done.output} {done.exception!r}")
    said[words] = done.output

import biaskit as bk
found = bk.mentions(sys.argv[2], word="quick", out="python", watcher=bk.Silent())
said["python"] = f"{type(found).__name__} {found.table('mentions')['share'].tolist()}"
print(json.dumps(said))
"""


def run(site: Path, folder: Path, commands: list[str], model: str) -> dict[str, str]:
    """Run commands, then the function, with the changed package; returns what each said."""
    made = subprocess.run(
        [sys.executable, "-c", COMMANDS, json.dumps(commands), model],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(site)},
        check=False,
    )
    assert made.returncode == 0, made.stderr
    said: dict[str, str] = json.loads(made.stdout.splitlines()[-1])
    return said


def script(folder: Path, name: str, likes: dict[str, int]) -> str:
    lines = []
    for job, n in likes.items():
        texts = [f"The {job} is {'kind' if i < n else 'quick'}." for i in range(4)]
        lines.append({"contains": f"about a {job}", "texts": texts})
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "ascii")
    return f"{name}=scripted:{name}.jsonl"


def test_a_new_kind_is_a_folder_and_a_line(toy: Path, tmp_path: Path, capsys: Any) -> None:
    work = tmp_path / "work"
    work.mkdir()
    a, b = script(work, "a", LIKES), script(work, "b", dict.fromkeys(LIKES, 0))
    commands = [
        "--help",
        "mentions --help",
        f"mentions {a} --jobs nurse,pilot --out run --yes",
        f"mentions {a} --out run --yes",  # more jobs in the same folder
        f"mentions {b} --out other --yes",
        "compare run other --out compared",
        "report run --out page/report.html",
        "export run --to card --out card",
        "runs .",
        "verify run --yes",
        *(f"mentions {a} --shard {number}/2 --out shard-{number} --yes" for number in (1, 2)),
        "analyze shard-1 shard-2 --out whole",
    ]
    commands += [
        f"mentions {a} --out run --yes --format csv",
        f"mentions {a} --word quick --out quick --yes",
        "compare run quick --out words --verbose",
        "export run --to inspect --out logs",
    ]
    said = run(toy, work, commands, a)
    assert "mentions " in said["--help"]
    assert "--word WORD" in said["mentions --help"]
    assert "--texts N" in said["mentions --help"]
    first, resumed = commands[2:4]
    assert "Texts that mention the word" in said[first]
    assert "{" not in said[first]
    assert "mentions the word" in said[resumed]
    assert 16 == len((work / "run" / "mentions.jsonl").read_text("ascii").splitlines())
    rows = (work / "run" / "tables" / "mentions.csv").read_text("utf-8").splitlines()
    assert rows[0] == "model,job,share,ci_low,ci_high,n_texts,reason"
    assert rows[1].startswith("a,nurse,1.0,")
    assert "the share of texts that mention the word is" in said["compare run other --out compared"]
    page = (work / "page" / "report.html").read_text("utf-8")
    assert "Texts that mention the word" in page
    assert "A word may be mentioned without being said of the person." in page
    assert "mentions" in next((work / "card").glob("*.md")).read_text("utf-8")
    assert "16  " in said["runs ."]
    assert "16 of 0" not in said["runs ."]
    assert "agrees" in said["verify run --yes"]
    for number in (1, 2):
        assert 8 == len((work / f"shard-{number}" / "mentions.jsonl").read_text("ascii").splitlines())
    assert rows == said[f"mentions {a} --out run --yes --format csv"].splitlines()[-len(rows) :]
    assert "word differs between the runs: " in said["compare run quick --out words --verbose"]
    assert (work / "logs" / "mentions-a-mentions.eval").is_file()
    assert "mentions: 16 texts" in page
    assert "No texts were generated" not in page
    assert "template None" not in page
    assert rows == (work / "whole" / "tables" / "mentions.csv").read_text("utf-8").splitlines()
    assert "RunResult [0.0, 0.75, 0.0, 0.25]" == said["python"]
    lines = sum(len(path.read_text("utf-8").splitlines()) for path in FOLDER.iterdir())
    with capsys.disabled():
        n = len(list(FOLDER.iterdir()))
        print(f"\nthe toy: one folder of {n} files, {lines} lines; 0 existing files and 1 line in KINDS")


def test_a_kind_that_is_not_there_is_unknown() -> None:
    assert "mentions" not in {schema.SCHEMAS[name].owner for name in schema.SCHEMAS}
    assert not (Path(measures.__file__).parent / "mentions").exists()
