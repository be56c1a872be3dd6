"""Probabilities from an API, by the strongest estimator that it passed (methods/estimators#estimators)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from biaskit.common.sequences import cut
from biaskit.models.api.abilities import Abilities
from biaskit.models.api.answers import Listing, answered, choices, listed_tokens, mass_of, may_hide
from biaskit.models.api.api_model import ApiModel, path_of
from biaskit.models.api.connection import Connection
from biaskit.models.api.echo import Echo, echo_call, read_echo
from biaskit.models.api.generator import ApiGenerator
from biaskit.models.api.selected_ids import SelectedIds, ids_at_nodes
from biaskit.models.api.stream import gather_all
from biaskit.models.api.trouble import BadAnswer, Blocked, GaveUp, Refused
from biaskit.models.api.wire import Reply, list_fields
from biaskit.models.base import naming
from biaskit.models.conversation import forms_of
from biaskit.models.counting import SampledScorer
from biaskit.models.options import ScoringOptions
from biaskit.models.token_trie import shared_length
from biaskit.records import (
    ANSWERED_SEPARATOR,
    Answered,
    Estimator,
    EstimatorName,
    Failed,
    LogProb,
    Plan,
    PromptFormat,
    Scored,
    ScoreRequest,
    TargetWord,
)

MERGED = 3  # entries that a list may lack: tokens of equal text are one entry of a JSON object


class ApiScorer(ApiModel):
    """A model behind an OpenAI-compatible server as a `ContinuationScorer`; a batch is one cell."""

    def __init__(
        self,
        connection: Connection,
        abilities: Abilities,
        scoring: ScoringOptions,
        batch_size: int | None = None,
    ) -> None:
        super().__init__(connection, abilities, abilities.scored_formats(scoring.estimator))
        self._scoring = scoring
        formats = abilities.scored_formats("sampling")
        new_tokens = max(scoring.new_tokens or 0, abilities.fewest_tokens)
        generator = ApiGenerator(connection, abilities, formats, batch_size)
        self._sampled = SampledScorer(
            generator, samples=scoring.samples, longest=scoring.longest, new_tokens=new_tokens
        )
        self._n_prompts: dict[tuple[TargetWord, ...], int] = {}  # of a cell with these target words

    @property
    def batch_size(self) -> int:
        """Texts asked for in one request; scored prompts are asked one by one."""
        return self._sampled.batch_size

    def estimator_for(self, prompt_format: PromptFormat) -> Estimator:
        """Return the strongest estimator that the endpoint passed in this format, or the forced one."""
        return self.abilities.estimator(prompt_format, self._scoring)

    def plan_scores(self, requests: Sequence[ScoreRequest]) -> Plan[ScoreRequest]:
        """Plan a batch for each cell; calls and tokens follow from the estimator."""
        if not requests:
            return self._plan((), 0, 0, 0)
        name = self.estimator_for(requests[0].prompt.prompt_format).name
        if name == "sampling":
            return self._sampled.plan_scores(requests)
        calls = prompts = tokens = 0
        for request in requests:
            self._forms(request)  # checks the word boundary
            if request.target_words not in self._n_prompts:
                self._n_prompts[request.target_words] = self._count_prompts(request, name)
            n = self._n_prompts[request.target_words]
            prompts += n
            longest = max(len(e.text.encode()) for e in request.target_words)  # a token is a byte or more
            added = longest if request.prompt.prompt_format == "sentence" else 2
            tokens += n * (self._prompt_tokens(request.prompt) + (added if name == "echo" else 0))
            # selected-ids also asks for the token ids of the prompt, and of it with each target word.
            calls += n + (1 + len(request.target_words) if name == "selected-ids" else 0)
        return self._plan(cut(requests, 1), calls, tokens, prompts * self.abilities.fewest_tokens)

    def _count_prompts(self, request: ScoreRequest, name: EstimatorName) -> int:
        """Return how many prompts are scored for a cell with these target words."""
        texts = [text for _, text in self._forms(request)]
        if name != "selected-ids":
            return len(texts) if name == "echo" else 1
        try:
            whole = request.prompt.prompt_format == "sentence"
            cell = self._ids.cell(request.prompt.text, texts, whole=whole)
            return len(ids_at_nodes(self.connection.run(cell)[1]))
        except (BadAnswer, GaveUp, Refused):  # every target word of several tokens may open one more node
            return 1 + sum(len(text) > 5 for text in texts)

    @property
    def _ids(self) -> SelectedIds:
        return SelectedIds(self.connection.controller, self.connection.endpoint.model)

    def _forms(self, request: ScoreRequest) -> Sequence[tuple[TargetWord, str]]:
        prompt = request.prompt
        before = prompt.prefill if prompt.prompt_format == "chat-prefill" else prompt.text
        with naming(request):
            return forms_of(request, before)

    def estimate_seconds(self, batches: Sequence[Sequence[ScoreRequest]]) -> float | None:
        """Estimate the time from that of a short request and of four at once; servers often take longer."""
        if not batches:
            return 0.0
        if self.abilities.assumed:
            return None
        requests = [request for batch in batches for request in batch]
        name = self.estimator_for(requests[0].prompt.prompt_format).name
        if name == "sampling":
            return self.abilities.seconds(self._sampled.plan_scores(requests).calls)
        n = sum(self._n_prompts.get(request.target_words, 1) for request in requests)
        return self.abilities.seconds(n, echo=name == "echo")

    def score(self, batches: Iterable[Sequence[ScoreRequest]]) -> Iterator[Sequence[Scored | Failed]]:
        """Answer cells as they become ready."""
        batches = iter(batches)
        first = next(batches, None)
        if first is None:
            return iter(())
        batches = itertools.chain([first], batches)
        estimator = self.estimator_for(first[0].prompt.prompt_format)
        if estimator.name == "sampling":
            return self._sampled.score(batches)
        return self.connection.stream(batches, partial(self._answer, estimator), self.connection.ahead)

    async def _answer(self, estimator: Estimator, batch: Sequence[ScoreRequest]) -> list[Scored | Failed]:
        """Answer one cell by its estimator."""
        [request] = batch
        try:
            if estimator.name == "top-k":
                return [await self._listed(request, estimator.k or 0)]
            if estimator.name == "echo":
                return [await self._echoed(request)]
            return [await self._selected(request)]
        except (BadAnswer, GaveUp, Refused) as trouble:
            return [Failed(request.key, str(trouble), blocked=isinstance(trouble, Blocked))]

    async def _listed(self, request: ScoreRequest, k: int) -> Scored:
        """Answer a cell from the list of the most probable tokens after its prompt."""
        settings = list_fields(path_of(request.prompt.prompt_format), k)
        # At temperature 1 it does not matter on which side of it a server lists. The sampled token decides
        # whether the list's last one counts: with the same seed a cell gets the same bounds again.
        settings |= {"temperature": 1.0, "top_p": 1.0, "seed": int(request.key[:7], 16)}
        anew = {"temperature": 2.0} if self.abilities.scale == "before" else {}
        call = self.call(request.prompt, 1, settings, name=request.key, anew=anew)

        def read(reply: Reply) -> tuple[Listing, bool, Answered]:
            [choice] = choices(reply, 1)
            listing = listed_tokens(choice, k=k)
            incomplete = mass_of(listing) < 1 - 1e-6
            if len(listing) < k - MERGED and incomplete:
                raise BadAnswer(f"{len(listing)} listed tokens, {k} were requested")
            return listing, incomplete and may_hide(choice, k), answered(reply)

        listing, hides, origin = await self.connection.controller.ask(call, read)
        log_probs = tuple(bound_form(e, text, listing, k, hides) for e, text in self._forms(request))
        scored = self._scored(request, "top-k", log_probs, [origin])
        return replace(scored, listed={"": listing}, may_hide=hides)

    async def _echoed(self, request: ScoreRequest) -> Scored:
        """Answer a cell by a call for each form; all must split the cell's prompt into the same tokens."""
        forms, prompt = self._forms(request), request.prompt.text
        if whole := request.prompt.prompt_format == "sentence":
            forms, prompt = [(target_word, prompt + text) for target_word, text in forms], ""

        async def ask(number: int, text: str) -> tuple[Echo, Answered]:
            name = request.key if not number else f"{request.key}-{number + 1}"
            call = echo_call(self.connection.endpoint.model, prompt + text, self.abilities, name)
            # A server that computes every position slowly gets the time that it was measured to need.
            seconds = max(call.seconds, 6 * self.abilities.echo_latency)
            return await self.connection.controller.ask(
                call, lambda reply: (read_echo(reply, prompt, text), answered(reply)), seconds=seconds
            )

        echoes = await gather_all(ask(number, text) for number, (_, text) in enumerate(forms))
        if not whole and len({echo.before for echo, _ in echoes}) > 1:
            raise BadAnswer("the prompt's own tokens change with what follows it")
        shared = shared_length([echo.tokens for echo, _ in echoes]) if whole else 0
        log_probs = []
        for (target_word, text), (echo, _) in zip(self._forms(request), echoes, strict=True):
            if math.isnan(value := math.fsum(echo.values[shared:])):
                raise BadAnswer(
                    "the server gives a first token no probability: let the sentences begin alike"
                )
            log_probs.append(LogProb(target_word.group, text, value, value, tokens=echo.tokens[shared:]))
        return self._scored(request, "echo", tuple(log_probs), [origin for _, origin in echoes])

    async def _selected(self, request: ScoreRequest) -> Scored:
        """Answer a cell by a call for each inner node of its target words' token ids."""
        forms = self._forms(request)
        whole = request.prompt.prompt_format == "sentence"
        totals, origins = await self._ids.score(request.prompt.text, [t for _, t in forms], whole=whole)
        log_probs = []
        for (target_word, text), (tokens, value) in zip(forms, totals, strict=True):
            log_probs.append(LogProb(target_word.group, text, value, value, token_ids=tokens))
        return self._scored(request, "selected-ids", tuple(log_probs), origins)

    def _scored(
        self,
        request: ScoreRequest,
        name: EstimatorName,
        log_probs: tuple[LogProb, ...],
        origins: Sequence[Answered],
    ) -> Scored:
        """Make the answer to a cell. Raises `BadAnswer` if its calls contradict each other."""
        if len({origin.by.split(ANSWERED_SEPARATOR)[0] for origin in origins}) > 1:
            raise BadAnswer("two models answered the calls of one prompt")
        if name != "top-k" and _exclusive_mass(log_probs) > 1 + 1e-6:
            raise BadAnswer("target words with a total probability above 1")
        counts = [origin.prompt_tokens for origin in origins]
        total = None if None in counts else sum(filter(None, counts))
        return Scored(
            key=request.key,
            prompt=self.rendered(request.prompt),
            estimator=name,
            log_probs=log_probs,
            answered=Answered(origins[-1].by, origins[-1].at, total, len(origins)),
        )


