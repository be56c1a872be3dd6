"""When a request is sent, and when again: the one place that sees 429, Retry-After, time-outs and cost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_random_exponential

from biaskit.errors import AskingStopped
from biaskit.models.api.meter import Meter
from biaskit.models.api.trouble import BadAnswer, Denied, GaveUp, RateLimited, Trouble, Unavailable
from biaskit.progress import duration

if TYPE_CHECKING:
    from biaskit.models.api.wire import Call, Client, Reply

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits of patience and of load; times in seconds."""

    at_once: int = 64  # requests in flight at the most
    attempts: int = 8  # of one request, 429 not counted
    attempts_at_answers: int = 4  # of one request, at answers that cannot be used
    attempts_in_time: int = 8  # of one request that times out
    first_wait: float = 0.5
    longest_wait: float = 30.0
    longest_pause: float = 900.0  # longest Retry-After; a longer one ends the run
    longest_call: float = 3600.0  # one request with all its repetitions
    dead_after: float = 60.0  # without any answer while many requests fail


class Places:
    """Places for requests in flight: a burst of refusals halves their number, a round of answers adds one."""

    def __init__(self, most: int) -> None:
        self.n = self.most = most
        self._free = asyncio.Semaphore(most)
        self._owed = 0  # places that vanish when they are given back
        self._answers = 0
        self._halved_at = 0.0

    async def __aenter__(self) -> None:
        await self._free.acquire()

    async def __aexit__(self, *error: object) -> None:
        if self._owed:
            self._owed -= 1
        else:
            self._free.release()

    def answered(self) -> None:
        """Count an answer; add a place after as many answers as there are places."""
        self._answers += 1
        if self._answers < self.n or self.n == self.most:
            return
        self.n, self._answers = self.n + 1, 0
        if self._owed:
            self._owed -= 1
        else:
            self._free.release()

    def halve(self) -> None:
        """Halve the places of an overloaded server; refusals within a second count once."""
        self._answers, now = 0, time.monotonic()
        if now - self._halved_at > 1.0:
            self._halved_at, withdrawn = now, self.n // 2
            self.n -= withdrawn
            self._owed += withdrawn


