"""What a sampled text is: a person's, nobody's, a refusal, a lecture; by rules (docs/methods.md#outcomes).

The rules are data (`corpora/outcomes/texts.toml`). Whether a server refused a text is another question:
`finish` says so, and that alone decides for word lists, scores and calibration.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from biaskit.corpora.outcome_rules import OutcomeRules, load_outcome_rules, plain

OUTCOMES = ("person", "no-person", "declines", "lectures", "empty")
"""In the order of tables."""
RULES = "corpus:outcomes/texts.toml"
START, LOOKED_AT = 240, 1000
"""Characters of a text that are its beginning, and that are read at all."""

_READINGS = ("start", "text", "cased")


@dataclass(frozen=True, slots=True)
class TextOutcome:
    """What a text is, and the rule that said so."""

    outcome: str
    rule_id: str


def text_outcome(text: str) -> TextOutcome:
    """Say what a text of any length is, from its first 1,000 characters; the first rule decides."""
    cased = plain(text, LOOKED_AT)
    lowered = cased.lower()
    found = text_rules().first({"start": (lowered[:START],), "text": (lowered,), "cased": (cased[:START],)})
    if found is None:
        raise AssertionError("the last rule fires for every text")
    return TextOutcome(found[0].outcome, found[0].id)


@cache
def text_rules() -> OutcomeRules:
    """The shipped rules, read once."""
    return load_outcome_rules(RULES, outcomes=OUTCOMES, readings=_READINGS)