def _exclusive_mass(log_probs: Sequence[LogProb]) -> float:
    """Sum the probabilities of target words none of which begins with another: they exclude each other."""
    spelt = [entry.token_ids or entry.tokens or () for entry in log_probs]
    masses = []
    for entry, tokens in zip(log_probs, spelt, strict=True):
        begins = any(len(short) < len(tokens) and tokens[: len(short)] == short for short in spelt)
        if not begins:
            masses.append(math.exp(entry.high or 0.0))
    return math.fsum(masses)


def bound_form(target_word: TargetWord, text: str, listing: Listing, k: int, hides: bool = False) -> LogProb:
    """Bound one form's log-probability by a list; groups have joint bounds (methods/estimators#top-k-bounds).

    `hides`: a token may stand for another of the same text, which has any part of what is not listed.
    """
    values = [value for token, value in listing if token == text]
    if values and not hides:
        return LogProb(target_word.group, text, min(values), max(values))
    mass_unlisted = max(0.0, 1.0 - mass_of(listing))
    ordered = sorted((value for _, value in listing), reverse=True)
    most = math.inf if hides else math.exp(ordered[min(k, len(ordered)) - 1])
    unlisted = min(mass_unlisted, most)
    # An empty text is an end or part of a character: neither begins a word in ASCII.
    begins = [e for e in listing if text.startswith(e[0]) and (e[0] or not text[0].isascii())]
    high = min(1.0, unlisted + mass_of(begins))
    return LogProb(target_word.group, text, None, math.log(high) if high > 0 else None)
