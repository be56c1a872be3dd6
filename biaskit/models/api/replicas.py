"""Do several servers serve the same model? One that answers as another is left out (docs/apis.md#several)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from biaskit.models.api.endpoint import clean
from biaskit.models.api.wire import Call, Lane, Reply, inside

DIFFERENT = 0.5
"""In log-probability of one token: more than 16-bit arithmetic explains, less than two models differ by."""
_QUESTION = "The people who work there say that"


@dataclass(frozen=True, slots=True)
class Greeted:
    """What a server said of itself: the model's name, and the first token's list where it gives one."""

    name: str = ""
    listed: Mapping[str, float] = field(default_factory=dict)  # token → log-probability

    @classmethod
    def read(cls, reply: Reply) -> Greeted:
        """From the answer to `greeting`; whatever is odd in it is not there."""
        name = reply.data.get("model")
        first = inside(reply.data, "choices", 0, "logprobs", "top_logprobs", 0)
        listed = {
            token: float(value)
            for token, value in (first.items() if isinstance(first, Mapping) else ())
            if isinstance(value, int | float) and -100 < value <= 0
        }
        return cls(name if isinstance(name, str) else "", listed)

    def other_than(self, known: Greeted) -> str:
        """Why this is another model than `known`; "" where nothing says so."""
        if self.name and known.name and self.name != known.name:
            return f"it answers as {clean(self.name)!r}, the first one as {clean(known.name)!r}"
        if not self.listed or not known.listed:
            return ""
        shared = [
            abs(value - known.listed[token]) for token, value in self.listed.items() if token in known.listed
        ]
        if not shared or max(shared) > DIFFERENT:
            return "it gives other probabilities for the same prompt"
        return ""


def greetings(model: str) -> tuple[Call, Call]:
    """A question of one token, put to each server before its first use and after it was away.

    The second one is for servers that only chat: it tells their name.
    """
    body = {
        "model": model,
        "prompt": _QUESTION,
        "max_tokens": 1,
        "temperature": 1.0,
        "logprobs": 5,
        "seed": 1,
    }
    chat = {"model": model, "messages": [{"role": "user", "content": _QUESTION}], "max_tokens": 1}
    return Call("completions", body, 32, 1), Call("chat/completions", chat, 64, 1)


class Replicas:
    """Which of several servers are known to serve one model: the first one's.

    `tell`: what a user must hear.
    """

    def __init__(self, model: str, tell: Callable[[str], None]) -> None:
        self.questions = greetings(model)
        self._tell = tell
        self._first: Greeted | None = None
        self._known: set[int] = set()  # by identity: a server is met again after it was away
        self._meeting: dict[int, asyncio.Lock] = {}

    def knows(self, lane: Lane) -> bool:
        """Whether it was met since it was last away."""
        return id(lane) in self._known

    def forget(self, lane: Lane) -> None:
        """It was away: whatever comes back may be another model."""
        self._known.discard(id(lane))

    def meeting(self, lane: Lane) -> asyncio.Lock:
        """Held while it is being met."""
        return self._meeting.setdefault(id(lane), asyncio.Lock())

    @property
    def first_is_met(self) -> bool:
        """Whether there is anything to hold a server against."""
        return self._first is not None

    def admit(self, lane: Lane, greeted: Greeted) -> bool:
        """Whether a server may be asked; one that may not is told of."""
        self._first = self._first or greeted
        same = self._same(lane, greeted.other_than(self._first))
        if same:
            self._known.add(id(lane))
        return same

    def still(self, lane: Lane, reply: Reply) -> bool:
        """Whether an answer is of the same model by its name.

        It does not make a server known: it may have been sent before that one was away.
        """
        if self._first is None:
            return True
        named = Greeted(Greeted.read(reply).name)
        self._first = self._first if self._first.name else replace(self._first, name=named.name)
        return self._same(lane, named.other_than(self._first))

    def _same(self, lane: Lane, why: str) -> bool:
        if why:
            self._tell(f"{lane.host.shown} is left out: {why}.")
        return not why
