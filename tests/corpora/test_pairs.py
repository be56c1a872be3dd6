"""Sentence pairs: the shipped list, every format they may come in, what is refused, and what is noted."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import unicodedata
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from biaskit.common.files import data_dir
from biaskit.corpora.loaders import gender_words
from biaskit.corpora.pair_formats import differing_words, side_of
from biaskit.corpora.pairs import load_pairs
from biaskit.corpora.sources import load_corpus
from biaskit.errors import CorpusError
from biaskit.records import SentencePair

Row = dict[str, Any]
Write = Callable[[str, str | bytes], str]

SHIPPED_PAIRS = "corpus:pairs-en/pairs.csv"
COLUMNS = ("item", "female", "male", "diverse", "stereotype", "direction", "language", "prefix")
SHE_HE: Row = {"female": "She is here.", "male": "He is here."}
FULL: Row = {
    **SHE_HE,
    "item": "here",
    "diverse": "They are here.",
    "stereotype": "places",
    "direction": "female",
    "language": "en",
    "prefix": "A friend wrote:",
}


def as_csv(rows: list[Row], delimiter: str = ",", columns: tuple[str, ...] = COLUMNS) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, delimiter=delimiter, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def as_jsonl(rows: list[Row]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def notes_of(*rows: Row) -> list[str]:
    return list(load_pairs(rows)[1])


def message_of(source: Any) -> str:
    with pytest.raises(CorpusError) as caught:
        load_pairs(source)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- what is shipped -----------------------------------------------------------------------------


def test_the_shipped_list_has_twelve_occupations_in_three_sentences_and_four_languages() -> None:
    pairs, notes = load_pairs(SHIPPED_PAIRS)
    assert () == notes
    assert 144 == len(pairs)
    languages = {item: [p.language for p in pairs if p.item == item] for item in {p.item for p in pairs}}
    assert 36 == len(languages)
    assert all(sorted(of_item) == ["de", "en", "es", "fr"] for of_item in languages.values())
    assert {12} == set(Counter(pair.stereotype for pair in pairs).values())
    assert {"female": 72, "male": 72} == Counter(pair.direction for pair in pairs)
    assert 12 == len({(pair.stereotype, pair.direction) for pair in pairs})


def test_a_shipped_sentence_is_one_line_that_ends_in_a_full_stop_and_is_there_once() -> None:
    pairs, _ = load_pairs(SHIPPED_PAIRS)
    sentences = [sentence for pair in pairs for sentence in (pair.female, pair.male)]
    assert len(sentences) == len(set(sentences))
    for sentence in sentences:
        assert sentence.endswith(".")
        assert sentence.count(".") == 1
        assert " ".join(sentence.split()) == sentence
        assert sentence[0].isupper()
        assert "{" not in sentence
        assert "|" not in sentence


def test_an_english_pair_differs_in_one_pronoun() -> None:
    english = [pair for pair in load_pairs(SHIPPED_PAIRS)[0] if pair.language == "en"]
    forms = {("she", "he"), ("her", "him"), ("her", "his"), ("herself", "himself")}
    for pair in english:
        ((female, male),) = differing_words(pair.female, pair.male)
        assert (*female, *male) in forms


def test_the_sentences_of_an_occupation_begin_or_are_built_differently() -> None:
    for occupation in {pair.stereotype for pair in load_pairs(SHIPPED_PAIRS)[0]}:
        of_it = [p for p in load_pairs(SHIPPED_PAIRS)[0] if (p.stereotype, p.language) == (occupation, "en")]
        beside_it = [pair.female.lower().replace(f"the {occupation}", "").split() for pair in of_it]
        assert 3 == len({tuple(words[:2]) for words in beside_it})


def test_the_shipped_list_keeps_its_digest() -> None:
    (file,) = load_corpus("pairs-en").files
    content = (data_dir("corpora") / "pairs-en" / file.path).read_bytes()
    assert file.sha256 == hashlib.sha256(content).hexdigest()
    assert b"\r" not in content


# --- formats -------------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_csv_may_be_parted_by_commas_semicolons_or_tabs(write: Write, delimiter: str) -> None:
    pairs, notes = load_pairs(write("p.csv", as_csv([FULL, {**SHE_HE, "direction": "male"}], delimiter)))
    assert (SentencePair(**FULL), SentencePair("2", "She is here.", "He is here.", direction="male")) == pairs
    assert ("1 pair names no language, others do (first: 2)",) == notes


def test_an_item_may_be_a_number_and_other_columns_are_ignored(write: Write) -> None:
    rows = [{**SHE_HE, "item": 7, "wage": 3.5, "direction": None, "language": math.nan}]
    expected = (SentencePair("7", "She is here.", "He is here."),)
    assert expected == load_pairs(rows)[0]
    assert expected == load_pairs(write("p.jsonl", as_jsonl(rows)))[0]
    assert expected == load_pairs([{**SHE_HE, "item": 7.0}])[0]


def test_the_rows_of_a_data_frame_are_pairs() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([FULL, {**SHE_HE, "item": "other", "language": "en"}])
    pairs, _ = load_pairs(frame.to_dict("records"))
    assert (
        SentencePair(**FULL),
        SentencePair("other", "She is here.", "He is here.", language="en"),
    ) == pairs
    assert pairs == load_pairs(frame.convert_dtypes().to_dict("records"))[0]


def test_blank_lines_of_json_lines_are_no_rows_but_counted(write: Write) -> None:
    name = write("p.jsonl", f"{json.dumps(SHE_HE)}\r\n\n{json.dumps({'female': 'She is.'})}\n")
    assert "p.jsonl, line 3: male is missing or empty. Write one." == message_of(name)


TEXTS = st.text(st.characters(codec="utf-8", categories=("L", "N", "P")), min_size=1, max_size=8)
NAMES = TEXTS.filter(lambda text: text[0] not in "=+-@" and text not in ("nan", "None"))
ROWS = st.fixed_dictionaries(
    {"female": TEXTS.map("a{}".format), "male": TEXTS.map("b{}".format)},
    optional={
        "diverse": TEXTS.map("c{}".format),
        "stereotype": NAMES,
        "direction": st.sampled_from(["female", "male"]),
        "language": NAMES,
        "prefix": TEXTS,
    },
)


@given(rows=st.lists(ROWS, min_size=1, max_size=4, unique_by=lambda row: row["female"]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_rows_are_the_same_pairs_in_every_format(tmp_path: Path, rows: list[Row]) -> None:
    contents = {
        "comma.csv": as_csv(rows),
        "semicolon.csv": as_csv(rows, ";"),
        "tab.csv": as_csv(rows, "\t"),
        "p.jsonl": as_jsonl([{**dict.fromkeys(COLUMNS), **row} for row in rows]),
        "p.toml": tomli_w.dumps({"pair": rows}),
    }
    expected = load_pairs(rows)
    assert [str(n) for n, _ in enumerate(rows, 1)] == [pair.item for pair in expected[0]]
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content.encode())
        assert expected == load_pairs(tmp_path / name)


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"female": ""}, "pairs, row 2: female is missing or empty. Write one."),
        ({"male": None}, "pairs, row 2: male is missing or empty. Write one."),
        ({"male": math.nan}, "pairs, row 2: male is missing or empty. Write one."),
        ({"male": 5}, "pairs, row 2: male is 5, which is not a text. Put it in quotes."),
        ({"female": " \u00a0"}, "pairs, row 2: female is missing or empty. Write one."),
        ({"male": "He.\x00"}, "pairs, row 2: male has a control character: 'He.\\x00'. Remove it."),
        (
            {"direction": "femal"},
            "pairs, row 2: unknown direction 'femal'. Did you mean 'female'? Known: female, male.",
        ),
        (
            {"male": "She is here."},
            "pairs, row 2: female and male are the same sentence, 'She is here.'."
            " Write the forms in which they differ, or remove the row.",
        ),
        ({"diverse": "He is here."}, "pairs, row 2: male and diverse are the same sentence, 'He is here.'."),
        ({"diverse": "She is here."}, "pairs, row 2: female and diverse are the same sentence,"),
        ({"item": "=1"}, "pairs, row 2: item '=1' begins with '=', which a spreadsheet would run."),
        (
            {"item": "HERE"},
            "pairs, row 2: item 'HERE' is listed twice in language 'en' (first: pairs, row 1)."
            " Number its sentences, and name what they share under stereotype.",
        ),
    ],
)
def test_a_wrong_row_says_what_and_where(changed: Row, message: str) -> None:
    row = {**SHE_HE, "language": "en", **changed}
    assert message_of([FULL, row]).startswith(message)


def test_the_same_item_may_be_there_in_two_languages_but_not_twice_without_one() -> None:
    german = {"item": "here", "language": "de", "female": "Sie ist hier.", "male": "Er ist hier."}
    assert 2 == len(load_pairs([FULL, german])[0])
    unnamed = {**SHE_HE, "item": "x"}
    assert "pairs, row 2: item 'x' is listed twice (first: pairs, row 1)." in message_of([unnamed, unnamed])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.csv", "female,male\n", "p.csv has no pairs. Write at least one pair."),
        ("p.jsonl", "\n", "p.jsonl has no pairs. Write at least one pair."),
        ("p.toml", "", "p.toml has no pairs. Write at least one pair."),
        ("p.csv", "", "p.csv has no column 'female'; its first line is empty."),
        (
            "p.csv",
            "femal,male\nShe.,He.\n",
            "p.csv has no column 'female'; its first line is 'femal', 'male'.",
        ),
        ("p.csv", "female,male\nShe.,\n", "p.csv, line 2: male is missing or empty. Write one."),
        ("p.csv", "female,male\nShe, too.,He.\n", "p.csv, line 2: 3 fields, but 2 in the header."),
        ("p.jsonl", "{}\n", "p.jsonl, line 1 has no column 'female'; it has empty."),
        ("p.jsonl", '{"female": "a"\n', "p.jsonl, line 1 is not valid JSON: "),
        ("p.jsonl", '\n["a"]\n', "p.jsonl, line 2 is ['a'], not an object. Write one object on a line."),
        ("p.toml", '[[pair]]\nfemale = "a"\n', "p.toml, pair 1: male is missing or empty. Write one."),
        ("p.txt", "a\n", "p.txt: a file of pairs ends in .csv or .toml or .xlsx or .jsonl, not in '.txt'."),
    ],
)
def test_a_wrong_file_says_what_and_where(write: Write, name: str, content: str, message: str) -> None:
    assert message_of(write(name, content)).startswith(message)


def test_rows_in_memory_name_the_columns_that_they_have() -> None:
    expected = (
        "pairs, row 1 has no column 'female'; it has 'Female', 'Male'. Did you mean 'Female'?"
        " Name columns female,male, with other columns as you need them."
    )
    assert expected == message_of([{"Female": "She.", "Male": "He."}])
    assert "pairs has no pairs. Write at least one pair." == message_of([])


def test_other_lists_are_not_read_as_pairs() -> None:
    assert "corpus:gasp/occupations.csv has items, not pairs." == message_of("corpus:gasp/occupations.csv")


# --- what is noted -------------------------------------------------------------------------------


def pair(female: str, male: str, **more: str) -> Row:
    return {"female": female, "male": male, **more}


def test_pairs_without_direction_are_noted_where_others_have_one() -> None:
    rows = [
        FULL,
        {**SHE_HE, "language": "en", "item": "b"},
        {**SHE_HE, "male": "He was here.", "language": "en"},
    ]
    expected = ["2 pairs have no direction: no stereotype rate over them (first: b (en))"]
    assert expected == notes_of(*rows)
    assert [] == notes_of(*rows[1:])
    assert [] == notes_of(FULL)


def test_five_copies_of_a_pair_are_one() -> None:
    rows = [{**SHE_HE, "language": "en"}] * 5
    pairs, notes = load_pairs([*rows, {**SHE_HE, "language": "x"}, {**SHE_HE, "stereotype": "rest"}])
    assert ["1", "6", "7"] == [pair.item for pair in pairs]
    assert "4 rows with the sentences of another, left out (first: pairs, row 2)" in notes
    # What it is about may differ.
    assert 2 == len(load_pairs([{**SHE_HE, "direction": side} for side in ("female", "male")])[0])


def test_a_sentence_that_begins_the_other_is_noted() -> None:
    found = notes_of(
        pair("Elle est contente", "Elle est content"), pair("Elle est contente.", "Elle est content.")
    )
    assert ["1 pair has a sentence that begins the other"] == [
        note.partition(", and is")[0] for note in found
    ]


@pytest.mark.parametrize("column", ["Stereotype", "directon", "languge", "Direction"])
def test_a_misspelled_column_is_refused(column: str) -> None:
    said = message_of([{**SHE_HE, column: "x"}])
    assert f"unknown column '{column}'. Did you mean" in said
    # In a later row of JSON lines or of a program too.
    assert "row 2: unknown column" in message_of([SHE_HE, {**SHE_HE, column: "x"}])


def test_sentences_in_other_letters_than_their_language_are_noted() -> None:
    rows = [
        pair("She sleeps.", "He sleeps.", language="en"),
        pair("She eats.", "He eats.", language="en"),
        pair("Она спала.", "Он спал.", language="en"),
        pair("Она пела.", "Он пел.", language="ru"),
    ]
    assert ["1 pair of language 'en' in other letters (first: 3 (en): cyrillic, not latin)"] == notes_of(
        *rows
    )


def test_the_scripts_of_one_language_are_no_other_letters() -> None:
    rows = [pair("彼女は来た。", "彼は来た。", language="ja"), pair("おばだ。", "おじだ。", language="ja")]
    assert [] == notes_of(*rows)


@pytest.mark.parametrize(
    ("female", "male"),
    [
        ("Er traf die Ärztin und ihren Hund.", "Er traf den Arzt und seinen Hund.".replace("Arzt", "Ärzt")),
        ("La médica está cansada.", "El médico está cansado."),
        ("Hablo de la jefa.", "Hablo del jefe."),
        ("Elle va à la caissière si elle peut.", "Il va au caissier s'il peut."),
        ("L\u2019employée l\u2019a vue.", "L\u2019employé l\u2019a vu."),
        ("My wife's sister came.", "My husband's brother came."),
        ("She's a woman who knows herself.", "He's a man who knows himself."),
        ("Она устала.", "Он устал."),
        ("她是医生。", "他是医生。"),
        ("Frau Weber kam.", "Weber kam."),
        ("Mme Blanc dort.", "M. Blanc dort."),
        ("Miss Lee sat.", "Mr. Lee sat."),
        ("Un'amica cantava.", "Un amico cantava."),
        ("La Sra. López duerme.", "El Sr. López duerme."),
        ("A Dra. Silva dorme.", "O Dr. Silva dorme."),
        ("La dott.ssa Rossi dorme.", "Il dott. Rossi dorme."),
        ("La sig.ra Rossi dorme.", "Il sig. Rossi dorme."),
        ("My grand-mother sat.", "My grand-father sat."),
        ("वह नर्स थकी हुई थी।", "वह नर्स थका हुआ था।"),
        ("«Она — врач».", "«Он — врач»."),
    ],
)
def test_marks_of_gender_are_nothing_to_note(female: str, male: str) -> None:
    assert [] == notes_of(pair(female, male))


@pytest.mark.parametrize(
    ("female", "male", "words"),
    [
        ("She is a nurse.", "He is an engineer.", "'a nurse' / 'an engineer'"),
        ("She cried.", "He shouted.", "'she cried' / 'he shouted'"),
        ("She came.", "He came late at night.", "'' / 'late at night'"),
        ("She sat.", "\u041d\u0435 sat.", "'she' / '\u043d\u0435'"),  # letters that look alike
        ("She s\u0430t.", "He sat.", "'she s\u0430t' / 'he sat'"),
        ("She is a very kind and gentle boss.", "He is a boss.", "'very kind and gentle' / ''"),
        ("Sarah came.", "Michael came.", "'sarah' / 'michael'"),
        ("She came.", "He did not come.", "'she came' / 'he did not come'"),
        ("The woman did come.", "The man did not come.", "'' / 'not'"),
    ],
)
def test_words_that_differ_beyond_gender_are_quoted(female: str, male: str, words: str) -> None:
    rows = [pair("She sat.", "He sat."), pair(female, male, item="nurse-1")]
    assert [f"1 pair differs perhaps in more than marks of gender: nurse-1, row 2: {words}"] == notes_of(
        *rows
    )


@pytest.mark.parametrize(
    ("female", "male", "written"),
    [
        ("She sat", "He sat.", "'sat' / 'sat.'"),
        ("I saw her", "I saw him.", "'saw her' / 'saw him.'"),
        ("She sat。", "He sat.", "'sat。' / 'sat.'"),
        ("She sat...", "He sat\u2026", "'sat...' / 'sat\u2026'"),
        ("It\u2019s her hat.", "It's his hat.", """'It\u2019s' / "It's\""""),
        (
            "L\u2019infirmière dort.",
            "L'infirmier dort.",
            """'L\u2019infirmière dort' / "L'infirmier dort\"""",
        ),
        ("She's here.", "He is here.", """"She's here" / 'He is here'"""),
        ("She didn't go.", "He did'nt go.", """"She didn't go" / "He did'nt go\""""),
        ("She met the Nurse.", "He met the nurse.", "'the Nurse' / 'the nurse'"),
        ("she sat.", "He sat.", "'she sat' / 'He sat'"),
        ("She  sat.", "He sat.", "'She\u2423\u2423sat' / 'He sat'"),
        ("She sat\u00a0there.", "He sat there.", "'sat\\xa0there' / 'sat there'"),
        ("She left \u2013 late.", "He left - late.", "'left \u2013 late' / 'left - late'"),
        ("\u200fהיא ישנה.", "הוא ישן.", "'\\u200fהיא ישנה.' / 'הוא ישן.'"),
        ("She saw NASA.", "He saw ＮＡＳＡ.", "'saw NASA' / 'saw ＮＡＳＡ'"),
        (
            "Sie war im Stra\u00dfengraben.",
            "Er war im Strassengraben.",
            "'im Stra\u00dfengraben' / 'im Strassengraben'",
        ),
        ("Mrs. Lee sat.", "Mr Lee sat.", "'Mrs. Lee' / 'Mr Lee'"),
        ("She has 3 cats.", "He has 4 cats.", "'3' / '4'"),
    ],
)
def test_marks_blanks_and_case_that_differ_are_quoted_with_their_row(
    female: str, male: str, written: str
) -> None:
    assert [f"1 pair differs perhaps in more than marks of gender: 2, row 2: {written}"] == notes_of(
        pair("She sat.", "He sat."), pair(female, male)
    )


