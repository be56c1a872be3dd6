"""`inspect:PROVIDER/MODEL`, beside the contract of every backend (`api/test_api_contract.py`)."""

from __future__ import annotations

import json
import re
import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fakes.api_cases import MODEL, cells, made, samples
from fakes.api_server import ApiServer, Behaviour
from fakes.inspect_model import NAME, SAID, answer, through_inspect
from fakes.personas_runs import write_vectors
from places import ROOT

import biaskit as bk
from biaskit.errors import AskingStopped, ModelError, UsageError
from biaskit.models.api.options import ApiOptions
from biaskit.models.api.prices import parse_price
from biaskit.models.options import ScoringOptions
from biaskit.models.spec import open_generator, open_scorer
from biaskit.records import Failed, Sample

pytestmark = pytest.mark.slow  # importing inspect_ai takes seconds


def generate(backend: Any, requests: Any) -> list[Any]:
    batches = backend.plan_samples(requests).batches
    return [text for group in backend.generate(batches) for text in group]


def test_samples_are_asked_as_the_study_says_and_counted() -> None:
    seeds: list[int] = []

    def say(messages: Any, config: Any) -> Any:
        assert (1.0, 1.0, 9) == (config.temperature, config.top_p, config.max_tokens)
        assert ["user"] == [message.role for message in messages]
        seeds.append(config.seed)
        return answer(SAID[config.seed % 4])

    with through_inspect("sampling", say) as scorer:
        plan = scorer.plan_scores(cells(6, "chat-continue"))
        scored = [cell for group in scorer.score(plan.batches) for cell in group]
    assert 60 == len(set(seeds)) == plan.calls
    said = [SAID[seed % 4] for seed in seeds]
    for text, shown in (("He", " *He* was"), ("they", "they,")):
        assert said.count(shown) == sum(cell.counts[text] for cell in scored)
    assert all(10 == cell.samples and NAME in cell.answered.by for cell in scored)


@pytest.mark.parametrize(
    ("stop_reason", "finish"),
    [
        ("stop", "stop"),
        ("max_tokens", "length"),
        ("model_length", "length"),
        ("unknown", "length"),
        ("content_filter", "filter"),
    ],
)
def test_what_ended_a_text(stop_reason: str, finish: str) -> None:
    with through_inspect(say=lambda messages, config: answer("She", stop_reason)) as backend:
        [drawn] = generate(backend, samples(1))
    assert isinstance(drawn, Sample)
    assert (finish, "She", False) == (drawn.finish, drawn.text, drawn.seeded)


def test_a_run_of_each_measurement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from inspect_ai.model._providers.mockllm import MockLLM

    async def usage(*_: Any) -> None:
        return None

    monkeypatch.setattr(MockLLM, "default_output", "She is a nurse.")
    monkeypatch.setattr(MockLLM, "_ensure_default_usage", usage)
    asked: dict[str, Any] = {"jobs": "1,21", "templates": "1", "watcher": bk.Silent()}
    run = bk.probe(f"m=inspect:{NAME}", **asked, samples=3, out=tmp_path / "probe")
    assert {"sampling"} == set(run.table("probe_prompts")["estimator"])
    assert {1.0} == set(run.table("probe_prompts")["female_share"])
    again = bk.probe(f"m=inspect:{NAME}", **asked, samples=3, out=tmp_path / "probe")
    assert 4 == len((again.path / "probe.jsonl").read_text().splitlines())
    texts = bk.personas(
        f"m=inspect:{NAME}",
        study="gasp-pilot",
        occupations="nurse",
        per_gender=2,
        settings={
            "vectors": write_vectors(tmp_path / "v.txt"),
            "permutations": 19,
            "clusters": False,
        },
        out=tmp_path / "texts",
        watcher=bk.Silent(),
    )
    rows = [json.loads(line) for line in (texts.path / "personas.jsonl").read_text().splitlines()]
    assert {"She is a nurse."} == {row["text"] for row in rows}
    assert all("seed" not in row or row["seed"] is None for row in rows)


