"""Texts behind the numbers: examples with the places that counted, marked words in their sentences."""

from __future__ import annotations

import re
from bisect import insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from biaskit.corpora.languages import ENGLISH, Language, language, shipped_language, shipped_languages
from biaskit.errors import UsageError
from biaskit.measures.personas.texts.association import Counted, Honorifics, counted_places
from biaskit.measures.personas.texts.outcomes import text_outcome
from biaskit.measures.personas.texts.tokens import letters, tokeniser
from biaskit.records import ALL
from biaskit.report.content import ExampleText, Shown, Span, WordInContext
from biaskit.runs.collection import StoredRun
from biaskit.tables.query import Row, Tables, grouped, where

MOST_EXAMPLES = 240  # example texts of one run, shared by its models
LONGEST_EXAMPLE = 4_000
LOOKED_AT, PER_OUTCOME = 600, 6
"""Texts of a model whose outcome is determined, and how many of each outcome but `person` are shown."""
PERSON = "person"
WORDS_IN_CONTEXT = 8
"""Of each list, without gender words and names; these come after, `GENDER_WORDS` of them."""
GENDER_WORDS = 2
SENTENCES_PER_WORD = 3
LONGEST_SENTENCE = 280
AROUND = 18  # words kept on each side of a marked word in a sentence that is too long

_SENTENCE_END = re.compile(r"(?=\s)(?:(?<=[.!?])(?<!\bMrs.)(?<!\bMr.)(?<!\bMs.)(?<!\bDr.)\s+|\n+)")
"""The lookahead comes first: it fails fast at nearly every letter."""
_LONGEST_SEARCHED = 100_000
ListKey = tuple[str, str, str, str]  # model, occupation, origin, gender


def examples(rows: Iterable[Row], run: StoredRun) -> Shown:
    """Choose the texts of a run to read."""
    return show(rows, run.tables, run.analysis.get("choices", {}), run.analysis.get("languages"))


