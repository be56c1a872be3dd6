"""From cells to the prober's tables: against plain loops over the cells, and what must not move a number."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from fakes.tables import write_table
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from biaskit.errors import StudyError
from biaskit.measures.probe.contrasts import StudyCells
from biaskit.measures.probe.effects import tables
from biaskit.records import CellShares, PromptCell
from biaskit.tables.io import read_table_rows
from biaskit.tables.schema import SCHEMAS

GROUPS = ("male", "female", "diverse")
LEVELS = {"high": (1, 2), "low": (5, 6)}
JOBS = {
    "nurse": ("female-dominated", 0.9),
    "teacher": ("female-dominated", 0.8),
    "secretary": ("female-dominated", 0.92),
    "carpenter": ("male-dominated", 0.03),
    "pilot": ("male-dominated", 0.06),
}
Row = dict[str, Any]
Labels = tuple[str, Any, int, str, int, Any]  # model, bias type, template, job, debiasing prompt, context
ROUNDING = 1e-12


def cell(labels: Labels, jobs: Mapping[str, Any]) -> PromptCell:
    model, bias_type, template, job, debiasing, context = labels
    group, workforce = jobs[job]
    return PromptCell(model, bias_type, template, job, group, workforce, debiasing, context, "raw")


def answered(of: PromptCell, masses: Sequence[float]) -> CellShares:
    coverage = math.fsum(masses)
    return CellShares(of, "exact", tuple(masses), coverage, tuple(mass / coverage for mass in masses))


def failed(of: PromptCell) -> CellShares:
    return CellShares(of, None, None, None, None, "no answer stored")


def masses_of(labels: Labels) -> tuple[float, ...]:
    """Masses that depend on the labels of their cell alone, with a job and a template effect."""
    model, bias_type, template, job, debiasing, context = labels
    key = f"{model}{bias_type}{template}{job}{debiasing}{context}"
    rng = np.random.default_rng(list(key.encode()))
    tilt = 1.5 if JOBS.get(job, ("", 0))[0] == "female-dominated" else 0.6
    male, female, diverse = rng.random(3) * [0.05, 0.05 * tilt, 0.01] * (1 + 0.1 * template)
    return float(male), float(female), float(diverse)


def study(
    *,
    models: Sequence[str] = ("m",),
    bias_types: Sequence[str] = ("explicit",),
    templates: Sequence[int] = (1, 2, 3),
    jobs: Mapping[str, Any] = JOBS,
    debiasing_prompts: Sequence[int] = (0,),
    run_in: Sequence[str] = ("plain",),
    without: Iterable[Labels] = (),
    masses: Callable[[Labels], tuple[float, ...]] = masses_of,
) -> list[CellShares]:
    out = set(without)
    made = []
    for labels in itertools.product(models, bias_types, templates, jobs, debiasing_prompts, run_in):
        of = cell(labels, jobs)
        made.append(failed(of) if labels in out else answered(of, masses(labels)))
    return made


def run(cells: Sequence[CellShares], **choices: Any) -> dict[str, list[Row]]:
    defaults: dict[str, Any] = {
        "groups": GROUPS,
        "contrast": ("female", "male"),
        "levels": {},
        "min_coverage": 0.01,
        "interval": "crossed",
        "margins": {"share": 0.05},
        "seed": 1,
    }
    return tables(cells, StudyCells(**(defaults | choices)))


def find(rows: Sequence[Row], **values: object) -> Row:
    """The one row with these values."""
    found = [row for row in rows if all(row[name] == value for name, value in values.items())]
    assert len(found) == 1, f"{len(found)} rows with {values}"
    return found[0]


def keyed(name: str, rows: Sequence[Row], *, leave_out: Sequence[str] = ()) -> dict[tuple[object, ...], Row]:
    return {
        tuple(row[key] for key in SCHEMAS[name].keys): {k: v for k, v in row.items() if k not in leave_out}
        for row in rows
    }


def share(cells: Sequence[CellShares], gender: int, **labels: object) -> float:
    """The plain mean of the shares of the cells with these labels."""
    found = [
        x.shares[gender]
        for x in cells
        if x.shares and all(getattr(x.cell, name) == value for name, value in labels.items())
    ]
    return math.fsum(found) / len(found)


def t_ends(values: Sequence[float], *, logit: bool) -> tuple[float, float]:
    """The t interval of one job over its templates, in plain Python."""
    n, m = len(values), statistics.fmean(values)
    half = stats.t.ppf(0.975, n - 1) * statistics.stdev(values) / math.sqrt(n)
    if not logit:
        return max(m - half, -1.0), min(m + half, 1.0)
    centre, reach = math.log(m / (1 - m)), half / (m * (1 - m))
    return 1 / (1 + math.exp(reach - centre)), 1 / (1 + math.exp(-reach - centre))


# --- probe_prompts -----------------------------------------------------------------------------------


def test_every_needed_cell_has_a_line_and_a_failed_one_says_why() -> None:
    cells = study(without=[("m", "explicit", 2, "pilot", 0, "plain")])
    rows = run(cells)["probe_prompts"]
    assert len(cells) == len(rows)
    lost = find(rows, template_id=2, job="pilot")
    assert "no answer stored" == lost["reason"]
    numbers = ["male_mass", "coverage", "female_share", "male_share_low", "low_coverage", "estimator"]
    assert [None] * len(numbers) == [lost[name] for name in numbers]


def test_a_cell_has_a_low_coverage_strictly_below_the_minimum() -> None:
    of = [cell(("m", "explicit", t, "nurse", 0, "plain"), JOBS) for t in (1, 2)]
    rows = run([answered(of[0], (0.005, 0.004, 0.001)), answered(of[1], (0.005, 0.004, 0.0009))])
    assert [False, True] == [row["low_coverage"] for row in rows["probe_prompts"]]
    assert [1] * 3 == [row["n_low_coverage"] for row in rows["probe_groups"]]


# --- probe_jobs, probe_groups, probe_templates, probe_variance -------------------------------------


def test_a_job_has_the_mean_of_its_templates_and_their_t_interval() -> None:
    cells = study(templates=(1, 2, 3, 4))
    rows = run(cells)["probe_jobs"]
    assert list(JOBS) == [row["job"] for row in rows]
    for row in rows:
        own = [x for x in cells if x.cell.job == row["job"]]
        by_gender = [[x.shares[g] for x in own if x.shares] for g in range(3)]
        difference = [f - m for m, f in zip(by_gender[0], by_gender[1], strict=True)]
        for gender, values in zip(GROUPS, by_gender, strict=True):
            assert statistics.fmean(values) == pytest.approx(row[f"{gender}_share"])
            ends = row[f"{gender}_share_ci_low"], row[f"{gender}_share_ci_high"]
            assert t_ends(values, logit=True) == pytest.approx(ends)
        assert statistics.fmean(difference) == pytest.approx(row["female_minus_male"])
        assert t_ends(difference, logit=False) == pytest.approx((row["ci_low"], row["ci_high"]))
        assert statistics.fmean(x.coverage for x in own if x.coverage) == pytest.approx(row["coverage"])
        assert (JOBS[row["job"]], 4) == ((row["job_group"], row["workforce_share"]), row["n_templates"])


def test_the_difference_follows_the_contrast_of_the_study() -> None:
    row = find(run(study(), contrast=("diverse", "male"))["probe_jobs"], job="nurse")
    assert row["diverse_share"] - row["male_share"] == row["diverse_minus_male"]


def test_a_group_has_the_mean_of_its_jobs_and_its_sensitivity_check() -> None:
    cells = study()
    for row in run(cells)["probe_groups"]:
        g = GROUPS.index(row["gender"])
        own = [x for x in cells if x.cell.job_group == row["job_group"]]
        of_template = [
            statistics.fmean(x.shares[g] for x in own if x.shares and x.cell.template_id == t)
            for t in (1, 2, 3)
        ]
        assert statistics.fmean(of_template) == pytest.approx(row["share"])
        assert statistics.stdev(of_template) / math.sqrt(3) == pytest.approx(row["se_templates"])
        pooled = math.fsum(x.masses[g] for x in own if x.masses) / math.fsum(x.coverage or 0 for x in own)
        assert pooled == pytest.approx(row["pooled_share"])
        coverage = [x.coverage for x in own if x.coverage is not None]
        assert statistics.fmean(coverage) == pytest.approx(row["coverage"])
        assert statistics.median(coverage) == pytest.approx(row["coverage_median"])
        assert sum(x < 0.01 for x in coverage) == row["n_low_coverage"]
        assert row["ci_low"] < row["share"] < row["ci_high"]
        assert (3 if row["job_group"] == "female-dominated" else 2, 3) == (row["n_jobs"], row["n_templates"])


def test_a_template_has_the_mean_of_the_jobs_of_a_group() -> None:
    cells = study()
    for row in run(cells)["probe_templates"]:
        labels = {"template_id": row["template_id"], "job_group": row["job_group"]}
        assert share(cells, GROUPS.index(row["gender"]), **labels) == pytest.approx(row["share"])


def test_the_components_of_a_group_match_a_plain_loop() -> None:
    cells = study()
    row = find(run(cells)["probe_variance"], job_group="female-dominated", gender="female")
    jobs = [job for job, (group, _) in JOBS.items() if group == "female-dominated"]
    x = [[share(cells, 1, job=job, template_id=t) for t in (1, 2, 3)] for job in jobs]
    of_job = [statistics.fmean(values) for values in x]
    of_template = [statistics.fmean(values) for values in zip(*x, strict=True)]
    grand = statistics.fmean(of_job)
    e = sum((x[i][j] - of_job[i] - of_template[j] + grand) ** 2 for i in range(3) for j in range(3)) / 4
    assert e == pytest.approx(row["var_residual"])
    assert max((3 * statistics.variance(of_job) - e) / 3, 0) == pytest.approx(row["var_job"])
    assert max((3 * statistics.variance(of_template) - e) / 3, 0) == pytest.approx(row["var_template"])


# --- what a failed cell does -----------------------------------------------------------------------

LOST = ("m", "explicit", 2, "pilot", 0, "plain")


def test_only_templates_complete_for_all_jobs_enter_and_the_rest_is_named() -> None:
    cells = study(without=[LOST])
    made = run(cells)
    kept = [x for x in cells if x.cell.template_id != 2]
    for row in made["probe_groups"]:
        assert share(kept, GROUPS.index(row["gender"]), job_group=row["job_group"]) == pytest.approx(
            row["share"]
        )
        left_out = "template 2 of 3 left out: 1 prompt failed; conditional on two templates"
        assert (2, left_out) == (row["n_templates"], row["reason"])
    nurse = find(made["probe_jobs"], job="nurse")
    assert share(kept, 1, job="nurse") == pytest.approx(nurse["female_share"])
    for job_group, answered_jobs in (("male-dominated", 1), ("female-dominated", 3)):
        out = find(made["probe_templates"], template_id=2, job_group=job_group, gender="male")
        assert (None, None, answered_jobs) == (out["share"], out["coverage"], out["n_jobs"])
        assert out["reason"] == "no share in 1 of 5 jobs"


def test_averaging_whatever_was_answered_is_noticed() -> None:
    cells = study(without=[LOST])
    row = find(run(cells)["probe_groups"], job_group="male-dominated", gender="male")
    assert share(cells, 0, job_group="male-dominated") != pytest.approx(row["share"], rel=1e-3)


def test_the_pooled_share_takes_every_answered_cell() -> None:
    cells = study(without=[LOST])
    row = find(run(cells)["probe_groups"], job_group="male-dominated", gender="male")
    own = [x for x in cells if x.cell.job_group == "male-dominated"]
    pooled = math.fsum(x.masses[0] for x in own if x.masses) / math.fsum(x.coverage or 0 for x in own)
    assert pooled == pytest.approx(row["pooled_share"])


def test_no_complete_template_gives_none_with_a_reason_everywhere() -> None:
    made = run(study(without=[("m", "explicit", t, "pilot", 0, "plain") for t in (1, 2, 3)]))
    reason = "no template is complete for all jobs: 3 prompts failed"
    for row in made["probe_groups"]:
        assert (None, None, None, reason) == (
            row["share"],
            row["ci_low"],
            row["n_low_coverage"],
            row["reason"],
        )
        assert row["pooled_share"] is not None
    assert all((row["female_share"], row["reason"]) == (None, reason) for row in made["probe_jobs"])
    for row in made["tests"]:
        assert (None, None) == (row["estimate"], row["ci_low"])
        assert reason in row["reason"]


def test_nothing_answered_at_all_gives_tables_without_a_number() -> None:
    made = run([failed(x.cell) for x in study()])
    assert {None} == {row["pooled_share"] for row in made["probe_groups"]}
    assert {None} == {row["estimator"] for row in made["probe_jobs"]}


def test_an_empty_cell_of_sampling_enters_by_the_fit_of_the_others() -> None:
    cells = [replace(x, estimator="sampling") for x in study()]
    cells[0] = replace(
        cells[0], masses=(0.0, 0.0, 0.0), coverage=0.0, shares=None, reason="no sample matched"
    )
    made = run(cells)
    row = made["probe_groups"][0]
    assert row["reason"].startswith("no sample matched in 1 of 9 prompts: fitted from the others")
    assert (3, 1) == (row["n_templates"], row["n_empty"])
    assert row["share_low"] < row["share"] < row["share_high"]
    # More than a tenth of the group's cells are empty: nothing is tested and nothing is judged.
    of_group = [r for r in made["tests"] if r["kind"] == "crossed" and "groups" in r["family"]]
    assert {None} == {r["p_value"] for r in of_group}
    assert {"no-verdict"} == {r["verdict"] for r in of_group}


def test_a_contrast_takes_the_templates_complete_in_all_its_arms() -> None:
    without = [("m", "explicit", 1, "nurse", 0, "plain"), ("m", "explicit", 3, "pilot", 1, "plain")]
    cells = study(debiasing_prompts=(0, 1, 2), without=without)
    rows = run(cells)["tests"]
    own = {"contrast": "debiasing"}
    for k, templates, reason in (
        ("1", {2}, "templates 1, 3 of 3 left out: 2 prompts failed"),
        ("2", {2, 3}, "template 1 of 3 left out: 1 prompt failed"),
    ):
        row = find(
            contrast(rows, own["contrast"]),
            debiasing_a=k,
            gender="female",
            group_a="male-dominated",
            quantity="share",
            kind="paired",
        )
        kept = [x for x in cells if x.cell.template_id in templates and x.cell.job_group == "male-dominated"]
        expected = share(kept, 1, debiasing_id=int(k)) - share(kept, 1, debiasing_id=0)
        assert expected == pytest.approx(row["estimate"])
        assert row["reason"].startswith(reason)


def test_cells_that_are_no_full_product_are_refused() -> None:
    with pytest.raises(StudyError, match="template 3 with 'pilot'"):
        run(study()[:-1])


# --- estimators that give no point --------------------------------------------------------------------


def bounded(x: CellShares) -> CellShares:
    """The cell as `top-k` might give it: ends that differ from cell to cell."""
    width = 0.01 * (x.cell.template_id + len(x.cell.job))
    assert x.shares is not None
    return replace(
        x,
        estimator="top-k",
        share_ends=tuple((share - width, share + 2 * width) for share in x.shares),
        coverage_ends=(0.5, 0.75),
        difference_ends=(-width, 3 * width),
    )


def mean_end(cells: Sequence[CellShares], gender: int, end: int, **labels: object) -> float:
    found = [
        x.share_ends[gender][end] or 0.0
        for x in cells
        if x.share_ends and all(getattr(x.cell, name) == value for name, value in labels.items())
    ]
    return math.fsum(found) / len(found)


def test_the_bounds_of_a_group_are_means_over_the_cells_that_enter_its_share() -> None:
    cells = [bounded(x) if x.shares else x for x in study(without=[LOST])]
    kept = [x for x in cells if x.cell.template_id != 2]
    for row in run(cells)["probe_groups"]:
        of = (kept, GROUPS.index(row["gender"]))
        for end, name in enumerate(("share_low", "share_high")):
            assert mean_end(*of, end, job_group=row["job_group"]) == pytest.approx(row[name])
        assert row["se_sampling"] is None


def test_the_bounds_of_a_difference_are_means_over_the_templates_of_a_job() -> None:
    cells = [bounded(x) if x.shares else x for x in study(without=[LOST])]
    for row in run(cells)["probe_jobs"]:
        widths = [0.01 * (template + len(row["job"])) for template in (1, 3)]
        mean = math.fsum(widths) / 2
        assert (-mean, 3 * mean) == pytest.approx((row["difference_low"], row["difference_high"]))


def test_nothing_complete_leaves_no_bounds_and_no_error() -> None:
    without = [("m", "explicit", t, "pilot", 0, "plain") for t in (1, 2, 3)]
    for make in (bounded, counted):
        made = run([make(x) if x.shares else x for x in study(without=without)])
        names = ("share_low", "share_high", "se_sampling")
        assert {(None, None, None)} == {tuple(row[name] for name in names) for row in made["probe_groups"]}
        assert {None} == {row["difference_low"] for row in made["probe_jobs"]}


def counted(x: CellShares) -> CellShares:
    """The cell as `sampling` might give it, from a number of matched samples that differs from job to job."""
    matched = len(x.cell.job)
    ends = ((0.1, 0.9),) * 3
    return replace(x, estimator="sampling", share_ends=ends, coverage_ends=(0.1, 0.9), matched=matched)


def test_the_error_of_the_samples_is_that_of_the_cells_that_enter() -> None:
    cells = [counted(x) if x.shares else x for x in study(without=[LOST])]
    for row in run(cells)["probe_groups"]:
        g = GROUPS.index(row["gender"])
        kept = [x for x in cells if x.cell.job_group == row["job_group"] and x.cell.template_id != 2]
        squares = [p * (1 - p) / (len(x.cell.job) - 1) for x in kept if x.shares for p in [x.shares[g]]]
        assert math.sqrt(math.fsum(squares)) / len(kept) == pytest.approx(row["se_sampling"])
        assert (None, None) == (row["share_low"], row["share_high"])
        assert "se_sampling" not in (row["reason"] or "")


def test_cells_of_one_matched_draw_are_named_beside_the_error() -> None:
    cells = [counted(x) for x in study()]
    cells[0] = replace(cells[0], matched=1)
    row = run(cells)["probe_groups"][0]
    assert "se_sampling over 8 of 9 prompts, the others have one match" == row["reason"]


def test_ends_move_no_number_of_the_points() -> None:
    exact, listed = run(study()), run([bounded(x) for x in study()])
    for a, b in zip(exact["tests"], listed["tests"], strict=True):
        assert a["estimate"] == b["estimate"]
    ends = ["estimator", "share_low", "share_high", "ci_low", "ci_high", "n_empty"]
    ends += ["binary_share_ci_low", "binary_share_ci_high"]
    for a, b in zip(exact["probe_groups"], listed["probe_groups"], strict=True):
        assert {k: v for k, v in a.items() if k not in ends} == {k: v for k, v in b.items() if k not in ends}


@pytest.mark.parametrize(("one", "other"), [("top-k", "sampling"), ("echo", "exact"), ("exact", "top-k")])
def test_two_estimators_never_meet_in_a_block(one: str, other: str) -> None:
    cells = [replace(x, estimator=one) for x in study()]
    with pytest.raises(StudyError, match="several estimators"):
        run([replace(cells[0], estimator=other), *cells[1:]])


# --- few jobs, few templates -----------------------------------------------------------------------


def test_one_template_has_an_interval_over_jobs_and_says_so() -> None:
    made = run(study(templates=(1,)))
    for row in made["probe_groups"]:
        assert row["ci_low"] is not None
        assert (None, "conditional on one template") == (row["se_templates"], row["reason"])
    assert all(
        (row["ci_low"], row["reason"]) == (None, "one template: no interval") for row in made["probe_jobs"]
    )
    assert all((row["var_job"], row["reason"] is None) == (None, False) for row in made["probe_variance"])


def test_a_group_of_one_job_has_an_interval_over_templates_and_says_so() -> None:
    made = run(study(jobs={"nurse": JOBS["nurse"], "pilot": JOBS["pilot"], "teacher": JOBS["teacher"]}))
    row = find(made["probe_groups"], job_group="male-dominated", gender="male")
    assert row["ci_low"] is not None
    assert row["reason"] == "conditional on one job"
    crossed = find(contrast(made["tests"], "groups"), kind="crossed", quantity="share", gender="male")
    assert ("conditional on one job", None) == (crossed["reason"], crossed["equivalent"])
    welch = find(contrast(made["tests"], "groups"), kind="welch", quantity="share", gender="male")
    assert (None, "fewer than two units in a group: no test") == (welch["p_value"], welch["reason"])


def test_one_job_and_one_template_have_a_share_and_no_interval() -> None:
    made = run(study(jobs={"nurse": JOBS["nurse"]}, templates=(1,)))
    row = find(made["probe_groups"], gender="male")
    assert row["share"] is not None
    assert (None, "one job and one template: no interval") == (row["ci_low"], row["reason"])


# --- the rows of tests.csv -------------------------------------------------------------------------


def contrast(rows: Sequence[Row], name: str) -> list[Row]:
    return [row for row in rows if row["family"].endswith(f"/{name}")]


FULL = study(
    bias_types=("explicit", "implicit"),
    debiasing_prompts=(0, 1, 2, 5),
    run_in=("plain", "dialogue"),
    templates=(1, 2, 3),
)
MADE = run(FULL, levels=LEVELS)


def test_a_run_of_one_model_writes_every_named_contrast() -> None:
    # 2 bias types × 2 contexts = 4 scopes; 4 debiasing prompts; 3 genders × 2 job groups = 6.
    expected = {
        ("groups", "share", "welch"): 4 * 4 * 3,
        ("groups", "share", "crossed"): 4 * 4 * 3,
        ("groups", "asymmetry", "welch"): 4 * 4,
        ("groups", "asymmetry", "crossed"): 4 * 4,
        ("debiasing", "share", "paired"): 4 * 3 * 6,
        ("debiasing", "share", "crossed"): 4 * 3 * 6,
        ("debiasing", "group_gap", "welch"): 4 * 3 * 3,
        ("debiasing", "group_gap", "crossed"): 4 * 3 * 3,
        ("levels", "share", "paired"): 4 * 2 * 6,
        ("levels", "share", "crossed"): 4 * 2 * 6,
        ("contexts", "share", "paired"): 2 * 4 * 6,
        ("contexts", "share", "crossed"): 2 * 4 * 6,
        ("contexts", "debiasing_effect", "paired"): 2 * 3 * 6,
        ("contexts", "debiasing_effect", "crossed"): 2 * 3 * 6,
        ("bias-types", "share", "estimate"): 2 * 4 * 6,
        # Of female and male, the part of female.
        ("groups", "binary_share", "welch"): 4 * 4,
        ("groups", "binary_share", "crossed"): 4 * 4,
        ("groups", "binary_asymmetry", "welch"): 4 * 4,
        ("groups", "binary_asymmetry", "crossed"): 4 * 4,
        ("debiasing", "binary_share", "paired"): 4 * 3 * 2,
        ("debiasing", "binary_share", "crossed"): 4 * 3 * 2,
        ("debiasing", "binary_group_gap", "welch"): 4 * 3,
        ("debiasing", "binary_group_gap", "crossed"): 4 * 3,
        ("levels", "binary_share", "paired"): 4 * 2 * 2,
        ("levels", "binary_share", "crossed"): 4 * 2 * 2,
        ("contexts", "binary_share", "paired"): 2 * 4 * 2,
        ("contexts", "binary_share", "crossed"): 2 * 4 * 2,
        ("contexts", "binary_debiasing_effect", "paired"): 2 * 3 * 2,
        ("contexts", "binary_debiasing_effect", "crossed"): 2 * 3 * 2,
        ("bias-types", "binary_share", "estimate"): 2 * 4 * 2,
        ("workforce", "female_share~workforce_share", "slope"): 4 * 4 * 3,
        ("workforce", "female_share~workforce_share", "level"): 4 * 4 * 3,
        ("workforce", "female_share~workforce_share", "distance"): 4 * 4 * 3,
        ("workforce", "female_share~workforce_share", "spearman"): 4 * 4 * 3,
    }
    found: dict[tuple[str, ...], int] = {}
    for row in MADE["tests"]:
        name = row["family"].split("/")[-1]
        assert row["family"] == f"probe/{row['quantity']}/{row['kind']}/{name}"
        assert ("probe", "m", "m", "job") == (row["measurement"], row["model_a"], row["model_b"], row["unit"])
        key = (name, row["quantity"], row["kind"])
        found[key] = found.get(key, 0) + 1
    assert expected == found


MEN = {"group_a": "male-dominated"}
OF_MEN = {"job_group": "male-dominated"}
BOTH_SIDES = ({"job_group": "female-dominated"}, {"job_group": "male-dominated"})


@pytest.mark.parametrize(
    ("name", "kind", "gender", "row", "cells", "sides", "said"),
    [
        ("groups", "welch", 2, {"bias_type": "implicit", "context": "plain", "debiasing_a": "2"},
         {"bias_type": "implicit", "context": "plain", "debiasing_id": 2}, BOTH_SIDES,
         {"group_a": "female-dominated", "group_b": "male-dominated", "n_a": 3, "n_b": 2}),
        ("groups", "crossed", 2, {"bias_type": "implicit", "context": "plain", "debiasing_a": "2"},
         {"bias_type": "implicit", "context": "plain", "debiasing_id": 2}, BOTH_SIDES,
         {"debiasing_b": "2"}),
        ("debiasing", "paired", 0, {**MEN, "bias_type": "explicit", "context": "dialogue",
         "debiasing_a": "5"}, {**OF_MEN, "bias_type": "explicit", "context": "dialogue"},
         ({"debiasing_id": 5}, {"debiasing_id": 0}), {"debiasing_b": "0", "group_b": "male-dominated"}),
        ("contexts", "crossed", 1, {**MEN, "bias_type": "implicit", "quantity": "share",
         "debiasing_a": "1"}, {**OF_MEN, "bias_type": "implicit", "debiasing_id": 1},
         ({"context": "dialogue"}, {"context": "plain"}), {"context": "dialogue-plain"}),
        ("bias-types", "estimate", 1, {**MEN, "context": "plain", "quantity": "share", "debiasing_a": "0"},
         {**OF_MEN, "context": "plain", "debiasing_id": 0},
         ({"bias_type": "implicit"}, {"bias_type": "explicit"}),
         {"bias_type": "implicit-explicit", "p_value": None, "ci_low": None, "equivalent": None}),
    ],
)  # fmt: skip
def test_a_contrast_is_the_difference_of_two_means(
    name: str, kind: str, gender: int, row: Row, cells: Row, sides: tuple[Row, Row], said: Row
) -> None:
    found = find(contrast(MADE["tests"], name), kind=kind, gender=GROUPS[gender], **row)
    a, b = (share(FULL, gender, **cells, **side) for side in sides)
    assert a - b == pytest.approx(found["estimate"])
    assert said.items() <= found.items()


def test_asymmetry_is_the_male_share_of_male_jobs_minus_the_female_share_of_female_jobs() -> None:
    scope = {"bias_type": "explicit", "context": "plain"}
    row = find(MADE["tests"], **scope, quantity="asymmetry", kind="welch", debiasing_a="0")
    a = share(FULL, 0, job_group="male-dominated", debiasing_id=0, **scope)
    b = share(FULL, 1, job_group="female-dominated", debiasing_id=0, **scope)
    assert a - b == pytest.approx(row["estimate"])
    assert (None, "male-dominated", "female-dominated") == (row["gender"], row["group_a"], row["group_b"])


def test_a_level_is_the_plain_mean_of_its_debiasing_prompts_that_were_run() -> None:
    own = {"bias_type": "explicit", "context": "plain"}
    cells = own | {"job_group": "male-dominated"}
    for level, ids in (("high", (1, 2)), ("low", (5,))):
        mean = statistics.fmean(share(FULL, 1, debiasing_id=i, **cells) for i in ids)
        row = find(MADE["probe_levels"], **cells, gender="female", level=level)
        assert (pytest.approx(mean), len(ids)) == (row["share"], row["n_debiasing_prompts"])
        test = find(
            contrast(MADE["tests"], "levels"),
            **own,
            kind="paired",
            quantity="share",
            gender="female",
            group_a="male-dominated",
            debiasing_a=level,
        )
        assert mean - share(FULL, 1, debiasing_id=0, **cells) == pytest.approx(test["estimate"])
        assert test["debiasing_b"] == "0"


def test_no_level_that_was_run_means_no_table_of_levels() -> None:
    assert "probe_levels" not in run(study(), levels=LEVELS)
    assert "probe_levels" not in run(study())


def test_the_effect_of_a_debiasing_prompt_is_compared_between_settings() -> None:
    row = find(
        MADE["tests"],
        quantity="debiasing_effect",
        bias_type="explicit",
        kind="paired",
        gender="female",
        group_a="male-dominated",
        debiasing_a="1",
    )
    cells = {"bias_type": "explicit", "job_group": "male-dominated"}
    effect = {
        s: share(FULL, 1, context=s, debiasing_id=1, **cells)
        - share(FULL, 1, context=s, debiasing_id=0, **cells)
        for s in ("dialogue", "plain")
    }
    assert effect["dialogue"] - effect["plain"] == pytest.approx(row["estimate"])
    assert ("dialogue-plain", "0") == (row["context"], row["debiasing_b"])


def test_the_interval_of_a_difference_of_effects_may_reach_two() -> None:
    # (1 − 0) − (0 − 1) is 2, less what the small noise takes.
    def masses(labels: Labels) -> tuple[float, ...]:
        noise = 0.1 * masses_of(labels)[1]
        female = 0.99 - noise if (labels[4] == 1) == (labels[5] == "dialogue") else noise
        return 1 - female, female, 0.0

    cells = study(debiasing_prompts=(0, 1), run_in=("plain", "dialogue"), masses=masses)
    row = find(
        run(cells)["tests"],
        quantity="debiasing_effect",
        kind="crossed",
        gender="female",
        group_a="male-dominated",
    )
    assert 1.9 < row["ci_low"] < row["estimate"] < row["ci_high"] <= 2


def many_jobs(n: int) -> dict[str, tuple[str, float | None]]:
    sides = ("female-dominated", "male-dominated")
    return {f"job {i}": (sides[i % 2], (n - i) / (n + 1)) for i in range(n)}


def test_labour_is_the_slope_and_rank_correlation_over_jobs() -> None:
    jobs = many_jobs(24)
    cells = study(jobs=jobs)
    rows = contrast(run(cells)["tests"], "workforce")
    x = [workforce for _, workforce in jobs.values() if workforce is not None]
    ids = sorted({x.cell.template_id for x in cells})
    women, men = (
        np.array([[share(cells, k, job=job, template_id=t) for job in jobs] for t in ids]) for k in (1, 0)
    )
    by_template = women / (women + men)
    y = np.mean(by_template, axis=0)
    overall = {"group_a": None, "group_b": None, "n_a": 24, "n_b": None, "gender": "female"}
    row = find(rows, kind="slope", **overall)
    assert stats.linregress(x, y).slope == pytest.approx(row["estimate"])
    assert row["ci_low"] < row["ci90_low"] < row["ci90_high"] < row["ci_high"]
    assert stats.spearmanr(x, y).statistic == pytest.approx(
        find(rows, kind="spearman", **overall)["estimate"]
    )
    within = find(rows, kind="slope", group_a="male-dominated")
    assert stats.linregress(x[1::2], y[1::2]).slope == pytest.approx(within["estimate"])
    assert within["n_a"] == 12
    design = sm.add_constant(x)
    of_jobs = sm.OLS(y, design).fit(cov_type="HC3", use_t=True).bse[1] ** 2
    fits = [sm.OLS(one, design).fit() for one in by_template]
    of_templates = np.var([fit.params[1] for fit in fits], ddof=1) / len(fits)
    left = np.array([fit.resid for fit in fits]) - np.mean([fit.resid for fit in fits], axis=0)
    error = np.square(left).sum() / ((len(y) - 2) * (len(fits) - 1)) / len(fits)
    error /= np.square(np.array(x) - np.mean(x)).sum()
    variance = max(of_jobs + of_templates - error, of_jobs, of_templates)
    t = row["estimate"] / variance**0.5
    assert t == pytest.approx(row["statistic"])
    assert 2 * stats.t.sf(abs(t), row["dof"]) == pytest.approx(row["p_value"])


def test_jobs_without_a_workforce_share_do_not_count() -> None:
    jobs = many_jobs(12) | {"unknown": ("male-dominated", None)}
    row = find(contrast(run(study(jobs=jobs))["tests"], "workforce"), kind="slope", group_a=None)
    assert (12, None) == (row["n_a"], row["reason"])
    few = find(contrast(run(study(jobs=jobs))["tests"], "workforce"), kind="slope", group_a="male-dominated")
    assert (None, "6 items with a workforce share, at least 10 are needed") == (
        few["estimate"],
        few["reason"],
    )


def test_other_job_groups_are_paired_in_order_of_appearance_without_asymmetry() -> None:
    jobs = {"a": ("z", None), "b": ("y", None), "c": ("x", None), "d": ("z", None)}
    rows = run(study(jobs=jobs))["tests"]
    pairs = [(row["group_a"], row["group_b"]) for row in contrast(rows, "groups") if row["kind"] == "welch"]
    assert [("z", "y"), ("z", "x"), ("y", "x")] == list(dict.fromkeys(pairs))
    assert "asymmetry" not in {row["quantity"] for row in rows}


def test_the_papers_groups_keep_their_direction_when_the_male_ones_come_first() -> None:
    jobs = dict(reversed(JOBS.items()))
    pairs = {(row["group_a"], row["group_b"]) for row in contrast(run(study(jobs=jobs))["tests"], "groups")
             if row["quantity"] == "share"}  # fmt: skip
    assert {("female-dominated", "male-dominated")} == pairs


def test_a_study_of_one_group_of_jobs_has_no_contrast_of_groups() -> None:
    made = run(study(jobs={"a": ("", None), "b": ("", None)}))
    assert [] == contrast(made["tests"], "groups")
    assert [None] * 4 == [row["group_a"] for row in contrast(made["tests"], "workforce")]


def test_other_gender_groups_are_carried_through() -> None:
    cells = study(masses=lambda labels: (*masses_of(labels), 0.02))
    made = run(cells, groups=("he", "she", "they", "it"), contrast=("it", "he"))
    assert {"he", "she", "they", "it"} == {row["gender"] for row in made["probe_groups"]}
    assert "it_minus_he" in made["probe_jobs"][0]
    quantities = {row["quantity"] for row in made["tests"]}
    assert {"share", "binary_share", "it_share~workforce_share"} == quantities


def test_a_margin_gives_verdicts_to_its_quantity_alone() -> None:
    with_margin = [row for row in MADE["tests"] if row["margin"] is not None]
    of_shares = {("share", "crossed"), ("binary_share", "crossed")}
    assert of_shares == {(row["quantity"], row["kind"]) for row in with_margin}
    for row in with_margin:
        inside = -0.05 <= row["ci90_low"] and row["ci90_high"] <= 0.05
        assert inside == row["equivalent"]
    also = run(FULL, margins={"share": 0.05, "asymmetry": 0.1})["tests"]
    verdicts = {(row["quantity"], row["kind"]) for row in also if row["equivalent"] is not None}
    assert of_shares | {("asymmetry", "crossed"), ("binary_asymmetry", "crossed")} == verdicts


def part_of_two(cells: Sequence[CellShares], **values: object) -> float:
    """Women's part of women and men, by hand: the mean over the cells that have these values."""
    parts = []
    for x in cells:
        if all(getattr(x.cell, name) == value for name, value in values.items()):
            assert x.masses is not None
            male, female, _ = x.masses
            parts.append(female / (female + male))
    return statistics.fmean(parts)


