"""Which language the texts of a model are in, and whose rules read them (methods/texts#english)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from biaskit.common.wording import count, listed
from biaskit.corpora.languages import AUTO, ENGLISH, Language, shipped_languages
from biaskit.measurement import words
from biaskit.measures.personas.texts.english import MOST_FOREIGN, EnglishEvidence

OTHER = ""
"""The code of a language that has no folder."""
FEWEST_WORDS, LEAST_SHARE = 30, 0.03
"""Words of a text that is judged by itself; the share of them that are function words of its language."""

LEAST_AGREEING = 0.7
"""Part of the short texts that must each seem to be in the language that all are in together."""
_WORD = re.compile(r"[^\W\d_]+")


def words_of(text: str) -> Counter[str]:
    """Count the words of a text in lower case, split at apostrophes and hyphens."""
    return Counter(_WORD.findall(text.lower()))


def told_by(found: Mapping[str, int], own: Language | None = None) -> str | None:
    """Say whose function words have the largest share of these words: a code, `OTHER`, None without words.

    `own`: a language of the user's own, beside those that are shipped.
    """
    n = sum(found.values())
    shares = Counter[str]()
    for word in found.keys() & (_codes().keys() | (own.of_function if own else ())):
        for code in _codes().get(word, ()):
            shares[code] += found[word]
        if own and own.code not in _codes().get(word, ()) and word in own.of_function:
            shares[own.code] += found[word]
    best, most = max(shares.items(), key=lambda item: item[1], default=(OTHER, 0))
    return (best if most >= LEAST_SHARE * n else OTHER) if n else None


@cache
def _codes() -> Mapping[str, tuple[str, ...]]:
    """Map each function word to the codes of its languages."""
    codes: dict[str, tuple[str, ...]] = {}
    for code, one in shipped_languages().items():
        for word in one.of_function:
            codes[word] = (*codes.get(word, ()), code)
    return codes


@dataclass(frozen=True, slots=True)
class LanguageReading:
    """In which language a model's texts are read; `language` None: in none, and `reason` says why."""

    language: Language | None
    found: str  # auto, or `given` by the key `language`
    texts: Mapping[str, int]  # code → texts in that language, those that say too little as most are
    english: EnglishEvidence
    reason: str | None = None
    most: Language | None = None  # that most are in, where no rules read it

    def reads(self, english: bool | None, told: str | None) -> bool:
        """Whether the rules can read one of these texts, as `LanguageEvidence.add` judged it."""
        if self.language is not None and self.language.code == ENGLISH:
            return self.english.reads(english)
        return self.language is not None and told in (None, self.language.code)

    def offers(self, what: str) -> bool:
        """Whether `what` is made of these texts: represented, words, srb or outcomes."""
        if self.language is None:  # most are in English, and only what is inferred is missing
            return what != "represented" and 2 * self.english.n_foreign < self.english.n_texts
        return what in self.language.offers

    @property
    def rule_of_others(self) -> str:
        """What stands for the rule of a text that is not read (`[rules]` of tables.toml)."""
        return "not-english" if self.language is None or self.language.code == ENGLISH else "not-read"

    @property
    def n_foreign(self) -> int:
        """How many texts are not in its language; where there is none, not in English."""
        if self.language is None or self.language.code == ENGLISH:
            return self.english.n_foreign
        return sum(self.texts.values()) - self.texts.get(self.language.code, 0)

    def notes(self, label: str) -> Iterator[str]:
        """Say how it was found where it is not English, and which texts count for nobody."""
        says, foreign = words("personas")["languages"], self.n_foreign
        if self.language is None:
            own = self.most.why_not if self.most else ""
            yield says["none"].format(label, self.reason) + (f" ({own})" if own else "")
            return
        name = self.language.name
        if self.language.code != ENGLISH:
            yield says["read"].format(label, name, says[self.found])
        if foreign:
            yield says["some"].format(label, f"{foreign:,} of {count(self.english.n_texts, 'text')}", name)

    def record(self) -> dict[str, object]:
        """Describe it for analysis.json; of all texts, those in each language by its code."""
        texts = {code or "other": n for code, n in self.texts.items()}
        about: dict[str, object] = {
            "language": None,
            "found": self.found,
            "texts": texts,
            "n_texts": self.english.n_texts,
        }
        if (read := self.language) is not None:
            about |= read.model_dump(mode="json", include={"name", "read_by", "such_as", "traps"})
            about |= {"language": read.code, "measured": read.measured and read.measured.rates()}
        return about


@dataclass(slots=True)
class LanguageEvidence:
    """Which languages the texts of one model, or one file, are in; texts are added one at a time."""

    own: Language | None = None  # that the key `language` names
    english: EnglishEvidence = field(default_factory=EnglishEvidence)
    _texts: Counter[str] = field(default_factory=Counter)
    """Code → texts that were judged by themselves."""
    _short: Counter[str] = field(default_factory=Counter)
    """Code → shorter texts, as each seems by itself."""
    _of_short: Counter[str] = field(default_factory=Counter)
    """The words of these."""

    def add(self, text: str) -> tuple[bool | None, str | None]:
        """Judge one text: whether it is English, and its language; None where it says too little."""
        english = self.english.add(text)
        if english:  # today most texts are, and nothing else is asked of them
            self._texts[ENGLISH] += 1
            return english, ENGLISH
        found = words_of(text)
        told = told_by(found, self.own)
        if told is None:
            return english, None
        if sum(found.values()) >= FEWEST_WORDS:
            self._texts[told] += 1
            return english, told
        self._short[told] += 1
        self._of_short.update(found)
        return english, None

    def reading(self) -> LanguageReading:
        """Decide: what today's rule reads as English is, else what nine in ten of the texts are in."""
        texts, own = self._counted(), self.own
        found = AUTO if own is None else "given"
        if self.english.read and (own is None or own.code == ENGLISH):
            return LanguageReading(shipped_languages()[ENGLISH], found, texts, self.english)
        named = {code: one.name for code, one in shipped_languages().items()}
        n, chosen = sum(texts.values()), own
        if own is None and texts:
            chosen = shipped_languages().get(max(texts, key=texts.__getitem__))
        if own is not None:
            named[own.code] = own.name
        part = texts.get(chosen.code, 0) if chosen else 0
        enough = part >= (1 - MOST_FOREIGN) * n if n else own is not None
        if chosen and chosen.has_rules and chosen.code != ENGLISH and enough:
            return LanguageReading(chosen, found, texts, self.english)
        says, n_texts, why = words("personas")["languages"], count(self.english.n_texts, "text"), ""
        in_each = list[str]()
        for code, m in texts.most_common():
            of_all = f" of {n_texts} are" if not in_each else ""
            in_each.append(f"{m:,}{of_all} in {named.get(code, says['other'])}")
        why = says["mixed"]
        if own is not None:
            why = says["not_given"].format(own.name)
        elif enough:
            why = says["no_rules"]
        said = listed(in_each) or f"{n_texts} say too little to tell"
        return LanguageReading(None, found, texts, self.english, f"{said}, {why}", chosen)

    def _counted(self) -> Counter[str]:
        """Count all texts: short ones are as most others, or as all their words together; if they agree."""
        texts, n_short = Counter(self._texts), sum(self._short.values())
        if not n_short:
            return texts
        n_judged = sum(texts.values())
        rest = told_by(self._of_short, self.own) or OTHER
        if n_judged > MOST_FOREIGN * (n_judged + n_short):
            rest = max(texts, key=texts.__getitem__)
        agree = self._short[rest] >= LEAST_AGREEING * n_short
        texts.update({rest: n_short} if agree else self._short)
        return texts
