"""The figures of a report: SVG, PNG and PDF, from stored tables only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from biaskit.report.content import Content
from biaskit.report.figures.as_shipped import import_matplotlib
from biaskit.report.figures.figure import Figure
from biaskit.report.questions import QuestionId

if TYPE_CHECKING:
    from biaskit.report.figures.view import View

__all__ = ["Figure", "answer", "draw_all", "files_of", "kinds"]

ANSWER = "answer"
"""The name of the first picture."""

Kind = Callable[["View"], Iterator[Figure]]
"""Draws the figures of one kind from the rows of one study and prompt form; none where there are no rows."""


def kinds() -> dict[str, dict[QuestionId, tuple[Kind, ...]]]:
    """The kinds of figures by engine and by the question that they answer, in the order of the page.

    The first picture and those of both engines together stand beside them: they take a whole content.
    """
    import_matplotlib()  # before any module that imports it
    from biaskit.report.figures import (
        between_models,
        forest,
        groups,
        items,
        labour,
        outcomes,
        probe,
        said_next,
        srb,
        transfer,
        words,
    )

    return {
        "probe": {
            "say": (probe.groups, labour.labour, items.jobs),
            "else": (outcomes.outcomes, said_next.said_next),
            "models": (between_models.models,),
            "help": (forest.debiasing,),
            "sure": (probe.variance,),
        },
        "personas": {
            "write": (labour.scatter,),
            "how": (words.words, groups.group_lists, transfer.areas, srb.scores),
        },
    }


def answer(content: Content) -> Iterator[Figure]:
    """The first picture: items for one model, a row each for several; none where nothing is to be drawn."""
    from biaskit.report.figures import items, models_in_rows
    from biaskit.report.figures.view import all_marks

    several = len(all_marks(content)) > 1
    yield from models_in_rows.models_in_rows(content, ANSWER) if several else items.answer(content, ANSWER)


def draw_all(content: Content) -> tuple[Figure, ...]:
    """Every figure of a report in the order of the page."""
    shown = kinds()
    from biaskit.report.figures import both_engines
    from biaskit.report.figures.sheet import rules
    from biaskit.report.figures.view import views

    with rules():
        return (
            *answer(content),
            *(
                replace(one, question=question)
                for engine, questions in shown.items()
                for view in views(content, engine)
                for question, own in questions.items()
                for kind in own
                for one in kind(view)
            ),
            *(replace(one, question="agree") for one in both_engines.figures(content)),
        )


def files_of(figures: Sequence[Figure], *, pdf: bool) -> dict[str, bytes]:
    """`<name>.svg`, `<name>.png` and, when asked, `<name>.pdf` of every figure, by file name."""
    made: dict[str, bytes] = {}
    for figure in figures:
        for one in filter(None, (figure, figure.column)):
            made |= {f"{one.name}.svg": one.svg, f"{one.name}.png": one.png()}
            made |= {f"{one.name}.pdf": one.pdf()} if pdf else {}
    return made
