"""Clusters of marked words: what is said of women and of men in many occupations (docs/methods.md#clusters).

The marked words of the associated texts of all models and occupations are gathered by meaning with
k-means, and each cluster is counted: in how many occupations does the women's (the men's) list hold a
word of it? Women against men alone; lists of other genders are passed over.
"""

from __future__ import annotations

import contextlib
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, pairwise
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biaskit.errors import StudyError
from biaskit.records import WOMEN_AND_MEN
from biaskit.stats.arrays import FloatArray, IntArray
from biaskit.wording import first_words

WordsByGender = Mapping[tuple[str, str, str], Sequence[str]]
"""(model, occupation, gender) → the marked words of its associated texts."""
KRule = Literal["max", "largest-gain"]
Variant = Literal["exact", "released"]

ALL_MODELS = "all"
"""Stands in the column `model` of rows whose counts are summed over models."""
SHORT_WORDS_KEPT = frozenset({"dr", "md"})
FEWEST_WORDS = 4
FEWEST_OCCUPATIONS = 3
RANDOM_STATE = 42
STARTS = 10
"""Starts of k-means for the chosen k; the curve takes one, since ten on all its values take minutes."""
WORDS_IN_A_NOTE = 20
DISTANCES_KEPT = 5_000
"""Up to so many words (200 MB) the curve's silhouettes share one matrix of distances."""


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """A row of clusters.csv: one cluster in one model, or summed over models (`ALL_MODELS`)."""

    model: str
    cluster: int | None = None  # from 1, those in most lists first
    words: str = ""  # alphabetical, separated by spaces
    n_occupations_female: int | None = None
    n_occupations_male: int | None = None
    female_share: float | None = None  # of the occupation-gender pairs
    # One verdict for all models; in rows of `ALL_MODELS` the 50 % rule on the sums alone.
    kept: bool | None = None
    category: str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SilhouetteRow:
    """A row of silhouette.csv; None where fewer than k clusters came out, or one for each word."""

    k: int
    silhouette: float | None
    chosen: bool


@dataclass(frozen=True, slots=True)
class Clustering:
    """Both tables, and what must be said beside them."""

    rows: tuple[ClusterRow, ...]
    curve: tuple[SilhouetteRow, ...]
    n_words: int
    without_vector: tuple[str, ...]
    n_clusters: int | None
    n_kept: int | None
    share_passing: float | None  # of all clusters, by the 50 % rule on counts summed over models
    notes: tuple[str, ...]
    reason: str  # why there are no clusters; else empty


def words_to_cluster(lists: WordsByGender, *, drop_words: Collection[str] = frozenset()) -> tuple[str, ...]:
    """The distinct words of the women's and men's lists, pronouns included, in alphabetical order.

    Left out: `drop_words`, words of one letter, and words of two but dr and md (so "he" goes and "she"
    stays, as in the paper).
    """
    marked = {word for (_, _, gender), words in lists.items() if gender in WOMEN_AND_MEN for word in words}
    return tuple(
        sorted(word for word in marked.difference(drop_words) if len(word) > 2 or word in SHORT_WORDS_KEPT)
    )


def find_clusters(
    lists: WordsByGender,
    words: Sequence[str],
    matrix: ArrayLike,
    *,
    drop_words: Collection[str] = frozenset(),
    k: int | None = None,
    k_rule: KRule = "max",
    variant: Variant = "exact",
    categories: Mapping[str, str] | None = None,
) -> Clustering:
    """Cluster the marked words, count the occupations of each cluster, and say which clusters are kept.

    Arguments: lists, every model and occupation that has them (a model is held to the keep rule when it
        has a key here, an empty list included); words `[n]` and matrix `(n, d)`, their vectors of any
        length above zero, in any order, and more than are needed if that is easier; k instead of the
        grid; categories, word → category.
    Returns: clusters numbered by how many lists they occur in (all models, most first), then by words.
        `female_share` = F / (F + M), 1 where only women's lists hold a word of the cluster.
    Missing or empty input: a word without a row, or whose row is zero or not finite, is named in
        `without_vector` and left out; fewer than 4 words, fewer than `k`, or equal vectors alone: no
        clusters, and every model's row has the reason.
    Errors: StudyError if k is below 2.
    Reference: docs/methods.md#clusters; GAS(P) C.3.1, Figures 5 and 8. scikit-learn's KMeans and silhouette.
    """
    if k is not None and k < 2:
        raise StudyError(f"k = {k}: a clustering needs k of at least 2. Leave k out to take the grid.")
    wanted = words_to_cluster(lists, drop_words=drop_words)
    own, vectors, without = _words_with_vectors(wanted, words, matrix)
    notes = _notes_on_words(wanted, without, categories or {})
    curve: tuple[SilhouetteRow, ...] = ()
    clusters: list[tuple[str, ...]] = []
    reason = _too_few(own, k)
    if not reason:
        curve, chosen = silhouette_curve(vectors, [k] if k else k_grid(len(own)), k_rule, given=k is not None)
        clusters = _groups(own, k_means(vectors, chosen, n_init=STARTS)) if chosen else []
        reason = "" if len(clusters) > 1 else "all words have the same vector"
    if reason:
        rows = tuple(ClusterRow(model, reason=reason) for model in (*_models(lists), ALL_MODELS))
        return Clustering(rows, curve, len(own), without, None, None, None, notes, reason)
    rows = _judge(lists, clusters, variant, categories or {})
    per_cluster, n = len(rows) // len(clusters), len(clusters)
    n_kept = sum(row.kept is True for row in rows[::per_cluster])
    n_passing = sum(row.kept is True for row in rows[per_cluster - 1 :: per_cluster])
    notes += _notes_on_clusters(curve, n, n_kept, n_passing)
    return Clustering(rows, curve, len(own), without, n, n_kept, n_passing / n, notes, "")


