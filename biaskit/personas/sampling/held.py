"""Stored texts beside the series of today: to which one each belongs, and whether its prompt is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

from biaskit.personas.sampling.design import DrawSeries
from biaskit.runs.prompts import SamePrompts

_SCOPE = ("occupation", "template_id", "specified_gender", "instruction_id", "setting")


def scope_of(row: Mapping[str, Any]) -> tuple[object, ...]:
    """Which series a row belongs to."""
    return tuple(row.get(name) for name in _SCOPE)


def hold_prompts(
    rows: Iterable[Mapping[str, Any]],
    series_of: Mapping[tuple[object, ...], DrawSeries],
    keys_of: Callable[[DrawSeries], Callable[[int], str]],
    same: SamePrompts,
) -> None:
    """Hold a run's own rows of a model against its prompts. Raises `ModelError` where one is another.

    `keys_of`: from a series to the keys of its draws, by which a row is this model's.
    """
    known = cache(keys_of)
    for row in rows:
        with suppress(LookupError, TypeError):  # not asked here, or no label where one belongs
            series = series_of[scope_of(row)]
            if known(series)(row["draw"]) == row["key"]:
                same.holds(row, series.prompt)
    same.check()
