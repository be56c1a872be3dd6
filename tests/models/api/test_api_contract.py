"""What `models/base.py` promises of every backend: API models, scripted ones, local ones, callables."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from fakes.api_cases import JOBS, MODEL, QUICK, cells, generating, samples, scoring
from fakes.api_server import GENERATION, ApiServer, Behaviour
from fakes.inspect_model import through_inspect
from fakes.run_files import eventually

import biaskit as bk
from biaskit.errors import ModelError
from biaskit.models.api.meter import Meter
from biaskit.models.api.prices import parse_price
from biaskit.models.base import ContinuationScorer, TextGenerator
from biaskit.models.counting import SampledScorer
from biaskit.models.huggingface.folder import check_folder
from biaskit.models.huggingface.generator import TransformersGenerator
from biaskit.models.huggingface.scorer import TransformersScorer
from biaskit.models.options import LocalOptions
from biaskit.models.scripted import ScriptedGenerator, ScriptedScorer
from biaskit.records import Estimator, Failed, PromptFormat, Sample, SampleRequest, Scored

THREAD = "biaskit-api"


@dataclass
class Case:
    """A backend, and how it is asked."""

    name: str
    prompt_format: PromptFormat
    estimator: str = ""  # "": texts
    shape: dict[str, Any] = field(default_factory=dict)
    n: int = 1
    kind: str = "api"
    local: tuple[str, str] = ("", "")  # architecture and tokenizer
    folder: Path = Path()

    @contextmanager
    def opened(self, behaviour: Behaviour | None = None, **more: Any) -> Iterator[Opened]:
        """The backend and its server."""
        behaviour = behaviour or Behaviour()
        for name, value in self.shape.items():
            setattr(behaviour, name, value)
        with ExitStack() as stack:
            server = stack.enter_context(ApiServer(MODEL, behaviour))
            if self.kind == "inspect":
                backend: Any = stack.enter_context(through_inspect(self.estimator))
            elif self.kind == "writer":
                backend = bk.writer("toy", lambda prompts: [f"He: {prompt}" for prompt in prompts])
                backend = SampledScorer(backend, samples=4, longest=9) if self.estimator else backend
            elif self.kind == "scripted" and self.estimator:
                lines = [{"contains": job, "log_probs": {" He": -number}} for number, job in enumerate(JOBS)]
                backend = ScriptedScorer(lines, label="toy", spec="scripted:x", batch_size=2)
            elif self.kind == "scripted":
                lines = [{"contains": job, "texts": [f"{job} {i}" for i in range(20)]} for job in JOBS]
                backend = ScriptedGenerator(lines, label="toy", spec="scripted:x", batch_size=2)
            elif self.kind == "local":
                kind = TransformersScorer if self.estimator else TransformersGenerator
                local = LocalOptions(device="cpu", dtype="float32", batch_size=3)
                backend = kind(check_folder(self.folder), label="toy", spec="hf:x", local=local)
                stack.callback(backend.close)
            elif self.estimator:
                backend = stack.enter_context(scoring(server, self.estimator, shape=self.shape, **more))
            else:
                opened = generating(server, batch_size=self.n, shape=self.shape, **more)
                backend = stack.enter_context(opened)
            yield Opened(self, backend, server)

    def requests(self, n: int = 12) -> list[Any]:
        if self.estimator:
            return list(cells(n, self.prompt_format))
        return list(samples(max(1, n // 4), prompts=4, tokens=12, prompt_format=self.prompt_format))


@dataclass
class Opened:
    """An opened backend; `ask` is what its measurement does."""

    case: Case
    backend: Any
    server: ApiServer

    def ask(self, requests: Sequence[Any]) -> Iterator[Sequence[Any]]:
        if self.case.estimator:
            return self.backend.score(self.backend.plan_scores(requests).batches)
        return self.backend.generate(self.backend.plan_samples(requests).batches)

    def answers(self, requests: Sequence[Any]) -> list[Any]:
        return [answer for group in self.ask(requests) for answer in group]


API = [
    Case("echo", "raw", "echo"),
    Case("selected-ids", "raw", "selected-ids", {"token_id_logprobs": True}),
    Case("top-k", "raw", "top-k"),
    Case("top-k, chat", "chat-continue", "top-k"),
    Case("top-k, prefill", "chat-prefill", "top-k"),
    Case("sampling", "raw", "sampling"),
    Case("texts, one a request", "chat"),
    Case("texts, eight a request", "completion", n=8),
]
EVERY = [
    *API,
    Case("scripted scorer", "raw", "exact", kind="scripted"),
    Case("scripted generator", "chat", kind="scripted"),
    Case("local scorer", "raw", "exact", kind="local", local=("llama", "llama2")),
    Case("local, llama2", "completion", kind="local", local=("llama", "llama2")),
    Case("local, gpt2", "completion", kind="local", local=("gpt2", "bpe")),
    Case("local, gemma2", "completion", kind="local", local=("gemma2", "unigram")),
    Case("inspect, texts", "chat", kind="inspect"),
    Case("inspect, sampling", "chat-continue", "sampling", kind="inspect"),
    Case("writer, texts", "chat", kind="writer"),
    Case("writer, sampling", "chat-continue", "sampling", kind="writer"),
]
IN_PROCESS = [case for case in EVERY if case.kind in ("scripted", "local")]
every = pytest.mark.parametrize("case", EVERY, ids=lambda case: case.name)
api = pytest.mark.parametrize("case", API, ids=lambda case: case.name)


@pytest.fixture(autouse=True)
def _saved(request: pytest.FixtureRequest) -> None:
    """The folder of a local model, where a test has one."""
    case = request.node.callspec.params["case"] if hasattr(request.node, "callspec") else None
    if case is not None and case.kind == "local":
        case.folder = request.getfixturevalue("tiny")(*case.local).folder


def content(answer: Any) -> Any:
    """An answer without when it was given and by whom."""
    return replace(answer, answered=None) if isinstance(answer, Sample | Scored) else answer


def contents(answers: Sequence[Any]) -> dict[str, Any]:
    return {answer.key: content(answer) for answer in answers}


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == THREAD]


# --- answers -------------------------------------------------------------------------------------------


@every
def test_it_is_what_it_claims_to_be(case: Case) -> None:
    with case.opened() as opened:
        assert isinstance(opened.backend, ContinuationScorer if case.estimator else TextGenerator)
        assert case.prompt_format in opened.backend.identity.formats
        if case.estimator:
            assert case.estimator == opened.backend.estimator_for(case.prompt_format).name


@every
def test_each_request_is_answered_once_with_what_a_row_needs(case: Case) -> None:
    with case.opened() as opened:
        requests = case.requests()
        answers = opened.answers(requests)
    assert sorted(request.key for request in requests) == sorted(answer.key for answer in answers)
    prompts = {request.key: request.prompt.text for request in requests}
    for answer in answers:
        assert isinstance(answer, Scored if case.estimator else Sample), answer
        assert answer.answered.by
        assert answer.answered.at.endswith("+00:00")
        assert case.prompt_format not in ("raw", "completion") or answer.prompt == prompts[answer.key]
        assert case.estimator or answer.finish in ("stop", "length", "refusal", "filter")
    assert case.estimator or len({answer.text for answer in answers}) > 2


@every
def test_nothing_is_asked_where_nothing_is_missing(case: Case) -> None:
    with case.opened() as opened:
        assert [] == opened.answers([])
        assert 0 == opened.server.number


@every
def test_the_order_of_the_requests_changes_no_answer(case: Case) -> None:
    requests = case.requests()
    shuffled = random.Random(1).sample(requests, len(requests))
    assert shuffled != requests
    found = []
    for given in (requests, shuffled):
        with case.opened() as opened:
            found.append(contents(opened.answers(given)))
    assert found[0] == found[1]


@every
def test_the_same_requests_are_planned_in_the_same_way(case: Case) -> None:
    requests = case.requests()
    with case.opened() as opened:
        plan = opened.backend.plan_scores if case.estimator else opened.backend.plan_samples
        first = plan(requests)
        assert sorted(r.key for batch in first.batches for r in batch) == sorted(r.key for r in requests)
        opened.answers(requests)
        again = plan(requests)
        assert [*first.batches] == [*again.batches]
        assert replace(first, batches=again.batches) == again
        assert all(len(batch) <= opened.backend.batch_size for batch in first.batches)
        assert len(first.batches) == first.calls or case not in IN_PROCESS or case.estimator


@api
def test_answers_come_after_one_that_failed(case: Case) -> None:
    with case.opened() as opened:
        requests = case.requests()

        def plumbers_fail(number: int, path: str, body: Any) -> str | None:
            text = str(body.get("prompt") or body.get("messages")) if path in GENERATION else ""
            ids = body.get("prompt") if path in GENERATION else None
            if isinstance(ids, list) and not isinstance(ids[0], str):
                text = MODEL.decode([i for one in ids for i in (one if isinstance(one, list) else [one])])
            return "404" if "plumber" in text else None

        opened.server.script(plumbers_fail)
        answers = {answer.key: answer for answer in opened.answers(requests)}
        for request in requests:
            failed = "plumber" in request.prompt.text
            assert failed is isinstance(answers[request.key], Failed)
        reasons = {answer.reason for answer in answers.values() if isinstance(answer, Failed)}
        assert reasons == {"404: The model does not exist or you have no access."}
        # A failure is no end: the same backend answers what is asked again.
        opened.server.script(None)
        again = [request for request in requests if isinstance(answers[request.key], Failed)]
        assert again
        assert not any(isinstance(answer, Failed) for answer in opened.answers(again))


@pytest.mark.parametrize("case", [case for case in API if case.estimator], ids=lambda case: case.name)
def test_what_is_impossible_is_said_in_one_line(case: Case) -> None:
    with case.opened() as opened:
        with pytest.raises(ModelError) as error:
            opened.backend.estimator_for("completion")
        assert "\n" not in str(error.value)
        assert Estimator(opened.backend.estimator_for(case.prompt_format).name).name == case.estimator


# --- stopping in between -------------------------------------------------------------------------------


@pytest.mark.slow
@api
def test_closing_early_stops_the_work_and_leaves_nothing_behind(case: Case) -> None:
    before = threads()
    with case.opened(Behaviour(latency_s=0.05), policy=replace(QUICK, at_once=4)) as opened:
        groups = opened.ask(case.requests(60))
        with closing(groups):
            assert next(groups)
        time.sleep(0.06)
        eventually(lambda: opened.server.in_flight == 0)
        calls = opened.server.calls
        time.sleep(0.12)
        assert calls == opened.server.calls
        assert calls <= 16 * 6  # what was under way and begun, never all of it
        controller = opened.backend.connection._controller
        assert 0 == controller._under_way
        # It can be asked again at once.
        assert 4 <= len(opened.answers(case.requests(4)))
        opened.backend.close()
        eventually(lambda: not opened.server._connections)
    assert before == threads()


@api
def test_ctrl_c_in_the_reader_stops_the_work(case: Case) -> None:
    def read(opened: Opened) -> None:
        with closing(opened.ask(case.requests(60))) as groups:
            for _ in groups:
                raise KeyboardInterrupt

    with case.opened(Behaviour(latency_s=0.05), policy=replace(QUICK, at_once=4)) as opened:
        with pytest.raises(KeyboardInterrupt):
            read(opened)
        eventually(lambda: opened.server.in_flight == 0)


@api
def test_an_error_in_the_batches_is_the_readers(case: Case) -> None:
    def broken(batches: Sequence[Any]) -> Iterator[Any]:
        yield from batches[:2]
        raise RuntimeError("no more")

    with case.opened(policy=replace(QUICK, at_once=1)) as opened:
        if case.estimator:
            batches = opened.backend.plan_scores(case.requests()).batches
            groups = opened.backend.score(broken(batches))
        else:
            batches = opened.backend.plan_samples(case.requests()).batches
            groups = opened.backend.generate(broken(batches))
        with pytest.raises(RuntimeError, match="no more"):
            list(groups)
        eventually(lambda: opened.server.in_flight == 0)


@every
def test_a_closed_backend_can_be_used_again(case: Case) -> None:
    before = threads()
    with case.opened() as opened:
        requests = case.requests(8)
        found = []
        for _ in range(3):
            found.append(contents(opened.answers(requests)))
            opened.backend.close()
            opened.backend.close()
            assert before == threads()
    assert found[0] == found[1] == found[2]
    assert {request.key for request in requests} == found[0].keys()


@pytest.mark.parametrize("case", IN_PROCESS, ids=lambda case: case.name)
def test_a_batch_is_pulled_when_it_is_needed_and_closing_leaks_nothing(case: Case) -> None:
    with case.opened() as opened:
        requests = case.requests(24)
        plan = opened.backend.plan_scores if case.estimator else opened.backend.plan_samples
        batches = plan(requests).batches
        whole = contents(opened.answers(requests))
        pulled = []

        def counted() -> Iterator[Sequence[Any]]:
            for batch in batches:
                pulled.append(batch)
                yield batch

        running = threading.active_count()
        ask = opened.backend.score if case.estimator else opened.backend.generate
        with closing(ask(counted())) as groups:
            first = next(groups)
        assert len(pulled) < len(batches)
        assert running == threading.active_count()
        assert contents(first).items() <= whole.items()
        assert whole == contents(opened.answers(requests))


def test_a_cap_outlives_the_loop_in_which_requests_waited_for_it() -> None:
    meter = Meter(parse_price("1,1"), cap=10e-6)

    async def life() -> None:
        first = await meter.reserve(3, 3)
        waiting = asyncio.ensure_future(meter.reserve(3, 3))
        await asyncio.sleep(0)
        assert not waiting.done()
        meter.settle(first, (1, 1), billed=True)
        meter.settle(await asyncio.wait_for(waiting, 1), (0, 0), billed=True)

    asyncio.run(life())
    asyncio.run(life())
    assert 4e-6 == pytest.approx(meter.committed)


def test_batches_are_pulled_as_they_are_needed() -> None:
    """However slow the reader is, only so many answers wait for it."""
    pulled = 0

    def counted(batches: Sequence[Sequence[SampleRequest]]) -> Iterator[Sequence[SampleRequest]]:
        nonlocal pulled
        for batch in batches:
            pulled += 1
            yield batch

    with (
        ApiServer(MODEL) as server,
        generating(server, batch_size=1, policy=replace(QUICK, at_once=2)) as g,
    ):
        batches = g.plan_samples(samples(300, tokens=2)).batches
        with closing(g.generate(counted(batches))) as groups:
            next(groups)
            time.sleep(0.2)
            assert pulled <= 2 * 2 + 4
            assert server.calls <= 2 * 2 + 4
            assert 250 < sum(len(group) for group in groups)


# --- in a notebook -------------------------------------------------------------------------------------


@api
def test_it_works_inside_a_running_event_loop(case: Case) -> None:
    async def cell() -> int:
        with case.opened() as opened:
            return len(opened.answers(case.requests()))

    assert len(case.requests()) == asyncio.run(cell())