def test_the_binary_share_is_the_mean_of_the_prompts_parts_of_two_whatever_they_has() -> None:
    own = {"bias_type": "explicit", "context": "plain"}
    sides = [{"job_group": "female-dominated"}, {"job_group": "male-dominated"}]
    women, men = (part_of_two(FULL, **own, debiasing_id=0, **side) for side in sides)
    gap = find(
        contrast(MADE["tests"], "groups"), **own, quantity="binary_share", kind="crossed", debiasing_a="0"
    )
    assert women - men == pytest.approx(gap["estimate"])
    asymmetry = find(MADE["tests"], **own, quantity="binary_asymmetry", kind="welch", debiasing_a="0")
    assert (1 - men) - women == pytest.approx(asymmetry["estimate"])
    change = find(MADE["tests"], **own, quantity="binary_group_gap", kind="crossed", debiasing_a="5")
    under = [part_of_two(FULL, **own, debiasing_id=5, **side) for side in sides]
    assert (under[0] - under[1]) - (women - men) == pytest.approx(change["estimate"])
    row = find(MADE["probe_groups"], **own, **sides[0], debiasing_id=0, gender="female")
    assert women == pytest.approx(row["binary_share"])
    # The probability on both groups' words: coverage without the part of they.
    covered = share(FULL, 0, **own, debiasing_id=0, **sides[0]) + share(
        FULL, 1, **own, debiasing_id=0, **sides[0]
    )
    assert 0 < row["binary_coverage"] < row["coverage"]
    assert row["binary_coverage"] == pytest.approx(covered * row["coverage"], rel=0.1)
    other = find(MADE["probe_groups"], **own, **sides[0], debiasing_id=0, gender="male")
    assert other["binary_share"] is None
    nurse = find(MADE["probe_jobs"], **own, job="nurse", debiasing_id=0)
    assert part_of_two(FULL, **own, debiasing_id=0, job="nurse") == pytest.approx(nurse["binary_share"])
    assert nurse["binary_share_ci_low"] < nurse["binary_share"] < nurse["binary_share_ci_high"]


