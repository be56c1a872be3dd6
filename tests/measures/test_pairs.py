"""Pairs of sentences from a list to tables, findings, figures and exports."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import biaskit as bk
from biaskit.errors import BiaskitError, RunError, StudyError
from biaskit.measures.pairs.analysis import group_rows, score_of
from biaskit.records import SentencePair
from biaskit.workflow.analyze import rebuild_tables

QUIET = {"watcher": bk.Silent()}
JOBS = {
    "nurse": "female",
    "cook": "female",
    "cashier": "female",
    "welder": "male",
    "pilot": "male",
    "smith": "male",
}
LANGUAGES = {"en": ("The {} said she won.", "The {} said he won."), "x": ("La {} vinci.", "Lo {} vinci.")}
Row = dict[str, Any]


def rows(jobs: Mapping[str, str] = JOBS, languages: Sequence[str] = ("en", "x"), n: int = 2) -> list[Row]:
    """Pairs of `n` items of each job in each language."""
    return [
        {
            "item": f"{job}-{i}",
            "female": LANGUAGES[language][0].format(f"{job} {i}"),
            "male": LANGUAGES[language][1].format(f"{job} {i}"),
            "stereotype": job,
            "direction": direction,
            "language": language,
        }
        for job, direction in jobs.items()
        for i in range(n)
        for language in languages
    ]


def log_odds(row: Row, step: int) -> float:
    """What the scripted model makes of a pair: its stereotype's side, and a little of its own."""
    return (1.0 if row["direction"] == "female" else -1.5) + 0.3 * math.sin(step)


def script(
    home: Path, pairs: Sequence[Row], name: str = "m", odds: Any = log_odds, diverse: float | None = None
) -> str:
    said = {}
    for step, row in enumerate(pairs):
        said[row["female"]], said[row["male"]] = -40.0 + odds(row, step), -40.0
        if row.get("diverse"):
            said[row["diverse"]] = diverse
    (home / f"{name}.jsonl").write_text(json.dumps({"contains": "", "log_probs": said}) + "\n", "ascii")
    return f"{name}=scripted:{home / f'{name}.jsonl'}"


@pytest.fixture
def probed(tmp_path: Path) -> bk.PairsResult:
    pairs = rows()
    return bk.pairs(script(tmp_path, pairs), pairs=pairs, out=tmp_path / "run", **QUIET)


def group(result: bk.PairsResult, language: str = "all", stereotype: str = "all") -> Row:
    table = result.pair_groups
    [row] = table[(table.language == language) & (table.stereotype == stereotype)].to_dict("records")
    return row


# --- numbers ---------------------------------------------------------------------------------------------


def test_shares_are_the_logistic_of_the_log_ratio(probed: bk.PairsResult) -> None:
    for step, (row, found) in enumerate(zip(rows(), probed.pair_scores.to_dict("records"), strict=True)):
        assert found["log_ratio"] == pytest.approx(log_odds(row, step))
        assert found["female_share"] == pytest.approx(1 / (1 + math.exp(-log_odds(row, step))))
        assert (found["item"], found["language"]) == (row["item"], row["language"])
        assert found["expected"] == (found["log_ratio"] > 0) == (row["direction"] == "female") or (
            row["direction"] == "male"
        )


def test_groups_are_means_over_their_pairs(probed: bk.PairsResult) -> None:
    scores = probed.pair_scores
    of_women, of_men = (scores[scores.direction == side].female_share.mean() for side in ("female", "male"))
    whole = group(probed)
    assert whole["female_share"] == pytest.approx(scores.female_share.mean())
    assert (whole["share_where_female"], whole["share_where_male"]) == pytest.approx((of_women, of_men))
    assert whole["gap"] == pytest.approx(of_women - of_men)
    assert whole["gap_low"] < whole["gap"] < whole["gap_high"]
    assert (whole["n_pairs"], whole["n_directed"], whole["expected_rate"]) == (24, 24, 1.0)
    english = group(probed, "en")
    assert english["female_share"] == pytest.approx(scores[scores.language == "en"].female_share.mean())
    nurse = group(probed, "en", "nurse")
    assert nurse["n_pairs"] == 2
    assert math.isnan(nurse["gap"])
    # All, both languages, six stereotypes, and each stereotype in each language.
    assert len(probed.pair_groups) == 1 + 2 + 6 + 12


