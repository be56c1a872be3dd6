"""What `biaskit analyze --decisions` and `bk.analyze_decisions` do: make a run of a log, and analyse it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from pydantic import ConfigDict, create_model

from biaskit.arguments import NUMBER, TEXT, checked
from biaskit.common.plain import group_by
from biaskit.common.provenance import ROW_FORMAT, digest, key_of
from biaskit.common.wording import count
from biaskit.corpora.rows import Source, SourceLayout, given_list, read_list
from biaskit.corpora.sources import ListEntry, shown
from biaskit.errors import CorpusError
from biaskit.measures.decisions.analysis import COLUMNS, tables
from biaskit.measures.decisions.command import DecisionsResult
from biaskit.measures.decisions.design import DecisionsDesign
from biaskit.measures.decisions.lists import Cell, Name, Person, Question, Sex, check_groups, read_people
from biaskit.measures.decisions.study import DecisionsStudy
from biaskit.models.entry import ModelEntry
from biaskit.progress import LineWatcher, Watcher
from biaskit.runs.folder import run_folder
from biaskit.runs.manifest import Manifest
from biaskit.runs.merge import store_rows
from biaskit.runs.start import command_line, stated
from biaskit.study.config import build_study

if TYPE_CHECKING:
    import pandas as pd

LOG = "log"
ROLES = ("outcome", "case", "person", "job", "position", "sex", "race", "model")
RANKED = ("shown", "answer")
WORDS = {"": None, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


class _Entry(ListEntry):
    model_config = ConfigDict(protected_namespaces=())


class LogArguments(TypedDict, total=False):
    """How a log of decisions is read and analysed.

    Further columns, and the analysis:
        person, job, position, model: columns; by default those of these names.
        min_category: a category with a lower part of the rows gets no ratio; by default 0.02.
        settings: keys of the analysis, such as `{"reference_race": "Asian"}`.
        watcher: sees the progress; by default it is shown on stderr, with `bk.Silent()` nothing is.
    """

    person: str | None
    job: str | None
    position: str | None
    model: str | None
    min_category: float | None
    settings: Mapping[str, Any] | None
    watcher: Watcher | None


@checked(LogArguments, **dict.fromkeys(ROLES, TEXT), min_category=NUMBER)
def analyze_decisions(
    decisions: str | Path | pd.DataFrame | Sequence[Mapping[str, object]],
    *,
    outcome: str | None = None,
    case: str | None = None,
    sex: str | None = None,
    race: str | None = None,
    people: str | Path | pd.DataFrame | Sequence[Mapping[str, object]] | None = None,
    out: str | Path | None = None,
    **options: Unpack[LogArguments],
) -> DecisionsResult:
    """Analyse decisions that were made: gaps within cases, rates and impact ratios of sexes and races.

    >>> log = [{"posting": c, "sex": s, "selected": (s + c) in "fa fb ma"} for s in "fm" for c in "abcde"]
    >>> logged = bk.analyze_decisions(log, case="posting", out="logged", watcher=bk.Silent())
    >>> logged.gaps[["contrast", "gap"]].round(2).values.tolist()
    [['sex', 0.2]]

    Args:
        decisions: a file, a DataFrame or a list of dicts with a row for each decision; or rankings, with the
            columns shown (names with vertical bars between) and answer (a text, whose first name is chosen).
        outcome: the column of decisions, by default selected: 0 and 1, yes and no, or numbers.
        case, sex, race: columns; by default those of these names.
        people: of rankings: a file or rows with name, sex and race.
        out: the run's folder; by default one in biaskit-runs/ that is named after the log.

    Returns a `DecisionsResult`; no model is queried. Raises `BiaskitError` for a missing column, an outcome
    that is none, a study's unknown key.
    """
    named = {"outcome": outcome, "case": case, "sex": sex, "race": race, **options}
    columns = stated(**{role: named.get(role) for role in ROLES})
    source = given_list(decisions, "decisions")
    if people is None:
        entries, choice = _read(source, columns), 0
    else:
        entries, choice = _rankings(source, given_list(people, "people"), columns)
    scores = _outcomes(entries, columns.get("outcome", "selected"))
    choice = choice or (0 if scores else _chosen_of(entries))
    if not any(entry["sex"] or entry["race"] for entry in entries):
        raise CorpusError("The decisions have neither sex nor race. Name their columns.")
    _check_people(entries)
    sum_of_rows = digest([{**entry, "where": ""} for entry in entries])
    keys = {**(options.get("settings") or {}), **stated(min_category=options.get("min_category"))}
    study = build_study({"name": LOG, "measurement": "decisions"}, keys, "analysis options")
    assert isinstance(study, DecisionsStudy)
    asked = Question(LOG, columns.get("case", "case"), "", "", "", (), choice, (0, 1) if scores else None)
    imported: dict[str, Any] = {"source": source if isinstance(source, str) else "in memory"}
    imported |= {"digest": sum_of_rows, "notes": list(_notes(entries, choice))}
    design = DecisionsDesign(study, (), (), (asked,), {}, imported)
    author: Any = {"spec": LOG, "fingerprint": sum_of_rows, "tuning": "unknown", "where": "texts"}
    author |= {"prompt_format": "", "details": {}}
    models = {entry["model"]: ModelEntry(**author) for entry in entries}
    question: dict[str, Any] = {"study": LOG, "decisions": sum_of_rows, "columns": columns}
    about: dict[str, Any] = {"question": question, "resolved": design.describe(), "models": models}
    manifest = Manifest.new("decisions", LOG, **about, command=command_line(), signature=design.sign(models))
    rows = _rows(entries, sum_of_rows, "p_yes" if scores else "selected")
    with run_folder(LOG, list(models), question, out) as run:
        store_rows(run, manifest, rows, lock=study.lock, skip_bad=study.skip_bad_lines)
        notes = tables(run, watcher=options.get("watcher") or LineWatcher()).write()
    return DecisionsResult(run, tuple(notes))


def _read(source: Source, columns: Mapping[str, str], *more: str) -> list[dict[str, Any]]:
    """Read a row for each decision; columns of the roles' own names are found without being named."""
    column_of = {role: role for role in ROLES} | {"outcome": "selected"} | dict(columns)
    for column in columns.values():
        if column.startswith("_") or hasattr(_Entry, column):  # a model has no field of such a name
            raise CorpusError(f"decisions: a column called {shown(column)} cannot be read. Rename it.")
    if column_of["sex"] == column_of["race"]:
        raise CorpusError(f"decisions: {shown(column_of['sex'])} is sex and race at once. Name two columns.")
    fields: dict[str, Any] = dict.fromkeys(column_of.values(), (Name, ""))
    fields |= {column_of["sex"]: (Sex, ""), **dict.fromkeys((column_of["outcome"], *more), (Cell, ""))}
    needed = tuple(dict.fromkeys([*(more or [column_of["outcome"]]), *columns.values()]))
    entry = create_model("_Log", __base__=_Entry, **fields)
    layout: SourceLayout[Any]
    layout = SourceLayout("decisions", "decision", entry, csv=True, jsonl=True, columns=needed)
    entries = []
    for where, row in read_list(source, layout).entries:
        found = {role: getattr(row, column) for role, column in column_of.items()}
        found |= {column: getattr(row, column) for column in more}
        entries.append({**found, "model": found["model"] or LOG, "where": where})
    return entries


