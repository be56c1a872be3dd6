"""Logs of Inspect as a run: what biaskit exported, or what its tasks asked (docs/integrations.md#inspect).

A log is somebody else's file. Its zip is measured before it is read, nothing of it is unpacked to disk, and
every row has to fit its checksum.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any

from biaskit.errors import RunError
from biaskit.exchange.inspect_format import FILES, LOG_FORMAT, MARK
from biaskit.exchange.source import package
from biaskit.foreign import visible
from biaskit.inputs import Inputs, one_line, opened, parse_json
from biaskit.personas.sampling.stored_design import design_signature as texts_signature
from biaskit.personas.sampling.stored_design import read_design as read_texts_design
from biaskit.probe.stored_design import compatibility, describe_design, design_signature, read_design
from biaskit.runs.manifest import REQUIRED
from biaskit.runs.rows import NoRow, read_row
from biaskit.runs.shape import check_shape
from biaskit.study.keys import ANALYSIS_KEYS
from biaskit.wording import count, listed

RECORDED = "inspect"
"""What a manifest is marked with whose rows were not asked here: no other run takes them over."""
_ZIP = b"PK\x03\x04"
_JSON = re.compile(rb'(\xef\xbb\xbf)?\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:')
_LOG = Inputs(RunError, most=2**30, remedy="Take the log as Inspect wrote it.")
_MOST_SAID = 120

Json = dict[str, Any]


@dataclass(slots=True)
class LoggedRun:
    """What logs hold of one run.

    Attributes:
        manifest: of the models and templates that the logs are of.
        choices: how it was analysed, as overrides.
        rows: by row file, in the order in which they lay there.
        notes: what the logs do not hold, a sentence each.
    """

    manifest: Json
    choices: Json
    rows: Mapping[str, Sequence[Json]]
    notes: tuple[str, ...]


@dataclass(slots=True)
class _Log:
    """One log, read and checked."""

    where: str
    manifest: Json  # with every model of the run it was exported from, or the one that was asked
    choices: Json
    models: tuple[str, ...]
    bias_type: str | None
    rows: list[tuple[str, int, Json]]
    notes: list[str] = field(default_factory=list)


def is_log(path: Path) -> bool:
    """Whether a file is a log of Inspect, by its first bytes. Raises `RunError` where it cannot be read."""
    with _LOG.saying(one_line(str(path))), opened(path) as file:
        start = file.read(4096)
    return start.startswith(_ZIP) or _JSON.match(start) is not None


def read_logs(paths: Sequence[Path]) -> LoggedRun:
    """Logs of one run, put together. Raises `RunError` with one line for what is no log of biaskit."""
    logs = [_read(path) for path in paths]
    first = logs[0]
    for log in logs[1:]:
        if any(
            log.manifest[name] != first.manifest[name] for name in ("engine", "study", "question", "resolved")
        ):
            raise RunError(
                f"{first.where} and {log.where} are of two questions: import each into a folder of its own."
            )
        for label in set(log.models) & set(first.manifest["models"]):
            if log.manifest["models"][label]["fingerprint"] != first.manifest["models"][label]["fingerprint"]:
                raise RunError(
                    f"{first.where} and {log.where} call two models {label!r}: import each by itself."
                )
    manifest, notes = _part(logs)
    rows: dict[str, dict[str, tuple[int, Json]]] = {name: {} for name in FILES}
    for log in logs:
        for name, at, row in log.rows:
            rows[name].setdefault(row["key"], (at, row))
    in_order = {
        name: [row for _, row in sorted(found.values(), key=lambda one: one[0])]
        for name, found in rows.items()
    }
    return LoggedRun(manifest, first.choices, in_order, tuple(dict.fromkeys([*_all_notes(logs), *notes])))


def _all_notes(logs: Sequence[_Log]) -> Iterator[str]:
    for log in logs:
        yield from log.notes


# --- one log -----------------------------------------------------------------------------------------


def _read(path: Path) -> _Log:
    where = one_line(str(path))
    log = _parsed(path, where)
    mark = _mark(log.eval.metadata, where)
    manifest = _manifest(mark, where)
    samples = log.samples or []
    entries: dict[str, Json] = {}
    rows: list[tuple[str, int, Json]] = []
    n_without = n_later = 0
    for sample in samples:
        own = (sample.metadata or {}).get(MARK)
        if sample.epoch > 1:
            n_later += 1
        elif not isinstance(own, Mapping):
            n_without += 1
        else:
            rows += _rows(own, f"{where}, sample {visible(str(sample.id))[:_MOST_SAID]}")
            entries |= _entry(own, entries, where)
    models = _models(mark, manifest, entries, where)
    notes = []
    if log.status != "success":
        notes.append(f"{where} was not finished ({log.status}): cells without an answer are missing")
    if n_without:
        notes.append(f"{count(n_without, 'sample')} of {where} hold no answer of biaskit and are left out")
    if n_later:
        notes.append(
            f"{where} asked in several epochs: the first counts, {count(n_later, 'sample')} are left out"
        )
    if not rows:
        raise RunError(f"{where} holds no answer: there is nothing to import.")
    if (bias_type := mark.get("bias_type")) not in (None, "explicit", "implicit"):
        raise RunError(f"{where}: its bias type cannot be read. {_LOG.remedy}")
    return _Log(where, manifest, _choices(mark, where), models, bias_type, rows, notes)


def _parsed(path: Path, where: str) -> Any:
    """A log by Inspect's own reader, which takes its member's sizes from where they were measured."""
    logs = package("inspect_ai.log", "inspect", "A log of Inspect")
    content = _LOG.content(path)
    if content.startswith(_ZIP):
        _measure(content, where)
    try:
        return logs.read_eval_log(BytesIO(content), format="eval" if content.startswith(_ZIP) else "json")
    except (KeyboardInterrupt, MemoryError):
        raise
    except Exception as error:  # whatever a broken file makes of somebody else's reader
        said = visible(str(error).strip().splitlines()[0] if str(error).strip() else "")[:_MOST_SAID]
        raise RunError(
            f"{where} is no log that Inspect can read ({type(error).__name__}: {said}). {_LOG.remedy}"
        ) from None


def _measure(content: bytes, where: str) -> None:
    """Refuse what unpacks to more than any log; zipfile reads no member beyond the size that it states."""
    try:
        with zipfile.ZipFile(BytesIO(content)) as packed:
            members = packed.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as error:
        raise RunError(f"{where} is broken ({visible(str(error))[:_MOST_SAID]}). {_LOG.remedy}") from None
    if not any(member.filename in ("header.json", "_journal/start.json") for member in members):
        raise RunError(f"{where} is a zip archive and no log of Inspect. {_LOG.remedy}")


def _mark(metadata: Mapping[str, Any] | None, where: str) -> Mapping[str, Any]:
    mark = (metadata or {}).get(MARK)
    if not isinstance(mark, Mapping) or not isinstance(mark.get("manifest"), str):
        raise RunError(
            f"{where} is a log of another task: it holds no run of biaskit. `biaskit export --to inspect` and"
            " the tasks biaskit/… make logs that can be imported; `biaskit compare` reads any two."
        )
    if type(mark.get("format")) is not int or mark["format"] > LOG_FORMAT:
        raise RunError(f"{where} is of a newer biaskit: install a newer one.")
    return mark


def _value(text: object, what: str, where: str) -> Any:
    try:
        return parse_json(text if isinstance(text, str) else "")
    except ValueError:
        raise RunError(f"{where}: its {what} cannot be read. {_LOG.remedy}") from None


def _manifest(mark: Mapping[str, Any], where: str) -> Json:
    manifest = _value(mark["manifest"], "manifest", where)
    known = isinstance(manifest, dict) and all(name in manifest for name in REQUIRED)
    if not known or manifest["engine"] not in ANALYSIS_KEYS or not isinstance(manifest["models"], dict):
        raise RunError(f"{where}: its manifest is no run's of biaskit. {_LOG.remedy}")
    check_shape(mark["manifest"], manifest["engine"], Path(where))
    return dict(manifest)


def _choices(mark: Mapping[str, Any], where: str) -> Json:
    choices = _value(mark.get("choices", "{}"), "choices", where)
    if not isinstance(choices, dict):
        raise RunError(f"{where}: its choices cannot be read. {_LOG.remedy}")
    return choices


def _rows(own: Mapping[str, Any], where: str) -> Iterator[tuple[str, int, Json]]:
    held = own.get("rows")
    for one in held if isinstance(held, list) else [None]:
        line, name, at = (one.get(k) for k in ("row", "file", "at")) if isinstance(one, dict) else (None,) * 3
        if not isinstance(line, str) or name not in FILES or type(at) is not int:
            raise RunError(f"{where}: its rows cannot be read. {_LOG.remedy}")
        try:
            row, summed = read_row(line.encode("utf-8", "surrogatepass"))
        except NoRow as error:
            raise RunError(f"{where}: a row {error}. {_LOG.remedy}") from None
        if not summed:
            raise RunError(f"{where}: a row has no checksum. {_LOG.remedy}")
        yield name, at, row


def _entry(own: Mapping[str, Any], known: Mapping[str, Json], where: str) -> dict[str, Json]:
    """The model that a task's sample names; the same in every sample of a log."""
    if "entry" not in own:
        return {}
    entry = _value(own["entry"], "model", where)
    label = entry.pop("label", None) if isinstance(entry, dict) else None
    if not isinstance(label, str):
        raise RunError(f"{where}: a sample does not tell its model. {_LOG.remedy}")
    if known and dict(known) != {label: entry}:
        raise RunError(f"{where} holds answers of several models: take a log of one.")
    return {label: entry}


