"""Anybody's texts as rows of personas.jsonl, checked and counted first (methods/texts#imported-texts)."""

from __future__ import annotations

import math
import numbers
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biaskit.common.inputs import one_line
from biaskit.common.provenance import ROW_FORMAT, key_of
from biaskit.common.wording import count
from biaskit.corpora.sources import case_notes, check_label, shown
from biaskit.errors import CorpusError
from biaskit.measurement import words
from biaskit.measures.personas.texts.files import TextSource, open_file, open_frame
from biaskit.measures.personas.texts.gender_codes import NO_CODES, GenderCodes, how_to_map
from biaskit.models.thoughts import without_thoughts
from biaskit.records import UNNAMED

if TYPE_CHECKING:
    import pandas as pd

TEMPLATE = "texts"  # the template_id of every imported text
MOST_GROUPS = 50
"""Values that a column of groups may hold: every group is compared, and crossed with each gender."""


@dataclass(frozen=True, slots=True)
class ImportedTexts:
    """Texts of a file or DataFrame, checked and counted."""

    source: str  # as messages name it
    digest: str  # SHA-256 of the file as it lies, or of the values used of a DataFrame
    models: Mapping[str, int]  # texts per label, in order of first appearance
    groups: Mapping[str, int]  # texts per value of the column of groups
    notes: tuple[str, ...]
    rows: Sequence[dict[str, Any]]
    """Rows of personas.jsonl, in the order of the source.

    `sample` is the line where the record begins (the header of a .csv is line 1), in Parquet and in
    DataFrames the number of the row from 1. `key` hashes row format, digest and sample. What a text of
    unknown origin cannot have is None.
    """


def read_texts(
    texts: str | Path | pd.DataFrame,
    *,
    text: str = "text",
    gender: str | None = None,
    person_gender: str | None = None,
    occupation: str | None = None,
    model: str | None = None,
    group: str | None = None,
    gender_codes: Mapping[str, str] = NO_CODES,
    encoding: str = "utf-8",
    separator: str | None = None,
) -> ImportedTexts:
    """Check texts and count what they are; the arguments from `text` to `group` name columns.

    Text is text: "NA", "None" and the empty text are texts. An empty or missing gender is "not requested" or
    "not known", and an empty group is none. A missing text is an error: a text "NA" that pandas read as
    missing is lost, and only the reader of the file can prevent that. Raises what `open_file` does.
    """
    column_of = {"text": text, "gender": gender, "person_gender": person_gender}
    column_of |= {"occupation": occupation, "model": model, "group": group}
    columns = {role: column for role, column in column_of.items() if column is not None}
    if isinstance(texts, str | Path):
        source = open_file(texts, columns, encoding, separator)
    else:
        source = open_frame(texts, columns)
    reading, rows = GenderCodes(gender_codes), list(_rows(source))
    if not rows:
        raise CorpusError(f"{source.where} has no texts. Give at least one.")
    codes: dict[str, Counter[str]] = {}
    for role, name in _GENDERS.items():
        if role not in columns:
            continue
        codes[role] = counts = Counter(map(itemgetter(name), rows))
        unknown = [(code, n) for code, n in counts.most_common() if code not in reading]
        if unknown:
            listed_codes = ", ".join(f"{shown(code)} ({count(n, 'text')})" for code, n in unknown[:8])
            more = ", …" if len(unknown) > 8 else ""
            raise CorpusError(
                f"{source.where}: {one_line(columns[role])} has unknown gender codes:"
                f" {listed_codes}{more}. {how_to_map(code for code, _ in unknown[:3])}"
            )
        for row in rows:
            row[name] = reading[row[name]]
    groups = Counter(row["group"] for row in rows if row.get("group") is not None)
    if group is not None and not 2 <= len(groups) <= MOST_GROUPS:
        such_as = f", such as {shown(next(iter(groups)))}" if groups else ""
        raise CorpusError(
            f"{source.where}: {one_line(group)} has {count(len(groups), 'group')}{such_as}. Groups are"
            f" compared: name a column of two to {MOST_GROUPS} groups, or join rare ones."
        )
    models = Counter(row["model"] for row in rows)
    labels = {"occupation": Counter(row["occupation"] for row in rows), "model": models, "group": groups}
    notes = (*source.notes, *_notes(source, codes, reading, rows, labels))
    return ImportedTexts(source.where, source.digest, models, groups, notes, rows)


