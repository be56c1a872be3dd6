"""Probabilities from an API, by the strongest estimator that it passed (docs/methods.md#estimators)."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from biaskit.models.api.answers import answered, choices, most_probable
from biaskit.models.api.api_model import ApiModel, path_of
from biaskit.models.api.capabilities import Capabilities
from biaskit.models.api.connection import Connection
from biaskit.models.api.controller import Controller, GaveUp
from biaskit.models.api.echo import Echo, read_echo
from biaskit.models.api.generator import ApiGenerator
from biaskit.models.api.selected_ids import SelectedIds
from biaskit.models.api.trouble import BadAnswer, Refused
from biaskit.models.api.wire import Call, Reply
from biaskit.models.base import naming
from biaskit.models.conversation import forms_of
from biaskit.models.counting import SampledScorer
from biaskit.models.options import ScoringOptions
from biaskit.records import (
    ANSWERED_SEPARATOR,
    Answered,
    Estimator,
    Expression,
    Failed,
    LogProb,
    Plan,
    PromptForm,
    Scored,
    ScoreRequest,
)
from biaskit.sequences import cut

T = TypeVar("T")
ECHO_PATIENCE = 6.0  # times the measured seconds of one echo: a longer prompt, and another request before it
MERGED = 3  # entries that a list may lack: tokens of equal text are one in an object of JSON


class ApiScorer(ApiModel):
    """A model behind an OpenAI-compatible server as a `ContinuationScorer`; one batch is one cell."""

    def __init__(
        self,
        connection: Connection,
        found: Capabilities,
        scoring: ScoringOptions,
        batch_size: int | None = None,
    ) -> None:
        super().__init__(connection, found, found.scored_forms(scoring.estimator))
        self._scoring = scoring
        generator = ApiGenerator(connection, found, found.scored_forms("sampling"), batch_size)
        self._sampled = SampledScorer(
            generator, draws=scoring.draws, longest=scoring.longest, new_tokens=scoring.new_tokens
        )

    @property
    def batch_size(self) -> int:
        """Texts asked for in one request; of scored prompts it is one."""
        return self._sampled.batch_size

    def estimator_for(self, form: PromptForm) -> Estimator:
        """The strongest rung that the endpoint passed in this form, or the forced one."""
        return self.found.estimator(form, self._scoring)

    def plan_scores(self, requests: Sequence[ScoreRequest]) -> Plan[ScoreRequest]:
        """One batch a cell; calls and tokens as the estimator needs them."""
        if requests and self._estimator(requests).name == "sampling":
            return self._sampled.plan_scores(requests)
        calls = prompt_tokens = 0
        for request in requests:
            n, tokens = self._cost_of(request)
            calls, prompt_tokens = calls + n, prompt_tokens + n * tokens
        return self._plan(cut(requests, 1), calls, prompt_tokens, calls)

    def _estimator(self, requests: Sequence[ScoreRequest]) -> Estimator:
        return self.estimator_for(requests[0].prompt.form)

    def _cost_of(self, request: ScoreRequest) -> tuple[int, int]:
        """Calls of a cell, and the prompt tokens of one; checks the word boundary on the way."""
        forms = self._forms(request)
        name = self.estimator_for(request.prompt.form).name
        tokens = self._prompt_tokens(request.prompt)
        if name == "echo":
            return len(forms), tokens + 2
        if name == "selected-ids":
            # Every expression of several tokens may open one more node.
            return 1 + sum(len(text) > 5 for _, text in forms), tokens
        return 1, tokens

    def _forms(self, request: ScoreRequest) -> list[tuple[Expression, str]]:
        prompt = request.prompt
        before = prompt.prefill if prompt.form == "chat-prefill" else prompt.text
        with naming(request):
            return forms_of(request, before)

    def estimate_seconds(self, batches: Sequence[Sequence[ScoreRequest]]) -> float | None:
        """From the time of a short request and what four at once took; no server keeps to it."""
        if not batches:
            return 0.0
        if self.found.assumed:
            return None
        requests = (request for batch in batches for request in batch)
        name = self._estimator(batches[0]).name
        if name == "sampling":
            return self.found.seconds(self._sampled.plan_scores(list(requests)).calls)
        return self.found.seconds(sum(self._cost_of(request)[0] for request in requests), echo=name == "echo")

    def score(self, batches: Iterable[Sequence[ScoreRequest]]) -> Iterator[Sequence[Scored | Failed]]:
        """Answer cells as they become ready."""
        rest = iter(batches)
        first = next(rest, None)
        if first is None:
            return iter(())
        every = itertools.chain([first], rest)
        if self._estimator(first).name == "sampling":
            return self._sampled.score(every)
        return self.connection.stream(every, self._cell)

    async def _cell(self, controller: Controller, batch: Sequence[ScoreRequest]) -> list[Scored | Failed]:
        [request] = batch
        name = self.estimator_for(request.prompt.form).name
        ask = {"echo": self._echo, "selected-ids": self._selected, "top-k": self._top_k}[name]
        try:
            return [await ask(controller, request)]
        except (GaveUp, Refused, BadAnswer) as trouble:
            return [Failed(request.key, str(trouble))]

    async def _echo(self, controller: Controller, request: ScoreRequest) -> Scored:
        """One call for each form, sent next to each other; all must cut the prompt in the same way."""
        prompt, forms = request.prompt.text, self._forms(request)
        model = self.connection.endpoint.model

        async def one(text: str) -> tuple[Echo, Answered]:
            body = {"model": model, "prompt": prompt + text, "max_tokens": 1, "temperature": 1.0}
            body |= {"echo": True, "logprobs": 1}
            call = Call("completions", body, self.found.tokens_most(prompt + text), 1)
            # A server that computes every position slowly gets the time that it was seen to need.
            return await controller.ask(
                call,
                lambda reply: (read_echo(reply, prompt, text), answered(reply)),
                seconds=max(call.seconds, ECHO_PATIENCE * self.found.echo_latency),
            )

        found = await _all(one(text) for _, text in forms)
        cuts = {echo.before for echo, _ in found}
        if len(cuts) > 1:
            raise BadAnswer("the prompt's own tokens change with what follows it")
        log_probs = tuple(
            LogProb(expression.group, text, echo.log_prob, echo.log_prob, tokens=echo.tokens)
            for (expression, text), (echo, _) in zip(forms, found, strict=True)
        )
        return self._scored(request, "echo", log_probs, [who for _, who in found])

    async def _selected(self, controller: Controller, request: ScoreRequest) -> Scored:
        forms = self._forms(request)
        ids = SelectedIds(controller, self.connection.endpoint.model, self._replays)
        found, who = await ids.score(request.prompt.text, [text for _, text in forms])
        log_probs = tuple(
            LogProb(expression.group, text, value, value, token_ids=tokens)
            for (expression, text), (tokens, value) in zip(forms, found, strict=True)
        )
        return self._scored(request, "selected-ids", log_probs, who)

    async def _top_k(self, controller: Controller, request: ScoreRequest) -> Scored:
        prompt, forms = request.prompt, self._forms(request)
        chat = path_of(prompt.form) != "completions"
        k = self.estimator_for(prompt.form).k or 0
        shown = self.rendered(prompt)
        settings: dict[str, float] = {"logprobs": True, "top_logprobs": k} if chat else {"logprobs": k}
        # Log-probabilities before and after temperature are the same at 1. The seed: which token is sampled
        # decides whether the list's last one counts, so the same cell gets the same bounds again.
        settings |= {"temperature": 1.0, "top_p": 1.0, "seed": int(request.key[:7], 16)}

        def read(reply: Reply) -> tuple[tuple[tuple[str, float], ...], Answered]:
            listing = most_probable(choices(reply, 1)[0], chat=chat, k=k)
            # A list that is much shorter is not the one asked for, unless it holds all there is.
            mass = math.fsum(math.exp(value) for _, value in listing)
            if len(listing) < k - MERGED and mass < 1 - 1e-6:
                raise BadAnswer(f"{len(listing)} listed tokens, {k} were asked for")
            self._replays.check(reply, shown, listing)
            return listing, answered(reply)

        listing, who = await controller.ask(self._call(prompt, 1, settings, draws_anew=True), read)
        log_probs = tuple(_bounded(expression, text, listing, k) for expression, text in forms)
        return self._scored(request, "top-k", log_probs, [who], listed={"": listing})

    def _scored(
        self,
        request: ScoreRequest,
        name: str,
        log_probs: tuple[LogProb, ...],
        who: Sequence[Answered],
        listed: Mapping[str, tuple[tuple[str, float], ...]] | None = None,
    ) -> Scored:
        if len({answer.by.split(ANSWERED_SEPARATOR)[0] for answer in who}) > 1:
            raise BadAnswer("two models answered the calls of one cell")
        if name != "top-k":
            _check_sum(log_probs)
        tokens = [answer.prompt_tokens for answer in who]
        total = sum(t for t in tokens if t is not None) if None not in tokens else None
        return Scored(
            key=request.key,
            prompt=self.rendered(request.prompt),
            estimator=name,  # type: ignore[arg-type]
            log_probs=log_probs,
            answered=Answered(who[-1].by, who[-1].at, total, len(who)),
            listed=listed,
        )


async def _all(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Every result in order; where one fails, the others are not waited for."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        raise


def _check_sum(log_probs: Sequence[LogProb]) -> None:
    """Expressions that do not contain one another exclude one another."""
    tokens = [e.token_ids or e.tokens or () for e in log_probs]
    outer = [
        e.high or 0.0
        for e, own in zip(log_probs, tokens, strict=True)
        if not any(len(other) < len(own) and own[: len(other)] == other for other in tokens)
    ]
    total = math.fsum(map(math.exp, outer))
    if total > 1 + 1e-6:
        raise BadAnswer("expressions that are more probable together than everything")


def _bounded(expression: Expression, text: str, listing: Sequence[tuple[str, float]], k: int) -> LogProb:
    """What a list says of one form alone; what it says of a group is joint (docs/methods.md#top-k-bounds)."""
    values = [value for token, value in listing if token == text]
    if values:
        return LogProb(expression.group, text, min(values), max(values))
    rest = max(0.0, 1.0 - math.fsum(math.exp(value) for _, value in listing))
    ordered = sorted((value for _, value in listing), reverse=True)
    unlisted = min(rest, math.exp(ordered[min(k, len(ordered)) - 1]))
    begun = math.fsum(math.exp(value) for token, value in listing if text.startswith(token))
    high = min(1.0, unlisted + begun)
    return LogProb(expression.group, text, None, math.log(high) if high > 0 else None)
