"""Reads and checks items, templates, instructions, dialogues and expressions.

A source is `corpus:NAME/FILE`, a shipped file whose digest is checked, or the path of a user's own
file. Whatever is wrong with one is a `CorpusError` of one line: what, where, and what to do.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import hashlib
import io
import math
import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from biaskit.errors import CorpusError, nearest
from biaskit.files import data_dir
from biaskit.records import BiasType, Dialogue, Expression, ExpressionSet, Instruction, Item, Template, Turn

SHIPPED = "corpus:"
"""What a source begins with when it names a shipped file; everything else is a path."""

DEFAULT_SLOT = "[JOB]"

Forms = Literal["both", "as-listed"]

_CORPUS_TEXTS = ("name", "title", "source", "licence", "bibtex")
_FILE_TEXTS = ("path", "kind", "source", "sha256")
_BRACKETED = re.compile(r"\[[^\[\]]+\]")
_UNPRINTABLE = ("Cc", "Cs", "Zl", "Zp")  # Unicode: control, lone surrogate, line and paragraph separator
_RUN_BY_SPREADSHEETS = "=+-@\t\r"
_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_ANY_FIELD_LENGTH = 2**31 - 1  # the largest that every platform's C long holds


@dataclass(frozen=True, slots=True)
class CorpusFile:
    """One file of a shipped corpus: what it holds, where that comes from, and its digest."""

    path: str
    kind: str  # items, templates, instructions, dialogue, expressions
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
class Templates:
    """Templates in file order and the slot that an item replaces in them."""

    slot: str
    templates: tuple[Template, ...]


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
            f"There is no corpus {_shown(name)}.{nearest(name, names)} Shipped: {', '.join(names)}."
        )
    where = f"{SHIPPED}{name}/corpus.toml"
    content = _read_bytes(data_dir("corpora") / name / "corpus.toml", where)
    row = _Row(where, _parse_toml(_decode(content, where), where))
    _check_keys(row, (*_CORPUS_TEXTS, "year", "notes", "file"))
    year = _year(row)
    if year is None:
        raise CorpusError(f"{where}: year is missing. Write the year of the source.")
    return Corpus(
        **{key: _text(row, key, required=True) for key in _CORPUS_TEXTS},
        year=year,
        notes=_texts(row, "notes"),
        files=tuple(_corpus_file(_Row(f"{where}, file {n}", entry)) for n, entry in _entries(row, "file")),
    )


def _corpus_file(row: _Row) -> CorpusFile:
    _check_keys(row, _FILE_TEXTS)
    return CorpusFile(**{key: _text(row, key, required=True) for key in _FILE_TEXTS})


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


# --- the five loaders ----------------------------------------------------------------------------


def load_items(source: str | Path) -> tuple[Item, ...]:
    """Jobs, fields, anything that fills a slot, in file order.

    .csv with the columns item, group and, where wanted, share, article, year (others are ignored);
    .txt with one item a line, all in the group "all"; .toml with `[[item]]` tables of the same keys.
    """
    first: dict[str, tuple[str, str]] = {}  # lower-cased name → the name, where it stands
    items = []
    for row in _read_rows(source, _ITEMS).rows:
        item = _item(row)
        name, where = first.setdefault(item.name.lower(), (item.name, row.where))
        if where != row.where:
            again = "stands there twice" if name == item.name else f"differs only in case from {_shown(name)}"
            raise CorpusError(
                f"{row.where}: item {_shown(item.name)} {again} (first: {where.rpartition(', ')[2]})."
                " Tables join on lower-cased names: remove or rename one."
            )
        items.append(item)
    return tuple(items)


def load_templates(source: str | Path) -> Templates:
    """Templates with their ids, which count within a bias type, and their slot.

    .toml with `slot` and `[[template]]` tables of bias_type, question, opening, expressions; .csv with
    these columns; .txt with a template a line, where a tab parts the question from the opening of an
    implicit one. The slot of .csv and .txt is [JOB].
    """
    table = _read_rows(source, _TEMPLATES)
    slot = _slot(table.top)
    count: dict[BiasType, int] = dict.fromkeys(get_args(BiasType), 0)
    templates = []
    for row in table.rows:
        bias_type = _bias_type(row)
        count[bias_type] += 1
        here = _Row(f"{row.where} ({bias_type} {count[bias_type]})", row.values)
        templates.append(_template(here, bias_type, count[bias_type], slot))
    return Templates(slot, tuple(templates))


def load_instructions(source: str | Path) -> tuple[Instruction, ...]:
    """Debiasing instructions, ids from 1 on: .toml (`[[instruction]]`), .csv (text, level) or .txt."""
    return tuple(
        Instruction(
            id=number,
            text=_text(row, "text", required=True),
            level=_label(row, "level") if row.values.get("level") else None,
        )
        for number, row in enumerate(_read_rows(source, _INSTRUCTIONS).rows, start=1)
    )


def load_dialogue(source: str | Path) -> Dialogue:
    """An opening line and the turns that precede the question: .toml with `[[turn]]` tables."""
    table = _read_rows(source, _DIALOGUE)
    return Dialogue(
        opening_line=_text(table.top, "opening_line", required=True),
        turns=tuple(
            Turn(_text(row, "question", required=True), _text(row, "answer", required=True))
            for row in table.rows
        ),
    )


def load_expression_sets(source: str | Path) -> dict[str, ExpressionSet]:
    """Expression sets by name, in file order.

    .toml with `[sets.NAME]` tables, or with one `[groups]` table: a single set, named after the file.
    """
    where, _, text = _read(source, "expressions", (".toml",))
    top = _Row(where, _parse_toml(text, where))
    _check_keys(top, ("sets", "groups", "forms"))
    if "sets" in top.values and len(top.values) > 1:
        raise CorpusError(f"{where} has [sets] beside groups or forms. Put every set under [sets.NAME].")
    if "groups" in top.values:
        return {Path(source).stem: _expression_set(Path(source).stem, top)}
    tables = top.values.get("sets", {})
    if not isinstance(tables, dict) or not tables:
        raise CorpusError(
            f"{where} holds no expressions. Write a [groups] table, or [sets.NAME.groups] for several sets."
        )
    return {
        name: _expression_set(name, _Row(f"{where}, set {_shown(name)}", tables[name])) for name in tables
    }


def source_digest(source: str | Path) -> str:
    """SHA-256 of what a source holds, shipped or the user's: for the manifest."""
    if str(source).startswith(SHIPPED):
        name, _, path = str(source).removeprefix(SHIPPED).partition("/")
        return next((file.sha256 for file in _read_manifest(name).files if file.path == path), "")
    return hashlib.sha256(_read_bytes(Path(source).expanduser(), str(source))).hexdigest()


