"""The part that API scorers and generators share: identity, abilities, requests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from biaskit.models.api.abilities import CONTINUED, Abilities, tokens_most
from biaskit.models.api.connection import Connection
from biaskit.models.api.endpoint import hide_urls
from biaskit.models.api.wire import CHATS, COMPLETIONS, Call, Json
from biaskit.models.conversation import messages_of
from biaskit.models.thoughts import for_template
from biaskit.records import ModelIdentity, Plan, Prompt, PromptFormat

R = TypeVar("R")


class ApiModel:
    """A model behind an OpenAI-compatible server; its own and its endpoint's name are its identity."""

    whole_batches = False

    def __init__(
        self, connection: Connection, abilities: Abilities, formats: tuple[PromptFormat, ...]
    ) -> None:
        self.connection = connection
        self.abilities = abilities
        endpoint = connection.endpoint
        details = {"architecture": "api", "model": endpoint.model, "endpoint": endpoint.name}
        self.identity = ModelIdentity(
            label=endpoint.label,
            spec=hide_urls(endpoint.spec),
            fingerprint=endpoint.fingerprint,
            tuning="unknown",
            where="api",
            formats=formats,
            takes_system=abilities.takes_system,
            details=details | {"host": endpoint.host.shown},
            abilities=abilities.as_json(),
        )

    def used(self) -> Mapping[str, float | None]:
        """Return calls, tokens and cost of this start."""
        return self.connection.used()

    def close(self) -> None:
        """End the connections."""
        self.connection.close()

    def _plan(
        self, batches: Sequence[tuple[R, ...]], calls: int, prompt_tokens: int, new_tokens: int
    ) -> Plan[R]:
        price = self.connection.price
        cost = price.cost(prompt_tokens, new_tokens) if price else None
        return Plan(batches, calls, prompt_tokens, new_tokens_max=new_tokens, cost_max=cost)

    def rendered(self, prompt: Prompt) -> str:
        """Render a prompt as it is sent and as rows store it: the text, or the messages as JSON."""
        if path_of(prompt.prompt_format) == COMPLETIONS:
            return prompt.text
        return json.dumps(self._messages(prompt), ensure_ascii=False)

    def _messages(self, prompt: Prompt) -> list[dict[str, str]]:
        """Return the turns, with the beginning of the answer as a last one."""
        messages = messages_of(prompt, takes_system=self.abilities.takes_system)
        return [*messages, {"role": "assistant", "content": prompt.prefill}] if prompt.prefill else messages

    def _prompt_tokens(self, prompt: Prompt) -> int:
        return self.abilities.tokens(self.rendered(prompt)) + self.abilities.overhead

    def call(
        self, prompt: Prompt, new_tokens: int, settings: Json, name: str, n: int = 1, anew: Json | None = None
    ) -> Call:
        """Build a request for `n` answers in the fields that this server takes; `name`: key of its row."""
        abilities, path = self.abilities, path_of(prompt.prompt_format)
        new_tokens = max(new_tokens, abilities.fewest_tokens)
        body: dict[str, Any] = {"model": self.connection.endpoint.model}
        if path == COMPLETIONS:
            body |= {"prompt": prompt.text, "max_tokens": new_tokens}
        else:
            body |= {"messages": self._messages(prompt), **for_template(self.connection.options.thinking)}
            if prompt.prefill and abilities.prefill == "flagged":
                body |= CONTINUED
            body |= {abilities.chat_limit: new_tokens}
        body |= {name: value for name, value in settings.items() if name not in abilities.refused}
        body |= {**abilities.neutral, **abilities.spelling}
        prompt_tokens = tokens_most(self.rendered(prompt)) + 2 * abilities.overhead
        return Call(path, body, prompt_tokens, new_tokens * n, n, anew, name)


def path_of(prompt_format: PromptFormat) -> str:
    """Return the path of a server that a prompt format is sent to."""
    return COMPLETIONS if prompt_format in ("raw", "completion", "sentence") else CHATS
