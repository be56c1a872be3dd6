"""The marked words of every model, occupation and origin of a run, and the tables made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, permutations, product
from operator import attrgetter
from typing import Any

import numpy as np

from biaskit.common.plain import attributes, group_by
from biaskit.measurement import words as words_of_kind
from biaskit.measures.personas.srb.score import PRONOUNS
from biaskit.measures.personas.study import PersonasStudy
from biaskit.measures.personas.texts.documents import INFERRED, REQUESTED, TextDocument, TextDocuments
from biaskit.measures.personas.texts.names import names_among, says_gender
from biaskit.measures.personas.texts.tokens import letters
from biaskit.measures.personas.words.comparisons import TextComparison, over_occupations, text_comparisons
from biaskit.measures.personas.words.contrasts import WordList
from biaskit.measures.personas.words.lists import overlap, word_lists
from biaskit.measures.personas.words.log_odds import METHODS, Prior, counts_in, topic_share
from biaskit.records import ALL, WOMEN_AND_MEN
from biaskit.stats.arrays import FloatArray
from biaskit.tables.query import Row

NOTES: Mapping[str, str] = words_of_kind("personas")["notes"]["lists"]
Progress = Callable[[int, int], None]
CALIBRATED = "calibrated"
_Lists = dict[tuple[str, str, str], tuple[TextComparison, Sequence[WordList]]]
BEYOND = ("n_marked_beyond", "null_p95_beyond", "p_value_beyond", "p_value_max_z_beyond")
"""Columns of word_lists.csv and debiasing_words.csv that leave gender words and names out."""


@dataclass(frozen=True, slots=True)
class RunLists:
    """Every comparison with its lists, by model, occupation and origin; the names in each model's texts."""

    by_key: _Lists
    over_occupations: _Lists
    names: Mapping[str, frozenset[str]]
    english: FloatArray  # of the tokens' vocabulary

    @property
    def every(self) -> list[WordList]:
        """The lists of all occupations, each for itself."""
        return list(chain.from_iterable(lists for _, lists in self.by_key.values()))

    @property
    def n_words(self) -> int:
        """Count the words of all calibrated lists."""
        return sum(one.n_marked or 0 for one in self.every if one.method == CALIBRATED)

    def compared(self, model: str, occupation: str, origin: str) -> TextComparison | None:
        """Find the texts that are compared."""
        return self.by_key.get((model, occupation, origin), (None,))[0]

    def has(self, model: str, occupation: str) -> bool:
        """Whether there is a comparison, with lists or without."""
        return any((model, occupation, origin) in self.by_key for origin in (INFERRED, REQUESTED))

    def marked(self, model: str, occupation: str, origin: str, gender: str) -> WordList | None:
        """Find the calibrated list of a gender: women against men, or men against women."""
        wanted = (gender, WOMEN_AND_MEN[1 - WOMEN_AND_MEN.index(gender)], CALIBRATED)
        for listed in self.by_key.get((model, occupation, origin), (None, ()))[1]:
            if (listed.gender, listed.against, listed.method) == wanted:
                return listed
        return None

    def words(self, model: str, occupation: str, origin: str, gender: str) -> list[str]:
        """List the words of that list that are no names in the model's texts; none where there is no list."""
        marked, names = self.marked(model, occupation, origin, gender), self.names[model]
        return [word for word in marked.listed if word not in names] if marked else []


def prior_of(study: PersonasStudy) -> Prior:
    """Make the study's prior of Calibrated Marked Words."""
    return Prior(study.alpha, study.c, study.c_topic, study.c_english, study.prior, study.prior_scale)


def chosen(study: PersonasStudy) -> dict[str, Any]:
    """Name what a study chooses of every list."""
    return {"seed": study.seed, "prior": prior_of(study), "n_shuffles": study.permutations}


