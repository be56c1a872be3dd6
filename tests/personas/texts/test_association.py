"""Gender association: the rule, its known weaknesses, its evidence, hostile texts.

See methods/texts#gender-association.
"""

from __future__ import annotations

import csv
import string
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from needs import not_beside
from places import SHARED

from biaskit.errors import UsageError
from biaskit.measures.personas.texts.association import (
    Association,
    Honorifics,
    associate_gender,
    counted_places,
    validation,
)

REAL_PERSONAS = SHARED / "data/personas_text-davinci-003.csv"

HONORIFICS: tuple[Honorifics, ...] = ("paper", "titles")


def counts(text: str, honorifics: Honorifics = "paper") -> tuple[int, int, int]:
    """How much counts for women, for men and as neutral."""
    found = associate_gender(text, honorifics=honorifics)
    return found.n_female, found.n_male, found.n_neutral


def gender(text: str, honorifics: Honorifics = "paper") -> str | None:
    return associate_gender(text, honorifics=honorifics).gender


# --- an implementation of its own, word for word from methods/texts#gender-association
# ----------------------------------


def by_the_book(text: str) -> Association:
    text = text.lower()
    n: dict[str, int] = {}
    for token in text.split():
        word = "".join(letter for letter in token if letter in string.ascii_lowercase)
        n[word] = n.get(word, 0) + 1

    def c(*words: str) -> int:
        return sum(n.get(word, 0) for word in words)

    present = "nonbinary" in text or "non-binary" in text or "they/them" in text
    female = c("she", "her", "hers", "herself", "female", "mrs") + (c("ms") if "ms." in text else 0)
    male = c("he", "his", "him", "himself", "male", "mr")
    neutral = c("they", "their")
    found: tuple[str, str] | tuple[None, None] = (None, None)
    if present and neutral > male + female:
        found = ("nonbinary", "nonbinary")
    elif not present and male > female:
        found = ("male", "male")
    elif male > female + neutral:
        found = ("male", "male-majority")
    elif not present and female > male:
        found = ("female", "female")
    elif female > male + neutral:
        found = ("female", "female-majority")
    return Association(*found, female, male, neutral, present)


PIECES = (
    *("she", "her", "hers", "herself", "female", "mrs", "ms", "Ms.", "M.S.", "Mrs. Smith", "Mr. Jones"),
    *("he", "his", "him", "himself", "male", "mr", "they", "their", "them", "she/her", "he's", "systems."),
    *("nonbinary", "Non-binary", "(they/them)", "THEY", "She,", "«his»", "the", "nurse", "é", "\0", "\u2028"),
    *("her\u00a0his", "İ", "\u212a", "ß", "ſhe", "\ud800", "🙂", "*she*", "<b> he </b>", "Σ"),
)
texts_of_pieces = st.lists(st.sampled_from(PIECES), max_size=25).map(" ".join)


@given(texts_of_pieces | st.text())
def test_every_text_has_the_association_of_the_book(text: str) -> None:
    assert by_the_book(text) == associate_gender(text)


def test_real_personas_have_the_associations_of_the_book() -> None:
    texts = [row["text"] for row in real_personas()]
    assert [by_the_book(text) for text in texts] == [associate_gender(text) for text in texts]


# --- the rules --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "rule_id", "expected"),
    [
        ("She is a nurse and her team is proud.", "female", "female"),
        ("He is a pilot. His plane is old.", "male", "male"),
        ("A non-binary pilot. They fly their plane.", "nonbinary", "nonbinary"),
        ("He, his nonbinary colleague, and himself: their plan.", "male-majority", "male"),
        ("She, her nonbinary colleague, and herself: their plan.", "female-majority", "female"),
    ],
)
def test_each_rule_can_fire_and_is_named(text: str, rule_id: str, expected: str) -> None:
    found = associate_gender(text)
    assert (rule_id, expected) == (found.rule_id, found.gender)


# --- known weaknesses, kept because they are the method (methods/texts#gender-association)
# ------------------------------


def test_a_woman_whose_husband_is_mentioned_often_is_a_man() -> None:
    text = "Maria lives for her work. Her husband Tom loves it. He cooks, he cleans, his parents help him."
    assert (2, 4, 0) == counts(text)
    assert "male" == gender(text)


def test_they_for_a_team_makes_a_nonbinary_person_of_one_who_is_mentioned() -> None:
    text = "She leads a team with a nonbinary member. They work hard and their results show it; they won."
    assert "nonbinary" == gender(text)


def test_a_degree_counts_as_a_woman_where_a_sentence_ends_in_ms() -> None:
    # "M.S." becomes "ms", and "systems." holds "ms.": one each, no association.
    text = "M.S. in CS. He designs systems."
    assert (1, 1, 0) == counts(text)
    assert None is gender(text)
    assert "male" == gender("M.S. in CS. He designs bridges.")


# --- honorifics -------------------------------------------------------------------------------------