def test_what_they_takes_away_moves_shares_and_no_part_of_two() -> None:
    def more_of_neither(labels: Labels) -> tuple[float, ...]:
        male, female, diverse = masses_of(labels)
        return male, female, diverse + 0.2 * (labels[3] in ("nurse", "teacher"))

    before, after = run(study())["tests"], run(study(masses=more_of_neither))["tests"]
    for a, b in zip(before, after, strict=True):
        same = pytest.approx(a["estimate"]) == b["estimate"]
        assert same if a["quantity"].startswith("binary_") else True
    shares = [i for i, row in enumerate(before) if row["quantity"] == "share" and row["gender"] == "female"]
    assert all(before[i]["estimate"] != pytest.approx(after[i]["estimate"]) for i in shares)


# --- what must not move a number -------------------------------------------------------------------


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["crossed", "bootstrap"]))
def test_swapping_the_male_and_female_sets_swaps_the_shares_and_flips_the_sign(
    seed: int, interval: str
) -> None:
    rng = np.random.default_rng(seed)
    drawn = [answered(x.cell, tuple(rng.random(3).tolist())) for x in study()]
    swapped = [answered(x.cell, (x.masses[1], x.masses[0], x.masses[2])) for x in drawn if x.masses]
    before, after = run(drawn, interval=interval), run(swapped, interval=interval)
    for row, back in zip(before["probe_jobs"], after["probe_jobs"], strict=True):
        assert (row["male_share"], row["female_share"]) == (back["female_share"], back["male_share"])
        assert row["female_minus_male"] == -back["female_minus_male"]
        assert (row["ci_low"], row["ci_high"]) == pytest.approx(
            (-back["ci_high"], -back["ci_low"]), abs=ROUNDING
        )
        assert row["male_share_ci_low"] == back["female_share_ci_low"]
    swap = {"male": "female", "female": "male", "diverse": "diverse"}
    for row in before["probe_groups"]:
        other = find(after["probe_groups"], job_group=row["job_group"], gender=swap[row["gender"]])
        assert (row["share"], row["se_templates"]) == (other["share"], other["se_templates"])


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from(["crossed", "bootstrap"]))
def test_the_order_of_the_cells_changes_no_number(random: Any, interval: str) -> None:
    cells = study(
        jobs=many_jobs(12), debiasing_prompts=(0, 1), without=[("m", "explicit", 2, "job 3", 1, "plain")]
    )
    before = run(cells, interval=interval)
    random.shuffle(cells)
    after = run(cells, interval=interval)
    for name in SCHEMAS:
        assert keyed(name, before.get(name, [])) == keyed(name, after.get(name, []))


