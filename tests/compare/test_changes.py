"""What changed between two models: by a plain loop over probe_prompts.csv, in odd runs, and at the check."""

from __future__ import annotations

import itertools
import json
import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from fakes.command import Cli
from fakes.finding_rules import hold
from fakes.numbered_runs import GROUPS, JOBS, WORKFORCE, probe_run, seal
from places import ROOT, module_of
from scipy import stats

import biaskit as bk
from biaskit.errors import StudyError, UsageError
from biaskit.measures.pairs.compare import change_rows_of_pairs
from biaskit.report.figures import draw_all
from biaskit.stats.changes import flip_interval, is_separable, mean_of_sizes, squares_without_noise
from biaskit.tables.io import read_table_rows, table_bytes
from biaskit.workflow.compare import ComparisonResult

CHOICES = {"contrast": ["female", "male"], "tie_zone": 0.04}
Row = dict[str, Any]
Shares = Callable[[str, int], Sequence[float]]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def shares_by(seed: int, spread: float = 1.0) -> Shares:
    """Shares of men, women and others that follow from the job and the template."""

    def shares(job: str, template: int) -> list[float]:
        rng = np.random.default_rng([seed, JOBS.index(job), template])
        logits = np.array([0.0, 2 * WORKFORCE[job] - 0.5, -0.5]) + spread * rng.normal(size=3)
        parts = np.exp(logits)
        return [float(part) for part in parts / parts.sum()]

    return shares


def run_of(
    path: Path, label: str, shares: Shares, *, estimator: str = "exact", n: int = 10, **how: Any
) -> Path:
    """A run of one model with these shares; of samples with Wilson's intervals of `n` texts a prompt."""
    probe_run(path, label, choices=CHOICES, **how)
    table = path / "tables" / "probe_prompts.csv"
    rows = read_table_rows(table)
    for row in rows:
        found = shares(str(row["job"]), int(row["template_id"]))  # type: ignore[call-overload]
        row["estimator"] = estimator
        for group, share in zip(how.get("groups", GROUPS), found, strict=True):
            row |= {f"{group}_share": share, f"{group}_mass": share / 2}
            if estimator != "exact":
                ends = stats.binomtest(round(share * n), n).proportion_ci(method="wilson")
                row |= {f"{group}_share_low": float(ends.low), f"{group}_share_high": float(ends.high)}
    groups = how.get("groups", GROUPS)
    table.write_bytes(table_bytes("probe_prompts", rows, groups=groups, contrast=(groups[1], groups[0])))
    seal(path)
    return path


def compared(tmp_path: Path, before: Shares, after: Shares, **how: Any) -> ComparisonResult:
    runs = (run_of(tmp_path / name, name, own, **how) for name, own in (("old", before), ("new", after)))
    return bk.compare(*runs, out=tmp_path / "c")


def rows_of(result: ComparisonResult, table: str = "changes") -> list[Row]:
    file = result.path / "tables" / f"{table}.csv"
    return [dict(row) for row in read_table_rows(file)] if file.exists() else []


# --- by a plain loop ----------------------------------------------------------------------------------------


def winner(shares: Mapping[str, float]) -> tuple[str, bool]:
    """The group with the most, and whether another is at most 4 points below."""
    first, second, *_ = sorted(shares, key=lambda group: -shares[group])
    return first, shares[first] - shares[second] <= 0.04 + 1e-12


def by_loop(before: Path, after: Path, bias_type: str, jobs: Sequence[str]) -> Row:
    tables = []
    for run in (before, after):
        cells: dict[tuple[str, int], dict[str, float]] = {}
        for row in read_table_rows(run / "tables" / "probe_prompts.csv"):
            if row["bias_type"] == bias_type and row["job"] in jobs:
                shares = {group: float(row[f"{group}_share"]) for group in GROUPS}  # type: ignore[arg-type]
                cells[str(row["job"]), int(row["template_id"])] = shares  # type: ignore[call-overload]
        tables.append(cells)
    old, new = tables
    found: Row = dict.fromkeys(("n_flips", "n_near_tie", "n_jobs_flipped"), 0)
    found |= {f"to_{group}": 0 for group in GROUPS} | {"male_to_female": 0, "female_to_male": 0}
    changes = []
    for cell, was in old.items():
        (one, near), (other, near_too) = winner(was), winner(new[cell])
        changes.append(new[cell]["female"] - was["female"])
        if one != other and (near or near_too):
            found["n_near_tie"] += 1
        elif one != other:
            found["n_flips"] += 1
            found[f"to_{other}"] += 1
            if f"{one}_to_{other}" in found:
                found[f"{one}_to_{other}"] += 1
    for job in jobs:
        means = []
        for table in tables:
            own = [shares for (name, _), shares in table.items() if name == job]
            means.append({group: fmean(shares[group] for shares in own) for group in GROUPS})
        (one, near), (other, near_too) = map(winner, means)
        found["n_jobs_flipped"] += one != other and not near and not near_too
    found |= {"n_prompts": len(old), "flips": found["n_flips"] / len(old), "mean_change": fmean(changes)}
    found["mean_absolute_change"] = fmean(map(abs, changes))
    return found | {"typical_change": math.sqrt(fmean(change**2 for change in changes))}


