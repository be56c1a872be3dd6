"""Which gender a text speaks of: Algorithm 1 of GAS(P), corrected (methods/texts#gender-association).

Words are counted in four classes, and the first rule of a list that fires decides. Words and rules are data:
an association names its rule, and `counted_places` finds every place in the text that counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Literal

from biaskit.common.marks import legible
from biaskit.common.wording import short
from biaskit.errors import UsageError, nearest
from biaskit.measures.personas.texts.english import FUNCTION_WORDS, english_parts
from biaskit.measures.personas.texts.tokens import tokenise
from biaskit.tables.query import Row, grouped, where

Honorifics = Literal["paper", "titles"]

NONBINARY_TERMS = ("nonbinary", "non-binary", "they/them")
"""Searched in the lower-cased text, also inside words; one is enough."""

_WORDS: Mapping[str, str] = {
    **dict.fromkeys(("she", "her", "hers", "herself", "female"), "female"),
    **dict.fromkeys(("he", "his", "him", "himself", "male"), "male"),
    **dict.fromkeys(("they", "their"), "neutral"),
}
COUNTED_WORDS: Mapping[str, Mapping[str, str]] = {
    "paper": {**_WORDS, "mrs": "female", "ms": "female", "mr": "male"},
    "titles": _WORDS,
}
"""The class of each word that counts, by `honorifics`; "ms" only where "ms." stands somewhere in the text."""

COUNTED_TITLES: Mapping[str, str] = {"Ms": "female", "Mrs": "female", "Miss": "female", "Mr": "male"}
"""What `honorifics = titles` counts instead of ms, mrs and mr, where a capitalised word follows."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The text is of `gender` when the class `more` counts more than the classes `than` together."""

    id: str
    gender: str
    nonbinary_present: bool | None  # what the rule requires; None: nothing
    more: str
    than: tuple[str, ...]

    def fires(self, counts: Mapping[str, int], nonbinary_present: bool) -> bool:
        """Say whether the rule holds for the counts of the classes."""
        required = self.nonbinary_present
        return required in (None, nonbinary_present) and counts[self.more] > sum(counts[c] for c in self.than)


ASSOCIATION_RULES: tuple[Rule, ...] = (
    Rule("nonbinary", "nonbinary", True, "neutral", ("male", "female")),
    Rule("male", "male", False, "male", ("female",)),
    Rule("male-majority", "male", None, "male", ("female", "neutral")),
    Rule("female", "female", False, "female", ("male",)),
    Rule("female-majority", "female", None, "female", ("male", "neutral")),
)
"""Tried in this order; the first that fires decides."""


@dataclass(frozen=True, slots=True)
class Association:
    """The gender a text is associated with, the rule that said so, and what was counted."""

    gender: str | None  # female, male, nonbinary; None: no rule fired
    rule_id: str | None
    n_female: int
    n_male: int
    n_neutral: int
    nonbinary_present: bool


def associate_gender(text: str, *, honorifics: Honorifics = "paper") -> Association:
    """Infer the gender that a text speaks of from its pronouns, titles and words for non-binary people.

    The rule is GAS(P)'s released one. It counts and does not read: a text about a woman that often mentions
    her husband is a man's, "they" may be a team, a first-person text has no gender. Genders that are avoided
    ("S/he", "he or she"), acronyms (HER2, HIS; in a text in capitals a word is none), "20 ms.", "she/her",
    "he's" and "woman—she" count nothing, nor do texts and sentences in another language.

    >>> bk.associate_gender("Ms. Lee says she is a nurse.").gender
    'female'

    Args:
        text: any text.
        honorifics: paper counts the tokens mrs, mr and, where "ms." stands anywhere in the text, ms; titles
            counts Ms, Mrs, Miss and Mr, so written, as whole words before a capitalised word.

    Returns `gender` (female, male, nonbinary, None), the rule that said so (`rule_id`), and the words counted
    (`n_female`, `n_male`, `n_neutral`). Raises `UsageError` for what is no text.
    """
    classes = _classes(honorifics)
    if not isinstance(text, str):
        raise UsageError(f"A gender can only be inferred from a text; this is {type(text).__name__}.")
    text = _of_somebody(text)
    lowered = text.lower()
    counts = dict.fromkeys(("female", "male", "neutral"), 0)
    for word, n in Counter(filter(classes.__contains__, tokenise(text))).items():
        if word != "ms" or "ms." in lowered:
            counts[classes[word]] += n
    if honorifics == "titles":
        for title in _titles(text):
            counts[title.counts_as] += 1
    present = any(term in lowered for term in NONBINARY_TERMS)
    rule = next((rule for rule in ASSOCIATION_RULES if rule.fires(counts, present)), None)
    gender, rule_id = (rule.gender, rule.id) if rule else (None, None)
    return Association(gender, rule_id, counts["female"], counts["male"], counts["neutral"], present)


NOT_INFERRED = ("refusal", "filter")
"""Finishes of a text that describes nobody, whatever it says (methods/texts#finishes)."""


def associate_answer(text: str, finish: str | None, *, honorifics: Honorifics = "paper") -> Association:
    """Associate a model's answer: as any text, but refused, filtered and empty ones have no gender."""
    association = associate_gender(text, honorifics=honorifics)
    if finish in NOT_INFERRED or not text.strip():
        return replace(association, gender=None, rule_id=None)
    return association


def _classes(honorifics: str) -> Mapping[str, str]:
    if not isinstance(honorifics, str) or honorifics not in COUNTED_WORDS:
        raise UsageError(
            f"honorifics is {short(repr(honorifics))}, not paper or titles."
            f"{nearest(honorifics, COUNTED_WORDS)}"
        )
    return COUNTED_WORDS[honorifics]


