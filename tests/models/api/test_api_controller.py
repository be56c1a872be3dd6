"""When a request is sent, and when again: concurrency, refusals, replicas, the end (virtual time)."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from fakes.api_cases import MODEL, ONE_BY_ONE, QUICK, cells, draws, generate, generating, score, scoring
from fakes.api_server import ApiServer, Behaviour

from biaskit.errors import AskingStopped
from biaskit.models.api import controller as module
from biaskit.models.api.controller import Controller, GaveUp, Policy, Window
from biaskit.models.api.meter import Meter
from biaskit.models.api.prices import parse_price
from biaskit.models.api.trouble import BadAnswer, Denied, RateLimited, Refused, Unavailable
from biaskit.models.api.wire import Call, Reply
from biaskit.records import Draw, Failed

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
    monkeypatch.setattr(module, "random", random.Random(1))
    yield loop.run_until_complete
    loop.close()


@dataclass
class Lane:
    """A base URL that answers after `latency` seconds, `slots` requests at a time."""

    latency: float = 0.5
    slots: int = 10**6
    fails: Callable[[int], Exception | None] = lambda number: None  # by the number of the request, from 1
    in_flight: int = 0
    in_flight_most: int = 0
    number: int = 0
    rests_until: float = 0.0
    failures: int = 0
    sent: list[Any] = field(default_factory=list)
    at: list[float] = field(default_factory=list)
    _places: asyncio.Semaphore | None = None

    async def ask(self, call: Call, seconds: float | None = None) -> Reply:
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


def controller(*lanes: Lane, cap: float | None = None, **policy: Any) -> Controller:
    return Controller(lanes, Meter(parse_price("1,1"), cap), Policy(**policy))  # type: ignore[arg-type]


async def ask_all(
    asks: Controller, n: int, read: Callable[[Reply], Any] = lambda reply: reply.data["number"]
) -> tuple[list[Any], float]:
    """Answers to `n` requests (or what was raised), twice the window of them in line, and the seconds."""
    loop = asyncio.get_running_loop()
    started, numbers = loop.time(), iter(range(n))
    found: list[Any] = [None] * n
    under_way: set[asyncio.Task[None]] = set()

    async def one(number: int) -> None:
        try:
            found[number] = await asks.ask(Call("completions", {"name": number}, 10, 10), read)
        except (GaveUp, Refused, AskingStopped) as trouble:
            found[number] = trouble

    while True:
        fresh = itertools.islice(numbers, max(0, 2 * asks.window.limit + 4 - len(under_way)))
        under_way |= {asyncio.ensure_future(one(number)) for number in fresh}
        if not under_way:
            return found, loop.time() - started
        _, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)


Run = Callable[[Coroutine[Any, Any, Any]], Any]


# --- how many at once ----------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [1, 4, 16])
def test_a_server_with_room_is_used_fully_and_soon(run: Run, start: int) -> None:
    lane = Lane(latency=0.5)
    asks = controller(lane, start=start, most=100)
    found, seconds = run(ask_all(asks, 2000))
    assert 2000 == len(set(found))
    assert 100 == asks.window.limit == lane.in_flight_most
    assert seconds <= 1.3 * 10 if start == 16 else seconds <= 1.6 * 10


@pytest.mark.parametrize("slots", [1, 4, 16])
def test_a_server_with_few_places_is_not_flooded(run: Run, slots: int) -> None:
    lane = Lane(latency=0.1, slots=slots)
    asks = controller(lane, start=4, most=100)
    _, seconds = run(ask_all(asks, 1000))
    ideal = 1000 * 0.1 / slots
    assert seconds <= 1.15 * ideal
    assert asks.window.limit <= 4 * max(4, slots)
    # Tried again now and then, not for long.
    longest = 100 if slots == 16 else 60
    assert lane.in_flight_most <= longest


def test_never_more_than_the_most(run: Run) -> None:
    lane = Lane()
    run(ask_all(controller(lane, start=50, most=7), 300))
    assert 7 == lane.in_flight_most


def test_refusals_make_it_smaller_until_there_are_few(run: Run) -> None:
    lane = Lane(latency=0.2)
    lane.fails = lambda number: RateLimited("429", None) if lane.in_flight > 12 else None
    asks = controller(lane, start=64, most=100)
    found, seconds = run(ask_all(asks, 3000))
    assert 3000 == len(set(found))
    assert asks.window.limit <= 20
    assert lane.number <= 1.1 * 3000
    # 12 at a time would take 50 s.
    assert seconds <= 2.5 * 50


def test_a_burst_of_refusals_counts_once(run: Run) -> None:
    lane = Lane(latency=0.2, fails=lambda number: RateLimited("429", None) if number <= 40 else None)
    asks = controller(lane, start=40, most=40)
    run(ask_all(asks, 60))
    assert 25 <= asks.window.limit


def test_errors_of_the_server_do_not_make_it_smaller(run: Run) -> None:
    draw = random.Random(3)
    lane = Lane(fails=lambda number: Unavailable("500", billed=False) if draw.random() < 0.2 else None)
    asks = controller(lane, start=16, most=100)
    found, _ = run(ask_all(asks, 2000))
    assert all(isinstance(number, int) for number in found)
    assert 100 == asks.window.limit


def test_after_time_outs_it_grows_again(run: Run) -> None:
    late = Unavailable("no answer", billed=True, overload=True)
    lane = Lane(fails=lambda number: late if 100 < number <= 400 else None)
    asks = controller(lane, start=32, most=100)
    smallest = 100

    def read(reply: Reply) -> int:
        nonlocal smallest
        smallest = min(smallest, asks.window.limit)
        return int(reply.data["number"])

    found, _ = run(ask_all(asks, 4000, read))
    assert 4000 == len(set(found))
    assert smallest <= 24
    assert 60 <= asks.window.limit


def test_a_window_that_was_cut_grows_slowly() -> None:
    window = Window(16, 100)
    window.shrink(0.7)
    assert 11 == window.limit
    window.shrink(0.7)
    assert 11 == window.limit  # one burst
    for _ in range(40):
        window._last_cut = 0.0
        window.shrink(0.5)
    assert 1 == window.limit


# --- whose turn it is ----------------------------------------------------------------------------------


def test_requests_are_sent_in_the_order_in_which_they_came(run: Run) -> None:
    lane = Lane(latency=0.3)
    run(ask_all(controller(lane, start=3, most=3), 100))
    assert [*range(100)] == lane.sent


def test_what_is_asked_again_goes_before_what_came_later(run: Run) -> None:
    lane = Lane(fails=lambda number: Unavailable("502", billed=True) if number == 2 else None)
    run(ask_all(controller(lane, start=1, most=1, first_wait=0.4), 10))
    # It waits half a second, in which others go; then it is first in line.
    assert [0, 1, 2, 1] == lane.sent[:4]


def test_the_calls_of_one_cell_are_sent_next_to_each_other() -> None:
    policy = Policy(start=5, most=5, first_wait=0.002)
    with (
        ApiServer(MODEL, Behaviour(latency_s=0.005)) as server,
        scoring(server, "echo", policy=policy, prompts=1) as scorer,
    ):
        requests = cells(12)
        score(scorer, requests)
        prompts = [request.prompt.text for request in requests]
        cell_of = [
            next(n for n, prompt in enumerate(prompts) if received.body["prompt"].startswith(prompt))
            for received in server.requests
        ]
    seen: Counter[int] = Counter()
    for cell in cell_of:
        seen[cell] += 1
        begun = [c for c, n in seen.items() if n < 6]
        assert len(begun) <= 2, "a kill here would lose more cells than have a request in flight"
    assert {6} == set(seen.values())


def test_somebody_who_leaves_the_line_takes_nobodys_place(run: Run) -> None:
    lane = Lane(latency=1.0)
    asks = controller(lane, start=2, most=2)

    async def leave() -> list[Any]:
        tasks = [asyncio.ensure_future(asks.ask(CALL, lambda reply: reply.data["number"])) for _ in range(10)]
        await asyncio.sleep(0.5)
        for number in (1, 4, 5, 6):  # one that is out, three that wait
            tasks[number].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    found = run(leave())
    assert 4 == sum(isinstance(answer, asyncio.CancelledError) for answer in found)
    assert 6 == sum(isinstance(answer, int) for answer in found)
    assert (0, []) == (asks._in_flight, asks._line)
    assert 2 == lane.in_flight_most


def test_somebody_who_leaves_when_his_turn_comes_gives_it_on(run: Run) -> None:
    asks = controller(Lane(latency=1.0), start=1, most=1)

    async def leave() -> list[Any]:
        def read(reply: Reply) -> Any:
            # It runs when the first has given its place to the second, which does not know it yet.
            asyncio.get_running_loop().call_soon(tasks[1].cancel)
            return reply.data["number"]

        tasks = [asyncio.ensure_future(asks.ask(CALL, read)) for _ in range(3)]
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, second, third = run(leave())
    assert (1, 2) == (first, third)
    assert isinstance(second, asyncio.CancelledError)
    assert 0 == asks._in_flight


# --- again, and for how long ---------------------------------------------------------------------------


def test_waits_grow_and_differ(run: Run) -> None:
    lane = Lane(latency=0.0, fails=lambda number: Unavailable("500", billed=False))
    asks = controller(lane, attempts=8, first_wait=0.5, longest_wait=30.0)
    (trouble,), _ = run(ask_all(asks, 1))
    assert "500 (8 attempts)" == str(trouble)
    waits = [later - earlier for earlier, later in itertools.pairwise(lane.at)]
    for number, wait in enumerate(waits):
        longest = min(30.0, 0.5 * 2**number)
        assert longest / 2 <= wait <= longest
    assert len({round(wait / 2**number, 6) for number, wait in enumerate(waits)}) > 3


def test_an_answer_that_contradicts_itself_is_asked_for_less_often(run: Run) -> None:
    def read(reply: Reply) -> int:
        raise BadAnswer("no number")

    lane = Lane()
    (trouble,), _ = run(ask_all(controller(lane), 1, read))
    assert ("no number (4 attempts)", 4) == (str(trouble), lane.number)
    assert trouble.reached


def test_a_no_is_not_asked_again(run: Run) -> None:
    lane = Lane(fails=lambda number: Refused("400: too long"))
    (trouble,), _ = run(ask_all(controller(lane), 1))
    assert ("400: too long", 1) == (str(trouble), lane.number)


def test_refusals_for_lack_of_room_are_no_attempts(run: Run) -> None:
    lane = Lane(fails=lambda number: RateLimited("429", 7.0) if number <= 30 else None)
    (number,), seconds = run(ask_all(controller(lane), 1))
    assert 31 == number
    assert 30 * 7 <= seconds <= 30 * 7 + 30


def test_refusals_without_a_time_get_waits_of_our_own(run: Run) -> None:
    lane = Lane(latency=0, fails=lambda number: RateLimited("429", None) if number <= 6 else None)
    run(ask_all(controller(lane, first_wait=0.5), 1))
    waits = [later - earlier for earlier, later in itertools.pairwise(lane.at)]
    for number, wait in enumerate(waits):
        assert 0.25 * 2**number <= wait <= 0.5 * 2**number + 0.06


def test_nobody_is_refused_for_ever(run: Run) -> None:
    lane = Lane(latency=0.1)
    lane.fails = lambda number: RateLimited("429", 60.0) if number > 100 else None
    found, seconds = run(ask_all(controller(lane, longest_call=3600.0), 2000))
    assert 100 == sum(isinstance(answer, int) for answer in found)
    assert {"the server has refused every request for 60 min"} == {
        str(answer) for answer in found if isinstance(answer, AskingStopped)
    }
    assert 3500 <= seconds <= 3800


def test_a_pause_is_everybodys(run: Run) -> None:
    lane = Lane(latency=0.1, fails=lambda number: RateLimited("429", 20.0) if number == 9 else None)
    run(ask_all(controller(lane, start=4, most=4), 40))
    refused = lane.at[8]
    assert not [at for at in lane.at if refused + 0.1 < at < refused + 20.0]


# --- several replicas ----------------------------------------------------------------------------------


def test_replicas_share_the_work(run: Run) -> None:
    fast, slow = Lane(latency=0.1), Lane(latency=0.3)
    found, _ = run(ask_all(controller(fast, slow, start=8, most=8), 800))
    assert 800 == len(found)
    # Each has as much to do at a time, so the fast one answers three times as many.
    assert 2.4 < fast.number / slow.number < 3.6
    assert (4, 4) == (fast.in_flight_most, slow.in_flight_most)


def test_a_dead_replica_does_not_stop_the_others(run: Run) -> None:
    alive = Lane(latency=0.1)
    dead = Lane(latency=0.0, fails=lambda number: Unavailable("no connection", billed=False))
    found, seconds = run(ask_all(controller(dead, alive, start=8, most=8), 800))
    assert all(isinstance(number, int) for number in found)
    assert seconds <= 1.3 * 10
    assert dead.number < 40


def test_a_replica_that_stalls_does_not_hold_up_the_others(run: Run) -> None:
    late = Unavailable("no answer within 30 s", billed=True, overload=True)
    alive, stalls = Lane(latency=0.1), Lane(latency=30.0, fails=lambda number: late)
    found, seconds = run(ask_all(controller(stalls, alive, start=8, most=8), 4000))
    assert all(isinstance(number, int) for number in found)
    assert stalls.number < 40
    assert seconds <= 5 * 50  # alone the other one would take 50 s


def test_a_replica_that_comes_back_works_again(run: Run) -> None:
    one = Lane(latency=0.1)
    other = Lane(latency=0.1)
    away = Unavailable("502", billed=True)
    other.fails = lambda number: away if asyncio.get_running_loop().time() < 1020 else None
    run(ask_all(controller(one, other, start=8, most=8), 6000))
    assert 0.25 < other.number / one.number


def test_replicas_over_http_and_one_of_them_dies() -> None:
    asked = draws(60, tokens=6)
    with (
        ApiServer(MODEL) as first,
        ApiServer(MODEL) as second,
        generating(first, second, policy=QUICK, batch_size=1) as generator,
    ):
        groups = generator.generate(generator.plan_draws(asked).batches)
        found = list(next(groups))
        first.close()
        for group in groups:
            found += group
    assert sorted(request.key for request in asked) == sorted(answer.key for answer in found)
    assert all(isinstance(answer, Draw) for answer in found)
    assert 5 < second.answered[200]


# --- the end -------------------------------------------------------------------------------------------


def test_a_server_that_dies_ends_the_run(run: Run) -> None:
    lane = Lane(latency=0.1)
    lane.fails = lambda number: Unavailable("connection refused", billed=False) if number > 200 else None
    asks = controller(lane, start=16, most=16, dead_after=60.0)
    found, seconds = run(ask_all(asks, 5000))
    stopped = [answer for answer in found if isinstance(answer, AskingStopped)]
    assert "the server stopped answering (connection refused)" == str(stopped[0])
    assert 200 == sum(isinstance(answer, int) for answer in found)
    assert 60 <= seconds <= 130
    assert lane.number < 1000


def test_a_server_that_is_away_for_a_moment_loses_nothing(run: Run) -> None:
    lane = Lane(latency=0.1)
    asks = controller(lane, start=16, most=16)

    def fails(number: int) -> Exception | None:
        away = 1005 < asyncio.get_running_loop().time() < 1025  # from the sixth to the 25th second
        return Unavailable("connection refused", billed=False) if away else None

    lane.fails = fails
    found, seconds = run(ask_all(asks, 3000))
    assert all(isinstance(number, int) for number in found)
    assert 25 < seconds < 70


def test_a_stop_lets_what_is_out_come_back(run: Run) -> None:
    lane = Lane(latency=1.0, fails=lambda number: Denied("401") if number == 30 else None)
    asks = controller(lane, start=10, most=10)
    found, seconds = run(ask_all(asks, 200))
    answered = [answer for answer in found if isinstance(answer, int)]
    # The thirtieth of three rounds of ten is refused: the nine beside it are answered.
    assert 29 == len(answered) == lane.number - 1
    assert {"the server gives no more answers (401)"} == {
        str(answer) for answer in found if isinstance(answer, AskingStopped)
    }
    assert 171 == len(found) - len(answered)
    assert seconds == pytest.approx(3.0, abs=0.1)
    assert (0, []) == (asks._in_flight, asks._line)


def test_a_stop_does_not_wait_out_a_pause(run: Run) -> None:
    def fails(number: int) -> Exception | None:
        return {5: RateLimited("429", 600.0), 6: Denied("401")}.get(number)

    lane = Lane(latency=0.1, fails=fails)
    _, seconds = run(ask_all(controller(lane, start=4, most=4), 40))
    assert seconds < 5


def test_the_cap_holds_with_many_at_once_and_all_answers_are_kept(run: Run) -> None:
    lane = Lane(latency=0.2)
    # Each request may cost 20e-6 and costs 10e-6.
    asks = controller(lane, start=50, most=50, cap=1000e-6)
    found, _ = run(ask_all(asks, 500))
    answered = [answer for answer in found if isinstance(answer, int)]
    stopped = [answer for answer in found if isinstance(answer, AskingStopped)]
    assert len(answered) == lane.number
    assert 98 <= len(answered) <= 100
    assert 500 == len(answered) + len(stopped)
    assert "--max-cost 0.001 USD" in str(stopped[0])


# --- over HTTP -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_server_that_refuses_more_than_ten() -> None:
    behaviour = Behaviour(latency_s=0.05, refuses_above=10)
    policy = Policy(start=32, most=64, first_wait=0.05)
    with ApiServer(MODEL, behaviour) as server, generating(server, policy=policy, batch_size=1) as generator:
        answers = generate(generator, draws(400, tokens=4))
        assert 400 == len({answer.key for answer in answers})
        assert not any(isinstance(answer, Failed) for answer in answers)
        assert server.answered[429] < 150
        assert generator.connection._controller is not None
        assert generator.connection._controller.window.limit < 32


@pytest.mark.slow
def test_a_server_with_room_over_http() -> None:
    with ApiServer(MODEL, Behaviour(latency_s=0.1)) as server:
        with generating(server, policy=QUICK, batch_size=1) as generator:
            started = time.monotonic()
            answers = generate(generator, draws(400, tokens=2))
            seconds = time.monotonic() - started
        assert 400 == len(answers)
        assert 40 < server.in_flight_most <= 100
        assert seconds < 8  # one after the other: 40


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 8])
def test_the_draws_are_the_same_one_by_one_and_fifty_at_once(n: int) -> None:
    """And after a stop in between: what is asked together does not depend on what is stored."""
    asked = draws(20, prompts=4, tokens=40)
    found = []
    for most in (1, 50):
        with ApiServer(MODEL, Behaviour(seeds="content", latency_s=0.002, latency_jitter=0.9)) as server:
            policy = Policy(start=most, most=most, first_wait=0.002)
            with generating(server, policy=policy, batch_size=n) as generator:
                answers = {answer.key: answer for answer in generate(generator, asked)}
                found.append({key: getattr(answer, "text", None) for key, answer in answers.items()})
    with ApiServer(MODEL, Behaviour(seeds="content")) as server:
        stored: dict[str, str | None] = {}
        for expires in (7, 10**6):
            server.script(lambda number, path, body, last=expires: "401" if number > last else None)
            policy = Policy(start=3, most=3, first_wait=0.002)
            with generating(server, policy=policy, batch_size=n) as generator:
                missing = [request for request in asked if request.key not in stored]
                try:
                    for group in generator.generate(generator.plan_draws(missing).batches):
                        stored |= {answer.key: answer.text for answer in group if isinstance(answer, Draw)}
                except AskingStopped:
                    assert 0 < len(stored) < len(asked)
        found.append(stored)
    assert found[0] == found[1] == found[2]
    assert set(found[0]) == {request.key for request in asked}
    assert all(isinstance(text, str) for text in found[0].values())


def test_the_draws_are_the_same_after_a_stop_between_the_choices_of_one_request() -> None:
    """A server that gives three of eight: the five that a stop left out do not shift all that follow."""
    asked = draws(20, prompts=2, tokens=40)
    found = []
    for last in (10**6, 4):
        stored: dict[str, str] = {}
        with ApiServer(MODEL, Behaviour(n_cap=3)) as server:
            server.script(lambda number, path, body, last=last: "401" if number == last else None)
            while len(stored) < len(asked):
                with generating(server, policy=ONE_BY_ONE, batch_size=8) as generator:
                    missing = [request for request in asked if request.key not in stored]
                    with contextlib.suppress(AskingStopped):
                        for group in generator.generate(generator.plan_draws(missing).batches):
                            stored |= {
                                answer.key: answer.text for answer in group if isinstance(answer, Draw)
                            }
        found.append(stored)
    assert found[0] == found[1]
