"""Make short sentences: within the limit of words, foreign names cut, no direction without a verdict."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from biaskit.common.wording import (
    PEOPLE,
    listed,
    percent,
    percent_range,
    plain_number,
    point_number,
    points,
    points_range,
    short,
)
from biaskit.measurement import stated
from biaskit.report.findings.finding import DIRECTED, MOST_WORDS, Finding, reason_of
from biaskit.report.questions import QuestionId
from biaskit.stats.contrast import Contrast, Verdict
from biaskit.study.keys import is_fraction
from biaskit.tables.coverage import LITTLE, WEAK, Coverage, is_under
from biaskit.tables.query import Row

LONGEST_NAME = 12
SHORTEST_NAME = 3
"""Words that a foreign text keeps at least, before a shorter template is tried."""
NAME_LENGTH = 40

STRENGTH: Mapping[Verdict, int] = {
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
"""Strengths of sentences that do not follow from their verdict; 0 says most."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A finding with what it is about, how much it says (0 most), and its first number."""

    finding: Finding
    about: str
    strength: int
    number: str = ""
    beside: Finding | None = None  # the one that it follows wherever that stands


def sentence_of(
    text: str,
    topic: str,
    question: QuestionId,
    verdict: Verdict = "shown",
    measured: str = "",
    *,
    about: str = "",
    number: str = "",
    strength: int | None = None,
    weak: bool = False,
) -> Sentence:
    """Make a sentence; its strength follows from its verdict where none is given, less where it is weak."""
    finding = Finding(text, topic, question, verdict, measured, weak)
    strength = max(STRENGTH[verdict] if strength is None else strength, WEAKER * weak)
    return Sentence(finding, about or question, strength, number)


# --- the text ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Foreign:
    """A name or word that is not ours: short, and cut where the sentence is too long."""

    text: object
    before: str = ""
    after: str = ""
    longest: int = NAME_LENGTH

    def at_most(self, words: int, *, ends: bool = False) -> str:
        """Cut the text to so many words, its first or its last."""
        parts = short(self.text, self.longest).split(" ")
        cut = " ".join(parts)
        if len(parts) > words:
            kept = " ".join(parts[-words:] if ends else parts[:words])
            cut = f"…{kept}" if ends else kept.rstrip("…") + "…"
        return f"{self.before}{cut}{self.after}"


Piece = str | Foreign
OPENS = re.compile(r"\{(\w+)\}")
"""A piece that opens a sentence: a foreign name keeps its first letter, our own words get a capital."""


def filled(*templates: str, **pieces: Piece) -> str:
    """Fill the first template that stays within `MOST_WORDS`, foreign names cut as little as needed.

    A weak opening comes last, so that the sentence begins with what is said.
    """
    opened, last, text = pieces.get("opening", ""), "", ""
    if isinstance(opened, str) and opened.startswith(WEAK_EVIDENCE):
        templates, last = tuple(text.replace(OPENING, "") for text in templates), f"; {opened}"
    foreign = {name: piece for name, piece in pieces.items() if isinstance(piece, Foreign)}
    n_names = len({piece.text for piece in foreign.values()})
    for template, n in _tries(templates):
        cut = {name: piece.at_most(n) for name, piece in foreign.items()}
        if len(set(cut.values())) < n_names:  # "m (a)", "m (b)": m…
            cut = {name: piece.at_most(n, ends=True) for name, piece in foreign.items()}
        text = template.format(**(pieces | cut))
        opens = OPENS.match(template)
        first = pieces[opens[1]] if opens else ""
        if isinstance(first, str) or first.before:
            text = text[:1].upper() + text[1:]
        if n_words(text) <= MOST_WORDS:
            return f"{text[:-1]}{last}." if last else text
    n_kept = MOST_WORDS - 1 + len(text.split()) - n_words(text)
    return " ".join(text.split()[:n_kept]) + f" …{last}"


