"""kill -9 of `biaskit personas` at any moment, then the same command: the rows of an unbroken run."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from fakes.killed import LONGEST_S, Command, tables
from needs import require_demo_base

pytestmark = pytest.mark.process

CHEAP = ("--set", "permutations=19", "--set", "srb_seeds=1", "--set", "clusters=false")


def n_whole(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def kept_lines(path: Path) -> list[bytes]:
    """The lines that a killed writer finished."""
    return path.read_bytes().split(b"\n")[:-1] if path.exists() else []


def rows_of(path: Path) -> dict[str, dict[str, Any]]:
    """Key → row without when it was answered, after checking that no key stands twice."""
    rows = [json.loads(line) for line in path.read_text("ascii").splitlines()]
    found = {row["key"]: {k: v for k, v in row.items() if k not in ("answered_at", "sum")} for row in rows}
    assert len(rows) == len(found), "a row was written twice"
    return found


def kill_at(process: subprocess.Popen[bytes], path: Path, n_rows: int, pause_s: float) -> bool:
    """Kill a moment after the file has so many rows; whether the process still ran."""
    limit = time.monotonic() + LONGEST_S
    while process.poll() is None and n_whole(path) < n_rows:
        assert time.monotonic() < limit
        time.sleep(0.002)
    time.sleep(pause_s)
    running = process.poll() is None
    if running:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    return running


# --- a scripted model ---------------------------------------------------------------------------------

WOMAN = "She is a {} who grew up in a small town and her friends like her careful hands. {}"
MAN = "He is a {} who grew up in a big city and his friends like him for his loud voice. {}"


def script() -> list[dict[str, Any]]:
    """Texts that differ from draw to sample; the nurse's men and the mechanic's women come slowly."""

    def listed(job: str, *, every: int, often: str, seldom: str) -> list[str]:
        words = ("garden", "music", "maths", "travel", "family", "chess", "boats", "birds", "paint", "ink")
        return [
            (seldom if i % every == 1 else often).format(job, f"{words[i % 10]} {words[i // 10 % 10]} {i}")
            for i in range(200)
        ]

    return [
        {"contains": "nurse", "texts": listed("nurse", every=6, often=WOMAN, seldom=MAN)},
        {"contains": "mechanic", "texts": listed("mechanic", every=4, often=MAN, seldom=WOMAN)},
        {"texts": listed("person", every=2, often=WOMAN, seldom=MAN)},
    ]


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Its folder `unbroken` holds a run that nothing stopped."""
    tmp_path = tmp_path_factory.mktemp("scripted")
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(line) + "\n" for line in script()))
    arguments = ("scripted:m.jsonl", "--occupations", "nurse,mechanic,cook", "--per-gender", "12")
    command = Command("personas", (*arguments, "--batch-size", "4", *CHEAP), tmp_path)
    command.finish("unbroken")
    return command


@pytest.mark.parametrize("n_kills", [pytest.param(3, marks=pytest.mark.daily), 10])
def test_kills_at_random_moments_leave_the_rows_and_tables_of_an_unbroken_run(
    scripted: Command, n_kills: int
) -> None:
    unbroken = rows_of(scripted.rows_file("unbroken"))
    # 12 men of the nurse come with 72 samples, 12 women of the mechanic with 48, both of the cook with 24.
    drawn = 2 * (72 + 48 + 24) + 3 * 2 * 3 * 12
    assert drawn == len(unbroken)
    chance = random.Random(9)
    # Rows in order, so that each start gets further than the last; the first before any row, the last one
    # after all of them, while the tables are made.
    moments = [0, *sorted(chance.sample(range(1, drawn), n_kills - 2)), drawn]
    out = f"killed-{n_kills}"
    path = scripted.rows_file(out)
    before: list[bytes] = []
    killed = 0
    for moment in moments:
        pause = chance.uniform(0, 0.3) if moment in (0, drawn) else chance.uniform(0, 0.004)
        killed += kill_at(scripted.start(out), path, moment, pause)
        kept = kept_lines(path)
        assert before == kept[: len(before)], "a finished row was lost or changed"
        assert {json.loads(line)["key"] for line in kept} <= unbroken.keys()
        before = kept
    assert n_kills == killed, "a start ended before its kill"
    scripted.finish(out)
    assert before == kept_lines(path)[: len(before)]
    assert unbroken == rows_of(path)
    assert tables(scripted.folder / "unbroken") == tables(scripted.folder / out)


def test_an_unfinished_last_row_is_drawn_again(scripted: Command) -> None:
    """What a kill in the middle of a write leaves, at a byte of our choice."""
    unbroken, cut = scripted.folder / "unbroken", scripted.folder / "cut"
    content = scripted.rows_file("unbroken").read_bytes()
    cut.mkdir()
    (cut / "manifest.json").write_bytes((unbroken / "manifest.json").read_bytes())
    end = content.index(b"\n", len(content) // 2) + 1
    scripted.rows_file("cut").write_bytes(content[: end - 300])
    scripted.finish("cut")
    assert rows_of(scripted.rows_file("unbroken")) == rows_of(scripted.rows_file("cut"))
    assert tables(unbroken) == tables(cut)


# --- the demo model -----------------------------------------------------------------------------------


@pytest.mark.real_model
def test_the_demo_model_killed_half_way_draws_the_texts_of_an_unbroken_run(tmp_path: Path) -> None:
    require_demo_base()
    command = Command(
        "personas",
        (
            *("demo-base", "--occupations", "nurse,mechanic", "--per-gender", "5"),
            *("--max-samples", "60", "--max-new-tokens", "12", "--yes", *CHEAP),
        ),
        tmp_path,
    )
    command.finish("unbroken")
    unbroken = rows_of(command.rows_file("unbroken"))
    n_requested = 2 * 2 * 3 * 5
    assert n_requested + 2 * 2 * 5 <= len(unbroken) <= n_requested + 2 * 2 * 60
    path = command.rows_file("killed")
    assert kill_at(command.start("killed"), path, len(unbroken) // 2, 0.0)
    kept = kept_lines(path)
    assert len(unbroken) // 2 <= len(kept) < len(unbroken)
    assert command.finish("killed")
    assert kept == kept_lines(path)[: len(kept)]
    assert unbroken == rows_of(path)
    assert tables(tmp_path / "unbroken") == tables(tmp_path / "killed")
