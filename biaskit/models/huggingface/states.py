"""The hidden states where a next token is asked for: tries in one forward, by levels, or whole texts.

A trie goes through in one forward as a tree of tokens, for prompts of any length: a row holds the rest of a
prompt, then every inner node's last token, then padding. A mask lets each token see what comes before it in
its own text and nothing else, and positions count within that text, so that siblings stand beside each other.
The keys of such a forward are thrown away: neither siblings nor padding ever take a slot of a cache that goes
on, which is where padding goes wrong.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

import torch
from transformers import DynamicCache

from biaskit.models.huggingface.local_model import LocalModel
from biaskit.models.huggingface.prefixes import PrefixBlock, PromptRow
from biaskit.models.token_trie import TokenIds, TokenTrie

_TOO_LARGE = object()  # stands for a prefix cache that the device has no room for
TYPES = ("full_attention", "sliding_attention")


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


def last_hidden_states(decoder: Any, ids: torch.Tensor, cache: Any = None, **told: Any) -> torch.Tensor:
    """(rows, tokens, hidden): states of `ids` behind `cache`, which grows in place; None keeps nothing."""
    if cache is not None:
        told[_cache_name(type(decoder).forward)] = cache
    out: torch.Tensor = decoder(input_ids=ids, use_cache=cache is not None, **told).last_hidden_state
    return out


@lru_cache(maxsize=8)
def _cache_name(forward: Callable[..., Any]) -> str:
    """`cache` since transformers 5.24, `past_key_values` before and in models with code of their own.

    Read from the architecture, not from a version: a name that a forward does not know may vanish among
    its other keywords without a word, and the tokens would be read as if nothing stood before them.
    """
    return "cache" if "cache" in inspect.signature(forward).parameters else "past_key_values"


@dataclass(frozen=True, slots=True)
class Windows:
    """How far the layers of a model look back: None where a layer sees everything."""

    by_type: dict[str, int | None]

    @classmethod
    def of(cls, config: Any) -> Windows | None:
        """Read from the layers of the model's own cache; None where the types are not those of `TYPES`."""
        seen: dict[str, set[int | None]] = {}
        for layer in DynamicCache(config=config).layers:
            sliding = bool(layer.is_sliding)
            seen.setdefault(TYPES[sliding], set()).add(layer.sliding_window if sliding else None)
        if any(len(windows) > 1 for windows in seen.values()):
            return None
        return cls({name: next(iter(windows)) for name, windows in seen.items()})

    def masks(self, trie: TokenTrie, lengths: Sequence[int], before: int, dtype: torch.dtype) -> Any:
        """(rows or 1, 1, tokens, keys) of 0 and the lowest number; by type where layers differ.

        lengths: of each row's rest; before: tokens of the shared prefix in front of all rows.
        """
        distinct = sorted(set(lengths))  # one mask for all rows of a length
        rows = [distinct.index(n) for n in lengths] if len(distinct) > 1 else [0]
        by_type = {}
        for name, window in self.by_type.items():
            masks = [_mask(trie, n, max(lengths), before, window, dtype) for n in distinct]
            by_type[name] = torch.stack(masks)[rows][:, None]
        return by_type if len(by_type) > 1 else next(iter(by_type.values()))


def _mask(
    trie: TokenTrie, length: int, longest: int, before: int, window: int | None, dtype: torch.dtype
) -> torch.Tensor:
    """(tokens, keys) of one length of rest; a window's keys begin where the cache of its layers does."""
    tokens = longest + len(trie.nodes) - 1
    keys = before + tokens
    sees = torch.ones(tokens, keys, dtype=torch.bool).tril(before)
    sees[length:, before + length :] = False
    for node, parent in enumerate(trie.parents):
        place = length - 1 + node  # node 0 is the prompt's last token
        if parent > 0:
            sees[place, before + length :] = sees[length - 1 + parent, before + length :]
        sees[place, before + place] = True
    sees.diagonal(before).fill_(True)  # padding sees the prompt and itself: no row of a softmax is empty
    if window is not None:
        places = torch.tensor(positions(trie, length, longest))
        behind = (before + places)[:, None] - torch.cat([torch.arange(before), before + places])[None]
        sees &= behind < window
        sees = sees[:, max(0, before - (window - 1)) :]
    mask = torch.zeros(sees.shape, dtype=dtype)
    return mask.masked_fill_(~sees, torch.finfo(dtype).min)


def positions(trie: TokenTrie, length: int, longest: int) -> list[int]:
    """Each token's place in its own text, counted from the rest's first token."""
    nodes = [length - 1 + len(node) for node in trie.nodes[1:]]
    return [*range(length), *nodes, *[length] * (longest - length)]


def tree_states(
    decoder: Any,
    windows: Windows,
    rests: Sequence[TokenIds],
    trie: TokenTrie,
    cache: Any,
    like: torch.Tensor,
) -> torch.Tensor:
    """(nodes, rows, hidden): the last hidden state at every inner node of every row, in one forward.

    cache: the rows' shared beginnings, equally long, or None; like: a weight with the model's type and
    device. Rows of any length, padded behind their nodes.
    """
    lengths, longest = [len(rest) for rest in rests], max(map(len, rests))
    tails = [node[-1] for node in trie.nodes[1:]]
    ids = torch.tensor([[*rest, *tails, *rest[-1:] * (longest - len(rest))] for rest in rests])
    told: dict[str, Any] = {}
    if tails:  # else causal attention alone keeps padding, which stands behind, from being seen
        before = 0 if cache is None else cache.get_seq_length()
        masks = windows.masks(trie, lengths, before, like.dtype)
        told["attention_mask"] = (
            {name: mask.to(like.device) for name, mask in masks.items()}
            if isinstance(masks, dict)
            else masks.to(like.device)
        )
        places = [[before + p for p in positions(trie, n, longest)] for n in lengths]
        told["position_ids"] = torch.tensor(places, device=like.device)
    out = last_hidden_states(decoder, ids.to(like.device), cache, **told)
    columns = torch.tensor([[n - 1 + node for n in lengths] for node in range(len(trie.nodes))])
    states: torch.Tensor = out[torch.arange(len(rests)), columns.to(out.device)]
    return states
