"""Rules as data: what a file of them may hold, what patterns may cost, what they read."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from biaskit.common.foreign import HIDDEN
from biaskit.common.marks import legible
from biaskit.corpora.outcome_rules import (
    OutcomeRule,
    OutcomeRules,
    compile_pattern,
    plain,
    sentences,
    word_alternatives,
)
from biaskit.measures.personas.texts.outcomes import OUTCOMES as TEXT_OUTCOMES
from biaskit.measures.personas.texts.outcomes import text_rules
from biaskit.measures.probe.outcomes import OUTCOMES, answer_rules
from biaskit.models.matching import starts_new_word

SHIPPED = {
    "answers": (answer_rules, OUTCOMES, ("sentence", "answer", "beyond")),
    "texts": (text_rules, TEXT_OUTCOMES, ("start", "text", "cased")),
}


# --- shipped rules ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_rules_say_and_read_what_there_is(name: str) -> None:
    load, outcomes, readings = SHIPPED[name]
    rules = load().rules
    assert len({rule.id for rule in rules}) == len(rules)
    assert {rule.outcome for rule in rules} <= set(outcomes)
    assert {rule.reads for rule in rules} <= set(readings)
    for rule in rules:
        assert rule.outcome != "listed" or "a" in rule.compiled.groupindex, rule.id


@pytest.mark.parametrize("name", SHIPPED)
def test_no_shipped_pattern_can_run_away(name: str) -> None:
    for rule in SHIPPED[name][0]().rules:
        bare = re.sub(r"\\.|\[\^?(?:\\.|[^\\\]])+\]", "x", rule.pattern)
        assert not re.search(r"[*+{\\]|\(\?(?![:!=])|\)\?\?|\?\?", bare), rule.id
        assert not re.search(r"\\(?![b.?()|/+*$\[\]-])", rule.pattern), rule.id
        assert bare.count("..") <= 2, rule.id  # its cost grows with a power of their number


def test_the_first_rule_that_fires_decides_piece_by_piece() -> None:
    rules = OutcomeRules(
        tuple(
            OutcomeRule(id=of[0], outcome=of[1], reads="all", pattern=of[0], reason="a test")
            for of in (("b", "no"), ("a", "yes"))
        ),
        {},
    )
    decided = [rules.first({"all": pieces}) for pieces in (("abc",), ("a", "b"), ("c",))]
    assert ["no", "yes", None] == [one and one[0].outcome for one in decided]


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
    assert found == bool(compile_pattern(pattern).search(text))


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


PIECES = [*"a9_'\u2019*\" \t\n\r\xa0\u2028\xab\x1c", "<b>", "</p >", "<br\t/>"]


@given(st.lists(st.sampled_from(PIECES)).map("".join) | st.text())
@example("*'a' 'b*'_'c'")
@example("\u00b6")
def test_plain_is_what_its_definition_says(text: str) -> None:
    """Mark by mark and space by space, as it was written before it was made quick."""
    kept = "".join(c for c in legible(text).lstrip() if c in "\n\t" or unicodedata.category(c) not in HIDDEN)
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
def test_a_listed_word_ends_as_for_samples(word: str, after: str) -> None:
    found = re.compile(word_alternatives(["He", "Non-binary", "\u2640"])).match(word + after)
    assert bool(found and found[0] == word) == starts_new_word(after)


def test_the_longest_listed_word_is_found() -> None:
    found = re.compile(word_alternatives(["Non", "Non-binary", "binary"])).findall(
        "Non-binary, Non, unbinary"
    )
    assert ["Non-binary", "Non"] == found
