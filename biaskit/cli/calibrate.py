"""`biaskit calibrate`."""

from __future__ import annotations

from typing import Any

import click

from biaskit.cli.options import examples, option, with_format, with_settings
from biaskit.cli.output import named_or_newest, print_document
from biaskit.cli.terminal import emit, emit_json
from biaskit.measures.personas.calibrate import calibrate
from biaskit.tables.io import read_table_rows


@click.command(
    "calibrate",
    epilog=examples(
        "biaskit calibrate RUN --occupation nurse", "biaskit analyze RUN --study RUN/calibrated.toml"
    ),
)
@click.argument("run", required=False)
@option("--occupation", "NAME", "Use the texts of this occupation; default: the one with the most texts.")
@option("--model", "LABEL", "Use the texts of this model; required if the run has several.")
@option("--out", "FILE", "The study file; default: calibrated.toml in the run's folder.")
@with_settings()
@with_format("Output format.", ("text", "json"))
def command(run: str | None, output_format: str, **chosen: Any) -> None:
    """Choose C and alpha of Calibrated Marked Words from a RUN's texts, and write a study file.

    Without RUN, the newest run in this folder is used.
    """
    (path,) = named_or_newest([run] if run is not None else [])
    result = calibrate(path, **chosen)
    if output_format == "text":
        print_document(result.document())
        if result.study_file is not None:
            how = f"biaskit analyze {path} --study {result.study_file}"
            emit(f"\nStudy file: {result.study_file} ({how})\n")
        return
    table = result.path / "tables" / "calibration.csv"
    calibration = result.found
    recommended, prior = calibration.recommended, calibration.prior
    emit_json(
        {
            "run": str(result.path),
            "model": calibration.model,
            "occupation": calibration.occupation,
            "recommended": recommended and {"alpha": recommended.alpha, "c": recommended.constant},
            "prior": prior and {"alpha": prior.alpha, "c": prior.constant},
            "reason": calibration.reason,
            "study_file": None if result.study_file is None else str(result.study_file),
            "signature": result.signature,
            "warnings": list(result.warnings),
            "tables": {"calibration": read_table_rows(table) if table.is_file() else []},
        }
    )
