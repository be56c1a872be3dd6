"""Pick the rows that may share a figure: one study, one prompt format, in the order of the study."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import TypeVar

from biaskit.common.wording import first_words, percent
from biaskit.records import ALL
from biaskit.report.content import Content, parts_of, prompt_formats_of
from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.plot import Entry, Panel, Plot
from biaskit.report.figures.style import MODEL_COLOURS, MODEL_MARKERS, Mark, asked, cut, people
from biaskit.runs.claims import GASP
from biaskit.runs.collection import Part
from biaskit.runs.store import slug
from biaskit.stats.contrast import Contrast
from biaskit.tables.coverage import WEAK, coverage_of, is_under, table_with_coverage
from biaskit.tables.query import AnyRow, Row, defined, distinct, grouped, in_main_context, where

PER_FIGURE = 5  # models side by side in one figure; more models take more figures

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class View:
    """A part of a content in one prompt format (methods/prompts#prompt-formats)."""

    part: Part
    content: Content
    prefix: str  # before the names of figures
    prompt_format: str  # "" where all models have the same, or none has one
    models: tuple[str, ...]
    marks: Mapping[str, Mark]

    def rows(self, table: str, **wanted: object) -> list[Row]:
        """Pick rows of a table for these models (each has one format) and the wanted values."""
        rows = where(self.part.tables.get(table, ()), **wanted)
        return [row for row in rows if row.get("model", "") in (*self.models, ALL, "")]

    def tests(self, **wanted: object) -> list[Contrast]:
        """Pick rows of tests.csv for these models and the wanted values."""
        return [row for row in where(self.part.tests, **wanted) if row.model_a in self.models]

    def plain(self, table: str) -> list[Row]:
        """Pick rows without a debiasing prompt, in the plain context, else in the first one."""
        return in_main_context(self.rows(table, debiasing_id=0))

    @property
    def whom(self) -> str:
        """Name what shares are of: women, among women and men unless they are of all target words."""
        first, second = map(people, self.part.contrast)
        return f"{first} among {first} and {second}" if self.part.rule.binary else first

    def shows(self, reference: str) -> bool:
        """Whether the report compares numbers with parity, or with labour statistics (`workforce`)."""
        return self.content.reference in (reference, "both")

    def job_groups(self) -> list[str]:
        """List job groups, the one with the highest share of women in labour statistics first."""
        shares: dict[str, list[float]] = {}
        for row in self.rows("probe_jobs"):
            of_group = shares.setdefault(str(row["job_group"]), [])
            if row["workforce_share"] is not None:
                of_group.append(row["workforce_share"])
        return sorted(shares, key=lambda group: -sum(shares[group]) / max(len(shares[group]), 1))

    def entries(self, models: Sequence[str]) -> list[Entry]:
        """Make the legend of some models; a model alone needs none."""
        return [Entry(model, self.marks[model]) for model in models] if len(self.models) > 1 else []

    @property
    def weak(self) -> str:
        """Say in a caption which answers are weak evidence (methods/probabilities#low-coverage)."""
        shares = self.plain(table_with_coverage(self.part.measurement))
        weak = []
        for (model, bias_type), rows in grouped(shares, "model", "bias_type").items():
            if is_under(coverage_of(rows, of_two=self.part.rule.binary), WEAK):
                weak.append(f"{cut(model, 18)} {asked(bias_type)}")
        held = f"coverage under {percent(WEAK)} %"
        return f" Weak evidence ({held}): {first_words(weak, 5, ', ')}." if weak else ""

    def place(self, figure: str) -> str:
        """Name the figure of GAS(P) that this one is, for a caption; "" if the study is not the paper's."""
        return self.part.claim(GASP).place(f"GAS(P), {figure}")

    def charts(
        self,
        rows: Sequence[AnyRow],
        name: str,
        title: str,
        draw: Callable[[View, Sequence[AnyRow], Sequence[str]], Plot],
        *,
        size: int = PER_FIGURE,
        column: str = "model",
    ) -> Iterator[Figure]:
        """Draw the models that have a row (`column`: its model), in as many even figures as `size` needs."""
        present = {row[column] for row in rows}
        models = [model for model in self.models if model in present]
        for number_, place, some in portions(models, size):
            plot = draw(self, [row for row in rows if row[column] in some], some)
            yield self.figure(name + number_, title, plot, place)

    def figure(self, name: str, title: str, plot: Plot, more: str = "") -> Figure:
        """Make a figure with its name; study and prompt format in its title, and `more` after them."""
        prompt_format = f", prompt format {cut(self.prompt_format)}" if self.prompt_format else ""
        return figure(f"{self.prefix}{name}", f"{title} ({cut(self.part.study)}{prompt_format}){more}", plot)


def figure(name: str, title: str, plot: Plot) -> Figure:
    """Make a figure, with a line in its legend for undefined numbers where there are any."""
    panels = [panel for band in plot.bands for panel in band.panels if isinstance(panel, Panel)]
    series = [dots for panel in panels for dots in panel.dots]
    if any(point is not None and point.x != point.x for dots in series for point in dots.points):
        plot = replace(plot, legend=[*plot.legend, Entry("–: not measured")])
    return Figure(name, title, plot)


def views(content: Content, folder: str) -> Iterator[View]:
    """Split each part that a folder speaks of by prompt format; a lone view has no prefix."""
    marks = all_marks(content)
    parts = parts_of(content.parts, folder)
    prefixes: set[str] = set()
    for part in parts:
        formats = prompt_formats_of([part])
        for prompt_format in formats if len(formats) > 1 else [""]:
            prefix = f"{slug(part.study)}-" if len(parts) > 1 else ""
            if prompt_format:
                prefix += f"{slug(prompt_format)}-"
            free, n = prefix, 1
            while free in prefixes:
                n += 1
                free = f"{prefix}{n}-"
            prefixes.add(free)
            models = []
            for model in part.models:
                if not prompt_format or model.prompt_format in ("", prompt_format):
                    models.append(model.label)
            yield View(part, content, free, prompt_format, tuple(models), marks)


def all_marks(content: Content) -> Mapping[str, Mark]:
    """Give each label a mark, the same in every figure."""
    looks = zip(content.labels, cycle(MODEL_COLOURS), cycle(MODEL_MARKERS), strict=False)
    return {label: Mark(colour, marker) for label, colour, marker in looks}


def portions(items: Sequence[T], size: int) -> Iterator[tuple[str, str, Sequence[T]]]:
    """Spread items evenly over as few figures as `size` allows: endings of name and title, and items."""
    n = -(-len(items) // size)
    each = -(-len(items) // max(n, 1))
    for i in range(n):
        of_title = f" ({i + 1} of {n})" if n > 1 else ""
        yield f"-{i + 1}" if i else "", of_title, items[i * each : (i + 1) * each]


def short(value: float | None) -> str:
    """Write a number with two decimals and a real minus; – if it is undefined."""
    if value is None or value != value:
        return "–"
    text = f"{value:.2f}"
    return text.replace("-", "\u2212") if float(text) else text.lstrip("-")


def spread(rows: Sequence[Row], name: str) -> str:
    """Write the counts of a column as '25', or '4 to 25'."""
    known = distinct(defined(rows, name), name)
    if not known:
        return "–"
    return str(known[0]) if len(known) == 1 else f"{min(known)} to {max(known)}"
