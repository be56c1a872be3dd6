"""An endpoint that is not asked: requests go into a file, or answers come from files (docs/large-models.md).

What asks and reads does not know: each call names the row that will come of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from biaskit.models.api.capabilities import Capabilities, CapabilityFinding
from biaskit.models.api.doors import NEUTRAL
from biaskit.models.api.endpoint import Endpoint
from biaskit.models.api.wire import Call, Reply
from biaskit.models.options import ScoringOptions

T = TypeVar("T")
_NO_IDS = "token ids are asked of a server, and a file of requests cannot; take top-k, echo or sampling"


class Exchange(Protocol):
    """What stands in a server's place."""

    def ask(self, call: Call, read: Callable[[Reply], T], endpoint: Endpoint) -> T:
        """The answer to a call, read. Raises `GaveUp` where there is none."""


@dataclass(frozen=True, slots=True)
class OfflineController:
    """What a model asks in place of a server."""

    exchange: Exchange
    endpoint: Endpoint

    async def ask(self, call: Call, read: Callable[[Reply], T], *, seconds: float | None = None) -> T:  # noqa: ARG002
        """The exchange's answer."""
        return self.exchange.ask(call, read, self.endpoint)


@dataclass(frozen=True, slots=True)
class Offline:
    """How a model is opened that nobody asks."""

    exchange: Exchange
    form: str = "auto"  # the study's prompt form, which says what door there must be

    def controller(self, endpoint: Endpoint) -> OfflineController:
        """What the model behind an endpoint asks."""
        return OfflineController(self.exchange, endpoint)


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
