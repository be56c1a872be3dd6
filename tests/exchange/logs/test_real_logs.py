"""Logs that Inspect and lm-eval wrote in this test: our numbers are those that the tools print."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from needs import require_package
from places import ROOT
from scipy import stats

import biaskit as bk

pytestmark = [pytest.mark.slow, pytest.mark.process]


def logs_of(tool: str, folder: Path) -> Path:
    """What the tool writes, offline and with nothing in the user's cache."""
    script = ROOT / "tests" / "fakes" / "tool_logs.py"
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder / "cache")}
    made = subprocess.run(
        [sys.executable, script, tool, folder / "logs"],
        env={**os.environ, **offline, "INSPECT_EVAL_LOG_FILE_PATTERN": "{task}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr[-3000:]
    return folder / "logs"


def test_two_logs_of_inspect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_package("inspect_ai", "inspect")
    monkeypatch.chdir(tmp_path)
    logs = logs_of("inspect", tmp_path)
    paths = [next((logs / model).glob("*.eval")) for model in ("first", "second")]
    result = bk.compare(*paths)
    rows = {row["metric"]: row for row in result.tables()["log_tests"]}
    assert set(rows) == {"match", "includes"}
    row = rows["match"]
    assert (row["model_a"], row["model_b"]) == ("mockllm/second", "mockllm/first")
    assert (row["n_paired"], row["n_without_score"], row["verdict"]) == (39, 1, "lower")
    assert [one["sample"] for one in result.tables()["log_unpaired"]] == ["s7", "s7"]
    assert "failed in the log of mockllm/second" in row["reason"]

    from inspect_ai.log import read_eval_log

    means = []
    for path in paths:
        own: dict[str, list[float]] = {}
        for sample in read_eval_log(str(path)).samples or []:
            if sample.id != "s7":
                assert sample.scores is not None
                own.setdefault(str(sample.id), []).append(sample.scores["match"].value == "C")
        means.append([sum(values) / len(values) for _, values in sorted(own.items())])
    theirs = stats.ttest_rel(means[1], means[0])
    assert row["statistic"] == pytest.approx(theirs.statistic)
    assert row["estimate"] == pytest.approx(sum(means[1]) / 39 - sum(means[0]) / 39)


def test_two_sample_files_of_lm_eval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_package("lm_eval", "lm-eval")
    monkeypatch.chdir(tmp_path)
    logs = logs_of("lm-eval", tmp_path)
    result = bk.compare(logs / "first", logs / "second")
    rows = {row["metric"]: row for row in result.tables()["log_tests"]}
    assert set(rows) == {"acc,none", "acc_norm,none"}
    row = rows["acc,none"]
    for side, model in (("a", "second"), ("b", "first")):
        stated = json.loads(next((logs / model).glob("results_*.json")).read_text())["results"]["sums"]
        assert row[f"mean_{side}"] == pytest.approx(stated["acc,none"])
    only_a, only_b = row["n_higher_a"], row["n_higher_b"]
    assert row["p_value"] == pytest.approx(stats.binomtest(only_a, only_a + only_b).pvalue)
    assert (row["kind"], row["n_paired"]) == ("mcnemar", 40)
    assert result.warnings == ()
    files = sorted(logs.glob("*/samples_*.jsonl"))
    assert bk.compare(*files).tables() == result.tables()
