"""One model's cells as requests: the product is counted, and a cell is put together when it is looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from operator import attrgetter, itemgetter
from typing import Any

from biaskit.common.sequences import Computed
from biaskit.measures.probe.design import ProbeDesign
from biaskit.measures.probe.prompts import CELL, Placed, build_prompt, cell_at, cell_key, model_key, product
from biaskit.models.entry import ModelEntry
from biaskit.records import Prompt, PromptCell, PromptFormat, ScoreRequest
from biaskit.runs.shards import WHOLE, Shard

_of_cell, _of_row = attrgetter(*CELL), itemgetter(*CELL)


class PlannedCells:
    """Every cell of one model with its request, in study order, or a shard's; needs no model."""

    def __init__(
        self,
        design: ProbeDesign,
        label: str,
        prompt_format: PromptFormat,
        fingerprint: str,
        estimator: object = "exact",
        shard: Shard = WHOLE,
    ) -> None:
        self._design, self._label, self._format = design, label, prompt_format
        self.model_key = model_key(fingerprint, design.study, estimator)
        self._fingerprint, self._estimator = fingerprint, estimator
        self._own = shard.places(design.n_prompts)
        self.cells: Computed[PromptCell] = Computed(len(self._own), lambda place: self._at(place)[0])
        self.prompts: Computed[Prompt] = Computed(len(self._own), self._prompt)
        self.requests: Computed[ScoreRequest] = Computed(len(self._own), self._request)

    def _at(self, place: int) -> Placed:
        return cell_at(self._design, self._own[place], self._label, self._format)

    def _prompt(self, place: int) -> Prompt:
        cell, template, debiasing, item = self._at(place)
        return build_prompt(self._design, template, item, debiasing, cell.context, self._format)

    def _request(self, place: int) -> ScoreRequest:
        cell, prompt = self.cells[place], self.prompts[place]
        target_words = self._design.target_words[(cell.bias_type, cell.template_id)]
        study = self._design.study
        key = cell_key(cell, prompt, target_words, self._fingerprint, study, self._estimator)
        return ScoreRequest(key, prompt, target_words)

    def place_of(self, row: Mapping[str, Any]) -> int:
        """Which of these cells a row answers, by its columns. Raises `LookupError` where it is none."""
        return self._place_of[_of_row(row)]

    @cached_property
    def _place_of(self) -> dict[tuple[object, ...], int]:
        return {_of_cell(cell): i for i, cell in enumerate(self.cells)}


def places_of(
    models: Mapping[str, ModelEntry], design: ProbeDesign
) -> tuple[list[PromptCell], Callable[[Mapping[str, Any]], Sequence[int]]]:
    """Every cell of every model, and the places that a row answers: several where labels share a model."""
    cells: list[PromptCell] = []
    places: dict[tuple[object, ...], list[int]] = {}
    for label, entry in models.items():
        shared = model_key(entry.fingerprint, design.study, entry.estimator_key)
        for cell, *_ in product(design, label, entry.prompt_format):
            places.setdefault((shared, *_of_cell(cell)), []).append(len(cells))
            cells.append(cell)

    def find(row: Mapping[str, Any]) -> Sequence[int]:
        try:
            return places.get((row.get("model_key"), *map(row.get, CELL)), ())
        except TypeError:  # a list or a table where a label belongs
            return ()

    return cells, find
