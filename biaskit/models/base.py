"""The contract that every model keeps: planning costs nothing, then answers come as a stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Protocol, TypeVar, runtime_checkable

from biaskit.errors import BiaskitError
from biaskit.records import (
    Answered,
    Estimator,
    Failed,
    ModelIdentity,
    Plan,
    Prompt,
    PromptFormat,
    Sample,
    SampleRequest,
    Scored,
    ScoreRequest,
)


class Model(Protocol):
    """The part that scorers and generators share."""

    @property
    def identity(self) -> ModelIdentity:
        """Identity of the model; known before its weights are loaded."""

    @property
    def batch_size(self) -> int:
        """Prompts or texts in a batch, resolved from `auto`; stored in the manifest, part of no key."""

    @property
    def whole_batches(self) -> bool:
        """Whether one missing answer makes its whole batch run again, since its rows share a forward."""

    def rendered(self, prompt: Prompt) -> str:
        """Render a prompt as it is sent and rows store it. Raises `ModelError` if the model refuses it."""

    def used(self) -> Mapping[str, float | None]:
        """Return calls, tokens and cost so far, named as in usage.json; empty if nothing is paid for."""

    def close(self) -> None:
        """Free the model's memory or connections; at its next use it loads or connects again."""


@runtime_checkable
class ContinuationScorer(Model, Protocol):
    """Gives the probability of each target word as the continuation of a prompt."""

    def estimator_for(self, prompt_format: PromptFormat) -> Estimator:
        """Return the estimator used in a prompt format (methods/estimators#estimators); it is part of keys.

        Raises `ModelError` if the model cannot take the format, or cannot run a forced estimator in it.
        """

    def plan_scores(self, requests: Sequence[ScoreRequest]) -> Plan[ScoreRequest]:
        """Check word boundary, BOS and prefixes of every request, and cut the batches.

        The same requests give the same batches, whatever was answered before. Raises
        `TokenizationError` naming template, target word and model.
        """

    def estimate_seconds(self, batches: Sequence[Sequence[ScoreRequest]]) -> float | None:
        """Estimate the seconds for `batches` of the last plan from a measured warm-up; None if unknown."""

    def score(self, batches: Iterable[Sequence[ScoreRequest]]) -> Iterator[Sequence[Scored | Failed]]:
        """Answer each request exactly once, in groups that became ready together.

        Batches are pulled lazily and come from `plan_scores`; closing the iterator stops the work.
        """


@runtime_checkable
class TextGenerator(Model, Protocol):
    """Samples texts, each of which depends on its own seed and prompt alone."""

    def plan_samples(self, requests: Sequence[SampleRequest]) -> Plan[SampleRequest]:
        """Check that prompts can be rendered and leave room for an answer; cut batches as `plan_scores`."""

    def estimate_seconds(self, n_new_tokens: int) -> float | None:
        """Estimate the seconds for so many new tokens from a warm-up on the last plan; None if unknown."""

    def generate(self, batches: Iterable[Sequence[SampleRequest]]) -> Iterator[Sequence[Sample | Failed]]:
        """Answer each request exactly once, as `ContinuationScorer.score` does."""


def answered_now(by: str, prompt_tokens: int | None, new_tokens: int | None) -> Answered:
    """Record who answered, at how many tokens, and that it was now."""
    return Answered(by, datetime.now(UTC).isoformat(timespec="seconds"), prompt_tokens, new_tokens)


Answers = TypeVar("Answers")


@contextmanager
def closing_stream(groups: Iterator[Answers]) -> Iterator[Iterator[Answers]]:
    """Yield a model's stream of answers and close it at the end, at Ctrl-C or an error."""
    try:
        yield groups
    finally:
        if (close := getattr(groups, "close", None)) is not None:
            close()


@contextmanager
def naming(request: ScoreRequest | SampleRequest) -> Iterator[None]:
    """Store the request's key on any error raised inside, so that template and job can be named."""
    try:
        yield
    except BiaskitError as error:
        error.request_key = request.key
        raise
