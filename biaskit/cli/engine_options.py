"""The commands that query models, `probe` and `personas`: what both engines share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import click

from biaskit.cli.options import (
    DTYPES,
    Decorator,
    option,
    several,
    with_format,
    with_price,
    with_settings,
    with_verbose,
)
from biaskit.cli.output import finish
from biaskit.cli.terminal import TerminalWatcher
from biaskit.corpora.sources import read_text
from biaskit.report.result import RunResult

_AUTO: dict[str, Any] = {"default": "auto", "show_default": True}
_KEYS = "Environment variable with the key of api: models; LABEL=VAR for several. Never the key itself."
_MODEL_CHANGE = "Continue even if a different model now answers under the same name."
_NO_REUSE = "Do not reuse answers stored by other runs in the same folder."
_SHARD = "Run only the I-th of N parts of the plan; `analyze SHARD... --out RUN` merges them."
_WRITE = "Send nothing: write the open API requests to FILE.jsonl for a batch service."
_DRY_RUN = "Print the plan and exit. An API is tested first, with about 40 short calls."
_RUNNING = (
    option("--system-prompt", "FILE", "A file with the system prompt to test."),
    option("--batch-size", "auto|N", "Prompts or texts processed at once.", **_AUTO),
    option("--device", None, "cpu, cuda, cuda:N, mps, or map (several devices).", **_AUTO),
    option("--dtype", None, None, type=DTYPES, **_AUTO),
    option("--out", "RUN", "The run's folder; by default biaskit-runs/STUDY-MODEL."),
    option("--api-key-env", "VAR", _KEYS, multiple=True),
    option("--endpoint-name", "NAME", "Use in keys instead of the base URL: a new port is the same model."),
    option("--max-cost", "USD", "Cost limit of the run, retries included.", type=float),
    with_price,
    option("--accept-model-change", None, _MODEL_CHANGE, is_flag=True),
    option("--no-reuse reuse", None, _NO_REUSE, is_flag=True, flag_value=False, default=True),
    with_verbose,
    option("--shard", "I/N", _SHARD),
    option("--write-requests", "FILE", _WRITE),
    option("--dry-run", None, _DRY_RUN, is_flag=True),
    option("--yes", None, "Start without confirmation.", is_flag=True),
)
"""How and where models run, where rows go, what is confirmed before a start: the same for both engines."""

_ASKING = """

    MODEL is demo, hf:ORG/NAME[@revision], hf:PATH, gguf:PATH, openai:NAME, api:NAME@URL or
    scripted:FILE; LABEL=MODEL names it. `biaskit doctor MODEL` shows what an API supports. Rerun the command
    to resume. Exit codes: 0 done, 1 failed, 2 wrong use, 3 finished with rows missing, 130 interrupted.
"""


def asking_command(
    ask: Callable[..., RunResult], about: str, *options: Decorator, epilog: str
) -> click.Command:
    """Make an engine's command: its own options, then those of every run; `ask` gets them as keywords."""

    @click.command(ask.__name__, help=about + _ASKING, epilog=epilog)
    @click.argument("models", nargs=-1, metavar="MODEL...")
    @several(*options, *_RUNNING, with_settings(), with_format())
    def command(
        models: tuple[str, ...],
        system_prompt: str | None,
        batch_size: str,
        dry_run: bool,
        yes: bool,
        verbose: bool,
        output_format: str,
        **chosen: Any,
    ) -> None:
        if batch_size != "auto" and (not batch_size.isdecimal() or int(batch_size) < 1):
            raise click.UsageError(f"--batch-size {batch_size}: give auto or a number of at least 1.")
        with closing(TerminalWatcher(assume_yes=yes, verbose=verbose)) as watcher:
            result = ask(
                *models,
                system_prompt=read_text(system_prompt) if system_prompt else None,
                batch_size=None if batch_size == "auto" else int(batch_size),
                dry_run=dry_run,
                watcher=watcher,
                **chosen,
            )
        finish(result, output_format, dry_run=dry_run, verbose=verbose)

    return command