def make_lists(
    documents: TextDocuments, study: PersonasStudy, english: Mapping[str, int], progress: Progress
) -> RunLists:
    """Make the lists of every comparison, in study order (methods/words#marked-words)."""
    words, names = documents.tokens.words, names_of(documents, study)
    left_out = {model: says_gender(words, model_names) for model, model_names in names.items()}
    of_english = counts_in(english, words)
    compared = list(text_comparisons(documents, study))
    pooled = list(over_occupations(compared))
    every = [*pooled, *compared]
    of_kind: dict[tuple[str, str], dict[str, FloatArray]] = {}
    if study.prior_scope == "all":
        for kind, those in group_by(compared, attrgetter("model", "origin")).items():
            texts = chain.from_iterable(map(attrgetter("texts"), those))
            of_kind[kind] = _counts_by_gender(documents, texts)
    lists_of, overall = _Lists(), _Lists()
    for done, comparison in enumerate(every):
        progress(done, len(every))
        if comparison.reason is not None:
            of_none = []
            for (gender, against), method in product((WOMEN_AND_MEN, WOMEN_AND_MEN[::-1]), METHODS):
                of_none.append(WordList(gender, against, method, 0, 0, reason=comparison.reason))
            lists_of[comparison.key] = comparison, of_none
            continue
        elsewhere, occupations, made = None, None, lists_of
        if done < len(pooled):
            occupations, made = list(map(attrgetter("occupation"), comparison.texts)), overall
        elif study.prior_scope == "all":
            own, elsewhere = _counts_by_gender(documents, comparison.texts), dict[str, FloatArray]()
            for gender, counts in of_kind[comparison.model, comparison.origin].items():
                elsewhere[gender] = counts - own.get(gender, 0.0)
        of_texts = documents.counts_of(comparison.texts), words, comparison.genders, comparison.prompts
        how = {**chosen(study), "left_out": left_out[comparison.model], "occupations": occupations}
        lists = word_lists(*of_texts, of_english, row_key=comparison.key, elsewhere=elsewhere, **how)
        made[comparison.key] = comparison, lists
    progress(len(every), len(every))
    return RunLists(lists_of, overall, names, of_english)


def names_of(documents: TextDocuments, study: PersonasStudy) -> dict[str, frozenset[str]]:
    """Find the names in each model's texts, among all words, since shuffled lists hold other names."""
    words, evidence = documents.tokens.words, documents.evidence
    return {model: names_among(words, study.names, evidence.get(model)) for model in documents.models}


def _counts_by_gender(documents: TextDocuments, texts: Iterable[TextDocument]) -> dict[str, FloatArray]:
    counts: dict[str, FloatArray] = {}
    for gender, of_gender in group_by(texts, lambda text: str(text.gender)).items():
        counts[gender] = np.asarray(documents.counts_of(of_gender).sum(axis=0), dtype=np.float64).ravel()
    return counts


def list_tables(documents: TextDocuments, lists: RunLists) -> dict[str, list[Row]]:
    """Make the public tables of the lists, by name."""
    return {
        "marked_words": list(_marked_word_rows(lists)),
        "word_lists": list(_word_list_rows(lists)),
        "word_overlap": list(_overlap_rows(documents, lists)),
        "word_methods": list(_method_rows(lists)),
    }


def is_pronoun(word: str) -> bool:
    """Say whether a word is a pronoun of the default list, in every variant; "he's" is read as "hes"."""
    return letters(word) in PRONOUNS["all"]


def _marked_word_rows(lists: RunLists) -> Iterator[Row]:
    """Yield the rows of marked_words.csv: every word above the threshold, by both methods."""
    for key, (_, lists_here) in (lists.over_occupations | lists.by_key).items():
        for word_list in lists_here:
            scope = {**_scope(key), **attributes(word_list, ("gender", "against", "method"))}
            for marked in word_list.words:
                is_name = marked.word in lists.names[key[0]]
                yield {**scope, **marked.row(), "is_pronoun": is_pronoun(marked.word), "is_name": is_name}


