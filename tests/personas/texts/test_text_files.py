"""Anybody's texts become rows exactly as they are; what is wrong with a file or frame is one line."""

from __future__ import annotations

import csv
import gzip
import hashlib
import importlib.util
import io
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from needs import missing, not_beside
from places import SHARED

from biaskit.errors import CorpusError
from biaskit.measures.personas.texts.gender_codes import GenderCodes
from biaskit.measures.personas.texts.importing import ImportedTexts, read_texts

Write = Callable[[str, str | bytes], str]

PERSONAS = SHARED / "data" / "personas_text-davinci-003.csv"

HARD = [
    "",
    " ",
    "NA",
    "None",
    "nan",
    "null",
    "=1+1",
    "a,b;c\td",
    'she said "no"',
    '"',
    "two\nlines",
    "two\r\nlines",
    "old\rmac",
    "\n",
    "\r",
    "nul\x00byte",
    "line\u2028separator\u2029\x85\x0b\x0c\x1c",
    "\ufeffmark",
    "שלום \u202e \U0001f469\u200d\u2695\ufe0f",
    "<b>html</b> &amp;",
    "x" * 200_000,
]
SURROGATE = "lone \ud83d surrogate"
TEXTS = st.lists(st.text(st.characters(codec="utf-8"), max_size=20), min_size=1, max_size=8)
ANY_TEXTS = st.lists(st.text(st.characters(codec=None, exclude_categories=())), min_size=1, max_size=8)


