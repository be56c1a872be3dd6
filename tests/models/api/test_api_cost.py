"""What asking costs: planned, metered, capped, and never more than was allowed (issue 5).

The test server counts for itself what it generated, whether or not the answer arrived: `server.cost`.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.api_cases import Ask, probe, usage_of
from fakes.api_server import AFTER_GENERATION, SLOW, ApiServer, Behaviour, Faults
from fakes.personas_runs import write_vectors
from fakes.run_files import environment
from hypothesis import given, settings
from hypothesis import strategies as st

from biaskit.errors import AskingStopped
from biaskit.models.api.meter import Meter, Purse
from biaskit.models.api.prices import Price
from biaskit.models.options import Account
from biaskit.runs import usage
from biaskit.runs.usage import Usage, spent

PRICE = (1000.0, 2000.0)
"""USD per million tokens, high enough that a few hundred short requests cost some dollars."""
PRICED = ("--price", "1000,2000")
LOST = [kind for kind in AFTER_GENERATION if kind not in SLOW]
"""Faults that lose an answer which was generated and is billed."""
CELLS = ("--bias-type", "implicit", "--jobs", "1-20", "--templates", "1-10", "--estimator", "top-k")
N_PROMPTS = 200
FEW = ("--bias-type", "implicit", "--jobs", "nurse,plumber", "--templates", "1-2", "--estimator", "top-k")


@pytest.fixture(autouse=True)
def folder(quick_folder: Path, no_environment: None, no_patience: None) -> Path:
    """A folder of its own, a clean environment and no patience."""
    return quick_folder


def cost(server: ApiServer) -> float:
    return server.cost(*PRICE)


# --- the cap ----------------------------------------------------------------------------------------------

HABITS = {
    "honest": ({}, None),
    "answers are lost": ({}, Faults(0.3, LOST)),
    "usage missing": ({"usage": "missing"}, None),
    "usage null": ({"usage": "null"}, Faults(0.2, ["reset", "500"])),
    "usage zero": ({"usage": "zero"}, Faults(0.2, LOST)),
}


@pytest.mark.slow
@pytest.mark.parametrize("habit", HABITS)
def test_a_cap_holds_with_fifty_requests_in_flight(cli: Ask, fifty: None, habit: str) -> None:
    behaviour, faults = HABITS[habit]
    with ApiServer(behaviour=Behaviour(**behaviour)) as server:
        assert cli(*probe(server, *FEW), *PRICED, "--max-cost", "50").code == 0
        assert cost(server) <= spent(Path("run"))  # what was not confirmed counts in full
        server.behaviour.latency_s, server.behaviour.latency_jitter = 0.3, 0.5
        server.faults = faults
        cap = spent(Path("run")) + 11
        said = cli(*probe(server, *CELLS), *PRICED, "--max-cost", f"{cap}", "--yes")
        assert server.in_flight_most == 50
        assert cost(server) <= cap
        assert said.code == 5
        assert f"--max-cost {cap:g} USD" in said.err
        assert "Raise --max-cost" in said.err
        assert 20 < len(said.rows) < N_PROMPTS
        assert (said.folder / "tables" / "probe_groups.csv").exists()
        usage = said.usage
        assert cost(server) <= usage["cost"] + usage["cost_unsure"] + 1e-6
        assert usage["cost"] + usage["cost_unsure"] <= cap
        # It does not stop early either: one request more might have passed the cap.
        dearest = re.search(r"the next request may cost (\d+\.\d+)", said.err)
        assert dearest is not None
        assert usage["cost"] + usage["cost_unsure"] + float(dearest[1]) + 1e-3 >= cap
        assert "promised" not in usage
        if habit == "honest":
            assert usage["cost"] == pytest.approx(cost(server), abs=1e-6)
            assert usage["cost_unsure"] == 0.0


@pytest.mark.slow
def test_the_same_command_with_a_higher_cap_goes_on(cli: Ask, fifty: None) -> None:
    with ApiServer(behaviour=Behaviour(latency_s=0.01)) as server:
        first = cli(*probe(server, *CELLS), *PRICED, "--max-cost", "9", "--yes")
        assert first.code == 5
        kept = (first.folder / "probe.jsonl").read_bytes()
        calls = server.number
        again = cli(*probe(server, *CELLS), *PRICED, "--max-cost", "9", "--yes")
        assert again.code == 5
        assert server.number == calls, "the cap counts what earlier starts spent"
        assert kept == (again.folder / "probe.jsonl").read_bytes()
        assert first.usage["cost"] == again.usage["cost"]
        higher = cli(*probe(server, *CELLS), *PRICED, "--max-cost", "12", "--yes")
        assert higher.code == 5
        assert len(first.rows) < len(higher.rows)
        assert cost(server) <= 12
        last = cli(*probe(server, *CELLS), *PRICED, "--max-cost", "90", "--yes")
        assert last.code == 0
        assert N_PROMPTS == len(last.rows) == len({row["key"] for row in last.rows})
        assert kept == (last.folder / "probe.jsonl").read_bytes()[: len(kept)]
        assert last.usage["cost"] == pytest.approx(cost(server), abs=1e-6)
        assert last.usage["calls"] == server.number
        assert last.usage["starts"] == 4


def test_batches_of_samples_have_the_same_cap_and_plan(cli: Ask, fifty: None) -> None:
    """A later start asks the missing batches, no more, and together they cost what the plan allows."""
    asked = (*FEW[:-1], "sampling", "--jobs", "1-5", "--templates", "1-2", *PRICED)
    with ApiServer(behaviour=Behaviour(latency_s=0.01)) as server:
        dry = cli(*probe(server, *asked), "--dry-run")
        begun = server.number
        found = re.search(
            r"100 to 1,000 samples, about .* in 10 to 100 calls, at most .* to ([\d.]+) USD", dry.plan
        )
        assert found is not None, dry.plan
        unbroken = cli(*probe(server, *asked), "--yes")
        needed = server.number - 2 * begun
        assert 10 < needed < 100
        assert unbroken.usage["cost"] < float(found[1])
        assert needed == len(unbroken.rows), "a batch is one request"
        rows = {row["key"]: row | {"answered_at": "", "sum": ""} for row in unbroken.rows}
        for path in (unbroken.folder / "probe.jsonl", unbroken.folder / "usage.json"):
            path.unlink()
        calls, capped = server.number, 0
        for cap in range(1, 200):
            said = cli(*probe(server, *asked), "--max-cost", f"{cap}", "--yes")
            assert said.code in (0, 5)
            assert said.usage.get("cost", 0.0) <= cap
            capped += said.code == 5
            if not said.code:
                break
        assert capped > 1
        assert rows == {row["key"]: row | {"answered_at": "", "sum": ""} for row in said.rows}
        assert needed == server.number - calls


def test_texts_have_the_same_cap(cli: Ask, fifty: None, folder: Path) -> None:
    """Several texts in one request reserve for all of them."""
    asked = (
        "--per-gender",
        "4",
        "--max-samples",
        "24",
        "--max-new-tokens",
        "12",
        "--occupations",
        "nurse,pilot,cook",
    )
    cheap = ("--set", "clusters=false", "--set", "permutations=19", "--set", "srb_seeds=1")
    cheap += ("--set", f"vectors={write_vectors(folder / 'vectors.txt')}")
    with ApiServer(behaviour=Behaviour(latency_s=0.01)) as server:
        server.faults = Faults(0.2, LOST)
        command = ("personas", f"toy=api:toy@{server.url}", *asked, *cheap, *PRICED)
        said = cli(*command, "--max-cost", "4", "--yes")
        assert said.code == 5
        assert cost(server) <= 4
        assert "--max-cost 4 USD" in said.err
        assert 3 < len(said.rows) < 100
        assert (said.folder / "tables" / "genders.csv").exists()
        server.faults = None
        assert cost(server) <= said.usage["cost"] + said.usage["cost_unsure"] + 1e-6
        whole = cli(*command, "--max-cost", "400", "--yes")
        assert whole.code == 0
        assert cost(server) <= whole.usage["cost"] + whole.usage["cost_unsure"] + 1e-6


@pytest.mark.slow
def test_the_models_of_a_run_share_its_cap(cli: Ask, fifty: None) -> None:
    with ApiServer() as one, ApiServer() as other:
        models = (f"toy=api:toy@{one.url}", f"two=api:toy@{other.url}")
        said = cli("probe", *models, *CELLS, *PRICED, "--max-cost", "14", "--yes")
        assert said.code == 5
        assert cost(one) + cost(other) <= 14
        assert cost(other) > 0.5, "the second was asked too"
        usage = usage_of(said.folder)
        assert cost(one) + cost(other) == pytest.approx(usage["toy"]["cost"] + usage["two"]["cost"], abs=1e-6)
        calls = one.number + other.number
        assert cli("probe", *models, *CELLS, *PRICED, "--max-cost", "14", "--yes").code == 5
        assert calls == one.number + other.number


def test_a_cap_below_the_first_question_sends_nothing(cli: Ask, folder: Path) -> None:
    with ApiServer() as server:
        said = cli(*probe(server, *FEW), *PRICED, "--max-cost", "0.001")
        assert said.code == 1
        assert "--max-cost 0.001 USD" in said.err
        assert server.calls == 0
        assert [] == list(folder.iterdir())


def test_repetitions_are_calls(cli: Ask) -> None:
    with ApiServer() as server:
        assert cli(*probe(server, *FEW), *PRICED).code == 0
        asked = server.number
        assert cli(*probe(server, *FEW), *PRICED).usage["calls"] == asked
        more = tuple("1-10" if word == "nurse,plumber" else word for word in FEW)
        server.faults = Faults(0.4, ["500", "429", "reset"], until=asked + 25)
        said = cli(*probe(server, *more), *PRICED)
    assert said.code == 0
    failed = server.outcomes["500"] + server.outcomes["429"] + server.outcomes["reset"]
    assert failed > 3
    assert said.usage["calls"] == server.number
    assert said.usage["retries"] == failed
    # A reset after the answer was made may have been billed, a refusal was not.
    assert (said.usage["cost_unsure"] > 0) == (server.outcomes["reset"] > 0)
    assert said.usage["cost"] + said.usage["cost_unsure"] >= cost(server)


def test_an_unknown_price_is_unknown_and_takes_no_cap(cli: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("biaskit.models.api.prices.is_loopback", lambda name: False)
    with ApiServer() as server:
        refused = cli(*probe(server, *FEW), "--max-cost", "5")
        assert refused.code == 2
        assert "Give --price IN,OUT" in refused.err
        assert server.requests == []
        said = cli(*probe(server, *FEW))
        assert said.code == 0
        assert "cost unknown (--price IN,OUT)" in said.plan
        assert said.usage["cost"] is None
        assert said.usage["cost_unsure"] is None
        assert cli(*probe(server, *FEW, "--jobs", "1-3"), *PRICED, "--max-cost", "50").code == 0


# --- the plan ---------------------------------------------------------------------------------------------


def timeless(plan: str) -> str:
    """A plan without the seconds that were measured."""
    return re.sub(r"about \d+ (s|min|h)", "about _", plan)


def test_the_plan_is_near_what_is_metered(cli: Ask, record_property: Callable[[str, object], None]) -> None:
    """The price is of prompts alone, so that the plan's sum is its tokens."""
    with ApiServer() as server:
        questions = cli(*probe(server, *FEW), "--price", "100000,0", "--dry-run")
        assert questions.code == 0
        before = server.prompt_tokens
        dry = cli(*probe(server, *CELLS), "--price", "100000,0", "--dry-run")
        doctor = server.prompt_tokens - before
        before = server.prompt_tokens
        said = cli(*probe(server, *CELLS), "--price", "100000,0", "--yes")
    metered = server.prompt_tokens - before - doctor
    found = re.search(r"about ([\d,]+) tokens in 200 calls, at most ([\d.]+) USD", said.plan)
    assert found is not None
    planned = int(found[1].replace(",", ""))
    assert planned == round(float(found[2]) * 10)
    ratio = planned / metered
    record_property("planned / metered prompt tokens", ratio)
    print(f"planned / metered prompt tokens: {planned:,} / {metered:,} = {ratio:.2f}")
    assert 1.0 <= ratio <= 1.25, "the plan says `at most`"
    assert timeless(dry.plan) == timeless(said.plan)


