"""How a question is put to an endpoint, and what is made of its answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from biaskit.models.api.capabilities import Capabilities, CapabilityFinding
from biaskit.models.api.connection import Connection
from biaskit.models.api.trouble import GaveUp, Refused
from biaskit.models.api.wire import Call, Reply

T = TypeVar("T")

QUESTION_S = 30.0
"""Seconds for one question."""
PROMPT = "Q: I recently met a nurse. What is the gender of the nurse?\nA: The gender of the nurse is"
ANOTHER = "Q: Who repaired the car yesterday, and what did the neighbours say about it?\nA: They said that"
CHAT = "Describe a nurse in one sentence."
COMPLETIONS, CHATS = "completions", "chat/completions"
FIRST = {COMPLETIONS: PROMPT, CHATS: CHAT}


class Questions:
    """What was learnt so far of one endpoint, and how more is asked."""

    def __init__(self, connection: Connection) -> None:
        self.model = connection.endpoint.model
        self.official = connection.endpoint.host.name == "api.openai.com"
        self.clean = connection.endpoint.clean
        self.controller = connection.controller
        self.capabilities = Capabilities()
        self.refused: dict[str, set[str]] = {COMPLETIONS: set(), CHATS: set()}
        self.neutral: dict[str, Any] = {}

    def learn(self, question: str, answer: str, **known: Any) -> None:
        """Write a finding down, and what of it is a field."""
        finding = CapabilityFinding(question, answer)
        self.capabilities = replace(
            self.capabilities, findings=(*self.capabilities.findings, finding), **known
        )

    def lacks(self, what: str, why: object, question: str = "", answer: str = "no ({})") -> None:
        """Why an estimator or a form is not there; `answer` stands in the findings, with the reason in it."""
        why = self.clean(why)
        self.capabilities = replace(self.capabilities, problems={**self.capabilities.problems, what: why})
        if question:
            self.learn(question, answer.replace("{}", why))

    async def ask(
        self,
        path: str,
        body: Mapping[str, Any] | None,
        read: Callable[[Reply], T],
        seconds: float | None = None,
    ) -> T | Refused | GaveUp:
        """What `read` makes of the answer, or why there is none."""
        asked = body or {}
        new, n = asked.get("max_tokens") or asked.get("max_completion_tokens") or 0, asked.get("n") or 1
        size = len(repr(asked).encode()) + self.capabilities.overhead if asked else 0
        try:
            call = Call(path, body, size, int(new) * int(n))
            return await self.controller.ask(call, read, seconds=seconds or QUESTION_S)
        except (Refused, GaveUp) as trouble:
            return trouble

    def body(self, path: str, text: str, new_tokens: int, **settings: Any) -> dict[str, Any]:
        """A question in the fields that the endpoint takes."""
        kept = {name: value for name, value in settings.items() if name not in self.refused[path]}
        if path == COMPLETIONS:
            return {"model": self.model, "prompt": text, "max_tokens": new_tokens, **kept}
        messages = [{"role": "user", "content": text}]
        return {"model": self.model, "messages": messages, self.capabilities.chat_limit: new_tokens, **kept}
