"""Errors of one request, by what is to be done about them. None of these reaches a user."""

from __future__ import annotations


class GaveUp(Exception):
    """One request has no answer after all attempts; the message says why."""

    def __init__(self, message: str, *, reached: bool = True) -> None:
        super().__init__(message)
        self.reached = reached  # whether there was a server at all


class Trouble(Exception):
    """An attempt without a usable answer; the message is foreign text already cleaned."""

    billed = False  # whether the server may have charged for it all the same


class RateLimited(Trouble):
    """429: all requests wait, then this one is sent again."""

    def __init__(self, message: str, wait: float | None) -> None:
        super().__init__(message)
        self.wait = wait  # seconds that the server asks for; None: it does not say


class Unavailable(Trouble):
    """No connection, a time-out, a reset, 5xx: sent again after a pause."""

    def __init__(self, message: str, *, billed: bool, overload: bool = False, reached: bool = True) -> None:
        super().__init__(message)
        self.billed = billed
        self.overload = overload  # a time-out: fewer at once may help
        self.reached = reached  # whether there was a server at all


class BadAnswer(Trouble):
    """An answer that contradicts itself or the question: sent again, never believed."""

    billed = True


class Refused(Trouble):
    """The server understood and says no (400, 404, 422): sending it again would not help."""

    def __init__(self, message: str, *, parameter: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.parameter = parameter
        self.status = status


class Blocked(Refused):
    """A content filter took the request or its answer: for a text an outcome, and nothing to ask again."""

    def __init__(self, message: str, *, status: int = 200, by: str = "") -> None:
        super().__init__(message, status=status)
        self.by = by  # the model, where the server names one


class Denied(Trouble):
    """The key is refused or the money is gone: nothing more will be answered."""
