"""Prints what texts show: models side by side, a run's tables, the tables of GAS(P) and of marked words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from biaskit.common.wording import (
    count,
    percent,
    plain_number,
    point_number,
    points_range,
    share_with_interval,
    short,
)
from biaskit.measures.personas.findings.texts import (
    against_workforce,
    models_of,
    occupations_of,
    women_against_men,
)
from biaskit.measures.personas.printing.papers import paper_tables
from biaskit.measures.personas.printing.words import group_papers, word_tables
from biaskit.report.findings.finding import reason_of, reasons_of
from biaskit.report.render.cells import LABEL, UNDEFINED
from biaskit.report.render.document import PaperTable, TitledTable, listed_table
from biaskit.runs.claims import GASP
from biaskit.runs.collection import Part
from biaskit.tables.query import Row, by_person, column, defined, distinct, where

__all__ = ["headline", "papers"]


def papers(part: Part, between: Mapping[str, Sequence[Row]]) -> list[PaperTable]:
    """Make the tables of GAS(P), of marked words, and of a user's own groups."""
    groups = group_papers(part.tables.get("group_words", ()), part.tables.get("group_lists", ()))
    of_paper = paper_tables(part.tables, between, claim=part.claim(GASP))
    return [*of_paper, *word_tables(part.tables), *groups]


def headline(part: Part) -> Iterator[TitledTable]:
    """Make the table of women in texts: by occupation, against labour statistics, and their SRB.

    A user's own texts were not asked for the last two: without a number these have no column.
    """
    every = occupations_of(part)
    models = list(dict.fromkeys([*models_of(part), *distinct(every, "model")]))
    notes: dict[str, None] = {}
    shown = []
    for model in models:
        rows = where(every, model=model)
        known = defined(rows, "female_share")
        shares = column(known, "female_share")
        if shares:
            only = share_with_interval(shares[0], known[0]["ci_low"], known[0]["ci_high"])
            shown.append(only if len(shares) == 1 else f"{percent(min(shares))} to {percent(max(shares))}")
            if note := by_person(rows):
                notes[f"{model}: {note}."] = None
        else:
            shown.append(UNDEFINED)
            why = reasons_of(rows) if rows else "no texts without a gender in the prompt"
            notes[f"{UNDEFINED} women's share not measured: {why}."] = None
    columns = {"": [short(model, LABEL) for model in models], "% by occupation": shown}
    for head, cell_of in _TESTED.items():
        why_not: dict[str, None] = {}
        cells = [cell_of(part, model, why_not) for model in models]
        if not part.imported or {*cells} != {UNDEFINED}:
            columns[head] = cells
            notes |= why_not
    n = count(len(distinct(every, "occupation")), "occupation")
    title = f"{part.study}: women in texts without a gender in the prompt, {n} [95 %]"
    yield listed_table(title, columns, zip(*columns.values(), strict=True), note=" ".join(notes))


def _minus_workforce(part: Part, model: str, notes: dict[str, None]) -> str:
    test = against_workforce(part, model)
    if test is None or test.estimate is None:
        why = reason_of(test) if test is not None else "no occupation has both shares"
        notes[f"{UNDEFINED} minus workforce not measured: {why}."] = None
        return UNDEFINED
    ends = "(no interval)"
    if test.ci_low is not None:
        ends = f"[{points_range(max(test.ci_low, -1.0), min(test.ci_high, 1.0))}]"
    return f"{point_number(test.estimate)} {ends}"


def _srb(part: Part, model: str, notes: dict[str, None]) -> str:
    test = women_against_men(part, model, "srb_content")
    if test is None or test.estimate is None:
        scores = where(part.tables.get("srb", ()), model=model, srb=None)
        why = reasons_of(scores) if scores else reason_of(test or {"reason": "no score was made"})
        notes[f"{UNDEFINED} SRB not measured: {why}."] = None
        return UNDEFINED
    ends = "" if test.ci_low is None else f" [{plain_number(test.ci_low)} to {plain_number(test.ci_high)}]"
    return f"{plain_number(test.estimate)}{ends}"


_TESTED = {
    "minus workforce": _minus_workforce,
    "SRB without gendered words, women minus men": _srb,
}