def test_a_gap_is_tested_over_all_pairs_and_in_each_language(probed: bk.PairsResult) -> None:
    tests = probed.tests
    assert tests.group_a.tolist() == ["all", "en", "x"]
    assert set(tests.quantity) == {"share"}
    assert tests.estimate[0] == pytest.approx(group(probed)["gap"])
    assert tests.verdict.tolist() == ["higher", "higher", "higher"]
    assert (tests.ci_low[0], tests.ci_high[0]) == pytest.approx(
        (group(probed)["gap_low"], group(probed)["gap_high"])
    )


def test_two_stereotypes_of_a_direction_give_no_conclusion(tmp_path: Path) -> None:
    pairs = rows({job: side for job, side in JOBS.items() if job != "nurse"})
    found = bk.pairs(script(tmp_path, pairs), pairs=pairs, out=tmp_path / "run", **QUIET)
    assert set(found.tests.verdict) == {"no-verdict"}
    assert found.tests.equivalent.isna().all()
    assert group(found)["gap_low"] < group(found)["gap"] < group(found)["gap_high"]
    said = bk.report(found, **QUIET).findings[0].text
    assert "No conclusion on whether m" in said
    assert "fewer than 3 stereotypes of a direction" in said


def test_nothing_is_found_where_stereotypes_change_nothing(tmp_path: Path) -> None:
    pairs = rows()
    model = script(tmp_path, pairs, odds=lambda row, step: math.sin(5 * step))
    found = bk.pairs(model, pairs=pairs, out=tmp_path / "run", **QUIET)
    assert set(found.tests.verdict) <= {"no-clear-difference", "shown"}


def test_crows_pairs_published_score_is_the_expected_rate(tmp_path: Path) -> None:
    """The metric of crows-pairs/metric.py: pairs whose sent_more is the more probable, of all pairs.

    A pair of equal sentences counts in the denominator alone. Rows of our own in its format.
    """
    lines = ["sent_more,sent_less,stereo_antistereo,bias_type"]
    said: dict[str, float] = {}
    outcomes = [
        (-1.0, -2.0, "stereo"),
        (-3.0, -2.0, "stereo"),
        (-2.0, -2.0, "stereo"),
        (-1.0, -4.0, "antistereo"),
    ]
    for n, (more, less, kind) in enumerate(outcomes):
        first, second = (f"{name} {n} knits." for name in ("She", "He"))
        lines.append(f"{first},{second},{kind},gender")
        said |= {first: more, second: less}
    (tmp_path / "crows.csv").write_text("\n".join([*lines, "A b.,A c.,stereo,age"]) + "\n", "ascii")
    (tmp_path / "m.jsonl").write_text(json.dumps({"contains": "", "log_probs": said}) + "\n", "ascii")
    found = bk.pairs(
        f"scripted:{tmp_path / 'm.jsonl'}", pairs=str(tmp_path / "crows.csv"), out=tmp_path / "run", **QUIET
    )
    better = [more > less for more, less, _ in outcomes]
    assert group(found)["expected_rate"] == pytest.approx(sum(better) / len(better)) == 0.5
    assert any("of another bias type than gender" in warning for warning in found.warnings)


def test_per_token_sides_are_counted_where_lengths_differ(tmp_path: Path) -> None:
    said = [
        {"group": "female", "log_prob": -6.0, "token_ids": [1, 2, 3]},
        {"group": "male", "log_prob": -5.0, "token_ids": [4, 5]},
    ]
    pair = SentencePair("1", "a b c", "a d", direction="male")
    score = score_of(pair, said) | {"model": "m", "estimator": "exact"}
    [whole], _ = group_rows([score], {})
    assert (score["log_ratio"], score["log_ratio_per_token"]) == (-1.0, pytest.approx(-2.0 + 2.5))
    assert (score["n_tokens_female"], score["n_tokens_male"]) == (3, 2)
    assert whole["n_per_token_differs"] == 1


