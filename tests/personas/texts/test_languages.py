"""Languages: each rule by its own examples, sentences of ours, recognition, a language from a folder."""

from __future__ import annotations

import ast
import csv
import tomllib
from pathlib import Path
from typing import Any

import pytest
from needs import not_beside
from places import ROOT, SHARED

import biaskit as bk
from biaskit.common.files import data_dir
from biaskit.corpora.languages import Language, shipped_languages
from biaskit.errors import CorpusError, UsageError
from biaskit.measures.personas.texts.association import associate_gender, counted_places
from biaskit.measures.personas.texts.recognition import LanguageEvidence

LANGUAGES = shipped_languages()
RULES = [(code, rule.id) for code, one in LANGUAGES.items() for rule in one.not_counted]
OURS = tomllib.loads(Path(__file__).with_name("sentences.toml").read_text("utf-8"))
SENTENCES = [
    (code, gender, text)
    for code, of_gender in OURS.items()
    for gender, texts in of_gender.items()
    for text in texts
]
FOREIGN = ("de", "fr", "pt", "ru")


@pytest.mark.parametrize(("code", "rule_id"), RULES)
def test_a_rule_leaves_out_its_own_example_and_not_the_other(code: str, rule_id: str) -> None:
    one = LANGUAGES[code]
    (rule,) = [rule for rule in one.not_counted if rule.id == rule_id]
    others = [other for other in one.not_counted if other is not rule]
    without = Language.model_validate(
        {**one.model_dump(exclude={"rules"}), "not_counted": [other.model_dump() for other in others]}
        | {"rule": [each.model_dump() for each in one.rules]}
    )
    n = {}
    for name, text in (("left_out", rule.left_out), ("counts", rule.counts)):
        n[name] = [len(counted_places(text, language=read)) for read in (one, without)]
    assert n["left_out"][0] < n["left_out"][1], "without the rule a word counts"
    assert n["counts"][0] == n["counts"][1] > 0, "the rule leaves this one alone"
    assert len(rule.reason) > 20


def test_there_are_forty_sentences_of_each_language_a_quarter_about_nobody() -> None:
    assert tuple(OURS) == FOREIGN
    for of_gender in OURS.values():
        assert sum(map(len, of_gender.values())) == 40
        assert len(of_gender["none"]) >= 10


@pytest.mark.parametrize(("code", "gender", "text"), SENTENCES)
def test_a_sentence_of_ours_has_its_gender(code: str, gender: str, text: str) -> None:
    found = associate_gender(text, language=code)
    assert (found.gender or "none") == gender
    places = [place.counts_as for place in counted_places(text, language=code)]
    assert places.count("female") == found.n_female
    assert places.count("male") == found.n_male


@pytest.mark.parametrize("code", FOREIGN)
def test_a_language_has_rates_limits_and_no_reader_yet(code: str) -> None:
    one = LANGUAGES[code]
    assert one.offers == ["represented"]
    assert one.measured
    assert float(one.measured["right"]) > 0.99
    assert one.traps
    assert one.read_by == ""


def test_an_unknown_language_is_one_line_that_lists_those_with_rules() -> None:
    for name in ("nl", "deutsch", "es"):
        with pytest.raises(UsageError, match="en, fr, pt, ru") as caught:
            associate_gender("Zij leest.", language=name)
        assert "\n" not in str(caught.value)
    assert "Spanish has no rules: its texts often name no subject" in str(caught.value)


# --- which language -------------------------------------------------------------------------------------


def pairs_of(code: str) -> list[dict[str, str]]:
    path = SHARED / f"data/mt-geneval/{code}.csv"
    if not path.is_file():
        not_beside("MT-GenEval is not in ../shared/data, and may not be shipped")
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("code", ["de", "fr", "pt", "ru", "es", "it", "ar", "hi"])
def test_real_texts_are_recognised_by_the_largest_share_of_function_words(code: str) -> None:
    texts = [row["text"] for row in pairs_of(code) if row["gender"] == "female"]
    found = LanguageEvidence()
    for i in range(0, len(texts), 3):
        found.add(" ".join(texts[i : i + 3]))
    reading = found.reading()
    expected = code if code in FOREIGN else None
    assert (reading.language and reading.language.code) == expected
    assert reading.texts[code if code in LANGUAGES else ""] >= 0.98 * sum(reading.texts.values())


