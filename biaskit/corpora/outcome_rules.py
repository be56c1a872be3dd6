"""Rules that say what an answer or a text comes to: data with ids, of which the first that fires decides.

A pattern is a regular expression of a checked subset that cannot run away: no repetition but `?` and the gap
`..`, which stands for up to 60 characters of one sentence. See docs/methods.md#outcomes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from pathlib import Path

from biaskit.corpora.rows import SourceLayout, read_list
from biaskit.corpora.sources import Filled, Label, ListEntry, shown, unknown
from biaskit.errors import CorpusError
from biaskit.foreign import HIDDEN

SENTENCE_END = ".!?\n"
MOST_GAPS = 2
"""Gaps of one pattern: its cost grows with a power of their number."""

_GAP = rf"[^@{re.escape(SENTENCE_END)}]{{0,60}}?"  # the shortest that will do
_SENTENCE = re.compile(rf"[^{re.escape(SENTENCE_END)}]+[.!?]*")
_NAMED = {
    "@w": r"[^\W_]{1,24}",
    "@a": r"@(?P<a>[0-9]+)",
    "%a": r"%(?P<a>[0-9]+)",
    "@b": r"@(?!(?P=a)\b)[0-9]+",
}
_ESCAPED = re.compile(r"\\.|\[\^?(?:\\.|[^\\\]])+\]")
_ESCAPES = re.compile(r"\\[b.?()|/+*$\[\]-]")
_NOTATION = re.compile(r"\\.|\[\^?(?:\\.|[^\\\]])+\]|\.\.|@[abw]|%a")
_APOSTROPHES = "\u2018\u2019\u02bc"
# Apostrophes go that have no letter before or none after. Patterns that begin with a set are quick to search.
_MARKUP = re.compile(r"[*_`#>\"\u201c\u201d\u00ab\u00bb']((?<![^\W_]')|(?![^\W_]))")
_TAGS = re.compile(
    r"</?(?:b|i|u|s|em|strong|p|br|div|span|code|h[1-6]|sup|sub|bos|eos|pad|unk|(?:start|end)_of_(?:turn|image))"
    r" ?/?>"
)


@dataclass(frozen=True, slots=True)
class OutcomeRule:
    """Where `pattern` is found in what the rule `reads`, the outcome is `outcome`."""

    id: str
    outcome: str
    reads: str
    pattern: str  # as the file has it
    reason: str
    compiled: re.Pattern[str] = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class OutcomeRules:
    """The rules of a file in their order, and the texts that stand beside them."""

    rules: tuple[OutcomeRule, ...]
    top: Mapping[str, str]
    _blocks: tuple[tuple[str, tuple[OutcomeRule, ...]], ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Put rules together that stand together and read the same: once, not for every text."""
        blocks = groupby(self.rules, key=lambda rule: rule.reads)
        object.__setattr__(self, "_blocks", tuple((reads, tuple(block)) for reads, block in blocks))

    def first(self, readings: Mapping[str, Sequence[str]]) -> tuple[OutcomeRule, re.Match[str]] | None:
        """The rule that decides, and what it found; None: no rule fires.

        `readings`: what a rule may read → its pieces in order. Rules that stand together and read the same
        are tried piece by piece, so that what is said first decides, then in their order.
        """
        for reads, block in self._blocks:
            for piece in readings[reads]:
                for rule in block:
                    if found := rule.compiled.search(piece):
                        return rule, found
        return None


class _Rule(ListEntry):
    id: Label
    outcome: Filled
    pattern: str
    reason: Filled
    reads: str = ""