def test_every_number_is_that_of_a_plain_loop(tmp_path: Path) -> None:
    how = {"bias_types": ("explicit", "implicit"), "templates": range(1, 7)}
    result = compared(tmp_path, shares_by(1), shares_by(2), **how)
    rows = rows_of(result)
    assert ["all", "women's", "men's"] * 2 == [row["job_group"] for row in rows]
    seen = 0
    for row in rows:
        women = {"all": JOBS, "women's": [job for job in JOBS if WORKFORCE[job] >= 0.5]}
        jobs = women.get(row["job_group"], [job for job in JOBS if WORKFORCE[job] < 0.5])
        expected = by_loop(tmp_path / "old", tmp_path / "new", row["bias_type"], jobs)
        for name, value in expected.items():
            assert row[name] == pytest.approx(value, abs=1e-12), (name, row["job_group"])
        assert ("old", "new", "exact", 0) == (
            *(row[x] for x in ("before", "after", "estimator")),
            row["n_unmatched"],
        )
        assert (0.5, len(jobs)) == (row["coverage"], row["n_jobs"])
        assert row["flips_low"] < row["flips"] < row["flips_high"]
        assert row["mean_absolute_low"] < row["mean_absolute_change"] < row["mean_absolute_high"]
        assert row["separable"] is None
        seen += min(expected["n_flips"], expected["n_near_tie"], expected["n_jobs_flipped"])
    assert seen, "no world with flips and near ties"


def test_the_mean_is_that_of_the_tests(tmp_path: Path) -> None:
    result = compared(tmp_path, shares_by(1), shares_by(2))
    for row in rows_of(result):
        tests = [t for t in rows_of(result, "tests") if t["kind"] == "crossed" and t["quantity"] == "share"]
        own = [t for t in tests if t["gender"] == "female" and t["group_a"] == row["job_group"]]
        assert len(own) == (row["job_group"] != "all")
        for test in own:
            expected = [test[name] for name in ("estimate", "ci_low", "ci_high", "margin", "equivalent")]
            names = ("mean_change", "mean_change_low", "mean_change_high", "margin", "equivalent")
            assert expected == [row[name] for name in names]


def test_every_other_answer_is_listed_and_the_five_largest_changes(tmp_path: Path) -> None:
    result = compared(tmp_path, shares_by(1), shares_by(2))
    (row, *_), listed = rows_of(result), rows_of(result, "changed_prompts")
    changed = [prompt for prompt in listed if prompt["answer_before"] != prompt["answer_after"]]
    assert row["n_near_tie"] == sum(prompt["near_tie"] for prompt in changed)
    assert row["n_flips"] == sum(not prompt["near_tie"] for prompt in changed)
    sizes = [abs(prompt["change"]) for prompt in listed]
    assert sizes == sorted(sizes, reverse=True)
    cells = read_table_rows(tmp_path / "new" / "tables" / "probe_prompts.csv")
    largest = 0.0
    for cell in cells:
        was = shares_by(1)(str(cell["job"]), int(cell["template_id"]))[1]  # type: ignore[call-overload]
        largest = max(largest, abs(float(cell["female_share"]) - was))  # type: ignore[arg-type]
    assert largest == pytest.approx(sizes[0])
    first = listed[0]
    assert f"What of a {first['job']}, {first['template_id']}?" == first["prompt"]
    assert shares_by(2)(first["job"], first["template_id"]) == [first[f"{group}_after"] for group in GROUPS]
    same = compared(tmp_path / "same", shares_by(1), shares_by(1))
    assert [0.0] * 5 == [prompt["change"] for prompt in rows_of(same, "changed_prompts")]


