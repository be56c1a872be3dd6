"""Vectors are begun where SRB or clusters may need them, and asked for where a list has a word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.personas_runs import ASKED, NAMED, OPEN, story, table, write_texts, write_vectors

from biaskit.personas.srb import run_scores
from biaskit.personas.vectors.training import TrainingTexts, Vectors
from biaskit.tables.sets import read_set
from biaskit.workflow.imported import analyze_texts

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
TRAINED = ["begun", "seed 1", "seed 2", "ended"]


@pytest.mark.parametrize(
    ("texts", "settings", "expected"),
    [
        ([*NAMED_TEXTS, *OPEN_TEXTS], {"clusters": False}, TRAINED),
        (OPEN_TEXTS, {}, TRAINED),
        (OPEN_TEXTS, {"clusters": False}, []),
        (NAMED_TEXTS, {}, []),
        (OF_NOBODY, {}, ["begun", "ended"]),  # known when the lists are made
        (NAMED_TEXTS, {"vectors": "marked-lists"}, []),
    ],
)
def test_vectors_are_begun_where_they_may_be_needed_and_asked_for_where_they_are(
    texts: list[dict[str, str]],
    settings: dict[str, Any],
    expected: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str] = []

    @contextmanager
    def training(corpus: TrainingTexts, seeds: Sequence[int]) -> Iterator[Iterator[Vectors]]:
        def models() -> Iterator[Vectors]:
            words = corpus.vocabulary()
            for seed in seeds:
                seen.append(f"seed {seed}")
                yield Vectors.of(words, np.random.default_rng(seed).normal(size=(len(words), 20)))

        seen.append("begun")
        yield models()
        seen.append("ended")

    monkeypatch.setattr(run_scores, "training", training)
    quick = {"vectors": "corpus", "srb_seeds": "1-2", "permutations": 19, "k": 3, **settings}
    path = write_texts(tmp_path / "texts.csv", texts)
    columns = {"gender": "gender", "occupation": "job"}
    run = analyze_texts(path, **columns, settings=quick, out=tmp_path / "run").path
    assert expected == seen
    assert ("seed 1" in seen) == ("vectors" in read_set(run).analysis)
    if texts == [*NAMED_TEXTS, *OPEN_TEXTS]:
        assert any(row["srb_seed_sd"] for row in table(run, "srb")), "scored by both seeds"


def test_vectors_of_a_file_are_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_scores, "training", None)
    path = write_texts(tmp_path / "texts.csv", [*NAMED_TEXTS, *OPEN_TEXTS])
    settings = {"vectors": write_vectors(tmp_path / "vectors.txt"), "permutations": 19, "k": 3}
    run = analyze_texts(path, gender="gender", occupation="job", settings=settings, out=tmp_path / "r")
    assert any(row["vectors"].startswith("pretrained:") for row in table(run.path, "srb"))
