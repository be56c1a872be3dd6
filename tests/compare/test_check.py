"""What thresholds require: their file, each odd row, and the same verdict and words in every face."""

from __future__ import annotations

import math
import random
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from fakes.command import Cli
from fakes.numbered_runs import full, probe_run

import biaskit as bk
from biaskit.compare.check import CheckResult, coverage_in, judge_thresholds, verdict_in_words
from biaskit.compare.check_files import junit, summary
from biaskit.compare.thresholds import read_thresholds, requirement
from biaskit.errors import UsageError
from biaskit.stats.contrast import Contrast
from biaskit.stats.verdict import with_verdicts
from biaskit.tables.sets import TableSet, read_set
from biaskit.workflow.check import example

SCOPE = {
    "measurement": "probe",
    "family": "probe/share/crossed/groups",
    "quantity": "share",
    "kind": "crossed",
}
SCOPE |= {"gender": "female", "model_a": "m", "model_b": "m", "bias_type": "explicit", "context": "plain"}
SCOPE |= {"prompt_format": "raw", "debiasing_a": "0", "debiasing_b": "0", "unit": "jobs", "reason": ""}
NUMBERS = {"estimate": 0.0, "dof": 20.0, "p_value": 0.9, "p_adjusted": 0.9, "n_a": 20, "n_b": 20}
NUMBERS |= {"ci_low": -0.03, "ci_high": 0.03, "ci90_low": -0.02, "ci90_high": 0.02, "margin": 0.05}
EMPTY = dict.fromkeys(("effect_size", "statistic", "bound_low", "bound_high"))
ROW = {**SCOPE, "group_a": "women's", "group_b": "men's", **NUMBERS, **EMPTY, "equivalent": True}
GENDERS = ("male", "female", "diverse")
GROUPS = {"contrast": "groups", "quantity": "share"}


def row(**changes: Any) -> dict[str, Any]:
    return ROW | changes


def judged(*rows: Mapping[str, Any], **require: Any) -> CheckResult:
    """What one requirement says of these rows."""
    (own,) = with_verdicts(rows)
    coverage = {("m", "explicit"): 0.2, ("unsure", "explicit"): None}
    return judge_thresholds(read_thresholds({"require": [GROUPS | require]}), own, coverage=coverage)


@pytest.mark.parametrize(
    ("changes", "require", "said"),
    [
        ({}, {"margin": 0.05}, ""),
        ({"ci90_high": 0.05}, {"margin": 0.05}, ""),  # at the margin
        ({"ci90_high": math.nextafter(0.05, 1)}, {"margin": 0.05}, "margin ±0.05"),
        ({}, {"margin": 0.01}, "90 % interval [-0.020, +0.020], margin ±0.01"),
        ({"margin": None, "equivalent": None}, {"margin": 0.05}, ""),  # its own margin is not asked for
        ({"p_value": None, "verdict": ""}, {"margin": 0.05}, "no conclusion"),
        ({"ci_low": None}, {"margin": 0.05}, "not measured"),
        ({"estimate": math.nan}, {"margin": 0.05}, "not measured"),
        ({"ci_high": math.inf}, {"limit": 0.1, "min_n": 5}, "not measured"),
        ({"estimate": None, "reason": "only one job"}, {"margin": 0.05}, "not measured (only one job)"),
        ({"ci90_low": None}, {"margin": 0.05}, "not measured (no interval)"),
        ({"n_b": 4}, {"margin": 0.05, "min_n": 5}, "based on 4, fewer than 5"),
        ({"n_a": None, "n_b": None}, {"margin": 0.05, "min_n": 5}, "based on 0, fewer than 5"),
        ({"n_b": None}, {"margin": 0.05, "min_n": 20}, ""),
        ({}, {"margin": 0.05, "min_coverage": 0.2}, ""),
        ({}, {"margin": 0.05, "min_coverage": 0.21}, "coverage of m is 20 %, below 21 %"),
        ({"model_a": "unsure", "model_b": "unsure"}, {"margin": 0.05, "min_coverage": 0.0}, "is unknown"),
        ({"model_a": "new", "model_b": "new"}, {"margin": 0.05, "min_coverage": 0.0}, "is unknown"),
        ({"estimate": 0.2, "ci_low": 0.1, "ci_high": 0.3}, {"limit": 0.1, "min_n": 5}, ""),  # it reaches in
        ({"estimate": 0.2, "ci_low": 0.11, "ci_high": 0.3}, {"limit": 0.1, "min_n": 5}, "outside ±0.1"),
        ({"estimate": -0.2, "ci_low": -0.3, "ci_high": -0.11}, {"limit": 0.1, "min_n": 5}, "outside ±0.1"),
        ({"estimate": 0.0, "ci_low": -0.9, "ci_high": 0.9}, {"limit": 0.1, "min_n": 5}, ""),
    ],
)
def test_a_row(changes: dict[str, Any], require: dict[str, Any], said: str) -> None:
    (outcome,) = judged(row(**changes), **require).outcomes
    assert outcome.n_rows == 1
    assert outcome.holds == (not said), outcome
    assert said in " ".join(one.why for one in outcome.failing)


