"""The shipped counts of the Brown corpus are NLTK's, and lists of words are shipped with their terms."""

from __future__ import annotations

import csv
import hashlib
import io
import runpy
import sys
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from needs import not_beside
from places import ROOT

from biaskit.common.files import data_dir
from biaskit.corpora.loaders import english_counts, load_word_counts, load_word_list
from biaskit.errors import CorpusError
from biaskit.measures.personas.design import resolve
from biaskit.measures.personas.study import PersonasStudy
from biaskit.study.config import load_as

NLTK_DATA = ROOT.parent / "shared" / "data" / "nltk_data"
SCRIPT = ROOT / "examples" / "build_brown_table.py"


@pytest.fixture
def nltk_path(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where NLTK looks for its corpora: nowhere until a test says so."""
    import nltk
    from nltk.corpus.reader import CategorizedTaggedCorpusReader

    fresh = nltk.corpus.LazyCorpusLoader(  # one that was read stays readable whatever the path says
        "brown", CategorizedTaggedCorpusReader, r"c[a-z]\d\d", cat_file="cats.txt", encoding="ascii"
    )
    path: list[str] = []
    monkeypatch.setattr(nltk.corpus, "brown", fresh)
    monkeypatch.setattr(nltk.data, "path", path)
    return path


def installed(name: str) -> Path:
    archive = NLTK_DATA / "corpora" / f"{name}.zip"
    if not archive.is_file():
        not_beside(
            f"NLTK's corpus {name} is not beside this checkout (shared/data/nltk_data/corpora/{name}.zip)"
        )
    return archive


# --- the counts ----------------------------------------------------------------------------------


def test_the_table_has_the_counts_that_methods_2_5_names() -> None:
    counts = english_counts()
    assert (1_161_192, 49_815, 69_971) == (sum(counts.values()), len(counts), counts["the"])
    assert {"it's", "i'm", ",", "``", "-ing", "$1,000"} <= counts.keys()  # punctuation stays
    assert all(word == word.lower() and count > 0 for word, count in counts.items())
    assert list(counts.items()) == sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


@pytest.mark.slow
def test_the_table_equals_the_corpus_of_nltk(nltk_path: list[str]) -> None:
    installed("brown")
    nltk_path.append(str(NLTK_DATA))
    assert english_counts("nltk") == english_counts("table")


def test_the_table_equals_the_files_of_the_corpus_read_without_nltk() -> None:
    counts: Counter[str] = Counter()
    with zipfile.ZipFile(installed("brown")) as archive:
        for name in archive.namelist():
            if len(Path(name).name) == 4:  # brown/ca01: tokens written word/tag
                words = (token.rpartition("/")[0] for token in archive.read(name).decode("ascii").split())
                counts.update(word.lower() for word in words)
    assert counts == english_counts()


def test_without_the_corpus_of_nltk_one_line_says_how_to_get_it(nltk_path: list[str]) -> None:
    with pytest.raises(CorpusError) as caught:
        english_counts("nltk")
    assert (
        "english_prior = nltk: NLTK's Brown corpus is not installed."
        " Run python -m nltk.downloader brown, or set english_prior = table."
    ) == str(caught.value)
    assert caught.value.__suppress_context__


def test_a_study_that_wants_the_corpus_of_nltk_looks_for_it_before_it_asks(nltk_path: list[str]) -> None:
    with pytest.raises(CorpusError, match="english_prior = nltk"):
        resolve(load_as(PersonasStudy, "gasp-pilot", {"english_prior": "nltk"}))


def test_a_corpus_of_nltk_that_was_half_downloaded_is_an_error_of_one_line(
    nltk_path: list[str], tmp_path: Path
) -> None:
    (tmp_path / "corpora").mkdir()
    (tmp_path / "corpora" / "brown.zip").write_bytes(b"PK\x03\x04 and no more")
    nltk_path.append(str(tmp_path))
    with pytest.raises(CorpusError, match=r"cannot be read: .*python -m nltk\.downloader brown") as caught:
        english_counts("nltk")
    assert "\n" not in str(caught.value)


# --- the script ----------------------------------------------------------------------------------


def run_script(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *arguments])
    runpy.run_path(str(SCRIPT), run_name="__main__")


@pytest.mark.slow
def test_the_script_writes_the_shipped_table_byte_for_byte(
    nltk_path: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed("brown")
    nltk_path.append(str(NLTK_DATA))
    run_script(str(tmp_path / "t.csv"), monkeypatch=monkeypatch)
    made = (tmp_path / "t.csv").read_bytes()
    assert (data_dir("corpora") / "brown" / "word-counts.csv").read_bytes() == made
    assert f"sha256 {hashlib.sha256(made).hexdigest()}" in capsys.readouterr().out


# --- what is shipped -----------------------------------------------------------------------------


def test_the_names_are_shipped_as_distributed_with_their_readme() -> None:
    with zipfile.ZipFile(installed("names")) as archive:
        for name in ("female.txt", "male.txt", "README"):
            assert archive.read(f"names/{name}") == (data_dir("corpora") / "names" / name).read_bytes()


# --- a user's own lists --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("w.txt", "Mary\n\n Dee Dee \nÉmile"),
        ("w.csv", "word,x\nMary,1\nDee Dee,2\nÉmile,3\n"),
        ("w.toml", '[[word]]\nword = "Mary"\n[[word]]\nword = "Dee Dee"\n[[word]]\nword = "Émile"\n'),
    ],
)
def test_a_list_of_words_keeps_order_and_spelling(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert ("Mary", "Dee Dee", "Émile") == load_word_list(tmp_path / name)


def test_an_empty_list_of_words_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "w.txt").write_text("\n \n")
    with pytest.raises(CorpusError, match=r"has no words\. Write at least one word"):
        load_word_list(tmp_path / "w.txt")


def test_counts_of_words_may_hold_commas_and_quotes(tmp_path: Path) -> None:
    table = io.StringIO(newline="")
    counts = {",": 5, '"': 4, 'a,"b': 3, "=x": 2, "'": 1}
    csv.writer(table).writerows([("word", "count"), *counts.items()])
    (tmp_path / "c.csv").write_text(table.getvalue(), encoding="utf-8", newline="")
    assert counts == load_word_counts(tmp_path / "c.csv")


@pytest.mark.parametrize(
    ("message", "content"),
    [
        ("does not begin with the header word,count", "count,word\n1,a\n"),
        ("does not begin with the header word,count", ""),
        ("line 3 is not a word and its count", "word,count\na,1\nb,x\n"),
        ("line 2 is not a word and its count", "word,count\na,1,2\n"),
        ("line 2 is not a word and its count", 'word,count\n"a,1\n'),
        ("line 2 is not a word and its count", 'word,count\n"a"b,1\n'),
    ],
)
def test_a_wrong_table_of_counts_says_where(tmp_path: Path, message: str, content: str) -> None:
    (tmp_path / "c.csv").write_text(content)
    with pytest.raises(CorpusError, match=message) as caught:
        load_word_counts(tmp_path / "c.csv")
    assert "\n" not in str(caught.value)


def test_a_table_of_counts_is_no_list_of_words() -> None:
    load: Any
    for load, source, held in (
        (load_word_list, "corpus:brown/word-counts.csv", "counts, not words"),
        (load_word_counts, "corpus:names/female.txt", "words, not counts"),
    ):
        with pytest.raises(CorpusError, match=f"{source} has {held}"):
            load(source)
