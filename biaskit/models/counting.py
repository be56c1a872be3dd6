"""Any text generator as a scorer: target words counted in samples (methods/estimators#sampling-estimator)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from biaskit.common.provenance import key_of
from biaskit.errors import ModelError, UsageError
from biaskit.models.base import TextGenerator, closing_stream, naming
from biaskit.models.matching import can_match, match
from biaskit.records import (
    ANSWERED_SEPARATOR,
    PROBE_FORMATS,
    Answered,
    Estimator,
    Failed,
    LogProb,
    Plan,
    Prompt,
    PromptFormat,
    Sample,
    SampleRequest,
    Sampling,
    Scored,
    ScoreRequest,
)

FEWEST_SAMPLES = 2
FEWEST_TOKENS = 4


def tokens_for(longest: int) -> int:
    """Return the largest number of new tokens in a sample, for a longest target word of so many characters.

    One token more than the target word needs, so that its end is seen. An API has no tokenizer to ask; a
    token of a target word is rarely shorter than two letters, and a text that is cut off does not match.
    """
    return max(FEWEST_TOKENS, longest // 2 + 2)


def samples_of(request: ScoreRequest, n: int, sampling: Sampling) -> list[SampleRequest]:
    """Make a cell's n samples; key and seed (31 bits of its SHA-256) follow from cell and number."""
    samples = []
    for number in range(request.first_sample, request.first_sample + n):
        key = key_of({"cell": request.key, "draw": number})
        seed = int.from_bytes(hashlib.sha256(key.encode("ascii")).digest()[:4], "big") >> 1
        samples.append(SampleRequest(key, request.prompt, sampling, seed, number, request.key))
    return samples


def count_samples(request: ScoreRequest, drawn: Sequence[Sample], last: Sample) -> Scored:
    """Count the target words in a cell's samples, given in order; `last` is the sample that arrived last."""
    texts = list(dict.fromkeys(target_word.text for target_word in request.target_words))
    counts = dict.fromkeys(texts, 0)
    for sample in drawn:
        if sample.finish in ("refusal", "filter"):
            continue  # counts as no target word
        text = match(sample.text, texts, ended=sample.finish != "length")
        if text is not None:
            counts[text] += 1
    # Where one request gave several texts, the first carries the prompt's tokens.
    prompt = [sample.answered.prompt_tokens for sample in drawn if sample.answered.prompt_tokens is not None]
    new = [sample.answered.new_tokens for sample in drawn if sample.answered.new_tokens is not None]
    prompt_tokens = sum(prompt) if prompt else None
    new_tokens = sum(new) if len(new) == len(drawn) else None
    answered = Answered(last.answered.by, last.answered.at, prompt_tokens, new_tokens)
    log_probs = tuple(LogProb(e.group, e.text, None, None) for e in request.target_words)
    answers = tuple((sample.text, sample.finish) for sample in drawn)
    raw = tuple(sample.raw for sample in drawn)
    return Scored(
        *(request.key, last.prompt, "sampling", log_probs, answered),
        samples=len(drawn),
        counts=counts,
        answers=answers,
        raw=raw if any(text is not None for text in raw) else None,
    )