def test_a_third_sentence_has_a_share_of_the_three(tmp_path: Path) -> None:
    pairs = rows(n=1, languages=["en"])
    pairs[0] = {**pairs[0], "diverse": "The nurse 0 said they won."}
    model = script(tmp_path, pairs, diverse=-40.0)
    found = bk.pairs(model, pairs=pairs, out=tmp_path / "run", **QUIET)
    first = found.pair_scores.iloc[0]
    ratio = math.exp(log_odds(pairs[0], 0))
    assert first.diverse_share == pytest.approx(1 / (2 + ratio))
    assert first.female_share == pytest.approx(ratio / (1 + ratio))  # of the two alone
    assert math.isnan(found.pair_scores.iloc[1].diverse_share)
    assert group(found)["diverse_share"] == pytest.approx(first.diverse_share)


# --- almost 0 -------------------------------------------------------------------------------------------


def almost_never(row: Row, step: int) -> float:
    """Log-ratios of −21 to −24 nats: shares of some 1e-10 in both groups."""
    return (-21.3 if row["direction"] == "female" else -23.3) + 0.3 * math.sin(step)


def test_shares_of_almost_0_are_not_about_the_same_but_compared_in_nats(tmp_path: Path) -> None:
    pairs = rows()
    found = bk.pairs(script(tmp_path, pairs, odds=almost_never), pairs=pairs, out=tmp_path / "run", **QUIET)
    assert group(found)["share_where_female"] < 1e-8
    assert found.tests.quantity.tolist() == ["log_ratio"] * 3
    scores = found.pair_scores
    women, men = (scores[scores.direction == side].log_ratio.mean() for side in ("female", "male"))
    assert found.tests.estimate[0] == pytest.approx(women - men)
    assert found.tests.verdict.tolist() == ["higher"] * 3
    assert not found.tests.equivalent.any()
    first = bk.report(found, **QUIET).findings[0]
    assert "under 1 %; its log-ratio is " in first.text
    assert " nats more [" in first.text


def test_models_whose_shares_are_almost_1_are_compared_in_nats(tmp_path: Path) -> None:
    pairs = rows()
    odds = {"a": lambda row, step: -almost_never(row, step), "b": lambda row, step: 30.0 + math.sin(step)}
    odds["c"] = odds["a"]
    models = [script(tmp_path, pairs, name, odds=own) for name, own in odds.items()]
    found = bk.pairs(*models, pairs=pairs, out=tmp_path / "run", **QUIET)
    between = found.tests[found.tests.model_a != found.tests.model_b].set_index(["model_a", "model_b"])
    assert between.quantity["b", "a"].tolist() == ["log_ratio", "log_ratio_gap"]
    means = found.pair_scores.groupby("model").log_ratio.mean()
    assert between.estimate["b", "a"].tolist()[0] == pytest.approx(means["b"] - means["a"])
    assert between.verdict["b", "a"].tolist()[0] == "higher"
    # The same model under another name is the same.
    assert between.quantity["c", "a"].tolist() == ["share", "group_gap"]
    assert between.equivalent["c", "a"].tolist()[0]
    texts = [finding.text for finding in bk.report(found, **QUIET).findings]
    assert any("log-ratio" in text and "nats more for b than" in text for text in texts)


# --- what is odd -------------------------------------------------------------------------------------------


def test_pairs_that_expect_one_side_have_no_gap_and_say_why(tmp_path: Path) -> None:
    pairs = rows({"nurse": "female", "cook": "female"})
    found = bk.pairs(script(tmp_path, pairs), pairs=pairs, out=tmp_path / "run", **QUIET)
    assert math.isnan(group(found)["gap"])
    assert "stereotypes cannot be told" in group(found)["reason"]
    assert any("stereotypes cannot be told" in warning for warning in found.warnings)
    assert found.tests.empty
    assert any("gives the feminine one" in finding.text for finding in bk.report(found, **QUIET).findings)


def test_pairs_without_any_direction_have_a_share_alone(tmp_path: Path) -> None:
    pairs = [{name: row[name] for name in ("female", "male")} for row in rows(n=1)]
    found = bk.pairs(
        script(tmp_path, pairs, odds=lambda row, step: 0.5), pairs=pairs, out=tmp_path / "run", **QUIET
    )
    assert math.isnan(group(found)["expected_rate"])
    assert group(found)["n_directed"] == 0
    assert found.pair_scores["item"].tolist() == [str(n) for n in range(1, len(pairs) + 1)]


