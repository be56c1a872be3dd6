"""What the findings say of rows whose verdict is known, and that they claim no more."""

from __future__ import annotations

import tempfile
import zlib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
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
    slope,
    srb_test,
    word_list,
    workforce_test,
)
from fakes.worlds import ProbeWorld, TextWorld
from hypothesis import given, settings
from hypothesis import strategies as st
from places import BENCHMARKS, module_of
from scipy.stats import binom

from biaskit.compare.check import require_equivalent
from biaskit.report.content import Content
from biaskit.report.findings import Finding, findings, first_about, sentences
from biaskit.report.findings.finding import MOST_WORDS
from biaskit.report.findings.models import compared as rows_compared
from biaskit.report.findings.models import models as said_of_models
from biaskit.report.findings.sentence import Foreign, filled
from biaskit.report.findings.workforce import p_against_one as p_of
from biaskit.report.findings.workforce import slopes_with_words
from biaskit.stats.contrast import Contrast
from biaskit.stats.contrasts import adjust
from biaskit.stats.correlation import level_test, slope_test
from biaskit.stats.crossed import p_of_interval
from biaskit.stats.verdict import Rule
from biaskit.stats.welch import mean_distance


def texts_of(made: Content, question: str, *, foreign: bool = False) -> list[str]:
    return [one.text for one in finding_rules.hold(made, foreign=foreign) if one.question == question]


def models_of(*tests: dict[str, Any], **below: float) -> Content:
    """One model m0, m1, … for each test."""
    rows: Rows = []
    for i in range(len(tests)):
        rows += group_rows(SHARES, model=f"m{i}", coverage=below.get(f"m{i}", 0.7))
    own = [{**one, "model_a": f"m{i}", "model_b": f"m{i}"} for i, one in enumerate(tests)]
    return content(probe_part({"probe_groups": rows, "tests": own}, *(f"m{i}" for i in range(len(tests)))))


# --- whom it says --------------------------------------------------------------------------------------


WIDE = {"ci90_low": -0.26, "ci90_high": 0.56, "bound_low": -0.2, "bound_high": 0.5, "p_value": 1.0}
INSIDE = {"ci90_low": 0.012, "ci90_high": 0.028, "equivalent": True}


@pytest.mark.parametrize(
    ("test", "verdict", "words"),
    [
        (of_groups(0.14, (0.09, 0.19)), "higher", "she 14 points more often for jobs mostly held by"),
        (
            of_groups(-0.14, (-0.19, -0.09)),
            "lower",
            "she 14 points less often for jobs mostly held by women",
        ),
        (EVEN, "equivalent", "she about as often for jobs mostly held by women"),
        (of_groups(0.1, (-0.02, 0.22)), "no-clear-difference", "no clear difference in how often m says"),
        (of_groups(0.26, (-0.28, 0.58), **WIDE), "not-identified", "is not identified."),
        # A difference inside the margin is one all the same where its interval excludes 0.
        (of_groups(0.02, (0.01, 0.03), **INSIDE), "equivalent", "about as often"),
        (of_groups(0.0, (0.0, 0.0)), "no-clear-difference", "[0 to 0 points]"),
        # An interval that just excludes 0 must not be printed as touching it.
        (of_groups(0.2, (0.0002, 0.3998)), "higher", "[0.02 to 40]"),
    ],
)
def test_each_verdict_between_groups_of_jobs(test: dict[str, Any], verdict: str, words: str) -> None:
    made = asked(test)
    (text,) = texts_of(made, "say")
    assert words in text
    assert text.startswith("Asked directly, of she and he, ")
    assert ("; it says they in 10 and 16 %." in text) is (verdict != "not-identified")
    assert [one.verdict for one in findings(made) if one.question == "say"] == [verdict]


@pytest.mark.parametrize(
    ("test", "n"),
    [
        (of_groups(0.26, None, reason="one job and one template"), 3),
        (of_groups(None, reason="x"), 2),
        (None, 2),
    ],
)
def test_without_a_verdict_the_shares_stand_all_the_same(test: dict[str, Any] | None, n: int) -> None:
    found = texts_of(asked(test), "say")
    assert n == len(found)
    for text, share, who, they in ((found[0], "60", "women", 10), (found[1], "34", "men", 16)):
        ends = f"{int(share) - 10}–{int(share) + 10}"
        said = f"m says she in {share} % for jobs mostly held by {who} [{ends}]; it says they in {they} %."
        assert text == f"Asked directly, of she and he, {said}"
    assert {one.verdict for one in findings(asked(test))} <= {"shown"}


