"""How a short sentence is made: within the limit, foreign names cut, no direction without a verdict."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from biaskit.common.wording import PEOPLE, points, points_range, short
from biaskit.report.findings.finding import (
    DIRECTED,
    MOST_WORDS,
    Finding,
    Outcome,
    Topic,
    possible_ends,
    reason_of,
)
from biaskit.report.questions import QuestionId
from biaskit.stats.verdict import interval_side
from biaskit.tables.query import Row

LONGEST_NAME = 12
SHORTEST_NAME = 3
"""A foreign text is cut to so many words before a shorter sentence is taken."""
NAME_LENGTH = 40

STRENGTH: Mapping[Outcome, int] = {
    "higher": 1,
    "lower": 1,
    "equivalent": 2,
    "no-clear-difference": 3,
    "shown": 3,
    "not-identified": 4,
    "no-verdict": 4,
    "not-measured": 5,
}
HEADLINE, CLEAR, WEAKER, RESTATED, DETAIL = 0, 1, 2, 3, 4
"""How much a sentence says where that does not follow from its verdict."""
ALL_COUNTED = ", all comparisons considered"
"""Said of a row whose interval would show a difference if it stood alone."""


@dataclass(frozen=True, slots=True)
class Said:
    """A finding with what it is about, how much it says (0 most), and its first number."""

    finding: Finding
    about: str
    strength: int
    number: str = ""


def said(
    text: str,
    topic: Topic,
    question: QuestionId,
    verdict: Outcome = "shown",
    measured: str = "",
    *,
    about: str = "",
    number: str = "",
    strength: int | None = None,
) -> Said:
    """A sentence; its strength follows from its verdict where none is given."""
    how_much = STRENGTH[verdict] if strength is None else strength
    return Said(Finding(text, topic, question, verdict, measured), about or question, how_much, number)


# --- the sentence ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Foreign:
    """A name or word that is not ours: short, and cut where the sentence is too long."""

    text: object
    before: str = ""
    after: str = ""
    longest: int = NAME_LENGTH

    def at_most(self, words: int) -> str:
        """The text with no more words than these."""
        own = short(self.text, self.longest).split(" ")
        cut = " ".join(own) if len(own) <= words else " ".join(own[:words]).rstrip("…") + "…"
        return f"{self.before}{cut}{self.after}"


Piece = str | Foreign
OPENS = re.compile(r"\{(\w+)\}")
"""A name that opens a sentence stays as it is; words of ours begin with a capital."""


def sentence(*templates: str, **pieces: Piece) -> str:
    """The first of these templates that stays within the limit, foreign names cut as little as it takes."""
    tries = [
        (template, n)
        for most, least in ((LONGEST_NAME, SHORTEST_NAME), (SHORTEST_NAME - 1, 1))
        for template in templates
        for n in range(most, least - 1, -1)
    ]
    text = ""
    for template, n in tries:
        filled = {
            name: piece.at_most(n) if isinstance(piece, Foreign) else piece for name, piece in pieces.items()
        }
        text = template.format(**filled)
        first = pieces[field[1]] if (field := OPENS.match(template)) else ""
        if isinstance(first, str) or first.before:
            text = text[:1].upper() + text[1:]
        if len(text.split()) <= MOST_WORDS:
            return text
    return " ".join(text.split()[: MOST_WORDS - 1]) + " …"


# --- pieces of it ------------------------------------------------------------------------------------

OPENINGS = {"explicit": "asked outright", "implicit": "finishing a sentence"}


def opening(bias_type: str, *, weak: bool = False) -> str:
    """How the model was asked, and that little stands behind it where it does."""
    return f"{'weak evidence: ' if weak else ''}{OPENINGS.get(bias_type, 'asked')}"


def who(gender: str) -> Piece:
    """A gender, or the study's own group in quotation marks."""
    return PEOPLE[gender] if gender in PEOPLE else Foreign(gender, "“", "”")


def amount(row: Row) -> str:
    """How much, without a sign: the words beside it say the direction."""
    return points(abs(row["estimate"]))


def ends(row: Row) -> str:
    """The interval beside a directed amount, turned where the words say less; empty where there is none."""
    if row["ci_low"] is None:
        return ""
    low, high = possible_ends(row)
    return f" [{points_range(low, high) if row['estimate'] >= 0 else points_range(-high, -low)}]"


def span(row: Row) -> str:
    """The interval alone, beside no direction; words where it alone would show one."""
    if row["ci_low"] is None:
        return ""
    return ALL_COUNTED if interval_side(row) else f" [{points_range(*possible_ends(row))} points]"


def number(row: Row, verdict: Outcome) -> str:
    """'14 points [9 to 19]', as the page explains it once; beside no direction the interval alone."""
    if row["ci_low"] is None:
        return ""
    if verdict in DIRECTED:
        return f"{amount(row)}{ends(row)}"
    return span(row).strip() if verdict == "no-clear-difference" and not interval_side(row) else ""


def within(*rows: Row) -> str:
    """' (within ±5 points)', what "about the same" means; nothing where rows have no margin or several."""
    margins = {row["margin"] for row in rows if row.get("margin") is not None}
    return f" (within ±{points(*margins)})" if len(margins) == 1 else ""


def why(row: Row | None) -> Foreign:
    """The reason for what a row does not hold."""
    return Foreign("no test was made" if row is None else reason_of(row), longest=2 * NAME_LENGTH)
