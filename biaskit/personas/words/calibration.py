"""The search for C and alpha of Calibrated Marked Words.

See docs/methods.md#calibration, Calibration; GAS(P) A.2.

C says how weakly the prior holds the words back: the larger it is, the more words are marked, and at some
C common words that differ by chance are among them. It is set just below that. Alpha, the share of the
topic prior, is then chosen by how much the lists of two random halves of the texts agree.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biaskit.errors import StudyError, nearest
from biaskit.personas.words.log_odds import (
    DEFAULT_PRIOR,
    SPEAKER_WORDS,
    THRESHOLD,
    LogOdds,
    Prior,
    calibration_words,
    is_fixed,
    z_scores,
)
from biaskit.records import GENDERS, WOMEN_AND_MEN
from biaskit.stats.arrays import BoolArray, FloatArray, IntArray
from biaskit.stats.crossed import joined
from biaskit.stats.resampling import generator

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

CRule = Literal["per-alpha", "interpolated"]
C_RULES: tuple[CRule, ...] = get_args(CRule)

N_GRID = 100  # C = 0.01, 0.02, …, 1
N_PARTS = 16  # of a step of the grid: halved four times, 0.000625, the first width not above 0.001
ALPHAS = tuple(k / 20 for k in range(21))
COMPARED = (0.0, 0.25, 0.5, 0.75, 1.0)  # the lines of GAS(P) Tables 3 and 5
PAPER_ALPHA = 0.15
N_HALVINGS = 20
TIED = 1e-12  # stabilities that differ by a smaller part differ by rounding

Words = tuple[str, ...]


# --- records -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Constant:
    """The C of one prior; None where the reason says why."""

    c: float | None
    stopped_by: Words = ()  # the criterion words marked at the smallest C that was found too large
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class MarkedList:
    """What one pair of genders marks at one (alpha, C), in alphabetical order; None where undefined."""

    gender: str
    against: str
    words: Words | None = None
    criterion: Words | None = None  # marked words of W, but not i, you, your, am, my
    n_common: int | None = None  # marked words of W
    n_names: int | None = None
    gained: Words | None = None  # not in the list at the alpha before; None where that has none
    lost: Words | None = None
    differing: Words | None = None  # at `COMPARED` alone: not in all lists of these alphas
    stability: float | None = None  # of this pair
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """The lists of all ordered pairs of genders at one (alpha, C)."""

    alpha: float
    c: float | None
    lists: tuple[MarkedList, ...]
    stability: float | None = None  # mean over pairs
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Calibration:
    """What the calibration on the texts of one model and occupation found."""

    model: str
    occupation: str
    c_rule: CRule
    c_topic: Constant  # of the topic prior alone
    c_english: Constant
    topic: tuple[Step, ...]  # the topic prior alone, at every C of the grid
    english: tuple[Step, ...]
    sweep: tuple[Step, ...]  # the hybrid prior, at every alpha
    recommended: Prior | None  # its alpha and c are what a study takes
    reason: str | None = None  # why nothing is recommended

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of calibration.csv, one for each step and ordered pair of genders.

        See docs/reading.md#table-calibration.

        `prior` is `topic` (alpha 1) or `english` (alpha 0) for each prior alone at every C of the grid, with
        the numbers of words only; `hybrid` for each alpha at its C. `stability` is the mean over pairs, the
        same in all rows of an alpha; `gained` and `lost` are against the alpha before (empty at 0);
        `words_differing` stands at alpha 0, 0.25, 0.5, 0.75, 1.
        """
        for prior, steps in (("topic", self.topic), ("english", self.english), ("hybrid", self.sweep)):
            for step in steps:
                chosen = self.recommended is not None and self.recommended.alpha == step.alpha
                for found in step.lists:
                    yield {
                        "model": self.model,
                        "occupation": self.occupation,
                        "prior": prior,
                        "c": step.c,
                        "alpha": step.alpha,
                        "gender": found.gender,
                        "against": found.against,
                        "n_marked": None if found.words is None else len(found.words),
                        "n_criterion": None if found.criterion is None else len(found.criterion),
                        "n_common": found.n_common,
                        "n_names": found.n_names,
                        "gained": _spaced(found.gained),
                        "lost": _spaced(found.lost),
                        "words_differing": _spaced(found.differing),
                        "stability": step.stability,
                        "recommended": chosen and prior == "hybrid",
                        "reason": joined([found.reason, step.reason]),
                    }


