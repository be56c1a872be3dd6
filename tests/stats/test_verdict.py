"""One verdict for a row of tests.csv, whoever reads it: sentences, figures, compare's table, the check."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from biaskit.compare.check import require_equivalent, verdict_in_words
from biaskit.report.figures.differences import shape_of
from biaskit.report.findings.finding import outcome_of
from biaskit.stats.contrast import Contrast
from biaskit.stats.crossed import p_of_interval


def row_of(
    estimate: float | None, low: float | None, high: float | None, equivalent: bool | None
) -> Contrast:
    known = estimate is not None and low is not None and high is not None
    scope = {"measurement": "probe", "family": "probe/share/crossed/models", "kind": "crossed"}
    ends = {"ci_low": low, "ci_high": high, "ci90_low": low, "ci90_high": high, "margin": 0.05}
    p = p_of_interval(estimate, low, high, 9.0) if known else None  # type: ignore[arg-type]
    models = {"model_a": "A", "model_b": "B", "reason": "no template"}
    return Contrast.of(
        {**scope, **models, **ends, "estimate": estimate, "p_value": p, "equivalent": equivalent}
    )


@st.composite
def rows(draw: st.DrawFn) -> Contrast:
    """Rows as tables hold them, with ends that rounding leaves near 0."""
    near_zero = st.sampled_from([0.0, 1e-17, -1e-17, 1e-12, -1e-12, 2e-12])
    low, high = sorted(draw(st.tuples(*[near_zero | st.floats(-1, 1)] * 2)))
    equivalent = draw(st.sampled_from([True, False, None]))
    missing = draw(st.sampled_from(["nothing", "nothing", "interval", "estimate"]))
    if missing == "nothing":
        return row_of((low + high) / 2, low, high, equivalent)
    return row_of(0.5 * (low + high) if missing == "interval" else None, None, None, None)


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (row_of(0.12, 0.05, 0.19, False), "higher"),
        (row_of(-0.12, -0.19, -0.05, None), "lower"),
        (row_of(0.01, -0.02, 0.04, True), "equivalent"),
        (row_of(0.02, 0.01, 0.03, True), "equivalent"),
        (row_of(0.03, -0.04, 0.1, False), "no-clear-difference"),
        (row_of(0.0, 1e-17, 0.1, False), "no-clear-difference"),
        (row_of(0.0, -0.1, -1e-17, False), "no-clear-difference"),
        (row_of(0.0, 0.0, 0.0, None), "no-clear-difference"),
        (row_of(0.3, None, None, None), "not-measured"),
        (row_of(None, None, None, None), "not-measured"),
    ],
)
def test_each_verdict(row: Contrast, verdict: str) -> None:
    assert row.conclusion == verdict


@pytest.mark.parametrize(
    ("kind_name", "kind"), [("probe", "welch"), ("personas", "permutation"), ("compare", "welch")]
)
def test_a_row_that_is_not_judged_has_no_direction(kind_name: str, kind: str) -> None:
    row = replace(row_of(0.12, 0.05, 0.19, False), measurement=kind_name, kind=kind)
    assert (row.conclusion, replace(row, equivalent=True).conclusion) == ("shown", "equivalent")
    assert replace(row, p_value=None).conclusion == "no-verdict"
    row = replace(row, gender="female", bias_type="explicit", context="plain", n_a=9)
    outcome = require_equivalent([row])
    assert not outcome.holds
    assert "not shown to be equivalent" in outcome.lines[0]
    assert "higher" not in outcome.lines[0]


def test_no_row_is_not_measured() -> None:
    assert shape_of(None) == "unmeasured"
    assert outcome_of(None) == "not-measured"


@given(rows())
def test_every_reader_of_a_row_comes_to_the_same_verdict(row: Contrast) -> None:
    verdict = row.conclusion
    shown = verdict == "not-measured" and row.estimate is not None
    assert outcome_of(row) == ("shown" if shown else verdict)

    shapes = {"higher": "different", "lower": "different", "no-clear-difference": "unclear"}
    apart = "both" if row.direction else "equivalent"
    assert shape_of(row) == {**shapes, "equivalent": apart, "not-measured": "unmeasured"}[verdict]

    words = verdict_in_words(row)
    beginnings = {
        "higher": "higher by",
        "lower": "lower by",
        "equivalent": "equivalent within",
        "no-clear-difference": "no clear difference",
        "not-measured": "not measured",
    }
    assert words.startswith(beginnings[verdict])

    assert require_equivalent([row]).holds == (verdict == "equivalent")
