"""SRB of every model and occupation: vectors chosen and trained, lists scored and held against a null."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from biaskit.common.provenance import digest
from biaskit.common.wording import first_words
from biaskit.measures.personas.srb.score import (
    NULL_OF_MARKED_LISTS,
    WORDS_NAMED,
    ShuffledZ,
    SrbScore,
    scores_with_content,
)
from biaskit.measures.personas.study import PersonasStudy, parse_seeds
from biaskit.measures.personas.texts.documents import ASSOCIATED, NO_TEXTS, SPECIFIED, TextDocuments
from biaskit.measures.personas.vectors.cache import vectors_of_seeds
from biaskit.measures.personas.vectors.files import load_pretrained
from biaskit.measures.personas.vectors.training import (
    NEARLY_UNTRAINED,
    TrainingTexts,
    Vectors,
    median_cosine,
    train_on_lists,
)
from biaskit.measures.personas.words.contrasts import WordList
from biaskit.measures.personas.words.gender_words import is_gender_word
from biaskit.measures.personas.words.log_odds import LogOdds, is_fixed
from biaskit.measures.personas.words.run_lists import CALIBRATED, Progress, RunLists, prior_of
from biaskit.measures.personas.words.shuffles import permuted_counts
from biaskit.records import WOMEN_AND_MEN
from biaskit.stats.resampling import generator
from biaskit.tables.query import Row


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
            yield (
                f"the word vectors are hardly trained: random words have a median cosine of {cosine:.2f};"
                " SRB then depends on exact overlap"
            )


def word_vectors(
    documents: TextDocuments, lists: RunLists, study: PersonasStudy, progress: Progress
) -> WordVectors:
    """Get the vectors that the study names: trained on all texts or on the lists, or read from a file."""
    if study.vectors == "corpus":
        # In the order of keys: nothing but the texts may decide the vectors.
        texts, tokens = sorted(documents.texts, key=lambda text: text.key), documents.tokens
        places = [text.place for text in texts]
        corpus = TrainingTexts.ordered(tokens.words, tokens.ids, tokens.starts, places)
        seeds, trained = parse_seeds(study.srb_seeds), list[Vectors]()
        progress(0, len(seeds))
        for vectors in vectors_of_seeds(corpus, seeds):
            trained.append(vectors)
            progress(len(trained), len(seeds))
        record = {
            "source": "corpus",
            "seeds": list(seeds),
            "n_tokens": corpus.n_tokens,
            "epochs": corpus.n_epochs,
            "median_cosine": median_cosine(trained[0], generator(study.seed, "vectors", ["median cosine"])),
        }
        keys = "".join(text.key for text in texts)
        trained_on = hashlib.sha256(keys.encode("ascii")).hexdigest()
        name = f"corpus:{digest([trained_on, study.tokenizer, list(seeds)])[:8]}"
        return WordVectors(name, tuple(trained), record)
    if study.vectors == "marked-lists":
        # Four "sentences" per model and occupation, as released.
        every = product(documents.models, documents.occupations, WOMEN_AND_MEN, (SPECIFIED, ASSOCIATED))
        listed = [lists.words(model, job, origin, gender) for model, job, gender, origin in every]
        vectors = train_on_lists(listed)
        return WordVectors("marked-lists", (vectors,), {"source": "marked-lists", "seeds": [1]})
    path = study.vectors.partition(":")[2]
    compared = (word_lists for _, word_lists in lists.by_key.values())
    wanted = {marked.word for word_lists in compared for words in word_lists for marked in words.words}
    vectors = load_pretrained(path, wanted)
    origin = {"source": "pretrained", "file": Path(path).name, "digest": vectors.digest}
    return WordVectors(f"pretrained:{(vectors.digest or '')[:8]}", (vectors,), origin)


def srb_rows(
    documents: TextDocuments,
    lists: RunLists,
    study: PersonasStudy,
    vectors: WordVectors | None,
    progress: Progress,
) -> Iterator[tuple[Row, SrbScore]]:
    """Yield the rows of srb.csv, for women and men of every model and occupation, with their scores."""
    gender_words = frozenset(filter(is_gender_word, documents.tokens.words))
    pairs = [(model, occupation) for model in documents.models for occupation in documents.occupations]
    for done, (model, occupation) in enumerate(pairs):
        progress(done, len(pairs))
        has_texts = any((model, occupation, origin) in lists.by_key for origin in (ASSOCIATED, SPECIFIED))
        if documents.imported and not has_texts:
            continue
        scores = _scores(documents, lists, study, vectors, model, occupation, gender_words)
        for gender in WOMEN_AND_MEN:
            of_score = scores[gender].row(vectors.name if vectors else "")
            control = "hold-out" if study.hold_out else ""
            yield {"model": model, "occupation": occupation, **of_score, "control": control}, scores[gender]
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
    """Score both genders of one model and occupation."""
    for origin, reason in NO_TEXTS.items():
        if origin not in documents.origins:
            return _none(reason)
    lists_of: dict[str, dict[str, WordList]] = {}
    for origin in (ASSOCIATED, SPECIFIED):
        for gender in WOMEN_AND_MEN:
            listed = lists.marked(model, occupation, origin, gender)
            if listed is None or listed.n_marked is None:
                why = listed.reason if listed else None
                return _none(why or f"{NO_TEXTS[origin]} for this occupation")
            lists_of.setdefault(origin, {})[gender] = listed
    assert vectors is not None
    null: Callable[[], ShuffledZ] | str = NULL_OF_MARKED_LISTS
    if study.vectors != "marked-lists":
        comparison, _ = lists.by_key[model, occupation, SPECIFIED]

        def null() -> ShuffledZ:
            """Compute z of the specified texts of women and men with shuffled genders."""
            texts = [text for text in comparison.texts if text.gender in WOMEN_AND_MEN]
            counts = documents.tokens.counts[[text.place for text in texts]]
            columns = np.unique(counts.indices)
            words = [documents.tokens.words[i] for i in columns.tolist()]
            log_odds = LogOdds(is_fixed(words), lists.english[columns], CALIBRATED, prior_of(study))
            genders, strata = [str(text.gender) for text in texts], [text.template_id for text in texts]
            rng = generator(study.seed, "srb", [model, occupation])
            z, in_female, in_male = [], [], []
            for female, male in permuted_counts(counts[:, columns], genders, strata, rng, study.permutations):
                # Every column occurs in these texts, so the topic is the two genders' counts together.
                z.append(log_odds.z(female, male, female[:1] + male[:1]))
                in_female.append(female > 0)
                in_male.append(male > 0)
            return ShuffledZ(words, np.concatenate(z), np.concatenate(in_female), np.concatenate(in_male))

    return scores_with_content(
        {gender: [word.word for word in listed.words] for gender, listed in lists_of[ASSOCIATED].items()},
        {gender: listed.words for gender, listed in lists_of[SPECIFIED].items()},
        vectors.models,
        null=null,
        pronouns=study.pronouns,
        names=lists.names[model],
        gender_words=gender_words,
    )


def _none(reason: str) -> dict[str, SrbScore]:
    return {gender: SrbScore(gender, reason=reason) for gender in WOMEN_AND_MEN}


def score_notes(scores: Sequence[tuple[Row, SrbScore]]) -> Iterator[str]:
    """Note signs that depend on the lengths of the lists, and words without a vector."""
    if turned := [row for row, score in scores if score.sign_changes]:
        first = turned[0]
        yield (
            f"{len(turned)} SRB scores change their sign when both target lists are equally long, first"
            f" {first['gender']} in {first['occupation']} ({first['model']})"
        )
    if without := sorted({word for _, score in scores for word in score.oov}):
        listed = first_words(without, WORDS_NAMED, ", ")
        yield f"words without a vector were left out of SRB: {listed}"