def _spaced(words: Words | None) -> str | None:
    return None if words is None else " ".join(words)


# --- the whole -----------------------------------------------------------------------------------


def calibrate(
    counts: csr_matrix,
    labels: Sequence[str],
    strata: Sequence[Hashable],
    *,
    words: Sequence[str],
    english: ArrayLike,
    names: Collection[str] = frozenset(),
    model: str,
    occupation: str,
    seed: int,
    c_rule: CRule = "per-alpha",
    prior: Prior = DEFAULT_PRIOR,
) -> Calibration:
    """Find C and alpha on the specified texts of one model and occupation.

    Formula: `per-alpha`: at each alpha = 0, 0.05, …, 1 the largest C of 0.01, 0.02, …, 1 below the first at
        which a criterion word is marked for women against men or men against women, refined by halving to
        1/1600; `interpolated`: alpha · C_topic + (1 − alpha) · C_english. Recommended is the alpha of the
        largest stability, ties going to the one nearest 0.15, then to the smaller; stability is the
        mean Jaccard index of the two halves' lists over 20 halvings of the documents within gender and
        stratum, then over the ordered pairs.
    Arguments: counts `[n, W]`; labels `[n]`, genders; strata `[n]`, prompts; words `[W]` in alphabetical
        order; english `[W]`, counts of these words in general English; names, those of the words that are
        names; seed of the study; prior, of which rounding and scale are used.
    Returns: the lists at every step, and the recommended prior.
    Missing or empty input: no C where a criterion word is marked at 0.01, where women or men have no
        texts or no calibration word. A halving whose halves both mark nothing, or in which r is undefined,
        says nothing; a pair with less than half of its halvings left has no stability at this alpha, and
        so the alpha has none; a pair that has none at any alpha is left out everywhere. Always with the
        reason.
    Reference: docs/methods.md#calibration; GAS(P) A.2, where alpha was chosen by eye. Checked against a
    plain loop over
        all C.
    """
    if c_rule not in C_RULES:
        raise StudyError(
            f"c_rule = {c_rule!r}: choose one of {', '.join(C_RULES)}.{nearest(c_rule, C_RULES)}"
        )
    halves = first_halves(labels, strata, generator(seed, "calibration", (model, occupation)))
    pairs = _contrasts(
        counts, np.asarray(labels), halves, tuple(words), np.asarray(english), frozenset(names)
    )
    at = {alpha: [_AtAlpha.of(pair, replace(prior, alpha=alpha)) for pair in pairs] for alpha in ALPHAS}
    alone = {alpha: _constant(at[alpha]) for alpha in (1.0, 0.0)}
    constants = {
        alpha: _interpolated(alpha, alone[1.0], alone[0.0])
        if c_rule == "interpolated"
        else _constant(at[alpha])
        for alpha in ALPHAS
    }
    sweep = _with_stability([_step(at[alpha], alpha, constants[alpha]) for alpha in ALPHAS])
    best = _most_stable(sweep)
    return Calibration(
        model=model,
        occupation=occupation,
        c_rule=c_rule,
        c_topic=alone[1.0],
        c_english=alone[0.0],
        topic=_on_grid(at[1.0], 1.0),
        english=_on_grid(at[0.0], 0.0),
        sweep=_with_neighbours(sweep),
        recommended=None if best is None else replace(prior, alpha=best.alpha, c=best.c),
        reason=_why_none(sweep, list(constants.values())) if best is None else None,
    )


# --- C -------------------------------------------------------------------------------------------


def find_constant(marked_criterion_words: Callable[[float], Words]) -> Constant:
    """Find the largest C of the grid below the first one at which a criterion word is marked, and refine it.

    Marked words usually, not always, grow with C: the grid is walked from below, and what lies above the
    first C with a criterion word is not asked. At the answer no criterion word is marked.
    """
    for step in range(1, N_GRID + 1):
        if stopped_by := marked_criterion_words(step / N_GRID):
            break
    else:
        return Constant(1.0)
    if step == 1:
        return Constant(None, stopped_by, f"criterion words marked at C = 0.01: {' '.join(stopped_by)}")
    low, high = (step - 1) * N_PARTS, step * N_PARTS
    while high - low > 1:
        middle = (low + high) // 2
        if found := marked_criterion_words(middle / (N_GRID * N_PARTS)):
            high, stopped_by = middle, found
        else:
            low = middle
    return Constant(low / (N_GRID * N_PARTS), stopped_by)


