"""What stored numbers say in plain words, and what they cannot show (docs/methods.md#verdicts)."""

from __future__ import annotations

from collections import Counter

from biaskit.report.content import Content
from biaskit.report.findings.between_models import between_models
from biaskit.report.findings.both_engines import both_engines
from biaskit.report.findings.brief import Sentences
from biaskit.report.findings.debiasing import debiasing
from biaskit.report.findings.finding import TOPICS, Finding, Rank, Topic
from biaskit.report.findings.framing import framing
from biaskit.report.findings.groups import groups
from biaskit.report.findings.in_brief import briefs, interval_explained, leading, not_measured
from biaskit.report.findings.limits import cannot_show
from biaskit.report.findings.marked_words import marked_words
from biaskit.report.findings.probe import probe
from biaskit.report.findings.references import references
from biaskit.report.findings.relations import relations
from biaskit.report.findings.representation import representation
from biaskit.report.findings.srb import srb
from biaskit.report.findings.transfer import transfer

__all__ = [
    "READING",
    "Finding",
    "briefs",
    "cannot_show",
    "findings",
    "interval_explained",
    "leading",
    "not_measured",
    "say",
]

READING = (
    "Brackets hold plain 95 % intervals. A difference counts as shown when its interval excludes 0 and it "
    "survives Holm's adjustment among all comparisons of this page, as equivalent when its 90 % interval "
    "lies inside the margin, and as not identified where an estimator's bounds leave it open; otherwise "
    "there is no clear difference."
)
"""How to read the sentences; stands once beside them."""


def say(content: Content, found: tuple[Finding, ...]) -> Sentences:
    """Everything that a page says in sentences; `found`: its findings."""
    return Sentences(
        found,
        leading(content),
        briefs(content),
        cannot_show(content),
        not_measured(content),
        READING,
        interval_explained(content),
    )


_SAID_BY = (
    *(both_engines, probe, references, representation, srb, marked_words, groups, transfer),
    *(debiasing, framing, between_models, relations),
)


def findings(content: Content) -> tuple[Finding, ...]:
    """Say what the tables say, most important first; every number stands in a row of theirs.

    First the headline of docs/methods.md#headline where it holds, then leading sentences, then details,
    then what was not
    measured and why. Leading sentences take turns by topic, in the order of `TOPICS`, so that the first
    ones speak of every topic and not of every model in one.
    """
    ranked = [one for say in _SAID_BY for one in say(content)]
    turns: Counter[tuple[Rank, Topic]] = Counter()
    placed: list[tuple[tuple[int, int, int], Finding]] = []
    for rank, finding in ranked:
        last = Rank.NOT_MEASURED if finding.verdict == "not-measured" else rank
        turn = turns[last, finding.topic] if last == Rank.LEAD else 0
        turns[last, finding.topic] += 1
        placed.append(((last, turn, TOPICS.index(finding.topic)), finding))
    return tuple(finding for _, finding in sorted(placed, key=lambda one: one[0]))
