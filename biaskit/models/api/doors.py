"""Which paths answer, with which parameters, whether they draw, how fast, and what they count."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from biaskit.models.api import questions
from biaskit.models.api.answers import answered, choices, reasons_first
from biaskit.models.api.connection import Connection
from biaskit.models.api.questions import ANOTHER, CHAT, CHATS, COMPLETIONS, FIRST, Questions
from biaskit.models.api.trouble import GaveUp, Refused
from biaskit.models.api.wire import Reply, inside
from biaskit.records import ANSWERED_SEPARATOR

SYSTEM = "You write short and plain sentences and never use any word that a child would not understand."
NEUTRAL: Mapping[str, tuple[float, ...]] = {
    "top_k": (-1, 0),
    "min_p": (0.0,),
    "repeat_penalty": (1.0,),
    "repetition_penalty": (1.0,),
}
"""Sampling settings beyond the OpenAI API, with the values that switch them off: servers have defaults of
their own (a top_k of 40, a penalty of 1.1), and draws under those are not draws from the model."""
_UNKNOWN = "nrecogni[sz]ed|nknown|nexpected|not permitted"
"""So a server says that it has no such parameter: then no other value of it will do."""
MOST_CHOICES = 20
"""Asked for in one request of a server that gave two; one that gives fewer is asked for the rest."""
TOLD: Mapping[str, str] = {"generation_config": '{"do_sample": true, "top_k": 0}'}
"""What tells `transformers serve` to draw; else a model's generation_config.json decides, and few say so."""
LONG = 40
"""Characters from which one text after several seeds is no chance."""