def _constant(contrasts: Sequence[_AtAlpha]) -> Constant:
    """C at one alpha, decided by women and men alone.

    Texts of non-binary people differ in "is", "and", "this": their pairs are shown and do not decide on C.
    """
    decisive = [at for at in contrasts if at.contrast.genders == WOMEN_AND_MEN]
    if not decisive:
        return Constant(None, reason="C takes texts of women and of men")
    if undefined := decisive[0].undefined():
        return Constant(None, reason=undefined)
    return find_constant(decisive[0].marked_criterion_words)


def _interpolated(alpha: float, topic: Constant, english: Constant) -> Constant:
    """C as Algorithm 3 has it; a prior of weight 0 need not have one."""
    parts = [("topic", topic, alpha), ("English", english, 1.0 - alpha)]
    for name, constant, weight in parts:
        if constant.c is None and weight > 0:
            return replace(constant, reason=f"no C for the {name} prior alone: {constant.reason}")
    return Constant(math.fsum((constant.c or 0.0) * weight for _, constant, weight in parts))


# --- one pair of genders at one alpha ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Contrast:
    """The texts of two genders; W are the words that occur in them, not in all texts."""

    genders: tuple[str, str]
    words: Words  # [W]
    english: FloatArray  # [W]
    is_fixed: BoolArray  # [W], on the fixed list of calibration words
    is_speaker: BoolArray  # [W], of that list those that mark who speaks
    is_name: BoolArray  # [W]
    counts: tuple[IntArray, IntArray]  # [W], of one gender and of the other
    halves: tuple[IntArray, IntArray]  # [2, 20, W]: halves, halvings


@dataclass(frozen=True, slots=True)
class _AtAlpha:
    """Two genders under one prior, C open; the second against the first has −z, to the last digit."""

    contrast: _Contrast
    prior: Prior
    common: BoolArray  # [W], calibration words
    criterion: BoolArray  # [W], those of them that must not be marked

    @classmethod
    def of(cls, contrast: _Contrast, prior: Prior) -> _AtAlpha:
        one, other = (counts[None].astype(np.float64) for counts in contrast.counts)
        odds = LogOdds(contrast.is_fixed, contrast.english, "calibrated", prior)
        blend = odds.regularise(one, other, one + other).prior
        common = calibration_words(blend, one, other, contrast.words)[0]
        return cls(contrast, prior, common, common & ~contrast.is_speaker)

    def undefined(self) -> str | None:
        """Why there is no list, whatever C."""
        if not np.isnan(self._z(1.0)).any():
            return None
        for gender, counts in zip(self.contrast.genders, self.contrast.counts, strict=True):
            if not counts[self.common].any():
                return f"no calibration word in the texts of {gender}"
        return "too few words for a prior"

    def _z(self, c: float) -> FloatArray:
        """Score the first gender against the second, `[W]`: what a grid of C does a thousand times."""
        contrast = self.contrast
        one, other = (counts[None].astype(np.float64) for counts in contrast.counts)
        odds = LogOdds(contrast.is_fixed, contrast.english, "calibrated", replace(self.prior, c=c))
        z: FloatArray = odds.z(one, other, one + other)[0]
        return z

    def _marked(self, c: float) -> tuple[BoolArray, BoolArray]:
        return _both_ways(self._z(c), self.contrast.counts)

    def marked_criterion_words(self, c: float) -> Words:
        """The criterion words that either gender marks."""
        one, other = self._marked(c)
        return _named(self.contrast.words, (one | other) & self.criterion)

    def lists(self, c: float | None) -> list[MarkedList]:
        """The lists of both directions; without C, or where r is undefined, without words."""
        pairs = list(itertools.permutations(self.contrast.genders))
        reason = None if c is None else self.undefined()
        if c is None or reason:
            return [MarkedList(gender, against, reason=reason) for gender, against in pairs]
        return [
            MarkedList(
                gender,
                against,
                words=_named(self.contrast.words, marked),
                criterion=_named(self.contrast.words, marked & self.criterion),
                n_common=int((marked & self.common).sum()),
                n_names=int((marked & self.contrast.is_name).sum()),
            )
            for (gender, against), marked in zip(pairs, self._marked(c), strict=True)
        ]

    def stabilities(self, c: float) -> list[float | None]:
        """How far the lists of two halves agree, in both directions; each half is its own topic."""
        contrast = self.contrast
        prior = replace(self.prior, c=c)
        z = z_scores(*contrast.halves, words=contrast.words, english=contrast.english, prior=prior)
        defined = np.logical_not(np.isnan(z).any(axis=(0, 2)))
        return [mean_jaccard(marked, defined) for marked in _both_ways(z, contrast.halves)]


