"""STUB until the rules are merged; not committed."""

from dataclasses import dataclass

OUTCOMES = ("listed", "unknown", "both", "declines", "restates", "empty", "other")


@dataclass(frozen=True, slots=True)
class Outcome:
    outcome: str
    group: str
    rule_id: str


def outcome_of(answer, *, question, expressions, groups):
    low = answer.lower()
    for e in expressions:
        if e.text.lower() in low.split():
            return Outcome("listed", e.group, "x")
    return Outcome("unknown" if "unknown" in low else "other", "", "x")
