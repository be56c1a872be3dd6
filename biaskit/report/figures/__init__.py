"""Draw the figures of a report as SVG, PNG and PDF, from stored tables only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from biaskit.report.content import Content
from biaskit.report.figures import (
    differences,
    forest,
    gaps,
    items,
    labour,
    model_rows,
    outcomes,
    pairs,
    probe,
    srb,
    transfer,
    words,
)
from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.view import View, all_marks, views
from biaskit.report.questions import QuestionId

__all__ = ["KINDS", "Figure", "answer", "draw_all", "files_of"]

ANSWER = "answer"  # name of the first figure
FigureKind = Callable[[View], Iterator[Figure]]
"""Make the figures of one kind from the rows of one study and prompt form; none without rows."""
KINDS: dict[str, dict[QuestionId, tuple[FigureKind, ...]]] = {
    "probe": {
        "say": (probe.groups, labour.labour, items.jobs, pairs.pairs),
        "else": (outcomes.outcomes,),
        "models": (differences.models,),
        "help": (forest.debiasing,),
        "sure": (probe.variance,),
    },
    "personas": {"write": (labour.scatter,), "how": (words.words, transfer.areas, srb.scores)},
}
"""Engine → question → kinds of figures, in the order of the page.

The first figure and those of both engines are no kinds: they take a whole content.
"""


def answer(content: Content) -> Iterator[Figure]:
    """Draw the first figure: items of one model, or a row for each of several; none without data."""
    several = len(all_marks(content)) > 1
    yield from model_rows.model_rows(content, ANSWER) if several else items.answer(content, ANSWER)


def draw_all(content: Content) -> tuple[Figure, ...]:
    """Draw every figure of a report in the order of the page."""
    return (
        *answer(content),
        *(
            replace(figure, question=question)
            for engine, questions in KINDS.items()
            for view in views(content, engine)
            for question, kinds in questions.items()
            for kind in kinds
            for figure in kind(view)
        ),
        *(replace(figure, question="agree") for figure in gaps.figures(content)),
    )


def files_of(figures: Sequence[Figure], *, pdf: bool) -> dict[str, bytes]:
    """Map file names to content: `<name>.svg`, `<name>.png` and, where asked for, `<name>.pdf`."""
    files: dict[str, bytes] = {}
    for figure in figures:
        files |= {f"{figure.name}.svg": figure.svg, f"{figure.name}.png": figure.png()}
        files |= {f"{figure.name}.pdf": figure.pdf()} if pdf else {}
    return files
