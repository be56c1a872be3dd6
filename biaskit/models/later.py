"""A local model that a run knows: what it is stands in the manifest, and it is opened when it is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from biaskit.errors import ModelError
from biaskit.models.base import ContinuationScorer, Model, TextGenerator
from biaskit.models.options import ScoringOptions
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

M = TypeVar("M", bound=Model)
AS_IT_IS: tuple[PromptForm, ...] = ("raw", "completion")
"""Forms in which a prompt is sent as its text stands; the others go through a chat template."""


def estimator_of_local(identity: ModelIdentity, scoring: ScoringOptions, form: PromptForm) -> Estimator:
    """A local model's own probabilities, in every form it takes, unless they are degraded to a top-k list.

    Raises `ModelError` where it does not take the form.
    """
    if form not in identity.forms:
        raise ModelError(f"{identity.label} has no chat template: it takes no prompt form {form}.")
    return Estimator("top-k", k=scoring.k) if scoring.estimator == "top-k" else Estimator("exact")


@dataclass(slots=True)
class Later(Generic[M]):
    """Stands for a model until something is asked that its files must answer."""

    identity: ModelIdentity
    known_batch_size: int
    rendering: Mapping[str, Any]
    open_now: Callable[[], M]
    opened: M | None = field(default=None, init=False)
    whole_batches: bool = field(default=True, init=False)

    @property
    def real(self) -> M:
        """The model, opened. Raises `ModelError` where it is no longer what the manifest says."""
        if self.opened is None:
            model = self.open_now()
            if model.identity.fingerprint != self.identity.fingerprint:
                model.close()
                raise ModelError(
                    f"{self.identity.label} opens in another way than at this run's last start (another"
                    f" dtype, for want of memory?): state --dtype {self.identity.details['dtype']}, or ask"
                    " in a new folder by --out."
                )
            self.opened = model
        return self.opened

    @property
    def as_stored(self) -> bool:
        """Whether prompts come out as in the rows of its run: nothing that renders them is another one."""
        return self.opened is None

    @property
    def batch_size(self) -> int:
        """As the manifest has it, until a plan resolves it."""
        return self.known_batch_size if self.opened is None else self.opened.batch_size

    def rendered(self, prompt: Prompt) -> str:
        """A plain prompt is its text; any other needs the tokenizer."""
        if self.opened is None and prompt.form in AS_IT_IS:
            return prompt.text
        return self.real.rendered(prompt)

    def used(self) -> Mapping[str, float | None]:
        """Nothing is paid for."""
        return {}

    def close(self) -> None:
        """Free what was opened."""
        if self.opened is not None:
            self.opened.close()


@dataclass(slots=True)
class LaterScorer(Later[ContinuationScorer]):
    """The same as a `ContinuationScorer`."""

    scoring: ScoringOptions

    def estimator_for(self, form: PromptForm) -> Estimator:
        """As the open model says it."""
        return estimator_of_local(self.identity, self.scoring, form)

    def plan_scores(self, requests: Sequence[ScoreRequest]) -> Plan[ScoreRequest]:
        """Open the model, and plan."""
        return self.real.plan_scores(requests)

    def estimate_seconds(self, batches: Sequence[Sequence[ScoreRequest]]) -> float | None:
        """As the open model measures it."""
        return self.real.estimate_seconds(batches)

    def score(self, batches: Iterable[Sequence[ScoreRequest]]) -> Iterator[Sequence[Scored | Failed]]:
        """The open model's answers."""
        return self.real.score(batches)


@dataclass(slots=True)
class LaterGenerator(Later[TextGenerator]):
    """The same as a `TextGenerator`."""

    def plan_draws(self, requests: Sequence[DrawRequest]) -> Plan[DrawRequest]:
        """Open the model, and plan."""
        return self.real.plan_draws(requests)

    def estimate_seconds(self, n_new_tokens: int) -> float | None:
        """As the open model measures it."""
        return self.real.estimate_seconds(n_new_tokens)

    def generate(self, batches: Iterable[Sequence[DrawRequest]]) -> Iterator[Sequence[Draw | Failed]]:
        """The open model's texts."""
        return self.real.generate(batches)
