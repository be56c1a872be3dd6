"""Rules of what an answer or a text comes to: the first that fires decides (methods/probabilities#outcomes).

A pattern is a regular expression that cannot run away: no repetition but `?` and the gap `..`, which stands
for up to 60 characters of one sentence (`tests/corpora/test_outcome_rules.py` holds the shipped rules to it).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, islice
from operator import attrgetter

from biaskit.common.foreign import HIDDEN
from biaskit.common.marks import legible
from biaskit.corpora.rows import SourceLayout, read_list
from biaskit.corpora.sources import Filled, Label, ListEntry

SENTENCE_END = ".!?\n"

_GAP = rf"[^@{re.escape(SENTENCE_END)}]{{0,60}}?"  # the shortest that will do
_SENTENCE = re.compile(rf"[^{re.escape(SENTENCE_END)}]+[.!?]*")
_NAMED = {
    "..": _GAP,
    "@w": r"[^\W_]{1,24}",  # a word
    "@a": r"@(?P<a>[0-9]+)",  # a target word
    "%a": r"%(?P<a>[0-9]+)",  # one inside a question
    "@b": r"@(?!(?P=a)\b)[0-9]+",  # one of another group
}
_NOTATION = re.compile(r"\\.|\[\^?(?:\\.|[^\\\]])+\]|\.\.|@[abw]|%a")
_APOSTROPHES = "\u2018\u2019\u02bc"
# Apostrophes go that have no letter before or none after. Patterns that begin with a set are quick to search.
_MARKUP = re.compile(r"[*_`#>\"\u201c\u201d\u00ab\u00bb']((?<![^\W_]')|(?![^\W_]))")


class OutcomeRule(ListEntry):
    """Where `pattern` is found in what the rule `reads`, the outcome is `outcome`."""

    id: Label
    outcome: Filled
    pattern: str
    reason: Filled
    reads: str = ""  # empty: what the file's rules usually read

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The pattern, ready to search."""
        return compile_pattern(self.pattern)


@dataclass(frozen=True, slots=True)
class OutcomeRules:
    """The rules of a file in their order, and the texts that stand beside them."""

    rules: tuple[OutcomeRule, ...]
    top: Mapping[str, str]

    def first(self, readings: Mapping[str, Sequence[str]]) -> tuple[OutcomeRule, re.Match[str]] | None:
        """Find the rule that decides, and its match; None: no rule fires.

        `readings`: what a rule may read → its pieces in order. Rules that stand together and read the same
        are tried piece by piece, so that what is said first decides, then in their order.
        """
        for reads, rules in groupby(self.rules, key=attrgetter("reads")):
            block = tuple(rules)
            for piece in readings[reads]:
                for rule in block:
                    if match := rule.compiled.search(piece):
                        return rule, match
        return None


def load_outcome_rules(source: str, *, reads: str, top: Sequence[str] = ()) -> OutcomeRules:
    """Read a shipped .toml of `[[rule]]` tables; `reads`: what a rule reads that does not say it."""
    table = read_list(source, SourceLayout("outcome rules", "rule", OutcomeRule, tuple(top)))
    rules = tuple(rule.model_copy(update={"reads": rule.reads or reads}) for _, rule in table.entries)
    return OutcomeRules(rules, {key: str(table.top[key]) for key in top})


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern, which may hold the signs of `_NAMED` too."""
    return re.compile(_NOTATION.sub(lambda sign: _NAMED.get(sign[0], sign[0]), pattern))


def plain(text: str, longest: int) -> str:
    """Prepare the beginning of a foreign text for patterns: `longest` characters, without markup.

    Markdown, tags and written line marks (`legible`), quotation marks and characters without a shape are
    left out, apostrophes are straight, white space is one space or, where a line ends, one line feed. Case
    stays.
    """
    text = legible(text).lstrip()
    beginning = text[:longest]
    if not beginning.replace("\n", "").isprintable():
        shapes = (c for c in text if c in "\n\t" or unicodedata.category(c) not in HIDDEN)
        beginning = "".join(islice(shapes, longest))
    beginning = beginning.replace("\t", " ")
    for apostrophe in _APOSTROPHES:  # faster than a translation, which looks every character up
        beginning = beginning.replace(apostrophe, "'")
    lines = _MARKUP.sub("", beginning).split("\n")
    return "\n".join(filter(None, (" ".join(line.split()) for line in lines)))


def sentences(text: str) -> list[str]:
    """Split a plain text into sentences with their ends; a line is at least one."""
    return [sentence.strip() for sentence in _SENTENCE.findall(text) if sentence.strip()]


def word_alternatives(words: Iterable[str]) -> str:
    """Build a pattern of whole words, the longest first, that end as in `biaskit.models.matching`."""
    longest_first = sorted(set(words), key=len, reverse=True)
    return rf"(?<![^\W_])(?:{'|'.join(map(re.escape, longest_first))})(?![^\W_]|\ufffd)"
