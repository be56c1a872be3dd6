"""`echo`: exact scores from a server that scores its prompt, a call each (methods/estimators#echo)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from biaskit.models.api.abilities import Abilities, tokens_most
from biaskit.models.api.answers import choices, log_probability
from biaskit.models.api.endpoint import clean
from biaskit.models.api.trouble import BadAnswer
from biaskit.models.api.wire import Call, Reply, inside


@dataclass(frozen=True, slots=True)
class Echo:
    """An echoed text: the prompt's tokens, and the continuation's with their log-probability."""

    before: tuple[str, ...]
    tokens: tuple[str, ...]
    values: tuple[float, ...]  # of the continuation's tokens; NaN of a text's first, where it has none
    beside: tuple[float, ...]  # the values before and after it, as an echo off by one token would give

    @property
    def log_prob(self) -> float:
        """Log-probability of the whole continuation, teacher-forced."""
        return math.fsum(self.values)


def echo_call(model: str, text: str, abilities: Abilities, name: str = "") -> Call:
    """Build the request that echoes a text, in the fields that this server takes."""
    new_tokens = abilities.fewest_tokens
    body = {"model": model, "prompt": text, "max_tokens": new_tokens, "temperature": 1.0}
    body |= {"echo": True, "logprobs": 1, **abilities.spelling}
    return Call("completions", body, tokens_most(text), new_tokens, name=name)


def read_echo(reply: Reply, prompt: str, continuation: str) -> Echo:
    """Read the log-probability of the continuation from an answer that echoes the whole text.

    Raises `BadAnswer` unless the tokens spell the text that was sent, with a boundary where the prompt
    ends: else their log-probabilities belong to another text. Of a whole text, which follows no prompt, the
    first token may have none.
    """
    # The prompt's tokens stand in the choice, or (Together) beside the choices.
    beside_choices = inside(reply.data, "prompt", 0)
    holder = beside_choices if isinstance(beside_choices, Mapping) else choices(reply, 1)[0].data
    block = holder.get("logprobs")
    tokens, values = inside(block, "tokens"), inside(block, "token_logprobs")
    if not isinstance(tokens, list) or not isinstance(values, list):
        raise BadAnswer("no log-probabilities of the prompt came back")
    if len(tokens) != len(values) or not all(isinstance(token, str) for token in tokens):
        raise BadAnswer("tokens and log-probabilities that do not belong together")
    if not any(values):
        raise BadAnswer("every log-probability of the prompt is 0")
    text = prompt + continuation
    for first in (0, 1):  # the server's own (BOS) may stand before the text
        if "".join(tokens[first:]).startswith(text):
            break
    else:
        short = len("".join(tokens)) < len(prompt)
        raise BadAnswer("the prompt was not echoed" if short else "the echoed tokens do not spell the prompt")
    ends, length = {0: first}, 0  # characters → tokens before them
    for number, token in enumerate(tokens[first:], start=first + 1):
        length += len(token)
        ends.setdefault(length, number)
    start, end = ends.get(len(prompt)), ends.get(len(text))
    if start is None or end is None:
        raise BadAnswer(f"a token spans the end of the prompt before {clean(continuation)!r}")
    first_of_all = values[start] is None and not prompt
    read = (math.nan, *values[start + 1 : end]) if first_of_all else values[start:end]
    told = tuple(value if value is math.nan else log_probability(value) for value in read)
    neighbours = values[:start][-1:] + values[end:][:1]
    beside = tuple(value for value in neighbours if isinstance(value, float))
    return Echo(tuple(tokens[:start]), tuple(tokens[start:end]), told, beside)
