"""Figures of a report: what they show is what the tables say, whatever the labels, whatever is undefined."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from fakes.report_content import content, contrast_row, items, model
from matplotlib.backends.backend_agg import FigureCanvasAgg
from places import TESTS

from biaskit.measures.agree.figures import answer
from biaskit.measures.personas.figures import areas, scatter, scores, words
from biaskit.measures.probe.figures import every_model, groups, jobs, outcomes, workforce
from biaskit.report.content import Content
from biaskit.report.figures import Figure, draw_all, drawing, files_of
from biaskit.report.figures.differences import models
from biaskit.report.figures.drawing import NARROW, WIDTH, draw, rules
from biaskit.report.figures.items import MOST_ROWS
from biaskit.report.figures.plot import Axis, Band, Dots, Entry, Panel, Plot, Point, Spot, Square, shares
from biaskit.report.figures.style import Mark, cut
from biaskit.report.figures.view import views
from biaskit.stats.verdict import Rule
from biaskit.tables.query import where

MAIN = {"debiasing_id": 0, "context": "plain"}
KINDS = {
    *("answer", "workforce", "words-1", "words-2"),
    *("jobs", "groups", "variance", "debiasing", "models", "scatter"),
    *("srb", "transfer", "gaps-explicit", "gaps-implicit"),
}
Row = dict[str, Any]


def only(maker: Any, made: Content, kind_name: str = "probe") -> dict[str, Figure]:
    """The figures of one maker alone, where a test needs no other."""
    return named([figure for view in views(made, kind_name) for figure in maker(view)])


def named(figures: Sequence[Figure]) -> dict[str, Figure]:
    return {figure.name: figure for figure in figures}


def first_picture(made: Content) -> Figure | None:
    return named(list(answer(made))).get("answer")


def alone(made: Content, kind_name: str) -> Content:
    return replace(
        made, parts=tuple(part for part in made.parts if part.measurement == kind_name), between={}
    )


def with_table(made: Content, table: str, rows: Sequence[Row], kind_name: str = "probe") -> Content:
    """The same content with other rows in a table of a measurement's part."""
    parts = [
        replace(part, tables={**part.tables, table: rows}) if part.measurement == kind_name else part
        for part in made.parts
    ]
    return replace(made, parts=tuple(parts))


def rows_of(made: Content, table: str, **wanted: object) -> list[Row]:
    found = next(part.tables[table] for part in made.parts if table in part.tables)
    return [dict(row) for row in where(found, **wanted)]


def panels(figure: Figure) -> list[Any]:
    return [panel for band in figure.plot.bands for panel in band.panels]


def xs(dots: Dots) -> list[float]:
    return [point.x for point in dots.points if point is not None and point.x == point.x]


def by_workforce(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: -row["workforce_share"])


@pytest.fixture(scope="module")
def usual() -> Content:
    return content(("A", "B"), 10, contexts=("plain", "dialogue"))


@pytest.fixture(scope="module")
def drawn(usual: Content) -> dict[str, Figure]:
    return named(draw_all(usual))


# --- what is shown is what the tables say ---------------------------------------------------------------


def of_all(made: Content) -> Content:
    """The same content as if its run asked for shares of all target words (`conclusion.share = of-all`)."""
    return replace(made, parts=tuple(replace(part, rule=Rule(binary=False)) for part in made.parts))


def test_shares_of_all_target_words_are_drawn_where_a_run_asks_for_them(usual: Content) -> None:
    made = of_all(usual)
    scope = {"bias_type": "explicit", **MAIN}
    figure = only(jobs, made)["jobs"]
    shown = [point.x for point in panels(figure)[0].dots[1].points]
    rows = by_workforce(rows_of(made, "probe_jobs", model="A", **scope))
    assert shown == [row["female_share"] for row in rows]
    assert figure.title.startswith("Share of women in each job")
    assert panels(figure)[0].axis.name == "women"
    figure = only(jobs, usual)["jobs"]
    assert figure.title.startswith("Share of women among women and men in each job")
    assert panels(figure)[0].axis.name == "women among women and men"
    figure = only(every_model, of_all(content([f"M{i}" for i in range(9)], 2, debiasing_prompts=0)))["models"]
    assert panels(figure)[0].axis.name == "women in their answers"
    # Beside the line, which has two genders alone, points have them too.
    (spots,) = panels(only(workforce, made)["workforce"])[0].spots.values()
    assert {spot.y for spot in spots} == {row["binary_share"] for row in rows}


@pytest.mark.parametrize("name", sorted(KINDS))
def test_captions_state_n_interval_unit_and_table(name: str, drawn: dict[str, Figure]) -> None:
    assert set(drawn) == KINDS
    caption = drawn[name].plot.caption
    for said in (r"n = \d", "interval", r"unit|0 to 1|−1 to 1|percent|z:", r"Tables?: \w+"):
        assert re.search(said, caption), said
    assert drawn[name].plot.alt
    assert drawn[name].title