def _word_list_rows(lists: RunLists) -> Iterator[Row]:
    """Yield the rows of word_lists.csv: how long each list is, beside its null."""
    columns = (
        *("gender", "against", "method", "n_marked", "null_mean", "null_p95", "p_value", "p_value_max_z"),
        *(*BEYOND, "n_target", "n_unmarked", "reason"),
    )
    for key, (comparison, lists_here) in (lists.over_occupations | lists.by_key).items():
        no_sizes = {"n_target": None, "n_unmarked": None} if comparison.reason else {}
        for word_list in lists_here:
            yield {**_scope(key), **attributes(word_list, columns), **no_sizes}


def _scope(key: tuple[str, str, str]) -> Row:
    return dict(zip(("model", "occupation", "origin"), key, strict=True))


def _overlap_rows(documents: TextDocuments, lists: RunLists) -> Iterator[Row]:
    """Yield the rows of word_overlap.csv (GAS(P) Table 15), where both origins have their lists."""
    for model, occupation in product(documents.models, documents.occupations):
        words_of: dict[str, dict[str, list[str]]] = {INFERRED: {}, REQUESTED: {}}
        for origin, gender in product(words_of, WOMEN_AND_MEN):
            marks = lists.marked(model, occupation, origin, gender)
            if marks and marks.n_marked is not None:
                words_of[origin][gender] = marks.listed
        if len(words_of[INFERRED]) == len(words_of[REQUESTED]) == len(WOMEN_AND_MEN):
            for gender, word, place in overlap(*words_of.values()):
                scope = {"model": model, "occupation": occupation, "gender": gender}
                yield {**scope, "word": word, "place": place}


def _method_rows(lists: RunLists) -> Iterator[Row]:
    """Yield the rows of word_methods.csv (GAS(P) Tables 7 and 8): words that only one method marks."""
    for key, (comparison, lists_here) in lists.by_key.items():
        if comparison.reason is not None:
            continue
        for (gender, against), of_both in group_by(lists_here, attrgetter("gender", "against")).items():
            words = {word_list.method: word_list.listed for word_list in of_both}
            for method, rival in permutations(reversed(METHODS)) if against != ALL else ():
                of_rival = set(words[rival])
                for word in words[method]:
                    if word not in of_rival:
                        yield {**_scope(key), "gender": gender, "word": word, "only_in": method}


def topic_shares(lists: RunLists, documents: TextDocuments, study: PersonasStudy) -> list[float]:
    """Compute the share of the hybrid prior's mass that comes from the compared texts, per comparison."""
    shares = []
    for comparison, _ in lists.by_key.values():
        if texts := comparison.of_women_and_men().texts:
            topic = documents.counts_of(texts).sum(axis=0).A1
            columns = np.flatnonzero(topic)
            shares.append(topic_share(topic[columns], lists.english[columns], prior_of(study)))
    return [share for share in shares if share is not None]


def list_notes(lists: RunLists) -> Iterator[str]:
    """Note how many lists are no longer than their null, and which comparisons have none or few texts."""
    shuffled = "genders, both without gendered words and names"
    yield from length_notes(lists.every, "lists", shuffled, "word_lists.csv")
    undefined = [comparison for comparison, _ in lists.by_key.values() if comparison.reason is not None]
    if undefined:
        yield NOTES["undefined"].format(n=len(undefined), first=undefined[0])


FEW_TEXTS = 20  # texts a side: a list with fewer gets a warning


def length_notes(lists: Iterable[WordList], what: str, shuffled: str, table: str) -> Iterator[str]:
    """Note how many calibrated lists are no longer than their null, and how many rest on few texts."""
    defined = [each for each in lists if each.method == CALIBRATED and each.n_marked is not None]
    if short := sum(word_list.longer_than_null is False for word_list in defined):
        yield NOTES["short"].format(short, len(defined), what, shuffled, table)
    sides = np.array([min(word_list.n_target, word_list.n_unmarked) for word_list in defined])
    if n_few := np.count_nonzero(sides < FEW_TEXTS):
        yield NOTES["few"].format(n_few, len(defined), what, FEW_TEXTS, sides.min())