def test_a_third_sentence_is_held_against_the_other_two() -> None:
    star = pair("Die Lehrerin kam.", "Der Lehrer kam.", diverse="Die Lehrer*in kam.")
    assert [] == notes_of(star)
    expected = "1 pair differs perhaps in more than marks of gender: 1, row 1: 'kam.' / 'kam'"
    assert [expected] == notes_of({**star, "diverse": "Die Lehrer*in kam"})


def test_many_pairs_that_differ_are_counted_and_the_first_twelve_named() -> None:
    (note,) = notes_of(*(pair(f"She is {n}.", f"He is {n}", item=f"i{n}") for n in range(15)))
    assert note.startswith(
        "15 pairs differ perhaps in more than marks of gender: i0, row 1: '0.' / '0'; i1, row 2:"
    )
    assert note.endswith("; i11, row 12: '11.' / '11' and 3 more")


def test_letters_with_accents_apart_are_the_same_letters() -> None:
    # Unicode's canonical equivalence (UAX 15): é is one character, or e and an accent.
    row = pair(
        "L'infirmi\u00e8re est fatigu\u00e9e.",
        "L'infirmier est fatigu\u00e9.",
        stereotype="pr\u00eat",
        language="fran\u00e7ais",
    )
    apart = {name: unicodedata.normalize("NFD", value) for name, value in row.items()}
    assert apart != row
    assert load_pairs([row]) == load_pairs([apart]) == load_pairs([{**row, "male": apart["male"]}])
    both, notes = load_pairs([row, apart])
    assert len(both) == 1
    assert notes == ("1 row with the sentences of another, left out (first: pairs, row 2)",)


