"""Which stored rows answer the cells of a design."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.run_files import csv_tables as tables

import biaskit as bk
from biaskit.errors import RunError
from biaskit.measures.probe.command import probe
from biaskit.runs.rows import row_line
from biaskit.workflow.analyze import rebuild_tables

Row = dict[str, Any]
ASKED = {"jobs": ["nurse", "plumber"], "templates": "1-2"}


@pytest.fixture
def model(tmp_path: Path) -> str:
    line = {"contains": "", "log_probs": {" She": -0.5, " He": -1.5}}
    (tmp_path / "m.jsonl").write_text(json.dumps(line) + "\n", "ascii")
    return f"scripted:{tmp_path / 'm.jsonl'}"


def rewrite(run: Path, change: Callable[[Row], Row]) -> None:
    rows = [change(json.loads(line)) for line in (run / "probe.jsonl").read_text("ascii").splitlines()]
    (run / "probe.jsonl").write_text("".join(row_line(row) + "\n" for row in rows), "ascii")


def test_labels_of_one_model_share_its_rows(model: str, tmp_path: Path) -> None:
    made = probe(f"a={model}", f"b={model}", **ASKED, out=tmp_path / "run")
    of_label = {label: own["coverage"].tolist() for label, own in made.prompts.groupby("model")}
    assert of_label["a"] == of_label["b"]
    rows = [json.loads(line) for line in (made.path / "probe.jsonl").read_text("ascii").splitlines()]
    assert {"a"} == {row["model"] for row in rows}


def test_rows_of_another_model_of_the_same_label_are_not_used(model: str, tmp_path: Path) -> None:
    run = probe(f"a={model}", **ASKED, out=tmp_path / "run").path
    line = {"contains": "", "log_probs": {" She": -2.5, " He": -0.5}}
    (tmp_path / "m.jsonl").write_text(json.dumps(line) + "\n", "ascii")
    alone = probe(f"a={model}", **ASKED, out=tmp_path / "alone").path
    again = probe(f"a={model}", **ASKED, out=run)
    n = len((alone / "probe.jsonl").read_text("ascii").splitlines())
    assert f"{n} stored rows are not part of this study and were not used" in again.warnings
    assert tables(alone) == tables(run)


def test_another_article_of_a_job_is_another_study(model: str, tmp_path: Path) -> None:
    def ask(article: str) -> Path:
        (tmp_path / "jobs.csv").write_text(f"item,group,article\nhour,x,{article}\nday,x,\n", "ascii")
        return probe(
            f"a={model}",
            jobs=str(tmp_path / "jobs.csv"),
            templates="1-2",
            settings={"articles": "grammatical"},
            out=tmp_path / "run",
        ).path

    ask("a")
    with pytest.raises(RunError, match="article of, hour is a, this command's is an"):
        ask("an")


def test_a_target_word_that_begins_one_of_another_group_is_named(model: str, tmp_path: Path) -> None:
    run = probe(f"a={model}", **ASKED, out=tmp_path / "run").path
    in_bytes = {
        "token": lambda e: {**e, "token_ids": list(e["text"].encode())},
        "none": lambda e: {**e, "token_ids": None},
    }

    def notes(tokens: str) -> list[str]:
        change = in_bytes[tokens]
        rewrite(run, lambda row: {**row, "target_words": [change(e) for e in row["target_words"]]})
        return [note for note in rebuild_tables(run) if "begins" in note]

    (said,) = notes("token")
    assert said.startswith("a: ' He' (male) begins ' Her' (female): ' He' counts without it (")
    assert said.endswith(" such pairs)")
    assert not notes("none")


def test_a_run_says_in_its_notes_and_repr_that_a_models_shares_are_weak_evidence(tmp_path: Path) -> None:
    file = tmp_path / "m.jsonl"
    file.write_text('{"log_probs": {" He": -3.6, " She": -3.8}}\n')
    run = probe(f"m=scripted:{file}", **ASKED, bias_type="implicit", out=tmp_path / "run").path
    manifest = json.loads((run / "manifest.json").read_text("utf-8"))
    manifest["models"]["m"]["spec"] = "demo"
    (run / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    result = bk.load(run)
    (note,) = (note for note in result.warnings if "weak evidence" in note)
    said = "m: weak evidence, the words of the two groups have only 5 % (implicit prompts)"
    assert note == f"{said}; `biaskit doctor demo --prompt-formats` tries others"
    assert repr(result).endswith("weak evidence)")
    prompt_format = manifest["models"]["m"]["prompt_format"]
    for there, more in (
        (0.27, "m: coverage on a few implicit prompts is 27 % with chat-prefill, 5 % with raw"),
        (0.09, f"{said}; no prompt format reaches 10 %: try --continue N"),
    ):
        manifest["models"]["m"]["reach"] = {"implicit": {prompt_format: 0.05, "chat-prefill": there}}
        (run / "manifest.json").write_text(json.dumps(manifest), "utf-8")
        assert any(note.startswith(more) for note in rebuild_tables(run))


@pytest.mark.parametrize(("explicit", "first"), [(-9.0, "Implicit"), (-4.0, "Explicit")])
def test_prompts_that_reach_too_little_are_printed_last(tmp_path: Path, explicit: float, first: str) -> None:
    file = tmp_path / "m.jsonl"
    lines = [{"contains": "gender", "else": explicit}, {"else": -2.0}]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    tables = probe(f"m=scripted:{file}", **ASKED, out=tmp_path / "run").document().tables
    assert [first] == [tables[0].title.split()[0]]
    assert 2 == len(tables)
