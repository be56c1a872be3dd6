"""Where lists come from: a shipped file whose digest is checked, or a user's own; read as rows.

A source is `corpus:NAME/FILE` or the path of a user's .csv, .toml or .txt. A row knows where it stands, so
whatever is wrong with one is a `CorpusError` of one line: what, where, and what to do.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from biaskit.errors import CorpusError, nearest
from biaskit.files import data_dir
from biaskit.foreign import is_formula
from biaskit.inputs import Inputs, expanded, one_line
from biaskit.sheets import split_sheet

T = TypeVar("T", bound=str)

SHIPPED = "corpus:"
"""What a source begins with when it names a shipped file; everything else is a path."""

_CORPUS_TEXTS = ("name", "title", "source", "licence", "bibtex")
_FILE_TEXTS = ("path", "kind", "source", "sha256")
_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_ANY_FIELD_LENGTH = 2**31 - 1  # the largest that every platform's C long holds
LISTS = Inputs(CorpusError, most=256 * 2**20)


@dataclass(frozen=True, slots=True)
class CorpusFile:
    """One file of a shipped corpus: what it holds, where that comes from, and its digest."""

    path: str
    kind: str  # items, templates, instructions, dialogue, expressions, words, counts, licence
    source: str  # where in the corpus's source, such as "Table 5"
    sha256: str


@dataclass(frozen=True, slots=True)
class Corpus:
    """A shipped corpus as its `corpus.toml` describes it."""

    name: str
    title: str
    source: str
    year: int
    licence: str
    notes: tuple[str, ...]
    bibtex: str
    files: tuple[CorpusFile, ...]


@dataclass(frozen=True, slots=True)
class SourceRow:
    """The values of one line or TOML table, and where it stands."""

    where: str
    values: Mapping[str, object]


# --- what is shipped -----------------------------------------------------------------------------


def list_corpora() -> list[Corpus]:
    """Every shipped corpus, by name; each file is held against its digest."""
    return [load_corpus(name) for name in _shipped_names()]


def load_corpus(name: str) -> Corpus:
    """One shipped corpus; a file that differs from its digest is an error."""
    corpus = _read_manifest(name)
    for file in corpus.files:
        _read_shipped(corpus, file)
    return corpus


def _shipped_names() -> list[str]:
    return sorted(path.parent.name for path in data_dir("corpora").glob("*/corpus.toml"))


def _read_manifest(name: str) -> Corpus:
    names = _shipped_names()
    if name not in names:
        raise CorpusError(
            f"There is no corpus {shown(name)}.{nearest(name, names)} Shipped: {', '.join(names)}."
        )
    where = f"{SHIPPED}{name}/corpus.toml"
    content = _read_bytes(data_dir("corpora") / name / "corpus.toml", where)
    row = SourceRow(where, LISTS.parsed_toml(LISTS.decoded(content, where), where))
    check_keys(row, (*_CORPUS_TEXTS, "year", "notes", "file"))
    year = year_of(row)
    if year is None:
        raise CorpusError(f"{where}: year is missing. Write the year of the source.")
    return Corpus(
        **{key: text_of(row, key, required=True) for key in _CORPUS_TEXTS},
        year=year,
        notes=texts_of(row, "notes"),
        files=tuple(
            _corpus_file(SourceRow(f"{where}, file {n}", entry)) for n, entry in entries_of(row, "file")
        ),
    )


def _corpus_file(row: SourceRow) -> CorpusFile:
    check_keys(row, _FILE_TEXTS)
    return CorpusFile(**{key: text_of(row, key, required=True) for key in _FILE_TEXTS})


def _read_shipped(corpus: Corpus, file: CorpusFile) -> bytes:
    where = f"{SHIPPED}{corpus.name}/{file.path}"
    content = _read_bytes(data_dir("corpora") / corpus.name / file.path, where)
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise CorpusError(
            f"{where} has changed: its sha256 is {found}, expected {file.sha256}."
            " Restore it, or use a copy of your own by its path."
        )
    return content


def source_digest(source: str | Path) -> str:
    """SHA-256 of what a source holds, shipped or the user's: for the manifest."""
    if str(source).startswith(SHIPPED):
        name, _, path = str(source).removeprefix(SHIPPED).partition("/")
        return next((file.sha256 for file in _read_manifest(name).files if file.path == path), "")
    name, sheet = split_sheet(str(source))
    found = hashlib.sha256(_read_bytes(expanded(name), name)).hexdigest()
    return found if sheet is None else hashlib.sha256(f"{found}#{sheet}".encode()).hexdigest()


# --- from files to rows --------------------------------------------------------------------------


