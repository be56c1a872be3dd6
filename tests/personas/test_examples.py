"""Example texts with their traces, marked words in their sentences, exact prompts."""

from __future__ import annotations

import random
from typing import Any

import pytest

from biaskit.measures.personas import examples as showing
from biaskit.measures.personas.examples import LONGEST_EXAMPLE, LONGEST_SENTENCE, show
from biaskit.report.prompts import PromptKinds
from biaskit.runs.collection import Part


def association(key: str, occupation: str, gender: str, asked: str = "", **more: Any) -> dict[str, Any]:
    return {
        "model": "m",
        "occupation": occupation,
        "template_id": "persona",
        "rule_id": gender,
        "key": key,
        "origin": "requested" if asked else "inferred",
        "requested_gender": asked,
        "gender": gender,
        **more,
    }


def marked(word: str, rank: int, **more: Any) -> dict[str, Any]:
    row = {"model": "m", "occupation": "nurse", "origin": "inferred", "gender": "female", "against": "male"}
    return {**row, "method": "calibrated", "rank": rank, "word": word, "z": 5.0 - rank, **more}


TEXTS = {
    "1": "Ann is a nurse. She is kind! Mrs. Gray knows her.",
    "2": "She is a kind nurse. Kind she is.",
    "3": "He is a nurse, and kind.",
    "4": "Nothing is said.",
    "5": "She is a kind soul.",
    "6": "A kind woman: she.",
    "7": "she helps. Of kind people she is one.",
}
TABLES: dict[str, list[dict[str, Any]]] = {
    "genders": [
        association("1", "nurse", "female"),
        association("2", "nurse", "female"),
        association("3", "nurse", "male"),
        association("4", "nurse", ""),
        association("5", "nurse", "female", "female"),
        association("6", "cook", "female"),
        association("7", "nurse", "female"),
    ],
    "marked_words": [marked("kind", 1), marked("grey", 2), marked("she", 6)],
}
ROWS = [{"key": key, "text": text} for key, text in TEXTS.items()]


def test_the_first_text_of_each_kind_is_an_example_unprompted_ones_first() -> None:
    shown = show(ROWS, TABLES, {})
    assert ["1", "3", "4", "5", "6"] == [example.key for example in shown.examples]
    assert [None, None, None, "female", None] == [example.requested_gender for example in shown.examples]


def test_texts_that_describe_nobody_are_shown_whatever_their_place() -> None:
    """Texts of one kind are shown once; one that declines is worth a look all the same."""
    texts = {f"{i:02}": "She is a nurse who helps people every day." for i in range(30)}
    texts |= {
        "20": "I'm sorry, but I can't write about a person.",
        "21": "The weather is fine. Trees are green.",
    }
    rows = [{"key": key, "text": text} for key, text in texts.items()]
    tables = {"genders": [association(key, "nurse", "female") for key in texts]}
    shown = {one.key: one.outcome for one in show(rows, tables, {}).examples}
    assert shown == {"00": "person", "20": "declines", "21": "no-person"}
    again = {one.key: one.outcome for one in show(rows[::-1], tables, {}).examples}
    assert again == shown
    alone = show(rows, tables, {}).examples
    assert len({one.key for one in alone}) == len(alone)


def test_a_text_that_the_token_limit_ended_early_is_shown_as_cut() -> None:
    """The reason stands in the row as `finish_reason`."""
    tables = {"genders": [association(key, "nurse", "female") for key in "ab"]}
    rows = [
        {"key": "a", "text": "The", "finish_reason": "length"},
        {"key": "b", "text": "The", "finish_reason": "stop"},
    ]
    shown = {one.key: one.outcome for one in show(rows, tables, {}).examples}
    assert shown["a"] == "cut"
    assert shown["b"] != "cut"


def test_spans_are_the_places_that_counted() -> None:
    example = show(ROWS, TABLES, {}).examples[0]
    places = [(example.text[span.start : span.end], span.counts_as) for span in example.spans]
    assert [("She", "female"), ("Mrs.", "female"), ("her.", "female")] == places


