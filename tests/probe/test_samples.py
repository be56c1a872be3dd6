"""Samples and lists instead of log-probabilities: from stored rows to tables and texts.

See methods/estimators#sampling-estimator.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from biaskit.measures.probe.analysis import tables
from biaskit.measures.probe.ask import ask
from biaskit.measures.probe.design import ProbeDesign, resolve
from biaskit.measures.probe.study import ProbeStudy
from biaskit.models.scripted import ScriptedScorer
from biaskit.records import Estimator, LogProb, PromptCell, PromptFormat, Scored, ScoreRequest
from biaskit.runs.session import Session
from biaskit.runs.shares.cells import cell_shares
from biaskit.stats.proportions import se_of_mean
from biaskit.study.config import load_as
from biaskit.tables.io import read_table_rows

CELL = PromptCell("api", "explicit", 1, "nurse", "female-dominated", None, 0, "plain", "raw")
GROUPS = ("male", "female", "diverse")
TEXTS = {"He": "male", "he": "male", "She": "female", "They": "diverse"}


def drawn(n: int, **counts: int) -> dict[str, Any]:
    """A stored row of `sampling`: every target word once, without its boundary."""
    return {
        "key": "a" * 32,
        "estimator": "sampling",
        "target_words": [
            {"group": group, "text": text, "log_prob": None, "token_ids": None}
            for text, group in TEXTS.items()
        ],
        "samples": n,
        "counts": dict.fromkeys(TEXTS, 0) | counts,
    }


# --- one cell ---------------------------------------------------------------------------------------


def test_a_share_is_of_the_samples_that_matched_and_coverage_of_all() -> None:
    found = cell_shares(CELL, drawn(20, He=2, he=1, She=5), GROUPS)
    assert (3 / 8, 5 / 8, 0.0) == found.shares
    assert pytest.approx((3 / 20, 5 / 20, 0.0)) == found.masses
    assert (8 / 20, 8, None) == (found.coverage, found.matched, found.reason)
    assert found.difference_ends is None


def test_its_ends_are_wilsons_on_the_matched_samples() -> None:
    found = cell_shares(CELL, drawn(20, He=3, She=5), GROUPS)
    assert found.share_ends is not None
    z = stats.norm.ppf(0.975)
    for k, n, ends in [
        (3, 8, found.share_ends[0]),
        (5, 8, found.share_ends[1]),
        (0, 8, found.share_ends[2]),
        (8, 20, found.coverage_ends),
    ]:
        # The ends are the p whose distance from k/n is z standard errors of p.
        for end in ends or ():
            assert end is not None
            assert abs(k / n - end) == pytest.approx(z * math.sqrt(end * (1 - end) / n), abs=1e-12)


def test_without_a_matched_draw_there_is_no_share_but_a_coverage() -> None:
    found = cell_shares(CELL, drawn(10), GROUPS)
    assert (None, None, "no sample matched") == (found.shares, found.share_ends, found.reason)
    assert ((0.0, 0.0, 0.0), 0.0, 0) == (found.masses, found.coverage, found.matched)
    assert found.coverage_ends is not None
    assert 0.0 == found.coverage_ends[0] < found.coverage_ends[1] < 0.3


# --- the standard error of a mean -------------------------------------------------------------------


def test_the_error_of_a_mean_is_that_of_repeated_samples() -> None:
    rng = np.random.default_rng(1)
    p, k = rng.uniform(0.1, 0.9, 30), rng.integers(2, 12, 30)
    repeated = rng.binomial(k, p, (20_000, 30)) / k
    estimated = [se_of_mean(shares, k.astype(float))[0] or 0.0 for shares in repeated[:4000]]
    assert np.mean(np.square(estimated)) == pytest.approx(repeated.mean(axis=1).var(), rel=0.03)


def test_cells_of_one_matched_draw_are_left_out_and_counted() -> None:
    found, reason = se_of_mean(np.array([0.5, 0.25, 1.0]), np.array([3.0, 5.0, 1.0]))
    assert found == pytest.approx(math.sqrt(0.25 / 2 + 0.1875 / 4) / 2)
    assert "se_sampling over 2 of 3 prompts, the others have one match" == reason
    assert (0.0, None) == se_of_mean(np.array([1.0, 0.0]), np.array([4.0, 2.0]))


def test_without_two_matched_samples_anywhere_there_is_no_error_of_the_mean() -> None:
    nothing = np.array([1.0])
    assert (None, "no prompt with two matched samples: no se_sampling") == se_of_mean(nothing, nothing)
    assert (None, None) == se_of_mean(np.empty((2, 0)), np.empty((2, 0)))


# --- a run of three models by three estimators ------------------------------------------------------

HE, SHE = math.log(0.3), math.log(0.45)


class Degraded(ScriptedScorer):
    """A scripted model by another estimator than its own."""

    estimator = Estimator("exact")

    def estimator_for(self, prompt_format: PromptFormat) -> Estimator:
        return self.estimator

    def _answer(self, request: ScoreRequest) -> Any:
        exact = super()._answer(request)
        assert isinstance(exact, Scored)
        if self.estimator.name == "top-k":
            listed = {"": ((" She", SHE), (" He", HE), (" the", math.log(0.05)))}
            none = tuple(LogProb(e.group, " " + e.text, None, math.log(0.05)) for e in request.target_words)
            return replace(exact, estimator="top-k", log_probs=none, listed=listed)
        if self.estimator.name == "sampling":
            nurse = "nurse" in request.prompt.text
            counts = {e.text: 0 for e in request.target_words} | {"She": 6 if nurse else 1}
            counts |= {"He": 2} if nurse else {}
            none = tuple(LogProb(e.group, e.text, None, None) for e in request.target_words)
            return replace(exact, estimator="sampling", log_probs=none, samples=10, counts=counts)
        return exact


ESTIMATORS = {
    "exact": Estimator("exact"),
    "listing": Estimator("top-k", k=3),
    "drawing": Estimator("sampling", samples=10, max_new_tokens=4),
}


def degraded(label: str) -> Degraded:
    lines = [{"contains": "", "log_probs": {" He": HE, " She": SHE}, "else": -8.0}]
    made = Degraded(lines, label=label, spec=f"scripted:{label}")
    made.estimator = ESTIMATORS[label]
    return made


SMALL = {"jobs.select": "nurse,plumber", "templates.select": "1-2", "bias_type": "implicit"}
SMALL |= {"max_samples_per_prompt": 10}  # one batch, so that a cell has one matched sample


def design(**more: Any) -> ProbeDesign:
    chosen = {name.replace("__", "."): value for name, value in more.items()}
    return resolve(load_as(ProbeStudy, "occugender", {**SMALL, **chosen}))


def run_of(folder: Path, *labels: str) -> tuple[Path, list[str]]:
    asked = design()
    models = {label: f"scripted:{label}" for label in labels}
    ask(asked, Session(folder, models, lambda label, *_: degraded(label)))
    return folder, tables(folder).write()


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    return run_of(tmp_path_factory.mktemp("three"), *ESTIMATORS)


def rows_of(run: Path, table: str, model: str) -> list[dict[str, Any]]:
    found = read_table_rows(run / "tables" / f"{table}.csv")
    return [row for row in found if row["model"] == model]


def test_a_cell_of_listed_tokens_has_points_and_bounds(three: tuple[Path, list[str]]) -> None:
    for row in rows_of(three[0], "probe_prompts", "listing"):
        assert (0.3, 0.45, 0.0) == pytest.approx(tuple(row[f"{group}_mass"] for group in GROUPS))
        assert 0.4 == pytest.approx(row["male_share"])
        # R = 0.2; he, she, They and they are unlisted, none above 0.05, and " the" may begin " they".
        assert 0.3 / (0.75 + 0.05 + 0.15) == pytest.approx(row["male_share_low"])
        assert (0.3 + 0.05) / (0.75 + 0.05) == pytest.approx(row["male_share_high"])
        assert (0.75, 0.75 + 0.05 + 0.2) == pytest.approx((row["coverage_low"], row["coverage_high"]))
        assert (False, "") == (row["low_coverage"], row["reason"])


def test_a_cell_of_samples_has_wilsons_ends_and_its_group_an_error(three: tuple[Path, list[str]]) -> None:
    cells = {row["job"]: row for row in rows_of(three[0], "probe_prompts", "drawing")}
    assert (0.25, 0.75, 0.8) == tuple(
        cells["nurse"][name] for name in ("male_share", "female_share", "coverage")
    )
    assert cells["nurse"]["female_share_low"] < 0.75 < cells["nurse"]["female_share_high"]
    assert cells["nurse"]["coverage_low"] < 0.8 < cells["nurse"]["coverage_high"]
    for row in rows_of(three[0], "probe_groups", "drawing"):
        assert (None, None) == (row["share_low"], row["share_high"])
        if row["job_group"] == "female-dominated" and row["gender"] == "female":
            # Two cells with p = 6/8 and K = 8.
            assert math.sqrt(2 * 0.75 * 0.25 / 7) / 2 == pytest.approx(row["se_sampling"])
        if row["job_group"] == "male-dominated":
            assert row["se_sampling"] is None
            assert "no prompt with two matched samples: no se_sampling" in row["reason"]
    for row in rows_of(three[0], "probe_jobs", "drawing"):
        assert (None, None) == (row["difference_low"], row["difference_high"])


def test_a_margin_that_much_passes_within_is_noted(three: tuple[Path, list[str]]) -> None:
    noted = "margin.share is 0.4: up to 40 points count as no difference"
    assert [noted in tables(three[0], {"margin.share": margin}).notes for margin in (0.2, 0.4)] == [
        False,
        True,
    ]
