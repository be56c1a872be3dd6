"""`biaskit probe`."""

from __future__ import annotations

from typing import Any

import click

from biaskit.cli.options import examples, parse_batch_size, with_format, with_running, with_settings
from biaskit.cli.output import finish
from biaskit.cli.terminal import TerminalWatcher
from biaskit.corpora.sources import read_text
from biaskit.workflow import probe


@click.command(
    "probe",
    epilog=examples(
        "biaskit probe demo --jobs nurse,plumber",
        "biaskit probe api:NAME@http://127.0.0.1:8000/v1 --estimator top-k --max-cost 2",
        "biaskit probe demo hf:./my-model --study occugender-debias --dry-run",
        "biaskit probe demo --jobs fields.csv --templates questions.csv --expressions groups.toml",
    ),
)
@click.argument("models", nargs=-1, metavar="MODEL...")
@click.option(
    "--study", default="occugender", show_default=True, help="A shipped study or a path to a TOML file."
)
@click.option(
    "--bias-type", type=click.Choice(["explicit", "implicit", "both"]), help="Which templates to use."
)
@click.option(
    "--jobs", metavar="LIST", help="Names, ids or ranges of the study's jobs, or a .csv/.txt/.toml file."
)
@click.option("--templates", metavar="LIST", help="Ids or ranges within each bias type, or a file.")
@click.option("--instructions", metavar="LIST", help="none, all, ids such as 1,3, or a file.")
@click.option(
    "--setting",
    type=click.Choice(["plain", "dialogue", "both"]),
    help="The question alone, or after a dialogue.",
)
@click.option("--expressions", metavar="LIST", help="A file of expression sets, or one shipped set for all.")
@click.option("--prompt-form", type=click.Choice(["auto", "raw", "chat-prefill", "chat-continue"]))
@click.option(
    "--estimator",
    type=click.Choice(["auto", "exact", "selected-ids", "echo", "top-k", "sampling"]),
    help="How probabilities are obtained; auto: the best estimator that each model supports.",
)
@click.option(
    "--draws",
    type=click.IntRange(min=2),
    metavar="N",
    help="Texts drawn for each cell with the estimator sampling.",
)
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
    """Measure the exact probability that each MODEL names each gender group for a job.

    MODEL is demo, hf:ORG/NAME[@revision], hf:PATH, gguf:PATH, openai:NAME, api:NAME@URL[,URL] or
    scripted:FILE; LABEL=MODEL names it. `biaskit doctor MODEL` shows what an API can do. Run the same
    command again to continue where it stopped. Exit codes: 0 done, 1 failed, 2 wrong use, 3 finished with
    rows missing, 130 interrupted.
    """
    watcher = TerminalWatcher(assume_yes=yes, verbose=verbose)
    try:
        result = probe(
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
