"""Texts from an API: each draw once, whatever the server does (docs/methods.md#draws)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from biaskit.errors import AskingStopped, ModelError
from biaskit.models.api.answers import AnswerChoice, Replays, answered, choices, without_thoughts
from biaskit.models.api.capabilities import Capabilities
from biaskit.models.api.connection import Connection
from biaskit.models.api.controller import Controller, GaveUp
from biaskit.models.api.endpoint import hide_urls
from biaskit.models.api.trouble import Refused
from biaskit.models.api.wire import Call, Reply
from biaskit.models.conversation import messages_of
from biaskit.records import Draw, DrawRequest, Failed, ModelIdentity, Plan, Prompt, PromptForm, Sampling

CHOICES, SHORT_CHOICES, SHORT = 8, 20, 32
"""Most texts of one request, and of texts of at most SHORT tokens: a lost answer loses all of them."""
LONG = 120
"""Characters from which two equal texts of one answer are one text twice, not two draws."""
THOUGHTS = 2_000
"""Tokens that a reasoning model gets before its answer."""


class ApiGenerator:
    """A model behind an OpenAI-compatible server as a `TextGenerator`."""

    whole_batches = False

    def __init__(
        self,
        connection: Connection,
        found: Capabilities,
        *,
        label: str,
        spec: str,
        batch_size: int | None = None,
        forms: tuple[PromptForm, ...] | None = None,
    ) -> None:
        self.connection = connection
        self.found = found
        self.identity = identify(connection, found, label=label, spec=spec, forms=forms or found.open_forms())
        self._given = batch_size
        self._usual = CHOICES
        self._most = found.choices  # lowered where the server refuses so many
        self._replays = Replays(unique_ids=found.unique_ids)

    @property
    def batch_size(self) -> int:
        """Texts asked for in one request of the last plan: a resumed run must ask for as many."""
        return min(self._most, self._given or self._usual)

    def used(self) -> Mapping[str, float | None]:
        """Calls, tokens and cost of this start."""
        return self.connection.used()

    # --- planning ---

    def plan_draws(self, requests: Sequence[DrawRequest]) -> Plan[DrawRequest]:
        """Requests of one prompt together, as many texts each as the server gives.

        They are cut at multiples of that number, so that what is asked together does not depend on what an
        earlier start has stored.
        """
        if requests:
            short = all(request.sampling.max_new_tokens <= SHORT for request in requests)
            self._usual = SHORT_CHOICES if short else CHOICES
        size = self.batch_size
        together: dict[tuple[Prompt, Sampling, int], list[DrawRequest]] = {}
        for request in sorted(requests, key=lambda request: request.number):
            same = (request.prompt, request.sampling, request.number // size)
            together.setdefault(same, []).append(request)
        batches = tuple(
            tuple(listed[start : start + size])
            for listed in together.values()
            for start in range(0, len(listed), size)
        )
        tokens_of: dict[Prompt, int] = {}
        for prompt, sampling, _ in together:
            self._check(sampling)
            tokens_of[prompt] = self.found.tokens(rendered(prompt, self.found)) + self.found.overhead
        prompt_tokens = sum(tokens_of[batch[0].prompt] for batch in batches)
        new_tokens = sum(self._new_tokens(batch[0].sampling) * len(batch) for batch in batches)
        price = self.connection.price
        return Plan(
            batches=batches,
            calls=len(batches),
            prompt_tokens=prompt_tokens,
            new_tokens_max=new_tokens,
            cost_max=price.cost(prompt_tokens, new_tokens) if price else None,
        )

    def _check(self, sampling: Sampling) -> None:
        for name, value in (("temperature", sampling.temperature), ("top_p", sampling.top_p)):
            if name in self.found.refused and value != 1.0:
                raise ModelError(
                    f"{self.identity.label} takes no {name}: its server answers it with an error. Set {name}"
                    " to 1 (its default), or choose another model."
                )

    def _new_tokens(self, sampling: Sampling) -> int:
        return sampling.max_new_tokens + (THOUGHTS if self.found.reasoning else 0)

    def estimate_seconds(self, n_new_tokens: int) -> float | None:
        """Unknown: how many requests a server bears at once shows when it is asked."""
        return None if n_new_tokens else 0.0

    # --- drawing ---

    def generate(self, batches: Iterable[Sequence[DrawRequest]]) -> Iterator[Sequence[Draw | Failed]]:
        """Answer batches in whatever order their answers come, a group for each request of the server."""
        return self.connection.stream(batches, self._draw)

    async def _draw(self, controller: Controller, batch: Sequence[DrawRequest]) -> list[Draw | Failed]:
        """One batch; choices that the server leaves out are asked for again, as many at a time as came."""
        missing, done, most = list(batch), list[Draw | Failed](), len(batch)
        while missing:
            asked = missing[: min(most, self._most)]
            try:
                answers = await controller.ask(self._call(asked), partial(self._read, batch=asked))
            except (GaveUp, Refused, AskingStopped) as trouble:
                if isinstance(trouble, AskingStopped) and not done:
                    raise  # else what came before the stop is kept
                if isinstance(trouble, Refused) and len(asked) > 1 and _may_be_too_many(trouble):
                    most = len(asked) // 2
                    continue
                return [*done, *(Failed(request.key, str(trouble)) for request in missing)]
            if most < len(batch) and not done:
                self._most = min(self._most, most)  # the others need not find out for themselves
            got = {answer.key for answer in answers}
            done += answers
            missing = [request for request in missing if request.key not in got]
            most = min(most, len(answers))
        return done

    def _call(self, batch: Sequence[DrawRequest]) -> Call:
        prompt, sampling = batch[0].prompt, batch[0].sampling
        new_tokens = self._new_tokens(sampling)
        body = request_body(self.found, self.connection.endpoint.model, prompt, new_tokens)
        settings: dict[str, Any] = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": batch[0].seed,
            **({"n": len(batch)} if len(batch) > 1 else {}),
        }
        body |= {name: value for name, value in settings.items() if name not in self.found.refused}
        body |= self.found.neutral
        return Call(
            path_of(prompt.form),
            body,
            self.found.tokens_most(rendered(prompt, self.found)) + 2 * self.found.overhead,
            new_tokens * len(batch),
            len(batch),
        )

    def _read(self, reply: Reply, batch: Sequence[DrawRequest]) -> list[Draw]:
        n = len(batch)
        used = reply.used
        alone = n == 1 and used is not None
        shown = rendered(batch[0].prompt, self.found)
        seeded = n == 1 and "seed" not in self.found.refused
        listed = choices(reply, n)
        if self.found.reasoning:
            listed = [replace(choice, text=without_thoughts(choice.text)) for choice in listed]
        self._replays.check(reply, batch[0].key, [choice.text for choice in listed])
        draws: list[Draw] = []
        seen: set[str] = set()
        for choice in listed:
            if n > 1 and len(choice.text) >= LONG and choice.text in seen:
                continue  # the same text twice: its draw is asked for again, alone if need be
            seen.add(choice.text)
            by = answered(
                reply,
                prompt_tokens=used[0] if used and not draws else None,
                new_tokens=used[1] if alone and used else None,
            )
            draws.append(self._as_draw(batch[choice.index], shown, choice, by, seeded=seeded))
        return draws

    def _as_draw(
        self, request: DrawRequest, shown: str, choice: AnswerChoice, by: Any, *, seeded: bool
    ) -> Draw:
        return Draw(
            key=request.key, prompt=shown, text=choice.text, finish=choice.finish, answered=by, seeded=seeded
        )

    def close(self) -> None:
        """End the connections."""
        self.connection.close()


def _may_be_too_many(refused: Refused) -> bool:
    """Whether a request for several texts may be answered when it asks for fewer."""
    return refused.parameter == "n" or (refused.parameter is None and refused.status in (400, 422))


# --- what every kind of request shares ------------------------------------------------------------------


def identify(
    connection: Connection, found: Capabilities, *, label: str, spec: str, forms: tuple[PromptForm, ...]
) -> ModelIdentity:
    """An API model's identity: its name and its endpoint's, whatever answers behind them."""
    endpoint = connection.endpoint
    return ModelIdentity(
        label=label,
        spec=hide_urls(spec),
        fingerprint=endpoint.fingerprint,
        tuning="unknown",
        where="api",
        forms=forms,
        takes_system=found.takes_system,
        details={
            "architecture": "api",
            "model": endpoint.model,
            "endpoint": endpoint.name,
            "hosts": ", ".join(host.shown for host in endpoint.hosts),
        },
        found=found.as_json(),
    )


def path_of(form: PromptForm) -> str:
    """Which of a server's two doors a prompt form goes through."""
    return "completions" if form in ("raw", "completion") else "chat/completions"


def rendered(prompt: Prompt, found: Capabilities) -> str:
    """What is sent, as a row holds it: the text, or the messages as JSON."""
    if path_of(prompt.form) == "completions":
        return prompt.text
    return json.dumps(chat_messages(prompt, found), ensure_ascii=False)


def chat_messages(prompt: Prompt, found: Capabilities) -> list[dict[str, str]]:
    """The turns, and the beginning of the answer as a last one."""
    messages = messages_of(prompt, takes_system=found.takes_system)
    return [*messages, {"role": "assistant", "content": prompt.prefill}] if prompt.prefill else messages


def request_body(found: Capabilities, model: str, prompt: Prompt, new_tokens: int) -> dict[str, Any]:
    """Model, prompt and length of a request in the fields that this server takes."""
    if path_of(prompt.form) == "completions":
        return {"model": model, "prompt": prompt.text, "max_tokens": new_tokens}
    body: dict[str, Any] = {"model": model, "messages": chat_messages(prompt, found)}
    if prompt.prefill and found.prefill == "flagged":
        body |= {"add_generation_prompt": False, "continue_final_message": True}
    return body | {found.chat_limit: new_tokens}
