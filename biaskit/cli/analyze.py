"""`biaskit analyze`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from biaskit.cli.options import with_format, with_settings
from biaskit.cli.output import print_result
from biaskit.cli.terminal import emit
from biaskit.runs import find_run
from biaskit.workflow import ProbeResult, analyse, analysis_keys, merge


@click.command("analyze")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--study", metavar="PATH", help="A study file whose analysis keys are used.")
@click.option("--out", metavar="RUN", help="Where the merged rows of several runs go.")
@with_settings
@with_format
def command(
    runs: tuple[str, ...], study: str | None, out: str | None, settings: dict[str, Any], output_format: str
) -> None:
    """Make every table of a RUN again from its stored rows; no model is loaded.

    Without RUN the newest run of this folder is taken. Several runs of one study are merged into --out.
    """
    if len(runs) > 1 and out is None:
        raise click.UsageError("Several runs need --out: the folder their merged rows go to.")
    paths = [find_run(run) for run in runs] or [find_run(None)]
    if not runs:
        emit(f"Newest run: {paths[0]}\n", err=True)
    chosen = {**(analysis_keys(study, paths[0]) if study else {}), **settings}
    path = paths[0]
    if out is not None:
        how = {"lock": chosen.get("lock", "os"), "skip_bad": bool(chosen.get("skip_bad_lines", False))}
        path = merge(paths, Path(out), **how)
    notes = analyse(path, chosen)
    print_result(ProbeResult(path, tuple(notes)), output_format)
