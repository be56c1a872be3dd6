"""`selected-ids`: log-probabilities of chosen ids at every trie node (methods/estimators#selected-ids)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from biaskit.common.sequences import cut
from biaskit.models.api.answers import answered, choices, log_probability
from biaskit.models.api.controller import Controller
from biaskit.models.api.offline import OfflineController
from biaskit.models.api.stream import gather_all
from biaskit.models.api.trouble import BadAnswer
from biaskit.models.api.wire import Call, Reply, inside
from biaskit.models.token_trie import TokenIds, build_trie, shared_length
from biaskit.records import Answered

MOST_IDS = 128  # vLLM's limit in one request
Totals = list[tuple[TokenIds, float]]  # ids and log-probability of each continuation


def ids_at_nodes(sequences: Sequence[TokenIds]) -> dict[TokenIds, Sequence[int]]:
    """Return, for each node of a trie (its tokens after the prompt), the ids to ask for there.

    Every node asks for the ids of all nodes if one request takes so many: with several values at each
    node, wrong ones are more likely to contradict each other.
    """
    trie = build_trie(sorted(set(sequences)))
    if len(trie.token_ids) <= MOST_IDS:
        return dict.fromkeys(trie.nodes, trie.token_ids)
    at_node: dict[TokenIds, set[int]] = {node: set() for node in trie.nodes}
    for ids in sequences:
        for k, token in enumerate(ids):
            at_node[ids[:k]].add(token)
    return {node: sorted(tokens) for node, tokens in at_node.items()}


@dataclass(frozen=True, slots=True)
class SelectedIds:
    """Exact log-probabilities of chosen ids, a call for each node; token ids are the server's own."""

    controller: Controller | OfflineController
    model: str
    seconds: float | None = None  # time limit of each request; None: the usual one

    async def cell(
        self, prompt: str, continuations: Sequence[str], *, whole: bool = False
    ) -> tuple[TokenIds, list[TokenIds]]:
        """Ask for the ids of a prompt and those of its continuations.

        Those of both must begin with the prompt's own (methods/probabilities#word-boundary); of whole
        sentences the prompt is what all have in common. Raises `BadAnswer`, `GaveUp` or `Refused`.
        """
        asked = [prompt + text for text in continuations]
        before, *both = await gather_all(map(self._tokenize, asked if whole else [prompt, *asked]))
        if whole:
            both = [before, *both]
            before = before[: shared_length(both)]
            if not before:
                raise BadAnswer("sentences without a common first token follow nothing: let them begin alike")
        for text, ids in zip(continuations, both, strict=True):
            if ids[: len(before)] != before or len(ids) == len(before):
                raise BadAnswer(f"a token spans the end of the prompt before {text!r}")
        return before, [ids[len(before) :] for ids in both]

    async def score(
        self, prompt: str, continuations: Sequence[str], *, whole: bool = False
    ) -> tuple[Totals, list[Answered]]:
        """Return every continuation's ids and log-probability, and who answered; raises as `cell` does."""
        before, sequences = await self.cell(prompt, continuations, whole=whole)
        questions: list[tuple[TokenIds, Sequence[int]]] = []
        for node, ids in ids_at_nodes(sequences).items():
            questions += [(node, part) for part in cut(ids, MOST_IDS)]
        answers = await gather_all(self._ask(before + node, ids) for node, ids in questions)
        at: dict[TokenIds, dict[int, float]] = {}
        for (node, _), (values, _) in zip(questions, answers, strict=True):
            at.setdefault(node, {}).update(values)
        totals = []
        for sequence in sequences:
            steps = [at[sequence[:k]][token] for k, token in enumerate(sequence)]
            totals.append((sequence, math.fsum(steps)))
        return totals, [origin for _, origin in answers]

    async def _tokenize(self, text: str) -> TokenIds:
        """Ask for the ids of a text by the server's own tokenizer, BOS included."""

        def read(reply: Reply) -> TokenIds:
            listed = reply.data.get("tokens")
            if not isinstance(listed, list) or not listed or not all(type(i) is int for i in listed):
                raise BadAnswer("the server gives no token ids")
            return tuple(listed)

        body = {"model": self.model, "prompt": text, "add_special_tokens": True}
        return await self.controller.ask(Call("/tokenize", body), read, seconds=self.seconds)

    async def _ask(self, ids: TokenIds, chosen: Sequence[int]) -> tuple[dict[int, float], Answered]:
        """Ask for the log-probabilities of the `chosen` ids after the tokens `ids`."""
        body = {"model": self.model, "prompt": list(ids), "max_tokens": 1, "temperature": 1.0, "logprobs": 1}
        body |= {"logprob_token_ids": list(chosen)}
        body |= {"return_tokens_as_token_ids": True, "return_token_ids": True}
        read, call = partial(_read_values, ids=ids, chosen=chosen), Call("completions", body, len(ids) + 8, 1)
        return await self.controller.ask(call, read, seconds=self.seconds)


def _read_values(reply: Reply, ids: TokenIds, chosen: Sequence[int]) -> tuple[dict[int, float], Answered]:
    choice = choices(reply, 1)[0]
    prompt_ids = choice.data.get("prompt_token_ids")
    if prompt_ids is not None and prompt_ids != list(ids):
        raise BadAnswer("the answer is of another prompt")
    first = inside(choice.data, "logprobs", "top_logprobs", 0)
    if not isinstance(first, Mapping):
        raise BadAnswer("no log-probabilities")
    # Shown as ids, since two tokens of one text would be one entry.
    if any(first.get(f"token_id:{token}") is None for token in chosen):
        raise BadAnswer("the chosen token ids do not come back")
    if len(first) > len(chosen) + 1:  # the sampled token is an extra entry
        raise BadAnswer("token ids come back that were not requested")
    if math.fsum(math.exp(log_probability(value)) for value in first.values()) > 1 + 1e-3:
        raise BadAnswer("token ids with a total probability above 1")
    return {token: log_probability(first[f"token_id:{token}"]) for token in chosen}, answered(reply)