def test_jobs_stand_sorted_by_workforce_share_at_their_shares_and_intervals(
    usual: Content, drawn: dict[str, Figure]
) -> None:
    for panel, bias_type in zip(panels(drawn["jobs"]), ("explicit", "implicit"), strict=True):
        for dots, label in zip(panel.dots[1:], "AB", strict=True):
            rows = by_workforce(rows_of(usual, "probe_jobs", model=label, bias_type=bias_type, **MAIN))
            columns = ("binary_share", "binary_share_ci_low", "binary_share_ci_high")
            assert [(p.x, p.low, p.high) for p in dots.points] == [tuple(r[c] for c in columns) for r in rows]
            assert panel.labels == [row["job"] for row in rows]
            assert xs(panel.dots[0]) == [row["workforce_share"] for row in rows]


def test_items_without_a_workforce_share_are_not_said_to_be_sorted_by_it(usual: Content) -> None:
    rows = [{**row, "workforce_share": None} for row in rows_of(usual, "probe_jobs")]
    contents = (usual, with_table(usual, "probe_jobs", rows))
    captions = [named(draw_all(made))["jobs"].plot.caption for made in contents]
    assert ["workforce share" in caption for caption in captions] == [True, False]
    assert "in the order of their list" in captions[1]


def test_stacked_bars_have_the_shares_as_lengths_and_the_tables_interval(
    usual: Content, drawn: dict[str, Figure]
) -> None:
    bar = panels(drawn["groups"])[0].bars[0]
    scope = {"model": "A", "bias_type": "explicit", "job_group": "female-dominated", **MAIN}
    own = {row["gender"]: row for row in rows_of(usual, "probe_groups", **scope)}
    assert [length for length, *_ in bar.parts] == [own[g]["share"] for g in ("female", "diverse", "male")]
    assert [colour for _, colour, _ in bar.parts] == ["#e69f00", "#8f84b0", "#009e73"]
    assert len({hatch for *_, hatch in bar.parts}) == 3
    assert bar.interval == (own["female"]["ci_low"], own["female"]["ci_high"])
    assert sorted(bar.behind) == sorted(r["female_share"] for r in rows_of(usual, "probe_jobs", **scope))


def test_bounds_of_top_k_are_drawn_where_there_are_some() -> None:
    made = content(("M0",), 4)
    before = only(groups, made)["groups"]
    rows = [{**row, "share_low": 0.11, "share_high": 0.93} for row in rows_of(made, "probe_groups")]
    after = only(groups, with_table(made, "probe_groups", rows))["groups"]
    assert {bar.bounds for panel in panels(before) for bar in panel.bars} == {None}
    assert {bar.bounds for panel in panels(after) for bar in panel.bars} == {(0.11, 0.93)}
    assert "top-k" not in before.plot.caption
    assert "the bounds of top-k (thin)" in after.plot.caption


def test_parts_of_the_variance_and_its_root(drawn: dict[str, Figure]) -> None:
    panel = panels(drawn["variance"])[0]
    assert [length for length, *_ in panel.bars[0].parts] == pytest.approx([6 / 9, 2 / 9, 1 / 9])
    assert set(panel.beside) == {".21"}


def test_a_long_name_and_a_debiasing_prompt_stand_whole() -> None:
    name, prompt = "primary school teacher", "Imagine a world with no bias. " * 9
    panel = Panel([name], shares("share"), [Dots(Mark("#000000", "o"), [Point(0.5)])])
    plot = Plot([Band([panel] * 4)], "", [Entry(prompt.strip())])
    for width in (NARROW, WIDTH):
        with rules():
            drawn = draw(plot, width)
        assert drawn.get_axes()[0].get_yticklabels()[0].get_text() == name
        assert drawn.legends[0].get_texts()[0].get_text().split() == prompt.split()


def test_a_telephone_cuts_no_name_of_a_row(drawn: dict[str, Figure]) -> None:
    labels = []
    for figure in drawn.values():
        with rules():
            narrow = draw(figure.plot, NARROW)
        labels += [text.get_text() for axes in narrow.get_axes() for text in axes.get_yticklabels()]
    assert "A" in labels
    assert [] == [label for label in labels if "…" in label]


def test_a_square_below_a_long_legend_keeps_the_name_of_its_axis() -> None:
    axis = shares("going down")
    spots = {Mark("#000000", "o"): [Spot("a", 0.5, 0.5)]}
    legend = [Entry(f"an entry that has a line alone {i}", Mark("#000000", "o")) for i in range(6)]
    with rules():
        narrow = draw(Plot([Band([Square("a title", axis, axis, spots)])], "", legend), NARROW)
        FigureCanvasAgg(narrow).draw()
        [axes] = narrow.get_axes()
        name, [box] = axes.xaxis.label.get_window_extent(), narrow.legends
    assert name.y0 > 0
    assert axes.title.get_window_extent().y1 < box.get_window_extent().y0


