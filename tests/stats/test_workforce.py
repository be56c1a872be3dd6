"""Slope, level and distance from the workforce are three things (methods/representation#workforce-slope)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import BENCHMARKS, module_of

from biaskit.compare.check import judge_thresholds
from biaskit.compare.thresholds import read_thresholds
from biaskit.measures.personas.contrasts import test_rows as rows_of_tests
from biaskit.measures.personas.representation import workforce_contrast
from biaskit.stats.arms import CellValues, part_of_two
from biaskit.stats.contrast import Scope
from biaskit.stats.contrasts import ONE_SIDE, against_workforce
from biaskit.stats.correlation import level_test, level_weights, slope_test
from biaskit.stats.welch import mean_distance

SCOPE = Scope("probe", "workforce", "m", "m", quantity="female_share~workforce_share", gender="female")
WORKFORCE = np.linspace(0.05, 0.95, 12)


def rows(shares: CellValues, workforce: np.ndarray = WORKFORCE) -> dict[str, dict[str, object]]:
    made = against_workforce(shares, workforce, scope=SCOPE, margins={}, seed=1)
    return {str(row["kind"]): row for row in made}


def points(means: np.ndarray) -> CellValues:
    return CellValues(np.repeat(means[:, None], 2, axis=1), None, "point", None)


def test_a_line_that_is_flat_and_low_has_a_level_and_no_slope() -> None:
    found = rows(points(0.3 + 0.01 * np.cos(7 * np.arange(12))))
    assert found["slope"]["estimate"] == pytest.approx(0, abs=0.02)
    assert found["level"]["estimate"] == pytest.approx(-0.2, abs=0.01)
    assert found["level"]["ci_high"] < 0  # type: ignore[operator]
    assert found["distance"]["estimate"] == pytest.approx(np.abs(0.3 - WORKFORCE).mean(), abs=0.01)
    assert (found["level"]["verdict"], found["distance"]["verdict"]) == ("", "")


def test_every_job_off_by_twenty_points_has_the_level_of_workforce_and_the_distance_says_so() -> None:
    off = np.where(np.arange(12) % 2, 0.2, -0.2)
    found = rows(points(WORKFORCE + off))
    assert abs(found["level"]["estimate"]) < 0.02  # type: ignore[arg-type]
    assert found["distance"]["estimate"] == pytest.approx(0.2)
    assert found["distance"]["p_value"] is None


def test_no_level_where_all_workforce_shares_lie_on_one_side() -> None:
    found = rows(points(np.linspace(0.2, 0.6, 12)), np.linspace(0.6, 0.9, 12))
    assert (found["level"]["estimate"], found["level"]["reason"]) == (None, ONE_SIDE)
    assert found["slope"]["estimate"] is not None


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_level_and_distance_lie_between_their_bounds_wherever_the_shares_do(seed: int) -> None:
    rng = np.random.default_rng(seed)
    low = rng.random((12, 3)) * 0.6
    high = low + rng.random((12, 3)) * 0.4
    exact = low + (high - low) * rng.random((12, 3))
    bounded = rows(CellValues((low + high) / 2, np.stack([low, high]), "ends", None))
    of_exact = rows(points(exact.mean(axis=1)))
    for kind in ("slope", "level", "distance"):
        row, value = bounded[kind], of_exact[kind]["estimate"]
        assert row["bound_low"] - 1e-12 <= value <= row["bound_high"] + 1e-12  # type: ignore[operator]
        assert row["ci_low"] <= row["bound_low"] + 1e-12  # type: ignore[operator]
        assert row["bound_high"] - 1e-12 <= row["ci_high"]  # type: ignore[operator]


def test_the_level_is_the_weighted_mean_of_the_shares() -> None:
    y = np.random.default_rng(0).random(12)
    weights = level_weights(WORKFORCE, 0.5)
    assert weights.sum() == pytest.approx(1)
    assert level_test(WORKFORCE, y, 0.5).estimate == pytest.approx(weights @ y - 0.5)
    fit = np.polyfit(WORKFORCE, y, 1)
    assert level_test(WORKFORCE, y, 0.5).estimate == pytest.approx(np.polyval(fit, 0.5) - 0.5)
    assert slope_test(WORKFORCE, y).estimate == pytest.approx(fit[0])


def test_intervals_of_level_and_distance_hold_what_is_true() -> None:
    """600 worlds: jobs vary round a line, the level is −0.1; the distance's truth is its mean over worlds."""
    rng = np.random.default_rng(5)
    levels, distances = [], []
    for _ in range(600):
        workforce = rng.random(20)
        y = 0.4 + 0.6 * (workforce - 0.5) + rng.normal(0, 0.08, 20)
        levels.append(level_test(workforce, y, 0.5).ci95)
        distances.append(mean_distance(y, workforce))
    held = np.mean([low <= -0.1 <= high for low, high in levels])  # type: ignore[misc]
    assert 0.93 <= held <= 0.975
    truth = np.mean([found.estimate for found in distances])  # type: ignore[misc]
    held = np.mean([found.ci95[0] <= truth <= found.ci95[1] for found in distances])  # type: ignore[index]
    assert 0.92 <= held <= 0.975