def test_a_pair_without_an_answer_is_named_and_left_out(tmp_path: Path) -> None:
    pairs = rows()
    model = script(tmp_path, pairs)
    found = bk.pairs(model, pairs=pairs, out=tmp_path / "run", **QUIET)
    lines = (found.path / "pairs.jsonl").read_text("ascii").splitlines()
    (found.path / "pairs.jsonl").write_text("\n".join(lines[1:]) + "\n", "ascii")
    rebuild_tables(found.path, **QUIET)
    again = bk.load(found.path)
    assert group(again)["n_pairs"] == 23
    assert again.pair_scores.reason[0] == "no answer stored"
    assert any("1 of 24 pairs have no share" in warning for warning in again.warnings)


def test_a_list_with_directions_is_not_said_to_have_none_where_nobody_answered(tmp_path: Path) -> None:
    pairs = rows()
    found = bk.pairs(script(tmp_path, pairs), pairs=pairs, out=tmp_path / "run", **QUIET)
    (found.path / "pairs.jsonl").write_text("", "ascii")
    rebuild_tables(found.path, **QUIET)
    warnings = bk.load(found.path).warnings
    assert any("24 of 24 pairs have no share" in warning for warning in warnings)
    assert not any("no pair has a direction" in warning for warning in warnings)


def test_two_models_are_compared_where_one_lacks_an_answer(tmp_path: Path) -> None:
    pairs = rows()
    models = [script(tmp_path, pairs, "a"), script(tmp_path, pairs, "b", odds=lambda row, step: 0.5)]
    found = bk.pairs(*models, pairs=pairs, out=tmp_path / "run", **QUIET)
    lines = (found.path / "pairs.jsonl").read_text("ascii").splitlines()
    (found.path / "pairs.jsonl").write_text("\n".join(lines[1:]) + "\n", "ascii")
    rebuild_tables(found.path, **QUIET)
    between = bk.load(found.path).tests.query("model_a != model_b").set_index("quantity")
    assert between.n_a["share"] == 23
    assert "1 pairs left out, not in every model" in between.reason["share"]


def test_a_changed_sentence_in_a_row_is_refused(probed: bk.PairsResult) -> None:
    file = probed.path / "pairs.jsonl"
    file.write_text(file.read_text("ascii").replace("said she won", "said xhe won", 1), "ascii")
    with pytest.raises(RunError):
        rebuild_tables(probed.path, **QUIET)


@pytest.mark.parametrize("option", ["jobs", "templates", "context", "continuations", "system_prompt"])
def test_what_would_change_a_sentence_is_no_argument(tmp_path: Path, option: str) -> None:
    pairs = rows(n=1)
    with pytest.raises(TypeError, match=f"pairs\\(\\) has no argument '{option}'"):
        bk.pairs(script(tmp_path, pairs), pairs=pairs, out=tmp_path / "run", **QUIET, **{option: "1"})


@pytest.mark.parametrize("key", ["word_boundary", "interval", "debiasing_prompts.select"])
def test_what_would_change_a_sentence_is_no_key(tmp_path: Path, key: str) -> None:
    pairs = rows(n=1)
    with pytest.raises(StudyError, match=f"unknown key '{key.partition('.')[0]}"):
        bk.pairs(script(tmp_path, pairs), pairs=pairs, out=tmp_path / "run", **QUIET, settings={key: "word"})


def test_a_command_says_which_kind_has_an_option(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "biaskit", "pairs", "demo", "--jobs", "nurse"]
    said = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert said.returncode == 2
    assert "It is an option of `biaskit probe`." in said.stderr


@pytest.mark.parametrize("given", [3, ["a text"], [], pd.DataFrame()])
def test_what_is_no_list_of_pairs_is_refused(tmp_path: Path, given: object) -> None:
    with pytest.raises(BiaskitError):
        bk.pairs(script(tmp_path, rows(n=1)), pairs=given, out=tmp_path / "run", **QUIET)  # type: ignore[arg-type]


def test_models_that_write_texts_alone_are_refused(tmp_path: Path) -> None:
    writer = bk.writer("mine", lambda prompts: ["She."] * len(prompts))
    with pytest.raises(BiaskitError, match="sentence"):
        bk.pairs(writer, pairs=rows(n=1), out=tmp_path / "run", **QUIET)


# --- the same run elsewhere ------------------------------------------------------------------------


