"""The figures of a report: SVG, PNG and PDF, from stored tables only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from biaskit.report.content import Content
from biaskit.report.figures.as_shipped import import_matplotlib
from biaskit.report.figures.figure import Figure, Missing
from biaskit.report.questions import QuestionId

if TYPE_CHECKING:
    from biaskit.report.figures.view import View

__all__ = ["Figure", "Missing", "draw_all", "files_of", "kinds"]


Kind = Callable[["View"], Iterator[Figure | Missing]]
"""Draws the figures of one kind from the rows of one study and prompt form."""


def kinds() -> dict[str, dict[QuestionId, tuple[Kind, ...]]]:
    """The kinds of figures by engine and by the question that they answer, in the order of the page.

    The first picture and those of both engines together stand beside them: they take a whole content.
    """
    import_matplotlib()  # before any module that imports it
    from biaskit.report.figures import (
        between_models,
        forest,
        groups,
        labour,
        marked_words,
        outcomes,
        probe,
        representation,
        said_next,
        srb,
        transfer,
        words,
    )

    return {
        "probe": {
            "say": (probe.groups, labour.labour, probe.jobs),
            "else": (outcomes.outcomes, said_next.said_next),
            "models": (between_models.models,),
            "help": (forest.debiasing,),
            "sure": (probe.variance,),
        },
        "personas": {
            "write": (representation.scatter, representation.deciles, representation.nonbinary),
            "how": (
                *(words.words, marked_words.word_lists, groups.group_lists, transfer.areas),
                *(srb.heat_maps, marked_words.clusters, marked_words.silhouette),
            ),
            "models": (srb.changes,),
        },
    }


def draw_all(content: Content) -> tuple[Figure | Missing, ...]:
    """Every figure of a report in the order of the page; one that cannot be drawn says why."""
    shown = kinds()
    from biaskit.report.figures import answer, both_engines
    from biaskit.report.figures.sheet import rules
    from biaskit.report.figures.view import views

    with rules():
        return (
            *answer.answer(content),
            *(
                _answering(question, one)
                for engine, questions in shown.items()
                for view in views(content, engine)
                for question, own in questions.items()
                for kind in own
                for one in kind(view)
            ),
            *(_answering("agree", one) for one in both_engines.figures(content)),
        )


def _answering(question: QuestionId, figure: Figure | Missing) -> Figure | Missing:
    return replace(figure, question=question) if isinstance(figure, Figure) else figure


def files_of(figures: Sequence[Figure | Missing], *, pdf: bool) -> dict[str, bytes]:
    """`<name>.svg`, `<name>.png` and, when asked, `<name>.pdf` of every figure, by file name."""
    made: dict[str, bytes] = {}
    for figure in figures:
        if isinstance(figure, Missing):
            continue
        for one in filter(None, (figure, figure.column)):
            made |= {f"{one.name}.svg": one.svg, f"{one.name}.png": one.png()}
            made |= {f"{one.name}.pdf": one.pdf()} if pdf else {}
    return made