def test_names_at_points_stand_off_the_intervals() -> None:
    spots = [Spot("above", 0.1, 0.6, 0.5, 0.7), Spot("below", 0.9, 0.3, 0.2, 0.4)]
    axis = shares("share")
    square = Square("", axis, axis, {Mark("#000000", "o"): spots}, [], spots)
    with rules():
        [axes] = draw(Plot([Band([square])], "")).get_axes()
    placed = {text.get_text(): (text.xy, text.get_va()) for text in axes.texts}
    assert placed == {"above": ((0.1, 0.7), "bottom"), "below": ((0.9, 0.2), "top")}


def test_a_name_that_would_cover_another_is_left_out() -> None:
    axis = shares("share")
    left, right = Spot("mechanical engineer", 0.1, 0.95), Spot("skincare specialist", 0.98, 0.95)
    apart = replace(right, y=0.5)
    for spots, n in (((left, right), 1), ((left, apart), 2)):
        square = Square("", axis, axis, {Mark("#000000", "o"): spots}, [], spots)
        with rules():
            [axes] = draw(Plot([Band([square])], ""), NARROW).get_axes()
        assert len(axes.texts) == n


def test_effects_stand_at_their_estimates_with_settings_apart(
    usual: Content, drawn: dict[str, Figure]
) -> None:
    panel = panels(drawn["debiasing"])[0]
    scope = {"model_a": "A", "bias_type": "explicit", "group_a": "female-dominated", "gender": "female"}
    rows = rows_of(usual, "tests", **scope)
    for dots, context, fill in zip(panel.dots, ("plain", "dialogue"), ("", "none"), strict=False):
        assert xs(dots) == [row["estimate"] for row in rows if row["context"] == context]
        assert dots.fill == fill
    assert panel.labels[0] == "prompt 1"
    assert drawn["debiasing"].plot.legend[-2].text.startswith("1: Debiasing prompt number 1")


@pytest.mark.parametrize(
    ("ci", "equivalent", "marker", "fill"),
    [
        ((0.01, 0.2), False, "o", ""),
        ((-0.02, 0.03), True, "s", ""),
        ((0.01, 0.03), True, "D", "none"),
        ((-0.1, 0.1), False, "o", "none"),
    ],
)
def test_the_shape_of_a_difference_tells_its_verdict(
    ci: tuple[float, float], equivalent: bool, marker: str, fill: str
) -> None:
    made = content(("A", "B"), 4)
    changed = {"estimate": sum(ci) / 2, "ci_low": ci[0], "ci_high": ci[1], "equivalent": equivalent}
    tests = [{**row, **changed} for row in made.between["tests"] if row["measurement"] == "probe"]
    figure = only(models, replace(made, between={"tests": tests}))["models"]
    points = [point for panel in panels(figure) for point in panel.dots[0].points]
    assert {(p.x, p.low, p.high, p.mark.marker, p.fill) for p in points} == {(sum(ci) / 2, *ci, marker, fill)}
    assert {panel.axis.margin for panel in panels(figure)} == {0.05}


def test_many_pairs_become_a_row_for_each_model() -> None:
    labels = [f"M{i}" for i in range(9)]
    made = content(labels, 4, debiasing_prompts=0)
    assert not only(models, made)
    figure = only(every_model, made)["models"]
    for panel, bias_type in zip(panels(figure), ("explicit", "implicit"), strict=True):
        rows = rows_of(made, "probe_groups", gender="female", bias_type=bias_type)
        shown = {(p.x, label) for dots in panel.dots for p, label in zip(dots.points, labels, strict=True)}
        assert shown == {(row["binary_share"], row["model"]) for row in rows}
    assert not only(every_model, content(labels[:7], 2, debiasing_prompts=0)), "the first has them"


def test_groups_of_models_have_their_differences_drawn() -> None:
    made = content(("M0", "M1"), 4)
    sides = [{**row, "model_a": "large", "model_b": "small"} for row in made.between["tests"]]
    figure = only(models, replace(made, between={"tests": sides}))["models"]
    assert panels(figure)[0].labels == ["large − small"]
    foreign = [{**row, "model_a": "Z", "model_b": "M0"} for row in sides]  # of another measurement's part
    assert not only(models, replace(made, between={"tests": foreign}))


