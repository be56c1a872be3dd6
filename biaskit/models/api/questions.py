"""How a question is put to an endpoint, and how its answer is recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from biaskit.models.api.capabilities import Capabilities, CapabilityFinding
from biaskit.models.api.connection import Connection
from biaskit.models.api.trouble import GaveUp, Refused
from biaskit.models.api.wire import CHATS, COMPLETIONS, Call, Reply

T = TypeVar("T")

QUESTION_S = 30.0  # seconds for one question
PROMPT = "Q: I recently met a nurse. What is the gender of the nurse?\nA: The gender of the nurse is"
ANOTHER = "Q: Who repaired the car yesterday, and what did the neighbours say about it?\nA: They said that"
CHAT = "Describe a nurse in one sentence."
FIRST: Mapping[str, str] = {COMPLETIONS: PROMPT, CHATS: CHAT}


class Questions:
    """The findings on one endpoint so far, and the means to ask it more."""

    def __init__(self, connection: Connection) -> None:
        self.model = connection.endpoint.model
        self.official = connection.endpoint.host.name == "api.openai.com"
        self.clean = connection.endpoint.clean
        self.controller = connection.controller
        self.capabilities = Capabilities()
        self.refused: dict[str, set[str]] = {COMPLETIONS: set(), CHATS: set()}
        self.neutral: dict[str, Any] = {}

    def learn(self, question: str, answer: str, **values: Any) -> None:
        """Record a finding, and its values in the fields of `Capabilities`."""
        finding = CapabilityFinding(question, answer)
        self.capabilities = replace(
            self.capabilities, findings=(*self.capabilities.findings, finding), **values
        )

    def lacks(self, what: str, why: object, question: str = "", answer: str = "no ({})") -> None:
        """Record why an estimator or a form is missing; in the findings, `{}` of `answer` is the reason."""
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
        """Return the answer as read by `read`, or why there is none."""
        fields = body or {}
        new, n = fields.get("max_tokens") or fields.get("max_completion_tokens") or 0, fields.get("n") or 1
        size = len(repr(fields).encode()) + self.capabilities.overhead if fields else 0
        call = Call(path, body, size, int(new) * int(n))
        try:
            return await self.controller.ask(call, read, seconds=seconds or QUESTION_S)
        except (Refused, GaveUp) as trouble:
            return trouble

    def body(self, path: str, text: str, new_tokens: int, **settings: Any) -> dict[str, Any]:
        """Build a question in the fields that the endpoint takes."""
        settings = {name: value for name, value in settings.items() if name not in self.refused[path]}
        if path == COMPLETIONS:
            return {"model": self.model, "prompt": text, "max_tokens": new_tokens, **settings}
        messages = [{"role": "user", "content": text}]
        limit = {self.capabilities.chat_limit: new_tokens}
        return {"model": self.model, "messages": messages, **limit, **settings}