def _check_people(entries: Sequence[Mapping[str, Any]]) -> None:
    """Refuse a log of one group, and a person who is in two; what is not known is no group."""
    check_groups([Person("", entry["sex"], entry["race"]) for entry in entries], "The log")
    of_person: dict[tuple[str, str], tuple[str, str]] = {}
    for entry in entries:
        for name in ("sex", "race"):
            if not entry["person"] or not entry[name]:
                continue
            group, where = of_person.setdefault((entry["person"], name), (entry[name], entry["where"]))
            if group != entry[name]:
                what = f"{shown(entry['person'])} is in two groups, {group} and {entry[name]}"
                raise CorpusError(f"{entry['where']}: {what} (first: {where}). Correct one.")


def _outcomes(entries: Sequence[dict[str, Any]], column: str) -> bool:
    """Read each outcome in its place, None where there is none; tells whether they are scores."""
    words = [entry["outcome"].casefold() for entry in entries]
    for entry, word in zip(entries, words, strict=True):
        try:
            value = WORDS[word] if word in WORDS else float(word)
            if not math.isfinite(value or 0.0):
                raise ValueError
            entry["outcome"] = value
        except ValueError:
            what = f"{column} is {shown(entry['outcome'])}, which is neither 0 or 1 nor a number"
            raise CorpusError(f"{entry['where']}: {what}. Write yes or no, or leave it empty.") from None
    scores = not {entry["outcome"] for entry in entries} <= {None, 0.0, 1.0}
    for entry, word in zip(entries, words, strict=True):
        if scores and word and word in WORDS:
            raise CorpusError(f"{entry['where']}: {column} is a word, others are numbers. Write numbers.")
    return scores


