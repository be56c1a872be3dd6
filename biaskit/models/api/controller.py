"""When a request is sent, and when again: the one place that sees 429, Retry-After, time-outs and cost."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

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

    Lives in one event loop. `note` takes what --verbose shows; `clean` makes foreign text fit to be shown.
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

    def stop(self, reason: str) -> AskingStopped:
        """Send nothing more; requests in flight may still be answered. Returns the error to raise."""
        self.stopped = self.stopped or AskingStopped(reason)
        return AskingStopped(str(self.stopped))

    async def ask(self, call: Call, read: Callable[[Reply], T], *, seconds: float | None = None) -> T:
        """Send a request and return its answer as read by `read`, which raises `BadAnswer` if it is unusable.

        Raises `GaveUp` after all attempts, `Refused` if the server says no, `AskingStopped` after a stop.
        """
        if not self._under_way:  # earlier failures say nothing about the server now
            self._failures, self._last_good = 0, time.monotonic()
        self._under_way += 1
        try:
            async with self.places:  # kept between attempts: a server in trouble gets fewer requests
                return await self._until_answered(call, read, seconds)
        finally:
            self._under_way -= 1

    async def _until_answered(self, call: Call, read: Callable[[Reply], T], seconds: float | None) -> T:
        """Send a request again until it has an answer, patience ends, or nothing more is asked."""
        began = refused_since = time.monotonic()
        attempt, refusals, asked = 1, 0, call
        while True:
            while self._resume_at > time.monotonic() and not self.stopped:  # others may move it
                await self._sleep(self._resume_at - time.monotonic())
            try:
                return await self._sent(asked, read, seconds)
            except RateLimited as trouble:
                self._delay_all(trouble, refusals, refused_since)
                refusals += 1
            except (Unavailable, BadAnswer) as trouble:
                patient = time.monotonic() - began <= self.policy.longest_call
                if attempt >= self._most_attempts(trouble) or not patient:
                    reached = not isinstance(trouble, Unavailable) or trouble.reached
                    raise GaveUp(f"{trouble} ({attempt} attempts)", reached=reached) from None
                self._count_repetition(f"sent again: {trouble}")
                if isinstance(trouble, BadAnswer):
                    asked = call.drawn_anew()
                longest = min(self.policy.longest_wait, self.policy.first_wait * 2 ** (attempt - 1))
                # Drawn, so that requests that failed together do not come back together.
                await self._sleep(random.uniform(0, longest))  # noqa: S311
                attempt += 1
                refusals, refused_since = 0, time.monotonic()

    def _most_attempts(self, trouble: Unavailable | BadAnswer) -> int:
        policy = self.policy
        if isinstance(trouble, BadAnswer):
            return min(policy.attempts, policy.attempts_at_answers)
        if trouble.overload and trouble.reached:
            return min(policy.attempts, policy.attempts_in_time)
        return policy.attempts

    def _delay_all(self, trouble: RateLimited, refusals: int, refused_since: float) -> None:
        """Let all requests wait after a 429. Raises `AskingStopped` if that would take too long."""
        policy, now = self.policy, time.monotonic()
        self.places.halve()
        doubled = policy.first_wait * 2 ** min(refusals, 10)
        wait = trouble.wait or min(policy.longest_wait, doubled)
        if wait > policy.longest_pause:
            reason = f"the server asks to wait {duration(wait)} ({trouble}). Rerun the command then"
            raise self.stop(reason) from None
        if now + wait - refused_since > policy.longest_call:
            minutes = policy.longest_call / 60
            raise self.stop(f"the server has refused every request for {minutes:.0f} min") from None
        self._count_repetition(f"the server asks to slow down: {wait:.1f} s ({trouble})")
        self._resume_at = max(self._resume_at, now + wait)

    def _count_repetition(self, why: str) -> None:
        self.meter.spending.retries += 1
        self._note(why)

    async def _sleep(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not self.stopped:
            await asyncio.sleep(min(left, 1.0))

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
