"""Texts as people have them: marks, avoided genders, acronyms, copies, files, and what messages name.

See methods/texts#marks, methods/texts#copies, methods/texts#gender-association.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fakes.personas_runs import one, only, table
from hypothesis import given
from hypothesis import strategies as st

import biaskit as bk
from biaskit.arguments import BY_COMMAND, as_called
from biaskit.common.marks import first_mark, legible
from biaskit.corpora.languages import shipped_language
from biaskit.errors import BiaskitError
from biaskit.measures.personas.texts import copies
from biaskit.measures.personas.texts.association import associate_gender, counted_places
from biaskit.measures.personas.texts.copies import shingles_of, units
from biaskit.measures.personas.texts.importing import read_texts
from biaskit.measures.personas.texts.names import listed_names
from biaskit.measures.personas.texts.tokens import tokenise
from biaskit.stats.proportions import wilson

# --- marks --------------------------------------------------------------------------------------------

MARKS = [
    ("Dear Sir,<return><return>She leads.<return>Her notes", "dear sir she leads her notes"),
    ("A letter.<br>She is kind.<br/>Her desk", "a letter she is kind her desk"),
    (r"A letter.\n\nShe is kind.\r\nHer\tdesk", "a letter she is kind her desk"),
    ("calm.&nbsp;She&#39;s kind.&nbsp;Her&#xA0;desk", "calm shes kind her desk"),
    ("<p>She</p><p class='a b'>Her</p>", "she her"),
    ("&lt;p&gt;She&lt;/p&gt;R&amp;D, &amp;nbsp;her", "she rd her"),
    ("kind._x000D_She<|im_end|>he[NEWLINE]his{br}him<0x0A>her", "kind she he his him her"),
    ("She works.\u00b6Her desk\u23ceHe \u2581is", "she works her desk he is"),
    (r"Her\u00a0desk is hers\u2014she", "her desk is hersshe"),
    ("<!-- he --><style>p {his}</style>she", "she"),
    (r"b'She isn\xe2\x80\x99t here. \n\xc3\x89va'", "she isnt here va"),  # repr(bytes)
    ('[b"He"]', "he"),
    ("b'day. She", "bday she"),
    ("a <b and c> d, 1 < 2 > 1, AT&T; &foo;", "a b and c d att foo"),  # no marks
    (r"C:\Users\Nora \ [her] {his} _she_ <3", "cusersnora her his she"),
]

COUNTED = shipped_language("en").classes["paper"]


@pytest.mark.parametrize(("text", "words"), MARKS)
def test_marks_part_words_and_every_character_keeps_its_place(text: str, words: str) -> None:
    assert words.split() == tokenise(text)
    assert len(text) == len(legible(text))
    assert (first_mark(text) is None) == (legible(text) == text)


@given(st.lists(st.sampled_from([*"<>&;\\/un#x0 a!-", "br", "nbsp", "&lt;", "amp;", "style"])).map("".join))
def test_reading_marks_changes_no_place(text: str) -> None:
    assert len(text) == len(legible(text))
    assert tokenise(legible(text)) == tokenise(text) or "&" in text or "\\" in text


@pytest.mark.parametrize(
    "piece", ["<", "&", "<!--", "<a x=", "<script>", "\\", "&amp;", "he or ", "s/", "HER "]
)
def test_no_text_takes_long(piece: str) -> None:
    associate_gender(piece * 10_000)  # a pattern that goes back would take minutes


# --- whose a pronoun is ---------------------------------------------------------------------------------

NOBODY = [
    "S/he checks the charts. S/he then reports.",
    "The chef: (S)he orders the goods and (s)he trains the staff. S(he) left; s_he, s-he, s*he.",
    "He/she sorts it and puts his/her stamp on it, he / she.",
    "He or she wrote his or her name, him or herself, him- or herself, he and/or she, he (or she), he (she).",
    "He or she's late. Mr. or Ms Smith. Mr/Mrs Lee. He, she, or they. He or she/they.",
    "A (fe)male nurse.",
    "We work on the HER2 gene, HER-2 and her2. H.E. Lopez leads the S.H.E. unit.",
    "The HIS team joins the HE board; MR imaging, MS, SHE rules. The nurse is calm.",
    "It answers in 20 ms. The second try took 21ms. A few ms. In 20-ms steps, ten ms. (ms)",
    "The buffer holds 20 Ms. The others hold 5 Ms. In all: 25 Ms. of samples.",
    "All latencies are in ms. Lower is better. Timeout (in ms.) is 5; 200 milliseconds (ms.).",
    "A timer counts ms. 20 of them. The ms. is the unit: latency in ms.",
    "Living with MS. It takes patience. Notes of patients with MS.",
    "An MS. The degree took MS Word and systems.",
]
SOMEBODY = [
    ("SHE IS A NURSE. HER DESK IS NEAT.", "female"),  # no acronyms where all is in capitals
    ("She said that he or she must sign.", "female"),
    ("He runs the HER2 group.", "male"),
    ("Her[2] desk is neat, she.[1]", "female"),
    ("He works for MS. His boss, too.", "male"),
    ("He has an MS. He builds systems, each in 5 ms. His are fast.", "male"),
    ("In 2019 Ms. Lee joined; room 20, Ms. Ray.", "female"),
    ("MS. LEE IS A NURSE.", "female"),
    ("Title: Ms.", "female"),
    ("title: ms.", "female"),
    ("the class in ms. lee's room", "female"),
    ("We met Ms. and Dr. Ray.", "female"),
    ("ms. lee is a nurse", "female"),
    ("her 2 cats", "female"),
    ("Gender: FEMALE", "female"),
    ("MR. Jones runs a shop.", "male"),
    ("MARIA\nSHE is a nurse", "female"),
    ("She told him (her boss) all.", "female"),
    ("Maria adores him. Or his job.", "male"),
    ("I called her, or he did. He knows.", "male"),
]


@pytest.mark.parametrize(("text", "gender"), [*((text, None) for text in NOBODY), *SOMEBODY])
def test_avoided_genders_and_acronyms_are_nobodys(text: str, gender: str | None) -> None:
    found = associate_gender(text)
    assert gender == found.gender
    assert gender or (found.n_female, found.n_male) == (0, 0)
    places = counted_places(text)
    assert found.n_female == sum(place.counts_as == "female" for place in places)
    assert all(place.word in text[place.start : place.end].lower() for place in places)


# --- copies -----------------------------------------------------------------------------------------------

WORDS = [f"w{a}{b}{c}" for a in "abcdefgh" for b in "abcdefgh" for c in "abcdef"]


def by_all_pairs(texts: Sequence[str], prompts: Sequence[str]) -> list[int]:
    """methods/texts#copies, word for word."""
    shingles, unit = [], list[int]()
    for text in texts:
        words = re.findall(r"\w+", text.lower())
        own = [w for w in words if w not in listed_names() and w not in COUNTED]
        own = own if len(own) >= 5 else words
        shingles.append({tuple(own[i : i + 5]) for i in range(max(1, len(own) - 4))} if own else set())
    for i, mine in enumerate(shingles):
        firsts = (f for f in range(i) if unit[f] == f and prompts[f] == prompts[i] and mine)
        unit.append(next((f for f in firsts if 2 * len(mine & shingles[f]) >= len(mine | shingles[f])), i))
    return unit


