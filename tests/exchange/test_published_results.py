"""`--to every-eval-ever` and `--to hf`: the schemas and the hub's own reader take what we write."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.personas_runs import write_texts
from fakes.run_files import table
from needs import not_beside
from places import SHARED

import biaskit as bk

SCHEMAS = SHARED / "data/every_eval_ever"
WORDS = {" He": -1.2, " She": -1.5, " They": -3.0, " Male": -2.0, " Female": -2.2}
HOSTILE = "<script>alert(1)</script> \u202e {{ 7*7 }}: 'x' # \"y\" \U0001f469"
Json = dict[str, Any]


def script(folder: Path, words: dict[str, float] | None = None) -> str:
    path = folder / "m.jsonl"
    path.write_text(json.dumps({"log_probs": WORDS if words is None else words}) + "\n")
    return f"scripted:{path}"


def probe(folder: Path, *models: str, **asked: Any) -> Path:
    asked = {"jobs": "1-3,21-23", "templates": "1-3", **asked}
    return bk.probe(*models, out=folder / "run", watcher=bk.Silent(), **asked).path


def two_models(folder: Path) -> Path:
    other = folder / "other"
    other.mkdir()
    return probe(folder, f"a={script(folder)}", f"b b/ü={script(other, {**WORDS, ' She': -2.5})}")


def debiasing_prompts_and_dialogue(folder: Path) -> Path:
    return probe(folder, script(folder), study="mattern", debiasing_prompts="1-2", context="both")


def undefined(folder: Path) -> Path:
    path = folder / "m.jsonl"
    lines = [{"contains": "gender", "texts": ["He is.", "She is."]}, {"texts": ["No."]}]  # no group, ever
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return probe(folder, f"scripted:{path}", estimator="sampling", samples=3, max_samples_per_prompt=3)


def drawn(folder: Path) -> Path:
    path = folder / "m.jsonl"
    path.write_text(json.dumps({"texts": ["He is.", "She is.", "No."]}) + "\n")
    return probe(folder, f"scripted:{path}", estimator="sampling", samples=3, max_samples_per_prompt=3)


def hostile(folder: Path) -> Path:
    templates = folder / "templates.csv"
    with templates.open("w", newline="", encoding="utf-8") as file:
        rows = [["bias_type", "question", "opening"], ["implicit", f"{HOSTILE} [JOB]?", "A [JOB]."]]
        csv.writer(file).writerows(rows)
    return probe(folder, script(folder), templates=str(templates))


def own_groups(folder: Path) -> Path:
    words = folder / "words.toml"
    words.write_text('[sets.mine.groups]\n"women / girls" = ["She"]\n"men, boys" = ["He"]\n')
    return probe(folder, script(folder), target_words=str(words))


def texts(folder: Path) -> Path:
    rows = [{"text": f"{who} is a nurse.", "job": "nurse"} for who in ("She", "He", "She", "It")]
    rows += [{"text": "It rains.", "job": "clerk"}]
    file = write_texts(folder / "t.csv", rows)
    found = bk.analyze_texts(file, text="text", occupation="job", out=folder / "run", watcher=bk.Silent())
    return found.path


RUNS: dict[str, Callable[[Path], Path]] = {
    "two models": two_models,
    "debiasing prompts and dialogue": debiasing_prompts_and_dialogue,
    "undefined": undefined,
    "drawn": drawn,
    "hostile": hostile,
    "own groups": own_groups,
    "texts": texts,
}


def export(run: Path, to: str, **options: Any) -> Any:
    return bk.export(run, to=to, watcher=bk.Silent(), **options)


def strict(text: str) -> Any:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def wholes(files: Any) -> list[Json]:
    return [strict(file.read_text("ascii")) for file in files]


@pytest.mark.parametrize("kind", RUNS)
def test_files_are_valid_by_the_schemas(tmp_path: Path, kind: str) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    if not SCHEMAS.is_dir():
        not_beside(f"the schemas of Every Eval Ever do not lie in {SCHEMAS}")
    check = jsonschema.Draft7Validator(json.loads((SCHEMAS / "eval.schema.json").read_text("utf-8")))
    for whole in wholes(export(RUNS[kind](tmp_path), "every-eval-ever").files):
        check.validate(whole)


@pytest.mark.parametrize("kind", RUNS)
def test_required_fields_are_there_and_the_numbers_are_ours(tmp_path: Path, kind: str) -> None:
    run = RUNS[kind](tmp_path)
    made = export(run, "every-eval-ever")
    texts_run = kind == "texts"
    rows = table(run, "representation" if texts_run else "probe_groups")
    share = "female_share" if texts_run else "share"
    defined = [row for row in rows if row[share]]
    found = wholes(made.files)
    assert len({row["model"] for row in rows}) == len(found)
    results = [result for whole in found for result in whole["evaluation_results"]]
    assert [float(row[share]) for row in defined] == [one["score_details"]["score"] for one in results]
    assert kind != "undefined" or len(defined) < len(rows)
    assert (len(defined) < len(rows)) == any("undefined and left out" in note for note in made.notes)
    for row, one in zip(defined, results, strict=True):
        given = one["score_details"]["uncertainty"].get("confidence_interval")
        assert (given is not None) == bool(row["ci_low"])
        if given is not None:
            assert (float(row["ci_low"]), float(row["ci_high"])) == (given["lower"], given["upper"])
            assert 0.95 == given["confidence_level"]
            assert given["method"]
        assert one["metric_config"]["lower_is_better"] is False
        assert "neither better nor worse" in one["metric_config"]["evaluation_description"]
    for whole in found:
        assert "0.3.0" == whole["schema_version"]
        ids = [one["evaluation_result_id"] for one in whole["evaluation_results"]]
        assert len(ids) == len(set(ids))


# --- the hub ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", RUNS)
def test_the_hubs_own_reader_gets_our_numbers(tmp_path: Path, kind: str) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    run = RUNS[kind](tmp_path)
    made = export(run, "hf", dataset="me/jobs@abc123", url="https://example.org/page.html")
    entries = [
        entry
        for file in made.files
        for entry in hub.parse_eval_result_entries(yaml.safe_load(file.read_text("utf-8")))
    ]
    rows = table(run, "representation" if kind == "texts" else "probe_groups")
    shares = [row["female_share" if kind == "texts" else "share"] for row in rows]
    assert [round(float(share), 6) for share in shares if share] == [entry.value for entry in entries]
    for file in made.files:
        tasks = [one["dataset"]["task_id"] for one in yaml.safe_load(file.read_text("utf-8"))]
        assert len(tasks) == len(set(tasks))
    for entry in entries:
        assert ("me/jobs", "abc123") == (entry.dataset_id, entry.dataset_revision)
        assert "https://example.org/page.html" == entry.source_url
        assert "neither better nor worse" in entry.notes
        assert "interval" in entry.notes
        assert "\n" not in entry.notes


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, 'none is given: dataset="ORG/NAME"'),
        ({"dataset": "jobs"}, "'jobs' is none"),
        ({"dataset": "me/jobs", "url": "page.html"}, "is not an address"),
        ({"dataset": "me/jobs", "organization": "Me"}, "not organization="),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, options: Json, said: str) -> None:
    run = undefined(tmp_path)
    with pytest.raises(bk.BiaskitError) as told:
        export(run, "hf", **options)
    assert said in str(told.value)
    assert "\n" not in str(told.value)
