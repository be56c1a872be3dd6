"""What a plan of the prober reckons with: shipped variances, samples that match, the sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from biaskit.corpora.variance import load_cell_variance, load_text_variance
from biaskit.errors import CorpusError
from biaskit.measures.probe.design import resolve
from biaskit.measures.probe.power import (
    Shown,
    matched_samples,
    plan_sentence,
    smallest_shown,
    variance_of_group,
)
from biaskit.measures.probe.study import ProbeStudy
from biaskit.study.config import load_as


@pytest.mark.parametrize(
    ("size", "most", "coverage"), [(10, 10, 0.5), (10, 100, 0.03), (10, 29, 0.1), (3, 9, 1)]
)
def test_samples_match_as_often_as_in_drawn_batches(size: int, most: int, coverage: float) -> None:
    rng = np.random.default_rng(2)
    matched = rng.binomial(size, coverage, 40_000)
    for _ in range(most // size - 1):
        still = matched < 3
        matched[still] += rng.binomial(size, coverage, int(still.sum()))
    found = matched_samples(size, most, coverage)
    assert found.empty == pytest.approx((matched == 0).mean(), abs=0.01)
    assert found.inverse == pytest.approx((1 / matched[matched > 0]).mean(), abs=0.01)


def test_more_samples_bring_less_noise_and_few_that_match_no_verdict() -> None:
    variances = [v for v in load_cell_variance() if v.bias_type == "explicit"]

    def at(samples: int | None, coverage: float) -> Shown:
        matched = None if samples is None else matched_samples(samples, samples, coverage)
        return smallest_shown(variances, (20, 20), 25, matched)

    exact, fine, rough = (at(samples, 1.0) for samples in (None, 100, 5))
    assert exact.difference is not None
    assert fine.difference is not None
    assert rough.difference is not None
    assert exact.difference < fine.difference < rough.difference
    assert exact.parts["samples"] == 0 < fine.parts["samples"] < rough.parts["samples"]
    assert sum(rough.parts.values()) == pytest.approx(1.0)
    none = at(10, 0.03)
    assert none.difference is None
    assert (
        none.reason
        == "at a coverage of 0.03, 74 % of the prompts would stay empty, and above 10 % there is no"
        " conclusion"
    )


@pytest.mark.parametrize(
    ("study", "keys", "estimator", "said"),
    [
        (
            "occugender",
            {},
            "exact",
            "10 points (explicit; variance: jobs 90 %, templates 10 %)",
        ),
        (
            "occugender",
            {"jobs.select": "nurse,plumber"},
            "exact",
            "cannot be estimated from another model's variance",
        ),
        ("occugender", {"jobs.select": "1-5,21-25", "templates.select": "1-3"}, "exact", "templates"),
        (
            "occugender",
            {"templates.select": "1"},
            "exact",
            "only one template or scenario.",
        ),
        ("occugender", {"templates.select": "1-2"}, "exact", "only two templates or scenarios."),
        ("wording", {"templates.select": "1-10"}, "exact", "only one template or scenario"),  # of one frame
        ("occugender", {}, "sampling", "and a target word in every sample"),
        ("occugender", {}, "top-k", "plus the width of the top-k bounds"),
    ],
)
def test_the_plan_says_what_a_design_shows(
    study: str, keys: dict[str, str], estimator: Any, said: str
) -> None:
    design = resolve(load_as(ProbeStudy, study, keys))
    samples = 10 if estimator == "sampling" else None
    assert said in plan_sentence(design, estimator, samples, of_demo=estimator == "exact")


def test_a_group_that_is_not_known_by_name_varies_as_the_known_ones_on_average() -> None:
    known = [v for v in load_cell_variance() if v.bias_type == "explicit"]
    assert [variance_of_group(known, v.group) for v in known] == known
    other = variance_of_group(known, "other")
    assert other.var_job == pytest.approx(sum(v.var_job for v in known) / 2)
    assert other.share == pytest.approx(sum(v.share for v in known) / 2)


def test_shipped_variances_are_numbers_of_what_they_say() -> None:
    cells = load_cell_variance()
    assert {("explicit", "female-dominated"), ("implicit", "male-dominated")} <= {
        (v.bias_type, v.group) for v in cells
    }
    # The parts of two that the run prints: 67.5 and 47.9 % explicit, 78.2 and 14.9 % implicit.
    printed = {0.674, 0.479, 0.782, 0.149}
    assert printed == {round(v.share, 3) for v in cells}
    assert load_text_variance()[0].n_occupations == 4


def test_a_wrong_number_is_named(tmp_path: Any) -> None:
    path = tmp_path / "v.csv"
    head = "bias_type,group,gender,share,coverage,var_job,var_template,var_residual,var_difference"
    path.write_text(f"{head}\nexplicit,a,female,0.5,0.5,x,0,0,0\n")
    with pytest.raises(CorpusError, match="line 2: var_job 'x'"):
        load_cell_variance(path)
