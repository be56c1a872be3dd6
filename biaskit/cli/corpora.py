"""`biaskit corpora`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, fields, is_dataclass
from itertools import islice
from types import MappingProxyType
from typing import Any

import click

from biaskit.cli.options import with_format
from biaskit.cli.output import print_document
from biaskit.cli.terminal import emit, width
from biaskit.corpora.loaders import (
    load_dialogue,
    load_expression_sets,
    load_instructions,
    load_items,
    load_templates,
    load_word_counts,
    load_word_groups,
    load_word_list,
)
from biaskit.corpora.prompts import load_persona_prompts
from biaskit.corpora.sources import Corpus, list_corpora, load_corpus, read_source
from biaskit.errors import UsageError, nearest
from biaskit.models.api.endpoint import hide_urls
from biaskit.models.api.prices import load_prices
from biaskit.models.known import list_known
from biaskit.report.render.data import render_csv
from biaskit.report.render.document import Document, Heading, TitledTable
from biaskit.report.render.latex import render_latex
from biaskit.report.render.text import cell_width, fold, render_text
from biaskit.study.config import describe_keys, load_study, study_names

_N_COUNTS = 50  # of tens of thousands


@click.command("corpora")
@click.argument("name", required=False)
@with_format
def command(name: str | None, output_format: str) -> None:
    """List the shipped corpora and studies; with NAME, show everything in one of them."""
    corpora = {corpus.name: corpus for corpus in list_corpora()}
    studies = study_names()
    if name is None:
        _print_overview(list(corpora.values()), studies, output_format)
        return
    if name not in corpora and name not in studies:
        known = [*corpora, *studies]
        raise UsageError(
            f"There is no corpus or study {name!r}.{nearest(name, known)} Shipped: {', '.join(known)}."
        )
    if output_format == "json":
        content = {"corpus": _corpus_json(load_corpus(name))} if name in corpora else {}
        content |= {"study": _study_json(name)} if name in studies else {}
        emit(json.dumps(content, indent=1, allow_nan=False) + "\n")
    elif output_format != "text":
        if name not in studies:
            raise UsageError(f"{name} is a corpus of several lists: give --format json or text.")
        print_document(Document((_study_table(name),)), output_format)
    else:
        if name in corpora:
            emit("\n".join(_fitting(_corpus(load_corpus(name)))) + "\n")
        if name in studies:
            emit(("\n" if name in corpora else "") + render_text(Document((_study_table(name),)), width()))


def _print_overview(corpora: list[Corpus], studies: list[str], output_format: str) -> None:
    if output_format == "json":
        content = {
            "corpora": [_about(corpus) for corpus in corpora],
            "studies": [{"name": study, "summary": load_study(study).summary} for study in studies],
        }
        emit(json.dumps(content, indent=1) + "\n")
    elif output_format == "csv":
        heads = (Heading("kind"), Heading("name"), Heading("year"), Heading("title"))
        rows = [("corpus", c.name, str(c.year), c.title) for c in corpora]
        rows += [("study", study, "", load_study(study).summary) for study in studies]
        emit(render_csv(TitledTable("Shipped", (heads,), tuple(rows), n_text=4)))
    elif output_format == "latex":
        emit(render_latex(_overview(corpora, studies)))
    else:
        emit(render_text(_overview(corpora, studies), width()))
        emit("\nbiaskit corpora NAME shows one of them.\n")


def _overview(corpora: list[Corpus], studies: list[str]) -> Document:
    head = ((Heading("corpus"), Heading("year"), Heading("files"), Heading("title")),)
    rows = tuple((c.name, str(c.year), ", ".join(f.path for f in c.files), c.title) for c in corpora)
    head_studies = ((Heading("study"), Heading("what it lays out")),)
    rows_studies = tuple((name, load_study(name).summary) for name in studies)
    return Document(
        (
            TitledTable("Corpora", head, rows, n_text=4),
            TitledTable("Studies", head_studies, rows_studies, n_text=2),
        )
    )


# --- for programs ------------------------------------------------------------------------------------


def _about(corpus: Corpus) -> dict[str, Any]:
    """A corpus without what its files hold."""
    return asdict(corpus)


def _corpus_json(corpus: Corpus) -> dict[str, Any]:
    """A corpus with every entry of its files; of recorded texts the command that reads them."""
    about = _about(corpus)
    for file in about["files"]:
        source = f"corpus:{corpus.name}/{file['path']}"
        if file["kind"] == "recorded":
            file["read_with"] = f"biaskit analyze recorded:{source.split('/')[1]}"
        else:
            file["content"] = _plain(_LOADERS[file["kind"]](source))
    return about


_LOADERS: Mapping[str, Callable[[str], Any]] = MappingProxyType(
    {
        "items": load_items,
        "prompts": load_persona_prompts,
        "templates": load_templates,
        "instructions": load_instructions,
        "dialogue": load_dialogue,
        "expressions": load_expression_sets,
        "words": load_word_list,
        "word groups": load_word_groups,
        "counts": load_word_counts,
        "licence": lambda source: read_source(source, "licence", ())[2],
        "prices": load_prices,
        "models": list_known,
    }
)


def _plain(value: Any) -> Any:
    """Records, tuples and mappings as JSON has them."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _study_json(name: str) -> dict[str, Any]:
    names = ("key", "value", "default", "meaning")
    rows = _study_table(name).rows
    keys = [dict(zip(names, row, strict=True)) for row in rows]
    return {"name": name, "summary": load_study(name).summary, "keys": keys}


