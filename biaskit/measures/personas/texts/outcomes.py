"""What a text is: about a person or nobody, a refusal, a lecture; by rules (methods/probabilities#outcomes).

The rules are data (`corpora/outcomes/texts.toml`). Whether a server refused a text is another question:
`finish` says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from biaskit.corpora.outcome_rules import OutcomeRules, load_outcome_rules, plain
from biaskit.records import Finish

OUTCOMES = ("person", "no-person", "declines", "lectures", "empty")
"""What a rule may say, in the order of tables."""
DECLINES = "declines"
CUT = "cut"  # the outcome of a text that the token limit ended before it came to anything
NO_DESCRIPTION = frozenset({"declines", "lectures"})
"""Outcomes of texts that describe nobody: their words mark no gender and no group."""
RULES = "corpus:outcomes/texts.toml"
START, LOOKED_AT = 240, 1000
"""Characters of a text: those that are its beginning, and those that are read at all."""


@dataclass(frozen=True, slots=True)
class TextOutcome:
    """What a text is, and the rule that said so."""

    outcome: str
    rule_id: str


def text_outcome(text: str, finish: Finish | None = None) -> TextOutcome:
    """Say what a text of any length is, from its first 1,000 characters; the first rule decides.

    `finish`: why it ended. Where no other rule fires and the token limit came within what is read, the text
    is cut: nobody knows what it would have become.
    """
    if finish == "length" and not text.strip():  # thoughts took all there was, or nearly
        return TextOutcome(CUT, text_rules().rules[-1].id)
    cased = plain(text, LOOKED_AT)
    lowered = cased.lower()
    readings = {"start": (lowered[:START],), "text": (lowered,), "cased": (cased[:START],)}
    match = text_rules().first(readings)
    assert match is not None, "the last rule fires for every text"
    rule = match[0]
    if rule is text_rules().rules[-1] and finish == "length" and len(text.strip()) < LOOKED_AT:
        return TextOutcome(CUT, rule.id)
    return TextOutcome(rule.outcome, rule.id)


def declines(text: str) -> bool:
    """Say whether `text_outcome` is that a text declines; no rule stands before those but that of no text."""
    start = plain(text, LOOKED_AT).lower()[:START]
    return any(rule.outcome == DECLINES and rule.compiled.search(start) for rule in text_rules().rules)


@cache
def text_rules() -> OutcomeRules:
    """Load the shipped rules, once."""
    return load_outcome_rules(RULES, reads="start")
