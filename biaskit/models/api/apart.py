"""Two kinds of questions that a server mixes up are never out at once, whoever in this process asks them.

vLLM's V1 runner gives wrong lists of most probable tokens, without an error, while a request with
`logprob_token_ids` is in the same batch. The server is what counts: two models, or two names of one, may
stand behind one address.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from biaskit.models.api.endpoint import is_loopback

Kind = Literal["", "lists", "selects"]
"""What a request asks of log-probabilities: nothing, the most probable tokens, or chosen ids."""


@dataclass(eq=False, slots=True)
class _Waiting:
    """A request of one kind that waits for the other kind to be answered."""

    kind: Kind
    loop: asyncio.AbstractEventLoop
    ready: asyncio.Future[None]
    admitted: bool = False


class Apart:
    """One address: requests of one kind go together, and no other kind while they are out.

    Loops of several threads use it, one for each model. Kinds take turns: who comes after one of the other
    kind that waits, waits too, so that no kind waits for ever.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kind: Kind = ""
        self._out = 0
        self._line: deque[_Waiting] = deque()

    @asynccontextmanager
    async def turn(self, kind: Kind) -> AsyncIterator[None]:
        """Hold a place for one request."""
        await self._enter(kind)
        try:
            yield
        finally:
            self._leave()

    async def _enter(self, kind: Kind) -> None:
        loop = asyncio.get_running_loop()
        with self._lock:
            if not self._line and (not self._out or kind == self._kind):
                self._kind, self._out = kind, self._out + 1
                return
            waiting = _Waiting(kind, loop, loop.create_future())
            self._line.append(waiting)
        try:
            await waiting.ready
        except asyncio.CancelledError:
            with self._lock:
                if not waiting.admitted:
                    self._line.remove(waiting)
                    raise
            self._leave()
            raise

    def _leave(self) -> None:
        with self._lock:
            self._out -= 1
            if self._out or not self._line:
                return
            self._kind = self._line[0].kind
            for waiting in [one for one in self._line if one.kind == self._kind]:
                self._line.remove(waiting)
                waiting.admitted = True
                self._out += 1
                waiting.loop.call_soon_threadsafe(_wake, waiting.ready)


def _wake(ready: asyncio.Future[None]) -> None:
    if not ready.done():  # cancelled meanwhile: whoever waited gives its place back
        ready.set_result(None)


_KEPT: dict[str, Apart] = {}


def keep_apart(url: str) -> None:
    """From now on the two kinds are never out together at this base URL's address."""
    _KEPT.setdefault(_address(url), Apart())


def turn_at(url: str, kind: Kind) -> contextlib.AbstractAsyncContextManager[None]:
    """A place for one request at an address; at once, where its kinds need not be kept apart."""
    apart = _KEPT.get(_address(url)) if kind and _KEPT else None
    return contextlib.nullcontext() if apart is None else apart.turn(kind)


def _address(url: str) -> str:
    """Host and port; every name of this machine is one."""
    parts = urlsplit(url)
    name = (parts.hostname or "").lower()
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"{'here' if is_loopback(name) else name}:{port}"
