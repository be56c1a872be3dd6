"""Where lists come from: a shipped file whose digest is checked, or a user's own; and what an entry may hold.

A source is `corpus:NAME/FILE` or the path of a user's .csv, .toml or .txt. Whatever is wrong with one is a
`CorpusError` of one line: what, where, and what to do.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from biaskit.common.files import data_dir
from biaskit.common.foreign import is_formula
from biaskit.common.inputs import Inputs, expanded, one_line
from biaskit.common.plain import group_by
from biaskit.common.sheets import split_sheet
from biaskit.errors import CorpusError, nearest

SHIPPED = "corpus:"
"""What a source begins with when it names a shipped file; everything else is a path."""

_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_ANY_FIELD_LENGTH = 2**31 - 1  # the largest that every platform's C long holds
LISTS = Inputs(CorpusError, most=256 * 2**20)


# --- what an entry may hold ----------------------------------------------------------------------


def _clean(text: str) -> str:
    # A prompt that ends in a space would move the word boundary from the target word to the prompt.
    if text != text.strip():
        raise ValueError(f"begins or ends with white space: {shown(text)}. Remove it.")
    if not text.isprintable() and any(
        unicodedata.category(c) in ("Cc", "Cs") for c in text if c not in "\n\t"
    ):
        raise ValueError(f"has a control character: {shown(text)}. Remove it.")
    return text


def _label(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty. Give it a name.")
    if is_formula(text):
        raise ValueError(f"{shown(text)} begins with {text[0]!r}, which a spreadsheet would run. Rename it.")
    if text != text.strip():
        raise ValueError(f"{shown(text)} begins or ends with white space. Remove it.")
    if not text.isprintable() and any(character in _LINE_ENDS for character in text):
        raise ValueError(f"{shown(text)} has a line break. Remove it.")
    return text


Text = Annotated[str, AfterValidator(_clean)]  # a text as a prompt may hold it
Filled = Annotated[str, StringConstraints(min_length=1), AfterValidator(_clean)]  # the same, not empty
Label = Annotated[str, AfterValidator(_label)]  # a name that can stand in a public table


class ListEntry(BaseModel):
    """One entry of a list; its fields are the columns or keys that it may have."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


E = TypeVar("E", bound=ListEntry)


def entry_of(kind: type[E], values: object, where: str) -> E:
    """Check an entry; the error names the first fault with its place, an unknown key before all others."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        problems = error.errors()
        first = next((p for p in problems if p["type"] == "extra_forbidden"), problems[0])
        raise CorpusError(f"{where}{_explained(first, kind)}") from None


def _explained(problem: Mapping[str, Any], kind: type[ListEntry]) -> str:
    if not problem["loc"]:
        return " is not a table of keys. Write KEY = VALUE."
    loc, value = problem["loc"], problem["input"]
    if loc[-1] == "[key]":  # pydantic's word for a key that a table cannot have
        loc = (*loc[:-2], "key")
    *tables, key = [part for part in loc if isinstance(part, str)]
    if tables:  # as TOML writes them; [[tables]] with their number
        numbered = isinstance(loc[1], int)
        place = f"[[{tables[0]}]] {loc[1] + 1}" if numbered else f"[{'.'.join(tables)}]"
        return f": {place}{_explained({**problem, 'loc': (key,)}, _kind_of(tables, kind))}"
    if problem["type"] == "extra_forbidden":
        known = [field.alias or name for name, field in kind.model_fields.items()]
        return f": unknown key {shown(key)}.{nearest(key, known)} Known: {', '.join(known)}."
    if problem["type"] in ("missing", "string_too_short"):
        return f": {key} is missing or empty. Write one."
    if problem["type"] == "value_error":
        return f": {key} {problem['ctx']['error']}"
    if problem["type"] == "literal_error":
        possible = re.findall("'([^']*)'", problem["ctx"]["expected"])
        return f": unknown {key} {shown(value)}.{nearest(str(value), possible)} Known: {', '.join(possible)}."
    if problem["type"] == "string_type":
        return f": {key} is {shown(value)}, which is not a text. Put it in quotes."
    if problem["type"] in ("list_type", "too_short"):
        return f': {shown(key)} is empty or not a list. Write a list of texts, like ["He", "Him"].'
    return f": {key} {shown(value)}: {problem['msg'].lower()}."


def _kind_of(tables: Iterable[str], kind: type[ListEntry]) -> type[ListEntry]:
    """Find what an entry of the table holds that `tables` lead to from `kind`."""
    for table in tables:
        held = [field.annotation for name, field in kind.model_fields.items() if table in (name, field.alias)]
        kinds = [*held, *(part for one in held for part in get_args(one))]
        kind = next((one for one in kinds if isinstance(one, type) and issubclass(one, ListEntry)), kind)
    return kind


def check_label(text: str, what: str) -> str:
    """Return `text` if a public table can hold it; `what` opens the message, such as "The model label"."""
    try:
        return _label(text)
    except ValueError as error:
        raise CorpusError(f"{what} {error}") from None


def shown(value: object) -> str:
    """Show a foreign value inside a message: quoted, escaped, on one line, and not too long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:70]}...{text[-1]}"


