"""The tables of one analysis as one set: put in place together, and read as they were written or not at all.

`analysis.json` is the set's record: it has the digest of each table, so that a table that was replaced,
edited or left behind by a stopped command is noticed (reference/run-folder#table-set).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from biaskit.common.files import (
    check_folder,
    digest_of,
    files_of,
    is_intact,
    read_record,
    read_together,
    write_set,
)
from biaskit.common.inputs import parse_json
from biaskit.errors import RunError, TableError
from biaskit.tables.io import OfStudy, frame_of, rows_of, table_bytes
from biaskit.tables.schema import SCHEMAS

if TYPE_CHECKING:
    import pandas as pd

TABLES = "tables"
ANALYSIS = "analysis.json"
ALONE = tuple(name for name, table in SCHEMAS.items() if table.alone)
"""Tables that another command makes by themselves: each is a set of its own, with NAME.json as its record."""


@dataclass(slots=True)
class TableSet:
    """The tables of one analysis of a run or a comparison, until they are put in place."""

    run: Path  # the folder whose tables/ they go to
    analysis: dict[str, Any] = field(default_factory=dict)  # for analysis.json: choices, signature, notes
    notes: list[str] = field(default_factory=list)  # what a careful reader must know
    content: dict[str, bytes] = field(default_factory=dict)  # table → its file, as `write` puts it in place

    def __post_init__(self) -> None:
        """Refuse a place that could not be written before anything is computed."""
        check_folder(self.run / TABLES)

    def add(self, name: str, rows: Sequence[Mapping[str, object]], **study: Unpack[OfStudy]) -> None:
        """Add a table, in place of one of the same name."""
        self.content[name] = table_bytes(name, rows, **study)

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Give a table's rows as they will read back; no rows where the set has no such table."""
        content = self.content.get(name)
        return [] if content is None else rows_of(Path(f"{name}.csv"), content)

    def write(self) -> list[str]:
        """Put all tables in place, and take away those that this analysis does not make.

        Returns the notes, and where each file is kept that somebody else had changed. Raises `TableError`
        where nothing can be written; the old tables are then as they were, or their digests say otherwise.
        """
        folder = self.run / TABLES
        files = {f"{name}.csv": content for name, content in self.content.items()}
        gone = [f"{name}.csv" for name in SCHEMAS if name not in ALONE]
        try:
            kept_files = write_set(folder, files, ANALYSIS, self.analysis, gone=gone)
        except OSError as error:
            raise TableError(
                f"{folder} cannot be written: {error.strerror or error}. Choose another --out."
            ) from error
        return [*self.notes, *kept_files]


def write_alone(
    run: Path, name: str, rows: Sequence[Mapping[str, object]], about: Mapping[str, object]
) -> list[str]:
    """Put a table of `ALONE` and its record in place; `about`: what else that holds. Raises `TableError`."""
    folder = run / TABLES
    try:
        files = {f"{name}.csv": table_bytes(name, rows)}
        return write_set(folder, files, f"{name}.json", about)
    except OSError as error:
        raise TableError(f"{folder} cannot be written: {error.strerror or error}.") from error


@dataclass(frozen=True, slots=True)
class StoredSet:
    """The tables of a run or a comparison as they stand on disk, each as its record names it."""

    run: Path
    analysis: dict[str, Any]
    tables: Mapping[str, bytes]  # by name, in order of the names

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """Read every table as typed rows."""
        return {name: rows_of(self._path(name), content) for name, content in self.tables.items()}

    def frame(self, name: str) -> pd.DataFrame | None:
        """Read a table as a DataFrame; None where the set has none of that name."""
        content = self.tables.get(name)
        return None if content is None else frame_of(self._path(name), content)

    def _path(self, name: str) -> Path:
        return self.run / TABLES / f"{name}.csv"


class UnfitError(RunError):
    """The tables of a run are not those that its record names."""

    def __init__(self, fault: str, remedy: str, analysis: dict[str, Any] | None) -> None:
        super().__init__(f"{fault}; {remedy}.")
        self.fault = fault
        self.analysis = analysis  # the record; None where that is not to be trusted either


def read_set(run: Path, names: Collection[str] = tuple(SCHEMAS)) -> StoredSet:
    """Read the tables of a run or a comparison, or those of some names, each checked by its digest.

    Raises `RunError` where there are none, `UnfitError` where one of them is not as it was written.
    """
    folder, faults, tables = run / TABLES, [], {}
    wanted = [f"{name}.csv" for name in sorted(SCHEMAS) if name in names]
    try:
        stored = read_together(folder, [ANALYSIS, *wanted, *(f"{name}.json" for name in ALONE)])
    except OSError as error:
        raise RunError(f"{error.filename or folder} cannot be read: {error.strerror or error}.") from error
    analysis = _analysis_of(run, stored[ANALYSIS])
    stated = files_of(analysis)
    if not is_intact(analysis):
        faults.append(f"{ANALYSIS} was changed after the analysis")
    for name in wanted:
        table, content = name.removesuffix(".csv"), stored[name]
        if table in ALONE:
            if content is not None:
                _check_alone(run, table, content, stored[f"{table}.json"])
                tables[table] = content
        elif name not in stated:
            continue  # a file that is no table of this set, whoever put it there
        elif content is None or digest_of(content) != stated[name]:
            faults.append(f"{name} {'is gone' if content is None else 'is not as it was written'}")
        else:
            tables[table] = content
    if faults:
        more = f", and {len(faults) - 1} more" if len(faults) > 1 else ""
        trusted = analysis if is_intact(analysis) else None
        remedy = f"`biaskit analyze {run}` rebuilds the tables"
        if (read_record(run / "manifest.json") or {}).get("measurement") == "compare":
            remedy = "rerun the compare command"
        raise UnfitError(f"{folder}: {faults[0]}{more}", remedy, trusted)
    return StoredSet(run, analysis, tables)


def _check_alone(run: Path, name: str, content: bytes, record: bytes | None) -> None:
    """Check a table of `ALONE` by its record. Raises `RunError` where they do not fit."""
    try:
        stated = parse_json(record or b"")
        fits = is_intact(stated) and files_of(stated).get(f"{name}.csv") == digest_of(content)
    except (AttributeError, ValueError):
        fits = False
    if not fits:
        raise RunError(
            f"{run / TABLES / name}.csv is not as it was written: `biaskit calibrate {run}` rebuilds it,"
            " or move it away."
        )


def _analysis_of(run: Path, content: bytes | None) -> dict[str, Any]:
    """Read a set's record. Raises `RunError` where there is none that can be read."""
    if content is None:
        raise RunError(f"{run} has no tables yet: `biaskit analyze {run}` makes them.")
    try:
        analysis = parse_json(content)
    except ValueError as error:
        analysis, why = None, f": {error}"
    else:
        why = " as what it should be"
    if not isinstance(analysis, dict):
        file = run / TABLES / ANALYSIS
        raise RunError(f"{file} cannot be read{why}; `biaskit analyze {run}` rebuilds the tables.")
    return analysis
