"""Which texts a person labels, and how probable it was to draw each (methods/representation#corrected)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from biaskit.common.files import write_or_refuse
from biaskit.common.inputs import Inputs
from biaskit.errors import RunError, UsageError
from biaskit.measures.personas.study import PersonasStudy
from biaskit.measures.personas.texts.documents import TextDocument, TextDocuments
from biaskit.stats.prediction_powered import FEWEST_LABELS
from biaskit.stats.resampling import generator

FOLDER = "labels"  # in a run's folder
Cell = tuple[str, str]  # model and occupation


class Stored(BaseModel):
    """A record in the folder of labels of a run."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    file: ClassVar[str]

    @classmethod
    def is_in(cls, run: Path) -> bool:
        """Tell whether a run has the record."""
        return (run / FOLDER / cls.file).is_file()

    def store(self, run: Path) -> None:
        """Write the record, in place of an earlier one."""
        write_or_refuse(run / FOLDER / self.file, self.model_dump_json().encode())

    @classmethod
    def stored_in(cls, run: Path) -> Self:
        """Read the record of a run. Raises `RunError` where it has none, or a changed one."""
        path = run / FOLDER / cls.file
        if not path.is_file():
            raise RunError(
                f"{path} is not there, and labels need it: draw texts with biaskit label, restore it,"
                " or take the labels out (analyze --labels none)."
            )
        try:
            return cls.model_validate_json(Inputs(RunError, most=2**28).content(path))
        except ValidationError as error:
            raise RunError(f"{path} is not as biaskit wrote it: restore it, or move it away.") from error


class Drawn(Stored):
    """The texts that were drawn, in the order of the sheet, and from how many."""

    file = "drawn.json"

    probability: dict[str, float] = {}  # key of a text → with which it was drawn
    n_texts: tuple[tuple[str, str, int], ...] = ()  # model, occupation, texts that could be drawn


def who_counts(documents: TextDocuments, study: PersonasStudy) -> list[TextDocument]:
    """List the texts of a share in representation.csv: no gender in the prompt, not refused or empty."""
    open_texts = [t for t in documents.texts if t.specified_gender is None and not (t.refused or t.empty)]
    batch = study.batch or study.per_gender
    return [text for text in open_texts if documents.imported or text.draw < batch]


def by_cell(texts: Iterable[TextDocument]) -> dict[Cell, list[TextDocument]]:
    """Group texts by model and occupation."""
    cells: dict[Cell, list[TextDocument]] = {}
    for text in texts:
        cells.setdefault((text.model, text.occupation), []).append(text)
    return cells


def draw(texts: Sequence[TextDocument], n: int, seed: int) -> Drawn:
    """Draw n texts at random, stratified by model, occupation and what the rules say.

    Each pair of model and occupation gets ten, as far as it has them. Then text after text goes to the
    stratum where it shortens an interval most (Neyman): those where the rules are silent get more.
    """
    cells = by_cell(texts)
    fewest = {cell: min(FEWEST_LABELS, len(of_cell)) for cell, of_cell in cells.items()}
    if not sum(fewest.values()) <= n <= len(texts):
        raise UsageError(
            f"--n {n} does not fit: this run has {len(texts):,} texts without a gender in the prompt, and at"
            f" least {sum(fewest.values()):,} are needed, {FEWEST_LABELS} for each model and occupation."
        )
    sizes = Counter((cell, text.gender) for cell, of_cell in cells.items() for text in of_cell)
    numbers = dict.fromkeys(sizes, 0)

    def gain(stratum: tuple[Cell, str | None]) -> float:
        # The variance W² s²/n of a stratum falls by W² s²/(n (n + 1)) with one label more.
        cell, gender = stratum
        spread = 0.2 if gender else 0.5  # standard deviation expected of the labels
        done = numbers[stratum]
        return (sizes[stratum] / len(cells[cell]) * spread) ** 2 / (done * (done + 1) or 1e-9)

    for cell, least in [*fewest.items(), (None, n - sum(fewest.values()))]:
        for _ in range(least):
            open_ones = [s for s in sizes if cell in (None, s[0]) and numbers[s] < sizes[s]]
            numbers[max(open_ones, key=gain)] += 1
    probability: dict[str, float] = {}
    for (cell, gender), size in sizes.items():
        keys = [text.key for text in cells[cell] if text.gender == gender]
        order = generator(seed, "labels", (*cell, str(gender))).permutation(size)[: numbers[cell, gender]]
        probability |= {keys[i]: len(order) / size for i in order.tolist()}
    shuffled = generator(seed, "labels", ("order",)).permutation([*probability]).tolist()
    return Drawn(
        probability={key: probability[key] for key in shuffled},
        n_texts=tuple((*cell, len(of_cell)) for cell, of_cell in cells.items()),
    )
