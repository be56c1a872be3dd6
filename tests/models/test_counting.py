"""Any text generator as a scorer: draws per cell, counts per expression.

See docs/methods.md#sampling-estimator, sampling.
"""

from __future__ import annotations

import hashlib
import itertools
import queue
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from needs import require_torch

from biaskit.errors import ModelError, UsageError
from biaskit.models.base import ContinuationScorer
from biaskit.models.counting import SampledScorer, tokens_for
from biaskit.records import (
    Answered,
    Draw,
    DrawRequest,
    Estimator,
    Expression,
    Failed,
    Finish,
    ModelIdentity,
    Plan,
    Prompt,
    PromptForm,
    Scored,
    ScoreRequest,
)

ASKED = tuple(Expression(g, t) for g, t in (("male", "He"), ("female", "She"), ("female", "she")))
SAID = ("She is.", " He", "**she**", "Shed", "The nurse")
N = 10


def cells(n: int, form: PromptForm = "raw") -> list[ScoreRequest]:
    return [ScoreRequest(f"cell {i}", Prompt(f"Q: {i}\nA:", form), ASKED) for i in range(n)]


class Answers:
    """A generator in a test's hands: what it answers, how batches mix cells, in which order, from where."""

    whole_batches = False

    def __init__(
        self,
        answer: Callable[[DrawRequest, int], Draw | Failed | None] | None = None,
        *,
        batch_size: int = 3,
        mixed: bool = False,
        held: int = 1,
        seed: int = 0,
        forms: tuple[PromptForm, ...] = ("chat", "raw", "completion"),
        where: Any = "local",
    ) -> None:
        self.batch_size, self._mixed, self._held = batch_size, mixed, held
        self._random = random.Random(seed)
        self._answer = answer or (lambda request, _: said(request))
        self.identity = ModelIdentity("m", "m", "f" * 64, "base", where, forms, False, {})
        self.asked: Counter[str] = Counter()
        self.closed = self.pulled = 0
        self.requests: list[DrawRequest] = []

    def used(self) -> dict[str, float | None]:
        return {"calls": 7.0}

    def plan_draws(self, requests: Sequence[DrawRequest]) -> Plan[DrawRequest]:
        self.requests = list(requests)
        order = self._random.sample(self.requests, len(self.requests)) if self._mixed else self.requests
        size = self.batch_size
        batches = tuple(tuple(order[i : i + size]) for i in range(0, len(order), size))
        return Plan(batches, len(batches), 11, 12, 0.5, ("a note",))

    def estimate_seconds(self, n_new_tokens: int) -> float | None:
        return float(n_new_tokens)

    def generate(self, batches: Iterable[Sequence[DrawRequest]]) -> Iterator[Sequence[Draw | Failed]]:
        """Hold `held` batches in flight and answer them shuffled."""
        incoming, flying = iter(batches), list[Sequence[DrawRequest]]()
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
    request: DrawRequest, text: str | None = None, finish: Finish = "stop", tokens: int | None = 4
) -> Draw:
    """Draw i says text i, modulo their number."""
    text = SAID[request.number % len(SAID)] if text is None else text
    answered = Answered("m 1", f"2025-01-01T00:00:{request.number:02}+00:00", tokens, 2)
    return Draw(request.key, request.prompt.text, text, finish, answered)


def score(generator: Any, requests: Sequence[ScoreRequest], n: int = N) -> dict[str, Scored | Failed]:
    """Key → answer, after checking that each cell is answered once."""
    scorer = SampledScorer(generator, draws=n, longest=4)
    found = [answer for group in scorer.score(scorer.plan_scores(requests).batches) for answer in group]
    assert sorted(r.key for r in requests) == sorted(a.key for a in found)
    return {a.key: a for a in found}


# --- what is asked --------------------------------------------------------------------------------------


def test_a_cell_is_so_many_draws_at_temperature_1_with_keys_and_seeds_of_their_own() -> None:
    generator = Answers()
    SampledScorer(generator, draws=N, longest=10).plan_scores(cells(3))
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
    SampledScorer(generator, draws=N + 1, longest=10).plan_scores(cells(3)[1:])
    assert [r.key for r in before[N : 2 * N]] == [r.key for r in generator.requests[:N]]


@pytest.mark.parametrize(("longest", "tokens"), [(1, 4), (4, 4), (10, 7), (14, 9)])
def test_draws_are_one_token_longer_than_the_longest_expression_may_need(longest: int, tokens: int) -> None:
    assert tokens == tokens_for(longest)
    scorer = SampledScorer(Answers(), draws=5, longest=longest)
    assert Estimator("sampling", draws=5, max_new_tokens=tokens) == scorer.estimator_for("raw")


def test_a_batch_is_a_cell_and_the_plan_is_the_generators() -> None:
    scorer = SampledScorer(Answers(mixed=True), draws=N, longest=4)
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