def test_shares_of_low_coverage_are_weak_evidence_and_stand_after_others() -> None:
    rows = [*group_rows(SHARES, coverage=0.01), *group_rows(SHARES, bias_type="implicit")]
    tests = [of_groups(0.4, (0.3, 0.5)), of_groups(0.1, (0.05, 0.15), bias_type="implicit")]
    found = texts_of(content(probe_part({"probe_groups": rows, "tests": tests})), "say")
    assert found[0].startswith("Completing a sentence, of she and he, m says")
    assert found[1] == (
        "m says she 40 points more often for jobs mostly held by women than for men’s [30 to 50]; it says "
        "they in 10 and 16 %; weak evidence: asked directly, of she and he (1 % of its probability)."
    )


def test_each_model_has_a_sentence_of_its_own_and_weak_evidence_comes_last() -> None:
    more, less = of_groups(0.14, (0.09, 0.19)), of_groups(-0.14, (-0.19, -0.09))
    made = texts_of(models_of(less, more, more, m0=0.001), "say")
    assert [text.split(" say")[0] for text in made] == [
        "Asked directly, of she and he, m1",
        "Asked directly, of she and he, m2",
        "m0",
    ]
    assert made[-1].endswith("; weak evidence: asked directly, of she and he (0.1 % of its probability).")


def own_test(estimate: float, ci: tuple[float, float], **more: Any) -> dict[str, Any]:
    """A difference between two groups of items that are no jobs, of a group that is no gender."""
    scope = {"group_a": "blue", "group_b": "green", "gender": "elder", "margin": 0.05, "equivalent": False}
    return contrast_row("probe/binary_share/crossed/groups", estimate, ci, **{**scope, **more})


def own_study(*tests: dict[str, Any], groups: tuple[str, ...] = ("elder", "younger", "ageless")) -> Content:
    """A page of a study with groups of its own, the first two contrasted."""
    rows = group_rows({"blue": (0.6, 0.3, 0.1), "green": (0.3, 0.5, 0.2)})
    name_of = dict(zip(("female", "male", "diverse"), groups, strict=False))
    own = [{**one, "gender": name_of[one["gender"]]} for one in rows if one["gender"] in name_of]
    part = probe_part({"probe_groups": own, "tests": [*tests]}, study="own")
    return content(replace(part, groups=groups, contrast=groups[:2], rule=Rule(groups[:1])))


def test_a_studys_own_groups_keep_their_names() -> None:
    made = own_study(own_test(0.3, (0.2, 0.4)))
    assert texts_of(made, "say") == [
        "Asked directly, of “elder” and “younger”, m says “elder” 30 points more often for the group “blue” "
        "than for “green” [20 to 40]; it says “ageless” in 10 and 20 %."
    ]


# --- workforce --------------------------------------------------------------------------------------


def ends(kind: str, estimate: float, half: float, **more: Any) -> dict[str, Any]:
    ci = (estimate - half, estimate + half)
    narrow = {"ci90_low": estimate - 0.83 * half, "ci90_high": estimate + 0.83 * half}
    family = f"probe/female_share~workforce_share/{kind}/workforce"
    return contrast_row(family, estimate, ci, **{**narrow, **more})


def line(at: float, half: float, level: float = 0.0, distance: float = 0.05, **more: Any) -> Rows:
    return [
        ends("slope", at, half, **more),
        ends("level", level, 0.03, **more),
        ends("distance", distance, 0.02, **more),
    ]


@pytest.mark.parametrize(
    ("rows", "word", "verdict"),
    [
        (line(0.3, 0.1), "flattens", "lower"),
        (line(1.5, 0.2), "exaggerates", "higher"),
        # Shares that fall as the workforce shares rise, and a gap between groups that is named lower.
        ([*line(-0.5, 0.2), of_groups(-0.3, (-0.4, -0.2))], "reverses", "lower"),
        (line(-0.5, 0.2), "flattens", "lower"),
        (line(-0.1, 0.2), "flattens", "lower"),
        (line(1.0, 0.15), "mirrors", "equivalent"),
        (line(0.9, 0.05), "mirrors", "equivalent"),
        (line(1.0, 0.15, level=0.2), "unclear", "no-clear-difference"),
        (line(1.0, 0.15, distance=0.3), "unclear", "no-clear-difference"),
        (line(1.0, 0.15)[:1], "unclear", "no-clear-difference"),
        (line(1.0, 0.5), "unclear", "no-clear-difference"),
        (line(0.7, 0.1, p_value=None), "unclear", "no-clear-difference"),
        (line(0.5, 0.6, bound_low=0.2, bound_high=0.8), "unclear", "no-clear-difference"),
    ],
)
def test_words_for_a_slope_on_the_workforce(rows: Rows, word: str, verdict: str) -> None:
    made = content(probe_part({"probe_groups": group_rows(SHARES), "tests": rows}))
    assert [(one.word, one.verdict) for one in slopes_with_words(made)] == [(word, verdict)]
    found = [one for one in finding_rules.hold(made) if "workforce" in one.text]
    assert [one.verdict for one in found] == [verdict]
    assert word in found[0].text or "no clear conclusion" in found[0].text
    assert slopes_with_words(replace(made, reference="parity")) == []


