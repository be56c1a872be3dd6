"""One model's cells as requests: the product is counted, and a cell is put together when it is looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from biaskit.probe.design import Placed, ProbeDesign, build_prompt, cell_at, cell_key, model_key
from biaskit.probe.rounds import Rounds
from biaskit.records import (
    NO_INSTRUCTION,
    Cell,
    Instruction,
    Item,
    Prompt,
    PromptForm,
    ScoreRequest,
    Template,
)
from biaskit.runs.manifest import draws_of
from biaskit.runs.shards import WHOLE, Shard
from biaskit.sequences import Computed


class PlannedCells:
    """Every cell of one model with its request, in study order, or a shard's; needs no model."""

    def __init__(
        self,
        design: ProbeDesign,
        label: str,
        form: PromptForm,
        fingerprint: str,
        estimator: object = "exact",
        shard: Shard = WHOLE,
    ) -> None:
        self._design, self._label, self._form = design, label, form
        self.model_key = model_key(fingerprint, design.study, estimator)
        self._fingerprint, self._estimator = fingerprint, estimator
        self._own = shard.places(design.n_cells)
        self.cells: Computed[Cell] = Computed(len(self._own), self._cell)
        self.prompts: Computed[Prompt] = Computed(len(self._own), self._prompt)
        self.requests: Computed[ScoreRequest] = Computed(len(self._own), self._request)
        self._places = _Places(design)

    def _at(self, place: int) -> Placed:
        return cell_at(self._design, self._own[place], self._label, self._form)

    def _cell(self, place: int) -> Cell:
        return self._at(place)[0]

    def _prompt(self, place: int) -> Prompt:
        return self._put_together(*self._at(place))

    def _put_together(
        self, cell: Cell, template: Template, instruction: Instruction | None, item: Item
    ) -> Prompt:
        return build_prompt(self._design, template, item, instruction, cell.setting, self._form)

    def _request(self, place: int) -> ScoreRequest:
        placed = cell, template, *_ = self._at(place)
        prompt = self._put_together(*placed)
        expressions = self._design.expressions[(template.bias_type, template.id)]
        study = self._design.study
        key = cell_key(cell, prompt, expressions, self._fingerprint, study, self._estimator)
        return ScoreRequest(key, prompt, expressions)

    def place_of(self, row: Mapping[str, Any]) -> int:
        """Which of these cells a row answers, by its columns. Raises `LookupError` where it is none."""
        if row["prompt_form"] != self._form:
            raise LookupError(f"another prompt form: {row['prompt_form']!r}")
        if (place := self._places.of(row)) not in self._own:
            raise LookupError("a cell of another shard")
        return self._own.index(place)


class _Places:
    """Where a cell stands in the product."""

    def __init__(self, design: ProbeDesign) -> None:
        self._templates = {(t.bias_type, t.id): i for i, t in enumerate(design.templates)}
        self._settings = {setting: i for i, setting in enumerate(design.settings)}
        ids = (NO_INSTRUCTION if one is None else one.id for one in design.instructions)
        self._instructions = {number: i for i, number in enumerate(ids)}
        self._items = {item.name: i for i, item in enumerate(design.items)}

    def of(self, row: Mapping[str, Any]) -> int:
        place = self._templates[row["bias_type"], row["template_id"]]
        place = place * len(self._settings) + self._settings[row["setting"]]
        place = place * len(self._instructions) + self._instructions[row["instruction_id"]]
        return place * len(self._items) + self._items[row["job"]]


def cell_finder(
    manifest: Mapping[str, Any], design: ProbeDesign
) -> Callable[[Mapping[str, Any]], tuple[str, ScoreRequest] | None]:
    """From a stored row to the model and the request that it answers; None where the run has no such cell."""
    of_model: dict[str, tuple[str, PlannedCells, Rounds]] = {}
    for label, entry in manifest["models"].items():
        cells = PlannedCells(design, label, entry["prompt_form"], entry["fingerprint"], entry["estimator"])
        rounds = Rounds.of(draws_of(entry), design.study.max_draws_per_cell)
        of_model.setdefault(cells.model_key, (label, cells, rounds))

    def find(row: Mapping[str, Any]) -> tuple[str, ScoreRequest] | None:
        try:
            label, cells, rounds = of_model[row["model_key"]]
            return label, rounds.request(cells.requests[cells.place_of(row)], int(row.get("round", 0)))
        except (LookupError, TypeError, ValueError):
            return None

    return find
