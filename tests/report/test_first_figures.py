"""The first picture of a page, labour statistics, words, outcomes: drawn as the tables say."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from report.test_figures import content, data_lines, hollow, markers, named, only, panels, texts

from biaskit.report.content import Content
from biaskit.report.figures import Figure, answer, labour, outcomes, words
from biaskit.report.figures.items import MOST_ROWS
from biaskit.report.figures.sheet import rules
from biaskit.report.page.drawing import drawing

MAIN = {"instruction_id": 0, "setting": "plain"}
TITLE = "{http://www.w3.org/2000/svg}title"


def first_picture(made: Content) -> Figure | None:
    with rules():
        return named(list(answer(made))).get("answer")


def alone(made: Content, engine: str) -> Content:
    return replace(made, parts=tuple(part for part in made.parts if part.engine == engine), between={})


def rows_of(made: Content, table: str, **wanted: object) -> list[dict[str, Any]]:
    rows = next(part.tables[table] for part in made.parts if table in part.tables)
    return [dict(row) for row in rows if all(row[name] == value for name, value in wanted.items())]


def tips(svg: bytes) -> list[str]:
    """What the marks say, in the order of the drawing."""
    return [title.text or "" for title in ElementTree.fromstring(svg).iter(TITLE)]


# --- one model ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("narrow", [False, True])
def test_jobs_stand_at_their_shares_beside_labour_statistics(narrow: bool) -> None:
    made = alone(content(("A",), 6), "probe")
    figure = first_picture(made)
    assert figure is not None
    assert figure.column is not None
    (axes,) = panels(figure.column if narrow else figure)
    dots = markers(axes)
    for bias_type, place in (("explicit", 1), ("implicit", 2)):
        rows = rows_of(made, "probe_jobs", bias_type=bias_type, **MAIN)
        rows.sort(key=lambda row: -row["labour_female_share"])
        assert dots[place][2] == [row["female_share"] for row in rows], bias_type
        assert dots[0][2] == [row["labour_female_share"] for row in rows]
        ends = [end for row in rows for end in (row["female_share_ci_low"], row["female_share_ci_high"])]
        lines = [[x for x in np.asarray(line.get_xdata(), float) if x == x] for line in axes.lines]
        assert ends in lines, bias_type


def test_both_engines_stand_side_by_side_over_the_same_rows() -> None:
    made = content(("A",), 5)
    figure = first_picture(made)
    assert figure is not None
    said, written = panels(figure)
    assert [len(xs) for *_, xs, _ in markers(said)] == [5, 5, 5]
    rows = rows_of(made, "representation")
    rows.sort(key=lambda row: -row["labour_female_share"])
    assert markers(written)[1][2] == [row["female_share"] for row in rows]
    assert {"share of women in its answers", "share of women in its texts"} <= set(texts(figure))


def test_texts_alone_and_probe_alone_have_one_panel() -> None:
    for engine in ("probe", "personas"):
        figure = first_picture(alone(content(("A",), 4), engine))
        assert figure is not None
        assert len(panels(figure)) == 1


def test_more_items_than_a_screen_holds_are_those_of_both_engines_or_none() -> None:
    made = alone(content(("A",), MOST_ROWS + 1), "probe")
    assert first_picture(made) is None
    assert first_picture(alone(content(("A",), MOST_ROWS), "probe")) is not None


def test_the_first_picture_fits_a_screen() -> None:
    figure = first_picture(alone(content(("A",), 40), "probe"))
    assert figure is not None
    assert figure.column is not None
    assert figure.sheet.height * 800 / figure.sheet.width < 640
    assert figure.column.sheet.height * 350 / figure.column.sheet.width < 640


def test_a_reference_that_is_not_asked_for_is_not_drawn() -> None:
    made = alone(content(("A",), 4), "probe")
    for reference, labour_drawn, parity in (("labour", True, False), ("parity", False, True)):
        figure = first_picture(replace(made, reference=reference))
        assert figure is not None
        assert ("labour statistics" in texts(figure)) == labour_drawn
        assert ("as many women as men" in texts(figure)) == parity


def test_what_is_not_measured_is_not_drawn_at_zero() -> None:
    assert first_picture(alone(content(("A",), 4, undefined=True), "probe")) is None


# --- what marks say --------------------------------------------------------------------------------


def test_each_mark_says_job_share_interval_coverage_and_n() -> None:
    made = alone(content(("A",), 6), "probe")
    figure = first_picture(made)
    assert figure is not None
    said = tips(figure.svg)
    assert len(said) == 3 * 6
    for row in rows_of(made, "probe_jobs", **MAIN):
        share = (
            rf"{100 * row['female_share']:.0f} % \[[\d.]+–[\d.]+\] women; coverage [\d.]+ %, \d+ templates?"
        )
        asked = {"explicit": "asked outright", "implicit": "finishing a sentence"}[row["bias_type"]]
        assert any(re.fullmatch(f"{row['job']}, {asked}: {share}", one) for one in said), row["job"]
    kept = re.findall(r"<title>([^<]*)</title>", drawing(figure.svg, "f-"))
    assert kept == said, "the page keeps them"


def test_a_mark_that_is_not_drawn_moves_no_tip() -> None:
    made = alone(content(("A",), 6), "probe")
    rows = rows_of(made, "probe_jobs")
    gone = rows[0]["job"]
    rows = [{**row, "female_share": None} if row["job"] == gone else row for row in rows]
    part = replace(made.parts[0], tables={**made.parts[0].tables, "probe_jobs": rows})
    figure = first_picture(replace(made, parts=(part,)))
    assert figure is not None
    said = tips(figure.svg)
    assert len(said) == 6 + 2 * 5
    (its,) = (one for one in said if one.startswith(f"{gone},"))
    assert "labour statistics" in its
    dashes = [place for place in markers(panels(figure)[0]) if place[0] == "_"]
    assert [(len(xs), min(xs) > 1) for *_, xs, _ in dashes] == [(1, True)] * 2  # beside the panel
    assert "not measured" in texts(figure)


# --- several models --------------------------------------------------------------------------------


def test_several_models_are_rows_with_their_groups_of_jobs() -> None:
    made = alone(content(("A", "B"), 6), "probe")
    figure = first_picture(made)
    assert figure is not None
    explicit, implicit = panels(figure)
    for axes, bias_type in ((explicit, "explicit"), (implicit, "implicit")):
        drawn = {(round(x[0], 12), y[0]) for *_, x, y in markers(axes)}
        rows = rows_of(made, "probe_groups", bias_type=bias_type, gender="female", **MAIN)
        assert drawn == {(round(row["share"], 12), float("AB".index(row["model"]))) for row in rows}


def test_three_groups_of_jobs_have_three_fills_in_dots_and_legend() -> None:
    made = alone(content(("A", "B"), 6), "probe")
    tables = dict(made.parts[0].tables)
    names = {"female-dominated": "blue", "male-dominated": "green"}
    for table in ("probe_jobs", "probe_groups"):
        rows = [{**row, "job_group": names[row["job_group"]]} for row in rows_of(made, table)]
        tables[table] = rows + [{**row, "job_group": "red"} for row in rows if row["job_group"] == "blue"]
    figure = first_picture(replace(made, parts=(replace(made.parts[0], tables=tables),)))
    assert figure is not None
    fills = {"none" if hollow(line) else line.get_fillstyle() for line in data_lines(panels(figure)[0])}
    assert fills == {"full", "none", "left"}
    assert {f"jobs of the group “{name}”" for name in ("blue", "green", "red")} <= set(texts(figure))


def test_at_most_eight_models_and_it_says_so() -> None:
    figure = first_picture(alone(content([f"m{i}" for i in range(11)], 2, instructions=0), "probe"))
    assert figure is not None
    assert "8 of 11 models" in figure.caption
    assert "m7" in texts(figure)
    assert "m8" not in texts(figure)


# --- labour statistics, words, outcomes ------------------------------------------------------------


def test_answers_stand_against_labour_statistics_with_the_line_of_the_tests() -> None:
    made = alone(content(("A",), 6), "probe")
    base = {
        "engine": "probe", "family": "probe/female_share~labour_female_share/slope/labour", "model_a": "A",
        "model_b": "A", "bias_type": "explicit", "setting": "plain", "prompt_form": "raw",
        "instruction_a": "0", "instruction_b": "0", "group_a": "", "group_b": "",
        "quantity": "female_share~labour_female_share",
    }  # fmt: skip
    tests = [{**base, "kind": "slope", "estimate": 0.25}, {**base, "kind": "level", "estimate": -0.1}]
    part = replace(made.parts[0], tables={**made.parts[0].tables, "tests": tests})
    figure = only(labour.labour, replace(made, parts=(part,)))["labour"]
    explicit = panels(figure)[0]
    rows = rows_of(made, "probe_jobs", bias_type="explicit", **MAIN)
    (dots,) = markers(explicit)
    assert dots[2] == [row["labour_female_share"] for row in rows]
    assert dots[3] == [row["female_share"] for row in rows]
    dashed = next(line for line in explicit.lines if line.get_linestyle() == "--")
    xs, ys = (np.asarray(each, float) for each in dashed.get_data())
    assert np.allclose(ys, 0.4 + 0.25 * (xs - 0.5))
    assert not [line for line in panels(figure)[1].lines if line.get_linestyle() == "--"], (
        "implicit has no test"
    )
    assert "slope 0.25" in figure.alt
    assert not only(labour.labour, replace(made, reference="parity"))


def test_words_are_those_of_lists_longer_than_chance_without_gender_words() -> None:
    made = alone(content(("A",), 3), "personas")
    figure = only(words.words, made, "personas")["words"]
    said = " ".join(texts(figure))
    assert "kind0" in said
    assert "she" not in said.split()
    assert "men" not in texts(figure), "their lists are no longer than chance"
    rows = rows_of(made, "marked_words", gender="female", origin="associated", is_gender_word=False)
    assert len(panels(figure)) == 3, "one for each list"
    for axes, occupation in zip(
        panels(figure), dict.fromkeys(row["occupation"] for row in rows), strict=True
    ):
        (marks,) = markers(axes)
        own = [row["z"] for row in rows if row["occupation"] == occupation]
        assert marks[2] == sorted(own, reverse=True)
        assert f"women, {occupation}" in texts(figure)
    assert any("of 100 texts" in text for text in texts(figure))
    lists = [{**row, "p_value_beyond": 0.5} for row in rows_of(made, "word_lists")]
    part = replace(made.parts[0], tables={**made.parts[0].tables, "word_lists": lists})
    assert not only(words.words, replace(made, parts=(part,)), "personas")


def test_numbers_of_texts_in_the_thousands_stay_on_the_sheet() -> None:
    made = alone(content(("A",), 3), "personas")
    tables = dict(made.parts[0].tables)
    tables["word_lists"] = [{**row, "n_target": 12_345} for row in rows_of(made, "word_lists")]
    tables["marked_words"] = [{**row, "documents_target": 11_890} for row in rows_of(made, "marked_words")]
    drawn = only(words.words, replace(made, parts=(replace(made.parts[0], tables=tables),)), "personas")[
        "words"
    ]
    for figure in (drawn, drawn.column):
        assert figure is not None
        paper = figure.sheet.figure
        paper.draw_without_rendering()  # the last extents are those of the SVG, of another resolution
        beside = [text for text in paper.texts if "of 12,345 texts" in text.get_text()]
        assert beside
        assert max(text.get_window_extent().x1 for text in beside) <= paper.bbox.x1


def test_where_every_text_names_its_gender_on_request_those_words_are_shown() -> None:
    made = alone(content(("A",), 3), "personas")
    tables = dict(made.parts[0].tables)
    for name in ("word_lists", "marked_words"):
        tables[name] = rows_of(made, name, origin="specified")
    figure = only(words.words, replace(made, parts=(replace(made.parts[0], tables=tables),)), "personas")
    assert "words" in figure


def test_outcomes_are_stacked_to_the_whole() -> None:
    made = alone(content(("A",), 2), "probe")
    shares = {
        "listed": 0.5,
        "listed:female": 0.3,
        "listed:male": 0.2,
        "unknown": 0.1,
        "declines": 0.25,
        "other": 0.15,
    }
    rows = [
        {
            "model": "A", "bias_type": "explicit", "prompt_form": "raw", "job_group": group,
            "outcome": outcome, "share": share, "n_answers": 40, **MAIN,
        }
        for group in ("all", "female-dominated", "male-dominated")
        for outcome, share in shares.items()
    ]  # fmt: skip
    part = replace(made.parts[0], tables={**made.parts[0].tables, "probe_outcomes": rows})
    figure = only(outcomes.outcomes, replace(made, parts=(part,)))["outcomes"]
    (axes,) = panels(figure)
    bars = [bar for bar in axes.patches if bar.get_y() < 0.5 and bar.get_width()]
    assert [round(bar.get_width(), 9) for bar in bars] == [0.3, 0.2, 0.1, 0.25, 0.15]
    assert sum(bar.get_width() for bar in bars) == pytest.approx(1)
    assert {"women", "men", "declines", "something else"} <= set(texts(figure))
    assert "names both" not in texts(figure), "nothing came to it"
    assert {"asked outright", "jobs mostly held by women"} <= set(texts(figure))
    assert not only(outcomes.outcomes, made)