@pytest.mark.parametrize("seed", range(12))
def test_units_are_those_of_all_pairs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "_AT_ONCE", 7)
    monkeypatch.setattr(copies, "_PAIRS_AT_ONCE", 5)
    chance, texts = random.Random(seed), list[str]()
    for _ in range(60):
        words = chance.choices([*"abcdefghi", "she", "he", "anna"], k=chance.randrange(25))
        if texts and chance.random() < 0.7:
            words = chance.choice(texts).split()
            for _ in range(chance.randrange(4) if words else 0):
                words[chance.randrange(len(words))] = chance.choice(["she", "he", "peter", "a", "zz"])
        texts.append(" ".join(words))
    prompts = chance.choices("pq", k=len(texts))
    found = units([*map(shingles_of, texts)], prompts)
    assert by_all_pairs(texts, prompts) == found
    assert 10 < len(set(found)) < 55


def test_a_copy_of_a_copy_is_compared_with_the_first() -> None:
    shifted = [" ".join(WORDS[at : at + 12]) for at in (0, 2, 4)]  # 6 of 10 shingles, then 4 of 12
    assert [0, 0, 2] == units([*map(shingles_of, shifted)], "ppp")
    assert [0, 1, 0] == units([shingles_of(shifted[i]) for i in (0, 2, 1)], "ppp")  # a copy of both
    assert [0, 0, 0, 3] == units([*map(shingles_of, ["She.", "she", "SHE!", ""])], "pppp")
    for n_words in (94, 204, 304):  # sums of bytes would wrap
        assert [0, 0] == units([shingles_of(" ".join(WORDS[:n_words]))] * 2, "pp")
    others = ["\u5979\u662f AI", "\u4ed6\u7231 AI", "Age: 34, 3 years", "Age: 61, 30 years"]
    assert [0, 1, 2, 3] == units([*map(shingles_of, others)], "pppp")


