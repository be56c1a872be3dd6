"""`biaskit verify`: clean runs of each kind agree, and what was changed is found and named."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.command import Cli
from fakes.personas_runs import write_vectors
from fakes.tiny_models import save_model

import biaskit as bk
from biaskit.runs.merge import merge
from biaskit.runs.rows import row_line
from biaskit.runs.verification import FILE, Verification, read_verification
from biaskit.workflow.analyze import rebuild_tables

Row = dict[str, Any]
LINES = [
    {"contains": "nurse", "log_probs": {" She": -0.5, " He": -1.5}, "texts": ["She is.", "He is."]},
    {"contains": "", "log_probs": {" He": -0.4, " She": -1.8, " They": -2.5}, "texts": ["He is.", "She is."]},
]


@pytest.fixture
def script(quick_folder: Path) -> str:
    Path("m.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES), "ascii")
    return f"m=scripted:{quick_folder / 'm.jsonl'}"


def probe(*models: str, out: str = "run", **more: Any) -> Path:
    chosen = {"jobs": "nurse,plumber", "templates": "1-2", **more}
    return bk.probe(*models, out=out, watcher=bk.Silent(), **chosen).path


def verify(run: Path, **more: Any) -> Verification:
    return bk.verify(run, watcher=bk.Silent(), **{"seed": 1, **more})


def failing(found: Verification) -> dict[str, str]:
    return {one.name: one.text for one in found.checks if one.outcome != "agrees"}


def change_rows(run: Path, change: Callable[[Row], None], name: str = "probe.jsonl") -> None:
    """Rows as somebody would forge them: with checksums that fit."""
    rows = [json.loads(line) for line in (run / name).read_text("ascii").splitlines()]
    for row in rows:
        change(row)
    (run / name).write_text("".join(row_line(row) + "\n" for row in rows), "ascii")


def change_manifest(run: Path, change: Callable[[Row], None]) -> None:
    manifest = json.loads((run / "manifest.json").read_text("ascii"))
    change(manifest)
    (run / "manifest.json").write_text(json.dumps(manifest), "ascii")


def bytes_in(run: Path) -> dict[str, bytes]:
    return {str(p.relative_to(run)): p.read_bytes() for p in run.rglob("*") if p.is_file() and p.name != FILE}


# --- clean runs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [{}, {"estimator": "sampling", "samples": 4}])
def test_a_clean_scripted_run_agrees_and_stays_as_it_was(script: str, more: dict[str, Any]) -> None:
    run = probe(script, **more)
    before = bytes_in(run)
    found = verify(run)
    assert "agrees" == found.outcome, failing(found)
    assert before == bytes_in(run)
    assert found == read_verification(run)
    assert ["rows", "lists", "tables", "model", "prompts"] == [check.name for check in found.checks]


def test_texts_of_a_script_agree_and_a_changed_one_does_not(script: str) -> None:
    run = bk.personas(
        script,
        study="gasp-pilot",
        occupations="teacher",
        out="texts",
        watcher=bk.Silent(),
        settings={
            "per_gender": 4,
            "permutations": 19,
            "clusters": False,
            "vectors": write_vectors(Path("v.txt")),
        },
    ).path
    found = verify(run, prompts=6)
    assert "agrees" == found.outcome, failing(found)
    assert 6 == found.checks[-1].asked
    change_rows(run, lambda row: row.update(text=row["text"] + " So."), "personas.jsonl")
    rebuild_tables(run)
    assert {"texts"} == set(failing(verify(run, prompts=6)))


def test_imported_texts_cannot_be_asked_again(quick_folder: Path) -> None:
    texts = ["She is a nurse and helps.", "He is a nurse and helps."] * 3
    run = bk.analyze_texts(
        {"text": texts, "job": ["nurse"] * 6},
        occupation="job",
        settings={"permutations": 19, "clusters": False},
        out="mine",
        watcher=bk.Silent(),
    ).path
    found = verify(run)
    assert ("not-checked", {"texts"}) == (found.outcome, set(failing(found)))
    assert "agrees" == verify(run, ask=False).outcome


def test_shards_and_a_packed_merged_run_agree(script: str) -> None:
    parts = [probe(script, out=f"part-{i}", shard=f"{i}/2") for i in (1, 2)]
    assert "agrees" == verify(parts[0]).outcome
    run = merge(parts, Path("whole"))
    rebuild_tables(run)
    rows = run / "probe.jsonl"
    (run / "probe.jsonl.gz").write_bytes(gzip.compress(rows.read_bytes()))
    rows.unlink()
    assert "agrees" == verify(run).outcome


def test_the_sample_follows_from_the_seed_and_not_from_the_order_of_rows(script: str) -> None:
    run = probe(script)
    before = verify(run, prompts=3, seed=5)
    lines = (run / "probe.jsonl").read_text("ascii").splitlines(keepends=True)
    (run / "probe.jsonl").write_text("".join(reversed(lines)), "ascii")
    assert before.checks[-1] == verify(run, prompts=3, seed=5).checks[-1]


# --- what was changed ---------------------------------------------------------------------------------------


def test_a_forged_probability_with_tables_that_fit_is_found_by_asking(script: str) -> None:
    run = probe(script)

    def forge(row: Row) -> None:
        if row["job"] == "nurse" and row["bias_type"] == "implicit" and row["template_id"] == 1:
            row["target_words"][0]["log_prob"] -= 0.3

    change_rows(run, forge)
    rebuild_tables(run)
    found = verify(run)
    assert {"prompts"} == set(failing(found))
    assert "implicit template 1, nurse" in failing(found)["prompts"]
    assert 0.3 == pytest.approx(found.checks[-1].largest)
    assert "agrees" == verify(run, ask=False).outcome


def test_counts_that_the_model_does_not_draw_are_found_by_asking(script: str) -> None:
    run = probe(script, estimator="sampling", samples=4)

    def forge(row: Row) -> None:
        row |= {"answers": [["Oh.", "stop"]] * row["samples"], "counts": dict.fromkeys(row["counts"], 0)}

    change_rows(run, forge)
    rebuild_tables(run)
    assert {"prompts"} == set(failing(verify(run)))


def test_a_changed_row_is_found_without_a_model(script: str) -> None:
    run = probe(script)
    change_rows(run, lambda row: row["target_words"][0].update(log_prob=-3.0))
    assert "the rows are not those" in failing(verify(run, ask=False))["tables"]
    text = (run / "probe.jsonl").read_text("ascii")
    (run / "probe.jsonl").write_text(text.replace("-3.0", "-3.1", 1), "ascii")
    assert "not as written" in failing(verify(run, ask=False))["rows"]
    other = probe(script, out="other")
    change_rows(other, lambda row: row.update(key=f"{int(row['key'], 16) ^ 1:032x}"))
    assert "were different when it was sent" in failing(verify(other, ask=False))["rows"]


def test_a_table_edited_by_hand_is_named_with_row_and_column(script: str) -> None:
    run = probe(script)
    path = run / "tables" / "probe_groups.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    rows[1][rows[0].index("share")] = "0.5"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    found = failing(verify(run, ask=False))["tables"]
    assert "probe_groups.csv is not as it was written" in found
    assert "probe_groups.csv, row 1, share: '0.5' stored" in found


def test_a_changed_study_and_a_list_of_ones_own_that_changed_or_is_away(script: str) -> None:
    Path("jobs.csv").write_text("item,group\nnurse,a\nplumber,b\n", "utf-8")
    run = probe(script, jobs="./jobs.csv")
    assert "agrees" == verify(run).outcome
    Path("jobs.csv").write_text("item,group\nnurse,a\nwelder,b\n", "utf-8")
    assert "a different list here" in failing(verify(run, ask=False))["lists"]
    Path("jobs.csv").unlink()
    found = verify(run, ask=False)
    assert ("not-checked", {"lists"}) == (found.outcome, set(failing(found)))
    change_manifest(run, lambda m: m["resolved"]["items"][0].update(workforce_share=0.11))
    assert "digest" in failing(verify(run, ask=False))["lists"]


def test_other_choices_of_a_later_analysis_are_no_difference(script: str) -> None:
    run = probe(script)
    rebuild_tables(run, {"min_coverage": 0.2})
    assert "agrees" == verify(run, ask=False).outcome


def test_another_model_under_the_same_name(script: str) -> None:
    run = probe(script)
    Path("m.jsonl").write_text(json.dumps({"log_probs": {" He": -0.1}}) + "\n", "ascii")
    found = verify(run)
    assert ("differs", {"model", "prompts"}) == (found.outcome, set(failing(found)))
    Path("m.jsonl").unlink()
    found = verify(run)
    assert ("not-checked", {"model"}) == (found.outcome, set(failing(found)))


def test_an_empty_model_asks_none_and_not_the_run_s_own_without_a_question(script: str) -> None:
    found = verify(probe(script), model="")
    assert ("not-checked", {"model"}) == (found.outcome, set(failing(found)))


# --- a real tokenizer and weights -------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, own_cache: Path, one_thread: None) -> Path:
    return save_model(tmp_path / "tiny", "llama", "bpe-bos")


@pytest.mark.parametrize("how", [{}, {"estimator": "top-k"}, {"estimator": "sampling", "samples": 4}])
def test_a_local_model_agrees_and_another_revision_does_not(
    folder: Path, quick_folder: Path, how: dict[str, Any]
) -> None:
    run = probe(f"m=hf:{folder}", **how)
    found = verify(run)
    assert "agrees" == found.outcome, failing(found)
    shutil.rmtree(folder)
    save_model(folder, "llama", "bpe-bos", seed=1)
    assert {"model", "prompts"} == set(failing(verify(run)))


def test_another_dtype_is_named_and_does_not_agree(folder: Path, quick_folder: Path) -> None:
    run = probe(f"m=hf:{folder}", dtype="float32")
    found = failing(verify(run, dtype="bfloat16"))
    assert "dtype bfloat16" in found["model"]
    assert "tolerance 0.001 (float32)" in found["prompts"]


# --- what is written and said -----------------------------------------------------------------------------


def test_the_command_says_a_line_for_each_check_and_ends_with_its_code(script: str, console: Cli) -> None:
    run = probe(script)
    said = console("verify", run, "--seed", "3", "--yes")
    assert 0 == said.code
    assert "The run agrees (seed 3)." in said.out
    assert 2 == console("verify", run).code  # it names its models itself, and nobody is there to agree
    change_rows(run, lambda row: row["target_words"][0].update(log_prob=-3.0))
    assert 4 == console("verify", run, "--no-model").code
    clean = probe(script, out="clean")
    Path("m.jsonl").unlink()
    assert 3 == console("verify", clean, "--yes").code
