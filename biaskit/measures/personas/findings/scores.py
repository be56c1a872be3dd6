"""Say how a model writes: whether women's and men's texts are told apart, and what SRB shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from biaskit.common.wording import count, listed, short
from biaskit.measurement import words
from biaskit.measures.personas.findings.texts import models_of, texts_measured, whose, women_against_men
from biaskit.records import ALL
from biaskit.report.content import Content, parts_of
from biaskit.report.findings.claims import claim, templates_of
from biaskit.report.findings.finding import noted, outcome_of
from biaskit.report.findings.sentence import DETAIL, Piece, Sentence, filled, sentence_of, why
from biaskit.runs.collection import Part
from biaskit.stats.classification import CHANCE
from biaskit.stats.contrast import Contrast
from biaskit.tables.quantities import AREAS
from biaskit.tables.query import Row, defined, named, undefined, where

CARRIED = "auc_transfer"
BEYOND = 0.05
_TEMPLATES = templates_of("personas")
_SAYS: Mapping[str, Any] = words("personas")["how"]
_NOTES: Mapping[str, str] = _SAYS["notes"]


def scores(content: Content) -> Iterator[Sentence]:
    """Say what areas under the curve and SRB show; of a positive control only that it is one."""
    for part in parts_of(content.parts, "personas"):
        for model in models_of(part):
            if is_control(part):
                scored = vectors_of(part.tables["srb"])
                using = texts_measured(part, model, (), *scored, "hold-out")
                text = filled(*_SAYS["control"], whose=whose(part, model))
                yield sentence_of(text, "srb", "how", measured=using, strength=DETAIL)
                continue
            yield from _areas(part, model)
            yield from _srb(part, model)


def is_control(part: Part) -> bool:
    """Whether texts whose prompts named a gender were scored as if they had not."""
    return any(row.get("control") for row in part.tables.get("srb", ()))


def vectors_of(rows: Sequence[Row]) -> list[str]:
    """Note the vector models of scores."""
    vectors = [*map(short, named(rows, "vectors"))]
    return [f"vectors {listed(vectors)}"] if vectors else []


def _claim(
    part: Part, model: str, row: Contrast | None, missing: Sequence[Row], topic: str, *notes: str
) -> Iterator[Sentence]:
    """Make the sentence of a row with an estimate; without one say why, if there are `missing` rows.

    None of a detail whose lead is not named.
    """
    if row is not None and row.conclusion == "shown":
        return
    whose_texts, about = {"whose": whose(part, model)}, f"how-{topic}"
    templates = _TEMPLATES["separated" if topic == "transfer" else "nearer"]
    if row is not None and row.estimate is not None:
        using = texts_measured(part, model, (), *notes, *noted([row, *missing]))
        pieces = {**whose_texts, **(_pairs(row) if topic == "transfer" else {})}
        if str(row.reason).startswith("fewer than two units"):
            pieces["why"] = _SAYS["few"]
        yield claim(templates, row, topic, using, model=model, about=about, pieces=pieces)
    elif missing:
        using = texts_measured(part, model, (), *notes, *noted(missing))
        text = filled(*templates.of("not-measured"), **whose_texts, why=why(missing[0]))
        yield sentence_of(text, topic, "how", "not-measured", using, about=about)


def _areas(part: Part, model: str) -> Iterator[Sentence]:
    """Claim the first area that was measured, `auc_transfer` before the others, and note the rest."""
    means = where(part.tables.get("text_transfer", ()), occupation=ALL, model=model)
    quantities = sorted(AREAS, key=lambda quantity: quantity != CARRIED)
    measured: dict[str, Contrast] = {}
    for quantity in quantities:
        tested = women_against_men(part, model, quantity)
        if tested is not None and tested.estimate is not None:
            measured[quantity] = tested
    tried = [quantity for quantity, row in measured.items() if row.p_value is not None]
    used = next(iter(tried or measured), CARRIED)
    notes = [f"{_NOTES[used]}, without gendered words and names"]
    for quantity, other in measured.items():
        if quantity != used:
            verdict = {"higher": "", "no-clear-difference": ", no clear sign"}.get(outcome_of(other), "")
            shown = _pairs(other)
            notes.append(f"{_NOTES[quantity]}: {shown['pairs']} of 100 pairs{shown['span']}{verdict}")
    if used != CARRIED and part.imported:
        notes += noted(undefined(means, "auc")[:1])
    missing = [] if defined(means, "auc") else means
    row = measured.get(used)
    if row is not None and used != CARRIED and outcome_of(row) == "lower":  # under chance
        row = replace(row, verdict="no-clear-difference")
    yield from _claim(part, model, row, missing, "transfer", *notes)


def _pairs(row: Contrast) -> dict[str, Piece]:
    """Write an area as pairs of 100, with its interval; a decimal keeps what is not 50 from reading 50."""

    def of_hundred(over_chance: float) -> str:
        value = 100 * min(max(CHANCE + over_chance, 0.0), 1.0)
        return f"{value:.1f}" if f"{value:.0f}" == "50" and value != 50 else f"{value:.0f}"

    if row.ci_low is None:
        return {"pairs": of_hundred(row.estimate), "span": ""}
    low, high = map(of_hundred, row.shown)
    unit = "" if outcome_of(row) in ("higher", "shown") else " of 100 pairs"
    return {"pairs": of_hundred(row.estimate), "span": f" [{low} to {high}{unit}]"}


def _srb(part: Part, model: str) -> Iterator[Sentence]:
    """Claim women's SRB against men's, without gender words (methods/srb#srb-content)."""
    rows = where(part.tables.get("srb", ()), model=model)
    known, test = defined(rows, "srb"), women_against_men(part, model, "srb_content")
    notes = [*vectors_of(known), "without gendered words"]
    tested = defined(known, "srb_content_p_value")
    if tested:
        beyond = sum(row["srb_content_p_value"] <= BEYOND for row in tested)
        notes.append(_NOTES["beyond"].format(beyond, count(len(tested), "score")))
    missing: Sequence[Row] = undefined(rows, "srb")
    if known:
        missing = [test] if test is not None and test.estimate is None else []
    yield from _claim(part, model, test, missing, "srb", *notes)