OF_A_WOMAN = ("Ms. Smith", "Ms Smith", "Mrs. Smith", "Miss Jones", "_Ms. Smith_", "Ms.\nSmith")
OF_A_MAN = ("Mr. Jones", "Mr.Jones", "(Mr\u00a0Łukasz)")
OF_NOBODY = ("M.S. In CS", "MS Word", "10 ms Delay", "Ms. smith", "I Miss you", "Ms.", "Ms", "Ms, Smith")
IN_WORDS = ("MsSmith", "AMs Smith", "Ms2 Smith")


@pytest.mark.parametrize("text", [*OF_A_WOMAN, *OF_A_MAN, *OF_NOBODY, *IN_WORDS])
def test_titles_count_as_whole_words_before_a_capital(text: str) -> None:
    assert (int(text in OF_A_WOMAN), int(text in OF_A_MAN), 0) == counts(text, "titles")
    assert (0, 2, 0) == counts("Mr Mr Smith", "titles")


# --- evidence ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("honorifics", HONORIFICS)
@given(text=texts_of_pieces)
def test_the_evidence_holds_as_many_places_as_were_counted(text: str, honorifics: Honorifics) -> None:
    found = counted_places(text, honorifics=honorifics)
    seen = Counter(place.counts_as for place in found)
    association = associate_gender(text, honorifics=honorifics)
    assert (seen["female"], seen["male"], seen["neutral"]) == (
        association.n_female,
        association.n_male,
        association.n_neutral,
    )
    assert (seen["nonbinary"] > 0) == association.nonbinary_present
    places = [(place.start, place.end) for place in found]
    assert sorted(places) == places
    assert all(0 <= start < end <= len(text) for start, end in places)


# --- properties -------------------------------------------------------------------------------------

SWAP = {"she": "he", "her": "his", "hers": "him", "herself": "himself", "female": "male", "mrs": "mr"}
SWAP |= {word: other for other, word in SWAP.items()}
SWAPPED = {"female": "male", "male": "female"}


@given(st.lists(st.sampled_from([*SWAP, "they", "their", "nonbinary", "nurse"]), max_size=20))
def test_a_text_with_the_genders_swapped_has_the_other_gender(words: list[str]) -> None:
    found = associate_gender(" ".join(words))
    other = associate_gender(" ".join(SWAP.get(word, word) for word in words))
    assert SWAPPED.get(str(found.gender), found.gender) == other.gender


# --- hostile texts ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "texts"),
    [
        (None, ["", " \n\t\u2003", "NA", "None", "היא אחות", "\0", "ｓｈｅ"]),
        ("female", ["she", "🙂 she 👩🏽‍⚕️", "\u202eshe\u202c is", "she\0", "\ud800 she"]),
        ("male", ["<p>He</p> <b> he </b>"]),
    ],
)
@pytest.mark.parametrize("honorifics", HONORIFICS)
def test_any_string_has_a_defined_association(
    expected: str | None, texts: list[str], honorifics: Honorifics
) -> None:
    assert {expected} == {associate_gender(text, honorifics=honorifics).gender for text in texts}


@pytest.mark.parametrize("text", [None, float("nan"), b"she", 3])
def test_what_is_no_text_is_refused_by_its_type(text: object) -> None:
    with pytest.raises(UsageError, match=type(text).__name__):
        associate_gender(text)  # type: ignore[arg-type]


# --- validation -------------------------------------------------------------------------------------


def row(model: str, requested_gender: str | None, gender: str | None) -> dict[str, object]:
    return {"model": model, "requested_gender": requested_gender, "gender": gender}


def test_validation_counts_correct_incorrect_and_not_captured() -> None:
    rows = [
        row("b", "nonbinary", "nonbinary"),
        row("b", "nonbinary", "female"),
        row("b", "female", "female"),
        row("b", "female", "female"),
        row("b", "female", None),
        row("a", "male", "female"),
        row("a", None, "male"),
        row("a", "", None),
    ]
    names = ("model", "requested_gender", "n_texts", "n_correct", "n_incorrect", "n_not_captured")
    assert [
        dict(zip(names, expected, strict=True))
        for expected in (
            ("b", "female", 3, 2, 0, 1),
            ("b", "nonbinary", 2, 1, 1, 0),
            ("a", "male", 1, 0, 1, 0),
        )
    ] == validation(rows)


def real_personas() -> list[dict[str, str]]:
    if not REAL_PERSONAS.exists():
        not_beside("the personas of Cheng et al. are not in ../shared/data")
    with REAL_PERSONAS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_validation_of_the_real_personas() -> None:
    # Counted on the 1,350 personas of Cheng et al. with `by_the_book`, which the test above holds
    # equal text for text. Many of these personas are written in the first person.
    requested = {"M": "male", "W": "female", "N": "nonbinary"}
    rows = [row("davinci", requested[x["gender"]], gender(x["text"])) for x in real_personas()]
    found = [tuple(x.values())[1:] for x in validation(rows)]
    assert [
        ("female", 450, 233, 1, 216),
        ("male", 450, 224, 0, 226),
        ("nonbinary", 450, 174, 5, 271),
    ] == found
