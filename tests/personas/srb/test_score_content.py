"""SRB without gender words: what is left of a score when she, Mr and mother leave every list."""

from __future__ import annotations

import numpy as np
import pytest

from biaskit.measures.personas.srb.score import NO_NULL_OF_LISTS, srb_scores
from biaskit.measures.personas.texts.names import is_gender_word
from biaskit.measures.personas.vectors.training import Vectors
from biaskit.measures.personas.words.contrasts import MarkedWord

WORDS = ("mother", "woman", "father", "man", "kind", "warm", "strong", "bold")


def vectors() -> Vectors:
    rng = np.random.default_rng(5)
    return Vectors.from_rows(WORDS, rng.normal(size=(len(WORDS), 12)))


def marked(*words: str) -> list[MarkedWord]:
    return [MarkedWord(word, i + 1, 9.0 - i, 0.01, 5, 1, 5, 1) for i, word in enumerate(words)]


def scores(candidates: str, female: list[MarkedWord], male: list[MarkedWord]) -> tuple[float | None, ...]:
    gender_words = [word for word in WORDS if is_gender_word(word)]
    found = srb_scores(
        {"female": candidates.split()},
        {"female": female, "male": male},
        [vectors()],
        null=NO_NULL_OF_LISTS,
        pronouns="all",
        names=frozenset(),
        gender_words=gender_words,
    )["female"]
    return found.srb, found.srb_content, found.reason  # type: ignore[return-value]


def test_a_score_of_gender_words_alone_has_no_content() -> None:
    whole, content, reason = scores("mother woman", marked("mother", "kind"), marked("father", "bold"))
    assert whole is not None
    assert content is None
    assert "without gendered words: no candidate words" in str(reason)


def test_the_content_is_the_score_of_the_other_words() -> None:
    female, male = marked("mother", "kind", "warm"), marked("father", "strong", "bold")
    whole, content, _ = scores("mother warm bold", female, male)
    alone = srb_scores(
        {"female": ["warm", "bold"]},
        {"female": marked("kind", "warm"), "male": marked("strong", "bold")},
        [vectors()],
        null=NO_NULL_OF_LISTS,
    )["female"]
    assert content == pytest.approx(alone.srb)
    assert whole != pytest.approx(content)


def test_gender_words_alone_make_a_difference_that_the_content_does_not_show() -> None:
    """Texts that differ in mother and father only: a far score, and none of the content."""
    female, male = marked("mother", "kind", "bold"), marked("father", "kind", "bold")
    whole, content, _ = scores("mother kind bold", female, male)
    assert whole is not None
    assert whole < -0.1
    assert content == pytest.approx(0.0)
