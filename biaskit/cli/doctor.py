"""`biaskit doctor`."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import click

from biaskit.cli.options import examples, option, with_format, with_key, with_price, with_verbose
from biaskit.cli.output import print_document
from biaskit.cli.terminal import TerminalWatcher, emit_json

_PROMPT_FORMATS = "Try a few prompts in each supported format; report coverage."
_PROMPTS = "With --prompt-formats: prompts per bias type."
_STUDY = "With --prompt-formats: take the prompts from this study."


@click.command(
    "doctor",
    epilog=examples(
        "biaskit doctor api:NAME@http://127.0.0.1:8000/v1",
        "biaskit doctor openai:gpt-4o-mini-2024-07-18",
        "biaskit doctor hf:./my-chat-model --prompt-formats",
    ),
)
@click.argument("model")
@option("--prompt-formats formats", None, _PROMPT_FORMATS, is_flag=True)
@option("--prompts", "N", _PROMPTS, type=click.IntRange(min=1), default=20, show_default=True)
@option("--study", None, _STUDY, default="occugender", show_default=True)
@with_key
@option("--endpoint-name", "NAME", "A name to use instead of the base URL.")
@with_price
@option("--yes", None, "With --prompt-formats: start without confirmation.", is_flag=True)
@with_verbose
@with_format("Output format.", ("text", "json"))
def command(model: str, formats: bool, yes: bool, output_format: str, verbose: bool, **chosen: Any) -> None:
    """Send about twenty short prompts to find out what MODEL supports, and which estimator fits.

    If a server's answers contradict each other, the result says so and does not rely on them. Costs a few
    thousand tokens.
    """
    from biaskit.measures.probe.prompt_formats import prompt_formats as try_formats
    from biaskit.workflow.doctor import doctor

    of_formats = {name: chosen.pop(name) for name in ("study", "prompts")}
    with closing(TerminalWatcher(assume_yes=yes, verbose=verbose)) as watcher:
        if formats:
            result: Any = try_formats(model, watcher=watcher, **of_formats, **chosen)
        else:
            result = doctor(model, watcher=watcher, **chosen)
    if output_format == "json":
        emit_json(result.as_json())
    else:
        print_document(result.document())