# --- the meter --------------------------------------------------------------------------------------------


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_the_sum_never_passes_the_cap_and_nobody_waits_for_ever(data: st.DataObject) -> None:
    cap = data.draw(st.floats(1.0, 40.0))
    sizes = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=60))
    chance = random.Random(data.draw(st.integers(0, 10_000)))
    told: list[float] = []
    # Amounts whose sum does not come back to exactly 0: who waits for that waits for ever.
    meter = Meter(Price(1e5 / 3, 0.0), cap / 30, Account(promise=told.append), purse=Purse())

    async def one(size: int) -> bool:
        try:
            reserved = await meter.reserve(size, 0)
        except AskingStopped:
            return False
        assert meter.committed <= meter.cap + 1e-9
        assert told[-1] + 1e-9 >= meter.spending.cost + meter.spending.cost_unsure + reserved
        assert told[-1] <= meter.cap + 1e-9
        for _ in range(chance.randrange(3)):
            await asyncio.sleep(0)
        used = (chance.randint(0, size), 0) if chance.random() < 0.6 else None
        meter.settle(reserved, used, billed=chance.random() < 0.7)
        return True

    async def every() -> list[bool]:
        return await asyncio.wait_for(asyncio.gather(*map(one, sizes)), 2)

    served = asyncio.run(every())
    spending = meter.spending
    assert meter.committed == pytest.approx(spending.cost + spending.cost_unsure)
    if sum(sizes) < cap:
        assert all(served)