def show(
    rows: Iterable[Mapping[str, Any]],
    tables: Tables,
    choices: Mapping[str, Any],
    languages: Mapping[str, Mapping[str, Any]] | None = None,
) -> Shown:
    """Choose examples and sentences of a run from its stored rows and its tables.

    `rows`: of personas.jsonl; `tables`: genders and marked_words; `choices`: how the texts were
    analysed (honorifics, tokenizer); `languages`: of the models, as analysis.json has them. Which texts are
    shown depends on the tables, not on the order of the rows.
    """
    listed = tables.get("genders", ())
    associations = {str(row["key"]): row for row in listed}
    of_models = grouped(listed, "model").values()
    chosen: dict[str, None] = {}  # keys
    for of_model in of_models:  # the first text of each kind, occupation by occupation
        first: dict[tuple[object, ...], Row] = {}
        for row in of_model:
            first.setdefault(tuple(map(row.get, _KIND)), row)
        of_occupations = grouped(first.values(), "occupation").values()
        in_order = [str(row["key"]) for rows in of_occupations for row in sorted(rows, key=_rank)]
        chosen |= dict.fromkeys(in_order[: max(1, MOST_EXAMPLES // len(of_models))])
    # Texts that describe nobody are looked for among the first of each model.
    looked_at = chosen | dict.fromkeys(str(row["key"]) for rows in of_models for row in rows[:LOOKED_AT])
    stored: dict[str, tuple[str, Any]] = {}  # key → text and finish
    contexts = _Contexts(tables.get("marked_words", ()), str(choices.get("tokenizer", "papers")))
    for row in rows:
        key = str(row["key"])
        association = associations.get(key)
        if association is None or not isinstance(text := row.get("text"), str):
            continue
        if key in looked_at:
            stored[key] = text, row.get("finish_reason")
        contexts.add(key, text, association)
    honorifics: Honorifics = "titles" if choices.get("honorifics") == "titles" else "paper"
    english, reads = shipped_language(ENGLISH), dict[str, Language | None]()  # model → how its texts are read
    for model, read in (languages or {}).items():
        reads[model] = _of_record(read.get("language"), str(choices.get("language")))
    outcomes = {}
    for key, (text, finish) in stored.items():  # in words of English
        is_english = reads.get(str(associations[key]["model"]), english) is english
        outcomes[key] = text_outcome(text, finish).outcome if is_english else PERSON
    rare: dict[tuple[object, str], list[str]] = {}
    for key, row in associations.items():
        if (outcome := outcomes.get(key, PERSON)) != PERSON:
            rare.setdefault((row["model"], outcome), []).append(key)
    for keys in rare.values():
        chosen |= dict.fromkeys(keys[:PER_OUTCOME])
    examples = []
    for key in filter(stored.__contains__, chosen):
        text, row, places = stored[key][0], associations[key], tuple[Counted, ...]()
        if (own := reads.get(str(row["model"]), english)) is not None:
            places = counted_places(text, honorifics=honorifics, language=own)
        examples.append(_example(text, row, places, outcomes[key]))
    return Shown(examples, *contexts.shown())


def _of_record(code: str | None, given: str) -> Language | None:
    """Find the language that texts were read in; None: in none, or its folder is no longer what it was."""
    if code is None:
        return None
    try:
        return language(code if code in shipped_languages() else given)
    except UsageError:
        return None


_KIND = ("occupation", "origin", "requested_gender", "gender", "debiasing_id", "context")


def _rank(row: Row) -> tuple[object, ...]:
    """Sort texts whose prompt names no gender first, and under debiasing prompts those without one."""
    order = ["female", "male", "nonbinary", ""]
    asked, gender = (order.index(row[name] or "") for name in ("requested_gender", "gender"))
    return row["origin"] != "inferred", asked, gender, row.get("debiasing_id") or 0


def _example(text: str, row: Row, places: Iterable[Counted], outcome: str) -> ExampleText:
    shown = text[:LONGEST_EXAMPLE]
    spans = []
    for place in places:
        if place.end <= len(shown):
            spans.append(Span(place.start, place.end, place.counts_as))
    of_row: dict[str, Any] = {name: str(row[name]) for name in ("model", "occupation", "origin", "key")}
    for name in ("requested_gender", "person_gender", "gender", "rule_id"):
        of_row[name] = row.get(name) or None
    number = row.get("debiasing_id")
    of_row["debiasing_id"] = number if isinstance(number, int) else None
    cut = len(shown) < len(text)
    return ExampleText(**of_row, text=shown, spans=tuple(spans), cut=cut, outcome=outcome)


class _Contexts:
    """Sentences that hold the top words of each list; those of the smallest keys, whatever the file order."""

    def __init__(self, marked: Sequence[Row], tokenizer: str) -> None:
        self._tokenise = tokeniser(tokenizer)
        lists = grouped(where(marked, method="calibrated"), "model", "occupation", "origin", "gender")
        self._wanted: dict[ListKey, dict[str, float]] = {}  # list → word → z
        self._found: dict[ListKey, dict[str, list[tuple[str, str]]]] = {}  # list → word → key and sentence
        for (model, occupation, origin, gender), rows in lists.items():
            plain, of_gender = dict[str, float](), dict[str, float]()
            for row in sorted(rows, key=lambda row: row["rank"]):
                words = of_gender if row.get("is_gender_word") or row.get("is_name") else plain
                words.setdefault(row["word"], row["z"])
            first = [*list(plain.items())[:WORDS_IN_CONTEXT], *list(of_gender.items())[:GENDER_WORDS]]
            of_list = model, occupation, origin, gender
            self._wanted[of_list], self._found[of_list] = dict(first), {word: [] for word, _ in first}

    def add(self, key: str, text: str, row: Row) -> None:
        """Note the first sentence of a text for every wanted word in it."""
        gender = row["requested_gender"] or row.get("person_gender") or row["gender"]
        for occupation in {ALL, row["occupation"]}:
            sentences = self._found.get((row["model"], occupation, row["origin"], gender), {})
            wanted = set[str]()
            for word, kept in sentences.items():
                if len(kept) < SENTENCES_PER_WORD or key < kept[-1][0]:
                    wanted.add(word)
            wanted &= set(self._tokenise(text[:_LONGEST_SEARCHED]) if wanted else ())
            for sentence in _SENTENCE_END.split(text[:_LONGEST_SEARCHED]) if wanted else ():
                for word in wanted.intersection(self._tokenise(sentence)):
                    wanted.discard(word)
                    insort(sentences[word], (key, sentence.strip()))
                    del sentences[word][SENTENCES_PER_WORD:]
                if not wanted:
                    break

    def shown(self) -> tuple[list[WordInContext], list[str]]:
        """Return every list's words in order, and their sentences, each stored once."""
        words, places = [], dict[str, int]()
        for of_list, wanted in self._wanted.items():
            for word, z in wanted.items():
                # Only those that stay are shortened: most give way to one of a smaller key.
                sentences = self._found[of_list][word]
                shortened = [_shortened(sentence, word, self._tokenise) for _, sentence in sentences]
                numbers = tuple(dict.fromkeys(places.setdefault(s, len(places)) for s in shortened))
                words.append(WordInContext(*of_list, word=word, z=z, sentences=numbers))
        return words, list(places)


def _shortened(sentence: str, word: str, tokenise: Callable[[str], list[str]]) -> str:
    """Cut a sentence that is too long to the words around the marked one."""
    if len(sentence) <= LONGEST_SENTENCE:
        return sentence
    tokens = sentence.split()
    at = next((i for i, token in enumerate(tokens) if word in (letters(token), *tokenise(token))), 0)
    start, end = max(0, at - AROUND), min(len(tokens), at + AROUND + 1)
    window = " ".join(token[:60] for token in tokens[start:end])
    return f"{'… ' if start else ''}{window}{' …' if end < len(tokens) else ''}"
