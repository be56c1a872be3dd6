"""What `bk.model` gives, and how a call from Python takes loaded models beside specs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, ParamSpec, TypeVar

from biaskit.corpora.sources import check_label
from biaskit.errors import UsageError
from biaskit.models.loaded import LENT, OBJECT, LoadedModel

P = ParamSpec("P")
R = TypeVar("R")


def model(label: str, model: Any, tokenizer: Any) -> LoadedModel:
    """Name a causal model of transformers that is in memory, for `bk.probe`, `bk.personas` and `bk.verify`.

    Args:
        label: its name in tables, without `=` and `:`.
        model: the loaded model, also with peft adapters, also in training; nothing of it is changed.
        tokenizer: its tokenizer, whose chat template says how it is asked.

    Returns what those functions take in place of a spec. Raises `UsageError`.
    """
    if not isinstance(label, str) or {"=", ":", "/"} & {*label}:
        raise UsageError(f"label is {label!r}: give a text without = and : and /.")
    check_label(label, "The model label")
    if not (_is_model(model) and callable(tokenizer) and hasattr(tokenizer, "save_pretrained")):
        raise UsageError(
            f"{label} is a {type(model).__name__} with a {type(tokenizer).__name__}: give a causal model of"
            " transformers and its tokenizer (of a parallel model, model.module)."
        )
    return LoadedModel(label, model, tokenizer)


def _is_model(value: Any) -> bool:
    return callable(getattr(value, "get_output_embeddings", None)) and not isinstance(value, type)


def lending(parameter: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function of specs take loaded models too: lent for the call, under the spec `object:LABEL`.

    `parameter`: the one that holds specs. A model without a label is called by its class, and its tokenizer
    is the function's argument `tokenizer`.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            bound = signature.bind(*args, **kwargs)
            given, tokenizer = bound.arguments.get(parameter, ()), bound.arguments.pop("tokenizer", None)
            many = isinstance(given, list | tuple)
            lent: dict[str, LoadedModel] = {}
            specs, unnamed = [], 0
            for value in given if many else [given]:
                if _is_model(value):
                    unnamed += 1
                    if tokenizer is None:
                        raise UsageError("A loaded model needs its tokenizer: give tokenizer=TOKENIZER.")
                    value = model(type(value).__name__, value, tokenizer)
                if isinstance(value, LoadedModel):
                    if value.label in lent:
                        raise UsageError(
                            f"Two models are called {value.label!r}: name them, as in"
                            " bk.model('other', model, tokenizer)."
                        )
                    lent[value.label] = LoadedModel(value.label, value.model, value.tokenizer)
                    value = f"{value.label}={OBJECT}:{value.label}"
                specs.append(value)
            if tokenizer is not None and not unnamed:
                raise UsageError("tokenizer is that of a loaded model, and no such model is given.")
            if not lent:
                return function(*args, **kwargs)
            from biaskit.models.huggingface.objects import in_evaluation

            bound.arguments[parameter] = tuple(specs) if many else specs[0]
            token = LENT.set(lent)
            try:
                with ExitStack() as stack:
                    for loaded in lent.values():
                        stack.enter_context(in_evaluation(loaded.model))
                    return function(*bound.args, **bound.kwargs)
            finally:
                LENT.reset(token)

        return call

    return decorate