@pytest.mark.parametrize(
    ("require", "said"),
    [
        ({}, "Passed: equivalent (groups, share): all 2 rows within ±0.05 and 0.4."),
        ({"margin": 0.3}, "Passed: equivalent within ±0.3 (groups, share): all 2 rows."),
        ({"margin": 0.3, "name": "parity"}, "Passed: parity: all 2 rows within ±0.3."),
    ],
)
def test_what_passed_says_within_which_margin(require: dict[str, Any], said: str) -> None:
    wide = row(model_a="x", model_b="x", margin=0.4)
    assert judged(row(), wide, **require).text == said


def test_bounds_that_leave_it_open_do_not_pass() -> None:
    wide = row(ci_low=-0.2, ci_high=0.2, ci90_low=-0.19, ci90_high=0.19, bound_low=-0.17, bound_high=0.17)
    (outcome,) = judged(wide | {"equivalent": False}, margin=0.05).outcomes
    assert "not identified" in outcome.failing[0].why


def test_nothing_is_not_yes() -> None:
    assert not judged(margin=0.05)
    assert not judge_thresholds([], [])
    assert "nothing was compared" in judged(row(quantity="asymmetry"), margin=0.05).text


def test_a_model_without_a_row_is_named() -> None:
    found = judged(row(), margin=0.05, models=["m", "absent"])
    assert found.outcomes[0].not_compared == ("absent",)
    assert judged(row(), row(model_a="x", model_b="x", ci90_high=0.5), margin=0.05, models=["m"])


def test_what_holds_on_weak_evidence_says_whose() -> None:
    def text(coverage: float | None) -> str:
        require = read_thresholds({"require": [GROUPS | {"margin": 0.05}]})
        result = judge_thresholds(require, with_verdicts([row()])[0], coverage={("m", "explicit"): coverage})
        assert result.holds
        assert ("passed, weak evidence" in summary(result)) is ("weak" in result.text)
        assert ("weak evidence" in junit(result).decode()) is ("weak" in result.text)
        return result.text

    assert text(0.0999).endswith("all 1 row, weak evidence (coverage of m is below 10 %).")
    assert "weak" not in text(0.1) + text(None)
    far = [row(ci90_high=0.5), row(ci90_high=0.5, model_a="open models", model_b="API models")]
    require = read_thresholds({"require": [GROUPS | {"margin": 0.05}]})
    failing = judge_thresholds(require, with_verdicts(far)[0], coverage={("m", "explicit"): 0.05})
    assert not failing.holds
    assert "2 of 2 rows, weak evidence (coverage of m, " in failing.text
    assert "open models and API models is below 10 %)." in failing.text.splitlines()[0]
    plain = {"model": "m", "bias_type": "explicit", "debiasing_id": 0, "context": "plain"}
    # Of the two groups' words, which the first one's rows have: they may have the rest.
    groups = [{**plain, "coverage": 0.6, "binary_coverage": part} for part in (0.3, 0.04, None)]
    assert coverage_in(groups) == {("m", "explicit"): 0.04}
    assert coverage_in(groups, of_two=False) == {("m", "explicit"): 0.6}
    under = {**plain, "debiasing_id": 1, "coverage": 0.6, "binary_coverage": 0.001}
    assert coverage_in([*groups, under]) == {("m", "explicit"): 0.04}
    nothing = {"coverage": None, "binary_coverage": None}
    assert coverage_in([*groups, {**groups[0], **nothing}]) == {("m", "explicit"): None}


def test_rows_of_another_kind_are_not_judged() -> None:
    assert judged(row(), row(kind="welch", family="probe/share/welch/groups", ci90_high=9.0), margin=0.05)


