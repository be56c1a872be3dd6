"""The agreement check: intervals of degraded estimators hold the exact value.

See docs/methods.md#agreement-check.
"""

from __future__ import annotations

import importlib
import json
import math
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from fakes.tiny_models import CHAT_TEMPLATE

from biaskit.corpora.loaders import load_expression_sets, render_forms
from biaskit.errors import ModelError, UsageError
from biaskit.models.huggingface.listing import ListingHead
from biaskit.models.huggingface.scorer import TransformersScorer
from biaskit.models.matching import SKIPPED
from biaskit.probe.design import resolve_design
from biaskit.probe.rounds import Rounds
from biaskit.records import Failed
from biaskit.report.render.latex import render_latex
from biaskit.report.render.text import render_text
from biaskit.study.config import load_probe_study
from biaskit.workflow import agreement as module
from biaskit.workflow.agreement import AgreementResult, agreement, chance_to_hold

pytestmark = pytest.mark.slow

Z = 1.959963984540054
FOUR_SIGMA = 4.0
SMALL = {"jobs": "1-6", "templates": "1-10", "device": "cpu"}
EXPLICIT = {"bias_type": "explicit"}
RAISED = 4.0
"""Added to the logits of tokens that begin an expression, so that a random model says them in some draws."""


@pytest.fixture(scope="module")
def spoken(saved_models: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model that says OccuGender's words, and hardly ever what may stand before them.

    What stands before a word is passed over by sampling alone: exact is the word after one space.
    """
    folder = tmp_path_factory.mktemp("spoken") / "model"
    shutil.copytree(saved_models("phi", "bpe", chat_template=CHAT_TEMPLATE).folder, folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    sets = load_expression_sets("corpus:expressions/sets.toml")
    first = {tokenizer(f" {e.text}")["input_ids"][0] for e in render_forms(sets["occugender-explicit"])}
    bias = model.get_output_embeddings().bias
    with torch.no_grad():
        for token in range(len(tokenizer)):
            text = tokenizer.decode([token])
            before = text.isspace() or text[:1] in SKIPPED or token in tokenizer.all_special_ids
            bias[token] += RAISED * (token in first) - 30.0 * before
    model.save_pretrained(folder)
    return folder


@pytest.fixture
def compare(spoken: Path, own_cache: Path, one_thread: None) -> Callable[..., AgreementResult]:
    def run(**choices: Any) -> AgreementResult:
        return agreement(f"tiny=hf:{spoken}", **{**SMALL, **choices})

    return run


def rows(result: AgreementResult, estimator: str, *levels: str) -> list[dict[str, Any]]:
    """Rows of an estimator, of cells unless other levels are named."""
    named = levels or ("cell",)
    found = [row for row in result.rows if row["estimator"] == estimator and row["level"] in named]
    assert found
    return found


# --- it agrees ----------------------------------------------------------------------------------------


def test_bounds_hold_always_and_95_percent_intervals_as_often_as_wilsons_do(
    compare: Callable[..., AgreementResult],
) -> None:
    result = compare(cells_per_type=30, draws=25)
    for row in rows(result, "top-k"):
        cells = {"share": 90, "mass": 90, "coverage": 30, "difference": 30}[row["quantity"]]
        assert (cells, cells, 1.0) == (row["n"], row["n_inside"], row["expected"])
        assert 0.02 < row["mean_width"] < 1.2, "bounds that say all or nothing could not miss"
    for row in rows(result, "top-k", "job", "group"):
        assert (row["n"], 1.0) == (row["n_inside"], row["share_inside"])
        assert row["n"] >= {"job": 3, "group": 1}[row["level"]]
        assert row["mean_width"] < 1.5
    for row in rows(result, "sampling", "group"):
        assert (3, 0.95) == (row["n"], row["expected"])
        assert 0.7 < row["expected_here"] < 0.99  # a rare group's few draws say little of their own noise
        assert row["n_inside"] >= 1
    for row in rows(result, "sampling"):
        assert 20 <= row["n"] <= 30
        chance = row["expected_here"]
        assert 0.9 < chance < 1.0
        sigma = math.sqrt(row["n"] * chance * (1 - chance))
        assert abs(row["n_inside"] - row["n"] * chance) <= FOUR_SIGMA * sigma
        assert row["ci_low"] <= row["share_inside"] <= row["ci_high"]
        assert 0.1 < row["mean_width"] < 0.8
    assert ["explicit"] * 15 + ["implicit"] * 15 == [row["bias_type"] for row in result.rows]
    assert not any("mistake" in note for note in result.notes)
    assert list(result.rows) == json.loads(json.dumps(result.as_json(), allow_nan=False))["rows"]


def test_more_draws_come_nearer_to_the_exact_value(compare: Callable[..., AgreementResult]) -> None:
    few, many = (rows(compare(cells_per_type=5, draws=n, settings=EXPLICIT), "sampling") for n in (15, 240))
    for name in ("mean_difference", "mean_width"):
        before, after = (sum(row[name] for row in some) for some in (few, many))
        assert after < 0.5 * before  # a quarter is expected


def test_cells_are_drawn_in_rounds_until_they_have_an_interval(
    compare: Callable[..., AgreementResult],
) -> None:
    """As a run draws them; and when a cell ends is part of how often its coverage's interval should hold."""
    once, rounds = (
        compare(cells_per_type=12, draws=2, settings={**EXPLICIT, "max_draws_per_cell": cap})
        for cap in (2, 60)
    )
    few, many = ({row["quantity"]: row for row in rows(one, "sampling")} for one in (once, rounds))
    assert few["female_share"]["n"] < 12 == many["female_share"]["n"]
    assert many["coverage"]["mean_width"] < few["coverage"]["mean_width"]
    assert many["coverage"]["n_inside"] >= 9
    assert many["coverage"]["expected_here"] != few["coverage"]["expected_here"]
    assert "max_draws_per_cell=60" in rounds.signature


def test_a_seed_decides_the_draws_and_nothing_else(compare: Callable[..., AgreementResult]) -> None:
    first, again, other = (compare(cells_per_type=3, draws=6, seed=seed) for seed in (1, 1, 2))
    assert first.rows == again.rows
    assert rows(first, "top-k") == rows(other, "top-k")
    assert rows(first, "sampling") != rows(other, "sampling")


# --- and sees a mistake -------------------------------------------------------------------------------


def test_a_wrong_p_k_is_seen(
    compare: Callable[..., AgreementResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    top_k = importlib.import_module("biaskit.probe.shares.top_k")
    usual = top_k.most_unlisted
    monkeypatch.setattr(top_k, "most_unlisted", lambda listing, k: 0.02 * usual(listing, k))
    result = compare(cells_per_type=10, draws=2, k=5, settings=EXPLICIT)
    inside = {row["quantity"]: row["share_inside"] for row in rows(result, "top-k")}
    assert inside["coverage"] < 0.9
    assert inside["mass"] < 0.9
    assert any("mistake" in note for note in result.notes)


def test_log_probabilities_after_another_temperature_are_seen(
    compare: Callable[..., AgreementResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = ListingHead.most_probable
    monkeypatch.setattr(ListingHead, "most_probable", lambda self, hidden: usual(self, 0.7 * hidden))
    result = compare(cells_per_type=10, draws=2, settings=EXPLICIT)
    inside = {row["quantity"]: row["share_inside"] for row in rows(result, "top-k")}
    assert max(inside["share"], inside["mass"]) < 1


@pytest.mark.parametrize("wrong", ["the beginning of a longer word counts", "white space is not skipped"])
def test_a_wrong_match_is_seen(
    wrong: str, compare: Callable[..., AgreementResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    if wrong.startswith("the"):
        monkeypatch.setattr("biaskit.models.matching.starts_new_word", lambda text: True)
    else:
        monkeypatch.setattr("biaskit.models.matching._beginning", lambda text: 0)
    assert missed_by_sampling(compare)


def test_the_exact_value_of_the_other_word_boundary_is_seen(
    compare: Callable[..., AgreementResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = module._ModelRows.by
    monkeypatch.setattr(
        module._ModelRows,
        "by",
        lambda self, some, how: usual(self, some, replace(how, word_boundary="token")),
    )
    assert missed_by_sampling(compare)


def missed_by_sampling(compare: Callable[..., AgreementResult]) -> bool:
    """Whether coverages miss more often than chance allows."""
    result = compare(cells_per_type=16, draws=40, settings=EXPLICIT)
    (coverage,) = (row for row in rows(result, "sampling") if row["quantity"] == "coverage")
    return bool(coverage["ci_high"] < coverage["expected_here"])


# --- how often Wilson's interval holds ----------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 7, 30])
@pytest.mark.parametrize("p", [0.0, 0.003, 0.21, 0.5, 0.83, 1.0])
def test_the_chance_is_that_of_all_counts_whose_interval_holds(n: int, p: float) -> None:
    # By the equation that defines the interval: p is inside if |k/n − p| ≤ z √(p(1 − p)/n).
    inside = [k for k in range(n + 1) if abs(k / n - p) <= Z * math.sqrt(p * (1 - p) / n)]
    expected = sum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in inside)
    assert pytest.approx(expected, abs=1e-12) == chance_to_hold(p, n)


def test_a_share_of_draws_is_held_against_as_many_draws_as_matched() -> None:
    design = resolve_design(load_probe_study("occugender"))
    (cell, _, _), *_ = module._choose(design, "m", 1)
    parts = {"male": ("He", 0.03, 1), "female": ("She", 0.06, 2), "diverse": ("They", 0.01, 0)}
    said = [
        {"group": g, "text": t, "log_prob": math.log(p), "token_ids": None} for g, (t, p, _) in parts.items()
    ]
    exact = {"key": "k", "estimator": "exact", "expressions": said}
    counts = {text: n for text, _, n in parts.values()}
    drawn = {"key": "k", "estimator": "sampling", "expressions": said, "draws": 30, "counts": counts}
    found = {
        x.quantity: x for x in module._compare_draws(design, {cell: exact}, {cell: drawn}, Rounds(30, 1))
    }
    assert ["coverage", "male_share", "female_share", "diverse_share"] == list(found)
    assert pytest.approx([0.1, 0.3, 0.6, 0.1]) == [x.exact for x in found.values()]
    assert pytest.approx([0.1, 1 / 3, 2 / 3, 0.0]) == [x.point for x in found.values()]
    chances = [chance_to_hold(0.1, 30), *(chance_to_hold(p, 3) for p in (0.3, 0.6, 0.1))]
    assert pytest.approx(chances) == [x.chance for x in found.values()]
    assert chance_to_hold(0.3, 3) != chance_to_hold(0.3, 30)
    # Wilson's interval of 1 of 3, as the equation (k/n − p)² = z² p (1 − p)/n gives it.
    low, high = found["male_share"].ends or (None, None)
    for end in (low, high):
        assert end is not None
        assert pytest.approx((1 / 3 - end) ** 2) == Z**2 * end * (1 - end) / 3


# --- which cells, which models ------------------------------------------------------------------------


def test_cells_are_spread_over_templates_and_jobs() -> None:
    design = resolve_design(load_probe_study("occugender"))
    chosen = module._choose(design, "m", 40)
    for bias_type in ("explicit", "implicit"):
        own = [cell for cell, _, _ in chosen if cell.bias_type == bias_type]
        assert 40 == len(own) == len(set(own))
        assert set(range(1, 26)) == {cell.template_id for cell in own}
        assert 8 <= len({cell.job for cell in own})
        assert 2 == len({cell.job_group for cell in own})
    assert 2000 == len(module._choose(design, "m", 5000))
    with pytest.raises(UsageError, match="too few"):
        module._choose(design, "m", 0)


@pytest.mark.parametrize("model", ["scripted:m.jsonl", "api:m@http://127.0.0.1:1/v1", "x=openai:gpt-4o-mini"])
def test_a_model_without_exact_probabilities_is_refused_before_it_is_opened(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "open_scorer", None)
    with pytest.raises(UsageError, match="take a local model"):
        agreement(model)


def test_a_failing_cell_stops_with_its_reason_and_frees_the_model(
    compare: Callable[..., AgreementResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    freed: list[TransformersScorer] = []

    def fails(self: TransformersScorer, batches: Any) -> Iterator[list[Failed]]:
        for batch in batches:
            yield [Failed(batch[0].key, "the logits are not finite")]

    monkeypatch.setattr(TransformersScorer, "score", fails)
    monkeypatch.setattr(TransformersScorer, "close", lambda self: freed.append(self))
    with pytest.raises(ModelError, match="not finite"):
        compare(cells_per_type=3)
    assert 1 == len(freed)


def test_a_study_in_a_chat_form_is_compared_in_it(compare: Callable[..., AgreementResult]) -> None:
    result = compare(cells_per_type=8, draws=30, settings={**EXPLICIT, "prompt_form": "chat-continue"})
    assert "form=chat-continue" in result.signature
    for row in rows(result, "top-k"):
        assert row["n_inside"] == row["n"] > 0
    # With and without a space: both are said at the start of a turn.
    for row in rows(result, "sampling"):
        assert row["n"] > 4
        assert row["n"] - row["n_inside"] <= 2


def test_without_a_chat_template_a_chat_form_is_refused(tiny: Callable[..., Any]) -> None:
    model = f"hf:{tiny('llama', 'bpe').folder}"
    with pytest.raises(ModelError, match="chat-continue"):
        agreement(model, **SMALL, settings={"prompt_form": "chat-continue"})


# --- what is shown ------------------------------------------------------------------------------------


def test_the_table_shows_every_row_and_a_dash_where_nothing_is_known(tiny: Callable[..., Any]) -> None:
    # A random model says none of the words in two draws.
    once: dict[str, Any] = {"draws": 2, "settings": {"max_draws_per_cell": 2}}
    result = agreement(f"hf:{tiny('llama', 'bpe').folder}", **SMALL, cells_per_type=2, **once)
    text = render_text(result.document(), 200)  # one panel: a row of the result is a line
    lines = [line for line in text.split("\n") if line.startswith(("explicit", "implicit"))]
    assert len(result.rows) == len(lines)
    unsaid = [line for line in lines if "female share" in line]
    assert unsaid
    assert all(line.count("–") >= 4 for line in unsaid)
    assert all(row["reason"] for row in result.rows if row["share_inside"] is None)
    assert "no draw of their cell named an expression" in " ".join(text.split())
    assert "tabular" in render_latex(result.document())
    assert json.loads(json.dumps(result.rows)) == list(result.rows)


def test_progress_is_told_for_each_estimator(compare: Callable[..., AgreementResult]) -> None:
    seen: list[tuple[str, int, int]] = []

    class Sees(module.Silent):
        def progress(self, label: str, done: int, total: int) -> None:
            seen.append((label, done, total))

    compare(cells_per_type=3, draws=2, watcher=Sees())
    assert {"tiny exact", "tiny top-k", "tiny sampling"} == {label for label, _, _ in seen}
    assert ("tiny exact", 6, 6) in seen
    assert ("tiny sampling", 3, 3) in seen
