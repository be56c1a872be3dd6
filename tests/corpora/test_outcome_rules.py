"""Rules as data: what a file of them may hold, what patterns may cost, what they read."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from biaskit.corpora.outcome_rules import (
    compile_pattern,
    load_outcome_rules,
    plain,
    sentences,
    word_alternatives,
)
from biaskit.errors import CorpusError
from biaskit.foreign import HIDDEN
from biaskit.models.matching import starts_new_word

Write = Callable[[str], Path]

RULE = '[[rule]]\nid = "{}"\noutcome = "{}"\npattern = "{}"\nreason = "why"\n'


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(text: str) -> Path:
        path = tmp_path / "rules.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return written


def load(path: Path, **more: object) -> object:
    return load_outcome_rules(path, outcomes=("yes", "no"), readings=("all",), **more)  # type: ignore[arg-type]


# --- files -----------------------------------------------------------------------------------------


def test_the_first_rule_that_fires_decides(write: Write) -> None:
    rules = load_outcome_rules(
        write(RULE.format("one", "no", "b") + RULE.format("two", "yes", "")),
        outcomes=("yes", "no"),
        readings=("all",),
    )
    decided = [rules.first({"all": (text,)}) for text in ("abc", "xyz")]
    assert [("one", "no"), ("two", "yes")] == [(rule.id, rule.outcome) for rule, _ in filter(None, decided)]


def test_rules_that_read_the_same_are_tried_piece_by_piece(write: Write) -> None:
    rules = load_outcome_rules(
        write(RULE.format("one", "no", "b") + RULE.format("two", "yes", "a")),
        outcomes=("yes", "no"),
        readings=("all",),
    )
    found = rules.first({"all": ("a", "b")})  # the first piece decides, though the first rule fires later
    assert found is not None
    assert found[0].id == "two"
    assert rules.first({"all": ("c",)}) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (RULE.format("a", "yes", "x") * 2, "rule 2: the id 'a' stands there twice. Rename one."),
        (RULE.format("a", "maybe", "x"), "unknown outcome 'maybe'."),
        (RULE.format("a", "yes", "("), "is no regular expression: "),
        (RULE.format("a", "yes", "x+"), "holds '+', which may be slow on some text."),
        (RULE.format("a", "yes", "x*"), "holds '*'"),
        (RULE.format("a", "yes", "x{2,90}"), "holds '{'"),
        (RULE.format("a", "yes", "(?P<b>x)"), "holds '(?'"),
        (RULE.format("a", "yes", "(?<=x)y"), "holds '(?'"),
        (RULE.format("a", "yes", r"(x)\\1"), r"holds \1, which no pattern may."),
        (RULE.format("a", "yes", r"\\w"), r"holds \w, which no pattern may."),
        (RULE.format("a", "yes", "a..b..c..d"), "has over 2 gaps. Make two rules of it."),
        (RULE.format("a", "yes", "x") + 'reads = "none"\n', "unknown reads 'none'"),
        (RULE.format("a", "yes", "x").replace('"why"', '""'), "reason is missing or empty."),
        ("", "holds no outcome rules. Write at least one rule."),
    ],
)
def test_a_wrong_file_of_rules_says_what_where_and_what_to_do(write: Write, text: str, said: str) -> None:
    with pytest.raises(CorpusError) as error:
        load(write(text))
    assert said in str(error.value)
    assert "rules.toml" in str(error.value)
    assert "\n" not in str(error.value)


def test_texts_beside_the_rules_must_be_there(write: Write) -> None:
    with pytest.raises(CorpusError, match="words is missing or empty"):
        load(write(RULE.format("a", "yes", "x")), top=("words",))


def test_a_rule_that_names_a_group_must_hold_its_word(write: Write) -> None:
    with pytest.raises(CorpusError, match="a rule for yes needs @a or %a"):
        load(write(RULE.format("a", "yes", "x")), naming="yes")


# --- patterns --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("a..b", "a, then, b", True),
        ("a..b", "a. b", False),  # a gap ends with its sentence
        ("a..b", "a\nb", False),
        ("a..b", "a @1 b", False),  # and holds no listed word
        ("a..b", "a" + 60 * "x" + "b", True),
        ("a..b", "a" + 61 * "x" + "b", False),
        ("@a or @b", "@0 or @1", True),
        ("@a or @b", "@0 or @0", False),
        ("@a or @b", "@1 or @12", True),
        ("%a", "@0", False),
        ("^@w$", "word", True),
        ("^@w$", "two words", False),
        (r"x\.\.", "x..", True),  # escaped dots are dots
        (r"x\.\.", "xab", False),
        ("[.!]@a", "!@3", True),
    ],
)
def test_the_notation_of_patterns(pattern: str, text: str, found: bool) -> None:
    assert found == bool(compile_pattern(pattern, "here").search(text))


# --- what patterns read -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (" **Female** ", "Female"),
        ("\u201cFemale\u201d", "Female"),
        ("I can\u2019t", "I can't"),
        ("'Male'", "Male"),
        ("a\u200bb\x00c\u202e", "abc"),
        ("a \t b", "a b"),
        ("a \n\n \r\n b", "a\nb"),
        ("<b>Male</b>", "Male"),
        ("<start_of_image>x", "x"),
        ("1 < 2", "1 < 2"),
        (" \u200b\n", ""),
        (500 * "\u200b" + "x", "x"),  # hidden characters take no room
    ],
)
def test_marks_and_hidden_characters_are_not_read(text: str, read: str) -> None:
    assert read == plain(text, 100)


@given(st.text(), st.integers(1, 50))
def test_any_text_becomes_plain_and_stays_so(text: str, longest: int) -> None:
    read = plain(text, longest)
    assert len(read) <= longest
    assert read == read.strip()
    assert not any(ord(c) < 32 and c != "\n" for c in read)
    assert "".join(sentences(read)).replace(" ", "") in read.replace(" ", "").replace("\n", "") or not read


PIECES = [
    "a",
    "9",
    "_",
    "'",
    "\u2019",
    "*",
    '"',
    "<b>",
    "</p >",
    "<br\t/>",
    " ",
    "\t",
    "\n",
    "\r",
    "\xa0",
    "\u2028",
    "\xab",
    "\x1c",
]


@given(st.lists(st.sampled_from(PIECES)).map("".join) | st.text())
@example("*'a' 'b*'_'c'")
def test_plain_is_what_its_definition_says(text: str) -> None:
    """Mark by mark and space by space, as it was written before it was made quick."""
    kept = "".join(c for c in text.lstrip() if c in "\n\t" or unicodedata.category(c) not in HIDDEN)
    for apostrophe in "\u2018\u2019\u02bc":
        kept = kept.replace(apostrophe, "'")
    kept = re.sub(r"</?(?:b|p|br) ?/?>", " ", kept.replace("\t", " "))
    kept = re.sub(r"[*_`#>\"\u201c\u201d\u00ab\u00bb]|(?<![^\W_])'|'(?![^\W_])", "", kept)
    assert plain(text, 10_000) == re.sub(r" ?\n[\n ]*", "\n", re.sub(r"[^\S\n]+", " ", kept)).strip()


@given(st.sampled_from(["He", "Non-binary", "\u2640"]), st.text(max_size=3))
@example("He", "\ufffd")
@example("He", "'s")
@example("He", "_")
@example("He", "\u0301")
def test_a_listed_word_ends_as_for_draws(word: str, after: str) -> None:
    found = re.compile(word_alternatives(["He", "Non-binary", "\u2640"])).match(word + after)
    assert bool(found and found[0] == word) == starts_new_word(after)


def test_the_longest_listed_word_is_found() -> None:
    found = re.compile(word_alternatives(["Non", "Non-binary", "binary"])).findall(
        "Non-binary, Non, unbinary"
    )
    assert ["Non-binary", "Non"] == found
