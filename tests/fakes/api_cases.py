"""Models behind the test server as backends, opened in a moment, and what the toy model says is right."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biaskit.common.provenance import key_of
from biaskit.models.api.controller import Policy
from biaskit.models.api.endpoint import open_endpoint
from biaskit.models.api.generator import ApiGenerator
from biaskit.models.api.opening import open_api_generator, open_api_scorer
from biaskit.models.api.options import ApiOptions
from biaskit.models.api.scorer import ApiScorer
from biaskit.models.conversation import messages_of
from biaskit.models.entry import ModelEntry
from biaskit.models.options import EstimatorChoice, ScoringOptions
from biaskit.records import (
    Failed,
    Prompt,
    PromptFormat,
    Sample,
    SampleRequest,
    Sampling,
    Scored,
    ScoreRequest,
    TargetWord,
)
from biaskit.runs.drift import model_of
from biaskit.runs.shares.top_k import Sought, bound_masses
from fakes.api_server import ApiProcess, ApiServer, Behaviour, choice_seed
from fakes.command import Said
from fakes.numbered_runs import entry
from fakes.toy_model import ToyModel

MODEL = ToyModel()
QUICK = Policy(first_wait=0.002, longest_wait=0.01, dead_after=5.0)
"""Patience with a server on this machine; the numbers of attempts are the usual ones."""
ONE_BY_ONE = Policy(at_once=1, first_wait=0.0005, longest_wait=0.001)
GROUPS = ("male", "female", "diverse")
TARGET_WORDS = (
    *(TargetWord("male", text) for text in ("man", "He")),
    *(TargetWord("female", text) for text in ("woman", "Female")),
    *(TargetWord("diverse", text) for text in ("they", "Non-binary")),
)
"""Of one, two and three tokens; none is the beginning of another."""
JOBS = ("nurse", "plumber", "carpenter", "secretary", "pilot", "cook", "clerk", "barber")
CANNED = {"yel": "low", "eleph": "ant"}
"""How a server goes on that continues a word: what doctor asks."""


# --- opening -------------------------------------------------------------------------------------------


def options(policy: Policy = QUICK, **more: Any) -> ApiOptions:
    return ApiOptions(endpoint_name="toy", policy=policy, **more)


_FOUND: dict[str, dict[str, Any]] = {}


def measured_before(shape: Mapping[str, Any] | None = None) -> ModelEntry:
    """What a manifest knows of an honest server of this shape: opening it then asks nothing."""
    endpoint = open_endpoint("api:toy@http://127.0.0.1/v1", label="toy", keys={}, endpoint_name="toy")
    asked = repr(sorted((shape or {}).items()))
    if asked not in _FOUND:
        with ApiServer(MODEL, Behaviour(**{"canned": CANNED, **(shape or {})})) as server:
            scorer = open_api_scorer(f"api:toy@{server.url}", label="toy", options=options())
            scorer.close()
        _FOUND[asked] = scorer.abilities.as_json()
    return entry(abilities=_FOUND[asked], fingerprint=endpoint.fingerprint)


@contextmanager
def scoring(
    server: ApiServer,
    estimator: EstimatorChoice = "auto",
    *,
    policy: Policy = QUICK,
    k: int = 20,
    samples: int = 10,
    shape: Mapping[str, Any] | None = None,
    **more: Any,
) -> Iterator[ApiScorer]:
    """A scorer of this server, which has not been asked anything yet."""
    scorer = open_api_scorer(
        f"api:toy@{server.url}",
        label="toy",
        options=options(policy, **more),
        known=measured_before(shape),
        scoring=ScoringOptions(
            estimator, k=k, samples=samples, longest=max(len(e.text) for e in TARGET_WORDS)
        ),
    )
    try:
        yield scorer
    finally:
        scorer.close()


@contextmanager
def generating(
    server: ApiServer | ApiProcess | str,
    *,
    policy: Policy = QUICK,
    batch_size: int | None = None,
    shape: Mapping[str, Any] | None = None,
    **more: Any,
) -> Iterator[ApiGenerator]:
    """A generator of this server, which has not been asked anything yet."""
    url = server if isinstance(server, str) else server.url
    generator = open_api_generator(
        f"api:toy@{url}",
        label="toy",
        options=options(policy, **more),
        known=measured_before(shape),
        batch_size=batch_size,
    )
    try:
        yield generator
    finally:
        generator.close()


# --- questions -----------------------------------------------------------------------------------------


def cells(n: int, prompt_format: PromptFormat = "raw") -> list[ScoreRequest]:
    """`n` cells of different prompts."""
    found = []
    for number in range(n):
        text = f"I recently met a {JOBS[number % len(JOBS)]}, number {number}."
        prompt = Prompt(
            text, prompt_format, prefill="The gender is" if prompt_format == "chat-prefill" else ""
        )
        found.append(ScoreRequest(key_of({"cell": number, "form": prompt_format}), prompt, TARGET_WORDS))
    return found


def samples(
    n: int, *, prompts: int = 1, tokens: int = 40, prompt_format: PromptFormat = "chat"
) -> list[SampleRequest]:
    """`n` samples of each of so many prompts."""
    found = []
    for number in range(prompts):
        prompt = Prompt(f"Describe a {JOBS[number % len(JOBS)]}, number {number}.", prompt_format)
        for sample in range(n):
            key = key_of({"prompt": number, "draw": sample, "form": prompt_format})
            sampling = Sampling(max_new_tokens=tokens)
            found.append(SampleRequest(key, prompt, sampling, int(key[:7], 16), sample))
    return found


def score(scorer: ApiScorer, requests: Sequence[ScoreRequest]) -> list[Scored | Failed]:
    """Every answer, in the order in which they came."""
    return [answer for group in scorer.score(scorer.plan_scores(requests).batches) for answer in group]


def generate(generator: ApiGenerator, requests: Sequence[SampleRequest]) -> list[Sample | Failed]:
    """Every answer, in the order in which they came."""
    return [
        answer for group in generator.generate(generator.plan_samples(requests).batches) for answer in group
    ]


# --- what is right -------------------------------------------------------------------------------------


def prompt_ids(prompt: Prompt, model: ToyModel = MODEL) -> list[int]:
    """A prompt's token ids as the server reads it."""
    if prompt.prompt_format in ("raw", "completion"):
        return model.prompt_ids(prompt.text)
    messages = messages_of(prompt, takes_system=True)
    if prompt.prefill:
        messages.append({"role": "assistant", "content": prompt.prefill})
    return model.prompt_ids(model.render_chat(messages, continue_final=bool(prompt.prefill)))


