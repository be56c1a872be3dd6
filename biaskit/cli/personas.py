"""`biaskit personas`."""

from __future__ import annotations

import click

from biaskit.cli.engine_options import asking_command
from biaskit.cli.options import examples, option
from biaskit.measures.personas.command import personas

_STUDIES = "gasp-pilot, gasp, mattern-generation, or a path to a TOML file."
_MAX_SAMPLES = "Maximum texts per occupation and prompt; default: 20 x per-gender."
_NUMBER = click.IntRange(min=1)

command = asking_command(
    personas,
    "Sample texts from each MODEL without a gender in the prompt: who are they about, and how?",
    option("--study", None, _STUDIES, default="gasp-pilot", show_default=True),
    option("--occupations", "LIST", "Names, ids or ranges of the study's list, or a .csv/.xlsx/.txt/.toml."),
    option("--per-gender", "N", "Texts wanted about women, and as many about men.", type=_NUMBER),
    option("--max-samples", "N", _MAX_SAMPLES, type=_NUMBER),
    option("--max-new-tokens", "N", "Maximum tokens per text.", type=_NUMBER),
    option("--prompt-format", None, None, type=click.Choice(["auto", "chat", "completion", "raw"])),
    epilog=examples(
        "biaskit personas demo --occupations nurse,mechanic --per-gender 5 --max-samples 60",
        "biaskit personas hf:./my-model --study gasp-pilot --dry-run",
        "biaskit analyze --texts mine.csv --text-col text --gender-col requested",
    ),
)
