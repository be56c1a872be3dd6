"""Rows of several runs of one study, made on one machine or on many, as one run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from biaskit.errors import RunError
from biaskit.runs.folder import check_run_folder
from biaskit.runs.manifest import MANIFEST, merge_compatible, read_manifest, write_manifest
from biaskit.runs.resolved import design_digest
from biaskit.runs.store import RowWriter, read_rows, rows_file

Resolved = Mapping[str, Any]


def merge_runs(
    runs: Sequence[Path],
    out: Path,
    engine: str,
    *,
    unite: Callable[[Resolved, Resolved], dict[str, Any]],
    read: Callable[[Resolved], Any],
    sign: Callable[[Any, Mapping[str, Any]], str],
    lock: str = "os",
    skip_bad: bool = False,
) -> Path:
    """Rows of several runs in a folder of their own; each row counts once.

    `unite` makes one stored design of two, in the first's order, or says why it cannot; `read` reads it,
    `sign` signs a design and its models.
    """
    manifests = [read_manifest(run) for run in runs]
    merged = manifests[0]
    for run, manifest in zip(runs[1:], manifests[1:], strict=True):
        merged["question"] = merge_compatible(run, merged["question"], manifest["question"])
        merged["resolved"] = unite(merged["resolved"], manifest["resolved"])
        for label, entry in manifest["models"].items():
            known = merged["models"].setdefault(label, entry)
            if known["fingerprint"] != entry["fingerprint"]:
                raise RunError(
                    f"{run} calls another model {label!r} than {runs[0]} does. Give them two labels."
                )
    merged["resolved"]["digest"] = design_digest(merged["resolved"])
    merged["signature"] = sign(read(merged["resolved"]), merged["models"])
    rows = (row for run in runs for row in read_rows(rows_file(run, engine), skip_bad=skip_bad))
    store_rows(out, merged, rows, lock=lock, skip_bad=skip_bad)
    return out


def store_rows(
    run: Path,
    manifest: Mapping[str, Any],
    rows: Iterable[Mapping[str, Any]],
    *,
    lock: str = "os",
    skip_bad: bool = False,
) -> None:
    """Rows that are at hand as a run, or added to the run of the same question that is there."""
    check_run_folder(run)
    _check_question(run, manifest)  # before the rows are opened, which cuts off their unfinished end
    with RowWriter(run, manifest["engine"], lock=lock, skip_bad=skip_bad) as writer:
        _check_question(run, manifest)  # again, now that nobody else writes
        write_manifest(run, manifest)
        writer.append_all(rows)


def _check_question(run: Path, manifest: Mapping[str, Any]) -> None:
    if not (run / MANIFEST).exists():
        return
    stored = read_manifest(run)
    if stored["engine"] != manifest["engine"]:
        raise RunError(f"{run} is a run of the engine {stored['engine']!r}. Choose another --out.")
    merge_compatible(run, stored["question"], manifest["question"])


def united(first: Resolved, second: Resolved, *lists: str) -> dict[str, Any]:
    """The first design; these lists of it followed by the entries that only the second has."""
    added = {name: [entry for entry in second[name] if entry not in first[name]] for name in lists}
    return {**first, **{name: [*first[name], *entries] for name, entries in added.items()}}