def render_forms(expression_set: ExpressionSet) -> tuple[Expression, ...]:
    """The surface forms that are scored, each once, group by group (METHODS §1.0).

    `both`: as listed with a capital first letter, then all in lower case; `as-listed`: nothing else.
    """
    forms: dict[Expression, None] = {}  # an ordered set
    for group, listed in expression_set.groups:
        for text in listed:
            both = (text[:1].upper() + text[1:], text.lower())
            for form in both if expression_set.forms == "both" else (text,):
                forms[Expression(group, form)] = None
    return tuple(forms)


def check_label(text: str, what: str) -> str:
    """`text` if it can stand in a public table: a name that no spreadsheet takes for a formula.

    `what` opens the message, such as "The model label" or "jobs.csv, line 3: item".
    """
    if not text.strip():
        raise CorpusError(f"{what} is empty. Give it a name.")
    if text[0] in _RUN_BY_SPREADSHEETS:
        raise CorpusError(
            f"{what} {_shown(text)} begins with {text[0]!r}, which a spreadsheet would run. Rename it."
        )
    if text != text.strip():
        raise CorpusError(f"{what} {_shown(text)} begins or ends with white space. Remove it.")
    if any(character in _LINE_ENDS for character in text):
        raise CorpusError(f"{what} {_shown(text)} holds a line break. Remove it.")
    return text


# --- from rows to records ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Row:
    """The values of one line or TOML table, and where it stands."""

    where: str
    values: Mapping[str, object]


def _item(row: _Row) -> Item:
    return Item(
        name=_label(row, "item"),
        group=_label(row, "group"),
        labour_female_share=_share(row),
        article=_article(row),
        year=_year(row),
    )


def _article(row: _Row) -> str | None:
    article = _text(row, "article")
    if article not in ("", "a", "an"):
        raise CorpusError(
            f"{row.where}: article {_shown(article)} is neither a nor an. Leave it empty to go by spelling."
        )
    return article or None