def test_a_file_a_data_frame_and_a_list_give_the_same_rows(tmp_path: Path) -> None:
    pairs = rows()
    model = script(tmp_path, pairs)
    pd.DataFrame(pairs).to_csv(tmp_path / "pairs.csv", index=False)
    found = [
        bk.pairs(model, pairs=given, out=tmp_path / f"run{n}", **QUIET).pair_groups
        for n, given in enumerate((pairs, pd.DataFrame(pairs), tmp_path / "pairs.csv"))
    ]
    assert found[0].equals(found[1])
    assert found[0].equals(found[2])


def test_tables_need_nothing_but_the_run(probed: bk.PairsResult, tmp_path: Path) -> None:
    before = {path.name: path.read_bytes() for path in (probed.path / "tables").glob("*.csv")}
    shutil.rmtree(probed.path / "tables")
    rebuild_tables(probed.path, **QUIET)
    assert before == {path.name: path.read_bytes() for path in (probed.path / "tables").glob("*.csv")}


def test_more_pairs_go_on_in_the_same_folder(tmp_path: Path) -> None:
    pairs = rows()
    model = script(tmp_path, pairs)
    bk.pairs(model, pairs=pairs[:8], out=tmp_path / "run", **QUIET)
    found = bk.pairs(model, pairs=pairs, out=tmp_path / "run", **QUIET)
    alone = bk.pairs(model, pairs=pairs, out=tmp_path / "alone", **QUIET)
    assert found.pair_groups.equals(alone.pair_groups)
    assert len((found.path / "pairs.jsonl").read_text("ascii").splitlines()) == len(pairs)
    changed = [{**pairs[0], "male": "The nurse 0 said he lost."}, *pairs[1:]]
    with pytest.raises(RunError, match="pair 'nurse-0' en"):
        bk.pairs(model, pairs=changed, out=tmp_path / "run", **QUIET)


def test_models_are_compared_on_the_pairs_that_both_have(tmp_path: Path) -> None:
    pairs = rows()
    a = script(tmp_path, pairs, "a")
    b = script(tmp_path, pairs, "b", odds=lambda row, step: 0.2 * math.cos(step))
    found = bk.pairs(a, b, pairs=pairs, out=tmp_path / "run", **QUIET)
    between = found.tests[found.tests.model_a != found.tests.model_b].set_index("quantity")
    gaps = found.pair_groups[(found.pair_groups.language == "all") & (found.pair_groups.stereotype == "all")]
    gap_of, share_of = (dict(zip(gaps.model, gaps[name], strict=True)) for name in ("gap", "female_share"))
    assert between.estimate["group_gap"] == pytest.approx(gap_of["b"] - gap_of["a"])
    assert between.estimate["share"] == pytest.approx(share_of["b"] - share_of["a"])
    assert between.verdict["group_gap"] == "lower"
    assert any(finding.topic == "models" for finding in bk.report(found, **QUIET).findings)
    # Two runs whose lists differ in one pair: that one is left out.
    other = [{**pairs[0], "female": "Another sentence."}, *pairs[1:]]
    one = bk.pairs(a, pairs=pairs, out=tmp_path / "one", **QUIET)
    two = bk.pairs(script(tmp_path, other, "b"), pairs=other, out=tmp_path / "two", **QUIET)
    compared = bk.compare(one, two, out=tmp_path / "compared")
    tests = compared.table("tests").set_index("quantity")
    assert set(tests.n_a) == {23}
    assert "2 pairs left out, not in every model" in tests.reason["share"]
    assert bool(tests.equivalent["share"])
    # The same model under another name passes a gate.
    same = bk.pairs(script(tmp_path, pairs, "c"), pairs=pairs, out=tmp_path / "same", **QUIET)
    assert bk.compare(one, same, out=tmp_path / "again").equivalent()


def test_the_page_figures_and_latex_show_pairs(probed: bk.PairsResult, tmp_path: Path) -> None:
    made = bk.report(probed, **QUIET)
    page = made.page.read_text("utf-8")
    assert "Pairs of sentences by language and stereotype" in page
    assert {path.name for path in made.figures} == {
        f"{name}.{kind}" for name in ("pairs", "pairs-languages") for kind in ("png", "svg")
    }
    assert {"pairs-m.tex", "pairs-stereotypes-m.tex"} <= {path.name for path in made.latex}
    assert made.findings[0].topic == "pairs"
    assert made.findings[0].verdict == "higher"
    assert "coverage" not in " ".join(finding.text for finding in made.findings)


