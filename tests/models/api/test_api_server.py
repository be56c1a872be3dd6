"""The test server is honest by default, and lies and fails exactly as told (issue 5)."""

from __future__ import annotations

import contextlib
import http.client
import json
import math
import socket
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from fakes.api_server import (
    AFTER_GENERATION,
    FAULTS,
    GENERATION,
    ApiProcess,
    ApiServer,
    Behaviour,
    Fault,
    Faults,
)
from fakes.toy_model import (
    ToyModel,
)

MODEL = ToyModel()
NURSE, PLUMBER = "I recently met a nurse.", "I recently met a plumber."
COMPLETIONS, CHAT = GENERATION
HELLO = [{"role": "user", "content": "Who is she?"}]


@dataclass(frozen=True)
class Got:
    """An answer as it came over the wire."""

    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def choices(self) -> list[dict[str, Any]]:
        assert self.status == 200, self.content
        return self.json["choices"]


def ask(
    server: ApiServer | ApiProcess,
    path: str,
    body: Any = None,
    *,
    key: str = "",
    timeout: float = 5,
    **more: Any,
) -> Got:
    """One request on a connection of its own; a body without a model gets the server's."""
    host = server.url.removeprefix("http://").removesuffix("/v1")
    with contextlib.closing(http.client.HTTPConnection(host, timeout=timeout)) as connection:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        if body is None and not more:
            connection.request("GET", path, headers=headers)
        else:
            content = json.dumps({"model": "toy", **(body or {}), **more})
            connection.request("POST", path, content, {"content-type": "application/json", **headers})
        answer = connection.getresponse()
        told = {name.lower(): value for name, value in answer.getheaders()}
        return Got(answer.status, told, answer.read())


@contextlib.contextmanager
def serving(
    model: ToyModel = MODEL, *, faults: Faults | None = None, **behaviour: Any
) -> Iterator[ApiServer]:
    with ApiServer(model, Behaviour(**behaviour), faults=faults) as server:
        yield server


@contextlib.contextmanager
def waiting_client(server: ApiServer, path: str = COMPLETIONS, **body: Any) -> Iterator[socket.socket]:
    """A client that has sent a request and reads nothing yet."""
    content = json.dumps({"model": "toy", "prompt": NURSE, "messages": HELLO, **body}).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(content)}\r\n\r\n".encode()
    with socket.create_connection((server.host, server.port), timeout=5) as client:
        client.sendall(head + content)
        yield client


def eventually(true: Any, seconds: float = 5) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.002)


# --- the toy model ------------------------------------------------------------------------------------


def test_the_numbers_are_the_same_on_every_machine() -> None:
    # Computed with this model on 22 November; a change means that the toy model became another one.
    assert MODEL.continuation_log_prob(NURSE, " She") == pytest.approx(-5.908273072348726, abs=1e-9)
    assert MODEL.continuation_log_prob(NURSE, " Nonbinary") == pytest.approx(-7.000912005080502, abs=1e-9)
    new, finish = MODEL.sample(MODEL.prompt_ids(NURSE), 12, seed=5)
    assert (MODEL.decode(new), finish) == (" they that the good job good", "stop")


def test_a_continuation_is_teacher_forced() -> None:
    ids = MODEL.prompt_ids(NURSE)
    first, second, third = MODEL.encode(" Non-binary")
    assert [MODEL.vocabulary[token] for token in (first, second, third)] == [" Non", "-", "binary"]
    by_hand = (
        MODEL.next_log_probs(ids)[first]
        + MODEL.next_log_probs([*ids, first])[second]
        + MODEL.next_log_probs([*ids, first, second])[third]
    )
    assert math.isclose(MODEL.continuation_log_prob(NURSE, " Non-binary"), by_hand)
    assert not math.isclose(MODEL.continuation_log_prob(NURSE, " Non-binary", bos=False), by_hand)


def test_draws_follow_the_probabilities() -> None:
    ids = MODEL.prompt_ids(NURSE)
    drawn = Counter(MODEL.sample(ids, 1, seed=number)[0][0] for number in range(4000))
    probabilities = np.exp(MODEL.next_log_probs(ids))
    for token in np.argsort(-probabilities)[:8]:
        p = probabilities[token]
        assert abs(drawn[int(token)] / 4000 - p) < 5 * math.sqrt(p * (1 - p) / 4000)


# --- what the server tells the test -------------------------------------------------------------------


@pytest.mark.parametrize("kind", FAULTS)
def test_the_bill_counts_all_that_was_generated(kind: str) -> None:
    """An answer that is lost on the way was generated and is paid for; a refusal costs nothing."""
    with serving() as server:
        server.script(lambda number, path, body: Fault(kind, pause_s=0) if number == 1 else None)
        with waiting_client(server, n=2, max_tokens=3, seed=1) as client:
            client.recv(1) if kind != "stall" else eventually(lambda: server.new_tokens)
        eventually(lambda: server.in_flight == 0)
        lost = (server.prompt_tokens, server.new_tokens)
        ask(server, COMPLETIONS, prompt=NURSE, n=2, max_tokens=3, seed=1)
        whole = (server.prompt_tokens - lost[0], server.new_tokens - lost[1])
        assert server.cost(2.0, 8.0) == (server.prompt_tokens * 2.0 + server.new_tokens * 8.0) / 1e6
    assert whole[1] > 2
    assert lost == (whole if kind in AFTER_GENERATION else (0, 0))
