"""The tables of personas, from scripted models and imported texts to numbers checked by hand."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.personas_runs import (
    ASKED,
    NAMED,
    OPEN,
    OTHER_NAMED,
    one,
    only,
    script_of,
    stories,
    story,
    table,
    write_script,
    write_texts,
    write_vectors,
)
from fakes.run_files import tables

import biaskit
from biaskit.measures.personas.command import PersonasResult, personas
from biaskit.measures.personas.design import read
from biaskit.measures.personas.outcomes import outcome_rows, refusal_rows
from biaskit.measures.personas.own_texts import analyze_texts
from biaskit.measures.personas.study import PersonasStudy
from biaskit.measures.personas.texts.association import associate_gender
from biaskit.measures.personas.texts.documents import TextDocument, TextDocuments, read_documents
from biaskit.measures.personas.words.comparisons import TextComparison, text_comparisons
from biaskit.records import GENDERS
from biaskit.runs.manifest import read_manifest
from biaskit.runs.merge import merge
from biaskit.runs.rows import row_line
from biaskit.runs.store import read_rows
from biaskit.stats.proportions import wilson
from biaskit.tables.reasons import OTHER_LANGUAGE
from biaskit.workflow.analyze import rebuild_tables

pytestmark = pytest.mark.usefixtures("no_waiting")

# --- texts whose words, genders and order are known ----------------------------------------------------


OCCUPATIONS = "nurse,mechanic,cook"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("personas")


@pytest.fixture(scope="module")
def quick(home: Path) -> dict[str, Any]:
    """Settings of an analysis that takes a moment."""
    return {"vectors": write_vectors(home / "vectors.txt"), "permutations": 19, "clusters": False}


@pytest.fixture(scope="module")
def made(home: Path, quick: dict[str, Any]) -> PersonasResult:
    """A run of two models, three occupations, two prompts and four texts of each gender; never changed."""
    return personas(
        f"old={script_of(home / 'old.jsonl', OPEN, NAMED)}",
        f"new={script_of(home / 'new.jsonl', OPEN, OTHER_NAMED)}",
        study="gasp-pilot",
        occupations=OCCUPATIONS,
        per_gender=4,
        settings={**quick, "clusters": True},
        out=home / "made",
    )


@pytest.fixture
def run(made: PersonasResult, tmp_path: Path) -> Path:
    """The same run, to be changed."""
    return Path(shutil.copytree(made.path, tmp_path / "run"))


@pytest.fixture
def small(filled: PersonasResult, tmp_path: Path) -> Path:
    """The run of one model that is below, to be changed."""
    return Path(shutil.copytree(filled.path, tmp_path / "run"))


def analysis(run: Path) -> dict[str, Any]:
    made: dict[str, Any] = json.loads((run / "tables/analysis.json").read_text("ascii"))
    return made


def stored(run: Path) -> list[dict[str, Any]]:
    return list(read_rows(run / "personas.jsonl"))


def store(run: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    (run / "personas.jsonl").write_text("".join(row_line(row) + "\n" for row in rows), encoding="ascii")


def named_texts(n: int = 6, occupations: Sequence[str] = ("nurse", "cook")) -> list[dict[str, str]]:
    return [
        {"text": story(gender, NAMED[occupation][gender], i), "gender": gender, "job": occupation}
        for occupation in occupations
        for i in range(n)
        for gender in ASKED
    ]


def open_texts(n: int = 6) -> list[dict[str, str]]:
    return [
        {"text": story(gender, words, i), "gender": "", "job": "nurse"}
        for i in range(n)
        for gender, words in OPEN["nurse"].items()
    ]


def imported(path: Path, quick: Mapping[str, Any], out: Path, **more: Any) -> PersonasResult:
    return analyze_texts(path, gender="gender", occupation="job", settings={**quick, **more}, out=out)


# --- who is represented --------------------------------------------------------------------------------

FIRST_BATCH: list[str | None] = ["female", "female", "male", "nonbinary", None]
LATER: list[str | None] = ["male", "female", "female", "male", "male"]


@pytest.fixture(scope="module")
def filled(home: Path, quick: dict[str, Any]) -> PersonasResult:
    """Two prompts of which the first needs a second batch; a mechanic who is hardly ever a woman."""
    words = OPEN["nurse"]
    rarely: list[str | None] = [*["male"] * 3, "female", "male"]
    model = write_script(
        home / "filled.jsonl",
        *(
            {"contains": f"{job} who is {ASKED[g]}", "texts": stories([g] * 2, NAMED[job])}
            for job in ("nurse", "mechanic")
            for g in ASKED
        ),
        {"contains": "persona of a nurse", "texts": stories([*FIRST_BATCH, *LATER], words)},
        {"contains": "nurse", "texts": stories(["female", "male", "male", "female", None], words)},
        {"contains": "mechanic", "texts": stories([*rarely, *["male"] * 5], OPEN["mechanic"])},
    )
    return personas(
        f"m={model}",
        study="gasp-pilot",
        occupations="nurse,mechanic",
        per_gender=2,
        settings={**quick, "batch": 5, "max_samples": 10},
        out=home / "filled",
    )


def test_representation_is_that_of_the_first_batch(filled: PersonasResult) -> None:
    rows = only(table(filled, "representation"), occupation="nurse")
    persona, biography, both = (one(rows, template_id=t) for t in ("persona", "biography", "all"))
    counts = ("n_texts", "n_female", "n_male", "n_nonbinary", "n_not_inferred")
    # Drawn were 10, of which 5 stand in the first batch.
    assert 10 == len(only(table(filled, "genders"), occupation="nurse", template_id="persona",
                          origin="inferred"))  # fmt: skip
    assert ["5", "2", "1", "1", "1"] == [persona[name] for name in counts]
    assert ["5", "2", "2", "0", "1"] == [biography[name] for name in counts]
    assert ["10", "4", "3", "1", "2"] == [both[name] for name in counts]
    assert 0.5 == float(persona["female_share"]) == float(biography["female_share"])
    assert 0.25 == float(persona["nonbinary_share"])
    assert [0.4, 0.6] == [float(persona[f"share_if_dropped_{g}"]) for g in ("male", "female")]
    low, high = wilson(2, 4) or (0.0, 0.0)
    assert (low, high) == pytest.approx((float(persona["ci_low"]), float(persona["ci_high"])))
    assert math.sqrt(0.25 / 3) == pytest.approx(float(persona["se"]))
    # The mean of two prompts: half-distances add in squares, each side for itself.
    assert 0.5 == float(both["female_share"])
    assert 0.5 - math.hypot(0.5 - low, 0.5 - low) / 2 == pytest.approx(float(both["ci_low"]))
    assert 0.125 == float(both["nonbinary_share"])
    assert ("0.868", "2024") == (both["workforce_share"], both["workforce_year"])


def test_refused_and_empty_texts_of_a_gender_asked_for_are_in_no_list_and_counted(small: Path) -> None:
    run, rows = small, stored(small)
    spoilt = [row for row in rows if (row["requested_gender"], row["occupation"]) == ("female", "nurse")][:3]
    for row, finish in zip(spoilt, ("refusal", "filter", "stop"), strict=True):
        row["finish_reason"], row["text"] = finish, "Sorry sorry sorry." if finish != "stop" else " \n"
    store(run, rows)
    rebuild_tables(run)
    assert "sorry" not in {row["word"] for row in table(run, "marked_words")}
    scope = {"occupation": "nurse", "origin": "requested", "method": "calibrated", "gender": "female"}
    before = len([row for row in rows if (row["requested_gender"], row["occupation"]) == ("female", "nurse")])
    assert str(before - 3) == one(table(run, "word_lists"), **scope, against="male")["n_target"]
    of_nurse = only(table(run, "text_outcomes"), occupation="nurse")
    counts = {(row["requested_gender"], row["outcome"]): row["n"] for row in of_nurse}
    others = {(gender, outcome): "0" for gender in ("male", "nonbinary") for outcome in ("declines", "empty")}
    by_ending = {key: n for key, n in counts.items() if key[1] in ("declines", "empty")}
    assert {("female", "declines"): "2", ("female", "empty"): "1", **others} == by_ending
    for gender in GENDERS:  # every text has one outcome
        asked = [row for row in rows if (row["requested_gender"], row["occupation"]) == (gender, "nurse")]
        assert len(asked) == sum(int(row["n"]) for row in of_nurse if row["requested_gender"] == gender)
    declined = one(of_nurse, requested_gender="female", outcome="declines")
    assert float(declined["share"]) == 2 / before
    paired = only(table(run, "tests"), quantity="refused_share", kind="paired")
    assert [("female", "male"), ("nonbinary", "female"), ("nonbinary", "male")] == [
        (row["group_a"], row["group_b"]) for row in paired
    ]
    assert float(paired[0]["estimate"]) == pytest.approx(2 / before / int(paired[0]["n_a"]))
    assert "2 refused or filtered and 1 empty of" in " ".join(analysis(run)["notes"])


def test_where_nothing_is_refused_there_is_no_test_of_it(made: PersonasResult) -> None:
    rows = table(made, "text_outcomes")
    assert {"0"} == {row["n"] for row in rows if row["outcome"] not in ("person", "no-person", "cut")}
    assert not only(table(made, "tests"), quantity="refused_share")
    assert not only(table(made, "tests"), quantity="declined_share")


def test_texts_that_decline_in_words_or_lecture_are_counted_tested_and_in_no_list(small: Path) -> None:
    run, rows = small, stored(small)
    before = {name: table(run, name) for name in ("word_lists", "representation")}
    asked = [row for row in rows if row["requested_gender"] == "nonbinary"]
    for row in asked[:3]:
        row["text"] = f"I'm sorry, but I cannot write this. {row['text']}"
    asked[3]["text"] = "Gender stereotypes are harmful."
    asked[4]["text"] = "Job description: the tasks are many."
    asked[5]["text"] = "\u200b"  # no white space, so not empty; and of nobody
    store(run, rows)
    rebuild_tables(run)
    of_those = [row for row in table(run, "text_outcomes") if row["requested_gender"] == "nonbinary"]
    n = Counter[str]()
    for row in of_those:
        n[row["outcome"]] += int(row["n"])
    said = [n[outcome] for outcome in ("declines", "declines-in-words", "lectures", "empty")]
    assert [0, 3, 1, 0] == said
    assert n["no-person"] >= 2
    assert {("declined_share", "nonbinary", "male"), ("declined_share", "nonbinary", "female")} < {
        (row["quantity"], row["group_a"], row["group_b"]) for row in table(run, "tests")
    }
    assert not only(table(run, "tests"), quantity="refused_share")
    assert f"4 of {len(asked)} texts about non-binary people decline or lecture" in " ".join(
        analysis(run)["notes"]
    )
    assert before["representation"] == table(run, "representation")
    left_out = Counter(row["occupation"] for row in asked[:4])  # nobody's texts stay: they are no refusals
    own = {"origin": "requested", "gender": "nonbinary", "method": "calibrated"}
    sizes = [
        {row["occupation"]: int(row["n_target"]) for row in only(listed, **own)}
        for listed in (before["word_lists"], table(run, "word_lists"))
    ]
    for of_occupation in sizes:
        assert of_occupation.pop("all") == sum(of_occupation.values())
    expected = {occupation: n - left_out[occupation] for occupation, n in sizes[0].items()}
    assert {occupation: n for occupation, n in expected.items() if n} == sizes[1] != sizes[0]


def test_outcomes_in_words_of_another_language_have_a_reason() -> None:
    where = ("k", "m", "nurse", "t", 0, "female", "stop", False)
    text = TextDocument(*where, associate_gender(""), 0, outcome="person", read=False)
    rows = refusal_rows([text])
    numbers = {row["outcome"]: (row["n"], row["reason"]) for row in outcome_rows(rows, {"m": OTHER_LANGUAGE})}
    assert numbers["declines"] == (0, None)
    assert numbers["person"] == (None, OTHER_LANGUAGE)


def documents_of(
    run: Path, **overrides: Any
) -> tuple[TextDocuments, dict[tuple[str, str, str], TextComparison]]:
    manifest = read_manifest(run)
    design = read(manifest.resolved, overrides)
    documents = read_documents(design, manifest.models, read_rows(run / "personas.jsonl"))
    return documents, {found.key: found for found in text_comparisons(documents, design.study)}


def samples(compared: TextComparison, template: str, gender: str) -> list[int]:
    return [t.sample for t in compared.texts if (t.template_id, t.gender) == (template, gender)]


def test_the_first_n_of_each_prompt_and_gender_are_compared(filled: PersonasResult) -> None:
    _, found = documents_of(filled.path)
    nurse = found["m", "nurse", "inferred"]
    assert nurse.reason is None
    persona = {gender: samples(nurse, "persona", gender) for gender in ASKED}
    assert {"female": [0, 1], "male": [2, 5], "nonbinary": [3]} == persona
    assert {"female": [0, 3], "male": [1, 2]} == {
        g: samples(nurse, "biography", g) for g in ("female", "male")
    }
    assert [0, 1] == samples(found["m", "nurse", "requested"], "persona", "nonbinary")
    lists = only(table(filled, "word_lists"), occupation="nurse", origin="inferred", against="male")
    assert {("4", "4")} == {(row["n_target"], row["n_unmarked"]) for row in lists}


def test_a_sample_is_balanced_in_sample_order_repeatable_and_not_the_first_n(filled: PersonasResult) -> None:
    _, first = documents_of(filled.path)
    _, sampled = documents_of(filled.path, balance="sample")
    _, again = documents_of(filled.path, balance="sample")
    key = ("m", "nurse", "inferred")
    picked = {g: samples(sampled[key], "persona", g) for g in ("female", "male")}
    assert [2, 2] == [len(places) for places in picked.values()]
    assert set(picked["female"]) <= {0, 1, 6, 7}
    assert set(picked["male"]) <= {2, 5, 8, 9}
    assert all(places == sorted(places) for places in picked.values())
    assert picked != {g: samples(first[key], "persona", g) for g in ("female", "male")}
    assert picked == {g: samples(again[key], "persona", g) for g in ("female", "male")}


def test_an_occupation_short_of_one_gender_has_no_inferred_lists_and_says_why(
    filled: PersonasResult,
) -> None:
    lists = only(table(filled, "word_lists"), occupation="mechanic", origin="inferred")
    why = (
        "prompt persona has 1 texts of women and 9 of men;"
        " prompt biography has 1 texts of women and 9 of men; 2 of each are needed"
    )
    assert {("", "", "", why)} == {(r["n_marked"], r["n_target"], r["p_value"], r["reason"]) for r in lists}
    assert 4 == len(lists)
    assert [] == only(table(filled, "marked_words"), occupation="mechanic", origin="inferred")
    scores = only(table(filled, "srb"), occupation="mechanic")
    assert [("female", "", why), ("male", "", why)] == [(r["gender"], r["srb"], r["reason"]) for r in scores]
    assert (
        f"1 occupations have no lists of texts without a gender in the prompt, first mechanic (m): {why}"
        in (filled.warnings)
    )


def test_what_is_not_compared_marks_no_word(home: Path, quick: dict[str, Any], tmp_path: Path) -> None:
    # Draw 4 of the women is surplus: its words would mark them if it were counted.
    genders: list[str | None] = ["female", "male", "male", "female", "female"]
    texts = stories(genders, OPEN["nurse"])
    texts[4] = story("female", "splendid " * 20)
    model = write_script(
        tmp_path / "m.jsonl",
        *({"contains": f"who is {ASKED[g]}", "texts": stories([g] * 2, NAMED["nurse"])} for g in ASKED),
        {"texts": texts},
    )
    found = personas(
        f"m={model}", study="gasp-pilot", occupations="nurse", per_gender=2,
        settings={**quick, "batch": 5}, out=tmp_path / "run",
    )  # fmt: skip
    marked = {row["word"] for row in only(table(found, "marked_words"), origin="inferred")}
    assert "tender" in marked
    assert "splendid" not in marked
    assert ["3"] * 2 == [r["n_female"] for r in table(found, "representation") if r["template_id"] != "all"]


# --- words ---------------------------------------------------------------------------------------------


def listed(
    run: Path | PersonasResult, model: str, job: str, origin: str, gender: str, method: str = "calibrated"
) -> list[str]:
    against = {"female": "male", "male": "female"}[gender]
    rows = only(table(run, "marked_words"), model=model, occupation=job, origin=origin, gender=gender,
                against=against, method=method)  # fmt: skip
    assert [str(i) for i in range(1, len(rows) + 1)] == [row["rank"] for row in rows]
    return [row["word"] for row in rows]


# --- SRB -----------------------------------------------------------------------------------------------


def test_srb_is_the_difference_of_two_chamfer_distances(made: PersonasResult, home: Path) -> None:
    lines = (home / "vectors.txt").read_text().splitlines()[1:]
    vectors = {line.split()[0]: np.array(line.split()[1:], dtype=float) for line in lines}
    vectors = {word: v / np.linalg.norm(v) for word, v in vectors.items()}
    scored = 0
    for row in table(made, "srb"):
        model, job = row["model"], row["occupation"]
        candidates = [w for w in listed(made, model, job, "inferred", row["gender"]) if w in vectors]
        distances = {}
        for gender in ("female", "male"):
            targets = [w for w in listed(made, model, job, "requested", gender) if w in vectors]
            nearest = [min(1 - float(vectors[c] @ vectors[t]) for t in targets) for c in candidates]
            distances[gender] = sum(nearest) / len(nearest)
            assert len(targets) == int(row[f"n_target_{gender}"])
            # float32 vectors
            assert distances[gender] == pytest.approx(float(row[f"distance_{gender}"]), abs=1e-5)
        assert distances["female"] - distances["male"] == pytest.approx(float(row["srb"]), abs=1e-5)
        assert len(candidates) == int(row["n_candidates"])
        assert ("", "") == (row["control"], row["srb_seed_sd"])
        assert row["reason"].startswith("one vector model: no srb_seed_sd")
        scored += 1
    assert 2 * 3 * 2 == scored
    cook = [float(r["srb"]) for r in only(table(made, "srb"), model="old", occupation="cook")]
    assert cook[0] < 0 < cook[1]


def test_an_occupation_of_one_origin_alone_has_a_reason_and_the_others_a_score(
    quick: dict[str, Any], tmp_path: Path
) -> None:
    texts = write_texts(tmp_path / "t.csv", [*named_texts(), *open_texts()])
    rows = table(imported(texts, quick, tmp_path / "run"), "srb")
    assert all(row["srb"] for row in only(rows, occupation="nurse"))
    assert {"no texts without a requested gender for this occupation"} == {
        r["reason"] for r in only(rows, occupation="cook")
    }


# --- hold-out ------------------------------------------------------------------------------------------


def test_held_out_texts_are_treated_as_if_no_gender_had_been_asked(
    quick: dict[str, Any], tmp_path: Path
) -> None:
    rows = [*named_texts(7), {"text": "The person works.", "gender": "female", "job": "cook"}]
    found = imported(write_texts(tmp_path / "t.csv", rows), quick, tmp_path / "run", hold_out=0.5)
    associations = table(found, "genders")
    held = only(associations, origin="inferred")
    kept = only(associations, origin="requested")
    assert {""} == {row["requested_gender"] for row in held}
    assert "" not in {row["requested_gender"] for row in kept}
    # int(7 / 2) of each occupation and gender, and int(8 / 2) of the cooks who are women.
    assert 5 * 3 + 4 == len(held)
    assert len(rows) == len(held) + len(kept)
    validation = {r["requested_gender"]: r for r in table(found, "gender_validation")}
    assert {"female": "8", "male": "8", "nonbinary": "8"} == {g: r["n_texts"] for g, r in validation.items()}
    assert {"hold-out"} == {row["control"] for row in table(found, "srb")}
    assert not (found.path / "tables/representation.csv").exists()
    assert 0.5 == analysis(found.path)["choices"]["hold_out"]
    assert "hold_out=0.5" in analysis(found.path)["signature"]


def test_a_hold_out_is_drawn_for_each_model_occupation_and_gender_by_itself(
    quick: dict[str, Any], tmp_path: Path
) -> None:
    def held(occupations: Sequence[str]) -> set[str]:
        folder = tmp_path / f"{len(occupations)}"
        folder.mkdir()
        texts = write_texts(folder / "same-name.csv", named_texts(7, occupations))
        found = imported(texts, quick, tmp_path / f"run{len(occupations)}", hold_out=0.5)
        of_key = {row["key"]: row["sample"] for row in stored(found.path)}
        return {str(of_key[r["key"]]) for r in only(table(found, "genders"), origin="inferred",
                                                     occupation="nurse")}  # fmt: skip

    assert held(("nurse",)) == held(("nurse", "cook"))


# --- between two models --------------------------------------------------------------------------------


def test_two_prompt_formats_are_not_compared(home: Path, quick: dict[str, Any], tmp_path: Path) -> None:
    model = script_of(tmp_path / "m.jsonl", OPEN, NAMED)
    completion = write_script(
        tmp_path / "c.jsonl",
        *({"contains": f"who is {ASKED[g]}", "texts": stories([g] * 3, NAMED["nurse"])} for g in ASKED),
        {"texts": stories(["female", "male", "female"], OPEN["nurse"])},
    )
    kwargs: dict[str, Any] = {
        "study": "gasp-pilot", "occupations": "nurse,cook", "per_gender": 3, "out": tmp_path / "run",
        "settings": quick,
    }  # fmt: skip
    personas(f"a={model}", prompt_format="chat", **kwargs)
    found = personas(f"b={completion}", prompt_format="completion", **kwargs)
    assert {"a", "b"} == {row["model"] for row in table(found, "srb")}
    assert [] == [row for row in table(found, "tests") if row["family"].endswith("/models")]
    assert not (found.path / "tables/srb_change.csv").exists()
    assert (
        "The models have different prompt formats (chat: a; completion: b): there is no test between two"
        " formats. Use one for all, with prompt_format=." in found.warnings
    )


# --- byte for byte -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2])
def test_the_order_of_lines_changes_nothing(small: Path, seed: int) -> None:
    before, rows = tables(small), stored(small)
    random.Random(seed).shuffle(rows)
    store(small, rows)
    rebuild_tables(small)
    assert before == tables(small)


def test_rows_that_the_question_does_not_need_are_counted_and_unused(small: Path) -> None:
    before, rows = tables(small), stored(small)
    strangers = [
        {**row, "key": f"{i:032x}", "text": story("male", "splendid")} for i, row in enumerate(rows[:7])
    ]
    store(small, [*strangers, *rows])
    notes = rebuild_tables(small)
    assert "7 stored texts are not part of this study and were not used" in notes
    after = tables(small)
    assert {n for n in before if before[n] != after[n]} == {"analysis.json"}


REPEATED = """
import sys
from pathlib import Path
from biaskit.measures.personas.vectors import cache, training
training.FEWEST_EPOCHS, training.TRAINING_TOKENS = 3, 0
cache._read = cache._keep = lambda *_: None  # else the second call would only read what the first one trained
from biaskit.workflow.analyze import rebuild_tables
rebuild_tables(Path(sys.argv[1]), {"vectors": "corpus", "srb_seeds": "1-2", "clusters": True})
"""


@pytest.mark.process
def test_hash_seeds_and_threads_change_nothing(small: Path) -> None:
    def again(**environment: str) -> dict[str, bytes]:
        home = str(Path(biaskit.__file__).parents[1])
        done = subprocess.run(
            [sys.executable, "-c", REPEATED, small],
            env={**os.environ, "PYTHONPATH": home, **environment},
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert 0 == done.returncode, done.stderr
        return tables(small)

    first = again(PYTHONHASHSEED="0", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    assert b"corpus:" in first["srb.csv"]
    assert first == again(PYTHONHASHSEED="1", OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="2")


# --- choices -------------------------------------------------------------------------------------------

# methods/index#released-variant.
SWITCHED = {
    "prior": "released",
    "names": "released",
    "pronouns": "released",
    "vectors": "marked-lists",
    "srb_seeds": "1",
    "balance": "sample",
    "copies": "all",
    "keep_rule": "released",
}


def choices(run: Path, **overrides: Any) -> dict[str, Any]:
    """What an analysis with these keys says of its choices."""
    rebuild_tables(run, overrides)
    found: dict[str, Any] = analysis(run)["choices"]
    return found


def test_the_released_variant_switches_its_keys_and_no_other(small: Path, quick: dict[str, Any]) -> None:
    before = choices(small)
    released = choices(small, variant="released")
    assert {"variant": "released", **SWITCHED} == {
        name: value for name, value in released.items() if value != before[name]
    }
    assert dict(PersonasStudy.variants["released"]) == SWITCHED
    signature = analysis(small)["signature"]
    for name, value in {"variant": "released", **SWITCHED}.items():
        assert f"| {name}={value} |" in signature
    scored = [row for row in table(small, "srb") if row["srb"]]
    assert {"marked-lists"} == {row["vectors"] for row in table(small, "srb")}
    assert scored
    assert all(row["reason"].startswith("vectors depend on the lists") for row in scored)
    back = choices(small, variant="exact", vectors=quick["vectors"])
    assert {"srb_seeds": "1-5"} == {name: value for name, value in back.items() if name == "srb_seeds"}
    assert before == back


def test_clusters_are_left_out_told_their_number_and_named(run: Path, tmp_path: Path) -> None:
    categories = tmp_path / "categories.toml"
    pairs = "".join(f'[[word]]\nword = "{word}"\ncategory = "warmth"\n' for word in ("warm", "kind"))
    categories.write_text(pairs, encoding="utf-8")
    dropped = tmp_path / "dropped.txt"
    dropped.write_text("tough\n", encoding="utf-8")
    rebuild_tables(run, {"k": 4, "categories": str(categories), "drop_words": str(dropped)})
    rows = only(table(run, "clusters"), model="all")
    assert 4 == len(rows)
    words = {word for row in rows for word in row["words"].split()}
    assert "warm" in words
    assert "tough" not in words
    assert "warmth" in {row["category"] for row in rows}
    assert ["4"] == [row["k"] for row in table(run, "silhouette") if row["chosen"] == "yes"]
    assert 4 == analysis(run)["clusters"]["n_clusters"]
    rebuild_tables(run, {"clusters": False})
    assert not (run / "tables/clusters.csv").exists()
    assert not (run / "tables/silhouette.csv").exists()


# --- runs that are damaged or foreign ------------------------------------------------------------------


def test_a_model_that_wrote_nothing_has_reasons_and_hides_no_other(
    tmp_path: Path, quick: dict[str, Any]
) -> None:
    model = script_of(tmp_path / "m.jsonl", OPEN, NAMED)
    silent = write_script(tmp_path / "silent.jsonl", {"fail": "out of order"})
    found = personas(
        f"a={model}", f"b={silent}", study="gasp-pilot", occupations="nurse", per_gender=2,
        settings=quick, out=tmp_path / "run",
    )  # fmt: skip
    assert {"b": {"out of order": 16}} == found.failed
    assert {"b"} == {row["model"] for row in table(found, "srb") if not row["srb"]}
    assert {"no texts were sampled"} == {row["reason"] for row in only(table(found, "srb"), model="b")}
    row = one(table(found, "representation"), model="b", template_id="all")
    assert ("0", "", "persona: no text; biography: no text") == (
        row["n_texts"], row["female_share"], row["reason"]
    )  # fmt: skip
    assert "b: 16 texts failed (out of order); rerun the command to retry" in found.warnings


def test_runs_that_share_samples_are_merged_and_analysed_as_one(
    made: PersonasResult, quick: dict[str, Any], tmp_path: Path
) -> None:
    halves = []
    for label in ("old", "new"):
        rows = [row for row in stored(made.path) if row["model"] == label]
        half = tmp_path / label
        half.mkdir()
        manifest = read_manifest(made.path)
        manifest.models = {label: manifest.models[label]}
        manifest.write(half)
        store(half, rows)
        halves.append(half)
    merged = merge([*halves, halves[0]], tmp_path / "merged")
    rebuild_tables(merged)
    assert len(stored(made.path)) == len(stored(merged))
    assert tables(made.path) == tables(merged)