def load_outcome_rules(
    source: str | Path,
    *,
    outcomes: Sequence[str],
    readings: Sequence[str],
    top: Sequence[str] = (),
    naming: str = "",
) -> OutcomeRules:
    """Read and check a file of rules: .toml with `[[rule]]` tables.

    Args:
        outcomes: what a rule may say.
        readings: what a rule may read; the first is the default.
        top: keys of texts that the file must hold beside its rules.
        naming: the outcome whose rules must say which listed word it is, with `@a` or `%a`.
    """
    table = read_list(source, SourceLayout("outcome rules", "rule", _Rule, tuple(top)))
    rules: dict[str, OutcomeRule] = {}
    for where, entry in table.entries:
        reads = entry.reads or readings[0]
        for what, value, known in (("outcome", entry.outcome, outcomes), ("reads", reads, readings)):
            if value not in known:
                raise CorpusError(f"{where}: {unknown(what, value, known)}")
        if entry.id in rules:
            raise CorpusError(f"{where}: the id {shown(entry.id)} stands there twice. Rename one.")
        compiled = compile_pattern(entry.pattern, where)
        if entry.outcome == naming and "a" not in compiled.groupindex:
            raise CorpusError(f"{where}: a rule for {naming} needs @a or %a, the word that it names.")
        rule = OutcomeRule(entry.id, entry.outcome, reads, entry.pattern, entry.reason, compiled)
        rules[entry.id] = rule
    for key in top:
        if not table.top.get(key):
            raise CorpusError(f"{table.where}: {key} is missing or empty. Write one.")
    return OutcomeRules(tuple(rules.values()), {key: str(table.top[key]) for key in top})


def compile_pattern(pattern: str, where: str) -> re.Pattern[str]:
    """A pattern of the checked subset; what is outside it is a `CorpusError` that names the place.

    Beside letters: groups and alternatives, `?`, classes, lookahead, `^`, `$` and word ends; `..` for a gap;
    `@w` for a word; `@a` for a listed word, `@b` for one of another group, `%a` for one inside a question.
    """
    bare = _ESCAPED.sub("x", pattern)
    if found := re.search(r"[*+{\\]|\(\?(?![:!=])|\)\?\?|\?\?", bare):
        raise CorpusError(
            f"{where}: pattern {shown(pattern)} holds {shown(found[0])}, which may be slow on some text."
            " Repeat with ? and the gap .. alone."
        )
    for escape in re.findall(r"\\.", pattern):
        if not _ESCAPES.fullmatch(escape):
            raise CorpusError(f"{where}: pattern {shown(pattern)} holds {escape}, which no pattern may.")
    if bare.count("..") > MOST_GAPS:
        raise CorpusError(
            f"{where}: pattern {shown(pattern)} has over {MOST_GAPS} gaps. Make two rules of it."
        )
    try:
        return re.compile(_NOTATION.sub(_expanded, pattern))
    except re.error as error:
        raise CorpusError(f"{where}: pattern {shown(pattern)} is no regular expression: {error}.") from None


def _expanded(found: re.Match[str]) -> str:
    return _GAP if found[0] == ".." else _NAMED.get(found[0], found[0])


# --- what patterns read ------------------------------------------------------------------------------


def plain(text: str, longest: int) -> str:
    """The beginning of a foreign text as patterns read it: `longest` characters, marks and hidden ones gone.

    Markdown, tags of inline HTML and of models, quotation marks and characters without a shape are left out,
    apostrophes are straight, white space is one space or, where a line ends, one line feed. Case stays.
    """
    text = text.lstrip()
    kept = text[:longest]
    if not kept.replace("\n", "").isprintable():
        shapes = (c for c in text if c in "\n\t" or unicodedata.category(c) not in HIDDEN)
        kept = "".join(islice(shapes, longest))
    kept = kept.replace("\t", " ")
    for apostrophe in _APOSTROPHES:  # a translation looks every character up
        kept = kept.replace(apostrophe, "'")
    lines = _MARKUP.sub("", _TAGS.sub(" ", kept)).split("\n")
    return "\n".join(filter(None, (" ".join(line.split()) for line in lines)))


def sentences(text: str) -> list[str]:
    """The sentences of a plain text with their ends; a line is one at least."""
    return [found[0].strip() for found in _SENTENCE.finditer(text) if found[0].strip()]


def word_alternatives(words: Iterable[str]) -> str:
    """A pattern of whole words, the longest first, as `biaskit.models.matching` ends a word."""
    longest_first = sorted(set(words), key=len, reverse=True)
    return rf"(?<![^\W_])(?:{'|'.join(map(re.escape, longest_first))})(?![^\W_]|\ufffd)"
