"""kill -9 at any moment, then the same command: nothing lost, nothing twice, the same tables.

See issue 3. Kills before any operation on a file, of every command, are in `tests/fuzz/test_kills.py`; with
fifty requests in flight in `tests/models/api/test_api_kill.py`.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
import shutil
from pathlib import Path

import pytest
from fakes.killed import Command, tables
from fakes.run_files import script as write_lines
from needs import require_demo_base, require_torch

from biaskit.measures.probe.design import resolve
from biaskit.measures.probe.requests import PlannedCells
from biaskit.models.options import LocalOptions
from biaskit.models.spec import open_scorer
from biaskit.study.config import load_study

pytestmark = pytest.mark.process

BATCH = 4
AT_A_TIME = ("--batch-size", str(BATCH))
CHEAP = ("--set", "permutations=19", "--set", "srb_seeds=1", "--set", "clusters=false")
Batches = list[set[str]]


def check_kills(command: Command, n_rows: int, *, seed: int, n_kills: int, pause_s: float = 0.01) -> None:
    """Kills at random moments of one run, each followed by the same command, until it ends.

    `pause_s`: a write's or a batch's time, so that some kills fall into a write, some between two.
    """
    command.finish("unbroken")
    unbroken = command.rows("unbroken")
    assert n_rows == len(unbroken)
    batches = planned_batches(command) if command.measurement == "probe" else None
    chance = random.Random(seed)
    # Random rows, in order, so that each start gets further than the last; the first before any row, the last
    # after all of them, while the tables are made.
    moments = [0, *sorted(chance.sample(range(1, 3 * n_rows // 4), n_kills - 2)), n_rows]
    before: list[bytes] = []
    killed = 0
    for moment in moments:
        pause = chance.uniform(0, 0.3 if moment in (0, n_rows) else pause_s)
        running, err = command.kill_at("killed", moment, pause)
        check_plan(err, batches, before)
        killed += running
        kept = command.kept("killed")
        assert before == kept[: len(before)], "a finished row was lost or changed"
        assert command.rows("killed").keys() <= unbroken.keys()
        before = kept
    assert n_kills == killed, "a start ended before its kill"
    check_plan(command.finish("killed"), batches, before)
    assert before == command.kept("killed")[: len(before)]
    after = command.rows("killed")
    assert unbroken == after
    assert tables(command.folder / "unbroken") == tables(command.folder / "killed")
    if batches is not None:  # in the order of the plan: a broken run keeps to the batches of an unbroken one
        assert [*unbroken] == [*after]
    manifest = json.loads((command.folder / "killed" / "manifest.json").read_text("ascii"))
    assert [BATCH] == [entry["batch_size"] for entry in manifest["models"].values()]


def check_cut(command: Command, before_half: int = 0) -> None:
    """What a kill in the middle of a write leaves, so many bytes before half of the rows."""
    command.finish("unbroken")
    shutil.copytree(command.folder / "unbroken", command.folder / "cut")
    path = command.rows_file("cut")
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2 - before_half])
    kept = command.kept("cut")
    assert 0 < len(kept) < len(command.kept("unbroken"))
    said = command.finish("cut")
    if command.measurement == "probe":
        check_plan(said, planned_batches(command), kept)
    assert command.rows("unbroken") == command.rows("cut")
    assert tables(command.folder / "unbroken") == tables(command.folder / "cut")


def planned_batches(command: Command) -> Batches:
    """The batches of a model's plan as keys; the same requests give the same batches, whoever cuts them."""
    label, _, spec = command.arguments[0].rpartition("=")
    options = dict(zip(command.arguments[1::2], command.arguments[2::2], strict=True))
    names = {"--jobs": "jobs.select", "--templates": "templates.select", "--bias-type": "bias_type"}
    chosen = {names[option]: value for option, value in options.items() if option in names}
    with contextlib.chdir(command.folder):
        scorer = open_scorer(spec, label=label or spec, local=LocalOptions(batch_size=BATCH))
        design = resolve(load_study("occugender", chosen))
        asked = PlannedCells(design, label or spec, "raw", scorer.identity.fingerprint)
        return [{request.key for request in batch} for batch in scorer.plan_scores(asked.requests).batches]


def check_plan(err: str, batches: Batches | None, stored: list[bytes]) -> None:
    """A start asks for the batches that are not whole on disk, and at most one of them is there in part."""
    if batches is None:
        return
    kept = {json.loads(line)["key"] for line in stored}
    pending = [batch for batch in batches if batch - kept]
    assert sum(bool(batch & kept) for batch in pending) <= 1
    n_prompts = sum(map(len, batches))
    if found := re.search(r"([\d,]+) stored, ([\d,]+) to run; [\d,]+ tokens in ([\d,]+) batches", err):
        expected = (len(kept), n_prompts - len(kept), len(pending))
        assert expected == tuple(int(number.replace(",", "")) for number in found.groups())


# --- a scripted model: many rows, nothing but the store -------------------------------------------------


