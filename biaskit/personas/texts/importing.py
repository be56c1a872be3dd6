"""Anybody's texts as rows of generations.jsonl (docs/methods.md#imported-texts).

Every record is checked and counted before a row is written.
"""

from __future__ import annotations

import math
import numbers
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from biaskit.corpora.sources import check_label, shown
from biaskit.errors import CorpusError
from biaskit.inputs import one_line
from biaskit.personas.texts.files import UNNAMED, TextSource, open_file, open_frame
from biaskit.personas.texts.gender_codes import NO_CODES, GenderCodes, how_to_map
from biaskit.provenance import ROW_FORMAT, key_of

if TYPE_CHECKING:
    import pandas as pd

TEMPLATE = "texts"
"""The template_id of every imported text."""
MOST_GROUPS = 50
"""Values that a column of groups may hold: every group is compared, and crossed with each gender."""


@dataclass(frozen=True, slots=True)
class ImportedTexts:
    """Texts of a file or DataFrame, checked and counted."""

    source: str  # as messages name it
    digest: str  # SHA-256 of the file as it lies, or of the values used of a DataFrame
    models: Mapping[str, int]  # texts per label, in order of first appearance
    notes: tuple[str, ...]
    rows: Callable[[], Iterator[dict[str, object]]]
    """The rows of generations.jsonl, in the order of the source.

    `draw` is the line where the record begins (the header of a .csv is line 1), in Parquet and in DataFrames
    the number of the row from 1. `key` hashes row format, digest and draw. What a text of unknown origin
    cannot have is None.
    """
    groups: Mapping[str, int] = field(default_factory=dict)  # texts per value of the column of groups


@dataclass(frozen=True, slots=True)
class _Checked:
    number: int
    text: str
    code: str
    occupation: str
    model: str
    group: str | None


def read_texts(
    texts: str | Path | pd.DataFrame,
    *,
    text: str = "text",
    gender: str | None = None,
    occupation: str | None = None,
    model: str | None = None,
    group: str | None = None,
    gender_codes: Mapping[str, str] = NO_CODES,
    encoding: str = "utf-8",
    separator: str | None = None,
) -> ImportedTexts:
    """Check texts and count what they are: .csv, .tsv, .jsonl (also .gz), .parquet, .xlsx, a DataFrame.

    `text`, `gender`, `occupation`, `model`, `group` name columns. Text is text: "NA", "None" and the empty
    text are texts, of any length, with whatever characters; a file is UTF-8, with or without a byte order
    mark. An empty gender (in JSONL also null or absent, in Parquet null) is "not specified". Model and
    occupation are labels of public tables: an empty one or a spreadsheet's formula is refused. So is a group,
    of which an empty one is none; a column of groups holds two to `MOST_GROUPS` values. Whatever is wrong is
    a `CorpusError` of one line; Parquet without pyarrow and .xlsx without openpyxl a
    `MissingExtraError`.

    Of a DataFrame the digest is that of the columns used, in order, whatever the index. A missing value
    (None, NaN, pd.NA) is "not specified" in the column of genders and an error elsewhere: a text "NA" that
    pandas read as missing is lost, and only the reader of the file can prevent that. The values are taken
    once: changing the frame afterwards changes nothing.
    """
    asked = {"text": text, "gender": gender, "occupation": occupation, "model": model, "group": group}
    columns = {role: column for role, column in asked.items() if column is not None}
    source = (
        open_file(texts, columns, encoding, separator)
        if isinstance(texts, str | Path)
        else open_frame(texts, columns)
    )
    known, records = GenderCodes(gender_codes), list(_checked(source))
    codes = Counter(record.code for record in records)
    if unknown := Counter({code: n for code, n in codes.items() if code not in known}):
        raise _unknown_codes(source, unknown)
    if not records:
        raise CorpusError(f"{source.where} holds no texts. Give at least one.")
    groups = Counter(record.group for record in records if record.group is not None)
    if group is not None:
        _check_groups(source, groups)
    models = Counter(record.model for record in records)
    labels = {
        "occupation": Counter(record.occupation for record in records),
        "model": models,
        "group": groups,
    }
    n_empty = sum(not record.text.strip() for record in records)
    notes = _notes(source, codes, known, n_empty, labels)
    rows = partial(_rows, source, known, records)
    return ImportedTexts(source.where, source.digest, models, tuple(notes), rows, groups)


def _check_groups(source: TextSource, groups: Mapping[str, int]) -> None:
    """A column of groups can be compared: it holds two values, and not as many as a column of texts."""
    column, values = one_line(source.columns["group"]), list(groups)
    if len(values) > MOST_GROUPS:
        raise CorpusError(
            f"{source.where}: {column} holds more than {MOST_GROUPS} different values, such as"
            f" {', '.join(map(shown, values[:3]))}. Name a column of groups, or join rare ones."
        )
    if len(values) < 2:
        held = f"one value alone, {shown(values[0])}" if values else "no value"
        raise CorpusError(f"{source.where}: {column} holds {held}. Groups are compared: give two or more.")


