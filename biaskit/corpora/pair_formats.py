"""How sentence pairs are published elsewhere: EuroGEST, CrowS-Pairs and WinoBias, told by their columns.

Verified against the authors' repositories: EuroGEST's columns and stereotypes where its evaluation reads them
(JacquelineRowe/EuroGEST at b543592, evaluate_models; the file itself asks for a consent), CrowS-Pairs' file
and README (nyu-mll/crows-pairs at 8aaac11), WinoBias' lines (uclanlp/corefBias at 0bce984), which are
published as texts: put side by side they are the two columns read here. Nothing of them is shipped.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator

from biaskit.corpora.loaders import gender_words
from biaskit.corpora.rows import SourceLayout
from biaskit.corpora.sources import Filled, Label, ListEntry
from biaskit.records import SentencePair

Side = Literal["female", "male"]
Hunk = tuple[Sequence[str], Sequence[str]]
"""Neighbouring words of one sentence and what stands in their place in the other."""

_STEREOTYPES = (  # EuroGEST's labels of 1 to 16: seven of women, nine of men
    *("emotional", "gentle", "empathetic", "neat", "social", "weak", "beautiful"),
    *("tough", "self-confident", "professional", "rational", "providers", "leaders", "childish"),
    *("sexual", "strong"),
)
_OF_WOMEN = 7
_CHARACTERS = "\u3040-\u30ff\u4e00-\u9fff"  # written without spaces: each stands for a word
_BRACKETS = re.compile(r"\[([^]]*)\]")
_WORD = re.compile(rf"[{_CHARACTERS}]|[^\s'\u2019{_CHARACTERS}]+")
_STARS = "*:_/\u00b7\u2022"  # Lehrer*in, étudiant·e
_OF_WORDS = (  # marks that a word of gender may have and its partner lack, and what then stands there
    (
        re.compile(r"(?<=\w)['\u2019](?=\w)(?!(?:[dmst]|ll|re|ve)\b)"),
        " ",
    ),  # l'infirmière, le pompier; not she's
    (re.compile(r"\b(sig|dott)\.(?:na|ra|ssa)\b", re.IGNORECASE), r"\1."),
    (re.compile(r"\b([b-df-hj-np-tv-xz]{1,3}|[ds]ra|srta|mevr)\b\.?", re.IGNORECASE), r"\1"),  # M., Mme Blanc
    (re.compile(rf"(?<=\w)[{_STARS}](?=\w)"), ""),
)
_SIDES: dict[Side, re.Pattern[str]] = {  # of the words in corpora/gender-words, which does not tell
    "female": re.compile(
        r"herself|mrs|ms|miss|maam|madam|feminine|ladies|princess(es)?|(she|her|female|tomboy|lady|queen|mom|mum"
        r"|grandma|aunt|niece|bride|widow|\w*(wom[ae]n|girl|girlfriend|mother|daughter|sister|wife|wive))s?"
    ),
    "male": re.compile(
        r"him|his|himself|mr|masculine|(he|sir|male|guy|dude|king|prince|dad|grandpa|uncle|nephew|groom|widower"
        r"|\w*((?<!wo)m[ae]n|boy|boyfriend|father|son|brother|husband))s?"
    ),
}


def _as_text(value: object) -> object:
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, float):
        return f"{value:.15g}"  # pandas makes 3.0 of 3 where a cell of the column is empty
    return value if isinstance(value, bool) or not isinstance(value, Integral) else str(value)


def _without_brackets(text: str) -> str:
    return re.sub(r"^\d+\s+|[\[\]]", "", text.strip()).strip()


Name = Annotated[Label, BeforeValidator(_as_text)]  # a number is a name too


class PairRow(ListEntry):
    """A row of a list of pairs, in whatever columns; its texts in one form of Unicode."""

    @field_validator("*", mode="before")
    @classmethod
    def _in_one_form(cls, value: object) -> object:
        # A model reads letters with their accents apart as other letters.
        return unicodedata.normalize("NFC", value).strip() if isinstance(value, str) else value

    @abstractmethod
    def as_pair(self) -> SentencePair | str:
        """Make the pair, with an empty item where the row names none, or say which rows hold no pair."""


class _EuroGest(PairRow):
    GEST_ID: Name
    Stereotype_ID: Annotated[int, Field(strict=False, ge=1, le=len(_STEREOTYPES))]
    Feminine: Filled | None = None
    Masculine: Filled | None = None
    language: Label = ""  # for several of its files in one

    def as_pair(self) -> SentencePair | str:
        if self.Feminine is None or self.Masculine is None:
            return "without a feminine and a masculine sentence"
        return SentencePair(
            *(self.GEST_ID, self.Feminine, self.Masculine),
            stereotype=_STEREOTYPES[self.Stereotype_ID - 1],
            direction="female" if self.Stereotype_ID <= _OF_WOMEN else "male",
            language=self.language,
        )


class _CrowsPair(PairRow):
    sent_more: Filled
    sent_less: Filled
    bias_type: Name

    def as_pair(self) -> SentencePair | str:
        if self.bias_type.lower() != "gender":
            return "of another bias type than gender"
        return _expected_first(self.sent_more, self.sent_less)


class _WinoBias(PairRow):
    pro_stereotyped: Filled  # with its brackets
    anti_stereotyped: Filled

    def as_pair(self) -> SentencePair | str:
        made = _expected_first(*map(_without_brackets, (self.pro_stereotyped, self.anti_stereotyped)))
        for bracket in _BRACKETS.findall(self.pro_stereotyped):
            words = _words(bracket)[0][1:-1]
            if words and side_of(words) is None and not isinstance(made, str):  # no pronoun
                return replace(made, stereotype=" ".join(words[words[0] in ("a", "an", "the") :]))
        return made


PUBLISHED: tuple[SourceLayout[PairRow], ...] = tuple(
    SourceLayout("pairs", "pair", entry) for entry in (_EuroGest, _CrowsPair, _WinoBias)
)
"""Their columns, by which they are told."""


def differing_words(one: str, other: str) -> Iterator[Hunk]:
    """Yield in order the words in which two sentences differ, in lower case and without marks."""
    a, b = _words(one)[0][1:-1], _words(other)[0][1:-1]
    for what, i, j, k, m in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if what != "equal":
            yield a[i:j], b[k:m]


def differing_marks(one: str, other: str) -> Iterator[Hunk]:
    """Yield where two sentences differ around their words: in marks, blanks, upper and lower case.

    What comes and goes with a word of gender is left out: an elision, the stop of a title, a gender star.
    """
    (a, of_a), (b, of_b) = _words(one), _words(other)
    for what, i, j, k, m in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if what != "equal":
            here = one[of_a[i - 1][0] : of_a[j][1]]
            there = other[of_b[k - 1][0] : of_b[m][1]]
            if _skeleton(here, there) != _skeleton(there, here):
                yield here, there
            continue
        for x, y in zip(range(i, j), range(k, m), strict=True):
            to = x + 1 < j  # the next word, else the word alone
            here = one[of_a[x][0] : of_a[x + to][1]]
            there = other[of_b[y][0] : of_b[y + to][1]]
            if here != there:
                yield here, there


def _skeleton(text: str, other: str) -> str:
    """Write a text's marks, and words by their case; without the marks that come with words of gender."""
    for marks, instead in _OF_WORDS:
        if len(marks.findall(text)) != len(marks.findall(other)):
            text = marks.sub(instead, text)
    text = "".join(c for c in text if unicodedata.category(c)[0] != "M")  # accents, which \w lacks
    text = re.sub(r"\w+", lambda word: str(word[0][0].isupper() + word[0][1:].isupper()), text)
    return re.sub(r"(\d)(?= ?\1)|(?<! ) (?! )", "", text)  # du, de la: as many words as they need


