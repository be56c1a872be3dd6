"""Texts that the rules of association cannot read are refused a share (methods/texts#english)."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from needs import not_beside
from places import SHARED

import biaskit as bk
from biaskit.measures.personas.texts.association import associate_gender, counted_places
from biaskit.measures.personas.texts.english import EnglishEvidence, english_parts, is_english
from biaskit.measures.personas.texts.recognition import LanguageEvidence

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


def shares_of(texts: list[str], run: Path) -> Any:
    settings = {"vectors": "marked-lists", "permutations": 19, "clusters": False}
    result = bk.analyze_texts(
        [{"text": text} for text in texts], settings=settings, out=run, watcher=bk.Silent()
    )
    (row,) = (row for row in result.representation.to_dict("records") if row["template_id"] == "all")
    return result, row


@pytest.mark.parametrize("language", OTHERS)
def test_other_languages_are_told_by_their_own_function_words(language: str) -> None:
    assert is_english(OTHERS[language]) is False
    assert not evidence(*[OTHERS[language]] * 20).read
    assert associate_gender(OTHERS[language]).gender is None


# What each counts as where its words are read as English; nobody in them is named by one of these words.
AS_IF = [
    ("Le he dicho que he trabajado con equipos y he dirigido la oficina.", "Spanish: he is I have"),
    ("Her bor jeg, og her er det stille.", "Danish: her is here"),
    ("Her gün hastanede çalışıyor ve her akşam yürüyor.", "Turkish: her is every"),
    ("He tangata pai ia, he kaiako i te kura o ngā tamariki, ā ka haere.", "Maori: he is a"),
    ("He geiht nich na de Stadt un dat is ok goot för em, as ik segg.", "Low German: he is he, all the same"),
    ("Her bir adam doğlanda azatdyr we öz mertebesinde deňdir.", "Turkmen, which has no list: its letters"),
    ("Hij zegt dat zij het niet weet, en his is hier geen woord.", "Dutch"),
]


@pytest.mark.parametrize(("text", "why"), AS_IF)
def test_pronouns_are_no_evidence_for_english(text: str, why: str) -> None:
    assert is_english(text) is False, why
    found = associate_gender(text)
    assert (found.gender, found.n_female, found.n_male) == (None, 0, 0), why
    assert not counted_places(text)


SHORT = [
    "He is a nurse.",
    "She works at the hospital.",
    "A cook. He met Maria de la Cruz.",
    "Her café is naïve.",
]


@pytest.mark.parametrize(
    "text", [ENGLISH, *SHORT, "She rocks.", "José, he said, lives in São Paulo.", "HE WAS HERE."]
)
def test_english_stays_as_it_is_short_or_with_names_of_elsewhere(text: str) -> None:
    assert is_english(text) is not False
    assert english_parts(text) == text
    assert evidence(*[text] * 40).read


# Each is English, and says so with no or few function words.
WITH_OTHER_WORDS = [
    ("Terrie, female. https://en.wikipedia.org/wiki/X https://www.yelp.com/a?de=la", "female"),
    ("Contact: ana@mail.es or www.ana.es/en/la. Gender: male", "male"),
    ("She loves jalape\u00f1o tacos, pi\u00f1atas.", "female"),
    ("Her caf\u00e9 serves jalape\u00f1o poppers, cr\u00e8me fra\u00eeche.", "female"),
    ("She says \u201chola, c\u00f3mo est\u00e1s\u201d, smiles.", "female"),
    ("I \ufb01nished the \ufb01rst o\ufb03ce job; she did too.", "female"),  # letters of print: fi, ffi
    ("He met Osama bin Salem al Masri, Ali el Sayed.", "male"),
    (
        "Sex: male\nbe careful, always kind\n\u0935\u094d\u092f\u0915\u094d\u0924\u092f\u0947 \u0915\u093e",
        "male",
    ),
]


@pytest.mark.parametrize(("text", "gender"), WITH_OTHER_WORDS)
def test_addresses_loans_names_and_a_line_of_noise_are_not_another_language(text: str, gender: str) -> None:
    assert is_english(text) is not False
    assert associate_gender(text).gender == gender


def test_words_after_an_apostrophe_count_in_french_and_contractions_do_not() -> None:
    assert is_english("C'est l'infirmi\u00e8re qu'elle a vue.") is False
    assert is_english("L'air bon, l'an dernier.") is None  # no Latvian ir
    assert is_english("They've, we'll, he'd, you're.") is None


def test_names_and_lists_of_skills_are_not_another_language() -> None:
    lists = [
        "Maria Rossi. John Smith. Ana de la Cruz. Peter Novak. Maria van der Berg.",
        "Warm nurse kind bold.",
        "skills: python, kubernetes, docker, terraform, ansible, jenkins, pandas, numpy, typescript",
        "Skills: careful plan report work team patient morning letter quiet long street house. " * 4,
    ]
    for text in lists:
        assert is_english(text) is None
        assert evidence(*[text] * 30).read
    assert evidence().read
    assert evidence("", " ").n_foreign == 0


def test_a_text_without_a_list_of_its_language_is_told_by_how_little_of_it_is_english() -> None:
    # Article 1 of the Universal Declaration in Quechua, which is on no list.
    quechua = "runakunaqa kay pachapi libre nacen lliw derechonpipas iguallan hinaspa allin kawsayniyoq kanku"
    assert is_english(quechua) is False
    parts = [" ".join(quechua.split()[i : i + 3]) for i in range(0, 12, 3)]
    assert [is_english(part) for part in parts] == [None] * 4, "three words say too little"
    assert not evidence(*parts).read, "those that say too little are judged together"
    assert is_english("he finna pull up wit da squad n dem bois gon turnt up") is not False, "nor is slang"


def test_a_sentence_in_another_language_is_nobodys_and_keeps_its_place() -> None:
    spanish = " Le he dicho que he dirigido la oficina y he trabajado en Madrid."
    letter = f"I have led two of the projects for that team.{spanish} She, my manager, was happy with it."
    assert is_english(letter)
    found = associate_gender(letter)
    assert (found.gender, found.n_female, found.n_male) == ("female", 1, 0)
    assert [letter[p.start : p.end] for p in counted_places(letter)] == ["She,"]
    assert associate_gender(f"Cover letter for the position\n\n{spanish * 3}").gender is None


@given(
    st.lists(
        st.sampled_from(["she", "he", "her", "his", "they", "the", "la", "é", "\u0301", ".", "\n"])
        | st.text()
    )
)
def test_what_is_left_of_a_text_keeps_its_place_and_pronouns_change_no_judgement(pieces: list[str]) -> None:
    text = " ".join(pieces)
    left = english_parts(text)
    assert len(left) == len(text)
    assert all(new in (old, " ") for old, new in zip(text, left, strict=True))
    if any(
        piece.islower() and piece.isascii() for piece in pieces
    ):  # else a text in capitals begins to differ
        assert is_english(f"{text} he he her his") == is_english(text)


# --- in a run: X01, X02, X05, X06, X07 -------------------------------------------------------------------

IN_SPANISH = (
    "Estimados señores: durante años he trabajado con equipos y he dirigido {} proyectos en varias ciudades."
    " Creo que he aprendido lo suficiente para este puesto. Un saludo."
)


def test_letters_in_spanish_are_forty_texts_about_nobody(tmp_path: Path) -> None:
    result, row = shares_of([IN_SPANISH.format(n) for n in range(40)], tmp_path / "run")
    assert (row["n_texts"], row["n_not_inferred"], row["n_not_english"]) == (40, 40, 40)
    assert (row["n_male"], row["n_female"]) == (0, 0)
    assert row["reason"].startswith("no gender is inferred: 40 of 40 texts are in Spanish, for which")
    assert any("40 of 40 texts are in Spanish" in note for note in result.warnings)


def test_four_spanish_texts_among_forty_are_counted_as_such(tmp_path: Path) -> None:
    english = [f"{('He', 'She')[n % 2]} repaired {n} windows of the house by the river." for n in range(40)]
    result, row = shares_of([*english, *map(IN_SPANISH.format, range(4))], tmp_path / "run")
    assert (row["n_male"], row["n_female"], row["n_not_inferred"], row["n_not_english"]) == (20, 20, 4, 4)
    assert "4 of 44 texts not in English" in row["reason"]
    assert any("4 of 44 texts are not in English" in note for note in result.warnings)
    rules = result.table("genders")["rule_id"].tolist()
    assert (rules.count("not-english"), rules.count("male"), rules.count("female")) == (4, 20, 20)
    said = bk.report(tmp_path / "run", out=tmp_path / "page.html").findings
    assert any("4 of these not in English" in one.measured_with for one in said)


def test_one_long_text_does_not_outvote_twenty(tmp_path: Path) -> None:
    long = "En lang tekst om arbejde og hus og have, som ingen gider læse til ende. " * 3000
    english = [f"The nurse {n} was on the ward. {('She', 'He')[n % 2]} reads at {n}." for n in range(20)]
    _, row = shares_of([*english, long], tmp_path / "run")
    assert (row["n_female"], row["n_male"], row["n_not_english"]) == (10, 10, 1)


def test_short_texts_in_danish_are_judged_and_the_shortest_with_the_others(tmp_path: Path) -> None:
    danish = [
        "Her er jeg ikke.",
        "Her bor en mand og en kat.",
        "Vi ses her i morgen.",
        "Lægen er her også nu.",
    ]
    assert is_english("Vi ses her i morgen.") is None
    _, row = shares_of(danish * 5, tmp_path / "run")
    assert (row["n_female"], row["n_not_english"]) == (0, 20)
    assert row["reason"].startswith("no gender is inferred")


def test_names_alone_are_nobody_and_for_that_reason(tmp_path: Path) -> None:
    names = ["Maria Rossi", "John Smith", "Ana de la Cruz", "Peter Novak"] * 6
    texts = [f"{name}. Skills: careful plan report work team {n}. Born 1990." for n, name in enumerate(names)]
    result, row = shares_of(texts, tmp_path / "run")
    assert (row["n_not_inferred"], row["n_not_english"]) == (24, 0)
    assert "no text with an inferred gender" in row["reason"]
    assert not any("not in English" in note for note in result.warnings)


# --- real sentences ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "n_together", "least"),
    # Measured; of one sentence the rest says too little, and goes with the texts around it.
    [("de", 1, 0.90), ("es", 1, 0.95), ("fr", 1, 0.95), ("it", 1, 0.85), ("pt", 1, 0.90), ("ru", 1, 0.99)]
    + [(language, 3, 0.99) for language in ("de", "es", "fr", "it", "pt", "ru", "ar", "hi")],
)
def test_real_sentences_are_told_apart(language: str, n_together: int, least: float) -> None:
    path = SHARED / f"data/mt-geneval/{language}.csv"
    if not path.is_file():
        not_beside("MT-GenEval is not in ../shared/data")
    with path.open(encoding="utf-8", newline="") as file:
        sentences = [row["text"] for row in csv.DictReader(file) if row["gender"] == "female"]
    texts = [" ".join(sentences[i : i + n_together]) for i in range(0, len(sentences), n_together)]
    judged = [is_english(text) for text in texts]
    assert judged.count(False) >= least * len(texts)
    assert judged.count(True) <= 0.01 * len(texts)
    assert not evidence(*texts).read


def test_no_real_english_sentence_is_another_language() -> None:
    path = SHARED / "data/mt-geneval/en.csv"
    if not path.is_file():
        not_beside("MT-GenEval is not in ../shared/data")
    with path.open(encoding="utf-8", newline="") as file:
        sentences = [row["text"] for row in csv.DictReader(file)]
    assert not any(is_english(sentence) is False for sentence in sentences)


def test_a_tenth_of_a_models_texts_may_be_in_another_language() -> None:
    german = OTHERS["German"]
    said = []
    for n_german in (0, 2, 3):
        found = LanguageEvidence()
        for text in [*[ENGLISH] * (20 - n_german), *[german] * n_german]:
            found.add(text)
        said.append([found.english.read, *found.reading().notes("m")])
    assert said[0] == [True]
    assert said[1] == [True, "m: 2 of 20 texts are not in English: they count for nobody"]
    assert (said[2][0], said[2][1][:49]) == (False, "m: 17 of 20 texts are in English and 3 in German,")


def test_real_personas_are_english() -> None:
    path = SHARED / "data/personas_text-davinci-003.csv"
    if not path.is_file():
        not_beside("the personas of Cheng et al. are not in ../shared/data")
    with path.open(encoding="utf-8", newline="") as file:
        found = evidence(*(row["text"] for row in csv.DictReader(file)))
    assert (found.read, found.n_foreign) == (True, 0)


def test_spanish_texts_have_no_share_and_english_ones_beside_them_do(tmp_path: Path) -> None:
    texts = {
        "text": [OTHERS["Spanish"]] * 40
        + [ENGLISH, "He works in a mine, and they say that he sings. " * 5] * 20,
        "who": ["español"] * 40 + ["english"] * 40,
    }
    quick = {"vectors": "marked-lists", "permutations": 19, "clusters": False}
    result = bk.analyze_texts(texts, model="who", settings=quick, out=tmp_path / "run", watcher=bk.Silent())
    shares = {
        row["model"]: row for row in result.representation.to_dict("records") if row["template_id"] == "all"
    }
    assert shares["english"]["female_share"] == 0.5
    assert shares["español"]["reason"].startswith("no gender is inferred: 40 of 40 texts are in Spanish")
    assert shares["español"]["n_texts"] == shares["español"]["n_not_inferred"] == 40
    assert all(
        shares["español"][name] != shares["español"][name]
        for name in ("female_share", "share_if_dropped_male")
    )
    lists = result.word_lists.to_dict("records")
    assert {row["model"] for row in lists if row["origin"] == "inferred" and row["n_marked"]} <= {"english"}
    record = json.loads((tmp_path / "run/tables/analysis.json").read_text())
    assert record["languages"]["español"]["texts"] == {"es": 40}
    assert any("español" in note and "Spanish" in note for note in result.warnings)
    said = bk.report(tmp_path / "run", out=tmp_path / "page.html").findings
    assert any(one.text.startswith("Of your texts (english) that name a gender, 50 %") for one in said)
    assert any(one.text.startswith("40 of 40 texts are in Spanish, for which") for one in said)
