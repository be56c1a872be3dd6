"""Items, templates, instructions, dialogues, expressions and words, read and checked.

A source is `corpus:NAME/FILE`, a shipped file whose digest is checked, or the path of a user's own
file. Whatever is wrong with one is a `CorpusError` of one line: what, where, and what to do.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal, get_args

from biaskit.corpora.rows import SourceLayout, read_source_rows, stream_source_rows
from biaskit.corpora.sources import (
    SourceRow,
    check_keys,
    check_label,
    label_of,
    one_of,
    parse_toml,
    read_source,
    shown,
    text_of,
    texts_of,
    year_of,
)
from biaskit.errors import CorpusError
from biaskit.records import BiasType, Dialogue, Expression, ExpressionSet, Instruction, Item, Template, Turn

DEFAULT_SLOT = "[JOB]"
ENGLISH = "corpus:brown/word-counts.csv"

Forms = Literal["both", "as-listed"]
FORMS: tuple[Forms, ...] = get_args(Forms)
BIAS_TYPES: tuple[BiasType, ...] = get_args(BiasType)

_GET_BROWN = "Run python -m nltk.downloader brown, or set english_prior = table."
_DECIMAL_COMMA = re.compile(r"[0-9]+,[0-9]+")
_GROUPED = re.compile(r"[1-9][0-9]{0,2}(?:,[0-9]{3})+")
"""1,234 is 1.234 with a decimal comma, and 1234 where it parts thousands; 0,234 can only be the first."""
_BRACKETED = re.compile(r"\[[^\[\]]+\]")


@dataclass(frozen=True, slots=True)
class Templates:
    """Templates in file order and the slot that an item replaces in them."""

    slot: str
    templates: tuple[Template, ...]


def _template_of_line(line: str) -> dict[str, object]:
    question, tab, opening = line.partition("\t")
    return {"bias_type": "implicit" if tab else "explicit", "question": question, "opening": opening}


_ITEMS = SourceLayout(
    kind="items",
    table="item",
    required=("item", "group"),
    optional=("share", "article", "year"),
    from_line=lambda line: {"item": line, "group": "all"},
)
_TEMPLATES = SourceLayout(
    kind="templates",
    table="template",
    required=("bias_type", "question"),
    optional=("opening", "expressions", "frame"),
    top=("slot",),
    from_line=_template_of_line,
)
_INSTRUCTIONS = SourceLayout(
    kind="instructions",
    table="instruction",
    required=("text",),
    optional=("level",),
    from_line=lambda line: {"text": line},
)
_DIALOGUE = SourceLayout(
    kind="dialogue", table="turn", required=("question", "answer"), top=("opening_line",)
)
_WORDS = SourceLayout(
    kind="words", table="word", required=("word",), from_line=lambda line: {"word": line.strip()}
)
_WORD_GROUPS = SourceLayout(
    kind="word groups", table="group", required=("name", "reason", "words"), top=("left_in",)
)
_CATEGORIES = SourceLayout(kind="categories", table="word", required=("word", "category"), csv=True)


# --- the loaders ---------------------------------------------------------------------------------


def load_items(source: str | Path) -> tuple[Item, ...]:
    """Jobs, fields, anything that fills a slot, in file order.

    .csv with the columns item, group and, where wanted, share, article, year (others are ignored);
    .txt with one item a line, all in the group "all"; .toml with `[[item]]` tables of the same keys.
    """
    first: dict[str, int] = {}  # lower-cased name → place
    items: list[Item] = []
    for row in stream_source_rows(source, _ITEMS)[1]:
        item = _item(row)
        place = first.setdefault(item.name.lower(), len(items))
        if place < len(items):
            raise _named_twice(source, row, item.name, items[place].name, place)
        items.append(item)
    return tuple(items)


def _named_twice(source: str | Path, row: SourceRow, name: str, before: str, place: int) -> CorpusError:
    earlier = next(islice(stream_source_rows(source, _ITEMS)[1], place, None)).where
    again = "stands there twice" if name == before else f"differs only in case from {shown(before)}"
    return CorpusError(
        f"{row.where}: item {shown(name)} {again} (first: {earlier.rpartition(', ')[2]})."
        " Tables join on lower-cased names: remove or rename one."
    )


def load_templates(source: str | Path) -> Templates:
    """Templates with their ids, which count within a bias type, and their slot.

    .toml with `slot` and `[[template]]` tables of bias_type, question, opening, expressions and frame;
    .csv with these columns; .txt with a template a line, where a tab parts the question from the opening of
    an implicit one. The slot of .csv and .txt is [JOB].
    """
    top, rows = stream_source_rows(source, _TEMPLATES)
    slot = _slot(top)
    count = dict.fromkeys(BIAS_TYPES, 0)
    templates = []
    for row in rows:
        bias_type = one_of(row, "bias_type", BIAS_TYPES)
        count[bias_type] += 1
        here = SourceRow(f"{row.where} ({bias_type} {count[bias_type]})", row.values)
        templates.append(_template(here, bias_type, count[bias_type], slot))
    return Templates(slot, tuple(templates))


def load_instructions(source: str | Path) -> tuple[Instruction, ...]:
    """Debiasing instructions, ids from 1 on: .toml (`[[instruction]]`), .csv (text, level) or .txt."""
    return tuple(
        Instruction(
            id=number,
            text=text_of(row, "text", required=True),
            level=label_of(row, "level") if row.values.get("level") else None,
        )
        for number, row in enumerate(read_source_rows(source, _INSTRUCTIONS).rows, start=1)
    )


def load_dialogue(source: str | Path) -> Dialogue:
    """An opening line and the turns that precede the question: .toml with `[[turn]]` tables."""
    table = read_source_rows(source, _DIALOGUE)
    return Dialogue(
        opening_line=text_of(table.top, "opening_line", required=True),
        turns=tuple(
            Turn(text_of(row, "question", required=True), text_of(row, "answer", required=True))
            for row in table.rows
        ),
    )


def load_expression_sets(source: str | Path) -> dict[str, ExpressionSet]:
    """Expression sets by name, in file order.

    .toml with `[sets.NAME]` tables, or with one `[groups]` table: a single set, named after the file.
    """
    where, _, text = read_source(source, "expressions", (".toml",))
    top = SourceRow(where, parse_toml(text, where))
    check_keys(top, ("sets", "groups", "forms"))
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
        name: _expression_set(name, SourceRow(f"{where}, set {shown(name)}", tables[name])) for name in tables
    }


def load_word_list(source: str | Path) -> tuple[str, ...]:
    """Words as they are written, in file order: .txt with one a line, .csv with the column word, or .toml."""
    return tuple(text_of(row, "word", required=True) for row in read_source_rows(source, _WORDS).rows)


def load_categories(source: str | Path) -> dict[str, str]:
    """Word → category: .csv (word, category) or .toml (`[[word]]`); a word has one category."""
    found: dict[str, str] = {}
    for row in read_source_rows(source, _CATEGORIES).rows:
        word, category = text_of(row, "word", required=True), label_of(row, "category")
        if found.setdefault(word, category) != category:
            raise CorpusError(f"{row.where}: {word!r} has two categories, {found[word]!r} and {category!r}.")
    return found


def load_word_groups(source: str | Path) -> dict[str, str]:
    """Word → name of its group, in file order: .toml with `[[group]]` tables; a word stands in one group."""
    found: dict[str, str] = {}
    for row in read_source_rows(source, _WORD_GROUPS).rows:
        name, _ = label_of(row, "name"), text_of(row, "reason", required=True)
        for word in texts_of(row, "words"):
            if found.setdefault(word, name) != name:
                raise CorpusError(f"{row.where}: {word!r} stands in two groups: {found[word]!r}, {name!r}.")
    return found


def load_word_counts(source: str | Path) -> dict[str, int]:
    """Word → how often it occurs, in file order: .csv with the header word,count."""
    where, _, text = read_source(source, "counts", (".csv",))
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        if next(reader, None) != ["word", "count"]:
            raise CorpusError(f"{where} does not begin with the header word,count. Write it.")
        return {word: int(count) for word, count in reader}
    except (csv.Error, ValueError) as error:
        raise CorpusError(f"{where}, line {reader.line_num} is not a word and its count: {error}.") from None


def english_counts(source: Literal["table", "nltk"] = "table") -> Mapping[str, int]:
    """Lower-cased words of the Brown corpus → how often they occur (docs/methods.md#hybrid-prior).

    Punctuation stays inside the words, as in "it's". `table`: the shipped table; `nltk`: the corpus itself
    where NLTK has it, else an error of one line. A test holds the two equal.
    """
    return load_word_counts(ENGLISH) if source == "table" else _english_counts_of_nltk()


def _english_counts_of_nltk() -> dict[str, int]:
    from zipfile import BadZipFile

    from nltk.corpus import brown

    try:
        return dict(Counter(word.lower() for word in brown.words()))
    except LookupError:
        why = "is not installed"
    except (OSError, BadZipFile) as error:
        why = f"cannot be read: {error}"
    raise CorpusError(f"english_prior = nltk: NLTK's Brown corpus {why}. {_GET_BROWN}") from None


def render_forms(expression_set: ExpressionSet) -> tuple[Expression, ...]:
    """The surface forms that are scored, each once, group by group (docs/methods.md#expression-sets).

    `both`: as listed with a capital first letter, then all in lower case; `as-listed`: nothing else.
    """
    forms: dict[Expression, None] = {}  # an ordered set
    for group, listed in expression_set.groups:
        for text in listed:
            both = (text[:1].upper() + text[1:], text.lower())
            for form in both if expression_set.forms == "both" else (text,):
                forms[Expression(group, form)] = None
    return tuple(forms)


# --- from rows to records ------------------------------------------------------------------------


def _item(row: SourceRow) -> Item:
    name, group, share = label_of(row, "item"), label_of(row, "group"), _share(row)
    article = text_of(row, "article")
    if article not in ("", "a", "an"):
        raise CorpusError(
            f"{row.where}: article {shown(article)} is neither a nor an. Leave it empty to go by spelling."
        )
    return Item(name, group, share, article or None, year_of(row))


def _share(row: SourceRow) -> float | None:
    value = row.values.get("share", "")
    if value == "":
        return None
    share = _number(value)
    if share is not None and 0 <= share <= 1:
        return share
    percent = _number(value.rstrip("% ")) if isinstance(value, str) else share
    if isinstance(value, str) and _GROUPED.fullmatch(value.rstrip("% ")):
        hint = "With a comma that is one number or a thousand times as much: write a point, or neither."
    elif percent is not None and 0 <= percent <= 100:
        hint = f"It looks like a percentage: write {percent / 100:.6g}."
    else:
        hint = "Write 0.982 for 98.2 %, or leave it empty."
    raise CorpusError(f"{row.where}: share {shown(value)} is not a number from 0 to 1. {hint}")


def _number(value: object) -> float | None:
    """`value` as a finite number, with a point or a comma before its decimals, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and _DECIMAL_COMMA.fullmatch(value) and not _GROUPED.fullmatch(value):
        value = value.replace(",", ".")
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _slot(top: SourceRow) -> str:
    slot = text_of(top, "slot") or DEFAULT_SLOT
    if not _BRACKETED.fullmatch(slot):
        raise CorpusError(
            f'{top.where}: slot {shown(slot)} is not a name in square brackets, like "{DEFAULT_SLOT}".'
        )
    return slot


def _template(row: SourceRow, bias_type: BiasType, number: int, slot: str) -> Template:
    question, opening = text_of(row, "question", required=True), text_of(row, "opening")
    expressions = label_of(row, "expressions") if row.values.get("expressions") else None
    frame = label_of(row, "frame") if row.values.get("frame") else None
    template = Template(number, bias_type, question, opening, expressions, frame)
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
                f"{where}: the {part} holds {shown(other[0])}, but the slot is {slot}."
                f' Write {slot}, or set slot = "{other[0]}" at the top of a .toml file.'
            )
        if part == "question":
            raise CorpusError(
                f"{where}: the question does not hold the slot {slot}. Write it where the item goes."
            )


def _expression_set(name: str, row: SourceRow) -> ExpressionSet:
    check_label(name, f"{row.where}: set name")
    if not isinstance(row.values, dict):
        raise CorpusError(
            f"{row.where} is not a table. Write [sets.NAME.groups] with a list of texts for each group."
        )
    check_keys(row, ("forms", "groups"))
    groups = row.values.get("groups", {})
    if not isinstance(groups, dict) or len(groups) < 2:
        raise CorpusError(f"{row.where} needs at least two groups, each with a list of texts, under groups.")
    table = SourceRow(row.where, groups)
    result = ExpressionSet(
        name,
        tuple((check_label(group, f"{row.where}: group"), texts_of(table, group)) for group in groups),
        one_of(row, "forms", FORMS, "both"),
    )
    group_of: dict[str, str] = {}
    for expression in render_forms(result):
        other = group_of.setdefault(expression.text, expression.group)
        if other != expression.group:
            raise CorpusError(
                f"{row.where}: {shown(expression.text)} stands in two groups, {shown(other)} and"
                f" {shown(expression.group)}. Remove it from one (forms = {result.forms})."
            )
    return result