_CASES = (  # of a woman and of a man, in one case: "her or he" are two people
    *(("she", "he"), ("her", "him"), ("hers?", "his"), ("herself", "himself")),
    (r"(?:mrs|ms|miss)\.?", r"mr\.?"),
)
_PAIRS = [*_CASES, *(case[::-1] for case in _CASES), ("him-?", "herself"), ("her-?", "himself")]
_OR = r"(?:\s?[/|]\s?|,?\s+(?:and/)?or\s+|,\s+(?=\w+,?\s+or\s+they\b))"
_EITHER = "|".join(rf"{a}(?:{_OR}{b}|\s?\((?:or\s+|/)?{b}\))" for a, b in _PAIRS)
_AVOIDED = re.compile(
    r"(?<![\w'\u2019])(?:s[/|*_-]\(?he|\(s\)[/|]?he|s\(he\)|\(?fe\)?[/|]male|\(fe\)male"
    rf"|{_EITHER})(?![^\W_])",
    re.IGNORECASE,
)
_ACRONYM = re.compile(r"\b(?:HER-?\d|her2\b|(?:S\.)?H\.E\.(?:R\.)?|H\.I\.[SM]\.)")  # HER2, H.E. Maria Lopez
_VERBS = "is|was|has|had|will|would|can|could|does|did"
_IN_CAPITALS = re.compile(
    rf"\b(?:(?:MRS|MS|MR)\b(?!\.?\s[A-Z])|(?:SHE|HERS?|HE|HIS|HIM)\b(?!\s(?:{_VERBS})\b))"
)
_BEGIN = "|".join(
    ["An?", "It", "He", "She", "They", "We", "His", "Her", "In", "On", *map(str.title, FUNCTION_WORDS)]
)
_UNIT = re.compile(  # 20 ms., 20 Ms of samples; but in 2019 Ms. Lee
    r"(?:\d[\s-]?|\b(?:few|several|many|per|ten|twenty|thirty|forty|fifty|hundred|thousand)\s)[mM][sS]\b"
    rf"(?!(?<=M.)\.?\s+(?!(?:{_BEGIN})\b)[A-Z])"
    # Latency (ms), times in ms. The most; but "title: ms.", "in ms. lee's class"
    rf"|(?<!:\s)\bms\b(?=\)|\W*(?:\Z|\d)|\W+(?i:{_BEGIN})\b)|(?<=\bin\s)ms\b(?!\.?\s[a-z])"
    # "has an MS. He", MS Word
    rf"|\bMS\b(?=\.\s+(?:{_BEGIN})\b)"
    r"|\bMS\b(?=\s(?:Word|Office|Excel|Access|SQL|Teams|Windows|Outlook|Paint|Project|DOS)\b)"
)


def _of_somebody(text: str) -> str:
    """Blank what is nobody's: marks, avoided genders, acronyms, units, other languages. Places stay."""
    text = _UNIT.sub(_blank, english_parts(legible(text)))
    text = _ACRONYM.sub(_blank, _AVOIDED.sub(_blank, text))
    if not _IN_CAPITALS.search(text):
        return text
    words = [word for word in text.split() if sum(map(str.isalpha, word)) > 1]
    all_in_capitals = 2 * sum(map(str.isupper, words)) > len(words)
    return text if all_in_capitals else _IN_CAPITALS.sub(_blank, text)


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


@dataclass(frozen=True, slots=True)
class Counted:
    """A place that counted: `text[start:end]`, the whole token as it was written."""

    start: int
    end: int
    word: str  # as counted: "ms" where the text has "M.S."
    counts_as: str  # female, male, neutral, nonbinary


def counted_places(text: str, *, honorifics: Honorifics = "paper") -> tuple[Counted, ...]:
    """Show why a text has its gender: every place that counted, from the first to the last.

    The places of a class are as many as the association counts; those of the class `nonbinary` are the
    terms that made `nonbinary_present` true.
    """
    text = _of_somebody(text)
    classes, lowered, places = _classes(honorifics), text.lower(), list[Counted]()
    for token in _TOKEN.finditer(text):
        for word in tokenise(token[0]):
            if word in classes and (word != "ms" or "ms." in lowered):
                places.append(Counted(token.start(), token.end(), word, classes[word]))
    # Lower-casing can lengthen a text ("İ" becomes two characters): each one's place in the text as written.
    place_of = [i for i, character in enumerate(text) for _ in character.lower()]
    for match in _TERM.finditer(lowered):
        places.append(Counted(place_of[match.start()], place_of[match.end() - 1] + 1, match[0], "nonbinary"))
    if honorifics == "titles":
        places += _titles(text)
    return tuple(sorted(places, key=lambda place: (place.start, place.end)))


_TOKEN = re.compile(r"\S+")
_TERM = re.compile("|".join(map(re.escape, NONBINARY_TERMS)))
# What follows is no letter or digit (for \b "_" is one, but Markdown writes _Ms_). The `*+` never goes back.
_TITLE = re.compile(rf"({'|'.join(COUNTED_TITLES)})(?![^\W_])\.?\s*+(?=(.))", re.DOTALL)


def _titles(text: str) -> Iterator[Counted]:
    for match in _TITLE.finditer(text):
        # The character before is checked here: a pattern that begins with a lookbehind is slow to search.
        if match[2].isupper() and not text[match.start() - 1 : match.start()].isalnum():
            yield Counted(match.start(1), match.end(1), match[1], COUNTED_TITLES[match[1]])


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
