"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from biaskit.study.config import parse_setting

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def examples(*lines: str) -> str:
    """Lay out command lines below a help text, each on a line of its own."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def option(names: str, metavar: str | None, text: str | None, **more: Any) -> Decorator:
    """Make a click option: flag (and parameter, where it is named otherwise), what it takes, its help."""
    return click.option(*names.split(), metavar=metavar, help=text, **more)


def several(*options: Decorator) -> Decorator:
    """Join options to one decorator, in the order of the help text."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(options):
            command = decorator(command)
        return command

    return decorate


def with_settings(
    text: str = "Set any study key (biaskit corpora STUDY lists them); repeatable.",
) -> Decorator:
    """Add --set KEY=VALUE, repeatable."""
    parsed: Any = lambda *given: dict(map(parse_setting, given[-1]))  # noqa: E731
    return option("--set settings", "KEY=VALUE", text, multiple=True, callback=parsed)


def with_format(
    text: str = "Output format; the tables on disk are the same.",
    formats: tuple[str, ...] = ("text", "json", "csv", "latex"),
) -> Decorator:
    """Add --format, by default text."""
    kind = click.Choice(formats)
    return option("--format output_format", None, text, type=kind, default="text", show_default=True)


GROUPS = "A group of models, separated by commas; group means are compared. Repeatable."
with_sides = several(
    option("--group groups", "NAME=LABELS", GROUPS, multiple=True),
    option("--aliases", "FILE", "A file of two columns; each line gives two names of one occupation."),
)
"""What is compared with what."""

DTYPES = click.Choice(["auto", "float32", "bfloat16", "float16"])
_KEY = "Environment variable with the key of an api: model. Never the key itself."
with_key = option("--api-key-env", "VAR", _KEY, multiple=True)
with_price = option("--price", "IN,OUT", "USD per million tokens, if no price is known.")
with_verbose = option("--verbose", None, "Show all notes and repeated requests.", is_flag=True)
