"""Tests of vectors that are kept: believed only where every byte is as it was written, and never needed."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fakes.training_texts import equal, random_corpus, train_seeds

from biaskit.errors import UsageError
from biaskit.vectors import kept as module
from biaskit.vectors.kept import kept_or_begun
from biaskit.vectors.seeds import Results, begin_training
from biaskit.vectors.training import TrainingTexts, Vectors


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the files, not there yet."""
    monkeypatch.setattr(module, "folder", lambda: tmp_path / "vectors")
    return tmp_path / "vectors"


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Seeds that were begun, in order; two epochs, since nothing depends on more."""
    found: list[int] = []

    @contextmanager
    def counted(corpus: TrainingTexts, *, seeds: Sequence[int]) -> Iterator[Results]:
        found.extend(seeds)
        with begin_training(corpus, seeds=seeds, epochs=2, processes=1) as results:
            yield results

    monkeypatch.setattr(module, "begin_training", counted)
    return found


def kept_or_trained(corpus: TrainingTexts, *, seeds: Sequence[int]) -> list[Vectors]:
    """Begin and ask at once."""
    with kept_or_begun(corpus, seeds=seeds) as results:
        return list(results(None))


def test_what_is_kept_is_not_trained_again_and_is_the_same(place: Path, trained: list[int]) -> None:
    corpus = random_corpus()
    first = kept_or_trained(corpus, seeds=[1, 2])
    assert [1, 2] == trained
    again = kept_or_trained(corpus, seeds=[2, 1])
    assert [1, 2] == trained
    assert equal(first, again[::-1])
    assert equal(first, train_seeds(corpus, seeds=[1, 2], epochs=2, processes=1))
    # Of more seeds only the new ones are trained, and their order is the caller's.
    more = kept_or_trained(corpus, seeds=[2, 7, 1])
    assert [1, 2, 7] == trained
    assert equal([more[2], more[0]], first)


def test_each_is_kept_when_it_is_given_and_what_nobody_asks_for_is_not(
    place: Path, trained: list[int]
) -> None:
    with kept_or_begun(random_corpus(), seeds=[1, 2]):
        pass
    assert not place.exists()
    with kept_or_begun(random_corpus(), seeds=[1, 2]) as results:
        next(results(None))
    assert 1 == len(list(place.iterdir()))
    kept_or_trained(random_corpus(), seeds=[1, 2])
    assert [1, 2, 1, 2, 2] == trained


def _other_word(corpus: TrainingTexts) -> TrainingTexts:
    return replace(corpus, words=["another", *corpus.words[1:]])


def _other_order(corpus: TrainingTexts) -> TrainingTexts:
    return replace(corpus, ids=corpus.ids[::-1].copy())


def _other_cut(corpus: TrainingTexts) -> TrainingTexts:
    return replace(corpus, starts=corpus.starts[[0, 2, *range(3, len(corpus.starts))]])


@pytest.mark.parametrize("change", [_other_word, _other_order, _other_cut])
def test_other_texts_are_trained(
    change: Callable[[TrainingTexts], TrainingTexts], place: Path, trained: list[int]
) -> None:
    kept_or_trained(random_corpus(), seeds=[1])
    kept_or_trained(change(random_corpus()), seeds=[1])
    assert [1, 1] == trained


@pytest.mark.parametrize("what", ["version", "settings", "format"])
def test_other_libraries_and_settings_are_trained(
    what: str, place: Path, trained: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept_or_trained(random_corpus(), seeds=[1])
    if what == "version":
        monkeypatch.setattr(module, "versions", lambda: {"gensim": "0.1"})
    elif what == "settings":
        monkeypatch.setattr("biaskit.vectors.training.WINDOW", 6)
    else:
        monkeypatch.setattr(module, "FORMAT", 0)
    kept_or_trained(random_corpus(), seeds=[1])
    assert [1, 1] == trained


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _one_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _nested(path: Path) -> None:
    path.write_bytes(b"[" * 100_000 + b"\n")


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.with_name("nowhere"))


def _of_another_seed(path: Path) -> None:
    other = next(one for one in path.parent.iterdir() if one != path)
    path.write_bytes(other.read_bytes())


def _of_another_size(path: Path) -> None:
    _signed(path, np.ones((3, 100), dtype=np.float32))


def _of_doubles(path: Path) -> None:
    _signed(path, np.ones((len(random_corpus().vocabulary()), 100)))


def _signed(path: Path, matrix: np.ndarray) -> None:
    with path.open("wb") as file:
        np.save(file, matrix)
    content = path.read_bytes()
    path.write_bytes(module._head(path.stem, content) + b"\n" + content)


FAULTS = [
    *(_cut, _one_bit, _empty, _nested, _folder, _pipe, _link),
    *(_of_another_seed, _of_another_size, _of_doubles),
]


@pytest.mark.parametrize("damage", FAULTS)
def test_a_damaged_or_foreign_file_costs_a_training_and_nothing_else(
    damage: Callable[[Path], None], place: Path, trained: list[int]
) -> None:
    corpus = random_corpus()
    first = kept_or_trained(corpus, seeds=[1, 2])
    (own,) = (place / f"{key}.vectors" for key in module._keys(corpus, [1]))
    damage(own)
    assert equal(first, kept_or_trained(corpus, seeds=[1, 2]))
    assert [1, 2, 1] == trained
    if damage not in (_folder, _pipe, _link):  # what no rename may replace stays, and costs the time again
        kept_or_trained(corpus, seeds=[1, 2])
        assert [1, 2, 1] == trained


class Evil:
    """Would leave a file behind if it were unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.path,))


