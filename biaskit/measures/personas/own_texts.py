"""What `biaskit analyze --texts` and `bk.analyze_texts` do: make a run of your texts, and analyse it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from operator import itemgetter
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack

from biaskit.arguments import TEXT, TEXT_OR_TEXTS, checked
from biaskit.common.wording import short
from biaskit.errors import StudyError, UsageError, nearest
from biaskit.measures.personas.analysis import tables
from biaskit.measures.personas.command import PersonasResult
from biaskit.measures.personas.design import resolve, signed_columns
from biaskit.measures.personas.study import PersonasStudy
from biaskit.measures.personas.texts.files import SUFFIXES, names_texts
from biaskit.measures.personas.texts.importing import read_texts
from biaskit.measures.personas.words.groups import check_unmarked
from biaskit.models.entry import ModelEntry
from biaskit.progress import LineWatcher, Watcher
from biaskit.records import ALL
from biaskit.runs.folder import run_folder
from biaskit.runs.manifest import Manifest
from biaskit.runs.merge import store_rows
from biaskit.runs.start import command_line
from biaskit.study.config import build_study

if TYPE_CHECKING:
    import pandas as pd


Texts: TypeAlias = "pd.DataFrame | pd.Series | Mapping[str, Sequence[Any]] | Sequence[Any] | str | Path"


class TextsArguments(TypedDict, total=False):
    """How your own texts are read and analysed.

    Other columns and groups:
        model: the column that says who wrote each text; by default they have one author.
        group_col: one of your columns, such as race, whose groups are compared, alone and within each
            gender. A text without a group is in none.
        unmarked: the group, or groups, that the others are compared with (Marked Personas); by default each
            group is compared with all others together.

    Reading and analysis:
        language: of the texts, en, de, fr, pt, ru or a folder of your own; by default, as their words say.
        encoding: of a text file, utf-8 (the default) or cp1252 (Windows in Western Europe).
        separator: between the columns of a .csv or .tsv; by default what its header shows.
        settings: keys of the analysis, such as `{"hold_out": 0.5}`.
        watcher: sees the progress; by default it is shown on stderr, with `bk.Silent()` nothing is.
    """

    model: str | None
    group_col: str | None
    unmarked: str | Sequence[str] | None
    language: str | None
    encoding: str
    separator: str | None
    settings: Mapping[str, Any] | None
    watcher: Watcher | None


@checked(TextsArguments, text=TEXT, gender=TEXT, person_gender=TEXT, group_col=TEXT, unmarked=TEXT_OR_TEXTS)
def analyze_texts(
    texts: Texts,
    *,
    text: str = "text",
    gender: str | None = None,
    person_gender: str | None = None,
    occupation: str | None = None,
    out: str | Path | None = None,
    **options: Unpack[TextsArguments],
) -> PersonasResult:
    """Analyse your own texts: the gender each is about, the words that mark a gender, and SRB.

    >>> from random import Random
    >>> likes, sample = "art books cars films golf jazz maths music opera tea".split(), Random(1).sample
    >>> texts = [
    ...     {"text": f"{who} is {age} and {how}: {' and '.join(sample(likes, 5))}.", "asked": sex, "age": age}
    ...     for who, how, requested in (("She", "gentle", "F"), ("He", "strong", "M"))
    ...     for sex in (requested, None) for age in ("old", "young") for _ in range(10)
    ... ]
    >>> quick = {"settings": {"permutations": 19, "vectors": "marked-lists"}, "watcher": bk.Silent()}
    >>> written = bk.analyze_texts(texts, gender="asked", group_col="age", out="written", **quick)
    >>> sorted(set(written.marked_words["word"]))
    ['gentle', 'he', 'she', 'strong']

    Args:
        texts: a DataFrame, a dict of columns, a list of dicts, the texts alone as a list or Series, or the
            path of a .csv, .tsv, .jsonl, .ndjson, .parquet or .xlsx (FILE.xlsx#SHEET; by default the first).
        text: the column of the texts.
        gender: the column of genders requested in the prompt, as F, W, female, woman, M, male, man, N, NB or
            nonbinary, in any case. Of a text without one, the gender is inferred from its words
            (`bk.associate_gender`); where every text has one, there is no `representation` and no `srb`.
        person_gender: the column of the known gender of the person whom a text describes, in the same codes;
            it takes the place of the inferred one, and shows how often the rules are right.
        occupation: the column that divides the texts; by default they are one group.
        out: the run's folder; by default one in biaskit-runs/ that is named after the texts.

    Returns a `PersonasResult`; no model is queried. Raises `CorpusError` for a missing column or text and an
    unknown gender, `StudyError` for an unknown key, `RunError` for a folder that cannot be written.
    """
    is_file = isinstance(texts, PathLike) or (isinstance(texts, str) and names_texts(texts))
    encoding, separator = options.get("encoding") or "utf-8", options.get("separator")
    if not is_file and (encoding != "utf-8" or separator is not None):
        raise UsageError("encoding and separator are for files, and these texts are not a file.")
    model, group_col = options.get("model"), options.get("group_col")
    columns: dict[str, Any] = {"text": text, "gender": gender, "occupation": occupation, "model": model}
    if person_gender == gender is not None:
        raise UsageError(
            f"{short(gender)} is the gender requested in the prompt (--gender-col) or that of the person"
            " described (--person-gender-col), not both: leave one out."
        )
    own: dict[str, Any] = {} if group_col is None else {"group": group_col}
    if person_gender is not None:
        own["person_gender"] = person_gender
    study, source = _study(options), str(texts) if is_file else _frame(texts, text)
    how: Any = {"gender_codes": study.gender_codes, "encoding": encoding, "separator": separator}
    imported = read_texts(source, **columns, **own, **how)
    compares_genders = any(map(itemgetter("requested_gender"), imported.rows))
    if not compares_genders and "clusters" not in (options.get("settings") or {}):
        # Without SRB only clusters need word vectors, which take longer than all the rest.
        study = study.model_copy(update={"clusters": False})
    occupations = set(map(itemgetter("occupation"), imported.rows))
    for kind, names in (("A model", imported.models), ("An occupation", occupations)):
        if len(names) > 1 and ALL in names:
            raise UsageError(f"{kind} is called all, which the tables use for the total: rename it.")
    if group_col is not None:
        check_unmarked(study.unmarked, list(imported.groups), group_col)
    elif study.unmarked:
        raise UsageError("Unmarked groups are values of a column: name it with --group-col.")
    # GAS(P)'s occupations, for their workforce shares where a user's occupations have the same names.
    design = replace(resolve(study), prompts=(), templates=(), slot="", debiasing_prompts=(None,), sources={})
    columns |= own
    if encoding != "utf-8":  # read otherwise, the same bytes are other texts
        columns["encoding"] = encoding
    if separator is not None:
        columns["separator"] = separator
    question: dict[str, Any] = {"study": "texts", "texts": imported.digest, "columns": columns}
    if not model:
        question["label"] = next(iter(imported.models))
    question["gender_codes"] = dict(study.gender_codes)
    today = datetime.now(UTC).date().isoformat()
    of_file = {"source": imported.source, "digest": imported.digest, "read": today}
    of_file |= {f"{role}_col": column for role, column in own.items()}
    resolved = design.describe() | {"imported": of_file}
    author: Any = {"spec": "texts", "fingerprint": imported.digest, "tuning": "unknown", "where": "texts"}
    author |= {"prompt_format": "", "details": {}}
    models = {label: ModelEntry(**author) for label in imported.models}
    asked = {"question": question, "resolved": resolved, "models": models}
    manifest = Manifest.new("personas", "texts", **asked, command=command_line())
    manifest.signature = design.sign(models, **signed_columns(group_col, person_gender))
    with run_folder("texts", list(models), question, out) as run:
        store_rows(run, manifest, imported.rows, lock=study.lock, skip_bad=study.skip_bad_lines)
        notes = list(imported.notes)
        del imported  # its texts are stored
        notes += tables(run, watcher=options.get("watcher") or LineWatcher()).write()
    return PersonasResult(run, tuple(notes))


def _study(options: TextsArguments) -> PersonasStudy:
    """Make the study of texts that exist: analysis keys may differ from their defaults, and the seed."""
    settings, unmarked = dict(options.get("settings") or {}), options.get("unmarked")
    if options.get("language") is not None:
        settings["language"] = options["language"]
    if unmarked:
        settings["unmarked"] = [unmarked] if isinstance(unmarked, str) else list(unmarked)
    for key in settings:
        if key.split(".")[0] not in PersonasStudy.analysis_keys | {"seed"}:
            raise StudyError(
                f"{key} is a key of sampling, and these texts exist already."
                f"{nearest(key, PersonasStudy.analysis_keys)}"
            )
    stated = {"name": "texts", "measurement": "personas", "papers": ["gasp"]}
    study = build_study(stated, settings, "analysis options")
    assert isinstance(study, PersonasStudy)
    return study


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
