"""When a series of samples goes on: Algorithm 5 of GAS(P), corrected, in batches (methods/texts#filling).

A batch is the next `batch` samples of every series still open. Whether one goes on is decided from complete
batches in sample order, never from what arrived first: so the samples are the same after a crash, at any
concurrency and on several machines.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from biaskit.measures.personas.study import PersonasStudy

BatchVerdict = Literal["open", "full", "ineligible", "capped"]
LEAST_SHARE_OF_BATCH = 0.1
Counts = tuple[int, int]  # women and men


@dataclass(frozen=True, slots=True)
class Filling:
    """How many texts are wanted, and how many may be sampled for them."""

    n: int  # texts of women and of men
    batch: int
    most: int

    @classmethod
    def from_study(cls, study: PersonasStudy) -> Filling:
        """Take the study's numbers; without filling there is one batch."""
        batch = study.batch or study.per_gender
        most = study.max_samples or (20 * study.per_gender if study.fill else batch)
        most = most if study.fill else min(most, batch)
        return cls(study.per_gender, min(batch, most), most)

    def of_batch(self, number: int) -> range:
        """Return the samples of one batch, the first being 0; the last batch may be shorter."""
        start = number * self.batch
        return range(min(start, self.most), min(start + self.batch, self.most))

    def verdict_of(self, first: Counts, counted: Counts, batches_done: int) -> BatchVerdict:
        """Decide whether a series goes on after so many complete batches.

        first, counted: women and men of the first batch, and of all of them; a sample that was given up
        counts as neither. The printed loop test ("while t_M < n and t_F < n") would stop as soon as one
        gender is full.
        """
        if min(counted) >= self.n:
            return "full"
        if batches_done and min(first) < LEAST_SHARE_OF_BATCH * self.batch:
            return "ineligible"
        return "capped" if batches_done * self.batch >= self.most else "open"


class Tally:
    """A series' women and men, counted batch by batch: to count all samples after each is quadratic."""

    def __init__(self, filling: Filling) -> None:
        self._filling = filling
        self._first: Counts = (0, 0)
        self._found: Counts = (0, 0)
        self.verdicts: list[BatchVerdict] = []
        """After one batch, two batches, …"""

    def add(self, genders: Iterable[str | None]) -> BatchVerdict:
        """Count the next complete batch, and say whether the series goes on after it."""
        sampled = [*genders]
        self._found = self._found[0] + sampled.count("female"), self._found[1] + sampled.count("male")
        if not self.verdicts:
            self._first = self._found
        self.verdicts.append(self._filling.verdict_of(self._first, self._found, len(self.verdicts) + 1))
        return self.verdicts[-1]
