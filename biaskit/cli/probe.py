"""`biaskit probe`."""

from __future__ import annotations

import click

from biaskit.cli.engine_options import asking_command
from biaskit.cli.options import examples, option
from biaskit.measures.probe.command import probe

_STUDY = {"default": "occugender", "show_default": True}
_BIAS_TYPES = click.Choice(["explicit", "implicit", "both"])
_CONTEXTS = click.Choice(["plain", "dialogue", "both"])
_FORMATS = click.Choice(["auto", "raw", "chat-prefill", "chat-continue"])
_ESTIMATORS = click.Choice(["auto", "exact", "selected-ids", "echo", "top-k", "sampling"])
_ESTIMATOR = "How probabilities are obtained; auto: the strongest estimator that each model supports."
_PAIRS = "Pairs of sentences that differ in gender, in place of jobs and templates: .csv/.xlsx/.jsonl/.toml."
_SAMPLES = "Sampling: texts per batch; a prompt gets more batches until three of its texts name a group."
_CONTINUE = "Also sample N texts of up to 24 tokens per prompt, to see what is said or declined."
_MOST_SAMPLES = "Sampling: maximum texts per prompt, in whole batches."

command = asking_command(
    probe,
    "Measure the probability that each MODEL names each gender group for a job.",
    option("--study", None, "A shipped study or a path to a TOML file.", **_STUDY),
    option("--bias-type", None, "Which templates to use.", type=_BIAS_TYPES),
    option("--jobs", "LIST", "Names, ids or ranges of the study's jobs, or a .csv/.xlsx/.txt/.toml file."),
    option("--templates", "LIST", "Ids or ranges within each bias type, or a file."),
    option("--pairs", "FILE", _PAIRS),
    option("--debiasing-prompts", "LIST", "none, all, ids such as 1,3, or a file."),
    option("--context", None, "The question alone, or after a dialogue.", type=_CONTEXTS),
    option("--target-words", "LIST", "A file of target words, or one shipped set for all templates."),
    option("--prompt-format", None, None, type=_FORMATS),
    option("--estimator", None, _ESTIMATOR, type=_ESTIMATORS),
    option("--samples", "N", _SAMPLES, type=click.IntRange(min=2)),
    option("--max-samples-per-prompt", "N", _MOST_SAMPLES, type=click.IntRange(min=2)),
    option("--continue continuations", "N", _CONTINUE, type=click.IntRange(min=1)),
    epilog=examples(
        "biaskit probe demo --jobs nurse,plumber",
        "biaskit probe api:NAME@http://127.0.0.1:8000/v1 --estimator top-k --max-cost 2",
        "biaskit probe demo hf:./my-model --study occugender-debias --dry-run",
        "biaskit probe demo --pairs corpus:pairs-en/pairs.csv",
        "biaskit probe demo --jobs fields.csv --templates questions.csv --target-words groups.toml",
    ),
)
