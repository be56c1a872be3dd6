"""Groups compared within the same cases, people and cases both samples (methods/decisions#gaps).

Rows `[n]` are decisions: x about a person of a group in a case. Nothing need be complete or balanced:
postings have other people each, logs lack cells. Of full tables these are the numbers of `stats.crossed`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from biaskit.stats.arrays import BoolArray, FloatArray, IntArray
from biaskit.stats.clustered import additive, term
from biaskit.stats.crossed import MANY, Spread, Term

FEWEST_PEOPLE = 3
"""Of a cell of two attributes, that people of one group vary about its own mean."""
FEWEST_JOBS = 8
"""From so many jobs they are a sample in place of cases; fewer are fixed, where each has two cases."""
ONE_PERSON, ONE_CASE = "a group of one person: no interval", "one case: no interval"


@dataclass(frozen=True)
class Decisions:
    """Who was decided on in which case: codes from 0, `[n]` each; what is not known is None.

    `person` is None too where people are stated and no sample. `other` is the attribute that is not compared.
    `chosen_of`: how many are shown of whom one is chosen; 0 where each is decided on alone. `paired`: two are
    shown together throughout, one of each group, so that what one gets the other lacks.
    """

    group: IntArray
    other: IntArray
    person: IntArray | None
    case: IntArray | None
    job: IntArray | None = None
    chosen_of: int = 0
    paired: bool = False

    def among(self, here: BoolArray) -> Decisions:
        """Keep these rows."""
        person, case, job = (x if x is None else x[here] for x in (self.person, self.case, self.job))
        kept = replace(self, group=self.group[here], other=self.other[here])
        return replace(kept, person=person, case=case, job=job)

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.group)

    @cached_property
    def repeats(self) -> bool:
        """Whether people are met more than once, so that they are a sample of their own."""
        return self.person is not None and len(np.unique(self.person)) < self.n

    @cached_property
    def crossed(self) -> bool:
        """Whether people are met in several cases each, so that the two can be told apart."""
        return self.person is None or self.n >= 2 * len(np.unique(self.person))

    @cached_property
    def by_other(self) -> bool:
        """Whether groups are compared within the other attribute: who is met in a case was designed.

        Not with fewer than three people of each: where a block has one of each group, half of what tells
        people apart would go with its mean, and V be half of what it is.
        """
        if self.chosen_of or self.case is None or not self.crossed:
            return False
        if self.person is None:
            return True
        places = np.unique(np.stack([numbered(self.group, self.other), self.person]), axis=1)[0]
        return bool(np.bincount(places).min() >= FEWEST_PEOPLE)

    @cached_property
    def blocks(self) -> IntArray:
        """Number what groups are compared within: case and other attribute, the case, or all rows."""
        if self.case is None:
            return np.zeros(self.n, np.int64)
        return numbered(self.case, self.other) if self.by_other else numbered(self.case)

    @cached_property
    def cells(self) -> IntArray:
        """Number what people vary within: group and other attribute, or the group."""
        return numbered(self.group, self.other) if self.by_other else numbered(self.group)

    @cached_property
    def clusters(self) -> tuple[IntArray, IntArray] | None:
        """Number cases as they vary, and what they vary within: `[n]` and `[n]`; None where none is known.

        Jobs that are few are fixed and cases vary within them; many stand in place of cases.
        """
        if self.case is None:
            return None
        whole = np.zeros(self.n, np.int64)
        if self.job is None:
            return numbered(self.case), whole
        job, case = numbered(self.job), numbered(self.job, self.case)
        n_jobs = int(job.max(initial=0)) + 1
        if n_jobs >= FEWEST_JOBS:
            return job, whole
        of_jobs = np.unique(np.stack([job, case]), axis=1)[0]
        return (case, job) if n_jobs > 1 and np.bincount(of_jobs).min() > 1 else (case, whole)


def numbered(*codes: IntArray) -> IntArray:
    """Number the combinations of codes `[n]` from 0."""
    number = np.zeros(len(codes[0]), np.int64)
    for code in codes:
        number = np.unique(number * (int(code.max(initial=0)) + 1) + code, return_inverse=True)[1]
    return number


@dataclass(frozen=True, slots=True)
class Side:
    """What one group adds to the variance of a difference: terms of people, of the rest; its cases' sums."""

    people: list[Term]
    rest: list[Term]
    sums: FloatArray  # [H] of each case
    sizes: FloatArray  # [H], the weights of its rows
    of_people: list[tuple[float, float]]  # weight and people of each cell


