"""Stored texts beside the series of today: whose gender each has, which series it is of, whether it fits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from biaskit.personas.sampling.design import DrawSeries, PersonasDesign
from biaskit.personas.texts.association import associate_answer
from biaskit.personas.texts.documents import believed
from biaskit.runs.prompts import SamePrompts
from biaskit.runs.store import Reading, read_rows, rows_file

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


def stored_genders(run: Path, design: PersonasDesign, *, skip_bad: bool) -> dict[str, str | None]:
    """Key → associated gender of every stored text; the texts themselves are not kept."""
    path = rows_file(run, "personas")
    if not path.exists():
        return {}
    stored: dict[str, str | None] = {}
    reading = Reading()
    rows = read_rows(path, skip_bad=skip_bad, reading=reading)
    for row in believed(rows, path, reading, skip_bad=skip_bad):
        found = associate_answer(row["text"], row["finish_reason"], honorifics=design.study.honorifics)
        stored[row["key"]] = found.gender
    return stored
