"""A listed name is a name where texts write it as one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biaskit.measures.personas.texts.names import (
    NameEvidence,
    institutions_and_places,
    listed_names,
    names_among,
)


def names_in(*texts: str) -> frozenset[str]:
    evidence = NameEvidence()
    for text in texts:
        evidence.add(text)
    return evidence.names()


# --- the lists -----------------------------------------------------------------------------------


def test_listed_names_are_reduced_to_letters() -> None:
    listed = listed_names()
    assert {"mary", "annemarie", "deedee", "elane", "gale", "zsazsa"} <= listed
    assert all(name.isascii() and name.isalpha() and name.islower() for name in listed)
    assert 7_553 == len(listed)  # of 5,001 female and 2,943 male ones


# --- the golden cases ----------------------------------------------------------------------------

BIOGRAPHY = """Mary Hope Jones
Art, Law and Hope at Stanford

Yesterday Mary moved to Stanford to study art and law in the hope of better days. In the end Mary
found that art is hope. "When Mary came," he said, "the law was a mess." Then a friend, Mary, of Stanford,
will know the Law of Stanford well: Art was her hope."""


def test_art_law_hope_and_stanford_survive_and_mary_does_not() -> None:
    assert {"mary"} == names_in(BIOGRAPHY)
    words = ("art", "law", "hope", "stanford", "mary", "will")
    evidence = NameEvidence()
    evidence.add(BIOGRAPHY)
    assert {"mary"} == names_among(words, "capitalised-list", evidence)
    # law without its last letter is la, which is in the list: the release's rule drops all of these.
    assert set(words) == names_among(words, "released")
    assert frozenset() == names_among(words, "keep")


def test_released_drops_the_word_or_the_word_without_its_last_letter() -> None:
    assert {"emma", "emmas", "era"} == names_among(
        ["emma", "emmas", "era", "emmass", "x", "nurse"], "released"
    )


def test_words_of_the_other_tokenizer_are_compared_by_their_letters() -> None:
    evidence = NameEvidence()
    for _ in range(3):
        evidence.add("then Anne-Marie and mother-in-law left")
    assert {"anne-marie"} == names_among(["anne-marie", "mother-in-law"], "capitalised-list", evidence)
    assert {"anne-marie"} == names_among(["anne-marie", "mother-in-law"], "released")


# --- how often, how many with a capital ----------------------------------------------------------


@pytest.mark.parametrize(
    ("is_name", "capital", "small"), [(True, 9, 1), (False, 8, 1), (False, 17, 2), (True, 18, 2)]
)
def test_nine_in_ten_with_a_capital_are_enough(is_name: bool, capital: int, small: int) -> None:
    # 8 of 9 = 88.9 %, 17 of 19 = 89.5 %.
    assert is_name == ("hope" in names_in(*["then Hope left"] * capital, *["in the hope of"] * small))


# --- inside a sentence ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "we saw Mary today",
        "we saw \u2014 Mary too",
        "we saw **Mary** today",
        "we saw 'x' Mary",
        "then Mary, who left",
        "He met Mary! And more",
        "1. we saw Mary",
        "in 1990. 12 Mary",  # the token before is no stop
        "<p>then Mary left</p>",
    ],
)
def test_inside_a_sentence_a_capital_is_evidence(line: str) -> None:
    assert {"mary"} == names_in(*[line] * 3)


@pytest.mark.parametrize(
    "line",
    [
        "Mary left",  # first of the text
        "it ended here\nMary left again\nx",  # of a line
        "it ended\u2028Mary left",
        "1. Mary left",  # the first token with a letter
        '"Mary left',
        "👩 Mary left",
        "it ended. Mary left",
        "who left? Mary did",
        "it ended.” Mary left",  # closing quotes are skipped
        "it ended.\u2019\u201d Mary left",
        'it ended." Mary left',
        "it ended. \u201d Mary left",  # a quote that stands alone may open
        'he said, "Mary left',
        "he said, \u201cMary left",
        "he said, \u00abMary left",
        'he said ("Mary left")',
        "he left ...Mary stays",
        "Dr. Mary left; mrs. Mary too",
        "About Mary Jones",  # title case
        "- 12 The Life Of Mary",
        "\u201cThe Life Of Mary\u201d",
    ],
)
def test_where_a_capital_says_nothing_it_is_no_evidence(line: str) -> None:
    assert frozenset() == names_in(*[line] * 5)


def test_small_letters_count_where_capitals_do() -> None:
    """At the start of a line neither is counted, or names that are words would be names."""
    capital = ["the Will of all"] * 9
    assert {"will"} == names_in(*capital, *["will she go"] * 5)
    assert frozenset() == names_in(*capital, *["she will go"] * 2)


# --- against the definition, word for word -------------------------------------------------------


def names_by_definition(texts: list[str]) -> frozenset[str]:
    """methods/words#names, "Names", written out without a shortcut."""
    quotes = set("\"'`‘’‚‛“”„‟«»‹›「」『』")
    capital: dict[str, list[bool]] = {}
    for text in texts:
        for line in text.splitlines():
            tokens = line.split()
            with_letter = [t for t in tokens if any(c.isalpha() for c in t)]
            if all(any(c != c.lower() for c in t) for t in with_letter):
                continue
            for place, token in enumerate(tokens):
                name = "".join(c for c in token.lower() if "a" <= c <= "z")
                if name not in listed_names() or name in institutions_and_places():
                    continue
                before = ""
                while not token[len(before)].isalpha():
                    before += token[len(before)]
                if not any(c.isalpha() for t in tokens[:place] for c in t):
                    continue
                if any(c in quotes or c in ".!?:" for c in before):
                    continue
                previous = tokens[place - 1]
                alone = any(c in quotes for c in previous[-1:]) and not any(c.isalnum() for c in previous)
                while previous and previous[-1] in quotes:
                    previous = previous[:-1]
                if alone or previous[-1:] in set(".!?:"):
                    continue
                capital.setdefault(name, []).append(token[len(before)].isupper())
    return frozenset(
        n for n, found in capital.items() if len(found) >= 3 and sum(found) * 10 >= 9 * len(found)
    )


PIECES = st.sampled_from(
    [
        *("Mary", "mary", "hope", "Hope", "Stanford", "the", "The", "A", "x", "is", "é", "1990", "女"),
        *"'\"“”‘’.!?:,(-*",
    ]
)
LINES = st.lists(
    st.sampled_from([" ", " ", " ", "\n", ""]).flatmap(lambda s: PIECES.map(lambda p: p + s)), max_size=40
)


@settings(deadline=None)
@given(st.lists(LINES.map("".join), max_size=6))
def test_names_are_those_of_the_definition(texts: list[str]) -> None:
    assert names_by_definition(texts * 3) == names_in(*texts * 3)


# --- hostile and many texts ----------------------------------------------------------------------


def test_hostile_texts_have_no_names_or_theirs() -> None:
    texts = ("", "None", "NA", "\0", "he \0 Mary", "\ud800 Mary \udfff", "\u202e she Mary", "<b>a</b> Mary")
    assert {"mary"} == names_in(*texts, "👩🏽‍⚕️ a Mary", "a " + "Mary " * 100_000, "x" * 1_000_000)
