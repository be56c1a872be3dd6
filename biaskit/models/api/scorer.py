"""Probabilities from an API, by the strongest estimator that it passed (docs/methods.md#estimators)."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from biaskit.models.api.api_model import ApiModel, path_of
from biaskit.models.api.capabilities import Capabilities
from biaskit.models.api.cells import Cells
from biaskit.models.api.connection import Connection
from biaskit.models.api.controller import Controller
from biaskit.models.api.generator import ApiGenerator
from biaskit.models.api.many import Trouble
from biaskit.models.api.questions import ANOTHER, PROMPT
from biaskit.models.api.selected_ids import Cell, SelectedIds
from biaskit.models.api.token_ids import LocalTokenizer, TokenIdsOf
from biaskit.models.base import naming
from biaskit.models.conversation import forms_of
from biaskit.models.counting import SampledScorer
from biaskit.models.options import ScoringOptions
from biaskit.records import (
    Estimator,
    EstimatorName,
    Expression,
    Failed,
    Plan,
    PromptForm,
    Scored,
    ScoreRequest,
)
from biaskit.sequences import Computed, cut


class ApiScorer(ApiModel):
    """A model behind an OpenAI-compatible server as a `ContinuationScorer`; a batch is what calls share."""

    def __init__(
        self,
        connection: Connection,
        found: Capabilities,
        scoring: ScoringOptions,
        batch_size: int | None = None,
        tokenizer: LocalTokenizer | None = None,
    ) -> None:
        """`tokenizer`: of this machine, which may be the server's."""
        super().__init__(connection, found, found.scored_forms(scoring.estimator))
        self._scoring = scoring
        generator = ApiGenerator(connection, found, found.scored_forms("sampling"), batch_size)
        self._sampled = SampledScorer(
            generator, draws=scoring.draws, longest=scoring.longest, new_tokens=scoring.new_tokens
        )
        self._tokens = TokenIdsOf(connection.endpoint.model, tokenizer)
        self._prompts: dict[tuple[Expression, ...], int] = {}  # of a cell with these expressions

    @property
    def batch_size(self) -> int:
        """Texts asked for in one request; of scored prompts it is one."""
        return self._sampled.batch_size

    def at_once(self) -> int:
        """How many requests to begin with; each of several prompts is work for many."""
        echo = self.found.echo and self._scoring.estimator in ("auto", "echo")
        several = self._scoring.prompts > 1 and any(
            name in self.found.batched for name in self.found.estimators("raw", self._scoring.estimator)[:1]
        )
        if self._scoring.estimator == "sampling":
            return self.found.start(texts=True)
        return self.found.start_several(self._scoring.prompts) if several else self.found.start(echo=echo)

    def estimator_for(self, form: PromptForm) -> Estimator:
        """The strongest rung that the endpoint passed in this form, or the forced one."""
        return self.found.estimator(form, self._scoring)

    def plan_scores(self, requests: Sequence[ScoreRequest]) -> Plan[ScoreRequest]:
        """Cells of the same expressions together; calls and tokens as the estimator needs them."""
        if not requests:
            return self._plan((), 0, 0, 0)
        name, raw = self._estimator(requests).name, requests[0].prompt.form == "raw"
        if name == "sampling":
            return self._sampled.plan_scores(requests)
        if (name == "selected-ids" or (name == "top-k" and name in self.found.batched)) and raw:
            self._hold_tokenizer(requests)
        groups: dict[tuple[Expression, ...], array[int]] = {}
        calls = prompts = tokens = 0
        for place, request in enumerate(requests):
            self._forms(request)  # checks the word boundary
            if request.expressions not in groups:
                self._prompts[request.expressions] = self._prompts_of(request, name)
            groups.setdefault(request.expressions, array("Q")).append(place)
            n = self._prompts[request.expressions]
            prompts += n
            tokens += n * (self._prompt_tokens(request.prompt) + (2 if name == "echo" else 0))
        most = self._most_prompts(name, requests[0].prompt.form)
        sizes = {}
        for expressions, places in groups.items():
            n = self._prompts[expressions]
            size = sizes[expressions] = max(1, most // n)  # so a batch is a call where a call takes a cell
            whole, rest = divmod(len(places), size)
            calls += whole * -(-size * n // most) + -(-rest * n // most)
        calls += self._tokenize_calls(groups, name)
        plan = self._plan(_batches(requests, groups, sizes), calls, tokens, prompts)
        notes = (self._tokens.note,) if self._tokens.note else ()
        return replace(plan, prompts=prompts, notes=notes)

    def _estimator(self, requests: Sequence[ScoreRequest]) -> Estimator:
        return self.estimator_for(requests[0].prompt.form)

    def _most_prompts(self, name: EstimatorName, form: PromptForm) -> int:
        """Of one call; an answer must say which prompt it is of, and of lists only token ids say it."""
        if form != "raw" or name not in self.found.batched:
            return 1
        if name == "top-k" and not self._tokens.is_local:
            return 1
        return self._scoring.prompts

    def tokenizer_note(self) -> str:
        """Whether a tokenizer of this machine is the server's; empty where ids are not asked for."""
        if self.found.selected_ids:
            self.connection.run(lambda controller: self._tokens.hold(controller, [PROMPT, ANOTHER]))
        return self._tokens.note

    def _hold_tokenizer(self, requests: Sequence[ScoreRequest]) -> None:
        def text(place: int) -> str:
            forms = self._forms(requests[place])
            return requests[place].prompt.text + forms[place % len(forms)][1]

        texts = Computed(len(requests), text)
        self.connection.run(lambda controller: self._tokens.hold(controller, texts))

    def _prompts_of(self, request: ScoreRequest, name: EstimatorName) -> int:
        """How many prompts a cell with these expressions takes."""
        forms = self._forms(request)
        if name != "selected-ids":
            return len(forms) if name == "echo" else 1
        texts = [(request.prompt.text, [text for _, text in forms])]

        async def cells(controller: Controller) -> list[Cell | Trouble]:
            return await SelectedIds(controller, self.connection.endpoint.model, self._tokens).cells(texts)

        [cell] = self.connection.run(cells)
        # Where they cannot be told: every expression of several tokens may open one more node.
        return len(cell.nodes()) if isinstance(cell, Cell) else 1 + sum(len(text) > 5 for _, text in forms)

    def _tokenize_calls(self, groups: Mapping[tuple[Expression, ...], Sequence[int]], name: str) -> int:
        """Those that only tell token ids, which a tokenizer of this machine makes needless."""
        if name != "selected-ids" or self._tokens.is_local:
            return 0
        return sum(len(places) * (1 + len(expressions)) for expressions, places in groups.items())

    def _forms(self, request: ScoreRequest) -> Sequence[tuple[Expression, str]]:
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
        n = sum(self._prompts.get(request.expressions, 1) for request in requests)
        if self._most_prompts(name, batches[0][0].prompt.form) > 1:
            return n * self.found.per_prompt
        return self.found.seconds(n, echo=name == "echo")

    def score(self, batches: Iterable[Sequence[ScoreRequest]]) -> Iterator[Sequence[Scored | Failed]]:
        """Answer cells as they become ready."""
        rest = iter(batches)
        first = next(rest, None)
        if first is None:
            return iter(())
        every = itertools.chain([first], rest)
        if self._estimator(first).name == "sampling":
            return self._sampled.score(every)
        return self.connection.stream(every, self._ask)

    async def _ask(self, controller: Controller, batch: Sequence[ScoreRequest]) -> list[Scored | Failed]:
        estimator = self._estimator(batch)
        most = self._most_prompts(estimator.name, batch[0].prompt.form)
        cells = Cells(self, self.connection.endpoint.model, self._tokens, most)
        asked = [(request, self._forms(request)) for request in batch]
        if estimator.name == "top-k":
            chat = path_of(batch[0].prompt.form) != "completions"
            return await cells.top_k(controller, asked, estimator.k or 0, chat=chat)
        ask = cells.echo if estimator.name == "echo" else cells.selected
        return await ask(controller, asked)


def _batches(
    requests: Sequence[ScoreRequest],
    groups: Mapping[tuple[Expression, ...], Sequence[int]],
    sizes: Mapping[tuple[Expression, ...], int],
) -> Sequence[tuple[ScoreRequest, ...]]:
    """The requests of each group in order, so many at a time; one after another where that is one."""
    if all(size == 1 for size in sizes.values()):
        return cut(requests, 1)
    parts = [
        places[start : start + sizes[expressions]]
        for expressions, places in groups.items()
        for start in range(0, len(places), sizes[expressions])
    ]
    return Computed(len(parts), lambda i: tuple(requests[place] for place in parts[i]))