def _too_few(words: Sequence[str], k: int | None) -> str:
    if len(words) < FEWEST_WORDS:
        return f"{len(words)} words to cluster; at least {FEWEST_WORDS} are needed"
    if k is not None and k > len(words):
        return f"k = {k} clusters asked of {len(words)} words"
    return ""


def _words_with_vectors(
    wanted: Sequence[str], words: Sequence[str], matrix: ArrayLike
) -> tuple[tuple[str, ...], FloatArray, tuple[str, ...]]:
    """Of the wanted words, in their order: those with a vector, their unit rows, and those without."""
    given = np.asarray(matrix)
    if given.ndim != 2 or len(given) != len(words):
        raise ValueError(f"a matrix of shape {given.shape} for {len(words)} words")
    place = {word: i for i, word in enumerate(words)}
    known = [word for word in wanted if word in place]
    rows = given[[place[word] for word in known]].astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1)
    usable = np.isfinite(lengths) & (lengths > 0)
    own = tuple(compress(known, usable))
    kept = set(own)
    return own, rows[usable] / lengths[usable, None], tuple(word for word in wanted if word not in kept)


def k_grid(n_words: int) -> tuple[int, ...]:
    """round(2 + i (W − 3) / 19) for i = 0 … 19, each value once: from 2 to W − 1 (W = `n_words` ≥ 4)."""
    return tuple(dict.fromkeys(round(2 + i * (n_words - 3) / 19) for i in range(20)))


def silhouette_curve(
    vectors: FloatArray, ks: Sequence[int], rule: KRule, *, given: bool = False
) -> tuple[tuple[SilhouetteRow, ...], int | None]:
    """Mean silhouette (Euclidean) of k-means at each k, and the chosen k.

    `given`: the only k is the user's own and stays chosen, with a silhouette or without.
    """
    from sklearn.metrics import pairwise_distances, silhouette_score

    is_small = len(vectors) <= DISTANCES_KEPT
    metric = "precomputed" if is_small else "euclidean"
    found: list[tuple[int, float | None]] = []
    with _one_thread():
        points = pairwise_distances(vectors) if is_small else vectors
        for k in ks:
            labels = k_means(vectors, k)
            defined = k <= len(np.unique(labels)) < len(labels)
            found.append((k, float(silhouette_score(points, labels, metric=metric)) if defined else None))
    chosen = ks[0] if given else choose_k(found, rule)
    return tuple(SilhouetteRow(k, value, k == chosen) for k, value in found), chosen


def choose_k(curve: Sequence[tuple[int, float | None]], rule: KRule) -> int | None:
    """The k with the largest silhouette (`max`), or the largest rise over the grid value before it.

    At equal values the smaller k. Values without a silhouette make no rise; where nothing rises from
    anything (`largest-gain` on a curve of one value) it is the largest. None if no k has a silhouette.
    """
    known = [(k, value) for k, value in curve if value is not None]
    rises = [
        (k, value - before)
        for (_, before), (k, value) in pairwise(curve)
        if value is not None and before is not None
    ]
    candidates = (rises or known) if rule == "largest-gain" else known
    return max(candidates, key=lambda pair: pair[1])[0] if candidates else None