def test_a_word_has_the_sentences_of_its_own_list_alone() -> None:
    shown = show(ROWS, TABLES, {})
    kind = next(word for word in shown.words if word.word == "kind")
    # Not those of men, cooks, or of prompts that named a gender; the first sentence of a text with the word.
    assert ["She is kind!", "She is a kind nurse.", "Of kind people she is one."] == [
        shown.sentences[i] for i in kind.sentences
    ]
    assert 4.0 == kind.z


def test_words_that_name_no_gender_come_first_and_few_others_after() -> None:
    of_gender = [marked(word, i, is_gender_word=True) for i, word in enumerate(("she", "her", "woman"), 1)]
    listed = [*of_gender, marked("ann", 4, is_name=True), marked("kind", 5, is_gender_word=False)]
    found = show(ROWS, {**TABLES, "marked_words": listed}, {}).words
    assert ["kind", "she", "her"] == [word.word for word in found]


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_rows_changes_nothing(seed: int) -> None:
    rows = random.Random(seed).sample(ROWS, len(ROWS))
    assert show(ROWS, TABLES, {}) == show(rows, TABLES, {})


def test_long_texts_are_cut_and_long_sentences_shown_around_the_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(showing, "WORDS_IN_CONTEXT", 2)
    long = "she " + "x" * 60 + " " + "word " * 2_000 + "kind " + "word " * 2_000
    tables = {**TABLES, "genders": [association("1", "nurse", "female")]}
    shown = show([{"key": "1", "text": long}], tables, {})
    assert shown.examples[0].cut
    assert LONGEST_EXAMPLE == len(shown.examples[0].text)
    (sentence,) = shown.sentences
    assert len(sentence) <= LONGEST_SENTENCE
    assert "kind" in sentence
    assert sentence.startswith("… ")
    assert sentence.endswith(" …")


def test_examples_are_shared_by_the_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(showing, "MOST_EXAMPLES", 4)
    rows = [association(f"{m}{i}", str(i), "female", model=m) for m in "ab" for i in range(5)]
    shown = show([{"key": r["key"], "text": "she"} for r in rows], {"genders": rows}, {})
    assert ["a0", "a1", "b0", "b1"] == [example.key for example in shown.examples]


# --- prompts -----------------------------------------------------------------------------------------


def probe_row(model: str, job: str, template: int, prompt: str, **more: Any) -> dict[str, Any]:
    row = {"key": f"{model}{job}{template}", "model": model, "bias_type": "implicit", "template_id": template}
    scope = {"job": job, "debiasing_id": 0, "context": "plain", "prompt_format": "raw"}
    return {**row, **scope, "prompt": prompt, **more}


PART = Part("probe", "s", "", {}, (), (), (), (), ())
PROMPTS = [
    probe_row("a", "nurse", 2, "second nurse"),
    probe_row("a", "nurse", 1, "a nurse"),
    probe_row("a", "cook", 1, "a cook"),
    probe_row("b", "cook", 1, "a cook"),
    probe_row("b", "cook", 2, "second nurse", system="be fair"),
    probe_row("b", "cook", 10, "tenth", debiasing_id=3, context="dialogue"),
]


def test_models_that_got_the_same_prompt_share_an_entry_in_the_order_of_the_design() -> None:
    kinds = PromptKinds(PART, {"a": "A", "b": "B"})
    assert PROMPTS == list(kinds.noting(PROMPTS))
    shown = kinds.shown()
    assert [
        ("implicit, template 1, cook", "A, B", "a cook", None),
        ("implicit, template 2, cook", "B", "second nurse", "be fair"),
        ("implicit, template 2, nurse", "A", "second nurse", None),
        ("implicit, template 10, debiasing prompt 3, dialogue, cook", "B", "tenth", None),
    ] == [(one.what, one.model, one.prompt, one.system) for one in shown]


def test_a_prompt_that_names_a_gender_decides_whose_list_a_text_is_in() -> None:
    tables = {
        "genders": [association("1", "nurse", "male", "female")],
        "marked_words": [marked("kind", 1, origin="requested")],
    }
    assert ["He is kind."] == show([{"key": "1", "text": "He is kind."}], tables, {}).sentences
