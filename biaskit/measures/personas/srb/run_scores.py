"""SRB of every model and occupation: vectors chosen and trained, lists scored and held against a null."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from biaskit.common.provenance import digest
from biaskit.common.wording import first_words
from biaskit.measurement import words as words_of_kind
from biaskit.measures.personas.srb.score import NO_NULL_OF_LISTS, WORDS_NAMED, ShuffledZ, SrbScore, srb_scores
from biaskit.measures.personas.study import PersonasStudy, parse_seeds
from biaskit.measures.personas.texts.documents import INFERRED, KEY, NO_TEXTS, REQUESTED, TextDocuments
from biaskit.measures.personas.texts.names import is_gender_word
from biaskit.measures.personas.vectors.cache import vectors_of_seeds
from biaskit.measures.personas.vectors.files import load_pretrained
from biaskit.measures.personas.vectors.training import (
    NEARLY_UNTRAINED,
    TrainingTexts,
    Vectors,
    median_cosine,
    train_on_lists,
)
from biaskit.measures.personas.words.comparisons import TextComparison
from biaskit.measures.personas.words.contrasts import MarkedWord
from biaskit.measures.personas.words.labelled_texts import labelled_texts
from biaskit.measures.personas.words.log_odds import LogOdds, is_fixed
from biaskit.measures.personas.words.run_lists import CALIBRATED, Progress, RunLists, prior_of
from biaskit.measures.personas.words.shuffled_scores import shuffled_scores
from biaskit.records import WOMEN_AND_MEN
from biaskit.stats.resampling import generator
from biaskit.tables.query import Row

_NOTES: Mapping[str, str] = words_of_kind("personas")["notes"]["scores"]


@dataclass(frozen=True, slots=True)
class WordVectors:
    """The vector model of a whole analysis: its name, one set of vectors per seed, its record."""

    name: str  # in srb.csv: scores of different vector models are not comparable
    models: tuple[Vectors, ...]
    record: Mapping[str, object]

    @property
    def notes(self) -> Iterator[str]:
        """What a reader must know of the vectors."""
        cosine = self.record.get("median_cosine")
        if isinstance(cosine, float) and cosine > NEARLY_UNTRAINED:
            yield _NOTES["untrained"].format(cosine)


def train_on_texts(
    documents: TextDocuments, study: PersonasStudy, progress: Progress
) -> Callable[[], WordVectors]:
    """Begin to train vectors of every seed on all texts; what is returned waits for them.

    Texts come in the order of their keys: nothing but them may decide the vectors.
    """
    texts, tokens = sorted(documents.texts, key=KEY), documents.tokens
    order = list(map(attrgetter("place"), texts))
    corpus = TrainingTexts.ordered(tokens.words, tokens.ids, tokens.starts, order)
    seeds = parse_seeds(study.srb_seeds)
    begun = vectors_of_seeds(corpus, seeds)

    def finish() -> WordVectors:
        trained = list[Vectors]()
        progress(0, len(seeds))
        for vectors in begun:
            trained.append(vectors)
            progress(len(trained), len(seeds))
        cosine = median_cosine(trained[0], generator(study.seed, "vectors", ["median cosine"]))
        record = {"source": "corpus", "seeds": list(seeds), "n_tokens": corpus.n_tokens}
        record |= {"epochs": corpus.n_epochs, "median_cosine": cosine}
        trained_on = hashlib.sha256("".join(map(KEY, texts)).encode("ascii")).hexdigest()
        name = f"corpus:{digest([trained_on, study.tokenizer, list(seeds)])[:8]}"
        return WordVectors(name, tuple(trained), record)

    return finish


def word_vectors(documents: TextDocuments, lists: RunLists, study: PersonasStudy) -> WordVectors:
    """Get the vectors that the study names: trained on the lists, or read from a file."""
    if study.vectors == "marked-lists":
        # Four "sentences" per model and occupation, as released.
        listed = []
        for model, occupation, gender in product(documents.models, documents.occupations, WOMEN_AND_MEN):
            for origin in (REQUESTED, INFERRED):
                listed.append(lists.words(model, occupation, origin, gender))
        vectors = train_on_lists(listed)
        return WordVectors("marked-lists", (vectors,), {"source": "marked-lists", "seeds": [1]})
    path, wanted = study.vectors.partition(":")[2], set[str]()
    for word_list in lists.every:
        wanted.update(word_list.listed)
    vectors = load_pretrained(path, wanted)
    record = {"source": "pretrained", "file": Path(path).name, "digest": vectors.digest}
    return WordVectors(f"pretrained:{(vectors.digest or '')[:8]}", (vectors,), record)


def srb_rows(
    documents: TextDocuments,
    lists: RunLists,
    study: PersonasStudy,
    vectors: WordVectors | None,
    progress: Progress,
) -> Iterator[tuple[Row, SrbScore]]:
    """Yield the rows of srb.csv, for women and men of every model and occupation, with their scores."""
    gender_words = frozenset(filter(is_gender_word, documents.tokens.words))
    pairs = list(product(documents.models, documents.occupations))
    for done, (model, occupation) in enumerate(pairs):
        progress(done, len(pairs))
        if documents.imported and not lists.has(model, occupation):
            continue
        scope = {"model": model, "occupation": occupation, "control": "hold-out" if study.hold_out else ""}
        scores = _scores(documents, lists, study, vectors, model, occupation, gender_words)
        for score in scores.values():
            yield {**scope, **score.row(vectors.name if vectors else "")}, score
    progress(len(pairs), len(pairs))


def _scores(
    documents: TextDocuments,
    lists: RunLists,
    study: PersonasStudy,
    vectors: WordVectors | None,
    model: str,
    occupation: str,
    gender_words: Collection[str],
) -> dict[str, SrbScore]:
    """Score both genders of one model and occupation, women first."""
    for origin, reason in NO_TEXTS.items():
        if origin not in documents.origins:
            return _none(reason)
    candidates: dict[str, Sequence[str]] = {}
    targets: dict[str, Sequence[MarkedWord]] = {}
    for origin, gender in product((INFERRED, REQUESTED), WOMEN_AND_MEN):
        marked = lists.marked(model, occupation, origin, gender)
        if marked is None or marked.n_marked is None:
            why = marked.reason if marked else None
            return _none(why or f"{NO_TEXTS[origin]} for this occupation")
        if origin == INFERRED:
            candidates[gender] = marked.listed
        else:
            targets[gender] = marked.words
    assert vectors is not None
    null: Callable[[], ShuffledZ] | str = NO_NULL_OF_LISTS
    if study.vectors != "marked-lists":
        comparison = lists.by_key[model, occupation, REQUESTED][0]
        null = partial(_shuffled, documents, lists, study, comparison)
    how: Any = {"pronouns": study.pronouns, "names": lists.names[model], "gender_words": gender_words}
    return srb_scores(candidates, targets, vectors.models, null=null, **how)


def _shuffled(
    documents: TextDocuments, lists: RunLists, study: PersonasStudy, comparison: TextComparison
) -> ShuffledZ:
    """Compute z of the requested texts of women and men with shuffled genders."""
    compared = comparison.of_women_and_men()
    counts, words = documents.counts_of(compared.texts), documents.tokens.words
    of_texts = compared.genders, compared.prompts, lists.english, WOMEN_AND_MEN
    texts = labelled_texts(counts, words, *of_texts, left_out=np.zeros(len(words), dtype=np.bool_))
    odds = LogOdds(is_fixed(texts.words), texts.english, CALIBRATED, prior_of(study))
    rng = generator(study.seed, "srb", [comparison.model, comparison.occupation])
    made = []
    for scores in shuffled_scores(texts, [odds], [0.0], rng, study.permutations):
        made.append((scores.z((0,), (1,)), scores.counts[0] > 0, scores.counts[1] > 0))
    return ShuffledZ(texts.words, *map(np.concatenate, zip(*made, strict=True)))


def _none(reason: str) -> dict[str, SrbScore]:
    return {gender: SrbScore(gender, reason=reason) for gender in WOMEN_AND_MEN}


def score_notes(scores: Sequence[tuple[Row, SrbScore]]) -> Iterator[str]:
    """Note signs that depend on the lengths of the lists, and words without a vector."""
    if turned := [row for row, score in scores if score.sign_changes]:
        yield _NOTES["turned"].format(n=len(turned), first=turned[0])
    if without := {word for _, score in scores for word in score.oov}:
        yield _NOTES["no_vector"].format(first_words(sorted(without), WORDS_NAMED, ", "))
