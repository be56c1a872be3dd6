"""Groups of a user's own column, from the file to the page: `--group-col` and `--unmarked`."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import biaskit as bk
from biaskit.errors import BiaskitError
from biaskit.measures.personas.own_texts import analyze_texts
from biaskit.measures.personas.words.log_odds import FIXED_CALIBRATION_WORDS
from biaskit.workflow.analyze import rebuild_tables

RACES = {
    "White": "tall blue mild pale quick fair",
    "Black": "bold proud deep rich keen able",
    "Asian": "calm neat slim firm soft kind",
}
COMMON = [*FIXED_CALIBRATION_WORDS, "works", "every", "day", "well"]
FAST: dict[str, Any] = {"srb_seeds": "1", "clusters": False, "permutations": 99}


def texts(n: int = 12) -> pd.DataFrame:
    """Texts of two groups and two genders: common words, a pronoun, and words of the group."""
    rng = np.random.default_rng(3)
    rows = []
    for race, own in RACES.items():
        for gender, pronoun in (("F", "she"), ("M", "he")):
            for _ in range(n):
                words = [*rng.choice(COMMON, 40), *([pronoun] * 3), *rng.choice(own.split(), 8)]
                rows.append({"text": " ".join(rng.permutation(words)), "gender": gender, "race": race})
    return pd.DataFrame(rows)


def analysed(out: Path, frame: pd.DataFrame | None = None, **options: Any) -> Any:
    given = {"gender": "gender", "group_col": "race", "settings": FAST, **options}
    return bk.analyze_texts(texts() if frame is None else frame, **given, out=out, watcher=bk.Silent())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(analysed(tmp_path_factory.mktemp("groups") / "r", unmarked="White").path)


def test_a_file_and_a_frame_give_the_same_lists_under_the_columns_name(run: Path, tmp_path: Path) -> None:
    texts().to_csv(tmp_path / "texts.csv", index=False, quoting=csv.QUOTE_ALL)
    of_file = analyze_texts(
        tmp_path / "texts.csv",
        gender="gender",
        group_col="race",
        unmarked=["White"],
        settings=FAST,
        out=tmp_path / "r",
    )
    of_frame = bk.load(run, watcher=bk.Silent())
    for table in ("group_lists", "group_words"):
        pd.testing.assert_frame_equal(of_file.table(table), of_frame.table(table))
    lists = of_frame.table("group_lists")
    assert set(lists["column"]) == {"race"}
    assert set(lists["group"]) == set(RACES)
    against = set(lists.loc[lists["group"] == "Black", "against"])
    assert against == {"White", "White & male", "White & female"}
    words = of_frame.table("group_words")
    words = words[(words["method"] == "calibrated") & (words["gender"] == "")]
    assert set(RACES["Black"].split()) <= set(words.loc[words["group"] == "Black", "word"])


def test_another_unmarked_group_is_another_table_and_signature(run: Path, tmp_path: Path) -> None:
    analysed(tmp_path / "r", unmarked="White")

    def made() -> tuple[bytes, str]:
        tables = tmp_path / "r" / "tables"
        signature = json.loads((tables / "analysis.json").read_text("utf-8"))["signature"]
        return (tables / "group_lists.csv").read_bytes(), signature

    before = made()
    assert "groups=" in before[1]
    rebuild_tables(tmp_path / "r", {**FAST, "unmarked": ["Black"]})
    after = made()
    assert before[0] != after[0]
    assert before[1] != after[1]
    assert b",White,Black," in after[0]


# --- odd input ---------------------------------------------------------------------------------------


def with_races(values: list[Any]) -> pd.DataFrame:
    frame = texts(3).astype(object)
    frame["race"] = [values[i % len(values)] for i in range(len(frame))]
    return frame


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (["A", "B"], {"group_col": "rase"}, "has no column 'rase'; it has 'text', 'gender', 'race'."),
        (["A"], {}, "race has 1 group, such as 'A'. Groups are compared"),
        (["", None, float("nan"), " "], {}, "race has 0 groups."),
        (["A", "=1+1"], {}, "'=1+1' begins with '=', which a spreadsheet would run."),
        (["A", "B\nC"], {}, "has a line break"),
        (["A", " B"], {}, "begins or ends with white space"),
        (["A", ["B"]], {}, "which is not a text"),
        (["A", "B"], {"unmarked": "a"}, "unmarked: race has no 'a'."),
        (["A", "B"], {"unmarked": ["A", "B"]}, "unmarked names every group of race"),
        (["A", "B"], {"group_col": None, "unmarked": "A"}, "Unmarked groups are values of a column"),
        (["A", "B"], {"unmarked": 3}, "unmarked is 3: give a text or a list of texts."),
    ],
)
def test_what_cannot_be_compared_is_one_line_before_a_row_is_written(
    tmp_path: Path, values: list[Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(BiaskitError) as error:
        analysed(tmp_path / "r", with_races(values), **options)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "r").exists()


def test_texts_without_a_group_keep_their_row_and_are_said(tmp_path: Path) -> None:
    frame = texts().astype(object)
    frame.loc[::8, "race"] = None
    made = analysed(tmp_path / "r", frame)
    assert "9 of 72 texts have no race: they are in no group's list" in made.warnings
    assert len(made.genders) == 72
    whole = made.group_lists[made.group_lists["gender"] == ""]
    assert set(whole["n_target"] + whole["n_unmarked"]) == {63}


def test_foreign_names_of_groups_are_shown_as_escapes(tmp_path: Path) -> None:
    frame = texts(6)
    frame["race"] = frame["race"].replace({"Black": "B\u202elack", "White": "日本"})
    made = analysed(tmp_path / "r", frame.rename(columns={"race": "ra\u202ece"}), group_col="ra\u202ece")
    text = str(bk.report(made, watcher=bk.Silent()).page.read_text("utf-8"))
    assert "\u202e" not in text
