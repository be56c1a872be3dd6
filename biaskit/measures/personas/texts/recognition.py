"""Which language the texts of a model are in, and whose rules read them (methods/texts#english)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from biaskit.common.wording import count, listed
from biaskit.corpora.languages import AUTO, ENGLISH, Language, shipped_languages
from biaskit.measurement import words
from biaskit.measures.personas.texts.english import MOST_FOREIGN, EnglishEvidence
from biaskit.measures.personas.texts.tokens import runs_of

OTHER = ""
"""The code of a language that has no folder."""
FEWEST_WORDS, LEAST_SHARE = 30, 0.12
"""Words of a text that is judged by itself; the share of them that are function words of its language.

Of 30 words in a language of ours 0.5 % or fewer of texts have less; of Dutch, Danish or Czech ones at most a
tenth are words of ours.
"""

LEAST_AGREEING = 0.7
"""Part of the short texts that must each seem to be in the language that all are in together."""
_WORD = re.compile(r"[^\W\d_]+")


def told_by(found: Mapping[str, int], known: Mapping[str, Language]) -> str | None:
    """Say whose function words have the largest share of these words: a code, `OTHER`, None without words."""
    if not found:
        return None
    in_each = {code: found.keys() & one.of_function for code, one in known.items()}
    shares = {code: sum(map(found.__getitem__, words)) for code, words in in_each.items()}
    best = max(shares, key=shares.__getitem__)
    return best if shares[best] >= LEAST_SHARE * sum(found.values()) else OTHER


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
        if self.language is not None and not self.is_english:
            return told in (None, self.language.code)
        return self.language is not None and self.english.reads(english)

    def offers(self, what: str) -> bool:
        """Whether `what` is made of these texts: represented, words, srb or outcomes."""
        if self.language is None:  # most are in English, and only what is inferred is missing
            return what != "represented" and 2 * self.english.n_foreign < self.english.n_texts
        return what in self.language.offers

    @property
    def is_english(self) -> bool:
        """Whether it is read in English, or in none, where what is not English counts as foreign."""
        return self.language is None or self.language.code == ENGLISH

    def notes(self, label: str) -> Iterator[str]:
        """Say how it was found where it is not English, and which texts count for nobody."""
        says, n, foreign = words("personas")["languages"], self.english.n_texts, self.english.n_foreign
        if self.language is None:
            own = self.most.why_not if self.most else ""
            yield says["none"].format(label, self.reason) + f" ({own})" * bool(own)
            return
        if not self.is_english:
            foreign = sum(self.texts.values()) - self.texts.get(self.language.code, 0)
            yield says["read"].format(label, self.language.name, says[self.found])
        if foreign:
            yield says["some"].format(label, f"{foreign:,} of {count(n, 'text')}", self.language.name)

    def record(self) -> dict[str, object]:
        """Describe it for analysis.json; of all texts, those in each language by its code."""
        own, kept = self.language, {"name", "read_by", "such_as", "traps", "measured"}
        texts = {code or "other": n for code, n in self.texts.items()}
        about: dict[str, object] = {"language": own and own.code, "found": self.found, "texts": texts}
        return about | {"n_texts": self.english.n_texts} | (own.model_dump(include=kept) if own else {})


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
        found = Counter(runs_of(_WORD, text.lower()))  # split at apostrophes and hyphens
        told = told_by(found, self.known)
        if told is None:
            return english, None
        if found.total() >= FEWEST_WORDS:
            self._texts[told] += 1
            return english, told
        self._short[told] += 1
        self._of_short.update(found)
        return english, None

    def reading(self) -> LanguageReading:
        """Decide: what today's rule reads as English is, else what nine in ten of the texts are in."""
        texts, own, known = self._counted(), self.own, self.known
        n, found = texts.total(), AUTO if own is None else "given"
        if self.english.read and (own is None or own.code == ENGLISH):
            return LanguageReading(known[ENGLISH], found, texts, self.english)
        code = own.code if own else max(texts, key=texts.__getitem__, default=OTHER)
        most, enough = known.get(code), texts[code] >= (1 - MOST_FOREIGN) * n and (n > 0 or own is not None)
        if most and most.has_rules and most.code != ENGLISH and enough:
            return LanguageReading(most, found, texts, self.english)
        says, n_texts = words("personas")["languages"], count(self.english.n_texts, "text")
        in_each = list[str]()
        for code, m in texts.most_common():
            are = "" if in_each else f" of {n_texts} are"
            in_each.append(f"{m:,}{are} in {known[code].name if code else says['other']}")
        said = listed(in_each) or says["too_little"].format(n_texts)
        why = says["not_given"].format(own.name) if own else says["no_rules" if enough else "mixed"]
        return LanguageReading(None, found, texts, self.english, f"{said}, {why}", most)

    @property
    def known(self) -> Mapping[str, Language]:
        """The languages that are told apart, by their codes."""
        return {**({self.own.code: self.own} if self.own else {}), **shipped_languages()}

    def _counted(self) -> Counter[str]:
        """Count all texts: short ones are as most others, or as all their words together; if they agree."""
        texts, n_short = Counter(self._texts), self._short.total()
        if not n_short:
            return texts
        rest = told_by(self._of_short, self.known) or OTHER
        if texts.total() > MOST_FOREIGN * (texts.total() + n_short):
            rest = max(texts, key=texts.__getitem__)
        agree = self._short[rest] >= LEAST_AGREEING * n_short
        return texts + (Counter({rest: n_short}) if agree else self._short)
