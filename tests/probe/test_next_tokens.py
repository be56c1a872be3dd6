"""What is said beside the target words: rows, table and the line below the printed table."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from fakes.tiny_models import LONG, SHORT, Tiny, answers, asked_on, raw_requests, scorer_for
from hypothesis import given
from hypothesis import strategies as st

import biaskit as bk
from biaskit.measures.probe.next_tokens import SaidNext, as_shown, next_tokens
from biaskit.measures.probe.prompts import scope_of_cell
from biaskit.models.huggingface.head import TopTokens
from biaskit.records import Estimator, PromptCell, Scored, ScoreRequest, TargetWord
from biaskit.report.next_tokens import in_words, the_rest
from biaskit.runs.score_rows import fault_of, row_of
from biaskit.runs.shares.cells import cell_shares

Row = dict[str, Any]


def cell(job: str = "nurse", group: str = "women's", model: str = "m") -> PromptCell:
    return PromptCell(model, "explicit", 1, job, group, None, 0, "plain", "raw")


CELLS = [cell("nurse"), cell("plumber", "men's"), cell(model="a"), cell(model="b")]
"""Models and groups of these tests in study order."""


def row(listed: Sequence[tuple[str, float, int]], *target_words: tuple[str, str, list[int], float]) -> Row:
    """A row of an exact model with probabilities instead of their logarithms."""
    return {
        "key": "k",
        "estimator": "exact",
        "target_words": [
            {"group": group, "text": text, "token_ids": ids, "log_prob": math.log(p)}
            for group, text, ids, p in target_words
        ],
        "listed_next": [[text, math.log(p), token] for text, p, token in listed],
    }


# --- against the whole distribution ---------------------------------------------------------------------


@pytest.mark.parametrize("boundary", ["token", "word"])
@pytest.mark.parametrize(
    ("architecture", "tokenizer"), [("gemma2", "llama2"), ("gpt2", "bpe-bos"), ("phi", "bytes")]
)
def test_listed_words_and_the_rest_are_all_there_is(
    tiny: Callable[..., Tiny], architecture: str, tokenizer: str, boundary: str
) -> None:
    """Every token is kept here: coverage and what is beyond it sum to one in every cell."""
    model = tiny(architecture, tokenizer)
    requests = raw_requests([*LONG, SHORT], asked_on(tokenizer))
    size = model.oracle.next_log_probs(model.oracle.encode(SHORT)).numel()
    found = answers(
        scorer_for(model.folder, batch_size=3, next_tokens=size, word_boundary=boundary), requests
    )
    begun = 0
    for request in requests:
        stored = stored_row(found[request.key], request)
        shares = cell_shares(
            cell(), stored, tuple({e.group: 0 for e in request.target_words}), word_boundary=boundary
        )
        said = next_tokens(stored, boundary)
        assert said is not None
        assert shares.coverage is not None
        left = math.fsum(one.beyond or 0.0 for one in said.tokens)
        assert pytest.approx(1.0, abs=1e-5) == shares.coverage + left
        oracle = model.oracle.next_log_probs(model.oracle.encode(request.prompt.text)).exp()
        for (_, _, token), one in zip(stored["listed_next"], said.tokens, strict=True):
            assert pytest.approx(float(oracle[token]), abs=1e-5) == one.probability
        begun += sum(bool(one.begins) for one in said.tokens)
    assert begun


def stored_row(answer: Any, request: ScoreRequest) -> Row:
    assert isinstance(answer, Scored), answer
    made: Row = json.loads(json.dumps(row_of(answer, scope_of_cell(cell()), request.prompt, Estimator())))
    assert fault_of(made, request.target_words) is None
    return made


def test_twenty_are_the_twenty_most_probable_in_every_batch(tiny: Callable[..., Tiny]) -> None:
    model = tiny("gemma2", "llama2")
    requests = raw_requests([*LONG, SHORT], asked_on("llama2"))
    for size in (1, 3, 64):
        found = answers(scorer_for(model.folder, batch_size=size, next_tokens=20), requests)
        for request in requests:
            answer = found[request.key]
            assert isinstance(answer, Scored)
            assert answer.listed_next is not None
            best = model.oracle.next_log_probs(model.oracle.encode(request.prompt.text)).topk(20)
            assert best.indices.tolist() == [one.id for one in answer.listed_next]
            assert 20 == len({one.text for one in answer.listed_next})


@given(st.integers(1, 5), st.integers(1, 12), st.integers(1, 40), st.integers(1, 15), st.integers(0, 2**31))
def test_a_list_over_slices_is_that_of_the_whole(
    rows: int, k: int, tokens: int, width: int, seed: int
) -> None:
    chance = torch.Generator().manual_seed(seed)
    logits = torch.randint(-5, 6, (rows + 2, tokens), generator=chance).float()
    kept = TopTokens(rows, k)
    for start in range(0, tokens, width):
        kept.add(start, logits[:, start : start + width])
    kept.normalise(logits.double().logsumexp(1))
    whole = logits.double().log_softmax(1)[:rows]
    for own, listed in zip(whole, kept.tokens(), strict=True):
        assert listed is not None
        assert min(k, tokens) == len(listed) == len(dict(listed))
        assert sorted(own.tolist(), reverse=True)[:k] == pytest.approx([value for _, value in listed])
        assert [own[token].item() for token, _ in listed] == pytest.approx([value for _, value in listed])


def test_nothing_is_kept_where_nothing_is_asked_for(tiny: Callable[..., Tiny]) -> None:
    model = tiny("gemma2", "llama2")
    requests = raw_requests([SHORT], asked_on("llama2"))
    with_it, without = (
        answers(scorer_for(model.folder, next_tokens=n), requests)[requests[0].key] for n in (20, 0)
    )
    assert isinstance(with_it, Scored)
    assert isinstance(without, Scored)
    assert without.listed_next is None
    assert with_it.log_probs == without.log_probs


@pytest.mark.parametrize("kept", [0, 3])
def test_a_study_says_how_many_are_kept(kept: int, tiny: Callable[..., Tiny], tmp_path: Path) -> None:
    spec, asked = f"m=hf:{tiny('gemma2', 'llama2').folder}", {"jobs": "nurse", "templates": "1"}
    keys = {"record_next": kept, "bias_type": "explicit"}
    run = bk.probe(spec, **asked, settings=keys, out=tmp_path / "run", watcher=bk.Silent())
    rows = map(json.loads, (run.path / "probe.jsonl").read_text("ascii").splitlines())
    assert [kept] == [len(row.get("listed_next", ())) for row in rows]
    assert run.next.empty == (not kept)


# --- over cells -------------------------------------------------------------------------------------------


def test_a_token_s_mean_is_over_all_cells_and_bounded_where_it_is_not_listed() -> None:
    said = SaidNext()
    said.add(cell("nurse"), row([(" She", 0.5, 1), ("A", 0.2, 2)], ("female", " She", [1], 0.5)), "token")
    said.add(
        cell("plumber", "men's"),
        row([(" She", 0.4, 1), ("B", 0.3, 3)], ("female", " She", [1], 0.4)),
        "token",
    )
    rows = said.rows(CELLS)
    every = [one for one in rows if one["job_group"] == "all"]
    assert ['" She"', '"B"', '"A"'] == [one["token"] for one in every]
    she, b, a = every
    assert (0.45, 0.45, 0.0, 2, 2, "female") == pytest.approx(
        (
            she["probability"],
            she["probability_high"],
            she["beyond"],
            she["n_prompts"],
            she["n_prompts_kept"],
            she["listed_group"],
        )
    )
    # A in the second cell is at most B's 0.3 and at most what is left, 0.3.
    assert (0.1, 0.25, 0.1, 1) == pytest.approx(
        (a["probability"], a["probability_high"], a["beyond"], a["n_prompts"])
    )
    assert (0.15, 0.25) == pytest.approx(
        (b["probability"], b["probability_high"])
    )  # 0.2 at most in the first
    assert ["all", "women's", "men's"] == list(dict.fromkeys(one["job_group"] for one in rows))


def test_what_goes_on_as_another_word_is_beyond_and_a_listed_one_is_not() -> None:
    said = next_tokens(
        row(
            [(" f", 0.6, 7), ("x", 0.1, 9)],
            ("female", " female", [7, 8], 0.25),
            ("diverse", " fluid", [7, 5], 0.05),
        ),
        "token",
    )
    assert said is not None
    first, other = said.tokens
    assert {"female", "diverse"} == first.begins
    assert pytest.approx(0.3) == first.beyond
    assert pytest.approx(0.1) == other.beyond


def test_of_a_server_s_list_what_follows_a_beginning_is_not_known() -> None:
    listed = {"": [[" She", math.log(0.5)], [" fem", math.log(0.2)], [" The", math.log(0.1)]]}
    stored = {
        "key": "k",
        "estimator": "top-k",
        "k": 3,
        "listed": listed,
        "target_words": [
            {"group": "female", "text": " She", "tokens": [" She"], "low": 0, "high": 0},
            {"group": "female", "text": " female", "tokens": [" fem", "ale"], "low": None, "high": -1},
        ],
    }
    said = SaidNext()
    said.add(cell(), stored, "token")
    rows = [one for one in said.rows(CELLS) if one["job_group"] == "all"]
    assert [0.0, None, pytest.approx(0.1)] == [one["beyond"] for one in rows]
    assert ["", "a target word may go on from this token: top-k does not see how far", ""] == [
        one["reason"] for one in rows
    ]
    assert [("“The”", pytest.approx(0.1))] == the_rest(rows)


def test_rows_that_keep_no_list_leave_no_table() -> None:
    said = SaidNext()
    said.add(cell(), {**row([], ("female", " She", [1], 0.5)), "listed_next": []}, "token")
    drawn = {"estimator": "sampling", "target_words": [], "samples": 3, "counts": {}, "key": "k"}
    said.add(cell(), drawn, "token")
    assert [] == said.rows(CELLS)


def test_memory_grows_with_tokens_and_the_table_is_bounded() -> None:
    said = SaidNext()
    for i in range(300):
        said.add(
            cell(f"job {i}"),
            row([(f"t{i}", 0.1, i), (" She", 1e-4, 999)], ("female", " She", [999], 1e-4)),
            "token",
        )
    rows = [one for one in said.rows(CELLS) if one["job_group"] == "all"]
    assert 21 == len(rows)  # twenty, and what begins a target word though it is less probable
    assert {'" She"'} <= {one["token"] for one in rows}


# --- in words ---------------------------------------------------------------------------------------------


def test_tokens_stand_in_quotes_and_hide_nothing() -> None:
    assert '"\\n"' == as_shown("\n")
    assert '"=1+1"' == as_shown("=1+1")
    assert '"\\\\n"' == as_shown("\\n")
    assert "\u202e" not in as_shown("a\u202eb")
    assert ["a line break", "a space", "an end of text", "“The”", "“The”", "“\\\\n”"] == [
        in_words(as_shown(text)) for text in ("\n", " ", "", " The", "The", "\\n")
    ]


@pytest.mark.parametrize(
    "broken", [None, "x", [["a", -1.0]], [["a", "b", 1]], [["a", 0.5, 1]], [["a", -1.0, 1.5]], [[1, -1.0, 2]]]
)
def test_a_list_that_is_none_is_not_believed(broken: object) -> None:
    stored = {**row([], ("female", "She", [1], 0.5)), "prompt": "", "listed_next": broken}
    assert "listed_next" in str(fault_of(stored, (TargetWord("female", "She"),)))


@given(st.permutations(range(12)))
def test_the_order_of_the_rows_changes_no_digit(order: list[int]) -> None:
    def told(places: Sequence[int]) -> list[Row]:
        said = SaidNext()
        for i in places:
            listed = [("A", 0.1 / (i + 1), 2), ("B", 0.3 / (i + 3), 3), (f"t{i}", 0.01, 9 + i)]
            who = cell("nurse" if i % 2 else "plumber", "women's" if i % 2 else "men's", "ab"[i % 3 % 2])
            said.add(who, row(listed, ("female", " A", [2], 0.05 / (i + 1))), "token")
        return said.rows(CELLS)

    assert told(range(12)) == told(order)
