"""`biaskit verify`."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import Any

import click

from biaskit.cli.compare import DOES_NOT_HOLD
from biaskit.cli.options import DTYPES, examples, option, with_format, with_key, with_price, with_verbose
from biaskit.cli.output import FINISHED_WITH_MISSING
from biaskit.cli.terminal import TerminalWatcher, emit, emit_json, width
from biaskit.report.render.text import fold
from biaskit.runs.store import find_run
from biaskit.workflow.verify import PROMPTS, verify

_UNSURE = "Nothing differs, but something could not be checked"
_OUTCOMES = {  # the exit code, the word beside a check, and the sentence about the run
    "agrees": (0, "agrees", "The run agrees"),
    "differs": (DOES_NOT_HOLD, "DIFFERS", "The run differs"),
    "not-checked": (FINISHED_WITH_MISSING, "not checked", _UNSURE),
}
_PROMPTS = "Prompts or texts of each model to query again."
_MODEL = "Query this model instead of the run's, if it has moved; LABEL=MODEL if several. Repeatable."


@click.command(
    "verify",
    epilog=examples(
        "biaskit verify RUN",
        "biaskit verify RUN --prompts 200 --seed 7",
        "biaskit verify /media/their-run --out verification.json",
        "biaskit verify RUN --no-model",
    ),
)
@click.argument("run", required=False, metavar="[RUN]")
@option("--prompts", "N", _PROMPTS, type=click.IntRange(min=1), default=PROMPTS, show_default=True)
@option("--seed", "N", "Seed of the sample; by default a new one each time.", type=click.IntRange(min=0))
@option("--no-model ask", None, "Query no model.", is_flag=True, flag_value=False, default=True)
@option("--model", "MODEL", _MODEL, multiple=True)
@option("--out", "FILE", "Output file; default: verification.json in the run's folder.")
@option("--device", None, "cpu, cuda, cuda:N, mps, or map.", default="auto", show_default=True)
@option("--dtype", None, "auto: the run's own.", type=DTYPES, default="auto", show_default=True)
@with_key
@option("--endpoint-name", "NAME", "The name that the run used instead of the base URL.")
@option("--max-cost", "USD", "Cost limit of the queries.", type=float)
@with_price
@option("--yes", None, "Query the run's models without confirmation.", is_flag=True)
@with_verbose
@with_format("Output format.", ("text", "json"))
def command(run: str | None, yes: bool, verbose: bool, output_format: str, **chosen: Any) -> None:
    """Check a stored RUN, and query a random sample of its answers again.

    Rows, lists, signature and tables are checked without a model; then random prompts are sent again from
    this machine. Rows stay as they are; the result goes to verification.json. Exit codes: 0 all agrees,
    1 failed, 2 wrong use, 3 nothing differs but something could not be checked, 4 something differs.
    """
    path = find_run(run)
    with closing(TerminalWatcher(assume_yes=yes, verbose=verbose)) as watcher:
        verification = verify(path, watcher=watcher, **chosen)
    exit_code, _, verdict = _OUTCOMES[verification.outcome]
    if output_format == "json":
        emit_json(verification.model_dump())
    else:
        lines: list[str] = []
        for check in verification.checks:
            first = f"{_OUTCOMES[check.outcome][1]:11}  {check.shown:12}  "
            lines += fold(check.text, width(), first=first, then=" " * len(first))
        lines += fold(f"{verdict} (seed {verification.seed}).", width())
        emit("\n".join(lines) + "\n")
    sys.exit(exit_code)
