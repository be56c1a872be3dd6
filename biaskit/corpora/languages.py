"""A language: whom its words name, what is left out, how its texts are known (howto/languages).

Each is a folder `corpora/language-XX/` with a language.toml, or a user's own folder; no code names a word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cache, cached_property
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from biaskit.common.files import data_dir
from biaskit.common.inputs import expanded
from biaskit.corpora.sources import LISTS, SHIPPED, Filled, ListEntry, entry_of, read_source, shown
from biaskit.errors import CorpusError, UsageError, nearest

ENGLISH = "en"
AUTO = "auto"  # the language is found by the words of the texts
FILE = "language.toml"
_FOLDER = "language-"

LETTERS = r"[^\W\d_](?:[^\W\d_]|[\u0300-\u036f])*+"
"""A word that can count: letters with their marks."""


def _code(text: str) -> str:
    if not re.fullmatch(r"[a-z]{2,3}(?:-[a-z0-9]+)*", text):
        raise ValueError(f"{shown(text)} is no code of a language: write one such as nl, or de-mine.")
    return text


def _countable(text: str) -> str:
    for word in text.split():
        if word != unicodedata.normalize("NFC", word.lower()) or not re.fullmatch(LETTERS, word):
            raise ValueError(
                f"has {shown(word)}, and words of texts are in lower case, split at apostrophes and hyphens."
            )
    return text


def _regular(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{shown(pattern)} is no regular expression: {error}.") from None
    return pattern


Class = Literal["female", "male", "neutral"]
_List = Annotated[list[Filled], Field(default_factory=list)]
_Table = Annotated[dict[str, Filled], Field(default_factory=dict)]
_Words = Annotated[Filled, AfterValidator(_countable)]  # with spaces between
_Regular = Annotated[str, AfterValidator(_regular)]
_Pairs = list[Annotated[list[_Regular], Field(min_length=2, max_length=2)]]


class NotCounted(ListEntry):
    """What `pattern` finds, or its group `out`, is nobody's: it is blanked before words are counted."""

    id: Filled
    reason: Filled
    pattern: Filled  # a regular expression; %NAME% stands for a part, ends of lines for nothing
    left_out: Filled  # a text of whose words the rule leaves one out
    counts: Filled  # one like it that it must leave alone
    needs: _Regular = ""  # stands in all that `pattern` finds, and is quick to search
    first: bool = False  # before avoided forms
    not_in_capitals: bool = False  # only in a text that is not mostly in capitals


class Avoided(ListEntry):
    """Forms that name a woman or a man: `pairs` in both orders, `one_way` as they stand; all are patterns."""

    pairs: _Pairs = Field(default_factory=list)
    one_way: _Pairs = Field(default_factory=list)
    join: _Regular = r"\s?[/|]\s?"  # what stands between them
    bracketed: _Regular = r"\s?\(%other%\)"
    also: _Regular = ""
    needs: _Regular = ""  # as of `NotCounted`


class Rule(ListEntry):
    """A text is of `gender` where the class `more` counts more than the classes `than` together."""

    id: Filled
    gender: Literal["female", "male", "nonbinary"]
    with_term: bool | None = None  # whether it needs a term for non-binary people, or none; None: either
    more: str = ""  # empty: it fires where `than` count nothing
    than: list[Class]

    def fires(self, counts: Mapping[str, int], term: bool) -> bool:
        """Say whether the rule holds for the counts of the classes."""
        others = sum(counts[name] for name in self.than)
        holds = counts[self.more] > others if self.more else not others
        return self.with_term in (None, term) and holds


_BY_WORDS = (
    Rule(id="nonbinary", gender="nonbinary", with_term=True, than=["female", "male"]),
    Rule(id="female", gender="female", with_term=False, more="female", than=["male"]),
    Rule(id="male", gender="male", with_term=False, more="male", than=["female"]),
)


