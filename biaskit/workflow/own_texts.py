"""What `biaskit analyze --texts` and `bk.analyze_texts` do: make a run of your texts, and analyse it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biaskit.arguments import TEXT, TEXT_OR_TEXTS, checked
from biaskit.common.sheets import split_sheet
from biaskit.errors import StudyError, UsageError, nearest
from biaskit.personas.sampling.design import resolve_design
from biaskit.personas.sampling.stored_design import describe_design, design_signature, signed_groups
from biaskit.personas.srb.k_means import ALL_MODELS
from biaskit.personas.texts.files import SUFFIXES
from biaskit.personas.texts.importing import read_texts
from biaskit.personas.words.groups import check_unmarked
from biaskit.progress import LineWatcher, Watcher
from biaskit.runs.folder import run_folder
from biaskit.runs.manifest import new_manifest
from biaskit.runs.merge import store_rows
from biaskit.study.config import build_study
from biaskit.study.keys import PERSONAS_ANALYSIS_KEYS, PersonasStudy
from biaskit.workflow.calls import command_line
from biaskit.workflow.personas import PersonasResult, tables_of_texts

if TYPE_CHECKING:
    import pandas as pd


@checked(text=TEXT, gender=TEXT, group_col=TEXT, unmarked=TEXT_OR_TEXTS)
def analyze_texts(
    texts: pd.DataFrame
    | pd.Series
    | Mapping[str, Sequence[Any]]
    | Sequence[str]
    | Sequence[Mapping[str, Any]]
    | str
    | PathLike[str],
    *,
    text: str = "text",
    gender: str | None = None,
    occupation: str | None = None,
    model: str | None = None,
    group_col: str | None = None,
    unmarked: str | Sequence[str] | None = None,
    encoding: str = "utf-8",
    separator: str | None = None,
    settings: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    watcher: Watcher | None = None,
) -> PersonasResult:
    """Analyse your own texts: which gender each is of, which words mark a gender, and SRB.

    This is what `biaskit analyze --texts FILE` does. No model is asked.

    Args:
        texts: a DataFrame, a dict of columns, a list of dicts, the texts alone as a list or Series, or the
            path of a .csv, .tsv, .jsonl, .ndjson, .parquet or .xlsx (FILE.xlsx#SHEET; by default the first).
        text: the column that holds the texts.
        gender: the column of genders requested in the prompts, as F, W, female, woman, M, male, man, N, NB or
            nonbinary, in any case. Where it is missing or empty, and without this argument, the gender is
            inferred from the text (`bk.associate_gender`). If every text has one, there is neither
            `representation` nor a score in `srb`, which needs both kinds.
        occupation: the column that divides the texts; by default they are one group.
        model: the column that says who wrote each text; by default they are of one author.
        group_col: a column of your own, such as race, whose groups are compared, alone and crossed with
            gender. A text whose group is missing or empty is in no group.
        unmarked: the group, or groups, that the others are held against (Marked Personas); by default each
            group is held against all others together.
        encoding: of a text file, utf-8 or cp1252 (Windows in Western Europe).
        separator: what parts the columns of a .csv or .tsv; by default commas (tabs), or semicolons or tabs
            where by these alone a .csv's header has the columns that are named.
        settings: keys of the analysis (docs/studies.md), such as `{"hold_out": 0.5}`.
        out: the run's folder; by default one in biaskit-runs/ that is named after the texts.
        watcher: sees the progress; by default it is shown on stderr, with `bk.Silent()` nothing is.

    Returns a `PersonasResult`. Raises `BiaskitError`: `CorpusError` for a missing column or text and for an
    unknown gender, `StudyError` for an unknown key, `RunError` for a folder that cannot be written.

    Example:
        bk.analyze_texts({"text": ["She helps.", "He works."], "sex": ["F", "M"]}, gender="sex").associations
    """
    is_file = isinstance(texts, PathLike) or (
        isinstance(texts, str)
        and "\n" not in texts
        and split_sheet(texts)[0].lower().removesuffix(".gz").endswith(SUFFIXES)
    )
    if not is_file and (encoding != "utf-8" or separator is not None):
        raise UsageError("encoding and separator are for files, and these texts are not a file.")
    columns: dict[str, Any] = {"text": text, "gender": gender, "occupation": occupation, "model": model}
    columns |= {} if group_col is None else {"group": group_col}
    settings = dict(settings or {})
    if unmarked:
        settings["unmarked"] = [unmarked] if isinstance(unmarked, str) else list(unmarked)
    for key in settings:
        if key.split(".")[0] not in PERSONAS_ANALYSIS_KEYS | {"seed"}:
            raise StudyError(
                f"{key} is a key of sampling, and these texts exist already."
                f"{nearest(key, PERSONAS_ANALYSIS_KEYS)}"
            )
    study = build_study(
        {"name": "texts", "engine": "personas", "papers": ["gasp"]}, settings, "analysis options"
    )
    assert isinstance(study, PersonasStudy)
    imported = read_texts(
        str(texts) if is_file else _frame(texts, text),
        **columns,
        gender_codes=study.gender_codes,
        encoding=encoding,
        separator=separator,
    )
    if len(imported.models) > 1 and ALL_MODELS in imported.models:
        raise UsageError("A model is called all, which the tables use for the total: rename it.")
    if group_col is not None:
        check_unmarked(study.unmarked, list(imported.groups), group_col)
    elif study.unmarked:
        raise UsageError("Unmarked groups are values of a column: name it with --group-col.")
    # GAS(P)'s occupations, for their labour shares where a user's occupations have the same names.
    nothing_asked: Any = {"prompts": (), "templates": (), "slot": "", "instructions": (None,), "sources": {}}
    design = replace(resolve_design(study), **nothing_asked)
    if encoding != "utf-8":  # read otherwise, the same bytes are other texts
        columns["encoding"] = encoding
    if separator is not None:
        columns["separator"] = separator
    question = {
        "study": "texts",
        "texts": imported.digest,
        "columns": columns,
        **({} if model else {"label": next(iter(imported.models))}),
        "gender_codes": dict(study.gender_codes),
    }
    source = {"source": imported.source, "digest": imported.digest}
    source |= {} if group_col is None else {"group_col": group_col}
    resolved = describe_design(design) | {"imported": source}
    author = {"spec": "texts", "fingerprint": imported.digest, "tuning": "unknown", "where": "texts"}
    models = {label: {**author, "prompt_form": "", "details": {}} for label in imported.models}
    manifest = new_manifest("personas", "texts", question, resolved, models, command_line())
    manifest["signature"] = design_signature(design, models, **signed_groups(group_col))
    with run_folder("texts", list(models), question, out) as run:
        store_rows(run, manifest, imported.rows, lock=study.lock, skip_bad=study.skip_bad_lines)
        notes = [*imported.notes, *tables_of_texts(run, watcher=watcher or LineWatcher()).write()]
    return PersonasResult(run, tuple(notes))


def _frame(texts: Any, column: str) -> pd.DataFrame:
    """Make a row of each text, values unchanged: pandas' own text type would change or refuse some."""
    import pandas as pd

    if isinstance(texts, pd.DataFrame):
        return texts
    if isinstance(texts, Mapping):
        columns = {str(name): _listed(values, f"The column {name!r}") for name, values in texts.items()}
        if len(lengths := {len(values) for values in columns.values()}) > 1:
            raise UsageError(f"The columns have different lengths: {', '.join(map(str, sorted(lengths)))}.")
        return pd.DataFrame(columns, dtype=object)
    rows = _listed(texts, "analyze_texts")
    dicts = [isinstance(row, Mapping) for row in rows]
    if any(dicts) and not all(dicts):
        raise UsageError("Some of the texts are dicts and some are not: give all as dicts, or all as texts.")
    return pd.DataFrame(rows if any(dicts) else {column: rows}, dtype=object)


def _listed(values: Any, what: str) -> list[Any]:
    if isinstance(values, str | bytes | PathLike) or not isinstance(values, Iterable):
        raise UsageError(
            f"{what} wants a list, not {type(values).__name__}: one text goes into a list; a file of texts"
            f" ends in {', '.join(SUFFIXES)}."
        )
    return list(values)
