"""What reads a text quickly says what the plain way says, of any text (methods/texts)."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from biaskit.common.marks import legible
from biaskit.corpora.languages import blanked, shipped_language
from biaskit.measures.personas.texts import copies, english, names, recognition
from biaskit.measures.personas.texts.outcomes import DECLINES, declines, text_outcome, text_rules
from biaskit.measures.personas.texts.tokens import runs_of

ENGLISH = shipped_language("en")
NEEDS = {rule.id: (ENGLISH.patterns[rule.id], rule.needs) for rule in ENGLISH.not_counted}
NEEDS["avoided"] = ENGLISH.avoided_pattern, ENGLISH.avoided.needs
PIECES = [
    *(
        "she",
        "he",
        "her",
        "hers",
        "his",
        "him",
        "himself",
        "herself",
        "they",
        "\u017fhe",
        "hi\u017f",
        "SHE",
        "HIS",
    ),
    *(
        "ms",
        "MS",
        "Ms",
        "mS",
        "mr.",
        "Mrs",
        "miss",
        "Word",
        "Lee",
        "It",
        "The",
        "in",
        "few",
        "ten",
        "20",
        "2",
        "_",
    ),
    *(
        "HER",
        "HER2",
        "her2",
        "H.E.",
        "S.H.E.R.",
        "H.I.M.",
        "is",
        "has",
        "s",
        "fe",
        "male",
        "fe)male",
        "x",
        "\u00e9",
    ),
    *(
        " or ",
        "Or",
        "and/",
        "/",
        "|",
        "(",
        ")",
        "(s)",
        "*",
        "-",
        "_",
        ",",
        ".",
        ":",
        "\n",
        "\u00a0",
        " ",
        " ",
        " ",
    ),
    *(
        "de",
        " la ",
        "don't",
        "we\u2019ll",
        "'",
        "d1",
        "\u0301",
        "\ufb01rst",
        "m@x.org",
        "www.",
        "Mary",
        "mary",
        "Art",
    ),
]
texts = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=30).map("".join)
derandomised = settings(derandomize=True, max_examples=600, deadline=None)


@pytest.mark.parametrize("name", NEEDS)
@settings(derandomize=True, max_examples=1_500, deadline=None, suppress_health_check=[*HealthCheck])
@given(data=st.data())
def test_what_a_pattern_finds_holds_what_it_needs(name: str, data: st.DataObject) -> None:
    pattern, needs = NEEDS[name]
    text = data.draw(st.one_of(st.from_regex(pattern), texts))
    assert needs
    assert blanked(pattern, text, needs) == blanked(pattern, text)


@pytest.mark.parametrize(
    "text", ["She, he or they", "Mr. or Miss Lee", "mr\nor\nmrs", "s_he", "s-he", "(fe)male"]
)
def test_avoided_forms_hold_what_they_need(text: str) -> None:
    pattern, needs = NEEDS["avoided"]
    assert blanked(pattern, text, needs) == blanked(pattern, text) != text


@derandomised
@given(text=st.one_of(texts, st.text()))
def test_runs_are_those_that_a_search_finds(text: str) -> None:
    for pattern in (copies._WORD, recognition._WORD, english._LETTERS):
        assert runs_of(pattern, text) == pattern.findall(text)


@derandomised
@given(text=texts)
def test_words_of_ascii_are_those_of_the_pattern_for_any_text(text: str) -> None:
    capitals, expected = text.isupper(), Counter({",": text.count(",")})
    particles = ENGLISH.told["of_names"].replace(" ", "|")
    plain = re.sub(rf"(?:\s(?:{particles})){{1,3}}(?=\s[A-Z])", "", english._ADDRESS.sub("", text))
    for word in filter(None, english._WORD.findall(plain)):
        lowered = word.lower()
        is_name = word.isupper() if capitals else word[0].isupper() or lowered in english._PRONOUNS
        lowered = unicodedata.normalize("NFKC", lowered[:40]) if not word.isascii() else lowered
        if not is_name or lowered in english.FUNCTION_WORDS or (capitals and lowered in english.OF_OTHERS):
            expected[lowered] += 1
    found = english._words(text)
    assert (found, list(found)) == (expected, list(expected))


@derandomised
@given(words=st.lists(st.sampled_from(["she", "mary", "runs", "a", "b", "c", "d"]), max_size=14))
def test_shingles_are_the_runs_of_five_words(words: list[str]) -> None:
    others = [word for word in words if word in "runsabcd"]
    kept = tuple(others if len(others) >= 5 else words)
    runs = {kept[start : start + 5] for start in range(max(1, len(kept) - 4) if kept else 0)}
    shingles = copies.shingles_of(" ".join(words))
    assert (shingles.dtype, sorted(shingles)) == (np.int64, sorted(map(hash, runs)))


@derandomised
@given(text=texts)
def test_names_are_counted_in_lines_with_a_token_in_lower_case(text: str) -> None:
    n, n_capital = Counter[str](), Counter[str]()
    for line in text.splitlines():
        tokens = line.split()
        with_letter = [i for i, token in enumerate(tokens) if any(map(str.isalpha, token))]
        in_lower_case = any(tokens[i] == tokens[i].lower() for i in with_letter)
        for i in with_letter[1:] if in_lower_case else ():
            listed = names._listed(tokens[i])
            if listed and not listed.opens and not names._may_end_sentence(tokens[i - 1]):
                n[listed.name] += 1
                n_capital[listed.name] += listed.is_capital
    evidence = names.NameEvidence()
    evidence.add(text)
    assert (evidence._n, evidence._n_capital) == (n, n_capital)


SAID = [
    *(
        "I cannot",
        "i'm sorry, but i can't ",
        "As an AI ",
        "Unfortunately, ",
        "write",
        "help",
        "against my policy",
    ),
    *(
        "He is ",
        "I am a nurse. ",
        "[name]",
        "\n",
        "how to ",
        "import os",
        "x" * 230,
        " ",
        "# ",
        "stereotypes",
        "",
    ),
]


@derandomised
@given(text=st.lists(st.sampled_from(SAID), max_size=6).map("".join))
def test_a_text_declines_where_its_outcome_says_so(text: str) -> None:
    assert declines(text) == (text_outcome(text).outcome == DECLINES)
    assert legible(text) == text


def test_only_the_rule_of_no_text_stands_before_those_that_say_that_a_text_declines() -> None:
    outcomes = [rule.outcome for rule in text_rules().rules]
    n_declines = outcomes.count(DECLINES)
    assert outcomes[: n_declines + 1] == ["empty", *[DECLINES] * n_declines]
