"""A run's manifest: what was asked of which models; its format, and how it is held against a new command."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from biaskit.common.files import write_or_refuse
from biaskit.common.inputs import Inputs
from biaskit.common.provenance import canonical_json, digest, versions
from biaskit.errors import RunError
from biaskit.measurement import KINDS, Measurement, measurement
from biaskit.records import DebiasingPrompt, Item, ModelIdentity, PromptFormat, Template

RUN_FORMAT = 1

COMPARISON = "compare"
"""The measurement that a comparison's manifest names: a folder with tables of several runs and no rows."""

MANIFEST = "manifest.json"

_REMEDY = "Restore it from a backup; the rows are unharmed."
_FILE = Inputs(RunError, most=512 * 2**20, remedy=_REMEDY)
_Whole = Annotated[int, Field(ge=0)]
_Positive = Annotated[int, Field(ge=1)]


# --- its format ---------------------------------------------------------------------------------------------


class _Table(BaseModel):
    model_config = ConfigDict(extra="allow", protected_namespaces=())


class _Estimator(_Table):
    name: str
    samples: _Positive | None = None


class _Continuations(_Table):
    fingerprint: str
    estimator: _Estimator


class ModelEntry(_Table):
    """A model, as a run opened it."""

    spec: str
    fingerprint: str
    tuning: str
    where: str
    prompt_format: str | None
    details: dict[str, str | int | float | bool | None]
    abilities: dict[str, JsonValue] | None = None  # what was measured of an API's endpoint
    estimator: Literal["exact"] | _Estimator | None = None  # None: texts
    batch_size: _Positive | None = None  # None: auto, and not measured yet
    notes: list[str] | None = None  # None: not asked yet
    continuations: _Continuations | None = None


class _Study(_Table):
    name: str
    measurement: str
    models: dict[str, str] = {}


class StoredDesign(_Table):
    """A study as all kinds store it."""

    study: _Study
    digest: str
    sources: dict[str, str]


class StoredLists(StoredDesign):
    """A study with lists that are filled into templates."""

    slot: str
    items: tuple[Item, ...]
    templates: tuple[Template, ...]
    debiasing_prompts: tuple[DebiasingPrompt | None, ...]


class _Run(_Table):
    path: str


class _Runs(_Table):
    """What a comparison holds."""

    study: dict[str, JsonValue]
    runs: Annotated[list[_Run], Field(min_length=1)]
    groups: list[str] = []
    aliases: str | None = None


R = TypeVar("R")


class Manifest(_Table, Generic[R]):
    """manifest.json."""

    format: Literal[1]
    measurement: str
    study: str
    question: dict[str, JsonValue]
    resolved: R
    models: dict[str, ModelEntry]
    versions: dict[str, str]
    command: str | None = None
    shard: tuple[_Positive, _Positive] = (1, 1)
    recorded: str | None = None  # which shipped corpus was copied
    signature: str


class _Comparison(Manifest[_Runs]):
    models: dict[str, JsonValue]  # type: ignore[assignment]


# --- read and written -------------------------------------------------------------------------------------


def is_comparison(path: Path) -> bool:
    """Tell whether a folder holds what `compare` wrote; an unreadable manifest is no comparison's."""
    try:
        return bool(read_manifest(path)["measurement"] == COMPARISON)
    except RunError:
        return False


def read_manifest(path: Path) -> dict[str, Any]:
    """Read a run's manifest and check its format. Raises `RunError` with the place that does not fit."""
    file = path / MANIFEST
    content = _FILE.content(file)
    try:
        manifest: dict[str, Any] = json.loads(content)
        _format_of(manifest["measurement"]).model_validate_json(content, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(key) for key in first["loc"])
        what = "is missing" if first["type"] == "missing" else "is not what a run writes there"
        raise RunError(f"{file}: {place} {what}. {_REMEDY}") from None
    except (ValueError, LookupError, TypeError, RecursionError):
        raise RunError(f"{file} is not a manifest written by biaskit. {_REMEDY}") from None
    return manifest


