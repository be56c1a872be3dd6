"""What is said of texts: sentences in the order of saying, slopes, and what the numbers cannot show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.common.wording import count, short
from biaskit.measurement import words as words_of
from biaskit.measures.personas.findings.refusals import refusals
from biaskit.measures.personas.findings.scores import is_control, scores
from biaskit.measures.personas.findings.texts import are_imported, measured, slopes, workforce, write
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
        yield said["by_words"]
    if False in imported:
        yield said["settings"]
    vectors = distinct(scored, "vectors")
    if vectors:
        yield said["raw_srb"]
    if len(vectors) > 1:
        yield said["vector_models"].format(len(vectors))


def not_measured(parts: Sequence[Part]) -> Iterator[str]:
    """Name the command that adds SRB, where there is none."""
    said = words_of("personas")["limits"]
    for part in parts_of(parts, "personas"):
        if not defined(part.tables.get("srb", ()), "srb") or is_control(part):
            yield said["no_srb_imported" if are_imported(part) else "no_srb"]