def _both_ways(z: FloatArray, counts: tuple[IntArray, IntArray]) -> tuple[BoolArray, BoolArray]:
    """Which words the one gender marks against the other, and the other against the one: `[..., W]`."""
    return (z > THRESHOLD) & (counts[0] > 0), (-z > THRESHOLD) & (counts[1] > 0)


def _named(words: Words, chosen: BoolArray) -> Words:
    return tuple(words[i] for i in np.flatnonzero(chosen))


def _contrasts(
    counts: csr_matrix,
    labels: NDArray[np.str_],
    first: BoolArray,
    words: Words,
    english: FloatArray,
    names: Collection[str],
) -> list[_Contrast]:
    """Every pair of the genders present, with what does not change with alpha or C."""
    if unknown := set(labels.tolist()) - set(GENDERS):
        raise ValueError(f"genders {sorted(unknown)} are not of {GENDERS}")
    halves = {}  # gender → [2, 20, W]
    for gender in GENDERS:
        if (own := labels == gender).any():
            texts = counts[np.flatnonzero(own)]
            halves[gender] = np.stack([half[:, own].astype(np.int64) @ texts for half in (first, ~first)])
    found = []
    for one, other in itertools.combinations(halves, 2):
        whole = [halves[gender][:, 0].sum(axis=0) for gender in (one, other)]
        here = np.flatnonzero(whole[0] + whole[1])
        own_words = tuple(words[i] for i in here)
        found.append(
            _Contrast(
                genders=(one, other),
                words=own_words,
                english=english[here],
                is_fixed=is_fixed(own_words),
                is_speaker=np.array([w in SPEAKER_WORDS for w in own_words], dtype=np.bool_),
                is_name=np.array([w in names for w in own_words], dtype=np.bool_),
                counts=(whole[0][here], whole[1][here]),
                halves=(halves[one][..., here], halves[other][..., here]),
            )
        )
    return found


# --- halves --------------------------------------------------------------------------------------


def first_halves(labels: Sequence[str], strata: Sequence[Hashable], rng: np.random.Generator) -> BoolArray:
    """Halve the documents 20 times within gender and stratum: `[20, n]`, True in the first half.

    The odd document of a stratum goes to either half by chance.
    """
    groups: dict[tuple[str, Hashable], list[int]] = {}
    for document, key in enumerate(zip(labels, strata, strict=True)):
        groups.setdefault(key, []).append(document)
    first = np.zeros((N_HALVINGS, len(labels)), dtype=np.bool_)
    for documents in groups.values():
        ranks = rng.permuted(np.tile(np.arange(len(documents)), (N_HALVINGS, 1)), axis=1)
        sizes = (len(documents) + rng.integers(0, 2, size=(N_HALVINGS, 1))) // 2
        first[:, documents] = ranks < sizes
    return first


def mean_jaccard(marked: BoolArray, defined: BoolArray) -> float | None:
    """Average the Jaccard index of the two halves' lists over halvings.

    Formula: |A ∩ B| / |A ∪ B|, averaged over the halvings in which either half marks a word.
    Arguments: marked `[2, halvings, W]`; defined `[halvings]`, whether both halves have a list at all.
    Returns: 0 to 1; 1 = the halves always mark the same words.
    Missing or empty input: None where fewer than half of the halvings are left: what two empty lists have
        in common says nothing.
    Reference: docs/methods.md#calibration-alpha.
    """
    in_both = np.count_nonzero(marked[0] & marked[1], axis=1)
    in_either = np.count_nonzero(marked[0] | marked[1], axis=1)
    kept = defined & (in_either > 0)
    if kept.size == 0 or 2 * np.count_nonzero(kept) < kept.size:
        return None
    return float((in_both[kept] / in_either[kept]).mean())


# --- from step to step ---------------------------------------------------------------------------


def _on_grid(contrasts: Sequence[_AtAlpha], alpha: float) -> tuple[Step, ...]:
    """One prior alone at every C."""
    grid = [step / N_GRID for step in range(1, N_GRID + 1)]
    return tuple(Step(alpha, c, tuple(found for at in contrasts for found in at.lists(c))) for c in grid)


