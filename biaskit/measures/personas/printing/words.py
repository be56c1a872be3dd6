"""Tables of the words that mark each gender, and a user's own groups; they follow no paper's table.

Of genders as on the page: beyond gender words and names, of lists that are longer than chance
(methods/words#word-list-null).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

from biaskit.common.wording import count, listed, people, short
from biaskit.measurement import words as words_of_kind
from biaskit.measures.personas.findings.words import BEYOND, LIST, leading, surely_longer
from biaskit.measures.personas.printing.document import ORIGINS, WHO, group_tables
from biaskit.measures.personas.printing.papers import MOST_LETTERS
from biaskit.records import ALL
from biaskit.report.render.cells import number, p_value
from biaskit.report.render.document import Heading, PaperTable, TitledTable
from biaskit.runs.store import slug
from biaskit.tables.query import Row, Tables, apart_from, defined, distinct, grouped, where

_SAYS: Mapping[str, Any] = words_of_kind("personas")["papers"]["marked_words"]
NAME = "marked-words"
MOST_IN_A_CELL = 500  # letters: TeX cannot read a line of a megabyte
MOST_ROWS = 40  # words of one gender in the texts of one model, the strongest first
_KEY = itemgetter(*LIST)


def word_tables(tables: Tables) -> Iterator[PaperTable]:
    """Make a table for each model that has a list longer than chance, from the public tables."""
    calibrated = where(tables.get("word_lists", ()), method="calibrated")
    beyond = where(tables.get("marked_words", ()), is_name=False, is_gender_word=False)
    of_list = grouped(beyond, *LIST)
    models = distinct(calibrated, "model")
    for model in models:
        lists = _lists(where(calibrated, model=model))
        words_of: dict[str, list[Row]] = {}
        for word_list in lists:
            if words := of_list.get(_KEY(word_list)):
                words_of.setdefault(word_list["gender"], []).extend(words)
        for words in words_of.values():  # the strongest first
            words.sort(key=lambda row: (-row["z"], row["word"], row["occupation"]))
        if words_of:
            name = f"{NAME}-{slug(model)}" if len(models) > 1 else NAME
            yield PaperTable(name, _table(model, lists, words_of))


def group_papers(words: Sequence[Row], lists: Sequence[Row]) -> Iterator[PaperTable]:
    """Make the printed table of groups for a manuscript; the caption names their column."""
    for printed in group_tables(words, lists):
        cells = [tuple(map(partial(short, longest=MOST_IN_A_CELL), row)) for row in printed.rows]
        title = short(printed.title, 200)
        yield PaperTable("words-of-groups", replace(printed, title=title, rows=tuple(cells)))


def _lists(lists: Sequence[Row]) -> list[Row]:
    """Choose a model's lists that are longer than chance when judged together.

    They are of texts without a gender in the prompt, or, where there are none, of those with one. A gender
    that has no list against a single other one is taken against all of them.
    """
    lists = defined(lists, *BEYOND)
    lists = leading(where(lists, origin="inferred") or lists)
    pairs = apart_from(lists, against=ALL)
    in_pairs = distinct(pairs, "gender")
    others = [row for row in lists if row["gender"] not in in_pairs]
    return [*surely_longer(pairs), *surely_longer(others)]


def _table(model: str, lists: Sequence[Row], words_of: dict[str, list[Row]]) -> TitledTable:
    several = len(distinct(lists, "occupation")) > 1
    lead = [head for head in _SAYS["lead"] if several or head != "occupation"]
    notes = [_SAYS["note"]]
    for gender, words in words_of.items():
        first_list, *other_lists = where(lists, gender=gender)
        against = "all others" if first_list["against"] == ALL else people(first_list["against"])
        strongest = _SAYS["strongest"].format(MOST_ROWS) if len(words) > MOST_ROWS else ""
        said = {"against": against, "strongest": strongest, "words": count(len(words), "word")}
        ending = _SAYS["of_one_list"].format(number(first_list["null_p95_beyond"], 1))
        if other_lists:
            ending = _SAYS["of_lists"].format(1 + len(other_lists))
        notes.append(_SAYS["of_gender"].format(who=people(gender).capitalize(), **said) + ending)
    who, origin = listed(list(map(people, words_of))), ORIGINS[lists[0]["origin"]]
    title = _SAYS["title"].format(who=who, model=short(model), origin=origin)
    blank = [Heading("")] * (len(lead) + 3)
    over = (*blank, Heading("own texts", 2), Heading("others' texts", 2))
    heads = (*lead, *_SAYS["heads"])
    list_of = dict(zip(map(_KEY, lists), lists, strict=True))
    rows = []
    for words in words_of.values():
        for row in words[:MOST_ROWS]:
            rows.append(_cells(row, list_of[_KEY(row)], several=several))
    header = (over, tuple(map(Heading, heads)))
    return TitledTable(title, header, tuple(rows), note=" ".join(notes), n_text=len(lead))


def _cells(row: Row, word_list: Row, *, several: bool) -> tuple[str, ...]:
    who = WHO[row["gender"]]
    lead = [who, short(row["occupation"])] if several else [who]
    score = (number(row["z"], 2), p_value(row["q_value"]), row["count_target"])
    own = (row["documents_target"], word_list["n_target"])
    others = (row["documents_unmarked"], word_list["n_unmarked"])
    return (*lead, short(row["word"], MOST_LETTERS), *map(str, (*score, *own, *others)))