def _share(row: _Row) -> float | None:
    value = row.values.get("share", "")
    if value == "":
        return None
    share = _number(value)
    if share is not None and 0 <= share <= 1:
        return share
    percent = _number(value.rstrip("% ")) if isinstance(value, str) else share
    if percent is not None and 0 <= percent <= 100:
        hint = f"It looks like a percentage: write {percent / 100:.6g}."
    else:
        hint = "Write 0.982 for 98.2 %, or leave it empty."
    raise CorpusError(f"{row.where}: share {_shown(value)} is not a number from 0 to 1. {hint}")


def _number(value: object) -> float | None:
    """`value` as a finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _year(row: _Row) -> int | None:
    value = row.values.get("year", "")
    if value == "":
        return None
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{4}", str(value)):
        raise CorpusError(f"{row.where}: year {_shown(value)} is not a year of four digits, like 2024.")
    return int(str(value))


def _bias_type(row: _Row) -> BiasType:
    value = _text(row, "bias_type", required=True)
    known: tuple[BiasType, ...] = get_args(BiasType)
    for bias_type in known:
        if value == bias_type:
            return bias_type
    raise CorpusError(
        f"{row.where}: unknown bias_type {_shown(value)}.{nearest(value, known)} Known: {', '.join(known)}."
    )


def _slot(top: _Row) -> str:
    slot = _text(top, "slot") or DEFAULT_SLOT
    if not _BRACKETED.fullmatch(slot):
        raise CorpusError(
            f'{top.where}: slot {_shown(slot)} is not a name in square brackets, like "{DEFAULT_SLOT}".'
        )
    return slot


def _template(row: _Row, bias_type: BiasType, number: int, slot: str) -> Template:
    template = Template(
        id=number,
        bias_type=bias_type,
        question=_text(row, "question", required=True),
        opening=_text(row, "opening"),
        expressions=_label(row, "expressions") if row.values.get("expressions") else None,
    )
    _check_template(template, slot, row.where)
    return template


def _check_template(template: Template, slot: str, where: str) -> None:
    if template.bias_type == "implicit" and not template.opening:
        raise CorpusError(f"{where} has no opening. Write the beginning of its answer, or make it explicit.")
    if template.bias_type == "explicit" and template.opening:
        raise CorpusError(
            f"{where} has an opening, which only implicit templates have. Remove it, or make it implicit."
        )
    for part, text in (("question", template.question), ("opening", template.opening)):
        if slot in text:
            continue
        if other := _BRACKETED.search(text):
            raise CorpusError(
                f"{where}: the {part} holds {_shown(other[0])}, but the slot is {slot}."
                f' Write {slot}, or set slot = "{other[0]}" at the top of a .toml file.'
            )
        if part == "question":
            raise CorpusError(
                f"{where}: the question does not hold the slot {slot}. Write it where the item goes."
            )


def _expression_set(name: str, row: _Row) -> ExpressionSet:
    check_label(name, f"{row.where}: set name")
    if not isinstance(row.values, dict):
        raise CorpusError(
            f"{row.where} is not a table. Write [sets.NAME.groups] with a list of texts for each group."
        )
    _check_keys(row, ("forms", "groups"))
    groups = row.values.get("groups", {})
    if not isinstance(groups, dict) or len(groups) < 2:
        raise CorpusError(f"{row.where} needs at least two groups, each with a list of texts, under groups.")
    table = _Row(row.where, groups)
    result = ExpressionSet(
        name,
        tuple((check_label(group, f"{row.where}: group"), _texts(table, group)) for group in groups),
        _forms(row),
    )
    group_of: dict[str, str] = {}
    for expression in render_forms(result):
        other = group_of.setdefault(expression.text, expression.group)
        if other != expression.group:
            raise CorpusError(
                f"{row.where}: {_shown(expression.text)} stands in two groups, {_shown(other)} and"
                f" {_shown(expression.group)}. Remove it from one (forms = {result.forms})."
            )
    return result


def _forms(row: _Row) -> Forms:
    value = _text(row, "forms") or "both"
    known: tuple[Forms, ...] = get_args(Forms)
    for forms in known:
        if value == forms:
            return forms
    raise CorpusError(
        f"{row.where}: unknown forms {_shown(value)}.{nearest(value, known)} Known: {', '.join(known)}."
    )


def _texts(row: _Row, key: str) -> tuple[str, ...]:
    """A list of texts, not empty."""
    values = row.values.get(key)
    if not isinstance(values, list) or not values:
        raise CorpusError(
            f'{row.where}: {_shown(key)} is empty or not a list. Write a list of texts, like ["He", "Him"].'
        )
    return tuple(_text(_Row(row.where, {key: value}), key, required=True) for value in values)


def _label(row: _Row, key: str) -> str:
    return check_label(_string(row, key), f"{row.where}: {key}")


def _text(row: _Row, key: str, *, required: bool = False) -> str:
    value = _string(row, key)
    if required and not value.strip():
        raise CorpusError(f"{row.where}: {key} is missing or empty. Write one.")
    # A prompt that ends in a space would move the word boundary from the expression to the prompt.
    if value != value.strip():
        raise CorpusError(f"{row.where}: {key} begins or ends with white space: {_shown(value)}. Remove it.")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in value if character not in "\n\t"):
        raise CorpusError(f"{row.where}: {key} holds a control character: {_shown(value)}. Remove it.")
    return value


def _string(row: _Row, key: str) -> str:
    value = row.values.get(key, "")
    if not isinstance(value, str):
        raise CorpusError(f"{row.where}: {key} is {_shown(value)}, which is not a text. Put it in quotes.")
    return value


def _shown(value: object) -> str:
    """A foreign value inside a message: quoted, escaped, one line, and not too long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:70]}...{text[-1]}"


