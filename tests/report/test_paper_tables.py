"""The papers' tables from stored tables: numbers by hand, the papers' layouts, many models, hostile texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from fakes.latex import check_latex
from fakes.many_models import label_of

from biaskit.measures.personas.printing.papers import PER_TABLE
from biaskit.measures.personas.printing.papers import paper_tables as tables_of
from biaskit.measures.probe.printing import papers
from biaskit.report.render.document import Document, PaperTable, TitledTable
from biaskit.report.render.latex import render_latex
from biaskit.report.render.text import render_text
from biaskit.runs.claims import DEBIASING, MATTERN, OCCUGENDER, Claim
from biaskit.runs.collection import Part

pytestmark = pytest.mark.slow

paper_tables = partial(tables_of, claim=Claim.WHOLE)

Row = dict[str, Any]


def only(made: Sequence[PaperTable], name: str) -> TitledTable:
    """The table of this name."""
    [table] = [one.table for one in made if one.name == name]
    return table


def compiled(made: Sequence[PaperTable]) -> None:
    """Every table is LaTeX that compiles and text; every row has as many cells as there are columns."""
    for one in made:
        assert {one.table.n_columns} >= {len(row) for row in one.table.rows}
        assert one.table.note
        assert check_latex(render_latex(Document((one.table,)))) == 1
        assert one.table.title.split("\n")[0][:10] in render_text(Document((one.table,)))


# --- rows by hand --------------------------------------------------------------------------------------


def validation(model: str, gender: str, *counts: int) -> Row:
    names = ("n_correct", "n_incorrect", "n_not_captured")
    scope = {"model": model, "requested_gender": gender, "n_texts": sum(counts)}
    return {**scope, **dict(zip(names, counts, strict=True))}


def represented(model: str, job: str, women: int, men: int, other: int, lost: int) -> Row:
    n = women + men + other
    share = women / n if n else None
    se = None if share is None else math.sqrt(share * (1 - share) / (n - 1))
    counts = {"n_texts": n + lost, "n_female": women, "n_male": men, "n_nonbinary": other}
    scope = {"model": model, "occupation": job, "template_id": "all", "n_not_inferred": lost}
    reason = "" if n else "no text speaks of a gender"
    return {**scope, **counts, "female_share": share, "se": se, "reason": reason}


def srb_test(contrast: str, a: str, b: str, gender: str = "", **more: Any) -> Row:
    family = f"personas/srb/{more.get('kind', 'welch')}/{contrast}"
    scope = {
        "measurement": "personas",
        "family": family,
        "quantity": "srb",
        "kind": "welch",
        "gender": gender,
    }
    numbers = {"estimate": -0.148, "ci_low": -0.18, "ci_high": -0.11, "statistic": -12.02, "dof": 46.04}
    numbers |= {"p_value": 2.1e-16, "p_adjusted": 0.0312, "effect_size": -3.1, "n_a": 29, "n_b": 28}
    return {**scope, "model_a": a, "model_b": b, **numbers, "reason": "", **more}


def word_list(model: str, gender: str, against: str, n_marked: int | None, **more: Any) -> Row:
    scope = {"model": model, "occupation": "nurse", "origin": "requested", "method": "calibrated"}
    scope |= {"gender": gender, "against": against}
    reason = "" if n_marked is not None else "no calibration word"
    return {**scope, "n_marked": n_marked, "n_target": 40, "reason": reason, **more}


def marked(gender: str, against: str, method: str, *words: str) -> list[Row]:
    scope = {"model": "a", "occupation": "nurse", "origin": "requested", "gender": gender}
    return [{**scope, "against": against, "method": method, "word": word} for word in words]


# --- GAS(P): numbers -----------------------------------------------------------------------------------


def test_table_1_pools_its_models_and_shows_each() -> None:
    rows = [
        validation("a", "female", 98, 1, 1),
        validation("a", "nonbinary", 50, 0, 0),
        validation("b", "female", 290, 5, 5),
    ]
    table = only(paper_tables({"gender_validation": rows}), "gasp-table-1")
    assert table.rows == (
        ("all models", "women", "400", "97.00", "1.50", "1.50"),
        ("all models", "non-binary", "50", "100.00", "0.00", "0.00"),
        ("a", "women", "100", "98.00", "1.00", "1.00"),
        ("a", "non-binary", "50", "100.00", "0.00", "0.00"),
        ("b", "women", "300", "96.67", "1.67", "1.67"),
    )
    one = only(paper_tables({"gender_validation": rows[:2]}), "gasp-table-1")
    assert {row[0] for row in one.rows} == {"a"}
    none = only(paper_tables({"gender_validation": [validation("a", "male", 0, 0, 0)]}), "gasp-table-1")
    assert none.rows[0][2:] == ("0", "–", "–", "–")


def test_table_2_counts_texts_over_occupations_and_has_models_in_columns() -> None:
    rows = [
        represented("a", "nurse", 60, 20, 0, 20),
        represented("a", "cook", 10, 10, 0, 180),
        represented("b", "nurse", 0, 0, 0, 0),
        {**represented("a", "nurse", 1, 1, 0, 98), "template_id": "persona"},
        {**represented("a", "nurse", 1, 1, 0, 98), "debiasing_id": 3},
    ]
    table = only(paper_tables({"representation": rows}), "gasp-table-2")
    assert [h.text for h in table.header[0]] == ["", "a", "b"]
    assert table.rows[0] == ("% captured", f"{100 * (1 - 200 / 300):.1f}", "–")
    assert table.rows[1] == ("texts", "300", "0")
    many = [represented(label_of(i), "nurse", 3, 1, 0, 0) for i in range(10)]
    turned = only(paper_tables({"representation": many}), "gasp-table-2")
    assert turned.rows[0] == ("ash", "100.0", "4", "1")


def test_table_11_has_the_standard_error_in_points_and_says_why_the_papers_is_smaller() -> None:
    rows = [represented("a", "technician", 29, 123, 0, 48), represented("b", "technician", 0, 0, 0, 9)]
    table = only(paper_tables({"representation": rows}), "gasp-table-11")
    # 29 of 152 (methods/representation#gasp-table-11): the paper prints sqrt(29·123/(152·151))/200 = 0.00197.
    paper = math.sqrt(29 * 123 / (152 * 151)) / 200
    assert paper == pytest.approx(0.001971111952258775, rel=1e-12)
    right = math.sqrt(29 * 123 / (152 * 151)) / math.sqrt(152)
    assert table.rows == (("technician", "19.1", f"{100 * right:.2f}", "152", "–", "–", "0"),)
    assert right / paper == pytest.approx(200 / math.sqrt(152))
    assert 14 < 200 / math.sqrt(200) < right / paper < 22
    assert "14 to 22 times too small" in table.note
    assert "– not measured: no text speaks of a gender" in table.note


def test_tables_13_and_14_take_welch_of_srb_alone() -> None:
    tests = [
        srb_test("genders", "a", "a", group_a="female"),
        srb_test("genders", "a", "a", kind="paired", statistic=-99.0),
        srb_test("genders", "a", "a", quantity="share", statistic=-98.0),
        srb_test("genders", "b", "b", statistic=None, p_value=None, reason="fewer than two units"),
    ]
    between = [srb_test("models", "b", "a", "female"), srb_test("models", "b", "a", "male", statistic=2.2)]
    made = paper_tables({"tests": tests}, {"tests": between})
    women_men = only(made, "gasp-table-13")
    assert women_men.rows == (
        *(("a", "-0.148", "-0.180 to -0.110", "-12.02", "46.0", "<0.0001", "0.0312", "-3.10", "29", "28"),),
        *(("b", "-0.148", "-0.180 to -0.110", "–", "46.0", "–", "0.0312", "-3.10", "29", "28"),),
    )
    assert "– not measured: fewer than two units" in women_men.note
    models = only(made, "gasp-table-14")
    assert [row[:4] for row in models.rows] == [("b", "a", "women", "-0.148"), ("b", "a", "men", "-0.148")]
    assert models.rows[1][5] == "2.20"


def test_tables_7_and_8_hold_the_methods_against_each_other_for_each_gender() -> None:
    lists = [
        word_list("a", "female", "male", 3),
        word_list("a", "male", "female", None),
        word_list("a", "nonbinary", "all", 2),
        word_list("a", "female", "all", 1),
        word_list("a", "female", "male", 9, origin="inferred"),
    ]
    scope = {"model": "a", "occupation": "nurse", "origin": "requested"}
    methods = [
        {**scope, "gender": "female", "word": "been", "only_in": "marked-personas"},
        {**scope, "gender": "female", "word": "stem", "only_in": "calibrated"},
        {**scope, "gender": "female", "word": "gap", "only_in": "calibrated"},
        {**scope, "gender": "female", "word": "other", "only_in": "calibrated", "origin": "inferred"},
    ]
    words = [
        *marked("nonbinary", "all", "calibrated", "express", "shared"),
        *marked("nonbinary", "all", "marked-personas", "shared", "we", "felt"),
        *marked("nonbinary", "female", "marked-personas", "nobody"),
    ]
    tables = {"word_lists": lists, "word_methods": methods, "marked_words": words}
    made = paper_tables(tables)
    assert only(made, "words-of-marked-personas").rows == (
        ("a", "men", "–", "–"),
        ("a", "women", "1", "been"),
        ("a", "non-binary", "2", "we, felt"),
    )
    assert only(made, "words-of-calibrated").rows == (
        ("a", "men", "–", "–"),
        ("a", "women", "2", "stem, gap"),
        ("a", "non-binary", "1", "express"),
    )
    assert "– not measured: no calibration word" in only(made, "words-of-marked-personas").note
    compiled(made)


def test_the_example_is_software_engineer_or_the_occupation_with_most_texts() -> None:
    lists = [
        word_list("a", "female", "male", 3),
        word_list("a", "female", "male", 3, occupation="cook", n_target=41),
        word_list("a", "female", "male", 3, occupation="chef", n_target=1),
        word_list("a", "female", "male", 3, occupation="all", n_target=99),  # no occupation
    ]
    # The paper's tables are of software engineers: another occupation's claim no number.
    assert "cook" in only(paper_tables({"word_lists": lists}), "words-of-marked-personas").title
    usual = [*lists, word_list("a", "female", "male", 3, occupation="software engineer", n_target=1)]
    assert "software engineer" in only(paper_tables({"word_lists": usual}), "gasp-table-7").title


def test_table_15_keeps_the_papers_four_kinds_of_words_in_their_order() -> None:
    places = ("both", "inferred-only", "both", "other-gender", "requested-only")
    rows = [
        {"model": "a", "occupation": "nurse", "gender": "female", "word": f"w{i}", "place": place}
        for i, place in enumerate(places)
    ]
    long = [
        {"model": "a", "occupation": "nurse", "gender": "male", "word": f"v{i}", "place": "both"}
        for i in range(160)
    ]
    lists = [word_list("a", "female", "male", 3, occupation="nurse")]
    made = paper_tables({"word_overlap": rows + long, "word_lists": lists})
    table = only(made, "words-with-and-without")
    assert [row[1:] for row in table.rows[:4]] == [
        ("women", "without and with", "2", "w0, w2"),
        ("women", "without, and with the other gender", "1", "w3"),
        ("women", "without only", "1", "w1"),
        ("women", "with only", "1", "w4"),
    ]
    assert table.rows[4][3] == "160"
    assert table.rows[4][4].endswith("v149, and 10 more")


def test_a_word_of_a_megabyte_is_cut_where_tex_reads_it() -> None:
    row = {"model": "a", "occupation": "nurse", "gender": "male", "word": "w" * 1_000_000, "place": "both"}
    lists = [word_list("a", "female", "male", 3, occupation="nurse")]
    made = paper_tables({"word_overlap": [row], "word_lists": lists})
    assert only(made, "words-with-and-without").rows[0][4] == "w" * 60 + "…"
    compiled(made)


def test_figure_5_has_the_clusters_kept_with_percent_and_pairs() -> None:
    def cluster(model: str, number: int, women: int, men: int, kept: bool) -> Row:
        share = women / (women + men) if women + men else None
        counts = {"n_occupations_female": women, "n_occupations_male": men, "female_share": share}
        scope = {"model": model, "cluster": number, "words": "she her", "category": None}
        return {**scope, **counts, "kept": kept}

    rows = [cluster("a", 1, 30, 10, True), cluster("b", 1, 0, 0, True), cluster("all", 1, 30, 10, True)]
    rows += [cluster("a", 2, 3, 3, False), cluster("b", 2, 9, 0, False), cluster("all", 2, 12, 3, True)]
    table = only(paper_tables({"clusters": rows}), "gasp-figure-5")
    assert table.rows == (("she, her", "75.0", "25.0", "40", "–", "–", "0"),)
    named = [{**row, "category": "pronouns"} for row in rows]
    assert only(paper_tables({"clusters": named}), "gasp-figure-5").rows[0][:2] == ("she, her", "pronouns")
    assert paper_tables({"clusters": rows[3:]}) == []


def test_tables_3_and_5_show_the_five_alphas_of_the_papers() -> None:
    def step(alpha: float, gender: str, words: str | None, c: float | None = 0.3, **more: Any) -> Row:
        scope = {"model": "a", "occupation": "software engineer", "prior": "hybrid", "alpha": alpha, "c": c}
        against = "male" if gender == "female" else "female"
        found = {"n_marked": None if c is None else 7, "words_differing": words}
        reason = "" if c is not None else "the marks at 0.01"
        return {**scope, "gender": gender, "against": against, **found, "reason": reason, **more}

    rows = [step(k / 20, "female", "gap stem" if k % 5 == 0 else None) for k in range(21)]
    rows[10] = step(0.5, "female", "", None)
    rows += [step(0.25, "nonbinary", "we"), step(0.25, "female", "no", prior="topic")]
    made = paper_tables({"calibration": rows})
    assert [one.name for one in made] == ["gasp-table-3", "gasp-table-5"]
    table = only(made, "gasp-table-3")
    assert [row[0] for row in table.rows] == ["0", "0.25", "0.5", "0.75", "1"]
    assert table.rows[0] == ("0", "0.3000", "men", "7", "gap, stem")
    assert table.rows[2] == ("0.5", "–", "men", "–", "–")
    assert "– not measured: the marks at 0.01" in table.note
    assert only(made, "gasp-table-5").rows == (("0.25", "0.3000", "women", "7", "we"),)
    two = [{**row, "occupation": "nurse"} for row in rows] + rows
    assert sorted(one.name for one in paper_tables({"calibration": two})) == [
        "gasp-table-3-a-nurse",
        "gasp-table-3-a-software-engineer-" + _digest_of("a-software engineer"),
        "gasp-table-5-a-nurse",
        "gasp-table-5-a-software-engineer-" + _digest_of("a-software engineer"),
    ]
    compiled(made)


def _digest_of(label: str) -> str:
    from biaskit.runs.store import slug

    return slug(label)[-8:]


# --- many models and hostile labels --------------------------------------------------------------------


def test_models_side_by_side_are_split_into_parts_and_none_is_lost() -> None:
    models = [label_of(i) for i in range(10)]
    rows = [represented(model, f"job {k}", k, 3, 0, 1) for model in models for k in range(1, 64)]
    made = [one for one in paper_tables({"representation": rows}) if one.name.startswith("gasp-table-11")]
    assert [one.name for one in made] == [f"gasp-table-11-part-{i}" for i in (1, 2, 3)]
    assert [h.text for one in made for h in one.table.header[0][1:]] == models
    assert all(len(one.table.header[0]) <= 1 + PER_TABLE and len(one.table.rows) == 63 for one in made)
    assert all(r"\begin{longtable}" in render_latex(Document((one.table,))) for one in made)
    compiled(made)


def group_rows(
    model: str, number: int, context: str, bias_type: str, prompt_format: str = "raw"
) -> list[Row]:
    scope = {"model": model, "bias_type": bias_type, "debiasing_id": number, "context": context}
    scope |= {"prompt_format": prompt_format, "estimator": "exact"}
    numbers = {"share": (number + 1) / 10, "se_templates": None, "ci_low": 0.1, "ci_high": 0.2, "reason": ""}
    numbers |= {"coverage": 0.5, "coverage_median": 0.5, "n_jobs": 20, "n_templates": 5}
    return [
        {**scope, "job_group": group, "gender": gender, **numbers}
        for group in ("male-dominated", "female-dominated")
        for gender in ("male", "female", "diverse")
    ]


def part_of(rows: Sequence[Row], levels: Sequence[Row] = (), **more: Any) -> Part:
    told = enumerate(("high", "high", "low"), 1)
    given: dict[str, Any] = {
        "tables": {"probe_groups": rows, "probe_levels": levels},
        "groups": ("male", "female", "diverse"),
        "claims": dict.fromkeys((*OCCUGENDER.values(), DEBIASING), Claim.WHOLE),
        "debiasing_prompts": tuple({"id": i, "text": "…", "level": level} for i, level in told),
    }
    empty = dict.fromkeys(("models", "runs", "signatures", "notes"), ())
    return Part(**{"measurement": "probe", "study": "s", "summary": "", **empty, **given, **more})


def test_debiasing_prompts_make_a_table_for_each_model_as_in_tables_9_to_18() -> None:
    rows = [
        row
        for model in ("ash", "Elm/X")
        for number in (0, 1, 2)
        for bias_type in ("explicit", "implicit")
        for row in group_rows(model, number, "plain", bias_type)
    ]
    part = part_of(rows, debiasing_prompts=({"id": 1, "text": "…"}, {"id": 2, "text": "…", "level": None}))
    made = papers(part, {})
    assert [one.name for one in made][:3] == [
        "occugender-table-3",
        "occugender-table-4",
        "occugender-tables-9-18-ash",
    ]
    assert made[3].name.startswith("occugender-tables-9-18-Elm-X-")
    table = made[2].table
    assert [row[0] for row in table.rows] == ["None", "1", "2"]
    assert [h.text for h in table.header[0]] == ["", "Explicit", "Implicit"]
    assert table.rows[2][1] == "30.0"
    assert table.n_columns == 1 + 2 * 2 * 4
    assert (
        "average" not in render_text(Document((table,))).split("\n\n")[0].split("-----")[-1].split("cov.")[0]
    )
    compiled(made)


def test_mattern_has_levels_averages_and_contexts_and_every_model_in_tables_7_and_8() -> None:
    rows = [
        row
        for model in ("ash", "elm")
        for number in (0, 1, 2, 3)
        for context in ("plain", "dialogue")
        for bias_type in ("explicit", "implicit")
        for row in group_rows(model, number, context, bias_type)
    ]
    levels = [{**row, "level": "high", "share": 0.77} for row in rows if row["debiasing_id"] == 1]
    part = part_of(rows, levels, claims=dict.fromkeys(MATTERN.values(), Claim.WHOLE))
    made = papers(part, {})
    assert [one.name for one in made] == [
        *("mattern-table-3-ash", "mattern-table-3-elm", "mattern-table-7"),
        *("mattern-table-4-ash", "mattern-table-4-elm", "mattern-table-8"),
    ]
    table = made[0].table
    assert [row[:2] for row in table.rows] == [
        *(("", "None"), ("high", "1"), ("high", "2"), ("high", "average"), ("low", "3"), ("low", "average")),
    ]
    assert [h.text for h in table.header[0]][2:] == ["Without dialogue", "With dialogue"]
    assert table.rows[3][2:6] == ("77.0", "77.0", "77.0", "")
    assert [row[:2] for row in made[2].table.rows[:4]] == [
        *(("None", "ash"), ("None", "elm"), ("1", "ash"), ("1", "elm")),
    ]
    compiled(made)


def test_two_prompt_formats_never_stand_in_one_table() -> None:
    rows = group_rows("ash", 0, "plain", "explicit") + group_rows(
        "elm", 0, "plain", "explicit", "chat-prefill"
    )
    made = papers(part_of(rows), {})
    assert [one.name for one in made] == ["occugender-table-3-raw", "occugender-table-3-chat-prefill"]
    assert [one.table.rows[0][0] for one in made] == ["ash", "elm"]
    assert "prompt format chat-prefill" in made[1].table.title


def test_a_share_that_is_not_there_is_a_dash_with_its_reason() -> None:
    rows = group_rows("ash", 0, "plain", "explicit")
    rows[0] |= {"share": None, "ci_low": None, "ci_high": None, "reason": "no template is complete"}
    rows[3] |= {"coverage_median": 0.001}
    table = papers(part_of(rows), {})[0].table
    assert "–" in table.rows[0]
    assert "[10.0]" in table.rows[0]
    assert table.note.endswith("– not measured: no template is complete.")
    assert papers(part_of([]), {}) == []
