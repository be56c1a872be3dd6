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
from biaskit.errors import BiaskitError, UsageError, nearest

P = ParamSpec("P")
R = TypeVar("R")

TEXT, TEXTS, TEXT_OR_TEXTS = "a text", "a list of texts", "a text or a list of texts"
PATH, TARGET_WORDS = "a path", "a list of texts, or a dict of such lists"
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
    if kind == TARGET_WORDS:
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


_NAMES: Mapping[str, str] = {
    TEXT: """model models bias_type context prompt_format system_prompt estimator device dtype endpoint_name
        price occupation word_boundary method tokenizer shard axis""",
    PATH: "study out aliases write_requests",
    TEXT_OR_TEXTS: "jobs templates debiasing_prompts occupations api_key_env groups",
    TEXTS: "prompts",
    TARGET_WORDS: "target_words",
    POSITIVE: "samples per_gender max_samples max_samples_per_prompt max_new_tokens batch_size",
    WHOLE: "permutations seed continuations",
    NUMBER: "max_cost difference max_flips",
    KEYS: "settings",
}
"""Kind → the parameters that are of it, in every function."""
_BY_NAME: Mapping[str, str] = {name: kind for kind, names in _NAMES.items() for name in names.split()}


def checked(*records: type, **kinds: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Refuse arguments that do not fit; `kinds`: of parameters whose kind is not that of their name.

    A value that is the parameter's default always fits. Several values (`*models`) are checked one by one.
    `records`: the TypedDicts of the function's `**options`, whose keys are described below its docstring.
    """
    known = [name for record in records for name in record.__annotations__]
    groups = [inspect.cleandoc(record.__doc__ or "").partition("\n\n")[2] for record in records]

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        function.__doc__ = "\n\n".join([inspect.cleandoc(function.__doc__ or ""), *groups])

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            given = signature.bind(*args, **kwargs).arguments
            options = given.pop("options", {}) if records else {}
            for name in options.keys() - {*known}:
                near = nearest(name, [*signature.parameters, *known])
                raise TypeError(f"{function.__name__}() has no argument {name!r}.{near}")
            for name, value in (given | options).items():
                parameter = signature.parameters.get(name)  # None: an option, by default None
                kind = kinds.get(name) or _BY_NAME.get(name)
                if kind is None or value is (parameter and parameter.default):
                    continue
                several = parameter and parameter.kind is parameter.VAR_POSITIONAL
                for argument in value if several else [value]:
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

_OPTION = re.compile(
    r"`[^`]*`|biaskit [a-z]+ (?:\.\.\.|[^.;])*"  # a whole command
    r"|(?<!\w)--(?P<name>[a-z][a-z-]*)(?: (?P<value>'[^']*'|[^\s'=]+=[^\s']*\w|[A-Z][A-Z,/@_]*\b"
    r"|[a-z]*\d[\d,.]*\b|(?!out\b|gives\b)[a-z][a-z./-]*[a-z](?=[.,;)]|$| uses)))?"
)
_ARGUMENTS = {"continue": "continuations", "group": "groups", "set": "settings"}
_ARGUMENTS |= {f"{name}-col": name for name in ("text", "gender", "occupation", "model")}
_ARGUMENTS["person-gender-col"] = "person_gender"


def as_called(message: str) -> str:
    """Write the options that a message names as its caller gives them; a whole command stays one.

    In Python `--set lock=none` is settings={"lock": "none"}, `--price IN,OUT` is price="IN,OUT".
    """

    def argument(option: re.Match[str]) -> str:
        if not option["name"]:
            return option[0]
        name = _ARGUMENTS.get(option["name"], option["name"].replace("-", "_"))
        value = (option["value"] or "").strip("'")
        if name.startswith("no_"):
            return f"{name.removeprefix('no_')}=False"
        if name == "settings" and "=" in value:
            key, value = value.split("=", 1)
            table, dot, key_in_table = key.partition(".")
            return f"settings={json.dumps({table: {key_in_table: value} if dot else value})}"
        return f"{name}={value if re.fullmatch(r'[0-9.]*|N', value) else json.dumps(value)}"

    if BY_COMMAND.get():
        return message
    # Codes are named one by one: --set gender_codes.1=VALUE or --set gender_codes.0=VALUE
    return _OPTION.sub(argument, message).replace('}} or settings={"gender_codes": {', ", ")
