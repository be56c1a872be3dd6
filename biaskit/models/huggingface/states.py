"""The hidden states where a next token is asked for: tries in one forward, by levels, or whole texts."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import torch
from transformers import DynamicCache

from biaskit.models.huggingface.forward import last_hidden_states
from biaskit.models.huggingface.local_model import LocalModel
from biaskit.models.huggingface.prefixes import PrefixBlock, PromptRow
from biaskit.models.huggingface.tree import Windows, tree_states
from biaskit.models.token_trie import TokenIds, TokenTrie

_TOO_LARGE = object()  # stands for a prefix cache that the device has no room for


class NodeStates(LocalModel):
    """A local model that gives the last hidden state at every inner node of its prompts' tries."""

    _decoder: Any = None  # the model without its head
    _extends = True  # whether a prefix's cache may be extended
    _windows: Windows | None = None  # what its layers see, where a trie goes through in one forward

    def _prefix_cache(self, block: PrefixBlock) -> Any:
        """The keys and values of a block's prefixes, one row each; None where nothing is shared.

        Prefixes that the device has no room for are not shared: their prompts go through whole.
        """
        if not block.prefixes or not self._extends:
            return None
        try:
            with torch.inference_mode():
                cache = DynamicCache(config=self._model.config)
                self._body(block.prefixes, cache)
        except torch.OutOfMemoryError:
            return _TOO_LARGE
        return cache

    def _hidden_states(
        self, rows: Sequence[PromptRow], prompts: Sequence[TokenIds], trie: TokenTrie, shared: Any
    ) -> torch.Tensor:
        """(nodes x rows, hidden): the last hidden state at every inner node, node by node."""
        if self._extends and self._windows is not None and shared is not _TOO_LARGE:
            return self._tree(rows, trie, shared, self._windows).flatten(0, 1)
        parts = []
        for _, some in groupby(zip(rows, prompts, strict=True), key=lambda pair: len(pair[1])):
            alike, texts = zip(*some, strict=True)
            if not self._extends or shared is _TOO_LARGE:
                # Whole forwards, for architectures whose cache holds more than keys and values.
                states = torch.cat([self._body([ids + node for ids in texts]) for node in trie.nodes])
            else:
                states = self._by_levels(alike, trie, shared)
            parts.append(states.view(len(trie.nodes), len(alike), -1))
        return torch.cat(parts, dim=1).flatten(0, 1)

    def _tree(
        self, rows: Sequence[PromptRow], trie: TokenTrie, shared: Any, windows: Windows
    ) -> torch.Tensor:
        """(nodes, rows, hidden) in one forward, whatever the rows' lengths."""
        cache = None if shared is None else _rows_of(shared, rows)
        like = self._model.get_input_embeddings().weight
        return tree_states(self._decoder, windows, [row.rest for row in rows], trie, cache, like)

    def _by_levels(self, rows: Sequence[PromptRow], trie: TokenTrie, shared: Any) -> torch.Tensor:
        """(nodes x rows, hidden) of equally long rows: each level of the trie extends its parents' cache."""
        cache = DynamicCache(config=self._model.config) if shared is None else _rows_of(shared, rows)
        keep = shared is not None or trie.levels
        states = [self._body([row.rest for row in rows], cache if keep else None)]
        previous = [0]
        for level in trie.levels:
            place_of = {node: k for k, node in enumerate(previous)}
            gather = [
                place_of[trie.parents[node]] * len(rows) + i for node in level for i in range(len(rows))
            ]
            if gather != list(range(len(rows) * len(previous))):  # else every row goes on as it is
                cache.batch_select_indices(torch.tensor(gather))
            states.append(self._body([trie.nodes[node][-1:] for node in level for _ in rows], cache))
            previous = list(level)
        return torch.cat(states)

    def _body(self, tokens: Sequence[TokenIds], cache: Any = None) -> torch.Tensor:
        """(rows, hidden): last hidden states of equally long rows, extending `cache` in place."""
        ids = torch.tensor(tokens, device=self._model.device)
        return last_hidden_states(self._decoder, ids, cache)[:, -1]


def _rows_of(shared: Any, rows: Sequence[PromptRow]) -> Any:
    """A cache with each row's own prefix; `shared` stays: a cache's tensors are replaced whole.

    Row indices stay on the CPU: with --device map the layers of one cache lie on several devices.
    """
    cache = copy.copy(shared)
    cache.layers = [copy.copy(layer) for layer in shared.layers]
    cache.batch_select_indices(torch.tensor([row.prefix for row in rows]))
    return cache
