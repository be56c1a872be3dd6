"""Answers that a run beside this one has under the same key: taken over, so that nothing is paid for twice.

A key holds all that an answer depends on, so the same key is the same question (docs/reading.md#reuse).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from biaskit.errors import BiaskitError, RunError
from biaskit.foreign import visible
from biaskit.records import ModelIdentity
from biaskit.runs.drift import model_of
from biaskit.runs.manifest import MANIFEST, read_manifest
from biaskit.runs.rows import lines_under
from biaskit.runs.store import RowWriter, list_runs, read_rows, rows_file

V = TypeVar("V")
Row = Mapping[str, Any]
RowsOf = Callable[[Path], Iterator[dict[str, Any]]]
_UNREADABLE = (OSError, EOFError, zlib.error, RecursionError, UnicodeError)


@dataclass(slots=True)
class Answers(Generic[V]):
    """Stored answers of other runs to one model's questions; nothing is copied before `copy`."""

    values: dict[str, V] = field(default_factory=dict)  # key → what the engine needs to know of its row
    runs: dict[str, Path] = field(default_factory=dict)  # key → where it was found
    notes: list[str] = field(default_factory=list)  # of runs that could not be read

    def keep(self, wanted: Collection[str]) -> None:
        """Leave out what this run does not need."""
        self.values = {key: value for key, value in self.values.items() if key in wanted}
        self.runs = {key: run for key, run in self.runs.items() if key in wanted}

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the runs, in the order in which they were found."""
        return tuple(dict.fromkeys(run.name for run in self.runs.values()))

    def copy(self, writer: RowWriter, as_row: Callable[[Row], Row]) -> None:
        """Write the rows into this run; each keeps who answered it, and when.

        Raises `RunError` where a run has changed since.
        """
        for run in dict.fromkeys(self.runs.values()):
            here = {key for key, found in self.runs.items() if found == run}
            try:
                # Another process may be writing it: whole lines stay as they are.
                file, wanted = rows_file(run, writer.engine), lines_under(here)
                rows = read_rows(file, skip_bad=True, wanted=wanted)
                writer.append_all(as_row(row) for row in rows if row["key"] in here)
            except _UNREADABLE as error:
                raise RunError(f"{run} cannot be read any more: {error}. Give the command again.") from error
            if not here <= writer.keys:
                raise RunError(
                    f"{run} changed while its answers were taken over. Give the command again, or with"
                    " --no-reuse."
                )


def find_answers(
    run: Path,
    engine: str,
    identity: ModelIdentity,
    fits: Callable[[Row, str], V | None],
    *,
    answered: Collection[str] = (),
    accept_drift: bool = False,
    rows_of: RowsOf,
) -> Answers[V]:
    """What the runs beside `run` have stored of a model's questions, those of the newest run first.

    `fits` reads off a row, given with its run's name, what the engine needs, or says None: not asked here,
    or no sound answer.
    `answered`: who answered the rows that the run already has. Where an API has no row yet, the name that its
    checks met counts, else that of the first row found: another model's answers are not mixed in unasked.
    `rows_of`: reads those rows of a file that can be this model's; for reading all of them for each of many
    models takes models squared.
    """
    found: Answers[V] = Answers()
    names = {model_of(by) for by in answered} or {str(name) for name in (_answers_as(identity),) if name}
    watched = identity.where == "api" and not accept_drift
    for sibling in _siblings(run):
        try:
            if not _holds(sibling, engine, identity.fingerprint):
                continue
            for row in rows_of(rows_file(sibling, engine)):
                by = row.get("answered_by")
                if row["key"] in found.values or (watched and not isinstance(by, str)):
                    continue
                name = model_of(by) if isinstance(by, str) else ""
                if (watched and names and name not in names) or (value := fits(row, sibling.name)) is None:
                    continue
                names = names or {name}
                found.values[row["key"]], found.runs[row["key"]] = value, sibling
        except (*_UNREADABLE, BiaskitError) as error:
            found.keep({key for key, run in found.runs.items() if run != sibling})
            why = str(error).splitlines()[0]
            found.notes.append(visible(f"{sibling} was passed by, no answers are taken over from it: {why}"))
    return found


def _answers_as(identity: ModelIdentity) -> object:
    return (identity.found or {}).get("answered_by")


def _siblings(run: Path) -> Iterator[Path]:
    """The other runs of the folder that a run lies in, newest first."""
    own = run.resolve()
    yield from (path for path in reversed(list_runs(run.parent)) if path.resolve() != own)


def _holds(sibling: Path, engine: str, fingerprint: str) -> bool:
    """Whether a folder is a run of this engine that asked this model; raises where that cannot be read.

    Texts that were imported or shipped were not asked here, and a folder without rows has nothing to give.
    """
    if not rows_file(sibling, engine).is_file() or not (sibling / MANIFEST).is_file():
        return False  # also a pipe or a device in a file's place
    manifest = read_manifest(sibling)
    try:
        resolved, models = manifest["resolved"], manifest["models"].values()
        asked = not resolved.get("imported") and not manifest.get("recorded")
        return manifest["engine"] == engine and asked and any(m["fingerprint"] == fingerprint for m in models)
    except (AttributeError, KeyError, TypeError) as error:
        raise RunError("its manifest is damaged") from error


def rows_with(model_key: str, path: Path) -> Iterator[dict[str, Any]]:
    """The rows that can be a model's, where they hold a `model_key`: those of before they did as well."""
    own = model_key.encode("ascii")

    def wanted(line: bytes) -> bool:
        return own in line or b'"model_key"' not in line

    # Another process may be writing it: whole lines stay as they are, an unfinished last one is left out.
    return read_rows(path, skip_bad=True, wanted=wanted)
