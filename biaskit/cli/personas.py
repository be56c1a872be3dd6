"""`biaskit personas`."""

from __future__ import annotations

from typing import Any

import click

from biaskit.cli.options import examples, parse_batch_size, with_format, with_running, with_settings
from biaskit.cli.output import finish
from biaskit.cli.terminal import TerminalWatcher
from biaskit.corpora.sources import read_text
from biaskit.workflow import personas


@click.command(
    "personas",
    epilog=examples(
        "biaskit personas demo --occupations nurse,mechanic --per-gender 5 --max-draws 60",
        "biaskit personas hf:./my-model --study gasp-pilot --dry-run",
        "biaskit analyze --texts mine.csv --text-col text --gender-col gender",
    ),
)
@click.argument("models", nargs=-1, metavar="MODEL...")
@click.option(
    "--study",
    default="gasp-pilot",
    show_default=True,
    help="gasp-pilot, gasp, mattern-generation, or a path to a TOML file.",
)
@click.option(
    "--occupations", metavar="LIST", help="Names, ids or ranges of the study's list, or a .csv/.txt/.toml."
)
@click.option(
    "--per-gender", type=click.IntRange(min=1), metavar="N", help="Texts about women, and as many about men."
)
@click.option(
    "--max-draws",
    type=click.IntRange(min=1),
    metavar="N",
    help="The most texts drawn for one occupation and prompt; default 20 x per-gender.",
)
@click.option("--max-new-tokens", type=click.IntRange(min=1), metavar="N", help="The most tokens in a text.")
@click.option("--prompt-form", type=click.Choice(["auto", "chat", "completion", "raw"]))
@with_running
@with_settings
@with_format
def command(
    models: tuple[str, ...],
    system_prompt: str | None,
    batch_size: str,
    dry_run: bool,
    yes: bool,
    verbose: bool,
    output_format: str,
    **chosen: Any,
) -> None:
    """See whom each MODEL writes about when the prompt names no gender, and how.

    MODEL is demo, hf:ORG/NAME[@revision], hf:PATH, gguf:PATH, openai:NAME, api:NAME@URL[,URL] or
    scripted:FILE; LABEL=MODEL names it. `biaskit doctor MODEL` shows what an API can do. Run the same
    command again to continue where it stopped. Exit codes: 0 done, 1 failed, 2 wrong use, 3 finished with
    rows missing, 130 interrupted.
    """
    watcher = TerminalWatcher(assume_yes=yes, verbose=verbose)
    try:
        result = personas(
            *models,
            system_prompt=read_text(system_prompt) if system_prompt else None,
            batch_size=parse_batch_size(batch_size),
            dry_run=dry_run,
            watcher=watcher,
            **chosen,
        )
    finally:
        watcher.close()
    finish(result, output_format, dry_run=dry_run)