def _notes(
    source: TextSource,
    codes: Mapping[str, Counter[str]],
    reading: GenderCodes,
    rows: Sequence[Mapping[str, Any]],
    labels: Mapping[str, Counter[str]],
) -> Iterator[str]:
    """Note what a careful reader wants to know of an import that went well."""
    says = words("personas")["imported"]
    for role, names in says["usual"].items():
        usual = [name for name in source.header if name.strip().casefold() in names]
        if role not in source.columns and usual and usual[0] not in source.columns.values():
            said = says["unused_gender" if role == "gender" else "unused"]
            yield said.format(shown(usual[0]), role, shlex.quote(usual[0]))
    for role, counts in codes.items():
        read, column = [], source.columns[role]
        for code, n in sorted(counts.items()):
            read.append(f"{shown(code)} as {reading[code] or 'no gender'} ({n:,})")
        yield says["codes"][role].format(", ".join(read))
        if (role == "gender") != bool(_SAYS_REQUESTED.search(column)):
            yield says["which"][role].format(shown(column), shlex.quote(column))
    if n_thoughts := sum("raw" in row for row in rows):
        yield says["thoughts"].format(n_thoughts)
    if n_empty := sum(not row["text"].strip() for row in rows):
        yield says["empty"].format(n_empty)
    for what, counts in labels.items():
        yield from case_notes(what, counts)


_GENDERS = {"gender": "requested_gender", "person_gender": "person_gender"}  # role of a column → name in rows
_SAYS_REQUESTED = re.compile("request|prompt|asked|instruct|specif", re.IGNORECASE)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def _rows(source: TextSource) -> Iterator[dict[str, Any]]:
    """Yield a row for every record, its text and labels checked; genders are still codes."""
    columns = source.columns
    accepted: set[str] = set()
    for number, values in source.records:
        where = f"{source.where}, {source.unit} {number}"
        cells = {}
        for role, value in values.items():
            cells[role] = _text_of(value, f"{where}: {one_line(columns[role])}", role)
        for role in ("occupation", "model", "group"):
            label = cells.get(role)
            if label is None or label in accepted or (role == "group" and not label.strip()):
                continue
            what = f"{where}: {one_line(columns[role])}"
            if _LONE_SURROGATE.search(check_label(label, what)):
                half = "has half a character (a lone surrogate). Correct it."
                raise CorpusError(f"{what} {shown(label)} {half}")
            accepted.add(label)
        answer = without_thoughts(cells["text"])
        key, model = key_of([ROW_FORMAT, source.digest, number]), cells.get("model", source.label)
        row: dict[str, Any] = {"key": key, "model": model, "occupation": cells.get("occupation", UNNAMED)}
        requested = cells["gender"].strip() if "gender" in cells else None
        row |= {"template_id": TEMPLATE, "requested_gender": requested, "sample": number}
        row |= dict.fromkeys(("seed", "prompt_format", "prompt")) | {"text": answer}
        if answer != cells["text"]:
            row["raw"] = cells["text"]
        row |= dict.fromkeys(("finish_reason", "n_tokens", "answered_by", "answered_at"))
        if "person_gender" in cells:
            row["person_gender"] = cells["person_gender"].strip()
        if "group" in cells:
            row["group"] = cells["group"] if cells["group"].strip() else None
        yield row


def _text_of(value: object, where: str, role: str) -> str:
    """Read a value as text; labels and gender codes may be whole numbers, 1.0 as 1 (pandas makes it so)."""
    is_missing = value is None or (isinstance(value, float) and math.isnan(value))
    if isinstance(value, str) or (isinstance(value, bool) and role != "text"):
        return str(value)  # numpy has a text type of its own
    if role == "text" and is_missing:
        raise CorpusError(
            f"{where} is missing. Give the record a text or leave it out; pandas reads a text such as 'NA' as"
            " missing unless keep_default_na=False."
        )
    if role != "text":
        if is_missing:
            return ""
        if isinstance(value, numbers.Integral) or (isinstance(value, float) and value.is_integer()):
            return str(int(value))
    raise CorpusError(f"{where} is {shown(value)}, which is not a text. Put it in quotes.")
