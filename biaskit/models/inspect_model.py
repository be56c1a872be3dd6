"""`inspect:PROVIDER/MODEL`: texts from every provider that Inspect knows (howto/api#inspect)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from biaskit.common.provenance import digest
from biaskit.errors import AskingStopped, ModelError, UsageError
from biaskit.models.api.endpoint import clean, hide_urls, reason_of
from biaskit.models.api.meter import Meter
from biaskit.models.api.options import ApiOptions
from biaskit.models.api.stream import LoopThread
from biaskit.models.base import answered_now
from biaskit.models.conversation import messages_of
from biaskit.models.options import Account
from biaskit.models.thoughts import parted
from biaskit.records import Failed, Finish, ModelIdentity, Plan, Prompt, Sample, SampleRequest

if TYPE_CHECKING:
    from inspect_ai.model import Model, ModelOutput

AT_ONCE = 32  # texts in flight at once; Inspect itself keeps to each provider's limits
RETRIES = 8  # Inspect's, of one text
FAILED_IN_A_ROW = 20  # texts without one answer between them: the provider is gone, or refuses the key
FINISHES: Mapping[str, Finish] = {"stop": "stop", "tool_calls": "stop", "content_filter": "filter"}
"""Inspect's reasons for the end of a text; any other reason counts as `length`, since it may be cut."""
CLOSING_S = 5  # that a provider gets to end its connections
SWITCHED_OFF: Mapping[str, dict[str, Any]] = {"hf": {"top_k": 0}}
"""Settings of providers that would draw from part of the distribution (transformers: its 50 likeliest)."""


def open_inspect(name: str, *, label: str, options: ApiOptions, account: Account) -> InspectGenerator:
    """Open the model behind `inspect:NAME`. Raises `ModelError` if Inspect, provider or key is missing."""
    if options.max_cost is not None and options.price is None:
        raise UsageError(f"{label}: unknown price, so --max-cost cannot be enforced. Give --price IN,OUT.")
    try:
        from inspect_ai.model import get_model
    except ImportError:
        raise ModelError(f"{label} needs Inspect: pip install 'biaskit[inspect]'.") from None
    try:
        model = get_model(name, memoize=False)
    except (Exception, SystemExit) as error:  # whatever a provider's own package raises
        said = re.sub(r"\[/?(?:bold|blue)\]", "", reason_of(error))  # marks for its own console
        raise ModelError(f"{label} cannot be opened through Inspect: {said}") from None
    return InspectGenerator(model, name, label=label, options=options, account=account)


class InspectGenerator:
    """A model of Inspect as a `TextGenerator`; a batch is one text."""

    whole_batches = False
    batch_size = 1

    def __init__(
        self, model: Model, name: str, *, label: str, options: ApiOptions, account: Account = Account()
    ) -> None:
        self._model, self._name = model, name
        self._meter = Meter(options.price, options.max_cost, account, purse=options.purse)
        self._thread = LoopThread()
        self._failed_in_a_row = 0
        url = hide_urls(str(model.api.base_url or ""))
        self.identity = ModelIdentity(
            label=label,
            spec=f"inspect:{name}",
            fingerprint=digest({"inspect": name, "endpoint": options.endpoint_name or url}),
            tuning="unknown",
            where="api",
            formats=("chat",),
            takes_system=True,
            details={"architecture": "api", "model": name, "endpoint": options.endpoint_name or url},
        )

    def rendered(self, prompt: Prompt) -> str:
        """Render the messages as JSON, as for any other server."""
        return json.dumps(messages_of(prompt, takes_system=True), ensure_ascii=False)

    def used(self) -> Mapping[str, float | None]:
        """Return calls, tokens and cost of this start."""
        return self._meter.used()

    def close(self) -> None:
        """End the provider's connections, and the loop in which Inspect asks."""
        with contextlib.suppress(Exception):
            self._thread.run(asyncio.wait_for(self._model.api.aclose(), CLOSING_S))
        self._thread.close()

    def plan_samples(self, requests: Sequence[SampleRequest]) -> Plan[SampleRequest]:
        """Plan a request for each text; its tokens are estimated from its length."""
        prompt_tokens = 0
        for prompt, n in Counter(request.prompt for request in requests).items():
            prompt_tokens += n * (len(self.rendered(prompt)) // 4)
        new_tokens = sum(request.sampling.max_new_tokens for request in requests)
        price = self._meter.price
        cost = price.cost(prompt_tokens, new_tokens) if price else None
        batches = tuple((request,) for request in requests)
        return Plan(batches, len(batches), prompt_tokens, new_tokens_max=new_tokens, cost_max=cost)

    def estimate_seconds(self, n_new_tokens: int) -> float | None:
        """Return None: no provider says how fast it is."""
        return None if n_new_tokens else 0.0

    def generate(self, batches: Iterable[Sequence[SampleRequest]]) -> Iterator[Sequence[Sample | Failed]]:
        """Answer each text as it comes."""
        return self._thread.stream(batches, self._sample, AT_ONCE)

    async def _sample(self, batch: Sequence[SampleRequest]) -> list[Sample | Failed]:
        [request] = batch
        shown = self.rendered(request.prompt)
        reserved = await self._meter.reserve(len(shown.encode()) + 64, request.sampling.max_new_tokens)
        self._meter.spending.calls += 1
        used = None
        try:
            output = await self._generate(request)
            if output.usage is not None:
                used = (output.usage.input_tokens, output.usage.output_tokens)
            if output.error or not output.choices:
                raise RuntimeError(output.error or "an answer without a text")
        except asyncio.CancelledError:
            raise
        except Exception as error:  # each provider's package raises its own kinds
            self._failed_in_a_row += 1
            if self._failed_in_a_row >= FAILED_IN_A_ROW:
                raise AskingStopped(f"the provider refuses further requests ({reason_of(error)})") from None
            return [Failed(request.key, reason_of(error))]
        finally:
            self._meter.settle(reserved, used, billed=True)
        self._failed_in_a_row = 0
        finish = FINISHES.get(str(output.stop_reason), "length")
        answered = answered_now(clean(output.model or self._name), *(used or (None, None)))
        # Nobody knows which providers take a seed, so no row claims that its seed was used.
        return [parted(Sample(request.key, shown, output.completion, finish, answered, seeded=False))]

    async def _generate(self, request: SampleRequest) -> ModelOutput:
        from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser, GenerateConfig

        kinds: dict[str, Any] = {"system": ChatMessageSystem, "user": ChatMessageUser}
        kinds["assistant"] = ChatMessageAssistant
        turns = messages_of(request.prompt, takes_system=True)
        config = GenerateConfig(
            temperature=request.sampling.temperature,
            top_p=request.sampling.top_p,
            max_tokens=request.sampling.max_new_tokens,
            seed=request.seed,
            max_retries=RETRIES,
            **SWITCHED_OFF.get(self._name.partition("/")[0], {}),
        )
        messages = [kinds[turn["role"]](content=turn["content"]) for turn in turns]
        return await self._model.generate(messages, config=config, cache=False)