class Controller:
    """Keeps a number of requests in flight, in the order in which they come, and repeats failed ones.

    Lives in one event loop. `note` receives what a user may want to see (--verbose); `clean` makes foreign
    text fit to be shown.
    """

    def __init__(
        self,
        client: Client,
        meter: Meter,
        policy: Policy = Policy(),
        note: Callable[[str], None] | None = None,
        clean: Callable[[object], str] = str,
    ) -> None:
        self.client = client
        self.meter = meter
        self.stopped: AskingStopped | None = None
        self._note, self._clean = note or (lambda _: None), clean
        self._under_way = 0  # requests without an answer yet, waiting ones too
        self._resume_at = 0.0  # a 429 delays all requests until then
        self._failures, self._last_good = 0, time.monotonic()
        self.begin_again(policy)

    def begin_again(self, policy: Policy) -> None:
        """Set another policy; call only while nothing is under way."""
        self.policy = policy
        self.places = Places(policy.at_once)
        self._backoff = wait_random_exponential(policy.first_wait, policy.longest_wait)

    def stop(self, reason: str) -> AskingStopped:
        """Send nothing more; requests in flight may still be answered. Returns the error to raise."""
        self.stopped = self.stopped or AskingStopped(reason)
        return AskingStopped(str(self.stopped))

    async def ask(self, call: Call, read: Callable[[Reply], T], *, seconds: float | None = None) -> T:
        """Send a request and return its answer as read by `read`, which raises `BadAnswer` if it is unusable.

        Raises `GaveUp` after all attempts, `Refused` if the server says no, `AskingStopped` if nothing more
        is asked.
        """
        if not self._under_way:  # earlier failures say nothing about the server now
            self._failures, self._last_good = 0, time.monotonic()
        retrying = AsyncRetrying(
            retry=retry_if_exception_type((Unavailable, BadAnswer)),
            stop=self._is_over,
            wait=self._backoff,
            sleep=self._sleep,
            before_sleep=self._note_repetition,
            retry_error_callback=_give_up,
        )
        next_call = call

        async def attempt() -> T:
            nonlocal next_call
            try:
                return await self._within_limits(next_call, read, seconds)
            except BadAnswer:
                next_call = call.drawn_anew()
                raise

        self._under_way += 1
        try:
            async with self.places:  # kept between attempts: a server in trouble gets fewer requests
                return await retrying(attempt)
        finally:
            self._under_way -= 1

    def _is_over(self, state: RetryCallState) -> bool:
        trouble, most = _trouble_of(state), self.policy.attempts
        if isinstance(trouble, BadAnswer):
            most = min(most, self.policy.attempts_at_answers)
        elif isinstance(trouble, Unavailable) and trouble.overload and trouble.reached:
            most = min(most, self.policy.attempts_in_time)
        return state.attempt_number >= most or (state.seconds_since_start or 0) > self.policy.longest_call

    def _note_repetition(self, state: RetryCallState) -> None:
        self.meter.spending.retries += 1
        self._note(f"sent again: {_trouble_of(state)}")

    async def _sleep(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not self.stopped:
            await asyncio.sleep(min(left, 1.0))

    async def _within_limits(self, call: Call, read: Callable[[Reply], T], seconds: float | None) -> T:
        """Send a request again for every 429, each of which delays all other requests too."""
        started = time.monotonic()
        refusals = 0
        while True:
            while self._resume_at > time.monotonic() and not self.stopped:  # others may move it
                await self._sleep(self._resume_at - time.monotonic())
            try:
                return await self._sent(call, read, seconds)
            except RateLimited as trouble:
                self.places.halve()
                doubled = self.policy.first_wait * 2 ** min(refusals, 10)
                wait = trouble.wait or min(self.policy.longest_wait, doubled)
                if wait > self.policy.longest_pause:
                    raise self.stop(
                        f"the server asks to wait {duration(wait)} ({trouble}). Rerun the command then"
                    ) from None
                if time.monotonic() + wait - started > self.policy.longest_call:
                    minutes = self.policy.longest_call / 60
                    raise self.stop(f"the server has refused every request for {minutes:.0f} min") from None
                self._note(f"the server asks to slow down: {wait:.1f} s ({trouble})")
                self._resume_at = max(self._resume_at, time.monotonic() + wait)
                self.meter.spending.retries += 1
                refusals += 1

    async def _sent(self, call: Call, read: Callable[[Reply], T], seconds: float | None) -> T:
        """Send a request once, after reserving its highest cost."""
        try:
            # A request without a body, such as the list of models, costs nothing.
            most = (call.prompt_tokens_most, call.new_tokens_most) if call.body else (0, 0)
            reserved = await self.meter.reserve(*most)
        except AskingStopped as stopped:
            raise self.stop(str(stopped)) from None
        if self.stopped:
            self.meter.settle(reserved, None, billed=False)
            raise AskingStopped(str(self.stopped))
        self.meter.spending.calls += 1
        used, billed = None, True
        try:
            reply = await self.client.send(call, seconds)
            used = reply.used
            answer = read(reply)
        except Trouble as trouble:
            billed = trouble.billed
            trouble.args = (self._clean(trouble),)
            if isinstance(trouble, Denied):
                raise self.stop(f"the server refuses further requests ({trouble})") from None
            if isinstance(trouble, Unavailable):
                self._failures += 1
                if trouble.overload:
                    self.places.halve()
                silent = time.monotonic() - self._last_good
                if self._failures >= max(20, 2 * self.places.n) and silent > self.policy.dead_after:
                    raise self.stop(f"the server stopped answering ({trouble})") from None
            raise
        except Exception as error:  # whatever is odd in an answer, only this answer is lost
            raise BadAnswer(f"an answer that cannot be read ({type(error).__name__})") from error
        finally:
            self.meter.settle(reserved, used, billed=billed)
        self._failures, self._last_good = 0, time.monotonic()
        self.places.answered()
        return answer


def _trouble_of(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None


def _give_up(state: RetryCallState) -> None:
    trouble = _trouble_of(state)
    reached = not isinstance(trouble, Unavailable) or trouble.reached
    raise GaveUp(f"{trouble} ({state.attempt_number} attempts)", reached=reached)
