"""`biaskit runs`."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import click

from biaskit.cli.terminal import emit
from biaskit.errors import BiaskitError
from biaskit.report.document import Document, Heading, TitledTable
from biaskit.report.text import render_text
from biaskit.runs import DEFAULT_PARENT, list_runs
from biaskit.workflow import describe_run


@click.command("runs")
@click.argument("folder", default=str(DEFAULT_PARENT))
@click.option(
    "--format", "output_format", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def command(folder: str, output_format: str) -> None:
    """The runs in FOLDER (default biaskit-runs): rows done of planned, last write."""
    found, broken = [], []
    for path in list_runs(Path(folder)):
        try:
            found.append(describe_run(path))
        except BiaskitError as error:
            broken.append(f"{path}: {error}")
    if output_format == "json":
        emit(json.dumps(found, indent=1) + "\n")
    elif not found and not broken:
        emit(f"No runs in {folder}/ yet.\n")
    else:
        rows = tuple(
            (
                r["run"],
                r["study"],
                ", ".join(r["models"]),
                f"{r['rows']:,} of {r['planned'] or 0:,}",
                _when(r["last_write"]),
            )
            for r in found
        )
        header = (
            (Heading("run"), Heading("study"), Heading("models"), Heading("rows"), Heading("last write")),
        )
        emit(render_text(Document((TitledTable("Runs", header, rows, n_text=3),), tuple(broken))))


def _when(stamp: float | None) -> str:
    return datetime.fromtimestamp(stamp).strftime("%Y-%m-%d %H:%M") if stamp else "–"