@pytest.fixture
def probe(tmp_path: Path) -> Command:
    nurse = {"contains": "nurse", "log_probs": {" She": -0.5}}
    write_lines(tmp_path / "m.jsonl", nurse, {"log_probs": {" He": -0.75}})
    return Command("probe", ("scripted:m.jsonl", "--jobs", "1-20", *AT_A_TIME), tmp_path)


WOMAN = "She is a {} who grew up in a small town and her friends like her careful hands. {}"
MAN = "He is a {} who grew up in a big city and his friends like him for his loud voice. {}"
DRAWN = 2 * (72 + 48 + 24) + 3 * 2 * 3 * 12
"""12 men of the nurse come with 72 samples, 12 women of the mechanic with 48, both of the cook with 24."""


@pytest.fixture
def personas(tmp_path: Path) -> Command:
    """Texts that differ from draw to sample; the nurse's men and the mechanic's women come slowly."""

    def listed(job: str, *, every: int, often: str, seldom: str) -> list[str]:
        words = ("garden", "music", "maths", "travel", "family", "chess", "boats", "birds", "paint", "ink")
        return [
            (seldom if i % every == 1 else often).format(job, f"{words[i % 10]} {words[i // 10 % 10]} {i}")
            for i in range(200)
        ]

    write_lines(
        tmp_path / "m.jsonl",
        {"contains": "nurse", "texts": listed("nurse", every=6, often=WOMAN, seldom=MAN)},
        {"contains": "mechanic", "texts": listed("mechanic", every=4, often=MAN, seldom=WOMAN)},
        {"texts": listed("person", every=2, often=WOMAN, seldom=MAN)},
    )
    asked = ("scripted:m.jsonl", "--occupations", "nurse,mechanic,cook", "--per-gender", "12")
    return Command("personas", (*asked, *AT_A_TIME, *CHEAP), tmp_path)


few_and_many = pytest.mark.parametrize("n_kills", [pytest.param(3, marks=pytest.mark.daily), 10])


@few_and_many
def test_kills_of_a_run_that_does_little_but_write(probe: Command, n_kills: int) -> None:
    check_kills(probe, 1000, seed=3, n_kills=n_kills)


@few_and_many
def test_kills_of_sampled_texts(personas: Command, n_kills: int) -> None:
    check_kills(personas, DRAWN, seed=9, n_kills=n_kills, pause_s=0.004)


@pytest.mark.parametrize("cut", [1, 2500])
def test_a_batch_of_which_a_part_was_stored_is_computed_whole_and_its_missing_rows_are_written(
    probe: Command, cut: int
) -> None:
    check_cut(probe, cut)


def test_an_unfinished_last_row_is_drawn_again(personas: Command) -> None:
    check_cut(personas)


# --- a saved transformers model -------------------------------------------------------------------------


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    require_torch()
    # Digests of files that live for one test do not belong into the user's cache.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    from fakes.tiny_models import save_model

    save_model(tmp_path / "model", "llama", "bpe")
    asked = ("tiny=hf:./model", "--jobs", "1-8", "--templates", "1-5")
    return Command("probe", (*asked, *AT_A_TIME), tmp_path)


def test_ten_kills_of_a_saved_model(tiny: Command) -> None:
    check_kills(tiny, 80, seed=5, n_kills=10)


def test_a_broken_run_computes_the_batches_of_an_unbroken_one_bit_for_bit(tiny: Command) -> None:
    check_cut(tiny)


# --- the demo model -------------------------------------------------------------------------------------


@pytest.mark.real_model
def test_ten_kills_of_the_demo_model(tmp_path: Path) -> None:
    require_demo_base()
    asked = ("demo-base", "--jobs", "1-8", "--templates", "1-5", "--bias-type", "implicit")
    check_kills(Command("probe", (*asked, *AT_A_TIME), tmp_path), 40, seed=7, n_kills=10)


@pytest.mark.real_model
def test_the_demo_model_killed_half_way_draws_the_texts_of_an_unbroken_run(tmp_path: Path) -> None:
    require_demo_base()
    asked = ("demo-base", "--occupations", "nurse,mechanic", "--per-gender", "5", "--max-samples", "60")
    command = Command("personas", (*asked, "--max-new-tokens", "12", "--yes", *CHEAP), tmp_path)
    command.finish("unbroken")
    unbroken = command.rows("unbroken")
    n_requested = 2 * 2 * 3 * 5
    assert n_requested + 2 * 2 * 5 <= len(unbroken) <= n_requested + 2 * 2 * 60
    assert command.kill_at("killed", len(unbroken) // 2, 0.0)[0]
    kept = command.kept("killed")
    assert len(unbroken) // 2 <= len(kept) < len(unbroken)
    command.finish("killed")
    assert kept == command.kept("killed")[: len(kept)]
    assert unbroken == command.rows("killed")
    assert tables(tmp_path / "unbroken") == tables(tmp_path / "killed")