def test_the_generators_batches_stay_together_as_far_as_they_are_of_one_cell() -> None:
    batches: list[Sequence[DrawRequest]] = []

    class Watched(Answers):
        def generate(self, asked: Iterable[Sequence[DrawRequest]]) -> Iterator[Sequence[Draw | Failed]]:
            for batch in asked:
                batches.append(batch)
                yield [said(request) for request in batch]

    score(Watched(batch_size=4), cells(2))
    assert [4, 4, 2, 2, 4, 4] == [len(batch) for batch in batches]
    assert all(len({r.prompt for r in batch}) == 1 for batch in batches)


# --- what comes back ------------------------------------------------------------------------------------


def test_counts_are_the_draws_that_say_each_expression() -> None:
    found = score(Answers(), cells(1))["cell 0"]
    assert isinstance(found, Scored)
    assert {"He": 2, "She": 2, "she": 2} == found.counts
    assert (N, "sampling", "Q: 0\nA:") == (found.draws, found.estimator, found.prompt)
    assert [("male", "He", None, None), ("female", "She", None, None), ("female", "she", None, None)] == [
        (e.group, e.text, e.low, e.high) for e in found.log_probs
    ]
    assert (N * 4, N * 2) == (found.answered.prompt_tokens, found.answered.new_tokens)


@pytest.mark.parametrize("seed", range(2))
def test_draws_may_come_back_in_any_order_and_mixed(seed: int) -> None:
    found = score(Answers(mixed=True, held=7, seed=seed, batch_size=4), cells(9))
    for answer in found.values():
        assert isinstance(answer, Scored)
        assert {"He": 2, "She": 2, "she": 2} == answer.counts


def test_refusals_and_filtered_texts_are_draws_that_say_nothing() -> None:
    finishes: tuple[Finish, ...] = ("stop", "refusal", "filter", "length", "stop")
    generator = Answers(lambda request, _: said(request, "He", finishes[request.number]))
    found = score(generator, cells(1), 5)["cell 0"]
    assert isinstance(found, Scored)
    assert (5, {"He": 2, "She": 0, "she": 0}) == (found.draws, found.counts)  # "length": Hear, Help, …


def test_tokens_that_the_server_tells_once_for_several_texts_count_once() -> None:
    def answer(request: DrawRequest, _: int) -> Draw:
        draw = said(request)
        alone = request.number == 0
        by = Answered("m", "2025", 9 if request.number % 2 == 0 else None, 3 if alone else None)
        return Draw(draw.key, draw.prompt, draw.text, draw.finish, by)

    found = score(Answers(answer), cells(1), 4)["cell 0"]
    assert isinstance(found, Scored)
    assert (18, None) == (found.answered.prompt_tokens, found.answered.new_tokens)


# --- what goes wrong ------------------------------------------------------------------------------------


def test_a_cell_fails_with_the_reason_of_its_draw_and_the_others_do_not() -> None:
    def answer(request: DrawRequest, _: int) -> Draw | Failed:
        bad = request.prompt.text.startswith(("Q: 1", "Q: 3")) and request.number >= 2
        return Failed(request.key, "no such luck") if bad else said(request)

    generator = Answers(answer, held=3)
    found = score(generator, cells(5))
    assert {"cell 1", "cell 3"} == {k for k, a in found.items() if isinstance(a, Failed)}
    assert Failed("cell 1", "no such luck") == found["cell 1"]
    assert 1 == max(generator.asked.values())


def test_a_draw_answered_twice_counts_once_and_one_without_answer_fails_its_cell() -> None:
    class Twice(Answers):
        def generate(self, batches: Iterable[Sequence[DrawRequest]]) -> Iterator[Sequence[Draw | Failed]]:
            for batch in batches:
                group = [said(r) for r in batch if r.number or r.prompt.text != "Q: 1\nA:"]
                yield [*group, *group]

    found = score(Twice(), cells(2))
    assert isinstance(found["cell 0"], Scored)
    assert {"He": 2, "She": 2, "she": 2} == found["cell 0"].counts
    assert Failed("cell 1", f"only {N - 1} of {N} draws were answered") == found["cell 1"]


def test_cells_are_pulled_when_they_are_needed_and_closing_closes_the_generator() -> None:
    class Kept(Answers):
        """Somebody else holds the iterator too: it does not end by being forgotten."""

        def generate(self, batches: Iterable[Sequence[DrawRequest]]) -> Iterator[Sequence[Draw | Failed]]:
            self.kept = Answers.generate(self, batches)
            return self.kept

    generator = Kept(held=2)
    scorer = SampledScorer(generator, draws=N, longest=4)
    plan = scorer.plan_scores(cells(20))
    groups = scorer.score(plan.batches)
    first = next(iter(groups))
    assert ["cell 0"] == [a.key for a in first]
    assert generator.pulled < 10  # of 70 batches
    assert 0 == generator.closed
    groups.close()
    assert 1 == generator.closed


