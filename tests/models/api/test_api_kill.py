"""kill -9 with fifty requests in flight, then the same command: nothing lost, nothing twice, little again.

The server runs here, the command in a process of its own: what was in flight at each kill is known to a
request. A request is asked again only where its sample or its cell had one in flight.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fakes import killed
from fakes.api_server import ApiServer, Behaviour, Received
from fakes.personas_runs import write_vectors

from biaskit.common.provenance import key_of

pytestmark = pytest.mark.process

KILLS = 3
AT_ONCE = 50
LONGEST_S = 240
LATENCY_S = 0.3
ON_ITS_WAY_S = 1.0
"""An answer that the server sent so shortly before a kill may not have been written yet."""
IMPLICIT = ("--bias-type", "implicit")


class Command(killed.Command):
    """`biaskit` against a server of this process, to be stopped and given again."""

    def __init__(self, server: ApiServer, kind_name: str, arguments: tuple[str, ...], folder: Path) -> None:
        super().__init__(kind_name, (f"toy=api:toy@{server.url}", *arguments), folder)
        self.server = server
        self.kills: list[float] = []

    def finish(self, out: str) -> str:
        self.server.behaviour.latency_s = 0.0
        return super().finish(out)

    def await_in_flight(self, process: subprocess.Popen[bytes], n: int, out: str) -> None:
        """Until a row is new and so many requests are out, those of doctor aside."""
        limit, stored = time.monotonic() + LONGEST_S, len(self.kept(out))
        while self.server.in_flight < n or len(self.kept(out)) == stored:
            assert process.poll() is None, f"it ended before its kill: {process.communicate()[1].decode()}"
            assert time.monotonic() < limit
            if (self.folder / out / "manifest.json").exists():
                self.server.behaviour.latency_s = LATENCY_S
            time.sleep(0.002)

    def kill(self, out: str) -> None:
        process = self.start(out)
        self.await_in_flight(process, AT_ONCE, out)
        os.killpg(process.pid, signal.SIGKILL)
        self.kills.append(time.monotonic())
        process.communicate()
        limit = time.monotonic() + 10
        while self.server.in_flight:  # until the server has noticed
            assert time.monotonic() < limit
            time.sleep(0.002)


def sent(received: Received) -> str:
    """What tells one request from another."""
    return json.dumps([received.path, received.body], sort_keys=True)


def is_out_at(received: Received, moment: float) -> bool:
    """Whether the server had a request and had not answered it."""
    return received.received <= moment and (received.answered is None or received.answered > moment)


def in_flight_at(received: Received, moment: float) -> bool:
    """Whether a request was out at a moment, or its answer on its way to the disk."""
    if received.received > moment:
        return False
    return received.answered is None or received.answered > moment - ON_ITS_WAY_S


def kills_of(command: Command) -> tuple[list[Received], list[list[Received]]]:
    """What was asked in all starts, and what again after each kill; in the end it is an unbroken run."""
    server = command.server
    command.finish("unbroken")
    unbroken = command.rows("unbroken")
    needed = Counter(sent(received) for received in server.requests if received.generates)
    start = len(server.requests)
    before: list[bytes] = []
    for _ in range(KILLS):
        command.kill("killed")
        kept = command.kept("killed")
        assert before == kept[: len(before)], "a finished row was lost or changed"
        assert {json.loads(line)["key"] for line in kept} <= unbroken.keys()
        before = kept
    assert 0 < len(before) < len(unbroken), "the kills did not fall into the run"
    command.finish("killed")
    assert before == command.kept("killed")[: len(before)]
    assert unbroken == command.rows("killed")
    folder = command.folder
    assert killed.tables(folder / "unbroken") == killed.tables(folder / "killed")
    asked = [received for received in server.requests[start:] if received.generates]
    assert needed.keys() == {sent(received) for received in asked}, "other requests than those of one run"
    return asked, [again_after(asked, needed, moment) for moment in command.kills]


def again_after(asked: list[Received], needed: Counter[str], moment: float) -> list[Received]:
    """Requests of before a kill that were sent once more after it, as they were first sent."""
    later = Counter(sent(received) for received in asked if received.received > moment)
    last = {sent(received): received for received in asked if received.received <= moment}
    return [received for name, received in last.items() if later[name] and needed[name] == 1]


def check_economy(command: Command, asked: list[Received], again: list[list[Received]]) -> None:
    """At most what was in flight at a kill is asked again after it."""
    for moment, repeated in zip(command.kills, again, strict=True):
        out = [received for received in asked if in_flight_at(received, moment)]
        assert len(out) >= AT_ONCE
        assert {sent(received) for received in repeated} <= {sent(received) for received in out}
    n_again = len(asked) - len({sent(received) for received in asked})
    print(f"asked again after {KILLS} kills: {n_again} requests of {len(asked)}")
    assert KILLS <= n_again


# --- texts ------------------------------------------------------------------------------------------------


def test_kills_of_sampled_texts(tmp_path: Path) -> None:
    """Algorithm 5's batches, two texts in a request: the samples are those of an unbroken run."""
    cheap = ("--set", "clusters=false", "--set", "permutations=19", "--set", "srb_seeds=1")
    arguments = (
        *("--per-gender", "24", "--max-samples", "48", "--max-new-tokens", "8"),
        *("--batch-size", "2", *cheap, "--set", f"vectors={write_vectors(tmp_path / 'vectors.txt')}"),
    )
    with ApiServer(behaviour=Behaviour()) as server:
        command = Command(server, "personas", arguments, tmp_path)
        asked, again = kills_of(command)
        check_economy(command, asked, again)
    rows = command.rows("killed").values()
    assert max(row["sample"] for row in rows if row["requested_gender"] is None) >= 24, "a second batch"
    assert {None} == {row["seed"] for row in rows}
    assert {2} == {received.body["n"] for received in asked[-100:]}


