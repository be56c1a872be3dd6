"""Read and check a server's answer: choices, finish reasons, log-probabilities. Nothing here asks."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from operator import attrgetter
from typing import Any

from biaskit.models.api.endpoint import clean
from biaskit.models.api.trouble import BadAnswer, Blocked, Refused
from biaskit.models.api.wire import AS_IDS, Reply, inside, names_block
from biaskit.models.base import answered_now
from biaskit.models.thoughts import FIELDS, begins_thought, without_thoughts
from biaskit.records import ANSWERED_SEPARATOR, PROVIDER, Answered, Finish

Listing = tuple[tuple[str, float], ...]
"""Listed tokens and their natural log-probabilities, the most probable first."""

UNLISTED = -9990.0
"""OpenAI writes -9999 for a token outside its list; no listed token is ever that improbable."""
UNDECODED = ("\u0120", "\u010a", "\u2581")
"""How vocabularies write a space or a line feed; such a token never equals a target word."""
_FILTERED = re.compile(r'"(block_?reason|filtered)": ("\w|true)', re.IGNORECASE)
"""How an answer without choices or text says that a filter took it (Gemini, Azure)."""
_AS_ID = re.compile(r"<?token_?id[:_ ]?\d+>?")
FINISHES: Mapping[str, Finish] = {
    **dict.fromkeys(("stop", "eos", "eos_token", "end_turn", "end", "stop_sequence"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "model_length"), "length"),
    "refusal": "refusal",
}
"""Reasons by their names in lower case; `names_block` knows those of filters."""


@dataclass(frozen=True, slots=True)
class AnswerChoice:
    """One of the texts of an answer."""

    index: int
    text: str
    finish: Finish
    data: Mapping[str, Any]
    thought: str = ""  # what the server parted from the text


def answered(reply: Reply) -> Answered:
    """Return who answered by the server's own name, when by our clock, and how many tokens it counted."""
    model = reply.data.get("model")
    if not isinstance(model, str) or not model.strip():
        raise BadAnswer("the answer names no model")
    by = clean(model)
    for name, mark in (("provider", PROVIDER), ("system_fingerprint", "")):
        part = reply.data.get(name)
        if isinstance(part, str) and part.strip():
            by += ANSWERED_SEPARATOR + mark + clean(part)
    return answered_now(by, *(reply.used or (None, None)))


def choices(reply: Reply, n: int) -> list[AnswerChoice]:
    """Return the texts of an answer, at most `n`, in the order of their index.

    Of a repeated index the first counts; one of `n` or more is left out; what a filter took has no text.
    Raises `BadAnswer` if no choice is left or one is not a text, `Blocked` if a filter took the prompt.
    """
    listed = reply.data.get("choices")
    if not isinstance(listed, list) or not listed:
        if _FILTERED.search(json.dumps(reply.data)):
            raise Blocked("the server's filter blocked the prompt", by=str(reply.data.get("model") or ""))
        raise BadAnswer("the answer has no choices")
    by_index: dict[int, AnswerChoice] = {}
    for place, data in enumerate(listed):
        if not isinstance(data, Mapping):
            raise BadAnswer("a choice that is not an object")
        index = data.get("index", place)
        if type(index) is not int:
            raise BadAnswer("a choice without a number")
        if not 0 <= index < n or index in by_index:
            continue
        message = data.get("message")
        holder = message if isinstance(message, Mapping) else data
        name = "content" if holder is message else "text"
        parts = content if isinstance(content := holder.get(name), list) else []
        text, refusal = _joined(content), holder.get("refusal")
        refusal = refusal or next(filter(None, (inside(part, "refusal") for part in parts)), None)
        reason = data.get("finish_reason")
        finish = FINISHES.get(reason.lower()) if isinstance(reason, str) else None
        if names_block(reason) or names_block(data.get("native_finish_reason")):
            finish = "filter"
        if not text and finish in (None, "stop") and _FILTERED.search(json.dumps(data)):
            finish = "filter"  # Azure beside its filter: the reason is that of a text
        if isinstance(refusal, str) and refusal.strip() and not text:
            text, finish = refusal, "refusal"
        if finish is None and reason is None:
            raise BadAnswer("no finish reason: the text may not be whole")
        if finish is None:
            raise BadAnswer(f"the finish reason {clean(reason)!r}, which is none of a text")
        thought = _thought(message, parts)
        # Nothing was said where its place is empty, or left out by a filter, by thoughts or at the limit.
        left_out = finish in ("filter", "refusal") or (finish == "length" and holder is message)
        if text is None and (name in holder or left_out or thought):
            text = ""
        if not isinstance(text, str):
            raise BadAnswer("a choice without a text")
        by_index[index] = AnswerChoice(index, text, finish, data, thought)
    if not by_index:
        raise BadAnswer("none of the choices has a requested number")
    return sorted(by_index.values(), key=attrgetter("index"))


def _joined(content: Any) -> Any:
    """Join the parts of a text but thoughts; leave what is no list. Raises `BadAnswer` for another part."""
    if not isinstance(content, list):
        return content
    parts = [{"text": part} if isinstance(part, str) else part for part in content]
    texts = [inside(part, "text") for part in parts if inside(part, "type") in (None, "text", "output_text")]
    if not all(isinstance(text, str) for text in texts):
        raise BadAnswer("a list of parts with one that cannot be read")
    return "".join(texts)