# --- from files to rows --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Layout:
    """What a file of one kind holds: the columns of a .csv are the keys of its TOML tables."""

    kind: str
    table: str
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    top: tuple[str, ...] = ()  # keys beside the tables, TOML only
    from_line: Callable[[str], dict[str, object]] | None = None  # None: read from .toml alone


@dataclass(frozen=True, slots=True)
class _Table:
    top: _Row
    rows: tuple[_Row, ...]


def _template_of_line(line: str) -> dict[str, object]:
    question, tab, opening = line.partition("\t")
    return {"bias_type": "implicit" if tab else "explicit", "question": question, "opening": opening}


_ITEMS = _Layout(
    kind="items",
    table="item",
    required=("item", "group"),
    optional=("share", "article", "year"),
    from_line=lambda line: {"item": line, "group": "all"},
)
_TEMPLATES = _Layout(
    kind="templates",
    table="template",
    required=("bias_type", "question"),
    optional=("opening", "expressions"),
    top=("slot",),
    from_line=_template_of_line,
)
_INSTRUCTIONS = _Layout(
    kind="instructions",
    table="instruction",
    required=("text",),
    optional=("level",),
    from_line=lambda line: {"text": line},
)
_DIALOGUE = _Layout(kind="dialogue", table="turn", required=("question", "answer"), top=("opening_line",))


def _read_rows(source: str | Path, layout: _Layout) -> _Table:
    formats = (".csv", ".txt", ".toml") if layout.from_line else (".toml",)
    where, suffix, text = _read(source, layout.kind, formats)
    top = _Row(where, {})
    if suffix == ".toml":
        top = _Row(where, _parse_toml(text, where))
        _check_keys(top, (*layout.top, layout.table))
        rows = list(_toml_rows(top, layout))
    elif suffix == ".txt" and layout.from_line:
        rows = list(_line_rows(text, where, layout.from_line))
    else:
        rows = list(_csv_rows(text, where, layout))
    if not rows:
        raise CorpusError(f"{where} holds no {layout.kind}. Write at least one {layout.table}.")
    return _Table(top, tuple(rows))


def _toml_rows(top: _Row, layout: _Layout) -> Iterator[_Row]:
    for number, entry in _entries(top, layout.table):
        row = _Row(f"{top.where}, {layout.table} {number}", entry)
        _check_keys(row, (*layout.required, *layout.optional))
        yield row