class Doors(Questions):
    """The doors of an endpoint; each question writes into `found` what it learnt."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._counted: dict[str, int | None] = {}  # path → prompt tokens of its first question
        self._drawn: dict[str, list[str]] = {}  # path → the texts of its first question

    async def examine_doors(self) -> None:
        """Everything that texts need."""
        await self._model_list()
        await self._door(CHATS)
        await self._door(COMPLETIONS)
        await self._draws()
        if self.capabilities.chat:
            await self._system_role()
        if self.capabilities.completions or self.capabilities.chat:
            path = COMPLETIONS if self.capabilities.completions else CHATS
            await self._sizes(path)
            await self._speed(path)

    async def _model_list(self) -> None:
        def read(reply: Reply) -> list[str]:
            listed = reply.data.get("data")
            names = [inside(entry, "id") for entry in listed] if isinstance(listed, list) else []
            return [name for name in names if isinstance(name, str)]

        names = await self.ask("models", None, read, seconds=questions.QUESTION_S / 3)
        if isinstance(names, GaveUp) and not names.reached:
            raise GaveUp(f"there is no server ({names}). Is it running, is the address right?")
        if isinstance(names, Exception):
            answer = f"none ({names})"
        elif self.model in names:
            answer = "names the model"
        else:
            shown = ", ".join(self.clean(name) for name in names[:5]) or "nothing"
            answer = f"does not name the model; it holds {shown}"
        self.learn("model list", answer)

    async def _door(self, path: str) -> None:
        """Whether a path answers, with which parameters, and how many choices come back for two."""
        extra: dict[str, Any] = {} if self.official else {name: values[0] for name, values in NEUTRAL.items()}
        settings: dict[str, Any] = {"temperature": 1.0, "top_p": 1.0, "seed": 1, "n": 2, **extra}
        why: object = "it refuses one parameter after the other"
        for _ in range(12):
            body = self.body(path, FIRST[path], 24, **settings)
            reply = await self.ask(path, body, _first_answer)
            if isinstance(reply, Reply):
                return self._opened(path, reply, settings)
            if isinstance(reply, GaveUp) or not self._without(path, reply, body, settings):
                why = reply
                break
        self.refused[path].clear()  # it says nothing of the other door
        return self.lacks("chat" if path == CHATS else "completions", why, f"/{path}")

    def _without(self, path: str, error: Refused, body: Mapping[str, Any], settings: dict[str, Any]) -> bool:
        """Leave out or rename what a server refuses; False where it is nothing that can be left out."""
        if error.status in (404, 405, 501) and error.parameter is None:
            return False
        sent = [name for name in body if name not in ("model", "messages", "prompt")]
        name = next((name for name in _named(error) if name in sent), None)
        if name is None:  # it does not say which: those that the OpenAI API does not have go first
            extra = [name for name in NEUTRAL if name in settings]
            for dropped in extra or [name for name in ("seed", "n") if name in settings][:1]:
                del settings[dropped]
                self.refused[path].add(dropped)
            return bool(extra) or "seed" in sent or "n" in sent
        if name == "max_tokens" and path == CHATS:
            self.capabilities = replace(self.capabilities, chat_limit="max_completion_tokens")
        elif settings.get(name) in NEUTRAL.get(name, ())[:-1] and not re.search(_UNKNOWN, str(error)):
            settings[name] = NEUTRAL[name][1]
        elif name in settings:
            self.refused[path].add(name)
            del settings[name]
        else:
            return False
        return True

    def _opened(self, path: str, reply: Reply, settings: Mapping[str, Any]) -> None:
        texts = [choice.text for choice in choices(reply, 2)]
        n = len(texts)
        if n == 2 and texts[0] == texts[1] and len(texts[0]) > LONG:
            n = 1  # one text given twice is one draw
        self._counted[path] = reply.tokens("prompt_tokens")
        self._drawn[path] = texts
        self.neutral |= {name: settings[name] for name in NEUTRAL if name in settings}
        most = MOST_CHOICES if n == 2 else 1
        thinks = path == CHATS and reasons_first(reply)
        known: dict[str, Any] = {"chat" if path == CHATS else "completions": True}
        known["choices"] = min(most, self.capabilities.choices) if self.capabilities.answered_by else most
        known["answered_by"] = (
            self.capabilities.answered_by or answered(reply).by.split(ANSWERED_SEPARATOR)[0]
        )
        known["reasoning"] = self.capabilities.reasoning or thinks
        refused = sorted(self.refused[path])
        answer = f"yes; {n} of 2 choices come back" if "n" not in refused else "yes; one choice at a time"
        if refused:
            answer += f"; refuses {', '.join(refused)}"
        if path == CHATS and "completion" in self.capabilities.chat_limit:
            answer += "; wants max_completion_tokens"
        self.learn(f"/{path}", answer, **known)
        if thinks:
            self.learn("thinks before it answers", "yes: only texts can be asked for")

    async def _draws(self) -> None:
        """Whether another seed gives another text: some servers take the likeliest whatever is asked."""
        for path, first in self._drawn.items():

            async def text(seed: int, told: Mapping[str, str], path: str = path) -> str | Exception:
                drawn = {"temperature": 1.0, "top_p": 1.0, "seed": seed, **self.neutral, **told}
                body = self.body(path, FIRST[path], 24, **drawn)
                said = await self.ask(path, body, _first_text)
                # It may have been busy.
                return said if isinstance(said, str) else await self.ask(path, body, _first_text)

            if len(set(first)) != 1 or len(first[0]) <= LONG:
                continue
            others = [await text(seed, {}) for seed in (2, 3)]
            if failed := next((other for other in others if isinstance(other, Exception)), None):
                self.learn(f"draws, /{path}", f"not known: {failed}")
                continue
            if set(others) != set(first):
                continue
            seen = "three seeds at temperature 1 give one text"
            told = [await text(seed, TOLD) for seed in (1, 2)]
            if all(isinstance(other, str) for other in told) and told[0] != told[1]:
                self.neutral |= TOLD
                self.learn(f"draws, /{path}", f"only when told to in generation_config: else {seen}")
            else:
                why = f"{seen}: it takes the most probable tokens whatever is asked"
                self.lacks("sampling", why, f"draws, /{path}")
                self.capabilities = replace(self.capabilities, draws=False)

    async def _system_role(self) -> None:
        body = self.body(CHATS, CHAT, 1)
        body["messages"] = [{"role": "system", "content": SYSTEM}, *body["messages"]]
        told = await self.ask(CHATS, body, _prompt_tokens)
        if isinstance(told, Exception):
            self.learn("system role", f"refused ({told})")
            return
        plain = self._counted.get(CHATS)
        # A template that drops the role answers as if nothing had been said.
        reaches = not plain or not told or told >= plain + 8
        self.learn("system role", "taken" if reaches else "dropped without a word", takes_system=reaches)

    async def _sizes(self, path: str) -> None:
        """Bytes per token and what a template adds, from the server's own counts of two lengths."""
        more = " " + " ".join([ANOTHER, CHAT, SYSTEM])
        short = self._counted.get(path)
        long = await self.ask(path, self.body(path, FIRST[path] + more, 1), _prompt_tokens)
        if not short or not isinstance(long, int) or long <= short:
            self.learn("token counts", "none: costs are estimated from the length of the texts")
            return
        per_token = len(more.encode()) / (long - short)
        chat = self._counted.get(CHATS) or short
        overhead = max(0, round(chat - len(CHAT.encode()) / per_token)) + 8
        answer = f"about {per_token:.1f} bytes a token"
        self.learn("token counts", answer, bytes_per_token=per_token, overhead=overhead)

    async def _speed(self, path: str) -> None:
        """Seconds of one short request, and whether four at once take less than four times that."""
        taken = []
        # Questions of one length; the first may open a connection.
        for numbers in ((0,), (1,), (2, 3, 4, 5)):
            started = time.perf_counter()
            bodies = [self.body(path, f"{number}: {ANOTHER}", 1) for number in numbers]
            asked = (self.ask(path, body, lambda reply: choices(reply, 1)) for body in bodies)
            if any(isinstance(answer, Exception) for answer in await asyncio.gather(*asked)):
                return
            taken.append(time.perf_counter() - started)
        alone, together = min(taken[:2]), taken[2]
        self.learn(
            "speed",
            f"{alone:.2f} s a short request, four at once {together:.2f} s",
            latency=alone,
            parallel=max(1.0, min(4.0, 4 * alone / max(1e-6, together))),
        )


def _prompt_tokens(reply: Reply) -> int | None:
    return reply.tokens("prompt_tokens")


def _first_text(reply: Reply) -> str:
    return choices(reply, 1)[0].text


def _first_answer(reply: Reply) -> Reply:
    """What must be readable of a door's first answer."""
    choices(reply, 2)
    answered(reply)
    return reply


def _named(error: Refused) -> list[str]:
    """Parameters that an error names: in its own field, quoted, or after "supplied:"; never a bare word."""
    names = [error.parameter] if error.parameter else []
    names += re.findall(r"['\"`]([a-z_]+)\\?['\"`]", str(error))  # a gateway writes \' for '
    return names + re.findall(r"supplied: ([a-z_]+)", str(error))
