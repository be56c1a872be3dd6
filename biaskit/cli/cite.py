"""`biaskit cite`."""

from __future__ import annotations

import json

import click

from biaskit.cli.terminal import emit
from biaskit.workflow.cite import cite, references


@click.command("cite")
@click.argument("run", required=False)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How the references are printed.",
)
def command(run: str | None, output_format: str) -> None:
    """The signature line of a RUN and BibTeX of the papers whose instruments it used; without RUN, of all."""
    if output_format == "json":
        signature, bibtex = references(run)
        emit(json.dumps({"signature": signature, "bibtex": bibtex}, indent=1) + "\n")
    else:
        emit(cite(run) + "\n")
