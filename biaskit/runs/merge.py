"""Rows of several runs of one study, made on one machine or on many, as one run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from biaskit.errors import RunError
from biaskit.runs.designs import design_digest
from biaskit.runs.folder import check_run_folder
from biaskit.runs.manifest import Manifest, manifest_there, merge_questions, read_manifest
from biaskit.runs.shards import WHOLE
from biaskit.runs.store import RowWriter, read_rows, rows_file

Resolved = Mapping[str, Any]  # a design as a manifest holds it


def merge(
    runs: Sequence[Path],
    out: Path,
    *,
    lock: str = "os",
    skip_bad: bool = False,
    note: Callable[[str], None] | None = None,
) -> Path:
    """Put the rows of several runs, or shards, of one study, each once, in a folder of their own.

    `note` is told of missing shards. Raises `RunError` where the runs asked two studies, or call two models
    by one label.
    """
    manifests = list(map(read_manifest, runs))
    kinds = {manifest.kind for manifest in manifests}
    if len(kinds) > 1:
        raise RunError("Runs of two measurements are not merged: `biaskit compare` puts them side by side.")
    [kind] = kinds
    if any(manifest.imported for manifest in manifests):
        raise RunError(
            "Runs of imported texts cannot be merged: put the texts into one file with a model column."
        )
    shards = [manifest.shard for manifest in manifests]
    given = {shard.number for shard in shards}
    missing = [str(n) for n in range(1, max(shard.of for shard in shards) + 1) if n not in given]
    if missing and note is not None:
        note(f"Of {shards[0].of} shards these are not given: {', '.join(missing)}.")
    merged = manifests[0]
    merged.shard = WHOLE
    for run, manifest in zip(runs[1:], manifests[1:], strict=True):
        merged.question = merge_questions(run, merged.question, manifest.question)
        merged.resolved = kind.unite(merged.resolved, manifest.resolved)
        for label, entry in manifest.models.items():
            if merged.models.setdefault(label, entry).fingerprint != entry.fingerprint:
                raise RunError(
                    f"{label!r} is another model in {run} than in {runs[0]}. Give them two labels."
                )
    merged.resolved["digest"] = design_digest(merged.resolved)
    merged.signature = merged.design().sign(merged.models)
    store_rows(out, merged, _rows(runs, kind.name, skip_bad), lock=lock, skip_bad=skip_bad)
    for beside in kind.beside:
        if any(rows_file(run, beside).exists() for run in runs):
            with RowWriter(out, beside, lock=lock, skip_bad=skip_bad) as writer:
                writer.append_all(_rows(runs, beside, skip_bad))
    return out


def _rows(runs: Sequence[Path], name: str, skip_bad: bool) -> Iterator[dict[str, Any]]:
    for path in (rows_file(run, name) for run in runs):
        if path.exists():
            yield from read_rows(path, skip_bad=skip_bad)


def store_rows(
    run: Path,
    manifest: Manifest,
    rows: Iterable[Mapping[str, Any]],
    *,
    lock: str = "os",
    skip_bad: bool = False,
) -> None:
    """Store rows that are at hand as a run, or add them to the run of the same question that is there."""
    check_run_folder(run)
    _check_question(run, manifest)  # before the rows are opened, which cuts off their unfinished end
    with RowWriter(run, manifest.measurement, lock=lock, skip_bad=skip_bad) as writer:
        _check_question(run, manifest)  # again, now that nobody else writes
        manifest.write(run)
        writer.append_all(rows)


def _check_question(run: Path, manifest: Manifest) -> None:
    if stored := manifest_there(run, manifest.measurement):
        merge_questions(run, stored.question, manifest.question)


def united(first: Resolved, second: Resolved, *lists: str) -> dict[str, Any]:
    """Copy the first design, each of these lists followed by the entries that only the second has."""
    both = dict(first)
    for name in lists:
        both[name] = [*first[name], *(entry for entry in second[name] if entry not in first[name])]
    return both
