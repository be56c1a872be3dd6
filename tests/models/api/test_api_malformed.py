"""Answers that are not HTTP: each is one failed answer, in bounded time, never a traceback (issue 13)."""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
import time
from dataclasses import astuple, replace
from pathlib import Path

import httpx2
import pytest
from fakes.api_cases import CANNED, MODEL, QUICK, draws, generate, generating, measured_before
from fakes.api_server import Behaviour
from fakes.command import Cli
from fakes.raw_server import KINDS, Malformation, RawServer, malformation

from biaskit.errors import AskingStopped
from biaskit.models.api import wire
from biaskit.models.api.controller import Policy
from biaskit.models.api.endpoint import MOST_FOREIGN
from biaskit.records import Draw, Failed

IMPATIENT = Policy(first_wait=0.002, longest_wait=0.01, dead_after=0.3, longest_call=2.0, attempts=2)
ENDLESS = ("hint", "body", "chunks", "headers-e", "headers-t", "trailers", "chunk-size-e", "silence")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch, no_environment: None) -> None:
    monkeypatch.setattr(wire, "READ_S", 0.3)
    monkeypatch.setattr(wire, "PER_TOKEN_S", 0.0)
    monkeypatch.setattr(wire, "CONNECT_S", 0.3)


def asked(server: RawServer, n: int = 1, policy: Policy = IMPATIENT) -> list[Draw | Failed]:
    with generating(server, policy=policy, batch_size=1) as generator:
        try:
            return generate(generator, draws(n))
        except AskingStopped as stopped:
            return [Failed(request.key, str(stopped)) for request in draws(n)]


def check(answer: Draw | Failed) -> None:
    """A reason that can be shown and stored."""
    assert isinstance(answer, Failed)
    assert answer.reason.isprintable()
    assert 3 < len(answer.reason) < MOST_FOREIGN + 100
    assert "cannot be read" not in answer.reason, "the transport's own exception came past the wire"


@pytest.mark.parametrize("kind", KINDS)
def test_a_malformed_answer_is_a_failed_one(kind: str) -> None:
    started = time.monotonic()
    made = [malformation(seed, kind) for seed in range(3 if kind.startswith(ENDLESS) else 12)]
    for malformed in dict.fromkeys(made):
        with RawServer(MODEL, malformed=lambda number, generates, m=malformed: m) as server:  # type: ignore[misc]
            check(*asked(server))
    assert time.monotonic() - started < 12


@pytest.mark.slow
def test_a_crowd_of_malformed_answers() -> None:
    """Side by side on connections that are used again, so that one cannot spoil the next."""
    started = time.monotonic()
    body = b'{"model": "toy", "choices": 1}'
    with RawServer(MODEL, malformed=lambda number, _: malformation(number, body=body)) as server:
        answers = asked(server, 100, replace(IMPATIENT, dead_after=60.0))
        assert 100 == len(answers)
        for answer in answers:
            check(answer)
        assert len(KINDS) - 3 < len(server.outcomes)
    assert time.monotonic() - started < 60


