"""Runs as logs of Inspect: its own reader sees cells, scores and intervals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fakes.run_files import script

import biaskit as bk

pytestmark = pytest.mark.slow  # importing inspect_ai takes seconds

HOSTILE = (
    "<img src=x onerror=alert(1)><script>alert(1)</script>",
    "[x](javascript:alert(1)) ![x](http://127.0.0.1:9/p.png)",
    "attachment://0123456789abcdef",
    "\x1b[31m\u202e$(rm -rf /)\n\n# {{7*7}}",
    "\ud800 half a character",
)
QUIET: dict[str, Any] = {"watcher": bk.Silent()}


def exported(run: Path) -> list[Path]:
    return list(bk.export(run, to="inspect", **QUIET).files)


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models whose probabilities are stated, both bias types."""
    home = tmp_path_factory.mktemp("exact")
    one = script(home / "a.jsonl", {"log_probs": {" He": -1.2, " She": -1.5, " They": -3.0, " Male": -2.0}})
    two = script(
        home / "b.jsonl",
        {"contains": "nurse", "log_probs": {" She": -0.6, " He": -3.5, " Female": -2.0}},
        {"log_probs": {" She": -2.2, " He": -0.9, " Male": -2.0}},
    )
    asked = {"jobs": "1-3,21-23", "templates": "1-3", **QUIET}
    return bk.probe(f"one={one}", f"../two <b>={two}", out=home / "run", **asked).path


@pytest.fixture(scope="module")
def log(exact: Path) -> Path:
    return exported(exact)[0]


def test_inspects_own_reader_sees_cells_scores_and_intervals(exact: Path, log: Path) -> None:
    from inspect_ai.log import read_eval_log

    whole, head = read_eval_log(str(log)), read_eval_log(str(log), header_only=True)
    assert "success" == whole.status == head.status
    assert head.samples is None
    assert whole.samples is not None
    assert 18 == len(whole.samples) == head.results.total_samples  # type: ignore[union-attr]
    groups = bk.load(exact, **QUIET).groups  # type: ignore[attr-defined]
    rows = groups[(groups["model"] == "one") & (groups["bias_type"] == "explicit")]
    scores = {score.name: score for score in head.results.scores}  # type: ignore[union-attr]
    for row in rows.to_dict("records"):
        metric = scores[f"{row['gender']} share"].metrics[f"{row['gender']} share in {row['job_group']}"]
        assert row["share"] == metric.value
        assert (row["ci_low"], row["ci_high"]) == (metric.metadata["ci_low"], metric.metadata["ci_high"])  # type: ignore[index]
    cells = bk.load(exact, **QUIET).prompts  # type: ignore[attr-defined]
    cell = cells[(cells["model"] == "one") & (cells["bias_type"] == "explicit")].iloc[0]
    sample = whole.samples[0]
    assert cell["job"] == sample.metadata["job"]
    value = sample.scores["biaskit"].value  # type: ignore[index]
    assert (cell["female_share"], cell["coverage"]) == (value["female share"], value["coverage"])  # type: ignore[index,call-overload]


def test_samples_of_several_batches_and_hostile_texts_are_in_it(tmp_path: Path) -> None:
    from inspect_ai.log import read_eval_log

    texts = [*HOSTILE, "She said", "He did", "They"]
    model = script(tmp_path / "m.jsonl", {"texts": texts, "log_probs": {}})
    asked = {"estimator": "sampling", "samples": 4, "max_samples_per_prompt": 12, "bias_type": "implicit"}
    run = bk.probe(model, jobs="1-2,21-22", templates="1-2", out=tmp_path / "run", **asked, **QUIET).path
    assert any(row["batch"] for row in map(json.loads, (run / "probe.jsonl").read_text().splitlines()))
    said = {
        choice.message.text
        for sample in read_eval_log(str(exported(run)[0])).samples or ()
        for choice in sample.output.choices
    }
    assert set(HOSTILE[:4]) <= said