def test_a_server_is_asked_through_inspect_with_the_key_of_its_own_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {"jobs": "1,21", "templates": "1", "samples": 3, "max_samples_per_prompt": 3}
    with ApiServer(MODEL, Behaviour()) as server:

        def probe(key: str, *others: str, out: str = "probe") -> bk.ProbeResult:
            monkeypatch.setenv("LOCAL_API_KEY", key)
            monkeypatch.setenv("LOCAL_BASE_URL", server.url)
            spec = "m=inspect:openai-api/local/toy"
            return bk.probe(spec, *others, **asked, out=tmp_path / out, watcher=bk.Silent(), reuse=False)

        result = probe("acme-s3cret-1")
        sent = [received for received in server.requests if received.path.endswith("/chat/completions")]
        n = len(server.requests)
        probe("acme-s3cret-1")
        assert n == len(server.requests)  # every cell has its row
        probe("acme-s3cret-2", out="again")
        keys = [received.headers["authorization"] for received in server.requests]
        assert ["Bearer acme-s3cret-1"] * n + ["Bearer acme-s3cret-2"] * n == keys
        monkeypatch.delenv("LOCAL_API_KEY")
        with pytest.raises(ModelError, match="No LOCAL_API_KEY defined"):
            open_generator("inspect:openai-api/local/toy", label="m")
    assert {"sampling"} == set(result.prompts["estimator"])
    assert 4 * 3 == len(sent) == len({received.body["seed"] for received in sent})
    for received in sent:
        body = received.body
        assert (1.0, 1.0, 7) == (body["temperature"], body["top_p"], body["max_tokens"])
        assert not {"logprobs", "top_logprobs"} & body.keys()
        [message] = body["messages"]
        assert message["content"].startswith("Continue the following text with its next word.")
    rows = [json.loads(line) for line in (result.path / "probe.jsonl").read_text().splitlines()]
    said = {text for row in rows for text, _ in row["answers"]}
    assert said == {text for _, text in made(server)}
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"s3cret" not in stored


SERVERS = tomllib.loads((ROOT / "docs" / "servers.toml").read_text(encoding="utf-8"))
TABLE = [(one["name"].strip("`/"), one["variables"]) for one in SERVERS["provider"]]
"""Provider and what finds its key and its address, as the documents have them."""


@pytest.mark.parametrize(("provider", "variables"), TABLE, ids=[provider for provider, _ in TABLE])
def test_the_variables_of_a_provider_are_those_of_inspect(provider: str, variables: str) -> None:
    """In its source, since not every provider's own package is here."""
    import inspect_ai.model

    folder = Path(inspect_ai.model.__file__).parent / "_providers"
    assert f'@modelapi(name="{provider}")' in (folder / "providers.py").read_text()
    source = (folder / f"{provider.replace('-', '_')}.py").read_text()
    services = [name.upper() for name in re.findall(r'service="(\w+)"', source)]
    of_service = {f"{name}_{end}" for name in services for end in ("API_KEY", "BASE_URL")}
    named = re.findall(r"`([A-Z_]+)`", variables)
    assert named
    assert [] == [name for name in named if name not in source and name not in of_service]


@pytest.mark.parametrize(
    ("provider", "key"),
    [
        *(("together", "acme-s3cret"), ("fireworks", "acme-s3cret"), ("deepseek", "acme-s3cret")),
        *(("openrouter", "acme-s3cret"), ("vllm", "acme-s3cret"), ("sglang", "acme-s3cret")),
        *(("ollama", "ollama"), ("llama-cpp-python", "llama-cpp-python")),
    ],
)
def test_a_provider_takes_key_and_address_of_its_variables(
    provider: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = provider.upper().replace("-", "_")
    with ApiServer(MODEL, Behaviour()) as server:
        monkeypatch.setenv(f"{service}_API_KEY", "acme-s3cret")
        monkeypatch.setenv(f"{service}_BASE_URL", server.url)
        with closing(open_generator(f"inspect:{provider}/toy", label="m")) as backend:
            drawn = generate(backend, samples(2))
        assert {text for _, text in made(server)} == {sample.text for sample in drawn}
        assert {f"Bearer {key}"} == {received.headers["authorization"] for received in server.requests}


def test_a_provider_that_fails_says_why_without_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", "acme-s3cret-value")

    def say(messages: Any, config: Any) -> Any:
        raise ValueError("bad key acme-s3cret-value\nof yours")

    with through_inspect(say=say) as backend:
        assert [Failed(samples(1)[0].key, "bad key [key] of yours")] == generate(backend, samples(1))
        with pytest.raises(AskingStopped, match="refuses further requests"):
            generate(backend, samples(100))
        assert "s3cret" not in json.dumps(dict(backend.identity.details))


def test_the_cap_holds() -> None:
    options = ApiOptions(price=parse_price("1000,1000"), max_cost=0.5)
    with through_inspect(options=options) as backend:
        with pytest.raises(AskingStopped, match="--max-cost"):
            generate(backend, samples(300))
        used = backend.used()
    assert used["calls"] > 10
    assert used["calls"] * 0.007 == pytest.approx(used["cost"])
    assert used["cost"] <= 0.5


@pytest.mark.parametrize(
    ("spec", "how", "error", "said"),
    [
        ("inspect:nobody/model", {}, ModelError, "nobody"),
        ("inspect:", {}, ModelError, "cannot be opened through Inspect"),
        ("inspect:openai/gpt-4o", {}, ModelError, "OPENAI_API_KEY"),
        (f"inspect:{NAME}", {"api": ApiOptions(max_cost=1.0)}, UsageError, "--price"),
        (f"inspect:{NAME}", {"scoring": ScoringOptions("top-k")}, ModelError, "--estimator sampling"),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    spec: str, how: dict[str, Any], error: type[Exception], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    opener: Any = open_scorer if "scoring" in how else open_generator
    with pytest.raises(error, match=said) as told:
        opener(spec, label="m", **how)
    assert "\n" not in str(told.value)
