"""`biaskit compare`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Any

import click

from biaskit.cli.options import examples, option, with_format, with_settings, with_sides, with_verbose
from biaskit.cli.output import as_json, named_or_newest, print_result
from biaskit.cli.terminal import emit, emit_json, emit_notes
from biaskit.compare.thresholds import CONTRASTS
from biaskit.errors import UsageError, nearest
from biaskit.runs.collection import Part
from biaskit.runs.manifest import read_manifest
from biaskit.workflow.compare import compare

DOES_NOT_HOLD = 4
REQUIRE = (
    "Exit with code 4 unless every row of the contrast (default: models) that has a margin is equivalent"
    " within it."
)
AXIS = "A value for each RUN, in their order: bits=32,8,4. Shares and changes are followed along it."
SIDE_BY_SIDE = ("probe_groups", "probe_levels", "representation", "srb")


@click.command(
    "compare",
    epilog=examples(
        "biaskit compare probe-run personas-run",
        "biaskit compare old new --require equivalent --set margin.share=0.03",
        "biaskit compare RUN --group small=a,b --group large=c,d",
        "biaskit compare f32 q8 q4 --axis bits=32,8,4",
        "biaskit compare probe-run personas-run --aliases names.csv --format json",
    ),
)
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@option("--out", "DIR", "The comparison's folder; default: biaskit-runs/compare-MODEL-MODEL.")
@option("--require", "equivalent[=CONTRAST]", REQUIRE)
@option("--axis", "NAME=VALUES", AXIS)
@with_sides
@with_settings(
    "margin.QUANTITY=NUMBER: how close counts as equivalent; tie_zone=NUMBER: as nearly a tie. Repeatable."
)
@with_verbose
@with_format()
def command(
    runs: tuple[str, ...], require: str | None, verbose: bool, output_format: str, **chosen: Any
) -> None:
    """Compare the models of one or several RUNs, with tests between them.

    Only stored tables are read; no model is loaded. A difference is the model named later minus the one
    named earlier. Without RUN, the newest run in this folder is used if it has several models.
    Exit codes: 0 done, 1 failed, 2 wrong use, 4 not equivalent as --require demands.
    """
    contrast = ""
    if require is not None:  # before anything is computed
        word, equals, contrast = require.partition("=")
        contrast = contrast if equals else "models"
        if word != "equivalent" or contrast not in CONTRASTS:
            raise UsageError(
                f"--require {require}: write --require equivalent or equivalent=CONTRAST, one of"
                f" {', '.join(CONTRASTS)}.{nearest(contrast, CONTRASTS)}"
            )
    paths = named_or_newest(runs)
    if not runs and len(read_manifest(paths[0]).models) < 2:
        raise UsageError(f"Name runs to compare: the newest, {paths[0]}, has only one model.")
    result = compare(*paths, **chosen)
    if output_format == "csv" and not (result.path / "tables" / "tests.csv").exists():
        emit_notes(result.warnings, err=True)
    elif output_format == "json":
        emit_json(as_json(result) | {"parts": list(map(_part, result.content.parts))})
    else:
        print_result(result, output_format, verbose=verbose)
    if contrast:
        requirement = result.requirement(contrast)
        emit("\n".join((requirement.text, *(f"  {line}" for line in requirement.lines))) + "\n", err=True)
        if not requirement.holds:
            sys.exit(DOES_NOT_HOLD)


def _part(part: Part) -> dict[str, Any]:
    """Those of the runs' own tables that the text shows."""
    return {
        "measurement": part.measurement,
        "study": part.study,
        "runs": list(part.runs),
        "models": list(map(asdict, part.models)),
        "tables": {name: part.tables[name] for name in SIDE_BY_SIDE if name in part.tables},
    }
