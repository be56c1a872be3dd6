"""Reads and checks items, templates, debiasing prompts, dialogues, target words and words (see `sources`)."""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field

from biaskit.corpora.rows import SourceLayout, read_list
from biaskit.corpora.sources import (
    LISTS,
    Filled,
    Label,
    ListEntry,
    Text,
    check_label,
    entry_of,
    read_source,
    shown,
)
from biaskit.errors import CorpusError
from biaskit.records import DebiasingPrompt, Dialogue, Item, TargetWord, TargetWordSet, Template, Turn

DEFAULT_SLOT = "[JOB]"
ENGLISH = "corpus:brown/word-counts.csv"

Forms = Literal["both", "as-listed"]
BIAS_TYPES: Final = ("explicit", "implicit")

_DECIMAL_COMMA = re.compile(r"0,[0-9]+|1,0{1,2}")
"""Numbers whose comma can only be a decimal one; that of 1,000 may part thousands."""
_BRACKETED = re.compile(r"\[[^\[\]]+\]")


@dataclass(frozen=True, slots=True)
class Templates:
    """Templates in file order and the slot that an item replaces in them."""

    slot: str
    templates: tuple[Template, ...]


# --- what entries hold ---------------------------------------------------------------------------


def _share(value: object) -> float | None:
    if value == "":
        return None
    text = str(value).replace(",", ".") if _DECIMAL_COMMA.fullmatch(str(value)) else str(value)
    with contextlib.suppress(ValueError):
        if 0 <= (share := float(text)) <= 1:
            return share
    raise ValueError(
        f"{shown(value)} is not a number from 0 to 1. Write 0.982 for 98.2 %, or leave it empty."
    )


class _Item(ListEntry):
    item: Label
    group: Label
    share: Annotated[float | None, BeforeValidator(_share)] = None
    article: Literal["a", "an"] | None = None
    year: Annotated[int, Field(strict=False, ge=1000, le=9999)] | None = None
    rating: Annotated[float | None, BeforeValidator(_share)] = None


class _Template(ListEntry):
    bias_type: Literal["explicit", "implicit"]
    question: Text = ""
    opening: Text = ""
    target_words: Label | None = None
    frame: Label | None = None


class _DebiasingPrompt(ListEntry):
    text: Filled
    level: Label | None = None


class _Turn(ListEntry):
    question: Filled
    answer: Filled


class _Opening(ListEntry):
    opening_line: Filled


class _Word(ListEntry):
    word: Filled


class _Category(ListEntry):
    word: Filled
    category: Label


class _WordGroup(ListEntry):
    name: Label
    reason: Filled
    words: Annotated[list[Filled], Field(min_length=1)]


class _Set(ListEntry):
    forms: Forms = "both"
    groups: dict[str, Annotated[list[Filled], Field(min_length=1)]] = Field(default_factory=dict)


def _template_of_line(line: str) -> dict[str, object]:
    question, tab, opening = line.partition("\t")
    return {"bias_type": "implicit" if tab else "explicit", "question": question, "opening": opening}


_ITEMS = SourceLayout("items", "item", _Item, from_line=lambda line: {"item": line, "group": "all"})
_TEMPLATES = SourceLayout("templates", "template", _Template, ("slot",), _template_of_line)
_DEBIASING_PROMPTS = SourceLayout(
    "debiasing prompts", "debiasing_prompt", _DebiasingPrompt, (), lambda line: {"text": line}
)
_DIALOGUE = SourceLayout("dialogue", "turn", _Turn, ("opening_line",))
_WORDS = SourceLayout("words", "word", _Word, from_line=lambda line: {"word": line.strip()})
_WORD_GROUPS = SourceLayout("word groups", "group", _WordGroup, ("left_in",))
_CATEGORIES = SourceLayout("categories", "word", _Category, csv=True)


# --- the loaders ---------------------------------------------------------------------------------


