"""Which texts a person labels, and with which probability each was drawn (methods/representation#corrected)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from biaskit.common.files import write_or_refuse
from biaskit.common.inputs import Inputs
from biaskit.common.provenance import canonical_json
from biaskit.errors import RunError, UsageError
from biaskit.personas.texts.documents import TextDocument, TextDocuments
from biaskit.stats.prediction_powered import FEWEST_LABELS
from biaskit.stats.resampling import generator

FOLDER = "labels"  # in a run's folder
_DRAWN = "drawn.json"
_FILE = Inputs(RunError, most=2**28, remedy="Restore it from a copy.")
_SPREAD = {None: 0.5}  # standard deviation expected of the labels where the rules are silent, ...
_SPREAD_OF_GENDERS = 0.2  # ... and where they name a gender

Cell = tuple[str, str]
"""Model and occupation."""


def short_id(key: str) -> str:
    """Shorten the key of a text to what a sheet names it by."""
    return key[:12]


def who_counts(documents: TextDocuments, batch: int | None) -> list[TextDocument]:
    """List the texts that a share of representation.csv is about: no gender in the prompt, not refused or empty.

    `batch`: draws numbered so or higher do not enter; None of imported texts.
    """
    return [
        text
        for text in documents.texts
        if text.specified_gender is None
        and not (text.refused or text.empty)
        and (batch is None or text.draw < batch)
    ]


def by_cell(texts: Iterable[TextDocument]) -> dict[Cell, list[TextDocument]]:
    """Group texts by model and occupation."""
    cells: dict[Cell, list[TextDocument]] = {}
    for text in texts:
        cells.setdefault((text.model, text.occupation), []).append(text)
    return cells


@dataclass(frozen=True, slots=True)
class Drawn:
    """The texts that were drawn, in the order of the sheet, and of how many each was one."""

    seed: int
    probability: Mapping[str, float]  # key → with which the text was drawn
    n_texts: Mapping[Cell, int]  # texts of each cell that could be drawn

    def store(self, run: Path) -> None:
        """Put the record into the run's folder."""
        record = {
            "seed": self.seed,
            "texts": list(self.probability.items()),
            "cells": [[*cell, n] for cell, n in self.n_texts.items()],
        }
        write_or_refuse(run / FOLDER / _DRAWN, canonical_json(record).encode())


def read_drawn(run: Path) -> Drawn | None:
    """Read what was drawn of a run; None where nothing was."""
    path = run / FOLDER / _DRAWN
    if not path.is_file():
        return None
    stored: dict[str, Any] = _FILE.json(path)
    try:
        cells = {(str(model), str(occupation)): int(n) for model, occupation, n in stored["cells"]}
        return Drawn(int(stored["seed"]), {str(k): float(p) for k, p in stored["texts"]}, cells)
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{path} is not what biaskit wrote. Restore it from a copy.") from error


def draw(texts: Sequence[TextDocument], n: int, seed: int) -> Drawn:
    """Draw n texts at random, stratified by model, occupation and what the rules say.

    Each cell of model and occupation gets ten, as far as it has them; then each text goes to the stratum where
    it shortens the intervals most (Neyman): strata where the rules are silent get more.
    """
    cells = by_cell(texts)
    fewest = sum(min(FEWEST_LABELS, len(of_cell)) for of_cell in cells.values())
    if not fewest <= n <= len(texts):
        raise UsageError(
            f"--n {n:,} does not fit: this run has {len(texts):,} texts without a gender in the prompt, and its"
            f" {len(cells):,} pairs of model and occupation need {fewest:,} labels at least."
        )
    sizes = Counter((cell, text.gender) for cell, of_cell in cells.items() for text in of_cell)
    numbers = dict.fromkeys(sizes, 0)

    def add(strata: Sequence[tuple[Cell, str | None]], n: int) -> None:
        for _ in range(n):
            # The variance Σ W² s²/n of a cell falls by W² s²/(n (n + 1)) with one label more.
            numbers[max((s for s in strata if numbers[s] < sizes[s]), key=_gain)] += 1

    def _gain(stratum: tuple[Cell, str | None]) -> float:
        cell, gender = stratum
        part = sizes[stratum] / len(cells[cell]) * _SPREAD.get(gender, _SPREAD_OF_GENDERS)
        return part**2 / (numbers[stratum] * (numbers[stratum] + 1) or 1e-9)

    for cell, of_cell in cells.items():
        add([stratum for stratum in sizes if stratum[0] == cell], min(FEWEST_LABELS, len(of_cell)))
    add(list(sizes), n - fewest)
    probability: dict[str, float] = {}
    for cell, of_cell in cells.items():
        for gender in dict.fromkeys(text.gender for text in of_cell):
            keys = [text.key for text in of_cell if text.gender == gender]
            order = generator(seed, "labels", (*cell, str(gender))).permutation(len(keys))
            k = numbers[cell, gender]
            probability |= {keys[i]: k / len(keys) for i in order[:k].tolist()}
    shuffled = generator(seed, "labels", ("order",)).permutation(np.array([*probability]))
    return Drawn(
        seed,
        {key: probability[key] for key in shuffled.tolist()},
        {cell: len(of_cell) for cell, of_cell in cells.items()},
    )
