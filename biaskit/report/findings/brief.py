"""A finding in one short sentence, for the open page; the long ones stand behind it."""

from __future__ import annotations

from dataclasses import dataclass

from biaskit.report.findings.finding import Finding, Outcome
from biaskit.report.questions import QuestionId

MOST_WORDS = 25


@dataclass(frozen=True, slots=True)
class Brief:
    """One sentence of at most `MOST_WORDS` words with at most one estimate and its interval.

    `verdict` is what it comes to, "shown" where it only reports; models' labels and words of texts in it are
    foreign text (docs/reading.md#foreign-text).
    """

    text: str
    question: QuestionId
    verdict: Outcome


@dataclass(frozen=True, slots=True)
class Sentences:
    """Everything that a page says in sentences."""

    findings: tuple[Finding, ...] = ()  # in full, most important first
    leading: tuple[Brief, ...] = ()  # of the first screen
    briefs: tuple[Brief, ...] = ()  # of each question, most important first
    limits: tuple[str, ...] = ()  # what the numbers cannot show
    not_measured: tuple[str, ...] = ()  # what the page does not hold, and the command that would
    reading: str = ""  # how the findings are to be read
    interval: str = ""  # what an interval is, with the page's own first number
