"""Draw the figures of a report as SVG, PNG and PDF, from stored tables only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from biaskit.measurement import ACROSS, Measurement, folders
from biaskit.report.content import Content
from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.view import views

__all__ = ["FIRST", "Figure", "FigureKind", "draw_all", "files_of"]

FIRST = ""  # in place of a question: the figure that stands above all of them
FigureKind = Callable[[Any], Iterator[Figure]]
"""Make the figures of one kind from a `View`, the rows of one study and prompt format; none without rows.

Those that relate kinds take the whole content.
"""


def draw_all(content: Content) -> tuple[Figure, ...]:
    """Draw every figure of a report in the order of the page: one at the top, then those of each kind."""
    figures: dict[str, Figure] = {}
    for folder in folders():
        for figure in _drawn(content, folder):
            name, n = figure.name, 1
            while name in figures:
                n += 1
                name = f"{figure.name}-{n}"
            figures[name] = replace(figure, name=name)
    in_order = sorted(figures.values(), key=lambda figure: figure.question != FIRST)
    for place, figure in enumerate(in_order[1:], 1):
        in_order[place] = replace(figure, question=figure.question or "models")
    return tuple(in_order)


def _drawn(content: Content, folder: Measurement) -> Iterator[Figure]:
    sources = [content] if folder.name in ACROSS else views(content, folder.name)
    for source in sources:
        for question, kinds in folder.figures().items():
            for draw in kinds:
                for figure in draw(source):
                    yield replace(figure, question=question)


def files_of(figures: Sequence[Figure], *, pdf: bool) -> dict[str, bytes]:
    """Map file names to content: `<name>.svg`, `<name>.png` and, where asked for, `<name>.pdf`."""
    files: dict[str, bytes] = {}
    for figure in figures:
        files |= {f"{figure.name}.svg": figure.svg, f"{figure.name}.png": figure.png()}
        if pdf:
            files[f"{figure.name}.pdf"] = figure.pdf()
    return files
