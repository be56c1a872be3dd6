"""An endpoint that is not asked: requests go into a file, or answers come from files (docs/large-models.md).

What asks and reads does not know: it puts its calls to a controller of its own, which names each by the key
of the row that will come of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from biaskit.models.api.capabilities import Capabilities, CapabilityFinding
from biaskit.models.api.connection import Connection
from biaskit.models.api.door_checks import NEUTRAL
from biaskit.models.api.endpoint import Endpoint
from biaskit.models.api.wire import Call, Reply
from biaskit.models.options import ScoringOptions
from biaskit.records import Failed

T = TypeVar("T")
Job = TypeVar("Job")
Answer = TypeVar("Answer")
AT_ONCE = 256
"""Jobs that are begun and not yet handed on; nothing is waited for."""
_NO_IDS = "token ids are asked of a server, and a file of requests cannot; take top-k, echo or sampling"


class Exchange(Protocol):
    """What stands in a server's place."""

    def ask(self, identifier: str, call: Call, read: Callable[[Reply], T], endpoint: Endpoint) -> T:
        """The answer to a call, read. Raises `GaveUp` where there is none."""


@dataclass(frozen=True, slots=True)
class Offline:
    """How a model is opened that nobody asks."""

    exchange: Exchange
    form: str = "auto"  # the study's prompt form, which says what door there must be


class OfflineConnection(Connection):
    """A connection whose calls go to an exchange; each is named by what it is for."""

    def __init__(self, endpoint: Endpoint, options: Any, exchange: Exchange) -> None:
        super().__init__(endpoint, options)
        self._exchange = exchange
        self._put: set[str] = set()  # keys of what was put to it: what failed is not put again
        if self.price is not options.price and self.price is not None and self.price.input:
            self.price = None  # the table holds the price of asking one by one

    def stream(
        self, jobs: Iterable[Job], work: Callable[..., Awaitable[Sequence[Answer]]]
    ) -> Iterator[Sequence[Answer]]:
        """A group for each job: what the exchange has for it."""

        async def one(job: Any) -> Sequence[Any]:
            if not self._put.isdisjoint(keys := {request.key for request in job}):
                return [Failed(key, "no answer was handed in") for key in keys]  # nor will there be one
            self._put |= keys
            return await work(_Named(self._exchange, self.endpoint, _name_of(job)), job)

        return self._thread.stream(jobs, one, lambda: AT_ONCE)

    def used(self) -> Mapping[str, float | None]:
        """Nothing was asked here; what somebody else bills is unknown."""
        return {**super().used(), **({"cost": None, "cost_unsure": None} if self._is_billed else {})}

    @property
    def _is_billed(self) -> bool:
        return self.price is None or bool(self.price.input or self.price.output)


class _Named:
    """The controller of one job: the first of its calls has the job's name, the others their number too."""

    def __init__(self, exchange: Exchange, endpoint: Endpoint, name: str) -> None:
        self._exchange, self._endpoint, self._name = exchange, endpoint, name
        self._n = 0

    async def ask(self, call: Call, read: Callable[[Reply], T], *, seconds: float | None = None) -> T:  # noqa: ARG002
        self._n += 1
        name = self._name if self._n == 1 else f"{self._name}-{self._n}"
        return self._exchange.ask(name, call, read, self._endpoint)


def _name_of(job: Any) -> str:
    """The key of the row that comes of it; a text of a cell has its number too, several their count."""
    first, n = job[0], len(job)
    row = getattr(first, "row", "")
    name = f"{row}.{first.number}" if row else first.key
    return f"{name}x{n}" if n > 1 else name


def row_of_name(identifier: str) -> str:
    """The key of the row that a call is for."""
    return identifier[:32]


def assumed(form: str, scoring: ScoringOptions | None, choices: int, *, official: bool) -> Capabilities:
    """What a service may take that nobody asked: the door of the named form, the named estimator.

    `scoring`: None for texts. Without a named form the door is chat, without an estimator it is sampling.
    """
    named = "sampling" if scoring is None or scoring.estimator == "auto" else scoring.estimator
    raw = form in ("raw", "completion") or (named in ("echo", "selected-ids") and form == "auto")
    k = 0 if scoring is None or named != "top-k" else min(scoring.k, 20)
    door = "/v1/completions" if raw else "/v1/chat/completions"
    return Capabilities(
        completions=raw,
        chat=not raw,
        chat_limit="max_completion_tokens" if official else "max_tokens",
        neutral={} if official else {name: values[-1] for name, values in NEUTRAL.items()},
        choices=choices,
        takes_system=True,
        prefill="flagged" if form == "chat-prefill" else "no",
        completions_k=k,
        chat_k=k,
        echo=named == "echo",
        scored=True,
        assumed=True,
        findings=(CapabilityFinding("nothing was asked", f"assumed: {door}, {named}"),),
        problems={"selected-ids": _NO_IDS},
    )
