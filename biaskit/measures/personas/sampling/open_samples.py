"""Which samples of one model are stored, which are due, how many may follow (Algorithm 5, `filling.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from functools import cache, partial
from typing import Any

from biaskit.measures.personas.design import PersonasDesign
from biaskit.measures.personas.sampling.filling import Filling, Tally
from biaskit.measures.personas.sampling.series import SampleSeries, sample_keys, seed_of, series_of_design
from biaskit.records import PromptFormat, SampleRequest

_SCOPE = ("occupation", "template_id", "requested_gender", "debiasing_id", "context")


def scope_of(row: Mapping[str, Any]) -> tuple[object, ...]:
    """Which series a row belongs to."""
    return tuple(row.get(name) for name in _SCOPE)


def request_under(key: str, series: SampleSeries, sample: int, design: PersonasDesign) -> SampleRequest:
    """Make the request of one sample whose key is known."""
    return SampleRequest(key, series.prompt, design.sampling, seed_of(design.study.seed, key), sample)


class OpenSamples:
    """The samples of one model while they are asked; needs no model."""

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
        self.of_key: dict[str, tuple[SampleSeries, SampleRequest]] = {}  # every sample that was looked at
        self.keys_of = cache(partial(sample_keys, fingerprint=fingerprint, design=design))
        self._design = design
        self._requests: dict[SampleSeries, dict[int, SampleRequest]] = {}
        self._tallies: dict[SampleSeries, Tally] = {}

    def _requests_of(self, series: SampleSeries, samples: range) -> list[SampleRequest]:
        """Samples of a series, each made once."""
        requests = self._requests.setdefault(series, {})
        for sample in samples:
            if sample not in requests:
                request = request_under(self.keys_of(series)(sample), series, sample, self._design)
                requests[sample], self.of_key[request.key] = request, (series, request)
        return [requests[sample] for sample in samples]

    def _batch_of(self, series: SampleSeries, number: int) -> list[SampleRequest]:
        return self._requests_of(series, self.filling.of_batch(number))

    def batch(self, number: int, still_open: Sequence[SampleSeries]) -> list[SampleRequest]:
        """A batch's samples; the first one also holds every sample whose prompt names a gender."""
        requests: list[SampleRequest] = []
        for series in still_open:
            requests += self._batch_of(series, number)
        for series in self.requested if number == 0 else ():
            requests += self._requests_of(series, range(self.filling.n))
        return requests

    def is_open(self, series: SampleSeries, batches_done: int) -> bool:
        """Whether a series goes on after so many complete batches, one at least.

        What a batch counted stays: nothing of a complete batch is missing, or it was given up.
        """
        tally = self._tallies.setdefault(series, Tally(self.filling))
        for number in range(len(tally.verdicts), batches_done):
            tally.add(self.stored.get(request.key) for request in self._batch_of(series, number))
        return tally.verdicts[batches_done - 1] == "open"

    def is_missing(self, request: SampleRequest) -> bool:
        """Whether a sample has no text and was not given up."""
        return request.key not in self.stored and request.key not in self.given_up

    def series_with(self, key: str) -> SampleSeries | None:
        """The series of a sample; None for another model's."""
        if key in self.of_key:
            return self.of_key[key][0]
        for series in self.series:
            if any(request.key == key for request in self.stored_of(series)):
                return series
        return None

    def stored_of(self, series: SampleSeries) -> Iterator[SampleRequest]:
        """The samples of a series that have a text, up to the first that has none."""
        for sample in range(self.filling.most if series.requested_gender is None else self.filling.n):
            request = request_under(self.keys_of(series)(sample), series, sample, self._design)
            if request.key not in self.stored:
                return
            yield request

    def outlook(self) -> tuple[list[SampleRequest], int]:
        """The samples that are certain to be requested, and how many more the batches after them may add.

        Series by series: one with a hole in an early batch says nothing of the others.
        """
        certain = self.batch(0, ())
        later = 0
        for series in self.open_series:
            number = 0
            while not any(self.is_missing(request) for request in self._batch_of(series, number)):
                number += 1
                if not self.is_open(series, number):
                    break
            else:
                certain += self._batch_of(series, number)
                later += self._may_follow(series, number)
        return [request for request in certain if self.is_missing(request)], later

    def batches_after(self, due: Sequence[SampleRequest]) -> int:
        """How many batches may follow that in which the earliest of these samples is."""
        size = self.filling.batch
        of_open = [r.number // size for r in due if self.of_key[r.key][0].requested_gender is None]
        return -(-self.filling.most // size) - 1 - min(of_open, default=0)

    def _may_follow(self, series: SampleSeries, number: int) -> int:
        """Samples that a series may request after a batch, without those that an earlier start has stored."""
        most = max(0, self.filling.most - (number + 1) * self.filling.batch)
        n_stored = 1
        while n_stored:
            number += 1
            n_stored = sum(request.key in self.stored for request in self._batch_of(series, number))
            most -= n_stored
        return most
