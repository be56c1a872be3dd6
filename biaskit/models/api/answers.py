"""Read and check a server's answer: choices, finish reasons, log-probabilities. Nothing here asks."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from biaskit.models.api.endpoint import clean
from biaskit.models.api.trouble import BadAnswer
from biaskit.models.api.wire import Reply, inside
from biaskit.models.base import answered_now
from biaskit.models.thoughts import FIELDS, begins_thought, without_thoughts
from biaskit.records import ANSWERED_SEPARATOR, Answered, Finish

Listing = tuple[tuple[str, float], ...]
"""Listed tokens and their natural log-probabilities, the most probable first."""

UNLISTED = -9990.0
"""OpenAI writes -9999 for a token outside its list; no listed token is ever that improbable."""
UNDECODED = ("\u0120", "\u010a", "\u2581")
"""How vocabularies write a space or a line feed; such a token never equals an expression."""
FINISHES: Mapping[str, Finish] = {
    **dict.fromkeys(("stop", "eos", "eos_token", "end_turn", "end", "stop_sequence"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "model_length"), "length"),
    **dict.fromkeys(("content_filter", "safety", "recitation", "sensitive"), "filter"),
    "refusal": "refusal",
}


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
    fingerprint = reply.data.get("system_fingerprint")
    by = clean(model)
    if isinstance(fingerprint, str) and fingerprint.strip():
        by = f"{by}{ANSWERED_SEPARATOR}{clean(fingerprint)}"
    return answered_now(by, *(reply.used or (None, None)))


def choices(reply: Reply, n: int) -> list[AnswerChoice]:
    """Return the texts of an answer, at most `n`, in the order of their index.

    Of a repeated index the first choice counts; an index of `n` or more is left out. Raises `BadAnswer` if
    no choice is left or one of them is not a text.
    """
    listed = reply.data.get("choices")
    if not isinstance(listed, list) or not listed:
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
        text, refusal = _joined(holder.get("content" if holder is message else "text")), holder.get("refusal")
        reason = data.get("finish_reason")
        finish = FINISHES.get(reason.lower()) if isinstance(reason, str) else None
        if isinstance(refusal, str) and refusal.strip() and not text:
            text, finish = refusal, "refusal"
        if finish is None and reason is None:
            raise BadAnswer("no finish reason: the text may not be whole")
        if finish is None:
            raise BadAnswer(f"the finish reason {clean(reason)!r}, which is none of a text")
        thought = _thought(message)
        if text is None and (finish in ("filter", "refusal", "length") or thought):
            text = ""  # a reasoning model may spend every token on its thoughts, shown or not
        if isinstance(text, list):
            raise BadAnswer("a choice whose list of parts is not text alone")
        if not isinstance(text, str):
            raise BadAnswer("a choice without a text")
        by_index[index] = AnswerChoice(index, text, finish, data, thought)
    if not by_index:
        raise BadAnswer("none of the choices has a number that was asked for")
    return [by_index[index] for index in sorted(by_index)]


def _joined(content: Any) -> Any:
    """Join the text parts in which some gateways give a text; leave everything else as it is."""
    parts = content if isinstance(content, list) else []
    texts = [inside(part, "text") for part in parts if inside(part, "type") == "text"]
    whole = 0 < len(parts) == len(texts) and all(isinstance(text, str) for text in texts)
    return "".join(texts) if whole else content


def _thought(message: object) -> str:
    thoughts = (inside(message, name) for name in FIELDS)
    return next((thought for thought in thoughts if isinstance(thought, str) and thought), "")


def reasons_first(reply: Reply, listed: Sequence[AnswerChoice]) -> bool:
    """Return whether the model thought before it answered, so that its first token is not the answer's."""
    tokens = inside(reply.data, "usage", "completion_tokens_details", "reasoning_tokens")
    if isinstance(tokens, int) and tokens > 0:
        return True
    return any(
        choice.thought
        or without_thoughts(choice.text) != choice.text
        or (choice.finish == "length" and not choice.text)
        for choice in listed
    )


def log_probability(value: object) -> float:
    """Return one natural log-probability of a server; a value above 0 by rounding alone becomes 0.

    Raises `BadAnswer`, also for the mark of a token outside a list, which says nothing of its probability.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadAnswer("a log-probability that is not a number")
    if value > 1e-4:
        raise BadAnswer("a log-probability above 0")
    if not value > UNLISTED:  # nor is NaN
        raise BadAnswer("a log-probability as of a token outside a list")
    return min(0.0, float(value))


def listed_tokens(choice: AnswerChoice, *, chat: bool, k: int = 0) -> Listing:
    """Return the tokens that a server lists for the first place of a choice, the most probable first.

    Entries at -9999 are left out. Raises `BadAnswer` if none is left, or they are no distribution.
    `k`: how many were asked for; then the sampled token, which servers add to their list, is left out if it
    may be an extra entry. Tokens of equal text (halves of a character) become one entry, so even a list of
    `k` entries may include it; if it comes last, it bounds no other.
    """
    block = choice.data.get("logprobs")
    if not isinstance(block, Mapping):
        raise BadAnswer("no log-probabilities")
    in_chat = chat and "content" in block  # Together answers a chat in the shape of completions
    listed = inside(block, "content", 0, "top_logprobs") if in_chat else inside(block, "top_logprobs", 0)
    if not isinstance(listed, list if in_chat else Mapping):
        raise BadAnswer("no list of the most probable tokens")
    if isinstance(listed, Mapping):
        listed = [{"token": token, "logprob": value} for token, value in listed.items()]
    listing = []
    for entry in listed:
        token, value = inside(entry, "token"), inside(entry, "logprob")
        if not isinstance(token, str):
            raise BadAnswer("a listed token without a text")
        with contextlib.suppress(UnicodeDecodeError, ValueError, TypeError):  # half of a character
            if (spelt := bytes(entry.get("bytes") or ()).decode("utf-8")) and spelt != token:
                raise BadAnswer("a listed token whose bytes spell another text")
        if not (type(value) in (int, float) and value <= UNLISTED):
            listing.append((token, log_probability(value)))
    if not listing:
        raise BadAnswer("no listed token")
    if math.fsum(math.exp(value) for _, value in listing) > 1 + 1e-3:
        raise BadAnswer("listed tokens that are more probable together than everything")
    if any(token.startswith(UNDECODED) for token, _ in listing):
        raise BadAnswer("listed tokens as the vocabulary spells them, not as text")
    listing.sort(key=lambda pair: (-pair[1], pair[0]))
    first = listing[0][0]
    if begins_thought(first) or (begins_thought(first) is None and len(first.strip()) > 2):
        raise BadAnswer(f"the most probable token {first!r} begins a thought: it is none of the answer's")
    sampled = inside(block, "content", 0, "token") if in_chat else inside(block, "tokens", 0)
    return tuple(listing[:-1] if 1 < len(listing) <= k and listing[-1][0] == sampled else listing)
