"""The words that mark women and men, beyond gender words and names, one panel for each gender.

Only words of lists that are longer than chance (docs/methods.md#word-list-null): the others are noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from biaskit.report.figures import dots
from biaskit.report.figures.figure import Figure
from biaskit.report.figures.lettering import cut, people, shorten, text_width
from biaskit.report.figures.sheet import COLUMN, MARGIN, Sheet, marker_style
from biaskit.report.figures.style import GRID
from biaskit.report.figures.view import Drawing, View, both_widths, told
from biaskit.report.findings.marked_words import BEYOND, surely_longer
from biaskit.tables.query import Row, defined, distinct, first, where
from biaskit.wording import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME = "words"
MOST_WORDS = 12
MOST_MODELS = 4
_PITCH = 0.19
_LIST = ("model", "occupation", "origin", "gender", "against", "method")


def words(view: View) -> Iterator[Figure]:
    """A figure for each of the first models whose lists are longer than chance."""
    lists = [row for row in view.rows("word_lists", method="calibrated") if row["against"] != "all"]
    for model in view.models[:MOST_MODELS]:
        own = defined(where(lists, model=model), *BEYOND)
        # What texts say unasked comes first; where every text names a gender on request, there is only that.
        own = where(own, origin="associated") or own
        of_genders = {gender: _words(view, surely_longer(own), gender) for gender in distinct(own, "gender")}
        found = {gender: rows for gender, rows in of_genders.items() if rows}
        if found:
            title = f"Words that mark {' and '.join(people(gender) for gender in found)}"
            title += f" in the texts of {cut(model)}" if len(view.models) > 1 else ""
            name = f"{view.prefix}{NAME}" + (
                f"-{view.models.index(model) + 1}" if len(view.models) > 1 else ""
            )
            yield both_widths(name, title, partial(_drawing, view, model, found, own))


def _words(view: View, lists: Sequence[Row], gender: str) -> list[Row]:
    """The words of a gender's lists, each once where it marks most, the strongest first."""
    found: dict[str, Row] = {}
    plain = {"is_name": False, "is_gender_word": False}
    for one in where(lists, gender=gender):
        for row in where(view.rows("marked_words", **plain), **{name: one[name] for name in _LIST}):
            if row["word"] not in found or row["z"] > found[row["word"]]["z"]:
                found[row["word"]] = row
    return sorted(found.values(), key=lambda row: (-row["z"], row["word"]))[:MOST_WORDS]


def _drawing(
    view: View, model: str, found: dict[str, list[Row]], lists: Sequence[Row], width: float
) -> Drawing:
    stacked = width <= COLUMN
    rows = max(map(len, found.values()))
    block = rows * _PITCH + 0.72
    several = len(distinct(lists, "occupation")) > 1
    sheet = Sheet(block * (len(found) if stacked else 1) - 0.1, width=width)
    most = max(row["z"] for own in found.values() for row in own) * 1.08
    room = width if stacked else width / len(found)
    labels = [_name(row, several=several) for own in found.values() for row in own]
    said = []
    for i, (gender, own) in enumerate(found.items()):
        x, top = (0.0, i * block + 0.24) if stacked else (i * room, 0.24)
        names = [_name(row, several=several) for row in own]
        left = dots.label_width(labels, 0.42 * room)
        beside = [_texts(row, lists) for row in own]
        sheet.title(x + left + 0.1, top - 0.12, people(gender), room - left)
        for k, name in enumerate(names):
            sheet.text(x + left, top + (k + 0.5) * _PITCH, shorten(name, left - MARGIN), ha="right")
        right = max(1.06, *(text_width(text) + 0.12 for text in beside))
        axes = sheet.axes(x + left + 0.1, top, room - left - right - 0.1, len(own) * _PITCH)
        _panel(sheet, axes, view, own, beside, most)
        for k, text in enumerate(beside):
            sheet.text(x + room - right + 0.08, top + (k + 0.5) * _PITCH, text)
        said.append(f"{people(gender)}: {', '.join(cut(name) for name in names[:5])}.")
    caption = (
        f"The strongest words beyond gender words and names, from n = {count(len(lists), 'list')}, as far as "
        "a list holds more words than chance gives. z: how much more a gender's texts use a word (calibrated "
        "log-odds in units of their standard deviation, no interval; at 1.96 a word is marked). Right: in "
        "how many of that gender's texts it stands. Tables: marked_words, word_lists."
    )
    return Drawing(sheet, caption, f"Words by z for {cut(model)}. {told(said, 'marked_words')}")


def _name(row: Row, *, several: bool) -> str:
    return f"{row['word']} ({row['occupation']})" if several else str(row["word"])


def _panel(
    sheet: Sheet, axes: Axes, view: View, own: Sequence[Row], beside: Sequence[str], most: float
) -> None:
    dots.rows_axis(axes, len(own))
    axes.set_xlim(0, most)
    axes.grid(axis="x", color=GRID, linewidth=0.5)
    axes.set_xlabel("z", labelpad=1)
    mark = view.marks[str(own[0]["model"])]
    zs = [row["z"] for row in own]
    axes.hlines(range(len(own)), 0, zs, color=GRID, linewidth=1, zorder=1)
    (marks,) = axes.plot(zs, range(len(own)), zorder=3, clip_on=False, **marker_style(mark, size=4))
    tips = [
        f"{row['word']} ({row['occupation']}): z {row['z']:.1f}, {count(row['count_target'], 'use')} in "
        f"{text}"
        for row, text in zip(own, beside, strict=True)
    ]
    sheet.tip(marks, tips)


def _texts(row: Row, lists: Sequence[Row]) -> str:
    """'41 of 300 texts'."""
    of = first(lists, **{name: row[name] for name in _LIST})
    n = f" of {of['n_target']:,}" if of is not None and of["n_target"] is not None else ""
    return f"{row['documents_target']:,}{n} texts"
