"""Shares that were counted: samples that all agree are no certainty (methods/averages#counted)."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from biaskit.measures.probe.contrasts import StudyCells
from biaskit.measures.probe.effects import tables
from biaskit.records import PromptCell
from biaskit.runs.shares.cells import cell_shares
from biaskit.stats.arms import Arm, Counted, CrossedCells, cross, inverse_of_wilson, mean_of, part_of_two
from biaskit.stats.contrast import Scope
from biaskit.stats.contrasts import within_jobs
from biaskit.stats.crossed import crossed_test, spread_of_mean
from biaskit.stats.proportions import wilson

GROUPS = ("male", "female", "diverse")
TARGET_WORDS = [
    {"group": group, "text": text, "log_prob": None, "token_ids": None}
    for group, text in zip(GROUPS, ("He", "She", "They"), strict=True)
]
Z = 1.959963984540054


def block(women: np.ndarray, k: int, model: str = "m") -> CrossedCells:
    """Counts of women `[I, J]` among k samples in each cell, as `cross` lays them out."""
    labels, values, ends = [], [], []
    for (i, j), n in np.ndenumerate(women):
        arm = Arm(model, "explicit", 0, "plain", "raw")
        labels.append((arm, f"job{i}", j, "sampling"))
        counts = (k - n, n, 0)
        values.append([0.1, 0.1, 0.1, *(count / k for count in counts), 0.3])
        low, high = zip(*(wilson(count, k) or (0, 1) for count in counts), strict=True)
        ends.append([*low, *high])
    return next(iter(cross(labels, np.array(values, float), np.array(ends, float)).values()))


def test_wilsons_intervals_say_how_many_samples_they_are_of() -> None:
    for k in range(1, 25):
        for women in range(k + 1):
            for they in range(k - women + 1):
                counts = (k - women - they, women, they)
                low, high = zip(*(wilson(count, k) or (0, 1) for count in counts), strict=True)
                shares = np.array(counts, float)[:, None, None] / k
                ends = (np.array(end, float)[:, None, None] for end in (low, high))
                assert inverse_of_wilson(shares, *ends).item() == pytest.approx(1 / k, rel=1e-9)


def test_noise_of_samples_that_all_agree_by_hand() -> None:
    # 24 cells of one sample: as 24 samples. 25 of 26, 25/26 · 1/26 / 26.
    all_women = Counted(np.ones((6, 4)), np.ones((6, 4)))
    assert (all_women.mean_and_n[1], all_women.noise) == pytest.approx((24, 25 / 26 / 26 / 26))
    # K = 1 and 3, and a cell without samples: 2² / (1 + 1/3) = 3 samples, mean 1/2: (2.5/5)² / 5.
    mixed = Counted(np.array([[0.0, 1.0, 0.5]]), np.array([[1.0, 1 / 3, np.nan]]))
    assert (mixed.mean_and_n[1], mixed.noise) == pytest.approx((3, 0.05))
    nothing = Counted(np.array([[0.5]]), np.array([[np.nan]]))
    assert (nothing.noise, *nothing.wilson) == pytest.approx((1 / 8, 0, 1))


def test_two_models_whose_samples_all_say_she_are_not_equivalent() -> None:
    a, b = (block(np.full((4, 3), 2), 2, model) for model in ("a", "b"))
    of_a, of_b = (one.shares_at([0, 1, 2])[1] for one in (a, b))
    scope = Scope("probe", "models", "a", "b", gender="female")
    _, crossed = within_jobs(of_a, of_b, scope=scope, margins={"share": 0.05})
    # 24 samples of each; the interval is normal.
    reach = Z * (2 * 25 / 26**3) ** 0.5
    assert (crossed.ci_low, crossed.ci_high) == pytest.approx((-reach, reach), abs=1e-6)
    assert (crossed.equivalent, crossed.conclusion) == (False, "no-clear-difference")
    assert crossed_test(0.0, spread_of_mean((of_a - of_b).point)).ci95 == (0.0, 0.0), "what it was"


def test_a_wide_spread_stays_as_it_is() -> None:
    rng = np.random.default_rng(1)
    apart = np.where(np.arange(6) % 2, 0.9, 0.1)[:, None] * np.ones(5)
    of_a, of_b = (block(rng.binomial(8, p), 8).shares_at(range(5))[1] for p in (apart, 1 - apart))
    scope = Scope("probe", "models", "a", "b", gender="female")
    _, crossed = within_jobs(of_a, of_b, scope=scope, margins={})
    expected = crossed_test(float((of_a - of_b).point.mean()), spread_of_mean((of_a - of_b).point))
    assert (of_a - of_b).noise == pytest.approx(of_a.noise + of_b.noise)
    assert (crossed.ci_low, crossed.ci_high) == pytest.approx(expected.ci95)


def test_a_mean_of_arms_and_a_part_of_two_keep_their_samples() -> None:
    blocks = [block(np.full((2, 2), n), 4) for n in (1, 3)]
    (counted,) = mean_of(blocks, [0, 1])[1].counted
    assert counted.mean_and_n[1] == pytest.approx(32), "16 samples in each of two arms"
    shares = block(np.full((2, 2), 1), 4).shares_at([0, 1])
    (both,) = part_of_two(shares[1], shares[0]).counted
    assert both.mean_and_n[1] == pytest.approx(16)
    only_they = replace(shares, point=shares.point * [[0.0, 1.0], [1.0, 1.0]])
    only_they = replace(only_they, counted=(Counted(only_they.point, shares.counted[0].inverse),))
    (both,) = part_of_two(only_they[1], only_they[0]).counted
    assert both.mean_and_n[1] == pytest.approx(12), "a cell that names neither has no samples of the two"
    frames = block(np.full((2, 4), 1), 4).by_frame({0: "x", 1: "x"})
    assert frames.shares_at(frames.templates).counted[0][1].inverse[0].tolist() == pytest.approx(
        [1 / 8, 1 / 4, 1 / 4]
    )


# --- worlds ------------------------------------------------------------------------------------------


def page(rng: np.random.Generator, women: tuple[float, float], jobs: int, templates: int, k: int) -> Any:
    """The tables of a run in which all jobs of a group have one share."""
    cells = []
    for group, p in zip(("female-dominated", "male-dominated"), women, strict=True):
        for i, t in itertools.product(range(jobs), range(1, templates + 1)):
            n = int(rng.binomial(k, p))
            row = {"estimator": "sampling", "target_words": TARGET_WORDS, "samples": k, "key": "x"}
            cell = PromptCell("m", "explicit", t, f"{group}{i}", group, None, 0, "plain", "raw")
            counts = {"She": n, "He": k - n, "They": 0}
            cells.append(cell_shares(cell, {**row, "counts": counts}, GROUPS))
    choices: dict[str, Any] = {"groups": GROUPS, "contrast": ("female", "male"), "levels": {}, "seed": 1}
    choices |= {"margins": {"share": 0.05}, "min_coverage": 0.01, "interval": "crossed"}
    return tables(cells, StudyCells(**choices))


def women_of(made: Any) -> tuple[Any, Any, Any]:
    """Of women: the first group's row, the difference of groups, and the first job's row."""
    (group, *_), (test, *_) = (
        [row for row in made["probe_groups"] if row["gender"] == "female"],
        [row for row in made["tests"] if (row.quantity, row.kind) == ("binary_share", "crossed")],
    )
    return group, test, made["probe_jobs"][0]


def test_24_samples_that_all_say_she_leave_room_for_others() -> None:
    group, test, job = women_of(page(np.random.default_rng(0), (1.0, 1.0), 8, 3, 1))
    assert (group["ci_low"], group["ci_high"]) == pytest.approx(wilson(24, 24))
    assert group["ci_low"] == pytest.approx(0.862, abs=0.001)
    assert (job["female_share_ci_low"], job["female_share_ci_high"]) == pytest.approx(wilson(3, 3))
    assert (group["binary_share_ci_low"], group["binary_share_ci_high"]) == pytest.approx(wilson(24, 24))
    assert (job["binary_share_ci_low"], job["binary_share_ci_high"]) == pytest.approx(wilson(3, 3))
    assert (job["ci_low"] < 0.6, job["ci_high"]) == (True, 1.0)
    assert (test.equivalent, test.conclusion) == (False, "no-clear-difference")


def test_intervals_hold_shares_near_one_and_what_differs_by_the_margin_is_not_equivalent() -> None:
    """100 worlds of 99 and 94 %, 24 samples a group: 19 held and 21 % equivalent without the floor."""
    rng, held, equivalent = np.random.default_rng(3), 0, 0
    for _ in range(100):
        group, test, _ = women_of(page(rng, (0.99, 0.94), 6, 4, 1))
        held += group["ci_low"] <= 0.99 <= group["ci_high"]
        equivalent += bool(test.equivalent)
    assert held >= 93
    assert equivalent <= 5