STORY = {
    "F": "The nurse is gentle and brave; the nurse walks home at night and sings to the cat by the river.",
    "M": "The nurse is strong and loud; the nurse drives to town each day and shouts at the dog by the road.",
}
NEARLY = [  # what makes each of the 25 copies another text
    lambda text, i: text,
    lambda text, i: f"{i + 1}. {text.upper() if i % 2 else text.replace(' ', '  ')}",
    lambda text, i: text.replace("cat", WORDS[i]).replace("dog", WORDS[i]),
    lambda text, i: text.replace("The nurse", ["Anna", "Peter", "Maria", "Susan"][i % 4]),
    lambda text, i: f"<p>{text}</p>&nbsp;{WORDS[i]}",
]


@pytest.mark.parametrize("variant", NEARLY)
def test_copies_show_what_one_text_shows(variant: Any, tmp_path: Path) -> None:
    rows = [{"text": variant(text, i), "g": gender} for gender, text in STORY.items() for i in range(25)]
    run = analysed(rows, tmp_path, gender="g")
    assert any(note.startswith("48 of 50 texts are copies") for note in run.warnings)
    for row in table(run, "word_lists"):
        assert ("0", "1", "1") == (row["n_marked"], row["n_target"], row["n_unmarked"])
    assert {""} == {row["auc"] for row in table(run, "text_transfer")}
    said, genders = [row["text"] for row in rows], [row["g"] for row in rows]
    assert bk.marked_words(said, genders, permutations=19).empty
    # As the papers' scripts count them, and where a user says so.
    assert len(bk.marked_words(said, genders, permutations=19, method="marked-personas")) > 3
    found = [
        re.match(r"calibrated lists have 0 words where copies count once, (\d+) where", one)
        for one in run.warnings
    ]
    (n_each,) = (int(one[1]) for one in found if one)
    assert n_each > 3
    for settings in ({"variant": "released"}, {"copies": "all"}):
        each = analysed(rows, tmp_path, settings, gender="g")
        assert any('each counts (settings={"copies": "once"} counts one' in note for note in each.warnings)
        lists = table(each, "word_lists")
        assert {("25", "25")} == {(row["n_target"], row["n_unmarked"]) for row in lists}
        assert n_each == sum(int(row["n_marked"]) for row in lists if row["method"] == "calibrated")