class Language(ListEntry):
    """A language as its language.toml describes it."""

    code: Annotated[Filled, AfterValidator(_code)]
    name: Filled  # in English
    offers: list[Literal["represented", "words", "srb", "outcomes"]]
    why_not: str = ""  # why nothing is offered
    read_by: str = ""  # the native readers who have read its lists
    such_as: _List  # two of its words, as pages show them
    traps: _List  # what its rules get wrong, a sentence each
    tokenizer: Literal["papers", "words"] = "words"
    function_words: _Words  # without pronouns
    nonbinary: _List  # searched in the lower-cased text, also inside words
    words: Annotated[dict[Class, _Words], Field(default_factory=dict)]
    honorifics: Annotated[dict[str, dict[Class, _Words]], Field(default_factory=dict)]
    """More words, by the study's key; English has it."""
    only_with: _Table  # word → what must stand somewhere in the lower-cased text
    titles: Annotated[
        dict[Class, Filled], Field(default_factory=dict)
    ]  # as written, before a capitalised word
    parts: _Table
    avoided: Avoided = Avoided()
    not_counted: list[NotCounted] = Field(default_factory=list)
    rules: list[Rule] = Field(alias="rule", default_factory=lambda: list(_BY_WORDS))
    told: _Table  # how it is told from sixty others, which only English is
    measured: Annotated[dict[str, str | int | float], Field(default_factory=dict)]
    """Rates on sentences about one person, in parts of 1, written by benchmarks/languages.py."""

    @cached_property
    def has_rules(self) -> bool:
        """Whether the gender of its texts is inferred."""
        return "represented" in self.offers

    @cached_property
    def of_function(self) -> frozenset[str]:
        """Its function words."""
        return frozenset(self.function_words.split())

    @cached_property
    def classes(self) -> Mapping[str, Mapping[str, str]]:
        """Map each choice of `honorifics` ("" where there is none) to the class of each word that counts."""
        return {choice: _by_word(self.words, more) for choice, more in (self.honorifics or {"": {}}).items()}

    @cached_property
    def title_classes(self) -> Mapping[str, str]:
        """The class of each title."""
        return _by_word(self.titles)

    @cached_property
    def title_pattern(self) -> re.Pattern[str]:
        """Find a title (group 1) and the character after it (group 2)."""
        # What follows is no letter or digit (\b would take Markdown's _Ms_ for a word). `*+` never goes back.
        titles = "|".join(map(re.escape, self.title_classes))
        return re.compile(rf"({titles})(?![^\W_])\.?\s*+(?=(.))" if titles else r"(?!)", re.DOTALL)

    @cached_property
    def term_pattern(self) -> re.Pattern[str]:
        """Find a term for non-binary people."""
        return re.compile("|".join(map(re.escape, self.nonbinary)) or r"(?!)")

    @cached_property
    def avoided_pattern(self) -> re.Pattern[str]:
        """Find an avoided form, in any case."""
        of, forms = self.avoided, []
        for one, other in [*of.pairs, *(pair[::-1] for pair in of.pairs), *of.one_way]:
            bracketed = of.bracketed.replace("%other%", f"(?:{other})")
            forms.append(f"(?:{one})(?:{of.join}(?:{other})|{bracketed})")
        every = "|".join(filter(None, [of.also, *forms])) or "(?!)"
        return re.compile(rf"(?<![\w'\u2019])(?:{every})(?![^\W_])", re.IGNORECASE)

    @cached_property
    def patterns(self) -> Mapping[str, re.Pattern[str]]:
        """The pattern of each `not_counted` rule, by its id."""
        return {rule.id: re.compile(self.filled(rule.pattern)) for rule in self.not_counted}

    def filled(self, pattern: str) -> str:
        """Put parts into a pattern, without the ends of its lines."""
        titled = "|".join(map(str.title, self.of_function))
        for name, part in (*self.parts.items(), ("Function_words", titled)):
            pattern = pattern.replace(f"%{name}%", part)
        return re.sub(r"\n\s*", "", pattern)


