"""An event loop in a thread of its own, whose answers come out as a plain iterator."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from biaskit.errors import AskingStopped

Job = TypeVar("Job")
Answer = TypeVar("Answer")
Result = TypeVar("Result")


class LoopThread:
    """Runs coroutines beside a notebook's own loop; started at its first use, ended by `close`."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="biaskit-api", daemon=True)
            self._thread.start()
        return self._loop

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run one coroutine and return its result; Ctrl-C in the caller cancels it."""
        future = asyncio.run_coroutine_threadsafe(work, self._started())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stream(
        self, jobs: Iterable[Job], work: Callable[[Job], Awaitable[Sequence[Answer]]], ahead: int
    ) -> Iterator[Sequence[Answer]]:
        """Yield the answers of jobs in whatever order they become ready, in groups that are ready together.

        At most `ahead` jobs are begun whose answers the reader does not have, so memory stays flat however
        slow it is; while it writes, answers gather and share its next write. After `AskingStopped` running
        jobs are finished; any other exception ends the stream at once, and closing it cancels them.
        """
        loop, source = self._started(), iter(jobs)
        done: queue.SimpleQueue[Sequence[Answer] | BaseException] = queue.SimpleQueue()
        tasks: set[asyncio.Future[Any]] = set()

        async def finish(job: Job) -> None:
            try:
                done.put(await work(job))
            except asyncio.CancelledError:
                raise
            except BaseException as error:
                done.put(error)

        def begin(fresh: Sequence[Job]) -> None:
            for job in fresh:
                tasks.add(task := loop.create_task(finish(job)))
                task.add_done_callback(tasks.discard)

        under_way, stopped = 0, None
        try:
            while True:
                # One message for all new jobs: each message wakes the loop.
                fresh = [] if stopped else list(islice(source, max(0, ahead - under_way)))
                if fresh:
                    loop.call_soon_threadsafe(begin, fresh)
                    under_way += len(fresh)
                if not under_way:
                    break
                ready = [done.get()]
                while not done.empty():  # nobody else takes from it
                    ready.append(done.get())
                under_way -= len(ready)
                answers: list[Answer] = []
                for group in ready:
                    if not isinstance(group, BaseException):
                        answers += group
                if answers:
                    yield answers
                for error in ready:
                    if isinstance(error, AskingStopped):
                        stopped = error
                    elif isinstance(error, BaseException):
                        raise error
            if stopped:
                raise stopped
        finally:
            if under_way:
                with contextlib.suppress(Exception):
                    asyncio.run_coroutine_threadsafe(_cancel(tasks), loop).result(timeout=5)

    def close(self) -> None:
        """Stop the loop; it starts again at its next use."""
        if self._loop is None or self._thread is None:
            return
        # In its own thread: the caller may itself be inside a running loop (a notebook).
        with contextlib.suppress(Exception):
            asyncio.run_coroutine_threadsafe(self._loop.shutdown_asyncgens(), self._loop).result(timeout=5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)
        if not self._thread.is_alive():
            self._loop.close()
        self._loop = self._thread = None


async def _cancel(tasks: Iterable[asyncio.Future[Any]]) -> None:
    waiting = list(tasks)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def gather_all(work: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """Return every result in order; if one fails, cancel the others."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in work]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        raise
