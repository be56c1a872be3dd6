"""The clusters of a run: which words, which vectors, which categories (methods/srb#clusters)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from typing import Any

from biaskit.common.plain import attributes
from biaskit.corpora.loaders import load_categories, load_word_list
from biaskit.measures.personas.srb.k_means import find_clusters, words_to_cluster
from biaskit.measures.personas.study import PersonasStudy
from biaskit.measures.personas.texts.documents import INFERRED, TextDocuments
from biaskit.measures.personas.vectors.files import load_pretrained
from biaskit.measures.personas.vectors.training import Vectors
from biaskit.measures.personas.words.run_lists import RunLists
from biaskit.records import ALL, WOMEN_AND_MEN
from biaskit.tables.query import Row


def cluster_tables(
    documents: TextDocuments,
    lists: RunLists,
    study: PersonasStudy,
    vectors: Vectors,
    notes: list[str],
    record: dict[str, object],
) -> dict[str, Sequence[Row]]:
    """Make clusters.csv and silhouette.csv of the inferred genders' words."""
    # A model without lists gets empty ones: a cluster is kept only where every model has it.
    words: dict[tuple[str, str, str], Sequence[str]] = {}
    for model, occupation, gender in product(documents.models, documents.occupations, WOMEN_AND_MEN):
        words[model, occupation, gender] = lists.words(model, occupation, INFERRED, gender)
    dropped = frozenset(load_word_list(study.drop_words)) if study.drop_words else frozenset()
    categories = load_categories(study.categories) if study.categories else {}
    wanted = words_to_cluster(words, drop_words=dropped)
    if study.cluster_vectors:
        vectors = load_pretrained(study.cluster_vectors.removeprefix("pretrained:"), wanted)
    matrix, words_with_vector = vectors.rows(wanted)
    how: Any = {"k": study.k, "k_rule": study.k_rule, "released": study.keep_rule == "released"}
    how |= {"drop_words": dropped, "categories": categories, "seed": study.seed}
    clustering = find_clusters(words, words_with_vector, matrix, **how)
    notes += clustering.notes
    fields = ("n_words", "n_clusters", "n_kept", "share_passing", "without_vector")
    record["clusters"] = attributes(clustering, fields)
    rows = list(map(asdict, clustering.rows))
    if documents.models == (ALL,):
        # Imported texts without a model column: their one model is the sum already.
        rows = rows[::2]
    return {"clusters": rows, "silhouette": list(map(asdict, clustering.curve))}