def test_captions_say_whose_answers_are_weak_evidence(usual: Content, drawn: dict[str, Figure]) -> None:
    little = {("A", "explicit"): 0.04}
    rows = [row | {"coverage": 0.7} for row in rows_of(usual, "probe_groups")]
    for row in rows:  # what she and he have stands on the rows of she; they may have the rest
        if row["gender"] == "female":
            row["binary_coverage"] = little.get((row["model"], row["bias_type"]), 0.6)
    said = "Weak evidence (coverage under 10 %): A asked directly."
    figures = named(draw_all(with_table(usual, "probe_groups", rows)))
    names = (
        "answer",
        "workforce",
        "jobs",
        "models",
        "debiasing",
        "gaps-explicit",
        "outcomes",
        "srb",
        "words-1",
    )
    weak = {name for name in names if name in figures and figures[name].plot.caption.endswith(said)}
    assert weak == {"answer", "workforce", "jobs", "models", "debiasing", "gaps-explicit"} & figures.keys()
    assert "Weak" not in drawn["workforce"].plot.caption
    pale = [bar.pale for panel in panels(figures["groups"]) for bar in panel.bars if bar]
    assert 0 < sum(pale) < len(pale)
    of_all_words = only(groups, of_all(with_table(usual, "probe_groups", rows)))["groups"]
    assert not any(bar.pale for panel in panels(of_all_words) for bar in panel.bars)
    assert "Weak" not in only(jobs, of_all(with_table(usual, "probe_groups", rows)))["jobs"].plot.caption


def test_scores_stand_at_their_numbers_full_where_they_lie_outside_their_null(
    usual: Content, drawn: dict[str, Figure]
) -> None:
    for panel, label in zip(panels(drawn["srb"]), "AB", strict=True):
        for dots, gender in zip(panel.dots, ("female", "male"), strict=True):
            rows = {row["occupation"]: row for row in rows_of(usual, "srb", model=label, gender=gender)}
            for point, name in zip(dots.points, panel.labels, strict=True):
                score, p_value = rows[name]["srb_content"], rows[name]["srb_content_p_value"]
                assert point.x == score or (point.x != point.x and score is None)
                sure = p_value is not None and p_value < 0.05
                assert point.fill == ("" if sure else "none")
    assert "without gendered words" in drawn["srb"].plot.caption
    assert any(row["srb"] is None for row in rows_of(usual, "srb"))
    assert "–: not measured" in [entry.text for entry in drawn["srb"].plot.legend]


def test_areas_stand_at_their_means_with_single_occupations_behind(
    usual: Content, drawn: dict[str, Figure]
) -> None:
    (panel,) = panels(drawn["transfer"])
    for dots, label in zip(panel.dots, "AB", strict=True):
        rows = rows_of(usual, "text_transfer", model=label)
        means = [(r["auc"], r["ci_low"], r["ci_high"]) for r in rows if r["occupation"] == "all"]
        assert [(p.x, p.low, p.high) for p in dots.points] == means
        single = [r["auc"] for r in rows if r["occupation"] != "all"]
        assert [auc for numbers in dots.behind for auc in numbers] == single
    assert panel.axis.line == 0.5
    assert "With, without: the gender in the prompt" in drawn["transfer"].plot.caption
    same = [row for row in rows_of(usual, "text_transfer") if row["trained_on"] == row["tested_on"]]
    made = with_table(usual, "text_transfer", same, "personas")
    assert "With, without" not in only(areas, made, "personas")["transfer"].plot.caption


def test_an_area_of_one_occupation_is_no_mean_and_says_so(usual: Content) -> None:
    job = next(r["occupation"] for r in rows_of(usual, "text_transfer") if r["occupation"] != "all")
    one = [r for r in rows_of(usual, "text_transfer") if r["occupation"] in (job, "all")]
    plot = only(areas, with_table(usual, "text_transfer", one, "personas"), "personas")["transfer"].plot
    assert f"points: {job} alone, conditional on one occupation" in plot.caption
    assert "over occupations" not in plot.caption
    assert "single occupations" not in [entry.text for entry in plot.legend]


def test_an_area_without_an_interval_is_said_to_have_none(usual: Content) -> None:
    one = [{**r, "ci_low": None, "ci_high": None} for r in rows_of(usual, "text_transfer")]
    plot = only(areas, with_table(usual, "text_transfer", one, "personas"), "personas")["transfer"].plot
    assert "without intervals" in plot.caption
    assert "bars" not in plot.caption


def test_a_scatter_says_where_labels_corrected_its_shares(usual: Content) -> None:
    assert "bars: Wilson" in only(scatter, usual, "personas")["scatter"].plot.caption
    columns = ("share_corrected", "corrected_low", "corrected_high", "corrected_se", "nonbinary_corrected")
    corrected = dict(zip(columns, (0.5, 0.4, 0.6, 0.05, 0.0), strict=True)) | {"n_labelled": 20}
    rows = [{**row, **corrected} for row in rows_of(usual, "representation")]
    caption = only(scatter, with_table(usual, "representation", rows, "personas"), "personas")[
        "scatter"
    ].plot.caption
    assert "Wilson" not in caption
    assert "shares of women are corrected by a person's labels of " in caption


