"""A finding in one short sentence, for the open page; the long ones stand behind it."""

from __future__ import annotations

from dataclasses import dataclass

from biaskit.report.findings.finding import Outcome
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
