"""The search for C and alpha of Calibrated Marked Words (methods/words#calibration; GAS(P) A.2).

C says how weakly the prior holds the words back; it is set just below where common words that differ by
chance are marked. Alpha, the share of the topic prior, is then chosen by how much two halves' lists agree.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from biaskit.common.plain import attributes
from biaskit.common.wording import joined
from biaskit.measures.personas.words.alpha import AtAlpha, MarkedList, Words, pairs_of
from biaskit.measures.personas.words.log_odds import DEFAULT_PRIOR, Prior
from biaskit.measures.personas.words.stability import N_HALVINGS, over_halvings
from biaskit.records import WOMEN_AND_MEN
from biaskit.stats.resampling import generator

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

CRule = Literal["per-alpha", "interpolated"]

N_GRID = 100  # C = 0.01, 0.02, …, 1
GRID = tuple(step / N_GRID for step in range(1, N_GRID + 1))
N_PARTS = 16  # of a step of the grid: halved four times, 0.000625, the first width not above 0.001
ALPHAS = tuple(k / 20 for k in range(21))
COMPARED = (0.0, 0.25, 0.5, 0.75, 1.0)  # the lines of GAS(P) Tables 3 and 5
PAPER_ALPHA = 0.15
TIED = 1e-12  # stabilities that differ by less differ by rounding
NOT_STABLE = (
    "at no alpha do two halves of the texts mark the same words, without gendered words and names, clearly"
    " more often than with shuffled genders"
)


@dataclass(frozen=True, slots=True)
class Constant:
    """The C of one prior; None where the reason says why."""

    c: float | None
    stopped_by: Words = ()  # the criterion words marked at the smallest C that was found too large
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """The lists of all ordered pairs of genders at one (alpha, C)."""

    alpha: float
    c: float | None
    lists: tuple[MarkedList, ...]
    stability: float | None = None  # mean over pairs and halvings, as are the next three
    stability_low: float | None = None
    stability_high: float | None = None
    stability_shuffled: float | None = None  # with shuffled genders
    by_halving: tuple[float, ...] = ()  # mean over pairs; NaN where a half has no list
    reason: str | None = None

    @property
    def beyond_chance(self) -> bool:
        """Whether the lists agree clearly more than those of shuffled genders."""
        low, shuffled = self.stability_low, self.stability_shuffled
        return low is not None and shuffled is not None and low > max(shuffled, TIED)


@dataclass(frozen=True, slots=True)
class Calibration:
    """The result of the calibration on the texts of one model and occupation."""

    model: str
    occupation: str
    c_topic: Constant  # of the topic prior alone
    c_english: Constant
    topic: tuple[Step, ...]  # the topic prior alone, at every C of the grid
    english: tuple[Step, ...]
    sweep: tuple[Step, ...]  # the hybrid prior, at every alpha
    recommended: Prior | None  # clearly more stable than chance and than the papers' alpha
    prior: Prior | None  # what a study takes: the recommended one, or the papers' alpha with its C
    reason: str  # why

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of calibration.csv, by step and pair."""
        columns = ("c", "alpha", "stability", "stability_low", "stability_high", "stability_shuffled")
        for prior, steps in (("topic", self.topic), ("english", self.english), ("hybrid", self.sweep)):
            of_prior = {"model": self.model, "occupation": self.occupation, "prior": prior}
            for step in steps:
                chosen = self.recommended is not None and self.recommended.alpha == step.alpha
                of_step = attributes(step, columns) | {"recommended": chosen and prior == "hybrid"}
                for marked in step.lists:
                    reason = joined([marked.reason, step.reason])
                    yield {**of_prior, **of_step, **marked.row(), "reason": reason}


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
    """Find C and alpha on the requested texts of one model and occupation.

    Formula: `per-alpha`: at each alpha = 0, 0.05, …, 1 the largest C of 0.01, 0.02, …, 1 below the first at
        which a criterion word is marked for women against men or men against women, refined by halving to
        1/1600; `interpolated`: alpha · C_topic + (1 − alpha) · C_english. Stability is the agreement of two
        halves' lists corrected for chance (`chance_corrected`), without gender words and names, over 20
        halvings of the documents within gender and stratum and over the ordered pairs. Recommended is the
        alpha of the largest stability (ties: nearest 0.15, then the smaller) if the lower end of its interval
        lies above what shuffled genders give, and that of its difference to 0.15 above 0.
    Arguments: counts `[n, W]`, words in alphabetical order; labels are genders, strata prompts; of the prior
        rounding and scale are used.
    Missing or empty input: no C where a criterion word is marked at 0.01, where women or men have no
        texts or no calibration word. A half in which r is undefined has no list; an alpha with less than half
        of its halvings left has no stability. Always with the reason.
    Reference: methods/words#calibration; GAS(P) A.2, where alpha was chosen by eye. Checked against a
        plain loop over all C.
    """
    halving = generator(seed, "calibration", (model, occupation))
    shuffling = generator(seed, "calibration", (model, occupation, "shuffled"))
    of_words = tuple(words), np.asarray(english), frozenset(names)
    pairs = pairs_of(counts, labels, strata, *of_words, halving=halving, shuffling=shuffling)
    at: dict[float, list[AtAlpha]] = {}
    for alpha in ALPHAS:
        at[alpha] = [AtAlpha.under(pair, replace(prior, alpha=alpha)) for pair in pairs]
    c_topic, c_english = _constant(at[1.0]), _constant(at[0.0])
    constants, sweep = [], []
    for alpha in ALPHAS:
        interpolated = c_rule == "interpolated"
        constant = _interpolated(alpha, c_topic, c_english) if interpolated else _constant(at[alpha])
        constants.append(constant)
        sweep.append(_step(at[alpha], alpha, constant))
    best, is_clear, reason = _decision(sweep, constants)
    chosen = None if best is None else replace(prior, alpha=best.alpha, c=best.c)
    of_topic = tuple(Step(1.0, c, _lists(at[1.0], c)) for c in GRID)
    of_english = tuple(Step(0.0, c, _lists(at[0.0], c)) for c in GRID)
    found = c_topic, c_english, of_topic, of_english, _with_neighbours(sweep)
    return Calibration(model, occupation, *found, chosen if is_clear else None, chosen, reason)


