"""Groups compared within the same cases, people and cases both samples (methods/decisions#gaps).

Rows `[n]` are decisions: x about a person of a group in a case. Nothing need be complete or balanced:
postings have other people each, logs lack cells. Of full tables these are the numbers of `stats.crossed`.
"""

from __future__ import annotations

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

    @property
    def competing(self) -> bool:
        """Whether one's gain is the loss of others who are not paired with one."""
        return self.chosen_of > 1 and not self.paired

    @cached_property
    def by_other(self) -> bool:
        """Whether groups are compared within the other attribute: who is met in a case was designed."""
        if self.chosen_of or self.case is None or not self.crossed:
            return False
        if self.person is None:
            return True
        places = np.unique(np.stack([numbered(self.group, self.other), self.person]), axis=1)[0]
        return bool(np.bincount(places).min() >= FEWEST_PEOPLE)

    def within(self, code: IntArray) -> IntArray:
        """Number codes `[n]`, within the other attribute where groups are compared within it."""
        return numbered(code, self.other) if self.by_other else numbered(code)

    @cached_property
    def clusters(self) -> tuple[IntArray, IntArray]:
        """Number cases as they vary, and what they vary within: `[n]` each; one case where none is known.

        Jobs that are few are fixed and cases vary within them; many stand in place of cases.
        """
        whole = np.zeros(self.n, np.int64)
        if self.case is None or self.job is None:
            return whole if self.case is None else numbered(self.case), whole
        job, case = numbered(self.job), numbered(self.job, self.case)
        n_jobs = int(job.max(initial=0)) + 1
        if n_jobs >= FEWEST_JOBS:
            return job, whole
        of_jobs = np.unique(np.stack([job, case]), axis=1)[0]
        return case, job if n_jobs > 1 and np.bincount(of_jobs).min() > 1 else whole


def numbered(*codes: IntArray) -> IntArray:
    """Number the combinations of codes `[n]` from 0."""
    number = np.zeros(len(codes[0]), np.int64)
    for code in codes:
        number = np.unique(number * (int(code.max(initial=0)) + 1) + code, return_inverse=True)[1]
    return number


@dataclass(frozen=True, slots=True)
class _Cell:
    """What people of one cell add to the variance of a difference."""

    group: int
    part: tuple[float, float]  # weight, and how many people they are worth
    people: list[Term]  # none of one person
    rest: list[Term]  # what neither people nor cases explain