def _step(contrasts: Sequence[_AtAlpha], alpha: float, constant: Constant) -> Step:
    """The lists at one alpha and its C, each pair with its stability."""
    lists: list[MarkedList] = []
    for at in contrasts:
        found = at.lists(constant.c)
        if constant.c is not None:
            stable = zip(found, at.stabilities(constant.c), strict=True)
            found = [replace(one, stability=stability) for one, stability in stable]
        lists += found
    reason = constant.reason
    chance = {
        w for one in lists if {one.gender, one.against} == set(WOMEN_AND_MEN) for w in one.criterion or ()
    }
    if chance:  # with `interpolated` alone
        reason = f"criterion words marked: {' '.join(sorted(chance))}"
    return Step(alpha, constant.c, tuple(lists), reason=reason)


def _with_stability(steps: Sequence[Step]) -> list[Step]:
    """Average the stability over the same pairs at every alpha, so that alphas can be compared.

    A pair whose halves mark nothing at any alpha says nothing about alpha and is left out.
    """
    pairs = range(len(steps[0].lists))
    silent = [p for p in pairs if all(step.lists[p].stability is None for step in steps)]
    kept = [p for p in pairs if p not in silent]
    return [_averaged(step, kept, silent) if step.c is not None else step for step in steps]


def _averaged(step: Step, kept: Sequence[int], silent: Sequence[int]) -> Step:
    values = [step.lists[pair].stability for pair in kept]
    defined = [value for value in values if value is not None]
    missing = [step.lists[pair] for pair in (*kept, *silent) if step.lists[pair].stability is None]
    stability, reason = None, step.reason
    if defined and len(defined) == len(values):
        stability = math.fsum(defined) / len(defined)
    if missing:
        named = ", ".join(f"{found.gender}/{found.against}" for found in missing)
        what = "no stability" if stability is None else "stability of the other pairs"
        reason = joined([reason, f"{what}: most halvings mark no word for {named}"])
    return replace(step, stability=stability, reason=reason)


def _with_neighbours(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Say what each list gained and lost against the alpha before, and what it does not share with all."""
    by_pair = [_compared(lists, steps) for lists in zip(*(step.lists for step in steps), strict=True)]
    if not by_pair:
        return tuple(steps)
    at_step = zip(*by_pair, strict=True)
    return tuple(replace(step, lists=lists) for step, lists in zip(steps, at_step, strict=True))


def _compared(lists: Sequence[MarkedList], steps: Sequence[Step]) -> list[MarkedList]:
    """One pair's lists at every alpha, compared; an alpha without a list is compared with nothing."""
    spread = [set(found.words or ()) for found in lists]
    at_five = [
        step.alpha in COMPARED and found.words is not None for step, found in zip(steps, lists, strict=True)
    ]
    five = [words for words, is_one in zip(spread, at_five, strict=True) if is_one]
    shared = set.intersection(*five) if five else set()
    result = []
    for i, found in enumerate(lists):
        if i and found.words is not None and lists[i - 1].words is not None:
            gained, lost = sorted(spread[i] - spread[i - 1]), sorted(spread[i - 1] - spread[i])
            found = replace(found, gained=tuple(gained), lost=tuple(lost))
        if at_five[i]:
            found = replace(found, differing=tuple(sorted(spread[i] - shared)))
        result.append(found)
    return result


def _most_stable(steps: Sequence[Step]) -> Step | None:
    """The alpha of the largest stability; ties go to the one nearest 0.15, then to the smaller."""
    found = [(step.stability, step) for step in steps if step.stability is not None]
    if not found:
        return None
    largest = max(stability for stability, _ in found)
    tied = [step for stability, step in found if stability >= largest * (1.0 - TIED)]
    # In twentieths: 0.10 and 0.20 lie equally near 0.15, which their doubles do not say.
    return min(tied, key=lambda step: (abs(round(20 * (step.alpha - PAPER_ALPHA))), step.alpha))


def _why_none(steps: Sequence[Step], constants: Sequence[Constant]) -> str:
    """Why no alpha is recommended; where criterion words are in the way, all of them."""
    words = sorted({word for constant in constants for word in constant.stopped_by})
    if all(constant.c is None for constant in constants) and words:
        return f"criterion words marked at C = 0.01 at every alpha: {' '.join(words)}"
    return next((step.reason for step in steps if step.reason), "nothing to compare")
