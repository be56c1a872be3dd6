"""Findings in short sentences, for the open page; each says what the rows behind a long finding say."""

from __future__ import annotations

from collections.abc import Sequence

from biaskit.report.content import Content
from biaskit.report.findings.brief import Brief
from biaskit.report.findings.in_brief import sure
from biaskit.report.findings.in_brief.agree import agree
from biaskit.report.findings.in_brief.beside import beside
from biaskit.report.findings.in_brief.instructions import instructions
from biaskit.report.findings.in_brief.labour_words import labour_words
from biaskit.report.findings.in_brief.models import is_pair, models
from biaskit.report.findings.in_brief.say import say
from biaskit.report.findings.in_brief.scores import scores
from biaskit.report.findings.in_brief.sentence import STRENGTH, Said
from biaskit.report.findings.in_brief.words import words
from biaskit.report.findings.in_brief.write import write
from biaskit.report.questions import ORDER

__all__ = ["briefs", "interval_explained", "leading", "not_measured"]

_SAID_BY = (say, labour_words, write, words, scores, beside, models, agree, instructions)
N_LEADING = 3
UNCLEAR, SILENT = STRENGTH["no-clear-difference"], STRENGTH["no-verdict"]
not_measured = sure.not_measured


def briefs(content: Content) -> tuple[Brief, ...]:
    """Short sentences by question, in the order of the page; within one, those that say most first."""
    return tuple(one.brief for one in _all(content))


def leading(content: Content) -> tuple[Brief, ...]:
    """At most three sentences for the first screen, each about something else."""
    return tuple(one.brief for one in _leading(content, _all(content)))


def interval_explained(content: Content) -> str:
    """What the first interval of the page means, in a sentence; "" on a page without one."""
    found = _all(content)
    return sure.explained([*_leading(content, found), *found])


def _all(content: Content) -> list[Said]:
    found = {one.brief: one for say_ in _SAID_BY for one in say_(content)}
    return sorted(found.values(), key=lambda one: (ORDER.index(one.brief.question), one.strength))


def _leading(content: Content, found: Sequence[Said]) -> list[Said]:
    """The headline, then the pair of a comparison, then what says most, each about something else.

    Where too little says something, a second sentence about one thing comes before what says nothing.
    """
    pair = is_pair(content)
    by_weight = sorted(found, key=lambda one: (one.strength, not (pair and one.brief.question == "models")))
    if pair:
        by_weight = sorted(by_weight, key=lambda one: (one.strength > 0, one.brief.question != "models"))
    first: dict[str, Said] = {}
    for one in by_weight:
        if one.strength < SILENT:
            first.setdefault(one.about, one)
    more = [one for one in by_weight if one.strength < UNCLEAR and one not in first.values()]
    return [*first.values(), *more][:N_LEADING] or by_weight[:1]
