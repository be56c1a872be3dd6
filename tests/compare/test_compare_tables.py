"""Tests between models, made of stored tables alone."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fakes.tables import write_table
from scipy import stats

from biaskit.compare.comparison import merge_tests
from biaskit.compare.same_prompts import PromptTexts
from biaskit.errors import StudyError, TableError
from biaskit.measures.probe.compare import between_models
from biaskit.measures.probe.compare_cells import answers_of
from biaskit.runs.collection import Collection as RunCollection
from biaskit.tables.io import columns, read_table_rows
from biaskit.workflow.compare import margins_of

GROUPS = ("male", "female", "diverse")
CONTRAST = ("female", "male")
JOBS = {"nurse": "female", "teacher": "female", "pilot": "male", "smith": "male", "guard": "male"}
TEMPLATES = (1, 2, 3)
Failed = Collection[tuple[str, int, str]]  # model, template, job


def shares_of(*labels: object) -> list[float]:
    rng = np.random.default_rng(list("|".join(map(str, labels)).encode()))
    drawn = rng.random(3) + 0.05
    return [float(x) for x in drawn / drawn.sum()]


def cell_row(
    model: str, bias_type: str, template: int, job: str, debiasing: int, prompt_format: str, *, failed: bool
) -> dict[str, Any]:
    shares: list[float] | list[None] = shares_of(model, bias_type, template, job, debiasing)
    shares = [None] * 3 if failed else shares
    layout = columns("probe_prompts", groups=GROUPS, contrast=CONTRAST)
    row: dict[str, Any] = dict.fromkeys(column.name for column in layout)
    row |= {"model": model, "bias_type": bias_type, "template_id": template, "job": job}
    row |= {
        "job_group": JOBS[job],
        "debiasing_id": debiasing,
        "context": "plain",
        "prompt_format": prompt_format,
    }
    row |= {"estimator": None if failed else "exact", "coverage": None if failed else 0.5}
    for group, share in zip(GROUPS, shares, strict=True):
        row |= {f"{group}_share": share, f"{group}_mass": share}
    return row | {"low_coverage": None if failed else False, "reason": "no answer stored" if failed else None}


def store(
    folder: Path,
    formats: Mapping[str, str],
    *,
    failed: Failed = (),
    debiasing_prompts: Sequence[int] = (0, 1),
    bias_types: Mapping[str, Sequence[str]] | None = None,
) -> Path:
    """The probe_prompts.csv of a run whose models answer in the formats given."""
    rows = [
        cell_row(model, b, t, job, i, formats[model], failed=(model, t, job) in failed)
        for model in formats
        for b in (bias_types or {}).get(model, ["explicit"])
        for t, job, i in itertools.product(TEMPLATES, JOBS, debiasing_prompts)
    ]
    write_table(folder / "probe_prompts.csv", "probe_prompts", rows, groups=GROUPS, contrast=CONTRAST)
    return folder


def compared(folder: Path, *models: str, margin: float = 0.05) -> tuple[list[Any], list[str]]:
    cells = read_table_rows(folder / "probe_prompts.csv")
    study = SimpleNamespace(margin={"share": margin})
    design: Any = SimpleNamespace(study=study, groups=GROUPS, contrast=(), question=dict)
    return between_models(cells, design, models, "probe_prompts.csv")


def mean_by_job(model: str, group: str, gender: int, *, templates: Sequence[int] = TEMPLATES) -> list[float]:
    return [
        float(np.mean([shares_of(model, "explicit", t, job, 0)[gender] for t in templates]))
        for job in JOBS
        if JOBS[job] == group
    ]


def find(rows: Sequence[Any], **values: object) -> Any:
    found = [row for row in rows if all(row[name] == value for name, value in values.items())]
    assert len(found) == 1
    return found[0]


def test_the_paired_row_matches_scipy_over_the_jobs_mean_shares(tmp_path: Path) -> None:
    rows, _ = compared(store(tmp_path, {"old": "raw", "new": "raw"}), "old", "new")
    a, b = mean_by_job("new", "male", 1), mean_by_job("old", "male", 1)
    own = {
        "gender": "female",
        "group_a": "male",
        "group_b": "male",
        "debiasing_a": "0",
        "debiasing_b": "0",
    }
    row = find(rows, kind="paired", **own)
    expected = stats.ttest_rel(a, b)
    assert np.mean(a) - np.mean(b) == pytest.approx(row["estimate"])
    assert (expected.statistic, expected.pvalue) == pytest.approx((row["statistic"], row["p_value"]))
    assert ("probe/share/paired/models", "job", 3, 3) == (row["family"], row["unit"], row["n_a"], row["n_b"])
    crossed = find(rows, kind="crossed", **own)
    assert crossed["estimate"] == pytest.approx(row["estimate"])
    p = 2 * stats.t.sf(abs(crossed["statistic"]), crossed["dof"])
    assert (p, 0.05) == pytest.approx((crossed["p_value"], crossed["margin"]))
    assert crossed["dof"] >= 1


def test_only_templates_that_both_models_have_complete_enter(tmp_path: Path) -> None:
    failed = {("a", 1, "nurse"), ("b", 3, "pilot")}
    rows, _ = compared(store(tmp_path, {"a": "raw", "b": "raw"}, failed=failed), "a", "b")
    own = {"gender": "diverse", "group_a": "female", "debiasing_a": "0", "kind": "paired"}
    own |= {"quantity": "share"}
    a, b = (np.mean(mean_by_job(model, "female", 2, templates=[2])) for model in ("b", "a"))
    row = find(rows, **own)
    assert a - b == pytest.approx(row["estimate"])
    assert row["reason"].startswith("templates 1, 3 of 3 left out: 2 prompts failed")
    crossed = find(rows, **(own | {"kind": "crossed"}))
    assert "conditional on one template" in crossed["reason"]


def test_a_model_against_a_copy_of_itself_is_equivalent_without_a_test(tmp_path: Path) -> None:
    store(tmp_path, {"a": "raw"})
    rows = read_table_rows(tmp_path / "probe_prompts.csv")
    twins: list[dict[str, Any]] = [*rows, *({**row, "model": "copy"} for row in rows)]
    write_table(tmp_path / "probe_prompts.csv", "probe_prompts", twins, groups=GROUPS, contrast=CONTRAST)
    for row in compared(tmp_path, "a", "copy")[0]:
        assert row["estimate"] == 0
        if row["kind"] in ("paired", "welch"):
            assert (None, "zero variance: no test") == (row["p_value"], row["reason"])
        else:
            assert (0, 0) == (row["ci_low"], row["ci_high"])
            assert row["equivalent"] is (True if row["quantity"] == "share" else None)


@pytest.mark.slow
def test_merging_keeps_the_rows_of_single_models_and_can_be_repeated(tmp_path: Path) -> None:
    rows, _ = compared(store(tmp_path, {"a": "raw", "b": "raw"}), "a", "b")
    family = f"probe/share/{rows[0]['kind']}/debiasing"
    single = {**rows[0], "family": family, "model_b": "b", "p_adjusted": None}
    once = merge_tests([single], rows)
    assert once == merge_tests(once, rows)
    assert [family] + [row["family"] for row in rows] == [row["family"] for row in once]
    assert once[0]["p_adjusted"] == single["p_value"]


def test_a_stored_table_of_other_groups_or_with_a_pair_missing_is_an_error(tmp_path: Path) -> None:
    path = store(tmp_path, {"a": "raw", "b": "raw"}) / "probe_prompts.csv"
    with pytest.raises(TableError, match="other gender groups"):
        answers_of(read_table_rows(path), ("x", "y"), "run", PromptTexts())
    path.write_bytes(b"\n".join(path.read_bytes().split(b"\n")[:-2]) + b"\n")
    with pytest.raises(TableError, match="do not occur exactly once"):
        compared(tmp_path, "a", "b")


def test_a_margin_in_points_is_refused_and_a_wide_one_noted() -> None:
    nothing = RunCollection((), (), ())
    for key in ("margin.share", "margin.group_gap"):
        with pytest.raises(StudyError, match=f"^{key} is a fraction: 0.05 is 5 points.$"):
            margins_of(nothing, {key: 5})
    assert margins_of(nothing, {"margin.share": 0.2, "margin.srb": 5}) == ({"share": 0.2, "srb": 5}, [])
    assert margins_of(nothing, {"margin.share": 0.4})[1] == [
        "margin.share is 0.4: up to 40 points count as no difference"
    ]