def message_of(call: Callable[..., object], *args: Any, **options: Any) -> str:
    with pytest.raises(CorpusError) as caught:
        call(*args, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def texts_of(imported: ImportedTexts) -> list[object]:
    """All that was written; `text` is without thoughts."""
    return [row.get("raw", row["text"]) for row in imported.rows]


def genders_of(imported: ImportedTexts) -> list[object]:
    return [row["requested_gender"] for row in imported.rows]


def occupations_of(imported: ImportedTexts) -> list[object]:
    return [row["occupation"] for row in imported.rows]


def samples_of(imported: ImportedTexts) -> list[object]:
    return [row["sample"] for row in imported.rows]


def csv_of(texts: Sequence[str], **options: Any) -> str:
    file = io.StringIO()
    writer = csv.writer(file, **options)
    writer.writerow(["text"])
    writer.writerows([text] for text in texts)
    return file.getvalue()


def json_of(texts: Sequence[str], *, ascii_only: bool = True) -> str:
    return "".join(json.dumps({"text": text}, ensure_ascii=ascii_only) + "\n" for text in texts)


def texts_through_file(suffix: str, content: bytes) -> list[object]:
    """Hypothesis calls a test often: a fixture's folder would be one for all of its examples."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"t{suffix}")
        path.write_bytes(content)
        return texts_of(read_texts(path))


# --- gender codes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gender", "codes"),
    [
        ("female", ["F", "f", "W", "w", "female", "Female", " FEMALE\t", "woman", "Woman"]),
        ("male", ["M", "m", "male", "MALE", "man", " Man"]),
        ("nonbinary", ["N", "n", "NB", "X", "x", "nonbinary", "Non-Binary", "non binary", "non_binary\n"]),
        (None, ["", " ", "\u3000"]),
    ],
)
def test_codes_that_are_understood(gender: str | None, codes: list[str]) -> None:
    assert {gender} == {GenderCodes()[code] for code in codes}


@pytest.mark.parametrize("code", ["NA", "None", "nan", "null", "D", "0", "1", "women", "fe male", "-"])
def test_a_code_nobody_mapped_is_an_error_and_no_guess(code: str) -> None:
    message = message_of(GenderCodes().__getitem__, code)
    assert f"The gender code {code!r} is not known." in message
    assert "VALUE: female, male, nonbinary or none (no gender)" in message


def test_a_mapping_goes_before_what_is_understood_whatever_the_case() -> None:
    spanish = {"m": "female", "H": "male", " X ": "nonbinary", "na": "none", "?": ""}
    found = {code: GenderCodes(spanish)[code] for code in ("M", "h", "x", "NA", "?", "F", "")}
    expected = {"M": "female", "h": "male", "x": "nonbinary", "NA": None, "?": None, "F": "female", "": None}
    assert expected == found


def test_unknown_codes_are_one_line_with_counts_and_the_way_to_map_them(write: Write) -> None:
    codes = ["F", "NA", "D", "D", "D", "trans woman", "trans woman", "1.5", "1.5", "", "M"]
    file = write("t.csv", "text,sex\n" + "".join(f"t,{code}\n" for code in codes))
    said = message_of(read_texts, file, gender="sex")
    assert "'D' (3 texts), 'trans woman' (2 texts), '1.5' (2 texts), 'NA' (1 text)" in said
    assert "--set 'gender_codes.trans woman=VALUE'" in said
    mapped = {"D": "nonbinary", "NA": "none", "trans woman": "female", "1.5": ""}
    found = read_texts(file, gender="sex", gender_codes=mapped)
    assert {"female": 3, "male": 1, "nonbinary": 3, None: 4} == Counter(genders_of(found))


# --- rows ------------------------------------------------------------------------------------------


def test_a_row_has_every_field_and_a_key_of_format_digest_and_line(write: Write) -> None:
    content = 'job,body,sex,llm\nnurse,"She\nworks.",W,demo\n'
    imported = read_texts(write("t.csv", content), text="body", gender="sex", occupation="job", model="llm")
    digest = hashlib.sha256(content.encode()).hexdigest()
    assert digest == imported.digest
    assert [
        {
            "key": hashlib.sha256(f'[1,"{digest}",2]'.encode()).hexdigest()[:32],  # row format 1, line 2
            "model": "demo",
            "occupation": "nurse",
            "template_id": "texts",
            "requested_gender": "female",
            "sample": 2,
            "seed": None,
            "prompt_format": None,
            "prompt": None,
            "text": "She\nworks.",
            "finish_reason": None,
            "n_tokens": None,
            "answered_by": None,
            "answered_at": None,
        }
    ] == list(imported.rows)


@pytest.mark.parametrize(
    ("name", "label"),
    [("mine.csv", "mine"), ("my texts.v2.csv", "my texts.v2"), ("all.csv", "texts"), ("=cmd.csv", "texts"),
     ("\u202eabc.csv", "texts"), (".csv.csv", ".csv")],
)  # fmt: skip
def test_without_a_column_the_model_is_called_by_the_files_name(write: Write, name: str, label: str) -> None:
    imported = read_texts(write(name, "text\nHe.\n"))
    (row,) = imported.rows
    assert (label, "texts", None) == (row["model"], row["occupation"], row["requested_gender"])
    assert {label: 1} == imported.models
    assert () == imported.notes


def test_a_sample_is_the_line_where_its_record_begins(write: Write) -> None:
    content = '"te\nxt",n\none,1\n\n"two\n\u2028and\r more",2\n\n\nthree,3\r\nfour'
    assert [3, 5, 9, 10] == samples_of(read_texts(write("t.csv", f"{content},4"), text="te\nxt"))
    # Messages count in the same way.
    assert "t.csv, line 10: 1 field," in message_of(read_texts, write("t.csv", content), text="te\nxt")
    assert [1, 3] == samples_of(read_texts(write("t.jsonl", '{"text": "a"}\n\n{"text": "b"}')))
    assert [1, 2] == samples_of(read_texts(pd.DataFrame({"text": ["a", "b"]}, index=[7, 7])))


def test_counts_and_notes_say_how_codes_were_read(write: Write) -> None:
    rows = ["a,M,Nurse,x", " ,w,nurse,x", ",N,nurse,y", "b,,cook,x", "c, m ,COOK,x", "d,M,Cook,x"]
    file = write("t.csv", "text,g,o,m\n" + "\n".join(rows))
    imported = read_texts(file, gender="g", occupation="o", model="m")
    assert {"male": 3, "female": 1, "nonbinary": 1, None: 1} == Counter(genders_of(imported))
    assert ["Nurse", "nurse", "nurse", "cook", "COOK", "Cook"] == occupations_of(imported)
    assert {"x": 5, "y": 1} == imported.models
    codes, which, empty, *cases = imported.notes
    assert "is 'g' the gender requested in the prompt?" in which
    assert "'' as no gender (1), 'M' as male (2), 'N' as nonbinary (1)" in codes
    assert "empty: 2" in empty
    assert ["'Nurse', 'nurse'" in cases[0], "'cook', 'COOK', 'Cook'" in cases[1]] == [True, True]


def test_the_personas_of_the_paper_say_which_code_is_which() -> None:
    if not PERSONAS.exists():
        not_beside(f"{PERSONAS} is not here")
    imported = read_texts(PERSONAS, gender="gender", occupation="race", model="model")
    with PERSONAS.open(encoding="utf-8", newline="") as file:
        prompts = [row["prompt"] for row in csv.DictReader(file)]
    said = [
        "nonbinary" if "nonbinary" in prompt else "female" if "woman" in prompt else "male"
        for prompt in prompts
    ]
    assert said == genders_of(imported)
    assert {"male": 450, "female": 450, "nonbinary": 450} == Counter(genders_of(imported))
    assert {"a White", "a Black", "an Asian", "a Middle-Eastern", "a Latine"} == set(occupations_of(imported))
    assert 1350 == len({row["key"] for row in imported.rows})


# --- text is text ----------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".ndjson", ".CSV", ".csv.gz", ".Jsonl.GZ"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_hard_texts_come_through_every_format(write: Write, suffix: str, mark: str) -> None:
    if "json" in suffix.lower():
        content = json_of(HARD, ascii_only=False)
    else:
        content = csv_of(HARD, delimiter="\t" if suffix == ".tsv" else ",")
    packed = (mark + content).encode()
    file = write(f"t{suffix}", gzip.compress(packed) if suffix.lower().endswith("gz") else packed)
    assert HARD == texts_of(read_texts(file))


@given(TEXTS, st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]), st.sampled_from(["\n", "\r\n"]))
@example(HARD, csv.QUOTE_MINIMAL, "\r\n")
def test_what_csv_writes_comes_back(texts: list[str], quoting: Any, end: str) -> None:
    # With "\n" as line end, Python's writer leaves "\r" outside quotes: such a file is refused, see below.
    quoting = csv.QUOTE_ALL if end == "\n" else quoting
    content = csv_of(texts, quoting=quoting, lineterminator=end).encode()
    assert texts == texts_through_file(".csv", content)


@given(ANY_TEXTS)
@example([*HARD, SURROGATE])
def test_what_json_writes_comes_back(texts: list[str]) -> None:
    assert texts == texts_through_file(".jsonl", json_of(texts).encode("ascii"))


@given(ANY_TEXTS)
@example([*HARD, SURROGATE])
def test_what_a_frame_holds_comes_back(texts: list[str]) -> None:
    assert texts == texts_of(read_texts(pd.DataFrame({"text": pd.Series(texts, dtype=object)})))


@pytest.mark.parametrize("table", ["t\nsame\nsplit\rhere\nlast\n", "t,n\nsplit\rhere,1\n"])
def test_a_lone_carriage_return_outside_quotes_makes_no_two_records(write: Write, table: str) -> None:
    message = message_of(read_texts, write("t.csv", table), text="t")
    assert "is not valid CSV: new-line character seen in unquoted field. Put texts" in message


# --- what is wrong with a file ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "options", "said"),
    [
        ("t.csv", "", {}, "t.csv is empty"),
        ("t.csv", "text\n\n\r\n", {}, "t.csv has no texts"),
        ("t.jsonl", "\ufeff\n \r\n", {}, "t.jsonl is empty"),
        ("t.csv", "texts,job\na,b\n", {}, "no column 'text'; it has 'texts', 'job'. Did you mean 'texts'?"),
        ("t.csv", "text,sex\na,F\n", {"gender": "gender"}, "no column 'gender'; it has 'text', 'sex'."),
        ("t.csv", "text,text\na,b\n", {}, "has the column 'text' twice"),
        ("t.csv", 'text,n\n"a\nb",1\n\nc, d,2\n', {}, "t.csv, line 5: 3 fields"),
        ("t.csv", 'text\na\n"b"c\n', {}, "t.csv, line 3 is not valid CSV"),
        ("t.csv", 'text\na\n"b\nc\n', {}, "t.csv, line 3 is not valid CSV"),
        ("t.csv", "text,job\na,cook\nb,=X(1)\n", {"occupation": "job"}, "line 3: job '=X(1)'"),
        ("t.csv", "text,m\na,\n", {"model": "m"}, "t.csv, line 2: m is empty."),
        ("t.csv", 'text,"m\n"\na,"x\u2028y"\n', {"model": "m\n"}, "line 3: 'm\\n' 'x\\u2028y' has a line"),
        ("t.jsonl", '{"text": "a"}\n{"Text": "b"}\n', {}, "t.jsonl, line 2 has no column 'text'"),
        ("t.jsonl", '{"text": "a"}\n{"text": ["b"]}\n', {}, "line 2: text is ['b'], which is not a text."),
        ("t.jsonl", '{"text": "a"}\n{"text": "b"\n', {}, "line 2 is not valid JSON"),
        ("t.jsonl", "[" * 10**5, {}, "t.jsonl, line 1 is not valid JSON: "),
        ("t.jsonl", '"text"\n', {}, "t.jsonl, line 1 is 'text', not an object."),
        ("t.csv", b"text\nok\ncaf\xe9\n", {}, "t.csv, line 3 is not UTF-8"),
        ("t.csv", "text\na\n".encode("utf-16"), {}, "t.csv is UTF-16"),
        ("t.csv.gz", b"text\na\n", {}, "t.csv.gz cannot be unpacked"),
        ("t.csv.gz", gzip.compress(b"text\na\n", mtime=0)[:-9], {}, "t.csv.gz cannot be unpacked"),
        ("t.txt", "a", {}, "t.txt: a file of texts ends in .csv"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    write: Write, name: str, content: str | bytes, options: dict[str, Any], said: str
) -> None:
    assert said in message_of(read_texts, write(name, content), **options)


def test_a_gender_may_be_absent_null_or_a_number_in_json(write: Write) -> None:
    values = ['"F"', "null", "NaN", "1", "1.0", "true"]
    lines = [f'{{"text": "t", "g": {value}}}' for value in values] + ['{"text": "t"}']
    imported = read_texts(
        write("t.jsonl", "\n".join(lines)), gender="g", gender_codes={"1": "male", "true": "nonbinary"}
    )
    assert ["female", None, None, "male", "male", "nonbinary", None] == genders_of(imported)


# --- frames ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("empty", [None, float("nan"), np.nan, pd.NA, pd.NaT])
def test_a_missing_gender_is_not_requested_and_a_missing_text_an_error(empty: Any) -> None:
    df = pd.DataFrame({"text": ["a", "b"], "g": pd.Series([empty, "F"], dtype=object)})
    assert [None, "female"] == genders_of(read_texts(df, gender="g"))
    assert message_of(read_texts, df, text="g") == (
        "the DataFrame, row 1: g is missing. Give the record a text or leave it out; pandas reads a text such"
        " as 'NA' as missing unless keep_default_na=False."
    )
    assert message_of(read_texts, df, model="g") == "the DataFrame, row 1: g is empty. Give it a name."


@pytest.mark.parametrize("dtype", ["category", "string", "str", object])
def test_text_of_any_kind_of_column_is_plain_text(dtype: Any) -> None:
    df = pd.DataFrame({"text": pd.Series(["a", "NA", ""], dtype=dtype)})
    found = texts_of(read_texts(df))
    assert ["a", "NA", ""] == found
    assert {str} == {type(text) for text in found}


def test_a_frames_keys_depend_on_what_is_used_alone() -> None:
    df = pd.DataFrame({"text": ["a", "b"], "g": ["F", "M"], "other": [1, 2]})
    digest = read_texts(df, gender="g").digest
    same = df.assign(other=9).set_index(pd.Index([5, 6]))[["other", "g", "text"]]
    assert digest == read_texts(same, gender="g").digest
    others = [
        read_texts(df).digest,
        read_texts(df[::-1], gender="g").digest,
        read_texts(df.assign(g="F"), gender="g").digest,
        read_texts(df.assign(text=["a", "bb"]), gender="g").digest,
        read_texts(df, occupation="g").digest,
    ]
    assert 6 == len({digest, *others})


# --- Parquet ---------------------------------------------------------------------------------------


def require_pyarrow() -> Any:
    if importlib.util.find_spec("pyarrow") is None:
        missing('pyarrow is not installed: pip install "biaskit[parquet]"')
    return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")


def write_parquet(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    arrow, parquet = require_pyarrow()
    parquet.write_table(arrow.table(columns), path, **options)
    return path


def test_parquet_rows_count_from_one_over_row_groups_and_batches(tmp_path: Path) -> None:
    texts = [f"text {n}" for n in range(3000)]
    columns = {
        "text": texts,
        "a.b": ["F", "M", None] * 1000,
        "a": [{"b": "struct"}] * 3000,
        "year": [2020] * 3000,
    }
    path = write_parquet(tmp_path / "t.parquet", columns, row_group_size=700)
    imported = read_texts(path, gender="a.b", occupation="year", model="year")
    rows = list(imported.rows)
    assert texts == [row["text"] for row in rows]
    assert list(range(1, 3001)) == [row["sample"] for row in rows]
    assert {"female": 1000, "male": 1000, None: 1000} == Counter(genders_of(imported))
    assert {"2020"} == {row["occupation"] for row in rows} == {row["model"] for row in rows}
    assert hashlib.sha256(path.read_bytes()).hexdigest() == imported.digest


def test_what_is_wrong_with_parquet_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrow, _ = require_pyarrow()
    monkeypatch.chdir(tmp_path)
    path = Path("t.parquet")
    bad = arrow.array([b"ok", b"\xff"]).cast(arrow.binary()).view(arrow.string())
    for column, values, said in (
        ("texts", ["a"], "t.parquet has no column 'text'; it has 'texts'."),
        ("text", ["a", None], "t.parquet, row 2: text is missing."),
        ("text", [b"a"], "t.parquet, row 1: text is b'a', which is not a text."),
        ("text", arrow.array([], arrow.string()), "t.parquet has no texts."),
        ("text", bad, "t.parquet cannot be read as Parquet: "),
    ):
        assert said in message_of(read_texts, write_parquet(path, {column: values}))
    whole = write_parquet(path, {"text": ["a"] * 100}).read_bytes()
    footer = whole[:-40] + bytes(range(200, 232)) + whole[-8:]
    for broken in (b"", b"PAR1 but no more", whole[:-1], footer):
        path.write_bytes(broken)
        assert message_of(read_texts, path).startswith("t.parquet cannot be read as Parquet: ")


# --- files as people have them ------------------------------------------------------------------------


@pytest.mark.parametrize(("separator", "name"), [(";", "semicolons"), ("\t", "tabs")])
def test_a_csv_parted_otherwise_is_read_by_its_header_and_says_so(
    tmp_path: Path, separator: str, name: str
) -> None:
    path = tmp_path / "mine.csv"
    lines = [["text", "gender"], ["Sie, die Frau", "F"], [f'"a {separator} b"', "M"], ["", "F"]]
    path.write_text("".join(separator.join(line) + "\n" for line in lines), encoding="utf-8-sig")
    found = read_texts(path, gender="gender")
    assert ["Sie, die Frau", f"a {separator} b", ""] == [row["text"] for row in found.rows]
    assert any(f"split at {name}" in note for note in found.notes)


@pytest.mark.parametrize("content", ["text,note;text\nx,y\n", "text\na;b\n"])
def test_what_commas_can_read_is_never_parted_otherwise(tmp_path: Path, content: str) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(content)
    found = read_texts(path)
    assert not any("parted" in note for note in found.notes)
    assert [content.splitlines()[1].split(",")[0]] == [row["text"] for row in found.rows]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_cp1252_by_choice_and_named_where_utf8_cannot_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"mine{suffix}"
    said = "She said “Grüße” – 5 €."
    content = f'text\n"{said}"\n' if suffix == ".csv" else json.dumps({"text": said}, ensure_ascii=False)
    path.write_bytes(content.encode("cp1252"))
    with pytest.raises(CorpusError, match="--encoding cp1252"):
        read_texts(path)
    assert [said] == [row["text"] for row in read_texts(path, encoding="cp1252").rows]
    path.write_bytes(content.encode("utf-16"))
    with pytest.raises(CorpusError, match="is UTF-16"):
        read_texts(path)
    path.write_bytes(content.encode("cp1252") + b"\x81\n")
    with pytest.raises(CorpusError, match="is not cp1252"):
        read_texts(path, encoding="cp1252")
