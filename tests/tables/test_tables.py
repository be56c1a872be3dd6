"""The one writer and the one reader of public tables."""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path
from typing import Any

import pytest
from fakes.tables import write_table
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from biaskit.common.foreign import is_formula
from biaskit.errors import TableError
from biaskit.tables.io import columns, read_table, read_table_rows
from biaskit.tables.schema import SCHEMAS

GROUPS = ("male", "female", "diverse")
CONTRAST = ("female", "male")
DEFAULTS: dict[str, object] = {"text": "x", "integer": 1, "number": 0.5, "boolean": True}

# The contract's own words, reference/tables; "then … for each group" written out for the
# default three.
PROMISED = {
    "probe_prompts": "model, bias_type, template_id, job, job_group, debiasing_id, context, prompt_format, "
    "estimator, male_mass, female_mass, diverse_mass, coverage, male_share, female_share, diverse_share, "
    "male_share_low, male_share_high, female_share_low, female_share_high, diverse_share_low, "
    "diverse_share_high, coverage_low, coverage_high, low_coverage, reason",
    "probe_jobs": "model, bias_type, debiasing_id, context, prompt_format, estimator, job, job_group, "
    "workforce_share, male_share, female_share, diverse_share, female_minus_male, ci_low, ci_high, "
    "coverage, n_templates, difference_low, difference_high, male_share_ci_low, male_share_ci_high, "
    "female_share_ci_low, female_share_ci_high, diverse_share_ci_low, diverse_share_ci_high, "
    "binary_share, binary_share_ci_low, binary_share_ci_high, reason",
    "probe_groups": "model, bias_type, debiasing_id, context, prompt_format, estimator, job_group, gender, "
    "share, pooled_share, se_templates, ci_low, ci_high, share_low, share_high, coverage, n_jobs, "
    "n_templates, coverage_median, n_low_coverage, se_sampling, n_empty, binary_share, "
    "binary_share_ci_low, binary_share_ci_high, binary_coverage, reason",
    "probe_templates": "model, bias_type, debiasing_id, context, prompt_format, template_id, job_group, "
    "gender, share, coverage, n_jobs, estimator, reason",
    "probe_variance": "model, bias_type, debiasing_id, context, prompt_format, job_group, gender, var_job, "
    "var_template, var_residual, estimator, reason",
    "probe_levels": "model, bias_type, context, prompt_format, job_group, gender, level, share, "
    "n_debiasing_prompts, estimator, reason",
    "tests": "measurement, family, quantity, gender, model_a, model_b, bias_type, context, prompt_format, "
    "debiasing_a, debiasing_b, group_a, group_b, kind, unit, estimate, effect_size, statistic, dof, "
    "p_value, p_adjusted, ci_low, ci_high, n_a, n_b, ci90_low, ci90_high, margin, equivalent, "
    "bound_low, bound_high, verdict, spread_of_true, reason",
    "genders": "model, occupation, template_id, origin, requested_gender, gender, rule_id, n_female, "
    "n_male, n_neutral, key",
    "gender_validation": "model, requested_gender, n_texts, n_correct, n_incorrect, n_not_captured",
    "label_validation": "model, gender, n_female, n_male, n_nonbinary, n_none, n_unclear, precision, "
    "precision_low, precision_high, recall, recall_low, recall_high, reason",
    "text_outcomes": "model, occupation, template_id, origin, requested_gender, outcome, n, share, ci_low, "
    "ci_high, reason",
    "representation": "model, occupation, template_id, n_texts, n_female, n_male, n_nonbinary, "
    "n_not_inferred, "
    "n_refused, n_empty, n_cut, female_share, ci_low, ci_high, se, nonbinary_share, "
    "nonbinary_ci_low, nonbinary_ci_high, share_if_dropped_female, share_if_dropped_male, "
    "workforce_share, workforce_year, n_not_english, reason",
    "deciles": "model, template_id, workforce_side, decile_low, decile_high, n_occupations",
    "marked_words": "model, occupation, origin, gender, against, method, rank, word, z, q_value, "
    "count_target, count_unmarked, documents_target, documents_unmarked, is_pronoun, "
    "is_name, is_gender_word",
    "word_lists": "model, occupation, origin, gender, against, method, n_marked, null_mean, null_p95, "
    "p_value, p_value_max_z, n_target, n_unmarked, n_marked_beyond, null_p95_beyond, p_value_beyond, "
    "p_value_max_z_beyond, reason",
    "word_overlap": "model, occupation, gender, word, place",
    "word_methods": "model, occupation, origin, gender, word, only_in",
    "debiasing_words": "model, context, prompt_format, debiasing_id, marked_for, method, rank, "
    "word, z, q_value, "
    "count_target, count_unmarked, documents_target, documents_unmarked, is_gender_word, n_marked_beyond, "
    "null_p95_beyond, p_value_beyond, p_value_max_z_beyond",
    "calibration": "model, occupation, prior, c, alpha, gender, against, n_marked, n_criterion, n_common, "
    "n_names, gained, lost, words_differing, stability, recommended, n_marked_beyond, stability_low, "
    "stability_high, stability_shuffled, reason",
    "srb": "model, occupation, gender, srb, distance_female, distance_male, n_candidates, "
    "n_target_female, n_target_male, n_oov, overlap_only, srb_matched, srb_seed_sd, vectors, "
    "null_mean, null_sd, p_value, srb_z, control, srb_content, srb_content_p_value, reason",
    "text_transfer": "model, occupation, trained_on, tested_on, auc, ci_low, ci_high, p_value, n_female, "
    "n_male, se, reason",
    "srb_change": "model_old, model_new, occupation, gender, srb_old, srb_new, percent_change, reason",
    "gaps": "model, occupation, bias_type, prompt_format, probe_gap, represented_gap, workforce_gap, "
    "srb_spread, vectors, reason",
    "clusters": "model, cluster, words, n_occupations_female, n_occupations_male, female_share, kept, "
    "category, p_value, null_kept, reason",
    "silhouette": "k, silhouette, chosen, silhouette_low, silhouette_high",
}


