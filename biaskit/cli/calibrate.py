"""`biaskit calibrate`."""

from __future__ import annotations

from typing import Any

import click

from biaskit.cli.options import examples, with_settings
from biaskit.cli.terminal import emit
from biaskit.report.latex import render_latex
from biaskit.report.text import render_text
from biaskit.runs import find_run
from biaskit.workflow import calibrate


@click.command(
    "calibrate",
    epilog=examples(
        "biaskit calibrate RUN --occupation nurse",
        "biaskit analyze RUN --study RUN/calibrated.toml",
    ),
)
@click.argument("run", required=False)
@click.option("--occupation", metavar="NAME", help="Whose texts; default the one with most of them.")
@click.option("--model", metavar="LABEL", help="Whose texts; needed where the run has several models.")
@click.option("--out", metavar="FILE", help="The study file; default calibrated.toml in the run's folder.")
@with_settings
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "csv", "latex"]),
    default="text",
    show_default=True,
    help="How the table is printed.",
)
def command(
    run: str | None,
    occupation: str | None,
    model: str | None,
    out: str | None,
    settings: dict[str, Any],
    output_format: str,
) -> None:
    """Search C and alpha of Calibrated Marked Words on a RUN's own texts; writes a study file.

    Without RUN the newest run of this folder is taken.
    """
    path = find_run(run)
    if run is None:
        emit(f"Newest run: {path}\n", err=True)
    result = calibrate(path, occupation=occupation, model=model, out=out, settings=settings)
    if output_format == "csv":
        emit((result.path / "tables" / "calibration.csv").read_text(encoding="utf-8"))
        return
    emit((render_latex if output_format == "latex" else render_text)(result.document()))
    if result.study_file is not None:
        emit(f"\nStudy file: {result.study_file} (biaskit analyze {path} --study {result.study_file})\n")
