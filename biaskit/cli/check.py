"""`biaskit check`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from biaskit.cli.compare import DOES_NOT_HOLD
from biaskit.cli.options import examples, option, with_format, with_sides
from biaskit.cli.terminal import emit, emit_json
from biaskit.common.files import write_or_refuse
from biaskit.compare.check_files import junit, summary
from biaskit.errors import UsageError
from biaskit.runs.store import find_run
from biaskit.workflow.check import check, example


@click.command(
    "check",
    epilog=examples(
        "biaskit check OLD-RUN NEW-RUN --thresholds check.toml",
        "biaskit check RUN --baseline OLD-RUN --max-flips 0.05",
        "biaskit check RUN --thresholds check.toml --junit check.xml",
        "biaskit check runs/may runs/june --thresholds letters.toml",
        'biaskit check OLD-RUN NEW-RUN --thresholds check.toml --format github >> "$GITHUB_STEP_SUMMARY"',
    ),
)
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@option("--thresholds", "FILE", "Thresholds: a TOML file with [[require]] tables.")
@option("--baseline", "OLD-RUN", "The run before a change; its models are compared with those of RUN.")
@option("--max-flips", "FRACTION", "Prompts that may have another most probable group, of all.", type=float)
@option("--junit junit_file", "FILE", "Also write the result as JUnit XML.")
@with_sides
@with_format("Output format; github: Markdown for a step summary.", ("text", "json", "github"))
def command(
    runs: tuple[str, ...],
    thresholds: str | None,
    baseline: str | None,
    max_flips: float | None,
    junit_file: str | None,
    output_format: str,
    groups: tuple[str, ...],
    aliases: str | None,
) -> None:
    """Check RUNs against thresholds, for a build that must not ship a model that fails them.

    Two files of your own texts: contrast = "models", quantity = "represented_share", margin = 0.1.
    Only stored tables are read; only --junit writes a file. Without RUN, the newest run in this folder is
    used. Exit codes: 0 passed, 1 failed, 2 wrong use, 4 a requirement is not met, or was not measured.
    """
    paths = list(map(find_run, runs)) or [find_run(None)]
    if thresholds is None and max_flips is None:
        raise UsageError(f"Give --thresholds FILE, a TOML file such as:\n{example(*paths)}")
    old = find_run(baseline) if baseline else None
    of_change: Any = {"baseline": old, "max_flips": max_flips}
    result = check(*paths, thresholds=thresholds, groups=groups, aliases=aliases, **of_change)
    if junit_file is not None:
        write_or_refuse(Path(junit_file), junit(result))
    if output_format == "json":
        requirements = []
        for outcome in result.outcomes:
            stated = {
                "name": outcome.require.title,
                "holds": outcome.holds,
                "n_rows": outcome.n_rows,
                "not_compared": list(outcome.not_compared),
                "weak_evidence": list(outcome.weak),
            }
            failing = []
            for one in outcome.failing:
                failing.append({"why": one.why, "row": dict(one.row), "examples": list(one.examples)})
            requirements.append(stated | {"failing": failing})
        emit_json({"holds": result.holds, "requirements": requirements})
    else:
        emit(summary(result) if output_format == "github" else f"{result.text}\n")
    if not result.holds:
        sys.exit(DOES_NOT_HOLD)
