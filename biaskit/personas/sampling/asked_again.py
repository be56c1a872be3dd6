"""Which draw a stored text is, so that the model can be asked for it again; nothing is asked here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from biaskit.personas.sampling.design import (
    DrawSeries,
    PersonasDesign,
    draw_keys,
    request_for,
    series_of_design,
)
from biaskit.personas.sampling.drawn import scope_of
from biaskit.records import Draw, DrawRequest


class StoredDraws:
    """Which model and which request a stored text answers, by the run's manifest."""

    def __init__(self, manifest: Mapping[str, Any], design: PersonasDesign) -> None:
        self._design = design
        self._models = {label: str(entry["fingerprint"]) for label, entry in manifest["models"].items()}
        self._series = {
            label: {scope_of(one.scope()): one for one in series_of_design(design, entry["prompt_form"])}
            for label, entry in manifest["models"].items()
        }
        self._key_of = cache(self._keys)

    def _keys(self, label: str, series: DrawSeries) -> Callable[[int], str]:
        return draw_keys(series, self._models[label], self._design)

    def request_of(self, row: Mapping[str, Any]) -> tuple[str, DrawRequest] | None:
        """(model, request) of a row; None where this question has no such draw.

        A label that the row does not name may be another one of the same model.
        """
        named = row.get("model")
        for label in [named, *self._models] if named in self._models else self._models:
            try:
                series, draw = self._series[label][scope_of(row)], row["draw"]
            except (LookupError, TypeError):
                continue
            if type(draw) is not int or draw < 0:
                continue
            if self._key_of(label, series)(draw) == row["key"] or label == named:
                return label, request_for(series, draw, self._models[label], self._design)
        return None


def text_name(row: Mapping[str, Any]) -> str:
    """'persona of a teacher, draw 3', with the gender that its prompt names."""
    gender = f", {row['specified_gender']}" if row.get("specified_gender") else ""
    return f"{row.get('template_id')}, {row.get('occupation')}{gender}, draw {row.get('draw')}"


def own_fault(row: Mapping[str, Any], request: DrawRequest) -> str | None:
    """What in a stored text's row contradicts the rest of it; None where nothing does."""
    if row.get("seed") not in (None, request.seed):
        return f"its seed is {row['seed']}, that of its draw {request.seed}"
    return None


def is_same(row: Mapping[str, Any], answer: Draw) -> bool:
    """Whether an answer is the stored one, byte for byte, with the same prompt and the same end."""
    now = (answer.prompt, answer.text, answer.finish)
    return (row.get("prompt"), row.get("text"), row.get("finish_reason")) == now


ALIKE = 12
"""Characters with which a text must begin as stored: about three tokens, hardly ever the same by chance."""


def begins_alike(row: Mapping[str, Any], answer: Draw) -> bool:
    """Whether an answer begins as the stored text does and parts later, to the same prompt."""
    return row.get("prompt") == answer.prompt and str(row["text"])[:ALIKE] == answer.text[:ALIKE]
