"""What a plan of the prober reckons with: a run's variances, draws that match, the sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from biaskit.corpora.variance import CellVariance, load_cell_variance, load_text_variance
from biaskit.errors import CorpusError, RunError
from biaskit.probe.design import resolve_design
from biaskit.probe.effects import tables
from biaskit.probe.power import (
    Outlook,
    Size,
    gender_of,
    matched_draws,
    outlooks,
    plan_sentence,
    variance_of_tables,
)
from biaskit.records import Cell, CellShares
from biaskit.study.config import load_probe_study

GROUPS = ("male", "female", "diverse")
SIDES = {"female-dominated": ("a", "b", "c", "d"), "male-dominated": ("e", "f", "g")}
N_TEMPLATES = 5


def made(shares: np.ndarray[Any, Any], estimator: str = "exact", draws: int = 10) -> dict[str, Any]:
    """The tables of a run with these shares of women, `[7 jobs, 5 templates]`."""
    jobs = [(job, group) for group, names in SIDES.items() for job in names]
    listed = []
    for i, (job, group) in enumerate(jobs):
        for j in range(N_TEMPLATES):
            cell = Cell("m", "explicit", j + 1, job, group, 0.5, 0, "plain", "raw")
            p = float(shares[i, j])
            counted = {"matched": draws} if estimator == "sampling" else {}
            listed.append(
                CellShares(cell, estimator, (0.4 - 0.4 * p, 0.4 * p, 0.0), 0.4, (1 - p, p, 0.0), **counted)  # type: ignore[arg-type]
            )
    return tables(
        listed,
        groups=GROUPS,
        contrast=("female", "male"),
        levels={},
        floor=0.01,
        interval="crossed",
        margins={},
        seed=1,
    )


@pytest.fixture(scope="module")
def shares() -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(5)
    effects = rng.normal(0, 0.1, (7, 1)) + rng.normal(0, 0.05, (1, N_TEMPLATES)) + rng.normal(0, 0.05, (7, 5))
    return np.clip(0.5 + effects, 0.05, 0.95)


def test_a_runs_variances_are_those_of_its_cells(shares: np.ndarray[Any, Any]) -> None:
    found = variance_of_tables(made(shares), "m", "female", "RUN")
    assert ["female-dominated", "male-dominated"] == [v.group for v in found]
    sides = shares[:4], shares[4:]
    residual = []
    for v, x in zip(found, sides, strict=True):
        left = x - x.mean(axis=1, keepdims=True) - x.mean(axis=0) + x.mean()
        e = (left**2).sum() / ((x.shape[0] - 1) * (N_TEMPLATES - 1))
        residual.append(e / x.shape[0])
        assert v.var_residual == pytest.approx(e)
        assert v.var_job == pytest.approx(max(x.mean(axis=1).var(ddof=1) - e / N_TEMPLATES, 0.0))
        assert v.share == pytest.approx(x.mean())
        assert v.coverage == pytest.approx(0.4)
    between = (sides[0].mean(axis=0) - sides[1].mean(axis=0)).var(ddof=1)
    assert [v.var_difference for v in found] == pytest.approx([max(between - sum(residual), 0.0)] * 2)


def test_the_noise_of_draws_is_no_part_of_a_runs_residual(shares: np.ndarray[Any, Any]) -> None:
    exact = variance_of_tables(made(shares), "m", "female", "RUN")
    drawn = variance_of_tables(made(shares, "sampling", draws=200), "m", "female", "RUN")
    for a, b, x in zip(exact, drawn, (shares[:4], shares[4:]), strict=True):
        assert b.var_residual == pytest.approx(a.var_residual - float((x * (1 - x)).mean()) / 199)


def test_a_run_of_one_template_has_no_variance(shares: np.ndarray[Any, Any]) -> None:
    rows = made(shares)
    rows["probe_variance"] = [{**row, "var_residual": None} for row in rows["probe_variance"]]
    with pytest.raises(RunError, match="RUN has no variance of m: it takes two jobs"):
        variance_of_tables(rows, "m", "female", "RUN")
    with pytest.raises(RunError, match="no variance of other"):
        variance_of_tables(made(shares), "other", "female", "RUN")


@pytest.mark.parametrize(
    ("size", "most", "coverage"), [(10, 10, 0.5), (10, 100, 0.03), (10, 29, 0.1), (3, 9, 1)]
)
def test_draws_match_as_often_as_in_drawn_rounds(size: int, most: int, coverage: float) -> None:
    rng = np.random.default_rng(2)
    matched = rng.binomial(size, coverage, 40_000)
    drawn = np.full(matched.shape, size)
    for _ in range(most // size - 1):
        still = matched < 3
        matched[still] += rng.binomial(size, coverage, int(still.sum()))
        drawn[still] += size
    found = matched_draws(size, most, coverage)
    assert found.empty == pytest.approx((matched == 0).mean(), abs=0.01)
    assert found.inverse == pytest.approx((1 / matched[matched > 0]).mean(), abs=0.01)
    assert found.drawn == pytest.approx(drawn.mean(), rel=0.01)


def test_more_draws_bring_less_noise_and_few_that_match_no_verdict() -> None:
    variances = tuple(v for v in load_cell_variance() if v.bias_type == "explicit")

    def at(draws: int | None, coverage: float) -> Outlook:
        return Outlook("explicit", "female", variances, Size((20, 20), 25, draws, draws or 0), coverage)

    exact, fine, rough = (at(draws, 1.0).shown() for draws in (None, 100, 5))
    assert exact.difference is not None
    assert fine.difference is not None
    assert rough.difference is not None
    assert exact.difference < fine.difference < rough.difference
    assert exact.parts["draws"] == 0 < fine.parts["draws"] < rough.parts["draws"]
    assert sum(rough.parts.values()) == pytest.approx(1.0)
    none = at(10, 0.03).shown()
    assert none.difference is None
    assert none.reason == "74 % of the cells would stay empty at a coverage of 0.03: no verdict above 10 %"


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            {},
            "Differences of 7 points (explicit; variance: jobs 80 %, templates 18 %) and 14 points (",
        ),
        ({"jobs.select": "nurse,plumber"}, "No explicit difference would show: conditional on one job: no"),
        (
            {"templates.select": "1"},
            "No implicit difference would show: conditional on one template: no verdict.",
        ),
    ],
)
def test_the_plan_says_what_a_design_shows(keys: dict[str, str], said: str) -> None:
    design = resolve_design(load_probe_study("occugender", keys))
    assert said in plan_sentence(design, "exact", None, of_demo=True)


def test_the_plan_of_draws_says_what_it_takes_for_granted() -> None:
    design = resolve_design(load_probe_study("occugender", {"estimator": "sampling"}))
    assert "and every draw names a listed word" in plan_sentence(design, "sampling", 10, of_demo=False)
    assert "bounds of top-k come on top" in plan_sentence(design, "top-k", None, of_demo=False)


def test_groups_that_are_not_known_by_name_vary_as_the_known_ones_on_average() -> None:
    design = resolve_design(load_probe_study("fields-of-study"))
    known = [v for v in load_cell_variance() if v.gender == gender_of(design)]
    named = outlooks(design, known, draws=None, coverage=None)[0]
    unnamed = outlooks(
        design,
        [CellVariance(v.bias_type, f"other {v.group}", *list(_numbers(v))) for v in known],  # type: ignore[arg-type]
        draws=None,
        coverage=None,
    )[0]
    assert named.size == unnamed.size == Size((13, 20), 12)
    jobs = [v.var_job for v in known if v.bias_type == "explicit"]
    assert [v.var_job for v in named.variances] == jobs
    assert [v.var_job for v in unnamed.variances] == pytest.approx([sum(jobs) / 2] * 2)


def _numbers(v: CellVariance) -> tuple[object, ...]:
    numbers = v.share, v.coverage, v.var_job, v.var_template, v.var_residual, v.var_difference
    return v.gender, *numbers


def test_shipped_variances_are_numbers_of_what_they_say() -> None:
    cells = load_cell_variance()
    assert {("explicit", "female-dominated"), ("implicit", "male-dominated")} <= {
        (v.bias_type, v.group) for v in cells
    }
    # The shares that the README prints of the same run.
    printed = {0.526, 0.387, 0.691, 0.131}
    assert printed == {round(v.share, 3) for v in cells}
    assert load_text_variance()[0].n_occupations == 4


def test_a_wrong_number_is_named(tmp_path: Any) -> None:
    path = tmp_path / "v.csv"
    head = "bias_type,group,gender,share,coverage,var_job,var_template,var_residual,var_difference"
    path.write_text(f"{head}\nexplicit,a,female,0.5,0.5,x,0,0,0\n")
    with pytest.raises(CorpusError, match="line 2: var_job 'x' is no number from 0 to 1"):
        load_cell_variance(path)
