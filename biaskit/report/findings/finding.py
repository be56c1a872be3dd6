"""A finding, its verdict, and what stands beside it in its record (methods/tests#verdicts)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from biaskit.common.wording import short
from biaskit.report.content import Content
from biaskit.report.questions import QuestionId
from biaskit.stats.contrast import Contrast, Verdict
from biaskit.tables.query import Row, where
from biaskit.tables.reasons import ESTIMATORS_DIFFER, is_reason, parts_of_reason

DIRECTED: tuple[Verdict, ...] = ("higher", "lower")
MEASURED: tuple[Verdict, ...] = (*DIRECTED, "equivalent", "no-clear-difference")
MOST_WORDS = 25
N_NOTES = 3
BY_CHANCE = "false discovery rate 5 %"


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence of at most `MOST_WORDS` words with at most one estimate and its interval.

    `question` is what it answers (`report/questions.py`); `verdict` is "shown" where it only reports numbers
    (methods/tests#verdicts). `measured_with` names estimator, prompt format, n and models, and what the
    numbers rest on: reasons, bounds. Labels of models, words of texts and reasons of tables in both are
    foreign text (reference/reasons#foreign-text). `weak`: the target words hold less than a tenth of the
    probability (methods/probabilities#low-coverage).
    """

    text: str
    topic: str  # such as probe-explicit or srb
    question: QuestionId
    verdict: Verdict
    measured_with: str = ""
    weak: bool = False


@dataclass(frozen=True, slots=True)
class Sentences:
    """Everything that a page says in sentences."""

    findings: tuple[Finding, ...] = ()  # most important first: those of the first screen, then by question
    n_leading: int = 0  # how many of them stand on the first screen
    limits: tuple[str, ...] = ()  # what the numbers cannot show
    not_measured: tuple[str, ...] = ()  # what the page lacks, and the command that adds it
    reading: str = ""  # how the findings are to be read
    interval: str = ""  # what an interval is, with the page's own first number

    @property
    def leading(self) -> tuple[Finding, ...]:
        """The findings of the first screen."""
        return self.findings[: self.n_leading]


def outcome_of(row: Contrast | None) -> Verdict:
    """The verdict of a row; an estimate without an interval, or without a verdict, is a number shown."""
    if row is None:
        return "not-measured"
    known, verdict = row.estimate is not None, row.conclusion
    return "shown" if known and verdict in ("not-measured", "no-verdict") else verdict


def is_answered(content: Content, question: QuestionId) -> bool:
    """Tell whether any lead of a question is named on the page."""
    return any(outcome_of(row) in DIRECTED for row in leads_of(content, question))


def leads_of(content: Content, question: QuestionId) -> list[Contrast]:
    """Pick the rows that answer a question (methods/tests#verdicts)."""
    return where(content.every_test, question=question, lead=True)


def shared(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict of a sentence about several rows: theirs where all agree, else a number shown."""
    return verdicts[0] if verdicts and len(set(verdicts)) == 1 else "shown"


def noted(rows: Sequence[Row | None]) -> list[str]:
    """List the reasons of rows, each once: what their numbers lack, leave out or are conditional on."""
    present = [row for row in rows if row is not None]
    counts: Counter[str] = Counter()
    for row in present:
        if row["reason"]:
            counts.update(map(short, parts_of_reason(row["reason"])))
    notes = []
    for reason, n in sorted(counts.items(), key=lambda item: not is_reason(item[0], ESTIMATORS_DIFFER)):
        notes.append(f"{reason} ({n} of {len(present)} numbers)" if n < len(present) else reason)
    if len(notes) > N_NOTES:
        notes[N_NOTES:] = [f"{len(notes) - N_NOTES} more in the table"]
    return notes


def measured_by(*bits: str, notes: Sequence[str] = ()) -> str:
    """Write `Finding.measured_with`: how it was measured, then what the numbers rest on."""
    return "; ".join([", ".join(filter(None, bits)), *notes])


def reason_of(row: Mapping[str, Any]) -> str:
    """The reason of a row for a missing number."""
    return short(str(row.get("reason") or "")) or "no reason given"


def reasons_of(rows: Sequence[Row]) -> str:
    """Join the three most frequent reasons of rows, each with how many rows have it."""
    counted = Counter(map(reason_of, rows)).most_common(3)
    if len(counted) == 1:
        return counted[0][0]
    return "; ".join(f"{n} × {reason}" for reason, n in counted)