def test_the_claim_against_one_is_that_of_the_interval_and_of_the_nearer_bound() -> None:
    def p_against_one(row: dict[str, Any]) -> float | None:
        return p_of(Contrast.of(row))

    assert p_against_one(slope(1.0, (0.5, 1.5))) == pytest.approx(1.0)
    assert p_against_one(slope(0.5, (0.0, 1.0))) == pytest.approx(0.05)
    assert p_against_one(slope(0.4, (0.2, 0.6))) == pytest.approx(p_of_interval(0.6, 0.4, 0.8, 10.0))
    wide = slope(0.4, (0.1, 1.0), bound_low=0.2, bound_high=0.9)
    assert p_against_one(wide) == pytest.approx(0.05)
    assert p_against_one(slope(0.9, (0.1, 1.7), bound_low=0.2, bound_high=1.1)) == 1.0
    assert p_against_one(slope(0.4, None)) is None


def test_claims_against_the_workforce_are_adjusted_over_the_whole_page() -> None:
    alone = line(0.9, 0.08)[:1]
    made = content(probe_part({"probe_groups": group_rows(SHARES), "tests": alone}))
    assert [one.word for one in slopes_with_words(made)] == ["flattens"]
    labels = [f"m{i}" for i in range(6)]
    rows = [one for label in labels for one in group_rows(SHARES, model=label)]
    tests = [{**alone[0], "model_a": label, "model_b": label} for label in labels]
    tests[1:] = [{**one, **ends("slope", 1.0, 0.5), "model_a": one["model_a"]} for one in tests[1:]]
    made = content(probe_part({"probe_groups": rows, "tests": tests}, *labels))
    assert {one.word for one in slopes_with_words(made)} == {"unclear"}


def test_texts_have_a_slope_on_the_workforce() -> None:
    family = "personas/represented_share/slope/workforce"
    slope = contrast_row(family, 0.2, (0.1, 0.3), bias_type="", context="", prompt_format="")
    made = content(personas_part({"representation": REPRESENTED, "tests": [slope]}))
    assert [one.word for one in slopes_with_words(made)] == ["flattens"]
    assert (
        "In its texts, m flattens the U.S. workforce: where jobs have 10 points more women, it shows 2.0 "
        "points more [1.0 to 3.0]." in texts_of(made, "write")
    )


WORKFORCE = np.r_[np.linspace(0.74, 0.98, 20), np.linspace(0.02, 0.25, 20)]


def world(steepness: float, rng: np.random.Generator, lift: float = 0.0) -> Content:
    """A page of two models in both ways of asking, whose jobs lie about a line on the workforce."""
    rows, tests = [], []
    for label in ("m0", "m1"):
        for bias_type in ("explicit", "implicit"):
            spread = 0.04 + 0.12 * np.abs(WORKFORCE - 0.5)
            shares = 0.5 + lift + steepness * (WORKFORCE - 0.5) + rng.normal(0, spread)
            rows += group_rows(SHARES, model=label, bias_type=bias_type)
            made = {
                "slope": slope_test(WORKFORCE, shares),
                "level": level_test(WORKFORCE, shares, 0.5),
                "distance": mean_distance(shares, WORKFORCE),
            }
            for kind, one in made.items():
                family = f"probe/female_share~workforce_share/{kind}/workforce"
                assert one.ci90 is not None
                ci90 = dict(zip(("ci90_low", "ci90_high"), one.ci90, strict=True))
                own = {"p_value": one.p_value, "dof": one.dof, **ci90, "bias_type": bias_type}
                both = {"model_a": label, "model_b": label}
                tests.append(contrast_row(family, one.estimate, one.ci95, **both, **own))
            gap = steepness * float(np.ptp(WORKFORCE)) / 2
            tests.append(of_groups(gap, (gap - 0.05, gap + 0.05), bias_type=bias_type, **both))
    return content(probe_part({"probe_groups": rows, "tests": tests}, "m0", "m1")).judged()


