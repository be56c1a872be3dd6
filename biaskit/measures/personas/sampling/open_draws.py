"""Which draws of one model are stored, which are due, and how many may follow (Algorithm 5, `rounds.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from functools import cache, partial
from typing import Any

from biaskit.measures.personas.design import PersonasDesign
from biaskit.measures.personas.sampling.rounds import Filling, Tally
from biaskit.measures.personas.sampling.series import DrawSeries, draw_keys, seed_of, series_of_design
from biaskit.records import DrawRequest, PromptFormat

_SCOPE = ("occupation", "template_id", "requested_gender", "debiasing_id", "context")


def scope_of(row: Mapping[str, Any]) -> tuple[object, ...]:
    """Which series a row belongs to."""
    return tuple(row.get(name) for name in _SCOPE)


def request_under(key: str, series: DrawSeries, draw: int, design: PersonasDesign) -> DrawRequest:
    """Make the request of one draw whose key is known."""
    return DrawRequest(key, series.prompt, design.sampling, seed_of(design.study.seed, key), draw)


class OpenDraws:
    """The draws of one model while they are asked; needs no model."""

    def __init__(
        self,
        design: PersonasDesign,
        prompt_format: PromptFormat,
        fingerprint: str,
        stored: MutableMapping[str, str | None],
    ) -> None:
        """`stored`: key of a text → its inferred gender; it grows with what is answered."""
        self.filling = Filling.from_study(design.study)
        self.stored = stored
        self.given_up: set[str] = set()
        self.series = series_of_design(design, prompt_format)
        self.open_series = [series for series in self.series if series.requested_gender is None]
        self.requested = [series for series in self.series if series.requested_gender is not None]
        self.of_key: dict[str, tuple[DrawSeries, DrawRequest]] = {}  # every draw that was looked at
        self.keys_of = cache(partial(draw_keys, fingerprint=fingerprint, design=design))
        self._design = design
        self._requests: dict[DrawSeries, dict[int, DrawRequest]] = {}
        self._tallies: dict[DrawSeries, Tally] = {}

    def _requests_of(self, series: DrawSeries, draws: range) -> list[DrawRequest]:
        """Draws of a series, each made once."""
        requests = self._requests.setdefault(series, {})
        for draw in draws:
            if draw not in requests:
                request = request_under(self.keys_of(series)(draw), series, draw, self._design)
                requests[draw], self.of_key[request.key] = request, (series, request)
        return [requests[draw] for draw in draws]

    def _round_of(self, series: DrawSeries, number: int) -> list[DrawRequest]:
        return self._requests_of(series, self.filling.round(number))

    def round(self, number: int, still_open: Sequence[DrawSeries]) -> list[DrawRequest]:
        """A round's draws; the first one also holds every draw whose prompt names a gender."""
        requests = [request for series in still_open for request in self._round_of(series, number)]
        if number == 0:
            n = range(self.filling.n)
            requests += [request for series in self.requested for request in self._requests_of(series, n)]
        return requests

    def is_open(self, series: DrawSeries, rounds_done: int) -> bool:
        """Whether a series goes on after so many complete rounds, one at least.

        What a round counted stays: nothing of a complete round is missing, or it was given up.
        """
        tally = self._tallies.setdefault(series, Tally(self.filling))
        for number in range(len(tally.verdicts), rounds_done):
            tally.add(self.stored.get(request.key) for request in self._round_of(series, number))
        return tally.verdicts[rounds_done - 1] == "open"

    def is_missing(self, request: DrawRequest) -> bool:
        """Whether a draw has no text and was not given up."""
        return request.key not in self.stored and request.key not in self.given_up

    def series_with(self, key: str) -> DrawSeries | None:
        """The series of a draw; None for another model's."""
        if key in self.of_key:
            return self.of_key[key][0]
        return next(
            (s for s in self.series if any(request.key == key for request in self.stored_of(s))), None
        )

    def stored_of(self, series: DrawSeries) -> Iterator[DrawRequest]:
        """The draws of a series that have a text, up to the first that has none."""
        for draw in range(self.filling.most if series.requested_gender is None else self.filling.n):
            request = request_under(self.keys_of(series)(draw), series, draw, self._design)
            if request.key not in self.stored:
                return
            yield request

    def outlook(self) -> tuple[list[DrawRequest], int]:
        """The draws that are certain to be requested, and how many more the rounds after them may add.

        Series by series: one with a hole in an early round says nothing of the others.
        """
        certain = self.round(0, ())
        later = 0
        for series in self.open_series:
            number = 0
            while not any(self.is_missing(request) for request in self._round_of(series, number)):
                number += 1
                if not self.is_open(series, number):
                    break
            else:
                certain += self._round_of(series, number)
                later += self._may_follow(series, number)
        return [request for request in certain if self.is_missing(request)], later

    def rounds_after(self, due: Sequence[DrawRequest]) -> int:
        """How many rounds may follow that in which the earliest of these draws is."""
        size = self.filling.batch
        of_open = [r.number // size for r in due if self.of_key[r.key][0].requested_gender is None]
        return -(-self.filling.most // size) - 1 - min(of_open, default=0)

    def _may_follow(self, series: DrawSeries, number: int) -> int:
        """Draws that a series may request after a round, without those that an earlier start has stored."""
        most = max(0, self.filling.most - (number + 1) * self.filling.batch)
        n_stored = 1
        while n_stored:
            number += 1
            n_stored = sum(request.key in self.stored for request in self._round_of(series, number))
            most -= n_stored
        return most
