"""`biaskit analyze`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import click

from biaskit.cli.options import examples, option, several, with_format, with_settings, with_verbose
from biaskit.cli.output import named_or_newest, print_result
from biaskit.cli.terminal import TerminalWatcher
from biaskit.errors import UsageError
from biaskit.measures.personas.recordings import RECORDED, recorded_run
from biaskit.measures.personas.study import PersonasStudy
from biaskit.report.result import RunResult
from biaskit.study.config import read_study_file
from biaskit.workflow.analyze import analysis_keys, load

TEXT_FILES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".gz", ".xlsx")
VARIANTS = click.Choice(["exact", "released"])
ENCODING = "Encoding of --texts; cp1252: Windows in Western Europe."
SEPARATOR = "Column separator of --texts; default: commas, or semicolons or tabs if the header uses them."
UNMARKED = "Reference group; repeatable. Default: all other groups together."
GENDER = "The gender requested in the prompt; where it is empty, the gender is inferred from the text."
PERSON = "The known gender of the person described; where it is empty, the gender is inferred."
HOLD_OUT = "Treat this fraction of the texts with a requested gender as if it had none (positive control)."
LANGUAGE = (
    "The language of the texts: en, de, fr, pt, ru, or a folder (./language-XX). Default: by their words."
)
CLUSTERS = "Cluster the marked words; default: not in --texts without a requested gender (slow)."

DECIDED = {
    "outcome": "0 and 1, yes and no, or a number; default: selected",
    "case": "what was decided on, such as a posting",
    "person": "who was decided on",
    "job": "jobs, which are also shown apart",
    "position": "the place among those shown",
    "sex": "sex of the person",
    "race": "race of the person",
}
LABELS = "A filled sheet of `biaskit label`; repeatable, for each reader. none: forget them."


@click.command(
    "analyze",
    epilog=examples(
        "biaskit analyze recorded:demo-base",
        "biaskit analyze --texts mine.csv --text-col text --gender-col requested --occupation-col job",
        "biaskit analyze --texts letters.csv --person-gender-col candidate_gender",
        "biaskit analyze --texts mine.csv --gender-col requested --group-col race --unmarked White",
        "biaskit analyze --decisions log.csv --case-col posting --outcome-col hired",
        "biaskit analyze RUN --variant released",
        "biaskit analyze RUN --labels RUN/labels/sheet.csv",
        "biaskit analyze SHARD... --out RUN",
    ),
)
@click.argument("runs", nargs=-1, metavar="[RUN | recorded:demo-base]...")
@option("--texts", "FILE", "Your own texts: .csv, .tsv, .jsonl, .parquet or .xlsx (FILE.xlsx#SHEET).")
@option("--text-col", "COLUMN", "The texts.", default="text", show_default=True)
@option("--gender-col", "COLUMN", GENDER)
@option("--person-gender-col", "COLUMN", PERSON)
@option("--occupation-col", "COLUMN", "The occupation, or any other grouping.")
@option("--model-col", "COLUMN", "The model that wrote the text.")
@option("--group-col", "COLUMN", "Groups to compare, such as race; also by gender.")
@option("--unmarked", "VALUE", UNMARKED, multiple=True)
@option("--decisions log", "FILE", "Decisions that were made, or rankings: .csv, .jsonl or .xlsx.")
@several(*(option(f"--{role}-col", "COLUMN", f"Of --decisions: {what}.") for role, what in DECIDED.items()))
@option("--people", "FILE", "Of rankings: name, sex and race of everybody who is shown.")
@option("--min-category", "PART", "Of --decisions: categories below get no ratio; default: 0.02.", type=float)
@option("--encoding", None, ENCODING, type=click.Choice(["utf-8", "cp1252"]), default="utf-8")
@option("--separator", "CHARACTER", SEPARATOR)
@option("--language", "CODE", LANGUAGE)
@option("--variant", None, "released: as in GAS(P)'s scripts.", type=VARIANTS)
@option("--copies", None, "Near copies count once, or all.", type=click.Choice(["once", "all"]))
@option("--hold-out", "PART", HOLD_OUT, type=click.FloatRange(0, 1, min_open=True, max_open=True))
@option("--vectors", "SOURCE", "Word vectors: corpus, pretrained:PATH or marked-lists.")
@option("--srb-seeds", "SEEDS", "Seeds of the word vectors, such as 1-5.")
@option("--clusters/--no-clusters", None, CLUSTERS, default=None)
@option("--labels", "SHEET", LABELS, multiple=True)
@option("--gold", "SHEET", "A person's sheet; --labels is then a file of a model's labels.")
@option("--study", "PATH", "Take the analysis keys from this study file.")
@option("--out", "RUN", "Folder for imported or merged rows.")
@with_settings()
@with_verbose
@with_format()
def command(
    runs: tuple[str, ...],
    texts: str | None,
    study: str | None,
    out: str | None,
    unmarked: tuple[str, ...],
    labels: tuple[str, ...],
    gold: str | None,
    settings: dict[str, Any],
    verbose: bool,
    output_format: str,
    **options: Any,
) -> None:
    """Rebuild all tables from stored rows, or analyze your own texts or decisions. No model is loaded.

    Without RUN, the newest run in this folder is used. Several runs of one study, such as the shards of a
    job array, are merged into --out.
    recorded:demo-base is a shipped corpus of texts by the model demo-base.
    """
    chosen: dict[str, Any] = {}
    for name in ("language", "variant", "copies", "hold_out", "vectors", "srb_seeds", "clusters"):
        if (value := options.pop(name)) is not None:
            chosen[name] = value
    if unmarked:
        chosen["unmarked"] = list(unmarked)
    logged = {role: options.pop(f"{role}_col") for role in DECIDED}
    logged |= {name: options.pop(name) for name in ("people", "min_category")}
    log = options.pop("log")
    with closing(TerminalWatcher(assume_yes=False, verbose=verbose)) as watcher:
        result: RunResult
        if log is not None:
            if runs or texts is not None:
                raise UsageError("Give RUN, --texts or --decisions: one of them.")
            from biaskit.measures.decisions.logs import analyze_decisions

            how = {"model": options["model_col"], "settings": settings, "out": out, "watcher": watcher}
            result = analyze_decisions(log, **logged, **how)
        elif given := [name for name, value in logged.items() if value is not None]:
            flag = given[0].replace("_", "-") + "-col" * (given[0] in DECIDED)
            raise UsageError(f"--{flag} is for --decisions FILE: give the file too.")
        elif texts is not None:
            if runs:
                raise UsageError("Give RUN or --texts, not both.")
            if labels or gold is not None:
                raise UsageError(
                    "Labels are for a run: analyze the texts first, then RUN --labels SHEET. A column of FILE"
                    " that knows genders: --person-gender-col."
                )
            # A stored run may be of the other measurement, which needs nothing of this one.
            from biaskit.measures.personas.own_texts import analyze_texts

            keys = read_study_file(study) if study else {}
            for key in keys.keys() - (PersonasStudy.analysis_keys - {"summary", "papers"}):
                del keys[key]
            keys |= chosen | settings
            roles = ("text", "gender", "person_gender", "occupation", "model")
            columns = {role: options.pop(f"{role}_col") for role in roles}
            result = analyze_texts(Path(texts), **columns, **options, settings=keys, out=out, watcher=watcher)
        else:
            for name, value in options.items():
                if value is not None and name not in ("text_col", "encoding"):
                    flag = f"--{name.replace('_', '-')}"
                    raise UsageError(f"{flag} is for --texts FILE: give the file too.")
            if runs and runs[0].startswith(RECORDED):
                paths, out = [recorded_run(*runs, out=out)], None
            else:
                for run in runs:
                    if Path(run).suffix.lower() in TEXT_FILES and not Path(run).is_dir():
                        raise UsageError(
                            f"{run} is not a run. To analyze your own texts: biaskit analyze --texts {run}"
                        )
                paths = named_or_newest(runs)
            keys = {**(analysis_keys(study, paths[0]) if study else {}), **chosen, **settings}
            result = load(*paths, settings=keys, labels=labels, gold=gold, out=out, watcher=watcher)
    print_result(result, output_format, verbose=verbose)
