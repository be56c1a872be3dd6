"""One forward through a model's body, with or without a cache, whatever transformers calls the cache."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch


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
