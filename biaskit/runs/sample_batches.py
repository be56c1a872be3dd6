"""Batches of samples: a cell by `sampling` is drawn on until enough samples say a target word.

Whether a cell goes on depends on its own matched samples alone. So its shares stay unbiased, and its samples
are the same after a crash, at any concurrency and whatever other cells there are
(methods/estimators#batches).
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from biaskit.common.provenance import key_of
from biaskit.common.sequences import Computed
from biaskit.models.base import ContinuationScorer, closing_stream
from biaskit.records import Failed, Scored, ScoreRequest

ENOUGH = 3
"""Matched samples with which a cell is finished."""


@dataclass(frozen=True, slots=True)
class SampleBatches:
    """How many samples a batch has, and how many batches a cell; an estimator without samples asks once."""

    size: int = 1
    most: int = 1

    @classmethod
    def up_to(cls, samples: int | None, cap: int) -> SampleBatches:
        """Whole batches up to the cap of a cell, at least one; `samples` None: nothing is drawn."""
        return cls() if samples is None else cls(samples, max(1, cap // samples))

    def goes_on(self, n_sample_batches: int, matched: int) -> bool:
        """Whether a cell of so many batches and matched samples gets another batch."""
        return n_sample_batches < self.most and (not n_sample_batches or matched < ENOUGH)

    def request(self, cell: ScoreRequest, number: int) -> ScoreRequest:
        """A batch as a request; the first, number 0, has the cell's own key."""
        if not number:
            return cell
        return replace(cell, key=key_of({"cell": cell.key, "round": number}), first_sample=number * self.size)

    def next_of(self, cell: ScoreRequest, stored: Mapping[str, int]) -> ScoreRequest | None:
        """The first batch that a cell still needs; `stored`: key of a row → its matched samples."""
        number = matched = 0
        while self.goes_on(number, matched):
            asked = self.request(cell, number)
            if asked.key not in stored:
                return asked
            matched += stored[asked.key]
            number += 1
        return None

    def number_of(self, request: ScoreRequest) -> int:
        """Which batch a request is."""
        return request.first_sample // self.size

    def ends(self, p: float) -> Mapping[tuple[int, int], float]:
        """How a cell may end: (samples, matched) → probability, where a sample matches with probability p."""
        n = self.size
        matches = [math.comb(n, k) * p**k * (1.0 - p) ** (n - k) for k in range(n + 1)]
        still = {0: 1.0}  # matched so far → probability that the cell gets here and goes on
        endings: dict[tuple[int, int], float] = {}
        for number in range(1, self.most + 1):
            reached: dict[int, float] = {}
            for before, chance in still.items():
                for more, q in enumerate(matches):
                    reached[before + more] = reached.get(before + more, 0.0) + chance * q
            still = {k: chance for k, chance in reached.items() if self.goes_on(number, k)}
            endings |= {(number * n, k): chance for k, chance in reached.items() if k not in still}
        return endings


