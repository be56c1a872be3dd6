"""Several base URLs as one model: who is met, who is left out, and how much faster they are together."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from fakes.api_cases import MODEL, QUICK, draws, generating
from fakes.api_server import ApiProcess, ApiServer, Behaviour
from fakes.toy_model import ToyModel

from biaskit.models.api.generator import ApiGenerator
from biaskit.records import Draw

OTHER = ToyModel(seed=MODEL.seed + 1)


@contextmanager
def several(
    *servers: ApiServer | ApiProcess | str, note: Callable[[str], None] | None = None
) -> Iterator[tuple[ApiGenerator, list[str]]]:
    told: list[str] = []
    with generating(*servers, policy=QUICK, batch_size=1, tell=told.append, note=note) as generator:
        yield generator, told


def drawn_by(generator: ApiGenerator, n: int) -> list[Draw]:
    asked = draws(n, tokens=6)
    found = [one for group in generator.generate(generator.plan_draws(asked).batches) for one in group]
    assert sorted(one.key for one in found) == sorted(one.key for one in asked)
    assert all(isinstance(one, Draw) for one in found), found
    return [one for one in found if isinstance(one, Draw)]


def alone(n: int) -> dict[str, str]:
    """What one honest server answers to the same requests."""
    with ApiServer(MODEL) as server, several(server) as (generator, _):
        return {one.key: one.text for one in drawn_by(generator, n)}


def test_two_servers_of_one_model_share_the_work() -> None:
    with ApiServer(MODEL) as first, ApiServer(MODEL) as second, several(first, second) as (generator, told):
        found = drawn_by(generator, 60)
    assert {one.key: one.text for one in found} == alone(60)
    assert not told
    assert min(first.answered[200], second.answered[200]) > 15


@pytest.mark.parametrize(
    ("behaviour", "model", "why"),
    [
        (Behaviour(answers_as="toy-2"), MODEL, "it answers as 'toy-2', the first one as 'toy'"),
        (Behaviour(), OTHER, "it gives other probabilities for the same prompt"),
    ],
    ids=["another name", "the same name, other weights"],
)
def test_another_model_is_left_out(behaviour: Behaviour, model: ToyModel, why: str) -> None:
    with (
        ApiServer(MODEL) as first,
        ApiServer(model, behaviour) as stranger,
        several(first, stranger) as (generator, told),
    ):
        found = drawn_by(generator, 40)
    assert told == [f"{stranger.url} is left out: {why}."]
    assert {one.key: one.text for one in found} == alone(40)
    assert {one.answered.by.split(" ")[0] for one in found} == {"toy"}
    assert stranger.answered[200] == 1  # the question of who it is


def test_the_first_one_named_stands_for_all() -> None:
    with (
        ApiServer(MODEL, Behaviour(latency_s=0.2)) as first,
        ApiServer(OTHER) as second,
        ApiServer(OTHER) as third,
        several(first, second, third) as (generator, told),
    ):
        found = drawn_by(generator, 10)
    assert {one.key: one.text for one in found} == alone(10)
    assert len(told) == 2


def test_a_server_that_becomes_another_model_is_left_out() -> None:
    with (
        ApiServer(MODEL) as first,
        ApiServer(MODEL, Behaviour(drift_after=10)) as second,
        several(first, second) as (generator, told),
    ):
        found = drawn_by(generator, 60)
    assert told == [f"{second.url} is left out: it answers as 'toy-2', the first one as 'toy'."]
    assert {one.key: one.text for one in found} == alone(60)


def test_one_that_comes_back_as_another_model_is_met_again() -> None:
    failed: list[str] = []
    with ApiServer(MODEL, Behaviour(latency_s=0.2, slots=8)) as first:
        second = ApiServer(MODEL, Behaviour(latency_s=0.2, slots=8))
        second.__enter__()
        with several(first, second, note=failed.append) as (generator, told):
            groups = generator.generate(generator.plan_draws(draws(300, tokens=6)).batches)
            found = list(next(groups))
            second.close()
            while not failed:
                found += next(groups)
            with ApiServer(OTHER, port=second.port):
                found += [one for group in groups for one in group]
    assert told == [f"{second.url} is left out: it gives other probabilities for the same prompt."]
    assert {one.key: one.text for one in found if isinstance(one, Draw)} == alone(300)


def test_a_server_without_completions_is_known_by_its_name() -> None:
    with (
        ApiServer(MODEL, Behaviour(completions=False)) as first,
        ApiServer(MODEL, Behaviour(completions=False, answers_as="toy-2")) as second,
        several(first, second) as (generator, told),
    ):
        drawn_by(generator, 20)
    assert told == [f"{second.url} is left out: it answers as 'toy-2', the first one as 'toy'."]


def test_one_of_several_that_is_not_there_is_done_without() -> None:
    with ApiServer(MODEL) as first, several("http://127.0.0.1:9/v1", first) as (generator, told):
        found = drawn_by(generator, 30)
    assert {one.key: one.text for one in found} == alone(30)
    assert not told


@pytest.mark.slow
def test_two_servers_are_nearly_twice_as_fast() -> None:
    """Each works on eight requests at a time, 0.2 s each; processes of their own."""
    behaviour = {"slots": 8, "latency_s": 0.2}

    def seconds(n_servers: int) -> float:
        with (
            ApiProcess(behaviour=behaviour) as first,
            ApiProcess(behaviour=behaviour) as second,
            several(*(first, second)[:n_servers]) as (generator, _),
        ):
            drawn_by(generator, 40)  # so that the window has opened
            started = time.monotonic()
            drawn_by(generator, 240)
            return time.monotonic() - started

    ratio = statistics.median(seconds(1) / seconds(2) for _ in range(3))
    assert ratio >= 1.8, ratio
