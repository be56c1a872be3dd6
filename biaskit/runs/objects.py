"""What `bk.model` gives, and how a call from Python takes loaded models beside specs."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar

from biaskit.common.wording import short
from biaskit.corpora.sources import check_label
from biaskit.errors import UsageError
from biaskit.models.options import LENT, LoadedModel
from biaskit.models.writer import Writer

P = ParamSpec("P")
R = TypeVar("R")


def model(label: str, model: Any, tokenizer: Any) -> LoadedModel:
    """Name a causal model of transformers that is in memory, for `bk.verify` and every measurement.

    >>> from tokenizers import Tokenizer, models
    >>> from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
    >>> words = Tokenizer(models.WordLevel({"?": 0, "She": 1, "He": 2}, unk_token="?"))
    >>> gpt2 = GPT2LMHeadModel(GPT2Config(vocab_size=3, n_layer=1, n_head=1, n_embd=8))
    >>> bk.model("mine", gpt2, PreTrainedTokenizerFast(tokenizer_object=words))
    LoadedModel(label='mine')

    Args:
        label: its name in tables, without = and : and /.
        model: may have peft adapters and be in training; nothing of it is changed.
        tokenizer: its tokenizer, whose chat template says how it is queried.

    Returns what takes the place of a spec. Raises `UsageError` for anything else.
    """
    if not isinstance(label, str) or {"=", ":", "/"} & {*label}:
        raise UsageError(f"label is {short(repr(label), 60)}: give a text without = and : and /.")
    check_label(label, "The model label")
    if not (_is_model(model) and callable(tokenizer) and hasattr(tokenizer, "save_pretrained")):
        raise UsageError(
            f"{label} is a {type(model).__name__} with a {type(tokenizer).__name__}: give a causal model of"
            " transformers and its tokenizer (of a parallel model, model.module)."
        )
    return LoadedModel(label, getattr(model, "_orig_mod", model), tokenizer)  # what torch.compile wraps


def _is_model(value: Any) -> bool:
    return callable(getattr(value, "get_output_embeddings", None)) and not isinstance(value, type)


def lending(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function of specs take what a program holds, lent for the call: `object:LABEL`, `writer:LABEL`.

    A loaded model without a label is called by its class; its tokenizer is the argument `tokenizer`.
    """
    signature = inspect.signature(function)
    parameter = "models" if "models" in signature.parameters else "model"

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        tokenizer = kwargs.pop("tokenizer", None)
        bound, held = signature.bind(*args, **kwargs), dict[str, LoadedModel | Writer]()
        given = bound.arguments.get(parameter, ())
        models = list(given) if isinstance(given, list | tuple) else [given]
        if tokenizer is not None and not any(map(_is_model, models)):
            raise UsageError("tokenizer is that of a loaded model, and no such model is given.")
        for i, value in enumerate(models):
            named = model(type(value).__name__, value, tokenizer) if _is_model(value) else value
            if not isinstance(named, LoadedModel | Writer):
                continue
            if named.label in held:
                raise UsageError(f"Two models are called {named.label!r}: give them different names.")
            held[named.label] = replace(named)  # another one for each call: its weights may have changed
            kind = "object" if isinstance(named, LoadedModel) else "writer"
            models[i] = f"{named.label}={kind}:{named.label}"
        if not held:
            return function(*args, **kwargs)
        bound.arguments[parameter] = tuple(models)
        with contextlib.ExitStack() as stack:
            stack.callback(LENT.reset, LENT.set(held))
            if loaded := [lent for lent in held.values() if isinstance(lent, LoadedModel)]:
                from biaskit.models.huggingface.objects import kept

                stack.enter_context(kept(loaded))
            return function(*bound.args, **bound.kwargs)

    return call
