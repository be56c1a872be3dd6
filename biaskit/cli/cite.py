"""`biaskit cite`."""

from __future__ import annotations

import click

from biaskit.cli.options import with_format
from biaskit.cli.terminal import emit, emit_json
from biaskit.workflow.cite import cite, references


@click.command("cite")
@click.argument("run", required=False)
@with_format("Output format.", ("text", "json"))
def command(run: str | None, output_format: str) -> None:
    """Print the signature line of a RUN and BibTeX of biaskit and the papers used; without RUN, of all."""
    if output_format == "json":
        signature, bibtex = references(run)
        emit_json({"signature": signature, "bibtex": bibtex})
    else:
        emit(cite(run) + "\n")