def _words(text: str) -> tuple[list[str], list[tuple[int, int]]]:
    """Split a sentence into words in lower case, and where each begins and ends.

    The first and the last have no letters: every mark of the sentence is between words.
    """
    spans = [(0, 0)]
    for chunk in _WORD.finditer(text):
        kept = [n for n, c in enumerate(chunk[0], chunk.start()) if unicodedata.category(c)[0] in "LMN"]
        if kept:
            spans.append((kept[0], kept[-1] + 1))
    spans.append((len(text), len(text)))
    words = []
    for start, end in spans:
        letters = "".join(c for c in text[start:end] if unicodedata.category(c)[0] in "LMN" or c in _STARS)
        words.append(unicodedata.normalize("NFKC", letters).casefold())  # full-width letters too
    return words, spans


def side_of(words: Iterable[str]) -> Side | None:
    """Tell which gender the gendered words among `words` say; None: none, or both."""
    gendered = [word for word in words if word in gender_words()]
    said = [side for side, pattern in _SIDES.items() if any(map(pattern.fullmatch, gendered))]
    return said[0] if len(said) == 1 else None


def _expected_first(expected: str, other: str) -> SentencePair | str:
    of_expected: list[str] = []
    of_other: list[str] = []
    for here, there in differing_words(expected, other):
        of_expected += here
        of_other += there
    sides = side_of(of_expected), side_of(of_other)
    if sides == ("female", "male"):
        return SentencePair("", expected, other, direction="female")
    if sides == ("male", "female"):
        return SentencePair("", other, expected, direction="male")
    return "without English words for women and for men (else write columns female, male and direction)"