def row(name: str, **values: object) -> dict[str, object]:
    """A row of defaults with some values of its own."""
    layout = columns(name, groups=GROUPS, contrast=CONTRAST)
    return {column.name: DEFAULTS[column.kind] for column in layout} | values


def write(path: Path, *rows: dict[str, object]) -> Path:
    write_table(path, path.stem, rows, groups=GROUPS, contrast=CONTRAST)
    return path


# --- columns -------------------------------------------------------------------------------------------


def test_the_groups_of_a_table_are_told_from_columns_that_only_some_studies_have(tmp_path: Path) -> None:
    for groups in (GROUPS, ("n_both", "male"), ("a", "b", "c", "d")):
        for scoped in (False, True):
            layout = columns("probe_prompts", groups=groups, contrast=CONTRAST, scoped=scoped)
            row: dict[str, Any] = {column.name: None for column in layout} | {"model": "m", "job": "nurse"}
            path = tmp_path / "probe_prompts.csv"
            write_table(path, "probe_prompts", [row], groups=groups, contrast=CONTRAST, scoped=scoped)
            [found] = read_table_rows(path)
            assert list(row) == list(found)


@pytest.mark.parametrize("name", PROMISED)
def test_a_table_has_the_columns_that_the_contract_promises(name: str) -> None:
    found = [column.name for column in columns(name, groups=GROUPS, contrast=CONTRAST)]
    assert re.split(r",\s+", PROMISED[name]) == found


WITHOUT_REASON = (
    "decision_equal",
    "decision_order",
    *("genders", "gender_validation", "deciles", "marked_words", "word_overlap", "word_methods"),
    *("debiasing_words", "silhouette", "group_words"),
)
"""Tables of which no number can be undefined, or whose undefined number stands for itself (silhouette)."""