def _unknown_codes(source: TextSource, unknown: Counter[str]) -> CorpusError:
    """One line for all codes that nobody mapped, the most frequent first."""
    first = unknown.most_common(8)
    said = [f"{shown(code)} ({n:,} {'text' if n == 1 else 'texts'})" for code, n in first]
    if rest := unknown.total() - sum(n for _, n in first):
        said.append(f"others ({rest:,} texts)")
    return CorpusError(
        f"{source.where}: {one_line(source.columns['gender'])} holds gender codes that are not known:"
        f" {', '.join(said)}. {how_to_map(code for code, _ in first[:3])}"
    )


def _rows(source: TextSource, known: GenderCodes, records: Sequence[_Checked]) -> Iterator[dict[str, object]]:
    for record in records:
        yield {
            "key": key_of([ROW_FORMAT, source.digest, record.number]),
            "model": record.model,
            "occupation": record.occupation,
            "template_id": TEMPLATE,
            "specified_gender": known[record.code],
            "draw": record.number,
            **dict.fromkeys(("seed", "prompt_form", "prompt")),
            "text": record.text,
            **dict.fromkeys(("finish_reason", "n_tokens", "answered_by", "answered_at")),
            **({"group": record.group} if "group" in source.columns else {}),
        }


def _notes(
    source: TextSource,
    codes: Counter[str],
    known: GenderCodes,
    n_empty: int,
    labels: Mapping[str, Counter[str]],
) -> Iterator[str]:
    """What a careful reader wants to know of an import that went well."""
    yield from source.notes
    yield from _unused(source)
    if "gender" in source.columns:
        read = [
            f"{shown(code)} as {known[code] or 'not specified'} ({codes[code]:,})" for code in sorted(codes)
        ]
        yield f"gender codes were read: {', '.join(read)}"
    if n_empty:
        yield f"texts that are empty: {n_empty:,}"
    for what, counts in labels.items():
        spellings: dict[str, list[str]] = {}
        for label in counts:
            spellings.setdefault(label.casefold(), []).append(label)
        for same in spellings.values():
            if len(same) > 1:
                yield f"{what} labels that differ only in case stay apart: {', '.join(map(shown, same))}"


_USUAL = {
    "gender": ("gender", "sex"),
    "occupation": ("occupation", "job", "profession"),
    "model": ("model",),
    "group": ("race", "ethnicity"),
}
"""What the columns of genders, occupations, models and groups are mostly called."""


def _unused(source: TextSource) -> Iterator[str]:
    """A column that looks as if it were meant to be used, where none was named for it."""
    for role, names in _USUAL.items():
        found = [name for name in source.header if name.strip().casefold() in names]
        if role not in source.columns and found and found[0] not in source.columns.values():
            option = f"--{role}-col {shlex.quote(found[0])}"
            argument = "group_col" if role == "group" else role
            how = f"{argument}={found[0]!r}" if source.label == UNNAMED and source.unit == "row" else option
            yield f"the column {shown(found[0])} is there and was not used: {how} uses it"


def _checked(source: TextSource) -> Iterator[_Checked]:
    """Every record, once its text is a text and its labels can stand in a public table."""
    columns = source.columns
    labels = [role for role in ("occupation", "model", "group") if role in columns]
    accepted: set[str] = set()
    for number, values in source.records:
        where = f"{source.where}, {source.unit} {number}"
        text = _text_of(values["text"], where, columns["text"])
        read = {role: _string_of(values[role], where, columns[role]) for role in values if role != "text"}
        for role in labels:
            if role == "group" and not read[role].strip():
                continue
            if read[role] not in accepted:
                what = f"{where}: {one_line(columns[role])}"
                if any("\ud800" <= character <= "\udfff" for character in check_label(read[role], what)):
                    half = "holds half of a character (a lone surrogate). Correct it."
                    raise CorpusError(f"{what} {shown(read[role])} {half}")
                accepted.add(read[role])
        yield _Checked(
            number,
            text,
            read.get("gender", "").strip(),
            read.get("occupation", UNNAMED),
            read.get("model", source.label),
            read["group"] if read.get("group", "").strip() else None,
        )


def _text_of(value: object, where: str, column: str) -> str:
    if isinstance(value, str):
        return str(value)  # numpy has a text type of its own
    if _is_missing(value):
        raise CorpusError(
            f"{where}: {one_line(column)} is missing. Give the record a text or leave it out; pandas reads a"
            " text such as 'NA' as missing unless it is told keep_default_na=False."
        )
    raise _no_text(value, where, column)


def _string_of(value: object, where: str, column: str) -> str:
    """A label or gender code as text: whole numbers are taken too, 1.0 as 1 (pandas makes it so)."""
    if isinstance(value, str):
        return value
    if _is_missing(value):
        return ""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, numbers.Integral) or (isinstance(value, float) and value.is_integer()):
        return str(int(value))
    raise _no_text(value, where, column)


def _no_text(value: object, where: str, column: str) -> CorpusError:
    return CorpusError(
        f"{where}: {one_line(column)} is {shown(value)}, which is not a text. Put it in quotes."
    )


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
