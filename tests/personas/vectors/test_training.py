"""Tests of word vectors: what they depend on, in one process and in two, and files of every kind."""

from __future__ import annotations

import gzip
import hashlib
import pickle
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from fakes.training_texts import Evil, random_corpus, train_seeds
from numpy.typing import NDArray

from biaskit.errors import UsageError
from biaskit.measures.personas.vectors.files import load_pretrained
from biaskit.measures.personas.vectors.training import (
    LONGEST_SENTENCE,
    TrainingTexts,
    Vectors,
    median_cosine,
    train,
    train_on_lists,
)

SINGLE = 1e-6  # of a float32


# --- what vectors depend on ----------------------------------------------------------------------


def test_training_is_word2vec_with_the_documented_choices() -> None:
    from gensim.models import Word2Vec

    corpus = random_corpus()
    found = train(corpus, seed=3, epochs=2)
    model = Word2Vec(
        list(corpus),
        vector_size=100,
        window=5,
        min_count=1,
        workers=1,
        seed=3,
        epochs=2,
        sg=0,
        negative=5,
    )
    assert sorted(model.wv.key_to_index) == list(found.words)
    for word, row in found.words.items():
        assert found.matrix[row] == pytest.approx(model.wv.get_vector(word, norm=True), abs=SINGLE)


def test_seeds_orders_and_epochs_make_other_vectors() -> None:
    corpus = random_corpus()
    turned = TrainingTexts.ordered(corpus.words, corpus.ids, corpus.starts, range(59, -1, -1))

    def trained(of: TrainingTexts = corpus, seed: int = 1, epochs: int = 2) -> bytes:
        return train(of, seed=seed, epochs=epochs).matrix.tobytes()

    assert trained() == trained()
    assert 4 == len({trained(), trained(seed=2), trained(epochs=3), trained(turned)})


@pytest.mark.parametrize(
    ("n_tokens", "epochs"),
    [(0, 5), (1_000_000, 5), (999_999, 6), (146_166, 35), (6_300_000, 5), (5_000, 1_000)],
)
def test_epochs_reach_five_million_tokens_and_are_at_least_five(n_tokens: int, epochs: int) -> None:
    # methods/srb#word-vectors: max(5, ceil(5,000,000 / tokens)).
    corpus = TrainingTexts(["a"], np.zeros(n_tokens, np.int32), np.array([0, n_tokens]))
    assert epochs == corpus.n_epochs


def test_a_corpus_without_words_has_no_vectors() -> None:
    empty = TrainingTexts.ordered(("a",), np.array([0], np.int32), np.array([0, 0, 1]), [0])
    assert 0 == empty.n_tokens
    found = train_seeds(empty, [1, 2])
    assert [0, 0] == [len(vectors) for vectors in found]
    assert [] == found[0].rows(["a"])[1]


# --- texts as sentences --------------------------------------------------------------------------


def test_texts_are_taken_in_the_given_order_without_the_empty_ones() -> None:
    ids, starts = np.array([0, 1, 2, 0], np.int32), np.array([0, 2, 2, 3, 4])
    corpus = TrainingTexts.ordered(["a", "b", "c"], ids, starts, [3, 1, 0])
    assert [["a"], ["a", "b"]] == list(corpus)
    assert 3 == corpus.n_tokens


def test_no_sentence_is_longer_than_gensim_reads() -> None:
    ids = np.arange(2 * LONGEST_SENTENCE + 1, dtype=np.int32) % 7
    corpus = TrainingTexts(list("abcdefg"), ids, np.array([0, ids.size]))
    pieces = list(corpus)
    assert [LONGEST_SENTENCE, LONGEST_SENTENCE, 1] == [len(piece) for piece in pieces]
    assert [corpus.words[i] for i in ids.tolist()] == [word for piece in pieces for word in piece]


def cosine_to_start(sentences: Iterable[list[str]], corpus: TrainingTexts, word: str) -> float:
    """Cosine of a word's trained vector and the one gensim starts from."""
    found = train(sentences, seed=1, epochs=5)
    counts = np.bincount(corpus.ids, minlength=len(corpus.words))
    first = {i: place for place, i in reversed(list(enumerate(corpus.ids.tolist())))}
    by_count = sorted(range(len(corpus.words)), key=lambda i: (-counts[i], -first[i]))
    start = np.random.default_rng(1).random((len(counts), 100), dtype=np.float32) * 2 - 1
    row = start[by_count.index(list(corpus.words).index(word))]
    return float(row @ found.rows([word])[0][0] / np.linalg.norm(row))


def test_a_word_that_stands_only_after_token_10000_has_a_trained_vector() -> None:
    # So many words that gensim skips none of them for being frequent: only words it reads count.
    ids = np.random.default_rng(0).permutation(30_000).astype(np.int32) % 3_000
    ids[LONGEST_SENTENCE + 1 :: 40] = 3_000
    corpus = TrainingTexts([*(f"w{i:04d}" for i in range(3_000)), "xlate"], ids, np.array([0, ids.size]))
    assert cosine_to_start(corpus, corpus, "xlate") < 0.9
    # Fed whole, the word stays where gensim put it at the start.
    whole = [[word for piece in corpus for word in piece]]
    assert cosine_to_start(whole, corpus, "xlate") == pytest.approx(1.0, abs=SINGLE)


def test_lists_of_marked_words_are_sentences() -> None:
    found = train_on_lists([["she", "nurse"], [], ["he", "nurse", "mechanic"]])
    assert ["he", "mechanic", "nurse", "she"] == list(found.words)
    assert [] == list(train_on_lists([]).words)


# --- words and their vectors ---------------------------------------------------------------------