@pytest.mark.parametrize("name", SCHEMAS)
def test_labels_bring_columns_of_their_own_before_the_reason(name: str) -> None:
    plain, labelled = (
        [one.name for one in columns(name, labelled=with_labels)] for with_labels in (False, True)
    )
    assert ("share_corrected" in labelled) is (plain != labelled) is (name == "representation")
    assert plain == [one for one in labelled if one in plain]
    assert plain[-1] == labelled[-1]


@pytest.mark.parametrize("name", SCHEMAS)
def test_reason_is_the_last_column_and_keys_are_columns(name: str) -> None:
    for scoped in (False, True):
        names = [column.name for column in columns(name, groups=GROUPS, contrast=CONTRAST, scoped=scoped)]
        assert "reason" not in names[:-1]
        assert ("reason" in names) is (name not in WITHOUT_REASON)
    assert set(SCHEMAS[name].keys) <= set(names)


def test_group_columns_carry_the_names_of_the_study_and_the_difference_its_contrast() -> None:
    found = [column.name for column in columns("probe_jobs", groups=("a", "b"), contrast=("b", "a"))]
    assert found[9:12] == ["a_share", "b_share", "b_minus_a"]
    intervals = ["a_share_ci_low", "a_share_ci_high", "b_share_ci_low", "b_share_ci_high"]
    binary = ["binary_share", "binary_share_ci_low", "binary_share_ci_high"]
    assert found[-8:] == [*intervals, *binary, "reason"]


def test_a_group_whose_column_would_be_there_twice_is_refused() -> None:
    with pytest.raises(TableError, match="workforce_share"):
        columns("probe_jobs", groups=("workforce", "b"), contrast=("b", "workforce"))


def test_an_unknown_table_names_the_nearest() -> None:
    with pytest.raises(TableError, match="probe_prompts"):
        columns("probe_prompt", groups=GROUPS, contrast=CONTRAST)


# --- writing -------------------------------------------------------------------------------------------


def test_a_table_is_utf_8_with_commas_and_one_header_line(tmp_path: Path) -> None:
    path = write(tmp_path / "probe_variance.csv", row("probe_variance", model="modèle", var_job=0.1))
    assert path.read_bytes() == (
        b"model,bias_type,debiasing_id,context,prompt_format,job_group,gender,var_job,var_template,"
        b"var_residual,estimator,reason\nmod\xc3\xa8le,x,1,x,x,x,x,0.1,0.5,0.5,x,x\n"
    )


def test_undefined_values_are_empty_and_booleans_are_yes_and_no(tmp_path: Path) -> None:
    rows = [row("probe_prompts", job=str(i), low_coverage=b) for i, b in enumerate((True, False, None))]
    path = write(tmp_path / "probe_prompts.csv", *rows)
    with path.open(encoding="utf-8", newline="") as file:
        assert ["yes", "no", ""] == [line["low_coverage"] for line in csv.DictReader(file)]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, "0.5", True])
def test_a_number_that_is_none_is_an_error(tmp_path: Path, bad: object) -> None:
    with pytest.raises(TableError, match="row 1: share"):
        write(tmp_path / "probe_groups.csv", row("probe_groups", share=bad))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("column", "bad"), [("n_jobs", 1.0), ("n_jobs", True), ("gender", 1), ("estimator", True)]
)
def test_a_value_of_another_kind_is_an_error(tmp_path: Path, column: str, bad: object) -> None:
    with pytest.raises(TableError, match=column):
        write(tmp_path / "probe_groups.csv", row("probe_groups", **{column: bad}))


def test_missing_and_surplus_keys_are_an_error_that_names_them(tmp_path: Path) -> None:
    short = row("probe_groups")
    del short["share"]
    with pytest.raises(TableError, match=r"missing \['share'\], surplus \[\]"):
        write(tmp_path / "probe_groups.csv", short)
    with pytest.raises(TableError, match=r"missing \[\], surplus \['more'\]"):
        write(tmp_path / "probe_groups.csv", row("probe_groups", more=1))