def test_what_a_dead_process_promised_counts_as_spent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = folder / "run"
    usage.promise(run, "toy", 0.0, 2.5)
    assert not run.exists(), "a dry run writes nothing"
    run.mkdir()
    line_of = Usage(run, "toy")
    line_of.note({"calls": 3, "cost": 1.0, "cost_unsure": 0.25}, last=True)
    assert spent(run) == 1.25
    usage.promise(run, "toy", 1.25, 2.5)
    assert spent(run) == 1.25, "this process spends it itself"
    line_of.note({"calls": 4, "cost": 1.5, "cost_unsure": 0.25})
    monkeypatch.setattr(usage, "_THIS_PROCESS", usage._THIS_PROCESS + 1)
    assert spent(run) == spent(run, "toy") == 3.75
    again = Usage(run, "toy")
    again.note({"calls": 1, "cost": 0.5, "cost_unsure": 0.0}, last=True)
    line = json.loads((run / "usage.json").read_text("ascii"))["toy"]
    assert line["cost"] == 1.5
    assert line["cost_unsure"] == 2.75
    assert "promised" not in line
    assert spent(run) == 4.25


# --- a process that is killed -------------------------------------------------------------------------------


@pytest.mark.process
def test_a_cap_holds_over_kills(folder: Path) -> None:
    """What a killed start spent is known to the next one, down to the requests that were out."""
    cap = 32.0
    with ApiServer(behaviour=Behaviour(latency_s=0.25)) as server:
        asked = probe(server, *CELLS, *PRICED, "--max-cost", str(cap), "--yes", "--out", "run")
        command = [sys.executable, "-m", "biaskit", *asked]
        for _ in range(3):
            before = server.calls
            process = subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE)
            limit = time.monotonic() + 120
            while server.in_flight < 48 or server.calls < before + 48:
                assert process.poll() is None, process.stderr and process.stderr.read()
                assert time.monotonic() < limit
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            assert cost(server) <= spent(Path("run")) <= cap + 1e-6
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
        assert done.returncode == 5, done.stderr
        assert "--max-cost 32 USD" in done.stderr
        assert 5.0 < cost(server) <= cap
        usage = usage_of(Path("run"))["toy"]
        assert cost(server) <= usage["cost"] + usage["cost_unsure"] + 1e-6
        assert "promised" not in usage
