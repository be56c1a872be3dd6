"""Any text generator as a scorer: samples per cell, counts per target word.

See methods/estimators#sampling-estimator, sampling.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from needs import require_torch

from biaskit.errors import ModelError
from biaskit.models.counting import SampledScorer, tokens_for
from biaskit.records import (
    Answered,
    Estimator,
    Failed,
    Finish,
    ModelIdentity,
    Plan,
    Prompt,
    PromptFormat,
    Sample,
    SampleRequest,
    Scored,
    ScoreRequest,
    TargetWord,
)

ASKED = tuple(TargetWord(g, t) for g, t in (("male", "He"), ("female", "She"), ("female", "she")))
SAID = ("She is.", " He", "**she**", "Shed", "The nurse")
N = 10


def cells(n: int, prompt_format: PromptFormat = "raw") -> list[ScoreRequest]:
    return [ScoreRequest(f"cell {i}", Prompt(f"Q: {i}\nA:", prompt_format), ASKED) for i in range(n)]


class Answers:
    """A generator in a test's hands: what it answers, how batches mix cells, in which order, from where."""

    whole_batches = False

    def __init__(
        self,
        answer: Callable[[SampleRequest, int], Sample | Failed | None] | None = None,
        *,
        batch_size: int = 3,
        mixed: bool = False,
        held: int = 1,
        seed: int = 0,
        formats: tuple[PromptFormat, ...] = ("chat", "raw", "completion"),
        where: Any = "local",
    ) -> None:
        self.batch_size, self._mixed, self._held = batch_size, mixed, held
        self._random = random.Random(seed)
        self._answer = answer or (lambda request, _: said(request))
        self.identity = ModelIdentity("m", "m", "f" * 64, "base", where, formats, False, {})
        self.asked: Counter[str] = Counter()
        self.closed = self.pulled = 0
        self.requests: list[SampleRequest] = []

    def used(self) -> dict[str, float | None]:
        return {"calls": 7.0}

    def plan_samples(self, requests: Sequence[SampleRequest]) -> Plan[SampleRequest]:
        self.requests = list(requests)
        order = self._random.sample(self.requests, len(self.requests)) if self._mixed else self.requests
        size = self.batch_size
        batches = tuple(tuple(order[i : i + size]) for i in range(0, len(order), size))
        return Plan(batches, len(batches), 11, 12, 0.5, ("a note",))

    def estimate_seconds(self, n_new_tokens: int) -> float | None:
        return float(n_new_tokens)

    def generate(self, batches: Iterable[Sequence[SampleRequest]]) -> Iterator[Sequence[Sample | Failed]]:
        """Hold `held` batches in flight and answer them shuffled."""
        incoming, flying = iter(batches), list[Sequence[SampleRequest]]()
        try:
            while True:
                taken = list(itertools.islice(incoming, self._held - len(flying)))
                self.pulled += len(taken)
                flying += taken
                if not flying:
                    return
                batch = flying.pop(self._random.randrange(len(flying)))
                group = []
                for request in self._random.sample(batch, len(batch)):
                    self.asked[request.key] += 1
                    group.append(self._answer(request, self.asked[request.key]))
                yield [answer for answer in group if answer is not None]
        finally:
            self.closed += 1

    def close(self) -> None:
        self.closed = -1


def said(
    request: SampleRequest, text: str | None = None, finish: Finish = "stop", tokens: int | None = 4
) -> Sample:
    """Draw i says text i, modulo their number."""
    text = SAID[request.number % len(SAID)] if text is None else text
    answered = Answered("m 1", f"2025-01-01T00:00:{request.number:02}+00:00", tokens, 2)
    return Sample(request.key, request.prompt.text, text, finish, answered)


def score(generator: Any, requests: Sequence[ScoreRequest], n: int = N) -> dict[str, Scored | Failed]:
    """Key → answer, after checking that each cell is answered once."""
    scorer = SampledScorer(generator, samples=n, longest=4)
    found = [answer for group in scorer.score(scorer.plan_scores(requests).batches) for answer in group]
    assert sorted(r.key for r in requests) == sorted(a.key for a in found)
    return {a.key: a for a in found}


# --- what is asked --------------------------------------------------------------------------------------


def test_a_cell_is_so_many_samples_at_temperature_1_with_keys_and_seeds_of_their_own() -> None:
    generator = Answers()
    SampledScorer(generator, samples=N, longest=10).plan_scores(cells(3))
    assert 3 * N == len({r.key for r in generator.requests}) == len({r.seed for r in generator.requests})
    for i, request in enumerate(generator.requests):
        assert (1.0, 1.0, 7) == (
            request.sampling.temperature,
            request.sampling.top_p,
            request.sampling.max_new_tokens,
        )
        assert (i % N, f"Q: {i // N}\nA:") == (request.number, request.prompt.text)
        assert int(hashlib.sha256(request.key.encode()).hexdigest()[:8], 16) >> 1 == request.seed
    before = generator.requests
    SampledScorer(generator, samples=N + 1, longest=10).plan_scores(cells(3)[1:])
    assert [r.key for r in before[N : 2 * N]] == [r.key for r in generator.requests[:N]]


@pytest.mark.parametrize(("longest", "tokens"), [(1, 4), (4, 4), (10, 7), (14, 9)])
def test_samples_are_one_token_longer_than_the_longest_target_word_may_need(
    longest: int, tokens: int
) -> None:
    assert tokens == tokens_for(longest)
    scorer = SampledScorer(Answers(), samples=5, longest=longest)
    assert Estimator("sampling", samples=5, max_new_tokens=tokens) == scorer.estimator_for("raw")


