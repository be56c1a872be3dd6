"""Requests as the lines of a batch file, as OpenAI's batch service and vLLM's run-batch take them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import BinaryIO, TypeVar

from biaskit.models.api.endpoint import Endpoint
from biaskit.models.api.trouble import GaveUp
from biaskit.models.api.wire import Call, Reply

T = TypeVar("T")
NAMES = ("custom_id", "method", "url", "body")  # fields of a line


class RequestFile:
    """An exchange that writes every call once and answers none."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._written: set[str] = set()
        self.size = 0  # bytes
        self.doors: Counter[str] = Counter()  # url → requests

    @property
    def n(self) -> int:
        """Number of requests in the file."""
        return len(self._written)

    def ask(self, call: Call, read: Callable[[Reply], T], endpoint: Endpoint) -> T:  # noqa: ARG002
        """Write a call. Always raises `GaveUp`."""
        if call.name not in self._written:
            self._written.add(call.name)
            url = f"/v1/{call.path}"
            self.doors[url] += 1
            line = dict(zip(NAMES, (call.name, "POST", url, dict(call.body or {})), strict=True))
            self.size += self._file.write(json.dumps(line).encode("ascii") + b"\n")
        raise GaveUp("written down, not asked")


def is_request_file(content: bytes) -> bool:
    """Return whether a file may be replaced: its first line is a request as `RequestFile` writes it."""
    try:
        line = json.loads(content.split(b"\n", 1)[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(line, dict) and tuple(line) == NAMES