def find_constant(marked_criterion_words: Callable[[float], Words]) -> Constant:
    """Find the largest C of the grid below the first one at which a criterion word is marked, and refine it.

    Marked words usually, not always, grow with C: the grid is walked from below, and what lies above the
    first C with a criterion word is not tried. At the answer no criterion word is marked.
    """
    low = 0
    for high in range(N_PARTS, N_GRID * N_PARTS + 1, N_PARTS):
        if stopped_by := marked_criterion_words(high / (N_GRID * N_PARTS)):
            break
        low = high
    else:
        return Constant(1.0)
    if not low:
        return Constant(None, stopped_by, f"criterion words marked at C = 0.01: {' '.join(stopped_by)}")
    while high - low > 1:
        middle = (low + high) // 2
        if criterion_words := marked_criterion_words(middle / (N_GRID * N_PARTS)):
            high, stopped_by = middle, criterion_words
        else:
            low = middle
    return Constant(low / (N_GRID * N_PARTS), stopped_by)


def _constant(pairs: Sequence[AtAlpha]) -> Constant:
    """Find C at one alpha, by women and men alone.

    Texts of non-binary people differ in "is", "and", "this": their pairs are shown but do not decide C.
    """
    decisive = [at for at in pairs if at.pair.genders == WOMEN_AND_MEN]
    undefined = decisive[0].undefined() if decisive else "C takes texts of women and of men"
    if undefined:
        return Constant(None, reason=undefined)
    return find_constant(decisive[0].marked_criterion_words)


def _interpolated(alpha: float, topic: Constant, english: Constant) -> Constant:
    """Interpolate C as Algorithm 3 does; a prior of weight 0 need not have one."""
    for name, constant, weight in (("topic", topic, alpha), ("English", english, 1.0 - alpha)):
        if constant.c is None and weight > 0:
            return replace(constant, reason=f"no C for the {name} prior alone: {constant.reason}")
    return Constant((topic.c or 0.0) * alpha + (english.c or 0.0) * (1.0 - alpha))


def _lists(pairs: Sequence[AtAlpha], c: float | None) -> tuple[MarkedList, ...]:
    return tuple(chain.from_iterable(at.lists(c) for at in pairs))