def test_two_rows_with_the_same_keys_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="row 2"):
        write(tmp_path / "probe_groups.csv", row("probe_groups"), row("probe_groups", share=0.25))


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_no_field_can_be_run_by_a_spreadsheet(tmp_path: Path, start: str) -> None:
    with pytest.raises(TableError, match="formula"):
        write(tmp_path / "probe_groups.csv", row("probe_groups", job_group=f"{start}cmd"))
    path = write(tmp_path / "probe_groups.csv", row("probe_groups", reason=f"{start}cmd\n=two"))
    assert str(read_table_rows(path)[0]["reason"]).startswith(("reason given: ", "cmd"))
    assert len(path.read_bytes().splitlines()) == 2


def test_a_text_is_known_in_its_own_column_alone(tmp_path: Path) -> None:
    """What a reason may hold no name may, and the same text in a later row is the same cell."""
    rows = [row("probe_groups", job_group=name, reason='=1, "a"') for name in ("a, b", "c", "d")]
    path = write(tmp_path / "probe_groups.csv", *rows)
    assert [found["reason"] for found in read_table_rows(path)] == ['reason given: =1, "a"'] * 3
    with pytest.raises(TableError, match=r"row 2.*formula"):
        write(path, row("probe_groups", reason="=1"), row("probe_groups", job_group="=1"))
    with pytest.raises(TableError, match=r"row 2.*expected: number"):
        write(path, row("probe_groups", job_group="1"), row("probe_groups", share="1"))


def test_numpy_numbers_are_numbers(tmp_path: Path) -> None:
    import numpy as np

    values = {"share": np.float64(0.1), "coverage": np.float32(0.5), "n_jobs": np.int64(3)}
    path = write(tmp_path / "probe_groups.csv", row("probe_groups", **values))
    found = read_table_rows(path)[0]
    assert (0.1, 0.5, 3) == (found["share"], found["coverage"], found["n_jobs"])


# --- reading -------------------------------------------------------------------------------------------

NAMES = st.text(min_size=1, max_size=12).filter(lambda name: not is_formula(name))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(name=NAMES, share=st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)))
def test_what_is_written_reads_back_to_the_same_value(tmp_path: Path, name: str, share: float | None) -> None:
    path = write(tmp_path / "probe_groups.csv", row("probe_groups", job_group=name, share=share))
    found = read_table_rows(path)[0]
    assert (name, share) == (found["job_group"], found["share"])


@pytest.mark.parametrize("name", ["a\rb", "a\nb", 'a"b', "a,b"])
def test_a_name_with_a_mark_of_the_format_survives(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "probe_groups.csv", row("probe_groups", job_group=name))
    assert read_table_rows(path)[0]["job_group"] == name


def test_a_lone_surrogate_in_a_name_survives(tmp_path: Path) -> None:
    path = write(tmp_path / "probe_groups.csv", row("probe_groups", job_group="a\ud800b"))
    assert read_table_rows(path)[0]["job_group"] == "a\ud800b"
    assert read_table(path)["job_group"].tolist() == ["a\ud800b"]


@pytest.mark.parametrize("name", ["NA", "None", "nan", "", "null", "1.0", "yes", 'a "b", c', "line\u2028end"])
def test_text_stays_text(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "probe_groups.csv", row("probe_groups", job_group=name))
    assert read_table(path)["job_group"].tolist() == [name]


def test_a_field_may_have_any_length(tmp_path: Path) -> None:
    path = write(tmp_path / "probe_groups.csv", row("probe_groups", job_group="x" * 200_000))
    before = csv.field_size_limit()
    assert read_table_rows(path)[0]["job_group"] == "x" * 200_000
    assert before == csv.field_size_limit()