def test_a_batch_is_a_cell_and_the_plan_is_the_generators() -> None:
    scorer = SampledScorer(Answers(mixed=True), samples=N, longest=4)
    plan = scorer.plan_scores(cells(4))
    assert [(request,) for request in cells(4)] == list(plan.batches)
    assert (14, 11, 12, 0.5, ("a note",)) == (
        plan.calls,
        plan.prompt_tokens,
        plan.new_tokens_max,
        plan.cost_max,
        plan.notes,
    )
    assert 2 * N * 4.0 == scorer.estimate_seconds(plan.batches[:2])
    assert plan == scorer.plan_scores(cells(4))


# --- what comes back ------------------------------------------------------------------------------------


def test_counts_are_the_samples_that_say_each_target_word() -> None:
    found = score(Answers(), cells(1))["cell 0"]
    assert isinstance(found, Scored)
    assert {"He": 2, "She": 2, "she": 2} == found.counts
    assert (N, "sampling", "Q: 0\nA:") == (found.samples, found.estimator, found.prompt)
    assert [("male", "He", None, None), ("female", "She", None, None), ("female", "she", None, None)] == [
        (e.group, e.text, e.low, e.high) for e in found.log_probs
    ]
    assert (N * 4, N * 2) == (found.answered.prompt_tokens, found.answered.new_tokens)


@pytest.mark.parametrize("seed", range(2))
def test_samples_may_come_back_in_any_order_and_mixed(seed: int) -> None:
    found = score(Answers(mixed=True, held=7, seed=seed, batch_size=4), cells(9))
    for answer in found.values():
        assert isinstance(answer, Scored)
        assert {"He": 2, "She": 2, "she": 2} == answer.counts


def test_refusals_and_filtered_texts_are_samples_that_say_nothing() -> None:
    finishes: tuple[Finish, ...] = ("stop", "refusal", "filter", "length", "stop")
    generator = Answers(lambda request, _: said(request, "He", finishes[request.number]))
    found = score(generator, cells(1), 5)["cell 0"]
    assert isinstance(found, Scored)
    assert (5, {"He": 2, "She": 0, "she": 0}) == (found.samples, found.counts)  # "length": Hear, Help, …


# --- what goes wrong ------------------------------------------------------------------------------------


def test_a_cell_fails_with_the_reason_of_its_sample_and_the_others_do_not() -> None:
    def answer(request: SampleRequest, _: int) -> Sample | Failed:
        bad = request.prompt.text.startswith(("Q: 1", "Q: 3")) and request.number >= 2
        return Failed(request.key, "no such luck") if bad else said(request)

    generator = Answers(answer, held=3)
    found = score(generator, cells(5))
    assert {"cell 1", "cell 3"} == {k for k, a in found.items() if isinstance(a, Failed)}
    assert Failed("cell 1", "no such luck") == found["cell 1"]
    assert 1 == max(generator.asked.values())


def test_a_sample_answered_twice_counts_once_and_one_without_answer_fails_its_cell() -> None:
    class Twice(Answers):
        def generate(self, batches: Iterable[Sequence[SampleRequest]]) -> Iterator[Sequence[Sample | Failed]]:
            for batch in batches:
                group = [said(r) for r in batch if r.number or r.prompt.text != "Q: 1\nA:"]
                yield [*group, *group]

    found = score(Twice(), cells(2))
    assert isinstance(found["cell 0"], Scored)
    assert {"He": 2, "She": 2, "she": 2} == found["cell 0"].counts
    assert Failed("cell 1", f"only {N - 1} of {N} samples came back") == found["cell 1"]


# --- what it is -----------------------------------------------------------------------------------------


def test_a_target_word_that_can_never_match_is_refused_and_not_counted_as_0() -> None:
    asked = ScoreRequest("c", Prompt("Q:"), (*ASKED, TargetWord("diverse", "'em")))
    with pytest.raises(ModelError, match="'em") as caught:
        SampledScorer(Answers(), samples=2, longest=4).plan_scores([*cells(2), asked])
    assert "c" == caught.value.request_key


# --- on a model in process ------------------------------------------------------------------------------


@pytest.mark.parametrize("prompt_format", ["raw", "chat-prefill", "chat-continue"])
def test_a_local_model_is_sampled_in_every_format(tiny: Any, prompt_format: PromptFormat) -> None:
    require_torch()
    from fakes.tiny_models import CHAT_TEMPLATE

    from biaskit.models.huggingface.folder import check_folder
    from biaskit.models.huggingface.generator import TransformersGenerator
    from biaskit.models.options import LocalOptions

    folder: Path = tiny("llama", "llama2", chat_template=CHAT_TEMPLATE).folder
    local = LocalOptions(device="cpu", dtype="float32", batch_size=16)
    generator = TransformersGenerator(check_folder(folder), label="tiny", spec="hf:t", local=local)
    prompt = Prompt("Q: I met a nurse.\nA:" if prompt_format == "raw" else "I met a nurse.", prompt_format)
    # One letter is a token of its own: said often enough for a count.
    letters = tuple(TargetWord("any", c) for c in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ,.;:-")
    found = score(generator, [ScoreRequest("c", prompt, letters)], 60)["c"]
    assert isinstance(found, Scored)
    assert found.counts is not None
    ends = {"raw": "A:", "chat-prefill": "<|assistant|>", "chat-continue": "<|assistant|>"}[prompt_format]
    assert found.prompt.endswith(ends)
    assert 0 < sum(found.counts.values()) < 60
    assert (60, "sampling") == (found.samples, found.estimator)
