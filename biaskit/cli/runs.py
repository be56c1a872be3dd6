"""`biaskit runs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from biaskit.cli.options import with_format
from biaskit.cli.output import listed_table, print_document
from biaskit.cli.terminal import emit, emit_json, emit_notes
from biaskit.errors import BiaskitError
from biaskit.report.render.data import render_csv
from biaskit.report.render.document import Document, TitledTable
from biaskit.runs.store import DEFAULT_PARENT, list_runs
from biaskit.workflow.analyze import describe_run


@click.command("runs")
@click.argument("folder", default=str(DEFAULT_PARENT))
@with_format()
def command(folder: str, output_format: str) -> None:
    """List the runs in FOLDER (default: biaskit-runs): rows done of planned, last write."""
    found, broken = [], []
    for path in list_runs(Path(folder)):
        try:
            found.append(describe_run(path))
        except BiaskitError as error:
            broken.append(f"{path}: {error}")
    if output_format in ("json", "csv"):
        emit_json(found) if output_format == "json" else emit(render_csv(_plain(found)))
        # A program reads the runs; whoever started it reads what is broken.
        emit_notes(broken, err=True)
    elif not found and not broken:
        emit(f"No runs in {folder}/ yet.\n")
    else:
        print_document(Document((_shown(found),), tuple(broken)), output_format)


def _shown(found: Sequence[Mapping[str, Any]]) -> TitledTable:
    rows = (
        (
            *(r["run"], r["study"], ", ".join(r["models"])),
            "–" if r["rows"] is None else f"{r['rows']:,} of {r['planned'] or 0:,}",
            _when(r["last_write"]),
        )
        for r in found
    )
    return listed_table("Runs", ("run", "study", "models", "rows", "last write"), rows, 3)


def _plain(found: Sequence[Mapping[str, Any]]) -> TitledTable:
    """The same for a program: one number in a field, an unknown one is empty."""
    rows = (
        (
            *(r["run"], r["study"], ", ".join(r["models"])),
            *("" if r[name] is None else str(r[name]) for name in ("rows", "planned", "last_write")),
        )
        for r in found
    )
    heads = ("run", "study", "models", "rows", "planned", "last_write")
    return listed_table("Runs", heads, rows, 3)


def _when(stamp: float | None) -> str:
    return datetime.fromtimestamp(stamp).strftime("%Y-%m-%d %H:%M") if stamp else "–"