class Sides:
    """The sides of all groups of one set of decisions; any two make a spread."""

    def __init__(self, rows: Decisions, y: FloatArray, w: FloatArray) -> None:
        """Take values and weights `[n]`, weights above 0, of sum 1 in each group."""
        none = np.zeros(rows.n, np.int64)
        self.rows, self.w = rows, w
        self.cluster, self.stratum = rows.clusters or (none, none)
        self.stratum_of = np.zeros(int(self.cluster.max(initial=0)) + 1, np.int64)
        self.stratum_of[self.cluster] = self.stratum
        self.people = np.arange(rows.n) if rows.person is None else rows.person
        centre = numbered(rows.cells, self.stratum)
        self.off = y - (np.bincount(centre, w * y) / np.bincount(centre, w))[centre]
        self.of = [self._side(rows.group == group) for group in range(int(rows.group.max(initial=0)) + 1)]

    def _side(self, here: BoolArray) -> Side:
        cluster, n = self.cluster[here], len(self.stratum_of)
        sums, sizes = (np.bincount(cluster, x[here], minlength=n) for x in (self.w * self.off, self.w))
        side = Side([], [], sums.astype(np.float64), sizes.astype(np.float64), [])
        for cell in np.unique(self.rows.cells[here]):
            inside = self.rows.cells == cell
            person = numbered(self.people[inside])
            of_each = np.bincount(person, self.w[inside])
            worth = float(of_each.sum() ** 2 / np.square(of_each).sum())
            side.of_people.append((float(of_each.sum()), worth))
            if len(of_each) > 1:
                side.people.append(term(person, self.w[inside], self.off[inside]))
                if self.rows.repeats and self.rows.clusters is not None:
                    side.rest.extend(self._rest(inside, person))
        return side

    def _rest(self, inside: BoolArray, person: IntArray) -> Iterator[Term]:
        """Find what neither people nor cases explain, with its degrees of freedom."""
        e, w = self.off[inside], self.w[inside]
        n, n_people = len(e), int(person.max()) + 1
        if not self.rows.crossed:  # what the same person gets elsewhere is all that V adds to T
            yield np.asarray(n_people / (n_people - 1) * np.square(w * e).sum()), n - 1
        elif self.rows.chosen_of and not self.rows.paired:  # candidates compete: one's gain is others' loss
            left = e - (np.bincount(person, e) / np.bincount(person))[person]
            yield np.asarray(n / (n - n_people) * np.square(w * left).sum()), n - n_people
        else:
            a, b = numbered(person, self.stratum[inside]), numbered(self.cluster[inside])
            left, rank, _ = additive(a, b, e)
            of_cells = np.bincount(numbered(a, b), w * left)
            if (free := len(of_cells) - rank) > 0:
                yield np.asarray(len(of_cells) / free * np.square(of_cells).sum()), free

    def spread(self, a: int, b: int) -> Spread:
        """Estimate the variance of the difference of two groups, with its degrees of freedom.

        Formula: u_i = w_i (y_i − the weighted mean of its cell);
            V = Σ over cells G/(G−1) Σ_a (Σ_{i in a} u_i)² over G people a,
            T = H/(H−1) Σ_c (Σ_{i in c} u_i)² over H cases c, a's u less b's; in fixed jobs summed,
            W = what is left of people × cases, by cell; v = max(V + T − W, V, T);
            T where people do not repeat, V where cases are not known;
            max(T + V − W, T) with W = G/(G−1) Σ u² where people are met less than twice on average;
            max(T + q (V − W), T) with q = (k/(k−1))² where one of k is chosen; of pairs V and W doubled, at
            half their degrees: the spread of the mean of 2P − 1;
            dof = min(Satterthwaite's, people's), at least 1; people's = (Σ s²/g)²/Σ s⁴/(g² (g−1)) over cells
            of weight s and g people, g = (Σ w)²/Σ w². Its tails (`crossed.with_tails`) are those of cases,
            H as for g.
        None with the reason for one case, or a group of one person where people are a sample.
        Reference: methods/decisions#gaps; `benchmarks/decision_worlds.py`.
        """
        rows, sides = self.rows, (self.of[a], self.of[b])
        with_people = rows.repeats or rows.clusters is None
        cells = [*sides[0].of_people, *sides[1].of_people]
        if with_people and len(cells) > len(sides[0].people) + len(sides[1].people):
            return Spread(None, None, ONE_PERSON)
        cases, n_cases = self._of_cases(*sides)
        if rows.clusters is not None and not cases:
            return Spread(None, None, ONE_CASE)
        q, part = 1.0, 2.0 if rows.paired else 1.0  # the two of a pair say the same
        if rows.chosen_of > 1:
            q = part if rows.paired else (rows.chosen_of / (rows.chosen_of - 1)) ** 2
        people, rest = [], []
        for side in sides if with_people else ():
            people += [(q * x, dof / part) for x, dof in side.people]
            rest += [(q * x, dof / part) for x, dof in side.rest]
        of_people, of_cases, of_rest = map(_total, (people, cases, rest))
        variance = of_people + of_cases - of_rest
        if not cases or (q == part and rows.crossed):
            variance = max(variance, of_people)
        variance = max(variance, of_cases)
        below = float(sum(x**2 / dof for x, dof in [*people, *cases, *rest]))
        dof = variance**2 / below if below > 0 else 1.0
        if rows.person is not None or rows.clusters is None:
            dof = min(dof, welch_degrees(cells) / part)
        return Spread(np.asarray(variance), np.asarray(max(dof, 1.0)), None, (), n_cases)

    def _of_cases(self, a: Side, b: Side) -> tuple[list[Term], float]:
        """Find the terms of cases, one for each fixed job, and how many cases they are worth (1: unknown)."""
        sizes, sums = a.sizes + b.sizes, a.sums - b.sums
        terms: list[Term] = []
        weights = []
        for stratum in np.unique(self.stratum_of):
            here = (self.stratum_of == stratum) & (sizes > 0)
            n = int(here.sum())
            if n < 2:
                continue
            worth = float(sizes[here].sum() ** 2 / np.square(sizes[here]).sum())
            value = n / (n - 1) * np.square(sums[here]).sum()
            terms.append((np.asarray(value), max(worth - 1, 1.0)))
            weights.append((float(sizes[here].sum()), worth))
        return terms, welch_degrees(weights) + 1 if terms else 1.0