def k_means(vectors: FloatArray, k: int, *, n_init: int = 1) -> NDArray[np.int32]:
    """The cluster `[n]` of each row `(n, d)`; fewer than k clusters where rows are equal."""
    with _one_thread(), warnings.catch_warnings():
        from sklearn.cluster import KMeans
        from sklearn.exceptions import ConvergenceWarning

        # It says that fewer than k clusters came out; callers look for themselves.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KMeans(n_clusters=k, init="k-means++", n_init=n_init, random_state=RANDOM_STATE)
        labels: NDArray[np.int32] = model.fit(vectors).labels_
    return labels


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Sums of several threads come in any order, and a word between two clusters falls either way."""
    import sklearn.cluster
    import sklearn.metrics  # noqa: F401  threadpoolctl sees only what is loaded when it is called
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        yield


def differs_by_half(n_female: int, n_male: int, *, variant: Variant = "exact") -> bool:
    """The 50 % rule: |F − M| is at least half of the smaller count, and not zero.

    Variant `released`: half of max(1, M), whichever is smaller. 6 women's lists to 4 men's pass, 4 to 6
    do not.
    """
    base = max(1, n_male) if variant == "released" else min(n_female, n_male)
    return n_female != n_male and 2 * abs(n_female - n_male) >= base


def is_kept(counts: Sequence[tuple[int, int]], *, variant: Variant = "exact") -> bool:
    """Whether a cluster's (F, M) of every model are 3 pairs or more and pass the 50 % rule.

    The direction may differ between models.
    """
    return all(f + m >= FEWEST_OCCUPATIONS and differs_by_half(f, m, variant=variant) for f, m in counts)


def _models(lists: WordsByGender) -> tuple[str, ...]:
    return tuple(dict.fromkeys(model for model, _, _ in lists))


def _groups(words: Sequence[str], labels: NDArray[np.int32]) -> list[tuple[str, ...]]:
    members: dict[int, list[str]] = {}
    for word, label in zip(words, labels.tolist(), strict=True):
        members.setdefault(label, []).append(word)
    return [tuple(group) for group in members.values()]


def _occupation_counts(lists: WordsByGender, clusters: Sequence[Sequence[str]]) -> IntArray:
    """(n_clusters, n_models, 2): occupations whose women's, men's list holds a word of the cluster."""
    cluster_of = {word: i for i, group in enumerate(clusters) for word in group}
    place = {model: i for i, model in enumerate(_models(lists))}
    counts = np.zeros((len(clusters), len(place), len(WOMEN_AND_MEN)), dtype=np.int64)
    for (model, _, gender), words in lists.items():
        if gender in WOMEN_AND_MEN:
            held = {cluster_of[word] for word in words if word in cluster_of}
            counts[sorted(held), place[model], WOMEN_AND_MEN.index(gender)] += 1
    return counts


def _judge(
    lists: WordsByGender, clusters: Sequence[tuple[str, ...]], variant: Variant, categories: Mapping[str, str]
) -> tuple[ClusterRow, ...]:
    """Per cluster a row for each model, then one for `ALL_MODELS`."""
    counts = _occupation_counts(lists, clusters)
    totals = counts.sum(axis=1)
    rows: list[ClusterRow] = []
    # k-means numbers its clusters by chance; here those in most lists come first, then by words.
    order = sorted(range(len(clusters)), key=lambda i: (-int(totals[i].sum()), clusters[i]))
    for number, i in enumerate(order, 1):
        per_model, summed = [(f, m) for f, m in counts[i].tolist()], totals[i].tolist()
        kept = is_kept(per_model, variant=variant)
        scopes = [(model, own, kept) for model, own in zip(_models(lists), per_model, strict=True)]
        scopes.append((ALL_MODELS, summed, differs_by_half(*summed, variant=variant)))
        category = _category(clusters[i], categories)
        for model, (f, m), yes in scopes:
            share, reason = (f / (f + m), "") if f + m else (None, "no list of this model holds a word of it")
            rows.append(ClusterRow(model, number, " ".join(clusters[i]), f, m, share, yes, category, reason))
    return tuple(rows)


def _category(words: Sequence[str], categories: Mapping[str, str]) -> str | None:
    """The categories of a cluster's words, that of most words first; words in none do not count."""
    held = Counter(categories[word] for word in words if word in categories)
    return "; ".join(sorted(held, key=lambda name: (-held[name], name))) or None


def _notes_on_words(
    wanted: Sequence[str], without: Sequence[str], categories: Mapping[str, str]
) -> tuple[str, ...]:
    notes = []
    if without:
        notes.append(
            f"{len(without)} of {len(wanted)} words have no vector: {first_words(without, WORDS_IN_A_NOTE)}"
        )
    if unmet := sorted(set(categories).difference(wanted)):
        named = first_words(unmet, WORDS_IN_A_NOTE)
        notes.append(f"{len(unmet)} words of the categories are not among the words: {named}")
    return tuple(notes)


def _notes_on_clusters(
    curve: Sequence[SilhouetteRow], n_clusters: int, n_kept: int, n_passing: int
) -> tuple[str, ...]:
    chosen = next(row for row in curve if row.chosen)
    value = "no silhouette" if chosen.silhouette is None else f"silhouette {chosen.silhouette:.3f}"
    notes = [f"k = {chosen.k}: {value}"]
    if n_clusters < chosen.k:
        notes.append(f"only {n_clusters} clusters came out of k = {chosen.k}: words share their vectors")
    notes.append(
        f"{n_kept} of {n_clusters} clusters are kept; {n_passing} differ by half on counts summed over models"
    )
    return tuple(notes)
