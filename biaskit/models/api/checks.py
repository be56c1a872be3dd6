"""Some thirty cheap questions to an endpoint; nothing is believed that was not measured."""

from __future__ import annotations

import math
import time
from dataclasses import replace

from biaskit.errors import AskingStopped, ModelError
from biaskit.models.api.abilities import CONTINUED, Abilities
from biaskit.models.api.answers import Listing, choices, listed_tokens
from biaskit.models.api.connection import Connection
from biaskit.models.api.echo import Echo, echo_call, read_echo
from biaskit.models.api.selected_ids import SelectedIds
from biaskit.models.api.text_checks import FIRST, PROMPT, QUESTION_S, TextChecks, first_text
from biaskit.models.api.trouble import BadAnswer, GaveUp, Refused
from biaskit.models.api.wire import AS_IDS, CHATS, COMPLETIONS, list_fields

ECHO_S = 90.0  # time limit of one echo; a server that computes every position in Python took 9 s
PREFILLS = (
    ("Name a colour.", "My favourite colour is yel", "low"),
    ("Name an animal.", "I like the eleph", "ant"),
)
"""User turn, beginning of an answer that ends inside a word, and the rest of that word."""
CROSS_CHECK = 0.3
"""Largest difference in log-probability between two ways of asking one server; an echo that is off by
one token differs by several."""
LISTS = (20, 20, 5, 1)
"""Lengths of a list to ask for until one comes; a server that warms up may fail at the first."""
SAME = 0.02  # smaller differences are noise of the server's arithmetic, not another temperature


def measure(connection: Connection, *, scores: bool) -> Abilities:
    """Measure what an endpoint can do for texts and, with `scores`, for probabilities.

    Raises `ModelError` if nothing usable comes, the key is refused, or `thinking` changes nothing.
    """
    thinking = connection.options.thinking
    where = f"{connection.endpoint.label} at {connection.endpoint.host.shown}"
    checks = Checks(connection)
    try:
        abilities = connection.run(checks.put(scores=scores))
    except (AskingStopped, GaveUp, Refused) as error:
        reason = str(error)
        raise ModelError(f"{where}: {reason}{'' if reason.endswith('?') else '.'}") from None
    if not abilities.completions and not abilities.chat:
        why = "; ".join(f"{name}: {text}" for name, text in abilities.problems.items())
        raise ModelError(f"{where} answers neither completions nor chat ({why}).")
    if thinking == "auto":
        return abilities
    if thinking == ("off" if abilities.reasoning else "on"):
        raise ModelError(
            f"{connection.endpoint.label}: thinking={thinking} changes nothing: its server does not pass"
            " chat_template_kwargs on, or its template has no such switch. Leave thinking at auto."
        )
    # A raw prompt has no template that could be told.
    return replace(abilities, completions=False, completions_k=0, echo=False, selected_ids=False)


