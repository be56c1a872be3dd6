"""Variance components of wordings in frames: against plain loops, and what they come to on average."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from scipy import stats

from biaskit.stats.nested import nested_components, wording_share

NAMES = ("job", "frame", "wording", "job_frame", "residual")
TRUE = {"job": 0.4, "frame": 0.3, "wording": 0.2, "job_frame": 0.25, "residual": 0.1}


def world(rng: np.random.Generator, n_jobs: int = 6, n_frames: int = 5, n_wordings: int = 4) -> np.ndarray:
    """Cells with known standard deviations of every effect."""
    size = (n_jobs, n_frames, n_wordings)
    effects = {
        "job": rng.normal(size=(n_jobs, 1, 1)),
        "frame": rng.normal(size=(1, n_frames, 1)),
        "wording": rng.normal(size=(1, n_frames, n_wordings)),
        "job_frame": rng.normal(size=(n_jobs, n_frames, 1)),
        "residual": rng.normal(size=size),
    }
    return 0.5 + sum(math.sqrt(TRUE[name]) * np.broadcast_to(x, size) for name, x in effects.items())


def by_loops(values: np.ndarray) -> dict[str, float]:
    """The components from their expected mean squares, a sum of squares at a time."""
    n_i, n_j, n_k = values.shape
    cells = [(i, j, k) for i in range(n_i) for j in range(n_j) for k in range(n_k)]

    def mean(**at: int) -> float:
        return statistics.fmean(
            float(values[i, j, k])
            for i, j, k in cells
            if all({"i": i, "j": j, "k": k}[name] == value for name, value in at.items())
        )

    grand = mean()
    a = b = c = d = e = 0.0
    for i, j, k in cells:
        job, frame, wording, pair = mean(i=i), mean(j=j), mean(j=j, k=k), mean(i=i, j=j)
        a += (job - grand) ** 2
        b += (frame - grand) ** 2
        c += (wording - frame) ** 2
        d += (pair - job - frame + grand) ** 2
        e += (float(values[i, j, k]) - pair - wording + frame) ** 2
    a, b = a / (n_i - 1), b / (n_j - 1)
    c, d = c / (n_j * (n_k - 1)), d / ((n_i - 1) * (n_j - 1))
    e /= n_j * (n_i - 1) * (n_k - 1)
    return {
        "job": (a - d) / (n_j * n_k),
        "frame": (b - c - d + e) / (n_i * n_k),
        "wording": (c - e) / n_i,
        "job_frame": (d - e) / n_k,
        "residual": e,
    }


@pytest.mark.parametrize("seed", range(4))
def test_components_are_those_of_plain_loops(seed: int) -> None:
    values = world(np.random.default_rng(seed), 4, 3, 3)
    found, expected = nested_components(values), by_loops(values)
    for name in NAMES:
        assert getattr(found, name) == pytest.approx(max(expected[name], 0.0), abs=1e-12)
        assert (f"var_{name} was" in (found.reason or "")) == (expected[name] < 0)


def test_components_are_right_on_average() -> None:
    rng, sums = np.random.default_rng(11), dict.fromkeys(NAMES, 0.0)
    n = 4_000
    for _ in range(n):
        found = nested_components(world(rng, 10, 8, 5))
        for name in NAMES:
            sums[name] += getattr(found, name) / n
    # The few negative estimates that are cut at 0 lift the mean by less than this.
    assert sums == pytest.approx(TRUE, rel=0.05)


def test_each_effect_alone_is_found_where_it_is() -> None:
    rng = np.random.default_rng(2)
    shapes = {"job": (5, 1, 1), "frame": (1, 4, 1), "wording": (1, 4, 3), "job_frame": (5, 4, 1)}
    for name, shape in shapes.items():
        found = nested_components(np.broadcast_to(rng.normal(size=shape), (5, 4, 3)))
        assert found.residual == pytest.approx(0.0, abs=1e-20)
        assert getattr(found, name) > 0.05
        later = {"job": ("frame", "wording", "job_frame"), "frame": ("job", "wording", "job_frame")}
        for other in later.get(name, ()):
            assert getattr(found, other) == pytest.approx(0.0, abs=1e-20)


@pytest.mark.parametrize(
    ("shape", "named"), [((1, 3, 3), "1 job"), ((3, 1, 3), "1 frame"), ((3, 3, 1), "1 wording")]
)
def test_one_level_has_no_components_and_says_so(shape: tuple[int, int, int], named: str) -> None:
    found = nested_components(np.zeros(shape))
    assert found.wording is None
    assert found.reason == f"{named}: no components"


# --- the share of wording ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_the_share_of_wording_is_that_of_a_one_way_table(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(4, 1)) + 0.7 * rng.normal(size=(4, 10))
    found = wording_share(values)
    f_value = stats.f_oneway(*values).statistic
    within = statistics.fmean(statistics.variance(map(float, row)) for row in values)
    frame = max((f_value - 1) * within / 10, 0.0)
    assert found.wording == pytest.approx(within)
    assert found.frame == pytest.approx(frame)
    assert found.share == pytest.approx(within / (within + frame))
    assert found.ci95 is not None
    ends = [min(10 / (f_value / stats.f.ppf(q, 3, 36) + 9), 1.0) for q in (0.025, 0.975)]
    assert found.ci95 == pytest.approx(ends)
    assert found.ci95[0] <= found.share <= found.ci95[1]


@pytest.mark.parametrize("truth", [0.2, 0.5, 0.9])
def test_the_interval_holds_the_true_share_in_95_of_100_worlds(truth: float) -> None:
    rng, held, n = np.random.default_rng(5), 0, 2_000
    for _ in range(n):
        frames = math.sqrt(1 - truth) * rng.normal(size=(4, 1))
        ends = wording_share(frames + math.sqrt(truth) * rng.normal(size=(4, 10))).ci95
        assert ends is not None
        held += ends[0] <= truth <= ends[1]
    assert held / n == pytest.approx(0.95, abs=0.015)


def test_wordings_that_agree_leave_no_share_to_wording() -> None:
    found = wording_share(np.repeat([[0.1], [0.4]], 3, axis=1))
    assert (found.share, found.ci95) == (0.0, None)
    assert "agree" in str(found.reason)
    nothing = wording_share(np.full((2, 3), 0.25))
    assert (nothing.share, nothing.reason) == (None, "nothing varies")


@pytest.mark.parametrize(("shape", "named"), [((1, 5), "one frame"), ((5, 1), "one wording")])
def test_one_frame_or_one_wording_has_no_share(shape: tuple[int, int], named: str) -> None:
    found = wording_share(np.zeros(shape))
    assert found.share is None
    assert named in str(found.reason)
