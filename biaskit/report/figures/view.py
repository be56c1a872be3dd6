"""The rows that may stand in one figure: one study, one prompt form, in the order of the study."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeVar

from biaskit.report.content import Content
from biaskit.report.figures.figure import Figure
from biaskit.report.figures.layout import lay_out
from biaskit.report.figures.lettering import BOX, BOX_NOTE, clean, cut, shorten
from biaskit.report.figures.panels import Band, undefined
from biaskit.report.figures.sheet import COLUMN, WIDTH, Entry
from biaskit.report.figures.style import Mark, marks_of
from biaskit.runs.claims import GASP
from biaskit.runs.collection import Part
from biaskit.runs.store import slug
from biaskit.tables.query import Row, where

PER_PAGE = 5
"""Models that stand side by side in one dot plot; more models take more figures."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class View:
    """A part of a content as far as one prompt form goes (docs/methods.md#prompt-forms)."""

    part: Part
    content: Content
    prefix: str  # before the names of figures
    form: str  # "" where every model has the same, or none
    models: tuple[str, ...]
    marks: Mapping[str, Mark]

    def rows(self, table: str, **wanted: object) -> list[Row]:
        """Rows of a table of the part for these models (a model has one form) and the wanted values."""
        rows = where(self.part.tables.get(table, ()), **wanted)
        return [r for r in rows if r.get("model", r.get("model_a", "")) in (*self.models, "all", "")]

    def entries(self, models: Sequence[str]) -> list[Entry]:
        """The legend of some models; a model that is alone needs none."""
        return (
            []
            if len(self.models) < 2
            else [Entry(shorten(model, 2.1), self.marks[model]) for model in models]
        )

    def place(self, figure: str) -> str:
        """The figure of GAS(P) that this one is, for a caption; empty where the study is not the paper's."""
        return self.part.claim(GASP).place(f"GAS(P), {figure}")

    @property
    def heading(self) -> str:
        """Study and prompt form, for a title."""
        form = f", prompt form {clean(self.form)}" if self.form else ""
        return f"{cut(self.part.study)}{form}"

    def charts(
        self,
        rows: Sequence[Row],
        name: str,
        title: str,
        draw: Draw,
        *,
        size: int = PER_PAGE,
        column: str = "model",
        more: str = "",
    ) -> Iterator[Figure]:
        """A figure of the models that have a row, or several of about equal numbers of them; else none.

        `column` holds a row's model, `more` ends the title.
        """
        present = {row[column] for row in rows}
        models = [model for model in self.models if model in present]
        start = 1
        for number, place, some in portions(models, size):
            plot = draw(self, [row for row in rows if row[column] in some], some)
            if place:
                end = start + len(some) - 1
                told = f"{plot.caption} Models {start} to {end} of {len(models)}."
                plot, start = replace(plot, caption=told), end + 1
            yield self.finished(name + number, title, plot, more + place)

    def finished(self, name: str, title: str, plot: Plot, more: str = "") -> Figure:
        """A plot with its name, and `more` after its heading."""
        return finished(f"{self.prefix}{name}", f"{title} ({self.heading}){more}", plot)


@dataclass(frozen=True, slots=True)
class Plot:
    """What a chart hands back, before it has a name and a width."""

    bands: Sequence[Band]
    caption: str  # n, interval, unit and tables
    alt: str
    legend: Sequence[Entry] = ()


Draw = Callable[[View, Sequence[Row], Sequence[str]], Plot]
"""Plots the rows of some models."""


def views(content: Content, engine: str) -> Iterator[View]:
    """Each part of an engine, split by prompt form; the first one has no prefix."""
    marks = all_marks(content)
    parts = [part for part in content.parts if part.engine == engine]
    taken: set[str] = set()
    for part in parts:
        forms = list(dict.fromkeys(model.prompt_form for model in part.models if model.prompt_form)) or [""]
        base = f"{slug(part.study)}-" if len(parts) > 1 else ""
        for form in forms:
            wanted = f"{base}{slug(form)}-" if len(forms) > 1 else base
            free = (f"{wanted}{n}-" if n > 1 else wanted for n in count(1))
            prefix = next(one for one in free if one not in taken)
            taken.add(prefix)
            models = [
                m.label for m in part.models if not m.prompt_form or len(forms) == 1 or m.prompt_form == form
            ]
            shown = form if len(forms) > 1 else ""
            yield View(part, content, prefix, shown, tuple(models), marks)


def all_marks(content: Content) -> Mapping[str, Mark]:
    """One mark for each label, the same in every figure."""
    return marks_of(list(dict.fromkeys(model.label for part in content.parts for model in part.models)))


def finished(name: str, title: str, plot: Plot) -> Figure:
    """The figure for a text block and, under a name of its own, for a column of a paper and a phone."""
    column = _drawn(f"{name}-column", title, plot, COLUMN)
    return replace(_drawn(name, title, plot, WIDTH), column=column)


def _drawn(name: str, title: str, plot: Plot, width: float) -> Figure:
    """Say once if it shows boxes for lacking characters."""
    sheet = lay_out(plot.bands, [*plot.legend, *undefined(plot.bands)], width)
    svg = sheet.svg(name, plot.alt)
    note = f" {BOX_NOTE}" if BOX.encode() in svg else ""  # texts are texts in it
    return Figure(name, title, plot.caption + note, plot.alt, svg, sheet)


def portions(items: Sequence[T], size: int, *, even: bool = True) -> Iterator[tuple[str, str, Sequence[T]]]:
    """What goes into one figure or several: ends of its name and its title, and its items.

    `even` makes several of about equal numbers; else all but the last are full.
    """
    n = -(-len(items) // size)
    each = -(-len(items) // n) if even and n else size
    for i in range(n):
        place = f" ({i + 1} of {n})" if n > 1 else ""
        yield f"-{i + 1}" if i else "", place, items[i * each : (i + 1) * each]


def told(sentences: Sequence[str], table: str, *, most: int = 4) -> str:
    """The first sentences of an alternative text, and where the others are."""
    some = [sentence for sentence in sentences if sentence]
    more = len(some) - most
    end = [f"{more} more of this kind can be read in the table {table}."] if more > 0 else []
    return " ".join([*some[:most], *end])


def mean(values: Sequence[float]) -> float | None:
    """Of the defined values."""
    defined = [value for value in values if value == value]
    return sum(defined) / len(defined) if defined else None


def short(value: float | None, *, sign: bool = False) -> str:
    """A number for a sentence: two decimals, a real minus, – where it is undefined."""
    if value is None or value != value:
        return "–"
    text = f"{value:+.2f}" if sign else f"{value:.2f}"
    return text.replace("-", "\u2212") if float(text) else text.lstrip("+-")
