"""How a model writes: whether women's and men's texts are told apart, and whether SRB shows a difference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.content import Content
from biaskit.report.findings.finding import Outcome, outcome_of, parts_of, shared, women_against_men
from biaskit.report.findings.in_brief.sentence import (
    STRENGTH,
    Said,
    said,
    sentence,
    strength_of,
)
from biaskit.report.findings.in_brief.several import counted
from biaskit.report.findings.in_brief.write import things, whose
from biaskit.report.findings.srb import is_control, women_minus_men
from biaskit.report.findings.transfer import ORIGINS, carried_over
from biaskit.runs.collection import Part
from biaskit.stats.held_out import CHANCE
from biaskit.tables.query import Row


def scores(content: Content) -> Iterator[Said]:
    """What areas and SRB come to; a positive control comes to nothing."""
    for part in parts_of(content, "personas"):
        if not is_control(part):
            yield from _told_apart(part)
            yield from _nearer(part)


def _told_apart(part: Part) -> Iterator[Said]:
    tests = {model: row for model in _models(part) if (row := _area(part, model)) is not None}
    if len(tests) == 1:
        yield from (_area_of_one(part, model, row) for model, row in tests.items())
    elif tests:
        yield _of_many(part, [outcome_of(row) for row in tests.values()], _AREAS)


def _models(part: Part) -> list[str]:
    return [model.label for model in part.models]


def _area(part: Part, model: str) -> Row | None:
    """The test that the long finding goes by: what carries over, else one kind of text alone."""
    found = [carried_over(part, model), *(women_against_men(part, model, quantity) for quantity in ORIGINS)]
    return next((row for row in found if row is not None and row["estimate"] is not None), None)


def _area_of_one(part: Part, model: str, row: Row) -> Said:
    verdict = outcome_of(row)
    pairs, span = _pairs(row)
    text = sentence(
        *_AREA.get(verdict, ("Without gender words, no verdict on telling women from men in {whose}.",)),
        whose=whose(part, [model]),
        pairs=pairs,
        span=span,
    )
    strength = STRENGTH["no-verdict"] if verdict == "shown" else STRENGTH[verdict]
    return said(text, "how", verdict, about="how-apart", strength=strength)


_AREA = {
    "higher": (
        "Without gender words, women’s and men’s texts among {whose} are told apart in {pairs} of 100 "
        "pairs{span}; a coin gives 50.",
        "Without gender words, {whose} on women and men are told apart in {pairs} of 100 pairs{span}.",
    ),
    "lower": (
        "Words that mark women in texts with a given gender mark men in the rest of {whose}.",
        "Words that mark women with the gender given mark men in the rest of {whose}.",
    ),
    "equivalent": (
        "Without gender words, women’s and men’s texts among {whose} are told apart as by a coin.",
    ),
    "no-clear-difference": (
        "Without gender words, no clear sign that {whose} on women and on men can be told apart{span}.",
        "Without gender words, no clear sign that {whose} on women and men differ.",
    ),
    "not-identified": ("Whether {whose} on women and men can be told apart is not identified.",),
}


def _pairs(row: Row) -> tuple[str, str]:
    """An area as how often of 100 pairs, and its interval; one that excludes a half never touches it."""

    def of_hundred(over_chance: float) -> str:
        value = 100 * min(max(CHANCE + over_chance, 0.0), 1.0)
        return f"{value:.1f}" if f"{value:.0f}" == "50" and value != 50 else f"{value:.0f}"

    if row["ci_low"] is None:
        return of_hundred(row["estimate"]), ""
    low, high = of_hundred(row["ci_low"]), of_hundred(row["ci_high"])
    unit = "" if outcome_of(row) == "higher" else " of 100 pairs"
    return of_hundred(row["estimate"]), f" [{low} to {high}{unit}]"


_AREAS: dict[Outcome, str] = {
    "higher": "write about women and men in words that tell them apart, without gender words",
    "lower": "turn the words of women and men round where no gender is asked for",
    "equivalent": "write about women and men in words that tell them apart no better than a coin",
    "no-clear-difference": "show no clear sign of words that tell women from men, beyond gender words",
    "not-identified": "leave open whether words tell women from men",
    **dict.fromkeys(("shown", "no-verdict"), "have no verdict on words that tell women from men"),
    "not-measured": "have no measured words that tell women from men",
}


def _of_many(part: Part, verdicts: Sequence[Outcome], clauses: dict[Outcome, str]) -> Said:
    text = counted(verdicts, clauses, after={"higher": "apart", "lower": "reversed"}, things=things(part))
    return said(text, "how", shared(verdicts), about="how-scores", strength=strength_of(verdicts))


def _nearer(part: Part) -> Iterator[Said]:
    tests = {model: row for model in _models(part) if (row := women_minus_men(part, model)) is not None}
    tests = {model: row for model, row in tests.items() if row["estimate"] is not None}
    if len(tests) == 1:
        for model, row in tests.items():
            verdict = outcome_of(row)
            text = sentence(
                *_NEAR.get(verdict, ("No verdict on how differently {whose} describe women and men.",)),
                whose=whose(part, [model]),
            )
            strength = STRENGTH["no-verdict"] if verdict == "shown" else STRENGTH[verdict]
            yield said(text, "how", verdict, about="how-srb", strength=strength)
    elif tests:
        yield _of_many(part, [outcome_of(row) for row in tests.values()], _NEARER)


_NEAR = {
    "lower": (
        "In {whose}, words for women are nearer than words for men to texts meant to be about a woman.",
    ),
    "higher": (
        "In {whose}, words for women are farther than words for men from texts meant to be about a woman.",
    ),
    "equivalent": ("In {whose}, words for women and for men are about equally near to texts about a woman.",),
    "no-clear-difference": (
        "In {whose}, no clear sign that words for women resemble texts about women more than those for men.",
        "In {whose}, no clear sign that words for women resemble texts about women more.",
    ),
    "not-identified": ("How differently {whose} describe women and men is not identified.",),
}
_NEARER: dict[Outcome, str] = {
    "lower": "describe women, more than men, as texts about women do",
    "higher": "describe men, more than women, as texts about women do",
    "equivalent": "describe women and men about equally like texts about women",
    "no-clear-difference": "show no clear sign that women’s and men’s descriptions differ in kind",
    "not-identified": "leave open how differently women and men are described",
    **dict.fromkeys(("shown", "no-verdict"), "have no verdict on how women and men are described"),
    "not-measured": "have no measure of how women and men are described",
}