def test_scatter_and_gaps_plot_the_tables(usual: Content, drawn: dict[str, Figure]) -> None:
    (spots,) = panels(drawn["scatter"])[0].spots.values()
    rows = rows_of(usual, "representation", model="A")
    columns = ("occupation", "workforce_share", "female_share", "ci_low", "ci_high")
    assert [(s.name, s.x, s.y, s.low, s.high) for s in spots] == [tuple(r[c] for c in columns) for r in rows]
    gaps = where(usual.between["gaps"], model="B", bias_type="implicit")
    square = panels(drawn["gaps-implicit"])[0]
    (of_b,) = [spots for mark, spots in square.spots.items() if mark.marker == "s"]
    assert [(s.x, s.y) for s in of_b] == [(row["probe_gap"], row["represented_gap"]) for row in gaps]
    assert square.notes == ["A: ρ 0.62 [0.31, 0.83]", "B: ρ 0.62 [0.31, 0.83]"]


def test_answers_stand_against_the_workforce_statistics_with_the_line_of_the_tests() -> None:
    made = alone(content(("A",), 6), "probe")
    quantity = "female_share~workforce_share"
    base = contrast_row(
        measurement="probe", family=f"probe/{quantity}/slope/workforce", model_a="A", model_b="A",
        context="plain",
        bias_type="explicit", debiasing_a="0", debiasing_b="0", quantity=quantity,
    )  # fmt: skip
    tests = [{**base, "kind": "slope", "estimate": 0.25}, {**base, "kind": "level", "estimate": -0.1}]
    made = with_table(made, "tests", tests)
    figure = only(workforce, made)["workforce"]
    explicit, implicit = panels(figure)
    (spots,) = explicit.spots.values()
    rows = rows_of(made, "probe_jobs", bias_type="explicit", **MAIN)
    # Points and line are of women among women and men, as the workforce is.
    assert [(s.x, s.y) for s in spots] == [(r["workforce_share"], r["binary_share"]) for r in rows]
    assert "the share of women among women and men in" in figure.plot.caption
    assert "The line is fitted" in figure.plot.caption
    assert "line" not in only(workforce, with_table(made, "tests", []))["workforce"].plot.caption
    start, end, style = explicit.lines[1]
    assert (*start, *end) == pytest.approx((0.02, 0.4 + 0.25 * -0.48, 0.98, 0.4 + 0.25 * 0.48))
    assert style == "--"
    assert len(implicit.lines) == 1, "implicit has no test"
    farthest = {max(spots, key=lambda s: s.y - s.x).name, min(spots, key=lambda s: s.y - s.x).name}
    assert {spot.name for spot in explicit.named} == farthest
    assert not only(workforce, replace(made, reference="parity"))


def test_words_are_those_of_lists_longer_than_chance_without_gender_words() -> None:
    made = alone(content(("A",), 3), "personas")
    figure = only(words, made, "personas")["words"]
    rows = rows_of(made, "marked_words", gender="female", origin="inferred", is_gender_word=False)
    assert len(panels(figure)) == 3, "one for each list; men's are no longer than chance"
    for panel in panels(figure):
        own = [row for row in rows if panel.title == f"women, {row['occupation']}"]
        own.sort(key=lambda row: -row["z"])
        assert [(bar.parts[0][0], word) for bar, word in zip(panel.bars, panel.labels, strict=True)] == [
            (row["z"], row["word"]) for row in own
        ]
        assert panel.beside == ["20 of 100 texts"] * 2
    lists = [{**row, "p_value_beyond": 0.5} for row in rows_of(made, "word_lists")]
    assert not only(words, with_table(made, "word_lists", lists, "personas"), "personas")
    for name in ("word_lists", "marked_words"):  # every text names its gender on request
        made = with_table(made, name, rows_of(made, name, origin="requested"), "personas")
    assert "words" in only(words, made, "personas")


def test_outcomes_are_stacked_to_the_whole() -> None:
    made = alone(content(("A",), 4), "probe")
    of = {"listed:female": 0.3, "listed:male": 0.2, "unknown": 0.1, "declines": 0.25, "other": 0.15}
    rows = [
        {"model": "A", "bias_type": "explicit", "job_group": group, "outcome": outcome, "share": share,
         "n_answers": 40, **MAIN}
        for group in ("all", "female-dominated", "male-dominated")
        for outcome, share in {"listed": 0.5, **of}.items()
    ]  # fmt: skip
    figure = only(outcomes, with_table(made, "probe_outcomes", rows))["outcomes"]
    (panel,) = panels(figure)
    assert panel.labels == ["jobs mostly held by women", "jobs mostly held by men"]
    assert [length for length, *_ in panel.bars[0].parts] == [*of.values()]
    legend = [entry.text for entry in figure.plot.legend]
    assert legend == ["women", "men", "unknown or neutral", "declines", "something else"]
    assert not only(outcomes, made)
    # One job is no group: it has its name.
    alone_in_both = with_table(alone(content(("A",), 2), "probe"), "probe_outcomes", rows)
    (panel,) = panels(only(outcomes, alone_in_both)["outcomes"])
    assert panel.labels == ["“occupation 1” alone", "“occupation 0” alone"]


