"""Whole sentences from a server, against the toy model's own numbers."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.api_cases import MODEL, scoring
from fakes.api_server import ApiServer, Behaviour

from biaskit.errors import ModelError
from biaskit.records import Failed, Prompt, Scored, ScoreRequest, TargetWord

PAIRS = {
    "": ("The nurse said that she left.", "The nurse said that he left."),
    "Q: Who left?\nA:": ("She left early.", "He left early."),
}
SHAPES: dict[str, dict[str, Any]] = {"echo": {}, "selected-ids": {"token_id_logprobs": True}}


def requests_of(pairs: dict[str, tuple[str, str]]) -> list[ScoreRequest]:
    return [
        ScoreRequest(
            f"{n:08x}", Prompt(prefix, "sentence"), (TargetWord("female", women), TargetWord("male", men))
        )
        for n, (prefix, (women, men)) in enumerate(pairs.items())
    ]


def log_prob(text: str) -> float:
    """log P of all tokens after the first."""
    ids = MODEL.prompt_ids(text)
    return sum(MODEL.token_log_probs(ids, 1))


@pytest.mark.parametrize("estimator", SHAPES)
def test_a_pair_differs_by_what_the_model_says_of_both_sentences(estimator: str) -> None:
    shape = SHAPES[estimator]
    with ApiServer(MODEL, Behaviour(**shape)) as server, scoring(server, estimator, shape=shape) as scorer:
        assert scorer.estimator_for("sentence").name == estimator
        plan = scorer.plan_scores(requests_of(PAIRS))
        answers = {answer.key: answer for group in scorer.score(plan.batches) for answer in group}
    for request, (prefix, (women, men)) in zip(requests_of(PAIRS), PAIRS.items(), strict=True):
        answer = answers[request.key]
        assert isinstance(answer, Scored)
        first, second = answer.log_probs
        between = f"{prefix} " if prefix else ""
        expected = log_prob(between + women) - log_prob(between + men)
        assert abs(expected) > 0.01
        assert first.high - second.high == pytest.approx(expected, abs=1e-5)  # type: ignore[operator]
        assert (first.text, second.text) == tuple((" " if prefix else "") + text for text in (women, men))


def test_the_plan_counts_a_token_for_each_byte_of_a_sentence() -> None:
    with ApiServer(MODEL, Behaviour()) as server, scoring(server, "echo") as scorer:
        plans = [
            scorer.plan_scores(requests_of({"She left.": (text, text + "x")})) for text in ("aaaaaa", "她走")
        ]
    assert plans[0].prompt_tokens == plans[1].prompt_tokens


def test_sentences_that_differ_in_a_first_token_without_a_value_fail_with_what_to_do() -> None:
    with ApiServer(MODEL, Behaviour()) as server, scoring(server, "echo") as scorer:
        plan = scorer.plan_scores(requests_of({"": ("She left.", "He left.")}))
        [answer] = [answer for group in scorer.score(plan.batches) for answer in group]
    assert isinstance(answer, Failed)
    assert "let the sentences begin alike" in answer.reason


@pytest.mark.parametrize("estimator", ["top-k", "sampling"])
def test_lists_and_samples_are_refused(estimator: str) -> None:
    opened = ApiServer(MODEL, Behaviour())
    with opened as server, scoring(server, estimator) as scorer, pytest.raises(ModelError, match="sentence"):
        scorer.estimator_for("sentence")
