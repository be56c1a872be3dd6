"""How a local model runs, and what is measured of any model (`api/options.py`: how an API is reached)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, get_args

from biaskit.errors import UsageError, nearest
from biaskit.models.entry import ModelEntry
from biaskit.models.thoughts import Thinking
from biaskit.records import TEMPLATE_DATE, THOUGHT_TOKENS, EstimatorName

Dtype = Literal["auto", "float32", "bfloat16", "float16"]
EstimatorChoice = Literal["auto", EstimatorName]
WordBoundary = Literal["token", "word"]
OnPrefix = Literal["exclusive", "refuse"]


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class LoadedModel:
    """A causal model of transformers in the caller's memory, its tokenizer, and the label of its rows."""

    label: str
    model: Any = field(repr=False)
    tokenizer: Any = field(repr=False)


IN_MEMORY = ("object:", "writer:")  # specs that no command can ask
LENT: ContextVar[Mapping[str, Any]] = ContextVar("lent", default=MappingProxyType({}))
"""Label → model, of the call that goes on: the spec `object:LABEL` finds it there."""


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """How a local model runs; dtype, and date if the template reads the clock, are in its fingerprint."""

    device: str = "auto"  # cpu, cuda, cuda:N, mps or map
    dtype: Dtype = "auto"
    batch_size: int | None = None  # None: auto
    template_date: str = TEMPLATE_DATE  # YYYY-MM-DD: the clock of chat templates
    thinking: Thinking = "auto"
    thought_tokens: int = THOUGHT_TOKENS

    def __post_init__(self) -> None:
        _check("dtype", self.dtype, get_args(Dtype))

    def as_before(self, known: ModelEntry | None) -> LocalOptions:
        """Replace dtype `auto` by that of the run's entry, so that no machine changes the model."""
        before: Any = None if known is None else known.details.get("dtype")
        if self.dtype != "auto" or before not in get_args(Dtype):
            return self
        return replace(self, dtype=before)


@dataclass(frozen=True, slots=True)
class ScoringOptions:
    """The estimator of a probability and its settings (methods/estimators#estimators).

    An API takes a forced estimator; a local model is exact unless the choice is top-k or sampling.
    """

    estimator: EstimatorChoice = "auto"
    k: int = 20  # top-k: listed tokens
    samples: int = 10  # sampling: texts for each cell
    longest: int = 14  # sampling: characters of the study's longest target word
    new_tokens: int | None = None  # sampling: most tokens of a text; None: what the target words need
    word_boundary: WordBoundary = "token"
    on_prefix: OnPrefix = "exclusive"
    next_tokens: int = 0  # exact, in process: most probable next tokens that are kept; 0: none
    share_prefixes: bool = True  # False only to show that sharing changes nothing

    def __post_init__(self) -> None:
        _check("estimator", self.estimator, ("auto", *get_args(EstimatorName)))
        _check("word_boundary", self.word_boundary, get_args(WordBoundary))
        _check("on_prefix", self.on_prefix, get_args(OnPrefix))
        if self.k < 1:
            raise UsageError(f"top-k lists at least one token, not {self.k}.")


@dataclass(frozen=True, slots=True)
class Account:
    """What a run has spent, and how a model announces that it may spend more."""

    spent: float = 0.0  # USD in earlier starts, by all models of the run
    promise: Callable[[float], None] | None = None
    """Called with the USD that this model may have spent in this start, before it spends them."""


def _check(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise UsageError(
            f"{name} = {value!r} is unknown.{nearest(str(value), allowed)} Use one of {', '.join(allowed)}."
        )
