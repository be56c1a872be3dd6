"""The contract of everything that can answer. Each capability plans for nothing, then answers in a stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar, runtime_checkable

from biaskit.errors import BiaskitError
from biaskit.records import (
    Draw,
    DrawRequest,
    Estimator,
    Failed,
    ModelIdentity,
    Plan,
    Prompt,
    PromptForm,
    Scored,
    ScoreRequest,
)


class Model(Protocol):
    """What a scorer and a generator share."""

    @property
    def identity(self) -> ModelIdentity:
        """What the model is; known before its weights are loaded."""

    @property
    def batch_size(self) -> int:
        """Prompts or texts in a batch, resolved from `auto`; part of the manifest, of no key."""

    @property
    def whole_batches(self) -> bool:
        """Whether a batch with one missing answer is computed whole, since neighbours share a forward."""

    def rendered(self, prompt: Prompt) -> str:
        """A prompt as it is sent today, and as rows hold it. Raises `ModelError` where it is refused."""

    def used(self) -> Mapping[str, float | None]:
        """Calls, tokens and cost so far, as usage.json names them; empty where nothing is paid for."""

    def close(self) -> None:
        """Free what the model holds; it can be used again and then loads again."""


@runtime_checkable
class ContinuationScorer(Model, Protocol):
    """Gives the probability of each expression as the continuation of a prompt."""

    def estimator_for(self, form: PromptForm) -> Estimator:
        """How this model gives probabilities in a prompt form (docs/methods.md#estimators); part of keys.

        Raises `ModelError` where the form, or a forced estimator in it, is beyond the model.
        """

    def plan_scores(self, requests: Sequence[ScoreRequest]) -> Plan[ScoreRequest]:
        """Check word boundary, BOS and prefixes of every request, and cut the batches.

        The same requests give the same batches, whatever was answered before. Raises
        `TokenizationError` naming template, expression and model.
        """

    def estimate_seconds(self, batches: Sequence[Sequence[ScoreRequest]]) -> float | None:
        """How long `batches` of the last plan will take, from a measured warm-up; None: unknown."""

    def score(self, batches: Iterable[Sequence[ScoreRequest]]) -> Iterator[Sequence[Scored | Failed]]:
        """Answer each request exactly once, in groups that became ready together.

        Batches are pulled lazily and come from `plan_scores`; closing the iterator stops the work.
        """


@runtime_checkable
class TextGenerator(Model, Protocol):
    """Samples texts, each of which depends on its own seed and prompt alone."""

    def plan_draws(self, requests: Sequence[DrawRequest]) -> Plan[DrawRequest]:
        """Check that every prompt can be rendered and has room for its answer, and cut the batches.

        The same requests give the same batches, whatever was answered before.
        """

    def estimate_seconds(self, n_new_tokens: int) -> float | None:
        """How long so many tokens will take, from a measured warm-up on the last plan; None: unknown."""

    def generate(self, batches: Iterable[Sequence[DrawRequest]]) -> Iterator[Sequence[Draw | Failed]]:
        """Answer each request exactly once, in groups that became ready together.

        Batches are pulled lazily and come from `plan_draws`; closing the iterator stops the work.
        """


Answers = TypeVar("Answers")


@contextmanager
def closing_stream(groups: Iterator[Answers]) -> Iterator[Iterator[Answers]]:
    """A model's stream of answers; at the end it is closed, which stops the model's work.

    Ctrl-C and errors in the reader come through here too. A plain iterator has nothing to close.
    """
    try:
        yield groups
    finally:
        if (close := getattr(groups, "close", None)) is not None:
            close()


@contextmanager
def naming(request: ScoreRequest | DrawRequest) -> Iterator[None]:
    """Give an error the key of its request, so that the engine can name template and job."""
    try:
        yield
    except BiaskitError as error:
        error.request_key = request.key
        raise
