"""A cell asked through a model of Inspect: draws that are counted, or the most probable tokens.

What a text says is read by the code that reads every other model's: `models/counting.py` for draws,
`models/api/cells.py` for lists of tokens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelOutput,
)
from inspect_ai.util import collect

from biaskit.errors import ModelError
from biaskit.models.api.cells import bound_form
from biaskit.models.api.endpoint import hide_urls
from biaskit.models.conversation import forms_of, messages_of
from biaskit.models.counting import check_expressions, count_draws, draws_of, tokens_for
from biaskit.probe.design import ProbeDesign
from biaskit.probe.planned import PlannedCells
from biaskit.probe.rounds import Rounds
from biaskit.probe.rows import row_of
from biaskit.probe.scoring import Json
from biaskit.provenance import digest
from biaskit.records import (
    Answered,
    Draw,
    DrawRequest,
    Estimator,
    Finish,
    ModelIdentity,
    Prompt,
    PromptForm,
    Sampling,
    Scored,
    ScoreRequest,
)
from biaskit.runs.manifest import model_entry

_ENDS: Mapping[str, Finish] = {"stop": "stop", "tool_calls": "stop", "content_filter": "filter"}
"""What ended a text; every other end may have cut it."""
_SECRET = re.compile(r"(?:^|_)(?:api)?(?:key|token|secret|password|auth|credentials?)(?:_|$)", re.IGNORECASE)
"""Names of arguments whose values are never stored; a `tokenizer_path` is no token."""
_KINDS = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
_OWN_CHOICE: Mapping[str, dict[str, Any]] = {"hf": {"top_k": 0}}
"""Providers that would draw from a part of the distribution (transformers: the 50 likeliest tokens)."""


@dataclass(frozen=True)
class InspectModel:
    """A model of Inspect under the names that a run's manifest and rows have."""

    model: Model
    design: ProbeDesign

    @property
    def name(self) -> str:
        """As `--model` names it."""
        return str(self.model)

    @cached_property
    def form(self) -> PromptForm:
        """`auto`: raw where the provider sends a text as it is, else one user turn."""
        study = self.design.study
        if study.prompt_form != "auto":
            return study.prompt_form
        system = bool(study.system_prompt) or study.instruction_position == "system"
        return "raw" if self._provider.endswith("completions") and not system else "chat-continue"

    @property
    def _provider(self) -> str:
        return self.name.partition("/")[0]

    @cached_property
    def estimator(self) -> Estimator:
        """How its probabilities are obtained."""
        study = self.design.study
        if study.estimator == "top-k":
            return Estimator("top-k", k=study.k)
        longest = max(len(e.text) for listed in self.design.expressions.values() for e in listed)
        return Estimator("sampling", draws=study.draws, max_new_tokens=tokens_for(longest))

    @cached_property
    def planned(self) -> PlannedCells:
        """Every cell with its request."""
        model = self.entry["fingerprint"]
        return PlannedCells(self.design, self.name, self.form, model, self.estimator.in_key())

    @cached_property
    def entry(self) -> Json:
        """The model as a manifest holds it. A server's address is part of what it is, its key is not."""
        plain = {
            name: value
            for name, value in self.model.model_args.items()
            if isinstance(value, str | int | float | bool) and not _SECRET.search(name)
        }
        url = hide_urls(str(self.model.api.base_url or ""))
        known = {"inspect": self.name, "base_url": url, "args": plain}
        details = {"provider": self._provider, "base_url": url, "args": json.dumps(plain, sort_keys=True)}
        identity = ModelIdentity(
            label=self.name,
            spec=f"inspect:{self.name}",
            fingerprint=digest(known),
            tuning="unknown",
            where="api",
            forms=(self.form,),
            takes_system=True,
            details=details,
        )
        # Not one of ours: no command of biaskit asks it again.
        return {**model_entry(identity, self.form), "where": "inspect", "estimator": self.estimator.in_key()}

    async def ask(self, place: int) -> tuple[list[Json], list[ChatMessage], ModelOutput]:
        """Every row of a cell, what was sent, and what came back."""
        request, cell, prompt = (
            self.planned.requests[place],
            self.planned.cells[place],
            self.planned.prompts[place],
        )
        check_expressions(request)
        messages = _messages(prompt)
        rows: list[Json] = []
        outputs: list[ModelOutput] = []
        rounds, matched = Rounds.of(self.estimator.draws, self.design.study.max_draws_per_cell), 0
        while rounds.goes_on(len(rows), matched):
            asked = rounds.request(request, len(rows))
            scored, came = await (self._listed if self.estimator.k else self._drawn)(asked, messages)
            row = row_of(scored, cell, prompt, self.estimator, len(rows))
            # As it will be on disk, where a tuple is a list.
            rows.append(json.loads(json.dumps({**row, "model_key": self.planned.model_key})))
            matched += sum((scored.counts or {}).values())
            outputs += came
        return rows, messages, _together(outputs)

    async def _drawn(
        self, request: ScoreRequest, messages: list[ChatMessage]
    ) -> tuple[Scored, list[ModelOutput]]:
        assert self.estimator.draws is not None
        assert self.estimator.max_new_tokens is not None
        sampling = Sampling(1.0, 1.0, self.estimator.max_new_tokens)
        requests = draws_of(request, self.estimator.draws, sampling)
        outputs = await collect(*(self._draw(one, messages) for one in requests))
        drawn = [
            Draw(one.key, _sent(messages), _text(output), _end(output), self._answered(output))
            for one, output in zip(requests, outputs, strict=True)
        ]
        return count_draws(request, drawn, drawn[-1]), list(outputs)

    async def _draw(self, one: DrawRequest, messages: list[ChatMessage]) -> ModelOutput:
        return await self._generate(messages, one.sampling.max_new_tokens, one.seed)

    async def _generate(
        self, messages: list[ChatMessage], new_tokens: int, seed: int, **more: Any
    ) -> ModelOutput:
        own = _OWN_CHOICE.get(self._provider, {})
        config = GenerateConfig(temperature=1.0, top_p=1.0, max_tokens=new_tokens, seed=seed, **own, **more)
        return await self.model.generate(messages, config=config, cache=False)

    async def _listed(
        self, request: ScoreRequest, messages: list[ChatMessage]
    ) -> tuple[Scored, list[ModelOutput]]:
        k = self.estimator.k or 0
        output = await self._generate(messages, 1, int(request.key[:7], 16), logprobs=True, top_logprobs=k)
        listing = _listing(output, self.name)
        sent = _sent(messages)
        log_probs = tuple(bound_form(e, text, listing, k) for e, text in forms_of(request, sent))
        answered = self._answered(output)
        scored = Scored(request.key, sent, "top-k", log_probs, answered, listed={"": listing})
        return scored, [output]

    def _answered(self, output: ModelOutput) -> Answered:
        used = output.usage
        now = datetime.now(UTC).isoformat(timespec="seconds")
        tokens = (used.input_tokens, used.output_tokens) if used else (None, None)
        return Answered(output.model or self.name, now, *tokens)