def _rankings(source: Source, people: Source, columns: Mapping[str, str]) -> tuple[list[dict[str, Any]], int]:
    """Make a decision of each name that is shown: the first full name in the answer is chosen."""
    persons = {person.name.casefold(): person for person in read_people(people, ())}
    entries: list[dict[str, Any]] = []
    sizes: Counter[int] = Counter()
    for number, ranking in enumerate(_read(source, columns, *RANKED), start=1):
        names = list(filter(None, map(str.strip, ranking["shown"].split("|"))))
        if len({*map(str.casefold, names)}) < max(len(names), 1):
            what = "a name is shown twice. Remove one" if names else "nobody is shown. Write names between |"
            raise CorpusError(f"{ranking['where']}: {what}.")
        answer = ranking["answer"].casefold()
        found: dict[str, tuple[int, int]] = {}
        for name in names:
            if (place := re.search(rf"(?<!\w){re.escape(name.casefold())}(?!\w)", answer)) is not None:
                found[name] = place.start(), -len(name)  # Ann Lee Moss is not Ann Lee
        if answer.strip() in persons and not found:
            chosen = shown(ranking["answer"].strip())
            raise CorpusError(f"{ranking['where']}: {chosen} is chosen and was not shown. Correct the row.")
        first = min(found, key=found.__getitem__, default=None)
        sizes[len(names)] += 1
        for position, name in enumerate(names, start=1):
            person = persons.get(name.casefold(), Person(name))
            own = {"case": ranking["case"] or str(number), "person": person.name, "position": str(position)}
            own |= {"sex": person.sex, "race": person.race, "lacks": name not in found}
            entries.append({**ranking, **own, "outcome": str(int(name == first)) if first else ""})
    if not any(entry["sex"] or entry["race"] for entry in entries):
        raise CorpusError("No name that was shown is one of the people. Write both the same way.")
    return entries, sizes.most_common(1)[0][0]


def _chosen_of(entries: Sequence[Mapping[str, Any]]) -> int:
    """Find how many are shown of whom one is chosen: the same number in each answered case, else 0."""
    sizes = []
    for (_, _, case), own in group_by(entries, itemgetter("model", "job", "case")).items():
        outcomes = [entry["outcome"] for entry in own]
        if any(outcome is not None for outcome in outcomes):
            if not case or outcomes.count(1.0) != 1:
                return 0
            sizes.append(len(own))
    return sizes[0] if len(sizes) > 1 and len({*sizes}) == 1 and sizes[0] > 1 else 0


def _notes(entries: Sequence[Mapping[str, Any]], choice: int) -> Iterator[str]:
    unanswered = sum(entry["outcome"] is None for entry in entries)
    for name in ("sex", "race"):
        if unknown := sum(not entry[name] for entry in entries):
            yield f"{count(unknown, 'decision')} of {len(entries):,} about people of unknown {name}"
    if unanswered:
        yield f"{count(unanswered, 'decision')} of {len(entries):,} without an outcome, counted as unanswered"
    if choice:
        yield f"in each case one of {choice} is chosen: who competes is not independent"
    lacking = {(entry["model"], entry["job"], entry["case"]) for entry in entries if entry.get("lacks")}
    if lacking:
        yield f"{count(len(lacking), 'answer')} lack a name that was shown, or spell it otherwise"


def _rows(entries: Sequence[Mapping[str, Any]], sum_of_rows: str, outcome: str) -> Iterator[dict[str, Any]]:
    """Yield rows of decisions.jsonl; `outcome`: the column that has it."""
    for number, entry in enumerate(entries, start=1):
        row: dict[str, Any] = dict.fromkeys(("prompt", "answered_by", "answered_at", *COLUMNS))
        row |= {"key": key_of([ROW_FORMAT, sum_of_rows, number]), "question": LOG, "wording": "", "pair": ""}
        row |= {name: entry[name] for name in ROLES if name != "outcome"}
        place, value = entry["position"].removesuffix(".0"), entry["outcome"]
        row |= {"position": int(place) if place.isdecimal() else None, "answered": value is not None}
        yield row | {outcome: value, "reason": "no outcome" if value is None else None}