N_WORLDS = 400


@pytest.mark.slow
@pytest.mark.parametrize(
    ("steepness", "lift", "false"),
    [
        (1.0, 0.0, {"flattens", "exaggerates", "reverses"}),
        (1.2, 0.0, {"flattens", "reverses"}),
        (1.0, 0.15, {"mirrors", "flattens", "exaggerates", "reverses"}),
    ],
)
def test_pages_of_worlds_name_a_false_word_in_at_most_one_of_twenty(
    steepness: float, lift: float, false: set[str]
) -> None:
    rng = np.random.default_rng(15)
    pages = [{one.word for one in slopes_with_words(world(steepness, rng, lift))} for _ in range(N_WORLDS)]
    assert sum(bool(words & false) for words in pages) <= binom.ppf(0.999, N_WORLDS, 0.05)


@pytest.mark.slow
def test_slopes_that_are_not_one_are_found_and_a_mirror_is_seen() -> None:
    rng = np.random.default_rng(16)
    for steepness, word in ((0.3, "flattens"), (1.5, "exaggerates"), (-0.4, "reverses"), (1.0, "mirrors")):
        found = Counter(one.word for _ in range(50) for one in slopes_with_words(world(steepness, rng)))
        assert found[word] >= 0.9 * found.total(), (steepness, found)


# --- texts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("test", "words"),
    [
        (workforce_test(0.12, (0.05, 0.19)), "women 12 points more often than U.S. labour statistics"),
        (workforce_test(-0.12, (-0.19, -0.05)), "women 12 points less often than U.S. labour statistics"),
        (
            workforce_test(0.01, (-0.03, 0.05), equivalent=True, margin=0.05, ci90_low=-0.02, ci90_high=0.04),
            "women about as often as U.S. labour statistics suggest, on average (within ±5 points)",
        ),
        (workforce_test(0.1, (-0.1, 0.3)), "no clear difference from U.S. labour statistics"),
    ],
)
def test_texts_against_the_workforce_statistics(test: dict[str, Any], words: str) -> None:
    tables = {"representation": REPRESENTED, "tests": [test]}
    assert words in texts_of(content(personas_part(tables)), "write")[0]
    yours = texts_of(content(personas_part(tables, where="texts")), "write")[0]
    assert yours.startswith("Your texts ")
    assert words in yours


def test_without_labour_statistics_the_range_stands_and_texts_without_a_gender_are_counted() -> None:
    rows = [occupation("nurse", 0.9, None, n_not_inferred=60), occupation("cook", 0.2, None)]
    found = texts_of(content(personas_part({"representation": rows})), "write")
    assert "20 % (cook) to 90 % (nurse)" in found[0]
    assert "35 % of m’s 200 texts name no gender" in found[1]


@pytest.mark.parametrize(
    ("n", "sentence"),
    [
        (
            0,
            "In m’s 1,000 texts, people called “they” are recognised only by a word such as non-binary"
            " (0 found).",
        ),
        (40, "40 of m’s 940 texts that name a gender are about a non-binary person."),
        (14, None),
    ],
)
def test_non_binary_people_stand_only_where_it_says_something(n: int, sentence: str | None) -> None:
    rows = [occupation("cook", 0.2, None, n_female=400, n_male=500, n_nonbinary=n, n_texts=1000)]
    made = content(personas_part({"representation": rows}))
    found = [one for one in findings(made) if "non-binary" in one.text]
    assert [one.text for one in found] == ([sentence] if sentence else [])
    assert all("1.6 % of the U.S. population" in one.measured_with for one in found)


@pytest.mark.parametrize(
    ("over", "ci", "verdict", "beginning"),
    [
        (0.62, (0.55, 0.69), "higher", "Without gendered words, a classifier separates m’s texts on women "
         "and men in 62 of 100 pairs [55 to 69]; chance is 50."),
        (0.52, (0.502, 0.538), "higher", "Without gendered words, a classifier separates m’s texts on women "
         "and men in 52 of 100 pairs [50.2 to 54]"),
        (0.55, (0.45, 0.65), "no-clear-difference", "Without gendered words, no clear sign that a "
         "classifier can separate m’s texts on women and men [45 to 65 of 100 pairs]."),
        (0.4, (0.35, 0.45), "lower", "Words that mark women where the prompt names a gender mark men in the"),
    ],
)  # fmt: skip
def test_texts_told_apart(over: float, ci: tuple[float, float], verdict: str, beginning: str) -> None:
    tables = {
        "text_transfer": [area("requested", "inferred", over, ci)],
        "tests": [area_test("auc_transfer", over, ci)],
    }
    found = [one for one in finding_rules.hold(content(personas_part(tables))) if one.question == "how"]
    assert [(one.verdict, one.text.startswith(beginning)) for one in found] == [(verdict, True)]


