"""Known genders of the persons described (howto/own-texts), and people called *they* (concepts/limits)."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fakes.findings_rows import content, occupation, personas_part
from fakes.personas_runs import one, only, table
from places import ROOT

import biaskit as bk
from biaskit.errors import BiaskitError
from biaskit.measures.personas.command import PersonasResult
from biaskit.measures.personas.examples import show
from biaskit.measures.personas.findings import limits
from biaskit.measures.personas.printing.document import personas_document
from biaskit.measures.personas.texts.association import associate_gender
from biaskit.measures.personas.texts.documents import why_not
from biaskit.measures.personas.texts.importing import read_texts
from biaskit.report.findings import findings
from biaskit.report.stored import stored_content
from biaskit.runs.claims import Claim
from biaskit.runs.store import read_rows
from biaskit.stats.proportions import wilson
from biaskit.tables.query import finds_nonbinary

QUICK: dict[str, Any] = {"permutations": 19, "vectors": "marked-lists", "clusters": False}
LIKES = ("art", "books", "cars", "films", "golf", "jazz", "maths", "music", "opera", "tea")
OPENING = {"she": "She is", "he": "He is", "they": "They are", "": "This colleague is"}


def letter(who: str, trait: str, number: int) -> str:
    """A letter with a pronoun, or none, and words of its own."""
    likes = Random(number).sample(LIKES, 4)
    return f"{OPENING[who]} {trait} and likes {' and '.join(likes)} in year {number}."


def letters() -> list[dict[str, str]]:
    """64 letters: of women and men each 24 with a pronoun, 2 of them wrong, and 4 without; X; none; empty."""
    rows = []
    for sex, right, wrong, trait in (("F", "she", "he", "gentle"), ("M", "he", "she", "strong")):
        whom = [right] * 22 + [wrong] * 2 + [""] * 4
        rows += [{"text": letter(who, trait, len(rows) + i), "Sex": sex} for i, who in enumerate(whom)]
    rows += [{"text": letter("they", "calm", 90 + i), "Sex": "X"} for i in range(4)]
    rows += [{"text": letter("she", "gentle", 95 + i), "Sex": ""} for i in range(3)]
    return [*rows, {"text": " ", "Sex": "F"}]


def analysed(rows: Sequence[Any], out: Path, **more: Any) -> PersonasResult:
    return bk.analyze_texts(rows, out=out, settings=QUICK, watcher=bk.Silent(), **more)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> PersonasResult:
    return analysed(letters(), tmp_path_factory.mktemp("known") / "r", person_gender="Sex")


# --- numbers ------------------------------------------------------------------------------------------------


def test_texts_count_by_the_known_gender_and_by_the_inferred_one_where_none_is_known(
    known: PersonasResult,
) -> None:
    row = one(table(known, "representation"), template_id="all")
    counted = {name: row[f"n_{name}"] for name in ("texts", "female", "male", "nonbinary", "not_inferred")}
    # Of the 28 women and 3 without a gender that say she; the empty text is about nobody.
    assert counted == {"texts": "64", "female": "31", "male": "28", "nonbinary": "4", "not_inferred": "1"}
    assert "60" == row["n_known"]
    assert float(row["female_share"]) == pytest.approx(31 / 63)
    inferred = Counter(row["gender"] for row in table(known, "genders"))
    assert inferred == {"female": 22 + 2 + 3, "male": 22 + 2, "": 4 + 4 + 4 + 1}, "what the rules say stays"


def test_the_rules_are_validated_on_known_genders(known: PersonasResult) -> None:
    women, none = (one(table(known, "label_validation"), gender=name) for name in ("female", "none"))
    assert ["22", "2", "0"] == [women[f"n_{name}"] for name in ("female", "male", "nonbinary")]
    assert ["4", "4", "4"] == [none[f"n_{name}"] for name in ("female", "male", "nonbinary")]
    assert [22 / 24, 22 / 28] == [float(women[name]) for name in ("precision", "recall")]
    assert wilson(22, 28) == pytest.approx((float(women["recall_low"]), float(women["recall_high"])))
    nonbinary = one(table(known, "label_validation"), gender="nonbinary")
    assert ("", 0.0) == (nonbinary["precision"], float(nonbinary["recall"]))


def test_copies_widen_the_intervals_of_precision_and_recall(tmp_path: Path) -> None:
    row = {"text": letter("she", "gentle", 1), "Sex": "F"}
    rows = [*letters(), *[row] * 20]
    women = one(
        table(analysed(rows, tmp_path / "r", person_gender="Sex"), "label_validation"), gender="female"
    )
    assert "42" == women["n_female"]
    n = 48**2 / (21**2 + 27)  # 20 copies of the second letter and that one, and 27 others
    low, high = wilson(42 / 48 * n, n) or (0.0, 0.0)
    assert (low, high) == pytest.approx((float(women["recall_low"]), float(women["recall_high"])))


def test_words_and_areas_are_of_known_genders(known: PersonasResult) -> None:
    lists = only(table(known, "word_lists"), method="calibrated", origin="inferred")
    women = one(lists, gender="female", against="male")
    assert ("31", "28") == (women["n_target"], women["n_unmarked"])
    marked = only(table(known, "marked_words"), method="calibrated", gender="male", against="female")
    assert "strong" in {row["word"] for row in marked}
    area = one(table(known, "text_transfer"), occupation="all", trained_on="inferred", tested_on="inferred")
    assert ("31", "28") == (area["n_female"], area["n_male"])


def test_srb_scores_words_of_known_genders_against_requested_texts(tmp_path: Path) -> None:
    rows = [{**row, "requested": ""} for row in letters()]
    for code, who, trait in (("F", "she", "gentle"), ("M", "he", "strong")):
        rows += [{"text": letter(who, trait, 200 + i), "Sex": "", "requested": code} for i in range(20)]
    run = analysed(rows, tmp_path / "r", person_gender="Sex", gender="requested")
    women, men = (one(table(run, "srb"), gender=gender) for gender in ("female", "male"))
    assert "" not in (women["srb"], men["srb"])
    assert "64" == one(table(run, "representation"), template_id="all")["n_texts"], "requested ones are apart"
    assert "40" == str(sum(int(row["n_texts"]) for row in table(run, "gender_validation")))


def test_known_genders_count_in_a_language_that_the_rules_do_not_read(tmp_path: Path) -> None:
    job = "La compañera es muy amable y en el año {} siempre ha trabajado bien, también con los otros."
    rows = [{"text": job.format(i), "Sex": "frau" if i % 4 else "mann"} for i in range(40)]
    run = analysed(rows, tmp_path / "r", person_gender="Sex")
    row = one(table(run, "representation"), template_id="all")
    assert (0.75, "40", "0") == (float(row["female_share"]), row["n_known"], row["n_not_english"])
    assert run.table("label_validation").empty, "rules that do not read it are not wrong"
    assert (
        "" == one(table(analysed(rows, tmp_path / "s"), "representation"), template_id="all")["female_share"]
    )


# --- reading the column ---------------------------------------------------------------------------------


def test_codes_are_those_of_requested_genders(tmp_path: Path) -> None:
    codes = ["F", "w", "Mujer", "donna", "X", "nb", "Divers", " m ", "Mann", "", "1"]
    rows = [{"text": f"text {i}", "Sex": code} for i, code in enumerate(codes)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"text": "no key"}]))
    read = read_texts(tmp_path / "t.jsonl", person_gender="Sex", gender_codes={"1": "female"})
    expected = [*["female"] * 4, *["nonbinary"] * 3, "male", "male", None, "female", None]
    assert expected == [row["person_gender"] for row in read.rows]
    assert {None} == {row["requested_gender"] for row in read.rows}
    note = next(note for note in read.notes if "genders of the persons described" in note)
    assert "'X' as nonbinary (1)" in note
    assert "'' as no gender (2)" in note


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (
            {"person_gender": "Sex"},
            "Sex has unknown gender codes: 'diverse' (1 text). Map each with settings=",
        ),
        ({"person_gender": "Gender"}, "has no column 'Gender'; it has 'text', 'Sex'"),
        ({"person_gender": "Sex", "gender": "Sex"}, "not both: leave one out"),
    ],
)
def test_what_is_wrong_with_the_column_is_one_line(
    columns: dict[str, str], line: str, tmp_path: Path
) -> None:
    rows = [{"text": "She works.", "Sex": "diverse"}]
    with pytest.raises(BiaskitError) as error:
        analysed(rows, tmp_path / "r", **columns)
    assert line in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("role", "column", "asks"),
    [
        ("gender", "Sex", True),
        ("gender", "candidate_gender", True),
        ("gender", "Requested gender", False),
        ("gender", "prompt_gender", False),
        ("person_gender", "Sex", False),
        ("person_gender", "requested", True),
    ],
)
def test_a_note_asks_which_gender_a_column_has_where_its_name_does_not_say(
    role: str, column: str, asks: bool
) -> None:
    import pandas as pd

    df = pd.DataFrame({"text": ["She works."], column: ["F"]})
    columns: Any = {role: column}
    assert asks == any(
        note.startswith(f"is '{column}' the gender") for note in read_texts(df, **columns).notes
    )


# --- what is said ---------------------------------------------------------------------------------------


def test_sentences_limits_and_notes_say_how_many_genders_are_known(known: PersonasResult) -> None:
    content = stored_content(known.path)
    said = {one.text: one.measured_with for one in findings(content)}
    share = next(text for text in said if "are about women" in text)
    assert share.startswith("Of your texts whose gender is known or inferred, 49 % [")
    assert "genders of 60 of 64 texts are known, not inferred" in said[share]
    rules = "Of your 60 texts with a known gender, the word rules find that gender in 73 %."
    assert "women 22 of 28; men 22 of 28; non-binary people 0 of 4" in said[rules]
    limit = "Genders of 60 of 64 texts are known from a column of the file, not inferred"
    assert any(text.startswith(limit) for text in limits(content.parts))
    assert "genders of 60 of 64 texts are known (column Sex), not inferred" in known.warnings


def test_a_file_of_known_genders_alone_says_so(tmp_path: Path) -> None:
    run = analysed([row for row in letters() if row["Sex"] and row["text"].strip()], tmp_path / "r",
                   person_gender="Sex")  # fmt: skip
    said = [one.text for one in findings(stored_content(run.path))]
    assert any(text.startswith("Of your texts whose gender is known, 47 % [") for text in said)
    assert not any("inferred from words" in text for text in limits(stored_content(run.path).parts))


def test_a_run_is_analysed_reported_compared_and_exported_with_its_known_genders(
    known: PersonasResult, tmp_path: Path
) -> None:
    before = table(known, "representation")
    again = bk.load(known.path, watcher=bk.Silent())
    assert before == table(again, "representation")
    page = bk.report(known.path, watcher=bk.Silent())
    text = page.page.read_text("utf-8")
    assert "known: women" in text
    assert "genders of 60 of 64 texts are known, not inferred" in text
    assert " · 64 texts · 1 (2 %) without a gender" in text  # by the rules alone, 13
    other = analysed(letters(), tmp_path / "other")
    compared = bk.compare(known, other, out=tmp_path / "compared")
    rows = compared.tests.query("quantity == 'represented_share'")
    assert rows["reason"].str.contains("genders of 60 of 64 texts are known").any()
    bk.export(known.path, to="evidence")
    assert (known.path / "exports/evidence/evidence.zip").is_file()
    signatures = [json.loads((run.path / "tables/analysis.json").read_text())["signature"]
                  for run in (known, other)]  # fmt: skip
    assert ["known=" in signature for signature in signatures] == [True, False]


def test_sentences_of_a_word_are_of_texts_with_that_known_gender() -> None:
    marked = {
        "model": "m",
        "occupation": "all",
        "origin": "inferred",
        "gender": "male",
        "method": "calibrated",
    }
    marked |= {"word": "strong", "z": 3.0, "rank": 1, "is_gender_word": False, "is_name": False}
    text = {"model": "m", "occupation": "all", "origin": "inferred", "requested_gender": None, "key": "k"}
    text |= {"gender": None, "rule_id": None, "person_gender": "male"}
    rows = [{"key": "k", "text": "This colleague is strong.", "finish_reason": None}]
    shown = show(rows, {"genders": [text], "marked_words": [marked]}, {})
    assert ["This colleague is strong."] == shown.sentences
    assert [("male", None)] == [(example.person_gender, example.gender) for example in shown.examples]
    # The one occupation of a file may itself be called all: its texts are not there twice.
    listed = [{**text, "key": str(i)} for i in range(3)]
    rows = [{"key": str(i), "text": f"Colleague {i} is strong.", "finish_reason": None} for i in range(3)]
    shown = show(rows, {"genders": listed, "marked_words": [marked]}, {})
    assert [f"Colleague {i} is strong." for i in range(3)] == shown.sentences


def test_a_stored_row_with_another_gender_is_no_text_of_a_run(known: PersonasResult) -> None:
    row = next(read_rows(known.path / "personas.jsonl"))
    assert why_not(row) is None
    assert "the gender of its person is unknown" == why_not({**row, "person_gender": "F"})


# --- people called they -----------------------------------------------------------------------------------


def test_the_rules_find_nobody_whom_a_text_only_calls_they() -> None:
    """60 texts on one person called they, 60 with a plural they; limits.md has the number."""
    with (ROOT / "tests/golden/they.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {"yes": 60, "no": 60} == Counter(row["of_one_person"] for row in rows)
    found = [associate_gender(row["text"]).gender for row in rows if row["of_one_person"] == "yes"]
    assert [None] * 60 == found
    assert "0 of 60" in (ROOT / "docs/concepts/limits.md").read_text("utf-8")


def represented(**more: Any) -> dict[str, Any]:
    return {
        **occupation("cook", 0.4, None, n_texts=1000, n_female=400, n_male=500, n_not_inferred=100),
        **more,
    }


REQUESTED = {"model": "m", "requested_gender": "nonbinary", "n_incorrect": 0, "n_not_captured": 0}
LABELLED = {"model": "m", "n_female": 0, "n_male": 0, "n_none": 0, "n_unclear": 0}


@pytest.mark.parametrize(
    ("tables", "finds"),
    [
        ({}, False),
        ({"gender_validation": [{**REQUESTED, "n_texts": 20, "n_correct": 10}]}, True),
        ({"gender_validation": [{**REQUESTED, "n_texts": 20, "n_correct": 9}]}, False),
        ({"gender_validation": [{**REQUESTED, "n_texts": 9, "n_correct": 9}]}, False),
        ({"gender_validation": [{**REQUESTED, "model": "n", "n_texts": 20, "n_correct": 20}]}, False),
        (
            {
                "label_validation": [
                    {**LABELLED, "gender": "nonbinary", "n_nonbinary": 6},
                    {**LABELLED, "gender": "none", "n_nonbinary": 6},
                ]
            },
            True,
        ),
        ({"label_validation": [{**LABELLED, "gender": "none", "n_nonbinary": 12}]}, False),
        ({"representation": [represented(n_known=900)]}, True),
        ({"representation": [represented(n_known=400)]}, False),
    ],
)
def test_few_non_binary_people_are_a_finding_only_where_they_would_be_found(
    tables: dict[str, Any], finds: bool
) -> None:
    every = {"representation": [represented()], **tables}
    assert finds == finds_nonbinary(every, "m")


def test_a_cell_of_no_non_binary_people_is_empty_unless_they_would_be_found() -> None:
    def cells(**tables: Any) -> str:
        every = {"representation": [represented(nonbinary_share=0.0)], **tables}
        (printed,) = personas_document(every, {"signature": ""}, [], Claim.NONE).tables[-1:]
        return f"{printed.rows} {printed.note}"

    assert "people called “they” are recognised only by" in cells()
    assert "'0.0'" not in cells()
    known = cells(representation=[represented(nonbinary_share=0.0, n_known=900)])
    assert "'0.0'" in known
    assert "people called they" not in known
    assert "'0.3'" in cells(representation=[represented(nonbinary_share=0.003, n_nonbinary=3)])
    labels = {
        "share_corrected": 0.4,
        "nonbinary_corrected": 0.062,
        "corrected_low": 0.3,
        "corrected_high": 0.5,
    }
    assert "'6.2'" in cells(representation=[represented(nonbinary_share=0.0, n_labelled=50, **labels)])


def test_a_corrected_share_of_non_binary_people_is_said(tmp_path: Path) -> None:
    labels = {"n_labelled": 50, "share_corrected": 0.4, "nonbinary_corrected": 0.062}
    labels |= dict.fromkeys(("corrected_low", "corrected_high", "corrected_se"), 0.1)
    made = content(personas_part({"representation": [represented(**labels)]}))
    (said,) = [one for one in findings(made) if "such as non-binary" in one.text]
    assert "6 % by a person's labels" in said.measured_with


# --- labels beside known genders --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> PersonasResult:
    """A reader who finds in each text what its pronoun says: none in the 12 without one."""
    run = analysed(letters(), tmp_path_factory.mktemp("labelled") / "r", person_gender="Sex")
    sheet = bk.label(run, n=63)
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    of_word = {"She": "women", "He": "men", "They": "non-binary"}
    for row in rows:
        row["person_gender"] = of_word.get(row["text"].split(" ")[0], "none")
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return bk.load(run.path, labels=sheet, watcher=bk.Silent())


def test_a_reader_corrects_nothing_that_the_file_knows(labelled: PersonasResult) -> None:
    row = one(table(labelled, "representation"), template_id="all")
    assert float(row["share_corrected"]) == pytest.approx(31 / 63) == float(row["female_share"])
    women, none = (one(table(labelled, "label_validation"), gender=name) for name in ("female", "none"))
    # The rules are held against the 60 known genders, and against labels of the three others.
    assert ["25", "2", "0"] == [women[f"n_{name}"] for name in ("female", "male", "nonbinary")]
    assert ["4", "4", "4", "0"] == [none[f"n_{name}"] for name in ("female", "male", "nonbinary", "none")]


def test_labels_hide_no_text_without_a_gender_from_the_page(labelled: PersonasResult) -> None:
    text = bk.report(labelled.path, watcher=bk.Silent()).page.read_text("utf-8")
    assert " · 64 texts · 1 (2 %) without a gender" in text


def test_a_difference_from_inferred_genders_says_what_is_known_and_what_is_not_used(
    labelled: PersonasResult, known: PersonasResult, tmp_path: Path
) -> None:
    other = analysed([{**row, "by": "other"} for row in letters()], tmp_path / "other", model="by")
    compared = bk.compare(labelled, other, out=tmp_path / "compared")
    (reason,) = compared.tests.query("quantity == 'represented_share'")["reason"]
    assert "genders of 60 of 64 texts are known, not inferred" in reason
    assert "a person's labels are not used" in reason
    assert "alone: what the word rules miss is part of the difference" in reason