def kind_of(run: Path) -> Measurement:
    """Find the kind of a run. Raises `RunError` for a comparison, and for a kind unknown here."""
    kind_name = read_manifest(run)["measurement"]
    if kind_name == COMPARISON:
        raise RunError(f"{run} is a comparison, which has no rows: name one of its runs.")
    if kind_name not in KINDS:
        raise RunError(
            f"{run} is a run of the measurement {kind_name!r}, unknown to this version of biaskit."
        )
    return measurement(kind_name)


def _format_of(kind_name: str) -> type[BaseModel]:
    """Find the form of a kind's manifest; one of a kind that is not known here stays readable."""
    if kind_name == COMPARISON:
        return _Comparison
    stored: Any = measurement(kind_name).stored if kind_name in KINDS else dict[str, JsonValue]
    form: type[BaseModel] = Manifest[stored]
    return form


def write_manifest(path: Path, manifest: Mapping[str, Any]) -> None:
    """Write manifest.json, whole or not at all."""
    write_or_refuse(path / MANIFEST, (json.dumps(manifest, indent=1) + "\n").encode("ascii"))


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write another of a run's JSON files in the same way."""
    write_or_refuse(path, (json.dumps(content, indent=1, sort_keys=True) + "\n").encode("ascii"))


def estimator_of(entry: Mapping[str, Any]) -> str:
    """Name a model's estimator with its settings; "" where the entry has none."""
    estimator = entry.get("estimator") or ""
    if not isinstance(estimator, Mapping):
        return str(estimator)
    settings = [f"{name}={value}" for name, value in estimator.items() if name != "name"]
    return f"{estimator['name']}({','.join(settings)})" if settings else str(estimator["name"])


def samples_of(entry: Mapping[str, Any]) -> int | None:
    """Find the samples of a batch in a model's manifest entry; None where nothing is drawn."""
    estimator = entry.get("estimator")
    return estimator.get("samples") if isinstance(estimator, Mapping) else None


def model_entry(identity: ModelIdentity, prompt_format: PromptFormat) -> dict[str, Any]:
    """Describe a model as the manifest holds it."""
    found = {} if identity.abilities is None else {"abilities": dict(identity.abilities)}
    named = {name: getattr(identity, name) for name in ("spec", "fingerprint", "tuning", "where")}
    return {**found, **named, "prompt_format": prompt_format, "details": dict(identity.details)}


# --- a new command in a folder that is there ---------------------------------------------------------------


def new_manifest(
    kind_name: str,
    study: str,
    question: Mapping[str, Any],
    resolved: Mapping[str, Any],
    models: Mapping[str, Any],
    command: str,
) -> dict[str, Any]:
    """Make a manifest; its signature is still empty."""
    asked = {
        "measurement": kind_name,
        "study": study,
        "question": question,
        "resolved": resolved,
        "models": models,
    }
    return {"format": RUN_FORMAT, **asked, "versions": versions(), "command": command, "signature": ""}


def merge_compatible(path: Path, stored: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two compatibilities; what both name must agree, or the folder would mix two studies.

    Values are compared by name, and inside a table by entry: an entry that only one of them has (another
    template, another debiasing prompt) adds rows and disturbs none.
    """
    merged = dict(stored)
    for name, value in asked.items():
        before = stored.get(name, value)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            for entry in value:
                _agree(path, f"{name}, {entry}", before.get(entry, value[entry]), value[entry])
            merged[name] = {**before, **value}
        else:
            _agree(path, name, before, value)
            merged[name] = value
    return merged


def _agree(path: Path, what: str, stored: object, asked: object) -> None:
    if stored != asked:
        raise RunError(
            f"{path} is a run of another study: its {what} is {_short(stored)}, this command's is"
            f" {_short(asked)}. Choose another --out."
        )


def _short(value: object) -> str:
    text = canonical_json(value) if not isinstance(value, str) else value
    return text if len(text) <= 70 else f"{text[:50]}… ({digest(value)[:8]})"
