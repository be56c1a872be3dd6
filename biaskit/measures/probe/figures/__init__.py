"""Draws what the prober measured: its kinds of figures under the questions that they answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from biaskit.measures.probe.figures.debiasing import debiasing
from biaskit.measures.probe.figures.groups import groups, variance
from biaskit.measures.probe.figures.jobs import jobs, workforce
from biaskit.measures.probe.figures.outcomes import outcomes
from biaskit.measures.probe.figures.ways import ways
from biaskit.report.figures import FIRST, FigureKind
from biaskit.report.figures.changes import flipped, unflipped
from biaskit.report.figures.differences import are_many, models
from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.model_rows import MOST_MODELS, Answers, side_by_side
from biaskit.report.figures.view import View, all_marks
from biaskit.report.questions import QuestionId


def figures() -> Mapping[QuestionId, Sequence[FigureKind]]:
    """Name the kinds of figures in the order of the page."""
    return {
        FIRST: (flipped,),
        "say": (groups, workforce, jobs),
        "else": (outcomes,),
        "models": (models, every_model, unflipped),
        "help": (debiasing,),
        "sure": (ways, variance),
    }


def every_model(view: View) -> Iterator[Figure]:
    """Draw a row for each model where they are too many for a forest, if the first figure left some out."""
    if are_many(view) and len(all_marks(view.content)) > MOST_MODELS:
        name = f"{view.prefix}models"
        yield from side_by_side(view.content, name, Answers.of(view), {}, most=len(view.models))