def test_blanks_at_the_edges_go() -> None:
    padded = {name: f"\u00a0 {value}\t\u3000" for name, value in FULL.items()}
    assert load_pairs([FULL]) == load_pairs([padded])
    assert load_pairs([SHE_HE]) == load_pairs([{**SHE_HE, "language": " ", "direction": "\u00a0"}])
    wrapped = load_pairs([{**SHE_HE, "stereotype": "night\u00a0 \n nurse"}])
    assert load_pairs([{**SHE_HE, "stereotype": "night nurse"}]) == wrapped


def test_labels_that_differ_only_in_case_are_noted() -> None:
    rows = [
        pair(f"She is {n}.", f"He is {n}.", stereotype=s, language=language)
        for n, (s, language) in enumerate([("nurse", "en"), ("Nurse", "EN"), ("cook", "en"), ("NURSE", "en")])
    ]
    assert notes_of(*rows) == [
        "stereotype labels that differ only in case stay separate: 'nurse', 'Nurse', 'NURSE'",
        "language labels that differ only in case stay separate: 'en', 'EN'",
    ]


# --- published files -----------------------------------------------------------------------------


def eurogest(**changed: object) -> Row:
    row = {"GEST_ID": "12", "Source": "I am tired.", "Stereotype_ID": "7", "Neutral": ""}
    return {**row, "Masculine": "Estoy cansado.", "Feminine": "Estoy cansada. ", **changed}