def _thought(message: object, parts: Sequence[object]) -> str:
    """Return the thought that a server parted from the text: a field beside it, or parts of a content."""
    held = [inside(message, name) for name in FIELDS]
    for part in parts:
        if str(inside(part, "type")).startswith(("think", "reason")):
            held += [inside(part, name) for name in (*FIELDS, "text", "content")]
    thoughts: dict[str, None] = {}  # some servers give one thought in two fields
    for thought in filter(None, held):
        if isinstance(thought, str | list):
            thoughts[thought if isinstance(thought, str) else json.dumps(thought)] = None
    return "\n\n".join(thoughts)


def reasons_first(reply: Reply, listed: Sequence[AnswerChoice]) -> bool:
    """Return whether the model thought before it answered, so that its first token is not the answer's."""
    tokens = inside(reply.data, "usage", "completion_tokens_details", "reasoning_tokens")
    if isinstance(tokens, int) and tokens > 0:
        return True
    for choice in listed:
        if choice.thought or without_thoughts(choice.text) != choice.text:
            return True
        if choice.finish == "length" and not choice.text:
            return True
    return False


def log_probability(value: object) -> float:
    """Return a server's log-probability, 0 if rounded above it. Raises `BadAnswer`, below `UNLISTED` too."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadAnswer("a log-probability that is not a number")
    if value > 1e-4:
        raise BadAnswer("a log-probability above 0")
    if not value > UNLISTED:  # nor is NaN
        raise BadAnswer("a log-probability as of a token outside a list")
    return min(0.0, float(value))


def _first_place(choice: AnswerChoice) -> tuple[Any, Any]:
    """Return the sampled token of the first place, and the list or the dictionary beside it.

    The shape says where, not the path: llama-server answers completions as a chat, Together the reverse.
    """
    block = choice.data.get("logprobs")
    if not isinstance(block, Mapping):
        if choice.finish == "filter":
            raise Blocked("blocked by the server's content filter: an answer without log-probabilities")
        raise (Refused if choice.finish == "refusal" else BadAnswer)("no log-probabilities")
    if block.get("content"):
        return inside(block, "content", 0, "token"), inside(block, "content", 0, "top_logprobs")
    listed = block.get("top_logprobs")
    first = inside(listed, 0)
    of_places = isinstance(first, list) or (isinstance(first, Mapping) and "logprob" not in first)
    return inside(block, "tokens", 0), first if of_places else listed


def mass_of(listing: Sequence[tuple[Any, float]]) -> float:
    """Sum the probabilities of listed tokens."""
    return math.fsum(math.exp(value) for _, value in listing)


def may_hide(choice: AnswerChoice, k: int) -> bool:
    """Return whether two tokens of one text may be one entry, of a dictionary shorter than `k`.

    Or whether a token without a value, before others with one, may be more probable than the last of them.
    """
    _, listed = _first_place(choice)
    after = dropwhile(lambda entry: not math.isnan(entry[1]), _entries(listed))
    return any(value > UNLISTED for _, value in after) or (isinstance(listed, Mapping) and len(listed) < k)


def _entries(listed: Any) -> Listing:
    """Read a list, null as NaN: impossible or unknown. Raises `BadAnswer` for an entry that is none."""
    if not isinstance(listed, list | Mapping):
        raise BadAnswer("no list of the most probable tokens")
    if isinstance(listed, Mapping):
        listed = [{"token": token, "logprob": value} for token, value in listed.items()]
    entries = []
    for entry in listed:
        token = inside(entry, "token")
        if not isinstance(token, str):
            raise BadAnswer("a listed token without a text")
        with contextlib.suppress(UnicodeDecodeError, ValueError, TypeError):  # half of a character
            if (spelt := bytes(entry.get("bytes") or ()).decode("utf-8")) and spelt != token:
                raise BadAnswer("a listed token whose bytes spell another text")
        value = entry.get("logprob", "missing")
        if value in (None, "NaN", "-Infinity"):  # these words are protobuf's
            value = float(value or "NaN")
        if type(value) not in (int, float) or value > UNLISTED:
            value = log_probability(value)
        entries.append((token, value))
    return tuple(entries)


def listed_tokens(choice: AnswerChoice, *, k: int = 0) -> Listing:
    """Return the tokens that a server lists for the first place of a choice, the most probable first.

    Entries at -9999, null or NaN are left out. Raises `BadAnswer` if none is left, or they are no
    distribution, `Refused` for token ids or if a filter took the answer. `k`: how many were asked for by a
    study, whose tokens may well be numbers; then the sampled token, which servers add to their list, is left
    out if it may be an extra entry. A list of `k` entries may include it too, where the server gave one less;
    if it comes last, it bounds no other.
    """
    sampled, listed = _first_place(choice)
    entries = _entries(listed)
    listing = [(token, value) for token, value in entries if value > UNLISTED]
    if not listing:
        valueless = any(math.isnan(value) for _, value in entries)
        raise BadAnswer("a log-probability that is not a number" if valueless else "no listed token")
    names = [token for token, _ in listing]
    if any(map(_AS_ID.fullmatch, names)) or (not k and all(map(str.isdecimal, names))):
        raise Refused(f"it lists token ids such as {clean(names[0])}, not texts", parameter=AS_IDS)
    if mass_of(listing) > 1 + 1e-3:
        raise BadAnswer("listed tokens with a total probability above 1")
    if any(token.startswith(UNDECODED) for token, _ in listing):
        raise BadAnswer("listed tokens as the vocabulary spells them, not as text")
    listing.sort(key=lambda pair: (-pair[1], pair[0]))
    first = listing[0][0]
    if begins_thought(first) or (begins_thought(first) is None and len(first.strip()) > 2):
        raise BadAnswer(f"the most probable token {first!r} begins a thought: it is none of the answer's")
    return tuple(listing[:-1] if 1 < len(listing) <= k and listing[-1][0] == sampled else listing)