def test_a_prompt_that_a_spreadsheet_would_run_is_quoted(tmp_path: Path) -> None:
    texts = {"texts": {f"explicit template {t}": ["=1+[JOB]", ""] for t in (1, 2, 3)}}
    result = compared(tmp_path, shares_by(1), shares_by(2), **texts)
    assert all(prompt["prompt"] == f"“=1+{prompt['job']}”" for prompt in rows_of(result, "changed_prompts"))


# --- intervals ----------------------------------------------------------------------------------------------


def wilson(rate: float, n: float, t: float) -> tuple[float, float]:
    """The two p with |r − p| = t √(p (1 − p)/n): roots of a quadratic."""
    roots = np.roots([1 + t * t / n, -(2 * rate + t * t / n), rate * rate])
    return float(min(roots.real)), float(max(roots.real))


def test_none_and_all_flipped_know_as_much_as_there_are_jobs() -> None:
    t = stats.t.ppf(0.975, 19)
    low, high, reason = flip_interval(0.0, np.zeros((20, 10)), 200)
    assert (0.0, None) == (low, reason)
    assert wilson(0.0, 20, t)[1] == pytest.approx(high) == pytest.approx(0.1797, abs=1e-4)
    low, high, _ = flip_interval(1.0, np.ones((20, 10)), 200)
    assert (pytest.approx(1 - 0.1797, abs=1e-4), 1.0) == (low, high)


def test_the_interval_of_flips_is_wilsons_of_the_effective_number() -> None:
    flips = np.zeros((8, 6))
    flips[:2], flips[4, 0] = 1.0, 1.0
    a = 6 * np.var(flips.mean(axis=1), ddof=1)
    b = 8 * np.var(flips.mean(axis=0), ddof=1)
    left = flips - flips.mean(axis=1, keepdims=True) - flips.mean(axis=0) + flips.mean()
    e = (left**2).sum() / 35
    v = max(a + b - e, a, b)
    dof = v**2 / (a**2 / 7 + b**2 / 5 + e**2 / 35)
    rate = flips.mean()
    expected = wilson(rate, rate * (1 - rate) / (v / 48), stats.t.ppf(0.975, dof))
    assert expected == pytest.approx(flip_interval(rate, flips, 48)[:2])


def test_one_job_and_one_template(tmp_path: Path) -> None:
    assert (None, None, "conditional on one job") == flip_interval(0.0, np.zeros((1, 5)), 5)
    low, high, reason = flip_interval(0.4, np.array([[1.0, 1.0, 0.0, 0.0, 0.0]]), 5)
    assert low is not None
    assert high is not None
    assert "conditional on one job" == reason
    low, high, reason = flip_interval(0.5, np.array([[1.0], [0.0], [1.0], [0.0]]), 4)
    assert "conditional on one template" == reason
    alone = compared(tmp_path, shares_by(1), shares_by(2), jobs=JOBS[:1], templates=[1])
    (row,) = rows_of(alone)
    assert (1, 1, None, None) == (row["n_prompts"], row["n_jobs"], row["flips_low"], row["mean_absolute_low"])
    assert "no interval" in row["reason"]
    assert hold(alone.content)


def test_sizes_are_averaged_on_the_log_scale() -> None:
    rng = np.random.default_rng(3)
    sizes = np.exp(rng.normal(size=(6, 5)))
    mean, low, high = mean_of_sizes(sizes)
    assert low is not None
    assert high is not None
    assert mean == pytest.approx(sizes.mean())
    assert low * high == pytest.approx(mean**2)
    assert (0.0, 0.0, 0.0) == mean_of_sizes(np.zeros((4, 4)))
    assert mean_of_sizes(np.ones((1, 1))) == (1.0, None, None)


def test_squares_are_unbiased_and_leave_out_what_one_text_says() -> None:
    rng = np.random.default_rng(5)
    before, after, n = 0.3, 0.5, 6
    counts = rng.binomial(n, before, 400_000) / n, rng.binomial(n, after, 400_000) / n
    inverse = np.full(400_000, 1 / n)
    squares = squares_without_noise(*counts, (inverse, inverse))
    assert squares.mean() == pytest.approx((after - before) ** 2, abs=5e-4)
    exact = squares_without_noise(counts[0], np.full(400_000, after), (inverse, None))
    assert exact.mean() == pytest.approx((after - before) ** 2, abs=5e-4)
    one = squares_without_noise(np.array([1.0, 0.5]), np.array([0.0, 0.5]), (np.array([1.0, 0.5]), None))
    assert np.isnan(one).tolist() == [True, False]


