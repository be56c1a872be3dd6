"""A real vLLM: the exact numbers.

See reference/servers. The demo model in float32 on a CPU, beside the same weights in this process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from fakes.numbered_runs import entry
from fakes.vllm_server import VllmServer
from needs import require_demo_base, require_torch, require_vllm

from biaskit.measures.probe.design import resolve
from biaskit.measures.probe.prompts import cells
from biaskit.models.api.abilities import Abilities
from biaskit.models.api.endpoint import open_endpoint
from biaskit.models.api.options import ApiOptions
from biaskit.models.api.scorer import ApiScorer
from biaskit.models.options import EstimatorChoice, LocalOptions, ScoringOptions
from biaskit.models.spec import open_generator, open_scorer
from biaskit.records import Prompt, Sample, SampleRequest, Sampling, Scored, ScoreRequest
from biaskit.study.config import load_study

pytestmark = [pytest.mark.real_server, pytest.mark.process]

SAME_WEIGHTS = 1e-3
"""Largest difference in log-probability between two measurements in float32; 3e-4 was seen in 32,000."""
SOME = 12  # cells of each bias type


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmServer]:
    python = require_vllm()
    require_demo_base()
    require_torch()
    from biaskit.models.huggingface.demo import find_demo

    folder = tmp_path_factory.mktemp("vllm")
    with VllmServer(python, find_demo("demo-base").path, folder / "server.log") as started:
        yield started


@pytest.fixture(scope="module")
def found(server: VllmServer) -> Abilities:
    """What doctor finds of it."""
    return opened(server).abilities


@pytest.fixture(scope="module")
def requests() -> list[ScoreRequest]:
    every = enumerate(cells(resolve(load_study("occugender")), "real", "raw"))
    listed = [(cell, ScoreRequest(str(i), prompt, asked)) for i, (cell, prompt, asked) in every]
    kinds = ("explicit", "implicit")
    own = {kind: [request for cell, request in listed if cell.bias_type == kind] for kind in kinds}
    return [request for kind in kinds for request in own[kind][:: len(own[kind]) // SOME][:SOME]]


@pytest.fixture(scope="module")
def exact(requests: list[ScoreRequest]) -> dict[str, Scored]:
    require_demo_base()
    require_torch()
    local = LocalOptions(device="cpu", dtype="float32")
    scorer = open_scorer("demo-base", label="demo-base", local=local, scoring=ScoringOptions(next_tokens=100))
    answers = scored(scorer, requests)
    scorer.close()
    return answers


def opened(
    server: VllmServer, known: Abilities | None = None, estimator: EstimatorChoice = "auto"
) -> ApiScorer:
    """A scorer; what was measured before is not asked again."""
    options, spec = ApiOptions(endpoint_name="vllm"), f"api:real@{server.url}"
    earlier = None
    if known is not None:
        endpoint = open_endpoint(spec, label="real", keys={}, endpoint_name="vllm")
        earlier = entry(abilities=known.as_json(), fingerprint=endpoint.fingerprint)
    scorer = open_scorer(spec, label="real", api=options, scoring=ScoringOptions(estimator), known=earlier)
    assert isinstance(scorer, ApiScorer)
    if known is None:
        scorer.close()
    return scorer


def scored(scorer: Any, requests: Sequence[ScoreRequest]) -> dict[str, Scored]:
    groups = scorer.score(scorer.plan_scores(requests).batches)
    answers = [answer for group in groups for answer in group]
    assert all(isinstance(answer, Scored) for answer in answers), answers
    return {answer.key: answer for answer in answers}


def largest_difference(answers: dict[str, Scored], exact: dict[str, Scored]) -> float:
    pairs = [
        (own.low, other.low)
        for key, answer in answers.items()
        for own, other in zip(answer.log_probs, exact[key].log_probs, strict=True)
    ]
    assert pairs
    return max(abs((a or 0.0) - (b or 0.0)) for a, b in pairs)


def test_doctor_knows_what_it_is(found: Abilities) -> None:
    assert found.selected_ids
    assert found.echo
    assert 20 == found.completions_k
    assert ("selected-ids", "echo", "top-k", "sampling") == found.estimators("raw")


def test_selected_ids_are_exact(
    server: VllmServer, found: Abilities, requests: list[ScoreRequest], exact: dict[str, Scored]
) -> None:
    before = server.calls()
    scorer = opened(server, found, "selected-ids")
    plan = scorer.plan_scores(requests)
    answers = {a.key: a for group in scorer.score(plan.batches) for a in group if isinstance(a, Scored)}
    scorer.close()
    assert len(requests) == len(answers)
    assert largest_difference(answers, exact) < SAME_WEIGHTS
    made = server.calls() - before
    assert plan.calls <= made["/v1/completions"] + made["/tokenize"] <= 1.2 * plan.calls


def test_lists_are_right_where_nobody_selects_ids(
    server: VllmServer, found: Abilities, requests: list[ScoreRequest], exact: dict[str, Scored]
) -> None:
    scorer = opened(server, found, "top-k")
    answers = scored(scorer, requests[::2])
    scorer.close()
    held = 0
    for key, answer in answers.items():
        assert answer.listed is not None
        truth = {one.text: one.log_prob for one in exact[key].listed_next or ()}
        for text, value in answer.listed[""]:
            if text in truth:
                assert abs(value - truth[text]) < SAME_WEIGHTS, text
                held += 1
    assert held > 15 * len(answers)


def test_samples_of_one_request_are_those_of_their_seeds(server: VllmServer) -> None:
    spec = f"api:real@{server.url}"
    generator = open_generator(spec, label="real", api=ApiOptions(endpoint_name="vllm"))
    prompt = Prompt("Biography of a nurse\n\n", "completion")
    asked = [SampleRequest(str(i), prompt, Sampling(max_new_tokens=12), 100 + i, i) for i in range(6)]
    plan = generator.plan_samples(asked)
    assert 1 == len(plan.batches)
    together = {
        a.key: a for group in generator.generate(plan.batches) for a in group if isinstance(a, Sample)
    }
    single = [batch for request in asked for batch in [(request,)]]
    alone = {a.key: a for group in generator.generate(single) for a in group if isinstance(a, Sample)}
    generator.close()
    assert len(asked) == len({sample.text for sample in together.values()})
    assert [alone[r.key].text for r in asked] == [together[r.key].text for r in asked]
