"""Runs beside a run: answers that they have under the same key are taken over, and paid for once.

A key holds all that an answer depends on, so the same key is the same question (reference/run-folder#reuse).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biaskit.errors import BiaskitError, RunError
from biaskit.runs.manifest import read_manifest
from biaskit.runs.store import RowWriter, StoredRows, list_runs, read_rows, rows_file

if TYPE_CHECKING:
    from biaskit.runs.session import Session


def rows_beside(
    session: Session[Any], kind_name: str, fingerprint: str, value_of: Callable[[Mapping[str, Any]], Any]
) -> Iterator[tuple[Path, StoredRows[Any]]]:
    """Yield the runs beside this one that asked this model, newest first, each read once in a start.

    Texts that were imported or shipped were not asked here. A run that cannot be read is noted.
    """
    this_run = session.run.resolve()
    for path in reversed(list_runs(session.run.parent)):
        if path.resolve() == this_run:
            continue
        try:
            if not rows_file(path, kind_name).is_file():
                continue
            manifest = read_manifest(path)
            asked = manifest.measurement == kind_name and not manifest.imported and not manifest.recorded
            if asked and any(entry.fingerprint == fingerprint for entry in manifest.models.values()):
                if path not in session.beside:
                    rows: StoredRows[Any] = StoredRows(value_of, None)
                    session.beside[path] = rows.read(rows_file(path, kind_name), skip_bad=True)
                yield path, session.beside[path]
        except BiaskitError as error:
            note = f"no answers are reused from {path}: {error}"
            if note not in session.outcome.notes:
                session.outcome.notes.append(note)


def copy_rows(taken: Mapping[str, Path], writer: RowWriter, label: str) -> None:
    """Write others' rows (`taken`: key → run) under a label. Raises `RunError` where a run has changed."""
    for path in dict.fromkeys(taken.values()):
        # Another process may be writing it: whole lines stay as they are, an unfinished last one is left out.
        rows = read_rows(rows_file(path, writer.measurement), skip_bad=True)
        writer.append_all({**row, "model": label} for row in rows if taken.get(row["key"]) == path)
        if not {key for key, run in taken.items() if run == path} <= writer.keys:
            raise RunError(
                f"{path} changed while its answers were copied. Rerun the command, or use --no-reuse."
            )