def test_what_is_separable_is_above_zero() -> None:
    rng = np.random.default_rng(7)
    noise = rng.normal(0, 0.1, (20, 10))
    assert is_separable(noise + 0.2) == (True, None)
    assert is_separable(noise - 0.2) == (False, None)
    holes = noise + 0.2
    holes[3, 4] = np.nan
    assert is_separable(holes) == (True, None)
    assert is_separable(noise[:, :1] + 0.2) == (None, "conditional on one template")


# --- worlds whose change is known; benchmarks/change_worlds.py has more ----------------------------


def test_intervals_hold_the_truth_where_wilsons_over_prompts_do_not() -> None:
    worlds = module_of(ROOT / "benchmarks" / "change_worlds.py")
    none, *_, many = worlds.EXACT
    assert all(worlds.held_by(none, 20)[0]["flips"])
    held, _ = worlds.held_by(many, 150)
    assert 0.9 <= np.mean(held["flips"]) <= 0.99
    assert 0.9 <= np.mean(held["absolute"])
    assert np.mean(held["wilson"]) < 0.8
    rare = next(world for world in worlds.EXACT if world.name == "rare, of cells")
    held, seen = worlds.held_by(rare, 150)
    assert 0.93 <= np.mean(held["flips"])
    assert np.mean(held["logit"]) < 0.75
    assert seen == pytest.approx(rare.truth[0], abs=0.002)


def test_samples_show_the_typical_change_and_nothing_where_nothing_changed() -> None:
    worlds = module_of(ROOT / "benchmarks" / "change_worlds.py")
    for world, _, draw in worlds.SAMPLED[:3]:  # none changed: 10 texts, 20 texts, batches
        flips, absolute, *_, typical, separable = worlds.seen_in(world, draw, 100)
        assert flips > 0.09
        assert absolute > 0.08
        assert typical < 0.02
        assert separable <= 0.05
    for world, _, draw in worlds.SAMPLED[9:]:
        *_, less, true, typical, separable = worlds.seen_in(world, draw, 60)
        assert typical == pytest.approx(true, abs=0.01)
        assert less < 0.6 * world.truth[1]
        assert separable > 0.7


# --- odd runs -----------------------------------------------------------------------------------------------


def test_prompts_that_only_one_run_has(tmp_path: Path) -> None:
    old = run_of(tmp_path / "old", "old", shares_by(1), templates=(1, 2, 3, 4))
    new = run_of(tmp_path / "new", "new", shares_by(2), templates=(2, 3, 4, 5), jobs=JOBS[:-1])
    row, *groups = rows_of(bk.compare(old, new, out="c"))
    assert (30, 14) == (row["n_prompts"], row["n_unmatched"])
    assert 14 == sum(own["n_unmatched"] for own in groups)
    assert "1 jobs left out" in row["reason"]
    turned = rows_of(bk.compare(new, old, out="d"))[0]
    assert (30, 10) == (turned["n_prompts"], turned["n_unmatched"])
    reworded = {"texts": {"explicit template 1": ["Who is the [JOB]?", ""]}}
    other = run_of(tmp_path / "other", "other", shares_by(2), **reworded)
    row, *_ = rows_of(bk.compare(run_of(tmp_path / "a", "a", shares_by(1)), other, out="e"))
    assert (22, 11) == (row["n_prompts"], row["n_unmatched"])


def test_two_formats_have_nothing_in_common(tmp_path: Path) -> None:
    old = run_of(tmp_path / "old", "old", shares_by(1))
    new = run_of(tmp_path / "new", "new", shares_by(2), formats={"new": "chat-prefill"})
    (row,) = rows_of(bk.compare(old, new, out="c"))
    assert (0, 33, None) == (row["n_prompts"], row["n_unmatched"], row["n_flips"])
    assert "no prompt that both answered" in row["reason"]
    result = bk.check(new, baseline=old, max_flips=1)
    assert not result
    assert "33 prompts of old have no match in new" in result.text


def test_gender_groups_and_job_groups_that_one_run_lacks(tmp_path: Path) -> None:
    old = run_of(tmp_path / "old", "old", shares_by(1))
    others = run_of(tmp_path / "other", "other", shares_by(2), groups=("male", "female", "none"))
    result = bk.compare(old, others, out="c")
    assert result.changes.empty
    assert any("different gender groups" in note for note in result.warnings)
    assert not bk.check(others, baseline=old, max_flips=1)
    men = [job for job in JOBS if WORKFORCE[job] < 0.5]
    new = run_of(tmp_path / "new", "new", shares_by(2), jobs=men)
    rows = rows_of(bk.compare(old, new, out="d"))
    assert {"all": 15, "women's": 0, "men's": 15} == {row["job_group"]: row["n_prompts"] for row in rows}
    assert [18, 18, 0] == [row["n_unmatched"] for row in rows]


