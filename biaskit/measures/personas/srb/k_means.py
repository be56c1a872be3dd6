"""Clusters of marked words: what is said of women and of men in many occupations (methods/srb#clusters).

A cluster is counted by the occupations whose women's (men's) list holds a word of it. Women against men
alone; lists of other genders are passed over.
"""

from __future__ import annotations

import contextlib
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, pairwise
from operator import itemgetter
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biaskit.common.plain import group_by
from biaskit.common.wording import first_words
from biaskit.measurement import words as words_of_kind
from biaskit.measures.personas.srb.cluster_chance import chance_of, differs_by_half, is_kept
from biaskit.records import ALL, WOMEN_AND_MEN
from biaskit.stats.arrays import FloatArray
from biaskit.stats.resampling import generator

_NOTES: Mapping[str, str] = words_of_kind("personas")["notes"]["clusters"]
WordsByGender = Mapping[tuple[str, str, str], Sequence[str]]
"""(model, occupation, gender) → the marked words of its texts with an inferred gender."""
KRule = Literal["max", "largest-gain"]

SHORT_WORDS_KEPT = frozenset({"dr", "md"})
FEWEST_WORDS = 4
RANDOM_STATE = 42
BEST, STARTS_OF_BEST = 3, 5
"""How many values of k are tried from how many starts, to say how far chance decides between them."""
STARTS = 10
"""Starts of k-means for the chosen k; the curve takes one, since ten on all its values take minutes."""
WORDS_IN_A_NOTE = 20
DISTANCES_KEPT = 5_000
"""Up to so many words (200 MB) the curve's silhouettes share one matrix of distances."""


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """A row of clusters.csv: one cluster in one model, or summed over models (`ALL`)."""

    model: str
    cluster: int | None = None  # from 1, those in most lists first
    words: str = ""  # alphabetical, separated by spaces
    n_occupations_female: int | None = None
    n_occupations_male: int | None = None
    female_share: float | None = None  # of the occupation-gender pairs
    # One verdict for all models; in rows of `ALL` the 50 % rule on the sums alone.
    kept: bool | None = None
    category: str | None = None
    p_value: float | None = None  # of |F − M| with the two lists of an occupation swapped at random
    null_kept: float | None = None  # part of such swaps in which the model's rule holds
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SilhouetteRow:
    """A row of silhouette.csv; None where fewer than k clusters came out, or one for each word."""

    k: int
    silhouette: float | None
    chosen: bool
    # Over the first and four more starts, of the best three k; None elsewhere.
    silhouette_low: float | None = None
    silhouette_high: float | None = None


@dataclass(frozen=True, slots=True)
class Clustering:
    """Both tables, with notes on them."""

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
    """Gather the distinct words of the women's and men's lists, pronouns included, in alphabetical order.

    Left out: `drop_words` and words of fewer than three letters, except dr and md (so "he" goes and "she"
    stays, as in the paper).
    """
    marked: set[str] = set()
    for (_, _, gender), words in lists.items():
        if gender in WOMEN_AND_MEN:
            marked.update(words)
    kept = marked.difference(drop_words)
    return tuple(sorted(word for word in kept if len(word) > 2 or word in SHORT_WORDS_KEPT))


