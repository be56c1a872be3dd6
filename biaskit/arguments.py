"""What a call from Python hands over, checked by the names of parameters before anything is done with it.

Commands check their words themselves; a notebook can give anything. What does not fit is a `UsageError`.
"""

from __future__ import annotations

import functools
import inspect
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sized
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar

from biaskit.errors import UsageError
from biaskit.wording import short

P = ParamSpec("P")
R = TypeVar("R")


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _path(value: Any) -> bool:
    if not isinstance(value, str | os.PathLike):
        return False
    text = os.fspath(value)
    return isinstance(text, str) and "\0" not in text and all(len(name) <= 255 for name in text.split("/"))


def _texts(value: Any) -> bool:
    listed = isinstance(value, Iterable) and isinstance(value, Sized) and not isinstance(value, str | Mapping)
    # A DataFrame would give its columns.
    return listed and getattr(value, "ndim", 1) == 1 and all(isinstance(one, str) for one in value)


def _text_or_texts(value: Any) -> bool:
    return _text(value) or _texts(value)


def _expressions(value: Any) -> bool:
    return all(map(_texts, value.values())) if isinstance(value, Mapping) else _texts(value)


def _whole(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= 0


def _positive(value: Any) -> bool:
    return _whole(value) and value != 0


def _number(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and not math.isnan(value)


def _keys(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)


Fits = Callable[[Any], bool]
_WANTED: Mapping[Fits, str] = {
    _text: "a text",
    _path: "a path",
    _texts: "a list of texts",
    _text_or_texts: "a text or a list of texts",
    _expressions: "a list of texts, or a dict of such lists",
    _whole: "a whole number, 0 or above",
    _positive: "a whole number above 0",
    _number: "a number",
    _keys: 'a dict of keys, such as {"seed": 2}',
}
_BY_NAME: Mapping[str, Fits] = MappingProxyType(
    {
        **dict.fromkeys(("model", "models", "bias_type", "setting", "prompt_form", "system_prompt"), _text),
        **dict.fromkeys(("estimator", "device", "dtype", "endpoint_name", "price", "occupation"), _text),
        **dict.fromkeys(("word_boundary", "method", "tokenizer", "shard"), _text),
        **dict.fromkeys(("study", "out", "aliases", "write_requests"), _path),
        **dict.fromkeys(("jobs", "templates", "instructions", "occupations"), _text_or_texts),
        **dict.fromkeys(("api_key_env", "groups"), _text_or_texts),
        **dict.fromkeys(("draws", "per_gender", "max_draws", "max_new_tokens", "batch_size"), _positive),
        "max_draws_per_cell": _positive,
        "continuations": _whole,
        **dict.fromkeys(("permutations", "seed"), _whole),
        "prompts": _texts,
        "expressions": _expressions,
        **dict.fromkeys(("max_cost", "difference"), _number),
        "settings": _keys,
    }
)


def checked(**own: Fits) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Refuse arguments that do not fit; `own`: kinds of this function's parameters that go before the names'.

    A value that is the parameter's default always fits. Several values (`*models`) are checked one by one.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for name, value in signature.bind(*args, **kwargs).arguments.items():
                parameter = signature.parameters[name]
                fits = own.get(name) or _BY_NAME.get(name)
                if fits is None or value is parameter.default:
                    continue
                for one in value if parameter.kind is parameter.VAR_POSITIONAL else [value]:
                    if not fits(one):
                        raise UsageError(f"{name} is {short(repr(one))}: give {_WANTED[fits]}.")
            return function(*args, **kwargs)

        return call

    return decorate


TEXT, TEXTS, TEXT_OR_TEXTS, PATH = _text, _texts, _text_or_texts, _path
"""Kinds for `checked`, where a name alone does not say it."""