def test_rows_are_unit_vectors_in_double_precision_with_the_words_they_belong_to() -> None:
    raw = np.random.default_rng(0).normal(size=(5, 9)).astype(np.float32)
    found = Vectors.from_rows(list("abcde"), raw)
    assert np.float32 == found.matrix.dtype
    matrix, known = found.rows(["e", "x", "b", "y"])
    assert ["e", "b"] == known
    assert np.float64 == matrix.dtype
    assert np.linalg.norm(matrix, axis=1) == pytest.approx(1.0, abs=1e-15)
    assert matrix[0] == pytest.approx(raw[4] / np.linalg.norm(raw[4]), abs=SINGLE)
    assert (0, 9) == found.rows(["x"])[0].shape


def test_a_vector_of_zeros_is_no_vector() -> None:
    found = Vectors.from_rows(["a", "b", "c"], [[1, 0], [0, 0], [0, 2]])
    assert {"a": 0, "c": 1} == found.words
    assert [[1.0, 0.0], [0.0, 1.0]] == found.matrix.tolist()
    assert "b" not in found


def test_the_median_cosine_is_that_of_different_words() -> None:
    # Three words at 0°, 60°, 120°: cosines 0.5, 0.5, -0.5 of pairs; a word with itself would give 1.
    angles = np.radians([0, 60, 120])
    plane = Vectors.from_rows(list("abc"), np.stack([np.cos(angles), np.sin(angles)], axis=1))
    assert pytest.approx(0.5) == median_cosine(plane, np.random.default_rng(0))
    opposite = Vectors.from_rows(["a", "b"], [[1.0, 0.0], [-1.0, 0.0]])
    for seed in range(20):
        assert pytest.approx(-1.0) == median_cosine(opposite, np.random.default_rng(seed))
    random = Vectors.from_rows([f"w{i}" for i in range(200)], np.random.default_rng(1).normal(size=(200, 50)))
    assert abs(median_cosine(random, np.random.default_rng(0)) or 1.0) < 0.02
    assert median_cosine(random, np.random.default_rng(2)) == median_cosine(random, np.random.default_rng(2))
    assert median_cosine(Vectors.from_rows(["a"], [[1.0]]), np.random.default_rng(0)) is None


# --- files ---------------------------------------------------------------------------------------

WORDS = ["apple", "né", "straße", "the", "zebra"]


@pytest.fixture(scope="module")
def matrix() -> NDArray[np.float32]:
    return np.random.default_rng(8).normal(size=(len(WORDS), 4)).astype(np.float32)


def write(path: Path, matrix: NDArray[np.float32], form: str) -> Path:
    """As gensim writes it."""
    from gensim.models import KeyedVectors

    kept = KeyedVectors(matrix.shape[1])
    kept.add_vectors(WORDS, matrix)
    kept.save_word2vec_format(str(path), binary=form == "binary", write_header=form != "glove")
    return path


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("form", ["text", "binary", "glove"])
def test_a_file_gives_the_vectors_of_the_wanted_words_alone(
    form: str, suffix: str, matrix: NDArray[np.float32], tmp_path: Path
) -> None:
    path = write(tmp_path / "vectors", matrix, form)
    if suffix:
        path = path.rename(f"{path}{suffix}")
        path.write_bytes(gzip.compress(path.read_bytes()))
    found = load_pretrained(path, {"zebra", "né", "unicorn"})
    assert ["né", "zebra"] == list(found.words)
    expected = matrix[[1, 4]] / np.linalg.norm(matrix[[1, 4]], axis=1, keepdims=True)
    assert found.matrix == pytest.approx(expected, abs=SINGLE)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == found.digest
    assert 0 == len(load_pretrained(path, ["unicorn"]))


@pytest.mark.parametrize(
    ("content", "word", "expected"),
    [  # word2vec.c ends lines with a space; Windows with CR
        (b"2 2\na 1.0 0.0 \nb 0.0 2e-3 \n", "b", [0, 1]),
        (b"2 2\r\na 1.0 0.0\r\nb 3 4\r\n", "b", [0.6, 0.8]),
        (b"a 1 0\nb 3 4\n", "b", [0.6, 0.8]),
        (b"2 2\na 1 0\na 0 1\n", "a", [1, 0]),
    ],
)
def test_the_forms_that_others_write_are_read(
    content: bytes, word: str, expected: list[float], tmp_path: Path
) -> None:
    path = tmp_path / "vectors.txt"
    path.write_bytes(content)
    assert load_pretrained(path, {word}).rows([word])[0][0] == pytest.approx(expected, abs=SINGLE)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello\n",
        b"3 4",
        b"2 3\na 1 0 0\nb 1 0\n",
        b"2 2\na 1 0\nb 1 2 3\n",
        b"3 2\na 1 0\nb 0 1\n",
        b"2 2\na 1 0\nb 0 x\n",
        b"2 2\na 1 0\nb 0 nan\n",
        b"2 2\na \x00\x00\x80\x3f\x00\x00\x00\x00b \x00\x00",
        b"PK\x03\x04rest",
        b"\xba\x16\x4f\x2f\x0c",
    ],
)
def test_a_broken_file_is_one_line_that_names_it(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        load_pretrained(path, {"a", "b"})
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_is_never_loaded(protocol: int, tmp_path: Path) -> None:
    path, trace = tmp_path / "vectors.model", tmp_path / "trace"
    path.write_bytes(pickle.dumps(Evil(trace), protocol=protocol))
    with pytest.raises(UsageError):
        load_pretrained(path, {"a"})
    # An array of objects is a pickle inside.
    np.save(tmp_path / "vectors.npy", np.array([Evil(trace)], dtype=object))
    with pytest.raises(UsageError):
        load_pretrained(tmp_path / "vectors.npy", {"a"})
    assert not trace.exists()