def test_exports_hold_the_shares(probed: bk.PairsResult, tmp_path: Path) -> None:
    share = group(probed)["female_share"]
    files = bk.export(probed, to="every-eval-ever", out=tmp_path / "eee")
    assert f"{share:.6f}"[:7] in "".join(
        path.read_text("utf-8") for path in files.files if path.suffix == ".json"
    )
    card = bk.export(probed, to="card", out=tmp_path / "card").files[0].read_text("utf-8")
    assert "### Pairs of sentences" in card
    task = bk.export(probed, to="lm-eval", out=tmp_path / "lm")
    [lines] = [path for path in task.files if path.suffix == ".jsonl"]
    first = json.loads(lines.read_text("ascii").splitlines()[0])
    assert first["choices"] == [rows()[0]["female"], rows()[0]["male"]]


# --- what a stranger tripped over ------------------------------------------------------------------------


def test_a_list_with_a_note_is_the_manifests_own(tmp_path: Path) -> None:
    pairs = rows()
    pairs[0] = {**pairs[0], "female": "The nurse 0 said she won the race in May."}
    (tmp_path / "pairs.csv").write_text(pd.DataFrame(pairs).to_csv(index=False), "ascii")
    found = bk.pairs(script(tmp_path, pairs), pairs=tmp_path / "pairs.csv", out=tmp_path / "run", **QUIET)
    assert any("perhaps in more than marks" in warning for warning in found.warnings)
    checked = bk.verify(found.path, ask=False, **QUIET)
    assert {check.name: check.outcome for check in checked.checks}["lists"] == "agrees"


def test_what_differs_beside_gender_is_said_before_the_run_and_on_the_page(tmp_path: Path) -> None:
    class Heard(bk.Silent):
        said: list[str]

        def note(self, text: str) -> None:
            self.said.append(text)

        def planned(self, plan: Any, *, dry_run: bool) -> None:
            self.said.append(plan.label)

    pairs, heard = rows(), Heard()
    pairs[2] = {**pairs[2], "female": pairs[2]["female"].rstrip(".")}
    heard.said = []
    found = bk.pairs(script(tmp_path, pairs), pairs=pairs, out=tmp_path / "run", watcher=heard)
    note = "1 pair differs perhaps in more than marks of gender: nurse-1, row 3: 'won' / 'won.'"
    assert heard.said == [note, "m"]
    assert note in found.warnings
    assert "nurse-1, row 3: " in bk.report(found, **QUIET).page.read_text("utf-8")


def test_empty_cells_of_a_data_frame_are_empty(tmp_path: Path) -> None:
    table = pd.DataFrame(rows())
    table.loc[0, ["direction", "stereotype"]] = None
    table["ignored"] = [{1}] * len(table)
    found = bk.pairs(script(tmp_path, rows()), pairs=table, out=tmp_path / "run", **QUIET)
    assert len(found.pair_scores) == len(table)
    assert group(found)["n_directed"] == len(table) - 1


def test_the_page_lists_the_sentences(probed: bk.PairsResult) -> None:
    page = bk.report(probed, **QUIET).page.read_text("utf-8")
    assert "The nurse 0 said she won." in page
    assert "Pairs of sentences of" in page
    assert "exactly as sent" not in page


def test_runs_with_the_same_sentences_are_compared_whatever_their_items_are_called(tmp_path: Path) -> None:
    pairs = rows()
    renamed = [{**row, "item": f"other-{n}"} for n, row in enumerate(pairs)]
    one = bk.pairs(script(tmp_path, pairs, "a"), pairs=pairs, out=tmp_path / "one", **QUIET)
    two = bk.pairs(script(tmp_path, pairs, "b"), pairs=renamed, out=tmp_path / "two", **QUIET)
    tests = bk.compare(one, two, out=tmp_path / "compared").table("tests")
    assert set(tests.n_a) == {24}
    alone = rows({"baker": "male"})
    other = bk.pairs(script(tmp_path, alone, "c"), pairs=alone, out=tmp_path / "three", **QUIET)
    compared = bk.compare(one, other, out=tmp_path / "apart")
    assert compared.table("tests").empty
    assert any("no common prompt" in warning for warning in compared.warnings)
