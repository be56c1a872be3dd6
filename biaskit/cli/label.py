"""`biaskit label`."""

from __future__ import annotations

import shlex

import click

from biaskit.cli.options import examples, option
from biaskit.cli.output import named_or_newest
from biaskit.cli.terminal import emit
from biaskit.measures.personas.label import label
from biaskit.measures.personas.recordings import RECORDED


@click.command(
    "label", epilog=examples("biaskit label RUN --n 200", "biaskit analyze RUN --labels RUN/labels/sheet.csv")
)
@click.argument("run", required=False, metavar="[RUN | recorded:demo-base]")
@option("--n", "N", "How many texts to draw.", type=click.IntRange(1), default=200, show_default=True)
@option("--seed", "SEED", "Seed of the draw.", type=int, default=1, show_default=True)
@option("--all", None, "Write every text instead, for a model to label.", is_flag=True)
def command(run: str | None, n: int, seed: int, **every: bool) -> None:
    """Draw texts of a RUN at random for a person to label, who says whom each is about.

    With the labels, `biaskit analyze --labels` corrects the shares of women, whatever the word rules miss.
    Two people may each fill a copy of the sheet; their agreement is printed. Without RUN, the newest run in
    this folder is used.
    """
    named = run if run and run.startswith(RECORDED) else named_or_newest([run] if run else [])[0]
    sheet = label(named, n=n, seed=seed, every=every["all"])
    how = f"As instructions.md beside it says, fill its column person_gender, or {sheet.stem}.html instead."
    labels = f"{shlex.quote(str(sheet))} (or the file that the page saved)"
    if every["all"]:
        how = "Let a model fill its column person_gender, and a person the sheet of label without --all."
        labels = "LABELS_OF_THE_MODEL.csv --gold SHEET_OF_THE_PERSON.csv"
    path = shlex.quote(str(sheet.parents[1]))
    emit(f"Sheet: {sheet}\n{how}\nThen: biaskit analyze {path} --labels {labels}\n")