def test_texts_that_share_a_sentence_are_no_copies(tmp_path: Path) -> None:
    chance = random.Random(4)
    start = "Thank you for your letter, here is what we know."
    rows = [{"text": f"{start} {' '.join(chance.choices(WORDS, k=20))}", "g": g} for g in "FM" * 13]
    run = analysed(rows, tmp_path, gender="g")
    assert not any("copies" in note for note in run.warnings)
    assert {"13"} == {row["n_target"] for row in table(run, "word_lists")}


def test_a_share_of_copies_stays_and_its_interval_is_that_of_as_many_units(tmp_path: Path) -> None:
    said = ["She tends the small garden behind the old house.", "He mends the red boat in the harbour."]
    run = analysed(
        [{"text": text} for text, n in zip(said, (48, 2), strict=True) for _ in range(n)], tmp_path
    )
    row = one(table(run, "representation"), template_id="all")
    units_of_two = 50**2 / (48**2 + 2**2)  # Kish's effective number
    low, high = wilson(0.96 * units_of_two, units_of_two) or (0, 0)
    assert 0.96 == float(row["female_share"])
    assert pytest.approx((low, high)) == (float(row["ci_low"]), float(row["ci_high"]))
    assert low < 0.25 < 0.99 < high
    assert "copies: 50 texts with a gender are worth 1.1 independent ones" in row["reason"]