@pytest.mark.parametrize("interval", ["crossed", "bootstrap"])
def test_adding_a_model_moves_no_other_models_numbers(interval: str) -> None:
    jobs = many_jobs(10)
    before, after = (
        run(study(jobs=jobs), interval=interval),
        run(study(models=("first", "m"), jobs=jobs), interval=interval),
    )
    for name in ("probe_prompts", "probe_jobs", "probe_groups", "probe_templates", "probe_variance"):
        assert keyed(name, before[name]).items() <= keyed(name, after[name]).items()
    # Holm's family is the file, so p_adjusted alone may move.
    for key, row in keyed("tests", before["tests"], leave_out=["p_adjusted"]).items():
        assert row == keyed("tests", after["tests"], leave_out=["p_adjusted"])[key]


def test_another_seed_moves_resampled_numbers_alone() -> None:
    first, second = run(study(jobs=many_jobs(10))), run(study(jobs=many_jobs(10)), seed=2)
    assert first["probe_groups"] == second["probe_groups"]
    moved = {a["kind"] for a, b in zip(first["tests"], second["tests"], strict=True) if a != b}
    assert {"spearman"} == moved


def test_the_bootstrap_replaces_the_intervals_of_jobs_and_groups_alone() -> None:
    crossed, resampled = run(study()), run(study(), interval="bootstrap")
    ends = [name for name in crossed["probe_jobs"][0] if "ci_" in name]
    for name in ("probe_jobs", "probe_groups"):
        assert keyed(name, crossed[name], leave_out=ends) == keyed(name, resampled[name], leave_out=ends)
        assert all(a["ci_low"] != b["ci_low"] for a, b in zip(crossed[name], resampled[name], strict=True))
    assert crossed["tests"] == resampled["tests"]


