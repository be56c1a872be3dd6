"""The one place that sees 429, Retry-After, time-outs and cost: when a request is sent, and when again."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from biaskit.errors import AskingStopped
from biaskit.models.api.meter import Meter
from biaskit.models.api.replicas import Greeted, Replicas
from biaskit.models.api.trouble import BadAnswer, Denied, RateLimited, Refused, Trouble, Unavailable
from biaskit.progress import duration

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from biaskit.models.api.wire import Call, Lane, Reply

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Policy:
    """How patient and how eager; seconds."""

    start: int = 16  # requests at once, before anything is known
    most: int = 100
    attempts: int = 8  # of one request, 429 not counted
    attempts_at_answers: int = 4  # of one request whose answers contradict themselves
    attempts_in_time: int = 8  # of one request that is not answered in its time
    first_wait: float = 0.5
    longest_wait: float = 30.0
    longest_pause: float = 900.0  # what a Retry-After may ask for; longer ends the run
    longest_call: float = 3600.0  # one request with all its repetitions
    dead_after: float = 60.0  # without any answer, many requests failing


class GaveUp(Exception):
    """One request has no answer after all attempts; the message says why."""

    def __init__(self, message: str, *, reached: bool = True) -> None:
        super().__init__(message)
        self.reached = reached  # whether the server was there at all


class Window:
    """How many requests are out at once: grows while that pays, shrinks on 429 and time-outs.

    Measured in epochs of as many answers as the limit. A limit that is greater by a share must give at
    least PAYS of that share more answers a second (a doubled one 15 % more); where it does not twice in a
    row, the smaller one was enough, and is kept for a while.
    """

    PAYS = 0.15
    HOLD, HOLD_AFTER_CUT = 20, 5  # epochs before it is tried again
    SLOW = 0.2  # of its time limit: nobody waits for twice that, and a server works on all the same

    def __init__(self, start: int, most: int) -> None:
        self.most = max(1, most)
        self.limit = min(max(1, start), self.most)
        self._best = 0.0  # answers a second at _paying
        self._paying = self.limit
        self._hold = 0
        self._opening, self._doubted = True, False
        self._answers, self._since, self._waited = 0, time.monotonic(), False
        self._slowest = 0.0  # part of its time limit that an answer of this epoch took
        self._last_cut = 0.0

    def answered(self, *, waiting: bool, part: float = 0.0) -> None:
        """An answer came; `waiting`: others stand in line, so the limit is what holds them.

        `part`: how much of its time limit it took.
        """
        self._answers += 1
        self._waited = self._waited or waiting
        self._slowest = max(self._slowest, part)
        if self._answers < self.limit:
            return
        if self._waited:
            self._judge(self._answers / max(1e-9, time.monotonic() - self._since))
        self.resume()

    def resume(self) -> None:
        """A new epoch; also after a time without any request, which says nothing of the server's speed."""
        self._answers, self._since, self._waited, self._slowest = 0, time.monotonic(), False, 0.0

    def _judge(self, rate: float) -> None:
        if self._hold:
            self._hold -= 1
            return
        if self._slowest > self.SLOW:
            self.limit, self._hold, self._opening = self._paying, self.HOLD, False
            return
        wanted = self._best * (1 + self.PAYS * (self.limit / self._paying - 1))
        if self.limit == self._paying or rate >= wanted:
            self._best, self._paying, self._doubted = rate, self.limit, False
            step = 2 * self.limit if self._opening else max(1, self.limit // 8)
            self.limit = min(self.most, self.limit + step)
        elif not self._doubted:
            self._doubted = True  # one epoch may be slow for any reason
        else:
            self.limit, self._hold = self._paying, self.HOLD
            self._opening = self._doubted = False

    def shrink(self, factor: float) -> None:
        """The server has too much; one burst of refusals counts once."""
        now = time.monotonic()
        if now - self._last_cut < 1.0:
            return
        self._last_cut = now
        self.limit = max(1, int(self.limit * factor))
        self._best, self._paying = 0.0, self.limit
        self._opening = self._doubted = False
        self._answers, self._since, self._hold = 0, now, self.HOLD_AFTER_CUT


class Controller:
    """Sends requests in the order in which they were given, as many at once as the server bears.

    Lives in one event loop. `note` is told what a user may want to see (--verbose); `clean` makes foreign
    text fit to be shown, wherever in an answer it came from.
    """

    def __init__(
        self,
        lanes: Sequence[Lane],
        meter: Meter,
        policy: Policy = Policy(),
        note: Callable[[str], None] | None = None,
        clean: Callable[[object], str] = str,
        replicas: Replicas | None = None,
    ) -> None:
        self.lanes = list(lanes)
        self.meter = meter
        self.policy = policy
        self.window = Window(policy.start, policy.most)
        self.stopped: AskingStopped | None = None
        self._note, self._clean, self._replicas = note or (lambda _: None), clean, replicas
        self._asked = 0  # requests without an answer yet, waiting ones too
        self._in_flight = 0
        self._line: list[tuple[int, asyncio.Future[None]]] = []  # heap by arrival: a repetition goes first
        self._arrivals = 0
        self._resume_at = 0.0
        self._refusals, self._refused_at = 0, 0.0  # 429s in a row, a burst counting once
        self._failures, self._last_good = 0, time.monotonic()

    def begin_again(self, policy: Policy) -> None:
        """Another patience and another number at once; called while nothing is under way."""
        self.policy, self.window = policy, Window(policy.start, policy.most)

    @contextlib.asynccontextmanager
    async def _turn(self, arrival: int) -> AsyncIterator[None]:
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._line, (arrival, ready))
        self._admit()
        try:
            await ready
        except asyncio.CancelledError:
            if ready.done() and not ready.cancelled() and ready.exception() is None:
                self._leave()
            raise
        try:
            yield
        finally:
            self._leave()

    def _leave(self) -> None:
        self._in_flight -= 1
        self._admit()

    def _admit(self) -> None:
        while self._line and (self.stopped or self._in_flight < self.window.limit):
            _, ready = heapq.heappop(self._line)
            if ready.done():
                continue
            if self.stopped:
                ready.set_exception(AskingStopped(str(self.stopped)))
            else:
                self._in_flight += 1
                ready.set_result(None)

    def stop(self, reason: str) -> AskingStopped:
        """Send nothing more; what is out may still be answered."""
        if self.stopped is None:
            self.stopped = AskingStopped(reason)
            self._admit()
        return self.stopped

    async def _sleep_until(self, then: float) -> None:
        while (left := then - time.monotonic()) > 0 and not self.stopped:
            await asyncio.sleep(min(left, 1.0))

    async def ask(self, call: Call, read: Callable[[Reply], T], *, seconds: float | None = None) -> T:
        """The answer to one request, read by `read`, which raises `BadAnswer` for one it cannot believe.

        Raises `GaveUp` after all attempts, `Refused` where the server says no, `AskingStopped` where
        nothing more is asked.
        """
        if not self._asked:  # nothing was asked: what went before says nothing of the server now
            self.window.resume()
            self._last_good = time.monotonic()
        self._asked += 1
        try:
            return await self._until_answered(call, read, seconds)
        finally:
            self._asked -= 1

    async def _until_answered(self, call: Call, read: Callable[[Reply], T], seconds: float | None) -> T:
        self._arrivals += 1
        arrival, started = self._arrivals, time.monotonic()
        attempts = bad = late = sent = 0
        while True:
            try:
                async with self._turn(arrival):
                    return await self._attempt(call.after(bad), read, seconds, repeated=sent > 0)
            except RateLimited as trouble:
                wait = self._slow_down(trouble)
            except Denied as trouble:
                raise self.stop(f"the server gives no more answers ({trouble})") from None
            except (Unavailable, BadAnswer) as trouble:
                attempts += 1
                bad += isinstance(trouble, BadAnswer)
                late += isinstance(trouble, Unavailable) and trouble.overload and trouble.reached
                wait = self._after_failure(trouble, attempts, bad, late)
            sent += 1
            again = time.monotonic() + wait
            if again - started > self.policy.longest_call:
                raise GaveUp(f"no answer within {self.policy.longest_call / 60:.0f} minutes")
            await self._sleep_until(again)

    async def _attempt(
        self, call: Call, read: Callable[[Reply], T], seconds: float | None, *, repeated: bool
    ) -> T:
        while self._resume_at > time.monotonic() and not self.stopped:  # it may have been put off meanwhile
            await self._sleep_until(self._resume_at)
        while self._replicas and len(self.lanes) > 1 and not self._replicas.knows(lane := self._lane()):
            await self._meet(self._replicas, lane)
        return await self._sent(self._lane(), call, read, seconds, repeated=repeated)

    async def _meet(self, replicas: Replicas, lane: Lane) -> None:
        """Ask a replica who it is, before its first use and after it was away; another model is left out."""
        failed_before = lane.rests_until
        async with replicas.meeting(lane):
            if replicas.knows(lane) or lane not in self.lanes or lane.rests_until != failed_before:
                return  # somebody else asked meanwhile
            found = Greeted()  # one that refuses both is known by its name in every answer
            for question in replicas.questions:
                with contextlib.suppress(Refused):
                    found = await self._sent(lane, question, Greeted.read, None, repeated=False)
                    break
            if not replicas.admit(lane, found):
                self._leave_out(lane)

    def _leave_out(self, lane: Lane) -> None:
        """Not asked again in this start; the last one stays, and what it answers as is the run's matter."""
        if lane in self.lanes and len(self.lanes) > 1:
            self.lanes.remove(lane)

    async def _sent(
        self, lane: Lane, call: Call, read: Callable[[Reply], T], seconds: float | None, *, repeated: bool
    ) -> T:
        try:
            # What is asked without a body, such as a list of models, costs nothing.
            most = (call.prompt_tokens_most, call.new_tokens_most) if call.body else (0, 0)
            reserved = await self.meter.reserve(*most)
        except AskingStopped as stopped:
            raise self.stop(str(stopped)) from None
        if self.stopped:
            self.meter.settle(reserved, None, billed=False)
            raise AskingStopped(str(self.stopped))
        spending = self.meter.spending
        spending.calls += 1
        spending.retries += repeated
        used, billed, started = None, True, time.monotonic()
        try:
            reply = await lane.ask(call, seconds)
            used = reply.used
            if self._replicas and len(self.lanes) > 1 and not self._replicas.still(lane, reply):
                self._leave_out(lane)
                raise Unavailable("it answers as another model", billed=True)
            answer = read(reply)
        except Trouble as trouble:
            billed, trouble.sent = trouble.billed, started
            trouble.args = (self._clean(trouble),)
            if isinstance(trouble, Unavailable):
                self._rest(lane)
            raise
        except Exception as error:  # whatever is odd in an answer, it is one answer that is lost
            raise BadAnswer(f"an answer that cannot be read ({type(error).__name__})") from error
        finally:
            self.meter.settle(reserved, used, billed=billed)
        self._refusals = self._failures = lane.failures = 0
        self._last_good = time.monotonic()
        part = (time.monotonic() - started) / (seconds or call.seconds)
        self.window.answered(waiting=bool(self._line), part=part)
        self._admit()
        return answer

    def _lane(self) -> Lane:
        """The replica with the least to do; one that just failed only where all did."""
        now, known = time.monotonic(), self._replicas
        if known and not known.first_is_met:  # the first one named stands for all
            return min(self.lanes, key=lambda lane: lane.rests_until > now)
        return min(
            self.lanes,
            key=lambda lane: (
                lane.rests_until > now,
                bool(known and known.meeting(lane).locked()),
                lane.in_flight,
            ),
        )

    def _rest(self, lane: Lane) -> None:
        """A replica that fails again and again is tried more and more seldom."""
        if self._replicas:
            self._replicas.forget(lane)
        lane.failures += time.monotonic() >= lane.rests_until  # those of one moment count once
        wait = self.policy.first_wait * 2 ** min(lane.failures - 1, 10)
        lane.rests_until = time.monotonic() + min(self.policy.longest_wait, wait)

    def _slow_down(self, trouble: RateLimited) -> float:
        """429: the line waits as a whole, and gets shorter."""
        if trouble.sent >= self._refused_at:  # else it was out before the others knew
            self._refusals, self._refused_at = self._refusals + 1, time.monotonic()
        self.window.shrink(0.7)
        wait = trouble.wait
        if wait is not None and wait > self.policy.longest_pause:
            raise self.stop(
                f"the server asks to wait {duration(wait)} ({trouble}). Give the same command again then"
            )
        if wait is None:
            wait = self._backoff(min(self._refusals, 8))
        longest = self.policy.longest_call
        if self._refusals > 1 and time.monotonic() + wait - self._last_good > longest:
            raise self.stop(f"the server has refused every request for {longest / 60:.0f} min")
        self._note(f"asked to slow down: {wait:.1f} s, then {self.window.limit} at once ({trouble})")
        self._resume_at = max(self._resume_at, time.monotonic() + wait)
        return random.uniform(0, 0.1 * self.policy.first_wait)  # noqa: S311 (a pause, not a secret)

    def _after_failure(self, trouble: Unavailable | BadAnswer, attempts: int, bad: int, late: int) -> float:
        self._note(f"sent again: {trouble}")
        if isinstance(trouble, Unavailable):
            self._failures += 1
            if trouble.overload:
                self.window.shrink(0.7)
            silent = time.monotonic() - self._last_good
            if self._failures >= max(20, 2 * self.window.limit) and silent > self.policy.dead_after:
                raise self.stop(f"the server stopped answering ({trouble})")
        most = self.policy
        if attempts >= most.attempts or bad >= most.attempts_at_answers or late >= most.attempts_in_time:
            reached = not isinstance(trouble, Unavailable) or trouble.reached
            raise GaveUp(f"{trouble} ({attempts} attempts)", reached=reached)
        return self._backoff(attempts)

    def _backoff(self, attempt: int) -> float:
        """Exponential, with full jitter, so that a crowd does not come back as one."""
        longest = min(self.policy.longest_wait, self.policy.first_wait * 2 ** (attempt - 1))
        return random.uniform(longest / 2, longest)  # noqa: S311
