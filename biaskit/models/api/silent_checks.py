"""What goes wrong without an error: mixed-up prompts and requests, and numbers that depend on the company."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from biaskit.models.api import questions
from biaskit.models.api.answers import choices, listed_tokens
from biaskit.models.api.controller import GaveUp
from biaskit.models.api.echo import Echo, echo_of
from biaskit.models.api.probability_checks import CROSS_CHECK, SAME, largest_difference, plain_token
from biaskit.models.api.questions import ANOTHER, CHATS, COMPLETIONS, PROMPT, Listing, Questions
from biaskit.models.api.selected_ids import Node, SelectedIds
from biaskit.models.api.token_ids import TokenIdsOf
from biaskit.models.api.trouble import BadAnswer, Refused
from biaskit.models.api.wire import Reply, inside
from biaskit.records import EstimatorName

COMPANY = (PROMPT, ANOTHER, *(f"{number}: {ANOTHER}" for number in range(1, 5)))
"""Prompts of one call; the lists of the first two are known from calls of their own."""
TOGETHER_TOKENS = 24  # that a request which selects ids makes while lists are asked: it is there long enough
TEXTS = 4  # of one request, which must be different
GRID = 2e-4  # how far a number may be from a grid of which it is


@dataclass(frozen=True, slots=True)
class _Wrong:
    """A list that could not be read: here that is an answer, and not to be asked again."""

    why: str


class SilentChecks(Questions):
    """Each asks the same in two ways that must give the same."""

    # --- who answers ---

    async def _software(self) -> None:
        """The server's name and version, where it has a page for that (vLLM)."""

        def read(reply: Reply) -> str:
            version = reply.data.get("version")
            return self.clean(version) if isinstance(version, str) else ""

        if self.official:
            return
        told = await self.ask("/version", None, read, seconds=questions.QUESTION_S / 3)
        if isinstance(told, str) and told:
            self.learn("version", told, software=f"version {told}")

    # --- several texts of one request ---

    async def _texts_apart(self) -> None:
        """Whether several texts of one request are several draws, and which seeds they have."""
        if self.found.choices < 2:
            return
        path = COMPLETIONS if self.found.completions else CHATS
        limit = 32 + (0 if not self.found.reasoning else 200)

        async def texts(n: int, seed: int) -> list[str]:
            body = self.body(path, ANOTHER, limit, temperature=1.0, top_p=1.0, seed=seed, n=n, **self.neutral)
            got = await self.ask(path, body, lambda reply: [one.text for one in choices(reply, n)])
            return got if isinstance(got, list) else []

        started = time.perf_counter()
        together = await texts(TEXTS, 11)
        taken = time.perf_counter() - started
        if len(set(together)) < len(together) or not together:
            said = "the same text twice: one is asked at a time"
            self.learn("several texts of one request", said, seeds="equal", choices=1)
            return
        started = time.perf_counter()
        first, second = await texts(1, 11), await texts(1, 12)
        alone = (time.perf_counter() - started) / 2
        self.found = replace(self.found, parallel_texts=max(1.0, TEXTS * alone / max(1e-6, taken)))
        if "seed" not in self.refused[path] and [*first, *second] == together[:2]:
            self.learn("several texts of one request", "different; text i has the seed + i", seeds="seed + i")
        else:
            self.learn("several texts of one request", "different", seeds="apart")

    # --- several prompts of one call ---

    async def _several_prompts(self, listing: Listing) -> None:
        """Which estimators may put several prompts into a call: each gets its own answer, in order."""
        if not self.found.completions:
            return
        works: list[EstimatorName] = []
        if listing and await self._lists_of_several(listing):
            works.append("top-k")
        if self.found.echo and await self._echoes_of_several(listing):
            works.append("echo")
        if self.found.selected_ids and await self._ids_of_several():
            works.append("selected-ids")
        if works:
            seconds = f"{self.found.per_prompt:.2g} s each"
            self.learn("several prompts in a call", f"{', '.join(works)}: each its own answer; {seconds}")
        self.found = replace(self.found, batched=tuple(works))

    async def _lists_of_several(self, listing: Listing) -> bool:
        """Lists of several prompts; how far the values depend on the company is learnt on the way."""
        k = self.found.completions_k
        other = await self._list_of(ANOTHER, k)
        settings = {"temperature": 1.0, "logprobs": k, "return_token_ids": True}
        body = {**self.body(COMPLETIONS, "", 1, **settings), "prompt": list(COMPANY)}
        named: list[bool] = []

        def read(reply: Reply) -> list[Listing]:
            found = choices(reply, len(COMPANY))
            if [one.index for one in found] != list(range(len(COMPANY))):
                raise BadAnswer("the answer to one of the prompts is missing")
            ids = [one.data.get("prompt_token_ids") for one in found]
            named.append(all(isinstance(one, list) for one in ids) and ids[0] != ids[1])
            return [listed_tokens(one, chat=False) for one in found]

        started = time.perf_counter()
        lists = await self.ask(COMPLETIONS, body, read, kind="lists")
        if not isinstance(lists, list) or not isinstance(other, tuple):
            return False
        self.found = replace(self.found, per_prompt=(time.perf_counter() - started) / len(COMPANY))
        spread = max(largest_difference(listing, lists[0]), largest_difference(other, lists[1]))
        if not spread <= CROSS_CHECK or largest_difference(listing, lists[1]) <= CROSS_CHECK:
            return False
        self._learn_spread(listing, spread)
        return named[-1]

    def _learn_spread(self, listing: Listing, spread: float) -> None:
        coarse = grid_of([value for _, value in listing])
        said = "the same to the last bit" if spread == 0 else f"within {spread:.2g}"
        self.learn("the same prompt alone and among others", said, spread=spread)
        if coarse:
            self.learn(
                "arithmetic of the output head",
                f"16 bit: log-probabilities are {coarse:g} apart (vLLM:"
                """ --hf-overrides '{"head_dtype": "float32"}')""",
            )

    async def _list_of(self, text: str, k: int, **settings: Any) -> Listing | _Wrong | Refused | GaveUp:
        def read(reply: Reply) -> Listing | _Wrong:
            try:
                return listed_tokens(choices(reply, 1)[0], chat=False)
            except BadAnswer as wrong:
                return _Wrong(str(wrong))

        body = self.body(COMPLETIONS, text, 1, **{"temperature": 1.0, "logprobs": k, **settings})
        return await self.ask(COMPLETIONS, body, read, kind="lists")

    async def _echoes_of_several(self, listing: Listing) -> bool:
        probe, expected = plain_token(listing)
        texts = [(one, probe) for one in COMPANY[:3]]
        body = {**self.body(COMPLETIONS, "", 1, temperature=1.0), "echo": True, "logprobs": 1}
        body["prompt"] = [before + after for before, after in texts]

        def read(reply: Reply) -> list[Echo]:
            found = choices(reply, len(texts))
            if [one.index for one in found] != list(range(len(texts))):
                raise BadAnswer("the answer to one of the prompts is missing")
            return [echo_of(one.data, *text) for one, text in zip(found, texts, strict=True)]

        echoes = await self.ask(COMPLETIONS, body, read, questions.ECHO_S, kind="lists")
        if not isinstance(echoes, list) or expected is None:
            return False
        return abs(echoes[0].log_prob - expected) <= CROSS_CHECK

    async def _ids_of_several(self) -> bool:
        """Whether one call answers several prompts with the values that calls of their own give."""
        tokens = TokenIdsOf(self.model, seconds=questions.QUESTION_S)
        ids = SelectedIds(self.controller, self.model, tokens, seconds=questions.QUESTION_S)
        told = await tokens.of(self.controller, COMPANY[:3])
        some = sorted({one for own in told if isinstance(own, tuple) for one in own})[:8]
        nodes = [Node(i, (), own, tuple(some)) for i, own in enumerate(told) if isinstance(own, tuple)]
        if len(nodes) < 3:
            return False
        alone = [(await ids.ask([node]))[0] for node in nodes]
        before = self.controller.meter.spending.calls
        together = await ids.ask(nodes)
        if self.controller.meter.spending.calls - before > 1:
            return False  # a choice was asked again alone
        return all(
            isinstance(a, tuple)
            and isinstance(b, tuple)
            and all(abs(value - b[0][token]) <= CROSS_CHECK for token, value in a[0].items())
            for a, b in zip(alone, together, strict=True)
        )

    # --- two kinds of requests at once ---

    async def _mixed(self, listing: Listing) -> None:
        """Whether lists stay right while another request selects ids."""
        k = self.found.completions_k
        if not (self.found.selected_ids and listing and k):
            return
        tokens = TokenIdsOf(self.model, seconds=questions.QUESTION_S)
        [ids] = await tokens.of(self.controller, [ANOTHER])
        if not isinstance(ids, tuple):
            return
        selecting = {
            **self.body(COMPLETIONS, "", TOGETHER_TOKENS, temperature=1.0, logprobs=1),
            "prompt": list(ids),
            "min_tokens": TOGETHER_TOKENS,
            "logprob_token_ids": list(ids[:4]),
            "return_tokens_as_token_ids": True,
        }
        wrong = asked = 0
        for _ in range(2):
            selected = asyncio.ensure_future(self.ask(COMPLETIONS, selecting, lambda _: None))
            await asyncio.sleep(0.01)  # it goes first
            lists = await asyncio.gather(*(self._list_of(PROMPT, k) for _ in range(3)))
            await selected
            asked += len(lists)
            wrong += sum(not _agrees(listing, one) for one in lists)
        question = "lists while another request selects ids"
        if wrong:
            self.learn(
                question,
                f"WRONG without an error, {wrong} of {asked}: biaskit never asks both at once; nobody else"
                " may select ids on this server while lists are asked",
                apart=True,
            )
        else:
            self.learn(question, f"right, {asked} of {asked}")

    # --- settings and caches that change a number ---

    async def _penalties(self, listing: Listing) -> None:
        """Whether log-probabilities are those before or after a penalty for what the prompt says."""
        name = next((one for one in ("repetition_penalty", "repeat_penalty") if one in self.neutral), None)
        if name is None or not listing:
            return
        # vLLM ignores what it does not know: of the two names it takes one.
        penalised = await self._list_of(
            PROMPT, self.found.completions_k, **{one: 1.8 for one in self.neutral if "penalty" in one}
        )
        if isinstance(penalised, tuple):
            same = largest_difference(listing, penalised) <= SAME
            said = f"{'before' if same else 'after'} a repetition penalty"
            self.learn("log-probabilities and penalties", said)

    async def _prefix_cache(self) -> None:
        """Whether a prompt that was read before is read again, and whether its numbers are the same then."""
        text = f"{secrets.token_hex(8)}. {' '.join([ANOTHER] * 3)}"
        taken, lists, cached = [], [], []

        def read(reply: Reply) -> Listing:
            told = inside(reply.data, "usage", "prompt_tokens_details", "cached_tokens")
            cached.append(told if isinstance(told, int) else 0)
            return listed_tokens(choices(reply, 1)[0], chat=False)

        for _ in range(2):
            body = self.body(COMPLETIONS, text, 1, temperature=1.0, logprobs=self.found.completions_k)
            started = time.perf_counter()
            got = await self.ask(COMPLETIONS, body, read, kind="lists")
            if not isinstance(got, tuple):
                return
            taken.append(time.perf_counter() - started)
            lists.append(got)
        on = any(cached[1:]) or taken[1] < 0.6 * taken[0]
        said = f"{'on' if on else 'not seen'}: a new prompt {taken[0]:.2f} s, again {taken[1]:.2f} s"
        self.learn("prefix cache", f"{said}; the same values within {largest_difference(*lists):.2g}")


def _agrees(listing: Listing, other: object) -> bool:
    if not isinstance(other, tuple):
        return False
    return len(other) >= len(listing) - 1 and largest_difference(listing, other) <= CROSS_CHECK


def grid_of(values: Sequence[float]) -> float | None:
    """The coarsest step of which all differences of log-probabilities are multiples; None: there is none.

    A head in bfloat16 gives logits with 8 bits: between 16 and 32 they are 0.125 apart.
    """
    first = max(values, default=0.0)
    if len(values) < 5:
        return None
    for power in range(7):
        step = 2.0**-power
        if all(
            abs((first - value) / step - round((first - value) / step)) * step <= GRID for value in values
        ):
            return step
    return None
