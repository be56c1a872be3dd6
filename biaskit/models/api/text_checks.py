"""Questions to an endpoint about texts: which paths answer, with which parameters, drawn or not, how fast."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from biaskit.errors import ModelError
from biaskit.models.api.abilities import NEUTRAL, Abilities, AbilityFinding
from biaskit.models.api.answers import AnswerChoice, answered, choices, reasons_first
from biaskit.models.api.connection import Connection
from biaskit.models.api.trouble import Blocked, GaveUp, Refused
from biaskit.models.api.wire import CHATS, COMPLETIONS, Call, Json, Reply, inside
from biaskit.models.thoughts import for_template
from biaskit.records import ANSWERED_SEPARATOR

T = TypeVar("T")

QUESTION_S = 30.0  # seconds for one question
PROMPT = "Q: I recently met a nurse. What is the gender of the nurse?\nA: The gender of the nurse is"
ANOTHER = "Q: Who repaired the car yesterday, and what did the neighbours say about it?\nA: They said that"
CHAT = "Describe a nurse in one sentence."
FIRST: Mapping[str, str] = {COMPLETIONS: PROMPT, CHATS: CHAT}
SYSTEM = "You write short and plain sentences and never use any word that a child would not understand."
LEAST = re.compile(
    r"(?is)(?=.*max_?\w*tokens).*?(?:>=|at least|minimum(?: [a-z_]+){0,4}|(?:greater|larger) than or equal to"
    r"|(?:be|no) (?:less|lower|smaller) than|between|range\D{0,40}(?:\[|from ))\W{0,3}(\d{1,4})\b"
)
"""How errors say how many new tokens a limit must allow at least."""
_UNKNOWN = "nrecogni[sz]ed|nknown|nexpected|not permitted"
"""A server's words for a parameter that it does not have: then no other value of it will do."""
MOST_CHOICES = 20
"""Texts asked for in one request, of a server that gave two; if fewer come, the rest is asked for again."""
DRAWING: Mapping[str, str] = {"generation_config": '{"do_sample": true, "top_k": 0}'}
"""Makes `transformers serve` sample; else a model's generation_config.json decides, and few say so."""
LONG = 40  # characters from which equal texts after several seeds are no coincidence