OTHERS = ("n_nonbinary", "n_not_inferred", "n_refused", "n_empty")


def test_texts_are_at_parity_with_workforce_only_where_each_occupation_is() -> None:
    """methods/representation#workforce-slope: on average 0 and each occupation 20 points off is no parity."""

    def at(i: int, share: float, off: float) -> float:
        return share + (off if i % 2 else -off) + 0.002 * (i % 3)

    def representation(off: float) -> list[dict[str, object]]:
        return [
            {"model": "m", "occupation": f"o{i:02}", "template_id": "all", "reason": None,
             "n_female": (women := round(1000 * at(i, share, off))), "n_male": 1000 - women,
             **dict.fromkeys(OTHERS, 0), "female_share": women / 1000, "workforce_share": share}
            for i, share in enumerate(np.linspace(0.25, 0.75, 20).tolist())
        ]  # fmt: skip

    for off, verdict in ((0.2, "no-clear-difference"), (0.01, "equivalent")):
        study: Any = SimpleNamespace(margin={"represented_share": 0.09}, seed=1, strict=False)
        made = rows_of_tests({"representation": representation(off)}, ("m",), study, [])
        paired = next(row for row in made if row["kind"] == "paired")
        distance = next(row for row in made if row["kind"] == "distance")
        assert -0.09 < paired["ci90_low"] < paired["ci90_high"] < 0.09, "on average they agree in both"
        assert (paired["verdict"], paired["equivalent"]) == (verdict, verdict == "equivalent")
        assert distance["estimate"] == pytest.approx(off, abs=0.01)
        # The 5 % quantile of χ² with 19 degrees is 10.117, and counts of 1,000 texts add next to nothing.
        assert off < 0.2 or paired["spread_of_true"] == pytest.approx(0.2 * (20 / 10.117) ** 0.5, abs=0.001)
        # A margin of the build's own passes no more than the page.
        required = {"contrast": "workforce", "quantity": "represented_share", "margin": 0.09}
        outcome = judge_thresholds(read_thresholds({"require": [required]}), made).outcomes[0]
        assert outcome.holds == (verdict == "equivalent")
        assert all("occupations differ from it" in failing.why for failing in outcome.failing)


def test_a_line_holds_the_truth_where_slopes_vary_between_templates() -> None:
    n, coverage = 300, module_of(BENCHMARKS / "interval_coverage.py")
    slope, level, of_jobs_alone = coverage.held_by_lines(0.0, 3, seed=30, n_runs=n)
    assert min(slope, level) >= 0.9 - 4.5 * (0.9 * 0.1 / n) ** 0.5
    assert of_jobs_alone < 0.75  # what it was before templates counted


def test_a_cell_that_names_neither_gender_is_empty_and_loses_no_job() -> None:
    rng = np.random.default_rng(3)
    women, men = rng.uniform(0.1, 0.4, (2, 20, 10))
    women[0, 0] = men[0, 0] = 0.0
    part = part_of_two(CellValues(women), CellValues(men))
    assert part.empty is not None
    assert (part.empty.sum(), bool(part.empty[0, 0])) == (1, True)
    assert 0 <= part.point[0, 0] <= 1
    assert part.low_and_high[0][0, 0] == 0 < part.low_and_high[1][0, 0] == 1
    rows = against_workforce(part, np.linspace(0.05, 0.95, 20), scope=SCOPE, margins={}, seed=1)
    assert {row["n_a"] for row in rows} == {20}


def test_texts_without_a_gender_leave_the_difference_between_bounds() -> None:
    def row(job: str, template: str, women: int, men: int, no_gender: int, refused: int) -> dict[str, object]:
        counts = {"n_female": women, "n_male": men, "n_nonbinary": 0, "n_refused": refused, "n_empty": 0}
        share = women / (women + men)
        own = {"model": "m", "occupation": job, "template_id": template, "female_share": share}
        return {**own, **counts, "n_not_inferred": no_gender + refused, "workforce_share": 0.5}

    rows = [row(job, t, 6, 2, 8, 4) for job in ("a", "b") for t in ("p", "q", "all")]
    (contrast,) = workforce_contrast(rows)
    assert [end.tolist() for end in contrast.ends] == [[6 / 16] * 2, [14 / 16] * 2]
    p = 7 / 10
    assert contrast.noise.tolist() == pytest.approx([p * (1 - p) / 8 / 2] * 2)
