"""What kind of value may stand where in a run's manifest; a damaged one is named by its place."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from biaskit.corpora.prompts import PersonaPrompt
from biaskit.errors import RunError
from biaskit.records import Dialogue, Instruction, Item, Template

_Number = Annotated[int, Field(ge=0)]
_Counts = Annotated[int, Field(ge=1)]


class _Shape(BaseModel):
    """A table in which other keys may stand too: those of later versions."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())


class _Estimator(_Shape):
    name: str
    draws: _Counts | None = None


class _Continuations(_Shape):
    fingerprint: str
    estimator: _Estimator


class _Rendering(_Shape):
    versions: str
    system_role: bool


class _Model(_Shape):
    spec: str
    fingerprint: str
    tuning: str
    where: str
    prompt_form: str | None
    details: dict[str, str | int | float | bool | None]
    estimator: str | _Estimator = "exact"
    batch_size: _Counts | None = None
    notes: list[str] | None = None
    found: dict[str, Any] | None = None
    continuations: _Continuations | None = None
    rendering: _Rendering | None = None


class _Study(_Shape):
    name: str
    engine: str
    models: dict[str, str] = {}


class _Resolved(_Shape):
    study: _Study
    slot: str
    items: tuple[Item, ...]
    templates: tuple[Template, ...]
    instructions: tuple[Instruction | None, ...]
    digest: str
    sources: dict[str, str]


class _Cells(_Resolved):
    settings: list[Literal["plain", "dialogue"]]
    dialogue: Dialogue | None
    expression_sets: list[Annotated[list[tuple[str, str]], Field(min_length=1)]]
    expressions_of_template: dict[Annotated[str, Field(pattern=r"^(explicit|implicit):\d+$")], _Number]
    groups: list[str]
    contrast: list[str]


class _Texts(_Resolved):
    prompts: tuple[PersonaPrompt, ...]
    imported: dict[str, Any] | None = None


class _Run(_Shape):
    path: str


class _Runs(_Shape):
    study: dict[str, Any]
    runs: Annotated[list[_Run], Field(min_length=1)]
    groups: list[str] = []
    aliases: str | None = None


class _Manifest(_Shape):
    engine: str
    study: str
    question: dict[str, Any]
    resolved: dict[str, Any]
    models: dict[str, Any]
    versions: dict[str, str]
    command: str | None = None
    shard: tuple[_Counts, _Counts] | None = None
    signature: str


class _OfCells(_Manifest):
    resolved: _Cells  # type: ignore[assignment]
    models: dict[str, _Model]


class _OfTexts(_Manifest):
    resolved: _Texts  # type: ignore[assignment]
    models: dict[str, _Model]


class _OfRuns(_Manifest):
    resolved: _Runs  # type: ignore[assignment]


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_SHAPES: dict[str, type[_Manifest]] = {"probe": _OfCells, "personas": _OfTexts, "compare": _OfRuns}


def check_shape(text: str, engine: object, file: Path) -> None:
    """Raise `RunError` where a value of a manifest, here as JSON, is of a kind that cannot stand there."""
    shape = _SHAPES.get(engine, _Manifest) if isinstance(engine, str) else _Manifest
    try:
        # A half of a pair stands in no text of pydantic's; a label may hold one.
        shape.model_validate_json(_SURROGATE.sub(r"\\u003f", text), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(key) for key in first["loc"])
        what = "is missing" if first["type"] == "missing" else "is not what a run writes there"
        raise RunError(f"{file}: {place} {what}. Restore it from a backup; the rows are unharmed.") from None
