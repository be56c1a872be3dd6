"""What is said of framing and wording: in a run of a scripted model, in tables, sentences and on the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fakes.finding_rules import hold
from fakes.findings_rows import SHARES, block, content, contrast_row, group_rows, probe_part, row

from biaskit.report.findings import Finding
from biaskit.stats.contrasts import adjust
from biaskit.workflow.analyze import analyse
from biaskit.workflow.probe import ProbeResult, probe

WOMEN, MEN = "female-dominated", "male-dominated"
JOBS = "1-3,21-23"
Row = dict[str, Any]


def scripted(folder: Path, *lines: tuple[str, float]) -> str:
    """A model that gives women more where a prompt holds a text; its first such line counts."""
    rows = [
        {"contains": text, "log_probs": {" She": share - 1.0, " He": -1.0 - share, " Female": share - 2.0}}
        for text, share in lines
    ]
    path = folder / "m.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), "utf-8")
    return f"m=scripted:{path}"


@pytest.fixture(scope="module")
def framing(tmp_path_factory: pytest.TempPathFactory) -> ProbeResult:
    folder = tmp_path_factory.mktemp("framing")
    model = scripted(folder, ("gender fairness", 0.3), ("", 0.0))
    return probe(model, study="framing", jobs=JOBS, templates="1-12", out=folder / "run")


@pytest.fixture(scope="module")
def wording(tmp_path_factory: pytest.TempPathFactory) -> ProbeResult:
    folder = tmp_path_factory.mktemp("wording")
    model = scripted(folder, ("Recall", 0.1), ("kindergarten", 0.3), ("", 0.0))
    return probe(model, study="wording", bias_type="implicit", jobs=JOBS, out=folder / "run")


def test_a_run_of_framing_has_its_arms_its_effects_and_its_tables(framing: ProbeResult) -> None:
    assert set(framing.factors["arm"]) == {
        f"fairness={fairness}, asks={asks}"
        for fairness in ("unmentioned", "mentioned")
        for asks in ("description", "gender")
    }
    tests = framing.tests
    found = tests[tests.family.str.endswith("crossed/factors") & (tests.gender == "female")]
    by_name = found.set_index(["instruction_a", "group_a", "group_b"])["estimate"]
    assert by_name["fairness=mentioned", WOMEN, WOMEN] > 0.1
    assert by_name["asks=gender", WOMEN, WOMEN] == pytest.approx(0.0)
    titles = [table.title for table in framing.document().tables]
    assert "Framings, m, implicit prompts: % of the probability on the listed words" in titles
    assert "What framing changes in the share of women, m, implicit prompts" in titles
    assert any("4 framings (implicit prompts)" in note for note in framing.warnings)


def test_a_run_of_wording_says_how_much_is_wording(wording: ProbeResult) -> None:
    rows = wording.wording
    pairs = rows[(rows.group_b == MEN) & (rows.gender == "female")]
    assert list(pairs.frame) == ["met", "friend", "neighbor", "day", "all"]
    (table,) = [t for t in wording.document().tables if t.title.startswith("Wording, m, implicit")]
    # One of 40 differs: B = W, so the ends are 10/(1/F + 9), F 0.071 and 3.5 as F(3, 36) has them.
    assert "100 % [43–100] of the variance between templates is wording." == table.note
    # One paraphrase says the same of every job: there the difference is 0 and has no sign.
    assert [line[4] for line in table.rows] == ["9 of 10", *["10 of 10"] * 3, "39 of 40"]
    assert [line[0] for line in table.rows] == ["met", "friend", "neighbor", "day", "every frame"]
    assert any("take each wording as drawn by itself" in note for note in wording.warnings)


def test_a_manifest_is_enough_to_make_both_tables_again(framing: ProbeResult, wording: ProbeResult) -> None:
    for result, name in ((framing, "probe_factors"), (wording, "probe_wording")):
        path = result.path / "tables" / f"{name}.csv"
        before = path.read_bytes()
        path.unlink()
        analyse(result.path)
        assert before == path.read_bytes()


# --- sentences ---------------------------------------------------------------------------------------


def effect(a: str, b: str, estimate: float | None, ci: tuple[float, float] | None, **more: Any) -> Row:
    named = {"instruction_a": a, "instruction_b": b, "group_a": WOMEN, "group_b": WOMEN}
    return contrast_row("probe/share/crossed/factors", estimate, ci, **{**named, **more})


def said_of(tables: dict[str, Any], words: str) -> list[Finding]:
    found = hold(content(probe_part({"probe_groups": group_rows(SHARES), **tables})))
    return [one for one in found if words in one.text]


@pytest.mark.parametrize(
    ("between", "verdict", "sentence"),
    [
        (
            *((-0.05, (-0.09, 0.01)), "no-clear-difference"),
            "Asked outright, no clear change by “fairness=mentioned” of the lead of jobs mostly held by "
            "women over men’s.",
        ),
        (
            *((-0.2, (-0.25, -0.15)), "lower"),
            "Asked outright, “fairness=mentioned” lowers the lead of jobs mostly held by women over men’s by "
            "20 points [15 to 25].",
        ),
        (
            *((1.2, (1.05, 1.4)), "higher"),
            "Asked outright, “fairness=mentioned” raises the lead of jobs mostly held by women over men’s by "
            "120 points [105 to 140].",
        ),
    ],
)
def test_a_sentence_says_what_framing_does(between: Any, verdict: str, sentence: str) -> None:
    a, b = "fairness=mentioned", "fairness=unmentioned"
    rows = [effect(a, b, 0.03, (-0.01, 0.06)), effect(a, b, *between, group_b=MEN)]
    (one,) = said_of({"tests": adjust(rows)}, "fairness")
    assert (one.verdict, one.text, one.question) == (verdict, sentence, "help")


def test_a_clear_change_in_one_group_is_said_where_the_difference_shows_none() -> None:
    a, b = "fairness=mentioned", "fairness=unmentioned"
    rows = [effect(a, b, 0.1, (0.05, 0.15)), effect(a, b, 0.0, (-0.1, 0.1), group_b=MEN)]
    (one,) = said_of({"tests": adjust(rows)}, "fairness")
    assert one.text.startswith("Asked outright, “fairness=mentioned” makes m say women 10 points more often")


def test_several_models_share_a_sentence_of_a_factor() -> None:
    a, b = "fairness=mentioned", "fairness=unmentioned"
    rows = [
        effect(a, b, x, (x - 0.05, x + 0.05), group_b=MEN, model_a=m) for m, x in (("m", 0.2), ("n", 0.0))
    ]
    groups = [*group_rows(SHARES), *group_rows(SHARES, model="n")]
    found = hold(content(probe_part({"probe_groups": groups, "tests": adjust(rows)}, "m", "n")))
    (one,) = [one for one in found if one.question == "help"]
    assert one.verdict == "shown"
    assert one.text == (
        "Asked outright, 1 of 2 models shows a larger lead of jobs mostly held by women over men’s under "
        "“fairness=mentioned”; 1 unclear."
    )


@pytest.mark.parametrize(
    ("estimate", "half", "verdict", "words"),
    [
        (0.2, 0.05, "higher", "what “a where b=x” and “a where b=y” change lies 20 points apart [15 to 25]."),
        (0.02, 0.05, "no-clear-difference", "no clear difference between what “a where b=x” and"),
    ],
)
def test_interactions_have_a_sentence(estimate: float, half: float, verdict: str, words: str) -> None:
    ends = (estimate - half, estimate + half)
    one = effect("a where b=x", "a where b=y", estimate, ends, group_b=MEN)
    one["family"] = "probe/share/crossed/interactions"
    (found,) = said_of({"tests": adjust([one])}, "where")
    assert (found.verdict, words in found.text) == (verdict, True)


def test_a_sentence_of_framing_is_not_measured_without_an_estimate() -> None:
    rows = [effect("a=x", "a=y", None, None, reason="no template")]
    (one,) = said_of({"tests": adjust(rows)}, "a=x")
    assert (one.verdict, one.text.endswith("is not measured (no template).")) == ("not-measured", True)


def test_effects_under_an_instruction_stand_in_the_file_alone() -> None:
    rows = [effect("1: a=x", "1: a=y", 0.1, (0.05, 0.15))]
    assert not said_of({"tests": adjust(rows)}, "a=x")


def wording_row(**more: Any) -> Row:
    numbers = {"mean": 0.07, "least": -0.06, "greatest": 0.26, "n_wordings": 40, "n_same_sign": 36}
    pair = {"group_a": WOMEN, "group_b": MEN, "gender": "female", "frame": "all", "instruction_id": 0}
    share = {"wording_share": 0.66, "wording_share_low": 0.11, "wording_share_high": 0.93}
    return row("probe_wording", **block(), **{**pair, **numbers, **share, **more})


def test_a_sentence_says_what_wording_does() -> None:
    (one,) = said_of({"probe_wording": [wording_row()]}, "paraphrases")
    assert one.text == (
        "Asked outright, m’s difference between jobs mostly held by women and men’s goes one way in 36 of 40 "
        "paraphrases."
    )
    assert "−6 to 26 points from one paraphrase to another; 66 % [11–93] of the variance" in one.measured_with
    missing = wording_row(mean=None, n_same_sign=None, wording_share=None, reason="no template")
    (one,) = said_of({"probe_wording": [missing]}, "wording")
    assert (one.verdict, "is not measured (no template)" in one.text) == ("not-measured", True)
