"""An endpoint that is not asked: requests go into a file, or answers come from files (howto/large-models).

Scorer and generator do not know the difference: each call carries the key of the row that comes of it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import BinaryIO, TypeVar

from biaskit.models.api.abilities import NEUTRAL, Abilities, AbilityFinding
from biaskit.models.api.answer_files import AnswerFiles
from biaskit.models.api.endpoint import Endpoint
from biaskit.models.api.trouble import GaveUp
from biaskit.models.api.wire import CHATS, COMPLETIONS, Call, Reply
from biaskit.models.options import ScoringOptions

T = TypeVar("T")
NAMES = ("custom_id", "method", "url", "body")  # fields of a line of requests
_NO_IDS = "token ids need a running server, not a file of requests: use top-k, echo or sampling"


class RequestFile:
    """An exchange that writes every call once, as a line that OpenAI's and vLLM's batches take."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._written: set[str] = set()
        self.size = 0  # bytes
        self.endpoints: Counter[str] = Counter()  # url → requests

    @property
    def n(self) -> int:
        """Number of requests in the file."""
        return len(self._written)

    def ask(self, call: Call, read: Callable[[Reply], T], endpoint: Endpoint) -> T:  # noqa: ARG002
        """Write a call. Always raises `GaveUp`."""
        if call.name not in self._written:
            self._written.add(call.name)
            url = f"/v1/{call.path}"
            self.endpoints[url] += 1
            line = dict(zip(NAMES, (call.name, "POST", url, dict(call.body or {})), strict=True))
            self.size += self._file.write(json.dumps(line).encode("ascii") + b"\n")
        raise GaveUp("written to the file, not sent")


def is_request_file(content: bytes) -> bool:
    """Return whether a file may be replaced: its first line is a request as `RequestFile` writes it."""
    try:
        line = json.loads(content.split(b"\n", 1)[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(line, dict) and tuple(line) == NAMES


Exchange = RequestFile | AnswerFiles  # in the place of a server


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
    prompt_format: str = "auto"  # the study's prompt format, which decides the path


def assumed_abilities(
    prompt_format: str, scoring: ScoringOptions | None, choices: int, *, official: bool
) -> Abilities:
    """Assume the abilities of a service that was not asked: the path of a format, and one estimator.

    `scoring`: None for texts. Format `auto` is asked as a chat, estimator `auto` by sampling.
    """
    estimator = "sampling" if scoring is None or scoring.estimator == "auto" else scoring.estimator
    auto_is_raw = prompt_format == "auto" and estimator in ("echo", "selected-ids")
    raw = auto_is_raw or prompt_format in ("raw", "completion")
    k = 0 if scoring is None or estimator != "top-k" else min(scoring.k, 20)
    path = COMPLETIONS if raw else CHATS
    finding = AbilityFinding("nothing was sent", f"assumed: /v1/{path}, {estimator}")
    assumed = Abilities(
        completions=raw,
        chat=not raw,
        choices=choices,
        takes_system=True,
        prefill="flagged" if prompt_format == "chat-prefill" else "no",
        completions_k=k,
        chat_k=k,
        echo=estimator == "echo",
        scored=True,
        assumed=True,
        findings=(finding,),
        problems={"selected-ids": _NO_IDS},
    )
    if official:
        return replace(assumed, chat_limit="max_completion_tokens")
    return replace(assumed, neutral={name: values[-1] for name, values in NEUTRAL.items()})