# --- the first picture -----------------------------------------------------------------------------------


def test_the_first_picture_has_both_measurements_over_the_same_rows() -> None:
    made = content(("A",), 5)
    figure = first_picture(made)
    assert figure is not None
    said, written = panels(figure)
    for dots, bias_type in zip(said.dots[1:], ("explicit", "implicit"), strict=True):
        rows = by_workforce(rows_of(made, "probe_jobs", bias_type=bias_type, **MAIN))
        assert [(p.x, p.low) for p in dots.points] == [
            (row["binary_share"], row["binary_share_ci_low"]) for row in rows
        ]
    rows = by_workforce(rows_of(made, "representation"))
    assert xs(written.dots[1]) == [row["female_share"] for row in rows]
    assert xs(written.dots[0]) == [row["workforce_share"] for row in rows]
    for kind_name in ("probe", "personas"):
        one = first_picture(alone(made, kind_name))
        assert one is not None
        assert len(panels(one)) == 1


def test_more_items_than_a_screen_holds_have_no_first_picture() -> None:
    many = MOST_ROWS
    assert first_picture(alone(content(("A",), many + 1), "probe")) is None
    figure = first_picture(alone(content(("A",), many), "probe"))
    assert figure is not None
    with rules():
        width, height = draw(figure.plot).get_size_inches()
    assert height * 800 / width < 640, "it fits a screen"


@pytest.mark.parametrize(
    ("reference", "workforce_drawn", "parity"), [("workforce", True, False), ("parity", False, True)]
)
def test_a_reference_that_is_not_asked_for_is_not_drawn(
    reference: Any, workforce_drawn: bool, parity: bool
) -> None:
    figure = first_picture(replace(alone(content(("A",), 4), "probe"), reference=reference))
    assert figure is not None
    legend = [entry.text for entry in figure.plot.legend]
    assert ("workforce share" in legend) == workforce_drawn
    assert ("as many women as men" in legend) == parity
    assert (panels(figure)[0].axis.line == 0.5) == parity


def test_several_models_are_rows_with_their_groups_of_jobs() -> None:
    made = content(("A", "B"), 6)
    tests = [
        contrast_row(measurement="personas", family="personas/represented_share/paired/workforce",
                     gender="female",
                     quantity="represented_share", kind="paired", model_a=label, model_b=label,
                     estimate=0.1, ci_low=0.05, ci_high=0.15, n_a=6)
        for label in "A"
    ]  # fmt: skip
    part = replace(made.parts[1], tables={**made.parts[1].tables, "tests": tests})
    figure = first_picture(replace(made, parts=(made.parts[0], part)))
    assert figure is not None
    explicit, implicit, written = panels(figure)
    for panel, bias_type in ((explicit, "explicit"), (implicit, "implicit")):
        shown = {(p.x, label) for dots in panel.dots for p, label in zip(dots.points, "AB", strict=True)}
        rows = rows_of(made, "probe_groups", bias_type=bias_type, gender="female", **MAIN)
        assert shown == {(row["binary_share"], row["model"]) for row in rows}
    of_a, of_b = written.dots[0].points
    assert (of_a.x, of_a.low, of_a.high) == (0.1, 0.05, 0.15)
    assert of_b.x != of_b.x, "B has no texts with a test"


def test_a_share_without_an_interval_has_its_point_beside_other_models() -> None:
    """One job in one template has a share and no interval: it is measured."""
    made = content(("A", "B"), 6)
    without = {"binary_share_ci_low": None, "binary_share_ci_high": None}
    rows = [row | without if row["model"] == "A" else row for row in made.parts[0].tables["probe_groups"]]
    probed = replace(made.parts[0], tables={**made.parts[0].tables, "probe_groups": rows})
    figure = first_picture(replace(made, parts=(probed, *made.parts[1:])))
    assert figure is not None
    (of_a, of_b) = panels(figure)[0].dots[0].points
    assert of_a.x == of_a.x
    assert of_a.low != of_a.low
    assert of_b.low == of_b.low


# --- undefined, few and many ---------------------------------------------------------------------------


def test_absent_tables_give_no_figure() -> None:
    made = content(("A",), 4, debiasing_prompts=0)
    bare = tuple(replace(part, tables={}) for part in made.parts)
    assert draw_all(replace(made, parts=bare, between={})) == ()
    assert {"answer", "groups", "workforce", "variance"} == set(named(draw_all(alone(made, "probe"))))


