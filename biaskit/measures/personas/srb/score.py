"""How near the words for inferred women and men lie to those for requested ones (methods/srb#srb).

    CH(C, T)      = mean over c in C of the smallest 1 − cos(c, t) over t in T
    SRB(C | F, M) = CH(C, requested women) − CH(C, requested men)       in [−2, 2]

Negative = closer to requested women. A raw score also measures how long the vectors were trained and how
long the two target lists are, so it comes with the plain overlap, the score at equal lengths, and its place
among scores with shuffled labels. `srb_z` says how strong the evidence is, and grows with the texts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from biaskit.arguments import TEXTS, checked
from biaskit.common.plain import attributes
from biaskit.common.wording import PEOPLE, first_words, joined, short
from biaskit.errors import UsageError
from biaskit.measurement import words as words_of_kind
from biaskit.measures.personas.texts.tokens import mask
from biaskit.measures.personas.vectors.training import Vectors
from biaskit.measures.personas.words.contrasts import MarkedWord
from biaskit.measures.personas.words.log_odds import blocks_of_rows
from biaskit.records import WOMEN_AND_MEN
from biaskit.stats.arrays import BoolArray, FloatArray, IntArray
from biaskit.stats.swaps import reaches
from biaskit.stats.welch import varies

WORDS_NAMED = 10

_LISTED: Mapping[str, str] = words_of_kind("personas")["pronouns"]
PRONOUNS: Mapping[str, frozenset[str]] = {name: frozenset(_LISTED[name].split()) for name in _LISTED}
"""Words removed from the candidates; `all` also from the targets (methods/srb#srb-pronouns)."""

NO_NULL_OF_LISTS = "vectors depend on the lists"


@dataclass(frozen=True, slots=True)
class SrbScore:
    """One gender's score in one occupation; numbers are None where the reason says why."""

    gender: str  # whose candidates: the gender of texts that were not given one
    srb: float | None = None  # negative = closer to requested women
    distance_female: float | None = None  # Chamfer distance to the words for requested women, in [0, 2]
    distance_male: float | None = None
    n_candidates: int | None = None  # words with a vector, names and pronouns left out; so the targets
    n_target_female: int | None = None
    n_target_male: int | None = None
    n_oov: int | None = None
    overlap_only: float | None = None  # negative = more words shared with requested women
    srb_matched: float | None = None  # both target lists at the length of the shorter
    srb_seed_sd: float | None = None
    null_mean: float | None = None  # of scores with shuffled labels, first seed, as all that follows
    null_sd: float | None = None
    p_value: float | None = None
    srb_z: float | None = None
    srb_content: float | None = None  # without gender words on both sides
    srb_content_p_value: float | None = None
    reason: str | None = None
    oov: tuple[str, ...] = ()  # words without a vector, alphabetical

    @property
    def sign_changes(self) -> bool:
        """Whether lists of equal length turn the score's direction round."""
        return self.srb is not None and self.srb_matched is not None and self.srb * self.srb_matched < 0

    def row(self, vectors: str) -> dict[str, object]:
        """Return the columns of srb.csv but model, occupation, control; `vectors` names the vector model."""
        return attributes(self, _IN_SRB_CSV) | {"vectors": vectors}


_IN_SRB_CSV = [column.name for column in fields(SrbScore) if column.name != "oov"]


# --- two sets of words ---------------------------------------------------------------------------


def chamfer_distance(candidates: ArrayLike, targets: ArrayLike) -> float:
    """Compute the mean distance of each candidate to its nearest target (Chamfer; not symmetric).

    Formula: mean over c of min over t of (1 − cos(c, t)).

    >>> bk.chamfer_distance([[1, 0], [0, 1]], [[1, 0]])
    0.5

    Args:
        candidates, targets: arrays `(n, d)` and `(m, d)` of vectors of any length above zero.

    Returns a number in [0, 2]; 0 when every candidate is a target. Raises `UsageError` where a set is empty
    or has a vector of zeros, or the dimensions differ.
    """
    c, t = _unit_rows(candidates, "candidates"), _unit_rows(targets, "targets")
    if c.shape[1] != t.shape[1]:
        raise UsageError(f"Candidates have {c.shape[1]} dimensions, targets {t.shape[1]}: use one model.")
    return _mean_nearest(_distances(c, t))


@checked(candidates=TEXTS, female=TEXTS, male=TEXTS)
def srb(
    candidates: Sequence[str], female: Sequence[str], male: Sequence[str], vectors: Vectors
) -> float | None:
    """Compute the Subset Representational Bias of a list of words, nothing removed from it.

    Formula: CH(candidates, female) − CH(candidates, male), where CH is `bk.chamfer_distance`: GAS(P)
    Algorithm 6 without its two slips (it divides inside its loop, and keeps the women's minimum for the men).

    >>> from biaskit.measures.personas.vectors.training import Vectors
    >>> vectors = Vectors.from_rows(["kind", "warm", "loud"], [[1, 0], [1, 0], [0, 1]])
    >>> bk.srb(["kind"], female=["warm"], male=["loud"], vectors=vectors)
    -1.0

    Args:
        candidates, female, male: the words that are scored, and those of texts requested about each gender.
        vectors: in which they are compared; words without a vector are left out.

    Returns a number in [−2, 2], negative = closer to `female`; None when a list has no word with a vector.
    Raises `UsageError` for other vectors.
    """
    if not isinstance(vectors, Vectors):
        raise UsageError(f"vectors is {short(repr(vectors))}: give a word vector model.")
    c, f, m = (vectors.rows(words)[0] for words in (candidates, female, male))
    if not (len(c) and len(f) and len(m)):
        return None
    return _mean_nearest(_distances(c, f)) - _mean_nearest(_distances(c, m))


def overlap_only(candidates: Collection[str], female: Collection[str], male: Collection[str]) -> float | None:
    """Compute what remains of the score when words are only equal or different (methods/srb#srb-matched).

    Formula: (|C ∩ M| − |C ∩ F|) / |C|, in [−1, 1], negative = more candidates stand in `female`; None
        without.
    """
    c = set(candidates)
    return (len(c.intersection(male)) - len(c.intersection(female))) / len(c) if c else None


def _unit_rows(vectors: ArrayLike, role: str) -> FloatArray:
    try:
        rows = np.atleast_2d(np.asarray(vectors, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise UsageError(f"The {role} are not an array of vectors: {short(error)}.") from error
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not rows.size or not (lengths > 0).all():
        raise UsageError(f"The {role} are empty or have a vector of zeros: leave such words out.")
    unit: FloatArray = rows / lengths
    return unit


def _distances(candidates: FloatArray, targets: FloatArray) -> FloatArray:
    """Compute 1 − cosine of unit rows, `(n, m)`, clipped: a word and itself would give −1e−16."""
    return np.clip(1.0 - candidates @ targets.T, 0.0, 2.0)


def _mean_nearest(distances: FloatArray) -> float:
    return float(distances.min(axis=1).mean())


# --- the lists of one occupation -----------------------------------------------------------------


def srb_scores(
    candidates: Mapping[str, Sequence[str]],
    targets: Mapping[str, Sequence[MarkedWord]],
    vectors: Sequence[Vectors],
    *,
    null: Callable[[], ShuffledZ] | str,
    pronouns: str = "all",
    names: Collection[str] = frozenset(),
    gender_words: Collection[str] = frozenset(),
) -> dict[str, SrbScore]:
    """Score one occupation, once for each gender that has candidates, with gender words and without.

    Ms, Mr, woman and mother lie nearest to themselves, so only `srb_content` says that women and men are
    described differently. Its lists leave `gender_words` out, the shuffled ones too; where nothing is left to
    score it is None, with the reason.
    Arguments: candidates: words marked where no gender is in the prompt; targets: where that gender is;
        vectors of each seed, with the same words; null makes z of the requested texts under shuffled labels
        (called once, and only when there is a score), or is the reason why there is none; names leave all
        lists.
    Returns: means over the seeds; a list that is empty, or has no word with a vector, gives a reason instead.
    Reference: methods/srb#srb-matched and methods/srb#srb-content.
    """
    from threadpoolctl import threadpool_limits

    once = cache(null) if callable(null) else null

    def without(unwanted: frozenset[str]) -> dict[str, SrbScore]:
        removed = PRONOUNS[pronouns].union(unwanted)
        left_out = removed if pronouns == "all" else unwanted
        ordered: dict[str, Sequence[MarkedWord]] = {}
        for gender in WOMEN_AND_MEN:
            kept = [marked for marked in targets[gender] if marked.word not in left_out]
            ordered[gender] = sorted(kept, key=lambda marked: (-marked.z, marked.word))
        lists, scores = _Targets(ordered, vectors, left_out, once), {}
        for gender, words in candidates.items():
            scores[gender] = _score(gender, [word for word in words if word not in removed], lists)
        return scores

    # In one thread: the last digits of sums must not depend on the number of cores.
    with threadpool_limits(limits=1):
        scores, contents = without(frozenset(names)), without(frozenset(names).union(gender_words))
    for gender, content in contents.items():
        score = scores[gender]
        lost = score.srb is not None and content.srb is None
        reason = joined([score.reason, f"without gendered words: {content.reason}" if lost else None])
        scores[gender] = replace(
            score, srb_content=content.srb, srb_content_p_value=content.p_value, reason=reason
        )
    return scores


@dataclass(frozen=True)
class _Targets:
    """The target lists of an occupation, and the same under shuffled labels."""

    ordered: Mapping[str, Sequence[MarkedWord]]  # by z, names and pronouns left out
    vectors: Sequence[Vectors]
    left_out: Collection[str]  # names, and pronouns where they leave the targets too
    null: Callable[[], ShuffledZ] | str

    def has(self, word: str) -> bool:
        """Whether the word has a vector in every model."""
        return all(word in vectors for vectors in self.vectors)

    @cached_property
    def z_of(self) -> dict[str, dict[str, float]]:
        """Gender → words with a vector, by z, and their z."""
        found: dict[str, dict[str, float]] = {}
        for gender, of_gender in self.ordered.items():
            found[gender] = {marked.word: marked.z for marked in of_gender if self.has(marked.word)}
        return found

    @cached_property
    def matched(self) -> dict[str, int]:
        """How many words each list keeps at the length of the shorter one; ties in z at the cut stay."""
        shorter = min(map(len, self.z_of.values()))
        if not shorter:
            return dict.fromkeys(self.z_of, 0)
        matched = {}
        for gender, of_gender in self.z_of.items():
            z = list(of_gender.values())
            matched[gender] = sum(value >= z[shorter - 1] for value in z)
        return matched

    @cached_property
    def shuffled(self) -> tuple[ShuffledZ, _Lists, _Lists] | str:
        """Lists of the observed lengths under shuffled labels, or why there are none."""
        if isinstance(self.null, str):
            return self.null
        made = self.null()
        if undefined := int(np.isnan(made.z.sum(axis=1)).sum()):
            return f"{undefined} of {len(made.z)} shuffles leave a gender without calibration words"
        known = set(made.words).intersection(*(vectors.words for vectors in self.vectors))
        allowed = mask(made.words, known.difference(self.left_out).__contains__)
        n_female, n_male = len(self.z_of["female"]), len(self.z_of["male"])
        female = _top(made.z, made.in_female & allowed, n_female)
        male = _top(made.z, made.in_male & allowed, n_male, sign=-1)
        if empty := np.count_nonzero((female.sizes == 0) | (male.sizes == 0)):
            return f"{empty} of {len(made.z)} shuffles leave a gender without words"
        return made, female, male


def _score(gender: str, candidates: Sequence[str], targets: _Targets) -> SrbScore:
    with_vector = list(filter(targets.has, candidates))
    female, male = list(targets.z_of["female"]), list(targets.z_of["male"])
    of_targets = map(attrgetter("word"), chain.from_iterable(targets.ordered.values()))
    oov = {*candidates, *of_targets}.difference(with_vector, female, male)
    bare = SrbScore(
        gender,
        n_candidates=len(with_vector),
        n_target_female=len(female),
        n_target_male=len(male),
        n_oov=len(oov),
        oov=tuple(sorted(oov)),
    )
    left_out = f"left out, without a vector: {first_words(bare.oov, WORDS_NAMED)}" if oov else None
    obstacle = _obstacle(candidates, with_vector, targets)
    if obstacle:
        return replace(bare, reason=joined([obstacle, left_out]))
    of_seeds = []
    for vectors in targets.vectors:
        c = vectors.rows(with_vector)[0]
        to_women, to_men = (_distances(c, vectors.rows(words)[0]) for words in (female, male))
        distance_female, distance_male = _mean_nearest(to_women), _mean_nearest(to_men)
        at_equal_female = _mean_nearest(to_women[:, : targets.matched["female"]])
        at_equal_male = _mean_nearest(to_men[:, : targets.matched["male"]])
        differences = distance_female - distance_male, at_equal_female - at_equal_male
        of_seeds.append((distance_female, distance_male, *differences))
    distance_female, distance_male, score, matched = np.mean(of_seeds, axis=0).tolist()
    scores = np.array([of_seed[2] for of_seed in of_seeds])
    null, why_no_null = _against_null(with_vector, float(scores[0]), targets)
    scored = replace(
        bare,
        srb=score,
        distance_female=distance_female,
        distance_male=distance_male,
        overlap_only=overlap_only(with_vector, female, male),
        srb_matched=matched,
        srb_seed_sd=float(scores.std(ddof=1)) if len(scores) > 1 else None,
        **null,
    )
    reasons = [why_no_null, None if len(scores) > 1 else "one vector model: no srb_seed_sd"]
    if scored.sign_changes:
        reasons.append("the sign changes when both target lists have one length")
    return replace(scored, reason=joined([*reasons, left_out]))


def _obstacle(candidates: Sequence[str], with_vector: Sequence[str], targets: _Targets) -> str | None:
    """Say what is missing for a score: the first list that is empty, then the first without a vector."""
    if not candidates:
        return "no candidate words"
    for gender in WOMEN_AND_MEN:
        if not targets.ordered[gender]:
            return f"no words for requested {PEOPLE[gender]}"
    if not with_vector:
        return "no candidate word has a vector"
    for gender in WOMEN_AND_MEN:
        if not targets.z_of[gender]:
            return f"no word for requested {PEOPLE[gender]} has a vector"
    return None


# --- shuffled labels -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ShuffledZ:
    """z of the words of the requested texts, women against men, under n shuffles of their labels.

    They are shuffled within prompts, over texts in an order that does not depend on how they are stored
    (methods/srb#srb-null).
    """

    words: Sequence[str]  # [W]
    z: FloatArray  # [n, W]; positive = marked for women; NaN along a shuffle whose z is undefined
    in_female: BoolArray  # [n, W]: the word occurs in the texts then labelled women's
    in_male: BoolArray


class _Lists(NamedTuple):
    """The words of several lists, as places among those of the compared texts, one list after the other."""

    places: IntArray
    sizes: IntArray  # [lists]

    def mean_nearest(self, distances: FloatArray) -> FloatArray:
        """Average over candidates the smallest of a list's `distances` `[W, candidates]`, `[lists]`."""
        starts = self.sizes.cumsum() - self.sizes
        nearest: FloatArray = np.minimum.reduceat(distances[self.places], starts, axis=0).mean(axis=1)
        return nearest


def _top(z: FloatArray, among: BoolArray, n: int, *, sign: int = 1) -> _Lists:
    """Find the n words of the largest `sign` · z among some of each row `[S, W]`, more at equal z."""
    found, last = [], max(z.shape[1] - n, 0)
    for rows in blocks_of_rows(*z.shape):
        those = sign * z[rows] - 1e9 * ~among[rows]  # the others come last; np.where is slow
        cut = np.partition(those, last, axis=1)[:, last : last + 1]
        row, places = np.divmod(np.flatnonzero((those >= cut) & among[rows]), z.shape[1])
        found.append(_Lists(places, np.bincount(row, minlength=len(those))))
    return _Lists(*map(np.concatenate, zip(*found, strict=True)))


def _against_null(
    candidates: Sequence[str], observed: float, targets: _Targets
) -> tuple[dict[str, Any], str | None]:
    """Place the first seed's score among shuffled ones: fields of an `SrbScore`, and why some are missing."""
    if isinstance(targets.shuffled, str):
        return {}, targets.shuffled
    shuffled, of_women, of_men = targets.shuffled
    words, vectors = shuffled.words, targets.vectors[0]
    used = np.flatnonzero(np.bincount(np.concatenate([of_women.places, of_men.places])))
    c = vectors.rows(candidates)[0]
    used_targets = vectors.rows([words[place] for place in used.tolist()])[0]
    distances = np.empty((len(words), len(c)))  # (words, candidates): rows are gathered fastest
    distances[used] = _distances(used_targets, c)
    scores = of_women.mean_nearest(distances) - of_men.mean_nearest(distances)
    mean, sd = float(scores.mean()), float(scores.std(ddof=1))
    extreme = reaches(np.abs(scores - mean), abs(observed - mean))
    null = {"null_mean": mean, "null_sd": sd, "p_value": (1 + int(extreme.sum())) / (len(scores) + 1)}
    if not varies(scores, scores):
        return null, "the permutation baseline has no spread: no srb_z"
    return {**null, "srb_z": (observed - mean) / sd}, None
