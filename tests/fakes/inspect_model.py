"""Inspect's own mock model as a backend: it says what a function of the prompt and the seed says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from biaskit.models.api.options import ApiOptions
from biaskit.models.counting import SampledScorer
from biaskit.models.inspect_model import InspectGenerator
from biaskit.models.options import Account

NAME = "mockllm/model"
SAID = ("She", " *He* was", "they,", "It")


def by_seed(messages: Any, config: Any) -> Any:
    """One of four texts, by the seed alone."""
    return answer(SAID[config.seed % len(SAID)])


def answer(text: str, stop_reason: Any = "stop") -> Any:
    """An answer with its count of tokens; without one the mock model would fetch a tokenizer."""
    from inspect_ai.model import ModelOutput, ModelUsage

    output = ModelOutput.from_content(NAME, text, stop_reason=stop_reason)
    output.usage = ModelUsage(input_tokens=5, output_tokens=2, total_tokens=7)
    return output


@contextmanager
def through_inspect(
    estimator: str = "",
    say: Callable[[Any, Any], Any] = by_seed,
    *,
    options: ApiOptions = ApiOptions(),  # noqa: B008 (a frozen record)
    **model_args: Any,
) -> Iterator[Any]:
    """The backend; `say` is told the messages and the configuration of a request."""
    from inspect_ai.model import get_model

    def outputs(messages: Any, tools: Any, choice: Any, config: Any) -> Any:
        return say(messages, config)

    model = get_model(NAME, custom_outputs=outputs, memoize=False, **model_args)
    backend: Any = InspectGenerator(model, NAME, label="toy", options=options, account=Account())
    if estimator:
        backend = SampledScorer(backend, samples=10, longest=14)
    try:
        yield backend
    finally:
        backend.close()
