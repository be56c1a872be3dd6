"""Anybody's texts as rows of generations.jsonl: from CSV, JSONL, Parquet or a DataFrame.

See docs/methods.md#imported-texts.

A source is read twice: once to check every record and count, so that what is wrong is said before a row is
written, and again as a stream of rows, so that no file is too long.
"""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from biaskit.corpora.sources import check_label, shown
from biaskit.errors import CorpusError
from biaskit.personas.texts.files import TextSource, one_line, open_file, open_frame
from biaskit.personas.texts.gender_codes import NO_CODES, GenderCodes, how_to_map
from biaskit.provenance import ROW_FORMAT, key_of

if TYPE_CHECKING:
    import pandas as pd

TEMPLATE = "texts"
"""The template_id of every imported text."""
UNNAMED = "all"
"""The model or occupation of texts that come without a column for it."""

_MOST_UNKNOWN = 100  # distinct codes kept: a column of texts given as --gender-col must not fill the memory


@dataclass(frozen=True, slots=True)
class ImportedTexts:
    """Texts of a file or DataFrame, checked and counted; `rows()` reads them again as a stream."""

    source: str  # as messages name it
    digest: str  # SHA-256 of the file as it lies, or of the values used of a DataFrame
    n_texts: int
    n_empty: int  # nothing but white space
    genders: Mapping[str | None, int]  # texts per specified gender; None: not specified
    models: Mapping[str, int]  # texts per label, in order of first appearance
    occupations: Mapping[str, int]
    notes: tuple[str, ...]
    _read: Callable[[], Iterator[dict[str, object]]]

    def rows(self) -> Iterator[dict[str, object]]:
        """The rows of generations.jsonl, in the order of the source.

        `draw` is the line where the record begins (the header of a .csv is line 1), in Parquet and in
        DataFrames the number of the row from 1. `key` hashes row format, digest and draw. What a text of
        unknown origin cannot have is None. A file that changed since it was checked: `CorpusError`.
        """
        return self._read()


@dataclass(frozen=True, slots=True)
class _Checked:
    number: int
    text: str
    code: str
    occupation: str
    model: str


