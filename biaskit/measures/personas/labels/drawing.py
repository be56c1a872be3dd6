"""Which texts a person labels, and how probable it was to draw each (methods/representation#corrected)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from biaskit.common.files import write_or_refuse
from biaskit.common.inputs import Inputs
from biaskit.common.plain import group_by
from biaskit.errors import RunError, UsageError
from biaskit.measures.personas.study import PersonasStudy
from biaskit.measures.personas.texts.documents import TextDocument, TextDocuments
from biaskit.stats.prediction_powered import FEWEST_LABELS, FEWEST_OF_STRATUM
from biaskit.stats.resampling import generator

FOLDER = "labels"  # in a run's folder
CELL = attrgetter("model", "occupation")
"""Of a text: each of these has a share of its own."""
_PROMPT = attrgetter("model", "occupation", "template_id")


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
    open_texts = [t for t in documents.texts if t.requested_gender is None and not (t.refused or t.empty)]
    batch = study.batch or study.per_gender
    return [text for text in open_texts if documents.imported or text.sample < batch]


def draw(texts: Sequence[TextDocument], n: int, seed: int) -> Drawn:
    """Draw n texts at random, stratified by model, occupation, prompt and what the rules say.

    Each pair of model and occupation gets ten, shared by its prompts, which get five each at least, as far
    as it has them. Then text after text goes to the stratum where it shortens an interval most (Neyman):
    those where the rules are silent get more.
    """
    prompts = group_by(texts, _PROMPT)
    strata = group_by(chain.from_iterable(prompts.values()), lambda text: (_PROMPT(text), text.gender))
    n_prompts, fewest = Counter(prompt[:2] for prompt in prompts), {}
    for prompt, of_prompt in prompts.items():
        least = max(-(-FEWEST_LABELS // n_prompts[prompt[:2]]), FEWEST_OF_STRATUM)
        fewest[prompt] = min(least, len(of_prompt))
    if not sum(fewest.values()) <= n <= len(texts):
        raise UsageError(
            f"--n {n} does not fit: this run has {len(texts):,} texts without a gender in the prompt, and at"
            f" least {sum(fewest.values()):,} are needed, {FEWEST_LABELS} for each model and occupation and"
            f" {FEWEST_OF_STRATUM} for each of its prompts."
        )
    numbers = dict.fromkeys(strata, 0)

    def gain(stratum: tuple[Any, str | None]) -> float:
        # The variance W² s²/n of a stratum falls by W² s²/(n (n + 1)) with one label more.
        prompt, gender = stratum
        spread = 0.2 if gender else 0.5  # standard deviation expected of the labels
        done = numbers[stratum]
        return (len(strata[stratum]) / len(prompts[prompt]) * spread) ** 2 / (done * (done + 1) or 1e-9)

    for one, least in [*fewest.items(), (None, n - sum(fewest.values()))]:
        for _ in range(least):
            open_ones = [s for s in strata if one in (None, s[0]) and numbers[s] < len(strata[s])]
            numbers[max(open_ones, key=gain)] += 1
    probability: dict[str, float] = {}
    for (prompt, gender), of_stratum in strata.items():
        order = generator(seed, "labels", (*prompt, str(gender))).permutation(len(of_stratum))
        for i in order[: numbers[prompt, gender]].tolist():
            probability[of_stratum[i].key] = numbers[prompt, gender] / len(of_stratum)
    shuffled = generator(seed, "labels", ("order",)).permutation([*probability]).tolist()
    return Drawn(
        probability={key: probability[key] for key in shuffled},
        n_texts=tuple((*cell, len(of_cell)) for cell, of_cell in group_by(texts, CELL).items()),
    )
