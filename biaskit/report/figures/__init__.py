"""The figures of a report: SVG, PNG and PDF, from stored tables only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from biaskit.report.content import Content
from biaskit.report.figures.as_shipped import import_matplotlib
from biaskit.report.figures.figure import Figure, Missing

__all__ = ["Figure", "Missing", "draw_all", "files_of"]


def draw_all(content: Content) -> tuple[Figure | Missing, ...]:
    """Every figure of a report in the order of the page; one that cannot be drawn says why."""
    import_matplotlib()  # before any module that imports it
    from biaskit.report.figures import (
        between_models,
        both_engines,
        forest,
        groups,
        marked_words,
        probe,
        representation,
        said_next,
        srb,
        transfer,
    )
    from biaskit.report.figures.sheet import rules
    from biaskit.report.figures.view import View, views

    shown: dict[str, tuple[Callable[[View], Iterator[Figure | Missing]], ...]] = {
        "probe": (
            *(probe.jobs, probe.groups, probe.ternary, probe.variance),
            *(said_next.said_next, forest.debiasing, between_models.models),
        ),
        "personas": (
            *(representation.deciles, representation.scatter, representation.nonbinary),
            *(srb.heat_maps, srb.changes, transfer.areas),
            *(marked_words.word_lists, marked_words.clusters, marked_words.silhouette),
            groups.group_lists,
        ),
    }
    with rules():
        drawn = [
            one
            for engine, kinds in shown.items()
            for view in views(content, engine)
            for kind in kinds
            for one in kind(view)
        ]
        return (*drawn, *both_engines.figures(content))


def files_of(figures: Sequence[Figure | Missing], *, pdf: bool) -> dict[str, bytes]:
    """`<name>.svg`, `<name>.png` and, when asked, `<name>.pdf` of every figure, by file name."""
    made: dict[str, bytes] = {}
    for figure in figures:
        if isinstance(figure, Missing):
            continue
        made |= {f"{figure.name}.svg": figure.svg, f"{figure.name}.png": figure.png()}
        made |= {f"{figure.name}.pdf": figure.pdf()} if pdf else {}
    return made
