"""Which number answers a question: she of she and he, what they has beside it, and gaps that are clear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from fakes import finding_rules
from fakes.findings_rows import (
    GROUPS,
    MENS,
    SHARES,
    WOMENS,
    Rows,
    asked,
    content,
    contrast_row,
    group_rows,
    of_groups,
    pair,
    probe_part,
)
from fakes.findings_rows import row as a_row

from biaskit.measures.probe.printing.document import Frame, probe_document
from biaskit.report.content import Content
from biaskit.report.findings import findings
from biaskit.report.findings.groups import moved
from biaskit.report.findings.sentence import beside
from biaskit.stats.contrast import Contrast
from biaskit.stats.verdict import Rule

Row = dict[str, Any]
OWN = ("elder", "younger", "ageless", "other")
OF_TWO, OF_ALL = Rule(), Rule(binary=False)
"""As a run asks for it by `conclusion.share = of-all`."""


def texts_of(made: Content, question: str) -> list[str]:
    return [one.text for one in finding_rules.hold(made) if one.question == question]


def of_all_words(row: Row) -> Row:
    """The row of the share of all target words beside that of the part of two."""
    names = {name: row[name].replace("binary_", "") for name in ("quantity", "family")}
    return {**row, **names}


def about(estimate: float, half: float = 0.05) -> tuple[float, float]:
    return estimate - half, estimate + half


# --- the part of two leads, unless a run asks for the share of all target words -------------------------


def both_numbers(of_two: float, of_all: float, diverse: float, rule: Rule = OF_TWO) -> Content:
    """A page whose three questions have rows of the part of she, of women's share of all, and of they's.

    Each differs between groups of jobs, models, and with a debiasing prompt, by its number ± 5 points.
    """
    tests: Rows = []
    between: Rows = []
    groups = {"group_a": WOMENS, "group_b": MENS}
    for name, number in (("", of_two), ("of all", of_all), ("diverse", diverse)):
        gender = "diverse" if name == "diverse" else "female"
        rows = [
            contrast_row("probe/share/crossed/groups", number, about(number), gender=gender, **groups),
            contrast_row(
                "probe/group_gap/crossed/debiasing",
                number,
                about(number),
                gender=gender,
                debiasing_a="1",
                **groups,
            ),
            pair("n", "m", number, about(number), gender=gender),
        ]
        rows = [of_all_words(row) for row in rows] if name == "of all" else rows
        tests += rows[:2]
        between += rows[2:]
    shares = [row for label in "mn" for row in group_rows(SHARES, model=label)]
    part = probe_part({"probe_groups": shares, "tests": tests}, "m", "n", rule=rule)
    return content(part, between={"tests": between})


def test_the_part_of_two_leads_every_question() -> None:
    made = both_numbers(0.2, 0.4, 0.3)
    rows = {(row.quantity, row.gender, row.contrast): row for row in made.every_test}
    answers = {
        (quantity, contrast): row for (quantity, gender, contrast), row in rows.items() if row.question
    }
    assert {name: row.question for name, row in answers.items()} == {
        ("binary_share", "groups"): "say",
        ("binary_share", "models"): "models",
        ("binary_group_gap", "debiasing"): "help",
    }
    assert {row.verdict for row in answers.values()} == {"higher"}
    assert {row.verdict for row in rows.values() if not row.question} == {"shown"}
    said = [one.text for one in finding_rules.hold(made)]
    assert [text for text in said if "40 points" in text or "30 points" in text] == []
    for question, n in (("say", 1), ("models", 1), ("help", 2)):
        texts = [text for text in texts_of(made, question) if "m says she in" not in text]
        own = [text for text in texts if "n says" not in text]
        assert len(own) == n
        assert all("of she and he" in text for text in own)


def test_of_all_leads_with_the_share_of_all_target_words_again() -> None:
    made = both_numbers(0.2, 0.4, 0.3, OF_ALL)
    leads = {(row.quantity, row.contrast): row.question for row in made.every_test if row.question}
    assert leads == {
        ("share", "groups"): "say",
        ("share", "models"): "models",
        ("group_gap", "debiasing"): "help",
    }
    said = [one.text for one in finding_rules.hold(made)]
    assert [text for text in said if "of she and he" in text or "they" in text or "20 points" in text] == []
    assert "40 points more often for jobs mostly held by women than for men’s [" in texts_of(made, "say")[0]
    assert "40 points more for n than for m [" in texts_of(made, "models")[0]
    assert "by 40 points [" in texts_of(made, "help")[0]


@pytest.mark.parametrize(("rule", "weak"), [(Rule(), True), (OF_ALL, False)])
def test_evidence_is_weak_by_what_the_number_is_of(rule: Rule, weak: bool) -> None:
    rows = group_rows(SHARES, coverage=0.6)
    for row in rows:
        row["binary_coverage"] = None if row["binary_coverage"] is None else 0.04
    test = of_groups(0.26, (0.18, 0.34))
    tests = [test, of_all_words(test)]
    made = content(probe_part({"probe_groups": rows, "tests": tests}, rule=rule))
    (found,) = (one for one in finding_rules.hold(made) if one.question == "say")
    assert found.weak is weak
    assert found.text.startswith("m says " if weak else "Asked directly, m says ")
    assert ("; weak evidence: asked directly" in found.text) is weak


def test_they_alone_moving_gives_no_direction() -> None:
    """Of she and he nothing differs; they has 30 points more for women's jobs, in n, and with the prompt."""
    made = both_numbers(0.0, -0.2, 0.3)
    assert not finding_rules.false_directions(finding_rules.hold(made))
    assert {row.verdict for row in made.every_test} == {"no-clear-difference", "shown"}
    for question in ("say", "models", "help"):
        assert any(
            "no clear difference" in text or "not clearly different" in text or "no clear change" in text
            for text in texts_of(made, question)
        ), question
    # The share of all target words names each of them.
    moved_by_they = both_numbers(0.0, -0.2, 0.3, OF_ALL)
    assert {one.question for one in finding_rules.hold(moved_by_they) if one.verdict == "lower"} == {
        *("say", "models", "help")
    }