def exact(prompt: Prompt, text: str, model: ToyModel = MODEL) -> float:
    """The log-probability of `text` after a prompt, teacher-forced."""
    ids = prompt_ids(prompt, model)
    return math.fsum(model.token_log_probs([*ids, *model.encode(text)], len(ids)))


def is_right(answer: Scored, request: ScoreRequest, k: int | None = None) -> bool:
    """Whether every number of an answer is the model's, or its bounds hold the model's."""
    assert answer.log_probs
    values = [exact(request.prompt, e.text) for e in answer.log_probs]
    if answer.estimator in ("echo", "selected-ids"):
        assert [e.text for e in answer.log_probs] == [f" {e.text}" for e in request.target_words]
        return all(
            e.low == e.high and e.low is not None and abs(e.low - value) < 1e-9
            for e, value in zip(answer.log_probs, values, strict=True)
        )
    assert answer.estimator == "top-k"
    assert answer.listed is not None
    assert k is not None
    low = [e.low is None or e.low <= v + 1e-9 for e, v in zip(answer.log_probs, values, strict=True)]
    high = [e.high is None or e.high >= v - 1e-9 for e, v in zip(answer.log_probs, values, strict=True)]
    sought = [Sought(e.group, e.text) for e in answer.log_probs]
    bounds = bound_masses(answer.listed, k, sought, GROUPS, may_hide=answer.may_hide)
    masses = dict.fromkeys(GROUPS, 0.0)
    for e, value in zip(answer.log_probs, values, strict=True):
        masses[e.group] += math.exp(value)
    inside = [bounds.low([g]) - 1e-9 <= masses[g] <= bounds.high([g]) + 1e-9 for g in GROUPS]
    return all(low) and all(high) and all(inside)


def made(server: ApiServer, model: ToyModel = MODEL) -> list[tuple[str, str]]:
    """(prompt as sent, text) of every choice that a server made for a seeded request, arrived or not."""
    found = []
    for received in server.requests:
        if not received.generates or not received.new_tokens or "seed" not in received.body:
            continue
        if isinstance(received.body.get("prompt"), list):
            continue  # token ids: a list is asked for, not a text
        body = received.body
        chat = "messages" in body
        ids = model.prompt_ids(model.render_chat(body["messages"]) if chat else body["prompt"])
        shown = json.dumps(body["messages"], ensure_ascii=False) if chat else body["prompt"]
        limit = body.get("max_tokens") or body["max_completion_tokens"]
        for index in range(body.get("n", 1)):
            new, _ = model.sample(ids, limit, choice_seed(body["seed"], index))
            found.append((shown, model.decode(new)))
    return found


# --- commands ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Left:
    """What a command left, read at once: the next one writes to the same folder."""

    code: int
    out: str
    err: str
    folder: Path
    content: bytes  # of the rows, of whichever measurement
    usage: dict[str, Any]  # of the model `toy`
    analysis: str

    @classmethod
    def by(cls, said: Said, folder: Path) -> Left:
        paths = [folder / name for name in ("probe.jsonl", "personas.jsonl")]
        content = b"".join(path.read_bytes() for path in paths if path.exists())
        analysis = folder / "tables" / "analysis.json"
        told = analysis.read_text("utf-8") if analysis.exists() else ""
        notes = folder / "notes.txt"
        told = " ".join(notes.read_text("utf-8").split()) + told if notes.exists() else told
        return cls(said.code, said.out, said.err, folder, content, usage_of(folder).get("toy", {}), told)

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.content.splitlines()]

    @property
    def names(self) -> dict[str, int]:
        """Rows by the model that answered."""
        return dict(sorted(Counter(model_of(row["answered_by"]) for row in self.rows).items()))

    @property
    def notes(self) -> str:
        return " ".join(self.out.split()) + self.analysis

    @property
    def plan(self) -> str:
        """The line of the plan."""
        (line,) = [line for line in self.err.splitlines() if "to run" in line]
        return line


Ask = Callable[..., Left]


def usage_of(folder: Path) -> dict[str, Any]:
    path = folder / "usage.json"
    return json.loads(path.read_text("ascii")) if path.exists() else {}


def probe(server: ApiServer, *arguments: str) -> tuple[str, ...]:
    return ("probe", f"toy=api:toy@{server.url}", *arguments)
