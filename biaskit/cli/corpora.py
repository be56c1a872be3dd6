"""`biaskit corpora`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from biaskit.cli.options import with_format
from biaskit.cli.output import print_document
from biaskit.cli.terminal import emit, emit_json, width
from biaskit.corpora.sources import SHIPPED, Corpus, CorpusFile, list_corpora, read_source
from biaskit.errors import UsageError, nearest
from biaskit.models.api.endpoint import hide_urls
from biaskit.report.render.document import Document, TitledTable, listed_table
from biaskit.report.render.text import fold
from biaskit.study.config import describe_keys, load_study, study_names

MOST_LINES = 500  # of a file that is shown; lists of words have tens of thousands


@click.command("corpora")
@click.argument("name", required=False)
@with_format("Output format.", ("text", "json"))
def command(name: str | None, output_format: str) -> None:
    """List the shipped corpora and studies; with NAME, show everything in one of them."""
    corpora = {corpus.name: corpus for corpus in list_corpora()}
    studies = {study: load_study(study).summary for study in study_names()}
    if name is None and output_format == "json":
        listed = [{"name": study, "summary": summary} for study, summary in studies.items()]
        emit_json({"corpora": [c.model_dump(mode="json") for c in corpora.values()], "studies": listed})
    elif name is None:
        about = []
        for corpus in corpora.values():
            files = ", ".join(file.path for file in corpus.files)
            about.append((corpus.name, str(corpus.year), files, corpus.title))
        shown = listed_table("Corpora", ("corpus", "year", "files", "title"), about, 4)
        described = listed_table("Studies", ("study", "summary"), studies.items(), 2)
        print_document(Document((shown, described)))
        emit("\nbiaskit corpora NAME shows one of them.\n")
    elif name not in corpora and name not in studies:
        known = [*corpora, *studies]
        raise UsageError(
            f"There is no corpus or study {name!r}.{nearest(name, known)} Shipped: {', '.join(known)}."
        )
    elif output_format == "json":
        content: dict[str, Any] = {}
        if name in corpora:
            corpus = corpora[name]
            content["corpus"] = corpus.model_dump(mode="json")
            for file, stated in zip(corpus.files, content["corpus"]["files"], strict=True):
                stated["text"] = _text_of(corpus, file)
        if name in studies:
            heads = ("key", "value", "default", "meaning")
            keys = [dict(zip(heads, row, strict=True)) for row in _study_table(name).rows]
            content["study"] = {"name": name, "summary": studies[name], "keys": keys}
        emit_json(content)
    else:
        if name in corpora:
            emit("\n".join(_corpus(corpora[name])) + "\n")
        if name in studies:
            emit("\n" if name in corpora else "")
            print_document(Document((_study_table(name),)))


def _text_of(corpus: Corpus, file: CorpusFile) -> str:
    """Read what a file says; of recorded texts name the command that reads them."""
    if file.kind == "recorded":
        return f"biaskit analyze recorded:{file.path.partition('/')[0]} makes its tables"
    return read_source(f"{SHIPPED}{corpus.name}/{file.path}", file.kind, ())[2]


def _corpus(corpus: Corpus) -> Iterator[str]:
    about = (f"{corpus.name}: {corpus.title} ({corpus.year})", f"Source: {corpus.source}")
    for line in (*about, f"Licence: {corpus.licence}", *(f"Note: {note}" for note in corpus.notes)):
        yield from fold(line, width(), then="    ")
    for file in corpus.files:
        yield ""
        yield f"{file.path} ({file.kind}; {file.source}; sha256 {file.sha256[:16]})"
        lines = _text_of(corpus, file).splitlines()
        yield from (f"  {line}" for line in lines[:MOST_LINES])
        if len(lines) > MOST_LINES:
            yield f"  and {len(lines) - MOST_LINES:,} more lines"


def _study_table(name: str) -> TitledTable:
    chosen = load_study(name)
    study = chosen.model_dump()
    study["models"] = {label: hide_urls(spec) for label, spec in study["models"].items()}
    rows = []
    for key, default, text in describe_keys(type(chosen)):
        value: object = study
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        shown = "" if value is None else ", ".join(map(str, value if isinstance(value, tuple) else [value]))
        rows.append((key, shown, "" if shown == default or default == "(none)" else default, text))
    heads = ("key", "in this study", "default, if other", "meaning")
    return listed_table(f"Study {name}: {study['summary']}", heads, rows, 4)