def test_eurogest_is_told_by_its_columns(write: Write) -> None:
    rows = [
        eurogest(),
        eurogest(GEST_ID="13", Stereotype_ID=8),
        eurogest(GEST_ID="14", Masculine="", Feminine="", Neutral="Duermo."),
    ]
    expected = (
        SentencePair("12", "Estoy cansada.", "Estoy cansado.", None, "beautiful", "female"),
        SentencePair("13", "Estoy cansada.", "Estoy cansado.", None, "tough", "male"),
    )
    kind = "1 row without a feminine and a masculine sentence, left out"
    assert (expected, (f"{kind} (first: pairs, row 3)",)) == load_pairs(rows)
    read = load_pairs(write("Spanish.csv", as_csv(rows, columns=tuple(rows[0]))))
    assert (expected, (f"{kind} (first: Spanish.csv, line 4)",)) == read
    assert "pairs, row 1: Stereotype_ID 17: input should be" in message_of([eurogest(Stereotype_ID=17)])
    assert message_of(rows[2:]) == f"pairs has no pairs: {kind} (first: pairs, row 1). Write at least one."


def crows(more: str, less: str, kind: str = "gender", side: str = "stereo") -> Row:
    return {"": "0", "sent_more": more, "sent_less": less, "stereo_antistereo": side, "bias_type": kind}


