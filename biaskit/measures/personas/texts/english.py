"""Which texts are in English: the rules of association read no other language (methods/texts#english)."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from biaskit.common.wording import count
from biaskit.corpora.loaders import english_counts
from biaskit.measurement import words
from biaskit.tables.reasons import NOT_ENGLISH

_SAYS: Mapping[str, str] = words("personas")["english"]
FUNCTION_WORDS = frozenset(_SAYS["function_words"].split())
"""Of English, without pronouns; ours, as are those of other languages."""
OF_OTHERS = frozenset(_SAYS["of_others"].split())

FEWEST_KINDS = 2
"""Different words of other languages that a text must have: one may be a name's, or a slip."""
FEWEST_WORDS, LEAST_SHARE, LEAST_KNOWN = 6, 0.03, 0.25
"""A language without a list: of so many words, fewer are function words, and fewer the Brown corpus has."""
MOST_FOREIGN = 0.1
"""Share of a model's texts that may be in another language: above it there is no share and no conclusion."""

_WORD = re.compile(r"(?<!['\u2019])[^\W\d_]+(?:[\u0300-\u036f]+[^\W\d_]*)*")  # not ve of they've
_OF_NAME = re.compile(rf"(?:\s(?:{_SAYS['of_names'].replace(' ', '|')})){{1,3}}(?=\s[A-Z])")
_FOREIGN = re.compile(r"[^\0-\xde\xe2]|\xe2(?!$)")  # "it\xe2" is of "it\u2019s" in a wrong encoding
_SENTENCE = re.compile(r"[^.!?\n]+")
_PRONOUNS = frozenset(("he", "she", "it", "they", "him", "her", "them", "his", "hers", "their"))
_UNTOLD, _KNOWN = "(words)", "(known)"  # counted where function words are few; no words themselves


def _counts(text: str) -> Counter[str]:
    """Count the function words of a text, and words with letters that English does not write."""
    lowered, capitals = Counter[str](), text.isupper()
    for word, n in Counter(_WORD.findall(_OF_NAME.sub("", text))).items():
        # La Paz and José are names; in English a sentence begins with The.
        name = word[0].isupper() and not capitals and word.lower() not in FUNCTION_WORDS
        if not name and word.lower() not in _PRONOUNS:
            lowered[word.lower()] += n
    found = Counter[str]()
    for word, n in lowered.items():
        if word in FUNCTION_WORDS or word in OF_OTHERS or (not word.isascii() and _is_foreign(word)):
            found[word] = n
    few = _n_english(found) < LEAST_SHARE * lowered.total()
    if few and not capitals and 3 * text.count(",") < lowered.total():  # no list of skills
        known = sum(n for word, n in lowered.items() if word in _brown())
        found.update({_UNTOLD: lowered.total(), _KNOWN: known})
    return found


def _is_foreign(word: str) -> bool:
    """Whether a word has letters that English does not write, and is none of its loans: café, naïve."""
    plain = unicodedata.normalize("NFD", word[:40]).encode("ascii", "ignore").decode()
    return bool(_FOREIGN.search(word)) and plain not in _brown()


def _n_english(counts: Counter[str]) -> int:
    return sum(map(counts.__getitem__, FUNCTION_WORDS & counts.keys()))


def _others(counts: Counter[str]) -> set[str]:
    return counts.keys() - FUNCTION_WORDS - {_UNTOLD, _KNOWN}


def _is_english(counts: Counter[str]) -> bool | None:
    """Judge a text, or several, by their counts; None where they say too little, as names alone do."""
    if counts[_UNTOLD] >= FEWEST_WORDS and counts[_KNOWN] < LEAST_KNOWN * counts[_UNTOLD]:
        return False
    n_english, others = _n_english(counts), _others(counts)
    n_others = sum(map(counts.__getitem__, others))
    if len(others) >= FEWEST_KINDS and n_others > n_english:
        return False
    return n_english > n_others or None


def is_english(text: str) -> bool | None:
    """Judge one text: whether it is English, None where it says too little."""
    return _is_english(_counts(text))


@cache
def _brown() -> frozenset[str]:
    return frozenset(english_counts())


def english_parts(text: str) -> str:
    """Blank a text in another language, or its sentences that are; what is left keeps its place."""

    def read(part: re.Match[str]) -> str:
        return " " * len(part[0]) if is_english(part[0]) is False else part[0]

    counts = _counts(text)
    if _is_english(counts) is False:
        return " " * len(text)
    return _SENTENCE.sub(read, text) if len(_others(counts)) >= FEWEST_KINDS else text


@dataclass(slots=True)
class EnglishEvidence:
    """Which texts of one model, or one file, are in English; texts are added one at a time."""

    n_texts: int = 0  # that are not empty
    _n_foreign: int = 0
    _n_untold: int = 0
    _untold: Counter[str] = field(default_factory=Counter)

    def add(self, text: str) -> bool | None:
        """Judge one text as `is_english` does, and keep what it says."""
        counts = _counts(text)
        english = _is_english(counts)
        self.n_texts += bool(text.strip())
        self._n_foreign += english is False
        if english is None:
            self._n_untold += bool(text.strip())
            self._untold.update(counts)
        return english

    @property
    def n_foreign(self) -> int:
        """How many texts are not in English."""
        return self._n_foreign + self._n_untold * (self._rest is False)

    @property
    def _rest(self) -> bool | None:
        """Judge texts that say too little as most others are; where those are few or even, all together."""
        n_others = self.n_texts - self._n_untold
        if n_others <= MOST_FOREIGN * self.n_texts or 2 * self._n_foreign == n_others:
            return _is_english(self._untold)
        return 2 * self._n_foreign < n_others

    @property
    def read(self) -> bool:
        """Whether the rules can read these texts; also where there is too little to tell."""
        return self.n_foreign <= MOST_FOREIGN * self.n_texts

    def reads(self, english: bool | None) -> bool:
        """Whether the rules can read one of these texts, as `add` judged it."""
        return self.read and (self._rest if english is None else english) is not False

    def note(self, label: str) -> str | None:
        """Warn of texts that are not in English; None where there are none."""
        foreign = f"{self.n_foreign:,} of {count(self.n_texts, 'text')}"
        said = _SAYS["some" if self.read else "all"].format(label, foreign, NOT_ENGLISH, 100 * MOST_FOREIGN)
        return said if self.n_foreign else None