# --- for people --------------------------------------------------------------------------------------


def _fitting(lines: Iterator[str]) -> Iterator[str]:
    """The same lines, those that are too long folded under themselves."""
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip(" ")))
        long = cell_width(line) > width()
        yield from fold(line, width(), first=indent, then=f"{indent}    ") if long else [line]


def _corpus(corpus: Corpus) -> Iterator[str]:
    yield f"{corpus.name}: {corpus.title} ({corpus.year})"
    yield f"Source: {corpus.source}"
    yield f"Licence: {corpus.licence}"
    yield from (f"Note: {note}" for note in corpus.notes)
    for file in corpus.files:
        yield ""
        yield f"{file.path} ({file.kind}; {file.source}; sha256 {file.sha256[:16]})"
        source = f"corpus:{corpus.name}/{file.path}"
        yield from {
            "items": _items,
            "recorded": _recorded,
            "prompts": _prompts,
            "templates": _templates,
            "instructions": _instructions,
            "dialogue": _dialogue,
            "expressions": _expressions,
            "words": _words,
            "word groups": _word_groups,
            "counts": _counts,
            "licence": _licence,
            "prices": _prices,
            "models": _models,
        }[file.kind](source)


def _items(source: str) -> Iterator[str]:
    for i, item in enumerate(load_items(source), start=1):
        share = "" if item.labour_female_share is None else f"{100 * item.labour_female_share:5.1f} % women"
        yield f"  {i:3}  {item.name:28} {item.group:18} {share}" + (f" ({item.year})" if item.year else "")


def _recorded(source: str) -> Iterator[str]:
    name = source.split("/")[1]
    yield f"  biaskit analyze recorded:{name} makes every table of it"


def _prompts(source: str) -> Iterator[str]:
    for prompt in load_persona_prompts(source):
        wording = f", {prompt.wording}" if prompt.wording else ""
        yield f"  {prompt.name} ({prompt.form}{wording}): {prompt.open!r}"
        if prompt.specified:
            words = ", ".join(word for _, word in prompt.genders)
            yield f"      with a gender ({words}): {prompt.specified!r}"


def _templates(source: str) -> Iterator[str]:
    for template in load_templates(source).templates:
        answer = f" / A: {template.opening}" if template.opening else ""
        named = f"  [{template.expressions}]" if template.expressions else ""
        yield f"  {template.bias_type} {template.id:2}  Q: {template.question}{answer}{named}"


def _instructions(source: str) -> Iterator[str]:
    for instruction in load_instructions(source):
        level = f"{instruction.level}: " if instruction.level else ""
        yield f"  {instruction.id:2}  {level}{instruction.text}"


def _dialogue(source: str) -> Iterator[str]:
    dialogue = load_dialogue(source)
    yield f"  {dialogue.opening_line}"
    for turn in dialogue.turns:
        yield f"  Q: {turn.question}"
        yield f"  A: {turn.answer}"


def _expressions(source: str) -> Iterator[str]:
    for expressions in load_expression_sets(source).values():
        yield f"  {expressions.name} (forms: {expressions.forms})"
        for group, texts in expressions.groups:
            yield f"      {group}: {', '.join(texts)}"


def _words(source: str) -> Iterator[str]:
    text = ", ".join(load_word_list(source))
    yield f"  {text}"


def _word_groups(source: str) -> Iterator[str]:
    groups: dict[str, list[str]] = {}
    for word, group in load_word_groups(source).items():
        groups.setdefault(group, []).append(word)
    yield from (f"  {group}: {', '.join(words)}" for group, words in groups.items())


def _counts(source: str) -> Iterator[str]:
    counts = load_word_counts(source)
    yield from (f"  {count:9,}  {word}" for word, count in islice(counts.items(), _N_COUNTS))
    yield f"  and {len(counts) - _N_COUNTS:,} more words; {sum(counts.values()):,} tokens in all"


def _prices(source: str) -> Iterator[str]:
    for entry in load_prices(source):
        price = f"{entry.price.input:6.2f} in, {entry.price.output:6.2f} out"
        yield f"  {entry.host:16} {entry.model:45} {price}  ({entry.price.date}, {entry.price.source})"
        yield from [f"      {entry.note}"] if entry.note else []


def _models(source: str) -> Iterator[str]:
    for model in list_known(source):
        yield f"  {model.label} = {model.spec} ({model.api_key_env}; {model.paper})"
        yield from [f"      {model.note}"] if model.note else []


def _licence(source: str) -> Iterator[str]:
    _, _, text = read_source(source, "licence", ())
    yield from (f"  {line}" for line in text.splitlines())


def _study_table(name: str) -> TitledTable:
    chosen = load_study(name)
    study = chosen.model_dump()
    study["models"] = {label: hide_urls(spec) for label, spec in study["models"].items()}
    rows = []
    for key, default, text in describe_keys(type(chosen)):
        value: object = study
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        shown = (
            ", ".join(map(str, value)) if isinstance(value, tuple) else "" if value is None else str(value)
        )
        rows.append((key, shown, "" if shown == default or default == "(none)" else default, text))
    head = ((Heading("key"), Heading("in this study"), Heading("default, if other"), Heading("meaning")),)
    return TitledTable(f"Study {name}: {study['summary']}", head, tuple(rows), n_text=4)
