"""What mentions show: whether a word is in more than half of the texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.measurement import words
from biaskit.report.content import Content, parts_of
from biaskit.report.findings.claims import claim, templates_of
from biaskit.report.findings.finding import measured_by
from biaskit.report.findings.sentence import Sentence
from biaskit.runs.collection import Part
from biaskit.tables.query import where


def findings(content: Content) -> Iterator[Sentence]:
    """Say of each model whether it mentions the word in more than half of its texts."""
    for part in parts_of(content.parts, "mentions"):
        for row in where(part.tests, contrast="half"):
            half, model = templates_of("mentions")["half"], row.model_a
            using = measured_by(f"{row.n_a} jobs")
            yield claim(half, row, "mentions", using, model=model, about=model)


def limits(parts: Sequence[Part]) -> Iterator[str]:
    """Say what a word does not show."""
    if parts_of(parts, "mentions"):
        yield words("mentions")["limits"]["word"]
