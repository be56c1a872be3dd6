"""Hidden states at the nodes of tries: in one forward, level by level, or by forwards of whole texts.

A trie goes through in one forward as a tree of tokens, for prompts of any length: a row holds the rest of a
prompt, then every inner node's last token, then padding. A mask lets each token see only the tokens before it
in its own text, and positions count within that text, so that siblings have the same position. The keys of
such a forward are discarded: siblings and padding never take a slot of a cache that is used again, where
padding would give wrong numbers.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any

import torch
from transformers import DynamicCache

from biaskit.models.huggingface.local_model import LocalModel
from biaskit.models.huggingface.prefixes import COST_OF_A_FORWARD, PrefixBlock, PromptRow, cut_forwards
from biaskit.models.token_trie import TokenIds, TokenTrie

_TOO_LARGE = object()  # in place of a prefix cache that does not fit on the device
TYPES = ("full_attention", "sliding_attention")
Windows = dict[str, int | None]  # type of layer → how far it looks back; None: all the way


class NodeStates(LocalModel):
    """A local model that computes the last hidden state at every inner node of its prompts' tries."""

    _decoder: Any = None  # the model without its head
    _extends = True  # whether a prefix's cache may be extended
    _windows: Windows | None = None  # of its layers, if a trie goes through in one forward

    def _prefix_cache(self, block: PrefixBlock) -> Any:
        """Compute a block's keys and values; None: nothing is shared; `_TOO_LARGE`: no room for them."""
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
        self, rows: Sequence[PromptRow], prompts: Sequence[TokenIds], tries: Sequence[TokenTrie], shared: Any
    ) -> torch.Tensor:
        """Return the last hidden states (nodes x rows, hidden) at every inner node, node by node.

        `tries`: of the rows. Where they differ, a node is followed by the next one of the rows that have it.
        """
        each: list[torch.Tensor] = []  # of each row: (nodes, hidden)
        if self._extends and self._windows is not None and shared is not _TOO_LARGE:
            widths = [len(row.rest) + len(trie.nodes) - 1 for row, trie in zip(rows, tries, strict=True)]
            cost = COST_OF_A_FORWARD["cpu" if self.placement.device.split(":")[0] == "cpu" else "gpu"]
            for part in cut_forwards(widths, cost):
                each += self._tree(rows[part], tries[part], shared, self._windows)
            return torch.stack([each[i][node] for node, i in nodes_of(tries)])
        # A row that has a trie of its own would take a forward for each of its levels.
        by_cache = self._extends and shared is not _TOO_LARGE and all(trie is tries[0] for trie in tries)
        of_rows = zip(rows, prompts, tries, strict=True)
        for _, alike in groupby(of_rows, key=lambda of_row: (len(of_row[1]), id(of_row[2]))):
            some, texts, alike_tries = zip(*alike, strict=True)
            if by_cache:
                states = self._by_levels(some, alike_tries[0], shared)
            else:
                states = self._by_texts(texts, alike_tries[0])
            each += states.unbind(1)
        return torch.stack([each[i][node] for node, i in nodes_of(tries)])

    def _tree(
        self, rows: Sequence[PromptRow], tries: Sequence[TokenTrie], shared: Any, windows: Windows
    ) -> list[torch.Tensor]:
        """Return each row's states (nodes, hidden) in one forward, whatever the rows' lengths.

        `shared`: the cache of the rows' prefixes, or None. A rest is padded after its nodes.
        """
        cache = None if shared is None else _rows_of(shared, rows)
        like = self._model.get_input_embeddings().weight  # of the model's type and device
        lengths = [len(row.rest) for row in rows]
        texts = []
        for row, trie in zip(rows, tries, strict=True):
            nodes = [node[-1] for node in trie.nodes[1:]]
            texts.append([*row.rest, *nodes])
        width = max(map(len, texts))
        for text in texts:
            text += text[-1:] * (width - len(text))
        options: dict[str, Any] = {}
        # Without a second node causal attention alone hides the padding, which comes last.
        if any(len(trie.nodes) > 1 for trie in tries):
            before = 0 if cache is None else cache.get_seq_length()
            options["attention_mask"] = _masks(tries, lengths, width, before, windows, like)
            places = [positions(trie, n, width) for trie, n in zip(tries, lengths, strict=True)]
            options["position_ids"] = torch.tensor(places, device=like.device) + before
        out = last_hidden_states(self._decoder, torch.tensor(texts).to(like.device), cache, **options)
        # Copies: a view would keep the states of all tokens.
        return [row[n - 1 :][: len(t.nodes)].clone() for row, n, t in zip(out, lengths, tries, strict=True)]

    def _by_texts(self, prompts: Sequence[TokenIds], trie: TokenTrie) -> torch.Tensor:
        """Return the states (nodes, rows, hidden) of equally long prompts by forwards of whole texts."""
        states: dict[TokenIds, torch.Tensor] = {}
        for node in reversed(trie.nodes):  # the longest first: a text passes its beginnings
            if node not in states:
                ids = torch.tensor([prompt + node for prompt in prompts], device=self._model.device)
                out = last_hidden_states(self._decoder, ids)[:, len(prompts[0]) - 1 :]
                states |= {node[:k]: state for k, state in enumerate(out.unbind(1))}
        return torch.stack([states[node] for node in trie.nodes])

    def _by_levels(self, rows: Sequence[PromptRow], trie: TokenTrie, shared: Any) -> torch.Tensor:
        """Return the states (nodes, rows, hidden) of equally long rows; each level extends one cache."""
        cache = DynamicCache(config=self._model.config) if shared is None else _rows_of(shared, rows)
        needs_cache = shared is not None or trie.levels
        states = [self._body([row.rest for row in rows], cache if needs_cache else None)]
        previous = [0]
        for level in trie.levels:
            place_of = {node: k for k, node in enumerate(previous)}
            gather: list[int] = []
            for node in level:
                first = place_of[trie.parents[node]] * len(rows)
                gather += range(first, first + len(rows))
            if gather != list(range(len(rows) * len(previous))):  # else every row keeps its place
                cache.batch_select_indices(torch.tensor(gather))
            states.append(self._body([trie.nodes[node][-1:] for node in level for _ in rows], cache))
            previous = list(level)
        return torch.cat(states).view(len(trie.nodes), len(rows), -1)

    def _body(self, tokens: Sequence[TokenIds], cache: Any = None) -> torch.Tensor:
        """Return the last hidden states (rows, hidden) of equally long rows, extending `cache` in place."""
        ids = torch.tensor(tokens, device=self._model.device)
        return last_hidden_states(self._decoder, ids, cache)[:, -1]