def find_clusters(
    lists: WordsByGender,
    words: Sequence[str],
    matrix: ArrayLike,
    *,
    drop_words: Collection[str] = frozenset(),
    k: int | None = None,
    k_rule: KRule = "max",
    released: bool = False,
    categories: Mapping[str, str] | None = None,
    seed: int = 1,
) -> Clustering:
    """Cluster the marked words, count the occupations of each cluster, and say which clusters are kept.

    Arguments: lists: a model is held to the keep rule when it has a key here, an empty list included; matrix
        `(n, d)`: the vectors of `words`, in any order; k instead of the grid; categories, word → category.
    Returns: clusters numbered by how many lists they occur in (all models, most first), then by words.
    Missing or empty input: a word without a row, or whose row is zero or not finite, is named in
        `without_vector` and left out; fewer than 4 words, fewer than `k`, or nothing but equal vectors: no
        clusters, and every model's row has the reason.
    Reference: methods/srb#clusters; GAS(P) C.3.1, Figures 5 and 8. scikit-learn's KMeans and silhouette.
    """
    wanted = words_to_cluster(lists, drop_words=drop_words)
    row_of = dict(zip(words, range(len(words)), strict=True))
    with_row = [word for word in wanted if word in row_of]
    raw_vectors = np.asarray(matrix)[[row_of[word] for word in with_row]].astype(np.float64)
    lengths = np.linalg.norm(raw_vectors, axis=1)
    usable = np.isfinite(lengths) & (lengths > 0)
    usable_words, vectors = tuple(compress(with_row, usable)), raw_vectors[usable] / lengths[usable, None]
    without = tuple(sorted({*wanted}.difference(usable_words)))
    notes: list[str] = []
    if without:
        named = first_words(without, WORDS_IN_A_NOTE)
        notes.append(_NOTES["no_vector"].format(len(without), len(wanted), named))
    if unused := sorted(set(categories or {}).difference(wanted)):
        notes.append(_NOTES["unused"].format(len(unused), first_words(unused, WORDS_IN_A_NOTE)))
    curve: tuple[SilhouetteRow, ...] = ()
    clusters: list[tuple[str, ...]] = []
    if len(usable_words) < FEWEST_WORDS:
        reason = f"{len(usable_words)} words to cluster; at least {FEWEST_WORDS} are needed"
    elif k is not None and k > len(usable_words):
        reason = f"k = {k} clusters requested of {len(usable_words)} words"
    else:
        ks = [k] if k else k_grid(len(usable_words))
        curve, chosen = silhouette_curve(vectors, ks, k_rule, fixed=k is not None)
        if chosen:
            label_of = dict(zip(usable_words, k_means(vectors, chosen, n_init=STARTS).tolist(), strict=True))
            clusters = list(map(tuple, group_by(usable_words, label_of.__getitem__).values()))
        reason = "" if len(clusters) > 1 else "all words have the same vector"
    if reason:
        rows = tuple(ClusterRow(model, reason=reason) for model in (*_models(lists), ALL))
        return Clustering(rows, curve, len(usable_words), without, None, None, None, tuple(notes), reason)
    rows, n_kept, n_passing, chance = _judge(lists, clusters, released, categories or {}, seed)
    n = len(clusters)
    notes += _notes_on_k(curve, n)
    usual, most = np.mean(chance), np.percentile(chance, 95)
    side = "more than" if n_kept > most else "no more than"
    notes.append(_NOTES["kept"].format(n_kept, n, side, usual, most, n_passing))
    return Clustering(rows, curve, len(usable_words), without, n, n_kept, n_passing / n, tuple(notes), "")


def k_grid(n_words: int) -> tuple[int, ...]:
    """Compute round(2 + i (W − 3) / 19), i = 0 … 19, each value once: from 2 to W − 1 (W = `n_words` ≥ 4)."""
    return tuple(dict.fromkeys(round(2 + i * (n_words - 3) / 19) for i in range(20)))


def silhouette_curve(
    vectors: FloatArray, ks: Sequence[int], rule: KRule, *, fixed: bool = False
) -> tuple[tuple[SilhouetteRow, ...], int | None]:
    """Compute the mean silhouette (Euclidean) of k-means at each k, from one start, and choose k.

    One start says little: the best three k get four more, and their range stands in the row.
    `fixed`: the only k is the user's own and stays chosen, with a silhouette or without.
    """
    from sklearn.metrics import pairwise_distances, silhouette_score

    is_small = len(vectors) <= DISTANCES_KEPT
    metric = "precomputed" if is_small else "euclidean"
    ranges: dict[int, tuple[float, float]] = {}
    with _one_thread():
        points = pairwise_distances(vectors) if is_small else vectors

        def silhouette(k: int, start: int) -> float | None:
            labels = k_means(vectors, k, random_state=start)
            if not k <= len(np.unique(labels)) < len(labels):
                return None
            return float(silhouette_score(points, labels, metric=metric))

        values = [(k, silhouette(k, RANDOM_STATE)) for k in ks]
        chosen = ks[0] if fixed else choose_k(values, rule)
        defined = [(k, value) for k, value in values if value is not None]
        for k, value in sorted(defined, key=lambda pair: (pair[0] != chosen, -pair[1]))[:BEST]:
            of_starts = [value]
            for start in range(RANDOM_STATE + 1, RANDOM_STATE + STARTS_OF_BEST):
                other = silhouette(k, start)
                if other is not None:
                    of_starts.append(other)
            ranges[k] = min(of_starts), max(of_starts)
    rows = (SilhouetteRow(k, value, k == chosen, *ranges.get(k, (None, None))) for k, value in values)
    return tuple(rows), chosen


def choose_k(curve: Sequence[tuple[int, float | None]], rule: KRule) -> int | None:
    """Choose the k with the largest silhouette (`max`), or the largest rise over the grid value before it.

    At equal values the smaller k. A k without a silhouette makes no rise, and of a curve that only falls the
    smallest fall counts; where no two neighbours have a silhouette, `largest-gain` takes the largest one.
    None if no k has one.
    """
    values = {k: value for k, value in curve if value is not None}
    rises: dict[int, float] = {}
    for (before, _), (k, _) in pairwise(curve):
        if before in values and k in values:
            rises[k] = values[k] - values[before]
    candidates = rises if rises and rule == "largest-gain" else values
    return max(candidates, key=candidates.__getitem__, default=None)