def test_a_data_frame_shows_undefined_values_as_its_own_missing_value(tmp_path: Path) -> None:
    import pandas as pd

    undefined = row("probe_prompts", job="b", coverage=None, low_coverage=None, template_id=None)
    frame = read_table(write(tmp_path / "probe_prompts.csv", row("probe_prompts", job="a"), undefined))
    numbers = frame["coverage"].tolist()
    assert numbers[0] == 0.5
    assert math.isnan(numbers[1])
    assert [True, pd.NA] == frame["low_coverage"].tolist()
    assert [1, pd.NA] == frame["template_id"].tolist()
    assert ["boolean", "Int64", "float64"] == [
        str(frame[name].dtype) for name in ("low_coverage", "template_id", "coverage")
    ]


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_table_without_rows_keeps_its_columns(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / f"{name}.csv")
    assert read_table_rows(path) == []
    expected = [column.name for column in columns(name, groups=GROUPS, contrast=CONTRAST)]
    assert expected == list(read_table(path).columns)


@pytest.mark.parametrize("groups", [("a_share", "b"), ("x", "y", "coverage"), ("she", "he", "they", "it")])
def test_the_groups_of_a_file_are_found_whatever_they_are_called(
    tmp_path: Path, groups: tuple[str, ...]
) -> None:
    contrast = (groups[0], groups[1])
    for name in ("probe_prompts", "probe_jobs"):
        layout = columns(name, groups=groups, contrast=contrast)
        path = tmp_path / f"{name}.csv"
        one = {column.name: DEFAULTS[column.kind] for column in layout}
        write_table(path, name, [one], groups=groups, contrast=contrast)
        assert [one] == read_table_rows(path)


def test_a_table_that_lacks_a_key_or_has_another_column_is_none_of_ours(tmp_path: Path) -> None:
    path = write(tmp_path / "srb.csv", row("srb"))
    whole = path.read_text("utf-8")
    for other in (whole.replace("occupation,", "", 1), whole.replace("n_oov", "n_vov", 1)):
        path.write_text(other, "utf-8")
        with pytest.raises(TableError, match="the columns are"):
            read_table_rows(path)


@pytest.mark.parametrize(
    "content", [b"", b"model,share\na,b\n", b"\xff\xfe", b'a,"b\n', b"model\n" * 3], ids=range(5)
)
def test_a_file_that_is_not_this_table_is_an_error_that_names_it(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "probe_variance.csv"
    path.write_bytes(content)
    with pytest.raises(TableError, match=r"probe_variance\.csv"):
        read_table_rows(path)


def test_a_row_with_a_field_too_many_is_an_error_that_names_its_place(tmp_path: Path) -> None:
    path = write(tmp_path / "probe_variance.csv", row("probe_variance"))
    path.write_bytes(path.read_bytes().replace(b"0.5,x,x\n", b"0.5,x,x,x\n"))
    with pytest.raises(TableError, match="record 2"):
        read_table_rows(path)


def test_rows_of_one_name_hold_it_once(tmp_path: Path) -> None:
    names = ("x" * 20, "y" * 20)
    path = write(
        tmp_path / "probe_variance.csv",
        *(row("probe_variance", model=names[i % 2], job_group=f"g{i}") for i in range(6)),
    )
    # The tables of 100 models are hundreds of thousands of rows: a text for each field of each is a GB.
    assert len({id(one["model"]) for one in read_table_rows(path)}) == 2


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_end_as_any_program_ends_them(tmp_path: Path, end: str) -> None:
    names = ["a\rb", "c\nd", "e\u2028f\x0bg", "h"]
    path = write(tmp_path / "probe_variance.csv", *(row("probe_variance", model=name) for name in names))
    text = path.read_bytes().decode("utf-8")
    parts = text.split('"')
    parts[::2] = [part.replace("\n", end) for part in parts[::2]]  # those outside of quotes
    path.write_bytes('"'.join(parts).encode("utf-8"))
    assert [one["model"] for one in read_table_rows(path)] == names


def test_a_field_that_is_no_number_is_an_error_that_names_its_column(tmp_path: Path) -> None:
    path = write(tmp_path / "probe_variance.csv", row("probe_variance", var_job=0.125))
    path.write_bytes(path.read_bytes().replace(b"0.125", b"many"))
    with pytest.raises(TableError, match="var_job"):
        read_table_rows(path)


def test_a_missing_table_is_an_error_that_says_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="biaskit analyze"):
        read_table(tmp_path / "tests.csv")