def nodes_of(tries: Sequence[TokenTrie]) -> list[tuple[int, int]]:
    """List (node, row) of every node of every row's trie, node by node."""
    places = []
    for node in range(max(len(trie.nodes) for trie in tries)):
        places += [(node, i) for i, trie in enumerate(tries) if node < len(trie.nodes)]
    return places


def _rows_of(shared: Any, rows: Sequence[PromptRow]) -> Any:
    """Copy a cache so that each row has its own prefix; `shared` keeps its tensors."""
    cache = copy.copy(shared)
    cache.layers = [copy.copy(layer) for layer in shared.layers]
    # Indices on the CPU: with --device map the layers of one cache lie on several devices.
    cache.batch_select_indices(torch.tensor([row.prefix for row in rows]))
    return cache


def last_hidden_states(decoder: Any, ids: torch.Tensor, cache: Any = None, **options: Any) -> torch.Tensor:
    """Return the states (rows, tokens, hidden) of `ids` after `cache`, which grows in place unless None."""
    if cache is not None:
        options[_cache_name(type(decoder).forward)] = cache
    out: torch.Tensor = decoder(input_ids=ids, use_cache=cache is not None, **options).last_hidden_state
    return out


@lru_cache(maxsize=8)
def _cache_name(forward: Callable[..., Any]) -> str:
    """Return `cache` since transformers 5.24, `past_key_values` before and for models with their own code."""
    # Not by version: a forward may silently ignore a keyword that it does not know, and would then read the
    # tokens as if nothing came before them.
    return "cache" if "cache" in inspect.signature(forward).parameters else "past_key_values"


def windows_of(config: Any) -> Windows | None:
    """Read the windows from the layers of the model's own cache; None if layers of one type differ."""
    windows: Windows = {}
    for layer in DynamicCache(config=config).layers:
        window = layer.sliding_window if layer.is_sliding else None
        if windows.setdefault(TYPES[bool(layer.is_sliding)], window) != window:
            return None
    return windows


def _masks(
    tries: Sequence[TokenTrie],
    lengths: Sequence[int],
    tokens: int,
    before: int,
    windows: Windows,
    like: torch.Tensor,
) -> Any:
    """Return masks of 0 and the lowest number, (rows or 1, 1, tokens, keys): one for each type of layer."""
    shapes = [(trie.parents, n) for trie, n in zip(tries, lengths, strict=True)]
    distinct = dict(zip(shapes, tries, strict=True))
    number = {shape: k for k, shape in enumerate(distinct)}
    # One mask for all rows of a shape, and one row if all are equal.
    rows = [number[shape] for shape in shapes] if len(distinct) > 1 else [0]
    masks = {}
    for name, window in windows.items():
        of_shapes = [_mask(trie, n, tokens, before, window, like.dtype) for (_, n), trie in distinct.items()]
        masks[name] = torch.stack(of_shapes)[rows][:, None].to(like.device)
    return masks if len(masks) > 1 else next(iter(masks.values()))


def _mask(
    trie: TokenTrie, length: int, tokens: int, before: int, window: int | None, dtype: torch.dtype
) -> torch.Tensor:
    """Return the mask (tokens, keys) for one length of rest; `before`: how many tokens all rows share."""
    sees = torch.ones(tokens, before + tokens, dtype=torch.bool).tril(before)
    sees[length:, before + length :] = False
    for node, parent in enumerate(trie.parents):
        place = length - 1 + node  # node 0 is the prompt's last token
        if parent > 0:
            sees[place, before + length :] = sees[length - 1 + parent, before + length :]
        sees[place, before + place] = True
    sees.diagonal(before).fill_(True)  # padding sees the prompt and itself: no row of a softmax is empty
    if window is not None:
        places = torch.tensor(positions(trie, length, tokens))
        behind = (before + places)[:, None] - torch.cat([torch.arange(before), before + places])[None]
        sees &= behind < window
        sees = sees[:, max(0, before - (window - 1)) :]
    mask = torch.zeros(sees.shape, dtype=dtype)
    return mask.masked_fill_(~sees, torch.finfo(dtype).min)


def positions(trie: TokenTrie, length: int, tokens: int) -> list[int]:
    """Return each token's place in its own text, counted from the rest's first token."""
    places = [*range(length), *(length - 1 + len(node) for node in trie.nodes[1:])]
    return [*places, *[length] * (tokens - len(places))]
