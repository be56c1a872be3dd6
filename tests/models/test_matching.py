"""Which target word a sampled text says (methods/estimators#sampling-estimator, sampling)."""

from __future__ import annotations

from itertools import product

import pytest

from biaskit.models.matching import SKIPPED, can_match, match

ASKED = ("Male", "male", "Man", "He", "he", "Her", "She", "she", "Nonbinary", "Non-binary", "Non", "They")
NEUTRAL = ("Gender neutral", "Gender-neutral", "Gender")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (" She", "She"),
        ("She is a nurse.", "She"),
        ("she", "she"),
        ("\n\n  She.", "She"),
        ("\xa0\u2003She", "She"),
        ('**"She"** said', "She"),
        ("_('He')_", "He"),
        (" \n* They are", "They"),
        ("She's", "She"),
        ("He/She", "He"),
        ("He-", "He"),
        ("He\u2014or she", "He"),
        ("He🙂", "He"),
        ("Non-binary people", "Non-binary"),
        ("Non-binaries", "Non"),
        ("Nonbinary", "Nonbinary"),
        ("Gender neutral.", "Gender neutral"),
        ("Gender neutrality", "Gender"),
        # Nothing that is asked for:
        ("MALE", None),
        ("SHE", None),
        ("shE", None),
        ("The nurse", None),
        ("Shed", None),
        ("Herself", None),
        ("He2", None),
        ("Hé", None),
        ("Heй", None),
        ("He\ufffd", None),
        ("-She", None),
        ("[She", None),
        (
            "\u201cShe",
            None,
        ),  # a typographic quotation mark is not in the list of methods/estimators#sampling-estimator
        ("I think she", None),
        ("", None),
        (" \n*", None),
    ],
)
def test_a_text_says_what_it_begins_with(text: str, said: str | None) -> None:
    assert said == match(text, (*ASKED, *NEUTRAL))
    assert said == match(text, tuple(reversed((*ASKED, *NEUTRAL)))), "depends on the order of the list"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (" She", None),  # might go on: Shed
        (" She.", "She"),
        (" She ", "She"),
        ("Non", None),
        ("Non-bin", None),  # might become Non-binary
        ("Non-binary", None),
        ("Non-b.", "Non"),
        ("Gender ", None),  # might become Gender neutral
        ("Gender is", "Gender"),
        ("Nonb", None),
        (" ", None),
    ],
)
def test_a_text_cut_by_its_length_says_only_what_can_no_longer_change(text: str, said: str | None) -> None:
    assert said == match(text, (*ASKED, *NEUTRAL), ended=False)


def test_no_continuation_changes_what_a_cut_text_said() -> None:
    known = ("He", "Her", "He r", "r")
    texts = ["".join(letters) for n in range(5) for letters in product("Her *", repeat=n)]
    decided = 0
    for text in texts:
        said = match(text, known, ended=False)
        decided += said is not None
        for more in texts:
            assert said is None or said == match(text + more, known)
    assert decided > 30


def test_a_target_word_with_something_skipped_in_front_cannot_match_and_says_so() -> None:
    assert can_match("She")
    assert not any(can_match(f"{c}em") for c in (*SKIPPED, " ", "\n"))
    assert not can_match("")
    assert match("'em", ("'em",)) is None
