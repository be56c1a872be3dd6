"""Several prompts in a call: few calls, each answer its own, and nothing mixed up becomes a number."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from fakes.api_cases import (
    CANNED,
    EXPRESSIONS,
    MODEL,
    cells,
    draws,
    generate,
    generating,
    is_right,
    options,
    score,
    scoring,
    tokenizer,
)
from fakes.api_server import ApiServer, Behaviour, Lies
from fakes.toy_model import DEFAULT_VOCABULARY, ToyModel

from biaskit.models.api import apart
from biaskit.models.api.capabilities import Capabilities
from biaskit.models.api.opening import open_api_scorer
from biaskit.models.api.prices import Price
from biaskit.models.api.silent_checks import grid_of
from biaskit.models.api.token_ids import HELD, HELD_TEXTS, most_telling, pack
from biaskit.models.token_trie import build_trie
from biaskit.records import Draw, Failed, Scored, ScoreRequest

VLLM = {"token_id_logprobs": True, "choice_seeds": "added"}
NODES = len(build_trie([tuple(MODEL.encode(f" {e.text}")) for e in EXPRESSIONS]).nodes)


@pytest.fixture(autouse=True)
def _nobody_else_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ports come again: what one test's server mixed up is nothing to the next one's."""
    monkeypatch.setattr(apart, "_KEPT", {})


def all_right(answers: Sequence[Scored | Failed], requests: Sequence[ScoreRequest]) -> bool:
    by_key = {request.key: request for request in requests}
    assert sorted(by_key) == sorted(answer.key for answer in answers)
    failed = [answer for answer in answers if isinstance(answer, Failed)]
    assert not failed, failed[:2]
    return all(is_right(answer, by_key[answer.key], k=20) for answer in answers if isinstance(answer, Scored))


def paths(server: ApiServer) -> Counter[str]:
    return Counter(received.path for received in server.requests)