def test_they_stands_beside_the_part_of_two_with_its_own_shares() -> None:
    """What a page is silent about it must not hide: they has 10 % in women's jobs and 40 % in men's."""
    shares = {WOMENS: (0.45, 0.45, 0.1), MENS: (0.3, 0.3, 0.4)}
    even = of_groups(0.0, about(0.0))
    made = content(probe_part({"probe_groups": group_rows(shares), "tests": [even]}))
    (text,) = texts_of(made, "say")
    assert text.endswith("[−5 to 5 points]; it says they in 10 and 40 %.")
    under = group_rows({WOMENS: (0.2, 0.2, 0.6), MENS: (0.2, 0.2, 0.6)}, debiasing_id=1)
    change = contrast_row(
        "probe/group_gap/crossed/debiasing", 0.0, about(0.0), debiasing_a="1", group_a=WOMENS, group_b=MENS
    )
    tables = {"probe_groups": [*group_rows(shares), *under], "tests": [even, change]}
    (text,) = texts_of(content(probe_part(tables)), "help")
    assert text.startswith("Asked directly, of she and he, no clear change of m’s gap between groups of jobs")
    assert text.endswith("; they in 25 % without, 60 % with it.")


def test_they_under_a_dialogue_is_that_of_the_dialogue() -> None:
    """It says they in 30 and 37 % without; under a debiasing prompt in the dialogue it would say more."""
    shares = {WOMENS: (0.4, 0.3, 0.3), MENS: (0.2, 0.42, 0.38)}
    spoken = group_rows({WOMENS: (0.2, 0.2, 0.6), MENS: (0.2, 0.2, 0.6)}, context="dialogue")
    with_prompt = [{**row, "debiasing_id": 1, "share": 0.9} for row in spoken]
    change = contrast_row(
        "probe/share/crossed/contexts", 0.2, about(0.2), context="dialogue-plain", group_a=MENS, group_b=MENS
    )
    tables = {"probe_groups": [*group_rows(shares), *spoken, *with_prompt], "tests": [change]}
    text, _ = texts_of(content(probe_part(tables)), "help")
    assert text == (
        "Asked directly, of she and he, a dialogue before it makes m say she 20 points more often for jobs "
        "mostly held by men [15 to 25]; they in 34 % without, 60 % with it."
    )


