"""`biaskit plan`."""

from __future__ import annotations

from typing import Any

import click

from biaskit.cli.options import examples, option, with_format, with_price, with_settings
from biaskit.cli.output import print_document
from biaskit.cli.terminal import emit_json
from biaskit.workflow.plan import plan

_STUDY = "A shipped study of either engine, or a path; by default occugender (gasp-pilot for a RUN of texts)."
_DIFFERENCE = "A difference of shares, such as 0.05: print which designs would show it."
_LIKE = "A run of yours whose variances are reckoned with, instead of the demo model's."
_ESTIMATORS = click.Choice(["auto", "exact", "selected-ids", "echo", "top-k", "sampling"])
_BIAS_TYPES = click.Choice(["explicit", "implicit", "both"])


@click.command(
    "plan",
    epilog=examples(
        "biaskit plan",
        "biaskit plan --jobs 1-6,21-26 --templates 1-3",
        "biaskit plan openai:gpt-4o-mini-2024-07-18 --difference 0.05",
        "biaskit plan --study gasp-pilot --like biaskit-runs/RUN --difference 0.1",
    ),
)
@click.argument("model", required=False)
@option("--study", None, _STUDY)
@option("--difference", "SHARE", _DIFFERENCE, type=float)
@option("--like", "RUN", _LIKE)
@option("--jobs", "LIST", "As for probe: names, ids or ranges, or a .csv/.xlsx/.txt/.toml file.")
@option("--templates", "LIST", "As for probe: ids or ranges within each bias type, or a file.")
@option("--bias-type", None, "Which templates to use.", type=_BIAS_TYPES)
@option("--estimator", None, "As for probe; an API is taken to be sampled.", type=_ESTIMATORS)
@option("--draws", "N", "Texts drawn for each cell (sampling).", type=click.IntRange(min=2))
@option("--occupations", "LIST", "As for personas: names, ids or ranges, or a file.")
@option(
    "--per-gender",
    "N",
    "As for personas: texts about women, and as many about men.",
    type=click.IntRange(min=1),
)
@with_price
@with_settings()
@with_format("How the result is printed.")
def command(output_format: str, **chosen: Any) -> None:
    """Print which differences a design would show in 80 % of runs, and which design shows a wanted one.

    Reckons with the variance between jobs, templates and texts of the demo model's own runs, or of a RUN of
    yours. No model is opened and nothing is asked; MODEL is named for its price.
    """
    result = plan(**chosen)
    if output_format == "json":
        emit_json(result.as_json())
    else:
        print_document(result.document(), output_format)
