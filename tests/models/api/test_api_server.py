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
    BEFORE_GENERATION,
    FAULTS,
    GENERATION,
    LIES,
    ApiProcess,
    ApiServer,
    Behaviour,
    Fault,
    Faults,
    Lies,
    choice_seed,
)
from fakes.toy_model import (
    DEFAULT_VOCABULARY,
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


def most_probable(model: ToyModel, ids: list[int], k: int) -> list[tuple[str, float]]:
    row = model.next_log_probs(ids)
    order = sorted(range(len(row)), key=lambda token: -row[token])[:k]
    return [(model.vocabulary[token], float(row[token])) for token in order]


# --- the toy model ------------------------------------------------------------------------------------


def test_every_context_has_a_distribution_that_sums_to_one() -> None:
    for text in ("", NURSE, PLUMBER, MODEL.render_chat(HELLO)):
        row = MODEL.next_log_probs(MODEL.prompt_ids(text))
        assert row.shape == (len(DEFAULT_VOCABULARY),)
        assert math.isclose(np.exp(row).sum(), 1.0, abs_tol=1e-12)
        assert row.max() <= 0


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


# --- honest log-probabilities -------------------------------------------------------------------------


def echoed(server: ApiServer, text: str, **more: Any) -> dict[str, Any]:
    (choice,) = ask(server, COMPLETIONS, prompt=text, echo=True, logprobs=1, max_tokens=1, **more).choices
    assert choice["text"].startswith(text)
    return choice["logprobs"]


@pytest.mark.parametrize("continuation", [" She", " Them", " Non-binary", " Female"])
def test_echo_gives_the_teacher_forced_probability(continuation: str) -> None:
    with serving() as server:
        told = echoed(server, NURSE + continuation)
    n = len(MODEL.encode(continuation))
    assert "".join(told["tokens"][: -1 or None][-n:]) == continuation
    total = math.fsum(told["token_logprobs"][-n - 1 : -1])
    assert math.isclose(total, MODEL.continuation_log_prob(NURSE, continuation), abs_tol=1e-12)
    assert told["text_offset"][-n - 1] == len(NURSE)
    assert told["top_logprobs"][0] is None
    assert told["token_logprobs"][0] is None


@pytest.mark.parametrize("k", [1, 5, 20])
def test_lists_hold_the_k_most_probable(k: int) -> None:
    with serving() as server:
        legacy = ask(server, COMPLETIONS, prompt=NURSE, logprobs=k, max_tokens=1).choices[0]["logprobs"]
        chat = ask(server, CHAT, messages=HELLO, logprobs=True, top_logprobs=k, max_tokens=1).choices[0]
    assert list(legacy["top_logprobs"][0].items()) == most_probable(MODEL, MODEL.prompt_ids(NURSE), k)
    (entry,) = chat["logprobs"]["content"]
    told = [(one["token"], one["logprob"]) for one in entry["top_logprobs"]]
    ids = MODEL.prompt_ids(MODEL.render_chat(HELLO))
    assert told == most_probable(MODEL, ids, k)
    row = MODEL.next_log_probs(ids)
    assert entry["logprob"] == row[MODEL.ids[entry["token"]]]
    assert bytes(entry["bytes"]).decode() == entry["token"]


# --- chosen token ids, prompts as ids -----------------------------------------------------------------


def test_selected_ids_are_the_tree_of_an_expression() -> None:
    """One call per node gives the values of its children; their product is the teacher-forced one."""
    non, dash, binary = MODEL.encode(" Non-binary")
    asked = {"max_tokens": 1, "logprobs": 1, "return_tokens_as_token_ids": True}
    total, ids = 0.0, MODEL.prompt_ids(NURSE)
    with serving(token_id_logprobs=True) as server:
        for token in (non, dash, binary):
            wanted = [token, MODEL.ids["She"]]
            (choice,) = ask(server, COMPLETIONS, asked, prompt=ids, logprob_token_ids=wanted).choices
            top, sampled = choice["logprobs"]["top_logprobs"][0], choice["logprobs"]["tokens"][0]
            assert set(top) == {sampled, *(f"token_id:{one}" for one in wanted)}
            total += top[f"token_id:{token}"]
            ids = [*ids, token]
    assert math.isclose(total, MODEL.continuation_log_prob(NURSE, " Non-binary"), abs_tol=1e-12)


# --- honest texts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", GENERATION)
def test_choices_are_draws_with_seeds_of_their_own(path: str) -> None:
    with serving() as server:
        got = ask(server, path, prompt=NURSE, messages=HELLO, n=5, max_tokens=20, seed=8).json
    ids = MODEL.prompt_ids(NURSE if path == COMPLETIONS else MODEL.render_chat(HELLO))
    drawn = [MODEL.sample(ids, 20, choice_seed(8, index)) for index in range(5)]
    texts = [one["text"] if path == COMPLETIONS else one["message"]["content"] for one in got["choices"]]
    assert texts == [MODEL.decode(new) for new, _ in drawn]
    assert [one["finish_reason"] for one in got["choices"]] == [finish for _, finish in drawn]
    assert {finish for _, finish in drawn} == {"stop", "length"}
    assert [one["index"] for one in got["choices"]] == [0, 1, 2, 3, 4]
    new_tokens = sum(len(new) + (finish == "stop") for new, finish in drawn)
    assert got["usage"] == {
        "prompt_tokens": len(ids),
        "completion_tokens": new_tokens,
        "total_tokens": len(ids) + new_tokens,
    }


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


# --- faults on the wire -------------------------------------------------------------------------------


def faulty(kind: str, **more: Any) -> ApiServer:
    server = ApiServer(MODEL)
    server.script(lambda number, path, body: Fault(kind, **more))
    return server


RETRY_AFTER = {"429": "0.05", "429-hours": "7200", "429-negative": "-5", "429-nonsense": "in a while"}
STATUS = {
    **{kind: int(kind[:3]) for kind in BEFORE_GENERATION if kind[:3].isdigit()},
    "redirect": 307,
}


@pytest.mark.parametrize("kind", BEFORE_GENERATION)
def test_faults_before_generation(kind: str) -> None:
    with faulty(kind) as server:
        got = ask(server, COMPLETIONS, prompt=NURSE, key="sk-secret")
        assert (server.prompt_tokens, server.new_tokens) == (0, 0)
        assert server.requests[0].outcome == kind
    assert got.status == STATUS[kind]
    assert got.headers.get("retry-after") == RETRY_AFTER.get(kind) or kind in ("429-date", "429-past", "503")
    html = kind in ("502", "200-html")
    assert got.content.startswith(b"<html>") == html
    if kind in ("401", "403", "500-rude"):
        assert b"sk-secret" in got.content
    if kind == "200-error":
        assert "choices" not in got.json
        assert got.json["error"]["message"]


# --- lies ---------------------------------------------------------------------------------------------


def honest_and_lied(path: str, kind: str, n: int = 3) -> tuple[dict[str, Any], Any]:
    """The answers to one request, as an honest server gives it and with a lie."""
    body = {"prompt": NURSE, "messages": HELLO, "n": n, "max_tokens": 6}
    body |= {"logprobs": 3} if path == COMPLETIONS else {"logprobs": True, "top_logprobs": 3}
    answers = []
    for lies in (None, Lies([kind])):
        with serving(lies=lies) as server:
            ask(server, path, body, seed=5)
            got = ask(server, path, body, seed=6)
            assert got.status == 200
            assert server.requests[-1].outcome == ("honest" if lies is None else kind)
            answers.append(got.json)
    return answers[0], answers[1]


both_forms = pytest.mark.parametrize("path", GENERATION)


@both_forms
@pytest.mark.parametrize("kind", LIES)
def test_every_lie_changes_the_answer(path: str, kind: str) -> None:
    honest, lied = honest_and_lied(path, kind)
    if isinstance(lied, dict):
        lied = {**lied, "created": honest["created"]}
    same = (kind == "equal-texts" and path == COMPLETIONS) or kind == "other-ids"  # no ids were asked
    assert (lied == honest) == same


# --- HTTP, and the end --------------------------------------------------------------------------------


def test_a_bug_of_the_server_is_no_answer() -> None:
    with pytest.raises(AssertionError, match="has a bug"), serving() as server:
        server.script(lambda number, path, body: 1 / 0)  # type: ignore[arg-type, return-value]
        assert ask(server, COMPLETIONS, prompt=NURSE).status == 500


@pytest.mark.process
def test_a_process_of_its_own() -> None:
    """The same numbers, counts by /stats, and an end with the process that started it."""
    fields = {"top_k": 3, "rejects": ["seed"]}
    with ApiProcess("--latency", "0.05", behaviour=fields, faults={"at": {"2": "500"}}) as server:
        began = time.monotonic()
        told = ask(server, COMPLETIONS, prompt=NURSE, logprobs=3, max_tokens=1).choices[0]["logprobs"]
        assert time.monotonic() - began >= 0.05
        assert dict(most_probable(MODEL, MODEL.prompt_ids(NURSE), 3)) == told["top_logprobs"][0]
        assert ask(server, COMPLETIONS, prompt=NURSE).status == 500
        assert ask(server, COMPLETIONS, prompt=NURSE, seed=1).status == 400
        stats = server.stats()
        assert (stats["calls"], stats["in_flight_most"], stats["new_tokens"]) == (3, 1, 1)
        assert stats["answered"] == {"200": 1, "500": 1, "400": 1}
        assert stats["outcomes"] == {"honest": 1, "500": 1, "refused": 1}
