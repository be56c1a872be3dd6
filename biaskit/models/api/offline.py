"""An endpoint that is not asked: requests go into a file, or answers come from files (docs/large-models.md).

Scorer and generator do not know the difference: each call carries the key of the row that comes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from biaskit.models.api.capabilities import Capabilities, CapabilityFinding
from biaskit.models.api.doors import NEUTRAL
from biaskit.models.api.endpoint import Endpoint
from biaskit.models.api.wire import CHATS, COMPLETIONS, Call, Reply
from biaskit.models.options import ScoringOptions

T = TypeVar("T")
_NO_IDS = "token ids are asked of a server, and a file of requests cannot; take top-k, echo or sampling"


class Exchange(Protocol):
    """Replaces a server: writes requests down, or answers from files."""

    def ask(self, call: Call, read: Callable[[Reply], T], endpoint: Endpoint) -> T:
        """Return the answer to a call as read by `read`. Raises `GaveUp` if there is none."""


@dataclass(frozen=True, slots=True)
class OfflineController:
    """Passes a model's calls to an exchange in place of a server."""

    exchange: Exchange
    endpoint: Endpoint

    async def ask(self, call: Call, read: Callable[[Reply], T], *, seconds: float | None = None) -> T:  # noqa: ARG002
        """Return the exchange's answer."""
        return self.exchange.ask(call, read, self.endpoint)


@dataclass(frozen=True, slots=True)
class Offline:
    """Options of a model that is not asked."""

    exchange: Exchange
    form: str = "auto"  # the study's prompt form, which decides the path

    def controller(self, endpoint: Endpoint) -> OfflineController:
        """Make the controller of an endpoint's model."""
        return OfflineController(self.exchange, endpoint)


def row_of_name(identifier: str) -> str:
    """Return the key of the row that a call is for."""
    return identifier[:32]


def assumed_capabilities(
    form: str, scoring: ScoringOptions | None, choices: int, *, official: bool
) -> Capabilities:
    """Assume the capabilities of a service that was not asked: the path of a form, and one estimator.

    `scoring`: None for texts. Form `auto` is asked as a chat, estimator `auto` by sampling.
    """
    estimator = "sampling" if scoring is None or scoring.estimator == "auto" else scoring.estimator
    raw = form in ("raw", "completion") or (estimator in ("echo", "selected-ids") and form == "auto")
    k = 0 if scoring is None or estimator != "top-k" else min(scoring.k, 20)
    path = COMPLETIONS if raw else CHATS
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
        echo=estimator == "echo",
        scored=True,
        assumed=True,
        findings=(CapabilityFinding("nothing was asked", f"assumed: /v1/{path}, {estimator}"),),
        problems={"selected-ids": _NO_IDS},
    )