def test_an_error_of_the_generator_comes_through_and_ends_its_work() -> None:
    def answer(request: DrawRequest, _: int) -> Draw:
        if request.prompt.text.startswith("Q: 2"):
            raise ModelError("the key is refused")
        return said(request)

    generator = Answers(answer)
    scorer = SampledScorer(generator, draws=N, longest=4)
    groups = scorer.score(scorer.plan_scores(cells(4)).batches)
    assert ["cell 0", "cell 1"] == [next(iter(groups))[0].key, next(iter(groups))[0].key]
    with pytest.raises(ModelError, match="refused"):
        list(groups)
    assert 1 == generator.closed


def test_a_generator_with_a_thread_of_its_own_loses_no_draw() -> None:
    class Threaded(Answers):
        def generate(self, batches: Iterable[Sequence[DrawRequest]]) -> Iterator[Sequence[Draw | Failed]]:
            done: queue.Queue[Sequence[Draw | Failed] | None] = queue.Queue(5)

            def work() -> None:
                for group in Answers.generate(self, batches):
                    done.put(group)
                done.put(None)

            thread = threading.Thread(target=work)
            thread.start()
            while (group := done.get()) is not None:
                yield group
            thread.join()

    found = score(Threaded(held=20, batch_size=2), cells(200))
    assert all(isinstance(a, Scored) and a.counts == {"He": 2, "She": 2, "she": 2} for a in found.values())


# --- what it is -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("takes", "where", "forms"),
    [
        (("chat", "raw", "completion"), "local", ("raw", "chat-prefill", "chat-continue")),
        (("raw", "completion"), "local", ("raw",)),
        (("chat",), "api", ("chat-continue",)),
        (("raw", "chat-prefill", "chat-continue"), "api", ("raw", "chat-prefill", "chat-continue")),
        (("chat-prefill",), "api", ("chat-prefill",)),
    ],
)
def test_it_takes_the_forms_that_the_generator_takes(
    takes: tuple[PromptForm, ...], where: str, forms: tuple[PromptForm, ...]
) -> None:
    scorer = SampledScorer(Answers(forms=takes, where=where), draws=2, longest=4)
    assert isinstance(scorer, ContinuationScorer)
    assert forms == scorer.identity.forms
    for form in ("raw", "chat-prefill", "chat-continue"):
        if form in forms:
            assert "sampling" == scorer.estimator_for(form).name  # type: ignore[arg-type]
        else:
            with pytest.raises(ModelError, match=form):
                scorer.estimator_for(form)  # type: ignore[arg-type]


def test_one_draw_gives_no_interval() -> None:
    with pytest.raises(UsageError, match="at least 2"):
        SampledScorer(Answers(), draws=1, longest=4)


def test_an_expression_that_can_never_match_is_refused_and_not_counted_as_0() -> None:
    asked = ScoreRequest("c", Prompt("Q:"), (*ASKED, Expression("diverse", "'em")))
    with pytest.raises(ModelError, match="'em") as caught:
        SampledScorer(Answers(), draws=2, longest=4).plan_scores([*cells(2), asked])
    assert "c" == caught.value.request_key


def test_an_error_in_the_plan_names_the_cell() -> None:
    class Refuses(Answers):
        def plan_draws(self, requests: Sequence[DrawRequest]) -> Plan[DrawRequest]:
            error = ModelError("no room")
            error.request_key = requests[N + 3].key
            raise error

    with pytest.raises(ModelError, match="no room") as caught:
        SampledScorer(Refuses(), draws=N, longest=4).plan_scores(cells(3))
    assert "cell 1" == caught.value.request_key


# --- on a model in process ------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["raw", "chat-prefill", "chat-continue"])
def test_a_local_model_is_sampled_in_every_form(tiny: Any, form: PromptForm) -> None:
    require_torch()
    from fakes.tiny_models import CHAT_TEMPLATE

    from biaskit.models.huggingface.folder import check_folder
    from biaskit.models.huggingface.generator import TransformersGenerator
    from biaskit.models.options import LocalOptions

    folder: Path = tiny("llama", "llama2", chat_template=CHAT_TEMPLATE).folder
    local = LocalOptions(device="cpu", dtype="float32", batch_size=16)
    generator = TransformersGenerator(check_folder(folder), label="tiny", spec="hf:t", local=local)
    prompt = Prompt("Q: I met a nurse.\nA:" if form == "raw" else "I met a nurse.", form)
    # One letter is a token of its own: said often enough for a count.
    letters = tuple(Expression("any", c) for c in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ,.;:-")
    found = score(generator, [ScoreRequest("c", prompt, letters)], 60)["c"]
    assert isinstance(found, Scored)
    assert found.counts is not None
    ends = {"raw": "A:", "chat-prefill": "<|assistant|>", "chat-continue": "<|assistant|>"}[form]
    assert found.prompt.endswith(ends)
    assert 0 < sum(found.counts.values()) < 60
    assert (60, "sampling") == (found.draws, found.estimator)
