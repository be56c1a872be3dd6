"""One model's cells as requests: the product is counted, and a cell is put together when it is looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any

from biaskit.common.sequences import Computed
from biaskit.measures.probe.design import ProbeDesign
from biaskit.measures.probe.prompts import CELL, Placed, build_prompt, cell_at, cell_key, model_key, product
from biaskit.models.entry import ModelEntry
from biaskit.records import Prompt, PromptCell, PromptFormat, ScoreRequest
from biaskit.runs.drift import Answerers
from biaskit.runs.score_rows import fault_of
from biaskit.runs.shards import WHOLE, Shard
from biaskit.runs.store import Reading

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
        *,
        empty_system: bool = False,  # a system role without a text, which is not the same as none
    ) -> None:
        self._design, self._label, self._format = design, label, prompt_format
        self.model_key = model_key(fingerprint, design.study, estimator)
        self._fingerprint, self._estimator = fingerprint, estimator
        self._own = shard.places(design.n_prompts)
        n = len(self._own)
        self.cells: Computed[PromptCell] = Computed(n, lambda place: self._at(place)[0])
        self._empty_system = empty_system
        self.prompts: Computed[Prompt] = Computed(n, self._prompt)
        self.requests: Computed[ScoreRequest] = Computed(n, self._request)

    def _at(self, place: int) -> Placed:
        return cell_at(self._design, self._own[place], self._label, self._format)

    def _prompt(self, place: int) -> Prompt:
        prompt = build_prompt(self._design, self._at(place))
        return replace(prompt, system="") if self._empty_system else prompt

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


class CellsOfRun:
    """Every cell of every model of a run, and which of them a row answers."""

    def __init__(self, models: Mapping[str, ModelEntry], design: ProbeDesign) -> None:
        self.cells: list[PromptCell] = []
        self._design = design
        self._places: dict[tuple[object, ...], list[int]] = {}
        for label, entry in models.items():
            shared = model_key(entry.fingerprint, design.study, entry.estimator_key)
            for cell, *_ in product(design, label, entry.prompt_format):
                self._places.setdefault((shared, *_of_cell(cell)), []).append(len(self.cells))
                self.cells.append(cell)

    def places_of(self, row: Mapping[str, Any]) -> Sequence[int]:
        """Find the places of the cells that a row answers: several where labels share a model."""
        try:
            return self._places.get((row.get("model_key"), *map(row.get, CELL)), ())
        except TypeError:  # a list or a table where a label belongs
            return ()

    def answered(
        self,
        rows: Iterable[dict[str, Any]],
        path: Path,  # their file, for a message
        reading: Reading,
        answerers: Answerers,
        is_known: Callable[[int, int], bool],  # whether a batch of the cell at a place has a row already
    ) -> Iterator[tuple[dict[str, Any], Sequence[int]]]:
        """Yield rows with the places of the cells that they answer: none for a row that is not needed.

        A row that does not fit, or answers what another one has answered, is refused or left out.
        """
        for row in rows:
            places = self.places_of(row)
            if places:
                first = self.cells[places[0]]
                fault = fault_of(row, self._design.target_words[first.bias_type, first.template_id])
                if fault is None and is_known(places[0], row.get("batch", 0)):
                    fault = "another row answers the same prompt"
                if fault is not None:
                    reading.refuse(path, fault, skip_bad=self._design.study.skip_bad_lines)
                    continue
                answerers.add_answers(row)
            yield row, places
