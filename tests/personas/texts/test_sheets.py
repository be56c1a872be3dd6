"""Texts in .xlsx: cells as they are shown, one sheet and which, workbooks that are broken or too large."""

from __future__ import annotations

import re
import sys
import zipfile
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import pytest
from needs import missing

from biaskit.errors import CorpusError, MissingExtraError
from biaskit.measures.personas.texts.importing import read_texts

try:
    import openpyxl
except ImportError:  # the extra of which these tests are
    missing('openpyxl is not installed: pip install "biaskit[xlsx]"')

Rows = list[list[Any]]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, **content: Rows) -> Path:
    """A workbook of some sheets, in order."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in content.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(name)
    return Path(name)


def said(name: str | Path, **columns: str) -> str:
    with pytest.raises(CorpusError) as caught:
        read_texts(name, **columns)
    (line,) = str(caught.value).splitlines()
    return line


def test_rows_are_numbered_as_the_spreadsheet_does_and_empty_ones_are_passed_over() -> None:
    rows = [
        [],
        [None, "text", "sex", "job"],
        [None, "She runs.", "F", "nurse"],
        [],
        [None, "=NA", "M", "cook"],
    ]
    rows[-1][1] = "Er sagt: „ja“\nund geht"
    found = read_texts(write("t.xlsx", Texte=rows), gender="sex", occupation="job")
    assert [(3, "She runs.", "nurse"), (5, "Er sagt: „ja“\nund geht", "cook")] == [
        (row["sample"], row["text"], row["occupation"]) for row in found.rows
    ]
    assert {"t": 2} == dict(found.models)


def test_numbers_and_dates_are_text() -> None:
    values = [
        (2024, "2024"), (3.0, "3"), (0.1 + 0.2, "0.3"), (12.5, "12.5"), (True, "True"),
        (date(2024, 7, 26), "2024-07-26"), (datetime(2024, 7, 26, 9, 30), "2024-07-26 09:30:00"),
        (time(9, 30), "09:30:00"), ("007", "007"), ("NA", "NA"),
    ]  # fmt: skip
    book = openpyxl.Workbook()
    book.active.append(["text"])
    for value, _ in values:
        book.active.append([value])
    book.save("t.xlsx")
    assert [shown for _, shown in values] == [row["text"] for row in read_texts("t.xlsx").rows]


def test_of_a_formula_the_stored_result_is_read() -> None:
    path = write("t.xlsx", S=[["text"], ["a"], ['=HYPERLINK("http://127.0.0.1:9/x")']])
    rewrite(path, "<v ?/>|<v></v>", "<v>7</v>")
    assert ["a", "7"] == [row["text"] for row in read_texts(path).rows]


def rewrite(path: Path, old: str, new: str) -> Path:
    """Change the XML of a workbook's first sheet, as other programs write it."""
    with zipfile.ZipFile(path) as file:
        whole = {name: file.read(name) for name in file.namelist()}
    sheet = whole["xl/worksheets/sheet1.xml"].decode()
    changed = re.sub(old, new, sheet)
    assert changed != sheet
    whole["xl/worksheets/sheet1.xml"] = changed.encode()
    with zipfile.ZipFile(path, "w") as file:
        for name, content in whole.items():
            file.writestr(name, content)
    return path


def test_a_formula_without_a_result_and_an_error_are_refused_where_they_are_asked_for() -> None:
    path = write("t.xlsx", S=[["text", "sex", "n"], ["a", "F", "=1+1"], ["b", '=UPPER("f")', 1]])
    assert ["a", "b"] == [row["text"] for row in read_texts(path).rows], "another column has them"
    expected = "t.xlsx, sheet 'S', row 3: sex is a formula without a result."
    assert said(path, gender="sex") == f"{expected} Open the workbook, see to the cell and save."
    # A spreadsheet program stores an empty text as the result (ECMA-376, t="str").
    rewrite(path, '<c r="B3"><f>', '<c r="B3" t="str"><f>')
    assert ["female", None] == [row["requested_gender"] for row in read_texts(path, gender="sex").rows]
    path = write("e.xlsx", S=[["text", "job"], ["a", "cook"], ["b", "#N/A"]])
    assert "row 3: job is the error #N/A. " in said(path, occupation="job")


def test_merged_cells_have_the_value_that_they_show_in_every_row() -> None:
    rows = [
        ["Title", None, None],
        ["text", "job", "sex"],
        ["a", "cook", "F"],
        ["b", None, None],
        ["c", None, "M"],
    ]
    path = write("t.xlsx", S=rows[1:])
    book = openpyxl.load_workbook(path)
    book["S"].merge_cells("B2:B4")
    book["S"].merge_cells("C2:C3")
    book.save(path)
    found = read_texts(path, occupation="job", gender="sex").rows
    assert [("a", "cook", "female"), ("b", "cook", "female"), ("c", "cook", "male")] == [
        (row["text"], row["occupation"], row["requested_gender"]) for row in found
    ]


