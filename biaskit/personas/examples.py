"""Texts behind the numbers: examples with the places that counted, marked words in their sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from biaskit.personas.texts.association import Honorifics, counted_places
from biaskit.personas.texts.tokens import letters, tokeniser
from biaskit.report.content import ExampleText, Span, WordInContext
from biaskit.tables.query import Row, Tables

MOST_EXAMPLES = 240
"""Example texts of one run, shared by its models."""
LONGEST_EXAMPLE = 4_000
WORDS_IN_CONTEXT = 5
SENTENCES_PER_WORD = 3
LONGEST_SENTENCE = 280
AROUND = 18
"""Words kept on each side of a marked word in a sentence that is too long."""

_SENTENCE_END = re.compile(r"(?<!\bMrs.)(?<!\bMr.)(?<!\bMs.)(?<!\bDr.)(?<=[.!?])\s+|\n+")
_LONGEST_SEARCHED = 100_000
ListKey = tuple[str, str, str, str]  # model, occupation, origin, gender


@dataclass(slots=True)
class Shown:
    """What one pass over the rows of a run brings."""

    examples: list[ExampleText] = field(default_factory=list)
    words: list[WordInContext] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)


def show(rows: Iterable[Mapping[str, Any]], tables: Tables, choices: Mapping[str, Any]) -> Shown:
    """Examples and sentences of a run, from its stored rows and its tables.

    `rows`: of generations.jsonl; `tables`: associations and marked_words; `choices`: the analysis' own
    (honorifics, tokenizer). Which texts are shown depends on the tables alone, never on the order of rows.
    """
    associations = {str(row["key"]): row for row in tables.get("associations", ())}
    chosen = {str(row["key"]): i for i, row in enumerate(_chosen(tables.get("associations", ())))}
    contexts = _Contexts(tables.get("marked_words", ()), str(choices.get("tokenizer", "papers")))
    texts: dict[str, str] = {}
    for row in rows:
        key = str(row["key"])
        found = associations.get(key)
        if found is None or not isinstance(text := row.get("text"), str):
            continue
        if key in chosen:
            texts[key] = text
        contexts.add(key, text, found)
    honorifics: Honorifics = "titles" if choices.get("honorifics") == "titles" else "paper"
    shown = Shown()
    for key in sorted(texts, key=chosen.__getitem__):
        shown.examples.append(_example(texts[key], associations[key], honorifics))
    contexts.fill(shown)
    return shown


# --- examples ----------------------------------------------------------------------------------------


def _chosen(associations: Sequence[Row]) -> Iterator[Row]:
    """The first text of each kind (origin, asked for, associated), occupation by occupation of each model."""
    models = list(dict.fromkeys(str(row["model"]) for row in associations))
    each = max(1, MOST_EXAMPLES // max(1, len(models)))
    for model in models:
        seen: set[tuple[object, ...]] = set()
        by_occupation: dict[object, list[Row]] = {}
        for row in associations:
            if row["model"] != model:
                continue
            kind = tuple(row.get(name) for name in _KIND)
            if kind not in seen:
                seen.add(kind)
                by_occupation.setdefault(row["occupation"], []).append(row)
        in_order = [row for rows in by_occupation.values() for row in sorted(rows, key=_rank)]
        yield from in_order[:each]


_KIND = ("occupation", "origin", "specified_gender", "gender", "instruction_id", "setting")


def _rank(row: Row) -> tuple[object, ...]:
    """Unprompted genders first; under instructions none first."""
    order = ("female", "male", "nonbinary", "")
    gender, asked = str(row["gender"] or ""), str(row["specified_gender"] or "")
    return (
        row["origin"] != "associated",
        order.index(asked) if asked in order else len(order),
        order.index(gender) if gender in order else len(order),
        row.get("instruction_id") or 0,
    )


def _example(text: str, row: Row, honorifics: Honorifics) -> ExampleText:
    shown = text[:LONGEST_EXAMPLE]
    spans = tuple(
        Span(one.start, one.end, one.counts_as)
        for one in counted_places(text, honorifics=honorifics)
        if one.end <= len(shown)
    )
    number = row.get("instruction_id")
    return ExampleText(
        model=str(row["model"]),
        occupation=str(row["occupation"]),
        origin=str(row["origin"]),
        specified_gender=row["specified_gender"] or None,
        gender=row["gender"] or None,
        rule_id=row["rule_id"] or None,
        text=shown,
        spans=spans,
        key=str(row["key"]),
        cut=len(shown) < len(text),
        instruction_id=number if isinstance(number, int) else None,
    )


# --- words in context --------------------------------------------------------------------------------


class _Contexts:
    """Sentences that hold the top words of each list; those of the smallest keys, whatever the file order."""

    def __init__(self, marked: Sequence[Row], tokenizer: str) -> None:
        self._tokenise = tokeniser(tokenizer)
        self._wanted: dict[ListKey, dict[str, float]] = {}
        for row in marked:
            if row["method"] == "calibrated" and row["rank"] <= WORDS_IN_CONTEXT:
                key = (row["model"], row["occupation"], row["origin"], row["gender"])
                self._wanted.setdefault(key, {}).setdefault(row["word"], row["z"])
        self._found: dict[tuple[ListKey, str], list[tuple[str, str]]] = {}

    def add(self, key: str, text: str, row: Row) -> None:
        """Note the first sentence of a text for every wanted word in it."""
        of_list = (row["model"], row["occupation"], row["origin"], row["specified_gender"] or row["gender"])
        missing = {word for word in self._wanted.get(of_list, ()) if self._may_take((of_list, word), key)}
        text = text[:_LONGEST_SEARCHED]
        if not missing or not missing.intersection(self._tokenise(text)):
            return
        for sentence in _SENTENCE_END.split(text):
            for word in missing.intersection(self._tokenise(sentence)):
                missing.discard(word)
                self._put((of_list, word), key, _shortened(sentence.strip(), word, self._tokenise))

    def _may_take(self, place: tuple[ListKey, str], key: str) -> bool:
        held = self._found.get(place, [])
        return len(held) < SENTENCES_PER_WORD or key < held[-1][0]

    def _put(self, place: tuple[ListKey, str], key: str, sentence: str) -> None:
        held = self._found.setdefault(place, [])
        held.append((key, sentence))
        held.sort()
        del held[SENTENCES_PER_WORD:]

    def fill(self, shown: Shown) -> None:
        """Every list's words in order, each sentence stored once."""
        places: dict[str, int] = {}
        for of_list, words in self._wanted.items():
            for word, z in words.items():
                held = [sentence for _, sentence in self._found.get((of_list, word), [])]
                numbers = tuple(dict.fromkeys(places.setdefault(s, len(places)) for s in held))
                shown.words.append(WordInContext(*of_list, word=word, z=z, sentences=numbers))
        shown.sentences.extend(places)


def _shortened(sentence: str, word: str, tokenise: Any) -> str:
    """A sentence as it stands, or what surrounds the word where it is long."""
    if len(sentence) <= LONGEST_SENTENCE:
        return sentence
    tokens = sentence.split()
    at = next((i for i, token in enumerate(tokens) if word in (letters(token), *tokenise(token))), 0)
    start, end = max(0, at - AROUND), min(len(tokens), at + AROUND + 1)
    window = " ".join(token[:60] for token in tokens[start:end])
    return f"{'… ' if start else ''}{window}{' …' if end < len(tokens) else ''}"
