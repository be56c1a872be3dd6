"""`biaskit runs`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from biaskit.cli.options import with_format
from biaskit.cli.output import print_document
from biaskit.cli.terminal import emit, emit_json, emit_notes
from biaskit.report.render.document import Document, listed_table
from biaskit.runs.store import DEFAULT_PARENT
from biaskit.workflow.analyze import describe_runs


@click.command("runs")
@click.argument("folder", default=str(DEFAULT_PARENT))
@with_format("Output format.", ("text", "json"))
def command(folder: str, output_format: str) -> None:
    """List the runs in FOLDER (default: biaskit-runs): rows done, rows planned, last write."""
    runs, broken = [], []
    for run in describe_runs(Path(folder)):
        if "reason" in run:
            broken.append(f"{run['run']}: {run['reason']}")
        else:
            runs.append(run)
    if output_format == "json":
        emit_json(runs)
        # A program reads the runs; whoever started it reads what is broken.
        emit_notes(broken, err=True)
    elif not runs and not broken:
        emit(f"No runs in {folder}/ yet.\n")
    else:
        rows = []
        for run in runs:
            done = "–" if run["rows"] is None else f"{run['rows']:,}"
            if run["planned"] is not None:
                done += f" of {run['planned']:,}"
            stamp = run["last_write"]
            when = datetime.fromtimestamp(stamp).strftime("%Y-%m-%d %H:%M") if stamp else "–"
            rows.append((run["run"], run["study"], ", ".join(run["models"]), done, when))
        table = listed_table("Runs", ("run", "study", "models", "rows", "last write"), rows, 3)
        print_document(Document((table,), tuple(broken)))
