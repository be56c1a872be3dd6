"""What goes wrong on the way: every sample is there in the end, once, in bounded time and memory."""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import json
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fakes.api_cases import (
    MODEL,
    ONE_BY_ONE,
    QUICK,
    cells,
    generate,
    generating,
    made,
    samples,
    score,
    scoring,
)
from fakes.api_server import FAULTS, ApiServer, Behaviour, Faults

from biaskit.errors import AskingStopped
from biaskit.measures.personas.design import resolve
from biaskit.measures.personas.sampling.samples import sample_texts
from biaskit.measures.personas.study import PersonasStudy
from biaskit.models.api import wire
from biaskit.models.api.controller import Policy
from biaskit.models.api.endpoint import open_endpoint
from biaskit.models.api.opening import open_api_generator
from biaskit.models.api.options import ApiOptions
from biaskit.models.api.trouble import RateLimited
from biaskit.records import Failed, Sample, Scored
from biaskit.runs.session import Session
from biaskit.study.config import load_as

IMPATIENT = Policy(first_wait=0.002, longest_wait=0.01, dead_after=0.3, longest_call=0.5)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time limits of a fraction of a second."""
    allow(monkeypatch, 0.15)


def allow(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """How long an answer may take; where calls are counted, long enough for a good one on a busy machine."""
    monkeypatch.setattr(wire, "READ_S", seconds)
    monkeypatch.setattr(wire, "PER_TOKEN_S", 0.0)
    monkeypatch.setattr(wire, "CONNECT_S", 0.15)


# --- every fault alone ---------------------------------------------------------------------------------

STOPS = {  # nothing more is asked
    "429-hours": "the server asks to wait 2.0 h",
    "429-quota": "the server refuses further requests (429: You exceeded your current quota",
    "401": "the server refuses further requests (401:",
    "403": "the server refuses further requests (403:",
}
NO = {  # the request is answered with no: it is not asked again in this start
    "redirect": "the server redirects to http://127.0.0.2:9/v1/elsewhere, which is not followed",
    "400": "400: The prompt is too long.",
    "404": "404: The model does not exist",
}
BLOCKED = ("400-filter",)
"""An outcome: a sample without a text, and never asked again."""
SILENT = ("stall", "trickle", "endless", "endless-fast")
"""Nobody answers in time; for long enough the server counts as dead."""
LASTING = {
    **dict.fromkeys(("429", "429-bare"), "no answer within"),
    "500": "500: The server had an error while processing your request. (8 attempts)",
    "500-rude": "500: ",
    "502": "502: <html>",
    "503": "503: The engine is overloaded. (8 attempts)",
    "200-error": "an error in place of an answer: Internal error while generating. (4 attempts)",
    "200-html": "not JSON",
    "200-empty": "an empty answer (4 attempts)",
    "reset": "the connection broke off (8 attempts)",
    "truncated-json": ("not JSON", "no JSON object"),
    "truncated-body": "peer closed connection",
    "closed": "Server disconnected",
    "gzip": "the answer is compressed, which was not requested (8 attempts)",
}


def test_every_fault_is_in_the_tables() -> None:
    assert set(FAULTS) == {*STOPS, *NO, *BLOCKED, *SILENT, *LASTING}


def drawn(server: ApiServer, n: int = 6, policy: Policy = IMPATIENT) -> tuple[list[Sample | Failed], str]:
    """Answers to `n` samples, each a request of its own, and why nothing more was asked."""
    asked, answers, stopped = samples(n, tokens=12), list[Sample | Failed](), ""
    with generating(server, policy=policy, batch_size=1) as generator:
        try:
            for group in generator.generate(generator.plan_samples(asked).batches):
                answers += group
        except AskingStopped as error:
            stopped = str(error)
    assert len(answers) == len({answer.key for answer in answers}), "an answer came twice"
    assert stopped or len(answers) == n
    texts = Counter(made(server))
    texts.subtract((a.prompt, a.text) for a in answers if isinstance(a, Sample) and a.finish != "filter")
    assert min(texts.values(), default=0) >= 0, "a text that the server did not make"
    return answers, stopped


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_that_happens_once(kind: str, impatient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, 1.0 if kind in SILENT else 4.0)
    with ApiServer(MODEL, faults=Faults(at={3: kind})) as server:
        answers, stopped = drawn(server, policy=replace(IMPATIENT, longest_call=20.0, dead_after=10.0))
        texts = [answer for answer in answers if isinstance(answer, Sample)]
        failed = [answer.reason for answer in answers if isinstance(answer, Failed)]
        if kind in STOPS:
            assert stopped.startswith(STOPS[kind])
            assert [] == failed
            assert server.answered[200] == len(texts) <= 5
        elif kind in NO:
            assert (5, 1) == (len(texts), len(failed))
            assert failed[0].startswith(NO[kind])
        else:
            assert (6, [], "") == (len(texts), failed, stopped)
            assert server.calls == (6 if kind in BLOCKED else 7)
            assert (kind in BLOCKED) == any(answer.finish == "filter" for answer in texts)


@pytest.mark.slow
@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_that_does_not_end(kind: str, impatient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    patience = IMPATIENT
    if kind in SILENT:
        patience = replace(IMPATIENT, longest_call=30.0)
        # Time is to end it: whether the limit of length comes first would depend on the machine's load.
        monkeypatch.setattr(wire, "MOST_BYTES", 2**28)
    elif LASTING.get(kind) != "no answer within":  # attempts are counted: no time limit may come first
        patience = replace(IMPATIENT, longest_call=30.0, dead_after=30.0)
        allow(monkeypatch, 4.0)
    started = time.monotonic()
    with ApiServer(MODEL, faults=Faults(rate=1.0, kinds=[kind], retry_after="0.2")) as server:
        answers, stopped = drawn(server, policy=patience)
    reasons = {answer.reason for answer in answers if isinstance(answer, Failed)}
    if kind in BLOCKED:
        assert ({"filter"}, 6) == ({a.finish for a in answers if isinstance(a, Sample)}, server.calls)
        return
    assert not any(isinstance(answer, Sample) for answer in answers)
    if kind in STOPS:
        assert stopped.startswith(STOPS[kind])
        assert server.calls <= 6
    elif kind in SILENT:
        assert stopped.startswith("the server stopped answering (no answer within 0.15 s")
    else:
        expected: Any = {**NO, **LASTING}[kind]
        if stopped:  # of a server that only ever refuses
            # On a busy machine the other limit, that of silence, may come first.
            assert stopped.startswith(
                ("the server has refused every request for", "the server stopped answering (")
            )
            assert "no answer within" == expected
        else:
            assert reasons
            assert all(reason.startswith(expected) for reason in reasons)
    assert time.monotonic() - started < 8


def test_a_list_that_ends_with_the_drawn_token_is_drawn_anew() -> None:
    """Where the end is drawn such a server lists nothing, and the same seed would draw it for ever."""
    server_after = Behaviour(eos_in_logprobs=False, temperature_affects_logprobs=True)
    shape = {"temperature_affects_logprobs": True}
    with ApiServer(MODEL, server_after) as server, scoring(server, "top-k", shape=shape) as scorer:
        requests = cells(40, "chat-prefill")
        answers = score(scorer, requests)
        assert server.calls > len(requests), "no end was drawn: the test shows nothing"
        seeds = [received.body.get("seed") for received in server.requests if received.generates]
    # Each cell once with its own seed, and after that without.
    assert len(requests) == len({seed for seed in seeds if seed is not None})
    assert len(requests) == sum(seed is not None for seed in seeds)
    assert server.calls - len(requests) == seeds.count(None)
    # Four ends in a row are the only way not to be answered.
    assert sum(isinstance(answer, Scored) for answer in answers) > 0.8 * len(requests)
    # Where no temperature changes a list, the next sample is hotter, so that the end is seldom drawn again.
    with ApiServer(MODEL, Behaviour(eos_in_logprobs=False)) as hot, scoring(hot, "top-k") as scorer:
        assert all(isinstance(answer, Scored) for answer in score(scorer, requests))
        heat = {(x.body.get("seed") is None, x.body["temperature"]) for x in hot.requests if x.generates}
    assert {(False, 1.0), (True, 2.0)} == heat


# --- what a server asks for ----------------------------------------------------------------------------


def test_what_retry_after_says() -> None:
    """The SDK reads it; what is no time to come is none."""
    then = email.utils.formatdate(time.time() + 100, usegmt=True)
    waits = {"5": 5.0, " 0.25 ": 0.25, "7200": 7200.0, "1e3": 1000.0, then: 100.0}
    waits |= dict.fromkeys(("", "0", "-5", "nan", "inf", "in a while", "Wed, 21 Oct 2015 07:28:00 GMT"))
    for header, seconds in waits.items():
        found = asyncio.run(refusal({"retry-after": header})).wait
        assert found == pytest.approx(seconds, abs=3) if seconds else found is None, header
    assert 0.03 == asyncio.run(refusal({"retry-after-ms": "30"})).wait


async def refusal(headers: dict[str, str]) -> RateLimited:
    """What a 429 with these headers is, over a transport without a network."""
    transport = httpx2.MockTransport(lambda request: httpx2.Response(429, headers=headers, json={}))
    endpoint = open_endpoint("api:toy@http://127.0.0.1/v1", label="toy", keys={}, endpoint_name=None)
    client = wire.Client(endpoint, transport)
    try:
        with pytest.raises(RateLimited) as told:
            await client.send(wire.Call("completions", {"prompt": "x"}))
        return told.value
    finally:
        await client.close()


def test_a_stop_keeps_what_a_request_had_brought_before() -> None:
    """The rest of eight texts is asked for when the key expires: the first three are there, and paid."""
    said = (
        "the server refuses further requests (401: Incorrect API key provided: . You can find your API key in"
    )
    with (
        ApiServer(MODEL, Behaviour(n_cap=3), faults=Faults(expired_from=2)) as server,
        generating(server, policy=ONE_BY_ONE, batch_size=8) as generator,
    ):
        batches = generator.plan_samples(samples(8)).batches
        answers = [answer for group in generator.generate(batches) for answer in group]
        assert 8 == len(answers)
        assert 3 == sum(isinstance(answer, Sample) for answer in answers)
        assert all(answer.reason.startswith(said) for answer in answers if isinstance(answer, Failed))
        with pytest.raises(AskingStopped):
            list(generator.generate(batches))


# --- bodies without end or measure ---------------------------------------------------------------------


def test_an_endless_answer_is_given_up_at_its_limit_of_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MOST_BYTES", 2**20)
    policy = replace(QUICK, attempts=2)
    started = time.monotonic()
    with ApiServer(MODEL, faults=Faults(rate=1.0, kinds=["endless-fast"])) as server:
        answers, stopped = drawn(server, 4, policy)
        assert (4, "") == (len(answers), stopped)
        assert {"the answer is longer than 1 MB (2 attempts)"} == {
            answer.reason for answer in answers if isinstance(answer, Failed)
        }
    assert time.monotonic() - started < 10  # the time limit of a request is 42 s


@contextlib.contextmanager
def raw_server(respond: Any) -> Iterator[str]:
    """A server that reads a request and writes whatever `respond(connection)` does."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        connections: list[socket.socket] = []

        def serve(connection: socket.socket) -> None:
            with connection, contextlib.suppress(OSError):
                while piece := connection.recv(65536):
                    if b"\r\n\r\n" in piece:  # the end of a request's headers
                        respond(connection)

        def accept() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                connections.append(connection)
                threading.Thread(target=serve, args=[connection], daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        listening.shutdown(socket.SHUT_RDWR)
        for connection in connections:
            connection.close()
    thread.join(timeout=5)


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        (HEAD + b"content-length: 1000000000000000\r\n\r\n{", "no answer within 0"),
        (HEAD + b"content-length: -7\r\n\r\n{}", ""),
        (HEAD + b"content-length: 99999999999999999999999999\r\n\r\n{}", ""),
        (HEAD + b"transfer-encoding: chunked\r\n\r\nFFFFFFFFFFFFFFF\r\n{", "no answer within 0"),
        (HEAD + b"transfer-encoding: chunked\r\n\r\nnonsense\r\n{", ""),
        (b"HTTP/1.1 200 OK\r\n" + b"x" * 10_000_000, ""),
        (b"".join(b"HTTP/1.1 103 Early Hints\r\n\r\n" for _ in range(2000)), "no answer within 0"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", ""),
        (b"HTTP/1.1 999 What\r\ncontent-length: 2\r\n\r\n{}", "status 999"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "status 204"),
        (HEAD + b"content-length: 2\r\n\r\n[]", ("not JSON", "no JSON object")),
        (HEAD + b"content-length: 200000\r\n\r\n" + b"[" * 200_000, ("not JSON", "no JSON object")),
        (HEAD + b"content-length: 4\r\n\r\n\xff\xfe{}", "not JSON"),
    ],
)
def test_odd_answers_take_bounded_time(told: bytes, reason: str | tuple[str, ...], impatient: None) -> None:
    started = time.monotonic()
    with (
        raw_server(lambda connection: connection.sendall(told)) as url,
        generating(url, policy=replace(IMPATIENT, attempts=2), batch_size=1) as generator,
    ):
        (answer,) = generate(generator, samples(1))
    assert isinstance(answer, Failed)
    assert answer.reason.startswith(reason)
    assert len(answer.reason) < 600
    assert answer.reason.isprintable()
    assert time.monotonic() - started < 5


