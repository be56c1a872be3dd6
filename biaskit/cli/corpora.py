"""`biaskit corpora`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import islice
from typing import Any

import click
from pydantic import BaseModel

from biaskit.cli.options import with_format
from biaskit.cli.output import listed_table, print_document
from biaskit.cli.terminal import emit, emit_json, width
from biaskit.corpora.loaders import (
    Templates,
    load_dialogue,
    load_expression_sets,
    load_instructions,
    load_items,
    load_templates,
    load_word_counts,
    load_word_groups,
    load_word_list,
)
from biaskit.corpora.outcome_rules import OutcomeRules
from biaskit.corpora.prompts import PersonaPrompt, load_persona_prompts
from biaskit.corpora.sources import Corpus, list_corpora, read_source
from biaskit.corpora.variance import CellVariance, TextVariance, load_cell_variance, load_text_variance
from biaskit.errors import UsageError, nearest
from biaskit.models.api.endpoint import hide_urls
from biaskit.models.api.prices import PricedModel, load_prices
from biaskit.models.known import KnownModel, list_known
from biaskit.records import Dialogue, ExpressionSet, Instruction, Item
from biaskit.report.render.data import render_csv
from biaskit.report.render.document import Document, TitledTable
from biaskit.report.render.text import cell_width, fold, render_text
from biaskit.study.config import describe_keys, load_study, study_names

_N_COUNTS = 50  # of tens of thousands


@click.command("corpora")
@click.argument("name", required=False)
@with_format()
def command(name: str | None, output_format: str) -> None:
    """List the shipped corpora and studies; with NAME, show everything in one of them."""
    corpora = {corpus.name: corpus for corpus in list_corpora()}
    studies = {study: load_study(study).summary for study in study_names()}
    if name is None:
        _print_overview(list(corpora.values()), studies, output_format)
        return
    if name not in corpora and name not in studies:
        known = [*corpora, *studies]
        raise UsageError(
            f"There is no corpus or study {name!r}.{nearest(name, known)} Shipped: {', '.join(known)}."
        )
    if output_format == "json":
        content = {"corpus": _corpus_json(corpora[name])} if name in corpora else {}
        content |= {"study": _study_json(name, studies[name])} if name in studies else {}
        emit_json(content)
    elif output_format != "text":
        if name not in studies:
            raise UsageError(f"{name} is a corpus of several lists: give --format json or text.")
        print_document(Document((_study_table(name),)), output_format)
    else:
        if name in corpora:
            emit("\n".join(_fitting(_corpus(corpora[name]))) + "\n")
        if name in studies:
            emit(("\n" if name in corpora else "") + render_text(Document((_study_table(name),)), width()))


def _print_overview(corpora: list[Corpus], studies: dict[str, str], output_format: str) -> None:
    """`studies`: name → what it lays out."""
    if output_format == "json":
        listed = [{"name": name, "summary": summary} for name, summary in studies.items()]
        emit_json({"corpora": [corpus.model_dump(mode="json") for corpus in corpora], "studies": listed})
    elif output_format == "csv":
        rows = [("corpus", c.name, str(c.year), c.title) for c in corpora]
        rows += [("study", name, "", summary) for name, summary in studies.items()]
        emit(render_csv(listed_table("Shipped", ("kind", "name", "year", "title"), rows, 4)))
    else:
        about = [(c.name, str(c.year), ", ".join(f.path for f in c.files), c.title) for c in corpora]
        shown = listed_table("Corpora", ("corpus", "year", "files", "title"), about, 4)
        laid_out = listed_table("Studies", ("study", "what it lays out"), studies.items(), 2)
        print_document(Document((shown, laid_out)), output_format)
        emit("\nbiaskit corpora NAME shows one of them.\n" if output_format == "text" else "")


def _corpus_json(corpus: Corpus) -> dict[str, Any]:
    """A corpus with every entry of its files; of recorded texts the command that reads them."""
    about = corpus.model_dump(mode="json")
    for file in about["files"]:
        load, _ = _KINDS[file["kind"]]
        content = load(f"corpus:{corpus.name}/{file['path']}")
        file["read_with" if file["kind"] == "recorded" else "content"] = _plain(content)
    return about


def _plain(value: Any) -> Any:
    """Records, tuples and mappings as JSON has them."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _study_json(name: str, summary: str) -> dict[str, Any]:
    names = ("key", "value", "default", "meaning")
    return {
        "name": name,
        "summary": summary,
        "keys": [dict(zip(names, row, strict=True)) for row in _study_table(name).rows],
    }


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
        load, lines = _KINDS[file.kind]
        yield from (f"  {line}" for line in lines(load(f"corpus:{corpus.name}/{file.path}")))


