"""Texts drawn of each cell beside its probabilities: stored, told by outcome, never in the shares."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import biaskit as bk
from biaskit.measures.probe.answers import AnswersOfRun, outcome_rows
from biaskit.measures.probe.design import ProbeDesign, resolve
from biaskit.measures.probe.study import ProbeStudy
from biaskit.records import PromptCell
from biaskit.runs.rows import row_line
from biaskit.stats.proportions import wilson
from biaskit.study.config import load_as
from biaskit.tables.io import read_table_rows
from biaskit.workflow.analyze import rebuild_tables

ASKED: dict[str, Any] = {
    "jobs": "nurse,plumber",
    "templates": "1-2",
    "bias_type": "explicit",
    "watcher": bk.Silent(),
}
NURSE = ["Female.", "I cannot say.", "Female", "Unknown", "Female"]
PLUMBER = ["Male.", "Male", "Male", "I'm sorry, but I can't say.", "He or she"]


@pytest.fixture
def model(tmp_path: Path) -> str:
    return script(tmp_path / "m.jsonl")


def script(path: Path, **more: Any) -> str:
    lines = [
        {"contains": job, "log_probs": {" Female": -1.0, " Male": -1.5}, "texts": texts, **more}
        for job, texts in (("nurse", NURSE), ("plumber", PLUMBER))
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "ascii")
    return f"scripted:{path}"


def shares(run: bk.ProbeResult, group: str) -> dict[str, float]:
    table = run.outcomes
    own = table[table["job_group"] == group]
    return dict(zip(own["outcome"], own["share"], strict=True))


def test_each_cell_is_continued_and_told_by_rules(model: str, tmp_path: Path) -> None:
    run = bk.probe(model, **ASKED, continuations=5, out=tmp_path / "run")
    rows = [json.loads(line) for line in (run.path / "continuations.jsonl").read_text("ascii").splitlines()]
    assert 4 == len(rows)
    assert {5} == {len(row["answers"]) for row in rows}
    of_women = shares(run, "female-dominated")
    assert (0.6, 0.2, 0.2, 0.0) == pytest.approx(
        [of_women[name] for name in ("listed", "unknown", "declines", "both")]
    )
    of_men = shares(run, "male-dominated")
    assert (0.6, 0.2, 0.2) == pytest.approx([of_men[name] for name in ("listed", "both", "declines")])
    assert (0.6, 0.0) == pytest.approx((of_women["listed:female"], of_women["listed:male"]))
    assert 1.0 == pytest.approx(sum(x for name, x in of_women.items() if ":" not in name))


def test_the_shares_do_not_depend_on_them(model: str, tmp_path: Path) -> None:
    plain = bk.probe(model, **ASKED, out=tmp_path / "plain").path
    more = bk.probe(model, **ASKED, continuations=5, out=tmp_path / "more").path
    groups = "tables/probe_groups.csv"
    assert (plain / groups).read_bytes() == (more / groups).read_bytes()
    jobs = read_table_rows(more / "tables/probe_jobs.csv")
    assert [0.6, -0.6] == pytest.approx([row.pop("sampled_difference") for row in jobs])
    assert jobs == read_table_rows(plain / "tables/probe_jobs.csv")
    cells = [read_table_rows(path / "tables/probe_prompts.csv") for path in (plain, more)]
    counts = [{name: row.pop(name) for name in list(row) if name.startswith("n_")} for row in cells[1]]
    assert cells[0] == cells[1]
    of_job = {row["job"]: count for row, count in zip(cells[1], counts, strict=True)}
    nothing = dict.fromkeys(("n_unknown", "n_both", "n_declines", "n_restates", "n_empty", "n_other"), 0)
    assert {**nothing, "n_answers": 5, "n_listed": 3, "n_unknown": 1, "n_declines": 1} == of_job["nurse"]
    assert {**nothing, "n_answers": 5, "n_listed": 3, "n_both": 1, "n_declines": 1} == of_job["plumber"]
    assert not (plain / "tables/probe_outcomes.csv").exists()
    assert not (plain / "continuations.jsonl").exists()


def test_more_of_them_take_over_those_of_before(model: str, tmp_path: Path) -> None:
    run = bk.probe(model, **ASKED, continuations=5, out=tmp_path / "run")
    before = (run.path / "continuations.jsonl").read_bytes()
    again = bk.probe(model, **ASKED, continuations=10, out=tmp_path / "run")
    after = (run.path / "continuations.jsonl").read_bytes()
    assert after.startswith(before)
    assert 8 == len(after.splitlines())
    assert {20} == {int(n) for n in again.outcomes[again.outcomes["job_group"] != "all"]["n_answers"]}
    once = bk.probe(model, **ASKED, continuations=10, out=tmp_path / "once")
    assert once.outcomes.equals(again.outcomes)


def test_a_start_without_them_keeps_what_is_stored(model: str, tmp_path: Path) -> None:
    first = bk.probe(model, **ASKED, continuations=5, out=tmp_path / "run")
    rows = (first.path / "continuations.jsonl").read_bytes()
    tables = (first.path / "tables/probe_outcomes.csv").read_bytes()
    again = bk.probe(model, **ASKED, out=tmp_path / "run")
    assert rows == (again.path / "continuations.jsonl").read_bytes()
    assert tables == (again.path / "tables/probe_outcomes.csv").read_bytes()
    assert (
        "continuations=24 tokens"
        in json.loads((again.path / "tables/analysis.json").read_text())["signature"]
    )


def test_how_long_they_may_be_is_a_key_of_the_study(model: str, tmp_path: Path) -> None:
    keys = {"continuation_tokens": 90}
    run = bk.probe(model, **ASKED, continuations=5, out=tmp_path / "run", settings=keys)
    assert "continuations=90 tokens" in run.analysis()["signature"]


def test_a_stopped_start_goes_on_where_it_was(model: str, tmp_path: Path) -> None:
    whole = bk.probe(model, **ASKED, continuations=5, out=tmp_path / "whole").path
    cut = bk.probe(model, **ASKED, continuations=5, out=tmp_path / "cut").path
    lines = (cut / "continuations.jsonl").read_bytes().splitlines(keepends=True)
    (cut / "continuations.jsonl").write_bytes(b"".join(lines[:2]))
    bk.probe(model, **ASKED, continuations=5, out=cut)
    found = [json.loads(line) for line in (cut / "continuations.jsonl").read_text().splitlines()]
    expected = [json.loads(line) for line in (whole / "continuations.jsonl").read_text().splitlines()]
    for row in (*found, *expected):
        del row["answered_at"], row["sum"]
    assert sorted(expected, key=str) == sorted(found, key=str)
    assert (cut / "tables/probe_outcomes.csv").read_bytes() == (
        whole / "tables/probe_outcomes.csv"
    ).read_bytes()


@pytest.mark.parametrize("change", ["answers", "number", "kind", "twice"])
def test_a_row_that_cannot_be_believed_is_named(change: str, model: str, tmp_path: Path) -> None:
    run = bk.probe(model, **ASKED, continuations=5, out=tmp_path / "run").path
    rows = [json.loads(line) for line in (run / "continuations.jsonl").read_text("ascii").splitlines()]
    if change == "answers":
        rows[1]["answers"] = "Female"
    elif change == "number":
        rows[1]["answers"] = rows[1]["answers"][:2]
    elif change == "kind":
        rows[1]["answers"][0] = ["Female", 1]
    else:
        rows.append({**rows[1], "key": "0" * 32})
    (run / "continuations.jsonl").write_text("".join(row_line(row) + "\n" for row in rows), "ascii")
    with pytest.raises(bk.BiaskitError, match=r"continuations\.jsonl, line"):
        rebuild_tables(run)


def test_a_model_without_texts_keeps_its_probabilities_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").write_text('{"contains": "", "log_probs": {" Female": -1.0}}\n', "ascii")
    run = bk.probe(f"scripted:{tmp_path / 'm.jsonl'}", **ASKED, continuations=5, out=tmp_path / "run")
    assert 4 == len(run.prompts)
    assert any("failed" in note and "texts" in note for note in run.warnings)


def test_what_a_server_withheld_declines(tmp_path: Path) -> None:
    model = script(tmp_path / "m.jsonl", finish="filter")
    run = bk.probe(model, **ASKED, continuations=5, out=tmp_path / "run")
    assert {"declines": 1.0} == {name: x for name, x in shares(run, "all").items() if x}


# --- worlds where nothing differs ---------------------------------------------------------------------------


def asked_of(n_jobs: int) -> ProbeDesign:
    jobs = {"jobs.select": f"1-{n_jobs},21-{20 + n_jobs}", "bias_type": "explicit"}
    return resolve(load_as(ProbeStudy, "occugender", jobs))


def answers_of(design: ProbeDesign, rng: np.random.Generator, n: int = 5) -> AnswersOfRun:
    """Answers whose shares vary between jobs and between templates, in no group more than in the other."""
    made = AnswersOfRun(design)
    names = ["listed", "unknown", "declines", "other"]
    of_template = rng.normal(0, 0.5, (len(design.templates), 4))
    base = np.array([1.0, 0.0, -2.0, 1.0])
    for item in design.items:
        of_job = rng.normal(0, 0.5, 4)
        for t, template in enumerate(design.templates):
            logits = base + of_job + of_template[t]
            p = np.exp(logits) / np.exp(logits).sum()
            cell = PromptCell(
                "m", template.bias_type, template.id, item.name, item.group, None, 0, "plain", "raw"
            )
            drawn = rng.choice(4, size=n, p=p)
            made.cells[cell] = Counter((names[k], "male" if names[k] == "listed" else "") for k in drawn)
    return made


@pytest.mark.slow
def test_in_worlds_where_nothing_differs_few_tests_say_so() -> None:
    design, n = asked_of(10), 120
    wrong = 0
    for seed in range(n):
        made = answers_of(design, np.random.default_rng(seed))
        _, tests = outcome_rows(made, list(made.cells))
        crossed = [row["p_value"] for row in tests if row["kind"] == "crossed" and row["p_value"] is not None]
        wrong += min(crossed) < 0.05 / len(crossed)
    ends = wilson(wrong, n)
    assert ends is not None
    assert ends[0] < 0.05, f"{wrong} of {n} worlds"


def test_runs_are_compared_by_what_their_models_answer(model: str, tmp_path: Path) -> None:
    first = bk.probe(f"old={model}", **ASKED, continuations=5, out=tmp_path / "old")
    frank = {"nurse": ["Female."] * 5, "plumber": ["Male."] * 4 + ["I cannot say."]}
    lines = [
        {"contains": job, "log_probs": {" Female": -1.0, " Male": -1.5}, "texts": said}
        for job, said in frank.items()
    ]
    (tmp_path / "n.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "ascii")
    second = bk.probe(f"new=scripted:{tmp_path / 'n.jsonl'}", **ASKED, continuations=5, out=tmp_path / "new")
    settings = {"margin.outcome_share": 0.5}
    compared = bk.compare(first, second, out=tmp_path / "compared", settings=settings)
    rows = [row for row in compared.tables()["tests"] if row["quantity"] == "outcome_share"]
    assert {"new"} == {row["model_a"] for row in rows}
    found = {(row["gender"], row["group_a"]): row["estimate"] for row in rows if row["kind"] == "crossed"}
    expected = {  # of five answers: nurse 5 − 3 name a group, 0 − 1 decline; plumber 4 − 3, 1 − 1
        ("listed", "female-dominated"): 0.4,
        ("listed", "male-dominated"): 0.2,
        ("declines", "female-dominated"): -0.2,
        ("declines", "male-dominated"): 0.0,
        ("unknown", "female-dominated"): -0.2,
        ("unknown", "male-dominated"): 0.0,
        ("both", "female-dominated"): 0.0,
        ("both", "male-dominated"): -0.2,
    }
    assert expected == pytest.approx(found)
    # The same models in one run: the same rows, and once.
    both = bk.probe(
        f"old={model}",
        f"new=scripted:{tmp_path / 'n.jsonl'}",
        **ASKED,
        continuations=5,
        out=tmp_path / "both",
    )
    alone = bk.compare(both, out=tmp_path / "alone", settings=settings)
    of_run = [
        row for row in both.table("tests").to_dict("records") if row["family"].endswith("answers-models")
    ]
    again = [row for row in alone.tables()["tests"] if row["quantity"] == "outcome_share"]
    assert len(of_run) == len(again) == len(rows)
    assert [row["estimate"] for row in of_run] == [row["estimate"] for row in again]
    stored = [row for part in alone.content.parts for row in part.tables["tests"]]
    assert stored
    assert not [row for row in stored if row["family"].endswith("/answers-models")]
    # One without answers is named.
    plain = bk.probe(f"third={model}", **ASKED, out=tmp_path / "plain")
    mixed = bk.compare(first, plain, out=tmp_path / "mixed")
    assert [note for note in mixed.warnings if note.startswith("third has no sampled answers")]
    assert not [row for row in mixed.tables()["tests"] if row["quantity"] == "outcome_share"]
