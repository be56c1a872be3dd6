"""Draw the words that mark women and men in lists longer than chance (methods/words#word-list-null)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from biaskit.common.wording import count
from biaskit.measures.personas.findings.words import BEYOND, surely_longer
from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.plot import Axis, Band, Bar, Panel, Plot
from biaskit.report.figures.style import cut, look_of, people
from biaskit.report.figures.view import View
from biaskit.tables.query import Row, defined, distinct, grouped, where

MOST_PANELS = 6
MOST_WORDS, FEW_WORDS = 12, 6  # words of a panel where there are one or two, and where there are more
MOST_MODELS = 4
_LIST = ("model", "occupation", "origin", "gender", "against", "method")


def words(view: View) -> Iterator[Figure]:
    """Draw a figure for each of the first models whose lists are longer than chance."""
    lists = [row for row in view.rows("word_lists", method="calibrated") if row["against"] != "all"]
    marked = grouped(view.rows("marked_words", is_name=False, is_gender_word=False), *_LIST)
    several = len(view.models) > 1
    for i, model in enumerate(view.models[:MOST_MODELS], 1):
        of_model = defined(where(lists, model=model), *BEYOND)
        # Texts that name a gender unasked come first; there may be only texts that were asked to.
        of_model = where(of_model, origin="associated") or of_model
        if strongest := _strongest(marked, surely_longer(of_model)):
            genders = " and ".join(people(g) for g in distinct([row for row, _ in strongest], "gender"))
            title = f"Words that mark {genders}{f' in the texts of {cut(model)}' if several else ''}"
            name = f"words{f'-{i}' if several else ''}"
            yield view.figure(name, title, _words(strongest, len(of_model)))


def _strongest(
    marked: Mapping[tuple[Any, ...], Sequence[Row]], lists: Sequence[Row]
) -> list[tuple[Row, list[Row]]]:
    """Pick the lists with the strongest words, as many of each gender, with their words by z."""
    pairs = []
    for row in lists:
        words_of_list = marked.get(tuple(row[name] for name in _LIST))
        if words_of_list:
            pairs.append((row, sorted(words_of_list, key=lambda word: (-word["z"], word["word"]))))
    pairs.sort(key=lambda pair: (-pair[1][0]["z"], str(pair[0]["occupation"])))
    genders = distinct([row for row, _ in pairs], "gender")
    each = max(1, MOST_PANELS // max(len(genders), 1))
    chosen: list[tuple[Row, list[Row]]] = []
    for gender in genders:
        of_gender = [pair for pair in pairs if pair[0]["gender"] == gender]
        chosen += of_gender[:each]
    # An occupation's lists are side by side.
    occupations = distinct([row for row, _ in chosen], "occupation")
    chosen.sort(key=lambda pair: (occupations.index(pair[0]["occupation"]), genders.index(pair[0]["gender"])))
    return chosen[:MOST_PANELS]


def _words(lists: Sequence[tuple[Row, list[Row]]], n_lists: int) -> Plot:
    most = MOST_WORDS if len(lists) < 3 else FEW_WORDS
    axis = Axis("z", 0, 1.06 * max(row["z"] for _, rows in lists for row in rows), whole=True)
    several = len({row["occupation"] for row, _ in lists}) > 1
    genders = distinct([row for row, _ in lists], "gender")
    panels = []
    for of_list, every in lists:
        rows = every[:most]
        who = people(of_list["gender"])
        title = f"{who}, {cut(of_list['occupation'])}" if several else who
        n_texts = f" of {of_list['n_target']:,}" if of_list["n_target"] is not None else ""
        beside = [f"{row['documents_target']:,}{n_texts} texts" for row in rows]
        bars = [Bar([(row["z"], *look_of(of_list["gender"], genders))]) for row in rows]
        labels = [str(row["word"]) for row in rows]
        panels.append(Panel(labels, axis, (), bars, title, beside))
    caption = (
        f"The strongest words, without gendered words and names; n = {len(lists)} of "
        f"{count(n_lists, 'list')}, of those longer than expected by chance. z: how much more a gender's "
        "texts use a word (calibrated log-odds in units of their standard deviation, no interval; at 1.96 a "
        "word is marked). Right: how many of that gender's texts use it. Tables: marked_words, word_lists."
    )
    return Plot([Band(panels)], caption)
