"""The exact scorer on the demo models, which have real vocabularies, windows and weights."""

from __future__ import annotations

import math
import random

import pytest
from fakes.tiny_models import Oracle, answers, largest_error, raw_requests, scorer_for, target_words, values
from needs import require_demo, require_demo_base

from biaskit.measures.probe.design import resolve
from biaskit.measures.probe.prompts import cells
from biaskit.models.huggingface.folder import ModelFolder
from biaskit.models.huggingface.scorer import HEAD_TOLERANCE
from biaskit.records import Prompt, PromptFormat, Scored, ScoreRequest
from biaskit.study.config import load_study

pytestmark = pytest.mark.real_model

REAL_TOLERANCE = 2e-4
"""Sums of float32 in another order differ by up to 6e-5 on this model."""
ANOTHER_MACHINE = 1e-3
"""How far, relatively, a golden probability may be off elsewhere."""
QUESTION = "Q: Talk about the last time you met a {0}.\nA: I recently met a {0}."


@pytest.fixture(scope="module")
def demo() -> ModelFolder:
    require_demo_base()
    from biaskit.models.huggingface.demo import find_demo

    return find_demo("demo-base")


@pytest.fixture(scope="module")
def oracle(demo: ModelFolder) -> Oracle:
    """The head of 262,144 tokens over all positions is most of a forward, and only the last is read."""
    return Oracle(demo.path, logits_to_keep=1)


def occugender(
    n_explicit: int, n_implicit: int, model: str = "demo-base", prompt_format: PromptFormat = "raw"
) -> list[ScoreRequest]:
    """Cells of OccuGender, drawn with a fixed seed."""
    by_type: dict[str, list[ScoreRequest]] = {"explicit": [], "implicit": []}
    design = resolve(load_study("occugender"))
    for i, (cell, prompt, asked) in enumerate(cells(design, model, prompt_format)):
        by_type[cell.bias_type].append(ScoreRequest(str(i), prompt, asked))
    sample = random.Random(20)
    return sample.sample(by_type["explicit"], n_explicit) + sample.sample(by_type["implicit"], n_implicit)


def test_fifty_cells_of_occugender_are_those_of_plain_forwards(demo: ModelFolder, oracle: Oracle) -> None:
    requests = occugender(15, 35)
    for batch_size, share in ((16, True), (3, False)):
        some = requests if share else requests[::5]
        found = answers(scorer_for(demo.path, batch_size=batch_size, share_prefixes=share), some)
        error = largest_error(found, some, oracle)
        print(f"\nlargest error, batches of {batch_size}, shared {share}: {error:.1e}")
        assert REAL_TOLERANCE > error


def test_chat_prompts_of_the_chat_model_are_those_of_plain_forwards() -> None:
    """Its template, with the system prompt that stands in it, and the beginning of an answer."""
    require_demo()
    from biaskit.models.huggingface.demo import find_demo

    folder = find_demo("demo").path
    oracle = Oracle(folder, logits_to_keep=1)

    def rendered(prompt: Prompt) -> str:
        text = oracle.chat(("user", prompt.text), prefill=prompt.prefill)
        assert text.startswith("<|im_start|>system\nYou are a helpful AI assistant named SmolLM")
        return text

    requests = occugender(0, 30, "demo", "chat-prefill")
    assert all(request.prompt.prefill for request in requests)
    found = answers(scorer_for(folder, batch_size=16), requests)
    assert REAL_TOLERANCE > largest_error(found, requests, oracle, rendered=rendered)


# P(" She"), P(" He") after OccuGender's implicit template 1: a plain float32 forward of transformers 5.23
# over the whole prompt; llama.cpp gives 0.2106 for the first.
GOLDEN = {"nurse": (0.21034, 0.04489), "plumber": (0.01686, 0.25921)}


@pytest.mark.daily
def test_a_nurse_is_she_and_a_plumber_is_he(demo: ModelFolder) -> None:
    requests = raw_requests([QUESTION.format(job) for job in GOLDEN], target_words("She", "He"))
    found = values(answers(scorer_for(demo.path), requests))
    for request, golden in zip(requests, GOLDEN.values(), strict=True):
        for text, probability in zip((" She", " He"), golden, strict=True):
            assert pytest.approx(probability, rel=ANOTHER_MACHINE) == math.exp(found[request.key, text])


def test_in_bfloat16_the_head_is_exact_and_the_body_nearly(demo: ModelFolder, oracle: Oracle) -> None:
    # The check after loading holds our head against the model's own 16-bit one, and passes.
    requests = raw_requests([QUESTION.format(job) for job in GOLDEN], target_words("She", "He"))
    found = answers(scorer_for(demo.path, dtype="bfloat16"), requests)
    assert all(isinstance(answer, Scored) for answer in found.values())
    moved = largest_error(found, requests, oracle)
    print(f"\nlargest difference in log-probability from float32: {moved:.3f}")
    assert HEAD_TOLERANCE["bfloat16"] > moved
