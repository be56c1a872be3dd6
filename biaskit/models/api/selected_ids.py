"""`selected-ids`: log-probabilities of chosen ids, one call per trie node (docs/methods.md#selected-ids)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

from biaskit.models.api.answers import Replays, answered, choices, log_probability
from biaskit.models.api.controller import Controller
from biaskit.models.api.trouble import BadAnswer
from biaskit.models.api.wire import Call, Reply, inside
from biaskit.models.token_trie import TokenIds, build_trie
from biaskit.records import Answered

MOST_IDS = 128  # vLLM's limit in one request


class SelectedIds:
    """Tokens by the server's own tokenizer, and exact log-probabilities of chosen ones."""

    def __init__(
        self,
        controller: Controller,
        model: str,
        replays: Replays | None = None,
        seconds: float | None = None,
    ) -> None:
        """`seconds`: for each request, where the usual time is too long."""
        self._controller = controller
        self._model = model
        self._replays = replays or Replays(unique_ids=False)
        self._seconds = seconds

    async def tokenize(self, text: str) -> TokenIds:
        """Ids of a text as the server would read it, BOS included."""
        body = {"model": self._model, "prompt": text, "add_special_tokens": True}

        def read(reply: Reply) -> TokenIds:
            listed = reply.data.get("tokens")
            if not isinstance(listed, list) or not listed or not all(type(i) is int for i in listed):
                raise BadAnswer("the server tells no token ids")
            return tuple(listed)

        return await self._controller.ask(Call("/tokenize", body), read, seconds=self._seconds)

    async def next_log_probs(
        self, ids: TokenIds, asked: Sequence[int]
    ) -> tuple[dict[int, float], list[Answered]]:
        """Log-probabilities of the `asked` ids after `ids`; raises where one of them does not come back."""
        found: dict[int, float] = {}
        who: list[Answered] = []
        for start in range(0, len(asked), MOST_IDS):
            piece = asked[start : start + MOST_IDS]
            body = {
                "model": self._model,
                "prompt": list(ids),
                "max_tokens": 1,
                "temperature": 1.0,
                "logprobs": 1,
                "logprob_token_ids": list(piece),
                "return_tokens_as_token_ids": True,
            }
            call = Call("completions", body, len(ids) + 8, 1)
            read = partial(self._read, before=ids, asked=piece)
            values, by = await self._controller.ask(call, read, seconds=self._seconds)
            found |= values
            who.append(by)
        return found, who

    def _read(
        self, reply: Reply, before: TokenIds, asked: Sequence[int]
    ) -> tuple[dict[int, float], Answered]:
        first = inside(choices(reply, 1)[0].data, "logprobs", "top_logprobs", 0)
        if not isinstance(first, Mapping):
            raise BadAnswer("no log-probabilities")
        found = {}
        for token in asked:
            # Shown as ids, since two tokens of one text would be one entry.
            value = first.get(f"token_id:{token}")
            if value is None:
                raise BadAnswer("the chosen token ids do not come back")
            found[token] = log_probability(value)
        total = math.fsum(math.exp(log_probability(value)) for value in first.values())
        if total > 1 + 1e-3:
            raise BadAnswer("token ids that are more probable together than everything")
        self._replays.check(reply, str(before), sorted(found.items()))
        return found, answered(reply)

    async def score(
        self, prompt: str, continuations: Sequence[str]
    ) -> tuple[list[tuple[TokenIds, float]], list[Answered]]:
        """Ids and log-probability of every continuation, and who answered each call that took.

        The tokens of prompt and continuation must begin with the prompt's own
        (docs/methods.md#word-boundary).
        """
        before = await self.tokenize(prompt)
        sequences = []
        for text in continuations:
            ids = await self.tokenize(prompt + text)
            if ids[: len(before)] != before or len(ids) == len(before):
                raise BadAnswer(f"a token spans the end of the prompt before {text!r}")
            sequences.append(ids[len(before) :])
        trie = build_trie(sorted(set(sequences)))
        at: dict[TokenIds, dict[int, float]] = {}
        who: list[Answered] = []
        for number, node in enumerate(trie.nodes):
            children = sorted({trie.asked[c] for steps in trie.steps for n, c in steps if n == number})
            at[node], answers = await self.next_log_probs(before + node, children)
            who += answers
        totals = [(s, math.fsum(at[s[:k]][s[k]] for k in range(len(s)))) for s in sequences]
        return totals, who