def test_no_pickle_is_loaded(place: Path, trained: list[int], tmp_path: Path) -> None:
    corpus, trace = random_corpus(), tmp_path / "trace"
    first = kept_or_trained(corpus, seeds=[1])
    (own,) = place.iterdir()
    _signed(own, np.array([Evil(trace)], dtype=object))
    assert equal(first, kept_or_trained(corpus, seeds=[1]))
    content = pickle.dumps(Evil(trace))
    own.write_bytes(module._head(own.stem, content) + b"\n" + content)
    assert equal(first, kept_or_trained(corpus, seeds=[1]))
    assert not trace.exists()


@pytest.mark.parametrize("fault", ["no home", "a file", "full"])
def test_without_a_folder_everything_is_trained(
    fault: str, place: Path, trained: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    if fault == "no home":

        def nowhere() -> Path:
            raise UsageError("This user has no home.")

        monkeypatch.setattr(module, "folder", nowhere)
    elif fault == "a file":
        place.write_text("in the way")
    else:

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(module, "write_atomically", full)
    first, again = (kept_or_trained(random_corpus(), seeds=[1]) for _ in range(2))
    assert equal(first, again)
    assert [1, 1] == trained


def test_the_files_are_bounded_and_the_longest_unused_goes_first(
    place: Path, trained: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = random_corpus()
    kept_or_trained(corpus, seeds=[1, 2, 3])
    paths = [place / f"{key}.vectors" for key in module._keys(corpus, [1, 2, 3])]
    for age, path in enumerate(paths):
        os.utime(path, (1_000 + age, 1_000 + age))
    (place / "notes.txt").write_text("a user's own")
    kept_or_trained(corpus, seeds=[1])  # used now
    size = paths[0].stat().st_size
    monkeypatch.setattr(module, "MOST_KEPT", 3 * size + size // 2)
    kept_or_trained(corpus, seeds=[4])
    assert [True, False, True] == [path.exists() for path in paths]
    assert (place / "notes.txt").exists()
    # One that is larger than all that is kept is not written: it would put out everything else.
    monkeypatch.setattr(module, "MOST_KEPT", size // 2)
    kept_or_trained(corpus, seeds=[5])
    assert 4 == len(list(place.iterdir()))


def test_a_file_says_what_it_is(place: Path, trained: list[int]) -> None:
    kept_or_trained(random_corpus(), seeds=[1])
    (own,) = place.iterdir()
    head = json.loads(own.read_bytes().partition(b"\n")[0])
    assert own.stem == head["key"]
    assert {"key", "sha256"} == head.keys()