def _items(items: Sequence[Item]) -> Iterator[str]:
    for i, item in enumerate(items, start=1):
        share = "" if item.labour_female_share is None else f"{100 * item.labour_female_share:5.1f} % women"
        yield f"{i:3}  {item.name:28} {item.group:18} {share}" + (f" ({item.year})" if item.year else "")


def _prompts(prompts: Sequence[PersonaPrompt]) -> Iterator[str]:
    for prompt in prompts:
        wording = f", {prompt.wording}" if prompt.wording else ""
        yield f"{prompt.name} ({prompt.form}{wording}): {prompt.open!r}"
        if prompt.specified:
            words = ", ".join(word for _, word in prompt.genders)
            yield f"    with a gender ({words}): {prompt.specified!r}"


def _templates(templates: Templates) -> Iterator[str]:
    for template in templates.templates:
        answer = f" / A: {template.opening}" if template.opening else ""
        named = f"  [{template.expressions}]" if template.expressions else ""
        yield f"{template.bias_type} {template.id:2}  Q: {template.question}{answer}{named}"


def _instructions(instructions: Sequence[Instruction]) -> Iterator[str]:
    for instruction in instructions:
        level = f"{instruction.level}: " if instruction.level else ""
        yield f"{instruction.id:2}  {level}{instruction.text}"


def _dialogue(dialogue: Dialogue) -> Iterator[str]:
    yield dialogue.opening_line
    for turn in dialogue.turns:
        yield f"Q: {turn.question}"
        yield f"A: {turn.answer}"


def _expressions(sets: Mapping[str, ExpressionSet]) -> Iterator[str]:
    for expressions in sets.values():
        yield f"{expressions.name} (forms: {expressions.forms})"
        for group, texts in expressions.groups:
            yield f"    {group}: {', '.join(texts)}"


def _counts(counts: Mapping[str, int]) -> Iterator[str]:
    yield from (f"{count:9,}  {word}" for word, count in islice(counts.items(), _N_COUNTS))
    yield f"and {len(counts) - _N_COUNTS:,} more words; {sum(counts.values()):,} tokens in all"


def _word_groups(group_of: Mapping[str, str]) -> Iterator[str]:
    for group in dict.fromkeys(group_of.values()):
        yield f"{group}: {', '.join(word for word, own in group_of.items() if own == group)}"


def _outcome_rules(source: str) -> OutcomeRules:
    from biaskit.personas.texts.outcomes import text_rules
    from biaskit.probe.outcomes import RULES, answer_rules

    return answer_rules() if source == RULES else text_rules()


def _rules(rules: OutcomeRules) -> Iterator[str]:
    for rule in rules.rules:
        yield f"{rule.id}: {rule.outcome}, where the {rule.reads} has {rule.pattern}"
        yield f"    {rule.reason}"


def _prices(prices: Sequence[PricedModel]) -> Iterator[str]:
    for entry in prices:
        price = f"{entry.price.input:6.2f} in, {entry.price.output:6.2f} out"
        yield f"{entry.host:16} {entry.model:45} {price}  ({entry.price.date}, {entry.price.source})"
        yield from [f"    {entry.note}"] if entry.note else []


def _variances(variances: Sequence[CellVariance | TextVariance]) -> Iterator[str]:
    for variance in variances:
        known = variance.model_dump().items()
        yield ", ".join(str(x) if isinstance(x, str) else f"{name} {x:.4g}" for name, x in known)


def _models(models: Sequence[KnownModel]) -> Iterator[str]:
    for model in models:
        yield f"{model.label} = {model.spec} ({model.api_key_env}; {model.paper})"
        yield from [f"    {model.note}"] if model.note else []


_KINDS: Mapping[str, tuple[Callable[[str], Any], Callable[[Any], Iterable[str]]]] = {
    "items": (load_items, _items),
    "recorded": (
        lambda source: f"biaskit analyze recorded:{source.split('/')[1]}",
        lambda how: [f"{how} makes every table of it"],
    ),
    "prompts": (load_persona_prompts, _prompts),
    "templates": (load_templates, _templates),
    "instructions": (load_instructions, _instructions),
    "dialogue": (load_dialogue, _dialogue),
    "expressions": (load_expression_sets, _expressions),
    "words": (load_word_list, lambda words: [", ".join(words)]),
    "word groups": (load_word_groups, _word_groups),
    "outcome rules": (_outcome_rules, _rules),
    "counts": (load_word_counts, _counts),
    "licence": (lambda source: read_source(source, "licence", ())[2], str.splitlines),
    "prices": (load_prices, _prices),
    "models": (list_known, _models),
    "variance of cells": (load_cell_variance, _variances),
    "variance of texts": (load_text_variance, _variances),
}
"""Kind of a corpus's file → what reads it, and what is read as lines."""


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
    heads = ("key", "in this study", "default, if other", "meaning")
    return listed_table(f"Study {name}: {study['summary']}", heads, rows, 4)
