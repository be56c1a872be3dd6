"""How cells are put to a server, an estimator each: several cells in a call where that was seen to work."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from biaskit.models.api.answers import AnswerChoice, Replays, most_probable
from biaskit.models.api.capabilities import Capabilities
from biaskit.models.api.controller import Controller
from biaskit.models.api.echo import Echo, echo_of
from biaskit.models.api.many import TROUBLE, Trouble, ask_many, gather_all
from biaskit.models.api.selected_ids import SelectedIds, check_prompt
from biaskit.models.api.token_ids import TokenIdsOf
from biaskit.models.api.trouble import BadAnswer
from biaskit.models.api.wire import Call
from biaskit.models.token_trie import TokenIds
from biaskit.records import (
    ANSWERED_SEPARATOR,
    Answered,
    Expression,
    Failed,
    LogProb,
    Prompt,
    Scored,
    ScoreRequest,
)

ECHO_PATIENCE = 6.0  # times the measured seconds of one echo: a longer prompt, and another request before it
MERGED = 3  # entries that a list may lack: tokens of equal text are one in an object of JSON
Forms = Sequence[tuple[Expression, str]]
Listing = tuple[tuple[str, float], ...]


class Asker(Protocol):
    """What the model whose cells these are knows."""

    found: Capabilities
    replays: Replays

    def rendered(self, prompt: Prompt) -> str:
        """A prompt as it is sent."""

    def answered(self, by: Answered) -> Answered:
        """Who answered, with what else is known of the server."""

    def call(
        self,
        prompt: Prompt,
        new_tokens: int,
        settings: Mapping[str, Any],
        *,
        draws_anew: bool = False,
    ) -> Call:
        """A request in the fields that this server takes."""


@dataclass(frozen=True, slots=True)
class Cells:
    """A model's cells; `prompts`: most of one call."""

    asker: Asker
    model: str
    tokens: TokenIdsOf
    prompts: int

    # --- echo ---

    async def echo(
        self, controller: Controller, asked: Sequence[tuple[ScoreRequest, Forms]]
    ) -> list[Scored | Failed]:
        """A prompt for each form; all forms of a cell must cut the cell's prompt in the same way."""
        texts = [(request.prompt.text, text) for request, forms in asked for _, text in forms]
        pieces = [texts[start : start + self.prompts] for start in range(0, len(texts), self.prompts)]
        answers = await gather_all(self._ask_echoes(controller, piece) for piece in pieces)
        found = iter([one for piece in answers for one in piece])
        return [self._echoed(request, forms, [next(found) for _ in forms]) for request, forms in asked]

    async def _ask_echoes(
        self, controller: Controller, texts: Sequence[tuple[str, str]]
    ) -> list[tuple[Echo, Answered] | Trouble]:
        def call(some: Sequence[tuple[str, str]]) -> Call:
            whole = [before + text for before, text in some]
            prompt = whole if len(whole) > 1 else whole[0]
            body: dict[str, Any] = {"model": self.model, "prompt": prompt}
            body |= {"max_tokens": 1, "temperature": 1.0, "echo": True, "logprobs": 1}
            most = sum(map(self.asker.found.tokens_most, whole))
            return Call("completions", body, most, len(whole), kind="lists")

        def read(choice: AnswerChoice, one: tuple[str, str], _: bool) -> Echo:
            return echo_of(choice.prompt or choice.data, *one)

        # A server that computes every position slowly gets the time that it was seen to need.
        patience = ECHO_PATIENCE * len(texts) * self.asker.found.echo_latency
        return await ask_many(
            controller,
            texts,
            call,
            read,
            replays=Replays(unique_ids=False),  # the tokens spell the text: another's answer shows
            size=lambda echo, _: len(echo.before) + len(echo.tokens),
            patience=max(patience, self.asker.found.patience(len(texts))),
        )

    def _echoed(
        self, request: ScoreRequest, forms: Forms, found: Sequence[tuple[Echo, Answered] | Trouble]
    ) -> Scored | Failed:
        echoes, who = [], []
        for one in found:
            if not isinstance(one, tuple):
                return Failed(request.key, str(one))
            echoes.append(one[0])
            who.append(one[1])
        if len({echo.before for echo in echoes}) > 1:
            return Failed(request.key, "the prompt's own tokens change with what follows it")
        log_probs = tuple(
            LogProb(expression.group, text, echo.log_prob, echo.log_prob, tokens=echo.tokens)
            for (expression, text), echo in zip(forms, echoes, strict=True)
        )
        return self._scored(request, "echo", log_probs, who)

    # --- selected-ids ---

    async def selected(
        self, controller: Controller, asked: Sequence[tuple[ScoreRequest, Forms]]
    ) -> list[Scored | Failed]:
        """Every inner node of the cells' expressions; cells that ask for the same ids share calls."""
        ids = SelectedIds(
            controller,
            self.model,
            self.tokens,
            replays=self.asker.replays,
            prompts=self.prompts,
            patience=self.asker.found.patience,
        )
        found = await ids.score([(r.prompt.text, [text for _, text in forms]) for r, forms in asked])
        answers: list[Scored | Failed] = []
        for (request, forms), one in zip(asked, found, strict=True):
            if isinstance(one, TROUBLE):
                answers.append(Failed(request.key, str(one)))
                continue
            totals, who = one
            log_probs = tuple(
                LogProb(expression.group, text, value, value, token_ids=tokens)
                for (expression, text), (tokens, value) in zip(forms, totals, strict=True)
            )
            answers.append(self._scored(request, "selected-ids", log_probs, who))
        return answers

    # --- top-k ---

    async def top_k(
        self, controller: Controller, asked: Sequence[tuple[ScoreRequest, Forms]], k: int, *, chat: bool
    ) -> list[Scored | Failed]:
        """The list of the most probable tokens after each prompt.

        Where a call has several they are sent as token ids, since answers name their prompts so.
        """
        ids: list[TokenIds | Trouble | None] = [None] * len(asked)
        if self.prompts > 1:
            ids = list(await self.tokens.of(controller, [request.prompt.text for request, _ in asked]))
        good = [(one, own) for one, own in zip(asked, ids, strict=True) if not isinstance(own, TROUBLE)]
        items = [(request, own) for (request, _), own in good]

        def call(some: Sequence[tuple[ScoreRequest, TokenIds | None]]) -> Call:
            return self._list_call(some, k, chat=chat)

        def read(choice: AnswerChoice, item: tuple[ScoreRequest, TokenIds | None], several: bool) -> Listing:
            if item[1] is not None:
                check_prompt(choice, item[1], several)
            return _whole_list(choice, k, chat=chat)

        answers = await ask_many(
            controller,
            items,
            call,
            read,
            replays=self.asker.replays,
            size=lambda _, item: len(item[1] or ()),
            patience=self.asker.found.patience(len(items)) if self.prompts > 1 else 0.0,
        )
        told = {item[0].key: answer for item, answer in zip(items, answers, strict=True)}
        told |= {one[0].key: own for one, own in zip(asked, ids, strict=True) if isinstance(own, TROUBLE)}
        return [self._listed(request, forms, told[request.key], k) for request, forms in asked]

    def _list_call(self, some: Sequence[tuple[ScoreRequest, TokenIds | None]], k: int, *, chat: bool) -> Call:
        request, ids = some[0]
        settings: dict[str, float] = {"logprobs": True, "top_logprobs": k} if chat else {"logprobs": k}
        # Log-probabilities before and after temperature are the same at 1. The seed: which token is sampled
        # decides whether the list's last one counts, so the same cell gets the same bounds again; with
        # several prompts in a call it must not depend on which they are.
        seed = int(request.key[:7], 16) if ids is None else 1
        settings |= {"temperature": 1.0, "top_p": 1.0, "seed": seed}
        call = replace(self.asker.call(request.prompt, 1, settings, draws_anew=True), kind="lists")
        if ids is None:
            return call
        every = [list(own or ()) for _, own in some]
        prompts = {"prompt": every if len(every) > 1 else every[0], "return_token_ids": True}
        most = sum(len(one) + 8 for one in every)
        return replace(
            call, body={**(call.body or {}), **prompts}, prompt_tokens_most=most, new_tokens_most=len(every)
        )

    def _listed(
        self,
        request: ScoreRequest,
        forms: Forms,
        answer: tuple[Listing, Answered] | Trouble,
        k: int,
    ) -> Scored | Failed:
        if not isinstance(answer, tuple):
            return Failed(request.key, str(answer))
        listing, who = answer
        log_probs = tuple(bound_form(expression, text, listing, k) for expression, text in forms)
        return self._scored(request, "top-k", log_probs, [who], listed={"": listing})

    # --- rows ---

    def _scored(
        self,
        request: ScoreRequest,
        name: str,
        log_probs: tuple[LogProb, ...],
        who: Sequence[Answered],
        listed: Mapping[str, Listing] | None = None,
    ) -> Scored | Failed:
        if len({answer.by.split(ANSWERED_SEPARATOR)[0] for answer in who}) > 1:
            return Failed(request.key, "two models answered the calls of one cell")
        if name != "top-k" and _too_probable(log_probs):
            return Failed(request.key, "expressions that are more probable together than everything")
        tokens = [answer.prompt_tokens for answer in who]
        total = sum(t for t in tokens if t is not None) if None not in tokens else None
        return Scored(
            key=request.key,
            prompt=self.asker.rendered(request.prompt),
            estimator=name,  # type: ignore[arg-type]
            log_probs=log_probs,
            answered=self.asker.answered(Answered(who[-1].by, who[-1].at, total, len(who))),
            listed=listed,
        )


def _whole_list(choice: AnswerChoice, k: int, *, chat: bool) -> Listing:
    """A list of most probable tokens. Raises `BadAnswer` where it is much shorter than asked for."""
    listing = most_probable(choice, chat=chat, k=k)
    mass = math.fsum(math.exp(value) for _, value in listing)
    if len(listing) < k - MERGED and mass < 1 - 1e-6:  # unless it holds all there is
        raise BadAnswer(f"{len(listing)} listed tokens, {k} were asked for")
    return listing


def _too_probable(log_probs: Sequence[LogProb]) -> bool:
    """Expressions that do not contain one another exclude one another."""
    tokens = [e.token_ids or e.tokens or () for e in log_probs]
    outer = [
        e.high or 0.0
        for e, own in zip(log_probs, tokens, strict=True)
        if not any(len(other) < len(own) and own[: len(other)] == other for other in tokens)
    ]
    return math.fsum(map(math.exp, outer)) > 1 + 1e-6


def bound_form(expression: Expression, text: str, listing: Sequence[tuple[str, float]], k: int) -> LogProb:
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
