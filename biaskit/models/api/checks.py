"""Puts about a dozen cheap questions to an endpoint, and believes nothing that was not measured."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from biaskit.errors import AskingStopped, ModelError
from biaskit.models.api.answers import answered, choices, listed_tokens, reasons_first
from biaskit.models.api.capabilities import CONTINUED, Capabilities, CapabilityFinding
from biaskit.models.api.connection import Connection
from biaskit.models.api.controller import Controller, GaveUp
from biaskit.models.api.draw_checks import how_it_draws
from biaskit.models.api.echo import Echo, read_echo
from biaskit.models.api.selected_ids import SelectedIds
from biaskit.models.api.trouble import BadAnswer, Refused
from biaskit.models.api.wire import Call, Reply, inside
from biaskit.records import ANSWERED_SEPARATOR

T = TypeVar("T")

QUESTION_S = 30.0
ECHO_S = 90.0
"""Seconds for one question; a server that computes every position in Python took 9 s for an echo."""
PROMPT = "Q: I recently met a nurse. What is the gender of the nurse?\nA: The gender of the nurse is"
ANOTHER = "Q: Who repaired the car yesterday, and what did the neighbours say about it?\nA: They said that"
CHAT = "Describe a nurse in one sentence."
COMPLETIONS, CHATS = "completions", "chat/completions"
_FIRST = {COMPLETIONS: PROMPT, CHATS: CHAT}
SYSTEM = "You write short and plain sentences and never use any word that a child would not understand."
PREFILLS = (
    ("Name a colour.", "My favourite colour is yel", "low"),
    ("Name an animal.", "I like the eleph", "ant"),
)
"""User turn, beginning of an answer that ends inside a word, and the rest of that word."""
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
CROSS_CHECK = 0.3
"""Largest difference in log-probability between two ways of asking one server; an echo that is off by
one token is off by several."""
LISTS = (20, 5, 1)  # lengths of a list that are asked for, until one comes
MOST_CHOICES = 20
"""Asked for in one request of a server that gave two; one that gives fewer is asked for the rest."""
SAME = 0.02  # differences below it are noise of the server's arithmetic, not another temperature
Listing = tuple[tuple[str, float], ...]  # listed tokens and their log-probabilities, the most probable first


def measure(connection: Connection, *, scores: bool) -> Capabilities:
    """What an endpoint can do for texts and, with `scores`, for probabilities.

    Raises `ModelError` where it does not answer, refuses the key, or answers with nothing usable.
    """
    where = f"{connection.endpoint.label} at {connection.endpoint.hosts[0].shown}"
    questions = CapabilityChecks(connection)
    try:
        found = connection.run(lambda controller: questions.put(controller, scores=scores))
    except (AskingStopped, GaveUp, Refused) as error:
        said = str(error)
        raise ModelError(f"{where}: {said}{'' if said.endswith('?') else '.'}") from None
    if not found.completions and not found.chat:
        why = "; ".join(f"{name}: {text}" for name, text in found.problems.items())
        raise ModelError(f"{where} answers neither way ({why}).")
    return found


class CapabilityChecks:
    """The questions in their order; each writes into `found` what it learnt."""

    def __init__(self, connection: Connection) -> None:
        self.model = connection.endpoint.model
        self.official = connection.endpoint.hosts[0].name == "api.openai.com"
        self.clean = connection.endpoint.clean
        self.found = Capabilities()
        self._controller: Controller
        self._ids: dict[str, set[str]] = {}  # id of an answer → the questions that it came to
        self._counted: dict[str, int | None] = {}  # path → prompt tokens of its first question
        self._refused: dict[str, set[str]] = {COMPLETIONS: set(), CHATS: set()}
        self._neutral: dict[str, Any] = {}
        self._drawn: dict[str, list[str]] = {}  # path → the texts of its first question

    async def put(self, controller: Controller, *, scores: bool) -> Capabilities:
        """Ask everything that is needed."""
        self._controller = controller
        await self._model_list()
        await self._door(CHATS)
        await self._door(COMPLETIONS)
        await self._draws()
        if self.found.chat:
            await self._system_role()
        if self.found.completions or self.found.chat:
            path = COMPLETIONS if self.found.completions else CHATS
            await self._sizes(path)
            await self._speed(path)
        if scores and self.found.completions:
            listing = await self._listing(COMPLETIONS)
            await self._selected(listing)
            await self._echo(listing)
        if scores and self.found.chat:
            await self._prefill()
            await self._listing(CHATS)
        self.found = replace(
            self.found,
            refused=tuple(sorted(set().union(*self._refused.values()))),
            neutral=dict(self._neutral),
            unique_ids=len(self._ids) > 1 and all(len(asked) == 1 for asked in self._ids.values()),
            scored=scores,
        )
        if self._neutral:
            shown = ", ".join(f"{name} {value}" for name, value in self._neutral.items())
            self._learn("settings of the server's own, switched off", shown)
        if self.found.answered_by and self.found.answered_by != self.model:
            self._learn("answers as", self.found.answered_by)
        return self.found

    # --- how a question is put, and what is made of its answer ---

    def _learn(self, question: str, answer: str, **known: Any) -> None:
        finding = CapabilityFinding(question, answer)
        self.found = replace(self.found, findings=(*self.found.findings, finding), **known)

    def _lacks(self, what: str, why: object, question: str = "", answer: str = "no ({})") -> None:
        """Why an estimator or a form is not there; `answer` stands in the findings, with the reason in it."""
        why = self.clean(why)
        self.found = replace(self.found, problems={**self.found.problems, what: why})
        if question:
            self._learn(question, answer.replace("{}", why))

    async def _ask(
        self,
        path: str,
        body: Mapping[str, Any] | None,
        read: Callable[[Reply], T],
        seconds: float | None = None,
    ) -> T | Refused | GaveUp:
        """What `read` makes of the answer, or why there is none."""
        asked = body or {}

        def noting(reply: Reply) -> T:
            identifier = reply.data.get("id")
            if asked and isinstance(identifier, str):
                self._ids.setdefault(identifier, set()).add(repr(asked))
            return read(reply)

        new, n = asked.get("max_tokens") or asked.get("max_completion_tokens") or 0, asked.get("n") or 1
        size = len(repr(asked).encode()) if asked else 0
        call = Call(path, body, size + self.found.overhead, int(new) * int(n))
        try:
            return await self._controller.ask(call, noting, seconds=seconds or QUESTION_S)
        except (Refused, GaveUp) as trouble:
            return trouble

    def _body(self, path: str, text: str, new_tokens: int, **settings: Any) -> dict[str, Any]:
        kept = {name: value for name, value in settings.items() if name not in self._refused[path]}
        if path == COMPLETIONS:
            return {"model": self.model, "prompt": text, "max_tokens": new_tokens, **kept}
        messages = [{"role": "user", "content": text}]
        return {"model": self.model, "messages": messages, self.found.chat_limit: new_tokens, **kept}

    # --- the model list, and the two doors ---

    async def _model_list(self) -> None:
        def read(reply: Reply) -> list[str]:
            listed = reply.data.get("data")
            names = [inside(entry, "id") for entry in listed] if isinstance(listed, list) else []
            return [name for name in names if isinstance(name, str)]

        names = await self._ask("models", None, read, seconds=QUESTION_S / 3)
        if isinstance(names, GaveUp) and not names.reached:
            raise GaveUp(f"there is no server ({names}). Is it running, is the address right?")
        if isinstance(names, Exception):
            answer = f"none ({names})"
        elif self.model in names:
            answer = "names the model"
        else:
            shown = ", ".join(self.clean(name) for name in names[:5]) or "nothing"
            answer = f"does not name the model; it holds {shown}"
        self._learn("model list", answer)

    async def _door(self, path: str) -> None:
        """Whether a path answers, with which parameters, and how many choices come back for two."""
        extra: dict[str, Any] = {} if self.official else {name: values[0] for name, values in NEUTRAL.items()}
        settings: dict[str, Any] = {"temperature": 1.0, "top_p": 1.0, "seed": 1, "n": 2, **extra}
        why: object = "it refuses one parameter after the other"
        for _ in range(12):
            body = self._body(path, _FIRST[path], 24, **settings)
            reply = await self._ask(path, body, _first_answer)
            if isinstance(reply, Reply):
                return self._opened(path, reply, settings)
            if isinstance(reply, GaveUp) or not self._without(path, reply, body, settings):
                why = reply
                break
        self._refused[path].clear()  # it says nothing of the other door
        return self._lacks("chat" if path == CHATS else "completions", why, f"/{path}")

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
                self._refused[path].add(dropped)
            return bool(extra) or "seed" in sent or "n" in sent
        if name == "max_tokens" and path == CHATS:
            self.found = replace(self.found, chat_limit="max_completion_tokens")
        elif settings.get(name) in NEUTRAL.get(name, ())[:-1] and not re.search(_UNKNOWN, str(error)):
            settings[name] = NEUTRAL[name][1]
        elif name in settings:
            self._refused[path].add(name)
            del settings[name]
        else:
            return False
        return True

    def _opened(self, path: str, reply: Reply, settings: Mapping[str, Any]) -> None:
        texts = [choice.text for choice in choices(reply, 2)]
        n = len(texts)
        if n == 2 and texts[0] == texts[1] and len(texts[0]) > 40:
            n = 1  # one text given twice is one draw
        self._counted[path] = _prompt_tokens(reply)
        self._drawn[path] = texts
        self._neutral |= {name: settings[name] for name in NEUTRAL if name in settings}
        most = MOST_CHOICES if n == 2 else 1
        thinks = path == CHATS and reasons_first(reply)
        known: dict[str, Any] = {"chat" if path == CHATS else "completions": True}
        known["choices"] = min(most, self.found.choices) if self.found.answered_by else most
        known["answered_by"] = self.found.answered_by or answered(reply).by.split(ANSWERED_SEPARATOR)[0]
        known["reasoning"] = self.found.reasoning or thinks
        refused = sorted(self._refused[path])
        answer = f"yes; {n} of 2 choices come back" if "n" not in refused else "yes; one choice at a time"
        if refused:
            answer += f"; refuses {', '.join(refused)}"
        if path == CHATS and "completion" in self.found.chat_limit:
            answer += "; wants max_completion_tokens"
        self._learn(f"/{path}", answer, **known)
        if thinks:
            self._learn("thinks before it answers", "yes: only texts can be asked for")

    async def _draws(self) -> None:
        """Whether another seed gives another text."""
        for path, first in self._drawn.items():

            async def text(seed: int, more: Mapping[str, str], path: str = path) -> str | Exception:
                drawn = {"temperature": 1.0, "top_p": 1.0, "seed": seed, **self._neutral, **more}
                body = self._body(path, _FIRST[path], 24, **drawn)
                return await self._ask(path, body, lambda reply: choices(reply, 1)[0].text)

            if (seen := await how_it_draws(first, text)) is None:
                continue
            settings, said = seen
            self._neutral |= settings or {}
            if settings or settings is None:
                self._learn(f"draws, /{path}", said)
            else:
                self._lacks("sampling", said, f"draws, /{path}")
                self.found = replace(self.found, draws=False)

    # --- sizes and speed ---

    async def _system_role(self) -> None:
        body = self._body(CHATS, CHAT, 1)
        body["messages"] = [{"role": "system", "content": SYSTEM}, *body["messages"]]
        told = await self._ask(CHATS, body, _prompt_tokens)
        if isinstance(told, Exception):
            self._learn("system role", f"refused ({told})")
            return
        plain = self._counted.get(CHATS)
        # A template that drops the role answers as if nothing had been said.
        reaches = not plain or not told or told >= plain + 8
        self._learn("system role", "taken" if reaches else "dropped without a word", takes_system=reaches)

    async def _sizes(self, path: str) -> None:
        """Bytes per token and what a template adds, from the server's own counts of two lengths."""
        more = " " + " ".join([ANOTHER, CHAT, SYSTEM])
        short = self._counted.get(path)
        long = await self._ask(path, self._body(path, _FIRST[path] + more, 1), _prompt_tokens)
        if not short or not isinstance(long, int) or long <= short:
            self._learn("token counts", "none: costs are estimated from the length of the texts")
            return
        per_token = len(more.encode()) / (long - short)
        chat = self._counted.get(CHATS) or short
        overhead = max(0, round(chat - len(CHAT.encode()) / per_token)) + 8
        answer = f"about {per_token:.1f} bytes a token"
        self._learn("token counts", answer, bytes_per_token=per_token, overhead=overhead)

    async def _speed(self, path: str) -> None:
        """Seconds of one short request, and whether four at once take less than four times that."""
        taken = []
        # Questions of one length; the first may open a connection.
        for numbers in ((0,), (1,), (2, 3, 4, 5)):
            started = time.perf_counter()
            bodies = [self._body(path, f"{number}: {ANOTHER}", 1) for number in numbers]
            asked = (self._ask(path, body, lambda reply: choices(reply, 1)) for body in bodies)
            if any(isinstance(answer, Exception) for answer in await asyncio.gather(*asked)):
                return
            taken.append(time.perf_counter() - started)
        alone, together = min(taken[:2]), taken[2]
        self._learn(
            "speed",
            f"{alone:.2f} s a short request, four at once {together:.2f} s",
            latency=alone,
            parallel=max(1.0, min(4.0, 4 * alone / max(1e-6, together))),
        )

    # --- probabilities ---

    async def _list(self, path: str, k: int, temperature: float) -> Listing | Refused | GaveUp:
        chat = path == CHATS
        body = self._body(path, _FIRST[path], 1, temperature=temperature)
        body |= {"logprobs": True, "top_logprobs": k} if chat else {"logprobs": k}
        return await self._ask(path, body, lambda reply: listed_tokens(choices(reply, 1)[0], chat=chat))

    async def _listing(self, path: str) -> Listing:
        """How many tokens are listed, before or after temperature, and whether twice is the same."""
        chat = path == CHATS
        name, what = ("chat", "top-k, chat") if chat else ("completions", "top-k")
        if self.found.reasoning and chat:
            self._lacks(what, "the model thinks first: its first token is not the answer's")
            return ()
        listing, k, why = await self._first_list(path)
        if listing and not chat and not any(token.startswith(" ") for token, _ in listing):
            # After a word nothing else is probable: an expression would never be found in such a list.
            listing, why = (), "no listed token begins with a space: the server strips it"
        most, scale, noise = await self._lists_again(path, listing, k) if listing else (0, "", 0.0)
        if noise > CROSS_CHECK:
            listing, why = (), f"the same question twice gives values that differ by {noise:.2g}"
        if not listing:
            self._lacks(what, why, f"listed tokens, {name}", "none ({})")
            return ()
        mass = math.fsum(math.exp(value) for _, value in listing)
        self._learn(
            f"listed tokens, {name}",
            f"{most}, together {mass:.3f} of the probability; {scale} temperature;"
            f" twice the same within {noise:.2g}",
            **{"chat_k" if chat else "completions_k": most},
            scale=scale,
        )
        return listing

    async def _first_list(self, path: str) -> tuple[Listing, int, object]:
        """The longest list that comes, how many were asked for, and why no longer one did."""
        why: object = "none"
        for k in LISTS:
            if k == 1 and not isinstance(why, Refused):
                break  # it does not say that the list is too long: there is none
            listing = await self._list(path, k, 1.0)
            if isinstance(listing, tuple):
                return listing, k, why
            why = listing
        return (), 0, why

    async def _lists_again(self, path: str, listing: Listing, k: int) -> tuple[int, str, float]:
        """How many tokens a list holds, before or after which temperature, and how far twice is the same."""
        counts, scale, noise = [len(listing)], "unknown", 0.0
        takes_temperature = "temperature" not in self._refused[path]
        again = await self._list(path, k, 1.0)
        if isinstance(again, tuple):
            noise = _largest_difference(listing, again)
            counts.append(len(again))
            hot = await self._list(path, k, 2.0) if takes_temperature else None
            if isinstance(hot, tuple):
                scale = "before" if _largest_difference(listing, hot) <= noise + SAME else "after"
                counts.append(len(hot))
        if min(counts) < k and takes_temperature:
            # A list cut short may hold the sampled token on top; the most probable one is in it anyway.
            cold = await self._list(path, k, 0.0)
            counts += [len(cold)] if isinstance(cold, tuple) else []
        # The sampled token may come on top of the list: the smallest count is the list's own.
        return min(*counts, k), scale, noise

    async def _echo(self, listing: Listing) -> None:
        """Whether a prompt comes back with log-probabilities, and whether they are those of its tokens."""
        probe, expected = _plain_token(listing)
        body = {**self._body(COMPLETIONS, PROMPT + probe, 1, temperature=1.0), "echo": True, "logprobs": 1}
        started = time.perf_counter()
        echo = await self._ask(COMPLETIONS, body, lambda reply: read_echo(reply, PROMPT, probe), ECHO_S)
        seconds = time.perf_counter() - started
        if not isinstance(echo, Echo):
            self._lacks("echo", echo, "echo")
        elif why := _contradiction(echo, probe, expected):
            self._lacks("echo", f"not believed: {why}", "echo", "{}")
        else:
            checked = f"; {probe!r} {echo.log_prob:.3f}, in the list {expected:.3f}"
            answer = f"yes, the prompt's log-probabilities come back, {seconds:.2f} s a call{checked}"
            self._learn("echo", answer, echo=True, echo_latency=seconds)

    async def _selected(self, listing: Listing) -> None:
        """Whether log-probabilities of token ids of our choice come back (vLLM)."""
        if self.official:
            return
        question, name = "selected token ids", "selected-ids"
        probe, expected = _plain_token(listing)
        ids = SelectedIds(self._controller, self.model, seconds=QUESTION_S)
        try:
            [(_, value)], _ = await ids.score(PROMPT, [probe])
        except (Refused, GaveUp, BadAnswer) as error:
            self._lacks(name, error, question)
            return
        if expected is not None and not abs(value - expected) <= CROSS_CHECK:
            why = f"{probe!r} {value:.3f}, in the list {expected:.3f}"
            said = f"its values contradict each other: {why}"
            self._lacks(name, said, question, f"not believed: {why}")
        else:
            self._learn(question, "yes, log-probabilities of chosen ids come back", selected_ids=True)

    async def _prefill(self) -> None:
        """Whether the beginning of an answer is continued in the middle of a word."""
        question = "beginning of an answer"
        for kind, fields in (("plain", {}), ("flagged", CONTINUED)):
            continued = []
            for user, opening, rest in PREFILLS:
                body = {**self._body(CHATS, user, 4, temperature=0.0), **fields}
                body["messages"] = [*body["messages"], {"role": "assistant", "content": opening}]
                text = await self._ask(CHATS, body, lambda reply: choices(reply, 1)[0].text)
                continued.append(isinstance(text, str) and text.startswith((rest, opening + rest)))
            if all(continued):
                self._learn(question, f"continued ({kind})", prefill=kind)
                return
        why = "the beginning of an answer is not continued"
        self._lacks("chat-prefill", why, question, "not continued: a new turn begins")


