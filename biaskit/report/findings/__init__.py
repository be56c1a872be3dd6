"""What stored numbers say in plain words, and what they cannot show (docs/methods.md#verdicts)."""

from __future__ import annotations

from collections.abc import Sequence

from biaskit.report.content import Content
from biaskit.report.findings.answers import say as say_whom
from biaskit.report.findings.coverage import beside
from biaskit.report.findings.engines import agree
from biaskit.report.findings.finding import Finding, Sentences
from biaskit.report.findings.instructions import instructions
from biaskit.report.findings.labour import labour
from biaskit.report.findings.limits import cannot_show, explained, not_measured
from biaskit.report.findings.marked_words import words
from biaskit.report.findings.models import is_pair, models
from biaskit.report.findings.scores import scores
from biaskit.report.findings.sentence import STRENGTH, Said
from biaskit.report.findings.texts import write
from biaskit.report.questions import ORDER

__all__ = ["READING", "Finding", "Sentences", "cannot_show", "findings", "say"]

READING = (
    "Brackets hold 95 % intervals. A difference is named where its interval excludes 0 and it stays clear "
    "among all comparisons of the page (Holm’s adjustment), “about the same” where its 90 % interval lies "
    "inside the margin, “not identified” where an estimator’s bounds leave it open."
)
"""How to read the sentences; stands once beside them."""
N_LEADING = 3
UNCLEAR, SILENT = STRENGTH["no-clear-difference"], STRENGTH["no-verdict"]
_SAID_BY = (say_whom, labour, write, words, scores, beside, models, agree, instructions)


def findings(content: Content) -> tuple[Finding, ...]:
    """What the tables say, most important first: those of the first screen, then by question.

    What was not measured comes last. Every number stands in a row of the tables.
    """
    return say(content).findings


def say(content: Content) -> Sentences:
    """Everything that a page says in sentences."""
    found = list({one.finding: one for say_ in _SAID_BY for one in say_(content)}.values())
    first = _leading(content, found)
    rest = [one for one in found if one not in first]
    rest.sort(key=_place)
    return Sentences(
        tuple(one.finding for one in (*first, *rest)),
        len(first),
        cannot_show(content),
        not_measured(content),
        READING,
        explained([one.number for one in (*first, *rest)]),
    )


def _place(one: Said) -> tuple[bool, int, int]:
    return one.finding.verdict == "not-measured", ORDER.index(one.finding.question), one.strength


def _leading(content: Content, found: Sequence[Said]) -> list[Said]:
    """The headline, then the pair of a comparison, then what says most, each about something else.

    Where too little says something, a second sentence about one thing comes before what says nothing.
    """
    pair, by_weight = is_pair(content), sorted(found, key=lambda one: (one.strength, *_place(one)))
    if pair:
        by_weight.sort(key=lambda one: (one.strength > 0, one.finding.question != "models"))
    first: dict[str, Said] = {}
    for one in by_weight:
        if one.strength < SILENT:
            first.setdefault(one.about, one)
    more = [one for one in by_weight if one.strength < UNCLEAR and one not in first.values()]
    return [*first.values(), *more][:N_LEADING] or by_weight[:1]