class Spreads:
    """The spreads of the differences of any two groups of one set of decisions.

    Formula: v and d of methods/decisions#gaps; of pairs V and W doubled, at half their degrees: the spread of
        the mean of 2P − 1. Tails (`crossed.with_tails`) are those of cases.
    Reference: of full tables `crossed.spread_of_difference`; else `benchmarks/decision_worlds.py`.
    """

    def __init__(self, rows: Decisions, y: FloatArray, w: FloatArray) -> None:
        """Take values and weights `[n]`, weights above 0, of sum 1 in each group."""
        self.rows, self.w = rows, w
        self.cluster, self.job = rows.clusters
        cell = rows.within(rows.group)
        centre = numbered(cell, self.job)
        self.off = y - (np.bincount(centre, w * y) / np.bincount(centre, w))[centre]
        self.cells = [self._cell(cell == one) for one in range(int(cell.max(initial=-1)) + 1)]

    def _cell(self, here: BoolArray) -> _Cell:
        rows = self.rows.among(here)
        person = numbered(np.arange(rows.n) if rows.person is None else rows.person)
        w, e = self.w[here], self.off[here]
        sizes = np.bincount(person, w).astype(np.float64)
        people, rest = [], []
        if len(sizes) > 1:
            people = [term(person, w, e)]
            if self.rows.repeats and rows.case is not None:
                rest = self._rest(here, person)
        return _Cell(int(rows.group[0]), (float(sizes.sum()), _worth(sizes)), people, rest)

    def _rest(self, here: BoolArray, person: IntArray) -> list[Term]:
        w, e = self.w[here], self.off[here]
        n, n_people = len(e), int(person.max()) + 1
        if not self.rows.crossed:  # what the same person gets elsewhere is all that V adds to T
            return [(np.asarray(n_people / (n_people - 1) * np.square(w * e).sum()), n - 1)]
        if self.rows.competing:
            left = e - (np.bincount(person, e) / np.bincount(person))[person]
            of_cells, free = w * left, n - n_people
        else:
            a, b = numbered(person, self.job[here]), numbered(self.cluster[here])
            left, rank, _ = additive(a, b, e)
            of_cells = np.bincount(numbered(a, b), w * left).astype(np.float64)
            free = len(of_cells) - rank
        return [(np.asarray(len(of_cells) / free * np.square(of_cells).sum()), free)] if free > 0 else []

    def spread(self, a: int, b: int) -> Spread:
        """Estimate the variance of a's mean less b's, with its degrees of freedom.

        None with the reason for one case, or a group of one person where people are a sample.
        """
        rows = self.rows
        cells = [cell for group in (a, b) for cell in self.cells if cell.group == group]
        sampled = rows.repeats or rows.case is None
        if sampled and not all(cell.people for cell in cells):
            return Spread(None, None, ONE_PERSON)
        cases, n_cases = self._of_cases(a, b)
        if rows.case is not None and not cases:
            return Spread(None, None, ONE_CASE)
        q = part = 2.0 if rows.paired else 1.0  # the two of a pair say the same
        if rows.competing:
            q = (rows.chosen_of / (rows.chosen_of - 1)) ** 2
        people: list[Term] = []
        rest: list[Term] = []
        for cell in cells if sampled else ():
            people += [(q * x, dof / part) for x, dof in cell.people]
            rest += [(q * x, dof / part) for x, dof in cell.rest]
        of_people, of_cases, of_rest = map(_total, (people, cases, rest))
        variance = of_people + of_cases - of_rest
        if not cases or (rows.crossed and not rows.competing):
            variance = max(variance, of_people)
        variance = max(variance, of_cases)
        below = float(sum(x**2 / dof for x, dof in [*people, *cases, *rest]))
        dof = variance**2 / below if below > 0 else 1.0
        if rows.person is not None or rows.case is None:
            dof = min(dof, welch_degrees([cell.part for cell in cells]) / part)
        return Spread(np.asarray(variance), np.asarray(max(dof, 1.0)), None, (), n_cases)

    def _of_cases(self, a: int, b: int) -> tuple[list[Term], float]:
        """Find the terms of cases, one for each fixed job, and how many cases they are worth (1: unknown)."""
        n = int(self.cluster.max(initial=0)) + 1
        sums, sizes = np.zeros(n), np.zeros(n)
        for group, sign in ((a, 1), (b, -1)):
            here = self.rows.group == group
            sums += sign * np.bincount(self.cluster[here], (self.w * self.off)[here], n)
            sizes += np.bincount(self.cluster[here], self.w[here], n)
        terms: list[Term] = []
        parts = []
        for job in np.unique(self.job):
            own = np.unique(self.cluster[self.job == job])
            own = own[sizes[own] > 0]
            if len(own) > 1:
                value, worth = len(own) / (len(own) - 1) * np.square(sums[own]).sum(), _worth(sizes[own])
                terms.append((np.asarray(value), max(worth - 1, 1.0)))
                parts.append((float(sizes[own].sum()), worth))
        return terms, welch_degrees(parts) + 1 if terms else 1.0


def _total(terms: list[Term]) -> float:
    return float(sum(x for x, _ in terms))


def _worth(sizes: FloatArray) -> float:
    """Find how many equal units have the spread of units of these sizes: (Σ s)²/Σ s²."""
    return float(sizes.sum() ** 2 / np.square(sizes).sum())


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
        is that of `Spreads` with w = W_b/n and y = x less its block's level: that of least squares on people
        and blocks, or the mean of the two means if people are met less than twice, 0 if one of k is chosen.
    Reference: methods/decisions#gaps.
    """
    block = np.zeros(rows.n, np.int64) if rows.case is None else rows.within(rows.case)
    n_blocks = int(block.max(initial=0)) + 1
    n, means = np.zeros((2, n_blocks)), np.zeros((2, n_blocks))
    for side, group in enumerate((a, b)):
        mine = rows.group == group
        n[side] = np.bincount(block[mine], minlength=n_blocks)
        means[side] = np.bincount(block[mine], x[mine], n_blocks) / np.maximum(n[side], 1)
    weight = n[0] * n[1] / np.maximum(n[0] + n[1], 1)
    both = (rows.group == a) | (rows.group == b)
    used = both & (weight > 0)[block]
    if not used.any():
        return None
    weight = weight / weight.sum()
    of_b = (rows.group == b).astype(np.int64)
    w = weight[block] / np.maximum(n, 1)[of_b, block]
    here = replace(rows, group=of_b).among(used)
    y, of_block = x[used], numbered(block[used])
    if not here.crossed or not here.repeats:
        y = y - means.sum(axis=0)[block[used]] / 2
    elif here.case is not None and here.person is not None and not here.chosen_of:
        # A block's own mean would take a part of what tells its few people apart with it.
        y = y - additive(numbered(here.person), of_block, y)[2][of_block]
    n_cases = n_left = 0
    if rows.case is not None:
        n_cases = len(np.unique(rows.case[used]))
        n_left = len(np.unique(rows.case[both])) - n_cases
    n_people = 0 if here.person is None else len(np.unique(here.person))
    estimate, signed = float((weight * (means[0] - means[1])).sum()), np.where(of_b, -w, w) * used
    spread = Spreads(here, y, w[used]).spread(0, 1)
    return WithinCases(estimate, spread, used, signed, n_cases, n_people, n_left)
