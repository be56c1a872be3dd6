"""The exact scorer against an oracle that shares nothing with it but the model's own forward."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain, combinations, pairwise
from typing import Any

import pytest
import torch
from fakes.tiny_models import (
    ARCHITECTURES,
    ASKED,
    CHAT_TEMPLATE,
    CHAT_TEMPLATE_WITHOUT_SYSTEM,
    KNEE,
    LONG,
    SHORT,
    TOKENIZERS,
    TOLERANCE,
    WINDOW,
    Oracle,
    Tiny,
    answers,
    asked_on,
    build_tokenizer,
    largest_error,
    raw_requests,
    scorer_for,
    target_words,
    values,
)
from hypothesis import given
from hypothesis import strategies as st

from biaskit.measures.probe.design import resolve
from biaskit.measures.probe.prompts import cells
from biaskit.models.conversation import CONTINUE_TEXT
from biaskit.models.huggingface import head
from biaskit.models.huggingface.prefixes import (
    COST_OF_A_FORWARD,
    COST_OF_A_PREFIX,
    PrefixBlock,
    cut_blocks,
    cut_forwards,
    shared_prefix_lengths,
)
from biaskit.models.huggingface.scorer import TransformersScorer
from biaskit.models.token_trie import TokenIds, build_trie, shortest_extensions
from biaskit.records import Failed, Prompt, PromptCell, Scored, ScoreRequest, TargetWord, Turn
from biaskit.runs.shares.cells import cell_shares
from biaskit.study.config import load_study

Models = Callable[..., Tiny]

# One tokenizer for each kind of difference between architectures.
COVERING = [
    ("gpt2", "bpe-bos"),
    ("mistral", "unigram"),
    ("gemma2", "llama2"),
    ("gemma3", "bpe"),
    ("cohere", "bytes"),
]


# --- any architecture, any tokenizer --------------------------------------------------------------


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_log_probabilities_are_those_of_plain_forwards(
    tiny: Models, architecture: str, tokenizer: str
) -> None:
    model = tiny(architecture, tokenizer)
    requests = raw_requests([*LONG[:2], *LONG[4:6]], asked_on(tokenizer)[2:])
    scorer = scorer_for(model.folder, batch_size=3)
    found = answers(scorer, requests)
    assert TOLERANCE > largest_error(found, requests, model.oracle)
    assert KNEE < model.oracle.largest_logit
    alone = sum(len(model.oracle.encode(request.prompt.text)) for request in requests)
    assert alone > scorer.plan_scores(requests).prompt_tokens - tokens_of_nodes(found)


def tokens_of_nodes(found: dict[str, Scored | Failed]) -> int:
    """Tokens that the inner nodes of the target words add to the prompts."""
    tries = [
        build_trie([e.token_ids or () for e in a.log_probs]) for a in found.values() if isinstance(a, Scored)
    ]
    return sum(len(trie.nodes) - 1 for trie in tries)


@pytest.mark.slow
@pytest.mark.parametrize(("architecture", "tokenizer"), COVERING)
def test_neither_batch_size_nor_order_nor_sharing_changes_a_number(
    tiny: Models, architecture: str, tokenizer: str
) -> None:
    model = tiny(architecture, tokenizer)
    asked = asked_on(tokenizer)
    requests = [
        *raw_requests([*LONG, SHORT], asked),
        *raw_requests([SHORT, LONG[0], LONG[0]], asked[:3], name="other target words "),
    ]
    for seed, batch_size in enumerate((1, 2, 3, 7, 64)):
        for share in (True, False):
            shuffled = random.Random(seed).sample(requests, len(requests))
            found = answers(scorer_for(model.folder, batch_size=batch_size, share_prefixes=share), shuffled)
            assert TOLERANCE > largest_error(found, requests, model.oracle)


@pytest.mark.parametrize("share", [True, False])
def test_the_order_of_requests_moves_not_even_the_last_digit(tiny: Models, share: bool) -> None:
    scorer = scorer_for(tiny("gemma2", "llama2").folder, batch_size=3, share_prefixes=share)
    requests = raw_requests([*LONG, SHORT], asked_on("llama2"))
    expected = values(answers(scorer, requests))
    assert expected == values(answers(scorer, requests[::-1]))
    assert expected == values(answers(scorer, random.Random(0).sample(requests, len(requests))))


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_the_prompts_and_target_words_of_these_tests_reach_past_every_window(tokenizer: str) -> None:
    encode = build_tokenizer(tokenizer)
    ids = [tuple(encode(text)["input_ids"]) for text in LONG]
    blocks = [b for b in cut_blocks(ids, [0] * len(ids), batch_size=3) if b.prefixes]
    assert blocks
    assert all(WINDOW < len(prefix) for b in blocks for prefix in b.prefixes)
    assert all(WINDOW < len(row.rest) for b in blocks for batch in b.batches for row in batch)
    # Rows of one batch that continue different prefixes: a wrong gather would show.
    assert any(1 < len({row.prefix for row in batch}) for b in blocks for batch in b.batches)
    own = [
        tuple(encode(f"{SHORT} {e.text}")["input_ids"])[len(encode(SHORT)["input_ids"]) :]
        for e in asked_on(tokenizer)
    ]
    assert WINDOW < max(len(sequence) for sequence in own)
    assert len({sequence[0] for sequence in own}) < len(own)


def test_a_target_word_shares_more_than_its_first_token_with_another() -> None:
    encode = build_tokenizer("bytes")
    own = [tuple(encode(f"{SHORT} {text}")["input_ids"])[len(encode(SHORT)["input_ids"]) :] for text in ASKED]
    trie = build_trie(own)
    parents = Counter(trie.parents)
    assert any(1 < parents[node] and 2 <= len(trie.nodes[node]) for node in range(len(trie.nodes)))


def test_the_output_head_is_exact_in_slices_of_the_vocabulary(
    tiny: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny("gemma2", "bpe")
    requests = raw_requests(LONG, asked_on("bpe"))
    monkeypatch.setattr(head, "SLICE_ELEMENTS", 500)  # of 496 tokens: some 3 rows by 150
    found = answers(scorer_for(model.folder, batch_size=3), requests)
    assert TOLERANCE > largest_error(found, requests, model.oracle)


def test_the_cells_of_a_study_with_debiasing_prompts_and_a_dialogue_agree(tiny: Models) -> None:
    model = tiny("gemma3", "bpe")
    chosen = {"jobs.select": "nurse,plumber", "templates.select": "1", "debiasing_prompts.select": "1"}
    design = resolve(load_study("mattern", {**chosen, "target_words.every": "pronoun-subject"}))
    requests = [
        ScoreRequest(str(i), prompt, asked) for i, (_, prompt, asked) in enumerate(cells(design, "m", "raw"))
    ]
    scorer = scorer_for(model.folder, batch_size=4)
    unshared = scorer_for(model.folder, batch_size=4, share_prefixes=False).plan_scores(requests)
    assert scorer.plan_scores(requests).prompt_tokens < 0.6 * unshared.prompt_tokens
    assert TOLERANCE > largest_error(answers(scorer, requests), requests, model.oracle)


# --- chat templates --------------------------------------------------------------------------------


def check_chat(model: Tiny, request: ScoreRequest, text: str, forms: Sequence[str], **options: Any) -> None:
    """The request is scored after exactly `text`, in exactly `forms`, as the oracle scores them."""
    scorer = scorer_for(model.folder, **options)
    answer = answers(scorer, [request])[request.key]
    assert isinstance(answer, Scored)
    assert text == answer.prompt
    assert list(forms) == [e.text for e in answer.log_probs]
    bos = model.oracle.tokenizer.bos_token_id
    prompt = model.oracle.encode(text, add_special_tokens=False)
    assert [bos] == [i for i in prompt if i == bos]
    assert len(prompt) == answer.answered.prompt_tokens
    for scored in answer.log_probs:
        expected = model.oracle.log_prob(text, scored.text, add_special_tokens=False)
        assert TOLERANCE > abs(expected - scored.high)


@pytest.mark.parametrize(
    ("architecture", "tokenizer"), [("llama", "bpe-bos"), ("gemma2", "llama2"), ("gpt2", "bytes")]
)
def test_a_template_that_writes_its_own_bos_gets_no_second_one(
    tiny: Models, architecture: str, tokenizer: str
) -> None:
    model = tiny(architecture, tokenizer, chat_template=CHAT_TEMPLATE)
    assert model.oracle.tokenizer("a")["input_ids"][0] == model.oracle.tokenizer.bos_token_id
    prompt = Prompt("Picture a nurse.", "chat-prefill", prefill="I think that")
    text = model.oracle.chat(("user", "Picture a nurse."), prefill="I think that")
    check_chat(model, ScoreRequest("k", prompt, target_words("He", "She")), text, [" He", " She"])


def test_at_the_start_of_a_turn_target_words_are_scored_with_and_without_a_space(tiny: Models) -> None:
    model = tiny("mistral", "bpe-bos", chat_template=CHAT_TEMPLATE)
    request = ScoreRequest("k", Prompt("Picture a nurse.", "chat-prefill"), target_words("He", "Non-binary"))
    text = model.oracle.chat(("user", "Picture a nurse."))
    check_chat(model, request, text, ["He", " He", "Non-binary", " Non-binary"])


def test_forms_that_are_the_same_tokens_are_scored_once(tiny: Models) -> None:
    # This tokenizer puts a "▁" before any piece of text: "He" and " He" after a special token are one.
    model = tiny("gemma", "unigram", chat_template=CHAT_TEMPLATE)
    request = ScoreRequest("k", Prompt("Picture a nurse.", "chat-prefill"), target_words("He", "She"))
    check_chat(model, request, model.oracle.chat(("user", "Picture a nurse.")), ["He", "She"])


def test_a_system_prompt_and_a_preamble_share_the_system_role(tiny: Models) -> None:
    model = tiny("qwen2", "bpe-bos", chat_template=CHAT_TEMPLATE)
    scorer = scorer_for(model.folder)
    assert scorer.identity.takes_system
    prompt = Prompt(
        "Picture a nurse.",
        "chat-prefill",
        system="Be brief.",
        preamble="A person is chatting.",
        turns=(Turn("How far is the sea?", "An hour."),),
        prefill="The nurse said that",
    )
    text = model.oracle.chat(
        ("system", "Be brief.\nA person is chatting."),
        ("user", "How far is the sea?"),
        ("assistant", "An hour."),
        ("user", "Picture a nurse."),
        prefill="The nurse said that",
    )
    check_chat(model, ScoreRequest("k", prompt, target_words("he", "she")), text, [" he", " she"])


def test_without_a_system_role_the_preamble_opens_the_first_user_turn(tiny: Models) -> None:
    model = tiny("gemma2", "bpe-bos", chat_template=CHAT_TEMPLATE_WITHOUT_SYSTEM)
    assert not scorer_for(model.folder).identity.takes_system
    prompt = Prompt(
        "Picture a nurse.",
        "chat-prefill",
        preamble="A person is chatting.",
        turns=(Turn("How far?", "An hour."),),
    )
    text = model.oracle.chat(
        ("user", "A person is chatting.\nHow far?"),
        ("assistant", "An hour."),
        ("user", "Picture a nurse."),
    )
    check_chat(
        model, ScoreRequest("k", prompt, target_words("He", "She")), text, ["He", " He", "She", " She"]
    )


def test_chat_continue_is_one_user_turn_that_holds_the_raw_prompt(tiny: Models) -> None:
    model = tiny("llama", "bytes", chat_template=CHAT_TEMPLATE_WITHOUT_SYSTEM)
    request = ScoreRequest("k", Prompt(SHORT, "chat-continue"), target_words("He", "Her"))
    text = model.oracle.chat(("user", f"{CONTINUE_TEXT}\n\n{SHORT}"))
    check_chat(model, request, text, ["He", " He", "Her", " Her"])


def test_chat_and_raw_prompts_are_answered_in_one_plan(tiny: Models) -> None:
    model = tiny("gemma3", "bpe-bos", chat_template=CHAT_TEMPLATE)
    asked = target_words("He", "She")
    requests = [
        *raw_requests(LONG[:3], asked),
        *(ScoreRequest(f"c{i}", Prompt(f"{i} nurses.", "chat-prefill"), asked) for i in range(3)),
    ]
    found = answers(scorer_for(model.folder, batch_size=2), requests)
    assert TOLERANCE > largest_error(found, requests[:3], model.oracle)
    for i in range(3):
        answer = found[f"c{i}"]
        assert isinstance(answer, Scored)
        for scored in answer.log_probs:
            text = model.oracle.chat(("user", f"{i} nurses."))
            expected = model.oracle.log_prob(text, scored.text, add_special_tokens=False)
            assert TOLERANCE > abs(expected - scored.high)


# --- word_boundary = word --------------------------------------------------------------------------


def log_prob_of_a_word(oracle: Oracle, text: str, target_word: str) -> float:
    """log P(target word, and the word ends there), by trying every token of the vocabulary after it."""
    tokenizer = oracle.tokenizer
    ids = oracle.encode(f"{text} {target_word}")
    total = oracle.log_prob(text, f" {target_word}")
    after = oracle.next_log_probs(ids)
    whole = tokenizer.decode(ids)
    ends = []
    for token in range(len(after)):
        if token >= len(tokenizer) or token in tokenizer.all_special_ids:
            ends.append(token)
            continue
        more = tokenizer.decode([*ids, token])
        # Half of a letter's bytes, shown as U+FFFD, goes on with the word.
        if more == whole or not (more[len(whole)].isalnum() or more[len(whole)] == "�"):
            ends.append(token)
    return total + float(torch.logsumexp(after[ends], 0))


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_a_word_boundary_counts_what_the_word_ends_with(tiny: Models, tokenizer: str) -> None:
    model = tiny("gemma2", tokenizer)
    requests = raw_requests([LONG[0], LONG[5], SHORT], target_words("He", "Her", "Non", "Nonbinary"))
    token = values(answers(scorer_for(model.folder, batch_size=2), requests))
    word = values(answers(scorer_for(model.folder, batch_size=2, word_boundary="word"), requests))
    for request in requests:
        for target_word in request.target_words:
            number = word[request.key, f" {target_word.text}"]
            assert TOLERANCE > abs(
                log_prob_of_a_word(model.oracle, request.prompt.text, target_word.text) - number
            )
            assert number < token[request.key, f" {target_word.text}"] - 0.01


# --- from log-probabilities to shares --------------------------------------------------------------

GROUPS = ("male", "female", "diverse")
SETS = {"male": ("He", "Him", "Man"), "female": ("Her", "Hers", "She"), "diverse": ("They", "The", "Them")}
CELL = PromptCell("tiny", "explicit", 1, "nurse", "female-dominated", None, 0, "plain", "raw")


def stored(answer: Any) -> dict[str, Any]:
    """The row of an answer, as far as shares depend on it."""
    return {
        "key": answer.key,
        "estimator": answer.estimator,
        "target_words": [
            {"group": e.group, "text": e.text, "log_prob": e.high, "token_ids": e.token_ids}
            for e in answer.log_probs
        ],
    }


def masses_by_hand(oracle: Oracle, text: str) -> dict[str, float]:
    """On bytes: each word's probability, without what a longer target word of another group takes.

    Every token is a letter, so that P(" He" and no "r") = P(" He") (1 - P("r" | " He")); inside a
    group "Her" holds "Hers", and "The" holds "They" and "Them".
    """

    def p(word: str) -> float:
        return math.exp(oracle.log_prob(text, f" {word}"))

    r_after_he = math.exp(float(oracle.next_log_probs(oracle.encode(f"{text} He"))[oracle.encode("r")[-1]]))
    return {
        "male": p("He") * (1 - r_after_he) + p("Him") + p("Man"),
        "female": p("Her") + p("She"),
        "diverse": p("The"),
    }


def test_masses_on_bytes_are_those_of_disjoint_events(tiny: Models) -> None:
    model = tiny("mistral", "bytes")
    asked = tuple(TargetWord(group, text) for group in GROUPS for text in SETS[group])
    requests = raw_requests([*LONG[:3], SHORT], asked)
    scorer = scorer_for(model.folder, batch_size=2)
    notes = "\n".join(scorer.plan_scores(requests).notes)
    assert "' He' (male) begins ' Her' (female)" in notes
    assert "' The' (diverse) begins ' They' (diverse): counted once" in notes
    for request in requests:
        found = cell_shares(CELL, stored(answers(scorer, requests)[request.key]), GROUPS)
        expected = masses_by_hand(model.oracle, request.prompt.text)
        total = math.fsum(expected.values())
        assert found.masses is not None
        assert found.shares is not None
        assert found.coverage is not None
        assert 1 >= found.coverage
        assert pytest.approx(total, rel=5 * TOLERANCE) == found.coverage
        for i, group in enumerate(GROUPS):
            assert pytest.approx(expected[group], rel=5 * TOLERANCE) == found.masses[i]
            assert pytest.approx(expected[group] / total, abs=5 * TOLERANCE) == found.shares[i]


def test_all_that_can_follow_covers_no_more_than_its_beginning(tiny: Models) -> None:
    model = tiny("gemma2", "bytes")
    letters = [chr(c) for c in range(33, 127)]
    asked = tuple(TargetWord(GROUPS[i % 3], letter) for i, letter in enumerate(letters))
    requests = raw_requests([LONG[0], SHORT], asked)
    found = answers(scorer_for(model.folder), requests)
    for request in requests:
        space = math.exp(model.oracle.log_prob(request.prompt.text, " "))
        coverage = cell_shares(CELL, stored(found[request.key]), GROUPS).coverage
        assert coverage is not None
        assert coverage < space
        after = model.oracle.next_log_probs(model.oracle.encode(f"{request.prompt.text} "))
        ids = [model.oracle.encode(letter)[-1] for letter in letters]
        assert pytest.approx(space * float(after[ids].exp().sum()), rel=TOLERANCE) == coverage


def test_swapping_two_sets_swaps_their_shares_and_moves_nothing_else(tiny: Models) -> None:
    model = tiny("llama", "bytes")
    swapped = {"male": SETS["female"], "female": SETS["male"], "diverse": SETS["diverse"]}
    shares = []
    for sets in (SETS, swapped):
        asked = tuple(TargetWord(group, text) for group in GROUPS for text in sets[group])
        found = answers(scorer_for(model.folder), raw_requests([LONG[2]], asked))
        shares.append(cell_shares(CELL, stored(next(iter(found.values()))), GROUPS).shares)
    male, female, diverse = shares[0] or ()
    assert pytest.approx((female, male, diverse), rel=TOLERANCE) == shares[1]
    assert male != female


# --- shared prefixes: whatever the prompts ----------------------------------------------------------

# Few letters and repeated stems, so that prompts agree in their first tokens, contain and equal one another.
stems = st.lists(st.integers(0, 2), max_size=24).map(tuple)
token_lists = st.lists(st.integers(0, 2), min_size=1, max_size=6).map(tuple)
prompt_lists = st.lists(stems, min_size=1, max_size=3).flatmap(
    lambda heads: st.lists(
        st.tuples(st.sampled_from(heads), token_lists).map(lambda p: p[0] + p[1]), max_size=14
    )
)


@given(prompt_lists, st.integers(0, 20))
def test_a_shared_beginning_is_a_beginning_and_leaves_a_token(prompts: list[TokenIds], cost: int) -> None:
    for prompt, length in zip(prompts, shared_prefix_lengths(prompts, cost_of_a_prefix=cost), strict=True):
        assert 0 <= length < len(prompt)


@given(prompt_lists, st.integers(0, 20))
def test_sharing_never_costs_more_than_computing_each_prompt_alone(
    prompts: list[TokenIds], cost: int
) -> None:
    lengths = shared_prefix_lengths(prompts, cost_of_a_prefix=cost)
    prefixes = {p[:n] for p, n in zip(prompts, lengths, strict=True) if n}
    shared = sum(len(p) + cost for p in prefixes) + sum(
        len(p) - n for p, n in zip(prompts, lengths, strict=True)
    )
    assert sum(len(p) for p in prompts) >= shared


@given(prompt_lists, st.randoms(use_true_random=False))
def test_what_a_prompt_shares_does_not_depend_on_the_order(
    prompts: list[TokenIds], rng: random.Random
) -> None:
    order = list(range(len(prompts)))
    rng.shuffle(order)
    expected = shared_prefix_lengths(prompts)
    assert [expected[i] for i in order] == shared_prefix_lengths([prompts[i] for i in order])


def test_a_long_beginning_is_shared_and_a_short_one_is_not() -> None:
    long, short = tuple(range(3 * COST_OF_A_PREFIX)), tuple(range(3))
    for beginning, expected in ((long, len(long)), (short, 0)):
        prompts = [(*beginning, 100 + i, 7) for i in range(2)]
        assert [expected, expected] == shared_prefix_lengths(prompts)


def test_a_text_that_grows_token_by_token_can_be_shared() -> None:
    prompts = [tuple(range(n)) for n in range(1, 1500)]
    assert len(prompts) == len(shared_prefix_lengths(prompts))


def contents(
    blocks: Sequence[PrefixBlock], prompts: Sequence[TokenIds], kinds: Sequence[int]
) -> Counter[Any]:
    """Batches as what they hold, whatever the numbers of their requests."""
    return Counter(
        tuple(sorted((prompts[row.index], kinds[row.index]) for row in batch))
        for block in blocks
        for batch in block.batches
    )


@given(
    prompt_lists.flatmap(
        lambda p: st.tuples(st.just(p), st.lists(st.integers(0, 1), min_size=len(p), max_size=len(p)))
    ),
    st.sampled_from([1, 2, 3, 7, 64]),
    st.booleans(),
    st.sampled_from([1, 30, 4096]),
    st.randoms(use_true_random=False),
)
def test_blocks_hold_every_prompt_once_in_batches_of_one_trie_by_length(
    asked: tuple[list[TokenIds], list[int]],
    batch_size: int,
    share: bool,
    block_tokens: int,
    rng: random.Random,
) -> None:
    prompts, kinds = asked
    blocks = cut_blocks(prompts, kinds, batch_size=batch_size, share=share, block_tokens=block_tokens)
    rows = [row for block in blocks for batch in block.batches for row in batch]
    assert list(range(len(prompts))) == sorted(row.index for row in rows)
    for block in blocks:
        assert share or not block.prefixes
        assert len(block.prefixes) <= batch_size
        assert len({len(prefix) for prefix in block.prefixes}) <= 1
        used = {row.prefix for batch in block.batches for row in batch}
        assert set(range(max(1, len(block.prefixes)))) == used
        for batch in block.batches:
            assert 1 <= len(batch) <= batch_size
            assert 1 == len({kinds[row.index] for row in batch})
            lengths = [len(row.rest) for row in batch]
            assert sorted(lengths, reverse=True) == lengths
            for row in batch:
                beginning = block.prefixes[row.prefix] if block.prefixes else ()
                assert prompts[row.index] == beginning + row.rest
                assert row.rest
    order = list(range(len(prompts)))
    rng.shuffle(order)
    others = [prompts[i] for i in order], [kinds[i] for i in order]
    again = cut_blocks(*others, batch_size=batch_size, share=share, block_tokens=block_tokens)
    assert contents(blocks, prompts, kinds) == contents(again, *others)


@given(st.lists(st.integers(1, 40), max_size=10), st.integers(0, 60))
def test_rows_are_cut_into_the_forwards_that_cost_least(widths: list[int], cost: int) -> None:
    """Beside every way of cutting them."""
    widths = sorted(widths, reverse=True)

    def of(ends: Sequence[int]) -> int:
        return sum(cost + (end - start) * widths[start] for start, end in pairwise([0, *ends]))

    parts = cut_forwards(widths, cost)
    assert list(range(len(widths))) == [row for part in parts for row in range(len(widths))[part]]
    inner, last = range(1, len(widths)), [len(widths)] if widths else []
    ways = chain.from_iterable(combinations(inner, n) for n in range(len(widths) or 1))
    assert min(of([*way, *last]) for way in ways) == of([part.stop for part in parts])


# --- the trie: whatever the target words --------------------------------------------------------------

distinct = st.lists(
    st.lists(st.integers(0, 3), min_size=1, max_size=5).map(tuple), min_size=1, max_size=9, unique=True
)


@given(distinct, st.booleans())
def test_the_steps_of_a_trie_are_the_tokens_of_its_sequences_one_by_one(
    sequences: list[TokenIds], ends: bool
) -> None:
    trie = build_trie(sequences, ends=ends)
    for s, steps in zip(sequences, trie.steps, strict=True):
        assert [(s[:k], s[k]) for k in range(len(s))] == [
            (trie.nodes[n], trie.token_ids[c]) for n, c in steps
        ]
    assert (sequences if ends else None) == (trie.ends and [trie.nodes[n] for n in trie.ends])


@given(distinct, st.booleans())
def test_a_trie_asks_the_model_at_proper_beginnings_and_nowhere_else(
    sequences: list[TokenIds], ends: bool
) -> None:
    trie = build_trie(sequences, ends=ends)
    proper = {s[:k] for s in sequences for k in range(len(s))}
    assert proper | (set(sequences) if ends else set()) == set(trie.nodes)
    assert len(trie.nodes) == len(set(trie.nodes))
    assert () == trie.nodes[0]
    for number, parent in enumerate(trie.parents[1:], start=1):
        assert trie.nodes[number][:-1] == trie.nodes[parent]
    assert list(range(1, len(trie.nodes))) == sorted(n for level in trie.levels for n in level)
    for depth, level in enumerate(trie.levels, start=1):
        assert all(depth == len(trie.nodes[n]) for n in level)
    assert len(trie.levels) == max(len(node) for node in trie.nodes)


@given(distinct, st.randoms(use_true_random=False))
def test_summing_along_a_trie_gives_what_each_sequence_gives_alone(
    sequences: list[TokenIds], rng: random.Random
) -> None:
    known: dict[tuple[TokenIds, int], float] = {}

    def log_prob(before: TokenIds, token: int) -> float:
        return known.setdefault((before, token), -rng.random())

    trie = build_trie(sequences)
    at_nodes = [[log_prob(node, token) for token in trie.token_ids] for node in trie.nodes]
    for s, steps in zip(sequences, trie.steps, strict=True):
        alone = math.fsum(log_prob(s[:k], s[k]) for k in range(len(s)))
        assert alone == math.fsum(at_nodes[n][c] for n, c in steps)


@given(distinct)
def test_shortest_extensions_are_the_next_longer_listed_sequences(sequences: list[TokenIds]) -> None:
    for s, found in zip(sequences, shortest_extensions(sequences), strict=True):
        longer = [o for o in sequences if len(o) > len(s) and o[: len(s)] == s]
        direct = [o for o in longer if not any(m != o and o[: len(m)] == m for m in longer)]
        assert sorted(direct) == sorted(sequences[i] for i in found)


# --- one forward for a trie -----------------------------------------------------------------------------


class ByLevels(TransformersScorer):
    """As for an architecture that takes no masks."""

    def _tree_is_exact(self, longest: object, windows: object, plain: object) -> bool:
        return False


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_trie_in_one_forward_and_level_by_level_are_the_same(
    tiny: Models, architecture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prompts of several lengths in one forward, some beyond a window, with a beginning and without."""
    monkeypatch.setitem(COST_OF_A_FORWARD, "cpu", 10**6)  # any padding rather than another
    model = tiny(architecture, "bytes")
    requests = raw_requests([*LONG[:3], SHORT], target_words("He", "Her", "She", "Nonbinary"))
    for kind in (TransformersScorer, ByLevels):
        for share in (True, False):
            scorer = scorer_for(model.folder, kind, batch_size=4, share_prefixes=share)
            found = answers(scorer, requests)
            assert TOLERANCE > largest_error(found, requests, model.oracle)
            assert (kind is TransformersScorer) == (scorer._windows is not None)
            assert any(1 < len({len(r.rest) for r in rows}) for _, rows in scorer._rows_of.values()) or share


class Refusing(TransformersScorer):
    """An architecture whose forward takes no masks of its own."""

    def _tree(self, *_: Any) -> Any:
        raise TypeError("unexpected keyword argument 'attention_mask'")


def test_an_architecture_that_refuses_a_mask_goes_level_by_level(tiny: Models) -> None:
    model = tiny("llama", "bpe")
    requests = raw_requests(LONG[:3], target_words("She", "Nonbinary"))
    found = answers(scorer_for(model.folder, Refusing, batch_size=4), requests)
    assert TOLERANCE > largest_error(found, requests, model.oracle)
