"""Models that a caller holds in memory: lent to one call, where the spec `object:LABEL` finds them."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from biaskit.errors import ModelError

OBJECT = "object"
"""The kind of spec that names a model in memory."""


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class LoadedModel:
    """A causal model of transformers, its tokenizer, and the label of its rows."""

    label: str
    model: Any = field(repr=False)
    tokenizer: Any = field(repr=False)


LENT: ContextVar[Mapping[str, LoadedModel]] = ContextVar("lent", default=MappingProxyType({}))
"""Label → model, of the call that goes on."""


def is_object(spec: str) -> bool:
    """Return whether a spec names a model in memory."""
    return spec.startswith(f"{OBJECT}:")


def find_lent(label: str) -> LoadedModel:
    """Return the model of this label that the call was given. Raises `ModelError`."""
    if label not in LENT.get():
        raise ModelError(
            f"{label} was a model in the memory of the program that measured it, and no spec opens it again:"
            f" save it and give hf:PATH, or in Python the object, as bk.model({label!r}, model, tokenizer)."
        )
    return LENT.get()[label]
