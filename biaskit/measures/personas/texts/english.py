"""Which texts are in English: the rules of association read no other language (methods/texts#english)."""

from __future__ import annotations

import re
import unicodedata
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
"""Different function words that a text must have of other languages: one may be a name's, or a slip."""
FEWEST_WORDS, LEAST_SHARE, LEAST_KNOWN = 30, 0.03, 0.5
"""Of a language without a list: a text of so many words has fewer function words and words of English."""
MOST_FOREIGN = 0.1
"""Share of a model's texts that may be in another language: above it there is no share and no conclusion."""

_WORD = re.compile(r"(?<!['\u2019])[^\W\d_]+")  # not ve of they've
_OF_NAME = re.compile(rf"(?<=[^\W\d_])((?:\s(?:{_SAYS['of_names'].replace(' ', '|')}))+)(?=\s[A-Z])")
_FOREIGN = re.compile(r"[^\0-\xde\xe2]|\xe2(?!$)")  # "it\xe2" is what is left of "it\u2019s" in a wrong encoding
_SENTENCE = re.compile(r"[^.!?\n]+")


@dataclass(slots=True)
class Language:
    """The function words of a text, or of several, and what they say."""

    n_english: int = 0  # function words, as all that follows
    n_other: int = 0
    kinds: set[str] = field(default_factory=set)  # the different ones of other languages
    n_plain: int = 0  # words in lower case, with few function words of English about them: no names
    n_known: int = 0  # those of them that the Brown corpus has

    @classmethod
    def of(cls, text: str) -> Language:
        """Count in one text; a word with letters that English does not write is of another language."""
        written = _WORD.findall(_OF_NAME.sub("", unicodedata.normalize("NFC", text)))
        capitals, lowered = text.isupper(), list[str]()
        for word in written:  # La Paz and José are names; in English a sentence begins with The
            if capitals or not word[0].isupper() or word.lower() in FUNCTION_WORDS:
                lowered.append(word.lower())
        others = [word for word in lowered if word in OF_OTHERS or _FOREIGN.search(word)]
        found = cls(sum(map(FUNCTION_WORDS.__contains__, lowered)), len(others), set(others))
        if found.n_english < LEAST_SHARE * len(lowered) and not capitals:
            found.n_plain, found.n_known = len(lowered), sum(map(_brown().__contains__, lowered))
        return found

    def add(self, other: Language) -> None:
        """Count those of another text too."""
        self.n_english += other.n_english
        self.n_other += other.n_other
        self.kinds |= other.kinds
        self.n_plain += other.n_plain
        self.n_known += other.n_known

    @property
    def english(self) -> bool | None:
        """Whether it is English; None where there is too little to tell, as of names alone."""
        if self.n_plain >= FEWEST_WORDS and self.n_known < LEAST_KNOWN * self.n_plain:
            return False
        if self.n_other > self.n_english and len(self.kinds) >= FEWEST_KINDS:
            return False
        return True if self.n_english > self.n_other else None


@cache
def _brown() -> frozenset[str]:
    return frozenset(english_counts())


def english_parts(text: str) -> str:
    """Blank a text in another language, or its sentences that are; what is left keeps its place."""
    whole = Language.of(text)
    if whole.english is False:
        return " " * len(text)
    if len(whole.kinds) < FEWEST_KINDS:
        return text
    return _SENTENCE.sub(
        lambda part: " " * len(part[0]) if Language.of(part[0]).english is False else part[0], text
    )


@dataclass(slots=True)
class EnglishEvidence:
    """Which texts of one model, or one file, are in English; texts are added one at a time.

    Texts that say too little are judged together: however long, each other one is one text.
    """

    n_texts: int = 0
    _n_foreign: int = 0
    _n_untold: int = 0
    _untold: Language = field(default_factory=Language)

    def add(self, text: str) -> bool | None:
        """Judge one text: whether it is English, None where it says too little."""
        if not text.strip():
            return None
        language = Language.of(text)
        self.n_texts += 1
        self._n_foreign += language.english is False
        if language.english is None:
            self._n_untold += 1
            self._untold.add(language)
        return language.english

    @property
    def n_foreign(self) -> int:
        """How many texts are not in English."""
        return self._n_foreign + self._n_untold * (self._untold.english is False)

    @property
    def read(self) -> bool:
        """Whether the rules can read these texts; also where there is too little to tell."""
        return self.n_foreign <= MOST_FOREIGN * self.n_texts

    def reads(self, english: bool | None) -> bool:
        """Whether the rules can read one of these texts, as `add` judged it."""
        return self.read and (self._untold.english if english is None else english) is not False

    def record(self) -> Mapping[str, object]:
        """Return what analysis.json says of it."""
        return {"n_texts": self.n_texts, "n_not_english": self.n_foreign}

    def note(self, label: str) -> str | None:
        """Warn of texts that are not in English; None where there are none."""
        if not self.n_foreign:
            return None
        foreign = f"{self.n_foreign:,} of {count(self.n_texts, 'text')}"
        return _SAYS["some"].format(label, foreign) if self.read else _SAYS["all"].format(label, NOT_ENGLISH, foreign)