def test_a_difference_of_asymmetry_is_of_two_as_the_shares_are() -> None:
    scope = {"gender": None, "group_a": MENS, "group_b": WOMENS}
    more = contrast_row("probe/asymmetry/crossed/groups", 0.2, about(0.2), **scope)
    less = of_all_words({**more, "estimate": -0.2, "ci_low": -0.25, "ci_high": -0.15})
    lead = of_groups(0.26, (0.18, 0.34))
    tests = [lead, of_all_words(lead), more, less]
    made = [
        content(probe_part({"probe_groups": group_rows(SHARES), "tests": tests}, rule=rule))
        for rule in (Rule(), OF_ALL)
    ]
    of_two, of_all = (texts_of(one, "say")[1] for one in made)
    assert of_two == (
        "Asked directly, of she and he, m says he for men’s jobs 20 points more often than she for women’s "
        "[15 to 25]."
    )
    assert of_all.startswith("Asked directly, m says he for men’s jobs 20 points less often than")


@pytest.mark.parametrize(
    ("two", "groups", "line"),
    [
        (("female", "male"), GROUPS, ("  F of M and F", "", "71.0 [61.0–81.0]", "", "")),
        ((), GROUPS, None),  # as in the papers' tables, and of all target words
        (("elder", "younger"), OWN[:2], ("  elder of younger and elder", "71.0 [61.0–81.0]", "", "")),
    ],
)
def test_a_runs_table_has_a_line_of_two_below_the_shares_of_all(
    two: tuple[str, ...], groups: tuple[str, ...], line: tuple[str, ...] | None
) -> None:
    rows = group_rows({WOMENS: (0.5, 0.2, 0.3)})
    rows[0] |= {"binary_share": 0.71, "binary_share_ci_low": 0.61, "binary_share_ci_high": 0.81}
    if groups != GROUPS:
        rows = [{**row, "gender": gender} for row, gender in zip(rows[:2], groups, strict=True)]
    frame = Frame(groups, 0.01, {}, {"explicit": "Explicit"}, two=two)
    (table,) = probe_document(frame, {"probe_groups": rows}, [], "").tables
    found = {str(cells[0]): cells for cells in table.rows}
    assert ["m", "  95 % interval"] == [*found][:2]
    assert [*found.values()][2:] == ([line] if line else [])


# --- a study's own groups -------------------------------------------------------------------------------


def own_study(tests: Sequence[Row], n_groups: int, labels: str = "m", between: Sequence[Row] = ()) -> Content:
    """A page of a study that contrasts elder and younger, and has so many groups in all."""
    rows = []
    for label in labels:
        for name, three in (("blue", (0.6, 0.3, 0.1)), ("green", (0.3, 0.5, 0.2))):
            made = group_rows({name: three}, model=label)
            made[2]["share"] += 0.15 * (label == "n")
            made.append({**made[2], "share": 0.07})
            rows += [{**row, "gender": gender} for row, gender in zip(made, OWN, strict=True)][:n_groups]
    part = probe_part({"probe_groups": rows, "tests": [*tests]}, *labels, study="own", rule=Rule(("elder",)))
    part = replace(part, groups=OWN[:n_groups], contrast=OWN[:2])
    return content(part, between={"tests": [*between]})


def own_test(contrast: str, estimate: float, **more: Any) -> Row:
    scope = {"group_a": "blue", "group_b": "green", "gender": "elder", "margin": 0.05, "equivalent": False}
    return contrast_row(f"probe/binary_{contrast}", estimate, about(estimate), **{**scope, **more})


