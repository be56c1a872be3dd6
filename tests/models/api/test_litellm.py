"""LiteLLM's proxy in front of a server whose probabilities are known: what comes through is right."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fakes.api_cases import CANNED, MODEL, cells, generating, is_right, options, samples
from fakes.api_server import ApiServer, Behaviour
from fakes.litellm_proxy import KEY, LiteLlmProxy
from needs import require_litellm

from biaskit.models.api.opening import open_api_scorer
from biaskit.models.options import ScoringOptions
from biaskit.records import Sample, Scored

pytestmark = [pytest.mark.real_server, pytest.mark.process]


KEYS = {"toy": "PROXY_KEY"}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROXY_KEY", KEY)


@pytest.fixture(scope="module")
def upstream() -> Iterator[ApiServer]:
    with ApiServer(MODEL, Behaviour(canned=CANNED)) as server:
        yield server


@pytest.fixture(scope="module")
def proxy(upstream: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiteLlmProxy]:
    with LiteLlmProxy(require_litellm(), upstream.url, tmp_path_factory.mktemp("litellm")) as started:
        yield started


def test_probabilities_through_the_proxy_are_the_models(proxy: LiteLlmProxy) -> None:
    requests = cells(6)
    scorer = open_api_scorer(
        f"api:toy@{proxy.url}", label="toy", options=options(keys=KEYS), scoring=ScoringOptions("top-k")
    )
    assert scorer.abilities.completions
    assert scorer.abilities.completions_k >= 5
    groups = scorer.score(scorer.plan_scores(requests).batches)
    answers = [answer for group in groups for answer in group]
    scorer.close()
    assert all(isinstance(answer, Scored) for answer in answers), answers
    assert len(answers) == 6
    of_key = {request.key: request for request in requests}
    for answer in answers:
        assert isinstance(answer, Scored)
        assert is_right(answer, of_key[answer.key], k=20), answer


def test_texts_come_through_the_proxy(proxy: LiteLlmProxy) -> None:
    with generating(proxy.url, batch_size=1, keys=KEYS) as generator:
        asked = samples(8, tokens=6)
        found = [one for group in generator.generate(generator.plan_samples(asked).batches) for one in group]
    assert all(isinstance(one, Sample) for one in found), found
    assert sorted(one.key for one in found) == sorted(one.key for one in asked)
    assert len({one.text for one in found if isinstance(one, Sample)}) > 4