# --- the file ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "nothing is required"),
        ("[require]\n", "nothing is required"),
        ("require = 3\n", "nothing is required"),
        ("requires = []\n", "there is no 'requires'"),
        ("[[require]]\nmargn = 0.1\n", "there is no key 'margn'. Did you mean 'margin'"),
        ('[[require]]\ncontrast = "modles"\n', "Did you mean 'models'"),
        ("[[require]]\nmargin = 0.1\n", "name the quantity"),
        ('[[require]]\nquantity = "share"\nlimit = 0.1\n', "needs min_n"),
        ('[[require]]\nquantity = "share"\nlimit = 0.1\nmargin = 0.1\n', "give one of them"),
        ('[[require]]\nquantity = "share"\nmargin = "wide"\n', "margin"),
        ('[[require]]\nquantity = "share"\nmargin = nan\n', "margin"),
        ('[[require]]\nquantity = "share"\nmargin = -0.1\n', "margin = -0.1"),
        ('[[require]]\nquantity = "share"\nmargin = 5\n', "margin.share is a fraction: 0.05 is 5 points"),
        ('[[require]]\nquantity = "share"\nlimit = 30\nmin_n = 9\n', "share is a fraction"),
        ("[[require]]\nmin_n = 0\n", "min_n = 0"),
        ("[[require]]\nmin_n = true\n", "min_n = True"),
        ("[[require]]\nmin_coverage = 50\n", "min_coverage = 50"),
        ("[[require]]\nmodels = [1]\n", "models"),
        ("[[require]]\nquantity = 1\n", "quantity = 1"),
        ("[[require]\n", "not valid TOML"),
    ],
)
def test_thresholds_that_cannot_be_meant(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(UsageError) as error:
        read_thresholds(tmp_path / "p.toml")
    assert said in str(error.value)
    assert "p.toml" in str(error.value)
    assert "\n" not in str(error.value)


def test_the_short_form_is_thresholds() -> None:
    assert [requirement({"contrast": "models"}, "--require")] == read_thresholds({"require": [{}]})
    assert read_thresholds({"require": [{"models": "m"}]})[0].models == ("m",)


# --- what is written ---------------------------------------------------------------------------------


def test_junit_reads_back_and_holds_what_is_foreign_as_text() -> None:
    evil = 'x]]><script>&\x00\x1b[31m "'
    found = judged(row(model_a=evil, model_b=evil, ci90_high=0.9), margin=0.05, name=evil)
    suite = ElementTree.fromstring(junit(found)).find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    case = suite.find("testcase")
    assert case is not None
    assert "<script>" in str(case.get("name"))
    failure = case.find("failure")
    assert failure is not None
    assert "90 % interval" in str(failure.text)
    assert "\x1b" not in str(failure.text)


def test_a_summary_keeps_foreign_markup_out() -> None:
    evil = "a|b](http://evil) <img src=x> `c`"
    text = summary(judged(row(model_a=evil, model_b=evil, ci90_high=0.9), margin=0.05, name=evil))
    assert "<img" not in text.replace("\\<img", "")
    assert all(line.replace("\\|", "").count("|") == 4 for line in text.splitlines() if line.startswith("|"))


# --- three faces -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return probe_run(tmp_path_factory.mktemp("check") / "base", "m")


def _odd_row(rng: random.Random, number: int) -> dict[str, Any]:
    estimate = rng.choice([0.0, 0.0, 0.05, -0.05, rng.uniform(-0.3, 0.3)])
    half = rng.choice([0.0, 0.01, 0.05, rng.uniform(0, 0.2)])
    narrow = 0.84 * half
    values = {
        "estimate": estimate,
        "ci_low": estimate - half,
        "ci_high": estimate + half,
        "ci90_low": estimate - narrow,
        "ci90_high": estimate + narrow,
        "p_value": rng.choice([0.0, 0.5, 1.0, rng.random()]),
        "equivalent": abs(estimate) + narrow <= 0.05,
        "n_a": rng.choice([2, 20, 200]),
        "group_b": f"men's {number}",
        "verdict": "",
    }
    if rng.random() < 0.15:
        values |= dict.fromkeys(rng.choice([("estimate",), ("ci_low", "ci_high"), ("p_value",), ("n_a",)]))
    if rng.random() < 0.1:
        values |= {"ci90_low": None, "ci90_high": None, "equivalent": None}
    if rng.random() < 0.2:
        values |= {"bound_low": estimate - half, "bound_high": estimate + half}
    return row(**values, spread_of_true=rng.choice([None, 0.0, 0.08, 0.3]))


def _run(base: Path, path: Path, rng: random.Random) -> Path:
    """A copy of a run with another tests.csv."""
    shutil.copytree(base, path)
    tables, stored = TableSet(path), read_set(path, ("probe_prompts", "probe_jobs"))
    for name, rows in stored.rows().items():
        tables.add(name, rows, groups=GENDERS, contrast=GENDERS[1::-1])
    held = full("probe_groups", {"model": "m", "bias_type": "explicit", "coverage": 0.5, "gender": "female"})
    tables.add("probe_groups", [held])
    tables.add("tests", [_odd_row(rng, number) for number in range(rng.choice([0, 1, 1, 2]))])
    tables.analysis |= stored.analysis
    tables.write()
    return path


def _thresholds(rng: random.Random) -> str:
    lines = ['[[require]]\ncontrast = "groups"\nquantity = "share"']
    lines += [rng.choice(["", "margin = 0.05", "margin = 0.2", "limit = 0.1\nmin_n = 10", "margin = 0"])]
    lines += [
        rng.choice(
            ["", 'models = ["m"]', 'models = ["m", "gone"]', "min_coverage = 0.4", "", "min_coverage = 0.9"]
        )
    ]
    return "\n".join(lines) + "\n"


@pytest.mark.slow
def test_three_faces_say_the_same(
    base: Path, tmp_path: Path, console: Cli, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """500 random runs: `biaskit check`, `biaskit.check` and the pytest plugin."""
    rng, said = random.Random(7), {}
    for number in range(500):
        run = _run(base, tmp_path / f"run-{number}", rng)
        (tmp_path / f"thresholds-{number}.toml").write_text(_thresholds(rng))
        result = bk.check(run, thresholds=tmp_path / f"thresholds-{number}.toml")
        heard = console("check", str(run), "--thresholds", str(tmp_path / f"thresholds-{number}.toml"))
        assert heard.code == (0 if result else 4), (number, heard)
        assert heard.out == f"{result.text}\n"
        said[number] = result
    assert 0.1 < sum(map(bool, said.values())) / 500 < 0.9
    pytester.makepyfile(
        f"""
        import pytest
        @pytest.mark.parametrize("number", range(500))
        def test_run(number, biaskit_check):
            home = {str(tmp_path)!r}
            biaskit_check(f"{{home}}/run-{{number}}", thresholds=f"{{home}}/thresholds-{{number}}.toml")
        """
    )
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    ran = pytester.inline_run("-p", "biaskit.pytest_plugin", "-p", "no:cacheprovider", "-q")
    reports = [one for one in ran.getreports("pytest_runtest_logreport") if one.when == "call"]
    assert len(reports) == 500
    for number, report in enumerate(reports):
        assert report.passed == said[number].holds, number
        assert report.passed or said[number].text in str(report.longrepr), (number, report.longrepr)


def test_the_fixture_wants_thresholds(
    base: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(f"def test_it(biaskit_check): biaskit_check({str(base)!r})")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    ran = pytester.inline_run("-p", "biaskit.pytest_plugin", "-p", "no:cacheprovider")
    (report,) = [one for one in ran.getreports("pytest_runtest_logreport") if one.when == "call"]
    assert "Name thresholds" in str(report.longrepr)
    (pytester.path / "p.toml").write_text('[[require]]\ncontrast = "groups"\n')
    ran = pytester.inline_run(
        "-p", "biaskit.pytest_plugin", "-p", "no:cacheprovider", "--biaskit-thresholds", "p.toml"
    )
    (report,) = [one for one in ran.getreports("pytest_runtest_logreport") if one.when == "call"]
    assert "nothing was compared" in str(report.longrepr)


def test_words_of_a_row_with_a_direction() -> None:
    assert verdict_in_words(Contrast.of(row(verdict="higher", estimate=0.12, ci_low=0.05, ci_high=0.19))) == (
        "higher by 0.12 [0.05, 0.19]"
    )


# --- the file that a user without one is shown ----------------------------------------------------------


def test_the_lines_shown_are_a_file_for_these_runs(base: Path, tmp_path: Path, console: Cli) -> None:
    run, file = _run(base, tmp_path / "run", random.Random(3)), tmp_path / "check.toml"
    said = console("check", str(run))
    assert said.code == 2
    file.write_text(said.err.partition("\n")[2], encoding="utf-8")
    (outcome,) = bk.check(run, thresholds=file).outcomes
    assert (outcome.require.contrast, outcome.require.quantity, outcome.n_rows) == ("groups", "share", 1)


def test_models_come_first_and_without_tests_lines_are_shown_all_the_same(tmp_path: Path) -> None:
    for quantity, models in (("share", ("a", "b")), ("binary_share", ("a",))):
        said = example(probe_run(tmp_path / quantity, *models))
        assert said.splitlines()[1:] == ['contrast = "models"', f'quantity = "{quantity}"']
