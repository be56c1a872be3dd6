"""`biaskit import`."""

from __future__ import annotations

import sys
from contextlib import closing

import click

from biaskit.cli.options import examples, option
from biaskit.cli.output import FINISHED_WITH_MISSING
from biaskit.cli.terminal import TerminalWatcher, emit
from biaskit.workflow.batch_answers import import_answers


@click.command(
    "import",
    epilog=examples(
        "biaskit probe openai:NAME --write-requests requests.jsonl",
        "biaskit import RUN output.jsonl errors.jsonl",
    ),
)
@click.argument("run")
@click.argument("answers", nargs=-1, required=True, metavar="ANSWERS...")
@option("--accept-model-change", None, "Accept answers from several models.", is_flag=True)
def command(run: str, answers: tuple[str, ...], accept_model_change: bool) -> None:
    """Load batch ANSWERS to the requests of RUN.

    ANSWERS are a batch service's answers to --write-requests, as JSON Lines, also .gz: OpenAI's output and
    error files, the output of vLLM's run-batch, rows of Ray's processors, or answers with a custom_id. They
    are checked like live answers; importing them twice changes nothing.

    Exit codes: 0 all used, 1 failed, 2 wrong use, 3 some could not be used.
    """
    with closing(TerminalWatcher(assume_yes=False)) as watcher:
        imported = import_answers(run, *answers, accept_model_change=accept_model_change, watcher=watcher)
    emit("".join(f"{note[0].upper()}{note[1:]}.\n" for note in imported.notes))
    if not imported.complete:
        sys.exit(FINISHED_WITH_MISSING)
