"""How well women's and men's texts are told apart by words that name no gender (docs/methods.md#transfer)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.content import Content
from biaskit.report.findings.finding import (
    Finding,
    Outcome,
    Ranked,
    Unit,
    difference,
    noted,
    of_models,
    outcome_of,
    parts_of,
    reasons_of,
    shared,
    tally,
    women_against_men,
)
from biaskit.report.findings.representation import are_imported, texts_measured
from biaskit.report.findings.srb import ranked
from biaskit.runs.collection import Part
from biaskit.stats.held_out import CHANCE
from biaskit.tables.quantities import ALL_OCCUPATIONS, AREAS
from biaskit.tables.query import Row, defined, distinct, first, where
from biaskit.wording import count, listed, plain_number, short

CARRIED = "auc_transfer"
WHAT = (
    "How well women's texts can be told from men's by words that are no gender words and no names (area "
    "under the curve; 0.5: as well as by a coin, 1: always)"
)
ORIGINS = {"auc_associated": "gender not in the prompt", "auc_specified": "gender in the prompt"}
IMPORTED = {"auc_associated": "gender read from the text", "auc_specified": "gender given with the text"}


def _area(over_chance: float) -> str:
    return plain_number(min(max(CHANCE + over_chance, 0.0), 1.0))


AREA = Unit(_area, lambda low, high: f"{_area(low)} to {_area(high)}", plain_number)
"""An area minus 0.5, as tests.csv has it, is written as the area."""


def transfer(content: Content) -> Iterator[Ranked]:
    """Findings of every part of the generation engine that has the table."""
    for part in parts_of(content, "personas"):
        for one in of_models(part, part.tables.get("text_transfer", ()), _of_one, _of_many):
            yield ranked(part, one)


def carried_over(part: Part, model: str) -> Row | None:
    """The test of what specified texts teach of unprompted ones against 0.5, over occupations."""
    return women_against_men(part, model, CARRIED)


def carried(part: Part, model: str) -> str:
    """The area of what specified texts teach of unprompted ones, in words."""
    return difference(carried_over(part, model), AREA, more="")


def _mean(rows: Sequence[Row], quantity: str) -> Row | None:
    trained_on, tested_on = AREAS[quantity]
    return first(rows, occupation=ALL_OCCUPATIONS, trained_on=trained_on, tested_on=tested_on)


def _said(part: Part, model: str, rows: Sequence[Row], quantity: str) -> str:
    """An area with its interval and verdict; a control has no test, and is a number."""
    test, mean = women_against_men(part, model, quantity), _mean(rows, quantity)
    if test is not None:
        clear = {"higher": ", better than by a coin", "lower": ", worse than by a coin"}
        return difference(test, AREA, more="") + clear.get(outcome_of(test), "")
    if mean is None or mean["auc"] is None:
        return f"not measured ({reasons_of([mean] if mean else [])})"
    known = mean["ci_low"] is not None
    ends = f" [{plain_number(mean['ci_low'])} to {plain_number(mean['ci_high'])}]" if known else ""
    return plain_number(mean["auc"]) + ends


def _of_one(part: Part, model: str, rows: Sequence[Row]) -> Finding:
    means = where(rows, occupation=ALL_OCCUPATIONS)
    using = texts_measured(part, [model], [])
    if not defined(means, "auc"):
        text = f"{WHAT}: not measured in {short(model)}'s texts ({reasons_of(means)})."
        return Finding(text, "transfer", "not-measured", using)
    origins = IMPORTED if are_imported(part) else ORIGINS
    n = len(distinct([row for row in defined(rows, "auc") if row not in means], "occupation"))
    known = [q for q in ORIGINS if (mean := _mean(rows, q)) is not None and mean["auc"] is not None]
    each = listed([f"{_said(part, model, rows, q)} ({origins[q]})" for q in known])
    over = f" over {count(n, 'occupation')}" if n > 1 else ""
    text = f"{WHAT}, in {short(model)}'s texts{over}: {each}."
    test, mean = carried_over(part, model), _mean(rows, CARRIED)
    measured = mean is not None and mean["auc"] is not None
    if measured:
        named = "given" if are_imported(part) else "in the prompt"
        text += f" What is learnt from texts with the gender {named} tells the others apart with an area of "
        text += f"{_said(part, model, rows, CARRIED)}{_meaning(outcome_of(test))}."
    else:
        why = reasons_of([mean] if mean else [])
        text += f" What carries over from one kind of text to the other is not measured ({why})."
    verdict = outcome_of(test if measured else women_against_men(part, model, known[0]))
    text += noted([row for q in AREAS if (row := women_against_men(part, model, q)) is not None])
    return Finding(text, "transfer", "shown" if verdict == "not-measured" else verdict, using)


def _meaning(verdict: Outcome) -> str:
    return {
        "higher": ": the same words tell women from men in both",
        "lower": ": the words of women in one are those of men in the other",
    }.get(verdict, "")


def _of_many(part: Part, models: Sequence[str], rows: Sequence[Row]) -> Finding:
    using = texts_measured(part, models, [])
    found = {
        q: [row for model in models if (row := women_against_men(part, model, q)) is not None] for q in AREAS
    }
    measured = [q for q in AREAS if found[q]]
    means = where(rows, occupation=ALL_OCCUPATIONS)
    if not measured:
        known = defined(means, "auc")
        if not known:
            text = (
                f"{WHAT}: not measured in the texts of {count(len(models), 'model')} ({reasons_of(means)})."
            )
            return Finding(text, "transfer", "not-measured", using)
        ends = sorted(row["auc"] for row in known)
        text = f"{WHAT}, in the texts of {count(len(models), 'model')}: {plain_number(ends[0])} to "
        return Finding(f"{text}{plain_number(ends[-1])}.", "transfer", "shown", using)
    origins = IMPORTED if are_imported(part) else ORIGINS
    names = {**origins, CARRIED: "learnt from texts with the gender, tested in those without"}
    clauses = []
    for quantity in measured:
        own = [outcome_of(row) for row in found[quantity]]
        areas = sorted(CHANCE + row["estimate"] for row in defined(found[quantity], "estimate"))
        span = f", from {plain_number(areas[0])} to {plain_number(areas[-1])}" if areas else ""
        said = tally(own, more="lie above 0.5", less="lie below 0.5")
        clauses.append(f"{names[quantity]}, {said}{span}")
    text = f"{WHAT}, in {count(len(models), 'model')}: {'; '.join(clauses)}."
    about = CARRIED if CARRIED in measured else measured[0]
    return Finding(text, "transfer", shared([outcome_of(row) for row in found[about]]), using)
