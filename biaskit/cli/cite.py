"""`biaskit cite`."""

from __future__ import annotations

import click

from biaskit.cli.terminal import emit
from biaskit.runs import find_run, read_manifest
from biaskit.sources import list_corpora, load_corpus


@click.command("cite")
@click.argument("run", required=False)
def command(run: str | None) -> None:
    """The signature line of a RUN and BibTeX of the papers whose instruments it used; without RUN, of all."""
    if run is None:
        names = [corpus.name for corpus in list_corpora() if corpus.bibtex.strip()]
    else:
        manifest = read_manifest(find_run(run))
        names = list(manifest["resolved"]["study"]["papers"])
        emit(f"{manifest['signature']}\n\n")
    emit("\n\n".join(dict.fromkeys(load_corpus(name).bibtex.strip() for name in names)) + "\n")
