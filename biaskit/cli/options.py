"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from biaskit.study.config import parse_setting

F = TypeVar("F", bound=Callable[..., Any])


def examples(*lines: str) -> str:
    """Command lines below a help text, each on a line of its own."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


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


def with_sides(command: F) -> F:
    """--group and --aliases: what is held against what."""
    command = click.option(
        "--aliases",
        metavar="FILE",
        help="A file of two columns; each line holds two names of one occupation.",
    )(command)
    return click.option(
        "--group",
        "groups",
        multiple=True,
        metavar="NAME=LABELS",
        help="Models, separated by commas; the mean of each group is compared with the others'. Repeatable.",
    )(command)


_RUNNING = (
    click.option("--system-prompt", metavar="FILE", help="A file with the system prompt to test."),
    click.option(
        "--batch-size",
        default="auto",
        show_default=True,
        metavar="auto|N",
        help="Prompts or texts processed at once.",
    ),
    click.option(
        "--device",
        default="auto",
        show_default=True,
        help="cpu, cuda, cuda:N, mps, or map (several devices).",
    ),
    click.option(
        "--dtype",
        default="auto",
        show_default=True,
        type=click.Choice(["auto", "float32", "bfloat16", "float16"]),
    ),
    click.option(
        "--out", metavar="RUN", help="The run's folder; by default biaskit-runs/ENGINE-STUDY-DIGEST."
    ),
    click.option(
        "--api-key-env",
        multiple=True,
        metavar="VAR",
        help="Environment variable with the key of api: models; LABEL=VAR for several. Never the key itself.",
    ),
    click.option(
        "--endpoint-name",
        metavar="NAME",
        help="Replaces the base URL in every key: a new port is the same model.",
    ),
    click.option(
        "--max-cost",
        type=float,
        metavar="USD",
        help="The most that the run may cost, repeated requests included.",
    ),
    click.option("--price", metavar="IN,OUT", help="USD per million tokens, where no price is known."),
    click.option(
        "--accept-drift",
        is_flag=True,
        help="Continue although a different model now answers under the same name.",
    ),
    click.option("--verbose", is_flag=True, help="Show every request that is repeated, and why."),
    click.option(
        "--dry-run",
        is_flag=True,
        help="Print the plan and stop. An API is measured first, with about 15 short calls.",
    ),
    click.option("--yes", is_flag=True, help="Start without asking, however long it takes."),
)


def with_running(command: F) -> F:
    """How and where models run, where rows go, what is asked before a start: the same for both engines."""
    for option in reversed(_RUNNING):
        command = option(command)
    return command


def parse_batch_size(text: str) -> int | None:
    """`auto` or a positive number."""
    if text == "auto":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise click.UsageError(f"--batch-size {text}: give auto or a number of at least 1.")
    return int(text)
