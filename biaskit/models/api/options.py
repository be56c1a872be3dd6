"""Options of API models: keys, money, patience. Options that change a number belong to the estimator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from biaskit.models.api.controller import Policy
from biaskit.models.api.meter import Purse
from biaskit.models.api.prices import Price
from biaskit.models.thoughts import Thinking
from biaskit.records import THOUGHT_TOKENS

if TYPE_CHECKING:
    from biaskit.models.api.offline import Offline


@dataclass(frozen=True, slots=True)
class ApiOptions:
    """A command's options for its API models; keys are names of variables, never values."""

    keys: Mapping[str, str] = field(default_factory=dict)  # --api-key-env: label → variable
    endpoint_name: str | None = None
    max_cost: float | None = None  # USD, over all starts of a run and all its models
    purse: Purse = field(default_factory=Purse)  # their spending
    price: Price | None = None  # replaces the table of prices
    policy: Policy = field(default_factory=Policy)
    thinking: Thinking = "auto"
    thought_tokens: int = THOUGHT_TOKENS
    note: Callable[[str], None] | None = None  # --verbose
    offline: Offline | None = None  # no server is asked: requests are written, or answers read
    transport: Any = None  # replaces the network in a test