# --- few calls -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("prompts", [1, 7, 128])
def test_cells_share_calls_and_the_plan_says_how_many(prompts: int) -> None:
    asked = cells(40)
    with (
        ApiServer(MODEL, Behaviour(**VLLM)) as server,
        scoring(server, "selected-ids", shape=VLLM, prompts=prompts, tokenizer=tokenizer()) as scorer,
    ):
        plan = scorer.plan_scores(asked)
        held = paths(server)["/tokenize"]
        assert 0 < held <= HELD_TEXTS
        assert 40 * NODES == plan.prompts
        answers = [answer for group in scorer.score(plan.batches) for answer in group]
        assert plan.calls == server.calls
        assert held == paths(server)["/tokenize"]
        size = max(1, prompts // NODES)
        assert -(-40 // size) * -(-NODES // prompts) == server.calls
    assert all_right(answers, asked)
    # What was billed together stands in the rows as each prompt's own.
    assert server.prompt_tokens == sum(
        a.answered.prompt_tokens or 0 for a in answers if isinstance(a, Scored)
    )


def test_a_batch_is_answered_as_one_group() -> None:
    """One write and one fsync for it."""
    with (
        ApiServer(MODEL, Behaviour(**VLLM)) as server,
        scoring(server, "selected-ids", shape=VLLM, tokenizer=tokenizer()) as scorer,
    ):
        groups = list(scorer.score(scorer.plan_scores(cells(60)).batches))
    size = 128 // NODES
    assert {size, 60 % size} >= {len(answers) % size or size for answers in groups}
    assert 60 == sum(map(len, groups))


@pytest.mark.parametrize(("estimator", "calls"), [("echo", 2), ("top-k", 1)])
def test_echoes_and_lists_share_calls_too(estimator: Any, calls: int) -> None:
    asked = cells(40)
    with (
        ApiServer(MODEL, Behaviour(**VLLM)) as server,
        scoring(server, estimator, shape=VLLM, tokenizer=tokenizer()) as scorer,
    ):
        plan = scorer.plan_scores(asked)
        assert all_right([answer for group in scorer.score(plan.batches) for answer in group], asked)
        assert calls == plan.calls == server.calls


def test_lists_that_do_not_name_their_prompt_are_asked_one_by_one() -> None:
    """Nothing would tell two swapped lists apart."""
    with ApiServer(MODEL) as server, scoring(server, "top-k", tokenizer=tokenizer()) as scorer:
        assert ("echo",) == scorer.found.batched
        assert 8 == scorer.plan_scores(cells(8)).calls


def test_a_prompt_that_is_too_long_fails_alone() -> None:
    asked = cells(9)
    long = asked[4].prompt.text * 40
    asked[4] = ScoreRequest("long", type(asked[4].prompt)(long), asked[4].expressions)
    shape = {**VLLM, "context": 300}
    with (
        ApiServer(MODEL, Behaviour(**shape)) as server,
        scoring(server, "selected-ids", shape=VLLM, tokenizer=tokenizer()) as scorer,
    ):
        answers = score(scorer, asked)
    failed = [answer for answer in answers if isinstance(answer, Failed)]
    assert ["long"] == [answer.key for answer in failed]
    assert "maximum context length" in failed[0].reason
    assert all_right([a for a in answers if isinstance(a, Scored)], [r for r in asked if r.key != "long"])


def test_one_choice_that_lies_is_asked_again_alone() -> None:
    asked = cells(20)
    with (
        ApiServer(MODEL, Behaviour(**VLLM)) as server,
        scoring(server, "selected-ids", shape=VLLM, tokenizer=tokenizer()) as scorer,
    ):
        plan = scorer.plan_scores(asked)
        server.behaviour.lies = Lies([], at={server.number + 1: "swapped-answers"})
        answers = [answer for group in scorer.score(plan.batches) for answer in group]
        assert plan.calls + 2 == server.calls
        alone = [r.body["prompt"] for r in server.requests if r.generates][-2:]
        assert all(type(one[0]) is int for one in alone)
    assert all_right(answers, asked)


def test_the_cap_holds_for_calls_of_many_prompts() -> None:
    price = Price(1.0, 1.0, "", "")
    asked = cells(60)
    with ApiServer(MODEL, Behaviour(**VLLM)) as server:
        more: dict[str, Any] = {"tokenizer": tokenizer(), "price": price, "max_cost": 0.004}
        with scoring(server, "selected-ids", shape=VLLM, prompts=10, **more) as scorer:
            plan = scorer.plan_scores(asked)
            assert plan.cost_max is not None
            got: list[Any] = []
            with pytest.raises(Exception, match="max-cost"):
                got += [answer for group in scorer.score(plan.batches) for answer in group]
        assert 0 < server.cost(1.0, 1.0) <= 0.004
        assert server.cost(1.0, 1.0) <= plan.cost_max


# --- token ids -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", [" nurse", " person", " met", "Female"])
def test_a_tokenizer_that_differs_in_one_merge_is_dropped(lost: str) -> None:
    words = [text for text in DEFAULT_VOCABULARY if text != lost]
    other = ToyModel(vocabulary=(*words, lost + "\x01"))  # the same ids but for the last ones
    asked = [*cells(30)]
    differs = any(other.encode(r.prompt.text) != MODEL.encode(r.prompt.text) for r in asked)
    with (
        ApiServer(MODEL, Behaviour(**VLLM)) as server,
        scoring(server, "selected-ids", shape=VLLM, tokenizer=tokenizer(other)) as scorer,
    ):
        plan = scorer.plan_scores(asked)
        answers = [answer for group in scorer.score(plan.batches) for answer in group]
        assert all_right(answers, asked)
        dropped = "is not the server's" in plan.notes[0]
        assert dropped or not differs
        texts = [r.body["prompt"] for r in server.requests if r.path == "/tokenize"]
    if dropped:
        assert len(texts) - HELD_TEXTS <= 30 * (1 + len(EXPRESSIONS))
        assert max(Counter(texts).values()) == 1, "a text was tokenised twice"


def test_the_texts_that_tell_most_come_first() -> None:
    texts = [f"I met a person number {number}." for number in range(200)] + ["A plumber likes a nurse."]
    encode = tokenizer().encode
    assert "A plumber likes a nurse." in list(most_telling(texts, encode))[:3]
    n, packed = pack(iter(texts))
    assert n >= HELD
    assert len(packed) <= HELD_TEXTS
    n, packed = pack(iter([f"{'x' * 3000}{i}" for i in range(100)]))
    assert (HELD, HELD) == (n, len(packed))


# --- two kinds at once ---------------------------------------------------------------------------------


def examined(server: ApiServer) -> Capabilities:
    """What doctor finds."""
    scorer = open_api_scorer(f"api:toy@{server.url}", label="toy", options=options())
    scorer.close()
    return scorer.found


def test_doctor_sees_lists_that_are_wrong_beside_a_request_that_selects_ids() -> None:
    shape = {**VLLM, "canned": CANNED}
    with ApiServer(MODEL, Behaviour(mixes_up=True, **shape)) as server:
        found = examined(server)
        said = {finding.question: finding.answer for finding in found.findings}
        assert found.apart
        assert "WRONG" in said["lists while another request selects ids"]
    with ApiServer(MODEL, Behaviour(**shape)) as server:
        found = examined(server)
        assert not found.apart


def test_the_two_kinds_are_never_out_at_once_whichever_model_asks() -> None:
    """Two models in threads of their own, at two names of one server."""
    from biaskit.models.options import ScoringOptions

    asked = cells(60)
    answers: dict[str, list[Any]] = {}
    with ApiServer(MODEL, Behaviour(mixes_up=True, latency_s=0.01, canned=CANNED, **VLLM)) as server:
        scorers = {
            name: open_api_scorer(
                f"api:toy@{url}",
                label=name,
                options=options(tokenizer=tokenizer()),
                scoring=ScoringOptions(name, prompts=4),  # type: ignore[arg-type]
            )
            for name, url in (
                ("top-k", server.url),
                ("selected-ids", server.url.replace("127.0.0.1", "localhost")),
            )
        }
        server.mixed = 0

        def work(name: str) -> None:
            answers[name] = score(scorers[name], asked)

        threads = [threading.Thread(target=work, args=(name,)) for name in scorers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        for scorer in scorers.values():
            scorer.close()
        assert 0 == server.mixed
    assert all(all_right(answers[name], asked) for name in scorers)


# --- several texts of one request ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seeds", "n", "said"), [("equal", 1, "equal"), ("added", 20, "seed + i"), ("own", 20, "apart")]
)
def test_texts_of_one_request_that_are_one_text_are_asked_one_by_one(seeds: Any, n: int, said: str) -> None:
    with ApiServer(MODEL, Behaviour(choice_seeds=seeds, canned=CANNED)) as server:
        found = examined(server)
    assert (n, said) == (found.choices, found.seeds)


def test_equal_texts_become_no_draws() -> None:
    shape = {"choice_seeds": "equal"}
    with ApiServer(MODEL, Behaviour(**shape)) as server, generating(server, shape=shape) as generator:
        got = generate(generator, draws(12))
        assert 12 == len({answer.text for answer in got if isinstance(answer, Draw)})
        assert {1} == {received.body.get("n", 1) for received in server.requests if received.generates}


# --- what else doctor learns ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fingerprint", "by"),
    [("fp_toy", "toy | fp_toy | version 0.32.0"), ("vllm-0.32.0-ab", "toy | vllm-0.32.0-ab")],
    ids=["beside the fingerprint", "which tells it already"],
)
def test_the_version_stands_in_the_rows_once(fingerprint: str, by: str) -> None:
    shape = {**VLLM, "version": "0.32.0", "system_fingerprint": fingerprint}
    with (
        ApiServer(MODEL, Behaviour(**shape)) as server,
        scoring(server, "selected-ids", shape=shape, tokenizer=tokenizer()) as scorer,
    ):
        [answer] = score(scorer, cells(1))
    assert isinstance(answer, Scored)
    assert by == answer.answered.by


def test_numbers_of_a_16_bit_head_lie_on_a_grid() -> None:
    assert 0.125 == grid_of([-1.3, -1.425, -2.05, -2.3, -5.8])
    assert grid_of([-1.3, -1.41, -2.05, -2.3, -5.8]) is None
    assert grid_of([-1.0, -2.0]) is None


def test_a_first_list_that_is_lost_is_asked_for_again() -> None:
    """vLLM's first answer with a list may take longer than a question's time."""
    lost: Iterator[bool] = iter([True, True])

    def script(number: int, path: str, body: Any) -> str | None:
        asked = isinstance(body, dict) and body.get("logprobs") == 20
        return "200-empty" if asked and next(lost, False) else None

    with ApiServer(MODEL, Behaviour(chat=False)) as server:
        server.script(script)
        assert 20 == examined(server).completions_k


def test_findings_can_be_kept() -> None:
    with ApiServer(MODEL, Behaviour(mixes_up=True, version="1", canned=CANNED, **VLLM)) as server:
        found = examined(server)
    assert found == type(found).from_json(json.loads(json.dumps(found.as_json())))
