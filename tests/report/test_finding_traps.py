"""Ways in which a finding could say more than its rows, or lose what they say: each was one once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from fakes import finding_rules
from fakes.findings_rows import (
    EVEN,
    HOSTILE,
    MENS,
    REPRESENTED,
    SCORES,
    SHARES,
    WOMENS,
    Rows,
    area,
    area_test,
    asked,
    block,
    content,
    contrast_row,
    group_rows,
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
    word,
    word_list,
    workforce_test,
)

from biaskit.report.content import Content
from biaskit.report.findings import Finding, findings, sentences


def said(made: Content, question: str, beginning: str = "", *, foreign: bool = False) -> Finding:
    """The one finding of a question that holds these words; the whole page is held to the rules."""
    found = finding_rules.hold(made, foreign=foreign)
    own = [one for one in found if one.question == question and beginning in one.text]
    assert len(own) == 1, [one.text for one in found]
    return own[0]


# --- what stands beside a sentence ---------------------------------------------------------------------


def test_a_record_says_what_its_numbers_are_conditional_on() -> None:
    made = asked(of_groups(0.26, (0.18, 0.34)), n_templates=1, reason="conditional on one template")
    using = said(made, "say").measured_with
    assert "1 template × 40 jobs" in using
    assert "; conditional on one template" in using


@pytest.mark.parametrize(
    ("coverage", "beginning"),
    [
        (0.5, "Asked directly, of she and he, m says"),
        (0.499, "Asked directly, of she and he (50 % of its probability), m says"),
        (0.1, "Asked directly, of she and he (10 % of its probability), m says"),
        (0.03, "m says she 26 points more often"),
    ],
)
def test_little_coverage_is_said_in_the_sentence_and_a_tenth_is_weak(coverage: float, beginning: str) -> None:
    found = said(asked(of_groups(0.26, (0.18, 0.34)), coverage=coverage), "say")
    assert found.text.startswith(beginning)
    last = "; weak evidence: asked directly, of she and he (3 % of its probability)" * (coverage < 0.1)
    assert found.text.endswith(f"for men’s [18 to 34]; it says they in 10 and 16 %{last}.")
    assert (coverage < 0.1) is found.weak


def test_the_least_group_of_jobs_decides_and_both_ends_are_said() -> None:
    rows = group_rows(SHARES, coverage=0.6)
    rows[3]["binary_coverage"] = 0.04  # of she and he in men's jobs; with they all words have 60 %
    found = said(content(probe_part({"probe_groups": rows, "tests": [EVEN]})), "say")
    assert "; weak evidence: asked directly, of she and he (4–60 % of its" in found.text


def test_bounds_that_hold_zero_leave_a_difference_not_identified() -> None:
    # The two ends' intervals: from the lower end's low to the upper end's high.
    test = of_groups(0.26, (-0.28, 0.58), ci90_low=-0.26, ci90_high=0.56, bound_low=-0.2, bound_high=0.5)
    made = asked({**test, "p_value": 1.0}, estimator="top-k", share_low=0.2, share_high=0.7)
    wide = said(made, "say", "not identified")
    assert wide.verdict == "not-identified"
    assert "bounds of up to 50 points around a share" in wide.measured_with
    narrow = of_groups(0.26, (0.17, 0.35), ci90_low=0.18, ci90_high=0.34, bound_low=0.25, bound_high=0.27)
    assert said(asked(narrow, estimator="top-k", share_low=0.59, share_high=0.61), "say").verdict == "higher"


def test_a_direction_that_does_not_survive_its_page_is_said_to_be_none() -> None:
    rows = [of_groups(0.1, (0.01, 0.19)), of_groups(0.0, (-0.1, 0.1), model_a="x")]
    rows = [*rows, *(pair("m", "n", 0.0, (-0.1, 0.1), bias_type=f"b{i}") for i in range(20))]
    made = content(probe_part({"probe_groups": group_rows(SHARES), "tests": rows})).judged()
    found = said(made, "say")
    assert found.verdict == "no-clear-difference"
    assert found.text.endswith("and for men’s [−2 to 22 points]; it says they in 10 and 16 %.")


def test_explicit_and_implicit_and_two_prompt_formats_never_share_a_sentence() -> None:
    rows = [*group_rows(SHARES), *group_rows(SHARES, bias_type="implicit")]
    tests = [of_groups(0.26, (0.18, 0.34)), of_groups(0.1, (-0.1, 0.3), bias_type="implicit")]
    made = content(probe_part({"probe_groups": rows, "tests": tests}))
    assert said(made, "say", "Asked directly").verdict == "higher"
    assert said(made, "say", "Completing a sentence").verdict == "no-clear-difference"
    made = many(6)
    formats = {"m0": "chat-continue"}
    groups, crossed = (
        [{**one, "prompt_format": formats.get(one[name], "raw")} for one in made.parts[0].tables[table]]
        for table, name in (("probe_groups", "model"), ("tests", "model_a"))
    )
    made = content(replace(made.parts[0], tables={"probe_groups": groups, "tests": crossed}))
    assert "chat-continue prompts" in said(made, "say", " m0 ").measured_with
    assert "raw prompts" in said(made, "say", " m1 ").measured_with


def test_parity_is_counted_job_by_job_where_the_page_shows_it() -> None:
    scope = block(debiasing_id=0, estimator="exact", n_templates=25)
    gaps = {"nurse": (0.5, 0.4, 0.6), "cook": (0.1, -0.1, 0.3)}
    gaps |= {"pilot": (-0.3, -0.4, -0.2), "clerk": (0.2, 0.1, 0.3)}
    jobs = [
        row("probe_jobs", **scope, job=job, female_minus_male=gap, ci_low=low, ci_high=high)
        for job, (gap, low, high) in gaps.items()
    ]
    tables = {"probe_groups": group_rows(SHARES), "probe_jobs": jobs, "tests": [EVEN]}
    # A list of jobs is said under a question that has an answer alone.
    assert not [one for one in findings(content(probe_part(tables))) if "she more than he" in one.text]
    made = content(probe_part({**tables, "tests": [of_groups(0.26, (0.18, 0.34))]}))
    found = said(made, "say", "she more than he")
    assert "m says she more than he for 2 of 4 jobs, and less for 1" in found.text
    assert found.verdict == "shown"
    assert found not in sentences(made).leading
    assert not any("she more than he" in one.text for one in findings(replace(made, reference="workforce")))


# --- debiasing prompts, levels, dialogue --------------------------------------------------------------------


def effect(name: object, estimate: float, half: float, group: str = MENS, **more: Any) -> dict[str, Any]:
    ends = (estimate - half, estimate + half)
    scope = {"debiasing_a": str(name), "group_a": group, "group_b": group, "margin": 0.05, **more}
    contrast = scope.pop("contrast", "debiasing")
    return contrast_row(f"probe/share/crossed/{contrast}", estimate, ends, **scope)


def helped(*tests: dict[str, Any], **more: Any) -> Content:
    return content(probe_part({"probe_groups": group_rows(SHARES), "tests": [*tests]}, **more))


def test_effects_that_go_opposite_ways_have_no_one_direction() -> None:
    made = helped(effect(1, 0.2, 0.05), effect(1, -0.2, 0.05, WOMENS))
    assert said(made, "help", "2 of 2 changes").verdict == "shown"


def gap_change(name: object, estimate: float, half: float) -> dict[str, Any]:
    family, groups = "probe/group_gap/crossed/debiasing", {"group_a": WOMENS, "group_b": MENS}
    ends = (estimate - half, estimate + half)
    return contrast_row(family, estimate, ends, debiasing_a=str(name), **groups)


def gap_under(name: object, gap: float, half: float = 0.01) -> dict[str, Any]:
    """The gap between groups of jobs with a debiasing prompt, 0 for none."""
    return of_groups(gap, (gap - half, gap + half), debiasing_a=str(name), debiasing_b=str(name))


TO_WOMEN, TO_MEN = "towards she more for women’s jobs", "towards she more for men’s jobs"


@pytest.mark.parametrize(
    ("before", "under", "words", "note"),
    [
        (
            gap_under(0, 0.3),
            gap_under(1, 0.1),
            "narrows m’s gap between women’s and men’s jobs in saying she by 20 points [15 to 25]",
            "30 points without",
        ),
        (gap_under(0, -0.3), gap_under(1, -0.1), "narrows m’s gap", "−30 points without it, −10 points with"),
        (gap_under(0, 0.3), gap_under(1, 0.5), "widens m’s gap", "50 points with it"),
        (gap_under(0, -0.3), gap_under(1, -0.5), "widens m’s gap", "−30 points without it, −50 points with"),
        (gap_under(0, 0.05), gap_under(1, -0.2), "turns m’s gap", "−20 points with it"),
        (gap_under(0, -0.05), gap_under(1, 0.2), "turns m’s gap", "−5 points without it, 20 points with it"),
        # It closes: what is left is not known to differ from 0, on the same side or on the other.
        (gap_under(0, 0.25), gap_under(1, 0.02, 0.1), "narrows m’s gap", "2 points with it"),
        (
            gap_under(0, 0.25),
            gap_under(1, -0.02, 0.1),
            f"by 27 points [22 to 32], {TO_MEN}",
            "−2 points with",
        ),
        (
            gap_under(0, -0.25),
            gap_under(1, 0.02, 0.1),
            f"by 27 points [22 to 32], {TO_WOMEN}",
            "2 points with",
        ),
        # It opens from what is not known to differ from 0.
        (
            gap_under(0, -0.02, 0.1),
            gap_under(1, 0.25),
            f"by 27 points [21 to 33], {TO_WOMEN}",
            "25 points with",
        ),
        (
            gap_under(0, 0.02, 0.1),
            gap_under(1, 0.25),
            f"by 23 points [17 to 29], {TO_WOMEN}",
            "25 points with",
        ),
        (
            gap_under(0, 0.02, 0.1),
            gap_under(1, -0.25),
            f"by 27 points [21 to 33], {TO_MEN}",
            "−25 points with",
        ),
        # Neither is: only the change is.
        (
            gap_under(0, -0.1, 0.2),
            gap_under(1, 0.1, 0.2),
            f"by 20 points [14 to 26], {TO_WOMEN}",
            "10 points w",
        ),
    ],
)
def test_what_a_debiasing_prompt_changes_of_the_gap_is_said_first(
    before: dict[str, Any], under: dict[str, Any], words: str, note: str
) -> None:
    """Changes in groups are said under it; else they would say more than the tree names."""
    change = under["estimate"] - before["estimate"]
    found = said(helped(before, under, gap_change(1, change, 0.05)), "help", words)
    assert found.text.startswith("Asked directly, of she and he, debiasing prompt 1 ")
    verbs = {verb for verb in ("turns", "narrows", "widens", "changes") if f" {verb} " in found.text}
    assert verbs == {words.split(" m’s")[0] if "m’s" in words else "changes"}
    assert ("towards" in found.text) is ("changes" in verbs)
    assert note in found.measured_with
    unnamed = helped(before, gap_change(1, 0.01, 0.05), effect(1, 0.3, 0.01))
    assert [one.verdict for one in findings(unnamed) if one.question == "help"] == ["no-clear-difference"]


@pytest.mark.parametrize(("name", "weak"), [(1, True), (2, False)])
def test_a_change_rests_on_the_answers_under_its_debiasing_prompt_too(name: int, weak: bool) -> None:
    rows = [*group_rows(SHARES), *group_rows(SHARES, debiasing_id=1, coverage=0.02)]
    tests = [of_groups(0.3, (0.29, 0.31)), gap_under(name, 0.1), gap_change(name, -0.2, 0.05)]
    made = content(probe_part({"probe_groups": rows, "tests": tests}))
    (change,) = (one for one in findings(made) if "narrows" in one.text)
    assert change.weak is weak


def test_the_words_of_the_named_debiasing_prompt_stand_in_the_record() -> None:
    told = ({"id": 1, "text": "Imagine."}, {"id": 2, "text": "Please " * 30})
    made = helped(effect(1, 0.01, 0.04), effect(2, -0.12, 0.05), debiasing_prompts=told)
    found = said(made, "help", "debiasing prompt 2")
    assert found.verdict == "lower"
    assert "debiasing prompt 2: “Please Please" in found.measured_with
    assert "  " not in found.measured_with


@pytest.mark.parametrize(
    ("name", "scope", "words"),
    [
        ("abstract", {"contrast": "levels"}, "the abstraction level “abstract”"),
        (0, {"contrast": "contexts", "context": "dialogue-plain"}, "a dialogue before it"),
    ],
)
def test_levels_and_a_dialogue_have_sentences(name: object, scope: dict[str, str], words: str) -> None:
    """Levels under a debiasing prompt whose change is named."""
    named = [effect(1, 0.2, 0.05)] if "context" not in scope else []
    assert said(helped(effect(name, 0.2, 0.05, **scope), *named), "help", words).verdict == "higher"


# --- texts -----------------------------------------------------------------------------------------------


def test_texts_and_occupations_in_no_share_are_in_the_record() -> None:
    rows = [*REPRESENTED, occupation("clerk", None, 0.8, reason="no text with an inferred gender")]
    off = contrast_row("personas/represented_share/distance/workforce", 0.2, (0.1, 0.3), unit="occupation")
    tables = {"representation": rows, "tests": [workforce_test(0.03, (-0.4, 0.46)), off]}
    found = said(content(personas_part(tables)), "write", "labour statistics")
    assert found.verdict == "no-clear-difference"
    beside = (
        *("4 occupations, 400 texts", "mean absolute difference 20 points [10 to 30]", "4 texts refused"),
        *("40 texts without a gender", "1 occupation without a share; no text with an inferred gender"),
    )
    for words in beside:
        assert words in found.measured_with
    plain = content(personas_part(tables), reference="none")
    assert not any("workforce" in one.text for one in findings(plain))


def test_one_occupation_is_named_and_its_number_conditional_on_it() -> None:
    test = workforce_test(-0.4, None, reason="fewer than two units: no test")
    tables = {"representation": [occupation("clerk", 0.4, 0.8)], "tests": [test]}
    made = content(personas_part(tables))
    found = said(made, "write")
    assert found.text.startswith("Of m’s texts that name a gender, 40 % [")
    assert found.text.endswith("] are about women (conditional on one occupation, clerk).")
    assert "80 % women in U.S. labour statistics" in found.measured_with
    assert any("conditional on one occupation, clerk" in one for one in sentences(made).limits)


def test_words_stand_only_where_a_list_stays_longer_than_chance_beyond_gender_words() -> None:
    tables = {
        "word_lists": [
            word_list("nurse", "female", 9),
            word_list("cook", "female", 5, p=0.02),
            word_list("clerk", "female", 5, p=0.045),  # longer by itself, not among four
            word_list("nurse", "male", 4, p=0.2),
            word_list("pilot", "male", None, reason="not eligible"),
        ],
        "marked_words": [
            word("nurse", "female", "she", 9.0, is_pronoun=True, is_gender_word=True),
            word("nurse", "female", "mother", 8.0, is_gender_word=True),
            word("nurse", "female", "maria", 7.0, is_name=True),
            word("nurse", "female", "caring", 3.0),
            word("cook", "female", "warm", 2.5),
            word("nurse", "female", "warm", 2.0),
            word("clerk", "female", "tidy", 4.0),
            word("nurse", "male", "strong", 6.0),
        ],
    }
    found = said(content(personas_part(tables)), "how")
    # "warm" is in two lists and one word: lengths are not summed ("19 ungendered words" once).
    whose = "ungendered words mark women in m’s texts"
    assert found.text == f"In 2 of 3 occupations, {whose}, most often “warm”, “caring”."
    assert "3 of 4 lists longer than 95 % of shuffled ones; 2 judged together" in found.measured_with
    assert "1 list not measured; not eligible" in found.measured_with


def test_lists_that_are_longer_with_gender_words_alone_say_nothing() -> None:
    circular = [{**word_list("nurse", gender, 2, p=0.6), "n_marked": 9} for gender in ("female", "male")]
    found = said(content(personas_part({"word_lists": circular})), "how")
    assert found.text.startswith("Without gendered words, no clear sign of words")
    assert "0 of 2 lists longer" in found.measured_with


def group_list(group: str, n: int, p: float, **more: Any) -> dict[str, Any]:
    scope = {"model": "m", "column": "race", "against": "others", "gender": "", "method": "calibrated"}
    numbers = {"n_marked": n, "n_marked_beyond": n, "null_mean": 12.0, "null_p95_beyond": 20.0}
    return row("group_lists", **{**scope, **numbers, "group": group, "p_value_beyond": p, **more})


def test_lists_over_all_occupations_lead_and_those_of_one_are_said_under_them() -> None:
    def sentences_of(p_of_all: float | None, **more: float | None) -> list[str]:
        lists = [
            word_list("all", "female", 7, p_of_all, null_mean=1.2, **more),
            word_list("all", "male", 2, 0.6, **more),
            word_list("nurse", "female", 9, 0.001),
            word_list("cook", "female", 2, 0.4),
        ]
        marked = [
            word(job, "female", text, 4.0) for job in ("all", "nurse") for text in (f"{job}ish", "kind")
        ]
        made = content(personas_part({"word_lists": lists, "marked_words": marked}, where="texts"))
        return [one.text for one in finding_rules.hold(made, foreign=False) if one.topic == "words"]

    lead, detail = sentences_of(0.001)
    assert lead == "7 ungendered words mark women in your texts (by chance: 1): “allish”, “kind”."
    assert detail.startswith(
        "In 1 of 2 occupations, ungendered words mark women in your texts, above all “kind”"
    )
    # A list of one occupation alone says nothing on the page: its lead is not named.
    assert sentences_of(0.2) == [
        "Without gendered words, no clear sign of words that mark women or men in your texts."
    ]
    # Where those over all have no baseline, single ones answer.
    (alone,) = sentences_of(None, null_p95_beyond=None, p_value_beyond=None)
    assert "In 1 of 2 occupations" in alone


def test_groups_of_one_gender_many_models_and_groups_without_a_sign() -> None:
    lists = [group_list("Latine", 38, 0.001), group_list("Latine", 30, 0.001, gender="female")]
    two = [{**one, "model": label} for one in lists for label in ("m", "n")]
    found = findings(content(personas_part({"group_lists": two}, "m", "n")))
    texts = [one.text for one in found if one.topic == "groups"]
    assert [text.split(" in ")[1].split(" ")[0] for text in texts] == ["m’s", "m’s", "n’s", "n’s"]
    assert ["“Latine” (race)" in text or "“Latine”, women (race)" in text for text in texts] == [True] * 4
    none = said(content(personas_part({"group_lists": [group_list("Latine", 3, 0.9)]})), "how")
    assert none.text.startswith("Without gendered words, no clear sign of words")
    empty = [{**group_list("Latine", 3, 0.9), "n_marked_beyond": None, "reason": "too few texts"}]
    missing = said(content(personas_part({"group_lists": empty})), "how")
    assert (missing.verdict, "(too few texts)" in missing.text) == ("not-measured", True)


def refused(gender: str, n: int | None, outcome: str = "declines") -> dict[str, Any]:
    scope = {"model": "m", "occupation": "nurse", "requested_gender": gender, "outcome": outcome}
    return row("text_outcomes", **scope, n=n, share=None if n is None else n / 40)


VALIDATED = [
    row("gender_validation", model="m", requested_gender=gender, n_texts=40, n_correct=30,
        n_incorrect=5, n_not_captured=5)
    for gender in ("female", "male")
]  # fmt: skip


def test_refusals_of_each_gender_asked_for_are_said_with_their_test() -> None:
    difference = {"group_a": "female", "group_b": "male", "gender": None}
    test = contrast_row("personas/refused_share/paired/genders", -0.2, (-0.3, -0.1), **difference)
    counted = {"text_outcomes": [refused("female", 2), refused("male", 10)]}
    tables = {**counted, "tests": [test], "gender_validation": VALIDATED}
    found = said(content(personas_part(tables)), "else")
    assert (found.verdict, "20 points less often" in found.text) == ("lower", True)
    assert "women 2 of 40; men 10 of 40" in found.measured_with
    unclear = {**tables, "tests": [{**test, "ci_high": 0.1, "p_value": 0.4}]}
    assert "12 of 80 prompts that name a gender" in said(content(personas_part(unclear)), "else").text
    in_words = [refused("female", 4, "declines-in-words"), refused("male", None, "declines-in-words")]
    found = said(content(personas_part({**tables, "text_outcomes": in_words})), "else")
    assert "declines in words 4 of 40 prompts" in found.text
    nothing = {**tables, "text_outcomes": [refused("female", 0), refused("male", 0)]}
    assert not any("refuses" in one.text for one in findings(content(personas_part(nothing))))


# --- scores ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimate", "ci", "verdict", "beginning"),
    [
        (
            -0.5,
            (-0.6, -0.4),
            "lower",
            "In m’s texts, words for women are closer than men’s to texts requested",
        ),
        (
            0.5,
            (0.4, 0.6),
            "higher",
            "In m’s texts, words for women are farther than men’s from texts requested",
        ),
        (-0.05, (-0.31, 0.22), "no-clear-difference", "In m’s texts, no clear sign that words for women"),
    ],
)
def test_srb_of_women_minus_men(estimate: float, ci: Sequence[float], verdict: str, beginning: str) -> None:
    whole = contrast_row("personas/srb/paired/genders", -0.9, (-1.2, -0.6))  # with gender words: circular
    found = said(content(personas_part({"srb": SCORES, "tests": [whole, srb_test(estimate, ci)]})), "how")
    assert found.verdict == verdict
    assert found.text.startswith(beginning)
    assert found.measured_with == (
        "chat prompts, m; vectors corpus:1; without gendered words; 1 of 2 scores outside the permutation"
        " baseline (p ≤ 0.05)"
    )


def test_a_positive_control_says_so_and_is_no_result() -> None:
    held_out = [{**one, "control": "hold-out"} for one in SCORES]
    probe = probe_part({"probe_groups": group_rows(SHARES), "tests": [EVEN]})
    tables = {
        "srb": held_out,
        "text_transfer": [area("requested", "inferred", 0.9, (0.8, 0.95))],
        "tests": [srb_test(-0.5, (-0.6, -0.4)), area_test("auc_transfer", 0.9, (0.8, 0.95))],
    }
    made = content(probe, personas_part(tables))
    found = said(made, "how")
    assert found.text.startswith("Positive control, not a result: a part of m’s texts")
    assert found.verdict == "shown"
    assert not [one for one in findings(made) if one.question == "agree"]  # and no headline rests on it


def test_srb_and_areas_that_were_not_measured_have_the_reason() -> None:
    reason = "no texts without a requested gender"
    scores = [score("nurse", gender, None, None, reason=reason) for gender in ("female", "male")]
    found = said(content(personas_part({"srb": scores})), "how")
    assert found.verdict == "not-measured"
    assert (
        found.text == f"How differently women and men are described in m’s texts is not measured ({reason})."
    )
    rows = [area("requested", "inferred", None, reason=reason)]
    found = said(content(personas_part({"text_transfer": rows})), "how")
    assert (found.verdict, f"({reason})" in found.text) == ("not-measured", True)


def test_areas_are_claims_of_the_page_and_adjusted_with_the_others() -> None:
    tables = {
        "text_transfer": [area("requested", "inferred", 0.6, (0.505, 0.695))],
        "tests": [area_test("auc_transfer", 0.6, (0.505, 0.695))],
    }
    others = [pair("m", "m", 0.01, (-0.04, 0.06), bias_type=f"g{i}") for i in range(3)]
    alone = content(personas_part(tables)).judged()
    assert said(alone, "how").verdict == "higher"
    found = said(content(personas_part(tables), probe_part({"tests": others})).judged(), "how")
    assert found.verdict == "no-clear-difference"
    assert "separates" not in found.text


def test_what_carries_over_is_the_verdict_and_the_other_areas_stand_in_the_record() -> None:
    tables = {
        "text_transfer": [area("requested", "inferred", 0.55, (0.45, 0.65))],
        "tests": [
            area_test("auc_requested", 0.7, (0.6, 0.8)),
            area_test("auc_transfer", 0.55, (0.45, 0.65)),
        ],
    }
    found = said(content(personas_part(tables)), "how")
    assert found.verdict == "no-clear-difference"
    assert "with the gender in the prompt: 70 of 100 pairs [60 to 80]" in found.measured_with


# --- both measurements --------------------------------------------------------------------------------------


def both(probe: dict[str, Any], *texts: dict[str, Any]) -> Content:
    return content(
        probe_part({"probe_groups": group_rows(SHARES), "tests": [probe]}),
        personas_part({"srb": SCORES, "tests": [*texts]}),
    )


APART, UNCLEAR = srb_test(-0.5, (-0.6, -0.4)), srb_test(-0.5, (-1.6, 0.4))


@pytest.mark.parametrize(
    ("probe", "texts", "words"),
    [
        (
            *(EVEN, APART),
            "m says she about equally for women’s and men’s jobs (within ±5 points), but its texts describe"
            " women and men differently",
        ),
        (
            of_groups(0.1, (-0.02, 0.22)),
            APART,
            "m shows no clear difference, but its texts describe women and men",
        ),
        (of_groups(0.3, (0.2, 0.4)), APART, "m shows a difference, and its texts describe women and men"),
        (of_groups(0.3, (0.2, 0.4)), UNCLEAR, "m shows a difference, but its texts show no clear one"),
        (of_groups(0.1, (-0.1, 0.3)), UNCLEAR, "neither m’s answers nor its texts show a clear difference"),
        (EVEN, UNCLEAR, "neither m’s answers nor its texts show a clear difference"),
    ],
)
def test_every_meeting_of_the_measurements(probe: dict[str, Any], texts: dict[str, Any], words: str) -> None:
    made = both(probe, texts)
    found = said(made, "agree", words)
    assert (findings(made)[0] == found) == ("about equally" in words)


def test_the_headline_may_rest_on_what_carries_over() -> None:
    unclear = srb_test(-0.1, (-0.4, 0.2))
    assert said(
        both(EVEN, unclear, area_test("auc_transfer", 0.65, (0.6, 0.7))), "agree", "says she about equally"
    )
    assert said(both(EVEN, unclear, area_test("auc_transfer", 0.55, (0.45, 0.65))), "agree", "neither")


def test_weak_evidence_is_no_headline() -> None:
    made = both(EVEN, APART)
    weak = group_rows(SHARES, coverage=0.001)
    part = replace(made.parts[0], tables={**made.parts[0].tables, "probe_groups": weak})
    made = replace(made, parts=(part, made.parts[1]))
    found = said(made, "agree")
    clause = "of she and he (0.1 % of its probability)"
    assert found.text.startswith("m says she about equally")
    assert found.text.endswith(f"; weak evidence: asked directly, {clause}.")
    assert findings(made)[0] != found


# --- models ----------------------------------------------------------------------------------------------


def compared(rows: Rows, *labels: str) -> Content:
    return content(probe_part({"probe_groups": []}, *labels), between={"tests": rows})


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
    found = said(compared([made], "A", "B"), "models")
    assert found.verdict == verdict
    assert found.measured_with.startswith("crossed intervals, raw prompts, 20 jobs, A and B")


def test_many_pairs_are_counted_whichever_model_was_named_first() -> None:
    labels = "ABCD"
    pairs = [(b, a) for i, b in enumerate(labels) for a in labels[:i]]
    ends = [(0.1, 0.3), (-0.5, -0.3), (-0.1, 0.1), (-0.02, 0.02), (0.05, 0.15), (-0.2, 0.0)]
    rows = [
        pair(a, b, (low + high) / 2, (low, high)) for (a, b), (low, high) in zip(pairs, ends, strict=True)
    ]
    rows[3] |= {"equivalent": True, "ci90_low": -0.01, "ci90_high": 0.01}
    found = said(compared(rows, *labels), "models", "of 6 comparisons")
    assert found.text == (
        "Of she and he, of 6 comparisons between models, 3 differ clearly, 1 is about the same "
        "(within ±5 points) and 2 are unclear."
    )
    assert "4 models" in found.measured_with
    assert said(compared(rows, *labels), "models", "40 points less for C than for A")


def test_a_group_of_models_has_a_sentence_of_its_own() -> None:
    rows = [pair(b, a, 0.1, (0.0, 0.2)) for b, a in ("BA", "CA", "CB", "DA")]
    rows.append(pair("API models", "open models", 0.1, (0.05, 0.15)))
    found = said(compared(rows, *"ABCD"), "models", "for API models than")
    assert found.verdict == "higher"
    assert "means of these models only" in found.measured_with
    assert said(compared(rows, *"ABCD"), "models", "in any of 4 comparisons")


def test_estimators_that_differ_are_said_even_behind_long_reasons() -> None:
    reason = (
        "templates 1, 2, 3 of 25 left out: 105 cells without a share; estimators differ: top-k against exact"
    )
    found = said(compared([pair("B", "A", 0.05, (0.01, 0.09), reason=reason)], "A", "B"), "models")
    assert "; estimators differ: top-k against exact; templates 1, 2, 3" in found.measured_with


def test_a_pair_with_weak_evidence_says_so_and_whose() -> None:
    shares = [*group_rows(SHARES, model="A"), *group_rows(SHARES, model="B", coverage=0.01)]
    rows = [pair("B", "A", 0.1, (0.05, 0.15)), pair("B", "A", 0.0, (-0.1, 0.1), group_a=MENS, group_b=MENS)]
    made = content(probe_part({"probe_groups": shares}, "A", "B"), between={"tests": rows})
    counted = said(made, "models", "Of 2 comparisons between B and A, 1 differs clearly and 1 is unclear")
    assert counted.text.endswith("; weak evidence: of she and he (1–70 % of their probability).")
    ends = "The share of she for jobs mostly held by women is 10 points more for B than for A [4 to 16]"
    whose = "weak evidence: asked directly, of she and he (1 % and 70 % of their probability)"
    assert said(made, "models", ends).text == f"{ends}; they in 10 %; {whose}."
    means = compared([pair("API models", "open models", 0.1, (0.05, 0.15))], "A", "B")
    made = replace(means, parts=made.parts)
    found = said(made, "models", "The share of she")
    assert found.weak
    assert "; weak evidence: asked directly, of she and he (1–70 %" in found.text


def said_of_models(rows: Rows) -> list[Finding]:
    return [one for one in findings(compared(rows, "A", "B")) if one.question == "models"]


def test_gaps_between_models_are_a_topic_of_their_own() -> None:
    gap = contrast_row("compare/srb_spread/paired/models", -0.2, (-0.3, -0.1), model_a="B", model_b="A")
    assert not said_of_models([gap])
    found = said(
        compared([gap, pair("B", "A", 0.2, (0.1, 0.3))], "A", "B"), "models", "without gendered words"
    )
    assert (found.topic, found.verdict) == ("gaps", "lower")
    assert "the SRB gap between words for women and men is clearly lower for B than for A" in found.text


@pytest.mark.parametrize(
    ("quantity", "estimate", "ci", "verdict", "words"),
    [
        ("represented_gap~probe_gap", 0.8, (0.5, 0.9), "higher", "it writes about women more (correlation 0"),
        (
            "represented_gap~probe_gap",
            -0.8,
            (-0.9, -0.5),
            "lower",
            "it writes about women less (correlation −0",
        ),
        ("srb_spread~probe_gap", 0.1, (-0.4, 0.6), "no-clear-difference", "no clear link"),
        ("probe_gap~workforce_gap", 0.8, (0.5, 0.9), "higher", "where more women work, m says women more ("),
    ],
)
def test_relations_over_occupations(
    quantity: str, estimate: float, ci: Sequence[float], verdict: str, words: str
) -> None:
    contrast = "workforce" if "workforce" in quantity else "gaps"
    related = contrast_row(
        f"compare/{quantity}/spearman/{contrast}", estimate, ci, n_a=12, bias_type="explicit"
    )
    # A detail is said under a named lead.
    lead = contrast_row(
        "compare/represented_gap~probe_gap/spearman/gaps", 0.9, (0.8, 0.95), bias_type="explicit"
    )
    rows = [related] if related["quantity"] == lead["quantity"] else [related, lead]
    found = said(compared(rows, "m"), "agree", words)
    assert (found.verdict, words in found.text) == (verdict, True)
    assert ("noise in either number" in found.measured_with) == (contrast == "gaps")
    if contrast == "workforce":
        assert not findings(replace(compared([related], "m"), reference="parity"))


def test_relations_over_too_few_occupations_give_their_number_once() -> None:
    few = "8 occupations with both gaps, at least 10 are needed"
    rows = [
        contrast_row(f"compare/{y}~{x}/{kind}/gaps", None, reason=few, n_a=8)
        for y, x in (("represented_gap", "probe_gap"), ("srb_spread", "probe_gap"))
        for kind in ("slope", "spearman")
    ]
    assert said(compared(rows, "m"), "agree").text == (
        f"2 links between answers, texts and workforce shares over occupations not measured ({few})."
    )


# --- what holds for every finding ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "number", "column", "old", "new"),
    [
        ("tests", 0, "estimate", "26 points more", "31 points more"),
        ("tests", 0, "shown_low", "[18 to 34]", "[31 to 34]"),
        ("probe_groups", 0, "coverage", "have 30 %", "have 30–31 %"),
        ("probe_groups", 0, "binary_coverage", "he (30 % of its", "he (30–31 % of its"),
        ("probe_groups", 2, "share", "they in 10 and 16 %", "they in 31 and 16 %"),
    ],
)
def test_a_changed_row_changes_its_sentence_and_nothing_is_computed_anew(
    table: str, number: int, column: str, old: str, new: str
) -> None:
    made = asked(of_groups(0.26, (0.18, 0.34)), coverage=0.3)
    rows = [dict(one) for one in made.parts[0].tables[table]]
    rows[number][column] = 0.31
    part = replace(made.parts[0], tables={**made.parts[0].tables, table: rows})
    before, after = (
        " ".join(one.text for one in finding_rules.hold(one_of))
        for one_of in (made, replace(made, parts=(part,)))
    )
    assert old in before
    assert new not in before
    assert new in after


def test_what_was_not_measured_comes_last() -> None:
    scores = [score("nurse", "female", None, None, reason="r")]
    few = slope(None, reason="few")
    probe = probe_part({"probe_groups": group_rows(SHARES), "tests": [few, EVEN]})
    verdicts = [one.verdict for one in findings(content(probe, personas_part({"srb": scores})))]
    assert verdicts.count("not-measured") == 3
    assert verdicts == sorted(verdicts, key=lambda verdict: verdict == "not-measured")


@pytest.mark.parametrize("text", HOSTILE)
def test_foreign_text_stands_short_in_the_sentence_and_in_its_record(text: str) -> None:
    tables = {"probe_groups": group_rows(SHARES, model=text, reason=text * 3), "tests": []}
    for one in finding_rules.hold(content(probe_part(tables, text)), foreign=True):
        assert len(one.text) < 400
        assert len(one.measured_with) < 600