def entries_of(row: SourceRow, table: str) -> Iterator[tuple[int, Mapping[str, object]]]:
    """The `[[table]]` entries of a TOML document, counted from 1."""
    entries = row.values.get(table, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise CorpusError(f"{row.where}: write each {table} as a table under [[{table}]].")
    yield from enumerate(entries, start=1)


def check_keys(row: SourceRow, known: Iterable[str]) -> None:
    """Refuse a key that is not known, with the nearest one that is."""
    known = tuple(known)
    for key in row.values:
        if key not in known:
            raise CorpusError(
                f"{row.where}: unknown key {shown(key)}.{nearest(key, known)} Known: {', '.join(known)}."
            )


@contextlib.contextmanager
def unlimited_fields() -> Iterator[None]:
    """Csv refuses fields of over 131,072 characters unless told otherwise, for the whole process."""
    before = csv.field_size_limit(_ANY_FIELD_LENGTH)
    try:
        yield
    finally:
        csv.field_size_limit(before)


# --- from sources to text ------------------------------------------------------------------------


def read_source(source: str | Path, kind: str, formats: tuple[str, ...]) -> tuple[str, str, str]:
    """How messages name the source, its suffix in lower case, and its text."""
    source = str(source)
    where = one_line(source)
    suffix = Path(source).suffix.lower()
    if source.startswith(SHIPPED):
        content = _read_shipped(*_find_shipped(source, kind))
    elif suffix in formats:
        content = _read_bytes(expanded(source), where)
    elif expanded(source).is_dir():
        raise CorpusError(f"{where} is a folder, not a file of {kind}. Give the path of a file in it.")
    else:
        raise CorpusError(
            f"{where}: a file of {kind} ends in {' or '.join(formats)}, not in {shown(suffix)}."
        )
    return where, suffix, LISTS.decoded(content, where)


def read_text(path: str) -> str:
    """A user's text file without the white space around it; an empty one is an error."""
    where = one_line(path)
    text = LISTS.decoded(_read_bytes(expanded(path), where), where).strip()
    if not text:
        raise CorpusError(f"{where} is empty. Write the text into it.")
    return text


def _find_shipped(reference: str, kind: str) -> tuple[Corpus, CorpusFile]:
    name, _, path = reference.removeprefix(SHIPPED).partition("/")
    corpus = _read_manifest(name)
    for file in corpus.files:
        if file.path == path and file.kind == kind:
            return corpus, file
        if file.path == path:
            raise CorpusError(f"{reference} holds {file.kind}, not {kind}.")
    paths = [file.path for file in corpus.files]
    raise CorpusError(
        f"There is no file {shown(path)} in {SHIPPED}{name}.{nearest(path, paths)} It has {', '.join(paths)}."
    )


def _read_bytes(path: Path, where: str) -> bytes:
    named = "\0" not in str(path) and not path.is_absolute()
    if named and not os.path.lexists(path) and (data_dir("corpora") / path).is_file():
        raise CorpusError(f"There is no file {where}. Did you mean '{SHIPPED}{where}'?")
    return LISTS.content(path, where)


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """A TOML document, or one line that says where it breaks."""
    return LISTS.parsed_toml(text, where)


# --- values of a row ------------------------------------------------------------------------------


def check_label(text: str, what: str) -> str:
    """`text` if it can stand in a public table: a name that no spreadsheet takes for a formula.

    `what` opens the message, such as "The model label" or "jobs.csv, line 3: item".
    """
    if not text.strip():
        raise CorpusError(f"{what} is empty. Give it a name.")
    if is_formula(text):
        raise CorpusError(
            f"{what} {shown(text)} begins with {text[0]!r}, which a spreadsheet would run. Rename it."
        )
    if text != text.strip():
        raise CorpusError(f"{what} {shown(text)} begins or ends with white space. Remove it.")
    if not text.isprintable() and any(character in _LINE_ENDS for character in text):
        raise CorpusError(f"{what} {shown(text)} holds a line break. Remove it.")
    return text


def texts_of(row: SourceRow, key: str) -> tuple[str, ...]:
    """A list of texts, not empty."""
    values = row.values.get(key)
    if not isinstance(values, list) or not values:
        raise CorpusError(
            f'{row.where}: {shown(key)} is empty or not a list. Write a list of texts, like ["He", "Him"].'
        )
    return tuple(text_of(SourceRow(row.where, {key: value}), key, required=True) for value in values)


def label_of(row: SourceRow, key: str) -> str:
    """A value that can stand in a public table."""
    return check_label(string_of(row, key), f"{row.where}: {key}")


def text_of(row: SourceRow, key: str, *, required: bool = False) -> str:
    """A value as text, empty where it is missing and not required."""
    value = string_of(row, key)
    if required and not value.strip():
        raise CorpusError(f"{row.where}: {key} is missing or empty. Write one.")
    # A prompt that ends in a space would move the word boundary from the expression to the prompt.
    if value != value.strip():
        raise CorpusError(f"{row.where}: {key} begins or ends with white space: {shown(value)}. Remove it.")
    if not value.isprintable() and any(
        unicodedata.category(character) in ("Cc", "Cs") for character in value if character not in "\n\t"
    ):
        raise CorpusError(f"{row.where}: {key} holds a control character: {shown(value)}. Remove it.")
    return value


def one_of(row: SourceRow, key: str, known: tuple[T, ...], default: str = "") -> T:
    """A value that is one of those known; `default` where it is missing."""
    value = text_of(row, key, required=not default) or default
    for name in known:
        if value == name:
            return name
    listed = ", ".join(known)
    raise CorpusError(f"{row.where}: unknown {key} {shown(value)}.{nearest(value, known)} Known: {listed}.")


def string_of(row: SourceRow, key: str) -> str:
    """A value that must be text, whatever it says."""
    value = row.values.get(key, "")
    if not isinstance(value, str):
        raise CorpusError(f"{row.where}: {key} is {shown(value)}, which is not a text. Put it in quotes.")
    return value


def shown(value: object) -> str:
    """A foreign value inside a message: quoted, escaped, one line, and not too long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:70]}...{text[-1]}"


def year_of(row: SourceRow) -> int | None:
    """A year, or None where none is given."""
    value = row.values.get("year", "")
    if value == "":
        return None
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{4}", str(value)):
        raise CorpusError(f"{row.where}: year {shown(value)} is not a year of four digits, like 2024.")
    return int(str(value))