def _csv_rows(text: str, where: str, layout: _Layout) -> Iterator[_Row]:
    with _unlimited_fields():
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        line = 1  # where the record to come begins
        try:
            header = next(reader, [])
            _check_header(header, where, layout)
            line = reader.line_num + 1
            for values in reader:
                if values and len(values) != len(header):
                    raise CorpusError(
                        f"{where}, line {line}: fields here {len(values)}, in the header {len(header)}."
                        " Put a text that holds a comma in double quotes."
                    )
                if values:
                    yield _Row(f"{where}, line {line}", dict(zip(header, values, strict=True)))
                line = reader.line_num + 1
        except csv.Error as error:
            raise CorpusError(f"{where}, line {line} is not valid CSV: {error}. Check its quotes.") from None


def _check_header(header: list[str], where: str, layout: _Layout) -> None:
    for column in layout.required:
        if column not in header:
            semicolons = len(header) == 1 and ";" in header[0]
            raise CorpusError(
                f"{where} has no column {column!r}; it has"
                f" {', '.join(map(_shown, header[:12])) or 'no header'}."
                f"{' Part the columns with commas.' if semicolons else nearest(column, header)}"
            )
    for column in (*layout.required, *layout.optional):
        if header.count(column) > 1:
            raise CorpusError(f"{where} has the column {column!r} twice. Remove or rename one.")


def _line_rows(text: str, where: str, from_line: Callable[[str], dict[str, object]]) -> Iterator[_Row]:
    # Not splitlines(): U+2028 and its like are characters of a text, not ends of a line.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield _Row(f"{where}, line {number}", from_line(line.removesuffix("\r")))


def _entries(row: _Row, table: str) -> Iterator[tuple[int, Mapping[str, object]]]:
    """The `[[table]]` entries of a TOML document, counted from 1."""
    entries = row.values.get(table, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise CorpusError(f"{row.where}: write each {table} as a table under [[{table}]].")
    yield from enumerate(entries, start=1)


def _check_keys(row: _Row, known: Iterable[str]) -> None:
    known = tuple(known)
    for key in row.values:
        if key not in known:
            raise CorpusError(
                f"{row.where}: unknown key {_shown(key)}.{nearest(key, known)} Known: {', '.join(known)}."
            )


@contextlib.contextmanager
def _unlimited_fields() -> Iterator[None]:
    """Csv refuses fields of over 131,072 characters unless told otherwise, for the whole process."""
    before = csv.field_size_limit(_ANY_FIELD_LENGTH)
    try:
        yield
    finally:
        csv.field_size_limit(before)


# --- from sources to text ------------------------------------------------------------------------


def _read(source: str | Path, kind: str, formats: tuple[str, ...]) -> tuple[str, str, str]:
    """How messages name the source, its suffix in lower case, and its text."""
    source = str(source)
    where = source if source.isprintable() else repr(source)
    suffix = Path(source).suffix.lower()
    if source.startswith(SHIPPED):
        content = _read_shipped(*_find_shipped(source, kind))
    elif suffix in formats:
        content = _read_bytes(Path(source), where)
    else:
        raise CorpusError(
            f"{where}: a file of {kind} ends in {' or '.join(formats)}, not in {_shown(suffix)}."
        )
    return where, suffix, _decode(content, where)


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
        f"There is no file {_shown(path)} in {SHIPPED}{name}.{nearest(path, paths)}"
        f" It has {', '.join(paths)}."
    )


def _read_bytes(path: Path, where: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        shipped = (data_dir("corpora") / path).is_file() and not path.is_absolute()
        hint = f"Did you mean '{SHIPPED}{where}'?" if shipped else "Check the path."
        raise CorpusError(f"There is no file {where}. {hint}") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = error.strerror if isinstance(error, OSError) else error
        raise CorpusError(f"{where} cannot be read: {reason}. Give the path of a readable file.") from None


def _decode(content: bytes, where: str) -> str:
    """UTF-8 with or without a byte order mark; never a guess."""
    start = len(codecs.BOM_UTF8) if content.startswith(codecs.BOM_UTF8) else 0
    try:
        return content[start:].decode("utf-8")
    except UnicodeDecodeError as error:
        position = start + error.start
        line = content.count(b"\n", 0, position) + 1
        raise CorpusError(
            f"{where}, line {line} is not UTF-8: byte 0x{content[position]:02x} at position {position}."
            " Save the file as UTF-8."
        ) from None


def _parse_toml(text: str, where: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: also integers of too many digits
        reason = str(error).replace("\n", " ").rstrip(".")
        raise CorpusError(f"{where} is not valid TOML: {reason}. Correct it there.") from None
