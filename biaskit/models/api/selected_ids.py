"""`selected-ids`: log-probabilities of chosen ids at every trie node (docs/methods.md#selected-ids)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from biaskit.models.api.answers import AnswerChoice, Replays, log_probability
from biaskit.models.api.controller import Controller
from biaskit.models.api.many import TROUBLE, Trouble, ask_many, gather_all
from biaskit.models.api.token_ids import TokenIdsOf
from biaskit.models.api.trouble import BadAnswer
from biaskit.models.api.wire import Call, inside
from biaskit.models.token_trie import TokenIds, build_trie
from biaskit.records import Answered

MOST_IDS = 128  # vLLM's limit in one request
Totals = list[tuple[TokenIds, float]]
"""Ids and log-probability of each continuation."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A prompt's ids and those of its continuations."""

    before: TokenIds
    sequences: tuple[TokenIds, ...]

    def nodes(self) -> dict[TokenIds, tuple[int, ...]]:
        """Node of the trie, as its tokens after the prompt → the ids that are asked for there.

        Those of every node at each of them, as far as a request takes so many: then all nodes of all cells
        share calls, and no node has a single value that nothing could contradict.
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
class Node:
    """One question: which ids, after which."""

    cell: int
    node: TokenIds
    ids: TokenIds  # the prompt's and the node's
    asked: tuple[int, ...]


class SelectedIds:
    """Exact log-probabilities of chosen ids, many prompts a call."""

    def __init__(
        self,
        controller: Controller,
        model: str,
        tokens: TokenIdsOf,
        *,
        replays: Replays | None = None,
        prompts: int = 1,
        patience: Callable[[int], float] = lambda _: 0.0,
        seconds: float | None = None,
    ) -> None:
        """`prompts`: most of one call; `patience`: seconds that so many may need.

        `seconds`: for each request, where another time than the usual one is meant.
        """
        self._patience = patience
        self._controller = controller
        self._model = model
        self._tokens = tokens
        self._replays = replays or Replays(unique_ids=False)
        self._prompts = prompts
        self._seconds = seconds

    async def cells(self, texts: Sequence[tuple[str, Sequence[str]]]) -> list[Cell | Trouble]:
        """Ids of prompts and their continuations.

        The tokens of prompt and continuation must begin with the prompt's own
        (docs/methods.md#word-boundary).
        """
        every = [text for prompt, after in texts for text in (prompt, *(prompt + one for one in after))]
        told = iter(await self._tokens.of(self._controller, every))
        return [_cell(next(told), after, [next(told) for _ in after]) for _, after in texts]

    async def score(
        self, texts: Sequence[tuple[str, Sequence[str]]]
    ) -> list[tuple[Totals, list[Answered]] | Trouble]:
        """Of each prompt: every continuation's ids and log-probability, and who answered; or why not."""
        cells = await self.cells(texts)
        together: dict[tuple[int, ...], list[Node]] = {}
        for place, cell in enumerate(cells):
            if not isinstance(cell, Cell):
                continue
            for node, asked in cell.nodes().items():
                for start in range(0, len(asked), MOST_IDS):
                    piece = asked[start : start + MOST_IDS]
                    together.setdefault(piece, []).append(Node(place, node, cell.before + node, piece))
        calls = [
            nodes[start : start + self._prompts]
            for nodes in together.values()
            for start in range(0, len(nodes), self._prompts)
        ]
        answers = await gather_all(map(self.ask, calls))
        of_cell: dict[int, dict[TokenIds, dict[int, float]]] = {}
        who: dict[int, list[Answered]] = {}
        failed: dict[int, Trouble] = {}
        for nodes, found in zip(calls, answers, strict=True):
            for one, answer in zip(nodes, found, strict=True):
                if isinstance(answer, tuple):
                    of_cell.setdefault(one.cell, {}).setdefault(one.node, {}).update(answer[0])
                    who.setdefault(one.cell, []).append(answer[1])
                else:
                    failed.setdefault(one.cell, answer)
        return [
            failed[place]
            if place in failed
            else (_totals(cell, of_cell[place]), who[place])
            if isinstance(cell, Cell)
            else cell
            for place, cell in enumerate(cells)
        ]

    async def ask(self, nodes: Sequence[Node]) -> list[tuple[dict[int, float], Answered] | Trouble]:
        """Log-probabilities at nodes that ask for the same ids, in one call."""
        return await ask_many(
            self._controller,
            nodes,
            self._call,
            _read,
            replays=self._replays,
            size=lambda _, node: len(node.ids),
            patience=self._patience(len(nodes)) if len(nodes) > 1 else 0.0,
            seconds=self._seconds,
        )

    def _call(self, nodes: Sequence[Node]) -> Call:
        ids = [list(node.ids) for node in nodes]
        body = {
            "model": self._model,
            "prompt": ids if len(ids) > 1 else ids[0],
            "max_tokens": 1,
            "temperature": 1.0,
            "logprobs": 1,
            "logprob_token_ids": list(nodes[0].asked),
            "return_tokens_as_token_ids": True,
            "return_token_ids": True,
        }
        most = sum(len(one) + 8 for one in ids)
        return Call("completions", body, most, len(ids), kind="selects")


def _cell(
    before: TokenIds | Trouble, after: Sequence[str], both: Sequence[TokenIds | Trouble]
) -> Cell | Trouble:
    sequences = []
    for text, ids in zip(after, both, strict=True):
        for told in (before, ids):
            if isinstance(told, TROUBLE):
                return told
        assert isinstance(before, tuple)
        assert isinstance(ids, tuple)
        if ids[: len(before)] != before or len(ids) == len(before):
            return BadAnswer(f"a token spans the end of the prompt before {text!r}")
        sequences.append(ids[len(before) :])
    return before if isinstance(before, TROUBLE) else Cell(before, tuple(sequences))


def _totals(cell: Cell, at: Mapping[TokenIds, Mapping[int, float]]) -> Totals:
    return [(s, math.fsum(at[s[:k]][s[k]] for k in range(len(s)))) for s in cell.sequences]


def check_prompt(choice: AnswerChoice, ids: TokenIds, several: bool) -> None:
    """Whether a choice answers this prompt: where a call has several it must say so.

    An answer to another prompt has nothing else by which it could be told.
    """
    told = choice.data.get("prompt_token_ids")
    if several and not isinstance(told, list):
        raise BadAnswer("the answer does not say which prompt it is of")
    if told is not None and told != list(ids):
        raise BadAnswer("the answer is of another prompt")


def _read(choice: AnswerChoice, node: Node, several: bool) -> dict[int, float]:
    check_prompt(choice, node.ids, several)
    first = inside(choice.data, "logprobs", "top_logprobs", 0)
    if not isinstance(first, Mapping):
        raise BadAnswer("no log-probabilities")
    found = {}
    for token in node.asked:
        # Shown as ids, since two tokens of one text would be one entry.
        value = first.get(f"token_id:{token}")
        if value is None:
            raise BadAnswer("the chosen token ids do not come back")
        found[token] = log_probability(value)
    if len(first) > len(node.asked) + 1:  # the sampled token comes on top
        raise BadAnswer("token ids come back that were not asked for")
    total = math.fsum(math.exp(log_probability(value)) for value in first.values())
    if total > 1 + 1e-3:
        raise BadAnswer("token ids that are more probable together than everything")
    return found
