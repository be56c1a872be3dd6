"""When a request is sent, and when again: how many at once, refusals, the end (virtual time)."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from fakes.api_cases import MODEL, ONE_BY_ONE, QUICK, generate, generating, samples
from fakes.api_server import ApiServer, Behaviour

from biaskit.errors import AskingStopped
from biaskit.models.api import controller as module
from biaskit.models.api.controller import Controller, Policy
from biaskit.models.api.meter import Meter
from biaskit.models.api.prices import parse_price
from biaskit.models.api.trouble import BadAnswer, Denied, GaveUp, RateLimited, Refused, Unavailable
from biaskit.models.api.wire import Call, Reply
from biaskit.records import Sample

T = TypeVar("T")
CALL = Call("completions", {}, prompt_tokens_most=10, new_tokens_most=10)


# --- a server and a clock that wait for nobody ---------------------------------------------------------


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop that does not wait: where it would, its clock goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        select = self._selector.select

        def skip(timeout: float | None = None) -> Any:
            assert timeout is not None, "everybody waits for somebody else"
            self.now += timeout
            return select(0)

        self._selector.select = skip

    def time(self) -> float:
        return self.now


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Coroutine[Any, Any, T]], T]]:
    """Runs a coroutine in virtual time, which the controller sees too."""
    loop = VirtualLoop()
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=loop.time))
    random.seed(1)
    yield loop.run_until_complete
    loop.close()


@dataclass
class FakeClient:
    """A server that answers after `latency` seconds, `slots` requests at a time."""

    latency: float = 0.5
    slots: int = 10**6
    fails: Callable[[int], Exception | None] = lambda number: None  # by the number of the request, from 1
    in_flight: int = 0
    in_flight_most: int = 0
    number: int = 0
    sent: list[Any] = field(default_factory=list)
    at: list[float] = field(default_factory=list)
    _places: asyncio.Semaphore | None = None

    async def send(self, call: Call, seconds: float | None = None) -> Reply:
        self._places = self._places or asyncio.Semaphore(self.slots)
        self.number += 1
        number = self.number
        self.sent.append((call.body or {}).get("name"))
        self.at.append(asyncio.get_running_loop().time())
        self.in_flight += 1
        self.in_flight_most = max(self.in_flight_most, self.in_flight)
        try:
            async with self._places:
                trouble = self.fails(number)
                await asyncio.sleep(0.01 if isinstance(trouble, RateLimited) else self.latency)
                if trouble is not None:
                    raise trouble
                return Reply({"number": number, "usage": {"prompt_tokens": 5, "completion_tokens": 5}})
        finally:
            self.in_flight -= 1

    @property
    def waits(self) -> list[float]:
        """Seconds between requests."""
        return [later - earlier for earlier, later in itertools.pairwise(self.at)]


def controller(client: FakeClient, cap: float | None = None, **policy: Any) -> Controller:
    return Controller(client, Meter(parse_price("1,1"), cap), Policy(**policy))  # type: ignore[arg-type]


async def ask_all(
    asks: Controller, n: int, read: Callable[[Reply], Any] = lambda reply: reply.data["number"]
) -> tuple[list[Any], float]:
    """Answers to `n` requests (or what was raised), and the seconds."""
    loop = asyncio.get_running_loop()
    started = loop.time()

    async def one(number: int) -> Any:
        try:
            return await asks.ask(Call("completions", {"name": number}, 10, 10), read)
        except (GaveUp, Refused, AskingStopped) as trouble:
            return trouble

    return await asyncio.gather(*map(one, range(n))), loop.time() - started


Run = Callable[[Coroutine[Any, Any, Any]], Any]


# --- how many at once, and in which order --------------------------------------------------------------


@pytest.mark.parametrize("at_once", [1, 7, 64])
def test_as_many_as_it_says_are_out_in_the_order_in_which_they_came(run: Run, at_once: int) -> None:
    client = FakeClient(latency=0.3)
    found, seconds = run(ask_all(controller(client, at_once=at_once), 128))
    assert 128 == len(set(found))
    assert at_once == client.in_flight_most
    assert [*range(128)] == client.sent
    assert seconds == pytest.approx(0.3 * -(-128 // at_once), rel=1e-6)


def test_refusals_make_it_fewer_and_answers_more_again(run: Run) -> None:
    client = FakeClient(latency=0.2)
    client.fails = lambda number: RateLimited("429", None) if client.in_flight > 12 else None
    asks = controller(client, at_once=64)
    found, seconds = run(ask_all(asks, 3000))
    assert 3000 == len(set(found))
    assert 6 <= asks.places.n <= 13
    assert client.number <= 1.1 * 3000
    assert seconds <= 2.5 * 50  # 12 at a time would take 50 s


def test_errors_of_the_server_do_not_make_it_fewer_and_time_outs_do(run: Run) -> None:
    sample = random.Random(3)
    for overload in (False, True):
        trouble = Unavailable("no answer", billed=False, overload=overload)
        # type: ignore[misc]
        client = FakeClient(fails=lambda number, told=trouble: told if sample.random() < 0.2 else None)
        asks = controller(client, at_once=16)
        found, _ = run(ask_all(asks, 500))
        assert all(isinstance(number, int) for number in found)
        assert (asks.places.n < 16) is overload


def test_somebody_who_leaves_the_line_takes_nobodys_place(run: Run) -> None:
    client = FakeClient(latency=1.0)
    asks = controller(client, at_once=2)

    async def leave() -> list[Any]:
        tasks = [asyncio.ensure_future(asks.ask(CALL, lambda reply: reply.data["number"])) for _ in range(10)]
        await asyncio.sleep(0.5)
        for number in (1, 4, 5, 6):  # one that is out, three that wait
            tasks[number].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    found = run(leave())
    assert 4 == sum(isinstance(answer, asyncio.CancelledError) for answer in found)
    assert 6 == sum(isinstance(answer, int) for answer in found)
    assert 0 == asks._under_way
    assert 2 == client.in_flight_most


# --- again, and for how long ---------------------------------------------------------------------------


def test_waits_grow_and_differ(run: Run) -> None:
    client = FakeClient(latency=0.0, fails=lambda number: Unavailable("500", billed=False))
    (trouble,), _ = run(ask_all(controller(client, attempts=8, first_wait=0.5, longest_wait=8.0), 1))
    assert "500 (8 attempts)" == str(trouble)
    assert all(wait <= min(8.0, 0.5 * 2**number) for number, wait in enumerate(client.waits))
    assert len({round(wait / 2**number, 6) for number, wait in enumerate(client.waits)}) > 3


@pytest.mark.parametrize(
    ("trouble", "attempts", "said"),
    [
        (BadAnswer("no number"), 4, "no number (4 attempts)"),
        (Unavailable("late", billed=True, overload=True), 8, "late (8 attempts)"),
        (Refused("400: too long"), 1, "400: too long"),
    ],
)
def test_how_often_something_is_asked_again(run: Run, trouble: Exception, attempts: int, said: str) -> None:
    client = FakeClient(fails=lambda number: trouble)
    asks = controller(client)
    (told,), _ = run(ask_all(asks, 1))
    assert (said, attempts) == (str(told), client.number)
    assert attempts - 1 == asks.meter.spending.retries


def test_nobody_is_refused_for_ever(run: Run) -> None:
    client = FakeClient(latency=0.1)
    client.fails = lambda number: RateLimited("429", 60.0) if number > 100 else None
    found, seconds = run(ask_all(controller(client, longest_call=3600.0), 500))
    assert 100 == sum(isinstance(answer, int) for answer in found)
    assert {"the server has refused every request for 60 min"} == {
        str(answer) for answer in found if isinstance(answer, AskingStopped)
    }
    assert 3500 <= seconds <= 3800


def test_a_pause_is_everybodys(run: Run) -> None:
    client = FakeClient(latency=0.1, fails=lambda number: RateLimited("429", 20.0) if number == 9 else None)
    run(ask_all(controller(client, at_once=4), 40))
    refused = client.at[8]
    assert not [at for at in client.at if refused + 0.1 < at < refused + 20.0]


# --- the end -------------------------------------------------------------------------------------------


def test_a_server_that_dies_ends_the_run(run: Run) -> None:
    client = FakeClient(latency=0.1)
    client.fails = lambda number: Unavailable("connection refused", billed=False) if number > 200 else None
    found, seconds = run(ask_all(controller(client, at_once=16, dead_after=60.0), 5000))
    stopped = [answer for answer in found if isinstance(answer, AskingStopped)]
    assert "the server stopped answering (connection refused)" == str(stopped[0])
    assert 200 == sum(isinstance(answer, int) for answer in found)
    assert 60 <= seconds <= 130
    assert client.number < 1000


def test_a_server_that_is_away_for_a_moment_loses_nothing(run: Run) -> None:
    client = FakeClient(latency=0.1)

    def fails(number: int) -> Exception | None:
        away = 1005 < asyncio.get_running_loop().time() < 1012
        return Unavailable("connection refused", billed=False) if away else None

    client.fails = fails
    found, seconds = run(ask_all(controller(client, at_once=16), 3000))
    assert all(isinstance(number, int) for number in found)
    assert 18 < seconds < 70


def test_a_stop_lets_what_is_out_come_back(run: Run) -> None:
    client = FakeClient(latency=1.0, fails=lambda number: Denied("401") if number == 30 else None)
    asks = controller(client, at_once=10)
    found, seconds = run(ask_all(asks, 200))
    answered = [answer for answer in found if isinstance(answer, int)]
    # The thirtieth of three batches of ten is refused: the nine beside it are answered.
    assert 29 == len(answered) == client.number - 1
    assert {"the server refuses further requests (401)"} == {
        str(answer) for answer in found if isinstance(answer, AskingStopped)
    }
    assert 171 == len(found) - len(answered)
    assert seconds == pytest.approx(3.0, abs=0.1)
    assert 0 == asks._under_way


# --- over HTTP -----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 8])
def test_the_samples_are_the_same_one_by_one_and_fifty_at_once(n: int) -> None:
    """And after a stop in between: what is asked together does not depend on what is stored."""
    asked = samples(20, prompts=4, tokens=40)
    found = []
    for at_once in (1, 50):
        with ApiServer(MODEL, Behaviour(seeds="content", latency_s=0.002, latency_jitter=0.9)) as server:
            policy = Policy(at_once=at_once, first_wait=0.002)
            with generating(server, policy=policy, batch_size=n) as generator:
                answers = {answer.key: answer for answer in generate(generator, asked)}
                found.append({key: getattr(answer, "text", None) for key, answer in answers.items()})
    with ApiServer(MODEL, Behaviour(seeds="content")) as server:
        stored: dict[str, str | None] = {}
        for expires in (7, 10**6):
            server.script(lambda number, path, body, last=expires: "401" if number > last else None)
            with generating(server, policy=replace(QUICK, at_once=3), batch_size=n) as generator:
                missing = [request for request in asked if request.key not in stored]
                try:
                    for group in generator.generate(generator.plan_samples(missing).batches):
                        stored |= {answer.key: answer.text for answer in group if isinstance(answer, Sample)}
                except AskingStopped:
                    assert 0 < len(stored) < len(asked)
        found.append(stored)
    assert found[0] == found[1] == found[2]
    assert set(found[0]) == {request.key for request in asked}
    assert all(isinstance(text, str) for text in found[0].values())


def test_the_samples_are_the_same_after_a_stop_between_the_choices_of_one_request() -> None:
    """A server that gives three of eight: the five that a stop left out do not shift all that follow."""
    asked = samples(20, prompts=2, tokens=40)
    found = []
    for last in (10**6, 4):
        stored: dict[str, str] = {}
        with ApiServer(MODEL, Behaviour(n_cap=3)) as server:
            server.script(lambda number, path, body, last=last: "401" if number == last else None)
            while len(stored) < len(asked):
                with generating(server, policy=ONE_BY_ONE, batch_size=8) as generator:
                    missing = [request for request in asked if request.key not in stored]
                    with contextlib.suppress(AskingStopped):
                        for group in generator.generate(generator.plan_samples(missing).batches):
                            stored |= {
                                answer.key: answer.text for answer in group if isinstance(answer, Sample)
                            }
        found.append(stored)
    assert found[0] == found[1]
