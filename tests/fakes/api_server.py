"""A server that speaks the OpenAI completions and chat API over real HTTP, and misbehaves where told to.

    with ApiServer(ToyModel(), Behaviour(top_k=5), faults=Faults(0.2, ["500"])) as server:
        ...  server.url ...  server.requests ...  server.cost(0.5, 1.5)

Honest by default. `Behaviour` holds what a server is like, `lies` what it says that is not so, `Faults` what
goes wrong on the way; `server.script` decides for each request. As a process of its own: `ApiProcess`, or
`python tests/fakes/api_server.py --latency 0.5`, which prints its base URL; `GET /stats` there tells
what `server.*` tells here. Test equipment: an own parser, no web framework, loopback only.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import functools
import http
import json
import math
import os
import random
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.request
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

if __name__ == "__main__":  # a process of its own finds its neighbours as the tests do
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fakes.toy_model import ToyModel, seed_of

Json = dict[str, Any]
GENERATION = ("/v1/completions", "/v1/chat/completions")
UNLISTED = -9999.0
MOST_SELECTED = 128  # ids in one `logprob_token_ids`, as in vLLM
KNOWN_PARAMETERS = frozenset(
    (
        *("model", "prompt", "messages", "max_tokens", "max_completion_tokens", "temperature", "top_p", "n"),
        *("stream", "stream_options", "stop", "logprobs", "top_logprobs", "echo", "best_of", "seed", "user"),
        *("presence_penalty", "frequency_penalty", "logit_bias", "suffix", "response_format", "store"),
    )
)


# --- what a server is like ----------------------------------------------------------------------------


@dataclass
class Behaviour:
    """Every switch of the server; the defaults are honest. It may be changed while the server runs."""

    # Who it is
    model_name: str = "toy"
    served_models: Sequence[str] | None = None  # what GET /models lists; None: the model's name
    answers_as: str | None = None  # the name in its answers; None: the model's name
    system_fingerprint: str | Sequence[str] | None = "fp_toy"  # several: they take turns
    provider: str | Sequence[str] | None = None  # who answers for an aggregator; several: they take turns
    drift_after: int | None = None  # after so many generation calls it answers as toy-2
    requires_key: str | None = None  # 401 otherwise, and the answer repeats the key that was sent

    # What it can do
    completions: bool = True
    chat: bool = True
    chat_template: bool = True  # without one every chat is an error, as of a base model on vLLM
    models_list: bool = True
    takes_system: bool | Literal["dropped"] = True
    default_system: str = ""  # of the template: a given system message takes its place
    prefill: Literal["continue", "asked", "new-turn", "rejected"] = "continue"
    """A trailing assistant message: continued; only with `continue_final_message`; closed; refused."""
    canned: Mapping[str, str] = field(default_factory=dict)  # ending of a prompt → how it goes on, always
    n_cap: int | None = None  # choices really returned, without a word
    context: int = 4096
    fewest_tokens: int = 1  # a request with a lower limit of new tokens is an error
    rejects: set[str] | frozenset[str] = frozenset()  # 400; temperature and top_p only if they are not 1
    strict: bool = False  # 400 for a parameter that OpenAI does not know
    max_tokens_0_hangs: bool = False  # 0 means "unlimited", as to llama-cpp-python: no answer
    seeds: Literal["honoured", "content"] = "honoured"
    """Without a seed each request samples anew; "content": it then depends on the body alone."""
    greedy: Literal["no", "unless told", "always"] = "no"
    """One text whatever the seed; as `transformers serve`, unless `generation_config` says so."""
    wraps_errors: bool = False  # 500 with the refusal inside a text, as LiteLLM hands on llama-cpp-python's
    reasoning: int = 0  # hidden tokens before the answer
    reasoning_inline: bool = False  # shown as <think>...</think> in the text instead

    # Log-probabilities
    top_k: int = 20  # most entries; 0: log-probabilities are refused
    over_top_k: Literal["rejected", "capped", "null"] = "rejected"
    extra_entry: bool = False  # k + 1 entries when the sampled token is not among the k
    minus_9999: Literal["off", "sampled", "padding"] = "off"
    """The sampled token outside the list has -9999; or all list entries after the third have."""
    temperature_affects_logprobs: bool = False
    eos_in_logprobs: bool = True  # the end token has an entry of its own
    token_ids: Literal["no", "unless told", "always"] = "no"  # lists name tokens as token_id:NN
    token_id_logprobs: bool = False
    """vLLM's `logprob_token_ids`, `return_tokens_as_token_ids` and `return_token_ids`."""

    # Echo
    echo: Literal[
        "supported", "ignored", "rejected", "pair-rejected", "strips-space", "text-only", "off-by-one"
    ] = "supported"
    """pair-rejected: only together with log-probabilities; off-by-one: every value stands one too early."""
    bos: Literal["hidden", "shown", "none"] = "hidden"  # in an echo; "none": the model is given none
    first_echo: Literal["null", "value"] = "null"  # of the first prompt token, where BOS is hidden

    # Accounts
    usage: Literal["true", "missing", "null", "zero"] = "true"

    # Speed
    latency_s: float = 0.0
    latency_jitter: float = 0.0  # fraction of the latency, uniform, by request number

    lies: str | None = None  # one of `LIES`, told in every answer with tokens


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong with one request; `kind` is one of `FAULTS`."""

    kind: str
    retry_after: str = "0.05"  # of "429" and "503"
    location: str = "http://127.0.0.2:9/v1/elsewhere"  # of "redirect"
    pause_s: float = 0.02  # between the bytes of "trickle" and the chunks of "endless"

    def __post_init__(self) -> None:
        assert self.kind in FAULTS, f"no fault {self.kind!r}; there are {', '.join(FAULTS)}"


@dataclass(frozen=True)
class Lie:
    """Something said that is not so; `kind` is one of `LIES`."""

    kind: str

    def __post_init__(self) -> None:
        assert self.kind in LIES, f"no lie {self.kind!r}; there are {', '.join(LIES)}"


@dataclass(frozen=True)
class Faults:
    """Which generation requests fail and how: the same for the same seed, by request number.

    `at` names the kind for single numbers; from `expired_from` on every request gets 401; after `until`
    nothing fails any more.
    """

    rate: float = 0.0
    kinds: Sequence[str] = ()
    seed: int = 1
    at: Mapping[int, str] = field(default_factory=dict)
    expired_from: int | None = None
    until: int | None = None
    everywhere: bool = False  # also model lists and /tokenize
    retry_after: str = "0.05"
    location: str = "http://127.0.0.2:9/v1/elsewhere"

    def of(self, number: int) -> Fault | None:
        """The fault of request `number`."""
        kind = self.at.get(number)
        if kind is None and self.expired_from is not None and number >= self.expired_from:
            kind = "401"
        if kind is None and (self.until is None or number <= self.until):
            chance = random.Random(seed_of("fault", self.seed, number))
            kind = chance.choice(self.kinds) if chance.random() < self.rate else None
        return Fault(kind, self.retry_after, self.location) if kind else None


@dataclass
class Received:
    """One request as it arrived; times are `time.monotonic()`."""

    number: int  # from 1, over all requests but /stats
    method: str
    path: str
    headers: dict[str, str]  # names in lower case
    body: Any
    received: float
    answered: float | None = None  # when its answer was handed to the socket in full
    status: int | None = None
    outcome: str = "honest"  # or the kind of its fault or lie, or "refused"
    prompt_tokens: int = 0  # billed
    new_tokens: int = 0

    @property
    def generates(self) -> bool:
        """Whether it asks for tokens."""
        return self.method == "POST" and self.path in GENERATION


class _Refused(Exception):
    """An error answer in OpenAI's form."""

    def __init__(
        self, status: int, message: str, *, param: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        kind = "invalid_request_error" if status < 500 else "server_error"
        self.status = status
        self.payload = {"error": {"message": message, "type": kind, "param": param, "code": code}}


def _check_ranges(body: Json) -> None:
    whole, real = (int,), (int, float)
    for key, kinds, low, high in (
        ("n", whole, 1, 128),
        ("max_tokens", whole, 0, 10**6),
        ("max_completion_tokens", whole, 0, 10**6),
        ("seed", whole, -(2**63), 2**63 - 1),
        ("temperature", real, 0, 2),
        ("top_p", real, 0, 1),
    ):
        value = body.get(key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
            raise _Refused(400, f"Invalid value for '{key}': {value!r}.", param=key, code="invalid_value")


# --- the honest answers ---------------------------------------------------------------------------------


def choice_seed(seed: int, index: int) -> int:
    """The seed with which choice `index` of a request with `seed` is sampled."""
    return seed_of("choice", seed, index)


@dataclass
class _Position:
    """A token of an answer, its log-probability, and the list beside it."""

    token: int
    log_prob: float | None
    top: list[tuple[int, float]]


@dataclass
class _Asked:
    """A generation request's parameters, checked."""

    body: Json
    prompts: list[list[int]]  # token ids, BOS included
    prompt_texts: list[str]
    n: int
    max_tokens: int
    temperature: float
    top_p: float
    seed: int
    listed: int | None  # entries of each top list; None: no log-probabilities
    selected: list[int]
    echo: bool = False


class _Answers:
    """What an honest server with this model and behaviour answers."""

    def __init__(self, model: ToyModel, behaviour: Behaviour) -> None:
        self.model, self.behaviour = model, behaviour
        self._serial = 0

    def models(self) -> Json:
        """GET /v1/models."""
        names = self.behaviour.served_models
        names = [self.behaviour.model_name] if names is None else names
        shown = {"object": "model", "created": 1700000000, "owned_by": "toy"}
        data = [{"id": name, **shown} for name in names]
        return {"object": "list", "data": data}

    def tokenize(self, body: Json) -> Json:
        """POST /tokenize, as vLLM has it: a prompt, or the messages of a chat."""
        if "messages" in body:
            text = self.model.render_chat(
                body["messages"],
                body.get("add_generation_prompt", True),
                body.get("continue_final_message", False),
            )
        else:
            text = body["prompt"]
        special = body.get("add_special_tokens", True)
        tokens = self._prompt_ids(text) if special else self.model.encode(text)
        return {"tokens": tokens, "count": len(tokens), "max_model_len": self.behaviour.context}

    def _prompt_ids(self, text: str) -> list[int]:
        return self.model.encode(text) if self.behaviour.bos == "none" else self.model.prompt_ids(text)

    def check(self, body: Any, path: str) -> Json:
        """The body without what is ignored; raises `_Refused` for what is rejected or malformed."""
        behaviour, chat = self.behaviour, path.endswith("chat/completions")
        if not isinstance(body, dict):
            raise _Refused(400, "We could not parse the JSON body of your request.")
        if not (behaviour.chat if chat else behaviour.completions):
            raise _Refused(404, f"Not Found: {path}")
        if chat and not behaviour.chat_template:
            raise _Refused(400, "As of transformers v4.44, default chat template is no longer allowed")
        name = body.get("model")
        known = (behaviour.model_name, *(behaviour.served_models or ()))
        if name not in known:
            raise _Refused(404, f"The model `{name}` does not exist.", param="model", code="model_not_found")
        body = {key: value for key, value in body.items() if value is not None}
        self._reject(body)
        if body.get("stream"):
            raise _Refused(400, "This server does not stream.", param="stream")
        _check_ranges(body)
        return body

    def _reject(self, body: Json) -> None:
        if self.behaviour.wraps_errors and body.get("top_k", 0) < 0:
            found = (
                r"1 validation erroREDACTED {\'type\': \'greater_than_equal\', \'loc\': (\'body\', \'top_k\')"
            )
            raise _Refused(
                500, f"litellm.InternalServerError: Error code: 500 - {{'error': {{'message': '{found}"
            )
        for key in body:
            value = body[key]
            if self.behaviour.strict and key not in KNOWN_PARAMETERS:
                raise _Refused(400, f"Unrecognized request argument supplied: {key}")
            if key not in self.behaviour.rejects:
                continue
            if key in ("temperature", "top_p"):
                if value == 1:
                    continue
                raise _Refused(
                    400,
                    f"Unsupported value: '{key}' does not support {value} with this model. Only the default"
                    " (1) value is supported.",
                    param=key,
                    code="unsupported_value",
                )
            other = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}.get(key)
            instead = f" Use '{other}' instead." if other else ""
            raise _Refused(
                400,
                f"Unsupported parameter: '{key}' is not supported with this model.{instead}",
                param=key,
                code="unsupported_parameter",
            )

    # -- completions

    def ask_completion(self, body: Json, seed: int) -> _Asked:
        """The parameters of POST /v1/completions."""
        prompt = body.get("prompt")
        if not isinstance(prompt, str | list):
            raise _Refused(400, "Missing or malformed parameter: 'prompt'.", param="prompt")
        if isinstance(prompt, str) or (prompt and isinstance(prompt[0], int)):
            prompt = [prompt]
        prompts = [self._prompt_ids(one) if isinstance(one, str) else self._given_ids(one) for one in prompt]
        texts = [one if isinstance(one, str) else self.model.decode(one) for one in prompt]
        listed = body.get("logprobs")
        echo = bool(body.get("echo"))
        refuses = self.behaviour.echo
        if echo and (refuses == "rejected" or (refuses == "pair-rejected" and listed is not None)):
            raise _Refused(
                400, "Unsupported parameter: 'echo' is not supported with this model.", param="echo"
            )
        max_tokens = int(body.get("max_tokens", 16))
        asked = self._asked(body, prompts, texts, max_tokens, listed, seed)
        asked.echo = echo and self.behaviour.echo != "ignored"
        if asked.selected and not max_tokens:
            raise _Refused(400, "logprob_token_ids needs at least one new token.", param="logprob_token_ids")
        return asked

    def _given_ids(self, ids: Sequence[int]) -> list[int]:
        """A prompt given as token ids is taken as it is, as vLLM does: no BOS is added."""
        if not ids or not all(0 <= one < len(self.model.vocabulary) for one in ids):
            raise _Refused(400, "Token id is out of vocabulary.", param="prompt")
        return list(ids)

    def _asked(
        self, body: Json, prompts: list[list[int]], texts: list[str], max_tokens: int, listed: Any, seed: int
    ) -> _Asked:
        behaviour = self.behaviour
        if max_tokens < behaviour.fewest_tokens:
            raise _Refused(
                400,
                "Invalid 'max_output_tokens': integer below minimum value. Expected a value >="
                f" {behaviour.fewest_tokens}, but got {max_tokens} instead.",
                param="max_output_tokens",
                code="integer_below_min_value",
            )
        longest = max((len(ids) for ids in prompts), default=0)
        if longest + max_tokens > behaviour.context:
            raise _Refused(
                400,
                f"This model's maximum context length is {behaviour.context} tokens. However, you requested"
                f" {longest + max_tokens} tokens ({longest} in the prompt, {max_tokens} in the completion).",
                param="messages" if "messages" in body else "prompt",
                code="context_length_exceeded",
            )
        return _Asked(
            body=body,
            prompts=prompts,
            prompt_texts=texts,
            n=min(int(body.get("n", 1)), behaviour.n_cap or 10**6),
            max_tokens=max_tokens,
            temperature=float(body.get("temperature", 1.0)),
            top_p=float(body.get("top_p", 1.0)),
            seed=int(body.get("seed", seed)),
            listed=self._list_length(listed),
            selected=self._selected(body, listed),
        )

    def _list_length(self, listed: Any) -> int | None:
        """How many entries each list has, `None` without log-probabilities."""
        behaviour = self.behaviour
        if listed is None:
            return None
        if isinstance(listed, bool) or not isinstance(listed, int) or listed < 0:
            raise _Refused(400, f"Invalid value for 'logprobs': {listed!r}.", param="logprobs")
        if listed <= behaviour.top_k and behaviour.top_k > 0:
            return listed
        if behaviour.over_top_k == "null":
            return None
        if behaviour.top_k == 0:
            raise _Refused(
                400,
                "Unsupported parameter: 'logprobs' is not supported with this model.",
                param="logprobs",
                code="unsupported_parameter",
            )
        if behaviour.over_top_k == "capped":
            return behaviour.top_k
        raise _Refused(
            400,
            f"Invalid value for 'logprobs': must be less than or equal to {behaviour.top_k}.",
            param="logprobs",
            code="integer_above_max_value",
        )

    def _selected(self, body: Json, listed: Any) -> list[int]:
        if not self.behaviour.token_id_logprobs or not body.get("logprob_token_ids"):
            return []
        ids = body["logprob_token_ids"]
        if listed is None:
            raise _Refused(400, "logprob_token_ids needs logprobs.", param="logprob_token_ids")
        if len(ids) > MOST_SELECTED or not all(0 <= one < len(self.model.vocabulary) for one in ids):
            raise _Refused(400, "logprob_token_ids: too many, or out of range.", param="logprob_token_ids")
        return list(dict.fromkeys(ids))

    def sample(self, asked: _Asked, prompt: int, index: int) -> tuple[list[int], str]:
        """New token ids of one choice (EOS left out) and its finish reason."""
        for ending, rest in self.behaviour.canned.items():
            if self.model.decode(asked.prompts[prompt]).endswith(ending):
                return self.model.encode(rest)[: asked.max_tokens], "length"
        told = '"do_sample": true' in str(asked.body.get("generation_config"))
        greedy = self.behaviour.greedy == "always" or (self.behaviour.greedy == "unless told" and not told)
        # The likeliest text of the toy model is too short to tell anything: a long one stands for it.
        seed = 0 if greedy else choice_seed(asked.seed, index)
        return self.model.sample(
            asked.prompts[prompt], asked.max_tokens, seed, asked.temperature, asked.top_p
        )

    def positions(self, asked: _Asked, ids: list[int], start: int, generated_from: int) -> list[_Position]:
        """The log-probabilities of `ids[start:]`; those before `generated_from` belong to the prompt."""
        behaviour, found = self.behaviour, []
        for at, row in enumerate(self.model.rows(ids, start), start=start):
            generated = at >= generated_from
            if generated and behaviour.temperature_affects_logprobs and asked.temperature != 1:
                row = row / max(asked.temperature, 0.01)
                row = row - (row.max() + math.log(np.exp(row - row.max()).sum()))
            found.append(self._position(row, ids[at], asked, generated))
        return found

    def _position(self, row: np.ndarray, token: int, asked: _Asked, generated: bool) -> _Position:
        behaviour, own = self.behaviour, float(row[token])
        if asked.selected and generated:
            ids = list(dict.fromkeys([token, *asked.selected]))
            return _Position(token, own, list(zip(ids, row[ids].tolist(), strict=True)))
        best = np.argsort(-row, kind="stable")[: asked.listed or 0]
        top = list(zip(best.tolist(), row[best].tolist(), strict=True))
        outside = all(one != token for one, _ in top)
        if behaviour.minus_9999 == "sampled" and outside and generated:
            own = UNLISTED
        if behaviour.minus_9999 == "padding":
            top = [*top[:3], *((one, UNLISTED) for one, _ in top[3:])]
        if outside and (behaviour.extra_entry or not asked.listed):
            top.append((token, own))
        return _Position(token, own, top)

    def text_of(self, token: int, asked: _Asked) -> str:
        """A token as the answer shows it."""
        told = asked.body.get("return_tokens_as_token_ids")
        as_ids = self.behaviour.token_id_logprobs and told
        if as_ids or {"no": False, "always": True}.get(self.behaviour.token_ids, told is not False):
            return f"token_id:{token}"
        text = self.model.vocabulary[token]
        if asked.echo and self.behaviour.echo == "strips-space":
            return text.removeprefix(" ")
        return text

    def completion_choice(self, asked: _Asked, prompt: int, index: int) -> tuple[Json, int]:
        """One choice of a completion, and its number of new tokens."""
        ids = asked.prompts[prompt]
        new, finish = self.sample(asked, prompt, index)
        text = self.model.decode(new)
        if asked.echo:
            text = asked.prompt_texts[prompt] + text
        ended = [self.model.eos_id] if finish == "stop" else []
        log_probs = None
        if asked.listed is not None:
            shown_end = ended if self.behaviour.eos_in_logprobs else []
            log_probs = self._legacy(asked, ids, new + shown_end)
        choice = {"index": index, "text": text, "logprobs": log_probs, "finish_reason": finish}
        if self.behaviour.token_id_logprobs and asked.body.get("return_token_ids"):
            choice |= {"prompt_token_ids": ids, "token_ids": new}
        return choice, len(new) + len(ended)

    def _legacy(self, asked: _Asked, ids: list[int], new: list[int]) -> Json:
        """Log-probabilities in the form of the completions API; with echo the prompt's come first."""
        behaviour, all_ids = self.behaviour, ids + new
        start = len(ids)
        head: list[_Position] = []
        if asked.echo and behaviour.echo != "text-only":
            start = 1 if ids[:1] == [self.model.bos_id] and behaviour.bos != "shown" else 0
            if not (start and behaviour.first_echo == "value"):
                head = [_Position(all_ids[start], None, [])] if start < len(all_ids) else []
                start += 1
        found = head + self.positions(asked, all_ids, start, len(ids))
        values = [position.log_prob for position in found]
        if asked.echo and behaviour.echo == "off-by-one":
            values = [*values[1:], values[-1]]
        tokens = [self.text_of(position.token, asked) for position in found]
        offsets, at = [], 0
        for text in tokens:
            offsets.append(at)
            at += len(text)
        tops = []
        for position in found:
            named: dict[str, float] = {}
            for token, value in position.top:
                named.setdefault(self.text_of(token, asked), value)
            tops.append(named if position.log_prob is not None else None)
        return {"tokens": tokens, "token_logprobs": values, "top_logprobs": tops, "text_offset": offsets}

    # -- chat

    def ask_chat(self, body: Json, seed: int) -> _Asked:
        """The parameters of POST /v1/chat/completions."""
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages:
            raise _Refused(400, "Missing required parameter: 'messages'.", param="messages")
        if not self.behaviour.takes_system and messages[0].get("role") == "system":
            raise _Refused(400, "System role not supported", param="messages[0].role")
        if body.get("top_logprobs") is not None and not body.get("logprobs"):
            raise _Refused(400, "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.")
        if self.behaviour.takes_system == "dropped":
            messages = [message for message in messages if message.get("role") != "system"]
        if self.behaviour.default_system and messages[0].get("role") != "system":
            messages = [{"role": "system", "content": self.behaviour.default_system}, *messages]
        text = self.model.render_chat(messages, continue_final=self._continues(body, messages))
        ids = self._prompt_ids(text)
        room = self.behaviour.context - len(ids)
        limit = int(body.get("max_completion_tokens", body.get("max_tokens", room)))
        listed = body.get("top_logprobs", 0) if body.get("logprobs") else None
        return self._asked(body, [ids], [text], limit, listed, seed)

    def _continues(self, body: Json, messages: Sequence[Mapping[str, Any]]) -> bool:
        if messages[-1].get("role") != "assistant":
            return False
        if self.behaviour.prefill == "rejected":
            raise _Refused(400, "The last message must be from the user.", param="messages")
        if self.behaviour.prefill == "asked":
            return bool(body.get("continue_final_message"))
        return self.behaviour.prefill == "continue"

    def chat_choice(self, asked: _Asked, index: int) -> tuple[Json, int, int]:
        """One choice of a chat, its number of new tokens, and how many of them are reasoning."""
        thought = self._thought(asked, index)
        if thought:
            asked = dataclasses.replace(asked, max_tokens=asked.max_tokens - len(thought))
        new, finish = self.sample(asked, 0, index)
        message: Json = {"role": "assistant", "content": self.model.decode(new), "refusal": None}
        if thought and self.behaviour.reasoning_inline:
            closed = "</think>" if asked.max_tokens else ""
            message["content"] = f"<think>{self.model.decode(thought)}{closed}{message['content']}"
        elif thought:
            message["reasoning_content"] = self.model.decode(thought)
        ended = [self.model.eos_id] if finish == "stop" else []
        log_probs = None
        if asked.listed is not None:
            shown_end = ended if self.behaviour.eos_in_logprobs else []
            ids = asked.prompts[0]
            found = self.positions(asked, ids + new + shown_end, len(ids), len(ids))
            log_probs = {"content": [self._entry(asked, position) for position in found], "refusal": None}
        choice = {"index": index, "message": message, "logprobs": log_probs, "finish_reason": finish}
        return choice, len(thought) + len(new) + len(ended), len(thought)

    def _thought(self, asked: _Asked, index: int) -> list[int]:
        """Hidden tokens before the answer; they use up its limit."""
        wanted = min(self.behaviour.reasoning, asked.max_tokens)
        sample = random.Random(choice_seed(asked.seed, -1 - index))
        words = self.model.encode("I nurse plumber she he works people a day")
        return [sample.choice(words) for _ in range(wanted)]

    def _entry(self, asked: _Asked, position: _Position) -> Json:
        named = [self._named(asked, token, value) for token, value in position.top]
        if not asked.listed and not asked.selected:
            named = []
        return {**self._named(asked, position.token, position.log_prob), "top_logprobs": named}

    def _named(self, asked: _Asked, token: int, value: float | None) -> Json:
        text = self.text_of(token, asked)
        return {"token": text, "logprob": value, "bytes": list(text.encode())}

    # -- the whole answer

    def answer(self, body: Json, path: str, seed: int, call: int) -> tuple[Json, int, int, _Asked]:
        """The payload, and what is billed for it: prompt tokens and new tokens."""
        chat = path.endswith("chat/completions")
        asked = self.ask_chat(body, seed) if chat else self.ask_completion(body, seed)
        choices, new_tokens, thoughts = [], 0, 0
        for prompt in range(len(asked.prompts)):
            for number in range(asked.n):
                index = prompt * asked.n + number
                if chat:
                    choice, size, thought = self.chat_choice(asked, index)
                    thoughts += thought
                else:
                    choice, size = self.completion_choice(asked, prompt, index)
                choices.append(choice)
                new_tokens += size
        prompt_tokens = sum(map(len, asked.prompts))
        usage: Json = {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": new_tokens,
            "total_tokens": prompt_tokens + new_tokens,
        }
        if thoughts:
            usage["completion_tokens_details"] = {"reasoning_tokens": thoughts}
        payload = self._envelope(chat, choices, usage, call)
        return payload, prompt_tokens, new_tokens, asked

    def _envelope(self, chat: bool, choices: list[Json], usage: Json, call: int) -> Json:
        behaviour = self.behaviour
        self._serial += 1
        drifted = behaviour.drift_after is not None and call > behaviour.drift_after
        name = "toy-2" if drifted else behaviour.answers_as or behaviour.model_name
        fingerprint = behaviour.system_fingerprint
        if not isinstance(fingerprint, str) and fingerprint:
            fingerprint = fingerprint[call % len(fingerprint)]
        payload: Json = {
            "id": f"{'chatcmpl' if chat else 'cmpl'}-{self._serial:08d}",
            "object": "chat.completion" if chat else "text_completion",
            "created": int(time.time()),
            "model": name,
            "choices": choices,
            "usage": usage,
            "system_fingerprint": fingerprint,
        }
        if provider := behaviour.provider:
            payload["provider"] = provider if isinstance(provider, str) else provider[call % len(provider)]
        if behaviour.usage == "missing":
            del payload["usage"]
        elif behaviour.usage == "null":
            payload["usage"] = None
        elif behaviour.usage == "zero":
            payload["usage"] = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
        return payload


# --- lies: an honest payload in, another out ------------------------------------------------------------


@dataclass
class _Telling:
    """What a lie may know of the request that it answers."""

    number: int
    asked: _Asked


def _set_text(choice: Json, value: Any) -> None:
    """Put `value` where the text of a choice stands."""
    if "message" in choice:
        choice["message"]["content"] = value
    else:
        choice["text"] = value


def _text(choice: Json) -> str:
    return choice["message"]["content"] if "message" in choice else choice["text"]


def _in_parts(choice: Json, *more: Json) -> None:
    """Put a list of parts where the text of a choice stands: its two halves, and `more`."""
    text, half = _text(choice), len(_text(choice)) // 2
    _set_text(choice, [*({"type": "text", "text": piece} for piece in (text[:half], text[half:])), *more])


def _on_choices(change: Callable[[list[Json]], Any]) -> Callable[[Json, _Telling], Json]:
    """A lie that makes another list of the choices."""

    def lie(payload: Json, telling: _Telling) -> Json:
        return {**payload, "choices": change(payload["choices"])}

    return lie


def _on_each_choice(change: Callable[[Json], object]) -> Callable[[Json, _Telling], Json]:
    """A lie that changes every choice in place."""

    def lie(payload: Json, telling: _Telling) -> Json:
        for choice in payload["choices"]:
            change(choice)
        return payload

    return lie


def _on_log_probs(change: Callable[[Json], object]) -> Callable[[Json, _Telling], Json]:
    """A lie that changes every choice's log-probabilities in place, where there are some."""

    def lie(payload: Json, telling: _Telling) -> Json:
        for choice in payload["choices"]:
            if choice["logprobs"] is not None:
                change(choice["logprobs"])
        return payload

    return lie


def _more_choices(choices: list[Json]) -> list[Json]:
    more = json.loads(json.dumps(choices[-1]))
    more["index"] = len(choices)
    return [*choices, more]


def _duplicated_index(choices: list[Json]) -> list[Json]:
    """All choices say that they are the first; a single one comes twice."""
    choices = choices if len(choices) > 1 else [choices[0], dict(choices[0])]
    return [{**choice, "index": 0} for choice in choices]


def _duplicated_choice(choices: list[Json]) -> list[Json]:
    """Choice 1 is choice 0 again, under its own index."""
    return [choices[0], *({**choices[0], "index": one["index"]} for one in choices[1:2]), *choices[2:]]


def _swapped_answers(choices: list[Json]) -> list[Json]:
    """The first two answers stand under one another's index, as a mixed-up line would hand them out."""
    if len(choices) < 2:
        return choices
    return [{**choices[1], "index": 0}, {**choices[0], "index": 1}, *choices[2:]]


def _other_ids(log_probs: Json) -> None:
    """Values of ids that nobody asked for."""
    for top in log_probs.get("top_logprobs", ()):
        for text in [text for text in top or () if text.startswith("token_id:")]:
            top[f"token_id:{int(text.removeprefix('token_id:')) + 100_000}"] = top.pop(text)


def _refusal(choice: Json) -> None:
    _set_text(choice, None)
    choice["finish_reason"] = "stop"
    if "message" in choice:
        choice["message"]["refusal"] = "I'm sorry, I can't help with that."
    else:
        choice["refusal"] = "I'm sorry, I can't help with that."


def _blocked(choice: Json) -> None:
    """No text under a name that is not OpenAI's, as a gateway passes on Gemini's."""
    choice |= {"text": None, "finish_reason": "PROHIBITED_CONTENT"}
    if "message" in choice:
        del choice["text"], choice["message"]["content"]


def _spent(choice: Json) -> None:
    """Thoughts took the limit, and nothing says so."""
    choice["finish_reason"] = "length"
    if "message" in choice:
        del choice["message"]["content"]
    else:
        choice["text"] = ""


def _filtered(choice: Json) -> None:
    _set_text(choice, _text(choice)[: len(_text(choice)) // 2])
    choice["finish_reason"] = "content_filter"


_LEGACY = ("tokens", "token_logprobs", "top_logprobs", "text_offset")


def _merged(log_probs: Json, odd: int) -> None:
    """Two neighbouring tokens told as one, whose value is the sum: boundaries fall elsewhere."""
    if "content" in log_probs:
        entries = log_probs["content"]
        log_probs["content"] = entries[:odd] + [_one_entry(pair) for pair in _pairs(entries[odd:])]
        return
    rows = list(zip(*(log_probs[name] for name in _LEGACY), strict=True))
    merged = rows[: 1 + odd]
    for pair in _pairs(rows[1 + odd :]):
        merged.append(("".join(row[0] for row in pair), sum(row[1] for row in pair), *pair[0][2:]))
    for column, name in enumerate(_LEGACY):
        log_probs[name] = [row[column] for row in merged]


def _one_entry(pair: list[Json]) -> Json:
    text = "".join(entry["token"] for entry in pair)
    value = sum(entry["logprob"] for entry in pair)
    return {**pair[0], "token": text, "bytes": list(text.encode()), "logprob": value}


def _pairs(rows: list[Any]) -> list[list[Any]]:
    return [rows[at : at + 2] for at in range(0, len(rows), 2)]


def _merged_tokens(payload: Json, telling: _Telling) -> Json:
    return _on_log_probs(lambda log_probs: _merged(log_probs, telling.number % 2))(payload, telling)


def _respelled(log_probs: Json) -> None:
    """Token texts with the vocabulary's own sign for a space, as servers that forget to decode show them."""
    if "content" in log_probs:
        for entry in log_probs["content"]:
            for one in (entry, *entry["top_logprobs"]):
                one["token"] = one["token"].replace(" ", "\u0120")
        return
    log_probs["tokens"] = [token.replace(" ", "\u0120") for token in log_probs["tokens"]]
    log_probs["top_logprobs"] = [
        top and {text.replace(" ", "\u0120"): value for text, value in top.items()}
        for top in log_probs["top_logprobs"]
    ]


def _unequal_lists(log_probs: Json) -> None:
    name = "content" if "content" in log_probs else "token_logprobs"
    log_probs[name] = log_probs[name][:-1]


def _equal_texts(log_probs: Json) -> None:
    """The second entry of every list is told with the text of the first, as two tokens may decode alike."""
    for entry in log_probs.get("content", ()):
        if len(entry["top_logprobs"]) > 1:
            entry["top_logprobs"][1]["token"] = entry["top_logprobs"][0]["token"]


def _as_in_a_chat(log_probs: Json) -> None:
    """The log-probabilities of a completion in the shape of a chat's, as llama-server tells them."""
    if "content" in log_probs:
        return
    rows = zip(*(log_probs.pop(name) for name in _LEGACY), strict=True)
    log_probs["content"] = [
        {"token": token, "logprob": value, "top_logprobs": _entries(top)} for token, value, top, _ in rows
    ]


def _entries(top: Mapping[str, float] | None) -> list[Json]:
    return [{"token": text, "logprob": value} for text, value in (top or {}).items()]


def _in_entries(log_probs: Json) -> None:
    """Lists of entries where the completions API has dictionaries."""
    if "top_logprobs" in log_probs:
        log_probs["top_logprobs"] = [_entries(top) for top in log_probs["top_logprobs"]]


def _of_one_place(log_probs: Json) -> None:
    """The dictionary of the first place, without a list around it."""
    if log_probs.get("top_logprobs"):
        log_probs["top_logprobs"] = log_probs["top_logprobs"][0]


def _sum_above_one(log_probs: Json) -> None:
    """Every listed value is at most 0, but together they are more than everything."""
    for entry in log_probs.get("content", ()):
        for one in entry["top_logprobs"]:
            one["logprob"] = -0.1
    for top in log_probs.get("top_logprobs", ()):
        for text in top or ():
            top[text] = -0.1


def _log_probs(change: Callable[[float], Any]) -> Callable[[Json, _Telling], Json]:
    """A lie that changes every log-probability."""

    def maybe(value: Any) -> Any:
        return value if value is None else change(value)

    def lie(log_probs: Json) -> None:
        for entry in log_probs.get("content", ()):
            for one in (entry, *entry["top_logprobs"]):
                one["logprob"] = maybe(one["logprob"])
        if "tokens" in log_probs:
            log_probs["token_logprobs"] = [maybe(value) for value in log_probs["token_logprobs"]]
            for top in log_probs["top_logprobs"]:
                for text in top or ():
                    top[text] = maybe(top[text])

    return _on_log_probs(lie)


def _last_null(log_probs: Json) -> None:
    """The least probable of every list has no value, as JSON has none for an impossible token's."""
    for entry in log_probs.get("content", ()):
        for one in entry["top_logprobs"][-1:]:
            one["logprob"] = None
    for top in log_probs.get("top_logprobs", ()):
        for text in list(top or ())[-1:]:
            top[text] = None


def _usage(**values: Any) -> Callable[[Json, _Telling], Json]:
    return lambda payload, telling: {**payload, "usage": values}


LIES: dict[str, Callable[[Json, _Telling], Any]] = {
    # choices
    "fewer-choices": _on_choices(lambda choices: choices[:-1]),
    "more-choices": _on_choices(_more_choices),
    "empty-choices": _on_choices(lambda choices: []),
    "duplicated-index": _on_choices(_duplicated_index),
    "duplicated-choice": _on_choices(_duplicated_choice),
    "missing-choice": _on_choices(lambda choices: choices[:1] + choices[2:]),
    "swapped-answers": _on_choices(_swapped_answers),
    "reordered-choices": _on_choices(lambda choices: choices[::-1]),
    "wrong-index": _on_choices(lambda choices: [{**one, "index": one["index"] + 7} for one in choices]),
    # texts and finish reasons
    "finish-null": _on_each_choice(lambda choice: choice.update(finish_reason=None)),
    "finish-unknown": _on_each_choice(lambda choice: choice.update(finish_reason="eos_token_found")),
    "content-filter": _on_each_choice(_filtered),
    "text-null": _on_each_choice(lambda choice: _set_text(choice, None)),
    "refusal": _on_each_choice(_refusal),
    "text-empty": _on_each_choice(lambda choice: _set_text(choice, "")),
    "text-not-string": _on_each_choice(lambda choice: _set_text(choice, 42)),
    "text-in-parts": _on_each_choice(_in_parts),
    "part-not-text": _on_each_choice(lambda choice: _in_parts(choice, {"type": "refusal", "refusal": "No."})),
    "thoughts-in-parts": _on_each_choice(
        lambda choice: _in_parts(choice, {"type": "thinking", "thinking": [{"type": "text", "text": "He?"}]})
    ),
    "limit-spent": _on_each_choice(_spent),
    "blocked": _on_each_choice(_blocked),
    "prompt-blocked": lambda payload, telling: (
        {**payload, "choices": [], "promptFeedback": {"blockReason": "SAFETY"}}
    ),
    "text-missing": _on_each_choice(lambda choice: (choice.pop("text", 0), choice.pop("message", 0))),
    "lone-surrogate": _on_each_choice(lambda choice: _set_text(choice, "\ud800 " + _text(choice) + "\udfff")),
    "control-characters": _on_each_choice(
        lambda choice: _set_text(choice, "\0\x1b[31m\u2028" + _text(choice))
    ),
    "huge-text": _on_each_choice(lambda choice: _set_text(choice, _text(choice) + "x" * 1_000_000)),
    # log-probabilities
    "logprobs-null": _on_each_choice(lambda choice: choice.update(logprobs=None)),
    "logprobs-missing": _on_each_choice(lambda choice: choice.pop("logprobs")),
    "logprobs-values-null": _log_probs(lambda value: None),
    "logprobs-last-null": _on_log_probs(_last_null),
    "logprobs-positive": _log_probs(lambda value: abs(value) + 0.01),
    "logprobs-nan": _log_probs(lambda value: math.nan),
    "logprobs-infinite": _log_probs(lambda value: -math.inf),
    "logprobs-text": _log_probs(str),
    "logprobs-zero": _log_probs(lambda value: 0.0),
    "logprobs-sum": _on_log_probs(_sum_above_one),
    "other-tokenisation": _merged_tokens,
    "other-spelling": _on_log_probs(_respelled),
    "unequal-lists": _on_log_probs(_unequal_lists),
    "other-ids": _on_log_probs(_other_ids),
    "list-as-in-a-chat": _on_log_probs(_as_in_a_chat),
    "list-of-entries": _on_log_probs(_in_entries),
    "list-of-one-place": _on_log_probs(_of_one_place),
    "equal-texts": _on_log_probs(_equal_texts),  # chat only: the other format cannot say it
    # the envelope
    "other-model": lambda payload, telling: {**payload, "model": "somebody-else"},
    "model-missing": lambda payload, telling: {key: payload[key] for key in payload if key != "model"},
    "not-an-object": lambda payload, telling: [payload],
    "null": lambda payload, telling: None,
    "usage-negative": _usage(prompt_tokens=-5, completion_tokens=-7, total_tokens=-12),
    "usage-huge": _usage(prompt_tokens=10**12, completion_tokens=10**12, total_tokens=2 * 10**12),
    "usage-text": _usage(prompt_tokens="many", completion_tokens=None, total_tokens=[]),
}


# --- faults: what goes wrong with an answer on its way ----------------------------------------------------


def _error(message: str, kind: str, code: str | None = None) -> Json:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


_RATE = _error("Rate limit reached for requests.", "requests", "rate_limit_exceeded")
_HTML = (
    b"<html>\r\n<head><title>%s</title></head>\r\n<body><center><h1>%s</h1></center></body>\r\n</html>\r\n"
)


def _key_of(received: Received) -> str:
    return received.headers.get("authorization", "").removeprefix("Bearer ")


def _with_key(status: int, received: Received) -> Json:
    text = f"Incorrect API key provided: {_key_of(received)}. You can find your API key in your account."
    return _error(text, "invalid_request_error", "invalid_api_key" if status == 401 else "forbidden")


def _rude(status: int, received: Received) -> Json:
    """Control characters, far too much, and the key at both ends."""
    key = _key_of(received)
    return _error(f"{key}\x1b[2J\x00 the model crashed\r\n{'traceback ' * 600}{key}", "server_error")


async def _status_fault(
    status: int, payload: Any, headers: Mapping[str, str], connection: _Connection, fault: Fault
) -> None:
    told = {key: value.format(fault=fault) for key, value in headers.items()}
    if callable(payload):
        payload = payload(status, connection.current)
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    kind = {"content-type": "text/html" if body.startswith(b"<") else "application/json"}
    connection.respond(status, body, {**kind, **told})


def _status(status: int, payload: Any, **headers: str) -> Callable[..., Any]:
    return functools.partial(
        _status_fault, status, payload, {k.replace("_", "-"): v for k, v in headers.items()}
    )


async def _stall(connection: _Connection, payload: bytes, fault: Fault) -> None:
    await connection.gone.wait()


async def _trickle(connection: _Connection, payload: bytes, fault: Fault) -> None:
    """The whole answer, a byte at a time."""
    connection.start(200, {"content-length": str(len(payload))})
    for at in range(len(payload) - 1):
        connection.write(payload[at : at + 1])
        await asyncio.sleep(fault.pause_s)
    connection.finish(200)
    connection.write(payload[-1:])


async def _endless(connection: _Connection, payload: bytes, fault: Fault) -> None:
    """A chunked body that begins like an answer and never ends."""
    connection.start(200, {"transfer-encoding": "chunked"})
    connection.write(b"%x\r\n%s\r\n" % (len(payload) - 1, payload[:-1]))
    fast = fault.kind == "endless-fast"
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n" if fast else b"1\r\n \r\n"
    while not connection.gone.is_set():
        connection.write(chunk)
        await connection.writable.wait()
        await asyncio.sleep(0 if fast else fault.pause_s)


async def _reset(connection: _Connection, payload: bytes, fault: Fault) -> None:
    """Half an answer, then RST instead of FIN."""
    connection.start(200, {"content-length": str(len(payload))})
    connection.write(payload[: len(payload) // 2])
    await asyncio.sleep(0.005)
    connection.abort()


async def _truncated_json(connection: _Connection, payload: bytes, fault: Fault) -> None:
    """A body that is as long as it says, and only half of its JSON."""
    connection.respond(200, payload[: len(payload) // 2])


async def _truncated_body(connection: _Connection, payload: bytes, fault: Fault) -> None:
    """A body that is shorter than its Content-Length says."""
    connection.start(200, {"content-length": str(len(payload))})
    connection.write(payload[: len(payload) // 2])
    connection.close()


async def _closed(connection: _Connection, payload: bytes, fault: Fault) -> None:
    connection.close()


async def _gzip(connection: _Connection, payload: bytes, fault: Fault) -> None:
    """A body that says it is compressed and is not."""
    connection.respond(200, b"\x1f\x8b\x08" + bytes(range(200)), {"content-encoding": "gzip"})


_REFUSALS: dict[str, Callable[..., Any]] = {
    "429": _status(429, _RATE, retry_after="{fault.retry_after}"),
    "429-bare": _status(429, _RATE),
    "429-hours": _status(429, _RATE, retry_after="7200"),
    "429-quota": _status(
        429,
        _error(
            "You exceeded your current quota, check your plan.", "insufficient_quota", "insufficient_quota"
        ),
    ),
    "500": _status(500, _error("The server had an error while processing your request.", "server_error")),
    "500-rude": _status(500, _rude),
    "502": _status(502, _HTML % (b"502 Bad Gateway", b"502 Bad Gateway")),
    "503": _status(
        503, _error("The engine is overloaded.", "overloaded_error"), retry_after="{fault.retry_after}"
    ),
    "200-error": _status(200, _error("Internal error while generating.", "server_error")),
    "200-html": _status(200, _HTML % (b"Please log in", b"Please log in")),
    "200-empty": _status(200, b""),
    "redirect": _status(307, b"", location="{fault.location}"),
    "400": _status(
        400, _error("The prompt is too long.", "invalid_request_error", "context_length_exceeded")
    ),
    "400-filter": _status(
        400, _error("The prompt triggered the content filter.", "invalid_request_error", "content_filter")
    ),
    "401": _status(401, _with_key),
    "403": _status(403, _with_key),
    "404": _status(404, _error("The model does not exist or you have no access.", "invalid_request_error")),
}
_LOSSES: dict[str, Callable[..., Any]] = {
    "stall": _stall,
    "trickle": _trickle,
    "endless": _endless,
    "endless-fast": _endless,
    "reset": _reset,
    "truncated-json": _truncated_json,
    "truncated-body": _truncated_body,
    "closed": _closed,
    "gzip": _gzip,
}
FAULTS = {**_REFUSALS, **_LOSSES}
AFTER_GENERATION = tuple(_LOSSES)
"""Faults that lose an answer that was generated and is billed; the others cost nothing."""
SLOW = ("stall", "trickle", "endless", "endless-fast")
"""Only the client's own patience ends these."""


# --- the wire ---------------------------------------------------------------------------------------------


class _Connection(asyncio.Protocol):
    """One client connection: HTTP/1.1 with keep-alive, one request at a time."""

    transport: asyncio.Transport
    current: Received

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.gone, self.writable = asyncio.Event(), asyncio.Event()
        self.writable.set()
        self._buffer = bytearray()
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.server._connections.add(self)
        if self.server._closing.is_set():
            self.end()

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone.set()
        self.writable.set()
        self.server._connections.discard(self)
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._task is None:
            self._next()

    def _next(self) -> None:
        """Begin with the next request if all of it is here."""
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        whole = end + 4 + int(headers.get("content-length", 0))
        if len(self._buffer) < whole:
            return
        content = bytes(self._buffer[end + 4 : whole])
        del self._buffer[:whole]
        method, path, _ = first.split(" ")
        self._task = self.server._loop.create_task(self._run(method, path, headers, content))

    async def _run(self, method: str, path: str, headers: dict[str, str], content: bytes) -> None:
        try:
            await self.server._serve(self, method, path, headers, content)
        except asyncio.CancelledError:
            return  # the client left, or the server closes
        except Exception as error:
            self.server.errors.append(error)
            self.respond(500, json.dumps(_error(f"bug in the test server: {error!r}", "bug")).encode())
        self._task = None
        if not self.gone.is_set() and self._buffer:
            self._next()

    def start(self, status: int, headers: Mapping[str, str]) -> None:
        """The status line and the headers."""
        headers = {"content-type": "application/json", **headers}
        self.write(_head(status, headers))

    def write(self, data: bytes) -> None:
        """Some of the answer; nothing where the client is gone."""
        if not self.transport.is_closing():
            self.transport.write(data)

    def respond(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """A complete answer."""
        told = {"content-type": "application/json", **(headers or {}), "content-length": str(len(body))}
        self.finish(status)
        self.write(_head(status, told) + body)

    def finish(self, status: int) -> None:
        """Note that the current request has its answer; before the last byte, so that no client is faster."""
        if not self.transport.is_closing():
            self.current.status, self.current.answered = status, time.monotonic()
            self.server._end(self.current)

    def end(self) -> None:
        """The server closes: drop the connection and whatever is being done for it."""
        self.transport.abort()
        if self._task is not None:
            self._task.cancel()

    def close(self) -> None:
        """End the connection in the usual way (FIN), after what was written."""
        self.transport.close()

    def abort(self) -> None:
        """End the connection with RST; what was not sent yet is lost."""
        raw = self.transport.get_extra_info("socket")
        if raw is not None and not self.transport.is_closing():
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
    return f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}\r\n{''.join(lines)}\r\n".encode("latin-1")


# --- the server -------------------------------------------------------------------------------------------


class ApiServer:
    """The server, in a thread with a loop of its own; a context manager. `url` is its base URL.

    For tests: `requests` (every `Received`), `calls` (generation requests), `in_flight_most`, `answered`
    (complete answers by status), `outcomes` (requests by fault or lie, "honest", "refused"), `prompt_tokens`
    and `new_tokens` (billed: all that was generated, whether or not the answer arrived) and `cost`.
    """

    def __init__(
        self,
        model: ToyModel | None = None,
        behaviour: Behaviour | None = None,
        *,
        faults: Faults | None = None,
        keeps_requests: bool = True,
    ) -> None:
        self.model, self.behaviour = model or ToyModel(), behaviour or Behaviour()
        self.faults, self.port, self.host = faults, 0, "127.0.0.1"
        self.requests: list[Received] = []
        self.answered: Counter[int] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.number = self.calls = self.in_flight = self.in_flight_most = 0
        self.prompt_tokens = self.new_tokens = 0
        self.errors: list[Exception] = []
        self._open: set[int] = set()
        self._keeps_requests = keeps_requests
        self._script: Callable[[int, str, Any], Fault | Lie | str | None] | None = None
        self._answers = _Answers(self.model, self.behaviour)
        self._connections: set[_Connection] = set()
        self._accepting: set[asyncio.Task[Any]] = set()
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The base URL that a client is given."""
        return f"http://{self.host}:{self.port}/v1"

    def script(self, decide: Callable[[int, str, Any], Fault | Lie | str | None] | None) -> None:
        """Ask `decide(number, path, body)` first, for every request: a Fault, a Lie, a kind, or None."""
        self._script = decide

    def cost(self, price_in: float, price_out: float) -> float:
        """What was generated costs so much, at prices per million tokens."""
        return (self.prompt_tokens * price_in + self.new_tokens * price_out) / 1e6

    def stats(self) -> Json:
        """The counts, as GET /stats tells them."""
        return {
            "requests": self.number,
            "calls": self.calls,
            "in_flight": self.in_flight,
            "in_flight_most": self.in_flight_most,
            "answered": {str(status): count for status, count in self.answered.items()},
            "outcomes": dict(self.outcomes),
            "prompt_tokens": self.prompt_tokens,
            "new_tokens": self.new_tokens,
        }

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, name="api-server", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
        if self.errors and exc[0] is None:
            raise AssertionError("the test server has a bug") from self.errors[0]

    def close(self) -> None:
        """Stop at once: whoever still waits for an answer gets none."""
        if self._thread is None or not self._thread.is_alive():
            return
        with contextlib.suppress(RuntimeError):  # its loop has ended meanwhile
            self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(timeout=10)
        assert not self._thread.is_alive(), "the test server did not stop"

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:
            self._failure = error
        finally:
            self._ready.set()

    async def _main(self) -> None:
        self._loop, self._closing = asyncio.get_running_loop(), asyncio.Event()
        with socket.create_server((self.host, self.port), backlog=2048) as listening:
            listening.setblocking(False)
            self.port = listening.getsockname()[1]
            self._loop.add_reader(listening.fileno(), self._accept, listening)
            self._ready.set()
            await self._closing.wait()
            self._loop.remove_reader(listening.fileno())
        for connection in list(self._connections):
            connection.end()
        # A connection that is just being accepted is not among them yet: it ends itself when it is made.
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)
        while self._connections:  # their sockets close in the next turn of the loop
            await asyncio.sleep(0)

    def _accept(self, listening: socket.socket) -> None:
        """Take every client that waits; asyncio's own server loses one that comes as it closes."""
        with contextlib.suppress(BlockingIOError, ConnectionAbortedError):
            while True:
                accepted, _ = listening.accept()
                made = self._loop.connect_accepted_socket(lambda: _Connection(self), accepted)
                task = self._loop.create_task(made)
                self._accepting.add(task)
                task.add_done_callback(self._accepting.discard)

    # -- one request

    async def _serve(
        self, connection: _Connection, method: str, path: str, headers: dict[str, str], content: bytes
    ) -> None:
        if path == "/stats":
            connection.current = Received(0, method, path, headers, None, time.monotonic())
            connection.respond(200, json.dumps(self.stats()).encode())
            return
        received = self._note(method, path, headers, content)
        connection.current = received
        self._begin(received)
        try:
            await self._answer(connection, received)
        finally:
            self._end(received)

    def _note(self, method: str, path: str, headers: dict[str, str], content: bytes) -> Received:
        self.number += 1
        try:
            body = json.loads(content) if content else None
        except ValueError:
            body = content
        received = Received(self.number, method, path, headers, body, time.monotonic())
        if self._keeps_requests:
            self.requests.append(received)
        return received

    def _begin(self, received: Received) -> None:
        self._open.add(received.number)
        if received.generates:
            self.calls += 1
            self.in_flight += 1
            self.in_flight_most = max(self.in_flight_most, self.in_flight)

    def _end(self, received: Received) -> None:
        """Count a request once, when it has its answer or will get none."""
        if received.number not in self._open:
            return
        self._open.discard(received.number)
        if received.generates:
            self.in_flight -= 1
        self.outcomes[received.outcome] += 1
        if received.answered is not None and received.status is not None:
            self.answered[received.status] += 1

    async def _answer(self, connection: _Connection, received: Received) -> None:
        fault, lie = self._decided(received)
        if fault is not None and fault.kind in _REFUSALS:
            received.outcome = fault.kind
            await _REFUSALS[fault.kind](connection, fault=fault)
            return
        try:
            self._admit(received)
            payload, hangs = self._payload(received, lie)
        except _Refused as refused:
            received.outcome = "refused"
            connection.respond(refused.status, json.dumps(refused.payload).encode())
            return
        if received.generates:
            await self._work(received)
        if hangs:
            fault = Fault("stall")
        if fault is not None:
            received.outcome = fault.kind
            await _LOSSES[fault.kind](connection, payload, fault)
        else:
            connection.respond(200, payload)

    def _decided(self, received: Received) -> tuple[Fault | None, Lie | None]:
        """What goes wrong with this request: the script's word first, then the faults, then the lies."""
        said = self._script(received.number, received.path, received.body) if self._script else None
        if isinstance(said, str):
            said = Fault(said) if said in FAULTS else Lie(said)
        if isinstance(said, Fault):
            return said, None
        if isinstance(said, Lie):
            return None, said
        if self.faults is not None and (received.generates or self.faults.everywhere):
            fault = self.faults.of(received.number)
            if fault is not None:
                return fault, None
        lie = self.behaviour.lies if received.generates else None
        return None, Lie(lie) if lie else None

    def _admit(self, received: Received) -> None:
        """Raise `_Refused` for a wrong key."""
        wanted = self.behaviour.requires_key
        if wanted is not None and _key_of(received) != wanted:
            raise _Refused(401, f"Incorrect API key provided: {_key_of(received)}.", code="invalid_api_key")

    def _payload(self, received: Received, lie: Lie | None) -> tuple[bytes, bool]:
        """The body of a 200, and whether it never comes."""
        behaviour, path = self.behaviour, received.path
        self._answers.behaviour = behaviour
        if received.generates:
            return self._generated(received, lie)
        if received.method == "GET" and path == "/v1/models" and behaviour.models_list:
            return json.dumps(self._answers.models()).encode(), False
        tokenizes = behaviour.token_id_logprobs
        if (
            received.method == "POST"
            and path == "/tokenize"
            and tokenizes
            and isinstance(received.body, dict)
        ):
            return json.dumps(self._answers.tokenize(received.body)).encode(), False
        raise _Refused(404, f"Not Found: {received.method} {path}")

    def _generated(self, received: Received, lie: Lie | None) -> tuple[bytes, bool]:
        answers = self._answers
        body = answers.check(received.body, received.path)
        by_content = self.behaviour.seeds == "content"
        seed = zlib.crc32(json.dumps(body, sort_keys=True).encode()) if by_content else received.number
        payload, prompt_tokens, new_tokens, asked = answers.answer(body, received.path, seed, self.calls)
        received.prompt_tokens, received.new_tokens = prompt_tokens, new_tokens
        self.prompt_tokens += prompt_tokens
        self.new_tokens += new_tokens
        if lie is not None:
            received.outcome = lie.kind
            payload = LIES[lie.kind](json.loads(json.dumps(payload)), _Telling(received.number, asked))
        hangs = self.behaviour.max_tokens_0_hangs and body.get("max_tokens") == 0
        return json.dumps(payload).encode(), hangs

    async def _work(self, received: Received) -> None:
        """Take the time that generating takes."""
        behaviour = self.behaviour
        seconds = behaviour.latency_s
        if behaviour.latency_jitter:
            sample = random.Random(seed_of("latency", received.number)).random()
            seconds *= 1 + behaviour.latency_jitter * (2 * sample - 1)
        if seconds > 0:
            await asyncio.sleep(seconds)


# --- a process of its own -----------------------------------------------------------------------------------


class ApiProcess:
    """The same server in another process, so that it does not share the interpreter with its client."""

    def __init__(self, *arguments: str) -> None:
        self._command = [sys.executable, str(Path(__file__).resolve()), *arguments]
        self.url = ""

    def __enter__(self) -> Self:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, env=environment, text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        assert self.url, "the test server did not start"
        return self

    def __exit__(self, *exc: object) -> None:
        with self._process as process:  # closes its pipes: it then ends by itself
            process.kill()

    def stats(self) -> Json:
        """The counts of `ApiServer.stats`."""
        with urllib.request.urlopen(self.url.removesuffix("/v1") + "/stats", timeout=10) as answer:
            return json.load(answer)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until stdin closes; print the base URL on one line."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds per request")
    behaviour = Behaviour(latency_s=parser.parse_args(arguments).latency)
    with ApiServer(ToyModel(), behaviour, keeps_requests=False) as server:
        print(server.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