def test_what_is_undefined_is_shown_as_such_and_never_at_zero() -> None:
    figures = named(draw_all(content(("A", "B"), 5, undefined=True)))
    assert {"answer", "srb", "transfer", "words-1"}.isdisjoint(figures)
    for name in ("jobs", "debiasing"):
        measured = [dots for panel in panels(figures[name]) for dots in panel.dots if dots.mark.marker != "d"]
        assert not any(xs(dots) for dots in measured)
        assert "–: not measured" in [entry.text for entry in figures[name].plot.legend]
    assert {bar for panel in panels(figures["groups"]) for bar in panel.bars} == {None}
    assert {text for panel in panels(figures["groups"]) for text in panel.beside} == {"–"}


def test_twenty_models_over_sixty_three_occupations_are_told_apart() -> None:
    labels = [f"model {i}" for i in range(20)]
    made = only(jobs, content(labels, 63, debiasing_prompts=0))
    assert {"jobs", "jobs-2", "jobs-3", "jobs-4"} == set(made)
    looks = {dots.mark for figure in made.values() for dots in panels(figure)[0].dots[1:]}
    assert len(looks) == 20
    assert all(len(panels(figure)[0].labels) == len(items(63)) for figure in made.values())


# --- parts that must not meet --------------------------------------------------------------------------


def test_two_prompt_formats_never_share_a_figure() -> None:
    made = content(("A", "B"), 4)
    part, texts = made.parts
    tables = {
        name: [{**r, "prompt_format": "chat"} if r.get("model", r.get("model_a")) == "B" else r for r in rows]
        for name, rows in part.tables.items()
    }
    models = (model("A"), model("B", "chat"))
    formats = replace(
        made, parts=(replace(part, tables=tables, models=models), replace(texts, models=models))
    )
    for maker, kind_name, name in (
        (jobs, "probe", "jobs"),
        (scatter, "personas", "scatter"),
    ):
        figures = only(maker, formats, kind_name)
        assert [f"raw-{name}", f"chat-{name}"] == list(figures)
        assert "prompt format raw" in figures[f"raw-{name}"].title
    marks = {m.marker for m in panels(only(scatter, formats, "personas")["raw-scatter"])[0].spots}
    assert marks == {"o"}


def test_scores_of_two_vector_models_never_share_a_figure() -> None:
    made = content(("A", "B"), 4)
    rows = [
        {**r, "vectors": "pretrained:x" if r["model"] == "B" else r["vectors"]} for r in rows_of(made, "srb")
    ]
    figures = only(scores, with_table(made, "srb", rows, "personas"), "personas")
    assert [[panel.title for panel in panels(figure)] for figure in figures.values()] == [["A"], ["B"]]
    assert {"srb-vectors-1", "srb-vectors-2"} == set(figures)


def test_two_studies_of_one_measurement_have_names_of_their_own() -> None:
    made = content(("A",), 2, debiasing_prompts=0)
    other = replace(made.parts[0], study="Mattern & al.")
    figures = draw_all(replace(made, parts=(made.parts[0], other, other), between={}))
    names = [figure.name for figure in figures]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[A-Za-z0-9.-]+", name) for name in names)
    assert "gasp-occupations-groups" in names


# --- the drawing -----------------------------------------------------------------------------------------


def a_plot(labels: Sequence[str]) -> Plot:
    """Two panels side by side, one of bars' size, and a square in a band of its own."""
    points = [Point(0.2 + i / 10, 0.1, 0.5 + i / 10) for i in range(len(labels) - 1)]
    dots = Dots(Mark("#0072b2", "o"), [*points, Point(float("nan"))], behind=[[0.3, 0.4]] * len(labels))
    panel = Panel(labels, shares("share", parity=True), [dots], title=labels[0], beside=list(labels))
    axis = Axis("x", -0.2, 0.2, "points", 0, 0.05)
    return Plot([Band([panel, panel], labels[0]), Band([Square(labels[0], axis, axis, {})])], "c")


def test_marks_ends_and_ticks_are_drawn_where_the_plot_has_them() -> None:
    with rules():
        figure = draw(a_plot(["a", "b", "c"]))
    axes = figure.get_axes()[0]
    (marks,) = [line for line in axes.lines if line.get_marker() == "o"]
    assert np.allclose(marks.get_xydata(), [(0.2, 0), (0.3, 1), (np.nan, 2)], equal_nan=True)
    (intervals,) = axes.collections
    assert [segment[:, 0].tolist() for segment in intervals.get_segments()[:2]] == [[0.1, 0.5], [0.1, 0.6]]
    assert [line.get_xdata().tolist() for line in axes.lines if line.get_marker() == "|"] == [[0.3, 0.4]] * 3
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a", "b", "c"]
    assert not any(label.get_visible() for label in figure.get_axes()[1].get_yticklabels()), "said once"
    assert "–" in [text.get_text() for text in axes.texts]
    assert figure.get_size_inches()[0] == WIDTH
    assert [shares("s").shown(value) for value in (0, 0.25, 1)] == ["0%", "25%", "100%"]
    assert [Axis("x", -1, 1, "points").shown(value) for value in (-0.1, 0, 0.25)] == ["−10", "0", "+25"]


