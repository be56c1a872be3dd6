"""`selected-ids`: log-probabilities of chosen ids at every trie node (docs/methods.md#selected-ids)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from biaskit.models.api.answers import answered, choices, log_probability
from biaskit.models.api.stream import gather_all
from biaskit.models.api.trouble import BadAnswer
from biaskit.models.api.wire import Call, Reply, inside
from biaskit.models.token_trie import TokenIds, build_trie
from biaskit.records import Answered

if TYPE_CHECKING:
    from biaskit.models.api.controller import Controller
    from biaskit.models.api.offline import OfflineController

MOST_IDS = 128  # vLLM's limit in one request
Totals = list[tuple[TokenIds, float]]
"""Ids and log-probability of each continuation."""


@dataclass(frozen=True, slots=True)
class TokenizedCell:
    """A prompt's ids and those of its continuations."""

    before: TokenIds
    sequences: tuple[TokenIds, ...]

    def nodes(self) -> dict[TokenIds, tuple[int, ...]]:
        """Node of the trie, as its tokens after the prompt → the ids that are asked for there.

        Those of every node at each of them, as far as a request takes so many: then no node has a single
        value that nothing could contradict.
        """
        trie = build_trie(sorted(set(self.sequences)))
        if len(trie.asked) <= MOST_IDS:
            return dict.fromkeys(trie.nodes, trie.asked)
        columns: dict[int, set[int]] = {}
        for steps in trie.steps:
            for number, column in steps:
                columns.setdefault(number, set()).add(trie.asked[column])
        return {node: tuple(sorted(columns[number])) for number, node in enumerate(trie.nodes)}


@dataclass(frozen=True, slots=True)
class SelectedIds:
    """Exact log-probabilities of chosen ids, a call for each node; token ids are the server's own.

    `seconds`: for each request, where another time than the usual one is meant.
    """

    controller: Controller | OfflineController
    model: str
    seconds: float | None = None

    async def cell(self, prompt: str, continuations: Sequence[str]) -> TokenizedCell:
        """Ids of a prompt and its continuations.

        The tokens of prompt and continuation must begin with the prompt's own
        (docs/methods.md#word-boundary). Raises `BadAnswer`, `GaveUp` or `Refused`.
        """
        before, *both = await gather_all(
            map(self._tokenize, [prompt, *(prompt + text for text in continuations)])
        )
        for text, ids in zip(continuations, both, strict=True):
            if ids[: len(before)] != before or len(ids) == len(before):
                raise BadAnswer(f"a token spans the end of the prompt before {text!r}")
        return TokenizedCell(before, tuple(ids[len(before) :] for ids in both))

    async def score(self, prompt: str, continuations: Sequence[str]) -> tuple[Totals, list[Answered]]:
        """Every continuation's ids and log-probability, and who answered; raises as `cell` does."""
        cell = await self.cell(prompt, continuations)
        asked = [
            (node, ids[start : start + MOST_IDS])
            for node, ids in cell.nodes().items()
            for start in range(0, len(ids), MOST_IDS)
        ]
        answers = await gather_all(self._ask(cell.before + node, ids) for node, ids in asked)
        at: dict[TokenIds, dict[int, float]] = {}
        for (node, _), (values, _) in zip(asked, answers, strict=True):
            at.setdefault(node, {}).update(values)
        totals = [(s, math.fsum(at[s[:k]][s[k]] for k in range(len(s)))) for s in cell.sequences]
        return totals, [who for _, who in answers]

    async def _tokenize(self, text: str) -> TokenIds:
        """Ids of a text by the server's own tokenizer, BOS included."""

        def read(reply: Reply) -> TokenIds:
            listed = reply.data.get("tokens")
            if not isinstance(listed, list) or not listed or not all(type(i) is int for i in listed):
                raise BadAnswer("the server tells no token ids")
            return tuple(listed)

        body = {"model": self.model, "prompt": text, "add_special_tokens": True}
        return await self.controller.ask(Call("/tokenize", body), read, seconds=self.seconds)

    async def _ask(self, ids: TokenIds, asked: tuple[int, ...]) -> tuple[dict[int, float], Answered]:
        """Log-probabilities of some ids after others."""
        body = {
            "model": self.model,
            "prompt": list(ids),
            "max_tokens": 1,
            "temperature": 1.0,
            "logprobs": 1,
            "logprob_token_ids": list(asked),
            "return_tokens_as_token_ids": True,
            "return_token_ids": True,
        }
        read = partial(_read_values, ids=ids, asked=asked)
        return await self.controller.ask(
            Call("completions", body, len(ids) + 8, 1), read, seconds=self.seconds
        )


def _read_values(reply: Reply, ids: TokenIds, asked: tuple[int, ...]) -> tuple[dict[int, float], Answered]:
    choice = choices(reply, 1)[0]
    told = choice.data.get("prompt_token_ids")
    if told is not None and told != list(ids):
        raise BadAnswer("the answer is of another prompt")
    first = inside(choice.data, "logprobs", "top_logprobs", 0)
    if not isinstance(first, Mapping):
        raise BadAnswer("no log-probabilities")
    # Shown as ids, since two tokens of one text would be one entry.
    if any(first.get(f"token_id:{token}") is None for token in asked):
        raise BadAnswer("the chosen token ids do not come back")
    if len(first) > len(asked) + 1:  # the sampled token comes on top
        raise BadAnswer("token ids come back that were not asked for")
    if math.fsum(math.exp(log_probability(value)) for value in first.values()) > 1 + 1e-3:
        raise BadAnswer("token ids that are more probable together than everything")
    return {token: log_probability(first[f"token_id:{token}"]) for token in asked}, answered(reply)
