"""What a notebook does with texts of its own: analyse a DataFrame, calibrate, marked words of two lists."""

from __future__ import annotations

import csv
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import biaskit as bk
from biaskit.errors import BiaskitError, RunError, UsageError
from biaskit.measures.personas.own_texts import analyze_texts
from biaskit.measures.personas.words.log_odds import FIXED_CALIBRATION_WORDS
from biaskit.workflow.analyze import analysis_keys, rebuild_tables

OWN_WORDS = {"female": "warm caring gentle bright", "male": "strong bold loud tall"}
COMMON = [*FIXED_CALIBRATION_WORDS, "works", "every", "day", "well"]


def texts(n: int = 12, seed: int = 1) -> pd.DataFrame:
    """Texts of women and of men: common words at random, pronouns and a few words of their own."""
    rng = np.random.default_rng(seed)
    rows = []
    for gender, pronoun in (("female", "she"), ("male", "he")):
        for i in range(n):
            own = list(rng.choice(OWN_WORDS[gender].split(), 6))
            words = [*rng.choice(COMMON, 60), *([pronoun] * 5), *own]
            rows.append({"text": " ".join(rng.permutation(words)), "gender": gender, "job": f"job {i % 2}"})
    return pd.DataFrame(rows)


FAST: dict[str, Any] = {"srb_seeds": "1", "clusters": False, "permutations": 19}


def test_a_frame_and_a_file_of_the_same_texts_give_the_same_numbers(tmp_path: Path) -> None:
    frame = texts()
    # The label of a model is in the seeds of its shuffles, and a frame has no file's name.
    frame.to_csv(tmp_path / "texts.csv", index=False, quoting=csv.QUOTE_ALL)
    columns = {"gender": "gender", "occupation": "job"}
    of_frame = bk.analyze_texts(frame, **columns, settings=FAST, out=tmp_path / "frame")
    of_file = analyze_texts(
        tmp_path / "texts.csv",
        gender="gender",
        occupation="job",
        settings=FAST,
        out=tmp_path / "file",
    )
    assert len(of_frame.marked_words) > 4
    pd.testing.assert_frame_equal(of_frame.marked_words, of_file.marked_words)
    html = of_frame._repr_html_()
    assert "frame" in html
    assert "Words that mark a gender" in html


@pytest.mark.slow
def test_a_hold_out_is_a_positive_control(tmp_path: Path) -> None:
    made = bk.analyze_texts(
        texts(40), gender="gender", settings={**FAST, "hold_out": 0.5}, out=tmp_path / "r"
    )
    score = dict(zip(made.srb["gender"], made.srb["srb"], strict=True))
    assert score["female"] < 0 < score["male"]
    assert {"hold-out"} == set(made.srb["control"])


@pytest.mark.parametrize(
    ("some_empty", "hold_out", "warned"), [(False, 0, True), (True, 0, False), (False, 0.5, False)]
)
def test_a_file_with_every_gender_requested_warns_of_what_it_lacks(
    some_empty: bool, hold_out: float, warned: bool, tmp_path: Path
) -> None:
    given = texts(40)
    if some_empty:
        given.loc[::2, "gender"] = ""
    settings = {**FAST, **({"hold_out": hold_out} if hold_out else {})}
    run = bk.analyze_texts(given, gender="gender", settings=settings, out=tmp_path / "run")
    for warnings in (run.warnings, bk.load(run.path).warnings):
        assert warned is any("no “who is represented” and no SRB" in note for note in warnings)
    assert some_empty is not run.representation.empty
    assert warned is bool(run.srb["srb"].isna().all())


def test_other_columns_in_the_same_folder_are_another_question(tmp_path: Path) -> None:
    frame = texts()
    bk.analyze_texts(frame, gender="gender", settings=FAST, out=tmp_path / "r")
    with pytest.raises(RunError, match="another study"):
        bk.analyze_texts(frame, occupation="job", settings=FAST, out=tmp_path / "r")


def test_calibration_writes_a_study_that_analysis_takes(tmp_path: Path) -> None:
    run = tmp_path / "r"
    made = bk.analyze_texts(texts(30), gender="gender", occupation="job", settings=FAST, out=run)
    before = made.marked_words
    found = bk.calibrate(run)
    assert found.study_file == run / "calibrated.toml"
    stated = tomllib.loads(found.study_file.read_text(encoding="utf-8"))
    best = found.found.recommended
    assert best is not None
    assert (stated["alpha"], stated["c"]) == (best.alpha, best.constant)
    table = found.table
    chosen = table[table["recommended"].fillna(False)]
    assert {stated["alpha"]} == set(chosen["alpha"])
    keys = analysis_keys(str(found.study_file), run)
    assert (stated["alpha"], stated["c"]) == (keys["alpha"], keys["c"])
    rebuild_tables(run, keys)
    assert not before["z"].equals(made.marked_words["z"])
    assert f"c={stated['c']}" in made.analysis()["signature"]


def test_calibration_needs_texts_whose_gender_was_asked_for(tmp_path: Path) -> None:
    bk.analyze_texts(texts(), settings=FAST, out=tmp_path / "r")
    with pytest.raises(RunError, match="nothing to calibrate on"):
        bk.calibrate(tmp_path / "r")
    bk.analyze_texts(texts(), gender="gender", occupation="job", settings=FAST, out=tmp_path / "s")
    with pytest.raises(UsageError, match="job 1"):
        bk.calibrate(tmp_path / "s", occupation="jbo 1")


# --- marked words of two lists -----------------------------------------------------------------------


def test_marked_words_of_plain_lists() -> None:
    frame = texts(20)
    made = bk.marked_words(frame["text"].tolist(), frame["gender"].tolist(), permutations=19)
    assert {"female", "male"} == set(made["gender"])
    women = made[made["gender"] == "female"]
    assert "she" in set(women["word"])
    assert set(women.loc[women["is_gender_word"], "word"]) <= {"she", "her"}
    assert women["list_p_value_beyond"].between(1 / 200, 1).all()
    assert (women["z"] > 1.96).all()
    assert women["z"].is_monotonic_decreasing
    flipped = {"female": "male", "male": "female"}
    other = bk.marked_words(frame["text"].tolist(), [flipped[g] for g in frame["gender"]], permutations=19)
    assert set(women["word"]) == set(other.loc[other["gender"] == "male", "word"])


@pytest.mark.parametrize(
    "call",
    [
        lambda: bk.marked_words("a text", ["female"]),
        lambda: bk.marked_words(["a"], ["female", "male"]),
        lambda: bk.marked_words(["a"], ["lady"]),
        lambda: bk.marked_words(["a"], [""]),
        lambda: bk.marked_words(["a"], ["female"], prompt=[]),
    ],
)
def test_wrong_use_of_marked_words_is_one_line(call: Any) -> None:
    with pytest.raises(BiaskitError) as caught:
        call()
    assert "\n" not in str(caught.value)
