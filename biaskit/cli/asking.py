"""The commands that query models, one for each kind of measurement: its own options come from its keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, Literal, get_args, get_origin

import click
from pydantic.fields import FieldInfo

from biaskit.cli.options import (
    DTYPES,
    Decorator,
    examples,
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
from biaskit.measurement import Measurement, measurements
from biaskit.workflow.measure import function_of

_AUTO: dict[str, Any] = {"default": "auto", "show_default": True}
_KEYS = "Environment variable with the key of api: models; LABEL=VAR for several. Never the key itself."
_MODEL_CHANGE = "Continue even if a different model now answers under the same name."
_NO_REUSE = "Do not reuse answers stored by other runs in the same folder."
_SHARD = "Run only the I-th of N parts of the plan; `analyze SHARD... --out RUN` merges them."
_WRITE = "Send nothing: write the open API requests to FILE.jsonl for a batch service."
_DTYPE = "Number format of local models; auto: float32 for probabilities on a CPU, else the weights' own."
_DRY_RUN = "Print the plan and exit. An API is tested first, with 20 to 30 short calls."
_RUNNING = (
    option("--batch-size", "auto|N", "Prompts or texts processed at once.", **_AUTO),
    option("--device", None, "cpu, cuda, cuda:N, mps, or map (several devices).", **_AUTO),
    option("--dtype", None, _DTYPE, type=DTYPES, **_AUTO),
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
"""How and where models run, where rows go, what is confirmed before a start: the same for every kind."""

_ASKING = """

    MODEL is demo, hf:ORG/NAME[@revision], hf:PATH, gguf:PATH, openai:NAME, api:NAME@URL or
    scripted:FILE; LABEL=MODEL names it. `biaskit doctor MODEL` shows what an API supports. Rerun the command
    to resume. Exit codes: 0 done, 1 failed, 2 wrong use, 3 finished with rows missing, 5 stopped at
    --max-cost, 130 interrupted.
"""


HELP: Mapping[str, tuple[str, ...]] = {
    "Model": (
        *("prompt_format", "system_prompt", "estimator", "samples", "max_samples_per_prompt"),
        *("max_new_tokens", "temperature", "top_p", "device", "dtype", "batch_size"),
    ),
    "Output": ("out", "output_format", "verbose", "dry_run", "yes"),
    "API": ("api_key_env", "endpoint_name", "max_cost", "price", "write_requests", "accept_model_change"),
    "Advanced": ("reuse", "shard", "settings"),
}
"""Heading → the options under it; those of what is measured come before."""


class _Asking(click.Command):
    """Lists its options in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows: dict[str, list[tuple[str, str]]] = {"What is measured": [], **{title: [] for title in HELP}}
        for option_of in self.get_params(ctx):
            record = option_of.get_help_record(ctx)
            if record and isinstance(option_of, click.Option):
                titles = (title for title, names in HELP.items() if option_of.name in names)
                other = "Advanced" if option_of.is_eager else "What is measured"  # --help is no key
                rows[next(titles, other)].append(record)
        for title, records in rows.items():
            with formatter.section(title):
                formatter.write_dl(records)


def command_of(kind: Measurement) -> click.Command:
    """Make a kind's command: its own options, then those of every run."""
    ask = function_of(kind)
    study = option(
        "--study", None, "A shipped study or a path to a TOML file.", default=kind.standard, show_default=True
    )

    @click.command(kind.name, _Asking, help=kind.help + _ASKING, epilog=examples(*kind.examples_of_use))
    @click.argument("models", nargs=-1, metavar="MODEL...")
    @several(study, *_options(kind), *_RUNNING, with_settings(), with_format())
    def command(
        models: tuple[str, ...],
        batch_size: str,
        dry_run: bool,
        yes: bool,
        verbose: bool,
        output_format: str,
        **chosen: Any,
    ) -> None:
        if batch_size != "auto" and (not batch_size.isdecimal() or int(batch_size) < 1):
            raise click.UsageError(f"--batch-size {batch_size}: give auto or a number of at least 1.")
        if chosen.get("system_prompt"):
            chosen["system_prompt"] = read_text(chosen["system_prompt"])
        with closing(TerminalWatcher(assume_yes=yes, verbose=verbose)) as watcher:
            result = ask(
                *models,
                batch_size=None if batch_size == "auto" else int(batch_size),
                dry_run=dry_run,
                watcher=watcher,
                **chosen,
            )
        finish(result, output_format, dry_run=dry_run, verbose=verbose)

    return command


def other_name(command: str, flag: str) -> str:
    """Say what a command calls an option that only another kind has, or which kind has it."""
    by_name = {kind.name: kind for kind in measurements()}
    if command not in by_name:
        return ""
    here = by_name[command].study.items_key
    for kind in by_name.values():
        if flag in kind.study.flags().values():
            if here and flag == f"--{kind.study.items_key}":
                return f" This command calls it --{here}."
            return f" It is an option of `biaskit {kind.name}`."
    return ""


def _options(kind: Measurement) -> Iterator[Decorator]:
    """Make an option of each key that has a flag."""
    for name, flag in kind.study.flags().items():
        field = kind.study.model_fields[name]
        extra: Any = field.json_schema_extra
        text = str(field.description)
        how = {"is_flag": True, "default": None} if field.annotation is bool else {"type": _type(field)}
        yield option(f"{flag} {name}", extra["takes"] or None, f"{text[0].upper()}{text[1:]}.", **how)


def _type(field: FieldInfo) -> Any:
    """Find what an option takes: one of some words, a number, or any text."""
    if get_origin(field.annotation) is Literal:
        return click.Choice(get_args(field.annotation))
    if int in (field.annotation, *get_args(field.annotation)):
        least = next((bound.ge for bound in field.metadata if hasattr(bound, "ge")), None)
        return click.IntRange(min=least)
    return None
