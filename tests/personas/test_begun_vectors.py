"""Vectors are begun where SRB or clusters may need them, trained beside the lists, and asked for last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.personas_runs import ASKED, NAMED, OPEN, story, table, write_texts, write_vectors

from biaskit.personas import analysis
from biaskit.personas.srb import run_scores
from biaskit.progress import Silent
from biaskit.tables.sets import read_set
from biaskit.vectors.seeds import Results
from biaskit.vectors.training import TrainingProgress, TrainingTexts, Vectors
from biaskit.workflow.analyze import analyse
from biaskit.workflow.imported import import_texts

NAMED_TEXTS = [
    {"text": story(gender, NAMED[job][gender], i), "gender": gender, "job": job}
    for job in ("nurse", "cook")
    for i in range(6)
    for gender in ASKED
]
OPEN_TEXTS = [
    {"text": story(gender, words, i), "gender": "", "job": "nurse"}
    for i in range(6)
    for gender, words in OPEN["nurse"].items()
]
OF_NOBODY = [{"text": "A quiet day of work.", "gender": "", "job": "nurse"} for _ in range(6)]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happens, in order; vectors are random ones."""
    events: list[str] = []

    @contextmanager
    def begin(corpus: TrainingTexts, *, seeds: Sequence[int]) -> Iterator[Results]:
        def results(progress: TrainingProgress | None) -> Iterator[Vectors]:
            words = corpus.vocabulary()
            for seed in seeds:
                events.append(f"seed {seed}")
                yield Vectors.of(words, np.random.default_rng(seed).normal(size=(len(words), 20)))

        events.append("begun")
        yield results
        events.append("ended")

    clusters = analysis.cluster_tables

    def noted(*arguments: Any) -> Any:
        events.append("clusters")
        arguments[4].append("a note of clusters")
        return clusters(*arguments)

    monkeypatch.setattr(run_scores, "kept_or_begun", begin)
    monkeypatch.setattr(analysis, "cluster_tables", noted)
    return events


class Listening(Silent):
    """Notes each kind of progress once."""

    def __init__(self, events: list[str]) -> None:
        self._events = events

    def progress(self, label: str, done: int, total: int) -> None:
        if label not in self._events:
            self._events.append(label)


def run_of(texts: Sequence[dict[str, str]], folder: Path, **settings: Any) -> Path:
    quick = {"vectors": "corpus", "srb_seeds": "1-2", "permutations": 19, "k": 3, **settings}
    path = write_texts(folder / "texts.csv", texts)
    return import_texts(
        path, gender_col="gender", occupation_col="job", settings=quick, out=folder / "run"
    ).path


def test_lists_are_made_beside_the_training_and_clusters_beside_that_of_later_seeds(
    seen: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysis, "score_notes", lambda _: ["a note of scores"])
    run = run_of([*NAMED_TEXTS, *OPEN_TEXTS], tmp_path)
    seen.clear()
    notes = analyse(run, watcher=Listening(seen))
    beside = ["begun", "word lists", "held-out texts"]
    assert [*beside, "seed 1", "clusters", "seed 2", "SRB scores", "ended"] == seen
    assert ["a note of scores", "a note of clusters"] == [note for note in notes if "a note" in note]
    assert {"vectors", "vectors_name", "clusters"} < read_set(run).analysis.keys()
    assert any(row["srb_seed_sd"] for row in table(run, "srb")), "scored by both seeds"


@pytest.mark.parametrize(
    ("texts", "settings", "expected"),
    [
        ([*NAMED_TEXTS, *OPEN_TEXTS], {"clusters": False}, ["begun", "seed 1", "seed 2", "ended"]),
        (OPEN_TEXTS, {}, ["begun", "seed 1", "clusters", "seed 2", "ended"]),
        (OPEN_TEXTS, {"clusters": False}, []),
        (NAMED_TEXTS, {}, []),
        (OF_NOBODY, {}, ["begun", "ended"]),  # known when the lists are made
    ],
)
def test_vectors_are_begun_where_they_may_be_needed_and_asked_for_where_they_are(
    texts: list[dict[str, str]],
    settings: dict[str, Any],
    expected: list[str],
    seen: list[str],
    tmp_path: Path,
) -> None:
    run = run_of(texts, tmp_path, **settings)
    assert expected == seen
    assert ("seed 1" in seen) == ("vectors" in read_set(run).analysis)


def test_vectors_of_others_are_not_begun(seen: list[str], tmp_path: Path) -> None:
    run = run_of([*NAMED_TEXTS, *OPEN_TEXTS], tmp_path, vectors=write_vectors(tmp_path / "vectors.txt"))
    analyse(run, {"vectors": "marked-lists"})
    assert ["clusters", "clusters"] == seen
