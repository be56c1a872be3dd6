"""Draws what the prober measured: its kinds of figures under the questions that they answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from biaskit.measures.probe.figures.debiasing import debiasing
from biaskit.measures.probe.figures.groups import every_model, groups, variance
from biaskit.measures.probe.figures.jobs import jobs, labour
from biaskit.measures.probe.figures.outcomes import outcomes
from biaskit.report.figures import FigureKind
from biaskit.report.figures.differences import models
from biaskit.report.questions import QuestionId


def figures() -> Mapping[QuestionId, Sequence[FigureKind]]:
    """Name the kinds of figures in the order of the page."""
    return {
        "say": (groups, labour, jobs),
        "else": (outcomes,),
        "models": (models, every_model),
        "help": (debiasing,),
        "sure": (variance,),
    }
