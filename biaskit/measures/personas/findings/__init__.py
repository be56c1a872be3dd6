"""What is said of texts: sentences in the order of saying, slopes, and what the numbers cannot show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from biaskit.common.wording import count, listed, short
from biaskit.corpora.languages import ENGLISH, shipped_language
from biaskit.measurement import words as words_of
from biaskit.measures.personas.findings.refusals import refusals
from biaskit.measures.personas.findings.scores import is_control, scores
from biaskit.measures.personas.findings.texts import language_of, measured, slopes, workforce, write
from biaskit.measures.personas.findings.words import words
from biaskit.records import ALL, UNNAMED
from biaskit.report.content import Content, parts_of
from biaskit.report.findings.limits import FEW_ITEMS, LIMITS, used_formats
from biaskit.report.findings.sentence import Sentence
from biaskit.runs.collection import Part
from biaskit.tables.query import Row, defined, distinct, n_known, total, where

__all__ = ["findings", "limits", "measured", "not_measured", "slopes"]


def findings(content: Content) -> Iterator[Sentence]:
    """Say whom texts are about, which words mark whom, whether texts are told apart, which are refused."""
    yield from workforce(content)
    yield from write(content)
    yield from words(content)
    yield from scores(content)
    yield from refusals(content)


def limits(parts: Sequence[Part]) -> Iterator[str]:
    """Say how texts were asked for, what their words can tell, and what raw scores rest on."""
    said, own = words_of("personas")["limits"], parts_of(parts, "personas")
    represented: list[Row] = []
    scored: list[Row] = []
    for part in own:
        represented += part.tables.get("representation", ())
        scored += defined(part.tables.get("srb", ()), "srb")
    if any(row.get("workforce_share") is not None for row in represented):
        yield LIMITS["workforce"]
    for part in own:
        occupations = distinct(part.tables.get("representation", ()), "occupation")
        n = len(occupations)
        if n == 1 and occupations != [UNNAMED]:
            yield said["one_occupation"].format(short(part.study), short(occupations[0]))
        elif 0 < n < FEW_ITEMS:
            yield said["few_occupations"].format(short(part.study), count(n, "occupation"))
    yield from used_formats(own, "texts")
    imported = {model.where == "texts" for part in own for model in part.models}
    if True in imported:
        yield said["imported"]
    n_texts = total(where(represented, template_id=ALL), "n_texts")
    if n := n_known(represented):
        yield said["known"].format(n, n_texts)
    if n < n_texts:
        yield from _of_rules(own, said)
    if False in imported:
        yield said["settings"]
    vectors = distinct(scored, "vectors")
    if vectors:
        yield said["raw_srb"]
    if len(vectors) > 1:
        yield said["vector_models"].format(len(vectors))


def _of_rules(parts: Sequence[Part], said: Mapping[str, Any]) -> Iterator[str]:
    """Say which words a gender is inferred from, and what the rules of other languages than English miss."""
    read: dict[str, Mapping[str, Any]] = {}
    for part in parts:
        for model in part.models:
            own = language_of(part, model.label)
            if own or model.language.get("language", ENGLISH):
                read[own.get("language", ENGLISH)] = own
    such_as = []
    for own in read.values():
        such_as += own.get("such_as", shipped_language(ENGLISH).such_as)
    if such_as:
        yield said["by_words"].format(listed([f"“{short(word)}”" for word in such_as]))
    for own in filter(None, read.values()):
        yield from map(str, own["traps"])
        for limit in ("agreement", "bounds"):
            yield said[limit].format(short(own["name"]))
        if not own["read_by"]:
            yield said["unread_by"].format(short(own["name"]))
    if any(read.values()):
        yield said["english_words"]


def not_measured(parts: Sequence[Part]) -> Iterator[str]:
    """Name the command that adds SRB, where there is none."""
    said = words_of("personas")["limits"]
    for part in parts_of(parts, "personas"):
        in_english = any(not language_of(part, model.label) for model in part.models)
        if in_english and (not defined(part.tables.get("srb", ()), "srb") or is_control(part)):
            yield said["no_srb_imported" if part.imported else "no_srb"]
