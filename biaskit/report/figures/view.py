"""The rows that may stand in one figure: one study, one prompt form, in the order of the study."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TypeVar

from biaskit.report.content import Content
from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.plot import Entry, Plot
from biaskit.report.figures.style import Mark, cut, marks_of
from biaskit.runs.claims import GASP
from biaskit.runs.collection import Part
from biaskit.runs.store import slug
from biaskit.tables.query import Row, in_main_setting, where

PER_FIGURE = 5
"""Models that stand side by side in one figure; more models take more figures."""

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

    def plain(self, table: str) -> list[Row]:
        """Rows without an instruction, in the plain setting (in its only one where there is no plain one)."""
        return in_main_setting(self.rows(table, instruction_id=0))

    def shows(self, reference: str) -> bool:
        """Whether the report holds numbers against parity, or against labour statistics (`labour`)."""
        return self.content.reference in (reference, "both")

    def job_groups(self) -> list[str]:
        """Job groups, the one with the highest share of women in labour statistics first."""
        shares: dict[str, list[float]] = {}
        for row in self.rows("probe_jobs"):
            known = shares.setdefault(str(row["job_group"]), [])
            known += [] if row["labour_female_share"] is None else [row["labour_female_share"]]
        return sorted(shares, key=lambda group: -sum(shares[group]) / max(len(shares[group]), 1))

    def entries(self, models: Sequence[str]) -> list[Entry]:
        """The legend of some models; a model that is alone needs none."""
        return [Entry(model, self.marks[model]) for model in models] if len(self.models) > 1 else []

    def place(self, figure: str) -> str:
        """The figure of GAS(P) that this one is, for a caption; empty where the study is not the paper's."""
        return self.part.claim(GASP).place(f"GAS(P), {figure}")

    def charts(
        self,
        rows: Sequence[Row],
        name: str,
        title: str,
        draw: Callable[[View, Sequence[Row], Sequence[str]], Plot],
        *,
        size: int = PER_FIGURE,
        column: str = "model",
    ) -> Iterator[Figure]:
        """A figure of the models that have a row, or several of about equal numbers of them; else none.

        `column` holds a row's model.
        """
        present = {row[column] for row in rows}
        models = [model for model in self.models if model in present]
        for number_, place, some in portions(models, size):
            plot = draw(self, [row for row in rows if row[column] in some], some)
            yield self.figure(name + number_, title, plot, place)

    def figure(self, name: str, title: str, plot: Plot, more: str = "") -> Figure:
        """A plot with its name; study and prompt form in its title, and `more` after them."""
        form = f", prompt form {cut(self.form)}" if self.form else ""
        return figure(f"{self.prefix}{name}", f"{title} ({cut(self.part.study)}{form}){more}", plot)


def figure(name: str, title: str, plot: Plot) -> Figure:
    """A finished figure."""
    return Figure(name, title, plot.with_undefined())


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


def portions(items: Sequence[T], size: int) -> Iterator[tuple[str, str, Sequence[T]]]:
    """What goes into one figure or several of about equal numbers: ends of name and title, and the items."""
    n = -(-len(items) // size)
    each = -(-len(items) // max(n, 1))
    for i in range(n):
        yield (
            f"-{i + 1}" if i else "",
            f" ({i + 1} of {n})" if n > 1 else "",
            items[i * each : (i + 1) * each],
        )


def short(value: float | None, *, sign: bool = False) -> str:
    """A number for a sentence: two decimals, a real minus, – where it is undefined."""
    if value is None or value != value:
        return "–"
    text = f"{value:+.2f}" if sign else f"{value:.2f}"
    return text.replace("-", "\u2212") if float(text) else text.lstrip("+-")


def spread(counts: Sequence[int | None]) -> str:
    """25, or 4 to 25, for a note."""
    known = [count for count in counts if count is not None]
    if not known:
        return "–"
    return str(known[0]) if min(known) == max(known) else f"{min(known)} to {max(known)}"
