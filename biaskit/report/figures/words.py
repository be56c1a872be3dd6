"""The words that mark women and men, beyond gender words and names, a panel for each list.

Only words of lists that are longer than chance (docs/methods.md#word-list-null): the others are noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from biaskit.report.figures import scales
from biaskit.report.figures.figure import Figure
from biaskit.report.figures.lettering import cut, people
from biaskit.report.figures.panels import Band, Dots, Panel, Point
from biaskit.report.figures.sheet import Sheet
from biaskit.report.figures.style import GRID
from biaskit.report.figures.view import Plot, View, finished, told
from biaskit.report.findings.marked_words import BEYOND, surely_longer
from biaskit.tables.query import Row, defined, distinct, grouped, where
from biaskit.wording import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_PANELS = 6
MOST_WORDS = {1: 12, 2: 12}
"""Words of a panel by the number of panels; of more panels fewer."""
FEW_WORDS = 6
MOST_MODELS = 4
_LIST = ("model", "occupation", "origin", "gender", "against", "method")


def words(view: View) -> Iterator[Figure]:
    """A figure for each of the first models whose lists are longer than chance."""
    lists = [row for row in view.rows("word_lists", method="calibrated") if row["against"] != "all"]
    marked = grouped(view.rows("marked_words", is_name=False, is_gender_word=False), *_LIST)
    several = len(view.models) > 1
    for i, model in enumerate(view.models[:MOST_MODELS], 1):
        own = defined(where(lists, model=model), *BEYOND)
        # What texts say unasked comes first; where every text names a gender on request, there is only that.
        own = where(own, origin="associated") or own
        found = _strongest(marked, surely_longer(own))
        if found:
            genders = " and ".join(people(g) for g in distinct([of for of, _ in found], "gender"))
            title = f"Words that mark {genders}{f' in the texts of {cut(model)}' if several else ''}"
            name = f"{view.prefix}words{f'-{i}' if several else ''}"
            yield finished(name, title, _words(view, model, found, len(own)))


def _strongest(
    marked: Mapping[tuple[Any, ...], Sequence[Row]], lists: Sequence[Row]
) -> list[tuple[Row, list[Row]]]:
    """The lists with the strongest words, each gender with as many as another, and their words by z."""
    found = [
        (one, sorted(marked[key], key=lambda r: (-r["z"], r["word"])))
        for one in lists
        if (key := tuple(one[name] for name in _LIST)) in marked
    ]
    found.sort(key=lambda pair: (-pair[1][0]["z"], str(pair[0]["occupation"])))
    genders = distinct([one for one, _ in found], "gender")
    each = max(1, MOST_PANELS // max(len(genders), 1))
    kept = [pair for gender in genders for pair in [p for p in found if p[0]["gender"] == gender][:each]]
    # An occupation's lists stand side by side.
    occupations = distinct([one for one, _ in kept], "occupation")
    kept.sort(key=lambda pair: (occupations.index(pair[0]["occupation"]), genders.index(pair[0]["gender"])))
    return kept[:MOST_PANELS]


def _words(view: View, model: str, found: Sequence[tuple[Row, list[Row]]], n_lists: int) -> Plot:
    most = MOST_WORDS.get(len(found), FEW_WORDS)
    zs = [row["z"] for _, rows in found for row in rows]
    several = len({one["occupation"] for one, _ in found}) > 1
    panels, said = [], []
    for one, every in found:
        rows = every[:most]
        who = people(one["gender"])
        occupation = cut(one["occupation"]) if several else ""
        labels = [str(row["word"]) for row in rows]
        beside = [_texts(row, one) for row in rows]
        tips = [
            f"{cut(row['word'])} ({who}{f', {occupation}' if occupation else ''}): z {row['z']:.1f}, "
            f"{count(row['count_target'], 'use')} in {text}"
            for row, text in zip(rows, beside, strict=True)
        ]
        points = [Point(row["z"], tip=tip) for row, tip in zip(rows, tips, strict=True)]
        panels.append(
            Panel(
                labels,
                scales.amounts(zs, "z", whole=True),
                [Dots(view.marks[model], points)],
                title=f"{who}, {occupation}" if occupation else who,
                beside=beside,
                pitch=0.19,
                least=0.7,
                draw=partial(_stems, [row["z"] for row in rows]),
            )
        )
        said.append(f"{who}{f', {occupation}' if occupation else ''}: {', '.join(map(cut, labels[:5]))}.")
    caption = (
        f"The strongest words beyond gender words and names; n = {len(found)} of {count(n_lists, 'list')}, "
        "of those that hold more words than chance gives. z: how much more a gender's texts use a word "
        "(calibrated log-odds in units of their standard deviation, no interval; at 1.96 a word is marked). "
        "Right: in how many of that gender's texts it stands. Tables: marked_words, word_lists."
    )
    return Plot([Band(panels)], caption, f"Words by z for {cut(model)}. {told(said, 'marked_words')}")


def _stems(zs: Sequence[float], _: Sheet, axes: Axes) -> None:
    axes.hlines(range(len(zs)), 0, zs, color=GRID, linewidth=1, zorder=1)


def _texts(row: Row, of: Row) -> str:
    """'41 of 300 texts'."""
    n = f" of {of['n_target']:,}" if of["n_target"] is not None else ""
    return f"{row['documents_target']:,}{n} texts"
