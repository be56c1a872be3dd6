"""The list of gender words: what must be on it, what must not, and its reasons."""

from __future__ import annotations

import tomllib
from collections import Counter

import pytest

from biaskit.common.files import data_dir
from biaskit.corpora.languages import shipped_language
from biaskit.corpora.loaders import gender_words
from biaskit.measures.personas.srb.score import PRONOUNS
from biaskit.measures.personas.texts.names import is_gender_word
from biaskit.measures.personas.texts.tokens import tokenise

LIST = tomllib.loads((data_dir("corpora") / "gender-words/words.toml").read_text("ascii"))


def test_the_words_of_the_association_and_all_pronouns_are_on_it() -> None:
    english = shipped_language("en")
    counted = {*english.classes["paper"], *map(str.lower, english.title_classes)}
    own = {word for word, group in gender_words().items() if group == "counted"}
    assert counted <= own
    assert {"nonbinary", "theythem"} == own - counted  # the papers' tokens of NONBINARY_TERMS
    assert PRONOUNS["all"] <= gender_words().keys()


def test_every_group_has_its_reason_and_every_word_stands_once_in_letters() -> None:
    words = Counter(word for group in LIST["group"] for word in group["words"])
    assert {1} == set(words.values())
    assert words.keys() == gender_words().keys()
    assert all(word.isascii() and word.isalpha() and word == word.lower() for word in words)
    assert all(len(group["reason"]) > 30 for group in (*LIST["group"], *LIST["left_in"]))
    assert not words.keys() & {word for group in LIST["left_in"] for word in group["words"]}


@pytest.mark.parametrize(
    "text", ["She", "she's", "woman's", "mother-in-law", "They/Them", "fiancé", "née", "MR"]
)
def test_a_word_is_found_as_either_tokenizer_gives_it(text: str) -> None:
    for tokenizer in ("papers", "words"):
        assert all(is_gender_word(word) for word in tokenise(text, tokenizer)), tokenizer


@pytest.mark.parametrize(
    "word", ["shed", "hell", "nurse", "pregnant", "beautiful", "gender", "parent", "actor", ""]
)
def test_descriptions_and_other_words_are_not_on_it(word: str) -> None:
    assert not is_gender_word(word)
