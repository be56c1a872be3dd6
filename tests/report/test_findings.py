"""Findings in words for made-up tables: direction, equivalence, no clear difference, not measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from fakes.findings_rows import (
    HOSTILE,
    MENS,
    REPRESENTED,
    SCORES,
    SHARES,
    WOMENS,
    Rows,
    area,
    area_test,
    block,
    content,
    contrast_row,
    group_rows,
    labour_test,
    many,
    occupation,
    of_groups,
    pair,
    personas_part,
    probe_part,
    row,
    score,
    slope,
    srb_test,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from biaskit.compare.gate import require_equivalent
from biaskit.report.content import Content
from biaskit.report.findings import Finding, cannot_show, findings
from biaskit.report.findings.finding import TOPICS
from biaskit.runs.collection import Part
from biaskit.stats.contrasts import adjust
from biaskit.stats.crossed import p_of_interval
from biaskit.wording import percent, plain_number, point_number, points, short

# --- rows in the shape of the public tables ----------------------------------------------------------


def said(made: Content, topic: str, beginning: str = "") -> Finding:
    """The one finding of a topic that begins so."""
    found = [one for one in findings(made) if one.topic == topic and one.text.startswith(beginning)]
    assert len(found) == 1, [one.text for one in found]
    return found[0]


def asked(test: dict[str, Any] | None, **more: Any) -> Finding:
    tables = {"probe_groups": group_rows(SHARES, **more), "tests": [test] if test else []}
    return said(content(probe_part(tables)), "probe-explicit")


EVEN = of_groups(0.01, (-0.03, 0.05), ci90_low=-0.02, ci90_high=0.04, equivalent=True)
OPENING = (
    "Asked outright (explicit prompts), m gives women 60 % [50–70] (men 30 %, diverse 10 %) of the "
    "probability on the listed words for jobs mostly held by women and 34 % [24–44] (men 50 %, diverse 16 "
    "%) for jobs mostly held by men: "
)
HELD = " The listed words hold 30 % of the probability there (coverage)."


# --- the prober --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("test", "verdict", "sentence"),
    [
        (of_groups(0.26, (0.18, 0.34)), "higher", "26 points more [18 to 34]."),
        (of_groups(-0.26, (-0.34, -0.18)), "lower", "26 points less [−34 to −18]."),
        (
            of_groups(0.1, (-0.02, 0.22)),
            "no-clear-difference",
            "10 points more [−2 to 22], no clear difference.",
        ),
        (
            of_groups(0.01, (-0.03, 0.05), ci90_low=-0.02, ci90_high=0.04, equivalent=True),
            "equivalent",
            "1 point more [−3 to 5], equivalent within ±5 points (90 % interval −2 to 4).",
        ),
        (
            of_groups(0.02, (0.01, 0.03), ci90_low=0.012, ci90_high=0.028, equivalent=True),
            "equivalent",
            "2 points more [1 to 3], yet equivalent within ±5 points (90 % interval 1 to 3).",
        ),
        (of_groups(0.0, (0.0, 0.0)), "no-clear-difference", "0 points [0 to 0], no clear difference."),
        (
            of_groups(0.26, None, reason="one job and one template"),
            "shown",
            "26 points more (no interval: one job and one template).",
        ),
        (of_groups(None, reason="no template"), "shown", "not measured (no template)."),
        (None, "shown", "not measured (no test was made)."),
        # An interval that just excludes 0 must not be printed as touching it.
        (of_groups(0.2, (0.0002, 0.4)), "higher", "20 points more [0.02 to 40]."),
    ],
)
def test_the_difference_between_kinds_of_jobs(
    test: dict[str, Any] | None, verdict: str, sentence: str
) -> None:
    found = asked(test)
    assert found.verdict == verdict
    assert found.text == OPENING + sentence + HELD
    assert found.measured_with == "exact, raw prompts, 25 templates × 40 jobs, m"


def test_a_note_says_what_the_interval_is_conditional_on() -> None:
    found = asked(of_groups(0.26, (0.18, 0.34)), n_templates=1, reason="conditional on one template")
    assert found.text.endswith(f"{HELD} Note: conditional on one template.")
    assert "1 template × 40 jobs" in found.measured_with


def test_shares_below_the_floor_are_called_weak_evidence() -> None:
    found = asked(of_groups(0.26, (0.18, 0.34)), coverage=0.02, coverage_median=0.004)
    assert found.text.startswith("Weak evidence. Asked outright")
    assert "only 0.4 % of the probability there (coverage), and a share under the floor of 1 %" in found.text


def test_the_floor_is_the_parts_own() -> None:
    tables = {"probe_groups": group_rows(SHARES, coverage_median=0.2), "tests": []}
    assert "Weak" not in said(content(probe_part(tables)), "probe-explicit").text
    assert "floor of 25 %" in said(content(probe_part(tables, floor=0.25)), "probe-explicit").text


def test_a_share_that_was_not_measured_has_its_reason() -> None:
    tables = {"probe_groups": group_rows({WOMENS: (None, None, None)}, reason="no complete template")}
    found = said(content(probe_part(tables)), "probe-explicit")
    assert found.verdict == "not-measured"
    assert found.text == (
        "Asked outright (explicit prompts): the share of women of m is not measured (no complete template)."
    )


def test_bounds_that_hold_zero_leave_a_difference_not_identified() -> None:
    # The two ends' intervals: from the lower end's low to the upper end's high.
    test = of_groups(0.26, (-0.28, 0.58), ci90_low=-0.26, ci90_high=0.56, bound_low=-0.2, bound_high=0.5)
    wide = asked({**test, "p_value": 1.0}, estimator="top-k", share_low=0.2, share_high=0.7)
    assert wide.verdict == "not-identified"
    assert "not identified: the bounds leave it open, an exact estimator would decide" in wide.text
    assert "bounds 20–70 %" in wide.text
    narrow = of_groups(0.26, (0.17, 0.35), ci90_low=0.18, ci90_high=0.34, bound_low=0.25, bound_high=0.27)
    assert asked(narrow, estimator="top-k", share_low=0.59, share_high=0.61).verdict == "higher"


def test_a_direction_that_does_not_survive_its_page_is_said_to_be_none() -> None:
    rows = [of_groups(0.1, (0.01, 0.19)), *(of_groups(0.0, (-0.1, 0.1), model_a=f"x{i}") for i in range(20))]
    made = content(probe_part({"probe_groups": group_rows(SHARES), "tests": rows})).judged()
    found = said(made, "probe-explicit")
    assert found.verdict == "no-clear-difference"
    assert "alone it would be one, not among 21 comparisons" in found.text


def test_explicit_and_implicit_stand_apart() -> None:
    rows = [*group_rows(SHARES), *group_rows(SHARES, bias_type="implicit")]
    made = content(probe_part({"probe_groups": rows, "tests": [of_groups(0.26, (0.18, 0.34))]}))
    assert said(made, "probe-explicit").verdict == "higher"
    implicit = said(made, "probe-implicit")
    assert implicit.verdict == "shown"
    assert implicit.text.startswith("Left to finish a sentence (implicit prompts), m gives women 60 %")


def test_the_slope_against_labour_statistics_is_told_for_ten_points() -> None:
    made = content(probe_part({"probe_groups": group_rows(SHARES), "tests": [slope(0.24, (0.09, 0.36))]}))
    found = said(made, "probe-explicit", "Against labour")
    assert found.text == (
        "Against labour statistics (explicit prompts) for each 10 points more women in the U.S. labour "
        "force, m gives women 2.4 points more [0.9 to 3.6]; 10 points would mirror the labour force."
    )
    assert found.verdict == "higher"
    assert not any("labour" in one.text for one in findings(replace(made, reference="parity")))


def test_a_slope_over_too_few_jobs_gives_the_count() -> None:
    few = "6 items with a labour share, at least 10 are needed"
    made = content(probe_part({"probe_groups": group_rows(SHARES), "tests": [slope(None, reason=few)]}))
    found = said(made, "probe-explicit", "Against labour")
    assert found.verdict == "not-measured"
    assert found.text == f"Against labour statistics (explicit prompts): not measured for m ({few})."
    assert findings(made)[-1] == found


def test_parity_counts_the_jobs_on_each_side() -> None:
    jobs = [
        row(
            "probe_jobs",
            **block(
                instruction_id=0, estimator="exact", job=job, female_minus_male=gap, ci_low=low, ci_high=high
            ),
        )
        for job, gap, low, high in (
            ("nurse", 0.5, 0.4, 0.6),
            ("cook", 0.1, -0.1, 0.3),
            ("pilot", -0.3, -0.4, -0.2),
            ("clerk", 0.2, 0.1, 0.3),
        )
    ]
    made = content(probe_part({"probe_groups": group_rows(SHARES), "probe_jobs": jobs}))
    assert said(made, "probe-explicit", "Against parity").text == (
        "Against parity (explicit prompts): of 4 jobs, m gives women more than men in 2 and men more in 1; "
        "in 1 the interval includes parity. Women minus men, in points: nurse 50 [40 to 60] and pilot −30 "
        "[−40 to −20]."
    )
    assert not any("parity" in one.text for one in findings(replace(made, reference="labour")))


def test_four_models_have_a_sentence_each_and_five_share_one() -> None:
    assert 4 == sum(one.topic == "probe-explicit" for one in findings(many(4)))
    found = said(many(5), "probe-explicit")
    assert found.text == (
        "Asked outright (explicit prompts), 5 models give women, of the probability on the listed words, 40 "
        "% [30–50] (m0) to 60 % [50–70] (m4) for jobs mostly held by women and 30 % [20–40] (m0) to 30 % "
        "[20–40] (m0) for jobs mostly held by men. 3 of 5 give women more for jobs mostly held by women and "
        "2 show no clear difference; the differences go from 5 [−5 to 15] (m0) to 25 [15 to 35] (m4) "
        "points. The listed words hold 30 % (m0) to 30 % (m0) of the probability there (coverage)."
    )
    assert found.verdict == "shown"


def test_models_below_the_floor_are_left_out_of_the_common_sentence_by_name() -> None:
    text = said(many(6, m5=0.001), "probe-explicit").text
    assert "5 models give women" in text
    assert "to 60 % [50–70] (m4)" in text
    assert text.endswith("Left out as weak evidence, with a median under the floor of 1 %: m5.")


def test_two_prompt_forms_never_share_a_sentence() -> None:
    made = many(6)
    rows = [dict(one) for one in made.parts[0].tables["probe_groups"]]
    for one in rows:
        one["prompt_form"] = "chat-continue" if one["model"] == "m0" else "raw"
    part = replace(made.parts[0], tables={"probe_groups": rows, "tests": made.parts[0].tables["tests"]})
    made = content(part)
    assert said(made, "probe-explicit", "Asked outright (explicit prompts), m0 gives women").text
    others = said(made, "probe-explicit", "Asked outright (explicit prompts), 5 models give women")
    assert "(m0)" not in others.text
    assert "raw prompts" in others.measured_with


# --- debiasing ---------------------------------------------------------------------------------------


def effect(number: int, estimate: float, half: float, group: str = MENS) -> dict[str, Any]:
    ends = (estimate - half, estimate + half)
    more = {"instruction_a": str(number), "group_a": group, "group_b": group}
    return contrast_row("probe/share/crossed/instructions", estimate, ends, **more)


def test_the_largest_and_the_smallest_effect_of_an_instruction() -> None:
    effects = [effect(1, 0.01, 0.04), effect(2, -0.12, 0.05), effect(3, 0.07, 0.02)]
    told = ({"id": 1, "text": "Imagine."}, {"id": 2, "text": "Please " * 30}, {"id": 3, "text": "Assume."})
    made = content(probe_part({"probe_groups": group_rows(SHARES), "tests": effects}, instructions=told))
    found = said(made, "debiasing")
    assert found.text == (
        "Debiasing (explicit prompts, m), against the same prompts without an instruction. For jobs mostly "
        "held by men, instruction 2 (“Please Please Please Please Please Please Please Please Ple…”) "
        "changes the share of women most (the largest of 3), 12 points less [−17 to −7], and instruction 1 "
        "(“Imagine.”) least, 1 point more [−3 to 5], no clear difference; 2 of 3 changes are clear."
    )
    assert found.verdict == "lower"


def test_effects_that_go_opposite_ways_have_no_one_direction() -> None:
    effects = [effect(1, 0.2, 0.05), effect(1, -0.2, 0.05, WOMENS)]
    made = content(probe_part({"probe_groups": group_rows(SHARES), "tests": effects}))
    assert said(made, "debiasing").verdict == "shown"


def test_a_dialogue_is_held_against_plain_prompts() -> None:
    scope = {"group_a": MENS, "group_b": MENS, "setting": "dialogue-plain"}
    dialogue = contrast_row("probe/share/crossed/settings", 0.1, (0.05, 0.15), **scope)
    changed = contrast_row(
        "probe/instruction_effect/crossed/settings", 0.1, (0.05, 0.15), **scope, instruction_a="1"
    )
    tables = {"probe_groups": group_rows(SHARES), "tests": [effect(1, 0.2, 0.05), dialogue, changed]}
    assert said(content(probe_part(tables)), "debiasing", "In a dialogue").text == (
        "In a dialogue, without an instruction, m gives women 10 points more [5 to 15] for jobs mostly held "
        "by men, against plain prompts (explicit). What an instruction changes clearly differs between "
        "dialogue and plain in 1 of 1 comparison."
    )


# --- texts -------------------------------------------------------------------------------------------


def test_who_is_represented_against_labour_statistics() -> None:
    tables = {"representation": REPRESENTED, "tests": [labour_test(0.03, (-0.4, 0.46))]}
    made = content(personas_part(tables))
    found = said(made, "representation", "Asked")
    assert found.text == (
        "Asked for texts without naming a gender, m speaks of women in 20 % [15–25] (cook) to 90 % [85–95] "
        "(nurse) of the texts that speak of a gender. Against U.S. labour statistics, the share of women "
        "is, averaged over occupations: 3 points more [−40 to 46], no clear difference. In 1 of 3 "
        "occupations the share lies above the labour share, in 1 below it, after Holm's correction; "
        "farthest off is 20 % [15–25] (cook) against 43 %. 30 of 300 texts (10 %) speak of no gender and "
        "are in no share; 3 were refused. Counted all as men's, or all as women's, they could turn all but "
        "2 of the 3 comparisons with labour statistics."
    )
    assert found.verdict == "no-clear-difference"
    assert found.measured_with == "chat prompts, 3 occupations, 300 texts, m"
    assert (
        "labour"
        not in said(replace(made, reference="none"), "representation", "Asked").text.split("Counted")[0]
    )


@pytest.mark.parametrize(("low", "high", "verdict"), [(0.1, 0.3, "higher"), (-0.3, -0.1, "lower")])
def test_texts_above_and_below_labour_statistics(low: float, high: float, verdict: str) -> None:
    tables = {"representation": REPRESENTED, "tests": [labour_test((low + high) / 2, (low, high))]}
    assert said(content(personas_part(tables)), "representation", "Asked").verdict == verdict


def test_no_text_without_a_gender_in_the_prompt() -> None:
    found = said(content(personas_part({})), "representation")
    assert found.verdict == "not-measured"
    assert found.text == "Who is represented: not measured (no texts without a gender in the prompt)."


def test_occupations_without_a_share_are_counted_with_their_reason() -> None:
    rows = [*REPRESENTED[:1], occupation("clerk", None, 0.8, reason="no text with an associated gender")]
    found = said(content(personas_part({"representation": rows})), "representation", "Asked")
    assert " 1 occupation without a share (no text with an associated gender)." in found.text


def word_list(
    name: str, gender: str, n: int | None, null: float | None = 4.0, p: float = 0.005, **more: Any
) -> dict[str, Any]:
    """A list with n words beyond gender words, and two more."""
    against = "male" if gender == "female" else "female"
    scope = {"model": "m", "occupation": name, "origin": "associated", "gender": gender, "against": against}
    numbers = {"n_marked": None if n is None else n + 2, "null_p95": null, "n_marked_beyond": n}
    numbers |= {"null_p95_beyond": null, "p_value_beyond": None if n is None else p}
    return row("word_lists", **scope, method="calibrated", **numbers, **more)


def word(name: str, gender: str, text: str, z: float, q: float = 0.2, **more: Any) -> dict[str, Any]:
    against = "male" if gender == "female" else "female"
    scope = {"model": "m", "occupation": name, "origin": "associated", "gender": gender, "against": against}
    flags = {"is_pronoun": False, "is_name": False, "is_gender_word": False, **more}
    return row("marked_words", **scope, method="calibrated", word=text, z=z, q_value=q, **flags)


def test_words_stand_only_where_a_list_stays_longer_than_chance_beyond_gender_words() -> None:
    tables = {
        "word_lists": [
            word_list("nurse", "female", 9),
            word_list("cook", "female", 5, p=0.02),
            word_list("clerk", "female", 5, p=0.045),  # longer by itself, not among four
            word_list("nurse", "male", 4, p=0.2),
            word_list("pilot", "male", None, None, reason="not eligible"),
        ],
        "marked_words": [
            word("nurse", "female", "she", 9.0, is_pronoun=True, is_gender_word=True),
            word("nurse", "female", "mother", 8.0, is_gender_word=True),
            word("nurse", "female", "maria", 7.0, is_name=True),
            word("nurse", "female", "caring", 3.0, 0.01),
            word("cook", "female", "warm", 2.5),
            word("nurse", "female", "warm", 2.0),
            word("clerk", "female", "tidy", 4.0),
            word("nurse", "male", "strong", 6.0),
        ],
    }
    found = said(content(personas_part(tables)), "words")
    assert found.text == (
        "3 of 4 lists of words that mark a gender in m's texts (gender not in the prompt, one list per "
        "occupation and gender) hold more words than 95 % of lists with shuffled genders, all without gender "
        "words and names; by chance about 0.2 would. Judged together (false discovery rate 5 %), 2 lists "
        "stay longer: for women “warm” (2 occupations), “caring” (nurse), 1 of 3 with q ≤ 0.05. 1 list not "
        "measured (not eligible)."
    )


def test_lists_that_are_longer_with_gender_words_alone_say_nothing() -> None:
    circular = [{**word_list("nurse", gender, 2, p=0.6), "n_marked": 9} for gender in ("female", "male")]
    found = said(content(personas_part({"word_lists": circular})), "words")
    assert "0 of 2 lists" in found.text
    assert found.text.endswith("Judged together (false discovery rate 5 %), none stays longer.")


def test_tables_of_an_older_version_have_no_words_beyond_gender_words() -> None:
    old = [{**word_list("nurse", "female", 9), "n_marked_beyond": None, "p_value_beyond": None}]
    found = said(content(personas_part({"word_lists": old})), "words")
    assert found.verdict == "not-measured"
    assert "biaskit analyze makes them again" in found.text


def test_refusals_of_each_gender_asked_for_are_said_with_their_test() -> None:
    def refused(gender: str, n: int) -> dict[str, Any]:
        return row(
            "text_outcomes",
            model="m",
            occupation="nurse",
            specified_gender=gender,
            outcome="declines",
            n=n,
            share=n / 40,
        )

    difference = {"model_a": "m", "model_b": "m", "group_a": "female", "group_b": "male", "gender": None}
    tests = [contrast_row("personas/refused_share/paired/genders", -0.2, (-0.3, -0.1), **difference)]
    asked = [
        row("association_validation", model="m", specified_gender=gender, n_texts=40, n_correct=30,
            n_incorrect=5, n_not_captured=5)
        for gender in ("female", "male")
    ]  # fmt: skip
    tables = {
        "text_outcomes": [refused("female", 2), refused("male", 10)],
        "tests": tests,
        "association_validation": asked,
    }
    found = said(content(personas_part(tables)), "representation", "Of the texts asked for")
    assert found.text == (
        "Of the texts asked for, m refuses 2 of 40 about women (5 %) and 10 of 40 about men (25 %). About "
        "women against men, over occupations: 20 points less [−30 to −10]."
    )
    assert found.verdict == "lower"
    in_words = [
        one | {"outcome": "declines-in-words", "n": n}
        for one, n in zip(tables["text_outcomes"], (4, None), strict=True)
    ]
    both = content(personas_part(tables | {"text_outcomes": in_words}))
    assert said(both, "representation", "Without a refusal").text == (
        "Without a refusal by a server, m declines in words 4 of 40 about women (10 %); these texts are "
        "in no list of words and no SRB score."
    )
    nothing = [refused("female", 0), refused("male", 0)]
    none = content(personas_part({"text_outcomes": nothing, "association_validation": asked}))
    assert "refuses" not in " ".join(finding.text for finding in findings(none))


@pytest.mark.parametrize(
    ("estimate", "ci", "verdict", "sentence"),
    [
        (
            *(-0.5, (-0.6, -0.4), "lower"),
            "−0.50 [−0.60 to −0.40]: women's texts lie nearer to texts about women on request than men's "
            "texts do.",
        ),
        (
            *(0.5, (0.4, 0.6), "higher"),
            "0.50 [0.40 to 0.60]: women's texts lie farther from texts about women on request than men's "
            "texts do.",
        ),
        (-0.05, (-0.31, 0.22), "no-clear-difference", "−0.05 [−0.31 to 0.22], no clear difference."),
    ],
)
def test_srb_of_women_minus_men(estimate: float, ci: Sequence[float], verdict: str, sentence: str) -> None:
    whole = contrast_row("personas/srb/paired/genders", -0.9, (-1.2, -0.6))
    found = said(content(personas_part({"srb": SCORES, "tests": [whole, srb_test(estimate, ci)]})), "srb")
    assert found.verdict == verdict
    assert found.text == (
        "SRB: whether the words of a gender's texts, with no gender in the prompt, lie nearer to those of "
        "texts about a woman on request (negative) or about a man (positive). In m's texts women's SRB "
        "minus men's over 1 occupation is −0.90 [−1.20 to −0.60], gender words included; without them it is "
        f"{sentence} One by one, 1 of 2 scores lies beyond the null (shuffled genders, p ≤ 0.05; chance "
        "gives one in twenty)."
    )
    assert found.measured_with == "vectors corpus:1, 1 occupation, chat prompts, m"


def test_a_positive_control_says_so_first_and_is_no_result() -> None:
    held_out = [{**one, "control": "hold-out"} for one in SCORES]
    probe = probe_part({"probe_groups": group_rows(SHARES), "tests": [EVEN]})
    made = content(probe, personas_part({"srb": held_out, "tests": [srb_test(-0.5, (-0.6, -0.4))]}))
    found = said(made, "srb")
    assert found.text.startswith("Positive control, no result (half of the texts about women and men")
    assert found.verdict == "shown"
    assert not [one for one in findings(made) if one.topic == "relations"]  # and no headline rests on it


# --- told apart ----------------------------------------------------------------------------------------

A, S = "associated", "specified"
TOLD_APART = (
    "How well women's texts can be told from men's by words that are no gender words and no names (area "
    "under the curve; 0.5: as well as by a coin, 1: always), in m's texts over 2 occupations: "
)
OF_JOBS = [area(S, S, 0.7, occupation=job) for job in ("nurse", "cook")]


def told_apart(over: float, ci: Sequence[float]) -> dict[str, Any]:
    means = [area(A, A, 0.52, (0.45, 0.59)), area(S, S, 0.7, (0.6, 0.8)), area(S, A, over, ci)]
    tests = [area_test("auc_associated", 0.52, (0.45, 0.59)), area_test("auc_specified", 0.7, (0.6, 0.8))]
    return {
        "text_transfer": [*OF_JOBS, *means, area(A, S, 0.6, (0.5, 0.7))],
        "tests": [*tests, area_test("auc_transfer", over, ci)],
    }


@pytest.mark.parametrize(
    ("over", "ci", "verdict", "sentence"),
    [
        (0.65, (0.6, 0.7), "higher", "0.65 [0.60 to 0.70], better than by a coin: the same words tell women "
         "from men in both."),
        (0.35, (0.3, 0.4), "lower", "0.35 [0.30 to 0.40], worse than by a coin: the words of women in one "
         "are those of men in the other."),
        (0.55, (0.45, 0.65), "no-clear-difference", "0.55 [0.45 to 0.65], no clear difference."),
    ],
)  # fmt: skip
def test_what_carries_over_is_the_verdict(
    over: float, ci: Sequence[float], verdict: str, sentence: str
) -> None:
    found = said(content(personas_part(told_apart(over, ci))), "transfer")
    assert found.verdict == verdict
    assert found.text == (
        f"{TOLD_APART}0.52 [0.45 to 0.59], no clear difference (gender not in the prompt) and 0.70 [0.60 to "
        "0.80], better than by a coin (gender in the prompt). What is learnt from texts with the gender in "
        f"the prompt tells the others apart with an area of {sentence}"
    )


def test_areas_are_claims_of_the_page_and_adjusted_with_the_others() -> None:
    borderline = told_apart(0.6, (0.505, 0.695))
    others = [pair("m", "m", 0.01, (-0.04, 0.06), gender=f"g{i}") for i in range(3)]
    made = content(personas_part(borderline), probe_part({"tests": others})).judged()
    found = said(made, "transfer")
    assert found.verdict == "no-clear-difference"
    assert "no clear difference: alone it would be one, not among" in found.text


def test_areas_of_a_control_are_shown_and_come_to_nothing() -> None:
    rows = [
        {**one, "reason": "hold-out: a positive control"}
        for one in told_apart(0.9, (0.8, 0.95))["text_transfer"]
    ]
    tables = {"srb": [{**one, "control": "hold-out"} for one in SCORES], "text_transfer": rows}
    found = said(content(personas_part(tables)), "transfer")
    assert found.text.startswith("Positive control, no result")
    assert "tells the others apart with an area of 0.90 [0.80 to 0.95]." in found.text
    assert found.verdict == "shown"


def test_areas_of_texts_that_were_brought_along_speak_of_no_prompt() -> None:
    none = [
        area(*cell, None, reason="no texts without a specified gender") for cell in ((A, A), (S, A), (A, S))
    ]
    tables = {
        "text_transfer": [*OF_JOBS, *none, area(S, S, 0.7, (0.6, 0.8))],
        "tests": [area_test("auc_specified", 0.7, (0.6, 0.8))],
    }
    found = said(content(personas_part(tables, where="texts")), "transfer")
    assert found.verdict == "higher"
    assert found.text == (
        f"{TOLD_APART}0.70 [0.60 to 0.80], better than by a coin (gender given with the text). What carries "
        "over from one kind of text to the other is not measured (no texts without a specified gender)."
    )


def test_areas_that_were_not_measured_and_tables_without_them() -> None:
    rows = [area(*cell, None, reason="no texts were drawn") for cell in ((A, A), (S, S), (S, A), (A, S))]
    found = said(content(personas_part({"text_transfer": rows})), "transfer")
    assert found.verdict == "not-measured"
    assert found.text.endswith("not measured in m's texts (no texts were drawn).")
    assert not [one for one in findings(content(personas_part({"srb": SCORES}))) if one.topic == "transfer"]


def test_many_models_told_apart_share_one_sentence() -> None:
    tables: dict[str, list[dict[str, Any]]] = {"text_transfer": [], "tests": []}
    for i in range(5):
        own = told_apart(0.6 + i / 100, (0.55 + i / 100, 0.65 + i / 100))
        tables["text_transfer"] += [{**one, "model": f"m{i}"} for one in own["text_transfer"]]
        tables["tests"] += [{**one, "model_a": f"m{i}", "model_b": f"m{i}"} for one in own["tests"]]
    found = said(content(personas_part(tables, *(f"m{i}" for i in range(5)))), "transfer")
    assert found.verdict == "higher"
    assert "tested in those without, 5 of 5 lie above 0.5, from 0.60 to 0.64." in found.text


def test_the_headline_may_rest_on_what_carries_over() -> None:
    probe = probe_part({"probe_groups": group_rows(SHARES), "tests": [EVEN]})
    tables = told_apart(0.65, (0.6, 0.7))
    tables["tests"] = [*tables["tests"], srb_test(-0.1, (-0.4, 0.2))]
    found = said(content(probe, personas_part(tables)), "relations")
    assert "looks even in the probe" in found.text
    assert "with an area under the curve of 0.65 [0.60 to 0.70]" in found.text
    tables["tests"][2] = area_test("auc_transfer", 0.55, (0.45, 0.65))
    found = said(content(probe, personas_part(tables)), "relations")
    assert "Neither the probe" in found.text


def test_texts_that_were_brought_along_are_not_said_to_be_asked_for() -> None:
    made = content(personas_part({"representation": REPRESENTED}, where="texts"))
    assert said(made, "representation", "Your texts speak of women in 20 % [15–25] (cook)")


def test_scores_no_oftener_beyond_their_null_than_by_chance_are_called_so() -> None:
    scores = [score(f"o{i}", "female", -0.3, 0.01 if i == 0 else 0.5) for i in range(20)]
    text = said(content(personas_part({"srb": scores, "tests": [srb_test(-0.5, (-0.6, -0.4))]})), "srb").text
    assert (
        "1 of 20 scores lies beyond the null (shuffled genders, p ≤ 0.05; no more than chance gives)" in text
    )


def test_srb_without_texts_of_one_origin_has_the_reason() -> None:
    reason = "no texts without a specified gender"
    scores = [score("nurse", gender, None, None, reason=reason) for gender in ("female", "male")]
    found = said(content(personas_part({"srb": scores})), "srb")
    assert found.verdict == "not-measured"
    assert found.text == f"SRB (how differently m describes women and men): not measured ({reason})."


# --- both engines ------------------------------------------------------------------------------------


def both(probe: dict[str, Any], texts: dict[str, Any]) -> Content:
    return content(
        probe_part({"probe_groups": group_rows(SHARES), "tests": [probe]}),
        personas_part({"srb": SCORES, "tests": [texts]}),
    )


def test_even_in_the_probe_and_different_in_the_texts_is_the_headline() -> None:
    even = of_groups(0.01, (-0.03, 0.05), ci90_low=-0.02, ci90_high=0.04, equivalent=True)
    first = findings(both(even, srb_test(-0.5, (-0.6, -0.4))))[0]
    assert first.text == (
        "m looks even in the probe (explicit prompts) and still describes women and men differently. In "
        "explicit prompts women get, for jobs mostly held by women against jobs mostly held by men, 1 point "
        "more [−3 to 5], equivalent within ±5 points (90 % interval −2 to 4). In texts women's SRB minus "
        "men's, without gender words, is −0.50 [−0.60 to −0.40]."
    )


@pytest.mark.parametrize(
    ("probe", "texts", "beginning"),
    [
        (
            of_groups(0.1, (-0.02, 0.22)),
            srb_test(-0.5, (-0.6, -0.4)),
            "The texts of m describe women and men apart; its probe (explicit prompts) shows neither",
        ),
        (
            of_groups(0.3, (0.2, 0.4)),
            srb_test(-0.5, (-0.6, -0.4)),
            "The probe (explicit prompts) and the texts of m",
        ),
        (
            of_groups(0.3, (0.2, 0.4)),
            srb_test(-0.5, (-1.6, 0.4)),
            "The probe (explicit prompts) finds a difference",
        ),
        (
            of_groups(0.1, (-0.1, 0.3)),
            srb_test(-0.5, (-1.6, 0.4)),
            "Neither the probe (explicit prompts) nor",
        ),
    ],
)
def test_every_meeting_of_the_engines(probe: dict[str, Any], texts: dict[str, Any], beginning: str) -> None:
    found = said(both(probe, texts), "relations", beginning)
    assert findings(both(probe, texts))[0] != found


# --- models against models ---------------------------------------------------------------------------


def twin(of: dict[str, Any], p: float, adjusted: float) -> dict[str, Any]:
    return {
        **of,
        "kind": "paired",
        "family": "probe/share/paired/models",
        "p_value": p,
        "p_adjusted": adjusted,
    }


def compared(rows: Rows, *labels: str) -> Content:
    return content(probe_part({"probe_groups": []}, *labels), between={"tests": rows})


def test_a_pair_of_models() -> None:
    higher = pair("B", "A", 0.05, (0.01, 0.09))
    rows = [higher, twin(higher, 0.01, 0.04), pair("B", "A", 0.02, (-0.03, 0.07), group_a=MENS, group_b=MENS)]
    found = said(compared(rows, "A", "B"), "models")
    assert found.text == (
        "B compared with A: the share of women in explicit prompts, jobs mostly held by women, 5 points "
        "more [1 to 9] (paired p = 0.01, after Holm p = 0.04); the share of women in explicit prompts, jobs "
        "mostly held by men, 2 points more [−3 to 7], no clear difference."
    )
    assert found.verdict == "shown"
    assert found.measured_with == "crossed intervals, raw prompts, 20 jobs, A and B"


@pytest.mark.parametrize(
    ("made", "verdict"),
    [
        (pair("B", "A", 0.05, (0.01, 0.09)), "higher"),
        (pair("B", "A", -0.05, (-0.09, -0.01)), "lower"),
        (pair("B", "A", 0.0, (-0.03, 0.03), ci90_low=-0.02, ci90_high=0.02, equivalent=True), "equivalent"),
        (pair("B", "A", 0.02, (-0.03, 0.07)), "no-clear-difference"),
        (pair("B", "A", None, reason="no template"), "not-measured"),
    ],
)
def test_each_verdict_between_two_models(made: dict[str, Any], verdict: str) -> None:
    assert said(compared([made], "A", "B"), "models").verdict == verdict


def test_many_pairs_are_counted_whichever_model_was_named_first() -> None:
    labels = "ABCD"
    pairs = [(b, a) for i, b in enumerate(labels) for a in labels[:i]]
    ends = [(0.1, 0.3), (-0.5, -0.3), (-0.1, 0.1), (-0.02, 0.02), (0.05, 0.15), (-0.2, 0.0)]
    rows = [
        pair(a, b, (low + high) / 2, (low, high)) for (a, b), (low, high) in zip(pairs, ends, strict=True)
    ]
    rows[3] |= {"equivalent": True, "ci90_low": -0.01, "ci90_high": 0.01}
    rows += [twin(one, 0.01, 0.03 if i == 0 else 0.4) for i, one in enumerate(rows)]
    text = said(compared(rows, *labels), "models").text
    assert text.startswith(
        "6 comparisons between 6 pairs of models (share by kind of jobs): 3 of 6 differ, 1 is "
        "equivalent within ±5 points and 2 show no clear difference. Largest of 6 comparisons: C against A,"
        " the share of women in explicit prompts, jobs mostly held by women, 40 points less [−50 to −30] "
        "(paired p = 0.01, after Holm p = 0.4); "
    )
    assert text.endswith("After Holm's correction 1 of 6 paired tests stay below 0.05.")


def test_a_group_of_models_has_a_sentence_of_its_own() -> None:
    rows = [pair(b, a, 0.1, (0.0, 0.2)) for b, a in ("BA", "CA", "CB", "DA")]
    rows.append(pair("API models", "open-weight models", 0.1, (0.05, 0.15)))
    found = said(compared(rows, *"ABCD"), "models", "API models compared with open-weight models")
    assert found.verdict == "higher"


def test_estimators_that_differ_are_said_even_behind_long_reasons() -> None:
    reason = (
        "templates 1, 2, 3 of 25 left out: 105 cells without a share; estimators differ: top-k against exact"
    )
    text = said(compared([pair("B", "A", 0.05, (0.01, 0.09), reason=reason)], "A", "B"), "models").text
    assert "Note: estimators differ: top-k against exact; templates 1, 2, 3" in text


def test_gaps_between_models_stand_apart_from_shares() -> None:
    gap = contrast_row("compare/srb_spread/paired/models", -0.2, (-0.3, -0.1), model_a="B", model_b="A")
    found = said(compared([gap], "A", "B"), "gaps")
    assert found.text.startswith(
        "B compared with A: the SRB spread (men's SRB minus women's), 0.20 lower [−0.30 to −0.10]"
    )
    assert found.verdict == "lower"


# --- relations ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimate", "ci", "verdict", "verb"),
    [
        (0.8, (0.5, 0.9), "higher", "rises with the probe gap (explicit prompts)"),
        (-0.8, (-0.9, -0.5), "lower", "falls as the probe gap (explicit prompts) grows"),
        (
            0.1,
            (-0.4, 0.6),
            "no-clear-difference",
            "shows no clear relation to the probe gap (explicit prompts)",
        ),
    ],
)
def test_relations_over_occupations(estimate: float, ci: Sequence[float], verdict: str, verb: str) -> None:
    related = contrast_row(
        "compare/represented_gap~probe_gap/spearman/gaps",
        estimate,
        ci,
        bias_type="explicit",
        prompt_form="raw",
        n_a=12,
    )
    found = said(compared([related], "m"), "relations")
    assert found.verdict == verdict
    assert found.text.startswith(f"Over 12 occupations, the gap in texts of m {verb}: rank correlation ")


def test_relations_over_too_few_occupations_give_their_number_once() -> None:
    few = "8 occupations with both gaps, at least 10 are needed"
    rows = [
        contrast_row(f"compare/{y}~{x}/{kind}/gaps", None, reason=few, n_a=8)
        for y, x in (("represented_gap", "probe_gap"), ("srb_spread", "probe_gap"))
        for kind in ("slope", "spearman")
    ]
    found = said(compared(rows, "m"), "relations")
    assert found.text == f"2 relations between the engines' gaps over occupations not measured ({few})."


# --- many models -------------------------------------------------------------------------------------


def six_models() -> Content:
    """Six models in both engines; m0 and m1 are even in the probe, m4 and m5 nothing in the texts."""
    labels = [f"m{i}" for i in range(6)]
    probe: dict[str, Rows] = {"probe_groups": [], "tests": []}
    texts: dict[str, Rows] = {name: [] for name in ("representation", "srb", "word_lists", "tests")}
    for i, label in enumerate(labels):
        named = {"model_a": label, "model_b": label}
        probe["probe_groups"] += group_rows(SHARES, model=label)
        even = of_groups(0.01, (-0.03, 0.05), ci90_low=-0.02, ci90_high=0.04, equivalent=True, **named)
        probe["tests"].append(even if i < 2 else of_groups(0.1, (0.05, 0.15), **named))
        probe["tests"].append({**effect(1, 0.1 * i, 0.05), **named})
        probe["tests"].append(slope(0.1 * i, (0.1 * i - 0.05, 0.1 * i + 0.05), **named))
        texts["representation"].append(occupation("nurse", 0.5 + 0.05 * i, 0.6, label, n_unassociated=10 * i))
        texts["srb"].append({**score("nurse", "female", -0.2), "model": label})
        texts["word_lists"].append(
            {**word_list("nurse", "female", 3 * i, p=0.005 if i > 1 else 0.9), "model": label}
        )
        texts["tests"].append(labour_test(0.1 * (i - 2), (0.1 * i - 0.25, 0.1 * i - 0.15), **named))
        texts["tests"].append(srb_test(-0.2, (-0.3, -0.1) if i < 4 else (-0.5, 0.1), **named))
    related = [
        contrast_row(
            *("compare/represented_gap~probe_gap/spearman/gaps", 0.1 * i, (0.1 * i - 0.3, 0.1 * i + 0.3)),
            model_a=label,
            model_b=label,
            bias_type="explicit",
            n_a=12,
        )
        for i, label in enumerate(labels)
    ]
    return content(probe_part(probe, *labels), personas_part(texts, *labels), between={"tests": related})


@pytest.mark.parametrize(
    ("topic", "sentence"),
    [
        (
            "relations",
            "2 look even in the probe and still describe women and men differently (m0 and m1); 2 tell "
            "women and men apart in both engines, 2 in the probe alone, 0 in texts alone with a probe that "
            "leaves it open, and 0 in neither.",
        ),
        (
            "probe-explicit",
            "4 of 6 give women more for jobs mostly held by women and 2 are equivalent within ±5 points",
        ),
        (
            "probe-explicit",
            "5 of 6 give women more and 1 shows no clear difference, from 0 (m0) to 5.0 (m5) points more",
        ),
        ("representation", "in 50 % [45–55] (nurse, m0) to 75 % [70–80] (nurse, m5) of the texts"),
        (
            "representation",
            "3 of 6 lie above the labour share on average, 2 lie below it and 1 shows no clear difference; "
            "m0 −20 [−25 to −15] and m5 30 [25 to 35] points.",
        ),
        ("representation", "0–50 % of a model's texts speak of no gender and are in no share (most: m5)."),
        (
            "srb",
            "4 of 6 lie below 0 (women's texts nearer to texts about women on request than men's "
            "texts are) and 2 show no clear difference",
        ),
        ("words", "4 of 6 lists"),
        (
            "words",
            "by chance about 0.3 would. Judged together (false discovery rate 5 %), 4 stay longer, from "
            "1 of 1 in m2 to 0 of 1 in m0.",
        ),
        (
            "debiasing",
            "6 models under 1 instruction, against none: For jobs mostly held by men: 5 of 6 give women more "
            "and 1 shows no clear difference; the largest change is 50 points more [45 to 55] (m5, "
            "instruction 1).",
        ),
        (
            "relations",
            "2 of 6 rise together and 4 show no clear relation; rank correlations from 0 (m0) to 0.50 (m5).",
        ),
    ],
)
def test_more_than_four_models_share_a_sentence(topic: str, sentence: str) -> None:
    assert 1 == sum(sentence in one.text for one in findings(six_models()) if one.topic == topic)


def test_the_common_headline_stands_first_and_only_where_it_holds() -> None:
    made = six_models()
    assert findings(made)[0].text.startswith(
        "Of 6 models that both engines measured (explicit prompts), 2 look even"
    )
    tables = made.parts[0].tables
    tests = [{**one, "equivalent": False} if one["quantity"] == "share" else one for one in tables["tests"]]
    plain = replace(made.parts[0], tables={**tables, "tests": tests})
    assert not findings(replace(made, parts=(plain, made.parts[1])))[0].text.startswith("Of 6 models")


def test_a_study_with_other_groups_keeps_its_own_names() -> None:
    rows = group_rows({"blue": (0.6, 0.3, 0.1), "green": (0.3, 0.5, 0.2)})
    for one in rows:
        one["gender"] = {"female": "elder", "male": "younger", "diverse": "diverse"}[one["gender"]]
    part = replace(probe_part({"probe_groups": rows, "tests": []}), contrast=("elder", "younger"))
    assert (
        "m gives “elder” 60 % [50–70] (“younger” 30 %, diverse 10 %)"
        in said(content(part), "probe-explicit").text
    )
    assert "for jobs of the group “blue” and" in said(content(part), "probe-explicit").text


# --- what holds for every finding --------------------------------------------------------------------


def everything() -> Content:
    tables = {
        "probe_groups": group_rows(SHARES),
        "tests": [of_groups(0.26, (0.18, 0.34)), slope(0.24, (0.09, 0.36))],
    }
    texts = {
        "representation": REPRESENTED,
        "srb": SCORES,
        "tests": [labour_test(0.1, (0.0, 0.2)), srb_test(-0.1, (-0.3, 0.1))],
    }
    return content(
        probe_part(tables), personas_part(texts), between={"tests": [pair("B", "A", 0.05, (0.01, 0.09))]}
    )


@pytest.mark.parametrize(
    ("place", "column", "old", "new", "topic"),
    [
        (("probe", "tests", 0), "estimate", "26 points more", "31 points more", "probe-explicit"),
        (("probe", "tests", 0), "ci_low", "[18 to 34]", "[31 to 34]", "probe-explicit"),
        (("probe", "probe_groups", 0), "share", "60 % [50–70]", "31 % [50–70]", "probe-explicit"),
        (("probe", "probe_groups", 0), "coverage", "hold 30 %", "hold 31 and 30 %", "probe-explicit"),
        (("personas", "representation", 0), "female_share", "90 % [85–95]", "31 % [85–95]", "representation"),
        (
            ("personas", "tests", 0),
            "estimate",
            "10 points more [0 to 20]",
            "31 points more [0 to 20]",
            "representation",
        ),
        (("personas", "tests", 1), "estimate", "−0.10 [−0.30 to 0.10]", "0.31 [−0.30 to 0.10]", "srb"),
    ],
)
def test_a_changed_row_changes_its_sentence_and_nothing_is_computed_anew(
    place: tuple[str, str, int], column: str, old: str, new: str, topic: str
) -> None:
    engine, table, number = place
    made = everything()
    part = made.part(engine)
    assert part is not None
    rows = [dict(one) for one in part.tables[table]]
    rows[number][column] = 0.31
    changed = replace(part, tables={**part.tables, table: rows})
    other = replace(made, parts=tuple(changed if one is part else one for one in made.parts))
    before = " ".join(one.text for one in findings(made) if one.topic == topic)
    after = " ".join(one.text for one in findings(other) if one.topic == topic)
    assert old in before
    assert new not in before
    assert new in after


def test_every_finding_has_its_place_and_names_no_bias() -> None:
    for made in (everything(), many(5), many(3), compared([pair("B", "A", 0.05, (0.01, 0.09))], "A", "B")):
        for one in findings(made):
            assert one.topic in TOPICS
            assert one.measured_with
            assert one.text.endswith(".")
            assert "significant" not in one.text
            assert "bias" not in one.text.lower().replace("debiasing", "")
            assert "  " not in one.text


def test_the_first_findings_speak_of_every_topic_before_a_second_model() -> None:
    tables = {"probe_groups": [*group_rows(SHARES, model="A"), *group_rows(SHARES, model="B")]}
    tests = [of_groups(0.26, (0.18, 0.34), model_a=label, model_b=label) for label in "AB"]
    texts = {"representation": [occupation("nurse", 0.9, 0.87, "A"), occupation("nurse", 0.9, 0.87, "B")]}
    made = content(probe_part({**tables, "tests": tests}, "A", "B"), personas_part(texts, "A", "B"))
    named = [(one.topic, "A" if ", A" in one.text else "B") for one in findings(made)]
    assert named[:4] == [
        *(("probe-explicit", "A"), ("representation", "A")),
        *(("probe-explicit", "B"), ("representation", "B")),
    ]


def test_what_was_not_measured_comes_last() -> None:
    made = content(
        personas_part(
            {"srb": [score("nurse", "female", None, None, reason="r")], "representation": REPRESENTED}
        )
    )
    verdicts = [one.verdict for one in findings(made)]
    assert verdicts[-1] == "not-measured"
    assert verdicts == sorted(verdicts, key=lambda verdict: verdict == "not-measured")


@pytest.mark.parametrize("label", HOSTILE)
def test_foreign_text_stands_as_it_is_but_short(label: str) -> None:
    tables = {"probe_groups": group_rows(SHARES, model=label, reason=label * 3), "tests": []}
    found = said(content(probe_part(tables, label)), "probe-explicit")
    assert short(label) in found.text
    assert len(found.text) < 900
    assert "\n" not in found.text


def test_nothing_to_say_says_nothing() -> None:
    assert findings(content()) == ()
    assert findings(content(probe_part({}))) == ()


# --- numbers as words --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (0, "0"),
        (1, "1" + "00"),
        (0.5231, "52"),
        (0.0042, "0.4"),
        (0.0001, "<0.1"),
        (0.9999, ">99.9"),
        (0.996, "99.6"),
    ],
)
def test_percent_never_rounds_to_none_or_all(fraction: float, text: str) -> None:
    assert percent(fraction) == text


@pytest.mark.parametrize(
    ("fraction", "text"),
    [(0, "0 points"), (0.01, "1 point"), (-0.01, "−1 point"), (0.004, "0.4 points"), (0.0002, "0.02 points")],
)
def test_points(fraction: float, text: str) -> None:
    assert points(fraction) == text


def test_small_scores_keep_their_sign() -> None:
    assert plain_number(-0.001) == "−0.001"
    assert point_number(-0.0994, 1) == "−9.9"
    assert short("é" * 81) == "é" * 79 + "…"


# --- limits ------------------------------------------------------------------------------------------


ALWAYS = (
    "“They” is the only neutral pronoun",
    "A share under parity is not a verdict",
    "The numbers hold for these",
)


def limit(made: Content, text: str) -> list[str]:
    return [one for one in cannot_show(made) if text in one]


def test_limits_that_always_hold() -> None:
    for made in (content(), everything(), many(5)):
        for beginning in ALWAYS:
            assert 1 == sum(one.startswith(beginning) for one in cannot_show(made))


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (many(2), "holds both “non-binary” and “gender unknown”"),
        (content(personas_part({"representation": REPRESENTED})), "Labour data are U.S. statistics"),
        (
            content(probe_part({"probe_groups": group_rows(SHARES, n_templates=1)})),
            "conditional on one template",
        ),
        (content(probe_part({"probe_groups": group_rows(SHARES, n_jobs=1)})), "conditional on one job"),
        (content(probe_part({"probe_groups": group_rows(SHARES, n_templates=4)})), "as few as 4 templates"),
        (content(probe_part({"probe_groups": group_rows(SHARES, n_jobs=6)})), "as few as 6 jobs"),
        (content(personas_part({"representation": REPRESENTED})), "gasp: 3 occupations only"),
        (
            content(probe_part({"probe_groups": group_rows({WOMENS: (0.97, 0.02, 0.01)})})),
            "above 95 % may be too short",
        ),
        (
            content(
                probe_part(
                    {"probe_groups": [*group_rows(SHARES), *group_rows(SHARES, model="n", estimator="top-k")]}
                )
            ),
            "different estimators (exact and top-k)",
        ),
        (
            content(probe_part({"probe_groups": group_rows(SHARES, share_low=0.2, share_high=0.7)})),
            "bounds of up to 50 points",
        ),
        (
            content(probe_part({"probe_groups": group_rows(SHARES, estimator="sampling")})),
            "few draws per cell",
        ),
        (content(probe_part({})), "one prompt form (raw)"),
        (content(personas_part({}, where="texts")), "Imported texts come as they are"),
        (content(personas_part({})), "own sampling settings"),
        (content(personas_part({"srb": SCORES})), "how long the word vectors were trained"),
        (
            content(personas_part({"srb": [*SCORES, score("cook", "female", 0.1, vectors="b")]})),
            "on 2 vector models",
        ),
        (content(probe_part({})), "two extreme clusters"),
        (content(probe_part({})), "No texts were generated here"),
        (content(personas_part({})), "The prober did not run here"),
        (content(probe_part({}), personas_part({}, "other")), "No model was measured by both engines"),
    ],
)
def test_limits_that_apply(made: Content, text: str) -> None:
    assert len(limit(made, text)) == 1


def test_limits_that_do_not_apply_are_not_said() -> None:
    tables = {"probe_groups": [one for one in group_rows(SHARES) if one["gender"] != "diverse"]}
    made = content(probe_part(tables, study="own"), personas_part({}, where="texts"))
    for text in (
        "gender unknown",
        "Labour data",
        "conditional",
        "as few as",
        "estimators",
        "bounds",
        "clusters",
    ):
        assert limit(made, text) == []
    for text in ("own sampling settings", "did not run", "No texts", "No model", "vectors", "too short"):
        assert limit(made, text) == []


def test_one_vector_model_is_no_reason_to_speak_of_several() -> None:
    assert limit(content(personas_part({"srb": SCORES})), "vector models, so") == []


def test_cells_under_the_floor_are_counted() -> None:
    cells = [row("probe_cells", **block(), coverage=0.001 * i, below_floor=i < 10) for i in range(30)]
    assert limit(content(probe_part({"probe_cells": cells})), "in 10 of 30 cells")


def test_fields_of_study_are_held_against_doctorates() -> None:
    from biaskit.report.findings.blocks import jobs_of

    part = Part("probe", "fields-of-study", "", {}, (), (), (), (), ())
    assert "fields with mostly women" == jobs_of(part, "female-dominated")
    jobs = Part("probe", "occugender", "", {}, (), (), (), (), ())
    assert "jobs mostly held by men" == jobs_of(jobs, "male-dominated")


@st.composite
def pages(draw: st.DrawFn) -> Rows:
    """Rows of tests.csv as an analysis makes them: a few contrasts of a few models, near and far from 0."""
    rows = []
    for i in range(draw(st.integers(1, 4))):
        for bias_type in draw(st.sampled_from([("explicit",), ("explicit", "implicit")])):
            estimate = draw(st.floats(-0.3, 0.3))
            half = draw(st.floats(0.005, 0.3))
            wide = draw(st.sampled_from([0.0, 0.0, 0.1]))
            low, high = estimate - half - wide, estimate + half + wide
            ends = {"ci90_low": low + 0.1 * half, "ci90_high": high - 0.1 * half}
            near = min(abs(estimate - wide), abs(estimate + wide)) if abs(estimate) > wide else 0.0
            p = p_of_interval(near, near - half, near + half, 10.0)
            equivalent = ends["ci90_low"] >= -0.05 and ends["ci90_high"] <= 0.05
            bounds = {"bound_low": estimate - wide, "bound_high": estimate + wide} if wide else {}
            named = {"model_a": f"m{i}", "model_b": f"m{i}", "bias_type": bias_type}
            rows.append(
                of_groups(estimate, (low, high), **ends, **bounds, **named, p_value=p, equivalent=equivalent)
            )
    return rows


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(pages())
def test_a_page_its_table_and_the_gate_come_to_one_verdict(rows: Rows) -> None:
    stored = adjust(rows)
    labels = sorted({str(row["model_a"]) for row in rows})
    shares = [
        row
        for label in labels
        for b in ("explicit", "implicit")
        for row in group_rows(SHARES, model=label, bias_type=b)
    ]
    page = content(probe_part({"probe_groups": shares, "tests": [*stored]}, *labels)).judged()
    judged = page.parts[0].tables["tests"]
    assert [row["verdict"] for row in stored] == [row["verdict"] for row in judged]
    said_of = {
        (f.measured_with.rpartition(", ")[2], f.topic): f
        for f in findings(page)
        if f.topic.startswith("probe-") and "of the probability on the listed words" in f.text
    }
    for one in judged:
        sentence = said_of[one["model_a"], f"probe-{one['bias_type']}"]
        assert sentence.verdict == one["verdict"]
        assert ("no clear difference" in sentence.text) == (one["verdict"] == "no-clear-difference")
        assert ("not identified" in sentence.text) == (one["verdict"] == "not-identified")
    gate = require_equivalent(judged, "groups")
    assert gate.holds == all(one["verdict"] == "equivalent" for one in judged)
