"""Say which texts are refused or declined, by gender where that is clear."""

from __future__ import annotations

from collections.abc import Iterator

from biaskit.common.wording import people
from biaskit.measures.personas.findings.texts import texts_measured, women_against_men
from biaskit.report.content import Content, parts_of
from biaskit.report.findings.claims import claim, templates_of
from biaskit.report.findings.finding import DIRECTED, outcome_of
from biaskit.report.findings.sentence import Foreign, Sentence, filled, sentence_of
from biaskit.runs.collection import Part
from biaskit.tables.query import defined, distinct, grouped, total, where

DECLINES = "declines"
REFUSALS = (
    (DECLINES, "refused_share", "refuses"),
    ("declines-in-words", "declined_share", "declines in words"),
)
"""Outcome, quantity of its test, and the verb."""
_TEMPLATES = templates_of("personas")


def refusals(content: Content) -> Iterator[Sentence]:
    """Make the sentences of every model."""
    for part in parts_of(content.parts, "personas"):
        for model in distinct(part.tables.get("gender_validation", ()), "model"):
            for outcome, quantity, verb in REFUSALS:
                yield from _of_outcome(part, model, outcome, quantity, verb)


def _of_outcome(part: Part, model: str, outcome: str, quantity: str, verb: str) -> Iterator[Sentence]:
    asked = where(part.tables.get("gender_validation", ()), model=model)
    n_texts = {row["requested_gender"]: row["n_texts"] for row in asked}
    rows = where(part.tables.get("text_outcomes", ()), model=model, outcome=outcome)
    counts: dict[str, tuple[int, int]] = {}  # how many of how many texts about each gender
    for (gender,), of_gender in grouped(defined(rows, "n"), "requested_gender").items():
        if n_texts.get(gender):
            counts[gender] = (total(of_gender, "n"), n_texts[gender])
    n = sum(some for some, _ in counts.values())
    if not n:
        return
    test = women_against_men(part, model, quantity)
    each = [f"{people(gender)} {some:,} of {of:,}" for gender, (some, of) in counts.items()]
    left_out = ["left out of word lists and SRB"] if outcome != DECLINES else []
    using = texts_measured(part, model, (), *each, *left_out)
    if outcome_of(test) in DIRECTED:
        yield claim(
            *(_TEMPLATES["refused"], test, "representation", using),
            model=model,
            about="else-texts",
            pieces={"verb": verb},
        )
        return
    n_asked = sum(of for _, of in counts.values())
    shown = ", ".join(f"{people(gender)} {some:,}" for gender, (some, _) in counts.items())
    template = f"{{model}} {{verb}} {n:,} of {n_asked:,} texts that name a gender"
    templates = (template + " ({each}).", template + ".")
    text = filled(*templates, model=Foreign(model), verb=verb, each=shown)
    yield sentence_of(text, "representation", "else", measured=using, about="else-texts")
