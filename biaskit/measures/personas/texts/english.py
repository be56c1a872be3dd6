"""Which texts are in English: the rules of association read no other language (methods/texts#english)."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from typing import NamedTuple

from biaskit.common.plain import Memo
from biaskit.corpora.languages import ENGLISH, shipped_language
from biaskit.corpora.loaders import english_counts
from biaskit.measures.personas.texts.tokens import runs_of

_ENGLISH = shipped_language(ENGLISH)
_TOLD = _ENGLISH.told
FUNCTION_WORDS = _ENGLISH.of_function
OF_OTHERS = frozenset(_TOLD["of_others"].split())

FEWEST_KINDS = 2
"""Different words of other languages that a text must have: one may be a name's, or a slip."""
FEWEST_WORDS, LEAST_SHARE, LEAST_KNOWN = 6, 0.03, 0.25
"""A language without a list: of so many words, fewer are function words, and fewer the Brown corpus has."""
MOST_FOREIGN = 0.1
"""Share of a model's texts that may be in another language: above it there is no share and no conclusion."""

_MARKS = r"\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u109f\u1780-\u17ff"  # of letters, which \w lacks
_CONTRACTED = rf"(?:{_TOLD['contractions']})\b"  # not ve of they've
_WORD = re.compile(rf"['\u2019]{_CONTRACTED}|([^\W\d_]+(?:[{_MARKS}]+[^\W\d_]*)*)")
_LETTERS, _AFTER_APOSTROPHE = re.compile(r"[^\W\d_]+"), re.compile(f"'{_CONTRACTED}")
_ADDRESS = re.compile(r"(?<!\S)\S*(?:@|://|www\.|\.(?:com|org|net)\b)\S*")
_IN_ADDRESS = ("@", "://", "www.", ".com", ".org", ".net")  # one of them
_PARTS = rf"(?:{_TOLD['of_names'].replace(' ', '|')})"
_OF_NAME = re.compile(rf"\s{_PARTS}(?:\s{_PARTS}){{,2}}(?=\s[A-Z])")
_FOREIGN = re.compile(r"[^\0-\xde\xe2]|\xe2(?!$)")  # "it\xe2" is of "it\u2019s" in a wrong encoding
_SENTENCE = re.compile(r"[^.!?\n]+")
_PRONOUNS = frozenset(_TOLD["pronouns"].split())


class _Judged(NamedTuple):
    words: Counter[str]
    others: frozenset[str]  # words of other languages
    english: bool | None


@lru_cache(maxsize=1)  # a text is judged, and then read
def _judged(text: str) -> _Judged:
    return _judge(_words(text))


def _words(text: str) -> Counter[str]:
    """Count the words of a text without pronouns, names (La Paz, José) and addresses, and its commas."""
    capitals, found = text.isupper(), Counter({",": text.count(",")})
    if any(map(text.__contains__, _IN_ADDRESS)):
        text = _ADDRESS.sub("", text)
    text = _OF_NAME.sub("", text)
    ascii_only = text.isascii()  # has neither marks nor \u2019
    written = runs_of(_LETTERS, _AFTER_APOSTROPHE.sub(" ", text)) if ascii_only else _WORD.findall(text)
    read_as = _READ_IN_CAPITALS if capitals else _READ_AS
    found.update(map(read_as.__getitem__, filter(None, written)))
    del found[""]
    return found


def _read_as(word: str, capitals: bool) -> str:
    lowered = word.lower()  # in English a sentence begins with The
    is_name = word.isupper() if capitals else word[0].isupper() or lowered in _PRONOUNS
    if not word.isascii():  # print has letters that are two: ﬁrst oﬃce
        lowered = unicodedata.normalize("NFKC", lowered[:40])
    counts = not is_name or lowered in FUNCTION_WORDS or (capitals and lowered in OF_OTHERS)
    return lowered if counts else ""


_READ_AS = Memo(partial(_read_as, capitals=False))
_READ_IN_CAPITALS = Memo(partial(_read_as, capitals=True))


def _is_foreign(word: str) -> bool:
    """Whether a word has letters that English does not write, and is none of its loans: café, naïve."""
    plain = unicodedata.normalize("NFD", word).encode("ascii", "ignore").decode()
    return bool(_FOREIGN.search(word)) and plain not in _brown()


def _judge(words: Counter[str]) -> _Judged:
    n_words, others = words.total() - words[","], OF_OTHERS.intersection(words)
    if not "".join(words).isascii():
        others |= {word for word in words if not word.isascii() and _is_foreign(word)}
    n_english = sum(map(words.__getitem__, FUNCTION_WORDS.intersection(words)))
    n_others = sum(map(words.__getitem__, others))
    # Letters alone may be of loans: jalapeño, crème brûlée.
    needed = max(n_english, n_words / 2) if OF_OTHERS.isdisjoint(others) else n_english
    if len(others) >= FEWEST_KINDS and n_others > needed:
        return _Judged(words, others, False)
    is_list = 3 * words[","] >= n_words  # of skills
    few = n_words >= FEWEST_WORDS and n_english < LEAST_SHARE * n_words and not is_list
    if few and sum(n for word, n in words.items() if word in _brown()) < LEAST_KNOWN * n_words:
        return _Judged(words, others, False)
    return _Judged(words, others, n_english > n_others or None)


def is_english(text: str) -> bool | None:
    """Judge one text: whether it is English, None where it says too little, as names alone do."""
    return _judged(text).english


@cache
def _brown() -> frozenset[str]:
    return frozenset(english_counts())


def english_parts(text: str) -> str:
    """Blank a text in another language, or its sentences that are; what is left keeps its place."""
    judged = _judged(text)
    if judged.english is False:
        return " " * len(text)
    if len(judged.others) < FEWEST_KINDS:
        return text
    return _SENTENCE.sub(lambda part: " " * len(part[0]) if is_english(part[0]) is False else part[0], text)


@dataclass(slots=True)
class EnglishEvidence:
    """Which texts of one model, or one file, are in English; texts are added one at a time."""

    n_texts: int = 0  # that are not empty
    _n_foreign: int = 0
    _n_untold: int = 0
    _untold: Counter[str] = field(default_factory=Counter)

    def add(self, text: str) -> bool | None:
        """Judge one text as `is_english` does, and keep what it says."""
        if not text.strip():
            return None
        found, _, english = _judged(text)
        self.n_texts += 1
        self._n_foreign += english is False
        if english is None:
            self._n_untold += 1
            self._untold.update(found)
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
            return _judge(self._untold).english
        return 2 * self._n_foreign < n_others

    @property
    def read(self) -> bool:
        """Whether the rules can read these texts; also where there is too little to tell."""
        return self.n_foreign <= MOST_FOREIGN * self.n_texts

    def reads(self, english: bool | None) -> bool:
        """Whether the rules can read one of these texts, as `add` judged it."""
        return self.read and (self._rest if english is None else english) is not False
