"""A local model seen as through `top_logprobs`, held against the oracle.

See methods/estimators#top-k-bounds, top-k.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from fakes.tiny_models import (
    CHAT_TEMPLATE,
    LONG,
    SHORT,
    TOLERANCE,
    Oracle,
    Tiny,
    answers,
    asked_on,
    raw_requests,
    scorer_for,
    target_words,
)

from biaskit.errors import ModelError, UsageError
from biaskit.models.huggingface.head import ListedTokens, OutputHead, TopTokens
from biaskit.records import Estimator, Failed, LogProb, Prompt, Scored, ScoreRequest

Saved = Callable[..., Tiny]
PAIRS = (
    ("gpt2", "bpe"),
    ("llama", "llama2"),
    ("gemma2", "unigram"),  # a soft cap
    ("phi", "bytes"),  # a head with a bias
    ("granite", "bpe-bos"),  # scaled logits
)


def listed(answer: Scored | Failed) -> dict[str, float]:
    """Text → log-probability of the one list, whose texts must differ."""
    assert isinstance(answer, Scored), answer
    assert answer.listed is not None
    assert [""] == list(answer.listed)
    found = dict(answer.listed[""])
    assert len(found) == len(answer.listed[""]), "two tokens have one text"
    return found


def bound(answer: Scored | Failed, text: str) -> LogProb:
    assert isinstance(answer, Scored)
    return next(one for one in answer.log_probs if one.text == text)


def expected(oracle: Oracle, ids: tuple[int, ...], k: int) -> list[float]:
    values: list[float] = oracle.next_log_probs(ids).topk(k).values.tolist()
    return values


@pytest.mark.parametrize(("architecture", "tokenizer"), PAIRS)
def test_the_list_is_the_head_of_the_models_own_distribution(
    architecture: str, tokenizer: str, tiny: Saved, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = tiny(architecture, tokenizer)
    monkeypatch.setattr("biaskit.models.huggingface.head.SLICE_ELEMENTS", 100)  # several slices
    requests = raw_requests((SHORT, *LONG), asked_on(tokenizer))
    for k in (1, 5, 20):
        found = answers(scorer_for(saved.folder, estimator="top-k", k=k, batch_size=3), requests)
        for request in requests:
            values = list(listed(found[request.key]).values())
            ids = saved.oracle.encode(request.prompt.text)
            assert pytest.approx(expected(saved.oracle, ids, k), abs=TOLERANCE) == values


@pytest.mark.parametrize(("architecture", "tokenizer"), PAIRS)
@pytest.mark.parametrize("k", [1, 7, 60])
def test_every_target_word_is_within_its_bounds(
    architecture: str, tokenizer: str, k: int, tiny: Saved
) -> None:
    saved = tiny(architecture, tokenizer)
    # One token, several tokens, with a listed first token and with an unlisted one.
    words = target_words("He", "Her", "She", "Non-binary", "a", "of", "-", "nurse", "I", "You", ",", "(", "7")
    requests = raw_requests((SHORT, *LONG[:3]), words)
    found = answers(scorer_for(saved.folder, estimator="top-k", k=k), requests)
    kinds = {"point": 0, "begun": 0, "unlisted": 0}
    for request in requests:
        shown = listed(found[request.key])
        rest = 1 - math.fsum(map(math.exp, shown.values()))
        for e in request.target_words:
            one = bound(found[request.key], f" {e.text}")
            exact = saved.oracle.log_prob(request.prompt.text, one.text)
            assert one.high is not None
            assert one.token_ids is not None
            assert one.tokens is not None
            assert exact <= one.high + TOLERANCE
            assert len(one.tokens) == len(one.token_ids)
            if one.tokens[0] not in shown:
                kinds["unlisted"] += 1
                assert one.low is None
                assert pytest.approx(min(rest, math.exp(min(shown.values())))) == math.exp(one.high)
            elif len(one.tokens) == 1:
                kinds["point"] += 1
                assert one.low == one.high == shown[one.text]
                assert pytest.approx(exact, abs=TOLERANCE) == one.low
            else:
                kinds["begun"] += 1
                assert (None, shown[one.tokens[0]]) == (one.low, one.high)
    assert kinds["unlisted"]
    assert k < 60 or tokenizer == "bytes" or kinds["point"] + kinds["begun"]


@pytest.mark.parametrize(("architecture", "tokenizer"), PAIRS)
def test_a_token_shows_the_text_it_adds_and_no_other_token_the_same(
    architecture: str, tokenizer: str, tiny: Saved
) -> None:
    saved = tiny(architecture, tokenizer)
    (request,) = raw_requests([SHORT], target_words("He", "She"))
    shown = listed(answers(scorer_for(saved.folder, estimator="top-k", k=10_000), [request])[request.key])
    own = saved.oracle.tokenizer
    rows = saved.oracle.model.get_output_embeddings().weight.shape[0]
    assert rows == len(shown)
    assert pytest.approx(1.0, abs=1e-6) == math.fsum(map(math.exp, shown.values()))
    assert set(own.all_special_tokens) <= set(shown)
    ids = saved.oracle.encode(SHORT)
    log_probs = saved.oracle.next_log_probs(ids)
    before = own.decode(ids)
    plain = 0
    for token in range(len(own)):
        text = own.decode([*ids, token])[len(before) :]
        if token not in own.all_special_ids and text and "\ufffd" not in text:
            named = shown.get(f"{text} (id {token})", shown.get(text))
            assert pytest.approx(float(log_probs[token]), abs=TOLERANCE) == named, text
            plain += 1
    assert plain > 90
    assert any(text.startswith(" ") and text.strip() for text in shown) == (tokenizer != "bytes")


@pytest.mark.parametrize("tokenizer", ["llama2", "unigram", "bpe", "bytes"])
def test_at_the_start_of_a_turn_a_listed_target_word_is_found_by_its_text(
    tokenizer: str, tiny: Saved
) -> None:
    saved = tiny("llama", tokenizer, chat_template=CHAT_TEMPLATE)
    asked = target_words("He", "She", "they", "a", "I", "Nonbinary")
    request = ScoreRequest("c", Prompt("I met a nurse.", "chat-prefill"), asked)
    found = answers(scorer_for(saved.folder, estimator="top-k", k=10_000), [request])["c"]
    exact = answers(scorer_for(saved.folder), [request])["c"]
    assert isinstance(exact, Scored)
    assert isinstance(found, Scored)
    shown = listed(found)
    assert {e.text for e in exact.log_probs} == {e.text for e in found.log_probs}
    for one, point in zip(found.log_probs, exact.log_probs, strict=True):
        assert one.tokens is not None
        assert point.high is not None
        assert shown[one.tokens[0]] >= point.high - TOLERANCE
        if len(one.tokens) == 1:
            assert one.tokens == (one.text,)
            assert pytest.approx(point.high, abs=TOLERANCE) == shown[one.text]


def test_only_the_prompts_go_through_the_model_and_shared_beginnings_once(tiny: Saved) -> None:
    saved = tiny("llama", "bpe")
    requests = raw_requests(LONG, asked_on("bpe"))
    whole = sum(len(saved.oracle.encode(text)) for text in LONG)
    apart, shared = (
        scorer_for(saved.folder, estimator="top-k", k=9, batch_size=4, share_prefixes=share)
        for share in (False, True)
    )
    assert whole == apart.plan_scores(requests).prompt_tokens
    assert shared.plan_scores(requests).prompt_tokens < whole
    for one, other in zip(answers(apart, requests).values(), answers(shared, requests).values(), strict=True):
        assert pytest.approx(listed(one), abs=TOLERANCE) == listed(other)


def most_probable(head: OutputHead, hidden: torch.Tensor, k: int) -> list[ListedTokens | None]:
    listing = TopTokens(len(hidden), k)
    head.log_probs(hidden, torch.empty(0, dtype=torch.long), listing=listing)
    return listing.tokens()


@torch.inference_mode()
def test_a_broken_row_fails_alone_and_an_impossible_token_is_not_listed(tiny: Saved) -> None:
    model = tiny("llama", "bpe").oracle.model
    rows = torch.randn(3, model.get_output_embeddings().weight.shape[1])
    rows[1, 0] = torch.nan
    first, broken, third = most_probable(OutputHead(model), rows, 4)
    assert broken is None
    assert first is not None
    assert third is not None
    assert (4, 4) == (len(first), len(third))

    class Impossible(OutputHead):
        def slices(self, hidden: Any) -> Iterator[tuple[int, Any]]:
            for start, logits in super().slices(hidden):
                logits[:, max(0, 2 - start) :] = -torch.inf
                yield start, logits

    (two,) = most_probable(Impossible(model), rows[:1], 4)
    assert two is not None
    assert {0, 1} == {token for token, _ in two}
    assert pytest.approx(1.0) == math.fsum(math.exp(value) for _, value in two)


def test_the_estimator_is_named_with_its_k_and_what_it_cannot_do_is_refused(tiny: Saved) -> None:
    folder = tiny("llama", "bpe").folder
    assert Estimator("top-k", k=20) == scorer_for(folder, estimator="top-k", k=20).estimator_for("raw")
    assert Estimator("exact") == scorer_for(folder).estimator_for("raw")
    with pytest.raises(ModelError, match="chat-prefill"):
        scorer_for(folder, estimator="top-k", k=20).estimator_for("chat-prefill")
    with pytest.raises(UsageError, match="word_boundary=token"):
        scorer_for(folder, estimator="top-k", k=20, word_boundary="word")
    with pytest.raises(UsageError, match="at least one"):
        scorer_for(folder, estimator="top-k", k=0)
