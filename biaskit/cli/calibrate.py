"""`biaskit calibrate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from biaskit.cli.options import examples, with_format, with_settings
from biaskit.cli.output import print_document
from biaskit.cli.terminal import emit
from biaskit.runs.store import find_run
from biaskit.tables.io import read_table_rows
from biaskit.workflow import CalibrationResult, calibrate


@click.command(
    "calibrate",
    epilog=examples(
        "biaskit calibrate RUN --occupation nurse",
        "biaskit analyze RUN --study RUN/calibrated.toml",
    ),
)
@click.argument("run", required=False)
@click.option(
    "--occupation", metavar="NAME", help="Whose texts to use; default: the occupation with most texts."
)
@click.option("--model", metavar="LABEL", help="Whose texts to use; needed if the run has several models.")
@click.option("--out", metavar="FILE", help="The study file; default calibrated.toml in the run's folder.")
@with_settings
@with_format
def command(
    run: str | None,
    occupation: str | None,
    model: str | None,
    out: str | None,
    settings: dict[str, Any],
    output_format: str,
) -> None:
    """Find C and alpha of Calibrated Marked Words on a RUN's own texts, and write a study file.

    Without RUN, the newest run in this folder is used.
    """
    path = find_run(run)
    if run is None:
        emit(f"Newest run: {path}\n", err=True)
    result = calibrate(path, occupation=occupation, model=model, out=out, settings=settings)
    table = result.path / "tables" / "calibration.csv"
    if output_format == "csv":
        emit(table.read_text(encoding="utf-8"))
        return
    if output_format == "json":
        emit(_as_json(result, table))
        return
    print_document(result.document(), output_format)
    if result.study_file is not None:
        how = f"biaskit analyze {path} --study {result.study_file}"
        # Between the lines of a .tex it would be printed in the manuscript.
        emit(f"\nStudy file: {result.study_file} ({how})\n", err=output_format == "latex")


def _as_json(result: CalibrationResult, table: Path) -> str:
    chosen, taken = result.found.recommended, result.found.prior
    content = {
        "run": str(result.path),
        "model": result.found.model,
        "occupation": result.found.occupation,
        "recommended": None if chosen is None else {"alpha": chosen.alpha, "c": chosen.constant},
        "prior": None if taken is None else {"alpha": taken.alpha, "c": taken.constant},
        "reason": result.found.reason,
        "study_file": None if result.study_file is None else str(result.study_file),
        "signature": result.signature,
        "warnings": list(result.warnings),
        "tables": {"calibration": read_table_rows(table) if table.is_file() else []},
    }
    return json.dumps(content, indent=1, allow_nan=False) + "\n"
