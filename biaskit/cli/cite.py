"""`biaskit cite`."""

from __future__ import annotations

import json

import click

from biaskit.cli.terminal import emit
from biaskit.corpora.sources import list_corpora, load_corpus
from biaskit.runs.manifest import read_manifest
from biaskit.runs.store import find_run


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
    """Print the signature line of a RUN and BibTeX of the papers it used; without RUN, of all papers."""
    signature = None
    if run is None:
        names = [corpus.name for corpus in list_corpora() if corpus.bibtex.strip()]
    else:
        manifest = read_manifest(find_run(run))
        names = list(manifest["resolved"]["study"]["papers"])
        signature = str(manifest["signature"])
    bibtex = {name: load_corpus(name).bibtex.strip() for name in names}
    if output_format == "json":
        emit(json.dumps({"signature": signature, "bibtex": bibtex}, indent=1) + "\n")
        return
    if signature is not None:
        emit(f"{signature}\n\n")
    emit("\n\n".join(dict.fromkeys(bibtex.values())) + "\n")