def _step(pairs: Sequence[AtAlpha], alpha: float, constant: Constant) -> Step:
    """Make the lists at one alpha and its C, and measure how far two halves agree (halvings are the same)."""
    lists, reason = _lists(pairs, constant.c), constant.reason
    by_chance: set[str] = set()
    for marked in lists:
        if {marked.gender, marked.against} == set(WOMEN_AND_MEN):
            by_chance.update(marked.criterion or ())
    if by_chance:
        reason = f"criterion words marked: {' '.join(sorted(by_chance))}"  # only under `interpolated`
    step = Step(alpha, constant.c, lists, reason=reason)
    if constant.c is None:
        return step
    agreements = np.concatenate([at.agreements(constant.c) for at in pairs]).mean(axis=0)  # [40]
    observed, shuffled = agreements[:N_HALVINGS], over_halvings(agreements[N_HALVINGS:])
    mean = over_halvings(observed)
    if mean is None or shuffled is None:
        no_list = "no stability: most halvings have a half without a list"
        return replace(step, reason=joined([reason, no_list]))
    ends: Any = {"stability_low": max(-1.0, mean.low), "stability_high": min(1.0, mean.high)}
    by_halving = tuple(observed.tolist())
    return replace(step, stability=mean.mean, **ends, stability_shuffled=shuffled.mean, by_halving=by_halving)


def _with_neighbours(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Add to each list what it gained and lost against the alpha before, and what not all at `COMPARED` have.

    Nothing is compared with an alpha without a list.
    """
    compared: list[list[MarkedList]] = [[] for _ in steps]
    for of_pair in zip(*map(attrgetter("lists"), steps), strict=True):
        known = []
        for step, marks in zip(steps, of_pair, strict=True):
            if step.alpha in COMPARED and marks.words is not None:
                known.append(set(marks.words))
        shared, before = set.intersection(*known) if known else set(), None
        for step, marks, lists in zip(steps, of_pair, compared, strict=True):
            now = None if marks.words is None else set(marks.words)
            changes = {}
            if now is not None and before is not None:
                changes = {"gained": tuple(sorted(now - before)), "lost": tuple(sorted(before - now))}
            if now is not None and step.alpha in COMPARED:
                changes["differing"] = tuple(sorted(now - shared))
            lists.append(replace(marks, **changes))
            before = now
    return tuple(replace(step, lists=tuple(lists)) for step, lists in zip(steps, compared, strict=True))


def _decision(steps: Sequence[Step], constants: Sequence[Constant]) -> tuple[Step | None, bool, str]:
    """Decide which alpha a study takes, whether it is clearly better than the papers', and why."""
    if all(step.stability is None for step in steps):
        words = sorted(set[str]().union(*map(attrgetter("stopped_by"), constants)))
        if all(constant.c is None for constant in constants) and words:
            return None, False, f"criterion words marked at C = 0.01 at every alpha: {' '.join(words)}"
        return None, False, next(filter(None, map(attrgetter("reason"), steps)), "nothing to compare")
    best = _most_stable(list(filter(attrgetter("beyond_chance"), steps)))
    if best is None:
        most = _most_stable(steps)
        assert most is not None
        return None, False, f"nothing is stable: {NOT_STABLE}; the most stable, {_shown(most)}"
    paper = next(step for step in steps if step.alpha == PAPER_ALPHA)
    if paper.stability is None:
        return best, True, f"{_shown(best)}; at {PAPER_ALPHA:g}: {paper.reason or 'no stability'}"
    if best is paper:
        return paper, False, f"the papers' alpha stays: the most stable is {_shown(paper)}"
    gain = over_halvings(np.subtract(best.by_halving, paper.by_halving))
    if gain is None or gain.low <= 0:
        return paper, False, f"the papers' alpha stays: {_shown(best)} is not clearly above {_shown(paper)}"
    return best, True, f"{_shown(best)} is clearly above {_shown(paper)}"


def _shown(step: Step) -> str:
    low, high, shuffled = step.stability_low, step.stability_high, step.stability_shuffled
    return (
        f"alpha {step.alpha:g} (stability {step.stability:.2f} [{low:.2f} to {high:.2f}], with shuffled"
        f" genders {shuffled:.2f})"
    )


def _most_stable(steps: Sequence[Step]) -> Step | None:
    """Find the alpha of the largest stability; ties go to the one nearest 0.15, then to the smaller."""
    largest = max((step.stability for step in steps if step.stability is not None), default=0.0)
    tied = [step for step in steps if step.stability is not None and step.stability >= largest - TIED]
    # In twentieths: 0.10 and 0.20 are equally near 0.15, but as doubles they are not.
    return min(tied, key=lambda step: (abs(round(20 * (step.alpha - PAPER_ALPHA))), step.alpha), default=None)