def blanked(pattern: re.Pattern[str], text: str, needs: str = "") -> str:
    """Blank what a pattern finds, or its group `out`, in a text with what it `needs`; all keeps its place."""

    def blank(match: re.Match[str]) -> str:
        start, end = match.span("out" if "out" in pattern.groupindex else 0)
        if start < 0:  # the group found nothing
            return match[0]
        return f"{text[match.start() : start]}{' ' * (end - start)}{text[end : match.end()]}"

    return pattern.sub(blank, text) if re.search(needs, text) else text


def _by_word(*lists: Mapping[Class, str]) -> dict[str, str]:
    of_words: dict[str, str] = {}
    for one in lists:
        for name, words in one.items():
            of_words |= dict.fromkeys(words.split(), name)
    return of_words


@cache
def shipped_languages() -> Mapping[str, Language]:
    """Read every shipped language, by its code; files that differ from their digests are an error."""
    codes = sorted(path.name.removeprefix(_FOLDER) for path in data_dir("corpora").glob(f"{_FOLDER}*"))
    return {code: shipped_language(code) for code in codes}


@cache
def shipped_language(code: str) -> Language:
    """Read one shipped language."""
    where, _, text = read_source(f"{SHIPPED}{_FOLDER}{code}/{FILE}", "language", (".toml",))
    return _checked(LISTS.parsed_toml(text, where), where)


def language(name: str | Language) -> Language:
    """Find a language by its code, or read the folder that `name` is the path of (with a slash).

    Raises `UsageError` for an unknown one, with those that have rules, and `CorpusError` for a bad folder.
    """
    if isinstance(name, Language):
        return name
    known = shipped_languages()
    if isinstance(name, str) and "/" in name:
        path = expanded(name)
        path = path / FILE if path.is_dir() else path
        own = _checked(LISTS.toml(path), str(path))
        if own.code in known:
            raise CorpusError(
                f"{path}: {own.code!r} is the code of {known[own.code].name}, which is shipped."
                f" Give yours another, such as {own.code}-mine."
            )
        if own.offers != ["represented"]:
            raise CorpusError(f'{path}: words are read in English only. Write offers = ["represented"].')
        return own
    if not isinstance(name, str) or name not in known or not known[name].has_rules:
        with_rules = [code for code, one in known.items() if one.has_rules]
        wrong = f"There is no language {str(name)[:40]!r}.{nearest(str(name), with_rules)}"
        if str(name) in known:
            wrong = f"{known[str(name)].name} has no rules: {known[str(name)].why_not}."
        listed = ", ".join(with_rules)
        raise UsageError(
            f"{wrong} With rules: {listed}, or the path of a folder of your own (./language-XX)."
        )
    return known[name]


def _checked(content: Mapping[str, object], where: str) -> Language:
    """Check a language: its keys, its words, and each rule by its own examples."""
    read = entry_of(Language, content, where)
    for name in ("female", "male") if read.has_rules else ():
        if name not in read.words:
            raise CorpusError(
                f"{where}: [words] has none of the class {name}. Write them, with spaces between."
            )
    words = " ".join(read.words.values()).split()
    if doubled := [word for word in words if words.count(word) > 1]:
        raise CorpusError(f"{where}: [words] has {shown(doubled[0])} in two classes. Write it once.")
    ids = [rule.id for rule in read.not_counted]
    for rule in read.not_counted:
        at = f"{where}: rule {shown(rule.id)}"
        if ids.count(rule.id) > 1:
            raise CorpusError(f"{where}: two rules have the id {shown(rule.id)}. Give each its own.")
        try:
            pattern = re.compile(read.filled(rule.pattern))
        except re.error as error:
            raise CorpusError(f"{at}: {shown(error.pattern)} is no regular expression: {error}.") from None
        left_out, counts = shown(rule.left_out), shown(rule.counts)
        if blanked(pattern, rule.left_out, rule.needs) == rule.left_out:
            raise CorpusError(
                f"{at}: its pattern leaves nothing out of left_out, {left_out}. Mend one of both."
            )
        if blanked(pattern, rule.counts) != rule.counts:
            raise CorpusError(f"{at}: its pattern leaves a word out of counts, {counts}. Mend one of both.")
    return read