def test_samples_and_bounds_have_no_flips(tmp_path: Path) -> None:
    def tenths(seed: int) -> Shares:
        def shares(job: str, template: int) -> list[float]:
            women = float(np.random.default_rng([seed, JOBS.index(job), template]).integers(2, 9)) / 10
            return [1 - women, women, 0.0]

        return shares

    result = compared(tmp_path, tenths(1), tenths(2), estimator="sampling", n=10)
    row = rows_of(result)[0]
    assert (None, None) == (row["n_flips"], row["mean_absolute_change"])
    assert "single answers cannot be compared" in row["reason"]
    assert row["typical_change"] is not None
    assert row["separable"] in (True, False)
    assert not rows_of(result, "changed_prompts")
    x, y = (
        np.array([[own(job, t)[1] for t in (1, 2, 3)] for job in sorted(JOBS)])
        for own in (tenths(1), tenths(2))
    )
    noise = x * (1 - x) / 9 + y * (1 - y) / 9
    assert row["typical_change"] == pytest.approx(math.sqrt(max(((y - x) ** 2 - noise).mean(), 0)))
    assert "cannot be compared" in bk.check(tmp_path / "new", baseline=tmp_path / "old", max_flips=1).text
    bounded = compared(tmp_path / "b", tenths(1), tenths(2), estimator="top-k", n=10)
    row = rows_of(bounded)[0]
    assert [None] * 3 == [row[name] for name in ("typical_change", "n_flips", "separable")]
    assert "bounds" in row["reason"]
    assert row["mean_change"] is not None
    assert not bk.check(tmp_path / "b" / "new", baseline=tmp_path / "b" / "old", max_flips=1)


def test_the_same_samples_are_not_separable(tmp_path: Path) -> None:
    shares: Shares = lambda job, template: [0.5, 0.5, 0.0]  # noqa: E731
    result = compared(tmp_path, shares, shares, estimator="sampling", n=10)
    assert rows_of(result)[0]["separable"] is False
    assert any("cannot be told from sampling" in one.text for one in hold(result.content))


def test_templates_of_one_frame_are_one_unit(tmp_path: Path) -> None:
    frame = {f"explicit template {t}": "a" for t in (1, 2)}
    how = {"question": {"frame of": frame}, "templates": range(1, 6)}
    framed = rows_of(compared(tmp_path / "f", shares_by(1), shares_by(2), **how))[0]
    plain = rows_of(compared(tmp_path / "p", shares_by(1), shares_by(2), templates=range(1, 6)))[0]
    assert framed["n_flips"] == plain["n_flips"]
    assert framed["flips_high"] != plain["flips_high"]
    test = [
        t for t in read_table_rows(tmp_path / "f" / "c" / "tables" / "tests.csv") if t["kind"] == "crossed"
    ]
    assert test


def test_of_pairs_the_preferred_sentences_are_counted() -> None:
    def scores(*shares: float) -> dict[tuple[Any, ...], Row]:
        about = {"language": "en", "stereotype": "nurse", "estimator": "exact"}
        found: dict[tuple[Any, ...], Row] = {}
        for number, share in enumerate(shares):
            row = {**about, "item": str(number), "female_share": share}
            found["en", "", f"She {number}.", f"He {number}."] = row
        return found

    before, after = scores(0.9, 0.6, 0.51, 0.2, 0.3), scores(0.8, 0.3, 0.4, 0.7)
    (row,), listed = change_rows_of_pairs("a", "b", {"a": before, "b": after}, {})
    assert (4, 1, 2, 1) == tuple(row[x] for x in ("n_prompts", "n_unmatched", "n_flips", "n_near_tie"))
    assert (1, 1, 0.5) == (row["to_female"], row["to_male"], row["flips"])
    assert ("3", "She 3. / He 3.", "male", "female", pytest.approx(0.5)) == tuple(
        listed[0][x] for x in ("job", "prompt", "answer_before", "answer_after", "change")
    )
    (row,), listed = change_rows_of_pairs("a", "c", {"a": before, "c": {}}, {})
    assert (0, 5, []) == (row["n_prompts"], row["n_unmatched"], listed)