def load_items(source: str | Path) -> tuple[Item, ...]:
    """Read jobs, fields, anything that fills a slot, in file order.

    .csv with the columns item, group and, where wanted, share, article, year (others are ignored);
    .txt with one item a line, all in the group "all"; .toml with `[[item]]` tables of the same keys.
    """
    first: dict[str, int] = {}  # lower-cased name → place in the list
    items: list[Item] = []
    for where, entry in read_list(source, _ITEMS).entries:
        place = first.setdefault(entry.item.lower(), len(items))
        if place < len(items):
            name = items[place].name
            again = "is listed twice" if name == entry.item else f"differs only in case from {shown(name)}"
            raise CorpusError(
                f"{where}: item {shown(entry.item)} {again} (first: item {place + 1})."
                " Tables join on lower-cased names: remove or rename one."
            )
        items.append(Item(entry.item, entry.group, entry.share, entry.article, entry.year, entry.rating))
    return tuple(items)


def load_templates(source: str | Path) -> Templates:
    """Read templates, with ids that count within a bias type, and their slot.

    .toml with `slot` and `[[template]]` tables of bias_type, question, opening, target words and frame;
    .csv with these columns; .txt with a template a line, where a tab parts the question from the opening of
    an implicit one. The slot of .csv and .txt is [JOB]. Without a question the opening is the whole prompt.
    """
    table = read_list(source, _TEMPLATES)
    slot = table.top.get("slot", DEFAULT_SLOT)
    if not isinstance(slot, str) or not _BRACKETED.fullmatch(slot):
        raise CorpusError(
            f'{table.where}: slot {shown(slot)} is not a name in square brackets, like "{DEFAULT_SLOT}".'
        )
    count = dict.fromkeys(BIAS_TYPES, 0)
    templates = []
    for where, entry in table.entries:
        count[entry.bias_type] += 1
        template = Template(count[entry.bias_type], **entry.model_dump())
        _check_template(template, slot, f"{where} ({entry.bias_type} {template.id})")
        templates.append(template)
    return Templates(slot, tuple(templates))


def load_debiasing_prompts(source: str | Path) -> tuple[DebiasingPrompt, ...]:
    """Read debiasing prompts, ids from 1 on: .toml (`[[debiasing_prompt]]`), .csv (text, level) or .txt."""
    entries = read_list(source, _DEBIASING_PROMPTS).entries
    return tuple(DebiasingPrompt(n, entry.text, entry.level) for n, (_, entry) in enumerate(entries, 1))


def load_dialogue(source: str | Path) -> Dialogue:
    """Read an opening line and the turns that precede the question: .toml with `[[turn]]` tables."""
    table = read_list(source, _DIALOGUE)
    opening = entry_of(_Opening, table.top, table.where)
    turns = (Turn(entry.question, entry.answer) for _, entry in table.entries)
    return Dialogue(opening.opening_line, tuple(turns))


def load_target_word_sets(source: str | Path) -> dict[str, TargetWordSet]:
    """Read target word sets by name: .toml of `[sets.NAME]` tables, or `[groups]` called like its file."""
    where, _, text = read_source(source, "target words", (".toml",))
    top, name = LISTS.parsed_toml(text, where), Path(source).stem
    if "sets" not in top and top:
        return {name: _target_word_set(name, top, where)}
    if len(top) > 1:
        raise CorpusError(f"{where} has [sets] beside groups or forms. Put every set under [sets.NAME].")
    tables = top.get("sets", {})
    if not isinstance(tables, dict) or not tables:
        raise CorpusError(
            f"{where} has no target words. Write a [groups] table, or [sets.NAME.groups] for several sets."
        )
    return {name: _target_word_set(name, tables[name], f"{where}, set {shown(name)}") for name in tables}


def load_word_list(source: str | Path) -> tuple[str, ...]:
    """Read words unchanged, in file order: .txt with one a line, .csv with the column word, or .toml."""
    return tuple(entry.word for _, entry in read_list(source, _WORDS).entries)


def load_categories(source: str | Path) -> dict[str, str]:
    """Map word to category: .csv (word, category) or .toml (`[[word]]`); a word has one category."""
    category_of: dict[str, str] = {}
    for where, entry in read_list(source, _CATEGORIES).entries:
        if (other := category_of.setdefault(entry.word, entry.category)) != entry.category:
            raise CorpusError(
                f"{where}: {entry.word!r} has two categories, {other!r} and {entry.category!r}."
            )
    return category_of


