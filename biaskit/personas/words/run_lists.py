"""The marked words of every model, occupation and origin of a run, and the tables made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from biaskit.personas.srb.score import PRONOUNS
from biaskit.personas.texts.documents import ASSOCIATED, SPECIFIED, TextDocuments
from biaskit.personas.texts.names import names_among
from biaskit.personas.texts.tokens import letters
from biaskit.personas.words.comparisons import TextComparison, text_comparisons
from biaskit.personas.words.contrasts import MarkedWord, WordList
from biaskit.personas.words.gender_words import is_gender_word, says_gender
from biaskit.personas.words.lists import overlap, word_lists
from biaskit.personas.words.log_odds import METHODS, Prior, topic_share
from biaskit.records import GENDERS, WOMEN_AND_MEN
from biaskit.stats.arrays import FloatArray
from biaskit.study.keys import PersonasStudy
from biaskit.tables.query import Row

CALIBRATED = "calibrated"
BEYOND = ("n_marked_beyond", "null_p95_beyond", "p_value_beyond", "p_value_max_z_beyond")
"""What is said of a list without gender words and names: columns of word_lists.csv, instruction_words.csv."""


@dataclass(frozen=True, slots=True)
class RunLists:
    """Every comparison with its lists; the names among the words of each model."""

    of: Mapping[tuple[str, str, str], tuple[TextComparison, tuple[WordList, ...]]]
    names: Mapping[str, frozenset[str]]
    english: FloatArray  # of the tokens' vocabulary

    def marked(self, model: str, occupation: str, origin: str, gender: str) -> WordList | None:
        """The calibrated list of women against men or of men against women."""
        _, lists = self.of.get((model, occupation, origin), (None, ()))
        other = WOMEN_AND_MEN[1 - WOMEN_AND_MEN.index(gender)]
        wanted = (gender, other, CALIBRATED)
        return next((one for one in lists if (one.gender, one.against, one.method) == wanted), None)

    def words(self, model: str, occupation: str, origin: str, gender: str) -> list[str]:
        """The words of that list which are no names in the model's texts; none where there is no list."""
        marked = self.marked(model, occupation, origin, gender)
        names = self.names[model]
        return [one.word for one in marked.words if one.word not in names] if marked else []


def prior_of(study: PersonasStudy) -> Prior:
    """The study's prior of Calibrated Marked Words."""
    return Prior(
        alpha=study.alpha,
        c=study.c,
        c_topic=study.c_topic,
        c_english=study.c_english,
        rounding=study.prior,
        scale=study.prior_scale,
    )


def make_lists(
    documents: TextDocuments,
    study: PersonasStudy,
    english: Mapping[str, int],
    progress: Callable[[int, int], None] | None = None,
) -> RunLists:
    """The lists of every comparison, in study order (docs/methods.md#marked-words)."""
    counts, words = documents.tokens.counts(), documents.tokens.words
    names = names_of(documents, study)
    left_out = {model: says_gender(words, own) for model, own in names.items()}
    of_english = np.array([english.get(word, 0) for word in words], dtype=np.float64)
    compared = list(text_comparisons(documents, study))
    lists_of: dict[tuple[str, str, str], tuple[TextComparison, tuple[WordList, ...]]] = {}
    for done, one in enumerate(compared):
        if progress:
            progress(done, len(compared))
        if one.reason is not None:
            lists_of[one.key] = (
                one,
                tuple(
                    WordList(gender, other, method, n_target=0, n_unmarked=0, reason=one.reason)
                    for gender, other in (WOMEN_AND_MEN, WOMEN_AND_MEN[::-1])
                    for method in METHODS
                ),
            )
            continue
        lists = word_lists(
            counts[[text.place for text in one.texts]],
            words=words,
            genders=one.genders,
            strata=[text.template_id for text in one.texts],
            english=of_english,
            seed=study.seed,
            row_key=one.key,
            prior=prior_of(study),
            n_shuffles=study.permutations,
            elsewhere=_elsewhere(documents, compared, one) if study.prior_scope == "all" else None,
            left_out=left_out[one.model],
        )
        lists_of[one.key] = one, tuple(lists)
    if progress:
        progress(len(compared), len(compared))
    return RunLists(lists_of, names, of_english)


def names_of(documents: TextDocuments, study: PersonasStudy) -> dict[str, frozenset[str]]:
    """The names in each model's texts, among all words: shuffled lists hold others than observed ones."""
    words, evidence = documents.tokens.words, documents.evidence
    return {model: names_among(words, study.names, evidence.get(model)) for model in documents.models}


def _elsewhere(
    documents: TextDocuments, compared: Sequence[TextComparison], one: TextComparison
) -> dict[str, FloatArray]:
    """Word counts per gender of the model's other occupations, texts of the same origin."""
    counts = documents.tokens.counts()
    places: dict[str, list[int]] = {gender: [] for gender in GENDERS}
    for other in compared:
        if (other.model, other.origin) == (one.model, one.origin) and other.occupation != one.occupation:
            for text in other.texts:
                places[str(text.gender)].append(text.place)
    return {
        gender: np.asarray(counts[rows].sum(axis=0), dtype=np.float64).ravel()
        for gender, rows in places.items()
        if rows
    }


# --- tables ------------------------------------------------------------------------------------------


