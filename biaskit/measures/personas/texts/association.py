"""Which gender a text speaks of: Algorithm 1 of GAS(P), corrected, and rules of other languages.

Words are counted in four classes, and the first rule of a list that fires decides. Words and rules are data
(`corpora/language-XX/`): an association names its rule, and `counted_places` finds every place in the text
that counted (methods/texts#gender-association).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from operator import itemgetter
from typing import Literal

from biaskit.common.marks import legible
from biaskit.common.wording import short
from biaskit.corpora.languages import ENGLISH, LETTERS, Language, blanked, shipped_language
from biaskit.corpora.languages import language as language_of
from biaskit.errors import UsageError, nearest
from biaskit.measures.personas.texts.english import english_parts
from biaskit.measures.personas.texts.tokens import tokenise
from biaskit.tables.query import Row, grouped, where

Honorifics = Literal["paper", "titles"]


@dataclass(frozen=True, slots=True)
class Association:
    """The gender a text is associated with, the rule that said so, and what was counted."""

    gender: str | None  # female, male, nonbinary; None: no rule fired
    rule_id: str | None
    n_female: int
    n_male: int
    n_neutral: int
    nonbinary_present: bool


def associate_gender(
    text: str, *, honorifics: Honorifics = "paper", language: str | Language = ENGLISH
) -> Association:
    """Infer the gender that a text speaks of from its pronouns, titles and words for non-binary people.

    The rule for English is GAS(P)'s released one. It counts and does not read: a text about a woman that
    often mentions her husband is a man's, "they" may be a team, a first-person text has no gender. Genders
    that are avoided ("S/he", "he or she"), acronyms (HER2, HIS; in a text in capitals a word is none),
    "20 ms.", "she/her", "he's" and "woman—she" count nothing, nor do texts and sentences in another language.

    >>> bk.associate_gender("Ms. Lee says she is a nurse.").gender
    'female'
    >>> bk.associate_gender("Frau Lee sagt, dass sie gern fliegt.", language="de").n_female
    2

    Args:
        text: any text.
        honorifics: of English, paper counts the tokens mrs, mr and, where "ms." stands anywhere in the text,
            ms; titles counts Ms, Mrs, Miss and Mr, so written, as whole words before a capitalised word.
        language: in which the text is read: en, de, fr, pt, ru, or the path of a folder of your own.

    Returns `gender` (female, male, nonbinary, None), the rule that said so (`rule_id`), and the words counted
    (`n_female`, `n_male`, `n_neutral`). Raises `UsageError` for what is no text, and an unknown language.
    """
    read = language_of(language)
    classes, titles = _counting(honorifics, read)
    if not isinstance(text, str):
        raise UsageError(f"A gender can only be inferred from a text; this is {type(text).__name__}.")
    text = _of_somebody(text, read)
    lowered = text.lower()
    counts = {"female": 0, "male": 0, "neutral": 0}
    if read.tokenizer == "papers":
        for word, n in Counter(filter(classes.__contains__, tokenise(text))).items():
            if read.only_with.get(word, "") in lowered:
                counts[classes[word]] += n
    words = _words(text, classes) if read.tokenizer != "papers" else ()
    for place in chain(words, _titles(text, read) if titles else ()):
        counts[place.counts_as] += 1
    term = any(term in lowered for term in read.nonbinary)
    rule = next((rule for rule in read.rules if rule.fires(counts, term)), None)
    gender, rule_id = (rule.gender, rule.id) if rule else (None, None)
    return Association(gender, rule_id, counts["female"], counts["male"], counts["neutral"], term)


NOT_INFERRED = ("refusal", "filter")
"""Finishes of a text that describes nobody, whatever it says (methods/texts#finishes)."""


def associate_answer(
    text: str, finish: str | None, *, honorifics: Honorifics = "paper", language: str | Language = ENGLISH
) -> Association:
    """Associate a model's answer: as any text, but refused, filtered and empty ones have no gender."""
    association = associate_gender(text, honorifics=honorifics, language=language)
    if finish in NOT_INFERRED or not text.strip():
        return replace(association, gender=None, rule_id=None)
    return association


def _counting(honorifics: str, read: Language) -> tuple[Mapping[str, str], bool]:
    """Map the words that count to their classes, and say whether titles count; both may leave no choice."""
    known = shipped_language(ENGLISH).honorifics
    if not isinstance(honorifics, str) or honorifics not in known:
        raise UsageError(
            f"honorifics is {short(repr(honorifics))}, not {' or '.join(known)}.{nearest(honorifics, known)}"
        )
    return read.classes.get(honorifics) or read.classes[""], honorifics == "titles" or not read.honorifics


def _of_somebody(text: str, read: Language) -> str:
    """Blank what is nobody's: marks, avoided genders, acronyms, units, other languages. Places stay."""
    text = legible(text)
    text = english_parts(text) if read.code == ENGLISH else text.replace("\u2019", "'")
    avoided = False
    for rule in read.not_counted:
        if not (rule.first or avoided):
            text, avoided = blanked(read.avoided_pattern, text, read.avoided.needs), True
        left = blanked(read.patterns[rule.id], text, rule.needs)
        if left != text and not (rule.not_in_capitals and _in_capitals(text)):
            text = left
    return text if avoided else blanked(read.avoided_pattern, text, read.avoided.needs)


def _in_capitals(text: str) -> bool:
    words = [word for word in text.split() if sum(map(str.isalpha, word)) > 1]
    return 2 * sum(map(str.isupper, words)) > len(words)


@dataclass(frozen=True, slots=True)
class Counted:
    """A place that counted: `text[start:end]`, the whole token as it was written."""

    start: int
    end: int
    word: str  # as counted: "ms" where the text has "M.S."
    counts_as: str  # female, male, neutral, nonbinary


def counted_places(
    text: str, *, honorifics: Honorifics = "paper", language: str | Language = ENGLISH
) -> tuple[Counted, ...]:
    """Show why a text has its gender: every place that counted, from the first to the last.

    The places of a class are as many as the association counts; those of the class `nonbinary` are the
    terms that made `nonbinary_present` true.
    """
    read = language_of(language)
    text, (classes, titles), places = _of_somebody(text, read), _counting(honorifics, read), list[Counted]()
    lowered = text.lower()
    if read.tokenizer == "papers":
        for token in _TOKEN.finditer(text):
            for word in tokenise(token[0]):
                if word in classes and read.only_with.get(word, "") in lowered:
                    places.append(Counted(token.start(), token.end(), word, classes[word]))
    else:
        places += _words(text, classes)
    # Lower-casing can lengthen a text ("İ" becomes two characters): each one's place in the text as written.
    place_of = [i for i, character in enumerate(text) for _ in character.lower()]
    for match in read.term_pattern.finditer(lowered):
        places.append(Counted(place_of[match.start()], place_of[match.end() - 1] + 1, match[0], "nonbinary"))
    if titles:
        places += _titles(text, read)
    return tuple(sorted(places, key=lambda place: (place.start, place.end)))


_TOKEN = re.compile(r"\S+")
# What is joined to others by ( · * : _ @ / is an inclusive form, and no word.
_JOINS = "[(·*:_@/]"
_WORD = re.compile(rf"(?<![^\W_]{_JOINS})(?<![^\W_]){LETTERS}(?!{_JOINS}[^\W_]|\d)")


def _words(text: str, classes: Mapping[str, str]) -> Iterator[Counted]:
    """Yield the words that count, split at apostrophes and hyphens."""
    for match in _WORD.finditer(text):
        word = match[0].lower()
        if not word.isascii():  # one spelling for é written as one character or as two
            word = unicodedata.normalize("NFC", word[:40])
        if word in classes:
            yield Counted(match.start(), match.end(), word, classes[word])


def _titles(text: str, read: Language) -> Iterator[Counted]:
    for match in read.title_pattern.finditer(text):
        # The character before is checked here: a pattern that begins with a lookbehind is slow to search.
        if match[2].isupper() and not text[match.start() - 1 : match.start()].isalnum():
            yield Counted(match.start(1), match.end(1), match[1], read.title_classes[match[1]])


def validation(rows: Iterable[Row]) -> list[Row]:
    """Compare inferred with requested genders: the rows of gender_validation.csv.

    `rows` have `model`, `requested_gender` and `gender` as in genders.csv; those without a requested
    gender do not enter. One row per model, in order of appearance, and requested gender, by name;
    n_texts = n_correct + n_incorrect + n_not_captured. As Table 1 of GAS(P), in counts.
    """
    table: list[Row] = []
    with_gender = filter(itemgetter("requested_gender"), rows)
    for (model,), of_model in grouped(with_gender, "model").items():
        for (requested,), texts in sorted(grouped(of_model, "requested_gender").items()):
            n_right, n_none = len(where(texts, gender=requested)), len(where(texts, gender=None))
            n = {"n_correct": n_right, "n_incorrect": len(texts) - n_right - n_none, "n_not_captured": n_none}
            table.append({"model": model, "requested_gender": requested, "n_texts": len(texts), **n})
    return table