def _models(
    mark: Mapping[str, Any], manifest: Json, entries: Mapping[str, Json], where: str
) -> tuple[str, ...]:
    """The models of a log; those that only its samples tell are put into the manifest."""
    label = mark.get("model")
    if label is None:
        manifest["models"] = dict(entries)
        return tuple(entries)
    if not isinstance(label, str) or label not in manifest["models"]:
        raise RunError(f"{where}: its model is not in its manifest. {_LOG.remedy}")
    return (label,)


# --- several as one ----------------------------------------------------------------------------------


def _part(logs: Sequence[_Log]) -> tuple[Json, list[str]]:
    """The manifest of what the logs are of, and what of the run they came from is not in them."""
    manifest = dict(logs[0].manifest)
    every = {label: entry for log in logs for label, entry in log.manifest["models"].items()}
    here = {label for log in logs for label in log.models}
    models = {label: entry for label, entry in every.items() if label in here}
    notes = []
    if gone := [label for label in every if label not in here]:
        notes.append(f"the run had other models, whose logs were not given: {visible(listed(gone))}")
    manifest["models"] = models
    manifest["recorded"] = RECORDED
    if manifest["engine"] == "personas":
        if gone:
            design = read_texts_design(manifest["resolved"])
            manifest["signature"] = texts_signature(design, models)
        return manifest, notes
    types = {log.bias_type for log in logs if log.bias_type}
    design_asked = read_design(manifest["resolved"])
    asked = {template.bias_type for template in design_asked.templates}
    design_here = design_asked
    if types and types < asked:
        notes.append(f"the run also asked {listed(sorted(asked - types))} prompts, whose logs were not given")
        design_here = replace(
            design_asked,
            study=design_asked.study.model_copy(update={"bias_type": next(iter(types))}),
            templates=tuple(one for one in design_asked.templates if one.bias_type in types),
            expressions={key: own for key, own in design_asked.expressions.items() if key[0] in types},
        )
        manifest["resolved"] = describe_design(design_here)
        manifest["question"] = compatibility(design_here)
    if notes or not manifest["signature"]:
        manifest["signature"] = design_signature(design_here, models)
    return manifest, notes