def is_pronoun(word: str) -> bool:
    """By the default list, in every variant; "he's" is read as "hes"."""
    return letters(word) in PRONOUNS["all"]


def marked_word_rows(lists: RunLists) -> Iterator[Row]:
    """marked_words.csv: every word above the threshold, by both methods."""
    of_word = [column.name for column in fields(MarkedWord)]  # `asdict` copies every value
    for (model, occupation, origin), (_, of_comparison) in lists.of.items():
        for one in of_comparison:
            for marked in one.words:
                yield {
                    "model": model,
                    "occupation": occupation,
                    "origin": origin,
                    **{name: getattr(one, name) for name in ("gender", "against", "method")},
                    **{name: getattr(marked, name) for name in of_word},
                    "is_pronoun": is_pronoun(marked.word),
                    "is_name": marked.word in lists.names[model],
                    "is_gender_word": is_gender_word(marked.word),
                }


def word_list_rows(lists: RunLists) -> Iterator[Row]:
    """word_lists.csv: how long each list is, beside its null."""
    columns = (
        *("gender", "against", "method", "n_marked", "null_mean", "null_p95", "p_value", "p_value_max_z"),
        *BEYOND,
    )
    for (model, occupation, origin), (one, of_comparison) in lists.of.items():
        for made in of_comparison:
            scope = {"model": model, "occupation": occupation, "origin": origin}
            sizes = {"n_target": made.n_target, "n_unmarked": made.n_unmarked}
            sizes = dict.fromkeys(sizes) if one.reason else sizes
            yield {**scope, **{n: getattr(made, n) for n in columns}, **sizes, "reason": made.reason}


def overlap_rows(documents: TextDocuments, lists: RunLists) -> Iterator[Row]:
    """word_overlap.csv (GAS(P) Table 15): associated against specified lists, where both exist."""
    for model in documents.models:
        for occupation in documents.occupations:
            associated, specified = (
                {
                    gender: [marked.word for marked in one.words]
                    for gender in WOMEN_AND_MEN
                    if (one := lists.marked(model, occupation, origin, gender)) and one.n_marked is not None
                }
                for origin in (ASSOCIATED, SPECIFIED)
            )
            if len(associated) == len(specified) == len(WOMEN_AND_MEN):
                for gender, word, place in overlap(associated, specified):
                    scope = {"model": model, "occupation": occupation, "gender": gender}
                    yield {**scope, "word": word, "place": place}


def method_rows(lists: RunLists) -> Iterator[Row]:
    """word_methods.csv (GAS(P) Tables 7 and 8): words that one of the two methods marks alone."""
    for (model, occupation, origin), (one, of_comparison) in lists.of.items():
        if one.reason is not None:
            continue
        for gender, other in (WOMEN_AND_MEN, WOMEN_AND_MEN[::-1]):
            words = {
                made.method: [marked.word for marked in made.words]
                for made in of_comparison
                if (made.gender, made.against) == (gender, other)
            }
            scope = {"model": model, "occupation": occupation, "origin": origin, "gender": gender}
            for method, rival in (("marked-personas", CALIBRATED), (CALIBRATED, "marked-personas")):
                known = set(words[rival])
                for word in words[method]:
                    if word not in known:
                        yield {**scope, "word": word, "only_in": method}


# --- what must be said beside them -----------------------------------------------------------------


def topic_shares(lists: RunLists, documents: TextDocuments, study: PersonasStudy) -> list[float]:
    """Part of the hybrid prior's mass that comes from the compared texts, for each comparison."""
    counts, shares = documents.tokens.counts(), []
    for one, _ in lists.of.values():
        places = [text.place for text in one.texts if text.gender in WOMEN_AND_MEN]
        if places:
            some = counts[places]
            columns, column_of = np.unique(some.indices, return_inverse=True)
            topic = np.bincount(column_of, some.data)
            share = topic_share(topic, lists.english[columns], prior_of(study))
            shares += [share] if share is not None else []
    return shares


def list_notes(lists: RunLists) -> Iterator[str]:
    """How many lists are no longer than their null, and which comparisons rest on few texts."""
    made = [
        (key, one)
        for key, (_, found) in lists.of.items()
        for one in found
        if one.method == CALIBRATED and one.n_marked is not None
    ]
    short = [one for _, one in made if one.longer_than_null is False]
    if short:
        yield (
            f"{len(short)} of {len(made)} calibrated lists are not longer than 95 % of those with shuffled"
            " genders, both without gender words and names: such a list says nothing by its length"
            " (word_lists.csv)"
        )
    few = [one for _, one in made if min(one.n_target, one.n_unmarked) < FEW_TEXTS]
    if few:
        least = min(min(one.n_target, one.n_unmarked) for one in few)
        yield f"{len(few)} of {len(made)} lists rest on fewer than {FEW_TEXTS} texts a side (least {least})"
    none = {key: one.reason for key, (one, _) in lists.of.items() if one.reason is not None}
    if none:
        (model, occupation, _), reason = next(iter(none.items()))
        yield (
            f"{len(none)} occupations have no lists of texts without a gender in the prompt, first"
            f" {occupation} ({model}): {reason}"
        )


FEW_TEXTS = 20
"""Texts of a gender under which its list is warned about."""