class OpenCells:
    """The cells of one model that need another batch, while they are asked."""

    def __init__(
        self, cells: Sequence[ScoreRequest], sample_batches: SampleBatches, stored: MutableMapping[str, int]
    ) -> None:
        """`stored`: key of a row → its matched samples; it grows with what is answered."""
        self.sample_batches, self._stored = sample_batches, stored
        # Key of a later batch too → its cell, itself.
        self._asked: dict[str, tuple[ScoreRequest, ScoreRequest]] = {}
        self._batch_of: dict[int, int] = {}  # place of a cell that is due → its batch, where rows are stored
        self._places: Sequence[int] = range(len(cells))
        if stored:
            for i, cell in enumerate(cells):
                due = sample_batches.next_of(cell, stored)
                if due is not None:
                    self._batch_of[i] = sample_batches.number_of(due)
            self._places = list(self._batch_of)
        number_of, places = self._batch_of, self._places
        self.due = Computed(
            len(places), lambda i: sample_batches.request(cells[i := places[i]], number_of.get(i, 0))
        )
        """The next batch of each."""
        if sample_batches.most > 1:
            self._asked = {due.key: (cells[self._places[i]], due) for i, due in enumerate(self.due)}
        self.n_left = len(self.due)

    def outlook(self) -> tuple[int, int]:
        """How many samples the open cells need, at least and at most."""
        left = [self.sample_batches.most - self._batch_of.get(place, 0) for place in self._places]
        return len(left) * self.sample_batches.size, sum(left) * self.sample_batches.size

    def place(self, key: str) -> tuple[str, int]:
        """The cell's key and the number of the batch whose key this is."""
        cell, asked = self._asked.get(key, (None, None))
        return (key, 0) if cell is None or asked is None else (cell.key, self.sample_batches.number_of(asked))

    def score(
        self, scorer: ContinuationScorer, batches: Sequence[Sequence[ScoreRequest]]
    ) -> Iterator[Sequence[Scored | Failed]]:
        """The answers of planned batches, and of the batches that follow from them.

        A cell's next batch goes out when the one before was handed on, ahead of cells not yet begun. No cell
        waits for another's batch, but for the last ones, when nothing else is left to ask.
        """
        rest, ahead = iter(batches), deque[Sequence[ScoreRequest]]()

        def due() -> bool:
            if not ahead:
                ahead.extend(islice(rest, 1))
            return bool(ahead)

        def taken() -> Iterator[Sequence[ScoreRequest]]:
            while due():
                yield ahead.popleft()

        while due():
            with closing_stream(scorer.score(taken())) as groups:
                for group in groups:
                    follow = [more for more in map(self._note, group) if more is not None]
                    yield group  # what reads stores it before anything that follows from it is asked
                    if follow:
                        ahead.extendleft(reversed(scorer.plan_scores(follow).batches))

    def _note(self, answer: Scored | Failed) -> ScoreRequest | None:
        """Take an answer in; the cell's next batch, if it needs one. After a failed batch there is none."""
        if isinstance(answer, Failed) or answer.key in self._stored:
            return None
        self._stored[answer.key] = sum((answer.counts or {}).values())
        more = None
        if self.sample_batches.most > 1:
            cell, _ = self._asked[answer.key]
            more = self.sample_batches.next_of(cell, self._stored)
            if more is not None:
                self._asked[more.key] = cell, more
        self.n_left -= more is None
        return more


def add_up(
    rows: Mapping[int, Mapping[str, Any]], sample_batches: SampleBatches
) -> tuple[dict[str, Any] | None, Sequence[int], bool]:
    """A cell's rows, by batch, as the one row that all its samples would be.

    Returns it (None without a first batch), the batches that are in it, and whether the cell needs another.
    Rows after a gap or beyond the cap are not used.
    """
    n, samples, counts = 0, 0, Counter[str]()
    while (goes_on := sample_batches.goes_on(n, counts.total())) and (row := rows.get(n)) is not None:
        counts.update(row["counts"])
        n, samples = n + 1, samples + row["samples"]
    if not n:
        return None, [], goes_on
    coverage = coverage_of(counts.total(), n, rows[0]["samples"])
    whole = {**rows[0], "samples": samples, "counts": dict(counts), "coverage": coverage}
    return whole, list(range(n)), goes_on


def coverage_of(matched: int, n_sample_batches: int, size: int) -> float:
    """Estimate coverage from how a cell ended; matched/samples is too high, since it stops when enough match.

    Formula: E[t]/((b − 1) size), t ≤ 2 the matches of all batches but the last, whose probabilities given the
        end are as C((b − 1) size, t) C(size, matched − t); unbiased (methods/estimators#batches).
    """
    before = (n_sample_batches - 1) * size
    if not before:
        return matched / size
    ways = [math.comb(before, t) * math.comb(size, matched - t) for t in range(min(matched + 1, ENOUGH))]
    return sum(t * w for t, w in enumerate(ways)) / (sum(ways) * before)