def test_the_gender_rows_of_crows_pairs_are_pairs_whose_expected_side_is_sent_more(write: Write) -> None:
    rows = [
        crows("The old are slow.", "The young are slow.", "age"),
        crows("Women talk a lot.", "Men talk a lot."),
        crows("He runs the firm.", "She runs the firm.", side="antistereo"),
        crows("Anna was late.", "Peter was late."),
        crows("The poor are late.", "The rich are late.", "socioeconomic"),
    ]
    expected = (
        SentencePair("2", "Women talk a lot.", "Men talk a lot.", direction="female"),
        SentencePair("3", "She runs the firm.", "He runs the firm.", direction="male"),
    )
    pairs, notes = load_pairs(write("c.csv", as_csv(rows, columns=tuple(rows[0]))))
    assert expected == pairs
    assert notes == (
        "2 rows of another bias type than gender, left out (first: c.csv, line 2)",
        "1 row without English words for women and for men (else write columns female, male and direction),"
        " left out (first: c.csv, line 5)",
    )
    assert expected == load_pairs(rows)[0]


def test_french_crows_pairs_says_what_it_lacks_and_is_read_with_those_columns(write: Write) -> None:
    # The columns of the edition of Névéol et al. (2022), parted by tabs; the sentences are ours.
    rows = [
        {**crows("Elle pleure souvent.", "Il pleure souvent.")},
        {**crows("Sa secrétaire était coquette.", "Son secrétaire était coquet.")},
    ]
    columns = tuple(rows[0])
    said = message_of(write("fr.csv", as_csv(rows, "\t", columns)))
    assert "2 rows without English words for women and for men" in said
    assert "(else write columns female, male and direction), left out (first: " in said
    for row in rows:
        row |= {"female": row["sent_more"], "male": row["sent_less"], "direction": "female"}
    pairs, notes = load_pairs(write("fr.csv", as_csv(rows, "\t", (*columns, "female", "male", "direction"))))
    assert pairs[0] == SentencePair("1", "Elle pleure souvent.", "Il pleure souvent.", direction="female")
    assert (2, ()) == (len(pairs), notes)