# --- to the file -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "without", [[], [LOST], [("m", "explicit", t, "pilot", 0, "plain") for t in (1, 2, 3)]]
)
def test_every_table_keeps_the_contract_of_the_writer(tmp_path: Path, without: list[Labels]) -> None:
    made = run(study(debiasing_prompts=(0, 1), without=without), levels={"any": (1,)})
    beyond_shares = {"probe_next", "probe_outcomes"}
    assert {name for name in SCHEMAS if name.startswith("probe_")} - beyond_shares | {"tests"} == set(made)
    for name, rows in made.items():
        path = tmp_path / f"{name}.csv"
        write_table(path, name, rows, groups=GROUPS, contrast=("female", "male"))
        back = read_table_rows(path)
        assert [{k: "" if v is None and isinstance(b[k], str) else v for k, v in a.items()}
                for a, b in zip(rows, back, strict=True)] == back  # fmt: skip


@pytest.mark.parametrize(("tiny", "equivalent"), [(0.001, None), (0.2, True)])
def test_shares_of_almost_nothing_are_not_said_to_be_the_same(tiny: float, equivalent: bool | None) -> None:
    """Both groups say she in 0.1 %, or in one 0.3 %: whatever the model, the difference is under a point."""

    def masses(labels: Labels) -> tuple[float, ...]:
        women = tiny * (1.01 if labels[3] in ("nurse", "teacher") else 1) * (1 + 0.01 * labels[2])
        return 0.1 * (1 - women), 0.1 * women, 0.01

    row = find(
        contrast(run(study(masses=masses))["tests"], "groups"), quantity="binary_share", kind="crossed"
    )
    assert row["equivalent"] is equivalent
    assert ("no equivalence" in (row["reason"] or "")) is (equivalent is None)
