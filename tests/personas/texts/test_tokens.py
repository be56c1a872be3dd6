"""Tokens of any text, and the words of many texts as numbers."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biaskit.common.marks import legible
from biaskit.errors import UsageError
from biaskit.measures.personas.texts.tokens import TokenisedTexts, letters, tokenise

# Lone surrogates too: `json` reads them from "\ud800" and a model's answer may hold one.
ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))
MANY_TEXTS = st.lists(ANY_TEXT, max_size=8)
TOKENIZERS = ("papers", "words")

HOSTILE = {
    "empty": "",
    "white space": " \t\r\n\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2028\u2029\u202f\u205f\u3000",
    "NUL": "a\0b \0 c",
    "lone surrogates": "he\ud800llo \udfff w\udc00",
    "right to left": "\u0627\u0644\u0645\u0631\u0636\u0629 she \u202e\u05d0\u05d7\u05d5\u05ea",
    "emoji": "nurse 👩🏽‍⚕️ she\U0001f1eb\U0001f1f7",
    "HTML": "<p class='x'>A <b>nurse</b> &amp; she</p><script>alert(1)</script>",
    "missing to other readers": "NA None nan null",
    "combining marks": "a" + "\u0301\u0323" * 50_000,
    "one long token": "x" * 1_000_000,
}


def tokens_by_definition(text: str) -> list[str]:
    """methods/words#tokens, step by step."""
    tokens = ("".join(c for c in token if "a" <= c <= "z") for token in text.lower().split())
    return [token for token in tokens if token]


# --- one text ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (["theythem", "selfcare"], "they/them self-care"),  # the examples of methods/words#tokens
        (["ne", "caf"], "née CAFÉ"),
        (["its"], "it's 42 – !!! ..."),
        (["ms", "in", "cs", "he", "designs", "systems"], "M.S. in CS. He designs systems."),
        (["k", "i"], "\u212a \u0130"),  # the Kelvin sign and İ have lower cases that hold a-z
        (["a", "b"], "a\x1cb"),  # what str.split() takes for white space
        (["ab"], "a\u200bb"),  # and what it does not
        (["ab", "c"], "a\0b \0 c"),
    ],
)
def test_the_papers_tokens_by_hand(expected: list[str], text: str) -> None:
    assert expected == tokenise(text)


@settings(deadline=None)
@given(ANY_TEXT)
def test_the_papers_tokens_are_those_of_the_definition(text: str) -> None:
    assert tokens_by_definition(legible(text)) == tokenise(text, "papers")  # a ¶ is a line's end there


def test_every_character_parts_or_leaves_words_as_the_definition_says() -> None:
    for first in range(0, sys.maxunicode + 1, 0x1000):
        text = "".join(f"a{chr(code)}b" for code in range(first, first + 0x1000))
        assert tokens_by_definition(text) == tokenise(text)


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (["they", "them", "self-care"], "They/Them self-care"),
        (["she's", "well-to-do"], "She\u2019s \u201cwell-to-do\u201d."),
        (["non-binary"], "non\u2011binary"),
        (["née", "müller"], "Née MU\u0308LLER"),  # one spelling of ü, whichever was written
        (["covid-19", "in", "a"], "COVID-19 in 2020 -- a 3d"),
        (["he", "quoted", "rock"], "he 'quoted' -rock-"),
        (["woman", "she"], "woman\u2014she"),
        (["cooperate"], "co\u00adoperate\u202e"),  # a soft hyphen and a mark of direction are not seen
        (["नमस्ते"], "नमस्ते"),  # its vowel signs are marks, not letters
        (["a"], "=a +1 @ -"),
    ],
)
def test_the_other_tokenizer_keeps_hyphenated_words_and_all_letters(expected: list[str], text: str) -> None:
    assert expected == tokenise(text, "words")


@settings(deadline=None)
@given(ANY_TEXT)
def test_a_word_begins_with_a_letter_and_holds_nothing_invisible(text: str) -> None:
    for word in tokenise(text, "words"):
        assert word[0].isalpha()
        assert word == word.strip("-'")
        assert 1 == len(word.split())
        assert not any(character in word for character in '\0\u200b\u202e\u00ad,";=')


@settings(deadline=None)
@given(ANY_TEXT)
def test_letters_are_what_papers_makes_of_one_token(text: str) -> None:
    assert "".join(tokens_by_definition(legible(text))) == letters(text)


def test_an_unknown_tokenizer_is_named_with_the_nearest() -> None:
    message = "Unknown tokenizer 'word'. Did you mean 'words'? Known: papers, words."
    for call in (lambda: tokenise("a", "word"), lambda: TokenisedTexts.build(["a"], "word")):
        with pytest.raises(UsageError) as caught:
            call()
        assert message == str(caught.value)


# --- many texts ----------------------------------------------------------------------------------


def words_of(texts: TokenisedTexts) -> list[list[str]]:
    return [
        [texts.words[i] for i in texts.ids[start:end]]
        for start, end in zip(texts.starts[:-1], texts.starts[1:], strict=True)
    ]


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@settings(deadline=None)
@given(texts=MANY_TEXTS)
def test_the_numbers_give_back_the_words_of_every_text(tokenizer: str, texts: list[str]) -> None:
    made = TokenisedTexts.build(iter(texts), tokenizer)
    expected = [tokenise(text, tokenizer) for text in texts]
    assert expected == words_of(made)
    assert len(texts) == len(made)
    assert tuple(sorted({word for words in expected for word in words})) == made.words
    assert (np.int32, np.int64) == (made.ids.dtype, made.starts.dtype)


def test_counts_by_hand_made_once_and_leaving_the_words_in_order() -> None:
    made = TokenisedTexts.build(["b a b", "", "c b"])
    counts = made.counts
    assert ("a", "b", "c") == made.words
    assert [[1, 2, 0], [0, 0, 0], [0, 1, 1]] == counts.toarray().tolist()
    assert np.int32 == counts.dtype
    assert counts is made.counts
    assert [["b", "a", "b"], [], ["c", "b"]] == words_of(made)  # the matrix was merged on a copy
    assert 4 == counts.nnz


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_have_words_or_none(name: str, tokenizer: str) -> None:
    made = TokenisedTexts.build([HOSTILE[name], "she"], tokenizer)
    assert (2, len(made.words)) == made.counts.shape
    assert "she" == words_of(made)[1][0]
    expected = {
        "empty": [],
        "white space": [],
        "one long token": ["x" * 1_000_000],
        "missing to other readers": ["na", "none", "nan", "null"],
    }
    if name in expected:
        assert expected[name] == words_of(made)[0]
