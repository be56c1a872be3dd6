"""Texts that the rules of association cannot read are refused a share (methods/texts#english)."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from needs import not_beside
from places import SHARED

import biaskit as bk
from biaskit.measures.personas.texts.english import FEWEST_WORDS, FUNCTION_WORDS, LEAST_SHARE, EnglishEvidence
from biaskit.tables.reasons import NOT_ENGLISH

OTHERS = {
    "German": (
        "Sie arbeitet seit zehn Jahren als Krankenschwester in einem großen Krankenhaus in Berlin "
        "und liebt ihren Beruf sehr. Nach dem Dienst geht sie her und hin durch den Park, und am "
        "Abend liest sie ihren beiden Kindern vor."
    ),
    "French": (
        "Elle travaille depuis dix ans comme infirmière dans un grand hôpital de Lyon et elle aime "
        "beaucoup son métier. Le soir, elle rentre à pied avec son mari, puis ils préparent "
        "ensemble le repas pour leurs deux enfants."
    ),
    "Spanish": (
        "Trabaja desde hace diez años como enfermera en un gran hospital de Madrid y le gusta mucho "
        "lo que hace. Por la tarde pasea con su perro por el parque y los domingos visita a sus "
        "padres, que viven cerca del mar."
    ),
    "Dutch": (
        "Ze werkt al tien jaar als verpleegkundige in een groot ziekenhuis in Utrecht en is dol op "
        "haar beroep. Na de dienst fietst ze door het park naar huis, waar ze met haar man en de "
        "twee kinderen het eten klaarmaakt."
    ),
    "Chinese": (
        "她在北京的一家大医院当护士已经十年了，非常热爱自己的工作。下"
        "班以后，她常常穿过公园走路回家，和丈夫一起做饭。"
    ),
}
ENGLISH = (
    "She has worked as a nurse in a large hospital in Leeds for ten years and is very fond of her "
    "profession. After her shift she walks home through the park, and in the evening she reads to "
    "her two children."
)


def evidence(*texts: str) -> EnglishEvidence:
    found = EnglishEvidence()
    for text in texts:
        found.add(text)
    return found


@pytest.mark.parametrize("language", OTHERS)
def test_other_languages_have_few_function_words_of_english(language: str) -> None:
    found = evidence(OTHERS[language])
    assert found.share is not None
    assert found.share <= 0.02 < LEAST_SHARE
    assert not evidence(*[OTHERS[language]] * 20).read


def test_english_is_read_and_so_is_what_is_too_short_to_tell() -> None:
    assert evidence(ENGLISH).read
    assert evidence().read
    assert evidence("Warm. Nurse. Kind.").read
    assert not evidence(*["Warm nurse kind bold."] * FEWEST_WORDS).read, (
        "many short texts are judged together"
    )


@given(
    st.lists(
        st.sampled_from(["the", "And", " ", "\u2019", "\u2014", "'", "_", "9", "\xe9", "\xa0", "\u212a"])
    )
    | st.text()
)
def test_words_are_runs_of_letters(pieces: str | list[str]) -> None:
    text, found = "".join(pieces), EnglishEvidence()
    found.add(text)
    words = re.findall(r"[^\W\d_]+", text.lower())
    n_english = sum(word in FUNCTION_WORDS for word in words)
    assert found.share == (n_english / len(words) if words else None)
    assert found.n_judged == (len(words) >= FEWEST_WORDS)


def test_a_tenth_of_a_models_texts_may_be_in_another_language() -> None:
    german = OTHERS["German"]
    a_tenth, more = evidence(*[ENGLISH] * 18, german, german), evidence(*[ENGLISH] * 17, *[german] * 3)
    assert (a_tenth.read, more.read) == (True, False)
    assert "2 of 20 texts" in (a_tenth.note("m") or "")
    assert NOT_ENGLISH in (more.note("m") or "")
    assert evidence(ENGLISH).note("m") is None


def test_real_personas_are_english() -> None:
    path = SHARED / "data/personas_text-davinci-003.csv"
    if not path.is_file():
        not_beside("the personas of Cheng et al. are not in ../shared/data")
    with path.open(encoding="utf-8", newline="") as file:
        found = evidence(*(row["text"] for row in csv.DictReader(file)))
    assert (found.read, found.n_foreign) == (True, 0)


def test_german_texts_have_no_share_and_english_ones_beside_them_do(tmp_path: Path) -> None:
    texts = {
        "text": [OTHERS["German"]] * 40
        + [ENGLISH, "He works in a mine, and they say that he sings. " * 5] * 20,
        "who": ["deutsch"] * 40 + ["english"] * 40,
    }
    quick = {"vectors": "marked-lists", "permutations": 19, "clusters": False}
    result = bk.analyze_texts(texts, model="who", settings=quick, out=tmp_path / "run", watcher=bk.Silent())
    shares = {
        row["model"]: row for row in result.representation.to_dict("records") if row["template_id"] == "all"
    }
    assert shares["english"]["female_share"] == 0.5
    assert shares["deutsch"]["reason"] == NOT_ENGLISH
    assert shares["deutsch"]["n_texts"] == shares["deutsch"]["n_not_inferred"] == 40
    assert all(
        shares["deutsch"][name] != shares["deutsch"][name]
        for name in ("female_share", "share_if_dropped_male")
    )
    lists = result.word_lists.to_dict("records")
    assert {row["model"] for row in lists if row["origin"] == "inferred" and row["n_marked"]} <= {"english"}
    record = json.loads((tmp_path / "run/tables/analysis.json").read_text())
    assert record["english"]["deutsch"]["n_not_english"] == 40
    assert any("deutsch" in note and NOT_ENGLISH in note for note in result.warnings)
    said = bk.report(tmp_path / "run", out=tmp_path / "page.html").findings
    assert any(one.text.startswith("Of your texts (english) that name a gender, 50 %") for one in said)
    (unread,) = [one for one in said if one.text.startswith("Your texts (deutsch): who they are about")]
    assert NOT_ENGLISH in unread.measured_with
