"""Vectors of several seeds: the same from one process and from many, kept or trained anew."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fakes.training_texts import Evil, equal, random_corpus, train_seeds

from biaskit.errors import UsageError
from biaskit.measures.personas.vectors import cache as module
from biaskit.measures.personas.vectors import training
from biaskit.measures.personas.vectors.training import TrainingTexts, Vectors, train


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the files, not there yet."""
    monkeypatch.setattr(module, "folder", lambda: tmp_path / "vectors")
    return tmp_path / "vectors"


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Seeds that are trained, in order; two epochs, since nothing depends on more."""
    found: list[int] = []

    def counted(corpus: TrainingTexts, *, seed: int, epochs: int) -> Vectors:
        found.append(seed)
        return train(corpus, seed=seed, epochs=epochs)

    monkeypatch.setattr(module, "train", counted)
    monkeypatch.setattr(TrainingTexts, "n_epochs", 2)
    return found


def test_what_is_kept_is_not_trained_again_and_is_the_same(place: Path, trained: list[int]) -> None:
    corpus = random_corpus()
    first = train_seeds(corpus, [1, 2])
    assert equal(first, [train(corpus, seed=seed, epochs=2) for seed in (1, 2)])
    assert equal(first, train_seeds(corpus, [2, 1])[::-1])
    assert [1, 2] == trained
    # Of more seeds only the new ones are trained, and their order is the caller's.
    more = train_seeds(corpus, [2, 7, 1])
    assert [1, 2, 7] == trained
    assert equal([more[2], more[0]], first)


def test_each_is_kept_when_it_is_given_and_what_nobody_asks_for_is_not(
    place: Path, trained: list[int]
) -> None:
    next(module.vectors_of_seeds(random_corpus(), [1, 2]))
    assert 1 == len(list(place.iterdir()))


@pytest.mark.process
def test_other_processes_train_the_same(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TrainingTexts, "n_epochs", 2)
    monkeypatch.setattr(module, "FEW_TOKENS", 0)
    monkeypatch.setattr("joblib.cpu_count", lambda: 2)
    corpus = random_corpus()
    found = train_seeds(corpus, [5, 1, 3])
    assert equal(found, [train(corpus, seed=seed, epochs=2) for seed in (5, 1, 3)])


@pytest.mark.parametrize("what", ["word", "order", "cut", "version", "settings"])
def test_other_texts_libraries_and_settings_are_trained(
    what: str, place: Path, trained: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = random_corpus()
    train_seeds(corpus, [1])
    if what == "word":
        corpus = replace(corpus, words=["another", *corpus.words[1:]])
    elif what == "order":
        corpus = replace(corpus, ids=corpus.ids[::-1].copy())
    elif what == "cut":
        corpus = replace(corpus, starts=corpus.starts[[0, 2, *range(3, len(corpus.starts))]])
    elif what == "version":
        monkeypatch.setattr(module, "versions", lambda: {"gensim": "0.1"})
    else:
        monkeypatch.setattr(training, "WINDOW", 6)
    train_seeds(corpus, [1])
    assert [1, 1] == trained


def _one_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def _of_another_size(path: Path) -> None:
    np.savez(path, matrix=np.ones((3, 100), dtype=np.float32))


def _of_doubles(path: Path) -> None:
    np.savez(path, matrix=np.ones((len(random_corpus().vocabulary()), 100)))


def _of_objects(path: Path) -> None:
    np.savez(path, matrix=np.array([Evil(path.with_name("trace"))], dtype=object))


def _pickled(path: Path) -> None:
    path.write_bytes(pickle.dumps(Evil(path.with_name("trace"))))


@pytest.mark.parametrize(
    "damage",
    [
        *(_one_bit, _of_another_size, _of_doubles, _of_objects, _pickled),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(b""),
        lambda path: (path.unlink(), os.mkfifo(path)),
    ],
)
def test_a_damaged_or_foreign_file_costs_a_training_and_nothing_else(
    damage: Callable[[Path], None], place: Path, trained: list[int]
) -> None:
    first = train_seeds(random_corpus(), [1])
    (own,) = place.iterdir()
    damage(own)
    assert equal(first, train_seeds(random_corpus(), [1]))
    assert [1, 1] == trained
    assert not own.with_name("trace").exists()


@pytest.mark.parametrize("fault", ["no home", "a file", "full"])
def test_without_a_folder_everything_is_trained(
    fault: str, place: Path, trained: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> Path:
        raise UsageError("This user has no home.") if fault == "no home" else OSError(28, "No space left")

    if fault == "a file":
        place.write_text("in the way")
    else:
        monkeypatch.setattr(module, "folder" if fault == "no home" else "write_atomically", fails)
    first, again = (train_seeds(random_corpus(), [1]) for _ in range(2))
    assert equal(first, again)
    assert [1, 1] == trained


def test_the_files_are_bounded_and_the_longest_unused_goes_first(
    place: Path, trained: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = random_corpus()
    train_seeds(corpus, [1])
    (first,) = place.iterdir()
    train_seeds(corpus, [2])
    (second,) = set(place.iterdir()) - {first}
    for age, path in enumerate((first, second)):
        os.utime(path, (1_000 + age, 1_000 + age))
    train_seeds(corpus, [1])  # used now
    size = first.stat().st_size
    monkeypatch.setattr(module, "MOST_KEPT", 2 * size + size // 2)
    train_seeds(corpus, [4])
    assert [True, False] == [path.exists() for path in (first, second)]
    # One that is larger than all that is kept is not written: it would put out everything else.
    monkeypatch.setattr(module, "MOST_KEPT", size // 2)
    train_seeds(corpus, [5])
    assert 2 == len(list(place.iterdir()))