def test_many_models_are_held_against_the_first(tmp_path: Path) -> None:
    runs = [run_of(tmp_path / f"m{i}", f"m{i}", shares_by(i)) for i in range(6)]
    rows = rows_of(bk.compare(*runs, out="c"))
    assert {("m0", f"m{i}") for i in range(1, 6)} == {(row["before"], row["after"]) for row in rows}
    rows = rows_of(bk.compare(*runs[:3], out="d"))
    assert 3 == len({(row["before"], row["after"]) for row in rows})


def test_the_tie_zone_is_set_by_a_run_or_the_call(tmp_path: Path) -> None:
    runs = [run_of(tmp_path / name, name, shares_by(i)) for i, name in enumerate(("a", "b"))]
    flips = {
        zone: rows_of(bk.compare(*runs, out=f"c{zone}", settings={"tie_zone": zone}))[0]
        for zone in (0, 0.04, 0.3)
    }
    assert flips[0]["n_flips"] > flips[0.04]["n_flips"] > flips[0.3]["n_flips"]
    assert flips[0]["n_flips"] == sum(flips[0.3][name] for name in ("n_flips", "n_near_tie"))
    assert 0.04 == rows_of(bk.compare(*runs, out="d"))[0]["tie_zone"]
    for wrong in (-1, 1, "wide", True):
        with pytest.raises(StudyError, match="tie_zone"):
            bk.compare(*runs, out="e", settings={"tie_zone": wrong})


# --- what is said and drawn ---------------------------------------------------------------------------------


def test_sentences_name_the_flips_and_where_to(tmp_path: Path) -> None:
    result = compared(tmp_path, shares_by(1), shares_by(2))
    row = rows_of(result)[0]
    said = [one.text for one in hold(result.content) if "another most probable group" in one.text]
    assert len(said) == 1
    assert f"{row['n_flips']} of 33 prompts (" in said[0]
    assert f"{row['to_female']} she" in said[0]
    assert f"; {row['n_near_tie']} more changed near a tie." in said[0]
    same = compared(tmp_path / "same", shares_by(1), shares_by(1))
    assert any("none of 33 prompts changed its answer after new" in one.text for one in hold(same.content))
    assert any("with 11 jobs, up to 31 % of such prompts could" in one.text for one in hold(same.content))


def test_an_equivalent_mean_is_said_before_the_flips(tmp_path: Path) -> None:
    def turned(job: str, template: int) -> list[float]:
        women = 0.6 if (JOBS.index(job) + template) % 2 else 0.4
        return [1 - women, women, 0.0]

    def back(job: str, template: int) -> list[float]:
        women = 0.4 if (JOBS.index(job) + template) % 2 else 0.6
        return [1 - women, women, 0.0]

    how = {"templates": range(1, 9), "jobs": JOBS[:10]}
    result = compared(tmp_path, turned, back, **how)
    row = rows_of(result)[0]
    assert (1.0, True) == (row["flips"], row["equivalent"])
    (said,) = (one.text for one in hold(result.content) if "another most probable" in one.text)
    assert said.startswith("Asked directly, the mean is equivalent within ±5 points, but ")


def test_the_floor_is_said_of_float32_alone(tmp_path: Path) -> None:
    def said(dtype: str) -> bool:
        entries = {name: {"details": {"dtype": dtype}} for name in ("old", "new")}
        result = compared(tmp_path / dtype, shares_by(1), shares_by(2), entries=entries)
        return any("The same weights queried again" in one.text for one in hold(result.content))

    assert [True, False] == [said("float32"), said("bfloat16")]


def test_the_figure_is_first_if_anything_flips(tmp_path: Path) -> None:
    result = compared(tmp_path, shares_by(1), shares_by(2))
    first, *others = draw_all(result.content)
    assert ("change", "") == (first.name, first.question)
    assert all(figure.question for figure in others)
    (band,) = first.plot.bands
    (square,) = band.panels
    spots = {mark.marker: len(own) for mark, own in square.spots.items()}  # type: ignore[union-attr]
    row = rows_of(result)[0]
    assert 33 == sum(spots.values())
    assert (row["to_female"], row["to_male"], row["to_diverse"]) == tuple(spots.get(x, 0) for x in "^vD")
    same = draw_all(compared(tmp_path / "same", shares_by(1), shares_by(1)).content)
    assert "change" != same[0].name
    assert "models" == next(figure.question for figure in same if figure.name == "change")