@cache
def gender_words() -> Mapping[str, str]:
    """Load each gender word in letters a-z → its group in `corpora/gender-words`, which has the reasons."""
    group_of: dict[str, str] = {}
    for where, entry in read_list("corpus:gender-words/words.toml", _WORD_GROUPS).entries:
        for word in entry.words:
            if (other := group_of.setdefault(word, entry.name)) != entry.name:
                raise CorpusError(f"{where}: {word!r} is in two groups: {other!r}, {entry.name!r}.")
    return MappingProxyType(group_of)


def load_word_counts(source: str | Path) -> dict[str, int]:
    """Map word to how often it occurs, in file order: .csv with the header word,count."""
    where, _, text = read_source(source, "counts", (".csv",))
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        if next(reader, None) != ["word", "count"]:
            raise CorpusError(f"{where} does not begin with the header word,count. Write it.")
        return {word: int(count) for word, count in reader}
    except (csv.Error, ValueError) as error:
        raise CorpusError(f"{where}, line {reader.line_num} is not a word and its count: {error}.") from None


def english_counts(source: Literal["table", "nltk"] = "table") -> Mapping[str, int]:
    """Count the Brown corpus's lower-cased words, with punctuation inside (methods/words#hybrid-prior)."""
    if source == "table":
        return load_word_counts(ENGLISH)
    from zipfile import BadZipFile

    from nltk.corpus import brown

    try:
        return dict(Counter(word.lower() for word in brown.words()))
    except LookupError:
        why = "is not installed"
    except (OSError, BadZipFile) as error:
        why = f"cannot be read: {error}"
    raise CorpusError(
        f"english_prior = nltk: NLTK's Brown corpus {why}."
        " Run python -m nltk.downloader brown, or set english_prior = table."
    ) from None


def render_forms(target_word_set: TargetWordSet) -> tuple[TargetWord, ...]:
    """List the surface forms that are scored, each once, by group (methods/prompts#target-word-sets)."""
    forms: dict[TargetWord, None] = {}  # an ordered set
    for group, texts in target_word_set.groups:
        for text in texts:
            both = (text[:1].upper() + text[1:], text.lower())
            for form in both if target_word_set.forms == "both" else (text,):
                forms[TargetWord(group, form)] = None
    return tuple(forms)


def _check_template(template: Template, slot: str, where: str) -> None:
    if not template.question and not template.opening:
        raise CorpusError(f"{where} has neither a question nor an opening. Write one.")
    if template.bias_type == "implicit" and not template.opening:
        raise CorpusError(f"{where} has no opening. Write the beginning of its answer, or make it explicit.")
    if template.bias_type == "explicit" and template.opening:
        raise CorpusError(
            f"{where} has an opening, which only implicit templates have. Remove it, or make it implicit."
        )
    for part, text in (("question", template.question), ("opening", template.opening)):
        if slot in text or not text:
            continue
        if other := _BRACKETED.search(text):
            raise CorpusError(
                f"{where}: the {part} has {shown(other[0])}, but the slot is {slot}."
                f' Write {slot}, or set slot = "{other[0]}" at the top of a .toml file.'
            )
        if part == "question" or not template.question:
            part = "question" if template.question else "opening, without a question before it,"
            raise CorpusError(f"{where}: the {part} lacks the slot {slot}. Write it where the item goes.")


def _target_word_set(name: str, values: object, where: str) -> TargetWordSet:
    check_label(name, f"{where}: set name")
    entry = entry_of(_Set, values, where)
    if len(entry.groups) < 2:
        raise CorpusError(f"{where} needs at least two groups, each with a list of texts, under groups.")
    groups = [(check_label(group, f"{where}: group"), tuple(texts)) for group, texts in entry.groups.items()]
    result = TargetWordSet(name, tuple(groups), entry.forms)
    group_of: dict[str, str] = {}
    for target_word in render_forms(result):
        if (other := group_of.setdefault(target_word.text, target_word.group)) != target_word.group:
            raise CorpusError(
                f"{where}: {shown(target_word.text)} is in two groups, {shown(other)} and"
                f" {shown(target_word.group)}. Remove it from one (forms = {result.forms})."
            )
    return result
