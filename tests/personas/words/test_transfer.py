"""text_transfer.csv of whole runs: which texts and words enter it, and what may not move its numbers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fakes.personas_runs import COMMON, one, only, table, write_texts

from biaskit.measures.personas.command import PersonasResult
from biaskit.measures.personas.own_texts import analyze_texts
from biaskit.measures.personas.words import transfer

WHO = {"female": "She said that she", "male": "He said that he"}
OWN = {"female": ("tender", "warm", "kind"), "male": ("strong", "bold", "loud")}
QUICK = {"vectors": "marked-lists", "permutations": 19, "clusters": False}
JOBS = ("nurse", "cook", "pilot")
INFERRED, REQUESTED = "inferred", "requested"
CELLS = {(a, b) for a in (INFERRED, REQUESTED) for b in (INFERRED, REQUESTED)}

Rows = list[dict[str, str]]


def described(rng: random.Random, gender: str, own: int) -> str:
    """A text of 30 words, `own` of them words of its gender."""
    said = [*rng.choices(COMMON, k=30 - own), *rng.choices(OWN[gender], k=own)]
    rng.shuffle(said)
    return f"{WHO[gender]} {' '.join(said)}."


def texts(
    n: int = 12, jobs: Sequence[str] = JOBS, model: str = "m", unprompted: int = 3, on_request: int = 3
) -> Rows:
    rng = random.Random(f"{n} {model}")
    return [
        {"text": described(rng, gender, own), "gender": named and gender, "job": job, "model": model}
        for job in jobs
        for named, own in (("", unprompted), ("named", on_request))
        for _ in range(n)
        for gender in WHO
    ]


def made(rows: Rows, folder: Path, name: str = "run", **keys: Any) -> PersonasResult:
    path = write_texts(folder / f"{name}.csv", rows)
    columns = {
        column: key
        for column, key in (("gender", "gender"), ("occupation", "job"), ("model", "model"))
        if key in rows[0]
    }
    return analyze_texts(path, **columns, settings={**QUICK, **keys}, out=folder / name)


def area(rows: Rows, trained_on: str, tested_on: str, occupation: str = "all") -> dict[str, str]:
    return one(rows, occupation=occupation, trained_on=trained_on, tested_on=tested_on)


def test_the_same_words_carry_over_and_the_claims_are_those_of_the_table(tmp_path: Path) -> None:
    run = made(texts(), tmp_path)
    rows = table(run, "text_transfer")
    assert [row["occupation"] for row in rows] == [job for job in JOBS for _ in range(4)] + ["all"] * 4
    for cell in CELLS:
        mean = area(rows, *cell)
        of_jobs = [float(area(rows, *cell, job)["auc"]) for job in JOBS]
        assert float(mean["auc"]) == pytest.approx(sum(of_jobs) / 3)
        assert float(mean["auc"]) > 0.9
        assert ("36", "36", "0.05") == (mean["n_female"], mean["n_male"], mean["p_value"])
        assert {"one occupation: no interval"} == {area(rows, *cell, job)["reason"] for job in JOBS}
        assert {""} == {area(rows, *cell, job)["ci_low"] for job in JOBS}
    tests = {row["quantity"]: row for row in table(run, "tests") if row["quantity"].startswith("auc")}
    assert ["auc_inferred", "auc_requested", "auc_transfer"] == sorted(tests)
    for quantity, cell in (("auc_requested", (REQUESTED,) * 2), ("auc_transfer", (REQUESTED, INFERRED))):
        row, mean = tests[quantity], area(rows, *cell)
        assert ("paired", "occupation", "3") == (row["kind"], row["unit"], row["n_a"])
        for name, value in (("estimate", "auc"), ("ci_low", "ci_low"), ("ci_high", "ci_high")):
            assert (row[name] and float(row[name]) + 0.5) == (
                mean[value] and pytest.approx(float(mean[value]))
            )
    assert len(run.text_transfer) == 16


def test_gender_words_and_names_tell_nothing(tmp_path: Path) -> None:
    """Texts that differ in nothing else are equal: every pair is a tie. In other order they are no copies."""
    said = {
        "female": "She is the mother. Then we asked Maria and her sister of the queen.",
        "male": "He is the father. Then we asked Peter and his brother of the king.",
    }
    family = {"female": "aunt girl niece daughter wife", "male": "uncle boy nephew son husband"}
    chance = random.Random(7)
    rows = [
        {"text": f"{text} {' '.join(others)}", "gender": named and gender, "job": "cook"}
        for named in ("", "named")
        for _ in range(12)
        for gender, text in said.items()
        for others in [chance.choices(family[gender].split(), k=24)]
    ]
    found = table(made(rows, tmp_path), "text_transfer")
    assert {"0.5"} == {row["auc"] for row in found}
    assert {"1.0"} == {row["p_value"] for row in found}
    kept = table(made(rows, tmp_path, "kept", names="keep"), "text_transfer")
    assert {"1.0"} == {row["auc"] for row in kept}  # Maria alone would tell them apart


def test_a_hold_out_says_so_and_makes_no_claim(tmp_path: Path) -> None:
    named = [row for row in texts(24) if row["gender"]]
    run = made(named, tmp_path, hold_out=0.5)
    rows = table(run, "text_transfer")
    assert all(row["reason"].startswith("hold-out: a positive control") for row in rows)
    assert float(area(rows, REQUESTED, INFERRED)["auc"]) > 0.9
    assert not [row for row in table(run, "tests") if row["quantity"].startswith("auc")]


def test_ten_texts_that_teach_and_two_that_are_tested_are_needed(tmp_path: Path) -> None:
    some, few = texts(12, ("cook",)), texts(11, ("nurse",))
    rows = table(made(some + few, tmp_path), "text_transfer")
    nurse = area(rows, INFERRED, REQUESTED, "nurse")
    assert ("", "", "") == (nurse["auc"], nurse["p_value"], nurse["n_female"])
    assert nurse["reason"] == (
        "11 texts of women, 11 of men in prompts that have both (gender inferred); 12 of each are needed"
    )
    mean = area(rows, INFERRED, REQUESTED)
    assert mean["auc"] == area(rows, INFERRED, REQUESTED, "cook")["auc"]
    assert mean["reason"] == "1 of 2 occupations left out; one occupation: no interval"


def test_texts_without_an_occupation_have_the_row_of_all_alone(tmp_path: Path) -> None:
    run = made(texts(12, ("all",)), tmp_path)  # as runs made before name them
    assert ["all"] * 4 == [row["occupation"] for row in table(run, "text_transfer")]
    [claim] = only(table(run, "tests"), quantity="auc_transfer")
    assert ("1", "", "not-measured") == (claim["n_a"], claim["ci_low"], claim["verdict"])


def test_of_many_texts_some_are_drawn_and_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "MOST_TEXTS", 12)
    for row in table(made(texts(14), tmp_path), "text_transfer"):
        assert transfer.SAMPLED in row["reason"]
        assert row["n_female"] == ("36" if row["occupation"] == "all" else "12")


def test_texts_of_one_gender_that_are_much_longer_make_no_claim(tmp_path: Path) -> None:
    rows = [{**r, "text": r["text"] + " team" * 60 * (r["gender"] == "male")} for r in texts()]
    run = made(rows, tmp_path)
    for row in table(run, "text_transfer"):
        unequal = REQUESTED in (row["trained_on"], row["tested_on"])
        assert ("male texts are" in row["reason"]) == unequal == (row["p_value"] == "")
        assert row["auc"]
    verdicts = {
        row["quantity"]: row["verdict"] for row in table(run, "tests") if row["quantity"][:4] == "auc_"
    }
    assert verdicts["auc_transfer"] == "no-verdict"
    assert verdicts["auc_requested"] in ("no-verdict", "not-measured")  # areas of 1 have no interval either
    assert verdicts["auc_inferred"] != "no-verdict"


def test_texts_in_another_language_have_no_words_and_no_area(tmp_path: Path) -> None:
    said = "der Mann und die Frau sind mit dem Hund in das Haus gegangen weil es nicht mehr hell war"
    german = [
        {**r, "text": f"{'Sie' if r['gender'] == 'female' else 'Er'} {said} {r['text'].split()[-2]}"}
        for r in texts()
        if r["gender"]
    ]
    tables = {path.stem for path in (made(german, tmp_path).path / "tables").glob("*.csv")}
    assert "genders" in tables
    assert not tables & {"text_transfer", "marked_words", "word_lists", "srb"}


def test_another_model_and_another_occupation_change_no_number(tmp_path: Path) -> None:
    alone = table(made(texts(), tmp_path, "alone"), "text_transfer")
    beside = table(made([*texts(14, model="z"), *texts()], tmp_path, "beside"), "text_transfer")
    assert alone == only(beside, model="m")
    fewer = texts(jobs=JOBS[:2])
    kept = {row["text"] for row in fewer}
    less = table(made([row for row in texts() if row["text"] in kept], tmp_path, "less"), "text_transfer")
    of_jobs = [row for row in less if row["occupation"] != "all"]
    assert of_jobs == [row for row in alone if row["occupation"] in JOBS[:2]]