class TextChecks:
    """Questions about texts to an endpoint, each of which records its own finding."""

    def __init__(self, connection: Connection) -> None:
        self.model = connection.endpoint.model
        self.official = connection.endpoint.host.name == "api.openai.com"
        self.clean = connection.endpoint.clean
        self.controller = connection.controller
        self.of_template = for_template(connection.options.thinking)
        self.abilities = Abilities()
        self.refused: dict[str, set[str]] = {COMPLETIONS: set(), CHATS: set()}
        self.neutral: dict[str, Any] = {}
        self._counted: dict[str, int | None] = {}  # path → prompt tokens of its first question
        self._drawn: dict[str, list[str]] = {}  # path → the texts of its first question

    def learn(self, question: str, answer: str, **values: Any) -> None:
        """Record a finding, and its values in the fields of `Abilities`."""
        findings = (*self.abilities.findings, AbilityFinding(question, answer))
        self.abilities = replace(self.abilities, findings=findings, **values)

    def lacks(self, what: str, why: object, question: str = "", answer: str = "no ({})") -> None:
        """Record why an estimator or a format is missing; in the findings, `{}` of `answer` is the reason."""
        why = self.clean(why)
        self.abilities = replace(self.abilities, problems={**self.abilities.problems, what: why})
        if question:
            self.learn(question, answer.replace("{}", why))

    async def ask(
        self, path: str, body: Json | None, read: Callable[[Reply], T], seconds: float | None = None
    ) -> T | Refused | GaveUp:
        """Return the answer as read by `read`, or why there is none."""
        fields = body or {}
        new, n = fields.get("max_tokens") or fields.get("max_completion_tokens") or 0, fields.get("n") or 1
        size = len(repr(fields).encode()) + self.abilities.overhead if fields else 0
        call = Call(path, body, size, int(new) * int(n))
        try:
            return await self.controller.ask(call, read, seconds=seconds or QUESTION_S)
        except (Refused, GaveUp) as trouble:
            least = LEAST.match(str(trouble)) if isinstance(trouble, Refused) else None
            if least is None or not 0 < new < int(least[1]):
                return trouble
        self.learn("fewest new tokens", least[1], fewest_tokens=int(least[1]))
        limit = "max_tokens" if "max_tokens" in fields else "max_completion_tokens"
        return await self.ask(path, {**fields, limit: int(least[1])}, read, seconds)

    def body(self, path: str, text: str, new_tokens: int, **settings: Any) -> dict[str, Any]:
        """Build a question in the fields that the endpoint takes."""
        settings = {name: value for name, value in settings.items() if name not in self.refused[path]}
        new_tokens = max(new_tokens, self.abilities.fewest_tokens)
        if path == COMPLETIONS:
            return {"model": self.model, "prompt": text, "max_tokens": new_tokens, **settings}
        messages = [{"role": "user", "content": text}]
        limit = {self.abilities.chat_limit: new_tokens}
        return {"model": self.model, "messages": messages, **limit, **self.of_template, **settings}

    async def ask_texts(self) -> None:
        """Ask what can be sent and what comes back, whether texts are drawn, and how fast."""
        await self._model_list()
        await self._path(CHATS)
        await self._path(COMPLETIONS)
        await self._samples()
        if self.abilities.chat:
            await self._system_role()
        if self.abilities.completions or self.abilities.chat:
            path = COMPLETIONS if self.abilities.completions else CHATS
            await self._sizes(path)
            await self._speed(path)

    async def _model_list(self) -> None:
        names = await self.ask("models", None, _listed_names, seconds=QUESTION_S / 3)
        if isinstance(names, GaveUp) and not names.reached:
            raise GaveUp(f"no server responds ({names}). Is it running? Is the address right?")
        if isinstance(names, Exception):
            answer = f"none ({names})"
        elif self.model in names:
            answer = "names the model"
        else:
            shown = ", ".join(map(self.clean, names[:5])) or "nothing"
            answer = f"does not name the model; it lists {shown}"
        self.learn("model list", answer)

    async def _path(self, path: str) -> None:
        """Check whether a path answers, with which parameters, and how many choices come back for two."""
        settings: dict[str, Any] = {"temperature": 1.0, "top_p": 1.0, "seed": 1, "n": 2}
        if not self.official:
            settings |= {name: values[0] for name, values in NEUTRAL.items()}
        why: object = "it refuses too many parameters"
        for _ in range(12):
            body = self.body(path, FIRST[path], 24, **settings)
            found = await self.ask(path, body, _read_two)
            if isinstance(found, tuple):
                self.neutral |= {name: settings[name] for name in NEUTRAL if name in settings}
                self._answers(path, *found)
                return
            if isinstance(found, Refused) and self.of_template and "chat_template_kwargs" in str(found):
                raise ModelError(f"the server takes no thinking=on or off ({found}): leave thinking at auto.")
            if isinstance(found, GaveUp | Blocked) or not self._without(path, found, body, settings):
                why = found
                break
        self.refused[path].clear()  # a closed path refuses no parameters
        self.lacks("chat" if path == CHATS else "completions", why, f"/{path}")

    def _without(self, path: str, error: Refused, body: Json, settings: dict[str, Any]) -> bool:
        """Leave out or rename what a server refuses; return False if no parameter can be left out."""
        if error.status in (404, 405, 501) and error.parameter is None:
            return False
        sent = [name for name in body if name not in ("model", "messages", "prompt")]
        name = next((name for name in _named(error) if name in sent), None)
        if name is None:  # it does not say which: those beyond the OpenAI API go first
            beyond = [name for name in NEUTRAL if name in settings]
            dropped = beyond or [name for name in settings if name in ("seed", "n")][:1]
        elif name == "max_tokens" and path == CHATS:
            self.abilities = replace(self.abilities, chat_limit="max_completion_tokens")
            return True
        elif settings.get(name) in NEUTRAL.get(name, ())[:-1] and not re.search(_UNKNOWN, str(error)):
            settings[name] = NEUTRAL[name][1]
            return True
        else:
            dropped = [name] if name in settings else []
        for one in dropped:
            del settings[one]
        self.refused[path].update(dropped)
        return bool(dropped)

    def _answers(self, path: str, reply: Reply, listed: list[AnswerChoice], by: str) -> None:
        texts = [choice.text for choice in listed]
        n = len(texts)
        if n == 2 and texts[0] == texts[1] and len(texts[0]) > LONG:
            n = 1  # one text given twice is one sample
        self._counted[path] = reply.tokens()
        self._drawn[path] = texts
        most = MOST_CHOICES if n == 2 else 1
        thinks = path == CHATS and reasons_first(reply, listed)
        earlier = self.abilities
        values: dict[str, Any] = {
            "chat" if path == CHATS else "completions": True,
            "choices": min(most, earlier.choices) if earlier.answered_by else most,
            "answered_by": earlier.answered_by or by,
            "reasoning": earlier.reasoning or thinks,
        }
        refused = sorted(self.refused[path])
        answer = f"yes; {n} of 2 choices come back" if "n" not in refused else "yes; one choice at a time"
        if refused:
            answer += f"; refuses {', '.join(refused)}"
        if path == CHATS and "completion" in self.abilities.chat_limit:
            answer += "; wants max_completion_tokens"
        self.learn(f"/{path}", answer, **values)
        if thinks:
            self.learn("thinks before it answers", "yes: only sampling is possible")

    async def _samples(self) -> None:
        """Check whether another seed gives another text: some servers always take the likeliest tokens."""
        for path, first in self._drawn.items():
            if len(set(first)) != 1 or len(first[0]) <= LONG:
                continue
            others = [await self._sample(path, seed) for seed in (2, 3)]
            if trouble := next((text for text in others if isinstance(text, Exception)), None):
                self.learn(f"samples, /{path}", f"unknown: {trouble}")
                continue
            if set(others) != set(first):
                continue
            finding = "three seeds at temperature 1 give the same text"
            told = [await self._sample(path, seed, **DRAWING) for seed in (1, 2)]
            if all(isinstance(text, str) for text in told) and told[0] != told[1]:
                self.neutral |= DRAWING
                self.learn(f"samples, /{path}", f"only if set in generation_config; otherwise {finding}")
            else:
                why = f"{finding}: it always returns the most probable tokens"
                self.lacks("sampling", why, f"samples, /{path}")
                self.abilities = replace(self.abilities, samples=False)

    async def _sample(self, path: str, seed: int, **told: str) -> str | Refused | GaveUp:
        settings = {"temperature": 1.0, "top_p": 1.0, "seed": seed, **self.neutral, **told}
        body = self.body(path, FIRST[path], 24, **settings)
        text = await self.ask(path, body, first_text)
        # It may have been busy.
        return text if isinstance(text, str) else await self.ask(path, body, first_text)

    async def _system_role(self) -> None:
        """Check by the token counts of a short and a long system message whether they reach the model."""
        counts = []
        # Not against none: one that replaces the template's default may leave fewer tokens than that.
        for system in (SYSTEM, SYSTEM + " " + ANOTHER):
            body = self.body(CHATS, CHAT, 1)
            body["messages"] = [{"role": "system", "content": system}, *body["messages"]]
            tokens = await self.ask(CHATS, body, Reply.tokens)
            if isinstance(tokens, Exception):
                self.learn("system role", f"refused ({tokens})")
                return
            counts.append(tokens)
        # A template without the role drops the message, and the server answers as if there were none.
        reaches = not all(counts) or len(set(counts)) > 1
        self.learn("system role", "supported" if reaches else "silently dropped", takes_system=reaches)

    async def _sizes(self, path: str) -> None:
        """Estimate bytes per token and a template's overhead from the server's counts of two lengths."""
        addition = " " + " ".join([ANOTHER, CHAT, SYSTEM])
        short = self._counted.get(path)
        long = await self.ask(path, self.body(path, FIRST[path] + addition, 1), Reply.tokens)
        if not short or not isinstance(long, int) or long <= short:
            self.learn("token counts", "none: costs are estimated from the length of the texts")
            return
        per_token = len(addition.encode()) / (long - short)
        chat = self._counted.get(CHATS) or short
        overhead = max(0, round(chat - len(CHAT.encode()) / per_token)) + 8
        answer = f"about {per_token:.1f} bytes a token"
        self.learn("token counts", answer, bytes_per_token=per_token, overhead=overhead)

    async def _speed(self, path: str) -> None:
        """Measure one short request, and whether four at once take less than four times as long."""
        seconds = []
        # Questions of one length; the first may open a connection.
        for numbers in ((0,), (1,), (2, 3, 4, 5)):
            started = time.perf_counter()
            bodies = [self.body(path, f"{number}: {ANOTHER}", 1) for number in numbers]
            answers = await asyncio.gather(*(self.ask(path, body, first_text) for body in bodies))
            if any(isinstance(answer, Exception) for answer in answers):
                return
            seconds.append(time.perf_counter() - started)
        alone, together = min(seconds[:2]), seconds[2]
        parallel = max(1.0, min(4.0, 4 * alone / max(1e-6, together)))
        answer = f"{alone:.2f} s per short request, {together:.2f} s for four at once"
        self.learn("speed", answer, latency=alone, parallel=parallel)


def first_text(reply: Reply) -> str:
    """Return the text of an answer's only choice."""
    return choices(reply, 1)[0].text


def _read_two(reply: Reply) -> tuple[Reply, list[AnswerChoice], str]:
    """Return an answer, its choices of the two that were asked for, and the name of who answered."""
    return reply, choices(reply, 2), answered(reply).by.split(ANSWERED_SEPARATOR)[0]


def _listed_names(reply: Reply) -> list[str]:
    listed = reply.data.get("data")
    names = [inside(entry, "id") for entry in listed] if isinstance(listed, list) else []
    return [name for name in names if isinstance(name, str)]


def _named(error: Refused) -> list[str]:
    """Return the parameters that an error names: in its own field, quoted, or after "supplied:"."""
    names = [error.parameter] if error.parameter else []
    names += re.findall(r"['\"`]([a-z_]+)\\?['\"`]", str(error))  # a gateway writes \' for '
    return names + re.findall(r"supplied: ([a-z_]+)", str(error))