def _tries(templates: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield templates with the words that a foreign text may keep: every template before very short names."""
    for most, least in ((LONGEST_NAME, SHORTEST_NAME), (SHORTEST_NAME - 1, 1)):
        for template in templates:
            for n in range(most, least - 1, -1):
                yield template, n


# --- pieces of it ------------------------------------------------------------------------------------

WEAK_EVIDENCE, OPENING = "weak evidence", "{opening}, "
OPENINGS: Mapping[str, str] = stated("openings")
"""Bias type → how a model was asked."""
_SAID = "(she|he|they|“[^”]*”)"
UNCOUNTED = re.compile(
    r"^corrected by labels:|; weak evidence[^;]*(?=\.$)"
    rf"|\bof {_SAID} and {_SAID}( \([^()]*\))?,?|\bamong the target words \([^()]*\),?"
    rf"|; (it says )?{_SAID} in [^;]*?(?=\.$|; weak)"
    rf"|: \d+ {_SAID}(, \d+ {_SAID})*|[;(] ?\d+ (more )?changed near a tie\)?",
    re.IGNORECASE,
)
"""What a number is a share of, how much that is, how much belongs to neither group (`beside`), counts."""


def asked_as(row: Contrast) -> str:
    """Find the name under which it is said how a row's models were asked: a bias type, else a kind."""
    return row.bias_type or (row.measurement if row.measurement in OPENINGS else "")


def opening(bias_type: str, *coverage: Coverage, of: Sequence[str] = (), whose: str = "its") -> str:
    """Say how models were asked, and how little of their probability the numbers rest on; "" of no way.

    `of`: the two groups that a share is of, where it is not of all target words.
    """
    asked = OPENINGS.get(bias_type, "asked") if bias_type else ""
    two, held = " and ".join(map(pronoun, of)), ""
    if any(is_under(ends, LITTLE) for ends in coverage):
        parts = dict.fromkeys(f"{percents(ends)} %" for ends in coverage if ends is not None)
        held = f" ({' and '.join(parts)} of {whose} probability)"
    among = f"of {two}{held}" if of else f"among the target words{held}" * bool(held)
    weak = any(is_under(ends, WEAK) for ends in coverage)
    return f"{WEAK_EVIDENCE}: " * weak + ", ".join(filter(None, (asked, among)))


def percents(ends: tuple[float, float]) -> str:
    """Write '3', or '3–5', in percent."""
    low, high = map(percent, ends)
    return low if low == high else percent_range(*ends)


def n_words(text: str) -> int:
    """Count the words of a sentence without those to which no interval may be lost."""
    return len(UNCOUNTED.sub("", text).split())


def who(gender: str) -> Piece:
    """Name a gender, or the study's own group in quotation marks."""
    return PEOPLE[gender] if gender in PEOPLE else Foreign(gender, "“", "”")


PRONOUNS: Mapping[str, str] = {"female": "she", "male": "he", "diverse": "they"}


def pronoun(gender: str) -> str:
    """Name the target words of a gender by their pronoun, of a study's own group by its name."""
    return PRONOUNS.get(gender) or f"“{short(gender, LONGEST_NAME)}”"


def beside(says: str, shares: Mapping[str, str]) -> str:
    """Write '; it says they in 30 and 37 %': the shares of what belongs to neither group, by gender."""
    listed_shares = [f"{pronoun(gender)} in {share}" for gender, share in shares.items()]
    return f"; {says}{' and '.join(listed_shares)}" if shares else ""


def amount(row: Contrast) -> str:
    """Write an estimate without its sign: the words beside it say the direction."""
    size = abs(row.estimate)
    return f"{plain_number(size)} nats" if _is_log_ratio(row) else points(size)


def ends(row: Contrast) -> str:
    """Write the interval beside an amount with a direction, its sign turned for "less"; "" without one."""
    if row.ci_low is None:
        return ""
    low, high = row.shown
    return f" [{_range(row, low, high) if row.estimate >= 0 else _range(row, -high, -low)}]"


def tells(row: Contrast) -> bool:
    """Whether an interval excludes anything: shares lie at most 1 apart, and gaps between them 2."""
    most = math.inf if _is_log_ratio(row) else 1 + row.whole.endswith("_gap")
    return row.ci_low is not None and max(map(abs, row.shown)) < most


def measured_at(row: Contrast) -> str:
    """Write '−8 points [−27 to 10], up to 27 are possible', of what is unclear; "" without an interval."""
    if row.ci_low is None:
        return ""
    low, high = row.shown
    most, in_nats = max(abs(low), abs(high)), _is_log_ratio(row)
    show, unit = (plain_number, "nats") if in_nats else (point_number, "points")
    possible = f"up to {show(most)} are possible" if tells(row) else "which rules nothing out"
    return f": {show(row.estimate)} {unit} [{_range(row, low, high)}], {possible}"


def span(row: Contrast) -> str:
    """Write the interval beside no direction; "" without one."""
    unit = "nats" if _is_log_ratio(row) else "points"
    return "" if row.ci_low is None else f" [{_range(row, *row.shown)} {unit}]"


def _range(row: Contrast, low: float, high: float) -> str:
    return f"{plain_number(low)} to {plain_number(high)}" if _is_log_ratio(row) else points_range(low, high)


def _is_log_ratio(row: Contrast) -> bool:
    return row.quantity.startswith("log_ratio")


def number(row: Contrast, verdict: Verdict) -> str:
    """Write '14 points [9 to 19]', which the page explains once; without a direction the interval alone."""
    if row.ci_low is None:
        return ""
    if verdict in DIRECTED:
        return f"{amount(row)}{ends(row)}"
    return span(row).strip() if verdict == "no-clear-difference" else ""


def within(*rows: Contrast) -> str:
    """Write ' (within ±5 points)', what "about the same" means; "" where rows have no margin."""
    of_gaps: dict[str, bool] = {}  # a margin as it is written, and whether gaps alone have it
    for row in rows:
        if row.margin is not None:
            margin = points(row.margin) if is_fraction(row.quantity) else f"{row.margin:g}"
            of_gaps[margin] = of_gaps.get(margin, True) and row.whole == "group_gap"
    margins = [f"gaps ±{margin}" if gaps else f"±{margin}" for margin, gaps in of_gaps.items()]
    if len(margins) == 1:
        margins = [margins[0].removeprefix("gaps ")]
    return f" (within {listed(margins)})" if margins else ""


def why(row: Row | None) -> Foreign:
    """Say why a row, or its number, is missing."""
    return Foreign("no test was made" if row is None else reason_of(row), longest=2 * NAME_LENGTH)
