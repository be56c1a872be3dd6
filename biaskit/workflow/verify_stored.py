"""A stored run held against its own record: rows, lists and tables, without a model."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from biaskit.common.files import digest_of, files_of, is_intact, read_record
from biaskit.common.wording import count
from biaskit.corpora.sources import list_corpora, source_digest
from biaskit.errors import BiaskitError, CorpusError
from biaskit.measurement import Measurement
from biaskit.progress import Watcher
from biaskit.runs.designs import design_digest
from biaskit.runs.store import Reading, read_rows, rows_file
from biaskit.runs.verification import Check, Pair
from biaskit.tables.sets import ANALYSIS, TABLES

ROUNDING = 1e-9
"""Relative difference of a number of a table that another processor or library may make."""


def check_rows(
    run: Path, kind: Measurement, find: Any, cells: int, seed: int
) -> tuple[Check, dict[str, list[Pair]]]:
    """Check each row against its checksum, its study and its key, and draw by model those to ask again.

    The draw follows from the seed and the keys, whatever the order of the rows. `find`: the kind's `finder`;
    None for imported texts, which answer no request.
    """
    path = rows_file(run, kind.name)
    if not path.is_file():
        return Check.of("rows", [f"there is no {path.name}"], ""), {}
    reading, faults, n_unknown = Reading(), list[str](), 0
    keys: dict[str, list[str]] = {}  # model → its sound rows
    for row in read_rows(path, skip_bad=True, reading=reading):
        label, request = (None, None) if find is None else find(row) or ("", None)
        if label == "":
            n_unknown += 1
            continue
        fault = kind.fault(row, request)
        if fault is None and request is not None and row["key"] != request.key:
            fault = "its prompt, words or model were different when it was sent"
        if fault is not None:
            faults.append(fault if request is None else f"line {reading.line}: {fault}")
        elif label is not None:
            keys.setdefault(label, []).append(row["key"])
    if reading.n_twice:
        faults.insert(0, f"{count(reading.n_twice, 'row')} there twice")
    if reading.n_skipped:
        faults.insert(0, f"{count(reading.n_skipped, 'line')} not as written")
    fine = f"{count(reading.n_rows, 'row')}, each as written and with the key of what it answers"
    if n_unknown:
        fine += f"; {n_unknown:,} not part of the question"
    drawn: set[str] = set()
    for sound in keys.values():
        drawn.update(np.random.default_rng(seed).choice(sorted(sound), min(cells, len(sound)), replace=False))
    pairs: dict[str, list[Pair]] = {}
    for row in read_rows(path, skip_bad=True) if drawn else ():
        if row["key"] in drawn:
            label, request = find(row)
            pairs.setdefault(label, []).append((row, request))
    return Check.of("rows", faults, fine), pairs


def check_lists(resolved: Mapping[str, Any]) -> Check:
    """Check the study in the manifest against its digest, and its lists against the files they come from."""
    faults, away = [], []
    study = {name: value for name, value in resolved.items() if name not in ("imported", "notes")}
    if design_digest(study) != resolved["digest"]:
        faults.append("the manifest's study was changed: its digest does not match")
    try:
        list_corpora()  # checks each file's digest
    except CorpusError as error:
        faults.append(str(error))
    for source, stated in resolved["sources"].items():
        try:
            if source_digest(source) != stated:
                faults.append(f"{source} is a different list here")
        except CorpusError:
            away.append(source)
    if away and not faults:
        return Check.left_out("lists", f"not on this machine: {', '.join(away)}")
    return Check.of("lists", faults, f"{count(len(resolved['sources']), 'list')} as in the manifest")


def check_tables(run: Path, kind: Measurement, watcher: Watcher) -> tuple[list[Check], str]:
    """Check the tables against their digests and against those made of the rows; with the rows' digest."""
    record: Mapping[str, Any] | None = read_record(run / TABLES / ANALYSIS)
    if record is None:
        return [Check.left_out("tables", "the run has no tables yet: `biaskit analyze` makes them")], ""
    try:
        tables = kind.tables(run, record["choices"], watcher)
    except (BiaskitError, LookupError, TypeError) as error:
        return [Check.left_out("tables", f"they cannot be rebuilt: {error}")], ""
    analysis = tables.analysis
    if record.get("methods") != analysis["methods"]:
        return [Check.left_out("tables", "another version of the methods made the stored tables")], ""
    faults = [] if is_intact(record) else [f"{ANALYSIS} was changed after the analysis"]
    if record.get("rows_digest") != analysis["rows_digest"]:
        faults.append("the rows are not those that the tables were made from")
    # Without the version of biaskit, which is the reader's and not the run's.
    if str(record.get("signature")).partition(" | ")[2] != str(analysis["signature"]).partition(" | ")[2]:
        faults.append(f"the signature in {ANALYSIS} does not match its choices")
    digests = files_of(record)
    from_rows = {f"{name}.csv": content for name, content in tables.content.items()}
    for name in sorted({*digests, *from_rows}):
        file = run / TABLES / name
        stored = file.read_bytes() if file.is_file() else None
        if stored is not None and digest_of(stored) != digests.get(name):
            faults.append(f"{name} is not as it was written")
        if difference := _difference(name, stored, from_rows.get(name)):
            faults.append(difference)
    fine = f"{count(len(from_rows), 'table')} as written, and the same when rebuilt from the rows"
    return [Check.of("tables", faults, fine)], str(analysis["rows_digest"])


def _difference(name: str, stored: bytes | None, from_rows: bytes | None) -> str | None:
    """Name the first value in which a stored table differs from that of the rows by more than rounding."""
    import pandas as pd

    if stored == from_rows:
        return None
    if stored is None or from_rows is None:
        return f"{name} {'is missing' if stored is None else 'does not follow from the rows'}"
    try:
        before = pd.read_csv(io.BytesIO(stored), dtype=str, keep_default_na=False)
    except ValueError:
        return f"{name} is not a table"
    after = pd.read_csv(io.BytesIO(from_rows), dtype=str, keep_default_na=False)
    if list(before.columns) != list(after.columns) or len(before) != len(after):
        return f"{name}: rows or columns differ from the rebuilt table"
    for column in after.columns:
        was, now = (pd.to_numeric(table[column], errors="coerce").to_numpy() for table in (before, after))
        same = (before[column] == after[column]) | np.isclose(was, now, rtol=ROUNDING, atol=0.0)
        for row in np.flatnonzero(~same):
            values = f"{before[column][row]!r} stored, {after[column][row]!r} rebuilt"
            return f"{name}, row {row + 1}, {column}: {values}"
    return None