def _messages(prompt: Prompt) -> list[ChatMessage]:
    """A prompt as messages, in the words of every other chat model."""
    if prompt.form == "raw":
        turns = [{"role": "user", "content": prompt.text}]
    else:
        turns = messages_of(prompt, takes_system=True)
    return [_KINDS[turn["role"]](content=turn["content"]) for turn in turns]


def _sent(messages: Sequence[ChatMessage]) -> str:
    """The messages as a row holds them, as those to any other server."""
    if len(messages) == 1 and isinstance(messages[0], ChatMessageUser):
        return messages[0].text
    return json.dumps([{"role": one.role, "content": one.text} for one in messages], ensure_ascii=False)


def _text(output: ModelOutput) -> str:
    return output.completion


def _end(output: ModelOutput) -> Finish:
    return _ENDS.get(str(output.stop_reason), "length")


def _listing(output: ModelOutput, name: str) -> tuple[tuple[str, float], ...]:
    """The most probable first tokens. Raises `ModelError` where the provider tells none."""
    choice = output.choices[0] if output.choices else None
    first = choice.logprobs.content[:1] if choice is not None and choice.logprobs is not None else []
    listing = tuple((one.token, one.logprob) for one in (first[0].top_logprobs or ())) if first else ()
    if not listing:
        raise ModelError(f"{name} lists no tokens with their log-probabilities: use -T estimator=sampling.")
    return listing


def _together(outputs: Sequence[ModelOutput]) -> ModelOutput:
    """Every text as a choice of one output, as the viewer shows several answers."""
    choices: list[ChatCompletionChoice] = [choice for output in outputs for choice in output.choices]
    return ModelOutput(model=outputs[-1].model, choices=choices)