def _prompt_tokens(reply: Reply) -> int | None:
    return reply.tokens("prompt_tokens")


def _first_answer(reply: Reply) -> Reply:
    """What must be readable of a door's first answer."""
    choices(reply, 2)
    answered(reply)
    return reply


def _named(error: Refused) -> list[str]:
    """Parameters that an error names: in its own field, quoted, or after "supplied:"; never a bare word."""
    found = [error.parameter] if error.parameter else []
    found += re.findall(r"['\"`]([a-z_]+)\\?['\"`]", str(error))  # a gateway writes \' for '
    return found + re.findall(r"supplied: ([a-z_]+)", str(error))


def _plain_token(listing: Listing) -> tuple[str, float | None]:
    """The most probable listed token that is a plain word after a space, and its log-probability."""
    for token, value in listing:
        if token.startswith(" ") and token[1:].isascii() and token[1:].isalpha():
            return token, value
    return " female", None


def _contradiction(echo: Echo, probe: str, expected: float | None) -> str | None:
    """Why an echo is not believed: `probe` must have the log-probability that the list gave it."""
    if expected is None:
        return "there is no list of probable tokens to check it against"
    error = abs(echo.log_prob - expected)
    if not error <= CROSS_CHECK:
        return f"it gives {probe!r} {echo.log_prob:.3f}, the list of most probable tokens {expected:.3f}"
    if any(abs(value - expected) < error for value in echo.beside):
        return f"the value of {probe!r} in the list, {expected:.3f}, stands beside it, off by one token"
    return None


def _largest_difference(first: Listing, second: Listing) -> float:
    """Between the log-probabilities of the tokens that both lists begin with (the five most probable)."""
    other = dict(second)
    return max((abs(value - other[token]) for token, value in first[:5] if token in other), default=math.inf)
