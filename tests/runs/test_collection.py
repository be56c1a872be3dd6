"""Stored tables of several runs side by side: labels told apart, parts by study, nothing computed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from biaskit.errors import RunError
from biaskit.measures.probe.command import probe
from biaskit.runs.collection import gather
from biaskit.tables.io import read_table_rows

SMALL: dict[str, Any] = {"jobs": "nurse,mechanic,cook", "templates": "1-2", "study": "gasp-occupations"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, she in (("a", -0.5), ("b", -1.5)):
        lines = [
            {"contains": "nurse", "log_probs": {" She": she}},
            {"log_probs": {" He": -0.6, " She": -2.0}},
        ]
        Path(f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return tmp_path


def run(out: str, *models: str, **more: Any) -> Path:
    return probe(*models, out=out, **{**SMALL, **more}).path


def test_runs_of_one_study_are_one_part_with_every_row() -> None:
    one, two = run("one", "a=scripted:a.jsonl"), run("two", "b=scripted:b.jsonl", jobs="nurse,clerk")
    found = gather([one, two])
    (part,) = found.parts
    assert ["a", "b"] == [model.label for model in part.models]
    stored = [
        *read_table_rows(one / "tables" / "probe_jobs.csv"),
        *read_table_rows(two / "tables" / "probe_jobs.csv"),
    ]
    assert stored == list(part.tables["probe_jobs"])
    assert ("female", "male") == part.contrast
    assert 4 == len(part.templates)


def test_a_label_of_two_runs_tells_the_folders_apart() -> None:
    old, new = run("x/old", "m=scripted:a.jsonl"), run("x/new", "m=scripted:b.jsonl")
    found = gather([old, new])
    (part,) = found.parts
    assert ["m (old)", "m (new)"] == [model.label for model in part.models]
    assert {"m (old)", "m (new)"} == {row["model"] for row in part.tables["probe_prompts"]}
    assert {"m (old)", "m (new)"} == {row["model_a"] for row in part.tables["tests"]}
    assert "m (old)" in found.notes[0]
    assert {"m": "m (new)"} == dict(found.runs[1].names)
    # The files are as they were.
    assert {"m"} == {row["model"] for row in read_table_rows(new / "tables" / "probe_prompts.csv")}


def test_other_texts_under_one_study_name_are_another_part(tmp_path: Path) -> None:
    Path("own.csv").write_text("bias_type,question,opening\nexplicit,Is a [JOB] a man?,\n", "utf-8")
    Path("other.csv").write_text("bias_type,question,opening\nexplicit,Is a [JOB] a woman?,\n", "utf-8")
    one = run("one", "a=scripted:a.jsonl", templates="./own.csv")
    two = run("two", "b=scripted:b.jsonl", templates="./other.csv")
    parts = gather([one, two]).parts
    assert ["gasp-occupations-own-lists (one)", "gasp-occupations-own-lists (two)"] == [
        p.study for p in parts
    ]


def test_tests_between_models_are_left_to_the_comparison() -> None:
    made = run("one", "a=scripted:a.jsonl", "b=scripted:b.jsonl")
    stored = read_table_rows(made / "tables" / "tests.csv")
    assert any(str(row["family"]).endswith("/models") for row in stored)
    found = gather([made])
    # Neither place holds them: of 100 models they are more than a hundred thousand rows.
    for kept in (found.parts[0].tables["tests"], found.runs[0].tables["tests"]):
        assert kept
        assert not any(row["family"].endswith("/models") for row in kept)


def test_a_run_without_tables_says_what_makes_them() -> None:
    made = run("one", "a=scripted:a.jsonl")
    (made / "tables" / "analysis.json").unlink()
    with pytest.raises(RunError, match=r"has no tables yet: `biaskit analyze one` makes them"):
        gather([made])