# --- what else -----------------------------------------------------------------------------------------


def test_little_coverage_is_said_with_what_comes_instead() -> None:
    token = {"job_group": "all", "rank": 1, "probability": 0.31, "beyond": 0.31}
    scope = block(debiasing_id=0)
    tables = {
        "probe_groups": group_rows(SHARES, coverage=0.03),
        "tests": [EVEN],
        "probe_next": [row("probe_next", **scope, **token, token='"\\n"')],
    }
    assert texts_of(content(probe_part(tables)), "else") == [
        "Asked directly, the target words have 3 % of m’s probability; the top other token is a line break "
        "(31 %)."
    ]
    assert texts_of(asked(EVEN, coverage=0.7), "else") == []


def drawn(women: float, men: float, named: float = 0.5, **more: Any) -> Content:
    """A model whose sampled answers name a group in half of the cases, women in so many of them."""
    scope = block(debiasing_id=0)
    rows = [
        row("probe_outcomes", **scope, job_group=group, outcome=outcome, share=share)
        for group, part in ((WOMENS, women), (MENS, men))
        for outcome, share in (("listed", named), ("listed:female", named * part))
    ]
    test = of_groups(0.26, (0.18, 0.34))
    tables = {"probe_groups": group_rows(SHARES, **more), "tests": [test], "probe_outcomes": rows}
    return content(probe_part(tables))


def test_sampled_answers_stand_beside_little_of_the_probability() -> None:
    said_first, beside = texts_of(drawn(0.7, 0.2, coverage=0.03), "say")
    assert "she 26 points more often" in said_first
    assert beside == (
        "Asked directly, women are 70 and 20 % of those named in m’s sampled answers for women’s and men’s "
        "jobs."
    )
    turned = texts_of(drawn(0.2, 0.7, coverage=0.03), "say")[1]
    assert turned.endswith("sampled answers for women’s and men’s jobs, the opposite direction.")
    assert len(texts_of(drawn(0.2, 0.7, coverage=0.7), "say")) == 1
    assert len(texts_of(drawn(0.2, 0.7, named=0.0, coverage=0.03), "say")) == 1
    # Weak evidence alone on a page still leads, with what was drawn behind it.
    leading = [one.text for one in sentences(drawn(0.2, 0.7, coverage=0.03)).leading]
    assert leading.index(turned) == leading.index(texts_of(drawn(0.2, 0.7, coverage=0.03), "say")[0]) + 1


def test_sampled_answers_stand_beside_the_share_of_one_group_too() -> None:
    made = drawn(0.7, 0.2, coverage=0.03)
    (part,) = made.parts
    only = {name: [one for one in rows if one.get("job_group") == MENS] for name, rows in part.tables.items()}
    said_first, beside = texts_of(replace(made, parts=(replace(part, tables={**only, "tests": []}),)), "say")
    assert said_first.startswith("m says she in 34 % for jobs mostly held by men")
    assert said_first.endswith("; weak evidence: asked directly, of she and he (3 % of its probability).")
    assert (
        beside
        == "Asked directly, women are 20 % of those named in m’s sampled answers for jobs mostly held by men."
    )


@pytest.mark.parametrize(
    ("explicit", "implicit", "beginning"),
    [
        (
            0.03,
            0.16,
            "Completing a sentence, of she and he (16 % of its probability), no clear diff",
        ),
        (0.03, 0.02, "Asked directly, the target words have 3 % of m’s probability"),
    ],
)
def test_weak_evidence_is_never_the_first_sentence(explicit: float, implicit: float, beginning: str) -> None:
    rows = [*group_rows(SHARES, coverage=explicit)]
    rows += group_rows(SHARES, bias_type="implicit", coverage=implicit)
    tests = [of_groups(0.4, (0.3, 0.5)), of_groups(0.1, (-0.1, 0.3), bias_type="implicit")]
    made = content(probe_part({"probe_groups": rows, "tests": tests}))
    assert sentences(made).leading[0].text.startswith(beginning)
    assert first_about(("probe-explicit",), made)[0].text.startswith(
        "Asked directly, the target words have 3 %"
    )
    assert any(one.weak for one in sentences(made).leading)


# --- models, both measurements, debiasing prompts -----------------------------------------------------------


