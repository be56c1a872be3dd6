"""One forward for prompts of any length with all inner nodes of their trie behind them: a tree of tokens.

A row holds the rest of a prompt, then every inner node's last token, then padding. A mask lets each
token see what comes before it in its own text and nothing else, and positions count within that text,
so that siblings stand beside each other. The keys of such a forward are thrown away: neither siblings
nor padding ever take a slot of a cache that goes on, which is where padding goes wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import DynamicCache

from biaskit.models.huggingface.forward import last_hidden_states
from biaskit.models.token_trie import TokenIds, TokenTrie

TYPES = ("full_attention", "sliding_attention")


@dataclass(frozen=True, slots=True)
class Windows:
    """How far the layers of a model look back: None where a layer sees everything."""

    by_type: dict[str, int | None]

    @classmethod
    def of(cls, config: Any) -> Windows | None:
        """Read from the layers of the model's own cache; None where the types are not those of `TYPES`."""
        found: dict[str, set[int | None]] = {}
        for layer in DynamicCache(config=config).layers:
            sliding = bool(layer.is_sliding)
            found.setdefault(TYPES[sliding], set()).add(layer.sliding_window if sliding else None)
        if any(len(windows) > 1 for windows in found.values()):
            return None
        return cls({name: next(iter(windows)) for name, windows in found.items()})

    def masks(self, trie: TokenTrie, lengths: Sequence[int], before: int, dtype: torch.dtype) -> Any:
        """(rows or 1, 1, tokens, keys) of 0 and the lowest number; by type where layers differ.

        lengths: of each row's rest; before: tokens of the shared prefix in front of all rows.
        """
        some = [
            torch.stack([_mask(trie, n, max(lengths), before, window, dtype) for n in _few(lengths)])
            for window in self.by_type.values()
        ]
        if len(set(lengths)) > 1:
            number = {n: k for k, n in enumerate(_few(lengths))}
            some = [mask[[number[n] for n in lengths]] for mask in some]
        by_type = {name: mask[:, None] for name, mask in zip(self.by_type, some, strict=True)}
        return by_type if len(by_type) > 1 else next(iter(by_type.values()))


def _few(lengths: Sequence[int]) -> list[int]:
    return sorted(set(lengths))


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
        own = torch.tensor(positions(trie, length, longest))
        behind = (before + own)[:, None] - torch.cat([torch.arange(before), before + own])[None]
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
        told["attention_mask"] = _moved(windows.masks(trie, lengths, before, like.dtype), like.device)
        places = [[before + p for p in positions(trie, n, longest)] for n in lengths]
        told["position_ids"] = torch.tensor(places, device=like.device)
    out = last_hidden_states(decoder, ids.to(like.device), cache, **told)
    columns = torch.tensor([[n - 1 + node for n in lengths] for node in range(len(trie.nodes))])
    states: torch.Tensor = out[torch.arange(len(rests)), columns.to(out.device)]
    return states


def _moved(masks: Any, device: torch.device) -> Any:
    if isinstance(masks, dict):
        return {name: mask.to(device) for name, mask in masks.items()}
    return masks.to(device)
