"""Sentence pairs that differ in a person's gender alone: read, checked, and what is odd about them said."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator

from biaskit.common.plain import group_by
from biaskit.common.wording import count, first_words, short
from biaskit.corpora.loaders import gender_words
from biaskit.corpora.pair_formats import PUBLISHED, Hunk, Name, PairRow, differing_marks, differing_words
from biaskit.corpora.rows import SourceLayout, read_list
from biaskit.corpora.sources import Filled, Text, case_notes, shown
from biaskit.errors import CorpusError
from biaskit.records import ALL, SentencePair

_SHOWN = 12  # pairs that a note names
_STEM = 3  # letters that forms of one word share
_SHORT = 4  # letters of articles, pronouns and prepositions
_POSSESSIVE = re.compile(r"(sein|ihr)(e[mnrs]?)?")  # German: the one pair of longer pronouns
_SAME_SCRIPT = {"HIRAGANA": "CJK", "KATAKANA": "CJK"}  # one Japanese text has all three


def _not_all(name: str) -> str:
    if name == ALL:
        raise ValueError('is "all", which tables call the mean over all pairs. Rename it.')
    return name


_Part = Annotated[Name, AfterValidator(_not_all)]  # a part of the pairs that has a row of its own


class _Pair(PairRow):
    female: Filled
    male: Filled
    item: Name = ""
    diverse: Filled | None = None
    stereotype: _Part = ""
    direction: Literal["female", "male"] | None = None
    language: _Part = ""
    prefix: Text = ""

    def as_pair(self) -> SentencePair:
        return SentencePair(**self.model_dump())


_PAIRS: SourceLayout[PairRow] = SourceLayout("pairs", "pair", _Pair, csv=True, jsonl=True)


def load_pairs(
    source: str | Path | Sequence[Mapping[str, object]],
) -> tuple[tuple[SentencePair, ...], tuple[str, ...]]:
    """Read sentence pairs in file order, and what a reader should know of them, a line each.

    .csv, .xlsx, .jsonl, .toml (`[[pair]]`), or rows in memory with the columns female, male and, where
    wanted, item (else the row's number), diverse, stereotype, direction, language and prefix; others are
    ignored. EuroGEST, CrowS-Pairs and WinoBias are told by their columns (`pair_formats`). A sentence
    follows its prefix after one space.
    """
    table = read_list(source, _PAIRS, *PUBLISHED)
    pairs: dict[SentencePair, int] = {}  # and their rows
    places: dict[tuple[str, str], str] = {}
    left_out: defaultdict[str, list[str]] = defaultdict(list)
    seen: set[SentencePair] = set()
    for number, (where, row) in enumerate(table.entries, start=1):
        found = row.as_pair()
        if isinstance(found, str):
            left_out[found].append(where)
            continue
        pair = replace(found, item=found.item or str(number))
        for (one, text), (other, same) in combinations(pair.sentences.items(), 2):
            if text == same:
                raise CorpusError(
                    f"{where}: {one} and {other} are the same sentence, {shown(text)}."
                    " Write the forms in which they differ, or remove the row."
                )
        if (first := places.setdefault((pair.item.lower(), pair.language), where)) != where:
            language = f" in language {shown(pair.language)}" if pair.language else ""
            raise CorpusError(
                f"{where}: item {shown(pair.item)} is listed twice{language} (first: {first})."
                " Number its sentences, and name what they share under stereotype."
            )
        # One pair however often it is listed: a copy is no evidence.
        if (copied := replace(pair, item="", diverse=None)) in seen:
            left_out["with the sentences of another"].append(where)
            continue
        seen.add(copied)
        pairs[pair] = number
    notes = [
        f"{count(len(rows), 'row')} {kind}, left out (first: {rows[0]})" for kind, rows in left_out.items()
    ]
    if not pairs:
        raise CorpusError(f"{table.where} has no pairs: {'; '.join(notes)}. Write at least one.")
    return tuple(pairs), (*notes, *_notes(pairs))


# --- what is odd, but no error -------------------------------------------------------------------


def _notes(pairs: Mapping[SentencePair, int]) -> Iterator[str]:
    """Say in a line each, with a count and the first example, what does not fit together; pair → row."""
    undirected = [pair for pair in pairs if pair.direction is None]
    if len(undirected) < len(pairs):
        yield from _note(undirected, "has", "have", "no direction: no stereotype rate over them")
    unnamed = [pair for pair in pairs if not pair.language]
    if len(unnamed) < len(pairs):
        yield from _note(unnamed, "names", "name", "no language, others do")
    language_of = attrgetter("language")
    for language, its in group_by(filter(language_of, pairs), language_of).items():
        scripts = {pair: _scripts(pair.female)[0] for pair in its}
        usual = Counter(scripts.values()).most_common(1)[0][0]
        odd = {}
        for pair, script in scripts.items():
            if script != usual:
                odd[pair] = f"{script.lower()}, not {usual.lower()}"
        yield from _note(odd, "of", "of", f"language {shown(language)} in other letters", odd)
    begun = [p for p in pairs if p.female.startswith(p.male) or p.male.startswith(p.female)]
    never = "is then never the less probable one: end both in a full stop"
    yield from _note(begun, "has", "have", f"a sentence that begins the other, and {never}")
    beyond = []
    for pair, row in pairs.items():
        if differs := _beyond_gender(pair):
            beyond.append(f"{short(pair.item)}, row {row:,}: {differs}")
    if beyond:
        differ = count(len(beyond), "pair differs", "pairs differ")
        yield f"{differ} perhaps in more than marks of gender: {first_words(beyond, _SHOWN, '; ')}"
    for what in ("stereotype", "language"):
        yield from case_notes(what, dict.fromkeys(getattr(pair, what) for pair in pairs))


def _note(
    found: Collection[SentencePair],
    does: str,
    do: str,
    what: str,
    seen: Mapping[SentencePair, str] | None = None,
) -> Iterator[str]:
    """Count the pairs that were found, and name the first with what was seen in it."""
    if found:
        first = next(iter(found))
        name = f"{short(first.item)} ({short(first.language)})" if first.language else short(first.item)
        example = f"{name}: {seen[first]}" if seen else name
        yield f"{count(len(found), f'pair {does}', f'pairs {do}')} {what} (first: {example})"


def _scripts(text: str) -> list[str]:
    """Name the scripts of its letters, such as LATIN, that of most of them first, or none."""
    scripts = Counter[str]()
    for letter in filter(str.isalpha, text):
        name = unicodedata.name(letter, "unknown").partition(" ")[0]
        scripts[_SAME_SCRIPT.get(name, name)] += 1
    return [*dict(scripts.most_common())] or ["none"]


def _beyond_gender(pair: SentencePair) -> str:
    """Quote the first words, else marks, that differ and not by gender; empty: there are none."""
    for one, other in combinations(pair.sentences.values(), 2):
        for hunk in differing_words(one, other):
            if not _marks_gender(hunk):
                return " / ".join(shown(" ".join(words)) for words in hunk)
        for written in differing_marks(one, other):
            return " / ".join(shown(text).replace("  ", "␣␣") for text in written)
    return ""


def _marks_gender(hunk: Hunk) -> bool:
    one, other = hunk
    if not one or not other:  # a Chinese or Japanese character may stand alone
        return all(len(word) == 1 or word in gender_words() for word in (*one, *other))
    if abs(len(one) - len(other)) == 1:  # an article may hide in a preposition: del, de la; au, à la
        one = [word for word in one if len(word) > _SHORT]
        other = [word for word in other if len(word) > _SHORT]
    return len(one) == len(other) and all(map(_forms_of_one_word, one, other))


def _forms_of_one_word(a: str, b: str) -> bool:
    if any(map(str.isdigit, a + b)) or {*_scripts(a)} != {*_scripts(b)}:  # Cyrillic Не looks like He
        return False
    a, b = (unicodedata.normalize("NFD", word).replace("\u0308", "") for word in (a, b))  # Ärztin, Arzt
    if a[:_STEM] == b[:_STEM] or max(len(a), len(b)) <= _SHORT:
        return True
    return {a, b} <= gender_words().keys() or all(map(_POSSESSIVE.fullmatch, (a, b)))