def k_means(
    vectors: FloatArray, k: int, *, n_init: int = 1, random_state: int = RANDOM_STATE
) -> NDArray[np.int32]:
    """Assign each row of `(n, d)` to a cluster: `[n]`; fewer than k clusters where rows are equal."""
    with _one_thread(), warnings.catch_warnings():
        from sklearn.cluster import KMeans
        from sklearn.exceptions import ConvergenceWarning

        # The warning says that fewer than k clusters came out; callers check that themselves.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KMeans(n_clusters=k, init="k-means++", n_init=n_init, random_state=random_state)
        labels: NDArray[np.int32] = model.fit(vectors).labels_
    return labels


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Use one thread: several add in any order, and a word between two clusters falls either way."""
    import sklearn.cluster
    import sklearn.metrics  # noqa: F401  threadpoolctl sees only what is loaded when it is called
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        yield


def _models(lists: WordsByGender) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(itemgetter(0), lists)))


def _judge(
    lists: WordsByGender,
    clusters: Sequence[tuple[str, ...]],
    released: bool,
    categories: Mapping[str, str],
    seed: int,
) -> tuple[tuple[ClusterRow, ...], int, int, FloatArray]:
    """Make a row per cluster and model, then one for `ALL`.

    Beside the rows: how many clusters are kept, how many pass the 50 % rule on the sums, and how many are
    kept in each of the swaps.
    """
    models, occupations = _models(lists), list(dict.fromkeys(map(itemgetter(1), lists)))
    cluster_of = {word: i for i, cluster in enumerate(clusters) for word in cluster}
    # [clusters, models, occupations, 2]: whether the women's, men's list holds a word of the cluster
    holds = np.zeros((len(clusters), len(models), len(occupations), 2), dtype=np.bool_)
    for (model, occupation, gender), marked in lists.items():
        if gender in WOMEN_AND_MEN:
            place = models.index(model), occupations.index(occupation), WOMEN_AND_MEN.index(gender)
            holds[[cluster_of[word] for word in marked if word in cluster_of], *place] = True
    # k-means numbers its clusters by chance; here those in most lists come first, then by words.
    n_lists = holds.sum(axis=(1, 2, 3))
    order = sorted(range(len(clusters)), key=lambda i: (-n_lists[i], clusters[i]))
    holds, ordered = holds[order], [clusters[place] for place in order]
    counts = holds.sum(axis=2)
    is_kept_in_all = is_kept(counts[..., 0], counts[..., 1], released=released)
    summed = counts.sum(axis=1)
    passing = differs_by_half(summed[:, 0], summed[:, 1], released=released)
    chance = chance_of(holds, rng=generator(seed, "clusters", ordered), released=released)
    rows: list[ClusterRow] = []
    for i, words in enumerate(ordered):
        n_of = Counter(filter(None, map(categories.get, words)))
        category = "; ".join(sorted(n_of, key=lambda name: (-n_of[name], name))) or None
        of_models = [*counts[i].tolist(), summed[i].tolist()]
        for at, (model, (f, m)) in enumerate(zip((*models, ALL), of_models, strict=True)):
            share, reason = (f / (f + m), "") if f + m else (None, "no list of this model has a word of it")
            judged = bool(passing[i] if model == ALL else is_kept_in_all[i])
            of_chance = float(chance.p_value[i, at]), float(chance.kept[i, at])
            found = share, judged, category, *of_chance, reason
            rows.append(ClusterRow(model, i + 1, " ".join(words), f, m, *found))
    n_kept, n_passing = int(is_kept_in_all.sum()), int(passing.sum())
    return tuple(rows), n_kept, n_passing, chance.n_kept


def _notes_on_k(curve: Sequence[SilhouetteRow], n_clusters: int) -> list[str]:
    def described(row: SilhouetteRow) -> str:
        if row.silhouette is None or row.silhouette_low is None or row.silhouette_high is None:
            return "no silhouette"
        of_starts = row.silhouette, row.silhouette_low, row.silhouette_high, STARTS_OF_BEST
        return _NOTES["silhouette"].format(*of_starts)

    chosen = next(row for row in curve if row.chosen)
    notes = [f"k = {chosen.k}: {described(chosen)}"]
    rivals, is_largest = [], True
    for row in curve:
        if row.chosen or row.silhouette_high is None:
            continue
        is_largest &= (row.silhouette or 0) <= (chosen.silhouette or 0)
        if chosen.silhouette_low is not None and row.silhouette_high >= chosen.silhouette_low:
            rivals.append(f"k = {row.k}, {described(row)}")
    if rivals and is_largest:
        notes.append(_NOTES["by_start"].format("; ".join(rivals)))
    if n_clusters < chosen.k:
        notes.append(_NOTES["fewer"].format(chosen.k, n_clusters))
    return notes
