"""A run's manifest: what was asked of which models; its format, and how it is held against a new command."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, PrivateAttr, ValidationError

from biaskit.common.files import write_or_refuse
from biaskit.common.inputs import Inputs
from biaskit.common.provenance import canonical_json, digest, versions
from biaskit.errors import RunError
from biaskit.measurement import KINDS, Measurement, measurement
from biaskit.models.entry import ModelEntry
from biaskit.records import DebiasingPrompt, Item, Template
from biaskit.runs.designs import Design
from biaskit.runs.shards import WHOLE, Shard

COMPARISON = "compare"
"""The measurement that a comparison's manifest names: a folder with tables of several runs and no rows."""

MANIFEST = "manifest.json"

_REMEDY = "Restore it from a backup; the rows are unharmed."
_FILE = Inputs(RunError, most=512 * 2**20, remedy=_REMEDY)


# --- a study in it ------------------------------------------------------------------------------------------


class _Table(BaseModel):
    model_config = ConfigDict(extra="allow", protected_namespaces=())


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
    axis: str | None = None


R = TypeVar("R")


class _Resolved(BaseModel, Generic[R]):
    """What a kind stores of a study, where a manifest has it."""

    resolved: R


# --- the manifest -----------------------------------------------------------------------------------------


class Manifest(_Table):
    """manifest.json: which models were asked what; a start of the run changes it and writes it again."""

    format: Literal[1]
    measurement: str
    study: str
    question: dict[str, Any]  # what a new command must agree with
    resolved: dict[str, Any]  # the design, as its kind describes it
    models: dict[str, ModelEntry]
    versions: dict[str, str]
    command: str = ""
    signature: str
    shard: Shard = WHOLE
    recorded: str | None = None  # which shipped corpus was copied
    _run: Path = PrivateAttr(default=Path())  # the folder that it was read from

    @classmethod
    def new(cls, measurement: str, study: str, **asked: Any) -> Self:
        """Make a manifest; what is not stated is empty, a run's signature until `Session.turn` writes it."""
        stated = {"question": {}, "resolved": {}, "models": {}, "signature": "", **asked}
        return cls(format=1, measurement=measurement, study=study, versions=versions(), **stated)

    @property
    def kind(self) -> Measurement:
        """Its kind. Raises `RunError` for a comparison, and for a kind unknown here."""
        if self.measurement == COMPARISON:
            raise RunError(f"{self._run} is a comparison, which has no rows: name one of its runs.")
        if self.measurement not in KINDS:
            raise RunError(
                f"{self._run} is a run of the measurement {self.measurement!r}, unknown to this version of"
                " biaskit."
            )
        return measurement(self.measurement)

    @property
    def imported(self) -> dict[str, Any] | None:
        """The source of texts that were at hand; None where a model was asked. Raises `RunError` if odd."""
        found = self.resolved.get("imported")
        if found and not (isinstance(found, dict) and isinstance(found.get("source"), str)):
            raise RunError(f"{self._run}: its manifest does not name the imported file. Analyse it again.")
        return found or None

    def design(self) -> Design:
        """Read what was asked."""
        return self.kind.read(self.resolved)

    def as_json(self) -> dict[str, Any]:
        """Return what the file holds: no field that was never set, and no shard of a whole run."""
        left_out = {"shard"} if self.shard.whole else set[str]()
        return self.model_dump(mode="json", exclude_unset=True, exclude=left_out)

    def write(self, run: Path) -> None:
        """Write manifest.json, whole or not at all."""
        write_or_refuse(run / MANIFEST, (json.dumps(self.as_json(), indent=1) + "\n").encode("ascii"))


class ComparisonManifest(Manifest):
    """That of a comparison, whose models have an entry for each kind."""

    models: dict[str, dict[str, ModelEntry]]  # type: ignore[assignment]


def is_comparison(path: Path) -> bool:
    """Tell whether a folder holds what `compare` wrote; an unreadable manifest is no comparison's."""
    try:
        return read_manifest(path).measurement == COMPARISON
    except RunError:
        return False


def read_manifest(run: Path) -> Manifest:
    """Read a run's manifest, of an unknown kind too. Raises `RunError` with the place that does not fit."""
    file = run / MANIFEST
    content = _FILE.content(file)
    try:
        kind_name = json.loads(content)["measurement"]
        form = ComparisonManifest if kind_name == COMPARISON else Manifest
        manifest = form.model_validate_json(content, strict=True)
        stored: Any = _Runs if kind_name == COMPARISON else dict[str, JsonValue]
        if kind_name in KINDS:
            stored = measurement(kind_name).stored
        _Resolved[stored].model_validate_json(content, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(key) for key in first["loc"])
        what = "is missing" if first["type"] == "missing" else "is not what a run writes there"
        raise RunError(f"{file}: {place} {what}. {_REMEDY}") from None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        # AttributeError: a record has a field too many.
        raise RunError(f"{file} is not a manifest written by biaskit. {_REMEDY}") from None
    manifest._run = run
    return manifest


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write another of a run's JSON files in the same way."""
    write_or_refuse(path, (json.dumps(content, indent=1, sort_keys=True) + "\n").encode("ascii"))


# --- a new command in a folder that is there ---------------------------------------------------------------


def manifest_there(run: Path, kind_name: str) -> Manifest | None:
    """Read the manifest of a run that goes on, None of a new one. Raises `RunError` for another kind."""
    if not (run / MANIFEST).exists():
        return None
    stored = read_manifest(run)
    if stored.measurement != kind_name:
        raise RunError(f"{run} is a run of the measurement {stored.measurement!r}. Choose another --out.")
    return stored


def merge_questions(path: Path, stored: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two questions; what both name must agree, or the folder would mix two studies.

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
