"""What a command leaves when it is called in this process (the fixture `console`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Said:
    """Its exit code and its two streams."""

    code: int
    out: str
    err: str


Cli = Callable[..., Said]
