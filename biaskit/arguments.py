"""What a call from Python hands over, checked by the names of parameters before anything is done with it.

Commands check their words themselves; a notebook can give anything. What does not fit is a `UsageError`.
Messages name options as a command takes them; to a caller from Python they name its arguments.
"""

from __future__ import annotations

import functools
import inspect
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sized
from contextvars import ContextVar
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

from biaskit.common.wording import short
from biaskit.errors import BiaskitError, UsageError

P = ParamSpec("P")
R = TypeVar("R")

TEXT, TEXTS, TEXT_OR_TEXTS = "a text", "a list of texts", "a text or a list of texts"
PATH, EXPRESSIONS = "a path", "a list of texts, or a dict of such lists"
WHOLE, POSITIVE, NUMBER = "a whole number, 0 or above", "a whole number above 0", "a number"
KEYS = 'a dict of keys, such as {"seed": 2}'


def fits(value: Any, kind: str) -> bool:
    """Tell whether a value is of a kind, one of the constants above."""
    if kind == PATH:
        text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
        return isinstance(text, str) and "\0" not in text and all(len(name) < 256 for name in text.split("/"))
    if kind == TEXTS:
        listed = isinstance(value, Iterable) and isinstance(value, Sized)
        # A DataFrame would give its columns.
        flat = not isinstance(value, str | Mapping) and getattr(value, "ndim", 1) == 1
        return listed and flat and all(isinstance(text, str) for text in value)
    if kind == TEXT_OR_TEXTS:
        return isinstance(value, str) or fits(value, TEXTS)
    if kind == EXPRESSIONS:
        lists = value.values() if isinstance(value, Mapping) else [value]
        return all(fits(texts, TEXTS) for texts in lists)
    if kind == KEYS:
        return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)
    if kind == NUMBER:
        return not isinstance(value, bool) and isinstance(value, Real) and not math.isnan(value)
    if kind in (WHOLE, POSITIVE):
        least = 1 if kind == POSITIVE else 0
        return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= least
    return isinstance(value, str)


_BY_NAME: Mapping[str, str] = {
    **dict.fromkeys(("model", "models", "bias_type", "setting", "prompt_form", "system_prompt"), TEXT),
    **dict.fromkeys(("estimator", "device", "dtype", "endpoint_name", "price", "occupation"), TEXT),
    **dict.fromkeys(("word_boundary", "method", "tokenizer", "shard"), TEXT),
    **dict.fromkeys(("study", "out", "aliases", "write_requests"), PATH),
    **dict.fromkeys(("jobs", "templates", "instructions", "occupations"), TEXT_OR_TEXTS),
    **dict.fromkeys(("api_key_env", "groups"), TEXT_OR_TEXTS),
    **dict.fromkeys(("draws", "per_gender", "max_draws", "max_new_tokens", "batch_size"), POSITIVE),
    **dict.fromkeys(("permutations", "seed", "continuations"), WHOLE),
    **dict.fromkeys(("max_cost", "difference"), NUMBER),
    "max_draws_per_cell": POSITIVE,
    "prompts": TEXTS,
    "expressions": EXPRESSIONS,
    "settings": KEYS,
}


def checked(**kinds: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Refuse arguments that do not fit; `kinds`: of parameters whose kind is not that of their name.

    A value that is the parameter's default always fits. Several values (`*models`) are checked one by one.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for name, value in signature.bind(*args, **kwargs).arguments.items():
                parameter = signature.parameters[name]
                kind = kinds.get(name) or _BY_NAME.get(name)
                if kind is None or value is parameter.default:
                    continue
                for argument in value if parameter.kind is parameter.VAR_POSITIONAL else [value]:
                    if not fits(argument, kind):
                        raise UsageError(f"{name} is {short(repr(argument))}: give {kind}.")
            try:
                return function(*args, **kwargs)
            except BiaskitError as error:
                error.args = (as_called(str(error)),)
                raise

        return call

    return decorate


BY_COMMAND = ContextVar("by_command", default=False)
"""Whether a command asks, so that options stay as they are in messages."""

_SETTING = r"--set (?:'[^'=]+=[^']*'|[\w.-]+=[^\s',;]*[^\s',;.])"
_OPTION = re.compile(
    rf"`[^`]*`|biaskit [a-z]+ (?:\.\.\.|[^.;])*|(?P<settings>{_SETTING}(?: or {_SETTING})*)"
    r"|(?<!\w)--(?P<no>no-)?(?P<name>[a-z][a-z-]*)(?: (?P<value>[A-Z][A-Z,=/@_]*(?![\w-])|'[^']*'"
    r"|[a-z]*\d[\d,.]*(?<![,.])|(?!out\b|gives\b)[a-z][a-z./-]*[a-z](?=[.,;)]|$| uses)))?"
)
_ARGUMENTS = {"continue": "continuations", "group": "groups", "set": "settings"}
_ARGUMENTS |= {f"{name}-col": name for name in ("text", "gender", "occupation", "model")}


def as_called(message: str) -> str:
    """Write the options that a message names as its caller gives them; a whole command stays one.

    In Python `--set lock=none` is settings={"lock": "none"}, `--price IN,OUT` is price="IN,OUT".
    """

    def named(match: re.Match[str]) -> str:
        if match["settings"]:
            tables: dict[str, Any] = {}
            for setting in re.findall(_SETTING, match["settings"]):
                key, value = setting.removeprefix("--set ").strip("'").split("=", 1)
                name, dot, sub = key.partition(".")
                tables |= {name: {**tables.get(name, {}), sub: value} if dot else value}
            return f"settings={json.dumps(tables)}"
        if not match["name"]:
            return match[0]
        value = (match["value"] or "").strip("'")
        is_number = value.isdigit() or value in ("", "N")
        name = _ARGUMENTS.get(match["name"], match["name"].replace("-", "_"))
        return f"{name}={'False' if match['no'] else value if is_number else json.dumps(value)}"

    return message if BY_COMMAND.get() else _OPTION.sub(named, message)