@pytest.mark.parametrize(
    ("n_groups", "say", "models"),
    [
        (2, "", ""),
        (3, "; it says “ageless” in 10 and 20 %", "; “ageless” in 25 and 10 %"),  # of n, then of m
        (
            4,
            "; it says “ageless” in 10 and 20 % and “other” in 7 %",
            "; “ageless” in 25 and 10 % and “other” in 7 %",
        ),
    ],
)
def test_what_belongs_to_neither_of_two_own_groups_has_its_name(n_groups: int, say: str, models: str) -> None:
    test = own_test("share/crossed/groups", 0.3)
    side = own_test("share/crossed/models", 0.2, model_a="n", model_b="m", group_b="blue")
    made = own_study([test], n_groups, "mn", [side])
    first, *_ = texts_of(made, "say")
    assert first.startswith(
        "Asked directly, of “elder” and “younger”, m says “elder” 30 points more often for"
    )
    assert first.endswith(f"]{say}.")
    (found,) = texts_of(made, "models")
    assert found.startswith(
        "Asked directly, of “elder” and “younger”, the share of “elder” for the group “blue” is"
    )
    assert found.endswith(f"]{models}.")


def test_what_belongs_to_neither_is_said_of_debiasing_prompts_too() -> None:
    tests = [
        own_test("share/crossed/groups", 0.3),
        own_test("group_gap/crossed/debiasing", 0.2, debiasing_a="1"),
    ]
    text, *_ = texts_of(own_study(tests, 3), "help")
    assert text.startswith("Asked directly, of “elder” and “younger”, debiasing prompt 1 changes m’s gap")
    assert ", towards “elder” more for “blue”" in text


def test_nothing_stands_beside_where_nothing_belongs_to_neither() -> None:
    assert beside("it says ", {}) == ""
    assert beside("", {"diverse": "10 and 16 %"}) == "; they in 10 and 16 %"
    both = beside("it says ", {"diverse": "10 %", "ageless": "1 %"})
    assert both == "; it says they in 10 % and “ageless” in 1 %"


# --- turns, narrows, widens: only where gaps are clear ----------------------------------------------------


def gap(estimate: float | None, half: float = 0.01, **more: Any) -> Contrast:
    return Contrast.of(of_groups(estimate, None if estimate is None else about(estimate, half), **more))


@pytest.mark.parametrize(
    ("before", "after", "verb"),
    [
        (gap(0.3), gap(-0.3), "turns"),
        (gap(-0.3), gap(0.1), "turns"),
        (gap(0.3), gap(0.1), "narrows"),
        (gap(-0.3), gap(-0.1), "narrows"),
        (gap(0.3), gap(0.1, 0.2), "narrows"),
        (gap(0.1), gap(0.3), "widens"),
        (gap(-0.1), gap(-0.3), "widens"),
        (gap(0.1), gap(0.3, 0.4), "widens"),
        # On the other side by chance: nobody knows that it turned.
        (gap(0.3), gap(-0.1, 0.2), "changes"),
        (gap(-0.3), gap(0.1, 0.2), "changes"),
        # It is not known that there was a gap.
        (gap(0.02, 0.1), gap(0.3), "changes"),
        (gap(-0.02, 0.1), gap(0.3), "changes"),
        (gap(0.02, 0.1), gap(-0.3), "changes"),
        (gap(0.1, 0.2), gap(0.01, 0.2), "changes"),
        (None, gap(0.3), "changes"),
        (gap(0.3), None, "changes"),
        (gap(0.3), gap(None), "changes"),
        (gap(None), gap(0.3), "changes"),
        # The page says that the gap without is unclear, whatever its own 95 % interval.
        (gap(0.3, verdict="no-clear-difference"), gap(0.1), "changes"),
        # Closed: a hair on the other side, and within its margin.
        (gap(0.3), gap(-0.01, 0.02, equivalent=True), "narrows"),
    ],
)
def test_only_clear_gaps_turn_narrow_or_widen(
    before: Contrast | None, after: Contrast | None, verb: str
) -> None:
    assert moved(before, after) == verb


