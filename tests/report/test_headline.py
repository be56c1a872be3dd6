"""The first screen as plain text: bars, intervals, first findings, never wider than the terminal.

The numbers expected are those of the rows that stand below.
"""

from __future__ import annotations

import re
import unicodedata

import pytest
from fakes.findings_rows import (
    HOSTILE,
    MENS,
    REPRESENTED,
    SCORES,
    SHARES,
    Rows,
    content,
    group_rows,
    many,
    occupation,
    of_groups,
    pair,
    personas_part,
    probe_part,
    score,
    slope,
    srb_test,
    workforce_test,
)
from hypothesis import given
from hypothesis import strategies as st

from biaskit.report.content import Content
from biaskit.report.render.headline import headline
from biaskit.report.render.text import cell_width
from biaskit.tables.quantities import SHARES as COLUMNS


def one_model() -> Content:
    """Both measurements, one model, implicit shares on weak evidence."""
    groups = [*group_rows(SHARES), *group_rows(SHARES, bias_type="implicit", coverage=0.002)]
    probe = {"probe_groups": groups, "tests": [of_groups(0.26, (0.18, 0.34)), slope(0.24, (0.09, 0.36))]}
    tests = [workforce_test(0.03, (-0.4, 0.46)), srb_test(-0.5, (-0.6, -0.4))]
    return content(
        probe_part(probe), personas_part({"representation": REPRESENTED, "srb": SCORES, "tests": tests})
    )


def two_models() -> Content:
    """The prober alone, one share that was not measured, a wide label, a comparison."""
    groups: Rows = [*group_rows(SHARES, model="大規模言語モデル・東京"), *group_rows(SHARES, model="gpt")]
    for one in groups:
        if one["model"] == "gpt" and one["job_group"] == MENS:
            one |= dict.fromkeys(("share", "ci_low", "ci_high", *COLUMNS[True]))
            one["reason"] = "no complete template"
    between = {"tests": [pair("gpt", "大規模言語モデル・東京", 0.05, (0.01, 0.09))]}
    part = probe_part({"probe_groups": groups, "tests": []}, "大規模言語モデル・東京", "gpt")
    return content(part, between=between)


def none_eligible() -> Content:
    """Texts alone: no occupation has a share of women or an SRB."""
    reason = "prompt persona has 2 texts of women and 0 of men"
    scores = [
        score(name, gender, None, None, reason=reason)
        for name in ("nurse", "cook")
        for gender in ("female", "male")
    ]
    rows = [
        occupation(name, None, 0.5, reason="no text with an inferred gender") for name in ("nurse", "cook")
    ]
    return content(personas_part({"representation": rows, "srb": scores}))


CASES = {"one-model": one_model, "two-models": two_models, "none-eligible": none_eligible}


SAID = {
    "one-model": (
        *("60 [50–70]", "34 [24–44]", "60 [50–70] *", "34 [24–44] *", "20 to 90", "3 [−40 to 46]"),
        *("−0.50 [−0.60 to −0.40]", "she 26 points more often", "[17 to 35]"),
        *("less than 10 % of the probability (coverage)", "2.4 points more [0.9 to 3.6]"),
        *("[−40 to 46 points]", "3 more findings in the report."),
        "Brackets: intervals of at least 95 %.",
    ),
    "two-models": (
        *("60 [50–70]", "34 [24–44]", "not measured: no complete template"),
        *("is 5 points more for gpt", "[1 to 9]"),
    ),
    "none-eligible": ("SRB not measured", "no text with an inferred gender"),
}
"""Numbers of the stored rows, as a reader must find them."""


@pytest.mark.parametrize("name", CASES)
def test_every_number_is_on_the_screen(name: str) -> None:
    shown = " ".join(headline(CASES[name]()).split())
    assert [] == [said for said in SAID[name] if said not in shown]


def fits(text: str, width: int) -> None:
    for line in text.split("\n"):
        assert cell_width(line) <= width, line
        assert line == line.rstrip()
        assert not [c for c in line if unicodedata.category(c)[0] == "C"]


@pytest.mark.parametrize("width", [60, 80, 100, 200])
@pytest.mark.parametrize("name", CASES)
def test_no_line_is_wider_than_the_terminal(name: str, width: int) -> None:
    fits(headline(CASES[name](), width=width), width)


@given(
    st.text(st.characters(exclude_categories=("C",)), min_size=1, max_size=30)
    | st.text(
        st.characters(min_codepoint=0x1100, max_codepoint=0xD7A3, exclude_categories=("C",)),
        min_size=1,
        max_size=30,
    )
)
def test_no_label_breaks_a_line_or_the_columns(label: str) -> None:
    groups = group_rows(SHARES, model=label)
    texts = {"representation": [occupation(label, 0.3, 0.5, label)], "srb": []}
    made = content(
        probe_part({"probe_groups": groups, "tests": []}, label, study=label), personas_part(texts, label)
    )
    shown = headline(made)
    fits(shown, 80)
    assert 1 == sum("60 [50" in line for line in shown.split("\n"))


@pytest.mark.parametrize("label", HOSTILE)
def test_hostile_labels_stay_in_their_cell(label: str) -> None:
    made = content(probe_part({"probe_groups": group_rows(SHARES, model=label), "tests": []}, label))
    fits(headline(made), 80)
    assert 1 == sum("60 [50" in line for line in headline(made).split("\n"))


def test_twenty_models_have_a_line_each_and_few_sentences() -> None:
    shown = headline(many(20)).split("\n")
    assert 20 == sum(line.startswith("m") and "explicit" in line for line in shown)
    assert 5 == sum(line.startswith("- ") for line in shown), "a headline, five more, and how many are left"
    assert any(re.match("[0-9]+ more findings in the report", line) for line in shown)
    assert len(shown) < 60


def test_two_prompt_formats_have_a_table_each() -> None:
    groups = group_rows(SHARES, model="A") + group_rows(SHARES, model="B", prompt_format="chat-continue")
    shown = headline(content(probe_part({"probe_groups": groups, "tests": []}, "A", "B"))).split("\n")
    titles = [line for line in shown if line.startswith("occugender, ")]
    assert [title.split(":")[0] for title in titles] == [
        *("occugender, raw prompts", "occugender, chat-continue prompts")
    ]


def test_weak_evidence_comes_last() -> None:
    """And the format stands above numbers of one form, too."""
    groups = group_rows(SHARES, coverage=0.03) + group_rows(SHARES, bias_type="implicit")
    lines = headline(content(probe_part({"probe_groups": groups, "tests": []}))).split("\n")
    assert lines[0].startswith("Completing a sentence, of she and he, m says")
    assert any(line.startswith("occugender, raw prompts: ") for line in lines)
    assert ["implicit", "explicit"] == [line.split()[1] for line in lines if re.match("m +[ie]", line)]


def test_undefined_numbers_are_dashes_with_a_reason() -> None:
    shown = headline(none_eligible())
    line = next(line for line in shown.split("\n") if line.startswith("m "))
    assert line.split() == ["m", "–", "–", "–"]
    flowing = " ".join(shown.split())
    assert "– women's share not measured: no text with an inferred gender." in flowing
    assert "– SRB not measured: prompt persona has 2 texts of women and 0 of men." in flowing
    assert " 0 " not in line


def test_nothing_measured() -> None:
    assert headline(content()) == "Nothing was measured."
    assert headline(content(probe_part({}))) == "Nothing was measured."