# --- along an axis ------------------------------------------------------------------------------------------


def doses(tmp_path: Path, n: int = 4) -> list[Path]:
    def shares(dose: int) -> Shares:
        def of(job: str, template: int) -> list[float]:
            women = 0.2 + 0.15 * dose + 0.05 * math.sin(7 * JOBS.index(job) + 3 * template + dose)
            return [1 - women, women, 0.0]

        return of

    return [run_of(tmp_path / f"d{i}", f"d{i}", shares(i)) for i in range(n)]


def test_the_curve_and_the_slope(tmp_path: Path) -> None:
    runs = doses(tmp_path)
    result = bk.compare(*runs, axis="dose=0,1,2,5", out="c")
    curve = [row for row in rows_of(result, "curve") if row["job_group"] == "all"]
    assert [0, 1, 2, 5] == [row["value"] for row in curve]
    shares = [row["share"] for row in curve]
    assert shares == sorted(shares)
    changes = {row["after"]: row for row in rows_of(result) if row["job_group"] == "all"}
    assert {"d0"} == {row["before"] for row in rows_of(result)}
    for row in curve[1:]:
        own = changes[row["model"]]
        assert [own[name] for name in ("flips", "flips_low", "typical_change")] == [
            row[name] for name in ("flips", "flips_low", "typical_change")
        ]
        assert row["ci_low"] < row["share"] < row["ci_high"]
        assert row["typical_low"] < row["typical_change"] < row["typical_high"]
    slopes = []
    for job, template in itertools.product(JOBS, (1, 2, 3)):
        y = []
        for run in runs:
            cells = read_table_rows(run / "tables" / "probe_prompts.csv")
            y += [c["female_share"] for c in cells if (c["job"], c["template_id"]) == (job, template)]
        slopes.append(np.polyfit([0, 1, 2, 5], y, 1)[0])
    tests = [row for row in rows_of(result, "tests") if str(row["family"]).endswith("/axis")]
    (test,) = (row for row in tests if not row["group_a"])
    assert test["estimate"] == pytest.approx(np.mean(slopes))
    assert ("shown", "d3", "d0") == (test["verdict"], test["model_a"], test["model_b"])
    assert 3 == len(tests)
    assert "curve" == draw_all(result.content)[0].name
    assert hold(result.content)
    again = bk.report(result, watcher=bk.Silent())
    assert "curve" == again.figures[0].stem


@pytest.mark.parametrize(
    ("axis", "said"),
    [
        ("dose", "write NAME=VALUE"),
        ("=1,2,3,4", "write NAME=VALUE"),
        ("dose=1,2", "write NAME=VALUE"),
        ("dose=1,2,many,4", "write NAME=VALUE"),
        ("dose=1,2,nan,4", "write NAME=VALUE"),
        ("dose=1,2,3", "write NAME=VALUE"),
        ("dose=1,1,1,1", "write NAME=VALUE"),
    ],
)
def test_an_axis_that_cannot_be_meant(axis: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said) as error:
        bk.compare(*doses(tmp_path), axis=axis, out="c")
    assert "\n" not in str(error.value)
    assert not Path("c").exists()


def test_a_curve_that_cannot_be_drawn_is_said_to_be_none(tmp_path: Path) -> None:
    runs = [*doses(tmp_path, 2), run_of(tmp_path / "d2", "d2", shares_by(1), estimator="top-k")]
    result = bk.compare(*runs, axis="dose=0,1,2", out="c")
    assert "No curve along dose: no prompt that all models have shares of." in result.warnings
    assert "curve" not in result.tables()


# --- the check ----------------------------------------------------------------------------------------------


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path, Row]:
    old = run_of(tmp_path / "old", "m", shares_by(1))
    new = run_of(tmp_path / "new", "m", shares_by(2))
    return old, new, rows_of(bk.compare(old, new, out=tmp_path / "c"))[0]