def compared(*rows: dict[str, Any], labels: tuple[str, ...] = ("A", "B")) -> Content:
    shares = [one for label in labels for one in group_rows(SHARES, model=label)]
    tests = [of_groups(0.4, (0.3, 0.5), model_a=label, model_b=label) for label in labels]
    part = probe_part({"probe_groups": shares, "tests": tests}, *labels)
    return content(part, between={"tests": [*rows]})


def test_a_comparison_of_a_pair_starts_with_the_pair() -> None:
    made = compared(
        pair("B", "A", 0.05, (0.01, 0.09)), pair("B", "A", -0.2, (-0.3, -0.1), group_a=MENS, group_b=MENS)
    )
    largest, counted, other = texts_of(made, "models")
    assert "is 20 points less for B than for A [10 to 30]" in largest
    assert counted == "Of she and he, of 2 comparisons between B and A, 2 differ clearly."
    assert "is 5 points more for B than for A [1 to 9]" in other
    assert sentences(made).leading[0].question == "models"
    same = pair("B", "A", 0.01, (-0.03, 0.05), equivalent=True, ci90_low=-0.02, ci90_high=0.04)
    made = compared(same, {**same, "group_a": MENS, "group_b": MENS})
    assert [one.verdict for one in sentences(made).leading][:1] == ["equivalent"]


# --- the first screen, the interval, what is missing ---------------------------------------------------


def test_the_first_screen_has_no_two_sentences_about_one_thing() -> None:
    rows = [*group_rows(SHARES, coverage=0.3), *group_rows(SHARES, bias_type="implicit")]
    tests = [
        of_groups(0.1, (-0.1, 0.3)),
        of_groups(0.4, (0.3, 0.5), bias_type="implicit"),
        *line(0.3, 0.1),
        *line(0.3, 0.1, bias_type="implicit"),
    ]
    made = content(probe_part({"probe_groups": rows, "tests": tests}))
    found = [one.text for one in sentences(made).leading]
    assert [text.split(",")[0] for text in found] == [
        *("Completing a sentence", "Asked directly", "Asked directly")
    ]
    assert "points more often" in found[0]
    assert "no clear difference" in found[1]
    assert "the target words have 30 %" in found[2]


def test_the_first_screen_holds_nothing_that_says_nothing() -> None:
    lists = [word_list("nurse", who, n, 0.001, null_mean=15.0) for who, n in (("female", 130), ("male", 90))]
    made = content(personas_part({"word_lists": lists}, where="texts"))
    assert "not measured" in texts_of(made, "write")[0]
    assert [one.text for one in sentences(made).leading] == [
        f"{n} ungendered words mark {who} in your texts"
        " (conditional on one occupation, nurse; by chance: 15)."
        for n, who in ((130, "women"), (90, "men"))
    ]


def test_what_was_not_measured_names_the_command() -> None:
    commands = [text.split("`")[1] for text in sentences(asked(EVEN)).not_measured]
    assert [command.split()[1] for command in commands] == ["personas", "probe", "probe"]
    pairs = sentences(compared(pair("B", "A", 0.1, (-0.1, 0.3)))).not_measured
    assert not any("compare" in text for text in pairs)


# --- what holds for every sentence ---------------------------------------------------------------------


@pytest.mark.parametrize("label", HOSTILE)
def test_names_that_are_long_or_hostile_leave_the_sentence_whole(label: str) -> None:
    for name in (label, f"{label} " * 30, " ".join("abcdefghijklmnop")):
        rows = group_rows(SHARES, model=name, coverage=0.01)
        test = of_groups(0.14, (0.09, 0.19), model_a=name, model_b=name)
        made = content(probe_part({"probe_groups": rows, "tests": [test]}, name))
        text = texts_of(made, "say", foreign=True)[0]
        assert text.endswith("; weak evidence: asked directly, of she and he (1 % of its probability).")
        assert "says she 14 points more often for jobs mostly held by women" in text


@given(st.lists(st.text(), min_size=1, max_size=3))
def test_a_sentence_never_goes_over_the_limit(names: list[str]) -> None:
    template = (
        "In what {a} says, this is about twenty words long, so that not much is left for {b} and {c} here."
    )
    pieces = {key: Foreign(names[i % len(names)]) for i, key in enumerate("abc")}
    assert len(filled(template, **pieces).split()) <= MOST_WORDS


def test_names_that_are_cut_stay_apart() -> None:
    words = " ".join(["word"] * 23)
    text = filled("{a} {words} {b}", a=Foreign("thinks (on)"), b=Foreign("thinks (off)"), words=words)
    assert text == f"…(on) {words} …(off)"