def _total(terms: list[Term]) -> float:
    return float(sum(x for x, _ in terms))


def welch_degrees(parts: list[tuple[float, float]]) -> float:
    """Compute the degrees of freedom of a sum of means if all variances are equal, of (weight, units) each.

    Formula: (Σ s²/g)² / Σ s⁴/(g² (g−1)), g − 1 at least 1.
    Reference: Welch 1938; methods/averages#tails.
    """
    below = sum(s**4 / (g * g * max(g - 1, 1.0)) for s, g in parts)
    return float(sum(s * s / g for s, g in parts) ** 2 / below) if below > 0 else MANY


@dataclass(frozen=True, slots=True)
class WithinCases:
    """A difference of two groups within cases, its spread, and the rows that it rests on."""

    estimate: float
    spread: Spread
    used: BoolArray  # [n]
    weights: FloatArray  # [n], of a positive and of b negative; 0 where a row is not used
    n_cases: int
    n_people: int
    n_left_out: int  # cases in which one of the two groups is lacking


def within_cases(rows: Decisions, x: FloatArray, a: int, b: int) -> WithinCases | None:
    """Estimate how much more group a gets than b within the same cases; None where no case has both.

    Formula: L = Σ_b W_b (mean of a − mean of b) over blocks b, W_b ∝ n_a n_b/(n_a + n_b), Σ W = 1; the spread
        is that of `Sides` with w = W_b/n and y = x less its block's level: that of least squares on people
        and blocks, or the mean of the two means if people are met less than twice, 0 if one of k is chosen.
    Reference: methods/decisions#gaps.
    """
    both = (rows.group == a) | (rows.group == b)
    block, of_a, of_b = rows.blocks, rows.group == a, rows.group == b
    n = int(block.max(initial=0)) + 1
    n_a, n_b = np.bincount(block[of_a], minlength=n), np.bincount(block[of_b], minlength=n)
    weight = n_a * n_b / np.maximum(n_a + n_b, 1)
    used = both & (weight > 0)[block]
    if not used.any():
        return None
    weight = weight / weight.sum()
    mean_a = np.bincount(block[of_a], x[of_a], minlength=n) / np.maximum(n_a, 1)
    mean_b = np.bincount(block[of_b], x[of_b], minlength=n) / np.maximum(n_b, 1)
    here = rows.among(used)
    side = np.where(
        of_a, weight[block] / np.maximum(n_a, 1)[block], weight[block] / np.maximum(n_b, 1)[block]
    )
    here = replace(here, group=np.where(here.group == a, 0, 1))
    y = x[used]
    if not here.crossed or not here.repeats:
        y = y - ((mean_a + mean_b) / 2)[block[used]]
    elif here.case is not None and here.person is not None and not here.chosen_of:
        # A block's own mean would take a part of what tells its few people apart with it.
        of_block = numbered(block[used])
        y = y - additive(numbered(here.person), of_block, y)[2][of_block]
    spread = Sides(here, y, side[used]).spread(0, 1)
    n_cases = n_left = 0
    if rows.case is not None:
        n_cases = len(np.unique(rows.case[used]))
        n_left = len(np.unique(rows.case[both])) - n_cases
    n_people = 0 if rows.person is None else len(np.unique(rows.person[used]))
    signed = np.where(of_a, side, -side) * used
    estimate = float((weight * (mean_a - mean_b)).sum())
    return WithinCases(estimate, spread, used, signed, n_cases, n_people, n_left)