@pytest.mark.parametrize("seed", range(4))
def test_a_malformed_answer_is_asked_again(seed: int) -> None:
    """Every other answer is none: in the end all are there, each with one request more where it failed."""
    drawn = {n: malformation(100 * seed + n, kind) for n, kind in enumerate(KINDS) if kind not in FINAL}
    with RawServer(
        MODEL, malformed=lambda number, _: drawn.get(number // 2) if number % 2 else None
    ) as server:
        answers = asked(server, 40, replace(IMPATIENT, attempts=12, longest_call=30.0, dead_after=30.0))
    assert ["Draw"] * 40 == [type(answer).__name__ for answer in answers]


FINAL = ("redirect", "no-body", "odd-json")
"""Some of these are a no that is understood: not asked again."""


# --- what a transport raises -----------------------------------------------------------------------------


class ServerDisconnectedError(Exception):
    """Of no class that the transport documents."""


RAISED = [
    *(ValueError("invalid literal for int() with base 10: b'many'"), RuntimeError("Session is closed")),
    *(AssertionError(), KeyError("content-length"), EOFError(), OverflowError("too large")),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no"),
    *(ssl.SSLError(1, "wrong version number"), http.client.BadStatusLine("SSH")),
    asyncio.IncompleteReadError(b"", 9),
    *(ServerDisconnectedError("Server disconnected"), RecursionError(), MemoryError()),
    *(ExceptionGroup("several", [ValueError("a"), OSError("b")]), ConnectionResetError(104, "reset")),
    *(httpx2.DecodingError("no"), httpx2.ProxyError("407"), httpx2.UnsupportedProtocol("x")),
    *(httpx2.InvalidURL("x"), httpx2.StreamClosed(), httpx2.TooManyRedirects("x")),
    *(httpx2.CookieConflict("x"), httpx2.PoolTimeout("x")),
    httpx2.ConnectTimeout("too late"),
]  # fmt: skip


@pytest.mark.parametrize("where", ["before", "within"])
@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_whatever_the_transport_raises(error: Exception, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Breaking(httpx2.AsyncByteStream):
        async def __aiter__(self):  # type: ignore[no-untyped-def]
            yield b'{"choices"'
            raise error

    async def broken(self: object, request: httpx2.Request) -> httpx2.Response:
        if where == "before":
            raise error
        return httpx2.Response(200, stream=Breaking(), request=request)

    measured_before()  # by an honest server
    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "handle_async_request", broken)
    with generating("http://127.0.0.1:9/v1", policy=IMPATIENT, batch_size=1) as generator:
        (answer,) = generate(generator, draws(1))
        check(answer)
        assert isinstance(answer, Failed)
        assert answer.reason.endswith("(2 attempts)")
        assert 2 == generator.used()["calls"]
        if isinstance(error.__cause__, ServerDisconnectedError):
            assert answer.reason.startswith("Server disconnected")  # not "no connection within 5 s"


# --- commands --------------------------------------------------------------------------------------------


@pytest.fixture
def quick_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands with the patience of a test."""
    monkeypatch.setattr(Policy.__init__, "__defaults__", astuple(replace(QUICK, dead_after=1.0, attempts=3)))
    monkeypatch.setattr("biaskit.models.api.questions.QUESTION_S", 0.3)
    monkeypatch.setattr("biaskit.models.api.questions.ECHO_S", 0.3)


FEW = [f"--set={choice}" for choice in ("max_draws=6", "per_gender=2", "permutations=19", "srb_seeds=1")]
COMMANDS = {
    "doctor": ("doctor",),
    "probe": ("probe", "--jobs", "nurse,plumber", "--yes"),
    "personas": ("personas", "--occupations", "nurse", "--yes", "--set=clusters=false", *FEW),
}


def rows_of(run: Path) -> dict[str, dict[str, object]]:
    lines = [line for path in run.glob("*.jsonl") for line in path.read_text("ascii").splitlines()]
    return {row["key"]: row for row in map(json.loads, lines)}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("seed", range(3))
def test_a_command_over_a_server_that_speaks_no_http(
    command: str, seed: int, console: Cli, quick_commands: None, tmp_path: Path
) -> None:
    kind = sorted(KINDS)[hash_of(command, seed) % len(KINDS)]
    with RawServer(MODEL, malformed=lambda number, _: malformation(number + seed, kind)) as server:
        said = console(*over(command, server, tmp_path))
    assert 1 == said.code, kind
    assert_one_line(said.err)
    assert "answers neither way" in said.err or "there is no server" in said.err


def hash_of(command: str, seed: int) -> int:
    return 7 * seed + 11 * sorted(COMMANDS).index(command)


def over(command: str, server: RawServer, folder: Path) -> tuple[str, ...]:
    name, *rest = COMMANDS[command]
    out = () if name == "doctor" else ("--out", str(folder / "run"))
    return (name, f"toy=api:toy@{server.url}", *rest, *out)


def assert_one_line(err: str) -> None:
    assert "Traceback" not in err
    errors = [line for line in err.splitlines() if line.startswith("biaskit: ")]
    assert 1 == len(errors)
    assert err.isprintable() or err.replace("\n", "").isprintable()


@pytest.mark.slow
def test_rows_that_were_answered_are_kept(console: Cli, quick_commands: None, tmp_path: Path) -> None:
    """The server goes mad in mid-run: exit 3 with what is there, and the same command asks for the rest."""
    behaviour = Behaviour(canned=CANNED, seeds="content")

    def mad(number: int, generates: bool) -> Malformation | None:
        return malformation(number, sorted(KINDS)[number % len(KINDS)]) if number > 300 else None

    with RawServer(MODEL, behaviour, malformed=mad) as server:
        one_each = ("--set", "prompts_per_call=1")
        arguments = (*over("probe", server, tmp_path), "--endpoint-name", "toy", *one_each)
        broken = console(*arguments)
        kept = rows_of(tmp_path / "run")
        server._malformed = lambda number, generates: None
        mended = console(*arguments)
        rows = rows_of(tmp_path / "run")
        elsewhere = tmp_path / "whole"
        elsewhere.mkdir()
        assert 0 == console(*over("probe", server, elsewhere), "--endpoint-name", "toy", *one_each).code
    assert broken.code in (1, 3)
    assert "Traceback" not in broken.out + broken.err
    assert 0 == mended.code
    assert 0 < len(kept) < len(rows)
    assert kept.items() <= rows.items(), "a row that was answered changed"
    whole = rows_of(elsewhere / "run")
    assert without_time(rows) == without_time(whole)


def without_time(rows: dict[str, dict[str, object]]) -> dict[str, dict[str, object]]:
    return {key: {**row, "answered_at": None, "sum": None} for key, row in rows.items()}