MODELS_SAY: Mapping[str, tuple[tuple[float, float], tuple[float, float], str]] = {
    # gap of A and of B, each with half its interval; what is said of B − A
    "wider": ((0.1, 0.02), (0.4, 0.02), "larger"),
    "wider, of men": ((-0.1, 0.02), (-0.4, 0.02), "larger"),
    "narrower": ((0.4, 0.02), (0.1, 0.02), "smaller"),
    # Less than a gap of −20 is a larger one, and more than it a smaller one.
    "narrower, of men": ((-0.4, 0.02), (-0.1, 0.2), "smaller"),
    "turned": ((0.1, 0.02), (-0.2, 0.02), "further towards men’s jobs"),
    "opened": ((0.02, 0.1), (0.32, 0.02), "further towards women’s jobs"),
    "closed": ((0.28, 0.02), (-0.02, 0.1), "further towards men’s jobs"),
}


def two_models(tests: Sequence[Row], row: Row, labels: Sequence[str] = "AB", **more: Any) -> Content:
    shares = [row for label in labels for row in group_rows(SHARES, model=label, **more)]
    return content(probe_part({"probe_groups": shares, "tests": [*tests]}, *labels), between={"tests": [row]})


def gap_of_models(estimate: float, labels: Sequence[str] = "AB", **more: Any) -> Row:
    sides = {"model_a": labels[1], "model_b": labels[0], "group_a": WOMENS, "group_b": MENS}
    verdict = {"margin": 0.05, "equivalent": False}
    return contrast_row(
        "probe/group_gap/crossed/models", estimate, about(estimate), **{**sides, **verdict, **more}
    )


@pytest.mark.parametrize("name", MODELS_SAY)
def test_a_gap_of_models_is_larger_or_smaller_only_where_gaps_are_clear(name: str) -> None:
    of_a, of_b, more = MODELS_SAY[name]
    tests = [
        of_groups(estimate, about(estimate, half), model_a=label, model_b=label)
        for label, (estimate, half) in zip("AB", (of_a, of_b), strict=True)
    ]
    (text,) = texts_of(two_models(tests, gap_of_models(of_b[0] - of_a[0])), "models")
    between, than = ("", "than") if "further" in more else (" between women’s and men’s jobs", "than for")
    assert text == (
        f"Asked directly, of she and he, the gap{between} in saying she is 30 points {more} for B {than} A "
        "[25 to 35]; they in 13 %."
    )


@pytest.mark.parametrize("labels", [("an A of four", "a B of four"), ("A", "w" * 40)])
def test_a_gap_of_models_with_long_names_keeps_its_direction(labels: tuple[str, str]) -> None:
    """Templates that are tried last are short, and must not lose which way."""
    implicit = {"bias_type": "implicit"}
    tests = [of_groups(0.02, about(0.02, 0.1), model_a=label, model_b=label, **implicit) for label in labels]
    row = gap_of_models(-0.3, labels, **implicit)
    (text,) = texts_of(two_models(tests, row, labels, **implicit), "models")
    assert "the gap in saying she is 30 points further towards men’s jobs for" in text


def test_a_change_of_a_gap_with_a_long_name_keeps_its_direction() -> None:
    name = "the model of many words"
    sides = {"model_a": name, "model_b": name, "bias_type": "implicit"}
    before = of_groups(0.02, about(0.02, 0.1), **sides)
    under = of_groups(0.3, about(0.3), **sides, debiasing_a="1", debiasing_b="1")
    groups = {"group_a": WOMENS, "group_b": MENS}
    change = contrast_row(
        "probe/group_gap/crossed/debiasing", 0.28, about(0.28), **sides, **groups, debiasing_a="1"
    )
    rows = group_rows(SHARES, model=name, bias_type="implicit")
    made = content(probe_part({"probe_groups": rows, "tests": [before, under, change]}, name))
    text, *_ = texts_of(made, "help")
    assert text.startswith("Completing a sentence, of she and he, debiasing prompt 1 changes")
    assert ", towards she more for women’s jobs" in text