@pytest.mark.parametrize("code", FOREIGN)
def test_imitated_texts_have_the_rates_that_are_promised(code: str) -> None:
    rows = [row for row in pairs_of(code) if row["pronoun"] == "yes"]
    found = [(row["gender"], associate_gender(row["text"], language=code).gender) for row in rows]
    decided = [pair for pair in found if pair[1] is not None]
    right = [gender == said for gender, said in decided]
    least = {"de": 0.93, "fr": 0.78, "pt": 0.79, "ru": 0.87}[code]
    assert len(decided) >= least * len(found)
    assert sum(right) >= 0.99 * len(right)


# --- a file -------------------------------------------------------------------------------------------


def share_in(texts: list[str], run: Path, **options: Any) -> tuple[Any, dict[str, Any]]:
    result = bk.analyze_texts(texts, out=run, watcher=bk.Silent(), **options)
    (row,) = [row for row in result.representation.to_dict("records") if row["template_id"] == "all"]
    return result, row


def test_a_german_file_gets_a_share_and_says_by_which_rules(tmp_path: Path) -> None:
    texts = [*OURS["de"]["female"], *OURS["de"]["male"]]
    result, row = share_in(texts, tmp_path / "run")
    assert (row["language"], row["n_not_english"]) == ("de", 0)
    assert row["female_share"] == len(OURS["de"]["female"]) / len(texts)
    titles = [table.title for table in result.document().tables]
    assert titles[0] == "By word rules for German"
    assert titles[1].startswith("Who is represented")
    assert "they decide 97 % and are right in 99.5 %" in result.document().tables[0].note
    _, refused = share_in(texts, tmp_path / "fr", language="fr")
    assert "texts are in German, and not in French" in refused["reason"]


def test_what_needs_english_words_ends_in_one_line(tmp_path: Path) -> None:
    texts = [{"text": text, "who": "a" * (n % 2) + "b"} for n, text in enumerate(OURS["de"]["female"] * 2)]
    with pytest.raises(UsageError, match="compares words, which are read in English only"):
        bk.analyze_texts(texts, group_col="who", out=tmp_path / "run", watcher=bk.Silent())


TOY = """
code = "tk"
name = "Toki"
offers = ["represented"]
function_words = "li e la lon pi tawa"

[words]
female = "wana"
male = "kulo"
"""


def test_a_language_in_a_folder_of_ones_own_gives_a_share(tmp_path: Path) -> None:
    folder = tmp_path / "language-tk"
    folder.mkdir()
    (folder / "language.toml").write_text(TOY, "utf-8")
    texts = ["wana li moku e kili lon tomo pi jan", "kulo li lape lon supa la ona", "wana li tawa e ma la"]
    result, row = share_in(texts, tmp_path / "run", language=str(folder))
    assert row["female_share"] == pytest.approx(2 / 3)
    said = [one.text for one in bk.report(result, out=tmp_path / "p.html").findings]
    assert "Your texts are read by word rules for Toki, whose errors are not measured." in said
    (folder / "language.toml").write_text(TOY.replace('female = "wana"', 'female = "kili"'), "utf-8")
    assert share_in(texts, tmp_path / "other", language=str(folder))[1]["female_share"] != row["female_share"]
    (folder / "language.toml").write_text(f'{TOY}\n[avoided]\nalso = "("\n', "utf-8")
    with pytest.raises(CorpusError, match="no regular expression"):
        associate_gender("wana", language=str(folder))


def test_the_code_holds_no_word_of_a_language() -> None:
    folder = ROOT / "biaskit/measures/personas/texts"
    for name in ("association", "english", "copies", "recognition"):
        tree = ast.parse((folder / f"{name}.py").read_text("utf-8"))
        constants = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        assert not constants & {
            "she",
            "he",
            "him",
            "ms",
            "ms.",
            "Mr",
            "non-binary",
            "they/them",
            "sie",
            "the",
        }
    assert sum(path.stat().st_size for path in data_dir("corpora").glob("language-[!e]*/*")) < 25_000