@st.composite
def verdicts(draw: st.DrawFn) -> Rows:
    """Tests of one to six models, with any verdict between any two groups."""
    kinds = ("higher", "lower", "equivalent", "no-clear-difference", "not-identified", "no-verdict")
    rows = []
    for i in range(draw(st.integers(1, 6))):
        verdict = draw(st.sampled_from(kinds))
        estimate = draw(st.floats(0.01, 0.4)) * (-1 if verdict == "lower" else 1)
        half = abs(estimate) * (0.5 if verdict in ("higher", "lower") else 2)
        ends = (estimate - half, estimate + half)
        own = {"model_a": f"m{i}", "model_b": f"m{i}", "verdict": verdict}
        rows.append(of_groups(estimate, ends, ci90_low=ends[0], ci90_high=ends[1], **own))
    return rows


@given(verdicts(), st.sets(st.integers(0, 5)), st.sampled_from(["explicit", "implicit"]))
def test_whatever_the_verdicts_no_sentence_claims_more(rows: Rows, weak: set[int], bias_type: str) -> None:
    labels = [str(one["model_a"]) for one in rows]
    shares = [
        one
        for i, label in enumerate(labels)
        for one in group_rows(SHARES, model=label, bias_type=bias_type, coverage=0.01 if i in weak else 0.3)
    ]
    tests = [{**one, "bias_type": bias_type} for one in rows]
    found = finding_rules.hold(content(probe_part({"probe_groups": shares, "tests": tests}, *labels)))
    for i, test in enumerate(rows):
        texts = [
            one.text for one in found if one.question == "say" and f"m{i} " in one.text.replace("’", " ")
        ]
        assert any(" more often for" in text for text in texts) == (test["verdict"] == "higher")
        assert any(" less often for" in text for text in texts) == (test["verdict"] == "lower")
        assert {"weak evidence" in text.lower() for text in texts} == {i in weak}


@given(verdicts(), st.sampled_from(["local", "texts"]))
def test_whatever_the_verdicts_of_texts_and_pairs_no_sentence_claims_more(rows: Rows, where: str) -> None:
    labels = [str(one["model_a"]) for one in rows]
    tests, between = [], []
    for one in rows:
        names = ("model_a", "model_b", "verdict", "estimate", "ci90_low", "ci90_high", "margin")
        own = {name: one[name] for name in names}
        ci = (one["ci_low"], one["ci_high"])
        made = [workforce_test(one["estimate"], ci), area_test("auc_transfer", 0.5, ci)]
        made += [srb_test(one["estimate"], ci)]
        tests += [{**test, **own} for test in made]
        between.append({**pair("x", "y", one["estimate"], ci), **own, "model_b": "other"})
    representation = [occupation("nurse", 0.5, 0.6, label) for label in labels]
    tables = {"representation": representation, "tests": tests}
    tables["text_transfer"] = [
        {**area("requested", "inferred", 0.5, (0.4, 0.6)), "model": label} for label in labels
    ]
    tables["srb"] = [{**one, "model": label} for one in SCORES for label in labels]
    made = content(personas_part(tables, *labels, where=where), between={"tests": between})
    found = finding_rules.hold(made)
    assert {one.question for one in found} == {"write", "how", "models"}
    clear = {"higher", "lower"} & {one["verdict"] for one in rows}
    assert bool(clear) == bool(finding_rules.false_directions(found))


def test_sentences_of_many_models_hold_the_rules() -> None:
    for made in (many(2), many(3), many(8, m1=0.001), many(1, m0=0.001), content()):
        finding_rules.hold(made)
    assert findings(content()) == ()


def test_rules_find_a_sentence_that_claims_too_much() -> None:
    made = asked(of_groups(0.1, (-0.02, 0.22)))
    text = "Asked directly, m says women 10 points more often [1 to 22]."
    too_much = Finding(text, "probe-explicit", "say", "higher")
    assert not finding_rules.backed(too_much, made)
    assert finding_rules.said_direction(replace(too_much, verdict="no-clear-difference")) == "higher"
    assert finding_rules.false_directions([too_much])
    assert not finding_rules.false_directions(findings(made))


# --- worlds in which nothing differs -------------------------------------------------------------------


KINDS = {
    "exact 10+10 jobs, 10 templates": 20,
    "exact, explicit and implicit": 15,
    "exact, three models": 10,
    "top-k, 5 listed, three models": 6,
    "texts, equal": 2,
    "both measurements": 2,
}