def test_a_rate_above_fails_and_the_rate_itself_passes(
    runs: tuple[Path, Path, Row], cli: Cli, tmp_path: Path
) -> None:
    old, new, row = runs
    assert bk.check(new, baseline=old, max_flips=row["flips"])
    assert not bk.check(new, baseline=old, max_flips=row["flips"] - 1e-9)
    limit = (f"{row['flips'] + 1e-6}", f"{row['flips'] - 1e-6}")
    passed = cli("check", new, "--baseline", old, "--max-flips", limit[0])
    junit = tmp_path / "j.xml"
    failed = cli("check", new, "--baseline", old, "--max-flips", limit[1], "--junit", junit)
    assert (0, 4) == (passed.code, failed.code)
    assert f"{row['n_flips']} of 33 prompts flipped" in failed.out
    failure = ElementTree.fromstring(junit.read_bytes()).find("testsuite/testcase/failure")
    assert failure is not None
    examples = str(failure.text).splitlines()[1:]
    assert 5 == len(examples)
    assert all(" → " in line and "What of a " in line for line in examples)
    markdown = cli("check", new, "--baseline", old, "--max-flips", limit[1], "--format", "github")
    assert markdown.out.count("→") == 5
    said = json.loads(cli("check", new, "--baseline", old, "--max-flips", limit[1], "--format", "json").out)
    assert 5 == len(said["requirements"][0]["failing"][0]["examples"])


def test_thresholds_with_flips(runs: tuple[Path, Path, Row], tmp_path: Path) -> None:
    old, new, _ = runs

    def holds(**require: Any) -> bool:
        return bool(bk.check(old, new, thresholds={"require": [{"max_flips": 1.0} | require]}))

    assert holds()
    assert holds(bias_type="explicit", prompt_format="raw", min_n=33, min_coverage=0.5)
    assert not holds(bias_type="implicit")
    assert not holds(min_n=34)
    assert not holds(min_coverage=0.51)
    assert holds(models=["m (old)", "m (new)"])
    assert not holds(models=["m (old)", "gone"])
    for other in ({"margin": 0.1}, {"quantity": "share"}, {"contrast": "groups"}):
        with pytest.raises(UsageError, match="max_flips takes"):
            holds(**other)
    for wrong in (-0.1, 5, "few"):
        with pytest.raises(UsageError, match="max_flips"):
            holds(max_flips=wrong)
    with pytest.raises(UsageError, match="Nothing is required"):
        bk.check(new, baseline=old)
    both = tmp_path / "both.toml"
    both.write_text("[[require]]\nmax_flips = 1.0\n[[require]]\nmax_flips = 0.0\n")
    assert [True, False] == [outcome.holds for outcome in bk.check(old, new, thresholds=both).outcomes]


def test_a_prompt_of_the_baseline_that_is_gone_never_passes(
    runs: tuple[Path, Path, Row], tmp_path: Path
) -> None:
    old, new, _ = runs
    fewer = run_of(tmp_path / "fewer", "m", shares_by(1), templates=(1, 2))
    assert (
        "11 prompts of m (old) have no match in m (fewer)" in bk.check(fewer, baseline=old, max_flips=1).text
    )
    assert bk.check(old, baseline=fewer, max_flips=1)  # more prompts are no harm
    assert not bk.check(new, max_flips=1)  # of one run nothing is compared


def test_of_several_models_each_has_its_namesake(tmp_path: Path) -> None:
    def two(name: str, seeds: Mapping[str, int]) -> Path:
        path = tmp_path / name
        probe_run(path, *seeds, choices=CHOICES)
        table = path / "tables" / "probe_prompts.csv"
        rows = read_table_rows(table)
        for row in rows:
            found = shares_by(seeds[str(row["model"])])(str(row["job"]), int(row["template_id"]))  # type: ignore[call-overload]
            row |= {f"{group}_share": share for group, share in zip(GROUPS, found, strict=True)}
        table.write_bytes(table_bytes("probe_prompts", rows, groups=GROUPS, contrast=("female", "male")))
        return seal(path)

    old, new = two("old", {"a": 1, "b": 2, "c": 3}), two("new", {"a": 1, "b": 2, "c": 3})
    assert bk.check(new, baseline=old, max_flips=0)
    assert not bk.check(two("other", {"a": 1, "b": 2, "d": 3}), baseline=old, max_flips=0)
    shutil.rmtree(new)


def test_the_fixture_takes_max_flips(
    runs: tuple[Path, Path, Row], pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new, _ = runs
    pytester.makepyfile(
        f"""
        def test_one(biaskit_check): biaskit_check({str(new)!r}, baseline={str(old)!r}, max_flips=1.0)
        def test_two(biaskit_check): biaskit_check({str(new)!r}, baseline={str(old)!r}, max_flips=0.0)
        """
    )
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    ran = pytester.inline_run("-p", "biaskit.pytest_plugin", "-p", "no:cacheprovider", "-q")
    reports = [one for one in ran.getreports("pytest_runtest_logreport") if one.when == "call"]
    assert [True, False] == [report.passed for report in reports]