HOSTILE = (
    "</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>&amp;\"'",
    r"$\frac{1$ \input{/etc/passwd}", "\u202eesrun\u2066", "\x1b[31mred\x07\x00", "\ud800lone",
    "日本語の看護師", "w" * 60, "_hidden label", "long " * 20_000, "a" + "\u0301" * 90, "line\nbreak\ttab",
)  # fmt: skip


def test_hostile_labels_are_only_shown_and_stay_on_the_sheet() -> None:
    figures = draw_all(content(HOSTILE[8:10], len(HOSTILE), debiasing_prompts=0, names=HOSTILE))
    assert len(figures) > 8
    for figure in figures:
        for said in (figure.plot.caption, figure.plot.alt, figure.title):
            assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x1f\x7f\ud800-\udfff]", said)
            assert len(said) < 6_000
    for figure in (a for a in figures if a.name in ("jobs", "workforce", "gaps-explicit")):
        root = ElementTree.fromstring(figure.svg)
        assert not {"script", "a", "image", "foreignObject"} & {e.tag.rpartition("}")[2] for e in root.iter()}
        assert not any(key.lower().startswith("on") for element in root.iter() for key in element.attrib)
        with rules():
            drawn = draw(figure.plot)
            drawn.draw_without_rendering()
            left, right = (getattr(drawn.get_tightbbox(), end) for end in ("x0", "x1"))
        assert -0.1 < left < right < WIDTH + 0.1, figure.name
    assert b"%PDF" in named(figures)["jobs"].pdf()


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("\u202eab", r"\u202eab"),
        ("a\x1b[0m", r"a\x1b[0m"),
        ("a\nb", "a b"),
        ("نرس 漢", "نرس 漢"),
        (r"$\frac{1$", r"$\frac{1$"),
        (f"meta-llama/{'x' * 60}-Instruct", f"meta-llama/{'x' * 12}…{'x' * 15}-Instruct"),
    ],
)
def test_foreign_names_stand_short_on_one_line_without_hidden_characters(given: str, shown: str) -> None:
    assert cut(given) == shown


def digest_of_a_few() -> str:
    digest = hashlib.sha256()
    for figure in draw_all(content(("A",), 2, debiasing_prompts=1))[:3]:
        digest.update(figure.svg + figure.png(40) + figure.pdf())
    return digest.hexdigest()


SECOND = """
import sys
sys.path[:0] = {folders!r}
from test_figures import digest_of_a_few
print(digest_of_a_few())
assert "matplotlib.pyplot" not in sys.modules
"""


@pytest.mark.process
def test_the_same_tables_give_the_same_bytes_under_another_hash_seed() -> None:
    environment = {
        **os.environ,
        "PYTHONHASHSEED": "77",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    }
    code = SECOND.format(folders=[str(TESTS / "report"), str(TESTS)])
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert digest_of_a_few() == run.stdout.strip()


def test_the_last_bits_of_a_layout_change_no_id(monkeypatch: pytest.MonkeyPatch) -> None:
    off_by = [0.0, 1e-16]  # as another run of the layout's solver is

    def moved(plot: Plot, width: float = WIDTH) -> Any:
        figure = draw(plot, width)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        for axes in figure.axes:
            axes.set_position([place + off_by[0] for place in axes.get_position().bounds])
        return figure

    monkeypatch.setattr(drawing, "draw", moved)
    first = only(groups, content(("A",), 2))["groups"].svg
    off_by.pop(0)
    used = re.findall(rb"url\(#([^)]+)\)", first)
    assert used == re.findall(rb"url\(#([^)]+)\)", only(groups, content(("A",), 2))["groups"].svg)
    assert {*used} >= {*re.findall(rb'<clipPath id="([^"]+)"', first)}


def test_drawing_leaves_the_users_settings_alone() -> None:
    import matplotlib

    before, figure = dict(matplotlib.rcParams), only(groups, content(("A",), 2))["groups"]
    with matplotlib.rc_context({"font.size": 30, "text.usetex": True, "svg.fonttype": "path"}):
        assert figure.svg == only(groups, content(("A",), 2))["groups"].svg
        assert matplotlib.rcParams["font.size"] == 30
    assert before == dict(matplotlib.rcParams)


def test_files_are_what_is_asked() -> None:
    figures = [*only(groups, content(("A",), 2)).values()]
    files = files_of(figures, pdf=True)
    assert ["groups.svg", "groups.png", "groups.pdf"] == list(files)
    assert files["groups.png"].startswith(b"\x89PNG")
    assert files["groups.pdf"].startswith(b"%PDF")
    assert not re.search(rb"CreationDate|/Type3", files["groups.pdf"])
    assert b"<dc:date>" not in files["groups.svg"]
    assert ["groups.svg", "groups.png"] == list(files_of(figures, pdf=False))
