"""Rounds of draws: a cell by `sampling` is drawn on until enough draws say a target word.

Whether a cell goes on depends on its own matched draws alone. So its shares stay unbiased, and its draws are
the same after a crash, at any concurrency and whatever other cells there are (methods/estimators#rounds).
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
"""Matched draws with which a cell is finished."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """How many draws a round has, and how many rounds a cell; an estimator without draws asks once."""

    size: int = 1
    most: int = 1

    @classmethod
    def up_to(cls, draws: int | None, cap: int) -> Rounds:
        """Whole rounds up to the cap of a cell, at least one; `draws` None: nothing is drawn."""
        return cls() if draws is None else cls(draws, max(1, cap // draws))

    def goes_on(self, n_rounds: int, matched: int) -> bool:
        """Whether a cell of so many rounds and matched draws gets another round."""
        return n_rounds < self.most and (not n_rounds or matched < ENOUGH)

    def request(self, cell: ScoreRequest, number: int) -> ScoreRequest:
        """A round as a request; the first, number 0, has the cell's own key."""
        if not number:
            return cell
        return replace(cell, key=key_of({"cell": cell.key, "round": number}), first_draw=number * self.size)

    def next_of(self, cell: ScoreRequest, stored: Mapping[str, int]) -> ScoreRequest | None:
        """The first round that a cell still needs; `stored`: key of a row → its matched draws."""
        number = matched = 0
        while self.goes_on(number, matched):
            asked = self.request(cell, number)
            if asked.key not in stored:
                return asked
            matched += stored[asked.key]
            number += 1
        return None

    def number_of(self, request: ScoreRequest) -> int:
        """Which round a request is."""
        return request.first_draw // self.size

    def ends(self, p: float) -> Mapping[tuple[int, int], float]:
        """How a cell may end: (draws, matched) → probability, where a draw matches with probability p."""
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
    """The cells of one model that need another round, while they are asked."""

    def __init__(
        self, cells: Sequence[ScoreRequest], rounds: Rounds, stored: MutableMapping[str, int]
    ) -> None:
        """`stored`: key of a row → its matched draws; it grows with what is answered."""
        self.rounds, self._stored = rounds, stored
        # Key of a later round too → its cell, itself.
        self._asked: dict[str, tuple[ScoreRequest, ScoreRequest]] = {}
        self._round_of: dict[int, int] = {}  # place of a cell that is due → its round, where rows are stored
        self._places: Sequence[int] = range(len(cells))
        if stored:
            for i, cell in enumerate(cells):
                due = rounds.next_of(cell, stored)
                if due is not None:
                    self._round_of[i] = rounds.number_of(due)
            self._places = list(self._round_of)
        number_of, places = self._round_of, self._places
        self.due = Computed(len(places), lambda i: rounds.request(cells[i := places[i]], number_of.get(i, 0)))
        """The next round of each."""
        if rounds.most > 1:
            self._asked = {due.key: (cells[self._places[i]], due) for i, due in enumerate(self.due)}
        self.n_left = len(self.due)

    def outlook(self) -> tuple[int, int]:
        """How many draws the open cells need, at least and at most."""
        left = [self.rounds.most - self._round_of.get(place, 0) for place in self._places]
        return len(left) * self.rounds.size, sum(left) * self.rounds.size

    def place(self, key: str) -> tuple[str, int]:
        """The cell's key and the number of the round whose key this is."""
        cell, asked = self._asked.get(key, (None, None))
        return (key, 0) if cell is None or asked is None else (cell.key, self.rounds.number_of(asked))

    def score(
        self, scorer: ContinuationScorer, batches: Sequence[Sequence[ScoreRequest]]
    ) -> Iterator[Sequence[Scored | Failed]]:
        """The answers of planned batches, and of the rounds that follow from them.

        A cell's next round goes out when the one before was handed on, ahead of cells not yet begun. No cell
        waits for another's round, but for the last ones, when nothing else is left to ask.
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
        """Take an answer in; the cell's next round, if it needs one. After a failed round there is none."""
        if isinstance(answer, Failed) or answer.key in self._stored:
            return None
        self._stored[answer.key] = sum((answer.counts or {}).values())
        more = None
        if self.rounds.most > 1:
            cell, _ = self._asked[answer.key]
            more = self.rounds.next_of(cell, self._stored)
            if more is not None:
                self._asked[more.key] = cell, more
        self.n_left -= more is None
        return more


def add_up(
    rows: Mapping[int, Mapping[str, Any]], rounds: Rounds
) -> tuple[dict[str, Any] | None, Sequence[int], bool]:
    """A cell's rows, by round, as the one row that all its draws would be.

    Returns it (None without a first round), the rounds that are in it, and whether the cell needs another.
    Rows after a gap or beyond the cap are not used.
    """
    n, draws, counts = 0, 0, Counter[str]()
    while (goes_on := rounds.goes_on(n, counts.total())) and (row := rows.get(n)) is not None:
        counts.update(row["counts"])
        n, draws = n + 1, draws + row["draws"]
    whole = {**rows[0], "draws": draws, "counts": dict(counts)} if n else None
    return whole, list(range(n)), goes_on
