"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from biaskit.config import parse_setting

F = TypeVar("F", bound=Callable[..., Any])


def _settings(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, Any]:
    return dict(parse_setting(value) for value in values)


def with_settings(command: F) -> F:
    """--set KEY=VALUE, repeatable."""
    return click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        callback=_settings,
        help="Any key of the study (biaskit corpora STUDY lists them); repeatable.",
    )(command)


def with_format(command: F) -> F:
    """--format text|json|csv|latex."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(["text", "json", "csv", "latex"]),
        default="text",
        show_default=True,
        help="How the result is printed; the tables on disk are the same.",
    )(command)