def case_notes(what: str, labels: Iterable[str]) -> Iterator[str]:
    """Note labels that differ only in case: each has numbers of its own."""
    for same in group_by(labels, str.casefold).values():
        if len(same) > 1:
            yield f"{what} labels that differ only in case stay separate: {', '.join(map(shown, same))}"


class CorpusFile(ListEntry):
    """One file of a shipped corpus: what it holds, where that comes from, and its digest."""

    path: Filled
    kind: Filled  # items, templates, pairs, debiasing prompts, dialogue, target words, words, counts, licence
    source: Filled  # where in the corpus's source, such as "Table 5"
    sha256: Filled


class Corpus(ListEntry):
    """A shipped corpus as its `corpus.toml` describes it."""

    name: Filled
    title: Filled
    source: Filled
    year: int
    licence: Filled
    notes: list[Filled]
    bibtex: Filled
    files: list[CorpusFile] = Field(alias="file")


# --- what is shipped -----------------------------------------------------------------------------


def list_corpora() -> list[Corpus]:
    """Load every shipped corpus, by name; each file is held against its digest."""
    return [load_corpus(name) for name in _shipped_names()]


def load_corpus(name: str) -> Corpus:
    """Load one shipped corpus; a file that differs from its digest is an error."""
    corpus = _read_manifest(name)
    for file in corpus.files:
        _read_shipped(corpus, file)
    return corpus


def _shipped_names() -> list[str]:
    return sorted(path.parent.name for path in data_dir("corpora").glob("*/corpus.toml"))


def _read_manifest(name: str) -> Corpus:
    names = _shipped_names()
    if name not in names:
        listed = ", ".join(names)
        raise CorpusError(f"There is no corpus {shown(name)}.{nearest(name, names)} Shipped: {listed}.")
    where = f"{SHIPPED}{name}/corpus.toml"
    return entry_of(Corpus, LISTS.toml(data_dir("corpora") / name / "corpus.toml", where), where)


def _read_shipped(corpus: Corpus, file: CorpusFile) -> bytes:
    where = f"{SHIPPED}{corpus.name}/{file.path}"
    content = _read_bytes(data_dir("corpora") / corpus.name / file.path, where)
    sha256 = hashlib.sha256(content).hexdigest()
    if sha256 != file.sha256:
        raise CorpusError(
            f"{where} has changed: its sha256 is {sha256}, expected {file.sha256}."
            " Restore it, or give the path of your own copy."
        )
    return content


def source_digest(source: str | Path) -> str:
    """Compute the SHA-256 of what a source holds, shipped or the user's: for the manifest."""
    if str(source).startswith(SHIPPED):
        name, _, path = str(source).removeprefix(SHIPPED).partition("/")
        return next((file.sha256 for file in _read_manifest(name).files if file.path == path), "")
    name, sheet = split_sheet(str(source))
    sha256 = hashlib.sha256(_read_bytes(expanded(name), name)).hexdigest()
    return sha256 if sheet is None else hashlib.sha256(f"{sha256}#{sheet}".encode()).hexdigest()


@contextlib.contextmanager
def unlimited_fields() -> Iterator[None]:
    """Let csv read fields of over 131,072 characters, which it else refuses; this is of the whole process."""
    before = csv.field_size_limit(_ANY_FIELD_LENGTH)
    try:
        yield
    finally:
        csv.field_size_limit(before)


# --- from sources to text ------------------------------------------------------------------------


def read_source(source: str | Path, kind: str, formats: tuple[str, ...]) -> tuple[str, str, str]:
    """Read a source: how messages name it, its suffix in lower case, and its text."""
    source = str(source)
    where = one_line(source)
    suffix = Path(source).suffix.lower()
    if source.startswith(SHIPPED):
        name, _, path = source.removeprefix(SHIPPED).partition("/")
        corpus = _read_manifest(name)
        files = {file.path: file for file in corpus.files}
        if path not in files:
            raise CorpusError(
                f"There is no file {shown(path)} in {SHIPPED}{name}.{nearest(path, files)}"
                f" It has {', '.join(files)}."
            )
        if files[path].kind != kind:
            raise CorpusError(f"{source} has {files[path].kind}, not {kind}.")
        content = _read_shipped(corpus, files[path])
    elif suffix in formats:
        content = _read_bytes(expanded(source), where)
    else:
        raise CorpusError(
            f"{where}: a file of {kind} ends in {' or '.join(formats)}, not in {shown(suffix)}."
        )
    return where, suffix, LISTS.decoded(content, where)


def read_text(path: str) -> str:
    """Read a user's text file without the white space around it; an empty one is an error."""
    where = one_line(path)
    text = LISTS.decoded(_read_bytes(expanded(path), where), where).strip()
    if not text:
        raise CorpusError(f"{where} is empty. Write the text into it.")
    return text


def _read_bytes(path: Path, where: str) -> bytes:
    named = "\0" not in str(path) and not path.is_absolute()
    if named and not os.path.lexists(path) and (data_dir("corpora") / path).is_file():
        raise CorpusError(f"There is no file {where}. Did you mean '{SHIPPED}{where}'?")
    return LISTS.content(path, where)