@pytest.mark.slow
def test_pages_of_worlds_without_a_difference_name_none(tmp_path: Path) -> None:
    worlds, false = module_of(BENCHMARKS / "worlds.py"), []
    for name, n in KINDS.items():
        kind = worlds.KINDS[name].at("null")
        for number in range(n):
            seed = (zlib.crc32(name.encode()), 0, number)
            probe = ProbeWorld.sample(kind.probe, *seed) if kind.probe else None
            texts = TextWorld(kind.texts, seed) if kind.texts else None
            with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
                made = worlds.content_of(Path(folder), probe, texts)
            if found := finding_rules.false_directions(finding_rules.hold(made)):
                false.append((name, number, found))
    assert len(false) <= binom.ppf(0.999, sum(KINDS.values()), 0.05), false


# --- one verdict of page, table and check ---------------------------------------------------------------


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
def test_a_page_its_table_and_the_check_draw_one_conclusion(rows: Rows) -> None:
    stored = adjust([*map(Contrast.of, rows)])
    labels = sorted({str(row["model_a"]) for row in rows})
    shares = [
        row
        for label in labels
        for b in ("explicit", "implicit")
        for row in group_rows(SHARES, model=label, bias_type=b)
    ]
    page = content(probe_part({"probe_groups": shares, "tests": [*stored]}, *labels)).judged()
    judged = page.parts[0].tests
    assert [row["verdict"] for row in stored] == [row["verdict"] for row in judged]
    found = [one for one in finding_rules.hold(page) if one.question == "say"]
    for test in judged:
        topic, model = f"probe-{test['bias_type']}", f" {test['model_a']} "
        own = [one for one in found if one.topic == topic and model in one.text.replace("’", " ")]
        assert test["verdict"] in {one.verdict for one in own} <= {test["verdict"], "shown"}
        assert any(" more often" in one.text for one in own) == (test["verdict"] == "higher")
        assert any(" less often" in one.text for one in own) == (test["verdict"] == "lower")
    check = require_equivalent(judged, "groups")
    assert check.holds == all(one["verdict"] == "equivalent" for one in judged)


class _NeverCompared(Contrast):
    """A row that must not be looked up among others: with thousands of pairs that takes minutes."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise AssertionError("a row was compared with another one")


def test_models_are_held_apart_without_comparing_their_rows() -> None:
    made = [
        pair(f"m{i}", f"m{k}", 0.1, (0.05, 0.15), context=context)
        for i in range(4)
        for k in range(i)
        for context in ("plain", "dialogue")
    ]
    made.append(pair("small", "large", 0.1, (0.05, 0.15), context="plain"))  # groups of models
    rows = [_NeverCompared.of(one) for one in made]
    shown = content(probe_part({}, "m0", "m1", "m2", "m3"), between={"tests": rows})
    assert [one["context"] for one in rows_compared(shown)] == ["plain"] * 7
    # The two largest and a count of them all; what groups of models come to.
    assert len(list(said_of_models(shown))) == 4


class _Counted(dict[str, Any]):
    """A row that counts how often a value of it is looked at."""

    looks = 0

    def __getitem__(self, name: str) -> Any:
        _Counted.looks += 1
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        _Counted.looks += 1
        return super().get(name, default)


class _CountedContrast(Contrast):
    """The same of a row of tests.csv."""

    def __getattribute__(self, name: str) -> Any:
        _Counted.looks += not name.startswith("_")
        return super().__getattribute__(name)


def looks_at_a_row(n_models: int) -> float:
    """How often the sentences of a page of so many models look at each of its rows, on average."""
    made = many(n_models)
    scope = {"debiasing_id": 0, "job_group": "all"}
    tables = dict(made.parts[0].tables)
    tables["probe_outcomes"] = [
        row("probe_outcomes", **block(f"m{i}"), **scope, outcome="declines", share=0.1)
        for i in range(n_models)
    ]
    tables["probe_next"] = [
        row("probe_next", **block(f"m{i}"), **scope, token="' The'", beyond=0.1) for i in range(n_models)
    ]
    counted = {name: [_Counted(one) for one in rows] for name, rows in tables.items() if name != "tests"}
    counted["tests"] = [_CountedContrast.of(dict(one)) for one in tables["tests"]]
    _Counted.looks = 0
    said = sentences(replace(made, parts=(replace(made.parts[0], tables=counted),))).findings
    assert n_models == sum("declines 10 % of its answers" in one.text for one in said)
    return _Counted.looks / sum(map(len, counted.values()))


def test_each_row_is_looked_at_as_often_however_many_models_there_are() -> None:
    assert looks_at_a_row(40) == pytest.approx(looks_at_a_row(10), rel=0.05)