class Checks(TextChecks):
    """Adds the questions about probabilities: lists of tokens, echoes, chosen ids, beginnings of answers."""

    async def put(self, *, scores: bool) -> Abilities:
        """Ask every question that is needed, and return the findings."""
        await self.ask_texts()
        if scores and self.abilities.completions:
            listing = await self._listing(COMPLETIONS)
            await self._selected(listing)
            await self._echo(listing)
        if scores and self.abilities.chat:
            await self._prefill()
            await self._listing(CHATS)
        refused = tuple(sorted(set().union(*self.refused.values())))
        self.abilities = replace(self.abilities, refused=refused, neutral=dict(self.neutral), scored=scores)
        if self.neutral:
            shown = ", ".join(f"{name} {value}" for name, value in self.neutral.items())
            self.learn("the server's own settings, switched off", shown)
        if self.abilities.answered_by and self.abilities.answered_by != self.model:
            self.learn("answers as", self.abilities.answered_by)
        return self.abilities

    async def _listing(self, path: str) -> Listing:
        """Check how many tokens are listed, before or after temperature, and how far two lists differ."""
        chat = path == CHATS
        name, what = ("chat", "top-k, chat") if chat else ("completions", "top-k")
        if self.abilities.reasoning and chat:
            self.lacks(what, "the model thinks first: its first token is not the answer's")
            return ()
        listing, k, why = await self._first_list(path)
        if listing and not chat and not any(token.startswith(" ") for token, _ in listing):
            # After a word nothing else is probable: a target word would never be found in such a list.
            listing, why = (), "no listed token begins with a space: the server strips it"
        length, scale, noise = await self._lists_again(path, listing, k) if listing else (0, "", 0.0)
        if noise > CROSS_CHECK:
            listing, why = (), f"the same prompt sent twice gives values that differ by {noise:.2g}"
        if not listing:
            self.lacks(what, why, f"listed tokens, {name}", "none ({})")
            return ()
        mass = math.fsum(math.exp(value) for _, value in listing)
        answer = f"{length}, together {mass:.3f} of the probability; {scale} temperature;"
        answer += f" twice the same within {noise:.2g}"
        self.learn(f"listed tokens, {name}", answer, **{f"{name}_k": length}, scale=scale)
        return listing

    async def _first_list(self, path: str) -> tuple[Listing, int, object]:
        """Return the longest list that comes, how many tokens were asked for, and why no longer one came."""
        why: object = "none"
        before = 0
        for k in LISTS:
            if k == before and isinstance(why, Refused):
                continue
            if k == 1 and not isinstance(why, Refused):
                break  # the server did not say that a list is too long: it has none
            listing = await self._list(path, k, 1.0)
            if isinstance(listing, tuple):
                return listing, k, why
            before, why = k, listing
        return (), 0, why

    async def _lists_again(self, path: str, listing: Listing, k: int) -> tuple[int, str, float]:
        """Return a list's length, its scale ("before" or "after" temperature) and its noise."""
        counts, scale, noise = [len(listing)], "unknown", 0.0
        takes_temperature = "temperature" not in self.refused[path]
        again = await self._list(path, k, 1.0)
        if isinstance(again, tuple):
            noise = _largest_difference(listing, again)
            counts.append(len(again))
            hot = await self._list(path, k, 2.0) if takes_temperature else None
            if isinstance(hot, tuple):
                scale = "before" if _largest_difference(listing, hot) <= noise + SAME else "after"
                counts.append(len(hot))
        if min(counts) < k and takes_temperature:
            # A short list may have the sampled token as an extra; the most probable one is always in it.
            cold = await self._list(path, k, 0.0)
            if isinstance(cold, tuple):
                counts.append(len(cold))
        # The sampled token may be an extra entry: the smallest count is the list's own.
        return min(*counts, k), scale, noise

    async def _list(self, path: str, k: int, temperature: float) -> Listing | Refused | GaveUp:
        body = self.body(path, FIRST[path], 1, temperature=temperature)
        body |= {**list_fields(path, k), **self.abilities.spelling}
        found = await self.ask(path, body, lambda reply: listed_tokens(choices(reply, 1)[0]))
        if isinstance(found, Refused) and found.parameter == AS_IDS and AS_IDS not in body:
            before = self.abilities
            self.learn("listed tokens", "texts only if asked, else token ids", spelling={AS_IDS: False})
            told = await self._list(path, k, temperature)
            if not isinstance(told, Refused):
                return told
            self.abilities = before  # it knows no such field, or ignores it
        return found

    async def _echo(self, listing: Listing) -> None:
        """Check whether a prompt comes back with log-probabilities, and whether they are its own tokens'."""
        probe, expected = _plain_token(listing)
        body = echo_call(self.model, PROMPT + probe, self.abilities).body
        started = time.perf_counter()
        echo = await self.ask(COMPLETIONS, body, lambda reply: read_echo(reply, PROMPT, probe), ECHO_S)
        seconds = time.perf_counter() - started
        if not isinstance(echo, Echo):
            self.lacks("echo", echo, "echo")
            return
        error, why = abs(echo.log_prob - (expected or 0.0)), ""
        if expected is None:
            why = "there is no list of probable tokens to check it against"
        elif not error <= CROSS_CHECK:
            why = f"it gives {probe!r} {echo.log_prob:.3f}, the list of most probable tokens {expected:.3f}"
        elif any(abs(value - expected) < error for value in echo.beside):
            why = f"the value of {probe!r} in the list, {expected:.3f}, is off by one token"
        if why:
            self.lacks("echo", f"not believed: {why}", "echo", "{}")
        else:
            checked = f"; {probe!r} {echo.log_prob:.3f}, in the list {expected:.3f}"
            answer = f"yes, the prompt's log-probabilities come back, {seconds:.2f} s a call{checked}"
            self.learn("echo", answer, echo=True, echo_latency=seconds)

    async def _selected(self, listing: Listing) -> None:
        """Check whether log-probabilities of token ids of our choice come back (vLLM)."""
        if self.official:
            return
        question, name = "selected token ids", "selected-ids"
        probe, expected = _plain_token(listing)
        ids = SelectedIds(self.controller, self.model, QUESTION_S)
        try:
            [(_, value)], _ = await ids.score(PROMPT, [probe])
        except (BadAnswer, GaveUp, Refused) as trouble:
            self.lacks(name, trouble, question)
            return
        if expected is not None and not abs(value - expected) <= CROSS_CHECK:
            why = f"{probe!r} {value:.3f}, in the list {expected:.3f}"
            self.lacks(name, f"its values contradict each other: {why}", question, f"not believed: {why}")
        else:
            self.learn(question, "yes, log-probabilities of chosen ids come back", selected_ids=True)

    async def _prefill(self) -> None:
        """Check whether the beginning of an answer is continued in the middle of a word."""
        question = "beginning of an answer"
        for kind, fields in (("plain", {}), ("flagged", CONTINUED)):
            continued = []
            for user, opening, end_of_word in PREFILLS:
                body = {**self.body(CHATS, user, 4, temperature=0.0), **fields}
                body["messages"] = [*body["messages"], {"role": "assistant", "content": opening}]
                text = await self.ask(CHATS, body, first_text)
                goes_on = (end_of_word, opening + end_of_word)
                continued.append(isinstance(text, str) and text.startswith(goes_on))
            if all(continued):
                self.learn(question, f"continued ({kind})", prefill=kind)
                return
        why = "the beginning of an answer is not continued"
        self.lacks("chat-prefill", why, question, "not continued: a new turn begins")


def _plain_token(listing: Listing) -> tuple[str, float | None]:
    """Return the most probable listed token that is a plain word after a space, and its log-probability."""
    for token, value in listing:
        if token.startswith(" ") and token[1:].isascii() and token[1:].isalpha():
            return token, value
    return " female", None


def _largest_difference(first: Listing, second: Listing) -> float:
    """Compare the log-probabilities of the first list's five most probable tokens with the second's."""
    again = dict(second)
    return max((abs(value - again[token]) for token, value in first[:5] if token in again), default=math.inf)