class _UnknownCodes:
    """Codes that nobody mapped, and how many records have each."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.n_beyond = 0  # records whose codes are not kept

    def add(self, code: str) -> None:
        if code in self.counts or len(self.counts) < _MOST_UNKNOWN:
            self.counts[code] += 1
        else:
            self.n_beyond += 1

    def error(self, where: str, column: str) -> CorpusError:
        """One line for all of them, the most frequent first."""
        first = self.counts.most_common(8)
        said = [f"{shown(code)} ({n:,} {'text' if n == 1 else 'texts'})" for code, n in first]
        if rest := self.counts.total() + self.n_beyond - sum(n for _, n in first):
            said.append(f"others ({rest:,} texts)")
        return CorpusError(
            f"{where}: {one_line(column)} holds gender codes that are not known: {', '.join(said)}."
            f" {how_to_map(code for code, _ in first[:3])}"
        )


# --- from sources to rows ------------------------------------------------------------------------


def read_texts(
    path: str | Path,
    *,
    text_col: str = "text",
    gender_col: str | None = None,
    occupation_col: str | None = None,
    model_col: str | None = None,
    gender_codes: Mapping[str, str] = NO_CODES,
) -> ImportedTexts:
    """Check a file of texts and count what it holds: .csv, .tsv, .jsonl, .ndjson (also .gz), .parquet.

    Text is text: "NA", "None" and the empty text are texts, of any length, with whatever characters; a
    file is UTF-8, with or without a byte order mark. An empty gender (in JSONL also null or absent, in
    Parquet null) is "not specified". Model and occupation are labels of public tables: an empty one or a
    spreadsheet's formula is refused. Whatever is wrong is a `CorpusError` of one line; Parquet without
    pyarrow is a `MissingExtraError`.
    """
    columns = _columns(text_col, gender_col, occupation_col, model_col)
    return _import(open_file(path, columns), gender_codes)


def rows_of_frame(
    df: pd.DataFrame,
    *,
    text_col: str = "text",
    gender_col: str | None = None,
    occupation_col: str | None = None,
    model_col: str | None = None,
    gender_codes: Mapping[str, str] = NO_CODES,
) -> ImportedTexts:
    """The same for a DataFrame; its digest is that of the columns used, in order, whatever the index.

    A missing value (None, NaN, pd.NA) is "not specified" in the column of genders and an error elsewhere:
    a text "NA" that pandas read as missing is lost, and only the reader of the file can prevent that.
    The values are taken once: changing the frame afterwards changes nothing.
    """
    columns = _columns(text_col, gender_col, occupation_col, model_col)
    return _import(open_frame(df, columns), gender_codes)


def _columns(text: str, gender: str | None, occupation: str | None, model: str | None) -> dict[str, str]:
    asked = {"text": text, "gender": gender, "occupation": occupation, "model": model}
    return {role: column for role, column in asked.items() if column is not None}


def _import(source: TextSource, gender_codes: Mapping[str, str]) -> ImportedTexts:
    known = GenderCodes(gender_codes)
    codes: Counter[str] = Counter()
    models: Counter[str] = Counter()
    occupations: Counter[str] = Counter()
    unknown = _UnknownCodes()
    n_empty = 0
    for record in _checked(source):
        n_empty += not record.text.strip()
        models[record.model] += 1
        occupations[record.occupation] += 1
        if record.code in known:
            codes[record.code] += 1
        else:
            unknown.add(record.code)
    if unknown.counts:
        raise unknown.error(source.where, source.columns["gender"])
    if not models:
        raise CorpusError(f"{source.where} holds no texts. Give at least one.")
    genders: Counter[str | None] = Counter()
    for code, n in codes.items():
        genders[known[code]] += n
    return ImportedTexts(
        source=source.where,
        digest=source.digest,
        n_texts=models.total(),
        n_empty=n_empty,
        genders=dict(genders),
        models=dict(models),
        occupations=dict(occupations),
        notes=tuple(_notes(source, codes, known, n_empty, {"occupation": occupations, "model": models})),
        _read=lambda: _rows(source, known),
    )


def _rows(source: TextSource, known: GenderCodes) -> Iterator[dict[str, object]]:
    for record in _checked(source):
        yield {
            "key": key_of([ROW_FORMAT, source.digest, record.number]),
            "model": record.model,
            "occupation": record.occupation,
            "template_id": TEMPLATE,
            "specified_gender": known[record.code],
            "draw": record.number,
            "seed": None,
            "prompt_form": None,
            "prompt": None,
            "text": record.text,
            "finish_reason": None,
            "n_tokens": None,
            "answered_by": None,
            "answered_at": None,
        }


def _notes(
    source: TextSource,
    codes: Counter[str],
    known: GenderCodes,
    n_empty: int,
    labels: Mapping[str, Counter[str]],
) -> Iterator[str]:
    """What a careful reader wants to know of an import that went well."""
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


# --- what a record may hold ------------------------------------------------------------------------


def _checked(source: TextSource) -> Iterator[_Checked]:
    """Every record, once its text is a text and its labels can stand in a public table."""
    columns = source.columns
    labels = [role for role in ("occupation", "model") if role in columns]
    accepted: set[str] = set()
    for number, values in source.records():
        where = f"{source.where}, {source.unit} {number}"
        text = _text_of(values["text"], where, columns["text"])
        read = {role: _string_of(values[role], where, columns[role]) for role in values if role != "text"}
        for role in labels:
            if read[role] not in accepted:
                what = f"{where}: {one_line(columns[role])}"
                accepted.add(_whole(check_label(read[role], what), what))
        yield _Checked(
            number,
            text,
            read.get("gender", "").strip(),
            read.get("occupation", UNNAMED),
            read.get("model", UNNAMED),
        )


def _whole(label: str, what: str) -> str:
    """A label of foreign texts that UTF-8 can hold: it stands in public tables."""
    if any("\ud800" <= character <= "\udfff" for character in label):
        raise CorpusError(f"{what} {shown(label)} holds half of a character (a lone surrogate). Correct it.")
    return label


def _text_of(value: object, where: str, column: str) -> str:
    if isinstance(value, str):
        return str(value)  # numpy has a text type of its own
    if _is_missing(value):
        raise CorpusError(
            f"{where}: {one_line(column)} is missing. Give the record a text or leave it out; pandas reads a"
            " text such as 'NA' as missing unless it is told keep_default_na=False."
        )
    raise CorpusError(
        f"{where}: {one_line(column)} is {shown(value)}, which is not a text. Put it in quotes."
    )


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
    raise CorpusError(
        f"{where}: {one_line(column)} is {shown(value)}, which is not a text. Put it in quotes."
    )


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