def test_winobias_loses_its_brackets_and_numbers(write: Write) -> None:
    rows = [
        {
            "pro_stereotyped": "1 [The cook] thanked the pilot because [she] was hungry.",
            "anti_stereotyped": "1 [The cook] thanked the pilot because [he] was hungry.",
        },
        {
            "pro_stereotyped": "The cook called [the pilot] and asked [him] about [his] trip.",
            "anti_stereotyped": "The cook called [the pilot] and asked [her] about [her] trip.",
        },
    ]
    female, male = (f"The cook thanked the pilot because {word} was hungry." for word in ("she", "he"))
    her, him = (f"The cook called the pilot and asked {w} trip." for w in ("her about her", "him about his"))
    expected = (
        SentencePair("1", female, male, stereotype="cook", direction="female"),
        SentencePair("2", her, him, stereotype="pilot", direction="male"),
    )
    assert (expected, ()) == load_pairs(write("w.jsonl", as_jsonl(rows)))
    assert (expected, ()) == load_pairs(write("w.csv", as_csv(rows, columns=tuple(rows[0]))))


@pytest.mark.parametrize(
    ("bracketed", "stereotype"),
    [
        ("[The CEO] said that [he] left.", "ceo"),
        ("When [he] left, [a construction worker] sang.", "construction worker"),
        ("[He] sang.", ""),
        ("He sang.", ""),
    ],
)
def test_the_occupation_in_winobias_brackets_is_the_stereotype(bracketed: str, stereotype: str) -> None:
    [pair], _ = load_pairs(
        [
            {
                "pro_stereotyped": bracketed,
                "anti_stereotyped": bracketed.replace("[he]", "[she]").replace("He", "She"),
            }
        ]
    )
    assert (pair.stereotype, pair.direction) == (stereotype, "male")


@pytest.mark.parametrize(
    ("side", "words"),
    [
        (
            "female",
            "she her hers herself mrs ms female woman women girl girls girlfriend lady mother wife wives",
        ),
        (
            "male",
            "he his him himself mr male man men boy boys boyfriend gentleman father son husband widower",
        ),
        (None, "they their them nonbinary person doctor human tomboy"),
    ],
)
def test_a_gendered_word_says_its_side(side: str | None, words: str) -> None:
    assert {side} == {side_of([word]) for word in words.split()}


def test_no_gendered_word_but_tomboy_says_both_sides_and_both_together_say_none() -> None:
    assert side_of(["he", "she"]) is None
    by_ending = [word for word in gender_words() if word.endswith(("woman", "women"))]
    assert by_ending
    assert {"female"} == {side_of([word]) for word in by_ending}
    men = [word for word in gender_words() if word.endswith(("man", "men")) and word not in by_ending]
    assert {"male"} == {side_of([word]) for word in men}
