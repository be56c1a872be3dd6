"""Anybody's texts as rows of generations.jsonl: from CSV, JSONL, Parquet or a DataFrame.

See docs/methods.md#imported-texts.

A source is read twice: once to check every record and count, so that what is wrong is said before a row is
written, and again as a stream of rows, so that no file is too long.
"""

from __future__ import annotations

import json
import math
import numbers
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from biaskit.corpora.sources import check_label, shown
from biaskit.errors import CorpusError, StudyError, nearest
from biaskit.personas.texts.files import TextSource, one_line, open_file, open_frame
from biaskit.provenance import ROW_FORMAT, key_of

if TYPE_CHECKING:
    import pandas as pd

TEMPLATE = "texts"
"""The template_id of every imported text."""
ALL = "all"
"""The model or occupation of texts that come without a column for it."""

_CODES: Mapping[str, tuple[str, ...]] = {
    "female": ("f", "w", "female", "woman"),
    "male": ("m", "male", "man"),
    "nonbinary": ("n", "nb", "nonbinary", "non-binary", "non binary", "non_binary"),
}
_NOT_SPECIFIED = ("", "none")  # what `gender_codes` may map a code to, beside the genders
_NO_CODES: Mapping[str, str] = MappingProxyType({})
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


# --- gender codes --------------------------------------------------------------------------------


def gender_of_code(code: str, codes: Mapping[str, str] = _NO_CODES) -> str | None:
    """`female`, `male` or `nonbinary`; None where the code says that no gender is specified.

    Understood, whatever their case and the white space around them: F, W, female, woman; M, male, man;
    N, NB, nonbinary, non-binary, non binary, non_binary. An empty code is None. `codes` (the study key
    `gender_codes`) goes before these; it maps to female, male, nonbinary, or to none or "" for "not
    specified". An unknown code is a `CorpusError`, never a guess ("NA" and "None" are unknown), and a
    wrong value in `codes` a `StudyError`.
    """
    table = _code_table(codes)
    if _folded(code) not in table:
        raise CorpusError(f"The gender code {shown(code)} is not known. {_how_to_map([code])}")
    return table[_folded(code)]


def _code_table(codes: Mapping[str, str]) -> dict[str, str | None]:
    """Every known code, folded, and its gender."""
    given: dict[str, str | None] = {}
    for code, gender in codes.items():
        if gender not in (*_CODES, *_NOT_SPECIFIED):
            raise StudyError(
                f"gender_codes: {shown(code)} = {shown(gender)} is no gender."
                f"{nearest(str(gender), _CODES)} Known: {', '.join(_CODES)}, none (not specified)."
            )
        folded, value = _folded(str(code)), gender if gender in _CODES else None
        if given.setdefault(folded, value) != value:
            raise StudyError(
                f"gender_codes: {shown(code)} is there twice, case aside, with two genders. Keep one."
            )
    return {"": None} | {code: gender for gender, known in _CODES.items() for code in known} | given


def _folded(code: str) -> str:
    return code.strip().casefold()


def _how_to_map(codes: Iterable[str]) -> str:
    """What the user can type, for codes that a dotted key of --set can hold and for those it cannot."""
    ways = []
    for code in (code if len(code) <= 40 else "CODE" for code in codes):
        if code.isprintable() and not {".", "="} & set(code):
            ways.append(f"--set {shlex.quote(f'gender_codes.{code}=female')}")
        else:
            ways.append(f'{json.dumps(code)} = "female" under [gender_codes] of a study file')
    return f"Map each with {', '.join(ways)}; other values: male, nonbinary, none (not specified)."


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
            f" {_how_to_map(code for code, _ in first[:3])}"
        )


# --- from sources to rows ------------------------------------------------------------------------


def read_texts(
    path: str | Path,
    *,
    text_col: str = "text",
    gender_col: str | None = None,
    occupation_col: str | None = None,
    model_col: str | None = None,
    gender_codes: Mapping[str, str] = _NO_CODES,
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
    gender_codes: Mapping[str, str] = _NO_CODES,
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
    table = _code_table(gender_codes)
    codes: Counter[str] = Counter()
    models: Counter[str] = Counter()
    occupations: Counter[str] = Counter()
    unknown = _UnknownCodes()
    n_empty = 0
    for record in _checked(source):
        n_empty += not record.text.strip()
        models[record.model] += 1
        occupations[record.occupation] += 1
        if _folded(record.code) in table:
            codes[record.code] += 1
        else:
            unknown.add(record.code)
    if unknown.counts:
        raise unknown.error(source.where, source.columns["gender"])
    if not models:
        raise CorpusError(f"{source.where} holds no texts. Give at least one.")
    genders: Counter[str | None] = Counter()
    for code, n in codes.items():
        genders[table[_folded(code)]] += n
    return ImportedTexts(
        source=source.where,
        digest=source.digest,
        n_texts=models.total(),
        n_empty=n_empty,
        genders=dict(genders),
        models=dict(models),
        occupations=dict(occupations),
        notes=tuple(_notes(source, codes, table, n_empty, {"occupation": occupations, "model": models})),
        _read=lambda: _rows(source, table),
    )


def _rows(source: TextSource, table: Mapping[str, str | None]) -> Iterator[dict[str, object]]:
    for record in _checked(source):
        yield {
            "key": key_of([ROW_FORMAT, source.digest, record.number]),
            "model": record.model,
            "occupation": record.occupation,
            "template_id": TEMPLATE,
            "specified_gender": table[_folded(record.code)],
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
    table: Mapping[str, str | None],
    n_empty: int,
    labels: Mapping[str, Counter[str]],
) -> Iterator[str]:
    """What a careful reader wants to know of an import that went well."""
    if "gender" in source.columns:
        read = [
            f"{shown(code)} as {table[_folded(code)] or 'not specified'} ({codes[code]:,})"
            for code in sorted(codes)
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
            number, text, read.get("gender", "").strip(), read.get("occupation", ALL), read.get("model", ALL)
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