# --- probabilities ----------------------------------------------------------------------------------------


def row_by_seed(rows: dict[str, dict[str, Any]]) -> dict[int, str]:
    """Seed of each sample → the key of its row, which is one batch of a cell."""
    found = {}
    for key, row in rows.items():
        for number in range(row["samples"] * row["batch"], row["samples"] * (row["batch"] + 1)):
            drawn = hashlib.sha256(key_of({"cell": key, "draw": number}).encode()).hexdigest()
            found[int(drawn[:8], 16) >> 1] = key
    return found


def row_by_prompt(rows: dict[str, dict[str, Any]], received: Received) -> str:
    """The key of the row that a call belongs to, whose prompt ends in the target word it scores."""
    prompt = received.body["prompt"]  # a list is a question of doctor's
    begun = [key for key, row in rows.items() if isinstance(prompt, str) and prompt.startswith(row["prompt"])]
    return max(begun, key=lambda key: len(rows[key]["prompt"]), default="")


@pytest.mark.parametrize(
    "how",
    [
        ("echo", "--jobs", "1-40", "--templates", "1-4"),
        ("sampling", "--samples", "10", "--batch-size", "2", "--jobs", "1-40", "--templates", "1-5"),
    ],
    ids=["echo", "sampling"],
)
def test_kills_of_cells_of_several_calls(tmp_path: Path, how: tuple[str, ...]) -> None:
    """Of sampling at most the batches in flight are asked again, not what a cell had before them."""
    with ApiServer(behaviour=Behaviour()) as server:
        command = Command(server, "probe", (*IMPLICIT, "--estimator", *how), tmp_path)
        asked, again = kills_of(command)
    rows = command.rows("killed")
    if how[0] == "sampling":
        of_seed = row_by_seed(rows)
        row_of = {sent(r): of_seed.get(r.body.get("seed", -1), "") for r in asked}
        assert max(row["batch"] for row in rows.values()) > 3
    else:
        row_of = {sent(r): row_by_prompt(rows, r) if "prompt" in r.body else "" for r in asked}
    of_rows = [received for received in asked if row_of[sent(received)]]
    calls = Counter(row_of[name] for name in {sent(received) for received in of_rows})
    assert calls.keys() == rows.keys()
    assert min(calls.values()) >= 5, "a row is several calls"
    n_again = 0
    for moment, repeated in zip(command.kills, again, strict=True):
        out = {row_of[sent(received)] for received in of_rows if in_flight_at(received, moment)}
        own = {row_of[sent(received)] for received in repeated} - {""}
        assert own <= out, "a row without a request in flight was asked again"
        # The calls of a row are sent next to each other, so fifty of them are of few rows; of sampling a
        # cell's next batch goes ahead of other cells: 9 to 13 rows were seen, 19 beside other processes.
        # How many were on their way to the disk depends on the machine.
        unanswered = {row_of[sent(received)] for received in of_rows if is_out_at(received, moment)}
        few = AT_ONCE // min(calls.values()) + 8 if how[0] == "echo" else AT_ONCE // 2
        assert len(own & unanswered) <= few
        n_again += len(own)
    print(f"asked again after {KILLS} kills: {n_again} rows of {len(rows)}")
    assert KILLS <= n_again


# --- Ctrl-C -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sent_signal", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("kind_name", ["probe", "personas"])
def test_an_interrupted_run_ends_at_once_and_keeps_its_rows(
    tmp_path: Path, sent_signal: signal.Signals, kind_name: str
) -> None:
    asked = ("--batch-size", "1") if kind_name == "personas" else ("--estimator", "top-k")
    with ApiServer(behaviour=Behaviour()) as server:
        command = Command(server, kind_name, (*asked, "--price", "1000,1000", "--yes"), tmp_path)
        process = command.start("run")
        limit = time.monotonic() + LONGEST_S
        while len(command.kept("run")) < 20 and time.monotonic() < limit:
            time.sleep(0.002)
        server.behaviour.latency_s = 60.0  # nobody waits for what is under way
        number = -1
        while number != server.number or not server.in_flight:  # until all that can be out are
            assert process.poll() is None, process.communicate()[1].decode()
            assert time.monotonic() < limit
            number = server.number
            time.sleep(0.5)
        started = time.monotonic()
        process.send_signal(sent_signal)
        err = process.communicate(timeout=60)[1].decode()
        assert time.monotonic() - started < 5
        assert process.returncode == 130
        rows = command.rows("run")
        assert len(rows) >= 20
        said = f"Stopped. {len(rows)} finished rows are kept in run; rerun the command to resume."
        assert said in err
        assert "Traceback" not in err
        usage = json.loads((tmp_path / "run" / "usage.json").read_text("ascii"))["toy"]
        assert usage["rows"] == len(rows)
        assert usage["calls"] == server.number
        assert usage["cost_unsure"] > 0, "what was under way may have been billed"
        assert usage["cost"] + usage["cost_unsure"] >= server.cost(1000, 1000)