# --- what a transport raises ---------------------------------------------------------------------------

RAISED = [
    *(ValueError("invalid literal for int()"), RuntimeError("Session is closed"), AssertionError()),
    *(KeyError("content-length"), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no"), RecursionError()),
    *(ssl.SSLError(1, "wrong version number"), asyncio.IncompleteReadError(b"", 9), MemoryError()),
    *(ExceptionGroup("several", [ValueError("a"), OSError("b")]), ConnectionResetError(104, "reset")),
    *(httpx2.DecodingError("no"), httpx2.ProxyError("407"), httpx2.UnsupportedProtocol("x")),
    *(httpx2.InvalidURL("x"), httpx2.StreamClosed(), httpx2.PoolTimeout("x"), httpx2.ConnectTimeout("late")),
]  # fmt: skip


@pytest.mark.parametrize("where", ["before", "within"])
@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_whatever_the_transport_raises_is_a_failed_answer(error: Exception, where: str) -> None:
    class Breaking(httpx2.AsyncByteStream):
        async def __aiter__(self):  # type: ignore[no-untyped-def]
            yield b'{"choices"'
            raise error

    def broken(request: httpx2.Request) -> httpx2.Response:
        if where == "before":
            raise error
        return httpx2.Response(200, stream=Breaking())

    url, policy = "http://127.0.0.1:9/v1", replace(IMPATIENT, attempts=2, longest_call=20.0)
    transport = httpx2.MockTransport(broken)
    with generating(url, policy=policy, batch_size=1, transport=transport) as generator:
        (answer,) = generate(generator, samples(1))
        assert isinstance(answer, Failed)
        assert answer.reason.isprintable()
        assert answer.reason.endswith("(2 attempts)")
        assert "cannot be read" not in answer.reason, "the transport's own exception came past the wire"
        assert 2 == generator.used()["calls"]


# --- a whole run ---------------------------------------------------------------------------------------

KINDS = tuple(kind for kind in FAULTS if kind not in BLOCKED)


def a_run(url: str, run: Path, policy: Policy) -> tuple[int, dict[str, str]]:
    """Give the same command until no sample is missing: how often that was, and key → text of the rows."""
    study = load_as(
        PersonasStudy, "gasp-pilot", {"per_gender": 6, "max_samples": 18, "max_new_tokens": 24, "batch": 6}
    )
    design = resolve(study)
    starts = 0
    while True:
        starts += 1
        assert starts < 200
        outcome = sample_texts(
            design,
            Session(
                run,
                {"toy": f"api:toy@{url}"},
                lambda label, spec, known, account: open_api_generator(
                    spec,
                    label=label,
                    options=ApiOptions(endpoint_name="toy", policy=policy),
                    known=known,
                    account=account,
                    batch_size=1,
                ),
            ),
        )
        if (
            not (outcome.stopped if hasattr(outcome, "stopped") else outcome.failed_models)
            and not outcome.failed
        ):
            break
    lines = (run / "personas.jsonl").read_text("ascii").splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == len({row["key"] for row in rows}), "a row was written twice"
    return starts, {row["key"]: row["text"] for row in rows}


@pytest.mark.slow
def test_a_run_through_every_fault_is_the_run_without(tmp_path: Path, impatient: None) -> None:
    """Hundreds of requests, a fifth of them with a fault of any kind; every row is synced to the disk."""
    behaviour = {"seeds": "content", "canned": {" nurse": "She is a nurse."}}
    with ApiServer(MODEL, Behaviour(**behaviour)) as server:
        starts, honest = a_run(server.url, tmp_path / "honest", QUICK)
        assert 1 == starts
        assert 300 < server.calls
    with ApiServer(MODEL, Behaviour(**behaviour), faults=None) as server:
        with generating(server):  # what doctor asks is asked before
            pass
        server.faults = Faults(rate=0.2, kinds=KINDS, retry_after="0.02", seed=7)
        starts, found = a_run(server.url, tmp_path / "faulty", replace(IMPATIENT, longest_call=20.0))
        assert found == honest
        assert 400 < server.calls
        assert len(KINDS) - 3 <= len(set(KINDS) & set(server.outcomes))
        assert 2 < starts
