"""What is shipped can be read and is untouched; what is wrong with a user's file is said in one line."""

from __future__ import annotations

import csv
import hashlib
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from biaskit.common.files import data_dir
from biaskit.corpora import sources
from biaskit.corpora.loaders import (
    Templates,
    load_debiasing_prompts,
    load_dialogue,
    load_items,
    load_target_word_sets,
    load_templates,
    render_forms,
)
from biaskit.corpora.sources import check_label, list_corpora, load_corpus
from biaskit.errors import CorpusError
from biaskit.records import DebiasingPrompt, Dialogue, Item, TargetWordSet, Template, Turn

Write = Callable[[str, str | bytes], str]

SHIPPED = [corpus.name for corpus in list_corpora()]
TEMPLATES = [path.parent.name for path in sorted(data_dir("corpora").glob("*/templates.toml"))]


@pytest.fixture
def copy_of_corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the shipped corpora, which the module takes for the real ones."""
    copy = tmp_path / "corpora"
    for name in ("gasp", "occugender"):
        shutil.copytree(data_dir("corpora") / name, copy / name)
    monkeypatch.setattr(sources, "data_dir", lambda _name: copy)
    return copy


def message_of(load: Callable[[str], object], source: str) -> str:
    with pytest.raises(CorpusError) as caught:
        load(source)
    return str(caught.value)


# --- what is shipped -----------------------------------------------------------------------------


def test_every_shipped_corpus_is_listed_and_keeps_its_digests() -> None:
    listed = list_corpora()
    assert {path.parent.name for path in data_dir("corpora").glob("*/corpus.toml")} == set(SHIPPED)
    assert sorted(SHIPPED) == [corpus.name for corpus in listed]


@pytest.mark.parametrize("name", SHIPPED)
def test_a_corpus_names_its_source_licence_paper_and_files(name: str) -> None:
    corpus, folder = load_corpus(name), data_dir("corpora") / name
    assert name == corpus.name
    assert all((corpus.title, corpus.source, corpus.licence, corpus.notes, corpus.year > 1900))
    assert corpus.bibtex.startswith("@")
    assert corpus.bibtex.count("{") == corpus.bibtex.count("}")
    there = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    assert set(there) == {file.path for file in corpus.files} | {"corpus.toml"}
    for path in (path for path in there.values() if path.suffix != ".gz"):
        content = path.read_bytes()
        assert content.isascii() or path.name in ("pairs.csv", "cvs.csv", "jobs.csv", "language.toml"), path
        assert b"\r" not in content, path


@pytest.mark.parametrize(
    ("female", "male", "reference"),
    [
        (20, 20, "corpus:occugender/jobs.csv"),
        (13, 20, "corpus:fields-of-study/fields.csv"),
        (31, 32, "corpus:gasp/occupations.csv"),
    ],
)
def test_shipped_items_stand_on_the_side_of_their_share(female: int, male: int, reference: str) -> None:
    items = load_items(reference)
    sides = ["female-dominated" if (i.workforce_share or 0) >= 0.5 else "male-dominated" for i in items]
    assert sides == [item.group for item in items]
    assert (female, male) == (sides.count("female-dominated"), sides.count("male-dominated"))


def test_the_workforce_shares_of_gasp_carry_their_year() -> None:
    year = {item.name: item.year for item in load_items("corpus:gasp/occupations.csv")}
    others = {name: value for name, value in year.items() if value != 2024}
    expected = {"clerk": 2015, "mechanic": 2015, "manager": 2015, "paralegal": 2015}
    expected |= {"worker": 2016, "specialist": 2016, "officer": 2016, "surgeon": 2023, "veterinarian": 2025}
    assert expected == others


@pytest.mark.parametrize("corpus", TEMPLATES)
def test_no_shipped_prompt_ends_in_white_space_and_every_question_holds_the_slot(corpus: str) -> None:
    loaded = load_templates(f"corpus:{corpus}/templates.toml")
    for template in loaded.templates:
        assert loaded.slot in template.question
        for text in (template.question, template.opening):
            assert text.strip() == text


def test_our_dialogue_has_three_turns_and_names_no_gender_and_no_job() -> None:
    dialogue = load_dialogue("corpus:mattern/dialogue.toml")
    assert 3 == len(dialogue.turns)
    texts = [
        dialogue.opening_line,
        *(text for turn in dialogue.turns for text in (turn.question, turn.answer)),
    ]
    jobs = {
        item.name
        for name in ("occugender/jobs", "gasp/occupations")
        for item in load_items(f"corpus:{name}.csv")
    }
    genders = {
        target_word.text.lower()
        for target_word_set in load_target_word_sets("corpus:target-words/sets.toml").values()
        for target_word in render_forms(target_word_set)
    }
    words = " " + " ".join(re.sub(r"[^a-z -]", " ", text.lower()) for text in texts) + " "
    assert [] == [word for word in sorted(jobs | genders | {"his", "hers", "their"}) if f" {word} " in words]


# --- digests -------------------------------------------------------------------------------------


def test_a_changed_file_is_named_with_the_digest_found_and_expected(copy_of_corpora: Path) -> None:
    path = copy_of_corpora / "occugender" / "jobs.csv"
    expected = hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_bytes(path.read_bytes().replace(b"0.982", b"0.981"))
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    message = (
        f"corpus:occugender/jobs.csv has changed: its sha256 is {found}, expected {expected}."
        " Restore it, or give the path of your own copy."
    )
    assert message == message_of(load_corpus, "occugender")
    assert message == message_of(load_items, "corpus:occugender/jobs.csv")
    assert message == message_of(lambda _: list_corpora(), "")


def test_a_changed_file_does_not_stop_the_others_of_its_corpus(copy_of_corpora: Path) -> None:
    (copy_of_corpora / "occugender" / "jobs.csv").write_bytes(b"")
    assert 6 == len(load_debiasing_prompts("corpus:occugender/debiasing-prompts.toml"))


def test_line_ends_converted_by_a_tool_are_noticed(copy_of_corpora: Path) -> None:
    path = copy_of_corpora / "gasp" / "occupations.csv"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert "corpus:gasp/occupations.csv has changed" in message_of(load_corpus, "gasp")


def test_a_shipped_file_that_is_gone_is_named(copy_of_corpora: Path) -> None:
    (copy_of_corpora / "gasp" / "occupations.csv").unlink()
    assert "There is no file corpus:gasp/occupations.csv. Check the path." == message_of(load_corpus, "gasp")


@pytest.mark.parametrize(
    ("message", "old", "new"),
    [
        ("corpus:gasp/corpus.toml: year is missing", "year = 2025\n", ""),
        ("corpus:gasp/corpus.toml: title is missing or empty. Write one.", "title = ", "# "),
        ("corpus:gasp/corpus.toml: unknown key 'license'. Did you mean", "licence = ", "license = "),
        ("corpus:gasp/corpus.toml: [[file]] 1: unknown key 'sha1'.", "sha256", "sha1"),
    ],
)
def test_a_wrong_corpus_toml_is_an_error_of_one_line(
    copy_of_corpora: Path, message: str, old: str, new: str
) -> None:
    path = copy_of_corpora / "gasp" / "corpus.toml"
    path.write_text(path.read_text().replace(old, new))
    assert message in message_of(load_corpus, "gasp")


# --- references and paths ------------------------------------------------------------------------


@pytest.mark.usefixtures("write")
@pytest.mark.parametrize(
    ("message", "load", "source"),
    [
        ("There is no corpus 'ocugender'. Did you mean", load_items, "corpus:ocugender/jobs.csv"),
        ("There is no corpus '..'. Shipped: ", load_items, "corpus:../jobs.csv"),
        ("There is no file 'job.csv' in corpus:occugender.", load_items, "corpus:occugender/job.csv"),
        ("There is no file '' in corpus:occugender. It has jobs.csv", load_items, "corpus:occugender"),
        ("corpus:occugender/jobs.csv has items, not", load_templates, "corpus:occugender/jobs.csv"),
        ("There is no file occugender/jobs.csv. Did you mean", load_items, "occugender/jobs.csv"),
        ("There is no file mine.csv. Check the path.", load_items, "mine.csv"),
        ("mine.ods: a file of items ends in .csv or .txt or .toml or", load_items, "mine.ods"),
        ("mine.csv: a file of dialogue ends in .toml, not in '.csv'.", load_dialogue, "mine.csv"),
        ("mine: a file of target words ends in .toml, not in ''.", load_target_word_sets, "mine"),
    ],
)
def test_a_source_that_is_not_there_says_what_is(
    message: str, load: Callable[[str], object], source: str
) -> None:
    found = message_of(load, source)
    assert message == found[: len(message)]
    assert "\n" not in found


def test_the_prefix_alone_tells_a_shipped_file_from_a_path(write: Write) -> None:
    Path("occugender").mkdir()
    write("occugender/jobs.csv", "item,group\nowl keeper,mine\n")
    assert (Item("owl keeper", "mine"),) == load_items("occugender/jobs.csv")
    assert 40 == len(load_items("corpus:occugender/jobs.csv"))


@pytest.mark.usefixtures("write")
def test_a_directory_cannot_be_read_as_a_file() -> None:
    Path("jobs.csv").mkdir()
    assert "jobs.csv cannot be read: " in message_of(load_items, "jobs.csv")


@pytest.mark.usefixtures("write")
def test_a_path_with_control_characters_stays_one_escaped_line() -> None:
    assert "There is no file 'a\\nb.csv'. Check the path." == message_of(load_items, "a\nb.csv")


# --- files that are right ------------------------------------------------------------------------


def test_a_csv_of_items_may_hold_other_columns_empty_cells_and_blank_lines(write: Write) -> None:
    text = (
        "item,wage,group,share,article,year\nurologist,5,mine,0.1,a,2021\n\n"
        '"x, y",,mine,,,\nhour nurse,,other,1,an,\n'
    )
    expected = (
        Item("urologist", "mine", 0.1, "a", 2021),
        Item("x, y", "mine"),
        Item("hour nurse", "other", 1.0, "an"),
    )
    assert expected == load_items(write("jobs.csv", text))


def test_items_of_a_text_file_are_one_group(write: Write) -> None:
    assert (Item("nurse", "all"), Item("pilot", "all")) == load_items(write("jobs.txt", "nurse\r\n\npilot"))


def test_items_can_be_written_in_toml(write: Write) -> None:
    text = (
        '[[item]]\nitem = "nurse"\ngroup = "a"\nshare = 0.9\nyear = 2020\n'
        '[[item]]\nitem = "pilot"\ngroup = "b"\n'
    )
    assert (Item("nurse", "a", 0.9, year=2020), Item("pilot", "b")) == load_items(write("jobs.toml", text))


def test_names_that_other_readers_take_for_missing_are_names(write: Write) -> None:
    names = ["NA", "None", "null", "nan", "1", "true"]
    text = "item,group\n" + "".join(f"{name},N/A\n" for name in names)
    assert [Item(name, "N/A") for name in names] == list(load_items(write("jobs.csv", text)))


def test_a_byte_order_mark_and_a_capital_suffix_are_no_trouble(write: Write) -> None:
    assert (Item("nurse", "a"),) == load_items(write("JOBS.CSV", b"\xef\xbb\xbfitem,group\r\nnurse,a\r\n"))
    assert (Item("nurse", "all"),) == load_items(write("jobs.txt", b"\xef\xbb\xbfnurse\n"))
    text = b'\xef\xbb\xbf[[item]]\r\nitem = "nurse"\r\ngroup = "a"\r\n'
    assert (Item("nurse", "a"),) == load_items(write("jobs.toml", text))


def test_texts_beyond_ascii_and_beyond_the_field_limit_of_csv_are_read_whole(write: Write) -> None:
    limit = csv.field_size_limit()
    text = "é\u2028" * 200_000 + "."
    assert (DebiasingPrompt(1, text),) == load_debiasing_prompts(write("long.csv", f"text\n{text}\n"))
    assert (DebiasingPrompt(1, text),) == load_debiasing_prompts(write("long.txt", text))
    assert limit == csv.field_size_limit()


def test_templates_can_be_written_in_three_formats(write: Write) -> None:
    toml = (
        '[[template]]\nbias_type = "explicit"\nquestion = "Gender of a [JOB]?"\n'
        '[[template]]\nbias_type = "implicit"\nquestion = "Met a [JOB]?"\nopening = "Yes."\n'
    )
    expected = Templates(
        "[JOB]",
        (Template(1, "explicit", "Gender of a [JOB]?"), Template(1, "implicit", "Met a [JOB]?", "Yes.")),
    )
    assert expected == load_templates(write("t.toml", toml))
    assert expected == load_templates(write("t.txt", "Gender of a [JOB]?\nMet a [JOB]?\tYes.\n"))
    table = "question,bias_type,opening\nGender of a [JOB]?,explicit,\nMet a [JOB]?,implicit,Yes.\n"
    assert expected == load_templates(write("t.csv", table))


def test_a_template_may_name_its_slot_and_its_target_words(write: Write) -> None:
    text = (
        'slot = "[MY FIELD]"\n[[template]]\nbias_type = "implicit"\nquestion = "Who [likes] [MY FIELD]?"\n'
        'opening = "In [MY FIELD]"\ntarget_words = "mine"\n'
    )
    template = Template(1, "implicit", "Who [likes] [MY FIELD]?", "In [MY FIELD]", "mine")
    assert Templates("[MY FIELD]", (template,)) == load_templates(write("t.toml", text))


def test_debiasing_prompts_can_be_written_in_three_formats(write: Write) -> None:
    expected = (DebiasingPrompt(1, "Be fair.", "high"), DebiasingPrompt(2, "Think, twice"))
    fair = '[[debiasing_prompt]]\ntext = "Be fair."\nlevel = "high"\n'
    text = f'{fair}[[debiasing_prompt]]\ntext = "Think, twice"\n'
    assert expected == load_debiasing_prompts(write("i.toml", text))
    assert expected == load_debiasing_prompts(write("i.csv", 'text,level\nBe fair.,high\n"Think, twice",\n'))
    assert (DebiasingPrompt(1, "Be fair."),) == load_debiasing_prompts(write("i.txt", "Be fair.\n"))


def test_a_dialogue_of_ones_own_can_have_any_number_of_turns(write: Write) -> None:
    text = 'opening_line = "Hello."\n[[turn]]\nquestion = "Who?"\nanswer = "Me."\n'
    assert Dialogue("Hello.", (Turn("Who?", "Me."),)) == load_dialogue(write("d.toml", text))


def test_one_set_of_target_words_is_named_after_its_file(write: Write) -> None:
    text = 'forms = "as-listed"\n[groups]\nyoung = ["boy", "girl"]\nold = ["Boy", "woman"]\n'
    expected = TargetWordSet("ages", (("young", ("boy", "girl")), ("old", ("Boy", "woman"))), "as-listed")
    assert {"ages": expected} == load_target_word_sets(write("ages.toml", text))


def test_sets_of_one_file_may_have_different_groups(write: Write) -> None:
    text = '[sets.one.groups]\na = ["x"]\nb = ["y"]\n[sets.two.groups]\nc = ["x"]\nd = ["y"]\ne = ["z"]\n'
    sets = load_target_word_sets(write("s.toml", text))
    assert {"one": ["a", "b"], "two": ["c", "d", "e"]} == {
        n: [g for g, _ in s.groups] for n, s in sets.items()
    }


# --- forms ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "forms", "rendered"),
    [
        (("Gender neutral", "him"), "both", ["Gender neutral", "gender neutral", "Him", "him"]),
        (("He", "he", "He"), "both", ["He", "he"]),
        (("he", "SHE", "SHE"), "as-listed", ["he", "SHE"]),
    ],
)
def test_forms_are_capital_and_lower_case_or_as_listed_and_each_once(
    texts: tuple[str, ...], forms: Any, rendered: list[str]
) -> None:
    made = render_forms(TargetWordSet("x", (("a", texts), ("b", ("Non",))), forms))
    assert rendered == [form.text for form in made if form.group == "a"]


# --- files that are wrong ------------------------------------------------------------------------

HEAD = "item,group,share,article,year\n"


def template(**keys: str) -> str:
    return "[[template]]\n" + "".join(f'{key} = "{value}"\n' for key, value in keys.items())


RIGHT = template(bias_type="implicit", question="Met a [JOB]?", opening="I met a [JOB].")
SETS = load_target_word_sets
BESIDE = template(bias_type="implicit", question="Met whom?", opening="A [JOB].")
PADDED = template(bias_type="explicit", question="Gender of a [JOB]? ")
ANSWERED = template(bias_type="explicit", question="A [JOB]?", opening="Yes.")
TURN = 'opening_line = "a"\n[[turn]]\nquestion = "a"\n'
ITEM = '[[item]]\nitem = "a"\ngroup = "x"\n'


@pytest.mark.parametrize(
    ("load", "name", "content", "message"),
    [
        (load_items, "j.csv", "", "j.csv has no column 'item'; its first line is empty."),
        (load_items, "j.csv", "item,group\n", "j.csv has no items."),
        (
            load_items,
            "j.csv",
            "item,groups\nnurse,a\n",
            "j.csv has no column 'group'",
        ),
        (load_items, "j.csv", "item,group,item\nnurse,a,pilot\n", "j.csv has the column 'item' twice."),
        (load_items, "j.csv", "item,group\nnurse,a\nx, y,a\n", "j.csv, line 3: 3 fields"),
        (load_items, "j.csv", 'item,group\n"nurse,a\npilot,a\n', "j.csv, line 2 is not valid CSV"),
        (
            load_items,
            "j.csv",
            "item,group\nnurse,a\npilot,b\nnurse,b\n",
            "j.csv, line 4: item 'nurse'",
        ),
        (load_items, "j.txt", "nurse\nNurse\n", "j.txt, line 2: item 'Nurse' differs only in case"),
        (load_items, "j.csv", "item,group\n,a\n", "j.csv, line 2: item is missing"),
        (load_items, "j.csv", "item,group\n=1+1,a\n", "j.csv, line 2: item '=1+1' begins with '='"),
        (load_items, "j.csv", 'item,group\n"a\nb",a\n', "j.csv, line 2: item 'a\\nb' has a line break."),
        (load_items, "j.csv", f"{HEAD}nurse,a,98.2,,\n", "j.csv, line 2: share '98.2' is not a number"),
        (load_items, "j.csv", f"{HEAD}nurse,a,nan,,\n", "j.csv, line 2: share 'nan' is not a number"),
        (load_items, "j.toml", f"{ITEM}share = inf\n", "j.toml, item 1: share inf is"),
        (load_items, "j.csv", f"{HEAD}nurse,a,,the,\n", "j.csv, line 2: unknown article 'the'"),
        (load_items, "j.csv", f"{HEAD}nurse,a,,,21\n", "j.csv, line 2: year '21'"),
        (load_items, "j.toml", f"{ITEM}shar = 0.5\n", "j.toml, item 1: unknown key"),
        (load_items, "j.toml", 'items = ["a"]\n', "j.toml: unknown key 'items'. Did you mean 'item'?"),
        (load_items, "j.toml", 'item = ["a"]\n', "j.toml: write each item as a table"),
        (load_items, "j.toml", "[[item]]\nitem = nurse\n", "j.toml is not valid TOML"),
        (
            load_items,
            "j.csv",
            b"item,group\ncaf\xe9,a\n",
            "j.csv, line 2 is not UTF-8",
        ),
        (load_templates, "t.toml", 'slot = "[JOB]"\n', "t.toml has no templates."),
        (load_templates, "t.toml", RIGHT + BESIDE, "t.toml, template 2 (implicit 2): the question"),
        (
            load_templates,
            "t.txt",
            "Met a [JOB]?\tI met two [JOBS].\n",
            "t.txt, line 1 (implicit 1)",
        ),
        (load_templates, "t.toml", 'slot = "JOB"\n' + RIGHT, "t.toml: slot 'JOB'"),
        (load_templates, "t.toml", PADDED, "t.toml, template 1: question begins or ends with white space"),
        (
            load_templates,
            "t.csv",
            "bias_type,question\nexplct,A [JOB]?\n",
            "t.csv, line 2: unknown",
        ),
        (
            load_templates,
            "t.csv",
            "bias_type,question\nimplicit,A [JOB]?\n",
            "t.csv, line 2 (implicit 1)",
        ),
        (load_templates, "t.toml", ANSWERED, "t.toml, template 1 (explicit 1) has an opening"),
        (load_templates, "t.txt", "A \a [JOB]?\n", "t.txt, line 1: question has a control character"),
        (load_debiasing_prompts, "i.txt", "\n", "i.txt has no debiasing prompts."),
        (load_debiasing_prompts, "i.csv", "text,level\n,high\n", "i.csv, line 2: text is missing"),
        (load_dialogue, "d.toml", 'opening_line = "a"\n', "d.toml has no dialogue."),
        (load_dialogue, "d.toml", TURN, "d.toml, turn 1: answer is missing"),
        (SETS, "e.toml", "", "e.toml has no target words."),
        (
            SETS,
            "e.toml",
            '[groups]\na = ["x"]\n[sets.b]\n',
            "e.toml has [sets] beside",
        ),
        (SETS, "e.toml", '[sets.s]\nform = "both"\n', "e.toml, set 's': unknown"),
        (SETS, "e.toml", 'sets.s = ["x"]\n', "e.toml, set 's' is not a table"),
        (SETS, "e.toml", '[groups]\na = ["x"]\n', "e.toml needs at least two groups"),
        (SETS, "e.toml", '[groups]\na = ["x"]\nb = []\n', "e.toml: [groups]: 'b' is empty"),
        (SETS, "e.toml", '[groups]\na = ["x"]\nb = [5]\n', "e.toml: [groups]: b is 5"),
        (
            SETS,
            "e.toml",
            '[groups]\na = ["He"]\nb = ["he"]\n',
            "e.toml: 'He' is",
        ),
        (SETS, "e.toml", '[groups]\n"+a" = ["x"]\nb = ["y"]\n', "e.toml: group '+a' begins"),
    ],
)
def test_a_wrong_file_says_what_and_where(
    write: Write, load: Callable[[str], object], name: str, content: str | bytes, message: str
) -> None:
    found = message_of(load, write(name, content))
    assert found.startswith(message)
    assert "\n" not in found


def test_an_opening_need_not_hold_the_slot(write: Write) -> None:
    assert "It was" == load_templates(write("t.txt", "Met a [JOB]?\tIt was")).templates[0].opening


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r"])
def test_a_label_may_not_begin_with_what_a_spreadsheet_runs(first: str) -> None:
    with pytest.raises(CorpusError, match=r"The model label .* begins with .* which a spreadsheet would run"):
        check_label(f"{first}cmd", "The model label")


@pytest.mark.parametrize("label", ["", " ", " a", "a\u00a0", "a\nb", "a\u2028b"])
def test_a_label_may_not_be_empty_padded_or_of_two_lines(label: str) -> None:
    with pytest.raises(CorpusError, match=r"^The model label [^\n]*$"):
        check_label(label, "The model label")


@pytest.mark.parametrize(
    "label", ["hf:org/name", "a = b", "Ärztin", "NA", "#1", "'quoted'", "a\x1b[1mb", "a\ud800"]
)
def test_a_good_label_comes_back_as_it_is(label: str) -> None:
    assert label == check_label(label, "The model label")


@pytest.mark.parametrize("content", ["item;group;share\nnurse;a;{}\n", 'item,group,share\nnurse,a,"{}"\n'])
@pytest.mark.parametrize(
    ("share", "read"),
    [("0,982", 0.982), ("0,5", 0.5), ("1,0", 1.0), ("0.125", 0.125), ("0,1254", 0.1254), ("1", 1.0)],
)
def test_a_decimal_comma_is_read_where_it_can_be_nothing_else(
    write: Write, content: str, share: str, read: float
) -> None:
    (item,) = load_items(write("j.csv", content.format(share)))
    assert read == item.workforce_share


@pytest.mark.parametrize("content", ["item;group;share\nnurse;a;{}\n", 'item,group,share\nnurse,a,"{}"\n'])
@pytest.mark.parametrize("share", ["12,5", "12,5 %", "1,234", "1,000", "1,2,3", "1.234,5"])
def test_a_comma_that_may_part_thousands_or_percent_is_never_guessed(
    write: Write, content: str, share: str
) -> None:
    said = message_of(load_items, write("j.csv", content.format(share)))
    assert f"j.csv, line 2: share {share!r} is not a number from 0 to 1." in said


@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_list_parted_otherwise_is_read_by_its_header(write: Write, separator: str) -> None:
    lines = [["item", "group"], ["nurse, senior", "a"], ["cook", "b"]]
    found = load_items(write("j.csv", "".join(separator.join(line) + "\r\n" for line in lines)))
    assert [("nurse, senior", "a"), ("cook", "b")] == [(item.name, item.group) for item in found]


def test_a_long_foreign_value_does_not_fill_the_message(write: Write) -> None:
    message = message_of(load_items, write("j.csv", f"item,group,share\nnurse,a,{'x' * 10_000}\n"))
    assert 200 > len(message)


def test_a_list_may_be_a_sheet_of_a_workbook(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["item", "group", "share"], ["nurse", "care", 0.9], ["plumber", "craft", None]):
        book.active.append(row)
    book.active.title = "Jobs"
    path = tmp_path / "jobs.xlsx"
    book.save(path)
    items = load_items(path)
    assert [("nurse", "care", 0.9), ("plumber", "craft", None)] == [
        (item.name, item.group, item.workforce_share) for item in items
    ]
    book.create_sheet("Other").append(["item"])
    book.save(path)
    assert items == load_items(f"{path}#Jobs")
    with pytest.raises(CorpusError, match=r"has several sheets: 'Jobs', 'Other'. Name one, as in .*#Jobs\."):
        load_items(path)


def test_a_list_without_a_header_says_which_header_to_write(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("nurse,female,0.9\nplumber,male,0.1\n", "ascii")
    with pytest.raises(CorpusError, match=r"Write the header item,group"):
        load_items(path)
