"""A table of the words that mark each gender, for a manuscript; it follows no paper's table.

As on the page: beyond gender words and names, of lists that are longer than chance
(methods/words#word-list-null).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.common.wording import count, listed, people, short
from biaskit.measures.personas.findings.words import BEYOND, surely_longer
from biaskit.measures.personas.printing.document import ORIGINS, WHO
from biaskit.measures.personas.printing.papers import MOST_LETTERS
from biaskit.report.render.cells import number, p_value
from biaskit.report.render.document import Heading, PaperTable, TitledTable
from biaskit.runs.store import slug
from biaskit.tables.query import Row, Tables, defined, distinct, first, grouped, where

NAME = "marked-words"
MOST_ROWS = 40  # words of one gender in the texts of one model, the strongest first
_LIST = ("model", "occupation", "origin", "gender", "against", "method")


def word_tables(tables: Tables) -> Iterator[PaperTable]:
    """Make a table for each model that has a list longer than chance, from the public tables."""
    calibrated = where(tables.get("word_lists", ()), method="calibrated")
    beyond = where(tables.get("marked_words", ()), is_name=False, is_gender_word=False)
    of_list = grouped(beyond, *_LIST)
    models = distinct(calibrated, "model")
    for model in models:
        lists = _lists(where(calibrated, model=model))
        words_of: dict[str, list[Row]] = {}
        for word_list in lists:
            if words := of_list.get(tuple(word_list[name] for name in _LIST)):
                words_of.setdefault(word_list["gender"], []).extend(words)
        for words in words_of.values():  # the strongest first
            words.sort(key=lambda row: (-row["z"], row["word"], row["occupation"]))
        if words_of:
            name = f"{NAME}-{slug(model)}" if len(models) > 1 else NAME
            yield PaperTable(name, _table(model, lists, words_of))


def _lists(lists: Sequence[Row]) -> list[Row]:
    """Choose a model's lists that are longer than chance when judged together.

    They are of texts without a gender in the prompt, or, where there are none, of those with one. A gender
    that has no list against a single other one is taken against all of them.
    """
    lists = defined(lists, *BEYOND)
    lists = where(lists, origin="inferred") or lists
    pairs = [row for row in lists if row["against"] != "all"]
    in_pairs = distinct(pairs, "gender")
    others = [row for row in lists if row["gender"] not in in_pairs]
    return [row for family in (pairs, others) for row in surely_longer(family)]


def _table(model: str, lists: Sequence[Row], words_of: dict[str, list[Row]]) -> TitledTable:
    several = len(distinct(lists, "occupation")) > 1
    lead = ["words of", *(["occupation"] if several else []), "word"]
    who = listed([people(gender) for gender in words_of])
    notes = [
        "Calibrated Marked Words: z, the weighted log-odds ratio of a word in units of its standard"
        " deviation; a word is marked at z > 1.96. q: adjusted over the words of its list"
        " (Benjamini-Hochberg). Only lists longer than those with shuffled genders, judged together (false"
        " discovery rate 5 %)."
    ]
    for gender, words in words_of.items():
        first_list, *other_lists = where(lists, gender=gender)
        against = "all others" if first_list["against"] == "all" else people(first_list["against"])
        strongest = f"the strongest {MOST_ROWS} of " if len(words) > MOST_ROWS else ""
        most = number(first_list["null_p95_beyond"], 1)
        chance = f"; 95 % of lists with shuffled genders have at most {most}."
        notes.append(
            f"{people(gender).capitalize()} against {against}: {strongest}{count(len(words), 'word')}"
            + (f" in {1 + len(other_lists)} lists." if other_lists else chance)
        )
    origin = ORIGINS[lists[0]["origin"]]
    title = f"Words that mark {who}, without gendered words and names: {short(model)}, {origin}"
    blank = [Heading("")] * (len(lead) + 3)
    over = (*blank, Heading("own texts", 2), Heading("others' texts", 2))
    heads = (*lead, "z", "q", "uses", "with it", "of", "with it", "of")
    rows = []
    for words in words_of.values():
        rows += [_cells(row, lists, several=several) for row in words[:MOST_ROWS]]
    header = (over, tuple(map(Heading, heads)))
    return TitledTable(title, header, tuple(rows), note=" ".join(notes), n_text=len(lead))


def _cells(row: Row, lists: Sequence[Row], *, several: bool) -> tuple[str, ...]:
    of = first(lists, **{name: row[name] for name in _LIST}) or {}
    who = str(WHO.get(row["gender"], row["gender"]))
    lead = [who, short(row["occupation"])] if several else [who]
    score = (number(row["z"], 2), p_value(row["q_value"]), row["count_target"])
    own = (row["documents_target"], of["n_target"])
    others = (row["documents_unmarked"], of["n_unmarked"])
    return (*lead, short(row["word"], MOST_LETTERS), *map(str, (*score, *own, *others)))