PAIRS: Mapping[str, tuple[tuple[float, float], tuple[float, float], str]] = {
    "follows them less": ((0.5, 0.05), (0.1, 0.05), "is 40 points smaller for B than for A [35 to 45]."),
    "follows them more": ((0.1, 0.05), (0.5, 0.05), "is 40 points larger for B than for A [35 to 45]."),
    "opened": (
        (0.02, 0.1),
        (0.42, 0.05),
        "is 40 points further towards stereotypes for B than A [35 to 45].",
    ),
    "closed": ((0.38, 0.05), (-0.02, 0.1), "is 40 points further from stereotypes for B than A [35 to 45]."),
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_gap_of_pairs_is_held_against_the_models_own(name: str) -> None:
    """The row of two models has no groups; a model's own row is of all stereotypes."""
    of_a, of_b, words = PAIRS[name]
    own: Rows = []
    for label, (estimate, half) in zip("AB", (of_a, of_b), strict=True):
        scope = {"model_a": label, "model_b": label, "gender": "female", "group_a": "all", "group_b": "all"}
        own.append(contrast_row("pairs/share/crossed/pairs", estimate, about(estimate, half), **scope))
    change = of_b[0] - of_a[0]
    sides = {"model_a": "B", "model_b": "A", "gender": "female"}
    row = contrast_row("pairs/group_gap/crossed/models", change, about(change), **sides)
    groups = {"language": "all", "stereotype": "all", "n_pairs": 9, "n_per_token_differs": 0}
    rows = [a_row("pair_groups", model=label, **groups) for label in "AB"]
    part = replace(probe_part({"pair_groups": rows, "tests": own}, "A", "B"), measurement="pairs")
    made = content(replace(part, groups=(), contrast=("", "")), between={"tests": [row]})
    text = next(one.text for one in findings(made) if one.question == "models")
    assert (
        text
        == f"Of two sentences, the gap between stereotypes in the feminine sentence’s probability {words}"
    )


def test_unclear_gaps_of_models_are_counted() -> None:
    """A gap has a margin too, 10 points unless a study sets one: it can be about the same, and unclear."""
    names = {"model_a": "B", "model_b": "A", "group_a": WOMENS, "group_b": MENS, "margin": 0.05}
    family = "probe/group_gap/crossed/models"
    unclear = contrast_row(family, 0.02, about(0.02, 0.1), **names, equivalent=False)
    inside = {"ci90_low": -0.02, "ci90_high": 0.04, "equivalent": True}
    same = contrast_row(family, 0.01, about(0.01, 0.04), **names, **inside)
    equal = pair("B", "A", 0.01, about(0.01, 0.04), **inside)
    shares = [row for label in "AB" for row in group_rows(SHARES, model=label)]
    part = probe_part({"probe_groups": shares, "tests": []}, "A", "B")
    wider = {**same, "margin": 0.1}
    for gap_row, counted in (
        (
            wider,
            "all 2 comparisons between B and A are about the same (within ±5 points and gaps ±10 points).",
        ),
        (
            unclear,
            "of 2 comparisons between B and A, 1 is about the same (within ±5 points) and 1 is unclear"
            " (gap).",
        ),
        (same, "all 2 comparisons between B and A are about the same (within ±5 points)."),
    ):
        made = content(part, between={"tests": [equal, gap_row]})
        assert f"Of she and he, {counted}" in texts_of(made, "models")


def test_a_page_of_shares_alone_is_read_as_before() -> None:
    """A row of all target words leads where a run made none of two, as a pair of sentences does."""
    test = of_all_words(of_groups(0.26, (0.18, 0.34)))
    assert {row.question for row in asked(test).every_test} == {"say"}
