"""Whole sentences by the exact scorer, against plain forwards of each whole text."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest
import torch
from fakes.tiny_models import (
    TOKENIZERS,
    TOLERANCE,
    Oracle,
    Tiny,
    answers,
    build_tokenizer,
    scorer_for,
    values,
)

from biaskit.errors import ModelError, TokenizationError
from biaskit.models.huggingface import states
from biaskit.models.huggingface.preparing import Prepared
from biaskit.models.huggingface.scorer import TransformersScorer
from biaskit.models.token_trie import shared_length
from biaskit.records import Prompt, ScoreRequest, TargetWord

Models = Callable[..., Tiny]

PAIRS = (
    ("The nurse said that she would wait.", "The nurse said that he would wait."),
    ("She met the old nurse in town.", "He met the old nurse in town."),  # differs in its first token
    ("The waitress was tired.", "The waiter was tired."),  # the difference splits a token
    ("Die Lehrerin kam, und das Kind rief sie.", "Der Lehrer kam, und das Kind rief ihn."),
    ("The nurse met her", "The nurse met her brother and him too"),  # one begins the other
    ("The nurse is a woman who said that she will see her own brother in town again.", "The nurse is he."),
)
PREFIX = "Q: I met a nurse.\nA: I think"


def requests_of(pairs: Sequence[tuple[str, ...]] = PAIRS, prefix: str = "") -> list[ScoreRequest]:
    return [
        ScoreRequest(
            f"{prefix}{i}",
            Prompt(prefix, "sentence"),
            tuple(TargetWord(g, s) for g, s in zip(("female", "male", "diverse"), pair, strict=False)),
        )
        for i, pair in enumerate(pairs)
    ]


def differences(oracle: Oracle, requests: Sequence[ScoreRequest]) -> dict[str, float]:
    """Request → log P(first sentence) − log P(second), each over the whole text after the BOS."""
    found = {}
    for request in requests:
        between = " " if request.prompt.text else ""
        sums = []
        for target_word in request.target_words[:2]:
            ids = oracle.encode(f"{request.prompt.text}{between}{target_word.text}", add_special_tokens=False)
            text = (oracle.tokenizer.bos_token_id, *ids)
            with torch.no_grad():
                logits = oracle.model(input_ids=torch.tensor([text]), use_cache=False).logits[0]
            steps = logits.double().log_softmax(-1)
            sums.append(sum(float(steps[k, text[k + 1]]) for k in range(len(text) - 1)))
        found[request.key] = sums[0] - sums[1]
    return found


def errors(scorer: TransformersScorer, oracle: Oracle, requests: Sequence[ScoreRequest]) -> list[float]:
    found = answers(scorer, requests)
    expected = differences(oracle, requests)
    off = []
    for key, answer in found.items():
        first, second = answer.log_probs[:2]
        off.append(abs(first.high - second.high - expected[key]))
    return off


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize("architecture", ["gpt2", "mistral", "gemma2"])
def test_a_pair_differs_by_what_plain_forwards_of_both_sentences_say(
    tiny: Models, architecture: str, tokenizer: str
) -> None:
    model = tiny(architecture, tokenizer)
    requests = [*requests_of(), *requests_of(prefix=PREFIX)]
    expected = differences(model.oracle, requests)
    assert max(map(abs, expected.values())) > 1
    assert max(errors(scorer_for(model.folder, batch_size=5), model.oracle, requests)) < TOLERANCE


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_these_pairs_share_differ_at_once_and_split_a_token(tokenizer: str) -> None:
    encode = build_tokenizer(tokenizer)
    ids = [[tuple(encode(text)["input_ids"]) for text in pair] for pair in PAIRS]
    shared = [shared_length(pair) for pair in ids]
    assert min(shared) < 2 < max(shared)
    # One ends where the other goes on: its last token is not shared, so that neither is empty.
    assert all(len(text) > n for pair, n in zip(ids, shared, strict=True) for text in pair)


@pytest.mark.parametrize("architecture", ["gpt2", "gemma2"])
@pytest.mark.parametrize("off", ["_windows", "_extends"])
def test_without_trees_or_caches_each_sentence_has_a_forward_of_its_own(
    tiny: Models, architecture: str, off: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny(architecture, "bpe")
    scorer = scorer_for(model.folder, batch_size=5)
    whole = scorer._take

    def take(loaded: object, longest: Prepared | None) -> None:
        whole(loaded, longest)
        setattr(scorer, off, None if off == "_windows" else False)

    monkeypatch.setattr(scorer, "_take", take)
    assert max(errors(scorer, model.oracle, requests_of())) < TOLERANCE


def test_neither_batch_size_nor_order_changes_a_number(tiny: Models) -> None:
    model = tiny("gemma2", "llama2")
    requests = [*requests_of(), *requests_of(prefix=PREFIX)]
    expected = values(answers(scorer_for(model.folder, batch_size=4), requests))
    assert expected == values(answers(scorer_for(model.folder, batch_size=4), requests[::-1]))
    for batch_size in (1, 2, 64):
        shuffled = random.Random(batch_size).sample(requests, len(requests))
        found = values(answers(scorer_for(model.folder, batch_size=batch_size), shuffled))
        assert max(abs(found[key] - expected[key]) for key in expected) < TOLERANCE


def test_a_mask_of_another_row_is_noticed(tiny: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny("gpt2", "bpe")
    shape = states._mask

    def of_the_first(trie: object, *rest: object) -> torch.Tensor:
        mask = shape(trie, *rest)  # type: ignore[arg-type]
        mask[-1] = mask[0]
        return mask

    monkeypatch.setattr(states, "_mask", of_the_first)
    monkeypatch.setattr(TransformersScorer, "_tree_is_exact", lambda *_: True)
    assert max(errors(scorer_for(model.folder, batch_size=5), model.oracle, requests_of())) > 100 * TOLERANCE


def test_three_sentences_of_one_item(tiny: Models) -> None:
    model = tiny("gpt2", "bytes")
    three = [("She said so.", "He said so.", "They said so.")]
    found = values(answers(scorer_for(model.folder), requests_of(three)))
    two = values(answers(scorer_for(model.folder), requests_of([three[0][:2]])))
    assert len(found) == 3
    gap = [numbers["0", "She said so."] - numbers["0", "He said so."] for numbers in (found, two)]
    assert abs(gap[0] - gap[1]) < TOLERANCE


def test_what_cannot_be_told_apart_is_refused(tiny: Models) -> None:
    scorer = scorer_for(tiny("gpt2", "bpe").folder)
    with pytest.raises(TokenizationError, match="do not tell"):
        scorer.plan_scores(requests_of([("She said so.", "She said so.")]))
    top_k = scorer_for(tiny("gpt2", "bpe").folder, estimator="top-k")
    with pytest.raises(ModelError, match="sentence"):
        top_k.estimator_for("sentence")


def test_a_sentence_that_the_vocabulary_lacks_is_refused(tiny: Models) -> None:
    scorer = scorer_for(tiny("gpt2", "unigram").folder)
    [request] = requests_of([("Она ждёт.", "Он ждёт.")])
    with pytest.raises(TokenizationError, match="cannot write"):
        scorer.plan_scores([request])
