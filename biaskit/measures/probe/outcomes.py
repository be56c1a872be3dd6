"""What an answer says: a listed group, unknown, both, nothing; by rules (methods/probabilities#outcomes).

The rules are data (`corpora/outcomes/answers.toml`). They read the answer with each target word of the study
as `@N`, N the number of its group, so that they hold for the groups of any study.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from biaskit.corpora.outcome_rules import (
    SENTENCE_END,
    OutcomeRules,
    load_outcome_rules,
    plain,
    sentences,
    word_alternatives,
)
from biaskit.records import TargetWord

OUTCOMES = ("listed", "unknown", "both", "declines", "restates", "empty", "other")
"""In the order of tables."""
RULES = "corpus:outcomes/answers.toml"
LOOKED_AT = 600
"""Characters of an answer that are read."""

_WORD = re.compile(r"[@~%][0-9]+|[^\W_]+(?:'[^\W_]+)?")
_END = re.compile(f"[{re.escape(SENTENCE_END)}]")
_ENDING = re.compile(r"'?s$")
_LEADING = "-\u2022\u2013\u2014:.,;(<[{| \n"
"""Characters that may stand before an answer: a bullet, a dash, a bracket, a stray mark."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an answer says, and the rule that said so; `group` is empty unless the outcome is `listed`."""

    outcome: str
    group: str
    rule_id: str


def outcome_of(
    answer: str, *, question: str, target_words: Sequence[TargetWord], groups: Sequence[str]
) -> Outcome:
    """Say what an answer to `question` comes to: the first rule that fires decides."""
    words = tuple((e.text, groups.index(e.group)) for e in target_words)
    text = plain(answer, LOOKED_AT)
    reading = _with_target_words(text.lstrip(_LEADING) or text, words)
    decided = answer_rules().first(
        {"answer": (reading,), "sentence": sentences(reading), "beyond": (_beyond(reading, question),)}
    )
    assert decided is not None, "the last rule fires for every answer"
    rule, where = decided
    group = groups[int(where["a"])] if rule.outcome == "listed" else ""
    return Outcome(rule.outcome, group, rule.id)


@cache
def answer_rules() -> OutcomeRules:
    """Read the shipped rules, once."""
    return load_outcome_rules(RULES, reads="sentence", top=("negated", "possessives", "function_words"))


@lru_cache(maxsize=64)
def _target_words(words: tuple[tuple[str, int], ...]) -> tuple[re.Pattern[str], dict[str, int]]:
    number = {plain(text, LOOKED_AT): group for text, group in words}
    number.pop("", None)
    forms = answer_rules().top["possessives"].split()
    pairs = [*zip(forms[::2], forms[1::2], strict=True)]
    pairs += [(pronoun.title(), possessive.title()) for pronoun, possessive in pairs]
    begin = {possessive: number[pronoun] for pronoun, possessive in pairs if pronoun in number}
    pattern = word_alternatives(number)
    if begin:
        pattern += rf"|(?:^|(?<=[.!?] )|(?<=\n)){word_alternatives(begin)}(?= [^\W_])(?! (?:or|and)\b)"
    return re.compile(pattern), begin | number


def _with_target_words(text: str, words: tuple[tuple[str, int], ...]) -> str:
    """Write the text in lower case, its target words as @N; ~N where one is negated, %N inside a question."""
    pattern, number = _target_words(words)
    negation = rf"(?:{answer_rules().top['negated']})$"
    text = re.sub("[@~%]", " ", text)  # of the answer itself: no target words
    parts, end = [], 0
    for match in pattern.finditer(text):
        sign = "@"
        if re.search(negation, text[max(0, match.start() - 40) : match.start()].lower()):
            sign = "~"
        elif (ended := _END.search(text, match.end())) and ended[0] == "?":
            sign = "%"
        parts += [text[end : match.start()].lower(), f"{sign}{number[match[0]]}"]
        end = match.end()
    return "".join([*parts, text[end:].lower()])


def _beyond(reading: str, question: str) -> str:
    """Write the answer's words without function words, each run of the question's words as one `#`."""
    of_question, function_words = _words_of(question), answer_rules().top["function_words"].split()
    words: list[str] = []
    for word in _WORD.findall(reading):
        written = "#" if _stem(word) in of_question else word
        if word not in function_words and words[-1:] != [written]:
            words.append(written)
    return " ".join(words)


@lru_cache(maxsize=4096)
def _words_of(question: str) -> frozenset[str]:
    return frozenset(_stem(word) for word in _WORD.findall(plain(question, LOOKED_AT).lower()))


def _stem(word: str) -> str:
    return _ENDING.sub("", word)
