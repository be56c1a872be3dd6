"""`biaskit export`."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import click

from biaskit.cli.options import examples, option
from biaskit.cli.output import named_or_newest
from biaskit.cli.terminal import TerminalWatcher, emit, emit_notes
from biaskit.common.foreign import visible
from biaskit.common.wording import count
from biaskit.workflow.export import FORMATS, export


@click.command(
    "export",
    epilog="\b\nFormats:\n"
    + "\n".join(f"  {name:18}{what}" for name, (_, what) in FORMATS.items())
    + "\n\n"
    + examples(
        "biaskit export RUN --to inspect",
        "biaskit export PROBE-RUN PERSONAS-RUN --to card --out card",
        "biaskit export RUN --to evidence --no-texts",
        "biaskit export RUN --to lm-eval",
        "biaskit export RUN --to hf --dataset ORG/NAME --url https://example.org/page.html",
    ),
)
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@option("--to", "FORMAT", "One of the formats below.", type=click.Choice(list(FORMATS)), required=True)
@option("--out", "FOLDER", "Output folder; default: exports/FORMAT in the run's folder.")
@option(
    "--no-texts texts", None, "For evidence: omit all texts.", is_flag=True, flag_value=False, default=None
)
@option("--dataset", "ORG/NAME", "For hf: the hub data set to list the results under.")
@option("--url", "URL", "For hf: the page that shows these numbers.")
@option("--organization", "NAME", "For every-eval-ever: the evaluating organization.")
def command(runs: tuple[str, ...], to: str, **chosen: Any) -> None:
    """Convert stored runs for other tools: logs, tasks, model cards.

    Several runs, of any measurement, go into one export. Without RUN, the newest run in this folder is used.
    No model is loaded.
    """
    paths = named_or_newest(runs)
    options = {name: value for name, value in chosen.items() if value is not None}
    with closing(TerminalWatcher(assume_yes=True)) as watcher:
        exported = export(*paths, to=to, watcher=watcher, **options)
    folder, first = visible(str(exported.path.parent)), visible(exported.path.name)
    emit(f"{count(len(exported.files), 'file')} in {folder}: {first}\n")
    emit_notes(exported.notes)
