"""An endpoint in use: its event loop, its connections and its controller, from the first request to close."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, TypeVar

from biaskit.models.api.controller import Controller
from biaskit.models.api.endpoint import Endpoint
from biaskit.models.api.meter import Meter
from biaskit.models.api.options import ApiOptions
from biaskit.models.api.prices import find_dearest
from biaskit.models.api.replicas import Replicas
from biaskit.models.api.stream import LoopThread
from biaskit.models.api.wire import Lane
from biaskit.models.options import Account

Job = TypeVar("Job")
Answer = TypeVar("Answer")
Result = TypeVar("Result")


class Connection:
    """Everything between a model of an API and the network; begins with its first use."""

    def __init__(self, endpoint: Endpoint, options: ApiOptions, account: Account = Account()) -> None:
        self.endpoint = endpoint
        self.options = options
        self.price = options.price or find_dearest([host.name for host in endpoint.hosts], endpoint.model)
        # Questions that find out what a server can do are not worth minutes of patience each; and what was
        # not answered in its time is still being worked on.
        self.policy = replace(
            options.policy,
            attempts=min(3, options.policy.attempts),
            attempts_at_answers=2,
            attempts_in_time=1,
            start=4,
            most=4,
        )
        self._thread = LoopThread()
        self._meter = Meter(self.price, options.max_cost, account, purse=options.purse)
        self._controller: Controller | None = None
        self._lanes: list[Lane] = []

    def _open(self) -> Controller:
        if self._controller is None:
            lanes = self._lanes = [Lane(self.endpoint, host) for host in self.endpoint.hosts]
            note, clean = self.options.note, self.endpoint.clean
            several = Replicas(self.endpoint.model, self.options.tell) if len(lanes) > 1 else None
            self._controller = Controller(lanes, self._meter, self.policy, note, clean, several)
        return self._controller

    def begin_with(self, requests: int) -> None:
        """How many requests at once to begin with, at each server, now that a server's speed is known."""
        policy, n_servers = self.options.policy, len(self.endpoint.hosts)
        start, most = n_servers * min(policy.start, requests), n_servers * policy.most
        self.policy = replace(policy, start=start, most=most)
        if self._controller is not None:
            self._controller.begin_again(self.policy)

    def run(self, work: Callable[[Controller], Coroutine[Any, Any, Result]]) -> Result:
        """The result of some requests."""
        return self._thread.run(work(self._open()))

    def stream(
        self, jobs: Iterable[Job], work: Callable[[Controller, Job], Awaitable[Sequence[Answer]]]
    ) -> Iterator[Sequence[Answer]]:
        """A group of answers for each job, as they become ready."""
        controller = self._open()
        # Enough jobs in line that a window can double without waiting for the reader.
        return self._thread.stream(jobs, partial(work, controller), lambda: 2 * controller.window.limit + 4)

    def used(self) -> Mapping[str, float | None]:
        """For usage.json; the cost of an unknown price is None, never 0."""
        unknown = {} if self.price is not None else {"cost": None, "cost_unsure": None}
        return {**asdict(self._meter.spending), **unknown}

    def close(self) -> None:
        """End the connections and the loop."""
        if self._controller is not None:
            for lane in self._lanes:
                self._thread.run(lane.close())
            self._controller = None
        self._thread.close()