def test_a_header_over_two_rows_is_no_text() -> None:
    path = write("t.xlsx", S=[["text", "job"], [None, None], ["a", "cook"]])
    book = openpyxl.load_workbook(path)
    book["S"].merge_cells("A1:A2")
    book.save(path)
    assert ["a"] == [row["text"] for row in read_texts(path).rows]


def test_the_sheet_with_the_columns_is_read_and_said() -> None:
    path = write("t.xlsx", Readme=[["What this is"]], Leer=[], Texte=[["text"], ["a"]])
    found = read_texts(path)
    assert ["a"] == [row["text"] for row in found.rows]
    assert found.notes == (
        "the sheet with these columns was read, 'Texte', and not 'Readme': FILE.xlsx#SHEET names one",
    )
    path = write("t.xlsx", A=[["x"]], B=[["text"], ["a"], [""], [None, 1]], C=[["y"]])
    remedy = "Name one of these, or remove the lines above the header."
    assert said(path, occupation="job") == f"t.xlsx has no column 'text'; it has 'x'. {remedy}"


def test_a_column_is_found_by_its_name_in_other_letters_case() -> None:
    path = write("t.xlsx", S=[[" Text", "JOB"], ["a", "cook"]])
    assert [("a", "cook")] == [(r["text"], r["occupation"]) for r in read_texts(path, occupation="job").rows]
    Path("t.csv").write_text("Text;Job\na, b;cook\n", "utf-8")
    assert ["a, b"] == [row["text"] for row in read_texts("t.csv", occupation="job").rows]
    path = write("t.xlsx", S=[["TEXT", "text"], ["a", "b"]])
    assert ["b"] == [row["text"] for row in read_texts(path).rows], "the name itself comes first"
    assert "has the column 'text' twice" in said(write("t.xlsx", S=[["TEXT", "Text"], ["a", "b"]]))


def test_of_several_sheets_the_first_is_read_and_said_or_the_one_that_is_named() -> None:
    path = write("t.xlsx", Eins=[["text"], ["a"]], Zwei=[["text"], ["b"], ["c"]])
    first, second = read_texts(path), read_texts("t.xlsx#Zwei")
    (note,) = first.notes
    assert "the first sheet was read, 'Eins', and not 'Zwei': FILE.xlsx#SHEET names one" == note
    assert (["a"], ["b", "c"]) == tuple([row["text"] for row in one.rows] for one in (first, second))
    assert () == second.notes
    assert first.digest != second.digest, "other texts of one file are other texts"
    assert "t.xlsx has no sheet 'Zwo'. Did you mean 'Zwei'? It has 'Eins', 'Zwei'." == said("t.xlsx#Zwo")


def test_a_column_that_is_there_and_unused_is_said_of_every_kind_of_file() -> None:
    path = write("t.xlsx", S=[["text", "gender"], ["a", "F"]])
    Path("t.jsonl").write_text('{"text": "a", "gender": "F"}\n', "utf-8")
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"text": ["a"], "gender": ["F"]}), "t.parquet")
    for name in (path, "t.jsonl", "t.parquet"):
        notes = read_texts(name).notes
        how = "--person-gender-col gender uses it as the gender of the person described, --gender-col gender"
        how += " uses it as the gender requested in the prompt"
        assert (f"the column 'gender' was not used: {how}",) == notes, name
        assert not any("was not used" in note for note in read_texts(name, gender="gender").notes)


def test_what_is_wrong_with_a_workbook_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("t.xlsx", S=[["Texts"], ["a"]])
    assert "t.xlsx has no column 'text'; it has 'Texts'. Did you mean 'Texts'?" == said(path)
    assert "t.xlsx, sheet 'S' is empty. Write a header row, and the rows below it." == said(
        write("t.xlsx", S=[])
    )
    assert "has the column 'text' twice" in said(write("t.xlsx", S=[["text", "text"], ["a", "b"]]))
    for content in (b"", b"PK\x03\x04 and no more", b"\xd0\xcf\x11\xe0 a password", b"text\na\n"):
        path.write_bytes(content)
        assert "t.xlsx is not an .xlsx workbook" in said(path)
    for parts in ({"a.txt": "x"}, {"[Content_Types].xml": "<a"}, {"[Content_Types].xml": "<Types/>"}):
        with zipfile.ZipFile(path, "w") as file:
            for name, text in parts.items():
                file.writestr(name, text)
        assert "t.xlsx cannot be read as a workbook" in said(path)
    with pytest.raises(CorpusError, match=r"no choice for \.parquet and \.xlsx"):
        read_texts(path, encoding="cp1252")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r'pip install "biaskit\[xlsx\]"'):
        read_texts(write("t.xlsx", S=[["text"], ["a"]]))