class SampledScorer:
    """A `TextGenerator` as a `ContinuationScorer`: a cell is `samples` texts and a count per target word.

    It estimates `word_boundary = word`. A batch is one whole cell; a cell fails if one of its samples fails.
    Refusals and filtered texts are samples without a target word.
    """

    whole_batches = False

    def __init__(
        self, generator: TextGenerator, *, samples: int, longest: int, new_tokens: int | None = None
    ) -> None:
        """Take `longest` characters of the longest target word; `new_tokens` can raise the limit."""
        if samples < FEWEST_SAMPLES:
            raise UsageError(
                f"{samples} samples are too few for an interval: give at least {FEWEST_SAMPLES}."
            )
        identity = generator.identity
        formats = set(identity.formats)
        if "chat" in formats:
            formats.add("chat-continue")
            # A local model continues the beginning of an answer; a server lists that format if it does. An
            # answer that has begun leaves no place for thoughts.
            if identity.where in ("local", "scripted") and identity.details.get("thinking") != "on":
                formats.add("chat-prefill")
        self.identity = replace(identity, formats=tuple(name for name in PROBE_FORMATS if name in formats))
        self._generator = generator
        self._sampling = Sampling(1.0, 1.0, max(tokens_for(longest), new_tokens or 0))
        self._n = samples
        self._batches: dict[str, list[tuple[SampleRequest, ...]]] = {}  # a cell's key → its samples by batch

    @property
    def batch_size(self) -> int:
        """Texts in a batch of the generator."""
        return self._generator.batch_size

    def rendered(self, prompt: Prompt) -> str:
        """Render a prompt as the generator reads it."""
        return self._generator.rendered(prompt)

    def used(self) -> Mapping[str, float | None]:
        """Return what the generator used."""
        return self._generator.used()

    def estimator_for(self, prompt_format: PromptFormat) -> Estimator:
        """Return sampling, in every format that the generator takes."""
        if prompt_format not in self.identity.formats:
            raise ModelError(
                f"{self.identity.label} cannot sample texts in the prompt format {prompt_format}."
            )
        return Estimator("sampling", samples=self._n, max_new_tokens=self._sampling.max_new_tokens)

    def plan_scores(self, requests: Sequence[ScoreRequest]) -> Plan[ScoreRequest]:
        """Plan one batch for each cell; calls, tokens and cost are those of all its samples."""
        requests = tuple(requests)  # read several times
        samples: list[SampleRequest] = []
        for request in requests:
            with naming(request):
                for target_word in request.target_words:
                    if not can_match(target_word.text):  # it would count as never said
                        raise ModelError(
                            "sampling skips leading quotation marks, brackets and emphasis, so it cannot find"
                            f" the target word {target_word.text!r}: remove it, or choose another estimator"
                        )
            samples += samples_of(request, self._n, self._sampling)
        try:
            planned = self._generator.plan_samples(samples)
        except ModelError as error:
            # The measurement knows cells, not samples.
            cell_of = {sample.key: sample.row for sample in samples}
            error.request_key = cell_of.get(error.request_key, "")
            raise
        # Earlier plans stay: a cell's later batches are planned while other cells are still asked.
        self._batches |= {request.key: [] for request in requests}
        for batch in planned.batches:
            parts: dict[str, list[SampleRequest]] = {}
            for sample in batch:
                parts.setdefault(sample.row, []).append(sample)
            for cell, part in parts.items():
                self._batches[cell].append(tuple(part))
        tokens, new_tokens = planned.prompt_tokens, planned.new_tokens_max
        cells = tuple((request,) for request in requests)
        return Plan(cells, planned.calls, tokens, new_tokens, planned.cost_max, planned.notes)

    def estimate_seconds(self, batches: Sequence[Sequence[ScoreRequest]]) -> float | None:
        """Return the generator's estimate for the tokens of these cells."""
        n_samples = self._n * sum(map(len, batches))
        return self._generator.estimate_seconds(n_samples * self._sampling.max_new_tokens)

    def score(self, batches: Iterable[Sequence[ScoreRequest]]) -> Iterator[Sequence[Scored | Failed]]:
        """Answer each cell once all of its samples are in or one has failed, in whatever order they come."""
        cell_of: dict[str, _OpenCell] = {}  # key of a sample without an answer → its cell

        def samples() -> Iterator[Sequence[SampleRequest]]:
            """Yield batches to the generator, perhaps in another thread: one operation writes `cell_of`."""
            for request in chain.from_iterable(batches):
                keys = [sample.key for sample in chain.from_iterable(self._batches[request.key])]
                cell_of.update(dict.fromkeys(keys, _OpenCell(request, keys)))
                yield from self._batches[request.key]

        with closing_stream(self._generator.generate(samples())) as groups:
            for group in groups:
                ready: list[Scored | Failed] = []
                for answer in group:
                    cell = cell_of.pop(answer.key, None)  # None: this sample was answered before
                    if cell is not None and (done := cell.take(answer)) is not None:
                        ready.append(done)
                if ready:
                    yield ready
        lost: dict[str, Failed] = {}
        for cell in cell_of.values():
            if not cell.failed:
                reason = f"only {len(cell.drawn)} of {self._n} samples came back"
                lost[cell.request.key] = Failed(cell.request.key, reason)
        if lost:
            yield [*lost.values()]

    def close(self) -> None:
        """Close the generator."""
        self._generator.close()


@dataclass(slots=True)
class _OpenCell:
    """A cell whose samples are on their way."""

    request: ScoreRequest
    keys: Sequence[str]  # of its samples, in order
    drawn: dict[str, Sample] = field(default_factory=dict)
    failed: bool = False

    def take(self, answer: Sample | Failed) -> Scored | Failed | None:
        """Take the answer to one sample; return the cell's answer if that completes or fails it."""
        if self.failed:
            return None
        if isinstance(answer, Failed):
            self.failed = True
            return Failed(self.request.key, answer.reason)
        self.drawn[answer.key] = answer
        if len(self.drawn) < len(self.keys):
            return None
        if len({sample.answered.by.split(ANSWERED_SEPARATOR)[0] for sample in self.drawn.values()}) > 1:
            return Failed(self.request.key, "two models gave the samples of one prompt")
        return count_samples(self.request, [self.drawn[key] for key in self.keys], answer)
