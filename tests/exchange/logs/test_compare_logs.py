"""`biaskit compare` on logs of other tools: pairing, tests, words, files, exit codes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.logs import eval_log, lm_eval_log, marks, sample
from scipy import stats

import biaskit as bk
from biaskit.errors import BiaskitError, StudyError, UsageError
from biaskit.exchange.logs.comparing import compare_logs
from biaskit.exchange.logs.files import read_logs
from biaskit.exchange.logs.samples import TaskLog


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def two(tmp_path: Path, a: list[Any], b: list[Any]) -> list[Path]:
    return [marks(tmp_path / f"{m}.eval", values, model=f"org/{m}") for m, values in (("a", a), ("b", b))]


def rows_of(paths: list[Path], **margins: float) -> list[dict[str, Any]]:
    return compare_logs(read_logs(paths)[0], margins).log_tests


def test_the_later_log_minus_the_earlier(tmp_path: Path) -> None:
    (row,) = rows_of(two(tmp_path, ["C"] * 2 + ["I"] * 18, ["C"] * 18 + ["I"] * 2))
    assert (row["model_a"], row["model_b"]) == ("org/b", "org/a")
    assert row["estimate"] == pytest.approx(0.8)
    assert (row["mean_a"], row["mean_b"]) == (0.9, 0.1)
    assert row["verdict"] == "higher"
    assert row["p_value"] == pytest.approx(stats.binomtest(0, 16).pvalue)
    assert (row["n_higher_a"], row["n_higher_b"]) == (16, 0)


def test_what_is_not_paired_is_counted_and_named(tmp_path: Path) -> None:
    a = [sample(n, {"m": "C"}) for n in ("both", "only-a", "other", "failed")]
    b = [
        sample("both", {"m": "I"}),
        sample("only-b", {"m": "C"}),
        sample("other", {"m": "C"}, asked="something else"),
        sample("failed", {}, error="boom"),
    ]
    paths = [eval_log(tmp_path / f"{m}.eval", s, model=m) for m, s in (("A", a), ("B", b))]
    result = bk.compare(*paths)
    (row,) = result.tables()["log_tests"]
    counts = {name: row[name] for name in ("n_paired", "n_only_a", "n_only_b", "n_other_input")}
    assert counts == {"n_paired": 1, "n_only_a": 1, "n_only_b": 1, "n_other_input": 1}
    assert row["n_without_score"] == 1
    left = {one["sample"]: one["reason"] for one in result.tables()["log_unpaired"]}
    assert left == {
        "only-a": "not in the log of B",
        "only-b": "not in the log of A",
        "other": "the same id with another input",
        "failed": "failed in the log of B",
    }
    said = next(note for note in result.warnings if "not paired" in note)
    assert "4 samples not paired" in said
    assert "1 failed in the log of B (failed)" in said


def test_nothing_paired_is_welchs_test_and_said(tmp_path: Path) -> None:
    values = np.random.default_rng(3).normal(0, 1, (2, 30))
    samples = [[sample(f"{k}-{i}", {"m": v}) for i, v in enumerate(own)] for k, own in enumerate(values)]
    paths = [eval_log(tmp_path / f"{k}.eval", own, model=str(k)) for k, own in enumerate(samples)]
    (row,) = rows_of(paths)
    theirs = stats.ttest_ind(values[1], values[0], equal_var=False)
    assert row["kind"] == "welch"
    assert row["p_value"] == pytest.approx(theirs.pvalue)
    assert "no sample is paired" in row["reason"]
    assert (row["n_paired"], row["n_a"], row["n_b"]) == (0, 30, 30)


def test_all_equal_logs_are_equivalent_within_what_their_number_shows(tmp_path: Path) -> None:
    paths = two(tmp_path, ["C", "I"] * 50, ["C", "I"] * 50)
    (row,) = rows_of(paths, score=0.03)
    assert (row["p_value"], row["verdict"]) == (1.0, "equivalent")
    (row,) = rows_of(paths, score=0.02)
    assert row["verdict"] == "no-clear-difference"


def test_one_sample_shows_nothing(tmp_path: Path) -> None:
    (row,) = rows_of(two(tmp_path, ["C"], ["I"]))
    assert row["verdict"] == "no-clear-difference"
    (row,) = rows_of(two(tmp_path, [0.3], [0.4]))
    assert row["verdict"] == "not-measured"
    assert "fewer than two units" in row["reason"]


def test_every_pair_of_three_models_is_one_family(tmp_path: Path) -> None:
    shares = {"a": 5, "b": 12, "c": 20}
    paths = [marks(tmp_path / f"{m}.eval", ["C"] * n + ["I"] * (20 - n), model=m) for m, n in shares.items()]
    rows = rows_of(paths)
    assert [(row["model_a"], row["model_b"]) for row in rows] == [("b", "a"), ("c", "a"), ("c", "b")]
    p = sorted(row["p_value"] for row in rows)
    assert [row["p_adjusted"] for row in sorted(rows, key=lambda row: row["p_value"])] == pytest.approx(
        [3 * p[0], max(3 * p[0], 2 * p[1]), max(3 * p[0], 2 * p[1], p[2])]
    )


def test_a_score_that_only_one_log_has_is_said(tmp_path: Path) -> None:
    paths = [
        eval_log(tmp_path / "a.eval", [sample(1, {"m": 1, "text": "good"})], model="a"),
        eval_log(tmp_path / "b.eval", [sample(1, {"m": 1, "text": "bad", "more": 1})], model="b"),
    ]
    reasons = {row["metric"]: row["reason"] for row in rows_of(paths)}
    assert "'bad', which is no number" in reasons["text"]
    assert reasons["more"] == "the log of a has no such score"


def test_margins_of_one_score_go_before_that_of_all(tmp_path: Path) -> None:
    samples = [sample(i, {"m": i % 2, "judge": i % 5}) for i in range(40)]
    paths = [eval_log(tmp_path / f"{m}.eval", samples, model=m) for m in "ab"]
    result = bk.compare(*paths, settings={"margin.score": 0.1, "margin.judge": 0.5})
    margins = {row["metric"]: row["margin"] for row in result.tables()["log_tests"]}
    assert margins == {"m": 0.1, "judge": 0.5}
    with pytest.raises(StudyError, match=r"margin\.judg'"):
        bk.compare(*paths, settings={"margin.judg": 0.5})


def test_prompts_and_terms_that_differ_are_said(tmp_path: Path) -> None:
    plain = lm_eval_log(tmp_path / "a", [{"acc": 1}, {"acc": 0}], model="a")
    other = lm_eval_log(tmp_path / "b", [{"acc": 1, "prompt_hash": "x"}, {"acc": 0}], model="b")
    notes = compare_logs(read_logs([plain, other])[0], {}).notes
    assert any("1 sample of one input had two prompts" in note for note in notes)
    paths = [marks(tmp_path / f"{v}.eval", ["C"], model=str(v), task_version=v) for v in (1, 2)]
    notes = compare_logs(read_logs(paths)[0], {}).notes
    assert notes == ["sums, 2 and 1 were run differently: task_version (1 / 2)"]


def test_no_task_in_common_is_one_line(tmp_path: Path) -> None:
    paths = [marks(tmp_path / f"{t}.eval", ["C"], task=t) for t in ("x", "y")]
    with pytest.raises(UsageError, match=r"Two logs of one task .*: x of org/one .*; y of org/one"):
        bk.compare(*paths)


def test_logs_and_runs_do_not_mix(tmp_path: Path, console: Any) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "manifest.json").write_text("{}")
    said = console("compare", marks(tmp_path / "a.eval", ["C"]), "run")
    assert said.code == 2
    assert "a.eval is a log and run is not" in said.err


def test_groups_are_for_runs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--group and --aliases are for runs"):
        bk.compare(*two(tmp_path, ["C"], ["I"]), groups=["x=a"])


def test_the_gate_ends_with_4(tmp_path: Path, console: Any) -> None:
    paths = two(tmp_path, ["C", "I"] * 50, ["C", "I"] * 50)
    required = ("--require", "equivalent", "--set")
    assert console("compare", *paths, *required, "margin.score=0.05").code == 0
    said = console("compare", *paths, *required, "margin.score=0.01")
    assert said.code == 4
    assert "does not hold: 1 of 1 rows" in said.err
    said = console("compare", *paths, "--require", "equivalent")
    assert said.code == 2
    assert "needs a margin" in said.err


def test_what_is_printed(tmp_path: Path, console: Any) -> None:
    paths = two(tmp_path, ["C"] * 2 + ["I"] * 18, ["C"] * 18 + ["I"] * 2)
    said = console("compare", *paths)
    assert said.code == 0, said.err
    assert "sums, match: org/b scores higher than org/a (+0.800 [" in " ".join(said.out.split())
    held = json.loads(console("compare", *paths, "--format", "json").out)
    assert held["tables"]["log_tests"][0]["verdict"] == "higher"
    assert held["findings"][0].startswith("sums, match: org/b scores higher")
    csv = console("compare", *paths, "--format", "csv").out
    assert csv == (Path(held["run"]) / "tables" / "log_tests.csv").read_text()
    assert "begin{tabular}" in console("compare", *paths, "--format", "latex").out


def test_a_comparison_of_logs_is_listed_and_is_no_run(tmp_path: Path, console: Any) -> None:
    result = bk.compare(*two(tmp_path, ["C"], ["I"]))
    assert json.loads(console("runs", "--format", "json").out)[0]["study"] == "comparison of 2 logs"
    for command in ("report", "analyze"):
        said = console(command, result.path)
        assert said.code in (1, 2)
        assert said.err.count("biaskit: ") == 1
    assert result.log_tests["model_a"].tolist() == ["org/b"]
    assert result.tests.empty


def test_hostile_names_reach_table_and_terminal_as_text(tmp_path: Path, console: Any) -> None:
    samples = [sample(f"=cmd{i}\x1b[31m\n", {"=HYPERLINK(1)": "C"}) for i in range(3)]
    paths = [
        eval_log(tmp_path / "a.eval", samples, task="=1+1\u202e", model="@evil\x07"),
        eval_log(tmp_path / "b.eval", samples[:1], task="=1+1\u202e", model="-b\ud800"),
    ]
    said = console("compare", *paths)
    assert said.code == 0, said.err
    assert not any(hidden in said.out + said.err for hidden in ("\x1b", "\x07", "\u202e", "\ud800"))
    for table in Path().glob("biaskit-runs/*/tables/*.csv"):
        for line in table.read_text(errors="surrogatepass").splitlines()[1:]:
            assert not any(field.lstrip('"')[:1] in ("=", "@", "+") for field in line.split(","))


def test_the_folder_is_left_alone_where_it_is_a_runs(tmp_path: Path) -> None:
    paths = two(tmp_path, ["C"], ["I"])
    (tmp_path / "mine" / "tables").mkdir(parents=True)
    (tmp_path / "mine" / "tables" / "x.csv").write_text("1")
    with pytest.raises(BiaskitError, match="mine"):
        bk.compare(*paths, out="mine")


def worlds(rng: np.random.Generator, n_models: int, n: int) -> list[TaskLog]:
    """Models that are all the same on a task with two scores: answers right or wrong, and epoch means."""
    chance = rng.beta(4, 1, n)
    logs = []
    for model in range(n_models):
        right, epochs = rng.binomial(1, chance) * 1.0, rng.binomial(3, chance) / 3
        names = [str(i) for i in range(n)]
        numbers = {
            "right": dict(zip(names, right, strict=True)),
            "mean": dict(zip(names, epochs, strict=True)),
        }
        inputs = dict.fromkeys(names, "")
        logs.append(TaskLog("t", "task", str(model), Path(), inputs=inputs, numbers=numbers))
    return logs


@pytest.mark.slow
@pytest.mark.parametrize(("n_models", "n"), [(2, 25), (4, 60)])
def test_at_most_one_page_of_twenty_claims_what_is_not_there(n_models: int, n: int) -> None:
    rng = np.random.default_rng(n)
    pages = 300
    claimed = sum(
        any(
            row["verdict"] in ("higher", "lower")
            for row in compare_logs(worlds(rng, n_models, n), {}).log_tests
        )
        for _ in range(pages)
    )
    assert claimed / pages < 0.05 + 2 * math.sqrt(0.05 * 0.95 / pages)


def test_a_log_whose_samples_all_failed_is_counted(tmp_path: Path) -> None:
    failed = [sample(i, {}, error="boom") for i in (1, 2)]
    paths = [marks(tmp_path / "a.eval", ["C", "I"], model="a")]
    paths.append(eval_log(tmp_path / "b.eval", failed, model="b"))
    (row,) = rows_of(paths)
    assert (row["n_paired"], row["n_without_score"], row["verdict"]) == (0, 2, "not-measured")
    assert "2 failed in the log of b (1, 2)" in row["reason"]
