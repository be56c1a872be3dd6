"""A run's manifest: what was asked of which models; read, written, and held against a new command."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from biaskit.errors import RunError
from biaskit.files import write_or_refuse
from biaskit.inputs import Inputs, one_line
from biaskit.models.api.endpoint import hide_urls
from biaskit.provenance import canonical_json, digest, versions
from biaskit.records import ModelIdentity, PromptForm
from biaskit.runs.shape import check_shape
from biaskit.runs.shards import WHOLE, Shard, shard_of

RUN_FORMAT = 1

COMPARISON = "compare"
"""The engine that a comparison's manifest names: a folder with tables of several runs and no rows."""

MANIFEST = "manifest.json"

_MANIFEST = Inputs(RunError, most=512 * 2**20, remedy="Restore it from a backup; the rows are unharmed.")

REQUIRED = ("engine", "study", "question", "resolved", "models", "versions", "signature")


def is_comparison(path: Path) -> bool:
    """Whether a folder holds what `compare` wrote; a manifest that cannot be read is no comparison's."""
    try:
        manifest = _MANIFEST.json(path / MANIFEST)
    except RunError:
        return False
    return isinstance(manifest, dict) and manifest.get("engine") == COMPARISON


def read_manifest(path: Path) -> dict[str, Any]:
    """A run's manifest; a newer format is refused by name."""
    file = path / MANIFEST
    text = _MANIFEST.text(file)
    manifest = _MANIFEST.parsed_json(text, one_line(str(file)))
    if not isinstance(manifest, dict) or "format" not in manifest:
        raise RunError(f"{file} is no manifest of biaskit: it has no format. {_MANIFEST.remedy}")
    number = manifest["format"]
    if not isinstance(number, int) or number > RUN_FORMAT:
        raise RunError(
            f"{path} has run format {number}, this biaskit reads up to {RUN_FORMAT}: install a newer biaskit."
        )
    if lacking := [name for name in REQUIRED if name not in manifest]:
        raise RunError(f"{file} lacks {', '.join(lacking)}: it is damaged. Restore it from a backup.")
    check_shape(text, manifest["engine"], file)
    return manifest


def write_manifest(path: Path, manifest: Mapping[str, Any]) -> None:
    """Write manifest.json, whole or not at all."""
    write_or_refuse(path / MANIFEST, (json.dumps(manifest, indent=1) + "\n").encode("ascii"))


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write another of a run's JSON files in the same way."""
    write_or_refuse(path, (json.dumps(content, indent=1, sort_keys=True) + "\n").encode("ascii"))


def estimator_of(entry: Mapping[str, Any]) -> str:
    """A model's estimator as its manifest entry names it; with its settings where it has any."""
    kept = entry.get("estimator", "exact")
    if not isinstance(kept, Mapping):
        return str(kept)
    settings = [f"{name}={value}" for name, value in kept.items() if name != "name"]
    return f"{kept['name']}({','.join(settings)})" if settings else str(kept["name"])


def draws_of(entry: Mapping[str, Any]) -> int | None:
    """Draws of a round of a model's estimator, as its manifest entry has it; None where nothing is drawn."""
    kept = entry.get("estimator")
    return kept.get("draws") if isinstance(kept, Mapping) else None


def model_entry(identity: ModelIdentity, form: PromptForm) -> dict[str, Any]:
    """A model as the manifest holds it."""
    found = {} if identity.found is None else {"found": dict(identity.found)}
    return {
        **found,
        "spec": identity.spec,
        "fingerprint": identity.fingerprint,
        "tuning": identity.tuning,
        "where": identity.where,
        "prompt_form": form,
        "details": dict(identity.details),
    }


def start_manifest(
    run: Path,
    engine: str,
    study: str,
    *,
    question: Mapping[str, Any],
    resolved: Mapping[str, Any],
    command: str,
    shard: Shard = WHOLE,
) -> dict[str, Any]:
    """The stored manifest brought up to this design, or a new one; `question` is its compatibility."""
    stored: dict[str, Any] = {"models": {}}
    asked = dict(question)
    if (run / MANIFEST).exists():
        stored = read_manifest(run)
        if stored.get("engine") != engine:
            raise RunError(f"{run} is a run of the engine {stored.get('engine')!r}. Choose another --out.")
        if shard_of(stored) != shard:
            raise RunError(
                f"{run} holds {shard_of(stored)}, this command asks for {shard}. Choose another --out."
            )
        as_read = json.loads(json.dumps(question))  # so that both compare equal
        asked = merge_compatible(run, stored["question"], as_read)
    named = resolved["study"].get("models", {})
    shown = {label: hide_urls(spec) for label, spec in named.items()}
    resolved = {**resolved, "study": {**resolved["study"], "models": shown}}
    new = new_manifest(engine, study, asked, resolved, dict(stored["models"]), command)
    return new if shard.whole else new | {"shard": [shard.number, shard.of]}


def new_manifest(
    engine: str,
    study: str,
    question: Mapping[str, Any],
    resolved: Mapping[str, Any],
    models: Mapping[str, Any],
    command: str,
) -> dict[str, Any]:
    """What a manifest holds; its signature is still empty."""
    asked = {"engine": engine, "study": study, "question": question, "resolved": resolved, "models": models}
    return {"format": RUN_FORMAT, **asked, "versions": versions(), "command": command, "signature": ""}


def merge_compatible(path: Path, stored: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Two compatibilities as one; what both name must agree, or the folder would mix two studies.

    Values are compared by name, and inside a table by entry: an entry that only one of them has (another
    template, another instruction) adds rows and disturbs none.
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
            f"{path} holds another study: its {what} is {_short(stored)}, this command's is {_short(asked)}."
            " Choose another --out."
        )


def _short(value: object) -> str:
    text = canonical_json(value) if not isinstance(value, str) else value
    return text if len(text) <= 70 else f"{text[:50]}… ({digest(value)[:8]})"