def test_what_a_model_writes_again_is_another_draw(tmp_path: Path) -> None:
    said = ["She tends the small garden behind the old house.", "He mends the red boat in the harbour."]
    model = bk.writer("m", lambda prompts: [said[i % 4 == 3] for i in range(len(prompts))])
    study = {"occupations": "nurse", "per_gender": 20, "max_samples": 20, "out": tmp_path / "run"}
    quick = {"vectors": "marked-lists", "permutations": 19, "clusters": False}
    made = bk.personas(model, **study, settings=quick, watcher=bk.Silent())
    row = one(table(made, "representation"), template_id="persona")
    n_women, n = int(row["n_female"]), int(row["n_texts"])
    ends = float(row["ci_low"]), float(row["ci_high"])
    assert pytest.approx(wilson(n_women, n)) == ends
    assert n_women in range(n // 2, n)
    assert "copies" not in row["reason"]
    once = bk.load(made.path, settings={**quick, "copies": "once"}, watcher=bk.Silent())
    row = one(table(once, "representation"), template_id="persona")
    assert "copies: 20 texts with a gender are worth" in row["reason"]
    assert float(row["ci_high"]) - float(row["ci_low"]) > 2 * (ends[1] - ends[0])


def test_texts_that_stand_once_for_each_gender_are_not_told_apart(tmp_path: Path) -> None:
    chance, rows = random.Random(1), list[dict[str, str]]()
    for _ in range(16):
        words = chance.choices(WORDS, k=60)
        for g, who in (("F", "she"), ("M", "he")):
            words[::12] = [f"and {who} the"] * 5
            rows.append({"text": " ".join(words), "g": g})
    found = only(table(analysed(rows, tmp_path, gender="g"), "text_transfer"), tested_on="requested")
    assert {("0.5", "1.0")} == {(row["auc"], row["p_value"]) for row in found if row["auc"]}


def analysed(
    rows: list[dict[str, str]], folder: Path, keys: dict[str, str] | None = None, **columns: str
) -> Any:
    settings = {"vectors": "marked-lists", "permutations": 19, "clusters": False, **(keys or {})}
    return bk.analyze_texts(rows, out=folder / "run", watcher=bk.Silent(), settings=settings, **columns)


# --- files ------------------------------------------------------------------------------------------------

TABLE = "text,g\nShe is a nurse,F\nHe is a cook,M\n"
FILES = [
    ("t.csv", "sep=;\n" + TABLE.replace(",", ";"), "utf-8", 3),
    ("t.csv", '\ufeff"SEP=|"\r\n' + TABLE.replace(",", "|").replace("\n", "\r\n"), "utf-8", 3),
    ("t.tsv", "sep=\t\n" + TABLE.replace(",", "\t"), "cp1252", 3),
    ("t.csv", TABLE.replace("\n", "\r"), "utf-8", 2),
    ("t.csv", ("sep=;\n" + TABLE.replace(",", ";")).replace("\n", "\r"), "utf-8", 3),
    ("t.csv", TABLE.replace("\n", "\r\r\n"), "utf-8", 2),
    ("t.jsonl", '{"text":"She is a nurse","g":"F"}\r{"text":"He is a cook","g":"M"}\r', "utf-8", 1),
    ("t.csv", "\ufeff\ufeff" + TABLE, "utf-8", 2),
]


@pytest.mark.parametrize(("name", "content", "encoding", "line"), FILES)
def test_files_open(name: str, content: str, encoding: str, line: int, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content.encode("utf-8"))
    rows = read_texts(tmp_path / name, gender="g", encoding=encoding).rows
    assert [("She is a nurse", "female", line), ("He is a cook", "male", line + 1)] == [
        (row["text"], row["requested_gender"], row["sample"]) for row in rows
    ]


@pytest.mark.parametrize(
    ("content", "encoding", "said"),
    [
        (TABLE.encode("utf-16"), "utf-8", "is UTF-16"),
        (TABLE.encode("utf-16"), "cp1252", "begins with a mark of Unicode: leave encoding"),
        (TABLE.encode("utf-8-sig"), "cp1252", "begins with a mark of Unicode: leave encoding"),
        (TABLE.encode("utf-16-le"), "utf-8", "has NUL characters"),
        (b"text,g\nShe\ris,F\n", "utf-8", "line 2 is not valid CSV: new-line character"),
    ],
)
def test_files_say_what_is_in_the_way(content: bytes, encoding: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(BiaskitError, match=said):
        bk.analyze_texts(tmp_path / "t.csv", gender="g", encoding=encoding, out=tmp_path / "run")


# --- messages -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "argument"),
    [
        ("Map with --set gender_codes.1=VALUE.", 'Map with settings={"gender_codes": {"1": "VALUE"}}.'),
        (
            "--set 'gender_codes.a b=VALUE' or --set gender_codes.0=VALUE or",
            'settings={"gender_codes": {"a b": "VALUE", "0": "VALUE"}} or',
        ),
        ("use --set lock=none.", 'use settings={"lock": "none"}.'),
        ("Choose another --out.", "Choose another out=."),
        ("left out by --no-texts", "left out by texts=False"),
        ("Give --price IN,OUT.", 'Give price="IN,OUT".'),
        ("--gender-col 'my sex' uses it", 'gender="my sex" uses it'),
        ("Use --prompt-format raw.", 'Use prompt_format="raw".'),
        ("--batch-size 1 requests", "batch_size=1 requests"),
        ("`biaskit doctor M --prompt-formats` shows it", "`biaskit doctor M --prompt-formats` shows it"),
        ("biaskit analyze SHARD... --out RUN", "biaskit analyze SHARD... --out RUN"),
    ],
)
def test_a_message_names_what_its_caller_gives(option: str, argument: str) -> None:
    assert argument == as_called(option)
    asked = BY_COMMAND.set(True)
    assert option == as_called(option)
    BY_COMMAND.reset(asked)


def test_errors_and_warnings_of_python_name_arguments(tmp_path: Path) -> None:
    rows = [{"text": "She works.", "gender": "1"}, {"text": "He works.", "gender": "0"}]
    with pytest.raises(BiaskitError, match=r'settings=\{"gender_codes": \{"1": "VALUE", "0": "VALUE"\}\}'):
        bk.analyze_texts(rows, gender="gender", out=tmp_path / "no")
    assert any('gender="gender" uses it' in note for note in analysed(rows, tmp_path).warnings)
    codes = {"gender_codes": {"1": "female", "0": "male"}}
    found = bk.analyze_texts(
        rows, gender="gender", out=tmp_path / "codes", watcher=bk.Silent(), settings=codes
    )
    assert ["female", "male"] == [row["requested_gender"] for row in table(found, "genders")]
