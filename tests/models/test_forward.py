"""A cache reaches a model under the name that its forward has, and never vanishes among other keywords."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from biaskit.models.huggingface.states import last_hidden_states

IDS = torch.tensor([[1, 2, 3]])


def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    """As transformers wraps its forwards: the names of the parameters stand behind the wrapper."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


class Decoder(torch.nn.Module):
    def told(self, cache: object, use_cache: bool | None, others: dict[str, Any]) -> SimpleNamespace:
        self.seen, self.keeps, self.others = cache, use_cache, others
        return SimpleNamespace(last_hidden_state=torch.zeros(1, 3, 2))


class Renamed(Decoder):
    @decorated
    def forward(
        self, input_ids: torch.Tensor, cache: object = None, use_cache: bool | None = None, **others: Any
    ) -> SimpleNamespace:
        return self.told(cache, use_cache, others)


class Former(Decoder):
    @decorated
    def forward(
        self,
        input_ids: torch.Tensor,
        past_key_values: object = None,
        use_cache: bool | None = None,
        **others: Any,
    ) -> SimpleNamespace:
        return self.told(past_key_values, use_cache, others)


@pytest.mark.parametrize("kind", [Renamed, Former])
def test_a_cache_is_handed_over_by_the_name_that_the_forward_has(kind: type[Decoder]) -> None:
    decoder, cache = kind(), object()
    assert last_hidden_states(decoder, IDS, cache, position_ids=IDS).shape == (1, 3, 2)
    assert (decoder.seen, decoder.keeps) == (cache, True)
    assert list(decoder.others) == ["position_ids"]  # else the cache would be read by nobody


@pytest.mark.parametrize("kind", [Renamed, Former])
def test_without_a_cache_none_is_kept(kind: type[Decoder]) -> None:
    decoder = kind()
    last_hidden_states(decoder, IDS)
    assert (decoder.seen, decoder.keeps, decoder.others) == (None, False, {})
